/*
 * build.h
 *		CREATE INDEX, as the server asks for it.
 */
#ifndef HYB_BUILD_H
#define HYB_BUILD_H

#include "access/amapi.h"

extern IndexBuildResult *hyb_ambuild(Relation heap, Relation index,
									 struct IndexInfo *info);
extern void hyb_ambuildempty(Relation index);
extern char *hyb_ambuildphasename(int64 phase);

/* How much shorter keys became: their bytes by those of their codes. */
static inline double
hyb_dictionary_rate(uint64 plain, uint64 stored)
{
	return stored > 0 ? (double) plain / (double) stored : 1.0;
}

#endif							/* HYB_BUILD_H */
