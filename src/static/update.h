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

#include "page/space.h"
#include "static/filter.h"
#include "static/inner.h"

#define HYB_MAX_HEIGHT	32

/* A growable list of children; keys live in the current memory context. */
typedef struct HybChildList
{
	HybChild   *children;
	int			n;
	int			alloc;
} HybChildList;

extern void hyb_child_list_add(HybChildList *list, const HybChild *child);

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

/* An internal node on the way to a leaf, copied. */
typedef struct HybPathNode
{
	BlockNumber block;
	HybChildList children;
	int			index;			/* child that the path follows */
} HybPathNode;

/*
 * Path from the root to the level-1 node above the leaf that holds the first
 * entry above pos.  nodes[level - 1] is the node of that level; with height 1
 * nodes[0] is made up: a node whose only child is the root leaf.
 */
typedef struct HybPath
{
	int			height;			/* of the tree; 0: no nodes at all */
	HybPathNode nodes[HYB_MAX_HEIGHT];
	HybPos		high;			/* upper fence of nodes[0] */
} HybPath;

extern void hyb_path_load(const HybIndex *ix, const HybVersion *version,
						  const HybPos *pos, HybPath *path);

/* Blocks that a step writes to, and those it replaces. */
typedef struct HybStepSpace
{
	const HybIndex *ix;
	bool		filters;		/* internal nodes have filters and TID counts */
	bool		bulk;			/* CREATE INDEX: write by extending the
								 * relation, log nothing, keep no lists */
	uint64		stamp;			/* of every page the step builds */
	BlockNumber reserved[HYB_MAX_PENDING];
	int			nreserved;
	int			next;			/* first one not tried yet */
	BlockNumber used[HYB_MAX_PENDING];
	int			nused;
	BlockNumber retired[HYB_MAX_PENDING];
	int			nretired;
	int			new_inner;		/* internal nodes written */
	int			old_inner;		/* internal nodes retired */
	int			new_filter;		/* filter pages written */
	int			old_filter;		/* filter pages retired */
} HybStepSpace;

/*
 * `filters`: whether the caller builds filters for the leaves.  Who has decided
 * that says it again here: the option may change meanwhile, since ALTER INDEX
 * conflicts with no insertion, no merge, and no CREATE INDEX CONCURRENTLY.
 */
extern void hyb_step_space_init(HybStepSpace *space, const HybIndex *ix,
								uint64 stamp, bool filters, int expected);

extern void hyb_bulk_space_init(HybStepSpace *space, const HybIndex *ix,
								uint64 stamp, bool filters);

/* Write a page image to one of the reserved blocks (more are reserved when
 * they run out), log it, and return its block. */
extern BlockNumber hyb_step_write(HybStepSpace *space, const char *image);
extern void hyb_step_retire(HybStepSpace *space, BlockNumber block);

/* Write the new leaves of a list: those with an image. */
extern void hyb_step_write_leaves(HybStepSpace *space, HybChildList *list);

/*
 * Add the blocks that a step has retired, and those it reserved without using
 * them, to pending[n] and on; returns the new n.  The caller has made sure
 * that they fit.
 */
extern int	hyb_step_give_back(const HybStepSpace *space, BlockNumber *pending,
							   int n);

/*
 * Replace all children of path->nodes[0] by `list` and copy the path up to a
 * new root, which is returned in *root (block, stamp) with *height.  An empty
 * tree has InvalidBlockNumber and height 0.
 */
extern void hyb_static_replace(HybStepSpace *space, HybPath *path,
							   HybChildList *list, HybChild *root,
							   uint32 *height);

#endif							/* HYB_UPDATE_H */
