/*
 * inorder.c
 *		Long byte strings made shorter in order: inorder.h says how.
 *
 * The estimates are those of Mahoney's PAQ: counts of each context adapt fast
 * at first, and are mixed in the logistic domain by weights that are trained
 * bit by bit.
 */
#include "algo/bits.h"
#include "algo/inorder.h"

#include <string.h>

#define ORDERS			4		/* 0 to 3 bytes of context */
#define INPUTS			(ORDERS + 1)	/* and what came last time */
#define COUNTERS_LOG	14
#define PLACES_LOG		12
#define MATCH_CONTEXT	4
#define MATCH_LENGTHS	32		/* that are told apart */
#define WEIGHT_SETS		4
#define SCALE			4096	/* probabilities are parts of this */
#define TOP_WEIGHT		(1 << 24)	/* 65536 is 1 */
#define TOP_LOGIT		2047	/* ln(p / (1 - p)) in 256ths, at most */

/*
 * How likely it is that a bit is 1: the upper 22 bits, with a flipped sign so
 * that zero means even odds; and how often it was asked: the lower 10 bits.
 */
typedef uint32_t Counter;

#define COUNTER_EVEN	UINT32_C(0x80000000)
#define COUNTER_LIMIT	255
#define MATCH_LIMIT		1000

typedef struct Model
{
	Counter		counters[ORDERS][1 << COUNTERS_LOG];
	Counter		matches[MATCH_LENGTHS][2];	/* by the bit that is expected */
	uint32_t	places[1 << PLACES_LOG];	/* of bytes after a context */
	int32_t		weights[WEIGHT_SETS][INPUTS];

	/* at the byte at hand */
	uint32_t	contexts[ORDERS];
	uint32_t	match;			/* place of the byte that is expected, or 0 */
	uint32_t	match_len;		/* bytes before it that agree */
	uint32_t	bits;			/* a 1, and the bits of the byte so far */

	/* at the bit at hand */
	Counter    *asked[INPUTS];	/* NULL: that one does not know */
	int32_t		logits[INPUTS];
	int32_t    *weight;
	int32_t		estimate;
} Model;

/* Large, and initialized for each string: no place for the stack */
static Model the_model;

static int16_t squashed[2 * TOP_LOGIT + 1];
static int16_t stretched[SCALE];
static int32_t reciprocals[MATCH_LIMIT + 1];

/* SCALE / (1 + e^-x), x in 256ths, by interpolation */
static int32_t
squash_slowly(int32_t x)
{
	static const int16_t points[33] = {
		1, 2, 3, 6, 10, 16, 27, 45, 73, 120, 194, 310, 488, 747, 1101, 1546,
		2047, 2549, 2994, 3348, 3607, 3785, 3901, 3975, 4024, 4050, 4068, 4079,
		4085, 4089, 4092, 4093, 4094
	};
	int32_t		i = (x + 2048) / 128;
	int32_t		rest = (x + 2048) % 128;

	return (points[i] * (128 - rest) + points[i + 1] * rest + 64) / 128;
}

static void
make_tables(void)
{
	int32_t		next = 0;

	if (reciprocals[0] != 0)
		return;
	for (int32_t x = -TOP_LOGIT; x <= TOP_LOGIT; x++)
	{
		int32_t		p = squash_slowly(x);

		squashed[x + TOP_LOGIT] = (int16_t) p;
		for (; next <= p; next++)
			stretched[next] = (int16_t) x;
	}
	for (; next < SCALE; next++)
		stretched[next] = TOP_LOGIT;
	for (int32_t n = MATCH_LIMIT; n >= 0; n--)
		reciprocals[n] = 131072 / (2 * n + 3);
}

static int32_t
squash(int64_t x)
{
	return x > TOP_LOGIT ? SCALE - 1 : x < -TOP_LOGIT ? 1 :
		squashed[x + TOP_LOGIT];
}

static void
start_model(Model *m)
{
	make_tables();
	memset(m, 0, sizeof(Model));
	for (int set = 0; set < WEIGHT_SETS; set++)
		for (int i = 0; i < INPUTS; i++)
			m->weights[set][i] = i < ORDERS ? 1 << 14 : 3 << 13;
}

/* The last bytes before `at`, the last one lowest */
static uint32_t
last_bytes(const uint8_t *text, size_t at)
{
	uint32_t	result = 0;

	for (size_t i = at < 4 ? 0 : at - 4; i < at; i++)
		result = result << 8 | text[i];

	return result;
}

/* Where a context was seen last: MATCH_CONTEXT bytes */
static uint32_t *
place_of(Model *m, uint32_t last)
{
	return &m->places[(last * UINT32_C(2654435761)) >> (32 - PLACES_LOG)];
}

/* The byte `at` is next, those before it are known. */
static void
start_byte(Model *m, const uint8_t *text, size_t at)
{
	uint32_t	last = last_bytes(text, at);

	HYB_ASSERT(m->match < at || m->match == 0);
	m->contexts[0] = 0;
	m->contexts[1] = (last & 0xFF) * UINT32_C(0x2F0B4C47) + 1;
	m->contexts[2] = (last & 0xFFFF) * UINT32_C(0x3D4D51CB) + 2;
	m->contexts[3] = (last & 0xFFFFFF) * UINT32_C(0x6F4F2A35) + 3;
	m->bits = 1;

	if (m->match != 0 && text[m->match] == text[at - 1])
	{
		m->match++;
		m->match_len++;
	}
	else
		m->match = m->match_len = 0;
	if (at < MATCH_CONTEXT)
		return;
	if (m->match == 0)
	{
		uint32_t	place = *place_of(m, last);

		while (place != 0 && m->match_len < MATCH_LENGTHS &&
			   m->match_len < place &&
			   text[place - 1 - m->match_len] == text[at - 1 - m->match_len])
			m->match_len++;
		if (m->match_len >= MATCH_CONTEXT)
			m->match = place;
		else
			m->match_len = 0;
	}
	*place_of(m, last) = (uint32_t) at;
}

/* Bytes that are not encoded: matches may be there. */
static void
learn_plain_bytes(Model *m, const uint8_t *text, size_t len)
{
	for (size_t at = MATCH_CONTEXT; at < len; at++)
		*place_of(m, last_bytes(text, at)) = (uint32_t) at;
}

static void
ask(Model *m, int input, Counter *counter)
{
	m->asked[input] = counter;
	m->logits[input] = stretched[(*counter ^ COUNTER_EVEN) >> 20];
}

/* How likely the next bit of a byte is 1: of SCALE parts, from 1 up */
static int32_t
estimate_bit(Model *m, const uint8_t *text)
{
	int			set = 0;
	int64_t		sum = 0;

	for (int i = 0; i < ORDERS; i++)
	{
		uint32_t	hash = (m->contexts[i] + m->bits * UINT32_C(0x9E3779B1)) *
			UINT32_C(0x85EBCA6B);

		ask(m, i, &m->counters[i][hash >> (32 - COUNTERS_LOG)]);
	}
	m->asked[ORDERS] = NULL;
	m->logits[ORDERS] = 0;
	if (m->match != 0)
	{
		uint32_t	expected = text[m->match] | 0x100;
		int			left = 8;	/* bits of the byte */

		for (uint32_t b = m->bits; b > 1; b >>= 1)
			left--;
		if (expected >> left == m->bits)
		{
			uint32_t	len = m->match_len < MATCH_LENGTHS ? m->match_len :
				MATCH_LENGTHS - 1;

			ask(m, ORDERS, &m->matches[len][(expected >> (left - 1)) & 1]);
			set = len >= 24 ? 3 : len >= 8 ? 2 : 1;
		}
	}
	m->weight = m->weights[set];
	for (int i = 0; i < INPUTS; i++)
		sum += (int64_t) m->logits[i] * m->weight[i];
	m->estimate = squash(sum / 65536);
	HYB_ASSERT(m->estimate > 0 && m->estimate < SCALE);
	return m->estimate;
}

static void
adapt_counter(Counter *counter, int bit, uint32_t limit)
{
	uint32_t	value = *counter ^ COUNTER_EVEN;
	uint32_t	n = value & 1023;
	int32_t		error = ((int32_t) bit << 22) - (int32_t) (value >> 10);
	int64_t		change = (int64_t) error * reciprocals[n] / 65536;
	int64_t		p = (int64_t) (value >> 10) + change;

	if (p > (1 << 22) - 1)
		p = (1 << 22) - 1;
	*counter = ((uint32_t) p << 10 | (n < limit ? n + 1 : n)) ^ COUNTER_EVEN;
}

/* That bit it was. */
static void
train(Model *m, int bit)
{
	int32_t		error = (bit * SCALE - m->estimate) * 6;

	HYB_ASSERT((bit == 0 || bit == 1) && m->bits >= 1 && m->bits < 0x100);
	for (int i = 0; i < INPUTS; i++)
	{
		int32_t		weight = m->weight[i] + m->logits[i] * error / 16384;

		m->weight[i] = weight > TOP_WEIGHT ? TOP_WEIGHT :
			weight < -TOP_WEIGHT ? -TOP_WEIGHT : weight;
	}
	for (int i = 0; i < ORDERS; i++)
		adapt_counter(m->asked[i], bit, COUNTER_LIMIT);
	if (m->asked[ORDERS] != NULL)
		adapt_counter(m->asked[ORDERS], bit, MATCH_LIMIT);
	m->bits = m->bits << 1 | (uint32_t) bit;
}

/* ---- ranges ---- */

/* Numbers are as many bytes as there are; these are the four at hand. */
typedef struct Range
{
	uint32_t	low;
	uint32_t	high;			/* inclusive */
} Range;

/* Where a bit cuts the range that is 1 with p parts of 65536, 0 < p < 65536 */
static uint32_t
cut(const Range *r, uint32_t p)
{
	HYB_ASSERT(r->low < r->high && p > 0 && p < 65536);
	return r->low +
		(uint32_t) ((uint64_t) (r->high - r->low) * (65536 - p) >> 16);
}

/* The first byte is the same in the whole range. */
static bool
settled(const Range *r)
{
	return (r->low ^ r->high) >> 24 == 0;
}

static void
shift(Range *r)
{
	r->low <<= 8;
	r->high = r->high << 8 | 0xFF;
}

#define GOES_ON		65535		/* how likely, of 65536, a string goes on */
#define LIKELY(e)	((uint32_t) (e) * 16 + 8)

typedef struct Encoder
{
	Range		range;
	uint8_t    *out;
	size_t		n;
	size_t		limit;
} Encoder;

static void
put_bit(Encoder *e, int bit, uint32_t p)
{
	uint32_t	middle = cut(&e->range, p);

	/* both parts hold a number */
	HYB_ASSERT(middle >= e->range.low && middle < e->range.high);
	if (bit)
		e->range.low = middle + 1;
	else
		e->range.high = middle;
	while (settled(&e->range))
	{
		if (e->n < e->limit)
			e->out[e->n] = (uint8_t) (e->range.low >> 24);
		e->n++;
		shift(&e->range);
	}
}

/* The number in the range that ends in most zero bytes, without these */
static size_t
finish_text(Encoder *e)
{
	for (int bytes = 0; bytes <= 4; bytes++)
	{
		uint32_t	rest = bytes < 4 ? UINT32_MAX >> (8 * bytes) : 0;
		uint64_t	number = ((uint64_t) e->range.low + rest) & ~(uint64_t) rest;

		if (number > e->range.high)
			continue;
		for (int i = 0; i < bytes; i++, e->n++)
			if (e->n < e->limit)
				e->out[e->n] = (uint8_t) (number >> (24 - 8 * i));
		break;
	}
	if (e->n > e->limit)
		return 0;
	while (e->n > 0 && e->out[e->n - 1] == 0)
		e->n--;
	return e->n;
}

size_t
hyb_inorder_encode(const uint8_t *src, size_t len, size_t skip,
				   uint8_t *out, size_t limit)
{
	Model	   *m = &the_model;
	Encoder		e = {.range = {0, UINT32_MAX},.out = out,.limit = limit};

	if (len > HYB_INORDER_MAX)
		return 0;
	start_model(m);
	learn_plain_bytes(m, src, skip);
	for (size_t at = skip; at < len && e.n <= limit; at++)
	{
		put_bit(&e, 1, GOES_ON);
		start_byte(m, src, at);
		for (int i = 7; i >= 0; i--)
		{
			int			bit = src[at] >> i & 1;

			put_bit(&e, bit, LIKELY(estimate_bit(m, src)));
			train(m, bit);
		}
	}
	put_bit(&e, 0, GOES_ON);
	return finish_text(&e);
}

typedef struct Decoder
{
	Range		range;
	uint32_t	number;
	const uint8_t *code;
	const uint8_t *end;
} Decoder;

static void
next_byte(Decoder *d)
{
	d->number = d->number << 8 | (d->code < d->end ? *d->code++ : 0);
}

static int
decode_bit(Decoder *d, uint32_t p)
{
	uint32_t	middle = cut(&d->range, p);
	int			bit = d->number > middle;

	if (bit)
		d->range.low = middle + 1;
	else
		d->range.high = middle;
	while (settled(&d->range))
	{
		shift(&d->range);
		next_byte(d);
	}
	return bit;
}

size_t
hyb_inorder_decode(const uint8_t *code, size_t codelen,
				   uint8_t *out, size_t skip, size_t size)
{
	Model	   *m = &the_model;
	Decoder		d = {.range = {0, UINT32_MAX},.code = code,.end = code + codelen};
	size_t		at = skip;

	start_model(m);
	learn_plain_bytes(m, out, skip);
	for (int i = 0; i < 4; i++)
		next_byte(&d);
	while (decode_bit(&d, GOES_ON))
	{
		if (at >= size)
			return 0;
		start_byte(m, out, at);
		while (m->bits < 0x100)
			train(m, decode_bit(&d, LIKELY(estimate_bit(m, out))));
		out[at++] = (uint8_t) m->bits;
	}
	return at;
}
