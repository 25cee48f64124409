/*
 * codecs_float.c
 *		Codecs of float4 and float8.
 *
 * The usual order-preserving mapping of IEEE 754 bits: negative numbers are
 * inverted whole, others get their sign bit set.  All NaNs become one, which
 * sorts above infinity, as float8_cmp_internal wants it.  -0 and +0 stay
 * neighbours that HYB_COMPARE_FLOAT takes for equal, so that an index-only
 * scan returns the sign that was stored.
 */
#include "key/codec.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "utils/float.h"

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
float4_convert(Oid subtype, Datum value, HybConverted *out)
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
float8_convert(Oid subtype, Datum value, HybConverted *out)
{
	if (subtype != FLOAT4OID)
		return false;
	out->lo = out->hi = Float8GetDatum((float8) DatumGetFloat4(value));
	return true;
}

const HybCodec hyb_codec_float4 =
HYB_INT_CODEC("float4", 4, HYB_COMPARE_FLOAT, float4_to_int, float4_from_int,
			  float4_convert);

const HybCodec hyb_codec_float8 =
HYB_INT_CODEC("float8", 8, HYB_COMPARE_FLOAT, float8_to_int, float8_from_int,
			  float8_convert);
