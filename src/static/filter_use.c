/*
 * filter_use.c
 *		Whether to ask the filters of leaves, and what came of it.
 */
#include "compat.h"

#include "dynamic/slot.h"
#include "static/filter_use.h"

StaticAssertDecl(HYB_PROBE_OUTCOMES <= HYB_STAGE_COUNTERS,
				 "outcomes are counted with the dynamic stage's counters");

/* A filter pays if one question in so many is answered "no". */
#define FILTER_PAYS		8

/* What is remembered of earlier answers, either way. */
#define FILTER_MEMORY	64

/*
 * Where filters do not pay, a question is asked from time to time only: more
 * and more seldom, until one is answered "no".
 */
#define FILTER_MIN_INTERVAL	16
#define FILTER_MAX_INTERVAL	1024

/* What a backend has found out about an index's filters. */
typedef struct Habit
{
	int			debt;			/* above 0: filters are of little use lately */
	int			turn;			/* questions not asked since the last one */
	int			interval;		/* of them between two that are asked */
} Habit;

static HybSlotPiece habit_piece = {.size = sizeof(Habit)};

void
hyb_filter_use_init(void)
{
	hyb_slot_add_piece(&habit_piece);
}

bool
hyb_filter_try(const HybIndex *ix)
{
	Habit	   *habit = hyb_slot_piece(ix, &habit_piece);

	if (habit->debt < FILTER_MEMORY / 2)
		return true;
	if (++habit->turn < habit->interval)
		return false;
	habit->turn = 0;
	habit->interval = Min(Max(habit->interval, FILTER_MIN_INTERVAL / 2) * 2,
						  FILTER_MAX_INTERVAL);
	return true;
}

void
hyb_filter_note(const HybIndex *ix, HybProbeOutcome outcome)
{
	Habit	   *habit = hyb_slot_piece(ix, &habit_piece);

	hyb_slot_count(ix, outcome);
	if (outcome == HYB_PROBE_NEGATIVE)
	{
		habit->debt = Max(habit->debt - FILTER_PAYS, -FILTER_MEMORY);
		habit->interval = FILTER_MIN_INTERVAL;
	}
	else
		habit->debt = Min(habit->debt + 1, FILTER_MEMORY);
}
