/*
 * move.c
 *		Moving static pages from the end of the file to free blocks.
 *
 * A step is one of a merge that merges nothing: leaves are copied under a stamp
 * of its own, with their tombstones and hints, the path to them is written
 * anew, and the metapage is switched in one record.  So a crash, readers and
 * VACUUM find what they find with merges, and where a merge is under way its
 * watermark stays.
 *
 * Only VACUUM moves pages, after it has set all tombstones that it sets, so
 * none are set on the old leaves meanwhile.
 */
#include "base/compat.h"

#include "filter/filter_choice.h"
#include "merge/hand_over.h"
#include "merge/merge.h"
#include "merge/move.h"
#include "miscadmin.h"
#include "tree/update.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Most leaves that a step moves, whatever merge_step_pages says. */
#define MOVE_MAX_LEAVES		64

/* Free blocks that a step needs beside those of leaves and nodes. */
#define MOVE_SPARE			4

typedef struct MoveStep
{
	HybIndex   *ix;
	BlockNumber cut;
	uint64		stamp;
	int			max_leaves;
	HybFilterBuilder *filter;	/* or NULL: no filters */
	char	   *page;			/* copy of a leaf */
	HybChildList children;		/* of the level-1 node, as they become */
	BlockNumber retired[MOVE_MAX_LEAVES];
	int			nretired;
	int			nfilters;		/* that move, but not their leaves */
} MoveStep;

static inline bool
in_end(const MoveStep *step, BlockNumber block)
{
	return BlockNumberIsValid(block) && block >= step->cut;
}

static void
move_leaf(MoveStep *step, const HybChild *child)
{
	Assert(in_end(step, child->block) && step->nretired < MOVE_MAX_LEAVES);
	hyb_child_copy_leaf(step->ix, child, step->page);
	hyb_page_opaque((Page) step->page)->stamp = step->stamp;
	hyb_child_list_add_image(&step->children, (Page) step->page, &child->low,
							 step->filter);
	step->children.children[step->children.n - 1].rent = child->rent;
	step->retired[step->nretired++] = child->block;
}

/*
 * The leaf stays, and its filter goes to another page: the others of that page
 * go with it (filter_place.c).
 */
static void
move_filter(MoveStep *step, const HybChild *old)
{
	HybChild	child = *old;

	hyb_child_copy_leaf(step->ix, &child, step->page);
	child.filter_block = InvalidBlockNumber;
	child.filter_image = hyb_filter_build(step->filter, step->page,
										  &child.filter_size);
	hyb_child_list_add(&step->children, &child);
	step->nfilters++;
}

/*
 * What the children of the path's level-1 node become.  Returns one past the
 * last one that the step has looked at.
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
		bool		leaf = in_end(step, child->block);
		bool		filter = step->filter != NULL &&
			child->filter_block != filter_block &&
			in_end(step, child->filter_block);

		if (stop == old->n && (leaf || filter) &&
			step->nretired + step->nfilters >= step->max_leaves)
			stop = i;
		if (i < path->nodes[0].index || i >= stop || !(leaf || filter))
		{
			hyb_child_list_add(&step->children, child);
			continue;
		}
		filter_block = child->filter_block;
		if (leaf)
			move_leaf(step, child);
		else
			move_filter(step, child);
	}
	return stop;
}

/*
 * Does a node of the path lie in the end of the file, or a filter page that an
 * index without filters is to lose?
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

/* Write what the step has made, and switch the metapage. */
static void
install_move(MoveStep *step, HybPath *path, int level, const HybPos *watermark)
{
	HybIndex   *ix = step->ix;
	HybStepSpace *space = palloc(sizeof(HybStepSpace));
	int			n = step->nretired + step->nfilters;
	HybRoot		root;
	HybReplacedLeaves replaced = {
		.path = path,
		.retired = step->retired,
		.nretired = step->nretired,
		.root = &root
	};
	HybMetaPage *meta;
	Buffer		metabuf;
	HybWalSet	set;

	hyb_step_space_init(space, ix, step->stamp, step->filter != NULL,
						step->nretired + path->height +
						(step->filter != NULL ? n / 3 : 0));
	/* as a merge step has it (install.c) */
	space->filters |= level > 0;
	hyb_step_write_leaves(space, &step->children);
	for (int i = 0; i < step->nretired; i++)
		hyb_step_retire(space, step->retired[i]);
	hyb_static_replace(space, path, &step->children, &root);
	HYB_POINT("move-written");

	metabuf = level > 0 ? hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta) :
		hyb_meta_lock_to_replace(ix, &replaced, &meta);
	if (!hyb_step_fits(space, meta))
		hyb_step_no_room(ix);
	Assert(meta->next_stamp == step->stamp && level < meta->nlevels);
	hyb_version_switch_begin(ix, meta, &set);
	meta->levels[level].root = root;
	meta->levels[level].inner_pages += space->new_inner;
	meta->levels[level].inner_pages -= space->old_inner;
	meta->levels[level].filter_pages += space->new_filter;
	meta->levels[level].filter_pages -= space->old_filter;
	meta->next_stamp = step->stamp + 1;
	hyb_step_give_back(space, meta);
	hyb_wal_meta_pending(&set, metabuf);
	hyb_version_switch_end(ix, metabuf, &set, watermark);
	HYB_POINT("move-installed");
	hyb_space_settle(ix);
}

/*
 * One step in the level at hand; false after its last leaf.
 */
static bool
move_level_range(MoveStep *step, HybMove *move, const HybVersion *version)
{
	const HybRoot *root = &version->levels[move->level];
	HybPath    *path = palloc(sizeof(HybPath));
	HybPos		high;
	int			stop;

	/* what was in levels that are no more has moved on to the one before */
	if (move->level >= version->nlevels)
		return false;
	step->filter = hyb_filter_builder_create(step->ix,
											 hyb_filter_kind_of_level(step->ix, move->level,
																	  version->nlevels));
	hyb_path_load(step->ix, root, &move->at, path);
	if (path->height == 0)
		return false;
	stop = move_children(step, path);
	high = hyb_path_upper_fence(path, stop - 1);
	hyb_path_go_on(step->ix, path, &high, &move->at, &move->at_key);

	if (step->nretired + step->nfilters > 0 || path_in_end(step, path))
		install_move(step, path, move->level, &version->watermark);
	move->moved += step->nretired;
	return !HYB_POS_MAX(&move->at);
}

/* Leaves that a step may move, as many as the free list surely has room for. */
static int
leaves_of_step(const HybMetaPage *meta)
{
	int			height = (int) hyb_meta_static(meta).root.height;
	int			room = ((int) Min(meta->free_blocks, 4 * MOVE_MAX_LEAVES) -
						height - MOVE_SPARE) / 2;

	return Min(room, Min(hyb_merge_step_pages, MOVE_MAX_LEAVES));
}

bool
hyb_move_step(HybIndex *ix, HybMove *move)
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
