/*
 * build_range.h
 *		Ranges of a parallel build: where they begin, and what was written.
 */
#ifndef HYB_BUILD_RANGE_H
#define HYB_BUILD_RANGE_H

#include "build/build_runs.h"
#include "store/inner.h"

/* Where ranges begin, but for the first one. */
typedef struct HybRanges
{
	int			n;
	HybBuf	   *bounds;			/* of range i: bounds[i - 1] */
} HybRanges;

/*
 * Cut what the runs hold into at most so many ranges of about the same size,
 * none of them empty.  All who look at the same runs find the same.  The rows
 * of one key stay together if `whole_keys`.
 */
extern void hyb_ranges_cut(HybRanges *ranges, const HybRuns *runs,
						   const HybKeyDesc *desc, bool whole_keys, int most);

/* As a position between entries; points into the bound. */
extern HybPos hyb_range_low(const HybRanges *ranges, int range,
							const HybKeyDesc *desc, bool whole_keys);

/* The nodes of a range, handed from the process that wrote them to the leader. */
extern void hyb_range_put(SharedFileSet *files, int range,
						  const HybChildList *nodes);
extern void hyb_range_get(SharedFileSet *files, int range, HybChildList *nodes);

#endif							/* HYB_BUILD_RANGE_H */
