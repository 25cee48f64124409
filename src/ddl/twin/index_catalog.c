/*
 * index_catalog.c
 *		What DDL reads and changes of an index in the catalogs.
 */
#include "base/compat.h"

#include "access/reloptions.h"
#include "catalog/indexing.h"
#include "catalog/pg_type.h"
#include "ddl/twin/twin.h"
#include "nodes/makefuncs.h"
#include "store/settings.h"
#include "utils/datum.h"

/* ---- storage parameters ---- */

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

/* The marker as ALTER INDEX would set it, or reset it without a value. */
static DefElem *
marker(bool value)
{
	return makeDefElem(HYB_ACCESS_METHOD_PARAMETER,
					   value ? (Node *) makeString("hybrid") : NULL, -1);
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
hyb_layout_set(Datum reloptions, const char *layout)
{
	DefElem    *option = makeDefElem("layout", (Node *) makeString(pstrdup(layout)), -1);

	return transformRelOptions(reloptions, list_make1(option), NULL, NULL, false,
							   false);
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
 * As ATExecSetRelOptions (commands/tablecmds.c), which cannot be called for the
 * index of a partitioned table.
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

/* ---- definitions ---- */

char *
hyb_table_needs_btree(Oid relid)
{
	Oid			schema = get_namespace_oid("_timescaledb_internal", true);
	Oid			type = !OidIsValid(schema) ? InvalidOid :
		GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
						CStringGetDatum("compressed_data"),
						ObjectIdGetDatum(schema));

	for (AttrNumber i = 1; OidIsValid(type) && get_attname(relid, i, true) != NULL; i++)
		if (get_atttype(relid, i) == type)
			return _("TimescaleDB reads an index of compressed rows as only btree returns it.");
	return NULL;
}

void
hyb_index_stop_checking(Oid index, bool until_commit)
{
	Relation	pg_index = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	tuple = SearchSysCacheCopy1(INDEXRELID,
											ObjectIdGetDatum(index));
	Form_pg_index form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for index %u", index);
	form = (Form_pg_index) GETSTRUCT(tuple);
	form->indimmediate &= !until_commit;
	form->indisunique &= until_commit;
	CatalogTupleUpdate(pg_index, &tuple->t_self, tuple);
	heap_freetuple(tuple);
	table_close(pg_index, RowExclusiveLock);
	CommandCounterIncrement();
}

/*
 * Does not simplify expressions, which would run functions of their owner as this
 * user.
 */
bool
hyb_index_is_plain_unique(Relation index)
{
	HeapTuple	tuple = index->rd_indextuple;

	return index->rd_index->indisunique && index->rd_index->indisvalid &&
		heap_attisnull(tuple, Anum_pg_index_indexprs, NULL) &&
		heap_attisnull(tuple, Anum_pg_index_indpred, NULL);
}

bool
hyb_index_has_column(Relation index, List *attnums)
{
	for (int i = 0; i < index->rd_index->indnatts; i++)
		if (list_member_int(attnums, index->rd_index->indkey.values[i]))
			return true;
	return false;
}

List *
hyb_added_constraints(const AlterTableStmt *stmt)
{
	List	   *constraints = NIL;
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		if (cmd->subtype == AT_AddConstraint)
			constraints = lappend(constraints, castNode(Constraint, cmd->def));
		else if (cmd->subtype == AT_AddColumn)
			constraints = list_concat(constraints,
									  castNode(ColumnDef, cmd->def)->constraints);
	}
	return constraints;
}

List *
hyb_column_numbers(Oid relid, List *names)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, names)
		result = list_append_unique_int(result,
										get_attnum(relid, strVal(lfirst(lc))));
	return result;
}
