/*
 * key.h
 *		Index keys as byte strings: encoding, splitting, decoding, comparing.
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
 * btree compresses long values of an index tuple.  Here values of a column longer
 * than HybColumn.plain bytes are stored shorter:
 *
 *		terminated bytes	what follows the first `plain` bytes is encoded in
 *							order (algo/inorder.h), and the bytes of the code
 *							are escaped as bytea's are.  A code is never empty,
 *							so what is longer than `plain` is long
 *		counted bytes		compressed by pglz, if that makes them shorter; the
 *							bytes then begin with the raw length (4), and the
 *							flag byte says that they are packed
 *
 * Both depend on the value alone, but for pglz: where char is unsigned (ARM) it may
 * give values with bytes above 127 another form.  Since files may come from such a
 * machine, keys with a long counted value are not looked up by a hash of their bytes
 * (hyb_key_has_one_form).  The order of terminated bytes is that of the values.
 *
 * Every encoding is prefix free, so two entries agree on their first n
 * columns exactly if one starts with the first n column encodings of the
 * other.  Order is (key columns, heap TID); INCLUDE columns take no part.
 */
#ifndef HYB_KEY_H
#define HYB_KEY_H

#include "key/desc.h"
#include "port/pg_bswap.h"

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

/* Store the low `width` bytes of v, most significant byte first. */
static inline void
hyb_store_int(uint8 *dst, uint64 v, int width)
{
	uint64		be = pg_hton64(v << (8 * (8 - width)));

	Assert(width >= 1 && width <= 8);
	switch (width)
	{
		case 8:
			memcpy(dst, &be, 8);
			break;
		case 4:
			memcpy(dst, &be, 4);
			break;
		default:
			memcpy(dst, &be, width);
			break;
	}
}

static inline uint64
hyb_load_int(const uint8 *src, int width)
{
	uint64		v = 0;

	switch (width)
	{
		case 8:
			memcpy(&v, src, 8);
			return pg_ntoh64(v);
		case 4:
			{
				uint32		v4;

				memcpy(&v4, src, 4);
				return pg_ntoh32(v4);
			}
		default:
			for (int i = 0; i < width; i++)
				v = (v << 8) | src[i];
			return v;
	}
}

static inline uint64
hyb_width_mask(int width)
{
	Assert(width >= 1 && width <= 8);
	return ~UINT64CONST(0) >> (8 * (8 - width));
}

/* The flag byte of a value. */
static inline uint8
hyb_value_flag(const HybColumn *col, const HybValue *val)
{
	if (val->isnull)
		return hyb_null_flag(col);
	return col->store == HYB_STORE_BYTES && val->ival != 0 ?
		HYB_FLAG_PACKED : HYB_FLAG_VALUE;
}

static inline bool
hyb_is_long(const HybColumn *col, uint32 len)
{
	return len > col->plain && col->plain > 0;
}

/*
 * Parse the column that starts at p.  Returns the place after it, or NULL if
 * the bytes before `end` are not a whole, well-formed column.
 */
static inline const uint8 *
hyb_parse_column(const HybColumn *col, const uint8 *p, const uint8 *end,
				 HybValue *val)
{
	uint8		flag;

	if (unlikely(p >= end))
		return NULL;
	flag = *p++;
	if (unlikely(flag != HYB_FLAG_VALUE) &&
		(flag != HYB_FLAG_PACKED || !hyb_has_length_word(col)))
	{
		val->isnull = true;
		val->ival = 0;
		val->ptr = NULL;
		val->len = 0;
		return flag == hyb_null_flag(col) ? p : NULL;
	}

	val->isnull = false;
	if (col->store == HYB_STORE_INT)
	{
		if (unlikely(end - p < col->width))
			return NULL;
		val->ival = hyb_load_int(p, col->width);
		val->ptr = NULL;
		val->len = 0;
		return p + col->width;
	}

	val->ival = flag == HYB_FLAG_PACKED;
	if (col->terminated)
	{
		const uint8 *term = memchr(p, hyb_terminator(col), end - p);

		if (unlikely(term == NULL))
			return NULL;
		val->ptr = p;
		val->len = term - p;
		return term + 1;
	}
	if (col->width > 0)
		val->len = col->width;
	else
	{
		if (unlikely(end - p < (ptrdiff_t) sizeof(uint32)))
			return NULL;
		memcpy(&val->len, p, sizeof(uint32));
		p += sizeof(uint32);
	}
	if (unlikely(end - p < (ptrdiff_t) val->len))
		return NULL;
	Assert(col->store == HYB_STORE_BYTES);
	val->ptr = p;
	return p + val->len;
}

/*
 * Has each equal value the same bytes, in a column where such have?  pglz may have
 * packed a long one otherwise on a machine of another kind.
 */
static inline bool
hyb_value_has_one_form(const HybColumn *col, const HybValue *val)
{
	return val->isnull || !hyb_has_length_word(col) ||
		(val->ival == 0 && !hyb_is_long(col, val->len));
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

extern int	hyb_value_compare_full(const HybColumn *col, const HybValue *a,
								   const HybValue *b);

/*
 * Column order, DESC and NULLS FIRST/LAST taken into account.  Comparator
 * columns call the operator class's function, which may throw.  While an LWLock is
 * held only pure values may be compared (key/pure.h).
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
 * entry is malformed, as do the functions of position.h.
 */
extern int	hyb_key_compare(const HybKeyDesc *desc,
							const uint8 *a, uint32 alen,
							const uint8 *b, uint32 blen);

/*
 * Order of two comparator or mixed keys' first ncols columns.  If not 0 the
 * number says, too, how many of these columns tell the keys apart.
 */
extern int	hyb_columns_compare(const HybKeyDesc *desc, int ncols,
								const uint8 *a, uint32 alen,
								const uint8 *b, uint32 blen);

/* Hash of a key part, for the Bloom filter and lock partitions. */
extern uint64 hyb_key_hash(const uint8 *key, uint32 keylen);

/* Has every key that is equal to this whole one the same bytes? */
extern bool hyb_key_has_one_form(const HybKeyDesc *desc, const uint8 *key,
								 uint32 keylen);

/* Is a comparison of this value with a pure one pure (key/pure.h)? */
extern bool hyb_value_is_pure(const HybColumn *col, const HybValue *val);
extern bool hyb_columns_are_pure(const HybKeyDesc *desc, int ncols,
								 const uint8 *key, uint32 len);

/* The same of a key. */
static inline bool
hyb_key_is_pure(const HybKeyDesc *desc, const uint8 *key, uint32 len)
{
	return likely(desc->pure == HYB_PURE) ||
		hyb_columns_are_pure(desc, desc->nkeys, key, len);
}

/* For finding equal keys: hyb_key_hash, or 0 if they may have other bytes. */
static inline uint64
hyb_key_point_hash(const HybKeyDesc *desc, const uint8 *key, uint32 keylen)
{
	return hyb_key_has_one_form(desc, key, keylen) ? hyb_key_hash(key, keylen) : 0;
}

#endif							/* HYB_KEY_H */
