/*
 * internal.h
 *		What the files of the string encoder share.
 */
#ifndef HYB_HOPE_INTERNAL_H
#define HYB_HOPE_INTERNAL_H

#include "algo/bits.h"
#include "algo/hope/hope.h"

/* ---- intervals.c ---- */

/* A run of bytes that deserves intervals of its own. */
typedef struct HybHopePattern
{
	uint8_t		len;
	uint8_t		bytes[HYB_HOPE_MAX_SYMBOL];
} HybHopePattern;

/*
 * Intervals: number i starts at the string bytes[off[i]] to bytes[off[i + 1]]
 * and ends where the next one starts, the last one at the end of the axis.
 * Its symbol is the first symlen[i] bytes of that string.
 */
typedef struct HybHopeIntervals
{
	uint32_t	n;
	uint8_t    *bytes;
	uint32_t   *off;
	uint8_t    *symlen;
} HybHopeIntervals;

extern int	hyb_hope_pattern_compare(const void *a, const void *b);

/*
 * The intervals that start or end with a pattern.  The patterns are sorted and
 * differ, and every single byte is one of them.
 */
extern void hyb_hope_make_intervals(HybHopeIntervals *intervals,
									const HybHopePattern *patterns, uint32_t n,
									const HybHopeMemory *memory);

/*
 * Compute symlen; false if the strings do not ascend, or an interval has no
 * symbol.
 */
extern bool hyb_hope_make_symbols(HybHopeIntervals *intervals);

extern void hyb_hope_free_intervals(HybHopeIntervals *intervals,
									const HybHopeMemory *memory);

/* Which interval does a string lie in? */

/*
 * What a step of a lookup leads to: the number of a node << 1 | 1; or the
 * value of an interval, whose lowest bit is 0.
 */
typedef uint64_t HybHopeStep;

#define HYB_HOPE_IS_NODE(step)		(((step) & 1) != 0)
#define HYB_HOPE_INTERVAL(step)		((uint32_t) ((step) >> 1))

/*
 * A node stands for a string that is the beginning of other intervals' lower
 * bounds; bits tell by which bytes those go on.  The steps of a node are one
 * for the strings below the first such byte, one for that byte, one for what
 * lies between it and the second, and so on.  A node is a cache line.
 */
typedef struct HybHopeNode
{
	struct
	{
		uint64_t	bits;
		uint32_t	steps;		/* those of the node from this word on */
		uint32_t	unused;
	}			word[4];
} HybHopeNode;

typedef struct HybHopeTrie
{
	uint32_t	nnodes;
	uint32_t	nsteps;
	HybHopeStep one[256];		/* interval of a string of one byte */
	HybHopeStep *two;			/* by two bytes, low byte first */
	HybHopeNode *nodes;
	HybHopeStep *steps;
	void	   *node_memory;	/* where nodes, which are aligned, lie */
} HybHopeTrie;

/* The intervals' values are values[], or twice their numbers if it is NULL. */
extern void hyb_hope_make_trie(HybHopeTrie *trie,
							   const HybHopeIntervals *intervals,
							   const HybHopeStep *values,
							   const HybHopeMemory *memory);
extern void hyb_hope_free_trie(HybHopeTrie *trie, const HybHopeMemory *memory);

#if defined(__x86_64__) && defined(__GNUC__)
#define HYB_HOPE_POPCNT			/* there are processors with and without */
#endif

/*
 * The value of the interval of the string at p, of left > 0 bytes.  fast: in
 * a function compiled for processors with a population count instruction.
 * The only branches that are hard to foretell are those at the ends of paths.
 */
HYB_ALWAYS_INLINE HybHopeStep
hyb_hope_find_with(const HybHopeTrie *trie, const uint8_t *p, size_t left,
				   bool fast)
{
	HybHopeStep step;
	size_t		depth = 2;

	if (left < 2)
		return trie->one[*p];
	step = trie->two[hyb_load16(p)];
	while (HYB_HOPE_IS_NODE(step))
	{
		const HybHopeNode *node = &trie->nodes[step >> 1];
		unsigned	c;
		uint64_t	bits;
		uint64_t	below;
		unsigned	rank;

		if (depth == left)
			return trie->steps[node->word[0].steps];
		c = p[depth++];
		bits = node->word[c >> 6].bits;
		below = bits & ((UINT64_C(1) << (c & 63)) - 1);
		rank = fast ? (unsigned) __builtin_popcountll(below) :
			hyb_popcount64(below);
		step = trie->steps[node->word[c >> 6].steps + 2 * rank +
						   (bits >> (c & 63) & 1)];
	}
	return step;
}

static inline uint32_t
hyb_hope_find(const HybHopeTrie *trie, const uint8_t *p, size_t left)
{
	return HYB_HOPE_INTERVAL(hyb_hope_find_with(trie, p, left, false));
}

/* ---- select.c ---- */

/* Choose the intervals of a scheme, and the weight of each, from weights[1] on. */
extern void hyb_hope_select(HybHopeScheme scheme, uint32_t entries,
							const HybHopeSample *sample,
							HybHopeIntervals *intervals, uint64_t **weights,
							const HybHopeMemory *memory);

/* The intervals of Single-Char and Double-Char. */
extern void hyb_hope_fixed_intervals(HybHopeScheme scheme,
									 HybHopeIntervals *intervals,
									 const HybHopeMemory *memory);

/* ---- code.c ---- */

/* Code lengths of a code of least average length; weights are above 0. */
extern void hyb_hope_optimal_lengths(const uint64_t *weights, uint32_t n,
									 uint8_t *lengths,
									 const HybHopeMemory *memory);

/* The same for codes of at most `limit` bits; may raise small weights. */
extern void hyb_hope_limited_lengths(uint64_t *weights, uint32_t n,
									 unsigned limit, uint8_t *lengths,
									 const HybHopeMemory *memory);

/*
 * Ascending codes of the given lengths; false if there is no such prefix code
 * or one is longer than HYB_HOPE_MAX_CODE.
 */
extern bool hyb_hope_codes(const uint8_t *lengths, uint32_t n,
						   uint32_t *codes);

/* ---- tables.c ---- */

/*
 * An interval's value in the trie, all that encoding needs of it: the code,
 * left-aligned, above bit 37; the symbol's length in bits 6 to 11, the code's
 * in bits 1 to 5.
 */
#define HYB_HOPE_VALUE(code, len, symlen) \
	((uint64_t) (code) << (64 - (len)) | (uint64_t) (symlen) << 6 | (len) << 1)
#define HYB_HOPE_VALUE_CODE(value)		((value) & ~UINT64_C(0) << 38)
#define HYB_HOPE_VALUE_LEN(value)		((unsigned) ((value) >> 1) & 31)
#define HYB_HOPE_VALUE_SYMLEN(value)	((unsigned) ((value) >> 6) & 63)

/*
 * What the next HYB_HOPE_DECODE_BITS bits of a code stand for:
 *
 * - one or more symbols, together symlen <= 4 bytes, which `bytes` holds
 * - a longer symbol, at `bytes` of the intervals' strings
 * - len 0: a longer code, or the end.  `bytes` is the last interval whose code is
 *   not above those bits followed by zeroes, or HYB_HOPE_NONE.
 */
typedef struct HybHopeDecode
{
	uint32_t	bytes;
	uint8_t		len;
	uint8_t		symlen;
} HybHopeDecode;

#define HYB_HOPE_DECODE_BITS	13
#define HYB_HOPE_NONE			UINT32_MAX

struct HybHope
{
	HybHopeMemory memory;
	HybHopeScheme scheme;
	uint32_t	entries;
	unsigned	shortest;		/* code */
	unsigned	longest_symbol;
	uint8_t    *lengths;		/* code lengths: of the code of zeroes, then
								 * of the intervals */
	bool		popcnt;			/* does the processor have the instruction? */
	HybHopeIntervals intervals;
	HybHopeTrie trie;

	/* decoding */
	HybHopeDecode *decode;
	uint32_t   *aligned;		/* codes, left-aligned to 32 bits */
};

static inline bool
hyb_hope_is_fixed(HybHopeScheme scheme)
{
	return scheme == HYB_HOPE_SINGLE_CHAR || scheme == HYB_HOPE_DOUBLE_CHAR;
}

#endif							/* HYB_HOPE_INTERNAL_H */
