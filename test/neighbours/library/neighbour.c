/*
 * neighbour.c
 *		A library that does what other extensions do to a server, for TAP tests.
 *
 * As Citus does, it passes on a copy of each utility statement, with the schema of the
 * table filled in, and hides relations whose names end with a number from queries.  If
 * neighbour.savepoints is set, a subtransaction of a session that copies rows fails.  Its
 * table access method is heap under another routine, as columnar tables have one of
 * their own.  In place of hybridindex's library, its merge workers end at once.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/makefuncs.h"
#include "parser/analyze.h"
#include "parser/parsetree.h"
#include "storage/ipc.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
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

/* ---- relations that are hidden ---- */

static bool hides = true;

static void
hide_shards(ParseState *pstate, Query *query, void *jumbled)
{
	for (int i = 1; hides && i <= list_length(query->rtable); i++)
	{
		RangeTblEntry *entry = rt_fetch(i, query->rtable);
		Node	   *qual;

		if (entry->rtekind != RTE_RELATION || entry->relid != RelationRelationId)
			continue;
		qual = (Node *) makeFuncExpr(F_NAMEREGEXNE, BOOLOID,
									 list_make2(makeVar(i, Anum_pg_class_relname, NAMEOID, -1, C_COLLATION_OID, 0),
												makeConst(TEXTOID, -1, C_COLLATION_OID, -1,
														  CStringGetTextDatum("_[0-9]+$"), false, false)),
									 InvalidOid, C_COLLATION_OID, COERCE_EXPLICIT_CALL);
		query->jointree->quals = make_and_qual(query->jointree->quals, qual);
	}
}

/* ---- savepoints ---- */

static char *version;
static bool copies = false;

static void
send_savepoint(SubXactEvent event, SubTransactionId child, SubTransactionId parent, void *arg)
{
	if (copies && event == SUBXACT_EVENT_START_SUB)
		ereport(ERROR, errmsg("another command is already in progress"));
}

static void
send_savepoints(void)
{
	DefineCustomStringVariable("citus.version", "Shows the version.", NULL, &version,
							   "14.0.1", PGC_INTERNAL, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("neighbour.copies", "Refuses savepoints.", NULL, &copies,
							 false, PGC_USERSET, 0, NULL, NULL, NULL);
	RegisterSubXactCallback(send_savepoint, NULL);
}

void
_PG_init(void)
{
	previous = ProcessUtility_hook;
	ProcessUtility_hook = copy_and_pass_on;

	/* the last argument is a pointer, const in later versions */
	post_parse_analyze_hook = (post_parse_analyze_hook_type) hide_shards;
	DefineCustomBoolVariable("citus.override_table_visibility", "Hides relations.", NULL, &hides,
							 true, PGC_USERSET, 0, NULL, NULL, NULL);
	if (GetConfigOption("neighbour.savepoints", true, false) != NULL)
		send_savepoints();
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

/* ---- workers ---- */

extern PGDLLEXPORT void hybrid_merge_worker_main(Datum arg);

void
hybrid_merge_worker_main(Datum arg)
{
	proc_exit(0);
}
