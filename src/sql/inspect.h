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
	HYB_ACCESS_READ_BTREE,		/* the same, of a btree index */
	HYB_ACCESS_KEYS				/* SELECT on the table, and no row security */
} HybAccess;

typedef struct HybInspected
{
	Relation	heap;
	Relation	index;
	LOCKMODE	lockmode;
	HybCaller	caller;
} HybInspected;

/*
 * Lock and open a valid hybrid index (or btree) and its table (the table first, as
 * everybody does), check the caller's privileges, and become the table's
 * owner.  Anything else is a clear error.
 */
extern void hyb_inspect_open(Oid indexoid, LOCKMODE lockmode,
							 HybAccess access, HybInspected *inspected);

/*
 * The same, but false, with nothing locked, if a lock would have to be waited
 * for, or if there is nothing to be seen: the index is gone, is not ready, or
 * not for the caller or this session to look into.
 */
extern bool hyb_inspect_try_open(Oid indexoid, LOCKMODE lockmode,
								 HybAccess access, HybInspected *inspected);
extern void hyb_inspect_close(HybInspected *inspected);

/*
 * hyb_inspect_open in two steps.  The caller's own code runs between them, and
 * nothing of the index's.
 */
extern void hyb_inspect_open_as_caller(Oid indexoid, LOCKMODE lockmode,
									   HybAccess access,
									   HybInspected *inspected);
extern void hyb_inspect_become_owner(HybInspected *inspected);

#endif							/* HYB_INSPECT_H */
