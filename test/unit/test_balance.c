/*
 * test_balance.c
 *		Which leaves a merge step rewrites: those that it has to, and untouched
 *		neighbours only where that leaves fewer leaves.
 *
 * Leaves of random fill lie below one node.  Random groups of them are touched.  What
 * is chosen is compared with what all windows around a group would save.
 */
#include "index_file.h"

#include <math.h>

#include "leaf/leaf.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "unit.h"

#define NLEAVES		40
#define ROUNDS		1500

/* As in balance.c: what saving a leaf is worth, and the room that joined leaves keep. */
#define LEAF_WORTH	8
#define JOINED_FILL	0.96
#define SMALL_FILL	0.6

static HybIndex *ix;
static HybChildList children;
static double parts[NLEAVES];
static HybLeafBuilder *builder;

static HybKeyDesc *
make_desc(void)
{
	HybKeyDesc *desc = calloc(1, hyb_key_desc_size(1));

	desc->natts = desc->nkeys = 1;
	desc->all_mem = desc->exact = true;
	desc->cols[0] = (HybColumn) {.store = HYB_STORE_INT,.compare = HYB_COMPARE_MEM,.width = 8};
	return desc;
}

static void
keep_leaf(void *arg, Page page, const HybPos *low)
{
	BlockNumber block;

	if (children.n == NLEAVES)
		return;
	block = index_file_extend();
	memcpy(index_file_page(block), page, BLCKSZ);
	hyb_child_list_add_leaf(&children, page, low)->block = block;
	if (children.n < NLEAVES)
		hyb_leaf_builder_aim(builder, parts[children.n], 0);
}

/* Leaves that are as full as random parts say; half of some are tombstones. */
static void
make_leaves(void)
{
	uint64		key = 0;

	ix = index_file_create(make_desc());
	memset(&children, 0, sizeof(children));
	for (int i = 0; i < NLEAVES; i++)
		parts[i] = 0.08 + (unit_below(3) == 0 ? 0.9 : 0.5) * unit_below(1000) / 1000;
	builder = hyb_leaf_builder_create(ix, hyb_leaf_layout_for(ix, 0), 1, keep_leaf, NULL);
	hyb_leaf_builder_aim(builder, parts[0], 0);
	for (int i = 0; children.n < NLEAVES; i++)
	{
		HybValue	val = {.ival = key += 1 + unit_random() % (UINT64_C(1) << 40)};
		ItemPointerData tid;

		ItemPointerSet(&tid, i, 1);
		hyb_leaf_builder_add(builder, &val, &tid);
	}
	for (int i = 0; i < NLEAVES; i++)
	{
		Page		page = index_file_page(children.children[i].block);
		int			nitems = (int) hyb_page_opaque(page)->count;
		uint16		off;
		uint16		len;

		if (unit_below(8) != 0)
			continue;
		START_CRIT_SECTION();
		for (int item = 0; item < nitems; item += 2)
			hyb_leaf_set_tombstones(page, &item, 1, &off, &len);
		END_CRIT_SECTION();
	}
}

/* A step that touches some leaves with some entries each. */
static void
begin(HybBalance *balance, int reach, int spare, bool thorough)
{
	hyb_balance_init(balance, ix, &children, reach, spare, thorough);
	for (int i = 0; i < NLEAVES; i++)
	{
		HybStepLeaf *leaf = &balance->leaves[i];

		if (unit_below(3) != 0)
			continue;
		leaf->touched = true;
		leaf->added = (int) unit_below(unit_below(4) == 0 ? 600 : 30);
		leaf->added_bytes = (Size) leaf->added * 9;
	}
}

static void
test_look(void)
{
	HybBalance	balance;

	begin(&balance, 8, 24, false);
	for (int i = 0; i < NLEAVES; i++)
	{
		Page		page = index_file_page(children.children[i].block);
		const HybStepLeaf *leaf = hyb_balance_look(&balance, i);
		double		content = hyb_balance_content(&balance, i, i + 1);

		CHECK(leaf->nitems == (int) hyb_page_opaque(page)->count, "%d items", leaf->nitems);
		CHECK(leaf->nitems - leaf->live == hyb_leaf_count_tombstones(page), "%d live", leaf->live);
		CHECK(fabs(leaf->fill - hyb_leaf_fill(page)) < 1e-9, "fill %f", leaf->fill);
		CHECK(fabs(leaf->fill - parts[i]) < 0.1, "leaf %d: fill %f for %f", i, leaf->fill, parts[i]);
		if (!leaf->touched)
		{
			CHECK(fabs(content - leaf->fill * leaf->live / leaf->nitems) < 1e-9, "content %f", content);
			CHECK(hyb_balance_is_small(&balance, i) == (content < SMALL_FILL), "content %f", content);
		}
		else if (leaf->added > 0)
			CHECK(content > leaf->fill * leaf->live / leaf->nitems, "added entries take nothing");
		CHECK(index_file_held() == 0, "a page is held");
	}
	CHECK(hyb_balance_count(2.0) == 2 && hyb_balance_count(2.01) == 3, "leaves of a content");
}

/* The leaves that [from, to) become without a neighbour, each group by itself. */
static int
leaves_apart(HybBalance *balance, int from, int to)
{
	int			n = 0;

	for (int i = from; i < to; i++)
	{
		int			first = i;

		if (!balance->leaves[i].touched)
		{
			n++;
			continue;
		}
		while (i + 1 < to && balance->leaves[i + 1].touched)
			i++;
		n += hyb_balance_count(hyb_balance_content(balance, first, i + 1));
	}
	return n;
}

/*
 * The leaves that joining [first, last) with the group [from, to) saves, with room to
 * spare.  Touched neighbours count one by one, as if each was left alone.
 */
static int
saved_by(HybBalance *balance, int first, int from, int to, int last)
{
	int			apart = leaves_apart(balance, from, to);

	for (int i = first; i < last; i++)
		if (i < from || i >= to)
			apart += leaves_apart(balance, i, i + 1);
	return apart - (int) ceil(hyb_balance_content(balance, first, last) / JOINED_FILL);
}

static int
untouched_in(const HybBalance *balance, int from, int to)
{
	int			n = 0;

	for (int i = from; i < to; i++)
		n += !balance->leaves[i].touched;
	return n;
}

/* The greatest value of a window around a group, or 0. */
static int
best_value(HybBalance *balance, int from, int to, int lo, int hi)
{
	int			reach = Min(balance->reach, LEAF_WORTH);
	int			best = 0;

	for (int left = 0; left <= reach && from - left >= lo; left++)
		for (int right = 0; left + right <= reach && to + right <= hi; right++)
		{
			int			saved = saved_by(balance, from - left, from, to, to + right);
			int			cost = untouched_in(balance, from - left, to + right);

			if (left + right > 0 && saved > 0 && cost <= balance->spare)
				best = Max(best, LEAF_WORTH * saved - cost);
		}
	return best;
}

/* One group after the other, as a step does. */
static void
test_run(void)
{
	HybBalance	balance;
	bool		thorough = unit_below(2) == 0;
	int			lo = 0;
	int			to;

	begin(&balance, 1 + (int) unit_below(8), (int) unit_below(25), thorough);
	for (int from = 0; from < NLEAVES; from = Max(to, lo))
	{
		bool		touched = balance.leaves[from].touched;
		int			spare = balance.spare;
		double		content;
		bool		fits;
		int			value;
		int			first;
		int			last;
		int			cost;

		for (to = from + 1; touched && to < NLEAVES && balance.leaves[to].touched;)
			to++;
		if (!touched && !(thorough && hyb_balance_is_small(&balance, from)))
			continue;
		content = hyb_balance_content(&balance, from, to);
		fits = touched && hyb_balance_count(content) <= to - from &&
			content >= SMALL_FILL * hyb_balance_count(content);
		value = best_value(&balance, from, to, lo, NLEAVES);
		hyb_balance_run(&balance, from, to, lo, NLEAVES);

		for (first = from; first > lo && balance.leaves[first - 1].rewrite;)
			first--;
		for (last = to; last < NLEAVES && balance.leaves[last].rewrite;)
			last++;
		cost = balance.leaves[from].rewrite ? untouched_in(&balance, first, last) : 0;
		for (int i = lo; i < NLEAVES; i++)
			CHECK(!balance.leaves[i].rewrite || (i >= first && i < last),
				  "leaf %d is rewritten with the group %d to %d", i, from, to);
		for (int i = from; i < to && touched; i++)
			CHECK(balance.leaves[i].rewrite, "a touched leaf is not rewritten");
		CHECK(spare - balance.spare == cost && balance.spare >= 0, "%d neighbours, %d counted", cost,
			  spare - balance.spare);
		CHECK(first >= from - balance.reach && last <= to + balance.reach, "neighbours beyond the reach");
		if (fits)
			CHECK(first == from && last == to, "a group that fits its leaves takes neighbours");
		else if (cost > 0 || (first < from || last > to))
		{
			int			saved = saved_by(&balance, first, from, to, last);

			CHECK(LEAF_WORTH * saved > cost, "%d neighbours are rewritten for %d leaves", cost, saved);
			CHECK(!thorough || LEAF_WORTH * saved - cost == value,
				  "a window is worth %d, another one %d", LEAF_WORTH * saved - cost, value);
		}
		else
			CHECK(value == 0 || !thorough, "a window worth %d was left", value);
		lo = Max(lo, last);
	}
}

/* Gaps between groups are closed only as a whole, and where that saves leaves. */
static void
test_bridge(void)
{
	HybBalance	balance;
	bool		before[NLEAVES];
	int			to = (int) unit_below(NLEAVES + 1);
	int			start = -1;			/* of the leaves that are rewritten now */
	int			apart = 0;
	int			spare = (int) unit_below(25);
	int			closed = 0;

	begin(&balance, 1 + (int) unit_below(8), spare, false);
	for (int i = 0; i < NLEAVES; i++)
		before[i] = balance.leaves[i].rewrite = balance.leaves[i].touched;
	hyb_balance_bridge(&balance, to);
	for (int i = 0; i < NLEAVES; i++)
		CHECK(balance.leaves[i].rewrite || !before[i], "leaf %d is not rewritten any more", i);
	for (int i = to; i < NLEAVES; i++)
		CHECK(balance.leaves[i].rewrite == before[i], "leaf %d is beyond", i);
	for (int i = 0; i <= to; i++)
	{
		bool		rewrite = i < to && balance.leaves[i].rewrite;

		if (rewrite && start < 0)
		{
			start = i;
			apart = 0;
			CHECK(before[i], "a gap at the beginning is closed");
		}
		if (rewrite && !before[i])
		{
			int			end = i;

			while (end < to && !before[end])
				end++;
			CHECK(end < to && end - i <= balance.reach, "a gap of %d is closed", end - i);
			apart += end - i;
			closed += end - i;
			for (; i < end; i++)
				CHECK(balance.leaves[i].rewrite, "a part of a gap is closed");
		}
		if (!rewrite && start >= 0)
		{
			if (apart > 0)
				CHECK(hyb_balance_count(hyb_balance_content(&balance, start, i)) <
					  leaves_apart(&balance, start, i), "closing a gap saves nothing");
			start = -1;
		}
	}
	CHECK(closed == spare - balance.spare && balance.spare >= 0, "%d leaves are taken of %d, %d are left",
		  closed, spare, balance.spare);
}

/* Half-full leaves beside one that splits take up what it has too much. */
static void
test_example(void)
{
	HybBalance	balance;
	int			full = -1;

	for (int i = 1; i + 1 < NLEAVES; i++)
	{
		hyb_balance_init(&balance, ix, &children, 8, 24, false);
		if (hyb_balance_content(&balance, i, i + 1) > 0.7 &&
			hyb_balance_content(&balance, i + 1, i + 2) < 0.3)
			full = i;
	}
	if (full < 0)
		return;
	balance.leaves[full].touched = true;
	balance.leaves[full].added = 10 * balance.leaves[full].nitems;
	balance.leaves[full].added_bytes = (Size) (BLCKSZ * (1.05 - balance.leaves[full].fill));
	if (hyb_balance_content(&balance, full, full + 2) < JOINED_FILL * 2 &&
		hyb_balance_count(hyb_balance_content(&balance, full, full + 1)) == 2)
	{
		hyb_balance_run(&balance, full, full + 1, full, full + 2);
		CHECK(balance.leaves[full].rewrite && balance.leaves[full + 1].rewrite,
			  "a leaf that splits leaves its neighbour alone");
	}
}

int
main(void)
{
	if (setjmp(hyb_fuzz_error) != 0)
		CHECK(false, "an error was raised");
	else
		for (int round = 0; round < 20; round++)
		{
			make_leaves();
			test_look();
			for (int i = 0; i < ROUNDS / 20; i++)
			{
				test_run();
				test_bridge();
			}
			test_example();
			free(ix->desc);
			hyb_fuzz_reset();
		}
	return unit_report("balance");
}
