/*
 * scan.h
 *		State of an index scan; private to this folder.
 *
 * A HybScan has three parts:
 *
 * - HybScanKeys: what is asked (scan/keys/conditions.h).
 * - HybScanMode: how the scan reads (scan/batch.h).
 * - HybScanBatch: what was read (scan/batch.h).
 *
 * Here is the scan as a whole, with the functions that get a HybScan.
 */
#ifndef HYB_SCAN_H
#define HYB_SCAN_H

#include "access/genam.h"
#include "access/relscan.h"
#include "base/row_reader.h"
#include "filter/filter_choice.h"
#include "scan/batch.h"
#include "tree/descend.h"

/* ---- scans ---- */

/* Forming index tuples, scan_tuple.c. */
typedef struct HybScanTuples
{
	MemoryContext context;		/* of the returned tuple; NULL: none is formed */
	Datum	   *values;
	bool	   *isnull;
	uint16	   *offsets;		/* of columns in fixed's data */
	IndexTuple	fixed;			/* NULL unless all columns are integers as
								 * stored */
	IndexTuple	plain;			/* memory for one of any length, or NULL: made
								 * when it is needed */
	int			window_rows;	/* of the next window; 0: there are none */
} HybScanTuples;

/*
 * What a backend has found out about an index: a piece of its cache, zero at first.
 */
typedef struct HybScanHabits
{
	/* the table's pages, scan_ahead.c */
	uint16		calm;			/* pages that were in shared buffers lately,
								 * one after the other, up to CALM_PAGES */
	uint16		look_interval;	/* items between two looks, if calm */
	uint16		look_wait;		/* of them yet to come */
	uint16		last;			/* items that the last scan of more than one
								 * returned; 0: there was none */
	uint16		second_last;	/* and the one before it */

	/* bitmap scans that look for dead rows, index_scan.c */
	uint8		dead_wait;		/* scans to come before one looks */
	uint8		dead_interval;	/* of them between two that look */

	struct HybDeadStretch *stretches;	/* scan_dead.c; NULL: none was met */
	struct HybOwnHints *own_hints;	/* scan_hints.c; NULL: there are none */

	/* predicate locks on keys, scan_lock.c */
	int			key_locks;
	TimestampTz locked_by;		/* the transaction that took them: when it
								 * began */
} HybScanHabits;

extern HybCachePiece hyb_scan_habits_piece;

static inline HybScanHabits *
hyb_scan_habits(const HybIndex *ix)
{
	return hyb_cache_piece(ix, &hyb_scan_habits_piece);
}

/* Counts for EXPLAIN. */
typedef struct HybScanCounts
{
	uint64		hot_hits;		/* hot copies taken in place of leaves */
	uint64		filter_checks;	/* filters asked, */
	uint64		filter_negatives;	/* and leaves not read therefore */
	uint64		stale;			/* entries of hybrid_hot that led to no row */
} HybScanCounts;

struct HybScan;

/*
 * Entries that a look-up holds: the live one of a row, and those of row versions that
 * updates have left since the last merge.
 */
#define HYB_LOOK_UP_ITEMS	6

/* An entry of a look-up, and where it lies. */
typedef struct HybLookUpItem
{
	ItemPointerData tid;
	uint16		nitems;			/* of its leaf; 0: it lies in the log */
	uint16		pd_lower;		/* of its leaf; 0: that has tombstones */
	BlockNumber block;			/* InvalidBlockNumber: it is a hot copy */
	uint16		place;			/* item of the leaf, or offset in the page of
								 * the log */
	uint64		stamp;			/* of the leaf, or the log's generation */
} HybLookUpItem;

/* What way a scan goes. */
typedef enum HybScanWay
{
	HYB_WAY_OPEN,				/* it has not begun */
	HYB_WAY_SHORT,				/* look_up.c has found the TIDs */
	HYB_WAY_GENERAL				/* HybLookUp.scan reads batches */
} HybScanWay;

/* A scan, as the server's scan->opaque has it. */
typedef struct HybLookUp
{
	HybScanWay	way;
	struct HybScan *scan;		/* NULL until one was needed */
	HybScanCounts counts;

	/* HYB_WAY_SHORT */
	int			n;				/* of items, whose TIDs ascend */
	int			next;			/* items before it were returned */
	bool		ended;			/* so was their end */
	HybLookUpItem items[HYB_LOOK_UP_ITEMS];
} HybLookUp;

typedef struct HybScan
{
	IndexScanDesc scan;
	HybIndex   *ix;
	MemoryContext context;		/* of the whole scan */
	bool		started;		/* keys processed, first batch loaded */
	HybScanKeys keys;
	HybScanMode mode;
	HybScanBatch *batch;
	HybScanTuples tuples;

	/* reading */
	HybScanEdge from;			/* where the batch being loaded starts */
	HybDescent	descent;
	Buffer		delta_pin;		/* page of the dynamic item last returned */
	HybBuf		cut_key;		/* scratch: where a limit ends a batch */
	HybBuf		fresh_key[2];	/* scratch: of entries of newer levels */
	HybScanEdge dead_at;		/* scratch: where live entries may begin */
	HybScanEdge dead_end;		/* scratch: the batch's far end */
	HybRowReader rows;			/* of entries without keys (scan_part.c) */
	struct HybScanChains *chains;	/* scan_chains.c; NULL: not needed yet */

	HybScanCounts *counts;
	bool		counted;		/* the first range was, by a look-up */

	/* mark */
	bool		marked;
	bool		mark_in_batch;	/* the mark is in `batch` */
	int			mark_current;
	HybScanBatch *mark_batch;	/* else in here; otherwise a spare */
} HybScan;

/* ---- look_up.c ---- */

/*
 * Find all TIDs of a scan that has not begun, if it can go the short way.  Returns
 * false if it cannot.
 */
extern bool hyb_look_up(IndexScanDesc scan, HybLookUp *look);

/* The row of the item returned last is dead to all: leave a hint. */
extern void hyb_look_up_kill(IndexScanDesc scan, const HybLookUp *look);

#ifdef USE_ASSERT_CHECKING
extern void hyb_look_up_assert_valid(const HybLookUp *look);
#else
#define hyb_look_up_assert_valid(look) ((void) (look))
#endif

/* Whether filters are asked for one key or for a range. */
static inline HybFilterAsker
hyb_scan_asker(const HybScanKeys *keys)
{
	return keys->point ? HYB_ASK_POINT : HYB_ASK_RANGE;
}

/* ---- scan_range.c ---- */

/*
 * Go on to another range, behind the one with this setting of the arrays, which
 * may have been found empty as a whole.  Returns false, with that setting, if there
 * is none.
 */
extern bool hyb_scan_next_range(HybScan *so, bool forward, bool empty,
								const int *elems);

/* ---- scan_part.c ---- */

extern HybScanPart *hyb_part_create(HybIndex *ix);

/* Let go of the leaf and the items. */
extern void hyb_part_finish(HybScanPart *part);

/* Make room for n rows. */
extern void hyb_part_reserve_rows(HybIndex *ix, HybScanPart *part, int n);

/* The part has become HYB_STATIC_ROWS: its items are its n rows. */
extern void hyb_part_set_rows(HybScanPart *part, int n);

/* Set killed-tuple hints on items of the leaf, which need not be pinned any more. */
extern void hyb_part_set_hints(HybScan *so, HybScanPart *part, int *items, int n);

/* The same as hyb_hints_of, if the scan takes hints; otherwise tombstones only. */
extern const uint8 *hyb_part_hints(const HybScan *so, const HybScanPart *part, Page page);

/* Read the TIDs of items [from, to), and which of them are not to be returned. */
extern void hyb_part_read_tids(HybScan *so, HybScanPart *part, Page page, int from, int to);

/* First item from `from` on at or above a cut that lies in the batch. */
extern int	hyb_part_place(HybScan *so, HybScanPart *part, const HybPos *pos,
						   int from);

/* The cut just below an item; its key is copied to keybuf. */
extern void hyb_part_pos(HybScan *so, HybScanPart *part, int item,
						 HybPos *pos, HybBuf *keybuf);

/*
 * Add items [next, to) to the batch, but for dead and filtered ones.  If none of
 * them qualifies a hop may pass over what follows.
 */
extern void hyb_part_add(HybScan *so, HybScanBatch *batch, int level, int to);

/* All columns of a row, as items count it; holds until the next call. */
extern const HybValue *hyb_part_values(HybScan *so, HybScanPart *part,
									   int row);

/*
 * Read the keys that have to be known of a HYB_STATIC_RAW part from the table, and
 * keep what lies in the batch.  The ends of the batch and the entries of other runs
 * are known.  Called in so->context.
 */
extern void hyb_part_resolve(HybScan *so, HybScanBatch *batch, HybScanPart *part);

/* Pages of the table to be ahead at most; 0: none. */
extern int	hyb_ahead_most(const HybScan *so);

/* Nothing of its level is in the part. */
static inline void
hyb_part_empty(HybScanPart *part)
{
	part->mode = HYB_STATIC_NONE;
	part->first = part->last = part->next = 0;
	part->all_dead = false;
}

/* ---- scan_hints.c ---- */

/*
 * Which items of an open leaf are known to be dead: a bit for each, or NULL.  The
 * bits hold until the leaf is unlocked or a comparison function is called.
 */
extern const uint8 *hyb_hints_of(const HybIndex *ix, const HybLeaf *leaf, uint64 stamp,
								 Page page);

/* Keep hints on items of a leaf with tombstones. */
extern void hyb_hints_keep(const HybIndex *ix, BlockNumber block, uint64 stamp, int nitems,
						   const int *items, int n);
extern void hyb_hints_forget(HybScanHabits *habits);

/* ---- scan_dead.c ---- */

/* The same as hyb_part_load, but passes over leaves where it finds dead items only. */
extern bool hyb_part_load_live(HybScan *so, const HybVersion *version, int level,
							   const HybPos *pos, bool forward, HybScanEdge *far);
extern void hyb_forget_stretches(HybScanHabits *habits);

/* ---- scan_leaf.c ---- */

/*
 * Read the items of a level between pos and the far end of the batch or the
 * leaf's fence, whichever comes first, or as many as static_limit allows; `far`
 * becomes that edge.  Returns false if the version is no longer current.
 */
extern bool hyb_part_load(HybScan *so, const HybVersion *version, int level,
						  const HybPos *pos, bool forward, HybScanEdge *far);

/*
 * After that: the keys of the items will be asked for.  Returns false if the leaf
 * is no longer there to be read, so that the version is not current.
 */
extern bool hyb_part_keep(HybScan *so, HybScanPart *part);

/* ---- scan_lock.c ---- */

/* Does a scan that begins take predicate locks? */
extern bool hyb_scan_locks(const HybScan *so);

/*
 * Lock the whole range by its keys, before a batch captures a version.  Returns
 * false if that cannot be done.
 */
extern bool hyb_scan_lock_key(HybScan *so);

/*
 * If not: lock the leaf of the oldest level that the batch from pos on does not go
 * beyond, before the log is read.  Returns false, with nothing locked, if the
 * version is no longer current.
 */
extern bool hyb_scan_lock_leaf(HybScan *so, const HybVersion *version,
							   const HybPos *pos, bool forward);

/* ---- scan_batch.c ---- */

extern HybScanBatch *hyb_batch_create(HybScan *so);

/*
 * Leave a batch: set hints, drop the pins.  Its items are gone then.  All memory
 * stays, for the next one, until the scan's context goes.
 */
extern void hyb_batch_finish(HybScan *so, HybScanBatch *batch);

/*
 * Load so->batch with the entries that come next, in scan direction, after
 * so->from, up to the end of a parallel claim or the range.  The batch may turn out
 * empty though that is not exhausted.  Called in so->context, which the reusable
 * buffers are allocated in.
 */
extern void hyb_batch_load(HybScan *so, bool forward);

/* Was this a whole range that had nothing to return? */
extern bool hyb_batch_is_empty_range(const HybScanBatch *batch);

/* Remember that an item is dead to all. */
static inline void
hyb_batch_kill(HybScanBatch *batch, int item)
{
	Assert(item >= 0 && item < batch->nitems);
	batch->nkilled += !batch->items[item].killed;
	batch->items[item].killed = true;
}

/*
 * Merge entries of all runs until batch->items has as many as wanted, or all.
 * Returns false if there was nothing more.  Called in so->context.
 */
extern bool hyb_batch_merge(HybScan *so, HybScanBatch *batch, int wanted);
extern HybFetchedItem *hyb_batch_log_item(HybScanBatch *batch, const HybScanItem *item);

/* All columns of an item; holds until the next call.  Called in so->context. */
extern const HybValue *hyb_batch_values(HybScan *so, HybScanBatch *batch,
										const HybScanItem *item);

/* ---- scan_tuple.c ---- */

extern void hyb_tuple_init(HybScan *so);

/* Form the tuple of an item of the batch; it lives until the next one is formed. */
extern void hyb_tuple_form(HybScan *so, const HybScanItem *item);

/* ---- scan_chains.c ---- */

/*
 * The scan has come to an entry: is its row to be returned?  Sets the scan's xs_recheck
 * if it is, and kill_prior_tuple if it is not.
 */
extern bool hyb_chains_take(HybScan *so);

/* The scan begins anew, or ends. */
extern void hyb_chains_rescan(HybScan *so);
extern void hyb_chains_end(HybScan *so);

/* ---- scan_ahead.c ---- */

/* A scan is made; begins, before its first batch is loaded; ends, or begins anew. */
extern void hyb_ahead_init(HybScanAhead *ahead);
extern void hyb_ahead_begin(HybScan *so, bool forward);
extern void hyb_ahead_end(HybScan *so);

/* The batch is another one. */
static inline void
hyb_ahead_new_batch(HybScanAhead *ahead)
{
	ahead->next = HYB_AHEAD_NOTHING;
	ahead->waiting = 0;
}

/* Ask for what follows the batch's current item. */
extern void hyb_ahead_look(HybScan *so, bool forward);

/* ---- scan_parallel.c; most is for parallel scans only (mode.share) ---- */

/* A scan begins, parallel or not. */
extern void hyb_parallel_begin(HybScan *so);

typedef enum HybClaim
{
	HYB_CLAIM_FIRST,			/* the whole scan is to begin */
	HYB_CLAIM_NEXT,				/* it goes on at so->from, of the range of the
								 * batch's elems */
	HYB_CLAIM_NONE				/* there is nothing more */
} HybClaim;

/*
 * Claim what comes next.  *cut and *empty say of the batch before what hops and
 * hyb_scan_next_range are to know.  But for HYB_CLAIM_NONE the other processes wait
 * until hyb_parallel_leave or hyb_parallel_done.  So nothing may be pinned that they
 * could wait for.  Unlocked.
 */
extern HybClaim hyb_parallel_claim(HybScan *so, bool *cut, bool *empty);

/*
 * Before the batch at so->from is loaded: let the other processes go on where the
 * leaf there ends.  Batches of this process go up to that.  Returns false if that
 * end is not known: hyb_parallel_leave is to follow.
 */
extern bool hyb_parallel_leave_early(HybScan *so, bool forward);

/*
 * The batch has been loaded, and may be a whole empty range: let the other
 * processes go on where it ends.  Or tell them that there is nothing more.
 */
extern void hyb_parallel_leave(HybScan *so, bool forward, bool empty);
extern void hyb_parallel_done(HybScan *so);

/* The batch will be loaded anew: it is to end where the claim does. */
extern void hyb_parallel_stay(HybScan *so);

/*
 * The end of the claim, if batches may not go on to the end of the range; else
 * NULL.  For scans that are not parallel, too.
 */
extern const HybScanEdge *hyb_parallel_end(const HybScan *so);

/* Does the batch end there? */
extern bool hyb_parallel_is_at_end(const HybScan *so, bool forward);

#endif							/* HYB_SCAN_H */
