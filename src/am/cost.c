/*
 * cost.c
 *		Cost estimates for the planner.
 *
 * Modelled on btcostestimate (utils/adt/selfuncs.c), with the sizes of the two
 * stages from the metapage in place of one tree: leaf pages are what a scan
 * reads, each search descends the trees of the static stage, and searches the
 * dynamic stage, which is in memory, as well.  Range filters make ranges cheaper
 * that are expected to be empty.
 */
#include "base/compat.h"

#include <math.h>

#include "access/genam.h"
#include "access/stratnum.h"
#include "am/am.h"
#include "am/cost.h"
#include "catalog/pg_statistic.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "storage/bufmgr.h"
#include "store/meta.h"
#include "store/settings.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

/* CPU cost of visiting one page in a descent, in cpu_operator_cost */
#define PAGE_CPU_MULTIPLIER		50.0

/* Children of an inner page, where there is no metapage to read */
#define ASSUMED_FANOUT			256.0

static void
add_generation_size(HybSizes *sizes, const HybGeneration *gen)
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
			sizes->truncated = (meta->flags & HYB_META_TRUNCATED) != 0;
			if (hyb_filter_has_ranges(hyb_filter_option(rel)))
				sizes->filter_pages = total.filter_pages;
			sizes->static_entries = total.tids;
			for (int i = 0; i < meta->nlevels; i++)
			{
				const HybLevel *level = &meta->levels[i];

				sizes->height += level->root.height;
				if (level->root.height == 0)
					continue;
				if (sizes->nlevels++ > 0)
					sizes->newer_points += level->filter_pages == 0 ? 1.0 :
						Min(1.0, (double) level->filter_pages / level->leaf_pages);
			}
			add_generation_size(sizes, &meta->active);
			add_generation_size(sizes, &meta->frozen);
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

/* Correlation of index order with heap order. */
static double
index_correlation(PlannerInfo *root, IndexOptInfo *index)
{
	VariableStatData vardata;
	double		result = 0.0;

	hyb_column_stats(root, index, 0, &vardata);
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
 * What genericcostestimate charges (utils/adt/selfuncs.c), for this work: before
 * version 17 it cannot be told of any other searches than those for elements of
 * arrays.
 */
static void
charge_work(PlannerInfo *root, IndexPath *path, IndexOptInfo *index,
			const HybScanWork *work, double loop_count, GenericCosts *costs)
{
	List	   *quals = get_quals_from_indexclauses(path->indexclauses);
	double		scans = work->searches * loop_count;
	double		fetched = work->pages;
	Cost		arguments = index_other_operands_eval_cost(root, quals);

	memset(costs, 0, sizeof(GenericCosts));
	costs->num_sa_scans = work->searches;
	costs->numIndexPages = work->pages;
	costs->numIndexTuples = Min(Max(1.0, rint(work->entries)),
								Max(1.0, index->tuples));
	costs->indexSelectivity =
		clauselist_selectivity(root, add_predicate_to_index_quals(index, quals),
							   index->rel->relid, JOIN_INNER, NULL);
	get_tablespace_page_costs(index->reltablespace,
							  &costs->spc_random_page_cost, NULL);
	if (scans > 1)
		fetched = index_pages_fetched(work->pages * scans, index->pages,
									  (double) index->pages, root) / loop_count;
	costs->indexStartupCost = arguments;
	costs->indexTotalCost = arguments + fetched * costs->spc_random_page_cost +
		costs->num_sa_scans * costs->numIndexTuples *
		(cpu_index_tuple_cost + cpu_operator_cost * list_length(quals));
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

	/* the pages that charge_work charges for */
	if (scans > 1)
		pages = index_pages_fetched(pages * scans, index->pages,
									(double) index->pages, root) / loop_count;
	return saved * pages * costs->spc_random_page_cost;
}

/*
 * A search reads a leaf in each level; in a newer one mostly its filter if a
 * single key is sought, as above.
 */
static Cost
levels_cost(PlannerInfo *root, const IndexOptInfo *index,
			const GenericCosts *costs, const HybSizes *sizes, bool point,
			double loop_count)
{
	double		pages;

	if (sizes->nlevels <= 1)
		return 0;
	pages = costs->num_sa_scans * loop_count *
		(point ? sizes->newer_points : sizes->nlevels - 1);
	return index_pages_fetched(pages, index->pages, (double) index->pages,
							   root) / loop_count * costs->spc_random_page_cost;
}

/*
 * Where leaves do not keep keys, conditions on later columns are asked of rows of
 * the table: those are read that do not satisfy them.
 */
static Cost
excluded_rows_cost(PlannerInfo *root, const IndexOptInfo *index,
				   const HybScanWork *work, double loop_count)
{
	double		rows = work->searches * work->entries * (1 - work->share);
	double		pages;
	double		random_page_cost;

	if (rows < 1)
		return 0;
	get_tablespace_page_costs(index->rel->reltablespace, &random_page_cost, NULL);
	pages = index_pages_fetched(rows * loop_count, index->rel->pages,
								(double) index->pages, root) / loop_count;
	return pages * random_page_cost + rows * cpu_tuple_cost;
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
	HybSizes	sizes;
	GenericCosts costs;
	HybScanWork work;
	Cost		search_cost;

	read_sizes(index, &sizes);

	/*
	 * A scan reads the share of the pages that the entries which it looks at
	 * are of all.  What it reads are leaves, neither delta log nor free
	 * pages: have the shares be of an index of that size.  Only an index
	 * without leaves is charged for its log, which it has to read at least
	 * once.
	 */
	sized_index = *index;
	if (sizes.leaf_pages > 0 && sizes.leaf_pages < index->pages)
		sized_index.pages = (BlockNumber) sizes.leaf_pages;
	else if (sizes.leaf_pages == 0)
		sized_index.pages = Max((BlockNumber) 1,
								Min(index->pages,
									(BlockNumber) sizes.delta_pages));
	hyb_estimate_work(root, path, &sized_index, &sizes, &work);
	charge_work(root, path, &sized_index, &work, loop_count, &costs);
	if (!work.all_equal && !work.skips)
		costs.indexTotalCost -= filter_savings(root, &sized_index, &costs,
											   &sizes, work.entries,
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
	costs.indexTotalCost += costs.num_sa_scans * search_cost +
		levels_cost(root, &sized_index, &costs, &sizes, work.all_equal,
					loop_count) +
		hyb_reading_cost(root, path, &costs, &sizes);
	if (sizes.truncated)
		costs.indexTotalCost += excluded_rows_cost(root, &sized_index, &work, loop_count);

	Assert(costs.indexStartupCost >= 0 && costs.indexTotalCost >= 0);
	Assert(costs.indexSelectivity >= 0 && costs.indexSelectivity <= 1);
	*startup_cost = costs.indexStartupCost;
	*total_cost = costs.indexTotalCost;
	*selectivity = costs.indexSelectivity;

	/* What conditions on later columns leave is scattered over the table. */
	*correlation = index_correlation(root, index) * work.share;
	*pages = costs.numIndexPages;
}
