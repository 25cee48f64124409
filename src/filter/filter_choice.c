/*
 * filter_choice.c
 *		Which filters the leaves of a level get, and whether searches ask them.
 *
 * The oldest level holds nearly all entries and has what the storage parameter
 * says.  A search passes the newer levels first, mostly in vain.  These have
 * filters for points, or what the index asks for.
 *
 * With filter = auto the oldest level of a unique index has filters for points
 * while they pay: they replace leaves that uniqueness checks would read in vain
 * from disk.  That needs all of this:
 *
 *	- The leaves do not fit half of shared_buffers.
 *	- Uniqueness checks find nothing in the static stage.  They do not get there
 *	  where keys ascend, and find the key where rows are updated.
 *	- A merge rewrites a leaf, and its filter, for more than a few entries.
 *
 * The bounds for filters that exist are lower, so that they do not come and go.
 *
 * Each backend counts how often questions are answered "no", and stops to ask
 * where they rarely are.
 */
#include "base/compat.h"

#include "filter/filter_choice.h"
#include "log/log.h"
#include "shared/index_cache.h"
#include "storage/bufmgr.h"
#include "store/meta.h"
#include "utils/rel.h"

/* ---- which filters leaves get ---- */

/*
 * The leaves' share of shared_buffers above which filters are made, and below
 * which they go.  The table whose rows are inserted has the rest.
 */
#define SIZE_ON		0.5
#define SIZE_OFF	0.375

/*
 * Entries that a merge brings each leaf, where there is one level.  With fewer
 * than 8, filters add an eighth or more to the WAL.  A user asked for a merge
 * of less than 1/SMALL_MERGE of the memory for logs, so it decides nothing.
 */
#define ENTRIES_ON	8.0
#define ENTRIES_OFF	4.0
#define SMALL_MERGE	8

/* Share of uniqueness checks that look for a leaf in vain. */
#define ABSENT_ON	0.25
#define ABSENT_OFF	0.0625

/* Checks from which on that share is known, and beyond which counts are halved. */
#define CHECKS_KNOWN	1000
#define CHECKS_OLD		(1 << 21)

/* Share of ascending entries of a table that is loaded in the order of keys. */
#define ASCENDING		0.9

/* What each kind needs of keys: filter_kind.c. */
static bool
filter_is_possible(const HybKeyDesc *desc, HybFilterKind kind)
{
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
 * Do uniqueness checks look for leaves in vain?  Where too few were counted since
 * the server's start, returns whether the level has filters.
 */
static bool
checks_find_nothing(const HybIndex *ix, bool has)
{
	HybLogStats stats;
	uint64		absent;
	uint64		all;

	hyb_log_stats(unconstify(HybIndex *, ix), true, &stats);
	absent = stats.counters[HYB_UNIQUE_ABSENT];
	all = absent + stats.counters[HYB_UNIQUE_ABOVE] + stats.counters[HYB_UNIQUE_DENIED] +
		stats.counters[HYB_UNIQUE_PRESENT];
	if (all < CHECKS_KNOWN)
		return has;
	if (all > CHECKS_OLD)
		hyb_log_age_counters(unconstify(HybIndex *, ix), HYB_PROBE_OUTCOMES,
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
		 (has && log_bytes < hyb_arena_tree_budget() / SMALL_MERGE)) &&
		checks_find_nothing(ix, has);
}

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

/* ---- whether searches ask them ---- */

StaticAssertDecl(HYB_PROBE_OUTCOMES + HYB_UNIQUE_OUTCOMES <= HYB_UPPER_COUNTERS,
				 "outcomes are counted with the dynamic stage's counters");

/* Filters pay if one question in FILTER_PAYS is answered "no". */
#define FILTER_PAYS		8

/* The debt stays within these bounds, so that old answers are forgotten. */
#define FILTER_MEMORY	64

/* Questions between two that are asked, where filters do not pay. */
#define FILTER_MIN_INTERVAL	16
#define FILTER_MAX_INTERVAL	1024

/* What a backend has found out about the filters of a level. */
typedef struct FilterHabit
{
	int16		debt;			/* above 0: filters did not pay lately */
	int16		turn;			/* questions not asked since the last one */
	int16		interval;		/* of them between two that are asked */
} FilterHabit;

typedef struct Habits
{
	uint8		seldom[HYB_FILTER_ASKERS];	/* a bit for each level whose
											 * filters do not pay */
	FilterHabit levels[HYB_FILTER_ASKERS][HYB_MAX_LEVELS];
} Habits;

StaticAssertDecl(HYB_MAX_LEVELS <= 8, "a byte has a bit for each level");

#define ALL_LEVELS	((uint8) ((1 << HYB_MAX_LEVELS) - 1))

static HybCachePiece habit_piece = {.size = sizeof(Habits)};

void
hyb_filter_use_init(void)
{
	hyb_cache_add_piece(&habit_piece);
}

uint8
hyb_filter_try(const HybIndex *ix, HybFilterAsker asker)
{
	Habits	   *habits = hyb_cache_piece(ix, &habit_piece);
	uint8		levels = ALL_LEVELS & ~habits->seldom[asker];

	if (asker == HYB_ASK_RANGE && !hyb_filter_has_ranges(hyb_filter_option(ix->rel)))
		return 0;
	if (likely(levels == ALL_LEVELS))
		return levels;
	for (int i = 0; i < HYB_MAX_LEVELS; i++)
	{
		FilterHabit *habit = &habits->levels[asker][i];

		if ((levels >> i & 1) != 0 || ++habit->turn < habit->interval)
			continue;
		habit->turn = 0;
		habit->interval = Min(Max(habit->interval, FILTER_MIN_INTERVAL / 2) * 2,
							  FILTER_MAX_INTERVAL);
		levels |= 1 << i;
	}
	return levels;
}

void
hyb_filter_note(const HybIndex *ix, HybFilterAsker asker, int level,
				HybProbeOutcome outcome)
{
	Habits	   *habits = hyb_cache_piece(ix, &habit_piece);
	FilterHabit *habit = &habits->levels[asker][level];

	Assert(asker < HYB_FILTER_ASKERS && level >= 0 && level < HYB_MAX_LEVELS);
	Assert(outcome < HYB_PROBE_OUTCOMES);
	Assert(abs(habit->debt) <= FILTER_MEMORY && habit->interval <= FILTER_MAX_INTERVAL);
	hyb_log_count(ix, outcome);
	if (outcome == HYB_PROBE_NEGATIVE)
	{
		habit->debt = Max(habit->debt - FILTER_PAYS, -FILTER_MEMORY);
		habit->interval = FILTER_MIN_INTERVAL;
	}
	else
		habit->debt = Min(habit->debt + 1, FILTER_MEMORY);
	if (habit->debt < FILTER_MEMORY / 2)
		habits->seldom[asker] &= ~(1 << level);
	else
		habits->seldom[asker] |= 1 << level;
}
