/*
 * policy.h
 *		When to merge, what, and how far.
 *
 * The merge policy is a set of pure functions of facts about an index.  They
 * say when the active generation is frozen, how many static levels the index
 * has, and which key ranges move from one level to the next older one.
 *
 * Plain C without the server, so that test/unit/test_policy.c can call it.
 * facts.c collects the facts of a real index.
 */
#ifndef HYB_POLICY_H
#define HYB_POLICY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct HybMergeFacts
{
	/* the log */
	uint64_t	active_entries; /* if only the metapage was read: those on
								 * full and closed pages */
	uint64_t	active_pages;
	uint64_t	frozen_entries; /* 0: no generation is frozen */
	uint64_t	merging_pages;	/* of the frozen or retiring generation */
	uint64_t	merged_entries; /* since the index was built, with a count for
								 * each level that an entry moved to */
	bool		unfinished;		/* a generation is frozen or being freed, or a
								 * pass over levels is under way */

	/* all static levels together */
	uint64_t	static_tids;	/* with tombstones */
	uint64_t	tombstones;
	bool		chains;			/* of hybrid_hot: some entries are stale */
	uint64_t	settled_tids;	/* chains: when stale ones were looked for
								 * last */
	uint64_t	rewritten_tids; /* TIDs of leaves that the last whole merge
								 * rewrote; UINT64_MAX: there was none */
	uint64_t	static_pages;	/* leaves and internal nodes */

	/* the level that the merge goes to */
	uint64_t	level_tids;		/* with tombstones */
	uint64_t	leaves;

	/* levels */
	uint64_t	nlevels;
	uint64_t	max_levels;		/* that the index may have */
	uint64_t	freeze_entries; /* average of frozen generations */
	uint64_t	newer_tids;		/* of all levels but the oldest */
	uint64_t	newer_leaves;	/* of the same */
	uint64_t	oldest_leaves;	/* of the oldest level */

	/* the file */
	uint64_t	file_pages;
	uint64_t	free_pages;
	uint64_t	earned_pages;	/* written since the index had one level,
								 * without those of quiet merges */

	bool		visit_asked;	/* the next merge visits every leaf */
	bool		learnable;		/* a merge may learn dictionaries */
	bool		together;		/* the last append was of gathered entries */

	/* memory */
	uint64_t	page_bytes;		/* of one page */
	uint64_t	memory_budget;	/* bytes for all trees in shared memory */
	uint64_t	memory_used;	/* bytes that they take */
	bool		largest_tree;	/* this index uses most; known only where
								 * memory is short */
	bool		elastic;		/* trees can be compact: bytes of an entry
								 * vary little */
	bool		does_not_fit;	/* backends have given up keeping the active
								 * tree in shared memory */

	/* settings */
	uint64_t	ratio;			/* merge_ratio */
	uint64_t	floor;			/* merge_floor */
	uint64_t	step_leaves;	/* most leaves that a step may read */
} HybMergeFacts;

typedef struct HybMergeNeed
{
	bool		finish;			/* go on with the frozen or retiring
								 * generation */
	bool		freeze;			/* then merge the active one */
	uint64_t	help;			/* entries that the inserter merges now, even
								 * if there is a worker */
} HybMergeNeed;

/* A step ends at the first bound that it reaches. */
typedef struct HybStepSize
{
	int			leaves;			/* rewritten, without neighbours */
	int			entries;		/* fetched */
	uint64_t	bytes;			/* of merged entries */
} HybStepSize;

/*
 * A unit: the entries of a level below one level-1 node of the next older
 * level.  All fields are in pages.
 */
typedef struct HybUnitFacts
{
	double		content;		/* of the entries that would move */
	double		rent;			/* what merges rewrote of them in this level */
	int			price;			/* leaves that they would go to */
	int			path;			/* other pages that a move writes, about */
} HybUnitFacts;

/* What a caller that filled a page of the log, VACUUM or a worker has to do. */
extern HybMergeNeed hyb_policy_need(const HybMergeFacts *facts);

extern HybStepSize hyb_policy_step(const HybMergeFacts *facts);

/* How many static levels the index is to have.  Asked when a generation freezes. */
extern int	hyb_policy_levels(const HybMergeFacts *facts);

/* Does the unit move now?  Monotone in content and rent. */
extern bool hyb_policy_move(const HybUnitFacts *unit);

/*
 * Does the next merge visit every leaf, to free the room that tombstones take?
 * VACUUM has seen `visited` leaves.  `dead` of them hold only tombstones.
 */
extern bool hyb_policy_compact(const HybMergeFacts *facts, uint64_t visited,
							   uint64_t dead);

/*
 * Does the next merge visit every leaf to join them, if they are this full on
 * average?  facts->leaves counts all levels here.  Monotone: if the answer is
 * false for 0, the caller need not measure.
 */
extern bool hyb_policy_join(const HybMergeFacts *facts, double fill);

/* Does the merge of the frozen generation visit every leaf, to leave out stale entries? */
extern bool hyb_policy_stale(const HybMergeFacts *facts);

/* Does the next merge, for that reason?  VACUUM has counted the table's rows. */
extern bool hyb_policy_settle(const HybMergeFacts *facts, double rows);

/* Is an index without inserts merged into one level, and its log emptied? */
extern bool hyb_policy_quiet(const HybMergeFacts *facts);

/* At 7/8 of the budget the indexes with the largest trees are merged. */
static inline bool
hyb_memory_is_short(const HybMergeFacts *facts)
{
	return facts->memory_used >= facts->memory_budget / 8 * 7;
}

#endif							/* HYB_POLICY_H */
