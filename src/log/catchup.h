/*
 * catchup.h
 *		Bringing the trees of an index up to date with its log.
 *
 * What words mean here and in the files beside:
 *
 *		append		add an entry to the log
 *		enter		put an entry of the log into a tree
 *		follow		read a lane page by page, and enter what is there
 *		applied		the place in a lane up to which a tree has its entries
 *		synced		all lanes were followed to their ends once
 *		catch up	do what is missing for a tree to have all of the log
 */
#ifndef HYB_CATCHUP_H
#define HYB_CATCHUP_H

#include "shared/slot.h"

/* A stage made ready for reading. */
typedef struct HybStageAccess
{
	HybSlot    *s;
	HybStage   *stage;
	HybArena   *arena;
	HybSharedSlot *shared;		/* locked; NULL: a backend-local stage */
} HybStageAccess;

/* The generation of HYB_FROZEN or HYB_ACTIVE. */
static inline const HybGeneration *
hyb_version_generation(const HybVersion *version, int which)
{
	return which == HYB_FROZEN ? &version->frozen : &version->active;
}

typedef enum HybStageResult
{
	HYB_STAGE_READY,			/* caught up */
	HYB_STAGE_STALE,			/* the version is no longer current */
	HYB_STAGE_MORE,				/* there is more to do; others may want the
								 * lock; hyb_stage_open does not return this */
	HYB_STAGE_MEMORY			/* no memory; more chunks must be reserved;
								 * hyb_stage_open does not return this */
} HybStageResult;

/*
 * Are the wanted trees (HYB_FETCH_*) there, and up to date?  The stage is
 * locked, at least shared.
 */
extern bool hyb_stage_is_caught_up(HybIndex *ix, HybStageAccess *access,
								   const HybVersion *version, int want);

/*
 * Make the stage's trees those of the version's generations, emptied where
 * need be.  Returns false if the version is older than the stage.  The stage is
 * locked exclusively.
 */
extern bool hyb_stage_turn(HybStageAccess *access, const HybVersion *version);

/*
 * Bring the wanted trees up to date, as far as the pocket reaches.  The stage
 * is locked exclusively.
 */
extern HybStageResult hyb_stage_catch_up(HybIndex *ix, HybStageAccess *access,
										 const HybVersion *version, int want);

#endif							/* HYB_CATCHUP_H */
