/*
 * mute.h
 *		Keeping messages from the client while others need our locks.
 *
 * A client that does not read its socket stops its process in the middle of a
 * message.  With a lock held, all processes that need the lock would stop too.  So a
 * process is mute while it holds a lock that a btree index does not have.  A notice
 * goes to the server's log at most.  An error is kept, and goes to the client when the
 * (sub)transaction has aborted and let go of its locks.
 */
#ifndef HYB_MUTE_H
#define HYB_MUTE_H

/* When the library is loaded. */
extern void hyb_mute_init(void);

/*
 * Be mute, from before the lock is asked for: the server reports long waits.  Pairs
 * of these calls nest.  After an error the abort takes the place of the second one.
 */
extern void hyb_mute_begin(void);
extern void hyb_mute_end(void);

/*
 * Be mute until the abort, since an error may be raised under an LWLock: the main loop
 * reports it before it releases LWLocks.  The second function is called if there was
 * none.
 */
extern void hyb_mute_until_abort(void);
extern void hyb_mute_not_needed(void);

#endif							/* HYB_MUTE_H */
