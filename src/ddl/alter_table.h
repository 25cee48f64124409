/*
 * alter_table.h
 *		ALTER TABLE of tables with hybrid indexes: what is done before and after
 *		it.
 */
#ifndef HYB_ALTER_TABLE_H
#define HYB_ALTER_TABLE_H

#include "ddl/twin/twin.h"

/* What remains to be done after a statement. */
typedef struct HybAfterStatement
{
	HybStandIns stand_ins;
	List	   *constraints;	/* their indexes become hybrid again */
	AlterTableStmt *later;		/* a part that is executed last, or NULL */
} HybAfterStatement;

/*
 * To be called before the statement: takes the locks that it takes.  Returns the
 * table, InvalidOid if there is none.
 */
extern Oid	hyb_alter_table_before(HybAfterStatement *after,
								   const AlterTableStmt *stmt);

/* To be called after it, and after the stand-ins have ended. */
extern void hyb_alter_table_after(const HybAfterStatement *after);

#endif							/* HYB_ALTER_TABLE_H */
