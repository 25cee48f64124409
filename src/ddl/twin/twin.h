/*
 * twin.h
 *		Twins of indexes, stand-ins for indexes, and what DDL reads and changes
 *		of an index in the catalogs.
 *
 * The twin of an index has its definition and the other access method: btree in
 * place of hybrid, or hybrid in place of btree.
 *
 * This header includes what most DDL code needs of the server's catalogs.
 */
#ifndef HYB_TWIN_H
#define HYB_TWIN_H

#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/server.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "commands/defrem.h"
#include "commands/tablecmds.h"
#include "miscadmin.h"
#include "nodes/pathnodes.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* Why an index cannot be of an access method.  Strings are palloc'd. */
typedef struct HybRefusal
{
	int			code;			/* SQLSTATE, with a message */
	char	   *message;
	char	   *detail;			/* or NULL */
	char	   *hint;			/* or NULL */
} HybRefusal;

/* ---- twins (twin.c) ---- */

/* Raises the refusal as an error. */
HYB_NORETURN extern void hyb_refuse(const HybRefusal *refusal);

/*
 * Returns the operator class of the access method, btree or hybrid, that has the
 * input type of `opclass` and the same operators for it.  InvalidOid if there is
 * none.
 */
extern Oid	hyb_twin_class(Oid opclass, Oid access_method);

/*
 * Composite types and arrays may have parts that cannot be compared.  A btree
 * index compares such a part only if it has to, a hybrid index always.  Returns
 * why a column of such a type should stay btree, else NULL.
 */
extern char *hyb_twin_incomparable(Oid opclass, Oid type);

/*
 * Returns true if each key column of the index has a class of that access method.  If
 * that is hybrid, all values of the columns have to be comparable, and the table has to
 * be one of heap that does not need btree.  Else fills in the refusal.
 */
extern bool hyb_twin_possible(Relation index, Oid access_method,
							  HybRefusal *refusal);

/*
 * A btree index, which hyb_twin_possible, as if it were its hybrid twin.  It is good
 * for a description of the keys (hyb_key_desc_create), and lives as long as the
 * current memory context and the index.
 */
extern Relation hyb_twin_as_hybrid(Relation index);

/*
 * Returns the storage parameters of the twin: those of the index, and the marker if
 * the index is a constraint's.  A NOTICE names each that the twin cannot have.
 */
extern Datum hyb_twin_options(Relation index, Oid access_method);

/*
 * Creates the twin; the caller has locked the table.  It is built unless the flags
 * (INDEX_CREATE_* of catalog/index.h) say otherwise.  It has neither constraint nor
 * parent.  If hyb_twin_possible is false, this is an error.  Before PostgreSQL 17
 * index_concurrently_swap copies the statistics targets.
 *
 * A hybrid index may have a hybrid twin, of other storage parameters.
 */
extern Oid	hyb_twin_create(Relation table, Oid index, Oid access_method,
							const char *name, uint16 flags, Datum reloptions);

/*
 * index_concurrently_swap makes the twin depend on the operator classes of the
 * index that it replaces.  This function, called after it, corrects both.
 */
extern void hyb_twin_swapped(Oid twin, Oid index);

/* ---- storage parameters (index_catalog.c) ---- */

/*
 * The marker is the storage parameter "access_method".  Neither the syntax of
 * PRIMARY KEY and UNIQUE nor a dump of it has an access method, but both have the
 * index's storage parameters.  So each hybrid index of such a constraint has the
 * marker, and a definition with the marker makes a hybrid index.  Without the
 * library btree refuses it: nothing becomes btree unnoticed.
 */

/* Returns true if the marker is among the options of a statement (DefElem). */
extern bool hyb_marker_in(List *options);

/* Returns the options with the marker. */
extern List *hyb_marker_added(List *options);

/* Returns storage parameters (pg_class.reloptions) with or without the marker. */
extern Datum hyb_marker_set(Datum reloptions, bool marked);

/* The names of layouts, as the storage parameter has them. */
#define HYB_LAYOUT_NAME_TRIE "trie"
#define HYB_LAYOUT_NAME_COLUMNAR "columnar"

/* Returns storage parameters of a hybrid index with this layout. */
extern Datum hyb_layout_set(Datum reloptions, const char *layout);

/* Returns those parameters that a btree index may have. */
extern Datum hyb_btree_options(Datum reloptions);

/* Returns a copy of the index's storage parameters, or (Datum) 0. */
extern Datum hyb_index_options(Oid index);

/* Changes them, and locks the index as ALTER INDEX ... SET does. */
extern void hyb_index_set_options(Oid index, Datum reloptions);

/* ---- definitions (index_catalog.c) ---- */

/*
 * Returns why each index of the table has to be btree, or NULL.  A scan of TimescaleDB
 * over its compressed chunks takes index tuples (xs_itup), and the server ends if there
 * are heap tuples instead, which hybrid returns because they may be longer.
 */
extern char *hyb_table_needs_btree(Oid relid);

/* The index stops to look for duplicates, or does so at the end of transactions only. */
extern void hyb_index_stop_checking(Oid index, bool until_commit);

/* Returns true if the index is valid, unique, of columns, and has no predicate. */
extern bool hyb_index_is_plain_unique(Relation index);

/* Returns true if the index has one of these columns. */
extern bool hyb_index_has_column(Relation index, List *attnums);

/* Returns the constraints that ALTER TABLE adds, by themselves or with a column. */
extern List *hyb_added_constraints(const AlterTableStmt *stmt);

/* Returns the numbers of columns by their names (String); 0 for unknown names. */
extern List *hyb_column_numbers(Oid relid, List *names);

/* ---- stand-ins (stand_in.c) ---- */

typedef struct HybStandIn
{
	Oid			oid;
	Oid			index;			/* the one that it stands for */
	bool		keep_name;		/* `index` keeps its name meanwhile */

	/* by which both are found if ALTER COLUMN TYPE has made them anew */
	Oid			schema;
	char	   *name;			/* of the stand-in after the statement */
	char	   *index_name;
} HybStandIn;

/* The stand-ins of a statement. */
typedef struct HybStandIns
{
	List	   *made;			/* HybStandIn, to be ended */
	List	   *settled;		/* OIDs of indexes that need none (any more) */
} HybStandIns;

/*
 * Makes a stand-in for an index of the table, in the current memory context, and
 * adds it.  Returns NULL if the index is settled.  The stand-in gets the index's
 * name unless `keep_name`, which is for indexes without a constraint.  The caller
 * has locked the table against changes of its definition.  The index is still
 * inserted into, and still finds duplicates, but plans do not use it.
 */
extern HybStandIn *hyb_stand_in_make(HybStandIns *stand_ins, Relation table,
									 Oid index, bool keep_name);

/*
 * Gives each index its place back, with the name and the constraint that the
 * stand-in has now, and drops the stand-in.  If the statement has dropped one of
 * the two, this drops the other one.  An index of a constraint gets the marker.
 */
extern void hyb_stand_ins_end(const HybStandIns *stand_ins);

/* Called once, when the library is loaded. */
extern void hyb_stand_in_init(void);

/* The planner has collected the indexes of a table: takes stand-ins out. */
extern void hyb_stand_ins_hide(RelOptInfo *rel);

#endif							/* HYB_TWIN_H */
