/*
 * codec.h
 *		What the codec files share.
 */
#ifndef HYB_CODEC_H
#define HYB_CODEC_H

#include "compat.h"

#include "key/key.h"

/* The SQL function of a codec that does not look at the request. */
#define HYB_CODEC_FUNCTION(function, codec) \
	PG_FUNCTION_INFO_V1(function); \
	Datum \
	function(PG_FUNCTION_ARGS) \
	{ \
		PG_RETURN_POINTER(&(codec)); \
	} \
	extern Datum function(PG_FUNCTION_ARGS)

/* A codec of the HYB_STORE_INT form */
#define HYB_INT_CODEC(name_, width_, compare_, to_, from_, ...) \
	{ \
		.name = (name_), .store = HYB_STORE_INT, .width = (width_), \
		.compare = (compare_), .to_int = (to_), .from_int = (from_), \
		.convert = __VA_ARGS__ \
	}

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
