/*
 * fst.h
 *		The Fast Succinct Trie: sorted byte strings in about ten bits a node,
 *		searched where they lie.  Plain C, no PostgreSQL calls.
 *
 * Zhang et al., "SuRF: Practical Range Query Filtering with Fast Succinct
 * Tries", SIGMOD 2018, and Zhang's dissertation, chapters 3 and 4.  All levels are
 * LOUDS-Sparse: each label has a position, with a has-child bit and a first-of-node
 * bit.  Nodes lie level by level.
 *
 * Keys are compared by memcmp, a prefix before what it is a prefix of.  A
 * trie holds each key only as far as it takes to tell it from its neighbours:
 * so answers are one-sided, and a suffix of some bits per key makes wrong ones
 * rarer: the key's bits behind those in the trie.
 *
 * Image, aligned as words of 64 bits are on the machine, native byte order:
 *
 *		header			HybFstHeader
 *		prefix			bytes that all keys begin with
 *		labels			one byte for each position
 *		suffixes		suffix_bits for each key, in order of leaves (bit stream of
 *						algo/bits.h); then zeros up to a multiple of 8
 *		blocks			HybFstBlock for each 512 positions
 *		words			for each 64 positions 64 has-child bits, then 64
 *						first-of-node bits
 *
 * Nodes lie in the order of their parents' labels.  A group is 128 positions.  The
 * child of a label is found from the first child of its group: as many nodes further
 * as the group has children before it.  This takes the place of the rank of has-child
 * bits and the sampled select of first-of-node bits of the paper, which is two
 * dependent walks over the image for each level.
 *
 * A leaf is a label without child, or a terminator: the key that ends at its
 * node.  A terminator is a label 0xFF that comes first and is not the only one.
 * Every node has at least one label besides.  The trie of an only, empty key has no
 * node, and stores no suffix.
 */
#ifndef HYB_FST_H
#define HYB_FST_H

#include "algo/bits.h"
#include "algo/types.h"

#define HYB_FST_MAGIC		0xF5

#define HYB_FST_BLOCK		512 /* positions */
#define HYB_FST_GROUP		128 /* positions */
#define HYB_FST_FAR			0xFFFF	/* does not fit, count from further back */

typedef struct HybFstHeader
{
	uint8_t		magic;
	uint8_t		suffix_bits;	/* of each key */
	uint16_t	prefix_len;
	uint32_t	nkeys;
	uint32_t	npos;			/* positions; 0: the only key is the empty one */
} HybFstHeader;

typedef struct HybFstBlock
{
	uint32_t	rank;			/* has-child bits before this block */
	uint32_t	child;			/* first child of positions from here on: its
								 * first position, npos if there is none */
	uint16_t	child_sub[4];	/* of positions from each group on, less
								 * child; HYB_FST_FAR if that is too much */
} HybFstBlock;

/* A trie opened for reading; points into the image. */
typedef struct HybFst
{
	uint32_t	nkeys;
	uint32_t	npos;
	uint32_t	prefix_len;
	uint32_t	suffix_bits;
	uint32_t	nblocks;
	uint32_t	nwords;
	const uint8_t *prefix;
	const uint8_t *labels;
	const HybFstBlock *blocks;
	const uint64_t *words;
	const uint8_t *suffixes;
} HybFst;

/*
 * A cut: a place between byte strings.  A closed lower bound is BEFORE, an
 * open one SELF; a closed upper bound is SELF, an open one BEFORE.  AFTER is
 * for prefixes.
 */
typedef enum HybFstCutSide
{
	HYB_CUT_BEFORE,				/* below the key */
	HYB_CUT_SELF,				/* above the key, below all that it is a
								 * proper prefix of */
	HYB_CUT_AFTER				/* above the key and those */
} HybFstCutSide;

typedef struct HybFstCut
{
	const uint8_t *key;
	uint32_t	len;			/* 0 and BEFORE: the low end; 0 and AFTER: the
								 * high end */
	HybFstCutSide side;
} HybFstCut;

/* ---- reading ---- */

/*
 * Open an image of at most `size` bytes; false if it cannot be one.  This
 * looks at the header only: whatever the other bytes are, no later call reads
 * outside the image or runs forever.
 */
extern bool hyb_fst_open(HybFst *fst, const void *image, size_t size);

/* Does everything in the image agree?  NULL, or what is wrong. */
extern const char *hyb_fst_verify(const HybFst *fst);

/* Is the key there? */
extern HybFilterAnswer hyb_fst_lookup(const HybFst *fst, const uint8_t *key,
									  uint32_t len);

/* Is any key between two cuts? */
extern HybFilterAnswer hyb_fst_range(const HybFst *fst, const HybFstCut *low,
									 const HybFstCut *high);

/* ---- building ---- */

typedef struct HybFstBuilder HybFstBuilder;

/* realloc, for sizes above 0.  Does not return NULL. */
typedef void *(*HybFstResize) (void *old, size_t size);

/* Bits of a suffix at most. */
#define HYB_FST_MAX_SUFFIX	32

/*
 * This is SuRF, the Succinct Range Filter of Zhang et al.: SuRF-Base with no bits of
 * suffix, SuRF-Real with some.  Nothing frees a builder but what `resize` takes memory
 * from.
 */
extern HybFstBuilder *hyb_fst_builder_create(HybFstResize resize,
											 unsigned suffix_bits);

/* Start over; keeps memory. */
extern void hyb_fst_builder_reset(HybFstBuilder *builder);

/*
 * Keys in ascending order; one equal to the last is passed over.  False if
 * they do not ascend, or are too many or too long for an image.  The memory
 * in use grows with the image, not with the keys.
 */
extern bool hyb_fst_builder_add(HybFstBuilder *builder, const uint8_t *key,
								uint32_t len);

/* Finish: bytes of the image; 0 if there are no keys, or too many. */
extern size_t hyb_fst_builder_finish(HybFstBuilder *builder);

/* Write the image, after finishing; it is aligned as above. */
extern void hyb_fst_builder_write(const HybFstBuilder *builder, void *image);

#endif							/* HYB_FST_H */
