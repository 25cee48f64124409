/*
 * tree.h
 *		B+tree over the entries of one generation, in an arena.
 *
 * Entries are never removed one by one: a dead one is flagged, and all go with
 * the tree.  Nodes are 512 bytes and keep eight bytes of each key, those after
 * what all keys of the node have in common, so that most of a search touches
 * nodes only.  Where memory is short, leaves become compact and entries are
 * read from the log (docs/memory.md).
 *
 * Readers hold the owner's lock shared, writers exclusively.  Comparison
 * functions and the log may throw; a function here calls them before it changes
 * anything.
 */
#ifndef HYB_TREE_H
#define HYB_TREE_H

#include "memtree/tree_use.h"

/*
 * MEMORY: the arena's pocket, from which chunks are taken, lacks some: not
 * more than HYB_TREE_RESERVE.  Nothing was done.
 */
typedef enum HybTreeResult
{
	HYB_TREE_DONE,
	HYB_TREE_MEMORY,
	HYB_TREE_STALE
} HybTreeResult;

#define HYB_TREE_RESERVE	2

/* Insert an entry, with its place in the log. */
extern HybTreeResult hyb_tree_insert(const HybTreeUse *use,
									 const HybEntry *entry);

/*
 * Take the oldest copies of entries out of memory; their chunk goes to the
 * pocket.  True if that could be done.  Of trees that cannot be compact
 * nothing is taken, nor while a filter is lacking, or memory for what takes the
 * copies' place.
 */
extern bool hyb_tree_compact(const HybTreeUse *use);

/* Chunks that should be reserved for a larger filter; 0 if it is all right. */
extern uint32 hyb_tree_bloom_wanted(const HybTree *tree);

/*
 * Enlarge the filter, if the chunks are in the pocket.  Only for indexes whose
 * keys have hashes (HybKeyDesc.exact): no other tree has a filter.
 */
extern void hyb_tree_bloom_grow(HybTree *tree, HybArena *arena);

/* Can the key with this hash be in the tree? */
static inline bool
hyb_tree_maybe(const HybTree *tree, const HybArena *arena, uint64 hash)
{
	if (tree->nentries == 0)
		return false;
	return tree->bloom.nparts == 0 ||
		hyb_bloom_maybe(&tree->bloom, arena, hash);
}

/* Give everything to the pocket; the tree is empty and of no generation. */
extern void hyb_tree_free(HybTree *tree, HybArena *arena);

/*
 * Flag the live entries with this entry's key and TID; returns how many.  That
 * an entry is dead which only the log has, the log says: whoever flags it has
 * written that there.
 */
extern int	hyb_tree_flag(const HybTreeUse *use, const HybEntry *entry,
						  uint16 flag);

/* Which entries of the leaf are beyond the stop? */
typedef enum HybBeyond
{
	HYB_BEYOND_SOME,			/* to be seen by heads and keys */
	HYB_BEYOND_NONE,
	HYB_BEYOND_ALL
} HybBeyond;

/*
 * The live entries strictly between two positions, in either direction.  The
 * caller sets the first two.
 */
typedef struct HybTreeIter
{
	HybTreeUse	use;
	bool		backward;
	const HybPos *stop;
	uint64		stop_low;		/* heads as the leaf has them: outside [low,
								 * high] they need */
	uint64		stop_high;		/* no comparison with the stop */
	HybBeyond	beyond;
	HybTreeLeaf *leaf;			/* NULL: at the end */
	int			index;
	HybEntry	entry;			/* the one at hand; flags: HYB_ENTRY_* */
} HybTreeIter;

extern void hyb_tree_iter_start(HybTreeIter *iter, const HybPos *lo,
								const HybPos *hi);

/*
 * The next one, or NULL: &iter->entry, whose bytes stay until the next call, or
 * iter->use.log is used otherwise.
 */
extern const HybEntry *hyb_tree_iter_next(HybTreeIter *iter);

/* Check all invariants (tree_check.c); NULL, or what is wrong. */
extern const char *hyb_tree_verify(const HybTreeUse *use);

#endif							/* HYB_TREE_H */
