/*
 * statement.h
 *		What is done before and after DDL statements (utility.c).
 */
#ifndef HYB_STATEMENT_H
#define HYB_STATEMENT_H

#include "ddl/twin/twin.h"

/* ---- replace.c: hybrid indexes where the default access method is meant ---- */

/* A statement before its execution; its tree may be changed. */
typedef struct HybStatement
{
	Node	   *tree;
	const char *source;			/* text of the query string, NULL if unknown */
	int			location;		/* where the statement begins in it, or -1 */
	bool		nested;			/* in a function or an extension's command */
} HybStatement;

/* Defines the setting hybridindex.replace_btree. */
extern void hyb_replace_init(void);

/* Returns true if statements make hybrid what would be btree by default. */
extern bool hyb_replaces_btree(void);

/*
 * Indexes that are to be hybrid get this access method, and those of constraints the
 * marker: by the setting hybridindex.replace_btree, by the parent's constraint, or
 * because they have the marker already.  What cannot be hybrid stays as it is, with a
 * NOTICE.  Locks the table as the statement will.
 */
extern void hyb_replace_in_index(const HybStatement *statement);

/* The same for the constraints of ALTER TABLE, of table `relid`. */
extern void hyb_replace_in_alter_table(const HybStatement *statement,
									   Oid relid);

/* The same for exclusion constraints of CREATE TABLE. */
extern void hyb_replace_in_create_table(const HybStatement *statement);

/*
 * Returns true if hybrid has an operator class like btree's default for the type that
 * ALTER TABLE gives to a column, or if btree has none either.
 */
extern bool hyb_replace_serves_column(const AlterTableStmt *stmt, Oid relid,
									  const char *name);

/* Returns true if a unique or primary key index of the table may be hybrid. */
extern bool hyb_replace_serves(Oid relid, bool primary);

/* ---- alter_table.c: ALTER TABLE of tables with hybrid indexes ---- */

/* What remains to be done after a statement. */
typedef struct HybAfterStatement
{
	HybStandIns stand_ins;
	List	   *constraints;	/* their indexes become hybrid again */
} HybAfterStatement;

/*
 * To be called before the statement: takes the locks that it takes.  Returns the
 * table, InvalidOid if there is none.
 */
extern Oid	hyb_alter_table_before(HybAfterStatement *after,
								   const AlterTableStmt *stmt);

/* To be called after it, and after the stand-ins have ended. */
extern void hyb_alter_table_after(const HybAfterStatement *after);

/* ---- attach.c: indexes of partitions that are to be attached ---- */

/*
 * Before ALTER TABLE or ALTER INDEX ... ATTACH PARTITION: `relid` is locked, the
 * partition gets the lock of the statement.
 */
extern void hyb_attach_before(Oid relid, const RangeVar *name, Oid hybrid);

/* Before an index of a partitioned table is made, or constraints by ALTER TABLE. */
extern void hyb_attach_index_above(IndexStmt *stmt, const char *source);
extern void hyb_attach_constraints_above(const AlterTableStmt *stmt, Oid relid);

#endif							/* HYB_STATEMENT_H */
