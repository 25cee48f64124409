/*
 * bulk.c
 *		Building the tree of a long log at once, sorted.
 *
 * The first reader of a log that was not read for long, often a merge, needs a
 * tree of all of it.  It sorts the entries first, by a part of the key that
 * lies beside them.  Entries in order go to the end of the tree, where
 * everything is in the cache, so this costs less than searching a place for
 * each.  It also makes full leaves.
 *
 * All that is done with nothing locked, on a private tree, which then becomes
 * the stage's.  VACUUM flags entries on the page and then in the tree that it
 * finds.  So the new tree could miss a flag that VACUUM set after the page was
 * read.  VACUUM counts its visits (HybStage.marks), and a tree that was begun
 * before one is not used.  What was appended meanwhile is entered later, from
 * where the reading ended.
 *
 * The tree's chunks are in no pocket while it is built.  So nothing there
 * raises an error, and interrupts are held off.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "log/delta.h"
#include "log/stage_access.h"
#include "memtree/tree_node.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* Pages of a log that is worth it: sorting fewer entries saves nothing. */
#define BULK_PAGES		(HYB_IN_PLACE_PAGES + 1)

/* How long other readers wait for the tree: at most, and more for each page. */
#define BULK_WAIT_US		200000
#define BULK_WAIT_PAGE_US	1000

/*
 * What has been done to entries of the stage's generations, on a standby too;
 * it only grows.
 */
#define bulk_marks(stage)	((stage)->marks + (stage)->vacuum_counter)

/* While a log is read, it may grow by this part of what it was. */
#define BULK_GROWTH		8

typedef struct BulkItem
{
	uint64		head;			/* of the key, behind what all keys begin with */
	uint32		page;			/* of those read */
	uint32		offset;
} BulkItem;

typedef struct Bulk
{
	HybIndex   *ix;
	const HybBulkTask *task;
	MemoryContext context;
	uint64		end[HYB_LANES]; /* hyb_lane_end of what was read */
	char	   *pages;
	BlockNumber *block;			/* of each */
	uint32	   *number;			/* of each, in the tree's list */
	uint32		npages;
	BulkItem   *items;
	uint64		nitems;
	uint64		copy_bytes;		/* of all copies */
	HybEntry	first;			/* the one read first */
	uint32		common;			/* bytes that all keys begin with */
	HybTree		tree;
} Bulk;

/* ---- reading ---- */

/* Which tree is the generation's, if nothing was ever entered?  -1: none. */
static int
untouched_tree(HybStage *stage, uint64 generation)
{
	HybTree    *tree = hyb_stage_tree(stage, generation);
	int			which;

	if (tree == NULL || tree->nentries > 0)
		return -1;
	which = (int) (tree - stage->trees);
	for (int lane = 0; lane < HYB_LANES; lane++)
		if (stage->applied[which][lane] != 0)
			return -1;
	return which;
}

/* Sets what is read at most: the log may grow meanwhile. */
static void
limit_task(HybBulkTask *task)
{
	const HybGeneration *generation = &task->generation;

	task->max_pages = generation->npages + generation->npages / BULK_GROWTH + HYB_LANES;
	task->max_items = generation->nentries + generation->nentries / BULK_GROWTH +
		HYB_LANES * (HYB_PAGE_CAPACITY / HYB_DELTA_MIN_ENTRY);
}

/* Is the generation long enough, and is there memory for it and its growth? */
static bool
is_worth_it(HybBulkTask *task)
{
	const HybGeneration *generation = &task->generation;
	uint64		memory = (uint64) maintenance_work_mem * 1024;

	/* counters may be damaged */
	if (generation->npages < BULK_PAGES ||
		generation->npages > memory / BLCKSZ ||
		generation->nentries > memory / sizeof(BulkItem))
		return false;
	limit_task(task);

	/* a tree takes three times as much as the pages, as a rule */
	return task->max_pages * BLCKSZ + task->max_items * sizeof(BulkItem) <= memory &&
		(hyb_arena_used() + generation->npages * BLCKSZ * 3) * 2 < hyb_arena_budget();
}

/* Which tree is to be built like that; -1: none. */
static int
find_wanted(HybIndex *ix, HybStageAccess *access, const HybVersion *version,
			int want, HybBulkTask *task)
{
	for (int which = HYB_FROZEN; which <= HYB_ACTIVE; which++)
	{
		uint64		number = hyb_version_generation(version, which)->number;

		task->whole = which == HYB_FROZEN;
		if ((want & (1 << which)) != 0 &&
			untouched_tree(access->stage, number) >= 0 &&
			hyb_generation_now(ix, number, &task->generation) &&
			is_worth_it(task))
			return which;
	}
	return -1;
}

/*
 * Many readers may come to a log at the same time, after the server's start
 * say.  One of them sorts it, and the rest wait, for as long as that may take.
 * Once it was tried in vain it is not tried again, unless the tree was evicted.
 */
HybSortPlan
hyb_bulk_plan(HybIndex *ix, HybStageAccess *access, const HybVersion *version,
			  int want, HybBulkTask *task)
{
	HybSortPlan plan;
	int			which;

	/* in a comparison function of a btree, whose search has locks */
	if (!hyb_tree_elastic(ix->desc) || InterruptHoldoffCount > 1 ||
		!hyb_stage_turn(access, version) ||
		(which = find_wanted(ix, access, version, want, task)) < 0)
		return HYB_SORT_NONE;
	plan = hyb_stage_plan_sort(access->stage, which, BULK_WAIT_US +
							   task->generation.npages * BULK_WAIT_PAGE_US,
							   &task->until);
	if (plan == HYB_SORT_NOW)
		task->marks = bulk_marks(access->stage);
	return plan;
}

static inline Page
bulk_page(const Bulk *bulk, uint32 page)
{
	return (Page) (bulk->pages + (Size) page * BLCKSZ);
}

/* An item's entry; its bytes point into the page's copy. */
static inline void
item_entry(const Bulk *bulk, const BulkItem *item, HybEntry *entry)
{
	Page		page = bulk_page(bulk, item->page);
	HybDeltaHeader header = hyb_delta_header(page, item->offset);

	Assert(item->page < bulk->npages && header.len > 0);
	entry->bytes = (const uint8 *) page + item->offset + header.size;
	entry->len = entry->keylen = header.len;
	if (bulk->ix->desc->natts != bulk->ix->desc->nkeys)
		entry->keylen = hyb_key_length(bulk->ix->desc, entry->bytes, entry->len);
	entry->tid = header.tid;
}

/*
 * The items of the page that was read last; returns where its entries end, 0 if
 * there is no room for them.
 */
static uint16
add_page_entries(Bulk *bulk)
{
	const HybIndex *ix = bulk->ix;
	uint32		page = bulk->npages - 1;
	HybEntry	entry = {.block = bulk->block[page]};

	while (hyb_delta_next(ix->rel, bulk_page(bulk, page), &entry))
	{
		BulkItem   *item;

		if ((entry.flags & HYB_DELTA_DEAD) != 0)
			continue;
		hyb_delta_key_length(ix, &entry);
		if (bulk->nitems == bulk->task->max_items)
			return 0;
		if (bulk->nitems == 0)
		{
			bulk->first = entry;
			bulk->common = entry.keylen;
		}
		bulk->common = hyb_common_prefix(bulk->first.bytes, entry.bytes,
										 Min(bulk->common, entry.keylen));
		Assert(bulk->nitems < bulk->task->max_items && bulk->common <= entry.keylen);
		item = &bulk->items[bulk->nitems++];
		item->page = page;
		item->offset = entry.offset;
		bulk->copy_bytes += hyb_entry_size(entry.len);
	}
	return entry.next;
}

/* False if it is too much, or not there any more. */
static bool
read_lane(Bulk *bulk, int lane)
{
	const HybGeneration *generation = &bulk->task->generation;
	HybDeltaWalk walk;

	if (!BlockNumberIsValid(generation->head[lane]))
		return true;
	hyb_delta_walk_lane(&walk, bulk->ix, generation, bulk->task->whole,
						generation->head[lane], HYB_METAPAGE_BLKNO);
	walk.npages = bulk->npages;
	while (hyb_delta_walk_next(&walk))
	{
		uint16		end;

		if (bulk->npages == bulk->task->max_pages)
			return false;
		bulk->block[bulk->npages] = walk.block;
		if (!hyb_delta_walk_copy(&walk, (char *) bulk_page(bulk, bulk->npages++)) ||
			(end = add_page_entries(bulk)) == 0)
			return false;
		bulk->end[lane] = hyb_lane_end(walk.block, end);
	}
	return true;
}

/* ---- sorting ---- */

static int
compare_bulk_items(const BulkItem *a, const BulkItem *b, const Bulk *bulk)
{
	HybEntry	x;
	HybEntry	y;

	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	item_entry(bulk, a, &x);
	item_entry(bulk, b, &y);
	return hyb_entry_compare(bulk->ix->desc, &x, &y);
}

#define ST_SORT sort_items
#define ST_ELEMENT_TYPE BulkItem
#define ST_COMPARE(a, b, bulk) compare_bulk_items(a, b, bulk)
#define ST_COMPARE_ARG_TYPE const Bulk
#define ST_CHECK_FOR_INTERRUPTS
#define ST_SCOPE static
#define ST_DEFINE
#include "lib/sort_template.h"

/* By what tells keys apart, and lies beside the items. */
static void
sort_bulk(Bulk *bulk)
{
	const HybKeyDesc *desc = bulk->ix->desc;
	uint32		skip = hyb_tree_skips_bytes(desc) ? bulk->common : 0;

	for (uint64 i = 0; i < bulk->nitems; i++)
	{
		BulkItem   *item = &bulk->items[i];
		HybEntry	entry;

		item_entry(bulk, item, &entry);
		item->head = hyb_tree_bytes_head(desc, entry.bytes, entry.keylen, skip);
	}
	sort_items(bulk->items, bulk->nitems, bulk);
}

/* Chunks of the filter, which is made for all keys at once. */
static uint32
filter_chunks(const Bulk *bulk)
{
	if (!bulk->ix->desc->exact)
		return 0;
	return (uint32) Min(bulk->nitems / HYB_BLOOM_KEYS + 1, HYB_BLOOM_MAX_CHUNKS);
}

/* Chunks that the tree takes, somewhat more rather than less. */
static uint32
tree_chunks(const Bulk *bulk)
{
	uint64		leaves = bulk->nitems / HYB_LEAF_FANOUT + 1;
	uint64		separators = leaves * (bulk->copy_bytes / bulk->nitems + 1);
	uint64		nodes = leaves + leaves / (HYB_INNER_FANOUT - 1) +
		separators / HYB_NODE_SIZE * 5 / 4 + bulk->npages / HYB_PAGES_FANOUT * 2 + 32;
	uint64		bytes = nodes * HYB_NODE_SIZE + bulk->copy_bytes;

	return (uint32) (bytes / (HYB_CHUNK_SPACE - HYB_NODE_SIZE) + bytes / HYB_CHUNK_SPACE / 16 +
					 hyb_bloom_cost(filter_chunks(bulk)) + 4);
}

/* ---- building ---- */

/* Enter everything into the tree; false if there is too little memory. */
static bool
build_tree(Bulk *bulk, const HybTreeUse *use)
{
	HybTree    *tree = use->tree;
	uint32		filter = filter_chunks(bulk);

	if (filter > 0 && use->arena->npocket >= hyb_bloom_cost(filter))
	{
		hyb_bloom_create(&tree->bloom, use->arena, filter);
		tree->nchunks += hyb_bloom_cost(filter);
	}
	for (uint32 i = 0; i < bulk->npages; i++)
	{
		if (!hyb_tree_has_memory(tree, use->arena, 0, HYB_PAGE_NODES))
			return false;
		bulk->number[i] = hyb_tree_page_number(tree, use->arena, bulk->block[i]);
	}
	for (uint64 i = 0; i < bulk->nitems; i++)
	{
		const BulkItem *item = &bulk->items[i];
		uint32		number = bulk->number[item->page];
		HybEntry	entry;

		Assert(i == 0 || compare_bulk_items(item - 1, item, bulk) <= 0);
		item_entry(bulk, item, &entry);
		entry.block = bulk->block[item->page];
		entry.offset = (uint16) item->offset;
		if (number < HYB_LOG_MAX_PAGES)
		{
			entry.block = number;
			entry.offset |= HYB_OFFSET_LISTED;
		}
		if (hyb_tree_insert(use, &entry) != HYB_TREE_DONE)
			return false;
	}
	return true;
}

/*
 * Give the tree, if there is one, to the stage, unless that has entries by now, or the
 * wait for it has ended.
 */
static void
install_tree(HybCache *cache, const HybBulkTask *task, Bulk *bulk)
{
	HybSharedSlot *shared = cache->shared;
	HybStage   *stage;
	int			which;

	if (shared == NULL)
		return;
	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	stage = &shared->stage;
	which = hyb_slot_valid(cache) ? untouched_tree(stage, task->generation.number) : -1;
	if (which >= 0 && hyb_tree_ends_sort(stage, which, task->until) && bulk != NULL &&
		bulk_marks(stage) == task->marks)
	{
		HybTree    *tree = &stage->trees[which];

		hyb_tree_free(tree, &hyb_shared_arena);
		*tree = bulk->tree;
		tree->generation = task->generation.number;
		memset(&bulk->tree, 0, sizeof(HybTree));
		memcpy(stage->applied[which], bulk->end, sizeof(bulk->end));
		stage->npages[which] = bulk->npages;
		stage->rebuilds++;
		hyb_stage_assert_valid(stage);
		shared->tree_bytes = hyb_stage_bytes(stage);
	}
	LWLockRelease(&shared->lock);
}

/* Reads the log and sorts it; returns false if there is no tree to build. */
static bool
read_and_sort(Bulk *bulk)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hybrid bulk build",
												  ALLOCSET_DEFAULT_SIZES);
	uint64		npages = bulk->task->max_pages;

	bulk->context = context;
	bulk->pages = MemoryContextAllocHuge(context, npages * BLCKSZ);
	bulk->block = MemoryContextAllocHuge(context, npages * sizeof(BlockNumber));
	bulk->number = MemoryContextAllocHuge(context, npages * sizeof(uint32));
	bulk->items = MemoryContextAllocHuge(context, bulk->task->max_items * sizeof(BulkItem));
	for (int lane = 0; lane < HYB_LANES; lane++)
		if (!read_lane(bulk, lane))
			return false;
	if (bulk->nitems == 0)
		return false;
	sort_bulk(bulk);
	return true;
}

static bool
prepare_tree(Bulk *bulk)
{
	if (!read_and_sort(bulk))
		return false;
	HYB_POINT("bulk-read");
	return hyb_arena_reserve(&hyb_shared_arena, tree_chunks(bulk));
}

void
hyb_bulk_build(HybIndex *ix, HybCache *cache, const HybBulkTask *task)
{
	HybArena   *arena = &hyb_shared_arena;
	HybTreeUse	use;
	HybLogReader reader;
	Bulk		bulk = {.ix = ix,.task = task};
	volatile bool built = false;

	HYB_ASSERT_NO_LWLOCK();
	PG_TRY();
	{
		built = prepare_tree(&bulk);
	}
	PG_CATCH();
	{
		install_tree(cache, task, NULL);
		PG_RE_THROW();
	}
	PG_END_TRY();

	HOLD_INTERRUPTS();
	if (built)
	{
		hyb_tree_use(&use, ix, &bulk.tree, arena, &reader);
		built = build_tree(&bulk, &use);
	}
	install_tree(cache, task, built ? &bulk : NULL);
	hyb_tree_free(&bulk.tree, arena);
	RESUME_INTERRUPTS();
	hyb_arena_trim(arena);
	MemoryContextDelete(bulk.context);
}
