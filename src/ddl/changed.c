/*
 * changed.c
 *		The tables whose columns a statement changes, and the indexes that it
 *		drops.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/relation.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "ddl/changed.h"
#include "ddl/owner.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

static bool
all_owned(const List *relids)
{
	ListCell   *lc;

	foreach(lc, relids)
		if (!hyb_owns(lfirst_oid(lc)))
		return false;
	return true;
}

/*
 * A table with its children, locked.  NIL if one of them is another role's: the
 * server refuses the statement.
 */
static List *
lock_with_children(Oid relid)
{
	List	   *relids = find_all_inheritors(relid, NoLock, NULL);

	if (all_owned(relids))
	{
		relids = find_all_inheritors(relid, AccessExclusiveLock, NULL);
		if (all_owned(relids))
			return relids;
	}
	return NIL;
}

/*
 * The tables of a composite type, which ALTER TYPE changes with it: as the
 * server's find_typed_table_dependencies.  Those of others it will refuse.
 */
static List *
typed_tables(Oid relid)
{
	Relation	catalog = table_open(RelationRelationId, AccessShareLock);
	List	   *found = NIL;
	List	   *relids = NIL;
	ScanKeyData key;
	TableScanDesc scan;
	HeapTuple	tuple;
	ListCell   *lc;

	ScanKeyInit(&key, Anum_pg_class_reloftype, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(get_rel_type_id(relid)));
	scan = table_beginscan_catalog(catalog, 1, &key);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
		found = lappend_oid(found, ((Form_pg_class) GETSTRUCT(tuple))->oid);
	table_endscan(scan);
	table_close(catalog, AccessShareLock);

	foreach(lc, found)
	{
		Relation	table;

		if (!hyb_owns(lfirst_oid(lc)))
			continue;
		table = try_relation_open(lfirst_oid(lc), AccessExclusiveLock);
		if (table == NULL)
			continue;
		relids = list_concat_unique_oid(relids,
										lock_with_children(lfirst_oid(lc)));
		relation_close(table, NoLock);
	}
	return relids;
}

List *
hyb_changed_tables(Oid relid)
{
	if (get_rel_relkind(relid) == RELKIND_COMPOSITE_TYPE)
		return typed_tables(relid);
	return lock_with_children(relid);
}

/* Does a command of the statement drop the index, which is of its table? */
static bool
drops(const AlterTableStmt *stmt, Relation index)
{
	Form_pg_index form = index->rd_index;
	Oid			constraint = get_index_constraint(form->indexrelid);
	char	   *name = OidIsValid(constraint) ?
		get_constraint_name(constraint) : NULL;
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		if (cmd->subtype == AT_DropConstraint && name != NULL &&
			strcmp(cmd->name, name) == 0)
			return true;
		if (cmd->subtype != AT_DropColumn)
			continue;
		for (int i = 0; i < form->indnatts; i++)
			if (form->indkey.values[i] != 0 &&
				form->indkey.values[i] == get_attnum(form->indrelid, cmd->name))
				return true;
	}
	return false;
}

List *
hyb_dropped_indexes(const AlterTableStmt *stmt, Oid relid)
{
	Relation	table = relation_open(relid, NoLock);
	List	   *dropped = NIL;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(table))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (drops(stmt, index))
			dropped = lappend_oid(dropped, lfirst_oid(lc));
		index_close(index, NoLock);
	}
	relation_close(table, NoLock);
	return dropped;
}
