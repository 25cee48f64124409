/*
 * bulk.h
 *		Building the tree of a long log at once, sorted.
 */
#ifndef HYB_BULK_H
#define HYB_BULK_H

#include "dynamic/catchup.h"

/*
 * Is one of the wanted trees (HYB_FETCH_*) yet to be built, of a log that is
 * worth sorting, and is there memory for all of it?  Says which, HYB_FROZEN or
 * HYB_ACTIVE, or -1.  The shared stage is locked exclusively, and the version is
 * current.
 */
extern int	hyb_bulk_wanted(HybIndex *ix, HybStageAccess *access,
							const HybVersion *version, int want);

/*
 * What has been done to entries of the stage's generations, on a standby too;
 * it only grows.
 */
#define hyb_bulk_marks(stage) ((stage)->marks + (stage)->vacuum_counter)

/*
 * Build that tree and give it to the stage, unless that has one by now, or
 * entries were flagged since its hyb_bulk_marks.  The stage is not locked,
 * nor is anything else.  May raise errors.
 */
extern void hyb_bulk_build(HybIndex *ix, HybSlot *s, const HybVersion *version,
						   int which, uint64 marks);

#endif							/* HYB_BULK_H */
