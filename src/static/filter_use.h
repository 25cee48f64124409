/*
 * filter_use.h
 *		Whether to ask the filters of leaves, and what came of it.
 */
#ifndef HYB_FILTER_USE_H
#define HYB_FILTER_USE_H

#include "page/handle.h"

/* What came of asking a leaf's filter. */
typedef enum HybFilterOutcome
{
	HYB_FILTER_HIT,				/* "maybe", and there was something */
	HYB_FILTER_NEGATIVE,		/* "no": the leaf was not read */
	HYB_FILTER_FALSE_POSITIVE	/* "maybe", but there was nothing */
} HybFilterOutcome;

#define HYB_FILTER_OUTCOMES		3

/* When the library is loaded. */
extern void hyb_filter_use_init(void);

/*
 * Are filters worth asking?  Where nearly every question finds something, a
 * backend asks one time in sixteen only.
 */
extern bool hyb_filter_try(const HybIndex *ix);

/* Count an outcome.  The sums are HybDynamicStats.counters. */
extern void hyb_filter_note(const HybIndex *ix, HybFilterOutcome outcome);

#endif							/* HYB_FILTER_USE_H */
