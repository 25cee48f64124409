/*
 * scan_dead.c
 *		Bitmap scans look for entries whose rows are gone.
 *
 * The executor tells an index scan which rows are dead to everybody, and the
 * scan leaves hints about them.  It tells a bitmap scan nothing, whose TIDs it
 * may look at in any order, or not at all.  But the versions that updates leave
 * behind pile up below keys that are read this way as below others, and every
 * scan of the key visits their heap pages.  nbtree takes them out when a page
 * of it is full (bottom-up deletion); there are no such moments here, where
 * entries are appended to a log.
 *
 * So a bitmap scan looks at the line pointers of the entries it has found,
 * from time to time: those that are LP_DEAD it leaves out, with a hint for who
 * comes later, and merges drop them (merge/dead.c).  The heap pages are those
 * that the executor visits next, so little is read that would not be read
 * anyway.  Pruning has made the line pointers dead, of nearly all versions of
 * rows that are updated often: the executor prunes the full pages that it
 * visits.
 */
#include "base/compat.h"

#include "executor/instrument.h"
#include "merge/dead.h"
#include "miscadmin.h"
#include "scan/scan.h"
#include "shared/slot.h"
#include "utils/rel.h"

/* Entries that are looked at together. */
#define DEAD_BATCH		128

/*
 * Where looking is worth it, a backend looks in each scan of the index; where it
 * is not, more and more seldom.
 */
#define MAX_INTERVAL	32

/* What a backend has found out about an index. */
typedef struct DeadHabit
{
	uint8		turn;			/* scans since the last one that looked */
	uint8		interval;		/* of them between two that look */
} DeadHabit;

static HybSlotPiece habit_piece = {.size = sizeof(DeadHabit)};

void
hyb_scan_dead_init(void)
{
	hyb_slot_add_piece(&habit_piece);
}

bool
hyb_scan_looks(const HybScan *so, HybScanLook *look)
{
	DeadHabit  *habit;

	/* hints are for scans that heed them, and there are none in recovery */
	if (!so->scan->ignore_killed_tuples)
		return false;
	habit = hyb_slot_piece(so->ix, &habit_piece);
	if (habit->turn < habit->interval)
	{
		habit->turn++;
		return false;
	}
	habit->turn = 0;
	memset(look, 0, sizeof(HybScanLook));
	return true;
}

/* Where a scan begins to look in its first batch: not always at the same place. */
static int
first_look(int nitems)
{
	static uint32 turn = 0;

	if (nitems <= DEAD_BATCH)
		return 0;
	turn = (turn + DEAD_BATCH) % nitems;
	return turn;
}

bool
hyb_scan_find_dead(HybScan *so, HybScanLook *look)
{
	HybScanBatch *batch = so->batch;
	HybDeadCheck check;
	int64		read = pgBufferUsage.shared_blks_read;
	bool		cached = true;
	int			i = look->pass;

	Assert(batch->nkilled == 0);
	if (look->looked == 0 && look->pass == 0)
		i = first_look(batch->nitems);
	hyb_dead_begin(&check, so->ix->rel);
	while (i < batch->nitems && cached)
	{
		int			n = Min(DEAD_BATCH, batch->nitems - i);
		int			before = batch->nkilled;

		for (int end = i + n; i < end && cached; i++)
		{
			if (hyb_dead_tid(&check, &batch->items[i].tid))
				hyb_batch_kill(batch, i);
			look->looked++;
			/* a scan of several indexes may need few of these pages */
			cached = pgBufferUsage.shared_blks_read == read;
		}
		look->skip = hyb_dead_skip(batch->nkilled - before, n, DEAD_BATCH, look->skip);
		i += look->skip;
	}
	hyb_dead_end(&check);
	Assert(look->skip >= 0 && batch->nkilled <= batch->nitems);
	look->pass = Max(i - batch->nitems, 0);
	look->dead += batch->nkilled;
	return cached;
}

void
hyb_scan_looked(const HybScan *so, const HybScanLook *look)
{
	DeadHabit  *habit = hyb_slot_piece(so->ix, &habit_piece);

	Assert(look->dead <= look->looked);
	if (look->looked == 0)
		return;
	if (look->dead * HYB_DEAD_WORTH_IT >= look->looked)
		habit->interval /= 4;
	else
		habit->interval = Min(Max(habit->interval, 1) * 2, MAX_INTERVAL);
}
