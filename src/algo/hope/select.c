/*
 * select.c
 *		Symbol selection: which runs of bytes get intervals of their own, and
 *		how often each interval will be used.
 *
 * The schemes with patterns differ in how long these may be, and in what a
 * code costs.  They start from single bytes and take turns in encoding the
 * sample with the patterns at hand, adding the concatenations of neighbouring
 * symbols that would save most, and dropping the patterns that save least.
 * So a pattern is judged by how the sample is really cut up, and not, as in
 * the paper, by how often it occurs, be it inside of others.
 *
 * What was seen a few times in a sample will be seen less often outside of it.  So
 * the counts that patterns are judged by are discounted (absolute discounting, as in
 * Ney, Essen and Kneser, Computer Speech and Language 8, 1994).
 */
#include "algo/hope/internal.h"

#include <math.h>
#include <stdlib.h>

/* Weights are integers: this much for an occurrence */
#define UNIT		64

/* Taken off each pattern's count */
#define DISCOUNT	0.75

/* What an interval of these schemes weighs without any occurrence in the sample */
#define UNSEEN		6

/* A pattern has to save this many bits in the sample. */
#define LEAST_SAVING	8.0

/* Turns of adding and dropping, and patterns added in each (of the budget) */
#define TURNS		8
#define GROWTH		0.35

/* ---- fixed-length intervals ---- */

/* Single-Char: every byte; Double-Char: that, and every pair behind it. */
void
hyb_hope_fixed_intervals(HybHopeScheme scheme, HybHopeIntervals *iv,
						 const HybHopeMemory *memory)
{
	uint32_t	pairs = scheme == HYB_HOPE_DOUBLE_CHAR ? 256 : 0;
	uint32_t	n = 256 * (1 + pairs);
	uint8_t    *p = iv->bytes = memory->alloc(memory->context, 2 * (size_t) n + 16);

	iv->n = n;
	iv->off = memory->alloc(memory->context, ((size_t) n + 1) * sizeof(uint32_t));
	iv->symlen = memory->alloc(memory->context, n);
	for (uint32_t i = 0; i < n; i++)
	{
		uint32_t	second = i % (1 + pairs);

		iv->off[i] = (uint32_t) (p - iv->bytes);
		*p++ = (uint8_t) (i / (1 + pairs));
		if (second > 0)
			*p++ = (uint8_t) (second - 1);
		iv->symlen[i] = second > 0 ? 2 : 1;
	}
	iv->off[n] = (uint32_t) (p - iv->bytes);
	memset(p, 0, 16);
}

/*
 * Symbols at their places are what is encoded; pairs at odd places tell of pairs
 * that the sample lacks at even ones.
 */
static void
count_fixed(HybHopeScheme scheme, const HybHopeSample *sample, uint32_t n,
			uint64_t *weights)
{
	for (uint32_t i = 0; i < n; i++)
		weights[i] = 1;
	for (uint32_t k = 0; k < sample->n; k++)
	{
		const uint8_t *p = sample->bytes + sample->off[k];
		uint32_t	len = sample->off[k + 1] - sample->off[k];

		for (uint32_t j = 0; j < len; j++)
		{
			bool		last = j + 1 == len;

			if (scheme == HYB_HOPE_SINGLE_CHAR)
				weights[p[j]] += UNIT;
			else
				weights[p[j] * 257 + (last ? 0 : 1 + p[j + 1])] +=
					j % 2 == 0 ? UNIT : last ? UNIT / 64 : UNIT / 8;
		}
	}
}

/* ---- patterns ---- */

/* A run of bytes that may become a pattern. */
typedef struct HopeCandidate
{
	const uint8_t *bytes;		/* NULL: empty place of the hash table */
	uint32_t	len;
	uint32_t	count;
	double		gain;			/* first the bits that it takes as it is */
} HopeCandidate;

typedef struct Selector
{
	const HybHopeMemory *memory;
	const HybHopeSample *sample;
	HybHopeScheme scheme;
	uint32_t	longest;		/* bytes of a pattern */
	uint32_t	budget;			/* patterns of more than one byte */

	HybHopePattern *patterns;	/* sorted; the single bytes are among them */
	uint32_t	npatterns;
	uint32_t	room;

	HybHopeIntervals iv;
	HybHopeTrie trie;
	uint32_t   *counts;			/* by interval: occurrences in the sample */
	double	   *cost;			/* by interval: bits of a code, about */
	uint64_t	symbols;		/* in the sample */

	/* by pattern */
	uint32_t   *usage;
	uint32_t   *parent;			/* longest other pattern that it starts with */

	HopeCandidate *table;		/* hash table of a power of two places */
	uint32_t	places;
	uint32_t	used;
} Selector;

static void *
get_memory(Selector *s, size_t size)
{
	return s->memory->alloc(s->memory->context, size);
}

static void
release(Selector *s, void *ptr)
{
	s->memory->release(s->memory->context, ptr);
}

static uint64_t
hash_bytes(const uint8_t *p, uint32_t len)
{
	uint64_t	h = len;

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ p[i]) * UINT64_C(0x9E3779B97F4A7C15);
	return h ^ (h >> 29);
}

static void table_start(Selector *s, uint32_t places);

static HopeCandidate *
table_find(Selector *s, const uint8_t *bytes, uint32_t len)
{
	uint64_t	h = hash_bytes(bytes, len);
	HopeCandidate *c;

	for (;; h++)
	{
		c = &s->table[h & (s->places - 1)];
		if (c->bytes == NULL)
			break;
		if (c->len == len && memcmp(c->bytes, bytes, len) == 0)
			return c;
	}
	if (s->used >= s->places / 4 * 3)
	{
		HopeCandidate *old = s->table;
		uint32_t	n = s->places;

		table_start(s, 2 * n);
		for (uint32_t i = 0; i < n; i++)
			if (old[i].bytes != NULL)
				*table_find(s, old[i].bytes, old[i].len) = old[i];
		release(s, old);
		return table_find(s, bytes, len);
	}
	c->bytes = bytes;
	c->len = len;
	c->count = 0;
	c->gain = 0;
	s->used++;
	return c;
}

static void
table_start(Selector *s, uint32_t places)
{
	s->table = get_memory(s, places * sizeof(HopeCandidate));
	for (uint32_t i = 0; i < places; i++)
		s->table[i].bytes = NULL;
	s->places = places;
	s->used = 0;
}

static int
compare_gain(const void *a, const void *b)
{
	const HopeCandidate *ca = a;
	const HopeCandidate *cb = b;
	uint32_t	common = ca->len < cb->len ? ca->len : cb->len;
	int			c;

	if (ca->gain != cb->gain)
		return ca->gain > cb->gain ? -1 : 1;
	c = memcmp(ca->bytes, cb->bytes, common);
	return c != 0 ? c : (ca->len > cb->len) - (ca->len < cb->len);
}

/*
 * Of the candidates in the hash table, whose gain is known, make the best
 * ones patterns, at most `most`.
 */
static uint32_t
add_best(Selector *s, uint32_t most)
{
	uint32_t	n = 0;

	for (uint32_t i = 0; i < s->places; i++)
		if (s->table[i].bytes != NULL && s->table[i].gain > 0)
			s->table[n++] = s->table[i];
	qsort(s->table, n, sizeof(HopeCandidate), compare_gain);
	if (n > most)
		n = most;
	if (n > s->room - s->npatterns)
		n = s->room - s->npatterns;
	for (uint32_t i = 0; i < n; i++)
	{
		HybHopePattern *pattern = &s->patterns[s->npatterns++];

		pattern->len = (uint8_t) s->table[i].len;
		memcpy(pattern->bytes, s->table[i].bytes, pattern->len);
	}
	qsort(s->patterns, s->npatterns, sizeof(HybHopePattern),
		  hyb_hope_pattern_compare);
	return n;
}

static void
drop_intervals(Selector *s)
{
	release(s, s->cost);
	release(s, s->counts);
	hyb_hope_free_trie(&s->trie, s->memory);
	hyb_hope_free_intervals(&s->iv, s->memory);
}

/* Make the patterns' intervals, and encode the sample with them. */
static void
encode_sample(Selector *s)
{
	hyb_hope_make_intervals(&s->iv, s->patterns, s->npatterns, s->memory);
	hyb_hope_make_trie(&s->trie, &s->iv, NULL, s->memory);
	s->counts = get_memory(s, s->iv.n * sizeof(uint32_t));
	s->cost = get_memory(s, s->iv.n * sizeof(double));
	memset(s->counts, 0, s->iv.n * sizeof(uint32_t));
	s->symbols = 0;
	for (uint32_t k = 0; k < s->sample->n; k++)
	{
		const uint8_t *p = s->sample->bytes + s->sample->off[k];
		const uint8_t *end = s->sample->bytes + s->sample->off[k + 1];

		while (p < end)
		{
			uint32_t	i = hyb_hope_find(&s->trie, p, (size_t) (end - p));

			s->counts[i]++;
			s->symbols++;
			p += s->iv.symlen[i];
		}
	}
	for (uint32_t i = 0; i < s->iv.n; i++)
		s->cost[i] = s->scheme == HYB_HOPE_ALM ? 1 :
			log2(((double) s->symbols + 1) / (s->counts[i] + 0.5));
}

/*
 * Which patterns are used how often?  Intervals and patterns are swept in
 * order; `open` are the patterns that an interval lies in.
 */
static void
count_usage(Selector *s)
{
	uint32_t	open[HYB_HOPE_MAX_SYMBOL + 1];
	int			nopen = 0;
	uint32_t	next = 0;

	memset(s->usage, 0, s->npatterns * sizeof(uint32_t));
	for (uint32_t i = 0; i < s->iv.n; i++)
	{
		const uint8_t *low = s->iv.bytes + s->iv.off[i];
		uint32_t	len = s->iv.off[i + 1] - s->iv.off[i];

		for (;;)
		{
			const HybHopePattern *top;

			while (nopen > 0)
			{
				top = &s->patterns[open[nopen - 1]];
				if (top->len <= len && memcmp(top->bytes, low, top->len) == 0)
					break;
				nopen--;
			}
			if (next == s->npatterns)
				break;
			top = &s->patterns[next];
			if (top->len > len || memcmp(top->bytes, low, top->len) != 0)
				break;
			s->parent[next] = nopen > 0 ? open[nopen - 1] : next;
			open[nopen++] = next++;
		}
		if (nopen > 0 && s->patterns[open[nopen - 1]].len == s->iv.symlen[i])
			s->usage[open[nopen - 1]] += s->counts[i];
	}
}

static double
pattern_cost(const Selector *s, uint32_t k)
{
	if (s->scheme == HYB_HOPE_ALM)
		return 1;
	return log2(((double) s->symbols + 1) / (s->usage[k] + 0.5));
}

/*
 * Intervals that the bytes after the pattern's parent are encoded by; returns
 * how many.
 */
static int
rest_intervals(const Selector *s, uint32_t k, uint32_t *intervals)
{
	const HybHopePattern *pattern = &s->patterns[k];
	uint32_t	at = s->patterns[s->parent[k]].len;
	int			n = 0;

	while (at < pattern->len)
	{
		uint32_t	i = hyb_hope_find(&s->trie, pattern->bytes + at,
									  pattern->len - at);

		intervals[n++] = i;
		at += s->iv.symlen[i];
	}
	return n;
}

typedef struct Saving
{
	double		bits;
	uint32_t	pattern;
} Saving;

static int
compare_saving(const void *a, const void *b)
{
	const Saving *sa = a;
	const Saving *sb = b;

	if (sa->bits != sb->bits)
		return sa->bits > sb->bits ? -1 : 1;
	return (sa->pattern > sb->pattern) - (sa->pattern < sb->pattern);
}

/* Keep the `most` patterns of several bytes that save most bits. */
static void
drop_worst(Selector *s, uint32_t most)
{
	Saving	   *savings = get_memory(s, s->npatterns * sizeof(Saving));
	uint32_t	rest[HYB_HOPE_MAX_SYMBOL];
	uint32_t	n = 0;
	uint32_t	kept = 0;

	count_usage(s);
	for (uint32_t k = 0; k < s->npatterns; k++)
	{
		double		bits;
		int			nrest;

		if (s->patterns[k].len == 1)
			continue;
		nrest = rest_intervals(s, k, rest);
		bits = pattern_cost(s, s->parent[k]) - pattern_cost(s, k);
		for (int r = 0; r < nrest; r++)
			bits += s->cost[rest[r]];
		savings[n].bits = bits * (s->usage[k] - DISCOUNT);
		savings[n].pattern = k;
		n++;
	}
	qsort(savings, n, sizeof(Saving), compare_saving);
	for (uint32_t i = 0; i < n; i++)
		if (i >= most || savings[i].bits <= LEAST_SAVING)
			s->patterns[savings[i].pattern].len = 0;
	for (uint32_t k = 0; k < s->npatterns; k++)
		if (s->patterns[k].len > 0)
			s->patterns[kept++] = s->patterns[k];
	s->npatterns = kept;
	release(s, savings);
}

/* Add concatenations of neighbouring symbols, at most `most`. */
static uint32_t
add_concatenations(Selector *s, uint32_t most)
{
	uint32_t	added;

	table_start(s, 1024);
	for (uint32_t k = 0; k < s->sample->n; k++)
	{
		const uint8_t *p = s->sample->bytes + s->sample->off[k];
		const uint8_t *end = s->sample->bytes + s->sample->off[k + 1];
		uint32_t	before = 0;
		uint32_t	beforelen = 0;

		while (p < end)
		{
			uint32_t	i = hyb_hope_find(&s->trie, p, (size_t) (end - p));
			uint32_t	len = s->iv.symlen[i];

			if (beforelen > 0 && beforelen < s->longest)
			{
				/* as much of the second symbol as a pattern can hold */
				uint32_t	more = len < s->longest - beforelen ?
					len : s->longest - beforelen;
				HopeCandidate *c = table_find(s, p - beforelen, beforelen + more);

				c->count++;
				c->gain += s->cost[before] + s->cost[i] * more / len;
			}
			before = i;
			beforelen = len;
			p += len;
		}
	}
	for (uint32_t i = 0; i < s->places; i++)
	{
		HopeCandidate *c = &s->table[i];

		if (c->bytes == NULL)
			continue;
		if (c->count < 2)
			c->gain = 0;
		else
		{
			double		own = s->scheme == HYB_HOPE_ALM ? 1 :
				log2(((double) s->symbols + 1) / (c->count - 0.5));

			c->gain = (c->gain / c->count - own) * (c->count - DISCOUNT);
			if (c->gain < LEAST_SAVING)
				c->gain = 0;
			else
			{
				/* not those that are patterns already */
				HybHopePattern pattern;

				pattern.len = (uint8_t) c->len;
				memcpy(pattern.bytes, c->bytes, c->len);
				if (bsearch(&pattern, s->patterns, s->npatterns,
							sizeof(HybHopePattern),
							hyb_hope_pattern_compare) != NULL)
					c->gain = 0;
			}
		}
	}
	added = add_best(s, most);
	release(s, s->table);
	return added;
}

void
hyb_hope_select(HybHopeScheme scheme, uint32_t entries,
				const HybHopeSample *sample, HybHopeIntervals *intervals,
				uint64_t **weights, const HybHopeMemory *memory)
{
	Selector	selector = {0};
	Selector   *s = &selector;

	if (hyb_hope_is_fixed(scheme))
	{
		hyb_hope_fixed_intervals(scheme, intervals, memory);
		*weights = memory->alloc(memory->context,
								 ((size_t) intervals->n + 1) * sizeof(uint64_t));
		count_fixed(scheme, sample, intervals->n, *weights + 1);
		return;
	}
	s->memory = memory;
	s->sample = sample;
	s->scheme = scheme;
	s->longest = scheme == HYB_HOPE_3_GRAMS ? 3 :
		scheme == HYB_HOPE_4_GRAMS ? 4 : HYB_HOPE_MAX_SYMBOL;
	s->budget = (entries - 256) / 2;
	s->room = 256 + 2 * s->budget;
	s->patterns = get_memory(s, s->room * sizeof(HybHopePattern));
	s->usage = get_memory(s, s->room * sizeof(uint32_t));
	s->parent = get_memory(s, s->room * sizeof(uint32_t));
	for (int c = 0; c < 256; c++)
	{
		s->patterns[c].len = 1;
		s->patterns[c].bytes[0] = (uint8_t) c;
	}
	s->npatterns = 256;

	for (int turn = 0; turn < TURNS; turn++)
	{
		encode_sample(s);
		add_concatenations(s, (uint32_t) (s->budget * GROWTH) + 16);
		drop_intervals(s);
		encode_sample(s);
		drop_worst(s, s->budget);
		drop_intervals(s);
	}
	encode_sample(s);
	*weights = get_memory(s, ((size_t) s->iv.n + 1) * sizeof(uint64_t));
	for (uint32_t i = 0; i < s->iv.n; i++)
		(*weights)[i + 1] = (uint64_t) s->counts[i] * UNIT + UNSEEN;
	*intervals = s->iv;
	release(s, s->cost);
	release(s, s->counts);
	hyb_hope_free_trie(&s->trie, memory);
	release(s, s->parent);
	release(s, s->usage);
	release(s, s->patterns);
}
