/*
 * tree.c
 *		B+tree over the entries of one generation, in an arena.
 *
 * Nodes are 512 bytes, the size that Zhang et al. (SIGMOD 2016) use for the
 * dynamic stage's B+tree.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "memtree/memtree.h"
#include "memtree/tree_node.h"
#include "port/atomics.h"
#include "storage/itemptr.h"

/*
 * Entries lie in memory in order of insertion, so reading them in key order
 * misses the cache each time: fetch some entries ahead.
 */
#define PREFETCH_ENTRIES	12

/* ---- searching ---- */

static void
set_target(HybTreeTarget *target, const HybTreeUse *use, const HybPos *pos,
		   bool above)
{
	target->use = use;
	target->pos = pos;
	target->above = above;
	target->skip = 0;
	hyb_tree_key_head(use->desc, pos->key, pos->len, 0, &target->low, &target->high);
}

#ifdef USE_ASSERT_CHECKING
void
hyb_tree_assert_valid(const HybTree *tree)
{
	Assert((tree->root == 0) == (tree->height == 0));
	Assert(tree->height <= HYB_TREE_MAX_HEIGHT);
	Assert((tree->oldest == 0) == (tree->newest == 0));
	Assert(tree->root != 0 || tree->nentries == 0);
	Assert(tree->root == 0 || tree->nodes != 0);
	Assert(tree->nlog <= tree->nentries);
	Assert((tree->npages == 0) == (tree->pages == 0));
	hyb_bloom_assert_valid(&tree->bloom);
	Assert(tree->nchunks >= hyb_bloom_cost(tree->bloom.nchunks));
}

static void
inner_assert_valid(const HybTreeInner *inner)
{
	Assert(inner->count >= 1 && inner->count <= HYB_INNER_FANOUT);
	for (int i = 0; i < inner->count; i++)
	{
		Assert(inner->child[i] != 0);
		Assert(i == 0 || inner->sep[i] != 0);
		Assert(i <= 1 || inner->head[i - 1] <= inner->head[i]);
	}
}
#else
#define inner_assert_valid(inner) ((void) (inner))
#endif

/* The last child of an inner node that begins at the target or below it. */
static int
inner_search(const HybTreeTarget *target, const HybTreeInner *inner)
{
	const HybTreeUse *use = target->use;
	int			hi = inner->count;
	int			lo = hyb_first_head(inner->head, 1, hi, target->low);

	/* mostly that one lies above the target already */
	if (lo < hi && inner->head[lo] > target->high)
		return lo - 1;
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;
		const HybTreeEntry *sep = hyb_tree_entry_at(use->arena, inner->sep[mid]);

		if (inner->head[mid] > target->high ||
			hyb_pos_compare_key(use->desc, sep->bytes, sep->keylen, &sep->tid,
								target->pos) >= (target->above ? 1 : 0))
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo - 1;
}

/*
 * Descend to the leaf that holds the first entry beyond the target, or would.
 * Its index there may be the leaf's count.
 */
static HybTreeLeaf *
descend(HybTreeTarget *target, HybTreePath *path)
{
	const HybTreeUse *use = target->use;
	HybRef		ref = use->tree->root;
	HybTreeLeaf *leaf;

	for (int level = use->tree->height - 1; level > 0; level--)
	{
		const HybTreeInner *inner = hyb_tree_inner_at(use->arena, ref);
		int			i;

		hyb_tree_prefetch_heads(inner->head);
		hyb_tree_target_enter(target, inner->skip);
		i = inner_search(target, inner);
		Assert(i >= 0 && i < inner->count);
		path->node[level] = ref;
		path->index[level] = i;
		ref = inner->child[i];
	}
	leaf = hyb_tree_leaf_at(use->arena, ref);
	hyb_tree_prefetch_heads(hyb_plain_leaf(leaf)->head);
	hyb_tree_target_enter(target, leaf->skip);
	path->node[0] = ref;
	path->index[0] = hyb_tree_leaf_search(target, leaf);
	Assert(path->index[0] >= 0 && path->index[0] <= leaf->count);
	return leaf;
}

/* ---- insertion ---- */

static void
inner_put(HybTreeInner *inner, int i, uint64 head, HybRef sep, HybRef child)
{
	Assert(inner->count < HYB_INNER_FANOUT && i >= 0 && i <= inner->count);
	HYB_OPEN_PLACE(inner->head, i, inner->count);
	HYB_OPEN_PLACE(inner->sep, i, inner->count);
	HYB_OPEN_PLACE(inner->child, i, inner->count);
	inner->head[i] = head;
	inner->sep[i] = sep;
	inner->child[i] = child;
	inner->count++;
}

/* New heads for the separators of an inner node that has got these fences. */
static void
reset_inner(const HybTreeUse *use, HybRef low, HybRef high, HybTreeInner *inner)
{
	uint32		skip = 0;

	if (low != 0 && high != 0)
	{
		const HybTreeEntry *a = hyb_tree_entry_at(use->arena, low);
		const HybTreeEntry *b = hyb_tree_entry_at(use->arena, high);

		skip = hyb_common_prefix(a->bytes, b->bytes, Min(a->keylen, b->keylen));
	}
	if (skip == inner->skip)
		return;
	inner->skip = skip;
	for (int i = 1; i < inner->count; i++)
		inner->head[i] = hyb_tree_entry_head(use->arena, use->desc,
											 inner->sep[i], skip);
}

/*
 * Halve a full inner node, the path's of a level, which gets another child.
 * Returns the right half; *sep separates the child, then the halves.
 */
static HybRef
split_inner(const HybTreeUse *use, const HybTreePath *path, int level,
			HybRef child, HybRef *sep)
{
	HybArena   *arena = use->arena;
	HybRef		right_ref = hyb_tree_new_node(use->tree, arena);
	HybTreeInner *inner = hyb_tree_inner_at(arena, path->node[level]);
	HybTreeInner *right = hyb_tree_inner_at(arena, right_ref);
	uint64		head = hyb_tree_entry_head(arena, use->desc, *sep, inner->skip);
	int			i = path->index[level] + 1;
	const HybTreeLeaf *leaf = hyb_tree_leaf_at(arena, path->node[0]);
	bool		rightmost = hyb_tree_leaf_at(arena, leaf->next)->next == 0;
	int			keep = rightmost && i == inner->count ? inner->count :
		(inner->count + 1) / 2;

	right->skip = inner->skip;
	right->count = inner->count - keep;
	memcpy(right->head, inner->head + keep, right->count * sizeof(uint64));
	memcpy(right->sep, inner->sep + keep, right->count * sizeof(HybRef));
	memcpy(right->child, inner->child + keep, right->count * sizeof(HybRef));
	inner->count = keep;
	if (i < keep || (i == keep && right->count > 0))
		inner_put(inner, i, head, *sep, child);
	else
		inner_put(right, i - keep, head, *sep, child);
	*sep = right->sep[0];
	if (hyb_tree_skips_bytes(use->desc))
	{
		HybRef		low;
		HybRef		high;

		hyb_tree_fences(use, path, level, &low, &high);
		reset_inner(use, low, *sep, inner);
		reset_inner(use, *sep, high, right);
	}
	inner_assert_valid(inner);
	inner_assert_valid(right);
	return right_ref;
}

/*
 * Split the path's leaf, which is full, to take an entry, and so on upwards.
 * Cannot fail: the memory is there.
 */
static void
insert_split(const HybTreeUse *use, const HybTreePath *path,
			 const HybTreeSplit *split, HybTreeItem item)
{
	HybTree    *tree = use->tree;
	HybArena   *arena = use->arena;
	HybTreeInner *root;
	HybRef		root_ref;
	HybRef		sep;
	HybRef		right = hyb_tree_leaf_split(use, path, split, item, &sep);

	for (int level = 1; level < tree->height; level++)
	{
		HybTreeInner *inner = hyb_tree_inner_at(arena, path->node[level]);

		if (inner->count < HYB_INNER_FANOUT)
		{
			inner_put(inner, path->index[level] + 1,
					  hyb_tree_entry_head(arena, use->desc, sep, inner->skip),
					  sep, right);
			inner_assert_valid(inner);
			return;
		}
		right = split_inner(use, path, level, right, &sep);
	}

	root_ref = hyb_tree_new_node(tree, arena);
	root = hyb_tree_inner_at(arena, root_ref);
	root->count = 2;
	root->child[0] = tree->root;
	root->head[1] = hyb_tree_entry_head(arena, use->desc, sep, 0);
	root->sep[1] = sep;
	root->child[1] = right;
	tree->root = root_ref;
	tree->height++;
	inner_assert_valid(root);
	Assert(tree->height <= HYB_TREE_MAX_HEIGHT);
}

/* Nodes that splitting the path's leaf makes, the separator's among them. */
static int
split_nodes(const HybTreeUse *use, const HybTreePath *path,
			const HybTreeSplit *split)
{
	int			nodes = hyb_tree_elastic(use->desc) ?
		hyb_separator_nodes(split->sep_len) : 0;

	for (int level = 1; level < use->tree->height; level++)
		if (hyb_tree_inner_at(use->arena, path->node[level])->count < HYB_INNER_FANOUT)
			return nodes + level;
	return nodes + use->tree->height + 1;
}

/* The path to where an entry goes. */
static HybTreeLeaf *
find_entry_path(const HybTreeUse *use, const HybEntry *entry, HybTreePath *path)
{
	HybPos		pos = hyb_pos_at(use->desc, entry->bytes, entry->keylen, entry->tid);
	HybTreeTarget target;
	HybTreeLeaf *leaf;

	set_target(&target, use, &pos, true);
	leaf = descend(&target, path);
	Assert(use->tree->height < HYB_TREE_MAX_HEIGHT);

	/*
	 * where memory is short a full leaf becomes compact instead of being
	 * split
	 */
	if (!leaf->compact && leaf->count == HYB_LEAF_FANOUT && use->tree->nlog > 0 &&
		hyb_arena_is_scarce(use->arena) && !use->log->stale)
	{
		HybRef		low;
		HybRef		high;

		hyb_tree_fences(use, path, 0, &low, &high);
		hyb_tree_leaf_make_compact(use, leaf, low, high);
	}
	return leaf;
}

/* The tree is empty: its first leaf. */
static HybTreeLeaf *
make_root(const HybTreeUse *use, HybTreePath *path)
{
	HybTree    *tree = use->tree;

	tree->root = hyb_tree_new_node(tree, use->arena);
	tree->height = 1;
	path->node[0] = tree->root;
	path->index[0] = 0;
	return hyb_tree_leaf_at(use->arena, tree->root);
}

/*
 * Where memory is short an entry that goes to a compact leaf is not copied: the
 * log has it.  Otherwise *item is left alone.
 */
static void
refer_to_log(const HybTreeUse *use, const HybEntry *entry, HybTreeItem *item)
{
	uint32		page = hyb_tree_page_number(use->tree, use->arena, entry->block);

	if (page < HYB_LOG_MAX_PAGES)
	{
		item->ref = hyb_log_ref(page, entry->offset);
		item->in_log = true;
		use->tree->nlog++;
	}
}

HybTreeResult
hyb_tree_insert(const HybTreeUse *use, const HybEntry *entry)
{
	HybTree    *tree = use->tree;
	HybArena   *arena = use->arena;
	uint32		size = hyb_entry_size(entry->len);
	HybTreeItem item = {0};
	HybTreePath path;
	HybTreeLeaf *leaf;
	HybTreeSplit split;
	bool		full;
	bool		refer;

	if (tree->root == 0)
	{
		if (!hyb_tree_has_memory(tree, arena, size, 1))
			return HYB_TREE_MEMORY;
		leaf = make_root(use, &path);
	}
	else
		leaf = find_entry_path(use, entry, &path);
	full = leaf->count == hyb_tree_leaf_fanout(leaf);
	if (use->log->stale || (full && !hyb_tree_leaf_split_plan(use, &path, entry, &split)))
		return HYB_TREE_STALE;
	refer = leaf->compact && hyb_arena_is_scarce(arena);
	if (arena->npocket < HYB_TREE_RESERVE &&
		!hyb_tree_has_memory(tree, arena, size,
							 (refer ? HYB_PAGE_NODES : 0) +
							 (full ? split_nodes(use, &path, &split) : 0)))
		return HYB_TREE_MEMORY;

	if (refer)
		refer_to_log(use, entry, &item);
	if (!item.in_log)
		item.ref = hyb_tree_new_entry(tree, arena, entry);
	if (full)
		insert_split(use, &path, &split, item);
	else
		hyb_tree_leaf_put(leaf, path.index[0],
						  hyb_tree_bytes_head(use->desc, entry->bytes,
											  entry->keylen, leaf->skip), item);
	tree->nentries++;
	Assert(tree->bloom.nchunks == 0 || use->desc->exact);
	hyb_tree_assert_valid(tree);
	if (tree->bloom.nchunks != 0)
		hyb_bloom_add(&tree->bloom, arena,
					  hyb_key_hash(entry->bytes, entry->keylen));
	return HYB_TREE_DONE;
}

/* ---- taking copies of entries out of memory (docs/memory.md) ---- */

/*
 * The log has every entry, so a copy is given up by referring to its place
 * there.  Copies go by chunks, the oldest first: a chunk is free when the
 * references to all its copies have been replaced.
 */

/* Replace the reference to a copy, if there is one in the tree. */
static bool
give_up_copy(const HybTreeUse *use, HybRef ref, HybLogRef log_ref)
{
	const HybTreeEntry *copy = hyb_tree_entry_at(use->arena, ref);
	HybPos		pos = hyb_pos_at(use->desc, copy->bytes, copy->keylen, copy->tid);
	HybTreeTarget target;
	HybTreePath path;
	HybTreeLeaf *leaf;
	HybTreeLeaf *first;
	int			i;

	set_target(&target, use, &pos, false);
	leaf = first = descend(&target, &path);
	i = path.index[0];

	/* other entries of this key and TID, dead ones, may be before it */
	for (;; i++)
	{
		if (use->log->stale)
			return false;
		if (i >= leaf->count)
		{
			if (leaf->next == 0)
				return true;
			leaf = hyb_tree_leaf_at(use->arena, leaf->next);
			i = -1;
			continue;
		}
		if (!hyb_tree_leaf_in_log(leaf, i) && hyb_tree_leaf_copy(leaf, i) == ref)
			break;
		if (hyb_tree_leaf_compare(use, leaf, i, &pos) != 0)
			return !use->log->stale;
	}

	if (!leaf->compact)
	{
		HybRef		low = 0;
		HybRef		high = 0;

		if (leaf == first)
			hyb_tree_fences(use, &path, 0, &low, &high);
		hyb_tree_leaf_make_compact(use, leaf, low, high);
	}
	hyb_compact_leaf(leaf)->ref[i] = log_ref;
	hyb_set_bit(hyb_compact_leaf(leaf)->in_log, i, true);
	hyb_set_bit(hyb_compact_leaf(leaf)->killed, i,
				(copy->len_flags & HYB_ENTRY_KILLED) != 0);
	use->tree->nlog++;
	return true;
}

bool
hyb_tree_compact(const HybTreeUse *use)
{
	HybTree    *tree = use->tree;
	uint32		chunk = tree->oldest;
	const HybChunk *header;

	if (!hyb_tree_elastic(use->desc) || chunk == 0 ||
		(use->desc->exact && tree->bloom.nchunks == 0))
		return false;
	header = hyb_chunk(use->arena, chunk);
	for (uint32 off = HYB_CHUNK_HEADER; off < header->used;)
	{
		HybRef		ref = hyb_make_ref(chunk, off);
		const HybTreeEntry *copy = hyb_tree_entry_at(use->arena, ref);
		uint32		page;

		if (!hyb_tree_has_memory(tree, use->arena, 0, HYB_PAGE_NODES))
			return false;
		page = hyb_tree_page_number(tree, use->arena, copy->block);
		if (page >= HYB_LOG_MAX_PAGES ||
			!give_up_copy(use, ref, hyb_log_ref(page, copy->offset)))
			return false;
		off += hyb_entry_size(hyb_entry_len(copy));
	}
	Assert(header->kind == HYB_CHUNK_ENTRIES && tree->nchunks > 0);
	tree->oldest = header->next;
	if (tree->oldest == 0)
		tree->newest = 0;
	tree->nchunks--;
	hyb_arena_put(use->arena, chunk);
	hyb_tree_assert_valid(tree);
	return true;
}

/* ---- the end of a tree ---- */

void
hyb_tree_free(HybTree *tree, HybArena *arena)
{
	hyb_bloom_free(&tree->bloom, arena);
	hyb_arena_put_chain(arena, tree->nodes);
	hyb_arena_put_chain(arena, tree->oldest);
	memset(tree, 0, sizeof(*tree));
}

/* ---- reading ---- */

/* Is entry i of the iterator's leaf beyond its stop? */
static inline bool
iter_beyond(const HybTreeIter *iter, int i)
{
	int			c = hyb_tree_leaf_compare(&iter->use, iter->leaf, i, iter->stop);

	return iter->backward ? c <= 0 : c >= 0;
}

static inline bool
iter_has_no_stop(const HybTreeIter *iter)
{
	return iter->backward ? HYB_POS_MIN(iter->stop) : HYB_POS_MAX(iter->stop);
}

/* Have an entry to come fetched into the cache. */
HYB_ALWAYS_INLINE void
prefetch_entry(const HybTreeIter *iter, int i)
{
	const HybTreeLeaf *leaf = iter->leaf;

	if (i >= 0 && i < leaf->count && !hyb_tree_leaf_in_log(leaf, i))
		HYB_PREFETCH(hyb_tree_entry_at(iter->use.arena, hyb_tree_leaf_copy(leaf, i)));
}

/* Are all entries of the iterator's leaf passed over? */
static inline bool
iter_passes_leaf(const HybTreeIter *iter)
{
	return iter->leaf->dead && iter->leave_killed;
}

void
hyb_tree_iter_start(HybTreeIter *iter, const HybPos *lo, const HybPos *hi)
{
	HybTreePath path;
	HybTreeTarget target;
	bool		backward = iter->backward;

	hyb_pos_assert_valid(iter->use.desc, lo);
	hyb_pos_assert_valid(iter->use.desc, hi);
	iter->stop = backward ? lo : hi;
	iter->leaf = NULL;
	if (iter->use.tree->root == 0)
		return;
	/* forward: first entry above lo; backward: the one before the first at hi */
	set_target(&target, &iter->use, backward ? hi : lo, !backward);
	iter->leaf = descend(&target, &path);
	iter->index = backward ? path.index[0] - 1 : path.index[0];
	iter->passed = 0;
	iter->within = iter_has_no_stop(iter);
	/* the second entry as well: a look-up ends there */
	prefetch_entry(iter, backward ? iter->index - 1 : iter->index + 1);
}

/*
 * Go on with the leaf beside this one, if there is one.  It and its entries are
 * as unlikely to be in the cache: have what comes first fetched, and the leaf
 * after that.
 */
static void
iter_next_leaf(HybTreeIter *iter)
{
	HybRef		ref = iter->backward ? iter->leaf->prev : iter->leaf->next;
	int			step = iter->backward ? -1 : 1;

	iter->leaf = ref != 0 ? hyb_tree_leaf_at(iter->use.arena, ref) : NULL;
	if (iter->leaf == NULL)
		return;
	iter->index = iter->backward ? iter->leaf->count - 1 : 0;
	for (int ahead = 0; ahead < PREFETCH_ENTRIES && !iter_passes_leaf(iter); ahead++)
		prefetch_entry(iter, iter->index + step * ahead);
	ref = iter->backward ? iter->leaf->prev : iter->leaf->next;
	if (ref != 0)
	{
		const char *leaf = (const char *) hyb_tree_leaf_at(iter->use.arena, ref);

		for (Size at = 0; at < sizeof(HybPlainLeaf); at += PG_CACHE_LINE_SIZE / 2)
			HYB_PREFETCH(leaf + at);
	}
	iter->passed = 0;
	iter->within = iter_has_no_stop(iter) ||
		!iter_beyond(iter, iter->backward ? 0 : iter->leaf->count - 1);
}

/*
 * A queue takes its entries in order, so the dead ones of a tree lie side by side.
 * A scan that has passed over all of a leaf marks it.  Later scans go on to the next
 * leaf at once.
 */
const HybEntry *
hyb_tree_iter_next(HybTreeIter *iter)
{
	uint16		passed_flags = HYB_ENTRY_DEAD | (iter->leave_killed ? HYB_ENTRY_KILLED : 0);

	while (iter->leaf != NULL)
	{
		HybTreeLeaf *leaf = iter->leaf;
		int			step = iter->backward ? -1 : 1;
		int			i = iter->index;

		if (i < 0 || i >= leaf->count)
		{
			if (iter->passed == leaf->count && !leaf->dead)
				leaf->dead = true;
			iter_next_leaf(iter);
			continue;
		}
		if (!iter->within && iter_beyond(iter, i))
			break;
		if (iter_passes_leaf(iter))
		{
			iter_next_leaf(iter);
			continue;
		}
		iter->index += step;
		prefetch_entry(iter, i + step * PREFETCH_ENTRIES);
		if (!hyb_tree_leaf_entry(&iter->use, leaf, i, &iter->entry))
			break;
		if ((iter->entry.flags & passed_flags) == 0)
		{
			iter->passed = 0;
			return &iter->entry;
		}
		iter->passed++;
	}
	iter->leaf = NULL;
	return NULL;
}

/* Flag entry i of a leaf, unless it is dead. */
static bool
flag_tree_entry(const HybTreeUse *use, HybTreeLeaf *leaf, int i, uint16 flag)
{
	HybEntry	entry;

	if (!hyb_tree_leaf_entry(use, leaf, i, &entry) ||
		(entry.flags & HYB_ENTRY_DEAD) != 0)
		return false;
	if (!hyb_tree_leaf_in_log(leaf, i))
		hyb_tree_entry_at(use->arena, hyb_tree_leaf_copy(leaf, i))->len_flags |= flag;
	else if (flag == HYB_ENTRY_KILLED)
		hyb_set_bit(hyb_compact_leaf(leaf)->killed, i, true);
	return true;
}

int
hyb_tree_flag(const HybTreeUse *use, const HybEntry *entry, uint16 flag)
{
	HybPos		pos = hyb_pos_at(use->desc, entry->bytes, entry->keylen, entry->tid);
	HybTreePath path;
	HybTreeTarget target;
	HybTreeLeaf *leaf;
	int			i;
	int			n = 0;

	Assert(flag == HYB_ENTRY_DEAD || flag == HYB_ENTRY_KILLED);
	if (use->tree->root == 0)
		return 0;
	set_target(&target, use, &pos, false);
	leaf = descend(&target, &path);
	i = path.index[0];
	while (!use->log->stale)
	{
		if (i >= leaf->count)
		{
			if (leaf->next == 0)
				break;
			leaf = hyb_tree_leaf_at(use->arena, leaf->next);
			i = 0;
			continue;
		}
		if (hyb_tree_leaf_compare(use, leaf, i, &pos) != 0)
			break;
		if (flag_tree_entry(use, leaf, i++, flag))
			n++;
	}
	return n;
}

/* ---- checking ---- */

/* Does a search come to an entry with this key and TID? */
static bool
search_finds(const HybTreeUse *use, const HybPos *pos)
{
	HybTreePath path;
	HybTreeTarget target;
	const HybTreeLeaf *leaf;
	int			i;

	set_target(&target, use, pos, false);
	leaf = descend(&target, &path);
	i = path.index[0];
	if (i == leaf->count && leaf->next != 0)
	{
		leaf = hyb_tree_leaf_at(use->arena, leaf->next);
		i = 0;
	}
	return i < leaf->count && hyb_tree_leaf_compare(use, leaf, i, pos) == 0;
}

/* Keys are copied: what an entry's bytes point to may go. */
const char *
hyb_tree_verify(const HybTreeUse *use)
{
	const HybTree *tree = use->tree;
	HybPos		start = {.tie = HYB_BEFORE};
	HybPos		pos[2];
	uint8		key[2][HYB_MAX_ENTRY_SIZE];
	HybTreePath path;
	HybTreeTarget target;
	const HybTreeLeaf *leaf;
	HybRef		prev = 0;
	uint64		n = 0;
	uint64		nlog = 0;
	bool		passed;

	if (tree->root == 0)
		return tree->nentries == 0 ? NULL : "empty tree counts entries";
	set_target(&target, use, &start, true);
	descend(&target, &path);
	for (HybRef ref = path.node[0]; ref != 0; prev = ref, ref = leaf->next)
	{
		leaf = hyb_tree_leaf_at(use->arena, ref);
		if (leaf->prev != prev)
			return "leaves are linked wrongly";
		if (leaf->count < 1 || leaf->count > hyb_tree_leaf_fanout(leaf))
			return "leaf's count is out of range";
		/* a scan may mark the leaf while we look at its entries */
		passed = leaf->dead;
		pg_read_barrier();
		for (int i = 0; i < leaf->count; i++, n++)
		{
			HybPos	   *at = &pos[n % 2];
			HybEntry	entry;

			if (!hyb_tree_leaf_entry(use, leaf, i, &entry))
				return NULL;
			if (passed && entry.flags == 0)
				return "a leaf with a live entry is passed over";
			memcpy(key[n % 2], entry.bytes, entry.keylen);
			*at = hyb_pos_at(use->desc, key[n % 2], entry.keylen, entry.tid);
			nlog += hyb_tree_leaf_in_log(leaf, i);
			if (n > 0 && hyb_pos_compare(use->desc, &pos[1 - n % 2], at) > 0)
				return "entries out of order";
			if (!search_finds(use, at))
				return use->log->stale ? NULL : "an entry is not where it is sought";
		}
	}
	if (n != tree->nentries)
		return "wrong number of entries";
	return nlog == tree->nlog ? NULL : "wrong number of entries that only the log has";
}
