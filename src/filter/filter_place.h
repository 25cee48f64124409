/*
 * filter_place.h
 *		Where the filters of leaves go.  The merge lock is held, or the index is
 *		under construction.
 */
#ifndef HYB_FILTER_PLACE_H
#define HYB_FILTER_PLACE_H

#include "filter/filter.h"
#include "store/space.h"

/* Images of children of a list, packed to filter pages. */
typedef struct HybFilterPacker
{
	HybStepSpace *space;
	HybChildList *list;
	int			n;				/* images on the page at hand */
	Size		size;			/* their bytes, aligned */
	int			children[HYB_PAGE_CAPACITY / sizeof(HybFilterEntry)];	/* of the list */
} HybFilterPacker;

extern void hyb_filter_packer_init(HybFilterPacker *packer,
								   HybStepSpace *space, HybChildList *list);

/*
 * Add the image of a child of the list, whose block and stamp must be known.
 * Children before it stay at their places until their page is written, which
 * is done when it is full; their images are freed then.
 */
extern void hyb_filter_pack(HybFilterPacker *packer, int child);

/* Write the page at hand, and tell the children where their filters are. */
extern void hyb_filter_pack_write(HybFilterPacker *packer);

/* The filters of a node that is written anew. */
typedef struct HybFilterPlace
{
	HybStepSpace *space;
	BlockNumber *old;			/* filter pages of the node that is replaced */
	bool	   *kept;			/* which of them stay */
	int			nold;
} HybFilterPlace;

/* `old`: children of the node that is replaced, or NULL. */
extern void hyb_filter_place_init(HybFilterPlace *place, HybStepSpace *space,
								  const HybChildList *old);

/* Children of a neighbour that is replaced with it, before any is placed. */
extern void hyb_filter_place_add_old(HybFilterPlace *place,
									 const HybChildList *old);

/*
 * Give the children [from, to) of a list, those of a new node, their filters.
 * Those with a filter_image get a place on a new page; the others keep theirs,
 * or are moved, or lose it if the index wants filters no more.
 */
extern void hyb_filter_place_node(HybFilterPlace *place, HybChildList *list,
								  int from, int to);

/* Retire the pages that are not in use any more. */
extern void hyb_filter_place_finish(HybFilterPlace *place);

#endif							/* HYB_FILTER_PLACE_H */
