/*
 * test_intseq.c
 *		Bit packing and integer models: all integers come back, and searches agree
 *		with a linear scan.  Damaged bytes are read within bounds.
 */
#include "algo/intseq.h"
#include "unit.h"

#define MAXN	3000

static uint64_t v[MAXN];
static uint64_t copy[MAXN];

static void
test_bits(void)
{
	uint8_t		buf[64 * 9 + 16];

	for (unsigned bits = 0; bits <= 64; bits++)
	{
		uint64_t	mask = bits == 0 ? 0 : ~UINT64_C(0) >> (64 - bits);
		bool		same = true;

		memset(buf, 0, sizeof(buf));
		for (int i = 0; i < 64; i++)
		{
			v[i] = unit_random() & mask;
			hyb_bits_put(buf, (uint64_t) i * bits, bits, v[i]);
		}
		for (int i = 0; i < 64; i++)
			same &= hyb_bits_get(buf, (uint64_t) i * bits, bits) == v[i];
		CHECK(same, "width %u", bits);
	}
	for (int i = 0; i < 1000; i++)
	{
		uint64_t	x = unit_random() & unit_random();
		unsigned	n = (unsigned) __builtin_popcountll(x);
		uint64_t	rest = x;
		bool		same = hyb_popcount64(x) == n;

		for (unsigned k = 0; k < n; k++, rest &= rest - 1)
			same &= hyb_select64(x, k) == (unsigned) __builtin_ctzll(rest);
		CHECK(same, "%llx", (unsigned long long) x);
	}
}

static void
test_varint(void)
{
	static const uint32_t values[] = {0, 1, 127, 128, 16383, 16384, 2097151,
	2097152, UINT32_MAX};

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
	{
		uint8_t		buf[8];
		uint8_t    *end = hyb_varint_write(buf, values[i]);
		uint32_t	back = 0;

		CHECK((uint32_t) (end - buf) == hyb_varint_size(values[i]), "size of %u", values[i]);
		CHECK(hyb_varint_read(buf, end, &back) == end && back == values[i],
			  "%u came back as %u", values[i], back);
		CHECK(hyb_varint_read(buf, end - 1, &back) == NULL, "%u cut short",
			  values[i]);
	}
}

static int
compare_u64(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return x < y ? -1 : x > y;
}

/* Fills v with n numbers of some shape. */
static void
make(uint32_t n, int shape)
{
	uint64_t	base = unit_random() >> unit_below(60);
	unsigned	sh = unit_below(64);

	for (uint32_t i = 0; i < n; i++)
	{
		switch (shape)
		{
			case 0:
				v[i] = base;
				break;
			case 1:
				v[i] = unit_random() >> sh;
				break;
			case 2:
				v[i] = base + 7 * (uint64_t) i;
				break;
			case 3:
				v[i] = base - 5 * (uint64_t) i + unit_below(3);
				break;
			case 4:
				v[i] = i / 3 + base;
				break;
			case 5:
				v[i] = unit_below(100) == 0 ? unit_random() >> sh : unit_below(10);
				break;
			case 6:
				v[i] = ~UINT64_C(0) - unit_below(5);
				break;
			default:
				v[i] = (uint64_t) i * i * 1000 + unit_below(1000);
				break;
		}
	}
	if (unit_below(2))
		qsort(v, n, sizeof(uint64_t), compare_u64);
}

static void
test_sequences(void)
{
	unsigned	models[HYB_SEQ_EF + 1] = {0};

	for (int round = 0; round < 6000; round++)
	{
		uint32_t	n = 1 + unit_below(round % 3 == 0 ? 20 : round % 3 == 1 ? 300 : MAXN);
		HybSeqPlan	plan;
		HybSeq		seq;
		HybSeqCursor cursor = {0, 0};
		uint8_t    *buf;
		bool		same = true;
		uint32_t	from;
		uint32_t	count;

		make(n, round % 8);
		hyb_seq_plan(v, n, &plan);
		models[plan.model]++;
		buf = calloc(1, plan.size + 8);
		CHECK(hyb_seq_write(&plan, v, n, buf) == buf + plan.size,
			  "round %d: size", round);
		CHECK(hyb_seq_open(&seq, n, buf, buf + plan.size) == buf + plan.size,
			  "round %d: open", round);

		for (uint32_t i = 0; i < n; i++)
			same &= hyb_seq_get(&seq, i) == v[i];
		CHECK(same, "round %d, model %d: get", round, plan.model);
		for (uint32_t i = unit_below(n); i < n; i += 1 + (unit_below(10) == 0))
			same &= hyb_seq_get_next(&seq, &cursor, i) == v[i];
		CHECK(same, "round %d, model %d: get_next", round, plan.model);
		from = unit_below(n);
		count = 1 + unit_below(n - from);
		hyb_seq_decode(&seq, from, count, copy);
		CHECK(memcmp(copy, v + from, count * sizeof(uint64_t)) == 0,
			  "round %d, model %d: decode", round, plan.model);

		for (int k = 0; plan.ascending && k < 20; k++)
		{
			uint64_t	x = v[unit_below(n)] + unit_below(3) - 1;
			uint32_t	lo = unit_below(n);
			uint32_t	hi = lo + unit_below(n - lo + 1);
			uint32_t	want = lo;

			if (k == 0)
				x = unit_random();
			if (k % 2)
			{
				lo = want = 0;
				hi = n;
			}
			while (want < hi && v[want] < x)
				want++;
			same &= hyb_seq_lower_bound(&seq, lo, hi, x) == want;
		}
		CHECK(same, "round %d, model %d: lower bound", round, plan.model);

		/* a sequence cut short is refused */
		for (uint32_t len = 0; len < plan.size; len += 1 + unit_below(50))
		{
			uint8_t    *cut = malloc(len + 8);

			memcpy(cut, buf, len);
			same &= hyb_seq_open(&seq, n, cut, cut + len) == NULL;
			free(cut);
		}
		CHECK(same, "round %d: cut short", round);

		/* damage may change values, but the sanitizer must stay content */
		for (int k = 0; k < 5; k++)
		{
			buf[unit_below(unit_below(2) ? plan.size : plan.size < 16 ? plan.size : 16)] = (uint8_t) unit_random();
			if (hyb_seq_open(&seq, n, buf, buf + plan.size) == NULL)
				continue;
			hyb_seq_decode(&seq, 0, n, copy);
			for (int i = 0; i < 20; i++)
			{
				uint32_t	r = hyb_seq_lower_bound(&seq, 0, n, unit_random() >> unit_below(64));

				same &= r <= n;
				hyb_seq_get(&seq, unit_below(n));
			}
		}
		CHECK(same, "round %d: search in damaged sequence", round);
		free(buf);
	}
	for (int m = 0; m <= HYB_SEQ_EF; m++)
		CHECK(models[m] > 100, "model %d was chosen %u times", m, models[m]);
}

/* Sizes that the leaf format counts on. */
static void
test_sizes(void)
{
	HybSeqPlan	plan;
	uint32_t	n = 1000;

	for (uint32_t i = 0; i < n; i++)
		v[i] = UINT64_C(0x8000000000000000) + 3 * (uint64_t) i;
	hyb_seq_plan(v, n, &plan);
	CHECK(plan.size < 24, "a line takes %u bytes", plan.size);

	/* Elias-Fano: at most log2(range / n) + 2 bits and the samples */
	for (uint32_t i = 0; i < n; i++)
		v[i] = unit_random() >> 20;
	qsort(v, n, sizeof(uint64_t), compare_u64);
	hyb_seq_plan(v, n, &plan);
	CHECK(plan.size * 8 < n * (44 - 9.96 + 2.2) + 200, "random numbers take %u bytes",
		  plan.size);
}

int
main(void)
{
	test_bits();
	test_varint();
	test_sequences();
	test_sizes();
	return unit_report("intseq");
}
