/*
 * columnar_plan.c
 *		Choosing the encodings of a columnar leaf, which gives its exact size, and
 *		writing it.
 *
 * Several plans are made for a leaf, for different numbers of items.  So a plan
 * costs a few passes over the columns, and encodes nothing.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "leaf/columnar.h"

/* Items from which on TIDs in blocks are considered. */
#define MIN_BLOCKED_ITEMS	(2 * HYB_LEAF_TID_BLOCK)

/*
 * We try HYB_LEAF_TID_ROWS only if there is one further TID for each SINGLE_LISTS
 * rows.  With fewer, Elias-Fano saves log2(1 + 1 / SINGLE_LISTS) bits a TID at best,
 * and its kept positions take an eighth of a bit.
 */
#define SINGLE_LISTS		16

/*
 * INCLUDE columns get a form that is slow to read if it saves one byte in SLOW_GAIN
 * of the leaf.  LZ4 has to decompress other rows first, and Huffman codes take five
 * times as long as symbols.
 */
#define SLOW_GAIN			8

/* Leaves that do without a slow form after it did not pay. */
#define FAST_LEAVES	7

/* ---- numbers that are planned and written, in the builder's memory ---- */

/* The integers of a column with nulls, which get the value before them. */
static uint64 *
ints_with_nulls(HybColumnarBuilder *b, const HybBuildColumn *col, int nrows)
{
	int			first = 0;
	uint64		prev;

	while (col->isnull[first])
		first++;
	Assert(first < nrows);
	prev = col->ints[first];
	for (int i = 0; i < nrows; i++)
		prev = b->values[i] = col->isnull[i] ? prev : col->ints[i];
	return b->values;
}

/* The heads of strings that are going to be split. */
static uint64 *
split_heads(HybColumnarBuilder *b, const HybBuildColumn *col,
			const HybPlanColumn *plan, int nrows)
{
	uint32		n = Min(plan->rest_len, HYB_LEAF_SPLIT_HEAD);

	for (int i = 0; i < nrows; i++)
	{
		const uint8 *s = col->strings.bytes.data + col->strings.off[i] + plan->prefix_len;
		uint64		v = 0;

		if (n == 8)
			v = hyb_load64be(s);
		else
			for (uint32 j = 0; j < n; j++)
				v = (v << 8) | s[j];
		b->values[i] = v;
	}
	return b->values;
}

static uint64 *
row_starts(HybColumnarBuilder *b, int nrows)
{
	for (int i = 0; i < nrows; i++)
		b->values[i] = b->row_start[i];
	return b->values;
}

/* ---- planning columns ---- */

static void
plan_ints(HybColumnarBuilder *b, const HybBuildColumn *col, int nrows,
		  HybPlanColumn *plan)
{
	int			nnulls = 0;

	for (int i = 0; i < nrows && col->nnulls > 0; i++)
		nnulls += col->isnull[i] != 0;
	plan->size = 1;
	if (nnulls == nrows)
	{
		plan->encoding = HYB_LEAF_NULLS;
		return;
	}
	if (nnulls > 0)
	{
		plan->encoding = HYB_LEAF_INT_NULLS;
		plan->size += (nrows + 7) / 8;
		hyb_seq_plan(ints_with_nulls(b, col, nrows), nrows, &plan->seq);
	}
	else
	{
		plan->encoding = HYB_LEAF_INT;
		if (col->known)
			hyb_seq_plan_range(col->ints, nrows, col->least,
							   col->ascends ? col->ints[nrows - 1] : col->greatest,
							   col->ascends, &plan->seq);
		else
			hyb_seq_plan(col->ints, nrows, &plan->seq);
	}
	plan->size += plan->seq.size;
}

/*
 * Consider symbols and LZ4.  The plan has the smallest form that is fast to read,
 * and beside it the smallest that is slow.
 */
static void
plan_payload(HybColumnarBuilder *b, const HybBuildColumn *col, int nrows,
			 HybPlanColumn *plan)
{
	HybStrings	in = hyb_waiting_strings(&col->strings, b->nrows);
	uint32		size = UINT32_MAX;

	hyb_sym_plan(col->sym, nrows, b->values, &plan->sym);
	if (plan->sym.size != UINT32_MAX)
		size = 1 + hyb_varint_size(col->sym->skip) + col->sym->skip + plan->sym.size;
	if (plan->encoding == HYB_LEAF_FRONT && col->strings.code.coded)
	{
		plan->slow = plan->encoding;
		plan->slow_size = plan->size;
		plan->size = UINT32_MAX;
	}
	if (size < plan->size)
	{
		plan->encoding = HYB_LEAF_SYMBOLS;
		plan->size = size;
	}
	if (col->fast == 0)
	{
		hyb_lz_plan(&in, col->lz, nrows, b->values, &plan->lz);
		if (plan->lz.size < plan->slow_size && plan->lz.size != UINT32_MAX)
		{
			plan->slow = HYB_LEAF_LZ4;
			plan->slow_size = 1 + plan->lz.size;
		}
	}
	if (plan->size == UINT32_MAX)
	{
		plan->encoding = plan->slow;
		plan->size = plan->slow_size;
	}
}

/* Choose slow forms where that pays; returns the leaf's new size. */
static uint32
choose_slow(HybColumnarBuilder *b, HybColumnarPlan *plan, uint32 size)
{
	uint32		least = size / SLOW_GAIN;

	for (int i = b->base.desc->nkeys; i < b->base.desc->natts; i++)
	{
		HybPlanColumn *col = &plan->cols[i];

		if (b->cols[i].sym == NULL || col->slow_size >= col->size ||
			col->size - col->slow_size <= least)
			continue;
		size -= col->size - col->slow_size;
		col->encoding = col->slow;
		col->size = col->slow_size;
	}
	return size;
}

static void
plan_strings(HybColumnarBuilder *b, const HybBuildColumn *col, int nrows,
			 HybPlanColumn *plan)
{
	HybStrings	in = hyb_waiting_strings(&col->strings, nrows);
	bool		same_length = true;
	uint32		prefix = hyb_front_prefix(&in, nrows);
	uint32		head_size;

	for (int i = 1; i < nrows && same_length; i++)
		same_length = in.len[i] == in.len[0];

	plan->prefix_len = prefix;
	plan->slow_size = UINT32_MAX;
	head_size = 1 + hyb_varint_size(prefix) + prefix;
	if (same_length && prefix == in.len[0])
	{
		plan->encoding = HYB_LEAF_CONST;
		plan->size = head_size;
		return;
	}

	plan->size = UINT32_MAX;
	if (same_length)
	{
		plan->rest_len = in.len[0] - prefix;
		hyb_seq_plan(split_heads(b, col, plan, nrows), nrows, &plan->seq);
		plan->encoding = HYB_LEAF_SPLIT;
		plan->size = head_size + hyb_varint_size(plan->rest_len) + plan->seq.size;
		if (plan->rest_len > HYB_LEAF_SPLIT_HEAD)
			plan->size += nrows * (plan->rest_len - HYB_LEAF_SPLIT_HEAD);
	}
	if (!same_length ||
		head_size + hyb_front_least(&in, &col->strings.code, nrows) <= plan->size)
	{
		hyb_front_plan(&in, &col->strings.code, nrows, &plan->front);
		if (head_size + plan->front.size <= plan->size)
		{
			plan->encoding = HYB_LEAF_FRONT;
			plan->size = head_size + plan->front.size;
		}
	}
	if (col->lz != NULL)
		plan_payload(b, col, nrows, plan);
}

/* ---- TIDs ---- */

/*
 * Set b->values to the numbers v - origin of items [from, to), and b->values2 to
 * the same plus span for each row begun within the range.  Returns whether the two
 * differ.
 */
static bool
tid_numbers(HybColumnarBuilder *b, const HybColumnarPlan *plan,
			int from, int to, uint64 span)
{
	int			row = span > 0 ? hyb_columnar_waiting_row(b, from) : b->nrows;
	int			row_end = row + 1 < b->nrows ? (int) b->row_start[row + 1] : b->base.nitems;
	uint64		add = 0;

	for (int i = from; i < to; i++)
	{
		uint64		v = (b->tids[i] >> 16) * plan->tid_factor +
			(b->tids[i] & 0xFFFF) - 1 - plan->tid_origin;

		if (i == row_end)
		{
			row++;
			row_end = row + 1 < b->nrows ? (int) b->row_start[row + 1] : b->base.nitems;
			add += span;
		}
		b->values[i - from] = v;
		b->values2[i - from] = v + add;
	}
	return add > 0;
}

/* Plan the smaller form of a block of TIDs; returns the numbers for it. */
static const uint64 *
plan_tid_block(HybColumnarBuilder *b,
			   const HybColumnarPlan *plan, int block,
			   HybSeqPlan *seq, int *n)
{
	int			from = block * HYB_LEAF_TID_BLOCK;
	int			to = Min(from + HYB_LEAF_TID_BLOCK, plan->nitems);
	HybSeqPlan	by_rows;

	*n = to - from;
	if (!tid_numbers(b, plan, from, to, plan->tid_span))
	{
		hyb_seq_plan(b->values, *n, seq);
		return b->values;
	}
	hyb_seq_plan(b->values, *n, seq);
	hyb_seq_plan(b->values2, *n, &by_rows);
	if (by_rows.size >= seq->size)
		return b->values;
	*seq = by_rows;
	return b->values2;
}

static void
plan_tids(HybColumnarBuilder *b, HybColumnarPlan *plan)
{
	int			n = plan->nitems;
	uint32		factor = 1;
	uint64		min = PG_UINT64_MAX;
	uint64		max = 0;
	int			descents = 0;

	for (int i = 0; i < n; i++)
		factor = Max(factor, (uint32) (b->tids[i] & 0xFFFF));
	plan->tid_factor = factor;
	plan->tid_origin = 0;
	plan->tid_span = 0;
	for (int i = 0; i < n; i++)
	{
		uint64		v = (b->tids[i] >> 16) * factor + (b->tids[i] & 0xFFFF) - 1;

		if (i > 0 && v < b->values[i - 1])
			descents++;
		b->values[i] = v;
		min = Min(min, v);
		max = Max(max, v);
	}
	hyb_seq_plan_range(b->values, n, min, max, descents == 0, &plan->tids);
	plan->tid_size = 2 + plan->tids.size;

	/* the other forms need the origin to count from */
	if (n - plan->nrows >= plan->nrows / SINGLE_LISTS && n > plan->nrows && descents > 0)
	{
		HybSeqPlan	by_rows;

		plan->tid_origin = min;
		plan->tid_span = max - min + 1;
		tid_numbers(b, plan, 0, n, plan->tid_span);
		hyb_seq_plan(b->values2, n, &by_rows);
		if (by_rows.size + 16 < plan->tids.size)
		{
			plan->tids = by_rows;
			plan->tid_size = 2 + 16 + by_rows.size;
			plan->flags |= HYB_LEAF_TID_ROWS;
		}
	}

	/* blocks pay where the TIDs run in pieces, not where they are random */
	if (n >= MIN_BLOCKED_ITEMS && plan->tids.bits > 0 &&
		(n >= 2 * plan->nrows || descents < n / 16))
	{
		int			nblocks = (n - 1) / HYB_LEAF_TID_BLOCK + 1;
		uint32		size = 2 + 16 + 2 * nblocks;

		plan->tid_origin = min;
		plan->tid_span = max - min + 1;
		for (int k = 0; k < nblocks && size < plan->tid_size; k++)
		{
			HybSeqPlan	seq;
			int			count;

			plan_tid_block(b, plan, k, &seq, &count);
			size += seq.size;
		}
		if (size < plan->tid_size)
		{
			plan->tid_size = size;
			plan->flags |= HYB_LEAF_TID_ROWS | HYB_LEAF_TID_BLOCKS;
		}
	}
	if ((plan->flags & HYB_LEAF_TID_ROWS) == 0)
	{
		plan->tid_origin = 0;
		plan->tid_span = 0;
	}
}

/* ---- whole leaves ---- */

/* All waiting strings of a column as symbols, and memory for their groups. */
static void
prepare_payload(HybColumnarBuilder *b, HybBuildColumn *col, uint32 prefix)
{
	HybStrings	in = hyb_waiting_strings(&col->strings, b->nrows);

	if (col->room < b->rows_alloc)
	{
		col->room = b->rows_alloc;
		col->lz->ends = hyb_grow(b->base.context, col->lz->ends, col->room,
								 sizeof(uint32));
		col->sym->ends = hyb_grow(b->base.context, col->sym->ends, col->room,
								  sizeof(uint32));
	}
	if (col->cap < col->strings.bytes.cap)
	{
		col->cap = col->strings.bytes.cap;
		col->lz->data = hyb_grow(b->base.context, col->lz->data, col->cap, 1);
		col->sym->data = hyb_grow(b->base.context, col->sym->data, col->cap, 2);
	}
	if (col->fast == 0)
		hyb_lz_prepare(&in, b->prepared > 0, col->lz);
	hyb_sym_prepare(&in, prefix, b->prepared > 0, col->sym);
}

/* Look at all waiting strings; plans may then be made for parts of them. */
static void
prepare_strings(HybColumnarBuilder *b)
{
	if (b->prepared == b->base.nitems)
		return;
	for (int i = 0; i < b->base.desc->natts; i++)
	{
		HybBuildColumn *col = &b->cols[i];

		if (!col->is_int)
		{
			HybStrings	in = hyb_waiting_strings(&col->strings, b->nrows);
			bool		payload = i >= b->base.desc->nkeys;

			/* bytes of a fixed-width type have no letters to count */
			hyb_front_prepare(&in, b->nrows,
							  b->base.desc->cols[i].width == 0 &&
							  (!payload || (col->sym != NULL && col->fast == 0)),
							  &col->strings.code);
			if (col->lz != NULL)
				prepare_payload(b, col, hyb_front_prefix(&in, b->nrows));
		}
	}
	b->prepared = b->base.nitems;
}

void
hyb_columnar_plan(HybLeafBuilder *base, int slot)
{
	HybColumnarBuilder *b = hyb_columnar_builder(base);
	HybColumnarPlan *plan = &b->plans[slot];
	int			nitems = base->plans[slot].nitems;
	uint32		size = 1;

	prepare_strings(b);
	plan->nitems = nitems;
	plan->nrows = hyb_columnar_waiting_row(b, nitems - 1) + 1;
	plan->flags = 0;

	for (int i = 0; i < base->desc->natts; i++)
	{
		if (b->cols[i].is_int)
			plan_ints(b, &b->cols[i], plan->nrows, &plan->cols[i]);
		else
			plan_strings(b, &b->cols[i], plan->nrows, &plan->cols[i]);
		size += plan->cols[i].size;
	}
	if (plan->nrows < nitems)
	{
		hyb_seq_plan_range(row_starts(b, plan->nrows), plan->nrows, 0,
						   b->row_start[plan->nrows - 1], true, &plan->row_starts);
		size += plan->row_starts.size;
	}
	plan_tids(b, plan);
	base->plans[slot].nrows = plan->nrows;
	base->plans[slot].size = choose_slow(b, plan, size + plan->tid_size);
}

/* ---- writing ---- */

static uint8 *
write_ints(HybColumnarBuilder *b, const HybBuildColumn *col,
		   const HybPlanColumn *plan, int nrows, uint8 *out)
{
	*out++ = plan->encoding;
	if (plan->encoding == HYB_LEAF_NULLS)
		return out;
	if (plan->encoding == HYB_LEAF_INT)
		return hyb_seq_write(&plan->seq, col->ints, nrows, out);
	for (int i = 0; i < nrows; i++)
	{
		if (col->isnull[i])
			out[i >> 3] |= 1 << (i & 7);
	}
	return hyb_seq_write(&plan->seq, ints_with_nulls(b, col, nrows), nrows,
						 out + (nrows + 7) / 8);
}

static uint8 *
write_strings(HybColumnarBuilder *b, const HybBuildColumn *col,
			  const HybPlanColumn *plan, int nrows, uint8 *out)
{
	HybStrings	in = hyb_waiting_strings(&col->strings, b->nrows);

	*out++ = plan->encoding;
	if (plan->encoding == HYB_LEAF_LZ4)
		return hyb_lz_write(&in, col->lz, nrows, b->values, &plan->lz, out);
	if (plan->encoding == HYB_LEAF_SYMBOLS)
	{
		out = hyb_varint_write(out, col->sym->skip);
		memcpy(out, col->strings.bytes.data + col->strings.off[0], col->sym->skip);
		return hyb_sym_write(col->sym, nrows, b->values, &plan->sym,
							 out + col->sym->skip);
	}
	out = hyb_varint_write(out, plan->prefix_len);
	memcpy(out, col->strings.bytes.data + col->strings.off[0], plan->prefix_len);
	out += plan->prefix_len;
	if (plan->encoding == HYB_LEAF_FRONT)
		return hyb_front_write(&in, &col->strings.code, nrows, &plan->front, out);
	if (plan->encoding == HYB_LEAF_SPLIT)
	{
		uint32		head = Min(plan->rest_len, HYB_LEAF_SPLIT_HEAD);
		uint32		tail = plan->rest_len - head;

		out = hyb_varint_write(out, plan->rest_len);
		out = hyb_seq_write(&plan->seq, split_heads(b, col, plan, nrows),
							nrows, out);
		for (int i = 0; i < nrows; i++, out += tail)
			memcpy(out, col->strings.bytes.data + col->strings.off[i] + plan->prefix_len + head,
				   tail);
	}
	return out;
}

static uint8 *
write_tids(HybColumnarBuilder *b, const HybColumnarPlan *plan, uint8 *out)
{
	int			n = plan->nitems;

	hyb_store16(out, plan->tid_factor);
	out += 2;
	if (plan->flags & HYB_LEAF_TID_ROWS)
	{
		hyb_store64le(out, plan->tid_origin);
		hyb_store64le(out + 8, plan->tid_span);
		out += 16;
	}
	if (plan->flags & HYB_LEAF_TID_BLOCKS)
	{
		int			nblocks = (n - 1) / HYB_LEAF_TID_BLOCK + 1;
		uint8	   *ends = out;
		uint8	   *data = ends + 2 * nblocks;

		out = data;
		for (int k = 0; k < nblocks; k++)
		{
			HybSeqPlan	seq;
			int			count;
			const uint64 *v = plan_tid_block(b, plan, k, &seq, &count);

			out = hyb_seq_write(&seq, v, count, out);
			hyb_store16(ends + 2 * k, (uint32) (out - data));
		}
		return out;
	}
	tid_numbers(b, plan, 0, n, plan->tid_span);
	return hyb_seq_write(&plan->tids, b->values2, n, out);
}

/* Where slow forms did not pay, the next FAST_LEAVES leaves do not try them. */
static void
note_payload(HybColumnarBuilder *b, const HybColumnarPlan *plan)
{
	for (int i = b->base.desc->nkeys; i < b->base.desc->natts; i++)
	{
		HybBuildColumn *col = &b->cols[i];

		if (col->sym == NULL)
			continue;
		if (col->fast > 0)
			col->fast--;
		else if (plan->cols[i].encoding != HYB_LEAF_LZ4 &&
				 (plan->cols[i].encoding != HYB_LEAF_FRONT || !col->strings.code.coded))
			col->fast = FAST_LEAVES;
	}
}

uint8 *
hyb_columnar_write(HybLeafBuilder *base, int slot, uint8 *out)
{
	HybColumnarBuilder *b = hyb_columnar_builder(base);
	const HybColumnarPlan *plan = &b->plans[slot];

	*out++ = (uint8) plan->flags;
	for (int i = 0; i < base->desc->natts; i++)
	{
		if (b->cols[i].is_int)
			out = write_ints(b, &b->cols[i], &plan->cols[i], plan->nrows, out);
		else
			out = write_strings(b, &b->cols[i], &plan->cols[i], plan->nrows, out);
	}
	if (plan->nrows < plan->nitems)
		out = hyb_seq_write(&plan->row_starts,
							row_starts(b, plan->nrows),
							plan->nrows, out);
	note_payload(b, plan);
	return write_tids(b, plan, out);
}
