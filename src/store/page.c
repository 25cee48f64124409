/*
 * page.c
 *		The header that every page of a hybrid index carries.
 */
#include "base/compat.h"

#include "base/mute.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/buf_internals.h"
#include "storage/smgr.h"
#include "store/page.h"
#include "utils/rel.h"

#ifdef USE_ASSERT_CHECKING

bool
hyb_page_is_mine(Buffer buf)
{
	return BufferIsValid(buf) &&
		(BufferIsLocal(buf) || HYB_IS_LOCKED_EXCLUSIVE(buf));
}

bool
hyb_page_is_locked(Buffer buf)
{
	return BufferIsValid(buf) &&
		(BufferIsLocal(buf) || HYB_IS_LOCKED(buf));
}

/* Which flags may a page of a kind have? */
static uint16
flags_of_kind(HybPageKind kind)
{
	return kind == HYB_PAGE_DELTA ? HYB_DELTA_CLOSED :
		kind == HYB_PAGE_LEAF ? HYB_LEAF_TOMBSTONES :
		kind == HYB_PAGE_INNER ? HYB_INNER_FILTERS : 0;
}

void
hyb_page_assert_valid(Page page)
{
	PageHeader	header = (PageHeader) page;
	const HybPageOpaque *opaque = hyb_page_opaque(page);

	if (hyb_is_damaged())
		return;
	Assert(header->pd_special == BLCKSZ - MAXALIGN(sizeof(HybPageOpaque)));
	Assert(header->pd_lower >= SizeOfPageHeaderData);
	Assert(header->pd_lower <= header->pd_upper && header->pd_upper <= header->pd_special);
	Assert(opaque->page_id == HYB_PAGE_ID);
	Assert(opaque->kind >= HYB_PAGE_META && opaque->kind <= HYB_PAGE_FILTER);
	/* only the pages of a step or of a generation have a stamp */
	Assert((opaque->stamp == 0) ==
		   (opaque->kind == HYB_PAGE_META || opaque->kind == HYB_PAGE_FREELIST));
	Assert((opaque->level > 0) == (opaque->kind == HYB_PAGE_INNER));
	Assert((opaque->flags & ~flags_of_kind(opaque->kind)) == 0);
	Assert((opaque->flags & HYB_INNER_FILTERS) == 0 || opaque->level == 1);
	Assert(opaque->link != HYB_METAPAGE_BLKNO);
	Assert(!BlockNumberIsValid(opaque->link) || opaque->kind == HYB_PAGE_DELTA ||
		   opaque->kind == HYB_PAGE_FREELIST || opaque->kind == HYB_PAGE_DICTIONARY);
	/* a leaf, a node and a filter page hold something */
	Assert(opaque->count > 0 ||
		   (opaque->kind != HYB_PAGE_LEAF && opaque->kind != HYB_PAGE_INNER &&
			opaque->kind != HYB_PAGE_FILTER));
}

#endif							/* USE_ASSERT_CHECKING */

/*
 * Make an empty page of the given kind.  The page need not be in a buffer.
 */
void
hyb_page_init(Page page, const HybIndex *ix, HybPageKind kind, uint16 level,
			  uint64 stamp)
{
	HybPageOpaque *opaque;

	Assert((level > 0) == (kind == HYB_PAGE_INNER));
	PageInit(page, BLCKSZ, sizeof(HybPageOpaque));
	opaque = hyb_page_opaque(page);
	opaque->incarnation = ix->incarnation;
	opaque->stamp = stamp;
	opaque->kind = (uint16) kind;
	opaque->level = level;
	opaque->link = InvalidBlockNumber;
	opaque->count = 0;
	opaque->flags = 0;
	opaque->page_id = HYB_PAGE_ID;
}

/*
 * The one way in which a damaged page is reported.
 */
void
hyb_corrupted(Relation rel, BlockNumber blkno, const char *detail)
{
	/* the main loop reports this before it releases the LWLocks */
	if (InterruptHoldoffCount > 0)
		hyb_mute_until_abort();
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is corrupted at block %u",
					RelationGetRelationName(rel), blkno),
			 errdetail_internal("%s", detail),
			 errhint("Please REINDEX it.")));
}

/*
 * A size seen before is a lower bound; the server keeps the last one in
 * smgr_cached_nblocks.  A file is cut only under AccessExclusiveLock, and a process
 * that locks the index after that forgets the size.
 */
bool
hyb_page_exists(const HybIndex *ix, BlockNumber block)
{
	BlockNumber nblocks = RelationGetSmgr(ix->rel)->smgr_cached_nblocks[MAIN_FORKNUM];

	if (likely(nblocks != InvalidBlockNumber && block < nblocks &&
			   block != HYB_METAPAGE_BLKNO))
		return true;
	return block < RelationGetNumberOfBlocks(ix->rel) &&
		block != HYB_METAPAGE_BLKNO;
}

void
hyb_page_check_pointer(const HybIndex *ix, BlockNumber block,
					   BlockNumber from)
{
	BlockNumber nblocks;

	if (likely(hyb_page_exists(ix, block)))
		return;
	nblocks = RelationGetNumberOfBlocks(ix->rel);
	if (BlockNumberIsValid(from))
		hyb_corrupted(ix->rel, from,
					  psprintf("It points to block %u, but the index has blocks 1 to %u.",
							   block, nblocks - 1));
	hyb_corrupted(ix->rel, block,
				  psprintf("A page points to this block, but the index has blocks 1 to %u.",
						   nblocks - 1));
}

Buffer
hyb_page_read(const HybIndex *ix, BlockNumber block, BlockNumber from)
{
	Assert(CritSectionCount == 0);
	hyb_page_check_pointer(ix, block, from);
	return ReadBuffer(ix->rel, block);
}

Buffer
hyb_page_read_recent(const HybIndex *ix, BlockNumber block, BlockNumber from,
					 Buffer recent)
{
	if (!BufferIsValid(recent) || BufferIsLocal(recent) ||
		!ReadRecentBuffer(HYB_REL_LOCATOR(ix->rel), MAIN_FORKNUM, block, recent))
		return hyb_page_read(ix, block, from);
	pgstat_count_buffer_read(ix->rel);
	pgstat_count_buffer_hit(ix->rel);
	return recent;
}

/*
 * Contract in page.h.  The caller holds a content lock on buf.
 */
bool
hyb_page_check(const HybIndex *ix, Buffer buf, HybPageKind kind, uint64 stamp)
{
	Page		page = BufferGetPage(buf);
	PageHeader	header = (PageHeader) page;
	HybPageOpaque *opaque;

	Assert(hyb_page_is_locked(buf));
	if (header->pd_special != BLCKSZ - MAXALIGN(sizeof(HybPageOpaque)))
		hyb_corrupted(ix->rel, BufferGetBlockNumber(buf),
					  PageIsNew(page) ? "The page is all zeroes." :
					  "The page header is not that of a hybrid index.");
	opaque = hyb_page_opaque(page);
	if (opaque->page_id != HYB_PAGE_ID)
		hyb_corrupted(ix->rel, BufferGetBlockNumber(buf),
					  "The page trailer is not that of a hybrid index.");
	if (opaque->incarnation != ix->incarnation)
		hyb_corrupted(ix->rel, BufferGetBlockNumber(buf),
					  "The page belongs to another index.");
	if (header->pd_lower < SizeOfPageHeaderData ||
		header->pd_lower > header->pd_upper ||
		header->pd_upper > header->pd_special)
		hyb_corrupted(ix->rel, BufferGetBlockNumber(buf),
					  "The page header's bounds are out of order.");

	return opaque->kind == kind && (stamp == 0 || opaque->stamp == stamp);
}

Buffer
hyb_page_lock(const HybIndex *ix, BlockNumber block, BlockNumber from,
			  int mode, HybPageKind kind, uint64 stamp)
{
	Buffer		buf = hyb_page_read(ix, block, from);

	Assert(mode == BUFFER_LOCK_SHARE || mode == BUFFER_LOCK_EXCLUSIVE);
	LockBuffer(buf, mode);
	if (hyb_page_check(ix, buf, kind, stamp))
		return buf;
	UnlockReleaseBuffer(buf);
	return InvalidBuffer;
}

bool
hyb_page_copy(const HybIndex *ix, BlockNumber block, BlockNumber from,
			  HybPageKind kind, uint64 stamp, char *copy)
{
	Buffer		buf = hyb_page_read(ix, block, from);
	bool		same;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	same = hyb_page_check(ix, buf, kind, stamp);
	memcpy(copy, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	return same;
}
