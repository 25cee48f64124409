/*
 * filter_prefixes.h
 *		What filters of leaves that do not keep keys are about.
 *
 * Private to filter*.c and to who checks filters.
 */
#ifndef HYB_FILTER_PREFIXES_H
#define HYB_FILTER_PREFIXES_H

#include "filter/filter_kind.h"
#include "leaf/leaf.h"

/* Which beginnings of keys a leaf's filter holds: see HybFilterImage. */
typedef struct HybFilterDepth
{
	uint32		bits;			/* of keys, in the filter: of the shortest
								 * strings */
	uint32		more;			/* bytes that the longest ones have more */
	bool		fingerprints;	/* behind each is its entry's fingerprint */
} HybFilterDepth;

/* A string for the filter; it holds until the function returns. */
typedef void (*HybFilterAdd) (void *arg, const HybBuf *key);

/* With more lengths a filter would be wrong too often, and take long to ask. */
#define HYB_FILTER_MAX_LENGTHS	64

/* Choose it for an opened leaf.  False: it is to have no filter. */
extern bool hyb_filter_prefixes_depth(const HybKeyDesc *desc, HybLeaf *leaf,
									  HybFilterDepth *depth);

/* Add what keys of the leaf may begin with, in ascending order. */
extern void hyb_filter_prefixes_add(const HybKeyDesc *desc, HybLeaf *leaf,
									const HybFilterDepth *depth,
									HybFilterAdd add, void *arg);

/*
 * Ask an image, size bytes behind its beginning, whether the leaf may have a
 * key: for each length that it has prefixes of.
 */
extern HybFilterAnswer hyb_filter_prefixes_ask(const HybFilterImage *image, Size size,
											   const HybPos *key);

/* Has an image an item of its opened leaf, which is of this row?  For checks. */
extern HybFilterAnswer hyb_filter_prefixes_has(const HybFilterImage *image, Size size,
											   HybLeaf *leaf, int row, int item,
											   HybBuf *prefix);

#endif							/* HYB_FILTER_PREFIXES_H */
