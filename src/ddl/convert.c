/*
 * convert.c
 *		The SQL functions that convert indexes: one, or those of a table or schema.
 *
 * Of many indexes each is converted in transactions of its own, the largest first.
 * One that cannot be converted is skipped.  An error ends all, as in REINDEX
 * SCHEMA, since a full disk or a cancelled statement would meet the next index as
 * well.  What has been converted stays so, and the next call goes on.  It skips an
 * index with an invalid twin, for that index may have caused the error.
 */
#include "base/compat.h"

#include "base/server.h"
#include "catalog/catalog.h"
#include "catalog/pg_namespace.h"
#include "ddl/convert.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "store/settings.h"
#include "utils/guc.h"

/* ---- which indexes ---- */

/* Citus hides indexes of shards from queries, unless this setting is off. */
static void
show_shards(void)
{
	const char *setting = "citus.override_table_visibility";

	if (GetConfigOption(setting, true, false) != NULL)
		(void) set_config_option(setting, "off", PGC_USERSET, PGC_S_SESSION,
								 GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Returns the indexes of an access method, the largest first by the catalog, but not
 * those that are attached to others.  Those of inheritance children come last, for
 * most are converted with their parents' and gone then.  `where` has a place for the
 * OID of the object that they belong to.  Indexes of other owners come too, so that a
 * NOTICE says that they are skipped.
 *
 * A dump leaves a table of an extension to the extension's script, which would make a
 * btree key again.  If `extensions` is false, such indexes are left out.
 */
static List *
find_indexes(const char *where, Oid object, Oid access_method, bool extensions)
{
	StringInfoData query;
	int			nest_level = NewGUCNestLevel();
	List	   *indexes = NIL;

	initStringInfo(&query);
	appendStringInfo(&query,
					 "SELECT c.oid, c.relname, min(e.extname::text)"
					 " FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid"
					 " JOIN pg_class part ON part.relkind IN ('i', 'I') AND c.oid ="
					 " CASE WHEN part.relispartition THEN pg_partition_root(part.oid) ELSE part.oid END"
					 " LEFT JOIN pg_depend d ON d.classid = 'pg_class'::regclass"
					 " AND d.objid = i.indrelid AND d.deptype = 'e'"
					 " LEFT JOIN pg_extension e ON e.oid = d.refobjid"
					 " WHERE c.relam = %u AND NOT c.relispartition"
					 " AND NOT pg_is_other_temp_schema(c.relnamespace) AND ",
					 access_method);
	appendStringInfo(&query, where, object);
	appendStringInfoString(&query,
						   " GROUP BY c.oid, c.relname, i.indrelid"
						   " ORDER BY EXISTS (SELECT FROM pg_inherits WHERE inhrelid = i.indrelid),"
						   " sum(part.relpages) DESC, c.oid");
	HYB_RESTRICT_SEARCH_PATH();
	show_shards();
	if (SPI_execute(query.data, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute failed");
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		TupleDesc	columns = SPI_tuptable->tupdesc;
		char	   *extension = SPI_getvalue(row, columns, 3);
		bool		isnull;

		if (extension == NULL || extensions)
			indexes = lappend_oid(indexes,
								  DatumGetObjectId(SPI_getbinval(row, columns, 1, &isnull)));
		else
			ereport(NOTICE,
					(errmsg("index \"%s\" stays of access method \"btree\": its table belongs to extension \"%s\"",
							SPI_getvalue(row, columns, 2), extension)));
	}
	SPI_freetuptable(SPI_tuptable);
	AtEOXact_GUC(false, nest_level);
	return indexes;
}

/* An error unless the caller may convert the table's indexes.  Locks nothing. */
static void
check_table(Oid table)
{
	char	   *name = get_rel_name(table);
	char		kind = get_rel_relkind(table);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", table)));
	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
		kind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table or materialized view", name)));
	if (!hyb_owns(table))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE, name);
}

/*
 * A table comes with its partitions, and with children of the same owner.  Most
 * indexes of children are converted with the parent's, and the rest after them.
 */
static List *
table_indexes(Oid table, Oid access_method)
{
	check_table(table);
	return find_indexes("i.indislive AND i.indrelid IN"
						" (WITH RECURSIVE below AS"
						" (SELECT oid, relowner FROM pg_class WHERE oid = %u"
						" UNION SELECT t.oid, b.relowner FROM below b"
						" JOIN pg_inherits ON inhparent = b.oid JOIN pg_class t ON t.oid = inhrelid"
						" WHERE t.relispartition OR t.relowner = b.relowner)"
						" SELECT oid FROM below)",
						table, access_method, true);
}

/* The caller has to own the schema, as for REINDEX SCHEMA. */
static List *
schema_indexes(Oid schema, Oid access_method)
{
	char	   *name = get_namespace_name(schema);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_SCHEMA),
				 errmsg("schema with OID %u does not exist", schema)));
	if (!HYB_OWNS_SCHEMA(schema, GetUserId()))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_SCHEMA, name);
	if (IsCatalogNamespace(schema) || IsToastNamespace(schema))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot convert indexes of system schema \"%s\"",
						name)));
	return find_indexes("c.relnamespace = %u", schema, access_method,
						access_method != BTREE_AM_OID);
}

/* ---- functions ---- */

/*
 * The second argument, if there is one and it is not NULL.  An error if ALTER INDEX
 * would not take it.
 */
static const char *
layout_argument(FunctionCallInfo fcinfo)
{
	const HybOptions *options;
	char	   *value;

	if (PG_NARGS() < 2 || PG_ARGISNULL(1))
		return NULL;
	value = text_to_cstring(PG_GETARG_TEXT_PP(1));
	options = (const HybOptions *) hyb_amoptions(hyb_layout_set((Datum) 0, value), true);
	return options->layout == HYB_OPTION_TRIE ?
		HYB_LAYOUT_NAME_TRIE : HYB_LAYOUT_NAME_COLUMNAR;
}

/* An error if there is no hybrid_hot, but for a NULL as index. */
static Oid
hot_method(FunctionCallInfo fcinfo)
{
	Oid			method = get_index_am_oid("hybrid_hot", true);

	if (!OidIsValid(method) && !PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("access method \"%s\" does not exist", "hybrid_hot"),
#ifdef HYB_HAVE_SUMMARIZING
				 errhint("Make it with SELECT %s().",
						 hyb_sql_function("hybrid_make_operator_classes"))
#else
				 errdetail("It needs PostgreSQL 16 or later.")
#endif
				 ));
	return method;
}

static Datum
convert_now(FunctionCallInfo fcinfo, Oid target)
{
	PreventCommandIfReadOnly(psprintf("%s()", get_func_name(fcinfo->flinfo->fn_oid)));
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	PG_RETURN_OID(hyb_convert_now(PG_GETARG_OID(0), target, layout_argument(fcinfo), true));
}

/*
 * Begins a procedure that commits, and returns its argument.  It has to be called by
 * a CALL of its own, or by a procedure that may commit.
 */
static Oid
begin_procedure(FunctionCallInfo fcinfo, const char *argument)
{
	char	   *procedure = get_func_name(fcinfo->flinfo->fn_oid);

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", argument)));
	if (fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic || IsSubTransaction())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("%s() cannot be called in a transaction block or a function",
						procedure),
				 strcmp(procedure, "hybrid_convert_hot_concurrently") == 0 ?
				 errhint("%s(), which locks the table, can.",
						 hyb_sql_function("hybrid_convert_hot")) :
				 errhint("%s() and %s(), which lock the table, can.",
						 hyb_sql_function("hybrid_convert"),
						 hyb_sql_function("hybrid_revert"))));
	PreventCommandIfReadOnly(procedure);
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect_ext failed");
	return PG_GETARG_OID(0);
}

static Datum
convert_one(FunctionCallInfo fcinfo, Oid target)
{
	Oid			index = begin_procedure(fcinfo, "index");
	const char *layout = layout_argument(fcinfo);
	HybConversion conversion;

	if (hyb_convert_concurrently(&conversion, index, target, layout, true) ==
		HYB_CONVERT_REFUSED)
		hyb_refuse(&conversion.refusal);
	SPI_finish();
	PG_RETURN_VOID();
}

static Datum
convert_many(FunctionCallInfo fcinfo,
			 List *(*candidates) (Oid object, Oid access_method),
			 bool to_hybrid)
{
	Oid			object = begin_procedure(fcinfo, "table or schema");
	Oid			target = hyb_convert_target(to_hybrid);
	Oid			hot = to_hybrid ? InvalidOid : get_index_am_oid("hybrid_hot", true);
	List	   *indexes = candidates(object, hyb_convert_target(!to_hybrid));
	ListCell   *lc;

	if (OidIsValid(hot))
		indexes = list_concat(indexes, candidates(object, hot));
	foreach(lc, indexes)
	{
		HybConversion conversion;
		HybConvertStatus status =
			hyb_convert_concurrently(&conversion, lfirst_oid(lc), target, NULL, false);

		/* without a name the index is gone */
		if (status == HYB_CONVERT_REFUSED && conversion.name != NULL)
			hyb_conversion_skip(&conversion);
		else if (status == HYB_CONVERT_READY)
			ereport(NOTICE,
					(errmsg("index \"%s\" is of access method \"%s\" now",
							conversion.name, get_am_name(target))));
	}
	SPI_finish();
	PG_RETURN_VOID();
}

#define CONVERT_FUNCTION(name, call) \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS) \
	{ \
		return call; \
	} \
	extern Datum name(PG_FUNCTION_ARGS)

CONVERT_FUNCTION(hybrid_convert, convert_now(fcinfo, hyb_convert_target(true)));
CONVERT_FUNCTION(hybrid_revert, convert_now(fcinfo, hyb_convert_target(false)));
CONVERT_FUNCTION(hybrid_convert_hot, convert_now(fcinfo, hot_method(fcinfo)));
CONVERT_FUNCTION(hybrid_convert_concurrently, convert_one(fcinfo, hyb_convert_target(true)));
CONVERT_FUNCTION(hybrid_revert_concurrently, convert_one(fcinfo, hyb_convert_target(false)));
CONVERT_FUNCTION(hybrid_convert_hot_concurrently, convert_one(fcinfo, hot_method(fcinfo)));
CONVERT_FUNCTION(hybrid_convert_table, convert_many(fcinfo, table_indexes, true));
CONVERT_FUNCTION(hybrid_revert_table, convert_many(fcinfo, table_indexes, false));
CONVERT_FUNCTION(hybrid_convert_schema, convert_many(fcinfo, schema_indexes, true));
CONVERT_FUNCTION(hybrid_revert_schema, convert_many(fcinfo, schema_indexes, false));
