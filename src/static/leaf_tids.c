/*
 * leaf_tids.c
 *		The TIDs of a static leaf.
 */
#include "compat.h"

#include "static/leaf_format.h"

const uint8 *
hyb_leaf_open_tids(HybLeaf *leaf, int flags, const uint8 *p,
				   const uint8 *end)
{
	leaf->tid_ends = NULL;
	leaf->tid_origin = 0;
	leaf->tid_span = 0;
	if (end - p < 2)
		return NULL;
	leaf->tid_factor = hyb_load16(p);
	p += 2;
	if (leaf->tid_factor == 0)
		return NULL;
	if (flags & HYB_LEAF_TID_ROWS)
	{
		if (end - p < 16)
			return NULL;
		leaf->tid_origin = hyb_load64le(p);
		leaf->tid_span = hyb_load64le(p + 8);
		p += 16;
		if (leaf->tid_span == 0)
			return NULL;
	}
	if (flags & HYB_LEAF_TID_BLOCKS)
	{
		int			nblocks = (leaf->nitems - 1) / HYB_LEAF_TID_BLOCK + 1;
		uint32		len;

		if (end - p < 2 * nblocks)
			return NULL;
		len = hyb_load16(p + 2 * (nblocks - 1));
		leaf->tid_ends = p;
		leaf->tid_data = p + 2 * nblocks;
		if (end - leaf->tid_data < len)
			return NULL;
		return leaf->tid_data + len;
	}
	return hyb_seq_open(&leaf->tids, leaf->nitems, p, end);
}

/*
 * Opens a block of TIDs.  hyb_leaf_open_tids has checked the end of the last
 * block only, so the others are held against it.
 */
static void
open_block(const HybLeaf *leaf, int block, HybSeq *seq)
{
	int			last = (leaf->nitems - 1) / HYB_LEAF_TID_BLOCK;
	uint32		limit = hyb_load16(leaf->tid_ends + 2 * last);
	uint32		start = 0;
	uint32		end = hyb_load16(leaf->tid_ends + 2 * block);
	int			n = HYB_LEAF_TID_BLOCK;

	if (block > 0)
		start = hyb_load16(leaf->tid_ends + 2 * (block - 1));
	if (block == last)
		n = leaf->nitems - last * HYB_LEAF_TID_BLOCK;
	if (start > end || end > limit ||
		hyb_seq_open(seq, n, leaf->tid_data + start,
					 leaf->tid_data + end) == NULL)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A block of TIDs of the leaf is malformed.");
}

/* The number v of leaf_format.h from an element of a sequence. */
static inline uint64
plain_number(const HybLeaf *leaf, uint64 v)
{
	if (leaf->tid_span != 0)
	{
		if (v >= leaf->tid_span)
			v %= leaf->tid_span;
		v += leaf->tid_origin;
	}
	return v;
}

static inline uint64
number_to_word(const HybLeaf *leaf, uint64 v)
{
	uint64		block;
	uint32		offset;

	v = plain_number(leaf, v);
	if (likely((v >> 32) == 0))
	{
		block = (uint32) v / leaf->tid_factor;
		offset = (uint32) v % leaf->tid_factor;
	}
	else
	{
		block = v / leaf->tid_factor;
		offset = (uint32) (v % leaf->tid_factor);
	}
	if (unlikely(block > MaxBlockNumber))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A TID of the leaf has an impossible block number.");
	return block << 16 | (uint16) (offset + 1);
}

static inline void
number_to_tid(const HybLeaf *leaf, uint64 v, ItemPointer tid)
{
	uint64		word = number_to_word(leaf, v);

	ItemPointerSet(tid, (BlockNumber) (word >> 16), (OffsetNumber) word);
}

/* Elements [item, item + n), all of them within one block of TIDs. */
static void
decode_numbers(const HybLeaf *leaf, int item, int n, uint64 *v)
{
	HybSeq		seq;

	if (leaf->tid_ends == NULL)
		hyb_seq_decode(&leaf->tids, item, n, v);
	else
	{
		open_block(leaf, item / HYB_LEAF_TID_BLOCK, &seq);
		hyb_seq_decode(&seq, item % HYB_LEAF_TID_BLOCK, n, v);
	}
}

void
hyb_leaf_tids(const HybLeaf *leaf, int item, int n, ItemPointerData *tids)
{
	uint64		v[HYB_LEAF_TID_BLOCK];

	Assert(item >= 0 && n >= 0 && item + n <= leaf->nitems);
	if (n == 1 && leaf->tid_ends == NULL)
	{
		number_to_tid(leaf, hyb_seq_get(&leaf->tids, item), tids);
		return;
	}
	while (n > 0)
	{
		int			k = Min(n, HYB_LEAF_TID_BLOCK - item % HYB_LEAF_TID_BLOCK);

		decode_numbers(leaf, item, k, v);
		for (int i = 0; i < k; i++)
			number_to_tid(leaf, v[i], tids++);
		item += k;
		n -= k;
	}
}

void
hyb_leaf_tid_words(const HybLeaf *leaf, int item, int n, uint64 *words)
{
	Assert(item >= 0 && n >= 0 && item + n <= leaf->nitems);
	while (n > 0)
	{
		int			k = n;

		if (leaf->tid_ends != NULL)
			k = Min(n, HYB_LEAF_TID_BLOCK - item % HYB_LEAF_TID_BLOCK);
		decode_numbers(leaf, item, k, words);
		for (int i = 0; i < k; i++)
			words[i] = number_to_word(leaf, words[i]);
		words += k;
		item += k;
		n -= k;
	}
}

int
hyb_leaf_search_tid(const HybLeaf *leaf, int lo, int hi,
					const ItemPointerData *tid)
{
	uint64		wanted;

	/*
	 * Compare numbers instead of TIDs: an offset beyond the factor lies
	 * between the last TID of its block and the first one of the next.
	 */
	wanted = (uint64) ItemPointerGetBlockNumberNoCheck(tid) * leaf->tid_factor +
		Min((uint32) Max(ItemPointerGetOffsetNumberNoCheck(tid), 1) - 1,
			leaf->tid_factor);
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;
		uint64		v;

		if (leaf->tid_ends != NULL)
		{
			HybSeq		seq;

			open_block(leaf, mid / HYB_LEAF_TID_BLOCK, &seq);
			v = hyb_seq_get(&seq, mid % HYB_LEAF_TID_BLOCK);
		}
		else
			v = hyb_seq_get(&leaf->tids, mid);
		if (plain_number(leaf, v) < wanted)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}
