/*
 * test_tree.c
 *		The dynamic stage's tree, in an arena of its own.  Entries are inserted in
 *		any order, and come back sorted from any place in both directions, as from
 *		a sorted array.
 */
#include "fuzz/server.h"

#include "memtree/memtree.h"
#include "memtree/tree_node.h"
#include "unit.h"

#define MAXN		20000
#define MAXBYTES	2704

typedef struct TestItem
{
	HybEntry	entry;
	bool		dead;
	bool		killed;
	uint8		bytes[MAXBYTES];
} TestItem;

static TestItem items[MAXN];
static TestItem *sorted[MAXN];
static HybKeyDesc *desc;
static bool scarce;

/* A log that has all items; block numbers are those of items. */
static bool
load_item(HybEntryLog *log, HybTreeLogPage *page, uint16 offset, HybEntry *entry)
{
	BlockNumber block = page->block;

	if (block >= MAXN || items[block].entry.offset != offset)
	{
		log->stale = true;
		return false;
	}
	*entry = items[block].entry;
	entry->flags = items[block].dead ? 0x80 : 0;
	return true;
}

static HybEntryLog the_log = {.load = load_item};

static bool
is_scarce(const HybArena *arena)
{
	(void) arena;
	return scarce;
}

static HybTreeUse
use_of(HybTree *tree, HybArena *arena)
{
	arena->scarce = is_scarce;
	return (HybTreeUse)
	{
		.tree = tree,.arena = arena,.desc = desc,.log = &the_log
	};
}

static void
set_column(HybColumn *col, HybStore store, int width, bool descending)
{
	col->store = store;
	col->compare = HYB_COMPARE_MEM;
	col->width = width;
	col->terminated = width == 0;
	col->desc = descending;
}

/* One integer; or a string, and an integer the other way round. */
static void
make_desc(bool strings)
{
	desc = calloc(1, offsetof(HybKeyDesc, cols) + 2 * sizeof(HybColumn));
	desc->all_mem = desc->exact = true;
	desc->natts = desc->nkeys = strings ? 2 : 1;
	if (strings)
		set_column(&desc->cols[0], HYB_STORE_BYTES, 0, false);
	set_column(&desc->cols[strings ? 1 : 0], HYB_STORE_INT, 4, strings);
}

/* What distinguishes keys comes early, late, or nowhere, by `style`. */
static void
make_item(int i, uint32 value, int style)
{
	TestItem	   *item = &items[i];
	uint8	   *p = item->bytes;

	memset(item, 0, offsetof(TestItem, bytes));
	if (desc->nkeys == 2)
	{
		*p++ = HYB_FLAG_VALUE;
		if (style == 2)
		{
			/* short and long ones among each other */
			for (int j = 4; j < 20; j += 2)
				*p++ = 'a' + (value >> j) % 4;
			for (int j = value % 4 == 0 ? 0 : 500 + value % 2000; j > 0; j--)
				*p++ = 'x';
		}
		else if (style == 1)
			p += sprintf((char *) p, "prefix/%u", value / 16 % 64);
		else
			for (uint32 rest = value / 8; rest > 0; rest /= 4)
				*p++ = 'a' + rest % 4;
		*p++ = 0;
	}
	*p++ = HYB_FLAG_VALUE;
	for (int shift = 24; shift >= 0; shift -= 8)
		*p++ = (uint8) ((desc->nkeys == 2 ? ~value : value) >> shift);
	item->entry.bytes = item->bytes;
	item->entry.len = item->entry.keylen = p - item->bytes;
	ItemPointerSet(&item->entry.tid, 1 + i / 100, 1 + i % 100);
	item->entry.block = i;
	item->entry.offset = i % 8000;
}

static int
compare_items(const void *a, const void *b)
{
	TestItem   *x = *(TestItem *const *) a;
	TestItem   *y = *(TestItem *const *) b;
	int			c = memcmp(x->bytes, y->bytes, Min(x->entry.len, y->entry.len));

	return c != 0 ? c : ItemPointerCompare(&x->entry.tid, &y->entry.tid);
}

static HybPos
position_of(const TestItem *item, HybTie tie)
{
	HybPos		pos = {.key = item->bytes, .len = item->entry.keylen,
	.ncols = desc->nkeys, .tie = tie};

	pos.tid = item->entry.tid;
	return pos;
}

/* The index in sorted[] of the first item above a position. */
static int
first_above(const HybPos *pos, int n)
{
	int			i = 0;

	while (i < n && hyb_pos_compare_key(desc, sorted[i]->bytes,
										sorted[i]->entry.keylen,
										&sorted[i]->entry.tid, pos) <= 0)
		i++;
	return i;
}

static bool leave_killed;		/* range_agrees reads as scans do */

/* Everything live between two positions, in one direction. */
static bool
range_agrees(HybTree *tree, HybArena *arena, int n,
			 const HybPos *lo, const HybPos *hi, bool backward)
{
	HybTreeIter iter = {
		.use = use_of(tree, arena),
		.backward = backward,
		.leave_killed = leave_killed
	};
	int			first = first_above(lo, n);
	int			last = first_above(hi, n);
	int			step = backward ? -1 : 1;
	const HybEntry *entry;

	/* what lies at hi is left out */
	while (last > first &&
		   hyb_pos_compare_key(desc, sorted[last - 1]->bytes,
							   sorted[last - 1]->entry.keylen,
							   &sorted[last - 1]->entry.tid, hi) >= 0)
		last--;
	hyb_tree_iter_start(&iter, lo, hi);
	for (int i = backward ? last - 1 : first; i >= first && i < last; i += step)
	{
		const TestItem *item = sorted[i];

		if (item->dead || (leave_killed && item->killed))
			continue;
		entry = hyb_tree_iter_next(&iter);
		if (entry == NULL || entry->block != item->entry.block ||
			entry->offset != item->entry.offset ||
			entry->len != item->entry.len ||
			(entry->flags & HYB_ENTRY_KILLED) != (item->killed ? HYB_ENTRY_KILLED : 0) ||
			memcmp(entry->bytes, item->bytes, item->entry.len) != 0)
			return false;
	}
	return hyb_tree_iter_next(&iter) == NULL;
}

static void
check_ranges(HybTree *tree, HybArena *arena, int n, const char *what)
{
	HybPos		start = {.tie = HYB_BEFORE};
	HybPos		end = {.tie = HYB_AFTER};

	CHECK(range_agrees(tree, arena, n, &start, &end, false), "%s, all", what);
	CHECK(range_agrees(tree, arena, n, &start, &end, true),
		  "%s, all backward", what);
	for (int i = 0; i < 50 && n > 0; i++)
	{
		int			at = unit_below(n);
		int			ahead = unit_below(300);
		int			to = Min(n - 1, at + ahead);
		HybPos		lo = position_of(sorted[at], (HybTie) unit_below(3) - 1);
		HybPos		hi = position_of(sorted[to], (HybTie) unit_below(3) - 1);

		/* parts of keys, too */
		for (int j = 0; i % 3 == 0 && j < 2; j++)
		{
			HybPos	   *pos = j == 0 ? &lo : &hi;

			pos->len = 1 + unit_below(pos->len);
			pos->ncols = 0;
			pos->tie = unit_below(2) == 0 ? HYB_BEFORE : HYB_AFTER;
		}
		CHECK(range_agrees(tree, arena, n, &lo, &hi, i % 2 != 0),
			  "%s, %d to %d", what, at, to);
	}
}

static void
check_tree(HybTree *tree, HybArena *arena, int n, const char *what)
{
	HybTreeUse	use = use_of(tree, arena);
	const char *error = hyb_tree_verify(&use);

	CHECK(error == NULL, "%s of %d: %s", what, n, error);
	CHECK(tree->nentries == n, "%s: %d entries", what, n);
	check_ranges(tree, arena, n, what);
	/* the second time leaves are passed over that the first time has marked */
	leave_killed = true;
	check_ranges(tree, arena, n, what);
	check_ranges(tree, arena, n, what);
	leave_killed = false;
	error = hyb_tree_verify(&use);
	CHECK(error == NULL, "%s of %d, marked: %s", what, n, error);
	for (int i = 0; i < n; i += 97)
		CHECK(hyb_tree_maybe(tree, arena,
							 hyb_key_hash(items[i].bytes, items[i].entry.keylen)),
			  "%s: the filter denies %d", what, i);
}

static HybTreeResult
insert(HybTree *tree, HybArena *arena, const HybEntry *entry)
{
	HybTreeUse	use = use_of(tree, arena);

	return hyb_tree_insert(&use, entry);
}

/*
 * Insert items in order of their numbers, with the least memory at hand.  Where
 * memory is short copies are given up now and then.
 */
static void
fill_from(HybTree *tree, HybArena *arena, int from, int n)
{
	HybTreeUse	use = use_of(tree, arena);

	for (int i = from; i < n; i++)
	{
		HybTreeResult result = insert(tree, arena, &items[i].entry);

		if (result == HYB_TREE_MEMORY)
		{
			CHECK(tree->nentries == i, "a failed insertion changed the tree");
			CHECK(hyb_arena_reserve(arena, HYB_TREE_RESERVE), "no memory");
			result = insert(tree, arena, &items[i].entry);
		}
		if (result != HYB_TREE_DONE)
			CHECK(result == HYB_TREE_DONE, "item %d", i);
		sorted[i] = &items[i];
		if (scarce && i % 500 == 0)
			while (hyb_tree_compact(&use))
				 /* more */ ;
	}
	qsort(sorted, n, sizeof(TestItem *), compare_items);
}

static void
fill(HybTree *tree, HybArena *arena, int n)
{
	fill_from(tree, arena, 0, n);
}

/* Flags count live entries only, and take them out of ranges. */
static void
check_flags(HybTree *tree, HybArena *arena, int n)
{
	HybTreeUse	use = use_of(tree, arena);
	HybEntry	missing = items[0].entry;

	for (int i = 0; i < n; i += 3)
	{
		uint16		flag = i % 2 == 0 ? HYB_ENTRY_DEAD : HYB_ENTRY_KILLED;
		int			found = hyb_tree_flag(&use, &items[i].entry, flag);

		CHECK(found == 1, "item %d was flagged %d times", i, found);
		items[i].dead = flag == HYB_ENTRY_DEAD;
		items[i].killed = flag == HYB_ENTRY_KILLED;
		found = hyb_tree_flag(&use, &items[i].entry, flag);
		CHECK(found == (items[i].dead ? 0 : 1), "item %d again: %d", i, found);
	}
	/* a stretch of them, as a queue leaves it */
	for (int i = n / 4; i < n / 2; i++)
	{
		TestItem   *item = sorted[i];

		hyb_tree_flag(&use, &item->entry, HYB_ENTRY_KILLED);
		item->killed = !item->dead;
	}
	ItemPointerSet(&missing.tid, 60000, 1);
	CHECK(hyb_tree_flag(&use, &missing, HYB_ENTRY_DEAD) == 0,
		  "an entry that is not there");
}

typedef enum Order
{
	RANDOM, ASCENDING, DESCENDING, DUPLICATES, ORDERS
} Order;

static uint32
value_of(Order order, int i)
{
	switch (order)
	{
		case ASCENDING:
			return i;
		case DESCENDING:
			return MAXN - i;
		case DUPLICATES:
			return unit_below(7);
		default:
			return unit_below(1 << 30);
	}
}

static void
test_order(Order order, bool strings, int n)
{
	HybArena   *arena = hyb_arena_create(NULL);
	HybTree		tree = {0};
	uint32		wanted;
	uint32		had;
	char		what[64];

	snprintf(what, sizeof(what), "order %d, %s", order, strings ? "strings" : "integers");
	for (int i = 0; i < n; i++)
		make_item(i, value_of(order, i), n % 2);
	fill(&tree, arena, n);
	check_tree(&tree, arena, n, what);

	wanted = hyb_tree_bloom_wanted(&tree);
	CHECK((wanted > 0) == (n >= 64), "%s: a filter of %u chunks", what, wanted);
	CHECK(hyb_arena_reserve(arena, wanted), "no memory");
	hyb_tree_bloom_grow(&tree, arena);
	CHECK(wanted == 0 || tree.bloom.nchunks > 0, "%s: no filter", what);
	check_tree(&tree, arena, n, what);
	check_flags(&tree, arena, n);
	check_tree(&tree, arena, n, what);

	/* all of it comes back, and serves again */
	had = tree.nchunks + arena->npocket;
	hyb_tree_free(&tree, arena);
	CHECK(arena->npocket == had && had == arena->nchunks && tree.root == 0,
		  "%s: %u of %u chunks are back", what, arena->npocket, arena->nchunks);
	for (int i = 0; i < n; i++)
		items[i].dead = items[i].killed = false;
	fill(&tree, arena, n);
	CHECK(arena->nchunks == had, "%s: %u chunks, %u before", what,
		  arena->nchunks, had);
	check_tree(&tree, arena, n, what);
	hyb_tree_free(&tree, arena);
	hyb_arena_drop(arena);
	CHECK(hyb_arena_private() == 0, "%s: memory is counted yet", what);
	hyb_fuzz_reset();
}

/* Bytes of a tree's memory, the filter's left out. */
static uint64
tree_bytes(const HybTree *tree)
{
	return (uint64) (tree->nchunks - hyb_bloom_cost(tree->bloom.nchunks)) * HYB_CHUNK_SIZE;
}

/* What memory holds are entries' copies, each once. */
static void
check_copies(const HybTree *tree, const HybArena *arena, const char *what)
{
	uint64		copies = 0;

	for (uint32 chunk = tree->oldest; chunk != 0; chunk = hyb_chunk(arena, chunk)->next)
		for (uint32 off = HYB_CHUNK_HEADER; off < hyb_chunk(arena, chunk)->used; copies++)
			off += hyb_entry_size(hyb_entry_len(hyb_tree_entry_at(arena,
																  hyb_make_ref(chunk, off))));
	CHECK(copies == tree->nentries - tree->nlog, "%s: %u copies of %u entries",
		  what, (uint32) copies, (uint32) (tree->nentries - tree->nlog));
}

/* To a chain: what is inserted then has the least memory at hand. */
static void
empty_pocket(HybArena *arena, uint32 *chain)
{
	while (arena->npocket > 0)
	{
		uint32		chunk = hyb_arena_take(arena, 0);

		hyb_chunk(arena, chunk)->next = *chain;
		*chain = chunk;
	}
}

/*
 * A tree that becomes compact while it grows, grows on as such and then with
 * copies again, and answers the same all along.
 */
static void
test_elastic(Order order, bool strings, int n)
{
	HybArena   *arena = hyb_arena_create(NULL);
	HybTree		tree = {0};
	HybTreeUse	use = use_of(&tree, arena);
	HybTree		before;
	uint64		plain;
	uint32		spare = 0;
	char		what[64];

	snprintf(what, sizeof(what), "elastic, order %d, %s", order, strings ? "strings" : "integers");
	for (int i = 0; i < n; i++)
		make_item(i, value_of(order, i), n % 2);
	scarce = false;
	fill(&tree, arena, n / 2);
	plain = tree_bytes(&tree);

	/* not without a filter, if keys have hashes */
	CHECK(!hyb_tree_compact(&use), "%s: compact without a filter", what);
	CHECK(hyb_arena_reserve(arena, hyb_tree_bloom_wanted(&tree) + 1), "no memory");
	hyb_tree_bloom_grow(&tree, arena);
	for (int i = 1; i < n / 2; i += 11)
	{
		hyb_tree_flag(&use, &items[i].entry, HYB_ENTRY_KILLED);
		items[i].killed = true;
	}
	scarce = true;
	while (hyb_tree_compact(&use))
		 /* more */ ;
	CHECK(tree.nlog == n / 2 && tree.oldest == 0 && tree.newest == 0,
		  "%s: %u of %d in the log", what, (uint32) tree.nlog, n / 2);
	CHECK(n < 10000 || tree_bytes(&tree) < plain * 3 / 4,
		  "%s: %u bytes, %u before", what, (uint32) tree_bytes(&tree), (uint32) plain);
	check_tree(&tree, arena, n / 2, what);
	check_flags(&tree, arena, n / 2);
	check_tree(&tree, arena, n / 2, what);

	/* from now on nothing is copied, but where a leaf is plain */
	fill_from(&tree, arena, n / 2, n * 3 / 4);
	CHECK(tree.nlog == n * 3 / 4 && tree.oldest == 0, "%s: %u copies", what,
		  n * 3 / 4 - (uint32) tree.nlog);
	check_tree(&tree, arena, n * 3 / 4, what);
	CHECK(hyb_arena_reserve(arena, hyb_tree_bloom_wanted(&tree)), "no memory");
	hyb_tree_bloom_grow(&tree, arena);
	scarce = false;
	empty_pocket(arena, &spare);
	fill_from(&tree, arena, n * 3 / 4, n);
	hyb_arena_put_chain(arena, spare);
	check_tree(&tree, arena, n, what);
	check_copies(&tree, arena, what);
	CHECK(tree.nlog == n * 3 / 4, "%s: not all new entries were copied", what);

	/* nothing is done by a tree whose log has gone */
	the_log.stale = true;
	before = tree;
	CHECK(insert(&tree, arena, &items[0].entry) == HYB_TREE_STALE &&
		  memcmp(&tree, &before, sizeof(tree)) == 0, "%s: stale", what);
	the_log.stale = false;
	hyb_tree_free(&tree, arena);
	CHECK(arena->npocket == arena->nchunks, "%s: %u of %u chunks are back", what,
		  arena->npocket, arena->nchunks);
	hyb_arena_drop(arena);
	hyb_fuzz_reset();
}

/*
 * Long keys, whose separators take several nodes, become compact while short
 * ones come to the same leaves, with the least memory.
 */
static void
test_long(void)
{
	HybArena   *arena = hyb_arena_create(NULL);
	HybTree		tree = {0};
	HybTreeUse	use = use_of(&tree, arena);
	int			n = 3000;
	uint32		spare = 0;

	for (int i = 0; i < n; i++)
		make_item(i, unit_below(1 << 20) * (i < n / 2 ? 1 : 4), 2);
	scarce = false;
	fill(&tree, arena, n / 3);
	CHECK(hyb_arena_reserve(arena, hyb_tree_bloom_wanted(&tree) + 1), "no memory");
	hyb_tree_bloom_grow(&tree, arena);
	for (int round = 0; round < 4; round++)
	{
		int			from = n / 3 + n / 6 * round;

		scarce = round % 2 == 0;
		while (scarce && hyb_tree_compact(&use))
			 /* more */ ;
		check_tree(&tree, arena, from, "long keys");
		empty_pocket(arena, &spare);
		fill_from(&tree, arena, from, from + n / 6);
		check_tree(&tree, arena, from + n / 6, "long keys");
		check_copies(&tree, arena, "long keys");
	}
	hyb_arena_put_chain(arena, spare);
	check_flags(&tree, arena, n);
	check_tree(&tree, arena, n, "long keys, flags");
	hyb_tree_free(&tree, arena);
	CHECK(arena->npocket == arena->nchunks, "long keys: chunks are lost");
	hyb_arena_drop(arena);
	hyb_fuzz_reset();
}

static void
test_arena(void)
{
	HybArena   *arena = hyb_arena_create(NULL);
	uint32		chain = 0;

	CHECK(hyb_arena_reserve(arena, 100) && arena->npocket == 100, "reserve");
	CHECK(hyb_arena_reserve(arena, 50) && arena->npocket == 100, "reserve less");
	for (int i = 0; i < 100; i++)
	{
		uint32		chunk = hyb_arena_take(arena, i);
		HybChunk   *header = hyb_chunk(arena, chunk);
		HybRef		ref = hyb_make_ref(chunk, HYB_CHUNK_SIZE - 4);

		CHECK(chunk != 0 && header->kind == i && header->used == HYB_CHUNK_HEADER &&
			  header->next == 0, "chunk %u", chunk);
		CHECK((char *) hyb_ref_ptr(arena, ref) == (char *) header + HYB_CHUNK_SIZE - 4,
			  "reference into chunk %u", chunk);
		memset((char *) header + HYB_CHUNK_HEADER, i, HYB_CHUNK_SPACE);
		header->next = chain;
		chain = chunk;
	}
	CHECK(arena->npocket == 0, "%u left", arena->npocket);
	hyb_arena_put_chain(arena, chain);
	hyb_arena_trim(arena);
	CHECK(arena->npocket == 100, "%u are back", arena->npocket);
	CHECK(hyb_arena_private() == 100 * HYB_CHUNK_SIZE, "bytes");
	hyb_arena_drop(arena);
	hyb_fuzz_reset();
}

int
main(void)
{
	if (setjmp(hyb_fuzz_error) != 0)
		CHECK(false, "an error was raised");
	else
	{
		test_arena();
		for (int strings = 0; strings < 2; strings++)
		{
			make_desc(strings);
			for (Order order = RANDOM; order < ORDERS; order++)
			{
				static const int sizes[] = {0, 1, 41, 42, 999, 1000, 6001};

				for (int i = 0; i < lengthof(sizes); i++)
				{
					scarce = false;
					test_order(order, strings, sizes[i]);
				}
				test_elastic(order, strings, 4000);
				test_elastic(order, strings, 19999);
			}
			if (strings)
				test_long();
			free(desc);
		}
	}
	return unit_report("tree");
}
