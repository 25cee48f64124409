/*
 * check_static.c
 *		hybrid_index_check: internal nodes and leaves, and that no entry is in two
 *		runs.
 *
 * Internal nodes, and where leaves and filter pages are, belong to the survey.
 * Leaves are read in units of UNIT_LEAVES (see check.c), one level after the other.
 * The last one is the oldest level: with it the entries of all newer runs are taken
 * along, so that at each position one unit looks at all runs.
 *
 * A leaf of prefixes (docs/trie.md) says less.  Without the table: prefixes ascend,
 * none begins another one, no fence lies within one, and no entry of a newer run is
 * there as well.  With the table each row that an entry leads to has to begin with
 * the prefix and have the fingerprint, if the check's snapshot sees it
 * (check_table.c says why that row is the entry's).  The comparison of table and
 * index then takes its key.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "algo/bits.h"
#include "check/check.h"
#include "leaf/prefixes.h"
#include "miscadmin.h"
#include "tree/update.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Leaves that are checked while the merge lock is held once. */
#define UNIT_LEAVES		16

/*
 * The static row at hand is live in items [first, last); consume the newer
 * entries up to it.  None of them may be one of its TIDs under its key.
 */
static void
check_row_against_fresh(HybCheck *check, BlockNumber blkno, uint32 keylen,
						int first, int last)
{
	const HybFetchedItem *item;

	while ((item = hyb_check_fresh_peek(check)) != NULL)
	{
		int			c = hyb_key_compare(check->ix->desc,
										hyb_runs_bytes(&check->fresh, item),
										item->keylen,
										check->entry.data, keylen);

		if (c > 0)
			break;
		if (c == 0)
		{
			ItemPointerData tid = item->tid;

			/* another row with this key may follow */
			if (ItemPointerCompare(&tid, &check->leaf_tids[last - 1]) > 0)
				break;
			hyb_check_not_fresh(check, blkno, item, first, last);
		}
		hyb_check_fresh_next(check);
	}
}

/* One row: order, and each of its TIDs. */
static void
check_row(HybCheck *check, BlockNumber blkno, int row, const HybPos *low,
		  const HybPos *high)
{
	const HybKeyDesc *desc = check->ix->desc;
	int			first = hyb_leaf_row_start(&check->leaf, row);
	int			last = hyb_leaf_row_start(&check->leaf, row + 1);
	ItemPointerData *tids = check->leaf_tids;
	const ItemPointerData *live = NULL;
	MemoryContext old_context;
	uint64		hash = 0;
	uint32		keylen;

	if (first >= last)
		hyb_check_fail(check, blkno, "Row %d has no heap TIDs.", row);

	check->entry.len = 0;
	hyb_key_join(desc, hyb_leaf_row(&check->leaf, row), desc->natts,
				 &check->entry);
	keylen = hyb_check_entry(check, blkno, first, check->entry.data,
							 check->entry.len, &tids[first]);
	hyb_check_filter_key(check, check->entry.data, keylen, first);

	/* comparison functions may leak */
	old_context = MemoryContextSwitchTo(check->page_context);
	if (check->have_last)
	{
		int			c = hyb_key_compare(desc, check->last_key.data,
										check->last_key.len,
										check->entry.data, keylen);

		if (c > 0)
			hyb_check_fail(check, blkno,
						   "The key at position %d sorts below the one before it.",
						   first);
		if (c == 0 && ItemPointerCompare(&check->last_tid, &tids[first]) >= 0)
			hyb_check_fail(check, blkno,
						   "The heap TID at position %d is not above the one before it, which has an equal key.",
						   first);
	}
	for (int i = first; i < last; i++)
	{
		if (!ItemPointerIsValid(&tids[i]))
			hyb_check_fail(check, blkno, "The heap TID at position %d is invalid.", i);
		if (i > first && ItemPointerCompare(&tids[i - 1], &tids[i]) >= 0)
			hyb_check_fail(check, blkno,
						   "The heap TID at position %d is not above the one before it.", i);
	}
	if (hyb_pos_compare_key(desc, check->entry.data, keylen, &tids[first], low) < 0)
		hyb_check_fail(check, blkno,
					   "The entry at position %d lies below the leaf's lower fence.",
					   first);
	if (hyb_pos_compare_key(desc, check->entry.data, keylen, &tids[last - 1], high) >= 0)
		hyb_check_fail(check, blkno,
					   "The entry at position %d does not lie below the leaf's upper fence.",
					   last - 1);

	if (check->level == 0)
		check_row_against_fresh(check, blkno, keylen, first, last);
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(check->page_context);

	if (check->level == 0)
		hash = hyb_check_hash(check, check->entry.data, check->entry.len);
	for (int i = first; i < last; i++)
	{
		if (hyb_leaf_is_tombstone(&check->leaf, i))
			check->tombstones++;
		else if (check->level == 0)
			hyb_check_live(check, hash, live = &tids[i]);
	}
	hyb_check_membership(check, blkno, check->entry.data, keylen, live);

	check->last_key.len = 0;
	hyb_buf_append(&check->last_key, check->entry.data, keylen);
	check->last_tid = tids[last - 1];
	check->have_last = true;
}

/* ---- leaves of prefixes ---- */

/* Does a key begin with the prefix in check->entry? */
static inline bool
begins_with_prefix(const HybCheck *check, const uint8 *key, uint32 len,
				   uint32 bits)
{
	return hyb_begins_with_bits(key, len, check->entry.data, bits);
}

/* The row at hand, whose prefix is in check->entry. */
typedef struct PrefixRow
{
	BlockNumber blkno;
	uint32		bits;			/* of the prefix */
	int			first;			/* items [first, last) */
	int			last;
} PrefixRow;

/* The position above all that begins with the prefix in check->entry. */
static HybPos
behind_prefix(HybCheck *check, uint32 bits)
{
	HybPos		pos = {.tie = HYB_AFTER};

	check->above.len = 0;
	hyb_buf_append(&check->above, check->entry.data, check->entry.len);
	if (bits % 8 != 0)
		check->above.data[bits / 8] |= 0xFF >> bits % 8;
	pos.key = check->above.data;
	pos.len = (uint16) check->above.len;
	return pos;
}

/*
 * Fences lie outside: but a list of TIDs that goes on in another leaf is that of
 * a whole key.
 */
static void
check_fences(HybCheck *check, const PrefixRow *row, const HybPos *low,
			 const HybPos *high)
{
	const HybKeyDesc *desc = check->ix->desc;
	const HybBuf *prefix = &check->entry;
	HybPos		before = {
		.key = prefix->data,
		.len = (uint16) prefix->len,
		.tie = HYB_BEFORE
	};
	HybPos		behind = behind_prefix(check, row->bits);
	bool		whole = hyb_prefix_is_whole(desc, prefix->data, row->bits);
	bool		above_low = hyb_pos_compare(desc, low, &before) <= 0;
	bool		below_high = hyb_pos_compare(desc, &behind, high) <= 0;

	if (whole)
	{
		above_low |= hyb_pos_compare_key(desc, prefix->data, prefix->len,
										 &check->leaf_tids[row->first], low) >= 0;
		below_high |= hyb_pos_compare_key(desc, prefix->data, prefix->len,
										  &check->leaf_tids[row->last - 1], high) < 0;
	}
	if (!above_low)
		hyb_check_fail(check, row->blkno,
					   "The entry at position %d lies below the leaf's lower fence.",
					   row->first);
	if (!below_high)
		hyb_check_fail(check, row->blkno,
					   "The entry at position %d does not lie below the leaf's upper fence.",
					   row->last - 1);
}

/* Consume the newer entries up to those that begin with the prefix. */
static void
check_prefix_against_fresh(HybCheck *check, const PrefixRow *row)
{
	const HybFetchedItem *item;

	while ((item = hyb_check_fresh_peek(check)) != NULL)
	{
		const uint8 *key = hyb_runs_bytes(&check->fresh, item);

		if (begins_with_prefix(check, key, item->keylen, row->bits))
			hyb_check_not_fresh(check, row->blkno, item, row->first, row->last);
		else if (memcmp(key, check->entry.data,
						Min(item->keylen, check->entry.len)) > 0)
			break;
		hyb_check_fresh_next(check);
	}
}

/* Read the row of an entry. */
static void
check_table_row(HybCheck *check, const PrefixRow *row, int item)
{
	if (!hyb_check_row_key(check, check->leaf_tids[item], check->snapshot,
						   &check->row_key))
		return;
	if (!begins_with_prefix(check, check->row_key.data, check->row_key.len, row->bits))
		hyb_check_fail(check, row->blkno,
					   "The entry at position %d leads to heap tuple (%u,%u), whose key does not begin with the entry's prefix.",
					   item, HYB_TID_PARTS(&check->leaf_tids[item]));
	if (!hyb_leaf_may_have(&check->leaf, item,
						   hyb_byte_hash(check->row_key.data, check->row_key.len)))
		hyb_check_fail(check, row->blkno,
					   "The entry at position %d leads to heap tuple (%u,%u), whose key does not have the entry's fingerprint.",
					   item, HYB_TID_PARTS(&check->leaf_tids[item]));
	hyb_check_filter_key(check, check->row_key.data, check->row_key.len, item);
	hyb_check_live(check,
				   hyb_check_hash(check, check->row_key.data, check->row_key.len),
				   &check->leaf_tids[item]);
}

static void
check_prefix_row(HybCheck *check, BlockNumber blkno, int row,
				 const HybPos *low, const HybPos *high)
{
	int			first = hyb_leaf_row_start(&check->leaf, row);
	int			last = hyb_leaf_row_start(&check->leaf, row + 1);
	PrefixRow	at = {
		.blkno = blkno,
		.bits = hyb_leaf_prefix(&check->leaf, row, &check->entry),
		.first = first,
		.last = last
	};

	if (check->level != 0)
		hyb_check_fail(check, blkno, "A leaf without keys is not of the oldest level.");
	for (int i = first; i < last; i++)
		if (!ItemPointerIsValid(&check->leaf_tids[i]))
			hyb_check_fail(check, blkno, "The heap TID at position %d is invalid.", i);
	check_fences(check, &at, low, high);
	hyb_check_filter_items(check, row, first, last);
	check_prefix_against_fresh(check, &at);
	for (int i = first; i < last; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (hyb_leaf_is_tombstone(&check->leaf, i))
			check->tombstones++;
		else if (check->filter != NULL)
			check_table_row(check, &at, i);
	}
}

/* ---- nodes and leaves ---- */

/* Child i of a node: the lower fence of the first one is the node's own. */
static HybCheckPage
child_page(const HybCheckPage *node, int i)
{
	const HybChild *child = &node->children[i];
	HybCheckPage page = {
		.block = child->block,
		.from = node->block,
		.stamp = child->stamp,
		.level = node->level - 1,
		.low = i == 0 ? node->low : &child->low,
		.high = i + 1 < node->n ? &child[1].low : node->high
	};

	return page;
}

static void
check_leaf(HybCheck *check, const HybCheckPage *page)
{
	BlockNumber block = page->block;
	PGAlignedBlock copy;
	HybPageOpaque *opaque;
	char	   *wrong;

	hyb_check_copy(check, page, HYB_PAGE_LEAF, copy.data);
	opaque = hyb_page_opaque((Page) copy.data);
	if (opaque->link != InvalidBlockNumber)
		hyb_check_fail(check, block, "A leaf has a link to block %u.", opaque->link);
	if ((opaque->flags & ~HYB_LEAF_TOMBSTONES) != 0)
		hyb_check_fail(check, block, "A leaf has flags 0x%04X.", opaque->flags);

	hyb_leaf_open(&check->leaf, check->ix->desc, copy.data, check->ix->rel, block);
	if (check->leaf.nitems <= 0 || check->leaf.nitems > HYB_LEAF_MAX_ITEMS ||
		check->leaf.nitems != opaque->count)
		hyb_check_fail(check, block, "A leaf has %d entries, but claims %u.",
					   check->leaf.nitems, opaque->count);

	wrong = hyb_leaf_verify(&check->leaf);
	if (wrong != NULL)
		hyb_check_fail(check, block, "%s", wrong);
	hyb_check_filter_leaf(check);
	hyb_leaf_tids(&check->leaf, 0, check->leaf.nitems, check->leaf_tids);

	for (int row = 0; row < check->leaf.nrows; row++)
	{
		if (hyb_leaf_keeps_keys(&check->leaf))
			check_row(check, block, row, page->low, page->high);
		else
			check_prefix_row(check, block, row, page->low, page->high);
	}

	check->tids += check->leaf.nitems;
	check->filled += hyb_leaf_fill((Page) copy.data);
}

/* The children of a node: separators, stamps. */
static void
check_children(HybCheck *check, const HybCheckPage *node)
{
	const HybKeyDesc *desc = check->ix->desc;
	const HybChild *children = node->children;
	BlockNumber block = node->block;

	for (int i = 0; i < node->n; i++)
	{
		hyb_check_position(check, block, i, &children[i].low);
		if (i > 0 &&
			(hyb_pos_compare(desc, &children[i - 1].low, &children[i].low) >= 0 ||
			 hyb_pos_compare(desc, node->low, &children[i].low) >= 0))
			hyb_check_fail(check, block,
						   "The separator at position %d is not above the one before it.", i);
		if (hyb_pos_compare(desc, &children[i].low, node->high) >= 0)
			hyb_check_fail(check, block,
						   "The separator at position %d is not below the node's upper fence.", i);
		if (children[i].stamp > node->stamp)
			hyb_check_fail(check, block,
						   "The child at position %d is younger than its parent.", i);
		if (children[i].rent != 0 && (check->level == 0 || node->level != 1))
			hyb_check_fail(check, block,
						   "The child at position %d has rent, but is no leaf of a newer level.", i);
	}
	if (HYB_POS_MIN(node->low) && !HYB_POS_MIN(&children[0].low))
		hyb_check_fail(check, block,
					   "The separator at position 0 of a leftmost node is not the lowest of all.");
}

/* A node and those below it.  Of leaves only the number is of interest here. */
static void
check_node(HybCheck *check, HybCheckPage *node)
{
	BlockNumber block = node->block;
	HybLevel   *found = &check->found[check->level];
	char	   *copy;
	HybChild   *children;
	HybPageOpaque *opaque;

	if (node->level == 0)
	{
		hyb_check_claim(check, block, HYB_USE_LEAF, node->from);
		found->leaf_pages++;
		return;
	}

	hyb_check_claim(check, block, HYB_USE_INNER, node->from);
	copy = palloc(BLCKSZ);
	hyb_check_copy(check, node, HYB_PAGE_INNER, copy);
	opaque = hyb_page_opaque((Page) copy);
	if (opaque->link != InvalidBlockNumber ||
		(opaque->flags & (node->level == 1 ? ~HYB_INNER_FILTERS : ~0)) != 0)
		hyb_check_fail(check, block, "An internal node has a link to block %u and flags 0x%04X.",
					   opaque->link, opaque->flags);
	node->n = hyb_inner_count((Page) copy);
	if (node->n <= 0 || node->n > HYB_PAGE_CAPACITY)
		hyb_check_fail(check, block, "An internal node has %d children.", node->n);

	node->children = children = palloc(node->n * sizeof(HybChild));
	for (int i = 0; i < node->n; i++)
		hyb_inner_get((Page) copy, i, &children[i], check->ix->rel, block);
	check_children(check, node);
	if (node->level == 1)
		hyb_check_filter_claim(check, node);

	for (int i = 0; i < node->n; i++)
	{
		HybCheckPage child = child_page(node, i);

		check_node(check, &child);
	}

	found->inner_pages++;
	pfree(children);
	pfree(copy);
}

/* The nodes of a level. */
static void
check_level_nodes(HybCheck *check)
{
	const HybLevel *level = &check->survey.meta->levels[check->level];
	HybLevel   *found = &check->found[check->level];
	HybPos		low = {.tie = HYB_BEFORE};
	HybPos		high = {.tie = HYB_AFTER};

	if (level->root.height > HYB_MAX_HEIGHT)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO, "The height is %u.", level->root.height);
	if (level->root.height > 0)
	{
		HybCheckPage root = {
			.block = level->root.block,
			.from = HYB_METAPAGE_BLKNO,
			.stamp = level->root.stamp,
			.level = level->root.height - 1,
			.low = &low,
			.high = &high
		};

		check_node(check, &root);
	}
	if (found->leaf_pages != level->leaf_pages ||
		found->inner_pages != level->inner_pages)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "There are " UINT64_FORMAT " leaves and " UINT64_FORMAT " internal nodes, but the metapage counts " UINT64_FORMAT " and " UINT64_FORMAT ".",
					   found->leaf_pages, found->inner_pages,
					   level->leaf_pages, level->inner_pages);
	if (found->filter_pages != level->filter_pages)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "There are " UINT64_FORMAT " filter pages, but the metapage counts " UINT64_FORMAT ".",
					   found->filter_pages, level->filter_pages);
}

void
hyb_check_nodes(HybCheck *check)
{
	for (check->level = 0; check->level < check->survey.meta->nlevels; check->level++)
		check_level_nodes(check);
}

/* Consume the newer entries below a fence, with the oldest level. */
static void
consume_fresh(HybCheck *check, const HybPos *fence)
{
	const HybFetchedItem *item;

	while (check->level == 0 && (item = hyb_check_fresh_peek(check)) != NULL)
	{
		if (!HYB_POS_MAX(fence))
		{
			MemoryContext old_context = MemoryContextSwitchTo(check->page_context);
			int			c = hyb_pos_compare_key(check->ix->desc,
												hyb_runs_bytes(&check->fresh, item),
												item->keylen, &item->tid, fence);

			MemoryContextSwitchTo(old_context);
			if (c >= 0)
				break;
		}
		hyb_check_fresh_next(check);
	}
	MemoryContextReset(check->page_context);
}

/*
 * Some leaves of the level from the one at check->at on, and with the oldest
 * level what newer runs have up to their fences.  Returns false after the last
 * one.
 */
static bool
check_unit(HybCheck *check)
{
	MemoryContext old_context = MemoryContextSwitchTo(check->unit_context);
	HybRoot		gone = {.block = InvalidBlockNumber};
	const HybRoot *root = check->level < check->version->nlevels ?
		&check->version->levels[check->level] : &gone;
	const HybRoot *surveyed = &check->survey.meta->levels[check->level].root;
	HybPath    *path = palloc(sizeof(HybPath));
	HybPos		low;
	HybCheckPage node = {
		.block = HYB_METAPAGE_BLKNO,
		.level = 1,
		.low = &low,
		.high = &path->high
	};
	HybCheckPage leaf;
	int			first;
	int			end;

	if (root->stamp != surveyed->stamp ||
		root->height != surveyed->height)
		check->changed = true;

	/*
	 * What was fetched is forgotten: VACUUM may have come to its end since,
	 * and heap TIDs may be those of other rows.
	 */
	hyb_runs_reset(&check->fresh);

	/* cached pages and the order of entries are of the version before */
	check->filter_copy_block = InvalidBlockNumber;
	check->have_last = false;

	hyb_path_load(check->ix, root, &check->at, path);
	MemoryContextSwitchTo(old_context);
	if (path->height == 0)
	{
		consume_fresh(check, &path->high);
		return false;
	}
	low = hyb_path_lower_fence(path);
	node.children = path->nodes[0].children.children;
	node.n = path->nodes[0].children.n;
	first = path->nodes[0].index;
	end = Min(first + UNIT_LEAVES, node.n);
	if (path->height > 1)
	{
		/* nodes of a later version are not in the survey */
		node.block = path->nodes[0].block;
		node.stamp = path->height == 2 ? root->stamp :
			path->nodes[1].children.children[path->nodes[1].index].stamp;
		check_children(check, &node);
		hyb_check_filter_pages(check, &node, first, end);
	}

	Assert(first >= 0 && node.level == 1);
	for (int i = first; i < end; i++)
	{
		leaf = child_page(&node, i);
		hyb_check_filter_open(check, &node.children[i]);
		check_leaf(check, &leaf);
		consume_fresh(check, leaf.high);
	}
	hyb_pos_copy(&check->at, &check->at_key, leaf.high);
	return !HYB_POS_MAX(leaf.high);
}

/* All leaves of the level. */
static void
check_level_leaves(HybCheck *check)
{
	const HybLevel *level = &check->survey.meta->levels[check->level];
	HybPos		start = {.tie = HYB_BEFORE};
	bool		more;

	Assert(!check->locked && check->level < HYB_MAX_LEVELS);
	check->tids = 0;
	check->tombstones = 0;
	hyb_pos_copy(&check->at, &check->at_key, &start);
	do
	{
		hyb_check_lock(check);
		more = check_unit(check);
		MemoryContextReset(check->unit_context);
		hyb_check_unlock(check);
		HYB_POINT("check-unit");
	} while (more);
	if (check->changed)
		return;
	if (check->tids != level->tids)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "The leaves hold " UINT64_FORMAT " heap TIDs, but the metapage counts " UINT64_FORMAT ".",
					   check->tids, level->tids);

	/* a VACUUM that runs, or was cancelled, has not counted its tombstones */
	if (check->tombstones < level->tombstones)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "The leaves hold " UINT64_FORMAT " tombstones, but the metapage counts " UINT64_FORMAT ".",
					   check->tombstones, level->tombstones);
}

void
hyb_check_leaves(HybCheck *check)
{
	uint64		leaves = hyb_meta_static(check->survey.meta).leaf_pages;

	for (check->level = (int) check->survey.meta->nlevels - 1; check->level >= 0; check->level--)
		check_level_leaves(check);
	/* for tests, which need the exact fill */
	if (leaves > 0 && !check->changed)
		ereport(DEBUG1,
				(errmsg_internal("leaves of index \"%s\": " UINT64_FORMAT ", %.4f full, in %u levels",
								 RelationGetRelationName(check->ix->rel), leaves,
								 check->filled / leaves,
								 check->survey.meta->nlevels)));
}
