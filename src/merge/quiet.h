/*
 * quiet.h
 *		Indexes that a worker has merged, and that may be quiet soon.
 *
 * An index with newer levels that nobody inserts into is brought to one level
 * ahead of time, if the policy says that this is worth its writes
 * (HybMergePolicy.quiet): reads then go through one level, and the next merge
 * begins with empty newer ones.  A worker that has nothing else to do remembers
 * the indexes of its database that it has merged, looks at their logs again
 * after some time, and asks for the merge where nothing has come.
 */
#ifndef HYB_QUIET_H
#define HYB_QUIET_H

#include "page/handle.h"

/* Nothing is left to merge in an index: is it to be looked at later? */
extern void hyb_quiet_remember(HybIndex *ix);

/* Is there an index to be looked at, now or later? */
extern bool hyb_quiet_waits(void);

/* One that is to be looked at now, which is forgotten. */
extern bool hyb_quiet_due(Oid *relid);

/*
 * Look at it: true if it is quiet and a merge was asked for, which the caller
 * sees to.  It is remembered again if something was inserted.
 */
extern bool hyb_quiet_look(HybIndex *ix);

#endif							/* HYB_QUIET_H */
