/*
 * fst_kernel.h
 *		Searching a Fast Succinct Trie.  Included by one file for each
 *		instruction set, which defines
 *
 *		FST_FN(name)	name of a function
 *		FST_TARGET		function attribute, or nothing
 *		FST_WIDTH		bytes that labels are compared at a time: 0, 16 or 32
 *		FST_POPCOUNT	population count of 64 bits
 *		FST_BMI			defined if there are the instructions of BMI2
 *
 * Whatever bytes an image holds, nothing is read outside it: node numbers and
 * positions that it yields are checked before use, and a child's position
 * lies above its parent's, so that every walk ends.
 */
#include "algo/bits.h"
#include "algo/fst_private.h"

#define FST_INLINE static inline FST_TARGET

/* ---- rank and select ---- */

FST_INLINE uint64_t
FST_FN(word) (const HybFst *f, uint32_t w, int which)
{
	return f->blocks[(size_t) (w >> 3) * HYB_FST_BLOCK_WORDS + 1 + (w & 7) * 2 + which];
}

/* Has-child bits at sparse positions below pos, pos < npos. */
FST_INLINE uint32_t
FST_FN(rank) (const HybFst *f, uint32_t pos)
{
	const uint64_t *block = f->blocks + (size_t) (pos / HYB_FST_BLOCK) * HYB_FST_BLOCK_WORDS;
	uint32_t	rank = ((const uint32_t *) block)[0];
	uint32_t	w = (pos >> 6) & 7;

	block++;
#ifdef FST_BMI
	/* words are many, branches to guess none */
	if ((const uint8_t *) (block + 16) <= f->end)
	{
		int			p = (int) (pos % HYB_FST_BLOCK);

		for (int i = 0; i < 8; i++)
		{
			int			n = p - i * 64;

			n = n < 0 ? 0 : n > 64 ? 64 : n;
			rank += FST_POPCOUNT(_bzhi_u64(block[i * 2], (unsigned) n));
		}
		return rank;
	}
#endif
	for (uint32_t i = 0; i < w; i++)
		rank += FST_POPCOUNT(block[i * 2]);
	return rank + FST_POPCOUNT(block[w * 2] & ((UINT64_C(1) << (pos & 63)) - 1));
}

FST_INLINE bool
FST_FN(has_child) (const HybFst *f, uint32_t pos)
{
	return (FST_FN(word) (f, pos >> 6, 0) >> (pos & 63)) & 1;
}

FST_INLINE bool
FST_FN(is_first) (const HybFst *f, uint32_t pos)
{
	return (FST_FN(word) (f, pos >> 6, 1) >> (pos & 63)) & 1;
}

FST_INLINE unsigned
FST_FN(select_word) (uint64_t x, unsigned k)
{
#ifdef FST_BMI
	return (unsigned) _tzcnt_u64(_pdep_u64(UINT64_C(1) << k, x));
#else
	unsigned	pos = 0;
	unsigned	c = FST_POPCOUNT(x & UINT64_C(0xFFFFFFFF));

	if (k >= c)
	{
		k -= c;
		pos = 32;
		x >>= 32;
	}
	c = FST_POPCOUNT(x & 0xFFFF);
	if (k >= c)
	{
		k -= c;
		pos += 16;
		x >>= 16;
	}
	c = FST_POPCOUNT(x & 0xFF);
	if (k >= c)
	{
		k -= c;
		pos += 8;
		x >>= 8;
	}
	while (k-- > 0)
		x &= x - 1;
	return x == 0 ? 64 : pos + (unsigned) __builtin_ctzll(x);
#endif
}

/* First position of sparse node n; npos if there is no such node. */
FST_INLINE uint32_t
FST_FN(node_start) (const HybFst *f, uint32_t n)
{
	uint32_t	low;
	uint32_t	high;
	uint32_t	w;
	uint32_t	wend;
	const uint64_t *block;

	if (n >= f->nnodes)
		return f->npos;
	low = f->samples[n / HYB_FST_SAMPLE];
	high = n / HYB_FST_SAMPLE + 1 < f->nsamples ?
		f->samples[n / HYB_FST_SAMPLE + 1] : f->nblocks - 1;
	if (high >= f->nblocks || low > high)
		return f->npos;

#define NODES_BEFORE(b) ((const uint32_t *) (f->blocks + (size_t) (b) * HYB_FST_BLOCK_WORDS))[1]
	/* the last block with at most n nodes before it */
	while (high - low > 4)
	{
		uint32_t	mid = low + (high - low) / 2;

		if (NODES_BEFORE(mid) <= n)
			low = mid;
		else
			high = mid;
	}
	if (low < high)
	{
		low += NODES_BEFORE(low + 1) <= n;
		while (low < high && NODES_BEFORE(low + 1) <= n)
			low++;
	}
	n -= NODES_BEFORE(low);
#undef NODES_BEFORE

	block = f->blocks + (size_t) low * HYB_FST_BLOCK_WORDS + 2;
	wend = f->nwords - low * 8;
	if (wend > 8)
		wend = 8;
#ifdef FST_BMI
	if (wend == 8 && (const uint8_t *) (block + 15) <= f->end)
	{
		uint32_t	sum = 0;
		uint32_t	before = 0;

		w = 0;
		for (int i = 0; i < 8; i++)
		{
			sum += FST_POPCOUNT(block[i * 2]);
			before = sum <= n ? sum : before;
			w += sum <= n;
		}
		if (w == 8)
			return f->npos;
		w = low * HYB_FST_BLOCK + w * 64 +
			FST_FN(select_word) (block[w * 2], n - before);
		return w < f->npos ? w : f->npos;
	}
#endif
	for (w = 0; w < wend; w++)
	{
		unsigned	c = FST_POPCOUNT(block[w * 2]);

		if (n < c)
		{
			uint32_t	pos = low * HYB_FST_BLOCK + w * 64 +
				FST_FN(select_word) (block[w * 2], n);

			return pos < f->npos ? pos : f->npos;
		}
		n -= c;
	}
	return f->npos;
}

/* End of the node that pos lies in: the next first-of-node bit above pos. */
FST_INLINE uint32_t
FST_FN(node_end) (const HybFst *f, uint32_t pos)
{
	uint32_t	w = (pos + 1) >> 6;
	uint64_t	v;

	if (pos + 1 >= f->npos)
		return f->npos;
	v = FST_FN(word) (f, w, 1) & (~UINT64_C(0) << ((pos + 1) & 63));
	while (v == 0)
	{
		if (++w >= f->nwords)
			return f->npos;
		v = FST_FN(word) (f, w, 1);
	}
	w = w * 64 + (uint32_t) __builtin_ctzll(v);
	return w < f->npos ? w : f->npos;
}

/* ---- labels ---- */

/* First of n ascending labels that is at least c; n if none. */
FST_INLINE uint32_t
FST_FN(label_search) (const HybFst *f, const uint8_t *labels, uint32_t n,
					  uint8_t c)
{
	uint32_t	i = 0;

	if (n <= 4)
	{
		while (i < n && labels[i] < c)
			i++;
		return i;
	}
#if FST_WIDTH == 32
	{
		__m256i		x = _mm256_set1_epi8((char) c);

		for (; i < n && f->end - (labels + i) >= 32; i += 32)
		{
			__m256i		l = _mm256_loadu_si256((const __m256i *) (labels + i));
			uint32_t	m = (uint32_t) _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(l, x), l));

			if (m != 0)
			{
				i += (uint32_t) __builtin_ctz(m);
				return i < n ? i : n;
			}
		}
		if (i >= n)
			return n;
	}
#elif FST_WIDTH == 16
	{
		__m128i		x = _mm_set1_epi8((char) c);

		for (; i < n && f->end - (labels + i) >= 16; i += 16)
		{
			__m128i		l = _mm_loadu_si128((const __m128i *) (labels + i));
			uint32_t	m = (uint32_t) _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(l, x), l));

			if (m != 0)
			{
				i += (uint32_t) __builtin_ctz(m);
				return i < n ? i : n;
			}
		}
		if (i >= n)
			return n;
	}
#else
	(void) f;
#endif
	/* what is left, or all of it */
	while (i < n)
	{
		uint32_t	mid = i + (n - i) / 2;

		if (labels[mid] < c)
			i = mid + 1;
		else
			n = mid;
	}
	return i;
}

/* ---- nodes of either kind ---- */

/* A node at hand. */
typedef struct FST_FN(Node)
{
	const HybFstDense *dense;	/* or NULL: */
	uint32_t	start;			/* labels, after a terminator */
	uint32_t	end;
	bool		terminator;
} FST_FN(Node);

FST_INLINE bool
FST_FN(open_node) (const HybFst *f, uint32_t number, FST_FN(Node) *node)
{
	uint32_t	pos;

	if (number < f->ndense)
	{
		node->dense = &f->dense[number];
		node->terminator = node->dense->terminator != 0;
		return true;
	}
	node->dense = NULL;
	pos = FST_FN(node_start) (f, number - f->ndense);
	if (pos >= f->npos)
		return false;
	__builtin_prefetch(f->labels + pos);
	node->start = pos;
	node->end = FST_FN(node_end) (f, pos);
	node->terminator = node->end - pos > 1 && f->labels[pos] == 0xFF;
	node->start += node->terminator;
	return true;
}

/* A label of a node, with what belongs to it. */
typedef struct FST_FN(Slot)
{
	uint32_t	pos;			/* sparse: position */
	uint8_t		label;
	bool		child;
} FST_FN(Slot);

/* First label at or above c, c up to 255; false if none. */
FST_INLINE bool
FST_FN(find) (const HybFst *f, const FST_FN(Node) *node, unsigned c,
			  FST_FN(Slot) *slot)
{
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
	slot->pos = node->start +
		FST_FN(label_search) (f, f->labels + node->start,
							  node->end - node->start, (uint8_t) c);
	if (slot->pos >= node->end)
		return false;
	slot->label = f->labels[slot->pos];
	slot->child = FST_FN(has_child) (f, slot->pos);
	return true;
}

/* Last label at or below c; false if none. */
FST_INLINE bool
FST_FN(find_last) (const HybFst *f, const FST_FN(Node) *node, unsigned c,
				   FST_FN(Slot) *slot)
{
	if (node->dense != NULL)
	{
		int			w = (int) (c / 64);
		uint64_t	v = node->dense->labels[w] & (~UINT64_C(0) >> (63 - (c & 63)));

		while (v == 0)
		{
			if (--w < 0)
				return false;
			v = node->dense->labels[w];
		}
		c = (unsigned) w * 64 + 63 - (unsigned) __builtin_clzll(v);
		slot->pos = 0;
		slot->label = (uint8_t) c;
		slot->child = (node->dense->children[w] >> (c & 63)) & 1;
		return true;
	}
	slot->pos = c == 0xFF ? node->end : node->start +
		FST_FN(label_search) (f, f->labels + node->start,
							  node->end - node->start, (uint8_t) (c + 1));
	if (slot->pos <= node->start)
		return false;
	slot->pos--;
	slot->label = f->labels[slot->pos];
	slot->child = FST_FN(has_child) (f, slot->pos);
	return true;
}

/* Has-child bits (leaves) of a dense node below label c. */
FST_INLINE uint32_t
FST_FN(dense_children) (const HybFstDense *node, unsigned c)
{
	unsigned	w = c / 64;
	uint64_t	mask = (UINT64_C(1) << (c & 63)) - 1;

	return node->children_base + (w > 0 ? node->children_sub[w - 1] : 0) +
		FST_POPCOUNT(node->children[w] & mask);
}

FST_INLINE uint32_t
FST_FN(dense_leaves) (const HybFstDense *node, unsigned c)
{
	unsigned	w = c / 64;
	uint64_t	mask = (UINT64_C(1) << (c & 63)) - 1;

	return node->leaf_base + (node->terminator != 0) +
		(w > 0 ? node->leaf_sub[w - 1] : 0) +
		FST_POPCOUNT(node->labels[w] & ~node->children[w] & mask);
}

/* Number of the child of a slot that has one.  Above that of its node. */
FST_INLINE uint32_t
FST_FN(child) (const HybFst *f, const FST_FN(Node) *node,
			   const FST_FN(Slot) *slot)
{
	if (node->dense != NULL)
		return FST_FN(dense_children) (node->dense, slot->label) + 1;
	return f->dense_children + FST_FN(rank) (f, slot->pos) + 1;
}

/* Number of the leaf of a slot without a child. */
FST_INLINE uint32_t
FST_FN(leaf) (const HybFst *f, const FST_FN(Node) *node,
			  const FST_FN(Slot) *slot)
{
	if (node->dense != NULL)
		return FST_FN(dense_leaves) (node->dense, slot->label);
	return f->dense_leaves + slot->pos - FST_FN(rank) (f, slot->pos);
}

FST_INLINE uint32_t
FST_FN(terminator_leaf) (const HybFst *f, const FST_FN(Node) *node)
{
	if (node->dense != NULL)
		return node->dense->leaf_base;
	return f->dense_leaves + node->start - 1 - FST_FN(rank) (f, node->start - 1);
}

/*
 * Go on to a child; false if the image is damaged.  Nodes are numbered level
 * by level, so numbers rise on the way down.
 */
FST_INLINE bool
FST_FN(descend) (const HybFst *f, FST_FN(Node) *node,
				 const FST_FN(Slot) *slot, uint32_t *number)
{
	uint32_t	child = FST_FN(child) (f, node, slot);

	if (child <= *number)
		return false;
	*number = child;
	return FST_FN(open_node) (f, child, node);
}

/* ---- leaves against keys ---- */

FST_INLINE uint64_t
FST_FN(payload) (const HybFst *f, uint32_t leaf)
{
	if (leaf >= f->nkeys)
		return 0;
	return hyb_bits_get(f->payload, (uint64_t) leaf * f->payload_bits,
						f->payload_bits);
}

/* The n bits of a key after `depth` bytes; `fill` stands for what it lacks. */
FST_INLINE uint64_t
FST_FN(suffix) (const uint8_t *key, uint32_t len, uint32_t depth, unsigned n,
				uint8_t fill)
{
	unsigned	bytes = (n + 7) / 8;
	uint64_t	v = 0;

	for (uint32_t i = depth; i < depth + bytes; i++)
		v = (v << 8) | (i < len ? key[i] : fill);
	return v >> (bytes * 8 - n);
}

/*
 * The key of a leaf, whose `depth` bytes in the trie the cut's key begins
 * with, against the cut: -1 below, 1 above, 0 unknown.
 */
FST_INLINE int
FST_FN(leaf_side) (const HybFst *f, uint32_t leaf, const HybCut *cut,
				   uint32_t depth)
{
	if (depth >= cut->len)
	{
		if (cut->side == HYB_CUT_BEFORE)
			return 1;
		if (cut->side == HYB_CUT_AFTER)
			return -1;
		return (f->flags & HYB_FST_EXACT) ? -1 : 0;
	}
	if (f->flags & HYB_FST_EXACT)
		return -1;
	if (f->real_bits > 0)
	{
		uint64_t	have = FST_FN(payload) (f, leaf) & (~UINT64_C(0) >> (64 - f->real_bits));
		uint64_t	want = FST_FN(suffix) (cut->key, cut->len, depth, f->real_bits,
											  cut->side == HYB_CUT_AFTER ? 0xFF : 0);

		if (have != want)
			return have < want ? -1 : 1;
	}
	return 0;
}

/* ---- point lookup ---- */

static FST_TARGET HybFstAnswer
FST_FN(lookup) (const HybFst *f, const uint8_t *key, uint32_t len,
				uint32_t *leaf)
{
	uint32_t	depth = f->prefix_len;
	uint32_t	number = 0;
	FST_FN(Node) node;
	FST_FN(Slot) slot;

	if (f->flags & HYB_FST_EMPTY_KEY)
	{
		if (leaf != NULL)
			*leaf = 0;
		return len == 0;
	}
	if (len < depth || memcmp(key, f->prefix, depth) != 0)
		return HYB_FST_NO;
	if (!FST_FN(open_node) (f, 0, &node))
		return HYB_FST_DAMAGED;
	for (;;)
	{
		if (depth == len)
		{
			if (!node.terminator)
				return HYB_FST_NO;
			if (leaf != NULL)
				*leaf = FST_FN(terminator_leaf) (f, &node);
			return HYB_FST_YES;
		}
		if (node.dense != NULL)
		{
			uint8_t		c = key[depth];

			if (((node.dense->labels[c / 64] >> (c & 63)) & 1) == 0)
				return HYB_FST_NO;
			slot.pos = 0;
			slot.label = c;
			slot.child = (node.dense->children[c / 64] >> (c & 63)) & 1;
		}
		else if (!FST_FN(find) (f, &node, key[depth], &slot) ||
				 slot.label != key[depth])
			return HYB_FST_NO;
		depth++;
		if (!slot.child)
			break;
		if (!FST_FN(descend) (f, &node, &slot, &number))
			return HYB_FST_DAMAGED;
	}

	if (f->flags & HYB_FST_EXACT)
	{
		if (depth != len)
			return HYB_FST_NO;
		if (leaf != NULL)
			*leaf = FST_FN(leaf) (f, &node, &slot);
		return HYB_FST_YES;
	}
	if (f->payload_bits > 0 || leaf != NULL)
	{
		uint32_t	n = FST_FN(leaf) (f, &node, &slot);
		uint64_t	have = FST_FN(payload) (f, n);

		if (leaf != NULL)
			*leaf = n;
		if (f->real_bits > 0 &&
			(have & (~UINT64_C(0) >> (64 - f->real_bits))) !=
			FST_FN(suffix) (key, len, depth, f->real_bits, 0))
			return HYB_FST_NO;
		if (f->hash_bits > 0 &&
			have >> f->real_bits != hyb_fst_hash(key, len) >> (64 - f->hash_bits))
			return HYB_FST_NO;
	}
	return HYB_FST_YES;
}

/* ---- range lookup ---- */

/*
 * May a key below a node lie above the cut, or (upper) below it?  The path to
 * the node agrees with the cut's key as far as both go.  No step back is ever
 * needed: a label on the right side of the cut's has keys of its own.
 */
static FST_TARGET HybFstAnswer
FST_FN(one_side) (const HybFst *f, FST_FN(Node) *node, uint32_t number,
				  uint32_t depth, const HybCut *cut, bool upper)
{
	for (;;)
	{
		FST_FN(Slot) slot;
		uint8_t		c;
		int			side;

		if (depth >= cut->len)
		{
			if (upper)
				return cut->side == HYB_CUT_AFTER ||
					(cut->side == HYB_CUT_SELF && node->terminator);
			return cut->side != HYB_CUT_AFTER;
		}
		c = cut->key[depth];
		if (upper)
		{
			if (node->terminator)
				return HYB_FST_YES;
			if (!FST_FN(find) (f, node, 0, &slot))
				return HYB_FST_DAMAGED;
			if (slot.label != c)
				return slot.label < c;
		}
		else
		{
			if (!FST_FN(find_last) (f, node, 0xFF, &slot))
				return HYB_FST_DAMAGED;
			if (slot.label != c)
				return slot.label > c;
		}
		depth++;
		if (!slot.child)
		{
			side = FST_FN(leaf_side) (f, f->payload_bits > 0 ?
									  FST_FN(leaf) (f, node, &slot) : 0,
									  cut, depth);
			return upper ? side <= 0 : side >= 0;
		}
		if (!FST_FN(descend) (f, node, &slot, &number))
			return HYB_FST_DAMAGED;
	}
}

/* Where the keys with the common prefix lie: 0, all below or above the cut? */
FST_INLINE int
FST_FN(prefix_side) (const HybFst *f, const HybCut *cut)
{
	uint32_t	n = cut->len < f->prefix_len ? cut->len : f->prefix_len;
	int			c = n > 0 ? memcmp(f->prefix, cut->key, n) : 0;

	if (c != 0)
		return c;
	if (cut->len < f->prefix_len)
		return cut->side == HYB_CUT_AFTER ? -1 : 1;
	return 0;
}

static FST_TARGET HybFstAnswer
FST_FN(range) (const HybFst *f, const HybCut *low, const HybCut *high)
{
	uint32_t	depth = f->prefix_len;
	uint32_t	number = 0;
	int			low_side;
	int			high_side;
	FST_FN(Node) node;
	FST_FN(Slot) slot;

	if (f->flags & HYB_FST_EMPTY_KEY)
		return low->len == 0 && low->side == HYB_CUT_BEFORE &&
			(high->len > 0 || high->side != HYB_CUT_BEFORE);
	low_side = FST_FN(prefix_side) (f, low);
	high_side = FST_FN(prefix_side) (f, high);
	if (low_side < 0 || high_side > 0)
		return HYB_FST_NO;
	if (low_side > 0 && high_side < 0)
		return HYB_FST_YES;
	if (!FST_FN(open_node) (f, 0, &node))
		return HYB_FST_DAMAGED;
	if (low_side > 0)
		return FST_FN(one_side) (f, &node, 0, depth, high, true);
	if (high_side < 0)
		return FST_FN(one_side) (f, &node, 0, depth, low, false);

	/* the way that both have in common */
	while (depth < low->len && depth < high->len &&
		   low->key[depth] == high->key[depth])
	{
		if (!FST_FN(find) (f, &node, low->key[depth], &slot) ||
			slot.label != low->key[depth])
			return HYB_FST_NO;
		depth++;
		if (!slot.child)
		{
			uint32_t	leaf = f->payload_bits > 0 ?
				FST_FN(leaf) (f, &node, &slot) : 0;

			return FST_FN(leaf_side) (f, leaf, low, depth) >= 0 &&
				FST_FN(leaf_side) (f, leaf, high, depth) <= 0;
		}
		if (!FST_FN(descend) (f, &node, &slot, &number))
			return HYB_FST_DAMAGED;
	}

	/* here the ways part */
	if (depth >= high->len)
	{
		if (depth >= low->len)
		{
			/* the same key: what lies between its cuts? */
			if (low->side >= high->side)
				return HYB_FST_NO;
			if (high->side == HYB_CUT_AFTER)
				return HYB_FST_YES;
			return node.terminator;
		}
		if (high->side != HYB_CUT_AFTER)
			return HYB_FST_NO;
		return FST_FN(one_side) (f, &node, number, depth, low, false);
	}
	if (depth >= low->len)
	{
		if (low->side == HYB_CUT_AFTER)
			return HYB_FST_NO;
		if (low->side == HYB_CUT_BEFORE && node.terminator)
			return HYB_FST_YES;
		if (!FST_FN(find) (f, &node, 0, &slot))
			return HYB_FST_DAMAGED;
	}
	else
	{
		if (low->key[depth] > high->key[depth])
			return HYB_FST_NO;
		if (!FST_FN(find) (f, &node, low->key[depth], &slot))
			return HYB_FST_NO;
		if (slot.label == low->key[depth])
		{
			FST_FN(Node) below = node;
			uint32_t	below_number = number;
			HybFstAnswer answer;

			if (!slot.child)
				answer = FST_FN(leaf_side) (f, f->payload_bits > 0 ?
											FST_FN(leaf) (f, &node, &slot) : 0,
											low, depth + 1) >= 0;
			else if (!FST_FN(descend) (f, &below, &slot, &below_number))
				answer = HYB_FST_DAMAGED;
			else
				answer = FST_FN(one_side) (f, &below, below_number, depth + 1,
										   low, false);
			if (answer != HYB_FST_NO)
				return answer;
			if (!FST_FN(find) (f, &node, slot.label + 1u, &slot))
				return HYB_FST_NO;
		}
	}
	if (slot.label != high->key[depth])
		return slot.label < high->key[depth];
	depth++;
	if (!slot.child)
		return FST_FN(leaf_side) (f, f->payload_bits > 0 ?
								  FST_FN(leaf) (f, &node, &slot) : 0,
								  high, depth) <= 0;
	if (!FST_FN(descend) (f, &node, &slot, &number))
		return HYB_FST_DAMAGED;
	return FST_FN(one_side) (f, &node, number, depth, high, true);
}

/* ---- counting ---- */

/*
 * Leaves before the cut, summed up over the levels, each level's from the
 * start of the trie: only differences of such sums mean something.  A leaf
 * that may lie on either side is taken to lie below if `generous`.
 */
static FST_TARGET bool
FST_FN(leaves_before) (const HybFst *f, const HybCut *cut, bool generous,
					   uint64_t *sum)
{
	uint32_t	depth = f->prefix_len;
	uint32_t	number = 0;
	uint32_t	total = f->ndense + f->nnodes;
	bool		on_path = true;
	int			side = FST_FN(prefix_side) (f, cut);

	*sum = 0;
	if (side != 0)
		on_path = false;
	if (side < 0)
		number = 1;				/* after the root */
	for (uint32_t level = 0; level < f->height; level++)
	{
		FST_FN(Node) node;
		FST_FN(Slot) slot;
		uint32_t	children;
		uint32_t	leaves;
		bool		descend = false;

		if (number >= total)
		{
			*sum += f->nkeys;
			continue;
		}
		if (!FST_FN(open_node) (f, number, &node))
			return false;

		/* the place within the node */
		if (!on_path || (depth >= cut->len && cut->side == HYB_CUT_BEFORE))
		{
			on_path = false;
			slot.label = 0;
			slot.pos = node.start - node.terminator;
			if (node.dense != NULL)
			{
				*sum += node.dense->leaf_base;
				number = node.dense->children_base + 1;
				continue;
			}
		}
		else if (depth >= cut->len)
		{
			/* above the terminator, or above everything */
			on_path = false;
			slot.label = 0;
			slot.pos = cut->side == HYB_CUT_AFTER ? node.end : node.start;
			if (node.dense != NULL && cut->side == HYB_CUT_AFTER)
			{
				*sum += FST_FN(dense_leaves) (node.dense, 0xFF) +
					((node.dense->labels[3] & ~node.dense->children[3]) >> 63);
				number = FST_FN(dense_children) (node.dense, 0xFF) +
					(node.dense->children[3] >> 63) + 1;
				continue;
			}
		}
		else
		{
			bool		found = FST_FN(find) (f, &node, cut->key[depth], &slot);

			if (!found)
			{
				on_path = false;
				slot.pos = node.end;
				if (node.dense != NULL)
				{
					*sum += FST_FN(dense_leaves) (node.dense, 0xFF) +
						((node.dense->labels[3] & ~node.dense->children[3]) >> 63);
					number = FST_FN(dense_children) (node.dense, 0xFF) +
						(node.dense->children[3] >> 63) + 1;
					continue;
				}
			}
			else if (slot.label != cut->key[depth])
				on_path = false;
			else if (slot.child)
				descend = true;
			else
			{
				uint32_t	leaf = FST_FN(leaf) (f, &node, &slot);
				int			s = FST_FN(leaf_side) (f, leaf, cut, depth + 1);

				on_path = false;
				if (s < 0 || (s == 0 && generous))
				{
					/* the leaf itself lies below: no child is passed */
					*sum += leaf + 1;
					number = FST_FN(child) (f, &node, &slot);
					continue;
				}
			}
		}
		if (node.dense != NULL)
		{
			leaves = FST_FN(dense_leaves) (node.dense, slot.label);
			children = FST_FN(dense_children) (node.dense, slot.label);
		}
		else if (slot.pos >= f->npos)
		{
			leaves = f->nkeys;
			children = total - 1;
		}
		else
		{
			uint32_t	rank = FST_FN(rank) (f, slot.pos);

			leaves = f->dense_leaves + slot.pos - rank;
			children = f->dense_children + rank;
		}
		*sum += leaves;
		number = children + 1;
		if (descend)
			depth++;
	}
	return true;
}

static FST_TARGET HybFstAnswer
FST_FN(count) (const HybFst *f, const HybCut *low, const HybCut *high,
			   uint32_t *count)
{
	uint64_t	from;
	uint64_t	to;

	if (f->flags & HYB_FST_EMPTY_KEY)
	{
		*count = FST_FN(range) (f, low, high);
		return HYB_FST_YES;
	}
	if (!FST_FN(leaves_before) (f, low, false, &from) ||
		!FST_FN(leaves_before) (f, high, true, &to))
		return HYB_FST_DAMAGED;
	*count = to <= from ? 0 : to - from > f->nkeys ? f->nkeys : (uint32_t) (to - from);
	return HYB_FST_YES;
}

const HybFstKernel FST_FN(kernel) = {
	FST_FN(lookup), FST_FN(range), FST_FN(count)
};
