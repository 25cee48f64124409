/*
 * membership.h
 *		Membership filters: one filter over the keys of all runs of a unique index.
 *
 * A uniqueness check asks it first.  "No" proves that no run has the key.  Then the
 * inserter captures no version and descends no tree.  log/unique_lock.c asks the
 * filter and sets bits; merge/membership_make.c makes it.
 *
 * A filter lies in the shared arena and belongs to a shared slot.  So an index with
 * another file, incarnation or life of its database has another filter.  A slot has
 * room for two: one that answers, and a larger one that is being made.  The second
 * one never answers.  Inserters set bits in both.
 *
 * Locks
 *		A process reads or changes the bits of a filter, its numbers of chunks and its
 *		place only with a unique partition locked exclusively.  It looks at `states`
 *		after it has that lock.  So what has gone from `states` may be freed, and its
 *		description written anew, when every partition was locked once since then
 *		(hyb_membership_pass).
 *
 *		`states` changes with the slot locked exclusively.
 */
#ifndef HYB_MEMBERSHIP_H
#define HYB_MEMBERSHIP_H

#include "datatype/timestamp.h"
#include "port/atomics.h"
#include "shared/shared_arena.h"

/*
 * A filter lists its chunks of bits in chunks of their own, HYB_MEMBERSHIP_NUMBERS in
 * each.  It may have HYB_MEMBERSHIP_LISTS of these: 1 GB of bits, for 700 million
 * keys.
 */
#define HYB_MEMBERSHIP_NUMBERS	((uint32) (HYB_CHUNK_SPACE / sizeof(uint32)))
#define HYB_MEMBERSHIP_LISTS	16
#define HYB_MEMBERSHIP_MAX_CHUNKS	(HYB_MEMBERSHIP_LISTS * HYB_MEMBERSHIP_NUMBERS)

/* A filter is full when it has a key for 12 bits. */
#define HYB_MEMBERSHIP_BITS		12
#define HYB_MEMBERSHIP_CHUNK_KEYS	(HYB_CHUNK_SPACE * 8 / HYB_MEMBERSHIP_BITS)

/* How far the index was read for a filter that is being made. */
typedef struct HybMembershipPlace
{
	int32		run;			/* as in run/run.h; HYB_RUN_LOG comes first,
								 * then levels from the newest to the oldest */
	uint32		keylen;			/* of the key where reading goes on; 0: where
								 * the run begins */
	ItemPointerData tid;
	uint8		bytes[FLEXIBLE_ARRAY_MEMBER];
} HybMembershipPlace;

typedef struct HybKeyFilter
{
	uint32		nchunks;		/* of bits */
	uint32		lists[HYB_MEMBERSHIP_LISTS];	/* chunks with their numbers.
												 * They are a chain, too,
												 * whose last chunk has the
												 * place */
	uint32		place;			/* that chunk */
	pg_atomic_uint64 keys;		/* that were added, roughly */
} HybKeyFilter;

/* Part of a shared slot; all zero if there is no filter. */
typedef struct HybMembership
{
	pg_atomic_uint32 states;	/* see below */
	pg_atomic_uint64 makings;	/* begun so far: tells one from the next */
	HybKeyFilter filters[2];

	TimestampTz retry;			/* there was no memory: none is begun before.
								 * A hint, written without lock */

	/* For giving up what is not used; protected by the slot's lock. */
	uint64		idle_keys;		/* `keys` when they were last seen to change */
	TimestampTz idle_since;
} HybMembership;

/* Numbers from 1: the filter that answers, and the one being made; 0: none. */
#define HYB_MEMBERSHIP_STATES(ready, making)	((uint32) (ready) | (uint32) (making) << 2)
#define HYB_MEMBERSHIP_READY(states)	((states) & 3)
#define HYB_MEMBERSHIP_MAKING(states)	((states) >> 2)

/* Does the filter with a number answer, or is it being made? */
static inline bool
hyb_membership_uses(uint32 states, uint32 number)
{
	return HYB_MEMBERSHIP_READY(states) == number || HYB_MEMBERSHIP_MAKING(states) == number;
}

#ifdef USE_ASSERT_CHECKING
extern void hyb_membership_assert_valid(const HybMembership *membership);
#else
#define hyb_membership_assert_valid(membership) ((void) (membership))
#endif

/* A hint unless a partition is locked. */
static inline uint32
hyb_membership_states(HybMembership *membership)
{
	return pg_atomic_read_u32(&membership->states);
}

/* The filter with a number from 1. */
static inline HybKeyFilter *
hyb_membership_filter(HybMembership *membership, uint32 number)
{
	Assert(number == 1 || number == 2);
	return &membership->filters[number - 1];
}

/* Does the filter hold more than `times` the keys that it is made for? */
static inline bool
hyb_key_filter_exceeds(HybKeyFilter *filter, int times)
{
	return pg_atomic_read_u64(&filter->keys) >
		(uint64) filter->nchunks * HYB_MEMBERSHIP_CHUNK_KEYS * times;
}

/*
 * For what follows a partition is locked and the arena attached; `hash` is
 * hyb_key_hash of a key.
 */

extern void hyb_key_filter_add(HybKeyFilter *filter, uint64 hash);

/* May a key with this hash have been added?  False: none was. */
extern bool hyb_key_filter_maybe(HybKeyFilter *filter, uint64 hash);

static inline HybMembershipPlace *
hyb_key_filter_place(const HybKeyFilter *filter)
{
	return hyb_chunk_space(&hyb_shared_arena, filter->place);
}

/* ---- memory ---- */

/* Chunks that a filter of `nchunks` chunks of bits needs. */
extern uint32 hyb_key_filter_cost(uint32 nchunks);

/*
 * Describes a new filter without keys, whose memory comes from the pocket.  No
 * process looks at *filter.
 */
extern void hyb_key_filter_create(HybKeyFilter *filter, uint32 nchunks);

/* The chunks of a filter as a chain of chains, and putting such a one into the pocket. */
extern uint32 hyb_key_filter_chain(const HybKeyFilter *filter, uint32 next);
extern void hyb_key_filter_free(uint32 chain);

/*
 * Locks each unique partition and unlocks it.  Without `wait`, returns false if one
 * is locked by another process.  Set by log/unique_lock.c.  The caller holds no
 * partition, slot or directory.  Raises no error.
 */
extern bool (*hyb_membership_pass) (bool wait);

#endif							/* HYB_MEMBERSHIP_H */
