/*
 * directory.c
 *		The shared directory of slots.
 *
 * Each index in use has a slot, as long as slots fit a share of
 * hybridindex.dynamic_memory.  Beyond that a new slot takes the place of one
 * that was not used lately.  Slots of indexes with an empty log go first:
 * making one again costs reading a metapage.  Evicting another slot loses a
 * tree.  So the eviction is reported, and a worker merges the index.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "shared/directory.h"
#include "shared/shared.h"
#include "shared/shared_arena.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "store/handle.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* Blocks after the first take this part of the memory for trees, at most. */
#define HYB_SLOTS_SHARE		4

/* Slots among which one to evict is chosen, and how often that is tried. */
#define HYB_EVICT_SAMPLE	64
#define HYB_EVICT_TRIES		4

/* A membership filter to which nothing was added for so long goes. */
#define HYB_IDLE_FILTER_MS	600000

/* Slots count as scarce for so long after one went. */
#define HYB_SCARCE_MS		60000

/* Slots of the first block; each has twice as many as the one before it. */
#define HYB_FIRST_SLOTS		32

HybDirectory *hyb_directory = NULL;

/* Blocks as this process has them mapped. */
static HybSharedSlot *blocks[HYB_SLOT_BLOCKS];
static uint32 nattached = 0;

static bool evict_idle_slots(uint64 bytes, int idle_ms);

static inline uint32
block_slots(int block)
{
	return (uint32) HYB_FIRST_SLOTS << block;
}

/* Slots of all blocks below this one: its first slot's number. */
static inline uint32
slots_below(int block)
{
	return block_slots(block) - HYB_FIRST_SLOTS;
}

static inline HybSharedSlot *
slot_at(uint32 number)
{
	int			block = pg_leftmost_one_pos32(number / HYB_FIRST_SLOTS + 1);

	Assert(block < nattached && number - slots_below(block) < block_slots(block));
	Assert(blocks[block][number - slots_below(block)].number == number);
	return &blocks[block][number - slots_below(block)];
}

/* Numbers of the slots that this process can reach. */
static inline uint32
slots_attached(void)
{
	return slots_below(nattached);
}

static Size
block_size(int block)
{
	return block_slots(block) * sizeof(HybSharedSlot);
}

/* Make the slots of a new block; its memory is zero. */
static void
init_block(HybDirectory *directory, int block, HybSharedSlot *slots)
{
	uint32		n = block_slots(block);

	for (uint32 i = 0; i < n; i++)
	{
		HybSharedSlot *slot = &slots[i];

		LWLockInitialize(&slot->lock, directory->tree_tranche);
		SpinLockInit(&slot->mutex);
		slot->number = slots_below(block) + i;
		slot->next = i + 1 < n ? slot->number + 1 : -1;
		pg_atomic_init_u64(&slot->serial, 1);
		pg_atomic_init_u64(&slot->appended_gen, 0);
		for (int lane = 0; lane < HYB_LANES; lane++)
			pg_atomic_init_u64(&slot->appended[lane], 0);
		hyb_unentered_init(&slot->unentered);
	}
}

#define FIRST_BLOCK_OFFSET	CACHELINEALIGN(sizeof(HybDirectory))

static Size
first_block_size(void)
{
	return block_size(0);
}

static void
init_directory(void *memory)
{
	HybDirectory *directory = memory;

	directory->lock_tranche = HYB_NEW_TRANCHE("hybrid_control");
	directory->tree_tranche = HYB_NEW_TRANCHE("hybrid_tree");
	LWLockInitialize(&directory->lock.lock, directory->lock_tranche);
	pg_atomic_init_u64(&directory->creations, 1);
	pg_atomic_init_u32(&directory->nblocks, 1);
	pg_atomic_init_u64(&directory->evicted_at, 0);
	pg_atomic_init_u64(&directory->retirements, 0);
	init_block(directory, 0,
			   (HybSharedSlot *) ((char *) memory + FIRST_BLOCK_OFFSET));
	directory->free_slots = 0;
	for (int i = 0; i < HYB_SLOT_BUCKETS; i++)
		directory->buckets[i] = -1;
	for (int i = 0; i < HYB_CHANGE_COUNTERS; i++)
		pg_atomic_init_u64(&directory->changes[i], 0);
}

static void
directory_attached(void)
{
	blocks[0] = (HybSharedSlot *) ((char *) hyb_directory + FIRST_BLOCK_OFFSET);
	nattached = Max(nattached, 1);
	hyb_arena_evict = evict_idle_slots;
	Assert(pg_atomic_read_u32(&hyb_directory->nblocks) >= 1 &&
		   pg_atomic_read_u32(&hyb_directory->nblocks) <= HYB_SLOT_BLOCKS);
	HYB_NAME_TRANCHE(hyb_directory->lock_tranche, "hybrid_control");
	HYB_NAME_TRANCHE(hyb_directory->tree_tranche, "hybrid_tree");
}

const HybSharedPart hyb_directory_part = {
	.address = (void **) &hyb_directory,.size = FIRST_BLOCK_OFFSET,
	.more = first_block_size,.init = init_directory,.attached = directory_attached
};

#ifdef USE_ASSERT_CHECKING
void
hyb_shared_slot_assert_valid(const HybSharedSlot *slot)
{
	Assert(slot->used && slot->number >= 0);
	Assert(slot->next >= -1 && slot->next != slot->number);
	Assert(slot->key.incarnation != 0 && OidIsValid(slot->index.relid) && OidIsValid(slot->index.owner));
	Assert(slot->key.in_recovery <= 1);
	Assert(slot->tree_bytes % HYB_CHUNK_SIZE == 0);
}
#endif

/* Map the blocks that other processes have made, for the life of this one. */
static void
attach_blocks(void)
{
	uint32		n = pg_atomic_read_u32(&hyb_directory->nblocks);

	pg_read_barrier();
	for (; nattached < n; nattached++)
	{
		dsm_segment *seg = hyb_attach_segment(hyb_directory->blocks[nattached]);

		blocks[nattached] = dsm_segment_address(seg);
	}
}

void
hyb_directory_lock(LWLockMode mode, bool trees)
{
	/* mapping may raise an error, and an LWLock cannot be held twice */
	Assert(CritSectionCount == 0);
	Assert(!LWLockHeldByMe(&hyb_directory->lock.lock));
	for (;;)
	{
		attach_blocks();
		if (trees)
			hyb_arena_attach();
		LWLockAcquire(&hyb_directory->lock.lock, mode);
		if (nattached == pg_atomic_read_u32(&hyb_directory->nblocks) &&
			(!trees || hyb_arena_attached()))
			break;
		LWLockRelease(&hyb_directory->lock.lock);
	}
}

void
hyb_directory_unlock(void)
{
	LWLockRelease(&hyb_directory->lock.lock);
}

pg_atomic_uint64 *
hyb_directory_changes(const HybSlotKey *key)
{
	return &hyb_directory->changes[hyb_slot_file_hash(key) % HYB_CHANGE_COUNTERS];
}

/* All slots of a file are in one bucket. */
static inline int32 *
bucket_of(const HybSlotKey *key)
{
	return &hyb_directory->buckets[hyb_slot_file_hash(key) % HYB_SLOT_BUCKETS];
}

HybSharedSlot *
hyb_directory_lookup(const HybSlotKey *key)
{
	HybSharedSlot *slot;

	Assert(LWLockHeldByMe(&hyb_directory->lock.lock));
	for (int32 i = *bucket_of(key); i >= 0; i = slot->next)
	{
		slot = slot_at(i);
		hyb_shared_slot_assert_valid(slot);
		if (memcmp(&slot->key, key, sizeof(*key)) == 0)
			return slot;
	}
	return NULL;
}

void
hyb_directory_grow(void)
{
	uint32		n = pg_atomic_read_u32(&hyb_directory->nblocks);
	Size		size;
	Size		total = 0;
	dsm_segment *seg;
	HybSharedSlot *slots;

	if (*(volatile int32 *) &hyb_directory->free_slots >= 0 || n >= HYB_SLOT_BLOCKS)
		return;
	for (uint32 block = 1; block <= n; block++)
		total += block_size(block);
	if (total > (Size) hyb_dynamic_memory_kb * 1024 / HYB_SLOTS_SHARE)
		return;

	size = block_size(n);
	seg = hyb_create_segment(size);
	if (seg == NULL)
		return;
	slots = dsm_segment_address(seg);
	memset(slots, 0, size);
	init_block(hyb_directory, n, slots);

	PG_TRY();
	{
		hyb_directory_lock(LW_EXCLUSIVE, false);
	}
	PG_CATCH();
	{
		dsm_detach(seg);		/* no resource owner knows of it */
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (pg_atomic_read_u32(&hyb_directory->nblocks) != n)
	{
		hyb_directory_unlock();
		dsm_detach(seg);		/* another backend was faster */
		return;
	}
	dsm_pin_segment(seg);
	dsm_pin_mapping(seg);
	blocks[n] = slots;
	nattached = n + 1;
	slots[block_slots(n) - 1].next = hyb_directory->free_slots;
	hyb_directory->free_slots = slots_below(n);
	hyb_directory->blocks[n] = dsm_segment_handle(seg);
	/* the table entry is complete before it can be seen */
	pg_write_barrier();
	pg_atomic_write_u32(&hyb_directory->nblocks, n + 1);
	hyb_directory_unlock();
}

/* ---- membership filters ---- */

/*
 * Have only the filters of `keep` answer or be made.  Inserters may be using the
 * others, so these are not freed here.  Slot and directory are locked exclusively,
 * and the arena was attached after the slot was locked: segments made since then
 * have no filter of this slot.
 */
static void
retire_filters(HybSharedSlot *slot, uint32 keep)
{
	HybMembership *membership = &slot->membership;
	uint32		states = hyb_membership_states(membership);

	Assert(LWLockHeldByMeInMode(&slot->lock, LW_EXCLUSIVE));
	Assert(LWLockHeldByMeInMode(&hyb_directory->lock.lock, LW_EXCLUSIVE));
	hyb_membership_assert_valid(membership);
	pg_atomic_write_u32(&membership->states, keep);
	for (uint32 number = 1; number <= lengthof(membership->filters); number++)
	{
		bool		had = hyb_membership_uses(states, number);
		bool		has = hyb_membership_uses(keep, number);

		Assert(had || !has);
		if (!had || has)
			continue;
		hyb_directory->retired =
			hyb_key_filter_chain(hyb_membership_filter(membership, number),
								 hyb_directory->retired);
		(void) pg_atomic_fetch_add_u64(&hyb_directory->retirements, 1);
	}
}

void
hyb_slot_retire_filters(HybSharedSlot *slot, uint32 keep)
{
	LWLockAcquire(&hyb_directory->lock.lock, LW_EXCLUSIVE);
	retire_filters(slot, keep);
	LWLockRelease(&hyb_directory->lock.lock);
}

void
hyb_filters_free_retired(bool wait)
{
	uint64		retirements = pg_atomic_read_u64(&hyb_directory->retirements);
	uint32		chain = 0;
	uint32		had = hyb_shared_arena.npocket;

	if (*(volatile uint32 *) &hyb_directory->retired == 0 || !hyb_membership_pass(wait))
		return;
	LWLockAcquire(&hyb_directory->lock.lock, LW_EXCLUSIVE);
	/* if one was retired since, all wait for the next time */
	if (pg_atomic_read_u64(&hyb_directory->retirements) == retirements && hyb_arena_attached())
	{
		chain = hyb_directory->retired;
		hyb_directory->retired = 0;
	}
	LWLockRelease(&hyb_directory->lock.lock);
	if (chain == 0)
		return;
	hyb_key_filter_free(chain);
	hyb_arena_give_back(hyb_shared_arena.npocket - had);
	hyb_arena_trim(&hyb_shared_arena);
}

/* ---- slots change hands: hyb_directory->lock is held exclusively ---- */

/*
 * Free a slot, which is locked exclusively.  The arena is attached.
 */
static void
release_slot(HybSharedSlot *slot)
{
	HybStage   *stage = &slot->stage;
	int32	   *link = bucket_of(&slot->key);

	Assert(LWLockHeldByMeInMode(&hyb_directory->lock.lock, LW_EXCLUSIVE));
	Assert(LWLockHeldByMeInMode(&slot->lock, LW_EXCLUSIVE) && hyb_arena_attached());
	hyb_shared_slot_assert_valid(slot);
	hyb_stage_clear(stage, &hyb_shared_arena);
	memset(stage, 0, sizeof(*stage));
	retire_filters(slot, 0);
	while (*link != slot->number)
	{
		/* it is in its bucket's chain */
		Assert(*link >= 0);
		link = &slot_at(*link)->next;
	}
	*link = slot->next;

	SpinLockAcquire(&slot->mutex);
	slot->used = false;
	slot->tree_bytes = 0;
	memset(&slot->key, 0, sizeof(slot->key));
	pg_atomic_write_u64(&slot->serial, pg_atomic_read_u64(&slot->serial) + 1);
	SpinLockRelease(&slot->mutex);
	slot->next = hyb_directory->free_slots;
	hyb_directory->free_slots = slot->number;
}

/*
 * The same, unless the slot is locked: slot locks come before the directory's.
 * False also if its trees may lie in a segment that was made since the
 * directory was locked.
 */
static bool
try_release(HybSharedSlot *slot)
{
	bool		attached;

	if (!LWLockConditionalAcquire(&slot->lock, LW_EXCLUSIVE))
		return false;
	attached = hyb_arena_attached();
	if (attached)
		release_slot(slot);
	LWLockRelease(&slot->lock);
	return attached;
}

/* Is something known to be in the log? */
static inline bool
has_entries(HybSharedSlot *slot)
{
	if (slot->tree_bytes > 0 || hyb_membership_states(&slot->membership) != 0)
		return true;
	for (int lane = 0; lane < HYB_LANES; lane++)
		if (pg_atomic_read_u64(&slot->appended[lane]) != 0)
			return true;
	return false;
}

/*
 * Of a sample of slots, free the one that is missed least.  *evicted is set if
 * its index has something in its log and is one of this database: a process of
 * another one may see it dropped at any time.
 */
static bool
evict_slot(HybSlotIndex *evicted)
{
	uint32		n = slots_attached();

	for (int try = 0; try < HYB_EVICT_TRIES; try++)
	{
		HybSharedSlot *worst = NULL;
		bool		worst_has_entries = false;

		for (int i = 0; i < HYB_EVICT_SAMPLE; i++)
		{
			HybSharedSlot *slot = slot_at(hyb_directory->hand++ % n);
			bool		entries = has_entries(slot);

			if (slot->used &&
				(worst == NULL || entries < worst_has_entries ||
				 (entries == worst_has_entries &&
				  slot->last_use < worst->last_use)))
			{
				worst = slot;
				worst_has_entries = entries;
			}
		}
		if (worst != NULL)
		{
			HybSlotIndex index = worst->index;
			bool		is_ours = worst->key.db == MyDatabaseId;

			if (!try_release(worst))
				continue;
			if (worst_has_entries)
			{
				if (is_ours)
					*evicted = index;
				hyb_slots_set_scarce();
			}
			return true;
		}
	}
	return false;
}

/* Take a slot from the free list and lock it; NULL if none can be had. */
static HybSharedSlot *
take_free_slot(void)
{
	HybSharedSlot *slot;

	for (int32 *link = &hyb_directory->free_slots; *link >= 0; link = &slot->next)
	{
		slot = slot_at(*link);

		/* a backend that knows its old index may still have it locked */
		if (LWLockConditionalAcquire(&slot->lock, LW_EXCLUSIVE))
		{
			*link = slot->next;
			return slot;
		}
	}
	return NULL;
}

HybSharedSlot *
hyb_directory_add(const HybSlotKey *key, const HybSlotIndex *index,
				  HybSlotIndex *evicted)
{
	HybSharedSlot *slot = take_free_slot();
	int32	   *bucket = bucket_of(key);

	Assert(LWLockHeldByMeInMode(&hyb_directory->lock.lock, LW_EXCLUSIVE));
	if (slot == NULL && evict_slot(evicted))
		slot = take_free_slot();
	if (slot == NULL)
		return NULL;

	Assert(!slot->used && slot->tree_bytes == 0);
	Assert(LWLockHeldByMeInMode(&slot->lock, LW_EXCLUSIVE));
	Assert(hyb_stage_bytes(&slot->stage) == 0);
	SpinLockAcquire(&slot->mutex);
	slot->used = true;
	slot->key = *key;
	slot->index = *index;
	slot->last_whole = 0;
	slot->membership.retry = 0;
	slot->next = *bucket;
	pg_atomic_write_u64(&slot->serial, pg_atomic_read_u64(&slot->serial) + 1);
	pg_atomic_write_u64(&slot->appended_gen, 0);
	for (int lane = 0; lane < HYB_LANES; lane++)
		pg_atomic_write_u64(&slot->appended[lane], 0);
	SpinLockRelease(&slot->mutex);
	*bucket = slot->number;
	hyb_shared_slot_assert_valid(slot);
	LWLockRelease(&slot->lock);
	return slot;
}

void
hyb_slots_forget(Relation rel)
{
	HybSlotKey	key = {0};
	int32		next;

	if (!hyb_shared_init() ||
		rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return;
	key.space = HYB_RELATION_SPACE(rel);
	key.db = HYB_RELATION_DB(rel);
	key.file = HYB_RELATION_FILENUMBER(rel);

	hyb_directory_lock(LW_EXCLUSIVE, true);
	for (int32 i = *bucket_of(&key); i >= 0; i = next)
	{
		HybSharedSlot *slot = slot_at(i);

		next = slot->next;
		if (slot->key.space == key.space && slot->key.db == key.db &&
			slot->key.file == key.file)
			(void) try_release(slot);
	}
	hyb_directory_unlock();
	hyb_arena_trim(&hyb_shared_arena);
}

void
hyb_slots_set_scarce(void)
{
	pg_atomic_write_u64(&hyb_directory->evicted_at, GetCurrentTimestamp());
}

bool
hyb_slots_scarce(void)
{
	return hyb_directory != NULL &&
		GetCurrentTimestamp() - HYB_SCARCE_MS * INT64CONST(1000) <
		(TimestampTz) pg_atomic_read_u64(&hyb_directory->evicted_at);
}

/* ---- trees ---- */

void
hyb_slot_clear_trees(HybSharedSlot *slot)
{
	Assert(LWLockHeldByMeInMode(&slot->lock, LW_EXCLUSIVE) && hyb_arena_attached());
	hyb_stage_clear(&slot->stage, &hyb_shared_arena);
	slot->tree_bytes = 0;
}

/* ---- trees of all slots; no lock is held ---- */

/* Free the trees of a slot, unless it is in use; returns their bytes. */
static uint64
evict_trees(HybSharedSlot *slot)
{
	uint64		freed = 0;

	if (!LWLockConditionalAcquire(&slot->lock, LW_EXCLUSIVE))
		return 0;
	if (hyb_arena_attached())
	{
		HybStage   *stage = &slot->stage;

		Assert(slot->tree_bytes == 0 || slot->used);
		hyb_stage_assert_valid(stage);
		freed = slot->tree_bytes;
		if (stage->trees[HYB_ACTIVE].nentries > 0)
			hyb_stage_note_loss(stage, stage->trees[HYB_ACTIVE].generation);
		hyb_slot_clear_trees(slot);
	}
	LWLockRelease(&slot->lock);
	hyb_arena_trim(&hyb_shared_arena);
	return freed;
}

/*
 * Take the filters from a slot if no key was added for idle_ms.  An index that was
 * dropped has no inserts.  Returns whether it has none now.
 */
static bool
evict_filters(HybSharedSlot *slot, TimestampTz now, int idle_ms)
{
	HybMembership *membership = &slot->membership;
	uint64		keys = 0;
	bool		evicted = false;

	if (!LWLockConditionalAcquire(&slot->lock, LW_EXCLUSIVE))
		return false;
	for (int i = 0; i < lengthof(membership->filters); i++)
		keys += pg_atomic_read_u64(&membership->filters[i].keys);
	if (keys != membership->idle_keys)
	{
		membership->idle_keys = keys;
		membership->idle_since = now;
	}
	if (now >= membership->idle_since + idle_ms * INT64CONST(1000) && hyb_arena_attached())
	{
		hyb_slot_retire_filters(slot, 0);
		evicted = true;
	}
	LWLockRelease(&slot->lock);
	return evicted;
}

void
hyb_filters_evict(int idle_ms)
{
	uint32		n = hyb_arena_filters() > 0 ? slots_attached() : 0;
	bool		exceed = n > 0 && hyb_arena_filters_exceed();
	TimestampTz now = GetCurrentTimestamp();

	for (uint32 i = 0; i < n; i++)
		if (hyb_membership_states(&slot_at(i)->membership) != 0)
			exceed &= !evict_filters(slot_at(i), now, exceed ? 0 : idle_ms);
	hyb_filters_free_retired(false);
}

/* What hyb_arena_evict calls. */
static bool
evict_idle_slots(uint64 bytes, int idle_ms)
{
	TimestampTz before = GetCurrentTimestamp() - idle_ms * INT64CONST(1000);
	uint32		n = slots_attached();
	uint32		start = hyb_directory->hand;
	uint64		freed = 0;

	hyb_filters_evict(HYB_IDLE_FILTER_MS);
	/* the oldest of a sample first, and samples in turn */
	for (uint32 first = 0; first < n && freed < bytes; first += HYB_EVICT_SAMPLE)
	{
		uint32		end = Min(n, first + HYB_EVICT_SAMPLE);
		bool		tried[HYB_EVICT_SAMPLE] = {false};

		while (freed < bytes)
		{
			HybSharedSlot *oldest = NULL;
			uint32		number = 0;

			for (uint32 i = first; i < end; i++)
			{
				HybSharedSlot *slot = slot_at((start + i) % n);

				if (!tried[i - first] && slot->tree_bytes > 0 &&
					slot->last_use < before &&
					(oldest == NULL || slot->last_use < oldest->last_use))
				{
					oldest = slot;
					number = i;
				}
			}
			if (oldest == NULL)
				break;
			tried[number - first] = true;
			freed += evict_trees(oldest);
		}
	}
	return freed >= bytes;
}

uint64
hyb_slots_evictable(void)
{
	TimestampTz before = GetCurrentTimestamp() - HYB_UNUSED_MS * INT64CONST(1000);
	uint32		n = slots_attached();
	uint64		bytes = 0;

	for (uint32 i = 0; i < n; i++)
		if (slot_at(i)->last_use < before)
			bytes += slot_at(i)->tree_bytes;
	return bytes;
}

void
hyb_memory_stats(HybMemoryStats *stats)
{
	uint32		n;

	memset(stats, 0, sizeof(*stats));
	stats->budget = hyb_arena_budget();
	if (!hyb_shared_init())
		return;
	stats->reserved = hyb_arena_reserved(&stats->segments);
	stats->used = hyb_arena_used();
	stats->private_trees = hyb_arena_all_private();
	stats->control = hyb_shared_size();
	attach_blocks();
	n = slots_attached();
	for (uint32 i = 0; i < n; i++)
	{
		if (!slot_at(i)->used)
			continue;
		stats->trees += slot_at(i)->tree_bytes;
		stats->slots++;
	}
	for (uint32 block = 1; block < nattached; block++)
		stats->slot_bytes += block_size(block);
}

uint64
hyb_slots_largest(void)
{
	uint32		n = slots_attached();
	uint64		largest = 0;

	for (uint32 i = 0; i < n; i++)
		largest = Max(largest, slot_at(i)->tree_bytes);
	return largest;
}

/* ---- lives of databases ---- */

/*
 * What shared memory says of an index is true only of the files that it was
 * said of.  ALTER DATABASE SET TABLESPACE there and back replaces all files of
 * a database, under the same names.  So does DROP DATABASE followed by CREATE
 * DATABASE with the same OID.  Pages cannot tell, since a copied database has
 * the same incarnations, stamps and generation numbers.  So each database has
 * a life, which is part of the key of its slots: slots of an earlier life are
 * never found again.
 *
 * A life ends when a process enters the database, no other process is in it,
 * and its row in pg_database has another xmin than the one seen last.  No
 * replacement of files goes unnoticed:
 *
 *		- Files are replaced only while no process is connected to the
 *		  database, on a standby too, where replay terminates those that are.
 *		  So while nprocesses is above zero they are what they were.  (Replay
 *		  of a move lets processes in at the new place before it terminates
 *		  those at the old one; the place, that is the database's tablespace,
 *		  tells them apart.)
 *
 * - Replacing them changes the row, or makes another, in a transaction that
 * ends before a process can connect again.  Transaction numbers do not repeat,
 * and freezing keeps them.  The row is read by processes that are connected,
 * so it is at least as new as the files.
 *
 * Other changes of the row (renaming the database, say) end a life for
 * nothing, at the price of reading the logs again.  All processes that are in
 * the database at a time are in the same life.
 *
 * A process leaves in a before_shmem_exit callback.  The command that replaces
 * files waits until the process is gone from the array of processes, which
 * comes later.  A process that is killed takes all of shared memory with it.
 *
 * There are as many entries as there can be processes.  An entry without a
 * process is used again if none is free.
 */

/*
 * A database whose indexes are in use, or were.  Protected by the directory's
 * lock.
 */
typedef struct Database
{
	Oid			db;				/* InvalidOid: free */
	Oid			space;			/* its tablespace */
	TransactionId xmin;			/* of its row in pg_database when a process
								 * entered last */
	uint32		nprocesses;		/* connected to it that know its slots */
	uint64		life;			/* never repeats */
	bool		used;			/* hyb_database_first_use was called in it */
} Database;

typedef struct DatabaseTable
{
	uint64		lives;			/* given out so far */
	Database	entries[FLEXIBLE_ARRAY_MEMBER]; /* MaxBackends */
} DatabaseTable;

static DatabaseTable *databases = NULL;
static Database *my_database = NULL;
static uint64 my_life = 0;

static Size
entries_size(void)
{
	return mul_size(MaxBackends, sizeof(Database));
}

const HybSharedPart hyb_database_part = {
	.address = (void **) &databases,.size = sizeof(DatabaseTable),.more = entries_size
};

/* before_shmem_exit callback: no index is used after this. */
static void
leave_database(int code, Datum arg)
{
	if (my_database == NULL)
		return;
	LWLockAcquire(&hyb_directory->lock.lock, LW_EXCLUSIVE);
	Assert(my_database->db == MyDatabaseId && my_database->nprocesses > 0);
	my_database->nprocesses--;
	my_database = NULL;
	LWLockRelease(&hyb_directory->lock.lock);
}

/*
 * The entry of this process's database, or else one to use for it: a free one,
 * or one without a process.  The directory is locked exclusively.
 */
static Database *
find_entry(void)
{
	Database   *spare = NULL;

	Assert(LWLockHeldByMeInMode(&hyb_directory->lock.lock, LW_EXCLUSIVE));
	for (int i = 0; i < MaxBackends; i++)
	{
		Database   *database = &databases->entries[i];

		if (database->db == MyDatabaseId &&
			database->space == MyDatabaseTableSpace)
			return database;
		if (database->nprocesses == 0 &&
			(spare == NULL || OidIsValid(spare->db)))
			spare = database;
	}
	return spare;
}

/* Release the slots of a database's other lives, where nothing else holds them. */
static void
end_lives(Oid db, uint64 except)
{
	Assert(LWLockHeldByMeInMode(&hyb_directory->lock.lock, LW_EXCLUSIVE));
	for (uint32 i = 0; i < slots_attached(); i++)
	{
		HybSharedSlot *slot = slot_at(i);

		if (slot->used && slot->key.db == db && slot->key.life != except)
			(void) try_release(slot);
	}
}

static void
enter_database(void)
{
	static bool registered = false;
	Database   *database;

	Assert(OidIsValid(MyDatabaseId));
	Assert(TransactionIdIsValid(hyb_database_xmin));
	if (!registered)
	{
		before_shmem_exit(leave_database, (Datum) 0);
		registered = true;
	}
	hyb_directory_lock(LW_EXCLUSIVE, true);
	database = find_entry();
	if (database == NULL)
		elog(ERROR, "more processes use hybridindex than there can be");
	if (database->nprocesses == 0 &&
		(database->db != MyDatabaseId ||
		 database->space != MyDatabaseTableSpace ||
		 database->xmin != hyb_database_xmin))
	{
		database->db = MyDatabaseId;
		database->space = MyDatabaseTableSpace;
		database->life = ++databases->lives;
		database->used = false;
		end_lives(MyDatabaseId, database->life);
	}
	Assert(my_database == NULL && database->nprocesses < MaxBackends);
	Assert(database->db == MyDatabaseId && database->life > 0 && database->life <= databases->lives);
	database->xmin = hyb_database_xmin;
	database->nprocesses++;
	my_database = database;
	my_life = database->life;
	hyb_directory_unlock();
	hyb_arena_trim(&hyb_shared_arena);
}

uint64
hyb_database_life(void)
{
	if (unlikely(my_life == 0) && hyb_shared_init())
		enter_database();
	return my_life;
}

bool
hyb_database_first_use(void)
{
	bool		first;

	if (hyb_database_life() == 0)
		return false;
	LWLockAcquire(&hyb_directory->lock.lock, LW_EXCLUSIVE);
	Assert(my_database != NULL);
	first = !my_database->used;
	my_database->used = true;
	LWLockRelease(&hyb_directory->lock.lock);
	return first;
}
