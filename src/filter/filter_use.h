/*
 * filter_use.h
 *		Whether to ask the filters of leaves, and what came of it.
 */
#ifndef HYB_FILTER_USE_H
#define HYB_FILTER_USE_H

#include "store/handle.h"

/* Who asks: for each of them it is known by itself how often that is worth it. */
typedef enum HybFilterAsker
{
	HYB_ASK_POINT,				/* scans that look for a single key */
	HYB_ASK_RANGE,				/* others; of use only if filters are of
								 * ranges */
	HYB_ASK_UNIQUE				/* uniqueness checks */
} HybFilterAsker;

#define HYB_FILTER_ASKERS			3

/* What came of asking a leaf's filter. */
typedef enum HybProbeOutcome
{
	HYB_PROBE_HIT,				/* "maybe", and there was something */
	HYB_PROBE_NEGATIVE,			/* "no": the leaf was not read */
	HYB_PROBE_FALSE_POSITIVE	/* "maybe", but there was nothing */
} HybProbeOutcome;

#define HYB_PROBE_OUTCOMES			3

/*
 * What a uniqueness check met in the static stage.  Counted behind the
 * outcomes of questions, for the choice of filters (filter/filter_choice.h).
 */
typedef enum HybUniqueOutcome
{
	HYB_UNIQUE_ABOVE = HYB_PROBE_OUTCOMES,	/* nothing: the key lies above all
											 * of it, no leaf was sought */
	HYB_UNIQUE_ABSENT,			/* nothing */
	HYB_UNIQUE_PRESENT			/* entries of the key, dead or alive */
} HybUniqueOutcome;

#define HYB_UNIQUE_OUTCOMES			3

/* When the library is loaded. */
extern void hyb_filter_use_init(void);

/*
 * Of which levels are filters worth asking?  A bit for each.  Where nearly
 * every question finds something, a backend asks from time to time only: one
 * time in 16, and more and more seldom, down to one in 1024, until an answer
 * is "no".
 */
extern uint8 hyb_filter_try(const HybIndex *ix, HybFilterAsker asker);

#define hyb_filter_try_level(levels, level) (((levels) >> (level) & 1) != 0)

/* Count an outcome.  The sums are HybDynamicStats.counters. */
extern void hyb_filter_note(const HybIndex *ix, HybFilterAsker asker, int level,
							HybProbeOutcome outcome);

#endif							/* HYB_FILTER_USE_H */
