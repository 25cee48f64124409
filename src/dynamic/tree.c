/*
 * tree.c
 *		B+tree over the entries of one generation, in an arena.
 *
 * Leaves hold references to entries, inner nodes references to the entries
 * that separate their children; both hold prefixes of the keys beside them.
 * A prefix is the first eight bytes of the first key column after its flag
 * byte, as a big-endian integer; it never contradicts the order of keys but
 * may be equal for different ones.  Where the first column is not ordered by
 * its bytes all prefixes are 0.
 *
 * Nodes are 512 bytes, the size that Zhang et al. (SIGMOD 2016) use for the
 * dynamic stage's B+tree.
 */
#include "compat.h"

#include "dynamic/tree.h"
#include "port/pg_bswap.h"
#include "storage/itemptr.h"

#define HYB_NODE_SIZE		512
#define HYB_LEAF_FANOUT		41
#define HYB_INNER_FANOUT	31
#define HYB_MAX_HEIGHT		16

typedef struct HybTreeLeaf
{
	uint16		count;
	uint16		unused;
	HybRef		next;
	HybRef		prev;
	uint64		prefix[HYB_LEAF_FANOUT];
	HybRef		entry[HYB_LEAF_FANOUT];
} HybTreeLeaf;

/* Child i holds entries e with sep[i] <= e < sep[i + 1]; sep[0] is unused. */
typedef struct HybTreeInner
{
	uint16		count;
	uint16		unused;
	uint64		prefix[HYB_INNER_FANOUT];
	HybRef		sep[HYB_INNER_FANOUT];
	HybRef		child[HYB_INNER_FANOUT];
} HybTreeInner;

StaticAssertDecl(sizeof(HybTreeLeaf) <= HYB_NODE_SIZE, "a leaf is one node");
StaticAssertDecl(sizeof(HybTreeInner) <= HYB_NODE_SIZE, "an inner node is one node");

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

static inline HybTreeLeaf *
leaf_at(const HybArena *arena, HybRef ref)
{
	return hyb_ref_ptr(arena, ref);
}

static inline HybTreeInner *
inner_at(const HybArena *arena, HybRef ref)
{
	return hyb_ref_ptr(arena, ref);
}

static inline HybTreeEntry *
entry_at(const HybArena *arena, HybRef ref)
{
	return hyb_ref_ptr(arena, ref);
}

/* ---- order ---- */

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

/*
 * Prefixes of entries that start with this key lie in [*low, *high]; for a
 * whole key, *low is its prefix.
 */
static void
key_prefix(const HybKeyDesc *desc, const uint8 *key, uint32 len,
		   uint64 *low, uint64 *high)
{
	const HybColumn *col = &desc->cols[0];
	uint64		prefix = 0;
	uint32		n;

	*low = 0;
	*high = PG_UINT64_MAX;
	if (len == 0 || col->compare == HYB_COMPARE_PROC ||
		(col->width == 0 && !col->terminated))
		return;
	if (key[0] != HYB_FLAG_VALUE)
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
		memcpy(&prefix, key, sizeof(prefix));
		*low = *high = pg_ntoh64(prefix);
		return;
	}
	if (!desc->all_mem)
		len = first_column_bytes(col, key, len);
	n = Min(len, sizeof(uint64));
	if (n > 0)
	{
		for (uint32 i = 0; i < n; i++)
			prefix = prefix << 8 | key[i];
		prefix <<= 8 * (sizeof(uint64) - n);
	}

	/* a position of an all_mem index may end inside a column */
	*low = prefix;
	*high = prefix;
	if (desc->all_mem && n < sizeof(uint64))
		*high |= PG_UINT64_MAX >> (8 * n);
}

static inline int
entry_compare(const HybArena *arena, const HybKeyDesc *desc, HybRef ref,
			  const HybPos *pos)
{
	const HybTreeEntry *entry = entry_at(arena, ref);

	return hyb_pos_compare_key(desc, entry->bytes, entry->keylen,
							   &entry->tid, pos);
}

/* A position to search for, with its prefixes. */
typedef struct Target
{
	const HybPos *pos;
	uint64		low;
	uint64		high;
	bool		above;			/* look for entries above pos, not at it */
} Target;

static inline void
target_init(Target *target, const HybKeyDesc *desc, const HybPos *pos,
			bool above)
{
	target->pos = pos;
	target->above = above;
	key_prefix(desc, pos->key, pos->len, &target->low, &target->high);
}

/*
 * First of items [first, n) of a node that lies above the target's position
 * (or at it, unless target->above); n if none does.
 */
static int
node_search(const HybArena *arena, const HybKeyDesc *desc,
			const uint64 *prefix, const HybRef *ref, int first, int n,
			const Target *target)
{
	int			lo = first;
	int			hi = n;

	/* skip those whose prefix says that they lie below */
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (prefix[mid] < target->low)
			lo = mid + 1;
		else
			hi = mid;
	}
	hi = n;
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;

		if (prefix[mid] > target->high ||
			entry_compare(arena, desc, ref[mid], target->pos) >= (target->above ? 1 : 0))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/*
 * Descend to the leaf that holds the first entry beyond the target, or would;
 * its index there may be the leaf's count.  path gets nodes and indexes from
 * the root (level height - 1) down.
 */
static HybTreeLeaf *
descend(const HybTree *tree, const HybArena *arena, const HybKeyDesc *desc,
		const Target *target, HybRef *path, int *index)
{
	HybRef		ref = tree->root;
	HybTreeLeaf *leaf;

	for (int level = tree->height - 1; level > 0; level--)
	{
		const HybTreeInner *inner = inner_at(arena, ref);
		int			i = node_search(arena, desc, inner->prefix, inner->sep,
									1, inner->count, target) - 1;

		path[level] = ref;
		index[level] = i;
		ref = inner->child[i];
	}
	leaf = leaf_at(arena, ref);
	path[0] = ref;
	index[0] = node_search(arena, desc, leaf->prefix, leaf->entry, 0,
						   leaf->count, target);
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
leaf_put(HybTreeLeaf *leaf, int i, uint64 prefix, HybRef entry)
{
	OPEN_PLACE(leaf->prefix, i, leaf->count);
	OPEN_PLACE(leaf->entry, i, leaf->count);
	leaf->prefix[i] = prefix;
	leaf->entry[i] = entry;
	leaf->count++;
}

static void
inner_put(HybTreeInner *inner, int i, uint64 prefix, HybRef sep, HybRef child)
{
	OPEN_PLACE(inner->prefix, i, inner->count);
	OPEN_PLACE(inner->sep, i, inner->count);
	OPEN_PLACE(inner->child, i, inner->count);
	inner->prefix[i] = prefix;
	inner->sep[i] = sep;
	inner->child[i] = child;
	inner->count++;
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

/*
 * Add to the leaf at path[0]; if it is full split it, and so on upwards.
 * Cannot fail: the memory is reserved.
 */
static void
insert_at(HybTree *tree, HybArena *arena, const HybRef *path, const int *index,
		  uint64 prefix, HybRef entry)
{
	HybTreeLeaf *leaf = leaf_at(arena, path[0]);
	HybTreeLeaf *right;
	HybRef		right_ref;
	HybRef		sep;
	int			keep;
	int			level;

	if (leaf->count < HYB_LEAF_FANOUT)
	{
		leaf_put(leaf, index[0], prefix, entry);
		return;
	}

	right_ref = allocate_node(tree, arena);
	right = leaf_at(arena, right_ref);
	keep = split_point(index[0], leaf->count, leaf->next == 0);
	right->count = leaf->count - keep;
	memcpy(right->prefix, leaf->prefix + keep, right->count * sizeof(uint64));
	memcpy(right->entry, leaf->entry + keep, right->count * sizeof(HybRef));
	leaf->count = keep;
	right->next = leaf->next;
	right->prev = path[0];
	if (leaf->next != 0)
		leaf_at(arena, leaf->next)->prev = right_ref;
	leaf->next = right_ref;
	if (index[0] < keep || (index[0] == keep && right->count > 0))
		leaf_put(leaf, index[0], prefix, entry);
	else
		leaf_put(right, index[0] - keep, prefix, entry);
	prefix = right->prefix[0];
	sep = right->entry[0];

	for (level = 1; level < tree->height; level++)
	{
		HybTreeInner *inner = inner_at(arena, path[level]);
		HybTreeInner *sibling;
		HybRef		sibling_ref;
		int			i = index[level] + 1;

		if (inner->count < HYB_INNER_FANOUT)
		{
			inner_put(inner, i, prefix, sep, right_ref);
			return;
		}
		sibling_ref = allocate_node(tree, arena);
		sibling = inner_at(arena, sibling_ref);
		keep = split_point(i, inner->count, leaf->next == right_ref &&
						   right->next == 0);
		sibling->count = inner->count - keep;
		memcpy(sibling->prefix, inner->prefix + keep, sibling->count * sizeof(uint64));
		memcpy(sibling->sep, inner->sep + keep, sibling->count * sizeof(HybRef));
		memcpy(sibling->child, inner->child + keep, sibling->count * sizeof(HybRef));
		inner->count = keep;
		if (i < keep || (i == keep && sibling->count > 0))
			inner_put(inner, i, prefix, sep, right_ref);
		else
			inner_put(sibling, i - keep, prefix, sep, right_ref);
		prefix = sibling->prefix[0];
		sep = sibling->sep[0];
		right_ref = sibling_ref;
	}

	{
		HybRef		root_ref = allocate_node(tree, arena);
		HybTreeInner *root = inner_at(arena, root_ref);

		root->count = 2;
		root->child[0] = tree->root;
		root->prefix[1] = prefix;
		root->sep[1] = sep;
		root->child[1] = right_ref;
		tree->root = root_ref;
		tree->height++;
	}
}

/* Nodes that adding to the leaf at path[0] makes. */
static int
new_nodes(const HybTree *tree, const HybArena *arena, const HybRef *path)
{
	if (leaf_at(arena, path[0])->count < HYB_LEAF_FANOUT)
		return 0;
	for (int level = 1; level < tree->height; level++)
		if (inner_at(arena, path[level])->count < HYB_INNER_FANOUT)
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
				const uint8 *bytes, uint32 len, uint32 keylen,
				const ItemPointerData *tid, BlockNumber block, uint16 offset,
				uint64 hash)
{
	HybRef		path[HYB_MAX_HEIGHT];
	int			index[HYB_MAX_HEIGHT];
	uint32		size = entry_size(len);
	uint64		prefix;
	HybRef		ref;
	HybTreeEntry *entry;

	if (tree->root == 0)
	{
		uint64		high;

		if (!have_chunks(tree, arena, size, 1))
			return false;
		key_prefix(desc, bytes, keylen, &prefix, &high);
		tree->root = allocate_node(tree, arena);
		tree->height = 1;
		path[0] = tree->root;
		index[0] = 0;
	}
	else
	{
		Target		target;
		HybPos		pos;

		pos.key = bytes;
		pos.len = keylen;
		pos.ncols = desc->nkeys;
		pos.tie = HYB_AT;
		pos.tid = *tid;
		target_init(&target, desc, &pos, true);
		prefix = target.low;
		(void) descend(tree, arena, desc, &target, path, index);
		Assert(tree->height < HYB_MAX_HEIGHT);
		if (arena->npocket < HYB_TREE_RESERVE &&
			!have_chunks(tree, arena, size, new_nodes(tree, arena, path)))
			return false;
	}

	ref = allocate(tree, arena, &tree->entry_chunk, HYB_CHUNK_ENTRIES, size);
	entry = entry_at(arena, ref);
	entry->tid = *tid;
	entry->offset = offset;
	entry->block = block;
	entry->len_flags = len;
	entry->keylen = keylen;
	memcpy(entry->bytes, bytes, len);

	insert_at(tree, arena, path, index, prefix, ref);
	tree->nentries++;
	if (hash != 0 && tree->bloom.nchunks != 0)
		hyb_bloom_add(&tree->bloom, arena, hash);
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

void
hyb_tree_iter_start(HybTreeIter *iter, const HybTree *tree,
					const HybArena *arena, const HybKeyDesc *desc,
					const HybPos *lo, const HybPos *hi, bool backward)
{
	HybRef		path[HYB_MAX_HEIGHT];
	int			index[HYB_MAX_HEIGHT];
	Target		target;

	iter->arena = arena;
	iter->desc = desc;
	iter->backward = backward;
	iter->stop = backward ? lo : hi;
	iter->leaf = NULL;
	if (tree->root == 0)
		return;
	key_prefix(desc, iter->stop->key, iter->stop->len,
			   &iter->stop_low, &iter->stop_high);

	/* forward: first entry above lo; backward: the one before the first at hi */
	target_init(&target, desc, backward ? hi : lo, !backward);
	iter->leaf = descend(tree, arena, desc, &target, path, index);
	iter->index = backward ? index[0] - 1 : index[0];
}

/* Is an entry beyond the iterator's stop? */
static inline bool
iter_beyond(const HybTreeIter *iter, uint64 prefix, HybRef ref)
{
	if (iter->backward)
		return prefix < iter->stop_low ||
			(prefix <= iter->stop_high &&
			 entry_compare(iter->arena, iter->desc, ref, iter->stop) <= 0);
	return prefix > iter->stop_high ||
		(prefix >= iter->stop_low &&
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

			iter->leaf = ref != 0 ? leaf_at(iter->arena, ref) : NULL;
			if (iter->leaf != NULL)
				iter->index = iter->backward ? iter->leaf->count - 1 : 0;
			continue;
		}
		if (iter_beyond(iter, leaf->prefix[i], leaf->entry[i]))
		{
			iter->leaf = NULL;
			break;
		}
		iter->index += iter->backward ? -1 : 1;
		ahead = i + (iter->backward ? -HYB_PREFETCH : HYB_PREFETCH);
		if (ahead >= 0 && ahead < leaf->count)
			hyb_prefetch(entry_at(iter->arena, leaf->entry[ahead]));
		entry = entry_at(iter->arena, leaf->entry[i]);
		if ((entry->len_flags & HYB_ENTRY_DEAD) == 0)
			return entry;
	}
	return NULL;
}

int
hyb_tree_flag(HybTree *tree, HybArena *arena, const HybKeyDesc *desc,
			  const uint8 *key, uint32 keylen, const ItemPointerData *tid,
			  uint16 flag)
{
	HybRef		path[HYB_MAX_HEIGHT];
	int			index[HYB_MAX_HEIGHT];
	HybPos		pos;
	Target		target;
	HybTreeLeaf *leaf;
	int			i;
	int			n = 0;

	if (tree->root == 0)
		return 0;
	pos.key = key;
	pos.len = keylen;
	pos.ncols = desc->nkeys;
	pos.tie = HYB_AT;
	pos.tid = *tid;
	target_init(&target, desc, &pos, false);
	leaf = descend(tree, arena, desc, &target, path, index);
	i = index[0];
	for (;;)
	{
		HybTreeEntry *entry;

		if (i >= leaf->count)
		{
			if (leaf->next == 0)
				break;
			leaf = leaf_at(arena, leaf->next);
			i = 0;
			continue;
		}
		if (entry_compare(arena, desc, leaf->entry[i], &pos) != 0)
			break;
		entry = entry_at(arena, leaf->entry[i++]);
		if ((entry->len_flags & HYB_ENTRY_DEAD) == 0)
		{
			entry->len_flags |= flag;
			n++;
		}
	}
	return n;
}

/* ---- verification ---- */

typedef struct Verify
{
	const HybTree *tree;
	const HybArena *arena;
	const HybKeyDesc *desc;
	HybRef		last_leaf;
	HybRef		last_entry;
	uint64		nentries;
} Verify;

/* Order of two entries, and of their prefixes. */
static const char *
verify_order(Verify *v, HybRef left, HybRef right, uint64 right_prefix)
{
	const HybTreeEntry *a = entry_at(v->arena, left);
	const HybTreeEntry *b = entry_at(v->arena, right);
	uint64		left_prefix;
	uint64		low;
	uint64		high;
	int			c = hyb_key_compare(v->desc, a->bytes, a->keylen,
									b->bytes, b->keylen);

	if (c > 0 || (c == 0 && ItemPointerCompare(unconstify(ItemPointerData *, &a->tid),
											   unconstify(ItemPointerData *, &b->tid)) > 0))
		return "entries out of order";
	key_prefix(v->desc, a->bytes, a->keylen, &left_prefix, &high);
	key_prefix(v->desc, b->bytes, b->keylen, &low, &high);
	if (low != right_prefix)
		return "wrong prefix";
	if (left_prefix > low)
		return "prefixes out of order";
	return NULL;
}

static const char *
verify_node(Verify *v, HybRef ref, int level, HybRef sep, HybRef next_sep)
{
	const char *error;

	if (level > 0)
	{
		const HybTreeInner *inner = inner_at(v->arena, ref);

		if (inner->count < 1 || inner->count > HYB_INNER_FANOUT)
			return "inner node's count is out of range";
		for (int i = 0; i < inner->count; i++)
		{
			HybRef		low = i > 0 ? inner->sep[i] : sep;
			HybRef		high = i + 1 < inner->count ? inner->sep[i + 1] : next_sep;

			if (i > 0 && low != 0 && sep != 0 &&
				(error = verify_order(v, sep, low, inner->prefix[i])) != NULL)
				return error;
			if ((error = verify_node(v, inner->child[i], level - 1, low, high)) != NULL)
				return error;
		}
	}
	else
	{
		const HybTreeLeaf *leaf = leaf_at(v->arena, ref);

		if (leaf->count < 1 || leaf->count > HYB_LEAF_FANOUT)
			return "leaf's count is out of range";
		if (leaf->prev != v->last_leaf ||
			(v->last_leaf != 0 && leaf_at(v->arena, v->last_leaf)->next != ref))
			return "leaves are linked wrongly";
		v->last_leaf = ref;
		for (int i = 0; i < leaf->count; i++)
		{
			HybRef		entry = leaf->entry[i];

			error = verify_order(v, v->last_entry != 0 ? v->last_entry : entry,
								 entry, leaf->prefix[i]);
			if (error == NULL && sep != 0)
				error = verify_order(v, sep, entry, leaf->prefix[i]);
			if (error != NULL)
				return error;
			if (next_sep != 0)
			{
				const HybTreeEntry *e = entry_at(v->arena, entry);
				const HybTreeEntry *s = entry_at(v->arena, next_sep);

				if (hyb_key_compare(v->desc, e->bytes, e->keylen,
									s->bytes, s->keylen) > 0)
					return "entry above its node's range";
			}
			v->last_entry = entry;
			v->nentries++;
		}
	}
	return NULL;
}

const char *
hyb_tree_verify(const HybTree *tree, const HybArena *arena,
				const HybKeyDesc *desc)
{
	Verify		v = {tree, arena, desc, 0, 0, 0};
	const char *error;

	if (tree->root == 0)
		return tree->nentries == 0 ? NULL : "empty tree counts entries";
	error = verify_node(&v, tree->root, tree->height - 1, 0, 0);
	if (error == NULL && v.nentries != tree->nentries)
		error = "wrong number of entries";
	if (error == NULL && leaf_at(arena, v.last_leaf)->next != 0)
		error = "the last leaf has a successor";
	return error;
}
