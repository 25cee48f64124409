/*
 * build_parallel.h
 *		CREATE INDEX by several processes.
 */
#ifndef HYB_BUILD_PARALLEL_H
#define HYB_BUILD_PARALLEL_H

#include "build/build_leaves.h"

/*
 * Build the leaves with up to so many workers.  Returns the number of rows of
 * the table, or -1 if there are no workers to be had and nothing was done.
 * Everything that is returned is in CurrentMemoryContext.
 */
extern double hyb_build_parallel(HybIndex *ix, Relation heap,
								 struct IndexInfo *info, int workers,
								 HybBuildWritten *written);

#endif							/* HYB_BUILD_PARALLEL_H */
