/*
 * codec.h
 *		What the codec files share.
 */
#ifndef HYB_CODEC_H
#define HYB_CODEC_H

#include "base/compat.h"

#include "key/key.h"

/* Which of them a column gets: codecs.c */
extern const HybCodec hyb_codec_bool;
extern const HybCodec hyb_codec_char;
extern const HybCodec hyb_codec_oid;
extern const HybCodec hyb_codec_int2;
extern const HybCodec hyb_codec_int4;
extern const HybCodec hyb_codec_int8;
extern const HybCodec hyb_codec_money;
extern const HybCodec hyb_codec_pg_lsn;
extern const HybCodec hyb_codec_xid8;
extern const HybCodec hyb_codec_tid;
extern const HybCodec hyb_codec_macaddr;
extern const HybCodec hyb_codec_macaddr8;
extern const HybCodec hyb_codec_float4;
extern const HybCodec hyb_codec_float8;
extern const HybCodec hyb_codec_date;
extern const HybCodec hyb_codec_time;
extern const HybCodec hyb_codec_timestamp;
extern const HybCodec hyb_codec_timestamptz;
extern const HybCodec hyb_codec_text;
extern const HybCodec hyb_codec_name;
extern const HybCodec hyb_codec_bytea;
extern const HybCodec hyb_codec_uuid;
extern const HybCodec hyb_codec_text_hope;
extern const HybCodec hyb_codec_bpchar_hope;
extern const HybCodec hyb_codec_bytea_hope;

/* A codec of the HYB_STORE_INT form */
#define HYB_INT_CODEC(name_, width_, compare_, to_, from_, ...) \
	{ \
		.name = (name_), .store = HYB_STORE_INT, .width = (width_), \
		.compare = (compare_), .to_int = (to_), .from_int = (from_), \
		.convert = __VA_ARGS__ \
	}

/*
 * Bytes as others that have no 00: that becomes 01 01, and 01 becomes 01 02.
 * And back to `out`, which has room for len bytes; returns how many they are.
 */
extern void hyb_escape(const uint8 *src, uint32 len, HybBuf *out);
extern uint32 hyb_unescape(const uint8 *data, uint32 len, uint8 *out);

/* A signed integer of 32 or 64 bits as an unsigned one, in the same order. */
static inline uint64
hyb_order_int32(int32 v)
{
	return (uint32) v ^ ((uint32) 1 << 31);
}

static inline int32
hyb_unorder_int32(uint64 v)
{
	return (int32) ((uint32) v ^ ((uint32) 1 << 31));
}

static inline uint64
hyb_order_int64(int64 v)
{
	return (uint64) v ^ (UINT64CONST(1) << 63);
}

static inline int64
hyb_unorder_int64(uint64 v)
{
	return (int64) (v ^ (UINT64CONST(1) << 63));
}

#endif							/* HYB_CODEC_H */
