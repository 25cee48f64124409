/*
 * wal.c
 *		Page changes as generic WAL records written by hand.
 *
 * The record format is that of access/transam/generic_xlog.c: per block,
 * fragments of (offset, length, bytes).  generic_redo applies them and zeroes
 * the hole between pd_lower and pd_upper; it handles at most
 * XLR_NORMAL_MAX_BLOCK_ID blocks a record.
 */
#include "base/compat.h"

#include "access/generic_xlog.h"
#include "access/xlog.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "store/page.h"
#include "utils/rel.h"

StaticAssertDecl(HYB_WAL_MAX_BUFFERS <= MAX_GENERIC_XLOG_PAGES,
				 "generic_redo handles no more blocks");

/* Fragments of all buffers of a record: two chunks of data each. */
#define HYB_WAL_MAX_FRAGMENTS (HYB_WAL_MAX_BUFFERS * HYB_WAL_MAX_RANGES)

/* Most bytes of fragments that are registered as one chunk */
#define HYB_WAL_SMALL	256

/*
 * Start an empty change set.  Must be called outside critical sections.
 */
void
hyb_wal_begin(HybWalSet *set, Relation rel)
{
	static bool space_ensured = false;

	Assert(CritSectionCount == 0 && !RecoveryInProgress());
	/* The space stays reserved for the life of the backend. */
	if (!space_ensured)
	{
		XLogEnsureRecordSpace(0, HYB_WAL_MAX_FRAGMENTS * 2);
		space_ensured = true;
	}
	set->rel = rel;
	set->nbuffers = 0;
}

static HybWalBuffer *
wal_buffer(HybWalSet *set, Buffer buf)
{
	HybWalBuffer *wb;

	for (int i = 0; i < set->nbuffers; i++)
		if (set->buffers[i].buf == buf)
			return &set->buffers[i];

	Assert(set->nbuffers < HYB_WAL_MAX_BUFFERS);
	Assert(CritSectionCount > 0 && hyb_page_is_mine(buf));
	wb = &set->buffers[set->nbuffers++];
	wb->buf = buf;
	wb->image = false;
	wb->nranges = 0;
	return wb;
}

void
hyb_wal_range(HybWalSet *set, Buffer buf, uint16 offset, uint16 length)
{
	HybWalBuffer *wb = wal_buffer(set, buf);

	Assert(wb->nranges < HYB_WAL_MAX_RANGES);
	Assert(length > 0 && offset + length <= BLCKSZ);
	wb->ranges[wb->nranges].offset = offset;
	wb->ranges[wb->nranges].length = length;
	wb->nranges++;
}

void
hyb_wal_lower(HybWalSet *set, Buffer buf)
{
	hyb_wal_range(set, buf, offsetof(PageHeaderData, pd_lower),
				  sizeof(LocationIndex));
}

void
hyb_wal_opaque(HybWalSet *set, Buffer buf)
{
	hyb_wal_range(set, buf, BLCKSZ - MAXALIGN(sizeof(HybPageOpaque)),
				  sizeof(HybPageOpaque));
}

void
hyb_wal_image(HybWalSet *set, Buffer buf)
{
	wal_buffer(set, buf)->image = true;
}

/*
 * Register a buffer's fragments.  If they are small they are put together
 * first, as one chunk of data costs less than several.
 */
static void
register_ranges(int block, const HybWalBuffer *wb, char *small)
{
	Page		page = BufferGetPage(wb->buf);
	int			total = 0;
	char	   *p = small;

	for (int r = 0; r < wb->nranges; r++)
		total += sizeof(HybWalRange) + wb->ranges[r].length;

	for (int r = 0; r < wb->nranges; r++)
	{
		const HybWalRange *range = &wb->ranges[r];

		/* a fragment starts with two OffsetNumbers: offset, length */
		if (total > HYB_WAL_SMALL)
		{
			XLogRegisterBufData(block, (char *) range, sizeof(HybWalRange));
			XLogRegisterBufData(block, (char *) page + range->offset,
								range->length);
			continue;
		}
		memcpy(p, range, sizeof(HybWalRange));
		memcpy(p + sizeof(HybWalRange), page + range->offset, range->length);
		p += sizeof(HybWalRange) + range->length;
	}
	Assert(p == small || p == small + total);
	if (p > small)
		XLogRegisterBufData(block, small, p - small);
}

/*
 * Mark all buffers dirty, write the record, set the LSNs.  Called in the
 * critical section that changed the pages, all of them locked exclusively.
 */
void
hyb_wal_commit(HybWalSet *set)
{
	XLogRecPtr	lsn;
	char		small[HYB_WAL_MAX_BUFFERS][HYB_WAL_SMALL];

	Assert(CritSectionCount > 0);
	Assert(set->nbuffers > 0);

	for (int i = 0; i < set->nbuffers; i++)
	{
		Assert(set->buffers[i].image || set->buffers[i].nranges > 0);
		hyb_page_assert_valid(BufferGetPage(set->buffers[i].buf));
		Assert(hyb_page_opaque(BufferGetPage(set->buffers[i].buf))->incarnation != 0);
		MarkBufferDirty(set->buffers[i].buf);
	}

	if (!RelationNeedsWAL(set->rel))
	{
		/*
		 * Tells whether a free-list page is as old as the metapage
		 * (survey.c).
		 */
		if (set->rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED)
		{
			lsn = GetFakeLSNForUnloggedRel();
			for (int i = 0; i < set->nbuffers; i++)
				PageSetLSN(BufferGetPage(set->buffers[i].buf), lsn);
		}
		return;
	}

	XLogBeginInsert();
	for (int i = 0; i < set->nbuffers; i++)
	{
		const HybWalBuffer *wb = &set->buffers[i];

		if (wb->image)
			XLogRegisterBuffer(i, wb->buf, REGBUF_STANDARD | REGBUF_FORCE_IMAGE);
		else
		{
			XLogRegisterBuffer(i, wb->buf, REGBUF_STANDARD);
			register_ranges(i, wb, small[i]);
		}
	}
	lsn = XLogInsert(RM_GENERIC_ID, 0);

	for (int i = 0; i < set->nbuffers; i++)
		PageSetLSN(BufferGetPage(set->buffers[i].buf), lsn);
}
