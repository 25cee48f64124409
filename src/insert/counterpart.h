/*
 * counterpart.h
 *		Two unique indexes of a table that refuse the same rows.
 */
#ifndef HYB_COUNTERPART_H
#define HYB_COUNTERPART_H

#include "utils/relcache.h"

/* Do both refuse the same rows, as far as they refuse any? */
extern bool hyb_same_uniqueness(Relation a, Relation b);

/*
 * A duplicate was found in a unique index: is it another one's to decide?
 * Then the index is not valid yet, and a valid one refuses the same rows.  Takes
 * the lock of an inserter on indexes of the table, and looks at catalogs.
 */
extern bool hyb_counterpart_decides(Relation index, Relation table);

#endif							/* HYB_COUNTERPART_H */
