/*
 * surf.c
 *		Micro-benchmark of the range filter, without a server.
 *
 *	surf [FILE | int8 | worst] [KEYS]
 *
 * Keys are the lines of a file, random 64-bit integers (big-endian), or the
 * worst case of Zhang's dissertation, section 4.5: pairs of 64-byte keys that
 * differ in their last byte only.  Half of them are stored, the others asked
 * for: as points, and as ranges [k, k with its last byte + 1], for integers
 * [k + 2^40, k + 2^42].  Every stored key is asked for too: it must be found.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "algo/fst.h"

typedef struct Key
{
	uint8_t    *data;
	uint32_t	len;
} Key;

static Key *keys;
static size_t nkeys;
static uint64_t seed = UINT64_C(88172645463325252);

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
	void	   *p = realloc(old, size);

	if (p == NULL)
		abort();
	return p;
}

static int
compare_keys(const void *a, const void *b)
{
	const Key  *x = a;
	const Key  *y = b;
	int			c = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);

	return c != 0 ? c : (x->len > y->len) - (x->len < y->len);
}

static void
add_key(const void *data, uint32_t len)
{
	static size_t alloc;

	if (nkeys == alloc)
	{
		alloc = alloc == 0 ? 1024 : alloc * 2;
		keys = resize(keys, alloc * sizeof(Key));
	}
	keys[nkeys].data = resize(NULL, len + 1);
	memcpy(keys[nkeys].data, data, len);
	keys[nkeys++].len = len;
}

static void
load(const char *source, size_t wanted)
{
	if (strcmp(source, "int8") == 0)
	{
		while (nkeys < wanted)
		{
			uint64_t	v = __builtin_bswap64(next_random());

			add_key(&v, 8);
		}
	}
	else if (strcmp(source, "worst") == 0)
	{
		while (nkeys < wanted)
		{
			uint8_t		key[64];

			for (int i = 0; i < 64; i++)
				key[i] = (uint8_t) ('a' + next_random() % 26);
			for (int i = 0; i < 2; i++)
			{
				key[63] = (uint8_t) ('a' + i);
				add_key(key, 64);
			}
		}
	}
	else
	{
		FILE	   *f = fopen(source, "r");
		char	   *line = NULL;
		size_t		size = 0;
		ssize_t		n;

		if (f == NULL)
		{
			perror(source);
			exit(1);
		}
		while (nkeys < wanted && (n = getline(&line, &size, f)) > 0)
		{
			if (line[n - 1] == '\n')
				n--;
			if (n > 0)
				add_key(line, (uint32_t) n);
		}
		fclose(f);
		free(line);
	}
}

/* Keys one after the other in memory, as a caller's would be in its cache. */
static void
pack(Key *list, size_t n)
{
	size_t		total = 0;
	uint8_t    *p;

	for (size_t i = 0; i < n; i++)
		total += list[i].len;
	p = resize(NULL, total + 1);
	for (size_t i = 0; i < n; i++)
	{
		memcpy(p, list[i].data, list[i].len);
		free(list[i].data);
		list[i].data = p;
		p += list[i].len;
	}
}

static void
report(const char *name, unsigned bits, bool ints,
	   Key *stored, size_t nstored, const Key *asked, size_t nasked)
{
	HybFstBuilder *b = hyb_fst_builder_create(resize, bits);
	double		t = now();
	double		build;
	double		point;
	double		range;
	uint8_t    *image;
	size_t		size;
	HybFst		fst;
	size_t		point_fp = 0;
	size_t		range_fp = 0;
	size_t		nranges = 0;
	size_t		lost = 0;
	Key		   *upper = resize(NULL, nasked * sizeof(Key));
	Key		   *lower = resize(NULL, nasked * sizeof(Key));
	bool	   *empty = resize(NULL, nasked);
	size_t		bytes = 0;
	uint8_t    *arena;
	uint8_t    *bounds;

	for (size_t i = 0; i < nstored; i++)
		(void) hyb_fst_builder_add(b, stored[i].data, stored[i].len);
	size = hyb_fst_builder_finish(b);
	image = resize(NULL, size);
	hyb_fst_builder_write(b, image);
	build = (now() - t) / (double) nstored;
	if (!hyb_fst_open(&fst, image, size))
		abort();

	for (size_t i = 0; i < nasked; i++)
		bytes += asked[i].len * 2;
	arena = bounds = resize(NULL, bytes);
	for (size_t i = 0; i < nasked; i++)
	{
		size_t		lo = 0;
		size_t		hi = nstored;

		lower[i] = asked[i];
		upper[i].len = asked[i].len;
		upper[i].data = bounds;
		bounds += asked[i].len;
		memcpy(upper[i].data, asked[i].data, asked[i].len);
		if (ints)
		{
			uint64_t	v;

			memcpy(&v, asked[i].data, 8);
			v = __builtin_bswap64(v);
			lower[i].data = bounds;
			bounds += 8;
			v = __builtin_bswap64(v + (UINT64_C(1) << 40));
			memcpy(lower[i].data, &v, 8);
			v = __builtin_bswap64(v) - (UINT64_C(1) << 40) + (UINT64_C(1) << 42);
			v = __builtin_bswap64(v);
			memcpy(upper[i].data, &v, 8);
		}
		else
			upper[i].data[upper[i].len - 1]++;
		while (lo < hi)
		{
			size_t		mid = (lo + hi) / 2;

			if (compare_keys(&stored[mid], &lower[i]) < 0)
				lo = mid + 1;
			else
				hi = mid;
		}
		empty[i] = lo == nstored || compare_keys(&stored[lo], &upper[i]) > 0;
		nranges += empty[i];
	}

	t = now();
	for (size_t i = 0; i < nasked; i++)
		point_fp += hyb_fst_lookup(&fst, asked[i].data, asked[i].len);
	point = (now() - t) / (double) nasked;
	t = now();
	for (size_t i = 0; i < nasked; i++)
	{
		HybFstCut		low = {lower[i].data, lower[i].len, HYB_CUT_BEFORE};
		HybFstCut		high = {upper[i].data, upper[i].len, HYB_CUT_SELF};
		HybFilterAnswer answer = hyb_fst_range(&fst, &low, &high);

		range_fp += answer == HYB_ANSWER_MAYBE && empty[i];
		lost += answer == HYB_ANSWER_NO && !empty[i];
	}
	range = (now() - t) / (double) nasked;
	for (size_t i = 0; i < nstored; i++)
	{
		HybFstCut		low = {stored[i].data, stored[i].len, HYB_CUT_BEFORE};
		HybFstCut		high = {stored[i].data, stored[i].len, HYB_CUT_SELF};

		lost += hyb_fst_lookup(&fst, stored[i].data, stored[i].len) != HYB_ANSWER_MAYBE;
		lost += hyb_fst_range(&fst, &low, &high) != HYB_ANSWER_MAYBE;
	}
	printf("| %s%u | %.2f | %.2f %% | %.2f %% | %.0f | %.0f | %.0f | %zu |\n", name, bits,
		   (double) size * 8 / (double) nstored, 100.0 * (double) point_fp / (double) nasked,
		   nranges == 0 ? 0 : 100.0 * (double) range_fp / (double) nranges,
		   point, range, build, lost);
	free(arena);
	free(upper);
	free(lower);
	free(empty);
	free(image);
}

int
main(int argc, char **argv)
{
	const char *source = argc > 1 ? argv[1] : "int8";
	bool		ints = strcmp(source, "int8") == 0;
	Key		   *stored;
	Key		   *asked;
	size_t		half;

	load(source, argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000);
	if (nkeys < 2)
		return 1;
	if (strcmp(source, "worst") != 0)
		for (size_t i = nkeys - 1; i > 0; i--)
		{
			size_t		j = next_random() % (i + 1);
			Key			swap = keys[i];

			keys[i] = keys[j];
			keys[j] = swap;
		}
	half = nkeys / 2;
	stored = keys;
	asked = keys + half;
	pack(asked, nkeys - half);
	qsort(stored, half, sizeof(Key), compare_keys);
	pack(stored, half);

	printf("%s: %zu keys stored, %zu asked\n", source, half, nkeys - half);
	printf("| variant | bits/key | point FPR | range FPR | point ns | range ns | build ns/key | lost |\n");
	printf("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
	report("Base", 0, ints, stored, half, asked, nkeys - half);
	report("Real", 4, ints, stored, half, asked, nkeys - half);
	report("Real", 8, ints, stored, half, asked, nkeys - half);
	return 0;
}
