/*
 * tree.c
 *		B+tree over the entries of one generation, in an arena.
 *
 * Nodes are 512 bytes, the size that Zhang et al. (SIGMOD 2016) use for the
 * dynamic stage's B+tree.
 */
#include "compat.h"

#include "algo/bits.h"
#include "dynamic/tree.h"
#include "storage/itemptr.h"

/*
 * Entries lie in memory in order of insertion, so reading them in key order
 * misses the cache each time: fetch some entries ahead.
 */
#define HYB_PREFETCH		6

#if defined(__GNUC__)
#define hyb_prefetch(addr) __builtin_prefetch(addr)
#else
#define hyb_prefetch(addr) ((void) 0)
#endif

/* HybChunk.kind */
#define HYB_CHUNK_NODES		1
#define HYB_CHUNK_ENTRIES	2

/* A filter does not pay for fewer entries. */
#define HYB_BLOOM_MIN_ENTRIES	64

/* ---- order ---- */

static inline int
entry_compare(const HybArena *arena, const HybKeyDesc *desc, HybRef ref,
			  const HybPos *pos)
{
	const HybTreeEntry *entry = hyb_tree_entry_at(arena, ref);

	return hyb_pos_compare_key(desc, entry->bytes, entry->keylen,
							   &entry->tid, pos);
}

/* The position of an entry. */
static inline void
entry_pos(const HybKeyDesc *desc, const HybEntry *entry, HybPos *pos)
{
	*pos = hyb_pos_at(desc, entry->bytes, entry->keylen, entry->tid);
}

/* A position to search for, with its heads in the node at hand. */
typedef struct Target
{
	const HybArena *arena;
	const HybKeyDesc *desc;
	const HybPos *pos;
	bool		above;			/* look for entries above pos, not at it */
	uint32		skip;
	uint64		low;
	uint64		high;
} Target;

static inline void
target_init(Target *target, const HybArena *arena, const HybKeyDesc *desc,
			const HybPos *pos, bool above)
{
	target->arena = arena;
	target->desc = desc;
	target->pos = pos;
	target->above = above;
	target->skip = 0;
	hyb_tree_key_head(desc, pos->key, pos->len, 0, &target->low, &target->high);
}

/* Go on to a node that skips so many bytes, which `ref` in it begins with. */
static inline void
target_enter(Target *target, uint32 skip, HybRef ref)
{
	Assert(skip == 0 ||
		   (target->pos->len >= skip &&
			memcmp(target->pos->key, hyb_tree_entry_at(target->arena, ref)->bytes, skip) == 0));
	if (skip == target->skip)
		return;
	target->skip = skip;
	hyb_tree_key_head(target->desc, target->pos->key, target->pos->len, skip,
					  &target->low, &target->high);
}

/*
 * First of items [first, n) of a node that lies above the target's position
 * (or at it, unless target->above); n if none does.
 */
static int
node_search(const Target *target, const uint64 *head, const HybRef *ref,
			int first, int n)
{
	int			lo = first;
	int			hi = n;

	/* pass over those whose head says that they lie below */
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (head[mid] < target->low)
			lo = mid + 1;
		else
			hi = mid;
	}
	hi = n;
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (head[mid] > target->high ||
			entry_compare(target->arena, target->desc, ref[mid], target->pos) >= (target->above ? 1 : 0))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Nodes, and indexes in them, from the root (level height - 1) down to a leaf. */
typedef struct TreePath
{
	HybRef		node[HYB_TREE_MAX_HEIGHT];
	int			index[HYB_TREE_MAX_HEIGHT];
} TreePath;

/*
 * Descend to the leaf that holds the first entry beyond the target, or would;
 * its index there may be the leaf's count.
 */
static HybTreeLeaf *
descend(const HybTree *tree, Target *target, TreePath *path)
{
	const HybArena *arena = target->arena;
	HybRef		ref = tree->root;
	HybTreeLeaf *leaf;

	for (int level = tree->height - 1; level > 0; level--)
	{
		const HybTreeInner *inner = hyb_tree_inner_at(arena, ref);
		int			i;

		target_enter(target, inner->skip, inner->sep[1]);
		i = node_search(target, inner->head, inner->sep, 1, inner->count) - 1;
		path->node[level] = ref;
		path->index[level] = i;
		ref = inner->child[i];
	}
	leaf = hyb_tree_leaf_at(arena, ref);
	target_enter(target, leaf->skip, leaf->entry[0]);
	path->node[0] = ref;
	path->index[0] = node_search(target, leaf->head, leaf->entry, 0, leaf->count);
	return leaf;
}

/* ---- allocation ---- */

static bool
has_room(const HybArena *arena, uint32 chunk, uint32 bytes)
{
	return chunk != 0 &&
		hyb_chunk(arena, chunk)->used + bytes <= HYB_CHUNK_SIZE;
}

static HybRef
allocate(HybTree *tree, HybArena *arena, uint32 *current, uint32 kind,
		 uint32 bytes)
{
	HybChunk   *header;
	HybRef		ref;

	if (!has_room(arena, *current, bytes))
	{
		uint32		chunk = hyb_arena_take(arena, kind);

		hyb_chunk(arena, chunk)->next = tree->chunks;
		tree->chunks = chunk;
		tree->nchunks++;
		*current = chunk;
	}
	header = hyb_chunk(arena, *current);
	ref = hyb_make_ref(*current, header->used);
	header->used += bytes;
	return ref;
}

static HybRef
allocate_node(HybTree *tree, HybArena *arena)
{
	HybRef		ref = allocate(tree, arena, &tree->node_chunk,
							   HYB_CHUNK_NODES, HYB_NODE_SIZE);

	memset(hyb_ref_ptr(arena, ref), 0, HYB_NODE_SIZE);
	return ref;
}

static inline uint32
entry_size(uint32 len)
{
	return TYPEALIGN(4, offsetof(HybTreeEntry, bytes) + len);
}

/* ---- insertion ---- */

/* Open a place in two arrays of a node. */
#define OPEN_PLACE(array, i, n) \
	memmove(&(array)[(i) + 1], &(array)[i], ((n) - (i)) * sizeof((array)[0]))

static void
leaf_put(HybTreeLeaf *leaf, int i, uint64 head, HybRef entry)
{
	OPEN_PLACE(leaf->head, i, leaf->count);
	OPEN_PLACE(leaf->entry, i, leaf->count);
	leaf->head[i] = head;
	leaf->entry[i] = entry;
	leaf->count++;
}

static void
inner_put(HybTreeInner *inner, int i, uint64 head, HybRef sep, HybRef child)
{
	OPEN_PLACE(inner->head, i, inner->count);
	OPEN_PLACE(inner->sep, i, inner->count);
	OPEN_PLACE(inner->child, i, inner->count);
	inner->head[i] = head;
	inner->sep[i] = sep;
	inner->child[i] = child;
	inner->count++;
}

/*
 * The fences of the path's node of a level: separators of nodes above it, or 0
 * at the edges of the tree.
 */
static void
find_fences(const HybTree *tree, const HybArena *arena, const TreePath *path,
			int level, HybRef *low, HybRef *high)
{
	*low = 0;
	*high = 0;
	while (++level < tree->height)
	{
		const HybTreeInner *inner = hyb_tree_inner_at(arena, path->node[level]);
		int			i = path->index[level];

		if (*low == 0 && i > 0)
			*low = inner->sep[i];
		if (*high == 0 && i + 1 < inner->count)
			*high = inner->sep[i + 1];
	}
}

/* Bytes that all keys between two fences begin with. */
static uint32
fences_skip(const HybArena *arena, HybRef low, HybRef high)
{
	const HybTreeEntry *a;
	const HybTreeEntry *b;

	if (low == 0 || high == 0)
		return 0;
	a = hyb_tree_entry_at(arena, low);
	b = hyb_tree_entry_at(arena, high);
	return hyb_common_prefix(a->bytes, b->bytes, Min(a->keylen, b->keylen));
}

/* Does skipping bytes help, and is it possible? */
static inline bool
skips_bytes(const HybKeyDesc *desc)
{
	return desc->all_mem &&
		(desc->nkeys > 1 || desc->cols[0].store != HYB_STORE_INT);
}

/* New heads for the entries of a leaf that has got closer fences. */
static void
reset_leaf(const HybArena *arena, const HybKeyDesc *desc, HybRef low,
		   HybRef high, HybTreeLeaf *leaf)
{
	uint32		skip = fences_skip(arena, low, high);

	if (skip == leaf->skip)
		return;
	leaf->skip = skip;
	for (int i = 0; i < leaf->count; i++)
		leaf->head[i] = hyb_tree_entry_head(arena, desc, leaf->entry[i], skip);
}

/* And for the separators of an inner node. */
static void
reset_inner(const HybArena *arena, const HybKeyDesc *desc, HybRef low,
			HybRef high, HybTreeInner *inner)
{
	uint32		skip = fences_skip(arena, low, high);

	if (skip == inner->skip)
		return;
	inner->skip = skip;
	for (int i = 1; i < inner->count; i++)
		inner->head[i] = hyb_tree_entry_head(arena, desc, inner->sep[i], skip);
}

/*
 * Items that stay on the left when a full node splits to take one at index i.
 * At the right end of the tree, where ascending keys arrive, all do.
 */
static inline int
split_point(int i, int count, bool rightmost)
{
	return rightmost && i == count ? count : (count + 1) / 2;
}

/* What separates a node that a split has made from its left neighbour. */
static inline HybRef
separator(const HybArena *arena, HybRef node, int level)
{
	return level == 0 ? hyb_tree_leaf_at(arena, node)->entry[0] :
		hyb_tree_inner_at(arena, node)->sep[0];
}

/*
 * Halve a full leaf, the path's, and put the entry where it belongs.  Returns
 * the leaf that has become its right neighbour.
 */
static HybRef
split_leaf(HybTree *tree, HybArena *arena, const HybKeyDesc *desc,
		   const TreePath *path, uint64 head, HybRef entry)
{
	HybRef		right_ref = allocate_node(tree, arena);
	HybTreeLeaf *leaf = hyb_tree_leaf_at(arena, path->node[0]);
	HybTreeLeaf *right = hyb_tree_leaf_at(arena, right_ref);
	int			i = path->index[0];
	int			keep = split_point(i, leaf->count, leaf->next == 0);

	right->skip = leaf->skip;
	right->count = leaf->count - keep;
	memcpy(right->head, leaf->head + keep, right->count * sizeof(uint64));
	memcpy(right->entry, leaf->entry + keep, right->count * sizeof(HybRef));
	leaf->count = keep;
	right->next = leaf->next;
	right->prev = path->node[0];
	if (leaf->next != 0)
		hyb_tree_leaf_at(arena, leaf->next)->prev = right_ref;
	leaf->next = right_ref;
	if (i < keep || (i == keep && right->count > 0))
		leaf_put(leaf, i, head, entry);
	else
		leaf_put(right, i - keep, head, entry);
	if (skips_bytes(desc))
	{
		HybRef		sep = right->entry[0];
		HybRef		low;
		HybRef		high;

		find_fences(tree, arena, path, 0, &low, &high);
		reset_leaf(arena, desc, low, sep, leaf);
		reset_leaf(arena, desc, sep, high, right);
	}
	return right_ref;
}

/*
 * The same for the path's inner node of a level, which gets another child.
 */
static HybRef
split_inner(HybTree *tree, HybArena *arena, const HybKeyDesc *desc,
			const TreePath *path, int level, HybRef child)
{
	HybRef		right_ref = allocate_node(tree, arena);
	HybTreeInner *inner = hyb_tree_inner_at(arena, path->node[level]);
	HybTreeInner *right = hyb_tree_inner_at(arena, right_ref);
	HybRef		sep = separator(arena, child, level - 1);
	uint64		head = hyb_tree_entry_head(arena, desc, sep, inner->skip);
	int			i = path->index[level] + 1;
	const HybTreeLeaf *leaf = hyb_tree_leaf_at(arena, path->node[0]);
	bool		rightmost = hyb_tree_leaf_at(arena, leaf->next)->next == 0;
	int			keep = split_point(i, inner->count, rightmost);

	right->skip = inner->skip;
	right->count = inner->count - keep;
	memcpy(right->head, inner->head + keep, right->count * sizeof(uint64));
	memcpy(right->sep, inner->sep + keep, right->count * sizeof(HybRef));
	memcpy(right->child, inner->child + keep, right->count * sizeof(HybRef));
	inner->count = keep;
	if (i < keep || (i == keep && right->count > 0))
		inner_put(inner, i, head, sep, child);
	else
		inner_put(right, i - keep, head, sep, child);
	if (skips_bytes(desc))
	{
		HybRef		low;
		HybRef		high;

		sep = right->sep[0];
		find_fences(tree, arena, path, level, &low, &high);
		reset_inner(arena, desc, low, sep, inner);
		reset_inner(arena, desc, sep, high, right);
	}
	return right_ref;
}

/*
 * Add to the path's leaf, where the entry has this head; if it is full split
 * it, and so on upwards.  Cannot fail: the memory is reserved.
 */
static void
insert_at(HybTree *tree, HybArena *arena, const HybKeyDesc *desc,
		  const TreePath *path, uint64 head, HybRef entry)
{
	HybTreeLeaf *leaf = hyb_tree_leaf_at(arena, path->node[0]);
	HybTreeInner *root;
	HybRef		root_ref;
	HybRef		right;
	HybRef		sep;

	if (leaf->count < HYB_LEAF_FANOUT)
	{
		leaf_put(leaf, path->index[0], head, entry);
		return;
	}
	right = split_leaf(tree, arena, desc, path, head, entry);
	sep = separator(arena, right, 0);
	for (int level = 1; level < tree->height; level++)
	{
		HybTreeInner *inner = hyb_tree_inner_at(arena, path->node[level]);

		if (inner->count < HYB_INNER_FANOUT)
		{
			inner_put(inner, path->index[level] + 1,
					  hyb_tree_entry_head(arena, desc, sep, inner->skip),
					  sep, right);
			return;
		}
		right = split_inner(tree, arena, desc, path, level, right);
		sep = separator(arena, right, level);
	}

	root_ref = allocate_node(tree, arena);
	root = hyb_tree_inner_at(arena, root_ref);
	root->count = 2;
	root->child[0] = tree->root;
	root->head[1] = hyb_tree_entry_head(arena, desc, sep, 0);
	root->sep[1] = sep;
	root->child[1] = right;
	tree->root = root_ref;
	tree->height++;
}

/* Nodes that adding to the path's leaf makes. */
static int
new_nodes(const HybTree *tree, const HybArena *arena, const TreePath *path)
{
	if (hyb_tree_leaf_at(arena, path->node[0])->count < HYB_LEAF_FANOUT)
		return 0;
	for (int level = 1; level < tree->height; level++)
		if (hyb_tree_inner_at(arena, path->node[level])->count < HYB_INNER_FANOUT)
			return level;
	return tree->height + 1;
}

/*
 * Are there chunks for an entry of this size and so many nodes?  A chunk has
 * room for more nodes than one insertion makes.
 */
static bool
have_chunks(const HybTree *tree, const HybArena *arena, uint32 size, int nodes)
{
	uint32		needed = 0;

	if (!has_room(arena, tree->entry_chunk, size))
		needed++;
	if (nodes > 0 && !has_room(arena, tree->node_chunk, nodes * HYB_NODE_SIZE))
		needed++;
	return needed <= arena->npocket;
}

bool
hyb_tree_insert(HybTree *tree, HybArena *arena, const HybKeyDesc *desc,
				const HybEntry *entry)
{
	TreePath	path;
	uint32		size = entry_size(entry->len);
	uint64		head;
	HybRef		ref;
	HybTreeEntry *copy;

	if (tree->root == 0)
	{
		uint64		high;

		if (!have_chunks(tree, arena, size, 1))
			return false;
		hyb_tree_key_head(desc, entry->bytes, entry->keylen, 0, &head, &high);
		tree->root = allocate_node(tree, arena);
		tree->height = 1;
		path.node[0] = tree->root;
		path.index[0] = 0;
	}
	else
	{
		Target		target;
		HybPos		pos;

		entry_pos(desc, entry, &pos);
		target_init(&target, arena, desc, &pos, true);
		(void) descend(tree, &target, &path);
		head = target.low;
		Assert(tree->height < HYB_TREE_MAX_HEIGHT);
		if (arena->npocket < HYB_TREE_RESERVE &&
			!have_chunks(tree, arena, size, new_nodes(tree, arena, &path)))
			return false;
	}

	ref = allocate(tree, arena, &tree->entry_chunk, HYB_CHUNK_ENTRIES, size);
	copy = hyb_tree_entry_at(arena, ref);
	copy->tid = entry->tid;
	copy->offset = entry->offset;
	copy->block = entry->block;
	copy->len_flags = entry->len;
	copy->keylen = entry->keylen;
	memcpy(copy->bytes, entry->bytes, entry->len);

	insert_at(tree, arena, desc, &path, head, ref);
	tree->nentries++;
	if (tree->bloom.nchunks != 0)
		hyb_bloom_add(&tree->bloom, arena,
					  hyb_key_hash(entry->bytes, entry->keylen));
	return true;
}

/* ---- filter ---- */

uint32
hyb_tree_bloom_wanted(const HybTree *tree)
{
	uint32		size;

	if (tree->nentries < HYB_BLOOM_MIN_ENTRIES)
		return 0;
	size = hyb_bloom_size(tree->nentries);
	return size > tree->bloom.nchunks ? hyb_bloom_cost(size) : 0;
}

/*
 * Entries lie one after the other in their chunks, so this reads memory in
 * order.  Growing by 4 at a time, the filter is rebuilt for a third of the
 * entries, in the long run.
 */
void
hyb_tree_bloom_grow(HybTree *tree, HybArena *arena)
{
	uint32		wanted = hyb_tree_bloom_wanted(tree);

	if (wanted == 0 || arena->npocket < wanted)
		return;
	tree->nchunks -= hyb_bloom_cost(tree->bloom.nchunks);
	hyb_bloom_free(&tree->bloom, arena);
	hyb_bloom_create(&tree->bloom, arena, hyb_bloom_size(tree->nentries));
	tree->nchunks += hyb_bloom_cost(tree->bloom.nchunks);

	for (uint32 chunk = tree->chunks; chunk != 0;
		 chunk = hyb_chunk(arena, chunk)->next)
	{
		const HybChunk *header = hyb_chunk(arena, chunk);

		if (header->kind != HYB_CHUNK_ENTRIES)
			continue;
		for (uint32 off = HYB_CHUNK_HEADER; off < header->used;)
		{
			const HybTreeEntry *entry = (const HybTreeEntry *) ((const char *) header + off);

			if ((entry->len_flags & HYB_ENTRY_DEAD) == 0)
				hyb_bloom_add(&tree->bloom, arena,
							  hyb_key_hash(entry->bytes, entry->keylen));
			off += entry_size(hyb_entry_len(entry));
		}
	}
}

void
hyb_tree_free(HybTree *tree, HybArena *arena)
{
	hyb_bloom_free(&tree->bloom, arena);
	hyb_arena_put_chain(arena, tree->chunks);
	memset(tree, 0, sizeof(*tree));
}

/* ---- reading ---- */

/*
 * The stop's heads in the iterator's leaf.  Unlike what was searched for, the
 * stop may differ in the bytes that the leaf skips: then either no entry is
 * beyond it, or all are, which the first comparison tells.
 */
static void
iter_enter_leaf(HybTreeIter *iter)
{
	const HybTreeLeaf *leaf = iter->leaf;
	const HybPos *stop = iter->stop;
	int			c = 0;

	iter->stop_low = 0;
	iter->stop_high = PG_UINT64_MAX;
	iter->stop_outside = iter->backward ? HYB_POS_MIN(stop) : HYB_POS_MAX(stop);
	if (stop->len == 0)
		return;
	if (leaf->skip > 0)
	{
		c = memcmp(stop->key, hyb_tree_entry_at(iter->arena, leaf->entry[0])->bytes,
				   Min(stop->len, leaf->skip));
		iter->stop_outside = iter->backward ? c < 0 : c > 0;
	}
	if (c == 0 && stop->len >= leaf->skip)
		hyb_tree_key_head(iter->desc, stop->key, stop->len, leaf->skip,
						  &iter->stop_low, &iter->stop_high);
}

void
hyb_tree_iter_start(HybTreeIter *iter, const HybTree *tree, const HybPos *lo,
					const HybPos *hi)
{
	TreePath	path;
	Target		target;
	bool		backward = iter->backward;

	iter->stop = backward ? lo : hi;
	iter->leaf = NULL;
	if (tree->root == 0)
		return;
	/* forward: first entry above lo; backward: the one before the first at hi */
	target_init(&target, iter->arena, iter->desc, backward ? hi : lo, !backward);
	iter->leaf = descend(tree, &target, &path);
	iter->index = backward ? path.index[0] - 1 : path.index[0];
	iter_enter_leaf(iter);
}

/* Is an entry beyond the iterator's stop? */
static inline bool
iter_beyond(const HybTreeIter *iter, uint64 head, HybRef ref)
{
	if (iter->stop_outside)
		return false;
	if (iter->backward)
		return head < iter->stop_low ||
			(head <= iter->stop_high &&
			 entry_compare(iter->arena, iter->desc, ref, iter->stop) <= 0);
	return head > iter->stop_high ||
		(head >= iter->stop_low &&
		 entry_compare(iter->arena, iter->desc, ref, iter->stop) >= 0);
}

HybTreeEntry *
hyb_tree_iter_next(HybTreeIter *iter)
{
	while (iter->leaf != NULL)
	{
		HybTreeLeaf *leaf = iter->leaf;
		HybTreeEntry *entry;
		int			i = iter->index;
		int			ahead;

		if (i < 0 || i >= leaf->count)
		{
			HybRef		ref = iter->backward ? leaf->prev : leaf->next;

			iter->leaf = ref != 0 ? hyb_tree_leaf_at(iter->arena, ref) : NULL;
			if (iter->leaf != NULL)
			{
				iter->index = iter->backward ? iter->leaf->count - 1 : 0;
				iter_enter_leaf(iter);
			}
			continue;
		}
		if (iter_beyond(iter, leaf->head[i], leaf->entry[i]))
		{
			iter->leaf = NULL;
			break;
		}
		iter->index += iter->backward ? -1 : 1;
		ahead = i + (iter->backward ? -HYB_PREFETCH : HYB_PREFETCH);
		if (ahead >= 0 && ahead < leaf->count)
			hyb_prefetch(hyb_tree_entry_at(iter->arena, leaf->entry[ahead]));
		entry = hyb_tree_entry_at(iter->arena, leaf->entry[i]);
		if ((entry->len_flags & HYB_ENTRY_DEAD) == 0)
			return entry;
	}
	return NULL;
}

int
hyb_tree_flag(HybTree *tree, HybArena *arena, const HybKeyDesc *desc,
			  const HybEntry *entry, uint16 flag)
{
	TreePath	path;
	HybPos		pos;
	Target		target;
	HybTreeLeaf *leaf;
	int			i;
	int			n = 0;

	if (tree->root == 0)
		return 0;
	entry_pos(desc, entry, &pos);
	target_init(&target, arena, desc, &pos, false);
	leaf = descend(tree, &target, &path);
	i = path.index[0];
	for (;;)
	{
		HybTreeEntry *found;

		if (i >= leaf->count)
		{
			if (leaf->next == 0)
				break;
			leaf = hyb_tree_leaf_at(arena, leaf->next);
			i = 0;
			continue;
		}
		if (entry_compare(arena, desc, leaf->entry[i], &pos) != 0)
			break;
		found = hyb_tree_entry_at(arena, leaf->entry[i++]);
		if ((found->len_flags & HYB_ENTRY_DEAD) == 0)
		{
			found->len_flags |= flag;
			n++;
		}
	}
	return n;
}
