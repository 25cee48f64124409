/*
 * entry_size.h
 *		The longest entries that an index takes.
 */
#ifndef HYB_ENTRY_SIZE_H
#define HYB_ENTRY_SIZE_H

#include "page/page.h"

/* btree's error, with a hint, for an entry that is too long. */
extern void hyb_check_entry_size(Relation index, Relation heap, uint32 len,
								 ItemPointer tid);

#endif							/* HYB_ENTRY_SIZE_H */
