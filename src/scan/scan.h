/*
 * scan.h
 *		State of an index scan, private to this folder.
 *
 * A HybScan has three parts:
 *
 * - HybScanKeys: what is asked.  The scan keys become a range [start, end) of the
 *   index, or several if equality arrays are among them, and qualifiers for what
 *   the range does not guarantee.
 * - HybScanMode: how the scan reads.
 * - HybScanBatch: what was read.  A batch covers [low edge, high edge) of a range.
 *   It has a part for each static level, and dynamic entries.  Its items lie in
 *   index order, whatever the direction of the scan.
 *
 * All positions here are cuts between entries: HYB_AT means just below that
 * (key, TID).  "Strictly after an entry" is the cut at its TID plus one.
 */
#ifndef HYB_SCAN_H
#define HYB_SCAN_H

#include "access/genam.h"
#include "access/relscan.h"
#include "access/skey.h"
#include "filter/filter_choice.h"
#include "hot/hot.h"
#include "leaf/leaf.h"
#include "log/log.h"
#include "tree/descend.h"

/* ---- what is asked ---- */

/* How a constant of some type lies among the values of the column's type */
typedef enum HybConstantPlace
{
	HYB_CONSTANT_EXACT,			/* it is `lo` */
	HYB_CONSTANT_BETWEEN,		/* what is below it is at most `lo`, what is
								 * above it at least `hi` */
	HYB_CONSTANT_BESIDE,		/* the same, and nothing equals it */
	HYB_CONSTANT_BELOW,			/* below everything */
	HYB_CONSTANT_ABOVE,			/* above everything */
	HYB_CONSTANT_UNKNOWN
} HybConstantPlace;

/*
 * A constant longer than any entry cannot be a bound, so only its operator is
 * asked.  The whole key of a bound stays below HYB_MAX_BOUND_SIZE, far below
 * what HybPos can hold.
 */
#define HYB_MAX_CONSTANT_SIZE	HYB_MAX_ENTRY_SIZE
#define HYB_MAX_BOUND_SIZE		32000

/* Elements of an array key, sorted in index order, without duplicates. */
typedef struct HybScanArray
{
	int			nelems;
	int			alloc;
	uint64	   *elems;			/* the offset in `bytes`, and the length in
								 * the low half */
	HybBuf		bytes;			/* encoded */
	uint32		maxlen;			/* of an element's encoding */
} HybScanArray;

/* An encoded constant in HybScanKeys.constants. */
typedef struct HybScanConst
{
	uint32		off;
	uint32		len;
} HybScanConst;

typedef struct HybScanBound
{
	bool		set;			/* there is one */
	bool		strict;			/* the value itself lies outside */
	int			more;			/* values of the next columns that belong to
								 * it, of a row comparison */
	HybScanConst value;
} HybScanBound;

/*
 * What the keys on one index column say, in index order: `lower` is the end
 * that comes first in the index, whichever way the column is sorted.
 */
typedef struct HybScanColumn
{
	bool		used;			/* any condition */
	bool		isnull;			/* IS NULL */
	bool		notnull;		/* no NULL satisfies the conditions */
	HybScanBound lower;
	HybScanBound upper;
	HybScanArray *array;		/* equality array, or NULL */
} HybScanColumn;

/* A column of a row comparison, and what it is compared with. */
typedef struct HybRowMember
{
	int			column;			/* from 0 */
	bool		exact;			/* it is compared with `value`; otherwise with
								 * the key's argument, by `order` */
	HybScanConst value;
	HybValue	val;			/* the same, where there is a qualifier */
	ScanKey		key;
	FmgrInfo	order;
} HybRowMember;

/* (column, ...) < (value, ...): the first pair that is not equal decides. */
typedef struct HybRowComparison
{
	bool		less;			/* `<` or `<=` */
	bool		strict;			/* equal rows do not match */
	int			first;			/* members before are known to be equal */
	int			nmembers;
	HybRowMember *members;
} HybRowComparison;

typedef enum HybScanQualKind
{
	HYB_QUAL_NULL,				/* IS NULL */
	HYB_QUAL_NOT_NULL,
	HYB_QUAL_LOWER,				/* at or above `val` in index order */
	HYB_QUAL_UPPER,				/* at or below it */
	HYB_QUAL_ARRAY,				/* equal to one of the elements */
	HYB_QUAL_ROW,				/* a row comparison */
	HYB_QUAL_FUNCTION			/* the key's operator, on decoded values: true
								 * for any of `elems` */
} HybScanQualKind;

typedef struct HybScanQual
{
	HybScanQualKind kind;
	int			column;			/* from 0 */
	bool		strict;			/* `val` itself does not match */
	HybValue	val;
	const HybScanArray *array;
	HybRowComparison *row;
	ScanKey		key;
	const Datum *elems;			/* HYB_QUAL_FUNCTION */
	int			nelems;
} HybScanQual;

/* A column of the equality prefix. */
typedef struct HybScanPrefix
{
	HybScanConst value;			/* unless array */
	HybScanArray *array;
	int			elem;			/* current element of array */
} HybScanPrefix;

typedef struct HybScanKeys
{
	HybIndex   *ix;
	ScanKey		given;			/* scan keys of the server */
	int			ngiven;
	MemoryContext context;		/* reset when keys are processed; NULL if they
								 * were plain equalities */
	MemoryContext qual_context; /* if qualifiers: reset for each batch */

	bool		empty;			/* the keys contradict each other */
	HybScanColumn *columns;		/* one per key column */
	HybRowComparison *rows;		/* row comparisons that columns do not say */
	int			nrows;
	HybBuf		constants;
	HybScanPrefix *prefix;		/* nprefix columns with equality */
	int			nprefix;
	int			narrays;		/* prefix columns that are arrays */
	HybScanQual *quals;
	int			nquals;
	int			quals_alloc;
	int			hop_last;		/* last column with a condition that ranges do
								 * not guarantee, -1: none */

	/* the range at hand */
	bool		has_range;		/* a range on column nprefix */
	HybBuf		prefix_key;
	HybBuf		start_key;
	HybBuf		end_key;
	HybPos		start;
	HybPos		end;
	bool		point;			/* equality on every key column */
	uint64		point_hash;		/* hyb_key_hash, 0 unless point and exact */

	/* scratch */
	HybValue   *vals;			/* a row split into columns */
	HybBuf		hop_key;		/* of the place to hop to */
} HybScanKeys;

/* Whether filters are asked for one key or for a range. */
static inline HybFilterAsker
hyb_scan_asker(const HybScanKeys *keys)
{
	return keys->point ? HYB_ASK_POINT : HYB_ASK_RANGE;
}

/* ---- what was read ---- */

/*
 * Dynamic and static entries that the first batch of a range takes; an index
 * leaf of nbtree has some hundreds.
 */
#define HYB_SCAN_LOG_LIMIT	64
#define HYB_SCAN_STATIC_LIMIT	128

/* The same of entries some of whose keys may have to be read from the table. */
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

	int			leaves_max;		/* as max, of leaves */
	uint8		leaves_begun;	/* levels of which some were sought */
	HybLeavesAhead *leaves;		/* of each level; NULL: of none */
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
	struct IndexFetchTableData *table_fetch;	/* scan_part.c; NULL: not
												 * needed yet */
	struct TupleTableSlot *table_slot;

	/* counts for EXPLAIN */
	uint64		hot_hits;		/* hot copies taken in place of leaves */
	uint64		filter_checks;	/* filters asked, */
	uint64		filter_negatives;	/* and leaves not read therefore */

	/* mark */
	bool		marked;
	bool		mark_in_batch;	/* the mark is in `batch` */
	int			mark_current;
	HybScanBatch *mark_batch;	/* else in here; otherwise a spare */
} HybScan;

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

/* ---- scan_constant.c ---- */

/*
 * Find the place of a constant among the values of a column; *lo and *hi are set
 * as the result says.
 */
extern HybConstantPlace hyb_place_constant(const HybColumn *col, Oid subtype,
										   Datum value, Datum *lo, Datum *hi);

/* Encode a value of a column into the constants. */
static inline HybScanConst
hyb_encode_constant(HybScanKeys *keys, int column, Datum value, bool isnull)
{
	HybScanConst c = {.off = keys->constants.len};

	hyb_key_encode_column(&keys->ix->desc->cols[column], value, isnull,
						  &keys->constants);
	c.len = keys->constants.len - c.off;
	return c;
}

/*
 * A constant as a value, which holds until the next constant is added.  Returns where
 * the column's encoding ends.
 */
extern const uint8 *hyb_constant_value(const HybScanKeys *keys, int column,
									   const HybScanConst *c, HybValue *val);
extern int	hyb_compare_constants(const HybScanKeys *keys, int column,
								  const HybScanConst *a, const HybScanConst *b);

/* The column is at or above a constant, or below it, in index order. */
extern void hyb_tighten(HybScanKeys *keys, int column, bool upper,
						HybScanConst c, bool strict);

/*
 * Create an array with room for nelems elements; add one.  An addition returns
 * false if the element is too long for a bound.
 */
extern HybScanArray *hyb_array_create(int nelems);
extern bool hyb_array_add(const HybColumn *col, HybScanArray *array, Datum value);
extern void hyb_array_sort(const HybColumn *col, HybScanArray *array);

/* Keep the elements that another array has too; or elements [from, to). */
extern void hyb_array_intersect(const HybColumn *col, HybScanArray *array,
								const HybScanArray *other);
extern void hyb_array_keep(HybScanArray *array, int from, int to);

/* The encoding of element i, and the element; both hold as long as the array. */
static inline const uint8 *
hyb_array_encoding(const HybScanArray *array, int i, uint32 *len)
{
	Assert(i >= 0 && i < array->nelems);
	*len = (uint32) array->elems[i];
	return array->bytes.data + (array->elems[i] >> 32);
}

extern void hyb_array_value(const HybColumn *col, const HybScanArray *array,
							int i, HybValue *val);

/* The first element at or above a value; *equal: at it. */
extern int	hyb_array_search(const HybColumn *col, const HybScanArray *array,
							 const HybValue *val, bool *equal);

/* ---- scan_qual.c ---- */

extern HybScanQual *hyb_add_qual(HybScanKeys *keys, HybScanQualKind kind, int column);
extern void hyb_add_function_qual(HybScanKeys *keys, ScanKey key, const Datum *elems,
								  int nelems);

/* Returns how many of n keys, from the first one on, are one row comparison. */
extern int	hyb_row_keys(const ScanKeyData *header, int n);

/* Process these keys: their first column is bounded. */
extern void hyb_row_process(HybScanKeys *keys, ScanKey header);

/*
 * The column has just the value of its lower bound.  Row comparisons that begin
 * with that value are about their next member from now on.  If that is a column
 * that has been settled before, the comparison remains a qualifier.  Returns false
 * if nothing satisfies them.
 */
extern bool hyb_rows_reduce(HybScanKeys *keys, int column);

/*
 * Make row comparisons ends of the range, whose prefix takes `size` bytes, or
 * qualifiers, or both.
 */
extern void hyb_rows_settle(HybScanKeys *keys, uint32 size);

/* Does a row within the range satisfy the keys? */
extern bool hyb_scan_qualifies(HybScanKeys *keys, const HybValue *vals);

/* ---- scan_keys.c ---- */

/*
 * Process the scan keys.  Sets keys->empty if nothing can match; else the range is
 * built by hyb_scan_arrays_first.
 */
extern void hyb_scan_preprocess(HybScanKeys *keys);

#ifdef USE_ASSERT_CHECKING
extern void hyb_keys_assert_valid(const HybScanKeys *keys);
#else
#define hyb_keys_assert_valid(keys) ((void) (keys))
#endif

/* ---- scan_range.c ---- */

/* Start with the first setting of the arrays (backward: the last). */
extern void hyb_scan_arrays_first(HybScanKeys *keys, bool forward);

/* The current setting; `elems` has one place per key column. */
extern void hyb_scan_arrays_save(const HybScanKeys *keys, int *elems);
extern void hyb_scan_arrays_restore(HybScanKeys *keys, const int *elems);

/*
 * Go on to another range, behind the one with this setting of the arrays, which
 * may have been found empty as a whole.  Returns false, with that setting, if there
 * is none.
 */
extern bool hyb_scan_next_range(HybScan *so, bool forward, bool empty,
								const int *elems);

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

/* The scan ends. */
extern void hyb_resolve_end(HybScan *so);

/* Pages of a relation, or of the table, to be ahead at most; 0: none. */
extern int	hyb_most_ahead(Relation rel);
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
 * Which items of the part's leaf are known to be dead: a bit for each, or NULL.  The
 * bits hold until the leaf is unlocked or a comparison function is called.
 */
extern const uint8 *hyb_hints_of(const HybScan *so, const HybScanPart *part, Page page);

/* Keep hints on items of a leaf with tombstones. */
extern void hyb_hints_keep(const HybScan *so, const HybScanPart *part,
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
