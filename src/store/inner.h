/*
 * inner.h
 *		Internal nodes of the static stage.
 */
#ifndef HYB_INNER_H
#define HYB_INNER_H

#include "store/page.h"

/* Rent is counted in eighths of a page. */
#define HYB_RENT_UNIT	8

/*
 * One child.  The first child of the leftmost node of a level has the
 * separator -infinity.  Entry e belongs to the child with the greatest
 * separator that lies below e.
 */
typedef struct HybChild
{
	BlockNumber block;
	uint64		stamp;
	HybPos		low;

	/* with HYB_INNER_FILTERS; else InvalidBlockNumber and 0 */
	uint16		rent;			/* level 1, but for the oldest level's: what
								 * merges rewrote of the leaf's entries since
								 * they came there, in HYB_RENT_UNIT */
	BlockNumber filter_block;	/* level 1: filter page, filter/filter.h */
	uint16		filter_slot;	/* image on that page */

	/* while the tree is being changed: what is not on a page yet */
	char	   *image;			/* of a new leaf, or NULL */
	uint32		filter_size;
	const void *filter_image;
} HybChild;

/* A growable list of children; keys live in the current memory context. */
typedef struct HybChildList
{
	HybChild   *children;
	int			n;
	int			alloc;
} HybChildList;

#ifdef USE_ASSERT_CHECKING
extern void hyb_child_assert_valid(const HybChild *child);

/* A list of children of one node, in order: takes a comparison a child. */
extern void hyb_child_list_assert_valid(const HybChildList *list, const HybKeyDesc *desc);

/* A node that hyb_inner_fill has filled, before it is written. */
extern void hyb_inner_assert_valid(Page page);
#else
#define hyb_child_assert_valid(child) ((void) (child))
#define hyb_child_list_assert_valid(list, desc) ((void) (list))
#define hyb_inner_assert_valid(page) ((void) (page))
#endif

extern void hyb_child_list_add(HybChildList *list, const HybChild *child);

/* Bytes that a child takes on a page, its slot included. */
extern Size hyb_inner_child_size(const HybChild *child, bool filters);

/*
 * Fill an initialised HYB_PAGE_INNER page; children must fit.  `filters` says that
 * the node stores their rent and filters too, which only one of level 1 may.
 */
extern void hyb_inner_fill(Page page, const HybChild *children, int n,
						   bool filters);

extern int	hyb_inner_count(Page page);

/* Child i; low.key points into the page.  Bounds-checked against damage. */
extern void hyb_inner_get(Page page, int i, HybChild *child, Relation rel,
						  BlockNumber blkno);

/*
 * Index of the child to follow: forward, the one that holds the first entry
 * above pos; backward, the one that holds the last entry below pos.
 */
extern int	hyb_inner_search(const HybKeyDesc *desc, Page page,
							 const HybPos *pos, bool backward, Relation rel,
							 BlockNumber blkno);

#endif							/* HYB_INNER_H */
