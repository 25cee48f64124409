/*
 * fst_search.h
 *		The searches of a Fast Succinct Trie, one table of functions for each
 *		instruction set; algo/fst.h calls those that fit the processor.
 */
#ifndef HYB_FST_SEARCH_H
#define HYB_FST_SEARCH_H

#include "algo/fst_image.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HYB_FST_X86
#include <immintrin.h>
#endif

/* The searches, compiled for one instruction set. */
typedef struct HybFstKernel
{
	HybFstAnswer (*lookup) (const HybFst *fst, const uint8_t *key,
							uint32_t len);
	HybFstAnswer (*range) (const HybFst *fst, const HybFstCut *low,
						   const HybFstCut *high);
	HybFstAnswer (*count) (const HybFst *fst, const HybFstCut *low,
						   const HybFstCut *high, uint32_t *count);
} HybFstKernel;

extern const HybFstKernel hyb_fst_base_kernel;
#ifdef HYB_FST_X86
extern const HybFstKernel hyb_fst_avx2_kernel;
#endif

/* For tests: the kernel in use, or NULL for the processor's best. */
extern void hyb_fst_use_kernel(const HybFstKernel *kernel);

#endif							/* HYB_FST_SEARCH_H */
