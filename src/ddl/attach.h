/*
 * attach.h
 *		Converts indexes of partitions that are to be attached to an index of the
 *		other access method.
 */
#ifndef HYB_ATTACH_H
#define HYB_ATTACH_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/*
 * Before ALTER TABLE or ALTER INDEX ... ATTACH PARTITION: `relid` is locked, the
 * partition gets the lock of the statement.
 */
extern void hyb_attach_before(Oid relid, const RangeVar *name, Oid hybrid);

/* Before an index of a partitioned table is made, or constraints by ALTER TABLE. */
extern void hyb_attach_index_above(IndexStmt *stmt, const char *source);
extern void hyb_attach_constraints_above(const AlterTableStmt *stmt, Oid relid);

#endif							/* HYB_ATTACH_H */
