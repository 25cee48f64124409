/*
 * stage.c
 *		The trees of one index, and how much of the log they have.
 */
#include "base/compat.h"

#include "memtree/stage.h"

/*
 * Losses after which rebuilding a tree has cost about as much as a merge of
 * its entries.
 */
#define HYB_STAGE_LOSSES	4

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
	}
	Assert(stage->lost_generation != 0 || stage->losses == 0);
}
#endif

void
hyb_stage_reset(HybStage *stage, HybArena *arena, int which, uint64 generation)
{
	Assert(which == HYB_FROZEN || which == HYB_ACTIVE);
	hyb_tree_free(&stage->trees[which], arena);
	stage->trees[which].generation = generation;
	memset(stage->applied[which], 0, sizeof(stage->applied[which]));
	stage->synced[which] = false;
	stage->npages[which] = 0;
	if (which == HYB_ACTIVE)
		stage->unfinished_reads = 0;
	Assert(stage->trees[which].nentries == 0 && stage->trees[which].nchunks == 0);
}

void
hyb_stage_clear(HybStage *stage, HybArena *arena)
{
	hyb_stage_reset(stage, arena, HYB_FROZEN, 0);
	hyb_stage_reset(stage, arena, HYB_ACTIVE, 0);
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
	stage->synced[HYB_FROZEN] = false;
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
