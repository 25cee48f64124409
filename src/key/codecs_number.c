/*
 * codecs_number.c
 *		Codecs of types that are stored as an integer of at most 8 bytes: integers,
 *		floating-point numbers, and short strings of bytes.
 */
#include "key/codec.h"

#include <math.h>

#include "access/transam.h"
#include "catalog/pg_type.h"
#include "utils/float.h"
#include "utils/inet.h"
#include "utils/pg_lsn.h"
#include "utils/xid8.h"

/* ---- bool, "char", oid ---- */

static uint64
bool_to_int(Datum value)
{
	return DatumGetBool(value) ? 1 : 0;
}

static Datum
bool_from_int(uint64 value)
{
	return BoolGetDatum(value != 0);
}

const HybCodec hyb_codec_bool =
HYB_INT_CODEC("bool", 1, HYB_COMPARE_MEM, bool_to_int, bool_from_int, NULL);

/* btcharcmp compares as unsigned, whatever the platform's char is */
static uint64
char_to_int(Datum value)
{
	return (uint8) DatumGetChar(value);
}

static Datum
char_from_int(uint64 value)
{
	return CharGetDatum((char) value);
}

const HybCodec hyb_codec_char =
HYB_INT_CODEC("char", 1, HYB_COMPARE_MEM, char_to_int, char_from_int, NULL);

static uint64
oid_to_int(Datum value)
{
	return DatumGetObjectId(value);
}

/* Sign-extended, as fetch_att gives it: image comparisons see all the bits */
static Datum
oid_from_int(uint64 value)
{
	return Int32GetDatum((int32) value);
}

const HybCodec hyb_codec_oid =
HYB_INT_CODEC("oid", 4, HYB_COMPARE_MEM, oid_to_int, oid_from_int, NULL);

/* ---- int2, int4, int8 ---- */

static uint64
int2_to_int(Datum value)
{
	return (uint16) DatumGetInt16(value) ^ 0x8000;
}

static Datum
int2_from_int(uint64 value)
{
	return Int16GetDatum((int16) ((uint16) value ^ 0x8000));
}

static uint64
int4_to_int(Datum value)
{
	return hyb_order_int32(DatumGetInt32(value));
}

static Datum
int4_from_int(uint64 value)
{
	return Int32GetDatum(hyb_unorder_int32(value));
}

static uint64
int8_to_int(Datum value)
{
	return hyb_order_int64(DatumGetInt64(value));
}

static Datum
int8_from_int(uint64 value)
{
	return Int64GetDatum(hyb_unorder_int64(value));
}

/*
 * An integer of any width as a position in the type whose greatest value is
 * max; false if subtype is another type.
 */
static bool
integer_cast(Oid subtype, Datum value, int64 max, HybCast *out)
{
	int64		v;

	switch (subtype)
	{
		case INT2OID:
			v = DatumGetInt16(value);
			break;
		case INT4OID:
			v = DatumGetInt32(value);
			break;
		case INT8OID:
			v = DatumGetInt64(value);
			break;
		default:
			return false;
	}
	out->below_all = v < -max - 1;
	out->above_all = v > max;
	out->exact = !out->below_all && !out->above_all;
	/* Datums of int2 and int4 are the same */
	out->lo = out->hi = max == PG_INT64_MAX ? Int64GetDatum(v) :
		Int32GetDatum((int32) v);
	return true;
}

static bool
int2_cast(Oid subtype, Datum value, HybCast *out)
{
	return integer_cast(subtype, value, PG_INT16_MAX, out);
}

static bool
int4_cast(Oid subtype, Datum value, HybCast *out)
{
	return integer_cast(subtype, value, PG_INT32_MAX, out);
}

static bool
int8_cast(Oid subtype, Datum value, HybCast *out)
{
	return integer_cast(subtype, value, PG_INT64_MAX, out);
}

const HybCodec hyb_codec_int2 =
HYB_INT_CODEC("int2", 2, HYB_COMPARE_MEM, int2_to_int, int2_from_int,
			  int2_cast);

const HybCodec hyb_codec_int4 =
HYB_INT_CODEC("int4", 4, HYB_COMPARE_MEM, int4_to_int, int4_from_int,
			  int4_cast);

const HybCodec hyb_codec_int8 =
HYB_INT_CODEC("int8", 8, HYB_COMPARE_MEM, int8_to_int, int8_from_int,
			  int8_cast);

/* ---- money, pg_lsn, xid8, tid ---- */

/* Cash is an int64 */
const HybCodec hyb_codec_money =
HYB_INT_CODEC("money", 8, HYB_COMPARE_MEM, int8_to_int, int8_from_int, NULL);

static uint64
pg_lsn_to_int(Datum value)
{
	return DatumGetLSN(value);
}

static Datum
pg_lsn_from_int(uint64 value)
{
	return LSNGetDatum(value);
}

const HybCodec hyb_codec_pg_lsn =
HYB_INT_CODEC("pg_lsn", 8, HYB_COMPARE_MEM, pg_lsn_to_int, pg_lsn_from_int,
			  NULL);

static uint64
xid8_to_int(Datum value)
{
	return U64FromFullTransactionId(DatumGetFullTransactionId(value));
}

static Datum
xid8_from_int(uint64 value)
{
	return FullTransactionIdGetDatum(FullTransactionIdFromU64(value));
}

const HybCodec hyb_codec_xid8 =
HYB_INT_CODEC("xid8", 8, HYB_COMPARE_MEM, xid8_to_int, xid8_from_int, NULL);

/* Invalid TIDs are values of the type like others, hence "NoCheck". */
static uint64
tid_to_int(Datum value)
{
	ItemPointer tid = (ItemPointer) DatumGetPointer(value);

	return ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static Datum
tid_from_int(uint64 value)
{
	ItemPointer tid = palloc(sizeof(ItemPointerData));

	ItemPointerSet(tid, (BlockNumber) (value >> 16),
				   (OffsetNumber) (value & 0xFFFF));
	return PointerGetDatum(tid);
}

const HybCodec hyb_codec_tid =
HYB_INT_CODEC("tid", 6, HYB_COMPARE_MEM, tid_to_int, tid_from_int, NULL);

/* ---- macaddr, macaddr8 ---- */

/* Both types are structs of as many bytes, the most significant first. */
static inline uint64
mac_to_int(const uint8 *bytes, int len)
{
	uint64		v = 0;

	for (int i = 0; i < len; i++)
		v = (v << 8) | bytes[i];
	return v;
}

static inline Datum
mac_from_int(uint64 v, int len)
{
	uint8	   *bytes = palloc(len);

	for (int i = len - 1; i >= 0; i--)
	{
		bytes[i] = (uint8) v;
		v >>= 8;
	}
	return PointerGetDatum(bytes);
}

static uint64
macaddr_to_int(Datum value)
{
	return mac_to_int((uint8 *) DatumGetMacaddrP(value), sizeof(macaddr));
}

static Datum
macaddr_from_int(uint64 value)
{
	return mac_from_int(value, sizeof(macaddr));
}

static uint64
macaddr8_to_int(Datum value)
{
	return mac_to_int((uint8 *) DatumGetMacaddr8P(value), sizeof(macaddr8));
}

static Datum
macaddr8_from_int(uint64 value)
{
	return mac_from_int(value, sizeof(macaddr8));
}

const HybCodec hyb_codec_macaddr =
HYB_INT_CODEC("macaddr", sizeof(macaddr), HYB_COMPARE_MEM, macaddr_to_int,
			  macaddr_from_int, NULL);

const HybCodec hyb_codec_macaddr8 =
HYB_INT_CODEC("macaddr8", sizeof(macaddr8), HYB_COMPARE_MEM, macaddr8_to_int,
			  macaddr8_from_int, NULL);

/*
 * ---- float4, float8 ----
 *
 * The usual order-preserving mapping of IEEE 754 bits: negative numbers are
 * inverted whole, others get their sign bit set.  All NaNs become one, which sorts
 * above infinity, as float8_cmp_internal has it.  -0 and +0 stay neighbours that
 * HYB_COMPARE_FLOAT takes for equal, so an index-only scan returns the sign that
 * was stored.
 */

static uint64
float4_to_int(Datum value)
{
	float4		v = DatumGetFloat4(value);
	uint32		bits;

	if (unlikely(isnan(v)))
		v = get_float4_nan();
	memcpy(&bits, &v, sizeof(bits));
	if (unlikely(isnan(v)))
		bits &= ~((uint32) 1 << 31);
	return (bits >> 31) ? (uint32) ~bits : bits | ((uint32) 1 << 31);
}

static Datum
float4_from_int(uint64 value)
{
	uint32		bits = (uint32) value;
	float4		v;

	bits = (bits >> 31) ? bits & ~((uint32) 1 << 31) : ~bits;
	memcpy(&v, &bits, sizeof(v));
	return Float4GetDatum(v);
}

static uint64
float8_to_int(Datum value)
{
	float8		v = DatumGetFloat8(value);
	uint64		bits;

	if (unlikely(isnan(v)))
		v = get_float8_nan();
	memcpy(&bits, &v, sizeof(bits));
	if (unlikely(isnan(v)))
		bits &= ~(UINT64CONST(1) << 63);
	return (bits >> 63) ? ~bits : bits | (UINT64CONST(1) << 63);
}

static Datum
float8_from_int(uint64 value)
{
	uint64		bits;
	float8		v;

	bits = (value >> 63) ? value & ~(UINT64CONST(1) << 63) : ~value;
	memcpy(&v, &bits, sizeof(v));
	return Float8GetDatum(v);
}

/* Operators of both types compare as float8, so float8 lies between float4s. */
static bool
float4_cast(Oid subtype, Datum value, HybCast *out)
{
	float8		wide;
	float4		v;

	if (subtype != FLOAT8OID)
		return false;

	wide = DatumGetFloat8(value);
	if (isnan(wide))
	{
		out->lo = out->hi = Float4GetDatum(get_float4_nan());
		return true;
	}

	v = (float4) wide;
	out->lo = out->hi = Float4GetDatum(v);
	if ((float8) v < wide)
	{
		out->exact = false;
		out->hi = Float4GetDatum(nextafterf(v, get_float4_infinity()));
	}
	else if ((float8) v > wide)
	{
		out->exact = false;
		out->lo = Float4GetDatum(nextafterf(v, -get_float4_infinity()));
	}
	return true;
}

static bool
float8_cast(Oid subtype, Datum value, HybCast *out)
{
	if (subtype != FLOAT4OID)
		return false;
	out->lo = out->hi = Float8GetDatum((float8) DatumGetFloat4(value));
	return true;
}

const HybCodec hyb_codec_float4 =
HYB_INT_CODEC("float4", 4, HYB_COMPARE_FLOAT, float4_to_int, float4_from_int,
			  float4_cast);

const HybCodec hyb_codec_float8 =
HYB_INT_CODEC("float8", 8, HYB_COMPARE_FLOAT, float8_to_int, float8_from_int,
			  float8_cast);
