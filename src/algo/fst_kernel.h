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
 */
#include "algo/fst_nodes.h"
#include "algo/hash.h"

/* ---- leaves against keys ---- */

HYB_FST_INLINE uint64_t
FST_FN(leaf_suffix) (const HybFst *f, uint32_t leaf)
{
	if (leaf >= f->nkeys)
		return 0;
	return hyb_bits_get(f->suffixes, (uint64_t) leaf * f->suffix_bits,
						f->suffix_bits);
}

/* The n bits of a key after `depth` bytes; `fill` stands for what it lacks. */
HYB_FST_INLINE uint64_t
FST_FN(suffix) (const uint8_t *key, uint32_t len, uint32_t depth, unsigned n,
				uint8_t fill)
{
	unsigned	bytes = (n + 7) / 8;
	uint64_t	v = 0;

	for (uint32_t i = depth; i < depth + bytes; i++)
		v = (v << 8) | (i < len ? key[i] : fill);
	return v >> (bytes * 8 - n);
}

/* The key's bits after the trie's that a leaf has; 0 if it has none. */
HYB_FST_INLINE uint64_t
FST_FN(real_suffix) (const HybFst *f, const HybFstNode *node,
					 const HybFstEdge *slot)
{
	if (f->real_bits == 0)
		return 0;
	return FST_FN(leaf_suffix) (f, FST_FN(leaf) (f, node, slot)) &
		(~UINT64_C(0) >> (64 - f->real_bits));
}

/*
 * The key of a leaf with this suffix, whose `depth` bytes in the trie the
 * cut's key begins with, against the cut: -1 below, 1 above, 0 unknown.
 */
HYB_FST_INLINE int
FST_FN(leaf_side) (const HybFst *f, uint64_t have, const HybFstCut *cut,
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
	if (f->real_bits > 0)
	{
		uint64_t	want = FST_FN(suffix) (cut->key, cut->len, depth, f->real_bits,
										   cut->side == HYB_CUT_AFTER ? 0xFF : 0);

		if (have != want)
			return have < want ? -1 : 1;
	}
	return 0;
}

/* A leaf, `depth` bytes deep, against a cut. */
HYB_FST_INLINE int
FST_FN(slot_side) (const HybFst *f, const HybFstNode *node,
				   const HybFstEdge *slot, const HybFstCut *cut, uint32_t depth)
{
	return FST_FN(leaf_side) (f, FST_FN(real_suffix) (f, node, slot), cut, depth);
}

/* ---- the way down ---- */

typedef enum HybFstEnd
{
	HYB_FST_END_DAMAGED,
	HYB_FST_END_NONE,			/* no key begins with these bytes */
	HYB_FST_END_LEAF,			/* slot has no child; *depth bytes lead to it */
	HYB_FST_END_NODE			/* at the node that all the bytes lead to */
} HybFstEnd;

/*
 * Follow the bytes [*depth, len) of a key from the root.  Inlined, so that
 * *node and *slot stay in registers.
 */
__attribute__((always_inline))
HYB_FST_INLINE HybFstEnd
FST_FN(walk) (const HybFst *f, const uint8_t *key, uint32_t len,
			  uint32_t *depth, HybFstNode *node, HybFstEdge *slot)
{
	uint32_t	d = *depth;

	if (!FST_FN(open_root) (f, node))
		return HYB_FST_END_DAMAGED;
	while (node->dense != NULL)
	{
		unsigned	c;

		if (d == len)
		{
			*depth = d;
			return HYB_FST_END_NODE;
		}
		c = key[d++];
		if (((node->dense->labels[c / 64] >> (c & 63)) & 1) == 0)
			return HYB_FST_END_NONE;
		if (((node->dense->children[c / 64] >> (c & 63)) & 1) == 0)
		{
			slot->pos = 0;
			slot->label = (uint8_t) c;
			slot->child = false;
			*depth = d;
			return HYB_FST_END_LEAF;
		}
		if (!FST_FN(descend_dense) (f, node, c))
			return HYB_FST_END_DAMAGED;
	}
	for (;;)
	{
		uint32_t	pos = node->start;
		uint32_t	at;
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

			pos += terminator;
			if (!FST_FN(label_match) (f->labels + pos, node->n - terminator, c, &at))
				return HYB_FST_END_NONE;
			pos += at;
		}
		if (!FST_FN(has_child) (f, pos))
		{
			slot->pos = pos;
			slot->label = c;
			slot->child = false;
			*depth = d;
			return HYB_FST_END_LEAF;
		}
		if (!FST_FN(descend_sparse) (f, node, pos))
			return HYB_FST_END_DAMAGED;
	}
}

/* ---- point lookup ---- */

static FST_TARGET HybFstAnswer
FST_FN(lookup) (const HybFst *f, const uint8_t *key, uint32_t len)
{
	uint32_t	depth = f->prefix_len;
	HybFstNode	node;
	HybFstEdge	slot;
	uint64_t	have;

	if (f->flags & HYB_FST_EMPTY_KEY)
		return len == 0;
	if (len < depth || memcmp(key, f->prefix, depth) != 0)
		return HYB_FST_NO;
	switch (FST_FN(walk) (f, key, len, &depth, &node, &slot))
	{
		case HYB_FST_END_DAMAGED:
			return HYB_FST_DAMAGED;
		case HYB_FST_END_NONE:
			return HYB_FST_NO;
		case HYB_FST_END_NODE:
			return FST_FN(terminated) (f, &node);
		case HYB_FST_END_LEAF:
			break;
	}

	if (f->suffix_bits == 0)
		return HYB_FST_YES;
	have = FST_FN(leaf_suffix) (f, FST_FN(leaf) (f, &node, &slot));
	if (f->real_bits > 0 &&
		(have & (~UINT64_C(0) >> (64 - f->real_bits))) !=
		FST_FN(suffix) (key, len, depth, f->real_bits, 0))
		return HYB_FST_NO;
	if (f->hash_bits > 0 &&
		have >> f->real_bits != hyb_byte_hash(key, len) >> (64 - f->hash_bits))
		return HYB_FST_NO;
	return HYB_FST_YES;
}

/* ---- range lookup ---- */

/*
 * May a key below a node lie above the cut, or (upper) below it?  The path to
 * the node agrees with the cut's key as far as both go.  No step back is ever
 * needed: a label on the right side of the cut's has keys of its own.
 */
static FST_TARGET HybFstAnswer
FST_FN(one_side) (const HybFst *f, HybFstNode *node, uint32_t depth,
				  const HybFstCut *cut, bool upper)
{
	for (;;)
	{
		HybFstEdge	slot;
		uint8_t		c;
		int			side;

		if (depth >= cut->len)
		{
			if (upper)
				return cut->side == HYB_CUT_AFTER ||
					(cut->side == HYB_CUT_SELF && FST_FN(terminated) (f, node));
			return cut->side != HYB_CUT_AFTER;
		}
		c = cut->key[depth];
		if (upper)
		{
			if (FST_FN(terminated) (f, node))
				return HYB_FST_YES;
			if (!FST_FN(find) (f, node, 0, &slot))
				return HYB_FST_DAMAGED;
			if (slot.label != c)
				return slot.label < c;
		}
		else
		{
			if (!FST_FN(find_last) (f, node, &slot))
				return HYB_FST_DAMAGED;
			if (slot.label != c)
				return slot.label > c;
		}
		depth++;
		if (!slot.child)
		{
			side = FST_FN(slot_side) (f, node, &slot, cut, depth);
			return upper ? side <= 0 : side >= 0;
		}
		if (!FST_FN(descend) (f, node, &slot))
			return HYB_FST_DAMAGED;
	}
}

/* Where the keys with the common prefix lie: 0, all below or above the cut? */
HYB_FST_INLINE int
FST_FN(prefix_side) (const HybFst *f, const HybFstCut *cut)
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
HYB_FST_INLINE HybFstAnswer
FST_FN(parted) (const HybFst *f, HybFstNode *node, uint32_t depth,
				const HybFstCut *low, const HybFstCut *high)
{
	HybFstEdge	slot;

	if (depth >= high->len)
	{
		if (depth >= low->len)
		{
			/* the same key: what lies between its cuts? */
			if (low->side >= high->side)
				return HYB_FST_NO;
			if (high->side == HYB_CUT_AFTER)
				return HYB_FST_YES;
			return FST_FN(terminated) (f, node);
		}
		if (high->side != HYB_CUT_AFTER)
			return HYB_FST_NO;
		return FST_FN(one_side) (f, node, depth, low, false);
	}
	if (depth >= low->len)
	{
		if (low->side == HYB_CUT_AFTER)
			return HYB_FST_NO;
		if (low->side == HYB_CUT_BEFORE && FST_FN(terminated) (f, node))
			return HYB_FST_YES;
		if (!FST_FN(find) (f, node, 0, &slot))
			return HYB_FST_DAMAGED;
	}
	else
	{
		if (low->key[depth] > high->key[depth])
			return HYB_FST_NO;
		if (!FST_FN(find) (f, node, low->key[depth], &slot))
			return HYB_FST_NO;
		if (slot.label == low->key[depth])
		{
			HybFstNode	below = *node;
			HybFstAnswer answer;

			if (!slot.child)
				answer = FST_FN(slot_side) (f, node, &slot, low, depth + 1) >= 0;
			else if (!FST_FN(descend) (f, &below, &slot))
				answer = HYB_FST_DAMAGED;
			else
				answer = FST_FN(one_side) (f, &below, depth + 1, low, false);
			if (answer != HYB_FST_NO)
				return answer;
			if (slot.label == 0xFF ||
				!FST_FN(find) (f, node, slot.label + 1u, &slot))
				return HYB_FST_NO;
		}
	}
	if (slot.label != high->key[depth])
		return slot.label < high->key[depth];
	depth++;
	if (!slot.child)
		return FST_FN(slot_side) (f, node, &slot, high, depth) <= 0;
	if (!FST_FN(descend) (f, node, &slot))
		return HYB_FST_DAMAGED;
	return FST_FN(one_side) (f, node, depth, high, true);
}

static FST_TARGET HybFstAnswer
FST_FN(range) (const HybFst *f, const HybFstCut *low, const HybFstCut *high)
{
	uint32_t	depth = f->prefix_len;
	uint32_t	common = low->len < high->len ? low->len : high->len;
	uint64_t	have;
	HybFstNode	node;
	HybFstEdge	slot;

	if (f->flags & HYB_FST_EMPTY_KEY)
		return low->len == 0 && low->side == HYB_CUT_BEFORE &&
			(high->len > 0 || high->side != HYB_CUT_BEFORE);
	if (depth > 0)
	{
		int			low_side = FST_FN(prefix_side) (f, low);
		int			high_side = FST_FN(prefix_side) (f, high);

		if (low_side < 0 || high_side > 0)
			return HYB_FST_NO;
		if (low_side > 0 && high_side < 0)
			return HYB_FST_YES;
		if (low_side > 0 || high_side < 0)
		{
			if (!FST_FN(open_root) (f, &node))
				return HYB_FST_DAMAGED;
			return low_side > 0 ?
				FST_FN(one_side) (f, &node, depth, high, true) :
				FST_FN(one_side) (f, &node, depth, low, false);
		}
	}

	/* the way that both have in common */
	common = depth + hyb_common_prefix(low->key + depth, high->key + depth,
									   common - depth);
	switch (FST_FN(walk) (f, low->key, common, &depth, &node, &slot))
	{
		case HYB_FST_END_DAMAGED:
			return HYB_FST_DAMAGED;
		case HYB_FST_END_NONE:
			return HYB_FST_NO;
		case HYB_FST_END_LEAF:
			have = FST_FN(real_suffix) (f, &node, &slot);
			return FST_FN(leaf_side) (f, have, low, depth) >= 0 &&
				FST_FN(leaf_side) (f, have, high, depth) <= 0;
		case HYB_FST_END_NODE:
			break;
	}
	return FST_FN(parted) (f, &node, depth, low, high);
}

/* ---- counting ---- */

/* A place between the labels of a level, or next to its end. */
typedef struct HybFstPlace
{
	uint32_t	dense;			/* a dense node, or ndense: */
	unsigned	label;
	uint32_t	pos;			/* sparse position, or npos */
} HybFstPlace;

HYB_FST_INLINE uint32_t
FST_FN(place_leaves) (const HybFst *f, const HybFstPlace *p)
{
	if (p->dense >= f->ndense)
		return p->pos >= f->npos ? f->nkeys :
			f->dense_leaves + p->pos - FST_FN(rank) (f, p->pos);
	if (p->label == 0)
		return f->dense[p->dense].leaf_base +
			(f->dense[p->dense].terminator && p->pos != 0);
	return FST_FN(dense_leaves) (&f->dense[p->dense], p->label);
}

/* To the same place of the next level: the start of the next child. */
HYB_FST_INLINE bool
FST_FN(place_descend) (const HybFst *f, HybFstPlace *p)
{
	HybFstNode	node;
	uint32_t	k;
	uint32_t	from;

	if (p->dense < f->ndense)
	{
		const HybFstDense *d = &f->dense[p->dense];

		from = FST_FN(dense_child) (d, p->label, &k);
		p->label = 0;
		p->pos = 0;
		if (!d->sparse)
		{
			if (from + k <= p->dense || from + k > f->ndense)
				return false;
			p->dense = from + k;
			return true;
		}
		p->dense = f->ndense;
	}
	else if (p->pos >= f->npos)
		return true;
	else
		from = FST_FN(sparse_child) (f, p->pos, &k);
	p->pos = FST_FN(open_sparse) (f, from, k, &node) ? node.start : f->npos;
	return true;
}

/* After the last label of a node. */
HYB_FST_INLINE void
FST_FN(place_after) (HybFstPlace *p, const HybFstNode *node)
{
	p->label = 0;
	if (node->dense != NULL)
	{
		p->dense++;
		p->pos = 0;
	}
	else
		p->pos = node->start + node->n;
}

/*
 * Leaves before the cut, summed up over the levels, each level's from the
 * start of the trie: only differences of such sums mean something.  A leaf
 * that may lie on either side is taken to lie below if `generous`.
 */
static FST_TARGET bool
FST_FN(leaves_before) (const HybFst *f, const HybFstCut *cut, bool generous,
					   uint64_t *sum)
{
	uint32_t	depth = f->prefix_len;
	int			side = FST_FN(prefix_side) (f, cut);
	bool		on_path = side == 0;
	HybFstPlace place = {0, 0, 0};
	HybFstNode	node;

	*sum = 0;
	if (!FST_FN(open_root) (f, &node))
		return false;
	if (side < 0)
		FST_FN(place_after) (&place, &node);
	for (uint32_t level = 0; level < f->height; level++)
	{
		HybFstEdge	slot;

		if (!on_path)
			;
		else if (depth >= cut->len)
		{
			/* below the terminator, above it, or above everything */
			on_path = false;
			if (cut->side == HYB_CUT_AFTER)
				FST_FN(place_after) (&place, &node);
			else if (cut->side == HYB_CUT_SELF)
				place.pos += FST_FN(terminated) (f, &node);
		}
		else if (!FST_FN(find) (f, &node, cut->key[depth], &slot))
		{
			on_path = false;
			FST_FN(place_after) (&place, &node);
		}
		else
		{
			place.label = slot.label;
			place.pos = node.dense != NULL ? 1 : slot.pos;
			on_path = slot.label == cut->key[depth];
			depth++;
		}
		*sum += FST_FN(place_leaves) (f, &place);
		if (on_path && !slot.child)
		{
			int			s = FST_FN(slot_side) (f, &node, &slot, cut, depth);

			/* that leaf itself has no child to pass */
			on_path = false;
			*sum += s < 0 || (s == 0 && generous);
		}
		if (on_path)
		{
			if (!FST_FN(descend) (f, &node, &slot))
				return false;
			place.label = 0;
			place.dense = node.dense != NULL ? (uint32_t) (node.dense - f->dense) : f->ndense;
			place.pos = node.dense != NULL ? 0 : node.start;
		}
		else if (!FST_FN(place_descend) (f, &place))
			return false;
	}
	return true;
}

static FST_TARGET HybFstAnswer
FST_FN(count) (const HybFst *f, const HybFstCut *low, const HybFstCut *high,
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

const HybFstKernel
FST_FN(kernel) =
{
	FST_FN(lookup), FST_FN(range), FST_FN(count)
};
