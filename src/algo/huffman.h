/*
 * huffman.h
 *		Canonical Huffman codes over bytes, for short strings.
 *
 * Codes are at most HYB_HUFF_MAXLEN bits long and written most significant
 * bit first.  Every string starts on a byte and is padded with ones.  The code is
 * built with one extra symbol of the least weight, which is never written.  Its code
 * is the last of the longest ones, so a run of ones stands for no byte, and a string
 * ends where no further whole code follows.
 *
 * Stored form: longest length L; number of codes of each length 1..L (one
 * byte each); the bytes in order of their codes.
 */
#ifndef HYB_HUFFMAN_H
#define HYB_HUFFMAN_H

#include "algo/bits.h"

#define HYB_HUFF_MAXLEN		11
#define HYB_HUFF_TABLE		(1 << HYB_HUFF_MAXLEN)

/*
 * An element of a decoding table: what begins with the HYB_HUFF_MAXLEN bits
 * that are its index.  Two codes where both lie within them, as the shorter
 * ones mostly do.  Bits 26 up: length of all codes; 24 and 25: their number,
 * 0 where no code ends; 20 to 23: length of the first; 0 to 15: the bytes,
 * the first one lowest.
 */
typedef uint32_t HybHuffEntry;

/* Codes up to this length are looked up, others searched by length. */
#define HYB_HUFF_SHORT		6

typedef struct HybHuffEncoder
{
	uint8_t		len[256];		/* 0: byte does not occur */
	uint16_t	code[256];
	uint32_t	size;			/* bytes of the stored form */
} HybHuffEncoder;

typedef struct HybHuffDecoder
{
	unsigned	maxlen;
	unsigned	minlen;
	/* codes of length <= l are those below limit[l], left-aligned */
	uint16_t	limit[HYB_HUFF_MAXLEN + 1];
	/* index of the first symbol of length l, minus its first code */
	int16_t		offset[HYB_HUFF_MAXLEN + 1];
	const uint8_t *symbols;
	/* by the next HYB_HUFF_SHORT bits: length << 8 | byte, 0: longer code */
	uint16_t	quick[1 << HYB_HUFF_SHORT];
} HybHuffDecoder;

/*
 * Builds a code for bytes with the given frequencies.  Returns false if there
 * are none to code, or the code cannot be stored.
 */
extern bool hyb_huff_build(HybHuffEncoder *enc, const uint32_t freq[256]);

extern uint8_t *hyb_huff_write_code(const HybHuffEncoder *enc, uint8_t *out);

/* Bytes that a string takes. */
static inline uint32_t
hyb_huff_size(const HybHuffEncoder *enc, const uint8_t *s, uint32_t n)
{
	uint32_t	bits = 0;

	for (uint32_t i = 0; i < n; i++)
		bits += enc->len[s[i]];
	return (bits + 7) / 8;
}

/* Returns the byte after the coded string. */
extern uint8_t *hyb_huff_encode(const HybHuffEncoder *enc, const uint8_t *s,
								uint32_t n, uint8_t *out);

/*
 * Opens a stored code at p; returns the byte after it, or NULL if it is
 * malformed or does not end before `end`.
 */
extern const uint8_t *hyb_huff_open(HybHuffDecoder *dec, const uint8_t *p,
									const uint8_t *end);

/*
 * Decodes at most max bytes of the coded string [p, p + n) to out; returns how
 * many.  8 bytes after the string must be readable.  table: NULL, or what
 * hyb_huff_fill_table has filled, which makes decoding faster.
 */
extern uint32_t hyb_huff_decode(const HybHuffDecoder *dec,
								const HybHuffEntry *table, const uint8_t *p,
								uint32_t n, uint8_t *out, uint32_t max);

/* Fills HYB_HUFF_TABLE elements. */
extern void hyb_huff_fill_table(const HybHuffDecoder *dec, HybHuffEntry *table);

/* Reads a coded string byte by byte. */
typedef struct HybHuffReader
{
	const uint8_t *p;
	uint32_t	end;			/* in bits, as pos */
	uint32_t	pos;
	uint64_t	word;			/* the bits from pos on, left-aligned */
	unsigned	avail;			/* how many of them are in word */
} HybHuffReader;

static inline void
hyb_huff_reader_init(HybHuffReader *r, const uint8_t *p, uint32_t n)
{
	r->p = p;
	r->end = 8 * n;
	r->pos = 0;
	r->word = 0;
	r->avail = 0;
}

/* The next byte, or -1 at the end of the string. */
static inline int
hyb_huff_next(const HybHuffDecoder *dec, HybHuffReader *r)
{
	unsigned	quick;
	unsigned	window;
	unsigned	len;
	int			c;

	if (r->avail < HYB_HUFF_MAXLEN)
	{
		if (r->pos >= r->end)
			return -1;
		r->word = hyb_load64be(r->p + (r->pos >> 3)) << (r->pos & 7);
		r->avail = 64 - (r->pos & 7);
	}
	quick = dec->quick[r->word >> (64 - HYB_HUFF_SHORT)];
	if (quick != 0)
	{
		len = quick >> 8;
		c = (int) (quick & 0xFF);
	}
	else
	{
		window = (unsigned) (r->word >> (64 - HYB_HUFF_MAXLEN));
		len = HYB_HUFF_SHORT + 1;
		while (len <= dec->maxlen && window >= dec->limit[len])
			len++;
		if (len > dec->maxlen)
			return -1;
		c = dec->symbols[(int) (window >> (HYB_HUFF_MAXLEN - len)) +
						 dec->offset[len]];
	}
	r->pos += len;
	if (r->pos > r->end)
		return -1;
	r->word <<= len;
	r->avail -= len;
	return c;
}

#endif							/* HYB_HUFFMAN_H */
