/*
 * shrink.h
 *		Returning free blocks at the end of an index's file.
 *
 * In steps between which nothing is held: the end of the file is named
 * (store/file_end.c), what lies there moves to free blocks before it
 * (merge/move.h), and the end is cut off, with the index locked for that
 * moment.  Who gives up in between leaves nothing to be undone.
 *
 * One process at a time shrinks an index, and VACUUM does not work on it
 * meanwhile: the caller is VACUUM, or has the table locked as VACUUM has.
 */
#ifndef HYB_SHRINK_H
#define HYB_SHRINK_H

#include "log/log.h"
#include "store/meta.h"

/*
 * When a file is worth it.  `used` are the blocks in use, and cut off is what
 * lies behind as many and some spare ones, which insertions and steps take
 * meanwhile.
 */
typedef struct HybShrinkRule
{
	int			min_free;		/* free blocks at least */
	int			free_fraction;	/* one block of so many is free at least */
	int			min_returned;	/* blocks to be cut off, at least */
	int			spare_fraction; /* spare are one for so many used ones */
	int			spare;			/* and so many */
} HybShrinkRule;

typedef struct HybShrink
{
	HybIndex   *ix;
	const HybShrinkRule *rule;
	BlockNumber cut;			/* first block of the end */
	uint64		moved;			/* leaves moved so far */

	/*
	 * Called before each step, with no lock held: is there to be another one?
	 */
	bool		(*go_on) (void *arg);
	void	   *arg;
} HybShrink;

/* Does the rule say so?  The metapage is of a copy, nblocks the file's length. */
extern bool hyb_shrink_pays(const HybShrinkRule *rule, const HybMetaPage *meta,
							BlockNumber nblocks);

/*
 * May the file be cut: nobody in this session but the caller has the index
 * open, and the table's options allow it?
 */
extern bool hyb_shrink_allowed(const HybIndex *ix);

/*
 * Name the end that is to go, and take its blocks off the free list; false if
 * the file is not to shrink, or go_on says so.  No lock is held on entry or
 * return, but for those of the table and the index.
 */
extern bool hyb_shrink_begin(HybShrink *shrink);

/* Does a page of the log lie in the end?  Such pages do not move. */
extern bool hyb_shrink_log_in_end(const HybShrink *shrink);

/* Move what else lies there; false if go_on says so. */
extern bool hyb_shrink_move(HybShrink *shrink);

/*
 * Cut the end off if all of it is free and the index can be locked, which is
 * tried so often; false if it is still there.  It cannot be done in parallel
 * mode.
 */
extern bool hyb_shrink_cut(HybIndex *ix, int tries);

#endif							/* HYB_SHRINK_H */
