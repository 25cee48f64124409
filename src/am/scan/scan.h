/*
 * scan.h
 *		State of an index scan, private to scan.c, scan_keys.c, scan_range.c
 *		and scan_batch.c.
 *
 * The scan keys become a range [start, end) of the index, or several when
 * equality arrays are among them, and qualifiers for what the range does not
 * guarantee.  The range is read in batches (see scan_batch.c); a batch covers
 * [low edge, high edge) of it, and its items lie in index order whatever the
 * direction of the scan.
 *
 * All positions here are cuts between entries: HYB_AT means just below that
 * (key, TID).  "Strictly after an entry" is the cut at its TID plus one.
 */
#ifndef HYB_SCAN_H
#define HYB_SCAN_H

#include "access/relscan.h"
#include "access/skey.h"

#include "am/am.h"
#include "static/descend.h"
#include "static/leaf.h"

/* ---- scan keys ---- */

/* An element of an array key, encoded as a value of the index column. */
typedef struct HybScanElement
{
	HybValue	val;
	uint32		off;			/* column encoding, in HybScanArray.bytes */
	uint32		len;
} HybScanElement;

/* Elements of an array, sorted in index order, without duplicates. */
typedef struct HybScanArray
{
	int			nelems;
	HybScanElement *elems;
	HybBuf		bytes;
	uint32		maxlen;			/* of an element's encoding */
} HybScanArray;

/* An encoded constant in HybScan.constants. */
typedef struct HybScanConst
{
	uint32		off;
	uint32		len;
} HybScanConst;

/*
 * What the keys on one index column say, in index order: `lower` is the end
 * that comes first in the index, whichever way the column is sorted.
 */
typedef struct HybScanColumn
{
	bool		used;			/* any condition */
	bool		isnull;			/* IS NULL */
	bool		notnull;		/* no NULL satisfies the conditions */
	bool		has_lower;
	bool		lower_strict;
	bool		has_upper;
	bool		upper_strict;
	HybScanConst lower;
	HybScanConst upper;
	HybScanArray *array;		/* equality array, or NULL */

	/*
	 * A value from the keys that the column is equal to byte by byte, if that
	 * saves decoding the entries'.
	 */
	bool		has_equal;
	Datum		equal;
} HybScanColumn;

typedef enum HybScanQualKind
{
	HYB_QUAL_NULL,				/* IS NULL */
	HYB_QUAL_NOT_NULL,
	HYB_QUAL_LOWER,				/* at or above `val` in index order */
	HYB_QUAL_LOWER_STRICT,
	HYB_QUAL_UPPER,
	HYB_QUAL_UPPER_STRICT,
	HYB_QUAL_ARRAY,				/* equal to one of the elements */
	HYB_QUAL_FUNCTION,			/* the key's operator, on decoded values */
	HYB_QUAL_FUNCTION_ARRAY		/* the same, true for any of the elements */
} HybScanQualKind;

typedef struct HybScanQual
{
	HybScanQualKind kind;
	int			column;			/* from 0 */
	HybValue	val;
	const HybScanArray *array;
	ScanKey		key;
	Datum	   *elems;			/* HYB_QUAL_FUNCTION_ARRAY */
	int			nelems;
} HybScanQual;

/* A column of the equality prefix. */
typedef struct HybScanPrefix
{
	HybScanConst value;			/* unless array */
	HybScanArray *array;
	int			elem;			/* current element of array */
} HybScanPrefix;

/* ---- batches ---- */

/*
 * Dynamic and static entries that the first batch of a range takes; an index
 * leaf of nbtree has some hundreds.
 */
#define HYB_SCAN_DYN_LIMIT	64
#define HYB_SCAN_STATIC_LIMIT	128

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
	HYB_STATIC_TIDS,			/* TIDs only: all entries have equal keys */
	HYB_STATIC_ROWS,			/* few rows, encoded in `rowbytes` */
	HYB_STATIC_PAGE				/* a copy of the leaf */
} HybStaticMode;

typedef struct HybScanRow
{
	uint32		off;			/* encoded row, in rowbytes */
	uint32		len;
	uint32		keylen;
	int			first_item;		/* ordinal within the leaf */
} HybScanRow;

typedef struct HybScanItem
{
	ItemPointerData tid;
	int32		source;			/* ordinal of the item in the leaf, or -1 - n
								 * for item n of `dyn` */
	int32		row;			/* static items of scans that look at values:
								 * row of the leaf, or index in `rows` */
} HybScanItem;

typedef struct HybScanBatch
{
	HybScanItem *items;
	int			nitems;			/* put together so far, see hyb_batch_merge */
	int			items_alloc;
	int			current;		/* -1: before the first, nitems: after the
								 * last */
	HybScanEdge low;
	HybScanEdge high;
	int		   *elems;			/* element of each prefix array it belongs to */

	HybStaticMode mode;
	BlockNumber block;
	uint64		stamp;
	uint16		pd_lower;
	Buffer		pin;			/* pin on the leaf, if the scan needs it */
	bool		proven;			/* the version was current after the leaf was
								 * pinned */
	int			first;			/* static items [first, last) were read */
	int			last;
	HybLeaf		leaf;			/* valid for HYB_STATIC_PAGE */
	char	   *page;			/* the copy */
	HybScanRow *rows;			/* HYB_STATIC_ROWS */
	int			nrows;
	HybBuf		rowbytes;

	HybDynBatch dyn;
	bool		dyn_backward;	/* dyn.items are in descending order */

	/* what is not in `items` yet: in index order */
	int			next_static;	/* static items [next_static, last) */
	int			next_dyn;		/* dynamic ones from this one on */
	int			dyn_place;		/* static item that follows it, or -1 */

	int		   *killed;			/* indexes of items found dead */
	int			nkilled;
	int			killed_alloc;
} HybScanBatch;

/*
 * Items and TIDs that there is room for from the start, as most scans of
 * single keys need no more.
 */
#define HYB_SCAN_FIRST_ITEMS	8

/* Items of a batch that are put together at a time. */
#define HYB_SCAN_MERGE_CHUNK	32

/* Rows that are copied one by one rather than with their page. */
#define HYB_SCAN_FEW_ROWS	8

typedef struct HybScan
{
	IndexScanDesc scan;
	HybIndex   *ix;
	MemoryContext context;		/* of the whole scan */
	MemoryContext key_context;	/* reset when keys are processed; NULL if they
								 * need no memory */
	MemoryContext qual_context; /* if qualifiers: reset for each batch */
	MemoryContext tuple_context;	/* index-only scans: the returned tuple */

	/* what the keys were made into, scan_keys.c */
	bool		empty;			/* the keys contradict each other */
	HybScanColumn *columns;		/* one per key column */
	HybBuf		constants;
	HybScanPrefix *prefix;		/* nprefix columns with equality */
	int			nprefix;
	int			narrays;		/* prefix columns that are arrays */
	HybScanQual *quals;
	int			nquals;
	int			quals_alloc;
	bool		has_range;		/* a range on column nprefix */
	HybBuf		prefix_key;
	HybBuf		start_key;
	HybBuf		end_key;
	HybPos		start;
	HybPos		end;
	bool		point;			/* equality on every key column */
	uint64		point_hash;		/* hyb_key_hash, 0 unless point and exact */

	/* progress, scan.c and scan_batch.c */
	bool		started;		/* keys processed, first batch loaded */
	bool		need_values;	/* qualifiers, or an index-only scan */
	bool		need_pins;		/* interlock with VACUUM needed */
	bool		check_heap;		/* index-only scan on a standby */
	bool		whole_leaves;	/* a bitmap scan, which reads all of a range */
	int			dyn_limit;		/* dynamic entries the next batch asks for */
	bool		probe;			/* ask the leaf's filter before reading it */
	int			static_limit;	/* static items it takes, unless `point` */
	HybBuf		cut_key;		/* scratch: where a limit ends a batch */
	HybScanBatch *batch;
	HybScanEdge from;			/* where the batch being loaded starts */
	HybDescent	descent;
	uint64		filter_checks;	/* filters asked, */
	uint64		filter_negatives;	/* and leaves not read therefore */
	Buffer		delta_pin;		/* page of the dynamic item last returned */

	/* scratch for loading */
	ItemPointerData *tids;		/* of the static items, from tids_base on */
	bool	   *dead;			/* which of them are dead, if has_dead */
	int			tids_base;
	int			tids_alloc;
	bool		has_dead;
	HybValue   *vals;			/* a row split into columns */

	/* forming index tuples */
	Datum	   *tuple_values;
	bool	   *tuple_isnull;
	uint16	   *tuple_offsets;	/* of columns in fixed_tuple's data */
	IndexTuple	fixed_tuple;	/* NULL unless all columns have fixed length */
	bool		tuple_byval;	/* all columns are passed by value */

	/* mark */
	bool		marked;
	bool		mark_in_batch;	/* the mark is in `batch` */
	int			mark_current;
	HybScanBatch *mark_batch;	/* else in here; otherwise a spare */
} HybScan;

/* scan_keys.c */
extern void hyb_scan_preprocess(HybScan *so);

/* scan_range.c */
extern void hyb_scan_arrays_first(HybScan *so, bool forward);
extern bool hyb_scan_arrays_next(HybScan *so, bool forward);
extern void hyb_scan_arrays_save(const HybScan *so, int *elems);
extern void hyb_scan_arrays_restore(HybScan *so, const int *elems);
extern bool hyb_scan_qualifies(HybScan *so, const HybValue *vals);

/* scan_batch.c */
extern HybScanBatch *hyb_batch_create(HybScan *so);
extern void hyb_batch_finish(HybScan *so, HybScanBatch *batch);
extern void hyb_batch_load(HybScan *so, bool forward);
extern bool hyb_batch_merge(HybScan *so, HybScanBatch *batch, int wanted);
extern void hyb_edge_set(HybScanEdge *edge, HybEdgeKind kind);
extern void hyb_edge_copy(HybScanEdge *edge, const HybScanEdge *source);
extern void hyb_edge_set_pos(HybScanEdge *edge, const HybPos *pos);
extern HybDynItem *hyb_batch_dyn_item(HybScanBatch *batch,
									  const HybScanItem *item);
extern const HybValue *hyb_batch_values(HybScan *so, HybScanBatch *batch,
										const HybScanItem *item);

#endif							/* HYB_SCAN_H */
