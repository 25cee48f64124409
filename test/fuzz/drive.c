/*
 * drive.c
 *		Calls a fuzz target with mutations of its seeds: for machines that have
 *		gcc only.
 *
 *		TARGET SECONDS [SEED]	mutates for so long, after the seeds themselves
 *		TARGET FILE...			runs the target on each file
 *
 * A target compiled with -fsanitize-coverage=trace-pc tells which edges
 * between basic blocks an input takes, and roughly how often, in the way of
 * AFL (Zalewski, "Technical 'whitepaper' for afl-fuzz": counters, by the
 * addresses of the two blocks).  Inputs that show something new become seeds
 * too, and are kept in TARGET.corpus for later runs.  This file itself is
 * compiled without.
 *
 * The input at hand is in the file TARGET.input, which is there to look at if
 * the target ends the process, as it does where one input takes too long.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MAX_INPUT	20000
#define MAX_SEEDS	20000
#define MAP_SIZE	(1 << 16)
#define INPUT_SECONDS	20		/* of CPU time */

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The target's i-th seed; returns its size, 0 if there are no more. */
extern size_t hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max) __attribute__((weak));

static uint64_t state;

static uint8_t *seeds[MAX_SEEDS];
static size_t sizes[MAX_SEEDS];
static unsigned nseeds;

static uint32_t
rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t) (state >> 16);
}

/* ---- coverage ---- */

static union
{
	uint8_t		counts[MAP_SIZE];
	uint64_t	words[MAP_SIZE / 8];
}			map;
static uint8_t seen[MAP_SIZE];	/* a bit for each range of counts */
static uint32_t last_block;

extern void __sanitizer_cov_trace_pc(void);

/* Called at the start of each basic block of the target. */
void
__sanitizer_cov_trace_pc(void)
{
	/* relative, so that it is the same wherever the program is loaded */
	uint64_t	pc = (uint64_t) (uintptr_t) __builtin_return_address(0) -
		(uint64_t) (uintptr_t) LLVMFuzzerTestOneInput;
	uint32_t	block = (uint32_t) ((pc * UINT64_C(0x9E3779B97F4A7C15)) >> 48);
	uint8_t    *count = &map.counts[block ^ last_block];

	if (*count < 255)
		++*count;
	last_block = block >> 1;
}

/* Has the input shown anything new?  Empties the map. */
static int
new_coverage(void)
{
	int			found = 0;

	for (unsigned w = 0; w < MAP_SIZE / 8; w++)
	{
		if (map.words[w] == 0)
			continue;
		for (unsigned i = 8 * w; i < 8 * w + 8; i++)
		{
			unsigned	count = map.counts[i];
			unsigned	bit = count < 4 ? count : count < 8 ? 4 :
				count < 16 ? 5 : count < 32 ? 6 : count < 128 ? 7 : 8;

			if (count > 0 && !(seen[i] & 1u << (bit - 1)))
			{
				seen[i] |= (uint8_t) (1u << (bit - 1));
				found = 1;
			}
		}
		map.words[w] = 0;
	}
	return found;
}

static int
run(const uint8_t *data, size_t size)
{
	struct itimerval limit = {.it_value = {INPUT_SECONDS, 0}};

	setitimer(ITIMER_VIRTUAL, &limit, NULL);
	last_block = 0;
	(void) LLVMFuzzerTestOneInput(data, size);
	return new_coverage();
}

/* ---- inputs ---- */

static void
add_seed(const uint8_t *data, size_t size)
{
	if (nseeds == MAX_SEEDS)
		return;
	seeds[nseeds] = memcpy(malloc(size), data, size);
	sizes[nseeds++] = size;
}

static size_t
mutate(uint8_t *data, size_t size)
{
	int			n = 1 + rnd() % (rnd() % 4 == 0 ? 32 : 3);

	while (n-- > 0 && size > 2)
	{
		size_t		at = rnd() % 3 == 0 ? rnd() % (size < 128 ? size : 128) : rnd() % size;
		size_t		from = rnd() % size;
		unsigned	other = rnd() % nseeds;
		size_t		len = rnd() % (rnd() % 64 == 0 ? size : 16);

		len = len < size - at ? len : size - at;
		switch (rnd() % 10)
		{
			case 0:
				data[at] ^= 1 << (rnd() % 8);
				break;
			case 1:
				data[at] = (uint8_t) rnd();
				break;
			case 2:
				data[at] = (uint8_t) ((1 << rnd() % 9) - rnd() % 2);
				break;
			case 3:
				data[at] += rnd() % 2 ? 1 : -1;
				break;
			case 4:
				memset(data + at, rnd() % 2 ? 0xFF : (int) rnd() & 0xFF, len);
				break;
			case 5:
				memmove(data + at, data + from, len < size - from ? len : size - from);
				break;
			case 6:				/* insert a copy of other bytes */
				if (size + len > MAX_INPUT || from + len > size)
					break;
				memmove(data + at + len, data + at, size - at);
				memmove(data + at, data + from, len);
				size += len;
				break;
			case 7:				/* delete */
				if (len + 2 > size)
					break;
				memmove(data + at, data + at + len, size - at - len);
				size -= len;
				break;
			case 8:				/* bytes of another seed, from the same place */
				if (at + len <= sizes[other])
					memcpy(data + at, seeds[other] + at, len);
				break;
			default:
				if (rnd() % 8 == 0)
					size = 1 + rnd() % size;
				break;
		}
	}
	return size;
}

static FILE *
open_file(const char *name, const char *mode)
{
	FILE	   *f = fopen(name, mode);

	if (f == NULL)
	{
		perror(name);
		exit(1);
	}
	return f;
}

/* Inputs kept of earlier runs: again and again a size, and its number of bytes. */
static FILE *
read_corpus(const char *name, uint8_t *data)
{
	FILE	   *f = open_file(name, "a+b");
	uint32_t	size;

	rewind(f);
	while (fread(&size, sizeof(size), 1, f) == 1 && size <= MAX_INPUT &&
		   fread(data, 1, size, f) == size)
		if (run(data, size))
			add_seed(data, size);
	return f;
}

int
main(int argc, char **argv)
{
	static uint8_t seed[MAX_INPUT];
	uint8_t    *input;
	char		name[1000];
	unsigned	given = 0;
	unsigned	kept;
	unsigned long runs = 0;
	time_t		end;
	size_t		size;
	FILE	   *corpus;
	int			fd;

	if (argc < 2)
		return 2;
	if (access(argv[1], R_OK) == 0)
	{
		for (int i = 1; i < argc; i++)
			LLVMFuzzerTestOneInput(seed, fread(seed, 1, MAX_INPUT, open_file(argv[i], "rb")));
		return 0;
	}

	state = argc > 2 ? strtoull(argv[2], NULL, 10) + 1 : (uint64_t) time(NULL) + 1;
	state *= UINT64_C(0x9E3779B97F4A7C15);
	snprintf(name, sizeof(name), "%s.input", argv[0]);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, MAX_INPUT) != 0 ||
		(input = mmap(NULL, MAX_INPUT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)) == MAP_FAILED)
	{
		perror(name);
		return 1;
	}
	while (hyb_fuzz_seed && (size = hyb_fuzz_seed(given, seed, MAX_INPUT)) > 0)
	{
		memcpy(input, seed, size);
		(void) run(input, size);
		add_seed(input, size);
		given++;
	}
	snprintf(name, sizeof(name), "%s.corpus", argv[0]);
	corpus = read_corpus(name, input);
	kept = nseeds - given;

	end = time(NULL) + atoi(argv[1]);
	do
	{
		if (nseeds > 0 && (given > 0 || rnd() % 8 != 0))
		{
			/* the newest ones more often */
			unsigned	i = nseeds - 1 - rnd() % (rnd() % 2 ? nseeds : 1 + nseeds / 4);

			memcpy(input, seeds[i], sizes[i]);
			size = mutate(input, sizes[i]);
		}
		else
		{
			/* few different bytes, so that keys resemble each other */
			int			alphabet = 1 + rnd() % 255;

			size = 2 + rnd() % (rnd() % 4 == 0 ? 4000 : 200);
			for (size_t i = 0; i < size; i++)
				input[i] = (uint8_t) (rnd() % alphabet);
			input[0] = (uint8_t) rnd();
		}
		if (run(input, size))
		{
			uint32_t	n = (uint32_t) size;

			add_seed(input, size);
			fwrite(&n, sizeof(n), 1, corpus);
			fwrite(input, 1, size, corpus);
			fflush(corpus);
		}
		runs++;
	} while (runs % 64 != 0 || time(NULL) < end);
	fclose(corpus);
	memcpy(strrchr(name, '.'), ".input", 7);
	unlink(name);
	printf("%s: %lu executions in %.0f s of CPU time, %u seeds, %u kept, %u new\n",
		   strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0], runs,
		   (double) clock() / CLOCKS_PER_SEC, given, kept, nseeds - given - kept);
	return 0;
}
