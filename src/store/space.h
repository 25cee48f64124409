/*
 * space.h
 *		Blocks of the index: free list and pending blocks.
 */
#ifndef HYB_SPACE_H
#define HYB_SPACE_H

#include "store/meta.h"

/*
 * Take blocks for a merge step: from the free list first, then from what was
 * about to be cut off, which is not any more then (file_end.h), then by extending
 * the relation, at most until the metapage's pending[] is full.  The blocks
 * are in pending[] (logged) on return, so that a crash cannot lose them.
 * Caller holds the merge lock and no buffer lock.
 * Up to `spare` more are taken of those that are free, but the file does not grow
 * for them.  Returns how many were had.
 */
extern int	hyb_space_reserve(const HybIndex *ix, int wanted, int spare,
							  BlockNumber *blocks);

/*
 * A reserved or free block, pinned and locked for cleanup, for the caller to
 * overwrite; its content is undefined, it is not read from disk.
 * InvalidBuffer if somebody has it pinned (a scan that returned an entry of
 * the page it once was): then leave it where it is.  `from` is as for
 * hyb_page_read.
 */
extern Buffer hyb_space_open(const HybIndex *ix, BlockNumber block,
							 BlockNumber from);

/*
 * Put the blocks that a crash left behind a relation extension, all zeroes or
 * empty free-list pages that no list knows, into pending[].  Caller holds the
 * merge lock; pending[] must be empty and n at most HYB_MAX_PENDING.
 */
extern void hyb_space_adopt(const HybIndex *ix, const BlockNumber *blocks,
							int n);

/* Block numbers on a free-list page; opaque->count of them are valid. */
#define HYB_FREELIST_CAPACITY	(HYB_PAGE_CAPACITY / sizeof(BlockNumber))
#define hyb_freelist_blocks(page) ((BlockNumber *) PageGetContents(page))

/*
 * A page of a free list, which `from` names, locked exclusively; the metapage
 * is, too.
 */
extern Buffer hyb_freelist_lock(const HybIndex *ix, BlockNumber block,
								BlockNumber from);

/* Make a block an empty page of a free list, before the page `next` of it. */
extern void hyb_freelist_init(const HybIndex *ix, Page page, BlockNumber next);

/*
 * Move everything in pending[] to the free list, or to that of the end of the
 * file that is about to be cut off.  Caller holds the merge lock and no buffer
 * lock.
 */
extern void hyb_space_settle(const HybIndex *ix);

/*
 * One block for a delta page.  Caller holds the metapage exclusively (`meta`
 * buffer), and logs the metapage, the free-list page if *trunk is valid on
 * return (locked exclusively; unlock after commit), and the new page
 * (returned, locked exclusively) in one record.  The metapage and trunk are
 * changed by hyb_space_take_apply inside the critical section.
 */
typedef struct HybSpaceTake
{
	Buffer		page;			/* the block, locked exclusively */
	Buffer		trunk;			/* free-list page changed, or InvalidBuffer */
	bool		from_freelist;
	bool		trunk_emptied;	/* the block was the free-list page itself */
	BlockNumber trunk_next;
	uint32		trunk_slot;		/* entry of the trunk that was taken */
} HybSpaceTake;

extern void hyb_space_take(const HybIndex *ix, Buffer metabuf,
						   HybSpaceTake *take);
extern void hyb_space_take_apply(HybWalSet *set, Buffer metabuf,
								 HybSpaceTake *take);

/* Unlock and release what hyb_space_take locked. */
extern void hyb_space_take_release(HybSpaceTake *take);

#endif							/* HYB_SPACE_H */
