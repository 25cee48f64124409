/*
 * shrink.h
 *		Returning free blocks at the end of an index's file.
 *
 * Shrinking names the end of the file (store/file_end.c), moves what lies there
 * to free blocks before it (move.c), and cuts the end off, with the index locked
 * for that moment.  It does so in steps, and holds no lock between them.  A
 * process that gives up in between leaves nothing to undo.
 *
 * The caller is VACUUM, or has the table locked as VACUUM has.  So one process
 * at a time shrinks an index, and VACUUM does not work on it meanwhile.
 */
#ifndef HYB_SHRINK_H
#define HYB_SHRINK_H

#include "log/log.h"
#include "store/meta.h"

/*
 * When it pays to shrink a file.  What lies beyond the blocks in use and some
 * spare ones is cut off.  Inserts and steps take the spare ones meanwhile.
 */
typedef struct HybShrinkRule
{
	int			min_free;		/* free blocks at least */
	int			free_fraction;	/* at least 1 of this many blocks is free */
	int			min_returned;	/* blocks to be cut off at least */
	int			spare_fraction; /* a spare block for this many in use */
	int			spare;			/* further spare blocks */
} HybShrinkRule;

typedef struct HybShrink
{
	HybIndex   *ix;
	const HybShrinkRule *rule;
	BlockNumber cut;			/* first block of the end */
	uint64		moved;			/* leaves moved so far */

	/* Called before each step, with no lock held; false: give up. */
	bool		(*go_on) (const struct HybShrink *shrink);
	Relation	heap;			/* for go_on */
} HybShrink;

/* What is to be done with an index if it has no inserts for some time. */
typedef enum HybQuietWork
{
	HYB_QUIET_NONE,
	HYB_QUIET_LATER,			/* it is not quiet: look again */
	HYB_QUIET_MERGE,			/* merge all of it */
	HYB_QUIET_SHRINK			/* shrink the file, by this rule */
} HybQuietWork;

extern const HybShrinkRule hyb_quiet_rule;

/* LATER is not among the answers. */
extern HybQuietWork hyb_quiet_work(HybIndex *ix);

/*
 * May the file be cut?  Only if the caller alone has the index open in this
 * session, and the table's options allow it.
 */
extern bool hyb_shrink_allowed(const HybIndex *ix);

/*
 * Name the end of the file, and take its blocks off the free list.  Returns
 * false if it does not pay, or go_on says no.  Only the table and the index are
 * locked on entry and exit, as for all of these.
 */
extern bool hyb_shrink_begin(HybShrink *shrink);

/*
 * Move what lies there, but for pages of the log, which go with a merge; false if
 * go_on says no.
 */
extern bool hyb_shrink_move(HybShrink *shrink);

/*
 * Cut the end off if all of it is free and the index can be locked, which is
 * tried `tries` times.  Returns false if the end is still there.  Not in parallel
 * mode.
 */
extern bool hyb_shrink_cut(HybIndex *ix, int tries);

#endif							/* HYB_SHRINK_H */
