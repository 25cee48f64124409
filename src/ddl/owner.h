/*
 * owner.h
 *		What belongs to whom, and locks for those that may take them.
 */
#ifndef HYB_OWNER_H
#define HYB_OWNER_H

#include "postgres.h"

#include "base/access.h"
#include "nodes/primnodes.h"
#include "storage/lockdefs.h"

/* The role that owns a relation. */
extern Oid	hyb_owner_of(Oid relid);

/*
 * Lock a relation if the caller is allowed to do something with it, by what the
 * catalogs say before and after.  InvalidOid, with nothing waited for, if there
 * is no such relation or privilege: the server is to say so.
 */
extern Oid	hyb_lock_allowed(const RangeVar *name, LOCKMODE lockmode,
							 bool (*allowed) (Oid relid, const void *arg),
							 const void *arg);

#endif							/* HYB_OWNER_H */
