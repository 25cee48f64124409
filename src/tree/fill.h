/*
 * fill.h
 *		How full the leaves are.
 */
#ifndef HYB_FILL_H
#define HYB_FILL_H

#include "store/page.h"

/*
 * The average of hyb_leaf_fill over the leaves of the current version: exact
 * for a small index, of a sample of them for others.  Returns false if there
 * are none, or if merges never let a version be current for long enough.  No
 * lock is held on entry or return.
 */
extern bool hyb_static_fill(const HybIndex *ix, double *fill);

#endif							/* HYB_FILL_H */
