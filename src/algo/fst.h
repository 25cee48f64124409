/*
 * fst.h
 *		The Fast Succinct Trie: sorted byte strings in about ten bits a node,
 *		searched where they lie (algo/fst_image.h).  Plain C, no PostgreSQL
 *		calls.
 */
#ifndef HYB_FST_H
#define HYB_FST_H

#include "algo/fst_image.h"

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
extern HybFstAnswer hyb_fst_lookup(const HybFst *fst, const uint8_t *key,
								   uint32_t len);

/* Is any key between two cuts? */
extern HybFstAnswer hyb_fst_range(const HybFst *fst, const HybFstCut *low,
								  const HybFstCut *high);

/*
 * Number of keys between two cuts; truncated keys at either end that may lie
 * on the wrong side are counted, so it is at most two too high.
 */
extern HybFstAnswer hyb_fst_count(const HybFst *fst, const HybFstCut *low,
								  const HybFstCut *high, uint32_t *count);

/* ---- building ---- */

typedef struct HybFstBuilder HybFstBuilder;

/* realloc and free in one: size 0 frees.  Does not return NULL otherwise. */
typedef void *(*HybFstResize) (void *old, size_t size);

/* Size of sparse levels : size of dense levels, at least. */
#define HYB_FST_RATIO		64

/* `hash_bits` and `real_bits` are at most 32 each. */
extern HybFstBuilder *hyb_fst_builder_create(HybFstResize resize,
											 unsigned hash_bits,
											 unsigned real_bits,
											 unsigned ratio);
extern void hyb_fst_builder_free(HybFstBuilder *builder);

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

/* Write the image, after finishing; it is 8-byte aligned. */
extern void hyb_fst_builder_write(const HybFstBuilder *builder, void *image);

#endif							/* HYB_FST_H */
