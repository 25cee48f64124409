/*
 * frontcode.h
 *		Front-coded strings: each is stored as the number of bytes it shares
 *		with the one before it, and the rest.
 *
 * Every 16th string (a restart) is stored whole; offsets of restarts give
 * access to any string.  A prefix that all strings have in common is kept by
 * the caller and left out here.  The stored rests are optionally Huffman
 * coded.
 *
 * Stored form: one byte, bits 0-2 `shared_bits` (1..7), bit 3 set if coded;
 * data length (2 bytes); the code (huffman.h) if coded; offsets of restarts
 * 1, 2, ... (2 bytes each); data.  In the data a restart is a length (variable
 * bytes) and as many bytes.  Any other entry is
 *
 * - a byte: the shared length in its upper `shared_bits` bits, the length of the
 *   rest in the others, each all ones if it does not fit
 * - the remainder (variable bytes) of each length that does not fit
 * - the rest
 *
 * The strings need not be sorted.
 */
#ifndef HYB_FRONTCODE_H
#define HYB_FRONTCODE_H

#include "algo/huffman.h"
#include "algo/types.h"

#define HYB_FRONT_INTERVAL	16

/*
 * A decoding table is filled after this many coded bytes.  Decoding them without
 * the table takes 2.5 us longer, which is what filling it takes.  So a reader never
 * pays more than twice the best time.
 */
#define HYB_FRONT_TABLE_AFTER 600

/* ---- building ---- */

/* What is known about strings before it is decided how many are stored. */
typedef struct HybFrontCode
{
	bool		coded;
	HybHuffEncoder huff;
	uint32_t   *rest;			/* stored bytes of each string that is not a
								 * restart; the caller's memory */
} HybFrontCode;

typedef struct HybFrontPlan
{
	uint32_t	prefix_len;		/* left out of every string */
	uint8_t		shared_bits;
	uint32_t	data_len;
	uint32_t	size;			/* bytes, without the prefix */
} HybFrontPlan;

/* Common prefix of the first n strings. */
extern uint32_t hyb_front_prefix(const HybStrings *in, uint32_t n);

/*
 * Builds a code from the first n strings and fills code->rest, if coding them
 * pays; try_code says whether to try.
 */
extern void hyb_front_prepare(const HybStrings *in, uint32_t n,
							  bool try_code, HybFrontCode *code);

/*
 * A plan for the first n strings has at least this size, 0 if they are coded.  It is
 * found in less time than a plan, and tells where another encoding is shorter.
 */
extern uint32_t hyb_front_least(const HybStrings *in, const HybFrontCode *code,
								uint32_t n);

/* For the first n strings, at most as many as were prepared. */
extern void hyb_front_plan(const HybStrings *in, const HybFrontCode *code,
						   uint32_t n, HybFrontPlan *plan);

/* Writes plan->size bytes, returns the byte after. */
extern uint8_t *hyb_front_write(const HybStrings *in,
								const HybFrontCode *code, uint32_t n,
								const HybFrontPlan *plan, uint8_t *out);

/* ---- reading ---- */

typedef struct HybFront
{
	uint32_t	n;
	uint32_t	prefix_len;
	const uint8_t *prefix;
	uint8_t		shared_bits;
	bool		coded;
	uint32_t	data_len;
	const uint8_t *restarts;
	const uint8_t *data;
	HybHuffDecoder huff;
} HybFront;

/* A decoded string, from which the following ones are decoded. */
typedef struct HybFrontCursor
{
	int			row;			/* that buf holds, or -1 */
	uint32_t	len;			/* its length, the common prefix included */
	uint32_t	next;			/* offset of the entry after it */
	uint8_t    *buf;			/* the caller's memory */
	uint32_t	cap;			/* its size, at least the prefix length */
	HybHuffEntry *table;		/* HYB_HUFF_TABLE elements, the caller's, or
								 * NULL */
	bool		table_filled;
	uint32_t	decoded;		/* coded bytes, until then */
} HybFrontCursor;

/*
 * Opens the stored form at p for n strings; prefix and prefix_len are set by
 * the caller.  Returns the byte after it, or NULL if it is malformed or does
 * not end before `end`.  8 bytes after `end` must be readable.
 */
extern const uint8_t *hyb_front_open(HybFront *front, uint32_t n,
									 const uint8_t *p, const uint8_t *end);

/* The cursor's memory stays; its contents do not. */
extern void hyb_front_cursor_reset(const HybFront *front,
								   HybFrontCursor *cursor);

/* Makes the cursor hold string `row`.  Returns false if the data is damaged. */
extern bool hyb_front_read(const HybFront *front, HybFrontCursor *cursor,
						   uint32_t row);

/*
 * First string of [lo, hi) that is >= target (upper: > target), hi if there is
 * none, -1 if the data is damaged.  The strings of [lo, hi) ascend; end_high
 * says that a string sorts above its extensions, not below.  *equal says
 * whether the string found equals the target.
 *
 * So many parameters because a struct of them would be filled for each call,
 * and read once.
 */
extern int	hyb_front_search(const HybFront *front, uint32_t lo, uint32_t hi,
							 const uint8_t *target, uint32_t target_len,
							 bool end_high, bool upper, bool *equal);

/* Longest string, without the common prefix, that a finger is kept for. */
#define HYB_FRONT_FINGER_BYTES	120

/*
 * Where the last search has ended.  One that does not look for less goes on from
 * there (a finger search).
 */
typedef struct HybFrontFinger
{
	bool		set;
	uint32_t	row;			/* first string that was not below, or n */
	uint32_t	off;			/* of its entry */
	uint32_t	matched;		/* bytes that the string before it shares with
								 * what was looked for */
	uint32_t	len;			/* of that, without the common prefix */
	uint8_t		sought[HYB_FRONT_FINGER_BYTES];
} HybFrontFinger;

/* hyb_front_search() among all strings, not upper. */
extern int	hyb_front_search_on(const HybFront *front, HybFrontFinger *finger,
								const uint8_t *target, uint32_t target_len,
								bool end_high, bool *equal);

/*
 * For strings that ascend, and of which none is the beginning of another.  Returns
 * the string that the target begins with (*begins; of length *len).  Otherwise
 * returns the first one above the target, front->n if all are below; -1 if the data
 * is damaged.
 */
extern int	hyb_front_search_beginning(const HybFront *front,
									   const uint8_t *target,
									   uint32_t target_len, bool *begins,
									   uint32_t *len);

#endif							/* HYB_FRONTCODE_H */
