/*
 * step.h
 *		State of one merge step: private to the files that make it up.
 *
 * A step moves a key range of a run into a static level: of the frozen
 * generation into the newest level (step.c), or of a level into the one before
 * it (pass.c).  rewrite.c writes the leaves that it falls into, cut.c takes it
 * out of the level that it comes from, and install.c switches the metapage.
 */
#ifndef HYB_STEP_H
#define HYB_STEP_H

#include "filter/filter.h"
#include "leaf/leaf.h"
#include "log/log.h"
#include "merge/dead.h"
#include "merge/policy.h"
#include "tree/update.h"

/* Leaves of a level that a step replaces, and what takes their place. */
typedef struct HybLeafChange
{
	int			nimages;		/* new leaves */
	int			nretired;		/* old ones */
	uint64		old_tids;		/* tombstones included */
	uint64		old_tombstones;
	uint64		new_tids;
} HybLeafChange;

/* What a step has done so far.  A run of leaves may be taken back. */
typedef struct HybStepDone
{
	int			next_entry;		/* first frozen one not merged yet */
	HybLeafChange leaves;		/* of the level that entries go to */
	uint64		dropped;		/* entries left out for dead line pointers */
	uint64		merged;			/* frozen entries merged */
	HybRecent	recent[INDEX_MAX_KEYS]; /* some of them */
} HybStepDone;

/* How a step looks for versions left behind (versions.c). */
typedef struct HybVersionLook
{
	int			looked;			/* entries, since the last decision to go on */
	int			dead;			/* of those */
	int			skip;			/* passed over after that decision */
	int			pass;			/* yet to be passed over */
	bool		over;			/* it does not look any more */
} HybVersionLook;

#define HYB_SOURCE_LOG	(-1)

/* What is left of the leaves of a level that a range is taken out of. */
typedef struct HybLeafRemainder
{
	HybPath    *path;			/* to the level-1 node of all of them */
	HybChildList children;		/* its new children */
	BlockNumber *retired;		/* the leaves */
	HybLeafChange leaves;
} HybLeafRemainder;

typedef struct HybMergeStep
{
	HybIndex   *ix;
	HybVersion	version;
	int			source;			/* level that the entries come from;
								 * HYB_SOURCE_LOG: the frozen generation */
	int			level;			/* that they go to */
	uint64		entries;		/* of all levels and the frozen generation */
	HybPos		from;			/* it takes up what lies above this; for the
								 * frozen generation, the watermark */
	HybPos		end;			/* and goes no further than this */
	HybPos		unit_high;		/* of the unit that is moved: its upper fence */
	uint64		stamp;
	bool		compact;		/* visit every leaf: HYB_META_COMPACTING */
	int			max_leaves;
	int			halvings;		/* of what it is to take: see hyb_merge_step */

	/* input */
	HybDynBatch batch;
	int			last_entry;		/* one past those that this step may merge */
	HybPath    *source_path;	/* of the source level, to what lies above
								 * `from`; NULL with HYB_SOURCE_LOG */
	HybLeafRemainder *cut;		/* the same; or nothing to be taken out */
	struct HybStepGroup *group; /* what group.c keeps; NULL: no group was read */
	HybLeaf		leaf;
	char	   *leaf_page;		/* private copy of the leaf being merged */
	uint8	   *leaf_hints;		/* its killed-tuple hints, and what was found
								 * dead: a bit for each item */
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
	double		run_rent;		/* of the leaves that it replaces, in pages */
	double		run_filled;		/* what they fill */
	HybChildList children;
	BlockNumber *retired;		/* the old leaves */
	HybDeadCheck dead;
	HybVersionLook look;
	HybStepDone done;
} HybMergeStep;

#ifdef USE_ASSERT_CHECKING
/* A step, after each of its parts. */
extern void hyb_step_assert_valid(const HybMergeStep *step);
#else
#define hyb_step_assert_valid(step) ((void) (step))
#endif

static inline const uint8 *
hyb_step_entry(const HybMergeStep *step, const HybDynItem *item)
{
	Assert(item->key_off + item->len <= step->batch.keys.len);
	return step->batch.keys.data + item->key_off;
}

static inline HybPos
hyb_step_pos(const HybMergeStep *step, const HybDynItem *item)
{
	return hyb_pos_at(step->ix->desc, hyb_step_entry(step, item), item->keylen,
					  item->tid);
}

/*
 * Take the entries of a step.  False if there are none above the watermark and
 * below the end of the range, and no leaves left to visit.
 */
extern bool hyb_step_fetch(HybMergeStep *step, const HybStepSize *size);

/* Memory and what the metapage, as the merge lock protects it, says. */
extern HybMergeStep *hyb_step_create(HybIndex *ix, const HybMetaPage *meta,
									 int halvings);

/*
 * Move what was fetched, and what of the level's leaves has to be visited.  The
 * watermark that the step reaches is installed, and returned in *watermark,
 * which lives as long as the step.  False, nothing changed: see
 * hyb_step_install.
 */
extern bool hyb_step_run(HybMergeStep *step, HybPos *watermark);

/*
 * Rewrite leaves of the path's level-1 node with the entries that the step may
 * merge: step->children are the new children of the node then.  Returns true
 * if the whole range of that node is done; *fence is the upper fence of what
 * is done, and lives as long as the path.  The merge lock is held, and no
 * other lock.
 */
extern bool hyb_step_rewrite(HybMergeStep *step, HybPath *path, HybPos *fence);

/*
 * Look for versions of rows that updates have left behind, among the entries
 * [next_entry, end) and those of the same keys in the opened leaf, if there is
 * one: what is dead gets a mark or a hint, in memory only.
 */
extern void hyb_step_look(HybMergeStep *step, bool leaf, int end);

/* Give the frozen entry at next_entry to the builder, or leave it out. */
extern void hyb_step_add_frozen(HybMergeStep *step);

/* An entry of the level that the step rewrites is left out. */
static inline void
hyb_step_drop(HybMergeStep *step)
{
	step->done.dropped++;
	step->run_items--;
}

/*
 * group.c, for leaves that do not keep keys: the frozen entries [next_entry, the
 * result) are those of [next_entry, end) that fall into a row of the opened leaf,
 * as the first one does.
 */
extern int	hyb_step_entries_of_row(HybMergeStep *step, int row, int end);

/*
 * Ask ahead for pages of the table with keys that will be read for the frozen
 * entries [next_entry, end), all of the opened leaf.
 */
extern void hyb_step_ask_ahead(HybMergeStep *step, int end);

/*
 * If it is time to: read the keys of the row's items from the table, those with
 * hints of dead ones that are dead left out.  False, nothing changed, if it is
 * not, or some cannot be read.  Then these, and the frozen entries [next_entry,
 * last), go to the builder in order.
 */
extern bool hyb_step_read_group(HybMergeStep *step, int row, int last);
extern void hyb_step_add_group(HybMergeStep *step, int last);

/*
 * Take the range above step->from, up to another position, out of the source
 * level, below the level-1 node that step->source_path leads to, which must hold
 * all.  Fills step->cut; `moved` is how many entries have been
 * fetched from there, which VACUUM may have made tombstones since.
 */
extern void hyb_step_cut(HybMergeStep *step, const HybPos *to, uint64 moved);

/*
 * Write what the step has made, switch the metapage, and set the watermark.
 * `path` is not looked at if no leaf has been rewritten.  False, nothing changed,
 * if there is no room for its blocks in pending[]: it has to be done in smaller
 * ones.
 */
extern bool hyb_step_install(HybMergeStep *step, HybPath *path,
							 const HybPos *watermark);

/*
 * The pass that moves entries from one static level to the one before: a step
 * of it.  The metapage's pass_level is not 0, and the merge lock is held.  False
 * as for hyb_step_run.
 */
extern bool hyb_pass_step(HybIndex *ix, const HybMetaPage *meta,
						  const HybMergeFacts *facts, int halvings);

/* The cut just above a position: what is at it lies below. */
static inline HybPos
hyb_step_above(const HybPos *pos)
{
	HybPos		above = *pos;

	if (above.tie == HYB_AT)
		ItemPointerInc(&above.tid);
	return above;
}

/* The greatest position of entries below a fence. */
static inline HybPos
hyb_step_below(const HybPos *fence)
{
	HybPos		below = *fence;

	if (below.tie == HYB_AT)
		ItemPointerDec(&below.tid);
	return below;
}

#endif							/* HYB_STEP_H */
