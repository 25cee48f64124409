/*
 * columnar_plan.c
 *		Choosing the encodings of a columnar leaf, and with that its exact size.
 *
 * A plan is made several times per leaf, for different numbers of items, so
 * it costs a few passes over the columns and no encoding.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "leaf/columnar.h"

/* Items from which on TIDs in blocks are considered. */
#define MIN_BLOCKED_ITEMS	(2 * HYB_LEAF_TID_BLOCK)

/*
 * TIDs that a row has to have on the average to be stored as gaps, which are
 * read from one of 256 on.
 */
#define LONG_LISTS			32

/*
 * What takes time to read is chosen for payload if it saves one byte of so many
 * of the leaf: LZ4 has to decompress other rows first, and Huffman codes take
 * five times as long as symbols.
 */
#define SLOW_GAIN			8

static void
plan_ints(HybColumnarBuilder *b, const HybBuildColumn *col, bool nulls_first,
		  int nrows, HybPlanColumn *plan)
{
	uint64		min = PG_UINT64_MAX;
	uint64		max = 0;
	int			nnulls = 0;

	plan->encoding = HYB_LEAF_INT;
	plan->null_mode = HYB_NULLS_NONE;
	if (col->nnulls > 0)
	{
		for (int i = 0; i < nrows; i++)
		{
			if (col->isnull[i])
				nnulls++;
			else
			{
				min = Min(min, col->ints[i]);
				max = Max(max, col->ints[i]);
			}
		}
	}
	if (nnulls == nrows)
	{
		plan->encoding = HYB_LEAF_NULLS;
		plan->size = 1;
		return;
	}
	if (nnulls == 0)
	{
		hyb_seq_plan(col->ints, nrows, &plan->seq);
		plan->size = 1 + plan->seq.size;
		return;
	}

	plan->min = min;
	if (max - min == PG_UINT64_MAX)
	{
		plan->null_mode = HYB_NULLS_BITMAP;
		plan->size = 1 + (nrows + 7) / 8;
	}
	else if (nulls_first)
	{
		plan->null_mode = HYB_NULLS_LOW;
		plan->null_code = 0;
		plan->size = 1 + 8;
	}
	else
	{
		plan->null_mode = HYB_NULLS_HIGH;
		plan->null_code = max - min + 1;
		plan->size = 1 + 16;
	}
	hyb_seq_plan(hyb_columnar_null_codes(b, col, plan, nrows), nrows, &plan->seq);
	plan->size += plan->seq.size;
}

static inline HybFrontInput
column_front_input(const HybBuildColumn *col)
{
	HybFrontInput in = {col->arena.data, col->off, col->len, col->lcp};

	return in;
}

/*
 * Symbols or LZ4 instead of what was chosen so far.  The smallest form that is
 * slow to read is kept beside the smallest of the others.
 */
static void
plan_payload(HybColumnarBuilder *b, const HybBuildColumn *col, int nrows,
			 HybPlanColumn *plan)
{
	HybLzInput	in = hyb_columnar_lz_input(col, b->nrows);
	uint32		size = UINT32_MAX;

	hyb_sym_plan(col->sym, nrows, b->values, &plan->sym);
	if (plan->sym.size != UINT32_MAX)
		size = 1 + hyb_varint_size(col->sym->skip) + col->sym->skip + plan->sym.size;
	if (plan->encoding == HYB_LEAF_FRONT && col->code.coded)
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

/* Forms that are slow to read, where that pays; returns the leaf's new size. */
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
	HybFrontInput in = column_front_input(col);
	bool		same_length = true;
	uint32		prefix = hyb_front_prefix(&in, nrows);
	uint32		head_size;

	for (int i = 1; i < nrows && same_length; i++)
		same_length = col->len[i] == col->len[0];

	plan->prefix_len = prefix;
	plan->slow_size = UINT32_MAX;
	head_size = 1 + hyb_varint_size(prefix) + prefix;
	if (same_length && prefix == col->len[0])
	{
		plan->encoding = HYB_LEAF_CONST;
		plan->size = head_size;
		return;
	}

	hyb_front_plan(&in, &col->code, nrows, &plan->front);
	plan->encoding = HYB_LEAF_FRONT;
	plan->size = head_size + plan->front.size;

	if (same_length)
	{
		uint32		size;

		plan->rest_len = col->len[0] - prefix;
		hyb_seq_plan(hyb_columnar_heads(b, col, plan, nrows), nrows, &plan->seq);
		size = head_size + hyb_varint_size(plan->rest_len) + plan->seq.size;
		if (plan->rest_len > HYB_LEAF_SPLIT_HEAD)
			size += nrows * (plan->rest_len - HYB_LEAF_SPLIT_HEAD);
		if (size < plan->size)
		{
			plan->encoding = HYB_LEAF_SPLIT;
			plan->size = size;
		}
	}
	if (col->lz != NULL)
		plan_payload(b, col, nrows, plan);
}

/* ---- TIDs ---- */

/*
 * The numbers v - origin of items [from, to), in b->values; and in b->values2
 * the same plus span for each row begun within the range.  Returns whether
 * the two differ.
 */
bool
hyb_columnar_tid_numbers(HybColumnarBuilder *b, const HybColumnarPlan *plan,
						 int from, int to, uint64 span)
{
	int			lo = 0;
	int			hi = b->nrows;
	uint64		add = 0;
	int			row;
	int			row_end;

	/* row of the first item */
	while (hi - lo > 1)
	{
		int			mid = (lo + hi) / 2;

		if (b->row_start[mid] <= from)
			lo = mid;
		else
			hi = mid;
	}
	row = lo;
	row_end = row + 1 < b->nrows ? (int) b->row_start[row + 1] : b->base.nitems;

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

/*
 * The better of the two forms of a block of TIDs.  Returns the numbers that
 * the plan is for.
 */
const uint64 *
hyb_columnar_plan_tid_block(HybColumnarBuilder *b,
							const HybColumnarPlan *plan, int block,
							HybSeqPlan *seq, int *n)
{
	int			from = block * HYB_LEAF_TID_BLOCK;
	int			to = Min(from + HYB_LEAF_TID_BLOCK, plan->nitems);
	HybSeqPlan	by_rows;

	*n = to - from;
	if (!hyb_columnar_tid_numbers(b, plan, from, to, plan->tid_span))
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
	hyb_seq_plan(b->values, n, &plan->tids);
	if (n >= plan->nrows * LONG_LISTS)
		hyb_seq_plan_gaps(b->values, n, &plan->tids);
	plan->tid_size = 2 + plan->tids.size;

	/* the other forms need the origin to count from */
	if (plan->nrows < n && descents > 0)
	{
		HybSeqPlan	by_rows;

		plan->tid_origin = min;
		plan->tid_span = max - min + 1;
		hyb_columnar_tid_numbers(b, plan, 0, n, plan->tid_span);
		hyb_seq_plan(b->values2, n, &by_rows);
		if (n >= plan->nrows * LONG_LISTS)
			hyb_seq_plan_gaps(b->values2, n, &by_rows);
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

			hyb_columnar_plan_tid_block(b, plan, k, &seq, &count);
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
	HybLzInput	in = hyb_columnar_lz_input(col, b->nrows);
	HybSymInput sym = hyb_columnar_sym_input(col, b->nrows, prefix);

	if (col->room < b->rows_alloc)
	{
		col->room = b->rows_alloc;
		col->lz->ends = hyb_grow(b->base.context, col->lz->ends, col->room,
								 sizeof(uint32));
		col->sym->ends = hyb_grow(b->base.context, col->sym->ends, col->room,
								  sizeof(uint32));
	}
	if (col->cap < col->arena.cap)
	{
		col->cap = col->arena.cap;
		col->lz->data = hyb_grow(b->base.context, col->lz->data, col->cap, 1);
		col->sym->data = hyb_grow(b->base.context, col->sym->data, col->cap, 2);
	}
	if (col->fast == 0)
		hyb_lz_prepare(&in, b->prepared > 0, col->lz);
	hyb_sym_prepare(&sym, b->prepared > 0, col->sym);
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
			HybFrontInput in = column_front_input(col);

			bool		payload = i >= b->base.desc->nkeys;

			/* bytes of a fixed-width type have no letters to count */
			hyb_front_prepare(&in, b->nrows,
							  b->base.desc->cols[i].width == 0 &&
							  (!payload || (col->sym != NULL && col->fast == 0)),
							  &col->code);
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
	int			lo = 0;
	int			hi = b->nrows;

	prepare_strings(b);

	/* rows that begin before item nitems */
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (b->row_start[mid] < nitems)
			lo = mid + 1;
		else
			hi = mid;
	}
	plan->nitems = nitems;
	plan->nrows = lo;
	plan->flags = 0;

	for (int i = 0; i < base->desc->natts; i++)
	{
		if (b->cols[i].is_int)
			plan_ints(b, &b->cols[i], base->desc->cols[i].nulls_first,
					  plan->nrows, &plan->cols[i]);
		else
			plan_strings(b, &b->cols[i], plan->nrows, &plan->cols[i]);
		size += plan->cols[i].size;
	}
	if (plan->nrows < nitems)
	{
		const uint64 *starts = hyb_columnar_row_starts(b, plan->nrows);

		hyb_seq_plan(starts, plan->nrows, &plan->row_starts);
		hyb_seq_plan_steps(starts, plan->nrows, &plan->row_starts);
		size += plan->row_starts.size;
	}
	plan_tids(b, plan);
	base->plans[slot].nrows = plan->nrows;
	base->plans[slot].size = choose_slow(b, plan, size + plan->tid_size);
}
