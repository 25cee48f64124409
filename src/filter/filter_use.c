/*
 * filter_use.c
 *		Whether to ask the filters of leaves, and what came of it.
 */
#include "base/compat.h"

#include "filter/filter_use.h"
#include "shared/index_cache.h"
#include "store/settings.h"

StaticAssertDecl(HYB_PROBE_OUTCOMES + HYB_UNIQUE_OUTCOMES <= HYB_STAGE_COUNTERS,
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

/* What a backend has found out about an index's filters, */
typedef struct FilterHabit
{
	int16		debt;			/* above 0: filters are of little use lately */
	int16		turn;			/* questions not asked since the last one */
	int16		interval;		/* of them between two that are asked */
} FilterHabit;

/* of each level, and for each asker. */
typedef struct Habits
{
	uint8		seldom[HYB_FILTER_ASKERS];	/* levels that are asked from time
											 * to time only */
	FilterHabit levels[HYB_FILTER_ASKERS][HYB_MAX_LEVELS];
} Habits;

StaticAssertDecl(HYB_MAX_LEVELS <= 8, "a byte has a bit for each level");

#define ALL_LEVELS	((uint8) ((1 << HYB_MAX_LEVELS) - 1))

static HybCachePiece habit_piece = {.size = sizeof(Habits)};

void
hyb_filter_use_init(void)
{
	hyb_cache_add_piece(&habit_piece);
}

uint8
hyb_filter_try(const HybIndex *ix, HybFilterAsker asker)
{
	Habits	   *habits = hyb_cache_piece(ix, &habit_piece);
	uint8		levels = ALL_LEVELS & ~habits->seldom[asker];

	if (asker == HYB_ASK_RANGE && !hyb_filter_has_ranges(hyb_filter_option(ix->rel)))
		return 0;
	if (likely(levels == ALL_LEVELS))
		return levels;
	for (int i = 0; i < HYB_MAX_LEVELS; i++)
	{
		FilterHabit *habit = &habits->levels[asker][i];

		if ((levels >> i & 1) != 0 || ++habit->turn < habit->interval)
			continue;
		habit->turn = 0;
		habit->interval = Min(Max(habit->interval, FILTER_MIN_INTERVAL / 2) * 2,
							  FILTER_MAX_INTERVAL);
		levels |= 1 << i;
	}
	return levels;
}

void
hyb_filter_note(const HybIndex *ix, HybFilterAsker asker, int level,
				HybProbeOutcome outcome)
{
	Habits	   *habits = hyb_cache_piece(ix, &habit_piece);
	FilterHabit *habit = &habits->levels[asker][level];

	Assert(asker < HYB_FILTER_ASKERS && level >= 0 && level < HYB_MAX_LEVELS);
	Assert(outcome < HYB_PROBE_OUTCOMES);
	Assert(abs(habit->debt) <= FILTER_MEMORY && habit->interval <= FILTER_MAX_INTERVAL);
	hyb_cache_count(ix, outcome);
	if (outcome == HYB_PROBE_NEGATIVE)
	{
		habit->debt = Max(habit->debt - FILTER_PAYS, -FILTER_MEMORY);
		habit->interval = FILTER_MIN_INTERVAL;
	}
	else
		habit->debt = Min(habit->debt + 1, FILTER_MEMORY);
	if (habit->debt < FILTER_MEMORY / 2)
		habits->seldom[asker] &= ~(1 << level);
	else
		habits->seldom[asker] |= 1 << level;
}
