/*
 * position.c
 *		Positions between entries: order and separators.
 *
 * A position and the entries that start with its key compare by the
 * position's tie; all others by the first byte (or column) that differs.  In
 * an all_mem index bytes and columns give the same order, so a position may
 * end in the middle of a column there.
 */
#include "base/compat.h"

#include "key/position.h"

#ifdef USE_ASSERT_CHECKING
void
hyb_pos_assert_valid(const HybKeyDesc *desc, const HybPos *pos)
{
	Assert(pos->tie >= HYB_BEFORE && pos->tie <= HYB_AFTER);
	Assert(pos->ncols <= desc->nkeys);
	Assert(pos->len > 0 || pos->ncols == 0);
	/* raw bytes are for keys that one memcmp orders */
	Assert(pos->len == 0 || pos->ncols > 0 || desc->all_mem);
	/* at an entry the key is a whole one */
	Assert(pos->tie != HYB_AT || pos->ncols == desc->nkeys);
}
#endif

/* An entry whose key starts with the position's key; `whole`: it is it. */
static inline int
tie_order(const ItemPointerData *tid, const HybPos *pos, bool whole)
{
	if (pos->tie == HYB_BEFORE)
		return 1;
	if (pos->tie == HYB_AFTER)
		return -1;
	Assert(pos->tie == HYB_AT);
	if (!whole)
		return 1;
	return ItemPointerCompare(unconstify(ItemPointerData *, tid),
							  unconstify(ItemPointerData *, &pos->tid));
}

void
hyb_pos_copy(HybPos *copy, HybBuf *keybuf, const HybPos *from)
{
	Assert(from->len == 0 || from->key != keybuf->data);
	*copy = *from;
	keybuf->len = 0;
	if (from->len > 0)
		hyb_buf_append(keybuf, from->key, from->len);
	copy->key = keybuf->data;
}

int
hyb_pos_compare_key(const HybKeyDesc *desc, const uint8 *key, uint32 keylen,
					const ItemPointerData *tid, const HybPos *pos)
{
	if (likely(desc->all_mem))
	{
		uint32		n = Min(keylen, pos->len);

		if (n > 0)
		{
			int			c = memcmp(key, pos->key, n);

			if (c != 0)
				return c;
		}
		if (keylen < pos->len)
			return -1;
		return tie_order(tid, pos, keylen == pos->len);
	}

	/* Whole columns; equal bytes spare the comparison functions. */
	Assert(pos->len == 0 || pos->ncols > 0);
	if (pos->len > 0 &&
		(pos->len > keylen || memcmp(key, pos->key, pos->len) != 0))
	{
		int			c = hyb_columns_compare(desc, pos->ncols, key, keylen,
											pos->key, pos->len);

		if (c != 0)
			return c;
	}
	return tie_order(tid, pos, true);
}

/* Position `a`, whose key b's key starts with and goes on after, against b. */
static inline int
shorter_order(const HybPos *a)
{
	return a->tie == HYB_AFTER ? 1 : -1;
}

int
hyb_pos_compare(const HybKeyDesc *desc, const HybPos *a, const HybPos *b)
{
	uint32		alen = a->len;
	uint32		blen = b->len;
	uint32		n = Min(alen, blen);

	if (desc->all_mem)
	{
		int			c = n > 0 ? memcmp(a->key, b->key, n) : 0;

		if (c != 0)
			return c;
	}
	else
	{
		int			ncols = Min(a->ncols, b->ncols);

		if (ncols > 0)
		{
			int			c = hyb_columns_compare(desc, ncols, a->key, a->len,
												b->key, b->len);

			if (c != 0)
				return c;
		}

		/* Equal columns may differ in length: count columns instead. */
		alen = a->ncols;
		blen = b->ncols;
	}

	if (alen < blen)
		return shorter_order(a);
	if (alen > blen)
		return -shorter_order(b);
	if (a->tie != b->tie)
		return a->tie < b->tie ? -1 : 1;
	if (a->tie != HYB_AT)
		return 0;
	return ItemPointerCompare(unconstify(ItemPointerData *, &a->tid),
							  unconstify(ItemPointerData *, &b->tid));
}

bool
hyb_separator(const HybKeyDesc *desc, const HybPos *left, const HybPos *right,
			  HybPos *sep)
{
	hyb_pos_assert_valid(desc, left);
	hyb_pos_assert_valid(desc, right);
	Assert(left->tie == HYB_AT && right->tie == HYB_AT);
	*sep = *right;
	sep->tie = HYB_BEFORE;
	ItemPointerSetInvalid(&sep->tid);

	if (desc->all_mem)
	{
		uint32		n = Min(left->len, right->len);
		uint32		common = 0;

		while (common < n && left->key[common] == right->key[common])
			common++;
		if (common < right->len)
		{
			if (common < left->len && left->key[common] > right->key[common])
				return false;
			sep->len = common + 1;
			if (sep->len < right->len)
				sep->ncols = 0;
			hyb_pos_assert_valid(desc, sep);
			Assert(hyb_pos_compare(desc, left, sep) < 0 &&
				   hyb_pos_compare(desc, sep, right) <= 0);
			return true;
		}
		if (common < left->len)
			return false;
	}
	else
	{
		HybValue	vals[INDEX_MAX_KEYS];
		int			c = hyb_columns_compare(desc, desc->nkeys, left->key,
											left->len, right->key, right->len);

		/* The first column that differs is the last one needed. */
		if (c < 0)
		{
			sep->ncols = -c;
			sep->len = hyb_key_split(desc, right->key, right->len, -c, vals);
			hyb_pos_assert_valid(desc, sep);
			return true;
		}
		if (c > 0)
			return false;
	}

	*sep = *right;
	return ItemPointerCompare(unconstify(ItemPointerData *, &left->tid),
							  unconstify(ItemPointerData *, &right->tid)) < 0;
}
