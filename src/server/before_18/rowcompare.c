/*
 * rowcompare.c
 *		Lets row comparisons be conditions of hybrid indexes.
 *
 * Before 18 the executor makes scan keys of them for btree only
 * (ExecIndexBuildScanKeys).  The planner takes our indexes for btrees (families.c)
 * and makes plans with such conditions.  So while the executor starts, the plan
 * has a condition for each member of a row comparison in its place.  The
 * functions of these conditions tell our scan what they are (scan_qual.c).
 *
 * The executor makes nothing but scan keys of this list.  It rechecks rows and
 * shows them in EXPLAIN by other lists, or by the plan with the row comparison
 * back in its place.  EvalPlanQual may start the plan again for a row that has
 * been changed, and calls no hook then.  In such a plan the conditions stay as
 * long as the plan.
 *
 * A process that has planned no such condition skips this.  A parallel worker does
 * not: another process has planned for it.
 */
#include "base/compat.h"

#if HYB_BEFORE_18

#include "access/parallel.h"
#include "base/server.h"
#include "catalog/pg_type_d.h"
#include "commands/defrem.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/plannodes.h"
#include "server/before_18/before_18.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"

/* A list of conditions in a plan node, and the list that it has replaced. */
typedef struct Exchange
{
	List	  **place;
	List	   *conditions;
} Exchange;

typedef struct Exchanges
{
	List	   *done;			/* Exchange */
	bool		lasting;		/* the conditions stay as long as the plan */
} Exchanges;

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
	Exchange   *done = palloc(sizeof(Exchange));
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

	done->place = place;
	done->conditions = *place;
	exchanges->done = lappend(exchanges->done, done);
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
			if (hyb_index_is_ours(index))
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

void
hyb_row_compare_start(QueryDesc *query, int eflags,
					  ExecutorStart_hook_type start)
{
	PlannedStmt *stmt = query->plannedstmt;
	Exchanges	exchanges = {0};
	ListCell   *lc;

	if (!planned && !IsParallelWorker())
	{
		start(query, eflags);
		return;
	}

	/* plans that EvalPlanQual may start again: not those of INSERT */
	exchanges.lasting = (eflags & EXEC_FLAG_EXPLAIN_ONLY) == 0 &&
		(stmt->rowMarks != NIL || stmt->hasModifyingCTE ||
		 (stmt->commandType != CMD_SELECT && stmt->commandType != CMD_INSERT));
	look_at_plan(&exchanges, stmt->planTree);
	look_at_plans(&exchanges, stmt->subplans);
	PG_TRY();
	{
		start(query, eflags);
	}
	PG_FINALLY();
	{
		foreach(lc, exchanges.lasting ? NIL : exchanges.done)
		{
			Exchange   *done = lfirst(lc);

			*done->place = done->conditions;
		}
	}
	PG_END_TRY();
}

#endif							/* HYB_BEFORE_18 */
