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
hyb_columnar_free(HybLeafBuilder *base)
{
	HybColumnarBuilder *b = hyb_columnar_builder(base);

	for (int i = 0; i < b->base.desc->natts; i++)
	{
		HybBuildColumn *col = &b->cols[i];

		if (b->rows_alloc > 0 && col->is_int)
		{
			pfree(col->isnull);
			pfree(col->ints);
		}
		else if (b->rows_alloc > 0)
		{
			pfree(col->off);
			pfree(col->len);
			pfree(col->lcp);
			pfree(col->code.rest);
		}
		hyb_buf_free(&col->arena);
		if (col->lz == NULL)
			continue;
		if (col->lz->ends != NULL)
		{
			pfree(col->lz->ends);
			pfree(col->sym->ends);
		}
		if (col->lz->data != NULL)
		{
			pfree(col->lz->data);
			pfree(col->sym->data);
		}
		pfree(col->lz);
		pfree(col->sym);
	}
	if (b->tids != NULL)
		pfree(b->tids);
	if (b->row_start != NULL)
		pfree(b->row_start);
	pfree(b->cols);
	pfree(b->plans[0].cols);
	pfree(b->plans[1].cols);
	pfree(b->values);
	pfree(b->values2);
	pfree(b);
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
		{
			col->off = hyb_grow(context, col->off, n, sizeof(uint32));
			col->len = hyb_grow(context, col->len, n, sizeof(uint32));
			col->lcp = hyb_grow(context, col->lcp, n, sizeof(uint32));
			col->code.rest = hyb_grow(context, col->code.rest, n, sizeof(uint32));
		}
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
			uint8		flag = col->arena.data[col->off[row]];

			vals[i].ival = flag == HYB_FLAG_PACKED;
			vals[i].isnull = flag != HYB_FLAG_VALUE && !vals[i].ival;
			vals[i].ptr = col->arena.data + col->off[row] + 1;
			vals[i].len = col->len[row] - 1;
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
			uint32		first = col->off[row];

			for (int r = 0; r < nrows; r++)
				col->off[r] = col->off[r + row] - first;
			memmove(col->len, col->len + row, sizeof(uint32) * nrows);
			memmove(col->lcp, col->lcp + row, sizeof(uint32) * nrows);
			memmove(col->arena.data, col->arena.data + first,
					col->arena.len - first);
			col->arena.len -= first;
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

/* The end of a column's arena, with room for this many bytes. */
static inline uint8 *
arena_room(HybColumnarBuilder *b, HybBuildColumn *col, uint32 len)
{
	if (unlikely(col->arena.cap - col->arena.len < len))
	{
		MemoryContext old = MemoryContextSwitchTo(b->base.context);

		hyb_buf_reserve(&col->arena, len);
		MemoryContextSwitchTo(old);
	}
	return col->arena.data + col->arena.len;
}

/*
 * Append a string to the arena, not yet to the rows, and set col->new_lcp.
 * Returns whether it equals the last row's.
 */
static inline bool
append_string(HybColumnarBuilder *b, HybBuildColumn *col, const HybColumn *att,
			  const HybValue *val)
{
	uint32		len = val->isnull ? 1 : val->len + 1;
	uint32		last = b->nrows - 1;
	uint8	   *s = arena_room(b, col, len);

	s[0] = hyb_value_flag(att, val);
	if (len > 1)
		memcpy(s + 1, val->ptr, val->len);
	col->new_lcp = 0;
	if (b->nrows == 0)
		return false;
	col->new_lcp = hyb_common_prefix(s, col->arena.data + col->off[last],
									 Min(len, col->len[last]));
	return col->new_lcp == len && len == col->len[last];
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
			same &= append_string(b, col, &desc->cols[i], &vals[i]);
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
			{
				col->off[row] = col->arena.len;
				col->len[row] = vals[i].isnull ? 1 : vals[i].len + 1;
				col->lcp[row] = col->new_lcp;
				col->arena.len += col->len[row];
			}
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
	const HybLeafColumn *from = &hyb_columnar(leaf)->cols[i];

	if (col->sym != NULL && b->prepared == 0)
		adopt_payload(leaf, col, from);
	for (int r = 0; r < n; r++)
	{
		int			at = b->nrows + r;
		HybValue	val;
		uint32		len;
		uint8	   *s;

		hyb_columnar_value(leaf, i, row + r, &val);
		len = val.isnull ? 1 : val.len + 1;
		s = arena_room(b, col, len);
		s[0] = hyb_value_flag(&b->base.desc->cols[i], &val);
		if (len > 1)
			memcpy(s + 1, val.ptr, len - 1);
		col->off[at] = col->arena.len;
		col->len[at] = len;
		col->lcp[at] = at == 0 ? 0 :
			hyb_common_prefix(s, col->arena.data + col->off[at - 1],
							  Min(len, col->len[at - 1]));
		col->arena.len += len;
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
	hyb_seq_decode(&hyb_columnar(leaf)->row_starts, row, n, b->values);
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
	for (int i = 0; i < base->desc->natts && nrows > 0; i++)
	{
		HybBuildColumn *col = &b->cols[i];
		const HybLeafColumn *from = &hyb_columnar(leaf)->cols[i];

		if (!col->is_int)
			add_leaf_strings(b, leaf, i, row, nrows);
		else
		{
			hyb_columnar_ints(leaf, i, row, nrows, col->ints + b->nrows,
							  col->isnull + b->nrows);
			if (from->encoding == HYB_LEAF_NULLS ||
				from->null_mode != HYB_NULLS_NONE)
				for (int r = 0; r < nrows; r++)
					col->nnulls += col->isnull[b->nrows + r];
		}
	}
	hyb_columnar_tid_words(leaf, item, n, b->tids + base->nitems);
	b->nrows += nrows;
	return nrows;
}
