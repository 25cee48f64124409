/*
 * symbols.h
 *		Strings as codes of one byte, each of which stands for up to 8 bytes
 *		(FSST: Boncz, Neumann, Leis, "FSST: Fast Random Access String
 *		Compression", VLDB 2020).
 *
 * For payload: strings that are not searched.  A string is decoded by itself,
 * 8 bytes at a time, without looking at a bit: some 5 GB/s, where LZ4 needs
 * what was before the string, and Huffman codes a look-up for two bytes.
 *
 * The table of symbols is learned from the strings in a few rounds.  Each round
 * codes them with the symbols at hand.  The best of these symbols and of their
 * concatenations become the symbols of the next round.  Strings that are alike do
 * well with each other's table, so a table is kept for some leaves.
 *
 * Stored form: number of symbols of each length 1 to 8 (one byte each), 255 at
 * most; the symbols, the shorter ones first; the ends of the strings' codes, a
 * sequence (intseq.h); codes.  A code is the number of a symbol; 255 says that
 * the next byte is one as it is.
 */
#ifndef HYB_SYMBOLS_H
#define HYB_SYMBOLS_H

#include "algo/intseq.h"
#include "algo/types.h"

#define HYB_SYM_MAX			255
#define HYB_SYM_ESCAPE		255
#define HYB_SYM_LENGTH		8

/* Codes of all strings at most: a page has no room for more. */
#define HYB_SYM_MAX_DATA	65535

/* Strings that are coded while a table is kept, in leaves. */
#define HYB_SYM_KEEP		8

/* Bytes behind a string's memory that decoding may write to. */
#define HYB_SYM_SLACK		(8 * HYB_SYM_LENGTH)

/* ---- building ---- */

/* Symbols, the shorter ones first, and where to find them. */
typedef struct HybSymTable
{
	uint32_t	n;
	uint64_t	value[HYB_SYM_MAX]; /* the first byte lowest */
	uint8_t		len[HYB_SYM_MAX];
	uint8_t		byte[256];		/* symbols of one byte */
	uint8_t		pair[1024];		/* by two bytes: a symbol of two, */
	uint8_t		head[1024];		/* by the first three: the longest symbol, */
	uint8_t		next[HYB_SYM_MAX];	/* and the next one with the same hash */
} HybSymTable;

/* The codes of strings, as far as the caller has asked for them. */
typedef struct HybSymWork
{
	uint32_t	skip;			/* first bytes of each that are left out */
	uint32_t	ncoded;			/* strings */
	uint32_t   *ends;			/* of their codes; the caller's memory, for as
								 * many as there are strings */
	uint8_t    *data;			/* the same, for twice the bytes of these */
	bool		learned;		/* is there a table? */
	bool		learn_on;		/* from more strings of the same leaf? */
	uint32_t	kept;			/* leaves that it was kept for */
	uint64_t	raw;			/* what it was learned from, in bytes, 0 if it
								 * was adopted, */
	uint64_t	coded;			/* and in codes */
	HybSymTable table;
} HybSymWork;

typedef struct HybSymPlan
{
	uint32_t	size;			/* bytes; UINT32_MAX: it cannot be stored */
	HybSeqPlan	ends;
} HybSymPlan;

/*
 * Code the strings without their first `skip` bytes.  `more` says that all that were
 * there before are there still, and there may be more behind them.
 */
extern void hyb_sym_prepare(const HybStrings *in, uint32_t skip, bool more,
							HybSymWork *work);

/*
 * For the first n strings of those that were prepared.  values has room for n
 * numbers.
 */
extern void hyb_sym_plan(const HybSymWork *work, uint32_t n, uint64_t *values,
						 HybSymPlan *plan);

/* Writes plan->size bytes, returns the byte after. */
extern uint8_t *hyb_sym_write(const HybSymWork *work, uint32_t n,
							  uint64_t *values, const HybSymPlan *plan,
							  uint8_t *out);

/* ---- reading ---- */

typedef struct HybSym
{
	uint32_t	n;
	const uint8_t *counts;
	const uint8_t *symbols;
	HybSeq		ends;
	const uint8_t *data;
	uint32_t	data_len;
} HybSym;

/* Ends that are read at a time, where strings are read one after the other. */
#define HYB_SYM_AHEAD		32

/* Symbols by their codes; those that there are not have no bytes. */
typedef struct HybSymDecoder
{
	uint64_t	value[256];
	uint8_t		len[256];
	uint64_t	ends[HYB_SYM_AHEAD];
} HybSymDecoder;

/* Remembers where strings were read last. */
typedef struct HybSymCursor
{
	HybSymDecoder *decoder;		/* the caller's memory */
	bool		filled;			/* has it this leaf's symbols? */
	uint32_t	next;			/* string after the last one, if not 0, */
	uint64_t	end;			/* and where that one ended */
	uint32_t	ahead;			/* first one whose end is in the decoder, */
	uint32_t	nahead;			/* and how many are */
} HybSymCursor;

/*
 * Opens the stored form at p for n strings.  Returns the byte after it, or NULL
 * if it is malformed or does not end before `end`.  8 bytes after `end` must
 * be readable.
 */
extern const uint8_t *hyb_sym_open(HybSym *sym, uint32_t n, const uint8_t *p,
								   const uint8_t *end);

/* The cursor's memory stays; its contents do not. */
static inline void
hyb_sym_cursor_reset(HybSymCursor *cursor)
{
	cursor->filled = false;
	cursor->next = 0;
	cursor->nahead = 0;
}

/*
 * Decodes a string to out, which has room for cap bytes and HYB_SYM_SLACK more;
 * returns its length, or -1 if it is longer or damaged.
 */
extern int	hyb_sym_read(const HybSym *sym, HybSymCursor *cursor, uint32_t row,
						 uint8_t *out, uint32_t cap);

/*
 * Take the table of strings that are going to be stored again, most of them,
 * before they are prepared; and learn on from there?
 */
extern void hyb_sym_adopt(HybSymWork *work, const HybSym *sym, bool learn_on);

#endif							/* HYB_SYMBOLS_H */
