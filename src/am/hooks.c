/*
 * hooks.c
 *		Errors in plain words where the server gives an internal one.
 *
 * Before PostgreSQL 18 the executor takes every unique index of a table with
 * INSERT ... ON CONFLICT for a btree, and raises an internal error for ours.
 * Planning such a statement opens the table's indexes, which loads this
 * library, so the hook is in place by the time the executor starts.  But ON
 * CONFLICT DO NOTHING without a target does not look at indexes until the
 * executor opens them, which is too late for the hook if nothing in the session
 * has loaded the library before.  So the first call of the handler looks at the
 * statements of the portal that is being run.  Statements within functions,
 * EXECUTE and EXPLAIN ANALYZE have no portal: as a session's first use of the
 * library they run into the server's internal error.
 *
 * From 18 on the first use has another flaw: operator classes of ON CONFLICT
 * are looked at too late (arbiter.c).
 *
 * In both cases the server's error is put in plain words when it is reported,
 * to the log and the client.  A function that catches it sees what the server
 * said.
 *
 * EXPLAIN without ANALYZE executes nothing, and is not refused.
 */
#include "compat.h"

#include "access/xact.h"
#include "am/hooks.h"
#include "utils/elog.h"
#include "utils/memutils.h"

/* When the statement began that called the handler first. */
static TimestampTz first_use = 0;

static emit_log_hook_type previous_emit_log = NULL;

#ifdef HYB_ON_CONFLICT_NEEDS_BTREE

#include "access/table.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "nodes/plannodes.h"
#include "parser/parsetree.h"
#include "tcop/pquery.h"
#include "utils/lsyscache.h"
#include "utils/portal.h"
#include "utils/rel.h"
#include "utils/syscache.h"

static ExecutorStart_hook_type previous_executor_start = NULL;

static bool
is_unique_hybrid(Oid index, Oid hybrid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(index));
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_class) GETSTRUCT(tuple))->relam == hybrid;
	ReleaseSysCache(tuple);
	if (!result)
		return false;

	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(index));
	if (!HeapTupleIsValid(tuple))
		return false;
	result = ((Form_pg_index) GETSTRUCT(tuple))->indisunique;
	ReleaseSysCache(tuple);
	return result;
}

/*
 * Raise an error if the table has a unique index of ours.  The executor has,
 * or takes later, the locks it needs.  Indexes are not opened, since one of
 * them may be on its way into the relation cache.
 */
static void
check_unique_indexes(Oid relid, Oid hybrid)
{
	Relation	rel = table_open(relid, AccessShareLock);
	List	   *indexes = RelationGetIndexList(rel);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Oid			index = lfirst_oid(lc);

		if (is_unique_hybrid(index, hybrid))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("INSERT ... ON CONFLICT is not supported on table \"%s\", which has unique index \"%s\" of access method \"hybrid\"",
							RelationGetRelationName(rel), get_rel_name(index)),
					 errdetail("Before PostgreSQL 18, ON CONFLICT works with btree unique indexes only."),
					 errhint("Use a btree index for this unique index, or PostgreSQL 18 or later.")));
	}
	list_free(indexes);
	table_close(rel, AccessShareLock);
}

static void
check_plan(Plan *plan, List *rtable)
{
	ModifyTable *modify;
	Oid			hybrid;
	ListCell   *lc;

	if (plan == NULL || !IsA(plan, ModifyTable))
		return;
	modify = (ModifyTable *) plan;
	if (modify->onConflictAction == ONCONFLICT_NONE)
		return;
	hybrid = get_index_am_oid("hybrid", true);
	if (!OidIsValid(hybrid))
		return;
	foreach(lc, modify->resultRelations)
	{
		Oid			relid = rt_fetch(lfirst_int(lc), rtable)->relid;

		if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
		{
			ListCell   *child;

			foreach(child, find_all_inheritors(relid, NoLock, NULL))
			{
				if (get_rel_relkind(lfirst_oid(child)) == RELKIND_RELATION)
					check_unique_indexes(lfirst_oid(child), hybrid);
			}
		}
		else if (get_rel_relkind(relid) == RELKIND_RELATION)
			check_unique_indexes(relid, hybrid);
	}
}

static void
check_statement(PlannedStmt *stmt)
{
	if (stmt->commandType == CMD_INSERT || stmt->hasModifyingCTE)
	{
		ListCell   *lc;

		check_plan(stmt->planTree, stmt->rtable);
		foreach(lc, stmt->subplans)
			check_plan(lfirst(lc), stmt->rtable);
	}
}

static void
executor_start(QueryDesc *query, int eflags)
{
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0)
		check_statement(query->plannedstmt);
	if (previous_executor_start)
		previous_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

static void
init_executor_hook(void)
{
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
}

/* The statements that are being run, as far as a portal has them. */
static void
check_portal(void)
{
	ListCell   *lc;

	if (ActivePortal == NULL || !IsTransactionState())
		return;
	foreach(lc, ActivePortal->stmts)
	{
		if (IsA(lfirst(lc), PlannedStmt))
			check_statement(lfirst(lc));
	}
}

static void
explain_error(ErrorData *error)
{
	if (strcmp(error->message_id,
			   "unexpected non-btree speculative unique index") != 0)
		return;
	error->sqlerrcode = ERRCODE_FEATURE_NOT_SUPPORTED;
	error->message = MemoryContextStrdup(error->assoc_context,
										 _("INSERT ... ON CONFLICT is not supported on a table that has a unique index of access method \"hybrid\""));
	error->detail = MemoryContextStrdup(error->assoc_context,
										_("Before PostgreSQL 18, ON CONFLICT works with btree unique indexes only."));
	error->hint = MemoryContextStrdup(error->assoc_context,
									  _("Use a btree index for this unique index, or PostgreSQL 18 or later."));
}

#else

static void
init_executor_hook(void)
{
}

static void
check_portal(void)
{
}

static void
explain_error(ErrorData *error)
{
	if (error->hint == NULL &&
		strcmp(error->message_id,
			   "there is no unique or exclusion constraint matching the ON CONFLICT specification") == 0)
		error->hint = MemoryContextStrdup(error->assoc_context,
										  _("Operator classes are looked for in hybrid indexes once the library \"hybridindex\" is loaded, which this statement did: try it again, or add it to \"session_preload_libraries\"."));
}

#endif							/* HYB_ON_CONFLICT_NEEDS_BTREE */

/*
 * Called for what goes to the log, before it does, and to the client: no
 * catalogs, nothing that could fail for other reasons than memory.
 */
static void
explain_first_use(ErrorData *error)
{
	if (error->elevel == ERROR && error->message_id != NULL &&
		first_use != 0 && GetCurrentStatementStartTimestamp() == first_use)
		explain_error(error);
	if (previous_emit_log)
		previous_emit_log(error);
}

void
hyb_hooks_init(void)
{
	init_executor_hook();
	previous_emit_log = emit_log_hook;
	emit_log_hook = explain_first_use;
}

void
hyb_hooks_handler_called(void)
{
	static bool called = false;

	if (called)
		return;
	called = true;
	first_use = GetCurrentStatementStartTimestamp();
	check_portal();
}
