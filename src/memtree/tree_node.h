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

#include "key/position.h"
#include "memtree/arena.h"
#include "storage/itemptr.h"

#define HYB_NODE_SIZE		512
#define HYB_LEAF_FANOUT		41
#define HYB_COMPACT_FANOUT	79
#define HYB_INNER_FANOUT	31
#define HYB_TREE_MAX_HEIGHT	16

#define HYB_ENTRY_LEN_MASK	0x0FFF
#define HYB_ENTRY_DEAD		0x8000
#define HYB_ENTRY_KILLED	0x4000	/* a hint; set under a shared lock too */

/*
 * An entry's copy, or a separator, which has no place in the log and maybe not
 * all of a key.  Aligned to 4 bytes.
 */
typedef struct HybTreeEntry
{
	ItemPointerData tid;
	uint16		offset;			/* where the entry lies in the log */
	BlockNumber block;			/* with HYB_OFFSET_LISTED in offset, its
								 * page's number in the tree's list */
	uint16		len_flags;
	uint16		keylen;
	uint8		bytes[FLEXIBLE_ARRAY_MEMBER];
} HybTreeEntry;

#define HYB_OFFSET_LISTED	0x8000

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
	bool		compact;		/* it is a HybCompactLeaf */
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

/*
 * The list of the log's pages: a radix tree, whose leaves have these, its inner
 * nodes references to nodes.
 */
typedef struct HybTreeLogPage
{
	BlockNumber block;
	int32		buffer;			/* where it was the last time; a hint, which
								 * is set under a shared lock too; 0: unknown */
} HybTreeLogPage;

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
static inline void
hyb_tree_prefetch_heads(const void *heads)
{
	for (int at = 0; at < HYB_LEAF_FANOUT * sizeof(uint64); at += 64)
		hyb_prefetch((const char *) heads + at);
}

/* The part of a head that a compact leaf keeps. */
static inline uint16
hyb_short_head(uint64 head, int shift)
{
	return (uint16) ((head << shift) >> 48);
}

#endif							/* HYB_TREE_NODE_H */
