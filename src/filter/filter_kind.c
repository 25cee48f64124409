/*
 * filter_kind.c
 *		The kinds of filters: SuRF and points.
 *
 * Each maps keys and positions of an index to what its algorithm takes:
 *
 *	- SuRF (algo/fst.h) takes keys in the order of memcmp.
 *	- Points (algo/ribbon.h) takes hashes of keys whose equality is that of their
 *	  bytes (HybKeyDesc.exact).  It cannot answer about ranges.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "algo/fst.h"
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
	return hyb_fst_builder_create(surf_resize, hyb_filter_suffix_bits(ix->rel));
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
	if (point)
		return hyb_fst_lookup(&fst, low->key, low->len);
	from = cut_of(low, false);
	to = cut_of(high, true);
	return hyb_fst_range(&fst, &from, &to);
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

static const HybFilterRoutine *const kinds[] = {
	[HYB_FILTER_SURF] = &surf_kind,
	[HYB_FILTER_POINTS] = &points_kind,
};

const HybFilterRoutine *
hyb_filter_routine(uint8 kind)
{
	return kind < lengthof(kinds) ? kinds[kind] : NULL;
}
