/*
 * test_grafite.c
 *		Grafite filters deny no range that has a number of the set.  They deny
 *		other ranges as often as promised, wherever these lie.
 *
 * Images are small, and their bytes never change.  Damaged ones are read within
 * bounds.
 */
#include "algo/bits.h"
#include "algo/grafite.h"
#include "unit.h"

#define MAXKEYS	HYB_GRAFITE_MAX_KEYS

/* Of images of keys that never change */
#define FORMAT_SUM	UINT64_C(9878848302957809454)

static HybGrafiteBuilder builder;
static HybGrafiteKey keys[MAXKEYS + 1];

/* An image whose bounds the sanitizer watches. */
static uint8_t *
build(uint32_t n, unsigned low_bits, size_t *size)
{
	uint8_t    *image;

	*size = hyb_grafite_build(&builder, keys, n, low_bits);
	if (*size == 0)
		return NULL;
	image = malloc(*size);
	hyb_grafite_write(&builder, 7, 200, image);
	return image;
}

/*
 * Shapes of sets: random numbers; neighbours; at distances of up to a million;
 * the least and the greatest numbers there are; few, each several times; and
 * groups of neighbours.
 */
#define SHAPES	6

static void
make_keys(uint32_t n, int shape)
{
	uint64_t	number = unit_random() >> (shape == 5 ? 20 : 4);

	for (uint32_t i = 0; i < n; i++)
	{
		keys[i].group = 42;
		if (shape == 0)
			number = unit_random();
		else if (shape == 1)
			number++;
		else if (shape == 2)
			number += 1 + unit_below(1000000);
		else if (shape == 3)
			number = unit_below(2) == 0 ? unit_below(1000) : ~(uint64_t) unit_below(1000);
		else if (shape == 4)
			number += unit_below(10) == 0 ? 1 + unit_below(100) : 0;
		else
		{
			keys[i].group = hyb_hash_mix(i / 100);
			number = i % 100 == 0 ? unit_random() >> 20 : number + 1 + unit_below(3);
		}
		keys[i].number = number;
	}
}

static bool
has_number(uint32_t n, uint64_t group, uint64_t low, uint64_t high)
{
	for (uint32_t i = 0; i < n; i++)
		if (keys[i].group == group && keys[i].number >= low && keys[i].number <= high)
			return true;
	return false;
}

/* Beside every number, and around some, ranges of all lengths. */
static void
test_set(uint32_t n, int shape, unsigned low_bits)
{
	size_t		size;
	uint8_t    *image;
	uint8_t		first;
	uint8_t		second;

	make_keys(n, shape);
	image = build(n, low_bits, &size);
	CHECK(hyb_grafite_verify(image, size) == NULL, "%u, shape %d", n, shape);
	CHECK(hyb_grafite_numbers(image, size, &first, &second) && first == 7 && second == 200,
		  "%u, %u", first, second);
	CHECK(size * 8.0 <= n * (low_bits + 2.3) + 200, "%zu bytes for %u keys", size, n);
	for (uint32_t i = 0; i < n; i++)
		CHECK(hyb_grafite_ask(image, size, keys[i].group, keys[i].number, keys[i].number) ==
			  HYB_ANSWER_MAYBE, "number %u of %u, shape %d", i, n, shape);
	for (int i = 0; i < 2000; i++)
	{
		const HybGrafiteKey *key = &keys[unit_below(n)];
		uint64_t	len = unit_random() >> (unit_below(64));
		uint64_t	low = key->number - (unit_below(2) ? len : unit_random() >> unit_below(64));
		uint64_t	high = low + len;

		if (high < low)
			high = ~UINT64_C(0);
		if (hyb_grafite_ask(image, size, key->group, low, high) == HYB_ANSWER_NO)
			CHECK(!has_number(n, key->group, low, high), "shape %d, %u keys, [%llu, %llu]",
				  shape, n, (unsigned long long) low, (unsigned long long) high);
	}
	CHECK(hyb_grafite_ask(image, size, keys[0].group, 5, 4) == HYB_ANSWER_NO, "an empty range");
	CHECK(hyb_grafite_ask(image, size, keys[0].group, 0, ~UINT64_C(0)) == HYB_ANSWER_MAYBE, "all");
	free(image);
}

static void
test_sets(void)
{
	static const uint32_t sizes[] = {1, 2, 31, 32, 33, 63, 64, 65, 128, 129, 1000, 8192};

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (int shape = 0; shape < SHAPES; shape++)
			test_set(sizes[i], shape, unit_below(49));
	for (int i = 0; i < 200; i++)
		test_set(1 + unit_below(700), i % SHAPES, unit_below(24));
	CHECK(hyb_grafite_build(&builder, keys, 0, 10) == 0, "no keys");
	CHECK(hyb_grafite_build(&builder, keys, MAXKEYS + 1, 10) == 0, "too many");
}

/*
 * Ranges begin just behind a number of the set, which no range filter of prefixes
 * tells apart.  A number of the set is found as often as the range's length and the
 * bits say, and no more.
 */
static void
test_correlated(uint64_t len, uint64_t distance)
{
	const uint32_t n = 900;
	const unsigned low_bits = 16;
	double		bound = (double) len / (1 << low_bits);
	uint32_t	asked = 0;
	uint32_t	positives = 0;

	for (int round = 0; round < 40; round++)
	{
		size_t		size;
		uint8_t    *image;

		make_keys(n, 0);
		image = build(n, low_bits, &size);
		for (uint32_t i = 0; i < n; i++)
		{
			uint64_t	low = keys[i].number + distance;

			if (low + len - 1 < low || has_number(n, 42, low, low + len - 1))
				continue;
			asked++;
			positives += hyb_grafite_ask(image, size, 42, low, low + len - 1) != HYB_ANSWER_NO;
		}
		free(image);
	}
	CHECK(asked > 30000, "%u", asked);
	CHECK(positives <= asked * bound * 1.1 + 20, "%u of %u, length %llu", positives, asked,
		  (unsigned long long) len);
	CHECK(positives >= asked * bound * 0.7 - 20, "%u of %u, length %llu", positives, asked,
		  (unsigned long long) len);
}

/* Numbers that lie close together are all told apart, with fewer bits. */
static void
test_dense(void)
{
	size_t		size;
	uint8_t    *image;
	unsigned	others = 0;

	for (uint32_t i = 0; i < 1000; i++)
	{
		keys[i].group = 1;
		keys[i].number = 1000000 + 10 * i;
	}
	image = build(1000, 30, &size);
	CHECK(size <= 1000 * 7 / 8, "%zu", size);
	for (uint64_t x = 1000000; x <= 1009990; x++)
		CHECK((hyb_grafite_ask(image, size, 1, x, x) == HYB_ANSWER_MAYBE) == (x % 10 == 0),
			  "%llu", (unsigned long long) x);
	for (uint64_t group = 2; group < 1002; group++)
		others += hyb_grafite_ask(image, size, group, 1000000, 1000000) == HYB_ANSWER_MAYBE;
	CHECK(others < 20, "%u", others);
	for (uint64_t x = 1000001; x < 1009990; x += 10)
		CHECK(hyb_grafite_ask(image, size, 1, x, x + 8) == HYB_ANSWER_NO, "%llu",
			  (unsigned long long) x);
	free(image);
}

/* Another compiler, machine or version has to read what this one wrote. */
static void
test_format(void)
{
	static const uint32_t sizes[] = {10, 70, 300, 777, 2000};
	uint64_t	sum = 0;

	for (uint32_t s = 0; s < 5; s++)
	{
		size_t		size;
		uint8_t    *image;

		for (uint32_t i = 0; i < sizes[s]; i++)
		{
			keys[i].group = s < 3 ? 5 : hyb_hash_mix(i % 3);
			keys[i].number = i * UINT64_C(1234567891) + s;
		}
		image = build(sizes[s], 12 + s, &size);
		sum = sum * 31 + hyb_byte_hash(image, (uint32_t) size);
		free(image);
	}
	CHECK(sum == FORMAT_SUM, "%llu", (unsigned long long) sum);
}

static void
test_damage(void)
{
	for (int round = 0; round < 20000; round++)
	{
		uint32_t	n = 1 + unit_below(300);
		size_t		size;
		size_t		cut;
		uint8_t    *image;
		uint8_t    *damaged;

		make_keys(n, round % SHAPES);
		image = build(n, unit_below(20), &size);
		cut = unit_below(3) == 0 ? unit_below((uint32_t) size) : size;
		damaged = malloc(cut);
		memcpy(damaged, image, cut);
		for (uint32_t i = unit_below(4); cut > 0 && i > 0; i--)
			damaged[unit_below(unit_below(2) ? (uint32_t) cut : cut < 4 ? (uint32_t) cut : 4)] =
				(uint8_t) unit_random();
		for (uint32_t i = 0; i < 30; i++)
			if (hyb_grafite_ask(damaged, cut, keys[i % n].group, keys[i % n].number,
								keys[i % n].number | unit_below(1000)) == HYB_ANSWER_DAMAGED &&
				hyb_grafite_verify(damaged, cut) == NULL)
				CHECK(false, "asked and verified, round %d", round);
		CHECK(cut == size || hyb_grafite_verify(damaged, cut) != NULL, "cut to %zu of %zu", cut, size);
		free(damaged);
		free(image);
	}
}

int
main(void)
{
	test_sets();
	test_correlated(1, 1);
	test_correlated(16, 1);
	test_correlated(1024, 1);
	test_correlated(1024, 70000);
	test_correlated(10000, 5);
	test_dense();
	test_format();
	test_damage();
	return unit_report("grafite");
}
