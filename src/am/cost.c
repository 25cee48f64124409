/*
 * cost.c
 *		Cost estimates for the planner.
 *
 * Modelled on btcostestimate (utils/adt/selfuncs.c), with the sizes of the two
 * stages from the metapage in place of one tree.  A scan reads leaf pages.  Each
 * search descends the trees of the static stage, and also searches the dynamic
 * stage, which is in memory.  Range filters make ranges cheaper that are expected
 * to be empty.
 *
 * Leading columns with '=' and the column after them bound the ranges that a scan
 * reads, one for each setting of their arrays.  Conditions on later columns make
 * it skip within a range (scan_hop.c) to each value of the columns before them.
 * Their number is what statistics say of each column, multiplied.  Each skip reads
 * a leaf and looks at some rows, but all skips together read no more leaves and
 * look at no more rows than there are.  So skipping never costs more than reading
 * through, and nothing has to be decided here.
 */
#include "base/compat.h"

#include <math.h>

#include "access/amapi.h"
#include "access/genam.h"
#include "access/stratnum.h"
#include "am/am.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type_d.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "server/before_18/before_18.h"
#include "storage/bufmgr.h"
#include "store/meta.h"
#include "store/settings.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/spccache.h"

/* CPU cost of visiting one page in a descent, in cpu_operator_cost. */
#define PAGE_CPU_MULTIPLIER		50.0

/* Children of an inner page, if there is no metapage to read. */
#define ASSUMED_FANOUT			256.0

/* Looking at SKIP_ROWS rows of a leaf takes as long as finding one in it. */
#define SKIP_ROWS				10.0

/*
 * CPU cost of an entry that a scan returns, in cpu_operator_cost beside
 * cpu_index_tuple_cost, and of each value that an index-only scan makes of it.
 * Fixed-length values are integers plus a base, or bytes.  A string shares its
 * prefix with other rows, and its rest is coded.
 *
 * Measured on PostgreSQL 15 with tables in memory, in nanoseconds a row.  The
 * unit is what a sequential scan takes for what it is charged: 9.2 for
 * cpu_operator_cost = 0.0025.
 *
 *		index-only scan over			btree	hybrid	charged here
 *		int8, ascending					78		83		84
 *		int4, int4						79		104		94
 *		uuid							79		120		121
 *		text of 33 bytes, random		92		286		304
 */
#define ENTRY_OPERATORS			1.0
#define BYVAL_OPERATORS			1.0
#define FIXED_OPERATORS			2.0
#define STRING_OPERATORS		5.0
#define STRING_BYTE_OPERATORS	0.5

/* An entry of the log is merged in, and pins its page for an index-only scan. */
#define MERGE_OPERATORS			1.0
#define LOG_PIN_OPERATORS		40.0

/* What the metapage says. */
typedef struct Sizes
{
	double		leaf_pages;
	double		filter_pages;	/* of filters that know of ranges */
	double		delta_pages;
	double		static_entries;
	double		log_entries;
	int			nlevels;		/* static levels that have leaves */
	double		newer_points;	/* pages of the newer of these levels that a
								 * search for one key reads */
	bool		truncated;		/* leaves of the oldest level do not keep keys */
	int			height;			/* pages on the way down all levels */
	bool		chains;			/* of hybrid_hot */
} Sizes;

/* What a scan does. */
typedef struct ScanWork
{
	double		searches;		/* descents but those to the next leaf */
	double		pages;			/* leaves that it reads after each search */
	double		entries;		/* entries that it looks at there */
	double		share;			/* of these, the share that satisfies
								 * conditions on later columns */
	bool		all_equal;		/* every key column has '=' */
	bool		skips;			/* searches are skips within ranges */
	double		fetched;		/* leaves that one scan has to fetch */
} ScanWork;

/* ---- how much of the index a scan reads ---- */

/* The conditions on one index column. */
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

/* Sorts the conditions by column.  Returns the last column that has any, or -1. */
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

/* Statistics of an index column. */
static void
column_stats(PlannerInfo *root, const IndexOptInfo *index, int column,
			 VariableStatData *vardata)
{
	examine_variable(root,
					 (Node *) list_nth_node(TargetEntry, index->indextlist, column)->expr,
					 0, vardata);
}

/* Entries of the index that satisfy all of these conditions. */
static double
matching_entries(PlannerInfo *root, const IndexOptInfo *index, List *quals)
{
	List	   *sel_quals =
		add_predicate_to_index_quals(unconstify(IndexOptInfo *, index), quals);

	return index->rel->tuples *
		clauselist_selectivity(root, sel_quals, index->rel->relid, JOIN_INNER,
							   NULL);
}

/* Values of a column without '=' that satisfy its conditions, or 0 if unknown. */
static double
column_values(PlannerInfo *root, const IndexOptInfo *index, int column,
			  List *quals)
{
	VariableStatData vardata;
	bool		isdefault;
	double		values;

	column_stats(root, index, column, &vardata);
	values = get_variable_numdistinct(&vardata, &isdefault);
	ReleaseVariableStats(vardata);
	if (isdefault)
		return 0;
	if (quals == NIL)
		return values + 1;		/* the first search finds the first value */
	return Max(1.0, rint(values *
						 clauselist_selectivity(root, quals, index->rel->relid,
												JOIN_INNER, NULL)));
}

/*
 * Skips that conditions on columns up to `last` make, or 0 if unknown.  `first` is
 * the first column without '='.
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

/*
 * The work of a scan of an index that has as many pages as `index` says.  Notes a
 * row comparison among the conditions.
 */
static void
estimate_work(PlannerInfo *root, const IndexPath *path,
			  const IndexOptInfo *index, const Sizes *sizes,
			  ScanWork *work)
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
	 * A scan searches only for settings of arrays that have entries or lie
	 * just before one (scan_range.c).
	 */
	settings = Min(settings,
				   Max(1.0, 2 * (sizes->static_entries +
								 sizes->log_entries)));
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
		/* scans do not skip in leaves that do not keep keys */
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

/* ---- what reading entries takes ---- */

/* Bytes of a column of variable length, on average. */
static double
average_width(PlannerInfo *root, const IndexOptInfo *index, int column)
{
	const RelOptInfo *rel = index->rel;
	AttrNumber	attno = index->indexkeys[column];
	int			width = 0;

	if (attno >= rel->min_attr && attno <= rel->max_attr)
	{
		width = rel->attr_widths[attno - rel->min_attr];
		if (width <= 0)
			width = get_attavgwidth(planner_rt_fetch(rel->relid, root)->relid,
									attno);
	}
	return width > 0 ? width : get_typavgwidth(TEXTOID, -1);
}

/* CPU cost of making the values of an index-only scan from an entry. */
static double
decoding_operators(PlannerInfo *root, const IndexOptInfo *index)
{
	double		operators = 0;
	int			column = 0;
	ListCell   *lc;

	foreach(lc, index->indextlist)
	{
		int16		length;
		bool		byval;

		get_typlenbyval(exprType((Node *) lfirst_node(TargetEntry, lc)->expr),
						&length, &byval);
		if (byval)
			operators += BYVAL_OPERATORS;
		else if (length > 0)
			operators += FIXED_OPERATORS;
		else
			operators += STRING_OPERATORS +
				STRING_BYTE_OPERATORS * average_width(root, index, column);
		column++;
	}
	return operators;
}

/*
 * CPU cost of reading entries beyond cpu_index_tuple_cost.  Qualifiers see values
 * as they are stored, at the cost of their operators.
 */
static Cost
reading_cost(PlannerInfo *root, const IndexPath *path,
			 const GenericCosts *costs, const Sizes *sizes)
{
	double		entries = sizes->static_entries + sizes->log_entries;
	double		in_log = entries > 0 ? sizes->log_entries / entries : 0;
	double		returned = costs->indexSelectivity *
		path->indexinfo->rel->tuples;
	double		operators = costs->num_sa_scans * costs->numIndexTuples *
		in_log * MERGE_OPERATORS;

	operators += returned * ENTRY_OPERATORS;
	if (path->path.pathtype == T_IndexOnlyScan)
		operators += returned * (in_log * LOG_PIN_OPERATORS +
								 decoding_operators(root, path->indexinfo));
	return operators * cpu_operator_cost;
}

/* ---- all costs ---- */

/*
 * The planner holds a lock on the index.  A hypothetical index has no metapage:
 * its sizes are guessed from its number of pages.
 */
static void
read_sizes(const IndexOptInfo *index, Sizes *sizes)
{
	memset(sizes, 0, sizeof(Sizes));
	if (!index->hypothetical)
	{
		Relation	rel = index_open(index->indexoid, NoLock);
		Buffer		buf = ReadBuffer(rel, HYB_METAPAGE_BLKNO);
		const HybMetaPage *meta = hyb_page_meta(BufferGetPage(buf));

		sizes->chains = HYB_IS_SUMMARIZING(rel);
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
			sizes->delta_pages = meta->active.npages + meta->frozen.npages;
			sizes->log_entries = meta->active.nentries + meta->frozen.nentries;
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

/* Comparisons to find a place among n entries. */
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

	column_stats(root, index, 0, &vardata);
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

			/* further columns dilute the order of the first, as in nbtree */
			if (index->nkeycolumns > 1)
				result *= 0.75;
			free_attstatsslot(&sslot);
		}
	}
	ReleaseVariableStats(vardata);
	return result;
}

/* Pages that a scan fetches of this number, if it is repeated `loop_count` times. */
static double
pages_fetched(PlannerInfo *root, const IndexOptInfo *index, double pages,
			  double loop_count)
{
	return index_pages_fetched(pages * loop_count, index->pages,
							   (double) index->pages, root) / loop_count;
}

/*
 * Charges what genericcostestimate (utils/adt/selfuncs.c) does.  Before server 17
 * that one cannot be told of searches other than those for elements of arrays.
 */
static void
charge_work(PlannerInfo *root, IndexPath *path, IndexOptInfo *index,
			ScanWork *work, double loop_count, GenericCosts *costs)
{
	List	   *quals = get_quals_from_indexclauses(path->indexclauses);
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
	work->fetched = work->pages;
	if (work->searches * loop_count > 1)
		work->fetched = pages_fetched(root, index, work->pages * work->searches,
									  loop_count);
	costs->indexStartupCost = arguments;
	costs->indexTotalCost = arguments + work->fetched * costs->spc_random_page_cost +
		costs->num_sa_scans * costs->numIndexTuples *
		(cpu_index_tuple_cost + cpu_operator_cost * list_length(quals));
}

/*
 * Range filters save the leaves of ranges that turn out to be empty.
 *
 * If n entries are expected in a range, and lie at random, it is empty with
 * probability exp(-n).  Then the scan reads a filter page and mostly no leaf.
 * Filter pages are fewer than leaves, and in memory more often in the same
 * proportion.  Ranges that are expected to find entries are not charged for the
 * filter, because scans soon stop asking it (hyb_filter_try).  That a key asked
 * for is not there cannot be known.
 */
static Cost
filter_savings(const ScanWork *work, const GenericCosts *costs, const Sizes *sizes)
{
	double		saved;

	if (sizes->filter_pages == 0 || sizes->leaf_pages == 0)
		return 0;
	saved = exp(-work->entries) - Min(1.0, sizes->filter_pages / sizes->leaf_pages);
	return Max(saved, 0) * work->fetched * costs->spc_random_page_cost;
}

/*
 * A search reads a leaf in each level.  For a single key it reads only the filter
 * of most newer levels that have one.
 */
static Cost
levels_cost(PlannerInfo *root, const IndexOptInfo *index,
			const GenericCosts *costs, const Sizes *sizes, bool point,
			double loop_count)
{
	if (sizes->nlevels <= 1)
		return 0;
	return pages_fetched(root, index,
						 costs->num_sa_scans *
						 (point ? sizes->newer_points : sizes->nlevels - 1),
						 loop_count) * costs->spc_random_page_cost;
}

/* Charges for rows of the table that the index looks at. */
static Cost
looking_cost(PlannerInfo *root, const IndexOptInfo *index, double rows, double loop_count)
{
	double		pages;
	double		random_page_cost;

	if (rows < 1)
		return 0;
	get_tablespace_page_costs(index->rel->reltablespace, &random_page_cost, NULL);
	pages = index_pages_fetched(rows * loop_count, index->rel->pages,
								(double) index->pages, root) / loop_count;
	return pages * random_page_cost + rows * cpu_tuple_cost;
}

/*
 * If leaves do not keep keys, conditions on later columns are checked in the rows
 * of the table: of those that do not satisfy them, for nothing.
 */
static double
excluded_rows(const ScanWork *work)
{
	return work->searches * work->entries * (1 - work->share);
}

/*
 * Stale entries of hybrid_hot lead to rows for nothing.  Of the others a scan looks at
 * rows that the executor looks at again: not in an index-only scan, which the planner
 * thinks possible if no column is asked for.
 */
static Cost
chains_cost(PlannerInfo *root, const IndexPath *path, const GenericCosts *costs,
			const Sizes *sizes, double loop_count)
{
	const IndexOptInfo *index = path->indexinfo;
	double		entries = costs->num_sa_scans * costs->numIndexTuples;
	double		rows = index->rel->tuples *
		clauselist_selectivity(root, index->indpred, index->rel->relid, JOIN_INNER, NULL);
	double		stale = Max((sizes->static_entries + sizes->log_entries) / Max(rows, 1) - 1, 0);

	if (path->path.pathtype == T_IndexOnlyScan)
		stale += 1;
	return looking_cost(root, index, entries * stale, loop_count) +
		(path->path.pathtype == T_IndexScan ? entries * cpu_tuple_cost : 0);
}

/*
 * Scans of hybrid_hot, but for bitmap scans, call functions of expressions and of the
 * predicate.  Unless all are parallel safe, no worker does.  The server asks
 * amcanparallel after it has asked for the cost of a path without workers.
 */
static void
keep_from_workers(PlannerInfo *root, IndexPath *path)
{
	IndexOptInfo *index = path->indexinfo;
	char		hazard = root->glob->maxParallelHazard;

	/* without this only functions of the query are looked at */
	root->glob->maxParallelHazard = PROPARALLEL_UNSAFE;
	if (!is_parallel_safe(root, (Node *) index->indexprs) ||
		!is_parallel_safe(root, (Node *) index->indpred))
	{
		index->amcanparallel = false;
		path->path.parallel_safe = false;
	}
	root->glob->maxParallelHazard = hazard;
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
	Sizes		sizes;
	GenericCosts costs;
	ScanWork	work;
	Cost		search_cost;

	read_sizes(index, &sizes);

	/*
	 * A scan reads the share of pages that its entries have of all entries.
	 * It reads leaves, neither the delta log nor free pages, so the index is
	 * taken to have only the leaves.  An index without leaves is charged for
	 * its log, which is read at least once.
	 */
	sized_index = *index;
	if (sizes.leaf_pages > 0 && sizes.leaf_pages < index->pages)
		sized_index.pages = (BlockNumber) sizes.leaf_pages;
	else if (sizes.leaf_pages == 0)
		sized_index.pages = Max((BlockNumber) 1,
								Min(index->pages,
									(BlockNumber) sizes.delta_pages));
	estimate_work(root, path, &sized_index, &sizes, &work);
	charge_work(root, path, &sized_index, &work, loop_count, &costs);
	if (!work.all_equal && !work.skips)
		costs.indexTotalCost -= filter_savings(&work, &costs, &sizes);

	/* a search compares in both stages and visits pages, as btree charges */
	search_cost = (search_comparisons(sizes.static_entries) +
				   search_comparisons(sizes.log_entries) +
				   Max(sizes.height, 1) * PAGE_CPU_MULTIPLIER) *
		cpu_operator_cost;
	costs.indexStartupCost += search_cost;
	costs.indexTotalCost += costs.num_sa_scans * search_cost +
		levels_cost(root, &sized_index, &costs, &sizes, work.all_equal,
					loop_count) +
		reading_cost(root, path, &costs, &sizes);
	if (sizes.truncated)
		costs.indexTotalCost += looking_cost(root, &sized_index, excluded_rows(&work),
											 loop_count);
	if (sizes.chains)
	{
		costs.indexTotalCost += chains_cost(root, path, &costs, &sizes, loop_count);
		keep_from_workers(root, path);
	}

	Assert(costs.indexStartupCost >= 0 && costs.indexTotalCost >= 0);
	Assert(costs.indexSelectivity >= 0 && costs.indexSelectivity <= 1);
	*startup_cost = costs.indexStartupCost;
	*total_cost = costs.indexTotalCost;
	*selectivity = costs.indexSelectivity;

	/* conditions on later columns leave rows scattered over the table */
	*correlation = index_correlation(root, index) * work.share;
	*pages = costs.numIndexPages;
}
