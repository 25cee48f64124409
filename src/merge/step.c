/*
 * step.c
 *		One step of a merge: the next key range of the frozen generation.
 *
 * A step works below one level-1 node of the static stage.  It reads frozen
 * entries above the watermark, writes the leaves that they fall into anew
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
 * (am/vacuum.c).
 */
#include "compat.h"

#include "dynamic/delta.h"
#include "merge/facts.h"
#include "merge/merge.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "page/meta.h"
#include "static/filter_choice.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * Write the new leaves and internal nodes; *root is the new tree.
 */
static HybStepSpace *
write_tree(MergeStep *step, HybPath *path, HybRoot *root)
{
	HybStepSpace *space = palloc(sizeof(HybStepSpace));

	hyb_step_space_init(space, step->ix, step->stamp, step->filter != NULL,
						step->done.nimages + path->height +
						(step->filter != NULL ? step->done.nimages / 3 + 4 : 0));
	HYB_POINT("step-reserved");
	hyb_step_write_leaves(space, &step->children);
	for (int i = 0; i < step->done.nretired; i++)
		hyb_step_retire(space, step->retired[i]);
	hyb_static_replace(space, path, &step->children, root);
	HYB_POINT("step-written");
	return space;
}

/* Count what the leaves and nodes that the step wrote hold. */
static void
count_level(HybLevel *level, const MergeStep *step, const HybStepSpace *space)
{
	level->tids += step->done.new_tids;
	level->tids -= step->done.old_tids;
	level->tombstones -= Min(step->done.old_tombstones, level->tombstones);
	level->leaf_pages += step->done.nimages;
	level->leaf_pages -= step->done.nretired;
	level->inner_pages += space->new_inner;
	level->inner_pages -= space->old_inner;
	level->filter_pages += space->new_filter;
	level->filter_pages -= space->old_filter;
}

/* Add how well entries compress to what other steps of this merge have seen. */
static void
count_recent(HybMetaPage *meta, const MergeStep *step, HybWalSet *set,
			 Buffer metabuf)
{
	int			nkeys = step->ix->desc->nkeys;

	if (HYB_POS_MIN(&step->version.watermark))
		memset(meta->recent, 0, sizeof(meta->recent));
	for (int i = 0; i < nkeys; i++)
	{
		meta->recent[i].keys += step->done.recent[i].keys;
		meta->recent[i].plain += step->done.recent[i].plain;
		meta->recent[i].stored += step->done.recent[i].stored;
	}
	hyb_wal_range(set, metabuf,
				  SizeOfPageHeaderData + offsetof(HybMetaPage, recent),
				  nkeys * sizeof(HybRecent));
}

/*
 * Write what the step has made, and switch the metapage.
 */
static void
install(MergeStep *step, HybPath *path, const HybPos *watermark)
{
	HybIndex   *ix = step->ix;
	HybStepSpace *space = NULL; /* nothing is written */
	HybRoot		root;
	Buffer		metabuf;
	HybMetaPage *meta;
	HybWalSet	set;

	if (step->done.nimages > 0 || step->done.nretired > 0)
		space = write_tree(step, path, &root);
	Assert(step->done.new_tids + step->done.old_tombstones + step->done.dropped ==
		   step->done.old_tids + step->done.merged);

	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	if (space != NULL)
		hyb_step_check_room(space, meta);
	hyb_version_switch_begin(ix, meta, &set);
	if (space != NULL)
	{
		meta->levels[step->level].root = root;
		count_level(&meta->levels[step->level], step, space);
		meta->next_stamp = step->stamp + 1;
		meta->rewriting_tids += step->done.old_tids;
		hyb_step_give_back(space, meta);
	}
	meta->merged_entries += step->done.merged;
	if (ix->dictionaries != NULL)
		count_recent(meta, step, &set, metabuf);
	hyb_wal_meta_pending(&set, metabuf);
	hyb_version_switch_end(ix, metabuf, &set, watermark);
}

/*
 * All frozen entries are in the static stage: the generation becomes the
 * retiring one, whose pages are freed by later steps.
 */
static void
finish_generation(HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	HybWalSet	set;

	hyb_version_switch_begin(ix, meta, &set);
	meta->retiring = meta->frozen;
	hyb_generation_init(&meta->frozen, 0);
	meta->merges++;
	meta->rewritten_tids = meta->rewriting_tids;
	meta->rewriting_tids = 0;
	meta->flags &= ~HYB_META_COMPACTING;
	hyb_version_switch_end(ix, metabuf, &set, NULL);
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

/*
 * Take the entries that the step may merge.  False if there are none, and no
 * leaves left to visit: the generation is done.
 */
static bool
fetch_entries(MergeStep *step, const HybStepSize *size)
{
	const HybPos *watermark = &step->version.watermark;
	HybPos		end = {.tie = HYB_AFTER};
	HybFetch	fetch = {
		.which = HYB_FETCH_FROZEN,
		.lo = watermark,
		.hi = &end,
		.limit = size->entries
	};
	uint64		bytes = 0;

	/* nobody else switches versions, so the fetch cannot fail for good */
	do
	{
		CHECK_FOR_INTERRUPTS();
		hyb_version_capture(step->ix, &step->version);
	} while (!hyb_dynamic_fetch(step->ix, &step->version, &fetch, &step->batch));

	/* bound the new leaves by the bytes that go in */
	while (step->last_entry < step->batch.nitems && bytes < size->bytes)
		bytes += step->batch.items[step->last_entry++].len;
	return (step->batch.nitems > 0 || step->compact) && !HYB_POS_MAX(watermark);
}

/* Where the step begins. */
static HybPos
first_place(const MergeStep *step)
{
	HybPos		start = step->version.watermark;

	if (!step->compact)
		return hyb_step_pos(step, &step->batch.items[0]);

	/* what is at the watermark is done: begin just above it */
	if (start.tie == HYB_AT)
		ItemPointerInc(&start.tid);
	return start;
}

/*
 * The watermark of a step that has rewritten leaves up to a fence; node_done:
 * to the end of its level-1 node.
 */
static HybPos
next_watermark(const MergeStep *step, HybPos fence, bool node_done)
{
	bool		entries_left = step->done.next_entry < step->batch.nitems ||
		!step->batch.complete;

	if (!entries_left &&
		(!step->compact || (node_done && HYB_POS_MAX(&fence))))
	{
		/* the end: nothing of the generation is above this */
		return (HybPos)
		{
			.tie = HYB_AFTER
		};
	}
	if (step->done.next_entry == step->last_entry && entries_left &&
		step->last_entry > 0)
	{
		/* stopped inside a leaf's range, or just at its end */
		return hyb_step_pos(step, &step->batch.items[step->last_entry - 1]);
	}

	/*
	 * Entries at the watermark count as merged, but an entry at the fence
	 * belongs to the next leaf.
	 */
	if (fence.tie == HYB_AT)
		ItemPointerDec(&fence.tid);
	return fence;
}

/*
 * Merge the next range.  Returns false if there was none: the generation is
 * done.
 */
static bool
merge_range(HybIndex *ix, uint64 stamp, bool compact, HybStepSize size)
{
	MergeStep  *step = palloc0(sizeof(MergeStep));
	HybPath    *path = palloc(sizeof(HybPath));
	HybPos		start;
	HybPos		fence;
	HybPos		watermark;
	bool		node_done;

	step->ix = ix;
	step->stamp = stamp;
	step->compact = compact;
	step->max_leaves = size.leaves;
	step->leaf_page = palloc(BLCKSZ);
	step->vals = palloc(ix->desc->natts * sizeof(HybValue));
	step->retired = palloc(HYB_MAX_PENDING * sizeof(BlockNumber));
	if (!fetch_entries(step, &size))
		return false;

	step->level = step->version.nlevels - 1;
	step->filter = hyb_filter_builder_create(ix,
											 hyb_filter_kind_of_level(ix, step->level,
																	  step->version.nlevels));
	start = first_place(step);
	hyb_path_load(ix, &step->version.levels[step->level], &start, path);
	hyb_dead_begin(&step->dead, ix->rel);
	node_done = hyb_step_rewrite(step, path, &fence);
	hyb_dead_end(&step->dead);

	/* damaged separators could have steps go round for ever */
	watermark = next_watermark(step, fence, node_done);
	if (hyb_pos_compare(ix->desc, &watermark, &step->version.watermark) <= 0)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
					  "A merge step would not advance the watermark.");

	install(step, path, &watermark);
	HYB_POINT("step-installed");
	hyb_leaf_close(&step->leaf);
	hyb_space_settle(ix);
	return !HYB_POS_MAX(&watermark);
}

bool
hyb_merge_step(HybIndex *ix)
{
	MemoryContext context;
	MemoryContext old;
	HybMetaPage meta;
	HybMergeFacts facts;

	hyb_meta_copy(ix, &meta);
	hyb_merge_facts_of_meta(ix, &meta, &facts);
	if (meta.npending > 0)
		hyb_space_settle(ix);
	if (meta.retiring.number != 0)
	{
		free_retiring(ix);
		return true;
	}
	if (meta.frozen.number == 0)
		return false;

	context = AllocSetContextCreate(CurrentMemoryContext,
									"hybrid merge step",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	if (!merge_range(ix, meta.next_stamp,
					 (meta.flags & HYB_META_COMPACTING) != 0,
					 hyb_merge_policy->step(&facts)))
	{
		HYB_POINT("merge-finish");
		finish_generation(ix);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return true;
}
