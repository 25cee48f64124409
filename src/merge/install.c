/*
 * install.c
 *		The end of a merge step: its pages are written, and the metapage is
 *		switched to them.
 *
 * Where entries move from one level to another, both levels' new roots are in
 * one record, so each entry is in exactly one of them in every version.
 */
#include "base/compat.h"

#include "hot/hot.h"
#include "merge/hand_over.h"
#include "merge/step.h"
#include "store/meta.h"
#include "utils/rel.h"

/* A level's new tree. */
typedef struct NewTree
{
	HybRoot		root;
	const HybPath *path;		/* to the leaves that it replaces */
	int64		inner_pages;	/* more than before */
	int64		filter_pages;
} NewTree;

/*
 * Write the new leaves of a list, and the internal nodes above them.  Nodes of
 * newer levels have room for rent and filters in any case.
 */
static void
write_tree(HybMergeStep *step, HybStepSpace *space, HybPath *path,
		   HybChildList *children, int level, NewTree *tree)
{
	int			inner = space->new_inner - space->old_inner;
	int			filter = space->new_filter - space->old_filter;

	space->filters = step->filter != NULL || level > 0;
	hyb_step_write_leaves(space, children);
	hyb_static_replace(space, path, children, &tree->root);
	tree->path = path;
	tree->inner_pages = space->new_inner - space->old_inner - inner;
	tree->filter_pages = space->new_filter - space->old_filter - filter;
}

/* Has the step rewritten anything in the level that entries go to? */
static inline bool
has_written(const HybMergeStep *step)
{
	return step->done.leaves.nimages > 0 || step->done.leaves.nretired > 0;
}

static HybStepSpace *
write_trees(HybMergeStep *step, HybPath *path, NewTree *to, NewTree *from)
{
	HybStepSpace *space = palloc(sizeof(HybStepSpace));
	HybLeafRemainder *cut = step->cut;
	int			leaves = step->done.leaves.nimages;
	int			pages = 0;

	if (has_written(step))
		pages += path->height;
	if (cut != NULL)
	{
		leaves += cut->leaves.nimages;
		pages += cut->path->height;
	}
	hyb_step_space_init(space, step->ix, step->stamp, step->filter != NULL,
						leaves + pages +
						(step->filter != NULL ? leaves / 3 + 4 : 0));
	HYB_POINT("step-reserved");
	for (int i = 0; i < step->done.leaves.nretired; i++)
		hyb_step_retire(space, step->retired[i]);
	if (has_written(step))
		write_tree(step, space, path, &step->children, step->level, to);
	if (cut != NULL)
	{
		HYB_POINT("step-cut");
		for (int i = 0; i < cut->leaves.nretired; i++)
			hyb_step_retire(space, cut->retired[i]);
		write_tree(step, space, cut->path, &cut->children, step->source, from);
	}
	HYB_POINT("step-written");
	return space;
}

/* Count what the leaves and nodes that were written hold. */
static void
count_level(HybLevel *level, const HybLeafChange *leaves, const NewTree *tree)
{
	/* what goes was there */
	Assert(leaves->old_tids <= level->tids + leaves->new_tids);
	Assert(leaves->nretired <= level->leaf_pages + leaves->nimages);
	level->root = tree->root;
	level->tids += leaves->new_tids;
	level->tids -= leaves->old_tids;
	level->tombstones -= Min(leaves->old_tombstones, level->tombstones);
	level->leaf_pages += leaves->nimages;
	level->leaf_pages -= leaves->nretired;
	level->inner_pages += tree->inner_pages;
	level->filter_pages += tree->filter_pages;
	hyb_level_assert_valid(level);
}

/* Add how well entries compress to what other steps of this merge have seen. */
static void
note_recent(HybMetaPage *meta, const HybMergeStep *step, HybWalSet *set,
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

/* Does a step of a pass stop within a unit?  Compares keys. */
static bool
is_moving(const HybMergeStep *step, const HybPos *watermark)
{
	HybPos		above;

	if (step->source == HYB_SOURCE_LOG)
		return false;
	above = hyb_step_above(watermark);
	return hyb_pos_compare(step->ix->desc, &above, &step->unit_high) < 0;
}

/* Clear the hot copies of the keys that the step has merged. */
static void
clear_hot(const HybMergeStep *step, const HybHotShut *shut)
{
	if (shut->table == NULL)
		return;
	for (int i = 0; i < step->done.next_entry; i++)
	{
		const HybDynItem *item = &step->batch.items[i];
		HybHotKey	key = hyb_hot_key(hyb_step_entry(step, item), item->keylen);

		hyb_hot_clear(shut, &key);
	}
}

/* Lock the metapage; predicate locks go to the new leaves of the oldest level. */
static Buffer
lock_meta(const HybMergeStep *step, const NewTree *to, HybMetaPage **meta)
{
	HybReplacedLeaves replaced = {
		.path = to->path,
		.retired = step->retired,
		.nretired = step->done.leaves.nretired,
		.root = &to->root
	};

	if (step->level > 0 || !has_written(step))
		return hyb_meta_lock(step->ix, BUFFER_LOCK_EXCLUSIVE, meta);
	return hyb_meta_lock_to_replace(step->ix, &replaced, meta);
}

/* Write the record; space is NULL if no pages were written. */
static bool
switch_version(HybMergeStep *step, HybStepSpace *space, const NewTree *to,
			   const NewTree *from, const HybPos *watermark)
{
	HybIndex   *ix = step->ix;
	bool		moving = is_moving(step, watermark);
	HybMetaPage *meta;
	Buffer		metabuf = lock_meta(step, to, &meta);
	HybWalSet	set;

	HYB_POINT("step-switch");
	if (space != NULL && !hyb_step_fits(space, meta))
	{
		UnlockReleaseBuffer(metabuf);
		return false;
	}
	/* nobody else takes a stamp, and nobody else ends a generation or a pass */
	Assert(meta->next_stamp == step->stamp && step->level < meta->nlevels);
	Assert(step->source == HYB_SOURCE_LOG ? meta->frozen.number != 0 :
		   step->source == meta->pass_level);
	hyb_version_switch_begin(ix, meta, &set);
	if (space != NULL)
	{
		if (has_written(step))
			count_level(&meta->levels[step->level], &step->done.leaves, to);
		if (step->cut != NULL)
			count_level(&meta->levels[step->source], &step->cut->leaves, from);
		meta->next_stamp = step->stamp + 1;
		meta->written_pages += space->nused;
		if ((meta->flags & HYB_META_UNEARNED) == 0)
			meta->earned_pages += space->nused;
		hyb_step_give_back(space, meta);
	}
	if (meta->rewriting_tids != HYB_REWRITTEN_UNKNOWN &&
		(step->source == HYB_SOURCE_LOG || step->source == meta->wanted_levels))
		meta->rewriting_tids += step->done.leaves.old_tids;
	if (step->source == HYB_SOURCE_LOG)
	{
		meta->merged_entries += step->done.merged;
		if (ix->dictionaries != NULL)
			note_recent(meta, step, &set, metabuf);
	}
	else
	{
		meta->moved_entries += step->done.merged;
		if (moving)
			meta->flags |= HYB_META_MOVING;
		else
			meta->flags &= ~HYB_META_MOVING;
	}
	hyb_wal_meta_pending(&set, metabuf);
	hyb_version_switch_end(ix, metabuf, &set, watermark);
	return true;
}

/*
 * The same with no hot copies left of the keys that come to the level, and none
 * published until the version is another one.
 */
static bool
switch_shut(HybMergeStep *step, HybStepSpace *space, const NewTree *to,
			const NewTree *from, const HybPos *watermark)
{
	HybHotShut	shut;
	volatile bool fits = false;

	hyb_hot_shut(step->ix, &shut);
	PG_TRY();
	{
		clear_hot(step, &shut);
		HYB_POINT("hot-cleared");
		fits = switch_version(step, space, to, from, watermark);
	}
	PG_FINALLY();
	{
		hyb_hot_open();
	}
	PG_END_TRY();
	return fits;
}

bool
hyb_step_install(HybMergeStep *step, HybPath *path, const HybPos *watermark)
{
	HybStepSpace *space = NULL;
	NewTree		to = {0};
	NewTree		from = {0};

	if (has_written(step) || step->cut != NULL)
		space = write_trees(step, path, &to, &from);
	Assert(step->done.leaves.new_tids + step->done.leaves.old_tombstones + step->done.dropped ==
		   step->done.leaves.old_tids + step->done.merged);

	/* what moves from level to level stays what the levels hold */
	if (step->source == HYB_SOURCE_LOG)
		return switch_shut(step, space, &to, &from, watermark);
	return switch_version(step, space, &to, &from, watermark);
}
