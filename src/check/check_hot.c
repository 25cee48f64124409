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
#include "base/compat.h"

#include "access/tableam.h"
#include "check/check.h"
#include "hot/hot.h"
#include "miscadmin.h"
#include "run/run.h"
#include "storage/bufmgr.h"
#include "tree/descend.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Places of the table that are looked at under one hold of the merge lock. */
#define UNIT_PLACES		4096

/* Live entries of a key in a level that are looked at. */
#define HOT_FETCH_LIMIT		1000

/* Does this statement see the row that an entry leads to? */
static bool
is_visible(HybCheck *check, const ItemPointerData *entry)
{
	ItemPointerData tid = *entry;

	return table_index_fetch_tuple_check(check->heap, &tid,
										 GetActiveSnapshot(), NULL);
}

/* An entry of the key of a copy leads to a row, which is not the copy's. */
static void
fail_other(HybCheck *check, BlockNumber block, const HybHotKey *key,
		   const ItemPointerData *tid, const ItemPointerData *other)
{
	if (!hyb_hot_has(check->ix, key, tid))
		return;
	hyb_check_fail(check, block,
				   "A hot copy names heap TID (%u,%u) alone for a key that (%u,%u) has in a static level.",
				   ItemPointerGetBlockNumberNoCheck(tid),
				   ItemPointerGetOffsetNumberNoCheck(tid),
				   ItemPointerGetBlockNumberNoCheck(other),
				   ItemPointerGetOffsetNumberNoCheck(other));
}

/* The same of the oldest level where that does not keep keys. */
static void
check_truncated(HybCheck *check, const HybHotKey *key,
				const ItemPointerData *tid, const HybPos *pos)
{
	HybIndex   *ix = check->ix;
	PGAlignedBlock copy;
	HybSought	sought = {.pos = pos};
	HybDescent	descent = {0};
	int			row;
	int			end_row;
	int			end;

	if (check->version->levels[0].height == 0 ||
		!hyb_static_descend(ix, check->version, &sought, &descent))
		return;
	memcpy(copy.data, BufferGetPage(descent.buf), BLCKSZ);
	UnlockReleaseBuffer(descent.buf);
	hyb_leaf_open(&check->leaf, ix->desc, copy.data, ix->rel, descent.block);
	(void) hyb_leaf_search_equal(&check->leaf, pos, &row, &end_row);
	end = hyb_leaf_row_start(&check->leaf, end_row);
	for (int i = hyb_leaf_row_start(&check->leaf, row); i < end; i++)
	{
		ItemPointerData other;

		hyb_leaf_tids(&check->leaf, i, 1, &other);
		if (!hyb_leaf_is_tombstone(&check->leaf, i) &&
			!ItemPointerEquals(&other, unconstify(ItemPointerData *, tid)) &&
			hyb_check_row_key(check, other, GetActiveSnapshot(), &check->entry) &&
			check->entry.len == key->len &&
			memcmp(check->entry.data, key->bytes, key->len) == 0)
			fail_other(check, descent.block, key, tid, &other);
	}
}

static void
check_copy(HybCheck *check, const HybHotKey *key, const ItemPointerData *tid)
{
	HybPos		low = {.key = key->bytes,.len = key->len,.tie = HYB_BEFORE};
	HybPos		high;
	HybFetch	fetch = {.lo = &low,.hi = &high,.limit = HOT_FETCH_LIMIT};
	HybDynBatch batch = {0};

	low.ncols = check->ix->desc->nkeys;
	high = low;
	high.tie = HYB_AFTER;
	if (check->ix->desc->truncated)
		check_truncated(check, key, tid, &low);
	for (int level = check->ix->desc->truncated; level < check->version->nlevels; level++)
	{
		/* while the lock is held the version is the current one */
		if (!hyb_run_fetch(check->ix, check->version, level, &fetch, &batch))
			break;
		for (int i = 0; i < batch.nitems; i++)
		{
			const HybDynItem *item = &batch.items[i];

			if (!ItemPointerEquals(unconstify(ItemPointerData *, &item->tid),
								   unconstify(ItemPointerData *, tid)))
			{
				ItemPointerData other = item->tid;

				if (is_visible(check, &other))
					fail_other(check, item->ref.block, key, tid, &other);
			}
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
