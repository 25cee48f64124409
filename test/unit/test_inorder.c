/*
 * test_inorder.c
 *		Strings made shorter in order come back.  Codes are in the order of the
 *		strings, and their bytes never change.  Any bytes can be decoded.
 */
#include "algo/inorder.h"
#include "unit.h"

#define MAXLEN	3000

/* Of the codes of strings that never change */
#define FORMAT_TOTAL	26316
#define FORMAT_SUM		UINT32_C(3472879262)

static size_t
encode(const uint8_t *text, size_t len, size_t skip, uint8_t *code, size_t limit)
{
	uint8_t    *exact = malloc(limit);
	size_t		n = hyb_inorder_encode(text, len, skip, exact, limit);

	memcpy(code, exact, n);
	free(exact);
	return n;
}

/* Bytes of few or many kinds, with what was there before in between */
static void
make(uint8_t *text, size_t len, int shape)
{
	size_t		i = 0;

	while (i < len)
	{
		if (i > 10 && unit_below(4) < (uint32_t) shape % 4)
		{
			size_t		from = unit_below((uint32_t) i);

			for (uint32_t n = unit_below(60); n > 0 && i < len; n--)
				text[i++] = text[from++];
		}
		else
			text[i++] = (uint8_t) (unit_below(shape < 4 ? 256 : 3) + (shape < 4 ? 0 : 'a'));
	}
}

static int
order(const uint8_t *a, size_t alen, const uint8_t *b, size_t blen)
{
	int			c = memcmp(a, b, alen < blen ? alen : blen);

	return c != 0 ? (c > 0) - (c < 0) : (alen > blen) - (alen < blen);
}

static void
test_round(void)
{
	for (int i = 0; i < 400; i++)
	{
		uint8_t		text[MAXLEN];
		uint8_t		code[2 * MAXLEN + 8];
		size_t		len = 1 + unit_below(i % 10 == 0 ? MAXLEN : 100);
		size_t		skip = unit_below((uint32_t) len);
		uint8_t    *back = malloc(len);
		size_t		n;

		make(text, len, i % 8);
		n = encode(text, len, skip, code, sizeof(code));
		CHECK(n > 0 && code[n - 1] != 0, "string %d of %zu", i, len);
		memcpy(back, text, skip);
		CHECK(hyb_inorder_decode(code, n, back, skip, len) == len &&
			  memcmp(back, text, len) == 0, "string %d of %zu back", i, len);
		CHECK(hyb_inorder_decode(code, n, back, skip, len - 1) == 0,
			  "string %d of %zu in less room", i, len);
		CHECK(n < 8 || encode(text, len, skip, code, n - 1) == 0,
			  "string %d of %zu where there is no room", i, len);
		free(back);
	}
}

static void
test_order(void)
{
	for (int i = 0; i < 4000; i++)
	{
		uint8_t		a[200];
		uint8_t		b[200];
		uint8_t		acode[500];
		uint8_t		bcode[500];
		size_t		skip = unit_below(20);
		size_t		alen = skip + 1 + unit_below(60);
		size_t		blen = skip + 1 + unit_below(60);
		size_t		common = skip + unit_below(60);
		size_t		an;
		size_t		bn;

		make(a, sizeof(a), i % 8);
		memcpy(b, a, sizeof(b));
		make(b + common, sizeof(b) - common, i % 8);
		an = encode(a, alen, skip, acode, sizeof(acode));
		bn = encode(b, blen, skip, bcode, sizeof(bcode));
		CHECK(memcmp(a, b, skip) == 0 && an > 0 && bn > 0 &&
			  order(a, alen, b, blen) == order(acode, an, bcode, bn),
			  "pair %d: %zu and %zu bytes", i, alen, blen);
	}
}

/* What is on disk stays what it is. */
static void
test_format(void)
{
	uint8_t		text[2000];
	uint8_t		code[4008];
	size_t		total = 0;
	uint32_t	sum = 0;

	unit_seed = 12345;
	for (int i = 0; i < 64; i++)
	{
		size_t		n;

		make(text, sizeof(text), i % 8);
		n = encode(text, sizeof(text), (size_t) i * 10, code, sizeof(code));
		total += n;
		for (size_t j = 0; j < n; j++)
			sum = sum * 31 + code[j];
	}
	CHECK(total == FORMAT_TOTAL && sum == FORMAT_SUM, "%zu bytes, sum %u", total, sum);

	/* what is said again takes next to nothing, noise its own length */
	memset(text, 'x', sizeof(text));
	total = encode(text, sizeof(text), 0, code, sizeof(code));
	CHECK(total < 20, "%zu", total);
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t) unit_random();
	total = encode(text, sizeof(text), 0, code, sizeof(code));
	CHECK(total < 2020, "%zu", total);
}

static void
test_any_bytes(void)
{
	uint8_t    *out = malloc(HYB_INORDER_MAX);

	for (int i = 0; i < 300; i++)
	{
		size_t		n = unit_below(100);
		size_t		skip = unit_below(30);
		uint8_t    *code = malloc(n + 1);
		size_t		len;

		for (size_t j = 0; j < n; j++)
			code[j] = unit_below(3) == 0 ? 0xFF : (uint8_t) unit_random();
		memset(out, 'y', skip);
		len = hyb_inorder_decode(code, n, out, skip, HYB_INORDER_MAX);
		CHECK(len == 0 || len >= skip, "bytes %d", i);
		free(code);
	}
	CHECK(hyb_inorder_encode(NULL, HYB_INORDER_MAX + 1, 0, out, 8) == 0, "too long");
	free(out);
}

int
main(void)
{
	test_round();
	test_order();
	test_format();
	test_any_bytes();
	return unit_report("inorder");
}
