/*
 * check_hot.c
 *		hybrid_index_check: hot copies against the static levels.
 *
 * Under the merge lock levels do not change, but for marks.  What a copy does
 * not name, of its key, was dead to everybody when it was published, so no
 * snapshot sees it: above all not this one's.  (That it still is dead to
 * everybody cannot be asked: a standby that begins to tell of its snapshots
 * moves the horizon back.)  What a copy does name may be gone from the levels: a
 * merge leaves out what is dead.
 */
#include "compat.h"

#include "access/tableam.h"
#include "am/check/check.h"
#include "dynamic/hot.h"
#include "miscadmin.h"
#include "run/run.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Places of the table that are looked at under one hold of the merge lock. */
#define UNIT_PLACES		4096

/* Live entries of a key in a level that are looked at. */
#define FETCH_LIMIT		1000

/* Does this statement see the row that an entry leads to? */
static bool
is_visible(HybCheck *check, const ItemPointerData *entry)
{
	ItemPointerData tid = *entry;

	return table_index_fetch_tuple_check(check->heap, &tid,
										 GetActiveSnapshot(), NULL);
}

/* An entry of the key of a copy, which is not the one that the copy names. */
static void
check_other(HybCheck *check, const HybHotKey *key, const ItemPointerData *tid,
			const HybDynItem *item)
{
	ItemPointerData other = item->tid;

	if (!is_visible(check, &other) || !hyb_hot_has(check->ix, key, tid))
		return;
	hyb_check_fail(check, item->ref.block,
				   "A hot copy names heap TID (%u,%u) alone for a key that (%u,%u) has in a static level.",
				   ItemPointerGetBlockNumberNoCheck(tid),
				   ItemPointerGetOffsetNumberNoCheck(tid),
				   ItemPointerGetBlockNumberNoCheck(&other),
				   ItemPointerGetOffsetNumberNoCheck(&other));
}

static void
check_copy(HybCheck *check, const HybHotKey *key, const ItemPointerData *tid)
{
	HybPos		low = {.key = key->bytes,.len = key->len,.tie = HYB_BEFORE};
	HybPos		high;
	HybFetch	fetch = {.lo = &low,.hi = &high,.limit = FETCH_LIMIT};
	HybDynBatch batch = {0};

	low.ncols = check->ix->desc->nkeys;
	high = low;
	high.tie = HYB_AFTER;
	for (int level = 0; level < check->version->nlevels; level++)
	{
		/* while the lock is held the version is the current one */
		if (!hyb_run_fetch(check->ix, check->version, level, &fetch, &batch))
			break;
		for (int i = 0; i < batch.nitems; i++)
		{
			const HybDynItem *item = &batch.items[i];

			if (!ItemPointerEquals(unconstify(ItemPointerData *, &item->tid),
								   unconstify(ItemPointerData *, tid)))
				check_other(check, key, tid, item);
		}
	}
	hyb_dyn_batch_free(&batch);
}

void
hyb_check_hot(HybCheck *check)
{
	uint8		bytes[HYB_HOT_MAX_KEY];
	uint32		len;
	ItemPointerData tid;
	uint64		places = RecoveryInProgress() ? 0 : hyb_hot_places(check->ix);

	for (uint64 place = 0; place < places;)
	{
		uint64		end = Min(places, place + UNIT_PLACES);

		CHECK_FOR_INTERRUPTS();
		hyb_check_lock(check);
		while (hyb_hot_next(check->ix, &place, end, bytes, &len, &tid))
		{
			HybHotKey	key = hyb_hot_key(bytes, len);

			check_copy(check, &key, &tid);
		}
		hyb_check_unlock(check);
		place = end;
	}
}
