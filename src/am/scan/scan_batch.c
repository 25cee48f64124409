/*
 * scan_batch.c
 *		Loading one batch of a scan.
 *
 * A batch is what one static leaf and the dynamic stage hold between the
 * scan's position and the leaf's fence, as of one version:
 *
 *	1. capture the version and descend to the leaf with the position;
 *	2. under the leaf's share lock, find the items in question and copy what
 *	   the scan will look at: TIDs only where all keys are equal, a few rows,
 *	   or the page;
 *	3. fetch the dynamic entries of the same key range, which fails if the
 *	   version is no longer current; then everything is done again.
 *
 * A leaf of the current version never changes but for tombstones, and an
 * entry that moves from the dynamic to the static stage changes the version.
 * So the two parts, read one after the other, hold each entry once.  No lock
 * is held between batches; a pin on the leaf is kept if the scan needs the
 * interlock with VACUUM (need_pins).
 *
 * If there are more static or dynamic entries than the batch is to take, the
 * last one taken ends the batch in place of the fence.
 */
#include "compat.h"

#include "am/scan/scan.h"
#include "miscadmin.h"
#include "static/filter_use.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Dynamic entries that one batch takes at most. */
#define DYN_LIMIT_MAX		1024

/*
 * By how much batches grow.  The first batch of a range is small, since
 * LIMIT or a merge join may need no more of it.
 */
#define BATCH_GROWTH		4

/* ---- edges ---- */

void
hyb_edge_set(HybScanEdge *edge, HybEdgeKind kind)
{
	Assert(kind != HYB_EDGE_KEY);
	edge->kind = kind;
}

void
hyb_edge_set_pos(HybScanEdge *edge, const HybPos *pos)
{
	edge->kind = HYB_EDGE_KEY;
	hyb_pos_copy(&edge->pos, &edge->key, pos);
}

void
hyb_edge_copy(HybScanEdge *edge, const HybScanEdge *source)
{
	if (source->kind == HYB_EDGE_KEY)
		hyb_edge_set_pos(edge, &source->pos);
	else
		edge->kind = source->kind;
}

static const HybPos *
edge_pos(const HybScan *so, const HybScanEdge *edge)
{
	switch (edge->kind)
	{
		case HYB_EDGE_START:
			return &so->start;
		case HYB_EDGE_END:
			return &so->end;
		case HYB_EDGE_KEY:
			break;
	}
	return &edge->pos;
}

/* The cut just below a dynamic entry, or just above it. */
static void
dyn_item_pos(const HybScan *so, const HybDynBatch *dyn, const HybDynItem *item,
			 bool above, HybPos *pos)
{
	pos->key = dyn->keys.data + item->key_off;
	pos->len = item->keylen;
	pos->ncols = so->ix->desc->nkeys;
	pos->tie = HYB_AT;
	pos->tid = item->tid;
	if (above)
		ItemPointerInc(&pos->tid);
}

/* ---- life of a batch ---- */

HybScanBatch *
hyb_batch_create(HybScan *so)
{
	HybKeyDesc *desc = so->ix->desc;
	Size		items = HYB_SCAN_FIRST_ITEMS * sizeof(HybScanItem);
	Size		elems = MAXALIGN(desc->nkeys * sizeof(int));
	Size		leaf = hyb_leaf_space(desc->natts);
	HybScanBatch *batch;
	char	   *p;

	batch = MemoryContextAlloc(so->context, MAXALIGN(sizeof(HybScanBatch)) +
							   elems + leaf + items);
	memset(batch, 0, MAXALIGN(sizeof(HybScanBatch)) + elems);
	p = (char *) batch + MAXALIGN(sizeof(HybScanBatch));
	batch->elems = (int *) p;
	p += elems;
	hyb_leaf_init(&batch->leaf, desc, p, so->context);
	batch->items = (HybScanItem *) (p + leaf);
	batch->items_alloc = HYB_SCAN_FIRST_ITEMS;
	batch->pin = InvalidBuffer;
	return batch;
}

/* Set killed-tuple hints on the leaf, which need not be pinned any more. */
static void
set_leaf_hints(HybScan *so, HybScanBatch *batch)
{
	Buffer		buf = batch->pin;
	int		   *items = palloc(batch->nkilled * sizeof(int));
	int			n = 0;

	for (int i = 0; i < batch->nkilled; i++)
	{
		int			item = batch->items[batch->killed[i]].source;

		if (item >= 0)
			items[n++] = item;
	}
	if (!BufferIsValid(buf))
		buf = ReadBuffer(so->ix->rel, batch->block);
	hyb_leaf_set_hints(so->ix, buf, batch->stamp, batch->pd_lower, items, n);
	if (!BufferIsValid(batch->pin))
		ReleaseBuffer(buf);
	pfree(items);
}

/*
 * Set killed-tuple hints on dynamic entries.  Unlike a static item, an entry
 * of the same key and TID may be a new one, if VACUUM came between.  A pin on
 * the entry's page that holds rules that out: VACUUM had not finished when it
 * was taken, so not when the row was found dead either.
 */
static void
set_dynamic_hints(HybScan *so, HybScanBatch *batch)
{
	for (int i = 0; i < batch->nkilled; i++)
	{
		const HybScanItem *item = &batch->items[batch->killed[i]];
		const HybDynItem *entry;
		Buffer		buf = InvalidBuffer;

		if (item->source >= 0)
			continue;
		entry = hyb_batch_dyn_item(batch, item);
		if (entry->killed)
			continue;
		if (hyb_delta_pin_entry(so->ix, &entry->ref, &entry->tid,
								&buf) != HYB_PIN_HOLDS)
			continue;
		hyb_dynamic_kill(so->ix, &batch->dyn, entry);
		ReleaseBuffer(buf);
	}
}

/*
 * Leave a batch: set hints, drop the pin.  Its items are gone then.  All
 * memory stays, for the next one, until the scan's context goes.
 */
void
hyb_batch_finish(HybScan *so, HybScanBatch *batch)
{
	if (batch->nkilled > 0)
	{
		bool		leaf = false;
		bool		dynamic = false;

		for (int i = 0; i < batch->nkilled; i++)
		{
			if (batch->items[batch->killed[i]].source >= 0)
				leaf = true;
			else
				dynamic = true;
		}
		if (leaf)
			set_leaf_hints(so, batch);
		if (dynamic)
			set_dynamic_hints(so, batch);
		batch->nkilled = 0;
	}
	if (BufferIsValid(batch->pin))
	{
		ReleaseBuffer(batch->pin);
		batch->pin = InvalidBuffer;
	}
	batch->proven = false;
	batch->nitems = 0;
	batch->next_static = batch->last;
	batch->next_dyn = batch->dyn.nitems;
	batch->mode = HYB_STATIC_NONE;
}

/* ---- the static part ---- */

/* TIDs of the static items, and which of them are not to be returned. */
static void
read_tids(HybScan *so, HybScanBatch *batch, Page page)
{
	HybLeaf    *leaf = &batch->leaf;
	int			n = batch->last - batch->first;
	const uint8 *hints = NULL;

	if (n > so->tids_alloc)
	{
		if (so->tids_alloc > HYB_SCAN_FIRST_ITEMS)
		{
			pfree(so->tids);
			pfree(so->dead);
		}
		so->tids_alloc = Max(n, 64);
		so->tids = MemoryContextAlloc(so->context,
									  so->tids_alloc * sizeof(ItemPointerData));
		so->dead = MemoryContextAlloc(so->context,
									  so->tids_alloc * sizeof(bool));
	}
	so->tids_base = batch->first;
	hyb_leaf_tids(leaf, batch->first, n, so->tids);

	if (leaf->tombstones == NULL && so->scan->ignore_killed_tuples)
		hints = hyb_leaf_hints(page);
	else
		hints = leaf->tombstones;
	so->has_dead = false;
	if (hints == NULL)
		return;
	for (int i = batch->first >> 3; i <= (batch->last - 1) >> 3; i++)
		so->has_dead |= hints[i] != 0;
	if (!so->has_dead)
		return;
	for (int i = 0; i < n; i++)
	{
		int			item = batch->first + i;

		so->dead[i] = (hints[item >> 3] & (1 << (item & 7))) != 0;
	}
}

/* Copy rows [row, end_row) of the open leaf one by one. */
static void
copy_rows(HybScan *so, HybScanBatch *batch, int row, int end_row)
{
	HybKeyDesc *desc = so->ix->desc;

	if (batch->rows == NULL)
		batch->rows = MemoryContextAlloc(so->context,
										 HYB_SCAN_FEW_ROWS * sizeof(HybScanRow));
	batch->nrows = 0;
	batch->rowbytes.len = 0;
	for (; row < end_row; row++)
	{
		HybScanRow *dst = &batch->rows[batch->nrows++];
		const HybValue *vals;

		dst->off = batch->rowbytes.len;
		dst->first_item = hyb_leaf_row_start(&batch->leaf, row);
		if (so->point && desc->exact && desc->natts == desc->nkeys)
		{
			/* the row is what was asked for */
			hyb_buf_append(&batch->rowbytes, so->start.key, so->start.len);
			dst->keylen = dst->len = so->start.len;
			continue;
		}
		vals = hyb_leaf_row(&batch->leaf, row);
		hyb_key_join(desc, vals, desc->nkeys, &batch->rowbytes);
		dst->keylen = batch->rowbytes.len - dst->off;
		if (desc->natts > desc->nkeys)
		{
			/* INCLUDE columns follow: write all columns again */
			batch->rowbytes.len = dst->off;
			hyb_key_join(desc, vals, desc->natts, &batch->rowbytes);
		}
		dst->len = batch->rowbytes.len - dst->off;
	}
}

/*
 * Leave out what is more than static_limit items, at the far end of rows
 * [*row, *end_row); `far` becomes the cut there.
 */
static void
limit_static(HybScan *so, HybScanBatch *batch, bool forward, int *row,
			 int *end_row, HybScanEdge *far)
{
	HybKeyDesc *desc = so->ix->desc;
	HybLeaf    *leaf = &batch->leaf;
	HybPos		cut;
	int			item;
	int			item_row;

	if (forward)
	{
		batch->last = batch->first + so->static_limit;
		item = batch->last - 1;
	}
	else
	{
		batch->first = batch->last - so->static_limit;
		item = batch->first;
	}
	item_row = hyb_leaf_row_of_item(leaf, item);
	if (forward)
		*end_row = item_row + 1;
	else
		*row = item_row;

	so->cut_key.len = 0;
	hyb_key_join(desc, hyb_leaf_row(leaf, item_row), desc->nkeys, &so->cut_key);
	cut.key = so->cut_key.data;
	cut.len = so->cut_key.len;
	cut.ncols = desc->nkeys;
	cut.tie = HYB_AT;
	hyb_leaf_tids(leaf, item, 1, &cut.tid);
	if (forward)
		ItemPointerInc(&cut.tid);
	hyb_edge_set_pos(far, &cut);
}

/*
 * Do two positions enclose just what starts with certain columns?  Both ends
 * are then found in one search.
 */
static inline bool
is_prefix_range(const HybPos *lo, const HybPos *hi)
{
	return lo->tie == HYB_BEFORE && hi->tie == HYB_AFTER && lo->ncols > 0 &&
		lo->ncols == hi->ncols && lo->len == hi->len &&
		memcmp(lo->key, hi->key, lo->len) == 0;
}

/*
 * Read the static items between pos and the far end of the range or the
 * leaf's fence, whichever comes first, or as many as static_limit allows;
 * `far` becomes that edge.  Returns false if the version is no longer current.
 */
static bool
load_static(HybScan *so, const HybVersion *version, HybScanBatch *batch,
			const HybPos *pos, bool forward, HybScanEdge *far)
{
	HybKeyDesc *desc = so->ix->desc;
	HybDescent *descent = &so->descent;
	HybLeaf    *leaf = &batch->leaf;
	const HybPos *bound = forward ? &so->end : &so->start;
	HybSought	sought = {
		.pos = pos,
		.backward = !forward,
		.want_fence = true
	};
	Page		page;
	int			row;
	int			end_row;
	bool		to_fence;
	bool		equal;

	/*
	 * Once one leaf had something, the next one, which the range goes on
	 * into, will have too.
	 */
	if (so->probe)
		sought.bound = bound;
	if (!hyb_static_descend(so->ix, version, &sought, descent))
		return false;
	so->filter_checks += descent->probed;
	so->filter_negatives += descent->skipped;
	if (descent->skipped)
	{
		hyb_filter_note(so->ix, HYB_FILTER_NEGATIVE);
		batch->mode = HYB_STATIC_NONE;
		batch->first = batch->last = 0;
		if (forward ? hyb_pos_compare(desc, &descent->fence, bound) < 0 :
			hyb_pos_compare(desc, &descent->fence, bound) > 0)
			hyb_edge_set_pos(far, &descent->fence);
		return true;
	}

	page = BufferGetPage(descent->buf);
	HYB_TEST_FOR_OLD_SNAPSHOT(so->scan->xs_snapshot, so->ix->rel, page);
	hyb_leaf_open(leaf, desc, page, so->ix->rel, descent->block);
	if (forward)
	{
		to_fence = hyb_pos_compare(desc, &descent->fence, bound) < 0;
		equal = is_prefix_range(pos, bound);
		if (equal)
			batch->first = hyb_leaf_search_equal(leaf, pos, &row, &end_row);
		else
			batch->first = hyb_leaf_search(leaf, pos, &row);
		if (to_fence)
		{
			batch->last = leaf->nitems;
			end_row = leaf->nrows;
		}
		else if (equal)
			batch->last = hyb_leaf_row_start(leaf, end_row);
		else if (HYB_POS_MAX(bound))
		{
			batch->last = leaf->nitems;
			end_row = leaf->nrows;
		}
		else
			batch->last = hyb_leaf_search(leaf, bound, &end_row);
	}
	else
	{
		to_fence = hyb_pos_compare(desc, &descent->fence, bound) > 0;
		batch->last = hyb_leaf_search(leaf, pos, &end_row);
		if (to_fence || HYB_POS_MIN(bound))
		{
			batch->first = 0;
			row = 0;
		}
		else
			batch->first = hyb_leaf_search(leaf, bound, &row);
	}
	/* The end may lie within the posting list of a row: that row is in. */
	if (end_row < leaf->nrows &&
		hyb_leaf_row_start(leaf, end_row) < batch->last)
		end_row++;

	if (to_fence)
		hyb_edge_set_pos(far, &descent->fence);
	if (!so->point && batch->last - batch->first > so->static_limit)
		limit_static(so, batch, forward, &row, &end_row, far);

	batch->block = descent->block;
	batch->stamp = descent->stamp;
	batch->pd_lower = ((PageHeader) page)->pd_lower;
	if (descent->probed)
		hyb_filter_note(so->ix, batch->first < batch->last ?
						HYB_FILTER_HIT : HYB_FILTER_FALSE_POSITIVE);
	if (batch->first >= batch->last)
	{
		batch->mode = HYB_STATIC_NONE;
		batch->first = batch->last = 0;
		UnlockReleaseBuffer(descent->buf);
	}
	else
	{
		so->probe = false;
		if (so->point && !so->need_values)
		{
			batch->mode = HYB_STATIC_TIDS;
			read_tids(so, batch, page);
		}
		else if (end_row - row <= HYB_SCAN_FEW_ROWS)
		{
			batch->mode = HYB_STATIC_ROWS;
			read_tids(so, batch, page);
			copy_rows(so, batch, row, end_row);
		}
		else
		{
			batch->mode = HYB_STATIC_PAGE;
			if (batch->page == NULL)
				batch->page = MemoryContextAlloc(so->context, BLCKSZ);
			memcpy(batch->page, page, BLCKSZ);
		}
		if (so->need_pins)
		{
			LockBuffer(descent->buf, BUFFER_LOCK_UNLOCK);
			batch->pin = descent->buf;
		}
		else
			UnlockReleaseBuffer(descent->buf);

		if (batch->mode == HYB_STATIC_PAGE)
		{
			hyb_leaf_open(leaf, desc, batch->page, so->ix->rel, batch->block);
			read_tids(so, batch, batch->page);
		}
	}
	return true;
}

/* ---- putting items together ---- */

/* First static item at or above a cut made from a dynamic entry. */
static int
static_place(HybScan *so, HybScanBatch *batch, const HybPos *pos, int from)
{
	int			item;
	int			row;

	switch (batch->mode)
	{
		case HYB_STATIC_NONE:
			return batch->last;
		case HYB_STATIC_TIDS:
			/* equal keys all: the TID decides */
			for (item = from; item < batch->last; item++)
			{
				if (ItemPointerCompare(&so->tids[item - so->tids_base],
									   unconstify(ItemPointerData *, &pos->tid)) >= 0)
					break;
			}
			return item;
		case HYB_STATIC_ROWS:
			row = 0;
			for (item = from; item < batch->last; item++)
			{
				const HybScanRow *r;

				while (row + 1 < batch->nrows &&
					   batch->rows[row + 1].first_item <= item)
					row++;
				r = &batch->rows[row];
				if (hyb_pos_compare_key(so->ix->desc,
										batch->rowbytes.data + r->off, r->keylen,
										&so->tids[item - so->tids_base], pos) >= 0)
					break;
			}
			return item;
		case HYB_STATIC_PAGE:
			break;
	}
	item = hyb_leaf_search(&batch->leaf, pos, &row);
	return Min(Max(item, from), batch->last);
}

static inline HybScanItem *
add_item(HybScanBatch *batch, const ItemPointerData *tid, int source, int row)
{
	HybScanItem *item = &batch->items[batch->nitems++];

	item->tid = *tid;
	item->source = source;
	item->row = row;
	return item;
}

/* Row of a static item, as HybScanItem counts it. */
static int
static_row(const HybScanBatch *batch, int item)
{
	int			row = 0;

	if (batch->mode == HYB_STATIC_PAGE)
		return hyb_leaf_row_of_item(&batch->leaf, item);
	Assert(batch->mode == HYB_STATIC_ROWS);
	while (row + 1 < batch->nrows && batch->rows[row + 1].first_item <= item)
		row++;
	return row;
}

/* The item after a row's last one. */
static inline int
static_row_end(const HybScanBatch *batch, int row)
{
	if (batch->mode == HYB_STATIC_PAGE)
		return hyb_leaf_row_start(&batch->leaf, row + 1);
	return row + 1 < batch->nrows ? batch->rows[row + 1].first_item : batch->last;
}

/*
 * Static items [from, to) to the batch, but for dead ones and those that do
 * not qualify.
 */
static void
add_static(HybScan *so, HybScanBatch *batch, int from, int to)
{
	const ItemPointerData *tids = so->tids;
	int			first = so->tids_base;

	if (!so->need_values)
	{
		for (int i = from; i < to; i++)
		{
			if (!so->has_dead || !so->dead[i - first])
				add_item(batch, &tids[i - first], i, 0);
		}
		return;
	}
	if (from >= to)
		return;

	for (int row = static_row(batch, from); from < to; row++)
	{
		int			end = static_row_end(batch, row);
		bool		pass = true;

		end = Min(end, to);
		if (so->nquals > 0)
		{
			HybScanItem probe;

			probe.source = from;
			probe.row = row;
			pass = hyb_scan_qualifies(so, hyb_batch_values(so, batch, &probe));
		}
		if (pass)
		{
			for (int i = from; i < end; i++)
			{
				if (!so->has_dead || !so->dead[i - first])
					add_item(batch, &tids[i - first], i, row);
			}
		}
		from = end;
	}
}

/* Entry n of the batch's dynamic part to the batch, if it qualifies. */
static void
add_dynamic(HybScan *so, HybScanBatch *batch, int n)
{
	const HybDynItem *entry = &batch->dyn.items[n];
	HybScanItem item;

	item.source = -1 - n;
	if (so->nquals > 0 &&
		!hyb_scan_qualifies(so, hyb_batch_values(so, batch, &item)))
		return;
	add_item(batch, &entry->tid, item.source, 0);
}

/* Make room for all items of a batch that has been read. */
static void
begin_merge(HybScan *so, HybScanBatch *batch)
{
	int			n = batch->last - batch->first + batch->dyn.nitems;

	if (n > batch->items_alloc)
	{
		if (batch->items_alloc > HYB_SCAN_FIRST_ITEMS)
			pfree(batch->items);
		batch->items_alloc = Max(n, 64);
		batch->items = MemoryContextAlloc(so->context,
										  batch->items_alloc * sizeof(HybScanItem));
	}
	batch->nitems = 0;
	batch->next_static = batch->first;
	batch->next_dyn = 0;
	batch->dyn_place = -1;
}

/*
 * Merge static items and dynamic entries until batch->items has as many as
 * wanted, or all.  Scans often end within a batch, and finding the place of a
 * dynamic entry is a search of the leaf, so this is done as they go on.
 * Returns false if there was nothing more.  Called in so->context.
 */
bool
hyb_batch_merge(HybScan *so, HybScanBatch *batch, int wanted)
{
	HybDynBatch *dyn = &batch->dyn;
	int			before = batch->nitems;

	while (batch->nitems < wanted &&
		   (batch->next_static < batch->last || batch->next_dyn < dyn->nitems))
	{
		int			place = batch->last;
		int			n = 0;

		if (batch->next_dyn < dyn->nitems)
		{
			n = batch->dyn_backward ? dyn->nitems - 1 - batch->next_dyn :
				batch->next_dyn;
			if (batch->dyn_place < 0)
			{
				HybPos		pos;

				batch->dyn_place = batch->last;
				if (batch->next_static < batch->last)
				{
					dyn_item_pos(so, dyn, &dyn->items[n], false, &pos);
					batch->dyn_place = static_place(so, batch, &pos,
													batch->next_static);
				}
			}
			place = batch->dyn_place;
		}
		if (batch->next_static < place)
		{
			int			end = Min(place,
								  batch->next_static + HYB_SCAN_MERGE_CHUNK);

			add_static(so, batch, batch->next_static, end);
			batch->next_static = end;
		}
		else
		{
			add_dynamic(so, batch, n);
			batch->next_dyn++;
			batch->dyn_place = -1;
		}
	}
	return batch->nitems > before;
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

/*
 * Load so->batch with the entries that come next, in scan direction, after
 * so->from.  The batch may turn out empty though the range is not exhausted.
 * Called in so->context, which the reusable buffers are allocated in.
 */
void
hyb_batch_load(HybScan *so, bool forward)
{
	HybScanBatch *batch = so->batch;
	HybScanEdge *near = forward ? &batch->low : &batch->high;
	HybScanEdge *far = forward ? &batch->high : &batch->low;
	const HybPos *pos;
	HybVersion	version;

	Assert(CurrentMemoryContext == so->context);
	Assert(batch->nkilled == 0 && !BufferIsValid(batch->pin));
	hyb_edge_copy(near, &so->from);
	pos = edge_pos(so, near);

	for (;;)
	{
		HybFetch	fetch;
		HybPos		below;

		CHECK_FOR_INTERRUPTS();
		hyb_batch_finish(so, batch);
		if (so->nquals > 0)
			MemoryContextReset(so->qual_context);
		hyb_version_capture(so->ix, &version);

		batch->first = batch->last = 0;
		hyb_edge_set(far, forward ? HYB_EDGE_END : HYB_EDGE_START);
		if (BlockNumberIsValid(version.root) &&
			!load_static(so, &version, batch, pos, forward, far))
			continue;

		fetch.which = HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE;
		if (so->scan->ignore_killed_tuples)
			fetch.which |= HYB_FETCH_NOT_KILLED;
		fetch.lo = forward ? pos : edge_pos(so, far);
		fetch.hi = forward ? edge_pos(so, far) : pos;
		fetch.backward = !forward;
		fetch.limit = so->dyn_limit;
		fetch.point_hash = so->point_hash;
		if (fetch.lo->tie == HYB_AT)
		{
			/* fetch leaves its lower bound out, a cut does not */
			below = *fetch.lo;
			ItemPointerDec(&below.tid);
			fetch.lo = &below;
		}
		batch->dyn_backward = !forward;
		if (hyb_dynamic_fetch(so->ix, &version, &fetch, &batch->dyn))
			break;
	}
	/* the fetch has found the version current, after the leaf was pinned */
	batch->proven = true;
	if (unlikely(HYB_SNAPSHOTS_EXPIRE()))
		check_old_snapshot(so);
	so->dyn_limit = Min(so->dyn_limit * BATCH_GROWTH, DYN_LIMIT_MAX);
	so->static_limit = Min(so->static_limit * BATCH_GROWTH, HYB_LEAF_MAX_ITEMS);

	if (!batch->dyn.complete && batch->dyn.nitems > 0)
	{
		HybPos		cut;
		int			place;

		dyn_item_pos(so, &batch->dyn,
					 &batch->dyn.items[batch->dyn.nitems - 1], forward, &cut);
		place = static_place(so, batch, &cut, batch->first);
		if (forward)
			batch->last = place;
		else
			batch->first = place;
		hyb_edge_set_pos(far, &cut);
	}
	begin_merge(so, batch);
	if (!forward || so->whole_leaves)
		(void) hyb_batch_merge(so, batch, batch->items_alloc);
	hyb_scan_arrays_save(so, batch->elems);
	batch->current = forward ? -1 : batch->nitems;
}

/* ---- items ---- */

HybDynItem *
hyb_batch_dyn_item(HybScanBatch *batch, const HybScanItem *item)
{
	Assert(item->source < 0);
	return &batch->dyn.items[-1 - item->source];
}

/* All columns of an item; holds until the next call.  In so->context. */
const HybValue *
hyb_batch_values(HybScan *so, HybScanBatch *batch, const HybScanItem *item)
{
	HybKeyDesc *desc = so->ix->desc;
	const uint8 *bytes;
	uint32		len;

	if (item->source < 0)
	{
		const HybDynItem *entry = hyb_batch_dyn_item(batch, item);

		bytes = batch->dyn.keys.data + entry->key_off;
		len = entry->len;
		if (hyb_key_split(desc, bytes, len, desc->natts, so->vals) == 0)
			hyb_corrupted(so->ix->rel, entry->ref.block,
						  "An entry of the delta log is not well formed.");
		return so->vals;
	}
	if (batch->mode == HYB_STATIC_PAGE)
		return hyb_leaf_row(&batch->leaf, item->row);
	bytes = batch->rowbytes.data + batch->rows[item->row].off;
	len = batch->rows[item->row].len;
	if (hyb_key_split(desc, bytes, len, desc->natts, so->vals) == 0)
		hyb_corrupted(so->ix->rel, batch->block,
					  "A row of a leaf is not well formed.");
	return so->vals;
}
