/*
 * replace.c
 *		Makes hybrid indexes where a statement means an index of the default
 *		access method.
 *
 * The access method of a constraint is a field of its parse tree that the
 * grammar never fills, but that the server goes by: transformIndexConstraint
 * (parser/parse_utilcmd.c).  The indexes of CREATE TABLE are statements of
 * their own by the time that they are made, and the table is there then, so
 * what types its columns have is known.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/reloptions.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "ddl/marker.h"
#include "ddl/owner.h"
#include "ddl/replace.h"
#include "ddl/subscription.h"
#include "ddl/twin.h"
#include "ddl/using_clause.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_type.h"
#include "parser/parse_utilcmd.h"
#include "utils/guc.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

static bool replace_btree = false;	/* hybridindex.replace_btree */

void
hyb_replace_init(void)
{
	DefineCustomBoolVariable("hybridindex.replace_btree",
							 "Makes hybrid indexes where btree ones would be made by default.",
							 "This holds for indexes without USING, and for primary keys and other constraints.",
							 &replace_btree,
							 false,
							 PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							 NULL, NULL, NULL);
}

/* Why an index stays btree. */
typedef struct Refusal
{
	char	   *detail;			/* NULL if the server will refuse it, too */
	char	   *hint;
} Refusal;

/*
 * Every place that decides what an index becomes asks this.  The marker
 * (marker.h) makes hybrid wherever a definition has it.  What a definition
 * without it becomes depends on where its statement runs:
 *
 * - Binary upgrade: it stays what it is.  The dump describes files that are
 *   there, and pg_upgrade restores the database's setting before its tables.
 * - Restore of a dump, in parallel too: by the setting.  A dump says USING btree
 *   of indexes, but of constraints nothing.
 * - Scripts of other extensions: by the setting, as any DDL.  A dump leaves their
 *   tables to the script, and so what these were converted to.
 * - CREATE SCHEMA, functions, others' event triggers: by the setting.  Each
 *   statement within them is a call of the hook of its own.
 * - Background workers and logical apply: by the setting.  The server replicates
 *   no DDL, but triggers may execute it, and some extensions do.
 * - Single-user mode and event_triggers = off: by the setting, where the library
 *   is loaded.  Where it is not, nothing here runs: such an index is btree, and
 *   the marker is an unknown parameter, which is an error.
 */
bool
hyb_replaces_btree(void)
{
	return replace_btree && !IsBinaryUpgrade;
}

static List *
qualified_name(Oid opclass)
{
	HeapTuple	tuple = SearchSysCache1(CLAOID, ObjectIdGetDatum(opclass));
	Form_pg_opclass class;
	List	   *result;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator class %u", opclass);
	class = (Form_pg_opclass) GETSTRUCT(tuple);
	result = list_make2(makeString(get_namespace_name(class->opcnamespace)),
						makeString(pstrdup(NameStr(class->opcname))));
	ReleaseSysCache(tuple);
	return result;
}

/*
 * The operator class of ours for a column: the one that is named, or the one
 * that stands for btree's of that name, or for btree's default.  Ours are found
 * whatever the search path is.  InvalidOid if there is none.
 */
static Oid
find_column_class(Oid type, List *name, Oid hybrid)
{
	Oid			class;

	if (name == NIL)
		class = GetDefaultOpClass(type, BTREE_AM_OID);
	else
	{
		class = get_opclass_oid(hybrid, name, true);
		if (!OidIsValid(class))
			class = get_opclass_oid(BTREE_AM_OID, name, true);
	}
	return OidIsValid(class) ? hyb_twin_class(class, hybrid) : InvalidOid;
}

/*
 * Can a column be one of a hybrid index?  Then `class_name`, if it may have one,
 * becomes the name of its operator class, where that is not found as it is.
 */
static bool
serves(Oid type, List **class_name, Oid hybrid, Refusal *refusal)
{
	List	   *name = class_name == NULL ? NIL : *class_name;
	Oid			class = find_column_class(type, name, hybrid);

	refusal->hint = NULL;
	refusal->detail = OidIsValid(class) ?
		hyb_twin_incomparable(class, type) : NULL;
	if (refusal->detail != NULL)
		return false;
	if (OidIsValid(class) &&
		class == (name == NIL ? GetDefaultOpClass(type, hybrid) :
				  get_opclass_oid(hybrid, name, true)))
		return true;
	if (OidIsValid(class) && class_name != NULL)
	{
		*class_name = qualified_name(class);
		return true;
	}
	if (!OidIsValid(name == NIL ? GetDefaultOpClass(type, BTREE_AM_OID) :
					get_opclass_oid(BTREE_AM_OID, name, true)))
		refusal->detail = NULL;
	else
		refusal->detail = name == NIL ?
			psprintf(_("Data type %s has no default operator class for access method \"hybrid\"."),
					 format_type_be(type)) :
			psprintf(_("Access method \"hybrid\" has no operator class like \"%s\"."),
					 NameListToString(name));
	return false;
}

/* Are there operator classes to look for? */
static bool
names_classes(const IndexStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->indexParams)
		if (lfirst_node(IndexElem, lc)->opclass != NIL)
		return true;
	return false;
}

/* The same of an exclusion constraint. */
static bool
excludes_by_classes(const Constraint *constraint)
{
	ListCell   *lc;

	foreach(lc, constraint->exclusions)
		if (linitial_node(IndexElem, lfirst_node(List, lc))->opclass != NIL)
		return true;
	return false;
}

static void
tell(const char *table, const char *index, const Refusal *refusal)
{
	if (refusal->detail == NULL)
		return;
	ereport(NOTICE,
			(index != NULL ?
			 errmsg("index \"%s\" of table \"%s\" will be of access method \"btree\"",
					index, table) :
			 errmsg("an index of table \"%s\" will be of access method \"btree\"",
					table),
			 errdetail_internal("%s", refusal->detail),
			 refusal->hint ? errhint("%s", refusal->hint) : 0));
}

/* InvalidOid if there is no such column, which is for the server to say. */
static Oid
column_type(Oid relid, const char *name)
{
	HeapTuple	tuple = SearchSysCacheAttName(relid, name);
	Oid			type;

	if (!HeapTupleIsValid(tuple))
		return InvalidOid;
	type = ((Form_pg_attribute) GETSTRUCT(tuple))->atttypid;
	ReleaseSysCache(tuple);
	return type;
}

/*
 * An error if btree has no operator class for a column either.  The server would
 * say the same, and the hint on our classes that goes with it (hooks.c) would lead
 * nowhere: that is for its message, and this is another one.
 */
static void
check_types(const IndexStmt *stmt, Oid hybrid)
{
	Oid			relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	ListCell   *lc;

	if (!OidIsValid(relid) || !hyb_owns(relid))
		return;
	foreach(lc, stmt->indexParams)
	{
		IndexElem  *element = lfirst_node(IndexElem, lc);
		Oid			type = element->name != NULL && element->opclass == NIL ?
			column_type(relid, element->name) : InvalidOid;

		if (OidIsValid(type) && !OidIsValid(GetDefaultOpClass(type, hybrid)) &&
			!OidIsValid(GetDefaultOpClass(type, BTREE_AM_OID)))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("data type %s has no default operator class for access method \"hybrid\"",
							format_type_be(type)),
					 errhint("You must specify an operator class for the index or define a default operator class for the data type.")));
	}
}

static bool
table_serves(Oid relid, bool unique, bool primary, Refusal *refusal)
{
	refusal->hint = NULL;
	if (IsCatalogRelationOid(relid))
	{
		refusal->detail = _("It is an index of a system catalog.");
		return false;
	}
	if (HYB_SUBSCRIBER_NEEDS_BTREE && primary && hyb_has_subscription(relid))
	{
		refusal->detail = _("Subscribers of this version of PostgreSQL cannot find the rows to change through a hybrid primary key.");
		return false;
	}
	if (!HYB_CONSTRAINTS_NEED_BTREE || !unique ||
		(get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE &&
		 !get_rel_relispartition(relid)))
		return true;
	refusal->detail = get_rel_relispartition(relid) ?
		_("Before PostgreSQL 18, unique indexes of the partitioned table, to which it may be attached, can be of access method \"btree\" only.") :
		_("Before PostgreSQL 18, unique indexes of partitioned tables can be of access method \"btree\" only.");
	return false;
}

bool
hyb_replace_serves(Oid relid, bool primary)
{
	Refusal		refusal;

	return table_serves(relid, true, primary, &refusal);
}

static void
set_classes(List *elements, List *names)
{
	ListCell   *lc;
	ListCell   *name;

	forboth(lc, elements, name, names)
		lfirst_node(IndexElem, lc)->opclass = lfirst(name);
}

/* Expressions are analyzed as they will be, for their types. */
static bool
index_serves(IndexStmt *stmt, Oid relid, const char *source, Oid hybrid,
			 Refusal *refusal)
{
	IndexStmt  *analyzed = stmt;
	List	   *names = NIL;
	ListCell   *lc;
	ListCell   *of_analyzed;

	if (!table_serves(relid, stmt->unique, stmt->primary, refusal))
		return false;
	foreach(lc, stmt->indexParams)
		if (lfirst_node(IndexElem, lc)->expr != NULL && !stmt->transformed)
		analyzed = NULL;
	if (analyzed == NULL)
		analyzed = transformIndexStmt(relid, copyObject(stmt),
									  source ? source : "");
	forboth(lc, stmt->indexParams, of_analyzed, analyzed->indexParams)
	{
		IndexElem  *element = lfirst_node(IndexElem, lc);
		Oid			type = element->name ?
			column_type(relid, element->name) :
			exprType(lfirst_node(IndexElem, of_analyzed)->expr);
		List	   *name = element->opclass;

		if (OidIsValid(type) && !serves(type, &name, hybrid, refusal))
			return false;
		names = lappend(names, name);
	}

	/* only now, for otherwise btree is to find its own */
	set_classes(stmt->indexParams, names);
	return true;
}

/*
 * The access method is written, as far as can be told.  An exclusion constraint
 * without USING has become ours when its table was created; what LIKE makes is
 * analyzed already, and none of it is written.
 */
static bool
is_explicit(const HybStatement *statement, const IndexStmt *stmt)
{
	if (stmt->transformed)
		return false;
	if (stmt->isconstraint || statement->source == NULL)
		return stmt->excludeOpNames != NIL;
	return hyb_using_in_create_index(statement->source,
									 Max(stmt->relation->location,
										 statement->location));
}

/*
 * LIKE copies a hybrid index to a table that can have none: it becomes a btree
 * one, with btree's operator classes and the storage parameters that btree has.
 */
static bool
copied_to_btree(IndexStmt *stmt, Oid hybrid)
{
	Oid			relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	Refusal		refusal;
	Datum		options;
	ListCell   *lc;

	if (!stmt->transformed || !OidIsValid(relid) ||
		table_serves(relid, stmt->unique, stmt->primary, &refusal))
		return false;
	tell(stmt->relation->relname, stmt->idxname, &refusal);
	foreach(lc, stmt->indexParams)
	{
		IndexElem  *element = lfirst_node(IndexElem, lc);
		Oid			class = element->opclass == NIL ? InvalidOid :
			hyb_twin_class(get_opclass_oid(hybrid, element->opclass, true),
						   BTREE_AM_OID);

		element->opclass = OidIsValid(class) ? qualified_name(class) : NIL;
		element->opclassopts = NIL;
	}
	options = transformRelOptions((Datum) 0, stmt->options, NULL, NULL, false,
								  false);
	stmt->options = untransformRelOptions(hyb_twin_btree_options(options));
	stmt->accessMethod = DEFAULT_INDEX_TYPE;
	return true;
}

void
hyb_replace_in_index(const HybStatement *statement)
{
	IndexStmt  *stmt = castNode(IndexStmt, statement->tree);
	bool		marked = hyb_marker_in(stmt->options);
	bool		is_btree = strcmp(stmt->accessMethod, DEFAULT_INDEX_TYPE) == 0;
	bool		is_hybrid = strcmp(stmt->accessMethod, "hybrid") == 0;
	Oid			hybrid;
	Oid			relid;
	Refusal		refusal;

	if ((!is_hybrid && !is_btree) ||
		(is_btree && !marked && (!hyb_replaces_btree() ||
								 is_explicit(statement, stmt))))
		return;
	hybrid = get_index_am_oid("hybrid", true);
	if (!OidIsValid(hybrid))
		return;
	if (is_hybrid && copied_to_btree(stmt, hybrid))
		return;
	if (is_hybrid && stmt->isconstraint && stmt->excludeOpNames == NIL)
		stmt->options = hyb_marker_added(stmt->options);
	if (is_hybrid && stmt->excludeOpNames == NIL && !names_classes(stmt))
	{
		check_types(stmt, hybrid);
		return;
	}

	relid = RangeVarGetRelidExtended(stmt->relation,
									 stmt->concurrent ? ShareUpdateExclusiveLock : ShareLock,
									 0, RangeVarCallbackOwnsRelation, NULL);
	if (index_serves(stmt, relid, statement->source, hybrid, &refusal))
		stmt->accessMethod = "hybrid";
	else if (hyb_replaces_btree() && !marked &&
			 (is_btree || stmt->excludeOpNames != NIL))
	{
		tell(stmt->relation->relname, stmt->idxname, &refusal);
		stmt->accessMethod = DEFAULT_INDEX_TYPE;
		return;
	}
	else
	{
		check_types(stmt, hybrid);
		stmt->accessMethod = "hybrid";	/* and the server will say why not */
	}
	if (stmt->isconstraint && stmt->excludeOpNames == NIL)
		stmt->options = hyb_marker_added(stmt->options);
}

/*
 * An exclusion constraint that says no access method.  Where the text is not
 * known (in a function, as the session's first DDL) neither it nor CREATE INDEX
 * is taken to say one.
 */
static bool
excludes_by_default(const HybStatement *statement,
					const Constraint *constraint)
{
	return constraint->contype == CONSTR_EXCLUSION &&
		strcmp(constraint->access_method, DEFAULT_INDEX_TYPE) == 0 &&
		(statement->source == NULL ||
		 !hyb_using_in_exclude(statement->source, constraint->location));
}

void
hyb_replace_in_create_table(const HybStatement *statement)
{
	CreateStmt *stmt = castNode(CreateStmt, statement->tree);
	ListCell   *lc;

	if (!hyb_replaces_btree() || !OidIsValid(get_index_am_oid("hybrid", true)))
		return;
	foreach(lc, stmt->tableElts)
	{
		Constraint *constraint = lfirst(lc);

		if (IsA(constraint, Constraint) &&
			excludes_by_default(statement, constraint))
			constraint->access_method = "hybrid";
	}
}

/*
 * The type that a column will have.  InvalidOid for what is none (serial), or
 * not there: the server knows.
 */
static Oid
future_column_type(const AlterTableStmt *stmt, Oid relid, const char *name)
{
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);
		ColumnDef  *column = (ColumnDef *) cmd->def;
		Type		type;
		Oid			result;

		if (!(cmd->subtype == AT_AddColumn &&
			  strcmp(column->colname, name) == 0) &&
			!(cmd->subtype == AT_AlterColumnType &&
			  strcmp(cmd->name, name) == 0))
			continue;
		type = LookupTypeName(NULL, column->typeName, NULL, true);
		if (type == NULL)
			return InvalidOid;
		result = typeTypeId(type);
		ReleaseSysCache(type);
		return result;
	}
	return column_type(relid, name);
}

bool
hyb_replace_serves_column(const AlterTableStmt *stmt, Oid relid,
						  const char *name)
{
	Oid			type = future_column_type(stmt, relid, name);
	Refusal		refusal;

	return !OidIsValid(type) ||
		!OidIsValid(GetDefaultOpClass(type, BTREE_AM_OID)) ||
		serves(type, NULL, get_index_am_oid("hybrid", true), &refusal);
}

/*
 * The elements of an exclusion constraint of ALTER TABLE.  Expressions are
 * analyzed for their types, which is not possible while their columns change.
 */
static bool
exclusion_serves(const AlterTableStmt *stmt, Oid relid, Constraint *constraint,
				 Oid hybrid, Refusal *refusal)
{
	IndexStmt  *index = makeNode(IndexStmt);
	List	   *names = NIL;
	ListCell   *lc;
	ListCell   *of_names;

	foreach(lc, constraint->exclusions)
	{
		IndexElem  *element = linitial_node(IndexElem, lfirst_node(List, lc));
		List	   *name = element->opclass;
		Oid			type;

		index->indexParams = lappend(index->indexParams, element);
		if (element->name != NULL)
		{
			type = future_column_type(stmt, relid, element->name);
			if (OidIsValid(type) && !serves(type, &name, hybrid, refusal))
				return false;
		}
		else if (list_length(stmt->cmds) > 1)
		{
			refusal->detail = _("It has an expression, whose columns may change in the same command.");
			refusal->hint = NULL;
			return false;
		}
		names = lappend(names, name);
	}
	index->relation = stmt->relation;
	index->accessMethod = DEFAULT_INDEX_TYPE;
	if (!index_serves(index, relid, NULL, hybrid, refusal))
		return false;

	/* those of columns that are new or change, which the index is not told of */
	forboth(lc, index->indexParams, of_names, names)
	{
		IndexElem  *element = lfirst_node(IndexElem, lc);

		if (element->name != NULL)
			element->opclass = lfirst(of_names);
	}
	return true;
}

/* The columns of a constraint of ALTER TABLE; `column` if it is one of that. */
static bool
constraint_serves(const AlterTableStmt *stmt, Oid relid,
				  Constraint *constraint, const ColumnDef *column, Oid hybrid,
				  Refusal *refusal)
{
	List	   *names = constraint->keys;
	ListCell   *lc;

	if (!table_serves(relid, constraint->contype != CONSTR_EXCLUSION,
					  constraint->contype == CONSTR_PRIMARY, refusal))
		return false;
	if (column != NULL)
		names = list_make1(makeString(column->colname));
	foreach(lc, names)
	{
		Oid			type = future_column_type(stmt, relid, strVal(lfirst(lc)));

		if (OidIsValid(type) && !serves(type, NULL, hybrid, refusal))
			return false;
	}
	return constraint->exclusions == NIL ||
		exclusion_serves(stmt, relid, constraint, hybrid, refusal);
}

static void
replace_in_constraint(const HybStatement *statement, Oid relid,
					  Constraint *constraint, const ColumnDef *column)
{
	AlterTableStmt *stmt = castNode(AlterTableStmt, statement->tree);
	bool		marked = hyb_marker_in(constraint->options);
	bool		exclusion = constraint->contype == CONSTR_EXCLUSION;
	Oid			hybrid = get_index_am_oid("hybrid", true);
	Refusal		refusal;

	/* where a class is not found, the server will say so */
	if (exclusion && OidIsValid(hybrid) && excludes_by_classes(constraint) &&
		strcmp(constraint->access_method, "hybrid") == 0)
		(void) exclusion_serves(stmt, relid, constraint, hybrid, &refusal);
	if ((!marked && !hyb_replaces_btree()) || !OidIsValid(hybrid) ||
		constraint->indexname != NULL ||
		(exclusion ? !excludes_by_default(statement, constraint) :
		 (constraint->contype != CONSTR_PRIMARY &&
		  constraint->contype != CONSTR_UNIQUE) ||
		 HYB_WITHOUT_OVERLAPS(constraint)))
		return;
	if (!constraint_serves(stmt, relid, constraint, column, hybrid,
						   &refusal) && !marked)
	{
		tell(stmt->relation->relname, constraint->conname, &refusal);
		return;
	}
	constraint->access_method = "hybrid";
	if (!exclusion)
		constraint->options = hyb_marker_added(constraint->options);
}

void
hyb_replace_in_alter_table(const HybStatement *statement, Oid relid)
{
	AlterTableStmt *stmt = castNode(AlterTableStmt, statement->tree);
	ListCell   *lc;

	foreach(lc, stmt->cmds)
	{
		AlterTableCmd *cmd = lfirst_node(AlterTableCmd, lc);

		if (cmd->subtype == AT_AddConstraint)
			replace_in_constraint(statement, relid,
								  castNode(Constraint, cmd->def), NULL);
		else if (cmd->subtype == AT_AddColumn)
		{
			ColumnDef  *column = castNode(ColumnDef, cmd->def);
			ListCell   *of_column;

			foreach(of_column, column->constraints)
				replace_in_constraint(statement, relid,
									  lfirst_node(Constraint, of_column),
									  column);
		}
	}
}
