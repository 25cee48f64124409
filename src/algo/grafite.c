/*
 * grafite.c
 *		Grafite range filters.
 */
#include "algo/grafite.h"

#include <stdlib.h>

/* Buckets from one sample to the next. */
#define BUCKETS_PER_SAMPLE	64

/* An image, its parts. */
typedef struct Grafite
{
	uint32_t	n;
	unsigned	low_bits;
	bool		dense;
	uint64_t	bound;			/* r: codes are less */
	const uint8_t *samples;
	const uint8_t *low;
	const uint8_t *high;
	uint32_t	words;			/* of high */
} Grafite;

static inline uint32_t
sample_count(uint32_t n)
{
	return (n - 1) / BUCKETS_PER_SAMPLE;
}

static inline size_t
low_size(uint32_t n, unsigned low_bits)
{
	return ((size_t) n * low_bits + 7) / 8;
}

static inline uint32_t
word_count(uint32_t n)
{
	return (2 * n + 63) / 64;
}

static inline size_t
grafite_size(uint32_t n, unsigned low_bits)
{
	return HYB_GRAFITE_HEADER + 2 * (size_t) sample_count(n) +
		low_size(n, low_bits) + 8 * (size_t) word_count(n);
}

/* What a block of numbers is moved by. */
static inline uint64_t
shift_of(uint64_t group, uint64_t block, uint64_t bound)
{
	return hyb_hash_mix(group ^ hyb_hash_mix(block + UINT64_C(0x9E3779B97F4A7C15))) % bound;
}

static inline uint64_t
code_of(bool dense, uint64_t group, uint64_t number, uint64_t bound)
{
	uint64_t	code = number % bound;

	if (dense)
		return code;
	code += shift_of(group, number / bound, bound);
	HYB_ASSERT(code < 2 * bound);
	return code >= bound ? code - bound : code;
}

static inline uint8_t
group_bits(uint64_t group)
{
	return (uint8_t) hyb_hash_mix(group);
}

/* ---- building ---- */

/* Is the set dense?  Then with as few low bits as that takes. */
static void
choose_bits(HybGrafiteBuilder *builder, const HybGrafiteKey *keys, uint32_t n,
			unsigned low_bits)
{
	uint64_t	least = keys[0].number;
	uint64_t	greatest = keys[0].number;

	builder->low_bits = low_bits;
	builder->dense = false;
	builder->group = keys[0].group;
	for (uint32_t i = 1; i < n; i++)
	{
		if (keys[i].group != keys[0].group)
			return;
		if (keys[i].number < least)
			least = keys[i].number;
		if (keys[i].number > greatest)
			greatest = keys[i].number;
	}
	builder->dense = greatest - least < (uint64_t) n << low_bits;
	while (builder->dense && builder->low_bits > 0 &&
		   greatest - least < (uint64_t) n << (builder->low_bits - 1))
		builder->low_bits--;
}

static int
compare_codes(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

size_t
hyb_grafite_build(HybGrafiteBuilder *builder, const HybGrafiteKey *keys,
				  uint32_t n, unsigned low_bits)
{
	uint64_t	bound;

	if (n == 0 || n > HYB_GRAFITE_MAX_KEYS)
		return 0;
	if (low_bits > HYB_GRAFITE_MAX_LOW)
		low_bits = HYB_GRAFITE_MAX_LOW;
	builder->n = n;
	choose_bits(builder, keys, n, low_bits);
	bound = (uint64_t) n << builder->low_bits;
	for (uint32_t i = 0; i < n; i++)
		builder->codes[i] = code_of(builder->dense, keys[i].group,
									keys[i].number, bound);
	qsort(builder->codes, n, sizeof(uint64_t), compare_codes);
	return grafite_size(n, builder->low_bits);
}

void
hyb_grafite_write(const HybGrafiteBuilder *builder, uint8_t first,
				  uint8_t second, uint8_t *image)
{
	uint32_t	n = builder->n;
	uint32_t	sample = 1;
	uint8_t    *low = image + HYB_GRAFITE_HEADER + 2 * sample_count(n);
	uint8_t    *high = low + low_size(n, builder->low_bits);

	HYB_ASSERT(n > 0 && n <= HYB_GRAFITE_MAX_KEYS &&
			   builder->low_bits <= HYB_GRAFITE_MAX_LOW);
	memset(image, 0, grafite_size(n, builder->low_bits));
	hyb_store16(image, n);
	image[2] = (uint8_t) builder->low_bits;
	image[3] = first;
	image[4] = second;
	image[5] = builder->dense;
	image[6] = builder->dense ? group_bits(builder->group) : 0;
	for (uint32_t i = 0; i <= n; i++)
	{
		uint64_t	code = i < n ? builder->codes[i] : (uint64_t) n << builder->low_bits;
		uint64_t	one = (code >> builder->low_bits) + i;

		for (; sample <= sample_count(n) && sample * BUCKETS_PER_SAMPLE <= one - i; sample++)
			hyb_store16(image + HYB_GRAFITE_HEADER + 2 * (sample - 1), i);
		if (i == n)
			break;
		HYB_ASSERT(i == 0 || builder->codes[i - 1] <= code);
		HYB_ASSERT(one < 64 * (uint64_t) word_count(n));
		hyb_bits_put(low, (uint64_t) i * builder->low_bits, builder->low_bits,
					 code & ((UINT64_C(1) << builder->low_bits) - 1));
		high[one / 8] |= (uint8_t) (1 << one % 8);
	}
	HYB_ASSERT(hyb_grafite_verify(image, grafite_size(n, builder->low_bits)) == NULL);
}

/* ---- reading ---- */

static bool
open_image(Grafite *grafite, const uint8_t *image, size_t size)
{
	if (size < HYB_GRAFITE_HEADER)
		return false;
	grafite->n = hyb_load16(image);
	grafite->low_bits = image[2];
	if (grafite->n == 0 || grafite->n > HYB_GRAFITE_MAX_KEYS ||
		grafite->low_bits > HYB_GRAFITE_MAX_LOW || image[5] > 1 ||
		size != grafite_size(grafite->n, grafite->low_bits))
		return false;
	grafite->dense = image[5];
	grafite->bound = (uint64_t) grafite->n << grafite->low_bits;
	grafite->samples = image + HYB_GRAFITE_HEADER;
	grafite->low = grafite->samples + 2 * sample_count(grafite->n);
	grafite->high = grafite->low + low_size(grafite->n, grafite->low_bits);
	grafite->words = word_count(grafite->n);
	return true;
}

/*
 * The low bits of a code.  The 8 bytes from any of them on end before the
 * image does, since the high bits follow; with 48 bits at most no ninth one is
 * read.
 */
static inline uint64_t
low_of(const Grafite *grafite, uint32_t i)
{
	return hyb_bits_get(grafite->low, (uint64_t) i * grafite->low_bits,
						grafite->low_bits);
}

/*
 * Where a bucket's ones begin in the high bits: not in them, if the image is
 * damaged.
 */
static uint32_t
bucket_start(const Grafite *grafite, uint32_t bucket)
{
	uint32_t	sample = bucket / BUCKETS_PER_SAMPLE;
	uint32_t	zeros = bucket % BUCKETS_PER_SAMPLE;
	uint32_t	pos = sample * BUCKETS_PER_SAMPLE;
	uint32_t	word;
	uint64_t	bits;

	if (sample > 0)
		pos += hyb_load16(grafite->samples + 2 * (sample - 1));
	word = pos / 64;
	if (zeros == 0 || word >= grafite->words)
		return pos;

	/* the place behind that number of zeros */
	bits = ~hyb_load64le(grafite->high + 8 * word) & ~UINT64_C(0) << pos % 64;
	for (;;)
	{
		uint32_t	count = hyb_popcount64(bits);

		if (count >= zeros)
			return 64 * word + hyb_select64(bits, zeros - 1) + 1;
		zeros -= count;
		if (++word >= grafite->words)
			return 64 * grafite->words;
		bits = ~hyb_load64le(grafite->high + 8 * word);
	}
}

/* The first one at a position or behind it, else the end of the high bits. */
static inline uint32_t
next_one(const Grafite *grafite, uint32_t pos)
{
	uint32_t	word = pos / 64;
	uint64_t	bits;

	if (word >= grafite->words)
		return 64 * grafite->words;
	bits = hyb_load64le(grafite->high + 8 * word) & ~UINT64_C(0) << pos % 64;
	while (bits == 0)
	{
		if (++word >= grafite->words)
			return 64 * grafite->words;
		bits = hyb_load64le(grafite->high + 8 * word);
	}
	return 64 * word + (uint32_t) __builtin_ctzll(bits);
}

/* Ones that follow each other from a position on. */
static inline uint32_t
run_length(const Grafite *grafite, uint32_t pos)
{
	uint32_t	first = pos;

	for (;;)
	{
		uint64_t	zeros;

		if (pos / 64 >= grafite->words)
			return pos - first;
		zeros = ~(hyb_load64le(grafite->high + 8 * (pos / 64)) >> pos % 64);
		if (pos % 64 > 0)
			zeros &= ~UINT64_C(0) >> pos % 64;
		if (zeros != 0)
			return pos + (uint32_t) __builtin_ctzll(zeros) - first;
		pos += 64 - pos % 64;
	}
}

/* Is there a code from `from` to `to`, both included and less than the bound? */
static HybFilterAnswer
has_code(const Grafite *grafite, uint64_t from, uint64_t to)
{
	uint32_t	bucket = (uint32_t) (from >> grafite->low_bits);
	uint64_t	from_low = from & ((UINT64_C(1) << grafite->low_bits) - 1);
	uint32_t	pos = bucket_start(grafite, bucket);
	uint32_t	i = pos - bucket;	/* first code of the bucket */
	uint32_t	run = run_length(grafite, pos);
	uint32_t	lo = 0;
	uint32_t	hi = run;

	HYB_ASSERT(from <= to && to < grafite->bound);
	if (pos >= 64 * grafite->words || i > grafite->n || run > grafite->n - i)
		return HYB_ANSWER_DAMAGED;

	/* the bucket's first code that is not less, or what follows the bucket */
	while (lo < hi)
	{
		uint32_t	middle = (lo + hi) / 2;

		if (low_of(grafite, i + middle) < from_low)
			lo = middle + 1;
		else
			hi = middle;
	}
	i += lo;
	if (i == grafite->n)
		return HYB_ANSWER_NO;
	pos = next_one(grafite, pos + lo);
	if (pos >= 64 * grafite->words)
		return HYB_ANSWER_DAMAGED;
	return ((uint64_t) (pos - i) << grafite->low_bits | low_of(grafite, i)) <= to ?
		HYB_ANSWER_MAYBE : HYB_ANSWER_NO;
}

/* The same for numbers of one block. */
static HybFilterAnswer
ask_block(const Grafite *grafite, uint64_t group, uint64_t low, uint64_t high)
{
	uint64_t	from = code_of(grafite->dense, group, low, grafite->bound);
	uint64_t	len = high - low;	/* less than the bound */
	HybFilterAnswer answer;

	HYB_ASSERT(low <= high && len < grafite->bound);
	if (len < grafite->bound - from)
		return has_code(grafite, from, from + len);
	answer = has_code(grafite, from, grafite->bound - 1);
	return answer != HYB_ANSWER_NO ? answer :
		has_code(grafite, 0, len - (grafite->bound - from));
}

bool
hyb_grafite_numbers(const uint8_t *image, size_t size, uint8_t *first,
					uint8_t *second)
{
	if (size < HYB_GRAFITE_HEADER)
		return false;
	*first = image[3];
	*second = image[4];
	return true;
}

HybFilterAnswer
hyb_grafite_ask(const uint8_t *image, size_t size, uint64_t group,
				uint64_t low, uint64_t high)
{
	Grafite		grafite;
	uint64_t	border;
	HybFilterAnswer answer;

	if (!open_image(&grafite, image, size))
		return HYB_ANSWER_DAMAGED;
	if (low > high || (grafite.dense && image[6] != group_bits(group)))
		return HYB_ANSWER_NO;
	if (high - low >= grafite.bound)
		return HYB_ANSWER_MAYBE;
	border = high - high % grafite.bound;
	if (low >= border)
		return ask_block(&grafite, group, low, high);
	answer = ask_block(&grafite, group, low, border - 1);
	return answer != HYB_ANSWER_NO ? answer :
		ask_block(&grafite, group, border, high);
}

const char *
hyb_grafite_verify(const void *bytes, size_t size)
{
	const uint8_t *image = bytes;
	Grafite		grafite;
	uint32_t	pos = 0;
	uint32_t	sample = 1;
	uint64_t	last = 0;

	if (!open_image(&grafite, image, size) ||
		(!grafite.dense && image[6] != 0) || image[7] != 0)
		return "the header";
	for (uint32_t i = 0;; i++, pos++)
	{
		uint32_t	bucket;
		uint64_t	code;

		pos = next_one(&grafite, pos);
		bucket = i < grafite.n ? pos - i : grafite.n;
		for (; sample <= sample_count(grafite.n) && sample * BUCKETS_PER_SAMPLE <= bucket; sample++)
			if (hyb_load16(grafite.samples + 2 * (sample - 1)) != i)
				return "a sample";
		if (i == grafite.n)
			return pos < 64 * grafite.words ? "the number of codes" : NULL;
		if (bucket >= grafite.n)
			return "the number of codes";
		code = (uint64_t) bucket << grafite.low_bits | low_of(&grafite, i);
		if (code < last)
			return "the order of codes";
		last = code;
	}
}
