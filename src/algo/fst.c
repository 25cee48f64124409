/*
 * fst.c
 *		Opening and searching a Fast Succinct Trie.
 *
 * Whatever bytes an image holds, nothing is read outside it: positions that it yields
 * are checked before use, and a child's position lies above its parent's, so that
 * every walk ends.
 */
#include "algo/fst.h"

/* A node at hand. */
typedef struct HybFstNode
{
	uint32_t	start;			/* positions, a terminator's included */
	uint32_t	n;
} HybFstNode;

/* A label of a node, with what belongs to it. */
typedef struct HybFstEdge
{
	uint32_t	pos;
	uint8_t		label;
	bool		child;
} HybFstEdge;

/* Where the way down from the root ends */
typedef enum HybFstEnd
{
	HYB_FST_END_DAMAGED,
	HYB_FST_END_NONE,			/* no key begins with these bytes */
	HYB_FST_END_LEAF,			/* at a label without child, which ends *depth
								 * bytes */
	HYB_FST_END_NODE			/* at the node that all the bytes lead to */
} HybFstEnd;

/* Words of an image are read in place.  Some 32-bit machines align them to 4 bytes. */
#define WORD_ALIGNMENT	offsetof(struct { char before; uint64_t word; }, word)

bool
hyb_fst_open(HybFst *fst, const void *image, size_t size)
{
	const uint8_t *p = image;
	HybFstHeader h;
	uint64_t	labels;
	uint64_t	blocks;
	uint64_t	words;
	uint64_t	suffixes;

	if (size < sizeof(h) || (uintptr_t) image % WORD_ALIGNMENT != 0)
		return false;
	memcpy(&h, image, sizeof(h));
	if (h.magic != HYB_FST_MAGIC || h.nkeys == 0 ||
		h.suffix_bits > HYB_FST_MAX_SUFFIX)
		return false;
	if (h.npos == 0 && (h.nkeys != 1 || h.prefix_len != 0))
		return false;

	fst->nkeys = h.nkeys;
	fst->npos = h.npos;
	fst->prefix_len = h.prefix_len;
	fst->suffix_bits = h.suffix_bits;
	fst->nwords = (uint32_t) (((uint64_t) h.npos + 63) / 64);
	fst->nblocks = (fst->nwords + 7) / 8;

	/* places first: pointers to them only if they are in the image */
	labels = (uint64_t) sizeof(HybFstHeader) + h.prefix_len;
	suffixes = labels + h.npos;
	blocks = suffixes;
	if (h.npos > 0)
		blocks += ((uint64_t) h.nkeys * h.suffix_bits + 7) / 8;
	blocks = (blocks + 7) & ~UINT64_C(7);
	words = blocks + (uint64_t) fst->nblocks * sizeof(HybFstBlock);
	if (words + (uint64_t) fst->nwords * 16 > size)
		return false;

	fst->prefix = p + sizeof(HybFstHeader);
	fst->labels = p + labels;
	fst->blocks = (const HybFstBlock *) (p + blocks);
	fst->words = (const uint64_t *) (p + words);
	fst->suffixes = p + suffixes;
	return true;
}

/* ---- bits ---- */

static inline uint64_t
fst_word(const HybFst *f, uint32_t w, int which)
{
	return f->words[(size_t) w * 2 + which];
}

/* Has-child bits at positions below pos, pos < npos. */
static inline uint32_t
fst_rank(const HybFst *f, uint32_t pos)
{
	uint32_t	rank = f->blocks[pos / HYB_FST_BLOCK].rank;
	uint32_t	last = pos >> 6;

	for (uint32_t w = last & ~7u; w < last; w++)
		rank += hyb_popcount64(fst_word(f, w, 0));
	return rank + hyb_popcount64(fst_word(f, last, 0) &
								 ((UINT64_C(1) << (pos & 63)) - 1));
}

static inline bool
fst_has_child(const HybFst *f, uint32_t pos)
{
	return (fst_word(f, pos >> 6, 0) >> (pos & 63)) & 1;
}

/* ---- nodes ---- */

/* The k-th (from 0) node that begins at or after pos.  Returns false without one. */
static inline bool
fst_open_node(const HybFst *f, uint32_t pos, uint32_t k, HybFstNode *node)
{
	uint32_t	w = pos >> 6;
	uint32_t	c;
	uint64_t	v;
	unsigned	bit;

	if (pos >= f->npos)
		return false;

	/* needed next, and near enough to where the node will turn out to begin */
	HYB_PREFETCH(f->labels + pos + k);
	HYB_PREFETCH(&f->blocks[pos / HYB_FST_BLOCK]);
	v = fst_word(f, w, 1) & (~UINT64_C(0) << (pos & 63));
	c = hyb_popcount64(v);
	while (k >= c)
	{
		k -= c;
		if (++w >= f->nwords)
			return false;
		v = fst_word(f, w, 1);
		c = hyb_popcount64(v);
	}
	bit = hyb_select64(v, k) & 63;
	node->start = w * 64 + bit;
	if (node->start >= f->npos)
		return false;

	/* it ends before the next first-of-node bit */
	v &= (~UINT64_C(0) << bit) << 1;
	while (v == 0)
	{
		if (++w >= f->nwords)
		{
			node->n = f->npos - node->start;
			return true;
		}
		v = fst_word(f, w, 1);
	}
	w = w * 64 + (uint32_t) __builtin_ctzll(v);
	node->n = (w < f->npos ? w : f->npos) - node->start;
	return true;
}

static inline bool
fst_open_root(const HybFst *f, HybFstNode *node)
{
	return fst_open_node(f, 0, 0, node);
}

static inline bool
fst_terminated(const HybFst *f, const HybFstNode *node)
{
	return node->n > 1 && f->labels[node->start] == 0xFF;
}

/*
 * Below a position: its child, or that of the next one that has any, is the *k-th node
 * from the position that is returned.
 */
static inline uint32_t
fst_child(const HybFst *f, uint32_t pos, uint32_t *k)
{
	const HybFstBlock *block = &f->blocks[pos / HYB_FST_BLOCK];
	uint32_t	group = pos % HYB_FST_BLOCK / HYB_FST_GROUP;
	uint32_t	w = pos >> 6;

	*k = hyb_popcount64(fst_word(f, w, 0) & ((UINT64_C(1) << (pos & 63)) - 1)) +
		hyb_popcount64(fst_word(f, w & ~1u, 0) & (UINT64_C(0) - (w & 1)));
	if (__builtin_expect(block->child_sub[group] == HYB_FST_FAR, 0))
	{
		while (group > 0 && block->child_sub[group] == HYB_FST_FAR)
		{
			group--;
			w = (w & ~1u) - 2;
			*k += hyb_popcount64(fst_word(f, w, 0)) +
				hyb_popcount64(fst_word(f, w + 1, 0));
		}
	}
	return block->child + block->child_sub[group];
}

/*
 * Go on to the child of a position that has one; false if the image is damaged.
 * Children lie above their parents, so that every walk ends.
 */
static inline bool
fst_descend(const HybFst *f, HybFstNode *node, uint32_t pos)
{
	uint32_t	k;
	uint32_t	from = fst_child(f, pos, &k);

	return fst_open_node(f, from, k, node) && node->start > pos;
}

/* ---- labels ---- */

/* First of n ascending labels that is at least c; n if none. */
static inline uint32_t
fst_label_search(const uint8_t *labels, uint32_t n, uint8_t c)
{
	uint32_t	i = 0;

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

/* The label at a position. */
static inline HybFstEdge
fst_edge(const HybFst *f, uint32_t pos)
{
	HYB_ASSERT(pos < f->npos);
	return (HybFstEdge)
	{
		pos, f->labels[pos], fst_has_child(f, pos)
	};
}

/* The first label, which no node is without. */
static inline HybFstEdge
fst_first(const HybFst *f, const HybFstNode *node)
{
	return fst_edge(f, node->start + fst_terminated(f, node));
}

/* First label at or above c, c up to 255; false if none. */
static inline bool
fst_find(const HybFst *f, const HybFstNode *node, unsigned c,
		 HybFstEdge *edge)
{
	uint32_t	terminator = fst_terminated(f, node);
	uint32_t	start = node->start + terminator;
	uint32_t	n = node->n - terminator;
	uint32_t	i = fst_label_search(f->labels + start, n, (uint8_t) c);

	if (i >= n)
		return false;
	*edge = fst_edge(f, start + i);
	return true;
}

/* ---- leaves against keys ---- */

/* The suffix of the leaf at a position; 0 if it has none. */
static inline uint64_t
fst_leaf_suffix(const HybFst *f, uint32_t pos)
{
	uint32_t	leaf;

	if (f->suffix_bits == 0)
		return 0;
	leaf = pos - fst_rank(f, pos);
	if (leaf >= f->nkeys)
		return 0;
	return hyb_bits_get(f->suffixes, (uint64_t) leaf * f->suffix_bits,
						f->suffix_bits);
}

/* The n bits of a key after `depth` bytes; `fill` stands for what it lacks. */
static inline uint64_t
fst_suffix(const uint8_t *key, uint32_t len, uint32_t depth, unsigned n,
		   uint8_t fill)
{
	unsigned	bytes = (n + 7) / 8;
	uint64_t	v = 0;

	for (uint32_t i = depth; i < depth + bytes; i++)
		v = (v << 8) | (i < len ? key[i] : fill);
	return v >> (bytes * 8 - n);
}

/*
 * The key of a leaf with this suffix, whose `depth` bytes in the trie the
 * cut's key begins with, against the cut: -1 below, 1 above, 0 unknown.
 */
static inline int
fst_leaf_side(const HybFst *f, uint64_t have, const HybFstCut *cut,
			  uint32_t depth)
{
	if (depth >= cut->len)
	{
		if (cut->side == HYB_CUT_BEFORE)
			return 1;
		if (cut->side == HYB_CUT_AFTER)
			return -1;
		return 0;
	}
	if (f->suffix_bits > 0)
	{
		uint64_t	want = fst_suffix(cut->key, cut->len, depth, f->suffix_bits,
									  cut->side == HYB_CUT_AFTER ? 0xFF : 0);

		if (have != want)
			return have < want ? -1 : 1;
	}
	return 0;
}

/* The leaf at a position, `depth` bytes deep, against a cut. */
static inline int
fst_edge_side(const HybFst *f, uint32_t pos, const HybFstCut *cut,
			  uint32_t depth)
{
	return fst_leaf_side(f, fst_leaf_suffix(f, pos), cut, depth);
}

/* ---- the way down ---- */

/*
 * Follow the bytes [*depth, len) of a key from the root, to *node, or to the leaf at
 * position *leaf.  Inlined, so that both stay in registers.
 */
HYB_ALWAYS_INLINE HybFstEnd
fst_walk(const HybFst *f, const uint8_t *key, uint32_t len,
		 uint32_t *depth, HybFstNode *node, uint32_t *leaf)
{
	uint32_t	d = *depth;

	if (!fst_open_root(f, node))
		return HYB_FST_END_DAMAGED;
	for (;;)
	{
		uint32_t	pos = node->start;
		uint8_t		c;

		if (d == len)
		{
			*depth = d;
			return HYB_FST_END_NODE;
		}
		c = key[d++];
		if (node->n == 1)
		{
			/* where it goes on does not wait for the label */
			if (f->labels[pos] != c)
				return HYB_FST_END_NONE;
		}
		else
		{
			uint32_t	terminator = c == 0xFF && f->labels[pos] == 0xFF;
			const uint8_t *found = memchr(f->labels + pos + terminator, c, node->n - terminator);

			if (found == NULL)
				return HYB_FST_END_NONE;
			pos = (uint32_t) (found - f->labels);
		}
		if (!fst_has_child(f, pos))
		{
			*leaf = pos;
			*depth = d;
			return HYB_FST_END_LEAF;
		}
		if (!fst_descend(f, node, pos))
			return HYB_FST_END_DAMAGED;
	}
}

/* ---- point lookup ---- */

HybFilterAnswer
hyb_fst_lookup(const HybFst *f, const uint8_t *key, uint32_t len)
{
	uint32_t	depth = f->prefix_len;
	HybFstNode	node;
	uint32_t	leaf = 0;

	if (f->npos == 0)
		return len == 0;
	if (len < depth || memcmp(key, f->prefix, depth) != 0)
		return HYB_ANSWER_NO;
	switch (fst_walk(f, key, len, &depth, &node, &leaf))
	{
		case HYB_FST_END_DAMAGED:
			return HYB_ANSWER_DAMAGED;
		case HYB_FST_END_NONE:
			return HYB_ANSWER_NO;
		case HYB_FST_END_NODE:
			return fst_terminated(f, &node);
		case HYB_FST_END_LEAF:
			break;
	}

	return f->suffix_bits == 0 ||
		fst_leaf_suffix(f, leaf) ==
		fst_suffix(key, len, depth, f->suffix_bits, 0);
}

/* ---- range lookup ---- */

/*
 * May a key below a node lie above the cut, or (upper) below it?  The path to
 * the node agrees with the cut's key as far as both go.  No step back is ever
 * needed: a label on the right side of the cut's has keys of its own.
 */
static HybFilterAnswer
fst_one_side(const HybFst *f, HybFstNode *node, uint32_t depth,
			 const HybFstCut *cut, bool upper)
{
	for (;;)
	{
		HybFstEdge	edge;
		uint8_t		c;
		int			side;

		if (depth >= cut->len)
		{
			if (upper)
				return cut->side == HYB_CUT_AFTER ||
					(cut->side == HYB_CUT_SELF && fst_terminated(f, node));
			return cut->side != HYB_CUT_AFTER;
		}
		c = cut->key[depth];
		if (upper)
		{
			if (fst_terminated(f, node))
				return HYB_ANSWER_MAYBE;
			edge = fst_first(f, node);
			if (edge.label != c)
				return edge.label < c;
		}
		else
		{
			edge = fst_edge(f, node->start + node->n - 1);
			if (edge.label != c)
				return edge.label > c;
		}
		depth++;
		if (!edge.child)
		{
			side = fst_edge_side(f, edge.pos, cut, depth);
			return upper ? side <= 0 : side >= 0;
		}
		if (!fst_descend(f, node, edge.pos))
			return HYB_ANSWER_DAMAGED;
	}
}

/* Where the keys with the common prefix lie: 0, all below or above the cut? */
static inline int
fst_prefix_side(const HybFst *f, const HybFstCut *cut)
{
	uint32_t	n = cut->len < f->prefix_len ? cut->len : f->prefix_len;
	int			c = n > 0 ? memcmp(f->prefix, cut->key, n) : 0;

	if (c != 0)
		return c;
	if (cut->len < f->prefix_len)
		return cut->side == HYB_CUT_AFTER ? -1 : 1;
	return 0;
}

/*
 * Is any key between two cuts whose keys begin with the bytes that lead to the
 * node, `depth` of them, and differ in the next or end there?
 */
static inline HybFilterAnswer
fst_parted(const HybFst *f, HybFstNode *node, uint32_t depth,
		   const HybFstCut *low, const HybFstCut *high)
{
	HybFstEdge	edge;

	if (depth >= high->len)
	{
		if (depth >= low->len)
		{
			/* the same key: what lies between its cuts? */
			if (low->side >= high->side)
				return HYB_ANSWER_NO;
			if (high->side == HYB_CUT_AFTER)
				return HYB_ANSWER_MAYBE;
			return fst_terminated(f, node);
		}
		if (high->side != HYB_CUT_AFTER)
			return HYB_ANSWER_NO;
		return fst_one_side(f, node, depth, low, false);
	}
	if (depth >= low->len)
	{
		if (low->side == HYB_CUT_AFTER)
			return HYB_ANSWER_NO;
		if (low->side == HYB_CUT_BEFORE && fst_terminated(f, node))
			return HYB_ANSWER_MAYBE;
		edge = fst_first(f, node);
	}
	else
	{
		if (low->key[depth] > high->key[depth])
			return HYB_ANSWER_NO;
		if (!fst_find(f, node, low->key[depth], &edge))
			return HYB_ANSWER_NO;
		if (edge.label == low->key[depth])
		{
			HybFstNode	below = *node;
			HybFilterAnswer answer;

			if (!edge.child)
				answer = fst_edge_side(f, edge.pos, low, depth + 1) >= 0;
			else if (!fst_descend(f, &below, edge.pos))
				answer = HYB_ANSWER_DAMAGED;
			else
				answer = fst_one_side(f, &below, depth + 1, low, false);
			if (answer != HYB_ANSWER_NO)
				return answer;
			if (edge.label == 0xFF ||
				!fst_find(f, node, edge.label + 1u, &edge))
				return HYB_ANSWER_NO;
		}
	}
	if (edge.label != high->key[depth])
		return edge.label < high->key[depth];
	depth++;
	if (!edge.child)
		return fst_edge_side(f, edge.pos, high, depth) <= 0;
	if (!fst_descend(f, node, edge.pos))
		return HYB_ANSWER_DAMAGED;
	return fst_one_side(f, node, depth, high, true);
}

HybFilterAnswer
hyb_fst_range(const HybFst *f, const HybFstCut *low, const HybFstCut *high)
{
	uint32_t	depth = f->prefix_len;
	uint32_t	common = low->len < high->len ? low->len : high->len;
	uint64_t	have;
	HybFstNode	node;
	uint32_t	leaf = 0;

	if (f->npos == 0)
		return low->len == 0 && low->side == HYB_CUT_BEFORE &&
			(high->len > 0 || high->side != HYB_CUT_BEFORE);
	if (depth > 0)
	{
		int			low_side = fst_prefix_side(f, low);
		int			high_side = fst_prefix_side(f, high);

		if (low_side < 0 || high_side > 0)
			return HYB_ANSWER_NO;
		if (low_side > 0 && high_side < 0)
			return HYB_ANSWER_MAYBE;
		if (low_side > 0 || high_side < 0)
		{
			if (!fst_open_root(f, &node))
				return HYB_ANSWER_DAMAGED;
			return low_side > 0 ?
				fst_one_side(f, &node, depth, high, true) :
				fst_one_side(f, &node, depth, low, false);
		}
	}

	/* the way that both have in common */
	common = depth + hyb_common_prefix(low->key + depth, high->key + depth,
									   common - depth);
	switch (fst_walk(f, low->key, common, &depth, &node, &leaf))
	{
		case HYB_FST_END_DAMAGED:
			return HYB_ANSWER_DAMAGED;
		case HYB_FST_END_NONE:
			return HYB_ANSWER_NO;
		case HYB_FST_END_LEAF:
			have = fst_leaf_suffix(f, leaf);
			return fst_leaf_side(f, have, low, depth) >= 0 &&
				fst_leaf_side(f, have, high, depth) <= 0;
		case HYB_FST_END_NODE:
			break;
	}
	return fst_parted(f, &node, depth, low, high);
}
