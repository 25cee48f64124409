/*
 * own_trees.h
 *		A backend's own trees of an index, and the form in which it reads its log.
 */
#ifndef HYB_OWN_TREES_H
#define HYB_OWN_TREES_H

#include "lib/ilist.h"
#include "shared/index_cache.h"

/* How a backend reads a log, in the order in which it tries them. */
typedef enum HybReadForm
{
	HYB_READ_SHARED,			/* through shared trees */
	HYB_READ_OWN,				/* through its own */
	HYB_READ_PAGES				/* page by page */
} HybReadForm;

typedef struct HybOwnTrees
{
	HybStage   *stage;			/* NULL: there are none */
	HybArena   *arena;			/* that they are in */
	LocalTransactionId user;	/* functions up the stack of this transaction
								 * and subtransaction use them, if it runs */
	SubTransactionId subuser;	/* 0: none do */
	dlist_node	node;			/* of the list of those that there are */
	HybCache   *cache;			/* that this is a piece of */
	HybSharedSlot *slot;		/* has told them of appends; NULL: none has */
	uint64		slot_serial;
	uint64		generation;		/* the active one when shared memory lacked */
	TimestampTz until[HYB_READ_PAGES];	/* forms that are not tried: memory
										 * lacked for them */
} HybOwnTrees;

extern HybCachePiece hyb_own_trees_piece;

static inline HybOwnTrees *
hyb_own_trees(HybCache *cache)
{
	return hyb_cache_piece_of(cache, &hyb_own_trees_piece);
}

/* Make trees, unless there are some, and drop others if they take too much. */
extern void hyb_own_trees_make(HybCache *cache);
extern void hyb_own_trees_drop(void *piece);

/* Are they in use by functions up the stack?  Nothing else changes or drops them then. */
extern bool hyb_own_trees_busy(const HybOwnTrees *own);

/* They are, while keys are compared; and not any more. */
extern void hyb_own_trees_begin(HybOwnTrees *own);
extern void hyb_own_trees_end(HybOwnTrees *own);

/*
 * Look for the slot that tells of appends.  If it is not the one that has told
 * the trees of them, they are not synced any more: returns false.
 */
extern bool hyb_own_trees_find_slot(HybOwnTrees *own);

/* The form to try, of `first` and later ones; this generation is active. */
extern HybReadForm hyb_read_form(const HybOwnTrees *own, HybReadForm first,
								 uint64 generation);

/* There is no memory for a form: returns the one to try instead. */
extern HybReadForm hyb_read_lacks(HybOwnTrees *own, HybReadForm form, uint64 generation);

#endif							/* HYB_OWN_TREES_H */
