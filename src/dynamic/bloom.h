/*
 * bloom.h
 *		Blocked Bloom filter over the keys of one tree.
 *
 * Each key sets HYB_BLOOM_BITS bits within one cache line (F. Putze, P.
 * Sanders, J. Singler: Cache-, Hash- and Space-Efficient Bloom Filters, WEA
 * 2007), so a probe costs one cache miss.
 */
#ifndef HYB_BLOOM_H
#define HYB_BLOOM_H

#include "dynamic/arena.h"

/* 64-byte blocks of one chunk, and keys it has room for at 10 bits each. */
#define HYB_BLOOM_BLOCKS	(HYB_CHUNK_SPACE / 64)
#define HYB_BLOOM_KEYS		((uint64) HYB_BLOOM_BLOCKS * 512 / 10)

/* The directory of a filter of several chunks is one chunk. */
#define HYB_BLOOM_MAX_CHUNKS	1024
#define HYB_BLOOM_BITS		6

StaticAssertDecl(HYB_BLOOM_MAX_CHUNKS * sizeof(uint32) <= HYB_CHUNK_SPACE,
				 "the directory of a Bloom filter must fit a chunk");

typedef struct HybBloom
{
	uint32		nchunks;		/* 0: there is no filter; else a power of 4 */
	uint32		chunk;			/* the one chunk, or the directory */
} HybBloom;

/* Chunks, directory included, of a filter of n chunks. */
#define hyb_bloom_cost(n) ((n) > 1 ? (n) + 1 : (n))

/* Chunks that a filter for this many keys should have. */
extern uint32 hyb_bloom_size(uint64 nkeys);

/* Make an empty filter; hyb_bloom_cost(nchunks) chunks are reserved. */
extern void hyb_bloom_create(HybBloom *bloom, HybArena *arena, uint32 nchunks);
extern void hyb_bloom_free(HybBloom *bloom, HybArena *arena);

extern void hyb_bloom_add(const HybBloom *bloom, const HybArena *arena,
						  uint64 hash);

/* False: no key with this hash was added. */
extern bool hyb_bloom_maybe(const HybBloom *bloom, const HybArena *arena,
							uint64 hash);

#endif							/* HYB_BLOOM_H */
