/*
 * descend.h
 *		Descent from the root of a static level to a leaf.
 */
#ifndef HYB_DESCEND_H
#define HYB_DESCEND_H

#include "store/meta.h"

/* Leaves that a scan may be ahead. */
#define HYB_LEAVES_AHEAD	16

/*
 * A scan from leaf to leaf: those that follow are asked for before it gets to
 * them.  None with the first leaf, then one, two, four.  When a scan begins, last
 * is InvalidBlockNumber and distance 0.
 */
typedef struct HybLeavesAhead
{
	BlockNumber last;			/* the leaf that the scan came to last */
	int			distance;		/* leaves beyond it that were asked for */
	int			max;			/* up to HYB_LEAVES_AHEAD; 0: none */
	const HybPos *bound;		/* where the scan ends */
	int			n;				/* to be asked for now */
	BlockNumber blocks[HYB_LEAVES_AHEAD];
} HybLeavesAhead;

/* What is sought. */
typedef struct HybSought
{
	int			level;			/* static level, 0 is the oldest one */

	/*
	 * Forward, the leaf that holds the first entry above the position;
	 * backward, the one that holds the last entry below it.
	 */
	const HybPos *pos;
	bool		backward;
	bool		want_fence;		/* where does the next leaf begin? */

	/*
	 * The other end of what is sought, or NULL.  The leaf's filter is asked
	 * whether anything lies between it and the position; if not, the leaf is
	 * skipped.
	 */
	const HybPos *bound;
	bool		stop_at_filter; /* nor is it read if the filter says "maybe" */
	HybLeavesAhead *ahead;		/* or NULL */
	bool		only_fence;		/* the leaf is not read, nor its filter */
} HybSought;

/* Where a descent arrived. */
typedef struct HybDescent
{
	Buffer		buf;			/* the leaf, pinned and share-locked;
								 * InvalidBuffer if it is not read */
	BlockNumber block;
	uint64		stamp;
	bool		probed;			/* a filter was asked, and answered */
	bool		skipped;		/* it said "no" */

	/*
	 * With want_fence: the leaf's fence on the side that the search goes on
	 * at, the upper one forward, the lower one backward; else infinity.
	 */
	HybPos		fence;
	HybBuf		fence_key;		/* memory for its key, used again and again */
} HybDescent;

/* When the library is loaded. */
extern void hyb_static_init(void);

/*
 * Descend from the root of a level of the version, which must not be empty.
 * Returns false if a stamp did not match (the version is no longer current:
 * recapture and retry); no buffer is held then.  No lock is held on entry.
 */
extern bool hyb_static_descend(const HybIndex *ix, const HybVersion *version,
							   const HybSought *sought, HybDescent *descent);

/*
 * A page was not what a pointer to it said.  That happens when the version is
 * no longer current; if it is, the page is damaged, and starting over would
 * come here for ever: an error.
 */
extern void hyb_check_stale(const HybIndex *ix, const HybVersion *version,
							BlockNumber block);

#endif							/* HYB_DESCEND_H */
