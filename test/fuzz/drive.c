/*
 * drive.c
 *		Calls a fuzz target with mutations of its seeds, without coverage
 *		feedback: for machines that have gcc only.
 *
 *		TARGET SECONDS [SEED]	mutates for so long
 *		TARGET FILE...			runs the target on each file
 *
 * The input at hand is in the file TARGET.input, which is there to look at if
 * the target ends the process.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <fcntl.h>
#include <unistd.h>

#define MAX_INPUT	20000
#define MAX_SEEDS	1000

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The target's i-th seed; returns its size, 0 if there are no more. */
extern size_t hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max) __attribute__((weak));

static uint64_t state;

static uint32_t
rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t) (state >> 16);
}

static size_t
mutate(uint8_t *data, size_t size)
{
	int			n = 1 + rnd() % (rnd() % 4 == 0 ? 32 : 3);

	while (n-- > 0 && size > 2)
	{
		size_t		at = rnd() % 3 == 0 ? rnd() % (size < 128 ? size : 128) : rnd() % size;
		size_t		len = rnd() % 16;
		size_t		from = rnd() % size;

		switch (rnd() % 7)
		{
			case 0:
				data[at] ^= 1 << (rnd() % 8);
				break;
			case 1:
				data[at] = (uint8_t) rnd();
				break;
			case 2:
				data[at] = rnd() % 2 ? 0xFF : 0;
				break;
			case 3:
				data[at] += rnd() % 2 ? 1 : -1;
				break;
			case 4:
				len = len < size - at ? len : size - at;
				memset(data + at, rnd() % 2 ? 0xFF : (int) rnd() & 0xFF, len);
				break;
			case 5:
				len = len < size - at ? len : size - at;
				len = len < size - from ? len : size - from;
				memmove(data + at, data + from, len);
				break;
			default:
				if (rnd() % 8 == 0)
					size = 1 + rnd() % size;
				break;
		}
	}
	return size;
}

static size_t
read_file(const char *name, uint8_t *data)
{
	FILE	   *f = fopen(name, "rb");
	size_t		size;

	if (f == NULL)
	{
		perror(name);
		exit(1);
	}
	size = fread(data, 1, MAX_INPUT, f);
	fclose(f);
	return size;
}

int
main(int argc, char **argv)
{
	static uint8_t seed[MAX_INPUT];
	static uint8_t *seeds[MAX_SEEDS];
	static size_t sizes[MAX_SEEDS];
	uint8_t    *input;
	char		name[1000];
	unsigned	nseeds = 0;
	unsigned long runs = 0;
	time_t		end;
	int			fd;

	if (argc < 2)
		return 2;
	if (access(argv[1], R_OK) == 0)
	{
		for (int i = 1; i < argc; i++)
			LLVMFuzzerTestOneInput(seed, read_file(argv[i], seed));
		return 0;
	}

	state = argc > 2 ? strtoull(argv[2], NULL, 10) + 1 : (uint64_t) time(NULL) + 1;
	state *= UINT64_C(0x9E3779B97F4A7C15);
	end = time(NULL) + atoi(argv[1]);
	snprintf(name, sizeof(name), "%s.input", argv[0]);
	fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || ftruncate(fd, MAX_INPUT) != 0)
	{
		perror(name);
		return 1;
	}
	input = mmap(NULL, MAX_INPUT, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (input == MAP_FAILED)
	{
		perror("mmap");
		return 1;
	}
	if (hyb_fuzz_seed)
		while (nseeds < MAX_SEEDS &&
			   (sizes[nseeds] = hyb_fuzz_seed(nseeds, seed, MAX_INPUT)) > 0)
		{
			seeds[nseeds] = memcpy(malloc(sizes[nseeds]), seed, sizes[nseeds]);
			LLVMFuzzerTestOneInput(seed, sizes[nseeds++]);
		}

	while (runs % 64 != 0 || time(NULL) < end)
	{
		size_t		size;

		if (nseeds > 0)
		{
			unsigned	i = rnd() % nseeds;

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
		LLVMFuzzerTestOneInput(input, size);
		runs++;
	}
	unlink(name);
	printf("%s: %lu executions, %u seeds\n", strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0], runs, nseeds);
	return 0;
}
