/*
 * key.c
 *		Index keys as byte strings: encoding, splitting, decoding, comparing.
 *
 * Keys of an all_mem index compare by one memcmp.  Other keys compare column by
 * column, and only comparator columns are turned back into Datums, on the stack.
 */
#include "base/compat.h"

#include "access/tupmacs.h"
#include "algo/inorder.h"
#include "base/mute.h"
#include "common/hashfn.h"
#include "common/pg_lzcompress.h"
#include "key/key.h"

/* Values up to this size are rebuilt on the stack for a comparison. */
#define STACK_VALUE	1024

/* Bytes of an encoding that fits an entry, and of any of a value that would as it is */
#define MAX_CODE	(2 * HYB_MAX_ENTRY_SIZE)

/* Bytes of most long values, restored */
#define USUAL_SIZE	16384

/* A Datum rebuilt for a comparison function. */
typedef struct ScratchDatum
{
	Datum		datum;
	void	   *allocated;		/* pfree afterwards, or NULL */
	union
	{
		char		data[STACK_VALUE + VARHDRSZ];
		double		align_double;
		int64		align_int64;
	}			space;
} ScratchDatum;

/* Names the column's index. */
HYB_NORETURN static void
malformed(const HybColumn *col)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is corrupted", col->index_name),
			 errdetail("A key is malformed."),
			 errhint("Please REINDEX it.")));
	pg_unreachable();
}

/* ---- long values ---- */

/*
 * The bytes of `out` from `start` on are a long terminated value, without its
 * terminator: make them shorter.  A value that fits no entry ends up longer than
 * an entry may be.
 */
static void
long_shorten(const HybColumn *col, HybBuf *out, uint32 start)
{
	uint8		code[MAX_CODE];
	uint32		plainlen = out->len - start;
	size_t		len;

	Assert(col->terminated && col->plain > 0 && plainlen > col->plain);
	len = hyb_inorder_encode(out->data + start, plainlen, col->plain, code,
							 MAX_CODE);
	if (len > 0)
	{
		out->len = start + col->plain;
		hyb_escape(code, (uint32) len, out);
	}
	else if (plainlen <= HYB_MAX_ENTRY_SIZE)
	{
		uint32		more = HYB_MAX_ENTRY_SIZE + 1 - plainlen;

		hyb_buf_reserve(out, more);
		memset(out->data + out->len, 0x01, more);
		out->len += more;
	}
}

/* The inverse of long_shorten: palloc'd, or NULL if the bytes are malformed. */
static uint8 *
long_restore(const HybColumn *col, const uint8 *data, uint32 len,
			 uint32 *whole)
{
	uint32		size = USUAL_SIZE;
	uint8	   *code = palloc(len);
	uint32		codelen = hyb_unescape(data + col->plain, len - col->plain,
									   code);
	uint8	   *result = palloc(size);

	Assert(len >= col->plain && codelen <= len);
	memcpy(result, data, col->plain);
	while ((*whole = hyb_inorder_decode(code, codelen, result, col->plain,
										size)) == 0)
	{
		if (size == HYB_INORDER_MAX)
		{
			pfree(result);
			result = NULL;
			break;
		}
		size = HYB_INORDER_MAX;
		result = repalloc(result, size);
	}
	pfree(code);
	return result;
}

/*
 * Append a long value, which is not compressed, packed and with a length word.
 * Changes its flag, the last byte of `out`.  Returns false, and changes nothing, if
 * packing makes the value no shorter.
 */
static bool
long_pack(struct varlena *value, HybBuf *out)
{
	int32		raw = VARSIZE_ANY_EXHDR(value);
	char	   *packed = palloc(PGLZ_MAX_OUTPUT(raw));
	int32		len = pglz_compress(VARDATA_ANY(value), raw, packed,
									PGLZ_strategy_default);
	uint32		head[2] = {len + sizeof(uint32), raw};
	bool		shorter = len >= 0 && head[0] < (uint32) raw;

	/* the flag byte is there, and says that a value follows */
	Assert(out->len > 0 && out->data[out->len - 1] == HYB_FLAG_VALUE);
	if (shorter)
	{
		out->data[out->len - 1] = HYB_FLAG_PACKED;
		hyb_buf_append(out, head, sizeof(head));
		hyb_buf_append(out, packed, len);
	}
	pfree(packed);
	return shorter;
}

/* The inverse of long_pack: palloc'd, or NULL if the value is malformed. */
static struct varlena *
long_unpack(const HybValue *val)
{
	struct varlena *result;
	uint32		raw;
	int32		len = (int32) val->len - (int32) sizeof(raw);

	Assert(!val->isnull && val->ival != 0);
	if (len <= 0)
		return NULL;
	memcpy(&raw, val->ptr, sizeof(raw));
	if (raw > MaxAllocSize - VARHDRSZ)
		return NULL;
	result = palloc((Size) raw + VARHDRSZ);
	SET_VARSIZE(result, raw + VARHDRSZ);
	if (pglz_decompress((const char *) val->ptr + sizeof(raw), len,
						VARDATA(result), raw, true) == (int32) raw)
		return result;
	pfree(result);
	return NULL;
}

/* ---- columns ---- */

/*
 * Bits of a Datum whose type has no function for that.  Eight bytes may be passed
 * by reference, on 32-bit machines.
 */
static inline uint64
raw_bits(const HybColumn *col, Datum value)
{
	if (col->width == sizeof(int64))
		return (uint64) DatumGetInt64(value);
	return (uint64) value & hyb_width_mask(col->width);
}

/* And back, as the type's own macros would have built it. */
static inline Datum
raw_datum(const HybColumn *col, uint64 bits)
{
	switch (col->width)
	{
		case 1:
			return CharGetDatum((char) bits);
		case 2:
			return Int16GetDatum((int16) bits);
		case 4:
			return Int32GetDatum((int32) bits);
		default:
			return Int64GetDatum((int64) bits);
	}
}

static void
append_length_word(HybBuf *out, uint32 len)
{
	hyb_buf_append(out, &len, sizeof(len));
}

static void
encode_bytes_column(const HybColumn *col, Datum value, HybBuf *out)
{
	if (col->codec != NULL)
	{
		uint32		start;

		Assert(col->store == HYB_STORE_BYTES);
		if (hyb_has_length_word(col))
			append_length_word(out, 0);
		start = out->len;
		if (col->codec->encode != NULL)
			col->codec->encode(col, value, out);
		else
			col->codec->to_bytes(value, out);
		Assert(col->width == 0 || out->len - start == col->width);
		Assert(!col->terminated ||
			   memchr(out->data + start, 0, out->len - start) == NULL);

		if (hyb_has_length_word(col))
		{
			uint32		len = out->len - start;

			memcpy(out->data + start - sizeof(len), &len, sizeof(len));
		}
		else if (unlikely(hyb_is_long(col, out->len - start)))
			long_shorten(col, out, start);
		if (hyb_inverted(col))
		{
			for (uint32 i = start; i < out->len; i++)
				out->data[i] = ~out->data[i];
		}
		if (col->terminated)
		{
			hyb_buf_reserve(out, 1);
			out->data[out->len++] = hyb_terminator(col);
		}
	}
	else if (col->attlen > 0)
	{
		if (col->width == 0)
			append_length_word(out, col->attlen);
		hyb_buf_append(out, DatumGetPointer(value), col->attlen);
	}
	else
	{
		struct varlena *plain = PG_DETOAST_DATUM_PACKED(value);
		uint32		len = VARSIZE_ANY_EXHDR(plain);

		if (likely(!hyb_is_long(col, len)) || !long_pack(plain, out))
		{
			append_length_word(out, len);
			hyb_buf_append(out, VARDATA_ANY(plain), len);
		}
		if ((Pointer) plain != DatumGetPointer(value))
			pfree(plain);
	}
}

void
hyb_key_encode_column(const HybColumn *col, Datum value, bool isnull,
					  HybBuf *out)
{
	hyb_buf_reserve(out, 1 + sizeof(uint64));
	if (isnull)
	{
		out->data[out->len++] = hyb_null_flag(col);
		return;
	}
	out->data[out->len++] = HYB_FLAG_VALUE;

	if (col->store == HYB_STORE_INT)
	{
		uint64		v;

		v = col->codec != NULL && col->codec->to_int != NULL ?
			col->codec->to_int(value) : raw_bits(col, value);
		/* the type's values fit the column's bytes */
		Assert((v & ~hyb_width_mask(col->width)) == 0);
		hyb_store_int(out->data + out->len, hyb_inverted(col) ? ~v : v,
					  col->width);
		out->len += col->width;
	}
	else
		encode_bytes_column(col, value, out);
}

void
hyb_key_encode(const HybKeyDesc *desc, const Datum *values,
			   const bool *isnull, HybBuf *out, uint32 *keylen)
{
	out->len = 0;
	for (int i = 0; i < desc->nkeys; i++)
		hyb_key_encode_column(&desc->cols[i], values[i], isnull[i], out);
	Assert(out->len >= desc->nkeys);
	*keylen = out->len;
	for (int i = desc->nkeys; i < desc->natts; i++)
		hyb_key_encode_column(&desc->cols[i], values[i], isnull[i], out);
}

uint32
hyb_key_split(const HybKeyDesc *desc, const uint8 *key, uint32 len,
			  int ncols, HybValue *vals)
{
	const uint8 *p = key;
	const uint8 *end = key + len;

	Assert(ncols >= 0 && ncols <= desc->natts);
	for (int i = 0; i < ncols; i++)
	{
		p = hyb_parse_column(&desc->cols[i], p, end, &vals[i]);
		if (unlikely(p == NULL))
			return 0;
	}
	return p - key;
}

uint32
hyb_key_length(const HybKeyDesc *desc, const uint8 *entry, uint32 len)
{
	HybValue	vals[INDEX_MAX_KEYS];

	return hyb_key_split(desc, entry, len, desc->nkeys, vals);
}

void
hyb_key_join(const HybKeyDesc *desc, const HybValue *vals, int ncols,
			 HybBuf *out)
{
	Assert(ncols >= 0 && ncols <= desc->natts);
	for (int i = 0; i < ncols; i++)
	{
		const HybColumn *col = &desc->cols[i];
		const HybValue *val = &vals[i];

		hyb_buf_reserve(out, 1 + sizeof(uint64));
		out->data[out->len++] = hyb_value_flag(col, val);
		if (val->isnull)
			continue;
		if (col->store == HYB_STORE_INT)
		{
			hyb_store_int(out->data + out->len, val->ival, col->width);
			out->len += col->width;
			continue;
		}
		if (hyb_has_length_word(col))
			append_length_word(out, val->len);
		hyb_buf_reserve(out, val->len + 1);
		memcpy(out->data + out->len, val->ptr, val->len);
		out->len += val->len;
		if (col->terminated)
			out->data[out->len++] = hyb_terminator(col);
	}
}

/*
 * A by-reference column without a codec, as a Datum at `space`, which is
 * maximally aligned and has room for val->len bytes and a varlena header.
 */
static inline Datum
build_byref(const HybColumn *col, const HybValue *val, char *space)
{
	if (col->attlen > 0)
	{
		if (unlikely(val->len != col->attlen))
			malformed(col);
		memcpy(space, val->ptr, val->len);
	}
	else
	{
		SET_VARSIZE(space, val->len + VARHDRSZ);
		memcpy(VARDATA(space), val->ptr, val->len);
	}
	return PointerGetDatum(space);
}

/* A packed value */
static pg_noinline Datum
unpack_value(const HybColumn *col, const HybValue *val)
{
	struct varlena *result = long_unpack(val);

	if (result == NULL)
		malformed(col);
	return PointerGetDatum(result);
}

static inline Datum
decode_bytes(const HybColumn *col, const uint8 *data, uint32 len)
{
	if (col->codec->decode != NULL)
		return col->codec->decode(col, data, len);
	return col->codec->from_bytes(data, len);
}

/* The same of a long value */
static pg_noinline Datum
decode_long(const HybColumn *col, const uint8 *data, uint32 len)
{
	uint32		whole;
	uint8	   *bytes = long_restore(col, data, len, &whole);
	Datum		result;

	if (bytes == NULL)
		malformed(col);
	result = decode_bytes(col, bytes, whole);
	pfree(bytes);
	return result;
}

/* Of an integer column */
static inline Datum
decode_int(const HybColumn *col, uint64 v)
{
	if (hyb_inverted(col))
		v = ~v & hyb_width_mask(col->width);
	return col->codec != NULL && col->codec->from_int != NULL ?
		col->codec->from_int(v) : raw_datum(col, v);
}

void
hyb_ints_decode(const HybColumn *col, const uint64 *ints, int n, Datum *values)
{
	Datum		(*from_int) (uint64 value) = col->codec != NULL ? col->codec->from_int : NULL;
	uint64		invert = hyb_inverted(col) ? hyb_width_mask(col->width) : 0;

	Assert(col->store == HYB_STORE_INT);
	for (int i = 0; i < n; i++)
		values[i] = from_int != NULL ? from_int(ints[i] ^ invert) :
			raw_datum(col, ints[i] ^ invert);
}

Datum
hyb_value_decode(const HybColumn *col, const HybValue *val)
{
	uint8		plain[STACK_VALUE];
	uint8	   *copy;
	Datum		result;

	if (val->isnull)
		return (Datum) 0;

	if (col->store == HYB_STORE_INT)
		return decode_int(col, val->ival);
	if (col->codec == NULL && unlikely(val->ival != 0))
		return unpack_value(col, val);
	if (col->codec == NULL)
		return build_byref(col, val, palloc((Size) val->len + VARHDRSZ));
	if (!hyb_inverted(col))
		return unlikely(hyb_is_long(col, val->len)) ?
			decode_long(col, val->ptr, val->len) :
			decode_bytes(col, val->ptr, val->len);

	copy = val->len <= sizeof(plain) ? plain : palloc(val->len);
	for (uint32 i = 0; i < val->len; i++)
		copy[i] = ~val->ptr[i];
	result = unlikely(hyb_is_long(col, val->len)) ?
		decode_long(col, copy, val->len) :
		decode_bytes(col, copy, val->len);
	if (copy != plain)
		pfree(copy);
	return result;
}

static inline void
build_scratch(const HybColumn *col, const HybValue *val,
			  ScratchDatum *scratch)
{
	scratch->allocated = NULL;
	if (col->store == HYB_STORE_INT)
		scratch->datum = raw_datum(col, val->ival);
	else if (unlikely(val->ival != 0))
	{
		scratch->datum = unpack_value(col, val);
		scratch->allocated = DatumGetPointer(scratch->datum);
	}
	else if (val->len <= STACK_VALUE)
		scratch->datum = build_byref(col, val, scratch->space.data);
	else
	{
		scratch->allocated = palloc((Size) val->len + VARHDRSZ);
		scratch->datum = build_byref(col, val, scratch->allocated);
	}
}

bool
hyb_value_is_pure(const HybColumn *col, const HybValue *val)
{
	uint32		offset;

	if (val->isnull || col->pure == HYB_PURE)
		return true;
	if (col->pure == HYB_IMPURE)
		return false;
	if (!OidIsValid(col->part))
		return (val->ival & 1) == 0;	/* an enum */
	offset = hyb_pure_part_offset(col->order_proc->fn_oid);
	return val->ival == 0 && val->len >= offset + sizeof(Oid) &&
		memcmp(val->ptr + offset, &col->part, sizeof(Oid)) == 0;
}

bool
hyb_columns_are_pure(const HybKeyDesc *desc, int ncols, const uint8 *key, uint32 len)
{
	const uint8 *p = key;

	for (int i = 0; i < ncols; i++)
	{
		HybValue	val;

		p = hyb_parse_column(&desc->cols[i], p, key + len, &val);
		/* damaged bytes are reported where they are compared */
		if (p == NULL || !hyb_value_is_pure(&desc->cols[i], &val))
			return false;
	}
	return true;
}

/* Two values of a comparator column, ascending order. */
static int
compare_by_proc(const HybColumn *col, const HybValue *a, const HybValue *b)
{
	ScratchDatum sa;
	ScratchDatum sb;
	int			result;

	Assert(col->order_proc != NULL && !a->isnull && !b->isnull);
	/* Equal images are equal values: any operator class promises that. */
	if (a->ival == b->ival &&
		(col->store == HYB_STORE_INT ||
		 (a->len == b->len && memcmp(a->ptr, b->ptr, a->len) == 0)))
		return 0;

	Assert(CritSectionCount == 0);
	Assert(InterruptHoldoffCount == 0 ||
		   (!col->unread && hyb_value_is_pure(col, a) && hyb_value_is_pure(col, b)));
	build_scratch(col, a, &sa);
	build_scratch(col, b, &sb);
	if (InterruptHoldoffCount > 0)
		hyb_mute_until_abort();
	result = DatumGetInt32(FunctionCall2Coll(col->order_proc, col->collation,
											 sa.datum, sb.datum));
	if (InterruptHoldoffCount > 0)
		hyb_mute_not_needed();
	if (sa.allocated)
		pfree(sa.allocated);
	if (sb.allocated)
		pfree(sb.allocated);
	return (result > 0) - (result < 0);
}

/* Is this the encoding of a floating-point zero, of either sign? */
static inline bool
is_float_zero(uint64 v, int width)
{
	uint64		positive = UINT64CONST(1) << (8 * width - 1);

	return v == positive || v == positive - 1;
}

int
hyb_value_compare_full(const HybColumn *col, const HybValue *a,
					   const HybValue *b)
{
	int			c;

	if (unlikely(a->isnull || b->isnull))
	{
		if (a->isnull && b->isnull)
			return 0;
		return (a->isnull == col->nulls_first) ? -1 : 1;
	}

	if (col->compare == HYB_COMPARE_PROC)
	{
		c = compare_by_proc(col, a, b);
		return col->desc ? -c : c;
	}

	if (col->store == HYB_STORE_INT)
	{
		c = (a->ival > b->ival) - (a->ival < b->ival);
		if (col->compare == HYB_COMPARE_FLOAT)
		{
			if (c != 0 && is_float_zero(a->ival, col->width) &&
				is_float_zero(b->ival, col->width))
				c = 0;
			if (col->desc)
				c = -c;
		}
		return c;
	}

	c = memcmp(a->ptr, b->ptr, Min(a->len, b->len));
	if (c != 0 || a->len == b->len)
		return (c > 0) - (c < 0);

	/* A prefix sorts by its terminator: 0x00, or 0xFF where inverted. */
	c = (a->len > b->len) - (a->len < b->len);
	return col->desc ? -c : c;
}

int
hyb_columns_compare(const HybKeyDesc *desc, int ncols,
					const uint8 *a, uint32 alen,
					const uint8 *b, uint32 blen)
{
	const uint8 *aend = a + alen;
	const uint8 *bend = b + blen;

	Assert(ncols > 0 && ncols <= desc->nkeys);
	for (int i = 0; i < ncols; i++)
	{
		const HybColumn *col = &desc->cols[i];
		HybValue	va;
		HybValue	vb;
		int			c;

		a = hyb_parse_column(col, a, aend, &va);
		b = hyb_parse_column(col, b, bend, &vb);
		if (unlikely(a == NULL || b == NULL))
			malformed(col);
		c = hyb_value_compare(col, &va, &vb);
		if (c != 0)
			return c < 0 ? -(i + 1) : i + 1;
	}
	return 0;
}

int
hyb_key_compare(const HybKeyDesc *desc, const uint8 *a, uint32 alen,
				const uint8 *b, uint32 blen)
{
	if (likely(desc->all_mem))
	{
		int			c = memcmp(a, b, Min(alen, blen));

		if (c != 0)
			return c;
		return (alen > blen) - (alen < blen);
	}
	return hyb_columns_compare(desc, desc->nkeys, a, alen, b, blen);
}

bool
hyb_key_has_one_form(const HybKeyDesc *desc, const uint8 *key, uint32 keylen)
{
	const uint8 *p = key;

	/* what memcmp orders has no length words */
	if (desc->all_mem || !desc->exact)
		return desc->exact;
	for (int i = 0; i < desc->nkeys; i++)
	{
		const HybColumn *col = &desc->cols[i];
		HybValue	val;

		p = hyb_parse_column(col, p, key + keylen, &val);
		if (p == NULL || !hyb_value_has_one_form(col, &val))
			return false;
	}
	return true;
}

uint64
hyb_key_hash(const uint8 *key, uint32 keylen)
{
	uint64		hash = hash_bytes_extended(key, keylen, 0);

	Assert(keylen > 0);
	/* 0 means "no hash" to callers */
	return hash != 0 ? hash : 1;
}
