/*
 * space.c
 *		Blocks of the index: free list and pending blocks.
 *
 * The free list is a chain of pages that each hold an array of block numbers, like
 * SQLite's trunk pages.  A block of the list is not touched until it is used again,
 * so retiring a page costs four bytes.  The free-list pages are free blocks
 * themselves: a page whose array is used up is handed out as a block.
 *
 * Blocks on their way between the tree and the list stand in the metapage's
 * pending[] (store/meta.h), so each block is at every moment in exactly one
 * place that survives a crash.  The exception are blocks by which the
 * relation was just extended: they are all zeroes until they are logged, and
 * hyb_space_adopt takes care of those.
 */
#include "base/compat.h"

#include "base/server.h"
#include "miscadmin.h"
#include "storage/buf_internals.h"
#include "storage/lmgr.h"
#include "store/meta.h"
#include "store/space.h"
#include "utils/rel.h"

/* Entries of a free-list page that a take looks at before it extends. */
#define HYB_TAKE_TRIES	8

/* Free-list pages that are searched for blocks that no scan has pinned. */
#define HYB_RESERVE_PAGES	4

/*
 * Extend the relation by one block; pinned, not locked.
 */
static Buffer
extend_relation(const HybIndex *ix)
{
	Buffer		buf;
	bool		lock = !RELATION_IS_LOCAL(ix->rel);
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION_EXTEND(tag, ix->rel->rd_lockInfo.lockRelId.dbId,
								ix->rel->rd_lockInfo.lockRelId.relId);
	if (lock)
		(void) hyb_lock_for_a_moment(&tag, true);
	buf = ReadBuffer(ix->rel, P_NEW);
	if (lock)
		hyb_unlock_after_moment(&tag);
	Assert(BufferGetBlockNumber(buf) != HYB_METAPAGE_BLKNO);
	Assert(PageIsNew(BufferGetPage(buf)));
	return buf;
}

/*
 * Make a block a (logged) empty page, so that the file is as long on a
 * standby, and after recovery, as block numbers on the free list claim.  The
 * buffer is locked exclusively.
 */
static void
log_empty_page(const HybIndex *ix, Buffer buf)
{
	HybWalSet	set;

	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	hyb_page_init(BufferGetPage(buf), ix, HYB_PAGE_FREELIST, 0, 0);
	hyb_wal_image(&set, buf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
}

/*
 * Extend by one block, an empty page.
 */
static BlockNumber
extend_logged(const HybIndex *ix)
{
	Buffer		buf = extend_relation(ix);
	BlockNumber block = BufferGetBlockNumber(buf);

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	log_empty_page(ix, buf);
	UnlockReleaseBuffer(buf);
	return block;
}

Buffer
hyb_freelist_lock(const HybIndex *ix, BlockNumber block, BlockNumber from)
{
	Buffer		buf = hyb_page_lock(ix, block, from, BUFFER_LOCK_EXCLUSIVE,
									HYB_PAGE_FREELIST, 0);

	if (!BufferIsValid(buf) || !hyb_freelist_valid(BufferGetPage(buf)))
		hyb_corrupted(ix->rel, block, "The free list points to this block, which is not a free-list page.");
	return buf;
}

void
hyb_freelist_init(const HybIndex *ix, Page page, BlockNumber next)
{
	Assert(next != HYB_METAPAGE_BLKNO);
	hyb_page_init(page, ix, HYB_PAGE_FREELIST, 0, 0);
	hyb_page_opaque(page)->link = next;
}

/* Contract in space.h.  pd_lower never shrinks, so it seldom has to be logged. */
bool
hyb_freelist_put(Page page, const BlockNumber *blocks, uint32 n)
{
	HybPageOpaque *opaque = hyb_page_opaque(page);
	PageHeader	header = (PageHeader) page;
	Size		end = SizeOfPageHeaderData + (opaque->count + n) * sizeof(BlockNumber);

	Assert(opaque->count + n <= HYB_FREELIST_CAPACITY && end <= header->pd_upper);
	memcpy(hyb_freelist_blocks(page) + opaque->count, blocks, n * sizeof(BlockNumber));
	opaque->count += n;
	if (end <= header->pd_lower)
		return false;
	header->pd_lower = (LocationIndex) end;
	return true;
}

/*
 * Before the file is extended, or when the free list is empty: the end that VACUUM
 * was about to cut off becomes the free list, if that is empty.  A cut that was made
 * before a crash, but not noted in the metapage, is noted now.  So blocks that a cut
 * took off all lists are still there exactly if the file is longer than the cut.
 * The metapage is locked exclusively.
 */
static void
call_off_cut(const HybIndex *ix, Buffer metabuf)
{
	HybMetaPage *meta = hyb_page_meta(BufferGetPage(metabuf));
	HybWalSet	set;

	Assert(hyb_page_is_mine(metabuf));
	if (!BlockNumberIsValid(meta->cut) ||
		hyb_meta_given_up(meta, RelationGetNumberOfBlocks(ix->rel)) > 0 ||
		(meta->cut_end == 0 && BlockNumberIsValid(meta->freelist)))
		return;
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	if (meta->cut_end == 0)
	{
		meta->freelist = meta->cut_list;
		meta->free_blocks = meta->cut_blocks;
	}
	hyb_meta_end_cut(meta);
	hyb_wal_meta(&set, metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
}

/*
 * The buffer that holds a block, pinned; InvalidBuffer if it is in none.
 */
static Buffer
pin_if_buffered(const HybIndex *ix, BlockNumber block)
{
	BufferTag	tag;
	uint32		hash;
	LWLock	   *partition;
	Buffer		buf;

	if (RelationUsesLocalBuffers(ix->rel))
		buf = PrefetchBuffer(ix->rel, MAIN_FORKNUM, block).recent_buffer;
	else
	{
		HYB_INIT_BUFFER_TAG(&tag, &HYB_REL_LOCATOR(ix->rel), MAIN_FORKNUM, block);
		hash = BufTableHashCode(&tag);
		partition = BufMappingPartitionLock(hash);
		LWLockAcquire(partition, LW_SHARED);
		buf = BufTableLookup(&tag, hash) + 1;
		LWLockRelease(partition);
	}

	/* looks at the buffer's tag once more, with the buffer's header locked */
	if (!BufferIsValid(buf) ||
		!ReadRecentBuffer(HYB_REL_LOCATOR(ix->rel), MAIN_FORKNUM, block, buf))
		return InvalidBuffer;
	return buf;
}

/* Has another process, or a scan of this one, pinned a free block? */
static bool
is_pinned(const HybIndex *ix, BlockNumber block)
{
	Buffer		buf = pin_if_buffered(ix, block);
	bool		pinned;

	if (!BufferIsValid(buf))
		return false;
	pinned = !ConditionalLockBufferForCleanup(buf);
	if (!pinned)
		LockBuffer(buf, BUFFER_LOCK_UNLOCK);
	ReleaseBuffer(buf);
	return pinned;
}

/*
 * Choose up to `wanted` blocks of a free-list page, from its end, that are not
 * pinned.  Returns how many; the pinned ones before them go to pinned[].
 */
static int
choose_unpinned(const HybIndex *ix, Buffer trunk, int wanted, BlockNumber *blocks,
				BlockNumber *pinned, int *npinned)
{
	const BlockNumber *list = hyb_freelist_blocks(BufferGetPage(trunk));
	int			i = (int) hyb_page_opaque(BufferGetPage(trunk))->count;
	int			n = 0;

	*npinned = 0;
	while (i > 0 && n < wanted)
	{
		BlockNumber block = list[--i];

		hyb_page_check_pointer(ix, block, BufferGetBlockNumber(trunk));
		if (is_pinned(ix, block))
			pinned[(*npinned)++] = block;
		else
			blocks[n++] = block;
	}
	return n;
}

/*
 * Move up to `wanted` blocks of a free-list page to pending[]; returns how many.
 * Pinned blocks go to the beginning of the page, so they are not looked at again
 * soon.  The first free-list page itself goes last.  The metapage and the page are
 * locked exclusively.
 */
static int
reserve_from_trunk(const HybIndex *ix, Buffer metabuf, Buffer trunk, int wanted,
				   BlockNumber *blocks)
{
	HybMetaPage *meta = hyb_page_meta(BufferGetPage(metabuf));
	HybPageOpaque *opaque = hyb_page_opaque(BufferGetPage(trunk));
	BlockNumber *list = hyb_freelist_blocks(BufferGetPage(trunk));
	BlockNumber pinned[HYB_FREELIST_CAPACITY];
	int			npinned;
	int			n = choose_unpinned(ix, trunk, wanted, blocks, pinned, &npinned);
	int			left = (int) opaque->count - n;
	bool		whole = left == 0 && n < wanted &&
		BufferGetBlockNumber(trunk) == meta->freelist;
	HybWalSet	set;

	if (whole)
		blocks[n++] = BufferGetBlockNumber(trunk);
	/* a chain that goes round would hand out a block twice */
	if (n > (int64) meta->free_blocks)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
					  "The free list is longer than the metapage says.");
	if (n == 0)
		return 0;

	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	Assert(n <= wanted && npinned <= left);
	if (npinned > 0)
	{
		memmove(list + npinned, list, (left - npinned) * sizeof(BlockNumber));
		memcpy(list, pinned, npinned * sizeof(BlockNumber));
		hyb_wal_range(&set, trunk, SizeOfPageHeaderData, left * sizeof(BlockNumber));
	}
	opaque->count = left;
	if (whole)
		meta->freelist = opaque->link;
	memcpy(meta->pending + meta->npending, blocks, n * sizeof(BlockNumber));
	meta->npending += n;
	meta->free_blocks -= n;
	hyb_wal_meta(&set, metabuf);
	hyb_wal_meta_pending(&set, metabuf);
	hyb_wal_opaque(&set, trunk);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	return n;
}

/*
 * Move up to `wanted` blocks that are not pinned to pending[]; returns how many.
 * They come from the first free-list page that has any.
 */
static int
reserve_from_freelist(const HybIndex *ix, int wanted, BlockNumber *blocks)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	BlockNumber from = HYB_METAPAGE_BLKNO;
	BlockNumber block;
	int			n = 0;

	if (meta->freelist == InvalidBlockNumber)
		call_off_cut(ix, metabuf);
	wanted = Min(wanted, HYB_MAX_PENDING - (int) meta->npending);
	block = meta->freelist;
	for (int i = 0; i < HYB_RESERVE_PAGES && wanted > 0 && n == 0 &&
		 BlockNumberIsValid(block); i++)
	{
		Buffer		trunk = hyb_freelist_lock(ix, block, from);

		from = block;
		block = hyb_page_opaque(BufferGetPage(trunk))->link;
		n = reserve_from_trunk(ix, metabuf, trunk, wanted, blocks);
		UnlockReleaseBuffer(trunk);
	}
	UnlockReleaseBuffer(metabuf);
	return n;
}

/*
 * Add blocks to pending[]; as many as fit.
 */
static int
add_pending(const HybIndex *ix, const BlockNumber *blocks, int n)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	HybWalSet	set;

	n = Min(n, HYB_MAX_PENDING - (int) meta->npending);
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	memcpy(meta->pending + meta->npending, blocks, n * sizeof(BlockNumber));
	meta->npending += n;
	hyb_wal_meta(&set, metabuf);
	hyb_wal_meta_pending(&set, metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
	return n;
}

int
hyb_space_reserve(const HybIndex *ix, int wanted, int spare, BlockNumber *blocks)
{
	int			n = 0;
	int			had;
	int			extended;
	int			most;
	BlockNumber fresh[HYB_MAX_PENDING];

	HYB_ASSERT_NO_LWLOCK();
	Assert(wanted >= 0 && spare >= 0);
	wanted = Min(wanted, HYB_MAX_PENDING);
	most = Min(wanted + spare, HYB_MAX_PENDING);
	while (n < most &&
		   (had = reserve_from_freelist(ix, most - n, blocks + n)) > 0)
		n += had;

	/*
	 * A crash between extending and add_pending leaves initialised pages that
	 * no list knows; they look like empty free-list pages with stamp 0, and
	 * VACUUM adopts them (vacuum/cleanup.c).
	 */
	if (n < wanted)
	{
		HybMetaPage *meta;
		Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);

		call_off_cut(ix, metabuf);
		UnlockReleaseBuffer(metabuf);
	}
	for (extended = 0; n + extended < wanted; extended++)
		fresh[extended] = extend_logged(ix);
	if (extended > 0)
	{
		HYB_POINT("space-extended");
		extended = add_pending(ix, fresh, extended);
		memcpy(blocks + n, fresh, extended * sizeof(BlockNumber));
	}
	Assert(n + extended <= most);
	return n + extended;
}

void
hyb_space_adopt(const HybIndex *ix, const BlockNumber *blocks, int n)
{
	Assert(n <= HYB_MAX_PENDING);

	HYB_ASSERT_NO_LWLOCK();
	/* of a block whose record a crash has lost a standby does not know */
	for (int i = 0; i < n; i++)
	{
		Buffer		buf = ReadBuffer(ix->rel, blocks[i]);

		LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
		if (PageIsNew(BufferGetPage(buf)))
			log_empty_page(ix, buf);
		UnlockReleaseBuffer(buf);
	}
	(void) add_pending(ix, blocks, n);
}

/*
 * Contract in space.h.
 *
 * The block is not read: its content is not needed, and may not be readable.  If it
 * is in shared buffers it stays as it is until it is overwritten, and we look for
 * pins with the lock held.  If it is not, it has no pin, and the buffer is all
 * zeroes.  We make that an empty page, which a scan with an old version may see
 * should the caller fail before it writes.  That is not worth a dirty buffer.
 *
 * A scan may be searching the leaf that the block was.  We do not wait for the lock
 * of a buffer: its holder has a pin, too.
 */
Buffer
hyb_space_open(const HybIndex *ix, BlockNumber block, BlockNumber from)
{
	Buffer		buf;

	hyb_page_check_pointer(ix, block, from);
	buf = pin_if_buffered(ix, block);
	if (BufferIsValid(buf))
	{
		if (!ConditionalLockBuffer(buf))
		{
			ReleaseBuffer(buf);
			return InvalidBuffer;
		}
	}
	else
		buf = ReadBufferExtended(ix->rel, MAIN_FORKNUM, block,
								 RBM_ZERO_AND_LOCK, NULL);
	if (PageIsNew(BufferGetPage(buf)))
		hyb_page_init(BufferGetPage(buf), ix, HYB_PAGE_FREELIST, 0, 0);
	if (!IsBufferCleanupOK(buf))
	{
		UnlockReleaseBuffer(buf);
		return InvalidBuffer;
	}
	Assert(BufferGetBlockNumber(buf) == block && hyb_page_is_mine(buf));
	return buf;
}

/*
 * Copy pending[], with the blocks that go to one of the two lists at the end;
 * returns how many they are.
 */
static int
pending_for(const HybMetaPage *meta, bool cut, BlockNumber *pending)
{
	int			end = meta->npending;

	memcpy(pending, meta->pending, end * sizeof(BlockNumber));
	for (int i = end - 1; i >= 0; i--)
	{
		BlockNumber block = pending[i];

		if (hyb_meta_cuts(meta, block) != cut)
			continue;
		pending[i] = pending[--end];
		pending[end] = block;
	}
	Assert(end >= 0 && end <= meta->npending);
	return meta->npending - end;
}

/*
 * A page, locked exclusively, with room for more blocks of the list that begins at
 * `first`.  This is the first page, unless there is none or it is full.  Then it is
 * one of n blocks, which is to become the first page; it changes places with the
 * last one.  Such a block is overwritten, so it must not be pinned: InvalidBuffer if
 * all of them are.  The metapage is locked exclusively.
 */
static Buffer
trunk_with_room(const HybIndex *ix, BlockNumber first, BlockNumber *blocks,
				int n)
{
	if (first != InvalidBlockNumber)
	{
		Buffer		trunk = hyb_freelist_lock(ix, first, HYB_METAPAGE_BLKNO);

		if (hyb_page_opaque(BufferGetPage(trunk))->count < HYB_FREELIST_CAPACITY)
			return trunk;
		UnlockReleaseBuffer(trunk);
	}
	for (int i = n - 1; i >= 0; i--)
	{
		BlockNumber block = blocks[i];
		Buffer		trunk = hyb_space_open(ix, block, HYB_METAPAGE_BLKNO);

		if (BufferIsValid(trunk))
		{
			blocks[i] = blocks[n - 1];
			blocks[n - 1] = block;
			return trunk;
		}
	}
	return InvalidBuffer;
}

/*
 * Move pending blocks to one of the lists, as many as a page of it takes.  If all of
 * them are pinned and the list needs a page, the relation is extended by that.
 * Returns false if there are none; *others: are there some for the other list?
 */
static bool
settle_some(const HybIndex *ix, bool cut, bool *others)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	BlockNumber *first = cut ? &meta->cut_list : &meta->freelist;
	uint32	   *blocks = cut ? &meta->cut_blocks : &meta->free_blocks;
	Buffer		trunk;
	Page		page;
	HybPageOpaque *opaque;
	HybWalSet	set;
	bool		extended = false;
	bool		fresh;
	bool		grown;
	BlockNumber pending[HYB_MAX_PENDING];
	int			before = meta->npending;
	int			n = pending_for(meta, cut, pending);

	*others = n < before;
	if (n == 0)
	{
		UnlockReleaseBuffer(metabuf);
		return false;
	}
	HYB_POINT("space-settle");
	trunk = trunk_with_room(ix, *first, pending + before - n, n);
	if (!BufferIsValid(trunk))
	{
		/* an end that has blocks on their way to its list is not cut off yet */
		if (!cut)
			call_off_cut(ix, metabuf);
		trunk = extend_relation(ix);
		LockBuffer(trunk, BUFFER_LOCK_EXCLUSIVE);
		hyb_page_init(BufferGetPage(trunk), ix, HYB_PAGE_FREELIST, 0, 0);
		extended = true;
	}
	page = BufferGetPage(trunk);
	opaque = hyb_page_opaque(page);
	fresh = BufferGetBlockNumber(trunk) != *first;

	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	memcpy(meta->pending, pending, before * sizeof(BlockNumber));
	if (fresh)
	{
		hyb_freelist_init(ix, page, *first);
		*first = BufferGetBlockNumber(trunk);
		(*blocks)++;
		n -= !extended;
		meta->npending -= !extended;
		Assert(extended || meta->pending[meta->npending] == *first);
	}
	Assert(opaque->count <= HYB_FREELIST_CAPACITY);
	n = Min(n, (int) (HYB_FREELIST_CAPACITY - opaque->count));
	Assert(fresh || n > 0);
	meta->npending -= n;
	*blocks += n;
	grown = hyb_freelist_put(page, meta->pending + meta->npending, n);
	if (fresh)
		hyb_wal_image(&set, trunk);
	else
	{
		hyb_wal_range(&set, trunk,
					  SizeOfPageHeaderData + (opaque->count - n) * sizeof(BlockNumber),
					  n * sizeof(BlockNumber));
		hyb_wal_opaque(&set, trunk);
		if (grown)
			hyb_wal_lower(&set, trunk);
	}
	hyb_wal_meta(&set, metabuf);
	hyb_wal_range(&set, metabuf,
				  SizeOfPageHeaderData + offsetof(HybMetaPage, pending),
				  before * sizeof(BlockNumber));
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(trunk);
	UnlockReleaseBuffer(metabuf);
	return true;
}

void
hyb_space_settle(const HybIndex *ix)
{
	bool		others;

	HYB_ASSERT_NO_LWLOCK();
	while (settle_some(ix, false, &others))
		;
	while (others && settle_some(ix, true, &others))
		others = true;
}

/* Looks at a few entries for an unpinned block; else extends. */
void
hyb_space_take(const HybIndex *ix, Buffer metabuf, HybSpaceTake *take)
{
	HybMetaPage *meta = hyb_page_meta(BufferGetPage(metabuf));

	Assert(hyb_page_is_mine(metabuf) && CritSectionCount == 0);
	take->trunk = InvalidBuffer;
	take->page = InvalidBuffer;
	take->from_freelist = false;
	take->trunk_emptied = false;

	if (meta->freelist == InvalidBlockNumber)
		call_off_cut(ix, metabuf);
	if (meta->freelist != InvalidBlockNumber)
	{
		Buffer		trunk = hyb_freelist_lock(ix, meta->freelist,
											  HYB_METAPAGE_BLKNO);
		HybPageOpaque *opaque = hyb_page_opaque(BufferGetPage(trunk));
		BlockNumber *list = hyb_freelist_blocks(BufferGetPage(trunk));

		if (meta->free_blocks == 0)
			hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
						  "The free list is longer than the metapage says.");
		if (opaque->count == 0)
		{
			/*
			 * The trunk is the block.  Other processes do not pin a free-list
			 * page for long.
			 */
			take->page = trunk;
			take->from_freelist = true;
			take->trunk_emptied = true;
			take->trunk_next = opaque->link;
			return;
		}
		for (int i = 0; i < HYB_TAKE_TRIES && i < opaque->count; i++)
		{
			take->trunk_slot = opaque->count - 1 - i;
			take->page = hyb_space_open(ix, list[take->trunk_slot],
										meta->freelist);
			if (BufferIsValid(take->page))
			{
				take->trunk = trunk;
				take->from_freelist = true;
				return;
			}
		}
		UnlockReleaseBuffer(trunk);
		call_off_cut(ix, metabuf);
	}

	take->page = extend_relation(ix);
	LockBuffer(take->page, BUFFER_LOCK_EXCLUSIVE);
}

/*
 * Inside the critical section: take the block off the list.
 */
void
hyb_space_take_apply(HybWalSet *set, Buffer metabuf, HybSpaceTake *take)
{
	HybMetaPage *meta = hyb_page_meta(BufferGetPage(metabuf));

	Assert(CritSectionCount > 0 && hyb_page_is_mine(take->page));
	if (!take->from_freelist)
		return;

	Assert(meta->free_blocks > 0);
	Assert(take->trunk_emptied == !BufferIsValid(take->trunk));
	meta->free_blocks--;
	if (take->trunk_emptied)
		meta->freelist = take->trunk_next;
	else
	{
		HybPageOpaque *opaque = hyb_page_opaque(BufferGetPage(take->trunk));
		BlockNumber *list = hyb_freelist_blocks(BufferGetPage(take->trunk));

		Assert(take->trunk_slot < opaque->count &&
			   list[take->trunk_slot] == BufferGetBlockNumber(take->page));
		opaque->count--;
		list[take->trunk_slot] = list[opaque->count];
		hyb_wal_range(set, take->trunk,
					  SizeOfPageHeaderData + take->trunk_slot * sizeof(BlockNumber),
					  sizeof(BlockNumber));
		hyb_wal_opaque(set, take->trunk);
	}
	hyb_wal_range(set, metabuf,
				  SizeOfPageHeaderData + offsetof(HybMetaPage, freelist),
				  sizeof(BlockNumber) + sizeof(uint32));
}

void
hyb_space_take_release(HybSpaceTake *take)
{
	UnlockReleaseBuffer(take->page);
	if (BufferIsValid(take->trunk))
		UnlockReleaseBuffer(take->trunk);
}
