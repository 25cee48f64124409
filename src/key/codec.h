/*
 * codec.h
 *		Codecs: how values of one type are stored in a key.
 */
#ifndef HYB_CODEC_H
#define HYB_CODEC_H

#include "base/compat.h"

#include "base/memory.h"

typedef enum HybStore
{
	HYB_STORE_INT,
	HYB_STORE_BYTES
} HybStore;

typedef enum HybCompare
{
	HYB_COMPARE_MEM,			/* memcmp of the encodings */
	HYB_COMPARE_FLOAT,			/* INT, as integers, but the encodings of -0
								 * and +0 are equal */
	HYB_COMPARE_PROC			/* decode and call HYB_ORDER_PROC */
} HybCompare;

/*
 * The place of a value of another type among a type's values.  Every value that
 * sorts below it is at most `lo`, every value above it at least `hi`, and values
 * equal to it lie in [hi, lo].  Where the place is known only roughly, lo lies
 * at or above hi, and the caller asks the operator about each entry between.
 */
typedef struct HybCast
{
	Datum		lo;
	Datum		hi;
	bool		exact;			/* it is lo, which is hi */
	bool		below_all;		/* below all that the type can hold: lo and hi
								 * are not set */
	bool		above_all;		/* above all that */
} HybCast;

struct HybColumn;

/*
 * A codec is a static constant, which support function HYB_IMAGE_PROC of an
 * operator class gives for a HybCodecRequest.  The function gives NULL if the type
 * has no encoding (text under a linguistic collation, say), and then returns whether
 * equal values have equal bytes.
 */
typedef struct HybCodec
{
	Oid			typid;			/* HYB_STORE_INT: operator class input type */
	const char *name;
	HybStore	store;
	uint8		width;			/* bytes, see key.h; 0 = variable */
	bool		terminated;
	HybCompare	compare;		/* MEM or FLOAT */

	bool		blank_padded;	/* a character(n), whose trailing blanks are
								 * not stored */

	/*
	 * HYB_STORE_INT: order-preserving mapping, both ways, ascending.  NULL:
	 * the bits of the Datum.
	 */
	uint64		(*to_int) (Datum value);
	Datum		(*from_int) (uint64 value);

	/*
	 * HYB_STORE_BYTES: append the ascending encoding of the value (without
	 * flag and terminator); and back, palloc'ing the Datum.
	 */
	void		(*to_bytes) (Datum value, HybBuf *out);
	Datum		(*from_bytes) (const uint8 *data, uint32 len);

	/*
	 * Used instead of to_bytes and from_bytes where the value's bytes are
	 * encoded with a dictionary of the index (encoded.h); else NULL.
	 */
	void		(*encode) (const struct HybColumn *col, Datum value,
						   HybBuf *out);
	Datum		(*decode) (const struct HybColumn *col, const uint8 *data,
						   uint32 len);

	/*
	 * A value of another type of the operator family (subtype) as a position
	 * among this type's values; *out comes as for an exact one.  Returns
	 * false if the position is unknown.  NULL: no other types.
	 */
	bool		(*cast) (Oid subtype, Datum value, HybCast *out);
} HybCodec;

typedef struct HybCodecRequest
{
	Oid			typid;			/* operator class input type */
	Oid			collation;
	int32		typmod;			/* of the index column */
	Datum		options;		/* operator class options, or 0 */
	const HybCodec *codec;		/* the answer */
} HybCodecRequest;

/* The codec of a type that is stored as an integer; NULL if it is not. */
extern const HybCodec *hyb_int_codec(Oid typid);

extern const HybCodec hyb_codec_text;
extern const HybCodec hyb_codec_name;
extern const HybCodec hyb_codec_bytea;
extern const HybCodec hyb_codec_uuid;
extern const HybCodec hyb_codec_text_hope;
extern const HybCodec hyb_codec_bpchar_hope;
extern const HybCodec hyb_codec_bytea_hope;

/* Strings without any 00, which one ends. */
#define HYB_TERMINATED_CODEC(name_, ...) \
	{ \
		.name = (name_), .store = HYB_STORE_BYTES, .terminated = true, \
		.compare = HYB_COMPARE_MEM, __VA_ARGS__ \
	}

/* HybCodec.cast of text. */
extern bool hyb_text_cast(Oid subtype, Datum value, HybCast *out);

/*
 * Append bytes without any 00: 00 becomes 01 01, and 01 becomes 01 02.  And back
 * to `out`, which has room for len bytes; returns the bytes written.
 */
extern void hyb_escape(const uint8 *src, uint32 len, HybBuf *out);
extern uint32 hyb_unescape(const uint8 *data, uint32 len, uint8 *out);

#endif							/* HYB_CODEC_H */
