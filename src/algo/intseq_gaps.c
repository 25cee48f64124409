/*
 * intseq_gaps.c
 *		Integer sequences stored as the gaps between their elements.
 */
#include "algo/intseq.h"
#include "algo/packer.h"

static inline uint32_t
gaps_nsamples(uint32_t n)
{
	return (n - 1) / HYB_SEQ_GAPS_SAMPLE;
}

/* ---- writing ---- */

/*
 * Gaps of random numbers take the least space with about as many low bits as
 * their mean has, or one less.
 */
void
hyb_seq_plan_gaps(const uint64_t *v, uint32_t n, HybSeqPlan *plan)
{
	uint64_t	high[2] = {0, 0};
	unsigned	bits;
	unsigned	width;

	if (!plan->ascending || n <= 2)
		return;
	bits = hyb_bit_width((v[n - 1] - v[0]) / (n - 1));
	bits = bits < 2 ? 0 : bits - 2;
	for (uint32_t i = 1; i < n; i++)
	{
		high[0] += (v[i] - v[i - 1]) >> bits;
		high[1] += (v[i] - v[i - 1]) >> (bits + 1);
	}
	width = hyb_byte_width(v[n - 1] - v[0]);
	for (unsigned k = 0; k < 2; k++)
	{
		uint64_t	high_bits = n + high[k];
		uint32_t	size;

		if (high_bits > UINT16_MAX)
			continue;
		HYB_ASSERT(high_bits >= n);
		size = 5 + hyb_byte_width(v[0]) + (2 + width) * gaps_nsamples(n) +
			((uint32_t) high_bits + 7) / 8 + hyb_packed_bytes(n, bits + k);
		if (size >= plan->size)
			continue;
		plan->model = HYB_SEQ_GAPS;
		plan->bits = (uint8_t) (bits + k);
		plan->shift = (uint8_t) width;
		plan->base = v[0];
		plan->slope = 0;
		plan->high_bits = (uint32_t) high_bits;
		plan->size = size;
	}
}

uint8_t *
hyb_gaps_write(const HybSeqPlan *plan, const uint64_t *v, uint32_t n, uint8_t *out)
{
	unsigned	bits = plan->bits;
	unsigned	width = plan->shift;
	uint64_t	mask = bits == 0 ? 0 : ~UINT64_C(0) >> (64 - bits);
	uint8_t    *samples;
	uint8_t    *high;
	uint32_t	pos = 0;
	HybPacker	low = {NULL, 0, 0, bits};

	hyb_store16(out, plan->high_bits);
	out[2] = (uint8_t) width;
	samples = out + 3;
	high = samples + (2 + width) * gaps_nsamples(n);
	low.out = high + (plan->high_bits + 7) / 8;
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	gap = i == 0 ? 0 : v[i] - v[i - 1];

		HYB_ASSERT(i == 0 || v[i] >= v[i - 1]);
		pos += (uint32_t) (gap >> bits);
		HYB_ASSERT(pos < plan->high_bits);
		if (i > 0 && i % HYB_SEQ_GAPS_SAMPLE == 0)
		{
			hyb_store16(samples, pos);
			for (unsigned j = 0; j < width; j++)
				samples[2 + j] = (uint8_t) ((v[i] - plan->base) >> (8 * j));
			samples += 2 + width;
		}
		high[pos >> 3] |= (uint8_t) (1 << (pos & 7));
		pos++;
		hyb_packer_put(&low, gap & mask);
	}
	return hyb_packer_end(&low);
}

/* ---- reading ---- */

const uint8_t *
hyb_gaps_open(HybSeq *seq, const uint8_t *p, const uint8_t *end)
{
	uint32_t	skip;

	if (end - p < 3 || seq->bits > 63 || p[2] > 8)
		return NULL;
	seq->high_bits = hyb_load16(p);
	seq->shift = p[2];
	p += 3;
	skip = (2 + seq->shift) * gaps_nsamples(seq->n);
	if (seq->high_bits < seq->n ||
		(size_t) (end - p) < skip + (seq->high_bits + 7) / 8)
		return NULL;
	seq->samples = p;
	seq->high = p + skip;
	return p + skip + (seq->high_bits + 7) / 8;
}

/* Element `next` is the one after `value`, whose one is the last before `pos`. */
typedef struct GapsPlace
{
	uint32_t	next;
	uint32_t	pos;
	uint64_t	value;
} GapsPlace;

/* The kept element j, as element 0 is. */
static inline GapsPlace
gaps_kept(const HybSeq *seq, uint32_t j)
{
	GapsPlace	place = {1, 1, seq->base};

	HYB_ASSERT(j <= gaps_nsamples(seq->n));
	if (j > 0)
	{
		const uint8_t *sample = seq->samples + (2 + seq->shift) * (j - 1);

		place.next = j * HYB_SEQ_GAPS_SAMPLE + 1;
		place.pos = hyb_load16(sample) + 1;
		place.value += hyb_bits_get(sample + 2, 0, 8 * seq->shift);
	}
	return place;
}

/*
 * The elements from a place up to `end`, to out unless that is NULL; but for the
 * first `skip` ones of them.  Stops before the first one that is not below
 * *limit, if there is one.  Returns the element that it stopped at, or end.
 */
HYB_ALWAYS_INLINE uint32_t
gaps_walk(const HybSeq *seq, GapsPlace *place, uint32_t end, uint32_t skip,
		  uint64_t *out, const uint64_t *limit)
{
	unsigned	bits = seq->bits;
	uint64_t	bitoff = (uint64_t) place->next * bits;
	uint32_t	w = place->pos >> 6;
	uint64_t	word = 0;

	if (place->pos < seq->high_bits)
		word = hyb_load64le(seq->high + 8 * w) & (~UINT64_C(0) << (place->pos & 63));
	for (; place->next < end; place->next++, bitoff += bits)
	{
		uint32_t	pos;
		uint64_t	value;

		while (word == 0 && ((w + 1) << 6) < seq->high_bits)
			word = hyb_load64le(seq->high + 8 * ++w);
		/* too few ones: damaged, and the value is wrong but harmless */
		pos = word == 0 ? seq->high_bits : (w << 6) + (uint32_t) __builtin_ctzll(word);
		word &= word - 1;
		value = place->value + ((uint64_t) (pos - place->pos) << bits) +
			hyb_bits_get(seq->data, bitoff, bits);
		if (limit != NULL && value >= *limit)
			return place->next;
		place->pos = pos + 1;
		place->value = value;
		if (skip > 0)
			skip--;
		else if (out != NULL)
			*out++ = value;
	}
	return end;
}

uint64_t
hyb_seq_gaps_get(const HybSeq *seq, uint32_t i)
{
	GapsPlace	place = gaps_kept(seq, i / HYB_SEQ_GAPS_SAMPLE);

	HYB_ASSERT(seq->model == HYB_SEQ_GAPS && i < seq->n);
	(void) gaps_walk(seq, &place, i + 1, 0, NULL, NULL);
	return place.value;
}

void
hyb_gaps_decode(const HybSeq *seq, uint32_t from, uint32_t n, uint64_t *out)
{
	GapsPlace	place = gaps_kept(seq, from / HYB_SEQ_GAPS_SAMPLE);
	uint32_t	first = from % HYB_SEQ_GAPS_SAMPLE;

	HYB_ASSERT(n > 0 && from < seq->n && n <= seq->n - from);
	if (first == 0)
		*out++ = place.value;
	(void) gaps_walk(seq, &place, from + n, first == 0 ? 0 : first - 1, out, NULL);
}

uint32_t
hyb_gaps_lower_bound(const HybSeq *seq, uint32_t lo, uint32_t hi, uint64_t x)
{
	uint32_t	a = lo / HYB_SEQ_GAPS_SAMPLE;
	uint32_t	b = (hi - 1) / HYB_SEQ_GAPS_SAMPLE;
	uint32_t	found;
	GapsPlace	place;

	HYB_ASSERT(lo < hi && hi <= seq->n);
	/* the last kept element below x, if any is, from the one before lo on */
	while (a < b)
	{
		uint32_t	mid = (a + b + 1) / 2;

		if (gaps_kept(seq, mid).value < x)
			a = mid;
		else
			b = mid - 1;
	}
	place = gaps_kept(seq, a);
	if (place.next > lo && place.value >= x)
		return place.next - 1;
	/* what is before lo may be anything */
	(void) gaps_walk(seq, &place, lo, 0, NULL, NULL);
	found = gaps_walk(seq, &place, hi, 0, NULL, &x);
	return found < hi ? found : hi;
}
