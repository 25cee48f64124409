/*
 * bulk.c
 *		Building the tree of a long log at once, sorted.
 *
 * Who first reads a log that nobody has read for long, a merge often, needs a
 * tree of all of it.  Entries that arrive in order go to the end of the tree,
 * where everything is in the cache: sorting them first, by a part of the key
 * that lies beside them, takes less than searching a place for each.  It also
 * makes full leaves.
 *
 * All that is done with nothing locked, on a tree that nobody else knows of,
 * which then becomes the stage's.  VACUUM flags entries on the page and then in
 * the tree that it finds, so a flag that was set after the page was read could
 * be missing: it counts its visits (HybStage.marks), and what was read before
 * one is of no use.  What was appended meanwhile is followed from where the
 * reading ended.
 *
 * The tree's chunks are in nobody's pocket while it is built.  So nothing there
 * raises an error, and interrupts are held off.
 */
#include "compat.h"

#include "algo/bits.h"
#include "dynamic/bulk.h"
#include "dynamic/delta.h"
#include "dynamic/log_reader.h"
#include "dynamic/tree_internal.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Pages of a log that is worth it. */
#define BULK_PAGES		256

/* Room for items, at first. */
#define BULK_ITEMS		65536

typedef struct BulkItem
{
	uint64		head;			/* of the key, behind what all keys begin with */
	uint32		page;			/* of those read */
	uint32		offset;
} BulkItem;

typedef struct Bulk
{
	HybIndex   *ix;
	bool		whole;			/* the generation is not appended to */
	MemoryContext context;
	uint64		end[HYB_LANES]; /* hyb_lane_end of what was read */
	char	   *pages;
	BlockNumber *block;			/* of each */
	uint32	   *number;			/* of each, in the tree's list */
	uint32		npages;
	uint32		max_pages;
	BulkItem   *items;
	uint64		nitems;
	uint64		max_items;
	uint64		copy_bytes;		/* of all copies */
	HybEntry	first;			/* the one read first */
	uint32		common;			/* bytes that all keys begin with */
	HybTree		tree;
} Bulk;

/* ---- reading ---- */

/* The tree of a generation, if nothing was ever entered. */
static HybTree *
untouched_tree(HybStage *stage, uint64 generation)
{
	HybTree    *tree = hyb_stage_tree(stage, generation);

	if (tree == NULL || tree->nentries > 0)
		return NULL;
	for (int lane = 0; lane < HYB_LANES; lane++)
		if (stage->applied[tree - stage->trees][lane] != 0)
			return NULL;
	return tree;
}

int
hyb_bulk_wanted(HybIndex *ix, HybStageAccess *access, const HybVersion *version,
				int want)
{
	/* pages and items together take less than twice what the pages do */
	uint64		most = (uint64) maintenance_work_mem * 1024 / (2 * BLCKSZ);

	if (!hyb_tree_elastic(ix->desc))
		return -1;
	for (int which = HYB_FROZEN; which <= HYB_ACTIVE; which++)
	{
		uint64		npages = hyb_version_generation(version, which)->npages;

		/* a tree takes three times as much as the pages */
		if ((want & (1 << which)) != 0 && npages >= BULK_PAGES &&
			npages <= most &&
			(hyb_arena_used() + npages * BLCKSZ * 3) * 2 < hyb_arena_budget() &&
			hyb_stage_turn(access, version) &&
			untouched_tree(access->stage, hyb_version_generation(version, which)->number) != NULL)
			return which;
	}
	return -1;
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
	const uint8 *p = (const uint8 *) bulk_page(bulk, item->page) + item->offset;
	HybDeltaHeader header = hyb_delta_header(p);

	entry->bytes = p + header.size;
	entry->len = entry->keylen = header.len;
	if (bulk->ix->desc->natts != bulk->ix->desc->nkeys)
		entry->keylen = hyb_key_length(bulk->ix->desc, entry->bytes, entry->len);
	entry->tid = header.tid;
}

/* The items of the page that was read last; returns where its entries end. */
static uint16
add_items(Bulk *bulk)
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
		if (bulk->nitems == bulk->max_items)
		{
			bulk->max_items += Max(bulk->max_items / 2, BULK_ITEMS);
			bulk->items = repalloc_huge(bulk->items,
										bulk->max_items * sizeof(BulkItem));
		}
		if (bulk->nitems == 0)
		{
			bulk->first = entry;
			bulk->common = entry.keylen;
		}
		bulk->common = hyb_common_prefix(bulk->first.bytes, entry.bytes,
										 Min(bulk->common, entry.keylen));
		item = &bulk->items[bulk->nitems++];
		item->page = page;
		item->offset = entry.offset;
		bulk->copy_bytes += hyb_entry_size(entry.len);
	}
	return entry.next;
}

/* False if it is too much, or not there any more. */
static bool
read_lane(Bulk *bulk, const HybGeneration *generation, int lane)
{
	HybDeltaWalk walk;

	if (!BlockNumberIsValid(generation->head[lane]))
		return true;
	hyb_delta_walk_lane(&walk, bulk->ix, generation, bulk->whole,
						generation->head[lane], HYB_METAPAGE_BLKNO);
	walk.npages = bulk->npages;
	while (hyb_delta_walk_next(&walk))
	{
		if (bulk->npages == bulk->max_pages)
			return false;
		bulk->block[bulk->npages] = walk.block;
		if (!hyb_delta_walk_copy(&walk, (char *) bulk_page(bulk, bulk->npages++)))
			return false;
		bulk->end[lane] = hyb_lane_end(walk.block, add_items(bulk));
	}
	return true;
}

/* ---- sorting ---- */

static int
compare_items(const BulkItem *a, const BulkItem *b, const Bulk *bulk)
{
	HybEntry	x;
	HybEntry	y;
	int			c;

	if (a->head != b->head)
		return a->head < b->head ? -1 : 1;
	item_entry(bulk, a, &x);
	item_entry(bulk, b, &y);
	c = hyb_key_compare(bulk->ix->desc, x.bytes, x.keylen, y.bytes, y.keylen);
	return c != 0 ? c : ItemPointerCompare(&x.tid, &y.tid);
}

#define ST_SORT sort_items
#define ST_ELEMENT_TYPE BulkItem
#define ST_COMPARE(a, b, bulk) compare_items(a, b, bulk)
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
		hyb_bloom_extend(&tree->bloom, use->arena, filter);
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

/* The tree becomes the stage's, if that has nothing to show for itself. */
static void
install_tree(Bulk *bulk, HybSlot *s, uint64 generation, uint64 marks)
{
	HybSharedSlot *shared = s->shared;
	HybStage   *stage;
	HybTree    *tree;

	LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
	stage = hyb_stage_of(shared);
	if (hyb_slot_valid(s) && hyb_bulk_marks(stage) == marks &&
		(tree = untouched_tree(stage, generation)) != NULL)
	{
		int			which = (int) (tree - stage->trees);

		hyb_tree_free(tree, &hyb_shared_arena);
		*tree = bulk->tree;
		tree->generation = generation;
		memset(&bulk->tree, 0, sizeof(HybTree));
		memcpy(stage->applied[which], bulk->end, sizeof(bulk->end));
		stage->npages[which] = bulk->npages;
		stage->rebuilds++;
		shared->tree_bytes = hyb_stage_bytes(stage);
	}
	LWLockRelease(&shared->lock);
}

static void
begin_bulk(Bulk *bulk, HybIndex *ix, const HybGeneration *generation)
{
	memset(bulk, 0, sizeof(*bulk));
	bulk->ix = ix;
	bulk->context = AllocSetContextCreate(CurrentMemoryContext,
										  "hybrid bulk build",
										  ALLOCSET_DEFAULT_SIZES);
	bulk->max_pages = generation->npages + generation->npages / 8 + HYB_LANES;
	bulk->max_items = BULK_ITEMS;
	bulk->pages = MemoryContextAllocHuge(bulk->context, (Size) bulk->max_pages * BLCKSZ);
	bulk->block = MemoryContextAllocHuge(bulk->context, bulk->max_pages * sizeof(BlockNumber));
	bulk->number = MemoryContextAllocHuge(bulk->context, bulk->max_pages * sizeof(uint32));
	bulk->items = MemoryContextAllocHuge(bulk->context, bulk->max_items * sizeof(BulkItem));
}

void
hyb_bulk_build(HybIndex *ix, HybSlot *s, const HybVersion *version, int which,
			   uint64 marks)
{
	const HybGeneration *generation = hyb_version_generation(version, which);
	HybArena   *arena = &hyb_shared_arena;
	Bulk		bulk;
	bool		done = true;

	HYB_ASSERT_NO_LWLOCK();
	begin_bulk(&bulk, ix, generation);
	bulk.whole = which == HYB_FROZEN;
	for (int lane = 0; lane < HYB_LANES && done; lane++)
		done = read_lane(&bulk, generation, lane);
	if (done && bulk.nitems > 0)
	{
		sort_bulk(&bulk);
		done = hyb_arena_reserve(arena, tree_chunks(&bulk));
	}
	HYB_POINT("bulk-read");
	if (done && bulk.nitems > 0)
	{
		HybTreeUse	use;
		HybLogReader reader;

		HOLD_INTERRUPTS();
		hyb_tree_use(&use, ix, &bulk.tree, arena, &reader);
		if (build_tree(&bulk, &use))
			install_tree(&bulk, s, generation->number, marks);
		hyb_tree_free(&bulk.tree, arena);
		RESUME_INTERRUPTS();
	}
	hyb_arena_trim(arena);
	MemoryContextDelete(bulk.context);
}
