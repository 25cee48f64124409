/*
 * fst.c
 *		Opening and checking a Fast Succinct Trie, and its searches, compiled for
 *		two instruction sets.
 */
#include "algo/fst.h"

#ifdef HYB_FST_X86
#include <immintrin.h>
#endif

/* ---- searches ---- */

#define HYB_FST_INLINE static inline FST_TARGET

/* A node at hand. */
typedef struct HybFstNode
{
	const HybFstDense *dense;	/* or NULL: */
	uint32_t	start;			/* positions, a terminator's included */
	uint32_t	n;
} HybFstNode;

/* A label of a node, with what belongs to it. */
typedef struct HybFstEdge
{
	uint32_t	pos;			/* sparse: position */
	uint8_t		label;
	bool		child;
} HybFstEdge;

/* Where the way down from the root ends */
typedef enum HybFstEnd
{
	HYB_FST_END_DAMAGED,
	HYB_FST_END_NONE,			/* no key begins with these bytes */
	HYB_FST_END_LEAF,			/* edge has no child; *depth bytes lead to it */
	HYB_FST_END_NODE			/* at the node that all the bytes lead to */
} HybFstEnd;

/* A place between the labels of a level, or next to its end. */
typedef struct HybFstPlace
{
	uint32_t	dense;			/* a dense node, or ndense: */
	unsigned	label;
	uint32_t	pos;			/* sparse position, or npos */
} HybFstPlace;

/* For any processor; SSE2 is part of x86-64. */
#define FST_FN(name)	hyb_fst_base_##name
#define FST_TARGET
#ifdef HYB_FST_X86
#define FST_WIDTH		16
#else
#define FST_WIDTH		0
#endif
#define FST_POPCOUNT(x) ((uint32_t) hyb_popcount64(x))
#include "algo/fst_kernel.h"

#ifdef HYB_FST_X86
/* For x86-64 processors with AVX2 and POPCNT: the same header once more */
#define FST_FN(name)	hyb_fst_avx2_##name
#define FST_TARGET		__attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define FST_WIDTH		32
#define FST_BMI
#define FST_POPCOUNT(x) ((uint32_t) __builtin_popcountll(x))
#include "algo/fst_kernel.h"
#endif

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
	uint64_t	suffixes;

	if (kernel == NULL)
		hyb_fst_use_kernel(NULL);
	if (size < sizeof(h) || ((uintptr_t) image & 7) != 0)
		return false;
	memcpy(&h, image, sizeof(h));
	if (h.magic != HYB_FST_MAGIC || h.size > size ||
		(h.flags & ~HYB_FST_EMPTY_KEY) != 0 || h.nkeys == 0 || h.reserved != 0 ||
		h.hash_bits > 32 || h.real_bits > 32 ||
		h.suffix_bits != h.hash_bits + h.real_bits)
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
	fst->hash_bits = h.hash_bits;
	fst->real_bits = h.real_bits;
	fst->suffix_bits = h.suffix_bits;
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
	fst->suffixes = p + off;
	suffixes = (uint64_t) h.nkeys * h.suffix_bits;
	if (suffixes > 0)
		off += (suffixes + 7) / 8 + 8;
	fst->end = p + h.size;
	return off <= h.size;
}

HybFstAnswer
hyb_fst_lookup(const HybFst *fst, const uint8_t *key, uint32_t len)
{
	return kernel->lookup(fst, key, len);
}

HybFstAnswer
hyb_fst_range(const HybFst *fst, const HybFstCut *low, const HybFstCut *high)
{
	return kernel->range(fst, low, high);
}

HybFstAnswer
hyb_fst_count(const HybFst *fst, const HybFstCut *low, const HybFstCut *high,
			  uint32_t *count)
{
	return kernel->count(fst, low, high, count);
}

/* ---- bits, without haste ---- */

static inline uint64_t
get_word(const HybFst *f, uint32_t w, int which)
{
	return f->words[(size_t) w * 2 + which];
}

static inline bool
get_fst_bit(const HybFst *f, uint32_t pos, int which)
{
	return (get_word(f, pos >> 6, which) >> (pos & 63)) & 1;
}

/* First position of the k-th node (from 0) at or after pos, or npos. */
static uint32_t
node_after(const HybFst *f, uint32_t pos, uint32_t k)
{
	uint64_t	v;

	HYB_ASSERT(f->nwords == (f->npos + UINT64_C(63)) / 64);
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

	HYB_ASSERT(n < f->ndense);
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

	HYB_ASSERT(pos < f->npos);
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
	if (!get_fst_bit(f, pos, 0))
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

	if (walk->pos >= f->npos || !get_fst_bit(f, walk->pos, 1))
		return "a sparse node is missing";
	if (walk->pos + 1 < f->npos && !get_fst_bit(f, walk->pos + 1, 1) &&
		f->labels[walk->pos] == 0xFF)
	{
		if (get_fst_bit(f, walk->pos, 0))
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
	} while (walk->pos < f->npos && !get_fst_bit(f, walk->pos, 1));
	return NULL;
}

/* What fills up to the next aligned place. */
static bool
all_zero(const uint8_t *from, const uint8_t *to)
{
	while (from < to)
		if (*from++ != 0)
			return false;
	return true;
}

const char *
hyb_fst_verify(const HybFst *f)
{
	Walk		walk = {f, 0, 0, 0, 1, 0, 0};
	uint32_t	level_end = 1;	/* number of the first node of the next level */
	uint32_t	level = 0;

	if (f->flags & HYB_FST_EMPTY_KEY)
		return NULL;
	if (!all_zero(f->prefix + f->prefix_len, (const uint8_t *) f->dense))
		return "there are bytes after the prefix";
	if (!all_zero(f->labels + f->npos, (const uint8_t *) f->blocks))
		return "there are labels after the last position";
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
		if (i < f->nwords * 64 && (get_fst_bit(f, i, 0) || get_fst_bit(f, i, 1)))
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
