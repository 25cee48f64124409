/*
 * policy.c
 *		The merge policy: merge everything when the log has a fair share of it.
 *
 * The trigger is that of the Hybrid Index (Zhang et al., SIGMOD 2016, section
 * 5).  A merge starts when the dynamic stage holds 1/merge_ratio of the static
 * stage's entries, so merges repeat a constant share of the work.
 *
 * A merge here rewrites only the leaves that entries fall into.  Inserts into
 * one part of the key range leave most leaves alone.  So of the static stage
 * the policy counts only what the previous merge rewrote.  With random keys
 * that is all of it.  With ascending keys it is next to nothing, and the log
 * stays short.
 *
 * Inserters help when the active generation exceeds HARD_FACTOR triggers: for
 * each page of the log that it fills, an inserter merges PACE times the page's
 * entries.  So while a frozen generation of F entries is merged, the active one
 * grows by at most F / PACE beyond that bound, however small the steps are.
 * Then F stays below HARD_FACTOR / (1 - 1 / PACE) triggers.
 */
#include <math.h>

#include "merge/policy.h"

/*
 * Inserters help when the active generation reaches this multiple of the
 * trigger: the worker does not keep up.
 */
#define HARD_FACTOR			1.5

/*
 * Inserters also help when the active generation has as many pages as the one
 * being merged, since both take space at the same time.  A log of fewer pages than
 * this never makes them help for that.
 */
#define OVERLAP_LEAST		8

/* Entries that a helping inserter merges for each entry inserted. */
#define PACE				4

/*
 * Merges of size n, n + n/r, ... repeat the work of r entries for each new
 * entry.  So an entry of a small index has been merged often by the time the
 * index is large.  While a merge rewrites most of the index, its share is
 * multiplied by SMALL_FACTOR, up to SMALL_ENTRIES.  The default memory has room
 * for several trees of that size.
 */
#define SMALL_FACTOR		6
#define SMALL_ENTRIES		262144

/*
 * A merge that writes at most CHEAP_BYTES for each entry need not wait for the
 * share.  Where static entries are small, the log would otherwise be a large part
 * of the file.  Such a merge still waits for LEAST_SHARE of the share, since CPU
 * time depends on the number of entries.  A small index counts as having
 * SMALL_LEAST of its larger share here.
 */
#define CHEAP_BYTES			30
#define LEAST_SHARE			0.7
#define SMALL_LEAST			0.4

/*
 * The first merge has the log and all leaves side by side.  At this share of
 * the floor they are hardly longer than a btree's file.  An index that learns
 * dictionaries waits for the whole floor, since it needs keys to learn from.
 */
#define FIRST_FLOOR			0.75

/*
 * The active generation's share of the memory, in twentieths, at which a merge
 * begins, and at which inserters help.  The frozen one keeps its memory until
 * its merge ends.
 */
#define PRESS_SHARE			7
#define HELP_SHARE			11

/* Bytes that an entry takes in a compact tree. */
#define COMPACT_BYTES		12

/* The log of a compact tree may take this multiple of the tree's share. */
#define LOG_SHARE			6

/*
 * A log of this many pages without memory is worth a merge: readers build a
 * private tree from it again and again.
 */
#define PRESSURE_PAGES		16

/*
 * Pages of the log after which an index learns its dictionaries.  They hold
 * more keys than a sample takes, and few enough for the one step of learning.
 */
#define LEARN_PAGES			96

/*
 * Percentage of tombstones among all TIDs, and of wholly dead leaves among all
 * leaves, above which a merge visits all leaves.  A scan reads dead leaves in
 * vain, so that limit is lower.
 */
#define COMPACT_TOMBSTONES	20
#define COMPACT_LEAVES		1

/*
 * A merge looks for stale entries if the entries have grown by this share since the last
 * look: a little less than what merges of hybrid_hot wait for (CHAINS_PATIENCE in facts.c).
 */
#define STALE_SHARE			0.4

/* The same by this share over the rows that VACUUM has counted. */
#define VACUUM_STALE_SHARE	0.2

/*
 * Leaves that are emptier than JOIN_FILL on average are joined.  Joined leaves
 * are well above it, or merges would visit them for ever.  It takes at least
 * JOIN_MIN_LEAVES leaves to make a difference.
 */
#define JOIN_FILL			0.75
#define JOIN_MIN_LEAVES		8

/*
 * Old and new leaves of a step exist side by side.  So a step reads at most one
 * of STEP_FRACTION leaves, or the file of a small index would grow too much.
 * It may always read STEP_MIN_LEAVES.  Up to STEP_GOOD_LEAVES it may read twice
 * the fraction, to find neighbours that it can take along (balance.c).
 */
#define STEP_FRACTION		32
#define STEP_MIN_LEAVES		4
#define STEP_GOOD_LEAVES	8

/*
 * Frozen entries that a step fetches: twice the even share of its leaves, at
 * least STEP_MIN_ENTRIES and at most STEP_MAX_PER_LEAF for a leaf.  Where
 * merges rewrite most leaves of a single level, entries fall evenly.  A step
 * would copy in vain what its leaves have no room for, with the trees locked.
 * So there it fetches the even share and 1/STEP_EVEN_PART more, at least
 * STEP_EVEN_MIN.
 */
#define STEP_MIN_ENTRIES	8192
#define STEP_MAX_PER_LEAF	512
#define STEP_EVEN_PART		8
#define STEP_EVEN_MIN		1024

/*
 * A step takes at least this many pages of entries, however few leaves it may
 * read.  Entries above all leaves need no reading, and each step rewrites the
 * leaf that the previous one left partly filled.
 */
#define STEP_MIN_PAGES		16

/*
 * Bounds of the number of freezes that the index holds, for two levels and for
 * three.  Two levels write less from 2 on, but reads pay for them.  During a load
 * there are few of these.
 */
#define TWO_LEVELS			16
#define TWO_LEVELS_LOAD		3
#define THREE_LEVELS		400

/*
 * An index may grow from each freeze to the next by what a merge waits for.  Then the
 * average of freezes is as a rule no less than 1 of EARLY_PART of the next one.
 */
#define EARLY_PART			3

/* The number of levels changes only beyond this multiple of a bound. */
#define MORE_LEVELS			1.25
#define LESS_LEVELS			0.7

/*
 * A quiet index of one level is merged in either of two cases:
 * - its log has a page for QUIET_SHARE leaves;
 * - 1 of QUIET_FREE pages of the file is free, since a log at the end of the
 *   file keeps the file from shrinking.
 * The file must have QUIET_MIN_FILE pages: a merge writes leaves before it
 * frees the log, so a smaller file would not become as short again.  A page of
 * the log that is not full counts as QUIET_ENTRIES entries.
 */
#define QUIET_SHARE			32
#define QUIET_FREE			16
#define QUIET_MIN_FILE		32
#define QUIET_ENTRIES		64

#ifndef lengthof
#define lengthof(array) (sizeof(array) / sizeof((array)[0]))
#endif

static uint64_t
min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* TIDs that the next merge will rewrite. */
static uint64_t
repeated_of(const HybMergeFacts *facts)
{
	return min64(facts->static_tids, facts->rewritten_tids);
}

/* Entries of the dynamic stage that are the ratio's share. */
static uint64_t
share_of(const HybMergeFacts *facts)
{
	return (repeated_of(facts) + facts->frozen_entries) / facts->ratio;
}

/* The same, larger while the index is small: what a merge waits for. */
static uint64_t
whole_share(const HybMergeFacts *facts)
{
	uint64_t	share = share_of(facts);

	if (repeated_of(facts) > facts->static_tids / 2 && share < SMALL_ENTRIES)
		share = min64((uint64_t) ((double) share * SMALL_FACTOR), SMALL_ENTRIES);
	return share;
}

/* Bytes of leaves that the next merge will rewrite. */
static double
repeated_bytes(const HybMergeFacts *facts)
{
	return (double) facts->static_pages * (double) facts->page_bytes *
		(double) repeated_of(facts) / (double) max64(facts->static_tids, 1);
}

/* The part of a share that a merge waits for: more would not make it cheaper. */
static uint64_t
cheap_of(const HybMergeFacts *facts, uint64_t share)
{
	double		least = LEAST_SHARE *
		fmax((double) share_of(facts), (double) share * SMALL_LEAST);

	return min64(share, max64((uint64_t) (repeated_bytes(facts) / CHEAP_BYTES),
							  (uint64_t) least));
}

static uint64_t
floor_of(const HybMergeFacts *facts)
{
	if (facts->static_tids > 0 || facts->learnable)
		return facts->floor;
	return (uint64_t) ((double) facts->floor * FIRST_FLOOR);
}

/*
 * Entries of the active generation that trigger a merge.  One of hybrid_hot looks at rows
 * of the table, so a whole share does make it cheaper.
 */
static uint64_t
trigger(const HybMergeFacts *facts)
{
	uint64_t	share = whole_share(facts);

	if (!facts->chains)
		share = cheap_of(facts, share);
	return max64(share, floor_of(facts));
}

/*
 * Does the active generation take this many twentieths of the budget?  If its
 * tree can be compact, its entries count; large entries make the log long
 * before they make the tree large.  Otherwise 5/7 of the share is compared with
 * the log: a quarter of the budget for PRESS_SHARE.
 */
static bool
fills(const HybMergeFacts *facts, uint64_t twentieths)
{
	uint64_t	share = facts->memory_budget / 20 * twentieths;
	uint64_t	log = facts->active_pages * facts->page_bytes;

	if (!facts->elastic)
		return log >= share / 7 * 5;
	return facts->active_entries * COMPACT_BYTES >= share ||
		log >= share * LOG_SHARE;
}

/*
 * Is a merge due for lack of memory?  The active generation fills a third of
 * the budget, or it got no memory, or memory is short and this index uses most.
 */
static bool
presses(const HybMergeFacts *facts)
{
	return fills(facts, PRESS_SHARE) ||
		(facts->active_pages >= PRESSURE_PAGES && facts->does_not_fit) ||
		(hyb_memory_is_short(facts) && facts->largest_tree);
}

/* Is the log long while an earlier one is merged or freed? */
static bool
overlaps(const HybMergeFacts *facts)
{
	return facts->merging_pages > 0 && facts->active_pages >= OVERLAP_LEAST &&
		facts->active_pages >= facts->merging_pages;
}

HybMergeNeed
hyb_policy_need(const HybMergeFacts *facts)
{
	uint64_t	enough = trigger(facts);
	HybMergeNeed need = {0};

	need.finish = facts->unfinished;
	need.freeze = facts->visit_asked ||
		(facts->learnable && facts->active_pages >= LEARN_PAGES);
	if (facts->active_entries > 0)
	{
		need.freeze |= facts->active_entries >= enough || presses(facts);
		if ((double) facts->active_entries >= (double) enough * HARD_FACTOR ||
			overlaps(facts) || fills(facts, HELP_SHARE))
			need.help = PACE *
				(facts->active_entries / max64(facts->active_pages, 1) + 1);
	}
	return need;
}

HybStepSize
hyb_policy_step(const HybMergeFacts *facts)
{
	uint64_t	part = max64(facts->leaves / STEP_FRACTION,
							 min64(facts->leaves / (STEP_FRACTION / 2),
								   STEP_GOOD_LEAVES));
	uint64_t	leaves = min64(facts->step_leaves,
							   max64(part, STEP_MIN_LEAVES));
	uint64_t	even = facts->frozen_entries * leaves / max64(facts->leaves, 1);
	HybStepSize size;

	size.leaves = (int) leaves;
	if (facts->nlevels == 1 && facts->leaves > 0 &&
		repeated_of(facts) > facts->static_tids / 2)
		size.entries = (int) min64(max64(even + even / STEP_EVEN_PART, STEP_EVEN_MIN),
								   max64(leaves * STEP_MAX_PER_LEAF, STEP_MIN_ENTRIES));
	else
		size.entries = (int) max64(STEP_MIN_ENTRIES,
								   min64(even * 2, leaves * STEP_MAX_PER_LEAF));
	size.bytes = max64(leaves, STEP_MIN_PAGES) * facts->page_bytes;
	return size;
}

/*
 * The model: with q freezes in the index and B bytes for an entry, an insertion
 * costs B q bytes with one level, 1.4 B sqrt(q) with two and 1.9 B cbrt(q) with
 * three.  A read costs a page for each level.  Only leaves that merges rewrite
 * count: with ascending keys one level is enough at any size.  Freezes that
 * come early because they are cheap are no reason for another level, and merges
 * that are cheap need none.
 *
 * If the newest level holds less than a quarter of a freeze, the entries of
 * each freeze moved on at once, and the level goes.
 */
int
hyb_policy_levels(const HybMergeFacts *facts)
{
	double		bounds[] = {facts->together ? TWO_LEVELS_LOAD : TWO_LEVELS, THREE_LEVELS};
	int			n = (int) min64(facts->nlevels, lengthof(bounds) + 1);
	double		q = (double) facts->static_tids;

	if (n == 1)
	{
		uint64_t	share = max64(whole_share(facts), 1);
		uint64_t	cheap = cheap_of(facts, share);

		if (repeated_bytes(facts) <= CHEAP_BYTES * (double) facts->freeze_entries)
			return 1;
		q = (double) repeated_of(facts);
		/* far fewer entries are frozen for want of memory */
		if (facts->freeze_entries >= cheap / EARLY_PART)
			q *= (double) cheap / (double) share;
	}
	q /= (double) max64(facts->freeze_entries, 1);
	if (n > 1 && facts->level_tids < facts->freeze_entries / 4)
		n--;
	else
	{
		while (n <= (int) lengthof(bounds) && q > bounds[n - 1] * MORE_LEVELS)
			n++;
		while (n > 1 && q < bounds[n - 2] * LESS_LEVELS)
			n--;
	}
	return (int) min64(n, facts->max_levels);
}

/*
 * Ski rental: a unit moves when keeping it has cost as much as moving it does.
 * That is at most twice the cost of the best decision.
 */
bool
hyb_policy_move(const HybUnitFacts *unit)
{
	double		price = unit->price + unit->path;

	return unit->rent >= price || unit->content >= price;
}

bool
hyb_policy_compact(const HybMergeFacts *facts, uint64_t visited, uint64_t dead)
{
	return facts->tombstones > 0 &&
		(facts->tombstones * 100 > facts->static_tids * COMPACT_TOMBSTONES ||
		 dead * 100 > visited * COMPACT_LEAVES);
}

/*
 * Each update of a key leaves an entry behind.  As many as STALE_SHARE of the entries
 * pay for a look at each of them.
 */
bool
hyb_policy_stale(const HybMergeFacts *facts)
{
	return facts->chains &&
		(double) (facts->static_tids + facts->frozen_entries) >
		(double) facts->settled_tids * (1 + STALE_SHARE);
}

bool
hyb_policy_settle(const HybMergeFacts *facts, double rows)
{
	return facts->chains &&
		(double) (facts->static_tids + facts->frozen_entries + facts->active_entries) >
		rows * (1 + VACUUM_STALE_SHARE);
}

bool
hyb_policy_join(const HybMergeFacts *facts, double fill)
{
	return facts->leaves >= JOIN_MIN_LEAVES && fill < JOIN_FILL;
}

/*
 * Ski rental again.  A quiet merge costs a leaf of the oldest level for each
 * entry of newer levels and the log, or all leaves.  It spends what was earned,
 * even if it does not finish.  So quiet merges write no more than other merges
 * and the log did, however often an application pauses.
 *
 * An index of one level is merged for its size: the log and the replaced leaves
 * become free.
 */
bool
hyb_policy_quiet(const HybMergeFacts *facts)
{
	uint64_t	moves = facts->newer_tids;
	uint64_t	earned = facts->earned_pages;

	if (facts->nlevels == 1)
	{
		if (facts->active_pages == 0 || facts->file_pages < QUIET_MIN_FILE ||
			(facts->active_pages < facts->leaves / QUIET_SHARE &&
			 facts->free_pages < facts->file_pages / QUIET_FREE))
			return false;
		moves = facts->active_entries + facts->active_pages * QUIET_ENTRIES;
		earned += facts->active_pages;
	}
	return earned >= min64(facts->oldest_leaves, moves) + facts->newer_leaves;
}
