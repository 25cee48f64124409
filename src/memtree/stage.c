/*
 * stage.c
 *		The trees of one index, and how much of the log they have.
 */
#include "base/compat.h"

#include "memtree/stage.h"
#include "utils/timestamp.h"

/*
 * Losses after which rebuilding a tree has cost about as much as a merge of
 * its entries.
 */
#define HYB_STAGE_LOSSES	4

/* Trees that do not fit shared memory are tried again after this time. */
#define NO_ROOM_US			INT64CONST(1000000)

/* ---- states ---- */

/*
 * The states of a stage are read and changed under the lock of its slot, those of a
 * backend's own stage by that backend.
 *
 * These are not states: places in the log (applied[]), which grow while the state
 * stays; counters; what a caller wants (HybStageAccess.brief).
 */

/* A state that follows; what is not named does not happen. */
#define TO(state) (HYB_TREE_##state + 1)

static const uint8 next_states[HYB_TREE_STATES][HYB_TREE_EVENTS] = {
	[HYB_TREE_EMPTY] = {
		[HYB_TREE_BEGINS] = TO(EMPTY),
		[HYB_TREE_FREED] = TO(EMPTY),
		[HYB_TREE_ENTER] = TO(UNFINISHED),
		[HYB_TREE_FOLLOWED] = TO(SYNCED),	/* lanes without a page */
		[HYB_TREE_SLOT_LOST] = TO(EMPTY),
		[HYB_TREE_FREEZES] = TO(EMPTY),
		[HYB_TREE_LACKS_ROOM] = TO(NO_ROOM)
	},
	[HYB_TREE_UNFINISHED] = {
		[HYB_TREE_BEGINS] = TO(EMPTY),
		[HYB_TREE_FREED] = TO(EMPTY),
		[HYB_TREE_ENTER] = TO(UNFINISHED),
		[HYB_TREE_FOLLOWED] = TO(SYNCED),
		[HYB_TREE_SLOT_LOST] = TO(UNFINISHED),
		[HYB_TREE_FREEZES] = TO(UNFINISHED),
		[HYB_TREE_LACKS_ROOM] = TO(NO_ROOM),
		[HYB_TREE_MEETS_IMPURE] = TO(IMPURE)
	},
	[HYB_TREE_SYNCED] = {
		[HYB_TREE_BEGINS] = TO(EMPTY),
		[HYB_TREE_FREED] = TO(EMPTY),
		[HYB_TREE_ENTER] = TO(SYNCED),
		[HYB_TREE_FOLLOWED] = TO(SYNCED),
		[HYB_TREE_SLOT_LOST] = TO(UNFINISHED),
		[HYB_TREE_FREEZES] = TO(UNFINISHED),	/* until it is followed once
												 * more */
		[HYB_TREE_LACKS_ROOM] = TO(NO_ROOM),
		[HYB_TREE_MEETS_IMPURE] = TO(IMPURE)
	},
	[HYB_TREE_NO_ROOM] = {
		[HYB_TREE_BEGINS] = TO(EMPTY),
		[HYB_TREE_FREED] = TO(NO_ROOM),
		[HYB_TREE_ENTER] = TO(NO_ROOM), /* others do not try meanwhile */
		[HYB_TREE_FOLLOWED] = TO(SYNCED),
		[HYB_TREE_FREEZES] = TO(UNFINISHED),	/* it may have entries by now */
		[HYB_TREE_LACKS_ROOM] = TO(NO_ROOM),
		[HYB_TREE_HAS_ROOM] = TO(UNFINISHED),
		[HYB_TREE_MEETS_IMPURE] = TO(IMPURE)
	},
	[HYB_TREE_IMPURE] = {
		[HYB_TREE_BEGINS] = TO(EMPTY),
		[HYB_TREE_FREED] = TO(IMPURE),
		[HYB_TREE_FREEZES] = TO(IMPURE),
		[HYB_TREE_LACKS_ROOM] = TO(IMPURE)	/* another reader gave up later */
	}
};

bool
hyb_tree_state_next(HybTreeState state, HybTreeEvent event, HybTreeState *next)
{
	uint8		to;

	Assert(state < HYB_TREE_STATES && event < HYB_TREE_EVENTS);
	to = next_states[state][event];
	if (to == 0)
		return false;
	*next = (HybTreeState) (to - 1);
	return true;
}

void
hyb_tree_happens(HybStage *stage, int which, HybTreeEvent event)
{
	bool		allowed PG_USED_FOR_ASSERTS_ONLY;

	Assert(which == HYB_FROZEN || which == HYB_ACTIVE);
	allowed = hyb_tree_state_next(stage->state[which], event, &stage->state[which]);
	Assert(allowed);
}

bool
hyb_tree_is_synced(const HybStage *stage, int which)
{
	return stage->state[which] == HYB_TREE_SYNCED;
}

static bool
is_in_state(const HybStage *stage, int which, uint64 generation, HybTreeState state)
{
	return generation != 0 && stage->trees[which].generation == generation &&
		stage->state[which] == state;
}

bool
hyb_stage_lacks_room(const HybStage *stage, uint64 generation)
{
	return is_in_state(stage, HYB_ACTIVE, generation, HYB_TREE_NO_ROOM);
}

/* Readers turn the generations later than the index does. */
bool
hyb_stage_is_impure(const HybStage *stage, uint64 generation)
{
	return is_in_state(stage, HYB_ACTIVE, generation, HYB_TREE_IMPURE) ||
		is_in_state(stage, HYB_FROZEN, generation, HYB_TREE_IMPURE);
}

void
hyb_stage_note_no_room(HybStage *stage, uint64 generation, uint64 size)
{
	HybTree    *active = &stage->trees[HYB_ACTIVE];

	Assert(active->nchunks == 0);
	if (active->generation == 0)
		active->generation = generation;	/* evicted since */
	if (active->generation != generation)
		return;
	hyb_tree_happens(stage, HYB_ACTIVE, HYB_TREE_LACKS_ROOM);
	stage->until = GetCurrentTimestamp() + NO_ROOM_US;
	stage->lacking = size;
}

bool
hyb_stage_claim_retry(HybStage *stage, uint64 room)
{
	TimestampTz now = GetCurrentTimestamp();

	Assert(stage->state[HYB_ACTIVE] == HYB_TREE_NO_ROOM);
	if (now < stage->until ||
		room <= stage->lacking + stage->lacking / 8)
		return false;
	stage->until = now + NO_ROOM_US;
	return true;
}

/* ---- trees ---- */

#ifdef USE_ASSERT_CHECKING
void
hyb_stage_assert_valid(const HybStage *stage)
{
	const HybTree *frozen = &stage->trees[HYB_FROZEN];
	const HybTree *active = &stage->trees[HYB_ACTIVE];

	hyb_tree_assert_valid(frozen);
	hyb_tree_assert_valid(active);
	/* the frozen generation is the older one */
	Assert(frozen->generation == 0 || active->generation == 0 ||
		   frozen->generation < active->generation);
	for (int which = HYB_FROZEN; which <= HYB_ACTIVE; which++)
	{
		bool		nothing = true;

		for (int lane = 0; lane < HYB_LANES; lane++)
		{
			uint64		applied = stage->applied[which][lane];

			Assert(applied == 0 || hyb_lane_end_block(applied) != HYB_METAPAGE_BLKNO);
			Assert(hyb_lane_end_offset(applied) < BLCKSZ);
			nothing &= applied == 0;
		}
		/* a tree has entries only of lanes that were read */
		Assert(!nothing || stage->trees[which].nentries == 0);
		Assert(nothing || stage->state[which] != HYB_TREE_EMPTY);
		Assert(stage->trees[which].generation != 0 ||
			   stage->state[which] == HYB_TREE_EMPTY);
	}
	Assert(stage->lost_generation != 0 || stage->losses == 0);
}
#endif

/* A tree has nothing any more, and is of a generation. */
static void
empty_tree(HybStage *stage, HybArena *arena, int which, uint64 generation,
		   HybTreeEvent event)
{
	Assert(which == HYB_FROZEN || which == HYB_ACTIVE);
	hyb_tree_free(&stage->trees[which], arena);
	stage->trees[which].generation = generation;
	memset(stage->applied[which], 0, sizeof(stage->applied[which]));
	stage->npages[which] = 0;
	if (which == HYB_ACTIVE)
		stage->unfinished_reads = 0;
	hyb_tree_happens(stage, which, event);
	Assert(stage->trees[which].nentries == 0 && stage->trees[which].nchunks == 0);
}

void
hyb_stage_reset(HybStage *stage, HybArena *arena, int which, uint64 generation)
{
	empty_tree(stage, arena, which, generation, HYB_TREE_BEGINS);
}

void
hyb_stage_clear(HybStage *stage, HybArena *arena)
{
	for (int which = HYB_FROZEN; which <= HYB_ACTIVE; which++)
	{
		uint64		generation = stage->trees[which].generation;

		empty_tree(stage, arena, which, generation, HYB_TREE_FREED);
		if (stage->state[which] == HYB_TREE_EMPTY)
			stage->trees[which].generation = 0;
	}
}

/* Its entries stay where they are; what is missing follows. */
void
hyb_stage_freeze(HybStage *stage, HybArena *arena)
{
	HybTree    *active = &stage->trees[HYB_ACTIVE];

	hyb_stage_assert_valid(stage);
	Assert(active->generation != 0);
	hyb_tree_free(&stage->trees[HYB_FROZEN], arena);
	stage->trees[HYB_FROZEN] = *active;
	memcpy(stage->applied[HYB_FROZEN], stage->applied[HYB_ACTIVE],
		   sizeof(stage->applied[HYB_FROZEN]));
	stage->state[HYB_FROZEN] = stage->state[HYB_ACTIVE];
	hyb_tree_happens(stage, HYB_FROZEN, HYB_TREE_FREEZES);
	stage->npages[HYB_FROZEN] = stage->npages[HYB_ACTIVE];
	memset(active, 0, sizeof(*active));
}

void
hyb_stage_note_loss(HybStage *stage, uint64 generation)
{
	Assert(generation != 0);
	if (generation != stage->lost_generation)
		stage->losses = 0;
	stage->lost_generation = generation;
	stage->losses++;
}

bool
hyb_stage_lost_often(HybStage *stage, uint64 generation)
{
	if (stage->losses < HYB_STAGE_LOSSES || generation != stage->lost_generation)
		return false;
	stage->losses = 0;
	return true;
}

HybTree *
hyb_stage_tree(HybStage *stage, uint64 generation)
{
	for (int which = HYB_FROZEN; which <= HYB_ACTIVE; which++)
		if (generation != 0 && stage->trees[which].generation == generation)
			return &stage->trees[which];
	return NULL;
}

uint64
hyb_stage_bytes(const HybStage *stage)
{
	return (uint64) (stage->trees[HYB_FROZEN].nchunks +
					 stage->trees[HYB_ACTIVE].nchunks) * HYB_CHUNK_SIZE;
}
