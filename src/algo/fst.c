/*
 * fst.c
 *		Opening, checking and iterating over a Fast Succinct Trie, and the
 *		choice of the searches that fit the processor.
 */
#include "algo/bits.h"
#include "algo/fst_private.h"

static const HybFstKernel *kernel;

static const HybFstKernel *
best_kernel(void)
{
#ifdef HYB_FST_X86
	/* PDEP takes some hundred cycles before Zen 3 */
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") &&
		__builtin_cpu_supports("bmi2") && !__builtin_cpu_is("amdfam17h"))
		return &hyb_fst_avx2_kernel;
#endif
	return &hyb_fst_base_kernel;
}

void
hyb_fst_use_kernel(const HybFstKernel *chosen)
{
	kernel = chosen != NULL ? chosen : best_kernel();
}

bool
hyb_fst_open(HybFst *fst, const void *image, size_t size)
{
	const uint8_t *p = image;
	HybFstHeader h;
	uint64_t	off;
	uint64_t	payload;

	if (kernel == NULL)
		hyb_fst_use_kernel(NULL);
	if (size < sizeof(h) || ((uintptr_t) image & 7) != 0)
		return false;
	memcpy(&h, image, sizeof(h));
	if (h.magic != HYB_FST_MAGIC || h.size > size ||
		(h.flags & ~HYB_FST_FLAGS) != 0 || h.nkeys == 0 || h.reserved != 0 ||
		h.hash_bits > 32 || h.real_bits > 32 || h.payload_bits > 64)
		return false;
	if (!(h.flags & HYB_FST_EXACT) &&
		h.payload_bits != h.hash_bits + h.real_bits)
		return false;

	fst->nkeys = h.nkeys;
	fst->npos = h.npos;
	fst->nnodes = h.nnodes;
	fst->ndense = h.ndense;
	fst->dense_children = h.dense_children;
	fst->dense_leaves = h.dense_leaves;
	fst->height = h.height;
	fst->prefix_len = h.prefix_len;
	fst->flags = h.flags;
	fst->hash_bits = h.flags & HYB_FST_EXACT ? 0 : h.hash_bits;
	fst->real_bits = h.flags & HYB_FST_EXACT ? 0 : h.real_bits;
	fst->payload_bits = h.payload_bits;
	fst->size = h.size;
	fst->nwords = (uint32_t) (((uint64_t) h.npos + 63) / 64);
	fst->nblocks = (fst->nwords + 7) / 8;
	fst->nsamples = (uint32_t) (((uint64_t) h.nnodes + HYB_FST_SAMPLE - 1) / HYB_FST_SAMPLE);

	if (h.flags & HYB_FST_EMPTY_KEY)
	{
		if (h.npos != 0 || h.ndense != 0 || h.nnodes != 0 || h.nkeys != 1 ||
			h.prefix_len != 0 || h.height != 0)
			return false;
	}
	else if (h.npos + (uint64_t) h.ndense == 0 || h.height == 0 ||
			 (h.nnodes == 0) != (h.npos == 0) || h.nnodes > h.npos)
		return false;

	off = sizeof(HybFstHeader);
	fst->prefix = p + off;
	off = (off + h.prefix_len + 7) & ~UINT64_C(7);
	fst->dense = (const HybFstDense *) (p + off);
	off += (uint64_t) h.ndense * sizeof(HybFstDense);
	fst->samples = (const uint32_t *) (p + off);
	off += ((uint64_t) fst->nsamples * 4 + 7) & ~UINT64_C(7);
	fst->blocks = (const uint64_t *) (p + off);
	off += ((uint64_t) fst->nblocks + (uint64_t) fst->nwords * 2) * 8;
	fst->labels = p + off;
	off += h.npos;
	fst->payload = p + off;
	payload = (uint64_t) h.nkeys * h.payload_bits;
	if (payload > 0)
		off += (payload + 7) / 8 + 8;
	fst->end = p + h.size;
	return off <= h.size;
}

HybFstAnswer
hyb_fst_lookup(const HybFst *fst, const uint8_t *key, uint32_t len,
			   uint32_t *leaf)
{
	return kernel->lookup(fst, key, len, leaf);
}

HybFstAnswer
hyb_fst_range(const HybFst *fst, const HybCut *low, const HybCut *high)
{
	return kernel->range(fst, low, high);
}

HybFstAnswer
hyb_fst_count(const HybFst *fst, const HybCut *low, const HybCut *high,
			  uint32_t *count)
{
	return kernel->count(fst, low, high, count);
}

uint64_t
hyb_fst_payload(const HybFst *fst, uint32_t leaf)
{
	if (leaf >= fst->nkeys)
		return 0;
	return hyb_bits_get(fst->payload, (uint64_t) leaf * fst->payload_bits,
						fst->payload_bits);
}

/* ---- bits, without haste ---- */

static inline uint64_t
get_word(const HybFst *f, uint32_t w, int which)
{
	return f->blocks[(size_t) (w >> 3) * HYB_FST_BLOCK_WORDS + 1 + (w & 7) * 2 + which];
}

static inline bool
get_bit(const HybFst *f, uint32_t pos, int which)
{
	return (get_word(f, pos >> 6, which) >> (pos & 63)) & 1;
}

static inline const uint32_t *
block_ranks(const HybFst *f, uint32_t block)
{
	return (const uint32_t *) (f->blocks + (size_t) block * HYB_FST_BLOCK_WORDS);
}

/* Has-child bits below pos. */
static uint32_t
rank_children(const HybFst *f, uint32_t pos)
{
	uint32_t	block = pos / HYB_FST_BLOCK;
	uint32_t	rank = block_ranks(f, block)[0];

	for (uint32_t w = block * 8; w < pos >> 6; w++)
		rank += hyb_popcount64(get_word(f, w, 0));
	return rank + hyb_popcount64(get_word(f, pos >> 6, 0) &
								 ((UINT64_C(1) << (pos & 63)) - 1));
}

/* First position of sparse node n, or npos. */
static uint32_t
select_node(const HybFst *f, uint32_t n)
{
	uint32_t	block;

	if (n >= f->nnodes)
		return f->npos;
	block = f->samples[n / HYB_FST_SAMPLE];
	if (block >= f->nblocks)
		return f->npos;
	while (block + 1 < f->nblocks && block_ranks(f, block + 1)[1] <= n)
		block++;
	n -= block_ranks(f, block)[1];
	for (uint32_t w = block * 8; w < f->nwords && w < block * 8 + 8; w++)
	{
		uint64_t	v = get_word(f, w, 1);
		uint32_t	c = hyb_popcount64(v);

		if (n < c)
		{
			uint32_t	pos = w * 64 + hyb_select64(v, n);

			return pos < f->npos ? pos : f->npos;
		}
		n -= c;
	}
	return f->npos;
}

/* ---- checking ---- */

const char *
hyb_fst_verify(const HybFst *f)
{
	uint64_t	children = 0;
	uint64_t	leaves = 0;
	uint32_t	nodes = 0;
	uint32_t	level_end = 1;	/* number of the first node of the next level */
	uint32_t	level = 0;
	uint32_t	pos = 0;

	if (f->flags & HYB_FST_EMPTY_KEY)
		return NULL;
	for (uint32_t n = 0; n < f->ndense + f->nnodes; n++)
	{
		uint32_t	labels = 0;

		if (n == level_end)
		{
			level++;
			if (children + 1 <= n)
				return "a level has no nodes";
			level_end = (uint32_t) children + 1;
		}
		if (n < f->ndense)
		{
			const HybFstDense *d = &f->dense[n];
			uint32_t	c = 0;
			uint32_t	l = 0;

			if (d->children_base != children || d->leaf_base != leaves)
				return "ranks of a dense node are wrong";
			if (d->terminator > 1 || d->unused != 0)
				return "flags of a dense node are wrong";
			for (int w = 0; w < 4; w++)
			{
				if ((d->children[w] & ~d->labels[w]) != 0)
					return "a dense node has a child without a label";
				labels += hyb_popcount64(d->labels[w]);
				c += hyb_popcount64(d->children[w]);
				l += hyb_popcount64(d->labels[w] & ~d->children[w]);
				if (w < 3 && (d->children_sub[w] != c || d->leaf_sub[w] != l))
					return "ranks within a dense node are wrong";
			}
			children += c;
			leaves += l + d->terminator;
			if (n + 1 == f->ndense &&
				(children != f->dense_children || leaves != f->dense_leaves))
				return "totals of dense nodes are wrong";
		}
		else
		{
			int			last = -1;

			if (pos >= f->npos || !get_bit(f, pos, 1))
				return "a sparse node is missing";
			if (select_node(f, nodes) != pos)
				return "a sparse node is not found by its number";
			nodes++;
			if (pos + 1 < f->npos && !get_bit(f, pos + 1, 1) &&
				f->labels[pos] == 0xFF)
			{
				if (get_bit(f, pos, 0))
					return "a terminator has a child";
				leaves++;
				pos++;
			}
			do
			{
				if (f->labels[pos] <= last)
					return "labels of a sparse node do not ascend";
				last = f->labels[pos];
				labels++;
				if (rank_children(f, pos) + (uint64_t) f->dense_children != children)
					return "ranks of sparse positions are wrong";
				if (get_bit(f, pos, 0))
					children++;
				else
					leaves++;
				pos++;
			} while (pos < f->npos && !get_bit(f, pos, 1));
		}
		if (labels == 0)
			return "a node has no labels";
		if (children + 1 > (uint64_t) f->ndense + f->nnodes)
			return "a node is missing";
	}
	if (f->ndense == 0 && (f->dense_children != 0 || f->dense_leaves != 0))
		return "there are totals of dense nodes, but no nodes";
	if (pos != f->npos)
		return "there are positions after the last node";
	if (f->npos % 64 != 0 && f->nwords > 0 &&
		((get_word(f, f->nwords - 1, 0) | get_word(f, f->nwords - 1, 1)) >> (f->npos % 64)) != 0)
		return "there are bits after the last position";
	if (children + 1 != (uint64_t) f->ndense + f->nnodes)
		return "nodes and children do not agree";
	if (leaves != f->nkeys)
		return "leaves and keys do not agree";
	if (level + 1 != f->height)
		return "the height is wrong";
	return NULL;
}

/* ---- iteration ---- */

void
hyb_fst_iter_init(HybFstIter *iter, const HybFst *fst, HybFstCursor *cursors,
				  uint8_t *key)
{
	memset(iter, 0, sizeof(*iter));
	iter->fst = fst;
	iter->cursors = cursors;
	iter->key = key;
	if (fst->prefix_len > 0)
		memcpy(key, fst->prefix, fst->prefix_len);
}

static bool
iter_end(HybFstIter *it, bool damaged)
{
	it->valid = false;
	it->damaged |= damaged;
	return false;
}

/* Labels of a dense node at or above c (from 0 to 256), -1 if none. */
static int
dense_at_or_above(const HybFstDense *node, int c)
{
	for (; c < 256; c = (c | 63) + 1)
	{
		uint64_t	v = node->labels[c / 64] & (~UINT64_C(0) << (c & 63));

		if (v != 0)
			return (c & ~63) + __builtin_ctzll(v);
	}
	return -1;
}

static int
dense_at_or_below(const HybFstDense *node, int c)
{
	for (; c >= 0; c = (c & ~63) - 1)
	{
		uint64_t	v = node->labels[c / 64] & (~UINT64_C(0) >> (63 - (c & 63)));

		if (v != 0)
			return (c & ~63) + 63 - __builtin_clzll(v);
	}
	return -1;
}

static bool
sparse_is_terminator(const HybFst *f, uint32_t pos)
{
	return f->labels[pos] == 0xFF && get_bit(f, pos, 1) &&
		pos + 1 < f->npos && !get_bit(f, pos + 1, 1);
}

static void
set_dense(HybFstIter *it, HybFstCursor *cur, uint32_t node, int label)
{
	cur->dense = true;
	cur->at = node;
	cur->label = (int16_t) label;
	if (label >= 0)
		it->key[it->fst->prefix_len + (cur - it->cursors)] = (uint8_t) label;
}

static void
set_sparse(HybFstIter *it, HybFstCursor *cur, uint32_t pos)
{
	cur->dense = false;
	cur->at = pos;
	cur->label = sparse_is_terminator(it->fst, pos) ? -1 : it->fst->labels[pos];
	if (cur->label >= 0)
		it->key[it->fst->prefix_len + (cur - it->cursors)] = (uint8_t) cur->label;
}

/* Has-child bits (leaves) before a cursor's place. */
static uint32_t
cursor_rank(const HybFst *f, const HybFstCursor *cur, uint32_t *leaves)
{
	if (cur->dense)
	{
		const HybFstDense *d = &f->dense[cur->at];
		uint32_t	c = d->children_base;
		uint32_t	l = d->leaf_base + (cur->label >= 0 ? d->terminator : 0);

		for (int w = 0; w < 4 && w * 64 < cur->label; w++)
		{
			uint64_t	mask = cur->label - w * 64 >= 64 ? ~UINT64_C(0) :
				(UINT64_C(1) << (cur->label & 63)) - 1;

			c += hyb_popcount64(d->children[w] & mask);
			l += hyb_popcount64(d->labels[w] & ~d->children[w] & mask);
		}
		*leaves = l;
		return c;
	}
	else
	{
		uint32_t	rank = rank_children(f, cur->at);

		*leaves = f->dense_leaves + cur->at - rank;
		return f->dense_children + rank;
	}
}

static bool
cursor_has_child(const HybFst *f, const HybFstCursor *cur)
{
	if (cur->label < 0)
		return false;
	if (cur->dense)
		return (f->dense[cur->at].children[cur->label / 64] >> (cur->label & 63)) & 1;
	return get_bit(f, cur->at, 0);
}

/* Place the next cursor at an end of the node with this number. */
static bool
enter_node(HybFstIter *it, uint32_t number, bool last)
{
	const HybFst *f = it->fst;
	HybFstCursor *cur;
	uint32_t	pos;

	if (it->depth >= f->height)
		return false;
	cur = &it->cursors[it->depth++];
	if (number < f->ndense)
	{
		const HybFstDense *d = &f->dense[number];

		set_dense(it, cur, number, last ? dense_at_or_below(d, 255) :
				  d->terminator ? -1 : dense_at_or_above(d, 0));
		return cur->label >= 0 || d->terminator;
	}
	pos = select_node(f, number - f->ndense);
	if (pos >= f->npos)
		return false;
	if (last)
		while (pos + 1 < f->npos && !get_bit(f, pos + 1, 1))
			pos++;
	set_sparse(it, cur, pos);
	return true;
}

/* From the last cursor down to a leaf, along the first or the last labels. */
static bool
descend_edge(HybFstIter *it, bool last)
{
	const HybFst *f = it->fst;
	uint32_t	leaves;

	for (;;)
	{
		HybFstCursor *cur = &it->cursors[it->depth - 1];
		uint32_t	rank = cursor_rank(f, cur, &leaves);

		if (!cursor_has_child(f, cur))
		{
			it->leaf = leaves;
			it->keylen = f->prefix_len + it->depth - (cur->label < 0);
			it->valid = true;
			return true;
		}
		if (!enter_node(it, rank + 1, last))
			return iter_end(it, true);
	}
}

/* Move the last cursor to its neighbour in the same node. */
static bool
step_within(HybFstIter *it, bool back)
{
	const HybFst *f = it->fst;
	HybFstCursor *cur = &it->cursors[it->depth - 1];

	if (cur->dense)
	{
		const HybFstDense *d = &f->dense[cur->at];
		int			label;

		if (back)
		{
			if (cur->label < 0)
				return false;
			label = dense_at_or_below(d, cur->label - 1);
			if (label < 0 && !d->terminator)
				return false;
		}
		else
		{
			label = dense_at_or_above(d, cur->label + 1);
			if (label < 0)
				return false;
		}
		set_dense(it, cur, cur->at, label);
		return true;
	}
	if (back)
	{
		if (get_bit(f, cur->at, 1) || cur->at == 0)
			return false;
		set_sparse(it, cur, cur->at - 1);
	}
	else
	{
		if (cur->at + 1 >= f->npos || get_bit(f, cur->at + 1, 1))
			return false;
		set_sparse(it, cur, cur->at + 1);
	}
	return true;
}

static bool
iter_step(HybFstIter *it, bool back)
{
	it->ambiguous = false;
	while (it->depth > 0)
	{
		if (step_within(it, back))
			return descend_edge(it, back);
		it->depth--;
	}
	return iter_end(it, false);
}

bool
hyb_fst_next(HybFstIter *it)
{
	return it->valid && iter_step(it, false);
}

bool
hyb_fst_prev(HybFstIter *it)
{
	return it->valid && iter_step(it, true);
}

/* To the first key of the trie, or the last. */
static bool
iter_edge(HybFstIter *it, bool last)
{
	if (!enter_node(it, 0, last))
		return iter_end(it, true);
	return descend_edge(it, last);
}

/* The leaf that the last cursor is at, against a cut: as leaf_side. */
static int
leaf_against(const HybFst *f, uint32_t leaf, const HybCut *cut, uint32_t depth)
{
	uint64_t	have;
	uint64_t	want = 0;
	unsigned	bytes = (f->real_bits + 7) / 8;

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
	if (f->real_bits == 0)
		return 0;
	for (uint32_t i = depth; i < depth + bytes; i++)
		want = (want << 8) | (i < cut->len ? cut->key[i] :
							  cut->side == HYB_CUT_AFTER ? 0xFF : 0);
	want >>= bytes * 8 - f->real_bits;
	have = hyb_fst_payload(f, leaf) & (~UINT64_C(0) >> (64 - f->real_bits));
	return have < want ? -1 : have > want;
}

/*
 * Follow the cut's key as far as it goes; then to the nearest key on the
 * right side of it.
 */
static bool
iter_seek(HybFstIter *it, const HybCut *cut, bool back)
{
	const HybFst *f = it->fst;
	uint32_t	depth = f->prefix_len;
	uint32_t	n = cut->len < depth ? cut->len : depth;
	uint32_t	number = 0;
	uint32_t	leaves;
	int			c = n > 0 ? memcmp(f->prefix, cut->key, n) : 0;

	it->depth = 0;
	it->ambiguous = false;
	it->valid = false;
	if (f->flags & HYB_FST_EMPTY_KEY)
	{
		bool		below = cut->len > 0 || cut->side != HYB_CUT_BEFORE;

		it->leaf = 0;
		it->keylen = 0;
		it->valid = below == back;
		return it->valid;
	}
	if (c == 0 && cut->len < depth)
		c = cut->side == HYB_CUT_AFTER ? -1 : 1;
	if (c != 0)
		return (c > 0) == back ? iter_end(it, false) : iter_edge(it, back);

	for (;;)
	{
		HybFstCursor *cur;
		int			label;
		int			side;

		/* at the terminator or the first label of the node */
		if (!enter_node(it, number, false))
			return iter_end(it, true);
		cur = &it->cursors[it->depth - 1];
		if (depth >= cut->len)
		{
			if (cut->side == HYB_CUT_BEFORE)
				return back ? iter_step(it, true) : descend_edge(it, false);
			if (cut->side == HYB_CUT_SELF && cur->label < 0)
				return back ? descend_edge(it, true) : iter_step(it, false);
			if (cut->side == HYB_CUT_SELF)
				return back ? iter_step(it, true) : descend_edge(it, false);
			it->depth--;
			if (back)
			{
				if (!enter_node(it, number, true))
					return iter_end(it, true);
				return descend_edge(it, true);
			}
			return iter_step(it, false);
		}

		label = cut->key[depth];
		while (cur->label < label)
		{
			if (!step_within(it, false))
			{
				/* all labels lie below */
				if (back)
					return descend_edge(it, true);
				it->depth--;
				return iter_step(it, false);
			}
		}
		if (cur->label > label)
			return back ? iter_step(it, true) : descend_edge(it, false);
		depth++;
		if (!cursor_has_child(f, cur))
		{
			(void) cursor_rank(f, cur, &leaves);
			side = leaf_against(f, leaves, cut, depth);
			if (back ? side > 0 : side < 0)
				return iter_step(it, back);
			(void) descend_edge(it, back);
			it->ambiguous = side == 0;
			return true;
		}
		number = cursor_rank(f, cur, &leaves) + 1;
	}
}

bool
hyb_fst_seek(HybFstIter *it, const HybCut *cut)
{
	return iter_seek(it, cut, false);
}

bool
hyb_fst_seek_last(HybFstIter *it, const HybCut *cut)
{
	return iter_seek(it, cut, true);
}
