/*
 * test_symbols.c
 *		Strings as symbols come back in any order of reading, however many wait.
 *		Damaged symbols are read within bounds.
 */
#include "algo/symbols.h"
#include "unit.h"

#define MAXN	700
#define MAXLEN	2705

static uint8_t *bytes;
static uint32_t off[MAXN];
static uint32_t len[MAXN];
static uint64_t values[MAXN];

/* Strings [from, n) of one of some shapes, which begin with three equal bytes. */
static void
make(uint32_t from, uint32_t n, int shape)
{
	static const char *const words[] = {
		"{\"id\": ", ", \"name\": \"", "\", \"city\": \"", "Oslo", "Lagos", "}", "true", "2026-"
	};

	for (uint32_t i = from; i < n; i++)
	{
		uint32_t	want = shape == 0 ? 3 : shape == 1 ? 3 + unit_below(MAXLEN - 3) :
			shape == 2 ? 60 : 3 + unit_below(300);
		uint8_t    *s;

		off[i] = i == 0 ? 0 : off[i - 1] + len[i - 1];
		s = bytes + off[i];
		len[i] = want;
		memcpy(s, "\1ab", 3);
		for (uint32_t j = 3; j < want;)
		{
			const char *word = words[unit_below(8)];

			if (shape == 4 || unit_below(4) == 0)
				s[j++] = shape == 3 ? 255 : (uint8_t) unit_random();
			else
				for (; *word != '\0' && j < want; j++)
					s[j] = (uint8_t) *word++;
		}
	}
}

/* Memory of just the size that reading may use. */
static bool
same(const HybSym *sym, HybSymCursor *cursor, uint32_t row, uint32_t skip)
{
	uint32_t	want = len[row] - skip;
	uint8_t    *out = malloc(want + HYB_SYM_SLACK);
	int			got = hyb_sym_read(sym, cursor, row, out, want);
	bool		equal = got == (int) want &&
		memcmp(out, bytes + off[row] + skip, want) == 0;

	free(out);
	return equal;
}

/* The first n strings, stored. */
static uint8_t *
store(const HybSymWork *work, uint32_t n, uint32_t *size)
{
	HybSymPlan	plan;
	uint8_t    *out;

	hyb_sym_plan(work, n, values, &plan);
	*size = plan.size;
	if (plan.size == UINT32_MAX)
		return NULL;
	out = calloc(1, plan.size + 8);
	CHECK(hyb_sym_write(work, n, values, &plan, out) == out + plan.size, "size");
	return out;
}

static void
check_stored(const uint8_t *stored, uint32_t size, uint32_t n, uint32_t skip)
{
	HybSym		sym;
	HybSymCursor cursor = {.decoder = malloc(sizeof(HybSymDecoder))};
	bool		all = true;
	uint32_t	longest = 0;

	CHECK(hyb_sym_open(&sym, n, stored, stored + size) == stored + size, "open %u", n);
	if (size > 0)
		CHECK(hyb_sym_open(&sym, n, stored, stored + size - 1) == NULL, "cut short");
	CHECK(hyb_sym_open(&sym, n, stored, stored + size) != NULL, "open again");
	hyb_sym_cursor_reset(&cursor);
	for (uint32_t i = 0; i < n; i++)
		all &= same(&sym, &cursor, i, skip);
	CHECK(all, "%u strings in order", n);
	hyb_sym_cursor_reset(&cursor);
	for (int k = 0; k < 50; k++)
		all &= same(&sym, &cursor, unit_below(n), skip);
	CHECK(all, "%u strings in any order", n);

	for (uint32_t i = 1; i < n; i++)
		longest = len[i] > len[longest] ? i : longest;
	if (len[longest] > skip)
	{
		uint8_t    *out = malloc(len[longest] - skip - 1 + HYB_SYM_SLACK);

		CHECK(hyb_sym_read(&sym, &cursor, longest, out, len[longest] - skip - 1) == -1,
			  "a string without room");
		free(out);
	}
	free(cursor.decoder);
}

static void
check_damaged(const uint8_t *stored, uint32_t size, uint32_t n)
{
	for (int k = 0; k < 40; k++)
	{
		uint8_t    *damaged = malloc(size + 8);
		HybSym		sym;
		HybSymCursor cursor = {.decoder = malloc(sizeof(HybSymDecoder))};
		uint8_t    *out = malloc(MAXLEN + HYB_SYM_SLACK);

		memcpy(damaged, stored, size + 8);
		for (uint32_t j = 0; j <= unit_below(3); j++)
			damaged[unit_below(k % 2 ? size : size < 40 ? size : 40)] = (uint8_t) unit_random();
		if (hyb_sym_open(&sym, n, damaged, damaged + size) != NULL)
		{
			HybSymWork *work = calloc(1, sizeof(HybSymWork));

			hyb_sym_cursor_reset(&cursor);
			for (int i = 0; i < 60; i++)
			{
				int			got = hyb_sym_read(&sym, &cursor, unit_below(n), out, MAXLEN);

				/* the sanitizer sees what lies outside of the buffers */
				for (int j = 0; j < got; j++)
					unit_seed += out[j];
			}
			hyb_sym_adopt(work, &sym, true);
			free(work);
		}
		unit_seed |= 1;
		free(out);
		free(cursor.decoder);
		free(damaged);
	}
}

static void
test_round(HybSymWork *work, int round)
{
	uint32_t	n = 1 + unit_below(round % 3 == 0 ? 20 : round % 5 == 1 ? 60 : MAXN);
	uint32_t	first = 1 + unit_below(n);
	uint32_t	skip = round % 4;
	HybStrings	in = {bytes, off, len, NULL, first};
	uint32_t	size;
	uint8_t    *stored;

	/* strings, and then more of them, perhaps of another kind */
	make(0, first, round % 5);
	make(first, n, (round / 5) % 5);
	work->ends = malloc(n * sizeof(uint32_t));
	work->data = malloc(2 * (off[n - 1] + len[n - 1]));
	hyb_sym_prepare(&in, skip, false, work);
	for (int k = 0; k < 4; k++)
	{
		uint32_t	some = k == 0 ? first : 1 + unit_below(first);

		stored = store(work, some, &size);
		if (stored != NULL)
			check_stored(stored, size, some, skip);
		free(stored);
	}
	in.n = n;
	hyb_sym_prepare(&in, skip, true, work);
	/* what is left out has become shorter */
	if (round % 7 == 0 && skip > 0)
	{
		skip--;
		hyb_sym_prepare(&in, skip, true, work);
	}
	stored = store(work, n, &size);
	if (stored != NULL)
	{
		HybSym		sym;

		check_stored(stored, size, n, skip);
		check_damaged(stored, size, n);
		if (round % 2 == 0 && hyb_sym_open(&sym, n, stored, stored + size) != NULL)
			hyb_sym_adopt(work, &sym, round % 4 == 0);
	}
	free(stored);
	free(work->ends);
	free(work->data);
}

/* What it is for: rows of JSON are half as long, or less. */
static void
test_json(void)
{
	HybStrings	in = {bytes, off, len, NULL, 100};
	HybSymWork *work = calloc(1, sizeof(HybSymWork));
	HybSymPlan	plan;
	uint32_t	at = 0;

	for (int i = 0; i < 100; i++)
	{
		off[i] = at;
		len[i] = (uint32_t) sprintf((char *) bytes + at,
									"{\"id\": %u, \"status\": \"%s\", \"created_at\": \"2026-0%u-1%uT12:%u:00Z\", \"visits\": %u}",
									unit_below(1000000), unit_below(2) ? "active" : "inactive",
									1 + unit_below(9), unit_below(10), 10 + unit_below(50), unit_below(1000));
		at += len[i];
	}
	work->ends = malloc(100 * sizeof(uint32_t));
	work->data = malloc(2 * at);
	hyb_sym_prepare(&in, 0, false, work);
	hyb_sym_plan(work, 100, values, &plan);
	CHECK(plan.size < at / 2, "%u bytes of %u", plan.size, at);
	/* a table is kept, and learned again when it has become a bad one */
	for (int i = 1; i < HYB_SYM_KEEP; i++)
	{
		hyb_sym_prepare(&in, 0, false, work);
		CHECK(work->kept == (uint32_t) i, "kept %u times", work->kept);
	}
	hyb_sym_prepare(&in, 0, false, work);
	CHECK(work->kept == 0, "kept too long");
	for (uint32_t i = 0; i < at; i++)
		bytes[i] ^= 0x15;
	hyb_sym_prepare(&in, 0, false, work);
	CHECK(work->kept == 0, "of other strings");
	hyb_sym_plan(work, 100, values, &plan);
	CHECK(plan.size < at / 2, "%u bytes of %u", plan.size, at);
	free(work->ends);
	free(work->data);
	free(work);
}

/*
 * Records end in 3 to 13 zeros, and a symbol may have more zeros than a
 * record.  No symbol goes beyond the end of its string.
 */
static void
test_padding(void)
{
	HybStrings	in = {bytes, off, len, NULL, 200};
	HybSymWork *work = calloc(1, sizeof(HybSymWork));
	uint32_t	at = 0;
	uint32_t	size;
	uint8_t    *stored;

	for (uint32_t i = 0; i < in.n; i++)
	{
		off[i] = at;
		len[i] = 8 + i % 10;
		memset(bytes + at, 0, len[i]);
		memcpy(bytes + at, i % 2 ? "Oslo" : "Lagos", i % 2 ? 4 : 5);
		at += len[i];
	}
	work->ends = malloc(in.n * sizeof(uint32_t));
	work->data = malloc(2 * at);
	hyb_sym_prepare(&in, 0, false, work);
	stored = store(work, in.n, &size);
	CHECK(stored != NULL, "stored as symbols");
	if (stored != NULL)
		check_stored(stored, size, in.n, 0);
	free(stored);
	free(work->ends);
	free(work->data);
	free(work);
}

int
main(void)
{
	HybSymWork *work = NULL;

	bytes = malloc((size_t) MAXN * MAXLEN + 8);
	for (int round = 0; round < 400; round++)
	{
		/* tables are kept from some rounds to the next ones */
		if (round % 10 == 0)
		{
			free(work);
			work = calloc(1, sizeof(HybSymWork));
		}
		test_round(work, round);
	}
	free(work);
	test_json();
	test_padding();
	free(bytes);
	return unit_report("symbols");
}
