/*
 * insert.h
 *		INSERT, as the server asks for it.
 */
#ifndef HYB_INSERT_H
#define HYB_INSERT_H

#include "access/amapi.h"

extern bool hyb_aminsert(Relation index, Datum *values, bool *isnull,
						 ItemPointer heap_tid, Relation heap,
						 IndexUniqueCheck check_unique, bool index_unchanged,
						 struct IndexInfo *info);
extern void hyb_aminsertcleanup(Relation index, struct IndexInfo *info);

#endif							/* HYB_INSERT_H */
