/*
 * cost_work.c
 *		How much of an index a scan reads.
 *
 * Leading columns with '=' and the column after them bound the ranges that it
 * reads, one for each setting of their arrays.  Conditions on later columns
 * make it skip within a range (scan_hop.c), to each value of the columns before
 * them: how many there are is what statistics say of each column, multiplied.
 * The skips read a leaf each, unless there are no more leaves than that, and
 * look at some rows each, unless there are no more.  So skipping never costs
 * more than reading through, and nothing has to be decided here.
 */
#include "base/compat.h"

#include <math.h>

#include "access/stratnum.h"
#include "am/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "server/hooks.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

/* Looking at so many rows of a leaf takes as long as finding one in it. */
#define SKIP_ROWS	10.0

/* The conditions on one index column */
typedef struct ColumnQuals
{
	List	   *quals;
	bool		equality;		/* one value, or one at a time */
	bool		plain;			/* '=' only, and no array */
	double		length;			/* elements of its equality arrays */
} ColumnQuals;

static bool
is_equality_operator(Oid op, Oid opfamily)
{
	return get_op_opfamily_strategy(op, opfamily) == BTEqualStrategyNumber;
}

static void
add_qual(PlannerInfo *root, RestrictInfo *rinfo, Oid opfamily, ColumnQuals *col)
{
	Expr	   *clause = rinfo->clause;

	if (IsA(clause, OpExpr))
	{
		if (is_equality_operator(((OpExpr *) clause)->opno, opfamily))
			col->equality = true;
	}
	else if (IsA(clause, RowCompareExpr))
		hyb_row_compare_planned();
	else if (IsA(clause, ScalarArrayOpExpr))
	{
		ScalarArrayOpExpr *saop = (ScalarArrayOpExpr *) clause;

		col->plain = false;
		if (is_equality_operator(saop->opno, opfamily))
		{
			double		length = HYB_ARRAY_LENGTH(root,
												  (Node *) lsecond(saop->args));

			col->equality = true;
			col->length *= Max(length, 1.0);
		}
	}
	else if (IsA(clause, NullTest))
	{
		if (((NullTest *) clause)->nulltesttype == IS_NULL)
		{
			col->equality = true;
			col->plain = false;
		}
	}
	else
		elog(ERROR, "unsupported indexqual type: %d", (int) nodeTag(clause));
	col->quals = lappend(col->quals, rinfo);
}

/* Sort the conditions by column; returns the last column that has any, or -1. */
static int
collect_quals(PlannerInfo *root, const IndexPath *path, ColumnQuals *cols)
{
	const IndexOptInfo *index = path->indexinfo;
	int			last = -1;
	ListCell   *lc;

	for (int i = 0; i < index->nkeycolumns; i++)
		cols[i] = (ColumnQuals)
	{
		.plain = true,.length = 1
	};
	foreach(lc, path->indexclauses)
	{
		IndexClause *iclause = lfirst_node(IndexClause, lc);
		ListCell   *lc2;

		Assert(iclause->indexcol < index->nkeycolumns);
		last = Max(last, iclause->indexcol);
		foreach(lc2, iclause->indexquals)
			add_qual(root, lfirst_node(RestrictInfo, lc2),
					 index->opfamily[iclause->indexcol],
					 &cols[iclause->indexcol]);
	}
	return last;
}

void
hyb_column_stats(PlannerInfo *root, const IndexOptInfo *index, int column,
				 VariableStatData *vardata)
{
	bool		hooked;
	Oid			relid;
	AttrNumber	colnum;
	bool		inh = false;

	memset(vardata, 0, sizeof(VariableStatData));
	vardata->rel = index->rel;
	if (index->indexkeys[column] != 0)
	{
		RangeTblEntry *rte = planner_rt_fetch(index->rel->relid, root);

		Assert(rte->rtekind == RTE_RELATION);
		relid = rte->relid;
		colnum = index->indexkeys[column];
		inh = rte->inh;
		hooked = get_relation_stats_hook != NULL &&
			get_relation_stats_hook(root, rte, colnum, vardata);
	}
	else
	{
		/* an expression: there may be statistics of the index itself */
		relid = index->indexoid;
		colnum = column + 1;
		hooked = get_index_stats_hook != NULL &&
			get_index_stats_hook(root, relid, colnum, vardata);
	}

	if (!hooked)
	{
		vardata->statsTuple = SearchSysCache3(STATRELATTINH,
											  ObjectIdGetDatum(relid),
											  Int16GetDatum(colnum),
											  BoolGetDatum(inh));
		vardata->freefunc = ReleaseSysCache;
	}
	else if (HeapTupleIsValid(vardata->statsTuple) && !vardata->freefunc)
		elog(ERROR, "no function provided to release variable stats with");
}

/* Entries of the index that satisfy all of these conditions */
static double
matching_entries(PlannerInfo *root, const IndexOptInfo *index, List *quals)
{
	List	   *sel_quals =
		add_predicate_to_index_quals(unconstify(IndexOptInfo *, index), quals);

	return index->rel->tuples *
		clauselist_selectivity(root, sel_quals, index->rel->relid, JOIN_INNER,
							   NULL);
}

/*
 * Values that a column without '=' takes where its conditions hold, or 0 if
 * that is not known.
 */
static double
column_values(PlannerInfo *root, const IndexOptInfo *index, int column,
			  List *quals)
{
	VariableStatData vardata;
	bool		isdefault;
	double		values;

	hyb_column_stats(root, index, column, &vardata);
	values = get_variable_numdistinct(&vardata, &isdefault);
	ReleaseVariableStats(vardata);
	if (isdefault)
		return 0;
	if (quals == NIL)
		return values + 1;		/* the first search is for whatever there is */
	return Max(1.0, rint(values *
						 clauselist_selectivity(root, quals, index->rel->relid,
												JOIN_INNER, NULL)));
}

/*
 * Skips that conditions on columns up to `last` make, where `first` is the
 * first column without '=', or 0 if that is not known.
 */
static double
count_skips(PlannerInfo *root, const IndexOptInfo *index,
			const ColumnQuals *cols, int first, int last)
{
	double		skips = 1;

	for (int i = first; i <= last; i++)
	{
		if (cols[i].equality)
			skips *= cols[i].length;
		else if (i < last)
			skips *= column_values(root, index, i, cols[i].quals);
	}
	return skips;
}

static double
pages_of(const IndexOptInfo *index, double entries)
{
	if (index->pages <= 1 || index->tuples <= 1)
		return 1;
	return Max(1.0, ceil(Min(entries, index->tuples) * index->pages /
						 index->tuples));
}

void
hyb_estimate_work(PlannerInfo *root, const IndexPath *path,
				  const IndexOptInfo *index, const HybSizes *sizes,
				  HybScanWork *work)
{
	ColumnQuals cols[INDEX_MAX_KEYS];
	int			last = collect_quals(root, path, cols);
	List	   *quals = NIL;
	double		settings = 1;
	bool		plain = true;
	double		entries;
	double		pages;
	double		found = 0;
	double		skips = 0;
	int			column;

	for (column = 0; column <= last && cols[column].equality; column++)
	{
		quals = list_concat(quals, cols[column].quals);
		settings *= cols[column].length;
		plain &= cols[column].plain;
	}

	/*
	 * Of all settings of several arrays only those are searched for that have
	 * entries, or lie before one (scan_range.c).
	 */
	settings = Min(settings,
				   Max(1.0, 2 * (sizes->static_entries +
								 sizes->dynamic_entries)));
	work->searches = settings;
	work->share = 1;
	work->skips = false;
	work->all_equal = plain && column == index->nkeycolumns;
	if (index->unique && work->all_equal)
	{
		work->entries = work->pages = 1;
		return;
	}

	if (column <= last)
		quals = list_concat(quals, cols[column].quals);
	entries = matching_entries(root, index, quals) / settings;
	pages = pages_of(index, entries);
	if (column < last)
	{
		/* nor are there skips where leaves do not keep keys */
		if (!sizes->truncated)
			skips = count_skips(root, index, cols, column, last);
		for (int i = column + 1; i <= last; i++)
			quals = list_concat(quals, cols[i].quals);
		found = matching_entries(root, index, quals) / settings;
		work->share = found < entries ? found / entries : 1;
	}
	if (skips > 0)
	{
		double		leaves = Min(pages, skips * pages_of(index, found / skips));

		work->skips = true;
		work->searches = settings * Min(skips, pages);
		entries = Min(entries, found + SKIP_ROWS * skips) * settings /
			work->searches;
		pages = leaves * settings / work->searches;
	}
	Assert(work->searches >= 1 && entries >= 0 && pages >= 0);
	Assert(work->share >= 0 && work->share <= 1);
	work->entries = entries;
	work->pages = pages;
}
