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

#endif							/* HYB_BUILD_H */
