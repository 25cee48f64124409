/*
 * fst_avx2.c
 *		The trie's searches for x86-64 processors with AVX2 and POPCNT.
 */
#include "algo/fst_search.h"

#ifdef HYB_FST_X86
#define FST_FN(name)	hyb_fst_avx2_##name
#define FST_TARGET		__attribute__((target("avx2,bmi,bmi2,lzcnt,popcnt")))
#define FST_WIDTH		32
#define FST_BMI
#define FST_POPCOUNT(x) ((uint32_t) __builtin_popcountll(x))
#include "algo/fst_kernel.h"
#endif
