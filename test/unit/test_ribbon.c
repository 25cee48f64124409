/*
 * test_ribbon.c
 *		Ribbon filters deny no key of the set, and nearly all other keys.
 *
 * Images are small, and their bytes never change.  Damaged ones are read within
 * bounds.
 */
#include "algo/ribbon.h"
#include "unit.h"

#define MAXKEYS	HYB_RIBBON_MAX_KEYS

/* Of images of keys that never change */
#define FORMAT_SUM	UINT64_C(11442092700030990978)

static HybRibbonBuilder builder;
static uint64_t hashes[MAXKEYS];

/* An image whose bounds the sanitizer watches. */
static uint8_t *
build_bits(uint32_t n, unsigned bits, size_t *size)
{
	uint8_t    *image;

	*size = hyb_ribbon_build(&builder, hashes, n, bits);
	if (*size == 0)
		return NULL;
	image = malloc(*size);
	hyb_ribbon_write(&builder, image);
	return image;
}

static uint8_t *
build(uint32_t n, size_t *size)
{
	return build_bits(n, HYB_RIBBON_BITS, size);
}

/* Hashes of keys: of 8 random bytes, or of numbers that follow each other. */
static uint64_t
hash_of(uint64_t number)
{
	uint8_t		key[8];

	hyb_store64be(key, number);
	return hyb_byte_hash(key, 8);
}

static void
test_size(uint32_t n, int shape, unsigned bits)
{
	uint64_t	first = unit_random();
	uint32_t	asked = (n < 1000 ? 20000 : 40000) << (bits - HYB_RIBBON_BITS);
	uint32_t	positives = 0;
	double		rate;
	double		expected = 1.0 / (1 << bits);
	size_t		size;
	uint8_t    *image;

	for (uint32_t i = 0; i < n; i++)
		hashes[i] = shape == 0 ? hash_of(unit_random()) :
			shape == 1 ? hash_of(first + i) : hash_of(first + i / 3);
	image = build_bits(n, bits, &size);
	CHECK(image != NULL, "%u keys of shape %d, %u bits", n, shape, bits);
	if (image == NULL)
		return;
	CHECK(hyb_ribbon_verify(image, size) == NULL, "%u keys", n);
	CHECK(size >= hyb_ribbon_least_size(n, bits), "%u keys", n);
	for (uint32_t i = 0; i < n; i++)
		CHECK(hyb_ribbon_ask(image, size, hashes[i]) == HYB_ANSWER_MAYBE,
			  "key %u of %u, shape %d", i, n, shape);

	/* bits a key: those of a place, and hardly more */
	if (n >= 100 && n <= 4600)
		CHECK(size * 8.0 / n < bits * (1.05 + 20.0 / n), "%zu bytes for %u keys", size, n);

	for (uint32_t i = 0; i < asked; i++)
		positives += hyb_ribbon_ask(image, size, hash_of(unit_random())) != HYB_ANSWER_NO;
	rate = (double) positives / asked;
	if (n >= 64)
		CHECK(rate > expected * 0.6 && rate < expected * 1.45, "%f, %u keys", rate, n);
	else
		CHECK(rate < expected * 1.45, "%f, %u keys", rate, n);
	free(image);
}

static void
test_sizes(void)
{
	static const uint32_t sizes[] = {1, 2, 3, 55, 56, 57, 60, 61, 64, 65, 100, 123,
	124, 125, 200, 500, 900, 1000, 2000, 4000, 4600, 8192};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (int shape = 0; shape < 3; shape++)
			test_size(sizes[i], shape, HYB_RIBBON_BITS);
	for (int i = 0; i < 60; i++)
		test_size(1 + unit_below(1500), i % 3, HYB_RIBBON_BITS);
	for (unsigned bits = HYB_RIBBON_BITS + 1; bits <= HYB_RIBBON_MAX_BITS; bits++)
		for (int i = 0; i < 3; i++)
			test_size(60 + unit_below(1500), i, bits);
	CHECK(hyb_ribbon_build(&builder, hashes, 0, HYB_RIBBON_BITS) == 0, "no keys");
	CHECK(hyb_ribbon_build(&builder, hashes, MAXKEYS + 1, HYB_RIBBON_BITS) == 0, "too many");
	CHECK(hyb_ribbon_build(&builder, hashes, 10, HYB_RIBBON_BITS - 1) == 0, "too few bits");
	CHECK(hyb_ribbon_build(&builder, hashes, 10, HYB_RIBBON_MAX_BITS + 1) == 0, "too many bits");
}

/* Keys of one hash, more of them than a ribbon has places. */
static void
test_same(void)
{
	size_t		size;
	uint8_t    *image;

	for (int i = 0; i < 1000; i++)
		hashes[i] = hash_of((uint64_t) (i % 2));
	image = build(1000, &size);
	CHECK(image != NULL, "two keys, 500 times");
	for (int i = 0; i < 2; i++)
		CHECK(hyb_ribbon_ask(image, size, hashes[i]) == HYB_ANSWER_MAYBE, "%d", i);
	free(image);
}

/* Another compiler, machine or version has to read what this one wrote. */
static void
test_format(void)
{
	static const uint32_t sizes[] = {10, 70, 300, 777, 2000};
	uint64_t	sum = 0;

	for (int s = 0; s < 5; s++)
	{
		size_t		size;
		uint8_t    *image;

		for (uint32_t i = 0; i < sizes[s]; i++)
			hashes[i] = hash_of(i * UINT64_C(1234567891234567) + s);
		image = build(sizes[s], &size);
		sum = sum * 31 + hyb_byte_hash(image, (uint32_t) size);
		free(image);
	}
	CHECK(sum == FORMAT_SUM, "%llu", (unsigned long long) sum);
}

static void
test_damage(void)
{
	for (int round = 0; round < 3000; round++)
	{
		uint32_t	n = 1 + unit_below(300);
		size_t		size;
		size_t		cut;
		uint8_t    *image;
		uint8_t    *damaged;

		for (uint32_t i = 0; i < n; i++)
			hashes[i] = unit_random();
		image = build_bits(n, HYB_RIBBON_BITS + unit_below(HYB_RIBBON_MAX_BITS - HYB_RIBBON_BITS + 1), &size);
		cut = unit_below(3) == 0 ? unit_below((uint32_t) size) : size;
		damaged = malloc(cut);
		memcpy(damaged, image, cut);
		for (uint32_t i = unit_below(4); cut > 0 && i > 0; i--)
			damaged[unit_below(unit_below(2) ? (uint32_t) cut : cut < 4 ? (uint32_t) cut : 4)] =
				(uint8_t) unit_random();
		for (uint32_t i = 0; i < 30; i++)
			if ((hyb_ribbon_ask(damaged, cut, hashes[i % n]) == HYB_ANSWER_NO_HEADER) !=
				(hyb_ribbon_verify(damaged, cut) != NULL))
				CHECK(false, "asked and verified, round %d", round);
		CHECK(cut == size || hyb_ribbon_verify(damaged, cut) != NULL, "cut to %zu of %zu", cut, size);
		free(damaged);
		free(image);
	}
}

/* Any flipped bit of a place denies some key of a set that fills it. */
static void
test_flips(void)
{
	uint32_t	n = 500;
	size_t		size;
	uint8_t    *image;
	int			unnoticed = 0;

	for (uint32_t i = 0; i < n; i++)
		hashes[i] = unit_random();
	image = build(n, &size);
	for (size_t bit = HYB_RIBBON_HEADER * 8; bit < size * 8; bit++)
	{
		bool		noticed = false;

		image[bit / 8] ^= (uint8_t) (1 << bit % 8);
		for (uint32_t i = 0; i < n && !noticed; i++)
			noticed = hyb_ribbon_ask(image, size, hashes[i]) == HYB_ANSWER_NO;
		image[bit / 8] ^= (uint8_t) (1 << bit % 8);
		unnoticed += !noticed;
	}
	CHECK(unnoticed == 0, "%d of %zu", unnoticed, size * 8);
	free(image);
}

int
main(void)
{
	test_sizes();
	test_same();
	test_format();
	test_damage();
	test_flips();
	return unit_report("ribbon");
}
