/*
 * bloom.h
 *		Blocked Bloom filter over the keys of one tree.
 *
 * Each key sets HYB_BLOOM_BITS bits within one cache line (F. Putze, P.
 * Sanders, J. Singler: Cache-, Hash- and Space-Efficient Bloom Filters, WEA
 * 2007), so a probe costs one cache miss.
 *
 * A filter that is full gets another part, which the keys to come go to (P. S.
 * Almeida, C. Baquero, N. Preguiça, D. Hutchison: Scalable Bloom Filters,
 * 2007): so it grows without the keys that it has, by a third to a half at a
 * time, and a probe asks all parts.
 */
#ifndef HYB_BLOOM_H
#define HYB_BLOOM_H

#include "memtree/arena.h"

/* 64-byte blocks of one chunk, and keys it has room for at 10 bits each. */
#define HYB_BLOOM_BLOCKS	(HYB_CHUNK_SPACE / 64)
#define HYB_BLOOM_KEYS		((uint64) HYB_BLOOM_BLOCKS * 512 / 10)

/* The directory of a part of several chunks is one chunk. */
#define HYB_BLOOM_MAX_CHUNKS	1024
#define HYB_BLOOM_MAX_PARTS	12
#define HYB_BLOOM_BITS		6

/*
 * While it is not larger than that it is better built anew: a part less to
 * ask, and soon done.
 */
#define HYB_BLOOM_SMALL		16

StaticAssertDecl(HYB_BLOOM_MAX_CHUNKS * sizeof(uint32) <= HYB_CHUNK_SPACE,
				 "the directory of a Bloom filter must fit a chunk");

typedef struct HybBloomPart
{
	uint32		nchunks;
	uint32		chunk;			/* the one chunk, or the directory */
} HybBloomPart;

/* All zero: there is no filter. */
typedef struct HybBloom
{
	uint32		nparts;
	uint32		nchunks;		/* of all parts, directories left out */
	HybBloomPart part[HYB_BLOOM_MAX_PARTS];
} HybBloom;

#ifdef USE_ASSERT_CHECKING
extern void hyb_bloom_assert_valid(const HybBloom *bloom);
#else
#define hyb_bloom_assert_valid(bloom) ((void) (bloom))
#endif

/* Chunks, directory included, of a part of n chunks. */
#define hyb_bloom_cost(n) ((n) > 1 ? (n) + 1 : (n))

/* Chunks, directories included, of a filter. */
extern uint32 hyb_bloom_chunks(const HybBloom *bloom);

/* Chunks that a first part for this many keys should have. */
extern uint32 hyb_bloom_size(uint64 nkeys);

/* And the next part of a filter. */
extern uint32 hyb_bloom_next_size(const HybBloom *bloom);

/* Add an empty part; hyb_bloom_cost(nchunks) chunks are reserved. */
extern void hyb_bloom_extend(HybBloom *bloom, HybArena *arena, uint32 nchunks);
extern void hyb_bloom_free(HybBloom *bloom, HybArena *arena);

/* To the last part. */
extern void hyb_bloom_add(const HybBloom *bloom, const HybArena *arena,
						  uint64 hash);

/* False: no key with this hash was added. */
extern bool hyb_bloom_maybe(const HybBloom *bloom, const HybArena *arena,
							uint64 hash);

#endif							/* HYB_BLOOM_H */
