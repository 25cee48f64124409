/*
 * fuzz_hope.c
 *		Fuzz target: build a dictionary from the input, store and load it,
 *		encode and decode keys, compare their order; and load the input itself
 *		as a stored dictionary.
 *
 *		clang -g -O1 -fsanitize=fuzzer,address,undefined -I../../src \
 *			fuzz_hope.c ../../src/algo/hope/?*.c -lm -o fuzz_hope
 *
 * With -DSTANDALONE it runs on the files named as arguments, with any
 * compiler.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/hope/hope.h"

static void *
fuzz_alloc(void *context, size_t size)
{
	(void) context;
	return malloc(size > 0 ? size : 1);
}

static void
fuzz_release(void *context, void *ptr)
{
	(void) context;
	free(ptr);
}

static const HybHopeMemory memory = {fuzz_alloc, fuzz_release, NULL};

static int
compare(const uint8_t *a, size_t alen, const uint8_t *b, size_t blen)
{
	size_t		n = alen < blen ? alen : blen;
	int			c = n > 0 ? memcmp(a, b, n) : 0;

	c = c != 0 ? c : (alen > blen) - (alen < blen);
	return (c > 0) - (c < 0);
}

/* Stuffed code of a key, which must decode back. */
static uint8_t *
encode(const HybHope *hope, const uint8_t *key, size_t len, size_t *size)
{
	uint8_t    *code = malloc(hyb_hope_encode_bound(len) + 8);
	uint64_t	bits = hyb_hope_encode(hope, key, len, code);
	uint8_t    *stuffed = malloc(hyb_hope_stuff_bound(bits));
	uint8_t    *back;
	uint8_t    *out;
	size_t		n;

	*size = hyb_hope_stuff(code, bits, stuffed);
	back = malloc(*size + 16);
	n = hyb_hope_unstuff(stuffed, *size, back);
	out = malloc(hyb_hope_decode_bound(hope, n));
	n = hyb_hope_decode(hope, back, n, out);
	if (n != len || (len > 0 && memcmp(out, key, len) != 0) ||
		memchr(stuffed, 0, *size) != NULL)
		abort();
	free(out);
	free(back);
	free(code);
	return stuffed;
}

static void
check_keys(const HybHope *hope, const uint8_t *bytes, const uint32_t *off,
		   uint32_t n)
{
	for (uint32_t i = 0; i + 1 < n && i < 64; i++)
	{
		size_t		alen = off[i + 1] - off[i];
		size_t		blen = off[i + 2] - off[i + 1];
		size_t		asize;
		size_t		bsize;
		uint8_t    *a = encode(hope, bytes + off[i], alen, &asize);
		uint8_t    *b = encode(hope, bytes + off[i + 1], blen, &bsize);

		if (compare(a, asize, b, bsize) !=
			compare(bytes + off[i], alen, bytes + off[i + 1], blen))
			abort();
		free(a);
		free(b);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t   *off;
	uint32_t	n = 0;
	HybHope    *hope;
	HybHope    *loaded;
	uint8_t    *stored;
	size_t		storedsize;
	HybHopeSample sample;

	if (size < 2 || size > 4096)
		return 0;

	/* keys end where a byte equals the second one */
	off = malloc((size + 2) * sizeof(uint32_t));
	off[0] = 2;
	for (size_t i = 2; i < size; i++)
		if (data[i] == data[1])
			off[++n] = (uint32_t) i + 1;
	off[++n] = (uint32_t) size;

	loaded = hyb_hope_load(data + 1, size - 1, &memory);
	if (loaded != NULL)
	{
		check_keys(loaded, data, off, n);
		hyb_hope_free(loaded);
	}
	sample.bytes = data;
	sample.off = off;
	sample.n = n;
	hope = hyb_hope_build(1 + data[0] % HYB_HOPE_NSCHEMES, 600, &sample,
						  &memory, NULL, NULL);
	storedsize = hyb_hope_stored_size(hope);
	stored = malloc(storedsize);
	hyb_hope_store(hope, stored);
	loaded = hyb_hope_load(stored, storedsize, &memory);
	if (loaded == NULL)
		abort();
	check_keys(loaded, data, off, n);
	hyb_hope_free(loaded);
	hyb_hope_free(hope);
	free(stored);
	free(off);
	return 0;
}

#ifdef STANDALONE
int
main(int argc, char **argv)
{
	static uint8_t data[4096];

	for (int i = 1; i < argc; i++)
	{
		FILE	   *f = fopen(argv[i], "rb");

		if (f == NULL)
			continue;
		(void) LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof(data), f));
		fclose(f);
	}
	return 0;
}
#endif
