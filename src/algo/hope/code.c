/*
 * code.c
 *		Codes: their lengths, encoding keys, decoding them.
 *
 * Code lengths are those of a Hu-Tucker code, found by the algorithm of Garsia and
 * Wachs (SIAM J. Comput. 6, 1977; Knuth, TAOCP 3, 6.2.2, algorithm G).  Weights of
 * a sample leave little to move in the working sequence, so it is an array.
 *
 * Encoding collects codes in a 64-bit word, left-aligned.  After each addition the
 * whole word is stored and the position moves on by the bytes that are complete, so
 * there is no branch that depends on how full the word is.
 */
#include "algo/hope/internal.h"

/* ---- code lengths ---- */

/*
 * The working sequence: trees over runs of symbols, and their weights.  The n
 * symbols have the numbers from 0 on, trees of several those behind.
 */
typedef struct Sequence
{
	uint64_t   *weight;
	uint32_t   *tree;
	uint32_t	size;
	uint32_t   *parent;			/* of each tree */
	uint32_t	used;			/* trees numbered so far */
	uint32_t   *pending;		/* places to look at, one an element at most */
} Sequence;

/*
 * Make elements k - 1 and k one tree, and put it after the last element
 * before them that is at least as heavy.  Returns its place.
 */
static uint32_t
combine_two(Sequence *s, uint32_t k)
{
	uint64_t	weight = s->weight[k - 1] + s->weight[k];
	uint32_t	place = k - 1;

	HYB_ASSERT(k >= 1 && k < s->size);
	s->parent[s->tree[k - 1]] = s->parent[s->tree[k]] = s->used;
	s->size--;
	memmove(s->weight + k, s->weight + k + 1, (s->size - k) * sizeof(uint64_t));
	memmove(s->tree + k, s->tree + k + 1, (s->size - k) * sizeof(uint32_t));
	for (; place > 0 && s->weight[place - 1] < weight; place--)
	{
		s->weight[place] = s->weight[place - 1];
		s->tree[place] = s->tree[place - 1];
	}
	s->weight[place] = weight;
	s->tree[place] = s->used++;
	return place;
}

/*
 * Combine elements k - 1 and k, and restore the invariant to their left:
 * every element is heavier than the next but one.  Only elements left of the
 * new one are combined by that, so places are kept as distances from the end
 * of the sequence.
 */
static void
combine(Sequence *s, uint32_t k)
{
	uint32_t	npending = 0;
	uint32_t	place = combine_two(s, k);

	s->pending[npending++] = s->size - place;
	while (npending > 0)
	{
		place = s->size - s->pending[npending - 1];
		if (place >= 2 && s->weight[place - 2] <= s->weight[place])
		{
			place = combine_two(s, place - 1);
			s->pending[npending++] = s->size - place;
		}
		else
			npending--;
	}
}

void
hyb_hope_optimal_lengths(const uint64_t *weights, uint32_t n,
						 uint8_t *lengths, const HybHopeMemory *memory)
{
	Sequence	seq = {.used = n};
	Sequence   *s = &seq;
	uint32_t   *words;
	uint8_t    *depth;

	if (n == 0)
		return;
	s->weight = memory->alloc(memory->context, n * sizeof(uint64_t));
	words = memory->alloc(memory->context, 4 * (size_t) n * sizeof(uint32_t));
	s->tree = words;
	s->pending = words + n;
	s->parent = words + 2 * (size_t) n;
	depth = memory->alloc(memory->context, 2 * (size_t) n);
	for (uint32_t i = 0; i < n; i++)
	{
		s->weight[s->size] = weights[i];
		s->tree[s->size++] = i;
		while (s->size >= 3 && s->weight[s->size - 3] <= s->weight[s->size - 1])
			combine(s, s->size - 2);
	}
	while (s->size > 1)
		combine(s, s->size - 1);

	/* a tree's number is lower than its parent's */
	HYB_ASSERT(s->used == 2 * n - 1);
	depth[s->used - 1] = 0;
	for (uint32_t t = s->used - 1; t-- > 0;)
		depth[t] = depth[s->parent[t]] < 255 ? (uint8_t) (depth[s->parent[t]] + 1) : 255;
	memcpy(lengths, depth, n);

	memory->release(memory->context, depth);
	memory->release(memory->context, words);
	memory->release(memory->context, s->weight);
}

/*
 * Lengths of at most `limit` bits: small weights are raised until the code is
 * not longer.  A symbol of weight w of a total W gets at most about
 * log2(W / w) + 2 bits, so this ends soon.
 */
void
hyb_hope_limited_lengths(uint64_t *weights, uint32_t n, unsigned limit,
						 uint8_t *lengths, const HybHopeMemory *memory)
{
	uint64_t	total = 0;
	unsigned	shift = limit;

	for (uint32_t i = 0; i < n; i++)
		total += weights[i];
	for (;;)
	{
		unsigned	longest = 0;
		uint64_t	floor;

		hyb_hope_optimal_lengths(weights, n, lengths, memory);
		for (uint32_t i = 0; i < n; i++)
			if (lengths[i] > longest)
				longest = lengths[i];
		if (longest <= limit)
			return;
		shift--;
		floor = (total >> shift) + 1;
		for (uint32_t i = 0; i < n; i++)
			if (weights[i] < floor)
				weights[i] = floor;
	}
}

bool
hyb_hope_codes(const uint8_t *lengths, uint32_t n, uint32_t *codes)
{
	uint64_t	next = 0;		/* left-aligned to 32 bits */

	for (uint32_t i = 0; i < n; i++)
	{
		unsigned	len = lengths[i];

		if (len < 1 || len > HYB_HOPE_MAX_CODE ||
			(next & ((UINT64_C(1) << (32 - len)) - 1)) != 0)
			return false;
		codes[i] = (uint32_t) (next >> (32 - len));
		next += UINT64_C(1) << (32 - len);
		if (next > UINT64_C(1) << 32)
			return false;
	}
	return true;
}

/* ---- encoding ---- */

/* Of a word at hand the `fill` < 8 upper bits belong to the byte at out. */
#define PUT(bits_, len_) \
	do { \
		word |= (bits_) >> fill; \
		fill += (len_); \
		hyb_store64be(out, word); \
		out += fill >> 3; \
		word <<= fill & ~7u; \
		fill &= 7; \
	} while (0)

/* Symbols from *at on, until one ends at `stop` or beyond; *at is moved there. */
HYB_ALWAYS_INLINE uint64_t
encode_with(const HybHope *hope, const uint8_t **at, const uint8_t *stop,
			const uint8_t *end, uint8_t *out, bool fast)
{
	const uint8_t *p = *at;
	const HybHopeTrie *trie = &hope->trie;
	const uint8_t *start = out;
	uint64_t	word = 0;
	unsigned	fill = 0;

	while (p < stop)
	{
		uint64_t	value = hyb_hope_find_with(trie, p, (size_t) (end - p), fast);

		HYB_ASSERT(HYB_HOPE_VALUE_SYMLEN(value) >= 1 &&
				   HYB_HOPE_VALUE_SYMLEN(value) <= (size_t) (end - p));
		HYB_ASSERT(HYB_HOPE_VALUE_LEN(value) >= 1 &&
				   HYB_HOPE_VALUE_LEN(value) <= HYB_HOPE_MAX_CODE);
		p += HYB_HOPE_VALUE_SYMLEN(value);
		PUT(HYB_HOPE_VALUE_CODE(value), HYB_HOPE_VALUE_LEN(value));
	}
	*at = p;

	/* the last byte, and the bits of the whole code */
	HYB_ASSERT(fill < 8);
	out[0] = (uint8_t) (word >> 56);
	return 8 * (uint64_t) (out - start) + fill;
}

#ifdef HYB_HOPE_POPCNT
__attribute__((target("popcnt")))
static uint64_t
encode_popcnt(const HybHope *hope, const uint8_t **at, const uint8_t *stop,
			  const uint8_t *end, uint8_t *out)
{
	return encode_with(hope, at, stop, end, out, true);
}
#endif

uint64_t
hyb_hope_encode(const HybHope *hope, const uint8_t *key, size_t len,
				size_t most, uint8_t *out, size_t *done)
{
	const uint8_t *at = key;
	const uint8_t *stop = key + (len < most ? len : most);
	const uint8_t *end = key + len;
	uint64_t	bits;

#ifdef HYB_HOPE_POPCNT
	if (hope->popcnt)
		bits = encode_popcnt(hope, &at, stop, end, out);
	else
#endif
		bits = encode_with(hope, &at, stop, end, out, false);
	*done = (size_t) (at - key);
	return bits;
}

/* ---- decoding ---- */

size_t
hyb_hope_decode_bound(const HybHope *hope, size_t len)
{
	return (len * 8 / hope->shortest + 1) * hope->longest_symbol + 64;
}

/* 64 bits at a bit position of len bytes, followed by zeroes. */
static inline uint64_t
window(const uint8_t *code, size_t len, uint64_t pos)
{
	size_t		at = (size_t) (pos >> 3);
	uint64_t	w = hyb_load64be(code + at);

	HYB_ASSERT(at < len);
	if (at + 8 > len)
		w &= ~(~UINT64_C(0) >> (8 * (len - at)));
	return w << (pos & 7);
}

/*
 * A code longer than the table's width: the interval, or HYB_HOPE_NONE at the
 * end.
 */
static uint32_t
find_code(const HybHope *hope, uint32_t bits, uint32_t from)
{
	uint32_t	low = from == HYB_HOPE_NONE ? 0 : from;
	uint32_t	step = 1;
	uint32_t	high;

	if (bits < hope->aligned[0])
		return HYB_HOPE_NONE;
	while (low + step < hope->entries && hope->aligned[low + step] <= bits)
	{
		low += step;
		step *= 2;
	}
	high = low + step < hope->entries ? low + step : hope->entries;
	while (high - low > 1)
	{
		uint32_t	middle = low + (high - low) / 2;

		if (hope->aligned[middle] <= bits)
			low = middle;
		else
			high = middle;
	}

	HYB_ASSERT(low < hope->entries && hope->aligned[low] <= bits);
	/* codes of one length leave some unused */
	if ((bits ^ hope->aligned[low]) >> (32 - hope->lengths[low + 1]) != 0)
		return HYB_HOPE_NONE;
	return low;
}

size_t
hyb_hope_decode(const HybHope *hope, const uint8_t *code, size_t len,
				size_t most, uint8_t *out, uint64_t *bits)
{
	const HybHopeDecode *table = hope->decode;
	const uint8_t *strings = hope->intervals.bytes;
	uint8_t    *start = out;
	uint8_t    *stop = out + most;
	uint64_t	end = 8 * (uint64_t) len;
	uint64_t	pos = 0;

	while (pos < end && out < stop)
	{
		uint64_t	w = window(code, len, pos);
		const HybHopeDecode *d;
		unsigned	used = 0;

		/* 57 bits are sure to be there: four times 13 */
		for (int i = 0; i < 4; i++)
		{
			d = &table[w >> (64 - HYB_HOPE_DECODE_BITS)];
			/* one of several symbols may be the last that is wanted */
			if (d->len == 0 || d->symlen > stop - out)
				break;
			if (d->symlen <= 4)
				memcpy(out, &d->bytes, 4);
			else
				memcpy(out, strings + d->bytes, d->symlen);
			out += d->symlen;
			used += d->len;
			w <<= d->len;
		}
		pos += used;
		if (used == 0)
		{
			uint32_t	head = (uint32_t) (w >> 32);
			uint32_t	i;
			unsigned	symlen;

			i = find_code(hope, head, d->len == 0 ? d->bytes : HYB_HOPE_NONE);
			if (i == HYB_HOPE_NONE)
				break;
			symlen = hope->intervals.symlen[i];
			HYB_ASSERT(symlen >= 1 && symlen <= hope->longest_symbol);
			memcpy(out, strings + hope->intervals.off[i], symlen);
			out += symlen;
			pos += hope->lengths[i + 1];
		}
	}
	*bits = pos;
	return (size_t) (out - start);
}

/* ---- bytes other than 0x00 ---- */

/* Has the word a byte whose upper seven bits are zero? */
static inline bool
has_low_byte(uint64_t w)
{
	w &= UINT64_C(0xFEFEFEFEFEFEFEFE);
	return ((w - UINT64_C(0x0101010101010101)) & ~w &
			UINT64_C(0x8080808080808080)) != 0;
}

size_t
hyb_hope_stuff(const uint8_t *code, uint64_t bits, uint8_t *out)
{
	size_t		len = (size_t) ((bits + 7) / 8);
	uint64_t	pos = 0;
	uint8_t    *start = out;

	while (pos < bits)
	{
		uint64_t	w = window(code, len, pos);

		/* 7 whole bytes are sure to be there */
		if (pos + 56 <= bits && !has_low_byte(w | 0xFF))
		{
			hyb_store64be(out, w);
			out += 7;
			pos += 56;
			continue;
		}
		for (int i = 0; i < 7 && pos < bits; i++)
		{
			unsigned	b = (unsigned) (w >> 56);

			if (b < 2)
			{
				*out++ = 0x01;
				pos += 7;
				w <<= 7;
			}
			else
			{
				*out++ = (uint8_t) b;
				pos += 8;
				w <<= 8;
			}
		}
	}
	return (size_t) (out - start);
}

size_t
hyb_hope_stuffed_length(const uint8_t *bytes, size_t len, uint64_t bits)
{
	uint64_t	pos = 0;
	size_t		n = 0;

	while (pos < bits && n < len)
		pos += bytes[n++] < 2 ? 7 : 8;
	return n;
}

size_t
hyb_hope_unstuff(const uint8_t *bytes, size_t len, uint8_t *out)
{
	uint8_t    *start = out;
	uint64_t	word = 0;
	unsigned	fill = 0;

	for (size_t i = 0; i < len; i++)
	{
		uint64_t	b = bytes[i];

		if (fill == 0 && b >= 2)
		{
			*out++ = (uint8_t) b;
			continue;
		}
		if (b < 2)
			fill += 7;
		else
		{
			word |= b << (56 - fill);
			fill += 8;
		}
		if (fill >= 8)
		{
			*out++ = (uint8_t) (word >> 56);
			word <<= 8;
			fill -= 8;
		}
	}
	if (fill > 0)
		*out++ = (uint8_t) (word >> 56);
	return (size_t) (out - start);
}
