/*
 * quiet.h
 *		What is done with an index that has no inserts for some time.
 *
 * A worker merges such an index into one level, with an empty log, if the policy
 * says that this is worth its writes (hyb_policy_quiet).  Then reads use one
 * level, and the pages of the log are free.  Then the file shrinks, if much of it
 * is free.  A worker that has finished an index puts it on the list of requests
 * again (shared/workers.h), with a mark of its log, to look at it after
 * hybridindex.quiet_time.
 */
#ifndef HYB_QUIET_H
#define HYB_QUIET_H

#include "shared/workers.h"
#include "store/handle.h"

/* Is there anything to do if the index is quiet? */
extern bool hyb_quiet_pays(HybIndex *ix);

/* Nothing is left to merge.  If the index is to be looked at later, set *mark. */
extern bool hyb_quiet_remember(HybIndex *ix, HybQuietMark *mark);

typedef enum HybQuietWork
{
	HYB_QUIET_NONE,
	HYB_QUIET_LATER,			/* look again, if hyb_quiet_again says so */
	HYB_QUIET_MERGE,			/* merge: the metapage asks for it now */
	HYB_QUIET_SHRINK			/* shrink the file */
} HybQuietWork;

/*
 * Look at an index that had this mark some time ago: what is to be done now?
 * Updates the mark.
 */
extern HybQuietWork hyb_quiet_look(HybIndex *ix, HybQuietMark *mark);

/*
 * The index was not quiet.  Returns after how many ms to look again, longer each
 * time, or -1 after the last time.
 */
extern int64 hyb_quiet_again(HybQuietMark *mark);

/*
 * Shrink the file of a quiet index.  The caller has it and its table locked in
 * ShareUpdateExclusiveLock.  Ends early if another process waits for these, or
 * if go_on(), called before each step with no other lock held, returns false.
 * Returns false if something is left to do.
 */
extern bool hyb_quiet_shrink(HybIndex *ix, Relation heap, bool (*go_on) (void));

#endif							/* HYB_QUIET_H */
