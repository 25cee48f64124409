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
 * its entries since they came there.  See policy_ratio.c.
 */
#include "compat.h"

#include "merge/facts.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "page/meta.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Leaves of the newer level that a step looks at, at most, to find a unit. */
#define PASS_MAX_LOOKED		256

/* Leaves of the newer level that a step empties at most (HYB_MAX_PENDING). */
#define PASS_MAX_SOURCE		48

typedef struct Pass
{
	MergeStep  *step;
	HybPos		at;				/* entries up to here are done with */
	HybBuf		at_key;
	HybPath    *unit;			/* path to the node of the older level that
								 * the next unit lies below */
	int			looked;			/* leaves of the newer level */
	MemoryContext context;		/* reset for each unit */
} Pass;

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
 * Look at the entries above pass->at in the unit.
 */
static void
survey_unit(Pass *pass, HybUnitFacts *facts)
{
	MergeStep  *step = pass->step;
	const HybKeyDesc *desc = step->ix->desc;
	HybLeaf		leaf = {0};
	HybPos		above = hyb_step_above(&pass->at);
	HybPath    *path = palloc(sizeof(HybPath));
	double		most = pass->unit->nodes[0].children.n + 2 * HYB_MAX_HEIGHT;
	int			last = -1;
	bool		more = true;

	memset(facts, 0, sizeof(*facts));
	while (more)
	{
		const HybChildList *list = &path->nodes[0].children;

		hyb_path_load(step->ix, &step->version.levels[step->source], &above, path);
		for (int i = path->nodes[0].index; i < list->n && more; i++)
		{
			const HybChild *child = &list->children[i];
			HybPos		high = i + 1 < list->n ? list->children[i + 1].low : path->high;
			double		part;
			int			row;
			int			from;
			int			to;

			CHECK_FOR_INTERRUPTS();
			hyb_child_copy_leaf(step->ix, child, step->leaf_page);
			hyb_leaf_open(&leaf, desc, step->leaf_page, step->ix->rel, child->block);
			pass->looked++;
			from = hyb_leaf_search(&leaf, &above, &row);
			to = hyb_leaf_search(&leaf, &pass->unit->high, &row);
			part = (double) Max(to - from, 0) / Max(leaf.nitems, 1);
			facts->content += part * hyb_leaf_fill(step->leaf_page);
			facts->rent += part * child->rent / HYB_RENT_UNIT;
			facts->price += count_price(&leaf, &pass->unit->nodes[0].children,
										from, to, &last);
			above = high;
			more = hyb_pos_compare(desc, &high, &pass->unit->high) < 0;

			/* whatever the price turns out to be */
			if (facts->rent >= most || facts->content >= most)
			{
				facts->price = pass->unit->nodes[0].children.n;
				more = false;
			}
		}
	}
	hyb_leaf_close(&leaf);
	facts->path = pass->unit->height + path->height;
}

/*
 * Find the next unit to move above pass->at, and load it.  False if there is
 * none, or if enough was looked at: pass->at is where to go on then.
 */
static bool
next_unit(Pass *pass, const HybMetaPage *meta)
{
	MergeStep  *step = pass->step;
	const HybVersion *version = &step->version;
	bool		chosen = step->compact || meta->pass_level >= meta->wanted_levels ||
		(meta->flags & HYB_META_MOVING) != 0;

	while (pass->looked < PASS_MAX_LOOKED && !HYB_POS_MAX(&pass->at) &&
		   (step->compact || version->levels[step->source].height > 0))
	{
		MemoryContext old = MemoryContextSwitchTo(pass->context);
		HybPos		above = hyb_step_above(&pass->at);
		HybPos		below;
		HybUnitFacts facts;

		MemoryContextReset(pass->context);
		pass->unit = palloc(sizeof(HybPath));
		hyb_path_load(step->ix, &version->levels[step->level], &above, pass->unit);
		if (!chosen)
		{
			survey_unit(pass, &facts);
			chosen = facts.content > 0 && hyb_merge_policy->move(&facts);
		}
		MemoryContextSwitchTo(old);
		if (chosen)
			return true;
		below = hyb_step_below(&pass->unit->high);
		hyb_pos_copy(&pass->at, &pass->at_key, &below);
	}
	if (version->levels[step->source].height == 0)
		pass->at = (HybPos)
	{
		.tie = HYB_AFTER
	};
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
	MergeStep  *step = pass->step;
	HybPos		end = pass->unit->high;
	HybPos		above = hyb_step_above(&pass->at);
	HybPath    *path = step->source_path = palloc(sizeof(HybPath));
	HybPos		source_end;
	int			i;

	hyb_path_load(step->ix, &step->version.levels[step->source], &above, path);
	if (path->height == 0)
		return end;
	i = path->nodes[0].index + PASS_MAX_SOURCE;
	source_end = i < path->nodes[0].children.n ?
		path->nodes[0].children.children[i].low : path->high;
	return hyb_pos_compare(step->ix->desc, &source_end, &end) < 0 ? source_end : end;
}

/*
 * Nothing was moved, but the pass has gone on; `unit_done`: beyond the unit that
 * was being moved.  Behind its end the next pass begins, if there is one.
 */
static void
advance(HybIndex *ix, const HybPos *at, bool unit_done)
{
	HybPos		minus_infinity = {.tie = HYB_BEFORE};
	HybMetaPage *meta;
	Buffer		metabuf;
	HybWalSet	set;

	HYB_POINT("pass-advance");
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	hyb_version_switch_begin(ix, meta, &set);
	if (unit_done)
		meta->flags &= ~HYB_META_MOVING;
	if (HYB_POS_MAX(at))
	{
		HybLevel   *newest = hyb_meta_newest(meta);

		if (meta->pass_level + 1 == meta->nlevels &&
			meta->nlevels > meta->wanted_levels && newest->root.height == 0)
		{
			Assert(newest->tids == 0 && newest->leaf_pages == 0 &&
				   newest->inner_pages == 0 && newest->filter_pages == 0);
			meta->nlevels--;
		}
		meta->pass_level--;
		if (meta->pass_level == 0)
			meta->flags &= ~HYB_META_COMPACTING;
		at = &minus_infinity;
	}
	hyb_version_switch_end(ix, metabuf, &set, at);
}

/*
 * There is nothing live in the range of a step.  Tombstones go, so that a level
 * of which everything is to move becomes empty.
 */
static void
pass_by(MergeStep *step)
{
	HybPos		below = hyb_step_below(&step->end);

	hyb_step_cut(step, &below, 0);
	if (step->cut != NULL)
	{
		hyb_step_install(step, NULL, &below);
		hyb_leaf_close(&step->leaf);
		hyb_space_settle(step->ix);
	}
	else
		advance(step->ix, &below,
				hyb_pos_compare(step->ix->desc, &step->end, &step->unit_high) >= 0);
}

void
hyb_pass_step(HybIndex *ix, const HybMetaPage *meta, const HybMergeFacts *facts)
{
	Pass		pass = {0};
	MergeStep  *step = hyb_step_create(ix, meta);
	HybMergeFacts at_level = *facts;
	HybStepSize size;
	HybPos		watermark;

	step->source = meta->pass_level;
	step->level = meta->pass_level - 1;
	step->compact &= meta->pass_level == meta->wanted_levels;
	hyb_version_capture(ix, &step->version);
	pass.step = step;
	pass.at = step->version.watermark;
	hyb_buf_reserve(&pass.at_key, HYB_MAX_ENTRY_SIZE);
	pass.context = AllocSetContextCreate(CurrentMemoryContext,
										 "hybrid pass", ALLOCSET_DEFAULT_SIZES);
	if (!next_unit(&pass, meta))
	{
		advance(ix, &pass.at, true);
		return;
	}

	step->unit_high = pass.unit->high;
	step->end = step_end(&pass);
	at_level.leaves = meta->levels[step->level].leaf_pages;
	at_level.frozen_entries = meta->levels[step->source].tids;
	size = hyb_merge_policy->step(&at_level);
	step->from = pass.at;
	if (hyb_step_fetch(step, &size))
	{
		HYB_POINT("pass-fetched");
		hyb_step_run(step, &watermark);
	}
	else
		pass_by(step);
}
