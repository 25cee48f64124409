/*
 * filters.c
 *		Filters for points at the sizes that leaves have, without a server: how
 *		small they get, how often they are wrong, what they cost.
 *
 *	filters [KEYS...]
 *
 * The filter that leaves have (algo/ribbon.h) beside these:
 *
 * Binary fuse filters (Graf and Lemire, JEA 2022) of three and of four places a
 * key, with fingerprints of 8 bits.  One is sized by the authors' formulas, one is
 * as small as possible: it has the fewest places, of all lengths of segments, for
 * which one of eight hash functions works.
 *
 * Ribbon filters of 8 bits (Dillinger et al., SEA 2022).  Standard ones have 32 and
 * 64 bits, and are as small as possible in the same sense.  Homogeneous ones have
 * the fewest places with less than 1.1 times the ideal rate of false positives on
 * average.
 *
 * Blocked Bloom filters (Putze et al., JEA 2009) with blocks of 512 bits.
 *
 * Every number is of 40 sets of random hashes.  Bits a key are of the whole
 * image, with 4 bytes of header.  Lines are those of 64 bytes that an absent
 * key's question touches, those of the header left out.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "algo/bits.h"
#include "algo/ribbon.h"

#define MAXKEYS		4600
#define MAXSLOTS	(2 * MAXKEYS + 1024)
#define SETS		40
#define ABSENT		20000
#define FUNCTIONS	8

typedef struct Filter
{
	uint32_t	nslots;			/* or blocks */
	uint32_t	segment;		/* fuse: places of a segment */
	uint32_t	function;
	int			arity;			/* fuse: places a key; Bloom: bits a key */
	int			width;			/* ribbon */
	uint64_t	words[MAXSLOTS];	/* ribbon: interleaved; Bloom: blocks */
	uint8_t		slots[MAXSLOTS];	/* fuse */
} Filter;

typedef struct Kind
{
	const char *name;
	bool		(*build) (Filter *filter, const uint64_t *hashes, uint32_t n, double size);
	bool		(*ask) (const Filter *filter, uint64_t hash);
	size_t		(*bytes) (const Filter *filter);
	int			arity;
	int			width;
	double		sizes[3];		/* from, step, to: places a key that are tried;
								 * step 0: `from` is what there is */
} Kind;

static uint64_t seed = UINT64_C(88172645463325252);
static uint64_t hashes[SETS][MAXKEYS];
static uint64_t absent[ABSENT];
static Filter filters[SETS];
static HybRibbonBuilder ribbon;
static uint8_t images[SETS][16384];
static size_t image_sizes[SETS];
static unsigned lines;			/* touched since it was set to 0 */
static uint64_t line_mask;
static bool counting;

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * UINT64_C(0x9E3779B97F4A7C15);
}

static inline void
touch(size_t byte)
{
	if (counting && (line_mask & UINT64_C(1) << byte / 64 % 64) == 0)
	{
		line_mask |= UINT64_C(1) << byte / 64 % 64;
		lines++;
	}
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

/* ---- binary fuse ---- */

static inline uint8_t
fuse_slots(const Filter *f, uint64_t hash, uint32_t *at)
{
	uint64_t	h = hyb_hash_mix(hash + (f->function + 1) * UINT64_C(0x9E3779B97F4A7C15));
	uint32_t	first = f->nslots - (f->arity - 1) * f->segment;
	uint32_t	base = (uint32_t) (((h >> 32) * first) >> 32);
	uint64_t	g = hyb_hash_mix(h + 1);

	at[0] = base;
	for (int i = 1; i < f->arity; i++)
		at[i] = (base + i * f->segment) ^ ((uint32_t) (g >> 13 * i) & (f->segment - 1));
	return (uint8_t) h;
}

static bool
fuse_peel(Filter *f, const uint64_t *keys, uint32_t n)
{
	static uint32_t count[MAXSLOTS];
	static uint32_t sum[MAXSLOTS];	/* of the keys' numbers */
	static uint32_t queue[MAXSLOTS];
	static uint32_t order[MAXKEYS];
	static uint32_t own[MAXKEYS];
	uint32_t	nqueue = 0;
	uint32_t	done = 0;
	uint32_t	at[4];

	memset(count, 0, f->nslots * sizeof(*count));
	memset(sum, 0, f->nslots * sizeof(*sum));
	for (uint32_t i = 0; i < n; i++)
	{
		fuse_slots(f, keys[i], at);
		for (int j = 0; j < f->arity; j++)
		{
			count[at[j]]++;
			sum[at[j]] ^= i;
		}
	}
	for (uint32_t s = 0; s < f->nslots; s++)
		if (count[s] == 1)
			queue[nqueue++] = s;
	while (nqueue > 0)
	{
		uint32_t	s = queue[--nqueue];
		uint32_t	key = sum[s];

		if (count[s] != 1)
			continue;
		order[done] = key;
		own[done++] = s;
		fuse_slots(f, keys[key], at);
		for (int j = 0; j < f->arity; j++)
		{
			sum[at[j]] ^= key;
			if (--count[at[j]] == 1)
				queue[nqueue++] = at[j];
		}
	}
	if (done < n)
		return false;
	memset(f->slots, 0, f->nslots);
	while (done-- > 0)
	{
		uint8_t		fingerprint = fuse_slots(f, keys[order[done]], at);

		for (int j = 0; j < f->arity; j++)
			if (at[j] != own[done])
				fingerprint ^= f->slots[at[j]];
		f->slots[own[done]] = fingerprint;
	}
	return true;
}

static bool
fuse_build(Filter *f, const uint64_t *keys, uint32_t n, double size)
{
	uint32_t	segments;

	if (size == 0)
	{
		double		factor = f->arity == 3 ? fmax(1.125, 0.875 + 0.25 * log(1e6) / log(n)) :
			fmax(1.075, 0.77 + 0.305 * log(6e5) / log(n));

		f->segment = 1u << (int) floor(f->arity == 3 ? log(n) / log(3.33) + 2.25 :
									   log(n) / log(2.91) - 0.5);
		segments = ((uint32_t) round(n * factor) + f->segment - 1) / f->segment;
		if (segments < (uint32_t) f->arity)
			segments = f->arity;
		f->nslots = segments * f->segment;
		for (f->function = 0; f->function < 100; f->function++)
			if (fuse_peel(f, keys, n))
				return true;
		return false;
	}
	for (f->segment = 4; f->segment <= 512; f->segment *= 2)
	{
		f->nslots = (uint32_t) (n * size) / f->segment * f->segment;
		if (f->nslots < f->arity * f->segment)
			break;
		for (f->function = 0; f->function < FUNCTIONS; f->function++)
			if (fuse_peel(f, keys, n))
				return true;
	}
	return false;
}

static bool
fuse_ask(const Filter *f, uint64_t hash)
{
	uint32_t	at[4];
	uint8_t		fingerprint = fuse_slots(f, hash, at);

	for (int i = 0; i < f->arity; i++)
	{
		fingerprint ^= f->slots[at[i]];
		touch(at[i]);
	}
	return fingerprint == 0;
}

static size_t
fuse_bytes(const Filter *f)
{
	return f->nslots;
}

/* ---- ribbon, 8 bits ---- */

static inline uint32_t
ribbon_row(const Filter *f, uint64_t hash, uint64_t *row, uint8_t *fingerprint)
{
	uint32_t	outside = f->width / 2 - 1;
	uint32_t	last = f->nslots - f->width;
	uint64_t	h = hyb_hash_mix(hash + (f->function + 1) * UINT64_C(0x9E3779B97F4A7C15));
	uint32_t	at = (uint32_t) (((h >> 32) * (last + 1 + 2 * outside)) >> 32);

	*fingerprint = (uint8_t) h;
	*row = hyb_hash_mix(h + 1) >> (64 - f->width) | 1;
	return at < outside ? 0 : at - outside > last ? last : at - outside;
}

static bool
ribbon_solve(Filter *f, const uint64_t *keys, uint32_t n, bool homogeneous)
{
	static uint64_t rows[MAXSLOTS];
	static uint8_t results[MAXSLOTS];
	uint64_t	window[8] = {0};

	memset(rows, 0, f->nslots * sizeof(*rows));
	memset(results, 0, f->nslots);
	for (uint32_t i = 0; i < n; i++)
	{
		uint64_t	row;
		uint8_t		result;
		uint32_t	s = ribbon_row(f, keys[i], &row, &result);

		if (homogeneous)
			result = 0;
		while (row != 0 && rows[s] != 0)
		{
			unsigned	zeroes;

			row ^= rows[s];
			result ^= results[s];
			if (row == 0)
				break;
			zeroes = (unsigned) __builtin_ctzll(row);
			row >>= zeroes;
			s += zeroes;
		}
		if (row != 0)
		{
			rows[s] = row;
			results[s] = result;
		}
		else if (result != 0)
			return false;
	}
	for (uint32_t s = f->nslots; s-- > 0;)
	{
		/* homogeneous: the trivial solution is of no use */
		uint8_t		result = homogeneous && rows[s] == 0 ? (uint8_t) next_random() : results[s];

		for (int b = 0; b < 8; b++)
			window[b] = window[b] << 1 |
				((uint64_t) __builtin_parityll(window[b] & rows[s] >> 1) ^ (result >> b & 1));
		if (s % 64 == 0)
			memcpy(f->words + s / 64 * 8, window, sizeof(window));
	}
	return true;
}

static bool
ribbon_build(Filter *f, const uint64_t *keys, uint32_t n, double size)
{
	f->nslots = ((uint32_t) (n * size) + 7) & ~7u;
	if (f->nslots < (uint32_t) f->width)
		f->nslots = f->width;
	for (f->function = 0; f->function < FUNCTIONS; f->function++)
		if (ribbon_solve(f, keys, n, false))
			return true;
	return false;
}

static bool
homogeneous_build(Filter *f, const uint64_t *keys, uint32_t n, double size)
{
	f->function = 0;
	f->nslots = ((uint32_t) (n * size) + 7) & ~7u;
	if (f->nslots < (uint32_t) f->width)
		f->nslots = f->width;
	return ribbon_solve(f, keys, n, true);
}

static inline bool
ask_words(const Filter *f, uint64_t hash, bool homogeneous)
{
	uint64_t	row;
	uint8_t		fingerprint;
	uint32_t	s = ribbon_row(f, hash, &row, &fingerprint);
	const uint64_t *words = f->words + s / 64 * 8;
	unsigned	shift = s % 64;
	uint64_t	low = row << shift;
	uint64_t	high = shift == 0 ? 0 : row >> (64 - shift);

	if (homogeneous)
		fingerprint = 0;
	for (int b = 0; b < 8; b++)
	{
		uint64_t	sum = words[b] & low;

		touch((s / 64 * 8 + b) * 8);
		if (high != 0)
		{
			sum ^= words[8 + b] & high;
			touch((s / 64 * 8 + 8 + b) * 8);
		}
		if ((uint64_t) __builtin_parityll(sum) != (fingerprint >> b & 1u))
			return false;
	}
	return true;
}

static bool
ribbon_ask(const Filter *f, uint64_t hash)
{
	return ask_words(f, hash, false);
}

static bool
homogeneous_ask(const Filter *f, uint64_t hash)
{
	return ask_words(f, hash, true);
}

static size_t
ribbon_bytes(const Filter *f)
{
	return f->nslots;
}

/* ---- blocked Bloom ---- */

static inline uint64_t *
bloom_block(const Filter *f, uint64_t hash)
{
	uint32_t	block = (uint32_t) (((hash >> 32) * f->nslots) >> 32);

	touch(block * 64);
	return (uint64_t *) f->words + block * 8;
}

#define BLOOM_BIT(g, i) ((uint32_t) ((g) >> 9 * (i)) & 511)

static bool
bloom_build(Filter *f, const uint64_t *keys, uint32_t n, double size)
{
	f->nslots = (uint32_t) ceil(n * size / 512);
	memset(f->words, 0, f->nslots * 64);
	for (uint32_t i = 0; i < n; i++)
		for (int j = 0; j < f->arity; j++)
		{
			uint32_t	bit = BLOOM_BIT(hyb_hash_mix(keys[i]), j);

			bloom_block(f, keys[i])[bit / 64] |= UINT64_C(1) << bit % 64;
		}
	return true;
}

static bool
bloom_ask(const Filter *f, uint64_t hash)
{
	const uint64_t *block = bloom_block(f, hash);
	uint64_t	g = hyb_hash_mix(hash);

	for (int j = 0; j < f->arity; j++)
		if ((block[BLOOM_BIT(g, j) / 64] >> BLOOM_BIT(g, j) % 64 & 1) == 0)
			return false;
	return true;
}

static size_t
bloom_bytes(const Filter *f)
{
	return f->nslots * 64;
}

/* ---- what leaves have ---- */

static bool
leaf_build(Filter *f, const uint64_t *keys, uint32_t n, double size)
{
	int			set = (int) (f - filters);

	image_sizes[set] = hyb_ribbon_build(&ribbon, keys, n, HYB_RIBBON_BITS);
	if (image_sizes[set] == 0)
		return false;
	hyb_ribbon_write(&ribbon, images[set]);
	return true;
}

static bool
leaf_ask(const Filter *f, uint64_t hash)
{
	int			set = (int) (f - filters);

	return hyb_ribbon_ask(images[set], image_sizes[set], hash) != HYB_ANSWER_NO;
}

static size_t
leaf_bytes(const Filter *f)
{
	return image_sizes[f - filters] - HYB_RIBBON_HEADER;
}

static const Kind kinds[] = {
	{"fuse 3, formula", fuse_build, fuse_ask, fuse_bytes, 3, 0, {0, 0, 0}},
	{"fuse 3, smallest", fuse_build, fuse_ask, fuse_bytes, 3, 0, {1.08, 0.01, 2}},
	{"fuse 4, formula", fuse_build, fuse_ask, fuse_bytes, 4, 0, {0, 0, 0}},
	{"fuse 4, smallest", fuse_build, fuse_ask, fuse_bytes, 4, 0, {1.02, 0.01, 2}},
	{"ribbon 32, 8 bits", ribbon_build, ribbon_ask, ribbon_bytes, 0, 32, {1, 0.005, 2}},
	{"ribbon 64, 8 bits", ribbon_build, ribbon_ask, ribbon_bytes, 0, 64, {1, 0.005, 2}},
	{"homogeneous 32", homogeneous_build, homogeneous_ask, ribbon_bytes, 0, 32, {1, 0.01, 2}},
	{"homogeneous 64", homogeneous_build, homogeneous_ask, ribbon_bytes, 0, 64, {1, 0.01, 2}},
	{"Bloom 8 bits", bloom_build, bloom_ask, bloom_bytes, 5, 0, {8, 0, 0}},
	{"Bloom 10 bits", bloom_build, bloom_ask, bloom_bytes, 6, 0, {10, 0, 0}},
	{"Bloom 12 bits", bloom_build, bloom_ask, bloom_bytes, 6, 0, {12, 0, 0}},
	{"leaf's", leaf_build, leaf_ask, leaf_bytes, 0, 0, {0, 0, 0}},
};

static double
positive_rate(const Kind *kind)
{
	unsigned	positives = 0;

	for (int set = 0; set < SETS; set++)
		for (int i = 0; i < ABSENT; i++)
			positives += kind->ask(&filters[set], absent[i]);
	return (double) positives / ((double) SETS * ABSENT);
}

/* All sets; returns ns a key. */
static double
build_all(const Kind *kind, uint32_t n, const double *sizes)
{
	double		start = now();

	for (int set = 0; set < SETS; set++)
		if (!kind->build(&filters[set], hashes[set], n, sizes[set]))
			abort();
	return (now() - start) / ((double) SETS * n);
}

static void
choose_sizes(const Kind *kind, uint32_t n, double *sizes)
{
	for (int set = 0; set < SETS; set++)
		sizes[set] = kind->sizes[0];
	if (kind->build == homogeneous_build)
	{
		do
		{
			build_all(kind, n, sizes);
			for (int set = 0; set < SETS; set++)
				sizes[set] += kind->sizes[1];
		} while (positive_rate(kind) > 1.1 / 256 && sizes[0] < kind->sizes[2]);
		for (int set = 0; set < SETS; set++)
			sizes[set] -= kind->sizes[1];
	}
	else if (kind->sizes[1] > 0)
		for (int set = 0; set < SETS; set++)
			while (!kind->build(&filters[set], hashes[set], n, sizes[set]))
				sizes[set] += kind->sizes[1];
}

static void
measure(const Kind *kind, uint32_t n)
{
	double		sizes[SETS];
	double		build_ns = 1e9;
	double		absent_ns = 1e9;
	double		present_ns = 1e9;
	double		bytes = 0;
	unsigned	found = 0;

	for (int set = 0; set < SETS; set++)
	{
		filters[set].arity = kind->arity;
		filters[set].width = kind->width;
	}
	choose_sizes(kind, n, sizes);
	for (int round = 0; round < 5; round++)
	{
		double		start;

		build_ns = fmin(build_ns, build_all(kind, n, sizes));
		start = now();
		for (int i = 0; i < ABSENT; i++)
			found += kind->ask(&filters[i % SETS], absent[i]);
		absent_ns = fmin(absent_ns, (now() - start) / ABSENT);
		start = now();
		for (int i = 0; i < ABSENT; i++)
			found += kind->ask(&filters[i % SETS], hashes[i % SETS][i / SETS % n]);
		present_ns = fmin(present_ns, (now() - start) / ABSENT);
	}
	for (int set = 0; set < SETS; set++)
	{
		bytes += (double) (kind->bytes(&filters[set]) + HYB_RIBBON_HEADER);
		for (uint32_t i = 0; i < n; i++)
			if (!kind->ask(&filters[set], hashes[set][i]))
				abort();
	}
	lines = 0;
	counting = true;
	for (int i = 0; i < ABSENT; i++)
	{
		line_mask = 0;
		found += kind->ask(&filters[i % SETS], absent[i]);
	}
	counting = false;
	printf("%5u  %-18s  %5.2f bits/key  %5.2f %%  build %6.1f ns/key  absent %5.1f ns  present %5.1f ns",
		   n, kind->name, bytes * 8 / ((double) SETS * n), positive_rate(kind) * 100,
		   build_ns, absent_ns, present_ns);
	if (kind->build != leaf_build)
		printf("  %4.2f lines", (double) lines / ABSENT);
	printf("\n");
	if (found == 0)
		abort();
}

int
main(int argc, char **argv)
{
	static const uint32_t usual[] = {100, 200, 400, 600, 900, 1400, 2000};
	int			nsizes = argc > 1 ? argc - 1 : (int) (sizeof(usual) / sizeof(*usual));

	for (int i = 0; i < ABSENT; i++)
		absent[i] = next_random();
	for (int i = 0; i < nsizes; i++)
	{
		uint32_t	n = argc > 1 ? (uint32_t) atoi(argv[i + 1]) : usual[i];

		if (n < 40 || n > MAXKEYS)
		{
			fprintf(stderr, "sets of 40 to %d keys\n", MAXKEYS);
			return 1;
		}
		for (int set = 0; set < SETS; set++)
			for (uint32_t k = 0; k < n; k++)
				hashes[set][k] = next_random();
		for (unsigned k = 0; k < sizeof(kinds) / sizeof(*kinds); k++)
			measure(&kinds[k], n);
	}
	return 0;
}
