/*
 * open.h
 *		Opening a handle on an index.
 */
#ifndef HYB_OPEN_H
#define HYB_OPEN_H

#include "store/handle.h"

/*
 * Opens a handle, one chunk, in the current memory context.  An error if this
 * session is building the index.
 */
extern HybIndex *hyb_index_create_handle(Relation rel);

/*
 * An index that this session is building, on the builder's stack: functions of
 * expressions and predicates may come to the same index, or build others.
 */
typedef struct HybBeingBuilt
{
	Oid			index;
	struct HybBeingBuilt *outer;
} HybBeingBuilt;

extern HybBeingBuilt *hyb_being_built;

extern bool hyb_index_is_being_built(Oid index);

/*
 * Do leaves of its oldest level hold the beginnings of keys only?  Raises no
 * error if the metapage cannot be read.
 */
extern bool hyb_index_is_truncated(Relation rel);

/*
 * Have handles that are made from now on begin with the slot of this one.
 * Whoever uses it has to find out whether it still is the index's, which
 * slot_serial is for.
 */
extern void hyb_index_remember_slot(const HybIndex *ix);

/*
 * Draw the incarnation of a new index into its handle.  May fail, so it comes
 * before the critical section.
 */
extern void hyb_index_draw_incarnation(HybIndex *ix);

/*
 * Called, if set, before this process's first handle is made.  It may raise an
 * error, and is called again before the next one then.
 */
extern void (*hyb_index_first_use) (void);

/*
 * The transaction that wrote the row of this process's database in pg_database.
 * Read when the first handle is made, since those who need it
 * (shared/database.c) may hold locks.
 */
extern TransactionId hyb_database_xmin;

#endif							/* HYB_OPEN_H */
