/*
 * unique.h
 *		The uniqueness check of INSERT.
 */
#ifndef HYB_UNIQUE_H
#define HYB_UNIQUE_H

#include "access/genam.h"

#include "page/page.h"
#include "storage/lwlock.h"

/*
 * Look for a conflicting entry, as _bt_check_unique (nbtinsert.c) does: wait
 * for transactions in progress, raise ERRCODE_UNIQUE_VIOLATION for a live
 * duplicate.  Returns false if there may be a duplicate that the caller has
 * to check later (UNIQUE_CHECK_PARTIAL).  On return *lock is held if not NULL,
 * so that nobody can insert the key before the caller has; no lock is held
 * while waiting.
 */
extern bool hyb_unique_check(HybIndex *ix, Relation heap, Datum *values,
							 bool *isnull, const uint8 *key, uint32 keylen,
							 ItemPointer tid, IndexUniqueCheck check,
							 LWLock **lock);

#endif							/* HYB_UNIQUE_H */
