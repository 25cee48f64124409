/*
 * leaf.c
 *		Opening a static leaf, its rows and TIDs, and finding a position in it.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "leaf/leaf.h"
#include "utils/memutils.h"

const HybLeafLayout *const hyb_leaf_layouts[HYB_LAYOUTS] = {
	&hyb_columnar_layout,
	&hyb_trie_layout,
	&hyb_strings_layout,
};

const HybLeafLayout *
hyb_leaf_layout_for(const HybIndex *ix, int level)
{
	if (level > 0 || !ix->desc->truncated)
		return &hyb_columnar_layout;
	return hyb_key_is_fixed(ix->desc) ? &hyb_trie_layout : &hyb_strings_layout;
}

/* ---- opening ---- */

/* May an index with this description have leaves of a layout? */
static inline bool
layout_is_possible(const HybLeafLayout *layout, const HybKeyDesc *desc)
{
	return layout->keeps_keys || desc->truncated;
}

static inline Size
own_space(const HybLeafLayout *layout, const HybKeyDesc *desc)
{
	return !layout_is_possible(layout, desc) ? 0 :
		MAXALIGN(layout->size + desc->natts * layout->column_size);
}

Size
hyb_leaf_space(const HybKeyDesc *desc)
{
	Size		size = MAXALIGN(desc->natts * sizeof(HybValue));

	for (int i = 0; i < HYB_LAYOUTS; i++)
		size += own_space(hyb_leaf_layouts[i], desc);
	return size;
}

/* Cut up hyb_leaf_space() bytes. */
static void
assign_space(HybLeaf *leaf, const HybKeyDesc *desc, char *space)
{
	leaf->ncols_alloc = desc->natts;
	leaf->scratch_vals = (HybValue *) space;
	space += MAXALIGN(desc->natts * sizeof(HybValue));
	for (int i = 0; i < HYB_LAYOUTS; i++)
	{
		leaf->own[i] = layout_is_possible(hyb_leaf_layouts[i], desc) ? space : NULL;
		if (leaf->own[i] != NULL)
			hyb_leaf_layouts[i]->init(leaf);
		space += own_space(hyb_leaf_layouts[i], desc);
	}
}

void
hyb_leaf_init(HybLeaf *leaf, const HybKeyDesc *desc, void *space,
			  MemoryContext context)
{
	memset(leaf, 0, sizeof(HybLeaf));
	leaf->context = context;
	leaf->spare_buffers = true;
	assign_space(leaf, desc, space);
}

static void
leaf_alloc(HybLeaf *leaf, const HybKeyDesc *desc)
{
	Assert(!leaf->spare_buffers);
	hyb_leaf_close(leaf);
	leaf->context = CurrentMemoryContext;
	assign_space(leaf, desc, palloc(hyb_leaf_space(desc)));
}

void
hyb_leaf_close(HybLeaf *leaf)
{
	if (leaf->ncols_alloc == 0)
		return;
	for (int i = 0; i < HYB_LAYOUTS; i++)
		if (leaf->own[i] != NULL && hyb_leaf_layouts[i]->close != NULL)
			hyb_leaf_layouts[i]->close(leaf);
	pfree(leaf->scratch_vals);
	leaf->scratch_vals = NULL;
	leaf->ncols_alloc = 0;
}

void
hyb_leaf_open(HybLeaf *leaf, const HybKeyDesc *desc, const char *page,
			  Relation rel, BlockNumber blkno)
{
	const PageHeaderData *header = (const PageHeaderData *) page;
	const HybPageOpaque *opaque;
	const uint8 *content = (const uint8 *) page + MAXALIGN(SizeOfPageHeaderData);
	const uint8 *end;

	leaf->rel = rel;
	leaf->blkno = blkno;
	if (header->pd_special != BLCKSZ - MAXALIGN(sizeof(HybPageOpaque)) ||
		header->pd_lower > header->pd_special ||
		header->pd_lower < MAXALIGN(SizeOfPageHeaderData) + HYB_LEAF_HEADER)
		hyb_corrupted(rel, blkno, "The bounds of the leaf's content are wrong.");
	opaque = (const HybPageOpaque *) (page + header->pd_special);
	end = (const uint8 *) page + header->pd_lower;

	if (leaf->ncols_alloc != desc->natts ||
		(desc->truncated && leaf->own[HYB_LAYOUT_TRIE - 1] == NULL))
		leaf_alloc(leaf, desc);
	leaf->desc = desc;
	leaf->page = page;
	leaf->scratch_row = -1;
	leaf->nrows = hyb_load16(content);
	leaf->nitems = hyb_load16(content + 2);
	leaf->unique_rows = leaf->nrows == leaf->nitems;
	if (leaf->nrows < 1 || leaf->nrows > leaf->nitems ||
		leaf->nitems > HYB_LEAF_MAX_ITEMS ||
		leaf->nitems != opaque->count)
		hyb_corrupted(rel, blkno, "The leaf's header is wrong.");
	if (content[4] < 1 || content[4] > HYB_LAYOUTS ||
		!layout_is_possible(hyb_leaf_layouts[content[4] - 1], desc))
		hyb_corrupted(rel, blkno, psprintf("The leaf has layout %d, which is not known.",
										   content[4]));
	leaf->layout = hyb_leaf_layouts[content[4] - 1];

	leaf->tombstones = NULL;
	if (opaque->flags & HYB_LEAF_TOMBSTONES)
	{
		int			bytes = hyb_leaf_hint_bytes(leaf->nitems);

		if (end - content < HYB_LEAF_HEADER + bytes)
			hyb_corrupted(rel, blkno, "The leaf's tombstone bitmap does not fit its content.");
		end -= bytes;
		leaf->tombstones = end;
	}
	leaf->content_len = leaf->layout->open(leaf, content + HYB_LEAF_HEADER, end) -
		content;
	Assert(content + leaf->content_len <= end);
	hyb_leaf_assert_valid(leaf);
}

#ifdef USE_ASSERT_CHECKING
void
hyb_leaf_assert_valid(const HybLeaf *leaf)
{
	Assert(leaf->nrows >= 1 && leaf->nrows <= leaf->nitems);
	Assert(leaf->nitems <= HYB_LEAF_MAX_ITEMS);
	Assert(leaf->unique_rows == (leaf->nrows == leaf->nitems));
	Assert(layout_is_possible(leaf->layout, leaf->desc));
	Assert(leaf->own[leaf->layout->number - 1] != NULL);
	Assert(leaf->ncols_alloc == leaf->desc->natts);
	Assert(leaf->content_len >= HYB_LEAF_HEADER && leaf->content_len <= HYB_PAGE_CAPACITY);
	Assert(leaf->scratch_row >= -1 && leaf->scratch_row < leaf->nrows);
	Assert(leaf->tombstones == NULL ||
		   (leaf->tombstones > (const uint8 *) leaf->page &&
			leaf->tombstones < (const uint8 *) leaf->page + BLCKSZ));
}
#endif

/* ---- rows and items ---- */

const HybValue *
hyb_leaf_row(HybLeaf *leaf, int row)
{
	Assert(row >= 0 && row < leaf->nrows && leaf->layout->keeps_keys);
	if (leaf->scratch_row != row)
	{
		leaf->scratch_row = -1;
		leaf->layout->row(leaf, row, leaf->scratch_vals);
		leaf->scratch_row = row;
	}
	return leaf->scratch_vals;
}

uint32
hyb_leaf_prefix(HybLeaf *leaf, int row, HybBuf *prefix)
{
	Assert(row >= 0 && row < leaf->nrows && !leaf->layout->keeps_keys);
	return leaf->layout->prefix(leaf, row, prefix);
}

void
hyb_leaf_ints(HybLeaf *leaf, int col, int row, int n, uint64 *ints,
			  uint8 *isnull)
{
	Assert(row >= 0 && n >= 0 && row + n <= leaf->nrows);
	Assert(leaf->desc->cols[col].store == HYB_STORE_INT);
	Assert(leaf->layout->keeps_keys);
	leaf->layout->ints(leaf, col, row, n, ints, isnull);
}

int
hyb_leaf_row_start(const HybLeaf *leaf, int row)
{
	Assert(row >= 0 && row <= leaf->nrows);
	if (leaf->unique_rows)
		return row;
	if (row >= leaf->nrows)
		return leaf->nitems;
	return leaf->layout->row_start(leaf, row);
}

void
hyb_leaf_row_starts(const HybLeaf *leaf, int row, int n, int *starts)
{
	Assert(n <= HYB_LEAF_ROW_STARTS && row + n <= leaf->nrows);
	if (!leaf->unique_rows)
	{
		leaf->layout->row_starts(leaf, row, n, starts);
		return;
	}
	for (int i = 0; i < n; i++)
		starts[i] = row + i;
}

int
hyb_leaf_row_of_item(const HybLeaf *leaf, int item)
{
	Assert(item >= 0 && item <= leaf->nitems);
	if (leaf->unique_rows)
		return item;
	if (item >= leaf->nitems)
		return leaf->nrows;
	return leaf->layout->row_of_item(leaf, item);
}

void
hyb_leaf_tids(const HybLeaf *leaf, int item, int n, ItemPointerData *tids)
{
	Assert(item >= 0 && n >= 0 && item + n <= leaf->nitems);
	leaf->layout->tids(leaf, item, n, tids);
}

/* ---- searching ---- */

/*
 * First row above a position of raw bytes.  Such positions are separators,
 * mostly this leaf's own fences: the first and the last row are tried first.
 */
static int
raw_bound(HybLeaf *leaf, const HybPos *pos)
{
	int			lo = 0;
	int			hi = leaf->nrows;

	for (int probe = 0; lo < hi; probe++)
	{
		int			row = probe == 0 ? 0 : probe == 1 ? hi - 1 : (lo + hi) / 2;

		if (hyb_pos_compare_raw(leaf->desc, hyb_leaf_row(leaf, row), pos) < 0)
			lo = row + 1;
		else
			hi = row;
	}
	return lo;
}

/*
 * The rows that start with the columns of pos.  Returns false if pos is not
 * made of whole columns.
 */
static bool
search_columns(HybLeaf *leaf, const HybPos *pos, HybRowRange *rows)
{
	HybValue	vals[INDEX_MAX_KEYS];

	if (pos->ncols == 0 ||
		hyb_key_split(leaf->desc, pos->key, pos->len, pos->ncols, vals) != pos->len)
		return false;
	/* a row's values may lie in buffers that the search needs */
	leaf->scratch_row = -1;
	leaf->layout->search(leaf, vals, pos->ncols, rows);
	Assert(rows->lo >= 0 && rows->lo <= rows->hi && rows->hi <= leaf->nrows);
	return true;
}

/* May any of a row's items be of a key that its prefix begins? */
static bool
row_may_have(const HybLeaf *leaf, int row, const HybPos *key)
{
	int			end = hyb_leaf_row_start(leaf, row + 1);
	uint64		hash;

	if (leaf->layout->may_have == NULL)
		return true;
	hash = hyb_byte_hash(key->key, key->len);
	for (int i = hyb_leaf_row_start(leaf, row); i < end; i++)
		if (hyb_leaf_may_have(leaf, i, hash))
			return true;
	return false;
}

int
hyb_leaf_search_equal(HybLeaf *leaf, const HybPos *pos, int *row, int *end_row)
{
	HybRowRange rows;

	if (!leaf->layout->keeps_keys)
	{
		HybPos		at = *pos;

		/* the row that whole keys lead to */
		Assert(pos->ncols == leaf->desc->nkeys);
		at.tie = HYB_AT;
		if (!leaf->layout->find(leaf, &at, &rows) && rows.lo < rows.hi &&
			!row_may_have(leaf, rows.lo, pos))
			rows.hi = rows.lo;
	}
	else if (!search_columns(leaf, pos, &rows))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "It was searched for a malformed key.");
	Assert(rows.lo >= 0 && rows.lo <= rows.hi && rows.hi <= leaf->nrows);
	*row = rows.lo;
	*end_row = rows.hi;
	return hyb_leaf_row_start(leaf, rows.lo);
}

bool
hyb_leaf_search_rows(HybLeaf *leaf, const HybPos *pos, HybRowRange *rows)
{
	Assert(!leaf->layout->keeps_keys);
	if (pos->len > 0)
		return leaf->layout->find(leaf, pos, rows);
	rows->lo = rows->hi = pos->tie == HYB_AFTER ? leaf->nrows : 0;
	return false;
}

int
hyb_leaf_search(HybLeaf *leaf, const HybPos *pos, int *row)
{
	HybRowRange rows;
	int			item;
	int			end;

	if (pos->len == 0)
	{
		*row = pos->tie == HYB_AFTER ? leaf->nrows : 0;
		return pos->tie == HYB_AFTER ? leaf->nitems : 0;
	}

	if (!leaf->layout->keeps_keys)
	{
		bool		equal = leaf->layout->find(leaf, pos, &rows);

		/* an entry goes to the row that its key begins with */
		if (pos->tie == HYB_AT && !equal)
			rows.lo = rows.hi;
	}
	else if (!search_columns(leaf, pos, &rows))
	{
		/* only raw bytes need not be whole columns */
		if (!leaf->desc->all_mem || pos->ncols > 0)
			hyb_corrupted(leaf->rel, leaf->blkno,
						  "It was searched for a malformed key.");
		rows.lo = rows.hi = raw_bound(leaf, pos);
	}

	Assert(rows.lo >= 0 && rows.lo <= rows.hi && rows.hi <= leaf->nrows);
	if (pos->tie != HYB_AT || rows.lo == rows.hi)
	{
		*row = pos->tie == HYB_AFTER ? rows.hi : rows.lo;
		return hyb_leaf_row_start(leaf, *row);
	}

	end = hyb_leaf_row_start(leaf, rows.hi);
	item = leaf->layout->search_tid(leaf, hyb_leaf_row_start(leaf, rows.lo), end,
									&pos->tid);
	Assert(item >= 0 && item <= end);
	*row = item == end ? rows.hi : hyb_leaf_row_of_item(leaf, item);
	return item;
}
