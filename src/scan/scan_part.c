/*
 * scan_part.c
 *		What a batch of a scan reads of one static level.
 *
 * Under a leaf's share lock the items in question are found, and what the scan
 * will look at is copied: TIDs only where nobody asks for keys, a few rows, or
 * the page.
 *
 * Keys are asked for by scans that return or compare values, and where entries
 * of other runs have to be put among a leaf's.  Of the dynamic ones that is
 * known only when the leaf has been read: then the page is copied after all
 * (hyb_part_keep).
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "filter/filter_use.h"
#include "scan/scan.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * TIDs that are read at a time, where not all of them are: the more the longer
 * they follow each other.
 */
#define TIDS_AHEAD	16
#define TIDS_AHEAD_MAX	512

/* ---- life ---- */

#define FIRST_TIDS	MAXALIGN(HYB_SCAN_FIRST_ITEMS * sizeof(ItemPointerData))
#define FIRST_DEAD	MAXALIGN(HYB_SCAN_FIRST_ITEMS * sizeof(bool))

Size
hyb_part_space(const HybScan *so)
{
	return MAXALIGN(sizeof(HybScanPart)) +
		MAXALIGN(hyb_leaf_space(so->ix->desc)) + FIRST_TIDS + FIRST_DEAD;
}

HybScanPart *
hyb_part_create(HybScan *so, char *space)
{
	HybKeyDesc *desc = so->ix->desc;
	char	   *p = space != NULL ? space :
		MemoryContextAlloc(so->context, hyb_part_space(so));
	HybScanPart *part = (HybScanPart *) p;

	memset(part, 0, sizeof(HybScanPart));
	p += MAXALIGN(sizeof(HybScanPart));
	hyb_leaf_init(&part->leaf, desc, p, so->context);
	p += MAXALIGN(hyb_leaf_space(desc));
	part->tids = (ItemPointerData *) p;
	part->dead = (bool *) (p + FIRST_TIDS);
	part->tids_alloc = HYB_SCAN_FIRST_ITEMS;
	part->pin = InvalidBuffer;
	return part;
}

void
hyb_part_finish(HybScanPart *part)
{
	if (BufferIsValid(part->pin))
	{
		ReleaseBuffer(part->pin);
		part->pin = InvalidBuffer;
	}
	part->next = part->last;
	part->mode = HYB_STATIC_NONE;
}

/* ---- reading a leaf ---- */

void
hyb_part_reserve_tids(HybScan *so, HybScanPart *part, int n)
{
	if (n <= part->tids_alloc)
		return;
	if (part->tids_alloc > HYB_SCAN_FIRST_ITEMS)
	{
		pfree(part->tids);
		pfree(part->dead);
	}
	part->tids_alloc = Max(n, 64);
	part->tids = MemoryContextAlloc(so->context,
									part->tids_alloc * sizeof(ItemPointerData));
	part->dead = MemoryContextAlloc(so->context,
									part->tids_alloc * sizeof(bool));
}

void
hyb_part_reserve_rows(HybScan *so, HybScanPart *part, int n)
{
	if (n <= part->rows_alloc)
		return;
	if (part->rows != NULL)
		pfree(part->rows);
	part->rows = NULL;
	part->rows_alloc = 0;
	part->rows = MemoryContextAlloc(so->context, n * sizeof(HybScanRow));
	part->rows_alloc = n;
}

/* TIDs of items [from, to), and which of them are not to be returned. */
static void
read_tids(HybScan *so, HybScanPart *part, Page page, int from, int to)
{
	HybLeaf    *leaf = &part->leaf;
	int			n = to - from;
	const uint8 *hints = NULL;

	hyb_part_reserve_tids(so, part, n);
	part->tids_base = from;
	part->tids_end = to;
	hyb_leaf_tids(leaf, from, n, part->tids);

	if (leaf->tombstones == NULL && so->scan->ignore_killed_tuples)
		hints = hyb_leaf_hints(page);
	else
		hints = leaf->tombstones;
	part->has_dead = false;
	if (hints == NULL)
		return;
	for (int i = from >> 3; i <= (to - 1) >> 3; i++)
		part->has_dead |= hints[i] != 0;
	if (!part->has_dead)
		return;
	for (int i = 0; i < n; i++)
	{
		int			item = from + i;

		part->dead[i] = (hints[item >> 3] & (1 << (item & 7))) != 0;
	}
}

/*
 * Before TIDs of items [from, to) are looked at.  A scan with hops reads them
 * as it gets there, since it may not get to most of them.
 */
static inline void
need_tids(HybScan *so, HybScanPart *part, int from, int to)
{
	if (so->hop_last >= 0 && part->mode == HYB_STATIC_PAGE &&
		(from < part->tids_base || to > part->tids_end))
	{
		int			n = TIDS_AHEAD;

		if (from == part->tids_end)
			n = Min(2 * (part->tids_end - part->tids_base), TIDS_AHEAD_MAX);
		read_tids(so, part, part->page, from,
				  Min(Max(to, from + n), part->last));
	}
	Assert(from >= part->tids_base && to <= part->tids_end);
	Assert(from >= part->first && to <= part->last);
}

/* Copy rows [row, end_row) of the open leaf one by one. */
static void
copy_rows(HybScan *so, HybScanPart *part, int row, int end_row)
{
	HybKeyDesc *desc = so->ix->desc;

	hyb_part_reserve_rows(so, part, HYB_SCAN_FEW_ROWS);
	part->nrows = 0;
	part->rowbytes.len = 0;
	for (; row < end_row; row++)
	{
		HybScanRow *dst = &part->rows[part->nrows++];
		const HybValue *vals;

		dst->off = part->rowbytes.len;
		dst->first_item = hyb_leaf_row_start(&part->leaf, row);
		if (so->point && desc->exact && desc->natts == desc->nkeys)
		{
			/* the row is what was asked for */
			hyb_buf_append(&part->rowbytes, so->start.key, so->start.len);
			dst->keylen = dst->len = so->start.len;
			continue;
		}
		vals = hyb_leaf_row(&part->leaf, row);
		hyb_key_join(desc, vals, desc->nkeys, &part->rowbytes);
		dst->keylen = part->rowbytes.len - dst->off;
		if (desc->natts > desc->nkeys)
		{
			/* INCLUDE columns follow: write all columns again */
			part->rowbytes.len = dst->off;
			hyb_key_join(desc, vals, desc->natts, &part->rowbytes);
		}
		dst->len = part->rowbytes.len - dst->off;
	}
}

/* What is sought in a leaf, and the rows that were found. */
typedef struct LeafRange
{
	const HybPos *pos;			/* where the batch begins */
	const HybPos *bound;		/* its far end */
	bool		forward;
	bool		to_fence;		/* it goes on to the leaf's fence or beyond */
	int			row;			/* rows [row, end_row) */
	int			end_row;
} LeafRange;

/*
 * The same for a leaf that does not keep keys: whole rows, one at least.  The cut
 * lies before the keys that begin with what the row behind it holds.
 */
static void
limit_raw_items(HybScan *so, HybScanPart *part, LeafRange *range,
				HybScanEdge *far)
{
	HybLeaf    *leaf = &part->leaf;
	HybPos		cut = {.tie = HYB_BEFORE};
	int			row;

	if (range->forward)
	{
		row = hyb_leaf_row_of_item(leaf, part->first + so->static_limit);
		row = Max(row, range->row + 1);
		if (row >= range->end_row)
			return;
		range->end_row = row;
		part->last = hyb_leaf_row_start(leaf, row);
	}
	else
	{
		row = hyb_leaf_row_of_item(leaf, part->last - so->static_limit);
		row = Min(row, range->end_row - 1);
		if (row <= range->row)
			return;
		range->row = row;
		part->first = hyb_leaf_row_start(leaf, row);
	}
	(void) hyb_leaf_prefix(leaf, row, &so->cut_key);
	cut.key = so->cut_key.data;
	cut.len = (uint16) so->cut_key.len;
	hyb_edge_set_pos(far, &cut);
}

/*
 * Leave out what is more than static_limit items, at the far end of the rows
 * found; `far` becomes the cut there.
 */
static void
limit_items(HybScan *so, HybScanPart *part, LeafRange *range, HybScanEdge *far)
{
	HybKeyDesc *desc = so->ix->desc;
	HybLeaf    *leaf = &part->leaf;
	ItemPointerData tid;
	HybPos		cut;
	int			item;
	int			item_row;

	if (!hyb_leaf_keeps_keys(leaf))
	{
		limit_raw_items(so, part, range, far);
		return;
	}
	if (range->forward)
	{
		part->last = part->first + so->static_limit;
		item = part->last - 1;
	}
	else
	{
		part->first = part->last - so->static_limit;
		item = part->first;
	}
	item_row = hyb_leaf_row_of_item(leaf, item);
	if (range->forward)
		range->end_row = item_row + 1;
	else
		range->row = item_row;

	so->cut_key.len = 0;
	hyb_key_join(desc, hyb_leaf_row(leaf, item_row), desc->nkeys, &so->cut_key);
	hyb_leaf_tids(leaf, item, 1, &tid);
	cut = hyb_pos_at(desc, so->cut_key.data, so->cut_key.len, tid);
	if (range->forward)
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
 * The same in a leaf that does not keep keys: all rows that may hold entries of
 * the range.
 */
static void
find_raw_items(HybScanPart *part, LeafRange *range)
{
	HybLeaf    *leaf = &part->leaf;
	HybRowRange at;
	HybRowRange end = {.lo = 0,.hi = leaf->nrows};

	if (!range->to_fence && range->pos->ncols == leaf->desc->nkeys &&
		is_prefix_range(range->forward ? range->pos : range->bound,
						range->forward ? range->bound : range->pos))
	{
		part->first = hyb_leaf_search_equal(leaf, range->pos, &range->row,
											&range->end_row);
		part->last = hyb_leaf_row_start(leaf, range->end_row);
		return;
	}
	(void) hyb_leaf_search_rows(leaf, range->pos, &at);
	if (!range->to_fence)
		(void) hyb_leaf_search_rows(leaf, range->bound, &end);
	range->row = range->forward ? at.lo : end.lo;
	range->end_row = range->forward ? end.hi : at.hi;
	part->first = hyb_leaf_row_start(leaf, range->row);
	part->last = hyb_leaf_row_start(leaf, range->end_row);
}

/* Find the items [first, last) of the open leaf, and their rows. */
static void
find_items(HybScanPart *part, LeafRange *range)
{
	HybLeaf    *leaf = &part->leaf;
	const HybPos *bound = range->bound;

	if (!hyb_leaf_keeps_keys(leaf))
	{
		find_raw_items(part, range);
		return;
	}
	if (is_prefix_range(range->forward ? range->pos : bound,
						range->forward ? bound : range->pos))
	{
		part->first = hyb_leaf_search_equal(leaf, range->pos, &range->row,
											&range->end_row);
		if (range->to_fence && range->forward)
			range->end_row = leaf->nrows;
		else if (range->to_fence)
			part->first = range->row = 0;
		part->last = hyb_leaf_row_start(leaf, range->end_row);
	}
	else if (!range->forward)
	{
		part->last = hyb_leaf_search(leaf, range->pos, &range->end_row);
		part->first = range->row = 0;
		if (!range->to_fence && !HYB_POS_MIN(bound))
			part->first = hyb_leaf_search(leaf, bound, &range->row);
	}
	else
	{
		part->first = hyb_leaf_search(leaf, range->pos, &range->row);
		part->last = leaf->nitems;
		range->end_row = leaf->nrows;
		if (!range->to_fence && !HYB_POS_MAX(bound))
			part->last = hyb_leaf_search(leaf, bound, &range->end_row);
	}
	/* The end may lie within the posting list of a row: that row is in. */
	if (range->end_row < leaf->nrows &&
		hyb_leaf_row_start(leaf, range->end_row) < part->last)
		range->end_row++;
}

/*
 * Unlock a leaf, and keep it pinned if the scan needs that: for its items, or
 * for dynamic entries that are returned with them.
 */
static inline void
release_leaf(const HybScan *so, HybScanPart *part, Buffer buf)
{
	if (so->need_pins)
	{
		LockBuffer(buf, BUFFER_LOCK_UNLOCK);
		part->pin = buf;
	}
	else
		UnlockReleaseBuffer(buf);
}

/* The prefixes of rows [row, end_row) of such a leaf. */
static void
copy_prefixes(HybScan *so, HybScanPart *part, int row, int end_row)
{
	int			least = part->first;

	hyb_part_reserve_rows(so, part, end_row - row);
	part->nrows = 0;
	part->rowbytes.len = 0;
	for (; row < end_row; row++)
	{
		HybScanRow *dst = &part->rows[part->nrows++];

		dst->first_item = hyb_leaf_row_start(&part->leaf, row);
		if (unlikely(dst->first_item < least || dst->first_item >= part->last))
			hyb_corrupted(so->ix->rel, part->block, "The rows of the leaf do not ascend.");
		least = dst->first_item + 1;
		dst->keylen = hyb_leaf_prefix(&part->leaf, row, &so->cut_key);
		dst->off = part->rowbytes.len;
		dst->len = so->cut_key.len;
		hyb_buf_append(&part->rowbytes, so->cut_key.data, so->cut_key.len);
	}
}

/* Of the items read, those of another key than the one sought are not returned. */
static void
leave_out_others(const HybScan *so, HybScanPart *part)
{
	uint64		hash = hyb_byte_hash(so->start.key, so->start.len);

	Assert(so->point);

	for (int i = part->first; i < part->last; i++)
	{
		bool	   *dead = &part->dead[i - part->tids_base];

		*dead = (part->has_dead && *dead) || !hyb_leaf_may_have(&part->leaf, i, hash);
	}
	part->has_dead = true;
}

/*
 * TIDs of a leaf that does not keep keys.  Of a key that is looked up the batch may
 * begin in the middle of a row, where its entries of other runs lie among the row's
 * by TIDs.
 */
static void
take_raw_items(HybScan *so, HybScanPart *part, Page page, const LeafRange *range)
{
	part->mode = so->rechecks && so->point ? HYB_STATIC_TIDS : HYB_STATIC_RAW;
	read_tids(so, part, page, part->first, part->last);
	if (part->mode == HYB_STATIC_TIDS && part->last - part->first > 1)
		leave_out_others(so, part);
	if (part->mode == HYB_STATIC_TIDS && range->pos->tie == HYB_AT)
	{
		int			place = hyb_part_place(so, part, range->pos, part->first);

		if (range->forward)
			part->first = place;
		else
			part->last = place;
	}
	if (part->mode == HYB_STATIC_RAW && !so->whole_leaves)
		copy_prefixes(so, part, range->row, range->end_row);
}

/*
 * Copy what the scan will look at of the items found, and let go of the leaf.
 */
static void
take_items(HybScan *so, HybScanPart *part, Buffer buf, const LeafRange *range)
{
	Page		page = BufferGetPage(buf);

	if (!hyb_leaf_keeps_keys(&part->leaf))
		take_raw_items(so, part, page, range);
	/* entries of several levels have to be put among each other */
	else if (!so->need_values && (so->point || so->batch->nparts == 1))
	{
		part->mode = HYB_STATIC_TIDS;
		read_tids(so, part, page, part->first, part->last);
	}
	else if (range->end_row - range->row <= HYB_SCAN_FEW_ROWS)
	{
		part->mode = HYB_STATIC_ROWS;
		read_tids(so, part, page, part->first, part->last);
		copy_rows(so, part, range->row, range->end_row);
	}
	else
	{
		part->mode = HYB_STATIC_PAGE;
		if (part->page == NULL)
			part->page = MemoryContextAlloc(so->context, BLCKSZ);
		memcpy(part->page, page, BLCKSZ);
	}
	release_leaf(so, part, buf);

	if (part->mode == HYB_STATIC_PAGE)
	{
		hyb_leaf_open(&part->leaf, so->ix->desc, part->page, so->ix->rel,
					  part->block);
		part->tids_base = part->tids_end = 0;
		if (so->hop_last < 0)
			read_tids(so, part, part->page, part->first, part->last);
	}
}

bool
hyb_part_keep(HybScan *so, HybScanPart *part)
{
	if (part->mode != HYB_STATIC_TIDS || so->point)
		return true;
	if (part->page == NULL)
		part->page = MemoryContextAlloc(so->context, BLCKSZ);
	if (!hyb_page_copy(so->ix, part->block, part->block, HYB_PAGE_LEAF,
					   part->stamp, part->page))
		return false;
	hyb_leaf_open(&part->leaf, so->ix->desc, part->page, so->ix->rel,
				  part->block);
	part->mode = HYB_STATIC_PAGE;
	return true;
}

bool
hyb_part_load(HybScan *so, const HybVersion *version, int level,
			  const HybPos *pos, bool forward, HybScanEdge *far)
{
	HybScanPart *part = so->batch->parts[level];
	HybKeyDesc *desc = so->ix->desc;
	HybDescent *descent = &so->descent;
	const HybPos *bound = hyb_edge_pos(so, far);
	const HybPos *fence = &descent->fence;
	HybSought	sought = {
		.level = level,
		.pos = pos,
		.backward = !forward,
		.want_fence = true
	};
	LeafRange	range = {
		.pos = pos,
		.bound = bound,
		.forward = forward
	};
	Page		page;

	part->mode = HYB_STATIC_NONE;
	part->first = part->last = part->next = 0;
	if (part->window != NULL)
		part->window->n = 0;
	if (version->levels[level].height == 0)
		return true;

	/*
	 * Once one leaf had something, the next one, which the range goes on
	 * into, will have too.
	 */
	if (hyb_filter_try_level(so->probe, level))
		sought.bound = bound;
	else if (!so->point)
		sought.ahead = hyb_ahead_leaves(so, level, forward ? &so->end : &so->start);
	if (!hyb_static_descend(so->ix, version, &sought, descent))
		return false;
	so->filter_checks += descent->probed;
	so->filter_negatives += descent->skipped;
	range.to_fence = forward ? hyb_pos_compare(desc, fence, bound) < 0 :
		hyb_pos_compare(desc, fence, bound) > 0;
	if (descent->skipped)
	{
		hyb_filter_note(so->ix, hyb_scan_asker(so), level, HYB_PROBE_NEGATIVE);
		if (range.to_fence)
			hyb_edge_set_pos(far, fence);
		return true;
	}

	page = BufferGetPage(descent->buf);
	HYB_TEST_FOR_OLD_SNAPSHOT(so->scan->xs_snapshot, so->ix->rel, page);
	hyb_leaf_open(&part->leaf, desc, page, so->ix->rel, descent->block);
	find_items(part, &range);
	if (range.to_fence)
		hyb_edge_set_pos(far, fence);
	if (!so->point && part->last - part->first > so->static_limit)
		limit_items(so, part, &range, far);

	part->block = descent->block;
	part->stamp = descent->stamp;
	part->pd_lower = ((PageHeader) page)->pd_lower;
	if (descent->probed)
		hyb_filter_note(so->ix, hyb_scan_asker(so), level,
						part->first < part->last ? HYB_PROBE_HIT :
						HYB_PROBE_FALSE_POSITIVE);
	if (part->first >= part->last)
	{
		part->first = part->last = 0;
		release_leaf(so, part, descent->buf);
	}
	else
	{
		so->probe &= ~(1 << level);
		take_items(so, part, descent->buf, &range);
	}
	part->next = part->first;
	return true;
}

/* ---- items in order ---- */

/* Row of an item, as HybScanItem counts it. */
static int
row_of_item(const HybScanPart *part, int item)
{
	int			row = 0;

	if (part->mode == HYB_STATIC_PAGE)
		return hyb_leaf_row_of_item(&part->leaf, item);
	if (part->mode == HYB_STATIC_RESOLVED)
		return item;
	Assert(part->mode == HYB_STATIC_ROWS);
	while (row + 1 < part->nrows && part->rows[row + 1].first_item <= item)
		row++;
	return row;
}

/* The item after a row's last one. */
static inline int
part_row_end(const HybScanPart *part, int row)
{
	if (part->mode == HYB_STATIC_PAGE)
		return hyb_leaf_row_start(&part->leaf, row + 1);
	if (part->mode == HYB_STATIC_RESOLVED)
		return row + 1;
	return row + 1 < part->nrows ? part->rows[row + 1].first_item : part->last;
}

int
hyb_part_place(HybScan *so, HybScanPart *part, const HybPos *pos, int from)
{
	int			item;
	int			row;

	switch (part->mode)
	{
		case HYB_STATIC_NONE:
			return part->last;
		case HYB_STATIC_RAW:
			/* a bitmap has no order */
			Assert(so->whole_leaves);
			return part->last;
		case HYB_STATIC_RESOLVED:
			return hyb_resolved_place(so, part, pos, from);
		case HYB_STATIC_TIDS:
			/* equal keys all: the TID decides */
			Assert(so->point);
			for (item = from; item < part->last; item++)
			{
				if (ItemPointerCompare(&part->tids[item - part->tids_base],
									   unconstify(ItemPointerData *, &pos->tid)) >= 0)
					break;
			}
			return item;
		case HYB_STATIC_ROWS:
			row = 0;
			for (item = from; item < part->last; item++)
			{
				const HybScanRow *r;

				while (row + 1 < part->nrows &&
					   part->rows[row + 1].first_item <= item)
					row++;
				r = &part->rows[row];
				if (hyb_pos_compare_key(so->ix->desc,
										part->rowbytes.data + r->off, r->keylen,
										&part->tids[item - part->tids_base], pos) >= 0)
					break;
			}
			return item;
		case HYB_STATIC_PAGE:
			break;
	}
	item = hyb_leaf_search(&part->leaf, pos, &row);
	return Min(Max(item, from), part->last);
}

void
hyb_part_pos(HybScan *so, HybScanPart *part, int item, HybPos *pos,
			 HybBuf *keybuf)
{
	HybKeyDesc *desc = so->ix->desc;

	keybuf->len = 0;
	if (part->mode == HYB_STATIC_TIDS)
	{
		Assert(so->point);
		hyb_buf_append(keybuf, so->start.key, so->start.len);
	}
	else if (part->mode == HYB_STATIC_ROWS || part->mode == HYB_STATIC_RESOLVED)
	{
		const HybScanRow *row = &part->rows[row_of_item(part, item)];

		hyb_buf_append(keybuf, part->rowbytes.data + row->off, row->keylen);
	}
	else
		hyb_key_join(desc,
					 hyb_leaf_row(&part->leaf, row_of_item(part, item)),
					 desc->nkeys, keybuf);
	need_tids(so, part, item, item + 1);
	*pos = hyb_pos_at(desc, keybuf->data, keybuf->len,
					  part->tids[item - part->tids_base]);
}

/*
 * Items [from, to) of one row, or of any where nobody looks at values; or, if
 * that is ROW_IS_ITEM, of a row each.
 */
#define ROW_IS_ITEM	(-1)

static inline void
add_batch_items(HybScan *so, HybScanBatch *batch, int level, int from, int to,
				int row)
{
	HybScanPart *part = batch->parts[level];
	int			base;

	/* rows that do not ascend may come to more items than they have */
	if (unlikely(from >= to || batch->nitems + (to - from) > batch->items_alloc))
		hyb_corrupted(so->ix->rel, part->block, "The rows of the leaf do not ascend.");
	need_tids(so, part, from, to);
	base = part->tids_base;
	for (int i = from; i < to; i++)
	{
		HybScanItem *item;

		if (part->has_dead && part->dead[i - base])
			continue;
		item = &batch->items[batch->nitems++];
		item->tid = part->tids[i - base];
		item->part = level;
		item->source = part->mode == HYB_STATIC_RESOLVED ?
			part->rows[i].first_item : i;
		item->row = row == ROW_IS_ITEM ? i : row;
	}
}

void
hyb_part_add(HybScan *so, HybScanBatch *batch, int level, int to)
{
	HybScanPart *part = batch->parts[level];
	int			from = part->next;

	int			row;

	Assert(to <= part->last);
	part->next = to;
	if (from >= to)
		return;
	/* without keys, the executor looks at what rows have */
	if (!so->need_values || part->mode == HYB_STATIC_RAW ||
		part->mode == HYB_STATIC_TIDS ||
		(so->nquals == 0 && part->mode == HYB_STATIC_PAGE &&
		 part->leaf.unique_rows))
	{
		add_batch_items(so, batch, level, from, to, ROW_IS_ITEM);
		return;
	}
	row = row_of_item(part, from);
	while (from < to)
	{
		int			end = Min(part_row_end(part, row), to);

		if (unlikely(end <= from))
			hyb_corrupted(so->ix->rel, part->block,
						  "The rows of the leaf do not ascend.");
		if (so->nquals == 0 ||
			hyb_scan_qualifies(so, hyb_part_values(so, part, row)))
			add_batch_items(so, batch, level, from, end, row);
		else if (so->hop_last >= 0 && part->mode == HYB_STATIC_PAGE &&
				 --so->hop_wait < 0)
		{
			from = hyb_hop_rows(so, part, &row);
			continue;
		}
		from = end;
		row++;
	}
	part->next = from;
}

const HybValue *
hyb_part_values(HybScan *so, HybScanPart *part, int row)
{
	const HybScanRow *r;

	if (part->mode == HYB_STATIC_PAGE)
		return hyb_leaf_row(&part->leaf, row);
	r = &part->rows[row];
	if (hyb_key_split(so->ix->desc, part->rowbytes.data + r->off, r->len,
					  so->ix->desc->natts, so->vals) == 0)
		hyb_corrupted(so->ix->rel, part->block,
					  "A row of a leaf is not well formed.");
	return so->vals;
}
