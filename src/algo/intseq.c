/*
 * intseq.c
 *		Choosing, writing and reading the integer models of intseq.h.
 */
#include "algo/intseq.h"

/* Residuals around a line must stay clear of signed overflow. */
#define LINEAR_MAX_BITS 60

/* Elements that tell whether a line is worth trying. */
#define LINEAR_SAMPLE	32

/* Kept positions of the ones, in EF. */
static inline uint32_t
nsamples(uint32_t n)
{
	return (n - 1) / HYB_SEQ_EF_SAMPLE;
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

/* ---- choosing ---- */

#ifdef USE_ASSERT_CHECKING
/* Is a plan one that hyb_seq_write can write for n elements? */
static bool
plan_is_valid(const HybSeqPlan *plan, uint32_t n)
{
	return n > 0 && n <= HYB_SEQ_MAX && plan->model <= HYB_SEQ_EF &&
		plan->bits <= 64 && plan->shift <= 63 && plan->size > 0 &&
		plan->high_bits <= UINT16_MAX &&
		(plan->model != HYB_SEQ_EF || (plan->ascending && plan->high_bits >= n));
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
		uint32_t	size = 4 + hyb_byte_width(min) + 2 * nsamples(n) +
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

/* Positions of ones that are kept, high parts in unary, packed low parts. */
static uint8_t *
write_ef(const HybSeqPlan *plan, const uint64_t *v, uint32_t n, uint8_t *out)
{
	unsigned	bits = plan->bits;
	uint64_t	mask = bits == 0 ? 0 : ~UINT64_C(0) >> (64 - bits);
	uint8_t    *high;
	HybPacker	low = {NULL, 0, 0, bits};

	hyb_store16(out, plan->high_bits);
	out += 2;
	high = out + 2 * nsamples(n);
	low.out = high + (plan->high_bits + 7) / 8;
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	d = v[i] - plan->base;
		uint32_t	pos = i + (uint32_t) (d >> bits);

		HYB_ASSERT(v[i] >= plan->base && pos < plan->high_bits);
		if (i > 0 && i % HYB_SEQ_EF_SAMPLE == 0)
		{
			hyb_store16(out, pos);
			out += 2;
		}
		high[pos >> 3] |= (uint8_t) (1 << (pos & 7));
		hyb_packer_put(&low, d & mask);
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

	*out++ = (uint8_t) (plan->model | (len << 2));
	for (unsigned i = 0; i < len; i++)
		*out++ = (uint8_t) (plan->base >> (8 * i));
	if (plan->model == HYB_SEQ_CONST)
		return out;
	*out++ = (uint8_t) bits;

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
	return write_ef(plan, v, n, out);
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

/* What write_ef has written, up to the low parts. */
static const uint8_t *
open_ef(HybSeq *seq, const uint8_t *p, const uint8_t *end)
{
	uint32_t	skip = 2 * nsamples(seq->n);

	if (end - p < 2 || seq->bits > 63)
		return NULL;
	seq->high_bits = hyb_load16(p);
	p += 2;
	if (seq->high_bits < seq->n ||
		(size_t) (end - p) < skip + (seq->high_bits + 7) / 8)
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
	seq->model = *p & 3;
	/* an 8-byte load and a mask; up to 8 bytes after end are readable */
	len = *p++ >> 2;
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
	else if (seq->model == HYB_SEQ_EF)
	{
		p = open_ef(seq, p, end);
		if (p == NULL)
			return NULL;
	}
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
		uint32_t	b = nsamples(seq->n);
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

		default:
			{
				uint32_t	r = ef_lower_bound(seq, x);

				return r < lo ? lo : r > hi ? hi : r;
			}
	}
}
