/*
 * fst_nodes.h
 *		Nodes and labels of a Fast Succinct Trie.  Included by fst_kernel.h,
 *		once for each instruction set.
 *
 * Whatever bytes an image holds, nothing is read outside it: node numbers and
 * positions that it yields are checked before use, and a child's position
 * lies above its parent's, so that every walk ends.
 */
#include "algo/fst_search.h"

#define HYB_FST_INLINE static inline FST_TARGET

/* ---- bits ---- */

HYB_FST_INLINE uint64_t
FST_FN(word) (const HybFst *f, uint32_t w, int which)
{
	return f->words[(size_t) w * 2 + which];
}

/* Has-child bits at sparse positions below pos, pos < npos. */
HYB_FST_INLINE uint32_t
FST_FN(rank) (const HybFst *f, uint32_t pos)
{
	uint32_t	rank = f->blocks[pos / HYB_FST_BLOCK].rank;
	uint32_t	last = pos >> 6;

	for (uint32_t w = last & ~7u; w < last; w++)
		rank += FST_POPCOUNT(FST_FN(word) (f, w, 0));
	return rank + FST_POPCOUNT(FST_FN(word) (f, last, 0) &
							   ((UINT64_C(1) << (pos & 63)) - 1));
}

HYB_FST_INLINE bool
FST_FN(has_child) (const HybFst *f, uint32_t pos)
{
	return (FST_FN(word) (f, pos >> 6, 0) >> (pos & 63)) & 1;
}

/* The k-th (from 0) set bit of x, which has more, alone. */
HYB_FST_INLINE uint64_t
FST_FN(select_bit) (uint64_t x, unsigned k)
{
#ifdef FST_BMI
	return _pdep_u64(UINT64_C(1) << k, x);
#else
	return UINT64_C(1) << (hyb_select64(x, k) & 63);
#endif
}

/* ---- nodes of either kind ---- */

/* A node at hand. */
typedef struct HybFstNode
{
	const HybFstDense *dense;	/* or NULL: */
	uint32_t	start;			/* positions, a terminator's included */
	uint32_t	n;
} HybFstNode;

/*
 * The k-th (from 0) sparse node that begins at or after pos; false if there
 * is none.
 */
HYB_FST_INLINE bool
FST_FN(open_sparse) (const HybFst *f, uint32_t pos, uint32_t k,
					 HybFstNode *node)
{
	uint32_t	w = pos >> 6;
	uint32_t	c;
	uint64_t	v;
	uint64_t	bit;

	if (pos >= f->npos)
		return false;

	/* needed next, and near enough to where the node will turn out to begin */
	__builtin_prefetch(f->labels + pos + k);
	__builtin_prefetch(&f->blocks[pos / HYB_FST_BLOCK]);
	v = FST_FN(word) (f, w, 1) & (~UINT64_C(0) << (pos & 63));
	c = FST_POPCOUNT(v);
	while (k >= c)
	{
		k -= c;
		if (++w >= f->nwords)
			return false;
		v = FST_FN(word) (f, w, 1);
		c = FST_POPCOUNT(v);
	}
	bit = FST_FN(select_bit) (v, k);
	node->dense = NULL;
	node->start = w * 64 + (uint32_t) __builtin_ctzll(bit);
	if (node->start >= f->npos)
		return false;

	/* it ends before the next first-of-node bit */
	v &= ~(bit | (bit - 1));
	while (v == 0)
	{
		if (++w >= f->nwords)
		{
			node->n = f->npos - node->start;
			return true;
		}
		v = FST_FN(word) (f, w, 1);
	}
	w = w * 64 + (uint32_t) __builtin_ctzll(v);
	node->n = (w < f->npos ? w : f->npos) - node->start;
	return true;
}

HYB_FST_INLINE bool
FST_FN(open_root) (const HybFst *f, HybFstNode *node)
{
	if (f->ndense > 0)
	{
		node->dense = f->dense;
		node->start = node->n = 0;
		return true;
	}
	return FST_FN(open_sparse) (f, 0, 0, node);
}

HYB_FST_INLINE bool
FST_FN(terminated) (const HybFst *f, const HybFstNode *node)
{
	if (node->dense != NULL)
		return node->dense->terminator != 0;
	return node->n > 1 && f->labels[node->start] == 0xFF;
}

/* Below label c of a dense node: child, or what is next to it. */
HYB_FST_INLINE uint32_t
FST_FN(dense_child) (const HybFstDense *node, unsigned c, uint32_t *k)
{
	unsigned	w = c / 64;

	*k = FST_POPCOUNT(node->children[w] & ((UINT64_C(1) << (c & 63)) - 1));
	return node->child + (w > 0 ? node->child_sub[w - 1] : 0);
}

/*
 * Below a sparse position: its child, or that of the next one that has any, is
 * the *k-th node from the position that is returned.
 */
HYB_FST_INLINE uint32_t
FST_FN(sparse_child) (const HybFst *f, uint32_t pos, uint32_t *k)
{
	const HybFstBlock *block = &f->blocks[pos / HYB_FST_BLOCK];
	uint32_t	group = pos % HYB_FST_BLOCK / HYB_FST_GROUP;
	uint32_t	w = pos >> 6;

	*k = FST_POPCOUNT(FST_FN(word) (f, w, 0) & ((UINT64_C(1) << (pos & 63)) - 1)) +
		FST_POPCOUNT(FST_FN(word) (f, w & ~1u, 0) & (UINT64_C(0) - (w & 1)));
	if (__builtin_expect(block->child_sub[group] == HYB_FST_FAR, 0))
	{
		while (group > 0 && block->child_sub[group] == HYB_FST_FAR)
		{
			group--;
			w = (w & ~1u) - 2;
			*k += FST_POPCOUNT(FST_FN(word) (f, w, 0)) +
				FST_POPCOUNT(FST_FN(word) (f, w + 1, 0));
		}
	}
	return block->child + block->child_sub[group];
}

/*
 * Go on to the child of a sparse position that has one; false if the image is
 * damaged.  Children lie above their parents, so that every walk ends.
 */
HYB_FST_INLINE bool
FST_FN(descend_sparse) (const HybFst *f, HybFstNode *node, uint32_t pos)
{
	uint32_t	k;
	uint32_t	from = FST_FN(sparse_child) (f, pos, &k);

	return FST_FN(open_sparse) (f, from, k, node) && node->start > pos;
}

/* The same for a label of a dense node. */
HYB_FST_INLINE bool
FST_FN(descend_dense) (const HybFst *f, HybFstNode *node, unsigned c)
{
	const HybFstDense *d = node->dense;
	uint32_t	k;
	uint32_t	child = FST_FN(dense_child) (d, c, &k);

	if (d->sparse)
		return FST_FN(open_sparse) (f, child, k, node);
	child += k;
	if (child >= f->ndense || &f->dense[child] <= d)
		return false;
	node->dense = &f->dense[child];
	return true;
}

/* ---- labels ---- */

/*
 * Is c among n labels?  Then *at is its place.  Up to 31 bytes after them may
 * be read: a block and a word of either kind follow.
 */
HYB_FST_INLINE bool
FST_FN(label_match) (const uint8_t *labels, uint32_t n, uint8_t c,
					 uint32_t *at)
{
#if FST_WIDTH > 0
	__m128i		x = _mm_set1_epi8((char) c);
	uint32_t	m;

	if (n <= 16)
	{
		m = (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *) labels), x));
		m &= ~(UINT32_C(0xFFFFFFFF) << n);
		*at = (uint32_t) __builtin_ctz(m | 0x80000000);
		return m != 0;
	}
#if FST_WIDTH == 32
	{
		__m256i		y = _mm256_set1_epi8((char) c);

		for (uint32_t i = 0; i < n; i += 32)
		{
			m = (uint32_t) _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256((const __m256i *) (labels + i)), y));
			if (m != 0)
			{
				*at = i + (uint32_t) __builtin_ctz(m);
				return *at < n;
			}
		}
	}
#else
	for (uint32_t i = 0; i < n; i += 16)
	{
		m = (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *) (labels + i)), x));
		if (m != 0)
		{
			*at = i + (uint32_t) __builtin_ctz(m);
			return *at < n;
		}
	}
#endif
	return false;
#else
	const uint8_t *found = memchr(labels, c, n);

	*at = (uint32_t) (found - labels);
	return found != NULL;
#endif
}

/* First of n ascending labels that is at least c; n if none. */
HYB_FST_INLINE uint32_t
FST_FN(label_search) (const uint8_t *labels, uint32_t n, uint8_t c)
{
	uint32_t	i = 0;

#if FST_WIDTH > 0
	__m128i		x = _mm_set1_epi8((char) c);

	for (; i < n; i += 16)
	{
		__m128i		l = _mm_loadu_si128((const __m128i *) (labels + i));
		uint32_t	m = (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(l, x), l));

		if (m != 0)
		{
			i += (uint32_t) __builtin_ctz(m);
			break;
		}
	}
	return i < n ? i : n;
#else
	while (i < n)
	{
		uint32_t	mid = i + (n - i) / 2;

		if (labels[mid] < c)
			i = mid + 1;
		else
			n = mid;
	}
	return i;
#endif
}

/* A label of a node, with what belongs to it. */
typedef struct HybFstEdge
{
	uint32_t	pos;			/* sparse: position */
	uint8_t		label;
	bool		child;
} HybFstEdge;

/* First label at or above c, c up to 255; false if none. */
HYB_FST_INLINE bool
FST_FN(find) (const HybFst *f, const HybFstNode *node, unsigned c,
			  HybFstEdge *slot)
{
	uint32_t	start;
	uint32_t	n;
	uint32_t	i;

	if (node->dense != NULL)
	{
		unsigned	w = c / 64;
		uint64_t	v = node->dense->labels[w] & (~UINT64_C(0) << (c & 63));

		while (v == 0)
		{
			if (++w > 3)
				return false;
			v = node->dense->labels[w];
		}
		c = w * 64 + (unsigned) __builtin_ctzll(v);
		slot->pos = 0;
		slot->label = (uint8_t) c;
		slot->child = (node->dense->children[w] >> (c & 63)) & 1;
		return true;
	}
	i = FST_FN(terminated) (f, node);
	start = node->start + i;
	n = node->n - i;
	i = c == 0 ? 0 : FST_FN(label_search) (f->labels + start, n, (uint8_t) c);
	if (i >= n)
		return false;
	slot->pos = start + i;
	slot->label = f->labels[slot->pos];
	slot->child = FST_FN(has_child) (f, slot->pos);
	return true;
}

/* The last label; false if there is none. */
HYB_FST_INLINE bool
FST_FN(find_last) (const HybFst *f, const HybFstNode *node,
				   HybFstEdge *slot)
{
	if (node->dense != NULL)
	{
		int			w = 3;

		while (node->dense->labels[w] == 0)
			if (--w < 0)
				return false;
		slot->pos = 0;
		slot->label = (uint8_t) (w * 64 + 63 - __builtin_clzll(node->dense->labels[w]));
		slot->child = (node->dense->children[w] >> (slot->label & 63)) & 1;
		return true;
	}
	slot->pos = node->start + node->n - 1;
	slot->label = f->labels[slot->pos];
	slot->child = FST_FN(has_child) (f, slot->pos);
	return true;
}

/* Leaves before label c of a dense node. */
HYB_FST_INLINE uint32_t
FST_FN(dense_leaves) (const HybFstDense *node, unsigned c)
{
	uint32_t	leaves = node->leaf_base + (node->terminator != 0);
	unsigned	last = c / 64;

	for (unsigned w = 0; w < last; w++)
		leaves += FST_POPCOUNT(node->labels[w] & ~node->children[w]);
	return leaves + FST_POPCOUNT(node->labels[last] & ~node->children[last] &
								 ((UINT64_C(1) << (c & 63)) - 1));
}

/* Number of the leaf of a slot without a child. */
HYB_FST_INLINE uint32_t
FST_FN(leaf) (const HybFst *f, const HybFstNode *node,
			  const HybFstEdge *slot)
{
	if (node->dense != NULL)
		return FST_FN(dense_leaves) (node->dense, slot->label);
	return f->dense_leaves + slot->pos - FST_FN(rank) (f, slot->pos);
}

/* Go on to the child of a slot; false if the image is damaged. */
HYB_FST_INLINE bool
FST_FN(descend) (const HybFst *f, HybFstNode *node,
				 const HybFstEdge *slot)
{
	if (node->dense != NULL)
		return FST_FN(descend_dense) (f, node, slot->label);
	return FST_FN(descend_sparse) (f, node, slot->pos);
}
