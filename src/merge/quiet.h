/*
 * quiet.h
 *		Indexes that may be quiet soon.
 *
 * An index that nobody inserts into is brought to one level without a log ahead
 * of time, if the policy says that this is worth its writes
 * (hyb_policy_quiet): reads then go through one level, the next merge
 * begins with empty newer ones, and what the log took is free.  Then the file
 * shrinks, if much of it is free.  A worker that has merged all there was in an
 * index puts it on the list of requests again (shared/workers.h), with a mark of
 * what its log was, to be looked at after hybridindex.quiet_time.
 */
#ifndef HYB_QUIET_H
#define HYB_QUIET_H

#include "shared/workers.h"
#include "store/handle.h"

/* Is there anything to be done with the index, if it is quiet? */
extern bool hyb_quiet_pays(HybIndex *ix);

/* Nothing is left to merge: is it to be looked at later?  Then sets *mark. */
extern bool hyb_quiet_remember(HybIndex *ix, HybQuietMark *mark);

typedef enum HybQuietWork
{
	HYB_QUIET_NONE,
	HYB_QUIET_LATER,			/* look again, if hyb_quiet_again says so */
	HYB_QUIET_MERGE,			/* merge: that was asked for in the metapage */
	HYB_QUIET_SHRINK			/* the file is to shrink */
} HybQuietWork;

/*
 * Look at an index that had this mark some time ago: what is there to be done,
 * now that it is quiet?  The mark becomes that of the index now.
 */
extern HybQuietWork hyb_quiet_look(HybIndex *ix, HybQuietMark *mark);

/*
 * The index was looked at for nothing.  Returns how many ms later it is to be
 * looked at again, longer each time, or -1 after the last time.
 */
extern int64 hyb_quiet_again(HybQuietMark *mark);

/*
 * Shrink the file of an index that is quiet.  The caller has it and its table
 * locked in ShareUpdateExclusiveLock; this ends early if another process waits
 * for these, or if go_on(), called before each step with no other lock held, is
 * false.  Returns false if not all was done.
 */
extern bool hyb_quiet_shrink(HybIndex *ix, Relation heap, bool (*go_on) (void));

#endif							/* HYB_QUIET_H */
