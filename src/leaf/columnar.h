/*
 * columnar.h
 *		The columnar layout of leaves: compressed, searched in place.
 *
 * Behind the common header (leaf/leaf_layout.h), nothing aligned, integers
 * little-endian:
 *
 *		uint8	HYB_LEAF_TID_* flags
 *		columns, in order of the key description
 *		row starts, a sequence (algo/intseq.h) of the first item of each row;
 *				absent where every row has one item
 *		TIDs
 *
 * Private to this folder.
 *
 * A column begins with a byte, its encoding.
 *
 * HYB_LEAF_NULLS	nothing follows: an integer column of nulls only
 * HYB_LEAF_INT		sequence of integers as HybValue.ival has them
 * HYB_LEAF_INT_NULLS	bitmap of nulls; sequence of integers, whose elements for nulls
 *					mean nothing
 *
 * Strings are a flag byte (key/key.h) and, unless null, the value without
 * length word and terminator.  The prefix that all rows have in common comes
 * first, its length as variable bytes:
 *
 * HYB_LEAF_CONST	prefix: all rows have this string
 * HYB_LEAF_FRONT	prefix; front-coded rests (algo/frontcode.h)
 * HYB_LEAF_SPLIT	prefix; length of the rests, which is the same in all rows
 *					(variable bytes); sequence of the rests' first 8 bytes, or
 *					all if there are fewer, as big-endian integers; the other
 *					bytes of the rests, row by row
 * HYB_LEAF_LZ4		strings in groups (algo/lzgroups.h), their prefix too:
 *					columns that are not searched only
 * HYB_LEAF_SYMBOLS	prefix; rests as symbols (algo/symbols.h): columns that are
 *					not searched only
 *
 * A TID is a number v = block * factor + (offset - 1), factor being the
 * greatest offset of the leaf, so that the TIDs of a heap loaded in key order
 * lie on a line.  Stored are
 *
 *		uint16	factor
 *		[HYB_LEAF_TID_ROWS:	origin, span, 8 bytes each]
 *		a sequence; or with HYB_LEAF_TID_BLOCKS the end of each block (uint16,
 *				counted from the end of this array), and for each block of 128
 *				items a sequence
 *
 * With HYB_LEAF_TID_ROWS an element of the sequences is (v - origin) + k * span
 * with any k >= 0, and v - origin < span.  Where a row has many TIDs, k counts the
 * rows, so that the whole sequence ascends.
 *
 * The special space follows the content, so the 8-byte loads of algo/bits.h
 * that start within the content end within the page.
 */
#ifndef HYB_COLUMNAR_H
#define HYB_COLUMNAR_H

#include "algo/frontcode.h"
#include "algo/intseq.h"
#include "algo/lzgroups.h"
#include "algo/symbols.h"
#include "leaf/leaf_layout.h"

#define HYB_LEAF_TID_ROWS		0x01
#define HYB_LEAF_TID_BLOCKS		0x02
#define HYB_LEAF_FLAGS			0x03

#define HYB_LEAF_TID_BLOCK		128

/* Bytes of a string that its integer head holds. */
#define HYB_LEAF_SPLIT_HEAD		8

typedef enum HybLeafEncoding
{
	HYB_LEAF_NULLS = 0,
	HYB_LEAF_INT = 1,
	HYB_LEAF_INT_NULLS = 2,
	HYB_LEAF_CONST = 3,
	HYB_LEAF_FRONT = 4,
	HYB_LEAF_SPLIT = 5,
	HYB_LEAF_LZ4 = 6,
	HYB_LEAF_SYMBOLS = 7
} HybLeafEncoding;

/* ---- reading ---- */

/* One stored column. */
typedef struct HybLeafColumn
{
	uint8		encoding;		/* HybLeafEncoding */
	const uint8 *nulls;			/* bitmap, of HYB_LEAF_INT_NULLS; else NULL */
	HybSeq		seq;			/* integers; heads of split strings */
	HybSeqCursor seq_cursor;
	const uint8 *prefix;		/* common to all strings */
	uint32		prefix_len;
	uint32		rest_len;		/* split strings: bytes after the prefix */
	const uint8 *tails;			/* split strings */
	HybFront	front;
	HybFrontCursor cursor;		/* current string; buffers outlive the page */
	HybLz		lz;
	HybLzCursor lz_cursor;		/* the same */
	HybSym		sym;
	HybSymCursor sym_cursor;	/* the same */
} HybLeafColumn;

/* Is a row of an integer column null? */
static inline bool
hyb_int_is_null(const HybLeafColumn *col, int row)
{
	if (col->encoding == HYB_LEAF_INT)
		return false;
	return col->encoding == HYB_LEAF_NULLS ||
		(col->nulls[row >> 3] & (1 << (row & 7))) != 0;
}

/* What the layout keeps of an opened leaf. */
typedef struct HybColumnar
{
	HybSeq		row_starts;		/* unless unique_rows */
	uint32		tid_factor;
	uint64		tid_origin;
	uint64		tid_span;
	HybSeq		tids;			/* unless tid_ends is set */
	const uint8 *tid_ends;		/* ends of the TID blocks, or NULL */
	const uint8 *tid_data;		/* first TID block */
	const uint64 *words;		/* all TIDs, as block << 16 | offset; NULL:
								 * not decoded */
	uint64	   *room;			/* for them; outlives the page */
	int			nroom;
	HybFrontFinger finger;		/* of searches by the first column */
	HybLeafColumn cols[FLEXIBLE_ARRAY_MEMBER];
} HybColumnar;

/* ---- reading leaves of prefixes: prefixes.h ---- */

/* Columns of the columnar leaf in a leaf of prefixes, at most. */
#define HYB_PREFIXES_COLUMNS	2

/* What both layouts keep of an opened leaf. */
typedef struct HybPrefixes
{
	/* numbers */
	uint32		ncommon;		/* bytes that all keys begin with */
	const uint8 *common;
	uint64		common_word;	/* the first 8 of them, little-endian, and
								 * what follows */
	int			depth;			/* bits beyond */
	struct HybNumberRow *rows;	/* all rows of the page, if `has_rows` */
	int			rows_alloc;
	bool		has_rows;

	/* strings */
	HybFront	front;
	HybFrontCursor cursor;		/* its buffers outlive the page */
	bool		at_page;		/* the cursor is of this page */
	const uint8 *fingerprints;	/* or NULL */
} HybPrefixes;

/* ---- columnar.c ---- */

/* Give a cursor over a leaf's strings its buffers.  They serve later pages too. */
extern void hyb_leaf_need_strings(const HybLeaf *leaf, HybFrontCursor *cursor);

/*
 * Open the content of a columnar leaf with these columns from p to end.  Returns the
 * byte after what it uses.
 */
extern const uint8 *hyb_columnar_open(HybLeaf *leaf, const HybKeyDesc *columns,
									  const uint8 *p, const uint8 *end);

/* One column of a row; the value holds until the next call for the column. */
extern void hyb_columnar_value(HybLeaf *leaf, int col, int row, HybValue *val);

/* TIDs of items [item, item + n) as block << 16 | offset. */
extern void hyb_columnar_tid_words(const HybLeaf *leaf, int item, int n,
								   uint64 *words);

/*
 * First item of [lo, hi), whose TIDs ascend, with a TID at or above tid; hi if there
 * is none.
 */
extern int	hyb_columnar_search_tid(const HybLeaf *leaf, int lo, int hi,
									const ItemPointerData *tid);

/*
 * columnar_search.c: the rows whose first columns equal vals, which point into a key,
 * behind their flag bytes.  If there are none both ends are the first row above.
 */
extern void hyb_columnar_search(HybLeaf *leaf, const HybValue *vals, int ncols,
								HybRowRange *rows);

/* ---- building ---- */

/* Strings that wait for their leaf. */
typedef struct HybWaitingStrings
{
	HybBuf		bytes;
	uint32	   *off;
	uint32	   *len;
	uint32	   *lcp;			/* common prefix with the string before */
	HybFrontCode code;
} HybWaitingStrings;

static inline HybStrings
hyb_waiting_strings(const HybWaitingStrings *s, int n)
{
	return (HybStrings)
	{
		s->bytes.data, s->off, s->len, s->lcp, n
	};
}

/* One column of the rows that wait for their leaf. */
typedef struct HybBuildColumn
{
	bool		is_int;
	uint8	   *isnull;			/* integers */
	uint64	   *ints;			/* 0 for null */
	int			nnulls;			/* among all rows */
	bool		known;			/* the next fields are set */
	bool		ascends;		/* the integers never descend */
	uint64		least;			/* no integer is less; if they ascend, the
								 * first one */
	uint64		greatest;		/* none is greater */
	HybWaitingStrings strings;	/* flag bytes included */
	uint32		new_lcp;		/* of the row being added */
	HybSymWork *sym;			/* NULL: not compressed, neither by LZ4 */
	HybLzWork  *lz;
	int			fast;			/* leaves to come that do not try forms that
								 * are slow to read */
	uint32		room;			/* strings that sym and lz have room for */
	uint32		cap;			/* bytes of strings that they have room for */
} HybBuildColumn;

/* How one column of a leaf is going to be stored. */
typedef struct HybPlanColumn
{
	uint8		encoding;
	uint32		size;
	uint8		slow;			/* INCLUDE columns: the best encoding that is
								 * slow to read */
	uint32		slow_size;		/* its size; UINT32_MAX: none */
	HybSeqPlan	seq;
	uint32		prefix_len;
	uint32		rest_len;
	HybFrontPlan front;
	HybLzPlan	lz;
	HybSymPlan	sym;
} HybPlanColumn;

/* How the first nitems waiting items are going to be stored. */
typedef struct HybColumnarPlan
{
	int			nitems;
	int			nrows;
	int			flags;
	HybPlanColumn *cols;
	HybSeqPlan	row_starts;
	uint32		tid_factor;
	uint32		tid_size;
	uint64		tid_origin;
	uint64		tid_span;
	HybSeqPlan	tids;
} HybColumnarPlan;

typedef struct HybColumnarBuilder
{
	HybLeafBuilder base;

	/* entries not yet in a leaf */
	int			nrows;
	int			items_alloc;
	int			rows_alloc;
	uint64	   *tids;			/* block << 16 | offset */
	uint32	   *row_start;		/* first item of each row */
	HybBuildColumn *cols;
	int			prepared;		/* waiting items whose strings were looked at */

	HybColumnarPlan plans[2];
	uint64	   *values;			/* HYB_LEAF_MAX_ITEMS each */
	uint64	   *values2;
} HybColumnarBuilder;

static inline HybColumnarBuilder *
hyb_columnar_builder(HybLeafBuilder *base)
{
	return (HybColumnarBuilder *) base;
}

/* columnar_build.c */
extern HybLeafBuilder *hyb_columnar_create(const HybIndex *ix);

/* Make room for n strings. */
extern void hyb_waiting_strings_grow(MemoryContext context, HybWaitingStrings *s, int n);

/* Make room for this many rows and items. */
extern void hyb_columnar_room(HybColumnarBuilder *b, int nrows, int nitems);

/* The last waiting row that begins at or before an item. */
extern int	hyb_columnar_waiting_row(const HybColumnarBuilder *b, int item);
extern void hyb_columnar_add(HybLeafBuilder *base, const HybValue *vals,
							 const ItemPointerData *tid);

/*
 * Add n items of a columnar leaf, from `item` on.  Those that begin rows are of `row`
 * and the rows after it.  Items before these belong to the row of the item that waits
 * last.  Returns how many rows begin.
 */
extern int	hyb_columnar_add_items(HybLeafBuilder *base, HybLeaf *leaf,
								   int row, int item, int n);

/* Append the key columns of a waiting item. */
extern void hyb_columnar_waiting(const HybLeafBuilder *base, int item,
								 HybBuf *key, ItemPointer tid);
extern void hyb_columnar_drop(HybLeafBuilder *base, int nitems);

/* columnar_plan.c */
extern void hyb_columnar_plan(HybLeafBuilder *base, int slot);
extern uint8 *hyb_columnar_write(HybLeafBuilder *base, int slot, uint8 *out);

#endif							/* HYB_COLUMNAR_H */
