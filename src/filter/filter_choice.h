/*
 * filter_choice.h
 *		Which filters the leaves of a level get.
 */
#ifndef HYB_FILTER_CHOICE_H
#define HYB_FILTER_CHOICE_H

#include "store/handle.h"
#include "store/settings.h"

/*
 * The kind of filter that leaves written now get, in a level (0 is the oldest
 * one) of `nlevels`; HYB_FILTER_NONE: no filters.  No lock is held on entry or
 * return, but the merge lock may be.
 */
extern HybFilterKind hyb_filter_kind_of_level(const HybIndex *ix, int level,
											  int nlevels);

/*
 * CREATE INDEX: the kind that is chosen once it is known about how many leaves
 * there will be, and of what share of entries the row comes behind that of the
 * entry before.
 */
extern HybFilterKind hyb_filter_kind_for_build(const HybIndex *ix,
											   double leaves, double ascending);

/* May hyb_filter_kind_for_build say anything but HYB_FILTER_NONE? */
extern bool hyb_filter_is_chosen(const HybIndex *ix);

/* Does the index ask for a kind of filters that its keys cannot have? */
extern bool hyb_filter_impossible(const HybIndex *ix);

/*
 * Can leaves of the oldest level have filters of a kind, which is true of all where
 * they keep keys?
 */
extern bool hyb_filter_fits_prefixes(const HybIndex *ix, HybFilterKind kind);

#endif							/* HYB_FILTER_CHOICE_H */
