/*
 * filter_choice.h
 *		Which filters the leaves of a level get.
 */
#ifndef HYB_FILTER_CHOICE_H
#define HYB_FILTER_CHOICE_H

#include "page/handle.h"
#include "page/settings.h"

/*
 * The kind of filter that leaves written now get, in a level (0 is the oldest
 * one) of `nlevels`; HYB_FILTER_NONE: no filters.  No lock is held on entry or
 * return.
 */
extern HybFilterKind hyb_filter_kind_of_level(const HybIndex *ix, int level,
											  int nlevels);

/* Does the index ask for a kind of filters that its keys cannot have? */
extern bool hyb_filter_impossible(const HybIndex *ix);

#endif							/* HYB_FILTER_CHOICE_H */
