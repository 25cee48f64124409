/*
 * lzgroups.h
 *		Strings compressed by LZ4, a group of them at a time.
 *
 * For payload: strings that are not searched and that repeat parts of each other, as
 * JSON does.  Neighbouring strings of 4 kB together are a group, which a reader
 * decompresses for any of its strings.  The first group is the dictionary of all
 * others, so a reader of another group decompresses the first one, too, once.
 *
 * Stored form:
 *
 * - shift (1 byte): 1 << shift strings are a group
 * - the ends of the strings, counted from the start of the first one, a sequence
 *   (intseq.h)
 * - for each group the end of its data (2 bytes), counted from the start of all data
 * - data; a group whose data is as long as its strings is stored as it is
 */
#ifndef HYB_LZGROUPS_H
#define HYB_LZGROUPS_H

#include "algo/intseq.h"
#include "algo/types.h"

/* Bytes of strings that groups are to have about, and at most. */
#define HYB_LZ_GROUP		4096
#define HYB_LZ_MAX_GROUP	8192

/* Groups of at most 128 strings. */
#define HYB_LZ_MAX_SHIFT	7

/* Compressed bytes of all strings at most: a page has no room for more. */
#define HYB_LZ_MAX_DATA		65535

/* ---- building ---- */

/* Groups of strings, compressed as far as the caller has asked for them. */
typedef struct HybLzWork
{
	uint8_t		shift;
	uint32_t	ngroups;		/* whole groups that are compressed */
	uint32_t   *ends;			/* of their data; the caller's memory, for as
								 * many as there are strings */
	uint8_t    *data;			/* the same, for as many bytes as these have */
	uint8_t		last[HYB_LZ_MAX_GROUP]; /* a group that is not whole */
} HybLzWork;

typedef struct HybLzPlan
{
	uint32_t	size;			/* bytes; UINT32_MAX: it cannot be stored */
	HybSeqPlan	ends;
} HybLzPlan;

/*
 * There are strings, none longer than HYB_LZ_MAX_GROUP: how many of them are a
 * group?  `more` says that all that were there before are there still, and
 * there may be more behind them: what was compressed is kept then, if groups of
 * as many do for all.
 */
extern void hyb_lz_prepare(const HybStrings *in, bool more, HybLzWork *work);

/*
 * For the first n strings, of those that were prepared.  values has room for n
 * numbers.
 */
extern void hyb_lz_plan(const HybStrings *in, HybLzWork *work, uint32_t n,
						uint64_t *values, HybLzPlan *plan);

/* Writes plan->size bytes, returns the byte after. */
extern uint8_t *hyb_lz_write(const HybStrings *in, HybLzWork *work, uint32_t n,
							 uint64_t *values, const HybLzPlan *plan,
							 uint8_t *out);

/* ---- reading ---- */

typedef struct HybLz
{
	uint32_t	n;
	uint8_t		shift;
	uint32_t	ngroups;
	HybSeq		ends;
	const uint8_t *group_ends;
	const uint8_t *data;
} HybLz;

/*
 * Groups that are decompressed: the first one, and right behind it another one,
 * which is how LZ4 reads a dictionary fastest.
 */
typedef struct HybLzBuffers
{
	uint8_t		bytes[2 * HYB_LZ_MAX_GROUP];
} HybLzBuffers;

typedef struct HybLzCursor
{
	HybLzBuffers *buffers;		/* the caller's memory */
	int			group;			/* that it has, perhaps the first, or -1 */
	uint32_t	first_len;		/* of the first group; 0: it is not there */
	uint32_t	start;			/* of the group's first string */
	uint32_t	len;			/* of the group */
} HybLzCursor;

/*
 * Opens the stored form at p for n strings.  Returns the byte after it, or NULL
 * if it is malformed or does not end before `end`.  8 bytes after `end` must
 * be readable.
 */
extern const uint8_t *hyb_lz_open(HybLz *lz, uint32_t n, const uint8_t *p,
								  const uint8_t *end);

/* The cursor's memory stays; its contents do not. */
static inline void
hyb_lz_cursor_reset(HybLzCursor *cursor)
{
	cursor->group = -1;
	cursor->first_len = 0;
}

/*
 * A string, in the cursor's memory: it holds until one of another group is
 * read.  NULL if the data is damaged.
 */
extern const uint8_t *hyb_lz_read(const HybLz *lz, HybLzCursor *cursor,
								  uint32_t row, uint32_t *len);

#endif							/* HYB_LZGROUPS_H */
