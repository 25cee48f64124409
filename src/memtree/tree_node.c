/*
 * tree_node.c
 *		The B+tree's memory: nodes, copies of entries, separators, and the list
 *		of the log's pages.
 *
 * Copies lie in chunks of their own in the order in which they came, so that
 * the oldest chunk can be emptied (tree.c).  Everything else stays as
 * long as the tree does.
 */
#include "base/compat.h"

#include "memtree/tree_node.h"
#include "port/pg_bswap.h"

/*
 * A block is looked for among this number of the list's last ones: entries
 * arrive by lanes, whose last pages take turns.  A block may be in the list
 * twice.
 */
#define RECENT_PAGES	8

static inline bool
chunk_has_room(const HybArena *arena, uint32 chunk, uint32 bytes)
{
	return chunk != 0 &&
		hyb_chunk(arena, chunk)->used + bytes <= HYB_CHUNK_SIZE;
}

bool
hyb_tree_has_memory(const HybTree *tree, const HybArena *arena,
					uint32 entry_size, int nodes)
{
	uint32		needed = 0;

	if (entry_size > 0 && !chunk_has_room(arena, tree->newest, entry_size))
		needed++;
	if (nodes > 0 && !chunk_has_room(arena, tree->nodes, nodes * HYB_NODE_SIZE))
		needed++;
	return needed <= arena->npocket;
}

/* Take room from a chunk that has it. */
static inline HybRef
take_room(HybArena *arena, uint32 chunk, uint32 bytes)
{
	HybChunk   *header = hyb_chunk(arena, chunk);
	HybRef		ref = hyb_make_ref(chunk, header->used);

	Assert(bytes % 4 == 0 && header->used + bytes <= HYB_CHUNK_SIZE);
	header->used += bytes;
	return ref;
}

/* Neighbouring nodes. */
static HybRef
new_nodes(HybTree *tree, HybArena *arena, int n)
{
	uint32		bytes = n * HYB_NODE_SIZE;
	HybRef		ref;

	if (!chunk_has_room(arena, tree->nodes, bytes))
	{
		uint32		chunk = hyb_arena_take(arena, HYB_CHUNK_NODES);

		hyb_chunk(arena, chunk)->next = tree->nodes;
		tree->nodes = chunk;
		tree->nchunks++;
	}
	ref = take_room(arena, tree->nodes, bytes);
	memset(hyb_ref_ptr(arena, ref), 0, bytes);
	return ref;
}

HybRef
hyb_tree_new_node(HybTree *tree, HybArena *arena)
{
	return new_nodes(tree, arena, 1);
}

HybRef
hyb_tree_new_entry(HybTree *tree, HybArena *arena, const HybEntry *entry)
{
	uint32		size = hyb_entry_size(entry->len);
	HybTreeEntry *copy;
	HybRef		ref;

	Assert(entry->len > 0 && entry->len <= HYB_ENTRY_LEN_MASK);
	Assert(entry->keylen > 0 && entry->keylen <= entry->len);
	if (!chunk_has_room(arena, tree->newest, size))
	{
		uint32		chunk = hyb_arena_take(arena, HYB_CHUNK_ENTRIES);

		if (tree->newest != 0)
			hyb_chunk(arena, tree->newest)->next = chunk;
		else
			tree->oldest = chunk;
		tree->newest = chunk;
		tree->nchunks++;
	}
	ref = take_room(arena, tree->newest, size);
	copy = hyb_tree_entry_at(arena, ref);
	copy->tid = entry->tid;
	copy->offset = entry->offset;
	copy->block = entry->block;
	copy->len_flags = entry->len;
	copy->keylen = entry->keylen;
	memcpy(copy->bytes, entry->bytes, entry->len);
	return ref;
}

HybRef
hyb_tree_new_separator(HybTree *tree, HybArena *arena, const uint8 *bytes,
					   uint32 len, const ItemPointerData *tid)
{
	uint32		size = hyb_entry_size(len);
	HybTreeEntry *copy;
	HybRef		ref;

	if (size > tree->separators_left)
	{
		int			nodes = hyb_separator_nodes(len);

		tree->separators = new_nodes(tree, arena, nodes);
		tree->separators_left = nodes * HYB_NODE_SIZE;
	}
	Assert(len > 0 && size <= tree->separators_left);
	ref = tree->separators;
	tree->separators += size >> 2;
	tree->separators_left -= size;
	copy = hyb_tree_entry_at(arena, ref);
	copy->tid = *tid;
	copy->offset = 0;
	copy->block = InvalidBlockNumber;
	copy->len_flags = len;
	copy->keylen = len;
	memcpy(copy->bytes, bytes, len);
	return ref;
}

/* ---- the list of the log's pages ---- */

#define child_of(arena, ref, i) ((HybRef *) hyb_ref_ptr(arena, ref) + (i))

/* Pages that a radix tree of this height has room for. */
static inline uint32
pages_capacity(int height)
{
	uint32		n = 1;

	while (height-- > 0)
		n *= HYB_PAGES_FANOUT;
	return n;
}

static inline int
pages_height(uint32 npages)
{
	int			height = 1;

	while (npages > pages_capacity(height))
		height++;
	return height;
}

HybTreeLogPage *
hyb_tree_page(const HybTree *tree, const HybArena *arena, uint32 page)
{
	HybRef		ref = tree->pages;

	Assert(page < tree->npages);
	for (int height = pages_height(tree->npages) - 1; height > 0; height--)
	{
		uint32		below = pages_capacity(height);

		ref = *child_of(arena, ref, page / below);
		page %= below;
	}
	return (HybTreeLogPage *) hyb_ref_ptr(arena, ref) + page;
}

static void
append_page(HybTree *tree, HybArena *arena, BlockNumber block)
{
	uint32		page = tree->npages;
	int			height = pages_height(page + 1);
	HybRef		ref;

	if (page == 0)
		tree->pages = hyb_tree_new_node(tree, arena);
	else if (height > pages_height(page))
	{
		HybRef		root = hyb_tree_new_node(tree, arena);

		*child_of(arena, root, 0) = tree->pages;
		tree->pages = root;
	}
	ref = tree->pages;
	while (--height > 0)
	{
		uint32		below = pages_capacity(height);
		HybRef	   *child = child_of(arena, ref, page / below);

		if (*child == 0)
			*child = hyb_tree_new_node(tree, arena);
		ref = *child;
		page %= below;
	}
	Assert(page < HYB_PAGES_FANOUT && BlockNumberIsValid(block));
	((HybTreeLogPage *) hyb_ref_ptr(arena, ref) + page)->block = block;
	tree->npages++;
}

uint32
hyb_tree_page_number(HybTree *tree, HybArena *arena, BlockNumber block)
{
	uint32		n = tree->npages;

	for (uint32 i = 1; i <= Min(n, RECENT_PAGES); i++)
		if (hyb_tree_page(tree, arena, n - i)->block == block)
			return n - i;
	if (n < HYB_LOG_MAX_PAGES)
		append_page(tree, arena, block);
	return n;
}

/* ---- heads of keys ---- */

/*
 * A float's encoding as an integer, equal for -0 and +0, whose encodings are
 * neighbours, the former odd.
 */
static uint64
float_prefix(const HybColumn *col, const uint8 *bytes)
{
	uint64		value = 0;

	for (int i = 0; i < col->width; i++)
		value = value << 8 | bytes[i];
	value = value / 2 + (value & 1);
	return col->desc ? ~value : value;
}

/*
 * The bytes at `key` that belong to the first column, if that is fewer than
 * len: what follows is not ordered by its bytes.
 */
static uint32
first_column_bytes(const HybColumn *col, const uint8 *key, uint32 len)
{
	const uint8 *end;

	if (col->width > 0)
		return Min(len, col->width);
	end = memchr(key, col->desc ? 0xFF : 0x00, Min(len, sizeof(uint64)));
	return end != NULL ? end - key + 1 : len;
}

void
hyb_tree_key_head(const HybKeyDesc *desc, const uint8 *key, uint32 len,
				  uint32 skip, uint64 *low, uint64 *high)
{
	const HybColumn *col = &desc->cols[0];
	uint64		head = 0;
	uint32		n;

	*low = 0;
	*high = PG_UINT64_MAX;
	if (skip > 0)
	{
		Assert(desc->all_mem && len >= skip);
		key += skip - 1;
		len -= skip - 1;
	}
	else if (len == 0 || col->compare == HYB_COMPARE_PROC ||
			 (col->width == 0 && !col->terminated))
		return;
	else if (key[0] != HYB_FLAG_VALUE)
	{
		*low = *high = key[0] == HYB_FLAG_NULL_FIRST ? 0 : PG_UINT64_MAX;
		return;
	}
	key++;
	len--;
	if (col->compare == HYB_COMPARE_FLOAT)
	{
		*low = *high = float_prefix(col, key);
		return;
	}

	if (likely(len >= sizeof(uint64) && desc->all_mem))
	{
		memcpy(&head, key, sizeof(head));
		*low = *high = pg_ntoh64(head);
		return;
	}
	if (!desc->all_mem)
		len = first_column_bytes(col, key, len);
	n = Min(len, sizeof(uint64));
	if (n > 0)
	{
		for (uint32 i = 0; i < n; i++)
			head = head << 8 | key[i];
		head <<= 8 * (sizeof(uint64) - n);
	}

	/* a position of an all_mem index may end inside a column */
	*low = head;
	*high = head;
	if (desc->all_mem && n < sizeof(uint64))
		*high |= PG_UINT64_MAX >> (8 * n);
}

/* ---- fences ---- */

void
hyb_tree_fences(const HybTreeUse *use, const HybTreePath *path, int level,
				HybRef *low, HybRef *high)
{
	*low = 0;
	*high = 0;
	while (++level < use->tree->height)
	{
		const HybTreeInner *inner = hyb_tree_inner_at(use->arena, path->node[level]);
		int			i = path->index[level];

		if (*low == 0 && i > 0)
			*low = inner->sep[i];
		if (*high == 0 && i + 1 < inner->count)
			*high = inner->sep[i + 1];
	}
}
