/*
 * build_dictionary.h
 *		Learning an index's dictionaries when it is created.
 */
#ifndef HYB_BUILD_DICTIONARY_H
#define HYB_BUILD_DICTIONARY_H

#include "access/genam.h"
#include "key/key.h"
#include "merge/merge.h"
#include "store/handle.h"

struct IndexInfo;

/*
 * Learn dictionaries for the encoded columns of a new index from a sample of
 * its table, write them after the metapage, and attach them to the handle.
 * Returns the block of the first dictionary page, InvalidBlockNumber if the
 * index needs none or the table has too few rows.
 */
extern BlockNumber hyb_build_dictionary(HybIndex *ix, Relation heap,
										struct IndexInfo *info);

/* How much shorter keys became: their bytes by those of their codes. */
static inline double
hyb_dictionary_rate(uint64 plain, uint64 stored)
{
	return stored > 0 ? (double) plain / (double) stored : 1.0;
}

#endif							/* HYB_BUILD_DICTIONARY_H */
