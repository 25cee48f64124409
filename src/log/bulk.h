/*
 * bulk.h
 *		Building the tree of a long log at once, sorted.
 */
#ifndef HYB_BULK_H
#define HYB_BULK_H

#include "log/catchup.h"

/* A tree that is to be built. */
typedef struct HybBulkTask
{
	HybGeneration generation;	/* as the metapage has it */
	bool		whole;			/* it is not appended to any more */
	uint64		marks;			/* what had been done to its entries */
} HybBulkTask;

typedef enum HybBulkPlan
{
	HYB_BULK_NONE,				/* enter the entries as they come */
	HYB_BULK_BUILD,				/* hyb_bulk_build */
	HYB_BULK_WAIT				/* somebody is at it: ask again in a moment */
} HybBulkPlan;

/*
 * Is one of the wanted trees (HYB_FETCH_*) yet to be built, of a log that is
 * worth sorting, and is there memory for all of it?  The shared stage is locked
 * exclusively, and the version is current.  After HYB_BULK_BUILD others wait
 * for the caller.
 */
extern HybBulkPlan hyb_bulk_plan(HybIndex *ix, HybStageAccess *access,
								 const HybVersion *version, int want,
								 HybBulkTask *task);

/*
 * Build that tree and give it to the stage, unless that has one by now, or
 * entries were flagged meanwhile.  The stage is not locked, nor is anything
 * else.  May raise errors.
 */
extern void hyb_bulk_build(HybIndex *ix, HybSlot *s, const HybBulkTask *task);

#endif							/* HYB_BULK_H */
