/*
 * assert.h
 *		Assertions of plain C.
 *
 * They are compiled where the server's are: with USE_ASSERT_CHECKING, which
 * pg_config.h says, and in the unit tests, which define it themselves.  A
 * variable that only assertions read is HYB_ASSERT_ONLY.
 */
#ifndef HYB_ASSERT_H
#define HYB_ASSERT_H

#if !defined(USE_ASSERT_CHECKING) && defined(__has_include)
#if __has_include("pg_config.h")
#include "pg_config.h"
#endif
#endif

#ifdef USE_ASSERT_CHECKING
#include <stdio.h>
#include <stdlib.h>

#define HYB_ASSERT(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "TRAP: failed Assert(\"%s\"), File: \"%s\", Line: %d\n", \
					#condition, __FILE__, __LINE__); \
			abort(); \
		} \
	} while (0)
#define HYB_ASSERT_ONLY
#else
#define HYB_ASSERT(condition)	((void) 0)
#define HYB_ASSERT_ONLY			__attribute__((unused))
#endif

#endif							/* HYB_ASSERT_H */
