/*
 * replace.c
 *		Makes hybrid indexes where a statement means the default access method.
 *
 * The parse tree of a constraint has a field for the access method.  The grammar
 * never fills it, but transformIndexConstraint (parser/parse_utilcmd.c) uses it.  The
 * indexes of CREATE TABLE come as statements of their own when the table exists, so
 * the types of its columns are known.
 */
#include "base/compat.h"

#include "access/reloptions.h"
#include "catalog/catalog.h"
#include "catalog/pg_type.h"
#include "common/keywords.h"
#include "ddl/match.h"
#include "ddl/statement.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_type.h"
#include "parser/parse_utilcmd.h"
#include "parser/scanner.h"
#include "server/before_18/ddl_before_18.h"
#include "utils/guc.h"

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

/*
 * The marker makes hybrid wherever a definition has it.  Without it the parent's
 * constraint decides (means_hybrid).  Else the setting does, also in restores of
 * dumps, scripts of extensions, functions, event triggers, background workers and
 * logical apply.  The exceptions:
 *
 * - In a binary upgrade nothing changes: the dump describes files that exist, and
 *   pg_upgrade restores the database's setting before its tables.
 * - In single-user mode, or with event_triggers = off, the library may not be loaded.
 *   Then such an index is btree, and the marker an unknown parameter: an error.
 */
bool
hyb_replaces_btree(void)
{
	return replace_btree && !IsBinaryUpgrade;
}

/*
 * Returns the operator class of hybrid for a column, whatever the search path is.  It
 * is the one of that name, or the twin of btree's of that name or of btree's default.
 * InvalidOid if there is none.
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
 * Returns true if a column can be one of a hybrid index.  Then the name of its
 * operator class, if it may have one, becomes one that the server finds.  Else
 * `detail` says why not, or is NULL if btree has no class either.
 */
static bool
serves(Oid type, List **class_name, Oid hybrid, char **detail)
{
	List	   *name = class_name == NULL ? NIL : *class_name;
	Oid			class = find_column_class(type, name, hybrid);

	*detail = OidIsValid(class) ? hyb_twin_incomparable(class, type) : NULL;
	if (*detail != NULL)
		return false;
	if (OidIsValid(class) &&
		class == (name == NIL ? GetDefaultOpClass(type, hybrid) :
				  get_opclass_oid(hybrid, name, true)))
		return true;
	if (OidIsValid(class) && class_name != NULL)
	{
		*class_name = hyb_class_name(class);
		return true;
	}
	if (OidIsValid(name == NIL ? GetDefaultOpClass(type, BTREE_AM_OID) :
				   get_opclass_oid(BTREE_AM_OID, name, true)))
		*detail = name == NIL ?
			psprintf(_("Data type %s has no default operator class for access method \"hybrid\"."),
					 format_type_be(type)) :
			psprintf(_("Access method \"hybrid\" has no operator class like \"%s\"."),
					 NameListToString(name));
	return false;
}

static bool
names_classes(const IndexStmt *stmt)
{
	ListCell   *lc;

	foreach(lc, stmt->indexParams)
		if (lfirst_node(IndexElem, lc)->opclass != NIL)
		return true;
	return false;
}

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
tell(const char *table, const char *index, const char *detail)
{
	if (detail == NULL)
		return;
	ereport(NOTICE,
			(index != NULL ?
			 errmsg("index \"%s\" of table \"%s\" will be of access method \"btree\"",
					index, table) :
			 errmsg("an index of table \"%s\" will be of access method \"btree\"",
					table),
			 errdetail_internal("%s", detail)));
}

/* Returns InvalidOid if there is no such column: the server reports that. */
static Oid
column_type(Oid relid, const char *name)
{
	return get_atttype(relid, get_attnum(relid, name));
}

/*
 * Fails if the table may have no hybrid index, or if btree has no operator class for a
 * column either.  In that case the server's own message would get the hint on our
 * classes (server/errors.c), which is wrong here.
 */
static void
check_index(const IndexStmt *stmt, Oid hybrid)
{
	Oid			relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	char	   *reason;
	ListCell   *lc;

	if (!OidIsValid(relid) || !hyb_owns(relid))
		return;
	reason = hyb_table_needs_btree(relid);
	if (reason != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("an index of table \"%s\" has to be of access method \"btree\"",
						stmt->relation->relname),
				 errdetail_internal("%s", reason)));
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

/*
 * Returns why a partition is not heap, or NULL.  An index of the partitioned table has
 * one of each partition.
 */
static char *
partition_not_heap(Oid relid)
{
	ListCell   *lc;

	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return NULL;
	foreach(lc, find_all_inheritors(relid, NoLock, NULL))
	{
		char	   *detail = hyb_not_heap(lfirst_oid(lc));

		if (detail != NULL)
			return psprintf(_("Partition \"%s\": %s"), get_rel_name(lfirst_oid(lc)),
							detail);
	}
	return NULL;
}

/* Returns why an index of the table has to be btree, or NULL. */
static char *
table_needs_btree(Oid relid, bool unique, bool primary)
{
	char	   *reason = IsCatalogRelationOid(relid) ?
		_("It is an index of a system catalog.") : hyb_table_needs_btree(relid);

	if (reason == NULL)
		reason = hyb_not_heap(relid);
	if (reason == NULL)
		reason = partition_not_heap(relid);
	return reason != NULL ? reason :
		hyb_before_18_needs_btree(relid, unique, primary);
}

bool
hyb_replace_serves(Oid relid, bool primary)
{
	return table_needs_btree(relid, true, primary) == NULL;
}

/*
 * Returns the type that a column has, or will have after ALTER TABLE.  InvalidOid if
 * it is not one (serial).
 */
static Oid
future_column_type(const AlterTableStmt *alter, Oid relid, const char *name)
{
	ListCell   *lc;

	foreach(lc, alter != NULL ? alter->cmds : NIL)
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

/*
 * Returns true if the index can be hybrid, and names its operator classes.  Analyzes
 * expressions for their types.  The index may be that of a constraint of ALTER TABLE.
 */
static bool
index_serves(IndexStmt *stmt, Oid relid, const char *source,
			 const AlterTableStmt *alter, Oid hybrid, char **detail)
{
	IndexStmt  *analyzed = stmt;
	List	   *names = NIL;
	ListCell   *lc;
	ListCell   *of_analyzed;

	*detail = table_needs_btree(relid, stmt->unique, stmt->primary);
	if (*detail != NULL)
		return false;
	foreach(lc, stmt->indexParams)
		if (lfirst_node(IndexElem, lc)->expr != NULL && !stmt->transformed)
		analyzed = NULL;
	if (analyzed == NULL && alter != NULL && list_length(alter->cmds) > 1)
	{
		*detail = _("It has an expression, whose columns may change in the same command.");
		return false;
	}
	if (analyzed == NULL)
		analyzed = transformIndexStmt(relid, copyObject(stmt),
									  source ? source : "");
	forboth(lc, stmt->indexParams, of_analyzed, analyzed->indexParams)
	{
		IndexElem  *element = lfirst_node(IndexElem, lc);
		Oid			type = element->name ?
			future_column_type(alter, relid, element->name) :
			exprType(lfirst_node(IndexElem, of_analyzed)->expr);
		List	   *name = element->opclass;

		if (OidIsValid(type) && !serves(type, &name, hybrid, detail))
			return false;
		names = lappend(names, name);
	}

	/* not before, for an index that stays btree needs btree's classes */
	forboth(lc, stmt->indexParams, of_analyzed, names)
		lfirst_node(IndexElem, lc)->opclass = lfirst(of_analyzed);
	return true;
}

/* ---- whether the access method is written ---- */

/* Returns what the scanner returns for a keyword. */
static int
keyword_token(const char *keyword)
{
	return ScanKeywordTokens[ScanKeywordLookup(keyword, &ScanKeywords)];
}

/* The scanner's notices and warnings of a text have been sent when it was parsed. */
static void
mute_scanner(void)
{
	(void) set_config_option("client_min_messages", "error", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("log_min_messages", "error", PGC_SUSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Returns true if USING is written in CREATE INDEX, before its first parenthesis, or
 * in EXCLUDE, right behind that word.  The grammar fills in "btree" without USING, so
 * parse trees do not tell.
 *
 * The statement, or its table's name, or the constraint is at byte `location` of the
 * text.  A negative one is the beginning, and a tree that was made by hand may have
 * that of another text.  A constraint may be named EXCLUDE.  The grammar has accepted
 * the text, so its tokens raise no errors up to there.
 */
static bool
using_is_written(const char *source, int location, bool exclude)
{
	core_yy_extra_type extra;
	core_yyscan_t scanner;
	const int	using_token = keyword_token("using");
	const int	exclude_token = keyword_token("exclude");
	const int	constraint_token = keyword_token("constraint");
	core_YYSTYPE value;
	int			nest_level;
	int			token;
	bool		found = false;

	if (location > 0)
		source += Min(location, strlen(source));
	nest_level = NewGUCNestLevel();
	mute_scanner();
	scanner = scanner_init(source, &extra, &ScanKeywords, ScanKeywordTokens);
	do
	{
		token = core_yylex(&value, &location, scanner);
		if (exclude && token == constraint_token)
			(void) core_yylex(&value, &location, scanner);
		else if (exclude && token == exclude_token)
		{
			found = core_yylex(&value, &location, scanner) == using_token;
			break;
		}
		if (!exclude)
			found = token == using_token;
	} while (!found && token != 0 && (exclude || token != '('));
	scanner_finish(scanner);
	AtEOXact_GUC(false, nest_level);
	return found;
}

/*
 * Returns true if the statement names the access method, as far as we can tell.  An
 * exclusion constraint without USING has become ours with CREATE TABLE; what LIKE
 * makes is analyzed already.
 */
static bool
is_explicit(const HybStatement *statement, const IndexStmt *stmt)
{
	if (stmt->transformed)
		return false;
	if (stmt->isconstraint || statement->source == NULL)
		return stmt->excludeOpNames != NIL;
	return using_is_written(statement->source,
							Max(stmt->relation->location, statement->location),
							false);
}

/*
 * Returns true if a PRIMARY KEY or UNIQUE constraint without the marker is to be
 * hybrid: by the setting, or by the parent's constraint of these columns.
 *
 * An extension may make a child's constraint from what the server prints of the
 * parent's (pg_get_constraintdef), which has no access method.  TimescaleDB does, and
 * INSERT ... ON CONFLICT then wants both to have the same one.  So within a function
 * or an extension's command the parent's access method is the child's.  A statement by
 * itself may be a dump's, which prints parents and children as they are.
 */
static bool
means_hybrid(const HybStatement *statement, Oid relid, bool primary, List *keys,
			 List *included, Oid hybrid)
{
	Oid			above = statement->nested ?
		hyb_constraint_index_above(relid, primary, keys, included) : InvalidOid;

	return OidIsValid(above) ? hyb_index_is_of(above, hybrid) :
		hyb_replaces_btree();
}

/* The same for the index of a constraint of CREATE TABLE. */
static bool
index_means_hybrid(const HybStatement *statement, const IndexStmt *stmt, Oid hybrid)
{
	List	   *names[2] = {NIL, NIL};
	ListCell   *lc;

	if (!stmt->isconstraint || stmt->excludeOpNames != NIL)
		return hyb_replaces_btree() && !is_explicit(statement, stmt);
	foreach(lc, stmt->indexParams)
		names[0] = lappend(names[0], makeString(lfirst_node(IndexElem, lc)->name));
	foreach(lc, stmt->indexIncludingParams)
		names[1] = lappend(names[1], makeString(lfirst_node(IndexElem, lc)->name));
	return means_hybrid(statement, RangeVarGetRelid(stmt->relation, NoLock, true),
						stmt->primary, names[0], names[1], hybrid);
}

/* Returns those storage parameters that a btree index may have. */
static List *
btree_options(List *options)
{
	Datum		parameters = transformRelOptions((Datum) 0, options, NULL, NULL,
												 false, false);

	return untransformRelOptions(hyb_btree_options(parameters));
}

/*
 * LIKE copies a hybrid index to a table that should have none: it becomes btree, with
 * btree's operator classes and the storage parameters that btree has.
 */
static bool
copied_to_btree(IndexStmt *stmt, Oid hybrid)
{
	Oid			relid = RangeVarGetRelid(stmt->relation, NoLock, true);
	char	   *detail;
	ListCell   *lc;

	if (!stmt->transformed || !OidIsValid(relid))
		return false;
	detail = table_needs_btree(relid, stmt->unique, stmt->primary);
	if (detail == NULL)
		return false;
	tell(stmt->relation->relname, stmt->idxname, detail);
	foreach(lc, stmt->indexParams)
	{
		IndexElem  *element = lfirst_node(IndexElem, lc);
		Oid			class = element->opclass == NIL ? InvalidOid :
			hyb_twin_class(get_opclass_oid(hybrid, element->opclass, true),
						   BTREE_AM_OID);

		element->opclass = OidIsValid(class) ? hyb_class_name(class) : NIL;
		element->opclassopts = NIL;
	}
	stmt->options = btree_options(stmt->options);
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
	char	   *detail;

	if (!is_hybrid && !is_btree)
		return;
	hybrid = get_index_am_oid("hybrid", true);
	if (!OidIsValid(hybrid) ||
		(is_btree && !marked && !index_means_hybrid(statement, stmt, hybrid)))
		return;
	if (is_hybrid && copied_to_btree(stmt, hybrid))
		return;
	if (is_hybrid && stmt->isconstraint && stmt->excludeOpNames == NIL)
		stmt->options = hyb_marker_added(stmt->options);
	if (is_hybrid && stmt->excludeOpNames == NIL && !names_classes(stmt))
	{
		check_index(stmt, hybrid);
		return;
	}

	relid = RangeVarGetRelidExtended(stmt->relation,
									 stmt->concurrent ? ShareUpdateExclusiveLock : ShareLock,
									 0, RangeVarCallbackOwnsRelation, NULL);
	Assert(OidIsValid(relid));
	if (index_serves(stmt, relid, statement->source, NULL, hybrid, &detail))
		stmt->accessMethod = "hybrid";
	else if (!marked &&
			 (is_btree || (hyb_replaces_btree() && stmt->excludeOpNames != NIL)))
	{
		tell(stmt->relation->relname, stmt->idxname, detail);
		stmt->accessMethod = DEFAULT_INDEX_TYPE;
		return;
	}
	else
	{
		check_index(stmt, hybrid);
		stmt->accessMethod = "hybrid";	/* and the server will say why not */
	}
	if (stmt->isconstraint && stmt->excludeOpNames == NIL)
		stmt->options = hyb_marker_added(stmt->options);
}

/*
 * Returns true for an exclusion constraint that does not name an access method.  If
 * the text is unknown (in a function, as the session's first DDL), we assume that
 * neither a constraint nor CREATE INDEX names one.
 */
static bool
excludes_by_default(const HybStatement *statement,
					const Constraint *constraint)
{
	return constraint->contype == CONSTR_EXCLUSION &&
		strcmp(constraint->access_method, DEFAULT_INDEX_TYPE) == 0 &&
		(statement->source == NULL ||
		 !using_is_written(statement->source, constraint->location, true));
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

bool
hyb_replace_serves_column(const AlterTableStmt *stmt, Oid relid,
						  const char *name)
{
	Oid			type = future_column_type(stmt, relid, name);
	char	   *detail;

	return !OidIsValid(type) ||
		!OidIsValid(GetDefaultOpClass(type, BTREE_AM_OID)) ||
		serves(type, NULL, get_index_am_oid("hybrid", true), &detail);
}

/* Returns true if the exclusion constraint of ALTER TABLE can be hybrid. */
static bool
exclusion_serves(const AlterTableStmt *stmt, Oid relid, Constraint *constraint,
				 Oid hybrid, char **detail)
{
	IndexStmt  *index = makeNode(IndexStmt);
	ListCell   *lc;

	foreach(lc, constraint->exclusions)
		index->indexParams = lappend(index->indexParams,
									 linitial(lfirst_node(List, lc)));
	index->relation = stmt->relation;
	index->accessMethod = DEFAULT_INDEX_TYPE;
	return index_serves(index, relid, NULL, stmt, hybrid, detail);
}

/* The same for a constraint of ALTER TABLE, perhaps one of a column. */
static bool
constraint_serves(const AlterTableStmt *stmt, Oid relid,
				  Constraint *constraint, const ColumnDef *column, Oid hybrid,
				  char **detail)
{
	List	   *names = constraint->keys;
	ListCell   *lc;

	*detail = table_needs_btree(relid, constraint->contype != CONSTR_EXCLUSION,
								constraint->contype == CONSTR_PRIMARY);
	if (*detail != NULL)
		return false;
	if (column != NULL)
		names = list_make1(makeString(column->colname));
	foreach(lc, names)
	{
		Oid			type = future_column_type(stmt, relid, strVal(lfirst(lc)));

		if (OidIsValid(type) && !serves(type, NULL, hybrid, detail))
			return false;
	}
	return constraint->exclusions == NIL ||
		exclusion_serves(stmt, relid, constraint, hybrid, detail);
}

static void
replace_in_constraint(const HybStatement *statement, Oid relid,
					  Constraint *constraint, const ColumnDef *column)
{
	AlterTableStmt *stmt = castNode(AlterTableStmt, statement->tree);
	bool		marked = hyb_marker_in(constraint->options);
	bool		exclusion = constraint->contype == CONSTR_EXCLUSION;
	List	   *keys = column == NULL ? constraint->keys :
		list_make1(makeString(column->colname));
	Oid			hybrid = get_index_am_oid("hybrid", true);
	char	   *detail;

	/* the server reports a class that is not found */
	if (exclusion && OidIsValid(hybrid) && excludes_by_classes(constraint) &&
		strcmp(constraint->access_method, "hybrid") == 0)
		(void) exclusion_serves(stmt, relid, constraint, hybrid, &detail);
	if (!OidIsValid(hybrid) || constraint->indexname != NULL ||
		(exclusion ? !excludes_by_default(statement, constraint) :
		 (constraint->contype != CONSTR_PRIMARY &&
		  constraint->contype != CONSTR_UNIQUE) ||
		 HYB_WITHOUT_OVERLAPS(constraint)))
		return;
	if (!marked &&
		!(exclusion ? hyb_replaces_btree() :
		  means_hybrid(statement, relid, constraint->contype == CONSTR_PRIMARY,
					   keys, constraint->including, hybrid)))
		return;
	detail = hyb_before_18_referenced(stmt, relid, constraint, keys);
	if (detail != NULL)
	{
		tell(stmt->relation->relname, constraint->conname, detail);
		constraint->options = btree_options(constraint->options);
		return;
	}
	if (!constraint_serves(stmt, relid, constraint, column, hybrid, &detail) &&
		!marked)
	{
		tell(stmt->relation->relname, constraint->conname, detail);
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
