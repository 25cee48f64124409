/*
 * codecs.c
 *		Support function 4 of the operator classes, as SQL knows it: one
 *		function for each kind of order, which finds the codec of a type.
 */
#include "key/codec.h"

#include "catalog/pg_type.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"

typedef struct TypeCodec
{
	Oid			typid;			/* operator class input type */
	const HybCodec *codec;		/* or NULL: it has none */

	/*
	 * Is the codec for a column like this one?  NULL: it is for all.  Raises
	 * an error if the operator class is not.
	 */
	bool		(*check) (const HybCodecRequest *request, const char *opclass);
	const char *opclass;		/* for that error */
} TypeCodec;

/* Under other collations the order of text is not that of its bytes. */
static bool
collation_is_c(const HybCodecRequest *request, const char *opclass)
{
	return HYB_COLLATE_IS_C(request->collation);
}

/*
 * The pattern operator classes order by bytes, but their equality operator is
 * the collation's: like index_create for btree, refuse collations whose
 * equality is not that of bytes.
 */
static bool
check_pattern(const HybCodecRequest *request, const char *opclass)
{
	if (OidIsValid(request->collation) &&
		!get_collation_isdeterministic(request->collation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("nondeterministic collations are not supported for operator class \"%s\"",
						opclass)));
	return true;
}

static bool
check_hope(const HybCodecRequest *request, const char *opclass)
{
	if (!HYB_COLLATE_IS_C(request->collation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("operator class \"%s\" does not support collation \"%s\"",
						opclass, get_collation_name(request->collation)),
				 errdetail("Encoded strings are ordered by their bytes."),
				 errhint("Add COLLATE \"C\" to the index column%s.",
						 request->typid == TEXTOID &&
						 get_collation_isdeterministic(request->collation) ?
						 ", or use operator class \"text_pattern_hope_ops\"" : "")));
	return true;
}

/*
 * Without a length values may differ in their blanks only, which are not
 * stored.
 */
static bool
check_bpchar_hope(const HybCodecRequest *request, const char *opclass)
{
	(void) check_hope(request, opclass);
	if (request->typmod < (int32) VARHDRSZ)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("operator class \"%s\" needs a column of type character(n)",
						opclass),
				 errhint("Use operator class \"bpchar_ops\".")));
	return true;
}

static const TypeCodec codecs[] = {
	{BOOLOID, &hyb_codec_bool},
	{CHAROID, &hyb_codec_char},
	{OIDOID, &hyb_codec_oid},
	{INT2OID, &hyb_codec_int2},
	{INT4OID, &hyb_codec_int4},
	{INT8OID, &hyb_codec_int8},
	{MONEYOID, &hyb_codec_money},
	{PG_LSNOID, &hyb_codec_pg_lsn},
	{XID8OID, &hyb_codec_xid8},
	{TIDOID, &hyb_codec_tid},
	{MACADDROID, &hyb_codec_macaddr},
	{MACADDR8OID, &hyb_codec_macaddr8},
	{FLOAT4OID, &hyb_codec_float4},
	{FLOAT8OID, &hyb_codec_float8},
	{DATEOID, &hyb_codec_date},
	{TIMEOID, &hyb_codec_time},
	{TIMESTAMPOID, &hyb_codec_timestamp},
	{TIMESTAMPTZOID, &hyb_codec_timestamptz},
	{TEXTOID, &hyb_codec_text, collation_is_c},
	{NAMEOID, &hyb_codec_name, collation_is_c},
	{BYTEAOID, &hyb_codec_bytea},
	{UUIDOID, &hyb_codec_uuid}
};

/* Blanks at the end do not count in bpchar's order: it has no codec. */
static const TypeCodec pattern_codecs[] = {
	{TEXTOID, &hyb_codec_text, check_pattern, "text_pattern_ops"},
	{BPCHAROID, NULL, check_pattern, "bpchar_pattern_ops"}
};

static const TypeCodec hope_codecs[] = {
	{TEXTOID, &hyb_codec_text_hope, check_hope, "text_hope_ops"},
	{BPCHAROID, &hyb_codec_bpchar_hope, check_bpchar_hope, "bpchar_hope_ops"},
	{BYTEAOID, &hyb_codec_bytea_hope}
};

static const TypeCodec pattern_hope_codecs[] = {
	{TEXTOID, &hyb_codec_text_hope, check_pattern, "text_pattern_hope_ops"}
};

/* Do equal values have equal bytes, of a type of one of these lists? */
static Datum
equal_image(const HybCodecRequest *request)
{
	switch (request->typid)
	{
		case BPCHAROID:
			return BoolGetDatum(false);
		case TEXTOID:
		case NAMEOID:
			return DirectFunctionCall1Coll(btvarstrequalimage,
										   request->collation,
										   ObjectIdGetDatum(request->typid));
		default:
			return BoolGetDatum(true);
	}
}

/* The codec for what is requested, NULL if the type has none of this kind. */
static Datum
find_codec(FunctionCallInfo fcinfo, const TypeCodec *list, int n)
{
	HybCodecRequest *request = (HybCodecRequest *) PG_GETARG_POINTER(0);

	request->codec = NULL;
	for (int i = 0; i < n && request->codec == NULL; i++)
		if (list[i].typid == request->typid &&
			(list[i].check == NULL || list[i].check(request, list[i].opclass)))
			request->codec = list[i].codec;
	return equal_image(request);
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
