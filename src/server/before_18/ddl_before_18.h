/*
 * ddl_before_18.h
 *		DDL that takes btree indexes only before PostgreSQL 18, and subscribers,
 *		which do so in 17.
 *
 * src/ddl calls these functions on all servers.  From 18 on they do nothing, and
 * return what lets the statement pass.
 */
#ifndef HYB_DDL_BEFORE_18_H
#define HYB_DDL_BEFORE_18_H

#include "ddl/twin/twin.h"

/* Returns why an index of the table has to be btree, or NULL. */
extern char *hyb_before_18_needs_btree(Oid relid, bool unique, bool primary);

/* Returns true if the btree index can be converted, else fills in the refusal. */
extern bool hyb_before_18_converts(Relation index, HybRefusal *refusal);

/*
 * A unique index of this name becomes hybrid.  Sends a WARNING, once a statement,
 * if some session may not have the library when INSERT ... ON CONFLICT needs it.
 */
extern void hyb_before_18_warn(const char *name);

/*
 * Before ALTER TABLE ... ADD FOREIGN KEY: makes a stand-in for the index that the
 * server is going to look for.
 */
extern void hyb_before_18_foreign_key(HybStandIns *stand_ins,
									  const Constraint *constraint, Oid hybrid);

/*
 * ALTER TABLE changes the types of these columns, and makes the hybrid index, which
 * has no constraint, again if it has one of them.  Returns why it has to be btree
 * before, if a foreign key references it.  Else NULL.
 */
extern char *hyb_before_18_rebuilt(Relation index, List *attnums);

/*
 * Columns of these names change their types in the tables, which are locked.  Makes
 * stand-ins for the indexes that foreign keys look for when they are made again.
 */
extern void hyb_before_18_type_change(HybStandIns *stand_ins, List *relids,
									  List *names, Oid hybrid);

/*
 * ALTER TABLE adds this PRIMARY KEY or UNIQUE constraint of columns with these names
 * to the table.  Returns why it has to be btree, if a foreign key that the statement
 * adds too references it.  Else NULL.
 */
extern char *hyb_before_18_referenced(const AlterTableStmt *stmt, Oid relid,
									  const Constraint *constraint, List *names);

/*
 * Before REFRESH MATERIALIZED VIEW CONCURRENTLY: makes a stand-in for a unique
 * index if the view has no such btree index.  Locks the view as the server does.
 */
extern void hyb_before_18_refresh(HybStandIns *stand_ins,
								  const RefreshMatViewStmt *stmt);

#endif							/* HYB_DDL_BEFORE_18_H */
