/*
 * scan_ahead.c
 *		Asking for heap pages before a scan gets to them.
 *
 * An index scan whose order is not that of the table reads one heap page after
 * the other, and waits for each.  A batch knows which pages come next, so they
 * are asked for (PrefetchBuffer) as many ahead as effective_io_concurrency
 * says.  Nothing is asked for with the first item, so that look-ups and LIMIT 1
 * pay nothing, and then as many pages ahead as items were returned, so that what
 * a LIMIT makes useless is no more than what was of use where nothing else is
 * known.
 *
 * Nobody says how much a scan will return, but a session tends to ask for as
 * much again, a page of a list say.  So from the second item on a scan is ahead
 * by all that the shorter one of the last two scans of the index has returned
 * (those of one item do not count), and no further until it has returned as
 * much.  A scan that begins anew, as the inner side of a nested loop does, is so
 * at once, by what the one before it came to.
 *
 * A page that is in shared buffers costs the look into the buffer table that
 * the scan itself does a moment later.  Where all of a number of pages were
 * there, the scan looks from time to time only, one item at a time, and what
 * is known of that is kept for the backend's next scan of the index.
 *
 * Pages that the scan has asked for or met lately are not asked for again, nor,
 * by index-only scans, those that are all-visible.
 */
#include "base/compat.h"

#include <limits.h>

#include "access/heapam.h"
#include "access/relscan.h"
#include "access/visibilitymap.h"
#include "scan/scan.h"
#include "shared/slot.h"
#include "storage/bufmgr.h"
#include "store/settings.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/spccache.h"

/* So many pages in shared buffers one after the other, and it looks seldom: */
#define CALM_PAGES		16

/* after so many items, at first and at most. */
#define CALM_WAIT_MIN	8
#define CALM_WAIT_MAX	128

/* Items that are looked at in one go. */
#define LOOK_MAX		64

/* What a backend has found out about the table under an index. */
typedef struct AheadHabit
{
	uint16		calm;			/* pages that were in shared buffers lately,
								 * one after the other, up to CALM_PAGES */
	uint16		interval;		/* items between two looks, if calm */
	uint16		wait;			/* of them yet to come */
	uint16		last;			/* items that the last scan of more than one
								 * returned; 0: there was none */
	uint16		second_last;	/* and the one before it */
} AheadHabit;

static HybSlotPiece habit_piece = {.size = sizeof(AheadHabit)};

StaticAssertDecl(HYB_HEAP_PREFETCHES < HYB_STAGE_COUNTERS,
				 "pages asked for are counted with the dynamic stage's counters");

void
hyb_scan_ahead_init(void)
{
	hyb_slot_add_piece(&habit_piece);
}

static inline bool
is_calm(const AheadHabit *habit)
{
	return habit->calm >= CALM_PAGES;
}

/* Pages of a relation to be ahead at most. */
static int
most_ahead(Relation rel)
{
#ifdef USE_PREFETCH
	if (hyb_prefetch)
		return get_tablespace_io_concurrency(rel->rd_rel->reltablespace);
#endif
	return 0;
}

/* The same of the table, if its TIDs are those of pages. */
int
hyb_ahead_most(const HybScan *so)
{
	Relation	heap = so->scan->heapRelation;

	if (heap == NULL || heap->rd_tableam != GetHeapamTableAmRoutine())
		return 0;
	return Min(most_ahead(heap), HYB_AHEAD_MAX);
}

/* ---- leaves ---- */

HybLeavesAhead *
hyb_ahead_leaves(HybScan *so, int level, const HybPos *far)
{
	HybScanAhead *ahead = &so->ahead;
	HybLeavesAhead *leaves;

	if (ahead->leaves_max < 0)
		ahead->leaves_max = Min(most_ahead(so->ix->rel), HYB_LEAVES_AHEAD);
	if (ahead->leaves_max == 0)
		return NULL;
	if (ahead->leaves == NULL)
		ahead->leaves = MemoryContextAlloc(so->context,
										   HYB_MAX_LEVELS * sizeof(HybLeavesAhead));
	leaves = &ahead->leaves[level];
	if ((ahead->leaves_begun & (1 << level)) == 0)
	{
		ahead->leaves_begun |= 1 << level;
		leaves->last = InvalidBlockNumber;
		leaves->distance = 0;
	}
	Assert(level >= 0 && level < HYB_MAX_LEVELS && ahead->leaves_max <= HYB_LEAVES_AHEAD);
	leaves->max = ahead->leaves_max;
	leaves->bound = far;
	return leaves;
}

/* ---- pages of the table ---- */

void
hyb_ahead_init(HybScan *so)
{
	so->ahead.max = so->ahead.leaves_max = -1;
	so->ahead.visibility = InvalidBuffer;
}

void
hyb_ahead_begin(HybScan *so, bool forward)
{
	HybScanAhead *ahead = &so->ahead;
	const AheadHabit *habit;

	ahead->leaves_begun = 0;
	ahead->forward = forward;
	ahead->skip_visible = so->scan->xs_want_itup && !so->check_heap;
	hyb_ahead_new_batch(so);
	if (ahead->max == 0)
	{
		ahead->wait = INT_MAX;
		return;
	}
	habit = hyb_slot_piece(so->ix, &habit_piece);
	if (is_calm(habit))
		ahead->wait = Max(habit->wait, 1);
	else if (ahead->start > 0)
		ahead->wait = 0;
	else
	{
		ahead->wait = 1;
		ahead->start = Min(habit->last, habit->second_last);
	}
}

void
hyb_ahead_end(HybScan *so)
{
	HybScanAhead *ahead = &so->ahead;

	if (BufferIsValid(ahead->visibility))
		ReleaseBuffer(ahead->visibility);
	ahead->visibility = InvalidBuffer;
	ahead->start = 0;
	if (ahead->max > 0)
	{
		AheadHabit *habit = hyb_slot_piece(so->ix, &habit_piece);

		if (ahead->returned > 1)
		{
			habit->second_last = habit->last;
			habit->last = Min(ahead->returned, PG_UINT16_MAX);
		}
		if (is_calm(habit))
			habit->wait = Max(ahead->wait, 0);
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
	HybScanAhead *ahead = &so->ahead;
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
	HybScanAhead *ahead = &so->ahead;

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
	HybScanAhead *ahead = &so->ahead;
	HybScanBatch *batch = so->batch;
	int			item = ahead->next;

	if (ahead->forward && item >= batch->nitems)
		(void) hyb_batch_merge(so, batch, item + 1);
	return item >= 0 && item < batch->nitems ? item : -1;
}

/*
 * Look on until the scan is so many pages ahead, but at no item that is further
 * away than `reach`.
 */
static void
look(HybScan *so, AheadHabit *habit, int distance, int reach)
{
	HybScanAhead *ahead = &so->ahead;
	int			n = is_calm(habit) ? 1 : LOOK_MAX;
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
			hyb_slot_count(so->ix, HYB_HEAP_PREFETCHES);
			habit->calm = 0;
			habit->interval = CALM_WAIT_MIN;
			n = LOOK_MAX;
		}
		else if (needless && !is_calm(habit))
			habit->calm++;
	}
}

void
hyb_ahead_look(HybScan *so, bool forward)
{
	HybScanAhead *ahead = &so->ahead;
	int			current = so->batch->current;
	int			distance = 1;
	bool		expected;		/* is it known how many items are to come? */
	AheadHabit *habit;

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
		hyb_ahead_new_batch(so);
	}
	come_to(ahead, current);
	if (ahead->next == HYB_AHEAD_NOTHING ||
		(forward ? ahead->next <= current : ahead->next >= current))
	{
		(void) met_lately(ahead,
						  ItemPointerGetBlockNumber(&so->batch->items[current].tid));
		ahead->next = current + (forward ? 1 : -1);
	}

	habit = hyb_slot_piece(so->ix, &habit_piece);
	expected = ahead->returned <= ahead->start;
	if (!is_calm(habit))
		distance = expected ? ahead->max : Min(ahead->returned, ahead->max);
	look(so, habit, distance,
		 expected ? ahead->start - ahead->returned : INT_MAX);
	ahead->wait = 0;
	if (is_calm(habit))
	{
		ahead->wait = Max(habit->interval, CALM_WAIT_MIN);
		habit->interval = Min(ahead->wait * 2, CALM_WAIT_MAX);
	}
}
