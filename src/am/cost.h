/*
 * cost.h
 *		What the parts of cost estimates share.
 */
#ifndef HYB_COST_H
#define HYB_COST_H

#include "nodes/pathnodes.h"
#include "utils/selfuncs.h"

/* What the metapage says */
typedef struct HybSizes
{
	double		leaf_pages;
	double		filter_pages;	/* of filters that know of ranges */
	double		delta_pages;
	double		static_entries;
	double		dynamic_entries;
	int			nlevels;		/* static levels that have leaves, */
	double		newer_points;	/* pages of all but the oldest of them that a
								 * search for one key reads */
	bool		truncated;		/* leaves of the oldest one do not keep keys */
	int			height;			/* and inner and leaf pages on the way down
								 * all of them */
} HybSizes;

/* What a scan does */
typedef struct HybScanWork
{
	double		searches;		/* descents that lead to somewhere else than
								 * the next leaf */
	double		pages;			/* leaves that it reads, behind each */
	double		entries;		/* entries that it looks at there */
	double		share;			/* of the entries in the ranges, those that
								 * satisfy conditions on later columns */
	bool		all_equal;		/* every key column has '=' */
	bool		skips;			/* searches are skips within ranges */
} HybScanWork;

/*
 * cost_work.c: of an index that has as many pages as `index` says.  A row
 * comparison among the conditions is noted.
 */
extern void hyb_estimate_work(PlannerInfo *root, const IndexPath *path,
							  const IndexOptInfo *index,
							  const HybSizes *sizes, HybScanWork *work);

/* Statistics of an index column, as btcostestimate finds them. */
extern void hyb_column_stats(PlannerInfo *root, const IndexOptInfo *index,
							 int column, VariableStatData *vardata);

/* cost_read.c: what reading entries takes beyond cpu_index_tuple_cost */
extern Cost hyb_reading_cost(PlannerInfo *root, const IndexPath *path,
							 const GenericCosts *costs,
							 const HybSizes *sizes);

#endif							/* HYB_COST_H */
