/*
 * policy_ratio.c
 *		Merge by ratio: everything, when there is enough of it.
 *
 * The ratio trigger is that of the Hybrid Index (Zhang et al., SIGMOD 2016,
 * section 5): merge when the dynamic stage has 1/merge_ratio of the static
 * stage's entries, so the share of work that a merge repeats is constant.
 *
 * But a merge here repeats work only for leaves that it rewrites, and a
 * workload that inserts at one end of the key range, or into a part of it,
 * leaves most of them alone.  So of the static stage only what the merge
 * before this one rewrote is counted: with random keys that is all of it, with
 * ascending keys next to nothing, and the log stays short.
 *
 * Steps of inserters are paced by what they insert: where the active
 * generation has outgrown its bound of HARD_FACTOR times the trigger, whoever
 * fills a page of the log merges PACE times as many entries.  So while a
 * frozen generation of F entries is merged, the active one grows by F / PACE
 * at most beyond the bound, however small the steps, and F stays below
 * HARD_FACTOR / (1 - 1 / PACE) triggers.
 */
#include <math.h>

#include "merge/policy.h"

/*
 * Inserters do steps themselves when the active generation is this many times
 * what triggers a merge: the worker does not keep up.
 */
#define HARD_FACTOR			1.5

/*
 * Or when, while a generation is merged, the active one has this part of its
 * pages: both take space at the same time.  Less where entries are appended one by
 * one, which takes longer, so that a worker keeps up more easily.
 */
#define OVERLAP				1.0
#define SINGLE_OVERLAP		0.8

/* Shorter logs are in nobody's way. */
#define OVERLAP_LEAST		8

/* Entries that an inserter merges then for each one that was inserted. */
#define PACE				4

/*
 * The smaller an index, the more often an entry of it has been merged by the
 * time that it is large: merges of size n, n + n/r, ... repeat r entries' work
 * for each new one all along.  While it is small, and merges rewrite most of
 * it, a dynamic stage of so many times the share costs few bytes; it stays at
 * so many entries until the share has reached that.
 */
#define SMALL_FACTOR		2.5
#define SMALL_ENTRIES		65536

/*
 * A merge that writes no more than so many bytes for each entry, less than what
 * appending it takes of the WAL, need not wait for the share: where a static
 * entry takes few bytes the log, where it takes as many as ever, would be a large
 * part of the file.  It waits for that part of the share in any case, since what
 * merging takes of the CPU goes by entries, too.
 */
#define CHEAP_BYTES			40
#define LEAST_SHARE			0.7

/*
 * Entries that are appended one by one take more of the WAL and of the time, so
 * merges may.  Where one takes more than so many times the bytes of a static
 * entry, a merge may write as much more, up to what appending takes and little
 * beyond: so many bytes, and those that the entry has in the log.
 */
#define SINGLE_LOG			1.25
#define SINGLE_BYTES		64
#define SINGLE_LEAST_SHARE	0.5

/*
 * Only while the static stage takes that part of shared_buffers at most: merges of
 * a larger one read and write on disk, and its log is no large part of anything.
 */
#define SINGLE_BUFFERS		0.25

/*
 * The first merge has the log and all leaves side by side.  At that part of the
 * floor they are hardly longer than btree's file would be; later merges have a
 * part of the entries in the log.  (One that learns dictionaries needs keys to
 * learn from.)
 */
#define FIRST_FLOOR			0.75

/*
 * The active generation's part of the memory, in twentieths, at which a merge
 * begins, and at which inserters help: the frozen one has its memory to the end
 * of the merge.
 */
#define PRESS_SHARE			7
#define HELP_SHARE			11

/* Bytes that an entry takes in a compact tree. */
#define COMPACT_BYTES		12

/* The log of a compact tree may have so many times the tree's share. */
#define LOG_SHARE			6

/*
 * A log of so many pages that there is no memory for is worth a merge: readers
 * build a tree of their own from it again and again.
 */
#define PRESSURE_PAGES		16

/*
 * Pages of the log that make an index learn its dictionaries: more keys than a
 * sample takes, and few enough for the one step that learning is.
 */
#define LEARN_PAGES			96

/*
 * Others wait behind a lock that is waited for, so it is not for long: about
 * what a slice of a merge takes (worker.c).
 */
#define LEARN_WAIT_MS		100

/*
 * Tombstones in per cent of all TIDs, and wholly dead leaves in per cent of
 * all leaves, that are worth the visit of all leaves.  A scan meets dead
 * leaves for nothing, so fewer of them are.
 */
#define COMPACT_TOMBSTONES	20
#define COMPACT_LEAVES		1

/*
 * Leaves emptier than that on average are worth a visit of all, and joined
 * they are well above it, or merges would visit them for ever; and there have
 * to be so many that joining them makes a difference.
 */
#define JOIN_FILL			0.75
#define JOIN_MIN_LEAVES		8

/*
 * Old and new leaves of a step exist side by side, so of a small index it
 * reads one in so many leaves, lest the file grow by a good part of the index,
 * but some; twice the part up to where a step is long enough to find neighbours
 * to take along (balance.c).
 */
#define STEP_FRACTION		32
#define STEP_MIN_LEAVES		4
#define STEP_GOOD_LEAVES	8

/*
 * Frozen entries that a step fetches: twice what its share of the leaves would
 * get if they fell evenly, within these bounds.  Where merges rewrite most leaves
 * of a single level they fall evenly, more or less: what its leaves have no room
 * for is copied in vain, and with the trees locked, so it is that much and a part
 * more.
 */
#define STEP_MIN_ENTRIES	8192
#define STEP_MAX_PER_LEAF	512
#define STEP_EVEN_PART		8
#define STEP_EVEN_MIN		1024

/*
 * Pages of entries that a step takes, whatever few leaves it may read: those
 * above all leaves read none, and each step rewrites the leaf that the one
 * before it left partly filled.
 */
#define STEP_MIN_PAGES		16

/* Freezes that are in an index which has more levels than one, than two. */
#define TWO_LEVELS			16
#define THREE_LEVELS		400

/*
 * A quiet index of one level is merged if its log has a page for so many leaves,
 * or one of so many pages is free, since a log at the end of the file keeps it
 * from becoming shorter; and if the file has so many pages: a merge writes
 * leaves before it frees the log, and the file of a smaller index could not be
 * made as short again.  Pages that are not full are taken for pages of so many
 * entries.
 */
#define QUIET_SHARE			32
#define QUIET_FREE			16
#define QUIET_MIN_FILE		32
#define QUIET_ENTRIES		64

/* A level more, or less, is worth it only beyond that part of the bound. */
#define MORE_LEVELS			1.25
#define LESS_LEVELS			0.6

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

/* Are entries appended one by one, so that merges may come early? */
static bool
early(const HybMergeFacts *facts)
{
	return facts->single &&
		(double) facts->static_pages <= (double) facts->buffer_pages * SINGLE_BUFFERS;
}

/* Bytes that an entry takes of the log: of what is to be merged, on average. */
static double
log_bytes(const HybMergeFacts *facts)
{
	if (facts->active_pages > 0)
		return (double) (facts->active_pages * facts->page_bytes) /
			(double) max64(facts->active_entries, 1);
	return (double) (facts->merging_pages * facts->page_bytes) /
		(double) max64(facts->frozen_entries, 1);
}

/* Bytes of WAL that a merge may write for an entry without waiting for its share. */
static double
cheap_bytes(const HybMergeFacts *facts)
{
	double		log = log_bytes(facts);
	double		entry = (double) (facts->static_pages * facts->page_bytes) /
		(double) max64(facts->static_tids, 1);

	/*
	 * it has to be so that a longer log, whatever is in it, is merged no
	 * later
	 */
	if (!early(facts) || log <= entry * SINGLE_LOG)
		return CHEAP_BYTES;
	return fmin(CHEAP_BYTES * log / fmax(entry * SINGLE_LOG, 1), SINGLE_BYTES + log);
}

/* Of a share, what a merge waits for, as more would not make it cheap. */
static uint64_t
cheap_of(const HybMergeFacts *facts, uint64_t share)
{
	double		bytes = (double) facts->static_pages * (double) facts->page_bytes;
	double		part = (double) repeated_of(facts) / (double) max64(facts->static_tids, 1);
	double		least = early(facts) ? SINGLE_LEAST_SHARE : LEAST_SHARE;

	return min64(share, max64((uint64_t) (bytes * part / cheap_bytes(facts)),
							  (uint64_t) ((double) share * least)));
}

static uint64_t
floor_of(const HybMergeFacts *facts)
{
	if (facts->static_tids > 0 || facts->learnable)
		return facts->floor;
	return (uint64_t) ((double) facts->floor * FIRST_FLOOR);
}

/* Entries of the active generation that trigger a merge. */
static uint64_t
trigger(const HybMergeFacts *facts)
{
	uint64_t	share = share_of(facts);

	if (repeated_of(facts) > facts->static_tids / 2 && share < SMALL_ENTRIES)
		share = min64((uint64_t) ((double) share * SMALL_FACTOR), SMALL_ENTRIES);
	return max64(cheap_of(facts, share), floor_of(facts));
}

/*
 * Has the active generation so many twentieths of the budget?  Of a tree that
 * can be compact the entries count; large ones make the log long before they
 * make the tree large.  Where it cannot be the log counts: a quarter of the
 * budget at the first share, as ever.
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
 * Does memory ask for a merge?  The active generation would fill a third of the
 * budget; or it got no memory at all; or memory is short and this index
 * has most.
 */
static bool
presses(const HybMergeFacts *facts)
{
	return fills(facts, PRESS_SHARE) ||
		(facts->active_pages >= PRESSURE_PAGES && facts->does_not_fit) ||
		(hyb_memory_is_short(facts) && facts->largest_tree);
}

/* Does the log grow long while an earlier one is merged, or freed? */
static bool
overlaps(const HybMergeFacts *facts)
{
	return facts->merging_pages > 0 && facts->active_pages >= OVERLAP_LEAST &&
		(double) facts->active_pages >=
		(double) facts->merging_pages * (early(facts) ? SINGLE_OVERLAP : OVERLAP);
}

static HybMergeNeed
ratio_need(const HybMergeFacts *facts)
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

static HybStepSize
ratio_step(const HybMergeFacts *facts)
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
 * The model: with q freezes in the index, B bytes an entry, one level costs B q
 * bytes an insertion, two 1.4 B sqrt(q), three 1.9 B cbrt(q), and a read one
 * page for each.  What counts are leaves that merges rewrite: where keys
 * ascend, one level is enough at any size; and freezes that come early because
 * they are cheap are no reason for another one.
 *
 * Where the newest level has less than a quarter of a freeze, the entries of
 * each went on at once.
 */
static int
ratio_levels(const HybMergeFacts *facts)
{
	static const double bounds[] = {TWO_LEVELS, THREE_LEVELS};
	int			n = (int) min64(facts->nlevels, lengthof(bounds) + 1);
	double		q = (double) facts->static_tids;

	if (n == 1)
	{
		uint64_t	share = max64(share_of(facts), 1);

		q = (double) repeated_of(facts) *
			(double) cheap_of(facts, share) / (double) share;
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
 * Ski rental: what is moved when it has cost as much to keep it as moving it
 * costs has cost no more than twice what was possible.
 */
static bool
ratio_move(const HybUnitFacts *unit)
{
	double		price = unit->price + unit->path;

	return unit->rent >= price || unit->content >= price;
}

static bool
ratio_compact(const HybMergeFacts *facts, uint64_t visited, uint64_t dead)
{
	return facts->tombstones > 0 &&
		(facts->tombstones * 100 > facts->static_tids * COMPACT_TOMBSTONES ||
		 dead * 100 > visited * COMPACT_LEAVES);
}

static bool
ratio_join(const HybMergeFacts *facts, double fill)
{
	return facts->leaves >= JOIN_MIN_LEAVES && fill < JOIN_FILL;
}

/*
 * Ski rental again: each entry of a newer level, or of the log, falls into a
 * leaf of its own of the oldest one, or all leaves are rewritten.  What is
 * earned is spent by a quiet merge, finished or not, so however often an
 * application pauses, quiet merges write no more than others do and the log
 * took.
 *
 * An index of one level is merged for its size: its log, and the leaves that
 * the merge replaces, become free.  So it is worth it if the log is a fair
 * share of the index, or keeps free pages.
 */
static bool
ratio_quiet(const HybMergeFacts *facts)
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

const HybMergePolicy hyb_policy_ratio = {
	.name = "ratio",
	.learn_wait_ms = LEARN_WAIT_MS,
	.need = ratio_need,
	.step = ratio_step,
	.levels = ratio_levels,
	.move = ratio_move,
	.compact = ratio_compact,
	.join = ratio_join,
	.quiet = ratio_quiet,
};
