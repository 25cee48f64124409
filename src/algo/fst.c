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
	fst->labels = p + off;
	off = (off + h.npos + 7) & ~UINT64_C(7);
	fst->blocks = (const HybFstBlock *) (p + off);
	off += (uint64_t) fst->nblocks * sizeof(HybFstBlock);
	fst->words = (const uint64_t *) (p + off);
	off += (uint64_t) fst->nwords * 16;
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
	return f->words[(size_t) w * 2 + which];
}

static inline bool
get_bit(const HybFst *f, uint32_t pos, int which)
{
	return (get_word(f, pos >> 6, which) >> (pos & 63)) & 1;
}

/* Has-child bits of the positions [from, to), from being a multiple of 64. */
static uint32_t
count_children(const HybFst *f, uint32_t from, uint32_t to)
{
	uint32_t	n = 0;

	for (uint32_t w = from >> 6; w < to >> 6; w++)
		n += hyb_popcount64(get_word(f, w, 0));
	if ((to & 63) != 0)
		n += hyb_popcount64(get_word(f, to >> 6, 0) &
							((UINT64_C(1) << (to & 63)) - 1));
	return n;
}

/* Has-child bits below pos, pos < npos. */
static uint32_t
rank_children(const HybFst *f, uint32_t pos)
{
	uint32_t	block = pos / HYB_FST_BLOCK;

	return f->blocks[block].rank +
		count_children(f, block * HYB_FST_BLOCK, pos);
}

/* First position of the k-th node (from 0) at or after pos, or npos. */
static uint32_t
node_after(const HybFst *f, uint32_t pos, uint32_t k)
{
	uint64_t	v;

	if (pos >= f->npos)
		return f->npos;
	v = get_word(f, pos >> 6, 1) & (~UINT64_C(0) << (pos & 63));
	for (uint32_t w = pos >> 6;;)
	{
		uint32_t	c = hyb_popcount64(v);

		if (k < c)
		{
			pos = w * 64 + hyb_select64(v, k);
			return pos < f->npos ? pos : f->npos;
		}
		k -= c;
		if (++w >= f->nwords)
			return f->npos;
		v = get_word(f, w, 1);
	}
}

/* First position of the child of the first label from pos on that has one. */
static uint32_t
child_after(const HybFst *f, uint32_t pos)
{
	const HybFstBlock *block;
	uint32_t	group;

	if (pos >= f->npos)
		return f->npos;
	block = &f->blocks[pos / HYB_FST_BLOCK];
	group = pos % HYB_FST_BLOCK / HYB_FST_GROUP;
	while (group > 0 && block->child_sub[group] == HYB_FST_FAR)
		group--;
	return node_after(f, block->child + block->child_sub[group],
					  count_children(f, pos / HYB_FST_BLOCK * HYB_FST_BLOCK +
									 group * HYB_FST_GROUP, pos));
}

/* ---- checking ---- */

/* What is seen on the way through the nodes, in order. */
typedef struct Walk
{
	const HybFst *f;
	uint32_t	labels;			/* of the node at hand */
	uint32_t	pos;			/* sparse positions passed */
	uint32_t	child;			/* first position of the next child, if that
								 * is sparse */
	uint32_t	number;			/* its number */
	uint64_t	children;
	uint64_t	leaves;
} Walk;

/* A child is passed. */
static void
pass_child(Walk *walk)
{
	walk->children++;
	walk->number++;
	if (walk->number > walk->f->ndense)
		walk->child = node_after(walk->f, walk->child, 1);
}

static const char *
verify_dense(Walk *walk, uint32_t n)
{
	const HybFst *f = walk->f;
	const HybFstDense *d = &f->dense[n];

	if (d->leaf_base != walk->leaves)
		return "ranks of a dense node are wrong";
	if (d->terminator > 1 || d->sparse != (walk->number >= f->ndense))
		return "flags of a dense node are wrong";
	walk->leaves += d->terminator;
	for (int w = 0; w < 4; w++)
	{
		uint32_t	c = hyb_popcount64(d->children[w]);

		if ((d->children[w] & ~d->labels[w]) != 0)
			return "a dense node has a child without a label";
		if ((w == 0 ? d->child : d->child + d->child_sub[w - 1]) !=
			(d->sparse ? walk->child : walk->number))
			return "children of a dense node are wrong";
		walk->labels += hyb_popcount64(d->labels[w]);
		walk->leaves += hyb_popcount64(d->labels[w]) - c;
		for (; c > 0; c--)
			pass_child(walk);
		if (walk->number > f->ndense && !d->sparse)
			return "a dense node has children of both kinds";
	}
	if (n + 1 == f->ndense &&
		(walk->children != f->dense_children || walk->leaves != f->dense_leaves))
		return "totals of dense nodes are wrong";
	return NULL;
}

/* The next position. */
static const char *
verify_position(Walk *walk)
{
	const HybFst *f = walk->f;
	uint32_t	pos = walk->pos++;
	const HybFstBlock *block = &f->blocks[pos / HYB_FST_BLOCK];

	if (pos % HYB_FST_BLOCK == 0 &&
		(block->rank + (uint64_t) f->dense_children != walk->children ||
		 block->child != walk->child))
		return "ranks of sparse positions are wrong";
	if (pos % HYB_FST_GROUP == 0)
	{
		uint32_t	far = walk->child - block->child;

		if (block->child_sub[pos % HYB_FST_BLOCK / HYB_FST_GROUP] !=
			(far < HYB_FST_FAR ? far : HYB_FST_FAR))
			return "children of sparse positions are wrong";
	}
	if (!get_bit(f, pos, 0))
		walk->leaves++;
	else if (walk->child <= pos || walk->child >= f->npos)
		return "a node is missing";
	else
		pass_child(walk);
	return NULL;
}

static const char *
verify_sparse(Walk *walk)
{
	const HybFst *f = walk->f;
	int			last = -1;
	const char *error;

	if (walk->pos >= f->npos || !get_bit(f, walk->pos, 1))
		return "a sparse node is missing";
	if (walk->pos + 1 < f->npos && !get_bit(f, walk->pos + 1, 1) &&
		f->labels[walk->pos] == 0xFF)
	{
		if (get_bit(f, walk->pos, 0))
			return "a terminator has a child";
		error = verify_position(walk);
		if (error != NULL)
			return error;
	}
	do
	{
		if (f->labels[walk->pos] <= last)
			return "labels of a sparse node do not ascend";
		last = f->labels[walk->pos];
		walk->labels++;
		error = verify_position(walk);
		if (error != NULL)
			return error;
	} while (walk->pos < f->npos && !get_bit(f, walk->pos, 1));
	return NULL;
}

const char *
hyb_fst_verify(const HybFst *f)
{
	Walk		walk = {f, 0, 0, 0, 1, 0, 0};
	uint32_t	level_end = 1;	/* number of the first node of the next level */
	uint32_t	level = 0;

	if (f->flags & HYB_FST_EMPTY_KEY)
		return NULL;
	if (f->ndense == 0 && f->npos > 0)
		walk.child = node_after(f, 0, 1);
	for (uint32_t n = 0; n < f->ndense + f->nnodes; n++)
	{
		const char *error;

		if (n == level_end)
		{
			level++;
			if (walk.children + 1 <= n)
				return "a level has no nodes";
			level_end = (uint32_t) walk.children + 1;
		}
		walk.labels = 0;
		error = n < f->ndense ? verify_dense(&walk, n) : verify_sparse(&walk);
		if (error != NULL)
			return error;
		if (walk.labels == 0)
			return "a node has no labels";
		if (walk.children + 1 > (uint64_t) f->ndense + f->nnodes)
			return "a node is missing";
	}
	if (f->ndense == 0 && (f->dense_children != 0 || f->dense_leaves != 0))
		return "there are totals of dense nodes, but no nodes";
	if (walk.pos != f->npos)
		return "there are positions after the last node";
	for (uint32_t i = f->npos; i < f->nblocks * HYB_FST_BLOCK; i++)
	{
		if (i < f->nwords * 64 && (get_bit(f, i, 0) || get_bit(f, i, 1)))
			return "there are bits after the last position";
		if (i % HYB_FST_GROUP == 0 &&
			f->blocks[i / HYB_FST_BLOCK].child_sub[i % HYB_FST_BLOCK / HYB_FST_GROUP] != 0)
			return "there are children after the last position";
	}
	if (walk.children + 1 != (uint64_t) f->ndense + f->nnodes)
		return "nodes and children do not agree";
	if (walk.leaves != f->nkeys)
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

/* Number of the leaf that a cursor is at, which has no child. */
static uint32_t
cursor_leaf(const HybFst *f, const HybFstCursor *cur)
{
	uint32_t	leaf;
	const HybFstDense *d;

	if (!cur->dense)
		return f->dense_leaves + cur->at - rank_children(f, cur->at);
	d = &f->dense[cur->at];
	leaf = d->leaf_base + (cur->label >= 0 ? d->terminator : 0);
	for (int w = 0; w < 4 && w * 64 < cur->label; w++)
	{
		uint64_t	mask = cur->label - w * 64 >= 64 ? ~UINT64_C(0) :
			(UINT64_C(1) << (cur->label & 63)) - 1;

		leaf += hyb_popcount64(d->labels[w] & ~d->children[w] & mask);
	}
	return leaf;
}

/* A node: the number of a dense one, the first position of a sparse one. */
typedef struct Place
{
	bool		dense;
	uint32_t	at;
} Place;

static Place
root_place(const HybFst *f)
{
	Place		place = {f->ndense > 0, 0};

	return place;
}

/* The child below a cursor.  False if the image is damaged. */
static bool
cursor_child(const HybFst *f, const HybFstCursor *cur, Place *place)
{
	if (cur->dense)
	{
		const HybFstDense *d = &f->dense[cur->at];
		int			w = cur->label / 64;
		uint32_t	k = hyb_popcount64(d->children[w] &
									   ((UINT64_C(1) << (cur->label & 63)) - 1));
		uint32_t	child = d->child + (w > 0 ? d->child_sub[w - 1] : 0);

		place->dense = d->sparse == 0;
		if (place->dense)
		{
			place->at = child + k;
			return place->at > cur->at && place->at < f->ndense;
		}
		place->at = node_after(f, child, k);
		return place->at < f->npos;
	}
	place->dense = false;
	place->at = child_after(f, cur->at);
	return place->at > cur->at && place->at < f->npos;
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

/* Place the next cursor at an end of this node. */
static bool
enter_node(HybFstIter *it, const Place *place, bool last)
{
	const HybFst *f = it->fst;
	HybFstCursor *cur;
	uint32_t	pos = place->at;

	if (it->depth >= f->height)
		return false;
	cur = &it->cursors[it->depth++];
	if (place->dense)
	{
		const HybFstDense *d = &f->dense[place->at];

		set_dense(it, cur, place->at, last ? dense_at_or_below(d, 255) :
				  d->terminator ? -1 : dense_at_or_above(d, 0));
		return cur->label >= 0 || d->terminator;
	}
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

	for (;;)
	{
		HybFstCursor *cur = &it->cursors[it->depth - 1];
		Place		child;

		if (!cursor_has_child(f, cur))
		{
			it->leaf = cursor_leaf(f, cur);
			it->keylen = f->prefix_len + it->depth - (cur->label < 0);
			it->valid = true;
			return true;
		}
		if (!cursor_child(f, cur, &child) || !enter_node(it, &child, last))
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
	Place		root = root_place(it->fst);

	if (!enter_node(it, &root, last))
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
	Place		place = root_place(f);
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
		if (!enter_node(it, &place, false))
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
				if (!enter_node(it, &place, true))
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
			side = leaf_against(f, cursor_leaf(f, cur), cut, depth);
			if (back ? side > 0 : side < 0)
				return iter_step(it, back);
			(void) descend_edge(it, back);
			it->ambiguous = side == 0;
			return true;
		}
		if (!cursor_child(f, cur, &place))
			return iter_end(it, true);
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
