/*
 * codecs_text.c
 *		Codecs of text, name, bytea and uuid.
 *
 * Text never contains a zero byte, so it ends with one.  Under collations
 * other than C-like ones its order is not that of its bytes: no codec then.
 */
#include "key/codec.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
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

static bool
text_convert(Oid subtype, Datum value, HybConverted *out)
{
	if (subtype != NAMEOID)
		return false;
	out->lo = out->hi = CStringGetTextDatum(NameStr(*DatumGetName(value)));
	return true;
}

const HybCodec hyb_codec_text = {
	.name = "text",
	.store = HYB_STORE_BYTES,
	.terminated = true,
	.compare = HYB_COMPARE_MEM,
	.to_bytes = text_to_bytes,
	.from_bytes = text_from_bytes,
	.convert = text_convert
};

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
name_convert(Oid subtype, Datum value, HybConverted *out)
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

const HybCodec hyb_codec_name = {
	.name = "name",
	.store = HYB_STORE_BYTES,
	.terminated = true,
	.compare = HYB_COMPARE_MEM,
	.to_bytes = name_to_bytes,
	.from_bytes = name_from_bytes,
	.convert = name_convert
};

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

const HybCodec hyb_codec_bytea = {
	.name = "bytea",
	.store = HYB_STORE_BYTES,
	.terminated = true,
	.compare = HYB_COMPARE_MEM,
	.to_bytes = bytea_to_bytes,
	.from_bytes = bytea_from_bytes
};

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
