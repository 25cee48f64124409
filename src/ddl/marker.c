/*
 * marker.c
 *		The storage parameter that says that a constraint's index is hybrid.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "ddl/marker.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "store/settings.h"
#include "utils/datum.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* To be set, or without a value to be reset. */
static DefElem *
marker(bool value)
{
	return makeDefElem(HYB_ACCESS_METHOD_PARAMETER,
					   value ? (Node *) makeString("hybrid") : NULL, -1);
}

bool
hyb_marker_in(List *options)
{
	ListCell   *lc;

	foreach(lc, options)
	{
		DefElem    *option = lfirst_node(DefElem, lc);

		if (option->defnamespace == NULL &&
			strcmp(option->defname, HYB_ACCESS_METHOD_PARAMETER) == 0)
			return true;
	}
	return false;
}

List *
hyb_marker_added(List *options)
{
	return hyb_marker_in(options) ? options : lappend(options, marker(true));
}

Datum
hyb_marker_set(Datum reloptions, bool marked)
{
	return transformRelOptions(reloptions, list_make1(marker(marked)), NULL,
							   NULL, false, !marked);
}

Datum
hyb_index_options(Oid index)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	Datum		result;
	bool		isnull;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", index);
	result = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_reloptions, &isnull);
	result = isnull ? (Datum) 0 : datumCopy(result, false, -1);
	ReleaseSysCache(tuple);
	return result;
}

/*
 * As ATExecSetRelOptions (commands/tablecmds.c) does it, which is not to be had
 * for the index of a partitioned table.
 */
void
hyb_index_set_options(Oid index, Datum reloptions)
{
	Relation	pg_class = table_open(RelationRelationId, RowExclusiveLock);
	HeapTuple	old;
	HeapTuple	new;
	Datum		values[Natts_pg_class] = {0};
	bool		nulls[Natts_pg_class] = {false};
	bool		replaces[Natts_pg_class] = {false};

	LockRelationOid(index, ShareUpdateExclusiveLock);
	old = SearchSysCacheCopy1(RELOID, ObjectIdGetDatum(index));
	if (!HeapTupleIsValid(old))
		elog(ERROR, "cache lookup failed for relation %u", index);
	values[Anum_pg_class_reloptions - 1] = reloptions;
	nulls[Anum_pg_class_reloptions - 1] = reloptions == (Datum) 0;
	replaces[Anum_pg_class_reloptions - 1] = true;
	new = heap_modify_tuple(old, RelationGetDescr(pg_class), values, nulls,
							replaces);
	CatalogTupleUpdate(pg_class, &new->t_self, new);
	heap_freetuple(new);
	heap_freetuple(old);
	table_close(pg_class, RowExclusiveLock);
	CommandCounterIncrement();
}
