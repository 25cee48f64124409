/*
 * fst_build.c
 *		Building a Fast Succinct Trie from sorted keys, in one scan.
 *
 * As in section 3.5 of Zhang's dissertation: a key is inserted when the one
 * after it is known, for the bytes it shares with both neighbours say where
 * it ends in the trie and where its path begins to be its own.  Every level
 * is a sequence that only grows at its end.
 */
#include "algo/bits.h"
#include "algo/fst.h"

/* Keys longer than that do not come into an image (prefix_len, height). */
#define MAX_KEY		60000

/* Positions or nodes of one image. */
#define MAX_POSITIONS	(UINT32_MAX - 2 * HYB_FST_BLOCK)

typedef struct Level
{
	uint8_t    *labels;
	uint64_t   *children;		/* bitmaps */
	uint64_t   *first;
	uint8_t    *payload;
	uint32_t	npos;
	uint32_t	nnodes;
	uint32_t	nleaves;
	uint32_t	alloc;			/* positions */
	size_t		payload_alloc;
} Level;

struct HybFstBuilder
{
	HybFstResize resize;
	bool		exact;
	unsigned	hash_bits;
	unsigned	real_bits;
	unsigned	payload_bits;
	unsigned	ratio;
	Level	   *levels;
	uint32_t	nlevels;		/* in use */
	uint32_t	levels_alloc;
	uint8_t    *key;			/* the last one given, not inserted yet */
	uint32_t	len;
	uint32_t	key_alloc;
	uint32_t	lcp;			/* that it shares with the one before it */
	uint64_t	payload;
	uint64_t	nkeys;			/* keys given */
	uint64_t	npositions;
	bool		failed;

	/* after finishing */
	uint32_t	prefix_len;		/* levels left out */
	uint32_t	cut;			/* first sparse level */
	HybFstHeader header;
	size_t		dense_off;
	size_t		samples_off;
	size_t		blocks_off;
	size_t		labels_off;
	size_t		payload_off;
};

HybFstBuilder *
hyb_fst_builder_create(HybFstResize resize, bool exact, unsigned hash_bits,
					   unsigned real_bits)
{
	HybFstBuilder *b = resize(NULL, sizeof(HybFstBuilder));

	memset(b, 0, sizeof(*b));
	b->resize = resize;
	b->exact = exact;
	b->hash_bits = exact ? 0 : hash_bits > 32 ? 32 : hash_bits;
	b->real_bits = exact ? 0 : real_bits > 32 ? 32 : real_bits;
	b->payload_bits = b->hash_bits + b->real_bits;
	b->ratio = HYB_FST_RATIO;
	return b;
}

void
hyb_fst_builder_free(HybFstBuilder *b)
{
	HybFstResize resize = b->resize;

	for (uint32_t i = 0; i < b->levels_alloc; i++)
	{
		Level	   *level = &b->levels[i];

		if (level->alloc > 0)
		{
			resize(level->labels, 0);
			resize(level->children, 0);
			resize(level->first, 0);
		}
		if (level->payload != NULL)
			resize(level->payload, 0);
	}
	if (b->levels != NULL)
		resize(b->levels, 0);
	if (b->key != NULL)
		resize(b->key, 0);
	resize(b, 0);
}

void
hyb_fst_builder_reset(HybFstBuilder *b)
{
	for (uint32_t i = 0; i < b->nlevels; i++)
	{
		b->levels[i].npos = 0;
		b->levels[i].nnodes = 0;
		b->levels[i].nleaves = 0;
	}
	if (b->levels_alloc > 0)
		b->levels[0].nleaves = 0;	/* of an only, empty key */
	b->nlevels = 0;
	b->nkeys = 0;
	b->npositions = 0;
	b->failed = false;
}

void
hyb_fst_builder_payload(HybFstBuilder *b, unsigned bits)
{
	if (b->exact)
		b->payload_bits = bits > 64 ? 64 : bits;
}

void
hyb_fst_builder_ratio(HybFstBuilder *b, unsigned ratio)
{
	b->ratio = ratio;
}

/* A multiply-and-fold hash over 8 bytes at a time. */
uint64_t
hyb_fst_hash(const uint8_t *key, uint32_t len)
{
	uint64_t	h = UINT64_C(0x9E3779B97F4A7C15) ^ len;
	uint32_t	i = 0;

	for (; i + 8 <= len; i += 8)
	{
		h = (h ^ hyb_load64le(key + i)) * UINT64_C(0xFF51AFD7ED558CCD);
		h ^= h >> 32;
	}
	if (i < len)
	{
		uint64_t	rest = 0;

		for (unsigned sh = 0; i < len; i++, sh += 8)
			rest |= (uint64_t) key[i] << sh;
		h = (h ^ rest) * UINT64_C(0xFF51AFD7ED558CCD);
		h ^= h >> 32;
	}
	h *= UINT64_C(0xC4CEB9FE1A85EC53);
	return h ^ (h >> 29);
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

	if (i == level->alloc)
		level_grow(b, level);
	level->labels[i] = label;
	if ((i & 63) == 0)
		level->children[i / 64] = level->first[i / 64] = 0;
	if (child)
		level->children[i / 64] |= mask;
	if (first)
	{
		level->first[i / 64] |= mask;
		level->nnodes++;
	}
	level->npos++;
	b->npositions++;
}

static inline void
level_add_payload(HybFstBuilder *b, Level *level, uint64_t payload)
{
	uint64_t	bit = (uint64_t) level->nleaves++ * b->payload_bits;
	size_t		need = (size_t) (bit / 8) + 24;

	if (b->payload_bits == 0)
		return;
	if (need > level->payload_alloc)
	{
		size_t		alloc = level->payload_alloc == 0 ? 64 : level->payload_alloc * 2;

		level->payload = b->resize(level->payload, alloc);
		level->payload_alloc = alloc;
	}
	if (bit == 0)
		memset(level->payload, 0, level->payload_alloc);
	else
	{
		/* bytes after the last one in use may be of an earlier trie */
		size_t		used = (size_t) ((bit + 7) / 8);

		memset(level->payload + used, 0, 16);
	}
	hyb_bits_put(level->payload, bit, b->payload_bits, payload);
}

/* The n bits after the first `depth` bytes of a key, zeroes after its end. */
static uint64_t
real_suffix(const uint8_t *key, uint32_t len, uint32_t depth, unsigned n)
{
	uint64_t	v = 0;
	unsigned	bytes = (n + 7) / 8;

	for (uint32_t i = depth; i < depth + bytes; i++)
		v = (v << 8) | (i < len ? key[i] : 0);
	return v >> (bytes * 8 - n);
}

static uint64_t
leaf_payload(const HybFstBuilder *b, uint32_t depth)
{
	uint64_t	v = 0;

	if (b->exact)
		return b->payload;
	if (b->hash_bits > 0)
		v = hyb_fst_hash(b->key, b->len) >> (64 - b->hash_bits);
	if (b->real_bits > 0)
		v = (v << b->real_bits) |
			real_suffix(b->key, b->len, depth, b->real_bits);
	return v;
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

	if (!terminator && !b->exact)
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
	level_add_payload(b, level, b->payload_bits == 0 ? 0 :
					  leaf_payload(b, end));
	if (b->npositions > MAX_POSITIONS)
		b->failed = true;
}

bool
hyb_fst_builder_add(HybFstBuilder *b, const uint8_t *key, uint32_t len,
					uint64_t payload)
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
	b->payload = payload;
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

static uint64_t
sparse_bits(const Level *level)
{
	return (uint64_t) level->npos * 10 + level->npos / 4;
}

size_t
hyb_fst_builder_finish(HybFstBuilder *b)
{
	HybFstHeader *h = &b->header;
	uint64_t	sparse = 0;
	uint64_t	sparse_above = 0;
	uint64_t	dense = 0;
	uint32_t	npos = 0;
	uint32_t	nwords;
	uint64_t	payload;

	if (b->nkeys == 0 || b->failed)
		return 0;

	memset(h, 0, sizeof(*h));
	h->magic = HYB_FST_MAGIC;
	h->flags = b->exact ? HYB_FST_EXACT : 0;
	h->hash_bits = b->hash_bits;
	h->real_bits = b->real_bits;
	h->payload_bits = b->payload_bits;
	h->nkeys = (uint32_t) b->nkeys;
	if (b->nkeys == 1 && b->len == 0)
	{
		h->flags |= HYB_FST_EMPTY_KEY;
		b->lcp = 0;
		b->prefix_len = b->cut = 0;
		level_use(b, 0);
		level_add_payload(b, &b->levels[0], leaf_payload(b, 0));
		b->nlevels = 0;
	}
	else
	{
		/* an only key of a truncated trie ends after its first byte */
		insert_pending(b, b->nkeys == 1 ? 0 : b->lcp);
		if (b->failed)
			return 0;

		/* leading levels of one label with a child are the common prefix */
		b->prefix_len = 0;
		while (b->levels[b->prefix_len].npos == 1 &&
			   level_bit(b->levels[b->prefix_len].children, 0))
			b->prefix_len++;

		for (uint32_t i = b->prefix_len; i < b->nlevels; i++)
			sparse += sparse_bits(&b->levels[i]);
		b->cut = b->prefix_len;
		for (uint32_t i = b->prefix_len; i < b->nlevels; i++)
		{
			dense += (uint64_t) b->levels[i].nnodes * sizeof(HybFstDense) * 8;
			sparse -= sparse_bits(&b->levels[i]);
			sparse_above += sparse_bits(&b->levels[i]);
			if (dense * b->ratio <= sparse || dense <= sparse_above)
				b->cut = i + 1;
		}
	}

	h->height = (uint16_t) (b->nlevels == 0 ? 0 : b->nlevels - b->prefix_len);
	h->prefix_len = (uint16_t) b->prefix_len;
	for (uint32_t i = b->prefix_len; i < b->nlevels; i++)
	{
		const Level *level = &b->levels[i];

		if (i < b->cut)
		{
			h->ndense += level->nnodes;
			h->dense_leaves += level->nleaves;
			h->dense_children += i + 1 < b->nlevels ? b->levels[i + 1].nnodes : 0;
		}
		else
		{
			npos += level->npos;
			h->nnodes += level->nnodes;
		}
	}
	h->npos = npos;
	nwords = (npos + 63) / 64;
	payload = (uint64_t) b->nkeys * b->payload_bits;

	b->dense_off = ALIGN8(sizeof(HybFstHeader) + b->prefix_len);
	b->samples_off = b->dense_off + (size_t) h->ndense * sizeof(HybFstDense);
	b->blocks_off = b->samples_off +
		ALIGN8(((size_t) h->nnodes + HYB_FST_SAMPLE - 1) / HYB_FST_SAMPLE * 4);
	b->labels_off = b->blocks_off +
		((size_t) ((nwords + 7) / 8) + (size_t) nwords * 2) * 8;
	b->payload_off = b->labels_off + npos;
	payload = b->payload_off + (payload > 0 ? (payload + 7) / 8 + 8 : 0);
	payload = ALIGN8(payload);
	if (payload > UINT32_MAX)
		return 0;
	h->size = (uint32_t) payload;
	return h->size;
}

/* Ranks within a node, from its bitmaps; returns its has-child bits. */
static uint32_t
dense_close(HybFstDense *node, uint32_t *nleaves)
{
	uint32_t	children = 0;
	uint32_t	leaves = 0;

	for (int w = 0; w < 4; w++)
	{
		children += hyb_popcount64(node->children[w]);
		leaves += hyb_popcount64(node->labels[w] & ~node->children[w]);
		if (w < 3)
		{
			node->children_sub[w] = (uint8_t) children;
			node->leaf_sub[w] = (uint8_t) leaves;
		}
	}
	*nleaves = leaves + node->terminator;
	return children;
}

static void
write_dense(const HybFstBuilder *b, HybFstDense *out)
{
	uint32_t	children = 0;
	uint32_t	leaves = 0;

	for (uint32_t l = b->prefix_len; l < b->cut; l++)
	{
		const Level *level = &b->levels[l];
		uint32_t	i = 0;

		while (i < level->npos)
		{
			HybFstDense *node = out++;
			uint32_t	n;
			bool		more = i + 1 < level->npos && !level_bit(level->first, i + 1);

			memset(node, 0, sizeof(*node));
			node->children_base = children;
			node->leaf_base = leaves;
			if (more && level->labels[i] == 0xFF)
			{
				node->terminator = 1;
				i++;
			}
			do
			{
				uint8_t		c = level->labels[i];

				node->labels[c / 64] |= UINT64_C(1) << (c & 63);
				if (level_bit(level->children, i))
					node->children[c / 64] |= UINT64_C(1) << (c & 63);
				i++;
			} while (i < level->npos && !level_bit(level->first, i));
			children += dense_close(node, &n);
			leaves += n;
		}
	}
}

/* Word w of the has-child (which 0) or first-of-node (1) bits. */
static inline uint64_t *
block_word(uint64_t *blocks, uint32_t w, int which)
{
	return &blocks[(size_t) (w >> 3) * HYB_FST_BLOCK_WORDS + 1 + (w & 7) * 2 + which];
}

/* Put n bits of a level in their place. */
static void
append_bits(uint64_t *blocks, int which, uint32_t at, const uint64_t *bits,
			uint32_t n)
{
	unsigned	sh = at & 63;

	for (uint32_t i = 0; i < n; i += 64)
	{
		uint64_t	v = bits[i / 64];
		uint32_t	w = (at + i) / 64;

		*block_word(blocks, w, which) |= v << sh;
		if (sh != 0 && n - i > 64 - sh)
			*block_word(blocks, w + 1, which) |= v >> (64 - sh);
	}
}

static void
write_sparse(const HybFstBuilder *b, uint8_t *image)
{
	uint64_t   *blocks = (uint64_t *) (image + b->blocks_off);
	uint32_t   *samples = (uint32_t *) (image + b->samples_off);
	uint32_t	nwords = (b->header.npos + 63) / 64;
	uint32_t	at = 0;
	uint32_t	children = 0;
	uint32_t	nodes = 0;

	for (uint32_t l = b->cut; l < b->nlevels; l++)
	{
		const Level *level = &b->levels[l];

		memcpy(image + b->labels_off + at, level->labels, level->npos);
		append_bits(blocks, 0, at, level->children, level->npos);
		append_bits(blocks, 1, at, level->first, level->npos);
		at += level->npos;
	}
	for (uint32_t w = 0; w < nwords; w++)
	{
		uint32_t	sampled = (nodes + HYB_FST_SAMPLE - 1) / HYB_FST_SAMPLE * HYB_FST_SAMPLE;

		if ((w & 7) == 0)
		{
			uint32_t   *rank = (uint32_t *) (blocks + (size_t) (w >> 3) * HYB_FST_BLOCK_WORDS);

			rank[0] = children;
			rank[1] = nodes;
		}
		children += hyb_popcount64(*block_word(blocks, w, 0));
		nodes += hyb_popcount64(*block_word(blocks, w, 1));

		/* a word has at most one sampled node */
		if (sampled < nodes)
			samples[sampled / HYB_FST_SAMPLE] = w >> 3;
	}
}

static void
write_payload(const HybFstBuilder *b, uint8_t *out)
{
	uint64_t	bit = 0;

	if (b->payload_bits == 0)
		return;
	if (b->nlevels == 0)
		hyb_bits_put(out, 0, b->payload_bits,
					 hyb_bits_get(b->levels[0].payload, 0, b->payload_bits));
	for (uint32_t l = b->prefix_len; l < b->nlevels; l++)
	{
		const Level *level = &b->levels[l];
		uint64_t	n = (uint64_t) level->nleaves * b->payload_bits;

		for (uint64_t i = 0; i < n; i += 56)
		{
			unsigned	take = n - i < 56 ? (unsigned) (n - i) : 56;

			hyb_bits_put(out, bit, take, hyb_bits_get(level->payload, i, take));
			bit += take;
		}
	}
}

void
hyb_fst_builder_write(const HybFstBuilder *b, void *image)
{
	uint8_t    *out = image;

	memset(out, 0, b->header.size);
	memcpy(out, &b->header, sizeof(HybFstHeader));
	for (uint32_t i = 0; i < b->prefix_len; i++)
		out[sizeof(HybFstHeader) + i] = b->levels[i].labels[0];
	if (b->nlevels > 0)
	{
		write_dense(b, (HybFstDense *) (out + b->dense_off));
		write_sparse(b, out);
	}
	write_payload(b, out + b->payload_off);
}
