/*
 * shared_arena.h
 *		The arena in shared memory: segments, and how to reach them.
 */
#ifndef HYB_SHARED_ARENA_H
#define HYB_SHARED_ARENA_H

#include "memtree/arena.h"
#include "shared/shared.h"
#include "storage/dsm.h"

/* Shared segments, all of whose chunks have such numbers. */
#define HYB_MAX_SEGMENTS	104

/* Trees unused for so long may be evicted for others. */
#define HYB_UNUSED_MS		1000

/* hybridindex.dynamic_memory, in kB, and the most that it may be (arena.h) */
extern int	hyb_dynamic_memory_kb;

#define HYB_MAX_DYNAMIC_KB	(16 * 1024 * 1024)

/*
 * hybridindex.test_pressure, of servers with assertions: if set, trees find
 * memory plentiful (1) or scarce (2).
 */
extern int	hyb_test_pressure;

/* Defines these settings.  Called once, when the library is loaded. */
extern void hyb_arena_init(void);

/* The shared arena as this backend sees it, and its table of segments. */
extern HybArena hyb_shared_arena;
extern const HybSharedPart hyb_arena_part;

/*
 * Frees trees that have not been used for idle_ms, the oldest first, until
 * `bytes` are free.  The directory sets it.  Called with no slot locked, at
 * the ends of transactions too, so it raises no error.
 */
extern bool (*hyb_arena_evict) (uint64 bytes, int idle_ms);

/*
 * Map the shared segments that other backends have made, and let go of those
 * that were given back; errors if that fails.  Not while holding a lock on a
 * slot, or on the directory of slots.
 */
extern void hyb_arena_attach(void);

/*
 * Is everything mapped?  True after hyb_arena_attach until another segment is
 * made.  Chunks of a tree were made before the tree was unlocked, so asking
 * with the slot locked is enough to read its tree.
 */
extern bool hyb_arena_attached(void);

/* Make sure that the shared arena exists at all; false if that cannot be. */
extern bool hyb_arena_available(void);

/*
 * Bytes that all segments together may have: hybridindex.dynamic_memory, or
 * less where the operating system has little shared memory.
 */
extern uint64 hyb_arena_budget(void);

/* Bytes that trees and pockets have of the shared arena. */
extern uint64 hyb_arena_used(void);

/*
 * The share of membership filters, half of the budget.  A process that has reserved
 * chunks sets them aside, since reserving may raise an error.  It gives them back when
 * it has freed them.  Returns false if they exceed the share.
 */
extern bool hyb_arena_set_aside(uint32 nchunks);
extern void hyb_arena_give_back(uint32 nchunks);

/* Chunks that may yet be set aside if `but` chunks were given back.  A hint. */
extern uint32 hyb_arena_filters_room(uint32 but);

/* Bytes of them, and are these too many since the budget was lowered? */
extern uint64 hyb_arena_filters(void);
extern bool hyb_arena_filters_exceed(void);

/* The budget and what is used, without membership filters. */
extern uint64 hyb_arena_tree_budget(void);
extern uint64 hyb_arena_tree_used(void);

/* Bytes of all segments, and how many these are. */
extern uint64 hyb_arena_reserved(uint32 *nsegments);

/* Bytes of the backend-local arenas of all backends. */
extern uint64 hyb_arena_all_private(void);

#endif							/* HYB_SHARED_ARENA_H */
