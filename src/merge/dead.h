/*
 * dead.h
 *		What the table says about an entry: is its row dead, what is its key.
 *
 * Merges and scans ask, with any heavyweight locks held.  No function holds a
 * content lock on entry or exit.
 */
#ifndef HYB_DEAD_H
#define HYB_DEAD_H

#include "storage/buf.h"
#include "storage/bufpage.h"
#include "storage/lockdefs.h"
#include "store/handle.h"

/*
 * The dead line pointers (LP_DEAD) of pages that a merge has visited.  Merges of
 * one generation ask about the same pages again and again.
 *
 * A dead line pointer stays dead while VACUUM has not been over the index, and an
 * entry whose line pointer was dead once never leads to a row again.  But VACUUM
 * makes room for another row with the same TID, which gets an entry of its own.
 * That entry is in the active log, as long as the generation that was active at
 * the first visit still is.  So what is remembered holds for entries of older
 * generations, and only until the next freeze.
 */
typedef struct HybDeadMemory HybDeadMemory;

typedef struct HybDeadCheck
{
	Relation	heap;			/* NULL: the table cannot be read now */
	LOCKMODE	lock;			/* taken on it */
	BlockNumber nblocks;		/* of the table; InvalidBlockNumber: not known */
	Buffer		buf;			/* pinned: the table's page read last */
	HybDeadMemory *memory;		/* NULL: remembers nothing */
} HybDeadCheck;

/*
 * Begin to ask about entries of an index.  The table is locked (AccessShare)
 * without waiting, so any locks may be held.  If the lock is not available, and
 * this process does not have the table locked already, no entry is found dead.
 * hyb_dead_end or the transaction's abort ends it.
 */
extern void hyb_dead_begin(HybDeadCheck *check, Relation index);

/* The same if the table is open and locked. */
extern void hyb_dead_begin_open(HybDeadCheck *check, Relation heap);

/*
 * Is the line pointer dead (LP_DEAD), or was the row's insertion aborted?  Then
 * the entry can be dropped at any time, without a conflict record for standbys:
 * - pruning made the line pointer dead, and has logged the conflict;
 * - no snapshot could ever see the aborted row;
 * - VACUUM reuses the line pointer only after it has been over the index.
 */
extern bool hyb_dead_tid(HybDeadCheck *check, const ItemPointerData *tid);

/*
 * A memory in a context below this one, while this generation of the index is
 * active.  The caller holds the merge lock, so nothing freezes meanwhile.
 */
extern HybDeadMemory *hyb_dead_memory_create(MemoryContext context,
											 const HybIndex *ix,
											 uint64 active);

/* Was it made for this index, with this generation active? */
extern bool hyb_dead_memory_is_of(const HybDeadMemory *memory,
								  const HybIndex *ix, uint64 active);
extern void hyb_dead_memory_free(HybDeadMemory *memory);

typedef enum HybPointer
{
	HYB_POINTER_UNKNOWN,		/* its page was not visited */
	HYB_POINTER_LIVE,			/* it was not dead when its page was visited */
	HYB_POINTER_DEAD
} HybPointer;

/* What is remembered of a line pointer.  The check has a memory. */
extern HybPointer hyb_dead_recall(const HybDeadCheck *check,
								  const ItemPointerData *tid);

/*
 * Visit a page, and remember it if the memory has room.  Returns the number of
 * dead line pointers.
 */
extern int	hyb_dead_visit(HybDeadCheck *check, BlockNumber block);

/* Is any dead line pointer remembered? */
extern bool hyb_dead_any(const HybDeadCheck *check);

typedef enum HybKeyRead
{
	HYB_KEY_READ,				/* the key was appended */
	HYB_KEY_DEAD,				/* the entry can be dropped, as above */
	HYB_KEY_UNKNOWN				/* the table cannot tell */
} HybKeyRead;

/*
 * Append the key of a static entry with this TID, read from the table, to
 * `out`.  The index has no expressions.  The TID still leads to the entry's
 * row: VACUUM reuses it only after it has been over the index.  VACUUM cannot
 * end meanwhile, because the caller either has the leaf pinned, or holds the
 * merge lock and has seen the entry without a tombstone under it.
 */
extern HybKeyRead hyb_heap_key(HybDeadCheck *check, const HybIndex *ix,
							   const ItemPointerData *tid, HybBuf *out);

/* Is the table larger than shared_buffers?  False if it cannot be read. */
extern bool hyb_dead_table_is_large(HybDeadCheck *check);

extern void hyb_dead_end(HybDeadCheck *check);

/* Looking for dead entries is worth it if 1 in HYB_DEAD_WORTH_IT is dead. */
#define HYB_DEAD_WORTH_IT	8

#endif							/* HYB_DEAD_H */
