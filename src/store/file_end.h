/*
 * file_end.h
 *		The end of the file that VACUUM is about to cut off.
 *
 * While the metapage names such an end, its free blocks go to a list of their
 * own, from which nobody takes any: so it runs empty as its pages are moved or
 * freed.  Once all its blocks are on that list, it is cut off by forgetting the
 * list.
 *
 * An end is called off whenever its blocks are needed: who finds the free list
 * empty makes the other one the free list (space.c).  So nothing has to be
 * undone when VACUUM gives up, fails or crashes.
 *
 * The cut itself is three records, under a lock on the index that nobody else
 * can have together with any: one that takes all blocks of the end off their
 * list, the server's for the file, and one that says that all is done.  After a
 * crash in between, blocks of the end are on no list, and whether they are
 * still there can be seen from the length of the file (hyb_meta_given_up).
 *
 * The merge lock is held by the caller, and no buffer lock.
 */
#ifndef HYB_FILE_END_H
#define HYB_FILE_END_H

#include "store/meta.h"

/*
 * The end begins at this block from now on.  What was an end before is a part
 * of the free list again, and no cut that was made may be unfinished.
 */
extern void hyb_file_end_begin(const HybIndex *ix, BlockNumber cut);

typedef enum HybSiftResult
{
	HYB_SIFT_MORE,				/* moved some blocks */
	HYB_SIFT_DONE,				/* none were left */
	HYB_SIFT_STUCK				/* somebody has the blocks pinned that it
								 * would need, or there is no end any more */
} HybSiftResult;

/* Move blocks of the end from the free list to the end's: about a page full. */
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

#endif							/* HYB_FILE_END_H */
