/*
 * columnar_tids.c
 *		The TIDs of a columnar leaf.
 */
#include "base/compat.h"

#include "leaf/columnar.h"

const uint8 *
hyb_columnar_open_tids(HybLeaf *leaf, int flags, const uint8 *p,
					   const uint8 *end)
{
	HybColumnar *c = hyb_columnar(leaf);

	c->tid_ends = NULL;
	c->tid_origin = 0;
	c->tid_span = 0;
	if (end - p < 2)
		return NULL;
	c->tid_factor = hyb_load16(p);
	p += 2;
	if (c->tid_factor == 0)
		return NULL;
	if (flags & HYB_LEAF_TID_ROWS)
	{
		if (end - p < 16)
			return NULL;
		c->tid_origin = hyb_load64le(p);
		c->tid_span = hyb_load64le(p + 8);
		p += 16;
		if (c->tid_span == 0)
			return NULL;
	}
	if (flags & HYB_LEAF_TID_BLOCKS)
	{
		int			nblocks = (leaf->nitems - 1) / HYB_LEAF_TID_BLOCK + 1;
		uint32		len;

		if (end - p < 2 * nblocks)
			return NULL;
		len = hyb_load16(p + 2 * (nblocks - 1));
		c->tid_ends = p;
		c->tid_data = p + 2 * nblocks;
		if (end - c->tid_data < len)
			return NULL;
		return c->tid_data + len;
	}
	return hyb_seq_open(&c->tids, leaf->nitems, p, end);
}

/*
 * Opens a block of TIDs.  hyb_columnar_open_tids has checked the end of the
 * last block only, so the others are held against it.
 */
static void
open_block(const HybLeaf *leaf, int block, HybSeq *seq)
{
	const HybColumnar *c = hyb_columnar(leaf);
	int			last = (leaf->nitems - 1) / HYB_LEAF_TID_BLOCK;
	uint32		limit = hyb_load16(c->tid_ends + 2 * last);
	uint32		start = 0;
	uint32		end = hyb_load16(c->tid_ends + 2 * block);
	int			n = HYB_LEAF_TID_BLOCK;

	if (block > 0)
		start = hyb_load16(c->tid_ends + 2 * (block - 1));
	if (block == last)
		n = leaf->nitems - last * HYB_LEAF_TID_BLOCK;
	if (start > end || end > limit ||
		hyb_seq_open(seq, n, c->tid_data + start,
					 c->tid_data + end) == NULL)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A block of TIDs of the leaf is malformed.");
}

/* The number v of columnar.h from an element of a sequence. */
static inline uint64
plain_number(const HybColumnar *c, uint64 v)
{
	if (c->tid_span != 0)
	{
		if (v >= c->tid_span)
			v %= c->tid_span;
		v += c->tid_origin;
	}
	return v;
}

static inline uint64
number_to_word(const HybLeaf *leaf, const HybColumnar *c, uint64 v)
{
	uint64		block;
	uint32		offset;

	v = plain_number(c, v);
	if (likely((v >> 32) == 0))
	{
		block = (uint32) v / c->tid_factor;
		offset = (uint32) v % c->tid_factor;
	}
	else
	{
		block = v / c->tid_factor;
		offset = (uint32) (v % c->tid_factor);
	}
	if (unlikely(block > MaxBlockNumber))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A TID of the leaf has an impossible block number.");
	return block << 16 | (uint16) (offset + 1);
}

static inline void
number_to_tid(const HybLeaf *leaf, const HybColumnar *c, uint64 v,
			  ItemPointer tid)
{
	uint64		word = number_to_word(leaf, c, v);

	ItemPointerSet(tid, (BlockNumber) (word >> 16), (OffsetNumber) word);
}

/* Elements [item, item + n), all of them within one block of TIDs. */
static void
decode_numbers(const HybLeaf *leaf, int item, int n, uint64 *v)
{
	const HybColumnar *c = hyb_columnar(leaf);
	HybSeq		seq;

	if (c->tid_ends == NULL)
		hyb_seq_decode(&c->tids, item, n, v);
	else
	{
		open_block(leaf, item / HYB_LEAF_TID_BLOCK, &seq);
		hyb_seq_decode(&seq, item % HYB_LEAF_TID_BLOCK, n, v);
	}
}

void
hyb_columnar_tids(const HybLeaf *leaf, int item, int n, ItemPointerData *tids)
{
	const HybColumnar *c = hyb_columnar(leaf);
	uint64		v[HYB_LEAF_TID_BLOCK];

	if (n == 1 && c->tid_ends == NULL)
	{
		number_to_tid(leaf, c, hyb_seq_get(&c->tids, item), tids);
		return;
	}
	while (n > 0)
	{
		int			k = Min(n, HYB_LEAF_TID_BLOCK - item % HYB_LEAF_TID_BLOCK);

		decode_numbers(leaf, item, k, v);
		for (int i = 0; i < k; i++)
			number_to_tid(leaf, c, v[i], tids++);
		item += k;
		n -= k;
	}
}

void
hyb_columnar_tid_words(const HybLeaf *leaf, int item, int n, uint64 *words)
{
	const HybColumnar *c = hyb_columnar(leaf);

	while (n > 0)
	{
		int			k = n;

		if (c->tid_ends != NULL)
			k = Min(n, HYB_LEAF_TID_BLOCK - item % HYB_LEAF_TID_BLOCK);
		decode_numbers(leaf, item, k, words);
		for (int i = 0; i < k; i++)
			words[i] = number_to_word(leaf, c, words[i]);
		words += k;
		item += k;
		n -= k;
	}
}

/*
 * The same in a sequence of gaps, whose elements are better looked at one after
 * the other; -1 if it is none, or k of columnar.h is not the same of all items.
 */
static int
search_gaps(const HybColumnar *c, int lo, int hi, uint64 wanted)
{
	uint64		rows = 0;
	uint64		offset = wanted;

	if (c->tid_ends != NULL || c->tids.model != HYB_SEQ_GAPS || lo >= hi)
		return -1;
	if (c->tid_span != 0)
	{
		rows = hyb_seq_get(&c->tids, lo) / c->tid_span;
		if (hyb_seq_get(&c->tids, hi - 1) / c->tid_span != rows)
			return -1;
		offset = wanted < c->tid_origin ? 0 :
			Min(wanted - c->tid_origin, c->tid_span);
	}
	return (int) hyb_seq_lower_bound(&c->tids, lo, hi, rows * c->tid_span + offset);
}

int
hyb_columnar_search_tid(const HybLeaf *leaf, int lo, int hi,
						const ItemPointerData *tid)
{
	const HybColumnar *c = hyb_columnar(leaf);
	uint64		wanted;
	int			found;

	/*
	 * Compare numbers instead of TIDs: an offset beyond the factor lies
	 * between the last TID of its block and the first one of the next.
	 */
	wanted = (uint64) ItemPointerGetBlockNumberNoCheck(tid) * c->tid_factor +
		Min((uint32) Max(ItemPointerGetOffsetNumberNoCheck(tid), 1) - 1,
			c->tid_factor);
	found = search_gaps(c, lo, hi, wanted);
	if (found >= 0)
		return found;
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;
		uint64		v;

		if (c->tid_ends != NULL)
		{
			HybSeq		seq;

			open_block(leaf, mid / HYB_LEAF_TID_BLOCK, &seq);
			v = hyb_seq_get(&seq, mid % HYB_LEAF_TID_BLOCK);
		}
		else
			v = hyb_seq_get(&c->tids, mid);
		if (plain_number(c, v) < wanted)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}
