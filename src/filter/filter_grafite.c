/*
 * filter_grafite.c
 *		The filter kind "grafite": a range filter (algo/grafite.h) of the last
 *		key column's values.
 *
 * The last column has values of fixed length, and keys are ordered by memcmp.
 * A key is parsed from its end: the last bytes, 8 at most, are a number, and
 * what lies before them is a group.  Where two whole keys are in one group, so
 * is every key between them.  (A key whose last column is NULL is shorter; its
 * last bytes are parsed all the same, which does for questions about that key.
 * Ranges of values have none between them.)
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "algo/grafite.h"
#include "filter/filter_choice.h"
#include "filter/filter_kind.h"

/*
 * Ranges of the length that the storage parameter says are answered wrongly
 * once in 2^RANGE_BITS.
 */
#define RANGE_BITS	6

StaticAssertDecl(RANGE_BITS + 31 <= HYB_GRAFITE_MAX_LOW,
				 "filter_range is an int");

typedef struct GrafiteFilterBuilder
{
	unsigned	low_bits;
	uint8		nkeys;			/* key columns */
	uint8		width;			/* of the number, in bytes */
	uint32		n;
	HybGrafiteKey keys[HYB_GRAFITE_MAX_KEYS];
	HybGrafiteBuilder codes;
} GrafiteFilterBuilder;

static uint8
number_width(const HybKeyDesc *desc)
{
	return Min(desc->cols[desc->nkeys - 1].width, sizeof(uint64));
}

static HybGrafiteKey
parse_key(const uint8 *key, uint32 len, uint8 width)
{
	HybGrafiteKey parsed = {0};
	uint32		start = len - Min(width, len);

	parsed.group = hyb_byte_hash(key, start);
	for (uint32 i = start; i < len; i++)
		parsed.number = parsed.number << 8 | key[i];
	return parsed;
}

static void *
grafite_builder_create(const HybIndex *ix)
{
	GrafiteFilterBuilder *builder = palloc(sizeof(GrafiteFilterBuilder));
	uint32		range = (uint32) hyb_filter_range(ix->rel);

	builder->low_bits = hyb_bit_width(range - 1) + RANGE_BITS;
	builder->nkeys = (uint8) ix->desc->nkeys;
	builder->width = number_width(ix->desc);
	Assert(builder->width > 0);
	return builder;
}

static void
grafite_begin(void *arg, uint32 times)
{
	((GrafiteFilterBuilder *) arg)->n = 0;
}

static bool
grafite_add(void *arg, const uint8 *key, uint32 len)
{
	GrafiteFilterBuilder *builder = arg;
	HybGrafiteKey parsed = parse_key(key, len, builder->width);

	/* rows of one key come one after the other */
	if (builder->n > 0 && builder->n <= HYB_GRAFITE_MAX_KEYS)
	{
		const HybGrafiteKey *last = &builder->keys[builder->n - 1];

		if (last->group == parsed.group && last->number == parsed.number)
			return true;
	}
	if (builder->n < HYB_GRAFITE_MAX_KEYS)
		builder->keys[builder->n] = parsed;
	builder->n++;
	return true;
}

static Size
grafite_finish(void *arg)
{
	GrafiteFilterBuilder *builder = arg;

	return hyb_grafite_build(&builder->codes, builder->keys, builder->n,
							 builder->low_bits);
}

static void
grafite_write(const void *arg, void *image)
{
	const GrafiteFilterBuilder *builder = arg;

	hyb_grafite_write(&builder->codes, builder->width, builder->nkeys, image);
}

/*
 * The least (greatest) number that the bytes of a position, without `start` of
 * them, allow; false if there is none.  Separators may end before the number
 * does.
 */
static bool
number_at(const HybPos *pos, uint32 start, uint8 width, bool upper,
		  uint64 *number)
{
	bool		after = pos->tie == HYB_AFTER || (pos->tie == HYB_AT && upper);
	uint64		greatest = ~UINT64CONST(0) >> (64 - 8 * width);
	bool		fill = pos->tie == HYB_AFTER;

	*number = 0;
	for (uint32 i = start; i < start + width; i++)
		*number = *number << 8 | (i < pos->len ? pos->key[i] : fill ? 0xFF : 0);
	if (upper && !after)
		return (*number)-- > 0;
	if (!upper && after)
		return (*number)++ < greatest;
	return true;
}

static HybFilterAnswer
grafite_probe(const void *image, Size size, const HybPos *low,
			  const HybPos *high, bool point)
{
	uint8		width;
	uint8		nkeys;
	HybGrafiteKey from;
	HybGrafiteKey to;

	if (!hyb_grafite_numbers(image, size, &width, &nkeys) || width < 1 ||
		width > sizeof(uint64))
		return HYB_ANSWER_NO_HEADER;
	if (point)
	{
		from = parse_key(low->key, low->len, width);
		to = from;
	}
	else
	{
		/* the length of keys of the group, if there is one */
		uint32		len = Max(low->ncols == nkeys ? low->len : 0,
							  high->ncols == nkeys ? high->len : 0);
		uint32		start = len - width;

		if (len < width || low->len < start || high->len < start ||
			low->len > len || high->len > len ||
			memcmp(low->key, high->key, start) != 0)
			return HYB_ANSWER_UNKNOWN;
		from.group = hyb_byte_hash(low->key, start);
		if (!number_at(low, start, width, false, &from.number) ||
			!number_at(high, start, width, true, &to.number))
			return HYB_ANSWER_NO;
	}
	switch (hyb_grafite_ask(image, size, from.group, from.number, to.number))
	{
		case HYB_GRAFITE_NO:
			return HYB_ANSWER_NO;
		case HYB_GRAFITE_MAYBE:
			return HYB_ANSWER_MAYBE;
		case HYB_GRAFITE_DAMAGED:
			break;
	}
	return HYB_ANSWER_DAMAGED;
}

/* How many keys lie in a range is not known. */
static HybFilterAnswer
grafite_count(const void *image, Size size, const HybPos *low,
			  const HybPos *high, uint32 *count, uint32 *total)
{
	return HYB_ANSWER_NO;
}

static const char *
grafite_verify(const void *image, Size size)
{
	return hyb_grafite_verify(image, size);
}

const HybFilterRoutine hyb_filter_grafite = {
	.name = "grafite",
	.builder_create = grafite_builder_create,
	.begin = grafite_begin,
	.max_keys = HYB_GRAFITE_MAX_KEYS,
	.add = grafite_add,
	.finish = grafite_finish,
	.write = grafite_write,
	.probe = grafite_probe,
	.count = grafite_count,
	.verify = grafite_verify,
};
