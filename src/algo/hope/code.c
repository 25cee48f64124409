/*
 * code.c
 *		Codes: their lengths, encoding keys, decoding them.
 *
 * Code lengths are those of a Hu-Tucker code, found by the algorithm of Garsia and
 * Wachs (SIAM J. Comput. 6, 1977; Knuth, TAOCP 3, 6.2.2, algorithm G).  The
 * working sequence is kept in a treap whose nodes know their subtree's largest
 * weight, so each of the n - 1 combinations takes O(log n) time.
 *
 * Encoding collects codes in a 64-bit word, left-aligned.  After each addition the
 * whole word is stored and the position moves on by the bytes that are complete, so
 * there is no branch that depends on how full the word is.
 */
#include "algo/hope/internal.h"

/* ---- code lengths ---- */

/*
 * The working sequence.  A node stands for a tree over a run of symbols and has the
 * number of that tree, from 1 on.
 */
typedef struct Sequence
{
	uint64_t   *weight;
	uint64_t   *largest;		/* of the subtree */
	uint32_t   *left;			/* in the treap */
	uint32_t   *right;
	uint32_t   *size;
	uint32_t   *low;			/* the tree's children, 0 for a symbol */
	uint32_t   *high;
	uint32_t	root;
	uint32_t	used;			/* nodes numbered so far */
} Sequence;

static inline uint32_t
priority(uint32_t node)
{
	uint32_t	h = node * UINT32_C(0x9E3779B1);

	h ^= h >> 15;
	h *= UINT32_C(0x85EBCA6B);
	return h ^ (h >> 13);
}

static inline void
refresh(Sequence *s, uint32_t t)
{
	uint32_t	l = s->left[t];
	uint32_t	r = s->right[t];
	uint64_t	w = s->weight[t];

	s->size[t] = 1 + s->size[l] + s->size[r];
	if (s->largest[l] > w)
		w = s->largest[l];
	if (s->largest[r] > w)
		w = s->largest[r];
	s->largest[t] = w;
}

/* First k elements of t to *a, the others to *b. */
static void
split(Sequence *s, uint32_t t, uint32_t k, uint32_t *a, uint32_t *b)
{
	if (t == 0)
		*a = *b = 0;
	else if (s->size[s->left[t]] >= k)
	{
		split(s, s->left[t], k, a, &s->left[t]);
		*b = t;
		refresh(s, t);
	}
	else
	{
		split(s, s->right[t], k - s->size[s->left[t]] - 1, &s->right[t], b);
		*a = t;
		refresh(s, t);
	}
}

static uint32_t
join(Sequence *s, uint32_t a, uint32_t b)
{
	if (a == 0 || b == 0)
		return a + b;
	if (priority(a) > priority(b))
	{
		s->right[a] = join(s, s->right[a], b);
		refresh(s, a);
		return a;
	}
	s->left[b] = join(s, a, s->left[b]);
	refresh(s, b);
	return b;
}

static uint64_t
weight_at(const Sequence *s, uint32_t k)
{
	uint32_t	t = s->root;

	HYB_ASSERT(k < s->size[t]);
	for (;;)
	{
		uint32_t	before = s->size[s->left[t]];

		if (k == before)
			return s->weight[t];
		if (k < before)
			t = s->left[t];
		else
		{
			k -= before + 1;
			t = s->right[t];
		}
	}
}

/* How many elements of t go up to the last one of at least weight w. */
static uint32_t
count_to_heavy(const Sequence *s, uint32_t t, uint64_t w)
{
	uint32_t	count = 0;

	while (t != 0 && s->largest[t] >= w)
	{
		uint32_t	before = s->size[s->left[t]];

		if (s->largest[s->right[t]] >= w)
		{
			count += before + 1;
			t = s->right[t];
		}
		else if (s->weight[t] >= w)
			return count + before + 1;
		else
			t = s->left[t];
	}
	return count;
}

static uint32_t
new_node(Sequence *s, uint64_t weight, uint32_t low, uint32_t high)
{
	uint32_t	t = ++s->used;

	/* a tree's number is larger than its children's */
	HYB_ASSERT(low < t && high < t);
	s->weight[t] = s->largest[t] = weight;
	s->left[t] = s->right[t] = 0;
	s->size[t] = 1;
	s->low[t] = low;
	s->high[t] = high;
	return t;
}

/*
 * Make elements k - 1 and k one tree, and put it after the last element
 * before them that is at least as heavy.  Returns its place.
 */
static uint32_t
combine_two(Sequence *s, uint32_t k)
{
	uint32_t	before;
	uint32_t	pair;
	uint32_t	after;
	uint32_t	low;
	uint32_t	high;
	uint32_t	node;
	uint32_t	between;
	uint32_t	place;

	HYB_ASSERT(k >= 1 && k < s->size[s->root]);
	split(s, s->root, k - 1, &before, &after);
	split(s, after, 2, &pair, &after);
	split(s, pair, 1, &low, &high);
	HYB_ASSERT(s->size[low] == 1 && s->size[high] == 1);
	node = new_node(s, s->weight[low] + s->weight[high], low, high);
	place = count_to_heavy(s, before, s->weight[node]);
	split(s, before, place, &before, &between);
	s->root = join(s, join(s, before, node), join(s, between, after));
	return place;
}

/*
 * Combine elements k - 1 and k, and restore the invariant to their left:
 * every element is heavier than the next but one.  Only elements left of the
 * new one are combined by that, so places are kept as distances from the end
 * of the sequence; `pending` has room for one per element.
 */
static void
combine(Sequence *s, uint32_t k, uint32_t *pending)
{
	uint32_t	npending = 0;
	uint32_t	place = combine_two(s, k);

	pending[npending++] = s->size[s->root] - place;
	while (npending > 0)
	{
		place = s->size[s->root] - pending[npending - 1];
		if (place >= 2 && weight_at(s, place - 2) <= weight_at(s, place))
		{
			place = combine_two(s, place - 1);
			pending[npending++] = s->size[s->root] - place;
		}
		else
			npending--;
	}
}

void
hyb_hope_optimal_lengths(const uint64_t *weights, uint32_t n,
						 uint8_t *lengths, const HybHopeMemory *memory)
{
	Sequence	seq;
	Sequence   *s = &seq;
	uint32_t	nodes = 2 * n;
	uint32_t   *words;
	uint32_t   *pending;
	uint8_t    *depth;

	if (n == 0)
		return;
	s->weight = memory->alloc(memory->context, nodes * 2 * sizeof(uint64_t));
	s->largest = s->weight + nodes;
	words = memory->alloc(memory->context, ((size_t) nodes * 5 + n) * sizeof(uint32_t));
	s->left = words;
	s->right = words + nodes;
	s->size = words + 2 * (size_t) nodes;
	s->low = words + 3 * (size_t) nodes;
	s->high = words + 4 * (size_t) nodes;
	pending = words + 5 * (size_t) nodes;
	depth = memory->alloc(memory->context, nodes);
	s->root = s->used = 0;
	s->size[0] = 0;
	s->weight[0] = s->largest[0] = 0;

	/*
	 * Trees are numbered after all symbols: a symbol's number is its place.
	 */
	for (uint32_t i = 0; i < n; i++)
		new_node(s, weights[i], 0, 0);
	for (uint32_t i = 0; i < n; i++)
	{
		s->root = join(s, s->root, i + 1);
		for (;;)
		{
			uint32_t	size = s->size[s->root];

			if (size < 3 ||
				weight_at(s, size - 3) > weight_at(s, size - 1))
				break;
			combine(s, size - 2, pending);
		}
	}
	while (s->size[s->root] > 1)
		combine(s, s->size[s->root] - 1, pending);

	/* A tree's number is larger than its children's. */
	HYB_ASSERT(s->used == 2 * n - 1);
	depth[s->used] = 0;
	for (uint32_t t = s->used; t > n; t--)
	{
		uint8_t		d = depth[t] < 255 ? (uint8_t) (depth[t] + 1) : 255;

		depth[s->low[t]] = d;
		depth[s->high[t]] = d;
	}
	memcpy(lengths, depth + 1, n);

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

/* Two packed codes (code << 5 | length) as one. */
#define PACKED_LEN(e)	((unsigned) (e) & 31)
#define PAIR(a, b, bits, len) \
	do { \
		unsigned la = PACKED_LEN(a), lb = PACKED_LEN(b); \
		bits = (uint64_t) ((a) >> 5) << lb | ((b) >> 5); \
		len = la + lb; \
	} while (0)

/* Write the last byte; bits of the whole code. */
static inline uint64_t
finish_code(const uint8_t *start, uint8_t *out, uint64_t word, unsigned fill)
{
	HYB_ASSERT(fill < 8);
	out[0] = (uint8_t) (word >> 56);
	return 8 * (uint64_t) (out - start) + fill;
}

static uint64_t
encode_single(const HybHope *hope, const uint8_t *p, const uint8_t *end,
			  uint8_t *out)
{
	const uint32_t *table = hope->by_one;
	const uint8_t *start = out;
	uint64_t	word = 0;
	unsigned	fill = 0;

	/* four codes nearly always fit the word; PUT leaves a bit of it free */
	for (; end - p > 4; p += 4)
	{
		uint64_t	first;
		uint64_t	second;
		unsigned	len1;
		unsigned	len2;

		PAIR(table[p[0]], table[p[1]], first, len1);
		PAIR(table[p[2]], table[p[3]], second, len2);
		if (__builtin_expect(len1 + len2 > 56, 0))
		{
			PUT(first << (64 - len1), len1);
			PUT(second << (64 - len2), len2);
			continue;
		}
		first = first << len2 | second;
		len1 += len2;
		PUT(first << (64 - len1), len1);
	}

	/*
	 * The last one to four, by no branch that depends on how many: those that
	 * are not there have codes of no bits.
	 */
	if (p < end)
	{
		size_t		left = (size_t) (end - p);
		uint32_t	b = table[p[left > 1]] & -(uint32_t) (left > 1);
		uint32_t	c = table[p[left > 2 ? 2 : 0]] & -(uint32_t) (left > 2);
		uint32_t	d = table[p[left - 1]] & -(uint32_t) (left > 3);
		uint64_t	first;
		uint64_t	second;
		unsigned	len1;
		unsigned	len2;

		PAIR(table[p[0]], b, first, len1);
		PAIR(c, d, second, len2);
		if (__builtin_expect(len1 + len2 > 56, 0))
		{
			PUT(first << (64 - len1), len1);
			if (len2 > 0)
				PUT(second << (64 - len2), len2);
		}
		else
		{
			first = first << len2 | second;
			len1 += len2;
			PUT(first << (64 - len1), len1);
		}
	}
	return finish_code(start, out, word, fill);
}

static uint64_t
encode_double(const HybHope *hope, const uint8_t *p, const uint8_t *end,
			  uint8_t *out)
{
	const uint32_t *table = hope->by_two;
	const uint8_t *start = out;
	uint64_t	word = 0;
	unsigned	fill = 0;

	for (; end - p > 4; p += 4)
	{
		uint32_t	a = table[hyb_load16(p)];
		uint32_t	b = table[hyb_load16(p + 2)];
		uint64_t	bits;
		unsigned	len;

		PAIR(a, b, bits, len);
		PUT(bits << (64 - len), len);
	}
	if (p < end)
	{
		/* the last one to four, as above */
		size_t		left = (size_t) (end - p);
		uint32_t	first = left > 1 ? (uint32_t) p[left > 1] << 8 : HYB_HOPE_LAST;
		uint32_t	second = left > 3 ? (uint32_t) p[left - 1] << 8 : HYB_HOPE_LAST;
		uint32_t	b = table[p[left > 2 ? 2 : 0] + second] & -(uint32_t) (left > 2);
		uint64_t	bits;
		unsigned	len;

		PAIR(table[p[0] + first], b, bits, len);
		PUT(bits << (64 - len), len);
	}
	return finish_code(start, out, word, fill);
}

/* Symbols from *at on, until one ends at `stop` or beyond; *at is moved there. */
HYB_ALWAYS_INLINE uint64_t
encode_trie_with(const HybHope *hope, const uint8_t **at, const uint8_t *stop,
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
	return finish_code(start, out, word, fill);
}

#ifdef HYB_HOPE_POPCNT
__attribute__((target("popcnt")))
static uint64_t
encode_trie_popcnt(const HybHope *hope, const uint8_t **at,
				   const uint8_t *stop, const uint8_t *end, uint8_t *out)
{
	return encode_trie_with(hope, at, stop, end, out, true);
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

	/* symbols of one and two bytes end at `stop` */
	*done = (size_t) (stop - key);
	if (hope->scheme == HYB_HOPE_DOUBLE_CHAR)
		return encode_double(hope, key, stop, out);
	if (hope->scheme == HYB_HOPE_SINGLE_CHAR)
		return encode_single(hope, key, stop, out);
#ifdef HYB_HOPE_POPCNT
	if (hope->popcnt)
		bits = encode_trie_popcnt(hope, &at, stop, end, out);
	else
#endif
		bits = encode_trie_with(hope, &at, stop, end, out, false);
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
			uint8_t		space[2];
			const uint8_t *symbol;
			unsigned	symlen;

			i = find_code(hope, head, d->len == 0 ? d->bytes : HYB_HOPE_NONE);
			if (i == HYB_HOPE_NONE)
				break;
			symlen = hyb_hope_symbol(hope, i, space, &symbol);
			HYB_ASSERT(symlen >= 1 && symlen <= hope->longest_symbol);
			memcpy(out, symbol, symlen);
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
