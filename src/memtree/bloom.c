/*
 * bloom.c
 *		Blocked Bloom filter over the keys of one tree, for indexes whose equal
 *		keys have equal bytes.
 *
 * Each key sets HYB_BLOOM_BITS bits within one cache line (F. Putze, P.
 * Sanders, J. Singler: Cache-, Hash- and Space-Efficient Bloom Filters, WEA
 * 2007), so a probe costs one cache miss.
 *
 * A filter that is full is built anew, four times as large, from the entries
 * in memory.  If some are in the log only, the tree keeps the filter that it
 * has: memory is short then.
 */
#include "base/compat.h"

#include "memtree/tree_node.h"

/* A filter does not pay for fewer entries. */
#define HYB_BLOOM_MIN_ENTRIES	64

#ifdef USE_ASSERT_CHECKING
void
hyb_bloom_assert_valid(const HybBloom *bloom)
{
	Assert(bloom->nchunks <= HYB_BLOOM_MAX_CHUNKS);
	Assert((bloom->nchunks == 0) == (bloom->chunk == 0));
}
#endif

static inline uint32 *
chunk_numbers(const HybBloom *bloom, const HybArena *arena)
{
	return hyb_chunk_space(arena, bloom->chunk);
}

/* Make an empty filter; hyb_bloom_cost(nchunks) chunks are reserved. */
static void
create_bloom(HybBloom *bloom, HybArena *arena, uint32 nchunks)
{
	Assert(bloom->nchunks == 0 && nchunks > 0);
	Assert(arena->npocket >= hyb_bloom_cost(nchunks));
	bloom->nchunks = nchunks;
	bloom->chunk = hyb_arena_take_zeroed(arena);
	if (nchunks > 1)
		for (uint32 i = 0; i < nchunks; i++)
			chunk_numbers(bloom, arena)[i] = hyb_arena_take_zeroed(arena);
	hyb_bloom_assert_valid(bloom);
}

void
hyb_bloom_free(HybBloom *bloom, HybArena *arena)
{
	hyb_bloom_assert_valid(bloom);
	if (bloom->nchunks > 1)
		for (uint32 i = 0; i < bloom->nchunks; i++)
			hyb_arena_put(arena, chunk_numbers(bloom, arena)[i]);
	if (bloom->nchunks > 0)
		hyb_arena_put(arena, bloom->chunk);
	memset(bloom, 0, sizeof(*bloom));
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

	Assert(block < nblocks);
	if (bloom->nchunks > 1)
		chunk = chunk_numbers(bloom, arena)[block / HYB_BLOOM_BLOCKS];
	return (uint64 *) ((char *) hyb_chunk_space(arena, chunk) +
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
hyb_tree_maybe(const HybTree *tree, const HybArena *arena, uint64 hash)
{
	const uint64 *block;
	uint64		mixed = BLOOM_MIX(hash);

	if (tree->nentries == 0 || tree->bloom.nchunks == 0)
		return tree->nentries > 0;
	block = bloom_block(&tree->bloom, arena, hash);
	for (int i = 0; i < HYB_BLOOM_BITS; i++)
		if ((block[BLOOM_BIT(mixed, i) >> 6] &
			 UINT64CONST(1) << (BLOOM_BIT(mixed, i) & 63)) == 0)
			return false;
	return true;
}

/* ---- the filter of a tree ---- */

/* Chunks of the larger filter that the tree should get; 0: none. */
static uint32
wanted_size(const HybTree *tree)
{
	uint32		nchunks = tree->bloom.nchunks;

	if (tree->nlog > 0 || tree->nentries < HYB_BLOOM_MIN_ENTRIES ||
		tree->nentries <= nchunks * HYB_BLOOM_KEYS || nchunks == HYB_BLOOM_MAX_CHUNKS)
		return 0;
	nchunks = 1;
	while (nchunks < HYB_BLOOM_MAX_CHUNKS && tree->nentries > nchunks * HYB_BLOOM_KEYS)
		nchunks *= 4;
	return nchunks;
}

uint32
hyb_tree_bloom_wanted(const HybTree *tree)
{
	return hyb_bloom_cost(wanted_size(tree));
}

/*
 * Copies lie one after the other in their chunks, so this reads memory in
 * order.
 */
static void
add_copies(HybTree *tree, HybArena *arena)
{
	for (uint32 chunk = tree->oldest; chunk != 0;
		 chunk = hyb_chunk(arena, chunk)->next)
	{
		const HybChunk *header = hyb_chunk(arena, chunk);

		for (uint32 off = HYB_CHUNK_HEADER; off < header->used;)
		{
			const HybTreeEntry *entry = (const HybTreeEntry *) ((const char *) header + off);

			if ((entry->len_flags & HYB_ENTRY_DEAD) == 0)
				hyb_bloom_add(&tree->bloom, arena,
							  hyb_key_hash(entry->bytes, entry->keylen));
			off += hyb_entry_size(hyb_entry_len(entry));
			Assert(off <= header->used);
		}
	}
}

void
hyb_tree_bloom_grow(HybTree *tree, HybArena *arena)
{
	uint32		nchunks = wanted_size(tree);

	if (nchunks == 0 || arena->npocket < hyb_bloom_cost(nchunks))
		return;
	tree->nchunks -= hyb_bloom_cost(tree->bloom.nchunks);
	hyb_bloom_free(&tree->bloom, arena);
	create_bloom(&tree->bloom, arena, nchunks);
	tree->nchunks += hyb_bloom_cost(nchunks);
	add_copies(tree, arena);
}
