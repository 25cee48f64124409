/*
 * build.h
 *		What CREATE INDEX and INSERT share.
 */
#ifndef HYB_BUILD_H
#define HYB_BUILD_H

#include "page/page.h"

/* btree's error, with a hint, for an entry that is too long. */
extern void hyb_check_entry_size(Relation index, Relation heap, uint32 len,
								 ItemPointer tid);

#endif							/* HYB_BUILD_H */
