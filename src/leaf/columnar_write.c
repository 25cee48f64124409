/*
 * columnar_write.c
 *		Writing a planned columnar leaf.
 */
#include "base/compat.h"

#include "leaf/columnar.h"

/* Leaves for which what did not pay is not tried again. */
#define FAST_LEAVES	7

static uint8 *
write_ints(HybColumnarBuilder *b, const HybBuildColumn *col,
		   const HybPlanColumn *plan, int nrows, uint8 *out)
{
	const uint64 *codes = col->ints;

	*out++ = (uint8) (plan->encoding | (plan->null_mode << 4));
	if (plan->encoding == HYB_LEAF_NULLS)
		return out;
	if (plan->null_mode != HYB_NULLS_NONE)
		codes = hyb_columnar_null_codes(b, col, plan, nrows);
	if (plan->null_mode == HYB_NULLS_BITMAP)
	{
		for (int i = 0; i < nrows; i++)
		{
			if (col->isnull[i])
				out[i >> 3] |= 1 << (i & 7);
		}
		out += (nrows + 7) / 8;
	}
	else if (plan->null_mode != HYB_NULLS_NONE)
	{
		hyb_store64le(out, plan->min);
		out += 8;
		if (plan->null_mode == HYB_NULLS_HIGH)
		{
			hyb_store64le(out, plan->null_code);
			out += 8;
		}
	}
	return hyb_seq_write(&plan->seq, codes, nrows, out);
}

static uint8 *
write_strings(HybColumnarBuilder *b, const HybBuildColumn *col,
			  const HybPlanColumn *plan, int nrows, uint8 *out)
{
	HybFrontInput in = {col->arena.data, col->off, col->len, col->lcp};

	*out++ = plan->encoding;
	if (plan->encoding == HYB_LEAF_LZ4)
	{
		HybLzInput	groups = hyb_columnar_lz_input(col, b->nrows);

		return hyb_lz_write(&groups, col->lz, nrows, b->values, &plan->lz, out);
	}
	if (plan->encoding == HYB_LEAF_SYMBOLS)
	{
		out = hyb_varint_write(out, col->sym->skip);
		memcpy(out, col->arena.data + col->off[0], col->sym->skip);
		return hyb_sym_write(col->sym, nrows, b->values, &plan->sym,
							 out + col->sym->skip);
	}
	out = hyb_varint_write(out, plan->prefix_len);
	memcpy(out, col->arena.data + col->off[0], plan->prefix_len);
	out += plan->prefix_len;
	if (plan->encoding == HYB_LEAF_FRONT)
		return hyb_front_write(&in, &col->code, nrows, &plan->front, out);
	if (plan->encoding == HYB_LEAF_SPLIT)
	{
		uint32		head = Min(plan->rest_len, HYB_LEAF_SPLIT_HEAD);
		uint32		tail = plan->rest_len - head;

		out = hyb_varint_write(out, plan->rest_len);
		out = hyb_seq_write(&plan->seq, hyb_columnar_heads(b, col, plan, nrows),
							nrows, out);
		for (int i = 0; i < nrows; i++, out += tail)
			memcpy(out, col->arena.data + col->off[i] + plan->prefix_len + head,
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
			const uint64 *v = hyb_columnar_plan_tid_block(b, plan, k, &seq, &count);

			out = hyb_seq_write(&seq, v, count, out);
			hyb_store16(ends + 2 * k, (uint32) (out - data));
		}
		return out;
	}
	hyb_columnar_tid_numbers(b, plan, 0, n, plan->tid_span);
	return hyb_seq_write(&plan->tids, b->values2, n, out);
}

/*
 * Where forms of payload that are slow to read did not pay, the next leaves do
 * without trying them.
 */
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
				 (plan->cols[i].encoding != HYB_LEAF_FRONT || !col->code.coded))
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
							hyb_columnar_row_starts(b, plan->nrows),
							plan->nrows, out);
	note_payload(b, plan);
	return write_tids(b, plan, out);
}
