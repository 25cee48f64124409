/*
 * dead.h
 *		Entries whose rows are gone for everybody.
 */
#ifndef HYB_DEAD_H
#define HYB_DEAD_H

#include "storage/buf.h"
#include "storage/bufpage.h"
#include "storage/itemptr.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"

typedef struct HybDeadCheck
{
	Relation	heap;			/* NULL: cannot be asked now */
	LOCKMODE	lock;			/* that was taken on it */
	BlockNumber nblocks;		/* of the heap, InvalidBlockNumber: not known */
	Buffer		buf;			/* heap page looked at last, pinned */
} HybDeadCheck;

/*
 * Begin to ask about entries of an index.  The table is locked (AccessShare)
 * only if that takes no waiting, so it does not matter what locks are held; if it
 * does, and the table was not locked before, no entry is found dead.  Ended by
 * hyb_dead_end, or by transaction abort.
 */
extern void hyb_dead_begin(HybDeadCheck *check, Relation index);

/* The same where the table is open, and locked. */
extern void hyb_dead_begin_open(HybDeadCheck *check, Relation heap);

/*
 * Is the line pointer dead (LP_DEAD), or the row one whose insertion is known
 * to have been aborted?  Then an entry for it can be dropped at any time, with
 * no word to standbys: pruning, which made the first, has logged the conflict
 * with snapshots that could see the row, the second never was to be seen, and
 * VACUUM does not make the line pointer free for another row before it has
 * been over the index.  No content lock is held on entry or exit.
 */
extern bool hyb_dead_tid(HybDeadCheck *check, const ItemPointerData *tid);

/*
 * A page of the table: check->buf is locked (BUFFER_LOCK_SHARE), for the caller
 * to unlock.  NULL, nothing locked, if there is none to be asked.  No LWLock is
 * held on entry.
 */
extern Page hyb_dead_lock_page(HybDeadCheck *check, BlockNumber block);

/* Is the table, which can be asked, larger than shared_buffers? */
extern bool hyb_dead_table_is_large(HybDeadCheck *check);

/*
 * If it is, pages are worth being asked for ahead: how many at a time
 * (maintenance_io_concurrency); otherwise 0.
 */
extern int	hyb_dead_ahead(HybDeadCheck *check);

/* Ask for a page of the table; the check can look at the table. */
extern void hyb_dead_prefetch(HybDeadCheck *check, BlockNumber block);

extern void hyb_dead_end(HybDeadCheck *check);

/*
 * Looking for dead entries, so many together, is worth it if one in
 * HYB_DEAD_WORTH_IT is.  If it was not, so many entries are passed over then:
 * more each time, so of many entries without dead ones few are looked at.
 */
#define HYB_DEAD_WORTH_IT	8

static inline int
hyb_dead_skip(int dead, int looked, int together, int skip)
{
	return dead * HYB_DEAD_WORTH_IT >= looked ? 0 : Max(skip * 2, together);
}

#endif							/* HYB_DEAD_H */
