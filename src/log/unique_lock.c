/*
 * unique_lock.c
 *		Where inserters of one key into a unique index meet.
 *
 * docs/entry.md, "Insert", proves that no duplicate gets in.  The proof needs that
 * an append is counted after it was made, and that nothing between can fail.
 */
#include "base/compat.h"

#include "base/server.h"
#include "catalog/pg_class.h"
#include "common/hashfn.h"
#include "log/unique_lock.h"
#include "shared/index_cache.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/lock.h"
#include "utils/rel.h"

/* Partitions for each backend, and bounds of their number. */
#define PARTITIONS_PER_BACKEND	4
#define MIN_PARTITIONS			64
#define MAX_PARTITIONS			1024

StaticAssertDecl(MAX_PARTITIONS % 64 == 0, "a PartitionSet has whole words");

/* Searches in vain before turns are taken. */
#define LOSSES					4

/*
 * The sub-object of the index that stands for the turns, as another one stands
 * for its merges (merge/facts.c).
 */
#define TURN_LOCK				0x4855

#ifdef USE_ASSERT_CHECKING
/* An inserter's ticket, once it has one. */
static void
ticket_assert_valid(const HybUniqueTicket *ticket)
{
	/* a ticket with a partition has a hash, and may have the turn */
	Assert(ticket->partition == NULL || (ticket->ix != NULL && ticket->hash != 0));
	Assert(!ticket->in_turn || ticket->ix != NULL);
	Assert(ticket->partition == NULL ||
		   ticket->seen <= pg_atomic_read_u64(&ticket->partition->appends));
}
#else
#define ticket_assert_valid(ticket) ((void) (ticket))
#endif

typedef struct Partitions
{
	int			tranche;
	uint32		n;				/* a power of two */
	char		unused[PG_CACHE_LINE_SIZE - 2 * sizeof(int)];	/* aligns what follows */
	HybUniquePartition partitions[FLEXIBLE_ARRAY_MEMBER];
} Partitions;

static Partitions *shared = NULL;

static uint32
partitions_wanted(void)
{
	uint32		n = (uint32) Min(MaxBackends, MAX_PARTITIONS) * PARTITIONS_PER_BACKEND;

	n = Max(Min(n, MAX_PARTITIONS), MIN_PARTITIONS);
	return pg_nextpower2_32(n);
}

static Size
partitions_size(void)
{
	return partitions_wanted() * sizeof(HybUniquePartition);
}

static void
init_partitions(void *memory)
{
	Partitions *new = memory;

	new->tranche = HYB_NEW_TRANCHE("hybrid_unique");
	new->n = partitions_wanted();
	for (uint32 i = 0; i < new->n; i++)
	{
		LWLockInitialize(&new->partitions[i].lock, new->tranche);
		pg_atomic_init_u64(&new->partitions[i].appends, 0);
	}
}

/* hyb_membership_pass */
static bool
pass_partitions(bool wait)
{
	Assert(CritSectionCount == 0);
	for (uint32 i = 0; i < shared->n; i++)
	{
		LWLock	   *lock = &shared->partitions[i].lock;

		if (wait)
			LWLockAcquire(lock, LW_EXCLUSIVE);
		else if (!LWLockConditionalAcquire(lock, LW_EXCLUSIVE))
			return false;
		LWLockRelease(lock);
	}
	return true;
}

void
hyb_membership_lock(void)
{
	LWLockAcquire(&shared->partitions[0].lock, LW_EXCLUSIVE);
}

void
hyb_membership_unlock(void)
{
	LWLockRelease(&shared->partitions[0].lock);
}

static void
name_unique_tranche(void)
{
	HYB_NAME_TRANCHE(shared->tranche, "hybrid_unique");
	hyb_membership_pass = pass_partitions;
}

const HybSharedPart hyb_unique_part = {
	.address = (void **) &shared,.size = offsetof(Partitions, partitions),
	.more = partitions_size,.init = init_partitions,.attached = name_unique_tranche
};

void
hyb_unique_begin(HybIndex *ix, uint64 key_hash, HybUniqueTicket *ticket)
{
	uint64		hash = key_hash;
	uint64		file;

	memset(ticket, 0, sizeof(*ticket));
	file = (uint64) HYB_RELATION_DB(ix->rel) << 32 |
		HYB_RELATION_FILENUMBER(ix->rel);
	hash = hash_combine64(hash, hash_bytes_uint32_extended((uint32) file,
														   file >> 32));
	ticket->hash = Max((uint32) (hash >> 32), 1);
	ticket->key_hash = key_hash;
	if (ix->rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return;
	ticket->ix = ix;
	if (!hyb_shared_init())
		return;
	ticket->partition = &shared->partitions[hash & (shared->n - 1)];
	Assert((shared->n & (shared->n - 1)) == 0 && shared->n >= MIN_PARTITIONS);
	ticket_assert_valid(ticket);
}

/* Does the search still count: no entry with this hash was appended since it began? */
static bool
search_counts(const HybUniqueTicket *ticket)
{
	const HybUniquePartition *partition = ticket->partition;
	uint64		appends = pg_atomic_read_u64(&ticket->partition->appends);

	if (appends - ticket->seen > HYB_UNIQUE_RECENT)
		return false;
	for (uint64 n = ticket->seen; n < appends; n++)
		if (partition->recent[n % HYB_UNIQUE_RECENT] == ticket->hash)
			return false;
	return true;
}

static void
set_turn_tag(const HybUniqueTicket *ticket, LOCKTAG *tag)
{
	SET_LOCKTAG_OBJECT(*tag, MyDatabaseId, RelationRelationId,
					   RelationGetRelid(ticket->ix->rel), TURN_LOCK);
}

static void
lock_turn(HybUniqueTicket *ticket)
{
	LOCKTAG		tag;

	HYB_ASSERT_NO_LWLOCK();
	if (ticket->in_turn)
		return;
	set_turn_tag(ticket, &tag);
	(void) hyb_lock_for_a_moment(&tag, true);
	ticket->in_turn = true;
}

static void
unlock_turn(HybUniqueTicket *ticket)
{
	LOCKTAG		tag;

	if (!ticket->in_turn)
		return;
	set_turn_tag(ticket, &tag);
	hyb_unlock_after_moment(&tag);
	ticket->in_turn = false;
}

/*
 * Wait for the turns of inserters that came before, and make later ones wait
 * for ours.
 *
 * An error leaves the mark, while the lock goes with the transaction: the next
 * one with this hash takes the lock in vain, and removes it.  Another hash's
 * mark in its place lets others of ours by: then this search may be in vain
 * too, and the mark is set again.
 */
static void
take_turn(HybUniqueTicket *ticket)
{
	HybUniquePartition *partition = ticket->partition;

	lock_turn(ticket);
	LWLockAcquire(&partition->lock, LW_EXCLUSIVE);
	partition->turn = ticket->hash;
	LWLockRelease(&partition->lock);
}

void
hyb_unique_note(HybUniqueTicket *ticket)
{
	HYB_ASSERT_NO_LWLOCK();
	if (ticket->partition == NULL)
	{
		if (ticket->ix != NULL)
			lock_turn(ticket);
		return;
	}
	ticket->seen = pg_atomic_read_u64(&ticket->partition->appends);
	/* the number before the index */
	pg_read_barrier();
}

/* ---- membership filters ---- */

/*
 * The membership filters of an index: with a partition locked, those that this
 * process has to add keys to.  *membership is theirs.  A filter that is begun later
 * waits for the partition, and then reads what was appended under it
 * (merge/membership_make.c).
 */
static inline uint32
filters_of(HybIndex *ix, HybMembership **membership)
{
	HybCache   *cache = hyb_cache_get(ix);
	uint32		states;

	if (!hyb_slot_find(cache))
		return 0;
	*membership = &cache->shared->membership;
	states = hyb_membership_states(*membership);
	/* the states before what is mapped, and before bits */
	pg_read_barrier();
	return states;
}

/* Adds a key to the filters of `states`: they are mapped, and a partition is locked. */
static inline void
add_to_these(HybMembership *membership, uint32 states, uint64 key_hash)
{
	for (uint32 number = 1; number <= lengthof(membership->filters); number++)
		if (hyb_membership_uses(states, number))
			hyb_key_filter_add(hyb_membership_filter(membership, number), key_hash);
}

/*
 * Adds the key of an entry that is about to be appended.  Returns false, without
 * having added it, if this process first has to map memory of a filter, with no
 * partition locked.
 */
static bool
add_to_filters(HybIndex *ix, uint64 key_hash)
{
	HybMembership *membership;
	uint32		states = key_hash == 0 ? 0 : filters_of(ix, &membership);

	if (states == 0)
		return true;
	if (!hyb_arena_attached())
		return false;
	add_to_these(membership, states, key_hash);
	return true;
}

/* A key with a NULL is equal to no other, unless the index says so. */
static bool
is_equal_to_none(HybIndex *ix, const uint8 *key, uint32 keylen)
{
	const uint8 *end = key + keylen;
	bool		found = false;

	for (int i = 0; i < ix->desc->nkeys && key != NULL; i++)
	{
		HybValue	val;

		key = hyb_parse_column(&ix->desc->cols[i], key, end, &val);
		found |= key != NULL && val.isnull;
	}
	return found && !ix->rel->rd_index->indnullsnotdistinct;
}

/* The same with a partition locked. */
static bool
is_denied(HybIndex *ix, const uint8 *key, uint32 keylen)
{
	HybMembership *membership;
	uint64		hash;
	uint32		states;

	if (!ix->rel->rd_index->indisunique || shared == NULL || is_equal_to_none(ix, key, keylen))
		return false;
	hash = hyb_key_point_hash(ix->desc, key, keylen);
	states = hash == 0 ? 0 : filters_of(ix, &membership);
	return HYB_MEMBERSHIP_READY(states) != 0 && hyb_arena_attached() &&
		!hyb_key_filter_maybe(hyb_membership_filter(membership, HYB_MEMBERSHIP_READY(states)),
							  hash);
}

#ifdef USE_ASSERT_CHECKING
void
hyb_unique_assert_added(HybIndex *ix, const uint8 *key, uint32 keylen)
{
	/* a filter that was begun since will read the entry */
	Assert(!is_denied(ix, key, keylen));
}
#endif

bool
hyb_unique_is_denied(HybIndex *ix, const uint8 *key, uint32 keylen)
{
	bool		denied;

	if (shared == NULL)
		return false;
	hyb_arena_attach();
	hyb_membership_lock();
	denied = is_denied(ix, key, keylen);
	hyb_membership_unlock();
	return denied;
}

bool
hyb_unique_enter_absent(HybUniqueTicket *ticket)
{
	HybUniquePartition *partition = ticket->partition;
	HybMembership *membership;
	uint32		states;

	HYB_ASSERT_NO_LWLOCK();
	if (partition == NULL || ticket->key_hash == 0 ||
		HYB_MEMBERSHIP_READY(filters_of(ticket->ix, &membership)) == 0)
		return false;
	hyb_arena_attach();
	LWLockAcquire(&partition->lock, LW_EXCLUSIVE);
	states = filters_of(ticket->ix, &membership);
	if (HYB_MEMBERSHIP_READY(states) != 0 && hyb_arena_attached() &&
		partition->turn != ticket->hash)
		ticket->maybe = hyb_key_filter_maybe(hyb_membership_filter(membership,
																   HYB_MEMBERSHIP_READY(states)),
											 ticket->key_hash);
	else
		states = 0;
	if (states != 0 && !ticket->maybe)
	{
		HYB_POINT("membership-denied");
		ticket->seen = pg_atomic_read_u64(&partition->appends);
		/* those that were asked are mapped, whatever is made meanwhile */
		add_to_these(membership, states, ticket->key_hash);
		return true;
	}
	LWLockRelease(&partition->lock);
	return false;
}

void
hyb_unique_keep(HybUniqueTicket *ticket)
{
	ticket_assert_valid(ticket);
	/* none for a key that is equal to no other */
	if (ticket->partition != NULL)
		LWLockRelease(&ticket->partition->lock);
}

/* ---- entering ---- */

bool
hyb_unique_enter(HybUniqueTicket *ticket, bool anyhow)
{
	HybUniquePartition *partition = ticket->partition;
	bool		others_turn;

	HYB_ASSERT_NO_LWLOCK();
	ticket_assert_valid(ticket);
	if (partition == NULL)
		return true;
	for (;;)
	{
		LWLockAcquire(&partition->lock, LW_EXCLUSIVE);
		others_turn = partition->turn == ticket->hash && !ticket->in_turn;
		if (others_turn || !(anyhow || search_counts(ticket)))
			break;
		if (likely(add_to_filters(ticket->ix, ticket->key_hash)))
			return true;
		LWLockRelease(&partition->lock);
		hyb_arena_attach();
	}
	LWLockRelease(&partition->lock);
	if (others_turn || ++ticket->lost >= LOSSES)
		take_turn(ticket);
	return false;
}

void
hyb_unique_appended(const HybUniqueTicket *ticket)
{
	HybUniquePartition *partition = ticket->partition;
	uint64		n;

	if (partition == NULL)
		return;
	n = pg_atomic_read_u64(&partition->appends);
	Assert(LWLockHeldByMeInMode(&partition->lock, LW_EXCLUSIVE));
	partition->recent[n % HYB_UNIQUE_RECENT] = ticket->hash;
	/* the append before the number */
	pg_write_barrier();
	pg_atomic_write_u64(&partition->appends, n + 1);
}

void
hyb_unique_leave(HybUniqueTicket *ticket)
{
	HybUniquePartition *partition = ticket->partition;

	hyb_unique_appended(ticket);
	if (partition != NULL)
	{
		if (ticket->in_turn && partition->turn == ticket->hash)
			partition->turn = 0;
		LWLockRelease(&partition->lock);
	}
	unlock_turn(ticket);
}

/* A set of partitions, one bit for each. */
typedef struct PartitionSet
{
	uint64		words[MAX_PARTITIONS / 64];
} PartitionSet;

static void
partitions_of(const HybUniqueTicket *tickets, int n, PartitionSet *set)
{
	memset(set, 0, sizeof(*set));
	for (int i = 0; i < n; i++)
		if (tickets[i].partition != NULL)
		{
			uint32		number = (uint32) (tickets[i].partition - shared->partitions);

			Assert(number < shared->n);
			set->words[number / 64] |= UINT64CONST(1) << (number % 64);
		}
}

/* In ascending order, so that no two callers wait in a circle. */
static void
lock_partitions(const PartitionSet *set)
{
	for (int i = 0; i < lengthof(set->words); i++)
		for (uint64 word = set->words[i]; word != 0; word &= word - 1)
			LWLockAcquire(&shared->partitions[i * 64 + pg_rightmost_one_pos64(word)].lock,
						  LW_EXCLUSIVE);
}

/* In descending order, as the server looks for the lock that it took last. */
static void
unlock_partitions(const PartitionSet *set)
{
	for (int i = lengthof(set->words) - 1; i >= 0; i--)
		for (uint64 word = set->words[i]; word != 0;)
		{
			int			number = pg_leftmost_one_pos64(word);

			word &= ~(UINT64CONST(1) << number);
			LWLockRelease(&shared->partitions[i * 64 + number].lock);
		}
}

/* Do all searches still count?  Their partitions are locked. */
static bool
all_count(const HybUniqueTicket *tickets, int n)
{
	for (int i = 0; i < n; i++)
	{
		const HybUniqueTicket *ticket = &tickets[i];

		ticket_assert_valid(ticket);
		Assert(!ticket->in_turn);
		if (ticket->partition != NULL &&
			(ticket->partition->turn == ticket->hash || !search_counts(ticket)))
			return false;
	}
	return true;
}

bool
hyb_unique_enter_all(HybIndex *ix, const HybUniqueTicket *tickets, int n)
{
	PartitionSet set;

	HYB_ASSERT_NO_LWLOCK();
	Assert(n <= HYB_UNIQUE_TOGETHER);
	partitions_of(tickets, n, &set);
	lock_partitions(&set);
	while (all_count(tickets, n))
	{
		int			added = 0;

		while (added < n && (tickets[added].partition == NULL ||
							 add_to_filters(ix, tickets[added].key_hash)))
			added++;
		if (likely(added == n))
			return true;
		unlock_partitions(&set);
		hyb_arena_attach();
		lock_partitions(&set);
	}
	unlock_partitions(&set);
	return false;
}

void
hyb_unique_leave_all(const HybUniqueTicket *tickets, int n)
{
	PartitionSet set;

	partitions_of(tickets, n, &set);
	unlock_partitions(&set);
}

void
hyb_unique_yield(HybUniqueTicket *ticket)
{
	HybUniquePartition *partition = ticket->partition;

	HYB_ASSERT_NO_LWLOCK();
	if (ticket->in_turn && partition != NULL)
	{
		LWLockAcquire(&partition->lock, LW_EXCLUSIVE);
		if (partition->turn == ticket->hash)
			partition->turn = 0;
		LWLockRelease(&partition->lock);
	}
	unlock_turn(ticket);
	ticket->lost = 0;
}
