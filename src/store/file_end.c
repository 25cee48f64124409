/*
 * file_end.c
 *		The end of the file that VACUUM is about to cut off.
 *
 * While the metapage names such an end, the end's free blocks go to a list of their
 * own.  Blocks are never taken from that list, so the end runs empty as its pages
 * are moved or freed.  Once all its blocks are on the list, we cut the file and
 * forget the list.
 *
 * An end is called off whenever its blocks are needed: a process that finds the
 * free list empty makes the end's list the free list (space.c).  So nothing has to
 * be undone when VACUUM gives up, fails or crashes.
 *
 * The cut itself is three records, under a lock of the index that conflicts with
 * all others:
 *
 * 1. take all blocks of the end off their list
 * 2. the server's record for the shorter file
 * 3. say in the metapage that the cut is done
 *
 * After a crash in between, blocks of the end are on no list.  The length of the
 * file tells whether they are still there (hyb_meta_given_up).
 *
 * Both lists change only while the metapage is locked exclusively.  So the order in
 * which their pages are locked does not matter.  All changes are made by records
 * that change the metapage too, as survey.c needs them.
 */
#include "base/compat.h"

#include "access/xlog.h"
#include "catalog/storage.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "store/space.h"
#include "utils/rel.h"

/*
 * The last page of the free list, locked exclusively, as the metapage is;
 * InvalidBuffer if the list is empty.
 */
static Buffer
lock_last(const HybIndex *ix, const HybMetaPage *meta)
{
	BlockNumber from = HYB_METAPAGE_BLKNO;
	BlockNumber block = meta->freelist;
	Buffer		last = InvalidBuffer;

	/* links that go round would have it go on for ever */
	for (uint32 n = 0; BlockNumberIsValid(block); n++)
	{
		if (n >= meta->free_blocks)
			hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
						  "The free list is longer than the metapage says.");
		if (BufferIsValid(last))
			UnlockReleaseBuffer(last);
		last = hyb_freelist_lock(ix, block, from);
		from = block;
		block = hyb_page_opaque(BufferGetPage(last))->link;
	}
	return last;
}

void
hyb_file_end_begin(const HybIndex *ix, BlockNumber cut)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	Buffer		last = InvalidBuffer;
	HybWalSet	set;

	Assert(meta->cut_end == 0 && cut > HYB_METAPAGE_BLKNO);
	if (BlockNumberIsValid(meta->cut_list))
		last = lock_last(ix, meta);

	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	if (BufferIsValid(last))
	{
		hyb_page_opaque(BufferGetPage(last))->link = meta->cut_list;
		hyb_wal_opaque(&set, last);
	}
	else if (BlockNumberIsValid(meta->cut_list))
		meta->freelist = meta->cut_list;
	meta->free_blocks += meta->cut_blocks;
	hyb_meta_end_cut(meta);
	meta->cut = cut;
	hyb_wal_meta(&set, metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	if (BufferIsValid(last))
		UnlockReleaseBuffer(last);
	UnlockReleaseBuffer(metabuf);
}

/* What is to be moved from a page of the free list, all of it locked. */
typedef struct Sift
{
	const HybIndex *ix;
	Buffer		metabuf;
	HybMetaPage *meta;
	Buffer		before;			/* page before it, or the metapage */
	Buffer		trunk;			/* the page */
	HybPageOpaque *opaque;		/* of it */
	BlockNumber *list;
} Sift;

#ifdef USE_ASSERT_CHECKING
static void
sift_assert_valid(const Sift *sift)
{
	Assert(hyb_page_is_mine(sift->metabuf) && hyb_page_is_mine(sift->trunk));
	Assert(!BufferIsValid(sift->before) || hyb_page_is_mine(sift->before));
	Assert(sift->meta == hyb_page_meta(BufferGetPage(sift->metabuf)));
	Assert(sift->opaque == hyb_page_opaque(BufferGetPage(sift->trunk)));
	Assert(sift->opaque->count <= HYB_FREELIST_CAPACITY);
	Assert(BlockNumberIsValid(sift->meta->cut) && sift->meta->cut_end == 0);
}
#else
#define sift_assert_valid(sift) ((void) (sift))
#endif

/*
 * Move blocks of the end that the page names to pending[], as many as have room.
 * hyb_space_settle puts them on the end's list.  False if there is no room.
 */
static bool
sift_blocks(Sift *sift)
{
	HybMetaPage *meta = sift->meta;
	uint32		kept = 0;
	HybWalSet	set;

	sift_assert_valid(sift);
	if (meta->npending == HYB_MAX_PENDING)
		return false;
	hyb_wal_begin(&set, sift->ix->rel);
	START_CRIT_SECTION();
	for (uint32 i = 0; i < sift->opaque->count; i++)
	{
		if (hyb_meta_cuts(meta, sift->list[i]) && meta->npending < HYB_MAX_PENDING)
			meta->pending[meta->npending++] = sift->list[i];
		else
			sift->list[kept++] = sift->list[i];
	}
	Assert(kept < sift->opaque->count && meta->free_blocks > sift->opaque->count - kept);
	meta->free_blocks -= sift->opaque->count - kept;
	sift->opaque->count = kept;
	hyb_wal_image(&set, sift->trunk);
	hyb_wal_meta(&set, sift->metabuf);
	hyb_wal_meta_pending(&set, sift->metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	return true;
}

/*
 * The page, which names no blocks of the end, is one itself: it becomes a page
 * of the end's list.  If it names any blocks one of them takes its place.
 * False if all of them are pinned.
 */
static bool
sift_page(Sift *sift)
{
	HybMetaPage *meta = sift->meta;
	Page		page = BufferGetPage(sift->trunk);
	BlockNumber block = BufferGetBlockNumber(sift->trunk);
	BlockNumber next = sift->opaque->link;
	int			left = (int) sift->opaque->count;
	int			at = 0;
	Buffer		other = InvalidBuffer;
	HybWalSet	set;

	sift_assert_valid(sift);
	Assert(hyb_meta_cuts(meta, block));
	for (; at < left && !BufferIsValid(other); at++)
		other = hyb_space_open(sift->ix, sift->list[at], block);
	if (left > 0 && !BufferIsValid(other))
		return false;

	hyb_wal_begin(&set, sift->ix->rel);
	START_CRIT_SECTION();
	if (BufferIsValid(other))
	{
		hyb_freelist_init(sift->ix, BufferGetPage(other), next);
		next = BufferGetBlockNumber(other);
		sift->list[at - 1] = sift->list[--left];
		(void) hyb_freelist_put(BufferGetPage(other), sift->list, left);
		hyb_wal_image(&set, other);
	}
	if (BufferIsValid(sift->before))
	{
		hyb_page_opaque(BufferGetPage(sift->before))->link = next;
		hyb_wal_opaque(&set, sift->before);
	}
	else
		meta->freelist = next;
	hyb_freelist_init(sift->ix, page, meta->cut_list);
	meta->cut_list = block;
	meta->cut_blocks++;
	meta->free_blocks--;
	hyb_wal_image(&set, sift->trunk);
	hyb_wal_meta(&set, sift->metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	if (BufferIsValid(other))
		UnlockReleaseBuffer(other);
	return true;
}

/*
 * Contract in space.h.  What comes before the first page that is to be changed is
 * looked at each time: insertions take pages off the beginning meanwhile.
 */
HybSiftResult
hyb_file_end_sift(const HybIndex *ix)
{
	Sift		sift = {.ix = ix};
	HybSiftResult result = HYB_SIFT_DONE;
	BlockNumber block;
	BlockNumber from = HYB_METAPAGE_BLKNO;

	sift.metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &sift.meta);
	if (!BlockNumberIsValid(sift.meta->cut) || sift.meta->cut_end != 0)
		result = HYB_SIFT_STUCK;
	block = sift.meta->freelist;
	for (uint32 n = 0; result == HYB_SIFT_DONE && BlockNumberIsValid(block); n++)
	{
		bool		names = false;

		if (n >= sift.meta->free_blocks)
			hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
						  "The free list is longer than the metapage says.");
		if (BufferIsValid(sift.before))
			UnlockReleaseBuffer(sift.before);
		/* a page that is locked must not be locked again */
		if (block == from && from != HYB_METAPAGE_BLKNO)
			hyb_corrupted(ix->rel, from, "A free-list page has a link to itself.");
		sift.before = sift.trunk;
		sift.trunk = hyb_freelist_lock(ix, block, from);
		sift.opaque = hyb_page_opaque(BufferGetPage(sift.trunk));
		sift.list = hyb_freelist_blocks(BufferGetPage(sift.trunk));
		for (uint32 i = 0; i < sift.opaque->count && !names; i++)
			names = hyb_meta_cuts(sift.meta, sift.list[i]);
		if (names)
			result = sift_blocks(&sift) ? HYB_SIFT_MORE : HYB_SIFT_STUCK;
		else if (hyb_meta_cuts(sift.meta, block))
			result = sift_page(&sift) ? HYB_SIFT_MORE : HYB_SIFT_STUCK;
		from = block;
		block = sift.opaque->link;
	}
	if (BufferIsValid(sift.before))
		UnlockReleaseBuffer(sift.before);
	if (BufferIsValid(sift.trunk))
		UnlockReleaseBuffer(sift.trunk);
	UnlockReleaseBuffer(sift.metabuf);
	if (result == HYB_SIFT_MORE)
		hyb_space_settle(ix);
	return result;
}

/* Is all of an end free, as the metapage says, which is locked? */
static bool
all_free(const HybIndex *ix, const HybMetaPage *meta, BlockNumber nblocks)
{
	return BlockNumberIsValid(meta->cut) && meta->cut_end == 0 &&
		nblocks > meta->cut && meta->cut_blocks == nblocks - meta->cut;
}

bool
hyb_file_end_is_free(const HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	bool		free = all_free(ix, meta, RelationGetNumberOfBlocks(ix->rel));

	UnlockReleaseBuffer(metabuf);
	return free;
}

bool
hyb_file_end_cut_off(const HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	BlockNumber nblocks = RelationGetNumberOfBlocks(ix->rel);
	BlockNumber cut = meta->cut;
	XLogRecPtr	lsn;
	HybWalSet	set;

	Assert(CheckRelationLockedByMe(ix->rel, AccessExclusiveLock, false));
	if (!all_free(ix, meta, nblocks))
	{
		UnlockReleaseBuffer(metabuf);
		return false;
	}
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	meta->cut_list = InvalidBlockNumber;
	meta->cut_blocks = 0;
	meta->cut_end = nblocks;
	hyb_wal_meta(&set, metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	lsn = PageGetLSN(BufferGetPage(metabuf));
	UnlockReleaseBuffer(metabuf);
	HYB_POINT("cut-begun");

	/* no list may name these blocks any more when the file is shorter */
	if (RelationNeedsWAL(ix->rel))
		XLogFlush(lsn);
	RelationTruncate(ix->rel, cut);
	HYB_POINT("cut-made");

	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	hyb_meta_end_cut(meta);
	hyb_wal_meta(&set, metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
	return true;
}

/*
 * Next blocks of an end that was to be cut off to pending[]; false if there
 * are none left, or no room.
 */
static bool
take_back(const HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	int			n = hyb_meta_given_up(meta, RelationGetNumberOfBlocks(ix->rel));
	bool		last;
	HybWalSet	set;

	last = n <= HYB_MAX_PENDING - (int) meta->npending;
	n = Min(n, HYB_MAX_PENDING - (int) meta->npending);
	if (meta->cut_end == 0 || (n == 0 && !last))
	{
		UnlockReleaseBuffer(metabuf);
		return false;
	}
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	for (int i = 0; i < n; i++)
		meta->pending[meta->npending++] = meta->cut++;
	Assert(meta->cut <= meta->cut_end);
	if (last)
		hyb_meta_end_cut(meta);
	hyb_wal_meta(&set, metabuf);
	hyb_wal_meta_pending(&set, metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
	return true;
}

void
hyb_file_end_recover(const HybIndex *ix)
{
	while (take_back(ix))
	{
		CHECK_FOR_INTERRUPTS();
		hyb_space_settle(ix);
	}
}
