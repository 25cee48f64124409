/*
 * shared.h
 *		What backends share: the control structure.
 *
 * The control structure lies in main shared memory.  It is made at start-up
 * where the library is preloaded, else on first use, in the slack that every
 * server keeps.  If there is not enough of that left then there is none, for
 * as long as the server runs (shared.c), and backends do without.
 *
 * It consists of parts, each of which belongs to one file, which alone knows
 * what is in it: the table of memory segments that hold the trees
 * (shared_arena.c), the directory of slots, one for each index in use
 * (directory.c), and so on; setup.c lists them.
 */
#ifndef HYB_SHARED_H
#define HYB_SHARED_H

#include "base/compat.h"

typedef struct HybSharedPart
{
	void	  **address;		/* set in each process that comes to use it;
								 * NULL until then, or for want of memory */
	Size		size;			/* bytes */
	Size		(*more) (void); /* and so many more, or NULL */

	/* Fill it, once, in place of zeroes; or NULL. */
	void		(*init) (void *memory);
	void		(*attached) (void); /* the address was set, or NULL */
} HybSharedPart;

/* The parts, in their order in memory; when the library is loaded. */
extern void hyb_shared_define(const HybSharedPart *const *parts, int nparts);

/*
 * Attach to the control structure, making it if there is none.  Returns
 * whether there is one.  Raises an error if another build of the library is in
 * charge of it.  Not in a critical section.
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

#endif							/* HYB_SHARED_H */
