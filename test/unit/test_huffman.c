/*
 * test_huffman.c
 *		Huffman codes: strings come back, and sizes are what was announced.
 *		Damaged codes and strings are read within bounds.
 */
#include "algo/huffman.h"
#include "unit.h"

#define STRINGS	200
#define MAXLEN	60

static uint8_t text[STRINGS][MAXLEN];
static uint32_t length[STRINGS];

static void
make(int shape)
{
	uint32_t	alphabet = shape == 0 ? 1 : shape == 1 ? 2 : shape == 2 ? 26 : 256;

	for (int i = 0; i < STRINGS; i++)
	{
		length[i] = unit_below(MAXLEN + 1);
		for (uint32_t j = 0; j < length[i]; j++)
		{
			uint32_t	c = unit_below(alphabet);

			/* skewed, so that code lengths differ up to the limit */
			if (shape == 4)
				c = (uint32_t) __builtin_ctz((unsigned) unit_random() | 0x80000000u) * 3;
			text[i][j] = (uint8_t) (c + (shape == 2 ? 'a' : 0));
		}
	}
}

static void
test_round(int shape)
{
	uint32_t	freq[256] = {0};
	HybHuffEntry table[HYB_HUFF_TABLE];
	uint8_t		out[MAXLEN];
	HybHuffEncoder enc;
	HybHuffDecoder dec;
	uint8_t    *code;
	bool		same = true;

	make(shape);
	for (int i = 0; i < STRINGS; i++)
	{
		for (uint32_t j = 0; j < length[i]; j++)
			freq[text[i][j]]++;
	}
	CHECK(hyb_huff_build(&enc, freq), "shape %d: build", shape);
	code = calloc(1, enc.size + 8);
	CHECK(hyb_huff_write_code(&enc, code) == code + enc.size,
		  "shape %d: size of the code", shape);
	CHECK(hyb_huff_open(&dec, code, code + enc.size) == code + enc.size,
		  "shape %d: open", shape);
	CHECK(hyb_huff_open(&dec, code, code + enc.size - 1) == NULL,
		  "shape %d: cut short", shape);
	hyb_huff_open(&dec, code, code + enc.size);
	hyb_huff_fill_table(&dec, table);

	for (int i = 0; i < STRINGS; i++)
	{
		uint32_t	size = hyb_huff_size(&enc, text[i], length[i]);
		uint8_t    *s = malloc(size + 8);
		uint32_t	max = unit_below(MAXLEN + 1);
		HybHuffReader r;

		same &= hyb_huff_encode(&enc, text[i], length[i], s) == s + size;
		same &= hyb_huff_decode(&dec, NULL, s, size, out, MAXLEN) == length[i];
		same &= memcmp(out, text[i], length[i]) == 0;
		same &= hyb_huff_decode(&dec, table, s, size, out, MAXLEN) == length[i];
		same &= memcmp(out, text[i], length[i]) == 0;
		same &= hyb_huff_decode(&dec, table, s, size, out, max) ==
			(max < length[i] ? max : length[i]);
		hyb_huff_reader_init(&r, s, size);
		for (uint32_t j = 0; j < length[i]; j++)
			same &= hyb_huff_next(&dec, &r) == text[i][j];
		same &= hyb_huff_next(&dec, &r) == -1;
		free(s);
	}
	CHECK(same, "shape %d: strings", shape);

	/* damage: whatever opens must decode within bounds, and both ways alike */
	for (int k = 0; k < 50; k++)
	{
		uint8_t		s[MAXLEN + 8];
		uint8_t		out2[MAXLEN];
		uint32_t	n = unit_below(MAXLEN);

		code[unit_below(unit_below(2) && enc.size > 12 ? 12 : enc.size)] = (uint8_t) (unit_random() & 15);
		if (hyb_huff_open(&dec, code, code + enc.size) == NULL)
			continue;
		hyb_huff_fill_table(&dec, table);
		for (uint32_t j = 0; j < sizeof(s); j++)
			s[j] = (uint8_t) unit_random();
		same &= hyb_huff_decode(&dec, NULL, s, n, out, MAXLEN) ==
			hyb_huff_decode(&dec, table, s, n, out2, MAXLEN);
	}
	CHECK(same, "shape %d: damage", shape);
	free(code);
}

static void
test_limit(void)
{
	uint32_t	freq[256] = {0};
	uint32_t	a = 1;
	uint32_t	b = 1;
	uint64_t	kraft = 0;
	HybHuffEncoder enc;

	/* Fibonacci weights ask for the longest codes of all */
	for (int i = 0; i < 40; i++)
	{
		uint32_t	c = a + b;

		freq[i * 5] = a;
		a = b;
		b = c;
	}
	CHECK(hyb_huff_build(&enc, freq), "build");
	for (int i = 0; i < 256; i++)
	{
		CHECK((enc.len[i] > 0) == (freq[i] > 0) && enc.len[i] <= HYB_HUFF_MAXLEN,
			  "byte %d has length %d", i, enc.len[i]);
		if (enc.len[i] > 0)
			kraft += HYB_HUFF_TABLE >> enc.len[i];
	}
	CHECK(kraft < HYB_HUFF_TABLE, "no code is left free");

	memset(freq, 0, sizeof(freq));
	CHECK(!hyb_huff_build(&enc, freq), "nothing to code");
}

int
main(void)
{
	for (int round = 0; round < 200; round++)
		test_round(round % 5);
	test_limit();
	return unit_report("huffman");
}
