/*
 * bytes.h
 *		Column encodings, byte by byte: what columns.c and position.c share.
 */
#ifndef HYB_BYTES_H
#define HYB_BYTES_H

#include "base/compat.h"

#include "key/key.h"
#include "port/pg_bswap.h"

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
			for (int i = 0; i < width; i++)
				dst[i] = (uint8) (v >> (8 * (width - 1 - i)));
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

static inline uint8
hyb_null_flag(const HybColumn *col)
{
	return col->nulls_first ? HYB_FLAG_NULL_FIRST : HYB_FLAG_NULL_LAST;
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
 * Order of two comparator or mixed keys' first ncols columns.  If not 0 the
 * number says, too, how many of these columns tell the keys apart.
 */
extern int	hyb_columns_compare(const HybKeyDesc *desc, int ncols,
								const uint8 *a, uint32 alen,
								const uint8 *b, uint32 blen);

#endif							/* HYB_BYTES_H */
