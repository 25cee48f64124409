/*
 * leaf_format.h
 *		Bytes of a static leaf; private to the leaf's builder and reader.
 *
 * Content, from PageGetContents() on, nothing aligned, integers
 * little-endian:
 *
 *		uint16	rows
 *		uint16	items (TIDs)
 *		uint8	columns
 *		uint8	HYB_LEAF_* flags
 *		columns, in order of the key description
 *		row starts, a sequence (algo/intseq.h) of the first item of each row;
 *				absent with HYB_LEAF_UNIQUE_ROWS: every row has one item
 *		TIDs
 *
 * A column begins with a byte: encoding | null mode << 4.
 *
 * HYB_LEAF_NULLS	nothing follows: an integer column of nulls only
 * HYB_LEAF_INT		integers as HybValue.ival has them: [least value, 8 bytes,
 *					with null codes; code of null, 8 bytes, with
 *					HYB_NULLS_HIGH; bitmap of nulls with HYB_NULLS_BITMAP]
 *					sequence
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
 * With HYB_LEAF_TID_ROWS an element of the sequences is
 * (v - origin) + k * span with any k >= 0, and v - origin < span: where a row
 * has many TIDs, letting k count the rows makes the whole sequence ascend.
 *
 * The special space follows the content, so the 8-byte loads of algo/bits.h
 * that start within the content end within the page.
 */
#ifndef HYB_LEAF_FORMAT_H
#define HYB_LEAF_FORMAT_H

#include "static/leaf.h"

#define HYB_LEAF_HEADER			6

#define HYB_LEAF_UNIQUE_ROWS	0x01
#define HYB_LEAF_TID_ROWS		0x02
#define HYB_LEAF_TID_BLOCKS		0x04
#define HYB_LEAF_FLAGS			0x07

#define HYB_LEAF_TID_BLOCK		128

/* Bytes of a string that its integer head holds. */
#define HYB_LEAF_SPLIT_HEAD		8

typedef enum HybLeafEncoding
{
	HYB_LEAF_NULLS = 0,
	HYB_LEAF_INT = 1,
	HYB_LEAF_CONST = 2,
	HYB_LEAF_FRONT = 3,
	HYB_LEAF_SPLIT = 4
} HybLeafEncoding;

/*
 * Nulls of an integer column get a code at the end of the range where they
 * sort, so that codes compare like values.
 */
typedef enum HybLeafNulls
{
	HYB_NULLS_NONE = 0,
	HYB_NULLS_LOW = 1,			/* code 0; value v has v - min + 1 */
	HYB_NULLS_HIGH = 2,			/* code null_code; value v has v - min */
	HYB_NULLS_BITMAP = 3		/* the range leaves no code free */
} HybLeafNulls;

/* leaf.c */

/* One column of a row; the value holds until the column's next one. */
extern void hyb_leaf_value(HybLeaf *leaf, int col, int row, HybValue *val);

/* An integer column of n rows; nulls are 0. */
extern void hyb_leaf_ints(HybLeaf *leaf, int col, int row, int n,
						  uint64 *ints, uint8 *isnull);

/* leaf_tids.c */

/* Opens the TIDs at p; returns the byte after them, or NULL. */
extern const uint8 *hyb_leaf_open_tids(HybLeaf *leaf, int flags,
									   const uint8 *p, const uint8 *end);

/* TIDs of items [item, item + n) as block << 16 | offset. */
extern void hyb_leaf_tid_words(const HybLeaf *leaf, int item, int n,
							   uint64 *words);

/*
 * First item of [lo, hi), whose TIDs ascend, with a TID at or above tid; hi if
 * there is none.
 */
extern int	hyb_leaf_search_tid(const HybLeaf *leaf, int lo, int hi,
								const ItemPointerData *tid);

/* ---- building ---- */

/* Rows waiting for their leaf, one column. */
typedef struct HybBuildColumn
{
	bool		is_int;
	uint8	   *isnull;			/* integers */
	uint64	   *ints;			/* 0 for null */
	int			nnulls;			/* among all rows */
	HybBuf		arena;			/* strings, flag bytes included */
	uint32	   *off;
	uint32	   *len;
	uint32	   *lcp;			/* common prefix with the row before */
	uint32		new_lcp;		/* of the row being added */
	HybFrontCode code;
} HybBuildColumn;

/* How one column of a leaf is going to be stored. */
typedef struct HybPlanColumn
{
	uint8		encoding;
	uint8		null_mode;
	uint32		size;
	uint64		min;
	uint64		null_code;
	HybSeqPlan	seq;
	uint32		prefix_len;
	uint32		rest_len;
	HybFrontPlan front;
} HybPlanColumn;

/* How the first nitems waiting items are going to be stored. */
typedef struct HybLeafPlan
{
	int			nitems;
	int			nrows;
	int			flags;
	uint32		size;			/* content */
	HybPlanColumn *cols;
	HybSeqPlan	row_starts;
	uint32		tid_factor;
	uint32		tid_size;
	uint64		tid_origin;
	uint64		tid_span;
	HybSeqPlan	tids;
} HybLeafPlan;

struct HybLeafBuilder
{
	const HybIndex *ix;
	const HybKeyDesc *desc;
	uint64		stamp;
	HybLeafEmit emit;
	void	   *arg;
	MemoryContext context;

	/* entries not yet in a leaf */
	int			nitems;
	int			nrows;
	int			items_alloc;
	int			rows_alloc;
	uint64	   *tids;			/* block << 16 | offset */
	uint32	   *row_start;		/* first item of each row */
	HybBuildColumn *cols;

	/* sizes are computed when this many items wait */
	int			next_check;
	int			last_nitems;	/* items of the leaf before, 0 if none */

	/* what hyb_leaf_builder_aim asked for; whole pages without it */
	uint32		capacity;		/* bytes at which a leaf is full */
	int			max_items;		/* items at which it is */
	int			hold;			/* no leaf is full before more items wait */
	bool		share;			/* the last leaves share what is left */

	HybLeafPlan plans[2];
	uint64	   *values;			/* HYB_LEAF_MAX_ITEMS each */
	uint64	   *values2;

	HybPos		low;			/* of the next leaf */
	HybBuf		low_key;
	HybBuf		left_key;
	HybBuf		right_key;
	int			nleaves;
	PGAlignedBlock page;
};

/* leaf_plan.c */

/* Looks at all waiting strings; plans may then be made for parts of them. */
extern void hyb_leaf_prepare(HybLeafBuilder *b);
extern void hyb_leaf_plan(HybLeafBuilder *b, int nitems, HybLeafPlan *plan);
extern bool hyb_leaf_tid_numbers(HybLeafBuilder *b, const HybLeafPlan *plan,
								 int from, int to, uint64 span);
extern const uint64 *hyb_leaf_plan_tid_block(HybLeafBuilder *b,
											 const HybLeafPlan *plan,
											 int block, HybSeqPlan *seq,
											 int *n);

/* leaf_write.c: fills the builder's page */
extern void hyb_leaf_write(HybLeafBuilder *b, const HybLeafPlan *plan);

/* Arrays of numbers that both of them need, built in the builder's memory. */

/* Codes of an integer column with nulls. */
static inline uint64 *
hyb_leaf_null_codes(HybLeafBuilder *b, const HybBuildColumn *col,
					const HybPlanColumn *plan, int nrows)
{
	uint64		prev = plan->min;

	for (int i = 0; i < nrows; i++)
	{
		uint64		v = col->ints[i];

		if (plan->null_mode == HYB_NULLS_BITMAP)
			prev = b->values[i] = col->isnull[i] ? prev : v;
		else if (col->isnull[i])
			b->values[i] = plan->null_code;
		else
			b->values[i] = v - plan->min + (plan->null_mode == HYB_NULLS_LOW);
	}
	return b->values;
}

/* Heads of strings that are going to be split. */
static inline uint64 *
hyb_leaf_heads(HybLeafBuilder *b, const HybBuildColumn *col,
			   const HybPlanColumn *plan, int nrows)
{
	uint32		n = Min(plan->rest_len, HYB_LEAF_SPLIT_HEAD);

	for (int i = 0; i < nrows; i++)
	{
		const uint8 *s = col->arena.data + col->off[i] + plan->prefix_len;
		uint64		v = 0;

		for (uint32 j = 0; j < n; j++)
			v = (v << 8) | s[j];
		b->values[i] = v;
	}
	return b->values;
}

static inline uint64 *
hyb_leaf_row_starts(HybLeafBuilder *b, int nrows)
{
	for (int i = 0; i < nrows; i++)
		b->values[i] = b->row_start[i];
	return b->values;
}

#endif							/* HYB_LEAF_FORMAT_H */
