/*
 * intseq.h
 *		Sequences of up to 16384 integers, compressed, with access to each
 *		element in constant time.
 *
 * Models; hyb_seq_plan takes the smallest:
 *
 *		CONST	all are `base`
 *		FOR		base + packed residual (frame of reference)
 *		LINEAR	base + ((slope * i) >> shift) + packed residual: a frame of
 *				reference around a line (LeCo, Liu et al., SIGMOD 2024)
 *		EF		ascending sequences: Elias-Fano (Elias 1974, Vigna,
 *				"Quasi-succinct indices", WSDM 2013).  The low `bits` bits of
 *				value - base are packed.  The high parts are written in unary
 *				as the gaps between the ones of a bit string.  If the one of
 *				element i is at p, value - base is ((p - i) << bits) + low.  The
 *				position of every 128th one is kept to start from.
 *
 * All arithmetic is modulo 2^64.
 *
 * Stored form: one byte, bits 0 and 1 the model, 2 to 5 length of base; base
 * (little-endian).  Then, each number one byte unless said otherwise:
 *
 *		FOR		bits; packed residuals
 *		LINEAR	bits, shift, length of slope, slope (zigzag); packed residuals
 *		EF		bits, number of high bits (2 bytes); positions of ones (2 bytes
 *				each), high bits, packed low parts
 */
#ifndef HYB_INTSEQ_H
#define HYB_INTSEQ_H

#include "algo/bits.h"

#define HYB_SEQ_MAX			16384
#define HYB_SEQ_EF_SAMPLE	128

typedef enum HybSeqModel
{
	HYB_SEQ_CONST = 0,
	HYB_SEQ_FOR = 1,
	HYB_SEQ_LINEAR = 2,
	HYB_SEQ_EF = 3
} HybSeqModel;

/* A sequence as it is stored, opened for reading. */
typedef struct HybSeq
{
	uint8_t		model;
	uint8_t		bits;
	uint8_t		shift;			/* LINEAR */
	uint32_t	n;
	uint32_t	high_bits;		/* EF */
	uint64_t	base;
	int64_t		slope;
	const uint8_t *data;		/* packed residuals or low parts */
	const uint8_t *high;		/* EF */
	const uint8_t *samples;		/* EF */
} HybSeq;

/* How a sequence is going to be stored. */
typedef struct HybSeqPlan
{
	uint8_t		model;
	uint8_t		bits;
	uint8_t		shift;			/* LINEAR */
	bool		ascending;		/* never descends: searchable, EF possible */
	uint32_t	high_bits;
	uint32_t	size;			/* bytes, header included */
	uint64_t	base;
	int64_t		slope;
} HybSeqPlan;

/* Remembers where an EF sequence was read last. */
typedef struct HybSeqCursor
{
	uint32_t	next;			/* element that `pos` leads to */
	uint32_t	pos;			/* high bits before it */
} HybSeqCursor;

extern void hyb_seq_plan(const uint64_t *v, uint32_t n, HybSeqPlan *plan);

/* The same, where their least and greatest one and whether they ascend are known. */
extern void hyb_seq_plan_range(const uint64_t *v, uint32_t n, uint64_t min,
							   uint64_t max, bool ascending, HybSeqPlan *plan);

/*
 * Writes plan->size bytes; the memory must be zero, and 8 more bytes
 * accessible.  Returns the byte after.
 */
extern uint8_t *hyb_seq_write(const HybSeqPlan *plan, const uint64_t *v,
							  uint32_t n, uint8_t *out);

/*
 * Opens the stored form at p for a sequence of n elements.  Returns the byte
 * after it, or NULL if it is malformed or does not end at or before `end`.
 * 8 bytes after `end` must be readable.  Whatever the bytes are, later calls
 * then read no memory but [p, end + 8).
 */
extern const uint8_t *hyb_seq_open(HybSeq *seq, uint32_t n, const uint8_t *p,
								   const uint8_t *end);

extern uint32_t hyb_seq_ef_select(const HybSeq *seq, uint32_t i);

static inline uint64_t
hyb_seq_get(const HybSeq *seq, uint32_t i)
{
	uint64_t	low;

	HYB_ASSERT(i < seq->n);
	if (seq->model == HYB_SEQ_CONST)
		return seq->base;
	low = hyb_bits_get(seq->data, (uint64_t) i * seq->bits, seq->bits);
	if (seq->model == HYB_SEQ_FOR)
		return seq->base + low;
	if (seq->model == HYB_SEQ_LINEAR)
		return seq->base + low +
			(uint64_t) ((int64_t) ((uint64_t) seq->slope * i) >> seq->shift);
	return seq->base + low +
		((uint64_t) (hyb_seq_ef_select(seq, i) - i) << seq->bits);
}

/* The same, cheaper for EF when the elements are asked for one by one. */
extern uint64_t hyb_seq_get_next(const HybSeq *seq, HybSeqCursor *cursor,
								 uint32_t i);

/* Elements [from, from + n). */
extern void hyb_seq_decode(const HybSeq *seq, uint32_t from, uint32_t n,
						   uint64_t *out);

/*
 * First element of [lo, hi) that is >= x, hi if none, for a sequence in which
 * no element < x follows one that is >= x.
 */
extern uint32_t hyb_seq_lower_bound(const HybSeq *seq, uint32_t lo,
									uint32_t hi, uint64_t x);

#endif							/* HYB_INTSEQ_H */
