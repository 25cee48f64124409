/*
 * batch.h
 *		What a scan has read, and how it reads; private to this folder.
 *
 * A batch covers [low edge, high edge) of a range.  It has a part for each static
 * level, and dynamic entries.  Its items lie in index order, whatever the direction
 * of the scan.
 */
#ifndef HYB_BATCH_H
#define HYB_BATCH_H

#include "leaf/leaf.h"
#include "log/log.h"
#include "scan/keys/conditions.h"

/* ---- what was read ---- */

/*
 * Dynamic and static entries that the first batch of a range takes; an index
 * leaf of nbtree has some hundreds.
 */
#define HYB_SCAN_LOG_LIMIT	64
#define HYB_SCAN_STATIC_LIMIT	128

/*
 * The same of entries some of whose keys may have to be read from the table; and of
 * hybrid_hot backward, where items are put together at once, with their rows.
 */
#define HYB_SCAN_RAW_LIMIT		32

/*
 * Items and TIDs that there is room for from the start, as most scans of
 * single keys need no more.
 */
#define HYB_SCAN_FIRST_ITEMS	8

typedef enum HybEdgeKind
{
	HYB_EDGE_START,				/* the start of the range */
	HYB_EDGE_END,				/* the end of the range */
	HYB_EDGE_KEY				/* `pos` */
} HybEdgeKind;

typedef struct HybScanEdge
{
	HybEdgeKind kind;
	HybPos		pos;			/* HYB_EDGE_KEY: key in `key` */
	HybBuf		key;
} HybScanEdge;

/* How a batch holds the static items it was loaded from. */
typedef enum HybStaticMode
{
	HYB_STATIC_NONE,
	HYB_STATIC_TIDS,			/* TIDs only: all entries have equal keys, or
								 * the scan does not ask for keys */
	HYB_STATIC_ROWS,			/* few rows of a leaf; or those entries of
								 * HYB_STATIC_RAW that lie in the batch. Items
								 * are counted anew, and each is a row,
								 * encoded in `rowbytes` */
	HYB_STATIC_PAGE,			/* a copy of the leaf */
	HYB_STATIC_RAW				/* TIDs of a leaf that does not keep keys, of
								 * entries beyond the batch's ends too */
} HybStaticMode;

typedef struct HybScanRow
{
	uint32		off;			/* encoded row, in rowbytes; prefix, if
								 * HYB_STATIC_RAW */
	uint32		len;
	uint32		keylen;			/* HYB_STATIC_RAW: bits of the prefix;
								 * HYB_STATIC_ROWS: 0 if no more than a prefix
								 * had to be known, whose bits are `len` */
	int			first_item;		/* ordinal within the leaf */
} HybScanRow;

typedef struct HybScanItem
{
	ItemPointerData tid;
	uint8		part;			/* static items: level that it is of */
	bool		killed;			/* found dead to all: it gets a hint in the
								 * end */
	int32		source;			/* ordinal of the item in the leaf, or -1 - n
								 * for item n of `log` */
	int32		row;			/* static items of scans that look at values:
								 * row of the leaf, or index in `rows` */
} HybScanItem;

/* Rows [row, row + n) of a leaf as index tuples, scan_tuple.c. */
#define HYB_WINDOW_ROWS		32
#define HYB_WINDOW_FIRST	4	/* rows of the first one of a scan */

typedef struct HybScanWindow
{
	int			row;
	int			n;
	uint8		isnull[HYB_WINDOW_ROWS];	/* a column is, perhaps: no tuple */
	char		tuples[FLEXIBLE_ARRAY_MEMBER];	/* each as long as `fixed` */
} HybScanWindow;

/*
 * What a batch has of one static level: items [first, last) of one leaf.  All
 * memory is of the scan's context, and used again for the next leaf.
 */
typedef struct HybScanPart
{
	HybStaticMode mode;
	BlockNumber block;
	uint64		stamp;
	uint16		pd_lower;
	Buffer		pin;			/* pin on the leaf, if the scan needs it */
	int			first;
	int			last;
	int			next;			/* first one that is not in the batch's
								 * `items` */
	HybLeaf		leaf;			/* valid for HYB_STATIC_PAGE */
	char	   *page;			/* the copy */
	HybScanWindow *window;		/* of it, or NULL: none was needed yet */
	HybScanRow *rows;			/* HYB_STATIC_ROWS, HYB_STATIC_RAW */
	int			nrows;
	int			rows_alloc;
	HybBuf		rowbytes;
	ItemPointerData *tids;		/* of items [tids_base, tids_end), */
	bool	   *dead;			/* and which of them are dead, or of another
								 * key than the one sought, if has_dead */
	int			tids_base;
	int			tids_end;
	int			tids_alloc;
	bool		has_dead;
	bool		all_dead;		/* everything up to the leaf's fence is, and
								 * the range goes on */
	ItemPointerData first_tids[HYB_SCAN_FIRST_ITEMS];
	bool		first_dead[HYB_SCAN_FIRST_ITEMS];
} HybScanPart;

typedef struct HybScanBatch
{
	HybScanItem *items;
	int			nitems;			/* put together so far, see hyb_batch_merge */
	int			items_alloc;
	int			current;		/* -1: before the first, nitems: after the
								 * last */
	HybScanEdge low;
	HybScanEdge high;

	int			nparts;			/* levels of the version */
	HybScanPart *parts[HYB_MAX_LEVELS]; /* the first one is always there */
	bool		proven;			/* the version was current after the leaves
								 * were pinned */
	bool		hot;			/* no leaf was read: the first part is a hot
								 * copy */

	HybFetched	log;
	bool		log_backward;	/* log.items are in descending order */
	bool		log_held;		/* a leaf's pin holds VACUUM up for them, too */

	/* what is not in `items` yet, but for parts' own */
	int			next_log;		/* dynamic entries from this one on */
	bool		fresh_known;	/* the next two are: */
	int			fresh;			/* part that has the next entry of those above
								 * the oldest level, HYB_FRESH_LOG or _NONE */
	int			fresh_place;	/* item of the oldest level that follows it */

	int			nkilled;		/* items that are */
	HybScanItem first_items[HYB_SCAN_FIRST_ITEMS];
	int			elems[FLEXIBLE_ARRAY_MEMBER];	/* element of each prefix
												 * array it belongs to */
} HybScanBatch;

/* HybScanBatch.fresh */
#define HYB_FRESH_NONE			0
#define HYB_FRESH_LOG			(-1)

/* Items of a batch that are put together at a time. */
#define HYB_SCAN_MERGE_CHUNK	32

/* Rows that are copied one by one rather than with their page. */
#define HYB_SCAN_FEW_ROWS	8

/* ---- how it is read ---- */

/* Pages that a scan may be ahead, whatever effective_io_concurrency says. */
#define HYB_AHEAD_MAX			256

/* HybScanAhead.next: nothing of the batch was looked at. */
#define HYB_AHEAD_NOTHING		PG_INT32_MIN

/* What a scan remembers of pages that it has lately looked at; a power of 2. */
#define HYB_AHEAD_RECENT		64

typedef struct HybScanAhead
{
	int			wait;			/* items to be returned before it looks ahead
								 * again */
	int			max;			/* pages to be ahead at most; 0: none, -1: not
								 * known yet */
	int			start;			/* items that it will return, as far as those
								 * before it tell; 0: they do not */
	int			returned;		/* items, since the scan began */
	bool		forward;
	bool		skip_visible;	/* pages that are all-visible are not read */
	Buffer		visibility;		/* page of the visibility map, pinned */

	int			next;			/* item of the batch to look at next, or
								 * HYB_AHEAD_NOTHING */

	/*
	 * Items of the batch whose pages were asked for, and which the scan has
	 * not come to: a ring of `waiting` places from `oldest` on.
	 */
	int			oldest;
	int			waiting;
	int		   *items;			/* HYB_AHEAD_MAX; NULL: none was yet */
	BlockNumber *recent;		/* HYB_AHEAD_RECENT, by the low bits of their
								 * numbers */
	uint64		asked;			/* pages asked for that were not in memory */
} HybScanAhead;

/* What a process knows of a parallel scan, scan_parallel.c. */
typedef struct HybScanShare
{
	struct HybParallelScan *shared; /* NULL: the scan is not a parallel one */
	HybScanEdge end;			/* of what was claimed last */
	bool		within;			/* batches may end before that */
} HybScanShare;

typedef struct HybScanMode
{
	bool		need_values;	/* qualifiers, or an index-only scan */
	bool		need_pins;		/* interlock with VACUUM needed */
	bool		check_heap;		/* index-only scan on a standby */
	bool		locks;			/* it takes predicate locks */
	bool		whole_leaves;	/* a bitmap scan, which reads all of a range */
	bool		rechecks;		/* rows have to be compared with the keys: not
								 * all static entries returned have them */
	uint8		probe;			/* levels where a leaf's filter is asked
								 * before it is read */
	int			log_limit;		/* dynamic entries the next batch asks for */
	int			static_limit;	/* static items it takes, unless `point` */

	/* jumps over empty ranges, scan_range.c */
	int			empty_ranges;	/* one after the other; negative: how many are
								 * to come before they count */
	int			jump_pause;		/* that number after the last jump */
	bool		jumping;		/* the last jump was worth it */

	/* hops over excluded rows of a leaf, scan_hop.c */
	int			hop_wait;		/* rows to look at before a hop */
	int			hop_pause;		/* that number after the last hop */

	HybScanAhead ahead;			/* heap pages, scan_ahead.c */
	HybScanShare share;
} HybScanMode;

/* ---- edges of batches ---- */

static inline void
hyb_edge_set(HybScanEdge *edge, HybEdgeKind kind)
{
	Assert(kind != HYB_EDGE_KEY);
	edge->kind = kind;
}

static inline void
hyb_edge_set_pos(HybScanEdge *edge, const HybPos *pos)
{
	edge->kind = HYB_EDGE_KEY;
	hyb_pos_copy(&edge->pos, &edge->key, pos);
}

static inline void
hyb_edge_copy(HybScanEdge *edge, const HybScanEdge *source)
{
	if (source->kind == HYB_EDGE_KEY)
		hyb_edge_set_pos(edge, &source->pos);
	else
		edge->kind = source->kind;
}

static inline const HybPos *
hyb_edge_pos(const HybScanKeys *keys, const HybScanEdge *edge)
{
	if (edge->kind == HYB_EDGE_KEY)
		return &edge->pos;
	return edge->kind == HYB_EDGE_START ? &keys->start : &keys->end;
}

/* ---- scan_hop.c, for scans whose hop_last is not negative ---- */

/*
 * Move an edge that a batch is to start at to the first place where entries may
 * qualify.  If there is none the edge moves to the end of the range, unless it is
 * at the start of it.  Returns false if the edge stays.
 */
extern bool hyb_hop_edge(HybScanKeys *keys, HybScanEdge *edge, bool forward);

/*
 * Move *row, which does not qualify, to the next row of the part's leaf that may.
 * Returns its first item; the part's last, if there is none.
 */
extern int	hyb_hop_rows(HybScanKeys *keys, HybScanMode *mode, HybScanPart *part,
						 int *row);

#endif							/* HYB_BATCH_H */
