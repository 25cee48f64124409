/*
 * leaf.c
 *		Opening a static leaf and reading its rows.
 */
#include "compat.h"

#include "static/leaf_format.h"
#include "utils/memutils.h"

/* Holds any string of an entry, flag byte included. */
#define STRING_BUFFER	(HYB_MAX_ENTRY_SIZE + 16)

static void
leaf_alloc(HybLeaf *leaf, const HybKeyDesc *desc)
{
	Assert(!leaf->spare_strings);
	if (leaf->cols != NULL)
		hyb_leaf_close(leaf);
	leaf->context = CurrentMemoryContext;
	leaf->cols = palloc0(sizeof(HybLeafColumn) * desc->natts);
	leaf->scratch_vals = palloc0(sizeof(HybValue) * desc->natts);
	leaf->ncols_alloc = desc->natts;
}

void
hyb_leaf_init(HybLeaf *leaf, const HybKeyDesc *desc, void *space,
			  MemoryContext context)
{
	memset(leaf, 0, sizeof(HybLeaf));
	memset(space, 0, hyb_leaf_space(desc->natts));
	leaf->context = context;
	leaf->cols = space;
	leaf->scratch_vals = (HybValue *) (leaf->cols + desc->natts);
	leaf->ncols_alloc = desc->natts;
	leaf->spare_strings = true;
}

/*
 * Buffers of a string column that nobody uses.  They are large, and a scan of
 * one key would otherwise allocate and free them for each statement.
 */
typedef struct SpareStrings
{
	struct SpareStrings *next;
	MemoryContextCallback callback;
	uint8		buf[STRING_BUFFER];
	uint16		table[HYB_HUFF_TABLE];
} SpareStrings;

#define MAX_SPARE_STRINGS	8

static SpareStrings *spare_strings = NULL;
static int	nspare_strings = 0;

/* The context of a leaf that used them goes. */
static void
give_back_strings(void *arg)
{
	SpareStrings *strings = arg;

	if (nspare_strings >= MAX_SPARE_STRINGS)
	{
		pfree(strings);
		return;
	}
	strings->next = spare_strings;
	spare_strings = strings;
	nspare_strings++;
}

static void
take_strings(const HybLeaf *leaf, HybLeafColumn *col)
{
	SpareStrings *strings = spare_strings;

	if (strings != NULL)
	{
		spare_strings = strings->next;
		nspare_strings--;
	}
	else
		strings = MemoryContextAlloc(TopMemoryContext, sizeof(SpareStrings));
	strings->callback.func = give_back_strings;
	strings->callback.arg = strings;
	MemoryContextRegisterResetCallback(leaf->context, &strings->callback);
	col->cursor.buf = strings->buf;
	col->cursor.cap = STRING_BUFFER;
	col->cursor.table = strings->table;
}

/* Buffers of a string column; they are kept for the next page. */
static inline void
need_buffer(const HybLeaf *leaf, HybLeafColumn *col, bool table)
{
	if (unlikely(col->cursor.buf == NULL))
	{
		if (leaf->spare_strings)
		{
			take_strings(leaf, col);
			return;
		}
		col->cursor.buf = MemoryContextAlloc(leaf->context, STRING_BUFFER);
		col->cursor.cap = STRING_BUFFER;
	}
	if (unlikely(table && col->cursor.table == NULL))
		col->cursor.table = MemoryContextAlloc(leaf->context,
											   sizeof(uint16) * HYB_HUFF_TABLE);
}

static const uint8 *
open_int(HybLeafColumn *col, int nrows, const uint8 *p, const uint8 *end)
{
	Size		extra = 0;

	switch (col->null_mode)
	{
		case HYB_NULLS_NONE:
			break;
		case HYB_NULLS_LOW:
			extra = 8;
			break;
		case HYB_NULLS_HIGH:
			extra = 16;
			break;
		case HYB_NULLS_BITMAP:
			extra = (nrows + 7) / 8;
			break;
		default:
			return NULL;
	}
	if (extra > 0)
	{
		if (end - p < extra)
			return NULL;
		if (col->null_mode == HYB_NULLS_BITMAP)
			col->nulls = p;
		else
		{
			col->min = hyb_load64le(p);
			col->null_code = extra == 16 ? hyb_load64le(p + 8) : 0;
		}
		p += extra;
	}
	return hyb_seq_open(&col->seq, nrows, p, end);
}

static const uint8 *
open_string(const HybLeaf *leaf, HybLeafColumn *col, const uint8 *p,
			const uint8 *end)
{
	int			nrows = leaf->nrows;

	p = hyb_varint_read(p, end, &col->prefix_len);
	if (p == NULL || end - p < col->prefix_len ||
		col->prefix_len > STRING_BUFFER)
		return NULL;
	col->prefix = p;
	p += col->prefix_len;

	if (col->encoding == HYB_LEAF_CONST)
		return p;

	if (col->encoding == HYB_LEAF_FRONT)
	{
		col->front.prefix = col->prefix;
		col->front.prefix_len = col->prefix_len;
		p = hyb_front_open(&col->front, nrows, p, end);
		if (p == NULL)
			return NULL;
		need_buffer(leaf, col, col->front.coded);
		hyb_front_cursor_reset(&col->front, &col->cursor);
		return p;
	}

	p = hyb_varint_read(p, end, &col->rest_len);
	if (p == NULL || col->rest_len == 0 ||
		col->rest_len > STRING_BUFFER - col->prefix_len)
		return NULL;
	p = hyb_seq_open(&col->seq, nrows, p, end);
	if (p == NULL)
		return NULL;
	col->tails = p;
	if (col->rest_len > HYB_LEAF_SPLIT_HEAD)
	{
		Size		len = (Size) nrows * (col->rest_len - HYB_LEAF_SPLIT_HEAD);

		if (end - p < len)
			return NULL;
		p += len;
	}
	need_buffer(leaf, col, false);
	memcpy(col->cursor.buf, col->prefix, col->prefix_len);
	return p;
}

void
hyb_leaf_open(HybLeaf *leaf, const HybKeyDesc *desc, const char *page,
			  Relation rel, BlockNumber blkno)
{
	const PageHeaderData *header = (const PageHeaderData *) page;
	const HybPageOpaque *opaque;
	const uint8 *p;
	const uint8 *end;
	int			flags;

	leaf->rel = rel;
	leaf->blkno = blkno;
	if (header->pd_special != BLCKSZ - MAXALIGN(sizeof(HybPageOpaque)) ||
		header->pd_lower > header->pd_special ||
		header->pd_lower < MAXALIGN(SizeOfPageHeaderData) + HYB_LEAF_HEADER)
		hyb_corrupted(rel, blkno, "The bounds of the leaf's content are wrong.");
	opaque = (const HybPageOpaque *) (page + header->pd_special);
	p = (const uint8 *) page + MAXALIGN(SizeOfPageHeaderData);
	end = (const uint8 *) page + header->pd_lower;

	if (leaf->ncols_alloc != desc->natts)
		leaf_alloc(leaf, desc);
	leaf->desc = desc;
	leaf->page = page;
	leaf->scratch_row = -1;
	leaf->nrows = hyb_load16(p);
	leaf->nitems = hyb_load16(p + 2);
	flags = p[5];
	leaf->unique_rows = (flags & HYB_LEAF_UNIQUE_ROWS) != 0;
	if (leaf->nrows < 1 || leaf->nrows > leaf->nitems ||
		leaf->nitems > HYB_LEAF_MAX_ITEMS ||
		leaf->nitems != opaque->count ||
		(leaf->unique_rows && leaf->nrows != leaf->nitems) ||
		p[4] != desc->natts || (flags & ~HYB_LEAF_FLAGS) != 0)
		hyb_corrupted(rel, blkno, "The leaf's header is wrong.");

	leaf->tombstones = NULL;
	if (opaque->flags & HYB_LEAF_TOMBSTONES)
	{
		int			bytes = hyb_leaf_hint_bytes(leaf->nitems);

		if (end - p < HYB_LEAF_HEADER + bytes)
			hyb_corrupted(rel, blkno, "The leaf's tombstone bitmap does not fit its content.");
		end -= bytes;
		leaf->tombstones = end;
	}

	p += HYB_LEAF_HEADER;
	for (int i = 0; i < desc->natts; i++)
	{
		HybLeafColumn *col = &leaf->cols[i];
		bool		is_int = desc->cols[i].store == HYB_STORE_INT;

		if (p >= end)
			hyb_corrupted(rel, blkno, "A leaf column lies outside of the content.");
		col->encoding = *p & 0x0F;
		col->null_mode = *p >> 4;
		col->nulls = NULL;
		col->seq_cursor.next = 0;
		p++;
		if (is_int && col->encoding == HYB_LEAF_INT)
			p = open_int(col, leaf->nrows, p, end);
		else if (is_int ? col->encoding != HYB_LEAF_NULLS :
				 (col->encoding < HYB_LEAF_CONST ||
				  col->encoding > HYB_LEAF_SPLIT))
			p = NULL;
		else if (!is_int)
			p = open_string(leaf, col, p, end);
		if (p == NULL)
			hyb_corrupted(rel, blkno, "A leaf column is malformed or too long.");
	}

	if (!leaf->unique_rows)
	{
		p = hyb_seq_open(&leaf->row_starts, leaf->nrows, p, end);
		if (p == NULL)
			hyb_corrupted(rel, blkno, "The leaf's row starts are malformed.");
	}
	p = hyb_leaf_open_tids(leaf, flags, p, end);
	if (p == NULL)
		hyb_corrupted(rel, blkno, "The leaf's TIDs are malformed.");
	leaf->content_len = p - ((const uint8 *) page + MAXALIGN(SizeOfPageHeaderData));
}

void
hyb_leaf_close(HybLeaf *leaf)
{
	for (int i = 0; i < leaf->ncols_alloc; i++)
	{
		if (leaf->cols[i].cursor.buf != NULL)
			pfree(leaf->cols[i].cursor.buf);
		if (leaf->cols[i].cursor.table != NULL)
			pfree(leaf->cols[i].cursor.table);
	}
	if (leaf->cols != NULL)
	{
		pfree(leaf->cols);
		pfree(leaf->scratch_vals);
	}
	leaf->cols = NULL;
	leaf->scratch_vals = NULL;
	leaf->ncols_alloc = 0;
}

/* ---- values ---- */

static inline void
int_value(HybLeafColumn *col, int row, HybValue *val)
{
	uint64		code;

	val->isnull = true;
	val->ival = 0;
	if (col->encoding == HYB_LEAF_NULLS)
		return;
	if (col->null_mode == HYB_NULLS_BITMAP &&
		(col->nulls[row >> 3] & (1 << (row & 7))) != 0)
		return;

	code = hyb_seq_get_next(&col->seq, &col->seq_cursor, row);
	if (col->null_mode == HYB_NULLS_LOW || col->null_mode == HYB_NULLS_HIGH)
	{
		if (code == col->null_code)
			return;
		code += col->min - (col->null_mode == HYB_NULLS_LOW);
	}
	val->isnull = false;
	val->ival = code;
}

void
hyb_leaf_ints(HybLeaf *leaf, int i, int row, int n, uint64 *ints,
			  uint8 *isnull)
{
	HybLeafColumn *col = &leaf->cols[i];
	uint64		base;

	if (col->encoding == HYB_LEAF_NULLS)
	{
		memset(ints, 0, n * sizeof(uint64));
		memset(isnull, 1, n);
		return;
	}
	hyb_seq_decode(&col->seq, row, n, ints);
	memset(isnull, 0, n);
	if (col->null_mode == HYB_NULLS_NONE)
		return;

	base = col->min - (col->null_mode == HYB_NULLS_LOW);
	for (int r = 0; r < n; r++)
	{
		if (col->null_mode == HYB_NULLS_BITMAP ?
			(col->nulls[(row + r) >> 3] & (1 << ((row + r) & 7))) != 0 :
			ints[r] == col->null_code)
		{
			isnull[r] = 1;
			ints[r] = 0;
		}
		else if (col->null_mode != HYB_NULLS_BITMAP)
			ints[r] += base;
	}
}

/* The string of a row, flag byte first. */
static const uint8 *
string_bytes(HybLeaf *leaf, HybLeafColumn *col, int row, uint32 *len)
{
	uint8	   *rest;
	uint32		head;
	uint64		v;

	switch (col->encoding)
	{
		case HYB_LEAF_CONST:
			*len = col->prefix_len;
			return col->prefix;

		case HYB_LEAF_FRONT:
			if (!hyb_front_read(&col->front, &col->cursor, row))
				hyb_corrupted(leaf->rel, leaf->blkno,
							  "A front-coded string of the leaf is malformed.");
			*len = col->cursor.len;
			return col->cursor.buf;

		default:
			head = Min(col->rest_len, HYB_LEAF_SPLIT_HEAD);
			rest = col->cursor.buf + col->prefix_len;
			v = hyb_seq_get_next(&col->seq, &col->seq_cursor, row);
			for (int i = head; i-- > 0; v >>= 8)
				rest[i] = (uint8) v;
			memcpy(rest + head,
				   col->tails + (Size) row * (col->rest_len - head),
				   col->rest_len - head);
			*len = col->prefix_len + col->rest_len;
			return col->cursor.buf;
	}
}

void
hyb_leaf_value(HybLeaf *leaf, int i, int row, HybValue *val)
{
	const HybColumn *att = &leaf->desc->cols[i];
	const uint8 *s;
	uint32		len;

	if (att->store == HYB_STORE_INT)
	{
		int_value(&leaf->cols[i], row, val);
		val->ptr = NULL;
		val->len = 0;
		return;
	}

	s = string_bytes(leaf, &leaf->cols[i], row, &len);
	val->ival = 0;
	if (len > 0 && s[0] == HYB_FLAG_VALUE &&
		(att->width == 0 || len == 1 + (uint32) att->width))
	{
		val->isnull = false;
		val->ptr = s + 1;
		val->len = len - 1;
	}
	else if (len == 1 && s[0] == (att->nulls_first ? HYB_FLAG_NULL_FIRST :
								  HYB_FLAG_NULL_LAST))
	{
		val->isnull = true;
		val->ptr = NULL;
		val->len = 0;
	}
	else
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A string of the leaf has a wrong length or flag.");
}

const HybValue *
hyb_leaf_row(HybLeaf *leaf, int row)
{
	Assert(row >= 0 && row < leaf->nrows);
	if (leaf->scratch_row != row)
	{
		leaf->scratch_row = -1;
		for (int i = 0; i < leaf->desc->natts; i++)
			hyb_leaf_value(leaf, i, row, &leaf->scratch_vals[i]);
		leaf->scratch_row = row;
	}
	return leaf->scratch_vals;
}

/* ---- rows and items ---- */

int
hyb_leaf_row_start(const HybLeaf *leaf, int row)
{
	uint64		start;

	if (leaf->unique_rows)
		return row;
	if (row >= leaf->nrows)
		return leaf->nitems;
	start = hyb_seq_get(&leaf->row_starts, row);
	if (unlikely(start >= leaf->nitems))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A row of the leaf starts after the last item.");
	return (int) start;
}

int
hyb_leaf_row_of_item(const HybLeaf *leaf, int item)
{
	uint32		row;

	if (leaf->unique_rows)
		return item;
	if (item >= leaf->nitems)
		return leaf->nrows;
	row = hyb_seq_lower_bound(&leaf->row_starts, 0, leaf->nrows,
							  (uint64) item + 1);
	return row > 0 ? (int) row - 1 : 0;
}
