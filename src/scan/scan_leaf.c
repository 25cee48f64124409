/*
 * scan_leaf.c
 *		Reading a leaf into a part of a batch.
 *
 * The items in question are found under the leaf's share lock, or in a copy of it
 * (tree/descend.h).  Then what the
 * scan will look at is copied: the TIDs only if no key is asked for, a few rows,
 * or the whole page.
 *
 * Keys are asked for by scans that return or compare values, and where entries
 * of other runs have to be put among a leaf's.  Whether there are dynamic ones is
 * known only when the leaf has been read: then the page is copied after all
 * (hyb_part_keep).
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "filter/filter_choice.h"
#include "scan/scan.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Copy the part's items of the open leaf, which lie in rows [row, end_row). */
static void
copy_rows(HybScan *so, HybScanPart *part, int row, int end_row)
{
	HybKeyDesc *desc = so->ix->desc;
	int			n = part->last - part->first;
	int			item = part->first;

	hyb_part_reserve_rows(so->ix, part, n);
	part->rowbytes.len = 0;
	for (; row < end_row; row++)
	{
		HybScanRow	dst = {.off = part->rowbytes.len};
		int			end = Min(hyb_leaf_row_start(&part->leaf, row + 1), part->last);

		/* a whole key is what was asked for */
		if (so->keys.point && desc->exact)
			hyb_buf_append(&part->rowbytes, so->keys.start.key, so->keys.start.len);
		else
			hyb_key_join(desc, hyb_leaf_row(&part->leaf, row), desc->nkeys,
						 &part->rowbytes);
		dst.len = dst.keylen = part->rowbytes.len - dst.off;
		if (desc->natts > desc->nkeys)
		{
			/* INCLUDE columns follow: write all columns again */
			part->rowbytes.len = dst.off;
			hyb_key_join(desc, hyb_leaf_row(&part->leaf, row), desc->natts,
						 &part->rowbytes);
			dst.len = part->rowbytes.len - dst.off;
		}
		for (; item < end; item++)
		{
			dst.first_item = item;
			part->rows[item - part->first] = dst;
		}
	}
	if (unlikely(item < part->last))
		hyb_corrupted(so->ix->rel, part->block, "The rows of the leaf do not ascend.");
	hyb_part_set_rows(part, n);
}

/* What is sought in a leaf, and the rows that were found. */
typedef struct LeafRange
{
	const HybPos *lo;			/* the batch's ends */
	const HybPos *hi;
	bool		forward;
	bool		to_fence;		/* it goes on to the leaf's fence or beyond */
	int			row;			/* rows [row, end_row) */
	int			end_row;
} LeafRange;

/*
 * limit_items for a leaf that does not keep keys: whole rows, one at least.  The cut
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
		row = hyb_leaf_row_of_item(leaf, part->first + so->mode.static_limit);
		row = Max(row, range->row + 1);
		if (row >= range->end_row)
			return;
		range->end_row = row;
		part->last = hyb_leaf_row_start(leaf, row);
	}
	else
	{
		row = hyb_leaf_row_of_item(leaf, part->last - so->mode.static_limit);
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
		part->last = part->first + so->mode.static_limit;
		item = part->last - 1;
	}
	else
	{
		part->first = part->last - so->mode.static_limit;
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
		cut = hyb_pos_above(&cut);
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

/* Find the items [first, last) of the open leaf, and their rows. */
static void
find_items(HybScanPart *part, LeafRange *range)
{
	HybLeaf    *leaf = &part->leaf;
	const HybPos *lo = range->lo;
	const HybPos *hi = range->hi;
	bool		equal = is_prefix_range(lo, hi);
	HybRowRange at;

	if (hyb_leaf_keeps_keys(leaf) ? equal :
		equal && !range->to_fence && lo->ncols == leaf->desc->nkeys)
	{
		part->first = hyb_leaf_search_equal(leaf, lo, &range->row, &range->end_row);
		if (range->to_fence && range->forward)
			range->end_row = leaf->nrows;
		else if (range->to_fence)
			part->first = range->row = 0;
		part->last = hyb_leaf_row_start(leaf, range->end_row);
		return;
	}
	part->first = range->row = 0;
	part->last = leaf->nitems;
	range->end_row = leaf->nrows;
	if (!hyb_leaf_keeps_keys(leaf))
	{
		/* all rows that may hold entries of the range */
		if (range->forward || !range->to_fence)
		{
			(void) hyb_leaf_search_rows(leaf, lo, &at);
			range->row = at.lo;
		}
		if (!range->forward || !range->to_fence)
		{
			(void) hyb_leaf_search_rows(leaf, hi, &at);
			range->end_row = at.hi;
		}
		part->first = hyb_leaf_row_start(leaf, range->row);
		part->last = hyb_leaf_row_start(leaf, range->end_row);
		return;
	}
	if ((range->forward || !range->to_fence) && !HYB_POS_MIN(lo))
		part->first = hyb_leaf_search(leaf, lo, &range->row);
	if ((!range->forward || !range->to_fence) && !HYB_POS_MAX(hi))
		part->last = hyb_leaf_search(leaf, hi, &range->end_row);
	/* The end may lie within the posting list of a row: that row is in. */
	if (range->end_row < leaf->nrows &&
		hyb_leaf_row_start(leaf, range->end_row) < part->last)
		range->end_row++;
}

/*
 * Leave out dead items at the near end of those found.  Returns whether none is left
 * but the range goes on beyond the leaf.
 */
static bool
pass_dead_items(const HybScan *so, HybScanPart *part, Page page, LeafRange *range)
{
	HybLeaf    *leaf = &part->leaf;
	const uint8 *dead;
	int			first = part->first;
	int			last = part->last;

	if (first >= last || !hyb_leaf_keeps_keys(leaf))
		return false;
	dead = hyb_part_hints(so, part, page);
	if (dead == NULL)
		return false;
	if (range->forward)
		while (first < last && (dead[first >> 3] & (1 << (first & 7))) != 0)
			first += (first & 7) == 0 && last - first >= 8 && dead[first >> 3] == 0xFF ? 8 : 1;
	else
		while (first < last && (dead[(last - 1) >> 3] & (1 << ((last - 1) & 7))) != 0)
			last -= (last & 7) == 0 && last - first >= 8 && dead[(last >> 3) - 1] == 0xFF ? 8 : 1;
	if (first == last)
	{
		part->first = part->last = 0;
		return range->to_fence;
	}
	if (first > part->first)
		range->row = hyb_leaf_row_of_item(leaf, first);
	if (last < part->last)
		range->end_row = hyb_leaf_row_of_item(leaf, last - 1) + 1;
	part->first = first;
	part->last = last;
	return false;
}

/*
 * Unlock a leaf, and keep it pinned if the scan needs that: for its items, or
 * for dynamic entries that are returned with them.
 */
static inline void
release_leaf(const HybScan *so, HybScanPart *part)
{
	if (so->mode.need_pins)
	{
		hyb_descent_unlock(&so->descent);
		part->pin = so->descent.buf;
	}
	else
		hyb_descent_release(&so->descent);
}

/* The prefixes of rows [row, end_row) of such a leaf. */
static void
copy_prefixes(HybScan *so, HybScanPart *part, int row, int end_row)
{
	int			least = part->first;

	hyb_part_reserve_rows(so->ix, part, end_row - row);
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

/* Items of other keys than the one sought are not returned. */
static void
leave_out_others(const HybScan *so, HybScanPart *part)
{
	uint64		hash = hyb_byte_hash(so->keys.start.key, so->keys.start.len);

	Assert(so->keys.point);

	for (int i = part->first; i < part->last; i++)
	{
		bool	   *dead = &part->dead[i - part->tids_base];

		*dead = (part->has_dead && *dead) || !hyb_leaf_may_have(&part->leaf, i, hash);
	}
	part->has_dead = true;
}

/*
 * Take TIDs of a leaf that does not keep keys.  A batch of a look-up may begin in the
 * middle of a row, among whose TIDs the key's entries of other runs lie.
 */
static void
take_raw_items(HybScan *so, HybScanPart *part, Page page, const LeafRange *range)
{
	part->mode = so->mode.rechecks && so->keys.point ? HYB_STATIC_TIDS : HYB_STATIC_RAW;
	hyb_part_read_tids(so, part, page, part->first, part->last);
	if (part->mode == HYB_STATIC_TIDS && part->last - part->first > 1)
		leave_out_others(so, part);
	if (part->mode == HYB_STATIC_TIDS && range->forward && range->lo->tie == HYB_AT)
		part->first = hyb_part_place(so, part, range->lo, part->first);
	if (part->mode == HYB_STATIC_TIDS && !range->forward && range->hi->tie == HYB_AT)
		part->last = hyb_part_place(so, part, range->hi, part->first);
	if (part->mode == HYB_STATIC_RAW && !so->mode.whole_leaves)
		copy_prefixes(so, part, range->row, range->end_row);
}

/*
 * Copy what the scan will look at of the items found, and let go of the leaf.
 */
static void
take_items(HybScan *so, HybScanPart *part, const LeafRange *range)
{
	Page		page = so->descent.page;

	if (!hyb_leaf_keeps_keys(&part->leaf))
		take_raw_items(so, part, page, range);
	/* entries of several levels have to be put among each other */
	else if (!so->mode.need_values && (so->keys.point || so->batch->nparts == 1))
	{
		part->mode = HYB_STATIC_TIDS;
		hyb_part_read_tids(so, part, page, part->first, part->last);
	}
	else if (range->end_row - range->row <= HYB_SCAN_FEW_ROWS)
	{
		hyb_part_read_tids(so, part, page, part->first, part->last);
		copy_rows(so, part, range->row, range->end_row);
	}
	else
	{
		part->mode = HYB_STATIC_PAGE;
		if (part->page == NULL)
			part->page = MemoryContextAlloc(so->context, BLCKSZ);
		memcpy(part->page, page, BLCKSZ);
	}
	release_leaf(so, part);

	if (part->mode == HYB_STATIC_PAGE)
	{
		hyb_leaf_open(&part->leaf, so->ix->desc, part->page, so->ix->rel,
					  part->block);
		part->tids_base = part->tids_end = 0;
		if (so->keys.hop_last < 0)
			hyb_part_read_tids(so, part, part->page, part->first, part->last);
	}
}

bool
hyb_part_keep(HybScan *so, HybScanPart *part)
{
	if (part->mode != HYB_STATIC_TIDS || so->keys.point)
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
	const HybPos *bound = hyb_edge_pos(&so->keys, far);
	const HybPos *fence = &descent->fence;
	HybSought	sought = {
		.level = level,
		.pos = pos,
		.backward = !forward,
		.want_fence = true
	};
	LeafRange	range = {
		.lo = forward ? pos : bound,
		.hi = forward ? bound : pos,
		.forward = forward
	};
	Page		page;

	hyb_part_empty(part);
	if (part->window != NULL)
		part->window->n = 0;
	if (version->levels[level].height == 0)
		return true;

	/*
	 * Once one leaf had something, the next one, which the range goes on
	 * into, will have too.
	 */
	if (hyb_filter_try_level(so->mode.probe, level))
		sought.bound = bound;
	if (!hyb_static_descend(so->ix, version, &sought, descent))
		return false;
	so->counts->filter_checks += descent->probed;
	so->counts->filter_negatives += descent->skipped;
	range.to_fence = forward ? hyb_pos_compare(desc, fence, bound) < 0 :
		hyb_pos_compare(desc, fence, bound) > 0;
	if (descent->skipped)
	{
		hyb_filter_note(so->ix, hyb_scan_asker(&so->keys), level, HYB_PROBE_NEGATIVE);
		if (range.to_fence)
			hyb_edge_set_pos(far, fence);
		return true;
	}

	page = descent->page;
	HYB_TEST_FOR_OLD_SNAPSHOT(so->scan->xs_snapshot, so->ix->rel, page);
	part->block = descent->block;
	part->stamp = descent->stamp;
	part->pd_lower = ((PageHeader) page)->pd_lower;
	hyb_leaf_open(&part->leaf, desc, page, so->ix->rel, part->block);
	find_items(part, &range);
	if (range.to_fence)
		hyb_edge_set_pos(far, fence);
	if (descent->probed)
		hyb_filter_note(so->ix, hyb_scan_asker(&so->keys), level,
						part->first < part->last ? HYB_PROBE_HIT :
						HYB_PROBE_FALSE_POSITIVE);
	part->all_dead = pass_dead_items(so, part, page, &range);
	if (!so->keys.point && part->last - part->first > so->mode.static_limit)
		limit_items(so, part, &range, far);

	if (part->first >= part->last)
	{
		part->first = part->last = 0;
		release_leaf(so, part);
	}
	else
	{
		so->mode.probe &= ~(1 << level);
		take_items(so, part, &range);
	}
	part->next = part->first;
	return true;
}
