/*
 * inspect.h
 *		What the SQL functions that look into an index have in common.
 */
#ifndef HYB_INSPECT_H
#define HYB_INSPECT_H

#include "storage/lockdefs.h"
#include "utils/relcache.h"

typedef enum HybAccess
{
	HYB_ACCESS_MAINTAIN,		/* owner, or MAINTAIN on the table */
	HYB_ACCESS_READ,			/* owner, SELECT on the table, or
								 * pg_stat_scan_tables */
	HYB_ACCESS_READ_BTREE,		/* the same, of a btree index */
	HYB_ACCESS_KEYS				/* SELECT on the table, and no row security */
} HybAccess;

typedef struct HybInspected
{
	Relation	heap;
	Relation	index;
	LOCKMODE	lockmode;
	Oid			save_userid;
	int			save_sec_context;
	int			save_nestlevel;
} HybInspected;

/*
 * Lock and open a valid hybrid index (or btree) and its table (the table first, as
 * everybody does), check the caller's privileges, and become the table's
 * owner, because comparison functions and index expressions may be anybody's
 * code.  Anything else is a clear error.
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

/* Code that the caller chose runs between these, as the caller. */
extern void hyb_inspect_as_caller(const HybInspected *inspected);
extern void hyb_inspect_as_owner(const HybInspected *inspected);

#endif							/* HYB_INSPECT_H */
