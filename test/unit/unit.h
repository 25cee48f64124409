/*
 * unit.h
 *		What the unit tests share: checks that count, random numbers, and
 *		memory whose bounds the address sanitizer watches.
 */
#ifndef HYB_UNIT_H
#define HYB_UNIT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned unit_passed;
static unsigned unit_failed;

#define CHECK(condition, ...) \
	do { \
		if (condition) \
			unit_passed++; \
		else \
		{ \
			unit_failed++; \
			printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
			printf(__VA_ARGS__); \
			printf("\n"); \
		} \
	} while (0)

static inline int
unit_report(const char *name)
{
	printf("%s: %u passed, %u failed\n", name, unit_passed, unit_failed);
	return 0;
}

static uint64_t unit_seed = UINT64_C(88172645463325252);

/* Deterministic (Marsaglia, "Xorshift RNGs", 2003). */
static inline uint64_t
unit_random(void)
{
	unit_seed ^= unit_seed << 13;
	unit_seed ^= unit_seed >> 7;
	unit_seed ^= unit_seed << 17;
	return unit_seed;
}

static inline uint32_t
unit_below(uint32_t n)
{
	return (uint32_t) ((unit_random() >> 11) % n);
}

#endif							/* HYB_UNIT_H */
