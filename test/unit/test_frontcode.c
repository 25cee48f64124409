/*
 * test_frontcode.c
 *		Front-coded strings come back in any order of reading, and searches agree
 *		with a linear scan.  Damaged strings are read within bounds.
 */
#include "algo/frontcode.h"
#include "unit.h"

#define MAXN	600
#define MAXLEN	400

typedef struct String
{
	uint32_t	len;
	uint8_t		bytes[MAXLEN];
} String;

static String strings[MAXN];
static bool end_high;

static int
compare(const void *a, const void *b)
{
	const String *x = a;
	const String *y = b;
	uint32_t	n = x->len < y->len ? x->len : y->len;
	int			c = memcmp(x->bytes, y->bytes, n);

	if (c != 0 || x->len == y->len)
		return c;
	return (x->len < y->len) == end_high ? 1 : -1;
}

static void
make(uint32_t n, int shape)
{
	uint32_t	alphabet = shape == 0 ? 2 : shape == 1 ? 256 : 20;

	for (uint32_t i = 0; i < n; i++)
	{
		String	   *s = &strings[i];

		s->len = unit_below(shape == 3 ? MAXLEN : 24);
		for (uint32_t j = 0; j < s->len; j++)
			s->bytes[j] = (uint8_t) ('a' + unit_below(alphabet));
		if (shape == 2 && s->len > 5)
			memcpy(s->bytes, "same:", 5);
		if (i > 0 && unit_below(2))
		{
			uint32_t	k = strings[i - 1].len;

			k = k < s->len ? k : s->len;
			memcpy(s->bytes, strings[i - 1].bytes, k);
		}
	}
}

static bool
begins(const String *s, const String *t)
{
	return s->len <= t->len && memcmp(s->bytes, t->bytes, s->len) == 0;
}

/* Of sorted strings leave out those that begin with another one. */
static uint32_t
leave_beginnings(uint32_t n)
{
	uint32_t	left = 1;

	for (uint32_t i = 1; i < n; i++)
		if (!begins(&strings[left - 1], &strings[i]))
			strings[left++] = strings[i];
	return left;
}

static void
test_round(int round)
{
	uint32_t	n = 1 + unit_below(round % 4 == 0 ? 40 : MAXN);
	bool		sorted = round % 3 != 0;
	bool		prefix_free = round % 6 == 2;
	uint8_t    *bytes = malloc(MAXN * MAXLEN);
	uint32_t   *off = malloc(MAXN * sizeof(uint32_t));
	uint32_t   *len = malloc(MAXN * sizeof(uint32_t));
	uint32_t   *lcp = malloc(MAXN * sizeof(uint32_t));
	uint32_t   *rest = malloc(MAXN * sizeof(uint32_t));
	uint32_t	at = 0;
	HybStrings	in = {bytes, off, len, lcp, 0};
	HybFrontCode code;
	HybFrontPlan plan;
	HybFront	front;
	HybFrontCursor cursor;
	uint8_t    *buf;
	uint8_t    *damaged;
	HybFrontFinger finger;
	bool		same = true;
	uint32_t	at_string = 0;

	end_high = round % 2;
	make(n, round % 5);
	if (sorted)
		qsort(strings, n, sizeof(String), compare);
	if (prefix_free)
		n = leave_beginnings(n);
	for (uint32_t i = 0; i < n; i++)
	{
		off[i] = at;
		len[i] = strings[i].len;
		memcpy(bytes + at, strings[i].bytes, len[i]);
		lcp[i] = i == 0 ? 0 :
			hyb_common_prefix(strings[i].bytes, strings[i - 1].bytes,
							  len[i] < len[i - 1] ? len[i] : len[i - 1]);
		at += len[i];
	}

	code.rest = rest;
	hyb_front_prepare(&in, n, round % 7 != 0, &code);
	/* plans may be made for fewer strings than were prepared */
	n = 1 + unit_below(n);
	hyb_front_plan(&in, &code, n, &plan);
	CHECK(hyb_front_least(&in, &code, n) <= plan.size, "a plan of less than the least");
	if (plan.data_len > UINT16_MAX)
	{
		n = 1;
		hyb_front_plan(&in, &code, n, &plan);
	}
	buf = calloc(1, plan.size + 8);
	CHECK(hyb_front_write(&in, &code, n, &plan, buf) == buf + plan.size,
		  "round %d: size", round);
	front.prefix = bytes + off[0];
	front.prefix_len = plan.prefix_len;
	CHECK(hyb_front_open(&front, n, buf, buf + plan.size) == buf + plan.size,
		  "round %d: open", round);

	memset(&cursor, 0, sizeof(cursor));
	cursor.buf = malloc(MAXLEN);
	cursor.cap = MAXLEN;
	cursor.table = round % 2 ? malloc(HYB_HUFF_TABLE * sizeof(HybHuffEntry)) : NULL;
	hyb_front_cursor_reset(&front, &cursor);
	for (uint32_t i = 0; i < n; i++)
		same &= hyb_front_read(&front, &cursor, i) &&
			cursor.len == len[i] && memcmp(cursor.buf, bytes + off[i], len[i]) == 0;
	CHECK(same, "round %d: in order", round);
	for (int k = 0; k < 200; k++)
	{
		uint32_t	i = unit_below(n);

		same &= hyb_front_read(&front, &cursor, i) &&
			cursor.len == len[i] && memcmp(cursor.buf, bytes + off[i], len[i]) == 0;
	}
	CHECK(same, "round %d: at random", round);

	for (int k = 0; sorted && k < 100; k++)
	{
		String		t = strings[unit_below(n)];
		uint32_t	lo = k % 2 ? 0 : unit_below(n);
		uint32_t	hi = k % 2 ? n : lo + unit_below(n - lo + 1);
		bool		upper = unit_below(2);
		bool		equal;
		uint32_t	want = lo;
		int			got;

		if (k % 3 == 0 && t.len > 0)
			t.bytes[unit_below(t.len)] += (uint8_t) (unit_below(3) - 1);
		else if (k % 3 == 1)
			t.len = unit_below(t.len + 1);
		while (want < hi && (compare(&strings[want], &t) < 0 ||
							 (upper && compare(&strings[want], &t) == 0)))
			want++;
		got = hyb_front_search(&front, lo, hi, t.bytes, t.len, end_high, upper,
							   &equal);
		same &= got == (int) want;
		if (!upper)
			same &= equal == (want < hi && compare(&strings[want], &t) == 0);
	}
	CHECK(same, "round %d: search", round);

	/* fingers: mostly upwards, sometimes back, and again for the same */
	finger.set = false;
	for (int k = 0; sorted && k < 300; k++)
	{
		uint32_t	i = at_string;
		String		t;
		bool		equal;
		uint32_t	want = 0;
		int			got;

		if (k == 0 || unit_below(40) == 0)
		{
			finger.set = unit_below(2) && k > 0 && finger.set;
			i = unit_below(n);
		}
		at_string = i + unit_below(unit_below(8) == 0 ? 60 : 4);
		at_string = at_string < n ? at_string : n - 1;
		t = strings[at_string];
		if (k % 3 == 0 && t.len > 0)
			t.bytes[unit_below(t.len)] += (uint8_t) (unit_below(3) - 1);
		else if (k % 3 == 1)
			t.len = unit_below(t.len + 1);
		while (want < n && compare(&strings[want], &t) < 0)
			want++;
		got = hyb_front_search_on(&front, &finger, t.bytes, t.len, end_high, &equal);
		same &= got == (int) want &&
			equal == (want < n && compare(&strings[want], &t) == 0);
	}
	CHECK(same, "round %d: search on", round);

	/* such rounds have end_high false: a beginning lies below what it begins */
	for (int k = 0; prefix_free && k < 100; k++)
	{
		String		t = strings[unit_below(n)];
		bool		found;
		uint32_t	got_len;
		uint32_t	want = 0;
		int			got;

		if (k % 3 == 0 && t.len > 0)
			t.bytes[unit_below(t.len)] += (uint8_t) (unit_below(3) - 1);
		else if (k % 3 == 1)
			t.len = unit_below(t.len + 1);
		while (want < n && !begins(&strings[want], &t) && compare(&strings[want], &t) < 0)
			want++;
		got = hyb_front_search_beginning(&front, t.bytes, t.len, &found, &got_len);
		same &= got == (int) want && found == (want < n && begins(&strings[want], &t)) &&
			(!found || got_len == strings[want].len);
	}
	CHECK(same, "round %d: search of what begins", round);

	/* damage: an answer or a refusal, within bounds */
	damaged = malloc(plan.size + 8);
	for (int k = 0; k < 30; k++)
	{
		bool		equal;

		memcpy(damaged, buf, plan.size);
		for (uint32_t j = 1 + unit_below(3); j > 0; j--)
			damaged[unit_below(unit_below(2) && plan.size > 16 ? 16 : plan.size)] = (uint8_t) unit_random();
		if (hyb_front_open(&front, n, damaged, damaged + plan.size) == NULL)
			continue;
		finger.set = false;
		hyb_front_cursor_reset(&front, &cursor);
		for (uint32_t i = 0; i < n; i++)
			same &= !hyb_front_read(&front, &cursor, i) || cursor.len <= MAXLEN;
		for (int j = 0; j < 10; j++)
		{
			String	   *t = &strings[unit_below(n)];

			hyb_front_read(&front, &cursor, unit_below(n));
			same &= hyb_front_search(&front, 0, n, t->bytes, t->len, end_high,
									 false, &equal) <= (int) n;
			same &= hyb_front_search_on(&front, &finger, t->bytes, t->len, end_high,
										&equal) <= (int) n;
		}
	}
	CHECK(same, "round %d: damage", round);

	free(damaged);
	free(buf);
	free(cursor.buf);
	free(cursor.table);
	free(bytes);
	free(off);
	free(len);
	free(lcp);
	free(rest);
}

int
main(void)
{
	for (int round = 0; round < 1500; round++)
		test_round(round);
	return unit_report("frontcode");
}
