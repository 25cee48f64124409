/*
 * surf.h
 *		The Succinct Range Filter: a Fast Succinct Trie of truncated keys that
 *		says "no such key" or "maybe".
 *
 * Zhang et al., SIGMOD 2018.  Each key is kept as far as it takes to tell it
 * from its neighbours (SuRF-Base), with a suffix of
 *
 *		hash bits of the whole key (SuRF-Hash): fewer wrong answers about points
 *		the key's next bits (SuRF-Real): about points and ranges
 *		both (SuRF-Mixed)
 *
 * An answer of HYB_FST_NO is always right.
 */
#ifndef HYB_SURF_H
#define HYB_SURF_H

#include "algo/fst.h"

typedef enum HybSurfSuffix
{
	HYB_SURF_REAL,
	HYB_SURF_HASH,
	HYB_SURF_MIXED				/* half and half, the odd bit real */
} HybSurfSuffix;

/* Bits of either part are at most this. */
#define HYB_SURF_MAX_SUFFIX		32

static inline HybFstBuilder *
hyb_surf_builder_create(HybFstResize resize, HybSurfSuffix suffix,
						unsigned bits)
{
	unsigned	hash = suffix == HYB_SURF_HASH ? bits :
		suffix == HYB_SURF_MIXED ? bits / 2 : 0;

	return hyb_fst_builder_create(resize, hash, bits - hash, HYB_FST_RATIO);
}

#endif							/* HYB_SURF_H */
