/*
 * fuzz_hope.c
 *		Fuzz target: dictionaries of the input's keys, or stored ones of any
 *		bytes; keys must come back from their codes, and keep their order.
 *
 * The first byte says what the rest is.  Keys end where a byte equals the
 * second one.  Learning a dictionary takes milliseconds, so few inputs ask for
 * that, with few keys; most take one learned beforehand.  Seeds are stored
 * dictionaries of each scheme, which the rest is loaded as, and text.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/hope/hope.h"

#define MAXKEYS	64

/* The first byte, low bits; any other: keys, for the scheme in its high bits */
#define LEARN	0
#define LOAD	1

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

/* Bytes of a key that are encoded, as far as symbols go. */
#define MOST	16

/* Stuffed code of a key, which must decode back, and the rest of it. */
static uint8_t *
encode(const HybHope *hope, const uint8_t *key, size_t len, size_t *size)
{
	uint8_t    *code = malloc(hyb_hope_encode_bound(len) + 8);
	size_t		done;
	uint64_t	bits = hyb_hope_encode(hope, key, len, MOST, code, &done);
	uint8_t    *stuffed = malloc(hyb_hope_stuff_bound(bits) + len - done);
	uint8_t    *back;
	uint8_t    *out;
	uint64_t	used;
	size_t		n;

	*size = hyb_hope_stuff(code, bits, stuffed);
	if (memchr(stuffed, 0, *size) != NULL)
		abort();
	memcpy(stuffed + *size, key + done, len - done);
	*size += len - done;
	back = malloc(*size + 16);
	n = hyb_hope_unstuff(stuffed, *size, back);
	out = malloc(hyb_hope_decode_bound(hope, n));
	n = hyb_hope_decode(hope, back, n, MOST, out, &used);
	if (n != done || (done > 0 && memcmp(out, key, done) != 0) || used != bits ||
		hyb_hope_stuffed_length(stuffed, *size, used) != *size - (len - done))
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
	for (uint32_t i = 0; i + 1 < n; i++)
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

/* Any bytes decode to something. */
static void
decode_any(const HybHope *hope, const uint8_t *data, size_t size)
{
	size_t		n = size < 300 ? size : 300;
	uint8_t    *code = malloc(n + 16);
	uint8_t    *out;
	uint64_t	used;

	n = hyb_hope_unstuff(data + size - n, n, code);
	out = malloc(hyb_hope_decode_bound(hope, n));
	(void) hyb_hope_decode(hope, code, n, MOST, out, &used);
	free(out);
	free(code);
}

/* Where the keys are in bytes 2 to `size`, at most MAXKEYS; returns how many. */
static uint32_t
split(const uint8_t *data, size_t size, uint32_t *off)
{
	uint32_t	n = 0;

	off[0] = 2;
	for (size_t i = 2; i < size && n < MAXKEYS - 1; i++)
		if (data[i] == data[1])
			off[++n] = (uint32_t) i + 1;
	off[++n] = (uint32_t) size;
	return n;
}

/* Stored form of a dictionary of these keys. */
static uint8_t *
learn(int scheme, const uint8_t *data, size_t size, size_t *stored_size)
{
	uint32_t	off[MAXKEYS + 1];
	HybHopeSample sample = {data, off, split(data, size, off)};
	HybHope    *hope = hyb_hope_build((HybHopeScheme) scheme,
									  HYB_HOPE_MIN_ENTRIES, &sample, &memory);
	uint8_t    *stored;

	*stored_size = hyb_hope_store(hope, NULL);
	stored = malloc(*stored_size);
	hyb_hope_store(hope, stored);
	hyb_hope_free(hope);
	return stored;
}

static const char text[] = "??http://www.example.com/?http://www.example.org/a?"
"the quick brown fox?the lazy dog?user@example.com?\1\2\377\377\376?aaaaaaaa?";

/* The dictionary of the text. */
static const HybHope *
learned(int scheme)
{
	static HybHope *all[HYB_HOPE_NSCHEMES + 1];

	if (all[scheme] == NULL)
	{
		size_t		size;
		uint8_t    *stored = learn(scheme, (const uint8_t *) text,
								   sizeof(text), &size);

		all[scheme] = hyb_hope_load(stored, size, &memory);
		if (all[scheme] == NULL)
			abort();
		free(stored);
	}
	return all[scheme];
}

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern size_t hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t	off[MAXKEYS + 1];
	int			scheme;
	unsigned	sum = 0;
	HybHope    *loaded = NULL;
	uint8_t    *copy;

	if (size < 2 || size > 20000)
		return 0;
	for (size_t i = 0; i < size; i++)
		sum += data[i];
	scheme = 1 + (data[0] >> 3) % HYB_HOPE_NSCHEMES;
	if ((data[0] & 7) == LOAD)
	{
		/* a piece of its own, so that reads beyond it are noticed */
		copy = memcpy(malloc(size - 1), data + 1, size - 1);
		loaded = hyb_hope_load(copy, size - 1, &memory);
		free(copy);
		if (loaded == NULL)
			return 0;
		decode_any(loaded, data, size);
		size = size < 1000 ? size : 1000;
		check_keys(loaded, data, off, split(data, size, off));
	}
	else if ((data[0] & 7) == LEARN && size < 600 &&
			 sum % (scheme == HYB_HOPE_DOUBLE_CHAR ? 128 : 16) == 0)
	{
		size_t		stored_size;

		copy = learn(scheme, data, size, &stored_size);
		loaded = hyb_hope_load(copy, stored_size, &memory);
		free(copy);
		if (loaded == NULL)
			abort();
		decode_any(loaded, data, size);
		check_keys(loaded, data, off, split(data, size, off));
	}
	else
	{
		size = size < 4096 ? size : 4096;
		decode_any(learned(scheme), data, size);
		check_keys(learned(scheme), data, off, split(data, size, off));
	}
	if (loaded != NULL)
		hyb_hope_free(loaded);
	return 0;
}

size_t
hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max)
{
	int			scheme = 1 + (int) (i % HYB_HOPE_NSCHEMES);

	if (i >= 3 * HYB_HOPE_NSCHEMES)
		return 0;
	data[0] = (uint8_t) ((scheme - 1) << 3);
	if (i < HYB_HOPE_NSCHEMES)
	{
		size_t		size;
		uint8_t    *stored = learn(scheme, (const uint8_t *) text,
								   sizeof(text), &size);
		bool		fits = size < max;

		if (fits)
			memcpy(data + 1, stored, size);
		free(stored);
		data[0] |= LOAD;
		if (fits)
			return size + 1;
	}
	data[0] |= i < 2 * HYB_HOPE_NSCHEMES ? LEARN : LOAD + 1;
	memcpy(data + 1, text + 1, sizeof(text) - 1);
	return sizeof(text);
}
