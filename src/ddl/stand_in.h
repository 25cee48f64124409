/*
 * stand_in.h
 *		A btree index without content that takes the place of a hybrid one while
 *		the server asks for a btree index.
 *
 * Within one statement: hyb_stand_in_make, the statement, hyb_stand_in_end.  An
 * error anywhere takes everything back with the transaction.
 */
#ifndef HYB_STAND_IN_H
#define HYB_STAND_IN_H

#include "postgres.h"

#include "nodes/parsenodes.h"
#include "utils/relcache.h"

typedef struct HybStandIn
{
	Oid			oid;
	Oid			index;			/* the one that it stands for */
	bool		keep_name;		/* `index` keeps its name meanwhile */

	/* to find them by, if ALTER COLUMN TYPE has made them anew */
	Oid			schema;
	char	   *name;			/* what the stand-in is called after it */
	char	   *index_name;

	/* the index's definition, if it is made after the statement only, or NULL */
	Oid			table;
	IndexStmt  *definition;
} HybStandIn;

/*
 * Makes one for an index of the table, in the current memory context.  The
 * stand-in gets the index's name, unless `keep_name`, which is for indexes that
 * belong to no constraint.  The table is locked against changes of its
 * definition.  The index goes on to be kept up to date, and to find duplicates;
 * plans do not use it meanwhile.
 */
extern HybStandIn *hyb_stand_in_make(Relation table, Oid index, bool keep_name);

/*
 * The same for an index of columns whose types the statement changes, and that
 * a foreign key references.  ALTER TABLE makes both indexes again, and would
 * look for the foreign key's in any order: so the index itself is dropped, and
 * made when all is over.
 */
extern HybStandIn *hyb_stand_in_make_alone(Relation table, Oid index);

/*
 * Gives the index its place back, with the name and the constraint that the
 * stand-in has now, and drops the stand-in.  If the statement has dropped one of
 * them, the other one is dropped too.  Returns the index, or InvalidOid.
 */
extern Oid	hyb_stand_in_end(const HybStandIn *stand_in);

/* Called once, when the library is loaded. */
extern void hyb_stand_in_init(void);

#endif							/* HYB_STAND_IN_H */
