/*
 * short_log.c
 *		Reading a log of one page a lane where it lies.
 *
 * Pages are the truth, so this needs nobody's word: the version says which
 * lanes there are, a page without a successor is all of its lane, and each
 * entry whose append was over before is on it.  What was said of a version
 * that has been replaced is found out at the end, as everywhere.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "log/delta.h"
#include "log/short_log.h"
#include "store/settings.h"
#include "utils/timestamp.h"

/*
 * Memory is short for such logs when so many eighths are in use.  It is fewer
 * than have merges start early (merge/policy.h), since their number alone
 * must not do that.
 */
#define HYB_SHORT_EIGHTHS	5

/*
 * A log that is read so often within so long a time gets a tree all the same,
 * at the cost of trees that are read less.
 */
#define HYB_SHORT_READS		256
#define HYB_SHORT_MS		1000

static bool
memory_is_short(void)
{
	return hyb_directory == NULL || hyb_test_short_logs ||
		hyb_arena_used() + HYB_TREE_RESERVE * HYB_CHUNK_SIZE >
		hyb_arena_budget() / 8 * HYB_SHORT_EIGHTHS;
}

/* Count a read; are there too many? */
static bool
is_read_often(HybSlot *s)
{
	TimestampTz now = GetCurrentStatementStartTimestamp();

	if (now > s->short_since + HYB_SHORT_MS * INT64CONST(1000))
	{
		s->short_since = now;
		s->short_reads = 0;
	}
	return ++s->short_reads > HYB_SHORT_READS;
}

void
hyb_short_log_killed(HybSlot *s, uint64 generation)
{
	s->tree_generation = generation;
}

/* Is there a tree, or should there be one? */
static bool
wants_tree(HybSlot *s, const HybVersion *version)
{
	if (s->is_temp || s->tree_generation == version->active.number ||
		(s->stage != NULL &&
		 s->stage->trees[HYB_ACTIVE].generation == version->active.number))
		return true;
	if (hyb_slot_find(s) && s->shared->tree_bytes > 0)
		return true;
	if (!memory_is_short())
		return true;
	if (!is_read_often(s))
		return false;
	s->tree_generation = version->active.number;
	return true;
}

/*
 * The active generation with all of its lanes; false if they are not known.
 * Where no version is kept, the one at hand has been read from the metapage.
 */
static bool
active_lanes(const HybSlot *s, const HybVersion *version, HybGeneration *active)
{
	bool		known = s->changes == NULL;

	if (known)
		*active = version->active;
	else if (hyb_slot_version_is_current(s) &&
			 s->version->version == version->version)
	{
		*active = s->version->active;
		known = true;
	}
	return known;
}

/* Has no lane more than a page, as far as the metapage says? */
static bool
is_short(const HybGeneration *generation)
{
	return memcmp(generation->head, generation->tail,
				  sizeof(generation->head)) == 0;
}

/* ---- reading ---- */

typedef struct Reading
{
	HybIndex   *ix;
	const HybFetch *fetch;
	HybDynBatch *batch;
	const HybGeneration *generation;
	bool		whole;			/* nothing is appended to it any more */
	const HybPos *lo;			/* of what is wanted of this generation */
} Reading;

static void
fetch_log_entry(const Reading *r, const HybEntry *entry)
{
	HybDynItem *item = hyb_dyn_batch_add(r->batch);

	Assert(entry->keylen > 0 && entry->keylen <= entry->len);
	Assert((entry->flags & HYB_DELTA_DEAD) == 0);
	item->tid = entry->tid;
	item->killed = false;
	item->key_off = r->batch->keys.len;
	item->len = entry->len;
	item->keylen = entry->keylen;
	item->ref.generation = r->generation->number;
	item->ref.block = entry->block;
	item->ref.offset = entry->offset;
	hyb_buf_append(&r->batch->keys, entry->bytes, entry->len);
}

/* What is wanted of a page's copy. */
static void
fetch_log_page(const Reading *r, BlockNumber block, Page copy)
{
	const HybKeyDesc *desc = r->ix->desc;
	HybEntry	entry = {.block = block};

	while (hyb_delta_next(r->ix->rel, copy, &entry))
	{
		if ((entry.flags & HYB_DELTA_DEAD) != 0)
			continue;
		hyb_delta_key_length(r->ix, &entry);
		if (hyb_pos_compare_key(desc, entry.bytes, entry.keylen, &entry.tid,
								r->lo) > 0 &&
			hyb_pos_compare_key(desc, entry.bytes, entry.keylen, &entry.tid,
								r->fetch->hi) < 0)
			fetch_log_entry(r, &entry);
	}
}

/*
 * The page of a lane, copied so that entries are compared with no page locked.
 * False if it is not its lane's only one, or no page of the generation: those
 * who read trees find out which, and what is wrong.
 */
static bool
add_lane(const Reading *r, int lane)
{
	HybDeltaWalk walk;
	Buffer		buf;
	PGAlignedBlock copy;
	bool		only;

	if (!BlockNumberIsValid(r->generation->head[lane]))
		return true;
	hyb_delta_walk_lane(&walk, r->ix, r->generation, r->whole,
						r->generation->head[lane], HYB_METAPAGE_BLKNO);
	if (!hyb_delta_walk_next(&walk) || !hyb_delta_walk_lock(&walk, &buf))
		return false;
	only = !BlockNumberIsValid(walk.link);
	if (only)
		memcpy(copy.data, BufferGetPage(buf),
			   ((PageHeader) BufferGetPage(buf))->pd_lower);
	UnlockReleaseBuffer(buf);
	if (only)
		fetch_log_page(r, walk.block, (Page) copy.data);
	return only;
}

static bool
fetch_generation(const Reading *r)
{
	for (int lane = 0; lane < HYB_LANES; lane++)
		if (!add_lane(r, lane))
			return false;
	return true;
}

/* ---- putting in order ---- */

static int
item_order(const void *a, const void *b, void *arg)
{
	const Reading *r = arg;
	const HybDynItem *x = a;
	const HybDynItem *y = b;
	const uint8 *keys = r->batch->keys.data;
	int			c = hyb_key_compare(r->ix->desc, keys + x->key_off, x->keylen,
									keys + y->key_off, y->keylen);

	if (c == 0)
		c = ItemPointerCompare(unconstify(ItemPointerData *, &x->tid),
							   unconstify(ItemPointerData *, &y->tid));
	return r->fetch->backward ? -c : c;
}

static void
put_in_order(Reading *r)
{
	HybDynBatch *batch = r->batch;

	if (batch->nitems > 1)
		qsort_arg(batch->items, batch->nitems, sizeof(HybDynItem), item_order, r);
	for (int i = 1; i < batch->nitems; i++)
		Assert(item_order(&batch->items[i - 1], &batch->items[i], r) <= 0);
	if (batch->nitems > r->fetch->limit)
	{
		batch->nitems = r->fetch->limit;
		batch->complete = false;
	}
}

bool
hyb_short_log_fetch(HybIndex *ix, const HybVersion *version,
					const HybFetch *fetch, int which, HybDynBatch *batch)
{
	HybSlot    *s = hyb_slot_get(ix);
	HybGeneration active;
	Reading		r = {.ix = ix,.fetch = fetch,.batch = batch};
	bool		read = true;

	if (wants_tree(s, version) || !active_lanes(s, version, &active) ||
		!is_short(&active) ||
		((which & HYB_FETCH_FROZEN) && !is_short(&version->frozen)))
		return false;

	if (which & HYB_FETCH_FROZEN)
	{
		r.generation = &version->frozen;
		r.whole = true;
		r.lo = hyb_pos_compare(ix->desc, fetch->lo, &version->watermark) < 0 ?
			&version->watermark : fetch->lo;
		read = fetch_generation(&r);
	}
	if (read && (which & HYB_FETCH_ACTIVE))
	{
		r.generation = &active;
		r.whole = false;
		r.lo = fetch->lo;
		read = fetch_generation(&r);
		if (!read)
			s->tree_generation = active.number;
	}
	if (read)
		put_in_order(&r);
	else
	{
		batch->nitems = 0;
		batch->keys.len = 0;
	}
	return read;
}
