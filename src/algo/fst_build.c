/*
 * fst_build.c
 *		Building a Fast Succinct Trie from sorted keys, in one scan, and checking
 *		one.
 *
 * As in section 3.5 of Zhang's dissertation, a key is inserted when the next key is
 * known.  The bytes that it shares with both neighbours say where it ends in the trie
 * and where its path begins to be its own.  Every level only grows at its end.
 */
#include "algo/bits.h"
#include "algo/fst.h"

/* Keys longer than that do not come into an image. */
#define MAX_KEY		60000

/* Positions or nodes of one image. */
#define MAX_POSITIONS	(UINT32_MAX - 2 * HYB_FST_BLOCK)

typedef struct Level
{
	uint8_t    *labels;
	uint64_t   *children;		/* bitmaps */
	uint64_t   *first;
	uint8_t    *suffixes;
	uint32_t	npos;
	uint32_t	nleaves;
	uint32_t	alloc;			/* positions */
	size_t		suffixes_alloc;
} Level;

struct HybFstBuilder
{
	HybFstResize resize;
	unsigned	suffix_bits;
	Level	   *levels;
	uint32_t	nlevels;		/* in use */
	uint32_t	levels_alloc;
	uint8_t    *key;			/* the last one given, not inserted yet */
	uint32_t	len;
	uint32_t	key_alloc;
	uint32_t	lcp;			/* that it shares with the one before it */
	uint64_t	nkeys;			/* keys given */
	uint64_t	npositions;
	bool		failed;

	/* after finishing */
	uint32_t	prefix_len;		/* levels left out */
	HybFstHeader header;
	size_t		labels_off;
	size_t		suffixes_off;
	size_t		blocks_off;
	size_t		words_off;
	size_t		size;
};

HybFstBuilder *
hyb_fst_builder_create(HybFstResize resize, unsigned suffix_bits)
{
	HybFstBuilder *b = resize(NULL, sizeof(HybFstBuilder));

	HYB_ASSERT(suffix_bits <= HYB_FST_MAX_SUFFIX);
	memset(b, 0, sizeof(*b));
	b->resize = resize;
	b->suffix_bits = suffix_bits;
	return b;
}

void
hyb_fst_builder_reset(HybFstBuilder *b)
{
	for (uint32_t i = 0; i < b->nlevels; i++)
	{
		b->levels[i].npos = 0;
		b->levels[i].nleaves = 0;
	}
	b->nlevels = 0;
	b->nkeys = 0;
	b->npositions = 0;
	b->failed = false;
}

/* ---- levels ---- */

static void
level_grow(HybFstBuilder *b, Level *level)
{
	uint32_t	alloc = level->alloc == 0 ? 64 : level->alloc * 2;
	uint32_t	words = alloc / 64;
	uint32_t	old_words = level->alloc / 64;

	level->labels = b->resize(level->labels, alloc);
	level->children = b->resize(level->children, words * sizeof(uint64_t));
	level->first = b->resize(level->first, words * sizeof(uint64_t));
	memset(level->children + old_words, 0, (words - old_words) * sizeof(uint64_t));
	memset(level->first + old_words, 0, (words - old_words) * sizeof(uint64_t));
	level->alloc = alloc;
}

/* Level i, which is in use already or the next one. */
static inline Level *
level_use(HybFstBuilder *b, uint32_t i)
{
	if (i >= b->nlevels)
	{
		if (i >= b->levels_alloc)
		{
			uint32_t	alloc = b->levels_alloc == 0 ? 32 : b->levels_alloc * 2;

			while (alloc <= i)
				alloc *= 2;
			b->levels = b->resize(b->levels, alloc * sizeof(Level));
			memset(b->levels + b->levels_alloc, 0,
				   (alloc - b->levels_alloc) * sizeof(Level));
			b->levels_alloc = alloc;
		}
		b->nlevels = i + 1;
	}
	return &b->levels[i];
}

static inline void
level_add(HybFstBuilder *b, Level *level, uint8_t label, bool child,
		  bool first)
{
	uint32_t	i = level->npos;
	uint64_t	mask = UINT64_C(1) << (i & 63);

	/* the first label of a level begins a node */
	HYB_ASSERT(first || i > 0);
	if (i == level->alloc)
		level_grow(b, level);
	level->labels[i] = label;
	if ((i & 63) == 0)
		level->children[i / 64] = level->first[i / 64] = 0;
	if (child)
		level->children[i / 64] |= mask;
	if (first)
		level->first[i / 64] |= mask;
	level->npos++;
	b->npositions++;
}

static inline void
level_add_suffix(HybFstBuilder *b, Level *level, uint64_t suffix)
{
	uint64_t	bit = (uint64_t) level->nleaves++ * b->suffix_bits;
	size_t		need = (size_t) (bit / 8) + 24;

	HYB_ASSERT(suffix >> b->suffix_bits == 0);
	if (b->suffix_bits == 0)
		return;
	if (need > level->suffixes_alloc)
	{
		size_t		alloc = level->suffixes_alloc == 0 ? 64 : level->suffixes_alloc * 2;

		level->suffixes = b->resize(level->suffixes, alloc);
		level->suffixes_alloc = alloc;
	}
	if (bit == 0)
		memset(level->suffixes, 0, level->suffixes_alloc);
	else
	{
		/* bytes after the last one in use may be of an earlier trie */
		size_t		used = (size_t) ((bit + 7) / 8);

		memset(level->suffixes + used, 0, 16);
	}
	hyb_bits_put(level->suffixes, bit, b->suffix_bits, suffix);
}

/* The suffix after the first `depth` bytes of the key, zeroes after its end. */
static uint64_t
leaf_suffix(const HybFstBuilder *b, uint32_t depth)
{
	uint64_t	v = 0;
	unsigned	bytes = (b->suffix_bits + 7) / 8;

	HYB_ASSERT(depth <= b->len);
	for (uint32_t i = depth; i < depth + bytes; i++)
		v = (v << 8) | (i < b->len ? b->key[i] : 0);
	return v >> (bytes * 8 - b->suffix_bits);
}

/*
 * Insert the pending key, which shares b->lcp bytes with the one before it
 * and `next` bytes with the one after it.
 */
static void
insert_pending(HybFstBuilder *b, uint32_t next)
{
	uint32_t	shared = b->lcp;
	uint32_t	end = b->len;
	bool		first = b->npositions == 0;
	Level	   *level = NULL;
	bool		terminator = next == b->len;

	HYB_ASSERT(shared <= b->len && next <= b->len);
	if (!terminator)
		end = (shared > next ? shared : next) + 1;
	for (uint32_t i = shared; i < end; i++)
	{
		level = level_use(b, i);
		level_add(b, level, b->key[i], terminator || i + 1 < end,
				  first || i > shared);
	}
	if (terminator)
	{
		level = level_use(b, end);
		level_add(b, level, 0xFF, false, true);
	}
	level_add_suffix(b, level, leaf_suffix(b, end));
	if (b->npositions > MAX_POSITIONS)
		b->failed = true;
}

bool
hyb_fst_builder_add(HybFstBuilder *b, const uint8_t *key, uint32_t len)
{
	uint32_t	next = 0;

	if (len > MAX_KEY || b->failed)
	{
		b->failed = true;
		return false;
	}
	if (b->nkeys > 0)
	{
		uint32_t	n = len < b->len ? len : b->len;

		next = hyb_common_prefix(b->key, key, n);
		if (next == len && len == b->len)
			return true;
		if (next == len || (next < b->len && key[next] < b->key[next]))
		{
			b->failed = true;
			return false;
		}
		insert_pending(b, next);
	}
	if (len > b->key_alloc)
	{
		b->key_alloc = len < 128 ? 128 : len * 2;
		b->key = b->resize(b->key, b->key_alloc);
	}
	if (len > next)
		memcpy(b->key + next, key + next, len - next);
	b->len = len;
	b->lcp = next;
	b->nkeys++;
	return true;
}

/* ---- the image ---- */

#define ALIGN8(x)	(((x) + 7) & ~(size_t) 7)

static inline bool
level_bit(const uint64_t *bits, uint32_t i)
{
	return (bits[i / 64] >> (i & 63)) & 1;
}

/* Insert the last key, and see which levels are the prefix. */
static bool
finish_levels(HybFstBuilder *b)
{
	b->prefix_len = 0;
	if (b->nkeys == 1 && b->len == 0)
		return true;

	/* an only key ends after its first byte */
	insert_pending(b, b->nkeys == 1 ? 0 : b->lcp);
	if (b->failed)
		return false;

	/* leading levels of one label with a child are the common prefix */
	while (b->levels[b->prefix_len].npos == 1 &&
		   level_bit(b->levels[b->prefix_len].children, 0))
		b->prefix_len++;
	HYB_ASSERT(b->prefix_len < b->nlevels);
	return true;
}

size_t
hyb_fst_builder_finish(HybFstBuilder *b)
{
	HybFstHeader *h = &b->header;
	uint32_t	nwords;
	uint64_t	size;

	if (b->nkeys == 0 || b->failed)
		return 0;

	memset(h, 0, sizeof(*h));
	h->magic = HYB_FST_MAGIC;
	h->suffix_bits = (uint8_t) b->suffix_bits;
	h->nkeys = (uint32_t) b->nkeys;
	if (!finish_levels(b))
		return 0;
	h->prefix_len = (uint16_t) b->prefix_len;
	h->npos = (uint32_t) b->npositions - b->prefix_len;

	nwords = (h->npos + 63) / 64;
	b->labels_off = sizeof(HybFstHeader) + b->prefix_len;
	b->suffixes_off = b->labels_off + h->npos;
	size = h->npos > 0 ? (b->nkeys * b->suffix_bits + 7) / 8 : 0;
	b->blocks_off = ALIGN8(b->suffixes_off + size);
	b->words_off = b->blocks_off +
		(size_t) ((nwords + 7) / 8) * sizeof(HybFstBlock);
	b->size = b->words_off + (size_t) nwords * 16;
	return b->size;
}

/* A place in the sequence of nodes. */
typedef struct NodeCursor
{
	const uint64_t *words;
	uint32_t	nwords;
	uint32_t	npos;
	uint32_t	w;
	uint32_t	before;			/* nodes before word w */
	uint32_t	node;
} NodeCursor;

/* First position of the node that the cursor is at; npos after the last one. */
static uint32_t
node_start(NodeCursor *c)
{
	while (c->w < c->nwords)
	{
		uint32_t	here = hyb_popcount64(c->words[(size_t) c->w * 2 + 1]);

		if (c->node - c->before < here)
			return c->w * 64 +
				hyb_select64(c->words[(size_t) c->w * 2 + 1], c->node - c->before);
		c->before += here;
		c->w++;
	}
	return c->npos;
}

/* Put n bits of a level in their place: has-child (which 0) or first-of-node. */
static void
append_bits(uint64_t *words, int which, uint32_t at, const uint64_t *bits,
			uint32_t n)
{
	unsigned	sh = at & 63;

	for (uint32_t i = 0; i < n; i += 64)
	{
		uint64_t	v = bits[i / 64];
		size_t		w = (at + i) / 64;

		words[w * 2 + which] |= v << sh;
		if (sh != 0 && n - i > 64 - sh)
			words[w * 2 + 2 + which] |= v >> (64 - sh);
	}
}

/* Labels and words. */
static void
write_labels(const HybFstBuilder *b, uint8_t *image)
{
	uint64_t   *words = (uint64_t *) (image + b->words_off);
	uint32_t	at = 0;

	for (uint32_t l = b->prefix_len; l < b->nlevels; l++)
	{
		const Level *level = &b->levels[l];

		memcpy(image + b->labels_off + at, level->labels, level->npos);
		append_bits(words, 0, at, level->children, level->npos);
		append_bits(words, 1, at, level->first, level->npos);
		at += level->npos;
	}
	HYB_ASSERT(at == b->header.npos);
}

static void
write_blocks(HybFstBlock *blocks, NodeCursor *nodes)
{
	uint32_t	rank = 0;

	for (uint32_t w = 0; w < nodes->nwords; w += HYB_FST_GROUP / 64)
	{
		HybFstBlock *block = &blocks[w * 64 / HYB_FST_BLOCK];
		uint32_t	child = node_start(nodes);
		uint32_t	n = hyb_popcount64(nodes->words[(size_t) w * 2]);

		if (w * 64 % HYB_FST_BLOCK == 0)
		{
			block->rank = rank;
			block->child = child;
		}
		child -= block->child;
		block->child_sub[w * 64 % HYB_FST_BLOCK / HYB_FST_GROUP] =
			(uint16_t) (child < HYB_FST_FAR ? child : HYB_FST_FAR);
		if (w + 1 < nodes->nwords)
			n += hyb_popcount64(nodes->words[(size_t) w * 2 + 2]);
		rank += n;
		nodes->node += n;
	}
}

static void
write_suffixes(const HybFstBuilder *b, uint8_t *out)
{
	uint64_t	bit = 0;

	if (b->suffix_bits == 0)
		return;
	for (uint32_t l = b->prefix_len; l < b->nlevels; l++)
	{
		const Level *level = &b->levels[l];
		uint64_t	n = (uint64_t) level->nleaves * b->suffix_bits;

		for (uint64_t i = 0; i < n; i += 56)
		{
			unsigned	take = n - i < 56 ? (unsigned) (n - i) : 56;

			hyb_bits_put(out, bit, take, hyb_bits_get(level->suffixes, i, take));
			bit += take;
		}
	}
	HYB_ASSERT(b->nlevels == 0 || bit == b->nkeys * b->suffix_bits);
}

void
hyb_fst_builder_write(const HybFstBuilder *b, void *image)
{
	uint8_t    *out = image;

	HYB_ASSERT(((uintptr_t) image & 7) == 0 && b->size > 0 && !b->failed);
	memset(out, 0, b->size);
	memcpy(out, &b->header, sizeof(HybFstHeader));
	for (uint32_t i = 0; i < b->prefix_len; i++)
		out[sizeof(HybFstHeader) + i] = b->levels[i].labels[0];
	if (b->nlevels > 0)
	{
		NodeCursor	nodes = {0};

		write_labels(b, out);
		nodes.words = (const uint64_t *) (out + b->words_off);
		nodes.npos = b->header.npos;
		nodes.nwords = (nodes.npos + 63) / 64;

		/* the root has no parent */
		nodes.node = 1;
		write_blocks((HybFstBlock *) (out + b->blocks_off), &nodes);
	}
	write_suffixes(b, out + b->suffixes_off);
}

/* ---- checking ---- */

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

/* What is seen on the way through the nodes, in order. */
typedef struct Walk
{
	const HybFst *f;
	uint32_t	pos;			/* positions passed */
	uint32_t	child;			/* first position of the next child */
	uint32_t	children;
} Walk;

/* The next position. */
static const char *
verify_position(Walk *walk)
{
	const HybFst *f = walk->f;
	uint32_t	pos = walk->pos++;
	const HybFstBlock *block = &f->blocks[pos / HYB_FST_BLOCK];

	HYB_ASSERT(pos < f->npos);
	if (pos % HYB_FST_BLOCK == 0 &&
		(block->rank != walk->children || block->child != walk->child))
		return "ranks of positions are wrong";
	if (pos % HYB_FST_GROUP == 0)
	{
		uint32_t	far = walk->child - block->child;

		if (block->child_sub[pos % HYB_FST_BLOCK / HYB_FST_GROUP] !=
			(far < HYB_FST_FAR ? far : HYB_FST_FAR))
			return "children of positions are wrong";
	}
	if (get_fst_bit(f, pos, 0))
	{
		if (walk->child <= pos || walk->child >= f->npos)
			return "a node is missing";
		walk->children++;
		walk->child = node_after(f, walk->child, 1);
	}
	return NULL;
}

static const char *
verify_node(Walk *walk)
{
	const HybFst *f = walk->f;
	int			last = -1;
	const char *error;

	if (!get_fst_bit(f, walk->pos, 1))
		return "the root is missing";
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
			return "labels of a node do not ascend";
		last = f->labels[walk->pos];
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
	Walk		walk = {f, 0, 0, 0};
	uint32_t	nodes = 0;

	if (f->npos == 0)
		return NULL;
	if (!all_zero(f->suffixes + ((uint64_t) f->nkeys * f->suffix_bits + 7) / 8,
				  (const uint8_t *) f->blocks))
		return "there are bytes after the last suffix";

	/*
	 * Each child lies behind its parent, and is the node after the last
	 * child.  So every node but the root has a parent if there is one child
	 * less than nodes.
	 */
	walk.child = node_after(f, 0, 1);
	for (; walk.pos < f->npos; nodes++)
	{
		const char *error = verify_node(&walk);

		if (error != NULL)
			return error;
	}
	if (walk.children + 1 != nodes)
		return "nodes and children do not agree";
	if (f->npos - walk.children != f->nkeys)
		return "leaves and keys do not agree";
	for (uint32_t i = f->npos; i < f->nblocks * HYB_FST_BLOCK; i++)
	{
		if (i < f->nwords * 64 && (get_fst_bit(f, i, 0) || get_fst_bit(f, i, 1)))
			return "there are bits after the last position";
		if (i % HYB_FST_GROUP == 0 &&
			f->blocks[i / HYB_FST_BLOCK].child_sub[i % HYB_FST_BLOCK / HYB_FST_GROUP] != 0)
			return "there are children after the last position";
	}
	return NULL;
}
