/*
 * statement_end.c
 *		When statements that insert end, and others begin: for insert/gather.c.
 *
 * From 17 on whoever has inserted into an index says when that is done
 * (aminsertcleanup).  Before, the indexes of a query that inserts are closed
 * when the executor ends: it is noticed in time by an ExecutorEnd hook, of
 * queries whose start an ExecutorStart hook has noticed.  Those are found by
 * their memory contexts, which tell themselves when they go.  COPY and others
 * who insert without the executor end unnoticed.
 */
#include "base/compat.h"

#include "executor/executor.h"
#include "insert/gather.h"
#include "insert/statement_end.h"
#include "utils/memutils.h"

static ExecutorStart_hook_type previous_executor_start = NULL;

#ifdef HYB_HAVE_INSERT_CLEANUP

bool
hyb_statement_end_noticed(MemoryContext context)
{
	return true;
}

static void
note_start(const QueryDesc *query, int eflags)
{
}

static void
note_ends(void)
{
}

#else

/* A query that may insert; it lies in its own memory context. */
typedef struct Inserting
{
	struct Inserting *outer;
	MemoryContext context;
	MemoryContextCallback callback;
} Inserting;

static Inserting *queries = NULL;
static ExecutorEnd_hook_type previous_executor_end = NULL;

bool
hyb_statement_end_noticed(MemoryContext context)
{
	for (Inserting *query = queries; query != NULL; query = query->outer)
		if (query->context == context)
			return true;
	return false;
}

/* Its memory goes, after an error too; not always the innermost one's first. */
static void
query_goes(void *arg)
{
	for (Inserting **link = &queries; *link != NULL; link = &(*link)->outer)
	{
		if (*link == arg)
		{
			*link = (*link)->outer;
			return;
		}
	}
}

static void
note_start(const QueryDesc *desc, int eflags)
{
	Inserting  *query;

	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0 ||
		(desc->operation == CMD_SELECT && !desc->plannedstmt->hasModifyingCTE))
		return;
	query = MemoryContextAlloc(desc->estate->es_query_cxt, sizeof(Inserting));
	query->context = desc->estate->es_query_cxt;
	query->callback.func = query_goes;
	query->callback.arg = query;
	MemoryContextRegisterResetCallback(query->context, &query->callback);
	query->outer = queries;
	queries = query;
}

static void
executor_end(QueryDesc *query)
{
	if (unlikely(hyb_gathered))
		hyb_gather_end_of(query->estate->es_query_cxt);
	if (previous_executor_end)
		previous_executor_end(query);
	else
		standard_ExecutorEnd(query);
}

static void
note_ends(void)
{
	previous_executor_end = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
}

#endif							/* HYB_HAVE_INSERT_CLEANUP */

/* Parallel workers read for themselves. */
static void
statement_executor_start(QueryDesc *query, int eflags)
{
	if (query->plannedstmt->parallelModeNeeded)
		hyb_gather_before_read(InvalidOid);
	if (previous_executor_start)
		previous_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
	note_start(query, eflags);
}

void
hyb_statement_end_init(void)
{
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = statement_executor_start;
	note_ends();
}
