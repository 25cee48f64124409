/*
 * codecs.c
 *		Support function 7 of the operator classes, as SQL knows it: one
 *		function for each kind of order, which finds the codec of a type.
 */
#include "key/codec.h"

#include "catalog/pg_type.h"

typedef struct TypeCodec
{
	Oid			typid;			/* operator class input type */
	PGFunction	codec;
} TypeCodec;

#define CODEC_OF(function) extern Datum function(PG_FUNCTION_ARGS)

CODEC_OF(hybrid_codec_bool);
CODEC_OF(hybrid_codec_char);
CODEC_OF(hybrid_codec_oid);
CODEC_OF(hybrid_codec_int2);
CODEC_OF(hybrid_codec_int4);
CODEC_OF(hybrid_codec_int8);
CODEC_OF(hybrid_codec_money);
CODEC_OF(hybrid_codec_pg_lsn);
CODEC_OF(hybrid_codec_xid8);
CODEC_OF(hybrid_codec_tid);
CODEC_OF(hybrid_codec_macaddr);
CODEC_OF(hybrid_codec_macaddr8);
CODEC_OF(hybrid_codec_float4);
CODEC_OF(hybrid_codec_float8);
CODEC_OF(hybrid_codec_date);
CODEC_OF(hybrid_codec_time);
CODEC_OF(hybrid_codec_timestamp);
CODEC_OF(hybrid_codec_timestamptz);
CODEC_OF(hybrid_codec_text);
CODEC_OF(hybrid_codec_name);
CODEC_OF(hybrid_codec_bytea);
CODEC_OF(hybrid_codec_uuid);
CODEC_OF(hybrid_codec_text_pattern);
CODEC_OF(hybrid_codec_bpchar_pattern);
CODEC_OF(hybrid_codec_text_hope);
CODEC_OF(hybrid_codec_bpchar_hope);
CODEC_OF(hybrid_codec_bytea_hope);
CODEC_OF(hybrid_codec_text_pattern_hope);

static const TypeCodec codecs[] = {
	{BOOLOID, hybrid_codec_bool},
	{CHAROID, hybrid_codec_char},
	{OIDOID, hybrid_codec_oid},
	{INT2OID, hybrid_codec_int2},
	{INT4OID, hybrid_codec_int4},
	{INT8OID, hybrid_codec_int8},
	{MONEYOID, hybrid_codec_money},
	{PG_LSNOID, hybrid_codec_pg_lsn},
	{XID8OID, hybrid_codec_xid8},
	{TIDOID, hybrid_codec_tid},
	{MACADDROID, hybrid_codec_macaddr},
	{MACADDR8OID, hybrid_codec_macaddr8},
	{FLOAT4OID, hybrid_codec_float4},
	{FLOAT8OID, hybrid_codec_float8},
	{DATEOID, hybrid_codec_date},
	{TIMEOID, hybrid_codec_time},
	{TIMESTAMPOID, hybrid_codec_timestamp},
	{TIMESTAMPTZOID, hybrid_codec_timestamptz},
	{TEXTOID, hybrid_codec_text},
	{NAMEOID, hybrid_codec_name},
	{BYTEAOID, hybrid_codec_bytea},
	{UUIDOID, hybrid_codec_uuid}
};

static const TypeCodec pattern_codecs[] = {
	{TEXTOID, hybrid_codec_text_pattern},
	{BPCHAROID, hybrid_codec_bpchar_pattern}
};

static const TypeCodec hope_codecs[] = {
	{TEXTOID, hybrid_codec_text_hope},
	{BPCHAROID, hybrid_codec_bpchar_hope},
	{BYTEAOID, hybrid_codec_bytea_hope}
};

static const TypeCodec pattern_hope_codecs[] = {
	{TEXTOID, hybrid_codec_text_pattern_hope}
};

/* The codec for what is requested, NULL if the type has none of this kind. */
static Datum
find_codec(FunctionCallInfo fcinfo, const TypeCodec *list, int n)
{
	const HybCodecRequest *request = (const HybCodecRequest *) PG_GETARG_POINTER(0);

	for (int i = 0; i < n; i++)
		if (list[i].typid == request->typid)
			return list[i].codec(fcinfo);
	PG_RETURN_POINTER(NULL);
}

#define CODEC_FUNCTION(function, list) \
	PG_FUNCTION_INFO_V1(function); \
	Datum \
	function(PG_FUNCTION_ARGS) \
	{ \
		return find_codec(fcinfo, list, lengthof(list)); \
	} \
	extern Datum function(PG_FUNCTION_ARGS)

CODEC_FUNCTION(hybrid_codec, codecs);
CODEC_FUNCTION(hybrid_codec_pattern, pattern_codecs);
CODEC_FUNCTION(hybrid_codec_hope, hope_codecs);
CODEC_FUNCTION(hybrid_codec_pattern_hope, pattern_hope_codecs);
