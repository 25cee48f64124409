/*
 * fuzz_grafite.c
 *		Fuzz target: a Grafite filter of the input's numbers, and the input as an
 *		image.
 *
 * The first byte says what the rest is.  With bit 0 it is an image, and each question
 * about it must have some answer.  If the image is sound, that is not "damaged".
 * Without bit 0 the rest is keys, and bits 1 to 5 are the low bits of codes.  A key has
 * a byte with its length, of 0 to 8 bytes, and with the group in the high bits.  Its
 * bytes follow.  All keys must be found, and every range between two of a group.
 */
#include <stdlib.h>

#include "algo/bits.h"
#include "algo/grafite.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern size_t hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max);

static HybGrafiteBuilder builder;
static HybGrafiteKey keys[HYB_GRAFITE_MAX_KEYS];

static void
require(bool condition)
{
	if (!condition)
		abort();
}

static void
ask_everything(const uint8_t *data, size_t size)
{
	uint8_t    *image = malloc(size > 0 ? size : 1);
	bool		sound;

	if (image == NULL)
		abort();
	memcpy(image, data, size);
	sound = hyb_grafite_verify(image, size) == NULL;
	for (uint32_t i = 0; i < 64; i++)
	{
		uint64_t	low = hyb_hash_mix(i) >> i;
		uint64_t	high = low + (hyb_hash_mix(i + 100) >> (64 - i % 60 - 1));

		if (hyb_grafite_ask(image, size, i % 2, low, high) == HYB_ANSWER_DAMAGED)
			require(!sound);
	}
	free(image);
}

static void
check_keys(unsigned low_bits, const uint8_t *data, size_t size)
{
	uint32_t	n = 0;
	size_t		at = 0;
	uint8_t    *image;

	while (at < size && n < HYB_GRAFITE_MAX_KEYS)
	{
		unsigned	len = data[at] & 15;
		HybGrafiteKey key = {.group = data[at] >> 6};

		at++;
		for (; len > 0 && at < size; len--)
			key.number = key.number << 8 | data[at++];
		keys[n++] = key;
	}
	size = hyb_grafite_build(&builder, keys, n, low_bits);
	require((size > 0) == (n > 0));
	if (size == 0)
		return;
	image = malloc(size);
	if (image == NULL)
		abort();
	hyb_grafite_write(&builder, 1, 2, image);
	require(hyb_grafite_verify(image, size) == NULL);
	for (uint32_t i = 0; i < n; i++)
	{
		const HybGrafiteKey *key = &keys[i];
		const HybGrafiteKey *next = &keys[(i + 1) % n];
		uint64_t	distance = key->number < next->number ? next->number - key->number : 0;

		require(hyb_grafite_ask(image, size, key->group, key->number, key->number) ==
				HYB_ANSWER_MAYBE);
		require(hyb_grafite_ask(image, size, key->group, key->number,
								key->number + distance / 2) == HYB_ANSWER_MAYBE);
		require(hyb_grafite_ask(image, size, key->group,
								key->number - (key->number < distance ? key->number : distance),
								key->number) == HYB_ANSWER_MAYBE);
	}
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
		check_keys(data[0] >> 1 & 31, data + 1, size - 1);
	return 0;
}

/* Images of 30 numbers, and of more and more; every other one dense. */
size_t
hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max)
{
	uint32_t	n = 30u << i;
	size_t		len;

	if (i >= 8)
		return 0;
	for (uint32_t k = 0; k < n; k++)
		keys[k] = (HybGrafiteKey)
	{
		.number = i % 2 ? hyb_hash_mix(k) : 7 * k
	};
	len = hyb_grafite_build(&builder, keys, n, 14);
	if (len == 0 || len + 1 > max)
		return 0;
	data[0] = 1;
	hyb_grafite_write(&builder, 1, 2, data + 1);
	return len + 1;
}
