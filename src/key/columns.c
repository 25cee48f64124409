/*
 * columns.c
 *		Encoding, splitting, decoding and comparing index keys.
 *
 * The form of an entry is described in key.h.  Comparing two keys of an
 * all_mem index is one memcmp; other keys are compared column by column,
 * where only comparator columns are turned back into Datums, on the stack.
 */
#include "base/compat.h"

#include "access/tupmacs.h"
#include "key/bytes.h"
#include "key/long_values.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#define HYB_BUF_MIN		256

/* Values up to this size are rebuilt on the stack for a comparison. */
#define HYB_STACK_VALUE	1024

/* A Datum rebuilt for a comparison function. */
typedef struct HybScratchDatum
{
	Datum		datum;
	void	   *allocated;		/* pfree afterwards, or NULL */
	union
	{
		char		data[HYB_STACK_VALUE + VARHDRSZ];
		double		align_double;
		int64		align_int64;
	}			space;
} HybScratchDatum;

/* Slow path of hyb_buf_reserve. */
void
hyb_buf_enlarge(HybBuf *buf, uint32 extra)
{
	Size		need = (Size) buf->len + extra;
	Size		cap = Max((Size) buf->cap * 2, HYB_BUF_MIN);

	Assert(buf->len <= buf->cap && (buf->data != NULL || buf->cap == 0));
	if (need > MaxAllocSize)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("index key is too large")));
	cap = Min(Max(cap, need), MaxAllocSize);
	if (buf->context != NULL)
	{
		uint8	   *data = MemoryContextAlloc(buf->context, cap);

		memcpy(data, buf->data, buf->len);
		buf->data = data;
		buf->context = NULL;
	}
	else if (buf->data == NULL)
		buf->data = palloc(cap);
	else
		buf->data = repalloc(buf->data, cap);
	buf->cap = cap;
	Assert(buf->cap - buf->len >= extra);
}

/* Names the column's index. */
static HYB_NORETURN void
malformed(const HybColumn *col)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is corrupted", col->index_name),
			 errdetail("A key is malformed."),
			 errhint("Please REINDEX it.")));
	pg_unreachable();
}

/* Bits of a by-value Datum of a column without a codec. */
static inline uint64
hyb_raw_bits(const HybColumn *col, Datum value)
{
	return (uint64) value & hyb_width_mask(col->width);
}

/* And back, as the type's own macros would have built it. */
static inline Datum
hyb_raw_datum(const HybColumn *col, uint64 bits)
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
			return (Datum) bits;
	}
}

static void
hyb_append_length_word(HybBuf *out, uint32 len)
{
	hyb_buf_append(out, &len, sizeof(len));
}

static void
hyb_encode_bytes(const HybColumn *col, Datum value, HybBuf *out)
{
	if (col->codec != NULL)
	{
		uint32		start;

		Assert(col->store == HYB_STORE_BYTES);
		if (hyb_has_length_word(col))
			hyb_append_length_word(out, 0);
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
			hyb_long_shorten(col, out, start);
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
			hyb_append_length_word(out, col->attlen);
		hyb_buf_append(out, DatumGetPointer(value), col->attlen);
	}
	else
	{
		struct varlena *plain = PG_DETOAST_DATUM_PACKED(value);
		uint32		len = VARSIZE_ANY_EXHDR(plain);

		if (likely(!hyb_is_long(col, len)) || !hyb_long_pack(plain, out))
		{
			hyb_append_length_word(out, len);
			hyb_buf_append(out, VARDATA_ANY(plain), len);
		}
		if ((Pointer) plain != DatumGetPointer(value))
			pfree(plain);
	}
}

static inline void
hyb_encode_one(const HybColumn *col, Datum value, bool isnull, HybBuf *out)
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

		v = col->codec ? col->codec->to_int(value) : hyb_raw_bits(col, value);
		/* the type's values fit the column's bytes */
		Assert((v & ~hyb_width_mask(col->width)) == 0);
		hyb_store_int(out->data + out->len, hyb_inverted(col) ? ~v : v,
					  col->width);
		out->len += col->width;
	}
	else
		hyb_encode_bytes(col, value, out);
}

void
hyb_key_encode_column(const HybColumn *col, Datum value, bool isnull,
					  HybBuf *out)
{
	hyb_encode_one(col, value, isnull, out);
}

void
hyb_key_encode(const HybKeyDesc *desc, const Datum *values,
			   const bool *isnull, HybBuf *out, uint32 *keylen)
{
	out->len = 0;
	for (int i = 0; i < desc->nkeys; i++)
		hyb_encode_one(&desc->cols[i], values[i], isnull[i], out);
	Assert(out->len >= desc->nkeys);
	*keylen = out->len;
	for (int i = desc->nkeys; i < desc->natts; i++)
		hyb_encode_one(&desc->cols[i], values[i], isnull[i], out);
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
	const uint8 *p = entry;
	const uint8 *end = entry + len;
	HybValue	ignored;

	for (int i = 0; i < desc->nkeys; i++)
	{
		p = hyb_parse_column(&desc->cols[i], p, end, &ignored);
		if (unlikely(p == NULL))
			return 0;
	}
	return p - entry;
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
			hyb_append_length_word(out, val->len);
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
hyb_build_byref(const HybColumn *col, const HybValue *val, char *space)
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
hyb_unpack(const HybColumn *col, const HybValue *val)
{
	struct varlena *result = hyb_long_unpack(val);

	if (result == NULL)
		malformed(col);
	return PointerGetDatum(result);
}

static inline Datum
hyb_bytes_decode(const HybColumn *col, const uint8 *data, uint32 len)
{
	if (col->codec->decode != NULL)
		return col->codec->decode(col, data, len);
	return col->codec->from_bytes(data, len);
}

/* The same of a long value */
static pg_noinline Datum
hyb_long_decode(const HybColumn *col, const uint8 *data, uint32 len)
{
	uint32		whole;
	uint8	   *bytes = hyb_long_restore(col, data, len, &whole);
	Datum		result;

	if (bytes == NULL)
		malformed(col);
	result = hyb_bytes_decode(col, bytes, whole);
	pfree(bytes);
	return result;
}

/* Of an integer column */
static inline Datum
hyb_int_decode(const HybColumn *col, uint64 v)
{
	if (hyb_inverted(col))
		v = ~v & hyb_width_mask(col->width);
	return col->codec ? col->codec->from_int(v) : hyb_raw_datum(col, v);
}

void
hyb_ints_decode(const HybColumn *col, const uint64 *ints, int n, Datum *values)
{
	Assert(col->store == HYB_STORE_INT);
	for (int i = 0; i < n; i++)
		values[i] = hyb_int_decode(col, ints[i]);
}

Datum
hyb_value_decode(const HybColumn *col, const HybValue *val)
{
	uint8		plain[HYB_STACK_VALUE];
	uint8	   *copy;
	Datum		result;

	if (val->isnull)
		return (Datum) 0;

	if (col->store == HYB_STORE_INT)
		return hyb_int_decode(col, val->ival);
	if (col->codec == NULL && unlikely(val->ival != 0))
		return hyb_unpack(col, val);
	if (col->codec == NULL)
		return hyb_build_byref(col, val, palloc((Size) val->len + VARHDRSZ));
	if (!hyb_inverted(col))
		return unlikely(hyb_is_long(col, val->len)) ?
			hyb_long_decode(col, val->ptr, val->len) :
			hyb_bytes_decode(col, val->ptr, val->len);

	copy = val->len <= sizeof(plain) ? plain : palloc(val->len);
	for (uint32 i = 0; i < val->len; i++)
		copy[i] = ~val->ptr[i];
	result = unlikely(hyb_is_long(col, val->len)) ?
		hyb_long_decode(col, copy, val->len) :
		hyb_bytes_decode(col, copy, val->len);
	if (copy != plain)
		pfree(copy);
	return result;
}

static inline void
hyb_scratch_build(const HybColumn *col, const HybValue *val,
				  HybScratchDatum *scratch)
{
	scratch->allocated = NULL;
	if (col->store == HYB_STORE_INT)
		scratch->datum = hyb_raw_datum(col, val->ival);
	else if (unlikely(val->ival != 0))
	{
		scratch->datum = hyb_unpack(col, val);
		scratch->allocated = DatumGetPointer(scratch->datum);
	}
	else if (val->len <= HYB_STACK_VALUE)
		scratch->datum = hyb_build_byref(col, val, scratch->space.data);
	else
	{
		scratch->allocated = palloc((Size) val->len + VARHDRSZ);
		scratch->datum = hyb_build_byref(col, val, scratch->allocated);
	}
}

void
hyb_locks_lost(Oid function)
{
	char	   *name = get_func_name(function);

	ereport(ERROR,
			(errcode(ERRCODE_EXTERNAL_ROUTINE_EXCEPTION),
			 errmsg("function \"%s\" rolled back a subtransaction while a hybrid index was searched with it",
					name ? name : "?"),
			 errdetail("That releases all lightweight locks, those of the search included."),
			 errhint("Functions of operators that are indexed must not catch errors.")));
}

/* Two values of a comparator column, ascending order. */
static int
hyb_proc_compare(const HybColumn *col, const HybValue *a, const HybValue *b)
{
	HybScratchDatum sa;
	HybScratchDatum sb;
	int			result;

	Assert(col->order_proc != NULL && !a->isnull && !b->isnull);
	/* Equal images are equal values: any operator class promises that. */
	if (a->ival == b->ival &&
		(col->store == HYB_STORE_INT ||
		 (a->len == b->len && memcmp(a->ptr, b->ptr, a->len) == 0)))
		return 0;

	hyb_scratch_build(col, a, &sa);
	hyb_scratch_build(col, b, &sb);
	result = DatumGetInt32(hyb_call_function(col->order_proc, col->collation,
											 sa.datum, sb.datum));
	if (sa.allocated)
		pfree(sa.allocated);
	if (sb.allocated)
		pfree(sb.allocated);
	return (result > 0) - (result < 0);
}

/* Is this the encoding of a floating-point zero, of either sign? */
static inline bool
hyb_is_float_zero(uint64 v, int width)
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
		c = hyb_proc_compare(col, a, b);
		return col->desc ? -c : c;
	}

	if (col->store == HYB_STORE_INT)
	{
		c = (a->ival > b->ival) - (a->ival < b->ival);
		if (col->compare == HYB_COMPARE_FLOAT)
		{
			if (c != 0 && hyb_is_float_zero(a->ival, col->width) &&
				hyb_is_float_zero(b->ival, col->width))
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
