/*
 * bits.h
 *		Bit packing, word tricks, hashes, assertions.  Plain C, no PostgreSQL calls.
 *
 * Packed values are little-endian bit streams: value i of width `bits` takes
 * the bits [i * bits, (i + 1) * bits), least significant bit first.  Reading
 * and writing use 8-byte unaligned accesses, so up to 8 bytes after the last
 * packed byte must be accessible; writing leaves them unchanged.
 */
#ifndef HYB_BITS_H
#define HYB_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Assertions are compiled where the server's are: with USE_ASSERT_CHECKING, which
 * pg_config.h or a unit test defines.  A variable that only assertions read is
 * HYB_ASSERT_ONLY.
 */
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

#define HYB_ALWAYS_INLINE static inline __attribute__((always_inline))

/*
 * Has the processor fetch the cache line of an address.  gcc takes a function that does
 * nothing else for one without effect, and drops its calls: it has to be
 * HYB_ALWAYS_INLINE.
 */
#define HYB_PREFETCH(address)	__builtin_prefetch(address)

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HYB_LE64(x) __builtin_bswap64(x)
#define HYB_BE64(x) (x)
#else
#define HYB_LE64(x) (x)
#define HYB_BE64(x) __builtin_bswap64(x)
#endif

static inline uint64_t
hyb_load64le(const uint8_t *p)
{
	uint64_t	v;

	memcpy(&v, p, 8);
	return HYB_LE64(v);
}

static inline void
hyb_store64le(uint8_t *p, uint64_t v)
{
	v = HYB_LE64(v);
	memcpy(p, &v, 8);
}

static inline uint64_t
hyb_load64be(const uint8_t *p)
{
	uint64_t	v;

	memcpy(&v, p, 8);
	return HYB_BE64(v);
}

static inline void
hyb_store64be(uint8_t *p, uint64_t v)
{
	v = HYB_BE64(v);
	memcpy(p, &v, 8);
}

static inline uint32_t
hyb_load16(const uint8_t *p)
{
	return p[0] | ((uint32_t) p[1] << 8);
}

static inline void
hyb_store16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t) v;
	p[1] = (uint8_t) (v >> 8);
}

/* Bits needed to write v; 0 for 0. */
static inline unsigned
hyb_bit_width(uint64_t v)
{
	return v == 0 ? 0 : 64 - (unsigned) __builtin_clzll(v);
}

static inline unsigned
hyb_byte_width(uint64_t v)
{
	return (hyb_bit_width(v) + 7) / 8;
}

static inline uint64_t
hyb_bits_get(const uint8_t *data, uint64_t bitoff, unsigned bits)
{
	const uint8_t *p = data + (bitoff >> 3);
	unsigned	sh = bitoff & 7;
	uint64_t	v;

	HYB_ASSERT(bits <= 64);
	if (bits == 0)
		return 0;
	v = hyb_load64le(p) >> sh;
	if (sh + bits > 64)
		v |= (uint64_t) p[8] << (64 - sh);
	return v & (~UINT64_C(0) >> (64 - bits));
}

/* The target bits must be zero. */
static inline void
hyb_bits_put(uint8_t *data, uint64_t bitoff, unsigned bits, uint64_t v)
{
	uint8_t    *p = data + (bitoff >> 3);
	unsigned	sh = bitoff & 7;

	HYB_ASSERT(bits <= 64);
	if (bits == 0)
		return;
	HYB_ASSERT(bits == 64 || v >> bits == 0);
	HYB_ASSERT(hyb_bits_get(data, bitoff, bits) == 0);
	hyb_store64le(p, hyb_load64le(p) | (v << sh));
	if (sh + bits > 64)
		p[8] |= (uint8_t) (v >> (64 - sh));
}

/*
 * Population count without the instruction, which the baseline of x86-64
 * lacks.
 */
static inline unsigned
hyb_popcount64(uint64_t x)
{
#ifdef __POPCNT__
	return (unsigned) __builtin_popcountll(x);
#else
	x = x - ((x >> 1) & UINT64_C(0x5555555555555555));
	x = (x & UINT64_C(0x3333333333333333)) +
		((x >> 2) & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
	return (unsigned) ((x * UINT64_C(0x0101010101010101)) >> 56);
#endif
}

/*
 * Position of the k-th (from 0) set bit of x, which has more than k set bits.
 * Byte sums as in the population count find the byte; at most seven steps
 * find the bit.
 */
static inline unsigned
hyb_select64(uint64_t x, unsigned k)
{
	uint64_t	s = x - ((x >> 1) & UINT64_C(0x5555555555555555));
	unsigned	pos = 0;

	HYB_ASSERT(k < 64);
	s = (s & UINT64_C(0x3333333333333333)) +
		((s >> 2) & UINT64_C(0x3333333333333333));
	s = (s + (s >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
	for (;;)
	{
		unsigned	c = s & 0xFF;

		if (k < c || pos == 56)
			break;
		k -= c;
		s >>= 8;
		pos += 8;
	}
	x >>= pos;
	while (k-- > 0)
		x &= x - 1;
	return x == 0 ? pos : pos + (unsigned) __builtin_ctzll(x);
}

/* Length of the common prefix of two byte strings. */
static inline uint32_t
hyb_common_prefix(const uint8_t *a, const uint8_t *b, uint32_t maxlen)
{
	uint32_t	i = 0;

	while (i + 8 <= maxlen)
	{
		uint64_t	x = hyb_load64le(a + i) ^ hyb_load64le(b + i);

		if (x != 0)
			return i + (uint32_t) (__builtin_ctzll(x) >> 3);
		i += 8;
	}
	if (maxlen >= 8)
	{
		/* what is left, with bytes before it that are equal */
		uint64_t	x;

		if (i == maxlen)
			return i;
		i = maxlen - 8;
		x = hyb_load64le(a + i) ^ hyb_load64le(b + i);
		return x != 0 ? i + (uint32_t) (__builtin_ctzll(x) >> 3) : maxlen;
	}
	while (i < maxlen && a[i] == b[i])
		i++;
	return i;
}

/* Lengths as variable bytes: 7 bits each, low bits first. */
static inline uint32_t
hyb_varint_size(uint32_t v)
{
	return v < 0x80 ? 1 : v < 0x4000 ? 2 : v < 0x200000 ? 3 : v < 0x10000000 ? 4 : 5;
}

static inline uint8_t *
hyb_varint_write(uint8_t *p, uint32_t v)
{
	while (v >= 0x80)
	{
		*p++ = (uint8_t) (v | 0x80);
		v >>= 7;
	}
	*p++ = (uint8_t) v;
	return p;
}

/* Returns the byte after it, or NULL if it does not end before `end`. */
static inline const uint8_t *
hyb_varint_read(const uint8_t *p, const uint8_t *end, uint32_t *v)
{
	uint32_t	r = 0;
	unsigned	sh = 0;

	while (p < end && sh <= 28)
	{
		uint8_t		b = *p++;

		r |= (uint32_t) (b & 0x7F) << sh;
		if ((b & 0x80) == 0)
		{
			*v = r;
			return p;
		}
		sh += 7;
	}
	return NULL;
}

/* Does a string begin with the first bits of another one? */
static inline bool
hyb_begins_with_bits(const uint8_t *bytes, uint32_t len, const uint8_t *prefix,
					 uint32_t bits)
{
	uint32_t	whole = bits / 8;

	if (8 * len < bits || memcmp(bytes, prefix, whole) != 0)
		return false;
	return bits % 8 == 0 ||
		((bytes[whole] ^ prefix[whole]) >> (8 - bits % 8)) == 0;
}

/* Bits that two strings of abits and bbits bits have in common at their start */
static inline uint32_t
hyb_common_bits(const uint8_t *a, uint32_t abits, const uint8_t *b,
				uint32_t bbits)
{
	uint32_t	bits = abits < bbits ? abits : bbits;
	uint32_t	bytes = (bits + 7) / 8;

	for (uint32_t i = 0; i < bytes; i++)
	{
		uint8_t		differ = a[i] ^ b[i];

		if (differ != 0)
		{
			uint32_t	common = 8 * i + (uint32_t) __builtin_clz((unsigned) differ) - 24;

			return common < bits ? common : bits;
		}
	}
	return bits;
}

/* Is a string nothing but zeros from a bit on? */
static inline bool
hyb_only_zeros_from(const uint8_t *bytes, uint32_t len, uint32_t bit)
{
	uint32_t	i = bit / 8;

	if (i < len && (bytes[i] & (0xFF >> bit % 8)) != 0)
		return false;
	while (++i < len)
		if (bytes[i] != 0)
			return false;
	return true;
}

static inline uint32_t
hyb_packed_bytes(uint32_t n, unsigned bits)
{
	return (uint32_t) (((uint64_t) n * bits + 7) / 8);
}

/* Writes numbers of `bits` bits each, a word at a time. */
typedef struct HybPacker
{
	uint8_t    *out;
	uint64_t	word;
	unsigned	fill;			/* bits in word, below 64 */
	unsigned	bits;
} HybPacker;

static inline void
hyb_packer_put(HybPacker *p, uint64_t v)
{
	HYB_ASSERT(p->fill < 64 && p->bits <= 64);
	HYB_ASSERT(p->bits == 64 || v >> p->bits == 0);
	p->word |= v << p->fill;
	p->fill += p->bits;
	if (p->fill >= 64)
	{
		hyb_store64le(p->out, p->word);
		p->out += 8;
		p->fill -= 64;
		p->word = p->fill == 0 ? 0 : v >> (p->bits - p->fill);
	}
}

static inline uint8_t *
hyb_packer_end(HybPacker *p)
{
	HYB_ASSERT(p->fill < 64);
	for (unsigned i = 0; i < p->fill; i += 8)
		*p->out++ = (uint8_t) (p->word >> i);
	return p->out;
}

/*
 * Hash of a byte string: multiply and fold, 8 bytes at a time.  Part of the on-disk
 * format, so it is the same on every machine.
 */
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

#endif							/* HYB_BITS_H */
