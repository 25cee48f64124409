/*
 * arena.h
 *		Memory of the trees: chunks of one size, shared or backend-local.
 *
 * References to objects are 32 bits, chunk number and offset, so they are
 * valid in every process that has the arena's chunks mapped.  Chunks never
 * move.  Chunk 0 is never handed out, so 0 is no reference.
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

#include "compat.h"

#include "storage/dsm.h"

#define HYB_CHUNK_SIZE		16384
#define HYB_CHUNK_HEADER	64	/* keeps objects on cache lines */
#define HYB_CHUNK_SPACE		(HYB_CHUNK_SIZE - HYB_CHUNK_HEADER)

#define HYB_REF_OFFSET_BITS	12	/* of HYB_CHUNK_SIZE / 4 */

/* Numbers of chunks that references can name: 16 GB. */
#define HYB_MAX_CHUNKS		((uint32) 1 << (32 - HYB_REF_OFFSET_BITS))

/* Shared segments, all of whose chunks have such numbers (arena.c). */
#define HYB_MAX_SEGMENTS	104

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
	bool		shared;
	MemoryContext context;		/* backend-local: all memory is in here */
	uint32		pocket;			/* chain of chunks reserved */
	uint32		npocket;
	uint32		nchunks;		/* backend-local: chunks allocated */
} HybArena;

static inline HybChunk *
hyb_chunk(const HybArena *arena, uint32 chunk)
{
	return (HybChunk *) arena->addr[chunk];
}

static inline void *
hyb_ref_ptr(const HybArena *arena, HybRef ref)
{
	return arena->addr[ref >> HYB_REF_OFFSET_BITS] +
		((ref & ((1 << HYB_REF_OFFSET_BITS) - 1)) << 2);
}

static inline HybRef
hyb_make_ref(uint32 chunk, uint32 offset)
{
	return chunk << HYB_REF_OFFSET_BITS | offset >> 2;
}

/* The shared arena as this backend sees it. */
extern HybArena hyb_shared_arena;

/* Make an empty backend-local arena in (a child of) parent. */
extern HybArena *hyb_arena_create(MemoryContext parent);
extern void hyb_arena_drop(HybArena *arena);

/* Bytes of all backend-local arenas of this backend. */
extern uint64 hyb_arena_private(void);

/*
 * Map the shared segments that other backends have made, and let go of those
 * that were given back; errors if that fails.  Not while holding a lock on a
 * slot, or control->lock.
 */
extern void hyb_arena_attach(void);

/*
 * Is everything mapped?  True after hyb_arena_attach until somebody makes
 * another segment.  Chunks of a tree were made before the tree was unlocked,
 * so asking with the slot locked is enough to read its tree.
 */
extern bool hyb_arena_attached(void);

/* Make sure that the shared arena exists at all; false if that cannot be. */
extern bool hyb_arena_available(void);

/*
 * A segment of shared memory, or NULL where that cannot be had; not tried
 * again for a second after a failure.  As dsm_create leaves it, without a
 * resource owner.
 */
extern dsm_segment *hyb_create_segment(Size size);

/*
 * Have at least n chunks in the pocket.  Returns false if there is no memory;
 * for a backend-local arena, if it has as many chunks as can be named.
 */
extern bool hyb_arena_reserve(HybArena *arena, uint32 n);

/* A chunk from the pocket, which must not be empty; header initialised. */
extern uint32 hyb_arena_take(HybArena *arena, uint32 kind);

/* Put a chunk, or a chain of them, into the pocket. */
extern void hyb_arena_put(HybArena *arena, uint32 chunk);
extern void hyb_arena_put_chain(HybArena *arena, uint32 first);

/* Give the pocket back (backend-local: keep it).  Never fails. */
extern void hyb_arena_trim(HybArena *arena);

/*
 * Bytes that all segments together may have: hybridindex.dynamic_memory, or
 * less where the operating system has little shared memory.
 */
extern uint64 hyb_arena_budget(void);

/* Bytes that trees and pockets have of the shared arena. */
extern uint64 hyb_arena_used(void);

/* Bytes of all segments, and how many these are. */
extern uint64 hyb_arena_reserved(uint32 *nsegments);

#endif							/* HYB_ARENA_H */
