/*
 * row_key.h
 *		The key of a row of the table.
 *
 * Values in a TOAST table may be gone.  VACUUM, and any scan that prunes a page,
 * cleans a TOAST table independently of its table.  So where a value is gone the
 * row is dead to every snapshot, or its insertion was undone, though the row itself
 * may still be there.  The process that cleaned the TOAST table has logged the
 * conflict with snapshots of standbys that could see the row.
 */
#ifndef HYB_ROW_KEY_H
#define HYB_ROW_KEY_H

#include "executor/tuptable.h"
#include "key/key.h"

/*
 * Append the key that an index without expressions and INCLUDE columns has for
 * the row in a slot.  May detoast and palloc.  Returns false, and appends nothing,
 * if a value in the TOAST table is gone; a row that an active snapshot sees has all
 * of its values.  No LWLock is held on entry or exit.
 */
extern bool hyb_key_of_slot(const HybKeyDesc *desc, Relation index,
							TupleTableSlot *slot, HybBuf *out);

/* The same for a row version of the table that `tupdesc` describes. */
extern bool hyb_key_of_tuple(const HybKeyDesc *desc, Relation index, HeapTuple tuple,
							 TupleDesc tupdesc, HybBuf *out);

#endif							/* HYB_ROW_KEY_H */
