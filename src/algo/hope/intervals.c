/*
 * intervals.c
 *		Cutting the axis of all strings into intervals with common prefixes, and
 *		finding the interval of a string.
 *
 * The strings that start with a pattern form an interval, and two of these are
 * disjoint or one contains the other.  So a sweep over the sorted patterns, with a
 * stack of those that the sweep is inside of, gives all bounds in order.
 *
 * A trie over the lower bounds finds intervals.  The first two bytes are looked up in
 * an array.  From then on each node has a bitmap of the bytes that its strings go on
 * with.  A byte's rank in it, and whether it is there, give the place of the next
 * step.  A path ends at the value that the lookup is for, so nothing else is read.
 */
#include "algo/hope/internal.h"

/* ---- intervals ---- */

static int
compare_bounds(const uint8_t *a, uint32_t alen, const uint8_t *b, uint32_t blen)
{
	int			c = memcmp(a, b, alen < blen ? alen : blen);

	return c != 0 ? c : (alen > blen) - (alen < blen);
}

int
hyb_hope_pattern_compare(const void *a, const void *b)
{
	const HybHopePattern *pa = a;
	const HybHopePattern *pb = b;

	return compare_bounds(pa->bytes, pa->len, pb->bytes, pb->len);
}

static void
add_bound(HybHopeIntervals *iv, const uint8_t *bytes, uint32_t len)
{
	uint32_t	start = iv->off[iv->n];

	/* bounds come in order */
	HYB_ASSERT(iv->n == 0 ||
			   compare_bounds(iv->bytes + iv->off[iv->n - 1],
							  start - iv->off[iv->n - 1], bytes, len) <= 0);
	if (iv->n > 0 &&
		compare_bounds(iv->bytes + iv->off[iv->n - 1],
					   start - iv->off[iv->n - 1], bytes, len) == 0)
		return;
	memcpy(iv->bytes + start, bytes, len);
	iv->n++;
	iv->off[iv->n] = start + len;
}

/*
 * The least string above all that start with the pattern; length 0 if there
 * is none.
 */
static void
pattern_end(const HybHopePattern *pattern, HybHopePattern *end)
{
	*end = *pattern;
	while (end->len > 0 && end->bytes[end->len - 1] == 0xFF)
		end->len--;
	if (end->len > 0)
		end->bytes[end->len - 1]++;
}

void
hyb_hope_make_intervals(HybHopeIntervals *iv, const HybHopePattern *patterns,
						uint32_t n, const HybHopeMemory *memory)
{
	HybHopePattern open[HYB_HOPE_MAX_SYMBOL];
	int			nopen = 0;
	size_t		total = 0;

	for (uint32_t i = 0; i < n; i++)
		total += patterns[i].len;
	iv->n = 0;
	iv->bytes = memory->alloc(memory->context, 2 * total + 16);
	iv->off = memory->alloc(memory->context, (2 * (size_t) n + 1) * sizeof(uint32_t));
	iv->symlen = memory->alloc(memory->context, 2 * (size_t) n + 1);
	iv->off[0] = 0;

	for (uint32_t i = 0; i <= n; i++)
	{
		while (nopen > 0 &&
			   (i == n ||
				hyb_hope_pattern_compare(&open[nopen - 1], &patterns[i]) <= 0))
		{
			nopen--;
			add_bound(iv, open[nopen].bytes, open[nopen].len);
		}
		if (i < n)
		{
			HYB_ASSERT(i == 0 ||
					   hyb_hope_pattern_compare(&patterns[i - 1], &patterns[i]) < 0);
			HYB_ASSERT(nopen < HYB_HOPE_MAX_SYMBOL);
			add_bound(iv, patterns[i].bytes, patterns[i].len);

			/* Patterns that end together end once. */
			pattern_end(&patterns[i], &open[nopen]);
			if (open[nopen].len > 0 &&
				(nopen == 0 ||
				 hyb_hope_pattern_compare(&open[nopen - 1], &open[nopen]) != 0))
				nopen++;
		}
	}
	HYB_ASSERT(iv->n <= 2 * n && iv->off[iv->n] <= 2 * total);
	memset(iv->bytes + iv->off[iv->n], 0, 16);
	(void) hyb_hope_make_symbols(iv);
}

bool
hyb_hope_make_symbols(HybHopeIntervals *iv)
{
	for (uint32_t i = 0; i < iv->n; i++)
	{
		const uint8_t *low = iv->bytes + iv->off[i];
		uint32_t	lowlen = iv->off[i + 1] - iv->off[i];
		uint32_t	len;

		if (i + 1 == iv->n)
		{
			/* up to the end of the axis */
			for (len = 0; len < lowlen && low[len] == 0xFF;)
				len++;
		}
		else
		{
			const uint8_t *high = iv->bytes + iv->off[i + 1];
			uint32_t	highlen = iv->off[i + 2] - iv->off[i + 1];

			len = hyb_common_prefix(low, high,
									lowlen < highlen ? lowlen : highlen);
			if (len == highlen || (len < lowlen && low[len] > high[len]))
				return false;
			if (len < lowlen && highlen == len + 1 &&
				high[len] == low[len] + 1)
			{
				len++;
				while (len < lowlen && low[len] == 0xFF)
					len++;
			}
		}
		if (len == 0 || len > HYB_HOPE_MAX_SYMBOL)
			return false;
		iv->symlen[i] = (uint8_t) len;
	}
	return true;
}

void
hyb_hope_free_intervals(HybHopeIntervals *iv, const HybHopeMemory *memory)
{
	memory->release(memory->context, iv->symlen);
	memory->release(memory->context, iv->off);
	memory->release(memory->context, iv->bytes);
	memset(iv, 0, sizeof(*iv));
}

/* ---- the trie ---- */

typedef struct TrieBuild
{
	HybHopeTrie *trie;
	const HybHopeIntervals *iv;
	const HybHopeStep *values;
} TrieBuild;

static inline uint32_t
bound_len(const HybHopeIntervals *iv, uint32_t i)
{
	return iv->off[i + 1] - iv->off[i];
}

static inline uint8_t
bound_byte(const HybHopeIntervals *iv, uint32_t i, uint32_t at)
{
	return iv->bytes[iv->off[i] + at];
}

/* End of the run of bounds from i on, before end, that agree at this depth. */
static uint32_t
run_end(const HybHopeIntervals *iv, uint32_t i, uint32_t end, uint32_t depth)
{
	uint8_t		c = bound_byte(iv, i, depth);

	while (++i < end && bound_byte(iv, i, depth) == c)
		;
	return i;
}

static inline HybHopeStep
interval_step(const TrieBuild *build, uint32_t i)
{
	HYB_ASSERT(i < build->iv->n);
	return build->values != NULL ? build->values[i] : (HybHopeStep) i << 1;
}

/*
 * A node for the bounds [from, to), which have their first depth bytes in
 * common.  Depth is at most HYB_HOPE_MAX_SYMBOL.
 */
static HybHopeStep
make_node(TrieBuild *build, uint32_t from, uint32_t to, uint32_t depth)
{
	HybHopeTrie *trie = build->trie;
	const HybHopeIntervals *iv = build->iv;
	uint32_t	self = trie->nnodes++;
	HybHopeNode *node = &trie->nodes[self];
	HybHopeStep *steps = &trie->steps[trie->nsteps];
	uint32_t	i = from;

	HYB_ASSERT(from < to && to <= iv->n && depth <= HYB_HOPE_MAX_SYMBOL);
	memset(node, 0, sizeof(*node));
	if (bound_len(iv, i) == depth)
		i++;

	/* This node's steps first: those of others follow. */
	for (uint32_t j = i; j < to; j = run_end(iv, j, to, depth))
	{
		uint8_t		c = bound_byte(iv, j, depth);

		node->word[c >> 6].bits |= UINT64_C(1) << (c & 63);
	}
	for (int w = 0; w < 4; w++)
	{
		node->word[w].steps = trie->nsteps;
		trie->nsteps += 2 * hyb_popcount64(node->word[w].bits);
	}
	trie->nsteps++;
	while (i < to)
	{
		uint32_t	end = run_end(iv, i, to, depth);

		*steps++ = interval_step(build, i - 1);
		if (end - i > 1 || bound_len(iv, i) > depth + 1)
			*steps++ = make_node(build, i, end, depth + 1);
		else
			*steps++ = interval_step(build, i);
		i = end;
	}
	*steps = interval_step(build, to - 1);
	HYB_ASSERT(steps < trie->steps + trie->nsteps);
	return (HybHopeStep) self << 1 | 1;
}

/*
 * The number of nodes, those strings of at least two bytes that bounds go on
 * from, and of steps.
 */
static void
count_trie_nodes(const HybHopeIntervals *iv, size_t *nodes, size_t *steps)
{
	*nodes = *steps = 0;
	for (uint32_t b = 1; b < iv->n; b++)
	{
		uint32_t	len = bound_len(iv, b);
		uint32_t	before = bound_len(iv, b - 1);
		uint32_t	common = hyb_common_prefix(iv->bytes + iv->off[b],
											   iv->bytes + iv->off[b - 1],
											   len < before ? len : before);
		uint32_t	known = common < 2 ? 2 : common;

		if (len > known)
			*steps += 2 * (len - known);

		/* what is common is a node by now, unless the bound before ends there */
		known = common < before ? common + 1 : common;
		if (known < 2)
			known = 2;
		if (len > known)
		{
			*nodes += len - known;
			*steps += len - known;
		}
	}
}

void
hyb_hope_make_trie(HybHopeTrie *trie, const HybHopeIntervals *iv,
				   const HybHopeStep *values, const HybHopeMemory *memory)
{
	TrieBuild	build = {trie, iv, values};
	size_t		nodes;
	size_t		steps;
	uint32_t	i = 0;

	count_trie_nodes(iv, &nodes, &steps);
	trie->nnodes = trie->nsteps = 0;
	trie->two = memory->alloc(memory->context, 65536 * sizeof(HybHopeStep));
	trie->node_memory = memory->alloc(memory->context,
									  (nodes + 1) * sizeof(HybHopeNode));
	trie->nodes = (HybHopeNode *) (((uintptr_t) trie->node_memory + 63) &
								   ~(uintptr_t) 63);
	trie->steps = memory->alloc(memory->context,
								(steps + 1) * sizeof(HybHopeStep));

	for (uint32_t c = 0; c < 256; c++)
	{
		uint32_t	end = run_end(iv, i, iv->n, 0);
		uint32_t	last = i++;

		trie->one[c] = interval_step(&build, last);
		for (uint32_t d = 0; d < 256; d++)
		{
			HybHopeStep step;

			if (i < end && bound_byte(iv, i, 1) == d)
			{
				uint32_t	stop = run_end(iv, i, end, 1);

				if (stop - i > 1 || bound_len(iv, i) > 2)
					step = make_node(&build, i, stop, 2);
				else
					step = interval_step(&build, i);
				last = stop - 1;
				i = stop;
			}
			else
				step = interval_step(&build, last);
			trie->two[c | (d << 8)] = step;
		}
	}
	/* every bound was passed, and what was counted was made */
	HYB_ASSERT(i == iv->n);
	HYB_ASSERT(trie->nnodes <= nodes && trie->nsteps <= steps + 1);
}

void
hyb_hope_free_trie(HybHopeTrie *trie, const HybHopeMemory *memory)
{
	memory->release(memory->context, trie->two);
	memory->release(memory->context, trie->node_memory);
	memory->release(memory->context, trie->steps);
	memset(trie, 0, sizeof(*trie));
}
