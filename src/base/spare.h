/*
 * spare.h
 *		Objects that a backend keeps from one statement to the next.
 *
 * Large buffers and the like, which every statement would otherwise make anew.
 * They lie in memory that stays, are lent to a memory context, and come back
 * with a callback of that, after an error too.
 */
#ifndef HYB_SPARE_H
#define HYB_SPARE_H

#include "utils/palloc.h"

struct HybSpareList;

/* What such an object begins with. */
typedef struct HybSpare
{
	struct HybSpare *next;		/* in the list */
	struct HybSpareList *list;	/* where it goes back to */
	MemoryContextCallback callback;
} HybSpare;

/* Objects of one kind that nobody uses. */
typedef struct HybSpareList
{
	void		(*free) (void *object);
	HybSpare   *first;
	int			n;
} HybSpareList;

/* One of them, or NULL if there is none: the caller makes one then. */
extern void *hyb_spare_take(HybSpareList *list);

/* Lend an object until the context goes. */
extern void hyb_spare_lend(HybSpareList *list, HybSpare *object,
						   MemoryContext context);

#endif							/* HYB_SPARE_H */
