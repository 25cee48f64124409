/*
 * hand_over.h
 *		Predicate locks on leaves that a step replaces.
 */
#ifndef HYB_HAND_OVER_H
#define HYB_HAND_OVER_H

#include "tree/update.h"

/* Leaves of the oldest level that a step replaces. */
typedef struct HybReplacedLeaves
{
	const HybPath *path;		/* to the level-1 node above them, as it was */
	const BlockNumber *retired; /* the leaves, from left to right */
	int			nretired;
	const HybRoot *root;		/* of the new tree, which is written */
} HybReplacedLeaves;

/*
 * Lock the metapage exclusively for the switch to the new tree, and hand the
 * predicate locks over.  The merge lock is held, and nothing else.
 */
extern Buffer hyb_meta_lock_to_replace(HybIndex *ix, const HybReplacedLeaves *replaced,
									   HybMetaPage **meta);

#endif							/* HYB_HAND_OVER_H */
