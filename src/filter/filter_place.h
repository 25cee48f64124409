/*
 * filter_place.h
 *		Where the filters of leaves go.
 *
 * The caller holds the merge lock, or is building the index.
 */
#ifndef HYB_FILTER_PLACE_H
#define HYB_FILTER_PLACE_H

#include "filter/filter.h"
#include "store/space.h"

/* Packs images of a list's children to filter pages. */
typedef struct HybFilterPacker
{
	HybStepSpace *space;
	HybChildList *list;
	int			n;				/* images that wait for a page */
	Size		size;			/* their bytes, aligned */
	int			children[HYB_PAGE_CAPACITY / sizeof(HybFilterEntry)];	/* of the list */
} HybFilterPacker;

extern void hyb_filter_packer_init(HybFilterPacker *packer,
								   HybStepSpace *space, HybChildList *list);

/*
 * Add the image of child number `child`, whose block and stamp must be known.  A
 * full page is written, and its images are freed.  Until then the list's
 * children must not move.
 */
extern void hyb_filter_pack(HybFilterPacker *packer, int child);

/* Write a page of what waits, and tell the children where their filters are. */
extern void hyb_filter_pack_write(HybFilterPacker *packer);

/* The filters of a level-1 node that is written anew. */
typedef struct HybFilterPlace
{
	HybStepSpace *space;
	BlockNumber *old;			/* filter pages of the node that is replaced */
	bool	   *kept;			/* which of them stay */
	int			nold;
} HybFilterPlace;

/* `old`: children of the replaced node, or NULL. */
extern void hyb_filter_place_init(HybFilterPlace *place, HybStepSpace *space,
								  const HybChildList *old);

/* The same for a neighbour that is replaced too, before any node is placed. */
extern void hyb_filter_place_add_old(HybFilterPlace *place,
									 const HybChildList *old);

/*
 * Place the filters of children [from, to) of a list, those of a new node.  A
 * child with a filter_image gets a place on a new page.  Others keep theirs or
 * are moved, or lose it if the index has no filters any more.
 */
extern void hyb_filter_place_node(HybFilterPlace *place, HybChildList *list,
								  int from, int to);

/* Retire the pages that did not stay. */
extern void hyb_filter_place_finish(HybFilterPlace *place);

#endif							/* HYB_FILTER_PLACE_H */
