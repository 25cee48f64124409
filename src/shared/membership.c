/*
 * membership.c
 *		The bits and the memory of membership filters.
 *
 * A filter is a blocked Bloom filter whose blocks are words of 64 bits (F. Putze,
 * P. Sanders, J. Singler: Cache-, Hash- and Space-Efficient Bloom Filters, WEA 2007).
 * A key sets KEY_BITS bits of one word, so it costs one cache miss and one atomic
 * operation, and inserters with different partitions need no other lock.  With 12
 * bits a key one answer in a hundred is a false "maybe".
 */
#include "base/compat.h"

#include "shared/membership.h"

/* Words of one chunk. */
#define CHUNK_WORDS		((uint32) (HYB_CHUNK_SPACE / sizeof(uint64)))

/* Bits that a key sets. */
#define KEY_BITS		4

/* One in COUNT_SAMPLE keys is counted, for COUNT_SAMPLE keys. */
#define COUNT_SAMPLE	16

StaticAssertDecl(CHUNK_WORDS * (uint64) HYB_MEMBERSHIP_MAX_CHUNKS <= PG_UINT32_MAX,
				 "half a hash tells words apart");
StaticAssertDecl(offsetof(HybMembershipPlace, bytes) + BLCKSZ <= HYB_CHUNK_SPACE,
				 "a place fits a chunk");

bool		(*hyb_membership_pass) (bool wait) = NULL;

#ifdef USE_ASSERT_CHECKING
void
hyb_membership_assert_valid(const HybMembership *membership)
{
	uint32		states = hyb_membership_states(unconstify(HybMembership *, membership));
	uint32		ready = HYB_MEMBERSHIP_READY(states);
	uint32		making = HYB_MEMBERSHIP_MAKING(states);

	Assert(ready <= 2 && making <= 2);
	Assert(ready == 0 || ready != making);
	Assert(ready == 0 || membership->filters[ready - 1].nchunks > 0);
	Assert(making == 0 || membership->filters[making - 1].nchunks > 0);
}
#endif

/* The upper half of the hash chooses the word, as in memtree/bloom.c. */
static inline pg_atomic_uint64 *
key_word(const HybKeyFilter *filter, uint64 hash)
{
	uint64		nwords = (uint64) filter->nchunks * CHUNK_WORDS;
	uint32		word = (uint32) (((hash >> 32) * nwords) >> 32);
	uint32		number = word / CHUNK_WORDS;
	const uint32 *numbers = hyb_chunk_space(&hyb_shared_arena,
											filter->lists[number / HYB_MEMBERSHIP_NUMBERS]);
	pg_atomic_uint64 *words = hyb_chunk_space(&hyb_shared_arena,
											  numbers[number % HYB_MEMBERSHIP_NUMBERS]);

	Assert(number < filter->nchunks);
	return &words[word % CHUNK_WORDS];
}

/* The whole hash, mixed once more, chooses the bits. */
static inline uint64
key_bits(uint64 hash)
{
	uint64		mixed = hash * UINT64CONST(0x9E3779B97F4A7C15);
	uint64		bits = 0;

	for (int i = 0; i < KEY_BITS; i++)
		bits |= UINT64CONST(1) << (mixed >> (58 - 6 * i) & 63);
	return bits;
}

void
hyb_key_filter_add(HybKeyFilter *filter, uint64 hash)
{
	pg_atomic_uint64 *word = key_word(filter, hash);
	uint64		bits = key_bits(hash);

	if ((pg_atomic_read_u64(word) & bits) != bits)
		(void) pg_atomic_fetch_or_u64(word, bits);
	if (hash % COUNT_SAMPLE == 0)
		(void) pg_atomic_fetch_add_u64(&filter->keys, COUNT_SAMPLE);
}

bool
hyb_key_filter_maybe(HybKeyFilter *filter, uint64 hash)
{
	uint64		bits = key_bits(hash);

	return (pg_atomic_read_u64(key_word(filter, hash)) & bits) == bits;
}

/* ---- memory ---- */

static inline uint32
lists_of(uint32 nchunks)
{
	return (nchunks + HYB_MEMBERSHIP_NUMBERS - 1) / HYB_MEMBERSHIP_NUMBERS;
}

uint32
hyb_key_filter_cost(uint32 nchunks)
{
	return nchunks + lists_of(nchunks) + 1;
}

/* The numbers in a list are counted in its `used`. */
void
hyb_key_filter_create(HybKeyFilter *filter, uint32 nchunks)
{
	uint32		nlists = lists_of(nchunks);

	Assert(nchunks > 0 && nchunks <= HYB_MEMBERSHIP_MAX_CHUNKS);
	Assert(hyb_shared_arena.npocket >= hyb_key_filter_cost(nchunks));
	memset(filter->lists, 0, sizeof(filter->lists));
	filter->nchunks = nchunks;
	pg_atomic_init_u64(&filter->keys, 0);
	filter->place = hyb_arena_take_zeroed(&hyb_shared_arena);
	hyb_chunk(&hyb_shared_arena, filter->place)->used = 0;
	for (uint32 i = nlists; i-- > 0;)
	{
		uint32		n = Min(nchunks - i * HYB_MEMBERSHIP_NUMBERS, HYB_MEMBERSHIP_NUMBERS);
		HybChunk   *list;
		uint32	   *numbers;

		filter->lists[i] = hyb_arena_take_zeroed(&hyb_shared_arena);
		list = hyb_chunk(&hyb_shared_arena, filter->lists[i]);
		list->next = i + 1 < nlists ? filter->lists[i + 1] : filter->place;
		list->used = n;
		numbers = hyb_chunk_space(&hyb_shared_arena, filter->lists[i]);
		for (uint32 j = 0; j < n; j++)
			numbers[j] = hyb_arena_take_zeroed(&hyb_shared_arena);
	}
}

uint32
hyb_key_filter_chain(const HybKeyFilter *filter, uint32 next)
{
	Assert(filter->nchunks > 0);
	hyb_chunk(&hyb_shared_arena, filter->place)->next = next;
	return filter->lists[0];
}

void
hyb_key_filter_free(uint32 chain)
{
	while (chain != 0)
	{
		HybChunk   *list = hyb_chunk(&hyb_shared_arena, chain);
		const uint32 *numbers = hyb_chunk_space(&hyb_shared_arena, chain);
		uint32		next = list->next;

		for (uint32 i = 0; i < list->used; i++)
			hyb_arena_put(&hyb_shared_arena, numbers[i]);
		hyb_arena_put(&hyb_shared_arena, chain);
		chain = next;
	}
}
