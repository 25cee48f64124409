/*
 * short_log.h
 *		Reading a log of one page a lane where it lies.
 *
 * A tree takes two chunks at least, 32 kB, however little is in it.  Many
 * indexes with little in their logs would take all memory there is from each
 * other, and each read would build a tree.  So while memory is short, such a
 * log is read in its pages: a page read more, and no slot.
 */
#ifndef HYB_SHORT_LOG_H
#define HYB_SHORT_LOG_H

#include "log/dynamic.h"
#include "shared/slot.h"

/*
 * Does what hyb_dynamic_fetch does for the generations `which`
 * (HYB_FETCH_*), but for finding out whether the version still is the current
 * one.  False, with an empty batch, if trees are what should be read.
 */
extern bool hyb_short_log_fetch(HybIndex *ix, const HybVersion *version,
								const HybFetch *fetch, int which,
								HybDynBatch *batch);

/*
 * An entry of this generation would have got a killed-tuple hint, which only
 * trees have: read it by a tree from now on.
 */
extern void hyb_short_log_killed(HybSlot *s, uint64 generation);

#endif							/* HYB_SHORT_LOG_H */
