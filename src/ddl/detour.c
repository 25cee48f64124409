/*
 * detour.c
 *		Statements that the server carries out for btree indexes only, or that
 *		would make one out of a hybrid one.
 *
 * A stand-in (stand_in.c) takes the place of a hybrid index that a foreign key
 * is to reference, that is to become a constraint, or that a materialized view
 * is refreshed by.  It serves foreign keys that ALTER TABLE makes again, too,
 * as it does when the type of their columns changes.
 *
 * When the type of a constraint's own columns changes, ALTER TABLE drops the
 * index and makes it again from the constraint's definition, without any hook:
 * a btree one (ATPostAlterTypeParse, commands/tablecmds.c).  The marker, which
 * btree would refuse, is taken off before, and the new index becomes hybrid
 * afterwards.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/access.h"
#include "base/server.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "ddl/attach.h"
#include "ddl/changed.h"
#include "ddl/convert.h"
#include "ddl/detour.h"
#include "ddl/marker.h"
#include "ddl/owner.h"
#include "ddl/references.h"
#include "ddl/stand_in.h"
#include "ddl/twin.h"
#include "miscadmin.h"
#include "store/settings.h"
#include "tcop/dest.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* A constraint whose index may have been made again. */
typedef struct HybRebuilt
{
	Oid			relid;			/* its table */
	char	   *name;
	Oid			index;			/* before the statement */
	bool		attached;		/* made again with the index above it */
	Datum		options;		/* storage parameters that it is to have */
} HybRebuilt;

/* Do the index's key columns include one of these, or are they just these? */
static bool
has_columns(Relation index, List *attnums, bool all)
{
	Form_pg_index form = index->rd_index;
	int			found = 0;

	for (int i = 0; i < (all ? form->indnkeyatts : form->indnatts); i++)
		if (list_member_int(attnums, form->indkey.values[i]))
			found++;
	return all ? found == form->indnkeyatts &&
		found == list_length(attnums) : found > 0;
}

/* Column numbers of names (String); unknown ones are for the server. */
static List *
column_numbers(Oid relid, List *names)
{
	List	   *result = NIL;
	ListCell   *lc;

	foreach(lc, names)
		result = list_append_unique_int(result,
										get_attnum(relid, strVal(lfirst(lc))));
	return result;
}

/*
 * It has a stand-in, is going to be a btree index for the moment, or will be
 * gone before it matters.
 */
static bool
is_provided_for(const HybDetour *detour, Oid index)
{
	ListCell   *lc;

	if (list_member_oid(detour->dropped, index))
		return true;
	foreach(lc, detour->stand_ins)
		if (((HybStandIn *) lfirst(lc))->index == index)
		return true;
	foreach(lc, detour->constraints)
		if (((HybRebuilt *) lfirst(lc))->index == index)
		return true;
	return false;
}

static HybStandIn *
add_stand_in(HybDetour *detour, Relation table, Oid index, bool keep_name)
{
	HybStandIn *stand_in;

	if (is_provided_for(detour, index))
		return NULL;
	stand_in = hyb_stand_in_make(table, index, keep_name);
	detour->stand_ins = lappend(detour->stand_ins, stand_in);
	return stand_in;
}

/*
 * May the caller make a foreign key that references the columns of these names
 * (`arg`), or the primary key if there are none?
 */
static bool
may_reference(Oid relid, const void *arg)
{
	List	   *names = (List *) arg;

	return hyb_may_reference(relid, names != NIL ?
							 column_numbers(relid, names) :
							 hyb_primary_key_numbers(relid));
}

/* ALTER TABLE ... ADD FOREIGN KEY: the index that it is going to look for. */
static void
before_foreign_key(HybDetour *detour, const Constraint *constraint, Oid hybrid)
{
	Oid			relid;
	Relation	table;
	List	   *attnums;
	ListCell   *lc;

	if (constraint->pktable == NULL)
		return;
	relid = hyb_lock_allowed(constraint->pktable, ShareRowExclusiveLock,
							 may_reference, constraint->pk_attrs);
	if (!OidIsValid(relid))
		return;
	table = relation_open(relid, NoLock);
	attnums = column_numbers(relid, constraint->pk_attrs);
	foreach(lc, RelationGetIndexList(table))
	{
		Relation	index;
		bool		wanted;

		if (!hyb_index_is_of(lfirst_oid(lc), hybrid))
			continue;
		index = index_open(lfirst_oid(lc), AccessShareLock);
		wanted = hyb_index_is_plain_unique(index) &&
			(attnums == NIL ? index->rd_index->indisprimary :
			 has_columns(index, attnums, true));
		index_close(index, NoLock);
		if (wanted)
			add_stand_in(detour, table, lfirst_oid(lc), false);
	}
	relation_close(table, NoLock);
}

/*
 * What the server would say of a btree index: a dump could not tell such a
 * column from one with the default operator class.
 */
static void
check_default_classes(Relation table, Relation index, Oid hybrid)
{
	oidvector  *classes = (oidvector *)
		DatumGetPointer(SysCacheGetAttrNotNull(INDEXRELID,
											   index->rd_indextuple,
											   Anum_pg_index_indclass));

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
 * May the server make a constraint of it?  It takes a predicate that is always
 * true for none: functions in it run as their owner.
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

/* ALTER TABLE ... ADD CONSTRAINT ... USING INDEX */
static void
before_using_index(HybDetour *detour, Oid relid, const Constraint *constraint,
				   Oid hybrid)
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
		stand_in = add_stand_in(detour, table, indexoid, false);
		if (stand_in != NULL && constraint->conname != NULL)
			stand_in->name = constraint->conname;
	}
	index_close(index, NoLock);
	relation_close(table, NoLock);
}

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

/*
 * Constraints that ALTER TABLE makes again since the type of one of their
 * columns changes.
 */
static void
before_new_index(HybDetour *detour, Relation table, List *attnums, Oid hybrid)
{
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(table))
	{
		Oid			constraint = get_index_constraint(lfirst_oid(lc));
		Relation	index;
		HybRebuilt *rebuilt;

		if (!OidIsValid(constraint) || is_provided_for(detour, lfirst_oid(lc)))
			continue;
		index = index_open(lfirst_oid(lc), AccessShareLock);
		if (!index->rd_index->indisexclusion &&
			has_columns(index, attnums, false) &&
			(index->rd_rel->relam == hybrid ||
			 (index->rd_rel->relam == BTREE_AM_OID && hyb_replaces_btree() &&
			  hyb_replace_serves(RelationGetRelid(table),
								 index->rd_index->indisprimary))))
		{
			Datum		options = hyb_index_options(lfirst_oid(lc));

			if (index->rd_rel->relam == hybrid)
				hyb_index_set_options(lfirst_oid(lc),
									  hyb_twin_btree_options(options));
			rebuilt = palloc(sizeof(HybRebuilt));
			rebuilt->relid = RelationGetRelid(table);
			rebuilt->name = get_constraint_name(constraint);
			rebuilt->index = lfirst_oid(lc);
			rebuilt->attached = index->rd_rel->relispartition;
			rebuilt->options = hyb_marker_set(options, true);
			detour->constraints = lappend(detour->constraints, rebuilt);
		}
		index_close(index, NoLock);
	}
}

/*
 * Unique indexes that are made again, belong to no constraint, but are
 * referenced by foreign keys.
 */
static void
before_new_referenced(HybDetour *detour, Relation table, List *attnums,
					  Oid hybrid)
{
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(table))
	{
		Relation	index;
		bool		referenced;

		if (!hyb_index_is_of(lfirst_oid(lc), hybrid) ||
			OidIsValid(get_index_constraint(lfirst_oid(lc))))
			continue;
		index = index_open(lfirst_oid(lc), AccessShareLock);
		referenced = hyb_index_is_plain_unique(index) &&
			has_columns(index, attnums, false) &&
			get_index_ref_constraints(lfirst_oid(lc)) != NIL;
		index_close(index, NoLock);
		if (referenced && !is_provided_for(detour, lfirst_oid(lc)))
			detour->stand_ins = lappend(detour->stand_ins,
										hyb_stand_in_make_alone(table, lfirst_oid(lc)));
	}
}

/* The index that a foreign key references. */
static Oid
referenced_index(Oid constraint)
{
	HeapTuple	tuple = SearchSysCache1(CONSTROID,
										ObjectIdGetDatum(constraint));
	Oid			result;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	result = ((Form_pg_constraint) GETSTRUCT(tuple))->conindid;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Is one of the columns in the foreign key, and may the caller make that again?
 */
static bool
is_made_again(const ForeignKeyCacheInfo *key, List *attnums)
{
	List	   *referenced = NIL;
	bool		changes = false;

	for (int i = 0; i < key->nkeys; i++)
	{
		changes |= list_member_int(attnums, key->conkey[i]);
		referenced = lappend_int(referenced, key->confkey[i]);
	}
	return changes && hyb_may_reference(key->confrelid, referenced);
}

/* Foreign keys that ALTER TABLE makes again for the same reason. */
static void
before_new_foreign_key(HybDetour *detour, Relation table, List *attnums,
					   Oid hybrid)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	foreach(lc, RelationGetFKeyList(table))
	{
		ForeignKeyCacheInfo *key = lfirst_node(ForeignKeyCacheInfo, lc);

		if (is_made_again(key, attnums))
			indexes = list_append_unique_oid(indexes,
											 referenced_index(key->conoid));
	}
	foreach(lc, indexes)
	{
		Oid			relid = OidIsValid(lfirst_oid(lc)) ?
			IndexGetRelation(lfirst_oid(lc), true) : InvalidOid;
		Relation	referenced;

		if (!OidIsValid(relid) || !hyb_index_is_of(lfirst_oid(lc), hybrid))
			continue;

		/* as the triggers of the old foreign key are going to be dropped */
		referenced = table_open(relid, AccessExclusiveLock);
		add_stand_in(detour, referenced, lfirst_oid(lc), false);
		table_close(referenced, NoLock);
	}
}

/*
 * Has the index, which is of no constraint, a key column whose new type no
 * operator class of ours serves?  The server would find one that the type can
 * be coerced to and that orders otherwise (text's for citext), and where rows
 * stay as they are it would go on using the index without building it anew.
 */
static bool
loses_class(Relation table, Oid indexoid, const AlterTableStmt *stmt,
			List *attnums)
{
	Relation	index = index_open(indexoid, AccessShareLock);
	Form_pg_index form = index->rd_index;
	bool		loses = false;

	for (int i = 0; !loses && i < form->indnkeyatts; i++)
		if (list_member_int(attnums, form->indkey.values[i]))
		{
			Form_pg_attribute column = TupleDescAttr(RelationGetDescr(table),
													 form->indkey.values[i] - 1);

			loses = !hyb_replace_serves_column(stmt, RelationGetRelid(table),
											   NameStr(column->attname));
		}
	loses = loses && form->indisvalid && !index->rd_rel->relispartition;
	index_close(index, NoLock);
	return loses;
}

/* Such indexes become btree ones before. */
static void
revert_unserved(const AlterTableStmt *stmt, List *relids, List *names,
				Oid hybrid)
{
	List	   *found = NIL;
	ListCell   *lc;

	foreach(lc, relids)
	{
		Relation	table = relation_open(lfirst_oid(lc), NoLock);
		List	   *attnums = column_numbers(lfirst_oid(lc), names);
		ListCell   *of_table;

		foreach(of_table, RelationGetIndexList(table))
			if (hyb_index_is_of(lfirst_oid(of_table), hybrid) &&
				!OidIsValid(get_index_constraint(lfirst_oid(of_table))) &&
				loses_class(table, lfirst_oid(of_table), stmt, attnums))
			found = lappend_oid(found, lfirst_oid(of_table));
		relation_close(table, NoLock);
	}
	foreach(lc, found)
	{
		ereport(NOTICE,
				(errmsg("index \"%s\" becomes one of access method \"%s\"",
						get_rel_name(lfirst_oid(lc)), DEFAULT_INDEX_TYPE),
				 errdetail("Access method \"hybrid\" has no operator class for the new type of a column.")));
		hyb_convert_now(lfirst_oid(lc), BTREE_AM_OID);
	}
}

static void
before_type_change(HybDetour *detour, const AlterTableStmt *stmt, Oid relid,
				   List *names, Oid hybrid)
{
	List	   *relids = hyb_changed_tables(relid);
	ListCell   *lc;

	revert_unserved(stmt, relids, names, hybrid);
	foreach(lc, relids)
	{
		Relation	table = relation_open(lfirst_oid(lc), NoLock);

		if (table->rd_rel->relkind == RELKIND_RELATION ||
			table->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
			before_new_index(detour, table,
							 column_numbers(lfirst_oid(lc), names), hybrid);
		relation_close(table, NoLock);
	}
	if (!HYB_CONSTRAINTS_NEED_BTREE)
		return;
	foreach(lc, relids)
	{
		Relation	table = relation_open(lfirst_oid(lc), NoLock);
		List	   *attnums = column_numbers(lfirst_oid(lc), names);

		before_new_referenced(detour, table, attnums, hybrid);
		before_new_foreign_key(detour, table, attnums, hybrid);
		relation_close(table, NoLock);
	}
}

/* A constraint of ALTER TABLE, by itself or of a new column. */
static void
before_constraint(HybDetour *detour, Oid relid, const Constraint *constraint,
				  Oid hybrid)
{
	if (constraint->contype == CONSTR_FOREIGN && HYB_CONSTRAINTS_NEED_BTREE)
		before_foreign_key(detour, constraint, hybrid);
	else if (constraint->indexname != NULL)
		before_using_index(detour, relid, constraint, hybrid);
}

Oid
hyb_detour_alter_table(HybDetour *detour, const AlterTableStmt *stmt)
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
	detour->dropped = hyb_dropped_indexes(stmt, relid);
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
		before_type_change(detour, stmt, relid, changed, hybrid);
	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		ListCell   *of_column;

		if (cmd->subtype == AT_AddConstraint)
			before_constraint(detour, relid, castNode(Constraint, cmd->def),
							  hybrid);
		else if (cmd->subtype == AT_AddColumn)
			foreach(of_column, castNode(ColumnDef, cmd->def)->constraints)
				before_constraint(detour, relid,
								  lfirst_node(Constraint, of_column), hybrid);
	}
	return relid;
}

static bool
is_hybrid_constraint(const Node *node)
{
	const Constraint *constraint = (const Constraint *) node;

	return (constraint->contype == CONSTR_PRIMARY ||
			constraint->contype == CONSTR_UNIQUE) &&
		constraint->access_method != NULL &&
		strcmp(constraint->access_method, "hybrid") == 0;
}

/* Is it a foreign key of the table to itself? */
static bool
references_itself(const Node *node, Oid relid)
{
	const Constraint *constraint = (const Constraint *) node;

	return constraint->contype == CONSTR_FOREIGN && constraint->pktable != NULL &&
		RangeVarGetRelid(constraint->pktable, NoLock, true) == relid;
}

static AlterTableCmd *
add_constraint(Constraint *constraint)
{
	AlterTableCmd *cmd = makeNode(AlterTableCmd);

	cmd->subtype = AT_AddConstraint;
	cmd->def = (Node *) constraint;
	return cmd;
}

/* A column's foreign keys, as ones of the table (see transformColumnDefinition). */
static List *
take_from_column(ColumnDef *column, Oid relid)
{
	List	   *taken = NIL;
	ListCell   *lc;

	foreach(lc, column->constraints)
	{
		Constraint *constraint = lfirst_node(Constraint, lc);

		if (!references_itself(lfirst(lc), relid))
			continue;
		constraint->fk_attrs = list_make1(makeString(column->colname));
		taken = lappend(taken, add_constraint(constraint));
		column->constraints = foreach_delete_current(column->constraints, lc);
	}
	return taken;
}

void
hyb_detour_postpone(HybDetour *detour, AlterTableStmt *stmt, Oid relid)
{
	List	   *taken = NIL;
	bool		hybrid = false;
	ListCell   *lc;

	if (!HYB_CONSTRAINTS_NEED_BTREE)
		return;
	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		if (cmd->subtype == AT_AddConstraint)
			hybrid |= is_hybrid_constraint(cmd->def);
		else if (cmd->subtype == AT_AddColumn)
		{
			ListCell   *of_column;

			foreach(of_column, castNode(ColumnDef, cmd->def)->constraints)
				hybrid |= is_hybrid_constraint(lfirst(of_column));
		}
	}
	if (!hybrid)
		return;
	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		if (cmd->subtype == AT_AddColumn)
			taken = list_concat(taken,
								take_from_column(castNode(ColumnDef, cmd->def),
												 relid));
		else if (cmd->subtype == AT_AddConstraint &&
				 references_itself(cmd->def, relid))
		{
			taken = lappend(taken, cmd);
			stmt->cmds = foreach_delete_current(stmt->cmds, lc);
		}
	}
	if (taken != NIL)
	{
		detour->later = copyObject(stmt);
		detour->later->cmds = taken;
	}
}

/*
 * The index that a refresh of the view can go by: InvalidOid if that is a btree
 * one already.  As ExecRefreshMatView (commands/matview.c) looks for it, since
 * a predicate that is always true is none: functions in it run as their owner.
 */
static Oid
find_refresh_index(Relation view, Oid hybrid)
{
	Oid			found = InvalidOid;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(view))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);
		Oid			access_method = index->rd_rel->relam;
		bool		usable = index->rd_index->indisunique &&
			index->rd_index->indisvalid && index->rd_index->indimmediate &&
			RelationGetIndexExpressions(index) == NIL &&
			RelationGetIndexPredicate(index) == NIL;

		index_close(index, NoLock);
		if (usable && access_method == BTREE_AM_OID)
			return InvalidOid;
		if (usable && access_method == hybrid && !OidIsValid(found))
			found = lfirst_oid(lc);
	}
	return found;
}

void
hyb_detour_refresh(HybDetour *detour, const RefreshMatViewStmt *stmt)
{
	Oid			hybrid = get_index_am_oid("hybrid", true);
	Oid			relid;
	HybCaller	caller;
	Oid			index;
	Relation	view;

	if (!HYB_CONSTRAINTS_NEED_BTREE || !stmt->concurrent ||
		!OidIsValid(hybrid))
		return;
	relid = RangeVarGetRelidExtended(stmt->relation, ExclusiveLock, 0,
									 HYB_MAY_REFRESH, NULL);
	view = relation_open(relid, NoLock);
	if (view->rd_rel->relkind == RELKIND_MATVIEW)
	{
		hyb_become_owner(&caller, view->rd_rel->relowner);
		index = find_refresh_index(view, hybrid);
		if (OidIsValid(index))
			add_stand_in(detour, view, index, true);
		hyb_become_caller(&caller);
	}
	relation_close(view, NoLock);
}

/*
 * A btree index that was made in place of a hybrid one becomes hybrid, with the
 * indexes attached below it, and all have the storage parameters.
 */
static void
make_hybrid(Oid index, Oid hybrid, Datum options)
{
	HybConversion conversion;
	ListCell   *lc;

	if (hyb_conversion_open(&conversion, index, hybrid, false) != HYB_CONVERT_READY)
	{
		hyb_conversion_skip(&conversion);
		return;
	}
	/* btree does not know them, and never looks at them */
	foreach(lc, find_all_inheritors(index, NoLock, NULL))
		hyb_index_set_options(lfirst_oid(lc), options);
	hyb_conversion_now(&conversion);
}

/* The index of a constraint is hybrid again, with its storage parameters. */
static void
restore_constraint(const HybRebuilt *rebuilt)
{
	Oid			hybrid = get_index_am_oid("hybrid", false);
	Oid			constraint;

	if (hyb_index_is_of(rebuilt->index, hybrid))
		hyb_index_set_options(rebuilt->index, rebuilt->options);
	else if (!rebuilt->attached)
	{
		constraint = get_relation_constraint_oid(rebuilt->relid, rebuilt->name,
												 true);
		if (OidIsValid(constraint) &&
			hyb_index_is_of(get_constraint_index(constraint), BTREE_AM_OID))
			make_hybrid(get_constraint_index(constraint), hybrid,
						rebuilt->options);
	}
}

void
hyb_detour_end(HybDetour *detour)
{
	ListCell   *lc;

	if (detour->stand_ins == NIL && detour->constraints == NIL &&
		detour->later == NULL)
		return;
	CommandCounterIncrement();
	foreach(lc, detour->stand_ins)
	{
		Oid			index = hyb_stand_in_end(lfirst(lc));

		if (OidIsValid(index) && OidIsValid(get_index_constraint(index)))
			hyb_index_set_options(index,
								  hyb_marker_set(hyb_index_options(index), true));
	}
	foreach(lc, detour->constraints)
		restore_constraint(lfirst(lc));
	if (detour->later != NULL)
	{
		PlannedStmt *wrapper = makeNode(PlannedStmt);

		wrapper->commandType = CMD_UTILITY;
		wrapper->utilityStmt = (Node *) detour->later;
		wrapper->stmt_location = -1;
		ProcessUtility(wrapper, "", false, PROCESS_UTILITY_SUBCOMMAND, NULL,
					   NULL, None_Receiver, NULL);
	}
}
