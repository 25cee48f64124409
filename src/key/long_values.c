/*
 * long_values.c
 *		Values that would not leave enough room in an entry.
 */
#include "base/compat.h"

#include "algo/inorder.h"
#include "common/pg_lzcompress.h"
#include "key/codec.h"
#include "key/long_values.h"
#include "utils/memutils.h"

/* Of an encoding that fits an entry, and of any of a value that would as it is */
#define MAX_CODE	(2 * HYB_MAX_ENTRY_SIZE)

/* How long most long values are, restored */
#define USUAL_SIZE	16384

/* Do so many bytes take as few in an index tuple that is sorted? */
static bool
is_sortable(const HybColumn *col, const uint8 *bytes, uint32 len)
{
	char	   *packed;
	int32		packed_len;

	if (len <= col->sortable || col->sortable == 0)
		return true;
	if (len > HYB_INORDER_MAX)
		return false;
	packed = palloc(PGLZ_MAX_OUTPUT(len));
	packed_len = pglz_compress((const char *) bytes, (int32) len, packed,
							   PGLZ_strategy_default);
	pfree(packed);
	return packed_len >= 0 && packed_len <= col->sortable;
}

void
hyb_long_shorten(const HybColumn *col, HybBuf *out, uint32 start)
{
	uint8		code[MAX_CODE];
	uint32		plainlen = out->len - start;
	size_t		len = 0;

	Assert(col->terminated && col->plain > 0 && plainlen > col->plain);
	if (is_sortable(col, out->data + start, plainlen))
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

uint8 *
hyb_long_restore(const HybColumn *col, const uint8 *data, uint32 len,
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

bool
hyb_long_pack(struct varlena *value, HybBuf *out)
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

struct varlena *
hyb_long_unpack(const HybValue *val)
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
