/*
 * inspect.h
 *		What the SQL functions that look into an index have in common.
 */
#ifndef HYB_INSPECT_H
#define HYB_INSPECT_H

#include "base/server.h"
#include "storage/lockdefs.h"
#include "utils/relcache.h"

typedef enum HybAccess
{
	HYB_ACCESS_MAINTAIN,		/* owner, or MAINTAIN on the table */
	HYB_ACCESS_READ,			/* the same, pg_stat_scan_tables, or SELECT on
								 * the table and no row security */
	HYB_ACCESS_READ_BTREE		/* the same, of a btree index */
} HybAccess;

typedef struct HybInspected
{
	Relation	heap;
	Relation	index;
	LOCKMODE	lockmode;
	HybCaller	caller;
} HybInspected;

/*
 * Locks and opens the table and then the index, which is hybrid, or btree for
 * HYB_ACCESS_READ_BTREE.  Checks the caller's privileges and becomes the table's owner.
 * An error says what else it is.
 */
extern void hyb_inspect_open(Oid indexoid, LOCKMODE lockmode,
							 HybAccess access, HybInspected *inspected);

/*
 * The same with AccessShareLock.  With `nowait` it returns false, with nothing locked,
 * if a lock is taken, or if the index is gone, not ready, of another session, or not
 * the caller's to see.
 */
extern bool hyb_inspect_read(Oid indexoid, bool nowait, HybAccess access,
							 HybInspected *inspected);
extern void hyb_inspect_close(HybInspected *inspected);

#endif							/* HYB_INSPECT_H */
