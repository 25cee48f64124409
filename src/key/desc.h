/*
 * desc.h
 *		The description of one index's keys: its columns, and how each is stored.
 */
#ifndef HYB_DESC_H
#define HYB_DESC_H

#include "access/tupdesc.h"
#include "fmgr.h"
#include "key/codec.h"
#include "key/pure.h"
#include "miscadmin.h"
#include "utils/relcache.h"

/*
 * Operator class support functions.  They are btree's, by number and meaning:
 * since version 18 the server checks their signatures, and looks up 2 and 3, in
 * the families of every access method that can order.  A class has either an
 * equalimage function or a codec function as number 4.  The server takes 48
 * bytes a column in each session for each number, used or not.
 */
#define HYB_ORDER_PROC		1	/* comparison function */
#define HYB_SORTSUPPORT_PROC 2	/* optional: used by CREATE INDEX for
								 * comparator columns */
#define HYB_INRANGE_PROC	3	/* optional: for window frames */
#define HYB_IMAGE_PROC		4	/* optional: do equal values have equal bytes?
								 * oid -> boolean, as in btree; or a codec,
								 * our own: internal -> boolean */
#define HYB_OPTIONS_PROC	5	/* optional: operator class options */
#define HYB_NSUPPORT		5

/* Bytes of one encoded entry, all columns: a third of a page, as in nbtree */
#define HYB_MAX_ENTRY_SIZE	2704

#define HYB_FLAG_NULL_FIRST	0x00
#define HYB_FLAG_VALUE		0x01
#define HYB_FLAG_NULL_LAST	0x02
#define HYB_FLAG_PACKED		0x03

typedef struct HybColumn
{
	const HybCodec *codec;		/* NULL: comparator column, or INCLUDE */
	HybStore	store;
	HybCompare	compare;		/* undefined for INCLUDE columns */
	uint8		width;
	bool		terminated;
	uint16		plain;			/* longer values are stored shorter, as are
								 * terminated ones in part; 0: none is */
	uint16		sortable;		/* a new entry is refused if a longer value is
								 * not so short after pglz; 0: never */
	bool		desc;
	bool		nulls_first;
	int16		attlen;
	bool		attbyval;
	char		attalign;
	Oid			typid;			/* type as stored in the index */
	Oid			opcintype;
	Oid			collation;
	int32		typmod;
	bool		doubtful;		/* see HybKeyDesc */
	uint8		pure;			/* HybPure, of key columns */
	Oid			part;			/* HYB_PURE_IN_PART: the type that pure arrays
								 * and ranges name; InvalidOid: an enum */
	Oid			part_cmp;		/* the function that compares elements of pure
								 * arrays, else InvalidOid */
	bool		exact;			/* as in HybKeyDesc */
	bool		unread;			/* pure comparisons need collations that this
								 * description has not loaded yet */
	FmgrInfo   *order_proc;		/* HYB_ORDER_PROC, key columns only */
	const char *index_name;		/* for errors */
	Datum		options;		/* operator class options, or 0 */
	const struct HybDictionary *dictionary; /* codec->encode: NULL while
											 * values are stored as they are */
} HybColumn;

/*
 * Are values ordered by their encodings, which have the same length but for NULL?
 */
static inline bool
hyb_column_is_fixed(const HybColumn *col)
{
	return col->compare == HYB_COMPARE_MEM &&
		(col->store == HYB_STORE_INT || col->width > 0);
}

/* Are strings of the column stored encoded, once the index has a dictionary? */
#define hyb_column_is_encoded(col) ((col)->codec != NULL && (col)->codec->encode != NULL)

/* Values of an encoded column, and what they take. */
typedef struct HybRecent
{
	uint64		keys;
	uint64		plain;			/* bytes */
	uint64		stored;			/* bytes of their codes */
} HybRecent;

/*
 * How the entries of one index are encoded.  Immutable once built, but for what
 * hyb_desc_prepare_pure notes about pure comparisons.
 */
typedef struct HybKeyDesc
{
	int			nkeys;			/* key columns */
	int			natts;			/* key and INCLUDE columns */
	bool		all_mem;		/* every key column is HYB_COMPARE_MEM: keys
								 * are ordered by one memcmp */
	bool		has_encoded;	/* a column needs a dictionary */
	bool		truncated;		/* leaves of the oldest level hold the
								 * beginnings of keys only: docs/trie.md */
	bool		chains;			/* hybrid_hot: entries lead to HOT chains, and
								 * may be stale: docs/hot_updates.md */
	bool		plain;			/* of chains: neither expressions nor a
								 * predicate, so no function of a user makes
								 * keys */
	bool		exact;			/* equal keys have equal bytes, unless they
								 * are long (hyb_key_has_one_form): no FLOAT
								 * column, no PROC column without a positive
								 * HYB_IMAGE_PROC */
	bool		doubtful;		/* a key column has a type with values that
								 * cannot be compared: hyb_key_check_order */
	HybPure		pure;			/* what all key columns allow */
	bool		unread;			/* a column is */
	TupleDesc	tupdesc;		/* the index relation's */
	HybColumn	cols[FLEXIBLE_ARRAY_MEMBER];
} HybKeyDesc;

/* Have all keys the same length, but for NULLs, and are ordered by memcmp? */
static inline bool
hyb_key_is_fixed(const HybKeyDesc *desc)
{
	for (int i = 0; i < desc->nkeys; i++)
		if (!hyb_column_is_fixed(&desc->cols[i]))
			return false;
	return true;
}

/* Do functions compare keys, which may fail, and change their minds? */
static inline bool
hyb_key_desc_calls_functions(const HybKeyDesc *desc)
{
	for (int i = 0; i < desc->nkeys; i++)
		if (desc->cols[i].compare == HYB_COMPARE_PROC)
			return true;
	return false;
}

/*
 * Bytes of a description with `natts` columns.  It holds no pointer into itself, and
 * what it points to stays as long as the relation cache's entry: a copy of these bytes
 * is as good.
 */
#define hyb_key_desc_size(natts) \
	(offsetof(HybKeyDesc, cols) + (natts) * sizeof(HybColumn))

extern void hyb_desc_read_collations(HybKeyDesc *desc);
extern void hyb_desc_remember_parts(HybKeyDesc *desc);

/* Before a page is locked on which keys will be compared, if all are pure. */
static inline void
hyb_desc_prepare_page(HybKeyDesc *desc)
{
	if (unlikely(desc->unread))
		hyb_desc_read_collations(desc);
}

/*
 * Before an LWLock is taken under which pure keys will be compared.  Afterwards fewer
 * keys may be pure: ask which are when the lock is held.
 */
static inline void
hyb_desc_prepare_pure(HybKeyDesc *desc)
{
	hyb_desc_prepare_page(desc);
	if (unlikely(desc->pure == HYB_PURE_IN_PART))
		hyb_desc_remember_parts(desc);
}

static inline uint8
hyb_null_flag(const HybColumn *col)
{
	return col->nulls_first ? HYB_FLAG_NULL_FIRST : HYB_FLAG_NULL_LAST;
}

/* Are the column's bytes, flag excepted, stored inverted? */
static inline bool
hyb_inverted(const HybColumn *col)
{
	return col->desc && col->compare == HYB_COMPARE_MEM;
}

static inline uint8
hyb_terminator(const HybColumn *col)
{
	return hyb_inverted(col) ? 0xFF : 0x00;
}

/* Is the value preceded by a length word? */
static inline bool
hyb_has_length_word(const HybColumn *col)
{
	return col->store == HYB_STORE_BYTES && col->width == 0 && !col->terminated;
}

#ifdef USE_ASSERT_CHECKING
extern void hyb_key_desc_assert_valid(const HybKeyDesc *desc);
#else
#define hyb_key_desc_assert_valid(desc) ((void) (desc))
#endif

/* Builds the description in the current memory context. */
extern HybKeyDesc *hyb_key_desc_create(Relation index);

/*
 * Raises the comparison function's error if a value of the row cannot be
 * compared, not even with itself: nothing could find its place later.
 */
extern void hyb_key_compare_self(const HybKeyDesc *desc, const Datum *values,
								 const bool *isnull);

static inline void
hyb_key_check_order(const HybKeyDesc *desc, const Datum *values,
					const bool *isnull)
{
	if (unlikely(desc->doubtful))
		hyb_key_compare_self(desc, values, isnull);
}

#endif							/* HYB_DESC_H */
