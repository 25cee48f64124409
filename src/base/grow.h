/*
 * grow.h
 *		Growing arrays.
 */
#ifndef HYB_GROW_H
#define HYB_GROW_H

#include "utils/memutils.h"

/*
 * An array, NULL at first, with room for n elements of this size; it is
 * allocated in `context`, and what it holds is kept.
 */
static inline void *
hyb_grow(MemoryContext context, void *array, Size n, Size size)
{
	Assert(n > 0 && size > 0 && n <= MaxAllocHugeSize / size);
	if (array == NULL)
		return MemoryContextAllocHuge(context, n * size);
	return repalloc_huge(array, n * size);
}

#endif							/* HYB_GROW_H */
