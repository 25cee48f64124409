/*
 * leaf_build.c
 *		Filling leaves with a sorted stream of entries.
 *
 * Entries wait, column by column, until they surely exceed a page.  Then the
 * largest number of them that fits is looked for by planning (leaf_plan.c)
 * for different numbers, each guessed from the sizes already known; a handful
 * of plans find it.
 */
#include "compat.h"

#include "static/leaf_format.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define FIRST_CHECK		32

/*
 * Free bytes of a page that end the search for the last entry that fits, or
 * the part of an average entry that does.
 */
#define GOOD_ENOUGH		3
#define GOOD_ENOUGH_PART	0.75

HybLeafBuilder *
hyb_leaf_builder_create(const HybIndex *ix, uint64 stamp, HybLeafEmit emit,
						void *arg)
{
	HybLeafBuilder *b = palloc0(sizeof(HybLeafBuilder));
	int			natts = ix->desc->natts;

	b->ix = ix;
	b->desc = ix->desc;
	b->stamp = stamp;
	b->emit = emit;
	b->arg = arg;
	b->context = CurrentMemoryContext;
	b->next_check = FIRST_CHECK;
	b->capacity = HYB_PAGE_CAPACITY;
	b->max_items = HYB_LEAF_MAX_ITEMS;
	b->cols = palloc0(sizeof(HybBuildColumn) * natts);
	for (int i = 0; i < natts; i++)
		b->cols[i].is_int = ix->desc->cols[i].store == HYB_STORE_INT;
	b->plans[0].cols = palloc0(sizeof(HybPlanColumn) * natts);
	b->plans[1].cols = palloc0(sizeof(HybPlanColumn) * natts);
	b->values = palloc(sizeof(uint64) * HYB_LEAF_MAX_ITEMS);
	b->values2 = palloc(sizeof(uint64) * HYB_LEAF_MAX_ITEMS);
	b->low.tie = HYB_BEFORE;
	return b;
}

void
hyb_leaf_builder_free(HybLeafBuilder *b)
{
	for (int i = 0; i < b->desc->natts; i++)
	{
		HybBuildColumn *col = &b->cols[i];

		if (b->rows_alloc > 0 && col->is_int)
		{
			pfree(col->isnull);
			pfree(col->ints);
		}
		else if (b->rows_alloc > 0)
		{
			pfree(col->off);
			pfree(col->len);
			pfree(col->lcp);
			pfree(col->code.rest);
		}
		if (col->arena.data != NULL)
			pfree(col->arena.data);
	}
	if (b->tids != NULL)
		pfree(b->tids);
	if (b->row_start != NULL)
		pfree(b->row_start);
	if (b->low_key.data != NULL)
		pfree(b->low_key.data);
	if (b->left_key.data != NULL)
		pfree(b->left_key.data);
	if (b->right_key.data != NULL)
		pfree(b->right_key.data);
	pfree(b->cols);
	pfree(b->plans[0].cols);
	pfree(b->plans[1].cols);
	pfree(b->values);
	pfree(b->values2);
	pfree(b);
}

static void *
grow(HybLeafBuilder *b, void *array, Size size)
{
	if (array == NULL)
		return MemoryContextAlloc(b->context, size);
	return repalloc(array, size);
}

static pg_noinline void
grow_rows(HybLeafBuilder *b)
{
	int			n = Max(b->rows_alloc * 2, 512);

	b->row_start = grow(b, b->row_start, sizeof(uint32) * n);
	for (int i = 0; i < b->desc->natts; i++)
	{
		HybBuildColumn *col = &b->cols[i];

		if (col->is_int)
		{
			col->isnull = grow(b, col->isnull, n);
			col->ints = grow(b, col->ints, sizeof(uint64) * n);
		}
		else
		{
			col->off = grow(b, col->off, sizeof(uint32) * n);
			col->len = grow(b, col->len, sizeof(uint32) * n);
			col->lcp = grow(b, col->lcp, sizeof(uint32) * n);
			col->code.rest = grow(b, col->code.rest, sizeof(uint32) * n);
		}
	}
	b->rows_alloc = n;
}

/* ---- emitting ---- */

/* Columns of a waiting row. */
static void
waiting_row(const HybLeafBuilder *b, int row, HybValue *vals)
{
	for (int i = 0; i < b->desc->nkeys; i++)
	{
		const HybBuildColumn *col = &b->cols[i];

		vals[i].ival = 0;
		vals[i].ptr = NULL;
		vals[i].len = 0;
		if (col->is_int)
		{
			vals[i].isnull = col->isnull[row] != 0;
			vals[i].ival = col->ints[row];
		}
		else
		{
			vals[i].isnull = col->arena.data[col->off[row]] != HYB_FLAG_VALUE;
			vals[i].ptr = col->arena.data + col->off[row] + 1;
			vals[i].len = col->len[row] - 1;
		}
	}
}

static void
waiting_tid(const HybLeafBuilder *b, int item, ItemPointer tid)
{
	ItemPointerSet(tid, (BlockNumber) (b->tids[item] >> 16),
				   (OffsetNumber) (b->tids[item] & 0xFFFF));
}

/* Forget the first nitems items; their last row stays if it has more. */
static void
drop_items(HybLeafBuilder *b, int nitems)
{
	int			row = 0;
	int			end = b->nrows;
	int			nrows;

	/* the last row that begins at or before the first item kept */
	while (end - row > 1)
	{
		int			mid = (row + end) / 2;

		if (b->row_start[mid] <= nitems)
			row = mid;
		else
			end = mid;
	}
	nrows = b->nrows - row;

	for (int i = 0; i < b->desc->natts; i++)
	{
		HybBuildColumn *col = &b->cols[i];

		if (col->is_int)
		{
			if (col->nnulls > 0)
			{
				for (int r = 0; r < row; r++)
					col->nnulls -= col->isnull[r] != 0;
			}
			memmove(col->isnull, col->isnull + row, nrows);
			memmove(col->ints, col->ints + row, sizeof(uint64) * nrows);
		}
		else
		{
			uint32		first = col->off[row];

			for (int r = 0; r < nrows; r++)
				col->off[r] = col->off[r + row] - first;
			memmove(col->len, col->len + row, sizeof(uint32) * nrows);
			memmove(col->lcp, col->lcp + row, sizeof(uint32) * nrows);
			memmove(col->arena.data, col->arena.data + first,
					col->arena.len - first);
			col->arena.len -= first;
		}
	}
	b->row_start[0] = 0;
	for (int r = 1; r < nrows; r++)
		b->row_start[r] = b->row_start[r + row] - nitems;
	memmove(b->tids, b->tids + nitems, sizeof(uint64) * (b->nitems - nitems));
	b->nrows = nrows;
	b->nitems -= nitems;
}

/* Write the planned leaf and hand it over. */
static void
emit_leaf(HybLeafBuilder *b, const HybLeafPlan *plan)
{
	HybPos		next = {0};
	HybBuf		key;

	hyb_leaf_write(b, plan);

	if (plan->nitems < b->nitems)
	{
		HybValue	vals[INDEX_MAX_KEYS];
		ItemPointerData left_tid;
		ItemPointerData right_tid;
		bool		split = plan->nrows < b->nrows &&
			b->row_start[plan->nrows] == plan->nitems;

		b->left_key.len = 0;
		b->right_key.len = 0;
		waiting_row(b, plan->nrows - 1, vals);
		hyb_key_join(b->desc, vals, b->desc->nkeys, &b->left_key);
		if (split)
			waiting_row(b, plan->nrows, vals);
		hyb_key_join(b->desc, vals, b->desc->nkeys, &b->right_key);
		waiting_tid(b, plan->nitems - 1, &left_tid);
		waiting_tid(b, plan->nitems, &right_tid);
		if (!hyb_separator(b->desc, b->left_key.data, b->left_key.len, &left_tid,
						   b->right_key.data, b->right_key.len, &right_tid, &next))
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("entries for index \"%s\" do not ascend",
							RelationGetRelationName(b->ix->rel)),
					 errdetail("They come from a damaged leaf, or the operator class is inconsistent."),
					 errhint("Please REINDEX it.")));
	}

	b->nleaves++;
	b->emit(b->arg, (Page) b->page.data, &b->low, plan->nitems);

	/* the separator's key points into right_key: swap the buffers */
	key = b->low_key;
	b->low_key = b->right_key;
	b->right_key = key;
	b->low = next;

	b->last_nitems = plan->nitems;
	drop_items(b, plan->nitems);
}

static inline uint32
leaf_size(const HybLeafPlan *plan)
{
	return plan->size + hyb_leaf_hint_bytes(plan->nitems);
}

/*
 * Emit one leaf with as many of the waiting entries as fit.  `hi` items, more
 * than one, are known not to fit, with size hi_size (0 if not known).
 */
static void
emit_full_leaf(HybLeafBuilder *b, int hi, uint32 hi_size)
{
	HybLeafPlan *plan = &b->plans[0];
	HybLeafPlan *best = &b->plans[1];
	int			lo = 0;
	uint32		lo_size = HYB_LEAF_HEADER;
	int			guess;

	if (hi_size > 0)
		guess = (int) ((double) hi * b->capacity / hi_size);
	else
		guess = hi - 1;
	for (int round = 0; hi - lo > 1; round++)
	{
		guess = Max(lo + 1, Min(hi - 1, guess));
		hyb_leaf_plan(b, guess, plan);
		if (leaf_size(plan) <= b->capacity)
		{
			HybLeafPlan *swap = best;

			best = plan;
			plan = swap;
			lo = guess;
			lo_size = leaf_size(best);
			if (lo_size + GOOD_ENOUGH >= b->capacity ||
				lo_size + GOOD_ENOUGH_PART * lo_size / lo >= b->capacity)
				break;
		}
		else
		{
			hi = guess;
			hi_size = leaf_size(plan);
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
		hyb_leaf_plan(b, 1, best);
		if (leaf_size(best) > HYB_PAGE_CAPACITY)
			elog(ERROR, "entry of a hybrid index does not fit a page");
	}
	emit_leaf(b, best);
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
	hyb_leaf_prepare(b);
	if (b->nitems > b->max_items)
		emit_full_leaf(b, b->max_items + 1, 0);
	else
	{
		hyb_leaf_plan(b, b->nitems, &b->plans[0]);
		size = leaf_size(&b->plans[0]);
		if (size <= b->capacity)
		{
			double		expected = (double) b->nitems * b->capacity / size;

			/* early guesses come from few entries: approach in steps */
			expected = Min(expected * 1.02 + 4, b->nitems * 4.0);
			b->next_check = (int) Min(expected, b->max_items + 1);
			b->next_check = Max(b->next_check, b->nitems + 1);
			return;
		}
		emit_full_leaf(b, b->nitems, size);
	}
	b->next_check = b->last_nitems + b->last_nitems / 32 + 8;
	b->next_check = Min(b->next_check, b->max_items + 1);
	b->next_check = Max(b->next_check, Max(b->nitems, b->hold) + 1);
}

void
hyb_leaf_builder_aim(HybLeafBuilder *b, double part, int hold)
{
	Assert(part > 0 && part <= 1);
	b->capacity = (uint32) (HYB_PAGE_CAPACITY * part);
	b->max_items = Max((int) (HYB_LEAF_MAX_ITEMS * part), 1);
	b->hold = hold;
	b->share = true;
	b->next_check = Max(FIRST_CHECK, hold + 1);
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
	hyb_leaf_plan(b, half, &b->plans[0]);
	if (leaf_size(&b->plans[0]) > HYB_PAGE_CAPACITY)
		return false;
	emit_leaf(b, &b->plans[0]);
	return true;
}

int
hyb_leaf_builder_finish(HybLeafBuilder *b)
{
	while (b->nitems > 0)
	{
		uint32		size = 0;

		hyb_leaf_prepare(b);
		if (b->nitems <= HYB_LEAF_MAX_ITEMS)
		{
			hyb_leaf_plan(b, b->nitems, &b->plans[0]);
			size = leaf_size(&b->plans[0]);
			if (size <= HYB_PAGE_CAPACITY)
			{
				emit_leaf(b, &b->plans[0]);
				continue;
			}
		}
		if (b->share && emit_half(b))
			continue;
		emit_full_leaf(b, Min(b->nitems, b->max_items + 1),
					   b->nitems <= b->max_items ? size : 0);
	}
	return b->nleaves;
}

/* ---- adding ---- */

/*
 * Append a string to the arena, not yet to the rows, and set its common
 * prefix with the last row.  Returns whether it equals that row's.
 */
static inline bool
add_string(HybLeafBuilder *b, HybBuildColumn *col, const HybColumn *att,
		   const HybValue *val)
{
	uint32		len = val->isnull ? 1 : val->len + 1;
	uint32		last = b->nrows - 1;
	uint8	   *s;

	if (unlikely(col->arena.cap - col->arena.len < len))
	{
		MemoryContext old = MemoryContextSwitchTo(b->context);

		hyb_buf_reserve(&col->arena, len);
		MemoryContextSwitchTo(old);
	}
	s = col->arena.data + col->arena.len;
	if (val->isnull)
		s[0] = att->nulls_first ? HYB_FLAG_NULL_FIRST : HYB_FLAG_NULL_LAST;
	else
	{
		s[0] = HYB_FLAG_VALUE;
		if (val->len > 0)
			memcpy(s + 1, val->ptr, val->len);
	}
	col->new_lcp = 0;
	if (b->nrows == 0)
		return false;
	col->new_lcp = hyb_common_prefix(s, col->arena.data + col->off[last],
									 Min(len, col->len[last]));
	return col->new_lcp == len && len == col->len[last];
}

static pg_noinline void
grow_items(HybLeafBuilder *b)
{
	b->items_alloc = Max(b->items_alloc * 2, 1024);
	b->tids = grow(b, b->tids, sizeof(uint64) * b->items_alloc);
}

void
hyb_leaf_builder_add(HybLeafBuilder *b, const HybValue *vals,
					 const ItemPointerData *tid)
{
	const HybKeyDesc *desc = b->desc;
	bool		same = b->nrows > 0;

	if (unlikely(b->nitems == b->items_alloc))
		grow_items(b);

	for (int i = 0; i < desc->natts; i++)
	{
		HybBuildColumn *col = &b->cols[i];

		if (!col->is_int)
			same &= add_string(b, col, &desc->cols[i], &vals[i]);
		else if (same)
			same = (col->isnull[b->nrows - 1] != 0) == vals[i].isnull &&
				(vals[i].isnull || col->ints[b->nrows - 1] == vals[i].ival);
	}

	if (!same)
	{
		int			row = b->nrows;

		if (unlikely(row == b->rows_alloc))
			grow_rows(b);
		for (int i = 0; i < desc->natts; i++)
		{
			HybBuildColumn *col = &b->cols[i];

			if (col->is_int)
			{
				col->isnull[row] = vals[i].isnull;
				col->ints[row] = vals[i].isnull ? 0 : vals[i].ival;
				col->nnulls += vals[i].isnull;
			}
			else
			{
				col->off[row] = col->arena.len;
				col->len[row] = vals[i].isnull ? 1 : vals[i].len + 1;
				col->lcp[row] = col->new_lcp;
				col->arena.len += col->len[row];
			}
		}
		b->row_start[row] = b->nitems;
		b->nrows++;
	}
	b->tids[b->nitems++] =
		((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |
		ItemPointerGetOffsetNumberNoCheck(tid);

	if (unlikely(b->nitems >= b->next_check))
		check_full(b);
}

/*
 * The strings of n rows of a leaf, behind those that wait.
 */
static void
add_leaf_strings(HybLeafBuilder *b, HybLeaf *leaf, int i, int row, int n)
{
	HybBuildColumn *col = &b->cols[i];

	for (int r = 0; r < n; r++)
	{
		int			at = b->nrows + r;
		HybValue	val;
		uint32		len;
		uint8	   *s;

		hyb_leaf_value(leaf, i, row + r, &val);
		len = val.isnull ? 1 : val.len + 1;
		if (unlikely(col->arena.cap - col->arena.len < len))
		{
			MemoryContext old = MemoryContextSwitchTo(b->context);

			hyb_buf_reserve(&col->arena, len);
			MemoryContextSwitchTo(old);
		}
		s = col->arena.data + col->arena.len;
		s[0] = !val.isnull ? HYB_FLAG_VALUE :
			b->desc->cols[i].nulls_first ? HYB_FLAG_NULL_FIRST : HYB_FLAG_NULL_LAST;
		if (len > 1)
			memcpy(s + 1, val.ptr, len - 1);
		col->off[at] = col->arena.len;
		col->len[at] = len;
		col->lcp[at] = at == 0 ? 0 :
			hyb_common_prefix(s, col->arena.data + col->off[at - 1],
							  Min(len, col->len[at - 1]));
		col->arena.len += len;
	}
}

/*
 * First items of the rows, from `row` on, that begin within items [from, to);
 * returns how many there are.
 */
static int
rows_begun(HybLeafBuilder *b, const HybLeaf *leaf, int row, int from, int to)
{
	int			n = Min(leaf->nrows - row, to - from);
	int			last = from - 1;

	if (leaf->unique_rows)
	{
		for (int r = 0; r < n; r++)
			b->row_start[b->nrows + r] = b->nitems + r;
		return n;
	}
	if (n <= 0)
		return 0;
	hyb_seq_decode(&leaf->row_starts, row, n, b->values);
	for (int r = 0; r < n; r++)
	{
		if (b->values[r] >= to)
			return r;
		if ((int) b->values[r] <= last)
			hyb_corrupted(leaf->rel, leaf->blkno,
						  "The rows of the leaf overlap.");
		last = (int) b->values[r];
		b->row_start[b->nrows + r] = b->nitems + (last - from);
	}
	return n;
}

void
hyb_leaf_builder_add_leaf(HybLeafBuilder *b, HybLeaf *leaf, int from, int to)
{
	int			row;
	int			row_end;

	Assert(leaf->tombstones == NULL);
	if (from >= to)
		return;

	/* the first row may go on with the one that came last */
	row = hyb_leaf_row_of_item(leaf, from);
	row_end = Min(hyb_leaf_row_start(leaf, row + 1), to);
	while (from < row_end)
	{
		ItemPointerData tids[64];
		int			n = Min(row_end - from, (int) lengthof(tids));

		hyb_leaf_tids(leaf, from, n, tids);
		for (int i = 0; i < n; i++)
			hyb_leaf_builder_add(b, hyb_leaf_row(leaf, row), &tids[i]);
		from += n;
	}
	row++;
	leaf->scratch_row = -1;

	/* all others are different from the row before them */
	while (from < to)
	{
		int			n = Min(to - from, Max(b->next_check - b->nitems, 1));
		int			nrows;

		while (b->nitems + n > b->items_alloc)
			grow_items(b);
		while (b->nrows + n > b->rows_alloc)
			grow_rows(b);
		nrows = rows_begun(b, leaf, row, from, from + n);
		for (int i = 0; i < b->desc->natts && nrows > 0; i++)
		{
			HybBuildColumn *col = &b->cols[i];

			if (!col->is_int)
				add_leaf_strings(b, leaf, i, row, nrows);
			else
			{
				hyb_leaf_ints(leaf, i, row, nrows, col->ints + b->nrows,
							  col->isnull + b->nrows);
				if (leaf->cols[i].encoding == HYB_LEAF_NULLS ||
					leaf->cols[i].null_mode != HYB_NULLS_NONE)
					for (int r = 0; r < nrows; r++)
						col->nnulls += col->isnull[b->nrows + r];
			}
		}
		hyb_leaf_tid_words(leaf, from, n, b->tids + b->nitems);
		b->nrows += nrows;
		b->nitems += n;
		row += nrows;
		from += n;
		if (b->nitems >= b->next_check)
			check_full(b);
	}
}
