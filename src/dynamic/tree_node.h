/*
 * tree_node.h
 *		Entries and nodes of the B+tree; nodes are for the files that implement
 *		it.
 *
 * Leaves hold references to entries, inner nodes references to the entries
 * that separate their children; both hold heads of the keys beside them.  A
 * head is eight bytes of the key as a big-endian integer; it never contradicts
 * the order of keys but may be equal for different ones (Graefe, "Modern
 * B-Tree Techniques", section 3.6: poor man's normalized keys).
 *
 * The heads of a node begin after `skip` bytes.  These are what the keys of
 * its two fences have in common, and so all keys between them: a search that
 * has come to the node need not look at them.  Fences are separators of the
 * nodes above; those at the edges of the tree lack one, and skip nothing.  So
 * do all where keys are not ordered by their bytes, or where one head holds
 * all of the key.  Where nothing is skipped the head begins after the first
 * column's flag byte, and is 0 if the column is not ordered by its bytes.
 */
#ifndef HYB_TREE_NODE_H
#define HYB_TREE_NODE_H

#include "dynamic/arena.h"
#include "key/key.h"
#include "storage/itemptr.h"

#define HYB_NODE_SIZE		512
#define HYB_LEAF_FANOUT		41
#define HYB_INNER_FANOUT	31
#define HYB_TREE_MAX_HEIGHT	16

#define HYB_ENTRY_LEN_MASK	0x0FFF
#define HYB_ENTRY_DEAD		0x8000
#define HYB_ENTRY_KILLED	0x4000	/* a hint; set under a shared lock too */

/* Aligned to 4 bytes. */
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

typedef struct HybTreeLeaf
{
	uint16		count;
	uint16		skip;			/* bytes of the keys before their heads */
	HybRef		next;
	HybRef		prev;
	uint64		head[HYB_LEAF_FANOUT];
	HybRef		entry[HYB_LEAF_FANOUT];
} HybTreeLeaf;

/* Child i holds entries e with sep[i] <= e < sep[i + 1]; sep[0] is unused. */
typedef struct HybTreeInner
{
	uint16		count;
	uint16		skip;
	uint64		head[HYB_INNER_FANOUT];
	HybRef		sep[HYB_INNER_FANOUT];
	HybRef		child[HYB_INNER_FANOUT];
} HybTreeInner;

StaticAssertDecl(sizeof(HybTreeLeaf) <= HYB_NODE_SIZE, "a leaf is one node");
StaticAssertDecl(sizeof(HybTreeInner) <= HYB_NODE_SIZE, "an inner node is one node");

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
hyb_tree_entry_head(const HybArena *arena, const HybKeyDesc *desc, HybRef ref,
					uint32 skip)
{
	const HybTreeEntry *entry = hyb_tree_entry_at(arena, ref);
	uint64		low;
	uint64		high;

	hyb_tree_key_head(desc, entry->bytes, entry->keylen, skip, &low, &high);
	return low;
}

#endif							/* HYB_TREE_NODE_H */
