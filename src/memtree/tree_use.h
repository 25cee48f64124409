/*
 * tree_use.h
 *		A B+tree, and what is needed to work on it.
 */
#ifndef HYB_TREE_USE_H
#define HYB_TREE_USE_H

#include "memtree/bloom.h"
#include "memtree/entry.h"
#include "memtree/tree_node.h"

/* All zero: an empty tree. */
typedef struct HybTree
{
	uint64		generation;		/* 0: there is no tree */
	uint64		nentries;		/* dead ones included */
	uint64		nlog;			/* of these, ones that only the log has */
	HybRef		root;			/* 0: empty */
	uint32		height;			/* levels */
	uint32		nodes;			/* chain of chunks; the first one is filled */
	uint32		oldest;			/* chain of chunks of entries' copies, in the
								 * order of the log */
	uint32		newest;			/* the last of them, which is filled */
	uint32		nchunks;		/* all, the filter's included */
	HybRef		separators;		/* free room of a node that is cut into them */
	uint32		separators_left;	/* its bytes */
	HybRef		pages;			/* list of the log's pages (tree_node.h) */
	uint32		npages;
	HybBloom	bloom;
} HybTree;

#ifdef USE_ASSERT_CHECKING
extern void hyb_tree_assert_valid(const HybTree *tree);
#else
#define hyb_tree_assert_valid(tree) ((void) (tree))
#endif

/* Can trees of this index be compact? */
#define hyb_tree_elastic(desc)	((desc)->all_mem)

/*
 * How a tree reaches entries that only the log has.  load() sets *entry, whose
 * bytes stay until the next call.  If the tree's generation is no longer there
 * it sets `stale` and returns false; may raise errors.
 */
typedef struct HybEntryLog
{
	bool		(*load) (struct HybEntryLog *log, HybTreeLogPage *page,
						 uint16 offset, HybEntry *entry);
	bool		stale;
} HybEntryLog;

/*
 * A tree, and what is needed to work on it.  If log->stale is set after a call
 * then what the call answered is worth nothing; it has changed nothing.
 */
typedef struct HybTreeUse
{
	HybTree    *tree;
	HybArena   *arena;
	const HybKeyDesc *desc;
	HybEntryLog *log;
} HybTreeUse;

#endif							/* HYB_TREE_USE_H */
