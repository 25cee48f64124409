/*
 * hope.c
 *		Micro-benchmark of the string encoder: compression rate, time to encode
 *		and decode a character, build time and size, for every
 *		scheme; sweeps over sample and dictionary size; and keys
 *		unlike those learned from.
 *
 *		hope FILE [SAMPLE-PERCENT]		one key a line, 1 % by default
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "algo/hope/hope.h"

#define REPEAT	7

/* Whole keys are encoded. */
#define ALL		(1 << 20)

static uint8_t *bytes;
static uint32_t *off;
static uint32_t nkeys;

/* CPU time, since other processes may be using the machine. */
static uint64_t
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}

static void *
bench_alloc(void *context, size_t size)
{
	void	   *p = malloc(size > 0 ? size : 1);

	(void) context;
	if (p == NULL)
		abort();
	return p;
}

static void
bench_release(void *context, void *ptr)
{
	(void) context;
	free(ptr);
}

static const HybHopeMemory memory = {bench_alloc, bench_release, NULL};

static void
read_keys(const char *name)
{
	FILE	   *f = fopen(name, "rb");
	size_t		size;
	size_t		used = 0;

	if (f == NULL)
	{
		perror(name);
		exit(1);
	}
	fseek(f, 0, SEEK_END);
	size = (size_t) ftell(f);
	rewind(f);
	bytes = bench_alloc(NULL, size + 16);
	size = fread(bytes, 1, size, f);
	fclose(f);
	for (size_t i = 0; i < size; i++)
		nkeys += bytes[i] == '\n';
	off = bench_alloc(NULL, (nkeys + 1) * sizeof(uint32_t));
	off[0] = 0;
	nkeys = 0;
	for (size_t i = 0; i < size; i++)
	{
		if (bytes[i] == '\n')
			off[++nkeys] = (uint32_t) used;
		else
			bytes[used++] = bytes[i];
	}
}

static double
compression(const HybHope *hope, const uint8_t *b, const uint32_t *o, uint32_t n)
{
	uint8_t    *out = bench_alloc(NULL, 1 << 20);
	uint64_t	bits = 0;

	for (uint32_t i = 0; i < n; i++)
		bits += hyb_hope_encode(hope, b + o[i], o[i + 1] - o[i], ALL, out,
								&(size_t) {0});
	free(out);
	return bits == 0 ? 0 : 8.0 * (o[n] - o[0]) / (double) bits;
}

static double
encode_time(const HybHope *hope)
{
	uint8_t    *out = bench_alloc(NULL, 1 << 20);
	uint64_t	best = UINT64_MAX;

	for (int r = 0; r < REPEAT; r++)
	{
		uint64_t	t = now();

		for (uint32_t i = 0; i < nkeys; i++)
			(void) hyb_hope_encode(hope, bytes + off[i], off[i + 1] - off[i],
								   ALL, out, &(size_t) {0});
		t = now() - t;
		best = t < best ? t : best;
	}
	free(out);
	return (double) best / off[nkeys];
}

static double
decode_time(const HybHope *hope)
{
	uint32_t	n = nkeys < 200000 ? nkeys : 200000;
	uint8_t    *code = bench_alloc(NULL, hyb_hope_encode_bound(off[n]) + 16 * (size_t) n);
	size_t	   *at = bench_alloc(NULL, (n + 1) * sizeof(size_t));
	uint8_t    *out = bench_alloc(NULL, 1 << 22);
	uint64_t	best = UINT64_MAX;

	at[0] = 0;
	for (uint32_t i = 0; i < n; i++)
		at[i + 1] = at[i] + (hyb_hope_encode(hope, bytes + off[i],
											 off[i + 1] - off[i], ALL,
											 code + at[i], &(size_t) {0}) + 7) / 8;
	for (int r = 0; r < REPEAT; r++)
	{
		uint64_t	t = now();

		for (uint32_t i = 0; i < n; i++)
			(void) hyb_hope_decode(hope, code + at[i], at[i + 1] - at[i],
								   ALL, out, &(uint64_t) {0});
		t = now() - t;
		best = t < best ? t : best;
	}
	free(out);
	free(at);
	free(code);
	return (double) best / off[n];
}

static void
schemes(uint32_t nsample)
{
	HybHopeSample sample = {bytes, off, nsample};
	static const uint32_t sizes[] = {0, 0, 65536, 65536, 4096, 4096};

	printf("%-13s %8s %7s %9s %9s %8s %10s %10s\n", "scheme", "entries",
		   "rate", "encode ns", "decode ns", "build ms", "stored", "memory");
	for (int scheme = 1; scheme <= HYB_HOPE_NSCHEMES; scheme++)
	{
		uint64_t	start = now();
		HybHope    *hope = hyb_hope_build(scheme, sizes[scheme - 1], &sample, &memory);
		uint64_t	time = now() - start;

		printf("%-13s %8u %7.3f %9.2f %9.2f %8.1f %10zu %10zu\n",
			   hyb_hope_scheme_name(scheme), hyb_hope_entries(hope),
			   compression(hope, bytes, off, nkeys), encode_time(hope),
			   decode_time(hope), time / 1e6, hyb_hope_store(hope, NULL),
			   hyb_hope_memory(hope));
		hyb_hope_free(hope);
	}
}

static void
sweep_sizes(uint32_t nsample)
{
	HybHopeSample sample = {bytes, off, nsample};

	printf("rate by dictionary size:\n%-13s", "");
	for (uint32_t size = 512; size <= 65536; size *= 2)
		printf(" %7u", size);
	for (int scheme = HYB_HOPE_3_GRAMS; scheme <= HYB_HOPE_ALM_IMPROVED; scheme++)
	{
		printf("\n%-13s", hyb_hope_scheme_name(scheme));
		for (uint32_t size = 512; size <= 65536; size *= 2)
		{
			HybHope    *hope = hyb_hope_build(scheme, size, &sample, &memory);

			printf(" %7.3f", compression(hope, bytes, off, nkeys));
			hyb_hope_free(hope);
		}
	}
	printf("\nrate by sample size (keys), dictionaries of 4096:\n%-13s", "");
	for (uint32_t n = 64; n <= nkeys && n <= 65536; n *= 4)
		printf(" %7u", n);
	for (int scheme = 1; scheme <= HYB_HOPE_NSCHEMES; scheme++)
	{
		printf("\n%-13s", hyb_hope_scheme_name(scheme));
		for (uint32_t n = 64; n <= nkeys && n <= 65536; n *= 4)
		{
			HybHope    *hope;

			sample.n = n;
			hope = hyb_hope_build(scheme, 4096, &sample, &memory);
			printf(" %7.3f", compression(hope, bytes, off, nkeys));
			hyb_hope_free(hope);
		}
	}
	printf("\n");
}

/*
 * Two halves of the keys, parted by what follows the last '@' (addresses) or
 * by the keys themselves: learned from one, used on both.
 */
static void
change(void)
{
	uint8_t    *half[2];
	uint32_t   *half_off[2];
	uint32_t	n[2] = {0, 0};

	for (int h = 0; h < 2; h++)
	{
		half[h] = bench_alloc(NULL, off[nkeys] + 1);
		half_off[h] = bench_alloc(NULL, (nkeys + 1) * sizeof(uint32_t));
		half_off[h][0] = 0;
	}
	for (uint32_t i = 0; i < nkeys; i++)
	{
		uint32_t	len = off[i + 1] - off[i];
		const uint8_t *key = bytes + off[i];
		const uint8_t *at = memrchr(key, '@', len);
		int			h = at != NULL ? (at + 1 < key + len && at[1] > 'i') :
			(len > 0 && key[0] > 'm');

		memcpy(half[h] + half_off[h][n[h]], key, len);
		half_off[h][n[h] + 1] = half_off[h][n[h]] + len;
		n[h]++;
	}
	printf("rate when learned from one half of the keys (%u, %u):\n%-13s %7s %7s\n",
		   n[0], n[1], "", "same", "other");
	for (int scheme = 1; scheme <= HYB_HOPE_NSCHEMES; scheme++)
	{
		HybHopeSample sample = {half[0], half_off[0], n[0] / 50 + 1};
		HybHope    *hope;

		if (n[0] < 100 || n[1] < 100)
			break;
		hope = hyb_hope_build(scheme, 4096, &sample, &memory);
		printf("%-13s %7.3f %7.3f\n", hyb_hope_scheme_name(scheme),
			   compression(hope, half[0], half_off[0], n[0]),
			   compression(hope, half[1], half_off[1], n[1]));
		hyb_hope_free(hope);
	}
	for (int h = 0; h < 2; h++)
	{
		free(half[h]);
		free(half_off[h]);
	}
}

int
main(int argc, char **argv)
{
	double		percent = argc > 2 ? atof(argv[2]) : 1;
	uint32_t	nsample;

	if (argc < 2)
	{
		fprintf(stderr, "usage: hope FILE [SAMPLE-PERCENT]\n");
		return 2;
	}
	read_keys(argv[1]);
	nsample = (uint32_t) (nkeys * percent / 100);
	printf("%s: %u keys, %.1f bytes on average, %u sampled\n", argv[1], nkeys,
		   nkeys > 0 ? (double) off[nkeys] / nkeys : 0, nsample);
	schemes(nsample);
	sweep_sizes(nsample);
	change();
	return 0;
}
