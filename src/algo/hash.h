/*
 * hash.h
 *		Hash of a byte string.  Part of the on-disk format: the same on every
 *		machine.
 */
#ifndef HYB_HASH_H
#define HYB_HASH_H

#include "algo/bits.h"

/* A multiply-and-fold hash over 8 bytes at a time. */
static inline uint64_t
hyb_byte_hash(const uint8_t *key, uint32_t len)
{
	uint64_t	h = UINT64_C(0x9E3779B97F4A7C15) ^ len;
	uint32_t	i = 0;

	for (; i + 8 <= len; i += 8)
	{
		h = (h ^ hyb_load64le(key + i)) * UINT64_C(0xFF51AFD7ED558CCD);
		h ^= h >> 32;
	}
	if (i < len)
	{
		uint64_t	rest = 0;

		for (unsigned sh = 0; i < len; i++, sh += 8)
			rest |= (uint64_t) key[i] << sh;
		h = (h ^ rest) * UINT64_C(0xFF51AFD7ED558CCD);
		h ^= h >> 32;
	}
	h *= UINT64_C(0xC4CEB9FE1A85EC53);
	return h ^ (h >> 29);
}

/* Another hash of a hash: MurmurHash3's last step. */
static inline uint64_t
hyb_hash_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xFF51AFD7ED558CCD);
	x ^= x >> 33;
	x *= UINT64_C(0xC4CEB9FE1A85EC53);
	return x ^ (x >> 33);
}

#endif							/* HYB_HASH_H */
