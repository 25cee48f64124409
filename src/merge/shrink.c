/*
 * shrink.c
 *		Returning free blocks at the end of an index's file.
 *
 * See docs/vacuum.md, "Files that shrink".
 */
#include "base/compat.h"

#include "access/table.h"
#include "catalog/index.h"
#include "commands/vacuum.h"
#include "merge/facts.h"
#include "merge/merge.h"
#include "merge/shrink.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "store/dictionary.h"
#include "store/handle.h"
#include "store/space.h"
#include "store/survey.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

/* How often the lock is asked for: as VACUUM does for tables. */
#define LOCK_INTERVAL_MS	50

/*
 * The log and merges will need free blocks again.  At most one block moves for
 * each one returned, so as much must be written again before as much can move.
 */
const HybShrinkRule hyb_quiet_rule = {
	.min_free = 16,
	.free_fraction = 16,
	.min_returned = 8,
	.spare_fraction = 64,
	.spare = 8
};

bool
hyb_shrink_allowed(const HybIndex *ix)
{
	Relation	heap;
	bool		allows;

	if (ix->rel->rd_refcnt != 1)
		return false;
	heap = table_open(IndexGetRelation(RelationGetRelid(ix->rel), false), NoLock);
	allows = HYB_VACUUM_TRUNCATES(heap);
	table_close(heap, NoLock);
	return allows;
}

/* The length that a file of nblocks shrinks to; nblocks if that does not pay. */
static BlockNumber
blocks_wanted(const HybShrinkRule *rule, const HybMetaPage *meta,
			  BlockNumber nblocks)
{
	BlockNumber nfree = (BlockNumber) hyb_meta_free(meta, nblocks);
	BlockNumber used = nblocks - Min(nfree, nblocks);
	BlockNumber wanted = used + used / rule->spare_fraction + rule->spare;

	if (nfree < (BlockNumber) rule->min_free ||
		nfree < nblocks / rule->free_fraction ||
		nblocks < wanted + rule->min_returned)
		return nblocks;
	return wanted;
}

HybQuietWork
hyb_quiet_work(HybIndex *ix)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(ix->rel);
	HybMetaPage meta;
	HybMergeFacts facts;

	if (hyb_quiet_time < 0)
		return HYB_QUIET_NONE;
	hyb_meta_copy(ix, &meta);
	hyb_merge_facts_of_meta(ix, &meta, &facts);
	if (facts.unfinished || facts.visit_asked)
		return HYB_QUIET_NONE;
	if (hyb_policy_quiet(&facts))
		return HYB_QUIET_MERGE;
	return blocks_wanted(&hyb_quiet_rule, &meta, nblocks) < nblocks ?
		HYB_QUIET_SHRINK : HYB_QUIET_NONE;
}

/*
 * Choose and name the end of the file; InvalidBlockNumber if it does not pay to
 * shrink.  An end that an earlier VACUUM has named is kept if it holds most of
 * what can be cut off.
 */
static BlockNumber
begin_cut(HybIndex *ix, const HybShrinkRule *rule)
{
	HybMetaPage meta;
	BlockNumber nblocks = RelationGetNumberOfBlocks(ix->rel);
	BlockNumber cut;

	/* the usual case needs no lock */
	hyb_meta_copy(ix, &meta);
	if (meta.cut_end == 0 && blocks_wanted(rule, &meta, nblocks) == nblocks)
		return InvalidBlockNumber;

	(void) hyb_merge_lock(ix->rel, true);
	hyb_file_end_recover(ix);
	hyb_space_settle(ix);
	hyb_meta_copy(ix, &meta);
	nblocks = RelationGetNumberOfBlocks(ix->rel);

	/*
	 * dictionary pages do not move: they were written when the index was
	 * small
	 */
	cut = Max(blocks_wanted(rule, &meta, nblocks), hyb_dictionary_end(ix));
	if (nblocks < cut + rule->min_returned || meta.cut_end != 0)
		cut = InvalidBlockNumber;
	else if (BlockNumberIsValid(meta.cut) && meta.cut >= cut &&
			 meta.cut - cut < (nblocks - cut) / 4)
		cut = meta.cut;
	else
		hyb_file_end_begin(ix, cut);
	hyb_merge_unlock(ix->rel);
	return cut;
}

bool
hyb_shrink_begin(HybShrink *shrink)
{
	HybIndex   *ix = shrink->ix;
	HybSiftResult result = HYB_SIFT_MORE;

	shrink->cut = begin_cut(ix, shrink->rule);
	if (!BlockNumberIsValid(shrink->cut))
		return false;
	while (result == HYB_SIFT_MORE && shrink->go_on(shrink))
	{
		(void) hyb_merge_lock(ix->rel, true);
		result = hyb_file_end_sift(ix);
		hyb_merge_unlock(ix->rel);
		HYB_POINT("shrink-sifted");
	}
	return result == HYB_SIFT_DONE;
}

bool
hyb_shrink_move(HybShrink *shrink)
{
	HybIndex   *ix = shrink->ix;
	HybMove		move = {.cut = shrink->cut};
	HybMergeOrder order = {.mode = HYB_MERGE_MOVE,.move = &move};
	bool		more = true;

	while (more && shrink->go_on(shrink))
	{
		more = hyb_merge_drive(ix, &order) == HYB_MERGE_MORE;
		HYB_POINT("shrink-moved");
	}
	shrink->moved += move.moved;
	return !more;
}

/*
 * Is all of the end free?  If the counts say so, both lists are read to the end:
 * what is cut off does not come back.
 */
static bool
end_is_free(HybIndex *ix)
{
	HybSurvey	survey;
	bool		free;

	(void) hyb_merge_lock(ix->rel, true);
	free = hyb_file_end_is_free(ix);
	if (free)
	{
		hyb_survey_take(ix, &survey);
		for (BlockNumber block = survey.meta->cut; block < survey.nblocks; block++)
			free &= hyb_survey_is_free(&survey, block);
		hyb_survey_free(&survey);
	}
	hyb_merge_unlock(ix->rel);
	return free;
}

static void
cut_off(HybIndex *ix, void *arg)
{
	bool	   *done = arg;

	if (!hyb_merge_lock(ix->rel, false))
		return;
	*done = hyb_file_end_cut_off(ix);
	hyb_merge_unlock(ix->rel);
}

bool
hyb_shrink_cut(HybIndex *ix, int tries)
{
	if (!end_is_free(ix))
		return false;
	for (int i = 0; i < tries; i++)
	{
		bool		done = false;

		if (i > 0)
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 LOCK_INTERVAL_MS, WAIT_EVENT_VACUUM_TRUNCATE);
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
		}
		if (hyb_merge_exclusively(ix, 0, cut_off, &done))
		{
			HYB_POINT("shrink-cut");
			return done;
		}
	}
	return false;
}
