/*
 * filter_place.h
 *		Where the filters of a level-1 node's leaves go.  Merge lock held.
 */
#ifndef HYB_FILTER_PLACE_H
#define HYB_FILTER_PLACE_H

#include "static/filter.h"
#include "static/update.h"

typedef struct HybFilterPlace
{
	HybStepSpace *space;
	BlockNumber *old;			/* filter pages of the node that is replaced */
	bool	   *kept;			/* which of them stay */
	int			nold;
	HybFilterPage page;			/* being filled */
} HybFilterPlace;

/* `old`: children of the node that is replaced, or NULL. */
extern void hyb_filter_place_init(HybFilterPlace *place, HybStepSpace *space,
								  const HybChildList *old);

/* Children of a neighbour that is replaced with it, before any is placed. */
extern void hyb_filter_place_add_old(HybFilterPlace *place,
									 const HybChildList *old);

/*
 * Give the children of a new node their filters.  Those with a filter_image
 * get a place on a new page; the others keep theirs, or are moved, or lose it
 * if the index wants filters no more.
 */
extern void hyb_filter_place_node(HybFilterPlace *place, HybChild *children,
								  int n);

/* Retire the pages that are not in use any more. */
extern void hyb_filter_place_finish(HybFilterPlace *place);

#endif							/* HYB_FILTER_PLACE_H */
