/*
 * hooks.c
 *		Takes each hook of the server once, for the whole library.
 *
 * A hook calls its earlier holder, so that other libraries go on working, and a
 * plain function of each file of ours that takes part.  Each comment says why
 * they come in this order.
 */
#include "base/compat.h"

#include "am/am.h"
#include "catalog/objectaccess.h"
#include "ddl/twin/twin.h"
#include "ddl/utility.h"
#include "executor/executor.h"
#include "insert/gather.h"
#include "miscadmin.h"
#include "optimizer/pathnode.h"
#include "optimizer/plancat.h"
#include "optimizer/planner.h"
#include "scan/index_scan.h"
#include "server/before_18/before_18.h"
#include "server/btree_only.h"
#include "shared/shared.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "tcop/utility.h"
#include "utils/elog.h"
#ifdef HYB_HAVE_EXPLAIN_HOOK
#include "commands/explain.h"
#include "commands/explain_state.h"
#endif

/* The earlier holder of each hook, or NULL. */
static struct
{
	shmem_request_hook_type shmem_request;
	shmem_startup_hook_type shmem_startup;
	emit_log_hook_type emit_log;
	planner_hook_type planner;
	HYB_RELATION_HOOK_TYPE relation_info;
	create_upper_paths_hook_type upper_paths;
	ExecutorStart_hook_type executor_start;
	ProcessUtility_hook_type process_utility;
#ifdef HYB_HAVE_EXPLAIN_HOOK
	explain_per_node_hook_type explain_node;
#endif
#ifndef HYB_HAVE_INSERT_CLEANUP
	ExecutorEnd_hook_type executor_end;
#endif
#ifdef HYB_NO_REPLICA_IDENTITY
	object_access_hook_type object_access;
#endif
}			previous;

/* ---- shared memory, while the server starts ---- */

static void
shmem_request(void)
{
	if (previous.shmem_request)
		previous.shmem_request();
	RequestAddinShmemSpace(hyb_shared_size());
}

static void
shmem_startup(void)
{
	if (previous.shmem_startup)
		previous.shmem_startup();
	hyb_shared_startup();
}

/* ---- messages ---- */

/* The earlier holder may write to a log of its own: it sees our words. */
static void
emit_log(ErrorData *error)
{
	if (error->elevel == ERROR && error->message_id != NULL)
	{
		hyb_explain_error(error);
		hyb_conflict_explain_error(error);
		hyb_identity_explain_error(error);
	}
	if (previous.emit_log)
		previous.emit_log(error);
}

/* ---- planner ---- */

/* The planner looks at the classes first of all. */
static PlannedStmt *
plan_query(Query *query, const char *source, int options, ParamListInfo params
		   HYB_PLANNER_MORE_PARAMS)
{
	hyb_replace_conflict_classes(query);
	return previous.planner ?
		previous.planner(query, source, options, params HYB_PLANNER_MORE) :
		standard_planner(query, source, options, params HYB_PLANNER_MORE);
}

/* The earlier holder sees and adds indexes as they are, before we change them. */
static void
relation_info(HYB_RELATION_HOOK_PARAMS)
{
	if (previous.relation_info)
		previous.relation_info(HYB_RELATION_HOOK_PASSED);
	hyb_show_as_btree(root, rel);
	hyb_stand_ins_hide(rel);
}

/* Our locks are the last thing before the plan is made of the path. */
static void
upper_paths(PlannerInfo *root, UpperRelationKind stage, RelOptInfo *input,
			RelOptInfo *output, void *extra)
{
	if (previous.upper_paths)
		previous.upper_paths(root, stage, input, output, extra);
	if (stage == UPPERREL_FINAL)
		hyb_lock_arbiters(root->parse);
}

/* ---- executor ---- */

static void
start_query(QueryDesc *query, int eflags)
{
	if (previous.executor_start)
		previous.executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

static void
prepare_on_conflict(PlanState *state)
{
	if (state == NULL || !IsA(state, ModifyTableState) ||
		((ModifyTable *) state->plan)->onConflictAction == ONCONFLICT_NONE)
		return;
	hyb_conflict_prepare((ModifyTableState *) state);
	hyb_twin_arbiters_prepare((ModifyTableState *) state);
}

/*
 * Parallel workers read the indexes by themselves, so what was gathered has to
 * be in them before workers start.  The executor makes scan keys while it starts:
 * row comparisons are exchanged around that.  Our indexes are opened for ON
 * CONFLICT after that and before the first row, when the executor would open
 * them; the arbiters come last, since they are among these indexes.
 */
static void
executor_start(QueryDesc *query, int eflags)
{
	EState	   *estate;
	MemoryContext old_context;
	ListCell   *lc;

	if (query->plannedstmt->parallelModeNeeded)
		hyb_gather_before_read(InvalidOid);
	if (unlikely(hyb_gathered))
		hyb_gather_flush_unique();
	hyb_conflict_query_starts();
	hyb_row_compare_start(query, eflags, start_query);
	hyb_statement_started(query, eflags);
	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0 ||
		(query->operation != CMD_INSERT && !query->plannedstmt->hasModifyingCTE))
		return;
	estate = query->estate;
	old_context = MemoryContextSwitchTo(estate->es_query_cxt);
	prepare_on_conflict(query->planstate);
	foreach(lc, estate->es_subplanstates)
		prepare_on_conflict(lfirst(lc));
	MemoryContextSwitchTo(old_context);
}

#ifndef HYB_HAVE_INSERT_CLEANUP
/* Gathered entries are appended while their indexes are open. */
static void
executor_end(QueryDesc *query)
{
	if (unlikely(hyb_gathered))
		hyb_gather_end_of(query->estate->es_query_cxt);
	if (previous.executor_end)
		previous.executor_end(query);
	else
		standard_ExecutorEnd(query);
}
#endif

#ifdef HYB_HAVE_EXPLAIN_HOOK
/* Our lines come right after the server's own. */
static void
explain_node(PlanState *state, List *ancestors, const char *relationship,
			 const char *plan_name, ExplainState *es)
{
	hyb_explain_scan(state, es);
	if (previous.explain_node)
		previous.explain_node(state, ancestors, relationship, plan_name, es);
}
#endif

/* ---- utility statements ---- */

/*
 * The statement may read indexes in ways that no other hook sees, so what was
 * gathered goes first.  Our part surrounds that of the earlier holder, which
 * sees the statement that is carried out.
 *
 * So many parameters because it is a hook.
 */
static void
process_utility(PlannedStmt *pstmt, const char *source, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *environment, DestReceiver *dest,
				QueryCompletion *completion)
{
	HybUtility	utility;
	PlannedStmt *ours;

	/*
	 * SET may be what bounds the time that this takes.  An aborted
	 * transaction forgets what it has gathered.
	 */
	if (IsTransactionState() && !IsA(pstmt->utilityStmt, VariableSetStmt))
		hyb_gather_before_read(InvalidOid);
	ours = hyb_utility_begin(&utility, pstmt, source, read_only_tree, context);
	PG_TRY();
	{
		(previous.process_utility ? previous.process_utility :
		 standard_ProcessUtility) (ours, source, read_only_tree && ours == pstmt,
								   context, params, environment, dest, completion);
	}
	PG_FINALLY();
	{
		hyb_utility_leave(&utility);
	}
	PG_END_TRY();
	hyb_utility_end(&utility);
}

#ifdef HYB_NO_REPLICA_IDENTITY
/* The earlier holder may have refused the change already. */
static void
object_access(ObjectAccessType access, Oid classid, Oid objectid, int subid,
			  void *arg)
{
	if (previous.object_access)
		previous.object_access(access, classid, objectid, subid, arg);
	hyb_identity_check(access, classid, objectid);
}
#endif

#define TAKE_HOOK(hook, field, function) \
	(previous.field = (hook), (hook) = (function))

/*
 * Nothing needs shared_preload_libraries.  There, the control structure is made
 * at start-up in memory of its own.  Else it takes the server's spare memory,
 * which others may have used up when it is needed.
 */
void
hyb_hooks_init(void)
{
	if (process_shared_preload_libraries_in_progress)
	{
		TAKE_HOOK(shmem_request_hook, shmem_request, shmem_request);
		TAKE_HOOK(shmem_startup_hook, shmem_startup, shmem_startup);
	}
	TAKE_HOOK(emit_log_hook, emit_log, emit_log);
	TAKE_HOOK(planner_hook, planner, plan_query);
	TAKE_HOOK(HYB_RELATION_HOOK, relation_info, relation_info);
	TAKE_HOOK(create_upper_paths_hook, upper_paths, upper_paths);
	TAKE_HOOK(ExecutorStart_hook, executor_start, executor_start);
	TAKE_HOOK(ProcessUtility_hook, process_utility, process_utility);
#ifdef HYB_HAVE_EXPLAIN_HOOK
	TAKE_HOOK(explain_per_node_hook, explain_node, explain_node);
#endif
#ifndef HYB_HAVE_INSERT_CLEANUP
	TAKE_HOOK(ExecutorEnd_hook, executor_end, executor_end);
#endif
#ifdef HYB_NO_REPLICA_IDENTITY
	TAKE_HOOK(object_access_hook, object_access, object_access);
#endif
}
