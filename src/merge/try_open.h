/*
 * try_open.h
 *		Relations opened without waiting for a lock.
 */
#ifndef HYB_TRY_OPEN_H
#define HYB_TRY_OPEN_H

#include "storage/lockdefs.h"
#include "utils/relcache.h"

/*
 * Open a relation of any kind if it can be locked at once, whatever locks are
 * held.  NULL if it is gone, and then no lock is left; or if others hold a lock
 * that conflicts, and then *locked, unless locked is NULL, is set to true (it
 * is not set to false).  Closed by relation_close with the same mode, or by
 * transaction abort.
 */
extern Relation hyb_try_open(Oid relid, LOCKMODE lockmode, bool *locked);

#endif							/* HYB_TRY_OPEN_H */
