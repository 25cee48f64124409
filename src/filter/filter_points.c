/*
 * filter_points.c
 *		The filter kind "points": a ribbon filter (algo/ribbon.h) of the keys.
 *
 * It goes by the bytes of keys, so only indexes have it whose equal keys have
 * equal bytes (HybKeyDesc.exact), in whatever order.  About ranges it says
 * nothing.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "algo/ribbon.h"
#include "filter/filter.h"

/* With more an image would be larger than HYB_FILTER_MAX_IMAGE. */
#define MAX_KEYS	4400

typedef struct PointsBuilder
{
	uint32		nkeys;
	unsigned	bits;			/* of a slot */
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

/* A bit more halves how often a probe is wrong; there are HYB_RIBBON_MAX_BITS. */
static void
points_begin(void *arg, uint32 times)
{
	PointsBuilder *builder = arg;

	Assert(times > 0);
	builder->nkeys = 0;
	builder->bits = Min(HYB_RIBBON_BITS + hyb_bit_width(times - 1),
						HYB_RIBBON_MAX_BITS);
}

/* Too many keys are counted, as there may be an image of any leaf. */
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
	switch (hyb_ribbon_ask(image, size, hyb_byte_hash(low->key, low->len)))
	{
		case HYB_RIBBON_NO:
			return HYB_ANSWER_NO;
		case HYB_RIBBON_MAYBE:
			return HYB_ANSWER_MAYBE;
		case HYB_RIBBON_DAMAGED:
			break;
	}
	return HYB_ANSWER_NO_HEADER;
}

/* Which of the keys lie in a range is not known. */
static HybFilterAnswer
points_count(const void *image, Size size, const HybPos *low, const HybPos *high,
			 uint32 *count, uint32 *total)
{
	return HYB_ANSWER_NO;
}

static const char *
points_verify(const void *image, Size size)
{
	return hyb_ribbon_verify(image, size);
}

const HybFilterRoutine hyb_filter_points = {
	.name = "points",
	.builder_create = points_builder_create,
	.begin = points_begin,
	.max_keys = MAX_KEYS,
	.add = points_add,
	.finish = points_finish,
	.write = points_write,
	.probe = points_probe,
	.count = points_count,
	.verify = points_verify,
};
