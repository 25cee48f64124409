/*
 * started.c
 *		The insertions of a query that the executor has just started.
 */
#include "base/compat.h"

#include "executor/executor.h"
#include "server/started.h"

static void
visit(PlanState *state, void (*prepare) (ModifyTableState *modify))
{
	if (state != NULL && IsA(state, ModifyTableState) &&
		((ModifyTable *) state->plan)->onConflictAction != ONCONFLICT_NONE)
		prepare((ModifyTableState *) state);
}

void
hyb_started_on_conflict(const QueryDesc *query, int eflags,
						void (*prepare) (ModifyTableState *modify))
{
	EState	   *estate = query->estate;
	MemoryContext old_context;
	ListCell   *lc;

	if ((eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0 ||
		(query->operation != CMD_INSERT && !query->plannedstmt->hasModifyingCTE))
		return;
	old_context = MemoryContextSwitchTo(estate->es_query_cxt);
	visit(query->planstate, prepare);
	foreach(lc, estate->es_subplanstates)
		visit(lfirst(lc), prepare);
	MemoryContextSwitchTo(old_context);
}
