/*
 * intseq.c
 *		Choosing, writing and reading the integer models of intseq.h.
 */
#include "algo/intseq.h"

/* Residuals around a line must stay clear of signed overflow. */
#define LINEAR_MAX_BITS 60

/* Elements that tell whether a line is worth trying. */
#define LINEAR_SAMPLE	32

/* Kept positions of the ones, in EF and GAPS. */
static inline uint32_t
nsamples(uint8_t model, uint32_t n)
{
	return (n - 1) / (model == HYB_SEQ_GAPS ? HYB_SEQ_GAPS_SAMPLE : HYB_SEQ_EF_SAMPLE);
}

static inline uint64_t
zigzag(int64_t v)
{
	return ((uint64_t) v << 1) ^ (uint64_t) (v >> 63);
}

static inline int64_t
unzigzag(uint64_t v)
{
	return (int64_t) ((v >> 1) ^ (~(v & 1) + 1));
}

static inline int64_t
line_at(int64_t slope, unsigned shift, uint32_t i)
{
	return (int64_t) ((uint64_t) slope * i) >> shift;
}

/* ---- GAPS ---- */

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
		size = 5 + hyb_byte_width(v[0]) + (2 + width) * nsamples(HYB_SEQ_GAPS, n) +
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

	HYB_ASSERT(j <= nsamples(HYB_SEQ_GAPS, seq->n));
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

static void
gaps_decode(const HybSeq *seq, uint32_t from, uint32_t n, uint64_t *out)
{
	GapsPlace	place = gaps_kept(seq, from / HYB_SEQ_GAPS_SAMPLE);
	uint32_t	first = from % HYB_SEQ_GAPS_SAMPLE;

	HYB_ASSERT(n > 0 && from < seq->n && n <= seq->n - from);
	if (first == 0)
		*out++ = place.value;
	(void) gaps_walk(seq, &place, from + n, first == 0 ? 0 : first - 1, out, NULL);
}

static uint32_t
gaps_lower_bound(const HybSeq *seq, uint32_t lo, uint32_t hi, uint64_t x)
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

/* ---- STEPS ---- */

void
hyb_seq_plan_as_steps(uint64_t first, uint64_t last, uint32_t n, HybSeqPlan *plan)
{
	uint64_t	steps = last - first - (n - 1);

	HYB_ASSERT(last - first >= n - 1 && steps <= UINT16_MAX);
	*plan = (HybSeqPlan)
	{
		.model = HYB_SEQ_STEPS,.ascending = true,.base = first,
			.high_bits = (uint32_t) steps,
			.size = 4 + hyb_byte_width(first) + 2 * (uint32_t) steps
	};
}

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
	hyb_seq_plan_as_steps(v[0], v[n - 1], n, plan);
}

static uint8_t *
steps_write(const HybSeqPlan *plan, const uint64_t *v, uint32_t n, uint8_t *out)
{
	HYB_ASSERT(v[n - 1] - v[0] == n - 1 + plan->high_bits);
	hyb_store16(out, plan->high_bits);
	out += 2;
	for (uint32_t i = 1; i < n; i++)
		for (uint64_t k = v[i - 1] + 1; k < v[i]; k++, out += 2)
			hyb_store16(out, i);
	return out;
}

static const uint8_t *
steps_open(HybSeq *seq, const uint8_t *p, const uint8_t *end)
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

/* The numbers from step k - 1 to step k are base + i + k. */
static uint32_t
steps_lower_bound(const HybSeq *seq, uint32_t lo, uint32_t hi, uint64_t x)
{
	uint32_t	k = 0;
	uint32_t	end = seq->high_bits;
	uint32_t	found;

	if (x <= seq->base)
		return lo;
	x -= seq->base;
	while (k < end)
	{
		uint32_t	mid = (k + end) / 2;

		if (hyb_load16(seq->data + 2 * mid) + mid <= x)
			k = mid + 1;
		else
			end = mid;
	}
	/* the last step may be the one that reaches x */
	found = x < k ? 0 : x - k < hi ? (uint32_t) (x - k) : hi;
	if (k > 0 && hyb_load16(seq->data + 2 * (k - 1)) > found)
		found = hyb_load16(seq->data + 2 * (k - 1));
	return found < lo ? lo : found > hi ? hi : found;
}

static void
steps_decode(const HybSeq *seq, uint32_t from, uint32_t n, uint64_t *out)
{
	uint32_t	steps = steps_up_to(seq, from);

	for (uint32_t i = from; i < from + n; i++)
	{
		while (steps < seq->high_bits && hyb_load16(seq->data + 2 * steps) <= i)
			steps++;
		*out++ = seq->base + i + steps;
	}
}

/* ---- choosing ---- */

#ifdef USE_ASSERT_CHECKING
/* Is a plan one that hyb_seq_write can write for n elements? */
static bool
plan_is_valid(const HybSeqPlan *plan, uint32_t n)
{
	return n > 0 && n <= HYB_SEQ_MAX && plan->model <= HYB_SEQ_STEPS &&
		plan->bits <= 64 && plan->shift <= 63 && plan->size > 0 &&
		plan->high_bits <= UINT16_MAX &&
		((plan->model != HYB_SEQ_EF && plan->model != HYB_SEQ_GAPS) ||
		 (plan->ascending && plan->high_bits >= n));
}

/* Is element i of what was written at out the one that was given? */
static bool
is_written(const uint8_t *out, const uint8_t *end, const uint64_t *v,
		   uint32_t n, uint32_t i)
{
	HybSeq		seq;

	return hyb_seq_open(&seq, n, out, end) == end && hyb_seq_get(&seq, i) == v[i];
}
#endif

/*
 * Size with residuals in [min, max] around the line.
 */
static inline uint32_t
linear_size(const uint64_t *v, uint32_t n, int64_t slope, int64_t min,
			int64_t max)
{
	return 4 + hyb_byte_width(v[0] + (uint64_t) min) +
		hyb_byte_width(zigzag(slope)) +
		hyb_packed_bytes(n, hyb_bit_width((uint64_t) (max - min)));
}

/*
 * The line goes through the first and the last element; its slope is a fixed
 * point number with as many fraction bits as fit.  Where numbers are far from
 * any line some of them say so, and the others need not be looked at.
 */
static void
plan_linear(const uint64_t *v, uint32_t n, unsigned range_bits,
			HybSeqPlan *best)
{
	int64_t		rise = (int64_t) (v[n - 1] - v[0]);
	unsigned	shift = LINEAR_MAX_BITS - range_bits;
	int64_t		slope;
	int64_t		min = 0;
	int64_t		max = 0;
	uint32_t	size;
	uint64_t	acc = 0;

	HYB_ASSERT(n > 2 && range_bits < LINEAR_MAX_BITS);
	if (shift > 32)
		shift = 32;
	slope = (int64_t) ((uint64_t) rise << shift) / (int64_t) (n - 1);
	/* rounded, so that the line ends at the last element if it can */
	if (slope >= 0)
		slope = (int64_t) (((uint64_t) rise << shift) + (n - 1) / 2) /
			(int64_t) (n - 1);

	if (n >= 4 * LINEAR_SAMPLE)
	{
		uint32_t	stride = n / LINEAR_SAMPLE;

		for (uint32_t i = 0; i < n; i += stride)
		{
			int64_t		r = (int64_t) (v[i] - v[0]) - line_at(slope, shift, i);

			min = r < min ? r : min;
			max = r > max ? r : max;
		}

		/* not for the few bytes by which the base may come out smaller */
		if (linear_size(v, n, slope, min, max) >= best->size)
			return;
		min = 0;
		max = 0;
	}

	for (uint32_t i = 0; i < n; i++, acc += (uint64_t) slope)
	{
		int64_t		r = (int64_t) (v[i] - v[0]) - ((int64_t) acc >> shift);

		min = r < min ? r : min;
		max = r > max ? r : max;
	}
	HYB_ASSERT(min <= 0 && max >= 0);
	size = linear_size(v, n, slope, min, max);
	if (size < best->size ||
		(size == best->size && best->model == HYB_SEQ_EF))
	{
		best->model = HYB_SEQ_LINEAR;
		best->bits = (uint8_t) hyb_bit_width((uint64_t) (max - min));
		best->shift = (uint8_t) shift;
		best->base = v[0] + (uint64_t) min;
		best->slope = slope;
		best->high_bits = 0;
		best->size = size;
	}
}

void
hyb_seq_plan_range(const uint64_t *v, uint32_t n, uint64_t min, uint64_t max,
				   bool ascending, HybSeqPlan *plan)
{
	unsigned	range_bits;

	HYB_ASSERT(n > 0 && n <= HYB_SEQ_MAX);
	for (uint32_t i = 0; i < n; i++)
	{
		HYB_ASSERT(v[i] >= min && v[i] <= max);
		HYB_ASSERT(!ascending || i == 0 || v[i - 1] <= v[i]);
	}
	plan->ascending = ascending;
	plan->shift = 0;
	plan->slope = 0;
	plan->high_bits = 0;
	plan->base = min;
	range_bits = hyb_bit_width(max - min);
	plan->bits = (uint8_t) range_bits;
	if (range_bits == 0)
	{
		plan->model = HYB_SEQ_CONST;
		plan->size = 1 + hyb_byte_width(min);
		return;
	}

	plan->model = HYB_SEQ_FOR;
	plan->size = 2 + hyb_byte_width(min) + hyb_packed_bytes(n, range_bits);

	if (ascending && n > 2)
	{
		uint64_t	per = (max - min) / n;
		unsigned	bits = per == 0 ? 0 : hyb_bit_width(per) - 1;
		uint32_t	high_bits = n + (uint32_t) ((max - min) >> bits);
		uint32_t	size = 4 + hyb_byte_width(min) + 2 * nsamples(HYB_SEQ_EF, n) +
			(high_bits + 7) / 8 + hyb_packed_bytes(n, bits);

		if (size < plan->size)
		{
			plan->model = HYB_SEQ_EF;
			plan->bits = (uint8_t) bits;
			plan->base = min;
			plan->high_bits = high_bits;
			plan->size = size;
		}
	}

	if (n > 2 && range_bits < LINEAR_MAX_BITS)
		plan_linear(v, n, range_bits, plan);
	HYB_ASSERT(plan_is_valid(plan, n));
}

void
hyb_seq_plan(const uint64_t *v, uint32_t n, HybSeqPlan *plan)
{
	uint64_t	min = v[0];
	uint64_t	max = v[0];
	uint64_t	prev = v[0];
	unsigned	descends = 0;

	HYB_ASSERT(n > 0 && n <= HYB_SEQ_MAX);
	for (uint32_t i = 1; i < n; i++)
	{
		uint64_t	x = v[i];

		min = x < min ? x : min;
		max = x > max ? x : max;
		descends |= x < prev;
		prev = x;
	}
	hyb_seq_plan_range(v, n, min, max, !descends, plan);
}

/* ---- writing ---- */

/*
 * The elements less the base (EF), or the gaps between them (GAPS): high parts in
 * unary, kept elements, packed low parts.
 */
static uint8_t *
write_unary(const HybSeqPlan *plan, const uint64_t *v, uint32_t n, uint8_t *out)
{
	bool		gaps = plan->model == HYB_SEQ_GAPS;
	uint32_t	every = gaps ? HYB_SEQ_GAPS_SAMPLE : HYB_SEQ_EF_SAMPLE;
	unsigned	width = gaps ? plan->shift : 0;
	unsigned	bits = plan->bits;
	uint64_t	mask = bits == 0 ? 0 : ~UINT64_C(0) >> (64 - bits);
	uint64_t	from = plan->base;
	uint32_t	start = 0;		/* position that `from` has */
	uint8_t    *high;
	HybPacker	low = {NULL, 0, 0, bits};

	hyb_store16(out, plan->high_bits);
	out += 2;
	if (gaps)
		*out++ = (uint8_t) width;
	high = out + (2 + width) * nsamples(plan->model, n);
	low.out = high + (plan->high_bits + 7) / 8;
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	d = v[i] - from;
		uint32_t	pos = start + (uint32_t) (d >> bits);

		HYB_ASSERT(v[i] >= from && pos < plan->high_bits);
		if (i > 0 && i % every == 0)
		{
			hyb_store16(out, pos);
			for (unsigned j = 0; j < width; j++)
				out[2 + j] = (uint8_t) ((v[i] - plan->base) >> (8 * j));
			out += 2 + width;
		}
		high[pos >> 3] |= (uint8_t) (1 << (pos & 7));
		hyb_packer_put(&low, d & mask);
		start = gaps ? pos + 1 : i + 1;
		from = gaps ? v[i] : from;
	}
	return hyb_packer_end(&low);
}

/* What follows the header is written by model. */
static uint8_t *
write_model(const HybSeqPlan *plan, const uint64_t *v, uint32_t n,
			uint8_t *out)
{
	unsigned	len = hyb_byte_width(plan->base);
	unsigned	bits = plan->bits;

	*out++ = (uint8_t) ((plan->model & 3) | (len << 2) | (plan->model & 4) << 4);
	for (unsigned i = 0; i < len; i++)
		*out++ = (uint8_t) (plan->base >> (8 * i));
	if (plan->model == HYB_SEQ_CONST)
		return out;
	*out++ = (uint8_t) bits;

	if (plan->model == HYB_SEQ_STEPS)
		return steps_write(plan, v, n, out);
	if (plan->model == HYB_SEQ_FOR)
	{
		HybPacker	low = {out, 0, 0, bits};

		for (uint32_t i = 0; i < n; i++)
			hyb_packer_put(&low, v[i] - plan->base);
		return hyb_packer_end(&low);
	}
	if (plan->model == HYB_SEQ_LINEAR)
	{
		uint64_t	z = zigzag(plan->slope);
		uint64_t	acc = 0;
		HybPacker	low = {NULL, 0, 0, bits};

		len = hyb_byte_width(z);
		*out++ = plan->shift;
		*out++ = (uint8_t) len;
		for (unsigned i = 0; i < len; i++)
			*out++ = (uint8_t) (z >> (8 * i));
		if (bits == 0)
			return out;
		low.out = out;
		for (uint32_t i = 0; i < n; i++, acc += (uint64_t) plan->slope)
			hyb_packer_put(&low, v[i] - plan->base -
						   (uint64_t) ((int64_t) acc >> plan->shift));
		return hyb_packer_end(&low);
	}
	return write_unary(plan, v, n, out);
}

uint8_t *
hyb_seq_write(const HybSeqPlan *plan, const uint64_t *v, uint32_t n,
			  uint8_t *out)
{
	uint8_t    *end;

	HYB_ASSERT(plan_is_valid(plan, n));
	end = write_model(plan, v, n, out);
	HYB_ASSERT(end == out + plan->size);
	HYB_ASSERT(is_written(out, end, v, n, 0) && is_written(out, end, v, n, n - 1));
	return end;
}

/* ---- reading ---- */

/* What write_unary has written, up to the low parts. */
static const uint8_t *
open_unary(HybSeq *seq, const uint8_t *p, const uint8_t *end)
{
	bool		gaps = seq->model == HYB_SEQ_GAPS;
	uint32_t	skip;

	if (end - p < 2 + gaps || seq->bits > 63)
		return NULL;
	seq->high_bits = hyb_load16(p);
	p += 2;
	seq->shift = gaps ? *p++ : 0;
	if (seq->shift > 8 || seq->high_bits < seq->n)
		return NULL;
	skip = (2 + seq->shift) * nsamples(seq->model, seq->n);
	if ((size_t) (end - p) < skip + (seq->high_bits + 7) / 8)
		return NULL;
	seq->samples = p;
	seq->high = p + skip;
	return seq->high + (seq->high_bits + 7) / 8;
}

const uint8_t *
hyb_seq_open(HybSeq *seq, uint32_t n, const uint8_t *p, const uint8_t *end)
{
	unsigned	len;

	if (p >= end || n == 0 || n > HYB_SEQ_MAX)
		return NULL;
	seq->n = n;
	seq->model = (*p & 3) | ((*p >> 4) & 4);
	if ((*p & 0x80) != 0 || seq->model > HYB_SEQ_STEPS)
		return NULL;
	len = (*p++ >> 2) & 15;
	/* an 8-byte load and a mask; up to 8 bytes after end are readable */
	if (len > 8 || (size_t) (end - p) < len)
		return NULL;
	seq->base = hyb_bits_get(p, 0, 8 * len);
	seq->bits = 0;
	p += len;
	if (seq->model == HYB_SEQ_CONST)
		return p;

	if (p >= end)
		return NULL;
	seq->bits = *p++;
	if (seq->bits > 64)
		return NULL;

	if (seq->model == HYB_SEQ_LINEAR)
	{
		if (end - p < 2)
			return NULL;
		seq->shift = *p++;
		len = *p++;
		if (seq->shift > 63 || len > 8 || (size_t) (end - p) < len)
			return NULL;
		seq->slope = unzigzag(hyb_bits_get(p, 0, 8 * len));
		p += len;
	}
	else if (seq->model == HYB_SEQ_EF || seq->model == HYB_SEQ_GAPS)
	{
		p = open_unary(seq, p, end);
		if (p == NULL)
			return NULL;
	}
	else if (seq->model == HYB_SEQ_STEPS)
		return steps_open(seq, p, end);
	if ((size_t) (end - p) < hyb_packed_bytes(n, seq->bits))
		return NULL;
	seq->data = p;
	return p + hyb_packed_bytes(n, seq->bits);
}

/*
 * Position of the i-th one among the high bits.  The ones of a damaged
 * sequence may be too few: the walk ends at high_bits then, and the value is
 * wrong, but within bounds.
 */
uint32_t
hyb_seq_ef_select(const HybSeq *seq, uint32_t i)
{
	uint32_t	pos = 0;
	uint32_t	w;
	uint64_t	word;

	HYB_ASSERT(seq->model == HYB_SEQ_EF && i < seq->n);
	if (i >= HYB_SEQ_EF_SAMPLE)
	{
		uint32_t	j = i / HYB_SEQ_EF_SAMPLE;

		pos = hyb_load16(seq->samples + 2 * (j - 1));
		i -= j * HYB_SEQ_EF_SAMPLE;
		if (pos >= seq->high_bits)
			return seq->high_bits;
	}
	w = pos >> 6;
	word = hyb_load64le(seq->high + 8 * w) & (~UINT64_C(0) << (pos & 63));
	for (;;)
	{
		unsigned	c = hyb_popcount64(word);

		if (i < c)
			return (w << 6) + hyb_select64(word, i);
		i -= c;
		w++;
		if ((w << 6) >= seq->high_bits)
			return seq->high_bits;
		word = hyb_load64le(seq->high + 8 * w);
	}
}

/*
 * First one at or after pos, where `flip` is all ones the first zero; high_bits
 * or, of zeroes, something above it if there is none.
 */
HYB_ALWAYS_INLINE uint32_t
ef_next(const HybSeq *seq, uint32_t pos, uint64_t flip)
{
	uint32_t	w = pos >> 6;
	uint64_t	word;

	if (pos >= seq->high_bits)
		return seq->high_bits;
	word = (hyb_load64le(seq->high + 8 * w) ^ flip) & (~UINT64_C(0) << (pos & 63));
	while (word == 0)
	{
		w++;
		if ((w << 6) >= seq->high_bits)
			return seq->high_bits;
		word = hyb_load64le(seq->high + 8 * w) ^ flip;
	}
	return (w << 6) + (uint32_t) __builtin_ctzll(word);
}

uint64_t
hyb_seq_get_next(const HybSeq *seq, HybSeqCursor *cursor, uint32_t i)
{
	uint32_t	pos;

	HYB_ASSERT(i < seq->n);
	if (seq->model != HYB_SEQ_EF)
		return hyb_seq_get(seq, i);
	if (i > 0 && i == cursor->next)
		pos = ef_next(seq, cursor->pos, 0);
	else
		pos = hyb_seq_ef_select(seq, i);
	cursor->next = i + 1;
	cursor->pos = pos + 1;
	return seq->base + ((uint64_t) (pos - i) << seq->bits) +
		hyb_bits_get(seq->data, (uint64_t) i * seq->bits, seq->bits);
}

/* Like hyb_seq_get_next for each, with the ones taken word by word. */
static void
ef_decode(const HybSeq *seq, uint32_t from, uint32_t n, uint64_t *out)
{
	unsigned	bits = seq->bits;
	uint64_t	bitoff = (uint64_t) from * bits;
	uint32_t	pos = hyb_seq_ef_select(seq, from);
	uint32_t	w = pos >> 6;
	uint64_t	word = 0;

	if (pos < seq->high_bits)
		word = hyb_load64le(seq->high + 8 * w) & (~UINT64_C(0) << (pos & 63));
	for (uint32_t i = from; i < from + n; i++, bitoff += bits)
	{
		while (word == 0 && ((w + 1) << 6) < seq->high_bits)
			word = hyb_load64le(seq->high + 8 * ++w);
		/* too few ones: damaged, and the value is wrong but harmless */
		pos = word == 0 ? seq->high_bits : (w << 6) + (uint32_t) __builtin_ctzll(word);
		word &= word - 1;
		out[i - from] = seq->base + ((uint64_t) (pos - i) << bits) +
			hyb_bits_get(seq->data, bitoff, bits);
	}
}

void
hyb_seq_decode(const HybSeq *seq, uint32_t from, uint32_t n, uint64_t *out)
{
	unsigned	bits = seq->bits;
	uint64_t	bitoff = (uint64_t) from * bits;
	uint64_t	acc;

	HYB_ASSERT(from <= seq->n && n <= seq->n - from);
	switch (seq->model)
	{
		case HYB_SEQ_CONST:
			for (uint32_t i = 0; i < n; i++)
				out[i] = seq->base;
			break;
		case HYB_SEQ_FOR:
			for (uint32_t i = 0; i < n; i++, bitoff += bits)
				out[i] = seq->base + hyb_bits_get(seq->data, bitoff, bits);
			break;
		case HYB_SEQ_LINEAR:
			acc = (uint64_t) seq->slope * from;
			for (uint32_t i = 0; i < n; i++, bitoff += bits)
			{
				out[i] = seq->base +
					(uint64_t) ((int64_t) acc >> seq->shift) +
					hyb_bits_get(seq->data, bitoff, bits);
				acc += (uint64_t) seq->slope;
			}
			break;
		case HYB_SEQ_GAPS:
			if (n > 0)
				gaps_decode(seq, from, n, out);
			break;
		case HYB_SEQ_STEPS:
			steps_decode(seq, from, n, out);
			break;
		default:
			if (n > 0)
				ef_decode(seq, from, n, out);
			break;
	}
}

/* ---- searching ---- */

static uint32_t
bisect(const HybSeq *seq, uint32_t lo, uint32_t hi, uint64_t x)
{
	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (hyb_seq_get(seq, mid) < x)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * First of the packed numbers [lo, hi) that is not below d; hi if there is
 * none.  Half of the numbers are passed over by arithmetic, not by a branch:
 * which half it is cannot be predicted.
 */
static inline uint32_t
packed_lower_bound(const uint8_t *data, unsigned bits, uint32_t lo,
				   uint32_t hi, uint64_t d)
{
	uint32_t	n = hi - lo;

	HYB_ASSERT(lo <= hi);
	if (n == 0)
		return lo;
	while (n > 1)
	{
		uint32_t	half = n / 2;
		uint32_t	below = hyb_bits_get(data, (uint64_t) (lo + half - 1) * bits,
										 bits) < d;

		lo += half & -below;
		n -= half;
	}
	return lo + (hyb_bits_get(data, (uint64_t) lo * bits, bits) < d);
}

/*
 * The elements with high part h = (x - base) >> bits are the run of ones after
 * the h-th zero; the samples tell which zero to start counting from.
 */
static uint32_t
ef_lower_bound(const HybSeq *seq, uint64_t x)
{
	uint64_t	d = x - seq->base;
	uint64_t	h = d >> seq->bits;
	uint64_t	low = seq->bits == 0 ? 0 : d & (~UINT64_C(0) >> (64 - seq->bits));
	uint32_t	first = 0;
	uint32_t	end;
	uint32_t	pos = 0;

	if (x <= seq->base)
		return 0;
	if (h > seq->high_bits - seq->n)
		return seq->n;
	if (h > 0)
	{
		uint32_t	a = 0;
		uint32_t	b = nsamples(HYB_SEQ_EF, seq->n);
		uint32_t	zeros = 0;
		uint32_t	w;
		uint64_t	word;

		/* the last sample whose high part is < h */
		while (a < b)
		{
			uint32_t	mid = (a + b + 1) / 2;
			uint32_t	p = hyb_load16(seq->samples + 2 * (mid - 1));

			if (p - mid * HYB_SEQ_EF_SAMPLE < h)
				a = mid;
			else
				b = mid - 1;
		}
		if (a > 0)
		{
			pos = hyb_load16(seq->samples + 2 * (a - 1));
			zeros = pos - a * HYB_SEQ_EF_SAMPLE;
			if (pos >= seq->high_bits || zeros >= h)
				return seq->n;	/* damaged */
		}
		w = pos >> 6;
		word = ~hyb_load64le(seq->high + 8 * w) & (~UINT64_C(0) << (pos & 63));
		for (;;)
		{
			unsigned	c = hyb_popcount64(word);

			if (h <= (uint64_t) zeros + c)
				break;
			zeros += c;
			w++;
			if ((w << 6) >= seq->high_bits)
				return seq->n;
			word = ~hyb_load64le(seq->high + 8 * w);
		}
		pos = (w << 6) + hyb_select64(word, (unsigned) (h - zeros - 1)) + 1;
		first = pos - (uint32_t) h;
	}
	end = ef_next(seq, pos, ~UINT64_C(0));
	end = first + ((end < seq->high_bits ? end : seq->high_bits) - pos);
	if (end > seq->n || first > end)
		return seq->n;			/* damaged */

	return packed_lower_bound(seq->data, seq->bits, first, end, low);
}

uint32_t
hyb_seq_lower_bound(const HybSeq *seq, uint32_t lo, uint32_t hi, uint64_t x)
{
	HYB_ASSERT(hi <= seq->n);
	if (lo >= hi)
		return hi;
	switch (seq->model)
	{
		case HYB_SEQ_CONST:
			return seq->base >= x ? lo : hi;

		case HYB_SEQ_FOR:
			if (x <= seq->base)
				return lo;
			return packed_lower_bound(seq->data, seq->bits, lo, hi, x - seq->base);

		case HYB_SEQ_LINEAR:
			if (seq->slope > 0)
			{
				/*
				 * The line tells where x would lie; residuals move that by
				 * less than 2^bits / slope elements.  The guess is checked,
				 * so rounding and wrapped arithmetic cost time only.
				 */
				double		step = (double) seq->slope /
					(double) (UINT64_C(1) << seq->shift);
				double		at = (double) (int64_t) (x - seq->base) / step;
				double		slack = (double) (seq->bits == 0 ? 0 :
											  ~UINT64_C(0) >> (64 - seq->bits)) / step;
				uint32_t	a = lo;
				uint32_t	b = hi;

				if (at - slack - 2 > lo && at - slack - 2 < hi)
					a = (uint32_t) (at - slack - 2);
				if (at + 2 < hi && at + 2 > a)
					b = (uint32_t) (at + 2);
				if ((a == lo || hyb_seq_get(seq, a - 1) < x) &&
					(b == hi || hyb_seq_get(seq, b) >= x))
					return bisect(seq, a, b, x);
			}
			return bisect(seq, lo, hi, x);

		case HYB_SEQ_GAPS:
			return gaps_lower_bound(seq, lo, hi, x);

		case HYB_SEQ_STEPS:
			return steps_lower_bound(seq, lo, hi, x);

		default:
			{
				uint32_t	r = ef_lower_bound(seq, x);

				return r < lo ? lo : r > hi ? hi : r;
			}
	}
}
