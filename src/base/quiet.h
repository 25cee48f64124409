/*
 * quiet.h
 *		Keeping messages from the client while others need our locks.
 *
 * A client that does not read its socket stops its process in the middle of a
 * message.  With a lock held, all processes that need the lock would stop too.  So a
 * process is quiet while it holds a lock that a btree index does not have.  A notice
 * goes to the server's log at most.  An error is kept, and goes to the client when the
 * (sub)transaction has aborted and let go of its locks.
 */
#ifndef HYB_QUIET_H
#define HYB_QUIET_H

/* When the library is loaded. */
extern void hyb_quiet_init(void);

/*
 * Be quiet, from before the lock is asked for: the server reports long waits.  Pairs
 * of these calls nest.  After an error the abort takes the place of the second one.
 */
extern void hyb_quiet_begin(void);
extern void hyb_quiet_end(void);

/*
 * The same around a single call, with no allocation.  Returns what was before, which
 * the caller sets again.
 */
extern bool hyb_quiet_set(bool quiet);

#endif							/* HYB_QUIET_H */
