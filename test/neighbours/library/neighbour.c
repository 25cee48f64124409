/*
 * neighbour.c
 *		A library that does what other extensions do to a server, for TAP tests.
 *
 * Its ProcessUtility hook passes on a copy of each statement, with the schema of the
 * table filled in, as Citus does.  Its table access method is heap under another
 * routine, as those of columnar tables have one of their own.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "catalog/namespace.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

/* ---- statements ---- */

static ProcessUtility_hook_type previous;

static void
fill_in(RangeVar *table)
{
	Oid			relid = RangeVarGetRelid(table, NoLock, true);

	if (table->schemaname == NULL && OidIsValid(relid))
		table->schemaname = get_namespace_name(get_rel_namespace(relid));
}

static void
copy_and_pass_on(PlannedStmt *pstmt, const char *source, bool read_only_tree,
				 ProcessUtilityContext context, ParamListInfo params,
				 QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	ProcessUtility_hook_type next = previous ? previous : standard_ProcessUtility;

	/* a statement that ends transactions outlives no copy */
	if (!IsA(pstmt->utilityStmt, TransactionStmt))
		pstmt = copyObject(pstmt);
	if (IsA(pstmt->utilityStmt, IndexStmt))
		fill_in(((IndexStmt *) pstmt->utilityStmt)->relation);
	else if (IsA(pstmt->utilityStmt, AlterTableStmt))
		fill_in(((AlterTableStmt *) pstmt->utilityStmt)->relation);
	next(pstmt, source, read_only_tree, context, params, environment, dest, completion);
}

void
_PG_init(void)
{
	previous = ProcessUtility_hook;
	ProcessUtility_hook = copy_and_pass_on;
}

/* ---- tables ---- */

static TableAmRoutine routine;

/* The server's function wants the heap's own routine. */
static double
build_range_scan(Relation table, Relation index, struct IndexInfo *info, bool allow_sync,
				 bool anyvisible, bool progress, BlockNumber start, BlockNumber nblocks,
				 IndexBuildCallback callback, void *state, TableScanDesc scan)
{
	double		result;

	table->rd_tableam = GetHeapamTableAmRoutine();
	PG_TRY();
	{
		result = table->rd_tableam->index_build_range_scan(table, index, info, allow_sync, anyvisible, progress,
														   start, nblocks, callback, state, scan);
	}
	PG_FINALLY();
	{
		table->rd_tableam = &routine;
	}
	PG_END_TRY();
	return result;
}

PG_FUNCTION_INFO_V1(neighbour_tableam_handler);

Datum
neighbour_tableam_handler(PG_FUNCTION_ARGS)
{
	routine = *GetHeapamTableAmRoutine();
	routine.index_build_range_scan = build_range_scan;
	PG_RETURN_POINTER(&routine);
}
