/*
 * cost.c
 *		Cost estimates for the planner.
 *
 * Modelled on btcostestimate (utils/adt/selfuncs.c), with the sizes of the two
 * stages from the metapage in place of one tree: leaf pages are what a scan
 * reads, each search descends one tree of the static stage, the highest, and
 * searches the dynamic stage, which is in memory, as well.  Range filters make
 * ranges cheaper that are expected to be empty.
 */
#include "compat.h"

#include <math.h>

#include "access/stratnum.h"
#include "am/am.h"
#include "am/hooks.h"
#include "catalog/pg_statistic.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

/* CPU cost of visiting one page in a descent, in cpu_operator_cost */
#define PAGE_CPU_MULTIPLIER		50.0

/* Children of an inner page, where there is no metapage to read */
#define ASSUMED_FANOUT			256.0

/* What the metapage says */
typedef struct HybSizes
{
	double		leaf_pages;
	double		filter_pages;
	double		delta_pages;
	double		static_entries;
	double		dynamic_entries;
	int			height;			/* of the highest static level */
} HybSizes;

static void
add_generation(HybSizes *sizes, const HybGeneration *gen)
{
	if (gen->number == 0)
		return;
	sizes->delta_pages += gen->npages;
	sizes->dynamic_entries += gen->nentries;
}

/*
 * The planner holds a lock on the index.  A hypothetical index has no
 * metapage: its sizes are guessed from what its inventor says.
 */
static void
read_sizes(const IndexOptInfo *index, HybSizes *sizes)
{
	memset(sizes, 0, sizeof(HybSizes));
	if (!index->hypothetical)
	{
		Relation	rel = index_open(index->indexoid, NoLock);
		Buffer		buf = ReadBuffer(rel, HYB_METAPAGE_BLKNO);
		const HybMetaPage *meta = hyb_page_meta(BufferGetPage(buf));

		LockBuffer(buf, BUFFER_LOCK_SHARE);
		if (hyb_meta_is_readable(BufferGetPage(buf)))
		{
			HybLevel	total = hyb_meta_static(meta);

			sizes->leaf_pages = total.leaf_pages;
			sizes->filter_pages = total.filter_pages;
			sizes->static_entries = total.tids;
			sizes->height = total.root.height;
			add_generation(sizes, &meta->active);
			add_generation(sizes, &meta->frozen);
		}
		UnlockReleaseBuffer(buf);
		index_close(rel, NoLock);
	}
	else
	{
		sizes->leaf_pages = index->pages;
		sizes->static_entries = index->tuples;
		sizes->height = 1;
		if (index->pages > 1)
			sizes->height += (int) ceil(log(index->pages) / log(ASSUMED_FANOUT));
	}
}

/* Comparisons that finding a place among n entries takes. */
static double
search_comparisons(double n)
{
	return n > 1 ? ceil(log(n) / log(2.0)) : 0;
}

/*
 * The quals that bound the ranges read: leading '=' quals, and those of the
 * column after them.  *all_equal: every key column has '='.
 */
static List *
bounding_quals(PlannerInfo *root, IndexPath *path, const HybSizes *sizes,
			   double *num_sa_scans, bool *all_equal)
{
	IndexOptInfo *index = path->indexinfo;
	List	   *quals = NIL;
	int			column = 0;
	bool		equality = false;
	bool		plain = true;
	ListCell   *lc;

	*num_sa_scans = 1;
	foreach(lc, path->indexclauses)
	{
		IndexClause *iclause = lfirst_node(IndexClause, lc);
		ListCell   *lc2;

		if (column != iclause->indexcol)
		{
			if (!equality)
				break;
			equality = false;
			column++;
			if (column != iclause->indexcol)
				break;
		}

		foreach(lc2, iclause->indexquals)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);
			Expr	   *clause = rinfo->clause;
			Oid			clause_op = InvalidOid;

			if (IsA(clause, OpExpr))
				clause_op = ((OpExpr *) clause)->opno;
			else if (IsA(clause, RowCompareExpr))
				hyb_row_compare_planned();
			else if (IsA(clause, ScalarArrayOpExpr))
			{
				ScalarArrayOpExpr *saop = (ScalarArrayOpExpr *) clause;
				double		length = HYB_ARRAY_LENGTH(root,
													  (Node *) lsecond(saop->args));

				clause_op = saop->opno;
				plain = false;
				if (length > 1 &&
					get_op_opfamily_strategy(clause_op,
											 index->opfamily[column]) == BTEqualStrategyNumber)
					*num_sa_scans *= length;
			}
			else if (IsA(clause, NullTest))
			{
				if (((NullTest *) clause)->nulltesttype == IS_NULL)
				{
					equality = true;
					plain = false;
				}
			}
			else
				elog(ERROR, "unsupported indexqual type: %d",
					 (int) nodeTag(clause));

			if (OidIsValid(clause_op) &&
				get_op_opfamily_strategy(clause_op,
										 index->opfamily[column]) == BTEqualStrategyNumber)
				equality = true;
			quals = lappend(quals, rinfo);
		}
	}

	/*
	 * Of all settings of several arrays only those are searched for that have
	 * entries, or lie before one (scan_jump.c).
	 */
	*num_sa_scans = Min(*num_sa_scans,
						Max(1.0, 2 * (sizes->static_entries +
									  sizes->dynamic_entries)));
	*all_equal = equality && plain && column == index->nkeycolumns - 1;
	return quals;
}

/* Statistics of the first index column, as btcostestimate finds them. */
static void
first_column_stats(PlannerInfo *root, IndexOptInfo *index,
				   VariableStatData *vardata)
{
	bool		hooked;
	Oid			relid;
	AttrNumber	colnum;
	bool		inh = false;

	memset(vardata, 0, sizeof(VariableStatData));
	if (index->indexkeys[0] != 0)
	{
		RangeTblEntry *rte = planner_rt_fetch(index->rel->relid, root);

		Assert(rte->rtekind == RTE_RELATION);
		relid = rte->relid;
		colnum = index->indexkeys[0];
		inh = rte->inh;
		hooked = get_relation_stats_hook != NULL &&
			get_relation_stats_hook(root, rte, colnum, vardata);
	}
	else
	{
		/* an expression: there may be statistics of the index itself */
		relid = index->indexoid;
		colnum = 1;
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

/* Correlation of index order with heap order. */
static double
index_correlation(PlannerInfo *root, IndexOptInfo *index)
{
	VariableStatData vardata;
	double		result = 0.0;

	first_column_stats(root, index, &vardata);
	if (HeapTupleIsValid(vardata.statsTuple))
	{
		Oid			sortop;
		AttStatsSlot sslot;

		sortop = get_opfamily_member(index->opfamily[0],
									 index->opcintype[0],
									 index->opcintype[0],
									 BTLessStrategyNumber);
		if (OidIsValid(sortop) &&
			get_attstatsslot(&sslot, vardata.statsTuple,
							 STATISTIC_KIND_CORRELATION, sortop,
							 ATTSTATSSLOT_NUMBERS))
		{
			Assert(sslot.nnumbers == 1);
			result = sslot.numbers[0];
			if (index->reverse_sort[0])
				result = -result;

			/* Further columns dilute the order of the first, see nbtree. */
			if (index->nkeycolumns > 1)
				result *= 0.75;
			free_attstatsslot(&sslot);
		}
	}
	ReleaseVariableStats(vardata);
	return result;
}

/*
 * What range filters save: leaves of ranges that turn out to be empty.
 *
 * With n entries expected in a range, taken to be spread at random, it is
 * empty with probability exp(-n); then a filter page is read and mostly no
 * leaf.  Filter pages are fewer than leaves, and more often in memory by so
 * much.  Ranges that are expected to find something are not charged for the
 * filter, which they soon stop to ask (hyb_filter_try); nor is it known that
 * a key asked for will not be there.
 */
static Cost
filter_savings(PlannerInfo *root, const IndexOptInfo *index,
			   const GenericCosts *costs, const HybSizes *sizes,
			   double entries, double loop_count)
{
	double		scans = costs->num_sa_scans * loop_count;
	double		pages = costs->numIndexPages;
	double		saved;

	if (sizes->filter_pages == 0 || sizes->leaf_pages == 0)
		return 0;
	saved = exp(-entries) - Min(1.0, sizes->filter_pages / sizes->leaf_pages);
	if (saved <= 0)
		return 0;

	/* the pages that genericcostestimate charges for */
	if (scans > 1)
		pages = index_pages_fetched(pages * scans, index->pages,
									(double) index->pages, root) / loop_count;
	return saved * pages * costs->spc_random_page_cost;
}

/* So many parameters because the server calls it with them. */
void
hyb_amcostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
				   Cost *startup_cost, Cost *total_cost,
				   Selectivity *selectivity, double *correlation,
				   double *pages)
{
	IndexOptInfo *index = path->indexinfo;
	IndexOptInfo sized_index;
	IndexPath	sized_path;
	HybSizes	sizes;
	GenericCosts costs;
	List	   *quals;
	double		num_sa_scans;
	bool		all_equal;
	double		entries;
	double		range_entries = 1.0;
	Cost		search_cost;

	read_sizes(index, &sizes);
	quals = bounding_quals(root, path, &sizes, &num_sa_scans, &all_equal);
	entries = sizes.static_entries + sizes.dynamic_entries;
	MemSet(&costs, 0, sizeof(costs));
	if (index->unique && all_equal)
		costs.numIndexTuples = 1.0;
	else
	{
		List	   *sel_quals = add_predicate_to_index_quals(index, quals);
		Selectivity sel = clauselist_selectivity(root, sel_quals,
												 index->rel->relid,
												 JOIN_INNER, NULL);

		range_entries = sel * index->rel->tuples / num_sa_scans;
		costs.numIndexTuples = rint(range_entries);
	}
	costs.num_sa_scans = num_sa_scans;

	/*
	 * genericcostestimate charges for the share of index->pages that the
	 * tuples are of all.  What a scan reads are leaves, neither delta log nor
	 * free pages: show it an index of that size.  Only an index without
	 * leaves is charged for its log, which it has to read at least once.
	 */
	sized_index = *index;
	if (sizes.leaf_pages > 0 && sizes.leaf_pages < index->pages)
		sized_index.pages = (BlockNumber) sizes.leaf_pages;
	else if (sizes.leaf_pages == 0)
		sized_index.pages = Max((BlockNumber) 1,
								Min(index->pages,
									(BlockNumber) sizes.delta_pages));
	sized_path = *path;
	sized_path.indexinfo = &sized_index;
	genericcostestimate(root, &sized_path, loop_count, &costs);
	if (!all_equal)
		costs.indexTotalCost -= filter_savings(root, &sized_index, &costs,
											   &sizes, range_entries,
											   loop_count);

	/*
	 * A search: comparisons in both stages, and something for each page on
	 * the way down, as btree charges it.
	 */
	search_cost = (search_comparisons(sizes.static_entries) +
				   search_comparisons(sizes.dynamic_entries) +
				   Max(sizes.height, 1) * PAGE_CPU_MULTIPLIER) *
		cpu_operator_cost;
	costs.indexStartupCost += search_cost;
	costs.indexTotalCost += costs.num_sa_scans * search_cost;

	/* Merging entries of the dynamic stage in */
	if (entries > 0)
		costs.indexTotalCost += costs.num_sa_scans * costs.numIndexTuples *
			(sizes.dynamic_entries / entries) * cpu_operator_cost;

	*startup_cost = costs.indexStartupCost;
	*total_cost = costs.indexTotalCost;
	*selectivity = costs.indexSelectivity;
	*correlation = index_correlation(root, index);
	*pages = costs.numIndexPages;
}
