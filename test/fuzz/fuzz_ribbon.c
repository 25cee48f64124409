/*
 * fuzz_ribbon.c
 *		Fuzz target: a ribbon filter of the input's hashes, and the input as an
 *		image.
 *
 * The first byte says what the rest is.  With bit 0 it is an image, and each question
 * about it must have some answer.  Without bit 0 the rest is hashes.  A hash has a
 * byte with its length, of 0 to 8 bytes, and with how often it comes.  Its bytes
 * follow.  All hashes must be found.
 */
#include <stdlib.h>

#include "algo/ribbon.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern size_t hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max);

static HybRibbonBuilder builder;
static uint64_t hashes[HYB_RIBBON_MAX_KEYS];

static void
require(bool condition)
{
	if (!condition)
		abort();
}

static uint8_t *
copy_of(const uint8_t *data, size_t size)
{
	uint8_t    *copy = malloc(size > 0 ? size : 1);

	if (copy == NULL)
		abort();
	memcpy(copy, data, size);
	return copy;
}

static void
ask_everything(const uint8_t *data, size_t size)
{
	uint8_t    *image = copy_of(data, size);
	bool		sound = hyb_ribbon_verify(image, size) == NULL;

	for (size_t i = 0; i < 64; i++)
	{
		uint64_t	hash = hyb_byte_hash(image, (uint32_t) (size > i ? size - i : 0));

		require((hyb_ribbon_ask(image, size, hash) != HYB_ANSWER_NO_HEADER) == sound);
	}
	free(image);
}

static void
check_hashes(const uint8_t *data, size_t size, unsigned bits)
{
	uint32_t	n = 0;
	size_t		at = 0;
	uint8_t    *image;

	while (at < size)
	{
		unsigned	len = data[at] & 15;
		unsigned	times = 1 + (data[at] >> 4);
		uint64_t	hash = 0;

		at++;
		for (; len > 0 && at < size; len--)
			hash = hash << 8 | data[at++];
		while (times-- > 0 && n < HYB_RIBBON_MAX_KEYS)
			hashes[n++] = hash;
	}
	size = hyb_ribbon_build(&builder, hashes, n, HYB_RIBBON_BITS + bits);
	require((size > 0) == (n > 0));
	if (size == 0)
		return;
	image = malloc(size);
	if (image == NULL)
		abort();
	hyb_ribbon_write(&builder, image);
	require(hyb_ribbon_verify(image, size) == NULL);
	for (uint32_t i = 0; i < n; i++)
		require(hyb_ribbon_ask(image, size, hashes[i]) == HYB_ANSWER_MAYBE);
	free(image);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > 100000)
		return 0;
	if (data[0] & 1)
		ask_everything(data + 1, size - 1);
	else
		check_hashes(data + 1, size - 1,
					 (data[0] >> 1) % (HYB_RIBBON_MAX_BITS - HYB_RIBBON_BITS + 1));
	return 0;
}

/* Images of 30 hashes, and of more and more. */
size_t
hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max)
{
	uint32_t	n = 30u << i;
	size_t		len;

	if (i >= 8)
		return 0;
	for (uint32_t h = 0; h < n; h++)
		hashes[h] = (h + 1) * UINT64_C(0x9E3779B97F4A7C15);
	len = hyb_ribbon_build(&builder, hashes, n,
						   i % 2 == 0 ? HYB_RIBBON_BITS : HYB_RIBBON_MAX_BITS);
	if (len == 0 || len + 1 > max)
		return 0;
	data[0] = 1;
	hyb_ribbon_write(&builder, data + 1);
	return len + 1;
}
