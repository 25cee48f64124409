/*
 * space.h
 *		Blocks of an index: free list, pending blocks, the end of the file.
 */
#ifndef HYB_SPACE_H
#define HYB_SPACE_H

#include "store/meta.h"

/*
 * Take up to `wanted` blocks for a merge step, at most until the metapage's
 * pending[] is full.  They come, in this order, from:
 *
 * - the free list, but for blocks that are pinned
 * - the end that VACUUM was about to cut off, which is then called off (file_end.c)
 * - extending the relation
 *
 * Up to `spare` more come from the first two, but the file does not grow for them.
 * Returns the number of blocks.  They are in pending[] (logged) on return, so that a
 * crash cannot lose them.  Caller holds the merge lock and no buffer lock.
 */
extern int	hyb_space_reserve(const HybIndex *ix, int wanted, int spare,
							  BlockNumber *blocks);

/*
 * A reserved or free block, pinned and locked for cleanup, for the caller to
 * overwrite; its content is undefined, it is not read from disk.
 * InvalidBuffer if it is pinned (by a scan that returned an entry of the page it
 * once was): then leave it where it is.  `from` is as for
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

/*
 * Block numbers on a free-list page; opaque->count of them are valid, and lie
 * before pd_lower.
 */
#define HYB_FREELIST_CAPACITY	(HYB_PAGE_CAPACITY / sizeof(BlockNumber))
#define hyb_freelist_blocks(page) ((BlockNumber *) PageGetContents(page))

/* Can the page have as many blocks as it says, and take more? */
static inline bool
hyb_freelist_valid(Page page)
{
	uint32		count = hyb_page_opaque(page)->count;
	PageHeader	header = (PageHeader) page;

	return count <= HYB_FREELIST_CAPACITY &&
		SizeOfPageHeaderData + count * sizeof(BlockNumber) <= header->pd_lower &&
		header->pd_upper == header->pd_special;
}

/*
 * A page of a free list, which `from` names, locked exclusively; the metapage
 * is, too.
 */
extern Buffer hyb_freelist_lock(const HybIndex *ix, BlockNumber block,
								BlockNumber from);

/* Make a block an empty page of a free list, before the page `next` of it. */
extern void hyb_freelist_init(const HybIndex *ix, Page page, BlockNumber next);

/*
 * Add blocks to a page of a free list, which has room for them.  Returns true if
 * pd_lower has grown: it is to be logged, as are the blocks and the trailer.
 */
extern bool hyb_freelist_put(Page page, const BlockNumber *blocks, uint32 n);

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

/*
 * ---- blocks of a merge step or a build (step_space.c) ----
 *
 * The merge lock is held, or the index is under construction.
 */

typedef struct HybStepSpace
{
	const HybIndex *ix;
	bool		filters;		/* nodes of level 1 have rent and filters */
	bool		bulk;			/* CREATE INDEX: write by extending the
								 * relation, log nothing, keep no lists */
	bool		shared;			/* bulk: other processes extend it too */
	BlockNumber own;			/* shared: the next of nown blocks that are */
	int			nown;			/* for this process to write */
	int			taken;			/* shared: blocks taken so far */
	uint64		stamp;			/* of every page the step builds */
	BlockNumber reserved[HYB_MAX_PENDING];
	int			nreserved;
	int			next;			/* first one not tried yet */
	BlockNumber used[HYB_MAX_PENDING];
	int			nused;
	BlockNumber retired[HYB_MAX_PENDING];
	int			nretired;
	bool		full;			/* pending[] has no room for more: what was
								 * built is good for nothing */
	int			new_inner;		/* internal nodes written */
	int			old_inner;		/* internal nodes retired */
	int			new_filter;		/* filter pages written */
	uint64		filtered;		/* leaves whose filters are on these */
	int			old_filter;		/* filter pages retired */
} HybStepSpace;

#ifdef USE_ASSERT_CHECKING
extern void hyb_step_space_assert_valid(const HybStepSpace *space);
#else
#define hyb_step_space_assert_valid(space) ((void) (space))
#endif

/*
 * `filters`: whether the caller builds filters for the leaves.  The caller decides
 * that once and passes it on, because the option may change meanwhile: ALTER INDEX
 * conflicts neither with insertions and merges nor with CREATE INDEX CONCURRENTLY.
 */
extern void hyb_step_space_init(HybStepSpace *space, const HybIndex *ix,
								uint64 stamp, bool filters, int expected);

extern void hyb_bulk_space_init(HybStepSpace *space, const HybIndex *ix,
								uint64 stamp, bool filters);

/*
 * Other processes write to the relation too, from now on.  Each takes neighbouring
 * blocks by the dozen, so that leaves that follow each other mostly do so in the
 * file.  Blocks it has not written in the end are empty free-list pages.
 */
extern void hyb_bulk_space_share(HybStepSpace *space);

/*
 * Write a page image to one of the reserved blocks (more are reserved when they
 * run out), log it, and return its block.  If pending[] has no room for more,
 * returns InvalidBlockNumber, and space->full is set.
 */
extern BlockNumber hyb_step_write(HybStepSpace *space, const char *image);
extern void hyb_step_retire(HybStepSpace *space, BlockNumber block);

/*
 * The blocks that a step has retired, and those it reserved without using them,
 * take the place of all it reserved in pending[]: do they fit?  Asked before the
 * metapage is changed.
 */
extern bool hyb_step_fits(const HybStepSpace *space, const HybMetaPage *meta);

extern void hyb_step_give_back(const HybStepSpace *space, HybMetaPage *meta);

/*
 * ---- the end of the file that VACUUM is about to cut off (file_end.c) ----
 *
 * The caller holds the merge lock and no buffer lock.
 */

/*
 * The end begins at this block from now on.  What was an end before is a part
 * of the free list again, and no cut that was made may be unfinished.
 */
extern void hyb_file_end_begin(const HybIndex *ix, BlockNumber cut);

typedef enum HybSiftResult
{
	HYB_SIFT_MORE,				/* moved some blocks */
	HYB_SIFT_DONE,				/* none were left */
	HYB_SIFT_STUCK				/* the blocks that it would need are pinned,
								 * or the end was called off */
} HybSiftResult;

/* Move blocks of the end from the free list to the end's, HYB_MAX_PENDING at most. */
extern HybSiftResult hyb_file_end_sift(const HybIndex *ix);

/* Are all blocks of the end on its list?  There may be no end at all. */
extern bool hyb_file_end_is_free(const HybIndex *ix);

/*
 * Cut it off if all of it is free; false if it is not.  The index is locked
 * exclusively.
 */
extern bool hyb_file_end_cut_off(const HybIndex *ix);

/*
 * After a crash: note that the end was cut off, or give the blocks that it has
 * back to the free list.
 */
extern void hyb_file_end_recover(const HybIndex *ix);

#endif							/* HYB_SPACE_H */
