/*
 * packer.h
 *		Writing packed numbers one after the other.
 */
#ifndef HYB_PACKER_H
#define HYB_PACKER_H

#include "algo/bits.h"

static inline uint32_t
hyb_packed_bytes(uint32_t n, unsigned bits)
{
	return (uint32_t) (((uint64_t) n * bits + 7) / 8);
}

/* Writes numbers of `bits` bits each, a word at a time. */
typedef struct HybPacker
{
	uint8_t    *out;
	uint64_t	word;
	unsigned	fill;			/* bits in word, below 64 */
	unsigned	bits;
} HybPacker;

static inline void
hyb_packer_put(HybPacker *p, uint64_t v)
{
	HYB_ASSERT(p->fill < 64 && p->bits <= 64);
	HYB_ASSERT(p->bits == 64 || v >> p->bits == 0);
	p->word |= v << p->fill;
	p->fill += p->bits;
	if (p->fill >= 64)
	{
		hyb_store64le(p->out, p->word);
		p->out += 8;
		p->fill -= 64;
		p->word = p->fill == 0 ? 0 : v >> (p->bits - p->fill);
	}
}

static inline uint8_t *
hyb_packer_end(HybPacker *p)
{
	HYB_ASSERT(p->fill < 64);
	for (unsigned i = 0; i < p->fill; i += 8)
		*p->out++ = (uint8_t) (p->word >> i);
	return p->out;
}

#endif							/* HYB_PACKER_H */
