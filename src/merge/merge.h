/*
 * merge.h
 *		Moving the frozen generation into the static stage.
 *
 * The merge lock is a heavyweight lock on the index as an object, with a
 * sub-object number of its own, mode ExclusiveLock: one step of a merge, or of
 * what else needs the static stage to stand still, at a time; deadlock
 * detection and release on error come with it.  It is no page lock, because
 * servers before 17 look for no deadlock through those, and assert that no
 * other lock is taken under one, which comparison functions do.  No LWLock is
 * held when it is asked for.  There is none in recovery, where nothing merges.
 * lock_timeout does not count, and inserters do not wait for it (trigger.c).
 *
 * Whoever holds it lets go after each step: others wait for a step at most.
 */
#ifndef HYB_MERGE_H
#define HYB_MERGE_H

#include "datatype/timestamp.h"
#include "log/log.h"

/* Settings, hybridindex.* */
extern int	hyb_merge_floor;	/* merge_floor: entries below which the ratio
								 * does not ask for a merge */
extern int	hyb_merge_step_pages;	/* leaves a merge step reads */
extern bool hyb_background_merge;	/* start workers */
extern int	hyb_max_merge_workers;	/* of the server, at a time */
extern int	hyb_log_merge_ms;	/* log merges of workers that take as long;
								 * -1: none */
extern int	hyb_quiet_time;		/* ms without insertions after which an index
								 * is quiet (quiet.h); -1: it never is */

/*
 * test_levels, of servers with assertions: merges begin a new static level until
 * there are as many.
 */
extern int	hyb_test_levels;

extern bool hyb_merge_lock(Relation index, bool wait);
extern void hyb_merge_unlock(Relation index);

/* Does another process wait for the lock, which this one has? */
extern bool hyb_merge_lock_wanted(Relation index);

/*
 * Close the active generation and start a new one.  Caller holds the merge
 * lock; there must be neither a frozen generation nor a retiring one.  Returns
 * false, nothing changed, if the active generation is empty, unless the next
 * merge is to visit every leaf.
 */
extern bool hyb_merge_freeze(HybIndex *ix);

/*
 * One step: settles what a crash left, moves the next key range of the frozen
 * generation, or, when there is none left, retires and frees its pages.
 * Rewrites as many leaves that entries fall into as the policy allows, at most
 * hybridindex.merge_step_pages, and some of their neighbours (balance.h).
 * Caller holds the merge lock.
 * Returns false when there is nothing left to do.
 */
extern bool hyb_merge_step(HybIndex *ix);

/*
 * Merge everything that is in the index now: finish the frozen generation,
 * freeze the active one, merge that too.  Takes the merge lock for each step
 * (waits).  Returns the entries that these steps moved; others may move some.
 */
extern uint64 hyb_merge_all(HybIndex *ix);

/*
 * The same of the log only: what is in it now goes to the newest static level,
 * and its pages are free.
 */
extern void hyb_merge_log(HybIndex *ix);

/*
 * May a worker merge the index?  It cannot see a relation that this transaction
 * made.
 */
extern bool hyb_merge_may_ask(const HybIndex *ix);

/* When the library is loaded: define settings, and merge indexes that lose their shared slots. */
extern void hyb_merge_init(void);

/*
 * Called by inserters and VACUUM now and then, with no lock held: starts a
 * worker if a merge is wanted, or does steps itself where none can start or
 * the dynamic stage has outgrown its hard bound.
 */
extern void hyb_merge_consider(HybIndex *ix);

/*
 * VACUUM is done with the index: have a worker look whether it is quiet, if
 * there would be anything to do.
 */
extern void hyb_merge_consider_quiet(HybIndex *ix);

#endif							/* HYB_MERGE_H */
