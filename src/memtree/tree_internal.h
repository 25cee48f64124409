/*
 * tree_internal.h
 *		What the files that implement the B+tree share.
 */
#ifndef HYB_TREE_INTERNAL_H
#define HYB_TREE_INTERNAL_H

#include "memtree/tree_use.h"

/* ---- memory (tree_memory.c) ---- */

/* HybChunk.kind */
#define HYB_CHUNK_NODES		1
#define HYB_CHUNK_ENTRIES	2

/*
 * Are there chunks for an entry of this size (0: none) and so many nodes?  A
 * chunk has room for more nodes than one insertion makes.
 */
extern bool hyb_tree_has_memory(const HybTree *tree, const HybArena *arena,
								uint32 entry_size, int nodes);

/* A node, all zeroes.  These three take what was asked for before. */
extern HybRef hyb_tree_new_node(HybTree *tree, HybArena *arena);

/* A copy of an entry. */
extern HybRef hyb_tree_new_entry(HybTree *tree, HybArena *arena,
								 const HybEntry *entry);

/* A separator: the first len bytes of a key, and a TID. */
extern HybRef hyb_tree_new_separator(HybTree *tree, HybArena *arena,
									 const uint8 *bytes, uint32 len,
									 const ItemPointerData *tid);

/* Nodes that a separator of this length takes at most. */
#define hyb_separator_nodes(len) \
	((int) ((hyb_entry_size(len) + HYB_NODE_SIZE - 1) / HYB_NODE_SIZE))

/* A page of the tree's list. */
extern HybTreeLogPage *hyb_tree_page(const HybTree *tree, const HybArena *arena,
									 uint32 page);

/* Nodes that a page more in the list takes at most. */
#define HYB_PAGE_NODES	(HYB_PAGES_HEIGHT + 1)

/*
 * The number of a block that is among the last ones of the list; it is added if
 * it is not.  HYB_LOG_MAX_PAGES if the list is full.
 */
extern uint32 hyb_tree_page_number(HybTree *tree, HybArena *arena,
								   BlockNumber block);

/* Open a place in an array of a node. */
#define HYB_OPEN_PLACE(array, i, n) \
	memmove(&(array)[(i) + 1], &(array)[i], ((n) - (i)) * sizeof((array)[0]))

/* ---- searching ---- */

/* A position to search for, with its heads in the node at hand. */
typedef struct HybTreeTarget
{
	const HybTreeUse *use;
	const HybPos *pos;
	bool		above;			/* look for entries above pos, not at it */
	uint32		skip;
	uint64		low;
	uint64		high;
} HybTreeTarget;

extern void hyb_tree_target(HybTreeTarget *target, const HybTreeUse *use,
							const HybPos *pos, bool above);

/* Go on to a node that skips so many bytes. */
static inline void
hyb_tree_target_enter(HybTreeTarget *target, uint32 skip)
{
	Assert(skip == 0 || target->pos->len >= skip);
	if (skip == target->skip)
		return;
	target->skip = skip;
	hyb_tree_key_head(target->use->desc, target->pos->key, target->pos->len,
					  skip, &target->low, &target->high);
}

/* Nodes, and indexes in them, from the root (level height - 1) down to a leaf. */
typedef struct HybTreePath
{
	HybRef		node[HYB_TREE_MAX_HEIGHT];
	int			index[HYB_TREE_MAX_HEIGHT];
} HybTreePath;

/*
 * Descend to the leaf that holds the first entry beyond the target, or would;
 * its index there may be the leaf's count.
 */
extern HybTreeLeaf *hyb_tree_descend(HybTreeTarget *target, HybTreePath *path);

/*
 * The fences of the path's node of a level: separators of nodes above it, or 0
 * at the edges of the tree.
 */
extern void hyb_tree_fences(const HybTreeUse *use, const HybTreePath *path,
							int level, HybRef *low, HybRef *high);

/* Does skipping bytes help, and is it possible? */
static inline bool
hyb_tree_skips_bytes(const HybKeyDesc *desc)
{
	return desc->all_mem &&
		(desc->nkeys > 1 || desc->cols[0].store != HYB_STORE_INT);
}

/* ---- leaves (tree_leaf.c) ---- */

static inline bool
hyb_tree_leaf_in_log(const HybTreeLeaf *leaf, int i)
{
	return leaf->compact && hyb_bit(hyb_compact_leaf(leaf)->in_log, i);
}

/* The copy of an entry that is in memory. */
static inline HybRef
hyb_tree_leaf_copy(const HybTreeLeaf *leaf, int i)
{
	Assert(i >= 0 && i < leaf->count && !hyb_tree_leaf_in_log(leaf, i));
	return leaf->compact ? hyb_compact_leaf(leaf)->ref[i] :
		hyb_plain_leaf(leaf)->entry[i];
}

static inline int
hyb_tree_leaf_fanout(const HybTreeLeaf *leaf)
{
	return leaf->compact ? HYB_COMPACT_FANOUT : HYB_LEAF_FANOUT;
}

/*
 * Entry i of a leaf; its bytes stay until the log is asked again.  Of its flags
 * it has HYB_ENTRY_*.  False if the log is stale.
 */
extern bool hyb_tree_leaf_entry(const HybTreeUse *use, const HybTreeLeaf *leaf,
								int i, HybEntry *entry);

#ifdef USE_ASSERT_CHECKING
/* A leaf that has been changed: its counts, links, and the order of its heads. */
extern void hyb_tree_leaf_assert_valid(const HybTreeLeaf *leaf);
extern void hyb_tree_inner_assert_valid(const HybTreeInner *inner);
#else
#define hyb_tree_leaf_assert_valid(leaf) ((void) (leaf))
#define hyb_tree_inner_assert_valid(inner) ((void) (inner))
#endif

/* First entry of the leaf that is beyond the target; its count if none is. */
extern int	hyb_tree_leaf_search(const HybTreeTarget *target, const HybTreeLeaf *leaf);

/* Order of entry i and a position, as hyb_pos_compare_key gives it. */
extern int	hyb_tree_leaf_compare(const HybTreeUse *use, const HybTreeLeaf *leaf,
								  int i, const HybPos *pos);

/* Where an entry is that goes into a leaf. */
typedef struct HybTreeItem
{
	uint32		ref;			/* HybRef of a copy, or HybLogRef */
	bool		in_log;			/* goes to compact leaves only */
} HybTreeItem;

/* Put an entry at index i of a leaf that is not full. */
extern void hyb_tree_leaf_put(HybTreeLeaf *leaf, int i, uint64 head,
							  HybTreeItem item);

/* Make a plain leaf between these fences (0: none) compact. */
extern void hyb_tree_leaf_make_compact(const HybTreeUse *use, HybTreeLeaf *leaf,
									   HybRef low, HybRef high);

/*
 * Make a compact leaf plain, with copies of its entries, which must be few
 * enough and take about `size` bytes each.  Unless they are too large, there is
 * no memory, or the log is stale.
 */
extern void hyb_tree_leaf_make_plain(const HybTreeUse *use, HybTreeLeaf *leaf,
									 uint32 size);

/*
 * Halve a full leaf, the path's, to put an entry at the path's index.  First
 * what that takes is made out, then it is done.
 */
typedef struct HybTreeSplit
{
	int			keep;			/* entries that stay on the left */
	bool		to_left;		/* the new one goes there */
	uint16		sep_len;		/* of the separator */
	ItemPointerData sep_tid;
	uint8		sep[HYB_MAX_ENTRY_SIZE];
	uint32		skip[2];		/* of the two */
	uint8		shift[2];
	bool		rehead[2];		/* heads of a compact one are computed anew */
	uint16		head[HYB_COMPACT_FANOUT];	/* to these */
	uint64		new_head;		/* of the entry to come, where it goes */
} HybTreeSplit;

/* False if the log is stale. */
extern bool hyb_tree_leaf_split_plan(const HybTreeUse *use, const HybTreePath *path,
									 const HybEntry *entry, HybTreeSplit *split);

/*
 * Returns the leaf that has become the right neighbour; *sep separates them.
 */
extern HybRef hyb_tree_leaf_split(const HybTreeUse *use,
								  const HybTreePath *path,
								  const HybTreeSplit *split,
								  HybTreeItem item, HybRef *sep);

#endif							/* HYB_TREE_INTERNAL_H */
