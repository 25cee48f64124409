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

#include "access/heapam.h"
#include "access/tableam.h"
#include "base/server.h"
#include "catalog/catalog.h"
#include "catalog/pg_namespace.h"
#include "commands/extension.h"
#include "ddl/convert.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "storage/bufmgr.h"
#include "tcop/utility.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"

/* ---- which indexes ---- */

typedef struct ConvertCandidate
{
	Oid			index;
	uint64		blocks;
} ConvertCandidate;

/* Returns 0 if the index is locked or gone: this only decides the order. */
static uint64
blocks_of_one(Oid indexoid)
{
	Relation	index = hyb_try_open(indexoid, AccessShareLock, NULL);
	uint64		blocks = 0;

	if (index == NULL)
		return 0;
	if (index->rd_rel->relkind == RELKIND_INDEX)
		blocks = RelationGetNumberOfBlocks(index);
	relation_close(index, AccessShareLock);
	return blocks;
}

static uint64
blocks_with_partitions(Oid index)
{
	uint64		blocks = 0;
	ListCell   *lc;

	foreach(lc, find_all_inheritors(index, NoLock, NULL))
		blocks += blocks_of_one(lfirst_oid(lc));
	return blocks;
}

static int
larger_first(const ListCell *a, const ListCell *b)
{
	const ConvertCandidate *first = lfirst(a);
	const ConvertCandidate *second = lfirst(b);

	if (first->blocks != second->blocks)
		return first->blocks > second->blocks ? -1 : 1;
	return first->index < second->index ? -1 : 1;
}

/* Returns true for an index of the access method that is not attached. */
static bool
is_candidate(Form_pg_class form, Oid access_method)
{
	return (form->relkind == RELKIND_INDEX ||
			form->relkind == RELKIND_PARTITIONED_INDEX) &&
		form->relam == access_method && !form->relispartition &&
		!isOtherTempNamespace(form->relnamespace);
}

/*
 * Indexes of other owners are candidates too, so that a NOTICE says that they are
 * skipped.  They are not opened.
 */
static List *
add_convert_candidate(List *candidates, Form_pg_class form)
{
	ConvertCandidate *candidate = palloc(sizeof(ConvertCandidate));

	candidate->index = form->oid;
	candidate->blocks = has_privs_of_role(GetUserId(), form->relowner) ?
		blocks_with_partitions(form->oid) : 0;
	return lappend(candidates, candidate);
}

static List *
sorted_indexes(List *candidates)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	list_sort(candidates, larger_first);
	foreach(lc, candidates)
		indexes = lappend_oid(indexes, ((ConvertCandidate *) lfirst(lc))->index);
	return indexes;
}

/* An error unless the caller may convert the table's indexes.  Locks nothing. */
static void
check_table(Oid table)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	Form_pg_class form;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("relation with OID %u does not exist", table)));
	form = (Form_pg_class) GETSTRUCT(tuple);
	if (form->relkind != RELKIND_RELATION &&
		form->relkind != RELKIND_PARTITIONED_TABLE &&
		form->relkind != RELKIND_MATVIEW)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a table or materialized view",
						NameStr(form->relname))));
	if (!has_privs_of_role(GetUserId(), form->relowner))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_TABLE,
					   NameStr(form->relname));
	ReleaseSysCache(tuple);
}

static List *
add_indexes_of(List *candidates, Oid tableoid, Oid access_method)
{
	Relation	table = try_relation_open(tableoid, AccessShareLock);
	ListCell   *lc;

	if (table == NULL)
		return candidates;
	foreach(lc, RelationGetIndexList(table))
	{
		HeapTuple	tuple = SearchSysCache1(RELOID,
											ObjectIdGetDatum(lfirst_oid(lc)));
		Form_pg_class form;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_class) GETSTRUCT(tuple);
		if (is_candidate(form, access_method))
			candidates = add_convert_candidate(candidates, form);
		ReleaseSysCache(tuple);
	}
	relation_close(table, NoLock);
	return candidates;
}

/*
 * A table comes with its partitions.  Other children are tables of their own, as for
 * REINDEX TABLE.
 */
static List *
table_indexes(Oid table, Oid access_method)
{
	List	   *candidates = NIL;
	List	   *tables;
	ListCell   *lc;

	check_table(table);
	LockRelationOid(table, AccessShareLock);
	tables = get_rel_relkind(table) == RELKIND_PARTITIONED_TABLE ?
		find_all_inheritors(table, AccessShareLock, NULL) :
		list_make1_oid(table);
	foreach(lc, tables)
		candidates = add_indexes_of(candidates, lfirst_oid(lc), access_method);
	return sorted_indexes(candidates);
}

/*
 * Returns true if the btree index belongs to a table of an extension.  A dump leaves
 * such a table to the extension's script, which would make a btree key again.
 */
static bool
is_of_extension(Form_pg_class form)
{
	Oid			extension =
		getExtensionOfObject(RelationRelationId,
							 IndexGetRelation(form->oid, true));

	if (!OidIsValid(extension))
		return false;
	ereport(NOTICE,
			(errmsg("index \"%s\" stays of access method \"btree\": its table belongs to extension \"%s\"",
					NameStr(form->relname), get_extension_name(extension))));
	return true;
}

static List *
indexes_of_schema(Oid schema, Oid access_method)
{
	List	   *candidates = NIL;
	Relation	rel = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	TableScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_class_relnamespace, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(schema));
	scan = table_beginscan_catalog(rel, 1, &key);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (is_candidate(form, access_method) &&
			(access_method != BTREE_AM_OID || !is_of_extension(form)))
			candidates = add_convert_candidate(candidates, form);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	return sorted_indexes(candidates);
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
	return indexes_of_schema(schema, access_method);
}

/* ---- functions ---- */

static Datum
convert_now(FunctionCallInfo fcinfo, bool to_hybrid)
{
	PreventCommandIfReadOnly(to_hybrid ? "hybrid_convert()" : "hybrid_revert()");
	PG_RETURN_OID(hyb_convert_now(PG_GETARG_OID(0),
								  hyb_convert_target(to_hybrid)));
}

/*
 * Begins a procedure that commits, and returns its argument.  It has to be called by
 * a CALL of its own, or by a procedure that may commit.
 */
static Oid
begin_procedure(FunctionCallInfo fcinfo, const char *procedure,
				const char *argument)
{
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
				 errhint("%s() and %s(), which lock the table, can.",
						 hyb_sql_function("hybrid_convert"),
						 hyb_sql_function("hybrid_revert"))));
	PreventCommandIfReadOnly(procedure);
	if (SPI_connect_ext(SPI_OPT_NONATOMIC) != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect_ext failed");
	return PG_GETARG_OID(0);
}

static Datum
convert_one(FunctionCallInfo fcinfo, const char *procedure, bool to_hybrid)
{
	Oid			index = begin_procedure(fcinfo, procedure, "index");
	HybConversion conversion;

	if (hyb_convert_concurrently(&conversion, index,
								 hyb_convert_target(to_hybrid), true) ==
		HYB_CONVERT_REFUSED)
		hyb_conversion_refuse(&conversion);
	SPI_finish();
	PG_RETURN_VOID();
}

static Datum
convert_many(FunctionCallInfo fcinfo, const char *procedure,
			 List *(*candidates) (Oid object, Oid access_method),
			 bool to_hybrid)
{
	Oid			object = begin_procedure(fcinfo, procedure, "table or schema");
	Oid			target = hyb_convert_target(to_hybrid);
	ListCell   *lc;

	foreach(lc, candidates(object, hyb_convert_target(!to_hybrid)))
	{
		HybConversion conversion;
		HybConvertStatus status =
			hyb_convert_concurrently(&conversion, lfirst_oid(lc), target, false);

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

PG_FUNCTION_INFO_V1(hybrid_convert);
Datum
hybrid_convert(PG_FUNCTION_ARGS)
{
	return convert_now(fcinfo, true);
}

PG_FUNCTION_INFO_V1(hybrid_revert);
Datum
hybrid_revert(PG_FUNCTION_ARGS)
{
	return convert_now(fcinfo, false);
}

PG_FUNCTION_INFO_V1(hybrid_convert_concurrently);
Datum
hybrid_convert_concurrently(PG_FUNCTION_ARGS)
{
	return convert_one(fcinfo, "hybrid_convert_concurrently", true);
}

PG_FUNCTION_INFO_V1(hybrid_revert_concurrently);
Datum
hybrid_revert_concurrently(PG_FUNCTION_ARGS)
{
	return convert_one(fcinfo, "hybrid_revert_concurrently", false);
}

PG_FUNCTION_INFO_V1(hybrid_convert_table);
Datum
hybrid_convert_table(PG_FUNCTION_ARGS)
{
	return convert_many(fcinfo, "hybrid_convert_table", table_indexes, true);
}

PG_FUNCTION_INFO_V1(hybrid_revert_table);
Datum
hybrid_revert_table(PG_FUNCTION_ARGS)
{
	return convert_many(fcinfo, "hybrid_revert_table", table_indexes, false);
}

PG_FUNCTION_INFO_V1(hybrid_convert_schema);
Datum
hybrid_convert_schema(PG_FUNCTION_ARGS)
{
	return convert_many(fcinfo, "hybrid_convert_schema", schema_indexes, true);
}

PG_FUNCTION_INFO_V1(hybrid_revert_schema);
Datum
hybrid_revert_schema(PG_FUNCTION_ARGS)
{
	return convert_many(fcinfo, "hybrid_revert_schema", schema_indexes, false);
}
