/*
 * step.c
 *		One step of a merge: the next key range of a run.
 *
 * A step works below one level-1 node of a static level.  It takes entries
 * above the watermark, of the frozen generation or of the next newer level,
 * writes the leaves that they fall into anew
 * (leaves that nothing touches stay as they are), copies the path to a new
 * root, and switches the metapage to it in one WAL record: root, watermark
 * and counters, with the replaced blocks in pending[].  Until that record
 * readers see the old version, after it the new one; a crash before it leaves
 * the new pages in pending[], a crash after it the old ones, and either way
 * hyb_space_settle gives them to the free list.
 *
 * Everything is done with the merge lock held, so the static stage does not
 * change under the step but for tombstones: VACUUM may set some on a leaf
 * after the step has copied it.  The new leaf then lacks them, and VACUUM's
 * second pass, which visits every page stamped after VACUUM began, sets them
 * (vacuum/vacuum.c).
 */
#include "base/compat.h"

#include "filter/filter_choice.h"
#include "log/delta.h"
#include "merge/facts.h"
#include "merge/merge.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "run/run.h"
#include "store/meta.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* A step takes 2^-15 of what it might: an entry, surely. */
#define MAX_HALVINGS	15

#ifdef USE_ASSERT_CHECKING
void
hyb_step_assert_valid(const HybMergeStep *step)
{
	/* entries go from a newer level, or the log, to the one before it */
	Assert(step->level >= 0 && step->level < HYB_MAX_LEVELS);
	Assert(step->source == HYB_SOURCE_LOG || step->source == step->level + 1);
	Assert((step->source == HYB_SOURCE_LOG) == (step->source_path == NULL));
	Assert(step->stamp > 0 && step->halvings >= 0 && step->halvings <= MAX_HALVINGS);
	/* what it has taken, may take, and has fetched */
	Assert(step->done.next_entry >= 0 && step->done.next_entry <= step->last_entry);
	Assert(step->last_entry <= step->batch.nitems);
	Assert(step->done.merged == step->done.next_entry);
	Assert(step->done.leaves.nimages >= 0 && step->done.leaves.nretired >= 0);
	Assert(step->done.leaves.nretired <= HYB_MAX_PENDING);
	Assert(step->done.leaves.nimages <= step->children.n);
	Assert(step->done.leaves.old_tombstones <= step->done.leaves.old_tids);
}
#endif

/*
 * All frozen entries are in the static stage: the generation becomes the
 * retiring one, whose pages are freed by later steps, and where there are
 * levels for it a pass over them begins.
 */
static void
finish_generation(HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	HybWalSet	set;

	Assert(meta->frozen.number != 0 && meta->retiring.number == 0 && meta->pass_level == 0);
	hyb_version_switch_begin(ix, meta, &set);
	meta->retiring = meta->frozen;
	hyb_generation_init(&meta->frozen, 0);
	meta->merges++;
	/* a quiet merge comes early: it says little of what the next rewrites */
	if (meta->nlevels > 1 || (meta->flags & HYB_META_UNEARNED) == 0)
		meta->rewritten_tids = meta->rewriting_tids;
	if (meta->rewriting_tids != HYB_REWRITTEN_UNKNOWN || meta->nlevels == 1)
		meta->rewriting_tids = 0;
	if (meta->nlevels > 1)
	{
		meta->pass_level = meta->nlevels - 1;
		meta->pass_stamp = meta->next_stamp;
		hyb_wal_meta_field(&set, metabuf, pass_stamp);
	}
	else
		meta->flags &= ~(HYB_META_COMPACTING | HYB_META_QUIET | HYB_META_UNEARNED);
	hyb_version_switch_end(ix, metabuf, &set, NULL);
}

/*
 * A quiet merge, and its passes, are to be out of the way of insertions: once
 * these have filled a page, they go on as those of any other merge, and levels
 * stay.
 */
static void
give_way(HybIndex *ix, HybMetaPage *copy)
{
	HybMetaPage *meta;
	Buffer		metabuf;
	HybWalSet	set;

	if ((copy->flags & HYB_META_QUIET) == 0 || copy->active.nentries == 0 ||
		(copy->frozen.number == 0 && copy->pass_level == 0))
		return;
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	meta->flags &= ~(HYB_META_QUIET | HYB_META_MOVING);
	meta->wanted_levels = meta->nlevels;
	hyb_wal_meta(&set, metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	*copy = *meta;
	UnlockReleaseBuffer(metabuf);
}

/*
 * Free the next pages of the retiring generation.
 */
static void
free_retiring(HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	HybGeneration retiring = meta->retiring;
	int			room = HYB_MAX_PENDING - (int) meta->npending;
	BlockNumber blocks[HYB_MAX_PENDING];
	int			n = 0;
	bool		more = false;
	HybDeltaWalk walk;
	HybWalSet	set;

	UnlockReleaseBuffer(metabuf);

	/* links that go round would put a block on the free list twice */
	hyb_delta_walk_start(&walk, ix, &retiring, true);
	while (n < room && hyb_delta_walk_next(&walk))
	{
		Buffer		buf;

		if (!hyb_delta_walk_lock(&walk, &buf))
			hyb_corrupted(ix->rel, walk.block, "This is not the delta page that the log points to.");
		UnlockReleaseBuffer(buf);
		retiring.head[walk.lane] = walk.link;
		blocks[n++] = walk.block;
	}
	for (int lane = 0; lane < HYB_LANES; lane++)
		more |= BlockNumberIsValid(retiring.head[lane]);

	HYB_POINT("retire");
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	/* nobody else frees them, and pending[] is settled by nobody else */
	Assert(meta->retiring.number == retiring.number && retiring.npages >= n);
	Assert(meta->npending + n <= HYB_MAX_PENDING);
	meta->retiring = retiring;
	meta->retiring.npages -= n;
	if (!more)
		hyb_generation_init(&meta->retiring, 0);
	memcpy(meta->pending + meta->npending, blocks, n * sizeof(BlockNumber));
	meta->npending += n;
	hyb_wal_meta(&set, metabuf);
	hyb_wal_meta_pending(&set, metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);

	hyb_space_settle(ix);
}

bool
hyb_step_fetch(HybMergeStep *step, const HybStepSize *size)
{
	HybFetch	fetch = {
		.lo = &step->from,
		.hi = &step->end,
		.limit = Max(size->entries >> step->halvings, 1)
	};
	uint64		bytes = 0;
	bool		current;

	/* nobody else switches versions, so the fetch cannot fail for good */
	do
	{
		CHECK_FOR_INTERRUPTS();
		hyb_version_capture(step->ix, &step->version);
		if (step->source == HYB_SOURCE_LOG)
			step->from = step->version.watermark;
		current = hyb_run_fetch(step->ix, &step->version,
								step->source == HYB_SOURCE_LOG ? HYB_RUN_FROZEN : step->source,
								&fetch, &step->batch);
	} while (!current);

	/* bound the new leaves by the bytes that go in */
	step->max_leaves = Max(size->leaves >> step->halvings, 1);
	while (step->last_entry < step->batch.nitems &&
		   bytes < Max(size->bytes >> step->halvings, 1))
		bytes += step->batch.items[step->last_entry++].len;
	Assert(step->last_entry > 0 || step->batch.nitems == 0);
	return (step->batch.nitems > 0 || step->compact) && !HYB_POS_MAX(&step->from);
}

/* Where the step begins. */
static HybPos
step_begin(const HybMergeStep *step)
{
	if (!step->compact)
		return hyb_step_pos(step, &step->batch.items[0]);

	/* what is at the watermark is done: begin just above it */
	return hyb_step_above(&step->from);
}

/*
 * The watermark of a step that has rewritten leaves up to a fence; node_done:
 * to the end of its level-1 node.
 */
static HybPos
next_watermark(const HybMergeStep *step, HybPos fence, bool node_done)
{
	bool		entries_left = step->done.next_entry < step->batch.nitems ||
		!step->batch.complete;

	if (!entries_left &&
		(!step->compact || (node_done && HYB_POS_MAX(&fence))))
	{
		/* nothing of the range is above this */
		fence = step->end;
	}
	else if (step->done.next_entry == step->last_entry && entries_left &&
			 step->last_entry > 0)
	{
		/* stopped inside a leaf's range, or just at its end */
		return hyb_step_pos(step, &step->batch.items[step->last_entry - 1]);
	}
	else if (hyb_pos_compare(step->ix->desc, &step->end, &fence) < 0)
		fence = step->end;

	/*
	 * Entries at the watermark count as merged, but an entry at the fence
	 * belongs to the next leaf.
	 */
	return hyb_step_below(&fence);
}

HybMergeStep *
hyb_step_create(HybIndex *ix, const HybMetaPage *meta, int halvings)
{
	HybMergeStep *step = palloc0(sizeof(HybMergeStep));

	step->ix = ix;
	step->source = HYB_SOURCE_LOG;
	step->level = (int) meta->nlevels - 1;
	step->entries = meta->frozen.nentries;
	for (int i = 0; i < (int) meta->nlevels; i++)
		step->entries += meta->levels[i].tids;
	step->end.tie = HYB_AFTER;
	step->stamp = meta->next_stamp;
	step->halvings = halvings;
	step->compact = (meta->flags & HYB_META_COMPACTING) != 0;
	step->leaf_page = palloc(BLCKSZ);
	step->leaf_hints = palloc(hyb_leaf_hint_bytes(HYB_LEAF_MAX_ITEMS));
	step->vals = palloc(ix->desc->natts * sizeof(HybValue));
	step->retired = palloc(HYB_MAX_PENDING * sizeof(BlockNumber));
	hyb_step_assert_valid(step);
	return step;
}

bool
hyb_step_run(HybMergeStep *step, HybPos *watermark)
{
	HybIndex   *ix = step->ix;
	HybPath    *path = palloc(sizeof(HybPath));
	HybPos		start = step_begin(step);
	HybPos		fence;
	bool		node_done;
	bool		fits;

	HYB_ASSERT_NO_LWLOCK();
	hyb_step_assert_valid(step);
	step->filter = hyb_filter_builder_create(ix,
											 hyb_filter_kind_of_level(ix, step->level,
																	  step->version.nlevels));
	hyb_path_load(ix, &step->version.levels[step->level], &start, path);
	hyb_dead_begin(&step->dead, ix->rel);
	node_done = hyb_step_rewrite(step, path, &fence);
	hyb_dead_end(&step->dead);
	hyb_step_assert_valid(step);
	Assert(step->builder == NULL);

	/* damaged separators could have steps go round for ever */
	*watermark = next_watermark(step, fence, node_done);
	if (hyb_pos_compare(ix->desc, watermark, &step->from) <= 0)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
					  "A merge step would not advance the watermark.");
	if (step->source != HYB_SOURCE_LOG)
		hyb_step_cut(step, watermark, step->done.merged);
	fits = hyb_step_install(step, path, watermark);
	if (fits)
		HYB_POINT("step-installed");
	hyb_leaf_close(&step->leaf);
	hyb_space_settle(ix);
	return fits;
}

/*
 * Merge the next range of the frozen generation.  *done: there is none left.
 * False as for hyb_step_run.
 */
static bool
merge_range(HybIndex *ix, const HybMetaPage *meta, const HybMergeFacts *facts,
			int halvings, bool *done)
{
	HybMergeStep *step = hyb_step_create(ix, meta, halvings);
	HybStepSize size = hyb_policy_step(facts);
	HybPos		watermark;

	*done = false;
	/* where levels are to become one, it is the passes that visit all leaves */
	step->compact &= meta->nlevels == meta->wanted_levels;
	if (!hyb_step_fetch(step, &size))
		*done = true;
	else if (!hyb_step_run(step, &watermark))
		return false;
	else
		*done = HYB_POS_MAX(&watermark);
	return true;
}

/*
 * Move the next range, or do what comes at the end of a generation.  The blocks
 * of a step have to fit pending[]: those that it replaces, and those that it
 * reserves.  How many those are depends on how leaves, filters and nodes
 * share pages; in all but strange trees they fit.  Where they do not, nothing
 * has changed but free blocks, and the same is done with half as much, until it
 * fits.  A step that takes one entry to one leaf replaces, in each of two levels,
 * a few leaves, a filter page for each and two nodes of each height at most.
 */
static void
move_next_range(HybIndex *ix, const HybMetaPage *meta, const HybMergeFacts *facts)
{
	bool		fits = false;
	bool		done = false;

	for (int halvings = 0; !fits; halvings++)
	{
		MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
													  "hybrid merge step",
													  ALLOCSET_DEFAULT_SIZES);
		MemoryContext old = MemoryContextSwitchTo(context);

		CHECK_FOR_INTERRUPTS();
		if (halvings > MAX_HALVINGS)
			hyb_step_no_room(ix);
		if (meta->frozen.number == 0)
			fits = hyb_pass_step(ix, meta, facts, halvings);
		else
			fits = merge_range(ix, meta, facts, halvings, &done);
		MemoryContextSwitchTo(old);
		MemoryContextDelete(context);
	}
	if (done)
	{
		HYB_POINT("merge-finish");
		finish_generation(ix);
	}
}

bool
hyb_merge_step(HybIndex *ix)
{
	HybMetaPage meta;
	HybMergeFacts facts;

	hyb_meta_copy(ix, &meta);
	give_way(ix, &meta);
	hyb_merge_facts_of_meta(ix, &meta, &facts);
	if (meta.npending > 0)
		hyb_space_settle(ix);
	if (meta.retiring.number != 0)
	{
		free_retiring(ix);
		return true;
	}
	if (meta.frozen.number == 0 && meta.pass_level == 0)
		return false;
	move_next_range(ix, &meta, &facts);
	return true;
}
