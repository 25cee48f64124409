/*
 * fst_private.h
 *		What the files of the Fast Succinct Trie share.
 */
#ifndef HYB_FST_PRIVATE_H
#define HYB_FST_PRIVATE_H

#include "algo/fst.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define HYB_FST_X86
#include <immintrin.h>
#endif

/* The searches, compiled for one instruction set. */
typedef struct HybFstKernel
{
	HybFstAnswer (*lookup) (const HybFst *fst, const uint8_t *key,
							uint32_t len, uint32_t *leaf);
	HybFstAnswer (*range) (const HybFst *fst, const HybCut *low,
						   const HybCut *high);
	HybFstAnswer (*count) (const HybFst *fst, const HybCut *low,
						   const HybCut *high, uint32_t *count);
} HybFstKernel;

extern const HybFstKernel hyb_fst_base_kernel;
#ifdef HYB_FST_X86
extern const HybFstKernel hyb_fst_avx2_kernel;
#endif

/* For tests: the kernel in use, or NULL for the processor's best. */
extern void hyb_fst_use_kernel(const HybFstKernel *kernel);

#endif							/* HYB_FST_PRIVATE_H */
