/*
 * codecs_int.c
 *		Codecs of types that are stored as an integer of at most 8 bytes: integers,
 *		floating-point numbers, short strings of bytes, dates and times.
 */
#include "key/codec.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "datatype/timestamp.h"
#include "pgtime.h"
#include "utils/date.h"
#include "utils/float.h"
#include "utils/inet.h"
#include "utils/timestamp.h"

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
	return (uint32) DatumGetInt32(value) ^ ((uint32) 1 << 31);
}

static Datum
int4_from_int(uint64 value)
{
	return Int32GetDatum((int32) ((uint32) value ^ ((uint32) 1 << 31)));
}

static uint64
int8_to_int(Datum value)
{
	return (uint64) DatumGetInt64(value) ^ (UINT64CONST(1) << 63);
}

static Datum
int8_from_int(uint64 value)
{
	return Int64GetDatum((int64) (value ^ (UINT64CONST(1) << 63)));
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

/* ---- tid, macaddr, macaddr8 ---- */

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

/* MAC addresses are structs of as many bytes, the most significant first. */
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

/*
 * ---- date, time, timestamp, timestamptz ----
 *
 * All are signed integers with their infinities at the ends of the range: a date
 * is an int4, the others are int8, and so are their images.
 *
 * Cross-type comparison follows date_cmp_timestamp and its relatives
 * (utils/adt/date.c, timestamp.c).  The type without a time zone is cast, with the
 * session's zone if the other type has one.  That is exact for a constant.  For a
 * column we have to cast the constant the other way, which keeps the order only
 * while the zone's offset does not change.  Near a change of offset the position is
 * as wide as the offsets differ.
 */

/*
 * Days around an instant in which a change of offset can matter.  Offsets of
 * a zone differ by little more than a day (a place that crossed the date
 * line), and the server looks for the offset of a local time up to a day away.
 */
#define HYB_ZONE_MARGIN_DAYS	3

/*
 * Set a position at a timestamp (of either kind) that the server's cast gave, or
 * beside all finite ones if it did not fit.
 */
static void
timestamp_position(Timestamp ts, int overflow, HybCast *out)
{
	Timestamp	below = ts;
	Timestamp	above = ts;

	out->exact = overflow == 0;
	if (overflow > 0)
	{
		/* above all finite timestamps, below infinity */
		below = END_TIMESTAMP - 1;
		TIMESTAMP_NOEND(above);
	}
	else if (overflow < 0)
	{
		TIMESTAMP_NOBEGIN(below);
		above = MIN_TIMESTAMP;
	}
	out->lo = TimestampGetDatum(below);
	out->hi = TimestampGetDatum(above);
}

/*
 * The local times that may equal an instant, which is finite, lie in [*hi, *lo].  They
 * are its local times by the offsets in force around it, mostly a single one.  They may
 * lie beyond what a timestamp can hold.
 */
static void
timestamptz_locals(TimestampTz instant, Timestamp *lo, Timestamp *hi)
{
	pg_time_t	from = timestamptz_to_time_t(instant) -
		HYB_ZONE_MARGIN_DAYS * SECS_PER_DAY;
	pg_time_t	end = from + 2 * HYB_ZONE_MARGIN_DAYS * SECS_PER_DAY;
	int64		least = PG_INT64_MAX;
	int64		greatest = PG_INT64_MIN;
	pg_time_t	boundary;
	long int	before_gmtoff;
	long int	after_gmtoff;
	int			before_isdst;
	int			after_isdst;

	for (;;)
	{
		int			changes = pg_next_dst_boundary(&from, &before_gmtoff,
												   &before_isdst, &boundary,
												   &after_gmtoff, &after_isdst,
												   session_timezone);

		if (changes < 0)
			before_gmtoff = 0;	/* as the server has it */
		least = Min(least, before_gmtoff);
		greatest = Max(greatest, before_gmtoff);
		if (changes <= 0 || boundary > end)
			break;
		from = boundary;
	}
	*lo = instant + greatest * USECS_PER_SEC;
	*hi = instant + least * USECS_PER_SEC;
	Assert(*hi <= *lo && *lo - *hi <= HYB_ZONE_MARGIN_DAYS * USECS_PER_DAY);
}

/* The day that a finite timestamp falls on. */
static DateADT
timestamp_day(Timestamp ts)
{
	int64		day = ts / USECS_PER_DAY;

	if (ts % USECS_PER_DAY < 0)
		day--;
	return (DateADT) day;
}

/* A date column: dates stand for their midnight. */
static bool
date_cast(Oid subtype, Datum value, HybCast *out)
{
	Timestamp	lo;
	Timestamp	hi;
	DateADT		below;
	DateADT		above;

	if (subtype != TIMESTAMPOID && subtype != TIMESTAMPTZOID)
		return false;

	lo = hi = DatumGetTimestamp(value);
	if (TIMESTAMP_NOT_FINITE(lo))
	{
		if (TIMESTAMP_IS_NOBEGIN(lo))
			DATE_NOBEGIN(below);
		else
			DATE_NOEND(below);
		out->lo = out->hi = DateADTGetDatum(below);
		return true;
	}

	if (subtype == TIMESTAMPTZOID)
		timestamptz_locals(lo, &lo, &hi);
	out->exact = lo == hi;
	/* dates too late for a timestamp lie above every finite one */
	lo = Min(lo, END_TIMESTAMP - 1);
	hi = Min(hi, END_TIMESTAMP);
	below = timestamp_day(lo);
	above = timestamp_day(hi + USECS_PER_DAY - 1);
	out->exact &= below == above;
	out->lo = DateADTGetDatum(below);
	out->hi = DateADTGetDatum(above);
	return true;
}

static bool
timestamp_cast(Oid subtype, Datum value, HybCast *out)
{
	Timestamp	ts;
	Timestamp	lo;
	Timestamp	hi;
	int			overflow = 0;

	switch (subtype)
	{
		case DATEOID:
			ts = date2timestamp_opt_overflow(DatumGetDateADT(value),
											 &overflow);
			timestamp_position(ts, overflow, out);
			return true;
		case TIMESTAMPTZOID:
			lo = hi = DatumGetTimestampTz(value);
			if (!TIMESTAMP_NOT_FINITE(lo))
				timestamptz_locals(lo, &lo, &hi);
			out->exact = lo == hi;
			out->lo = TimestampGetDatum(lo);
			out->hi = TimestampGetDatum(hi);
			return true;
		default:
			return false;
	}
}

static bool
timestamptz_cast(Oid subtype, Datum value, HybCast *out)
{
	TimestampTz ts;
	int			overflow = 0;

	switch (subtype)
	{
		case TIMESTAMPOID:
			ts = timestamp2timestamptz_opt_overflow(DatumGetTimestamp(value),
													&overflow);
			break;
		case DATEOID:
			ts = date2timestamptz_opt_overflow(DatumGetDateADT(value),
											   &overflow);
			break;
		default:
			return false;
	}
	timestamp_position(ts, overflow, out);
	return true;
}

/* ---- the codecs ---- */

#define CODEC(typid_, name_, width_, to_, from_, ...) \
	{ \
		.typid = (typid_), .name = (name_), .store = HYB_STORE_INT, \
		.width = (width_), .to_int = (to_), .from_int = (from_), __VA_ARGS__ \
	}

/* bool, "char" and oid are unsigned, as btree compares them. */
static const HybCodec codecs[] = {
	CODEC(BOOLOID, "bool", 1, NULL, NULL,),
	CODEC(CHAROID, "char", 1, NULL, NULL,),
	CODEC(OIDOID, "oid", 4, NULL, NULL,),
	CODEC(INT2OID, "int2", 2, int2_to_int, int2_from_int,.cast = int2_cast),
	CODEC(INT4OID, "int4", 4, int4_to_int, int4_from_int,.cast = int4_cast),
	CODEC(INT8OID, "int8", 8, int8_to_int, int8_from_int,.cast = int8_cast),
	CODEC(MONEYOID, "money", 8, int8_to_int, int8_from_int,),
	CODEC(PG_LSNOID, "pg_lsn", 8, NULL, NULL,),
	CODEC(XID8OID, "xid8", 8, NULL, NULL,),
#ifdef OID8OID
	CODEC(OID8OID, "oid8", 8, NULL, NULL,),
#endif
	CODEC(TIDOID, "tid", 6, tid_to_int, tid_from_int,),
	CODEC(MACADDROID, "macaddr", sizeof(macaddr), macaddr_to_int, macaddr_from_int,),
	CODEC(MACADDR8OID, "macaddr8", sizeof(macaddr8), macaddr8_to_int, macaddr8_from_int,),
	CODEC(FLOAT4OID, "float4", 4, float4_to_int, float4_from_int,
		  .compare = HYB_COMPARE_FLOAT,.cast = float4_cast),
	CODEC(FLOAT8OID, "float8", 8, float8_to_int, float8_from_int,
		  .compare = HYB_COMPARE_FLOAT,.cast = float8_cast),
	CODEC(DATEOID, "date", 4, int4_to_int, int4_from_int,
		  .cast = date_cast),
	CODEC(TIMEOID, "time", 8, int8_to_int, int8_from_int,),
	CODEC(TIMESTAMPOID, "timestamp", 8, int8_to_int, int8_from_int,
		  .cast = timestamp_cast),
	CODEC(TIMESTAMPTZOID, "timestamptz", 8, int8_to_int, int8_from_int,
		  .cast = timestamptz_cast),
};

StaticAssertDecl(HYB_COMPARE_MEM == 0, "which is what most have");

const HybCodec *
hyb_int_codec(Oid typid)
{
	for (int i = 0; i < lengthof(codecs); i++)
		if (codecs[i].typid == typid)
			return &codecs[i];
	return NULL;
}
