/*
 * arena.c
 *		Memory of the trees: chunks of one size, shared or backend-local.
 */
#include "base/compat.h"

#include "memtree/arena.h"
#include "utils/memutils.h"

/* The budget of a backend's own arena, in chunks. */
#define PRIVATE_CHUNKS		512

/* Bytes of this backend's own trees. */
static uint64 private_bytes = 0;

void		(*hyb_arena_private_changed) (void) = NULL;

uint64
hyb_arena_private(void)
{
	return private_bytes;
}

#ifdef USE_ASSERT_CHECKING
void
hyb_arena_assert_valid(const HybArena *arena)
{
	Assert((arena->npocket == 0) == (arena->pocket == 0));
	Assert(arena->naddr <= HYB_MAX_CHUNKS && (arena->naddr == 0) == (arena->addr == NULL));
	Assert(arena->context == NULL || arena->npocket <= arena->nchunks);
	Assert(arena->pocket == 0 || arena->addr[arena->pocket] != NULL);
}
#endif

static void
count_private(int64 nchunks)
{
	Assert(nchunks >= 0 || (uint64) -nchunks * HYB_CHUNK_SIZE <= private_bytes);
	private_bytes += nchunks * HYB_CHUNK_SIZE;
	if (hyb_arena_private_changed != NULL)
		hyb_arena_private_changed();
}

static bool
reserve_private(HybArena *arena, uint32 n)
{
	uint32		limit = HYB_POINT_ATTACHED("few-chunks") ? 8 : HYB_MAX_CHUNKS;

	while (arena->npocket < n)
	{
		uint32		chunk = arena->nchunks + 1;

		if (chunk >= limit)
			return false;
		hyb_arena_enlarge(arena, chunk + 1);
		arena->addr[chunk] = MemoryContextAllocExtended(arena->context, HYB_CHUNK_SIZE,
														MCXT_ALLOC_NO_OOM);
		if (arena->addr[chunk] == NULL)
			return false;
		arena->nchunks = chunk;
		count_private(1);
		hyb_arena_put(arena, chunk);
	}
	hyb_arena_assert_valid(arena);
	return true;
}

static bool
private_is_scarce(const HybArena *arena)
{
	return (arena->nchunks - arena->npocket) * 2 >= PRIVATE_CHUNKS;
}

HybArena *
hyb_arena_create(MemoryContext parent)
{
	MemoryContext context = AllocSetContextCreate(parent, "hybrid trees",
												  ALLOCSET_DEFAULT_SIZES);
	HybArena   *arena = MemoryContextAllocZero(context, sizeof(HybArena));

	arena->context = context;
	arena->reserve = reserve_private;
	arena->scarce = private_is_scarce;
	return arena;
}

void
hyb_arena_drop(HybArena *arena)
{
	count_private(-(int64) arena->nchunks);
	MemoryContextDelete(arena->context);
}

void
hyb_arena_enlarge(HybArena *arena, uint32 n)
{
	uint32		naddr = Max(arena->naddr, 16);

	if (n <= arena->naddr)
		return;
	while (naddr < n)
		naddr *= 2;
	if (arena->addr == NULL)
		arena->addr = MemoryContextAllocZero(arena->context != NULL ?
											 arena->context : TopMemoryContext,
											 naddr * sizeof(char *));
	else
	{
		arena->addr = repalloc_huge(arena->addr, naddr * sizeof(char *));
		memset(arena->addr + arena->naddr, 0,
			   (naddr - arena->naddr) * sizeof(char *));
	}
	arena->naddr = naddr;
	Assert(arena->naddr >= n);
}

uint32
hyb_arena_take(HybArena *arena, uint32 kind)
{
	uint32		chunk = arena->pocket;
	HybChunk   *header;

	if (arena->npocket == 0)
		elog(ERROR, "no chunk was reserved");
	header = hyb_chunk(arena, chunk);
	arena->pocket = header->next;
	arena->npocket--;
	hyb_arena_assert_valid(arena);
	header->next = 0;
	header->used = HYB_CHUNK_HEADER;
	header->kind = kind;
	return chunk;
}

uint32
hyb_arena_take_zeroed(HybArena *arena)
{
	uint32		chunk = hyb_arena_take(arena, 0);

	memset(hyb_chunk_space(arena, chunk), 0, HYB_CHUNK_SPACE);
	return chunk;
}

void
hyb_arena_put(HybArena *arena, uint32 chunk)
{
	/* no chunk is in the pocket twice */
	Assert(chunk != arena->pocket);
	hyb_chunk(arena, chunk)->next = arena->pocket;
	arena->pocket = chunk;
	arena->npocket++;
}

void
hyb_arena_put_chain(HybArena *arena, uint32 first)
{
	while (first != 0)
	{
		uint32		next = hyb_chunk(arena, first)->next;

		hyb_arena_put(arena, first);
		first = next;
	}
}
