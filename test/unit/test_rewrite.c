/*
 * test_rewrite.c
 *		Rewriting leaves: whole merges of random entries into a level, step by step.
 *
 * After each step the level has the entries that it had and those that the step says
 * it has merged, each once and in order.  Fences tell its leaves apart, and the step
 * counts and retires what it has replaced.
 */
#include "index_file.h"

#include "leaf/leaf.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "unit.h"

#define MAXENTRIES	40000
#define MAXKEY		64

typedef struct TestEntry
{
	uint8		key[MAXKEY];
	uint32		len;
	ItemPointerData tid;
	bool		dead;			/* the log has a hint, and the row is gone */
	bool		tombstone;		/* VACUUM has removed it from its leaf */
} TestEntry;

static TestEntry entries[MAXENTRIES];
static int	nentries;
static TestEntry *level[MAXENTRIES];	/* live entries of the level, in order */
static int	nlevel;
static TestEntry *frozen[MAXENTRIES];	/* entries to be merged, in order */
static int	nfrozen;
static HybChildList children;	/* of the level-1 node */
static HybIndex *ix;
static uint64 stamp;
static uint64 spots[5];
static bool whole;				/* a merge is one step, if that can be */

/* ---- what a step uses of duplicates.c and dead.c ---- */

void
hyb_step_add_entry(HybMergeStep *step)
{
	const HybFetchedItem *item = &step->batch.items[step->done.next_entry++];

	CHECK(step->builder != NULL, "no leaf group is open");
	step->done.merged++;
	if (item->killed)
	{
		hyb_step_drop(step);
		return;
	}
	(void) hyb_key_split(ix->desc, hyb_step_entry(step, item), item->len, ix->desc->natts, step->vals);
	hyb_leaf_builder_add(step->builder, step->vals, &item->tid);
}

void
hyb_step_look(HybMergeStep *step, bool leaf, int end)
{
	CHECK(end >= step->done.next_entry && end <= step->last_entry, "entries up to %d are looked at", end);
}

bool
hyb_dead_table_is_large(HybDeadCheck *check)
{
	return false;
}

bool
hyb_step_item_is_stale(HybMergeStep *step, int item)
{
	return false;
}

bool
hyb_step_join(HybMergeStep *step, int at)
{
	return false;
}

bool
hyb_dead_tid(HybDeadCheck *check, const ItemPointerData *tid)
{
	return false;
}

/* of leaves of prefixes, which this level does not have */

int
hyb_step_entries_of_row(HybMergeStep *step, int row, int end)
{
	abort();
}

bool
hyb_step_read_group(HybMergeStep *step, int row, int last)
{
	abort();
}

void
hyb_step_add_group(HybMergeStep *step, int last)
{
	abort();
}

/* ---- entries ---- */

static HybKeyDesc *
make_desc(bool strings)
{
	HybKeyDesc *desc = calloc(1, hyb_key_desc_size(1));

	desc->natts = desc->nkeys = 1;
	desc->all_mem = desc->exact = true;
	desc->cols[0] = (HybColumn) {.store = HYB_STORE_INT,.compare = HYB_COMPARE_MEM,.width = 8};
	if (strings)
		desc->cols[0] = (HybColumn) {.store = HYB_STORE_BYTES,.compare = HYB_COMPARE_MEM,.terminated = true};
	return desc;
}

/*
 * CLUSTERS: dense ones beside sparse ones, so that estimates are wrong.  SPOTS: few
 * places after the first merges, so that touched leaves have untouched neighbours.
 */
typedef enum Order
{
	RANDOM, ASCENDING, NARROW, DUPLICATES, CLUSTERS, SPOTS, ORDERS, LONG
} Order;

static void
make_entry(Order order)
{
	TestEntry  *entry = &entries[nentries];
	uint64		cluster = unit_below(40);
	uint64		number = order == ASCENDING ? (uint64) nentries << 20 | unit_below(1 << 20) :
		order == NARROW ? (uint64) 1 << 40 | unit_below(1 << 18) :
		order == DUPLICATES ? unit_below(60) :
		order == SPOTS && nlevel > 8000 ? spots[unit_below(lengthof(spots))] + unit_below(1 << 30) :
		order == CLUSTERS || order == SPOTS ? cluster << 54 | unit_random() >> (12 + cluster) : unit_random() >> 20;
	uint8		bytes[MAXKEY];
	HybValue	val = {.ival = number};
	HybBuf		key = {0};

	if (order == LONG)
	{
		val = (HybValue) {.ptr = bytes,.len = 50};
		for (uint32 i = 0; i < val.len; i++)
			bytes[i] = (uint8) (1 + unit_below(255));
	}
	else if (ix->desc->cols[0].store == HYB_STORE_BYTES)
	{
		val.ival = 0;
		val.ptr = bytes;
		val.len = (uint32) snprintf((char *) bytes, sizeof(bytes), "key %012llu%.*s",
									(unsigned long long) number, (int) (number % 30),
									"..............................");
	}
	hyb_key_join(ix->desc, &val, 1, &key);
	memset(entry, 0, sizeof(TestEntry));
	memcpy(entry->key, key.data, key.len);
	entry->len = key.len;
	ItemPointerSet(&entry->tid, (BlockNumber) nentries / 60, (OffsetNumber) (nentries % 60 + 1));
	nentries++;
}

static int
compare_entries(const void *a, const void *b)
{
	TestEntry  *x = *(TestEntry *const *) a;
	TestEntry  *y = *(TestEntry *const *) b;
	int			c = memcmp(x->key, y->key, Min(x->len, y->len));

	return c != 0 ? c : ItemPointerCompare(&x->tid, &y->tid);
}

static HybPos
at(const TestEntry *entry)
{
	return hyb_pos_at(ix->desc, entry->key, entry->len, entry->tid);
}

static int
side_of(const TestEntry *entry, const HybPos *pos)
{
	return HYB_POS_MAX(pos) ? -1 : HYB_POS_MIN(pos) ? 1 :
		hyb_pos_compare_key(ix->desc, entry->key, entry->len, &entry->tid, pos);
}

/* ---- the level ---- */

/*
 * Each leaf's entries lie between its fences, and all of them are the level's.
 * Returns how full leaves are.
 */
static double
check_level(const char *what)
{
	HybLeaf		leaf = {0};
	int			n = 0;
	double		fill = 0;

	for (int i = 0; i < children.n; i++)
	{
		const HybChild *child = &children.children[i];
		Page		page = index_file_page(child->block);
		char	   *error;

		CHECK(i == 0 ? HYB_POS_MIN(&child->low) :
			  hyb_pos_compare(ix->desc, &children.children[i - 1].low, &child->low) < 0 ||
			  HYB_POS_MIN(&children.children[i - 1].low), "%s: fence %d does not ascend", what, i);
		hyb_leaf_open(&leaf, ix->desc, page, ix->rel, child->block);
		error = hyb_leaf_verify(&leaf);
		CHECK(error == NULL, "%s: leaf %d: %s", what, i, error);
		fill += hyb_leaf_fill(page);
		for (int item = 0; item < leaf.nitems; item++)
		{
			ItemPointerData tid;
			const TestEntry *entry = n < nlevel ? level[n] : NULL;

			hyb_leaf_tids(&leaf, item, 1, &tid);
			if (hyb_leaf_is_tombstone(&leaf, item))
				continue;
			CHECK(entry != NULL && ItemPointerCompare(unconstify(ItemPointerData *, &entry->tid), &tid) == 0,
				  "%s: item %d of leaf %d is not entry %d of %d", what, item, i, n, nlevel);
			if (entry == NULL)
				break;
			CHECK(side_of(entry, &child->low) >= 0 &&
				  (i + 1 == children.n || side_of(entry, &children.children[i + 1].low) < 0),
				  "%s: entry %d is not between the fences of leaf %d", what, n, i);
			n++;
		}
	}
	CHECK(n == nlevel, "%s: %d entries of %d", what, n, nlevel);
	hyb_leaf_close(&leaf);
	return fill / Max(children.n, 1);
}

/* VACUUM removes a part of the entries of some leaves, most of those of others. */
static void
vacuum(void)
{
	HybLeaf		leaf = {0};
	int			n = 0;
	int			kept = 0;

	for (int i = 0; i < children.n; i++)
	{
		Page		page = index_file_page(children.children[i].block);
		uint32		one_in = unit_below(3) == 0 ? 10 : unit_below(3) == 0 ? 2 : 0;
		int			dead[HYB_LEAF_MAX_ITEMS];
		int			ndead = 0;
		uint16		off;
		uint16		len;

		hyb_leaf_open(&leaf, ix->desc, page, ix->rel, children.children[i].block);
		for (int item = 0; item < leaf.nitems; item++)
		{
			if (hyb_leaf_is_tombstone(&leaf, item))
				continue;
			if (one_in > 0 && unit_below(one_in) == 0)
				dead[ndead++] = item;
			else
				level[kept++] = level[n];
			n++;
		}
		START_CRIT_SECTION();
		if (ndead > 0)
			hyb_leaf_set_tombstones(page, dead, ndead, &off, &len);
		END_CRIT_SECTION();
	}
	nlevel = kept;
	hyb_leaf_close(&leaf);
}

/* ---- a step ---- */

static HybMergeStep *
make_step(int first, int last, bool complete, bool compact)
{
	HybMergeStep *step = palloc0(sizeof(HybMergeStep));

	step->ix = ix;
	step->source = HYB_SOURCE_LOG;
	step->end.tie = HYB_AFTER;
	step->stamp = ++stamp;
	step->entries = nlevel + nfrozen;
	step->compact = compact;
	step->max_leaves = whole ? 500 : 1 + (int) unit_below(40);
	step->leaf_page = palloc(BLCKSZ);
	step->leaf_hints = palloc(hyb_leaf_hint_bytes(HYB_LEAF_MAX_ITEMS));
	step->vals = palloc(ix->desc->natts * sizeof(HybValue));
	step->to.retired = palloc(HYB_MAX_PENDING * sizeof(BlockNumber));
	step->batch.items = palloc((last - first + 1) * sizeof(HybFetchedItem));
	for (int i = first; i < last; i++)
	{
		HybFetchedItem *item = &step->batch.items[step->batch.nitems++];

		*item = (HybFetchedItem)
		{
			.tid = frozen[i]->tid,.killed = frozen[i]->dead,.key_off = step->batch.keys.len,
				.len = frozen[i]->len,.keylen = frozen[i]->len
		};
		hyb_buf_append(&step->batch.keys, frozen[i]->key, frozen[i]->len);
	}
	step->batch.complete = complete;
	step->last_entry = step->batch.nitems;
	if (!complete && step->batch.nitems > 1 && unit_below(3) == 0)
		step->last_entry = 1 + (int) unit_below(step->batch.nitems);
	return step;
}

/* The path to the leaf that the step begins with. */
static void
set_path(HybMergeStep *step, const HybPos *start)
{
	HybPath    *path = palloc0(sizeof(HybPath));
	HybPathNode *node = &path->nodes[0];

	path->high.tie = HYB_AFTER;
	path->height = children.n > 0;
	for (int i = 0; i < children.n; i++)
	{
		hyb_child_list_add(&node->children, &children.children[i]);
		if (i > 0 && hyb_pos_compare(ix->desc, &children.children[i].low, start) <= 0)
			node->index = i;
	}
	step->to.path = path;
}

/* What the step has made becomes the level; what it replaced was retired, and counted. */
static void
install(HybMergeStep *step, const char *what)
{
	const HybChildList *old = &step->to.path->nodes[0].children;
	HybLeafCounts counts = {0};
	int			next = 0;		/* retired block */
	int			kept = 0;

	children = step->to.children;
	for (int i = 0; i < children.n; i++)
	{
		HybChild   *child = &children.children[i];

		if (child->image == NULL)
			continue;
		CHECK(child->stamp == step->stamp, "%s: a new leaf has another stamp", what);
		child->block = index_file_extend();
		memcpy(index_file_page(child->block), child->image, BLCKSZ);
		child->image = NULL;
		counts.nimages++;
		counts.new_tids += hyb_page_opaque(index_file_page(child->block))->count;
	}
	for (int i = 0; i < old->n; i++)
	{
		Page		page = index_file_page(old->children[i].block);

		if (kept < children.n && next < step->to.leaves.nretired &&
			step->to.retired[next] == old->children[i].block)
		{
			next++;
			counts.nretired++;
			counts.old_tids += hyb_page_opaque(page)->count;
			counts.old_tombstones += hyb_leaf_count_tombstones(page);
			continue;
		}
		while (kept < children.n && children.children[kept].block != old->children[i].block)
			kept++;
		CHECK(kept < children.n, "%s: leaf %d is neither kept nor retired", what, i);
	}
	CHECK(next == step->to.leaves.nretired, "%s: %d leaves are retired of %d", what, next, step->to.leaves.nretired);
	CHECK(memcmp(&counts, &step->to.leaves, sizeof(counts)) == 0,
		  "%s: %d new leaves for %d, %d and %d items", what, counts.nimages, counts.nretired,
		  (int) counts.new_tids, (int) counts.old_tids);
	CHECK(counts.old_tids - counts.old_tombstones + step->done.merged - step->done.dropped == counts.new_tids,
		  "%s: items are lost", what);
	CHECK(step->builder == NULL, "%s: a leaf group is open", what);
}

/* Returns how many frozen entries are done; *all: all leaves were visited. */
static int
do_step(int first, HybPos *from, bool compact, bool *all, const char *what)
{
	int			last = whole ? nfrozen : first + 1 + (int) unit_below(unit_below(2) == 0 ? 60 : 1500);
	HybMergeStep *step = make_step(first, Min(last, nfrozen), last >= nfrozen, compact);
	HybPos		start = compact ? hyb_pos_above(from) : at(frozen[first]);
	HybPos		fence;
	int			n;

	set_path(step, &start);
	*all = hyb_step_rewrite(step, &fence);
	n = step->done.next_entry;
	CHECK(*all == HYB_POS_MAX(&fence), "%s: the end of the node is done, and its fence is not", what);
	CHECK(HYB_POS_MAX(&fence) || hyb_pos_compare(ix->desc, &start, &fence) < 0,
		  "%s: the step makes no progress", what);
	CHECK(n == (int) step->done.merged && n <= step->last_entry, "%s: %d entries are done", what, n);
	for (int i = 0; i < step->last_entry; i++)
		CHECK((side_of(frozen[first + i], &fence) < 0) == (i < n),
			  "%s: entry %d of %d is on the wrong side of the fence", what, i, n);
	install(step, what);
	for (int i = 0; i < n; i++)
		if (!frozen[first + i]->dead)
			level[nlevel++] = frozen[first + i];
	qsort(level, nlevel, sizeof(TestEntry *), compare_entries);
	(void) check_level(what);
	CHECK(index_file_held() == 0, "%s: pages are held", what);
	if (n == step->last_entry && n > 0 && first + n < nfrozen)
	{
		/* it may have stopped inside a leaf's range */
		*from = at(frozen[first + n - 1]);
		*all = false;
	}
	else
		*from = hyb_pos_below(&fence);
	hyb_leaf_close(&step->leaf);
	return first + n;
}

static void
merge(Order order, int n, bool compact, const char *what)
{
	HybPos		from = {.tie = HYB_BEFORE};
	bool		all = false;
	int			done = 0;
	double		fill;

	nfrozen = 0;
	for (int i = 0; i < (int) lengthof(spots); i++)
		spots[i] = unit_random() >> 4;
	for (int i = 0; i < n && nentries < MAXENTRIES; i++)
	{
		make_entry(order);
		entries[nentries - 1].dead = unit_below(20) == 0;
		frozen[nfrozen++] = &entries[nentries - 1];
	}
	qsort(frozen, nfrozen, sizeof(TestEntry *), compare_entries);
	while (done < nfrozen || (compact && !all))
		done = do_step(done, &from, compact, &all, what);
	fill = check_level(what);
	CHECK(!compact || children.n < 6 || fill > 0.75, "%s: %d leaves are %.2f full", what, children.n, fill);
}

static void
test_merges(Order order, bool strings)
{
	char		what[64];

	ix = index_file_create(make_desc(strings));
	memset(&children, 0, sizeof(children));
	nentries = nlevel = 0;
	stamp = 10;
	for (int i = 0; i < (order >= CLUSTERS ? 40 : 14); i++)
	{
		bool		compact = i % 5 == 4;

		snprintf(what, sizeof(what), "order %d, %s, merge %d", order, strings ? "strings" : "integers", i);
		merge(order, i < 3 ? 3000 : 1 + (int) unit_below(600), compact, what);
		/* without what VACUUM removes leaves get no emptier */
		if (i > 6)
			vacuum();
	}
	CHECK(children.n > 0, "order %d: no leaves", order);
	free(ix->desc);
	hyb_fuzz_reset();
}

/* A step stops when it has as many new leaves as pending[] has room for. */
static void
test_many_leaves(void)
{
	int			before;

	ix = index_file_create(make_desc(true));
	memset(&children, 0, sizeof(children));
	nentries = nlevel = 0;
	whole = true;
	merge(LONG, 36000, false, "a large level");
	before = children.n;
	CHECK(before > 200, "a level of %d leaves", before);
	merge(LONG, 3000, false, "more leaves than a step writes");
	CHECK(children.n >= before, "%d leaves, %d before", children.n, before);
	whole = false;
	free(ix->desc);
	hyb_fuzz_reset();
}

int
main(void)
{
	if (setjmp(hyb_fuzz_error) != 0)
		CHECK(false, "an error was raised");
	else
	{
		test_many_leaves();
		for (Order order = RANDOM; order < ORDERS; order++)
		{
			test_merges(order, false);
			test_merges(order, true);
		}
	}
	return unit_report("rewrite");
}
