/*
 * check.h
 *		State of hybrid_index_check, shared by its parts.
 */
#ifndef HYB_CHECK_H
#define HYB_CHECK_H

#include "am/survey.h"
#include "dynamic/delta.h"
#include "dynamic/dynamic.h"
#include "lib/bloomfilter.h"
#include "static/filter.h"
#include "static/leaf.h"
#include "utils/snapshot.h"
#include "utils/tuplesort.h"

/* What a block was found to be; each block is exactly one of these. */
typedef enum HybBlockUse
{
	HYB_USE_NONE = 0,
	HYB_USE_META,
	HYB_USE_FREE,
	HYB_USE_INNER,
	HYB_USE_LEAF,
	HYB_USE_DELTA,
	HYB_USE_DICTIONARY,
	HYB_USE_FILTER
} HybBlockUse;

/* A page of the delta log, as of the survey. */
typedef struct HybLogPage
{
	BlockNumber block;
	uint64		generation;
} HybLogPage;

/*
 * A live entry that the log holds, and that the dynamic stage's tree or, where
 * it was merged, the static stage must know.
 */
typedef struct HybLogEntry
{
	uint64		generation;
	BlockNumber block;
	uint16		offset;
	bool		seen;			/* the tree returned it */
	uint32		hash;			/* of its bytes and TID */
} HybLogEntry;

typedef struct HybCheck
{
	HybIndex   *ix;
	Relation	heap;
	bool		locked;			/* the merge lock is held */
	HybSurvey	survey;
	HybVersion *version;		/* of the survey, later of the unit at hand */
	uint8	   *use;			/* HybBlockUse of each block of the survey */

	/* comparison with the table (check_heap.c) */
	bloom_filter *filter;		/* of all live entries, or NULL: not wanted */
	HybBuf		probe;			/* entry and TID, for the filter */
	Tuplesortstate *leads;		/* TIDs of all live entries, with hashes */

	/* static stage (check_static.c) */
	HybPos		at;				/* where the next unit begins */
	HybBuf		at_key;			/* its key */
	bool		changed;		/* the tree is not that of the survey any more */
	uint64		node_tids;		/* as the survey's nodes have them; 0: they do
								 * not */
	uint64		tids;
	uint64		tombstones;
	uint64		leaves;
	double		filled;			/* sum of hyb_leaf_fill over them */
	uint64		inner_nodes;
	HybLeaf		leaf;
	ItemPointerData *leaf_tids;
	HybBuf		entry;			/* of the row at hand */
	HybBuf		last_key;		/* of the entry before it */
	ItemPointerData last_tid;
	bool		have_last;

	/* filters (check_filter.c) */
	uint64		filters;
	uint64		filter_pages;
	const HybChild *filter_child;	/* leaf at hand */
	bool		filter_open;	/* it has a filter: */
	const HybFilterImage *filter_image;
	Size		filter_size;	/* of what follows it */
	char	   *filter_copy;	/* its page */
	BlockNumber filter_copy_block;

	/* delta log and its trees (check_dynamic.c) */
	HybLogPage *log_pages;
	Size		nlog_pages;
	Size		log_pages_alloc;
	HybLogEntry *log;			/* sorted by (block, offset) */
	Size		nlog;
	Size		log_alloc;
	HybDynBatch batch;			/* entries of the trees, in order */
	uint64		batch_version;	/* that it was fetched with; 0: no batch */
	int			batch_next;
	HybBuf		batch_last;		/* key of the last one that was consumed */
	ItemPointerData batch_last_tid;

	MemoryContext context;		/* of all of the above */
	MemoryContext unit_context; /* reset for each unit */
	MemoryContext page_context; /* reset now and then */
} HybCheck;

/*
 * The merge lock, held for the survey and for each unit of work: between two
 * units the index may change.  _lock captures the current version, too.  In
 * recovery there is no lock, and nothing merges but replay.
 */
extern void hyb_check_lock(HybCheck *check);
extern void hyb_check_unlock(HybCheck *check);

/* Report damage. */
HYB_NORETURN extern void hyb_check_fail(HybCheck *check, BlockNumber blkno,
										const char *format,...) pg_attribute_printf(3, 4);

/* `from` points to `block`, which is used in the given way. */
extern void hyb_check_claim(HybCheck *check, BlockNumber block,
							HybBlockUse use, BlockNumber from);

/* Copy a page that `from` says is of this kind and stamp. */
extern void hyb_check_copy(HybCheck *check, BlockNumber block,
						   HybPageKind kind, uint64 stamp, int level,
						   BlockNumber from, char *copy);

/* Whole columns, consumed exactly?  Returns the key columns' length. */
extern uint32 hyb_check_entry(HybCheck *check, BlockNumber blkno,
							  int position, const uint8 *entry, uint32 len,
							  const ItemPointerData *tid);

/* Is this position well formed? */
extern void hyb_check_position(HybCheck *check, BlockNumber blkno,
							   int position, const HybPos *pos);

/*
 * Does a heap line pointer stand for nothing any more, or for a row whose
 * insertion was aborted?  Of a table that is no heap that cannot be told: then
 * it may.
 */
extern bool hyb_check_heap_dead(HybCheck *check, ItemPointer tid);

/*
 * check_heap.c: begin before the first live entry is noted; after the last one
 * compare table and index, with a snapshot taken before the index was looked
 * at.  No locks are held; index expressions run as the current user.
 */
extern void hyb_check_heap_begin(HybCheck *check, double entries);
extern void hyb_check_live(HybCheck *check, const uint8 *entry, uint32 len,
						   const ItemPointerData *tid);
extern void hyb_check_heap(HybCheck *check, Snapshot snapshot);

/* check_static.c: internal nodes, with the lock of the survey */
extern void hyb_check_nodes(HybCheck *check);

/* Leaves, and the dynamic entries beside them; locks a unit at a time. */
extern void hyb_check_leaves(HybCheck *check);

/* Does the static stage hold this entry?  Within a unit. */
extern bool hyb_check_static_holds(HybCheck *check, BlockNumber blkno,
								   const HybPos *pos);

/*
 * check_filter.c: the filter pages that the children of a level-1 node point
 * to are claimed with the lock of the survey; those whose first leaf is among
 * children[from, to) are checked with that unit.
 */
extern void hyb_check_filter_claim(HybCheck *check, BlockNumber node,
								   const HybChild *children, int n);
extern void hyb_check_filter_pages(HybCheck *check, BlockNumber node,
								   uint64 stamp, const HybChild *children,
								   int n, int from, int to);
extern void hyb_check_filter_open(HybCheck *check, const HybChild *child);
extern void hyb_check_filter_key(HybCheck *check, const uint8 *key,
								 uint32 keylen, int position);

/*
 * check_dynamic.c: the chains of the log, with the lock of the survey; then,
 * without, the entries of their pages and the structure of the trees.
 */
extern void hyb_check_chains(HybCheck *check);
extern void hyb_check_log(HybCheck *check);

/*
 * When the leaves are done: what the trees have not returned is dead by now,
 * or in the static stage.  Locks a page at a time.
 */
extern void hyb_check_log_done(HybCheck *check);

/*
 * The next entry of the dynamic stage in (key, TID) order, not consumed; NULL
 * at the end.  Within a unit.
 */
extern const HybDynItem *hyb_check_dynamic_peek(HybCheck *check);
extern void hyb_check_dynamic_next(HybCheck *check);

#define hyb_check_dynamic_bytes(check, item) \
	((check)->batch.keys.data + (item)->key_off)

#endif							/* HYB_CHECK_H */
