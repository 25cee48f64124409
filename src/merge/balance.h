/*
 * balance.h
 *		Which leaves a merge step rewrites besides those that it has to.
 *
 * A step has to rewrite the leaves that frozen entries fall into.  Where that
 * makes more leaves than there were, or leaves half empty ones, it may take
 * untouched neighbours along, if that makes fewer leaves: docs/merges.md
 * has the rule and what it costs.  All of this is about the children of one
 * level-1 node, with the merge lock held; no buffer lock is held on entry or
 * return of any function.
 */
#ifndef HYB_BALANCE_H
#define HYB_BALANCE_H

#include "tree/update.h"

/* One child of the level-1 node, a leaf. */
typedef struct HybStepLeaf
{
	int			end;			/* one past the frozen entries that go to this
								 * leaf or those before it */
	int			added;			/* frozen entries that go to this leaf */
	Size		added_bytes;	/* of them, not compressed */
	bool		touched;		/* has to be rewritten */
	bool		rewrite;		/* is going to be rewritten */

	bool		known;			/* the page was looked at: */
	int			nitems;			/* its TIDs */
	int			live;			/* those of them that are no tombstones */
	double		fill;			/* hyb_leaf_fill */
} HybStepLeaf;

typedef struct HybBalance
{
	const HybIndex *ix;
	const HybChildList *children;
	HybStepLeaf *leaves;		/* of each child */
	int			reach;			/* neighbours that one run may take along */
	int			spare;			/* that the step may still take along */
	bool		thorough;		/* all pages are looked at anyhow */
} HybBalance;

extern void hyb_balance_init(HybBalance *balance, const HybIndex *ix,
							 const HybChildList *children, int reach,
							 int spare, bool thorough);

/* Read what the page of leaf i says, unless it is known. */
extern HybStepLeaf *hyb_balance_look(HybBalance *balance, int i);

/* What leaves [from, to) are going to hold, in leaves. */
extern double hyb_balance_content(HybBalance *balance, int from, int to);

/* Leaves that so much content takes. */
extern int	hyb_balance_count(double content);

/* Leaves that [from, to) become if only those touched are rewritten. */
extern int	hyb_balance_without(HybBalance *balance, int from, int to);

/*
 * Set `rewrite` of the leaves to rewrite with a run [from, to) of touched
 * ones, or with a single untouched one; the run's own too, unless it is
 * untouched and nothing is won.  Neighbours are taken from [lo, hi).
 */
extern void hyb_balance_run(HybBalance *balance, int from, int to, int lo,
							int hi);

/*
 * Join runs of leaves to rewrite, among the first `to`, with the leaves
 * between them if that saves leaves.
 */
extern void hyb_balance_bridge(HybBalance *balance, int to);

/* Is an untouched leaf worth a try when all leaves are visited? */
extern bool hyb_balance_is_small(HybBalance *balance, int i);

#endif							/* HYB_BALANCE_H */
