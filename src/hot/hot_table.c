/*
 * hot_table.c
 *		The table of hot copies: its memory, and its buckets.
 *
 * Which segment is the table changes under hyb_hot->lock, and counts up the
 * generation.  A process that has another one mapped notices when it next looks
 * at the generation, and maps that one.  Reading an entry and then finding the
 * generation unchanged means that the entry was read from the table.
 *
 * A bucket is locked by making its sequence odd, for the time that it takes to
 * write an entry.  No error can come between, and the process that holds it
 * waits for nothing.  Readers do not lock; what they have read counts if the
 * sequence was even before and is the same afterwards (a seqlock).
 */
#include "base/compat.h"

#include "hot/hot_table.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "shared/shared.h"
#include "storage/s_lock.h"
#include "utils/timestamp.h"

/* The table needs at least this number of buckets. */
#define LEAST_BUCKETS	64

/* After a failure to get memory for one, do not try again for so long. */
#define RETRY_MS		1000

HybHotControl *hyb_hot = NULL;

int			hyb_hot_memory_kb = HYB_DEFAULT_HOT_KB;
TimestampTz hyb_hot_memory_since = 0;
bool		hyb_hot_memory_changed = true;

/* The segment as this process has it mapped. */
static dsm_segment *mapped = NULL;
static uint64 mapped_generation = 0;

static void
init_hot_control(void *memory)
{
	HybHotControl *control = memory;

	control->tranche = HYB_NEW_TRANCHE("hybrid_hot_copies");
	LWLockInitialize(&control->lock, control->tranche);
	LWLockInitialize(&control->making, control->tranche);
	control->handle = DSM_HANDLE_INVALID;
	pg_atomic_init_u64(&control->generation, 1);
	for (int i = 0; i < HYB_HOT_GATES; i++)
		pg_atomic_init_u64(&control->gates[i], 0);
}

static void
name_hot_tranche(void)
{
	HYB_NAME_TRANCHE(hyb_hot->tranche, "hybrid_hot_copies");
}

const HybSharedPart hyb_hot_part = {
	.address = (void **) &hyb_hot,.size = sizeof(HybHotControl),
	.init = init_hot_control,.attached = name_hot_tranche
};

/* ---- the segment ---- */

static void
unmap(void)
{
	if (mapped != NULL)
		dsm_detach(mapped);
	mapped = NULL;
	mapped_generation = 0;
}

HybHotTable *
hyb_hot_table(uint64 *generation)
{
	Assert(CritSectionCount == 0);
	for (;;)
	{
		dsm_handle	handle;

		*generation = pg_atomic_read_u64(&hyb_hot->generation);
		if (likely(*generation == mapped_generation))
			return mapped != NULL ? dsm_segment_address(mapped) : NULL;

		unmap();
		LWLockAcquire(&hyb_hot->lock, LW_SHARED);
		*generation = pg_atomic_read_u64(&hyb_hot->generation);
		handle = hyb_hot->handle;
		LWLockRelease(&hyb_hot->lock);
		if (handle != DSM_HANDLE_INVALID)
		{
			mapped = dsm_attach(handle);
			if (mapped == NULL)
				continue;		/* it has just gone */
			dsm_pin_mapping(mapped);
		}
		mapped_generation = *generation;
	}
}

/* What is the table now goes, and becomes this, or none.  Locked. */
static void
replace_hot_table(dsm_segment *seg)
{
	Assert(LWLockHeldByMeInMode(&hyb_hot->lock, LW_EXCLUSIVE));
	if (hyb_hot->handle != DSM_HANDLE_INVALID)
		dsm_unpin_segment(hyb_hot->handle);
	hyb_hot->handle = seg != NULL ? dsm_segment_handle(seg) : DSM_HANDLE_INVALID;
	pg_atomic_fetch_add_u64(&hyb_hot->generation, 1);
}

/*
 * As many as the setting says, or the operating system has room for: then a
 * half, a quarter and so on.
 */
static uint32
buckets_wanted(void)
{
	uint64		least = HYB_HOT_HEAD + LEAST_BUCKETS * sizeof(HybHotBucket);
	uint64		bytes = (uint64) hyb_hot_memory_kb * 1024;

	bytes = Min(bytes, hyb_segment_limit());
	while (bytes >= least && !hyb_segment_room(bytes))
		bytes /= 2;
	if (bytes < least)
		bytes = 0;
	if (bytes < (uint64) hyb_hot_memory_kb * 1024)
		ereport(LOG_SERVER_ONLY,
				(errmsg("hot copies of hybrid indexes have " UINT64_FORMAT " kB of shared memory instead of %d kB",
						bytes / 1024, hyb_hot_memory_kb),
				 errhint("Reduce \"%s\".", "hybridindex.hot_memory")));
	return bytes == 0 ? 0 :
		Min((bytes - HYB_HOT_HEAD) / sizeof(HybHotBucket), PG_UINT32_MAX);
}

/* A segment of nbuckets empty buckets; NULL if there is no memory. */
static dsm_segment *
make_segment(uint32 nbuckets)
{
	Size		size = HYB_HOT_HEAD + (Size) nbuckets * sizeof(HybHotBucket);
	dsm_segment *seg = hyb_create_segment(size);
	HybHotTable *table;

	Assert(nbuckets >= LEAST_BUCKETS && LWLockHeldByMe(&hyb_hot->making));
	if (seg == NULL)
		return NULL;
	table = dsm_segment_address(seg);
	/* what comes from the operating system is zero */
	if (min_dynamic_shared_memory > 0)
		memset(table, 0, size);
	table->nbuckets = nbuckets;
	pg_atomic_init_u64(&table->places, 0);
	for (int i = 0; i < HYB_HOT_OWNERS; i++)
		pg_atomic_init_u32(&table->owners[i].number, 0);
	return seg;
}

/*
 * Is the table what this process's setting says, or of a later one?  Processes
 * learn of a changed setting one after the other, and new ones begin with it:
 * the one that has learned last is right.
 */
static bool
is_as_set(void)
{
	bool		as_set;

	LWLockAcquire(&hyb_hot->lock, LW_SHARED);
	as_set = hyb_hot->kb == hyb_hot_memory_kb ||
		hyb_hot->config_time > hyb_hot_memory_since;
	LWLockRelease(&hyb_hot->lock);
	return as_set;
}

/* Have the table be what is set; false if there is no memory for it. */
static bool
make_as_set(void)
{
	uint32		nbuckets = buckets_wanted();
	dsm_segment *seg = NULL;

	if (nbuckets > 0)
	{
		seg = make_segment(nbuckets);
		if (seg == NULL)
			return false;
		dsm_pin_segment(seg);
	}
	LWLockAcquire(&hyb_hot->lock, LW_EXCLUSIVE);
	replace_hot_table(seg);
	hyb_hot->kb = hyb_hot_memory_kb;
	hyb_hot->config_time = hyb_hot_memory_since;
	LWLockRelease(&hyb_hot->lock);
	if (seg != NULL)
		dsm_detach(seg);
	return true;
}

/* One process makes it; the rest go on without it meanwhile. */
void
hyb_hot_table_settle(void)
{
	static TimestampTz retry_at = 0;

	if (retry_at != 0 && GetCurrentTimestamp() < retry_at)
		return;
	retry_at = 0;
	if (!is_as_set())
	{
		if (!LWLockConditionalAcquire(&hyb_hot->making, LW_EXCLUSIVE))
			return;
		if (!is_as_set() && !make_as_set())
			retry_at = GetCurrentTimestamp() + RETRY_MS * INT64CONST(1000);
		LWLockRelease(&hyb_hot->making);
	}
	hyb_hot_memory_changed = retry_at != 0;
}

/* ---- buckets ---- */

static inline int
places_for(uint32 keylen)
{
	return 1 + (keylen + HYB_HOT_PLACE - 1 - sizeof(((HybHotPlace *) NULL)->key)) / HYB_HOT_PLACE;
}

/* The bits of n places from this one on. */
static inline uint8
places_mask(int first, int n)
{
	return ((1 << n) - 1) << first;
}

static void
lock_bucket(HybHotBucket *bucket)
{
	SpinDelayStatus delay;

	init_local_spin_delay(&delay);
	for (;;)
	{
		uint32		sequence = pg_atomic_read_u32(&bucket->sequence);

		if ((sequence & 1) == 0 &&
			pg_atomic_compare_exchange_u32(&bucket->sequence, &sequence,
										   sequence + 1))
			break;
		perform_spin_delay(&delay);
	}
	finish_spin_delay(&delay);
}

#ifdef USE_ASSERT_CHECKING
/* A bucket that this process has locked. */
static void
bucket_assert_valid(const HybHotBucket *bucket)
{
	uint8		taken = 0;

	for (int i = 0; i < HYB_HOT_PLACES; i++)
	{
		int			n = places_for(bucket->places[i].keylen);

		if ((bucket->starts & (1 << i)) == 0)
			continue;
		/* an entry's places are its own, and lie within the bucket */
		Assert(bucket->places[i].owner != 0 && i + n <= HYB_HOT_PLACES);
		Assert((taken & places_mask(i, n)) == 0);
		taken |= places_mask(i, n);
	}
	Assert(bucket->taken == taken);
}
#else
#define bucket_assert_valid(bucket) ((void) (bucket))
#endif

static void
unlock_bucket(HybHotBucket *bucket)
{
	Assert((pg_atomic_read_u32(&bucket->sequence) & 1) != 0);
	bucket_assert_valid(bucket);
	pg_atomic_fetch_add_u32(&bucket->sequence, 1);
}

/*
 * The place where the entry of a key starts, or -1.  Without the lock it may be
 * any, or none; it reads nothing but the bucket.
 */
static inline int
find_hot_place(const HybHotBucket *bucket, uint32 owner, const HybHotKey *key,
			   uint16 tag)
{
	int			last = HYB_HOT_PLACES - places_for(key->len);

	for (int i = 0; i <= last; i++)
	{
		const HybHotPlace *place = &bucket->places[i];

		if (bucket->tags[i] == tag && (bucket->starts & (1 << i)) != 0 &&
			place->owner == owner && place->keylen == key->len &&
			memcmp(place->key, key->bytes, key->len) == 0)
			return i;
	}
	return -1;
}

bool
hyb_hot_read(HybHotTable *table, uint32 owner, const HybHotKey *key,
			 ItemPointer tid, bool *room)
{
	uint16		tag;
	HybHotBucket *bucket = hyb_hot_place_of(table, owner, key->hash, &tag);
	uint32		sequence = pg_atomic_read_u32(&bucket->sequence);
	int			i;

	*room = false;
	if ((sequence & 1) != 0)
		return false;
	pg_read_barrier();
	i = find_hot_place(bucket, owner, key, tag);
	if (i < 0)
	{
		*room = HYB_HOT_PLACES - pg_number_of_ones[bucket->taken] >= places_for(key->len);
		return false;
	}
	*tid = bucket->places[i].tid;
	pg_read_barrier();
	if (pg_atomic_read_u32(&bucket->sequence) != sequence)
		return false;
	if (bucket->recent[i] == 0)
		bucket->recent[i] = 1;
	return true;
}

/* The bucket is locked. */
static void
remove_at(HybHotTable *table, HybHotBucket *bucket, int i)
{
	const HybHotPlace *place = &bucket->places[i];
	HybHotOwner *owner = &table->owners[place->owner_index];
	int			n = places_for(place->keylen);

	Assert((pg_atomic_read_u32(&bucket->sequence) & 1) != 0);
	Assert((bucket->starts & (1 << i)) != 0);
	Assert(pg_atomic_read_u64(&table->places) >= n);
	if (pg_atomic_read_u32(&owner->number) == place->owner)
		pg_atomic_fetch_sub_u32(&owner->entries, 1);

	bucket->starts &= ~(1 << i);
	bucket->taken &= ~places_mask(i, n);
	bucket->recent[i] = 0;
	pg_atomic_fetch_sub_u64(&table->places, n);
}

/* The entry that lies in a place that is taken. */
static int
entry_at(const HybHotBucket *bucket, int place)
{
	while ((bucket->starts & (1 << place)) == 0)
		place--;
	Assert(place >= 0);
	return place;
}

/*
 * Places side by side for a new entry: free ones, else CLOCK's hand drives out
 * entries until there are some.
 */
static int
evict_hot_entries(HybHotTable *table, HybHotBucket *bucket, int n)
{
	Assert(n >= 1 && n <= HYB_HOT_PLACES);
	for (int i = 0; i + n <= HYB_HOT_PLACES; i++)
		if ((bucket->taken & places_mask(i, n)) == 0)
			return i;
	for (;;)
	{
		int			first = bucket->hand + n <= HYB_HOT_PLACES ? bucket->hand : 0;
		bool		spared = false;

		for (int i = first; i < first + n; i++)
		{
			int			entry;

			if ((bucket->taken & (1 << i)) == 0)
				continue;
			entry = entry_at(bucket, i);
			spared |= bucket->recent[entry] != 0;
			bucket->recent[entry] = 0;
		}
		bucket->hand = first + 1;
		if (spared)
			continue;
		for (int i = first; i < first + n; i++)
			if ((bucket->taken & (1 << i)) != 0)
				remove_at(table, bucket, entry_at(bucket, i));
		/* what comes in has a whole round to be asked for again */
		bucket->hand = first + n;
		return first;
	}
}

void
hyb_hot_put(HybHotTable *table, const HybHotPut *put, const HybHotKey *key,
			const ItemPointerData *tid)
{
	uint16		tag;
	HybHotBucket *bucket = hyb_hot_place_of(table, put->number, key->hash, &tag);
	int			n = places_for(key->len);
	HybHotPlace *place;
	int			i;

	Assert(key->len <= HYB_HOT_MAX_KEY);
	lock_bucket(bucket);
	/* the lock before the gate */
	pg_memory_barrier();
	if (pg_atomic_read_u64(put->gate) == put->expected)
	{
		i = find_hot_place(bucket, put->number, key, tag);
		if (i < 0)
		{
			i = evict_hot_entries(table, bucket, n);
			Assert((bucket->taken & places_mask(i, n)) == 0);
			place = &bucket->places[i];
			place->owner = put->number;
			place->owner_index = put->owner - table->owners;
			place->keylen = key->len;
			memcpy(place->key, key->bytes, key->len);
			bucket->tags[i] = tag;
			bucket->recent[i] = 0;
			bucket->starts |= 1 << i;
			bucket->taken |= places_mask(i, n);
			pg_atomic_fetch_add_u32(&put->owner->entries, 1);
			pg_atomic_fetch_add_u64(&table->places, n);
		}
		bucket->places[i].tid = *tid;
	}
	unlock_bucket(bucket);
}

/*
 * The key is not published any more, but by a process that has the bucket
 * locked.
 */
void
hyb_hot_remove(HybHotTable *table, uint32 owner, const HybHotKey *key,
			   const ItemPointerData *tid)
{
	uint16		tag;
	HybHotBucket *bucket = hyb_hot_place_of(table, owner, key->hash, &tag);
	uint32		sequence = pg_atomic_read_u32(&bucket->sequence);
	int			i;

	if ((sequence & 1) == 0)
	{
		pg_read_barrier();
		i = find_hot_place(bucket, owner, key, tag);
		pg_read_barrier();
		if (i < 0 && pg_atomic_read_u32(&bucket->sequence) == sequence)
			return;
	}
	lock_bucket(bucket);
	i = find_hot_place(bucket, owner, key, tag);
	if (i >= 0 &&
		(tid == NULL ||
		 ItemPointerEquals(&bucket->places[i].tid,
						   unconstify(ItemPointerData *, tid))))
		remove_at(table, bucket, i);
	unlock_bucket(bucket);
}

void
hyb_hot_copy(HybHotBucket *bucket, HybHotBucket *copy)
{
	lock_bucket(bucket);
	memcpy(copy, bucket, sizeof(*copy));
	unlock_bucket(bucket);
}
