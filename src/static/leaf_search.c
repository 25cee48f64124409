/*
 * leaf_search.c
 *		Finding a position in a static leaf.
 *
 * Whole columns are searched one after the other, each among the rows that
 * agree in the columns before it, and as far as possible in their packed
 * form: only comparator columns are turned back into values.
 */
#include "compat.h"

#include "key/bytes.h"
#include "static/leaf_format.h"

/* Rows [lo, hi). */
typedef struct RowRange
{
	int			lo;
	int			hi;
} RowRange;

/* Codes [lo, hi) of an integer column; *_end: above all codes. */
typedef struct CodeRange
{
	uint64		lo;
	uint64		hi;
	bool		lo_end;
	bool		hi_end;
} CodeRange;

/* Shrinks the range by asking the column's order for each row tried. */
static void
narrow_by_values(HybLeaf *leaf, int i, const HybValue *val, RowRange *range)
{
	const HybColumn *att = &leaf->desc->cols[i];
	int			lo = range->lo;
	int			hi = range->hi;
	int			upper_lo;
	int			upper_hi = hi;

	/* moves the column's string buffer away from that row */
	leaf->scratch_row = -1;
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;
		HybValue	v;
		int			c;

		hyb_leaf_value(leaf, i, mid, &v);
		c = hyb_value_compare(att, &v, val);
		if (c < 0)
			lo = mid + 1;
		else
		{
			hi = mid;
			if (c > 0)
				upper_hi = mid;
		}
	}
	range->lo = lo;

	/* rows of [lo, upper_hi) are not below; find the first one above */
	upper_lo = lo;
	while (upper_lo < upper_hi)
	{
		int			mid = (upper_lo + upper_hi) / 2;
		HybValue	v;

		hyb_leaf_value(leaf, i, mid, &v);
		if (hyb_value_compare(att, &v, val) <= 0)
			upper_lo = mid + 1;
		else
			upper_hi = mid;
	}
	range->hi = upper_lo;
}

/* Codes of the values that are equal to val; see HybLeafNulls. */
static void
code_range(const HybLeafColumn *col, const HybColumn *att,
		   const HybValue *val, CodeRange *r)
{
	uint64		first = val->ival;
	uint64		last = val->ival;
	uint64		base = 0;

	r->lo_end = r->hi_end = false;
	if (val->isnull)
	{
		switch (col->null_mode)
		{
			case HYB_NULLS_LOW:
				r->lo = 0;
				r->hi = 1;
				break;
			case HYB_NULLS_HIGH:
				r->lo = col->null_code;
				r->hi = 0;
				r->hi_end = true;
				break;
			default:
				r->lo = r->hi = 0;
				r->lo_end = r->hi_end = !att->nulls_first;
				break;
		}
		return;
	}

	if (att->compare == HYB_COMPARE_FLOAT)
	{
		uint64		zero = UINT64CONST(1) << (8 * att->width - 1);

		if (first == zero || first == zero - 1)
		{
			first = zero - 1;
			last = zero;
		}
	}
	if (col->null_mode != HYB_NULLS_NONE)
	{
		uint64		least = col->null_mode == HYB_NULLS_LOW;

		base = col->min - least;
		if (last < col->min)
		{
			r->lo = r->hi = least;
			return;
		}
		first = Max(first, col->min);
		if (col->null_mode == HYB_NULLS_LOW &&
			(first - col->min == PG_UINT64_MAX))
		{
			r->lo = r->hi = 0;
			r->lo_end = r->hi_end = true;
			return;
		}
	}
	r->lo = first - base;
	r->hi = last - base + 1;
	r->hi_end = r->hi == 0;
	if (col->null_mode == HYB_NULLS_HIGH)
	{
		r->lo = Min(r->lo, col->null_code);
		if (r->hi_end || r->hi > col->null_code)
			r->hi = col->null_code;
		r->hi_end = false;
	}
}

/* An integer column whose codes ascend with its order. */
static void
narrow_ints(HybLeaf *leaf, int i, const HybValue *val, RowRange *range)
{
	const HybColumn *att = &leaf->desc->cols[i];
	const HybLeafColumn *col = &leaf->cols[i];
	const HybSeq *seq = &col->seq;
	CodeRange	r;
	uint32		lo;

	code_range(col, att, val, &r);
	if (r.lo_end)
	{
		range->lo = range->hi;
		return;
	}
	lo = hyb_seq_lower_bound(seq, range->lo, range->hi, r.lo);
	range->lo = lo;
	if (lo == range->hi || r.hi_end)
		return;
	if (r.lo == r.hi || hyb_seq_get(seq, lo) >= r.hi)
		range->hi = lo;
	else if ((leaf->desc->natts == 1 && r.hi == r.lo + 1) ||
			 lo + 1 == range->hi || hyb_seq_get(seq, lo + 1) >= r.hi)
		range->hi = lo + 1;
	else
		range->hi = hyb_seq_lower_bound(seq, lo + 1, range->hi, r.hi);
}

/* Order of two whole strings of a column ordered by memcmp. */
static inline int
compare_bytes(const uint8 *a, uint32 alen, const uint8 *b, uint32 blen,
			  bool end_high)
{
	int			c = memcmp(a, b, Min(alen, blen));

	if (c != 0 || alen == blen)
		return c;
	return (alen < blen) == end_high ? 1 : -1;
}

/*
 * Strings of one length.  What is compared after the common prefix: the heads
 * as integers, then the tails of rows with the same head.
 */
static void
narrow_split(HybLeaf *leaf, int i, const HybValue *val,
			 const uint8 *target, uint32 len, bool end_high, RowRange *range)
{
	const HybLeafColumn *col = &leaf->cols[i];
	uint32		head = Min(col->rest_len, HYB_LEAF_SPLIT_HEAD);
	int			c = memcmp(col->prefix, target, Min(col->prefix_len, len));
	uint64		v = 0;

	if (c == 0 && len < col->prefix_len + head)
	{
		narrow_by_values(leaf, i, val, range);
		return;
	}
	if (c != 0)
	{
		range->lo = range->hi = (c < 0 ? range->hi : range->lo);
		return;
	}
	target += col->prefix_len;
	for (uint32 j = 0; j < head; j++)
		v = (v << 8) | target[j];
	range->lo = hyb_seq_lower_bound(&col->seq, range->lo, range->hi, v);
	if (range->lo == range->hi)
		return;
	if (hyb_seq_get(&col->seq, range->lo) != v)
		range->hi = range->lo;
	else if (v != PG_UINT64_MAX && range->lo + 1 < range->hi)
	{
		if (hyb_seq_get(&col->seq, range->lo + 1) != v)
			range->hi = range->lo + 1;
		else
			range->hi = hyb_seq_lower_bound(&col->seq, range->lo + 1,
											range->hi, v + 1);
	}
	if (range->lo + 1 < range->hi)
		narrow_by_values(leaf, i, val, range);
	else if (range->lo < range->hi)
	{
		uint32		tail = col->rest_len - head;

		c = compare_bytes(col->tails + (Size) range->lo * tail, tail,
						  target + head, len - col->prefix_len - head,
						  end_high);
		if (c < 0)
			range->lo = range->hi;
		else if (c > 0)
			range->hi = range->lo;
	}
}

/* A string column ordered by memcmp. */
static void
narrow_strings(HybLeaf *leaf, int i, const HybValue *val, RowRange *range)
{
	const HybColumn *att = &leaf->desc->cols[i];
	const HybLeafColumn *col = &leaf->cols[i];
	uint8		null_flag = hyb_null_flag(att);
	bool		end_high = hyb_inverted(att);
	const uint8 *target;
	uint32		len;
	int			lo;
	bool		equal;
	int			c;

	/*
	 * Such a column has no length word: the flag byte stands right before the
	 * value in the key that the value points into.
	 */
	Assert(!hyb_has_length_word(att));
	target = val->isnull ? &null_flag : val->ptr - 1;
	len = val->isnull ? 1 : val->len + 1;

	if (col->encoding == HYB_LEAF_CONST)
	{
		c = compare_bytes(col->prefix, col->prefix_len, target, len, end_high);
		if (c != 0)
			range->lo = range->hi = (c < 0 ? range->hi : range->lo);
		return;
	}
	if (col->encoding == HYB_LEAF_SPLIT)
	{
		narrow_split(leaf, i, val, target, len, end_high, range);
		return;
	}

	lo = hyb_front_search(&col->front, range->lo, range->hi, target, len,
						  end_high, false, &equal);
	if (lo >= 0)
	{
		range->lo = lo;
		if (!equal)
			range->hi = lo;
		else if (leaf->desc->natts == 1)
			range->hi = lo + 1;
		else
			range->hi = hyb_front_search(&col->front, lo, range->hi, target,
										 len, end_high, true, &equal);
	}
	if (lo < 0 || range->hi < 0)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A front-coded string of the leaf is malformed.");
}

/* Shrinks the range to the rows whose column i equals val. */
static void
narrow(HybLeaf *leaf, int i, const HybValue *val, RowRange *range)
{
	const HybColumn *att = &leaf->desc->cols[i];
	const HybLeafColumn *col = &leaf->cols[i];

	if (att->compare == HYB_COMPARE_PROC)
		narrow_by_values(leaf, i, val, range);
	else if (att->store == HYB_STORE_BYTES)
		narrow_strings(leaf, i, val, range);
	else if (col->encoding == HYB_LEAF_INT &&
			 col->null_mode != HYB_NULLS_BITMAP &&
			 (att->compare == HYB_COMPARE_MEM || !att->desc))
		narrow_ints(leaf, i, val, range);
	else
		narrow_by_values(leaf, i, val, range);
}

/*
 * First row above a position of raw bytes, taken as BEFORE or AFTER.  Such
 * positions are separators, mostly this leaf's own fences: the first and the
 * last row are tried first.
 */
static int
raw_bound(HybLeaf *leaf, const HybPos *pos, HybTie tie)
{
	HybPos		bound = *pos;
	int			lo = 0;
	int			hi = leaf->nrows;

	bound.tie = tie;
	for (int probe = 0; lo < hi; probe++)
	{
		int			row = probe == 0 ? 0 : probe == 1 ? hi - 1 : (lo + hi) / 2;

		if (hyb_pos_compare_values(leaf->desc, hyb_leaf_row(leaf, row), NULL,
								   &bound, NULL) < 0)
			lo = row + 1;
		else
			hi = row;
	}
	return lo;
}

/*
 * Shrinks the range to the rows that start with the columns of pos.  Returns
 * false if pos is not made of whole columns.
 */
static bool
narrow_columns(HybLeaf *leaf, const HybPos *pos, RowRange *range)
{
	HybValue	vals[INDEX_MAX_KEYS];

	if (pos->ncols == 0 ||
		hyb_key_split(leaf->desc, pos->key, pos->len, pos->ncols, vals) != pos->len)
		return false;
	for (int i = 0; i < pos->ncols && range->lo < range->hi; i++)
		narrow(leaf, i, &vals[i], range);
	return true;
}

int
hyb_leaf_search_equal(HybLeaf *leaf, const HybPos *pos, int *row, int *end_row)
{
	RowRange	range = {0, leaf->nrows};

	if (!narrow_columns(leaf, pos, &range))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "It was searched for a malformed key.");
	*row = range.lo;
	*end_row = range.hi;
	return hyb_leaf_row_start(leaf, range.lo);
}

int
hyb_leaf_search(HybLeaf *leaf, const HybPos *pos, int *row)
{
	const HybKeyDesc *desc = leaf->desc;
	RowRange	range = {0, leaf->nrows};
	int			item;
	int			end;

	if (pos->len == 0)
	{
		*row = pos->tie == HYB_AFTER ? leaf->nrows : 0;
		return pos->tie == HYB_AFTER ? leaf->nitems : 0;
	}

	if (!narrow_columns(leaf, pos, &range))
	{
		if (!desc->all_mem)
			hyb_corrupted(leaf->rel, leaf->blkno,
						  "It was searched for a malformed key.");
		range.lo = raw_bound(leaf, pos, pos->tie == HYB_AFTER ? HYB_AFTER : HYB_BEFORE);
		range.hi = range.lo;
		if (pos->tie == HYB_AT)
			range.hi = raw_bound(leaf, pos, HYB_AFTER);
	}

	if (pos->tie != HYB_AT || range.lo == range.hi)
	{
		*row = pos->tie == HYB_AFTER ? range.hi : range.lo;
		return hyb_leaf_row_start(leaf, *row);
	}

	end = hyb_leaf_row_start(leaf, range.hi);
	item = hyb_leaf_search_tid(leaf, hyb_leaf_row_start(leaf, range.lo), end,
							   &pos->tid);
	*row = item == end ? range.hi : hyb_leaf_row_of_item(leaf, item);
	return item;
}
