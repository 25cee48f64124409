/*
 * statement_end.c
 *		Notices the end of statements that insert, before server 17.
 *
 * From 17 on the server calls aminsertcleanup.  Before, it closes the indexes of
 * a query when the executor ends: gathered entries are appended just before.  A
 * query that has been started is found by its memory context, which takes the
 * query off the list when it is reset.  COPY and other inserters without an
 * executor end unnoticed, so nothing is gathered for them.
 */
#include "base/compat.h"

#ifndef HYB_HAVE_INSERT_CLEANUP

#include "executor/executor.h"
#include "insert/gather.h"
#include "server/before_18/before_18.h"

/* A query that may insert; it lies in its own memory context. */
typedef struct Inserting
{
	struct Inserting *outer;
	MemoryContext context;
	MemoryContextCallback callback;
} Inserting;

static Inserting *queries = NULL;

static bool
end_is_noticed(MemoryContext context)
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

void
hyb_statement_started(const QueryDesc *desc, int eflags)
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

void
hyb_statement_end_init(void)
{
	hyb_statement_end_noticed = end_is_noticed;
}

#endif							/* HYB_HAVE_INSERT_CLEANUP */
