/*
 * grafite.h
 *		Grafite: does a set of numbers have one in a range?  "No" is always
 *		right; how often "maybe" is wrong depends on the length of the range
 *		only, not on how near to numbers of the set it lies.
 *
 * Costa, Ferragina, Vinciguerra: Grafite: Taming Adversarial Queries with
 * Optimal Range Filters, SIGMOD 2024.  Numbers are mapped to codes below a
 * bound r by a hash function that keeps neighbours together: x has the code
 * (q(x / r) + x) mod r, q is a hash.  So a range shorter than r has the codes
 * of one interval, or of two around the end of the code space.  If these cover no
 * code of the set, the range has no number of it.  Any two numbers of different
 * blocks of r have the same distance of codes with probability 1 / r.  So a range of
 * length len finds one of the n codes by chance with a probability of at most
 * len * n / r.  Codes are ascending, Elias-Fano coded.
 *
 * Here r = n * 2^low_bits, so the probability is len / 2^low_bits, for some
 * low_bits + 2.3 bits a number.
 *
 * Numbers belong to groups, of keys that begin alike, say.  The caller gives a hash
 * of the group, which q takes along.  Ranges lie within a group.
 *
 * A set of one group whose numbers lie closer together than r is *dense*: x has the
 * code x mod r.  low_bits is the least that leaves r above the distance from the
 * least to the greatest number, so all numbers in between are told apart.  One in
 * 256 other groups is taken for the set's.
 *
 * An image, all of it little-endian, at any address.  A bucket is the codes with the
 * same code >> low_bits; there are as many buckets as codes.
 *
 * - number of codes, 1 to HYB_GRAFITE_MAX_KEYS (2)
 * - low_bits (1)
 * - two numbers for the caller (1 each)
 * - 1 if dense, else 0 (1)
 * - 8 bits of the hash of the group, if dense (1)
 * - 0 (1)
 * - for each 64th bucket but the first: the codes before it (2)
 * - the low bits of codes, packed (bits.h), up to the next byte
 * - words of 8 bytes: for each bucket a one for each of its codes, then a zero;
 *   zeros in the end
 *
 * Plain C, no PostgreSQL calls.  An image may be damaged: nothing outside of it
 * is read.
 */
#ifndef HYB_GRAFITE_H
#define HYB_GRAFITE_H

#include "algo/bits.h"
#include "algo/types.h"

#define HYB_GRAFITE_MAX_KEYS	8192
#define HYB_GRAFITE_MAX_LOW		48
#define HYB_GRAFITE_HEADER		8

typedef struct HybGrafiteKey
{
	uint64_t	group;			/* a hash */
	uint64_t	number;
} HybGrafiteKey;

/* Memory for building: whatever it holds. */
typedef struct HybGrafiteBuilder
{
	uint32_t	n;
	unsigned	low_bits;
	bool		dense;
	uint64_t	group;			/* if dense */
	uint64_t	codes[HYB_GRAFITE_MAX_KEYS];	/* ascending */
} HybGrafiteBuilder;

/*
 * Code a set of keys, in any order and perhaps with duplicates, with at most
 * `low_bits` low bits.  Returns the bytes of the image; 0 for no keys or too many.
 */
extern size_t hyb_grafite_build(HybGrafiteBuilder *builder,
								const HybGrafiteKey *keys, uint32_t n,
								unsigned low_bits);

/* Write the image of what was built last, with two numbers for the caller. */
extern void hyb_grafite_write(const HybGrafiteBuilder *builder, uint8_t first,
							  uint8_t second, uint8_t *image);

/* The caller's numbers.  False if the image does not begin as one. */
extern bool hyb_grafite_numbers(const uint8_t *image, size_t size,
								uint8_t *first, uint8_t *second);

/*
 * May the set have a number from low to high, both included, of the group?
 * Ranges longer than r get a MAYBE.
 */
extern HybFilterAnswer hyb_grafite_ask(const uint8_t *image, size_t size,
									   uint64_t group, uint64_t low,
									   uint64_t high);

/* NULL, or what is wrong. */
extern const char *hyb_grafite_verify(const void *image, size_t size);

#endif							/* HYB_GRAFITE_H */
