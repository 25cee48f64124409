/*
 * scan_batch.c
 *		Loading one batch of a scan, and putting its items together.
 *
 * A batch is what the runs of one version hold between the scan's position and the
 * nearest fence:
 *
 *	1. Capture the version.
 *	2. Descend in each static level to the leaf with the position.  Take what it has
 *	   up to the nearest fence so far (scan_leaf.c).  For a single key, a hot copy
 *	   may say what all levels have.
 *	3. In a serializable transaction, lock the range (scan_lock.c).  A lock by key is
 *	   taken before step 1.
 *	4. Fetch the entries of both generations in the same key range.  If the version
 *	   is no longer current this fails, and everything is done again.
 *
 * A leaf of the current version never changes but for tombstones, and an entry that
 * moves to another run changes the version.  So the parts, read one after the
 * other, hold each entry once.  No lock is held between batches.  Pins on leaves are
 * kept if the scan needs the interlock with VACUUM (need_pins).
 *
 * If a run has more entries than the batch is to take, the last one taken ends the
 * batch in place of the fence.
 *
 * A batch that is all of a range of one whole key asks for a hot copy (hot/hot.h)
 * before it reads leaves, and publishes what it has read of them.  That serves scans
 * that return rows under an MVCC snapshot: values are in leaves, and so are pins.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "hot/hot.h"
#include "insert/gather.h"
#include "miscadmin.h"
#include "scan/scan.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Dynamic entries that one batch takes at most. */
#define LOG_LIMIT_MAX		1024

/*
 * By how much batches grow.  The first batch of a range is small, since
 * LIMIT or a merge join may need no more of it.
 */
#define BATCH_GROWTH		4

/* ---- hot copies ---- */

/* May a batch that begins at `near` take a hot copy in place of its leaves? */
static inline bool
may_be_hot(const HybScan *so, const HybScanEdge *near, bool forward)
{
	return so->keys.point_hash != 0 && !so->mode.need_values && !so->mode.need_pins &&
		so->mode.rechecks == so->ix->desc->truncated && !so->mode.whole_leaves && so->mode.share.shared == NULL &&
		so->scan->ignore_killed_tuples &&
		(hyb_hot_memory_kb > 0 || hyb_hot_memory_changed) &&
		near->kind == (forward ? HYB_EDGE_START : HYB_EDGE_END) &&
		!HYB_SNAPSHOTS_EXPIRE();
}

static inline HybHotKey
hot_key(const HybScan *so)
{
	HybHotKey	key = {
		.bytes = so->keys.start.key,
		.len = so->keys.start.len,
		.hash = so->keys.point_hash
	};

	return key;
}

/* Ask for a hot copy, with the version captured; a hit becomes the first part. */
static HybHotAnswer
ask_hot(HybScan *so)
{
	HybScanBatch *batch = so->batch;
	HybScanPart *part = batch->parts[0];
	HybHotKey	key = hot_key(so);
	ItemPointerData tid;
	HybHotAnswer answer = hyb_hot_find(so->ix, &key, &tid);

	if (answer != HYB_HOT_HIT)
		return answer;
	Assert(!so->mode.need_pins && !so->mode.need_values);
	Assert(part->tids_alloc >= 1 && !BufferIsValid(part->pin));
	so->counts->hot_hits++;
	batch->hot = true;
	batch->nparts = 1;
	part->mode = HYB_STATIC_TIDS;
	part->block = InvalidBlockNumber;
	part->first = part->next = part->tids_base = 0;
	part->last = part->tids_end = 1;
	part->tids[0] = tid;
	part->has_dead = false;
	return answer;
}

/*
 * Publish the static items that were read, which are all of the range.  The version
 * was proven current; `gate` is what it was before the leaves were read.
 */
static void
publish_hot(HybScan *so, uint64 gate)
{
	const HybScanBatch *batch = so->batch;
	HybHotKey	key = hot_key(so);
	const ItemPointerData *tid = NULL;

	for (int i = 0; i < batch->nparts; i++)
	{
		const HybScanPart *part = batch->parts[i];

		if (part->mode == HYB_STATIC_NONE)
			continue;
		Assert(part->mode == HYB_STATIC_TIDS);
		for (int item = part->first - part->tids_base;
			 item < part->last - part->tids_base; item++)
		{
			if (part->has_dead && part->dead[item])
				continue;
			if (tid != NULL)
				return;
			tid = &part->tids[item];
		}
	}
	if (tid != NULL)
		hyb_hot_publish(so->ix, &key, tid, gate);
}

/* ---- life of a batch ---- */

HybScanBatch *
hyb_batch_create(HybScan *so)
{
	HybScanBatch *batch =
		MemoryContextAllocZero(so->context, offsetof(HybScanBatch, elems) +
							   so->ix->desc->nkeys * sizeof(int));

	batch->parts[0] = hyb_part_create(so->ix);
	batch->items = batch->first_items;
	batch->items_alloc = HYB_SCAN_FIRST_ITEMS;
	return batch;
}

/* Set killed-tuple hints on a leaf.  If none was read, forget the hot copy. */
static void
set_leaf_hints(HybScan *so, HybScanBatch *batch, int level)
{
	int		   *items = palloc(batch->nkilled * sizeof(int));
	int			n = 0;

	for (int i = 0; i < batch->nitems; i++)
	{
		const HybScanItem *item = &batch->items[i];

		if (item->killed && item->source >= 0 && item->part == level)
			items[n++] = item->source;
	}
	if (n > 0 && batch->hot)
	{
		HybHotKey	key = hot_key(so);

		hyb_hot_forget(so->ix, &key);
	}
	else if (n > 0)
		hyb_part_set_hints(so, batch->parts[level], items, n);
	pfree(items);
}

/*
 * Set killed-tuple hints on dynamic entries.  Unlike a static item, an entry
 * of the same key and TID may be a new one, if VACUUM came between.  A pin on
 * the entry's page that holds rules that out: VACUUM had not finished when it
 * was taken, so not when the row was found dead either.
 */
static void
set_log_hints(HybScan *so, HybScanBatch *batch)
{
	for (int i = 0; i < batch->nitems; i++)
	{
		const HybScanItem *item = &batch->items[i];
		const HybFetchedItem *entry;
		Buffer		buf = InvalidBuffer;

		if (!item->killed || item->source >= 0)
			continue;
		entry = hyb_batch_log_item(batch, item);
		if (entry->killed)
			continue;
		if (hyb_delta_pin_entry(so->ix, &entry->ref, &entry->tid,
								&buf) != HYB_PIN_HOLDS)
			continue;
		hyb_log_kill(so->ix, &batch->log, entry);
		ReleaseBuffer(buf);
	}
}

void
hyb_batch_finish(HybScan *so, HybScanBatch *batch)
{
	if (batch->nkilled > 0)
	{
		for (int i = 0; i < batch->nparts; i++)
			set_leaf_hints(so, batch, i);
		set_log_hints(so, batch);
		batch->nkilled = 0;
	}
	for (int i = 0; i < batch->nparts; i++)
		hyb_part_finish(batch->parts[i]);
	batch->proven = batch->hot = false;
	batch->nitems = 0;
	batch->next_log = batch->log.nitems;
	batch->fresh_known = false;
}

/* ---- what holds for a batch ---- */

#ifdef USE_ASSERT_CHECKING

/* Rows that were copied one by one. */
static void
assert_rows(const HybScan *so, const HybScanPart *part)
{
	Assert(part->nrows > 0 || so->ix->desc->truncated);
	Assert(part->nrows <= part->rows_alloc && part->last <= part->nrows);
	for (int i = 0; i < part->nrows; i++)
	{
		const HybScanRow *row = &part->rows[i];

		Assert(row->keylen > 0 ? row->off + row->len <= part->rowbytes.len :
			   so->ix->desc->truncated);
		Assert(row->keylen <= row->len);
		Assert(i == 0 || so->ix->desc->truncated ||
			   row->first_item > part->rows[i - 1].first_item);
	}
}

static void
assert_part(const HybScan *so, const HybScanPart *part)
{
	if (part->mode == HYB_STATIC_NONE)
	{
		Assert(part->first == part->last);
		return;
	}
	Assert(part->first >= 0 && part->first <= part->last);
	Assert(part->last <= HYB_LEAF_MAX_ITEMS);
	Assert(part->next >= part->first && part->next <= part->last);
	Assert(so->batch->hot || so->mode.need_pins == BufferIsValid(part->pin));
	Assert(part->tids_end - part->tids_base <= part->tids_alloc);
	/* hops read TIDs as they get to them */
	Assert((part->mode == HYB_STATIC_PAGE && so->keys.hop_last >= 0) ||
		   (part->tids_base <= part->first && part->last <= part->tids_end));
	switch (part->mode)
	{
		case HYB_STATIC_TIDS:
			Assert(so->keys.point || !so->mode.need_values);
			break;
		case HYB_STATIC_ROWS:
			assert_rows(so, part);
			break;
		case HYB_STATIC_PAGE:
			Assert(part->page != NULL && part->leaf.page == (Page) part->page);
			Assert(part->last <= part->leaf.nitems);
			break;
		case HYB_STATIC_RAW:
			Assert(so->ix->desc->truncated && so->mode.whole_leaves);
			break;
		case HYB_STATIC_NONE:
			break;
	}
}

/* Entries of one key are in the order of their TIDs, over all runs. */
static void
assert_order(const HybScanBatch *batch)
{
	for (int i = 1; i < batch->nitems; i++)
		Assert(ItemPointerCompare(&batch->items[i - 1].tid,
								  &batch->items[i].tid) <= 0);
}

static void
batch_assert_valid(const HybScan *so, const HybScanBatch *batch)
{
	const HybKeyDesc *desc = so->ix->desc;

	if (hyb_is_damaged())
		return;
	Assert(batch->proven);
	Assert(batch->nitems >= 0 && batch->nitems <= batch->items_alloc);
	Assert(batch->current >= -1 && batch->current <= batch->nitems);
	Assert(batch->nkilled == 0);
	Assert(batch->nparts >= 1 && batch->nparts <= HYB_MAX_LEVELS);
	Assert(!batch->hot || (batch->nparts == 1 && so->keys.point));
	for (int i = 0; i < batch->nparts; i++)
		assert_part(so, batch->parts[i]);
	for (int i = 0; i < batch->nitems; i++)
	{
		const HybScanItem *item = &batch->items[i];

		Assert(item->part < batch->nparts);
		Assert(item->source >= 0 || -1 - item->source < batch->log.nitems);
	}
	Assert(batch->next_log >= 0 && batch->next_log <= batch->log.nitems);
	Assert(!batch->fresh_known ||
		   (batch->fresh >= HYB_FRESH_LOG && batch->fresh < batch->nparts));
	Assert(!batch->fresh_known || batch->fresh_place <= batch->parts[0]->last);
	if (hyb_keys_are_one(&so->keys) && !desc->truncated)
		assert_order(batch);
	for (int i = 0; i < so->keys.nprefix && so->keys.narrays > 0; i++)
		Assert(so->keys.prefix[i].array == NULL ||
			   (batch->elems[i] >= 0 && batch->elems[i] < so->keys.prefix[i].array->nelems));
	if (desc->all_mem && batch->low.kind == HYB_EDGE_KEY &&
		batch->high.kind == HYB_EDGE_KEY)
		Assert(hyb_pos_compare(desc, &batch->low.pos, &batch->high.pos) <= 0);
}

#else

#define batch_assert_valid(so, batch) ((void) (batch))

#endif

/* ---- putting items together ---- */

/* Entry n of the batch's dynamic part to the batch, if it qualifies. */
static void
add_log(HybScan *so, HybScanBatch *batch, int n)
{
	const HybFetchedItem *entry = &batch->log.items[n];
	HybScanItem item;

	item.source = -1 - n;
	if (so->keys.nquals > 0 &&
		!hyb_scan_qualifies(&so->keys, hyb_batch_values(so, batch, &item)))
		return;
	item.tid = entry->tid;
	item.part = 0;
	item.killed = false;
	item.row = 0;
	batch->items[batch->nitems++] = item;
}

/* Make room for all items of a batch that has been read. */
static void
begin_merge(HybScan *so, HybScanBatch *batch)
{
	int			n = batch->log.nitems;

	for (int i = 0; i < batch->nparts; i++)
	{
		HybScanPart *part = batch->parts[i];

		n += part->last - part->first;
		part->next = part->first;
	}
	if (n > batch->items_alloc)
	{
		if (batch->items != batch->first_items)
			pfree(batch->items);
		batch->items_alloc = Max(n, 64);
		batch->items = MemoryContextAlloc(so->context,
										  batch->items_alloc * sizeof(HybScanItem));
	}
	batch->nitems = 0;
	batch->next_log = 0;
	batch->fresh_known = false;
}

/* The next dynamic entry in index order. */
static inline int
next_log_item(const HybScanBatch *batch)
{
	return batch->log_backward ? batch->log.nitems - 1 - batch->next_log :
		batch->next_log;
}

/*
 * Which run above the oldest level has the next entry, and before which item
 * of that level does it belong?
 */
static void
find_fresh(HybScan *so, HybScanBatch *batch)
{
	HybScanPart *oldest = batch->parts[0];
	HybPos		least;
	HybPos		pos;

	batch->fresh_known = true;
	batch->fresh = HYB_FRESH_NONE;
	batch->fresh_place = oldest->last;
	if (batch->next_log < batch->log.nitems)
	{
		batch->fresh = HYB_FRESH_LOG;
		least = hyb_fetched_pos(so->ix, &batch->log,
								&batch->log.items[next_log_item(batch)]);
	}
	for (int i = 1; i < batch->nparts; i++)
	{
		HybScanPart *part = batch->parts[i];
		HybBuf	   *keybuf = &so->fresh_key[i & 1];

		if (part->next == part->last)
			continue;
		/* the other buffer may hold the least key */
		if (batch->fresh > 0 && least.key == keybuf->data)
			keybuf = &so->fresh_key[(i & 1) ^ 1];
		hyb_part_pos(so, part, part->next, &pos, keybuf);
		if (batch->fresh == HYB_FRESH_NONE ||
			hyb_pos_compare(so->ix->desc, &pos, &least) < 0)
		{
			batch->fresh = i;
			least = pos;
		}
	}
	if (batch->fresh != HYB_FRESH_NONE && oldest->next < oldest->last)
		batch->fresh_place = hyb_part_place(so, oldest, &least, oldest->next);
}

/*
 * Most entries are in the oldest level, and go to the batch many at a time.  Each
 * entry of a newer run has its place among them.  To find that place is a search of
 * the leaf, and scans often end within a batch, so this is done as they go on.
 */
bool
hyb_batch_merge(HybScan *so, HybScanBatch *batch, int wanted)
{
	HybScanPart *oldest = batch->parts[0];
	int			before = batch->nitems;

	Assert(CurrentMemoryContext == so->context);
	while (batch->nitems < wanted)
	{
		if (!batch->fresh_known)
			find_fresh(so, batch);
		if (oldest->next < batch->fresh_place)
		{
			hyb_part_add(so, batch, 0,
						 Min(batch->fresh_place,
							 oldest->next + HYB_SCAN_MERGE_CHUNK));
			continue;
		}
		if (batch->fresh == HYB_FRESH_NONE)
			break;
		if (batch->fresh == HYB_FRESH_LOG)
		{
			add_log(so, batch, next_log_item(batch));
			batch->next_log++;
		}
		else
			hyb_part_add(so, batch, batch->fresh,
						 batch->parts[batch->fresh]->next + 1);
		batch->fresh_known = false;
	}
	return batch->nitems > before;
}

bool
hyb_batch_is_empty_range(const HybScanBatch *batch)
{
	if (batch->low.kind != HYB_EDGE_START || batch->high.kind != HYB_EDGE_END ||
		batch->nitems > 0 || batch->next_log < batch->log.nitems)
		return false;
	for (int i = 0; i < batch->nparts; i++)
		if (batch->parts[i]->next < batch->parts[i]->last)
			return false;
	return true;
}

/*
 * With old_snapshot_threshold, VACUUM may have removed entries that the
 * scan's snapshot should see.  It changes the metapage when it has.
 */
static void
check_old_snapshot(HybScan *so)
{
	Buffer		buf = ReadBuffer(so->ix->rel, HYB_METAPAGE_BLKNO);

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	HYB_TEST_FOR_OLD_SNAPSHOT(so->scan->xs_snapshot, so->ix->rel,
							  BufferGetPage(buf));
	UnlockReleaseBuffer(buf);
}

/* Leave out a part's items beyond a cut at the far end. */
static void
cut_part(HybScan *so, HybScanPart *part, const HybPos *cut, bool forward)
{
	int			place;

	if (part->mode == HYB_STATIC_RAW)
		return;					/* hyb_part_resolve does it */
	Assert(cut->tie != HYB_AT || cut->ncols == so->ix->desc->nkeys);
	place = hyb_part_place(so, part, cut, part->first);
	Assert(place >= part->first && place <= part->last);
	if (forward)
		part->last = place;
	else
		part->first = place;
}

/*
 * Read all static levels up to the nearest fence, which `far` becomes.  False
 * if the version is no longer current.
 */
static bool
load_parts(HybScan *so, const HybVersion *version, const HybPos *pos,
		   bool forward, HybScanEdge *far)
{
	HybScanBatch *batch = so->batch;

	batch->nparts = version->nlevels;
	Assert(batch->nparts >= 1 && batch->nparts <= HYB_MAX_LEVELS);
	for (int i = 1; i < batch->nparts; i++)
	{
		if (batch->parts[i] == NULL)
			batch->parts[i] = hyb_part_create(so->ix);
		batch->parts[i]->mode = HYB_STATIC_NONE;
	}
	for (int i = 0; i < batch->nparts; i++)
		if (!hyb_part_load_live(so, version, i, pos, forward, far))
			return false;
	/* what a later one has cut short the earlier ones have taken too far */
	if (far->kind == HYB_EDGE_KEY)
		for (int i = 0; i < batch->nparts - 1; i++)
			cut_part(so, batch->parts[i], &far->pos, forward);
	return true;
}

/*
 * The dynamic entries between pos and the far end.  False if the version is no
 * longer current.
 */
static bool
fetch_log(HybScan *so, const HybVersion *version, const HybPos *pos,
		  const HybScanEdge *far, bool forward)
{
	HybScanBatch *batch = so->batch;
	HybFetch	fetch;
	HybPos		below;

	fetch.which = HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE;
	if (so->scan->ignore_killed_tuples)
		fetch.which |= HYB_FETCH_NOT_KILLED;
	fetch.lo = forward ? pos : hyb_edge_pos(&so->keys, far);
	fetch.hi = forward ? hyb_edge_pos(&so->keys, far) : pos;
	fetch.backward = !forward;
	fetch.limit = so->mode.log_limit;
	fetch.point_hash = so->keys.point_hash;
	/* fetch leaves its lower bound out, a cut does not */
	below = hyb_pos_below(fetch.lo);
	fetch.lo = &below;
	batch->log_backward = !forward;
	return hyb_log_fetch(so->ix, version, &fetch, &batch->log);
}

/*
 * Is a leaf pinned?  It was before the dynamic entries were fetched, and VACUUM
 * flags those before it comes to the leaves.
 */
static bool
has_pin(const HybScanBatch *batch)
{
	for (int i = 0; i < batch->nparts; i++)
		if (BufferIsValid(batch->parts[i]->pin))
			return true;
	return false;
}

/* The last dynamic entry taken ends the batch, if there are more. */
static void
cut_at_log(HybScan *so, bool forward, HybScanEdge *far)
{
	HybScanBatch *batch = so->batch;
	HybPos		cut;

	if (batch->log.complete || batch->log.nitems == 0)
		return;
	cut = hyb_fetched_pos(so->ix, &batch->log,
						  &batch->log.items[batch->log.nitems - 1]);
	if (forward)
		cut = hyb_pos_above(&cut);
	for (int i = 0; i < batch->nparts; i++)
		cut_part(so, batch->parts[i], &cut, forward);
	hyb_edge_set_pos(far, &cut);
}

void
hyb_batch_load(HybScan *so, bool forward)
{
	HybScanBatch *batch = so->batch;
	const HybScanEdge *end = hyb_parallel_end(so);
	HybScanEdge *near = forward ? &batch->low : &batch->high;
	HybScanEdge *far = forward ? &batch->high : &batch->low;
	const HybPos *pos;
	HybVersion	version;
	HybHotAnswer hot;
	bool		lock_leaf;
	bool		ask;
	uint64		gate = 0;

	Assert(CurrentMemoryContext == so->context);
	Assert(batch->nkilled == 0 && !batch->proven);
	Assert(so->started && !so->keys.empty && !BufferIsValid(so->delta_pin));
	Assert(so->mode.log_limit > 0 && so->mode.static_limit > 0);
	hyb_gather_before_read(RelationGetRelid(so->ix->rel));
	hyb_edge_copy(near, &so->from);
	pos = hyb_edge_pos(&so->keys, near);
	lock_leaf = so->mode.locks && !hyb_scan_lock_key(so);
	ask = !lock_leaf && may_be_hot(so, near, forward);

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		hyb_batch_finish(so, batch);
		if (so->keys.nquals > 0)
			MemoryContextReset(so->keys.qual_context);
		hyb_version_capture(so->ix, &version);

		if (end != NULL)
			hyb_edge_copy(far, end);
		else
			hyb_edge_set(far, forward ? HYB_EDGE_END : HYB_EDGE_START);
		hot = ask ? ask_hot(so) : HYB_HOT_NONE;
		if (hot == HYB_HOT_PUBLISH)
			gate = hyb_hot_gate(so->ix);
		if (hot != HYB_HOT_HIT && !load_parts(so, &version, pos, forward, far))
			continue;
		if (lock_leaf && !hyb_scan_lock_leaf(so, &version, pos, forward))
			continue;
		if (fetch_log(so, &version, pos, far, forward) &&
			(batch->log.nitems == 0 || hyb_part_keep(so, batch->parts[0])))
			break;
	}
	/* the fetch has found the version current, after the leaf was pinned */
	batch->proven = true;
	batch->log_held = batch->log.knows_dead && has_pin(batch);
	/* the entries of a key may lie in several leaves */
	if (hot == HYB_HOT_PUBLISH && far->kind != HYB_EDGE_KEY)
		publish_hot(so, gate);
	if (unlikely(HYB_SNAPSHOTS_EXPIRE()))
		check_old_snapshot(so);
	so->mode.log_limit = Min(so->mode.log_limit * BATCH_GROWTH, LOG_LIMIT_MAX);
	so->mode.static_limit = Min(so->mode.static_limit * BATCH_GROWTH, HYB_LEAF_MAX_ITEMS);

	cut_at_log(so, forward, far);
	if (batch->parts[0]->mode == HYB_STATIC_RAW && !so->mode.whole_leaves)
		hyb_part_resolve(so, batch, batch->parts[0]);
	begin_merge(so, batch);
	if (!forward || so->mode.whole_leaves)
		(void) hyb_batch_merge(so, batch, batch->items_alloc);
	hyb_scan_arrays_save(&so->keys, batch->elems);
	batch->current = forward ? -1 : batch->nitems;
	batch_assert_valid(so, batch);
}

/* ---- items ---- */

HybFetchedItem *
hyb_batch_log_item(HybScanBatch *batch, const HybScanItem *item)
{
	Assert(item->source < 0 && -1 - item->source < batch->log.nitems);
	return &batch->log.items[-1 - item->source];
}

const HybValue *
hyb_batch_values(HybScan *so, HybScanBatch *batch, const HybScanItem *item)
{
	HybKeyDesc *desc = so->ix->desc;

	if (item->source < 0)
	{
		const HybFetchedItem *entry = hyb_batch_log_item(batch, item);

		if (hyb_key_split(desc, batch->log.keys.data + entry->key_off,
						  entry->len, desc->natts, so->keys.vals) == 0)
			hyb_corrupted(so->ix->rel, entry->ref.block,
						  "An entry of the delta log is not well formed.");
		return so->keys.vals;
	}
	return hyb_part_values(so, batch->parts[item->part], item->row);
}
