/*
 * policy.h
 *		When to merge, which run, and how far: a table of functions.
 *
 * A policy is a pure function of facts about an index.  It says when the active
 * generation is frozen, to be merged into the newest static level, how many of
 * these there are to be, and which key ranges move on from one level to the one
 * before it.  A merge that visits every leaf makes one level of all.
 *
 * Plain C without the server, for unit tests; facts.h has the facts of a real
 * index.  A new policy is a file of its own and a line in facts.c.
 */
#ifndef HYB_POLICY_H
#define HYB_POLICY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct HybMergeFacts
{
	/* the log */
	uint64_t	active_entries; /* where only the metapage was asked: on pages
								 * that are full or closed */
	uint64_t	active_pages;
	uint64_t	frozen_entries; /* 0: no generation is frozen */
	uint64_t	merging_pages;	/* of the frozen generation, or of the one
								 * that was merged and is being freed */
	uint64_t	merged_entries; /* since the index was built; those that moved
								 * from level to level again for each */
	bool		unfinished;		/* a generation is frozen or being freed, or
								 * entries are moved from level to level */

	/* the static stage, all levels together */
	uint64_t	static_tids;	/* tombstones included */
	uint64_t	tombstones;
	uint64_t	rewritten_tids; /* TIDs of the leaves that the last whole
								 * merge rewrote; UINT64_MAX: there was none */
	uint64_t	static_pages;	/* leaves and internal nodes */

	/* of it, the level that the merge goes to */
	uint64_t	level_tids;		/* tombstones included */
	uint64_t	leaves;

	uint64_t	nlevels;
	uint64_t	max_levels;		/* that the index may have */
	uint64_t	freeze_entries; /* of a frozen generation, on average */

	/* levels newer than the oldest one, together */
	uint64_t	newer_tids;
	uint64_t	newer_leaves;
	uint64_t	oldest_leaves;	/* of the oldest one */
	uint64_t	file_pages;		/* of the index, */
	uint64_t	free_pages;		/* and free ones of them */
	uint64_t	earned_pages;	/* written since there was one level, but for
								 * what was written because the index is quiet */

	bool		visit_asked;	/* the next merge is to visit every leaf */
	bool		learnable;		/* a merge may learn dictionaries */
	bool		single;			/* entries are appended one by one, not those
								 * of a statement together */
	uint64_t	buffer_pages;	/* of shared_buffers */

	/* memory */
	uint64_t	page_bytes;		/* of a page */
	uint64_t	memory_budget;	/* bytes that all trees in shared memory may
								 * have */
	uint64_t	memory_used;	/* bytes that they have */
	bool		largest_tree;	/* no index has more of it; known only where
								 * memory is short */
	bool		elastic;		/* trees can be compact: they take much the
								 * same for each entry */
	bool		does_not_fit;	/* backends have given up keeping the active
								 * generation's tree in shared memory */

	/* settings */
	uint64_t	ratio;			/* merge_ratio */
	uint64_t	floor;			/* merge_floor */
	uint64_t	step_leaves;	/* most leaves that a step may read */
} HybMergeFacts;

/* What an inserter that filled a page, VACUUM or a worker is told. */
typedef struct HybMergeNeed
{
	bool		finish;			/* go on with the generation frozen or freed */
	bool		freeze;			/* then merge the active one */
	uint64_t	help;			/* entries that the inserter has to merge now,
								 * worker or not; 0: none */
} HybMergeNeed;

/* How far a step goes: whichever bound it meets first ends it. */
typedef struct HybStepSize
{
	int			leaves;			/* to be read and rewritten, without
								 * neighbours */
	int			entries;		/* frozen ones to be fetched */
	uint64_t	bytes;			/* of entries to be merged */
} HybStepSize;

/*
 * A range of a level that may move to the one before it: below one level-1
 * node of that.  In pages.
 */
typedef struct HybUnitFacts
{
	double		content;		/* of the entries that would move */
	double		rent;			/* what merges rewrote of them since they came
								 * to the level */
	int			price;			/* leaves that they would go to */
	int			path;			/* what else a move would write, about */
} HybUnitFacts;

typedef struct HybMergePolicy
{
	const char *name;

	/* How long a worker that is to learn waits for the index to be its own. */
	int			learn_wait_ms;

	HybMergeNeed (*need) (const HybMergeFacts *facts);

	HybStepSize (*step) (const HybMergeFacts *facts);

	/*
	 * How many static levels is the index to have, now that a generation is
	 * frozen?
	 */
	int			(*levels) (const HybMergeFacts *facts);

	/* Is the unit to move now?  Monotone in content and rent. */
	bool		(*move) (const HybUnitFacts *unit);

	/*
	 * Is the next merge to visit every leaf, for the room that tombstones
	 * take?  VACUUM has met `visited` leaves, `dead` of them wholly dead.
	 */
	bool		(*compact) (const HybMergeFacts *facts, uint64_t visited,
							uint64_t dead);

	/*
	 * The same, to join leaves, `leaves` in all levels together, that are as
	 * full as this on average. Monotone: where it is false for 0, nobody
	 * needs to find out.
	 */
	bool		(*join) (const HybMergeFacts *facts, double fill);

	/*
	 * Is the index, if nobody inserts into it for some time, to have one
	 * level and no log?
	 */
	bool		(*quiet) (const HybMergeFacts *facts);
} HybMergePolicy;

/* Seven eighths of the budget are used: the largest trees should go. */
static inline bool
hyb_memory_is_short(const HybMergeFacts *facts)
{
	return facts->memory_used >= facts->memory_budget / 8 * 7;
}

extern const HybMergePolicy hyb_policy_ratio;

#endif							/* HYB_POLICY_H */
