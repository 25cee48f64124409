/*
 * test_hope.c
 *		Order-preserving string encoding: code lengths are optimal.  With every
 *		scheme and many kinds of samples keys keep their order, never collide, and
 *		come back.
 *
 * HOPE_PAIRS sets the number of pairs per dictionary (20000); HOPE_KEYS names
 * a file of keys, one a line, to test with beside the made up ones.
 */
#include "algo/hope/internal.h"
#include "unit.h"

#define MAXKEY	600

static long allocated;

static void *
test_alloc(void *context, size_t size)
{
	(void) context;
	allocated++;
	return malloc(size > 0 ? size : 1);
}

static void
test_release(void *context, void *ptr)
{
	(void) context;
	allocated -= ptr != NULL;
	free(ptr);
}

static const HybHopeMemory memory = {test_alloc, test_release, NULL};

/* ---- optimal code lengths ---- */

#define DP_MAX	48

static uint64_t
optimal_cost(const uint64_t *w, int n)
{
	static uint64_t cost[DP_MAX][DP_MAX];

	for (int len = 0; len < n; len++)
		for (int i = 0; i + len < n; i++)
		{
			uint64_t	best = UINT64_MAX;
			uint64_t	sum = 0;

			for (int k = i; k <= i + len; k++)
				sum += w[k];
			for (int k = i; k < i + len; k++)
				if (cost[i][k] + cost[k + 1][i + len] < best)
					best = cost[i][k] + cost[k + 1][i + len];
			cost[i][i + len] = len == 0 ? 0 : best + sum;
		}
	return cost[0][n - 1];
}

static void
test_lengths(void)
{
	for (int round = 0; round < 3000; round++)
	{
		uint64_t	w[DP_MAX];
		uint8_t		lengths[DP_MAX];
		uint32_t	codes[DP_MAX];
		uint32_t	n = 2 + unit_below(DP_MAX - 2);
		uint64_t	sum = 0;

		for (uint32_t i = 0; i < n; i++)
			switch (round % 5)
			{
				case 0:
					w[i] = 1 + unit_below(4);
					break;
				case 1:
					w[i] = 1 + unit_below(1000000);
					break;
				case 2:
					w[i] = UINT64_C(1) << unit_below(20);
					break;
				case 3:
					w[i] = 1 + n - i;
					break;
				default:
					w[i] = 1;
			}
		hyb_hope_optimal_lengths(w, n, lengths, &memory);
		for (uint32_t i = 0; i < n; i++)
			sum += w[i] * lengths[i];
		CHECK(sum == optimal_cost(w, (int) n), "round %d, n %u", round, n);
		if (n < 20)
			CHECK(hyb_hope_codes(lengths, n, codes), "round %d, n %u", round, n);
	}
}

/* Long and unfavourable sequences: still codes, and in no time. */
static void
test_long_lengths(void)
{
	uint32_t	n = 1 << 16;
	uint64_t   *w = malloc(n * sizeof(uint64_t));
	uint8_t    *lengths = malloc(n);
	uint32_t   *codes = malloc(n * sizeof(uint32_t));

	for (int shape = 0; shape < 4; shape++)
	{
		for (uint32_t i = 0; i < n; i++)
			w[i] = shape == 0 ? 1 : shape == 1 ? n - i : shape == 2 ? 1 + i :
				1 + unit_below(1 << (unit_below(30)));
		hyb_hope_limited_lengths(w, n, HYB_HOPE_MAX_CODE, lengths, &memory);
		CHECK(hyb_hope_codes(lengths, n, codes), "shape %d", shape);
	}
	free(w);
	free(lengths);
	free(codes);
}

/* ---- keys ---- */

typedef struct Key
{
	size_t		len;
	uint8_t		bytes[MAXKEY];
} Key;

static uint8_t *file_bytes;
static uint32_t *file_off;
static uint32_t file_n;

static void
read_file(const char *name)
{
	FILE	   *f = fopen(name, "r");
	size_t		size;

	if (f == NULL)
		return;
	fseek(f, 0, SEEK_END);
	size = (size_t) ftell(f);
	rewind(f);
	file_bytes = malloc(size + 1);
	size = fread(file_bytes, 1, size, f);
	fclose(f);
	file_off = malloc((size + 2) * sizeof(uint32_t));
	file_off[0] = 0;
	for (size_t i = 0; i < size; i++)
		if (file_bytes[i] == '\n')
			file_off[++file_n] = (uint32_t) i + 1;
}

enum
{
	KEYS_EMPTY, KEYS_ONE, KEYS_WORDS, KEYS_RANDOM, KEYS_TWO_BYTES, KEYS_HIGH,
	KEYS_ZEROES, KEYS_RUNS, KEYS_FILE, KEYS_KINDS
};

/* One key of a kind. */
static void
make_key(int kind, Key *key)
{
	static const char *const words[] = {
		"the", "usr/", "share/", "doc/", "@gmail.com", "an", "and", "er", "-",
		".", "com", "www.", "a", "z", "abcdefghijklmnopqrstuvwxyz0123456789"
	};

	key->len = 0;
	switch (kind)
	{
		case KEYS_EMPTY:
			return;
		case KEYS_ONE:
			key->len = unit_below(3);
			memset(key->bytes, 'q', key->len);
			return;
		case KEYS_WORDS:
			for (int i = (int) unit_below(8); i > 0; i--)
			{
				const char *w = words[unit_below(15)];

				memcpy(key->bytes + key->len, w, strlen(w));
				key->len += strlen(w);
			}
			return;
		case KEYS_FILE:
			if (file_n > 0)
			{
				uint32_t	i = unit_below(file_n);

				key->len = file_off[i + 1] - file_off[i] - 1;
				if (key->len > MAXKEY)
					key->len = MAXKEY;
				memcpy(key->bytes, file_bytes + file_off[i], key->len);
			}
			return;
		default:
			key->len = unit_below(unit_below(20) == 0 ? MAXKEY : 24);
			for (size_t i = 0; i < key->len; i++)
				key->bytes[i] = (uint8_t)
					(kind == KEYS_RANDOM ? unit_below(256) :
					 kind == KEYS_TWO_BYTES ? 'a' + unit_below(2) :
					 kind == KEYS_HIGH ? 255 - unit_below(2) :
					 kind == KEYS_ZEROES ? unit_below(2) :
					 i > 0 && unit_below(8) > 0 ? key->bytes[i - 1] :
					 unit_below(256));
	}
}

/* A key near to another one: the end cut off, more added, a byte changed. */
static void
make_neighbour(const Key *key, Key *other)
{
	*other = *key;
	switch (unit_below(6))
	{
		case 0:
			other->len = unit_below((uint32_t) key->len + 1);
			break;
		case 1:
			for (uint32_t n = unit_below(5); n > 0 && other->len < MAXKEY; n--)
				other->bytes[other->len++] = 0;
			break;
		case 2:
			for (uint32_t n = unit_below(5); n > 0 && other->len < MAXKEY; n--)
				other->bytes[other->len++] = 0xFF;
			break;
		case 3:
			for (uint32_t n = unit_below(5); n > 0 && other->len < MAXKEY; n--)
				other->bytes[other->len++] = (uint8_t) unit_below(256);
			break;
		case 4:
			if (key->len > 0)
				other->bytes[unit_below((uint32_t) key->len)] =
					(uint8_t) unit_below(256);
			break;
		default:
			make_key((int) unit_below(KEYS_KINDS), other);
	}
}

static int
compare(const uint8_t *a, size_t alen, const uint8_t *b, size_t blen)
{
	int			c = memcmp(a, b, alen < blen ? alen : blen);

	c = c != 0 ? c : (alen > blen) - (alen < blen);
	return (c > 0) - (c < 0);
}

/* A key's code, in heap memory of just the size that is promised. */
typedef struct Coded
{
	uint8_t    *code;
	uint64_t	bits;
	size_t		len;
	uint8_t    *stuffed;
	size_t		stuffedlen;
} Coded;

/* Bytes of a key that are encoded, as far as symbols go; the rest follows. */
#define ALL_BYTES	(1 << 20)
static size_t most = ALL_BYTES;

static bool
encode(const HybHope *hope, const Key *key, Coded *coded)
{
	size_t		done;
	size_t		rest;
	uint8_t    *copy = malloc(key->len > 0 ? key->len : 1);
	uint8_t    *back;
	size_t		n;
	bool		good;

	memcpy(copy, key->bytes, key->len);
	coded->code = malloc(hyb_hope_encode_bound(key->len));
	coded->bits = hyb_hope_encode(hope, copy, key->len, most, coded->code, &done);
	free(copy);
	rest = key->len - done;
	coded->len = (size_t) ((coded->bits + 7) / 8);
	memset(coded->code + coded->len, 0xA5, 8);
	coded->stuffed = malloc(hyb_hope_stuff_bound(coded->bits) + rest + 8);
	coded->stuffedlen = hyb_hope_stuff(coded->code, coded->bits, coded->stuffed);
	good = memchr(coded->stuffed, 0, coded->stuffedlen) == NULL &&
		(done == key->len || (done >= most && done < most + HYB_HOPE_MAX_SYMBOL));

	back = malloc(coded->stuffedlen + rest + 16);
	n = hyb_hope_unstuff(coded->stuffed, coded->stuffedlen, back);
	good = good && n >= coded->len && n <= coded->len + 1 &&
		memcmp(back, coded->code, coded->len) == 0 &&
		(n == coded->len || back[n - 1] == 0);

	/* the rest as it is */
	memcpy(coded->stuffed + coded->stuffedlen, key->bytes + done, rest);
	coded->stuffedlen += rest;
	n = hyb_hope_unstuff(coded->stuffed, coded->stuffedlen, back);
	for (int pass = 0; pass < 2; pass++)
	{
		const uint8_t *code = pass == 0 ? coded->code : back;
		size_t		codelen = pass == 0 ? coded->len : n;
		uint8_t    *out = malloc(hyb_hope_decode_bound(hope, codelen));
		uint64_t	bits;
		size_t		len = hyb_hope_decode(hope, code, codelen, most, out, &bits);

		good = good && compare(out, len, key->bytes, done) == 0 &&
			bits == coded->bits &&
			hyb_hope_stuffed_length(coded->stuffed, coded->stuffedlen, bits) + rest == coded->stuffedlen;
		free(out);
	}
	free(back);
	return good;
}

static void
release(Coded *coded)
{
	free(coded->code);
	free(coded->stuffed);
}

static bool
check_pair(const HybHope *hope, const Key *a, const Key *b)
{
	Coded		ca;
	Coded		cb;
	int			expected = compare(a->bytes, a->len, b->bytes, b->len);
	bool		good;

	most = unit_below(2) ? ALL_BYTES : 4 * (1 + unit_below(10));
	good = encode(hope, a, &ca);
	good = encode(hope, b, &cb) && good;
	good = good && (most < ALL_BYTES || compare(ca.code, ca.len, cb.code, cb.len) == expected);
	good = good && compare(ca.stuffed, ca.stuffedlen,
						   cb.stuffed, cb.stuffedlen) == expected;
	release(&ca);
	release(&cb);
	most = ALL_BYTES;
	return good;
}

static void
check_hope(const HybHope *hope, int pairs, const char *what, int kind)
{
	bool		good = true;
	Key			a;
	Key			b;

	for (int i = 0; i < pairs && good; i++)
	{
		make_key(unit_below(2) ? kind : (int) unit_below(KEYS_KINDS), &a);
		make_neighbour(&a, &b);
		good = check_pair(hope, &a, &b);
	}
	CHECK(good, "%s, sample %d, key of %zu bytes", what, kind, a.len);

	/* every single byte, and every pair of them, against the next one */
	b.len = 0;
	good = true;
	for (int v = 0; v < 256 * 257 && good; v++)
	{
		a = b;
		b.len = v % 257 == 0 ? 1 : 2;
		b.bytes[0] = (uint8_t) (v / 257);
		b.bytes[1] = (uint8_t) (v % 257 - 1);
		if (pairs >= 2000 || v % 257 < 2)
			good = check_pair(hope, &a, &b);
	}
	CHECK(good, "%s, sample %d, byte %u", what, kind, b.bytes[0]);
}

static void
test_scheme(int scheme, int kind, uint32_t entries, uint32_t nsample, int pairs)
{
	const char *name = hyb_hope_scheme_name(scheme);
	uint8_t    *bytes = malloc((size_t) nsample * MAXKEY + 1);
	uint32_t   *off = malloc((nsample + 1) * sizeof(uint32_t));
	HybHopeSample sample = {bytes, off, nsample};
	HybHope    *hope;
	HybHope    *loaded;
	uint8_t    *stored;
	size_t		size;
	Key			key;
	long		before = allocated;

	off[0] = 0;
	for (uint32_t i = 0; i < nsample; i++)
	{
		make_key(kind, &key);
		memcpy(bytes + off[i], key.bytes, key.len);
		off[i + 1] = off[i] + (uint32_t) key.len;
	}
	bytes = realloc(bytes, off[nsample] + 1);
	sample.bytes = bytes;
	hope = hyb_hope_build(scheme, entries, &sample, &memory);
	CHECK(hope->decode != NULL, "%s, sample %d", name, kind);
	CHECK(hyb_hope_is_fixed(scheme) || hyb_hope_entries(hope) <= entries,
		  "%s, sample %d: %u intervals", name, kind, hyb_hope_entries(hope));

	size = hyb_hope_store(hope, NULL);
	stored = malloc(size);
	CHECK(hyb_hope_store(hope, stored) == size, "%s", name);
	loaded = hyb_hope_load(stored, size, &memory);
	CHECK(loaded != NULL, "%s, sample %d: load", name, kind);
	CHECK(hyb_hope_load(stored, size - 1, &memory) == NULL, "%s", name);
	if (loaded != NULL)
	{
		check_hope(loaded, pairs, name, kind);
		hyb_hope_free(loaded);
	}

	/* damaged: refused, or another sound dictionary */
	for (int i = 0; i < 60; i++)
	{
		uint32_t	at = unit_below((uint32_t) size);
		uint8_t		was = stored[at];

		stored[at] = (uint8_t) (was ^ (1 << unit_below(8)));
		loaded = hyb_hope_load(stored, size, &memory);
		stored[at] = was;
		if (loaded != NULL)
		{
			check_hope(loaded, 20, "damaged", kind);
			hyb_hope_free(loaded);
		}
	}

	/* bytes that are not a code are read within bounds */
	for (int i = 0; i < 200; i++)
	{
		size_t		len = unit_below(80);
		uint8_t    *code = malloc(len + 8);
		uint8_t    *out;

		for (size_t j = 0; j < len + 8; j++)
			code[j] = (uint8_t) (unit_below(3) == 0 ? 0 : unit_below(256));
		out = malloc(hyb_hope_decode_bound(hope, len));
		CHECK(hyb_hope_decode(hope, code, len, 64, out, &(uint64_t) {0}) <=
			  hyb_hope_decode_bound(hope, len), "%s", name);
		free(out);
		free(code);
	}
	free(stored);
	hyb_hope_free(hope);
	free(bytes);
	free(off);
	CHECK(allocated == before, "%s: %ld blocks not freed", name, allocated - before);
}

/*
 * Codes of all lengths one after the other, so that the word they are
 * collected in is filled in every possible way.
 */
static void
test_code_lengths(void)
{
	HybHopeSample sample;
	uint8_t    *bytes = malloc(1 << 19);
	uint32_t   *off = malloc((1 << 15) * sizeof(uint32_t));
	uint32_t	n = 0;

	off[0] = 0;
	/* each byte half as often as the one before, over and over */
	for (uint32_t i = 1; i < 1 << 14; i++)
	{
		bytes[off[n]] = (uint8_t) __builtin_ctz(i);
		bytes[off[n] + 1] = (uint8_t) (__builtin_ctz(i) * 16);
		off[n + 1] = off[n] + 2;
		n++;
	}
	sample.bytes = bytes;
	sample.off = off;
	sample.n = n;
	for (int scheme = 1; scheme <= HYB_HOPE_NSCHEMES; scheme++)
	{
		HybHope    *hope = hyb_hope_build(scheme, 2048, &sample, &memory);
		bool		good = true;
		Key			key;

		for (int i = 0; i < 200000 && good; i++)
		{
			Coded		coded;

			key.len = unit_below(24);
			for (size_t j = 0; j < key.len; j++)
				key.bytes[j] = (uint8_t) (unit_below(2) ? unit_below(16) :
										  unit_below(256));
			good = encode(hope, &key, &coded);
			release(&coded);
		}
		CHECK(good, "%s", hyb_hope_scheme_name(scheme));
		hyb_hope_free(hope);
	}
	free(off);
	free(bytes);
}

/* Bounds with any number of new bytes are read back as they were written. */
static void
test_bound_lengths(void)
{
	for (int scheme = 1; scheme <= HYB_HOPE_NSCHEMES; scheme++)
	{
		if (hyb_hope_is_fixed(scheme))
			continue;
		for (uint32_t len = 2; len <= HYB_HOPE_MAX_SYMBOL; len++)
		{
			uint8_t		bytes[64 * HYB_HOPE_MAX_SYMBOL];
			uint32_t	off[65] = {0};
			HybHopeSample sample = {bytes, off, 64};
			HybHope    *hope;
			HybHope    *loaded;
			uint8_t    *stored;
			size_t		size;

			/* 64 times the same key, so that its beginnings are patterns */
			for (uint32_t i = 0; i < 64; i++)
			{
				for (uint32_t j = 0; j < len; j++)
					bytes[off[i] + j] = (uint8_t) ('A' + j);
				off[i + 1] = off[i] + len;
			}
			hope = hyb_hope_build(scheme, 2048, &sample, &memory);
			size = hyb_hope_store(hope, NULL);
			stored = malloc(size);
			hyb_hope_store(hope, stored);
			loaded = hyb_hope_load(stored, size, &memory);
			CHECK(loaded != NULL, "%s, key of %u bytes: load", hyb_hope_scheme_name(scheme), len);
			if (loaded != NULL)
				hyb_hope_free(loaded);
			hyb_hope_free(hope);
			free(stored);
		}
	}
}

int
main(void)
{
	const char *pairs = getenv("HOPE_PAIRS");
	const char *keys = getenv("HOPE_KEYS");
	int			n = pairs != NULL ? atoi(pairs) : 3000;

	if (keys != NULL)
		read_file(keys);
	test_lengths();
	test_long_lengths();
	test_code_lengths();
	test_bound_lengths();
	for (int scheme = 1; scheme <= HYB_HOPE_NSCHEMES; scheme++)
	{
		for (int kind = 0; kind < KEYS_KINDS; kind++)
		{
			test_scheme(scheme, kind, 2048, kind == KEYS_EMPTY ? 0 : 400, n);
			if (!hyb_hope_is_fixed(scheme))
				test_scheme(scheme, kind, HYB_HOPE_MIN_ENTRIES, 1, n / 4);
		}
	}
	return unit_report("hope");
}
