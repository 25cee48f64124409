/*
 * codecs.c
 *		Codecs of strings, and the functions that find the codec of a type.
 *
 * Text never contains a zero byte, so its encoding ends with one.  Under a
 * collation that is not C-like the order of text is not that of its bytes: it then
 * has no codec.
 *
 * Support function 4 of an operator class is one function for each kind of order.
 */
#include "key/codec.h"

#include "access/htup_details.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/syscache.h"
#include "utils/uuid.h"

/* ---- text ---- */

static void
text_to_bytes(Datum value, HybBuf *out)
{
	text	   *t = DatumGetTextPP(value);

	hyb_buf_append(out, VARDATA_ANY(t), VARSIZE_ANY_EXHDR(t));
	if ((Pointer) t != DatumGetPointer(value))
		pfree(t);
}

static Datum
text_from_bytes(const uint8 *data, uint32 len)
{
	return PointerGetDatum(cstring_to_text_with_len((const char *) data, len));
}

bool
hyb_text_cast(Oid subtype, Datum value, HybCast *out)
{
	if (subtype != NAMEOID)
		return false;
	out->lo = out->hi = CStringGetTextDatum(NameStr(*DatumGetName(value)));
	return true;
}

const HybCodec hyb_codec_text =
HYB_TERMINATED_CODEC("text",.to_bytes = text_to_bytes,
					 .from_bytes = text_from_bytes,.cast = hyb_text_cast);

/* ---- name ---- */

static void
name_to_bytes(Datum value, HybBuf *out)
{
	const char *str = NameStr(*DatumGetName(value));

	hyb_buf_append(out, str, strnlen(str, NAMEDATALEN - 1));
}

static Datum
name_from_bytes(const uint8 *data, uint32 len)
{
	char	   *name = palloc0(NAMEDATALEN);

	memcpy(name, data, Min(len, NAMEDATALEN - 1));
	return PointerGetDatum(name);
}

/*
 * A text longer than any name sorts just above the name that is its
 * beginning.
 */
static bool
name_cast(Oid subtype, Datum value, HybCast *out)
{
	text	   *t;
	uint32		len;

	if (subtype != TEXTOID)
		return false;
	t = DatumGetTextPP(value);
	len = VARSIZE_ANY_EXHDR(t);
	out->lo = out->hi = name_from_bytes((const uint8 *) VARDATA_ANY(t), len);
	out->exact = len < NAMEDATALEN;
	return true;
}

const HybCodec hyb_codec_name =
HYB_TERMINATED_CODEC("name",.to_bytes = name_to_bytes,
					 .from_bytes = name_from_bytes,.cast = name_cast);

/* ---- bytea ---- */

void
hyb_escape(const uint8 *src, uint32 len, HybBuf *out)
{
	uint32		escapes = 0;
	uint8	   *dst;

	for (uint32 i = 0; i < len; i++)
		escapes += src[i] <= 0x01;
	hyb_buf_reserve(out, len + escapes);
	dst = out->data + out->len;
	if (escapes == 0)
		memcpy(dst, src, len);
	else
	{
		for (uint32 i = 0; i < len; i++)
		{
			if (src[i] <= 0x01)
			{
				*dst++ = 0x01;
				*dst++ = src[i] + 1;
			}
			else
				*dst++ = src[i];
		}
	}
	out->len += len + escapes;
}

uint32
hyb_unescape(const uint8 *data, uint32 len, uint8 *out)
{
	uint8	   *dst = out;

	for (uint32 i = 0; i < len; i++)
	{
		if (data[i] == 0x01 && i + 1 < len)
			*dst++ = data[++i] - 1;
		else
			*dst++ = data[i];
	}
	return (uint32) (dst - out);
}

static void
bytea_to_bytes(Datum value, HybBuf *out)
{
	bytea	   *b = DatumGetByteaPP(value);

	hyb_escape((const uint8 *) VARDATA_ANY(b), VARSIZE_ANY_EXHDR(b), out);
	if ((Pointer) b != DatumGetPointer(value))
		pfree(b);
}

static Datum
bytea_from_bytes(const uint8 *data, uint32 len)
{
	bytea	   *b = palloc((Size) len + VARHDRSZ);
	uint32		n = hyb_unescape(data, len, (uint8 *) VARDATA(b));

	SET_VARSIZE(b, n + VARHDRSZ);
	return PointerGetDatum(b);
}

const HybCodec hyb_codec_bytea =
HYB_TERMINATED_CODEC("bytea",.to_bytes = bytea_to_bytes,
					 .from_bytes = bytea_from_bytes);

/* ---- uuid ---- */

static void
uuid_to_bytes(Datum value, HybBuf *out)
{
	hyb_buf_append(out, DatumGetUUIDP(value)->data, UUID_LEN);
}

static Datum
uuid_from_bytes(const uint8 *data, uint32 len)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	Assert(len == UUID_LEN);
	memcpy(uuid->data, data, UUID_LEN);
	return UUIDPGetDatum(uuid);
}

const HybCodec hyb_codec_uuid = {
	.name = "uuid",
	.store = HYB_STORE_BYTES,
	.width = UUID_LEN,
	.compare = HYB_COMPARE_MEM,
	.to_bytes = uuid_to_bytes,
	.from_bytes = uuid_from_bytes
};

/* ---- finding a codec ---- */

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

/*
 * Does the collation compare as memcmp does?  Reads its row and does not load the
 * locale: that fails where the system has lost it.
 */
static bool
compares_bytes(Oid collation)
{
	HeapTuple	tuple;
	Form_pg_collation form;
	bool		result;

	if (collation == C_COLLATION_OID)
		return true;
	/* the server has loaded the database's */
	if (!OidIsValid(collation) || collation == DEFAULT_COLLATION_OID)
		return HYB_COLLATE_IS_C(collation);
	tuple = SearchSysCache1(COLLOID, ObjectIdGetDatum(collation));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for collation %u", collation);
	form = (Form_pg_collation) GETSTRUCT(tuple);
	if (form->collprovider == COLLPROVIDER_LIBC)
	{
		char	   *name = TextDatumGetCString(SysCacheGetAttrNotNull(COLLOID, tuple,
																	  Anum_pg_collation_collcollate));

		result = strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0;
		pfree(name);
	}
	else
		/* all of the server's own provider do */
		result = form->collprovider != COLLPROVIDER_ICU;
	ReleaseSysCache(tuple);
	return result;
}

/* Under other collations the order of text is not that of its bytes. */
static bool
collation_is_c(const HybCodecRequest *request, const char *opclass)
{
	return compares_bytes(request->collation);
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
	if (!compares_bytes(request->collation))
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

/* Beside these, types that are stored as integers have codecs. */
static const TypeCodec codecs[] = {
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
			/* as btvarstrequalimage, which loads the locale */
			return BoolGetDatum(get_collation_isdeterministic(request->collation));
		default:
			return BoolGetDatum(true);
	}
}

/* The codec for what is requested, NULL if the type has none of this kind. */
static Datum
find_codec(FunctionCallInfo fcinfo, const TypeCodec *list, int n)
{
	HybCodecRequest *request = (HybCodecRequest *) PG_GETARG_POINTER(0);

	request->codec = list == codecs ? hyb_int_codec(request->typid) : NULL;
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
