/*
 * owner.c
 *		What belongs to whom, and locks for those that may take them.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "ddl/owner.h"
#include "storage/lmgr.h"
#include "utils/syscache.h"

Oid
hyb_owner_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

Oid
hyb_lock_allowed(const RangeVar *name, LOCKMODE lockmode,
				 bool (*allowed) (Oid relid, const void *arg), const void *arg)
{
	Oid			relid = RangeVarGetRelid(name, NoLock, true);

	if (!OidIsValid(relid) || !allowed(relid, arg))
		return InvalidOid;
	LockRelationOid(relid, lockmode);
	if (RangeVarGetRelid(name, NoLock, true) == relid && allowed(relid, arg))
		return relid;
	UnlockRelationOid(relid, lockmode);
	return InvalidOid;
}
