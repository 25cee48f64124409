/*
 * filter_choice.c
 *		Which filters the leaves of a level get.
 *
 * The oldest level, where all but a few entries are, has what the storage
 * parameter says.  A search goes through newer levels before it gets there,
 * mostly in vain: these have filters for points, or those that the index asks
 * for.
 *
 * With filter = auto the oldest level of a unique index has filters for points
 * while they pay: they take the place of leaves that uniqueness checks would
 * read, for nothing and from disk.  So the leaves do not fit half of
 * shared_buffers, checks do get to the static stage, and find nothing there (they
 * do not where keys ascend, or rows are updated); and a merge rewrites leaves, and
 * filters with them, for more than a few entries each.  What is on stays on a
 * little longer, so that no filters come and go.
 */
#include "base/compat.h"

#include "filter/filter_choice.h"
#include "filter/filter_use.h"
#include "log/log.h"
#include "storage/bufmgr.h"
#include "store/meta.h"
#include "utils/rel.h"

/*
 * Leaves in shared_buffers' worth: more than that on, less than that off.  The
 * table whose rows are inserted has the rest.
 */
#define SIZE_ON		0.5
#define SIZE_OFF	0.375

/*
 * Where there is one level: entries that a merge brings each leaf.  With fewer
 * than 8, filters add an eighth or more to what is logged.  A merge of less
 * than an eighth of the memory for logs is one that somebody asked for, and
 * says nothing about that.
 */
#define ENTRIES_ON	8.0
#define ENTRIES_OFF	4.0
#define SMALL_MERGE	8

/* Share of uniqueness checks that look for a leaf in vain. */
#define ABSENT_ON	0.25
#define ABSENT_OFF	0.0625

/* It is known once so many were counted, and halved beyond so many. */
#define CHECKS_KNOWN	1000
#define CHECKS_OLD		(1 << 21)

/* Of a table that is loaded in the order of keys; by chance it is a half. */
#define ASCENDING		0.9

/*
 * Range filters are of keys in the order of memcmp, Grafite of numbers in their
 * end; points go by equal bytes.
 */
static bool
filter_is_possible(const HybKeyDesc *desc, HybFilterKind kind)
{
	if (kind == HYB_FILTER_GRAFITE &&
		!hyb_column_is_fixed(&desc->cols[desc->nkeys - 1]))
		return false;
	return hyb_filter_has_ranges(kind) ? desc->all_mem : desc->exact;
}

bool
hyb_filter_is_chosen(const HybIndex *ix)
{
	return hyb_filter_option(ix->rel) == HYB_FILTER_AUTO &&
		ix->rel->rd_index->indisunique &&
		filter_is_possible(ix->desc, HYB_FILTER_POINTS);
}

HybFilterKind
hyb_filter_kind_for_build(const HybIndex *ix, double leaves, double ascending)
{
	return hyb_filter_is_chosen(ix) && leaves > SIZE_ON * NBuffers &&
		ascending < ASCENDING ? HYB_FILTER_POINTS : HYB_FILTER_NONE;
}

/*
 * Do uniqueness checks look for leaves in vain?  `has`: what is assumed where
 * that is not known, since nothing was inserted after the server's start, say.
 */
static bool
checks_find_nothing(const HybIndex *ix, bool has)
{
	HybDynamicStats stats;
	uint64		absent;
	uint64		all;

	hyb_dynamic_stats(unconstify(HybIndex *, ix), true, &stats);
	absent = stats.counters[HYB_UNIQUE_ABSENT];
	all = absent + stats.counters[HYB_UNIQUE_ABOVE] +
		stats.counters[HYB_UNIQUE_PRESENT];
	if (all < CHECKS_KNOWN)
		return has;
	if (all > CHECKS_OLD)
		hyb_dynamic_age_counters(unconstify(HybIndex *, ix), HYB_PROBE_OUTCOMES,
								 HYB_UNIQUE_OUTCOMES);
	return absent > (has ? ABSENT_OFF : ABSENT_ON) * all;
}

/* The choice for the oldest level, at a merge. */
static bool
points_pay(const HybIndex *ix, int nlevels)
{
	HybMetaPage *meta;
	Buffer		metabuf;
	double		leaves;
	double		entries;
	uint64		log_bytes;
	bool		has;

	if (!hyb_filter_is_chosen(ix))
		return false;
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	leaves = (double) meta->levels[0].leaf_pages;
	has = meta->levels[0].filter_pages > 0;
	entries = (double) meta->frozen.nentries;
	log_bytes = (uint64) meta->frozen.npages * BLCKSZ;
	UnlockReleaseBuffer(metabuf);

	return leaves > (has ? SIZE_OFF : SIZE_ON) * NBuffers &&
		(nlevels > 1 ||
		 entries > (has ? ENTRIES_OFF : ENTRIES_ON) * leaves ||
		 (has && log_bytes < hyb_arena_budget() / SMALL_MERGE)) &&
		checks_find_nothing(ix, has);
}

/* Of the beginnings of keys there are filters for points only. */
bool
hyb_filter_fits_prefixes(const HybIndex *ix, HybFilterKind kind)
{
	return !ix->desc->truncated || !hyb_filter_has_ranges(kind);
}

HybFilterKind
hyb_filter_kind_of_level(const HybIndex *ix, int level, int nlevels)
{
	HybFilterKind kind = hyb_filter_option(ix->rel);
	bool		newer = level > 0 && nlevels > 1;

	Assert(level >= 0 && level < nlevels && nlevels <= HYB_MAX_LEVELS);
	if (level == 0 && !hyb_filter_fits_prefixes(ix, kind))
		return HYB_FILTER_NONE;
	if (kind == HYB_FILTER_AUTO)
		kind = !newer && points_pay(ix, nlevels) ? HYB_FILTER_POINTS :
			HYB_FILTER_NONE;
	if (kind != HYB_FILTER_NONE && !filter_is_possible(ix->desc, kind))
		kind = HYB_FILTER_NONE;
	if (kind == HYB_FILTER_NONE && newer &&
		filter_is_possible(ix->desc, HYB_FILTER_POINTS))
		kind = HYB_FILTER_POINTS;
	return kind;
}

bool
hyb_filter_impossible(const HybIndex *ix)
{
	HybFilterKind kind = hyb_filter_option(ix->rel);

	return kind != HYB_FILTER_NONE && kind != HYB_FILTER_AUTO &&
		!filter_is_possible(ix->desc, kind);
}
