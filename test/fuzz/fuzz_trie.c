/*
 * fuzz_trie.c
 *		Levels of leaves that hold prefixes, beside a sorted array of the keys.
 *
 * The input says what keys there are.  A level is built of some, then the rest is
 * merged in, a leaf group at a time, as merge steps do.  After each step leaves are
 * well formed, and every entry is in the row that its key leads to.  Searches say
 * rightly what lies below and above a position.
 */
#include "server.h"

#include "algo/bits.h"
#include "filter/filter.h"
#include "key/key.h"
#include "leaf/leaf.h"
#include "leaf/prefixes.h"

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern size_t hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max);

#define NDESCS		6
#define MAX_ENTRIES	6000
#define MAX_KEYS	6			/* of inputs with few of them */
#define WIDE_KEYS	40			/* rows of a value of the first column, in others,
								 * or fewer */
#define MAX_LEAVES	4000
#define KEY_BYTES	40
#define MAX_STRING	24

typedef struct Entry
{
	uint8		key[KEY_BYTES];
	uint32		keylen;
	ItemPointerData tid;
	bool		merged;
} Entry;

typedef struct Leaf
{
	char		page[BLCKSZ];
	HybPos		low;
	uint8		low_key[KEY_BYTES];
} Leaf;

/* What is made of an input; each entry's TID says which one it is. */
static struct
{
	HybIndex	ix;
	const HybLeafLayout *layout;
	Entry	   *entries;		/* in the order of keys and TIDs */
	int			nentries;
	int		   *of_tid;			/* entry with the n-th TID */
	Leaf	   *leaves;
	int			nleaves;
	Leaf	   *made;			/* of the run being built */
	int			nmade;
	HybPos		run_low;
	uint64		random;
	uint32		added;			/* bytes that a string adds to another one, at most */
	uint32		letters;
} f;

static void
require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static uint32
next_random(uint32 below)
{
	f.random = f.random * UINT64CONST(6364136223846793005) + UINT64CONST(1442695040888963407);
	return (uint32) ((f.random >> 33) % below);
}

/* ---- indexes ---- */

/* 0: int8; 1: uuid DESC; 2: int4, int8; 3: uuid, uuid; 4: text; 5: text DESC, int4 */
static HybKeyDesc *
make_desc(int i)
{
	HybKeyDesc *desc = calloc(1, offsetof(HybKeyDesc, cols) + 2 * sizeof(HybColumn));

	desc->natts = desc->nkeys = i == 4 ? 1 : i == 5 ? 2 : i / 2 + 1;
	desc->all_mem = desc->exact = desc->truncated = true;
	for (int c = 0; c < desc->natts; c++)
	{
		HybColumn  *col = &desc->cols[c];
		bool		is_int = i >= 4 ? c == 1 : i % 2 == 0;

		col->compare = HYB_COMPARE_MEM;
		col->store = is_int ? HYB_STORE_INT : HYB_STORE_BYTES;
		col->width = i >= 4 ? 4 * c : i % 2 == 1 ? 16 : i == 2 && c == 0 ? 4 : 8;
		col->terminated = i >= 4 && c == 0;
		col->desc = col->nulls_first = i == 1 || (i == 5 && c == 0);
	}
	f.layout = i >= 4 ? &hyb_strings_layout : &hyb_trie_layout;
	return desc;
}

/* Bytes of a column that are its value's: `at` is behind its flag byte. */
static uint32
value_length(const HybColumn *col, const uint8 *at)
{
	uint32		len = 0;

	if (!col->terminated)
		return col->width;
	while (at[len] != hyb_terminator(col))
		len++;
	return len;
}

/* A string, or what another one begins with and something behind it. */
static uint32
make_string(const HybColumn *col, uint8 *out, const uint8 *other)
{
	uint32		len = other == NULL ? 0 : next_random(value_length(col, other) + 1);
	uint32		end = len + next_random(f.added) * next_random(3);

	if (len > 0)
		memcpy(out, other, len);
	for (; len < Min(end, MAX_STRING); len++)
	{
		uint8		c = next_random(4) == 0 ? 1 + next_random(255) :
			'a' + next_random(next_random(f.letters) + 1);

		out[len] = col->desc ? ~c : c;
	}
	out[len++] = hyb_terminator(col);
	return len;
}

/* A key: random, or like one that there is. */
static void
make_key(Entry *entry, int n, int alike)
{
	const Entry *like = n > 0 && (int) next_random(100) < alike ? &f.entries[next_random(n)] : NULL;
	uint8	   *at = entry->key;
	const uint8 *other = like == NULL ? NULL : like->key;
	bool		same = like != NULL;	/* so far */

	for (int c = 0; c < f.ix.desc->nkeys; c++)
	{
		const HybColumn *col = &f.ix.desc->cols[c];
		uint32		len;

		*at++ = HYB_FLAG_VALUE;
		other += other != NULL;
		len = same ? value_length(col, other) : 0;
		if (same && next_random(2) == 0)
		{
			/* all of it */
			memcpy(at, other, len + col->terminated);
			at += len + col->terminated;
			other += len + col->terminated;
			continue;
		}
		if (col->terminated)
			at += make_string(col, at, same ? other : NULL);
		else
		{
			/* its first bytes, and random ones after them */
			uint32		first = same ? next_random(len + 1) : 0;

			if (first > 0)
				memcpy(at, other, first);
			for (uint32 i = first; i < col->width; i++)
				at[i] = (uint8) next_random(256);
			at += col->width;
		}
		same = false;
		other = NULL;
	}
	entry->keylen = at - entry->key;
}

/*
 * Values of the first of two columns that many entries have: leaves keep keys then,
 * here and there, or only such leaves whose first column lies in some ranges.  Values
 * of the second one may be few: then keys are smaller than their beginnings.
 */
static void
share_first_columns(int n)
{
	const HybColumn *first = &f.ix.desc->cols[0];
	int			second = 1 + f.ix.desc->cols[1].width;
	int			apart = 1 + next_random(8);
	int			rows = next_random(2) == 0 ? WIDE_KEYS : 2 + next_random(8);
	bool		ranges = next_random(2) == 0;
	bool		small = next_random(2) == 0;

	if (f.ix.desc->nkeys == 1)
		return;
	for (int i = 0; i < n; i++)
	{
		Entry	   *entry = &f.entries[i];
		const Entry *other = &f.entries[next_random(n / rows + 1)];
		uint8		last[KEY_BYTES];
		uint32		len = 1 + value_length(first, other->key + 1) + first->terminated;

		if (next_random(apart) == 0 || (ranges && other->key[1] % 2 == 0))
			continue;
		memcpy(last, entry->key + entry->keylen - second, second);
		if (small)
			memset(last + 1, 0, second - 2);
		memmove(entry->key, other->key, len);
		memcpy(entry->key + len, last, second);
		entry->keylen = len + second;
	}
}

static int
compare_keys(const Entry *x, const Entry *y)
{
	return hyb_key_compare(f.ix.desc, x->key, x->keylen, y->key, y->keylen);
}

static int
entry_order(const void *a, const void *b)
{
	const Entry *x = a;
	const Entry *y = b;
	int			c = compare_keys(x, y);

	return c != 0 ? c : ItemPointerCompare(unconstify(ItemPointerData *, &x->tid),
										   unconstify(ItemPointerData *, &y->tid));
}

static int
tid_number(const ItemPointerData *tid)
{
	return (int) ItemPointerGetBlockNumberNoCheck(tid) * 100 +
		ItemPointerGetOffsetNumberNoCheck(tid) - 1;
}

static void
make_entries(int n, int alike, bool few, bool wide, int first)
{
	f.nentries = n;
	f.entries = calloc(n, sizeof(Entry));
	f.of_tid = calloc(n, sizeof(int));
	for (int i = 0; i < n; i++)
	{
		if (few && i >= MAX_KEYS)
			f.entries[i] = f.entries[next_random(MAX_KEYS)];
		else
			make_key(&f.entries[i], i, alike);
		ItemPointerSet(&f.entries[i].tid, i / 100, i % 100 + 1);
		f.entries[i].merged = i < first;
	}
	if (wide)
		share_first_columns(n);
	qsort(f.entries, n, sizeof(Entry), entry_order);
	for (int i = 0; i < n; i++)
		f.of_tid[tid_number(&f.entries[i].tid)] = i;
}

static HybPos
entry_pos(const Entry *entry)
{
	return hyb_pos_at(f.ix.desc, entry->key, entry->keylen, entry->tid);
}

/* ---- building ---- */

static void
emit(void *arg, Page page, const HybPos *low)
{
	Leaf	   *leaf = &f.made[f.nmade++];

	require(f.nmade < MAX_LEAVES, "too many leaves");
	memcpy(leaf->page, page, BLCKSZ);
	leaf->low = HYB_POS_MIN(low) ? f.run_low : *low;
	if (leaf->low.len > 0)
		memcpy(leaf->low_key, leaf->low.key, leaf->low.len);
}

static void
add_entry(HybLeafBuilder *builder, const Entry *entry)
{
	HybValue	vals[INDEX_MAX_KEYS];

	require(hyb_key_split(f.ix.desc, entry->key, entry->keylen, f.ix.desc->natts,
						  vals) == entry->keylen, "malformed key");
	hyb_leaf_builder_add(builder, vals, &entry->tid);
}

static HybPos
fence(int leaf)
{
	if (leaf == f.nleaves)
		return (HybPos)
	{
		.tie = HYB_AFTER
	};
	f.leaves[leaf].low.key = f.leaves[leaf].low_key;
	return f.leaves[leaf].low;
}

static bool
is_below(const Entry *entry, const HybPos *pos)
{
	return hyb_pos_compare_key(f.ix.desc, entry->key, entry->keylen, &entry->tid, pos) < 0;
}

/* The first entry at or above a position. */
static int
first_entry(const HybPos *pos)
{
	int			lo = 0;
	int			hi = f.nentries;

	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (is_below(&f.entries[mid], pos))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/*
 * Leaves are small mostly, so that there are many fences; and some builders have
 * many entries waiting.
 */
static void
aim(HybLeafBuilder *builder)
{
	uint32		kind = next_random(8);

	if (kind > 1)
		hyb_leaf_builder_aim(builder, 0.01 + next_random(100) * next_random(100) / 20000.0,
							 0);
	else if (kind > 0)
		hyb_leaf_builder_aim(builder, 1, next_random(2000));
}

/* How many entries an index has decides how much of keys is worth its space. */
static void
expect(HybLeafBuilder *builder)
{
	hyb_leaf_builder_expect(builder,
							next_random(4) == 0 ? 0 : UINT64CONST(1) << next_random(40),
							next_random(2) == 0);
}

/*
 * Build leaves [from, to) anew, of their items and of entries between their
 * fences that are not merged yet: of one in `part` of them.
 */
static void
merge_run(int from, int to, int part)
{
	HybPos		low = fence(from);
	HybPos		high = fence(to);
	HybLeafBuilder *builder = hyb_leaf_builder_create(&f.ix, f.layout, 5, emit, NULL);
	int			next = first_entry(&low);
	HybLeaf		leaf = {0};

	f.nmade = 0;
	f.run_low = low;
	hyb_leaf_builder_after(builder, &low);
	hyb_leaf_builder_before(builder, &high);
	expect(builder);
	aim(builder);
	for (int i = from; i < to; i++)
	{
		HybPos		end = fence(i + 1);
		int			done = 0;

		hyb_leaf_open(&leaf, f.ix.desc, f.leaves[i].page, f.ix.rel, 1);
		for (; next < f.nentries && is_below(&f.entries[next], &end); next++)
		{
			HybPos		pos = entry_pos(&f.entries[next]);
			int			row;
			int			at;

			if (f.entries[next].merged || next_random(part) != 0)
				continue;
			at = hyb_leaf_search(&leaf, &pos, &row);
			if (done < at)
				hyb_leaf_builder_add_leaf(builder, &leaf, done, at);
			done = Max(done, at);
			add_entry(builder, &f.entries[next]);
			f.entries[next].merged = true;
		}
		if (done < leaf.nitems)
			hyb_leaf_builder_add_leaf(builder, &leaf, done, leaf.nitems);
	}
	hyb_leaf_builder_finish(builder);
	hyb_leaf_builder_free(builder);
	hyb_leaf_close(&leaf);
	require(f.nleaves - (to - from) + f.nmade < MAX_LEAVES, "too many leaves");
	memmove(&f.leaves[from + f.nmade], &f.leaves[to], (f.nleaves - to) * sizeof(Leaf));
	memcpy(&f.leaves[from], f.made, f.nmade * sizeof(Leaf));
	f.nleaves += f.nmade - (to - from);
}

static void
build_level(void)
{
	HybLeafBuilder *builder = hyb_leaf_builder_create(&f.ix, f.layout, 5, emit, NULL);

	f.nmade = 0;
	f.run_low = (HybPos)
	{
		.tie = HYB_BEFORE
	};
	expect(builder);
	aim(builder);
	for (int i = 0; i < f.nentries; i++)
		if (f.entries[i].merged)
			add_entry(builder, &f.entries[i]);
	hyb_leaf_builder_finish(builder);
	hyb_leaf_builder_free(builder);
	memcpy(f.leaves, f.made, f.nmade * sizeof(Leaf));
	f.nleaves = f.nmade;
}

/* ---- checking ---- */

/* A leaf that keeps keys knows of every position what lies below it. */
static void
check_exact(HybLeaf *leaf, const HybPos *pos)
{
	int			row;
	int			item = hyb_leaf_search(leaf, pos, &row);

	for (int i = 0; i < leaf->nitems; i++)
	{
		ItemPointerData tid;

		hyb_leaf_tids(leaf, i, 1, &tid);
		require(is_below(&f.entries[f.of_tid[tid_number(&tid)]], pos) == (i < item),
				"an item is not where a search says");
	}
}

/* What a search of the leaf says of a position is so; of a fence it knows all. */
static void
check_position(HybLeaf *leaf, const HybPos *pos, bool is_fence)
{
	HybRowRange rows;
	ItemPointerData *tids;
	bool		equal;
	int			lo;
	int			hi;

	if (hyb_leaf_keeps_keys(leaf))
	{
		check_exact(leaf, pos);
		return;
	}
	tids = malloc(leaf->nitems * sizeof(ItemPointerData));
	equal = leaf->layout->find(leaf, pos, &rows);
	require(rows.lo >= 0 && rows.hi >= rows.lo && rows.hi <= rows.lo + 1 &&
			rows.hi <= leaf->nrows, "more than one row between");
	require(!is_fence || equal || rows.lo == rows.hi,
			"a fence lies within a row");
	hyb_leaf_tids(leaf, 0, leaf->nitems, tids);
	lo = hyb_leaf_row_start(leaf, rows.lo);
	hi = hyb_leaf_row_start(leaf, rows.hi);
	for (int i = 0; i < leaf->nitems; i++)
	{
		const Entry *entry = &f.entries[f.of_tid[tid_number(&tids[i])]];
		bool		below = is_below(entry, pos);

		if (equal && i >= lo && i < hi)
			require(entry->keylen == pos->len &&
					memcmp(entry->key, pos->key, pos->len) == 0, "keys are not equal");
		require(i >= lo || below, "a row is not below a position");
		require(i < hi || !below, "a row is not above a position");
	}
	free(tids);
}

/* An item lies where its own position leads to, in the row of its key. */
static void
check_entry(HybLeaf *leaf, const Entry *entry, int item)
{
	HybPos		pos = entry_pos(entry);
	HybRowRange rows;
	int			row;
	int			end_row;
	int			at = hyb_leaf_search_equal(leaf, &pos, &row, &end_row);

	require(end_row == row + 1 && at <= item && item < hyb_leaf_row_start(leaf, end_row),
			"a key does not lead to its row");
	require(hyb_leaf_keeps_keys(leaf) ||
			hyb_leaf_may_have(leaf, item, hyb_byte_hash(pos.key, pos.len)),
			"an item has another key's fingerprint");
	if (hyb_leaf_keeps_keys(leaf))
		require(hyb_leaf_search(leaf, &pos, &row) == item, "an entry is not found");
	else if (leaf->layout->find(leaf, &pos, &rows))
		require(hyb_leaf_search(leaf, &pos, &row) == item && row == rows.lo,
				"an entry of a whole key is not found");
	else
		require(hyb_leaf_search(leaf, &pos, &row) == hyb_leaf_row_start(leaf, end_row),
				"an entry is not put behind its group");
}

static void
check_leaf(HybLeaf *leaf, const HybPos *low, const HybPos *high, int *seen)
{
	char	   *wrong = hyb_leaf_verify(leaf);
	ItemPointerData *tids = malloc(leaf->nitems * sizeof(ItemPointerData));
	HybBuf		prefix = {0};

	require(wrong == NULL, wrong);
	hyb_leaf_tids(leaf, 0, leaf->nitems, tids);
	for (int row = 0; row < leaf->nrows; row++)
	{
		uint32		bits;

		if (hyb_leaf_keeps_keys(leaf))
		{
			prefix.len = 0;
			hyb_key_join(f.ix.desc, hyb_leaf_row(leaf, row), f.ix.desc->nkeys, &prefix);
			bits = 8 * prefix.len;
		}
		else
			bits = hyb_leaf_prefix(leaf, row, &prefix);
		for (int i = hyb_leaf_row_start(leaf, row); i < hyb_leaf_row_start(leaf, row + 1); i++)
		{
			int			n = f.of_tid[tid_number(&tids[i])];
			const Entry *entry = &f.entries[n];

			require(entry->merged && !is_below(entry, low) && is_below(entry, high),
					"an entry lies beyond the fences of its leaf");
			if (i % 16 == 0)
				check_entry(leaf, entry, i);
			require(hyb_begins_with_bits(entry->key, entry->keylen, prefix.data, bits),
					"an entry does not begin with its row's prefix");
			seen[n]++;
		}
	}
	hyb_buf_free(&prefix);
	free(tids);
}

/*
 * A filter of a leaf denies none of its keys; of one that is damaged nothing is read
 * outside.
 */
static void
check_filter(HybFilterBuilder *builder, int number)
{
	HybPos		low = fence(number);
	HybPos		high = fence(number + 1);
	int			end = first_entry(&high);
	uint32		size;
	HybFilterImage *image = hyb_filter_build(builder, f.leaves[number].page, &size);
	char	   *copy;

	if (image == NULL)
		return;
	copy = malloc(size);
	for (int i = first_entry(&low); i < end; i++)
	{
		HybPos		pos = entry_pos(&f.entries[i]);

		pos.tie = HYB_BEFORE;
		require(!f.entries[i].merged ||
				hyb_filter_ask(image, size - sizeof(HybFilterImage), &pos, &pos, true) ==
				HYB_ANSWER_MAYBE, "a filter denies a key of its leaf");
		if (i % 64 > 0)
			continue;
		memcpy(copy, image, size);
		for (int j = 0; j < 3; j++)
			copy[next_random(j == 0 ? size : Min(size, 14))] = (char) next_random(256);
		copy[0] = HYB_FILTER_POINTS;
		(void) hyb_filter_ask((HybFilterImage *) copy, size - sizeof(HybFilterImage),
							  &pos, &pos, true);
	}
	free(copy);
	pfree(image);
}

static void
check_level(void)
{
	int		   *seen = calloc(f.nentries, sizeof(int));
	HybLeaf		leaf = {0};
	HybFilterBuilder *builder = hyb_filter_builder_create(&f.ix, HYB_FILTER_POINTS);

	for (int i = 0; i < f.nleaves; i++)
	{
		HybPos		low = fence(i);
		HybPos		high = fence(i + 1);

		require(i == 0 || hyb_pos_compare(f.ix.desc, &low, &high) < 0 || i + 1 == f.nleaves,
				"fences do not ascend");
		hyb_leaf_open(&leaf, f.ix.desc, f.leaves[i].page, f.ix.rel, 1);
		check_leaf(&leaf, &low, &high, seen);
		check_filter(builder, i);

		for (int k = 0; k < 6; k++)
		{
			Entry		other = f.entries[next_random(f.nentries)];
			HybPos		pos;

			if (k % 3 == 0)
				make_key(&other, f.nentries, 90);
			pos = entry_pos(&other);
			if (k % 2 == 0)
			{
				pos.len = 1 + next_random(other.keylen);
				pos.tie = next_random(2) == 0 ? HYB_BEFORE : HYB_AFTER;
				pos.ncols = 0;
			}
			check_position(&leaf, &pos, false);
		}
		check_position(&leaf, &low, true);
		check_position(&leaf, &high, true);
	}
	for (int i = 0; i < f.nentries; i++)
		require(seen[i] == f.entries[i].merged, "an entry is missing, or there twice");
	hyb_leaf_close(&leaf);
	free(seen);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int			n;

	if (size < 8)
		return 0;
	memset(&f, 0, sizeof(f));
	memcpy(&f.random, data + 4, 4);
	f.ix.rel = hyb_fuzz_relation();
	f.ix.desc = make_desc(data[0] % NDESCS);
	f.ix.incarnation = 77;
	f.added = next_random(2) == 0 ? 5 : MAX_STRING;
	f.letters = next_random(2) == 0 ? 3 : 20;
	n = 1 + (data[1] * 256 + data[2]) % MAX_ENTRIES;
	f.leaves = malloc(MAX_LEAVES * sizeof(Leaf));
	f.made = malloc(MAX_LEAVES * sizeof(Leaf));
	make_entries(n, data[3] % 101, data[3] % 4 == 0, data[3] % 4 == 3, 1 + next_random(n));
	if (setjmp(hyb_fuzz_error) == 0)
	{
		build_level();
		check_level();
		for (size_t i = 8; i < Min(size, 24); i++)
		{
			int			from = next_random(f.nleaves);
			int			to = Min(from + 1 + data[i] % 16, f.nleaves);

			merge_run(from, to, 1 + data[i] / 64);
			check_level();
		}
	}
	else
		require(false, "an error was raised");
	hyb_fuzz_reset();
	free(f.ix.desc);
	free(f.entries);
	free(f.of_tid);
	free(f.leaves);
	free(f.made);
	return 0;
}

size_t
hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max)
{
	if (i >= 24 || max < 16)
		return 0;
	memset(data, 0, 16);
	data[0] = (uint8_t) i;
	data[1] = (uint8_t) (i % 6 * 12);
	data[2] = (uint8_t) (i * 37);
	data[3] = (uint8_t) (i / 4 * 19);
	for (int k = 4; k < 16; k++)
		data[k] = (uint8_t) (i * 71 + k * 29);
	return 16;
}
