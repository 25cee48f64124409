/*
 * quiet.h
 *		Indexes that may be quiet soon.
 *
 * An index that nobody inserts into is brought to one level without a log ahead
 * of time, if the policy says that this is worth its writes
 * (HybMergePolicy.quiet): reads then go through one level, the next merge
 * begins with empty newer ones, and what the log took is free.  Then the file
 * shrinks, if much of it is free.  A worker that has nothing else to do
 * remembers the indexes of its database that it was asked for, looks at their
 * logs again after hybridindex.quiet_time, and does that where nothing has
 * come.
 */
#ifndef HYB_QUIET_H
#define HYB_QUIET_H

#include "page/handle.h"

/* Is there anything to be done with the index, if it is quiet? */
extern bool hyb_quiet_pays(HybIndex *ix);

/* Nothing is left to merge in an index: is it to be looked at later? */
extern void hyb_quiet_remember(HybIndex *ix);

/* Is there an index to be looked at, now or later? */
extern bool hyb_quiet_waits(void);

/* One that is to be looked at now, which is forgotten. */
extern bool hyb_quiet_due(Oid *relid);

typedef enum HybQuietWork
{
	HYB_QUIET_NONE,
	HYB_QUIET_MERGE,			/* a merge was asked for */
	HYB_QUIET_SHRINK			/* the file is to shrink */
} HybQuietWork;

/*
 * Look at it: what is the caller to do, now that it is quiet?  It is remembered
 * again if something was inserted.
 */
extern HybQuietWork hyb_quiet_look(HybIndex *ix);

/*
 * The index that hyb_quiet_due has returned cannot be looked at now: it is
 * remembered again, but not for ever.
 */
extern void hyb_quiet_look_again(void);

/*
 * Shrink the file of the index that was looked at.  The caller has it and its
 * table locked in ShareUpdateExclusiveLock; this ends early if somebody waits
 * for these, or if go_on(arg), called before each step with no other lock held,
 * is false.  The index is remembered again if not all was done.
 */
extern void hyb_quiet_shrink(HybIndex *ix, Relation heap,
							 bool (*go_on) (void *arg), void *arg);

#endif							/* HYB_QUIET_H */
