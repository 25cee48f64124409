/*
 * pass.c
 *		Moving entries from one static level to the next older one.
 *
 * After the merge of a generation a pass goes over the newest level, then one
 * over the level before it, and so on.  A pass goes over units: the key ranges
 * below one level-1 node of the older level.  It moves the entries of those
 * units that the policy chooses.  The metapage's watermark is how far the pass
 * has come.
 *
 * The policy chooses by ski rental (policy.c).  Each leaf of a newer level pays
 * rent: what merges have rewritten of its entries in this level.  The parent
 * keeps the rent in its entry for the leaf, so neither a crash nor a pass that
 * skips a unit loses it.
 *
 * Leaves within a moved range go as a whole.  One or two leaves reach beyond an
 * end of it.  They are written anew without the range, as one leaf if they fit.
 */
#include "base/compat.h"

#include "filter/filter_choice.h"
#include "leaf/leaf.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "store/meta.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* A step reads at most this many leaves of the newer level to find a unit. */
#define PASS_MAX_LOOKED		256

/* A step empties at most this many leaves of the newer level. */
#define PASS_MAX_SOURCE		48

/* The next entry to decide about: an item of a leaf of the newer level. */
typedef struct PassReader
{
	HybPath    *path;
	int			child;			/* the leaf among those of its level-1 node */
	HybPos		high;			/* the leaf's upper fence */
	HybLeaf		leaf;
	int			item;
	bool		ended;			/* there are no more entries */
	HybBuf		key;			/* of the position that it was sought at */
	MemoryContext context;		/* of the path */
} PassReader;

typedef struct Pass
{
	HybMergeStep *step;
	HybPos		at;				/* entries up to here are done */
	HybBuf		at_key;
	PassReader	source;
	HybPath    *unit;			/* path to the node of the older level that
								 * the next unit lies below */
	int			looked;			/* leaves of the newer level read */
	uint64		known;			/* an earlier pass has looked at leaves with
								 * lower stamps */
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

/* Go to the leaf just above a position, without reading it. */
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

/* Everything before the next entry is done; if there is none, everything. */
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
		pos = hyb_pos_below(&pos);
	}
	hyb_pos_copy(&pass->at, &pass->at_key, &pos);
}

/*
 * Has a whole pass looked at the leaf that the source is at?  Then its rent has
 * not changed.  The policy's decision about a unit with only such leaves has not
 * changed either.
 */
static inline bool
leaf_is_known(const Pass *pass)
{
	const PassReader *source = &pass->source;

	return source->path->nodes[0].children.children[source->child].stamp < pass->known;
}

/* Find the unit that a position lies in. */
static void
load_unit_path(Pass *pass, const HybPos *pos)
{
	MemoryContext old;

	MemoryContextReset(pass->context);
	old = MemoryContextSwitchTo(pass->context);
	pass->unit = palloc(sizeof(HybPath));
	hyb_path_load(pass->step->ix, &pass->step->version.levels[pass->step->to.level],
				  pos, pass->unit);
	MemoryContextSwitchTo(old);
}

/*
 * Go on with the unit of the next leaf that is not known.  This reads internal
 * nodes only.  After too many for a step, pass->at is where to go on.
 */
static void
skip_known(Pass *pass)
{
	const HybKeyDesc *desc = pass->step->ix->desc;
	PassReader *source = &pass->source;
	HybPos		above = hyb_pos_above(&pass->at);
	HybPos		low;

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
				low = hyb_pos_below(&low);
				hyb_pos_copy(&pass->at, &pass->at_key, &low);
				return;
			}
			load_source(pass, &low);
		}
	} while (leaf_is_known(pass));

	/* begin at the start of the unit: its known leaves count, too */
	if (source->child > 0)
		low = source->path->nodes[0].children.children[source->child].low;
	else
		low = hyb_path_lower_fence(source->path);
	load_unit_path(pass, &low);
	low = hyb_path_lower_fence(pass->unit);
	seek_entry(pass, hyb_pos_compare(desc, &low, &above) > 0 ? &low : &above);
	go_to_entry(pass);
}

/*
 * Count the leaves of the older level that items [from, to) of a leaf fall into.
 * *last was counted before, and becomes the last one counted.
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
 * Collect the facts of the unit, from the source's entry on.  The source ends up
 * at the first entry behind the unit.
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

		/* the unit moves at any price: stop counting */
		if (facts->rent >= most || facts->content >= most)
		{
			facts->price = node->children.n;
			seek_entry(pass, &pass->unit->high);
			more = false;
		}
		leave_empty(pass);
	}
}

/* Load the unit above pass->at.  Returns whether it moves. */
static bool
load_unit(Pass *pass, bool ask)
{
	HybPos		above = hyb_pos_above(&pass->at);
	HybUnitFacts facts;
	bool		chosen = true;

	load_unit_path(pass, &above);
	if (ask)
	{
		survey_unit(pass, &facts);
		chosen = hyb_policy_move(&facts);
	}
	return chosen;
}

/*
 * Find the next unit to move above pass->at, and load it.  Returns false if there
 * is none, or enough leaves were read: then pass->at is where to go on.  Units
 * without entries in the newer level are skipped, except in a visit of all
 * leaves.
 */
static bool
next_unit(Pass *pass, const HybMetaPage *meta)
{
	HybMergeStep *step = pass->step;
	bool		all = meta->pass_level >= meta->wanted_levels;
	HybPos		above = hyb_pos_above(&pass->at);

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
 * Load the path to the entries that move.  Returns where the step ends: at the
 * end of the unit, of the level-1 node of the newer level, or after
 * PASS_MAX_SOURCE leaves.
 */
static HybPos
step_end(Pass *pass)
{
	HybMergeStep *step = pass->step;
	HybPos		end = pass->unit->high;
	HybPos		above = hyb_pos_above(&pass->at);
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

/* Damaged separators could make the steps of a pass repeat for ever. */
static void
check_progress(const HybMergeStep *step, const HybPos *from, const HybPos *to)
{
	if (!HYB_POS_MAX(to) && hyb_pos_compare(step->ix->desc, to, from) <= 0)
		hyb_corrupted(step->ix->rel, HYB_METAPAGE_BLKNO,
					  "A pass over levels would not advance the watermark.");
}

bool
hyb_pass_choose(HybMergeStep *step, const HybMetaPage *meta)
{
	Pass		pass = {.step = step,.at = step->version.watermark};
	HybPos		below;
	bool		found;

	Assert(step->source > 0 && step->source == meta->pass_level);
	hyb_buf_reserve(&pass.at_key, HYB_MAX_ENTRY_SIZE);
	pass.context = AllocSetContextCreate(CurrentMemoryContext,
										 "hybrid pass", ALLOCSET_DEFAULT_SIZES);
	pass.source.context = AllocSetContextCreate(CurrentMemoryContext,
												"hybrid pass source", ALLOCSET_DEFAULT_SIZES);
	found = next_unit(&pass, meta);
	hyb_leaf_close(&pass.source.leaf);
	step->from = pass.at;
	if (!found)
	{
		check_progress(step, &step->version.watermark, &step->from);
		return false;
	}
	step->unit_high = pass.unit->high;
	step->end = step_end(&pass);
	below = hyb_pos_below(&step->end);
	check_progress(step, &step->from, &below);
	return true;
}

/* ---- taking a range out of the newer level ---- */

typedef struct CutState
{
	HybMergeStep *step;
	HybLeafChange *cut;
	HybFilterBuilder *filter;
	HybLeafBuilder *builder;	/* NULL: nothing stays so far */
	HybPos		run_low;		/* lower fence of what stays */
	uint64		live;			/* entries taken out */
	uint64		all;			/* the same with tombstones */
	bool		cuts;			/* an entry or tombstone was taken out */
	double		rent;			/* of what stays, in HYB_RENT_UNIT */
} CutState;

static void
keep_cut_leaf(void *arg, Page page, const HybPos *low)
{
	CutState   *state = arg;

	hyb_child_list_add_image(&state->cut->children, page,
							 HYB_POS_MIN(low) ? &state->run_low : low,
							 state->filter);
	state->cut->leaves.nimages++;
	state->cut->leaves.new_tids += hyb_page_opaque(page)->count;
}

/* Keep items [from, to) of the opened leaf, without tombstones. */
static void
keep_items(CutState *state, const HybChild *child, int from, int to)
{
	HybMergeStep *step = state->step;
	HybLeaf    *leaf = &step->leaf;

	if (from >= to)
		return;
	if (state->builder == NULL)
		state->builder = hyb_leaf_builder_create(step->ix,
												 hyb_leaf_layout_for(step->ix, step->source),
												 step->stamp, keep_cut_leaf, state);
	state->rent += (double) child->rent * (to - from) / leaf->nitems;
	if (leaf->tombstones == NULL)
		hyb_leaf_builder_add_leaf(state->builder, leaf, from, to);
	else
		for (int row = hyb_leaf_row_of_item(leaf, from); from < to; row++)
		{
			int			end = Min(hyb_leaf_row_start(leaf, row + 1), to);
			const HybValue *vals = hyb_leaf_row(leaf, row);

			for (; from < end; from++)
			{
				ItemPointerData tid;

				if (hyb_leaf_is_tombstone(leaf, from))
					continue;
				hyb_leaf_tids(leaf, from, 1, &tid);
				hyb_leaf_builder_add(state->builder, vals, &tid);
			}
		}
}

/* Take the range out of one leaf. */
static void
cut_leaf(CutState *state, const HybChild *child, const HybPos *above,
		 const HybPos *upto)
{
	HybMergeStep *step = state->step;
	HybLeaf    *leaf = &step->leaf;
	int			row;
	int			from;
	int			to;

	Assert(state->cut->leaves.nretired < HYB_MAX_PENDING);
	CHECK_FOR_INTERRUPTS();
	hyb_child_copy_leaf(step->ix, child, step->leaf_page);
	hyb_leaf_open(leaf, step->ix->desc, step->leaf_page, step->ix->rel,
				  child->block);
	from = hyb_leaf_search(leaf, above, &row);
	to = hyb_leaf_search(leaf, upto, &row);
	keep_items(state, child, 0, from);
	for (int i = from; i < to; i++)
		state->live += !hyb_leaf_is_tombstone(leaf, i);
	state->all += Max(to - from, 0);
	keep_items(state, child, to, leaf->nitems);
	state->cuts |= from < to;
	state->cut->leaves.old_tids += leaf->nitems;
	state->cut->leaves.old_tombstones += hyb_leaf_count_tombstones(step->leaf_page);
	state->cut->retired[state->cut->leaves.nretired++] = child->block;
}

void
hyb_step_cut(HybMergeStep *step, const HybPos *to, uint64 moved)
{
	const HybKeyDesc *desc = step->ix->desc;
	HybPath    *path = step->source_path;
	HybLeafChange *cut = &step->cut;
	CutState	state = {.step = step,.cut = cut};
	HybPos		above = hyb_pos_above(&step->from);
	HybPos		upto = hyb_pos_above(to);
	HybChildList *old;
	int			i = 0;
	int			nbefore;

	if (path->height == 0)
		return;
	state.filter = hyb_filter_builder_create(step->ix,
											 hyb_filter_kind_of_level(step->ix, step->source,
																	  step->version.nlevels));
	cut->retired = palloc(HYB_MAX_PENDING * sizeof(BlockNumber));
	old = &path->nodes[0].children;
	while (i < path->nodes[0].index)
		hyb_child_list_add(&cut->children, &old->children[i++]);

	state.run_low = old->children[i].low;
	nbefore = cut->children.n;
	while (i < old->n &&
		   (i == path->nodes[0].index ||
			hyb_pos_compare(desc, &old->children[i].low, &upto) < 0))
		cut_leaf(&state, &old->children[i++], &above, &upto);
	if (state.builder != NULL)
	{
		hyb_leaf_builder_finish(state.builder);
		hyb_leaf_builder_free(state.builder);
	}
	for (int j = nbefore; j < cut->children.n; j++)
		cut->children.children[j].rent =
			(uint16) Min(state.rent / (cut->children.n - nbefore), PG_UINT16_MAX);
	while (i < old->n)
		hyb_child_list_add(&cut->children, &old->children[i++]);
	Assert(cut->leaves.nretired == old->n - (cut->children.n - cut->leaves.nimages));
	Assert(state.live <= state.all);
	if (state.cuts)
		cut->path = path;

	/* VACUUM may have set tombstones since they were fetched */
	if (moved < state.live || moved > state.all)
		hyb_corrupted(step->ix->rel, path->nodes[0].block == InvalidBlockNumber ?
					  step->version.levels[step->source].block : path->nodes[0].block,
					  "Not all entries of a key range lie below one internal node.");
}

/* ---- when nothing moves ---- */

/* A level without a tree counts nothing else. */
static void
check_empty(const HybIndex *ix, const HybLevel *level)
{
	if (level->tids != 0 || level->leaf_pages != 0 ||
		level->inner_pages != 0 || level->filter_pages != 0)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
					  "The newest level is empty, but the metapage counts entries or pages of it.");
}

void
hyb_pass_advance(HybIndex *ix, const HybPos *at, bool unit_done)
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
			/* merges go to another level now */
			meta->rewritten_tids = meta->rewriting_tids;
		}
		meta->surveyed[meta->pass_level] = meta->pass_stamp;
		meta->pass_stamp = meta->next_stamp;
		hyb_wal_meta_field(&set, metabuf, pass_stamp);
		hyb_wal_meta_field(&set, metabuf, surveyed);
		meta->pass_level--;
		if (meta->pass_level == 0)
		{
			if ((meta->flags & HYB_META_COMPACTING) != 0)
				hyb_generation_settle(ix, meta, &set, metabuf);
			meta->flags &= ~(HYB_META_COMPACTING | HYB_META_QUIET | HYB_META_UNEARNED);
			meta->rewriting_tids = 0;
			if (meta->nlevels == 1)
				meta->earned_pages = 0;
		}
		at = &minus_infinity;
	}
	hyb_version_switch_end(ix, metabuf, &set, at);
}
