/*
 * replace.h
 *		Makes hybrid indexes where a statement means an index of the default
 *		access method, and does what CREATE INDEX ... USING hybrid wants.
 */
#ifndef HYB_REPLACE_H
#define HYB_REPLACE_H

#include "postgres.h"

#include "nodes/parsenodes.h"

/* A statement that is about to be executed; its tree may be changed. */
typedef struct HybStatement
{
	Node	   *tree;
	const char *source;			/* text of the query string, NULL if unknown */
	int			location;		/* where the statement begins in it, or -1 */
} HybStatement;

/* Defines the setting hybridindex.replace_btree. */
extern void hyb_replace_init(void);

/*
 * May a statement make hybrid what is btree by default, and has no marker?  By
 * the setting hybridindex.replace_btree, but not in every context.
 */
extern bool hyb_replaces_btree(void);

/*
 * Indexes that are to be hybrid get this access method (and the marker of
 * marker.h, if of constraints): by the setting hybridindex.replace_btree, or by
 * their marker.  What hybrid cannot serve stays as it is, with a NOTICE.  Locks
 * the table as the statement will.
 */
extern void hyb_replace_in_index(const HybStatement *statement);

/* The same for the constraints of ALTER TABLE, of table `relid`. */
extern void hyb_replace_in_alter_table(const HybStatement *statement,
									   Oid relid);

/*
 * Does the default operator class of ours do what btree's does for the type
 * that ALTER TABLE gives to a column?  True if btree has none either.
 */
extern bool hyb_replace_serves_column(const AlterTableStmt *stmt, Oid relid,
									  const char *name);

/* May a unique or primary key index of the table be hybrid? */
extern bool hyb_replace_serves(Oid relid, bool primary);

/*
 * As hyb_replace_in_index, for the exclusion constraints of CREATE TABLE; the
 * other indexes that it makes come to that, once the table is there.
 */
extern void hyb_replace_in_create_table(const HybStatement *statement);

#endif							/* HYB_REPLACE_H */
