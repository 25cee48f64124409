/*
 * filter_choice.h
 *		Which filters the leaves of a level get, and whether searches ask them.
 */
#ifndef HYB_FILTER_CHOICE_H
#define HYB_FILTER_CHOICE_H

#include "store/handle.h"
#include "store/settings.h"

/* ---- which filters leaves get ---- */

/*
 * The kind of filter that leaves written now get in a level (0 is the oldest) of
 * `nlevels`, or HYB_FILTER_NONE.  The caller holds no buffer lock; it may hold
 * the merge lock.
 */
extern HybFilterKind hyb_filter_kind_of_level(const HybIndex *ix, int level,
											  int nlevels);

/*
 * The same for CREATE INDEX, which knows about how many leaves there will be.
 * `ascending`: the share of entries whose row follows that of the entry before
 * in the table.
 */
extern HybFilterKind hyb_filter_kind_for_build(const HybIndex *ix,
											   double leaves, double ascending);

/* Can hyb_filter_kind_for_build return anything but HYB_FILTER_NONE? */
extern bool hyb_filter_is_chosen(const HybIndex *ix);

/* Does the index ask for a kind of filter that its keys cannot have? */
extern bool hyb_filter_impossible(const HybIndex *ix);

/*
 * Can leaves of the oldest level have filters of this kind?  Prefixes have
 * filters for points only.
 */
extern bool hyb_filter_fits_prefixes(const HybIndex *ix, HybFilterKind kind);

/* ---- whether searches ask them ---- */

/* The searches for which a backend finds out separately whether filters pay. */
typedef enum HybFilterAsker
{
	HYB_ASK_POINT,				/* scans for a single key */
	HYB_ASK_RANGE,				/* other scans; only range filters serve them */
	HYB_ASK_UNIQUE				/* uniqueness checks */
} HybFilterAsker;

#define HYB_FILTER_ASKERS			3

/* What came of asking a leaf's filter. */
typedef enum HybProbeOutcome
{
	HYB_PROBE_HIT,				/* "maybe", and there was something */
	HYB_PROBE_NEGATIVE,			/* "no": the leaf was not read */
	HYB_PROBE_FALSE_POSITIVE	/* "maybe", but there was nothing */
} HybProbeOutcome;

#define HYB_PROBE_OUTCOMES			3

/*
 * What a uniqueness check met: first in the static stage, for
 * hyb_filter_kind_of_level.  Counted behind the outcomes of questions.
 */
typedef enum HybUniqueOutcome
{
	HYB_UNIQUE_ABOVE = HYB_PROBE_OUTCOMES,	/* the key lies above all of it,
											 * so no leaf was sought */
	HYB_UNIQUE_ABSENT,			/* nothing */
	HYB_UNIQUE_PRESENT,			/* entries of the key, dead or alive */
	HYB_UNIQUE_DENIED,			/* the membership filter says that no run has
								 * the key: nothing was searched */
	HYB_UNIQUE_FALSE_POSITIVE	/* it says "maybe", but no run had it */
} HybUniqueOutcome;

#define HYB_UNIQUE_OUTCOMES			5

/* When the library is loaded. */
extern void hyb_filter_use_init(void);

/*
 * The levels whose filters are worth asking, a bit for each.  Where nearly every
 * question finds something, the backend asks one time in 16, then more and more
 * seldom, down to one in 1024, until an answer is "no".
 */
extern uint8 hyb_filter_try(const HybIndex *ix, HybFilterAsker asker);

#define hyb_filter_try_level(levels, level) (((levels) >> (level) & 1) != 0)

/* Count an outcome.  The sums are HybLogStats.counters. */
extern void hyb_filter_note(const HybIndex *ix, HybFilterAsker asker, int level,
							HybProbeOutcome outcome);

#endif							/* HYB_FILTER_CHOICE_H */
