/*
 * move.c
 *		Moving static pages from the end of the file to free blocks.
 *
 * A step here is a merge step that merges nothing.  It copies the next leaves of
 * a level-1 node, with tombstones and hints, under a stamp of its own.  It takes
 * the nodes and filter pages on the way along, writes the path anew and switches
 * the metapage in one record.  So crashes, readers and VACUUM find what they
 * find with merges.  The watermark of a merge under way stays.
 *
 * Levels are done from the newest to the oldest.  Only VACUUM, or a worker that
 * keeps VACUUM away, moves pages.  VACUUM has set its tombstones by then, so
 * none are set on the old leaves meanwhile.
 */
#include "base/compat.h"

#include "filter/filter_choice.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Most leaves that a step moves, whatever merge_step_pages says. */
#define MOVE_MAX_LEAVES		64

/* Free blocks that a step needs besides those of leaves and nodes. */
#define MOVE_SPARE			4

typedef struct MoveStep
{
	HybIndex   *ix;
	BlockNumber cut;
	uint64		stamp;
	int			max_leaves;
	HybFilterBuilder *filter;	/* NULL: no filters */
	char	   *page;			/* copy of a leaf */
	HybLeafChange change;
	BlockNumber retired[MOVE_MAX_LEAVES];
} MoveStep;

static inline bool
in_end(const MoveStep *step, BlockNumber block)
{
	return BlockNumberIsValid(block) && block >= step->cut;
}

static void
move_leaf(MoveStep *step, const HybChild *child)
{
	Assert(step->change.leaves.nretired < MOVE_MAX_LEAVES);
	hyb_child_copy_leaf(step->ix, child, step->page);
	hyb_page_opaque((Page) step->page)->stamp = step->stamp;
	hyb_child_list_add_image(&step->change.children, (Page) step->page, &child->low,
							 step->filter);
	step->change.children.children[step->change.children.n - 1].rent = child->rent;
	step->retired[step->change.leaves.nretired++] = child->block;
}

/*
 * Make the new children of the path's level-1 node.  Returns one past the last
 * one that the step has looked at.  A filter page in the end goes if one of its
 * leaves moves: the filters of others get another page then (filter_place.c).
 */
static int
move_children(MoveStep *step, const HybPath *path)
{
	const HybChildList *old = &path->nodes[0].children;
	BlockNumber filter_block = InvalidBlockNumber;
	int			stop = old->n;

	for (int i = 0; i < old->n; i++)
	{
		const HybChild *child = &old->children[i];
		bool		moves = in_end(step, child->block) ||
			(step->filter != NULL && child->filter_block != filter_block &&
			 in_end(step, child->filter_block));

		if (stop == old->n && moves &&
			step->change.leaves.nretired >= step->max_leaves)
			stop = i;
		if (i < path->nodes[0].index || i >= stop || !moves)
		{
			hyb_child_list_add(&step->change.children, child);
			continue;
		}
		filter_block = child->filter_block;
		move_leaf(step, child);
	}
	return stop;
}

/*
 * Does a node of the path lie in the end of the file?  Or a filter page that the
 * index, now without filters, loses?
 */
static bool
path_in_end(const MoveStep *step, const HybPath *path)
{
	const HybChildList *list = &path->nodes[0].children;
	bool		found = false;

	for (int level = 1; level < path->height; level++)
		found |= in_end(step, path->nodes[level - 1].block);
	for (int i = 0; i < list->n && step->filter == NULL; i++)
		found |= in_end(step, list->children[i].filter_block);
	return found;
}

/*
 * Write the pages, and switch the metapage.  Returns false, with the version
 * unchanged, if pending[] has no room for the step's blocks.
 */
static bool
install_move(MoveStep *step, const HybPos *watermark)
{
	HybIndex   *ix = step->ix;
	HybLeafChange *change = &step->change;
	HybStepSpace *space = palloc(sizeof(HybStepSpace));
	int			nleaves = change->leaves.nretired;
	HybMetaPage *meta;
	Buffer		metabuf;
	HybWalSet	set;

	hyb_step_space_init(space, ix, step->stamp, step->filter != NULL,
						nleaves + change->path->height +
						(step->filter != NULL ? nleaves / 3 : 0));
	change->leaves.nimages = nleaves;
	hyb_change_write(change, space, step->filter != NULL);
	HYB_POINT("move-written");
	if (space->full)
		return false;

	metabuf = hyb_change_lock_meta(ix, change, &meta);
	if (!hyb_step_fits(space, meta))
	{
		UnlockReleaseBuffer(metabuf);
		return false;
	}
	Assert(meta->next_stamp == step->stamp);
	hyb_version_switch_begin(ix, meta, &set);
	hyb_change_count(change, meta);
	meta->next_stamp = step->stamp + 1;
	hyb_step_give_back(space, meta);
	hyb_wal_meta_pending(&set, metabuf);
	hyb_version_switch_end(ix, metabuf, &set, watermark);
	HYB_POINT("move-installed");
	return true;
}

/*
 * One step in the level; false after its last leaf.  A step that does not fit is the
 * last one of all.
 */
static bool
move_level_range(MoveStep *step, HybMove *move, const HybVersion *version)
{
	const HybRoot *root = &version->levels[move->level];
	HybPath    *path = palloc(sizeof(HybPath));
	HybPos		high;
	int			stop;

	/* a level that is gone has moved its entries to the one before it */
	if (move->level >= version->nlevels)
		return false;
	step->filter = hyb_filter_builder_create(step->ix,
											 hyb_filter_kind_of_level(step->ix, move->level,
																	  version->nlevels));
	hyb_path_load(step->ix, root, &move->at, path);
	if (path->height == 0)
		return false;
	step->change.level = move->level;
	step->change.path = path;
	step->change.retired = step->retired;
	stop = move_children(step, path);
	high = hyb_path_upper_fence(path, stop - 1);
	hyb_path_go_on(step->ix, path, &high, &move->at, &move->at_key);

	if ((step->change.leaves.nretired > 0 || path_in_end(step, path)) &&
		!install_move(step, &version->watermark))
	{
		move->level = 0;
		return false;
	}
	move->moved += step->change.leaves.nretired;
	return !HYB_POS_MAX(&move->at);
}

/* Leaves that a step may move: the free list has room for them in any case. */
static int
leaves_of_step(const HybMetaPage *meta)
{
	int			height = (int) hyb_meta_static(meta).root.height;
	int			room = ((int) Min(meta->free_blocks, 4 * MOVE_MAX_LEAVES) -
						height - MOVE_SPARE) / 2;

	return Min(room, Min(hyb_merge_step_pages, MOVE_MAX_LEAVES));
}

bool
hyb_move_leaves(HybIndex *ix, HybMove *move)
{
	MemoryContext context;
	MemoryContext old;
	HybMetaPage meta;
	HybVersion *version;
	MoveStep   *step;
	bool		more;

	hyb_space_settle(ix);
	hyb_meta_copy(ix, &meta);
	if (!hyb_meta_cuts(&meta, move->cut) || meta.cut != move->cut ||
		leaves_of_step(&meta) <= 0)
		return false;

	if (!move->begun)
	{
		HybPos		start = {.tie = HYB_BEFORE};

		hyb_buf_reserve(&move->at_key, HYB_MAX_ENTRY_SIZE);
		hyb_pos_copy(&move->at, &move->at_key, &start);
		move->level = meta.nlevels - 1;
		move->begun = true;
	}
	context = AllocSetContextCreate(CurrentMemoryContext, "hybrid move step",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	version = palloc(sizeof(HybVersion));
	step = palloc0(sizeof(MoveStep));
	step->ix = ix;
	step->cut = move->cut;
	step->stamp = meta.next_stamp;
	step->max_leaves = leaves_of_step(&meta);
	step->page = palloc(BLCKSZ);
	hyb_version_capture(ix, version);
	more = move_level_range(step, move, version);
	hyb_space_settle(ix);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);

	if (!more && move->level > 0)
	{
		HybPos		start = {.tie = HYB_BEFORE};

		hyb_pos_copy(&move->at, &move->at_key, &start);
		move->level--;
		more = true;
	}
	return more;
}
