/*
 * tree_node.h
 *		Entries and nodes of the B+tree; nodes are for the files that implement
 *		it.
 *
 * Leaves hold references to entries, inner nodes references to what separates
 * their children; both hold heads of the keys beside them.  A head is eight
 * bytes of the key as a big-endian integer; it never contradicts the order of
 * keys but may be equal for different ones (Graefe, "Modern B-Tree
 * Techniques", section 3.6: poor man's normalized keys).
 *
 * The heads of a node begin after `skip` bytes.  These are what the keys of
 * its two fences have in common, and so all keys between them: a search that
 * has come to the node need not look at them.  Fences are separators of the
 * nodes above; those at the edges of the tree lack one, and skip nothing.  So
 * do all where keys are not ordered by their bytes, or where one head holds
 * all of the key.  Where nothing is skipped the head begins after the first
 * column's flag byte, and is 0 if the column is not ordered by its bytes.
 *
 * A leaf is plain or compact (docs/memory.md).  A compact one keeps 16 bits
 * of the head, those behind `shift` bits that the heads of its fences have in
 * common, and its entries may lie in the log only.
 */
#ifndef HYB_TREE_NODE_H
#define HYB_TREE_NODE_H

#include "algo/bits.h"
#include "memtree/memtree.h"

#define HYB_NODE_SIZE		512
#define HYB_LEAF_FANOUT		41
#define HYB_COMPACT_FANOUT	79
#define HYB_INNER_FANOUT	31
#define HYB_TREE_MAX_HEIGHT	16

#define HYB_ENTRY_LEN_MASK	0x0FFF

/*
 * An entry's copy, or a separator, which has no place in the log and maybe not
 * all of a key.  Aligned to 4 bytes.
 */
typedef struct HybTreeEntry
{
	ItemPointerData tid;
	uint16		offset;			/* where the entry lies in the log */
	BlockNumber block;
	uint16		len_flags;
	uint16		keylen;
	uint8		bytes[FLEXIBLE_ARRAY_MEMBER];
} HybTreeEntry;

#define hyb_entry_len(entry) ((entry)->len_flags & HYB_ENTRY_LEN_MASK)

static inline uint32
hyb_entry_size(uint32 len)
{
	return TYPEALIGN(4, offsetof(HybTreeEntry, bytes) + len);
}

/* An entry that only the log has: its page's number in the tree's list. */
typedef uint32 HybLogRef;

#define HYB_LOG_OFFSET_BITS	13	/* of BLCKSZ */
#define HYB_LOG_MAX_PAGES	((uint32) 1 << (32 - HYB_LOG_OFFSET_BITS))
#define hyb_log_ref(page, offset) ((page) << HYB_LOG_OFFSET_BITS | (offset))
#define hyb_log_ref_page(ref) ((ref) >> HYB_LOG_OFFSET_BITS)
#define hyb_log_ref_offset(ref) ((ref) & (((uint32) 1 << HYB_LOG_OFFSET_BITS) - 1))

StaticAssertDecl(BLCKSZ <= 1 << HYB_LOG_OFFSET_BITS,
				 "a reference to the log must name any place on a page");

/* What all leaves begin with. */
typedef struct HybTreeLeaf
{
	uint8		count;
	bool		compact:1;		/* it is a HybCompactLeaf */
	bool		dead:1;			/* all entries are flagged dead or killed; a
								 * hint, set under a shared lock too */
	uint16		skip;			/* bytes of the keys before their heads */
	HybRef		next;
	HybRef		prev;
} HybTreeLeaf;

typedef struct HybPlainLeaf
{
	HybTreeLeaf leaf;
	uint64		head[HYB_LEAF_FANOUT];
	HybRef		entry[HYB_LEAF_FANOUT];
} HybPlainLeaf;

#define HYB_COMPACT_BITMAP	((HYB_COMPACT_FANOUT + 7) / 8)

typedef struct HybCompactLeaf
{
	HybTreeLeaf leaf;
	uint8		shift;			/* bits of the heads before those kept */
	uint8		in_log[HYB_COMPACT_BITMAP]; /* is ref[i] a HybLogRef? */
	uint8		killed[HYB_COMPACT_BITMAP]; /* of those: a hint */
	uint32		ref[HYB_COMPACT_FANOUT];	/* else a HybRef */
	uint16		head[HYB_COMPACT_FANOUT];
} HybCompactLeaf;

/* Child i holds entries e with sep[i] <= e < sep[i + 1]; sep[0] is unused. */
typedef struct HybTreeInner
{
	uint16		count;
	uint16		skip;
	uint64		head[HYB_INNER_FANOUT];
	HybRef		sep[HYB_INNER_FANOUT];
	HybRef		child[HYB_INNER_FANOUT];
} HybTreeInner;

#define HYB_PAGES_FANOUT	(HYB_NODE_SIZE / sizeof(HybTreeLogPage))
#define HYB_PAGES_HEIGHT	4

StaticAssertDecl(sizeof(HybPlainLeaf) <= HYB_NODE_SIZE, "a leaf is one node");
StaticAssertDecl(sizeof(HybCompactLeaf) <= HYB_NODE_SIZE, "a compact leaf is one node");
StaticAssertDecl(sizeof(HybTreeInner) <= HYB_NODE_SIZE, "an inner node is one node");
StaticAssertDecl(HYB_PAGES_FANOUT * HYB_PAGES_FANOUT * HYB_PAGES_FANOUT *
				 HYB_PAGES_FANOUT >= HYB_LOG_MAX_PAGES,
				 "the list must hold all pages that references can name");

#define hyb_plain_leaf(leaf) ((HybPlainLeaf *) (leaf))
#define hyb_compact_leaf(leaf) ((HybCompactLeaf *) (leaf))

static inline bool
hyb_bit(const uint8 *bitmap, int i)
{
	return (bitmap[i >> 3] & (1 << (i & 7))) != 0;
}

static inline void
hyb_set_bit(uint8 *bitmap, int i, bool value)
{
	if (value)
		bitmap[i >> 3] |= 1 << (i & 7);
	else
		bitmap[i >> 3] &= ~(1 << (i & 7));
}

static inline HybTreeLeaf *
hyb_tree_leaf_at(const HybArena *arena, HybRef ref)
{
	return hyb_ref_ptr(arena, ref);
}

static inline HybTreeInner *
hyb_tree_inner_at(const HybArena *arena, HybRef ref)
{
	return hyb_ref_ptr(arena, ref);
}

static inline HybTreeEntry *
hyb_tree_entry_at(const HybArena *arena, HybRef ref)
{
	return hyb_ref_ptr(arena, ref);
}

/*
 * Heads, after `skip` bytes, of entries that start with this key lie in
 * [*low, *high]; for a whole key, *low is its head.
 */
extern void hyb_tree_key_head(const HybKeyDesc *desc, const uint8 *key,
							  uint32 len, uint32 skip,
							  uint64 *low, uint64 *high);

static inline uint64
hyb_tree_bytes_head(const HybKeyDesc *desc, const uint8 *key, uint32 len,
					uint32 skip)
{
	uint64		low;
	uint64		high;

	hyb_tree_key_head(desc, key, len, skip, &low, &high);
	return low;
}

static inline uint64
hyb_tree_entry_head(const HybArena *arena, const HybKeyDesc *desc, HybRef ref,
					uint32 skip)
{
	const HybTreeEntry *entry = hyb_tree_entry_at(arena, ref);

	return hyb_tree_bytes_head(desc, entry->bytes, entry->keylen, skip);
}

/*
 * The first of the ascending heads [from, n) that is not below `low`, or n.
 * Each step takes its half by arithmetic: a branch would be mispredicted half
 * of the times.
 */
#define HYB_FIRST_HEAD(name, type) \
static inline int \
name(const type *heads, int from, int n, type low) \
{ \
	const type *base = heads + from; \
	int			left = n - from; \
	while (left > 1) \
	{ \
		int			half = left / 2; \
		base += -(base[half - 1] < low) & half; \
		left -= half; \
	} \
	return (int) (base - heads) + (left == 1 && *base < low); \
}

HYB_FIRST_HEAD(hyb_first_head, uint64)
HYB_FIRST_HEAD(hyb_first_short_head, uint16)

/*
 * Have the heads of an inner node or a plain leaf fetched into the cache, all
 * lines at once: what hyb_first_head reads next depends on what it has read.
 */
HYB_ALWAYS_INLINE void
hyb_tree_prefetch_heads(const void *heads)
{
	for (int at = 0; at < HYB_LEAF_FANOUT * sizeof(uint64); at += 64)
		HYB_PREFETCH((const char *) heads + at);
}

/* The part of a head that a compact leaf keeps. */
static inline uint16
hyb_short_head(uint64 head, int shift)
{
	return (uint16) ((head << shift) >> 48);
}

/* ---- memory (tree_node.c) ---- */

/* HybChunk.kind */
#define HYB_CHUNK_NODES		1
#define HYB_CHUNK_ENTRIES	2

/*
 * Are there chunks for an entry of this size (0: none) and for `nodes` nodes?
 * A chunk has room for more nodes than one insertion makes.
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

/* Go on to a node that skips `skip` bytes. */
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

/* ---- the filter (bloom.c) ---- */

StaticAssertDecl(HYB_BLOOM_MAX_CHUNKS * sizeof(uint32) <= HYB_CHUNK_SPACE,
				 "the numbers of a Bloom filter's chunks must fit a chunk");

#ifdef USE_ASSERT_CHECKING
extern void hyb_bloom_assert_valid(const HybBloom *bloom);
#else
#define hyb_bloom_assert_valid(bloom) ((void) (bloom))
#endif

/* Chunks of a filter of n chunks, with the one of their numbers. */
#define hyb_bloom_cost(n) ((n) > 1 ? (n) + 1 : (n))

extern void hyb_bloom_free(HybBloom *bloom, HybArena *arena);
extern void hyb_bloom_add(const HybBloom *bloom, const HybArena *arena,
						  uint64 hash);

#endif							/* HYB_TREE_NODE_H */
