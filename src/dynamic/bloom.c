/*
 * bloom.c
 *		Blocked Bloom filter over the keys of one tree.
 */
#include "compat.h"

#include "dynamic/bloom.h"

uint32
hyb_bloom_size(uint64 nkeys)
{
	uint32		nchunks = 1;

	while (nchunks < HYB_BLOOM_MAX_CHUNKS && nkeys > nchunks * HYB_BLOOM_KEYS)
		nchunks *= 4;
	return nchunks;
}

static uint32
create_chunk(HybArena *arena)
{
	uint32		chunk = hyb_arena_take(arena, 0);

	memset((char *) hyb_chunk(arena, chunk) + HYB_CHUNK_HEADER, 0,
		   HYB_CHUNK_SPACE);
	return chunk;
}

static inline uint32 *
bloom_directory(const HybBloom *bloom, const HybArena *arena)
{
	return (uint32 *) ((char *) hyb_chunk(arena, bloom->chunk) +
					   HYB_CHUNK_HEADER);
}

void
hyb_bloom_create(HybBloom *bloom, HybArena *arena, uint32 nchunks)
{
	Assert(arena->npocket >= hyb_bloom_cost(nchunks));
	bloom->nchunks = nchunks;
	bloom->chunk = create_chunk(arena);
	if (nchunks > 1)
		for (uint32 i = 0; i < nchunks; i++)
			bloom_directory(bloom, arena)[i] = create_chunk(arena);
}

void
hyb_bloom_free(HybBloom *bloom, HybArena *arena)
{
	if (bloom->nchunks == 0)
		return;
	if (bloom->nchunks > 1)
		for (uint32 i = 0; i < bloom->nchunks; i++)
			hyb_arena_put(arena, bloom_directory(bloom, arena)[i]);
	hyb_arena_put(arena, bloom->chunk);
	bloom->nchunks = 0;
	bloom->chunk = 0;
}

/*
 * The upper half of the hash chooses the block, the whole of it, multiplied
 * by the golden ratio to mix it once more, the bits within.
 */
static inline uint64 *
bloom_block(const HybBloom *bloom, const HybArena *arena, uint64 hash)
{
	uint64		nblocks = (uint64) bloom->nchunks * HYB_BLOOM_BLOCKS;
	uint32		block = (uint32) (((hash >> 32) * nblocks) >> 32);
	uint32		chunk = bloom->chunk;

	if (bloom->nchunks > 1)
		chunk = bloom_directory(bloom, arena)[block / HYB_BLOOM_BLOCKS];
	return (uint64 *) ((char *) hyb_chunk(arena, chunk) + HYB_CHUNK_HEADER +
					   (block % HYB_BLOOM_BLOCKS) * 64);
}

#define BLOOM_MIX(hash) ((hash) * UINT64CONST(0x9E3779B97F4A7C15))
#define BLOOM_BIT(mixed, i) (((mixed) >> (10 + 9 * (i))) & 511)

void
hyb_bloom_add(const HybBloom *bloom, const HybArena *arena, uint64 hash)
{
	uint64	   *block = bloom_block(bloom, arena, hash);
	uint64		mixed = BLOOM_MIX(hash);

	for (int i = 0; i < HYB_BLOOM_BITS; i++)
		block[BLOOM_BIT(mixed, i) >> 6] |= UINT64CONST(1) << (BLOOM_BIT(mixed, i) & 63);
}

bool
hyb_bloom_maybe(const HybBloom *bloom, const HybArena *arena, uint64 hash)
{
	const uint64 *block = bloom_block(bloom, arena, hash);
	uint64		mixed = BLOOM_MIX(hash);

	for (int i = 0; i < HYB_BLOOM_BITS; i++)
		if ((block[BLOOM_BIT(mixed, i) >> 6] &
			 UINT64CONST(1) << (BLOOM_BIT(mixed, i) & 63)) == 0)
			return false;
	return true;
}
