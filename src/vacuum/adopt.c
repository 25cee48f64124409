/*
 * adopt.c
 *		Blocks that a crash has left to nobody.
 */
#include "base/compat.h"

#include "merge/merge.h"
#include "store/dictionary.h"
#include "store/meta.h"
#include "store/space.h"
#include "store/survey.h"
#include "utils/rel.h"
#include "vacuum/adopt.h"

/*
 * Is every block known to some structure of the index?  The caller holds the
 * merge lock, so none is on its way into pending[].
 */
static bool
all_blocks_known(HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	HybLevel	total = hyb_meta_static(meta);
	BlockNumber nblocks = RelationGetNumberOfBlocks(ix->rel);
	uint64		known = 1 + total.leaf_pages + total.inner_pages +
		total.filter_pages + meta->active.npages + meta->frozen.npages +
		meta->retiring.npages + hyb_meta_free(meta, nblocks) +
		hyb_dictionary_pages(ix);

	UnlockReleaseBuffer(metabuf);
	return known >= nblocks;
}

/*
 * Does a block that is not free hold what nothing can point to?  Takes over the
 * pin.
 */
static bool
is_lost(HybIndex *ix, Buffer buf)
{
	bool		lost;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	lost = PageIsNew(BufferGetPage(buf)) ||
		hyb_page_check(ix, buf, HYB_PAGE_FREELIST, 0);
	UnlockReleaseBuffer(buf);
	return lost;
}

/*
 * Such blocks, at most HYB_MAX_PENDING; returns how many.
 */
static int
find_lost(HybIndex *ix, const HybSurvey *survey, BufferAccessStrategy strategy,
		  BlockNumber *blocks)
{
	HybBlockStream stream;
	Buffer		buf;
	int			n = 0;

	hyb_block_stream_begin(&stream, ix->rel, 1, survey->nblocks, survey->free,
						   strategy);
	while (n < HYB_MAX_PENDING &&
		   (buf = hyb_block_stream_next(&stream)) != InvalidBuffer)
	{
		BlockNumber blkno = BufferGetBlockNumber(buf);

		if (is_lost(ix, buf))
			blocks[n++] = blkno;
	}
	hyb_block_stream_end(&stream);
	return n;
}

/*
 * Contract in adopt.h.
 *
 * Counts tell whether there are any.  Which ones they are is looked for without
 * a lock, and looked at again under the merge lock.  Delta pages are extended
 * for and set up under the metapage's exclusive lock, so what lies below
 * nblocks and is not in use then was not about to be used at the time of the
 * survey; nor can it become used, because only free and new blocks do.
 */
void
hyb_adopt_lost_blocks(HybIndex *ix, BufferAccessStrategy strategy)
{
	HybSurvey	survey;
	BlockNumber candidates[HYB_MAX_PENDING];
	BlockNumber lost[HYB_MAX_PENDING];
	int			ncandidates;
	int			nlost = 0;
	bool		known;

	if (!hyb_merge_lock(ix->rel, false))
		return;
	hyb_space_settle(ix);
	known = all_blocks_known(ix);
	hyb_merge_unlock(ix->rel);
	if (known)
		return;

	hyb_survey_take(ix, &survey);
	ncandidates = find_lost(ix, &survey, strategy, candidates);
	hyb_survey_free(&survey);

	if (ncandidates == 0 || !hyb_merge_lock(ix->rel, false))
		return;
	hyb_space_settle(ix);
	hyb_survey_take(ix, &survey);
	/* pending[] is not empty if all its blocks are pinned */
	for (int i = 0; i < ncandidates && survey.meta->npending == 0; i++)
		if (!hyb_survey_is_free(&survey, candidates[i]) &&
			is_lost(ix, ReadBuffer(ix->rel, candidates[i])))
			lost[nlost++] = candidates[i];
	hyb_survey_free(&survey);
	Assert(nlost <= ncandidates && ncandidates <= HYB_MAX_PENDING);
	if (nlost > 0)
	{
		hyb_space_adopt(ix, lost, nlost);
		hyb_space_settle(ix);
	}
	hyb_merge_unlock(ix->rel);
}
