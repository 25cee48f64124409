/*
 * build_sort.h
 *		Sorting the entries of an index build as byte strings.
 */
#ifndef HYB_BUILD_SORT_H
#define HYB_BUILD_SORT_H

typedef struct HybSort HybSort;

/* In CurrentMemoryContext; takes up to `kilobytes` of memory, then files. */
extern HybSort *hyb_sort_create(int kilobytes);

/* Any number of these, each at most PG_UINT16_MAX bytes; copied. */
extern void hyb_sort_put(HybSort *sort, const uint8 *bytes, uint32 len);

extern void hyb_sort_perform(HybSort *sort);

/* The next one in memcmp order, shorter ones first; holds until the next call. */
extern bool hyb_sort_get(HybSort *sort, const uint8 **bytes, uint32 *len);

extern void hyb_sort_end(HybSort *sort);

#endif							/* HYB_BUILD_SORT_H */
