/*
 * budget.c
 *		The dynamic stage against hybridindex.dynamic_memory; what it has of
 *		that; forgetting an index.
 */
#include "base/compat.h"

#include "shared/budget.h"
#include "shared/slot.h"
#include "utils/rel.h"

uint64
hyb_dynamic_budget(void)
{
	return hyb_arena_budget();
}

uint64
hyb_dynamic_used(void)
{
	return hyb_arena_used();
}

bool
hyb_dynamic_does_not_fit(HybIndex *ix, uint64 generation)
{
	HybSlot    *s = hyb_slot_get(ix);

	return hyb_slot_find(s) &&
		hyb_stage_of(s->shared)->nofit_generation == generation;
}

bool
hyb_dynamic_is_largest(HybIndex *ix)
{
	HybSlot    *s = hyb_slot_get(ix);

	return hyb_slot_find(s) && s->shared->tree_bytes > 0 &&
		s->shared->tree_bytes >= hyb_slots_largest();
}

void
hyb_memory_stats(HybMemoryStats *stats)
{
	memset(stats, 0, sizeof(*stats));
	stats->budget = hyb_arena_budget();
	if (!hyb_shared_init())
		return;
	stats->reserved = hyb_arena_reserved(&stats->segments);
	stats->used = hyb_arena_used();
	stats->trees = hyb_slots_total(&stats->slots, &stats->slot_bytes);
	stats->private_trees = hyb_arena_all_private();
	stats->control = hyb_shared_size();
}

void
hyb_dynamic_forget(Relation rel)
{
	HybSlotKey	key = {0};

	if (!hyb_shared_init() ||
		rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return;
	key.space = HYB_RELATION_SPACE(rel);
	key.db = HYB_RELATION_DB(rel);
	key.file = HYB_RELATION_FILENUMBER(rel);
	hyb_slots_forget(&key);
}
