/*
 * scan_ahead.c
 *		Asking for heap pages before a scan gets to them.
 *
 * An index scan whose order is not that of the table reads one heap page after the
 * other, and waits for each.  A batch knows which pages come next, so the scan asks
 * for them (PrefetchBuffer) as many ahead as effective_io_concurrency says.
 *
 * How many items a scan will return is not known.  With the first item it asks for
 * nothing, so that look-ups and LIMIT 1 pay nothing.  Then it is as many pages ahead
 * as it has returned items.  So a LIMIT makes no more pages useless than were of use.
 *
 * A session tends to ask for as much again, for example a page of a list.  So from
 * the second item on a scan is ahead by what the shorter one of the last two scans
 * of the index returned (scans of one item do not count).  It goes no further until
 * it has returned as much.  A scan that begins anew, as the inner side of a nested
 * loop does, goes by what its previous turn returned, from the first item on.
 *
 * A page in shared buffers costs the look into the buffer table that the scan itself
 * does a moment later.  After CALM_PAGES such pages in a row the scan looks seldom,
 * one item at a time, and the backend's next scan of the index does the same.
 *
 * The scan does not ask again for pages that it has asked for or met lately.  An
 * index-only scan leaves out pages that are all-visible.
 */
#include "base/compat.h"

#include <limits.h>

#include "access/relscan.h"
#include "access/visibilitymap.h"
#include "log/log.h"
#include "scan/index_scan.h"
#include "scan/scan.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Pages in shared buffers, one after the other, before a scan looks seldom. */
#define CALM_PAGES		16

/* Items between two looks then, at first and at most. */
#define CALM_WAIT_MIN	8
#define CALM_WAIT_MAX	128

/* Items that are looked at in one go. */
#define LOOK_MAX		64

StaticAssertDecl(HYB_INDEX_ONLY_SCANS < HYB_UPPER_COUNTERS,
				 "pages asked for are counted with the dynamic stage's counters");

static inline bool
is_calm(const HybScanHabits *habits)
{
	return habits->calm >= CALM_PAGES;
}

void
hyb_ahead_init(HybScanAhead *ahead)
{
	ahead->max = -1;
	ahead->visibility = InvalidBuffer;
}

void
hyb_ahead_begin(HybScan *so, bool forward)
{
	HybScanAhead *ahead = &so->mode.ahead;
	const HybScanHabits *habits;

	ahead->forward = forward;
	ahead->skip_visible = so->scan->xs_want_itup && !so->mode.check_heap;
	hyb_ahead_new_batch(ahead);
	if (ahead->max == 0)
	{
		ahead->wait = INT_MAX;
		return;
	}
	habits = hyb_scan_habits(so->ix);
	if (is_calm(habits))
		ahead->wait = Max(habits->look_wait, 1);
	else if (ahead->start > 0)
		ahead->wait = 0;
	else
	{
		ahead->wait = 1;
		ahead->start = Min(habits->last, habits->second_last);
	}
}

void
hyb_ahead_end(HybScan *so)
{
	HybScanAhead *ahead = &so->mode.ahead;

	if (BufferIsValid(ahead->visibility))
		ReleaseBuffer(ahead->visibility);
	ahead->visibility = InvalidBuffer;
	ahead->start = 0;
	if (ahead->max > 0)
	{
		HybScanHabits *habits = hyb_scan_habits(so->ix);

		if (ahead->returned > 1)
		{
			habits->second_last = habits->last;
			habits->last = Min(ahead->returned, PG_UINT16_MAX);
		}
		if (is_calm(habits))
			habits->look_wait = Max(ahead->wait, 0);
		else if (ahead->asked > 0)
			ahead->start = ahead->returned > 1 ? ahead->returned : 0;
	}
	ahead->returned = 0;
}

/* The scan has come to this item. */
static void
come_to(HybScanAhead *ahead, int item)
{
	while (ahead->waiting > 0)
	{
		int			oldest = ahead->items[ahead->oldest];

		if (ahead->forward ? oldest > item : oldest < item)
			break;
		Assert(ahead->oldest >= 0 && ahead->oldest < HYB_AHEAD_MAX);
		ahead->oldest = (ahead->oldest + 1) % HYB_AHEAD_MAX;
		ahead->waiting--;
	}
}

/* Was the page met lately?  From now on it was. */
static inline bool
met_lately(HybScanAhead *ahead, BlockNumber block)
{
	BlockNumber *place = &ahead->recent[block & (HYB_AHEAD_RECENT - 1)];
	bool		met = *place == block;

	*place = block;
	return met;
}

/*
 * Ask for the page of an item, unless it was met.  Returns whether that was
 * worth it; *needless: it was not, the page is in shared buffers or not read.
 */
static bool
ask_for(HybScan *so, const HybScanItem *item, bool *needless)
{
	HybScanAhead *ahead = &so->mode.ahead;
	Relation	heap = so->scan->heapRelation;
	BlockNumber block = ItemPointerGetBlockNumber(&item->tid);
	PrefetchBufferResult result;

	*needless = false;
	if (met_lately(ahead, block))
		return false;
	*needless = true;
	if (ahead->skip_visible &&
		VM_ALL_VISIBLE(heap, block, &ahead->visibility))
		return false;
	result = PrefetchBuffer(heap, MAIN_FORKNUM, block);
	*needless = !result.initiated_io;
	return result.initiated_io;
}

static void
allocate_window(HybScan *so)
{
	HybScanAhead *ahead = &so->mode.ahead;

	ahead->items = MemoryContextAlloc(so->context,
									  HYB_AHEAD_MAX * sizeof(int));
	ahead->recent = MemoryContextAlloc(so->context,
									   HYB_AHEAD_RECENT * sizeof(BlockNumber));
	memset(ahead->recent, 0xFF, HYB_AHEAD_RECENT * sizeof(BlockNumber));
}

/* The item to look at next, or -1 if the batch has none. */
static int
next_item(HybScan *so)
{
	HybScanAhead *ahead = &so->mode.ahead;
	HybScanBatch *batch = so->batch;
	int			item = ahead->next;

	if (ahead->forward && item >= batch->nitems)
		(void) hyb_batch_merge(so, batch, item + 1);
	return item >= 0 && item < batch->nitems ? item : -1;
}

/*
 * Look on until the scan is `distance` pages ahead, but at no item that is further
 * away than `reach`.
 */
static void
look(HybScan *so, HybScanHabits *habits, int distance, int reach)
{
	HybScanAhead *ahead = &so->mode.ahead;
	int			n = is_calm(habits) ? 1 : LOOK_MAX;
	int			item;

	while (ahead->waiting < distance && n-- > 0 &&
		   abs(ahead->next - so->batch->current) <= reach &&
		   (item = next_item(so)) >= 0)
	{
		bool		needless;

		ahead->next += ahead->forward ? 1 : -1;
		if (ask_for(so, &so->batch->items[item], &needless))
		{
			ahead->items[(ahead->oldest + ahead->waiting) % HYB_AHEAD_MAX] = item;
			ahead->waiting++;
			Assert(ahead->waiting <= HYB_AHEAD_MAX && ahead->max <= HYB_AHEAD_MAX);
			ahead->asked++;
			hyb_log_count(so->ix, HYB_HEAP_PREFETCHES);
			habits->calm = 0;
			habits->look_interval = CALM_WAIT_MIN;
			n = LOOK_MAX;
		}
		else if (needless && !is_calm(habits))
			habits->calm++;
	}
}

void
hyb_ahead_look(HybScan *so, bool forward)
{
	HybScanAhead *ahead = &so->mode.ahead;
	int			current = so->batch->current;
	int			distance = 1;
	bool		expected;		/* is it known how many items are to come? */
	HybScanHabits *habits;

	Assert(current >= 0 && current < so->batch->nitems);
	if (ahead->max < 0)
		ahead->max = hyb_ahead_most(so);
	if (ahead->max == 0)
	{
		ahead->wait = INT_MAX;
		return;
	}
	if (ahead->items == NULL)
		allocate_window(so);
	if (ahead->forward != forward)
	{
		ahead->forward = forward;
		ahead->start = ahead->returned = 0;
		hyb_ahead_new_batch(ahead);
	}
	come_to(ahead, current);
	if (ahead->next == HYB_AHEAD_NOTHING ||
		(forward ? ahead->next <= current : ahead->next >= current))
	{
		(void) met_lately(ahead,
						  ItemPointerGetBlockNumber(&so->batch->items[current].tid));
		ahead->next = current + (forward ? 1 : -1);
	}

	habits = hyb_scan_habits(so->ix);
	expected = ahead->returned <= ahead->start;
	if (!is_calm(habits))
		distance = expected ? ahead->max : Min(ahead->returned, ahead->max);
	look(so, habits, distance,
		 expected ? ahead->start - ahead->returned : INT_MAX);
	ahead->wait = 0;
	if (is_calm(habits))
	{
		ahead->wait = Max(habits->look_interval, CALM_WAIT_MIN);
		habits->look_interval = Min(ahead->wait * 2, CALM_WAIT_MAX);
	}
}
