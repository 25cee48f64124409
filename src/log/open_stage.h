/*
 * open_stage.h
 *		Opening the trees of an index, shared or backend-local.
 */
#ifndef HYB_OPEN_STAGE_H
#define HYB_OPEN_STAGE_H

#include "log/catchup.h"

/*
 * Catch the trees in `want` (HYB_FETCH_*) up with the log as it is now, and
 * lock the stage for reading.  READY: end with hyb_stage_close.  STALE:
 * nothing is held.
 */
extern HybStageResult hyb_stage_open(HybIndex *ix, const HybVersion *version,
									 int want, HybStageAccess *access);
extern void hyb_stage_close(HybStageAccess *access);

/*
 * An appender's own entries may go straight to the shared tree, if the tree had
 * everything before them (the lane's end was `from`) and nobody else is at it.
 * hyb_stage_try_enter locks the stage; it is called with the tail page still
 * locked exclusively, which makes this the reading of that page under the
 * stage's lock that VACUUM relies on (catchup.c).  hyb_stage_enter, called
 * after the page was unlocked, enters one entry after the other, and
 * hyb_stage_entered closes the stage.  If memory is lacking hyb_stage_enter
 * returns false: the tree stays behind, and the next reader catches it up.
 * For all_mem indexes only, whose trees have all of their entries in memory:
 * nothing here calls a comparison function or reads a page, so nothing fails.
 */
extern bool hyb_stage_try_enter(HybIndex *ix, uint64 generation, int lane,
								uint64 from, HybStageAccess *access);
extern bool hyb_stage_enter(HybIndex *ix, HybStageAccess *access, int lane,
							const HybEntry *entry);
extern void hyb_stage_entered(HybStageAccess *access);

/*
 * Lock a slot; an error if the caller holds the lock, which only a comparison
 * function that reads its own index can bring about.
 */
extern void hyb_stage_lock(HybIndex *ix, HybSharedSlot *shared, LWLockMode mode);

#endif							/* HYB_OPEN_STAGE_H */
