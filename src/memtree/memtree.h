/*
 * memtree.h
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
#ifndef HYB_MEMTREE_H
#define HYB_MEMTREE_H

#include "key/position.h"
#include "memtree/arena.h"
#include "storage/block.h"
#include "storage/itemptr.h"

/* An entry of the log, as functions hand it to each other. */
typedef struct HybEntry
{
	const uint8 *bytes;			/* key columns, then INCLUDE columns */
	uint32		len;			/* of all */
	uint32		keylen;			/* of the key columns */
	ItemPointerData tid;		/* heap TID */

	/* where it lies in the log; for entries that lie there */
	BlockNumber block;
	uint16		offset;			/* on that page */
	uint16		next;			/* where the next entry begins */
	uint16		flags;			/* HYB_DELTA_DEAD, or HYB_ENTRY_* */
} HybEntry;

/* Index order of two entries. */
static inline int
hyb_entry_compare(const HybKeyDesc *desc, const HybEntry *a, const HybEntry *b)
{
	return hyb_key_tid_compare(desc, a->bytes, a->keylen, &a->tid,
							   b->bytes, b->keylen, &b->tid);
}

/* Flags of entries of a tree. */
#define HYB_ENTRY_DEAD		0x8000
#define HYB_ENTRY_KILLED	0x4000	/* a hint; set under a shared lock too */

/* 64-byte blocks of one chunk, and keys it has room for at 10 bits each. */
#define HYB_BLOOM_BLOCKS	(HYB_CHUNK_SPACE / 64)
#define HYB_BLOOM_KEYS		((uint64) HYB_BLOOM_BLOCKS * 512 / 10)

/* A filter of several chunks has their numbers in one more. */
#define HYB_BLOOM_MAX_CHUNKS	1024
#define HYB_BLOOM_BITS		6

/* All zero: there is no filter. */
typedef struct HybBloom
{
	uint32		nchunks;		/* without the one of numbers */
	uint32		chunk;			/* the one chunk, or that of numbers */
} HybBloom;

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
 * The list of the log's pages: a radix tree, whose leaves have these, its inner
 * nodes references to nodes.
 */
typedef struct HybTreeLogPage
{
	BlockNumber block;
	int32		buffer;			/* where it was the last time; a hint, which
								 * is set under a shared lock too; 0: unknown */
} HybTreeLogPage;

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

/*
 * MEMORY: the arena's pocket, from which chunks are taken, lacks some: not
 * more than HYB_TREE_RESERVE.  The entry was not inserted, but a full leaf may have
 * become compact.
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

/*
 * Chunks that should be reserved for a larger filter.  0 if the filter is all
 * right, or has to be, since entries are in the log only.
 */
extern uint32 hyb_tree_bloom_wanted(const HybTree *tree);

/*
 * Enlarge the filter, if the chunks are in the pocket.  Only for indexes whose
 * keys have hashes (HybKeyDesc.exact): no other tree has a filter.
 */
extern void hyb_tree_bloom_grow(HybTree *tree, HybArena *arena);

/* Can the key with this hash be in the tree? */
extern bool hyb_tree_maybe(const HybTree *tree, const HybArena *arena,
						   uint64 hash);

/* Give everything to the pocket; the tree is empty and of no generation. */
extern void hyb_tree_free(HybTree *tree, HybArena *arena);

/*
 * Flag the live entries with this entry's key and TID; returns how many.  For
 * an entry that only the log has, the log has the dead flag already.
 */
extern int	hyb_tree_flag(const HybTreeUse *use, const HybEntry *entry,
						  uint16 flag);

/*
 * The live entries strictly between two positions, in either direction.  The
 * caller sets the first three.
 */
typedef struct HybTreeIter
{
	HybTreeUse	use;
	bool		backward;
	bool		leave_killed;	/* pass over entries with the hint, too */
	const HybPos *stop;
	bool		within;			/* no entry of the leaf is beyond the stop;
								 * else each is compared with it */
	struct HybTreeLeaf *leaf;	/* NULL: at the end */
	int			index;
	int			passed;			/* entries of the leaf passed over, one after
								 * the other */
	HybEntry	entry;			/* the one at hand; flags: HYB_ENTRY_* */
} HybTreeIter;

extern void hyb_tree_iter_start(HybTreeIter *iter, const HybPos *lo,
								const HybPos *hi);

/*
 * The next one, or NULL: &iter->entry, whose bytes stay until the next call, or
 * iter->use.log is used otherwise.
 */
extern const HybEntry *hyb_tree_iter_next(HybTreeIter *iter);

/*
 * Are entries in order, and does a search find each of them?  NULL, or what is
 * wrong; NULL if the log is stale.
 */
extern const char *hyb_tree_verify(const HybTreeUse *use);

#endif							/* HYB_MEMTREE_H */
