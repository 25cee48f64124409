/*
 * tree.h
 *		B+tree over the entries of one generation, in an arena.
 *
 * Entries are never removed one by one: a dead one is flagged, and all go with
 * the tree.  Nodes are 512 bytes and keep eight bytes of each key, those after
 * what all keys of the node have in common, so that most of a search touches
 * nodes only.
 *
 * Readers hold the owner's lock shared, writers exclusively.  Comparison
 * functions may throw; a function here calls them before it changes anything.
 */
#ifndef HYB_TREE_H
#define HYB_TREE_H

#include "dynamic/bloom.h"
#include "dynamic/entry.h"
#include "dynamic/tree_node.h"

/* All zero: an empty tree. */
typedef struct HybTree
{
	uint64		generation;		/* 0: there is no tree */
	uint64		nentries;		/* dead ones included */
	HybRef		root;			/* 0: empty */
	uint32		height;			/* levels */
	uint32		chunks;			/* chain of all but the filter's */
	uint32		node_chunk;		/* the ones being filled */
	uint32		entry_chunk;
	uint32		nchunks;		/* all, the filter's included */
	HybBloom	bloom;
} HybTree;

/*
 * Insert an entry, with its place in the log.  Takes chunks from the arena's
 * pocket, HYB_TREE_RESERVE at most.  Returns false, having done nothing, if it
 * needs more than are there.
 */
#define HYB_TREE_RESERVE	2

extern bool hyb_tree_insert(HybTree *tree, HybArena *arena,
							const HybKeyDesc *desc, const HybEntry *entry);

/* Chunks that should be reserved for a larger filter; 0 if it is all right. */
extern uint32 hyb_tree_bloom_wanted(const HybTree *tree);

/*
 * Build that filter anew, if the chunks are in the pocket.  Only for indexes
 * whose keys have hashes (HybKeyDesc.exact): no other tree has a filter.
 */
extern void hyb_tree_bloom_grow(HybTree *tree, HybArena *arena);

/* Can the key with this hash be in the tree? */
static inline bool
hyb_tree_maybe(const HybTree *tree, const HybArena *arena, uint64 hash)
{
	if (tree->nentries == 0)
		return false;
	return tree->bloom.nchunks == 0 ||
		hyb_bloom_maybe(&tree->bloom, arena, hash);
}

/* Give everything to the pocket; the tree is empty and of no generation. */
extern void hyb_tree_free(HybTree *tree, HybArena *arena);

/* Flag the live entries with this entry's key and TID; returns how many. */
extern int	hyb_tree_flag(HybTree *tree, HybArena *arena,
						  const HybKeyDesc *desc, const HybEntry *entry,
						  uint16 flag);

/*
 * The live entries strictly between two positions, in either direction.  The
 * caller sets the first three.
 */
typedef struct HybTreeIter
{
	const HybArena *arena;
	const HybKeyDesc *desc;
	bool		backward;
	const HybPos *stop;
	uint64		stop_low;		/* heads in the leaf outside [low, high] need */
	uint64		stop_high;		/* no comparison with stop */
	bool		stop_outside;	/* no entry of the leaf is beyond stop */
	HybTreeLeaf *leaf;			/* NULL: at the end */
	int			index;
} HybTreeIter;

extern void hyb_tree_iter_start(HybTreeIter *iter, const HybTree *tree,
								const HybPos *lo, const HybPos *hi);
extern HybTreeEntry *hyb_tree_iter_next(HybTreeIter *iter);

/* Check all invariants (tree_check.c); NULL, or what is wrong. */
extern const char *hyb_tree_verify(const HybTree *tree, const HybArena *arena,
								   const HybKeyDesc *desc);

#endif							/* HYB_TREE_H */
