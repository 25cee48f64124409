/*
 * budget.c
 *		The dynamic stage against hybridindex.dynamic_memory; what it has of
 *		that; forgetting an index.
 */
#include "compat.h"

#include "dynamic/catchup.h"
#include "page/meta.h"
#include "utils/rel.h"

uint64
hyb_dynamic_budget(void)
{
	return hyb_arena_budget();
}

/* A log of so many pages that there is no memory for is worth a merge. */
#define HYB_PRESSURE_PAGES	16

/* Have backends given up keeping this generation's tree in shared memory? */
static bool
does_not_fit(HybSlot *s, uint64 generation)
{
	return hyb_slot_find(s) &&
		hyb_stage_of(s->shared)->nofit_generation == generation;
}

/*
 * The soft bound: three quarters of the budget are used, and this index uses
 * most; or its log alone would fill half of it; or it got no memory at all.
 */
bool
hyb_dynamic_pressure(HybIndex *ix)
{
	HybSlot    *s = hyb_slot_get(ix);
	uint64		budget = hyb_arena_budget();
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	uint64		npages = meta->active.npages;
	uint64		generation = meta->active.number;

	UnlockReleaseBuffer(metabuf);
	if (npages * BLCKSZ > budget / 2)
		return true;
	if (npages >= HYB_PRESSURE_PAGES && does_not_fit(s, generation))
		return true;
	if (hyb_arena_used() < budget / 4 * 3 || !hyb_slot_find(s))
		return false;
	return s->shared->tree_bytes > 0 &&
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
	stats->private_trees = pg_atomic_read_u64(&hyb_control->private_bytes);
	stats->control = hyb_shared_size();
}

void
hyb_dynamic_forget(Relation rel)
{
	HybSlotKey	key = {0};

	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP ||
		!hyb_shared_init())
		return;
	key.space = HYB_RELATION_SPACE(rel);
	key.db = HYB_RELATION_DB(rel);
	key.file = HYB_RELATION_FILENUMBER(rel);
	hyb_slots_forget(&key);
}
