/*
 * stage.h
 *		The trees of one index, and how much of the log they have.
 */
#ifndef HYB_STAGE_H
#define HYB_STAGE_H

#include "datatype/timestamp.h"
#include "memtree/memtree.h"
#include "port/atomics.h"
#include "store/meta.h"

/*
 * Counters (hyb_cache_count).  The first ones are of upper layers, which know
 * what they count.  The last two count how often Bloom filters said maybe, and
 * no.
 */
#define HYB_UPPER_COUNTERS		8
#define HYB_BLOOM_HITS			HYB_UPPER_COUNTERS
#define HYB_BLOOM_MISSES		(HYB_UPPER_COUNTERS + 1)
#define HYB_STAGE_COUNTERS		(HYB_UPPER_COUNTERS + 2)

/* Where a lane ends, or what of it a tree has: 0 is nothing. */
#define hyb_lane_end(block, lower) ((uint64) (block) << 16 | (lower))
#define hyb_lane_end_block(end) ((BlockNumber) ((end) >> 16))
#define hyb_lane_end_offset(end) ((uint16) (end))

/* Indexes of HybStage arrays; HYB_FETCH_FROZEN/ACTIVE are 1 << these. */
#define HYB_FROZEN	0
#define HYB_ACTIVE	1

/*
 * Protected by the shared slot's lock (shared to read, exclusively to
 * change); a backend-local one by being that.
 *
 * applied[][] is, per generation and lane, the end of what the tree has:
 * a hyb_lane_end.
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
	 * How often readers have read the log in place since the active
	 * generation's tree was begun, because it was not finished.
	 */
	uint32		unfinished_reads;

	/*
	 * Active generation whose trees do not fit shared memory.  Backends use
	 * trees of their own, until it is frozen, or one of them tries again with
	 * success: not before nofit_until, and if there is more memory to be had
	 * than nofit_bytes, which were not enough.
	 */
	uint64		nofit_generation;
	uint64		nofit_bytes;
	TimestampTz nofit_until;

	/*
	 * A generation with a key that is not pure (key/pure.h).  Backends use
	 * trees of their own until it is merged.
	 */
	uint64		impure_generation;

	/* How often this active generation's tree has gone for want of memory. */
	uint32		losses;
	uint64		lost_generation;

	/*
	 * For trees that VACUUM does not know of (in recovery, and backend-local
	 * ones): the metapage's vacuum counter when they were begun.
	 */
	uint64		vacuum_counter;

	/*
	 * A generation whose tree a reader builds from the sorted log (bulk.c),
	 * and until when other readers wait for it.  Once that has passed, or is
	 * 0, nothing has come of it.
	 */
	uint64		bulk_generation;
	TimestampTz bulk_until;

	/* How often VACUUM has flagged entries of its trees, if there were any. */
	uint64		marks;

	uint64		rebuilds;
	pg_atomic_uint64 counters[HYB_STAGE_COUNTERS];
} HybStage;

#ifdef USE_ASSERT_CHECKING
/* A stage that is locked, at least shared. */
extern void hyb_stage_assert_valid(const HybStage *stage);
#else
#define hyb_stage_assert_valid(stage) ((void) (stage))
#endif

/*
 * For what follows a stage is locked exclusively, and the arena that its trees
 * are in attached.
 */

/* Give a tree's memory to the pocket; it begins anew with a generation. */
extern void hyb_stage_reset(HybStage *stage, HybArena *arena, int which,
							uint64 generation);

/* Both trees, which are of no generation then. */
extern void hyb_stage_clear(HybStage *stage, HybArena *arena);

/* Have the active tree be the frozen one, as far as it is. */
extern void hyb_stage_freeze(HybStage *stage, HybArena *arena);

/*
 * The active generation's tree goes for want of memory: count that.  And has
 * that happened so often that the index should rather be merged?  True once,
 * then the count begins anew.
 */
extern void hyb_stage_note_loss(HybStage *stage, uint64 generation);
extern bool hyb_stage_lost_often(HybStage *stage, uint64 generation);

/* The tree of a generation, or NULL.  Locked shared. */
extern HybTree *hyb_stage_tree(HybStage *stage, uint64 generation);

/* Memory of both trees. */
extern uint64 hyb_stage_bytes(const HybStage *stage);

#endif							/* HYB_STAGE_H */
