/*
 * catchup.h
 *		Trees of one index, and how far they have followed the log.
 */
#ifndef HYB_CATCHUP_H
#define HYB_CATCHUP_H

#include "dynamic/slot.h"
#include "dynamic/tree.h"

/* Indexes of HybStage arrays; HYB_FETCH_FROZEN/ACTIVE are 1 << these. */
#define HYB_FROZEN	0
#define HYB_ACTIVE	1

/*
 * Protected by the shared slot's lock (shared to read, exclusively to
 * change); a backend-local one by being that.
 *
 * applied[][] is, per generation and lane, the end of what the tree has:
 * block << 16 | offset, 0 for nothing.
 */
typedef struct HybStage
{
	HybTree		trees[2];
	uint64		applied[2][HYB_LANES];

	/*
	 * All lanes have been followed to their ends once.  A frozen generation
	 * is complete then; for an active one it means that the shared slot's
	 * appended[] is known to tell all that came since.
	 */
	bool		synced[2];

	/* Pages read in all lanes, to notice links that go round. */
	uint64		npages[2];

	/*
	 * Active generation whose trees do not fit shared memory.  Backends use
	 * trees of their own, until it is frozen, or one of them tries again with
	 * success: not before nofit_until, and if there is more memory to be had
	 * than nofit_bytes, which were not enough.
	 */
	uint64		nofit_generation;
	uint64		nofit_bytes;
	TimestampTz nofit_until;
	uint32		nofit_ms;		/* to wait after the next failure */

	/*
	 * For trees that VACUUM does not know of (in recovery, and backend-local
	 * ones): the metapage's vacuum counter when they were begun.
	 */
	uint64		vacuum_counter;

	uint64		rebuilds;
	pg_atomic_uint64 bloom_hits;
	pg_atomic_uint64 bloom_misses;
	pg_atomic_uint64 filter_counts[HYB_FILTER_OUTCOMES];
} HybStage;

/* The stage of a shared slot; its trees are in the shared arena. */
extern HybStage *hyb_stage_of(const HybSharedSlot *shared);

/* Free both trees.  Locked exclusively, arena attached. */
extern void hyb_stage_clear(HybStage *stage, HybArena *arena);

/* Memory of both trees. */
extern uint64 hyb_stage_bytes(const HybStage *stage);

/* A stage made ready for reading. */
typedef struct HybStageAccess
{
	HybSlot    *s;
	HybStage   *stage;
	HybArena   *arena;
	HybSharedSlot *shared;		/* locked; NULL: a backend-local stage */
} HybStageAccess;

typedef enum HybStageResult
{
	HYB_STAGE_READY,			/* caught up */
	HYB_STAGE_STALE,			/* the version is no longer current */
	HYB_STAGE_MEMORY			/* no memory; more chunks must be reserved;
								 * hyb_stage_open does not return this */
} HybStageResult;

/*
 * Are the wanted trees (HYB_FETCH_*) there, and up to date?  The stage is
 * locked, at least shared.
 */
extern bool hyb_stage_is_caught_up(HybIndex *ix, HybStageAccess *access,
								   const HybVersion *version, int want);

/*
 * Bring the wanted trees up to date, as far as the pocket reaches.  The stage
 * is locked exclusively.
 */
extern HybStageResult hyb_stage_catch_up(HybIndex *ix, HybStageAccess *access,
										 const HybVersion *version, int want);

/*
 * Catch the trees in `want` (HYB_FETCH_*) up with the log as it is now, and
 * lock the stage for reading.  READY: end with hyb_stage_close.  STALE:
 * nothing is held.
 */
extern HybStageResult hyb_stage_open(HybIndex *ix, const HybVersion *version,
									 int want, HybStageAccess *access);
extern void hyb_stage_close(HybStageAccess *access);

/*
 * An appender's own entry may go straight to the shared tree, if the tree had
 * everything before it (the lane's end was `from`) and nobody else is at it.
 * hyb_stage_follow locks the stage; it is called with the tail page still
 * locked exclusively, which makes this the reading of that page under the
 * stage's lock that VACUUM relies on (catchup.c).  hyb_stage_enter, called
 * after the page was unlocked, enters the entry and closes the stage.  If memory is lacking the tree stays
 * behind, and the next reader catches it up.  For all_mem indexes only:
 * nothing here calls a comparison function, so nothing fails.
 */
extern bool hyb_stage_follow(HybIndex *ix, uint64 generation, int lane,
							 uint64 from, HybStageAccess *access);
extern void hyb_stage_enter(HybIndex *ix, HybStageAccess *access, int lane,
							const HybEntry *entry);

/*
 * Bring the active tree along if there is one in shared memory that is being
 * read, and nobody else is at it.
 */
extern void hyb_stage_apply(HybIndex *ix, const HybVersion *version);

/* This backend's own trees of an index, freed. */
extern void hyb_stage_drop_private(HybSlot *s);

/*
 * Lock a slot; an error if the caller holds the lock, which only a comparison
 * function that reads its own index can bring about.
 */
extern void hyb_stage_lock(HybIndex *ix, HybSharedSlot *shared, LWLockMode mode);

#endif							/* HYB_CATCHUP_H */
