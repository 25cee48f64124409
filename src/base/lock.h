/*
 * lock.h
 *		Heavyweight locks that are held for a moment only.
 */
#ifndef HYB_LOCK_H
#define HYB_LOCK_H

#include "postgres.h"

#include "storage/lock.h"

/*
 * Lock exclusively.  lock_timeout does not count: it is for locks that other
 * transactions hold, and nothing like these is waited for with a btree index.
 * statement_timeout and cancelling do count, and deadlocks are found.
 */
extern void hyb_lock_for_a_moment(const LOCKTAG *tag);

#endif							/* HYB_LOCK_H */
