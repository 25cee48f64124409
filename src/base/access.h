/*
 * access.h
 *		Getting at relations: as their owner, and without waiting for locks.
 */
#ifndef HYB_ACCESS_H
#define HYB_ACCESS_H

#include "storage/lockdefs.h"
#include "utils/relcache.h"

/* The role that goes on afterwards. */
typedef struct HybCaller
{
	Oid			user;
	int			security_context;
	int			nest_level;
} HybCaller;

/*
 * Comparison functions and index expressions may be code of any user.  They run
 * between these two calls: as the owner of the table, in a security-restricted
 * operation, with a search path of the server's schemas only.  The caller's own
 * code (casts of arguments) runs before.  After an error the end of the
 * (sub)transaction brings the caller back.
 */
extern void hyb_become_owner(HybCaller *caller, Oid owner);
extern void hyb_become_caller(const HybCaller *caller);

/* Does the relation belong to the caller?  False if it is gone. */
extern bool hyb_owns(Oid relid);

/*
 * Open a relation of any kind if it can be locked at once, whatever locks are
 * held.  NULL if it is gone; then no lock is left.  NULL also if the lock is
 * not available; then *locked is set to true, unless `locked` is NULL.  The
 * function never sets it to false.  The caller closes the relation with
 * relation_close and the same mode, or the transaction's abort does.
 */
extern Relation hyb_try_open(Oid relid, LOCKMODE lockmode, bool *locked);

#endif							/* HYB_ACCESS_H */
