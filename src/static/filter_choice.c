/*
 * filter_choice.c
 *		Which filters the leaves of a level get.
 *
 * The oldest level, where all but a few entries are, has what the storage
 * parameter says.  A search goes through newer levels before it gets there,
 * mostly in vain: these have filters for points, or those that the index asks
 * for.
 */
#include "compat.h"

#include "static/filter_choice.h"

/* SuRFs are of keys in the order of memcmp; points go by equal bytes. */
static bool
is_possible(const HybKeyDesc *desc, HybFilterKind kind)
{
	return kind == HYB_FILTER_SURF ? desc->all_mem : desc->exact;
}

HybFilterKind
hyb_filter_kind_of_level(const HybIndex *ix, int level, int nlevels)
{
	HybFilterKind kind = hyb_filter_option(ix->rel);

	if (kind != HYB_FILTER_NONE && !is_possible(ix->desc, kind))
		kind = HYB_FILTER_NONE;
	if (kind == HYB_FILTER_NONE && level > 0 && nlevels > 1 &&
		is_possible(ix->desc, HYB_FILTER_POINTS))
		kind = HYB_FILTER_POINTS;
#ifdef USE_ASSERT_CHECKING
	if (kind != HYB_FILTER_NONE && ix->desc->all_mem && hyb_test_filter)
		kind = HYB_FILTER_ZONE;
#endif
	return kind;
}

bool
hyb_filter_impossible(const HybIndex *ix)
{
	HybFilterKind kind = hyb_filter_option(ix->rel);

	return kind != HYB_FILTER_NONE && !is_possible(ix->desc, kind);
}
