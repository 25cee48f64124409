/*
 * ranges.c
 *		Range filters at the size that leaves have, without a server: how often
 *		they are wrong about empty ranges beside keys, and elsewhere.
 *
 *	ranges [KEYS]
 *
 * SuRF (algo/fst.h) and Grafite (algo/grafite.h) of leaves of 900 keys of 8
 * bytes, of which there are a hundred each:
 *
 *		random		64-bit numbers
 *		times		a timestamp in microseconds, a second apart on average
 *		numbers		1 to 10 apart
 *
 * Asked for are empty ranges in a leaf.  Beside a key they begin one behind it,
 * the correlated workload of Grafite's authors (SIGMOD 2024, section 6);
 * elsewhere they begin anywhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "algo/fst.h"
#include "algo/grafite.h"

#define LEAVES		100
#define MAXKEYS		8192
#define ASKED		200			/* ranges a leaf and kind */

static uint64_t seed = UINT64_C(88172645463325252);
static uint64_t numbers[MAXKEYS];
static uint32_t nkeys = 900;

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* Processor time, as the machine may do other things too. */
static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static void *
resize(void *old, size_t size)
{
	void	   *p = realloc(old, size > 0 ? size : 1);

	if (p == NULL)
		abort();
	return p;
}

static int
compare_numbers(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

typedef enum Keys
{
	RANDOM,
	TIMES,
	NUMBERS,
	KINDS_OF_KEYS
} Keys;

static const char *const key_names[] = {"random", "times", "numbers"};

static void
make_leaf(Keys kind)
{
	uint64_t	number = next_random() >> 8;

	for (uint32_t i = 0; i < nkeys; i++)
	{
		number += kind == TIMES ? 1 + next_random() % 2000000 : 1 + next_random() % 10;
		/* random keys of a leaf begin alike */
		numbers[i] = kind == RANDOM ? UINT64_C(0x5A5) << 52 | next_random() >> 12 : number;
	}
	qsort(numbers, nkeys, sizeof(*numbers), compare_numbers);
}

/* Is there none from low to high? */
static bool
is_empty(uint64_t low, uint64_t high)
{
	uint32_t	lo = 0;
	uint32_t	hi = nkeys;

	while (lo < hi)
	{
		uint32_t	mid = (lo + hi) / 2;

		if (numbers[mid] < low)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo == nkeys || numbers[lo] > high;
}

/* ---- the filters ---- */

typedef struct Filter
{
	const char *name;
	bool		grafite;
	HybSurfSuffix suffix;
	unsigned	bits;			/* of the suffix; Grafite: low ones */
	HybFstBuilder *builder;
} Filter;

static HybGrafiteBuilder codes;
static HybGrafiteKey keys[MAXKEYS];

static size_t
build(Filter *filter, uint8_t *image)
{
	size_t		size;

	if (filter->grafite)
	{
		for (uint32_t i = 0; i < nkeys; i++)
			keys[i] = (HybGrafiteKey)
		{
			.number = numbers[i]
		};
		size = hyb_grafite_build(&codes, keys, nkeys, filter->bits);
		hyb_grafite_write(&codes, 8, 1, image);
		return size;
	}
	if (filter->builder == NULL)
		filter->builder = hyb_surf_builder_create(resize, filter->suffix, filter->bits);
	hyb_fst_builder_reset(filter->builder);
	for (uint32_t i = 0; i < nkeys; i++)
	{
		uint8_t		key[8];

		hyb_store64be(key, numbers[i]);
		if (i == 0 || numbers[i] != numbers[i - 1])
			hyb_fst_builder_add(filter->builder, key, 8);
	}
	size = hyb_fst_builder_finish(filter->builder);
	hyb_fst_builder_write(filter->builder, image);
	return size;
}

static bool
ask(const Filter *filter, const uint8_t *image, size_t size, uint64_t low, uint64_t high)
{
	uint8_t		low_key[8];
	uint8_t		high_key[8];
	HybFst		fst;
	HybFstCut		from = {.key = low_key,.len = 8,.side = HYB_CUT_BEFORE};
	HybFstCut		to = {.key = high_key,.len = 8,.side = HYB_CUT_AFTER};

	if (filter->grafite)
		return hyb_grafite_ask(image, size, 0, low, high) != HYB_ANSWER_NO;
	hyb_store64be(low_key, low);
	hyb_store64be(high_key, high);
	if (!hyb_fst_open(&fst, image, size))
		abort();
	if (low == high)
		return hyb_fst_lookup(&fst, low_key, 8) != HYB_ANSWER_NO;
	return hyb_fst_range(&fst, &from, &to) != HYB_ANSWER_NO;
}

/* ---- questions ---- */

typedef struct Question
{
	const char *name;
	bool		beside;
	uint64_t	len;
} Question;

static const Question questions[] = {
	{"key + 1", true, 1},
	{"16 beside", true, 16},
	{"1024 beside", true, 1024},
	{"16384 beside", true, 16384},
	{"16 anywhere", false, 16},
	{"1024 anywhere", false, 1024},
	{"16384 anywhere", false, 16384}
};

#define QUESTIONS	(sizeof(questions) / sizeof(*questions))

typedef struct Result
{
	double		bytes;
	double		build;			/* ns */
	double		asked[QUESTIONS];
	double		wrong[QUESTIONS];
	double		ns;				/* of all questions */
} Result;

static void
ask_leaf(const Filter *filter, const uint8_t *image, size_t size,
		 const Question *question, double *asked, double *wrong, double *ns)
{
	static uint64_t lows[ASKED];
	uint32_t	n = 0;
	double		start;

	for (uint32_t tries = 0; tries < 10 * ASKED && n < ASKED; tries++)
	{
		uint64_t	span = numbers[nkeys - 1] - numbers[0];
		uint64_t	low = question->beside ? numbers[next_random() % nkeys] + 1 :
			numbers[0] + next_random() % span;

		if (is_empty(low, low + question->len - 1))
			lows[n++] = low;
	}
	start = now();
	for (uint32_t i = 0; i < n; i++)
		*wrong += ask(filter, image, size, lows[i], lows[i] + question->len - 1);
	*ns += now() - start;
	*asked += n;
}

static void
measure(Keys kind, Filter *filter)
{
	static uint8_t image[MAXKEYS * 16];
	Result		result = {0};
	double		asked = 0;

	seed = UINT64_C(88172645463325252);
	for (int leaf = 0; leaf < LEAVES; leaf++)
	{
		double		start;
		size_t		size;

		make_leaf(kind);
		start = now();
		size = build(filter, image);
		result.build += now() - start;
		result.bytes += (double) size;
		for (uint32_t i = 0; i < nkeys; i++)
			if (!ask(filter, image, size, numbers[i], numbers[i]))
				abort();
		for (size_t q = 0; q < QUESTIONS; q++)
			ask_leaf(filter, image, size, &questions[q], &result.asked[q],
					 &result.wrong[q], &result.ns);
	}
	printf("| %s | %s | %.1f | %.0f |", key_names[kind], filter->name,
		   8 * result.bytes / LEAVES / nkeys, result.build / LEAVES / nkeys);
	for (size_t q = 0; q < QUESTIONS; q++)
	{
		/* among dense keys few long ranges are empty */
		if (result.asked[q] < 1000)
			printf(" |");
		else
			printf(" %.2f |", 100 * result.wrong[q] / result.asked[q]);
		asked += result.asked[q];
	}
	printf(" %.0f |\n", result.ns / asked);
}

int
main(int argc, char **argv)
{
	Filter		filters[] = {
		{"SuRF Base", false, HYB_SURF_REAL, 0, NULL},
		{"SuRF Real4", false, HYB_SURF_REAL, 4, NULL},
		{"SuRF Real8", false, HYB_SURF_REAL, 8, NULL},
		{"Grafite 16", true, HYB_SURF_REAL, 10, NULL},
		{"Grafite 1024", true, HYB_SURF_REAL, 16, NULL},
		{"Grafite 16384", true, HYB_SURF_REAL, 20, NULL}
	};

	if (argc > 1)
		nkeys = (uint32_t) atoi(argv[1]);
	if (nkeys < 2 || nkeys > MAXKEYS)
	{
		fprintf(stderr, "keys: 2 to %d\n", MAXKEYS);
		return 1;
	}
	printf("| keys | filter | bits/key | build, ns/key |");
	for (size_t q = 0; q < QUESTIONS; q++)
		printf(" %s |", questions[q].name);
	printf(" ns |\n");
	for (int kind = 0; kind < KINDS_OF_KEYS; kind++)
		for (size_t i = 0; i < sizeof(filters) / sizeof(*filters); i++)
			measure((Keys) kind, &filters[i]);
	return 0;
}
