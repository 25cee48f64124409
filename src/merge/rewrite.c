/*
 * rewrite.c
 *		Rewriting leaves in a merge step.
 *
 * Among the children of one level-1 node, the step finds the leaves that entries
 * fall into, and chooses neighbours to take along (balance.c).  It writes each
 * group of adjacent leaves anew with the entries that belong to it.
 *
 * The leaves of a group share its content evenly, so that none is nearly empty
 * and all have room.  Two kinds of groups are packed full from the left.  The
 * next step goes on with the one, and takes up the remainder.  The other is at
 * the right edge of the tree, where keys ascend.
 */
#include "base/compat.h"

#include "key/encoded.h"
#include "leaf/leaf.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "utils/rel.h"

/*
 * Most leaves that a step writes.  Old and new blocks must fit pending[], and so
 * must filter pages, which hold the filters of two leaves at least.
 */
#define HYB_STEP_MAX_IMAGES		160
#define HYB_STEP_MAX_FILTERED	100

/* The last leaf of the step before is taken up again if it is emptier. */
#define HYB_REFILL_FRACTION		0.9

/*
 * The last leaf of a group may get this much more than its share, in leaves: the
 * estimate may be off by that.
 */
#define HYB_LAST_SLACK			0.02

/*
 * Most untouched leaves that a step takes along.  They and their filters have to
 * fit pending[], too.
 */
#define HYB_STEP_MAX_JOINED		24
#define HYB_STEP_MAX_JOINED_FILTERED	16

/* Compaction rewrites a leaf with more tombstones than that. */
#define HYB_COMPACT_FRACTION	0.2

/*
 * Tell the builder how full to make the next leaves.  What the finished ones
 * took is a better measure than the estimate.
 */
static void
aim_run(HybMergeStep *step)
{
	int			rest = step->run_items - step->run_emitted;
	double		content;
	int			n;

	if (!step->run_shares || rest <= 0)
		return;
	if (step->run_emitted > 0)
		content = rest * step->run_filled / step->run_emitted;
	else
		content = step->run_content;
	n = hyb_balance_count(content - HYB_LAST_SLACK);
	if (n > 1)
		hyb_leaf_builder_aim(step->builder, Min(content / n, 1.0), 0);
	else
		hyb_leaf_builder_aim(step->builder, 1.0, rest + rest / 4);
}

static void
keep_rewritten_leaf(void *arg, Page page, const HybPos *low)
{
	HybMergeStep *step = arg;
	int			nitems = (int) hyb_page_opaque(page)->count;

	Assert(nitems > 0 && hyb_page_opaque(page)->stamp == step->stamp);
	hyb_child_list_add_image(&step->to.children, page,
							 HYB_POS_MIN(low) ? &step->run_low : low,
							 step->filter);
	step->to.leaves.nimages++;
	step->to.leaves.new_tids += nitems;
	step->run_emitted += nitems;
	step->run_filled += hyb_leaf_fill(page);
	aim_run(step);
}

/*
 * Begin a leaf group.  Its leaves share items and content, both estimates,
 * evenly.  If these are 0, leaves are packed full, and the last takes the rest.
 */
static void
begin_run(HybMergeStep *step, const HybPos *low, int items, double content)
{
	Assert(step->builder == NULL);
	step->builder = hyb_leaf_builder_create(step->ix,
											hyb_leaf_layout_for(step->ix, step->to.level),
											step->stamp, keep_rewritten_leaf, step);
	hyb_leaf_builder_expect(step->builder, step->entries,
							hyb_dead_table_is_large(&step->dead));
	hyb_leaf_builder_after(step->builder, low);
	step->run_low = *low;
	step->run_shares = items > 0;
	step->run_items = items;
	step->run_content = content;
	step->run_emitted = 0;
	step->run_rent = 0;
	step->run_filled = 0;
	aim_run(step);
}

/*
 * End the group at a fence.  The new leaves, children from `first` on, share the
 * rent of those that they replace.
 */
static void
end_run(HybMergeStep *step, int first, const HybPos *high)
{
	int			n;

	hyb_leaf_builder_before(step->builder, high);
	hyb_leaf_builder_finish(step->builder);
	hyb_leaf_builder_free(step->builder);
	step->builder = NULL;
	n = step->to.children.n - first;
	Assert(n >= 0 && (n == 0 || step->to.leaves.nimages >= n));
	for (int i = first; i < step->to.children.n && step->to.level > 0; i++)
		step->to.children.children[i].rent =
			(uint16) Min(step->run_rent * HYB_RENT_UNIT / n, PG_UINT16_MAX);
}

/* Copy the hints of the opened leaf; returns whether there are any. */
static bool
take_hints(HybMergeStep *step)
{
	const uint8 *hints = hyb_leaf_hints(step->leaf_page);
	int			n = hyb_leaf_hint_bytes(step->leaf.nitems);
	bool		any = false;

	if (hints == NULL)
		memset(step->leaf_hints, 0, n);
	else
		memcpy(step->leaf_hints, hints, n);
	for (int i = 0; i < n; i++)
		any |= step->leaf_hints[i] != 0;
	return any;
}

/* Copy a leaf into step->leaf_page, and open it. */
static void
copy_leaf(HybMergeStep *step, const HybChild *child)
{
	hyb_child_copy_leaf(step->ix, child, step->leaf_page);
	hyb_leaf_open(&step->leaf, step->ix->desc, step->leaf_page,
				  step->ix->rel, child->block);
	hyb_leaf_decode_tids(&step->leaf);
	step->leaf_plain = !take_hints(step) && step->leaf.tombstones == NULL &&
		step->chains == NULL;
}

/* Has an item of the opened leaf a tombstone, or a hint that it is dead? */
static inline bool
is_marked(const HybMergeStep *step, int item)
{
	return hyb_leaf_is_tombstone(&step->leaf, item) ||
		(step->leaf_hints[item >> 3] & (1 << (item & 7))) != 0;
}

/* Give the live items among [from, to) of the opened leaf to the builder. */
static void
add_leaf_items(HybMergeStep *step, int from, int to)
{
	HybLeaf    *leaf = &step->leaf;

	while (from < to)
	{
		int			end = step->leaf_plain ? to : from;
		bool		stale = false;	/* item `end`; known unless it is marked */
		ItemPointerData tid;

		while (end < to && !is_marked(step, end) &&
			   !(stale = hyb_step_item_is_stale(step, end)))
			end++;
		hyb_leaf_builder_add_leaf(step->builder, leaf, from, end);
		from = end;
		if (from == to)
			break;
		hyb_leaf_tids(leaf, from, 1, &tid);
		if (hyb_leaf_is_tombstone(leaf, from))
			step->to.leaves.old_tombstones++;
		else if (stale || hyb_dead_tid(&step->dead, &tid) ||
				 hyb_step_item_is_stale(step, from))
			hyb_step_drop(step);
		else
			hyb_leaf_builder_add_leaf(step->builder, leaf, from, from + 1);
		from++;
	}
}

/*
 * The next entry falls into a row of several keys.  If it is time to tell these
 * apart, take the row with the entries that fall into it.  *done is the number of
 * items taken of the leaf.
 */
static bool
regroup(HybMergeStep *step, int row, int end, int *done)
{
	HybLeaf    *leaf = &step->leaf;
	int			start = hyb_leaf_row_start(leaf, row);
	int			last;

	if (*done > start)
		return false;
	last = hyb_step_entries_of_row(step, row, end);
	if (!hyb_step_read_group(step, row, last))
		return false;
	add_leaf_items(step, *done, start);
	hyb_step_add_group(step, last);
	*done = hyb_leaf_row_start(leaf, row + 1);
	return true;
}

/*
 * The item of the opened leaf before which the next entry goes, or -1 if the
 * entry was taken with its row.
 */
static int
place_entry(HybMergeStep *step, const HybPos *pos, int end, int *done)
{
	HybLeaf    *leaf = &step->leaf;
	HybRowRange rows;
	int			row;

	if (hyb_leaf_keeps_keys(leaf) || hyb_leaf_search_rows(leaf, pos, &rows))
		return hyb_leaf_search(leaf, pos, &row);
	if (rows.lo != rows.hi && regroup(step, rows.lo, end, done))
		return -1;
	return hyb_leaf_row_start(leaf, rows.hi);
}

/* Merge the opened leaf with the entries [next_entry, end) inside its fences. */
static void
merge_leaf(HybMergeStep *step, int end)
{
	int			done = 0;

	Assert(end >= step->done.next_entry && end <= step->last_entry);
	CHECK_FOR_INTERRUPTS();
	hyb_step_look(step, true, end);
	while (step->done.next_entry < end)
	{
		const HybFetchedItem *item = &step->batch.items[step->done.next_entry];
		int			at = -1;

		/* entries ascend: the rest goes behind the leaf's last item */
		if (done < step->leaf.nitems)
		{
			HybPos		pos = hyb_step_pos(step, item);

			at = place_entry(step, &pos, end, &done);
			if (at < 0)
				continue;
			add_leaf_items(step, done, at);
			done = Max(done, at);
		}
		if (!hyb_step_join(step, at))
			hyb_step_add_entry(step);
	}
	Assert(step->done.next_entry == end);
	add_leaf_items(step, done, step->leaf.nitems);
	step->to.leaves.old_tids += step->leaf.nitems;
}

static bool
entry_below(HybMergeStep *step, int entry, const HybPos *fence)
{
	const HybFetchedItem *item = &step->batch.items[entry];

	return HYB_POS_MAX(fence) ||
		hyb_pos_compare_key(step->ix->desc, hyb_step_entry(step, item),
							item->keylen, &item->tid, fence) < 0;
}

/*
 * Find the leaves that the step has to rewrite, from `from` on.  Leaves before
 * the path's leaf do not count as progress.  Returns one past the last leaf whose
 * range the step does.
 */
static int
touch_leaves(HybMergeStep *step, const HybPath *path, HybBalance *balance,
			 int from)
{
	int			first = path->nodes[0].index;
	int			n = path->nodes[0].children.n;
	int			end = 0;
	int			read = 0;
	int			i = from;

	while (i < n)
	{
		HybStepLeaf *leaf = &balance->leaves[i];
		HybPos		high = hyb_path_upper_fence(path, i);

		while (end < step->last_entry && entry_below(step, end, &high))
		{
			leaf->added_bytes += step->batch.items[end++].len;
			leaf->added++;
		}
		leaf->end = end;
		leaf->touched = leaf->added > 0 || i < first || step->chains != NULL;
		if (!leaf->touched && step->compact)
		{
			hyb_balance_look(balance, i);
			leaf->touched = leaf->nitems - leaf->live >
				leaf->nitems * HYB_COMPACT_FRACTION;
		}
		read += leaf->touched || step->compact;
		i++;

		/* more entries of this leaf's range may not have been fetched */
		if (end == step->last_entry &&
			(!step->compact || !step->batch.complete ||
			 step->last_entry < step->batch.nitems))
			break;
		if (i > first && read >= step->max_leaves)
			break;
	}
	for (int j = i; j < n; j++)
		balance->leaves[j].end = end;
	Assert(i > from && i <= n && end <= step->last_entry);
	return i;
}

/*
 * Decide which leaves to rewrite: those that touch_leaves found in [from, *last)
 * and neighbours of theirs.  *last is lowered if the step cannot take more
 * neighbours along.  Returns whether the next step goes on where this one ends.
 * Then the last group is packed full, and its remainder is taken up again.
 */
static bool
choose_leaves(HybMergeStep *step, const HybPath *path, HybBalance *balance,
			  int from, int *last)
{
	int			first = path->nodes[0].index;
	int			stop = *last;
	int			n = path->nodes[0].children.n;
	int			next = balance->leaves[stop - 1].end;
	bool		more = next < step->batch.nitems;
	bool		goes_on = !more && !step->batch.complete;
	int			lo = 0;
	int			hi = stop;
	int			i = from;
	HybPos		fence = hyb_path_upper_fence(path, Min(stop, n - 1));

	if (more)
		goes_on = entry_below(step, next, &fence);

	/* a visit of all leaves goes on with the next one */
	if (step->compact && stop < n)
		goes_on = true;

	/* neighbours beyond: not those that later steps rewrite */
	while (!goes_on && hi < n && hi - stop < balance->reach)
	{
		fence = hyb_path_upper_fence(path, hi);
		if (more && entry_below(step, next, &fence))
			break;
		hi++;
	}

	while (i < stop)
	{
		int			run = i;

		if (!balance->leaves[i].touched &&
			!(step->compact && hyb_balance_is_small(balance, i)))
		{
			i++;
			continue;
		}
		for (i++; i < stop && balance->leaves[run].touched &&
			 balance->leaves[i].touched; i++)
			;
		if ((i == stop && goes_on) || (i == n && HYB_POS_MAX(&path->high)))
		{
			for (int j = run; j < i; j++)
				balance->leaves[j].rewrite = balance->leaves[j].touched;
		}
		else
			hyb_balance_run(balance, run, i, lo, hi);
		for (; i < n && balance->leaves[i].rewrite; i++)
			;
		if (balance->leaves[i - 1].rewrite)
			lo = i;
		if (i > first && i < stop && balance->spare < balance->reach)
		{
			*last = i;
			goes_on = step->compact || balance->leaves[i].touched;
			break;
		}
	}
	hyb_balance_bridge(balance, i);
	return goes_on;
}

static inline bool
enough_images(const HybMergeStep *step)
{
	return step->to.leaves.nimages >= (step->filter != NULL ? HYB_STEP_MAX_FILTERED :
									   HYB_STEP_MAX_IMAGES);
}

/*
 * Rewrite the group [from, to) with the entries that go to it.  Returns one past
 * the last leaf done, which is less than `to` if the step has enough new leaves.
 */
static int
rewrite_run(HybMergeStep *step, HybPath *path, HybBalance *balance, int from,
			int to, bool packed)
{
	HybChildList *old = &path->nodes[0].children;
	HybStepLeaf *leaves = balance->leaves;
	int			items = 0;
	int			nchildren = step->to.children.n;
	HybPos		fence;

	Assert(from >= 0 && from < to && to <= old->n);
	for (int i = from; i < to && !packed; i++)
		items += hyb_balance_look(balance, i)->live + leaves[i].added;
	begin_run(step, &old->children[from].low, items,
			  packed ? 0 : hyb_balance_content(balance, from, to));
	for (int i = from; i < to; i++)
	{
		copy_leaf(step, &old->children[i]);
		step->run_rent += hyb_leaf_fill(step->leaf_page) +
			(double) old->children[i].rent / HYB_RENT_UNIT;
		Assert(step->to.leaves.nretired < HYB_MAX_PENDING);
		step->to.retired[step->to.leaves.nretired++] = old->children[i].block;
		merge_leaf(step, leaves[i].end);
		if (enough_images(step) && i >= path->nodes[0].index)
		{
			fence = hyb_path_upper_fence(path, i);
			end_run(step, nchildren, &fence);
			return i + 1;
		}
	}
	fence = hyb_path_upper_fence(path, to - 1);
	end_run(step, nchildren, &fence);
	return to;
}

bool
hyb_step_rewrite(HybMergeStep *step, HybPos *fence)
{
	HybPath    *path = step->to.path;
	HybPathNode *node = &path->nodes[0];
	HybChildList *old = &node->children;
	int			first = node->index;
	int			from = first;
	int			stop;
	int			i = 0;
	bool		goes_on;
	HybBalance	balance;

	if (path->height == 0)
	{
		HybPos		minus_infinity = {.tie = HYB_BEFORE};

		/* the first leaves of the index */
		begin_run(step, &minus_infinity, 0, 0);
		hyb_step_look(step, false, step->last_entry);
		while (step->done.next_entry < step->last_entry)
			if (!hyb_step_join(step, -1))
				hyb_step_add_entry(step);
		end_run(step, 0, &path->high);
		*fence = path->high;
		return true;
	}

	hyb_balance_init(&balance, step->ix, old,
					 Min(step->max_leaves, HYB_STEP_MAX_JOINED / 3),
					 Min(step->max_leaves,
						 step->filter != NULL ? HYB_STEP_MAX_JOINED_FILTERED :
						 HYB_STEP_MAX_JOINED), step->compact);

	/* take up the leaf that the step before left partly filled */
	if (first > 0 && old->children[first - 1].stamp + 1 == step->stamp &&
		hyb_balance_look(&balance, first - 1)->fill < HYB_REFILL_FRACTION)
		from = first - 1;

	stop = touch_leaves(step, path, &balance, from);
	goes_on = choose_leaves(step, path, &balance, from, &stop);
	while (i < old->n)
	{
		int			to = i;
		int			done;

		while (to < old->n && balance.leaves[to].rewrite)
			to++;
		if (to == i)
		{
			hyb_child_list_add(&step->to.children, &old->children[i++]);
			continue;
		}
		done = rewrite_run(step, path, &balance, i, to,
						   (to == stop && goes_on) ||
						   (to == old->n && HYB_POS_MAX(&path->high)));
		if (done > Max(i, first) && enough_images(step))
		{
			stop = Min(stop, done);
			for (int j = done; j < old->n; j++)
				balance.leaves[j].rewrite = false;
		}
		i = done;
	}
	Assert(stop > first && stop <= old->n);
	*fence = hyb_path_upper_fence(path, stop - 1);
	return stop == old->n;
}
