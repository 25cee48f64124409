/*
 * inorder.h
 *		Long byte strings made shorter in order: memcmp of two encoded strings
 *		gives the order of the strings.
 *
 * The first `skip` bytes of a string are stored as they are.  The rest is encoded by
 * arithmetic coding: before each byte a bit whether there is one (0: the string
 * ends), then its bits from the highest one on.  Each bit cuts the range at hand in
 * two, 0 the lower part, in proportion to how likely either value is.  That depends
 * only on the bytes and bits before it.  So strings that begin alike share their
 * ranges up to the bit in which they differ, and their ranges ascend from there on.
 *
 * The code of a string is the number in its range that ends in most zero bytes,
 * without these.  Codes of different strings are different numbers, so their bytes,
 * as if zeroes followed, are in order too.
 *
 * Five estimates of a bit are combined.  Four count how often it was 1 after the same
 * bits of this byte and the same none, one, two or three bytes before.  The fifth is
 * what followed the last time that the same four bytes were there.
 *
 * The encoding is part of the format of indexes: it must give the same bytes
 * for ever, on every machine.  All arithmetic is that of integers.
 */
#ifndef HYB_INORDER_H
#define HYB_INORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer strings are not encoded: more than any that a key has room for */
#define HYB_INORDER_MAX		262144

/*
 * Encode src[skip ... len) to `out`, which has room for `limit` bytes, at least
 * 8.  Returns how many they are, never none, or 0 if they are too many.  `skip`
 * is less than len.
 */
extern size_t hyb_inorder_encode(const uint8_t *src, size_t len, size_t skip,
								 uint8_t *out, size_t limit);

/*
 * Decode what follows the `skip` bytes at `out`, which has room for `size`.
 * Returns the length of the whole string, or 0 if there is not enough room: so
 * that it grows with what there is, callers try again with more, up to
 * HYB_INORDER_MAX.  Any bytes may be decoded.
 */
extern size_t hyb_inorder_decode(const uint8_t *code, size_t codelen,
								 uint8_t *out, size_t skip, size_t size);

#endif							/* HYB_INORDER_H */
