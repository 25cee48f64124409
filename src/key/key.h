/*
 * key.h
 *		Index keys as byte strings, and positions between them.
 *
 * An index entry is the concatenation of its column encodings, key columns
 * first, INCLUDE columns after them.  Each column starts with a flag byte:
 *
 *		0x00	NULL, NULLS FIRST column
 *		0x01	a value follows
 *		0x02	NULL, NULLS LAST column (and every non-key column)
 *		0x03	a long value of a column with a length word: it is packed
 *
 * followed, unless NULL, by the value in one of these forms:
 *
 *		HYB_STORE_INT			`width` bytes (1..8), big-endian, of an unsigned
 *								integer
 *		HYB_STORE_BYTES, width > 0		exactly `width` bytes
 *		HYB_STORE_BYTES, terminated		bytes without any 0x00, then 0x00
 *		HYB_STORE_BYTES, otherwise		length as uint32 (native order, read
 *								with memcpy), then that many bytes
 *
 * Columns with HYB_COMPARE_MEM are order preserving: comparing the encodings
 * with memcmp gives the column's order.  For such a column declared DESC
 * every byte after the flag byte, the terminator included, is inverted.
 * Columns compared otherwise are never inverted.
 *
 * Long values are shorter than that (key/long_values.h): of terminated bytes
 * what follows the first ones is encoded, in order; bytes with a length word
 * are compressed.
 *
 * Every encoding is prefix free, so two entries agree on their first n
 * columns exactly if one starts with the first n column encodings of the
 * other.  Order is (key columns, heap TID); INCLUDE columns take no part.
 */
#ifndef HYB_KEY_H
#define HYB_KEY_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/itemptr.h"
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

typedef enum HybStore
{
	HYB_STORE_INT,
	HYB_STORE_BYTES
} HybStore;

typedef enum HybCompare
{
	HYB_COMPARE_MEM,			/* memcmp of the encodings */
	HYB_COMPARE_FLOAT,			/* INT, as integers, but the encodings of -0
								 * and +0 are equal */
	HYB_COMPARE_PROC			/* decode and call HYB_ORDER_PROC */
} HybCompare;

/* Growable byte buffer; `data` is palloc'd in the context of first use. */
typedef struct HybBuf
{
	uint8	   *data;
	uint32		len;
	uint32		cap;
	MemoryContext context;		/* not NULL: `data` was given by the owner,
								 * and a larger one is allocated here */
} HybBuf;

/* An empty buffer that starts with the owner's space. */
static inline void
hyb_buf_init(HybBuf *buf, void *space, uint32 size, MemoryContext context)
{
	buf->data = space;
	buf->len = 0;
	buf->cap = size;
	buf->context = context;
}

extern void hyb_buf_enlarge(HybBuf *buf, uint32 extra);

/* Make room for `extra` more bytes. */
static inline void
hyb_buf_reserve(HybBuf *buf, uint32 extra)
{
	if (unlikely(extra > buf->cap - buf->len))
		hyb_buf_enlarge(buf, extra);
}

static inline void
hyb_buf_append(HybBuf *buf, const void *data, uint32 len)
{
	Assert(buf->len <= buf->cap);
	hyb_buf_reserve(buf, len);
	if (len > 0)
		memcpy(buf->data + buf->len, data, len);
	buf->len += len;
}

/* The buffer is not used any more. */
static inline void
hyb_buf_free(HybBuf *buf)
{
	if (buf->data != NULL && buf->context == NULL)
		pfree(buf->data);
}

/*
 * The place of a value of another type among a type's values: every value that
 * sorts below (above) it is at most `lo` (at least `hi`), and values equal to
 * it lie in [hi, lo].  Where the place is known only roughly lo lies above hi:
 * the caller asks the operator about each entry between.
 */
typedef struct HybConverted
{
	Datum		lo;
	Datum		hi;
	bool		exact;			/* it is lo, which is hi */
	bool		below_all;		/* below all that the type can hold: lo and hi
								 * are not set */
	bool		above_all;		/* above all that */
} HybConverted;

struct HybColumn;

/*
 * What an operator class gives the access method: how one type is stored.
 * A static constant that support function HYB_IMAGE_PROC gives for a
 * HybCodecRequest.  It gives NULL if it has no encoding (a text column under a
 * linguistic collation, say), and returns whether equal values have equal bytes
 * then.
 */
typedef struct HybCodec
{
	const char *name;
	HybStore	store;
	uint8		width;			/* see the forms above; 0 = variable */
	bool		terminated;
	HybCompare	compare;		/* MEM or FLOAT */

	bool		blank_padded;	/* a character(n), whose trailing blanks are
								 * not stored */

	/* HYB_STORE_INT: order-preserving mapping, both ways, ascending */
	uint64		(*to_int) (Datum value);
	Datum		(*from_int) (uint64 value);

	/*
	 * HYB_STORE_BYTES: append the ascending encoding of the value (without
	 * flag and terminator); and back, palloc'ing the Datum.
	 */
	void		(*to_bytes) (Datum value, HybBuf *out);
	Datum		(*from_bytes) (const uint8 *data, uint32 len);

	/*
	 * In the place of those where the value's bytes are encoded with a
	 * dictionary of the index, once it has one (key/encoded.h); else NULL.
	 */
	void		(*encode) (const struct HybColumn *col, Datum value,
						   HybBuf *out);
	Datum		(*decode) (const struct HybColumn *col, const uint8 *data,
						   uint32 len);

	/*
	 * A value of another type of the operator family (subtype) as a position
	 * among this type's values; *out is as for an exact one.  Returns false
	 * if it cannot be told.  NULL if the type has no cross-type members.
	 */
	bool		(*convert) (Oid subtype, Datum value, HybConverted *out);

	/*
	 * The values of this type that equal such a value, whose place convert
	 * knows only roughly: at most HYB_MAX_EQUALS, in any order; returns how
	 * many, or -1 if they cannot be told.  NULL if convert always knows.
	 */
	int			(*equals) (Oid subtype, Datum value, Datum *equal);
} HybCodec;

#define HYB_MAX_EQUALS	8

typedef struct HybCodecRequest
{
	Oid			typid;			/* operator class input type */
	Oid			collation;
	int32		typmod;			/* of the index column */
	Datum		options;		/* operator class options, or 0 */
	const HybCodec *codec;		/* the answer */
} HybCodecRequest;

typedef struct HybColumn
{
	const HybCodec *codec;		/* NULL: comparator column, or INCLUDE */
	HybStore	store;
	HybCompare	compare;		/* undefined for INCLUDE columns */
	uint8		width;
	bool		terminated;
	uint16		plain;			/* longer values are stored shorter, as are
								 * terminated ones in part; 0: none is */
	uint16		sortable;		/* a longer terminated value must be so short
								 * when it is compressed by pglz; 0: need not */
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

/* How the entries of one index are encoded.  Immutable once built. */
typedef struct HybKeyDesc
{
	int			nkeys;			/* key columns */
	int			natts;			/* key and INCLUDE columns */
	bool		all_mem;		/* every key column is HYB_COMPARE_MEM: keys
								 * are ordered by one memcmp */
	bool		has_encoded;	/* a column needs a dictionary */
	bool		truncated;		/* leaves of the oldest level hold the
								 * beginnings of keys only: docs/trie.md */
	bool		exact;			/* equal keys have equal bytes: no FLOAT
								 * column, no PROC column without a positive
								 * HYB_IMAGE_PROC */
	bool		doubtful;		/* a key column has a type with values that
								 * cannot be compared: hyb_key_check_order */
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

/*
 * Bytes of a description of so many columns.  It holds no pointer into itself,
 * so a copy of these bytes is as good, for as long as the relation is open.
 */
#define hyb_key_desc_size(natts) \
	(offsetof(HybKeyDesc, cols) + (natts) * sizeof(HybColumn))

/*
 * One column of one entry, as it is encoded: `ival` and `ptr` hold the
 * inverted form for DESC columns; `ptr`/`len` leave out flag, terminator and
 * length word.  Points into the entry it was split from.
 */
typedef struct HybValue
{
	bool		isnull;
	uint64		ival;			/* HYB_STORE_INT; of bytes: are they packed? */
	const uint8 *ptr;			/* HYB_STORE_BYTES */
	uint32		len;
} HybValue;

/*
 * A place between entries: scan bounds, separators (fence keys), the
 * watermark and restart positions are all of this form.
 *
 * `key` is a prefix of an encoded entry.  In an all_mem index it may end
 * anywhere (a truncated separator); otherwise it holds exactly `ncols` whole
 * columns.  Against the entries that start with it the position is
 *
 *		HYB_BEFORE	below all of them
 *		HYB_AFTER	above all of them
 *		HYB_AT		at `tid`; the key is then a whole key (all key columns)
 */
typedef enum HybTie
{
	HYB_BEFORE = -1,
	HYB_AT = 0,
	HYB_AFTER = 1
} HybTie;

typedef struct HybPos
{
	const uint8 *key;
	uint16		len;			/* 0 with BEFORE: -infinity, with AFTER:
								 * +infinity */
	uint8		ncols;			/* whole columns in key; if all_mem it may be
								 * 0 with len > 0: raw bytes */
	int8		tie;			/* HybTie */
	ItemPointerData tid;		/* HYB_AT only */
} HybPos;

StaticAssertDecl(HYB_MAX_ENTRY_SIZE <= PG_UINT16_MAX, "positions have lengths of two bytes");

#ifdef USE_ASSERT_CHECKING
/* Is a position one that entries of the index can be compared with? */
extern void hyb_pos_assert_valid(const HybKeyDesc *desc, const HybPos *pos);
extern void hyb_key_desc_assert_valid(const HybKeyDesc *desc);
#else
#define hyb_pos_assert_valid(desc, pos) ((void) (pos))
#define hyb_key_desc_assert_valid(desc) ((void) (desc))
#endif

/* At an entry with this key, which the position points to, and TID. */
static inline HybPos
hyb_pos_at(const HybKeyDesc *desc, const uint8 *key, uint32 keylen,
		   ItemPointerData tid)
{
	Assert(keylen <= PG_UINT16_MAX);
	return (HybPos)
	{
		.key = key,.len = (uint16) keylen,
			.ncols = (uint8) desc->nkeys,.tie = HYB_AT,.tid = tid
	};
}

/* Before or after all entries whose first columns are this key. */
static inline void
hyb_pos_set(HybPos *pos, const HybBuf *key, int ncols, HybTie tie)
{
	Assert(key->len <= PG_UINT16_MAX);
	*pos = (HybPos)
	{
		.key = key->data,.len = (uint16) key->len,
			.ncols = (uint8) ncols,.tie = (int8) tie
	};
	ItemPointerSetInvalid(&pos->tid);
}

#define HYB_POS_MIN(pos)	((pos)->len == 0 && (pos)->tie == HYB_BEFORE)
#define HYB_POS_MAX(pos)	((pos)->len == 0 && (pos)->tie == HYB_AFTER)

/* Builds the description in the current memory context. */
extern HybKeyDesc *hyb_key_desc_create(Relation index);

/*
 * What is the same in all indexes of that definition, which stays: one for all
 * of them.  NULL if there are too many definitions to keep another one.
 */
extern const HybKeyDesc *hyb_key_desc_share(const HybKeyDesc *desc);

/* A copy of either becomes that of an index, which is open, again. */
extern void hyb_key_desc_complete(HybKeyDesc *desc, Relation index);

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

/*
 * Encode one row (all natts columns) to `out`, which is emptied first;
 * *keylen is the length of the key columns' part.  May detoast and palloc.
 * Does not check HYB_MAX_ENTRY_SIZE.
 */
extern void hyb_key_encode(const HybKeyDesc *desc, const Datum *values,
						   const bool *isnull, HybBuf *out, uint32 *keylen);

/* Append one column's encoding (flag, inversion, terminator and all). */
extern void hyb_key_encode_column(const HybColumn *col, Datum value,
								  bool isnull, HybBuf *out);

/*
 * Split an entry (or a prefix of ncols whole columns) into columns.  Returns
 * the number of bytes consumed, or 0 if the bytes are not well formed (and
 * for ncols 0).
 */
extern uint32 hyb_key_split(const HybKeyDesc *desc, const uint8 *key,
							uint32 len, int ncols, HybValue *vals);

/* Append the encoding of column values, the inverse of hyb_key_split. */
extern void hyb_key_join(const HybKeyDesc *desc, const HybValue *vals,
						 int ncols, HybBuf *out);

/* Length of the key columns' part of an entry; 0 if malformed. */
extern uint32 hyb_key_length(const HybKeyDesc *desc, const uint8 *entry,
							 uint32 len);

/* A column back as a Datum; by-reference results are palloc'd. */
extern Datum hyb_value_decode(const HybColumn *col, const HybValue *val);

/* The same of n values of an integer column, none of them NULL. */
extern void hyb_ints_decode(const HybColumn *col, const uint64 *ints, int n,
							Datum *values);

/* Raise the error of hyb_call_function. */
HYB_NORETURN extern void hyb_locks_lost(Oid function);

/*
 * Call an operator's or operator class's function, anybody's code.  The caller
 * may hold LWLocks, buffer locks among them.  A function that catches an error
 * rolls a subtransaction back, which releases them all: the caller must not go
 * on, since what it was looking at may have changed.  Each LWLock holds
 * interrupts off, so their count tells.
 */
static inline Datum
hyb_call_function(FmgrInfo *function, Oid collation, Datum a, Datum b)
{
	uint32		held = InterruptHoldoffCount;
	Datum		result;

	/* an error there would take the server down */
	Assert(CritSectionCount == 0);
	result = FunctionCall2Coll(function, collation, a, b);

	if (unlikely(InterruptHoldoffCount != held))
		hyb_locks_lost(function->fn_oid);
	return result;
}

extern int	hyb_value_compare_full(const HybColumn *col, const HybValue *a,
								   const HybValue *b);

/*
 * Column order, DESC and NULLS FIRST/LAST taken into account.  Comparator
 * columns call the operator class's function, which may throw.
 */
static inline int
hyb_value_compare(const HybColumn *col, const HybValue *a, const HybValue *b)
{
	if (likely(col->store == HYB_STORE_INT &&
			   col->compare == HYB_COMPARE_MEM &&
			   !a->isnull && !b->isnull))
		return (a->ival > b->ival) - (a->ival < b->ival);
	return hyb_value_compare_full(col, a, b);
}

/*
 * Order of two entries' keys; alen and blen are the lengths of the key
 * columns' parts.  Raises ERRCODE_INDEX_CORRUPTED if a comparator index's
 * entry is malformed, as do the functions below.
 */
extern int	hyb_key_compare(const HybKeyDesc *desc,
							const uint8 *a, uint32 alen,
							const uint8 *b, uint32 blen);

/*
 * Entry (its key part, with its TID) against a position: < 0 if the entry
 * lies below, > 0 if above; 0 only for HYB_AT and that very entry.
 */
extern int	hyb_pos_compare_key(const HybKeyDesc *desc,
								const uint8 *key, uint32 keylen,
								const ItemPointerData *tid,
								const HybPos *pos);

/*
 * The same for an entry split into columns, and a position of raw bytes (ncols
 * 0).  Only damaged pages have such a position with HYB_AT, which is as BEFORE.
 */
extern int	hyb_pos_compare_raw(const HybKeyDesc *desc, const HybValue *vals,
								const HybPos *pos);

/*
 * A copy of a position that outlives the page, leaf or batch that `from` points
 * into: its key bytes go to `keybuf`, which is emptied first and has to stay as
 * long as the copy.  `from` must not point into `keybuf`.
 */
extern void hyb_pos_copy(HybPos *copy, HybBuf *keybuf, const HybPos *from);

/* Order of two positions. */
extern int	hyb_pos_compare(const HybKeyDesc *desc, const HybPos *a,
							const HybPos *b);

/*
 * The shortest position that separates two neighbouring entries, at which left
 * and right are, left < right: left < sep <= right.  The result's key points
 * into right.  False if they do not ascend, as entries of a damaged leaf may
 * not; then sep is not one.
 */
extern bool hyb_separator(const HybKeyDesc *desc, const HybPos *left,
						  const HybPos *right, HybPos *sep);

/* Hash of a key part, for the Bloom filter and lock partitions. */
extern uint64 hyb_key_hash(const uint8 *key, uint32 keylen);

#endif							/* HYB_KEY_H */
