/*
 * server.h
 *		What the server's own functions do not quite do.
 */
#ifndef HYB_SERVER_H
#define HYB_SERVER_H

#include "base/compat.h"

#include "base/mute.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/lock.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

/* Does the index have this access method?  False if the index is gone. */
extern bool hyb_index_is_of(Oid index, Oid access_method);

/* The access method of an index, or InvalidOid if the index is gone. */
extern Oid	hyb_index_method(Oid index);

/* Is this the access method of our indexes: hybrid or hybrid_hot? */
extern bool hyb_is_our_method(Oid access_method);
extern bool hyb_is_hot_method(Oid access_method);
extern bool hyb_index_is_ours(Oid index);

/*
 * Returns the rows of pg_index that have `oid` in this column, indexrelid or indrelid:
 * FormData_pg_index up to indkey.  A snapshot of NULL is the catalogs'.  Unlike the
 * list of indexes in the relation cache, it has dead ones.
 */
extern List *hyb_index_rows(AttrNumber column, Oid oid, Snapshot snapshot);

/*
 * Returns the sentence that names the access method of a table if it is not heap by
 * another name, else NULL.  That of a partitioned table, from 17 on, is what its new
 * partitions get.
 */
extern char *hyb_not_heap(Oid table);

/*
 * Returns a copy of the relation's descriptor that claims to be a btree, for
 * functions of the server that use the operator classes of btrees only.
 */
extern Relation hyb_as_btree(Relation index);

/*
 * How long a process waits for a lock where it does not wait for other transactions.
 * Their locks may be held for ever.
 */
#define HYB_SHORT_WAIT_MS	10

/*
 * Calls `work` in a subtransaction that is rolled back, which releases its locks at
 * once, on a standby too.  lock_timeout is lock_ms meanwhile; 0: none.  Returns the
 * error that `work` raised, in the current memory context, or NULL.  The caller frees
 * the error or raises it again.  Before 17 not in parallel mode.
 */
extern ErrorData *hyb_in_subtransaction(void (*work) (void *arg), void *arg, int lock_ms);

/* The same without waiting for locks.  A cancel is raised. */
extern ErrorData *hyb_without_waiting(void (*work) (void *arg), void *arg);

/*
 * The same, but without an error the subtransaction is committed.  That leaves the
 * progress that the server reports of a command as it is.
 */
extern ErrorData *hyb_catch_error(void (*work) (void *arg), void *arg);

/* Returns the operator classes of the index's key columns. */
extern oidvector *hyb_index_classes(Relation index);

/* Returns the qualified name of an operator class: schema and name (String). */
extern List *hyb_class_name(Oid opclass);

/* Have two operator families the same operators for the type? */
extern bool hyb_same_operators(Oid family_a, Oid family_b, Oid type);

/*
 * Has the family all operators of the other one?  With a list of types, only
 * operators for two of these count.
 */
extern bool hyb_family_has_members(Oid family, Oid other, const List *types);

/*
 * The name of one of the extension's SQL functions, as a hint spells it for any
 * search path.
 */
extern char *hyb_sql_function(const char *name);

/*
 * Take a heavyweight lock, exclusively, that every process holds for a moment
 * only, and release it.  Without `wait`, returns false if the lock is not available.
 * lock_timeout does not apply: users set it for locks of other transactions, and a
 * btree index would not make them wait here.  statement_timeout, cancelling and the
 * deadlock check do apply.  The process is mute while it holds the lock (mute.h).
 *
 * The holder may wait for a lock of another transaction, as hybrid_merge does where
 * keys are rows.  A process that must not wait for that sets hyb_longest_moment_ms:
 * the error is ERRCODE_LOCK_NOT_AVAILABLE.  0: no limit.
 */
extern int	hyb_longest_moment_ms;
extern bool hyb_lock_for_a_moment(const LOCKTAG *tag, bool wait);
extern void hyb_unlock_after_moment(const LOCKTAG *tag);

/* ---- getting at relations: as their owner, and without waiting for locks ---- */

/* The role that goes on afterwards. */
typedef struct HybCaller
{
	Oid			user;
	int			security_context;
	int			nest_level;
} HybCaller;

/*
 * Comparison functions and index expressions may be code of any user.  They run
 * between these two calls: as the owner of the table, in a security-restricted
 * operation, with a search path of the server's schemas only.  The caller's own
 * code (casts of arguments) runs before.  After an error the end of the
 * (sub)transaction brings the caller back.
 */
extern void hyb_become_owner(HybCaller *caller, Oid owner);
extern void hyb_become_caller(const HybCaller *caller);

/* Returns the owner of a relation; InvalidOid if it is gone. */
extern Oid	hyb_owner_of(Oid relid);

/* Does the relation belong to the caller?  False if it is gone. */
extern bool hyb_owns(Oid relid);

/*
 * Open a relation of any kind if it can be locked at once, whatever locks are
 * held.  NULL if it is gone; then no lock is left.  NULL also if the lock is
 * not available; then *locked is set to true, unless `locked` is NULL.  The
 * function never sets it to false.  The caller closes the relation with
 * relation_close and the same mode, or the transaction's abort does.
 */
extern Relation hyb_try_open(Oid relid, LOCKMODE lockmode, bool *locked);

#endif							/* HYB_SERVER_H */
