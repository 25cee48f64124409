/*
 * test_membership.c
 *		The bits and the memory of membership filters: no key that was added is
 *		denied, few others are let through, and all memory comes back.
 */
#include "fuzz/server.h"

#include "shared/membership.h"
#include "unit.h"

/* In the place of shared_arena.c: an arena of this process. */
HybArena	hyb_shared_arena;

static bool
is_scarce(const HybArena *arena)
{
	(void) arena;
	return false;
}

static uint64
hash_of(uint64 n)
{
	/* splitmix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014) */
	n = (n + 1) * UINT64CONST(0x9E3779B97F4A7C15);
	n = (n ^ (n >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	n = (n ^ (n >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return n ^ (n >> 31);
}

static void
test_filter(uint32 nchunks)
{
	uint64		capacity = (uint64) nchunks * HYB_MEMBERSHIP_CHUNK_KEYS;
	uint64		others = 100000;
	uint32		cost = hyb_key_filter_cost(nchunks);
	uint64		denied = 0;
	uint64		maybe = 0;
	HybKeyFilter filter;
	HybMembershipPlace *place;

	CHECK(hyb_arena_reserve(&hyb_shared_arena, cost), "%u chunks", cost);
	hyb_key_filter_create(&filter, nchunks);
	CHECK(hyb_shared_arena.npocket == 0, "%u chunks: %u are left", nchunks, hyb_shared_arena.npocket);
	for (uint64 n = 0; n < 1000; n++)
		maybe += hyb_key_filter_maybe(&filter, hash_of(n));
	CHECK(maybe == 0, "%u chunks: an empty filter says maybe", nchunks);

	/* a place of the longest key is beside it */
	place = hyb_key_filter_place(&filter);
	memset(place->bytes, 0xA5, HYB_MAX_ENTRY_SIZE);
	for (uint64 n = 0; n < capacity; n++)
		hyb_key_filter_add(&filter, hash_of(n));
	CHECK(!hyb_key_filter_exceeds(&filter, 2) &&
		  pg_atomic_read_u64(&filter.keys) > capacity * 9 / 10,
		  "%u chunks: " UINT64_FORMAT " keys are counted", nchunks, pg_atomic_read_u64(&filter.keys));
	for (uint64 n = 0; n < capacity; n++)
		denied += !hyb_key_filter_maybe(&filter, hash_of(n));
	CHECK(denied == 0, "%u chunks: " UINT64_FORMAT " keys are denied", nchunks, denied);
	maybe = 0;
	for (uint64 n = 0; n < others; n++)
		maybe += hyb_key_filter_maybe(&filter, hash_of(capacity + n));
	CHECK(maybe < others / 50, "%u chunks: " UINT64_FORMAT " of " UINT64_FORMAT " others may be there",
		  nchunks, maybe, others);
	for (uint32 i = 0; i < HYB_MAX_ENTRY_SIZE; i++)
		if (place->bytes[i] != 0xA5)
			CHECK(false, "%u chunks: the place has changed", nchunks);

	/* two filters in one chain */
	if (nchunks < 100)
	{
		HybKeyFilter second;

		CHECK(hyb_arena_reserve(&hyb_shared_arena, hyb_key_filter_cost(3)), "a second filter");
		hyb_key_filter_create(&second, 3);
		hyb_key_filter_free(hyb_key_filter_chain(&filter, hyb_key_filter_chain(&second, 0)));
		cost += hyb_key_filter_cost(3);
	}
	else
		hyb_key_filter_free(hyb_key_filter_chain(&filter, 0));
	CHECK(hyb_shared_arena.npocket == cost, "%u chunks: %u of %u come back", nchunks,
		  hyb_shared_arena.npocket, cost);
}

int
main(void)
{
	static const uint32 sizes[] = {1, 2, 3, 17, 99, HYB_MEMBERSHIP_NUMBERS, HYB_MEMBERSHIP_NUMBERS + 1};

	for (int i = 0; i < lengthof(sizes); i++)
	{
		HybArena   *arena = hyb_arena_create(TopMemoryContext);

		hyb_shared_arena = *arena;
		hyb_shared_arena.scarce = is_scarce;
		test_filter(sizes[i]);
		*arena = hyb_shared_arena;
		hyb_arena_drop(arena);
	}
	return unit_report("membership");
}
