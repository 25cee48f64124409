/*
 * columnar_search.c
 *		Finding rows in a columnar leaf.
 *
 * Whole columns are searched one after the other, each among the rows that
 * agree in the columns before it, and as far as possible in their packed
 * form: only comparator columns are turned back into values.
 */
#include "base/compat.h"

#include "key/key.h"
#include "leaf/columnar.h"

/* Shrinks the range by asking the column's order for each row tried. */
static void
narrow_by_values(HybLeaf *leaf, int i, const HybValue *val, HybRowRange *range)
{
	const HybColumn *att = &leaf->desc->cols[i];
	int			lo = range->lo;
	int			hi = range->hi;
	int			upper_lo;
	int			upper_hi = hi;

	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;
		HybValue	v;
		int			c;

		hyb_columnar_value(leaf, i, mid, &v);
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

		hyb_columnar_value(leaf, i, mid, &v);
		if (hyb_value_compare(att, &v, val) <= 0)
			upper_lo = mid + 1;
		else
			upper_hi = mid;
	}
	range->hi = upper_lo;
}

/* Shrinks the range to the nulls of an integer column, or to the other rows. */
static void
narrow_nulls(HybLeaf *leaf, int i, bool isnull, HybRowRange *range)
{
	bool		nulls_first = leaf->desc->cols[i].nulls_first;
	int			lo = range->lo;
	int			hi = range->hi;

	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (hyb_int_is_null(&leaf->columnar->cols[i], mid) == nulls_first)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (isnull == nulls_first)
		range->hi = lo;
	else
		range->lo = lo;
}

/* An integer column whose integers ascend with its order. */
static void
narrow_ints(HybLeaf *leaf, int i, const HybValue *val, HybRowRange *range)
{
	const HybColumn *att = &leaf->desc->cols[i];
	const HybSeq *seq = &leaf->columnar->cols[i].seq;
	uint64		first = val->ival;	/* integers that are equal to val */
	uint64		last = val->ival;
	int			lo;

	if (val->isnull || leaf->columnar->cols[i].encoding != HYB_LEAF_INT)
		narrow_nulls(leaf, i, val->isnull, range);
	if (val->isnull || range->lo == range->hi)
		return;
	if (att->compare == HYB_COMPARE_FLOAT)
	{
		uint64		zero = UINT64CONST(1) << (8 * att->width - 1);

		if (first == zero || first == zero - 1)
		{
			first = zero - 1;
			last = zero;
		}
	}
	lo = (int) hyb_seq_lower_bound(seq, range->lo, range->hi, first);
	range->lo = lo;
	if (lo == range->hi)
		return;
	if (hyb_seq_get(seq, lo) > last)
		range->hi = lo;
	else if ((leaf->desc->natts == 1 && first == last) ||
			 lo + 1 == range->hi || hyb_seq_get(seq, lo + 1) > last)
		range->hi = lo + 1;
	else if (last < PG_UINT64_MAX)
		range->hi = hyb_seq_lower_bound(seq, lo + 1, range->hi, last + 1);
}

/* A string that is searched for, flag byte included. */
typedef struct Target
{
	const HybValue *val;
	const uint8 *bytes;
	uint32		len;
	bool		end_high;		/* the end of a string sorts above any byte */
} Target;

/* Order of two whole strings of a column ordered by memcmp. */
static inline int
compare_strings(const uint8 *a, uint32 alen, const uint8 *b, uint32 blen,
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
narrow_split(HybLeaf *leaf, int i, const Target *target, HybRowRange *range)
{
	const HybLeafColumn *col = &leaf->columnar->cols[i];
	uint32		head = Min(col->rest_len, HYB_LEAF_SPLIT_HEAD);
	const uint8 *rest = target->bytes + col->prefix_len;
	int			c = memcmp(col->prefix, target->bytes,
						   Min(col->prefix_len, target->len));
	uint64		v = 0;

	if (c == 0 && target->len < col->prefix_len + head)
	{
		narrow_by_values(leaf, i, target->val, range);
		return;
	}
	if (c != 0)
	{
		range->lo = range->hi = (c < 0 ? range->hi : range->lo);
		return;
	}
	for (uint32 j = 0; j < head; j++)
		v = (v << 8) | rest[j];
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
		narrow_by_values(leaf, i, target->val, range);
	else if (range->lo < range->hi)
	{
		uint32		tail = col->rest_len - head;

		c = compare_strings(col->tails + (Size) range->lo * tail, tail,
							rest + head, target->len - col->prefix_len - head,
							target->end_high);
		if (c < 0)
			range->lo = range->hi;
		else if (c > 0)
			range->hi = range->lo;
	}
}

/* A string column ordered by memcmp. */
static void
narrow_strings(HybLeaf *leaf, int i, const HybValue *val, HybRowRange *range)
{
	const HybColumn *att = &leaf->desc->cols[i];
	const HybLeafColumn *col = &leaf->columnar->cols[i];
	uint8		null_flag = hyb_null_flag(att);
	Target		target;
	int			lo;
	bool		equal;
	int			c;

	/*
	 * Such a column has no length word: the flag byte stands right before the
	 * value in the key that the value points into.
	 */
	Assert(!hyb_has_length_word(att));
	target.val = val;
	target.end_high = hyb_inverted(att);
	target.bytes = val->isnull ? &null_flag : val->ptr - 1;
	target.len = val->isnull ? 1 : val->len + 1;

	if (col->encoding == HYB_LEAF_CONST)
	{
		c = compare_strings(col->prefix, col->prefix_len, target.bytes, target.len,
							target.end_high);
		if (c != 0)
			range->lo = range->hi = (c < 0 ? range->hi : range->lo);
		return;
	}
	if (col->encoding == HYB_LEAF_SPLIT)
	{
		narrow_split(leaf, i, &target, range);
		return;
	}

	if (i == 0)
		lo = hyb_front_search_on(&col->front, &leaf->columnar->finger, target.bytes,
								 target.len, target.end_high, &equal);
	else
		lo = hyb_front_search(&col->front, range->lo, range->hi, target.bytes,
							  target.len, target.end_high, false, &equal);
	if (lo >= 0)
	{
		range->lo = lo;
		if (!equal)
			range->hi = lo;
		else if (leaf->desc->natts == 1)
			range->hi = lo + 1;
		else
			range->hi = hyb_front_search(&col->front, lo, range->hi, target.bytes,
										 target.len, target.end_high, true,
										 &equal);
	}
	if (lo < 0 || range->hi < 0)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A front-coded string of the leaf is malformed.");
}

/* Shrinks the range to the rows whose column i equals val. */
static void
narrow(HybLeaf *leaf, int i, const HybValue *val, HybRowRange *range)
{
	const HybColumn *att = &leaf->desc->cols[i];

	if (att->compare == HYB_COMPARE_PROC ||
		(att->compare == HYB_COMPARE_FLOAT && att->desc))
		narrow_by_values(leaf, i, val, range);
	else if (att->store == HYB_STORE_BYTES)
		narrow_strings(leaf, i, val, range);
	else
		narrow_ints(leaf, i, val, range);
}

void
hyb_columnar_search(HybLeaf *leaf, const HybValue *vals, int ncols,
					HybRowRange *rows)
{
	rows->lo = 0;
	rows->hi = leaf->nrows;
	for (int i = 0; i < ncols && rows->lo < rows->hi; i++)
		narrow(leaf, i, &vals[i], rows);
}
