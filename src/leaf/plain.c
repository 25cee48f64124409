/*
 * plain.c
 *		A layout for tests: rows one after the other, as they are.
 *
 * Behind the common header (leaf/leaf_layout.h), nothing aligned, integers
 * little-endian:
 *
 *		row starts, uint16 each: the first item of each row
 *		row ends, uint16 each: where the bytes of each row end, counted from
 *				the first row's first byte
 *		TIDs, as ItemPointerData
 *		rows, encoded as key/key.h describes
 *
 * It keeps nothing of an opened leaf but where these parts begin.
 */
#include "base/compat.h"

#include "leaf/leaf_layout.h"

#ifdef HYB_TEST_LAYOUT

#include "algo/bits.h"
#include "base/memory.h"

/* ---- reading ---- */

typedef struct PlainLeaf
{
	const uint8 *row_starts;
	const uint8 *row_ends;
	const uint8 *tids;
	const uint8 *bytes;
} PlainLeaf;

static inline PlainLeaf *
plain_leaf(const HybLeaf *leaf)
{
	return leaf->own[HYB_LAYOUT_PLAIN - 1];
}

static inline int
row_start(const HybLeaf *leaf, int row)
{
	return hyb_load16(plain_leaf(leaf)->row_starts + 2 * row);
}

static void
row_starts(const HybLeaf *leaf, int row, int n, int *starts)
{
	for (int i = 0; i < n; i++)
		starts[i] = row_start(leaf, row + i);
}

/* The end of a row's bytes; row -1 ends where the first row begins. */
static inline int
plain_row_end(const HybLeaf *leaf, int row)
{
	return row < 0 ? 0 : hyb_load16(plain_leaf(leaf)->row_ends + 2 * row);
}

static const uint8 *
open_plain(HybLeaf *leaf, const uint8 *p, const uint8 *end)
{
	PlainLeaf  *own = plain_leaf(leaf);

	if (end - p < 4 * leaf->nrows + (int) sizeof(ItemPointerData) * leaf->nitems)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A leaf column lies outside of the content.");
	own->row_starts = p;
	own->row_ends = p + 2 * leaf->nrows;
	own->tids = p + 4 * leaf->nrows;
	own->bytes = own->tids + sizeof(ItemPointerData) * leaf->nitems;
	for (int row = 0; row < leaf->nrows; row++)
	{
		if (row == 0 ? row_start(leaf, row) != 0 :
			row_start(leaf, row) <= row_start(leaf, row - 1) ||
			row_start(leaf, row) >= leaf->nitems)
			hyb_corrupted(leaf->rel, leaf->blkno,
						  "The leaf's row starts are malformed.");
		if (plain_row_end(leaf, row) < plain_row_end(leaf, row - 1) ||
			plain_row_end(leaf, row) > end - own->bytes)
			hyb_corrupted(leaf->rel, leaf->blkno,
						  "A leaf column is malformed or too long.");
	}
	return own->bytes + plain_row_end(leaf, leaf->nrows - 1);
}

static void
plain_row(HybLeaf *leaf, int row, HybValue *vals)
{
	uint32		start = (uint32) plain_row_end(leaf, row - 1);
	uint32		len = (uint32) plain_row_end(leaf, row) - start;

	Assert(row >= 0 && row < leaf->nrows);
	if (len == 0 ||
		hyb_key_split(leaf->desc, plain_leaf(leaf)->bytes + start, len,
					  leaf->desc->natts, vals) != len)
		hyb_corrupted(leaf->rel, leaf->blkno, "A row of the leaf is malformed.");
}

/* The first row that is not below vals, or the first one above them. */
static int
plain_bound(HybLeaf *leaf, const HybValue *vals, int ncols, bool above)
{
	int			lo = 0;
	int			hi = leaf->nrows;

	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;
		HybValue	row[INDEX_MAX_KEYS];
		int			c = 0;

		plain_row(leaf, mid, row);
		for (int i = 0; i < ncols && c == 0; i++)
			c = hyb_value_compare(&leaf->desc->cols[i], &row[i], &vals[i]);
		if (c < 0 || (c == 0 && above))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void
plain_search(HybLeaf *leaf, const HybValue *vals, int ncols, HybRowRange *rows)
{
	rows->lo = plain_bound(leaf, vals, ncols, false);
	rows->hi = plain_bound(leaf, vals, ncols, true);
}

static void
plain_tids(const HybLeaf *leaf, int item, int n, ItemPointerData *tids)
{
	memcpy(tids, plain_leaf(leaf)->tids + item * sizeof(ItemPointerData),
		   n * sizeof(ItemPointerData));
}

static int
plain_search_tid(const HybLeaf *leaf, int lo, int hi,
				 const ItemPointerData *tid)
{
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;
		ItemPointerData at;

		plain_tids(leaf, mid, 1, &at);
		if (ItemPointerCompare(&at, unconstify(ItemPointerData *, tid)) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int
plain_row_of_item(const HybLeaf *leaf, int item)
{
	int			lo = 0;
	int			hi = leaf->nrows;

	while (hi - lo > 1)
	{
		int			mid = (lo + hi) / 2;

		if (row_start(leaf, mid) <= item)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* ---- building ---- */

typedef struct PlainRow
{
	int			start;			/* first item */
	uint32		end;			/* of its bytes */
} PlainRow;

typedef struct PlainBuilder
{
	HybLeafBuilder base;
	int			nrows;
	int			rows_alloc;
	int			items_alloc;
	PlainRow   *rows;
	ItemPointerData *tids;
	HybBuf		bytes;
} PlainBuilder;

static inline uint32
waiting_begin(const PlainBuilder *b, int row)
{
	return row == 0 ? 0 : b->rows[row - 1].end;
}

static HybLeafBuilder *
plain_create(const HybIndex *ix)
{
	PlainBuilder *b = palloc0(sizeof(PlainBuilder));

	hyb_buf_reserve(&b->bytes, BLCKSZ);
	return &b->base;
}

static void
plain_free(HybLeafBuilder *base)
{
	PlainBuilder *b = (PlainBuilder *) base;

	if (b->rows != NULL)
		pfree(b->rows);
	if (b->tids != NULL)
		pfree(b->tids);
	pfree(b->bytes.data);
	pfree(b);
}

static void
plain_add(HybLeafBuilder *base, const HybValue *vals,
		  const ItemPointerData *tid)
{
	PlainBuilder *b = (PlainBuilder *) base;
	uint32		start = b->bytes.len;
	uint32		len;
	uint32		last;

	if (base->nitems == b->items_alloc)
	{
		b->items_alloc = Max(b->items_alloc * 2, 1024);
		b->tids = hyb_grow(base->context, b->tids, b->items_alloc,
						   sizeof(ItemPointerData));
	}
	if (b->nrows == b->rows_alloc)
	{
		b->rows_alloc = Max(b->rows_alloc * 2, 1024);
		b->rows = hyb_grow(base->context, b->rows, b->rows_alloc,
						   sizeof(PlainRow));
	}
	b->tids[base->nitems] = *tid;
	hyb_key_join(base->desc, vals, base->desc->natts, &b->bytes);
	len = b->bytes.len - start;
	if (b->nrows > 0)
	{
		last = waiting_begin(b, b->nrows - 1);
		if (start - last == len &&
			memcmp(b->bytes.data + last, b->bytes.data + start, len) == 0)
		{
			b->bytes.len = start;
			return;
		}
	}
	b->rows[b->nrows].start = base->nitems;
	b->rows[b->nrows++].end = b->bytes.len;
}

/* The last row that begins at or before an item. */
static int
waiting_plain_row(const PlainBuilder *b, int item)
{
	int			row = b->nrows - 1;

	Assert(item >= 0 && b->nrows > 0 && b->rows[0].start == 0);
	while (b->rows[row].start > item)
		row--;
	return row;
}

static void
plain_plan(HybLeafBuilder *base, int slot)
{
	const PlainBuilder *b = (PlainBuilder *) base;
	HybLeafPlan *plan = &base->plans[slot];

	plan->nrows = waiting_plain_row(b, plan->nitems - 1) + 1;
	plan->size = 4 * plan->nrows + sizeof(ItemPointerData) * plan->nitems +
		b->rows[plan->nrows - 1].end;
}

static uint8 *
plain_write(HybLeafBuilder *base, int slot, uint8 *out)
{
	const PlainBuilder *b = (PlainBuilder *) base;
	const HybLeafPlan *plan = &base->plans[slot];
	uint32		len = b->rows[plan->nrows - 1].end;

	for (int row = 0; row < plan->nrows; row++)
	{
		hyb_store16(out + 2 * row, b->rows[row].start);
		hyb_store16(out + 2 * (plan->nrows + row), b->rows[row].end);
	}
	out += 4 * plan->nrows;
	memcpy(out, b->tids, sizeof(ItemPointerData) * plan->nitems);
	out += sizeof(ItemPointerData) * plan->nitems;
	memcpy(out, b->bytes.data, len);
	return out + len;
}

static void
plain_waiting(const HybLeafBuilder *base, int item, HybBuf *key,
			  ItemPointer tid)
{
	const PlainBuilder *b = (const PlainBuilder *) base;
	int			row = waiting_plain_row(b, item);
	const uint8 *bytes = b->bytes.data + waiting_begin(b, row);

	hyb_buf_append(key, bytes,
				   hyb_key_length(base->desc, bytes,
								  b->rows[row].end - waiting_begin(b, row)));
	*tid = b->tids[item];
}

static void
plain_drop(HybLeafBuilder *base, int nitems)
{
	PlainBuilder *b = (PlainBuilder *) base;
	int			row = waiting_plain_row(b, nitems);
	uint32		begin = waiting_begin(b, row);

	b->nrows -= row;
	b->bytes.len -= begin;
	memmove(b->bytes.data, b->bytes.data + begin, b->bytes.len);
	for (int r = 0; r < b->nrows; r++)
	{
		b->rows[r].start = Max(b->rows[r + row].start - nitems, 0);
		b->rows[r].end = b->rows[r + row].end - begin;
	}
	memmove(b->tids, b->tids + nitems,
			sizeof(ItemPointerData) * (base->nitems - nitems));
}

const HybLeafLayout hyb_plain_layout = {
	.number = HYB_LAYOUT_PLAIN,
	.keeps_keys = true,
	.size = sizeof(PlainLeaf),
	.open = open_plain,
	.search = plain_search,
	.search_tid = plain_search_tid,
	.row = plain_row,
	.row_start = row_start,
	.row_starts = row_starts,
	.row_of_item = plain_row_of_item,
	.tids = plain_tids,
	.create = plain_create,
	.free = plain_free,
	.add = plain_add,
	.plan = plain_plan,
	.write = plain_write,
	.waiting = plain_waiting,
	.drop = plain_drop
};

#endif							/* HYB_TEST_LAYOUT */
