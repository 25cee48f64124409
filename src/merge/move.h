/*
 * move.h
 *		Moving static pages from the end of the file to free blocks.
 */
#ifndef HYB_MOVE_H
#define HYB_MOVE_H

#include "log/log.h"

/* How far a move has come; zero it first. */
typedef struct HybMove
{
	BlockNumber cut;			/* pages from this block on move */
	bool		begun;
	int			level;			/* at hand */
	HybPos		at;				/* where the next step begins in it */
	HybBuf		at_key;			/* its key */
	uint64		moved;			/* leaves moved so far */
} HybMove;

/*
 * The next leaves of a level-1 node, of every level from the newest to the
 * oldest one: those that lie in the end of the file, and what nodes and filter
 * pages lie there on the way, are written to blocks of the free list, as a
 * merge step writes leaves, and the metapage is switched.  The caller holds the
 * merge lock.  Returns false when there is nothing left to do, or no end of the
 * file at move->cut any more, or when the free list is nearly used up.
 */
extern bool hyb_move_step(HybIndex *ix, HybMove *move);

#endif							/* HYB_MOVE_H */
