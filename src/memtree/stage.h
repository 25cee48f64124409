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
 * Counters (hyb_log_count).  The first ones are of upper layers, which know
 * what they count.  The last two count how often Bloom filters said maybe, and
 * no.
 */
#define HYB_UPPER_COUNTERS		10
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
 * What a tree can be used for.  The table of stage.c says what changes that; it is a
 * picture in docs/memory.md.  Where a backend reads is not part of it: one that wants
 * little, or keys that are not pure, does without a tree that serves the rest.
 */
typedef enum HybTreeState
{
	HYB_TREE_EMPTY,				/* nothing was entered */
	HYB_TREE_UNFINISHED,		/* may lack any entries of the log; readers
								 * that want few read the log instead */
	HYB_TREE_SYNCED,			/* all lanes were followed to their ends once.
								 * A frozen generation is complete then; of an
								 * active one the shared slot's appended[] is
								 * known to tell all that came since */
	HYB_TREE_NO_ROOM,			/* does not fit shared memory: backends have
								 * trees of their own, until one of them tries
								 * again with success */
	HYB_TREE_IMPURE				/* has a key that is not pure (key/pure.h):
								 * backends have trees of their own */
} HybTreeState;

#define HYB_TREE_STATES		(HYB_TREE_IMPURE + 1)

typedef enum HybTreeEvent
{
	HYB_TREE_BEGINS,			/* it is to be of another generation */
	HYB_TREE_FREED,				/* its memory was given back */
	HYB_TREE_ENTER,				/* a page's entries are entered */
	HYB_TREE_FOLLOWED,			/* all lanes were, to their ends */
	HYB_TREE_SLOT_LOST,			/* that told a backend's own tree of appends */
	HYB_TREE_FREEZES,			/* the generation does */
	HYB_TREE_LACKS_ROOM,		/* no more memory was to be had */
	HYB_TREE_HAS_ROOM,			/* what a backend tried again did fit */
	HYB_TREE_MEETS_IMPURE		/* an entry whose key is not pure */
} HybTreeEvent;

#define HYB_TREE_EVENTS		(HYB_TREE_MEETS_IMPURE + 1)

/*
 * Protected by the shared slot's lock (shared to read, exclusively to
 * change), but for counters, which are atomic, and unfinished_reads.  A
 * backend's own stage has no lock.
 *
 * applied[][] is, per generation and lane, the end of what the tree has:
 * a hyb_lane_end.
 */
typedef struct HybStage
{
	HybTree		trees[2];
	uint64		applied[2][HYB_LANES];

	/* read in stage.c only */
	HybTreeState state[2];
	TimestampTz until;			/* NO_ROOM: the active tree is not tried again */
	uint64		lacking;		/* the same: bytes that were not enough */

	/* Pages read in all lanes, to notice links that go round. */
	uint64		npages[2];

	/*
	 * How often readers have read the log in place since the active
	 * generation's tree was begun, because it was not finished.  Counted with
	 * no lock: a hint.
	 */
	uint32		unfinished_reads;

	/* How often this active generation's tree has gone for want of memory. */
	uint32		losses;
	uint64		lost_generation;

	/*
	 * For trees that VACUUM does not know of (in recovery, and backend-local
	 * ones): the metapage's vacuum counter when they were begun.
	 */
	uint64		vacuum_counter;

	uint64		rebuilds;
	pg_atomic_uint64 counters[HYB_STAGE_COUNTERS];
} HybStage;

/* What follows; false if that event does not happen to a tree in that state. */
extern bool hyb_tree_state_next(HybTreeState state, HybTreeEvent event,
								HybTreeState *next);

#ifdef USE_ASSERT_CHECKING
/* A stage that is locked, at least shared. */
extern void hyb_stage_assert_valid(const HybStage *stage);
#else
#define hyb_stage_assert_valid(stage) ((void) (stage))
#endif

/*
 * For what follows a stage is locked exclusively, or a backend's own, and the arena
 * that its trees are in attached.
 */

/* An event that can happen to it. */
extern void hyb_tree_happens(HybStage *stage, int which, HybTreeEvent event);

/* Has it all of its log but what the slot tells?  Locked shared; else a hint. */
extern bool hyb_tree_is_synced(const HybStage *stage, int which);

/* Is there such a tree of this generation?  A hint if the stage is not locked. */
extern bool hyb_stage_lacks_room(const HybStage *stage, uint64 generation);
extern bool hyb_stage_is_impure(const HybStage *stage, uint64 generation);

/*
 * `size` bytes were not enough for a tree.  May this backend try again, where `room`
 * bytes are to be had?  If so no other backend will for some time.
 */
extern void hyb_stage_note_no_room(HybStage *stage, uint64 generation,
								   uint64 size);
extern bool hyb_stage_claim_retry(HybStage *stage, uint64 room);

/* Give a tree's memory to the pocket; it begins anew with a generation. */
extern void hyb_stage_reset(HybStage *stage, HybArena *arena, int which,
							uint64 generation);

/*
 * Both trees.  They are of no generation then, unless the state of one is to last
 * until there is another generation.
 */
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
