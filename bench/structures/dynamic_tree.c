/*
 * dynamic_tree.c
 *		The dynamic stage's own tree (src/memtree/stage.h), as it is where there
 *		is memory, and as it is where memory is short.
 */
#include "fuzz/server.h"

#include "memtree/memtree.h"
#include "structure.h"

#define COMPACT_INTERVAL	500

static HybArena *arena;
static HybTree tree;
static HybKeyDesc *desc;
static bool scarce;
static const Key *log_keys;
static uint32_t log_nkeys;

static void
set_entry(HybEntry *entry, const Key *key)
{
	memset(entry, 0, sizeof(*entry));
	entry->bytes = key->bytes;
	entry->len = entry->keylen = key->len;
	ItemPointerSet(&entry->tid, key->number, 1);
	entry->block = key->number;
	entry->offset = 4;
}

/* What is not in memory a page of the log has; here the array of keys. */
static bool
load_entry(HybEntryLog *log, HybTreeLogPage *page, uint16 offset, HybEntry *entry)
{
	(void) offset;
	if (page->block >= log_nkeys)
	{
		log->stale = true;
		return false;
	}
	set_entry(entry, &log_keys[page->block]);
	return true;
}

static HybEntryLog entry_log = {.load = load_entry};

static bool
is_scarce(const HybArena *which)
{
	(void) which;
	return scarce;
}

static HybTreeUse
use_tree(void)
{
	return (HybTreeUse)
	{
		.tree = &tree,.arena = arena,.desc = desc,.log = &entry_log
	};
}

/* Keys are bytes that are compared as they are, whatever they stand for. */
static void
init(const Key *keys, uint32_t n, bool compact)
{
	desc = calloc(1, offsetof(HybKeyDesc, cols) + sizeof(HybColumn));
	desc->all_mem = true;
	desc->natts = desc->nkeys = 1;
	desc->cols[0].store = HYB_STORE_BYTES;
	desc->cols[0].compare = HYB_COMPARE_MEM;
	desc->cols[0].terminated = true;
	arena = hyb_arena_create(NULL);
	arena->scarce = is_scarce;
	scarce = compact;
	tree.generation = 1;
	log_keys = keys;
	log_nkeys = n;
}

static void
tree_init(const Key *keys, uint32_t n)
{
	init(keys, n, false);
}

static void
compact_tree_init(const Key *keys, uint32_t n)
{
	init(keys, n, true);
}

static void
tree_insert(const Key *key)
{
	HybTreeUse	use = use_tree();
	HybEntry	entry;

	set_entry(&entry, key);
	while (hyb_tree_insert(&use, &entry) == HYB_TREE_MEMORY)
		if (!hyb_arena_reserve(arena, HYB_TREE_RESERVE))
			abort();
	if (scarce && key->number % COMPACT_INTERVAL == 0)
		while (hyb_tree_compact(&use))
			 /* more */ ;
}

static uint32_t
tree_look_up(const Key *key)
{
	HybPos		lo = {.key = key->bytes,.len = key->len,.ncols = 1,.tie = HYB_BEFORE};
	HybPos		hi = lo;
	HybTreeIter iter = {.use = use_tree()};
	const HybEntry *entry;

	hi.tie = HYB_AFTER;
	hyb_tree_iter_start(&iter, &lo, &hi);
	entry = hyb_tree_iter_next(&iter);
	return entry != NULL ? entry->block : UINT32_MAX;
}

static uint64_t
tree_scan(const Key *from, int n)
{
	HybPos		lo = {.key = from->bytes,.len = from->len,.ncols = 1,.tie = HYB_BEFORE};
	HybPos		hi = {.tie = HYB_AFTER};
	HybTreeIter iter = {.use = use_tree()};
	uint64_t	sum = 0;
	const HybEntry *entry;

	hyb_tree_iter_start(&iter, &lo, &hi);
	for (; n > 0 && (entry = hyb_tree_iter_next(&iter)) != NULL; n--)
		sum += entry->block;
	return sum;
}

static size_t
tree_bytes(void)
{
	return (size_t) tree.nchunks * HYB_CHUNK_SIZE;
}

const Structure tree_structure = {
	"B+tree", tree_init, tree_insert, tree_look_up, tree_scan, tree_bytes
};

const Structure compact_tree_structure = {
	"B+tree, compact", compact_tree_init, tree_insert, tree_look_up, tree_scan,
	tree_bytes
};
