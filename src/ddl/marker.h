/*
 * marker.h
 *		The storage parameter "access_method", which says that the index of a
 *		PRIMARY KEY or UNIQUE constraint is hybrid.
 *
 * The syntax of these constraints has no access method, so neither has a dump;
 * but it has the index's storage parameters.  Each hybrid index of such a
 * constraint has this one, and a definition that has it makes a hybrid index.
 * Where the library is missing btree refuses it: nothing becomes a btree index
 * quietly.
 */
#ifndef HYB_MARKER_H
#define HYB_MARKER_H

#include "postgres.h"

#include "nodes/pg_list.h"

/* Is it among the options of a statement (DefElem)? */
extern bool hyb_marker_in(List *options);

/* The options with it. */
extern List *hyb_marker_added(List *options);

/* Storage parameters (pg_class.reloptions) with or without it. */
extern Datum hyb_marker_set(Datum reloptions, bool marked);

/* Those of an index, copied, or (Datum) 0. */
extern Datum hyb_index_options(Oid index);

/* Changes those of an index, and locks it as ALTER INDEX ... SET does. */
extern void hyb_index_set_options(Oid index, Datum reloptions);

#endif							/* HYB_MARKER_H */
