/*
 * using_clause.h
 *		Was the access method written, or is it the grammar's default?
 */
#ifndef HYB_USING_CLAUSE_H
#define HYB_USING_CLAUSE_H

#include "postgres.h"

/*
 * Does the text of a CREATE INDEX statement have USING?  It, or the name of the
 * table in it, begins at byte `location` of `source`, at its begin if that is
 * negative.
 */
extern bool hyb_using_in_create_index(const char *source, int location);

/* The same for an EXCLUDE constraint. */
extern bool hyb_using_in_exclude(const char *source, int location);

#endif							/* HYB_USING_CLAUSE_H */
