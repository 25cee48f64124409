/*
 * types.h
 *		Types that several algorithms of this folder take or return.  Plain C, no
 *		PostgreSQL calls.
 */
#ifndef HYB_ALGO_TYPES_H
#define HYB_ALGO_TYPES_H

#include <stdint.h>

/* What a filter says about a key or a range.  "No" is always right. */
typedef enum HybFilterAnswer
{
	HYB_ANSWER_NO_HEADER = -2,	/* the image does not even begin as one */
	HYB_ANSWER_DAMAGED = -1,
	HYB_ANSWER_NO = 0,
	HYB_ANSWER_MAYBE = 1,
	HYB_ANSWER_UNKNOWN = 2		/* the kind cannot answer such questions */
} HybFilterAnswer;

/* Strings that wait to be stored, each right behind the one before it. */
typedef struct HybStrings
{
	const uint8_t *bytes;
	const uint32_t *off;
	const uint32_t *len;
	const uint32_t *lcp;		/* frontcode.h: common prefix with the string
								 * before; lcp[0] is not used */
	uint32_t	n;				/* not 0 */
} HybStrings;

#endif							/* HYB_ALGO_TYPES_H */
