/*
 * arena.h
 *		Memory of the trees: chunks of one size, shared or backend-local.
 *
 * References to objects are 32 bits, chunk number and offset, so they are
 * valid in every process that has the arena's chunks mapped.  Chunks never
 * move.  Chunk 0 is never handed out, so 0 refers to nothing.
 *
 * Allocation has two phases.  hyb_arena_reserve moves chunks to the backend's
 * pocket; it may fail, create shared memory, and evict other indexes' trees,
 * and is called with no lock on a slot or buffer held.  hyb_arena_take takes
 * a chunk from the pocket, and cannot fail.  What is left in the pocket goes
 * back with hyb_arena_trim, or else at the end of the (sub)transaction or of
 * the backend, however that comes about.
 */
#ifndef HYB_ARENA_H
#define HYB_ARENA_H

#include "base/compat.h"

#define HYB_CHUNK_SIZE		16384
#define HYB_CHUNK_HEADER	64	/* keeps objects on cache lines */
#define HYB_CHUNK_SPACE		(HYB_CHUNK_SIZE - HYB_CHUNK_HEADER)

#define HYB_REF_OFFSET_BITS	12	/* of HYB_CHUNK_SIZE / 4 */

/* Numbers of chunks that references can name: 16 GB. */
#define HYB_MAX_CHUNKS		((uint32) 1 << (32 - HYB_REF_OFFSET_BITS))

typedef uint32 HybRef;

/* At the start of each chunk. */
typedef struct HybChunk
{
	uint32		next;			/* next chunk of a chain, 0 ends it */
	uint32		used;			/* bytes used, header included */
	uint32		kind;			/* the tree's */
} HybChunk;

typedef struct HybArena
{
	char	  **addr;			/* of each chunk; NULL: not mapped */
	uint32		naddr;
	uint32		nchunks;		/* backend-local: chunks allocated */
	MemoryContext context;		/* backend-local: all memory is in here */
	uint32		pocket;			/* chain of chunks reserved */
	uint32		npocket;
	bool		(*reserve) (struct HybArena *arena, uint32 n);
	bool		(*scarce) (const struct HybArena *arena);
	void		(*trim) (struct HybArena *arena);	/* NULL: keep the pocket */
} HybArena;

StaticAssertDecl(sizeof(HybChunk) <= HYB_CHUNK_HEADER, "a chunk begins with its header");

#ifdef USE_ASSERT_CHECKING
/* The pocket and the addresses of an arena. */
extern void hyb_arena_assert_valid(const HybArena *arena);
#else
#define hyb_arena_assert_valid(arena) ((void) (arena))
#endif

static inline HybChunk *
hyb_chunk(const HybArena *arena, uint32 chunk)
{
	/* no chunk has number 0; what is not mapped has no address */
	Assert(chunk > 0 && chunk < arena->naddr && arena->addr[chunk] != NULL);
	return (HybChunk *) arena->addr[chunk];
}

/* What follows the header of a chunk: HYB_CHUNK_SPACE bytes. */
static inline void *
hyb_chunk_space(const HybArena *arena, uint32 chunk)
{
	return (char *) hyb_chunk(arena, chunk) + HYB_CHUNK_HEADER;
}

static inline void *
hyb_ref_ptr(const HybArena *arena, HybRef ref)
{
	Assert(ref >> HYB_REF_OFFSET_BITS > 0 && ref >> HYB_REF_OFFSET_BITS < arena->naddr);
	Assert(arena->addr[ref >> HYB_REF_OFFSET_BITS] != NULL);
	return arena->addr[ref >> HYB_REF_OFFSET_BITS] +
		((ref & ((1 << HYB_REF_OFFSET_BITS) - 1)) << 2);
}

static inline HybRef
hyb_make_ref(uint32 chunk, uint32 offset)
{
	Assert(chunk > 0 && chunk < HYB_MAX_CHUNKS);
	Assert(offset >= HYB_CHUNK_HEADER && offset < HYB_CHUNK_SIZE && offset % 4 == 0);
	return chunk << HYB_REF_OFFSET_BITS | offset >> 2;
}

/* Make an empty backend-local arena in (a child of) parent. */
extern HybArena *hyb_arena_create(MemoryContext parent);
extern void hyb_arena_drop(HybArena *arena);

/*
 * Bytes of all backend-local arenas of this backend; called, if set, when they
 * have changed.
 */
extern uint64 hyb_arena_private(void);
extern void (*hyb_arena_private_changed) (void);

/* Have room for chunk numbers below n in arena->addr. */
extern void hyb_arena_enlarge(HybArena *arena, uint32 n);

/*
 * Have at least n chunks in the pocket.  Returns false if there is no memory, or if
 * a backend-local arena has as many chunks as can be named.
 */
static inline bool
hyb_arena_reserve(HybArena *arena, uint32 n)
{
	return arena->reserve(arena, n);
}

/*
 * Is more than half of the budget taken, so that trees become compact?  The
 * answer may be stale.
 */
static inline bool
hyb_arena_is_scarce(const HybArena *arena)
{
	return arena->scarce(arena);
}

/* A chunk from the pocket, which must not be empty; header initialised. */
extern uint32 hyb_arena_take(HybArena *arena, uint32 kind);

/* The same, of kind 0 and filled with zeroes. */
extern uint32 hyb_arena_take_zeroed(HybArena *arena);

/* Put a chunk, or a chain of them, into the pocket. */
extern void hyb_arena_put(HybArena *arena, uint32 chunk);
extern void hyb_arena_put_chain(HybArena *arena, uint32 first);

/* Give the pocket back (backend-local: keep it).  Never fails. */
static inline void
hyb_arena_trim(HybArena *arena)
{
	if (arena->trim != NULL)
		arena->trim(arena);
}

#endif							/* HYB_ARENA_H */
