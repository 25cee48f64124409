/*
 * rowcompare.c
 *		Row comparisons as conditions of our indexes before PostgreSQL 18.
 *
 * Until then the executor makes scan keys of them for btree only
 * (ExecIndexBuildScanKeys).  The planner, which takes our indexes for btrees
 * (family.c), makes plans with such conditions; so while the executor starts,
 * a plan has a condition for each member of a row comparison in its place, with
 * functions that tell our scan what these conditions are (scan_qual.c).
 *
 * Nothing but scan keys is made of these conditions: what rechecks rows and what
 * EXPLAIN shows are other lists, or the plan as it is afterwards, with the row
 * comparison back in its place.  Where the plan may be started once more for a
 * row that has been changed meanwhile (EvalPlanQual), which no hook sees, the
 * conditions stay as long as the plan.
 *
 * The hook does nothing as long as a process has planned no such thing, but in
 * a parallel worker, which has its plan from another process.
 */
#include "base/compat.h"

#include "base/server.h"
#include "server/hooks.h"

#ifdef HYB_ROW_COMPARE_NEEDS_BTREE

#include "access/parallel.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type_d.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/plannodes.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

/* A plan node's list of conditions, and what was in its place */
typedef struct Exchange
{
	List	  **place;
	List	   *conditions;
} Exchange;

typedef struct Exchanges
{
	int			n;
	int			alloc;
	Exchange   *done;
	bool		lasting;		/* of memory that lives as long as the plan */
} Exchanges;

static ExecutorStart_hook_type previous_executor_start = NULL;
static bool planned = false;

void
hyb_row_compare_planned(void)
{
	planned = true;
}

static List *
member_conditions(List *conditions, const RowCompareExpr *row)
{
	ListCell   *left;
	ListCell   *right;
	ListCell   *operator;
	ListCell   *collation;

	forfour(left, row->largs, right, row->rargs, operator, row->opnos,
			collation, row->inputcollids)
	{
		OpExpr	   *member = (OpExpr *)
			make_opclause(lfirst_oid(operator), BOOLOID, false, lfirst(left),
						  lfirst(right), InvalidOid, lfirst_oid(collation));

		member->opfuncid = lnext(row->largs, left) != NULL ?
			F_BTRECORDCMP : F_BTRECORDIMAGECMP;
		conditions = lappend(conditions, member);
	}
	return conditions;
}

static void
exchange(Exchanges *exchanges, const Plan *plan, List **place)
{
	MemoryContext old = CurrentMemoryContext;
	List	   *conditions = NIL;
	ListCell   *lc;

	if (exchanges->lasting)
		MemoryContextSwitchTo(GetMemoryChunkContext(unconstify(Plan *, plan)));
	foreach(lc, *place)
	{
		if (IsA(lfirst(lc), RowCompareExpr))
			conditions = member_conditions(conditions, lfirst(lc));
		else
			conditions = lappend(conditions, lfirst(lc));
	}
	MemoryContextSwitchTo(old);

	if (exchanges->n == exchanges->alloc)
	{
		exchanges->alloc = Max(4, 2 * exchanges->alloc);
		exchanges->done = exchanges->done == NULL ?
			palloc(exchanges->alloc * sizeof(Exchange)) :
			repalloc(exchanges->done, exchanges->alloc * sizeof(Exchange));
	}
	exchanges->done[exchanges->n++] = (Exchange)
	{
		place, *place
	};
	*place = conditions;
}

static void
look_at_scan(Exchanges *exchanges, const Plan *plan, Oid index, List **place)
{
	ListCell   *lc;

	foreach(lc, *place)
	{
		if (IsA(lfirst(lc), RowCompareExpr))
		{
			if (hyb_index_is_of(index, get_index_am_oid("hybrid", true)))
				exchange(exchanges, plan, place);
			return;
		}
	}
}

static void look_at_plan(Exchanges *exchanges, Plan *plan);

static void
look_at_plans(Exchanges *exchanges, List *plans)
{
	ListCell   *lc;

	foreach(lc, plans)
		look_at_plan(exchanges, lfirst(lc));
}

static void
look_at_plan(Exchanges *exchanges, Plan *plan)
{
	if (plan == NULL)
		return;
	check_stack_depth();
	switch (nodeTag(plan))
	{
		case T_IndexScan:
			look_at_scan(exchanges, plan, ((IndexScan *) plan)->indexid,
						 &((IndexScan *) plan)->indexqual);
			break;
		case T_IndexOnlyScan:
			look_at_scan(exchanges, plan, ((IndexOnlyScan *) plan)->indexid,
						 &((IndexOnlyScan *) plan)->indexqual);
			break;
		case T_BitmapIndexScan:
			look_at_scan(exchanges, plan, ((BitmapIndexScan *) plan)->indexid,
						 &((BitmapIndexScan *) plan)->indexqual);
			break;
		case T_Append:
			look_at_plans(exchanges, ((Append *) plan)->appendplans);
			break;
		case T_MergeAppend:
			look_at_plans(exchanges, ((MergeAppend *) plan)->mergeplans);
			break;
		case T_BitmapAnd:
			look_at_plans(exchanges, ((BitmapAnd *) plan)->bitmapplans);
			break;
		case T_BitmapOr:
			look_at_plans(exchanges, ((BitmapOr *) plan)->bitmapplans);
			break;
		case T_SubqueryScan:
			look_at_plan(exchanges, ((SubqueryScan *) plan)->subplan);
			break;
		case T_CustomScan:
			look_at_plans(exchanges, ((CustomScan *) plan)->custom_plans);
			break;
		default:
			break;
	}
	look_at_plan(exchanges, outerPlan(plan));
	look_at_plan(exchanges, innerPlan(plan));
}

static void
start_rowcompare(QueryDesc *query, int eflags)
{
	if (previous_executor_start)
		previous_executor_start(query, eflags);
	else
		standard_ExecutorStart(query, eflags);
}

static void
rowcompare_executor_start(QueryDesc *query, int eflags)
{
	PlannedStmt *stmt = query->plannedstmt;
	Exchanges	exchanges = {0};

	if (!planned && !IsParallelWorker())
	{
		start_rowcompare(query, eflags);
		return;
	}

	/* INSERT starts no plan again */
	exchanges.lasting = (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		(stmt->rowMarks != NIL || stmt->hasModifyingCTE ||
		 (stmt->commandType != CMD_SELECT && stmt->commandType != CMD_INSERT));
	look_at_plan(&exchanges, stmt->planTree);
	look_at_plans(&exchanges, stmt->subplans);
	PG_TRY();
	{
		start_rowcompare(query, eflags);
	}
	PG_FINALLY();
	{
		for (int i = 0; i < exchanges.n && !exchanges.lasting; i++)
			*exchanges.done[i].place = exchanges.done[i].conditions;
	}
	PG_END_TRY();
}

void
hyb_rowcompare_init(void)
{
	previous_executor_start = ExecutorStart_hook;
	ExecutorStart_hook = rowcompare_executor_start;
}

#else

void
hyb_row_compare_planned(void)
{
}

void
hyb_rowcompare_init(void)
{
}

#endif							/* HYB_ROW_COMPARE_NEEDS_BTREE */
