/*
 * owner.c
 *		Functions of indexes run as the owner of the table.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "am/ddl/owner.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/syscache.h"

void
hyb_become_owner(HybCaller *caller, Oid owner)
{
	GetUserIdAndSecContext(&caller->user, &caller->security_context);
	SetUserIdAndSecContext(owner, caller->security_context |
						   SECURITY_RESTRICTED_OPERATION);
	caller->nest_level = NewGUCNestLevel();
	HYB_RESTRICT_SEARCH_PATH();
}

void
hyb_become_caller(const HybCaller *caller)
{
	AtEOXact_GUC(false, caller->nest_level);
	SetUserIdAndSecContext(caller->user, caller->security_context);
}

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

bool
hyb_owns(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	bool		owns;

	if (!HeapTupleIsValid(tuple))
		return false;
	owns = has_privs_of_role(GetUserId(),
							 ((Form_pg_class) GETSTRUCT(tuple))->relowner);
	ReleaseSysCache(tuple);
	return owns;
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
