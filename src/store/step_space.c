/*
 * step_space.c
 *		Blocks that a step writes to, and those it replaces.
 */
#include "base/compat.h"

#include "storage/lmgr.h"
#include "store/space.h"
#include "utils/rel.h"

/*
 * Free blocks reserved beyond those that a step expects to need, as some may be
 * pinned.
 */
#define HYB_STEP_SPARE	4

/* Blocks that one of several processes takes at once, at most. */
#define HYB_BULK_BLOCKS	32

#ifdef USE_ASSERT_CHECKING
void
hyb_step_space_assert_valid(const HybStepSpace *space)
{
	Assert(space->stamp > 0);
	/* blocks are tried in the order in which they were reserved */
	Assert(space->nused >= 0 && space->nused <= space->next);
	Assert(space->next <= space->nreserved && space->nreserved <= HYB_MAX_PENDING);
	Assert(space->nretired >= 0 && space->nretired <= HYB_MAX_PENDING);
	Assert(!space->bulk || (space->nreserved == 0 && space->nretired == 0));
	Assert(space->shared ? space->bulk : space->taken == 0 || space->bulk);
	Assert(space->nown >= 0 && space->nown <= HYB_BULK_BLOCKS);
	Assert(space->new_inner >= 0 && space->old_inner >= 0);
	Assert(space->new_filter >= 0 && space->old_filter >= 0);
	Assert(space->filtered >= space->new_filter);
}
#endif

/* Reserve more blocks.  A damaged index may have retired one twice. */
static int
reserve_blocks(HybStepSpace *space, int wanted, int spare)
{
	int			most = HYB_POINT_ATTACHED("few-reserved") ? 12 : HYB_MAX_PENDING;
	int			n;

	wanted = Min(wanted, most - space->nreserved);
	spare = Min(spare, most - space->nreserved - wanted);
	n = hyb_space_reserve(space->ix, wanted, spare,
						  space->reserved + space->nreserved);
	for (int last = space->nreserved + n; space->nreserved < last; space->nreserved++)
		for (int i = 0; i < space->nreserved; i++)
			if (space->reserved[i] == space->reserved[space->nreserved])
				hyb_corrupted(space->ix->rel, space->reserved[i],
							  "It was free twice.");
	return n;
}

void
hyb_step_space_init(HybStepSpace *space, const HybIndex *ix, uint64 stamp,
					bool filters, int expected)
{
	HYB_ASSERT_NO_LWLOCK();
	Assert(expected >= 0);
	memset(space, 0, sizeof(*space));
	space->ix = ix;
	space->stamp = stamp;
	space->filters = filters;
	(void) reserve_blocks(space, expected, HYB_STEP_SPARE);
	hyb_step_space_assert_valid(space);
}

void
hyb_bulk_space_init(HybStepSpace *space, const HybIndex *ix, uint64 stamp,
					bool filters)
{
	memset(space, 0, sizeof(*space));
	space->ix = ix;
	space->stamp = stamp;
	space->filters = filters;
	space->bulk = true;
}

void
hyb_bulk_space_share(HybStepSpace *space)
{
	Assert(space->bulk);
	space->shared = true;
}

/*
 * Take more blocks: of those that were taken last, half are not written on
 * average, so they are few of all.
 */
static void
take_blocks(HybStepSpace *space)
{
	Relation	rel = space->ix->rel;
	int			n = Min(Max(space->taken / 64, 1), HYB_BULK_BLOCKS);

	Assert(space->shared && space->nown == 0);
	LockRelationForExtension(rel, ExclusiveLock);
	for (int i = 0; i < n; i++)
	{
		Buffer		buf = ReadBuffer(rel, P_NEW);

		LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
		hyb_page_init(BufferGetPage(buf), space->ix, HYB_PAGE_FREELIST, 0, 0);
		MarkBufferDirty(buf);
		if (i == 0)
			space->own = BufferGetBlockNumber(buf);
		Assert(BufferGetBlockNumber(buf) == space->own + i);
		UnlockReleaseBuffer(buf);
	}
	UnlockRelationForExtension(rel, ExclusiveLock);
	space->nown = n;
	space->taken += n;
}

/*
 * The index under construction is only this process's, or that of a group of
 * processes.  Its pages are logged when all are there.
 */
static BlockNumber
bulk_write(HybStepSpace *space, const char *image)
{
	Buffer		buf;
	BlockNumber block;

	hyb_step_space_assert_valid(space);
	if (space->shared && space->nown == 0)
		take_blocks(space);
	if (space->nown > 0)
	{
		buf = ReadBufferExtended(space->ix->rel, MAIN_FORKNUM, space->own,
								 RBM_ZERO_AND_LOCK, NULL);
		space->own++;
		space->nown--;
	}
	else
	{
		buf = ReadBuffer(space->ix->rel, P_NEW);
		LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	}
	block = BufferGetBlockNumber(buf);
	Assert(block != HYB_METAPAGE_BLKNO);
	memcpy(BufferGetPage(buf), image, BLCKSZ);
	MarkBufferDirty(buf);
	UnlockReleaseBuffer(buf);
	return block;
}

BlockNumber
hyb_step_write(HybStepSpace *space, const char *image)
{
	Buffer		buf = InvalidBuffer;
	BlockNumber block = InvalidBlockNumber;
	HybWalSet	set;

	hyb_page_assert_valid((Page) unconstify(char *, image));
	/* a dictionary is not part of a step and has its own stamp */
	Assert(hyb_page_opaque((Page) unconstify(char *, image))->stamp == space->stamp ||
		   hyb_page_opaque((Page) unconstify(char *, image))->kind == HYB_PAGE_DICTIONARY);
	if (space->bulk)
		return bulk_write(space, image);

	while (!BufferIsValid(buf))
	{
		if (space->next == space->nreserved)
		{
			if (space->full || reserve_blocks(space, 1, HYB_STEP_SPARE - 1) == 0)
			{
				space->full = true;
				return InvalidBlockNumber;
			}
		}
		block = space->reserved[space->next++];
		buf = hyb_space_open(space->ix, block, InvalidBlockNumber);
	}

	hyb_wal_begin(&set, space->ix->rel);
	START_CRIT_SECTION();
	memcpy(BufferGetPage(buf), image, BLCKSZ);
	hyb_wal_image(&set, buf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buf);

	space->used[space->nused++] = block;
	hyb_step_space_assert_valid(space);
	return block;
}

void
hyb_step_retire(HybStepSpace *space, BlockNumber block)
{
	Assert(!space->bulk);
	if (space->nretired < HYB_MAX_PENDING)
		space->retired[space->nretired++] = block;
	else
		space->full = true;
}

bool
hyb_step_fits(const HybStepSpace *space, const HybMetaPage *meta)
{
	int			most = HYB_POINT_ATTACHED("few-blocks") ? 20 : HYB_MAX_PENDING;

	/* pending[] was settled before blocks were reserved */
	Assert(meta->npending == space->nreserved);
	return !space->full &&
		space->nretired + space->nreserved - space->nused <= most;
}

void
hyb_step_give_back(const HybStepSpace *space, HybMetaPage *meta)
{
	int			n = space->nretired;

	hyb_step_space_assert_valid(space);
	Assert(CritSectionCount > 0 && hyb_step_fits(space, meta));
	memcpy(meta->pending, space->retired, n * sizeof(BlockNumber));
	for (int i = 0; i < space->nreserved; i++)
	{
		bool		used = false;

		for (int j = 0; j < space->nused && !used; j++)
			used = space->used[j] == space->reserved[i];
		if (!used)
			meta->pending[n++] = space->reserved[i];
	}
	Assert(n == space->nretired + space->nreserved - space->nused);
	meta->npending = n;
}
