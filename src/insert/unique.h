/*
 * unique.h
 *		The uniqueness check of INSERT.
 */
#ifndef HYB_UNIQUE_H
#define HYB_UNIQUE_H

#include "access/genam.h"

#include "leaf/leaf.h"
#include "log/log.h"
#include "log/unique_lock.h"
#include "tree/descend.h"

/*
 * Memory that checks share, of one statement after the other.  What comparison
 * functions allocate goes to the caller's context, which is reset row by row:
 * all that stays is allocated in `context` from the start, or grows there.
 */
typedef struct HybUniqueBuffers
{
	MemoryContext context;
	HybDescent	descent;
	HybLeaf		leaf;
	HybDynBatch batch;
	HybBuf		key;			/* of a row of the table */
} HybUniqueBuffers;

/* When the library is loaded. */
extern void hyb_unique_init(void);

extern void hyb_unique_buffers_init(HybUniqueBuffers *buffers,
									MemoryContext context);

/* What is inserted. */
typedef struct HybUniqueRow
{
	Relation	heap;
	Datum	   *values;
	bool	   *isnull;
	HybEntry   *entry;			/* of them and the TID */
	IndexUniqueCheck check;
	bool		on_conflict;	/* by INSERT ... ON CONFLICT */
} HybUniqueRow;

/*
 * Look for a conflicting entry, as _bt_check_unique (nbtinsert.c) does: wait
 * for transactions in progress, raise ERRCODE_UNIQUE_VIOLATION for a live
 * duplicate.  Returns false if there may be a duplicate that the caller has
 * to check later (UNIQUE_CHECK_PARTIAL).
 *
 * No lock is held on entry, nor while the index and the heap are looked at.
 * On return, but for UNIQUE_CHECK_EXISTING, *ticket holds what keeps others
 * from appending the key: the caller appends its entry and calls
 * hyb_unique_leave.
 */
extern bool hyb_unique_check(HybIndex *ix, const HybUniqueRow *row,
							 HybUniqueBuffers *buffers,
							 HybUniqueTicket *ticket);

#endif							/* HYB_UNIQUE_H */
