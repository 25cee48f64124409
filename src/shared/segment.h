/*
 * segment.h
 *		Segments of dynamic shared memory, as far as there is memory for them.
 */
#ifndef HYB_SEGMENT_H
#define HYB_SEGMENT_H

#include "base/compat.h"

#include "storage/dsm.h"

/* Bytes that the operating system has for segments of ours. */
extern uint64 hyb_segment_limit(void);

/* Are so many of them left? */
extern bool hyb_segment_room(uint64 bytes);

/*
 * A segment of shared memory, or NULL where that cannot be had; not tried
 * again for a second after a failure.  As dsm_create leaves it, without a
 * resource owner.
 */
extern dsm_segment *hyb_create_segment(Size size);

/* Free the memory of a segment that nobody will look at any more. */
extern void hyb_segment_free_pages(dsm_segment *seg);

#endif							/* HYB_SEGMENT_H */
