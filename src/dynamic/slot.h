/*
 * slot.h
 *		What a backend knows of one index's dynamic stage.
 *
 * A HybSlot is backend-local and found by the index's identity; it refers to
 * the shared slot of the index, if there is one, and holds what the backend
 * has cached: the version, tail pages to append to, and, where there is no
 * shared memory to be had, trees of its own.
 */
#ifndef HYB_SLOT_H
#define HYB_SLOT_H

#include "access/xlog.h"
#include "dynamic/dynamic.h"
#include "dynamic/shared.h"

struct HybStage;
struct HybArena;

typedef struct HybSlot
{
	HybSlotKey	key;			/* hash key, first */
	uint64		local_serial;	/* of this use of the object */
	uint64		last_use;		/* backend-local clock */
	Oid			relid;
	bool		is_temp;
	bool		changing;		/* see hyb_version_prepare */
	int			busy;			/* in use by functions up the stack */
	uint32		touches;

	HybSharedSlot *shared;		/* NULL: none known */
	uint64		shared_serial;	/* shared->serial when it was looked up */
	uint64		seen_creations; /* control->creations then */

	/* capture.c; version_seq is of the shared slot with shared_serial */
	HybVersion *version;
	bool		version_valid;
	uint64		version_seq;

	HybRootCache root;			/* static/inner.c */

	/* append.c: where to append, checked when the page is locked */
	uint64		hint_generation;	/* 0: no hints */
	BlockNumber hint_tail[HYB_LANES];
	Buffer		hint_buffer;	/* where the page appended to last was */
	int			lane;			/* preferred */

	/* catchup.c: trees in backend memory */
	struct HybStage *stage;
	struct HybArena *arena;
	uint64		private_generation; /* shared memory is not tried while this
									 * is the active generation, until */
	TimestampTz private_until;

	/* am/unique.c: the greatest key of a version's static stage */
	uint64		top_version;	/* that version; 0: not known */
	HybBuf		top_key;		/* in TopMemoryContext */

	/* fetch.c: not yet added to the shared counters */
	uint32		bloom_hits;
	uint32		bloom_misses;
	uint32		filter_counts[HYB_FILTER_OUTCOMES];
	int			filter_debt;	/* above 0: filters are of little use lately */
	int			filter_turn;	/* questions not asked since the last one */
	int			filter_interval;	/* of them between two that are asked */
} HybSlot;

extern HybSlot *hyb_slot_open(HybIndex *ix);

/*
 * The slot of an open index.  Remembered in the handle; slots are reused, so
 * the serial tells whether it still is the one.
 */
static inline HybSlot *
hyb_slot_get(HybIndex *ix)
{
	HybSlot    *s = ix->slot;

	if (unlikely(s == NULL || s->local_serial != ix->slot_serial ||
				 s->key.incarnation != ix->incarnation ||
				 (s->key.in_recovery && !RecoveryInProgress())))
		return hyb_slot_open(ix);
	ix->root = &s->root;
	return s;
}

/* Is the shared slot that s refers to still that of the index? */
static inline bool
hyb_slot_valid(const HybSlot *s)
{
	return s->shared != NULL &&
		pg_atomic_read_u64(&s->shared->serial) == s->shared_serial;
}

/*
 * Look the shared slot up, if there can be one that s does not know of.
 * Returns whether there is one.  Locks control->lock for a moment, and maps
 * blocks of slots that others have made, which may raise an error: not in a
 * critical section.
 */
extern bool hyb_slot_find(HybSlot *s);

/*
 * The same, but make one.  False if that is not possible.  The caller holds
 * no slot's lock.
 */
extern bool hyb_slot_create(HybSlot *s);

/*
 * Called, if set, when a slot went to another index while there was something
 * in the log of its own one, which should be merged: its tree is lost, and
 * somebody will have to read the log.  The caller of hyb_slot_create may hold
 * locks.
 */
extern void (*hyb_slot_evicted) (Oid dbid, Oid relid);

/* Has that happened lately? */
extern bool hyb_slots_scarce(void);

/*
 * Where a lane ends, as the shared slot records it.
 */
#define hyb_lane_end(block, lower) ((uint64) (block) << 16 | (lower))
#define hyb_lane_end_block(end) ((BlockNumber) ((end) >> 16))
#define hyb_lane_end_offset(end) ((uint16) (end))

extern void hyb_slot_publish(HybSlot *s, uint64 generation, int lane,
							 uint64 end);

/* Where the shared slot says that a lane ends; 0: it has heard of nothing. */
static inline uint64
hyb_slot_appended(HybSharedSlot *shared, uint64 generation, int lane)
{
	if (pg_atomic_read_u64(&shared->appended_gen) != generation)
		return 0;
	pg_read_barrier();
	return pg_atomic_read_u64(&shared->appended[lane]);
}

/* Note that the trees are in use. */
extern void hyb_slot_touch(HybSlot *s);

/* Trees unused for so long may be evicted for others. */
#define HYB_UNUSED_MS	1000

/*
 * Free trees of slots that have not been used for idle_ms, the oldest first,
 * until `bytes` are free.  Called with no slot locked, at the ends of
 * transactions too, so it raises no error.
 */
extern bool hyb_slots_evict(uint64 bytes, int idle_ms);

/* Bytes that this could free, as far as one can tell. */
extern uint64 hyb_slots_evictable(void);

/*
 * Bytes of all trees in shared memory, as far as one can tell; slots in use,
 * and bytes of segments that hold slots.
 */
extern uint64 hyb_slots_total(uint32 *nslots, uint64 *slot_bytes);

/* Bytes of the largest tree in shared memory, as far as one can tell. */
extern uint64 hyb_slots_largest(void);

extern void hyb_slot_key(const HybIndex *ix, HybSlotKey *key);

/*
 * Bump the version sequence of the shared slot that s refers to, if any, and
 * free what is no longer needed.  The metapage is locked exclusively, since
 * before s looked the slot up; this may be a critical section.  Whoever makes
 * a slot for the index later reads the metapage later, too.
 */
extern void hyb_slot_version_changed(HybSlot *s, const HybMetaPage *meta);

/*
 * Release the slots of every index that had the relation file of this key.
 */
extern void hyb_slots_forget(const HybSlotKey *key);

#endif							/* HYB_SLOT_H */
