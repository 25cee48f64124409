/*
 * pass.c
 *		Moving entries from one static level to the one before it.
 *
 * After each merge of a generation a pass goes over the newest level, then one
 * over the level before that, and so on: over all key ranges that lie below one
 * level-1 node of the older level (units), and moves the entries of those that
 * the policy says.  The metapage's watermark is where the pass has got to; what
 * tells whether a unit moves is in the pages of the newer level, so nothing is
 * lost by a crash, or by a pass that skips a unit.
 *
 * Which rule says that a unit moves: ski rental.  Each leaf of a newer level
 * pays rent, kept in its parent's entry for it: what merges have rewritten of
 * its entries since they came there.  See policy.c.
 */
#include "base/compat.h"

#include "merge/facts.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "store/meta.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Leaves of the newer level that a step looks at, at most, to find a unit. */
#define PASS_MAX_LOOKED		256

/* Leaves of the newer level that a step empties at most. */
#define PASS_MAX_SOURCE		48

/* The next entry that is to move or to stay: an item of a leaf of the newer level. */
typedef struct PassReader
{
	HybPath    *path;
	int			child;			/* of its level-1 node: the leaf */
	HybPos		high;			/* the leaf's upper fence */
	HybLeaf		leaf;
	int			item;
	bool		ended;			/* there is no entry any more */
	HybBuf		key;			/* of the position that it was sought at */
	MemoryContext context;		/* of the path */
} PassReader;

typedef struct Pass
{
	HybMergeStep *step;
	HybPos		at;				/* entries up to here are done with */
	HybBuf		at_key;
	PassReader	source;
	HybPath    *unit;			/* path to the node of the older level that
								 * the next unit lies below */
	int			looked;			/* leaves of the newer level */
	uint64		known;			/* leaves with lower stamps were looked at by
								 * a pass before */
	MemoryContext context;		/* of the unit */
} Pass;

/* Open the leaf that the source is at. */
static void
open_pass_leaf(Pass *pass)
{
	HybMergeStep *step = pass->step;
	PassReader *source = &pass->source;
	const HybChild *child = &source->path->nodes[0].children.children[source->child];

	CHECK_FOR_INTERRUPTS();
	hyb_child_copy_leaf(step->ix, child, step->leaf_page);
	hyb_leaf_open(&source->leaf, step->ix->desc, step->leaf_page, step->ix->rel,
				  child->block);
	source->high = hyb_path_upper_fence(source->path, source->child);
	source->item = 0;
	pass->looked++;
}

/* Go to the leaf that holds what is just above a position, but do not read it. */
static void
load_source(Pass *pass, const HybPos *above)
{
	PassReader *source = &pass->source;
	HybPos		at;
	MemoryContext old;

	hyb_pos_copy(&at, &source->key, above);
	MemoryContextReset(source->context);
	old = MemoryContextSwitchTo(source->context);
	source->path = palloc(sizeof(HybPath));
	hyb_path_load(pass->step->ix, &pass->step->version.levels[pass->step->source],
				  &at, source->path);
	MemoryContextSwitchTo(old);
	source->child = source->path->nodes[0].index;
}

static void
load_older_leaf(Pass *pass, const HybPos *above)
{
	load_source(pass, above);
	open_pass_leaf(pass);
}

/* At the end of a leaf the next entry is one of the next leaf that has any. */
static void
leave_empty(Pass *pass)
{
	PassReader *source = &pass->source;

	while (source->item >= source->leaf.nitems && !source->ended)
	{
		if (HYB_POS_MAX(&source->high))
			source->ended = true;
		else if (source->child + 1 < source->path->nodes[0].children.n)
		{
			source->child++;
			open_pass_leaf(pass);
		}
		else
			load_older_leaf(pass, &source->high);
	}
}

static void
seek_entry(Pass *pass, const HybPos *above)
{
	int			row;

	load_older_leaf(pass, above);
	pass->source.item = hyb_leaf_search(&pass->source.leaf, above, &row);
	leave_empty(pass);
}

/* All up to the next entry is done with: to the end, if there is none. */
static void
go_to_entry(Pass *pass)
{
	const HybKeyDesc *desc = pass->step->ix->desc;
	PassReader *source = &pass->source;
	ItemPointerData tid;
	HybPos		pos = {.tie = HYB_AFTER};

	if (!source->ended)
	{
		int			row = hyb_leaf_row_of_item(&source->leaf, source->item);

		source->key.len = 0;
		hyb_key_join(desc, hyb_leaf_row(&source->leaf, row), desc->nkeys,
					 &source->key);
		hyb_leaf_tids(&source->leaf, source->item, 1, &tid);
		pos = hyb_pos_at(desc, source->key.data, source->key.len, tid);
		pos = hyb_step_below(&pos);
	}
	hyb_pos_copy(&pass->at, &pass->at_key, &pos);
}

/*
 * Was the leaf that the source is at looked at by a whole pass?  Then its rent
 * is what it was, and so is what the policy says of a unit that has only such
 * leaves.
 */
static inline bool
leaf_is_known(const Pass *pass)
{
	const PassReader *source = &pass->source;

	return source->path->nodes[0].children.children[source->child].stamp < pass->known;
}

/* The lower fence of a path's level-1 node. */
static HybPos
low_fence(const HybPath *path)
{
	HybPos		low = {.tie = HYB_BEFORE};

	for (int i = 1; i < path->height - 1; i++)
		if (path->nodes[i].index > 0)
			return path->nodes[i].children.children[path->nodes[i].index].low;
	return low;
}

/*
 * Go on with the unit of the next leaf that is not known.  Pages read are
 * internal nodes; if they are too many for a step, pass->at is where to go on.
 */
static void
skip_known(Pass *pass)
{
	const HybKeyDesc *desc = pass->step->ix->desc;
	PassReader *source = &pass->source;
	HybPos		above = hyb_step_above(&pass->at);
	HybPos		low;
	MemoryContext old;

	do
	{
		const HybChildList *list = &source->path->nodes[0].children;

		CHECK_FOR_INTERRUPTS();
		if (source->child + 1 < list->n)
			low = list->children[++source->child].low;
		else if (HYB_POS_MAX(&source->path->high))
		{
			source->ended = true;
			go_to_entry(pass);
			return;
		}
		else
		{
			low = source->path->high;
			if (++pass->looked >= PASS_MAX_LOOKED)
			{
				low = hyb_step_below(&low);
				hyb_pos_copy(&pass->at, &pass->at_key, &low);
				return;
			}
			load_source(pass, &low);
		}
	} while (leaf_is_known(pass));

	/* what is known of the unit counts as well */
	if (source->child > 0)
		low = source->path->nodes[0].children.children[source->child].low;
	else
		low = low_fence(source->path);
	MemoryContextReset(pass->context);
	old = MemoryContextSwitchTo(pass->context);
	pass->unit = palloc(sizeof(HybPath));
	hyb_path_load(pass->step->ix, &pass->step->version.levels[pass->step->level],
				  &low, pass->unit);
	MemoryContextSwitchTo(old);
	low = low_fence(pass->unit);
	seek_entry(pass, hyb_pos_compare(desc, &low, &above) > 0 ? &low : &above);
	go_to_entry(pass);
}

/*
 * What of a leaf lies in a unit: items [from, to).  Those leaves
 * of the older level are counted that they fall into, but for *last, which was
 * counted before.
 */
static int
count_price(HybLeaf *leaf, const HybChildList *leaves, int from, int to,
			int *last)
{
	int			price = 0;
	int			i = Max(*last, 0);
	int			row;

	while (from < to)
	{
		int			end = to;

		while (i + 1 < leaves->n &&
			   (end = hyb_leaf_search(leaf, &leaves->children[i + 1].low, &row)) <= from)
		{
			i++;
			end = to;
		}
		price += i != *last;
		*last = i;
		from = Min(end, to);
	}
	return price;
}

/*
 * Look at the entries in the unit, from the source's on; that is the first one
 * behind the unit then.
 */
static void
survey_unit(Pass *pass, HybUnitFacts *facts)
{
	PassReader *source = &pass->source;
	const HybPathNode *node = &pass->unit->nodes[0];
	double		most = node->children.n + 2 * HYB_MAX_HEIGHT;
	int			last = -1;
	bool		more = true;

	memset(facts, 0, sizeof(*facts));
	facts->path = pass->unit->height + source->path->height;
	while (more && !source->ended)
	{
		HybLeaf    *leaf = &source->leaf;
		const HybChild *child = &source->path->nodes[0].children.children[source->child];
		int			row;
		int			to = hyb_leaf_search(leaf, &pass->unit->high, &row);
		double		part = (double) Max(to - source->item, 0) / Max(leaf->nitems, 1);

		facts->content += part * hyb_leaf_fill(pass->step->leaf_page);
		facts->rent += part * child->rent / HYB_RENT_UNIT;
		if (last < 0 && to <= source->item)
			hyb_corrupted(pass->step->ix->rel, child->block,
						  "An entry of a leaf does not lie where it is sought.");
		facts->price += count_price(leaf, &node->children, source->item, to, &last);
		source->item = Max(source->item, to);
		more = source->item == leaf->nitems;

		/* whatever the price turns out to be */
		if (facts->rent >= most || facts->content >= most)
		{
			facts->price = node->children.n;
			seek_entry(pass, &pass->unit->high);
			more = false;
		}
		leave_empty(pass);
	}
}

/*
 * Load the unit above pass->at.  Is it to be moved?
 */
static bool
load_unit(Pass *pass, bool ask)
{
	MemoryContext old;
	HybPos		above = hyb_step_above(&pass->at);
	HybUnitFacts facts;
	bool		chosen = true;

	MemoryContextReset(pass->context);
	old = MemoryContextSwitchTo(pass->context);
	pass->unit = palloc(sizeof(HybPath));
	hyb_path_load(pass->step->ix, &pass->step->version.levels[pass->step->level],
				  &above, pass->unit);
	MemoryContextSwitchTo(old);
	if (ask)
	{
		survey_unit(pass, &facts);
		chosen = hyb_policy_move(&facts);
	}
	return chosen;
}

/*
 * Find the next unit to move above pass->at, and load it.  False if there is
 * none, or if enough was looked at: pass->at is where to go on then.  Units
 * without entries in the newer level are not looked at, but by a visit of all
 * leaves.
 */
static bool
next_unit(Pass *pass, const HybMetaPage *meta)
{
	HybMergeStep *step = pass->step;
	bool		all = meta->pass_level >= meta->wanted_levels;
	HybPos		above = hyb_step_above(&pass->at);

	pass->known = meta->surveyed[meta->pass_level];

	pass->source.ended = step->version.levels[step->source].height == 0 ||
		HYB_POS_MAX(&pass->at);
	if (step->compact ? !HYB_POS_MAX(&pass->at) :
		(meta->flags & HYB_META_MOVING) != 0 && !pass->source.ended)
		return load_unit(pass, false);

	if (!pass->source.ended)
		seek_entry(pass, &above);
	go_to_entry(pass);
	while (pass->looked < PASS_MAX_LOOKED && !pass->source.ended)
	{
		if (!all && leaf_is_known(pass))
		{
			skip_known(pass);
			if (pass->looked >= PASS_MAX_LOOKED || pass->source.ended)
				break;
		}
		if (load_unit(pass, !all))
			return true;
		go_to_entry(pass);
	}
	return false;
}

/*
 * Load the path to what moves, and say where the step ends: at the end of the
 * unit, or where it would go beyond what one level-1 node of the newer level
 * has, or some of its leaves.
 */
static HybPos
step_end(Pass *pass)
{
	HybMergeStep *step = pass->step;
	HybPos		end = pass->unit->high;
	HybPos		above = hyb_step_above(&pass->at);
	HybPath    *path = step->source_path = palloc(sizeof(HybPath));
	HybPos		source_end;
	int			i;

	hyb_path_load(step->ix, &step->version.levels[step->source], &above, path);
	if (path->height == 0)
		return end;
	i = path->nodes[0].index + Max(PASS_MAX_SOURCE >> step->halvings, 1);
	source_end = hyb_path_upper_fence(path, Min(i, path->nodes[0].children.n) - 1);
	return hyb_pos_compare(step->ix->desc, &source_end, &end) < 0 ? source_end : end;
}

/* Damaged separators could have the steps of a pass go round for ever. */
static void
check_progress(const HybMergeStep *step, const HybPos *from, const HybPos *to)
{
	if (!HYB_POS_MAX(to) && hyb_pos_compare(step->ix->desc, to, from) <= 0)
		hyb_corrupted(step->ix->rel, HYB_METAPAGE_BLKNO,
					  "A pass over levels would not advance the watermark.");
}

/* A level without a tree has nothing else either. */
static void
check_empty(const HybIndex *ix, const HybLevel *level)
{
	if (level->tids != 0 || level->leaf_pages != 0 ||
		level->inner_pages != 0 || level->filter_pages != 0)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
					  "The newest level is empty, but the metapage counts entries or pages of it.");
}

/*
 * Nothing was moved, but the pass has gone on; `unit_done`: beyond the unit that
 * was being moved.  Behind its end the next pass begins, if there is one.
 */
static void
advance_watermark(HybIndex *ix, const HybPos *at, bool unit_done)
{
	HybPos		minus_infinity = {.tie = HYB_BEFORE};
	HybMetaPage *meta;
	Buffer		metabuf;
	HybWalSet	set;
	bool		drop;

	HYB_POINT("pass-advance");
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	drop = HYB_POS_MAX(at) && meta->pass_level + 1 == meta->nlevels &&
		meta->nlevels > meta->wanted_levels &&
		hyb_meta_newest(meta)->root.height == 0;
	if (drop)
		check_empty(ix, hyb_meta_newest(meta));
	Assert(meta->pass_level > 0 && meta->pass_level < meta->nlevels);
	Assert(meta->frozen.number == 0);
	hyb_version_switch_begin(ix, meta, &set);
	if (unit_done)
		meta->flags &= ~HYB_META_MOVING;
	if (HYB_POS_MAX(at))
	{
		if (drop)
		{
			meta->nlevels--;
			/* the leaves that merges go to are those of another level now */
			meta->rewritten_tids = meta->rewriting_tids;
		}
		meta->surveyed[meta->pass_level] = meta->pass_stamp;
		meta->pass_stamp = meta->next_stamp;
		hyb_wal_meta_field(&set, metabuf, pass_stamp);
		hyb_wal_meta_field(&set, metabuf, surveyed);
		meta->pass_level--;
		if (meta->pass_level == 0)
		{
			meta->flags &= ~(HYB_META_COMPACTING | HYB_META_QUIET | HYB_META_UNEARNED);
			meta->rewriting_tids = 0;
			if (meta->nlevels == 1)
				meta->earned_pages = 0;
		}
		at = &minus_infinity;
	}
	hyb_version_switch_end(ix, metabuf, &set, at);
}

/*
 * There is nothing live in the range of a step.  Tombstones go, so that a level
 * of which everything is to move becomes empty.
 */
static bool
pass_by(HybMergeStep *step)
{
	HybPos		below = hyb_step_below(&step->end);
	bool		fits = true;

	check_progress(step, &step->from, &below);
	hyb_step_cut(step, &below, 0);
	if (step->cut != NULL)
		fits = hyb_step_install(step, NULL, &below);
	else
		advance_watermark(step->ix, &below,
						  hyb_pos_compare(step->ix->desc, &step->end, &step->unit_high) >= 0);
	hyb_leaf_close(&step->leaf);
	hyb_space_settle(step->ix);
	return fits;
}

bool
hyb_pass_step(HybIndex *ix, const HybMetaPage *meta, const HybMergeFacts *facts,
			  int halvings)
{
	Pass		pass = {0};
	HybMergeStep *step = hyb_step_create(ix, meta, halvings);
	HybMergeFacts at_level = *facts;
	HybStepSize size;
	HybPos		watermark;
	bool		found;

	Assert(meta->frozen.number == 0 && meta->pass_level > 0 && meta->pass_level < meta->nlevels);
	step->source = meta->pass_level;
	step->level = meta->pass_level - 1;
	step->compact &= meta->pass_level == meta->wanted_levels;
	hyb_version_capture(ix, &step->version);
	pass.step = step;
	pass.at = step->version.watermark;
	hyb_buf_reserve(&pass.at_key, HYB_MAX_ENTRY_SIZE);
	pass.context = AllocSetContextCreate(CurrentMemoryContext,
										 "hybrid pass", ALLOCSET_DEFAULT_SIZES);
	pass.source.context = AllocSetContextCreate(CurrentMemoryContext,
												"hybrid pass source", ALLOCSET_DEFAULT_SIZES);
	found = next_unit(&pass, meta);
	hyb_leaf_close(&pass.source.leaf);
	if (!found)
	{
		check_progress(step, &step->version.watermark, &pass.at);
		advance_watermark(ix, &pass.at, true);
		return true;
	}

	step->unit_high = pass.unit->high;
	step->end = step_end(&pass);
	at_level.leaves = meta->levels[step->level].leaf_pages;
	at_level.frozen_entries = meta->levels[step->source].tids;
	size = hyb_policy_step(&at_level);
	step->from = pass.at;
	if (hyb_step_fetch(step, &size))
	{
		HYB_POINT("pass-fetched");
		return hyb_step_run(step, &watermark);
	}
	return pass_by(step);
}
