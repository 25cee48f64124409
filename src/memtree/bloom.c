/*
 * bloom.c
 * Blocked Bloom filter over the keys of one tree, for indexes whose equal keys
 * have equal bytes.
 *
 * Each key sets HYB_BLOOM_BITS bits within one cache line (F. Putze, P.
 * Sanders, J. Singler: Cache-, Hash- and Space-Efficient Bloom Filters, WEA
 * 2007), so a probe costs one cache miss.
 *
 * A filter that is full gets another part for the keys to come (P.  S.
 * Almeida, C.  Baquero, N.  Preguiça, D.  Hutchison: Scalable Bloom Filters,
 * 2007).  So it grows, by a third to a half at a time, without reading the
 * keys that it has: compact trees do not have them in memory.  A probe asks
 * all parts.
 */
#include "base/compat.h"

#include "memtree/tree_node.h"

/* A filter does not pay for fewer entries. */
#define HYB_BLOOM_MIN_ENTRIES	64

#ifdef USE_ASSERT_CHECKING
void
hyb_bloom_assert_valid(const HybBloom *bloom)
{
	uint32		nchunks = 0;

	Assert(bloom->nparts <= HYB_BLOOM_MAX_PARTS);
	for (int i = 0; i < bloom->nparts; i++)
	{
		Assert(bloom->part[i].nchunks >= 1 &&
			   bloom->part[i].nchunks <= HYB_BLOOM_MAX_CHUNKS);
		Assert(bloom->part[i].chunk != 0);
		nchunks += bloom->part[i].nchunks;
	}
	Assert(bloom->nchunks == nchunks);
}
#endif

static uint32
bloom_size(uint64 nkeys)
{
	uint32		nchunks = 1;

	while (nchunks < HYB_BLOOM_MAX_CHUNKS && nkeys > nchunks * HYB_BLOOM_KEYS)
		nchunks *= 4;
	return nchunks;
}

/* The largest power of two that is not above two thirds of what there is. */
static uint32
next_size(const HybBloom *bloom)
{
	uint32		nchunks = HYB_BLOOM_SMALL / 2;

	while (nchunks < HYB_BLOOM_MAX_CHUNKS && nchunks * 3 <= bloom->nchunks)
		nchunks *= 2;
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
part_directory(const HybBloomPart *part, const HybArena *arena)
{
	return (uint32 *) ((char *) hyb_chunk(arena, part->chunk) +
					   HYB_CHUNK_HEADER);
}

uint32
hyb_bloom_chunks(const HybBloom *bloom)
{
	uint32		n = 0;

	for (int i = 0; i < bloom->nparts; i++)
		n += hyb_bloom_cost(bloom->part[i].nchunks);
	return n;
}

void
hyb_bloom_extend(HybBloom *bloom, HybArena *arena, uint32 nchunks)
{
	HybBloomPart *part = &bloom->part[bloom->nparts];

	Assert(bloom->nparts < HYB_BLOOM_MAX_PARTS);
	Assert(arena->npocket >= hyb_bloom_cost(nchunks));
	part->nchunks = nchunks;
	part->chunk = create_chunk(arena);
	if (nchunks > 1)
		for (uint32 i = 0; i < nchunks; i++)
			part_directory(part, arena)[i] = create_chunk(arena);
	bloom->nchunks += nchunks;
	bloom->nparts++;
	hyb_bloom_assert_valid(bloom);
}

void
hyb_bloom_free(HybBloom *bloom, HybArena *arena)
{
	hyb_bloom_assert_valid(bloom);
	for (int i = 0; i < bloom->nparts; i++)
	{
		const HybBloomPart *part = &bloom->part[i];

		if (part->nchunks > 1)
			for (uint32 j = 0; j < part->nchunks; j++)
				hyb_arena_put(arena, part_directory(part, arena)[j]);
		hyb_arena_put(arena, part->chunk);
	}
	memset(bloom, 0, sizeof(*bloom));
}

/*
 * The upper half of the hash chooses the block, the whole of it, multiplied
 * by the golden ratio to mix it once more, the bits within.
 */
static inline uint64 *
part_block(const HybBloomPart *part, const HybArena *arena, uint64 hash)
{
	uint64		nblocks = (uint64) part->nchunks * HYB_BLOOM_BLOCKS;
	uint32		block = (uint32) (((hash >> 32) * nblocks) >> 32);
	uint32		chunk = part->chunk;

	Assert(block < nblocks);
	if (part->nchunks > 1)
		chunk = part_directory(part, arena)[block / HYB_BLOOM_BLOCKS];
	return (uint64 *) ((char *) hyb_chunk(arena, chunk) + HYB_CHUNK_HEADER +
					   (block % HYB_BLOOM_BLOCKS) * 64);
}

#define BLOOM_MIX(hash) ((hash) * UINT64CONST(0x9E3779B97F4A7C15))
#define BLOOM_BIT(mixed, i) (((mixed) >> (10 + 9 * (i))) & 511)

void
hyb_bloom_add(const HybBloom *bloom, const HybArena *arena, uint64 hash)
{
	uint64	   *block = part_block(&bloom->part[bloom->nparts - 1], arena, hash);
	uint64		mixed = BLOOM_MIX(hash);

	Assert(bloom->nparts > 0);
	for (int i = 0; i < HYB_BLOOM_BITS; i++)
		block[BLOOM_BIT(mixed, i) >> 6] |= UINT64CONST(1) << (BLOOM_BIT(mixed, i) & 63);
}

static inline bool
block_maybe(const uint64 *block, uint64 mixed)
{
	for (int i = 0; i < HYB_BLOOM_BITS; i++)
		if ((block[BLOOM_BIT(mixed, i) >> 6] &
			 UINT64CONST(1) << (BLOOM_BIT(mixed, i) & 63)) == 0)
			return false;
	return true;
}

static bool
bloom_maybe(const HybBloom *bloom, const HybArena *arena, uint64 hash)
{
	const uint64 *block[HYB_BLOOM_MAX_PARTS];
	uint64		mixed = BLOOM_MIX(hash);

	for (int i = 0; i < bloom->nparts; i++)
	{
		block[i] = part_block(&bloom->part[i], arena, hash);
		hyb_prefetch(block[i]);
	}
	for (int i = 0; i < bloom->nparts; i++)
		if (block_maybe(block[i], mixed))
			return true;
	return false;
}

/* ---- the filter of a tree ---- */

/* Chunks of the filter's next part, or of a first one built anew. */
static uint32
bloom_part(const HybTree *tree)
{
	const HybBloom *bloom = &tree->bloom;

	if (tree->nentries < HYB_BLOOM_MIN_ENTRIES ||
		tree->nentries <= bloom->nchunks * HYB_BLOOM_KEYS ||
		bloom->nparts == HYB_BLOOM_MAX_PARTS)
		return 0;
	if (bloom->nparts == 0 ||
		(bloom->nchunks < HYB_BLOOM_SMALL && tree->nlog == 0))
		return tree->nlog == 0 ? bloom_size(tree->nentries) : 0;
	return next_size(bloom);
}

uint32
hyb_tree_bloom_wanted(const HybTree *tree)
{
	return hyb_bloom_cost(bloom_part(tree));
}

/*
 * Copies lie one after the other in their chunks, so this reads memory in
 * order.
 */
static void
bloom_rebuild(HybTree *tree, HybArena *arena)
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
	uint32		part = bloom_part(tree);
	bool		anew = tree->nlog == 0 && tree->bloom.nchunks < HYB_BLOOM_SMALL;

	if (part == 0 || arena->npocket < hyb_bloom_cost(part))
		return;
	if (anew)
	{
		tree->nchunks -= hyb_bloom_chunks(&tree->bloom);
		hyb_bloom_free(&tree->bloom, arena);
	}
	hyb_bloom_extend(&tree->bloom, arena, part);
	tree->nchunks += hyb_bloom_cost(part);
	if (anew)
		bloom_rebuild(tree, arena);
}

bool
hyb_tree_maybe(const HybTree *tree, const HybArena *arena, uint64 hash)
{
	if (tree->nentries == 0)
		return false;
	return tree->bloom.nparts == 0 || bloom_maybe(&tree->bloom, arena, hash);
}
