/*
 * fst_base.c
 *		The trie's searches for any processor; SSE2 is part of x86-64.
 */
#include "algo/fst_search.h"

#define FST_FN(name)	hyb_fst_base_##name
#define FST_TARGET
#ifdef HYB_FST_X86
#define FST_WIDTH		16
#else
#define FST_WIDTH		0
#endif
#define FST_POPCOUNT(x) ((uint32_t) hyb_popcount64(x))
#include "algo/fst_kernel.h"
