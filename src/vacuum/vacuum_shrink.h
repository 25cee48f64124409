/*
 * vacuum_shrink.h
 *		VACUUM returns free blocks at the end of an index's file.
 */
#ifndef HYB_VACUUM_SHRINK_H
#define HYB_VACUUM_SHRINK_H

#include "access/genam.h"
#include "log/log.h"

/*
 * Where much of the file is free, or `live`, the entries that VACUUM has left,
 * are few of those that the index holds: merge it, move what lies at the end of
 * the file, and cut that off, or as much of this as can be done without waiting
 * for others.  No lock is held on entry or return.
 */
extern void hyb_vacuum_shrink(HybIndex *ix, IndexVacuumInfo *info, double live);

#endif							/* HYB_VACUUM_SHRINK_H */
