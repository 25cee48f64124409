/*
 * budget.c
 *		The dynamic stage against hybridindex.dynamic_memory; forgetting an
 *		index.
 */
#include "compat.h"

#include "dynamic/catchup.h"
#include "page/config.h"
#include "page/meta.h"
#include "utils/rel.h"

uint64
hyb_dynamic_total_bytes(void)
{
	hyb_shared_init();
	return pg_atomic_read_u64(&hyb_control->total_bytes);
}

/*
 * The soft bound: three quarters of the budget are used, and this index uses
 * most; or its log alone would fill half of it.
 */
bool
hyb_dynamic_pressure(HybIndex *ix)
{
	HybSlot    *s = hyb_slot_get(ix);
	uint64		budget = (uint64) hyb_dynamic_memory_kb * 1024;
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	uint64		log_bytes = meta->active.npages * BLCKSZ;

	UnlockReleaseBuffer(metabuf);
	if (log_bytes > budget / 2)
		return true;
	if (hyb_dynamic_total_bytes() < budget / 4 * 3 || !hyb_slot_find(s))
		return false;
	return s->shared->tree_bytes > 0 &&
		s->shared->tree_bytes >= hyb_slots_largest();
}

void
hyb_dynamic_forget(Relation rel)
{
	HybIndex	ix = {.rel = rel};
	HybSlotKey	key;

	if (rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return;
	hyb_shared_init();
	hyb_slot_key(&ix, &key);
	hyb_slots_forget(&key);
}
