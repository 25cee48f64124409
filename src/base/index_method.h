/*
 * index_method.h
 *		Access methods of indexes, by what the catalogs say.
 */
#ifndef HYB_INDEX_METHOD_H
#define HYB_INDEX_METHOD_H

#include "postgres.h"

/* Is the index, which may be gone, of the access method? */
extern bool hyb_index_is_of(Oid index, Oid access_method);

/* Have two operator families the same operators for the type? */
extern bool hyb_same_operators(Oid family_a, Oid family_b, Oid type);

/*
 * The name of one of the extension's SQL functions as a statement needs it,
 * whatever the search path is, for a hint.
 */
extern char *hyb_sql_function(const char *name);

#endif							/* HYB_INDEX_METHOD_H */
