/*
 * test_fst.c
 *		Fast Succinct Tries and range filters against sorted lists.
 *
 * They deny no key, and affirm others only where truncated keys excuse that.
 * Damaged images are read within bounds.
 *
 * HYB_FST_CHECKS=N goes on with large sets, of random keys and of the lines of
 * the files that arguments name, until N more checks have passed.
 */
#include "algo/fst.h"
#include "unit.h"

#define MAXKEYS	3000
#define MAXLEN	40

typedef struct Key
{
	uint8_t		data[MAXLEN];
	uint32_t	len;
} Key;

/* Bits of suffixes that tries are built with. */
#define SUFFIXES	5
static const unsigned suffixes[SUFFIXES] = {0, 4, 7, 14, 32};

static Key	keys[MAXKEYS];
static int	nkeys;

static void *
resize(void *old, size_t size)
{
	void	   *p = realloc(old, size);

	if (p == NULL)
		abort();
	return p;
}

static int
compare(const Key *a, const Key *b)
{
	uint32_t	n = a->len < b->len ? a->len : b->len;
	int			c = memcmp(a->data, b->data, n);

	return c != 0 ? c : (a->len > b->len) - (a->len < b->len);
}

static int
compare_keys(const void *a, const void *b)
{
	return compare(a, b);
}

/* Shapes of keys: which bytes, how long. */
static void
random_key(int shape, Key *key)
{
	static const uint8_t edges[] = {0x00, 0xFF, 0xFE, 0x01};

	switch (shape)
	{
		case 0:					/* integers */
			key->len = 8;
			for (int i = 0; i < 8; i++)
				key->data[i] = (uint8_t) unit_random();
			break;
		case 1:					/* prefixes of one another, 0xFF and 0x00 */
			key->len = unit_below(9);
			for (uint32_t i = 0; i < key->len; i++)
				key->data[i] = edges[unit_below(4)];
			break;
		case 2:					/* runs of 0xFF */
			key->len = unit_below(MAXLEN);
			memset(key->data, 0xFF, MAXLEN);
			if (key->len > 0 && unit_below(2))
				key->data[unit_below(key->len)] = (uint8_t) unit_random();
			break;
		case 3:					/* long common prefixes */
			key->len = 20 + unit_below(10);
			memset(key->data, 'a', MAXLEN);
			for (uint32_t i = 14 + unit_below(5); i < key->len; i++)
				key->data[i] = (uint8_t) ('a' + unit_below(3));
			break;
		case 4:					/* words */
			key->len = 1 + unit_below(12);
			for (uint32_t i = 0; i < key->len; i++)
				key->data[i] = (uint8_t) ('a' + unit_below(i == 0 ? 26 : 4));
			break;
		case 5:					/* dense integers */
			key->len = 4;
			key->data[0] = key->data[1] = 1;
			key->data[2] = (uint8_t) unit_below(8);
			key->data[3] = (uint8_t) unit_random();
			break;
		default:				/* two bytes: a full node or two */
			key->len = 2;
			key->data[0] = (uint8_t) unit_below(2);
			key->data[1] = (uint8_t) unit_random();
			break;
	}
}

static void
make_keys(int shape, int n)
{
	nkeys = 0;
	for (int i = 0; i < n; i++)
		random_key(shape, &keys[i]);
	qsort(keys, n, sizeof(Key), compare_keys);
	for (int i = 0; i < n; i++)
		if (nkeys == 0 || compare(&keys[nkeys - 1], &keys[i]) != 0)
			keys[nkeys++] = keys[i];
}

/* Keys below a cut. */
static int
below(const HybFstCut *cut)
{
	int			n = 0;
	int			high = nkeys;

	while (n < high)
	{
		int			mid = (n + high) / 2;
		const Key  *key = &keys[mid];
		uint32_t	common = key->len < cut->len ? key->len : cut->len;
		int			c = memcmp(key->data, cut->key, common);

		if (c == 0 && key->len < cut->len)
			c = -1;
		else if (c == 0)
			c = cut->side == HYB_CUT_BEFORE ? 1 : cut->side == HYB_CUT_AFTER ? -1 :
				key->len == cut->len ? -1 : 1;
		if (c < 0)
			n = mid + 1;
		else
			high = mid;
	}
	return n;
}

/* A key near the stored ones. */
static void
probe_key(int shape, Key *key)
{
	unsigned	how = unit_below(4);

	if (nkeys == 0 || how == 0)
	{
		random_key(shape, key);
		return;
	}
	*key = keys[unit_below(nkeys)];
	if (how == 1 && key->len > 0)
		key->len = unit_below(key->len);
	else if (how == 2 && key->len < MAXLEN)
		key->data[key->len++] = unit_below(2) ? 0xFF : (uint8_t) unit_below(3);
	else if (how == 3 && key->len > 0)
		key->data[key->len - 1] += unit_below(2) ? 1 : 255;
}

static uint32_t
shared(const Key *a, const Key *b)
{
	uint32_t	n = 0;

	while (n < a->len && n < b->len && a->data[n] == b->data[n])
		n++;
	return n;
}

/* The cuts around all that key i stands for in a trie without suffixes. */
static void
truncated(int i, HybFstCut *start, HybFstCut *end)
{
	const Key  *key = &keys[i];
	uint32_t	before = i > 0 ? shared(key, &keys[i - 1]) : 0;
	uint32_t	after = i + 1 < nkeys ? shared(key, &keys[i + 1]) : 0;
	uint32_t	len = (before > after ? before : after) + 1;
	bool		whole = after == key->len;	/* a prefix of the next key, or empty */

	*start = (HybFstCut) {key->data, whole ? key->len : len, HYB_CUT_BEFORE};
	*end = (HybFstCut) {key->data, start->len, whole ? HYB_CUT_SELF : HYB_CUT_AFTER};
}

static int
compare_cuts(const HybFstCut *a, const HybFstCut *b)
{
	int			c = memcmp(a->key, b->key, a->len < b->len ? a->len : b->len);

	if (c != 0)
		return c;
	if (a->len < b->len)
		return a->side == HYB_CUT_AFTER ? 1 : -1;
	if (a->len > b->len)
		return b->side == HYB_CUT_AFTER ? -1 : 1;
	return (int) a->side - (int) b->side;
}

/* What a trie without suffixes has to answer. */
static HybFilterAnswer
expected(const HybFstCut *low, const HybFstCut *high)
{
	int			n = 0;
	int			above = nkeys;
	HybFstCut	start;
	HybFstCut	end;

	while (n < above)
	{
		int			mid = (n + above) / 2;

		truncated(mid, &start, &end);
		if (compare_cuts(&end, low) <= 0)
			n = mid + 1;
		else
			above = mid;
	}
	if (n == nkeys)
		return HYB_ANSWER_NO;
	truncated(n, &start, &end);
	return compare_cuts(&start, high) < 0;
}

static void
check_ranges(const HybFst *fst, int shape)
{
	for (int i = 0; i < 2000; i++)
	{
		Key			a;
		Key			b;
		HybFstCut	low = {a.data, 0, (HybFstCutSide) unit_below(3)};
		HybFstCut	high = {b.data, 0, (HybFstCutSide) unit_below(3)};
		int			n;
		HybFilterAnswer answer;

		probe_key(shape, &a);
		if (unit_below(3) == 0)
		{
			b = a;
			if (b.len < MAXLEN && unit_below(2))
				b.data[b.len++] = 0xFF;
			else if (b.len > 0)
				b.data[b.len - 1]++;
		}
		else
			probe_key(shape, &b);
		low.len = a.len;
		high.len = b.len;
		n = below(&high) - below(&low);
		answer = hyb_fst_range(fst, &low, &high);
		CHECK(answer == HYB_ANSWER_MAYBE || (answer == HYB_ANSWER_NO && n <= 0),
			  "range answered %d with %d keys, shape %d", answer, n, shape);
		if (fst->suffix_bits == 0)
			CHECK(answer == expected(&low, &high) ||
				  (answer == HYB_ANSWER_NO && compare_cuts(&low, &high) >= 0),
				  "range answered %d, shape %d", answer, shape);
	}
}

static void
check_points(const HybFst *fst, int shape)
{
	for (int i = 0; i < nkeys; i++)
		CHECK(hyb_fst_lookup(fst, keys[i].data, keys[i].len) == HYB_ANSWER_MAYBE,
			  "key %d of %d is missing, shape %d", i, nkeys, shape);
	for (int i = 0; fst->suffix_bits == 0 && i < 500; i++)
	{
		Key			key;
		HybFstCut	low = {key.data, 0, HYB_CUT_BEFORE};
		HybFstCut	high = {key.data, 0, HYB_CUT_SELF};

		probe_key(shape, &key);
		low.len = high.len = key.len;
		CHECK(hyb_fst_lookup(fst, key.data, key.len) == expected(&low, &high),
			  "lookup of a key that is not there, shape %d", shape);
	}
}

/* Every question about a damaged image gets some answer. */
static void
check_damage(const uint8_t *image, size_t size, int shape)
{
	uint8_t    *copy = malloc(size);

	for (int round = 0; round < 20; round++)
	{
		HybFst		fst;

		memcpy(copy, image, size);
		for (unsigned i = unit_below(4) + 1; i > 0; i--)
			copy[unit_below(unit_below(2) ? (uint32_t) size : 64 < size ? 64 : (uint32_t) size)] = (uint8_t) unit_random();
		if (!hyb_fst_open(&fst, copy, size))
			continue;
		for (int i = 0; i < 40; i++)
		{
			Key			a;
			Key			b;
			HybFstCut	low;
			HybFstCut	high;

			probe_key(shape, &a);
			probe_key(shape, &b);
			low = (HybFstCut) {a.data, a.len, (HybFstCutSide) unit_below(3)};
			high = (HybFstCut) {b.data, b.len, (HybFstCutSide) unit_below(3)};
			(void) hyb_fst_lookup(&fst, a.data, a.len);
			(void) hyb_fst_range(&fst, &low, &high);
		}
		(void) hyb_fst_verify(&fst);
		unit_passed++;
	}
	free(copy);
}

static void
test_set(HybFstBuilder *b, int shape, unsigned suffix)
{
	size_t		size;
	uint8_t    *image;
	HybFst		fst;

	for (int i = 0; i < nkeys; i++)
	{
		CHECK(hyb_fst_builder_add(b, keys[i].data, keys[i].len), "add");
		if (unit_below(50) == 0)
			CHECK(hyb_fst_builder_add(b, keys[i].data, keys[i].len), "add twice");
	}
	size = hyb_fst_builder_finish(b);
	if (nkeys == 0)
	{
		CHECK(size == 0, "a trie without keys");
		return;
	}
	image = malloc(size);
	memset(image, 0x55, size);
	hyb_fst_builder_write(b, image);
	CHECK(hyb_fst_open(&fst, image, size), "open, shape %d", shape);
	CHECK(!hyb_fst_open(&fst, image, size - 8), "open, too short");
	CHECK(hyb_fst_open(&fst, image, size), "open again");
	CHECK(hyb_fst_verify(&fst) == NULL, "%s, shape %d", hyb_fst_verify(&fst), shape);
	CHECK(fst.nkeys == (uint32_t) nkeys, "%u of %d keys", fst.nkeys, nkeys);
	CHECK(fst.suffix_bits == suffix, "suffix");
	check_points(&fst, shape);
	check_ranges(&fst, shape);
	check_damage(image, size, shape);
	free(image);
}

/* A suffix does what it is for: few wrong answers. */
static void
test_suffix_rates(void)
{
	static HybFstBuilder *b;
	int			maybe = 0;
	uint8_t    *image;
	size_t		size;
	HybFst		fst;

	b = hyb_fst_builder_create(resize, 16);
	make_keys(0, MAXKEYS);
	for (int i = 0; i < nkeys; i += 2)
		(void) hyb_fst_builder_add(b, keys[i].data, keys[i].len);
	size = hyb_fst_builder_finish(b);
	image = malloc(size);
	hyb_fst_builder_write(b, image);
	CHECK(hyb_fst_open(&fst, image, size), "open");
	for (int i = 1; i < nkeys; i += 2)
		maybe += hyb_fst_lookup(&fst, keys[i].data, keys[i].len);
	CHECK(maybe < 5, "%d false positives with 16 bits of suffix", maybe);
	for (int i = 0; i < nkeys; i += 2)
	{
		HybFstCut	low = {keys[i].data, 8, HYB_CUT_BEFORE};
		HybFstCut	high = {keys[i].data, 8, HYB_CUT_SELF};

		CHECK(hyb_fst_range(&fst, &low, &high), "closed range of one key");
	}
	free(image);
}

/* ---- at scale ---- */

typedef struct LongKey
{
	uint8_t    *data;
	uint32_t	len;
} LongKey;

static LongKey *many;
static size_t nmany;
static size_t many_alloc;

static int
compare_long(const void *a, const void *b)
{
	const LongKey *x = a;
	const LongKey *y = b;
	int			c = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);

	return c != 0 ? c : (x->len > y->len) - (x->len < y->len);
}

static void
add_long(const void *data, uint32_t len)
{
	uint8_t    *copy = resize(NULL, len + 1);

	if (nmany == many_alloc)
	{
		many_alloc = many_alloc == 0 ? 1024 : many_alloc * 2;
		many = resize(many, many_alloc * sizeof(LongKey));
	}
	memcpy(copy, data, len);
	many[nmany].data = copy;
	many[nmany++].len = len;
}

static void
forget_long(void)
{
	for (size_t i = 0; i < nmany; i++)
		free(many[i].data);
	nmany = 0;
}

/* Every other line of a file, for what is not there lies near it then. */
static void
load_long(const char *file)
{
	FILE	   *f = fopen(file, "r");
	char	   *line = NULL;
	size_t		size = 0;
	ssize_t		n;

	if (f == NULL)
	{
		perror(file);
		exit(1);
	}
	for (unsigned i = 0; (n = getline(&line, &size, f)) > 0; i++)
		if (i % 2 == 0)
			add_long(line, (uint32_t) n - (line[n - 1] == '\n'));
	fclose(f);
	free(line);
}

static void
random_long(int shape, size_t n)
{
	Key			key;

	for (size_t i = 0; i < n; i++)
	{
		random_key(shape, &key);
		add_long(key.data, key.len);
	}
}

static void
sort_long(void)
{
	size_t		n = 0;

	qsort(many, nmany, sizeof(LongKey), compare_long);
	for (size_t i = 0; i < nmany; i++)
		if (n == 0 || compare_long(&many[n - 1], &many[i]) != 0)
			many[n++] = many[i];
		else
			free(many[i].data);
	nmany = n;
}

/* All keys of the set: found, in ranges of every kind. */
static void
check_long(const HybFst *fst)
{
	unsigned	wrong = 0;

	for (size_t i = 0; i < nmany; i++)
	{
		const LongKey *k = &many[i];
		size_t		other = unit_below(4) == 0 ? unit_below((uint32_t) nmany) :
			i + unit_below(8) < nmany ? i + unit_below(8) % (nmany - i) : i;
		size_t		first = i < other ? i : other;
		size_t		last = i < other ? other : i;
		HybFstCut	low = {many[first].data, many[first].len, HYB_CUT_BEFORE};
		HybFstCut	high = {many[last].data, many[last].len, HYB_CUT_SELF};
		HybFstCut	self_low = {k->data, k->len, HYB_CUT_BEFORE};
		HybFstCut	self_high = {k->data, k->len, HYB_CUT_SELF};
		HybFstCut	after = {k->data, unit_below(k->len + 1), HYB_CUT_AFTER};

		wrong += hyb_fst_lookup(fst, k->data, k->len) != HYB_ANSWER_MAYBE;
		wrong += hyb_fst_range(fst, &self_low, &self_high) != HYB_ANSWER_MAYBE;
		wrong += hyb_fst_range(fst, &self_low, &after) != HYB_ANSWER_MAYBE;
		wrong += hyb_fst_range(fst, &low, &high) != HYB_ANSWER_MAYBE;

		/* open at either end, with a key between */
		if (last - first >= 2)
		{
			HybFstCut	open_low = {low.key, low.len, HYB_CUT_SELF};
			HybFstCut	open_high = {high.key, high.len, HYB_CUT_BEFORE};

			wrong += hyb_fst_range(fst, &open_low, &open_high) != HYB_ANSWER_MAYBE;
		}
		else
			wrong += hyb_fst_range(fst, &self_low, &high) != HYB_ANSWER_MAYBE;
	}
	CHECK(wrong == 0, "%u wrong answers about %zu keys", wrong, nmany);
	unit_passed += wrong == 0 ? (unsigned) nmany * 5 : 0;
}

static void
test_long(const char *name)
{
	static HybFstBuilder *builders[SUFFIXES];
	unsigned	before = unit_passed;

	sort_long();
	for (int variant = 0; variant < SUFFIXES; variant++)
	{
		HybFstBuilder *b = builders[variant];
		uint8_t    *image;
		size_t		size;
		HybFst		fst;

		if (b == NULL)
			b = builders[variant] = hyb_fst_builder_create(resize, suffixes[variant]);
		hyb_fst_builder_reset(b);
		for (size_t i = 0; i < nmany; i++)
			(void) hyb_fst_builder_add(b, many[i].data, many[i].len);
		size = hyb_fst_builder_finish(b);
		CHECK(nmany == 0 || size > 0, "%s: no image", name);
		image = malloc(size + 1);
		if (nmany > 0)
		{
			hyb_fst_builder_write(b, image);
			CHECK(hyb_fst_open(&fst, image, size) && hyb_fst_verify(&fst) == NULL,
				  "%s: damaged", name);
			check_long(&fst);
		}
		free(image);
	}
	printf("%s: %zu keys, %u checks\n", name, nmany, unit_passed - before);
	fflush(stdout);
	forget_long();
}

static void
test_at_scale(double wanted, int nfiles, char **files)
{
	static const char *const shapes[] = {
		"random int8", "prefixes", "runs of 0xFF", "long common prefixes",
		"words", "dense int4", "two bytes"};
	double		start = unit_passed;

	test_long("empty set");
	do
	{
		for (int i = 0; i < nfiles; i++)
		{
			load_long(files[i]);
			test_long(files[i]);
		}
		for (int shape = 0; shape < 7; shape++)
		{
			random_long(shape, 1000000);
			test_long(shapes[shape]);
			random_long(shape, 1);
			test_long("single key");
		}
	} while (unit_passed - start < wanted);
	free(many);
}

int
main(int argc, char **argv)
{
	static const int sizes[] = {0, 1, 2, 3, 17, 300, MAXKEYS};

	/* static, as all builders here: nothing frees them */
	static HybFstBuilder *builders[SUFFIXES];

	for (int variant = 0; variant < SUFFIXES; variant++)
	{
		unsigned	suffix = suffixes[variant];
		HybFstBuilder *b = builders[variant] = hyb_fst_builder_create(resize, suffix);

		for (int shape = 0; shape < 7; shape++)
			for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			{
				make_keys(shape, sizes[i]);
				hyb_fst_builder_reset(b);
				test_set(b, shape, suffix);
			}

		/* the empty key alone, and order */
		nkeys = 1;
		keys[0].len = 0;
		hyb_fst_builder_reset(b);
		test_set(b, 1, suffix);
		hyb_fst_builder_reset(b);
		CHECK(hyb_fst_builder_add(b, (const uint8_t *) "b", 1), "add");
		CHECK(!hyb_fst_builder_add(b, (const uint8_t *) "a", 1), "not ascending");
		CHECK(hyb_fst_builder_finish(b) == 0, "finish after failure");
	}
	test_suffix_rates();
	if (getenv("HYB_FST_CHECKS") != NULL)
		test_at_scale(atof(getenv("HYB_FST_CHECKS")), argc - 1, argv + 1);
	return unit_report("fst");
}
