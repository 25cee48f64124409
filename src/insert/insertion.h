/*
 * insertion.h
 *		INSERT, and the uniqueness check that goes with it.
 */
#ifndef HYB_INSERTION_H
#define HYB_INSERTION_H

#include "access/amapi.h"
#include "access/xact.h"

#include "leaf/leaf.h"
#include "log/log.h"
#include "log/unique_lock.h"
#include "tree/descend.h"

/* ---- insert.c ---- */

extern bool hyb_aminsert(Relation index, Datum *values, bool *isnull,
						 ItemPointer heap_tid, Relation heap,
						 IndexUniqueCheck check_unique, bool index_unchanged,
						 struct IndexInfo *info);
extern void hyb_aminsertcleanup(Relation index, struct IndexInfo *info);

/*
 * Raises btree's error, with a hint, if the entry of a row is too long.  The
 * values are those of the index's columns.
 */
extern void hyb_check_entry_size(const HybIndex *ix, Relation heap,
								 const Datum *values, const bool *isnull,
								 uint32 len, ItemPointer tid);

/* ---- unique.c ---- */

/*
 * Memory that checks share, one statement after the other.  Comparison functions
 * allocate in the caller's context, which is reset row by row.  All that stays is
 * allocated in `context` from the start, or grows there.
 */
typedef struct HybUniqueBuffers
{
	MemoryContext context;
	HybDescent	descent;
	HybLeaf		leaf;
	HybFetched	batch;
	HybBuf		key;			/* of a row of the table */
} HybUniqueBuffers;

/* A row that is being inserted. */
typedef struct HybUniqueRow
{
	Relation	heap;
	Datum	   *values;
	bool	   *isnull;
	HybEntry   *entry;			/* made of the values and the TID */
	uint64		hash;			/* hyb_key_point_hash */
	IndexUniqueCheck check;
	bool		on_conflict;	/* by INSERT ... ON CONFLICT */
} HybUniqueRow;

/* When the library is loaded. */
extern void hyb_unique_init(void);

extern void hyb_unique_buffers_init(HybUniqueBuffers *buffers,
									MemoryContext context);

/* Not if a column is NULL and such rows are distinct. */
extern bool hyb_unique_may_conflict(const HybIndex *ix, const bool *isnull);

/*
 * Looks for a conflicting entry, as _bt_check_unique (nbtinsert.c) does: waits for
 * transactions in progress, raises ERRCODE_UNIQUE_VIOLATION for a live duplicate.
 * Returns false if there may be a duplicate that the caller has to check later
 * (UNIQUE_CHECK_PARTIAL).
 *
 * No lock is held at any time but for that of a turn.  The caller has begun with the
 * ticket and enters with it; if the check does not count any more it checks again
 * (log/unique_lock.h).  UNIQUE_CHECK_EXISTING appends nothing and has no ticket: of
 * two such checks each finds the entry of the other.
 */
extern bool hyb_unique_check(HybIndex *ix, const HybUniqueRow *row,
							 HybUniqueBuffers *buffers,
							 HybUniqueTicket *ticket);

/*
 * Has a look-up of this subtransaction searched for the key, and do its entries lead to no
 * row that might be in conflict?  Then the ticket is as after hyb_unique_check, which
 * would have returned true.
 */
extern bool hyb_unique_was_checked(HybIndex *ix, const HybUniqueRow *row,
								   HybUniqueTicket *ticket);

/* Do two unique indexes of a table refuse the same rows, if they refuse any? */
extern bool hyb_same_uniqueness(Relation a, Relation b);

/* ---- serializable.c ---- */

/*
 * In a serializable transaction, after an entry was appended: notes conflicts
 * with transactions that have read the place where it lies.  May raise
 * ERRCODE_T_R_SERIALIZATION_FAILURE.  No lock is held.
 */
extern void hyb_note_conflicts(HybIndex *ix, Relation heap, const HybEntry *entry);

static inline void
hyb_serializable_insertion(HybIndex *ix, Relation heap, const HybEntry *entry)
{
	if (unlikely(IsolationIsSerializable()))
		hyb_note_conflicts(ix, heap, entry);
}

#endif							/* HYB_INSERTION_H */
