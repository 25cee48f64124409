/*
 * alter_table.c
 *		ALTER TABLE of tables with hybrid indexes.
 *
 * ADD CONSTRAINT ... USING INDEX takes btree indexes only: a stand-in
 * (twin/stand_in.c) takes the place of a hybrid index meanwhile.
 *
 * When a column of a constraint changes its type, ALTER TABLE drops the index and
 * makes a btree index from the constraint's definition, without any hook
 * (ATPostAlterTypeParse, commands/tablecmds.c).  btree would refuse the marker.  So
 * the marker is taken off before the statement, and the new index is converted after
 * it.
 *
 * Locks: everything is locked as the statement will lock it, before it does.
 */
#include "base/compat.h"

#include "access/heapam.h"
#include "catalog/pg_constraint.h"
#include "ddl/convert.h"
#include "ddl/statement.h"
#include "server/before_18/ddl_before_18.h"
#include "store/settings.h"
#include "utils/fmgroids.h"

/* A constraint whose index ALTER TABLE makes again. */
typedef struct RebuiltConstraint
{
	Oid			relid;			/* its table */
	char	   *name;
	Oid			index;			/* before the statement */
	bool		attached;		/* made again with the index above it */
	Datum		options;		/* storage parameters of the new index */
} RebuiltConstraint;

/* ---- tables and indexes that the statement changes or drops ---- */

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
 * Returns a table with its children, locked.  NIL if another role owns one of them:
 * the server refuses the statement.
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
 * Returns the tables of a composite type, locked.  ALTER TYPE ... CASCADE changes
 * them, as the server's find_typed_table_dependencies, and is refused for tables of
 * other owners.
 */
static List *
lock_typed_tables(Oid relid)
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

/* Returns true if a command of the statement drops the index, which is its table's. */
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

/*
 * Indexes that DROP CONSTRAINT or DROP COLUMN of the statement drops.  The server
 * drops them first, and may then give their names to others.
 */
static List *
dropped_indexes(const AlterTableStmt *stmt, Oid relid)
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

/* ---- ADD CONSTRAINT ... USING INDEX ---- */

/*
 * The server's error for a btree index: a dump could not tell such a column from one
 * with the default operator class.
 */
static void
check_default_classes(Relation table, Relation index, Oid hybrid)
{
	oidvector  *classes = hyb_index_classes(index);

	for (int i = 0; i < classes->dim1; i++)
	{
		AttrNumber	attnum = index->rd_index->indkey.values[i];

		if (attnum > 0 &&
			classes->values[i] != GetDefaultOpClass(TupleDescAttr(RelationGetDescr(table), attnum - 1)->atttypid,
													hybrid))
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("index \"%s\" column number %d does not have default sorting behavior",
							RelationGetRelationName(index), i + 1),
					 errdetail("Cannot create a primary key or unique constraint using such an index.")));
	}
}

/*
 * Returns true if the server may make a constraint of the index.  It takes a
 * predicate that is always true for none; to find out runs functions of the owner.
 */
static bool
is_whole_unique(Relation index)
{
	HeapTuple	tuple = index->rd_indextuple;
	HybCaller	caller;
	bool		whole;

	if (hyb_index_is_plain_unique(index))
		return true;
	if (!index->rd_index->indisunique || !index->rd_index->indisvalid ||
		!heap_attisnull(tuple, Anum_pg_index_indexprs, NULL))
		return false;
	hyb_become_owner(&caller, index->rd_rel->relowner);
	whole = RelationGetIndexPredicate(index) == NIL;
	hyb_become_caller(&caller);
	return whole;
}

static void
before_using_index(HybStandIns *stand_ins, Oid relid,
				   const Constraint *constraint, Oid hybrid)
{
	Oid			indexoid = get_relname_relid(constraint->indexname,
											 get_rel_namespace(relid));
	Relation	table;
	Relation	index;

	if (!OidIsValid(indexoid) || !hyb_index_is_of(indexoid, hybrid) ||
		IndexGetRelation(indexoid, true) != relid ||
		OidIsValid(get_index_constraint(indexoid)) ||
		(get_rel_relkind(indexoid) != RELKIND_INDEX &&
		 get_rel_relkind(indexoid) != RELKIND_PARTITIONED_INDEX))
		return;
	if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ALTER TABLE / ADD CONSTRAINT USING INDEX is not supported on partitioned tables")));
	table = relation_open(relid, NoLock);
	index = index_open(indexoid, AccessShareLock);
	if (is_whole_unique(index))
	{
		HybStandIn *stand_in;

		check_default_classes(table, index, hybrid);
		stand_in = hyb_stand_in_make(stand_ins, table, indexoid, false);
		if (stand_in != NULL && constraint->conname != NULL)
			stand_in->name = constraint->conname;
	}
	index_close(index, NoLock);
	relation_close(table, NoLock);
}

/* A constraint of ALTER TABLE, by itself or of a new column. */
static void
before_constraint(HybStandIns *stand_ins, Oid relid,
				  const Constraint *constraint, Oid hybrid)
{
	if (constraint->contype == CONSTR_FOREIGN)
		hyb_before_18_foreign_key(stand_ins, constraint, hybrid);
	else if (constraint->indexname != NULL)
		before_using_index(stand_ins, relid, constraint, hybrid);
}

/* ---- columns that change their types ---- */

/*
 * Returns true if the index, of a constraint and with one of these columns, is or
 * will be hybrid.
 */
static bool
will_be_hybrid(Relation index, List *attnums, Oid hybrid)
{
	Oid			access_method = index->rd_rel->relam;

	return !index->rd_index->indisexclusion &&
		hyb_index_has_column(index, attnums) &&
		(access_method == hybrid ||
		 (access_method == BTREE_AM_OID && hyb_replaces_btree() &&
		  hyb_replace_serves(index->rd_index->indrelid,
							 index->rd_index->indisprimary)));
}

static RebuiltConstraint *
rebuilt_constraint(Relation index, Oid constraint)
{
	Oid			oid = RelationGetRelid(index);
	RebuiltConstraint *rebuilt = palloc(sizeof(RebuiltConstraint));

	rebuilt->relid = index->rd_index->indrelid;
	rebuilt->name = get_constraint_name(constraint);
	rebuilt->index = oid;
	rebuilt->attached = index->rd_rel->relispartition;
	rebuilt->options = hyb_marker_set(hyb_index_options(oid), true);
	return rebuilt;
}

static void
before_new_constraints(HybAfterStatement *after, Relation table, List *attnums,
					   Oid hybrid)
{
	HybStandIns *stand_ins = &after->stand_ins;
	ListCell   *lc;

	Assert(CheckRelationLockedByMe(table, AccessExclusiveLock, true));
	foreach(lc, RelationGetIndexList(table))
	{
		Oid			oid = lfirst_oid(lc);
		Oid			constraint = get_index_constraint(oid);
		Relation	index;

		if (!OidIsValid(constraint) || list_member_oid(stand_ins->settled, oid))
			continue;
		index = index_open(oid, AccessShareLock);
		if (will_be_hybrid(index, attnums, hybrid))
		{
			after->constraints = lappend(after->constraints,
										 rebuilt_constraint(index, constraint));
			stand_ins->settled = lappend_oid(stand_ins->settled, oid);
			if (index->rd_rel->relam == hybrid)
				hyb_index_set_options(oid, hyb_btree_options(hyb_index_options(oid)));
		}
		index_close(index, NoLock);
	}
}

/*
 * Returns true if the index has a key column for whose new type we have no operator
 * class.  The server would find one of a type that the new one can be coerced to,
 * which orders otherwise (text's for citext).  Where rows stay as they are, it would go
 * on using the index without building it again.
 */
static bool
loses_class(Relation index, const AlterTableStmt *stmt, List *attnums)
{
	Form_pg_index form = index->rd_index;

	for (int i = 0; i < form->indnkeyatts; i++)
	{
		AttrNumber	attnum = form->indkey.values[i];

		/* expressions have number 0, and so have unknown columns */
		if (attnum != InvalidAttrNumber && list_member_int(attnums, attnum) &&
			!hyb_replace_serves_column(stmt, form->indrelid,
									   get_attname(form->indrelid, attnum, false)))
			return true;
	}
	return false;
}

/*
 * Returns why a hybrid index, which has no constraint, cannot be one when the columns
 * have their new types.  Else NULL.
 */
static char *
why_unserved(Oid indexoid, const AlterTableStmt *stmt, List *attnums)
{
	Relation	index = index_open(indexoid, AccessShareLock);
	char	   *reason = NULL;

	if (index->rd_index->indisvalid && !index->rd_rel->relispartition)
		reason = loses_class(index, stmt, attnums) ?
			_("Access method \"hybrid\" has no operator class for the new type of a column.") :
			hyb_before_18_rebuilt(index, attnums);
	index_close(index, NoLock);
	return reason;
}

/* Makes such indexes btree ones before the statement, unless it drops them. */
static void
revert_unserved(const HybStandIns *stand_ins, const AlterTableStmt *stmt,
				List *relids, List *names, Oid hybrid)
{
	List	   *found = NIL;
	List	   *reasons = NIL;
	ListCell   *lc;
	ListCell   *of_reasons;

	foreach(lc, relids)
	{
		Relation	table = relation_open(lfirst_oid(lc), NoLock);
		List	   *attnums = hyb_column_numbers(lfirst_oid(lc), names);
		ListCell   *of_table;

		Assert(CheckRelationLockedByMe(table, AccessExclusiveLock, true));
		foreach(of_table, RelationGetIndexList(table))
		{
			Oid			index = lfirst_oid(of_table);
			char	   *reason;

			if (!hyb_index_is_of(index, hybrid) ||
				OidIsValid(get_index_constraint(index)) ||
				list_member_oid(stand_ins->settled, index))
				continue;
			reason = why_unserved(index, stmt, attnums);
			if (reason == NULL)
				continue;
			CheckTableNotInUse(table, "ALTER TABLE");
			found = lappend_oid(found, index);
			reasons = lappend(reasons, reason);
		}
		relation_close(table, NoLock);
	}
	forboth(lc, found, of_reasons, reasons)
	{
		ereport(NOTICE,
				(errmsg("index \"%s\" becomes one of access method \"%s\"",
						get_rel_name(lfirst_oid(lc)), DEFAULT_INDEX_TYPE),
				 errdetail_internal("%s", (char *) lfirst(of_reasons))));
		hyb_convert_now(lfirst_oid(lc), BTREE_AM_OID, NULL, false);
	}
}

static void
before_type_change(HybAfterStatement *after, const AlterTableStmt *stmt,
				   Oid relid, List *names, Oid hybrid)
{
	List	   *relids = get_rel_relkind(relid) == RELKIND_COMPOSITE_TYPE ?
		lock_typed_tables(relid) : lock_with_children(relid);
	ListCell   *lc;

	revert_unserved(&after->stand_ins, stmt, relids, names, hybrid);
	foreach(lc, relids)
	{
		Relation	table = relation_open(lfirst_oid(lc), NoLock);

		if (table->rd_rel->relkind == RELKIND_RELATION ||
			table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
			before_new_constraints(after, table,
								   hyb_column_numbers(lfirst_oid(lc), names),
								   hybrid);
		relation_close(table, NoLock);
	}
	hyb_before_18_type_change(&after->stand_ins, relids, names, hybrid);
}

/* ---- before the statement, and after it ---- */

/* ALTER INDEX ... RESET (access_method) */
static void
check_reset(Oid relid, List *options)
{
	if (hyb_marker_in(options) && get_rel_relkind(relid) != RELKIND_RELATION &&
		hyb_index_is_of(relid, get_index_am_oid("hybrid", true)) &&
		OidIsValid(get_index_constraint(relid)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot reset storage parameter \"%s\" of index \"%s\"",
						HYB_ACCESS_METHOD_PARAMETER, get_rel_name(relid)),
				 errdetail("A dump says by it that the index of the constraint is of access method \"hybrid\"."),
				 errhint("Use %s() to make it a btree index.",
						 hyb_sql_function("hybrid_revert"))));
}

Oid
hyb_alter_table_before(HybAfterStatement *after, const AlterTableStmt *stmt)
{
	Oid			hybrid = get_index_am_oid("hybrid", true);
	List	   *changed = NIL;
	Oid			relid;
	ListCell   *lc;

	if (!OidIsValid(hybrid))
		return InvalidOid;
	relid = AlterTableLookupRelation((AlterTableStmt *) stmt,
									 AlterTableGetLockLevel(stmt->cmds));
	if (!OidIsValid(relid))
		return InvalidOid;
	after->stand_ins.settled = dropped_indexes(stmt, relid);
	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		if (HYB_CHANGES_COLUMN(cmd->subtype))
			changed = lappend(changed, makeString(cmd->name));
		else if (cmd->subtype == AT_ResetRelOptions)
			check_reset(relid, castNode(List, cmd->def));
		else if (cmd->subtype == AT_AttachPartition)
			hyb_attach_before(relid, castNode(PartitionCmd, cmd->def)->name,
							  hybrid);
	}
	if (changed != NIL)
		before_type_change(after, stmt, relid, changed, hybrid);
	foreach(lc, hyb_added_constraints(stmt))
		before_constraint(&after->stand_ins, relid, lfirst_node(Constraint, lc),
						  hybrid);
	return relid;
}

/*
 * Makes hybrid a btree index that was made in place of a hybrid index, and those
 * attached to it.
 */
static void
make_hybrid(Oid index, Oid hybrid, Datum options)
{
	HybConversion conversion;
	ListCell   *lc;

	if (hyb_conversion_open(&conversion, index, hybrid, NULL, false, false) !=
		HYB_CONVERT_READY)
	{
		hyb_conversion_skip(&conversion);
		return;
	}
	/* btree does not know these parameters, and never looks at them */
	foreach(lc, find_all_inheritors(index, NoLock, NULL))
		hyb_index_set_options(lfirst_oid(lc), options);
	hyb_conversion_now(&conversion);
}

void
hyb_alter_table_after(const HybAfterStatement *after)
{
	Oid			hybrid = get_index_am_oid("hybrid", true);
	ListCell   *lc;

	foreach(lc, after->constraints)
	{
		const RebuiltConstraint *rebuilt = lfirst(lc);
		Oid			constraint;

		if (hyb_index_is_of(rebuilt->index, hybrid))
		{
			hyb_index_set_options(rebuilt->index, rebuilt->options);
			continue;
		}
		if (rebuilt->attached)
			continue;
		constraint = get_relation_constraint_oid(rebuilt->relid, rebuilt->name,
												 true);
		if (OidIsValid(constraint) &&
			hyb_index_is_of(get_constraint_index(constraint), BTREE_AM_OID))
			make_hybrid(get_constraint_index(constraint), hybrid,
						rebuilt->options);
	}
}
