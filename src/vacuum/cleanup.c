/*
 * cleanup.c
 *		The cleanup phase of VACUUM.
 *
 * It gives lost blocks to the free list and returns free blocks at the end of
 * the file.  Then it asks for the merges that are worth it.
 *
 * Lost blocks are those that no structure of the index knows.  A crash between
 * extending the file and the record that uses the block leaves one, all zeroes
 * or as an empty free-list page.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/xact.h"
#include "base/server.h"
#include "commands/vacuum.h"
#include "merge/facts.h"
#include "merge/merge.h"
#include "merge/shrink.h"
#include "miscadmin.h"
#include "store/dictionary.h"
#include "store/handle.h"
#include "store/meta.h"
#include "store/space.h"
#include "store/survey.h"
#include "utils/rel.h"
#include "vacuum/vacuum.h"

/*
 * A file shrinks if a third of it is free, and at least half a megabyte.  So
 * after VACUUM it is at most 1.5 times as large as its content, and a returned
 * block costs at most two that move.  The log and merges reuse less than that as
 * a rule.
 */
#define SHRINK_MIN_BLOCKS	64

static const HybShrinkRule vacuum_rule = {
	.min_free = SHRINK_MIN_BLOCKS,
	.free_fraction = 3,
	.min_returned = SHRINK_MIN_BLOCKS / 2,
	.spare_fraction = 16,
	.spare = 8
};

/* How often the lock is asked for, as VACUUM does for tables. */
#define LOCK_TRIES			100

/* ---- lost blocks ---- */

/*
 * Does some structure of the index know every block?  The merge lock keeps
 * blocks from moving to pending[].
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

/* Is a block lost that is not free?  Takes over the pin. */
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

/* Find at most HYB_MAX_PENDING lost blocks; returns their number. */
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
 * Counts tell whether there are lost blocks.  They are looked for without a
 * lock, and looked at again under the merge lock.  Delta pages are added and
 * set up under the metapage's exclusive lock.  So a block below nblocks that was
 * not in use at the time of the survey was not about to be used.  It cannot
 * become used, because only free and new blocks do.
 *
 * Gives up if another process is merging.
 */
static void
adopt_lost_blocks(HybIndex *ix, BufferAccessStrategy strategy)
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
	for (int i = 0; i < ncandidates; i++)
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

/* ---- the end of the file ---- */

/* Are most of the entries that the index holds dead? */
static bool
is_mostly_dead(const HybMetaPage *meta, BlockNumber nblocks, double live)
{
	uint64		all = hyb_meta_static(meta).tids + meta->active.nentries +
		meta->frozen.nentries;

	return nblocks >= SHRINK_MIN_BLOCKS && live < (double) all / 2;
}

static bool
delay(const HybShrink *shrink)
{
	HYB_VACUUM_DELAY_POINT();
	return true;
}

static void
merge_everything(void *ix)
{
	(void) hyb_merge_all(ix);
}

static void
empty_end(void *arg)
{
	HybShrink  *shrink = arg;

	(void) hyb_shrink_move(shrink);
	/* what is left there are pages of the log */
	if (!hyb_file_end_is_free(shrink->ix))
		hyb_merge_log(shrink->ix);
}

/*
 * VACUUM goes on without a merge that fails, as it may where functions compare keys.
 * Returns false then.  Before 17 there are no subtransactions in parallel mode.  There,
 * VACUUM does not merge if comparisons are impure, and fails if a pure one does.
 */
static bool
merge_guarded(HybIndex *ix, void (*work) (void *arg), void *arg)
{
	ErrorData  *error;

	if (!HYB_SUBTRANSACTIONS_ALLOWED() && ix->desc->pure == HYB_IMPURE)
		return false;
	if (!HYB_SUBTRANSACTIONS_ALLOWED() || !hyb_key_desc_calls_functions(ix->desc))
	{
		work(arg);
		return true;
	}
	error = hyb_catch_error(work, arg);
	if (error != NULL)
		ereport(error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ? DEBUG1 : WARNING,
				(errcode(error->sqlerrcode),
				 errmsg("could not merge index \"%s\"", RelationGetRelationName(ix->rel)),
				 errdetail_internal("%s", error->message)));
	return error == NULL;
}

/*
 * Merge the index if `live`, the entries that VACUUM has left, are few of its
 * entries.  If much of the file is free, move what lies at its end, and cut that
 * off.  Does only what needs no waiting for other processes.
 *
 * A VACUUM that works on several indexes of a table is in parallel mode.  The lock
 * for the cut needs a transaction ID, and there is none in that mode.  So such a
 * VACUUM leaves the file to a worker, which it asks for at its end.
 */
static void
shrink_index(HybIndex *ix, IndexVacuumInfo *info, double live)
{
	BlockNumber before = RelationGetNumberOfBlocks(ix->rel);
	HybShrink	shrink = {.ix = ix,.rule = &vacuum_rule,.go_on = delay};
	HybMetaPage meta;

	if (!hyb_shrink_allowed(ix))
		return;

	hyb_meta_copy(ix, &meta);
	if (is_mostly_dead(&meta, before, live) && !merge_guarded(ix, merge_everything, ix))
		return;
	if (IsInParallelMode() || !hyb_shrink_begin(&shrink) ||
		!merge_guarded(ix, empty_end, &shrink))
		return;
	(void) hyb_shrink_cut(ix, LOCK_TRIES);
	ereport(info->message_level,
			(errmsg("index \"%s\": truncated %u to %u pages",
					RelationGetRelationName(ix->rel), before,
					RelationGetNumberOfBlocks(ix->rel)),
			 errdetail_internal("Leaves moved: " UINT64_FORMAT ".", shrink.moved)));
}

/* ---- all of it ---- */

IndexBulkDeleteResult *
hyb_amvacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	HybIndex   *ix;
	HybMetaPage meta;

	if (info->analyze_only)
		return stats;

	ix = hyb_index_create_handle(info->index);
	adopt_lost_blocks(ix, info->strategy);

	if (stats == NULL)
	{
		HybLevel	total;

		hyb_meta_copy(ix, &meta);
		total = hyb_meta_static(&meta);
		stats = palloc0(sizeof(IndexBulkDeleteResult));
		stats->estimated_count = true;
		stats->num_index_tuples = (double) total.tids -
			(double) total.tombstones +
			(double) meta.active.nentries + (double) meta.frozen.nentries;
	}
	shrink_index(ix, info, stats->num_index_tuples);
	hyb_meta_copy(ix, &meta);
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->pages_free = meta.free_blocks + meta.cut_blocks;
	stats->pages_deleted = stats->pages_free;

	/* as btvacuumcleanup does: the heap's count is the better one */
	if (!info->estimated_count &&
		stats->num_index_tuples > info->num_heap_tuples)
		stats->num_index_tuples = info->num_heap_tuples;

	hyb_merge_request_joins(ix);
	/* snapshots that kept row versions may be gone */
	if (!info->estimated_count)
		hyb_merge_request_settling(ix, info->num_heap_tuples);
	hyb_merge_consider(ix);
	hyb_merge_ask_if_wanted(ix);
	return stats;
}
