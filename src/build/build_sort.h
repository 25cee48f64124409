/*
 * build_sort.h
 *		Sorting the entries of an index build as byte strings.
 */
#ifndef HYB_BUILD_SORT_H
#define HYB_BUILD_SORT_H

#include "storage/sharedfileset.h"

typedef struct HybSort HybSort;

/*
 * In CurrentMemoryContext; takes up to `kilobytes` of memory, then files.  A
 * participant of a parallel build names the files that all share, and its
 * number among them.
 */
extern HybSort *hyb_sort_create(int kilobytes, SharedFileSet *files,
								int participant);

/*
 * Any number of these, each at most PG_UINT16_MAX bytes; copied.  None is a
 * prefix of another.
 */
extern void hyb_sort_put(HybSort *sort, const uint8 *bytes, uint32 len);

extern void hyb_sort_perform(HybSort *sort);

/*
 * In place of hyb_sort_perform: write all to the shared files (build/build_runs.h),
 * at most so many runs.  Nothing is to be had of the sort itself then.
 */
extern void hyb_sort_share(HybSort *sort, int most_runs);

/* The next one in memcmp order; holds until the next call. */
extern bool hyb_sort_get(HybSort *sort, const uint8 **bytes, uint32 *len);

extern void hyb_sort_end(HybSort *sort);

#endif							/* HYB_BUILD_SORT_H */
