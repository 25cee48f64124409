/*
 * serializable.h
 *		Insertions of serializable transactions.
 */
#ifndef HYB_SERIALIZABLE_H
#define HYB_SERIALIZABLE_H

#include "access/xact.h"
#include "log/log.h"

/*
 * In a serializable transaction, after an entry was appended: note conflicts with
 * transactions that have read where it lies.  May raise
 * ERRCODE_T_R_SERIALIZATION_FAILURE.  No lock is held.
 */
extern void hyb_note_conflicts(HybIndex *ix, Relation heap, const HybEntry *entry);

static inline void
hyb_serializable_insertion(HybIndex *ix, Relation heap, const HybEntry *entry)
{
	if (unlikely(IsolationIsSerializable()))
		hyb_note_conflicts(ix, heap, entry);
}

#endif							/* HYB_SERIALIZABLE_H */
