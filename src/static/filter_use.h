/*
 * filter_use.h
 *		Whether to ask the filters of leaves, and what came of it.
 */
#ifndef HYB_FILTER_USE_H
#define HYB_FILTER_USE_H

#include "page/handle.h"

/* What came of asking a leaf's filter. */
typedef enum HybProbeOutcome
{
	HYB_PROBE_HIT,				/* "maybe", and there was something */
	HYB_PROBE_NEGATIVE,			/* "no": the leaf was not read */
	HYB_PROBE_FALSE_POSITIVE	/* "maybe", but there was nothing */
} HybProbeOutcome;

#define HYB_PROBE_OUTCOMES			3

/* When the library is loaded. */
extern void hyb_filter_use_init(void);

/*
 * Are filters worth asking?  Where nearly every question finds something, a
 * backend asks from time to time only: one time in 16, and more and more
 * seldom, down to one in 1024, until an answer is "no".
 */
extern bool hyb_filter_try(const HybIndex *ix);

/* Count an outcome.  The sums are HybDynamicStats.counters. */
extern void hyb_filter_note(const HybIndex *ix, HybProbeOutcome outcome);

#endif							/* HYB_FILTER_USE_H */
