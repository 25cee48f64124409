/*
 * filter_surf.c
 *		The filter kind "surf": a range filter (algo/fst.h).
 */
#include "base/compat.h"

#include "algo/fst.h"
#include "filter/filter_kind.h"

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

static inline HybFilterAnswer
answer_of(HybFstAnswer answer)
{
	return answer == HYB_FST_NO ? HYB_ANSWER_NO :
		answer == HYB_FST_YES ? HYB_ANSWER_MAYBE : HYB_ANSWER_DAMAGED;
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
		return answer_of(hyb_fst_lookup(&fst, low->key, low->len));
	from = cut_of(low, false);
	to = cut_of(high, true);
	return answer_of(hyb_fst_range(&fst, &from, &to));
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
	return hyb_fst_count(&fst, &from, &to, count) == HYB_FST_DAMAGED ?
		HYB_ANSWER_DAMAGED : HYB_ANSWER_MAYBE;
}

static const char *
surf_verify(const void *image, Size size)
{
	HybFst		fst;

	if (!hyb_fst_open(&fst, image, size))
		return "the header";
	return hyb_fst_verify(&fst);
}

const HybFilterRoutine hyb_filter_surf = {
	.name = "surf",
	.builder_create = surf_builder_create,
	.begin = surf_begin,
	.add = surf_add,
	.finish = surf_finish,
	.write = surf_write,
	.probe = surf_probe,
	.count = surf_count,
	.verify = surf_verify,
};
