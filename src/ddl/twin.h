/*
 * twin.h
 *		An index with the definition of another one, of another access method:
 *		btree in place of hybrid, or the other way round.
 */
#ifndef HYB_TWIN_H
#define HYB_TWIN_H

#include "utils/relcache.h"

/* Why an index cannot be of an access method; both are palloc'd. */
typedef struct HybTwinReason
{
	char	   *detail;
	char	   *hint;			/* or NULL */
} HybTwinReason;

/*
 * The operator class of the access method, btree or hybrid, that stands for
 * `opclass`: of the same input type, with the same operators for it.
 * InvalidOid if there is none.
 */
extern Oid	hyb_twin_class(Oid opclass, Oid access_method);

/*
 * Why a column of this type should stay btree, which compares its values only if
 * it has to: some part of a composite type or array cannot be compared.  NULL if
 * each can.
 */
extern char *hyb_twin_incomparable(Oid opclass, Oid type);

/*
 * Does each key column of the index have a class of that access method, and can
 * each value be compared, if it is hybrid?
 */
extern bool hyb_twin_possible(Relation index, Oid access_method,
							  HybTwinReason *reason);

/*
 * Creates the twin, built unless the flags (INDEX_CREATE_* of catalog/index.h)
 * say otherwise.  It belongs to no constraint and has no parent, but that of a
 * constraint's index has the storage parameter that says so in dumps.  What is
 * not kept is told in a NOTICE.  Before PostgreSQL 17 statistics targets are
 * for index_concurrently_swap to copy.  The table is locked by the caller; an
 * index that hyb_twin_possible is not true of is an error.
 */
extern Oid	hyb_twin_create(Relation table, Oid index, Oid access_method,
							const char *name, bits16 flags);

/* The same, with storage parameters that are the caller's business. */
extern Oid	hyb_twin_create_with(Relation table, Oid index, Oid access_method,
								 const char *name, bits16 flags,
								 Datum reloptions);

/* Those of the parameters that a btree index may have. */
extern Datum hyb_twin_btree_options(Datum reloptions);

/*
 * To be called after index_concurrently_swap, which makes the twin depend on
 * the operator classes of the index that it replaces: puts that right for both.
 */
extern void hyb_twin_swapped(Oid twin, Oid index);

#endif							/* HYB_TWIN_H */
