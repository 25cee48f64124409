/*
 * fst_kernel.h
 *		Searching a Fast Succinct Trie.  fst.c includes this once for each
 *		instruction set, and defines
 *
 *		FST_FN(name)	name of a function
 *		FST_TARGET		function attribute, or nothing
 *		FST_WIDTH		bytes that labels are compared at a time: 0, 16 or 32
 *		FST_POPCOUNT	population count of 64 bits
 *		FST_BMI			defined if there are the instructions of BMI2
 *
 * Whatever bytes an image holds, nothing is read outside it: node numbers and
 * positions that it yields are checked before use, and a child's position lies
 * above its parent's, so that every walk ends.
 */

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

/* First label at or above c, c up to 255; false if none. */
HYB_FST_INLINE bool
FST_FN(find) (const HybFst *f, const HybFstNode *node, unsigned c,
			  HybFstEdge *edge)
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
		edge->pos = 0;
		edge->label = (uint8_t) c;
		edge->child = (node->dense->children[w] >> (c & 63)) & 1;
		return true;
	}
	i = FST_FN(terminated) (f, node);
	start = node->start + i;
	n = node->n - i;
	i = c == 0 ? 0 : FST_FN(label_search) (f->labels + start, n, (uint8_t) c);
	if (i >= n)
		return false;
	edge->pos = start + i;
	edge->label = f->labels[edge->pos];
	edge->child = FST_FN(has_child) (f, edge->pos);
	return true;
}

/* The last label; false if there is none. */
HYB_FST_INLINE bool
FST_FN(find_last) (const HybFst *f, const HybFstNode *node,
				   HybFstEdge *edge)
{
	if (node->dense != NULL)
	{
		int			w = 3;

		while (node->dense->labels[w] == 0)
			if (--w < 0)
				return false;
		edge->pos = 0;
		edge->label = (uint8_t) (w * 64 + 63 - __builtin_clzll(node->dense->labels[w]));
		edge->child = (node->dense->children[w] >> (edge->label & 63)) & 1;
		return true;
	}
	edge->pos = node->start + node->n - 1;
	edge->label = f->labels[edge->pos];
	edge->child = FST_FN(has_child) (f, edge->pos);
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

/* Number of the leaf of a edge without a child. */
HYB_FST_INLINE uint32_t
FST_FN(leaf) (const HybFst *f, const HybFstNode *node,
			  const HybFstEdge *edge)
{
	if (node->dense != NULL)
		return FST_FN(dense_leaves) (node->dense, edge->label);
	return f->dense_leaves + edge->pos - FST_FN(rank) (f, edge->pos);
}

/* Go on to the child of a edge; false if the image is damaged. */
HYB_FST_INLINE bool
FST_FN(descend) (const HybFst *f, HybFstNode *node,
				 const HybFstEdge *edge)
{
	if (node->dense != NULL)
		return FST_FN(descend_dense) (f, node, edge->label);
	return FST_FN(descend_sparse) (f, node, edge->pos);
}

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
					 const HybFstEdge *edge)
{
	if (f->real_bits == 0)
		return 0;
	return FST_FN(leaf_suffix) (f, FST_FN(leaf) (f, node, edge)) &
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
FST_FN(edge_side) (const HybFst *f, const HybFstNode *node,
				   const HybFstEdge *edge, const HybFstCut *cut, uint32_t depth)
{
	return FST_FN(leaf_side) (f, FST_FN(real_suffix) (f, node, edge), cut, depth);
}

/* ---- the way down ---- */

/*
 * Follow the bytes [*depth, len) of a key from the root.  Inlined, so that
 * *node and *edge stay in registers.
 */
__attribute__((always_inline))
HYB_FST_INLINE HybFstEnd
FST_FN(walk) (const HybFst *f, const uint8_t *key, uint32_t len,
			  uint32_t *depth, HybFstNode *node, HybFstEdge *edge)
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
			edge->pos = 0;
			edge->label = (uint8_t) c;
			edge->child = false;
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
			edge->pos = pos;
			edge->label = c;
			edge->child = false;
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
	HybFstEdge	edge;
	uint64_t	have;

	if (f->flags & HYB_FST_EMPTY_KEY)
		return len == 0;
	if (len < depth || memcmp(key, f->prefix, depth) != 0)
		return HYB_FST_NO;
	switch (FST_FN(walk) (f, key, len, &depth, &node, &edge))
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
	have = FST_FN(leaf_suffix) (f, FST_FN(leaf) (f, &node, &edge));
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
		HybFstEdge	edge;
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
			if (!FST_FN(find) (f, node, 0, &edge))
				return HYB_FST_DAMAGED;
			if (edge.label != c)
				return edge.label < c;
		}
		else
		{
			if (!FST_FN(find_last) (f, node, &edge))
				return HYB_FST_DAMAGED;
			if (edge.label != c)
				return edge.label > c;
		}
		depth++;
		if (!edge.child)
		{
			side = FST_FN(edge_side) (f, node, &edge, cut, depth);
			return upper ? side <= 0 : side >= 0;
		}
		if (!FST_FN(descend) (f, node, &edge))
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
	HybFstEdge	edge;

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
		if (!FST_FN(find) (f, node, 0, &edge))
			return HYB_FST_DAMAGED;
	}
	else
	{
		if (low->key[depth] > high->key[depth])
			return HYB_FST_NO;
		if (!FST_FN(find) (f, node, low->key[depth], &edge))
			return HYB_FST_NO;
		if (edge.label == low->key[depth])
		{
			HybFstNode	below = *node;
			HybFstAnswer answer;

			if (!edge.child)
				answer = FST_FN(edge_side) (f, node, &edge, low, depth + 1) >= 0;
			else if (!FST_FN(descend) (f, &below, &edge))
				answer = HYB_FST_DAMAGED;
			else
				answer = FST_FN(one_side) (f, &below, depth + 1, low, false);
			if (answer != HYB_FST_NO)
				return answer;
			if (edge.label == 0xFF ||
				!FST_FN(find) (f, node, edge.label + 1u, &edge))
				return HYB_FST_NO;
		}
	}
	if (edge.label != high->key[depth])
		return edge.label < high->key[depth];
	depth++;
	if (!edge.child)
		return FST_FN(edge_side) (f, node, &edge, high, depth) <= 0;
	if (!FST_FN(descend) (f, node, &edge))
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
	HybFstEdge	edge;

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
	switch (FST_FN(walk) (f, low->key, common, &depth, &node, &edge))
	{
		case HYB_FST_END_DAMAGED:
			return HYB_FST_DAMAGED;
		case HYB_FST_END_NONE:
			return HYB_FST_NO;
		case HYB_FST_END_LEAF:
			have = FST_FN(real_suffix) (f, &node, &edge);
			return FST_FN(leaf_side) (f, have, low, depth) >= 0 &&
				FST_FN(leaf_side) (f, have, high, depth) <= 0;
		case HYB_FST_END_NODE:
			break;
	}
	return FST_FN(parted) (f, &node, depth, low, high);
}

/* ---- counting ---- */

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
		HybFstEdge	edge;

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
		else if (!FST_FN(find) (f, &node, cut->key[depth], &edge))
		{
			on_path = false;
			FST_FN(place_after) (&place, &node);
		}
		else
		{
			place.label = edge.label;
			place.pos = node.dense != NULL ? 1 : edge.pos;
			on_path = edge.label == cut->key[depth];
			depth++;
		}
		*sum += FST_FN(place_leaves) (f, &place);
		if (on_path && !edge.child)
		{
			int			s = FST_FN(edge_side) (f, &node, &edge, cut, depth);

			/* that leaf itself has no child to pass */
			on_path = false;
			*sum += s < 0 || (s == 0 && generous);
		}
		if (on_path)
		{
			if (!FST_FN(descend) (f, &node, &edge))
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

#undef FST_FN
#undef FST_TARGET
#undef FST_WIDTH
#undef FST_POPCOUNT
#undef FST_BMI
