/*
 * attach.h
 *		Indexes of partitions that are to be attached to one of the partitioned
 *		table get the access method of that.
 */
#ifndef HYB_ATTACH_H
#define HYB_ATTACH_H

#include "postgres.h"

#include "nodes/parsenodes.h"
#include "utils/relcache.h"

/* A unique index that stands for all rows and for columns. */
extern bool hyb_index_is_plain_unique(Relation index);

/*
 * Before ALTER TABLE ... ATTACH PARTITION and ALTER INDEX ... ATTACH PARTITION;
 * `relid` is locked, the other one gets the lock of the statement.
 */
extern void hyb_attach_before(Oid relid, const RangeVar *name, Oid hybrid);

/*
 * Before an index of a partitioned table is made: those of partitions that match
 * get its access method, hybrid or btree, so that they can be attached.  The same
 * for the constraints of ALTER TABLE.
 */
extern void hyb_attach_index_above(IndexStmt *stmt, const char *source);
extern void hyb_attach_constraints_above(const AlterTableStmt *stmt, Oid relid);

#endif							/* HYB_ATTACH_H */
