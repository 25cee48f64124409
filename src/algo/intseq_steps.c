/*
 * intseq_steps.c
 *		Integer sequences that ascend by one, but for some steps.
 */
#include "algo/intseq.h"

/* ---- writing ---- */

void
hyb_seq_plan_steps(const uint64_t *v, uint32_t n, HybSeqPlan *plan)
{
	uint64_t	steps = v[n - 1] - v[0] - (n - 1);
	uint32_t	head = 4 + hyb_byte_width(v[0]);

	if (plan->size <= head || steps > (plan->size - head - 1) / 2 ||
		steps > UINT16_MAX)
		return;
	for (uint32_t i = 1; i < n; i++)
		if (v[i] <= v[i - 1])
			return;
	plan->model = HYB_SEQ_STEPS;
	plan->bits = plan->shift = 0;
	plan->base = v[0];
	plan->slope = 0;
	plan->high_bits = (uint32_t) steps;
	plan->size = head + 2 * (uint32_t) steps;
}

uint8_t *
hyb_steps_write(const HybSeqPlan *plan, const uint64_t *v, uint32_t n, uint8_t *out)
{
	HYB_ASSERT(v[n - 1] - v[0] == n - 1 + plan->high_bits);
	hyb_store16(out, plan->high_bits);
	out += 2;
	for (uint32_t i = 1; i < n; i++)
		for (uint64_t k = v[i - 1] + 1; k < v[i]; k++, out += 2)
			hyb_store16(out, i);
	return out;
}

/* ---- reading ---- */

const uint8_t *
hyb_steps_open(HybSeq *seq, const uint8_t *p, const uint8_t *end)
{
	if (end - p < 2 || seq->bits != 0)
		return NULL;
	seq->high_bits = hyb_load16(p);
	seq->data = p + 2;
	return (size_t) (end - seq->data) < 2 * seq->high_bits ? NULL :
		seq->data + 2 * seq->high_bits;
}

/* Steps at or before an element. */
static inline uint32_t
steps_up_to(const HybSeq *seq, uint32_t i)
{
	uint32_t	lo = 0;
	uint32_t	hi = seq->high_bits;

	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (hyb_load16(seq->data + 2 * mid) <= i)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint64_t
hyb_seq_steps_get(const HybSeq *seq, uint32_t i)
{
	HYB_ASSERT(seq->model == HYB_SEQ_STEPS && i < seq->n);
	return seq->base + i + steps_up_to(seq, i);
}

void
hyb_steps_decode(const HybSeq *seq, uint32_t from, uint32_t n, uint64_t *out)
{
	uint32_t	steps = steps_up_to(seq, from);

	for (uint32_t i = from; i < from + n; i++)
	{
		while (steps < seq->high_bits && hyb_load16(seq->data + 2 * steps) <= i)
			steps++;
		*out++ = seq->base + i + steps;
	}
}
