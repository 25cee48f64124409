/*
 * try_open.c
 *		Relations opened without waiting for a lock.
 *
 * try_relation_open (access/common/relation.c) waits for its lock; this is for
 * whoever must not: a worker that merges, a view of all indexes, a merge that
 * would look at the table if it can.
 */
#include "base/compat.h"

#include "access/relation.h"
#include "merge/try_open.h"
#include "storage/lmgr.h"

Relation
hyb_try_open(Oid relid, LOCKMODE lockmode, bool *locked)
{
	Relation	rel;

	if (!OidIsValid(relid))
		return NULL;
	if (!ConditionalLockRelationOid(relid, lockmode))
	{
		if (locked != NULL)
			*locked = true;
		return NULL;
	}
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
		UnlockRelationOid(relid, lockmode);
	return rel;
}
