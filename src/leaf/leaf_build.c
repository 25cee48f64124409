/*
 * leaf_build.c
 *		Filling leaves with a sorted stream of entries, whatever their layout.
 *
 * Entries wait until they surely exceed a page.  Then the builder looks for the
 * largest number of them that fits, by a handful of plans for different numbers.
 * It guesses each number from the sizes that it already knows.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "leaf/leaf.h"
#include "leaf/prefixes.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define FIRST_CHECK		32

/*
 * The search for the last entry that fits ends with this many free bytes, or with
 * this part of an average entry.
 */
#define GOOD_ENOUGH		3
#define GOOD_ENOUGH_PART	0.75

HybLeafBuilder *
hyb_leaf_builder_create(const HybIndex *ix, const HybLeafLayout *layout,
						uint64 stamp, HybLeafEmit emit, void *arg)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hybrid leaf builder",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	HybLeafBuilder *b = layout->create(ix);

	/* they grow where they are */
	hyb_buf_reserve(&b->low_key, 1);
	hyb_buf_reserve(&b->left_key, 1);
	hyb_buf_reserve(&b->right_key, 1);
	hyb_buf_reserve(&b->after_key, 1);
	hyb_buf_reserve(&b->before_key, 1);
	MemoryContextSwitchTo(old);
	b->layout = layout;
	b->desc = ix->desc;
	b->context = context;
	b->ix = ix;
	b->stamp = stamp;
	b->emit = emit;
	b->arg = arg;
	b->next_check = FIRST_CHECK;
	b->capacity = HYB_PAGE_CAPACITY;
	b->max_items = HYB_LEAF_MAX_ITEMS;
	b->low.tie = HYB_BEFORE;
	Assert(stamp > 0);
	hyb_leaf_builder_assert_valid(b);
	return b;
}

#ifdef USE_ASSERT_CHECKING

void
hyb_leaf_builder_assert_valid(const HybLeafBuilder *b)
{
	Assert(b->layout->keeps_keys || b->desc->truncated);
	Assert(b->nitems >= 0 && b->next_check >= 1);
	Assert(b->capacity > HYB_LEAF_HEADER && b->capacity <= HYB_PAGE_CAPACITY);
	Assert(b->max_items >= 1 && b->max_items <= HYB_LEAF_MAX_ITEMS);
	Assert(b->low.len == 0 || b->low.key == b->low_key.data);
	Assert(b->after.len == 0 || b->after.key == b->after_key.data);
	Assert(b->before.len == 0 || b->before.key == b->before_key.data);
}

/* A leaf as it is handed over: can it be opened again, and has it room for hints? */
static void
assert_image_valid(const HybLeafBuilder *b, const HybLeafPlan *plan)
{
	Page		page = (Page) b->page.data;
	HybLeaf		leaf = {0};

	hyb_page_assert_valid(page);
	hyb_leaf_open(&leaf, b->desc, page, b->ix->rel, InvalidBlockNumber);
	Assert(leaf.layout->number == plan->layout);
	Assert(leaf.nitems == plan->nitems && leaf.nrows == plan->nrows);
	Assert(leaf.content_len == HYB_LEAF_HEADER + plan->size);
	Assert(hyb_leaf_hints(page) != NULL);
	Assert(hyb_leaf_row_start(&leaf, 0) == 0);
	hyb_leaf_close(&leaf);
}

#else
#define assert_image_valid(b, plan) ((void) (plan))
#endif							/* USE_ASSERT_CHECKING */

void
hyb_leaf_builder_expect(HybLeafBuilder *b, uint64 entries, bool rows_on_disk)
{
	b->entries = entries;
	b->rows_on_disk = rows_on_disk;
}

void
hyb_leaf_builder_free(HybLeafBuilder *b)
{
	MemoryContextDelete(b->context);
}

/* ---- emitting ---- */

static void
plan_items(HybLeafBuilder *b, int slot, int nitems)
{
	Assert(nitems > 0 && nitems <= Min(b->nitems, HYB_LEAF_MAX_ITEMS));
	b->plans[slot].nitems = nitems;
	b->plans[slot].layout = b->layout->number;
	b->layout->plan(b, slot);
	Assert(b->plans[slot].nitems > 0 && b->plans[slot].nitems <= b->nitems);
	Assert(b->plans[slot].nrows > 0 && b->plans[slot].nrows <= b->plans[slot].nitems);
}

/* Bytes of a page that a planned leaf takes. */
static inline uint32
leaf_size(const HybLeafBuilder *b, int slot)
{
	const HybLeafPlan *plan = &b->plans[slot];

	return HYB_LEAF_HEADER + plan->size + hyb_leaf_hint_bytes(plan->nitems);
}

static void
write_leaf(HybLeafBuilder *b, int slot)
{
	const HybLeafPlan *plan = &b->plans[slot];
	Page		page = (Page) b->page.data;
	uint8	   *start;
	uint8	   *out;

	/* leaves the content zero, as packing wants it */
	hyb_page_init(page, b->ix, HYB_PAGE_LEAF, 0, b->stamp);

	start = out = (uint8 *) PageGetContents(page);
	hyb_store16(out, plan->nrows);
	hyb_store16(out + 2, plan->nitems);
	out[4] = (uint8) plan->layout;
	out = b->layout->write(b, slot, out + HYB_LEAF_HEADER);
	if (out - start != HYB_LEAF_HEADER + plan->size)
		elog(ERROR, "hybrid leaf has %d bytes instead of %u",
			 (int) (out - start), HYB_LEAF_HEADER + plan->size);
	((PageHeader) page)->pd_lower = (LocationIndex) ((char *) out - (char *) page);
	hyb_page_opaque(page)->count = plan->nitems;
	assert_image_valid(b, plan);
}

/* The separator between the first nitems waiting items and the others. */
static void
separate(HybLeafBuilder *b, int nitems, HybPos *separator)
{
	ItemPointerData left_tid;
	ItemPointerData right_tid;
	HybPos		left;
	HybPos		right;

	Assert(nitems > 0 && nitems < b->nitems);
	b->left_key.len = 0;
	b->right_key.len = 0;
	if (!b->layout->keeps_keys)
	{
		hyb_prefixes_separate(b, nitems, &b->right_key, separator);
		return;
	}
	hyb_columnar_waiting(b, nitems - 1, &b->left_key, &left_tid);
	hyb_columnar_waiting(b, nitems, &b->right_key, &right_tid);
	left = hyb_pos_at(b->desc, b->left_key.data, b->left_key.len, left_tid);
	right = hyb_pos_at(b->desc, b->right_key.data, b->right_key.len, right_tid);
	if (!hyb_separator(b->desc, &left, &right, separator))
		hyb_leaf_builder_descends(b);
}

/* Write the planned leaf and hand it over. */
static void
emit_planned_leaf(HybLeafBuilder *b, int slot)
{
	int			nitems = b->plans[slot].nitems;
	HybPos		next = {0};
	HybBuf		key;

	write_leaf(b, slot);

	if (nitems < b->nitems)
		separate(b, nitems, &next);

	b->emit(b->arg, (Page) b->page.data, &b->low);

	/* the separator's key points into right_key: swap the buffers */
	key = b->low_key;
	b->low_key = b->right_key;
	b->right_key = key;
	b->low = next;

	b->last_nitems = nitems;
	b->layout->drop(b, nitems);
	b->nitems -= nitems;
	hyb_leaf_builder_assert_valid(b);
}

/*
 * Emit one leaf with as many of the waiting entries as fit.  `hi` items, more
 * than one, are known not to fit, with size hi_size (0 if not known).
 */
static void
emit_full_leaf(HybLeafBuilder *b, int hi, uint32 hi_size)
{
	int			slot = 0;
	int			best = 1;
	int			lo = 0;
	uint32		lo_size = HYB_LEAF_HEADER;
	int			guess;

	Assert(hi > 1);
	if (hi_size > 0)
		guess = (int) ((double) hi * b->capacity / hi_size);
	else
		guess = hi - 1;
	for (int round = 0; hi - lo > 1; round++)
	{
		guess = Max(lo + 1, Min(hi - 1, guess));
		plan_items(b, slot, guess);
		if (b->plans[slot].nitems <= lo)
		{
			/* no leaf ends in between */
			hi = guess;
			hi_size = 0;
		}
		else if (leaf_size(b, slot) <= b->capacity)
		{
			best = slot;
			slot = 1 - slot;
			lo = b->plans[best].nitems;
			lo_size = leaf_size(b, best);
			if (lo_size + GOOD_ENOUGH >= b->capacity ||
				lo_size + GOOD_ENOUGH_PART * lo_size / lo >= b->capacity)
				break;
		}
		else
		{
			hi = guess;
			hi_size = leaf_size(b, slot);
		}
		if (hi_size > lo_size && round < 6)
			guess = lo + (int) ((double) (hi - lo) *
								(b->capacity - lo_size) / (hi_size - lo_size));
		else
			guess = (lo + hi) / 2;
	}
	if (lo == 0)
	{
		/* one entry always fits: HYB_MAX_ENTRY_SIZE is a third of a page */
		plan_items(b, best, 1);
		if (leaf_size(b, best) > HYB_PAGE_CAPACITY)
			hyb_leaf_builder_no_room(b);
	}
	/* a group may go on: what separates it from the next leaf is not known */
	if (b->plans[best].nitems >= b->nitems && !b->finishing)
		return;
	emit_planned_leaf(b, best);
}

/* Enough entries may wait: find out, and emit leaves that are full. */
static pg_noinline void
check_full(HybLeafBuilder *b)
{
	uint32		size;

	if (b->nitems <= b->hold)
	{
		b->next_check = b->hold + 1;
		return;
	}
	if (b->nitems > b->max_items)
		emit_full_leaf(b, b->max_items + 1, 0);
	else
	{
		plan_items(b, 0, b->nitems);
		size = leaf_size(b, 0);
		if (size <= b->capacity && b->plans[0].nitems < b->nitems)
			emit_planned_leaf(b, 0);
		else if (size <= b->capacity)
		{
			double		expected = (double) b->nitems * b->capacity / size;

			/* early guesses come from few entries: approach in steps */
			expected = Min(expected * 1.02 + 4, b->nitems * 4.0);
			b->next_check = (int) Min(expected, b->max_items + 1);
			b->next_check = Max(b->next_check, b->nitems + 1);
			return;
		}
		else
			emit_full_leaf(b, b->nitems, size);
	}
	b->next_check = b->last_nitems + b->last_nitems / 32 + 8;
	b->next_check = Min(b->next_check, b->max_items + 1);
	b->next_check = Max(b->next_check, Max(b->nitems, b->hold) + 1);
}

void
hyb_leaf_builder_aim(HybLeafBuilder *b, double part, int hold)
{
	Assert(part > 0 && part <= 1 && hold >= 0);
	b->capacity = (uint32) (HYB_PAGE_CAPACITY * part);
	b->max_items = Max((int) (HYB_LEAF_MAX_ITEMS * part), 1);
	b->hold = hold;
	b->share = true;
	b->next_check = Max(FIRST_CHECK, hold + 1);
	hyb_leaf_builder_assert_valid(b);
}

void
hyb_leaf_builder_start(HybLeafBuilder *b, const HybPos *low)
{
	Assert(b->nitems == 0);
	hyb_pos_copy(&b->low, &b->low_key, low);
}

void
hyb_leaf_builder_after(HybLeafBuilder *b, const HybPos *fence)
{
	Assert(b->nitems == 0);
	hyb_pos_copy(&b->after, &b->after_key, fence);
}

void
hyb_leaf_builder_before(HybLeafBuilder *b, const HybPos *fence)
{
	Assert(!b->finishing);
	hyb_pos_copy(&b->before, &b->before_key, fence);
}

/*
 * Emit the first half of what waits, if that fits a page.  The halves are of
 * items: of entries that differ much in size the second may not fit one page
 * either, and is split again.
 */
static bool
emit_half(HybLeafBuilder *b)
{
	int			half = b->nitems / 2;

	if (half == 0 || half > HYB_LEAF_MAX_ITEMS)
		return false;
	plan_items(b, 0, half);
	if (leaf_size(b, 0) > HYB_PAGE_CAPACITY)
		return false;
	emit_planned_leaf(b, 0);
	return true;
}

void
hyb_leaf_builder_finish(HybLeafBuilder *b)
{
	b->finishing = true;
	while (b->nitems > 0)
	{
		uint32		size = 0;

		if (b->nitems <= HYB_LEAF_MAX_ITEMS)
		{
			plan_items(b, 0, b->nitems);
			size = leaf_size(b, 0);
			if (size <= HYB_PAGE_CAPACITY)
			{
				emit_planned_leaf(b, 0);
				continue;
			}
		}
		if (b->share && emit_half(b))
			continue;
		emit_full_leaf(b, Min(b->nitems, b->max_items + 1),
					   b->nitems <= b->max_items ? size : 0);
	}
}

/* ---- adding ---- */

void
hyb_leaf_builder_add(HybLeafBuilder *b, const HybValue *vals,
					 const ItemPointerData *tid)
{
	Assert(!b->finishing && ItemPointerIsValid(tid));
	b->layout->add(b, vals, tid);
	if (unlikely(++b->nitems >= b->next_check))
		check_full(b);
}

static void
add_leaf_item(HybLeafBuilder *b, HybLeaf *leaf, int row, int item,
			  const ItemPointerData *tid)
{
	if (leaf->layout->keeps_keys)
	{
		hyb_leaf_builder_add(b, hyb_leaf_row(leaf, row), tid);
		return;
	}
	Assert(leaf->layout == b->layout);
	hyb_prefixes_add_from(b, leaf, row, item, tid);
	if (unlikely(++b->nitems >= b->next_check))
		check_full(b);
}

/* Items [from, to), those of `row` first. */
static void
add_leaf_rows(HybLeafBuilder *b, HybLeaf *leaf, int row, int from, int to)
{
	int			end = hyb_leaf_row_start(leaf, row + 1);

	while (from < to)
	{
		ItemPointerData tids[64];
		int			n = Min(to - from, (int) lengthof(tids));

		hyb_leaf_tids(leaf, from, n, tids);
		for (int i = 0; i < n; i++)
		{
			/* on a damaged leaf a row may have no items */
			while (from + i >= end)
				end = hyb_leaf_row_start(leaf, ++row + 1);
			add_leaf_item(b, leaf, row, from + i, &tids[i]);
		}
		from += n;
	}
}

#ifdef USE_ASSERT_CHECKING
static void
assert_no_tombstones(const HybLeaf *leaf, int from, int to)
{
	for (int i = from; i < to; i++)
		Assert(!hyb_leaf_is_tombstone(leaf, i));
}
#else
#define assert_no_tombstones(leaf, from, to) ((void) 0)
#endif

void
hyb_leaf_builder_add_leaf(HybLeafBuilder *b, HybLeaf *leaf, int from, int to)
{
	bool		one_by_one = leaf->layout != b->layout || b->layout->add_items == NULL;
	int			row = hyb_leaf_row_of_item(leaf, from);

	Assert(from >= 0 && from <= to && to <= leaf->nitems);
	assert_no_tombstones(leaf, from, to);
	if (from == to)
		return;

	/* the first row may go on with the one that came last; prefixes see that */
	if (one_by_one || b->layout->keeps_keys || b->nitems == 0 ||
		hyb_leaf_row_start(leaf, row) != from)
	{
		add_leaf_rows(b, leaf, row++, from, one_by_one ? to : from + 1);
		from = one_by_one ? to : from + 1;
	}

	/*
	 * the next items belong to it, or to rows that differ from the row before
	 * them
	 */
	while (from < to)
	{
		int			n = Min(to - from, Max(b->next_check - b->nitems, 1));
		int			begun = b->layout->add_items(b, leaf, row, from, n);

		if (begun > 0)
			leaf->scratch_row = -1;
		row += begun;
		b->nitems += n;
		from += n;
		if (b->nitems >= b->next_check)
			check_full(b);
	}
}
