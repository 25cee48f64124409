/*
 * ribbon.h
 *		Ribbon filters: is a key in a set?  "No" is always right, a "maybe" of a
 *		key that is not in it comes once in 2^(bits of a cell).
 *
 * Dillinger, Hübschle-Schneider, Sanders, Walzer: Fast Succinct Retrieval and
 * Approximate Membership using Ribbon, SEA 2022 (standard ribbon, ribbons of
 * 64 bits, with their "smash").  There are cells of a few bits each.  A key's
 * hash names 64 neighbouring cells, a subset of these, and a fingerprint.  For
 * every key of the set the XOR of the subset is the fingerprint.  That is a system of linear equations over bits, a band of
 * 64 wide.  For sets of a leaf's size it has a solution with hardly more cells
 * than keys: for each number of cells some hash functions are tried.  At 400 to 900
 * keys that is 7.1 bits a key; binary fuse filters take 10.2 to 12.9 bits and blocked
 * Bloom filters 9.0 to 12.9, at half the errors (make -C bench/micro run).
 *
 * An image, all of it little-endian, at any address:
 *
 * - number of cells, a multiple of 8 and at least 64 (2)
 * - bits of a cell, from HYB_RIBBON_BITS to HYB_RIBBON_MAX_BITS (1)
 * - number of the hash function (1)
 * - for each 64 cells a word of 8 bytes for each bit: bit 0 of each of these cells,
 *   bit 1 of each, and so on.  If fewer cells are left in the end, words have a byte
 *   for each 8 of them.
 *
 * Plain C, no PostgreSQL calls.  An image may be damaged: nothing outside of it
 * is read.
 */
#ifndef HYB_RIBBON_H
#define HYB_RIBBON_H

#include "algo/bits.h"
#include "algo/types.h"

#define HYB_RIBBON_BITS		7
#define HYB_RIBBON_MAX_BITS	13
#define HYB_RIBBON_WIDTH	64
#define HYB_RIBBON_HEADER	4

#define HYB_RIBBON_MAX_KEYS		8192
#define HYB_RIBBON_MAX_CELLS	(HYB_RIBBON_MAX_KEYS + 4096)

/* Memory for building: whatever it holds. */
typedef struct HybRibbonBuilder
{
	uint32_t	ncells;
	uint8_t		bits;			/* of a cell */
	uint8_t		function;		/* hash function */
	uint64_t	rows[HYB_RIBBON_MAX_CELLS]; /* equation that begins at a cell:
											 * which cells, that one is bit 0;
											 * 0: none does */
	uint16_t	fingerprints[HYB_RIBBON_MAX_CELLS];
} HybRibbonBuilder;

/* Bytes that an image of nkeys keys has at least */
extern size_t hyb_ribbon_least_size(uint32_t nkeys, unsigned bits);

/*
 * Solve the equations of keys with these hashes (hyb_byte_hash), perhaps with
 * duplicates, for cells of `bits` bits.  Returns the bytes of the image; 0 if it
 * cannot be built, which happens only for too many keys.
 */
extern size_t hyb_ribbon_build(HybRibbonBuilder *builder,
							   const uint64_t *hashes, uint32_t nkeys,
							   unsigned bits);

/* Write the image of what was built last. */
extern void hyb_ribbon_write(const HybRibbonBuilder *builder, uint8_t *image);

extern HybFilterAnswer hyb_ribbon_ask(const uint8_t *image, size_t size,
									  uint64_t hash);

/* NULL, or what is wrong. */
extern const char *hyb_ribbon_verify(const void *image, size_t size);

#endif							/* HYB_RIBBON_H */
