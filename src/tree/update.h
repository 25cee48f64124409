/*
 * update.h
 *		Copy-on-write replacement of children in the static stage.
 *
 * The caller of all functions holds the merge lock, so no other process changes
 * the tree.  Readers go on in the old version until the metapage is switched.
 */
#ifndef HYB_UPDATE_H
#define HYB_UPDATE_H

#include "filter/filter.h"
#include "store/space.h"
#include "tree/descend.h"

/*
 * Add a leaf that a HybLeafBuilder has finished.  Returns the child, which has
 * neither block, image nor filter yet.
 */
extern HybChild *hyb_child_list_add_leaf(HybChildList *list, Page page,
										 const HybPos *low);

/*
 * The same for hyb_step_write_leaves to write: copies the image, and builds a
 * filter unless `filter` is NULL.
 */
extern void hyb_child_list_add_image(HybChildList *list, Page page,
									 const HybPos *low,
									 HybFilterBuilder *filter);

/* Copy a leaf to a private page.  A stamp that does not match is an error. */
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
 * The path from the root of a level to the level-1 node above the leaf that holds
 * the first entry above a position.  nodes[h - 1] is the node of height h.  If
 * the root is a leaf, nodes[0] is a made-up node with that child only.
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

/* The lower fence of the path's level-1 node. */
extern HybPos hyb_path_lower_fence(const HybPath *path);

/* The upper fence of a child of that node. */
extern HybPos hyb_path_upper_fence(const HybPath *path, int child);

/*
 * A walk over the leaves of a level goes on: *at, where it was, becomes this fence
 * of the path.  at_key holds the key of *at.  An error if the fence does not lie
 * above *at, as damaged separators would make the walk loop.
 */
extern void hyb_path_go_on(const HybIndex *ix, const HybPath *path,
						   const HybPos *fence, HybPos *at, HybBuf *at_key);

extern void hyb_path_load(const HybIndex *ix, const HybRoot *root,
						  const HybPos *pos, HybPath *path);

/*
 * Visit all nodes and leaves of a level, parents first, in the order of keys, which
 * are not compared.  `visit` gets what the parent says of the page, and its height in
 * the tree: 1 is a leaf.
 */
typedef void (*HybVisit) (void *arg, const HybChild *page, int height);
extern void hyb_static_visit(const HybIndex *ix, const HybRoot *root, HybVisit visit,
							 void *arg);

/* Write the new leaves of a list: those with an image. */
extern void hyb_step_write_leaves(HybStepSpace *space, HybChildList *list);

/*
 * Replace all children of path->nodes[0] by `list` and copy the path up to a new
 * root, *root.  With height 0 the list becomes a tree by itself.  If space->full is
 * set, before or meanwhile, there is no new tree, and *root stays unset.  The list's
 * children get the places of their filters, and the path's nodes lose children
 * that were joined, so the caller does not use either again.
 */
extern void hyb_static_replace(HybStepSpace *space, HybPath *path,
							   HybChildList *list, HybRoot *root);

/* ---- CREATE INDEX ---- */

/*
 * Pack new leaves, whose neighbours another process writes, into level-1 nodes.
 * The first node's separator is that of its first leaf.
 */
extern void hyb_static_pack(HybStepSpace *space, HybChildList *leaves,
							HybChildList *nodes);

/* Build a tree of all children of its nodes of height `level`; of leaves for 1. */
extern void hyb_static_build(HybStepSpace *space, const HybChildList *list,
							 int level, HybRoot *root);

#endif							/* HYB_UPDATE_H */
