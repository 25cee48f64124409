/*
 * filter_kind.c
 *		The kinds of filters: SuRF, points and Grafite.
 *
 * Each maps keys and positions of an index to what its algorithm takes:
 *
 *	- SuRF (algo/fst.h) takes keys in the order of memcmp.
 *	- Points (algo/ribbon.h) takes hashes of keys whose equality is that of their
 *	  bytes (HybKeyDesc.exact).  It cannot answer about ranges.
 *	- Grafite (algo/grafite.h) takes numbers.  The last key column has values of a
 *	  fixed length, and keys are in the order of memcmp.  The last 8 bytes of a
 *	  key, or fewer if the column is shorter, are the number.  The bytes before
 *	  them are the group.  All keys between two keys of one group are in that
 *	  group.  A key whose last column is NULL is shorter.  It is cut in the same
 *	  way, which suffices for questions about that key: no range of values
 *	  contains it.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "algo/fst.h"
#include "algo/grafite.h"
#include "algo/ribbon.h"
#include "filter/filter_kind.h"

/* ---- SuRF ---- */

/* Never frees: builders live as long as their memory context. */
static void *
surf_resize(void *old, size_t size)
{
	return old == NULL ? palloc(size) : repalloc_huge(old, size);
}

static void *
surf_builder_create(const HybIndex *ix)
{
	return hyb_surf_builder_create(surf_resize,
								   (HybSurfSuffix) hyb_filter_suffix(ix->rel),
								   hyb_filter_suffix_bits(ix->rel));
}

static void
surf_begin(void *builder, uint32 times)
{
	hyb_fst_builder_reset(builder);
}

static bool
surf_add(void *builder, const uint8 *key, uint32 len)
{
	return hyb_fst_builder_add(builder, key, len);
}

static Size
surf_finish(void *builder)
{
	return hyb_fst_builder_finish(builder);
}

static void
surf_write(const void *builder, void *image)
{
	hyb_fst_builder_write(builder, image);
}

/* A position as a cut between keys; at a TID, on the generous side. */
static inline HybFstCut
cut_of(const HybPos *pos, bool upper)
{
	HybFstCut	cut;

	cut.key = pos->key;
	cut.len = pos->len;
	cut.side = pos->tie == HYB_AFTER || (upper && pos->tie == HYB_AT) ?
		HYB_CUT_AFTER : HYB_CUT_BEFORE;
	return cut;
}

static HybFilterAnswer
surf_probe(const void *image, Size size, const HybPos *low, const HybPos *high,
		   bool point)
{
	HybFst		fst;
	HybFstCut	from;
	HybFstCut	to;

	if (!hyb_fst_open(&fst, image, size))
		return HYB_ANSWER_NO_HEADER;
	/* hash suffixes know about points only */
	if (point)
		return hyb_fst_lookup(&fst, low->key, low->len);
	from = cut_of(low, false);
	to = cut_of(high, true);
	return hyb_fst_range(&fst, &from, &to);
}

static HybFilterAnswer
surf_count(const void *image, Size size, const HybPos *low, const HybPos *high,
		   uint32 *count, uint32 *total)
{
	HybFst		fst;
	HybFstCut	from = cut_of(low, false);
	HybFstCut	to = cut_of(high, true);

	if (!hyb_fst_open(&fst, image, size))
		return HYB_ANSWER_NO_HEADER;
	*total = fst.nkeys;
	return hyb_fst_count(&fst, &from, &to, count);
}

static const char *
surf_verify(const void *image, Size size)
{
	HybFst		fst;

	if (!hyb_fst_open(&fst, image, size))
		return "the header";
	return hyb_fst_verify(&fst);
}

static const HybFilterRoutine surf_kind = {
	.builder_create = surf_builder_create,
	.begin = surf_begin,
	.add = surf_add,
	.finish = surf_finish,
	.write = surf_write,
	.probe = surf_probe,
	.count = surf_count,
	.verify = surf_verify,
};

/* ---- points ---- */

/* More would make an image larger than HYB_FILTER_MAX_IMAGE. */
#define MAX_KEYS	4400

typedef struct PointsBuilder
{
	uint32		nkeys;
	unsigned	bits;			/* of a key in the ribbon */
	uint64		hashes[MAX_KEYS];
	HybRibbonBuilder ribbon;
} PointsBuilder;

static void *
points_builder_create(const HybIndex *ix)
{
	Assert(ix->desc->exact);
	Assert(hyb_ribbon_least_size(MAX_KEYS, HYB_RIBBON_BITS) + sizeof(HybFilterImage) <=
		   HYB_FILTER_MAX_IMAGE);
	return palloc(sizeof(PointsBuilder));
}

/* Each bit halves how often a probe is wrong, up to HYB_RIBBON_MAX_BITS. */
static void
points_begin(void *arg, uint32 times)
{
	PointsBuilder *builder = arg;

	Assert(times > 0);
	builder->nkeys = 0;
	builder->bits = Min(HYB_RIBBON_BITS + hyb_bit_width(times - 1),
						HYB_RIBBON_MAX_BITS);
}

static bool
points_add(void *arg, const uint8 *key, uint32 len)
{
	PointsBuilder *builder = arg;
	uint64		hash = hyb_byte_hash(key, len);

	/* rows of one key come one after the other */
	if (builder->nkeys > 0 && builder->nkeys <= MAX_KEYS &&
		builder->hashes[builder->nkeys - 1] == hash)
		return true;
	if (builder->nkeys < MAX_KEYS)
		builder->hashes[builder->nkeys] = hash;
	builder->nkeys++;
	return true;
}

static Size
points_finish(void *arg)
{
	PointsBuilder *builder = arg;

	Assert(builder->nkeys > 0);
	if (builder->nkeys > MAX_KEYS)
		return 0;
	return hyb_ribbon_build(&builder->ribbon, builder->hashes, builder->nkeys,
							builder->bits);
}

static void
points_write(const void *arg, void *image)
{
	hyb_ribbon_write(&((const PointsBuilder *) arg)->ribbon, image);
}

static HybFilterAnswer
points_probe(const void *image, Size size, const HybPos *low, const HybPos *high,
			 bool point)
{
	if (!point)
		return HYB_ANSWER_UNKNOWN;
	return hyb_ribbon_ask(image, size, hyb_byte_hash(low->key, low->len));
}

static const HybFilterRoutine points_kind = {
	.builder_create = points_builder_create,
	.begin = points_begin,
	.max_keys = MAX_KEYS,
	.add = points_add,
	.finish = points_finish,
	.write = points_write,
	.probe = points_probe,
	.verify = hyb_ribbon_verify,
};

/* ---- Grafite ---- */

/*
 * Empty ranges of filter_range values get a wrong answer once in 2^RANGE_BITS
 * times.
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
 * The least number at or above a lower position, or the greatest at or below an
 * upper one.  The number begins at byte `start`; a separator may end before the
 * number does.  Returns false if there is no such number.
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
	return hyb_grafite_ask(image, size, from.group, from.number, to.number);
}

static const HybFilterRoutine grafite_kind = {
	.builder_create = grafite_builder_create,
	.begin = grafite_begin,
	.max_keys = HYB_GRAFITE_MAX_KEYS,
	.add = grafite_add,
	.finish = grafite_finish,
	.write = grafite_write,
	.probe = grafite_probe,
	.verify = hyb_grafite_verify,
};

static const HybFilterRoutine *const kinds[] = {
	[HYB_FILTER_SURF] = &surf_kind,
	[HYB_FILTER_POINTS] = &points_kind,
	[HYB_FILTER_GRAFITE] = &grafite_kind,
};

const HybFilterRoutine *
hyb_filter_routine(uint8 kind)
{
	return kind < lengthof(kinds) ? kinds[kind] : NULL;
}
