/*
 * membership_make.h
 *		Making the membership filter of an index (shared/membership.h).
 */
#ifndef HYB_MEMBERSHIP_MAKE_H
#define HYB_MEMBERSHIP_MAKE_H

#include "merge/policy.h"
#include "store/handle.h"

/*
 * Is a filter to be made, or made larger, for an index with these facts?  Is it
 * being made?  No lock is held.
 */
extern bool hyb_membership_wanted(HybIndex *ix, const HybMergeFacts *facts);

/*
 * Makes it, as far as that is done in `ms` milliseconds.  Returns whether more is
 * left to do.  Called by workers in a transaction, with no LWLock held.
 */
extern bool hyb_membership_make(HybIndex *ix, int ms);

/*
 * The index's keys get other bytes: the filter is of no use.  The caller has locked
 * the index in AccessExclusiveLock.
 */
extern void hyb_membership_forget(HybIndex *ix);

#endif							/* HYB_MEMBERSHIP_MAKE_H */
