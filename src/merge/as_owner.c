/*
 * as_owner.c
 *		Functions of indexes run as the owner of the table.
 */
#include "compat.h"

#include "merge/as_owner.h"
#include "miscadmin.h"
#include "utils/guc.h"

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
