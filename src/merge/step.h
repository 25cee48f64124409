/*
 * step.h
 *		State of one merge step: private to step.c and rewrite.c.
 */
#ifndef HYB_STEP_H
#define HYB_STEP_H

#include "dynamic/dynamic.h"
#include "merge/dead.h"
#include "static/filter.h"
#include "static/leaf.h"
#include "static/update.h"

/* What a step has done so far.  A run of leaves may be taken back. */
typedef struct HybStepDone
{
	int			next_entry;		/* first frozen one not merged yet */
	int			nimages;		/* new leaves */
	int			nretired;		/* old leaves that were rewritten */
	uint64		dropped;		/* entries left out for dead line pointers */
	uint64		old_tids;
	uint64		old_tombstones;
	uint64		new_tids;
	uint64		merged;			/* frozen entries merged */
	HybRecent	recent[INDEX_MAX_KEYS]; /* some of them */
} HybStepDone;

typedef struct MergeStep
{
	HybIndex   *ix;
	HybVersion	version;
	int			level;			/* that the entries go to: the newest */
	uint64		stamp;
	bool		compact;		/* visit every leaf: HYB_META_COMPACTING */
	int			max_leaves;

	/* input */
	HybDynBatch batch;
	int			last_entry;		/* one past those that this step may merge */
	HybLeaf		leaf;
	char	   *leaf_page;		/* private copy of the leaf being merged */
	bool		leaf_plain;		/* it has neither tombstones nor hints */
	HybValue   *vals;

	/* output: children of the level-1 node, old ones and new ones */
	HybLeafBuilder *builder;	/* NULL: no run of rewritten leaves is open */
	HybFilterBuilder *filter;	/* or NULL: no filters */
	HybPos		run_low;		/* lower fence of the run */
	bool		run_shares;		/* its leaves share its entries evenly */
	int			run_items;		/* TIDs that are to go into it, about */
	double		run_content;	/* the leaves that they fill, about */
	int			run_emitted;	/* TIDs in its finished leaves */
	double		run_filled;		/* what they fill */
	HybChildList children;
	BlockNumber *retired;		/* the old leaves */
	HybDeadCheck dead;
	HybStepDone done;
} MergeStep;

static inline const uint8 *
hyb_step_entry(const MergeStep *step, const HybDynItem *item)
{
	return step->batch.keys.data + item->key_off;
}

static inline HybPos
hyb_step_pos(const MergeStep *step, const HybDynItem *item)
{
	return hyb_pos_at(step->ix->desc, hyb_step_entry(step, item), item->keylen,
					  item->tid);
}

/*
 * Rewrite leaves of the path's level-1 node with the entries that the step may
 * merge: step->children are the new children of the node then.  Returns true
 * if the whole range of that node is done; *fence is the upper fence of what
 * is done, and lives as long as the path.  The merge lock is held, and no
 * other lock.
 */
extern bool hyb_step_rewrite(MergeStep *step, HybPath *path, HybPos *fence);

#endif							/* HYB_STEP_H */
