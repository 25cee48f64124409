/*
 * test_position.c
 *		Positions between entries, and the separators that become fence keys: each
 *		entry lies on the same side of a position, however that is asked.
 *
 * Keys are random, few bytes differ, and some keys begin with others.  All pairs are
 * compared with the order of a sorted array.
 */
#include "index_file.h"

#include "key/key.h"
#include "key/position.h"
#include "unit.h"

#define NENTRIES	160
#define MAXLEN		96

typedef struct TestEntry
{
	uint8		key[MAXLEN];
	uint32		len;
	ItemPointerData tid;
} TestEntry;

static TestEntry entries[NENTRIES];
static HybKeyDesc *desc;

typedef enum Kind
{
	INT4,
	TEXT_INT8,					/* the number descends */
	TEXT_DESC,					/* nulls come first */
	UUIDS,						/* 16 bytes without a terminator */
	COLUMNS,					/* compared column by column */
	KINDS
} Kind;

static void
make_desc(Kind kind)
{
	static const HybColumn number = {.store = HYB_STORE_INT,.compare = HYB_COMPARE_MEM,.width = 8};
	static const HybColumn string = {.store = HYB_STORE_BYTES,.compare = HYB_COMPARE_MEM,.terminated = true};

	desc = calloc(1, hyb_key_desc_size(2));
	desc->all_mem = desc->exact = kind != COLUMNS;
	desc->natts = desc->nkeys = kind == TEXT_INT8 || kind == COLUMNS ? 2 : 1;
	desc->cols[0] = kind == INT4 ? number : string;
	desc->cols[1] = number;
	desc->cols[1].desc = kind == TEXT_INT8;
	if (kind == INT4)
		desc->cols[0].width = 4;
	if (kind == TEXT_DESC)
		desc->cols[0].desc = desc->cols[0].nulls_first = true;
	if (kind == UUIDS)
	{
		desc->cols[0].width = 16;
		desc->cols[0].terminated = false;
	}
}

/* Letters of a string that differ late, or not at all; a terminator is not among them. */
static void
make_string(HybValue *val, int width)
{
	static uint8 space[MAXLEN];
	int			len = width > 0 ? width : (int) unit_below(24);

	for (int i = 0; i < len; i++)
		space[i] = (uint8) (unit_below(5) == 0 ? 'a' + unit_below(3) : 'b');
	val->ptr = space;
	val->len = (uint32) len;
}

static void
make_entry(TestEntry *entry)
{
	HybBuf		key = {0};
	HybValue	vals[2] = {{0}};

	for (int i = 0; i < desc->nkeys; i++)
	{
		const HybColumn *col = &desc->cols[i];

		vals[i].isnull = col->width != 16 && unit_below(12) == 0;
		if (col->store == HYB_STORE_INT)
			vals[i].ival = unit_below(2) == 0 ? unit_below(4) : unit_below(1 << 20);
		else if (!vals[i].isnull)
			make_string(&vals[i], col->width);
	}
	hyb_key_join(desc, vals, desc->nkeys, &key);
	if (key.len > MAXLEN)
		abort();
	entry->len = key.len;
	memcpy(entry->key, key.data, key.len);
	ItemPointerSet(&entry->tid, unit_below(3), (OffsetNumber) (1 + unit_below(3)));
}

static int
compare_keys(const TestEntry *a, const TestEntry *b)
{
	if (desc->all_mem)
	{
		int			c = memcmp(a->key, b->key, Min(a->len, b->len));

		return c != 0 ? c : (int) a->len - (int) b->len;
	}
	return hyb_key_compare(desc, a->key, a->len, b->key, b->len);
}

static int
compare_entries(const void *a, const void *b)
{
	TestEntry  *x = (TestEntry *) a;
	TestEntry  *y = (TestEntry *) b;
	int			c = compare_keys(x, y);

	return c != 0 ? c : ItemPointerCompare(&x->tid, &y->tid);
}

static HybPos
at(const TestEntry *entry)
{
	return hyb_pos_at(desc, entry->key, entry->len, entry->tid);
}

/* An entry against a position. */
static int
side_of(const TestEntry *entry, const HybPos *pos)
{
	return hyb_pos_compare_key(desc, entry->key, entry->len, &entry->tid, pos);
}

/* No shorter beginning of the right key separates the two as well. */
static bool
is_shortest(const TestEntry *left, const HybPos *sep)
{
	HybPos		shorter = *sep;
	HybValue	vals[2];

	if (sep->tie == HYB_AT || sep->len == 0)
		return true;
	if (desc->all_mem)
	{
		shorter.len--;
		shorter.ncols = 0;
	}
	else if (sep->ncols > 1)
	{
		shorter.ncols--;
		shorter.len = (uint16) hyb_key_split(desc, sep->key, sep->len, shorter.ncols, vals);
	}
	else
		return true;
	return shorter.len == 0 || side_of(left, &shorter) >= 0;
}

static void
check_separator(int i, int j)
{
	HybPos		left = at(&entries[i]);
	HybPos		right = at(&entries[j]);
	HybPos		sep;
	int			order = compare_entries(&entries[i], &entries[j]);

	if (order == 0)
	{
		CHECK(!hyb_separator(desc, &left, &right, &sep), "equal entries are separated");
		return;
	}
	CHECK(hyb_pos_compare(desc, &left, &right) < 0 && hyb_pos_compare(desc, &right, &left) > 0,
		  "positions %d and %d are not in order", i, j);
	CHECK(!hyb_separator(desc, &right, &left, &sep), "descending entries are separated");
	CHECK(hyb_separator(desc, &left, &right, &sep), "no separator of %d and %d", i, j);
	CHECK(sep.key == entries[j].key && sep.len <= entries[j].len, "not a beginning of the right key");
	CHECK(hyb_pos_compare(desc, &left, &sep) < 0 && hyb_pos_compare(desc, &sep, &right) <= 0,
		  "the separator of %d and %d is not between them", i, j);
	CHECK((sep.tie == HYB_AT) == (compare_keys(&entries[i], &entries[j]) == 0),
		  "a TID is needed for equal keys only");
	CHECK(is_shortest(&entries[i], &sep), "a shorter separator of %d and %d would do", i, j);

	/* what lies on one side of both lies on that side of the separator */
	for (int k = 0; k < NENTRIES; k += 1 + (int) unit_below(20))
	{
		int			side = side_of(&entries[k], &sep);

		CHECK(compare_entries(&entries[k], &entries[i]) > 0 || side < 0,
			  "entry %d is not below the separator of %d and %d", k, i, j);
		CHECK(compare_entries(&entries[k], &entries[j]) < 0 || side >= 0,
			  "entry %d is below the separator of %d and %d", k, i, j);
	}
}

/* The cuts on both sides of an entry, and what a copy of a position says. */
static void
check_around(int i)
{
	HybPos		pos = at(&entries[i]);
	HybPos		above = hyb_pos_above(&pos);
	HybPos		below = hyb_pos_below(&pos);
	HybPos		copy;
	HybBuf		keybuf = {0};

	CHECK(side_of(&entries[i], &pos) == 0, "an entry is not at its position");
	CHECK(side_of(&entries[i], &above) < 0, "an entry is not below the cut above it");
	CHECK(side_of(&entries[i], &below) > 0, "an entry is not above the cut below it");
	for (int tie = HYB_BEFORE; tie <= HYB_AFTER; tie++)
	{
		pos.tie = (int8) tie;
		hyb_pos_copy(&copy, &keybuf, &pos);
		CHECK(copy.key != pos.key && hyb_pos_compare(desc, &copy, &pos) == 0,
			  "a copy of a position is another one");
		for (int k = 0; k < NENTRIES; k += 7)
		{
			int			order = compare_keys(&entries[k], &entries[i]);
			int			side = side_of(&entries[k], &copy);

			CHECK(order == 0 || (order < 0) == (side < 0), "entry %d lies on the wrong side of %d", k, i);
			CHECK(order != 0 || tie == HYB_AT || (tie == HYB_BEFORE) == (side > 0),
				  "entry %d lies on the wrong side of the same key", k);
		}
	}
}

/* Beginnings of keys, as scans and leaves of prefixes have them. */
static void
check_beginnings(void)
{
	for (int round = 0; round < 2000 && desc->all_mem; round++)
	{
		const TestEntry *entry = &entries[unit_below(NENTRIES)];
		HybPos		a = at(entry);
		HybPos		b = at(&entries[unit_below(NENTRIES)]);
		bool		above = false;
		int			order;

		a.len = (uint16) (1 + unit_below(a.len));
		b.len = (uint16) (1 + unit_below(b.len));
		a.ncols = b.ncols = 0;
		a.tie = unit_below(2) == 0 ? HYB_BEFORE : HYB_AFTER;
		b.tie = unit_below(2) == 0 ? HYB_BEFORE : HYB_AFTER;
		order = hyb_pos_compare(desc, &a, &b);
		CHECK((order < 0) == (hyb_pos_compare(desc, &b, &a) > 0), "two beginnings have no order");
		for (int k = 0; k < NENTRIES; k++)
		{
			bool		below_a = side_of(&entries[k], &a) < 0;
			bool		below_b = side_of(&entries[k], &b) < 0;

			CHECK(!(above && below_a), "entry %d is below a position, and a lesser one above", k);
			above |= !below_a;
			CHECK(order == 0 ? below_a == below_b : order < 0 ? below_b || !below_a : below_a || !below_b,
				  "entry %d tells another order of two positions", k);
		}
	}
}

int
main(void)
{
	if (setjmp(hyb_fuzz_error) != 0)
		CHECK(false, "an error was raised");
	else
		for (int round = 0; round < 2; round++)
			for (Kind kind = INT4; kind < KINDS; kind++)
			{
				make_desc(kind);
				for (int i = 0; i < NENTRIES; i++)
					make_entry(&entries[i]);
				qsort(entries, NENTRIES, sizeof(TestEntry), compare_entries);
				for (int i = 0; i < NENTRIES; i++)
					for (int j = i; j < NENTRIES; j++)
						check_separator(i, j);
				for (int i = 0; i < NENTRIES; i++)
					check_around(i);
				check_beginnings();
				free(desc);
				hyb_fuzz_reset();
			}
	return unit_report("position");
}
