/*
 * access.c
 *		Getting at relations: as their owner, and without waiting for locks.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "base/access.h"
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
