/*
 * driver.c
 *		The one driver of merges: a step under the merge lock.
 *
 * A step does one of these:
 * - free pages of the retiring generation (generation.c);
 * - move a key range of the frozen generation into the newest level, or of a
 *   level into the next older one (rewrite.c, pass.c);
 * - move leaves from the end of the file to free blocks (move.c);
 * - learn dictionaries, or freeze the active generation (learn.c, generation.c).
 *
 * Each step has the same sequence: lock, decide, work, install, settle, unlock.
 * It is in this order for these reasons.  The merge lock comes first, because
 * the static stage must not change between a decision and its installation.
 * VACUUM's tombstones are the only exception (vacuum/vacuum.c).  Then blocks
 * that a crash left in pending[] are settled, since the step needs the room
 * there.  The retiring generation comes before the frozen one: its pages are
 * room for new leaves, and a generation can freeze only when none retires.  The
 * frozen generation comes before a pass, because the metapage has one watermark
 * for both.  A freeze comes last, and whether it is wanted is asked under the
 * lock, so that two processes do not both freeze.
 *
 * Work writes new pages only.  Their blocks are in pending[] before anything is
 * written to them, and no LWLock is held in between.  Install is one WAL record
 * of the metapage: roots, watermark, counters, and the replaced blocks in
 * pending[] in place of the new ones.  Readers see the old version before that
 * record and the new one after it.  After a crash before it the new pages are
 * in pending[], and after a crash behind it the old ones.  Settling gives them
 * to the free list at once.  A process that takes a block from there passes over
 * pinned ones.
 */
#include "base/compat.h"

#include "filter/filter_choice.h"
#include "merge/facts.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "run/run.h"
#include "shared/workers.h"
#include "store/meta.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* A step takes at least 2^-15 of its size, which is one entry. */
#define MAX_HALVINGS	15

/*
 * A worker waits this long for the index lock that learning takes.  Other
 * processes queue behind a lock request, so it is about one time slice of a
 * worker (worker.c).
 */
#define LEARN_WAIT_MS		100

/* ---- one range ---- */

static void
step_assert_valid(const HybMergeStep *step)
{
	/* entries go from a newer level, or the log, to the next older one */
	Assert(step->to.level >= 0 && step->to.level < HYB_MAX_LEVELS);
	Assert(step->source == HYB_SOURCE_LOG || step->source == step->to.level + 1);
	Assert((step->source == HYB_SOURCE_LOG) == (step->source_path == NULL));
	Assert(step->stamp > 0 && step->halvings >= 0 && step->halvings <= MAX_HALVINGS);
	Assert(step->done.next_entry >= 0 && step->done.next_entry <= step->last_entry);
	Assert(step->last_entry <= step->batch.nitems);
	Assert(step->done.merged == step->done.next_entry);
	Assert(step->to.leaves.nimages >= 0 && step->to.leaves.nretired >= 0);
	Assert(step->to.leaves.nretired <= HYB_MAX_PENDING);
	Assert(step->to.leaves.nimages <= step->to.children.n);
	Assert(step->to.leaves.old_tombstones <= step->to.leaves.old_tids);
	Assert(step->builder == NULL);
}

/*
 * The next step, as the metapage says: of the frozen generation if there is
 * one, else of the pass.
 */
HybMergeStep *
hyb_step_create(HybIndex *ix, const HybMetaPage *meta, int halvings)
{
	HybMergeStep *step = palloc0(sizeof(HybMergeStep));
	bool		pass = meta->frozen.number == 0;

	step->ix = ix;
	step->source = pass ? meta->pass_level : HYB_SOURCE_LOG;
	step->to.level = (pass ? meta->pass_level : (int) meta->nlevels) - 1;
	step->cut.level = step->source;
	step->entries = meta->frozen.nentries;
	for (int i = 0; i < (int) meta->nlevels; i++)
		step->entries += meta->levels[i].tids;
	step->end.tie = HYB_AFTER;
	step->stamp = meta->next_stamp;
	step->halvings = halvings;
	/* only the last of several passes visits all leaves */
	step->compact = (meta->flags & HYB_META_COMPACTING) != 0 &&
		(pass ? meta->pass_level : meta->nlevels) == meta->wanted_levels;
	step->leaf_page = palloc(BLCKSZ);
	step->leaf_hints = palloc(hyb_leaf_hint_bytes(HYB_LEAF_MAX_ITEMS));
	step->vals = palloc(ix->desc->natts * sizeof(HybValue));
	step->to.retired = palloc(HYB_MAX_PENDING * sizeof(BlockNumber));
	return step;
}

/*
 * Fetch the entries of a step.  Returns false if there are none in its range,
 * and no leaves left to visit.
 */
static bool
fetch_entries(HybMergeStep *step, const HybStepSize *size)
{
	HybFetch	fetch = {
		.lo = &step->from,
		.hi = &step->end,
		.limit = Max(size->entries >> step->halvings, 1)
	};
	uint64		bytes = 0;
	bool		current;

	/* the merge lock keeps the version current, so this ends */
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

/*
 * The watermark of a step that has rewritten leaves up to a fence.  node_done:
 * up to the end of the level-1 node.
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
	return hyb_pos_below(&fence);
}

/*
 * Work: write the leaves that the fetched entries go to.  Returns the watermark
 * that the step reaches.
 */
static HybPos
rewrite_leaves(HybMergeStep *step)
{
	HybIndex   *ix = step->ix;
	HybPos		start;
	HybPos		fence;
	HybPos		watermark;
	bool		node_done;

	/* an entry at the watermark is done: begin just above it */
	start = step->compact ? hyb_pos_above(&step->from) :
		hyb_step_pos(step, &step->batch.items[0]);
	step->filter = hyb_filter_builder_create(ix,
											 hyb_filter_kind_of_level(ix, step->to.level,
																	  step->version.nlevels));
	step->to.path = palloc(sizeof(HybPath));
	hyb_path_load(ix, &step->version.levels[step->to.level], &start, step->to.path);
	hyb_dead_begin(&step->dead, ix->rel);
	step->dead.memory = step->memory;
	hyb_stale_begin(step);
	node_done = hyb_step_rewrite(step, &fence);
	hyb_stale_end(step);
	hyb_dead_end(&step->dead);
	step_assert_valid(step);

	/* damaged separators could make steps repeat for ever */
	watermark = next_watermark(step, fence, node_done);
	if (hyb_pos_compare(ix->desc, &watermark, &step->from) <= 0)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
					  "A merge step would not advance the watermark.");
	return watermark;
}

/* The memory of the step's process while it merges this generation, or of the step. */
static HybDeadMemory *
dead_memory(HybIndex *ix, const HybMetaPage *meta, HybMergeJob *job)
{
	uint64		active = meta->active.number;

	if (job == NULL)
		return hyb_dead_memory_create(CurrentMemoryContext, ix, active);
	if (job->dead != NULL && !hyb_dead_memory_is_of(job->dead, ix, active))
	{
		hyb_dead_memory_free(job->dead);
		job->dead = NULL;
	}
	if (job->dead == NULL)
		job->dead = hyb_dead_memory_create(TopMemoryContext, ix, active);
	return job->dead;
}

/*
 * Move the next range.  If a range of a level holds no live entries, its
 * tombstones still go, so that a level whose units all move becomes empty.
 *
 * Sets *done if no frozen entry is left.  Returns false, with nothing changed,
 * if pending[] has no room for the step's blocks.
 */
static bool
move_range(HybIndex *ix, const HybMetaPage *meta, HybMergeJob *job, int halvings,
		   bool *done)
{
	HybMergeStep *step = hyb_step_create(ix, meta, halvings);
	bool		pass = step->source != HYB_SOURCE_LOG;
	HybMergeFacts facts;
	HybStepSize size;
	HybPos		watermark;
	bool		found;
	bool		fits = true;

	/* decide */
	step->memory = dead_memory(ix, meta, job);
	hyb_merge_facts_of_meta(ix, meta, &facts);
	if (pass)
	{
		hyb_version_capture(ix, &step->version);
		if (!hyb_pass_choose(step, meta))
		{
			hyb_pass_advance(ix, &step->from, true);
			return true;
		}
		facts.leaves = meta->levels[step->to.level].leaf_pages;
		facts.frozen_entries = meta->levels[step->source].tids;
	}
	size = hyb_policy_step(&facts);
	found = fetch_entries(step, &size);
	*done = !found && !pass;
	if (*done)
		return true;

	/* work */
	if (found && pass)
		HYB_POINT("pass-fetched");
	watermark = found ? rewrite_leaves(step) : hyb_pos_below(&step->end);
	if (pass)
		hyb_step_cut(step, &watermark, step->done.merged);

	/* install */
	if (found || step->cut.path != NULL)
		fits = hyb_step_install(step, &watermark);
	else
		hyb_pass_advance(ix, &watermark,
						 hyb_pos_compare(ix->desc, &step->end, &step->unit_high) >= 0);
	if (found && fits)
		HYB_POINT("step-installed");
	hyb_leaf_close(&step->leaf);
	hyb_space_settle(ix);
	*done = fits && !pass && HYB_POS_MAX(&watermark);
	return fits;
}

/*
 * Move the next range, and end the generation after its last one.  The blocks
 * that a step reserves and those that it replaces have to fit pending[].  How
 * many there are depends on how leaves, filters and nodes share pages.  If they
 * do not fit, only free blocks have changed, and the step is done again with
 * half the size until it fits.  A step that takes one entry to one leaf replaces
 * few pages: in each of two levels a few leaves, a filter page for each, and at
 * most two nodes of each height.
 */
static void
move_next_range(HybIndex *ix, const HybMetaPage *meta, HybMergeJob *job)
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
			elog(ERROR, "a merge step of one entry does not fit index \"%s\"",
				 RelationGetRelationName(ix->rel));
		fits = move_range(ix, meta, job, halvings, &done);
		MemoryContextSwitchTo(old);
		MemoryContextDelete(context);
	}
	if (done)
	{
		HYB_POINT("merge-finish");
		hyb_generation_finish(ix);
	}
}

/* ---- the sequence ---- */

/*
 * A quiet merge gives way to inserts.  Once they have filled a page, it goes on
 * as any other merge does, and the levels stay.
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

/* One step of the merge or pass under way; false if there is none. */
static bool
continue_merge(HybIndex *ix, HybMergeJob *job)
{
	HybMetaPage meta;

	hyb_meta_copy(ix, &meta);
	give_way(ix, &meta);
	if (meta.npending > 0)
		hyb_space_settle(ix);
	if (meta.retiring.number != 0)
		hyb_generation_free(ix);
	else if (meta.frozen.number != 0 || meta.pass_level != 0)
		move_next_range(ix, &meta, job);
	else
		return false;
	return true;
}

static bool
do_step(HybIndex *ix, const HybMergeOrder *order)
{
	HybMergeMode mode = order->mode;
	bool		waits = mode == HYB_MERGE_WAIT || mode == HYB_MERGE_TRY;
	bool		frozen;

	if (mode == HYB_MERGE_MOVE)
		return hyb_move_leaves(ix, order->move);
	if (mode != HYB_MERGE_LEARN && continue_merge(ix, order->job))
		return true;
	if (!order->wanted(ix, order->arg))
		return false;
	frozen = hyb_merge_learn(ix, waits ? LEARN_WAIT_MS : 0) ||
		(mode != HYB_MERGE_LEARN && hyb_generation_freeze(ix));
	if (frozen && mode == HYB_MERGE_HELP)
		(void) continue_merge(ix, order->job);
	return frozen;
}

/* Progress is that of the generation being merged, by any process. */
static void
report_merge_progress(HybIndex *ix, HybMergeJob *job, const HybMetaPage *meta)
{
	HybProgress now = {0};

	if (meta->frozen.number != 0 && meta->frozen.number != job->generation)
	{
		job->generation = meta->frozen.number;
		job->total = meta->frozen.nentries;
		job->start = meta->merged_entries;
		job->moved_start = meta->moved_entries;
	}
	else if (job->generation == 0 && job->entry < 0)
	{
		job->start = meta->merged_entries;
		job->moved_start = meta->moved_entries;
	}
	if (job->entry < 0)
		job->entry = hyb_progress_begin(MyDatabaseId, RelationGetRelid(ix->rel),
										job->total);
	now.entries_total = job->total;
	now.entries_done = Min(meta->merged_entries - job->start, job->total);
	now.entries_moved = meta->moved_entries - job->moved_start;
	now.pass_level = meta->pass_level;
	now.steps = ++job->steps;
	hyb_progress_update(job->entry, &now);
}

HybMergeOutcome
hyb_merge_drive(HybIndex *ix, const HybMergeOrder *order)
{
	HybMergeMode mode = order->mode;
	HybMetaPage meta;
	uint64		merged;
	bool		more;

	HYB_ASSERT_NO_LWLOCK();
	Assert((mode == HYB_MERGE_MOVE) == (order->move != NULL));
	CHECK_FOR_INTERRUPTS();
	if (!hyb_merge_lock(ix->rel, mode == HYB_MERGE_WAIT || mode == HYB_MERGE_MOVE))
		return HYB_MERGE_BUSY;
	hyb_meta_copy(ix, &meta);
	merged = meta.merged_entries;
	more = do_step(ix, order);
	hyb_meta_copy(ix, &meta);
	hyb_merge_unlock(ix->rel);
	if (mode == HYB_MERGE_WAIT || mode == HYB_MERGE_TRY)
		HYB_POINT("merge-between");

	if (order->job != NULL)
		order->job->moved += meta.merged_entries - merged;
	if (order->job != NULL && more)
		report_merge_progress(ix, order->job, &meta);
	return more ? HYB_MERGE_MORE : HYB_MERGE_DONE;
}

void
hyb_merge_job_begin(HybMergeJob *job)
{
	memset(job, 0, sizeof(*job));
	job->entry = -1;
}

void
hyb_merge_job_end(HybMergeJob *job)
{
	hyb_progress_end(job->entry);
	job->entry = -1;
	if (job->dead != NULL)
		hyb_dead_memory_free(job->dead);
	job->dead = NULL;
}
