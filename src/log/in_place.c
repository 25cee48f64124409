/*
 * in_place.c
 *		Reading the log where it lies, without a tree.
 *
 * All entries of the log are in its pages.  A reader can copy each page, and
 * take the entries that it wants.  That costs some microseconds a page.  It is
 * done for two kinds of logs:
 *
 * - Short logs, while memory is short.  A tree takes two chunks at least,
 *   32 kB, however little is in it.  Many indexes with little in their logs
 *   would take all memory there is from each other, and each read would build
 *   a tree.
 *
 * - Logs of UNFINISHED_PAGES at most whose tree is not finished, as after a
 *   restart.  To enter all entries takes some 50 times as long as to read
 *   them.  So a reader that wants few entries only enters a portion of them,
 *   and then reads the log in place (open_stage.c).
 *
 * A fetch reads either all that it wants from trees that are finished, or all
 * of it from pages.  Nothing is locked but one page at a time, in its lane's
 * order.  The lanes are those that the metapage has after the fetch began, and
 * a lane ends at a page without a link.  So each entry whose append was over
 * before the fetch began is read once.  At the end of the fetch its caller
 * proves that the version is current, as for trees.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "log/delta.h"
#include "log/own_trees.h"
#include "log/stage_access.h"
#include "store/settings.h"
#include "utils/timestamp.h"

/*
 * Eighths of the memory: when these are in use, memory is short for short
 * logs.  Merges start early only later (merge/policy.h), since their number
 * alone must not do that.
 */
#define HYB_SHORT_EIGHTHS	5

/* Pages of a log that has become longer than the known version tells. */
#define SHORT_PAGES			(2 * HYB_LANES)

/*
 * A log with more than HYB_SHORT_READS reads within HYB_SHORT_MS gets a tree
 * all the same, at the cost of trees that are read less.
 */
#define HYB_SHORT_READS		256
#define HYB_SHORT_MS		1000

/*
 * While a tree is unfinished the log is read in place once for each
 * UNFINISHED_ENTRIES of its entries.  Then readers wait for the tree: where
 * many clients share few cores, reading in place takes the CPU that finishing
 * it needs.  Readers that come one at a time finish it in half of these reads.
 */
#define UNFINISHED_ENTRIES	(HYB_ENTER_ENTRIES / 2)

/* Pages of a log that is read in place until its tree is finished. */
#define UNFINISHED_PAGES	512

/* Entries beyond the limit that are gathered before the farthest ones go. */
#define SPARE_ITEMS		1024

typedef struct Reading
{
	HybIndex   *ix;
	const HybFetch *fetch;
	HybFetched *batch;
	const HybPos *lo;			/* what is wanted lies between these two */
	const HybPos *hi;
	const uint8 *point;			/* the one key that is wanted, if equal keys */
	uint32		pointlen;		/* have equal bytes; or NULL */
	uint64		pages;			/* that may still be read */
	BlockNumber lost;			/* no page of its generation */
	HybPos		farthest;		/* lo or hi, when farther items were dropped */
	HybBuf		farthest_key;
} Reading;

/* ---- reading pages ---- */

/*
 * Keep as many items as are asked for, the nearest ones; farther ones are not
 * wanted any more.  Keys often ascend in the log, and the sort notices that.
 */
static void
keep_nearest(Reading *r)
{
	HybFetched *batch = r->batch;
	int			limit = r->fetch->limit;
	HybPos		pos;

	hyb_fetched_sort(r->ix->desc, batch, false);
	if (r->fetch->backward)
		memmove(batch->items, batch->items + batch->nitems - limit,
				limit * sizeof(HybFetchedItem));
	batch->nitems = limit;
	batch->complete = false;
	pos = hyb_fetched_pos(r->ix, batch,
						  &batch->items[r->fetch->backward ? 0 : limit - 1]);
	hyb_pos_copy(&r->farthest, &r->farthest_key, &pos);
	if (r->fetch->backward)
		r->lo = &r->farthest;
	else
		r->hi = &r->farthest;
}

/* What is wanted of a page's copy. */
static void
read_page(Reading *r, uint64 generation, BlockNumber block, Page copy)
{
	const HybIndex *ix = r->ix;
	HybEntry	entry = {.block = block};

	for (;;)
	{
		if (r->point != NULL)
			entry.next = hyb_delta_seek(copy, entry.next, r->point, r->pointlen);
		if (!hyb_delta_next(ix->rel, copy, &entry))
			break;
		if ((entry.flags & HYB_DELTA_DEAD) != 0)
			continue;
		hyb_delta_key_length(ix, &entry);
		if (hyb_pos_compare_key(ix->desc, entry.bytes, entry.keylen, &entry.tid,
								r->lo) <= 0 ||
			hyb_pos_compare_key(ix->desc, entry.bytes, entry.keylen, &entry.tid,
								r->hi) >= 0)
			continue;
		hyb_fetched_add_entry(r->batch, &entry, generation);
		if (r->batch->nitems - SPARE_ITEMS >= r->fetch->limit)
			keep_nearest(r);
	}
}

/*
 * All pages of a generation, which are copied so that entries are compared with
 * no page locked.  False if there are too many, or one is not of the
 * generation: catching a tree up finds out what is wrong.
 */
static bool
read_generation(Reading *r, const HybGeneration *generation, bool whole)
{
	HybDeltaWalk walk;
	PGAlignedBlock copy;

	hyb_delta_walk_start(&walk, r->ix, generation, whole);
	while (hyb_delta_walk_next(&walk))
	{
		if (r->pages == 0 || !hyb_delta_walk_copy(&walk, copy.data))
		{
			r->lost = walk.block;
			return false;
		}
		r->pages--;
		read_page(r, generation->number, walk.block, (Page) copy.data);
	}
	return true;
}

/*
 * Read what is wanted of the generations in `which`, the active one as it is
 * given.  Of *r the caller has set ix, fetch, batch and pages.  If the result is
 * false the batch is empty.
 */
static bool
read_log(Reading *r, const HybVersion *version, const HybGeneration *active,
		 int which)
{
	const HybFetch *fetch = r->fetch;
	HybFetched *batch = r->batch;
	const HybKeyDesc *desc = r->ix->desc;
	bool		read = true;

	Assert(batch->nitems == 0 && batch->complete);
	r->lo = fetch->lo;
	r->hi = fetch->hi;
	if (fetch->point_hash != 0 && desc->exact && fetch->lo->len > 0)
	{
		r->point = fetch->lo->key;
		r->pointlen = fetch->lo->len;
		Assert(hyb_key_hash(r->point, r->pointlen) == fetch->point_hash);
	}
	if (which & HYB_FETCH_FROZEN)
	{
		/* what lies below the watermark has been merged */
		if (hyb_pos_compare(desc, fetch->lo, &version->watermark) < 0)
			r->lo = &version->watermark;
		read = read_generation(r, &version->frozen, true);
		if (r->lo == &version->watermark)
			r->lo = fetch->lo;
	}
	if (read && (which & HYB_FETCH_ACTIVE))
		read = read_generation(r, active, false);
	hyb_buf_free(&r->farthest_key);
	if (!read)
	{
		batch->nitems = 0;
		batch->keys.len = 0;
		batch->complete = true;
		return false;
	}
	hyb_fetched_sort(desc, batch, fetch->backward);
	if (batch->nitems > fetch->limit)
	{
		batch->nitems = fetch->limit;
		batch->complete = false;
	}
	return true;
}

/* ---- short logs ---- */

static bool
memory_is_short(void)
{
	return hyb_directory == NULL || hyb_test_short_logs ||
		hyb_arena_tree_used() + HYB_TREE_RESERVE * HYB_CHUNK_SIZE >
		hyb_arena_tree_budget() / 8 * HYB_SHORT_EIGHTHS;
}

/* What a backend knows of reads of a short log. */
typedef struct ShortLog
{
	uint64		tree_generation;	/* while this is the active one its log is
									 * not read in place */
	TimestampTz since;			/* when counting reads began */
	uint32		reads;
} ShortLog;

HybCachePiece hyb_short_log_piece = {.size = sizeof(ShortLog)};

void
hyb_log_wants_tree(HybCache *cache, uint64 generation)
{
	((ShortLog *) hyb_cache_piece_of(cache, &hyb_short_log_piece))->tree_generation = generation;
}

/* Count a read; are there too many? */
static bool
is_read_often(ShortLog *log)
{
	TimestampTz now = GetCurrentStatementStartTimestamp();

	if (now > log->since + HYB_SHORT_MS * INT64CONST(1000))
	{
		log->since = now;
		log->reads = 0;
	}
	return ++log->reads > HYB_SHORT_READS;
}

/* Is there a tree, or should there be one? */
static bool
wants_tree(HybCache *cache, const HybVersion *version)
{
	const HybOwnTrees *own = hyb_own_trees(cache);
	ShortLog   *log = hyb_cache_piece_of(cache, &hyb_short_log_piece);

	if (cache->is_temp || log->tree_generation == version->active.number ||
		(own->stage != NULL &&
		 own->stage->trees[HYB_ACTIVE].generation == version->active.number))
		return true;
	if (hyb_slot_find(cache) && cache->shared->tree_bytes > 0)
		return true;
	if (!memory_is_short())
		return true;
	if (!is_read_often(log))
		return false;
	log->tree_generation = version->active.number;
	return true;
}

/*
 * The active generation with all of its lanes; false if they are not known.
 * Where no version is kept, the one at hand has been read from the metapage.
 */
static bool
active_lanes(const HybCache *cache, const HybVersion *version, HybGeneration *active)
{
	bool		known = cache->changes == NULL;

	if (known)
		*active = version->active;
	else if (hyb_cache_version_is_current(cache) &&
			 cache->version->version == version->version)
	{
		*active = cache->version->active;
		known = true;
	}
	return known;
}

/* Has each lane at most one page, as far as the metapage says? */
static bool
is_short(const HybGeneration *generation)
{
	return memcmp(generation->head, generation->tail,
				  sizeof(generation->head)) == 0;
}

bool
hyb_log_read_short(HybIndex *ix, const HybVersion *version,
				   const HybFetch *fetch, int which, HybFetched *batch)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybGeneration active;
	Reading		r = {.ix = ix,.fetch = fetch,.batch = batch,.pages = SHORT_PAGES};

	if (wants_tree(cache, version) || !active_lanes(cache, version, &active) ||
		!is_short(&active) ||
		((which & HYB_FETCH_FROZEN) && !is_short(&version->frozen)))
		return false;
	if (read_log(&r, version, &active, which))
		return true;
	if (hyb_version_is_current(ix, version))
		hyb_log_wants_tree(cache, active.number);	/* it has become longer */
	return false;
}

/* ---- logs without a finished tree ---- */

bool
hyb_log_read_unfinished(HybIndex *ix, const HybVersion *version,
						const HybFetch *fetch, int which, HybFetched *batch)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybGeneration active;
	uint64		entries;
	Reading		r = {
		.ix = ix,
		.fetch = fetch,
		.batch = batch,
		.pages = UNFINISHED_PAGES
	};

	HYB_POINT("in-place");
	if (!hyb_generation_now(ix, version->active.number, &active))
		return false;
	entries = active.nentries + version->frozen.nentries;
	/* counters may be damaged: pages are counted again */
	if (active.npages + version->frozen.npages > UNFINISHED_PAGES ||
		cache->shared == NULL ||
		cache->shared->stage.unfinished_reads++ > entries / UNFINISHED_ENTRIES)
		return false;
	return read_log(&r, version, &active, which);
}

/* ---- logs whose trees no memory is to be had for ---- */

bool
hyb_log_read_in_place(HybIndex *ix, const HybVersion *version,
					  const HybFetch *fetch, int which, HybFetched *batch)
{
	HybGeneration active;
	Reading		r = {.ix = ix,.fetch = fetch,.batch = batch,.pages = PG_UINT64_MAX};

	batch->nitems = 0;
	batch->keys.len = 0;
	batch->complete = true;
	if (!hyb_generation_now(ix, version->active.number, &active))
		return false;
	if (read_log(&r, version, &active, which))
		return true;
	if (hyb_version_is_current(ix, version))
		hyb_corrupted(ix->rel, r.lost, "This is not the delta page that the log points to.");
	return false;
}
