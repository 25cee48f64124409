/*
 * changed.h
 *		The tables whose columns a statement changes, and the indexes that it
 *		drops.
 */
#ifndef HYB_CHANGED_H
#define HYB_CHANGED_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* Of ALTER TABLE or ALTER TYPE ... CASCADE; they are locked. */
extern List *hyb_changed_tables(Oid relid);

/*
 * Indexes of the table that its ALTER TABLE drops by DROP CONSTRAINT or DROP
 * COLUMN.  The server drops them first and may then give their names to others.
 */
extern List *hyb_dropped_indexes(const AlterTableStmt *stmt, Oid relid);

#endif							/* HYB_CHANGED_H */
