/*
 * slot_key.h
 *		The key of a row of the table.
 */
#ifndef HYB_SLOT_KEY_H
#define HYB_SLOT_KEY_H

#include "executor/tuptable.h"
#include "key/key.h"

/*
 * Append the key that an index without expressions and INCLUDE columns has for
 * the row in a slot.  May detoast and palloc.  False, nothing appended, if a value
 * in the TOAST table is gone (toast_value.h), as it cannot be of a row that an
 * active snapshot sees.
 */
extern bool hyb_key_of_slot(const HybKeyDesc *desc, Relation index,
							TupleTableSlot *slot, HybBuf *out);

/* The same of one column. */
extern bool hyb_key_append_column(const HybColumn *col, Datum value, bool isnull,
								  HybBuf *out);

#endif							/* HYB_SLOT_KEY_H */
