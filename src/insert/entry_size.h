/*
 * entry_size.h
 *		The longest entries that an index takes.
 */
#ifndef HYB_ENTRY_SIZE_H
#define HYB_ENTRY_SIZE_H

#include "store/handle.h"

/*
 * Raise btree's error, with a hint, if the entry of a row is too long.  The
 * values are those of the index's columns.
 */
extern void hyb_check_entry_size(const HybIndex *ix, Relation heap,
								 const Datum *values, const bool *isnull,
								 uint32 len, ItemPointer tid);

#endif							/* HYB_ENTRY_SIZE_H */
