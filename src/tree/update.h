/*
 * update.h
 *		Copy-on-write replacement of children in the static stage.
 *
 * All functions are called with the merge lock held, so that nobody else
 * changes the tree; readers go on in the old version until the metapage is
 * switched.
 */
#ifndef HYB_UPDATE_H
#define HYB_UPDATE_H

#include "filter/filter.h"
#include "store/meta.h"
#include "store/space.h"

#define HYB_MAX_HEIGHT	32

/*
 * Add a new leaf that hyb_leaf_builder_* has finished; returns the child, which
 * has neither block, image nor filter yet.
 */
extern HybChild *hyb_child_list_add_leaf(HybChildList *list, Page page,
										 const HybPos *low);

/*
 * The same of a leaf that hyb_step_write_leaves is going to write: its image is
 * copied, and its filter built unless `filter` is NULL.
 */
extern void hyb_child_list_add_image(HybChildList *list, Page page,
									 const HybPos *low,
									 HybFilterBuilder *filter);

/*
 * Copy a leaf to a private page.  Stamps cannot mismatch, so what is not the
 * leaf is damage: an error.
 */
extern void hyb_child_copy_leaf(const HybIndex *ix, const HybChild *child,
								char *page);

/* An internal node on the way to a leaf, copied. */
typedef struct HybPathNode
{
	BlockNumber block;
	HybChildList children;
	int			index;			/* child that the path follows */
} HybPathNode;

/*
 * Path from the root of a level to the level-1 node above the leaf that holds
 * the first entry above pos.  nodes[level - 1] is the node of that level; with
 * height 1 nodes[0] is made up: a node whose only child is the root leaf.
 */
typedef struct HybPath
{
	int			height;			/* of the tree; 0: no nodes at all */
	HybPathNode nodes[HYB_MAX_HEIGHT];
	HybPos		high;			/* upper fence of nodes[0] */
} HybPath;

#ifdef USE_ASSERT_CHECKING
extern void hyb_path_assert_valid(const HybPath *path);
#else
#define hyb_path_assert_valid(path) ((void) (path))
#endif

/* The upper fence of a child of the path's level-1 node. */
extern HybPos hyb_path_upper_fence(const HybPath *path, int child);

/*
 * What a walk over the leaves of a level has done up to a fence of the path,
 * which led from *at, is done with: *at, whose key at_key holds, becomes that
 * fence.  Damaged separators could have the walk go round for ever.
 */
extern void hyb_path_go_on(const HybIndex *ix, const HybPath *path,
						   const HybPos *fence, HybPos *at, HybBuf *at_key);

extern void hyb_path_load(const HybIndex *ix, const HybRoot *root,
						  const HybPos *pos, HybPath *path);

/* Write the new leaves of a list: those with an image. */
extern void hyb_step_write_leaves(HybStepSpace *space, HybChildList *list);

/*
 * Replace all children of path->nodes[0] by `list` and copy the path up to a
 * new root, which is returned in *root.  With height 0 the list becomes a tree
 * by itself.  Neither list nor path is as it was afterwards: children of the
 * list get the places of their filters, nodes of the path lose joined ones.
 */
extern void hyb_static_replace(HybStepSpace *space, HybPath *path,
							   HybChildList *list, HybRoot *root);

/* ---- CREATE INDEX ---- */

/*
 * The level-1 nodes of new leaves that another process writes the neighbours
 * of.  The first node's separator is that of its first leaf.
 */
extern void hyb_static_pack(HybStepSpace *space, HybChildList *leaves,
							HybChildList *nodes);

/*
 * A tree of new children of nodes of this level, all there are, which are
 * leaves for level 1.
 */
extern void hyb_static_build(HybStepSpace *space, const HybChildList *list,
							 int level, HybRoot *root);

#endif							/* HYB_UPDATE_H */
