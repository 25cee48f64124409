/*
 * membership_make.c
 *		Making the membership filter of an index: a worker reads the index once.
 *
 * Merges cannot make it, since they read only leaves that get entries.  Inserters do
 * not make it either: they set bits in what a worker has begun.
 *
 * 1. The worker has an empty filter be made, in the slot's states.  From then on
 *    inserters add their keys, before they append.
 * 2. It locks each unique partition once.  An inserter that has looked at the states
 *    before has appended its entry by then.  So an entry is in a run now, or its
 *    key is added.
 * 3. It reads the log, then the levels from the newest to the oldest, each in key
 *    order.  An entry moves one way only: from the log to a level, and to an older
 *    level, at the same place of the key order.  So reading meets each entry that
 *    was there in step 2, but for dead ones.
 * 4. It has the filter answer, and retires the one before.
 *
 * How far step 3 has come is kept beside the filter, so another worker may go on.
 * A key that is added twice does no harm.
 */
#include "base/compat.h"

#include "access/xlog.h"
#include "log/unique_lock.h"
#include "merge/facts.h"
#include "merge/membership_make.h"
#include "miscadmin.h"
#include "run/run.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* An index with fewer keys needs no filter. */
#define LEAST_KEYS		8192

/*
 * A new filter has room for ROOM_FOR times the keys that there are, or for LEAST_ROOM_FOR
 * times if its share of the memory has no more.
 */
#define ROOM_FOR		2.0
#define LEAST_ROOM_FOR	1.2

/* A filter that cannot grow goes when it has this multiple of its keys. */
#define USELESS			3

/* Entries that are read at a time: a partition is locked while they are added. */
#define MAKING_ENTRIES	512

/* How long no filter is begun where there was no memory for one. */
#define NOT_BEFORE_MS		10000

/* A worker that finds no room evicts filters that got no key for this time. */
#define OTHERS_IDLE_MS		10000

/* HybMembershipPlace.run before step 2 is done. */
#define RUN_NONE		(HYB_RUN_LOG + 1)

/* Chunks of the filter that answers; 0 if there is no such filter. */
static uint32
chunks_of(HybMembership *membership, uint32 states)
{
	uint32		ready = HYB_MEMBERSHIP_READY(states);

	return ready == 0 ? 0 :
		hyb_key_filter_cost(hyb_membership_filter(membership, ready)->nchunks);
}

static uint64
keys_of(const HybMergeFacts *facts)
{
	return facts->static_tids + facts->frozen_entries + facts->active_entries;
}

/* The filters of all indexes, as chunks_for takes them. */
#define ALL_FILTERS		PG_UINT32_MAX

/*
 * Chunks of bits of a new filter for that many keys, if filters with `but` chunks went
 * before.  0: there is no room.
 */
static uint32
chunks_for(uint64 keys, uint32 but)
{
	double		full = (double) keys / HYB_MEMBERSHIP_CHUNK_KEYS;
	uint32		room = hyb_arena_filters_room(but);
	uint32		bits = 0;

	if (room > hyb_key_filter_cost(1))
		bits = Min(room - hyb_key_filter_cost(room) + room, HYB_MEMBERSHIP_MAX_CHUNKS);
	if (full * LEAST_ROOM_FOR > bits)
		return 0;
	return (uint32) Min(full * ROOM_FOR + 1, bits);
}

bool
hyb_membership_wanted(HybIndex *ix, const HybMergeFacts *facts)
{
	HybCache   *cache = hyb_cache_get(ix);
	uint64		keys = keys_of(facts);
	HybMembership *membership;
	HybKeyFilter *ready;
	uint32		states;

	if (!ix->rel->rd_index->indisunique || !ix->desc->exact || ix->desc->truncated ||
		cache->is_temp || keys < LEAST_KEYS || !hyb_shared_init() || RecoveryInProgress())
		return false;
	if (!hyb_slot_find(cache))
		return chunks_for(keys, ALL_FILTERS) > 0;
	membership = &cache->shared->membership;
	states = hyb_membership_states(membership);
	if (HYB_MEMBERSHIP_MAKING(states) != 0)
		return true;
	if (membership->retry != 0 && GetCurrentTimestamp() < membership->retry)
		return false;
	if (HYB_MEMBERSHIP_READY(states) == 0)
		return chunks_for(keys, ALL_FILTERS) > 0;
	ready = hyb_membership_filter(membership, HYB_MEMBERSHIP_READY(states));
	return hyb_key_filter_exceeds(ready, USELESS) ||
		(hyb_key_filter_exceeds(ready, 1) &&
		 chunks_for(keys, chunks_of(membership, states)) > ready->nchunks);
}

/* ---- steps 1 and 4: states ---- */

/* What a process knows of the filters of an index, and in which slot. */
typedef struct Seen
{
	HybSharedSlot *shared;
	uint64		serial;
	uint32		states;
	uint64		makings;
} Seen;

/* The cache has a slot. */
static Seen
filters_seen(const HybCache *cache)
{
	HybMembership *membership = &cache->shared->membership;
	Seen		seen = {
		.shared = cache->shared,
		.serial = cache->shared_serial,
		.makings = pg_atomic_read_u64(&membership->makings)
	};

	pg_read_barrier();
	seen.states = hyb_membership_states(membership);
	return seen;
}

/*
 * Is the slot still the index's, with the filters that were seen?  It is locked, or a
 * partition is.
 */
static bool
is_seen(const Seen *seen)
{
	HybMembership *membership = &seen->shared->membership;

	return pg_atomic_read_u64(&seen->shared->serial) == seen->serial && hyb_arena_attached() &&
		hyb_membership_states(membership) == seen->states &&
		pg_atomic_read_u64(&membership->makings) == seen->makings;
}

/* Keeps the filters of `keep` of those that were seen. */
static void
keep_filters(const Seen *seen, uint32 keep)
{
	hyb_arena_attach();
	LWLockAcquire(&seen->shared->lock, LW_EXCLUSIVE);
	if (is_seen(seen))
		hyb_slot_retire_filters(seen->shared, keep);
	LWLockRelease(&seen->shared->lock);
	hyb_filters_free_retired(true);
}

/*
 * Step 1 for a filter of `nchunks` chunks, beside the one that answers.  Returns
 * false if that is not possible now.
 */
static bool
begin(const Seen *seen, uint32 nchunks)
{
	HybMembership *membership = &seen->shared->membership;
	uint32		ready = HYB_MEMBERSHIP_READY(seen->states);
	uint32		number = ready == 1 ? 2 : 1;
	uint32		cost = hyb_key_filter_cost(nchunks);
	HybKeyFilter filter;
	bool		begun;

	/* no inserter reads the description that is overwritten */
	(void) hyb_membership_pass(true);
	HYB_POINT("membership-begins");
	if (!hyb_arena_reserve(&hyb_shared_arena, cost) || !hyb_arena_set_aside(cost))
	{
		hyb_arena_trim(&hyb_shared_arena);
		return false;
	}
	/* nothing can fail until the slot has the filter */
	hyb_key_filter_create(&filter, nchunks);
	hyb_key_filter_place(&filter)->run = RUN_NONE;
	LWLockAcquire(&seen->shared->lock, LW_EXCLUSIVE);
	begun = is_seen(seen);
	if (begun)
	{
		*hyb_membership_filter(membership, number) = filter;
		membership->idle_since = GetCurrentTimestamp();
		(void) pg_atomic_fetch_add_u64(&membership->makings, 1);
		pg_write_barrier();
		pg_atomic_write_u32(&membership->states, HYB_MEMBERSHIP_STATES(ready, number));
		hyb_membership_assert_valid(membership);
	}
	LWLockRelease(&seen->shared->lock);
	if (!begun)
	{
		hyb_key_filter_free(hyb_key_filter_chain(&filter, 0));
		hyb_arena_give_back(cost);
	}
	hyb_arena_trim(&hyb_shared_arena);
	return begun;
}

/*
 * Begins the filter that the index wants, or gives up one that is of no use.  Returns
 * whether one is being made.
 */
static bool
begin_wanted(HybIndex *ix, const HybMergeFacts *facts)
{
	HybCache   *cache = hyb_cache_get(ix);
	uint64		keys = keys_of(facts);
	uint32		nchunks;
	Seen		seen;

	if (!hyb_slot_create(cache))
		return false;
	seen = filters_seen(cache);
	if (HYB_MEMBERSHIP_MAKING(seen.states) != 0)
		return true;
	if (chunks_for(keys, 0) == 0)
		hyb_filters_evict(OTHERS_IDLE_MS);
	hyb_filters_free_retired(true);
	if (chunks_for(keys, 0) == 0 && seen.states != 0)
	{
		/* until there is a larger one, checks do without */
		keep_filters(&seen, 0);
		seen = filters_seen(cache);
	}
	/* the room may change from one look to the next */
	nchunks = chunks_for(keys, 0);
	if (nchunks > 0 && begin(&seen, nchunks))
		return true;
	seen.shared->membership.retry = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
																NOT_BEFORE_MS);
	return false;
}

/* ---- steps 2 to 4: reading ---- */

/* A filter that is being made, as a worker knows it. */
typedef struct Making
{
	HybIndex   *ix;
	Seen		seen;			/* when this process came to it */
	HybKeyFilter *filter;
	int			run;			/* the place where reading goes on */
	HybPos		at;
	HybBuf		at_key;
	HybFetched	batch;
} Making;

/*
 * Locks a partition, if the filter is still being made and may be looked at.
 */
static bool
lock_making(const Making *making)
{
	hyb_membership_lock();
	if (is_seen(&making->seen))
		return true;
	hyb_membership_unlock();
	return false;
}

static void
set_position(Making *making, const HybPos *pos)
{
	hyb_pos_copy(&making->at, &making->at_key, pos);
}

/* Finds out what is being made, and how far.  Returns false if nothing is. */
static bool
resume(Making *making)
{
	HybCache   *cache = hyb_cache_get(making->ix);
	HybPos		least = {.tie = HYB_BEFORE};
	HybPos		at = least;
	uint32		number;
	const HybMembershipPlace *place;
	uint8		bytes[HYB_MAX_ENTRY_SIZE];

	if (!hyb_slot_find(cache))
		return false;
	making->seen = filters_seen(cache);
	number = HYB_MEMBERSHIP_MAKING(making->seen.states);
	hyb_arena_attach();
	if (number == 0 || !lock_making(making))
		return false;
	making->filter = hyb_membership_filter(&cache->shared->membership, number);
	place = hyb_key_filter_place(making->filter);
	making->run = place->run;
	if (place->keylen > 0)
	{
		memcpy(bytes, place->bytes, place->keylen);
		at = hyb_pos_at(making->ix->desc, bytes, place->keylen, place->tid);
	}
	hyb_membership_unlock();
	set_position(making, &at);
	return true;
}

/* Goes on behind the batch, or with the next run.  No lock is held. */
static void
advance(Making *making)
{
	HybPos		least = {.tie = HYB_BEFORE};

	if (!making->batch.complete)
		hyb_fetched_last(making->ix, &making->batch, &making->at, &making->at_key);
	else
	{
		making->run = making->run == HYB_RUN_LOG ? HYB_MAX_LEVELS - 1 : making->run - 1;
		set_position(making, &least);
	}
}

static void
store_place(const Making *making)
{
	HybMembershipPlace *place = hyb_key_filter_place(making->filter);

	Assert(making->at.len <= HYB_MAX_ENTRY_SIZE);
	place->run = making->run;
	place->keylen = making->at.len;
	place->tid = making->at.tid;
	if (making->at.len > 0)
		memcpy(place->bytes, making->at.key, making->at.len);
}

/* Reads some entries and adds their keys.  Returns false if it is made no more. */
static bool
add_some_keys(Making *making)
{
	HybFetched *batch = &making->batch;
	HybPos		greatest = {.tie = HYB_AFTER};
	HybFetch	fetch = {.lo = &making->at,.hi = &greatest,.limit = MAKING_ENTRIES};
	uint64		hashes[MAKING_ENTRIES];
	HybVersion	version;

	do
	{
		CHECK_FOR_INTERRUPTS();
		hyb_version_capture(making->ix, &version);
	} while (!hyb_run_fetch(making->ix, &version, making->run, &fetch, batch));

	Assert(batch->nitems <= MAKING_ENTRIES);
	for (int i = 0; i < batch->nitems; i++)
		hashes[i] = hyb_key_point_hash(making->ix->desc,
									   batch->keys.data + batch->items[i].key_off,
									   batch->items[i].keylen);
	advance(making);
	hyb_arena_attach();
	if (!lock_making(making))
		return false;
	for (int i = 0; i < batch->nitems; i++)
		if (hashes[i] != 0)
			hyb_key_filter_add(making->filter, hashes[i]);
	store_place(making);
	hyb_membership_unlock();
	return true;
}

bool
hyb_membership_make(HybIndex *ix, int ms)
{
	TimestampTz began = GetCurrentTimestamp();
	Making		making = {.ix = ix};
	HybMergeFacts facts;
	bool		more;

	(void) hyb_merge_need(ix, &facts);
	if (!hyb_membership_wanted(ix, &facts) || !begin_wanted(ix, &facts))
		return false;
	HYB_POINT("membership-begun");
	more = resume(&making);
	if (more && making.run == RUN_NONE)
	{
		(void) hyb_membership_pass(true);
		making.run = HYB_RUN_LOG;
	}
	while (more && making.run >= 0 &&
		   !TimestampDifferenceExceeds(began, GetCurrentTimestamp(), ms))
	{
		HYB_POINT("membership-reads");
		more = add_some_keys(&making);
	}
	if (more && making.run < 0)
	{
		HYB_POINT("membership-read");
		keep_filters(&making.seen,
					 HYB_MEMBERSHIP_STATES(HYB_MEMBERSHIP_MAKING(making.seen.states), 0));
		more = false;
	}
	hyb_fetched_free(&making.batch);
	hyb_buf_free(&making.at_key);
	return more;
}

void
hyb_membership_forget(HybIndex *ix)
{
	HybCache   *cache = hyb_cache_get(ix);

	if (!hyb_slot_find(cache))
		return;
	/* a slot that was evicted may be another index's by now, with its filters */
	while (hyb_slot_valid(cache))
	{
		Seen		seen = filters_seen(cache);

		if (seen.states == 0)
			break;
		keep_filters(&seen, 0);
	}
}
