/*
 * build_leaves.h
 *		The leaves of an index build, from sorted entries.
 */
#ifndef HYB_BUILD_LEAVES_H
#define HYB_BUILD_LEAVES_H

#include "build/build_runs.h"
#include "build/build_scan.h"
#include "filter/filter_place.h"
#include "leaf/leaf.h"
#include "port/atomics.h"

/* One run of neighbouring leaves: all of the index, or a range of it. */
typedef struct HybBuildLeaves
{
	/* given by the caller, who zeroes all else */
	HybIndex   *ix;
	Relation	heap;
	bool		unique;
	bool		nulls_not_distinct;
	uint64		entries;		/* of the whole index */
	HybStepSpace *space;
	bool		is_range;		/* others have the leaves before or behind */
	const HybPos *low;			/* NULL: the leaves begin the index */
	const HybPos *high;			/* NULL: they end it */
	pg_atomic_uint64 *all_done; /* entries that all processes have written, or
								 * NULL if this is the only one */
	bool		report;			/* progress: this is not a worker */

	/* result */
	HybChildList leaves;

	HybLeafBuilder *builder;
	HybFilterBuilder *filter;	/* or NULL: no filters */
	HybFilterPacker *filters;	/* of the last leaves */
	bool		choose;			/* whether there are any depends on: */
	uint64		ascending;		/* entries whose row is behind that of the
								 * entry before */
	ItemPointerData last_tid;
	uint64		done;			/* entries written */
	uint64		told;			/* of those, in all_done */
	Size		node_size;		/* of the level-1 node that the last leaf is
								 * in */
	HybBuf		entry;
	HybValue   *vals;
	HybBuf		previous;		/* key of the last live entry */
} HybBuildLeaves;

/*
 * In CurrentMemoryContext.  Entries come from a merge of runs, or else from
 * the sort of a scan.
 */
extern void hyb_build_leaves_begin(HybBuildLeaves *leaves);
extern void hyb_build_leaves_from_merge(HybBuildLeaves *leaves,
										HybRunMerge *merge);
extern void hyb_build_leaves_from_scan(HybBuildLeaves *leaves,
									   HybBuildScan *scan);
extern void hyb_build_leaves_finish(HybBuildLeaves *leaves);

/* What a build has written, by however many processes. */
typedef struct HybBuildWritten
{
	HybChildList children;		/* leaves, or the nodes above them */
	int			level;			/* of the nodes whose children these are */
	uint64		entries;
	uint64		leaf_pages;
	uint64		inner_pages;
	uint64		filter_pages;
	uint64		filtered;		/* leaves that have a filter */
	bool		filters;
	BlockNumber *spare;			/* blocks that are free */
	int			nspare;
} HybBuildWritten;

/*
 * The leaves of the whole index from one sort, which is performed and ended, as
 * is the scan.
 */
extern void hyb_build_all_leaves(HybBuildScan *scan, bool nulls_not_distinct,
								 HybBuildWritten *written);

#endif							/* HYB_BUILD_LEAVES_H */
