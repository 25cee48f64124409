/*
 * test_lzgroups.c
 *		Strings in compressed groups come back in any order of reading, however
 *		many wait.  Damaged groups are read within bounds.
 */
#include "algo/lzgroups.h"
#include "unit.h"

#define MAXN	700
#define MAXLEN	2705

static uint8_t *bytes;
static uint32_t off[MAXN];
static uint32_t len[MAXN];
static uint64_t values[MAXN];

/* Strings [from, n) of one of some shapes. */
static void
make(uint32_t from, uint32_t n, int shape)
{
	static const char *const words[] = {
		"{\"id\": ", ", \"name\": \"", "\", \"city\": \"", "Oslo", "Lagos", "}", "true", "2026-"
	};

	for (uint32_t i = from; i < n; i++)
	{
		uint32_t	want = shape == 0 ? 1 : shape == 1 ? 1 + unit_below(MAXLEN) :
			shape == 2 ? 60 : 1 + unit_below(300);
		uint8_t    *s;

		off[i] = i == 0 ? 0 : off[i - 1] + len[i - 1];
		s = bytes + off[i];
		len[i] = want;
		for (uint32_t j = 0; j < want;)
		{
			const char *word = words[unit_below(8)];

			if (shape == 4 || unit_below(4) == 0)
				s[j++] = (uint8_t) unit_random();
			else
				for (; *word != '\0' && j < want; j++)
					s[j] = (uint8_t) *word++;
		}
	}
}

static bool
same(const HybLz *lz, HybLzCursor *cursor, uint32_t row)
{
	uint32_t	got_len;
	const uint8_t *got = hyb_lz_read(lz, cursor, row, &got_len);

	return got != NULL && got_len == len[row] &&
		memcmp(got, bytes + off[row], got_len) == 0;
}

/* The first n strings, stored. */
static uint8_t *
store(const HybStrings *in, HybLzWork *work, uint32_t n, uint32_t *size)
{
	HybLzPlan	plan;
	uint8_t    *out;

	hyb_lz_plan(in, work, n, values, &plan);
	*size = plan.size;
	if (plan.size == UINT32_MAX)
		return NULL;
	out = calloc(1, plan.size + 8);
	CHECK(hyb_lz_write(in, work, n, values, &plan, out) == out + plan.size, "size");
	return out;
}

static void
check_stored(const uint8_t *stored, uint32_t size, uint32_t n)
{
	HybLz		lz;
	HybLzCursor cursor = {.buffers = malloc(sizeof(HybLzBuffers))};
	bool		all = true;

	CHECK(hyb_lz_open(&lz, n, stored, stored + size) == stored + size, "open %u", n);
	CHECK(hyb_lz_open(&lz, n, stored, stored + size - 1) == NULL, "cut short");
	CHECK(hyb_lz_open(&lz, n, stored, stored + size) != NULL, "open again");
	hyb_lz_cursor_reset(&cursor);
	for (uint32_t i = 0; i < n; i++)
		all &= same(&lz, &cursor, i);
	CHECK(all, "%u strings in order", n);
	hyb_lz_cursor_reset(&cursor);
	for (int k = 0; k < 50; k++)
		all &= same(&lz, &cursor, unit_below(n));
	CHECK(all, "%u strings in any order", n);
	free(cursor.buffers);
}

static void
check_damaged(const uint8_t *stored, uint32_t size, uint32_t n)
{
	for (int k = 0; k < 40; k++)
	{
		uint8_t    *damaged = malloc(size + 8);
		HybLz		lz;
		HybLzCursor cursor = {.buffers = malloc(sizeof(HybLzBuffers))};

		memcpy(damaged, stored, size + 8);
		for (uint32_t j = 0; j <= unit_below(3); j++)
			damaged[unit_below(k % 2 ? size : size < 40 ? size : 40)] = (uint8_t) unit_random();
		if (hyb_lz_open(&lz, n, damaged, damaged + size) != NULL)
		{
			hyb_lz_cursor_reset(&cursor);
			for (int i = 0; i < 60; i++)
			{
				uint32_t	got_len;
				const uint8_t *got = hyb_lz_read(&lz, &cursor, unit_below(n), &got_len);

				/* the sanitizer sees what lies outside of the buffers */
				for (uint32_t j = 0; got != NULL && j < got_len; j++)
					unit_seed += got[j];
			}
		}
		unit_seed |= 1;
		free(cursor.buffers);
		free(damaged);
	}
}

static void
test_round(int round)
{
	uint32_t	n = 1 + unit_below(round % 3 == 0 ? 20 : round % 5 == 1 ? 60 : MAXN);
	uint32_t	first = 1 + unit_below(n);
	HybStrings	in = {bytes, off, len, NULL, first};
	HybLzWork  *work = calloc(1, sizeof(HybLzWork));
	uint32_t	size;
	uint8_t    *stored;

	/* strings, and then more of them, perhaps of another kind */
	make(0, first, round % 5);
	make(first, n, (round / 5) % 5);
	work->ends = malloc(n * sizeof(uint32_t));
	work->data = malloc(off[n - 1] + len[n - 1]);
	hyb_lz_prepare(&in, false, work);
	for (int k = 0; k < 4; k++)
	{
		uint32_t	some = k == 0 ? first : 1 + unit_below(first);

		stored = store(&in, work, some, &size);
		if (stored != NULL)
			check_stored(stored, size, some);
		free(stored);
	}
	in.n = n;
	hyb_lz_prepare(&in, true, work);
	stored = store(&in, work, n, &size);
	if (stored != NULL)
	{
		check_stored(stored, size, n);
		check_damaged(stored, size, n);
	}
	free(stored);
	free(work->ends);
	free(work->data);
	free(work);
}

/* What it is for: rows of JSON are half as long, or less. */
static void
test_json(void)
{
	HybStrings	in = {bytes, off, len, NULL, 200};
	HybLzWork  *work = calloc(1, sizeof(HybLzWork));
	HybLzPlan	plan;
	uint32_t	at = 0;

	for (int i = 0; i < 200; i++)
	{
		off[i] = at;
		len[i] = (uint32_t) sprintf((char *) bytes + at,
									"{\"id\": %u, \"status\": \"%s\", \"created_at\": \"2026-0%u-1%uT12:%u:00Z\", \"visits\": %u}",
									unit_below(1000000), unit_below(2) ? "active" : "inactive",
									1 + unit_below(9), unit_below(10), 10 + unit_below(50), unit_below(1000));
		at += len[i];
	}
	work->ends = malloc(200 * sizeof(uint32_t));
	work->data = malloc(at);
	hyb_lz_prepare(&in, false, work);
	CHECK(work->shift == 5, "32 strings of 90 bytes a group: %d", work->shift);
	hyb_lz_plan(&in, work, 200, values, &plan);
	CHECK(plan.size < at / 2, "%u bytes of %u", plan.size, at);
	free(work->ends);
	free(work->data);
	free(work);
}

int
main(void)
{
	bytes = malloc((size_t) MAXN * MAXLEN);
	for (int round = 0; round < 400; round++)
		test_round(round);
	test_json();
	free(bytes);
	return unit_report("lzgroups");
}
