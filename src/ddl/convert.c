/*
 * convert.c
 *		Makes a btree index a hybrid one, or the other way round, within a
 *		transaction; and the functions that people call.
 *
 * Writers of the table wait from the beginning, readers for the end, when the
 * twin takes the index's place.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/access.h"
#include "base/server.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "commands/progress.h"
#include "commands/tablecmds.h"
#include "ddl/convert.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "pgstat.h"
#include "storage/lmgr.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(hybrid_convert);
PG_FUNCTION_INFO_V1(hybrid_revert);
PG_FUNCTION_INFO_V1(hybrid_convert_concurrently);
PG_FUNCTION_INFO_V1(hybrid_revert_concurrently);
PG_FUNCTION_INFO_V1(hybrid_convert_table);
PG_FUNCTION_INFO_V1(hybrid_revert_table);
PG_FUNCTION_INFO_V1(hybrid_convert_schema);
PG_FUNCTION_INFO_V1(hybrid_revert_schema);

Oid
hyb_convert_target(bool to_hybrid)
{
	return to_hybrid ? get_index_am_oid("hybrid", false) : BTREE_AM_OID;
}

/*
 * As REINDEX builds an index: rows that the old index was right to leave out
 * are no reason to keep older snapshots from using the twin.  BuildIndexInfo,
 * too, runs functions of expressions and predicates: as the table's owner.
 */
static void
build_twin(const HybConvertPart *part)
{
	Relation	table = table_open(part->table, NoLock);
	Relation	old_index = index_open(part->index, NoLock);
	Relation	twin = index_open(part->twin, AccessExclusiveLock);
	bool		as_reindex = !old_index->rd_index->indcheckxmin;
	HybCaller	caller;

	hyb_become_owner(&caller, table->rd_rel->relowner);
	index_build(table, twin, BuildIndexInfo(twin), as_reindex, true);
	hyb_become_caller(&caller);
	index_close(twin, NoLock);
	index_close(old_index, NoLock);
	table_close(table, NoLock);
	CommandCounterIncrement();
}

/* This transaction itself may be reading the table. */
static void
check_not_in_use(const HybConversion *conversion, const char *command)
{
	ListCell   *lc;

	foreach(lc, conversion->tables)
	{
		Relation	table = table_open(lfirst_oid(lc), NoLock);

		CheckTableNotInUse(table, command);
		table_close(table, NoLock);
	}
}

static void
lock_for_swap(const HybConversion *conversion)
{
	ListCell   *lc;

	foreach(lc, conversion->tables)
		LockRelationOid(lfirst_oid(lc), AccessExclusiveLock);
	foreach(lc, conversion->parts)
		LockRelationOid(((HybConvertPart *) lfirst(lc))->index,
						AccessExclusiveLock);
}

Oid
hyb_conversion_now(HybConversion *conversion)
{
	bool		to_hybrid = conversion->access_method != BTREE_AM_OID;
	ListCell   *lc;

	check_not_in_use(conversion, to_hybrid ? "convert index of" : "revert index of");
	hyb_conversion_create(conversion);
	foreach(lc, conversion->parts)
	{
		HybConvertPart *part = lfirst(lc);

		hyb_conversion_progress(conversion, part, PROGRESS_CREATEIDX_PHASE_BUILD);
		if (part->stored)
			build_twin(part);
	}
	lock_for_swap(conversion);
	hyb_conversion_swap(conversion);
	hyb_conversion_drop(conversion);
	pgstat_progress_end_command();
	return ((HybConvertPart *) linitial(conversion->parts))->twin;
}

Oid
hyb_convert_now(Oid index, Oid access_method)
{
	HybConversion conversion;

	switch (hyb_conversion_open(&conversion, index, access_method, false))
	{
		case HYB_CONVERT_REFUSED:
			hyb_conversion_refuse(&conversion);
			break;
		case HYB_CONVERT_ALREADY:
			hyb_conversion_already(&conversion);
			hyb_conversion_tell(&conversion);
			return index;
		case HYB_CONVERT_READY:
			break;
	}
	hyb_conversion_tell(&conversion);
	return hyb_conversion_now(&conversion);
}

static Datum
convert(FunctionCallInfo fcinfo, bool to_hybrid)
{
	PreventCommandIfReadOnly(to_hybrid ? "hybrid_convert()" : "hybrid_revert()");
	PG_RETURN_OID(hyb_convert_now(PG_GETARG_OID(0),
								  hyb_convert_target(to_hybrid)));
}

Datum
hybrid_convert(PG_FUNCTION_ARGS)
{
	return convert(fcinfo, true);
}

Datum
hybrid_revert(PG_FUNCTION_ARGS)
{
	return convert(fcinfo, false);
}

static Oid
named_object(FunctionCallInfo fcinfo, const char *what)
{
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("%s must not be null", what)));
	return PG_GETARG_OID(0);
}

/* CALL as a statement of its own, or in a procedure that may commit. */
static void
begin_transactions(FunctionCallInfo fcinfo, const char *procedure)
{
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
}

static Datum
convert_one(FunctionCallInfo fcinfo, bool to_hybrid)
{
	Oid			index = named_object(fcinfo, "index");
	HybConversion conversion;

	begin_transactions(fcinfo, to_hybrid ? "hybrid_convert_concurrently" :
					   "hybrid_revert_concurrently");
	if (hyb_convert_concurrently(&conversion, index,
								 hyb_convert_target(to_hybrid), true) ==
		HYB_CONVERT_REFUSED)
		hyb_conversion_refuse(&conversion);
	SPI_finish();
	PG_RETURN_VOID();
}

Datum
hybrid_convert_concurrently(PG_FUNCTION_ARGS)
{
	return convert_one(fcinfo, true);
}

Datum
hybrid_revert_concurrently(PG_FUNCTION_ARGS)
{
	return convert_one(fcinfo, false);
}

static Datum
convert_many(FunctionCallInfo fcinfo, const char *procedure,
			 List *(*candidates) (Oid object, Oid access_method),
			 bool to_hybrid)
{
	Oid			object = named_object(fcinfo, "table or schema");

	begin_transactions(fcinfo, procedure);
	hyb_convert_many(object, candidates, to_hybrid);
	SPI_finish();
	PG_RETURN_VOID();
}

Datum
hybrid_convert_table(PG_FUNCTION_ARGS)
{
	return convert_many(fcinfo, "hybrid_convert_table", hyb_table_indexes, true);
}

Datum
hybrid_revert_table(PG_FUNCTION_ARGS)
{
	return convert_many(fcinfo, "hybrid_revert_table", hyb_table_indexes, false);
}

Datum
hybrid_convert_schema(PG_FUNCTION_ARGS)
{
	return convert_many(fcinfo, "hybrid_convert_schema", hyb_schema_indexes,
						true);
}

Datum
hybrid_revert_schema(PG_FUNCTION_ARGS)
{
	return convert_many(fcinfo, "hybrid_revert_schema", hyb_schema_indexes,
						false);
}
