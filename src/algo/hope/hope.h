/*
 * hope.h
 *		High-speed order-preserving encoding of byte strings (Zhang et al.,
 *		"Order-Preserving Key Compression for In-Memory Search Trees", SIGMOD
 *		2020; Zhang's dissertation, chapter 6).  Plain C, no PostgreSQL calls.
 *
 * A dictionary cuts the axis of all non-empty byte strings into intervals.
 * The strings of an interval have a common prefix, the interval's symbol, and
 * each interval has a code; codes are prefix free and ascend as intervals do.
 * A key is encoded by looking up the interval that it lies in, writing that
 * code, removing the symbol from the front of the key, and so on until
 * nothing is left.
 *
 * Every one-byte string is the lower bound of an interval, so any byte string
 * can be encoded.  The code of zeroes only belongs to no interval.  So a key whose
 * code continues another's continues it with at least one 1 bit.  Therefore codes
 * padded with zero bits to bytes, compared as byte strings (a prefix sorts first),
 * differ and keep the order of keys.  Decoding ends where only zeroes are left.
 *
 * Bytes may be "stuffed" to be free of 0x00 (hyb_hope_stuff), in the same
 * order, at a cost of a bit in a thousand.
 */
#ifndef HYB_HOPE_H
#define HYB_HOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum HybHopeScheme
{
	HYB_HOPE_SINGLE_CHAR = 1,	/* fixed-length intervals: one byte */
	HYB_HOPE_DOUBLE_CHAR,		/* two bytes, or one and the end */
	HYB_HOPE_3_GRAMS,			/* the most frequent runs of three bytes */
	HYB_HOPE_4_GRAMS,
	HYB_HOPE_ALM,				/* runs of any length, codes of one length */
	HYB_HOPE_ALM_IMPROVED		/* runs of any length, Hu-Tucker codes */
} HybHopeScheme;

#define HYB_HOPE_NSCHEMES	6

/* Intervals of the schemes whose dictionaries have a fixed size */
#define HYB_HOPE_SINGLE_ENTRIES	256
#define HYB_HOPE_DOUBLE_ENTRIES	(256 * 257)

/* Limits of the size asked for in the other schemes */
#define HYB_HOPE_MIN_ENTRIES	512
#define HYB_HOPE_MAX_ENTRIES	(1 << 18)

#define HYB_HOPE_MAX_CODE		26	/* bits of a code */
#define HYB_HOPE_MAX_SYMBOL		32	/* bytes of a symbol */

/*
 * Memory.  alloc must not return NULL: it may exit or jump away, as palloc
 * does; the caller then discards everything allocated.  release takes NULL, too.
 */
typedef struct HybHopeMemory
{
	void	   *(*alloc) (void *context, size_t size);
	void		(*release) (void *context, void *ptr);
	void	   *context;
} HybHopeMemory;

/* Keys to learn from: key i is bytes[off[i]] to bytes[off[i + 1]]. */
typedef struct HybHopeSample
{
	const uint8_t *bytes;
	const uint32_t *off;
	uint32_t	n;
} HybHopeSample;

typedef struct HybHope HybHope;

/* Name of a scheme as users write it; NULL if there is none. */
extern const char *hyb_hope_scheme_name(int scheme);

/*
 * Learn a dictionary of at most `entries` intervals (ignored by the schemes
 * of fixed size).  The sample may be empty.
 */
extern HybHope *hyb_hope_build(HybHopeScheme scheme, uint32_t entries,
							   const HybHopeSample *sample,
							   const HybHopeMemory *memory);

extern void hyb_hope_free(HybHope *hope);

/*
 * Stored form: a byte string, the same on every machine.  Returns its length; writes
 * nothing if `out` is NULL.
 */
extern size_t hyb_hope_store(const HybHope *hope, uint8_t *out);

/* NULL if the bytes are not a sound dictionary. */
extern HybHope *hyb_hope_load(const uint8_t *bytes, size_t len,
							  const HybHopeMemory *memory);

extern HybHopeScheme hyb_hope_scheme(const HybHope *hope);
extern uint32_t hyb_hope_entries(const HybHope *hope);

/* Bytes of memory that the dictionary takes */
extern size_t hyb_hope_memory(const HybHope *hope);

/* Room that encoding a key of len bytes needs */
static inline size_t
hyb_hope_encode_bound(size_t len)
{
	return len * HYB_HOPE_MAX_CODE / 8 + 16;
}

/*
 * Encode the beginning of a key to out, which has room for
 * hyb_hope_encode_bound(len) bytes: symbols until `most` bytes or more are
 * encoded, or all.  `most` is a multiple of 4.  *done says how many bytes they
 * are.  Two keys with the same symbols have the same *done, so the bytes behind
 * it may follow the padded code as they are, and the order holds.
 *
 * Returns the length of the code in bits; the last byte is padded with
 * zeroes, and up to 8 bytes after it are overwritten.
 */
extern uint64_t hyb_hope_encode(const HybHope *hope, const uint8_t *key,
								size_t len, size_t most, uint8_t *out,
								size_t *done);

/* Room that decoding len bytes may need */
extern size_t hyb_hope_decode_bound(const HybHope *hope, size_t len);

/*
 * Decode len bytes to out, which has room for hyb_hope_decode_bound(len)
 * bytes, until `most` bytes or more are decoded, as hyb_hope_encode ends.
 * Returns how many are, and sets *bits to the length of their code.  Bytes
 * that no key encodes to give some key, or part of one.  8 bytes after the
 * code must be readable.
 */
extern size_t hyb_hope_decode(const HybHope *hope, const uint8_t *code,
							  size_t len, size_t most, uint8_t *out,
							  uint64_t *bits);

/*
 * A padded code as bytes other than 0x00, in the same order.  Seven zero bits
 * become the byte 0x01, all others are taken eight at a time.  Returns the
 * number of bytes; out has room for hyb_hope_stuff_bound(bits), and 8 bytes
 * after the code are readable.
 */
extern size_t hyb_hope_stuff(const uint8_t *code, uint64_t bits,
							 uint8_t *out);

static inline size_t
hyb_hope_stuff_bound(uint64_t bits)
{
	return (size_t) (bits / 7) + 16;
}

/* How many of the len bytes hold the first `bits` bits. */
extern size_t hyb_hope_stuffed_length(const uint8_t *bytes, size_t len,
									  uint64_t bits);

/*
 * And back: padded bytes; out has room for len + 16.  Returns their number.
 */
extern size_t hyb_hope_unstuff(const uint8_t *bytes, size_t len,
							   uint8_t *out);

#endif							/* HYB_HOPE_H */
