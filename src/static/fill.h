/*
 * fill.h
 *		How full the leaves are.
 */
#ifndef HYB_FILL_H
#define HYB_FILL_H

#include "page/page.h"

/* An index is worth the visit of all leaves if they are emptier than that. */
#define HYB_FILL_POOR		0.75

/* ... and if it has so many. */
#define HYB_FILL_MIN_LEAVES	8

/*
 * The average of hyb_leaf_fill over the leaves of the current version: exact
 * for a small index, of a sample of them for others.  Returns false if there
 * are none, or if merges never let a version be current for long enough.  No
 * lock is held on entry or return.
 */
extern bool hyb_static_fill(const HybIndex *ix, double *fill);

#endif							/* HYB_FILL_H */
