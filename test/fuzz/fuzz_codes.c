/*
 * fuzz_codes.c
 *		Fuzz target: sequences of integers, Huffman codes and front-coded
 *		strings.
 *
 * The first byte says what the rest is: bits 0-1 which code; bit 2: bytes to
 * be read as its stored form, which must not be left, whatever they are.
 * Otherwise integers or strings, which must come back from the stored form.
 * What bits 3-7 and the second byte mean depends on the code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algo/frontcode.h"
#include "algo/huffman.h"
#include "algo/intseq.h"

#define SLACK		8			/* readable bytes that the readers ask for */
#define MAXN		600
#define MAXLEN		400
#define SEQ			0
#define HUFF		1
#define FRONT		2
#define STORED		4

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern size_t hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max);

static void
require(bool condition)
{
	if (!condition)
		abort();
}

/* A piece of its own, so that reads beyond it are noticed. */
static uint8_t *
piece(const uint8_t *data, size_t size)
{
	uint8_t    *copy = calloc(1, size + SLACK);

	if (size > 0)
		memcpy(copy, data, size);
	return copy;
}

/* ---- sequences ---- */

/* All ways to read agree; v: what they give, or NULL. */
static void
read_sequence(const HybSeq *seq, uint32_t n, const uint64_t *v, bool ascending)
{
	uint64_t   *all = malloc(n * sizeof(uint64_t));
	HybSeqCursor cursor = {0, 0};

	for (uint32_t i = 0; i < n; i++)
	{
		all[i] = hyb_seq_get(seq, i);
		if (v != NULL)
			require(all[i] == v[i] && hyb_seq_get_next(seq, &cursor, i) == v[i]);
		else
			(void) hyb_seq_get_next(seq, &cursor, i);
	}
	for (uint32_t k = 0; k < 12; k++)
	{
		uint32_t	from = k * n / 12;
		uint32_t	to = n - k * (n - from) / 20;
		uint64_t   *some = malloc((to - from) * sizeof(uint64_t));
		uint64_t	x = all[(k * 7) % n] + k % 3 - 1;
		uint32_t	at;

		hyb_seq_decode(seq, from, to - from, some);
		if (v != NULL)
			require(memcmp(some, v + from, (to - from) * sizeof(uint64_t)) == 0);
		free(some);
		at = hyb_seq_lower_bound(seq, from, to, x);
		require(at >= from && at <= to);
		if (ascending)
			require((at == from || v[at - 1] < x) && (at == to || v[at] >= x));
	}
	free(all);
}

static int
compare_u64(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/* Integers: bytes in 1 to 8 at a time, summed up, on a line or sorted. */
static uint32_t
make_sequence(int how, const uint8_t *data, size_t size, uint64_t *v)
{
	size_t		width = 1 + (size_t) how % 8;
	uint32_t	n = 0;

	for (; n < MAXN && size >= width; data += width, size -= width)
	{
		v[n] = 0;
		for (size_t i = 0; i < width; i++)
			v[n] = v[n] << 8 | data[i];
		if ((how >> 3) % 4 == 1 && n > 0)
			v[n] += v[n - 1];
		if ((how >> 3) % 4 == 2)
			v[n] += (uint64_t) n * 12345;
		n++;
	}
	if ((how >> 3) % 4 == 3)
		qsort(v, n, sizeof(uint64_t), compare_u64);
	return n;
}

static void
check_sequence(const uint64_t *v, uint32_t n)
{
	HybSeqPlan	plan;
	HybSeq		seq;
	uint8_t    *stored;
	bool		ascending = true;

	for (uint32_t i = 1; i < n; i++)
		ascending &= v[i - 1] <= v[i];
	hyb_seq_plan(v, n, &plan);
	require(plan.ascending == ascending);
	stored = calloc(1, plan.size + SLACK);
	require(hyb_seq_write(&plan, v, n, stored) == stored + plan.size);
	require(hyb_seq_open(&seq, n, stored, stored + plan.size) == stored + plan.size);
	read_sequence(&seq, n, v, ascending);
	free(stored);
}

/* ---- Huffman codes ---- */

static void
read_string(const HybHuffDecoder *dec, const uint8_t *s, uint32_t n,
			const uint8_t *want, uint32_t want_len)
{
	uint32_t	max = want != NULL ? want_len : 8 * n + 1;
	HybHuffEntry *table = malloc(HYB_HUFF_TABLE * sizeof(HybHuffEntry));
	uint8_t    *a = malloc(max + 1);
	uint8_t    *b = malloc(max + 1);
	uint32_t	len = hyb_huff_decode(dec, NULL, s, n, a, max);
	HybHuffReader r;

	hyb_huff_fill_table(dec, table);
	require(hyb_huff_decode(dec, table, s, n, b, max) == len &&
			memcmp(a, b, len) == 0);
	require(want == NULL || (len == want_len && memcmp(a, want, len) == 0));
	hyb_huff_reader_init(&r, s, n);
	for (uint32_t i = 0; i < len; i++)
		require(hyb_huff_next(dec, &r) == a[i]);
	require(hyb_huff_next(dec, &r) == -1);
	(void) hyb_huff_decode(dec, table, s, n, b, max / 2);
	free(a);
	free(b);
	free(table);
}

static void
check_huffman(const uint8_t *data, uint32_t size)
{
	uint32_t	freq[256] = {0};
	HybHuffEncoder enc;
	HybHuffDecoder dec;
	uint8_t    *code;
	uint32_t	at = 0;

	/* the second byte makes some frequencies large */
	for (uint32_t i = 1; i < size; i++)
		freq[data[i]] += 1u << (data[0] * data[i] % 24);
	if (!hyb_huff_build(&enc, freq))
		return;
	code = malloc(enc.size);
	require(hyb_huff_write_code(&enc, code) == code + enc.size);
	require(hyb_huff_open(&dec, code, code + enc.size) == code + enc.size);
	for (uint32_t i = 1; i < size; i += at)
	{
		uint32_t	n;
		uint8_t    *s;

		at = 1 + data[i] % 50;
		at = at < size - i ? at : size - i;
		n = hyb_huff_size(&enc, data + i, at);
		s = malloc(n + SLACK);
		require(hyb_huff_encode(&enc, data + i, at, s) <= s + n + SLACK);
		read_string(&dec, s, n, data + i, at);
		free(s);
	}
	free(code);
}

static void
read_huffman(const uint8_t *data, uint32_t size)
{
	uint8_t    *copy = piece(data, size);
	HybHuffDecoder dec;
	const uint8_t *p = hyb_huff_open(&dec, copy, copy + size);

	if (p != NULL)
		for (uint32_t n = (uint32_t) (copy + size - p), k = 0; k < 4; k++, n /= 3)
			read_string(&dec, copy + size - n, n, NULL, 0);
	free(copy);
}

/* ---- front-coded strings ---- */

static int
compare_strings(const uint8_t *a, uint32_t alen, const uint8_t *b, uint32_t blen,
				bool end_high)
{
	int			c = memcmp(a, b, alen < blen ? alen : blen);

	if (c != 0 || alen == blen)
		return c;
	return (alen < blen) == end_high ? 1 : -1;
}

static void
init_cursor(const HybFront *front, HybFrontCursor *cursor, uint32_t cap, bool table)
{
	memset(cursor, 0, sizeof(*cursor));
	cursor->cap = cap;
	cursor->buf = malloc(cap > 0 ? cap : 1);
	cursor->table = table ? malloc(HYB_HUFF_TABLE * sizeof(HybHuffEntry)) : NULL;
	hyb_front_cursor_reset(front, cursor);
}

static void
read_front(int how, const uint8_t *data, uint32_t size)
{
	uint8_t    *copy = piece(data, size);
	uint32_t	n = 1 + (uint32_t) (how >> 3) * 9;
	HybFront	front;
	HybFrontCursor cursor;

	front.prefix = (const uint8_t *) "prefix";
	front.prefix_len = how & 8 ? 6 : 0;
	if (hyb_front_open(&front, n, copy, copy + size) != NULL)
	{
		init_cursor(&front, &cursor, 6 + (size & 63), how & 16);
		for (uint32_t i = 0; i < n; i++)
			if (hyb_front_read(&front, &cursor, i))
				require(cursor.len <= cursor.cap);
		for (uint32_t k = 0; k < 20; k++)
		{
			bool		equal;
			int			at;

			(void) hyb_front_read(&front, &cursor, k * 31 % n);
			at = hyb_front_search(&front, k % 3 ? 0 : n / 3, n, data + k % size,
								  (size - k % size) % 20, k & 1, k & 2, &equal);
			require(at >= -1 && at <= (int) n);
		}
		free(cursor.buf);
		free(cursor.table);
	}
	free(copy);
}

/* Strings end where a byte equals the first one. */
static void
check_front(int how, const uint8_t *data, uint32_t size)
{
	uint32_t	off[MAXN];
	uint32_t	len[MAXN];
	uint32_t	lcp[MAXN] = {0};
	uint32_t	rest[MAXN];
	uint32_t	n = 0;
	HybStrings	in = {data, off, len, lcp, 0};
	HybFrontCode code = {.rest = rest};
	HybFrontPlan plan;
	HybFront	front;
	HybFrontCursor cursor;
	bool		end_high = how & 8;
	uint8_t    *stored;

	for (uint32_t at = 1; at < size && n < MAXN; n++)
	{
		const uint8_t *end = memchr(data + at, data[0], size - at);
		uint32_t	k = end != NULL ? (uint32_t) (end - data) - at : size - at;

		off[n] = at;
		len[n] = k < MAXLEN ? k : MAXLEN;
		at += k + 1;
	}
	if (n == 0)
		return;
	/* sorted by insertion: they are few */
	for (uint32_t i = 1; how & 16 && i < n; i++)
		for (uint32_t j = i; j > 0 &&
			 compare_strings(data + off[j - 1], len[j - 1], data + off[j], len[j],
							 end_high) > 0; j--)
		{
			uint32_t	o = off[j];
			uint32_t	l = len[j];

			off[j] = off[j - 1];
			len[j] = len[j - 1];
			off[j - 1] = o;
			len[j - 1] = l;
		}
	for (uint32_t i = 1; i < n; i++)
		while (lcp[i] < len[i] && lcp[i] < len[i - 1] &&
			   data[off[i] + lcp[i]] == data[off[i - 1] + lcp[i]])
			lcp[i]++;

	hyb_front_prepare(&in, n, how & 32, &code);
	if (how & 64)
		n = 1 + n / 2;
	hyb_front_plan(&in, &code, n, &plan);
	if (plan.data_len > UINT16_MAX)
		return;
	stored = calloc(1, plan.size + SLACK);
	require(hyb_front_write(&in, &code, n, &plan, stored) == stored + plan.size);
	front.prefix = data + off[0];
	front.prefix_len = plan.prefix_len;
	require(hyb_front_open(&front, n, stored, stored + plan.size) == stored + plan.size);
	init_cursor(&front, &cursor, MAXLEN, how & 128);
	for (uint32_t k = 0; k < 2 * n; k++)
	{
		uint32_t	i = k < n ? k : k * 37 % n;

		require(hyb_front_read(&front, &cursor, i) && cursor.len == len[i] &&
				memcmp(cursor.buf, data + off[i], len[i]) == 0);
	}
	for (uint32_t k = 0; how & 16 && k < 30; k++)
	{
		uint32_t	i = k * 41 % n;
		const uint8_t *target = data + off[i];
		uint32_t	target_len = len[i] - (k % 3 == 1 && len[i] > 0);
		bool		upper = k & 1;
		bool		equal;
		int			want = 0;
		int			c = 1;

		/* any bytes of the input are another string to look for */
		if (k % 3 == 2)
		{
			target = data + 1 + k * 17 % (size - 1);
			target_len = (uint32_t) (data + size - target) % MAXLEN;
		}
		while (want < (int) n &&
			   ((c = compare_strings(data + off[want], len[want], target, target_len,
									 end_high)) < 0 || (upper && c == 0)))
			want++;
		require(hyb_front_search(&front, 0, n, target, target_len, end_high, upper,
								 &equal) == want);
		require(upper || equal == (want < (int) n && c == 0));
	}
	free(cursor.buf);
	free(cursor.table);
	free(stored);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t	v[MAXN];
	uint32_t	n;
	int			how;

	if (size < 3 || size > 20000)
		return 0;
	how = *data++;
	size--;
	switch (how & 7)
	{
		case SEQ:
			n = make_sequence(data[0], data + 1, size - 1, v);
			if (n > 0)
				check_sequence(v, n);
			break;
		case SEQ | STORED:
			{
				uint8_t    *copy = piece(data + 1, size - 1);
				HybSeq		seq;

				n = data[0] + 1 + (uint32_t) (how >> 3) * 256;
				if (hyb_seq_open(&seq, n, copy, copy + size - 1) != NULL)
					read_sequence(&seq, n, NULL, false);
				free(copy);
			}
			break;
		case HUFF:
			check_huffman(data, (uint32_t) (size < 2000 ? size : 2000));
			break;
		case HUFF | STORED:
			read_huffman(data, (uint32_t) size);
			break;
		case FRONT:
			check_front(how, data, (uint32_t) (size < 6000 ? size : 6000));
			break;
		case FRONT | STORED:
			read_front(how, data, (uint32_t) size);
			break;
	}
	return 0;
}

/* ---- seeds ---- */

/* Regular strings, each with the same byte after it. */
static uint32_t
make_text(uint8_t *out, int style)
{
	uint32_t	n = 0;

	for (int i = 0; i < 120; i++)
		n += (uint32_t) sprintf((char *) out + n, style == 0 ? "key %04d\n" :
								style == 1 ? "the %d. string with a long tail %03o\n" :
								"%x\n", style == 2 ? i * i * 7919 : i, i * i);
	return n;
}

size_t
hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max)
{
	static uint8_t text[10000];
	int			style = (int) (i / 3 % 3);
	uint32_t	n = make_text(text + 1, style) + 1;
	bool		stored = i >= 9;

	if (i >= 18)
		return 0;
	text[0] = '\n';
	data[0] = (uint8_t) (i % 3 | (stored ? STORED : 0) | style << 3);
	if (!stored)
	{
		data[1] = i % 3 == SEQ ? (uint8_t) (style * 9 + 3) : '\n';
		memcpy(data + 2, text + 1, n - 1);
		return n + 1;
	}
	switch (i % 3)
	{
		case SEQ:
			{
				uint64_t	v[200];
				HybSeqPlan	plan;

				for (uint64_t k = 0; k < 200; k++)
					v[k] = style == 0 ? k * k : style == 1 ? k * 1000 + k * k % 10 :
						k * 7919 % 500;
				hyb_seq_plan(v, 200, &plan);
				memset(data + 1, 0, plan.size + 1 + SLACK);
				hyb_seq_write(&plan, v, 200, data + 2);
				data[0] &= 7;
				data[1] = 199;
				return plan.size + 2;
			}
		case HUFF:
			{
				uint32_t	freq[256] = {0};
				HybHuffEncoder enc;
				uint8_t    *end;

				for (uint32_t k = 0; k < n; k++)
					freq[text[k]]++;
				require(hyb_huff_build(&enc, freq));
				end = hyb_huff_write_code(&enc, data + 1);
				end = hyb_huff_encode(&enc, text, n, end);
				return (size_t) (end - data);
			}
		default:
			{
				uint32_t	off[100];
				uint32_t	len[100];
				uint32_t	lcp[100];
				uint32_t	rest[100];
				HybStrings	in = {text, off, len, lcp, 0};
				HybFrontCode code = {.rest = rest};
				HybFrontPlan plan;
				uint32_t	at = 1;

				for (uint32_t k = 0; k < 100; at += len[k++] + 1)
				{
					off[k] = at;
					len[k] = (uint32_t) ((uint8_t *) memchr(text + at, '\n', n) - text) - at;
					lcp[k] = 0;
					while (k > 0 && lcp[k] < len[k] && lcp[k] < len[k - 1] &&
						   text[off[k] + lcp[k]] == text[off[k - 1] + lcp[k]])
						lcp[k]++;
				}
				hyb_front_prepare(&in, 100, style > 0, &code);
				hyb_front_plan(&in, &code, 100, &plan);
				memset(data + 1, 0, plan.size + SLACK);
				hyb_front_write(&in, &code, 100, &plan, data + 1);
				/* 1 + 11 * 9 strings */
				data[0] = (uint8_t) (FRONT | STORED | 11 << 3);
				return plan.size + 1;
			}
	}
}
