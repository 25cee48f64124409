/*
 * shared.h
 *		What backends share: the control structure.
 *
 * The control structure is made in main shared memory at start-up where the
 * library is preloaded, else in dynamic shared memory on first use.  If it
 * cannot be made, backends do without until it can (shared.c).
 *
 * It consists of parts.  Each belongs to one file, which alone knows what is
 * in it: the table of segments that hold the trees (shared_arena.c), the
 * directory of slots (directory.c), and more. am/handler.c lists them.
 */
#ifndef HYB_SHARED_H
#define HYB_SHARED_H

#include "base/compat.h"

#include "storage/dsm.h"

typedef struct HybSharedPart
{
	void	  **address;		/* set in each process that comes to use it;
								 * NULL until then, or for want of memory */
	Size		size;			/* bytes */
	Size		(*more) (void); /* further bytes, or NULL */

	/* Fill it, once, in place of zeroes; or NULL. */
	void		(*init) (void *memory);
	void		(*attached) (void); /* the address was set, or NULL */
} HybSharedPart;

/* The parts, in their order in memory; when the library is loaded. */
extern void hyb_shared_define(const HybSharedPart *const *parts, int nparts);

/*
 * Attach to the control structure, making it if there is none.  Returns
 * whether there is one; the answer holds until the end of the transaction.  Raises an
 * error if another build of the library is in charge of it.  Not in a critical
 * section.
 */
extern bool hyb_shared_init(void);

/*
 * Is another build in charge?  Then that is logged.  For background workers,
 * which the server starts again after an error.
 */
extern bool hyb_shared_is_barred(void);

/*
 * Was another build installed since the server started?  Then a process that
 * is to be of this one cannot be started.  The answer may be stale.
 */
extern bool hyb_shared_replaced(void);

/* For a library that is preloaded: bytes to request, and making it. */
extern Size hyb_shared_size(void);
extern void hyb_shared_startup(void);

/* ---- segments of dynamic shared memory ---- */

/* Bytes that the operating system has for segments of ours. */
extern uint64 hyb_segment_limit(void);

/* Are that many of these bytes left? */
extern bool hyb_segment_room(uint64 bytes);

/*
 * A segment of shared memory, or NULL where that cannot be had; not tried
 * again for a second after a failure.  As dsm_create leaves it, without a
 * resource owner.
 */
extern dsm_segment *hyb_create_segment(Size size);

/*
 * Map a segment that lasts as long as the server, for the life of this process.
 * Raises an error if that is not possible.
 */
extern dsm_segment *hyb_attach_segment(dsm_handle handle);

/* Free the memory of a segment that is not read any more. */
extern void hyb_segment_free_pages(dsm_segment *seg);

#endif							/* HYB_SHARED_H */
