/*
 * check.h
 *		State of hybrid_index_check, shared by its parts.
 */
#ifndef HYB_CHECK_H
#define HYB_CHECK_H

#include "base/row_reader.h"
#include "filter/filter.h"
#include "leaf/leaf.h"
#include "lib/bloomfilter.h"
#include "log/delta.h"
#include "log/log.h"
#include "run/run.h"
#include "store/survey.h"
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

/* A page, as what points to it has it. */
typedef struct HybCheckPage
{
	BlockNumber block;
	BlockNumber from;			/* the page that points to it */
	uint64		stamp;
	int			level;
	const HybPos *low;			/* fences of a node or leaf */
	const HybPos *high;
	const HybChild *children;	/* of a node, once it was read */
	int			n;
} HybCheckPage;

typedef struct HybCheck
{
	HybIndex   *ix;
	Relation	heap;
	bool		locked;			/* the merge lock is held */
	HybSurvey	survey;
	HybVersion *version;		/* of the survey, later of the unit at hand */
	uint8	   *use;			/* HybBlockUse of each block of the survey */

	/* comparison with the table (check_table.c) */
	bloom_filter *filter;		/* of all live entries, or NULL: not wanted */
	FmgrInfo   *hashes;			/* of hybrid_hot, by key column: of values
								 * that have several forms; fn_oid is
								 * InvalidOid if they are not hashed */
	HybBuf		above;			/* a key above all that begin with a prefix */
	Tuplesortstate *leads;		/* TIDs of all live entries, with hashes */
	Snapshot	snapshot;		/* older than the first look at the index */
	HybRowReader rows;			/* of single entries */

	/* static stage (check_static.c) */
	int			level;			/* at hand */
	HybPos		at;				/* where the next unit begins */
	HybBuf		at_key;			/* its key */
	bool		changed;		/* a tree is not that of the survey any more */
	HybLevel	found[HYB_MAX_LEVELS];	/* pages that the survey's nodes have */
	uint64		tids;			/* of the leaves of the level */
	uint64		tombstones;
	double		filled;			/* sum of hyb_leaf_fill over all leaves */
	HybLeaf		leaf;
	ItemPointerData *leaf_tids;
	HybBuf		entry;			/* of the row at hand */
	HybBuf		last_key;		/* of the entry before it */
	ItemPointerData last_tid;
	HybBuf		row_key;		/* of a row of the table */
	bool		have_last;

	/* filters (check_filter.c) */
	const HybChild *filter_child;	/* leaf at hand */
	bool		filter_open;	/* it has a filter: */
	const HybFilterImage *filter_image;
	Size		filter_size;	/* of what follows it */
	char	   *filter_copy;	/* its page */
	BlockNumber filter_copy_block;

	/* delta log and its trees (check_log.c) */
	HybLogEntry *log;			/* sorted by (block, offset) */
	Size		nlog;
	Size		log_alloc;

	/* entries of runs newer than the oldest level (check_log.c) */
	HybRuns		fresh;
	HybPos		fresh_at;		/* of the last one that was consumed */
	HybBuf		fresh_key;		/* its key */

	MemoryContext context;		/* of all of the above */
	MemoryContext unit_context; /* reset for each unit */
	MemoryContext page_context; /* reset now and then */
} HybCheck;

/* The two numbers of a TID, which may be damaged, for messages. */
#define HYB_TID_PARTS(tid) \
	ItemPointerGetBlockNumberNoCheck(tid), ItemPointerGetOffsetNumberNoCheck(tid)

/* ---- check_report.c ---- */

/*
 * The merge lock, held for the survey and for each unit of work: between two
 * units the index may change.  _lock captures the current version, too.  In
 * recovery there is no lock, and only replay merges.
 */
extern void hyb_check_lock(HybCheck *check);
extern void hyb_check_unlock(HybCheck *check);

/* Report damage. */
HYB_NORETURN extern void hyb_check_fail(HybCheck *check, BlockNumber blkno,
										const char *format,...) pg_attribute_printf(3, 4);

/* `from` points to `block`, which is used in the given way. */
extern void hyb_check_claim(HybCheck *check, BlockNumber block,
							HybBlockUse use, BlockNumber from);

/* Copy a page of this kind. */
extern void hyb_check_copy(HybCheck *check, const HybCheckPage *to,
						   HybPageKind kind, char *copy);

/*
 * Within a unit: open the leaf of a level, copied, that a position belongs to.
 * Returns false if the level is empty.
 */
extern bool hyb_check_open_leaf(HybCheck *check, int level, const HybPos *pos,
								char *copy);

/* Whole columns, consumed exactly?  Returns the key columns' length. */
extern uint32 hyb_check_entry(HybCheck *check, BlockNumber blkno,
							  int position, const uint8 *entry, uint32 len,
							  const ItemPointerData *tid);

/* Is this position well formed? */
extern void hyb_check_position(HybCheck *check, BlockNumber blkno,
							   int position, const HybPos *pos);

/*
 * Does a heap line pointer stand for nothing any more, or for a row whose
 * insertion was aborted?  True also for tables of other access methods, whose
 * pages are theirs to read.
 */
extern bool hyb_check_heap_dead(HybCheck *check, ItemPointer tid);

/* ---- check_table.c ---- */

/*
 * Begin before the first live entry is noted.  After the last one compare table
 * and index, with a snapshot taken before the index was looked at.  No locks are
 * held; index expressions run as the current user.
 */
extern void hyb_check_heap_begin(HybCheck *check, double entries);

/* Of an entry, for hyb_check_live; 0 if the table is not checked. */
extern uint64 hyb_check_hash(const HybCheck *check, const uint8 *entry,
							 uint32 len);
extern void hyb_check_live(HybCheck *check, uint64 hash,
						   const ItemPointerData *tid);
extern void hyb_check_heap(HybCheck *check, Snapshot snapshot);

/* The key of the row that a TID leads to; false if the snapshot sees none. */
extern bool hyb_check_row_key(HybCheck *check, ItemPointerData tid,
							  Snapshot snapshot, HybBuf *key);

/* Hot copies name what the static levels hold.  Locks a unit at a time. */
extern void hyb_check_hot(HybCheck *check);

/* ---- check_filter.c ---- */

/*
 * The filter pages that the children of a level-1 node point to are claimed with
 * the lock of the survey.  Those whose first leaf is among children[from, to) are
 * checked with that unit.
 */
extern void hyb_check_filter_claim(HybCheck *check, const HybCheckPage *node);
extern void hyb_check_filter_pages(HybCheck *check, const HybCheckPage *node,
								   int from, int to);

/* Fetch the filter of a leaf, for the next three. */
extern void hyb_check_filter_open(HybCheck *check, const HybChild *child);

/* Is it about whole keys just if the opened leaf keeps them? */
extern void hyb_check_filter_leaf(HybCheck *check);

/* It does not deny a key of the leaf. */
extern void hyb_check_filter_key(HybCheck *check, const uint8 *key,
								 uint32 keylen, int position);

/* The membership filter does not deny the key of a live entry, if `tid` has one. */
extern void hyb_check_membership(HybCheck *check, BlockNumber block, const uint8 *key,
								 uint32 keylen, const ItemPointerData *tid);

/* Items [first, last) of a row of prefixes. */
extern void hyb_check_filter_items(HybCheck *check, int row, int first, int last);

/* ---- check_log.c ---- */

/*
 * The chains of the log and the entries of their pages, with the lock of the survey;
 * then, without, the structure of the trees.
 */
extern void hyb_check_chains(HybCheck *check);
extern void hyb_check_log(HybCheck *check);

/*
 * The next entry of the runs above the oldest level, in (key, TID) order, not
 * consumed; NULL at the end.
 */
extern const HybFetchedItem *hyb_check_fresh_peek(HybCheck *check);

/* Consume it: its order, and where it comes from. */
extern void hyb_check_fresh_next(HybCheck *check);

/* It is not among the leaf's items [first, last), which have its key. */
extern void hyb_check_not_fresh(HybCheck *check, BlockNumber blkno,
								const HybFetchedItem *item, int first, int last);

/*
 * When the leaves are done: what the trees have not returned is dead by now,
 * or in the static stage.  Locks a page at a time.
 */
extern void hyb_check_log_done(HybCheck *check);

/* ---- check_static.c ---- */

/* Internal nodes, with the lock of the survey. */
extern void hyb_check_nodes(HybCheck *check);

/* Leaves, and the entries of newer runs beside them; locks a unit at a time. */
extern void hyb_check_leaves(HybCheck *check);

#endif							/* HYB_CHECK_H */
