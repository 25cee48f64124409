/*
 * cut.c
 *		Taking a key range out of a static level, from which it has moved to
 *		the one before.
 *
 * Leaves that lie within the range go as a whole.  The one or two that reach
 * beyond an end of it are written anew, without what has moved; as they are
 * neighbours then, they become one leaf where that is possible.
 */
#include "base/compat.h"

#include "filter/filter_choice.h"
#include "leaf/layouts.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "utils/rel.h"

typedef struct CutState
{
	HybMergeStep *step;
	HybLeafRemainder *cut;
	HybFilterBuilder *filter;
	HybLeafBuilder *builder;	/* NULL: nothing is left so far */
	HybPos		run_low;		/* lower fence of what is left */
	uint64		live;			/* entries that are taken out */
	uint64		all;			/* with tombstones */
	bool		cuts;			/* anything at all */
	double		rent;			/* of what is left, in HYB_RENT_UNIT */
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

/* Keep items [from, to) of the step's open leaf, but for tombstones. */
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

/* One leaf that has entries of the range: items [from, to) of it go. */
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
	HybLeafRemainder *cut = palloc0(sizeof(HybLeafRemainder));
	CutState	state = {.step = step,.cut = cut};
	HybPos		above = hyb_step_above(&step->from);
	HybPos		upto = hyb_step_above(to);
	HybChildList *old;
	int			i = 0;
	int			nbefore;

	if (step->source_path->height == 0)
		return;
	step->cut = cut;
	state.filter = hyb_filter_builder_create(step->ix,
											 hyb_filter_kind_of_level(step->ix, step->source,
																	  step->version.nlevels));
	cut->path = step->source_path;
	cut->retired = palloc(HYB_MAX_PENDING * sizeof(BlockNumber));
	old = &cut->path->nodes[0].children;
	while (i < cut->path->nodes[0].index)
		hyb_child_list_add(&cut->children, &old->children[i++]);

	state.run_low = old->children[i].low;
	nbefore = cut->children.n;
	while (i < old->n &&
		   (i == cut->path->nodes[0].index ||
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
	if (!state.cuts)
		step->cut = NULL;

	/* VACUUM may have set tombstones since they were fetched */
	if (moved < state.live || moved > state.all)
		hyb_corrupted(step->ix->rel, cut->path->nodes[0].block == InvalidBlockNumber ?
					  step->version.levels[step->source].block : cut->path->nodes[0].block,
					  "Not all entries of a key range lie below one internal node.");
}
