/*
 * as_owner.c
 *		Functions of indexes run as the owner of the table.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "merge/as_owner.h"
#include "miscadmin.h"
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
