/*
 * log.h
 * What other folders use of the dynamic stage: a durable delta log, and
 * B+trees over it.
 *
 * Appending writes the log only.  The tree catches up with the log before it
 * is read, and page by page while the log grows.  So an append calls no comparison
 * function, and once its WAL record is written it cannot fail.
 *
 * The lock order is in docs/developing.md.
 */
#ifndef HYB_LOG_H
#define HYB_LOG_H

#include "memtree/stage.h"
#include "shared/directory.h"
#include "shared/index_cache.h"

/* Once, when the library is loaded. */
extern void hyb_log_init(void);

/* ---- appending (append.c) ---- */

/*
 * Append one entry, whose place is yet to be found, to the active generation.
 * It has at most HYB_MAX_ENTRY_SIZE bytes.  Returns true if the append filled
 * a page (callers then consider hyb_log_catch_up and merge triggers).  No
 * lock is held on entry but, for unique indexes, the partition lock.
 */
extern bool hyb_delta_append(HybIndex *ix, const HybEntry *entry);

/* Entries of an index, given as the bytes that they have on a page (hyb_delta_image). */
typedef struct HybAppend
{
	HybIndex   *ix;
	const uint8 *image;
	uint32		len;
	uint32		keylen;			/* of a single entry: of its key columns; of
								 * several: 0 */
	bool		appended;		/* hyb_delta_append_together has done it, */
	bool		full;			/* and filled a page */
} HybAppend;

/*
 * The same for several: appends, as one change, as many as go to one page, one at
 * least.  Returns how many bytes that were; sets *full if a page was filled.
 * Raises an error only if nothing was appended.
 */
extern uint32 hyb_delta_append_some(const HybAppend *entries, bool *full);

/* Indexes whose entries are appended together, at most: blocks of a WAL record. */
#define HYB_APPEND_TOGETHER		HYB_WAL_MAX_BUFFERS

/*
 * The same for several indexes of a table, all with WAL: appends, under one WAL
 * record, the entries of those that take all of theirs at once, and sets `appended`
 * and `full` of them.  `appended` is false of the others.  Raises an error only if
 * nothing was appended.  No lock is held on entry but, with one unique index among
 * them, its partition.
 */
extern void hyb_delta_append_together(HybAppend *entries, int n);

/* ---- reading (fetch.c) ---- */

/* Where an entry lies in the log. */
typedef struct HybDeltaRef
{
	uint64		generation;
	BlockNumber block;
	uint16		offset;			/* of the entry within the page */
} HybDeltaRef;

typedef struct HybFetchedItem
{
	ItemPointerData tid;
	bool		killed;			/* a killed-tuple hint is set (never trusted
								 * in recovery) */
	uint32		key_off;		/* entry bytes, in HybFetched.keys */
	uint32		len;			/* whole entry */
	uint32		keylen;			/* key columns' part */
	HybDeltaRef ref;
} HybFetchedItem;

/* Result of a fetch; zero it first, reuse it, free with hyb_fetched_free. */
typedef struct HybFetched
{
	HybFetchedItem *items;
	int			nitems;
	int			items_alloc;
	HybBuf		keys;
	bool		complete;		/* false: the limit cut the range short */
	bool		knows_dead;		/* no entry is among them that VACUUM had
								 * flagged, in the log and in shared trees,
								 * when the fetch began */
} HybFetched;

/* The position of an item, whose key it points to. */
static inline HybPos
hyb_fetched_pos(const HybIndex *ix, const HybFetched *batch,
				const HybFetchedItem *item)
{
	Assert(item->key_off + item->len <= batch->keys.len);
	return hyb_pos_at(ix->desc, batch->keys.data + item->key_off, item->keylen,
					  item->tid);
}

#define HYB_FETCH_FROZEN	0x01
#define HYB_FETCH_ACTIVE	0x02
#define HYB_FETCH_NOT_KILLED	0x04	/* leave out what has a killed hint */

/* What to fetch. */
typedef struct HybFetch
{
	int			which;			/* HYB_FETCH_* */
	const HybPos *lo;			/* entries strictly between the two: with */
	const HybPos *hi;			/* HYB_AT the entry itself is left out */
	bool		backward;		/* from the high end, in descending order */
	int			limit;			/* most items, of those nearest to lo;
								 * backward, to hi */
	uint64		point_hash;		/* if not 0, hyb_key_hash of the one key the
								 * range asks for: Bloom filters are asked */
} HybFetch;

/*
 * Live entries of the dynamic generations, in order; of the frozen one only
 * those above version's watermark.  Catches the trees up first.  Returns false
 * if `version` is no longer current.  All that had been appended when the fetch
 * began is there; flags may be of different moments until it ends.
 */
extern bool hyb_log_fetch(HybIndex *ix, const HybVersion *version,
						  const HybFetch *fetch, HybFetched *batch);
extern void hyb_fetched_free(HybFetched *batch);

/*
 * Where the last item of a batch lies, for the next fetch to go on at; its key
 * is copied to keybuf, so the batch may be reused.
 */
extern void hyb_fetched_last(const HybIndex *ix, const HybFetched *batch,
							 HybPos *pos, HybBuf *keybuf);

/* Put the items of a batch in index order. */
extern void hyb_fetched_sort(const HybKeyDesc *desc, HybFetched *batch, bool backward);

/* Has the item the key and the TID of the one before it? */
extern bool hyb_fetched_repeats(const HybKeyDesc *desc, const HybFetched *batch, int item);

/* One more item, which the caller fills. */
extern HybFetchedItem *hyb_fetched_add(HybFetched *batch);

/*
 * Check the structure of the trees, which are caught up first: NULL, or what
 * is wrong.  Nothing is found if `version` is no longer current.  Inserters
 * can enter nothing meanwhile.
 */
extern const char *hyb_log_verify(HybIndex *ix, const HybVersion *version);

/*
 * Pin the delta page that an entry lies on.  *pin is a pin to give back, which
 * is cheap if it is on the same page, or InvalidBuffer; it becomes the new one
 * if that holds, else InvalidBuffer.  If the entry has moved the caller starts
 * over at its position.  No lock is held on entry; takes and releases the
 * metapage's and then the page's share lock.
 */
extern HybPinResult hyb_delta_pin_entry(HybIndex *ix, const HybDeltaRef *ref,
										const ItemPointerData *tid,
										Buffer *pin);

/* Set killed-tuple hints on an entry of the trees, if that is cheap now. */
extern void hyb_log_kill(HybIndex *ix, const HybFetched *batch,
						 const HybFetchedItem *item);

/* ---- catch-up, vacuum, stats ---- */

/*
 * Catch the active tree up if it is in shared memory, is being read, and is
 * not locked.  Never fails for lack of memory; holds nothing on return.
 */
extern void hyb_log_catch_up(HybIndex *ix, const HybVersion *version);

/*
 * Entries that VACUUM found dead on one delta page (flags already set and
 * logged there): mark them in the tree as well.  Keys and TIDs are looked at.
 */
extern void hyb_log_mark_dead(HybIndex *ix, uint64 generation,
							  const HybEntry *dead, int ndead);

typedef struct HybLogStats
{
	bool		busy;			/* the trees are locked: only the next one and
								 * tree_bytes are known */
	bool		shared;			/* trees in shared memory */
	uint64		tree_bytes;		/* memory of this index's trees and filters */
	uint64		tree_entries;	/* in the trees, dead ones included */
	uint64		compact_entries;	/* of these, ones that only the log has */
	uint64		rebuilds;		/* trees built from the log anew */
	uint64		counters[HYB_STAGE_COUNTERS];
} HybLogStats;

/* Those of an index that were not yet added to the shared ones. */
extern HybCachePiece hyb_counters_piece;

/* Add one to a counter; hyb_log_stats has its sum. */
static inline void
hyb_log_count(const HybIndex *ix, int counter)
{
	Assert(counter >= 0 && counter < HYB_STAGE_COUNTERS);
	((uint32 *) hyb_cache_piece(ix, &hyb_counters_piece))[counter]++;
}

/* Add a backend's counters to the shared ones, if the trees are not locked. */
extern void hyb_log_publish_counters(HybIndex *ix);

/* Halve n shared counters, from `first` on, unless the trees are locked. */
extern void hyb_log_age_counters(HybIndex *ix, int first, int n);

/* With nowait a tree that is locked by others is not waited for. */
extern void hyb_log_stats(HybIndex *ix, bool nowait,
						  HybLogStats *stats);

#endif							/* HYB_LOG_H */
