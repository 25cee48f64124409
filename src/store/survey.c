/*
 * survey.c
 *		All blocks of an index: where they belong, and reading them in order.
 *
 * Blocks are taken from the free list and the relation is extended only under
 * the metapage's exclusive lock, or (by merge steps) under the merge lock.  So
 * while the metapage is share-locked the free list stands still.  The length
 * of the relation does too if the merge lock is held; else some blocks at its
 * end may be on their way into pending[].
 *
 * The list may be long, and the metapage is locked for its first page only.  A
 * free-list page is changed by records that change the metapage as well, or,
 * after it was taken off the list, by later ones.  So a page of the list whose
 * LSN is not above that of the metapage is what it was when the metapage was
 * locked; where one is above, the survey begins anew.  Only pages near the
 * beginning of the list change, so that seldom happens, but for a last try
 * the metapage stays locked.  (Pages of unlogged indexes get LSNs for this
 * purpose: store/wal.c.)
 *
 * In recovery no lock is held while another is waited for: replay locks the
 * pages of a record in the record's order, and waits for each.  After some
 * tries what is found is taken as it is: it then is of one moment only if
 * replay stands still.
 */
#include "base/compat.h"

#include "access/xlog.h"
#include "commands/vacuum.h"
#include "miscadmin.h"
#include "store/settings.h"
#include "store/space.h"
#include "store/survey.h"
#include "utils/rel.h"
#ifdef HYB_HAVE_READ_STREAM
#include "storage/read_stream.h"
#endif

/* How often the free list is gone over without keeping it as it is. */
#define SURVEY_TRIES	8

/* Above all that pages have: they cannot change. */
#define ANY_LSN			PG_UINT64_MAX

/*
 * Note a free block.  `from` is the block that names it.
 */
static void
survey_add(const HybIndex *ix, HybSurvey *survey, BlockNumber from,
		   int position, BlockNumber block)
{
	if (block == HYB_METAPAGE_BLKNO || block >= survey->nblocks)
		hyb_corrupted(ix->rel, from,
					  psprintf("Free block %u at position %d lies outside the index of %u blocks.",
							   block, position, survey->nblocks));
	if (survey->cut && block < survey->meta->cut)
		hyb_corrupted(ix->rel, from,
					  psprintf("Free block %u at position %d lies before block %u, from where on the file is to be cut off.",
							   block, position, survey->meta->cut));
	if (hyb_survey_is_free(survey, block))
		hyb_corrupted(ix->rel, from,
					  psprintf("Free block %u at position %d is listed twice.",
							   block, position));
	survey->free[block >> 3] |= 1 << (block & 7);
}

/*
 * A page of the free list; *block becomes the next one.  Returns false if the
 * page has changed since `lsn`.
 *
 * It may have been taken off the list, written out, and be about to become
 * something else.  hyb_space_open does not read it, and leaves an empty page without
 * an LSN until it is overwritten.
 */
static bool
survey_page(const HybIndex *ix, HybSurvey *survey, XLogRecPtr lsn,
			BlockNumber *block, uint32 *nfree)
{
	Buffer		buf = ReadBuffer(ix->rel, *block);
	Page		page;
	HybPageOpaque *opaque;

	/* replay may hold this page, and wait for what this process has locked */
	Assert(!RecoveryInProgress() || InterruptHoldoffCount == 0);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	if (PageGetLSN(page) > lsn ||
		(XLogRecPtrIsInvalid(PageGetLSN(page)) && lsn != ANY_LSN))
	{
		UnlockReleaseBuffer(buf);
		return false;
	}
	if (!hyb_page_check(ix, buf, HYB_PAGE_FREELIST, 0))
		hyb_corrupted(ix->rel, *block,
					  psprintf("Block %u of the free list is not a free-list page.", *block));
	opaque = hyb_page_opaque(page);
	if (!hyb_freelist_valid(page))
		hyb_corrupted(ix->rel, *block,
					  psprintf("A free-list page claims to hold %u blocks.",
							   opaque->count));
	for (uint32 i = 0; i < opaque->count; i++)
		survey_add(ix, survey, *block, i, hyb_freelist_blocks(page)[i]);
	*nfree += opaque->count + 1;
	*block = opaque->link;
	UnlockReleaseBuffer(buf);
	return true;
}

/*
 * The blocks of one of the lists; false if it changed since `lsn`.  The
 * metapage, if it is locked, is let go of after the first page, but with
 * ANY_LSN.
 */
static bool
survey_list(const HybIndex *ix, HybSurvey *survey, XLogRecPtr lsn,
			BlockNumber block, Buffer *metabuf)
{
	uint32		expected = survey->cut ? survey->meta->cut_blocks :
		survey->meta->free_blocks;
	BlockNumber from = HYB_METAPAGE_BLKNO;
	uint32		nfree = 0;
	bool		same = true;

	while (same && block != InvalidBlockNumber)
	{
		/* finds cycles, too */
		survey_add(ix, survey, from, -1, block);
		from = block;
		same = survey_page(ix, survey, lsn, &block, &nfree);
		if (lsn == ANY_LSN)
			continue;
		if (BufferIsValid(*metabuf))
			UnlockReleaseBuffer(*metabuf);
		*metabuf = InvalidBuffer;
		HYB_POINT("survey-page");
		CHECK_FOR_INTERRUPTS();
	}
	if (same && nfree != expected)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
					  psprintf("The free list holds %u blocks, but the metapage counts %u.",
							   nfree, expected));
	return same;
}

/*
 * Try to take a survey; false if the free list changed meanwhile.  With `hold`
 * the metapage stays locked, and nothing can change.
 */
static bool
try_survey(const HybIndex *ix, HybSurvey *survey, bool hold)
{
	HybMetaPage *meta;
	Buffer		metabuf;
	XLogRecPtr	lsn;
	bool		same;

	survey->meta = palloc(sizeof(HybMetaPage));
	survey->cut = false;
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	memcpy(survey->meta, meta, sizeof(HybMetaPage));
	lsn = hold ? ANY_LSN : PageGetLSN(BufferGetPage(metabuf));
	meta = survey->meta;
	if (RecoveryInProgress())
	{
		UnlockReleaseBuffer(metabuf);
		metabuf = InvalidBuffer;
	}
	survey->nblocks = RelationGetNumberOfBlocks(ix->rel);
	survey->free = MemoryContextAllocExtended(CurrentMemoryContext,
											  survey->nblocks / 8 + 1,
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	for (int i = 0; i < meta->npending; i++)
		survey_add(ix, survey, HYB_METAPAGE_BLKNO, i, meta->pending[i]);

	for (int i = 0; i < hyb_meta_given_up(meta, survey->nblocks); i++)
		survey_add(ix, survey, HYB_METAPAGE_BLKNO, i, meta->cut + i);

	survey->cut = false;
	same = survey_list(ix, survey, lsn, meta->freelist, &metabuf);
	survey->cut = true;
	if (same)
		same = survey_list(ix, survey, lsn, meta->cut_list, &metabuf);
	if (BufferIsValid(metabuf))
		UnlockReleaseBuffer(metabuf);
	if (!same)
		hyb_survey_free(survey);
	return same;
}

void
hyb_survey_take(const HybIndex *ix, HybSurvey *survey)
{
	int			tries = 0;

	HYB_ASSERT_NO_LWLOCK();
	while (!try_survey(ix, survey, tries >= SURVEY_TRIES))
		tries++;
}

void
hyb_survey_free(HybSurvey *survey)
{
	pfree(survey->meta);
	pfree(survey->free);
}

/* ---- reading blocks in order ---- */

/* The first block from this one on that is not left out, or the end. */
static BlockNumber
not_skipped(const HybBlockStream *stream, BlockNumber block)
{
	if (stream->skip != NULL)
		while (block < stream->end &&
			   (stream->skip[block >> 3] & (1 << (block & 7))) != 0)
			block++;
	return block;
}

#ifdef HYB_HAVE_READ_STREAM

/* Takes no locks, as servers that put requests together want it. */
static BlockNumber
next_to_read(ReadStream *reader, void *arg, void *per_buffer)
{
	HybBlockStream *stream = arg;

	stream->ahead = not_skipped(stream, stream->ahead);
	return stream->ahead < stream->end ? stream->ahead++ : InvalidBlockNumber;
}

#endif

void
hyb_block_stream_begin(HybBlockStream *stream, Relation rel,
					   BlockNumber first, BlockNumber end, const uint8 *skip,
					   BufferAccessStrategy strategy)
{
	Assert(first <= end);
	*stream = (HybBlockStream)
	{
		.rel = rel,.strategy = strategy,.skip = skip,.next = first,
			.ahead = first,.end = end
	};
#ifdef HYB_HAVE_READ_STREAM
	if (hyb_prefetch)
		stream->reader = read_stream_begin_relation(HYB_READ_STREAM_FLAGS,
													strategy, rel, MAIN_FORKNUM,
													next_to_read, stream, 0);
#endif
}

Buffer
hyb_block_stream_next(HybBlockStream *stream)
{
	BlockNumber block;

	HYB_VACUUM_DELAY_POINT();
#ifdef HYB_HAVE_READ_STREAM
	if (stream->reader != NULL)
	{
		Buffer		buf = read_stream_next_buffer(stream->reader, NULL);

		/* blocks come in physical order, and none twice */
		Assert(!BufferIsValid(buf) ||
			   (BufferGetBlockNumber(buf) >= stream->next &&
				BufferGetBlockNumber(buf) < stream->end));
		if (BufferIsValid(buf))
			stream->next = BufferGetBlockNumber(buf) + 1;
		return buf;
	}
#endif
	block = not_skipped(stream, stream->next);
	if (block >= stream->end)
		return InvalidBuffer;
	stream->next = block + 1;
	return ReadBufferExtended(stream->rel, MAIN_FORKNUM, block, RBM_NORMAL,
							  stream->strategy);
}

void
hyb_block_stream_unpin(HybBlockStream *stream)
{
#ifdef HYB_HAVE_READ_STREAM
	if (stream->reader == NULL)
		return;
	read_stream_reset(stream->reader);
	stream->ahead = stream->next;
#endif
}

void
hyb_block_stream_end(HybBlockStream *stream)
{
#ifdef HYB_HAVE_READ_STREAM
	if (stream->reader != NULL)
		read_stream_end(stream->reader);
	stream->reader = NULL;
#endif
}
