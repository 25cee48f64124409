/*
 * fst.h
 *		The Fast Succinct Trie: sorted byte strings in about ten bits a node,
 *		searched where they lie.  Plain C, no PostgreSQL calls.
 *
 * Zhang et al., "SuRF: Practical Range Query Filtering with Fast Succinct
 * Tries", SIGMOD 2018, and Zhang's dissertation, chapters 3 and 4.  The upper
 * levels are LOUDS-Dense (two bitmaps of 256 bits a node), the lower ones
 * LOUDS-Sparse (label, has-child bit, first-of-node bit); nodes are numbered
 * level by level over both.
 *
 * Keys are compared by memcmp, a prefix before what it is a prefix of.  A
 * trie holds whole keys (HYB_FST_EXACT), or each key only as far as it takes
 * to tell it from its neighbours: then answers are one-sided, and a suffix of
 * some bits per key makes wrong ones rarer (algo/surf.h).
 *
 * Image, 8-byte aligned, native byte order:
 *
 *		header			HybFstHeader
 *		prefix			bytes that all keys begin with, padded to 8
 *		dense nodes		HybFstDense each
 *		labels			one byte for each sparse position, padded to 8
 *		blocks			HybFstBlock for each 512 sparse positions
 *		words			for each 64 sparse positions 64 has-child bits, then 64
 *						first-of-node bits
 *		payload			payload_bits for each key, in order of leaves (bit
 *						stream of algo/bits.h), and 8 bytes that may be read
 *
 * Nodes lie in the order of their parents' labels, so the child of a label is
 * found from where the first child of its group of labels (128 sparse
 * positions, 64 labels of a dense node) begins: as many nodes further as the
 * group has children before it.  This takes the place of the rank of has-child
 * bits and the sampled select of first-of-node bits of the paper, which is two
 * dependent walks over the image for each level.
 *
 * A leaf is a label without child, or a terminator: the key that ends at its
 * node.  A sparse node's terminator is a label 0xFF that comes first and is
 * not the only one; a dense node has a flag.  Every node but that of an only,
 * empty key has at least one label besides.
 */
#ifndef HYB_FST_H
#define HYB_FST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size of sparse levels : size of dense levels, at least. */
#define HYB_FST_RATIO		64

#define HYB_FST_MAGIC		0x4654
#define HYB_FST_EXACT		0x01	/* keys are whole */
#define HYB_FST_EMPTY_KEY	0x02	/* the only key is the empty one */
#define HYB_FST_FLAGS		0x03

#define HYB_FST_BLOCK		512 /* positions */
#define HYB_FST_GROUP		128 /* positions */
#define HYB_FST_FAR			0xFFFF	/* does not fit, count from further back */

typedef struct HybFstHeader
{
	uint32_t	size;			/* of the image */
	uint16_t	magic;
	uint8_t		flags;
	uint8_t		hash_bits;		/* of the payload: upper part, hash of the key */
	uint8_t		real_bits;		/* lower part: the key's bits after the trie's */
	uint8_t		payload_bits;
	uint16_t	height;			/* levels */
	uint32_t	nkeys;
	uint32_t	npos;			/* sparse positions */
	uint32_t	nnodes;			/* sparse nodes */
	uint32_t	ndense;			/* dense nodes */
	uint32_t	dense_children; /* has-child bits of dense nodes */
	uint32_t	dense_leaves;	/* leaves of dense nodes */
	uint16_t	prefix_len;
	uint16_t	reserved;
} HybFstHeader;

/*
 * The first child at or after a label: a dense node's number, or, in the last
 * dense level, a sparse node's first position; npos if there is none.
 */
typedef struct HybFstDense
{
	uint64_t	labels[4];
	uint64_t	children[4];
	uint32_t	child;			/* of labels from 0 on */
	uint32_t	leaf_base;		/* leaves before this node */
	uint16_t	child_sub[3];	/* of labels from 64, 128, 192 on, less child */
	uint8_t		terminator;
	uint8_t		sparse;			/* children are */
} HybFstDense;

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
	uint32_t	nnodes;
	uint32_t	ndense;
	uint32_t	dense_children;
	uint32_t	dense_leaves;
	uint32_t	height;
	uint32_t	prefix_len;
	uint32_t	flags;
	uint32_t	hash_bits;
	uint32_t	real_bits;
	uint32_t	payload_bits;
	uint32_t	size;
	uint32_t	nblocks;
	uint32_t	nwords;
	const uint8_t *prefix;
	const HybFstDense *dense;
	const uint8_t *labels;
	const HybFstBlock *blocks;
	const uint64_t *words;
	const uint8_t *payload;
	const uint8_t *end;
} HybFst;

/* What a question is answered with.  HYB_FST_DAMAGED: the image is. */
typedef enum HybFstAnswer
{
	HYB_FST_DAMAGED = -1,
	HYB_FST_NO = 0,
	HYB_FST_YES = 1				/* "maybe", unless the trie is exact */
} HybFstAnswer;

/*
 * A cut: a place between byte strings.  A closed lower bound is BEFORE, an
 * open one SELF; a closed upper bound is SELF, an open one BEFORE.  AFTER is
 * for prefixes.
 */
typedef enum HybCutSide
{
	HYB_CUT_BEFORE,				/* below the key */
	HYB_CUT_SELF,				/* above the key, below all that it is a
								 * proper prefix of */
	HYB_CUT_AFTER				/* above the key and those */
} HybCutSide;

typedef struct HybCut
{
	const uint8_t *key;
	uint32_t	len;			/* 0 and BEFORE: the low end; 0 and AFTER: the
								 * high end */
	HybCutSide	side;
} HybCut;

/* ---- reading ---- */

/*
 * Open an image of at most `size` bytes; false if it cannot be one.  This
 * looks at the header only: whatever the other bytes are, no later call reads
 * outside the image or runs forever.
 */
extern bool hyb_fst_open(HybFst *fst, const void *image, size_t size);

/* Does everything in the image agree?  NULL, or what is wrong. */
extern const char *hyb_fst_verify(const HybFst *fst);

/* Is the key there?  With *leaf (unless NULL) its number. */
extern HybFstAnswer hyb_fst_lookup(const HybFst *fst, const uint8_t *key,
								   uint32_t len, uint32_t *leaf);

/* Is any key between two cuts? */
extern HybFstAnswer hyb_fst_range(const HybFst *fst, const HybCut *low,
								  const HybCut *high);

/*
 * Number of keys between two cuts; truncated keys at either end that may lie
 * on the wrong side are counted, so it is at most two too high.
 */
extern HybFstAnswer hyb_fst_count(const HybFst *fst, const HybCut *low,
								  const HybCut *high, uint32_t *count);

extern uint64_t hyb_fst_payload(const HybFst *fst, uint32_t leaf);

/* One level of a path: a label of a node. */
typedef struct HybFstCursor
{
	uint32_t	at;				/* dense: node; sparse: position */
	int16_t		label;			/* -1: terminator */
	bool		dense;
} HybFstCursor;

typedef struct HybFstIter
{
	const HybFst *fst;
	bool		valid;			/* at a key */
	bool		ambiguous;		/* after a seek: the key may lie on the wrong
								 * side of the cut */
	bool		damaged;
	uint32_t	depth;			/* cursors in use */
	uint32_t	leaf;			/* number of the leaf at hand */
	HybFstCursor *cursors;		/* height; the caller's memory */
	uint8_t    *key;			/* prefix_len + height bytes; the caller's */
	uint32_t	keylen;			/* bytes known of the key at hand */
} HybFstIter;

extern void hyb_fst_iter_init(HybFstIter *iter, const HybFst *fst,
							  HybFstCursor *cursors, uint8_t *key);

/* To the first key that may lie above the cut, or the last that may lie below
 * it.  These return iter->valid. */
extern bool hyb_fst_seek(HybFstIter *iter, const HybCut *cut);
extern bool hyb_fst_seek_last(HybFstIter *iter, const HybCut *cut);
extern bool hyb_fst_next(HybFstIter *iter);
extern bool hyb_fst_prev(HybFstIter *iter);

/* ---- building ---- */

typedef struct HybFstBuilder HybFstBuilder;

/* realloc and free in one: size 0 frees.  Does not return NULL otherwise. */
typedef void *(*HybFstResize) (void *old, size_t size);

/* `hash_bits` and `real_bits` are at most 32 each, and 0 if exact. */
extern HybFstBuilder *hyb_fst_builder_create(HybFstResize resize, bool exact,
											 unsigned hash_bits,
											 unsigned real_bits);
extern void hyb_fst_builder_free(HybFstBuilder *builder);

/* Start over; keeps memory. */
extern void hyb_fst_builder_reset(HybFstBuilder *builder);

/* With `payload` bits per key of the caller's own, exact tries only. */
extern void hyb_fst_builder_payload(HybFstBuilder *builder, unsigned bits);
extern void hyb_fst_builder_ratio(HybFstBuilder *builder, unsigned ratio);

/*
 * Keys in ascending order; one equal to the last is passed over.  False if
 * they do not ascend, or are too many or too long for an image.  The memory
 * in use grows with the image, not with the keys.
 */
extern bool hyb_fst_builder_add(HybFstBuilder *builder, const uint8_t *key,
								uint32_t len, uint64_t payload);

/* Finish: bytes of the image; 0 if there are no keys, or too many. */
extern size_t hyb_fst_builder_finish(HybFstBuilder *builder);

/* Write the image, after finishing; it is 8-byte aligned. */
extern void hyb_fst_builder_write(const HybFstBuilder *builder, void *image);

extern uint64_t hyb_fst_hash(const uint8_t *key, uint32_t len);

#endif							/* HYB_FST_H */
