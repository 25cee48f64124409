/*
 * references.c
 *		Who may make a foreign key, asked before the referenced table is locked.
 */
#include "base/compat.h"

#include "access/sysattr.h"
#include "catalog/pg_constraint.h"
#include "ddl/references.h"
#include "miscadmin.h"
#include "utils/acl.h"

List *
hyb_primary_key_numbers(Oid relid)
{
	Oid			constraint;
	Bitmapset  *columns = get_primary_key_attnos(relid, false, &constraint);
	List	   *attnums = NIL;
	int			column = -1;

	while ((column = bms_next_member(columns, column)) >= 0)
		attnums = lappend_int(attnums,
							  column + FirstLowInvalidHeapAttributeNumber);
	return attnums;
}

bool
hyb_may_reference(Oid relid, const List *attnums)
{
	ListCell   *lc;

	if (pg_class_aclcheck(relid, GetUserId(), ACL_REFERENCES) == ACLCHECK_OK)
		return true;
	foreach(lc, attnums)
		if (lfirst_int(lc) <= 0 ||
			pg_attribute_aclcheck(relid, lfirst_int(lc), GetUserId(),
								  ACL_REFERENCES) != ACLCHECK_OK)
		return false;
	return attnums != NIL;
}
