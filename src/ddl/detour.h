/*
 * detour.h
 *		Statements that the server carries out for btree indexes only, or that
 *		would make one out of a hybrid one: what is done before and after them.
 *
 * An error in between takes everything back with the transaction.
 */
#ifndef HYB_DETOUR_H
#define HYB_DETOUR_H

#include "postgres.h"

#include "ddl/replace.h"

/* What is to be done after the statement; none of it is visible before. */
typedef struct HybDetour
{
	List	   *stand_ins;		/* HybStandIn, to be ended */
	List	   *constraints;	/* HybRebuilt: indexes to be hybrid again */
	AlterTableStmt *later;		/* a part that comes after the rest, or NULL */
	List	   *dropped;		/* indexes that the statement drops itself */
} HybDetour;

/*
 * Before ALTER TABLE and REFRESH MATERIALIZED VIEW: takes the locks that the
 * statement takes.  For ALTER TABLE returns the table, InvalidOid if there is
 * none.
 */
extern Oid	hyb_detour_alter_table(HybDetour *detour,
								   const AlterTableStmt *stmt);
extern void hyb_detour_refresh(HybDetour *detour,
							   const RefreshMatViewStmt *stmt);

/*
 * Once it is known which constraints will be hybrid: takes foreign keys to them
 * out of the statement that makes them.
 */
extern void hyb_detour_postpone(HybDetour *detour, AlterTableStmt *stmt,
								Oid relid);

/* After the statement. */
extern void hyb_detour_end(HybDetour *detour);

#endif							/* HYB_DETOUR_H */
