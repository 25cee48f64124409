/*
 * install.c
 *		The end of a step: write its pages, and switch the metapage to them.
 *
 * If entries move from one level to another, one record has the new roots of
 * both, so every version holds each entry in exactly one of them.
 *
 * Predicate locks.  A leaf of the oldest level stands for a range of keys among
 * the server's predicate locks (tree/descend.h).  When a step replaces
 * it, transactions with a lock on the old leaf need locks on all new leaves that
 * overlap its range.  They get them while the metapage is locked exclusively,
 * right before the switch.  A scan locks a leaf only with the metapage locked,
 * in the current version (scan/scan_lock.c), so no lock comes to the old leaf
 * afterwards.  The old leaf keeps its locks: an insertion that is still in the
 * old version asks for that leaf, and finds them.  Keys are compared before the
 * metapage is locked, and only if an old leaf has a lock.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "hot/hot.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "storage/predicate.h"
#include "storage/predicate_internals.h"
#include "store/meta.h"
#include "tree/descend.h"
#include "utils/rel.h"

/* From this share of its places on, the server's lock table is nearly full. */
#define NEARLY_FULL		0.75

/* An index with more than 1 of GOOD_PART locks has a good part of them. */
#define GOOD_PART		16

/* ---- predicate locks ---- */

/* The new leaf that the walk is at. */
typedef struct NewLeaf
{
	const HybRoot *root;
	HybPath    *path;			/* to the level-1 node above it */
	int			child;			/* of that node */
	BlockNumber target;			/* for its predicate locks */
	HybPos		high;			/* its upper fence */
} NewLeaf;

typedef struct Move
{
	BlockNumber from;
	BlockNumber to;
} Move;

typedef struct Moves
{
	Move	   *moves;
	int			n;
	int			alloc;
} Moves;

static BlockNumber
target_of_child(const HybChild *child)
{
	return hyb_target_of_leaf(child->block, child->stamp);
}

static void
set_leaf(NewLeaf *leaf, int child)
{
	Assert(leaf->path->height == 0 ||
		   (child >= 0 && child < leaf->path->nodes[0].children.n));
	leaf->child = child;
	leaf->target = leaf->path->height == 0 ? HYB_TARGET_NO_LEAF :
		target_of_child(&leaf->path->nodes[0].children.children[child]);
	leaf->high = leaf->path->height == 0 ? leaf->path->high :
		hyb_path_upper_fence(leaf->path, child);
}

/* Read the path to the new leaf that a position lies in. */
static void
load_new_leaf(const HybIndex *ix, NewLeaf *leaf, const HybPos *pos)
{
	leaf->path = palloc(sizeof(HybPath));
	hyb_path_load(ix, leaf->root, pos, leaf->path);
	set_leaf(leaf, leaf->path->nodes[0].index);
}

/* Go on to the next leaf. */
static void
next_leaf(const HybIndex *ix, NewLeaf *leaf)
{
	HybPos		high = leaf->high;

	CHECK_FOR_INTERRUPTS();
	if (leaf->child + 1 < leaf->path->nodes[0].children.n)
		set_leaf(leaf, leaf->child + 1);
	else
		load_new_leaf(ix, leaf, &high);
}

static void
add_move(Moves *moves, BlockNumber from, BlockNumber to)
{
	if (moves->n == moves->alloc)
	{
		moves->alloc = Max(2 * moves->alloc, 64);
		moves->moves = hyb_grow(CurrentMemoryContext, moves->moves, moves->alloc,
								sizeof(Move));
	}
	moves->moves[moves->n].from = from;
	moves->moves[moves->n++].to = to;
}

/*
 * The locks of a target go to the new leaves that overlap its range.  `leaf` is
 * at the first of them, or before it.
 */
static void
add_moves(const HybIndex *ix, Moves *moves, BlockNumber from, const HybPos *low,
		  const HybPos *high, NewLeaf *leaf)
{
	while (hyb_pos_compare(ix->desc, &leaf->high, low) <= 0)
		next_leaf(ix, leaf);
	add_move(moves, from, leaf->target);
	while (hyb_pos_compare(ix->desc, &leaf->high, high) < 0)
	{
		next_leaf(ix, leaf);
		add_move(moves, from, leaf->target);
	}
}

/* Find out which locks go where. */
static void
find_moves(const HybIndex *ix, const HybLeafChange *change, Moves *moves)
{
	const HybPath *path = change->path;
	const HybChildList *list = &path->nodes[0].children;
	HybPos		low = {.tie = HYB_BEFORE};
	NewLeaf		leaf = {.root = &change->root};
	int			next = 0;

	if (path->height == 0)
	{
		load_new_leaf(ix, &leaf, &low);
		add_moves(ix, moves, HYB_TARGET_NO_LEAF, &low, &path->high, &leaf);
		return;
	}
	for (int i = 0; i < list->n && next < change->leaves.nretired; i++)
	{
		HybPos		high = hyb_path_upper_fence(path, i);

		if (list->children[i].block != change->retired[next])
			continue;
		if (next++ == 0)
			load_new_leaf(ix, &leaf, &list->children[i].low);
		add_moves(ix, moves, target_of_child(&list->children[i]),
				  &list->children[i].low, &high, &leaf);
	}
	Assert(next == change->leaves.nretired);
}

/* Does a transaction have a lock on an old leaf? */
static bool
is_locked(const HybIndex *ix, const HybLeafChange *change)
{
	const HybChildList *list = &change->path->nodes[0].children;
	int			next = 0;

	if (change->path->height == 0)
		return PageIsPredicateLocked(ix->rel, HYB_TARGET_NO_LEAF);
	for (int i = 0; i < list->n && next < change->leaves.nretired; i++)
	{
		if (list->children[i].block != change->retired[next])
			continue;
		next++;
		if (PageIsPredicateLocked(ix->rel, target_of_child(&list->children[i])))
			return true;
	}
	Assert(next == change->leaves.nretired);
	return false;
}

/*
 * Each merge copies the locks of a long transaction, and the server's lock table
 * has a fixed size.  Is it nearly full, and does this index have a good part of
 * the locks?  Several indexes may fill it together.
 */
static bool
has_too_many(const HybIndex *ix)
{
	PredicateLockData *data = GetPredicateLockStatusData();
	int			n = 0;

	for (int i = 0; i < data->nelements; i++)
		n += GET_PREDICATELOCKTARGETTAG_DB(data->locktags[i]) == MyDatabaseId &&
			GET_PREDICATELOCKTARGETTAG_RELATION(data->locktags[i]) == RelationGetRelid(ix->rel);
	return data->nelements > NEARLY_FULL * max_predicate_locks_per_xact * MaxBackends &&
		n > data->nelements / GOOD_PART;
}

/*
 * If the server has no room for a copy, it replaces the old leaf's locks by one
 * on the index.  To undo half a copy it removes all locks of the new leaf, also
 * those that came from another leaf.  Then all locks that are left go to the
 * table: each transaction still has those on its old leaf.
 */
static void
hand_over_locks(const HybIndex *ix, const Moves *moves)
{
	bool		full = false;

	for (int i = 0; i < moves->n; i++)
	{
		const Move *move = &moves->moves[i];

		/* the target is the same if the index stays without leaves */
		if (move->from == move->to || !PageIsPredicateLocked(ix->rel, move->from))
			continue;
		PredicateLockPageSplit(ix->rel, move->from, move->to);
		full |= !PageIsPredicateLocked(ix->rel, move->from);
	}
	if (full)
		TransferPredicateLocksToHeapRelation(ix->rel);
}

Buffer
hyb_change_lock_meta(HybIndex *ix, const HybLeafChange *change, HybMetaPage **meta)
{
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, meta);
	Moves		moves = {0};

	if (change->level > 0 || change->path == NULL || !is_locked(ix, change))
		return metabuf;
	UnlockReleaseBuffer(metabuf);
	/* safe at any moment: insertions ask for the index before the table */
	if (has_too_many(ix))
		TransferPredicateLocksToHeapRelation(ix->rel);
	find_moves(ix, change, &moves);
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, meta);
	hand_over_locks(ix, &moves);
	return metabuf;
}

/* ---- pages ---- */

void
hyb_change_write(HybLeafChange *change, HybStepSpace *space, bool filters)
{
	int			inner = space->new_inner - space->old_inner;
	int			filter = space->new_filter - space->old_filter;

	/* nodes of newer levels have room for rent and filters in any case */
	space->filters = filters || change->level > 0;
	for (int i = 0; i < change->leaves.nretired; i++)
		hyb_step_retire(space, change->retired[i]);
	hyb_step_write_leaves(space, &change->children);
	hyb_static_replace(space, change->path, &change->children, &change->root);
	change->inner_pages = space->new_inner - space->old_inner - inner;
	change->filter_pages = space->new_filter - space->old_filter - filter;
}

void
hyb_change_count(const HybLeafChange *change, HybMetaPage *meta)
{
	HybLevel   *level = &meta->levels[change->level];
	const HybLeafCounts *leaves = &change->leaves;

	/* what goes was there */
	Assert(change->level < meta->nlevels);
	Assert(leaves->old_tids <= level->tids + leaves->new_tids);
	Assert(leaves->nretired <= level->leaf_pages + leaves->nimages);
	level->root = change->root;
	level->tids += leaves->new_tids;
	level->tids -= leaves->old_tids;
	level->tombstones -= Min(leaves->old_tombstones, level->tombstones);
	level->leaf_pages += leaves->nimages;
	level->leaf_pages -= leaves->nretired;
	level->inner_pages += change->inner_pages;
	level->filter_pages += change->filter_pages;
	hyb_level_assert_valid(level);
}

static HybStepSpace *
write_changes(HybMergeStep *step)
{
	HybStepSpace *space = palloc(sizeof(HybStepSpace));
	bool		filters = step->filter != NULL;
	int			leaves = step->to.leaves.nimages + step->cut.leaves.nimages;
	int			pages = leaves;

	if (step->to.path != NULL)
		pages += step->to.path->height;
	if (step->cut.path != NULL)
		pages += step->cut.path->height;
	if (filters)
		pages += leaves / 3 + 4;
	hyb_step_space_init(space, step->ix, step->stamp, filters, pages);
	HYB_POINT("step-reserved");
	if (step->to.path != NULL)
		hyb_change_write(&step->to, space, filters);
	if (step->cut.path != NULL)
	{
		HYB_POINT("step-cut");
		hyb_change_write(&step->cut, space, filters);
	}
	HYB_POINT("step-written");
	return space;
}

/* ---- the record ---- */

/* Add how well entries compress to the sample of this merge's other steps. */
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
	above = hyb_pos_above(watermark);
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
		const HybFetchedItem *item = &step->batch.items[i];
		HybHotKey	key = hyb_hot_key(hyb_step_entry(step, item), item->keylen);

		hyb_hot_clear(shut, &key);
	}
}

/*
 * Write the record; space is NULL if no pages were written.  Returns false, and
 * changes nothing, if pending[] has no room.
 */
static bool
switch_version(HybMergeStep *step, HybStepSpace *space, const HybPos *watermark)
{
	HybIndex   *ix = step->ix;
	bool		moving = is_moving(step, watermark);
	HybMetaPage *meta;
	Buffer		metabuf = hyb_change_lock_meta(ix, &step->to, &meta);
	HybWalSet	set;

	HYB_POINT("step-switch");
	if (space != NULL && !hyb_step_fits(space, meta))
	{
		UnlockReleaseBuffer(metabuf);
		return false;
	}
	/* the merge lock keeps stamp, generation and pass as they were */
	Assert(meta->next_stamp == step->stamp && step->to.level < meta->nlevels);
	Assert(step->source == HYB_SOURCE_LOG ? meta->frozen.number != 0 :
		   step->source == meta->pass_level);
	hyb_version_switch_begin(ix, meta, &set);
	if (space != NULL)
	{
		if (step->to.path != NULL)
			hyb_change_count(&step->to, meta);
		if (step->cut.path != NULL)
			hyb_change_count(&step->cut, meta);
		meta->next_stamp = step->stamp + 1;
		meta->written_pages += space->nused;
		if ((meta->flags & HYB_META_UNEARNED) == 0)
			meta->earned_pages += space->nused;
		hyb_step_give_back(space, meta);
	}
	if (meta->rewriting_tids != HYB_REWRITTEN_UNKNOWN &&
		(step->source == HYB_SOURCE_LOG || step->source == meta->wanted_levels))
		meta->rewriting_tids += step->to.leaves.old_tids;
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
 * The same for entries of the log: their keys have no hot copies afterwards, and
 * none are published until the version has switched.
 */
static bool
switch_shut(HybMergeStep *step, HybStepSpace *space, const HybPos *watermark)
{
	HybHotShut	shut;
	volatile bool fits = false;

	hyb_hot_shut(step->ix, &shut);
	PG_TRY();
	{
		clear_hot(step, &shut);
		HYB_POINT("hot-cleared");
		fits = switch_version(step, space, watermark);
	}
	PG_FINALLY();
	{
		hyb_hot_open();
	}
	PG_END_TRY();
	return fits;
}

bool
hyb_step_install(HybMergeStep *step, const HybPos *watermark)
{
	const HybLeafCounts *leaves = &step->to.leaves;
	HybStepSpace *space = NULL;

	Assert(leaves->new_tids + leaves->old_tombstones + step->done.dropped ==
		   leaves->old_tids + step->done.merged);
	/* a step that rewrote no leaf leaves the level as it is */
	if (leaves->nimages == 0 && leaves->nretired == 0)
		step->to.path = NULL;
	if (step->to.path != NULL || step->cut.path != NULL)
		space = write_changes(step);
	if (space != NULL && space->full)
		return false;

	/* entries that move between levels keep their hot copies */
	return step->source == HYB_SOURCE_LOG ?
		switch_shut(step, space, watermark) : switch_version(step, space, watermark);
}
