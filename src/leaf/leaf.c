/*
 * leaf.c
 *		Opening a static leaf, its rows and TIDs, and finding a position in it.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "leaf/columnar.h"
#include "leaf/leaf.h"
#include "utils/memutils.h"

/* By number - 1. */
static const HybLeafLayout *const layouts[HYB_LAYOUTS] = {
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

/* Columns of the widest leaf: prefixes that are numbers take two. */
static inline int
most_columns(const HybKeyDesc *desc)
{
	return desc->truncated ? Max(desc->natts, HYB_PREFIXES_COLUMNS) : desc->natts;
}

#define VALUES_SPACE(ncols)		MAXALIGN((ncols) * sizeof(HybValue))
#define COLUMNAR_SPACE(ncols)	\
	MAXALIGN(offsetof(HybColumnar, cols) + (ncols) * sizeof(HybLeafColumn))

Size
hyb_leaf_space(const HybKeyDesc *desc)
{
	int			ncols = most_columns(desc);

	return VALUES_SPACE(ncols) + COLUMNAR_SPACE(ncols) +
		(desc->truncated ? MAXALIGN(sizeof(HybPrefixes)) : 0);
}

/*
 * Cut up hyb_leaf_space() bytes.  Zeroes what opening does not set, and no more: a
 * scan is begun for every statement.
 */
static void
assign_space(HybLeaf *leaf, const HybKeyDesc *desc, char *space)
{
	int			ncols = most_columns(desc);

	leaf->ncols_alloc = ncols;
	leaf->scratch_vals = (HybValue *) space;
	space += VALUES_SPACE(ncols);
	leaf->columnar = (HybColumnar *) space;
	leaf->columnar->room = NULL;
	leaf->columnar->nroom = 0;
	for (int i = 0; i < ncols; i++)
	{
		HybLeafColumn *col = &leaf->columnar->cols[i];

		memset(&col->cursor, 0, sizeof(HybFrontCursor));
		memset(&col->lz_cursor, 0, sizeof(HybLzCursor));
		memset(&col->sym_cursor, 0, sizeof(HybSymCursor));
	}
	leaf->prefixes = NULL;
	if (desc->truncated)
	{
		leaf->prefixes = (HybPrefixes *) (space + COLUMNAR_SPACE(ncols));
		memset(leaf->prefixes, 0, sizeof(HybPrefixes));
	}
}

void
hyb_leaf_init(HybLeaf *leaf, const HybKeyDesc *desc, void *space,
			  MemoryContext context)
{
	memset(leaf, 0, sizeof(HybLeaf));
	leaf->context = context;
	assign_space(leaf, desc, space);
}

void
hyb_leaf_close(HybLeaf *leaf)
{
	if (leaf->own_context)
		MemoryContextDelete(leaf->context);
	leaf->own_context = false;
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

	if (leaf->ncols_alloc != most_columns(desc) ||
		(desc->truncated && leaf->prefixes == NULL))
	{
		Assert(leaf->ncols_alloc == 0 || leaf->own_context);
		hyb_leaf_close(leaf);
		leaf->context = AllocSetContextCreate(CurrentMemoryContext, "hybrid leaf",
											  ALLOCSET_SMALL_SIZES);
		leaf->own_context = true;
		assign_space(leaf, desc, MemoryContextAlloc(leaf->context, hyb_leaf_space(desc)));
	}
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
		!layout_is_possible(layouts[content[4] - 1], desc))
		hyb_corrupted(rel, blkno, psprintf("The leaf has layout %d, which is not known.",
										   content[4]));
	leaf->layout = layouts[content[4] - 1];

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
	Assert(leaf->layout->keeps_keys || leaf->prefixes != NULL);
	Assert(leaf->ncols_alloc >= leaf->desc->natts);
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
		for (int i = 0; i < leaf->desc->natts; i++)
			hyb_columnar_value(leaf, i, row, &leaf->scratch_vals[i]);
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

/* ---- searching ---- */

/*
 * First row above a position of raw bytes.  Such positions are separators,
 * mostly this leaf's own fences: the first and the last row are tried first.
 */
static int
raw_bound(HybLeaf *leaf, const HybPos *pos)
{
	uint8		space[HYB_MAX_ENTRY_SIZE];
	HybBuf		key;
	int			lo = 0;
	int			hi = leaf->nrows;

	hyb_buf_init(&key, space, sizeof(space), CurrentMemoryContext);
	for (int probe = 0; lo < hi; probe++)
	{
		int			row = probe == 0 ? 0 : probe == 1 ? hi - 1 : (lo + hi) / 2;

		key.len = 0;
		hyb_key_join(leaf->desc, hyb_leaf_row(leaf, row), leaf->desc->nkeys, &key);
		if (hyb_pos_compare_key(leaf->desc, key.data, key.len, &pos->tid, pos) < 0)
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
	hyb_columnar_search(leaf, vals, pos->ncols, rows);
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
	item = hyb_columnar_search_tid(leaf, hyb_leaf_row_start(leaf, rows.lo), end,
								   &pos->tid);
	Assert(item >= 0 && item <= end);
	*row = item == end ? rows.hi : hyb_leaf_row_of_item(leaf, item);
	return item;
}
