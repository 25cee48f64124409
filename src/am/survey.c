/*
 * survey.c
 *		Where the blocks of an index belong, at one moment.
 *
 * Blocks are taken from the free list and the relation is extended only under
 * the metapage's exclusive lock, or (by merge steps) under the merge lock.  So
 * while the metapage is share-locked the free list stands still.  The length
 * of the relation does too if the merge lock is held; else some blocks at its
 * end may be on their way into pending[].
 *
 * In recovery no lock is held while another is waited for: replay locks the
 * pages of a record in the record's order, and waits for each.  What is found
 * is then of one moment only if replay stands still.
 */
#include "compat.h"

#include "access/xlog.h"
#include "am/survey.h"
#include "page/meta.h"
#include "page/space.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"

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
	if (hyb_survey_is_free(survey, block))
		hyb_corrupted(ix->rel, from,
					  psprintf("Free block %u at position %d is listed twice.",
							   block, position));
	survey->free[block >> 3] |= 1 << (block & 7);
}

void
hyb_survey_take(const HybIndex *ix, HybSurvey *survey)
{
	HybMetaPage *meta;
	Buffer		metabuf;
	BlockNumber block;
	BlockNumber from = HYB_METAPAGE_BLKNO;
	uint32		nfree = 0;

	survey->meta = palloc(sizeof(HybMetaPage));
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	memcpy(survey->meta, meta, sizeof(HybMetaPage));
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

	block = meta->freelist;
	while (block != InvalidBlockNumber)
	{
		Buffer		buf;
		Page		page;
		HybPageOpaque *opaque;

		/* finds cycles, too */
		survey_add(ix, survey, from, -1, block);

		buf = ReadBuffer(ix->rel, block);
		LockBuffer(buf, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buf);
		if (!hyb_page_check(ix, buf, HYB_PAGE_FREELIST, 0))
			hyb_corrupted(ix->rel, block,
						  psprintf("Block %u of the free list is not a free-list page.", block));
		opaque = hyb_page_opaque(page);
		if (opaque->count > HYB_FREELIST_CAPACITY ||
			(opaque->count > 0 &&
			 ((PageHeader) page)->pd_lower <
			 SizeOfPageHeaderData + opaque->count * sizeof(BlockNumber)))
			hyb_corrupted(ix->rel, block,
						  psprintf("A free-list page claims to hold %u blocks.",
								   opaque->count));
		for (uint32 i = 0; i < opaque->count; i++)
			survey_add(ix, survey, block, i, hyb_freelist_blocks(page)[i]);
		nfree += opaque->count + 1;
		from = block;
		block = opaque->link;
		UnlockReleaseBuffer(buf);
	}
	if (BufferIsValid(metabuf))
		UnlockReleaseBuffer(metabuf);

	if (nfree != meta->free_blocks)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
					  psprintf("The free list holds %u blocks, but the metapage counts %u.",
							   nfree, meta->free_blocks));
}

void
hyb_survey_free(HybSurvey *survey)
{
	pfree(survey->meta);
	pfree(survey->free);
}
