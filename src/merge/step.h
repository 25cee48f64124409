/*
 * step.h
 *		State of one merge step.  Private to the files of this folder.
 *
 * A step moves a key range of a run into a static level: of the frozen
 * generation into the newest level, or of a level into the next older one.
 * driver.c has the sequence.  rewrite.c writes the leaves that the entries go
 * to, pass.c chooses a range of a level and takes it out, and install.c switches
 * the metapage.
 *
 * The merge lock is held whenever one of these functions runs, and no LWLock is
 * held on entry or exit.
 */
#ifndef HYB_STEP_H
#define HYB_STEP_H

#include "filter/filter.h"
#include "leaf/leaf.h"
#include "log/log.h"
#include "merge/dead.h"
#include "merge/merge.h"
#include "merge/policy.h"
#include "tree/update.h"

/* How many leaves a step replaces, and what they hold. */
typedef struct HybLeafCounts
{
	int			nimages;		/* new leaves */
	int			nretired;		/* old leaves */
	uint64		old_tids;		/* with tombstones */
	uint64		old_tombstones;
	uint64		new_tids;
} HybLeafCounts;

/* What a step makes of the leaves below one level-1 node. */
typedef struct HybLeafChange
{
	int			level;			/* static level of the leaves */
	HybPath    *path;			/* to the node as it was; NULL: no change */
	HybChildList children;		/* of the node as they become */
	BlockNumber *retired;		/* the old leaves, from left to right */
	HybLeafCounts leaves;

	/* set by hyb_change_write */
	HybRoot		root;			/* of the level's new tree */
	int64		inner_pages;	/* more than before */
	int64		filter_pages;	/* more than before */
} HybLeafChange;

/* What a step has taken so far. */
typedef struct HybStepDone
{
	int			next_entry;		/* first fetched entry not merged yet */
	uint64		dropped;		/* entries left out as dead */
	uint64		merged;			/* fetched entries merged */
	HybRecent	recent[INDEX_MAX_KEYS]; /* how a sample of them compresses */
} HybStepDone;

/* Looks at things as often as that is worth it (duplicates.c). */
typedef struct HybSampling
{
	int			looked;			/* things since the last decision to go on */
	int			found;			/* what was found there */
	int			skip;			/* things passed over after that decision */
	int			pass;			/* things that are still to be passed over */
} HybSampling;

/* How a step looks for dead row versions. */
typedef struct HybVersionLook
{
	HybSampling keys;			/* entries: those of keys with others */
	HybSampling pages;			/* of the table: dead line pointers */
	bool		over;			/* the step visits no more pages */
} HybVersionLook;

#define HYB_SOURCE_LOG	(-1)

typedef struct HybMergeStep
{
	HybIndex   *ix;
	HybVersion	version;
	int			source;			/* level that entries come from, or
								 * HYB_SOURCE_LOG: the frozen generation */
	uint64		entries;		/* of all levels and the frozen generation */
	HybPos		from;			/* the step takes entries above this, */
	HybPos		end;			/* and below this */
	HybPos		unit_high;		/* upper fence of the unit being moved */
	uint64		stamp;
	bool		compact;		/* visit every leaf: HYB_META_COMPACTING */
	int			max_leaves;
	int			halvings;		/* how often its size was halved (driver.c) */

	/* input */
	HybFetched	batch;
	int			last_entry;		/* one past those that this step may merge */
	HybPath    *source_path;	/* of the source level to the first entry
								 * above `from`; NULL with HYB_SOURCE_LOG */
	struct HybStepGroup *group; /* of duplicates.c; NULL: no row was read yet */
	HybLeaf		leaf;
	char	   *leaf_page;		/* private copy of the leaf being merged */
	uint8	   *leaf_hints;		/* a bit for each item that a hint or the
								 * table says is dead */
	bool		leaf_plain;		/* it has neither tombstones nor hints */
	HybValue   *vals;

	/* output */
	HybLeafChange to;			/* of the level that entries go to */
	HybLeafChange cut;			/* of the source level */
	HybLeafBuilder *builder;	/* NULL: no group of leaves is open */
	HybFilterBuilder *filter;	/* NULL: no filters */
	HybPos		run_low;		/* lower fence of the leaf group */
	bool		run_shares;		/* its leaves share its entries evenly */
	int			run_items;		/* estimate of its TIDs */
	double		run_content;	/* estimate of the leaves that they fill */
	int			run_emitted;	/* TIDs in its finished leaves */
	double		run_rent;		/* of the leaves that it replaces, in pages */
	double		run_filled;		/* what its finished leaves fill */
	HybDeadMemory *memory;		/* of `dead`, which outlives the step */
	HybDeadCheck dead;
	struct HybChainReader *chains;	/* of hybrid_hot; NULL: no entry is asked
									 * for */
	HybVersionLook look;
	HybStepDone done;
} HybMergeStep;

static inline const uint8 *
hyb_step_entry(const HybMergeStep *step, const HybFetchedItem *item)
{
	Assert(item->key_off + item->len <= step->batch.keys.len);
	return step->batch.keys.data + item->key_off;
}

static inline HybPos
hyb_step_pos(const HybMergeStep *step, const HybFetchedItem *item)
{
	return hyb_fetched_pos(step->ix, &step->batch, item);
}

/* The step leaves out an entry. */
static inline void
hyb_step_drop(HybMergeStep *step)
{
	step->done.dropped++;
	step->run_items--;
}

/* Memory of a step, and what the metapage says of it (driver.c). */
extern HybMergeStep *hyb_step_create(HybIndex *ix, const HybMetaPage *meta,
									 int halvings);

/* ---- the frozen generation (generation.c) ---- */

/*
 * Close the active generation and start a new one.  There is neither a frozen
 * nor a retiring generation, nor a pass.  Returns false, and changes nothing,
 * if the active generation is empty and no visit of all leaves is asked for.
 */
extern bool hyb_generation_freeze(HybIndex *ix);

/*
 * All frozen entries are in static levels.  The generation retires, and a pass
 * over the levels begins if there are several.
 */
extern void hyb_generation_finish(HybIndex *ix);

/*
 * A merge that has looked for stale entries ends: the metapage of an index of hybrid_hot
 * says how many entries it has left.  In a critical section, with the metapage locked
 * exclusively.
 */
extern void hyb_generation_settle(HybIndex *ix, HybMetaPage *meta, HybWalSet *set,
								  Buffer metabuf);

/* Free the next pages of the retiring generation. */
extern void hyb_generation_free(HybIndex *ix);

/*
 * If the index waits for its dictionaries: learn them, freeze the active
 * generation, and write all entries anew in one step (learn.c).  The handle can
 * read the index then; the caller must not use encoded keys from before.
 *
 * Nothing happens if the index has dictionaries, or too few or too many keys,
 * or if another process keeps it locked for wait_ms.  Returns true if the
 * active generation was frozen.
 */
extern bool hyb_merge_learn(HybIndex *ix, int wait_ms);

/* ---- passes over levels (pass.c) ---- */

/*
 * Choose the range that a step of a pass moves: sets from, end, unit_high and
 * source_path.  Returns false if the step has looked at enough, or the pass is
 * at its end: `from` is how far it has come.
 */
extern bool hyb_pass_choose(HybMergeStep *step, const HybMetaPage *meta);

/*
 * Nothing was moved, but the pass has come to a position.  unit_done: that is
 * beyond the unit that was being moved.  At the end of the level the next pass
 * begins, or the merge is over.
 */
extern void hyb_pass_advance(HybIndex *ix, const HybPos *at, bool unit_done);

/*
 * Take the range from step->from up to `to` out of the source level; fills
 * step->cut, whose path stays NULL if there is nothing to take.  The level-1
 * node of step->source_path holds the whole range.  The step has fetched
 * `moved` entries from it; VACUUM may have set tombstones on some since.
 */
extern void hyb_step_cut(HybMergeStep *step, const HybPos *to, uint64 moved);

/* ---- work (rewrite.c, duplicates.c) ---- */

/*
 * Rewrite leaves below the level-1 node of step->to.path with the entries that
 * the step may merge; fills step->to.  Returns true if the whole range of the
 * node is done.  *fence is the upper fence of what is done; it lives as long as
 * the path.
 */
extern bool hyb_step_rewrite(HybMergeStep *step, HybPos *fence);

/* Give the next fetched entry to the builder, or leave it out as dead or stale. */
extern void hyb_step_add_entry(HybMergeStep *step);

/* ---- entries of hybrid_hot (stale.c) ---- */

/* Begin and end to ask the table which entries are stale, if the step visits all leaves. */
extern void hyb_stale_begin(HybMergeStep *step);
extern void hyb_stale_end(HybMergeStep *step);

/*
 * May the entry go?  Then no member of the chain at its root has its key.  False if
 * that is not asked for, or not known.
 */
extern bool hyb_step_is_stale(HybMergeStep *step, const ItemPointerData *root,
							  const uint8 *key, uint32 keylen);

/* The same of an item of the opened leaf. */
extern bool hyb_step_item_is_stale(HybMergeStep *step, int item);

/*
 * Leave the next fetched entry out if it is equal to the one before it, or to item `at`
 * of the opened leaf, which stays.  Without such an item the caller passes -1.
 */
extern bool hyb_step_join(HybMergeStep *step, int at);

/*
 * Look for dead row versions among the entries [next_entry, end) and, if a leaf
 * is open, those of the same keys in it.  Dead ones get a mark or a hint, in
 * memory only.
 */
extern void hyb_step_look(HybMergeStep *step, bool leaf, int end);

/*
 * For leaves that do not keep keys.  Returns the end of the fetched entries,
 * from next_entry on, that fall into this row of the opened leaf.
 */
extern int	hyb_step_entries_of_row(HybMergeStep *step, int row, int end);

/*
 * Read the keys of the row's items from the table, if it is time to.  Returns
 * false, with nothing changed, if it is not, or a key cannot be read.
 * hyb_step_add_group then gives these and the entries [next_entry, last) to the
 * builder in order.
 */
extern bool hyb_step_read_group(HybMergeStep *step, int row, int last);
extern void hyb_step_add_group(HybMergeStep *step, int last);

/* ---- which leaves to rewrite (balance.c) ---- */

/* A leaf below the level-1 node. */
typedef struct HybStepLeaf
{
	int			end;			/* one past the entries that go to this leaf
								 * or those before it */
	int			added;			/* entries that go to this leaf */
	Size		added_bytes;	/* of them, not compressed */
	bool		touched;		/* has to be rewritten */
	bool		rewrite;		/* is going to be rewritten */

	/* set by hyb_balance_look */
	bool		known;			/* the page was read */
	int			nitems;			/* its TIDs */
	int			live;			/* those without a tombstone */
	double		fill;			/* hyb_leaf_fill */
} HybStepLeaf;

typedef struct HybBalance
{
	const HybIndex *ix;
	const HybChildList *children;
	HybStepLeaf *leaves;		/* one for each child */
	int			reach;			/* neighbours that one leaf group may take */
	int			spare;			/* neighbours that the step may still take */
	bool		thorough;		/* all pages are read in any case */
} HybBalance;

extern void hyb_balance_init(HybBalance *balance, const HybIndex *ix,
							 const HybChildList *children, int reach,
							 int spare, bool thorough);

/* Read what the page of leaf i says, unless it is known. */
extern HybStepLeaf *hyb_balance_look(HybBalance *balance, int i);

/* What leaves [from, to) are going to hold, in leaves. */
extern double hyb_balance_content(HybBalance *balance, int from, int to);

/* How many leaves the content takes. */
extern int	hyb_balance_count(double content);

/*
 * Set `rewrite` of the leaves to rewrite with the touched leaves [from, to), or
 * with a single untouched one.  An untouched one is rewritten only if that saves
 * leaves.  Neighbours come from [lo, hi).
 */
extern void hyb_balance_run(HybBalance *balance, int from, int to, int lo,
							int hi);

/*
 * Among the first `to` leaves, join groups of leaves to rewrite with the leaves
 * between them if that saves leaves.
 */
extern void hyb_balance_bridge(HybBalance *balance, int to);

/* Is an untouched leaf so empty that a visit of all leaves tries to join it? */
extern bool hyb_balance_is_small(HybBalance *balance, int i);

/* ---- install (install.c) ---- */

/*
 * Write what the step has made, switch the metapage, and set the watermark.
 * Returns false, with the version unchanged, if pending[] has no room for the
 * step's blocks.
 */
extern bool hyb_step_install(HybMergeStep *step, const HybPos *watermark);

/*
 * The parts of that which moving leaves shares.  hyb_change_write writes the
 * new leaves and the nodes above them.  hyb_change_lock_meta locks the metapage
 * exclusively for the switch, and hands predicate locks of the old leaves over.
 * hyb_change_count enters the new tree into the metapage.
 */
extern void hyb_change_write(HybLeafChange *change, HybStepSpace *space,
							 bool filters);
extern Buffer hyb_change_lock_meta(HybIndex *ix, const HybLeafChange *change,
								   HybMetaPage **meta);
extern void hyb_change_count(const HybLeafChange *change, HybMetaPage *meta);

/* ---- moving leaves from the end of the file (move.c) ---- */

/*
 * Copy the next leaves in the end of the file, and the nodes and filter pages
 * on the way, to free blocks.  Returns false if nothing is left to move, the
 * metapage names another end, the free list is nearly used up, or pending[] is.
 */
extern bool hyb_move_leaves(HybIndex *ix, HybMove *move);

#endif							/* HYB_STEP_H */
