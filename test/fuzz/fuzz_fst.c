/*
 * fuzz_fst.c
 *		Fuzz target: a Fast Succinct Trie of the input's keys, and the input as
 *		an image.
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -I../../src fuzz_fst.c ../../src/algo/fst*.c
 *	gcc -DFUZZ_FILES ... reads inputs from the files it is given
 *
 * The first byte says what the rest is.  With bit 0 it is an image, and each question
 * about it must have some answer.  Without bit 0 the rest is keys, each a length byte
 * and its bytes.  All keys must be found, as points and in ranges.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/fst.h"

#define MAXKEYS	512

typedef struct Key
{
	const uint8_t *data;
	uint32_t	len;
} Key;

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
ask_everything(const HybFst *fst, const uint8_t *data, uint32_t size)
{
	for (uint32_t i = 0; i < size && i < 64; i++)
	{
		uint32_t	n = size - i < 16 ? size - i : 16;
		HybFstCut	low = {data + i, n, (HybFstCutSide) (i % 3)};
		HybFstCut	high = {data + size - n, n, (HybFstCutSide) (i / 3 % 3)};

		(void) hyb_fst_lookup(fst, data + i, n);
		(void) hyb_fst_range(fst, &low, &high);
	}
}

static void
require(bool condition)
{
	if (!condition)
		abort();
}

/* Nothing frees a builder, so each number of bits has one. */
static HybFstBuilder *
builder_of(unsigned suffix)
{
	static HybFstBuilder *builders[HYB_FST_MAX_SUFFIX + 1];
	HybFstBuilder **place = &builders[suffix];

	if (*place == NULL)
		*place = hyb_fst_builder_create(resize, suffix);
	hyb_fst_builder_reset(*place);
	return *place;
}

static void
check_keys(Key *keys, uint32_t n, unsigned suffix)
{
	HybFstBuilder *b = builder_of(suffix);
	uint32_t	distinct = 0;
	size_t		size;
	uint8_t    *image;
	HybFst		fst;

	for (uint32_t i = 0; i < n; i++)
	{
		require(hyb_fst_builder_add(b, keys[i].data, keys[i].len));
		if (i == 0 || compare_keys(&keys[i - 1], &keys[i]) != 0)
			keys[distinct++] = keys[i];
	}
	size = hyb_fst_builder_finish(b);
	image = resize(NULL, size);
	hyb_fst_builder_write(b, image);
	require(hyb_fst_open(&fst, image, size) && hyb_fst_verify(&fst) == NULL &&
			fst.nkeys == distinct);
	for (uint32_t i = 0; i < distinct; i++)
	{
		const Key  *other = &keys[(i * 7) % distinct];
		const Key  *first = compare_keys(&keys[i], other) <= 0 ? &keys[i] : other;
		const Key  *last = first == other ? &keys[i] : other;
		HybFstCut	low = {first->data, first->len, HYB_CUT_BEFORE};
		HybFstCut	high = {last->data, last->len, HYB_CUT_SELF};

		require(hyb_fst_lookup(&fst, keys[i].data, keys[i].len) == HYB_ANSWER_MAYBE);
		require(hyb_fst_range(&fst, &low, &high) == HYB_ANSWER_MAYBE);
	}
	free(image);
}

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t		how;

	if (size < 2 || size > 100000)
		return 0;
	how = *data++;
	size--;
	if (how & 1)
	{
		uint8_t    *image = resize(NULL, size);
		HybFst		fst;

		memcpy(image, data, size);
		if (hyb_fst_open(&fst, image, size))
		{
			(void) hyb_fst_verify(&fst);
			ask_everything(&fst, data, (uint32_t) size);
		}
		free(image);
	}
	else
	{
		Key			keys[MAXKEYS];
		uint32_t	n = 0;
		size_t		at = 0;

		while (n < MAXKEYS && at < size)
		{
			uint32_t	len = data[at++];

			if (len > size - at)
				len = (uint32_t) (size - at);
			keys[n].data = data + at;
			keys[n++].len = len;
			at += len;
		}
		qsort(keys, n, sizeof(Key), compare_keys);
		check_keys(keys, n, how >> 1 & 31);
	}
	return 0;
}

#ifdef FUZZ_FILES
int
main(int argc, char **argv)
{
	static uint8_t data[100000];

	for (int i = 1; i < argc; i++)
	{
		FILE	   *f = fopen(argv[i], "rb");

		if (f == NULL)
		{
			perror(argv[i]);
			return 1;
		}
		LLVMFuzzerTestOneInput(data, fread(data, 1, sizeof(data), f));
		fclose(f);
	}
	return 0;
}
#endif
