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
 * the row in a slot.  May detoast and palloc.
 */
extern void hyb_key_of_slot(const HybKeyDesc *desc, Relation index,
							TupleTableSlot *slot, HybBuf *out);

#endif							/* HYB_SLOT_KEY_H */
