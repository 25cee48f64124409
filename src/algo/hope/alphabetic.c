/*
 * alphabetic.c
 *		Codes for an ordered set of symbols: of least average length (optimal
 *		alphabetic trees), or of one length.
 *
 * Lengths are those of a Hu-Tucker code, found by the algorithm of Garsia and
 * Wachs (SIAM J. Comput. 6, 1977; Knuth, TAOCP 3, 6.2.2, algorithm G).  The
 * working sequence is kept in a treap whose nodes know their subtree's
 * largest weight, so each of the n - 1 combinations takes O(log n) time.
 */
#include "algo/hope/internal.h"

/*
 * The working sequence.  A node stands for a tree over a run of symbols and
 * is numbered as that tree is; 0 is no node.
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
