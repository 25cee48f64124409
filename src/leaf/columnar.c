/*
 * columnar.c
 *		Opening a columnar leaf and reading its rows and TIDs.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "key/key.h"
#include "leaf/columnar.h"
#include "utils/memutils.h"

/* Bytes that hold any string of an entry, flag byte included. */
#define STRING_BUFFER	(HYB_MAX_ENTRY_SIZE + 16)

/*
 * Buffers of a string column.  They are large, so a backend keeps spare ones: a
 * scan of one key would allocate and free them for each statement.
 */
typedef struct StringBuffers
{
	HybSpare	spare;
	uint8		buf[STRING_BUFFER + HYB_SYM_SLACK];
	HybHuffEntry table[HYB_HUFF_TABLE];
	HybSymDecoder decoder;
} StringBuffers;

static HybSpareList spare_strings = {pfree};

/* The same for a column of groups. */
typedef struct GroupBuffers
{
	HybSpare	spare;
	HybLzBuffers buffers;
} GroupBuffers;

static HybSpareList spare_groups = {pfree};

/* A spare object, or a new one, until the leaf's memory goes. */
static void *
take_buffers(const HybLeaf *leaf, HybSpareList *list, Size size)
{
	HybSpare   *spare = hyb_spare_take(list);

	if (spare == NULL)
		spare = MemoryContextAlloc(TopMemoryContext, size);
	hyb_spare_lend(list, spare, leaf->context);
	return spare;
}

void
hyb_leaf_need_strings(const HybLeaf *leaf, HybFrontCursor *cursor)
{
	StringBuffers *strings;

	if (likely(cursor->buf != NULL))
		return;
	strings = take_buffers(leaf, &spare_strings, sizeof(StringBuffers));
	cursor->buf = strings->buf;
	cursor->cap = STRING_BUFFER;
	cursor->table = strings->table;
}

/* Buffers for strings of symbols. */
static inline void
need_decoder(const HybLeaf *leaf, HybLeafColumn *col)
{
	hyb_leaf_need_strings(leaf, &col->cursor);
	col->sym_cursor.decoder = &((StringBuffers *)
								(col->cursor.buf - offsetof(StringBuffers, buf)))->decoder;
}

static const uint8 *
open_int(HybLeafColumn *col, int nrows, const uint8 *p, const uint8 *end)
{
	if (col->encoding == HYB_LEAF_NULLS)
		return p;
	if (col->encoding == HYB_LEAF_INT_NULLS)
	{
		col->nulls = p;
		if (end - p < (nrows + 7) / 8)
			return NULL;
		p += (nrows + 7) / 8;
	}
	return hyb_seq_open(&col->seq, nrows, p, end);
}

static const uint8 *
open_string(const HybLeaf *leaf, HybLeafColumn *col, const uint8 *p,
			const uint8 *end)
{
	int			nrows = leaf->nrows;

	if (col->encoding == HYB_LEAF_LZ4)
	{
		hyb_lz_cursor_reset(&col->lz_cursor);
		return hyb_lz_open(&col->lz, nrows, p, end);
	}
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
		hyb_leaf_need_strings(leaf, &col->cursor);
		hyb_front_cursor_reset(&col->front, &col->cursor);
		return p;
	}

	if (col->encoding == HYB_LEAF_SYMBOLS)
	{
		p = hyb_sym_open(&col->sym, nrows, p, end);
		if (p == NULL)
			return NULL;
		need_decoder(leaf, col);
		hyb_sym_cursor_reset(&col->sym_cursor);
		memcpy(col->cursor.buf, col->prefix, col->prefix_len);
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
	hyb_leaf_need_strings(leaf, &col->cursor);
	memcpy(col->cursor.buf, col->prefix, col->prefix_len);
	return p;
}

static const uint8 *
open_column(const HybLeaf *leaf, const HybKeyDesc *columns, int i, const uint8 *p,
			const uint8 *end)
{
	HybLeafColumn *col = &leaf->columnar->cols[i];
	bool		is_int = columns->cols[i].store == HYB_STORE_INT;

	if (p >= end)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A leaf column lies outside of the content.");
	col->encoding = *p++;
	col->nulls = NULL;
	col->seq_cursor.next = 0;
	if (is_int != (col->encoding <= HYB_LEAF_INT_NULLS) ||
		col->encoding > HYB_LEAF_SYMBOLS ||
		(col->encoding >= HYB_LEAF_LZ4 && i < columns->nkeys))
		p = NULL;
	else if (is_int)
		p = open_int(col, leaf->nrows, p, end);
	else
		p = open_string(leaf, col, p, end);
	if (p == NULL)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A leaf column is malformed or too long.");
	return p;
}

/* Open the TIDs at p; returns the byte after them, or NULL. */
static const uint8 *
open_tids(HybLeaf *leaf, int flags, const uint8 *p, const uint8 *end)
{
	HybColumnar *c = leaf->columnar;

	c->words = NULL;
	c->tid_ends = NULL;
	c->tid_origin = 0;
	c->tid_span = 0;
	if (end - p < 2)
		return NULL;
	c->tid_factor = hyb_load16(p);
	p += 2;
	if (c->tid_factor == 0)
		return NULL;
	if (flags & HYB_LEAF_TID_ROWS)
	{
		if (end - p < 16)
			return NULL;
		c->tid_origin = hyb_load64le(p);
		c->tid_span = hyb_load64le(p + 8);
		p += 16;
		if (c->tid_span == 0)
			return NULL;
	}
	if (flags & HYB_LEAF_TID_BLOCKS)
	{
		int			nblocks = (leaf->nitems - 1) / HYB_LEAF_TID_BLOCK + 1;
		uint32		len;

		if (end - p < 2 * nblocks)
			return NULL;
		len = hyb_load16(p + 2 * (nblocks - 1));
		c->tid_ends = p;
		c->tid_data = p + 2 * nblocks;
		if (end - c->tid_data < len)
			return NULL;
		return c->tid_data + len;
	}
	return hyb_seq_open(&c->tids, leaf->nitems, p, end);
}

const uint8 *
hyb_columnar_open(HybLeaf *leaf, const HybKeyDesc *columns, const uint8 *p,
				  const uint8 *end)
{
	int			flags;

	if (p == end || (*p & ~HYB_LEAF_FLAGS) != 0)
		hyb_corrupted(leaf->rel, leaf->blkno, "The leaf's header is wrong.");
	flags = *p++;
	leaf->columnar->finger.set = false;
	for (int i = 0; i < columns->natts; i++)
		p = open_column(leaf, columns, i, p, end);
	if (!leaf->unique_rows)
	{
		p = hyb_seq_open(&leaf->columnar->row_starts, leaf->nrows, p, end);
		if (p == NULL)
			hyb_corrupted(leaf->rel, leaf->blkno,
						  "The leaf's row starts are malformed.");
	}
	p = open_tids(leaf, flags, p, end);
	if (p == NULL)
		hyb_corrupted(leaf->rel, leaf->blkno, "The leaf's TIDs are malformed.");
	return p;
}

static const uint8 *
open_keys(HybLeaf *leaf, const uint8 *p, const uint8 *end)
{
	return hyb_columnar_open(leaf, leaf->desc, p, end);
}

/* ---- values ---- */

void
hyb_leaf_ints(HybLeaf *leaf, int i, int row, int n, uint64 *ints, uint8 *isnull)
{
	HybLeafColumn *col = &leaf->columnar->cols[i];

	Assert(row >= 0 && n >= 0 && row + n <= leaf->nrows);
	Assert(leaf->desc->cols[i].store == HYB_STORE_INT && leaf->layout->keeps_keys);
	memset(isnull, 0, n);
	if (col->encoding != HYB_LEAF_NULLS)
		hyb_seq_decode(&col->seq, row, n, ints);
	if (col->encoding == HYB_LEAF_INT)
		return;
	for (int r = 0; r < n; r++)
	{
		if (hyb_int_is_null(col, row + r))
		{
			isnull[r] = 1;
			ints[r] = 0;
		}
	}
}

/* The string of a row, flag byte first. */
static const uint8 *
string_bytes(HybLeaf *leaf, HybLeafColumn *col, int row, uint32 *len)
{
	const uint8 *string;
	uint8	   *rest;
	uint32		head;
	uint64		v;
	int			n;

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

		case HYB_LEAF_SYMBOLS:
			n = hyb_sym_read(&col->sym, &col->sym_cursor, row,
							 col->cursor.buf + col->prefix_len,
							 STRING_BUFFER - col->prefix_len);
			if (n < 0)
				hyb_corrupted(leaf->rel, leaf->blkno,
							  "A string of the leaf has symbols that are malformed.");
			*len = col->prefix_len + n;
			return col->cursor.buf;

		case HYB_LEAF_LZ4:
			if (col->lz_cursor.buffers == NULL)
				col->lz_cursor.buffers = &((GroupBuffers *)
										   take_buffers(leaf, &spare_groups, sizeof(GroupBuffers)))->buffers;
			string = hyb_lz_read(&col->lz, &col->lz_cursor, row, len);
			if (string == NULL)
				hyb_corrupted(leaf->rel, leaf->blkno,
							  "A compressed group of strings of the leaf is malformed.");
			return string;

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
hyb_columnar_value(HybLeaf *leaf, int i, int row, HybValue *val)
{
	const HybColumn *att = &leaf->desc->cols[i];
	HybLeafColumn *col = &leaf->columnar->cols[i];
	const uint8 *s;
	uint32		len;

	if (att->store == HYB_STORE_INT)
	{
		val->isnull = hyb_int_is_null(col, row);
		val->ival = val->isnull ? 0 : hyb_seq_get_next(&col->seq, &col->seq_cursor, row);
		val->ptr = NULL;
		val->len = 0;
		return;
	}

	s = string_bytes(leaf, col, row, &len);
	val->ival = len > 0 && s[0] == HYB_FLAG_PACKED;
	if (len > 0 && (s[0] == HYB_FLAG_VALUE ||
					(val->ival && hyb_has_length_word(att))) &&
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

/* ---- rows and items ---- */

int
hyb_leaf_row_start(const HybLeaf *leaf, int row)
{
	uint64		start;

	Assert(row >= 0 && row <= leaf->nrows);
	if (leaf->unique_rows)
		return row;
	if (row >= leaf->nrows)
		return leaf->nitems;
	start = hyb_seq_get(&leaf->columnar->row_starts, row);
	if (unlikely(start >= leaf->nitems))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A row of the leaf starts after the last item.");
	return (int) start;
}

int
hyb_leaf_row_of_item(const HybLeaf *leaf, int item)
{
	uint32		row;

	Assert(item >= 0 && item <= leaf->nitems);
	if (leaf->unique_rows)
		return item;
	if (item >= leaf->nitems)
		return leaf->nrows;
	row = hyb_seq_lower_bound(&leaf->columnar->row_starts, 0, leaf->nrows,
							  (uint64) item + 1);
	return row > 0 ? (int) row - 1 : 0;
}

/* ---- TIDs ---- */

/*
 * Open a block of TIDs.  open_tids has checked the end of the
 * last block only, so the others are held against it.
 */
static void
open_block(const HybLeaf *leaf, int block, HybSeq *seq)
{
	const HybColumnar *c = leaf->columnar;
	int			last = (leaf->nitems - 1) / HYB_LEAF_TID_BLOCK;
	uint32		limit = hyb_load16(c->tid_ends + 2 * last);
	uint32		start = 0;
	uint32		end = hyb_load16(c->tid_ends + 2 * block);
	int			n = HYB_LEAF_TID_BLOCK;

	if (block > 0)
		start = hyb_load16(c->tid_ends + 2 * (block - 1));
	if (block == last)
		n = leaf->nitems - last * HYB_LEAF_TID_BLOCK;
	if (start > end || end > limit ||
		hyb_seq_open(seq, n, c->tid_data + start,
					 c->tid_data + end) == NULL)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A block of TIDs of the leaf is malformed.");
}

/* The number v of columnar.h from an element of a sequence. */
static inline uint64
plain_number(const HybColumnar *c, uint64 v)
{
	if (c->tid_span != 0)
	{
		if (v >= c->tid_span)
			v %= c->tid_span;
		v += c->tid_origin;
	}
	return v;
}

static inline uint64
number_to_word(const HybLeaf *leaf, const HybColumnar *c, uint64 v)
{
	uint64		block;
	uint32		offset;

	v = plain_number(c, v);
	if (likely((v >> 32) == 0))
	{
		block = (uint32) v / c->tid_factor;
		offset = (uint32) v % c->tid_factor;
	}
	else
	{
		block = v / c->tid_factor;
		offset = (uint32) (v % c->tid_factor);
	}
	if (unlikely(block > MaxBlockNumber))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A TID of the leaf has an impossible block number.");
	return block << 16 | (uint16) (offset + 1);
}

static inline void
word_to_tid(uint64 word, ItemPointer tid)
{
	ItemPointerSet(tid, (BlockNumber) (word >> 16), (OffsetNumber) word);
}

static inline void
number_to_tid(const HybLeaf *leaf, const HybColumnar *c, uint64 v,
			  ItemPointer tid)
{
	word_to_tid(number_to_word(leaf, c, v), tid);
}

/* Elements [item, item + n), all of them within one block of TIDs. */
static void
decode_numbers(const HybLeaf *leaf, int item, int n, uint64 *v)
{
	const HybColumnar *c = leaf->columnar;
	HybSeq		seq;

	if (c->tid_ends == NULL)
		hyb_seq_decode(&c->tids, item, n, v);
	else
	{
		open_block(leaf, item / HYB_LEAF_TID_BLOCK, &seq);
		hyb_seq_decode(&seq, item % HYB_LEAF_TID_BLOCK, n, v);
	}
}

void
hyb_leaf_tids(const HybLeaf *leaf, int item, int n, ItemPointerData *tids)
{
	const HybColumnar *c = leaf->columnar;
	uint64		v[HYB_LEAF_TID_BLOCK];

	Assert(item >= 0 && n >= 0 && item + n <= leaf->nitems);
	if (c->words != NULL)
	{
		for (int i = 0; i < n; i++)
			word_to_tid(c->words[item + i], tids + i);
		return;
	}
	if (n == 1 && c->tid_ends == NULL)
	{
		number_to_tid(leaf, c, hyb_seq_get(&c->tids, item), tids);
		return;
	}
	while (n > 0)
	{
		int			k = Min(n, HYB_LEAF_TID_BLOCK - item % HYB_LEAF_TID_BLOCK);

		decode_numbers(leaf, item, k, v);
		for (int i = 0; i < k; i++)
			number_to_tid(leaf, c, v[i], tids++);
		item += k;
		n -= k;
	}
}

void
hyb_columnar_tid_words(const HybLeaf *leaf, int item, int n, uint64 *words)
{
	const HybColumnar *c = leaf->columnar;

	Assert(item >= 0 && n >= 0 && item + n <= leaf->nitems);
	if (c->words != NULL)
	{
		memcpy(words, c->words + item, n * sizeof(uint64));
		return;
	}
	while (n > 0)
	{
		int			k = n;

		if (c->tid_ends != NULL)
			k = Min(n, HYB_LEAF_TID_BLOCK - item % HYB_LEAF_TID_BLOCK);
		decode_numbers(leaf, item, k, words);
		for (int i = 0; i < k; i++)
			words[i] = number_to_word(leaf, c, words[i]);
		words += k;
		item += k;
		n -= k;
	}
}

void
hyb_leaf_decode_tids(HybLeaf *leaf)
{
	HybColumnar *c = leaf->columnar;

	if (c->nroom < leaf->nitems)
	{
		c->nroom = leaf->nitems;
		c->room = hyb_grow(leaf->context, c->room, c->nroom, sizeof(uint64));
	}
	c->words = NULL;
	hyb_columnar_tid_words(leaf, 0, leaf->nitems, c->room);
	c->words = c->room;
}

/* hyb_columnar_search_tid where all TIDs are decoded. */
static int
search_words(const uint64 *words, int lo, int hi, const ItemPointerData *tid)
{
	uint64		wanted = (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 |
		ItemPointerGetOffsetNumberNoCheck(tid);

	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (words[mid] < wanted)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

int
hyb_columnar_search_tid(const HybLeaf *leaf, int lo, int hi,
						const ItemPointerData *tid)
{
	const HybColumnar *c = leaf->columnar;
	uint64		wanted;

	if (c->words != NULL)
		return search_words(c->words, lo, hi, tid);

	/*
	 * Compare numbers instead of TIDs: an offset beyond the factor lies
	 * between the last TID of its block and the first one of the next.
	 */
	wanted = (uint64) ItemPointerGetBlockNumberNoCheck(tid) * c->tid_factor +
		Min((uint32) Max(ItemPointerGetOffsetNumberNoCheck(tid), 1) - 1,
			c->tid_factor);
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;
		uint64		v;

		if (c->tid_ends != NULL)
		{
			HybSeq		seq;

			open_block(leaf, mid / HYB_LEAF_TID_BLOCK, &seq);
			v = hyb_seq_get(&seq, mid % HYB_LEAF_TID_BLOCK);
		}
		else
			v = hyb_seq_get(&c->tids, mid);
		if (plain_number(c, v) < wanted)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const HybLeafLayout hyb_columnar_layout = {
	.number = HYB_LAYOUT_COLUMNAR,
	.keeps_keys = true,
	.open = open_keys,
	.create = hyb_columnar_create,
	.add = hyb_columnar_add,
	.add_items = hyb_columnar_add_items,
	.plan = hyb_columnar_plan,
	.write = hyb_columnar_write,
	.drop = hyb_columnar_drop
};
