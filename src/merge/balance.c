/*
 * balance.c
 *		Which leaves a merge step rewrites besides those that it has to.
 *
 * A step has to rewrite the leaves that entries fall into.  If that makes more
 * leaves, or half-empty ones, it may take untouched neighbours along, so that
 * there are fewer leaves in the end (docs/merges.md).  All of this is about
 * the children of one level-1 node.
 *
 * These are estimates: what a leaf takes is known only when it is packed.
 */
#include "base/compat.h"

#include <math.h>

#include "merge/step.h"

/* Saving one leaf is worth rewriting this many untouched leaves. */
#define LEAF_WORTH			8

/* Joined leaves keep some room, or the next entries would split them again. */
#define JOINED_FILL			0.96

/* A group that is emptier than this looks for neighbours, too. */
#define SMALL_FILL			0.6

/* Estimated fill of a leaf that was not read. */
#define UNKNOWN_FILL		0.9

/* Bytes that a TID takes at most, for the estimate. */
#define TID_BYTES			6

void
hyb_balance_init(HybBalance *balance, const HybIndex *ix,
				 const HybChildList *children, int reach, int spare,
				 bool thorough)
{
	balance->ix = ix;
	balance->children = children;
	balance->leaves = palloc0(Max(children->n, 1) * sizeof(HybStepLeaf));
	balance->reach = reach;
	balance->spare = spare;
	balance->thorough = thorough;
}

HybStepLeaf *
hyb_balance_look(HybBalance *balance, int i)
{
	HybStepLeaf *leaf = &balance->leaves[i];
	const HybChild *child = &balance->children->children[i];
	Buffer		buf;
	Page		page;

	Assert(i >= 0 && i < balance->children->n);
	if (leaf->known)
		return leaf;

	/* the merge lock keeps the leaf: a stamp that does not match is damage */
	buf = hyb_page_lock(balance->ix, child->block, InvalidBlockNumber,
						BUFFER_LOCK_SHARE, HYB_PAGE_LEAF, child->stamp);
	if (!BufferIsValid(buf))
		hyb_corrupted(balance->ix->rel, child->block,
					  "This is not the leaf that its parent points to.");
	page = BufferGetPage(buf);
	if (hyb_page_opaque(page)->count > HYB_LEAF_MAX_ITEMS)
		hyb_corrupted(balance->ix->rel, child->block,
					  "A leaf claims more entries than leaves take.");
	leaf->nitems = hyb_page_opaque(page)->count;
	leaf->live = leaf->nitems - hyb_leaf_count_tombstones(page);
	leaf->fill = hyb_leaf_fill(page);
	Assert(leaf->live >= 0 && leaf->live <= leaf->nitems);
	leaf->known = true;
	UnlockReleaseBuffer(buf);
	return leaf;
}

static double
leaf_content(HybBalance *balance, int i)
{
	const HybStepLeaf *leaf = hyb_balance_look(balance, i);
	double		item = leaf->fill / Max(leaf->nitems, 1);
	double		content = item * leaf->live;

	/* of a leaf with few items, most of the fill is overhead */
	if (leaf->added > 0)
		content += Min(item * leaf->added,
					   (double) (leaf->added_bytes + (Size) leaf->added * TID_BYTES) /
					   HYB_PAGE_CAPACITY);
	return content;
}

double
hyb_balance_content(HybBalance *balance, int from, int to)
{
	double		content = 0;

	Assert(from >= 0 && from <= to && to <= balance->children->n);
	for (int i = from; i < to; i++)
		content += leaf_content(balance, i);
	return content;
}

int
hyb_balance_count(double content)
{
	return (int) ceil(content);
}

bool
hyb_balance_is_small(HybBalance *balance, int i)
{
	(void) hyb_balance_look(balance, i);
	return leaf_content(balance, i) < SMALL_FILL;
}

/* Sums over the first leaves beside a group. */
typedef struct Neighbour
{
	double		content;		/* in leaves */
	int			count;			/* leaves that they become if left alone */
	int			untouched;		/* leaves that need not be rewritten */
} Neighbour;

/* Extend sums[] to the k-th neighbour, which is leaf i. */
static void
add_neighbour(HybBalance *balance, int i, Neighbour *sums, int k)
{
	double		content = leaf_content(balance, i);
	bool		touched = balance->leaves[i].touched;

	Assert(k >= 1 && k <= LEAF_WORTH);
	sums[k].content = sums[k - 1].content + content;
	sums[k].count = sums[k - 1].count +
		(touched ? hyb_balance_count(content) : 1);
	sums[k].untouched = sums[k - 1].untouched + !touched;
}

/*
 * Windows around the group are tried from small to large, until a larger one is
 * not better than the best so far: each leaf may have to be read from disk.  The
 * value of a window is what it saves, less what it costs.
 */
void
hyb_balance_run(HybBalance *balance, int from, int to, int lo, int hi)
{
	bool		touched = balance->leaves[from].touched;
	double		content = hyb_balance_content(balance, from, to);
	int			alone = touched ? hyb_balance_count(content) : 1;
	int			untouched = touched ? 0 : 1;
	int			reach = Min(balance->reach, LEAF_WORTH);
	Neighbour	left[LEAF_WORTH + 1] = {{0}};
	Neighbour	right[LEAF_WORTH + 1] = {{0}};
	int			best_left = 0;
	int			best_right = 0;
	int			best_size = 0;
	int			best_cost = 0;
	int			best_value = 0;

	Assert(lo <= from && from < to && to <= hi && hi <= balance->children->n);
	if (touched)
	{
		for (int i = from; i < to; i++)
			balance->leaves[i].rewrite = true;
		if (alone <= to - from && content >= SMALL_FILL * alone)
			return;
	}

	for (int size = 1; size <= reach; size++)
	{
		if (best_size > 0 && size > best_size + 1 && !balance->thorough)
			break;
		if (from - size >= lo)
			add_neighbour(balance, from - size, left, size);
		if (to + size <= hi)
			add_neighbour(balance, to + size - 1, right, size);

		for (int l = 0; l <= size; l++)
		{
			int			r = size - l;
			double		all;
			int			saved;
			int			cost;

			if (from - l < lo || to + r > hi)
				continue;
			all = content + left[l].content + right[r].content;
			saved = alone + left[l].count + right[r].count -
				(int) ceil(all / JOINED_FILL);
			cost = untouched + left[l].untouched + right[r].untouched;
			if (saved > 0 && cost <= balance->spare &&
				LEAF_WORTH * saved - cost > best_value)
			{
				best_value = LEAF_WORTH * saved - cost;
				best_cost = cost;
				best_left = l;
				best_right = r;
				best_size = size;
			}
		}
	}
	if (best_size == 0)
		return;
	for (int i = from - best_left; i < to + best_right; i++)
		balance->leaves[i].rewrite = true;
	Assert(best_cost >= 0 && best_cost <= balance->spare);
	balance->spare -= best_cost;
}

void
hyb_balance_bridge(HybBalance *balance, int to)
{
	HybStepLeaf *leaves = balance->leaves;
	int			from = 0;		/* the group before */
	int			end = 0;
	int			i = 0;

	while (i < to)
	{
		int			start = i;
		int			gap = start - end;
		int			apart;
		double		both;

		if (!leaves[i].rewrite)
		{
			i++;
			continue;
		}
		while (i < to && leaves[i].rewrite)
			i++;
		if (end > 0 && gap > 0 && gap <= Min(balance->reach, balance->spare))
		{
			double		left = hyb_balance_content(balance, from, end);
			double		right = hyb_balance_content(balance, start, i);

			/* pages between them are looked at only if that may be worth it */
			apart = hyb_balance_count(left) + gap + hyb_balance_count(right);
			both = left + right + gap * UNKNOWN_FILL;
			if (LEAF_WORTH * (apart - (int) ceil(both / JOINED_FILL)) > gap)
			{
				both = left + right + hyb_balance_content(balance, end, start);
				if (LEAF_WORTH * (apart - (int) ceil(both / JOINED_FILL)) > gap)
				{
					for (int j = end; j < start; j++)
						leaves[j].rewrite = true;
					balance->spare -= gap;
					start = from;
				}
			}
		}
		from = start;
		end = i;
	}
}
