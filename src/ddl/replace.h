/*
 * replace.h
 *		Makes hybrid indexes where a statement means the default access method.
 */
#ifndef HYB_REPLACE_H
#define HYB_REPLACE_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* A statement before its execution; its tree may be changed. */
typedef struct HybStatement
{
	Node	   *tree;
	const char *source;			/* text of the query string, NULL if unknown */
	int			location;		/* where the statement begins in it, or -1 */
} HybStatement;

/* Defines the setting hybridindex.replace_btree. */
extern void hyb_replace_init(void);

/* Returns true if statements make hybrid what would be btree by default. */
extern bool hyb_replaces_btree(void);

/*
 * Indexes that are to be hybrid get this access method, and those of constraints the
 * marker: by the setting hybridindex.replace_btree, or because they have the marker
 * already.  What cannot be hybrid stays as it is, with a NOTICE.  Locks the table as
 * the statement will.
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

#endif							/* HYB_REPLACE_H */
