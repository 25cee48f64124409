/*
 * conditions.h
 *		What a scan asks: constants, columns, qualifiers, ranges.
 *
 * The scan keys become a range [start, end) of the index, or several if equality
 * arrays are among them, and qualifiers for what the range does not guarantee.
 *
 * All positions in this folder are cuts between entries: HYB_AT means just below that
 * (key, TID).  "Strictly after an entry" is the cut at its TID plus one.
 */
#ifndef HYB_CONDITIONS_H
#define HYB_CONDITIONS_H

#include "access/skey.h"
#include "key/position.h"
#include "store/handle.h"

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

/* Is this a scan of one whole key? */
static inline bool
hyb_keys_are_one(const HybScanKeys *keys)
{
	return keys->point && keys->narrays == 0;
}

/* Whether filters are asked for one key or for a range. */

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

/*
 * Does a key say that the column equals a short value?  Then *value is that, of the
 * column's type.  Its encoding is an exact bound, and making it leaves no memory
 * behind.
 */
extern bool hyb_key_is_simple(const HybKeyDesc *desc, int column,
							  const ScanKeyData *key, Datum *value);

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

#endif							/* HYB_CONDITIONS_H */
