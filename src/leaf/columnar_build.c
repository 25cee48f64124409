/*
 * columnar_build.c
 *		Entries that wait for a columnar leaf, column by column.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "key/key.h"
#include "leaf/columnar.h"
#include "utils/memutils.h"

HybLeafBuilder *
hyb_columnar_create(const HybIndex *ix)
{
	const HybKeyDesc *desc = ix->desc;
	HybColumnarBuilder *b = palloc0(sizeof(HybColumnarBuilder));
	int			natts = desc->natts;

	b->cols = palloc0(sizeof(HybBuildColumn) * natts);
	for (int i = 0; i < natts; i++)
	{
		b->cols[i].is_int = desc->cols[i].store == HYB_STORE_INT;
		if (!b->cols[i].is_int)
			hyb_buf_reserve(&b->cols[i].strings.bytes, BLCKSZ);
		if (i >= desc->nkeys && desc->cols[i].store != HYB_STORE_INT &&
			desc->cols[i].width == 0 &&
			hyb_compression(ix->rel) == HYB_COMPRESSION_LZ4)
		{
			b->cols[i].lz = palloc0(sizeof(HybLzWork));
			b->cols[i].sym = palloc0(sizeof(HybSymWork));
		}
	}
	b->plans[0].cols = palloc0(sizeof(HybPlanColumn) * natts);
	b->plans[1].cols = palloc0(sizeof(HybPlanColumn) * natts);
	b->values = palloc(sizeof(uint64) * HYB_LEAF_MAX_ITEMS);
	b->values2 = palloc(sizeof(uint64) * HYB_LEAF_MAX_ITEMS);
	return &b->base;
}

void
hyb_waiting_strings_grow(MemoryContext context, HybWaitingStrings *s, int n)
{
	s->off = hyb_grow(context, s->off, n, sizeof(uint32));
	s->len = hyb_grow(context, s->len, n, sizeof(uint32));
	s->lcp = hyb_grow(context, s->lcp, n, sizeof(uint32));
	s->code.rest = hyb_grow(context, s->code.rest, n, sizeof(uint32));
}

static pg_noinline void
grow_column_rows(HybColumnarBuilder *b)
{
	int			n = Max(b->rows_alloc * 2, 512);
	MemoryContext context = b->base.context;

	b->row_start = hyb_grow(context, b->row_start, n, sizeof(uint32));
	for (int i = 0; i < b->base.desc->natts; i++)
	{
		HybBuildColumn *col = &b->cols[i];

		if (col->is_int)
		{
			col->isnull = hyb_grow(context, col->isnull, n, 1);
			col->ints = hyb_grow(context, col->ints, n, sizeof(uint64));
		}
		else
			hyb_waiting_strings_grow(context, &col->strings, n);
	}
	b->rows_alloc = n;
}

static pg_noinline void
grow_column_items(HybColumnarBuilder *b)
{
	b->items_alloc = Max(b->items_alloc * 2, 1024);
	b->tids = hyb_grow(b->base.context, b->tids, b->items_alloc, sizeof(uint64));
}

void
hyb_columnar_room(HybColumnarBuilder *b, int nrows, int nitems)
{
	while (b->rows_alloc < nrows)
		grow_column_rows(b);
	while (b->items_alloc < nitems)
		grow_column_items(b);
}

/* ---- what waits ---- */

/* Columns of a waiting row. */
static void
waiting_row(const HybColumnarBuilder *b, int row, HybValue *vals)
{
	for (int i = 0; i < b->base.desc->nkeys; i++)
	{
		const HybBuildColumn *col = &b->cols[i];

		vals[i].ival = 0;
		vals[i].ptr = NULL;
		vals[i].len = 0;
		if (col->is_int)
		{
			vals[i].isnull = col->isnull[row] != 0;
			vals[i].ival = col->ints[row];
		}
		else
		{
			const uint8 *s = col->strings.bytes.data + col->strings.off[row];
			uint8		flag = *s;

			vals[i].ival = flag == HYB_FLAG_PACKED;
			vals[i].isnull = flag != HYB_FLAG_VALUE && !vals[i].ival;
			vals[i].ptr = s + 1;
			vals[i].len = col->strings.len[row] - 1;
		}
	}
}

int
hyb_columnar_waiting_row(const HybColumnarBuilder *b, int item)
{
	int			row = 0;
	int			end = b->nrows;

	while (end - row > 1)
	{
		int			mid = (row + end) / 2;

		if (b->row_start[mid] <= item)
			row = mid;
		else
			end = mid;
	}
	return row;
}

void
hyb_columnar_waiting(const HybLeafBuilder *base, int item, HybBuf *key,
					 ItemPointer tid)
{
	const HybColumnarBuilder *b = (const HybColumnarBuilder *) base;
	HybValue	vals[INDEX_MAX_KEYS];

	waiting_row(b, hyb_columnar_waiting_row(b, item), vals);
	hyb_key_join(base->desc, vals, base->desc->nkeys, key);
	ItemPointerSet(tid, (BlockNumber) (b->tids[item] >> 16),
				   (OffsetNumber) (b->tids[item] & 0xFFFF));
}

void
hyb_columnar_drop(HybLeafBuilder *base, int nitems)
{
	HybColumnarBuilder *b = hyb_columnar_builder(base);
	int			row = hyb_columnar_waiting_row(b, nitems);
	int			nrows = b->nrows - row;

	for (int i = 0; i < b->base.desc->natts; i++)
	{
		HybBuildColumn *col = &b->cols[i];

		if (col->is_int)
		{
			if (col->nnulls > 0)
			{
				for (int r = 0; r < row; r++)
					col->nnulls -= col->isnull[r] != 0;
			}
			memmove(col->isnull, col->isnull + row, nrows);
			memmove(col->ints, col->ints + row, sizeof(uint64) * nrows);
		}
		else
		{
			HybWaitingStrings *s = &col->strings;
			uint32		first = s->off[row];

			for (int r = 0; r < nrows; r++)
				s->off[r] = s->off[r + row] - first;
			memmove(s->len, s->len + row, sizeof(uint32) * nrows);
			memmove(s->lcp, s->lcp + row, sizeof(uint32) * nrows);
			s->bytes.len -= first;
			memmove(s->bytes.data, s->bytes.data + first, s->bytes.len);
		}
	}
	b->row_start[0] = 0;
	for (int r = 1; r < nrows; r++)
		b->row_start[r] = b->row_start[r + row] - nitems;
	memmove(b->tids, b->tids + nitems, sizeof(uint64) * (base->nitems - nitems));
	b->nrows = nrows;
	b->prepared = 0;
}

/* ---- adding ---- */

/*
 * Append a string behind those of a column's rows, not yet as one of them.  Sets
 * col->new_lcp, in common with row `last` if that is not -1, and returns the length.
 */
static inline uint32
append_string(HybBuildColumn *col, const HybColumn *att, const HybValue *val, int last)
{
	HybBuf	   *bytes = &col->strings.bytes;
	uint32		len = val->isnull ? 1 : val->len + 1;
	uint8	   *s;

	hyb_buf_reserve(bytes, len);
	s = bytes->data + bytes->len;
	s[0] = hyb_value_flag(att, val);
	if (len > 1)
		memcpy(s + 1, val->ptr, val->len);
	col->new_lcp = last < 0 ? 0 :
		hyb_common_prefix(s, bytes->data + col->strings.off[last],
						  Min(len, col->strings.len[last]));
	return len;
}

/* The string that was appended last is that of a row. */
static inline void
take_string(HybBuildColumn *col, int row, uint32 len)
{
	col->strings.off[row] = col->strings.bytes.len;
	col->strings.len[row] = len;
	col->strings.lcp[row] = col->new_lcp;
	col->strings.bytes.len += len;
}

void
hyb_columnar_add(HybLeafBuilder *base, const HybValue *vals,
				 const ItemPointerData *tid)
{
	HybColumnarBuilder *b = hyb_columnar_builder(base);
	const HybKeyDesc *desc = base->desc;
	bool		same = b->nrows > 0;

	if (unlikely(base->nitems == b->items_alloc))
		grow_column_items(b);

	for (int i = 0; i < desc->natts; i++)
	{
		HybBuildColumn *col = &b->cols[i];

		if (!col->is_int)
		{
			uint32		len = append_string(col, &desc->cols[i], &vals[i], b->nrows - 1);

			same = same && len == col->new_lcp && len == col->strings.len[b->nrows - 1];
		}
		else if (same)
			same = (col->isnull[b->nrows - 1] != 0) == vals[i].isnull &&
				(vals[i].isnull || col->ints[b->nrows - 1] == vals[i].ival);
	}

	if (!same)
	{
		int			row = b->nrows;

		if (unlikely(row == b->rows_alloc))
			grow_column_rows(b);
		for (int i = 0; i < desc->natts; i++)
		{
			HybBuildColumn *col = &b->cols[i];

			if (col->is_int)
			{
				col->isnull[row] = vals[i].isnull;
				col->ints[row] = vals[i].isnull ? 0 : vals[i].ival;
				col->nnulls += vals[i].isnull;
			}
			else
				take_string(col, row, vals[i].isnull ? 1 : vals[i].len + 1);
		}
		b->row_start[row] = base->nitems;
		b->nrows++;
	}
	b->tids[base->nitems] =
		((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

/*
 * Adopt what a leaf knows of its INCLUDE columns, as most rows go to the new leaf:
 * its symbols, and whether slow forms paid.  One leaf in HYB_SYM_KEEP learns anew,
 * so that changes of the data are noticed.
 */
static void
adopt_payload(const HybLeaf *leaf, HybBuildColumn *col,
			  const HybLeafColumn *from)
{
	bool		anew = leaf->blkno % HYB_SYM_KEEP == 0;

	if (from->encoding == HYB_LEAF_SYMBOLS)
		hyb_sym_adopt(col->sym, &from->sym, anew);
	if (anew || from->encoding == HYB_LEAF_LZ4 ||
		(from->encoding == HYB_LEAF_FRONT && from->front.coded))
		col->fast = 0;
	else
		col->fast = Max(col->fast, 1);
}

/* Append the strings of n rows of a leaf. */
static void
add_leaf_strings(HybColumnarBuilder *b, HybLeaf *leaf, int i, int row, int n)
{
	HybBuildColumn *col = &b->cols[i];
	const HybLeafColumn *from = &leaf->columnar->cols[i];

	if (col->sym != NULL && b->prepared == 0)
		adopt_payload(leaf, col, from);
	for (int r = 0; r < n; r++)
	{
		int			at = b->nrows + r;
		HybValue	val;

		hyb_columnar_value(leaf, i, row + r, &val);
		take_string(col, at, append_string(col, &b->base.desc->cols[i], &val, at - 1));
	}
}

/*
 * Append the first items of the rows, from `row` on, that begin within items
 * [from, to).  Returns how many there are.
 */
static int
rows_begun(HybColumnarBuilder *b, const HybLeaf *leaf, int row, int from, int to)
{
	int			n = Min(leaf->nrows - row, to - from);
	int			last = from - 1;

	if (leaf->unique_rows)
	{
		for (int r = 0; r < n; r++)
			b->row_start[b->nrows + r] = b->base.nitems + r;
		return n;
	}
	if (n <= 0)
		return 0;
	hyb_seq_decode(&leaf->columnar->row_starts, row, n, b->values);
	for (int r = 0; r < n; r++)
	{
		if (b->values[r] >= to)
			return r;
		if ((int) b->values[r] <= last)
			hyb_corrupted(leaf->rel, leaf->blkno,
						  "The rows of the leaf overlap.");
		last = (int) b->values[r];
		b->row_start[b->nrows + r] = b->base.nitems + (last - from);
	}
	return n;
}

int
hyb_columnar_add_items(HybLeafBuilder *base, HybLeaf *leaf, int row, int item,
					   int n)
{
	HybColumnarBuilder *b = hyb_columnar_builder(base);
	int			nrows;

	hyb_columnar_room(b, b->nrows + n, base->nitems + n);
	nrows = rows_begun(b, leaf, row, item, item + n);
	Assert(b->nrows > 0 || b->row_start[0] == 0);
	for (int i = 0; i < base->desc->natts && nrows > 0; i++)
	{
		HybBuildColumn *col = &b->cols[i];
		const HybLeafColumn *from = &leaf->columnar->cols[i];

		if (!col->is_int)
			add_leaf_strings(b, leaf, i, row, nrows);
		else
		{
			hyb_leaf_ints(leaf, i, row, nrows, col->ints + b->nrows,
						  col->isnull + b->nrows);
			if (from->encoding != HYB_LEAF_INT)
				for (int r = 0; r < nrows; r++)
					col->nnulls += col->isnull[b->nrows + r];
		}
	}
	hyb_columnar_tid_words(leaf, item, n, b->tids + base->nitems);
	b->nrows += nrows;
	return nrows;
}
