/*
 * slot.c
 *		The directory of slots, shared and backend-local.
 *
 * Readers make a shared slot before they read the log; appenders and those
 * who change the version only look whether there is one.  They do so with the
 * content lock of the page that they change held, the makers before they lock
 * that page to read it.  So either the appender finds the slot, and tells it
 * what it did, or the maker, who comes to the page later, reads what was
 * done.  control->creations makes looking cheap: it counts up with every
 * slot made, before the maker lets go of control->lock.
 */
#include "compat.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "dynamic/catchup.h"
#include "miscadmin.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Local slots kept; beyond that those not used lately go. */
#define HYB_LOCAL_SLOTS		1024

/* Trees unused for so long may be evicted for others. */
#define HYB_IDLE_MS			1000

/* last_use is not written more often than this. */
#define HYB_TOUCH_MS		100

/* Of how many uses one reads the clock; others take the statement's start. */
#define HYB_TOUCH_CLOCK		64

static HTAB *local_slots = NULL;
static uint64 local_clock = 0;
static uint64 local_serials = 0;

void
hyb_slot_key(const HybIndex *ix, HybSlotKey *key)
{
	memset(key, 0, sizeof(*key));
	key->space = HYB_RELATION_SPACE(ix->rel);
	key->db = HYB_RELATION_DB(ix->rel);
	key->file = HYB_RELATION_FILENUMBER(ix->rel);
	key->in_recovery = RecoveryInProgress();
	key->incarnation = ix->incarnation;
}

/* ---- backend-local ---- */

static void
discard_old_slots(void)
{
	HASH_SEQ_STATUS status;
	HybSlot    *s;

	hash_seq_init(&status, local_slots);
	while ((s = hash_seq_search(&status)) != NULL)
	{
		if (s->busy > 0 || s->last_use + HYB_LOCAL_SLOTS / 2 > local_clock)
			continue;
		hyb_stage_drop_private(s);
		if (s->version != NULL)
			pfree(s->version);
		if (s->root.page != NULL)
			pfree(s->root.page);
		if (s->top_key.data != NULL)
			pfree(s->top_key.data);
		s->local_serial = 0;
		hash_search(local_slots, &s->key, HASH_REMOVE, NULL);
	}
}

HybSlot *
hyb_slot_find_local(const HybIndex *ix)
{
	HybSlotKey	key;

	if (local_slots == NULL)
		return NULL;
	hyb_slot_key(ix, &key);
	return hash_search(local_slots, &key, HASH_FIND, NULL);
}

/*
 * Slow path of hyb_slot_get.  Memory of a slot that goes is used again for
 * slots only, so handles that refer to one can look at its serial.
 */
HybSlot *
hyb_slot_open(HybIndex *ix)
{
	HybSlotKey	key;
	HybSlot    *s;
	bool		found;

	hyb_shared_init();
	if (local_slots == NULL)
	{
		HASHCTL		ctl;

		ctl.keysize = sizeof(HybSlotKey);
		ctl.entrysize = sizeof(HybSlot);
		ctl.hcxt = TopMemoryContext;
		local_slots = hash_create("hybrid index slots", 64, &ctl,
								  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	else if (hash_get_num_entries(local_slots) >= HYB_LOCAL_SLOTS)
		discard_old_slots();

	hyb_slot_key(ix, &key);
	s = hash_search(local_slots, &key, HASH_ENTER, &found);
	if (!found)
	{
		memset((char *) s + sizeof(HybSlotKey), 0,
			   sizeof(HybSlot) - sizeof(HybSlotKey));
		s->local_serial = ++local_serials;
		s->is_temp = ix->rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP;
	}
	s->last_use = ++local_clock;
	ix->slot = s;
	ix->slot_serial = s->local_serial;
	ix->root = &s->root;
	hyb_index_remember_slot(ix);
	return s;
}

/* ---- shared directory ---- */

static inline int16 *
bucket_of(const HybSlotKey *key)
{
	uint32		hash = hash_bytes((const unsigned char *) key, sizeof(*key));

	return &hyb_control->buckets[hash % HYB_SLOT_BUCKETS];
}

/* control->lock is held. */
static HybSharedSlot *
lookup(const HybSlotKey *key)
{
	for (int i = *bucket_of(key); i >= 0; i = hyb_control->slots[i].next)
		if (memcmp(&hyb_control->slots[i].key, key, sizeof(*key)) == 0)
			return &hyb_control->slots[i];
	return NULL;
}

/*
 * Refer to another shared slot, or to none.  What the old one said of new
 * versions and appends the new one has not heard of.
 */
static void
refer(HybSlot *s, HybSharedSlot *shared)
{
	s->shared = shared;
	s->shared_serial = shared != NULL ? pg_atomic_read_u64(&shared->serial) : 0;
	s->version_valid = false;
	if (s->stage != NULL)
		s->stage->synced[HYB_ACTIVE] = false;
}

bool
hyb_slot_find(HybSlot *s)
{
	HybSharedSlot *shared;

	if (hyb_slot_valid(s))
		return true;
	if (s->shared != NULL)
	{
		refer(s, NULL);
		s->seen_creations = 0;
	}
	if (s->is_temp ||
		s->seen_creations == pg_atomic_read_u64(&hyb_control->creations))
		return false;

	LWLockAcquire(&hyb_control->lock.lock, LW_SHARED);
	s->seen_creations = pg_atomic_read_u64(&hyb_control->creations);
	shared = lookup(&s->key);
	if (shared != NULL)
		refer(s, shared);
	LWLockRelease(&hyb_control->lock.lock);
	return shared != NULL;
}

/*
 * Make a slot nobody's.  control->lock and slot->lock are held exclusively,
 * the arena is attached.
 */
static void
release_slot(HybSharedSlot *slot)
{
	int			number = slot - hyb_control->slots;
	int16	   *link = bucket_of(&slot->key);

	if (pg_atomic_read_u32(&hyb_control->nsegments) > 0)
	{
		HybStage   *stage = hyb_stage_of(slot);

		hyb_stage_clear(stage, &hyb_shared_arena);
		memset(stage, 0, sizeof(*stage));
	}
	while (*link != number)
		link = &hyb_control->slots[*link].next;
	*link = slot->next;

	SpinLockAcquire(&slot->mutex);
	slot->used = false;
	slot->next = -1;
	slot->tree_bytes = 0;
	memset(&slot->key, 0, sizeof(slot->key));
	pg_atomic_write_u64(&slot->serial, pg_atomic_read_u64(&slot->serial) + 1);
	SpinLockRelease(&slot->mutex);
}

/*
 * The slot used least recently whose trees may go, not among `tried`; NULL if
 * there is none.
 */
static HybSharedSlot *
oldest_slot(const bool *tried, TimestampTz before, bool with_trees)
{
	HybSharedSlot *oldest = NULL;

	for (int i = 0; i < HYB_SLOTS; i++)
	{
		HybSharedSlot *slot = &hyb_control->slots[i];

		if (tried[i] || !slot->used || slot->last_use >= before ||
			(with_trees && slot->tree_bytes == 0))
			continue;
		if (oldest == NULL || slot->last_use < oldest->last_use)
			oldest = slot;
	}
	return oldest;
}

/*
 * A free slot, its lock held; an old one if need be.  control->lock is held
 * exclusively.  Slot locks come before it in the lock order, so they are only
 * asked for, not waited for.
 */
static HybSharedSlot *
claim_slot(void)
{
	bool		tried[HYB_SLOTS] = {false};
	HybSharedSlot *slot;

	for (int i = 0; i < HYB_SLOTS; i++)
		if (!hyb_control->slots[i].used &&
			LWLockConditionalAcquire(&hyb_control->slots[i].lock, LW_EXCLUSIVE))
			return &hyb_control->slots[i];

	while ((slot = oldest_slot(tried, PG_INT64_MAX, false)) != NULL)
	{
		if (LWLockConditionalAcquire(&slot->lock, LW_EXCLUSIVE))
		{
			release_slot(slot);
			return slot;
		}
		tried[slot - hyb_control->slots] = true;
	}
	return NULL;
}

bool
hyb_slot_create(HybSlot *s)
{
	HybControl *control = hyb_control;
	HybSharedSlot *slot;
	TimestampTz now;

	if (hyb_slot_find(s))
		return true;
	if (s->is_temp || !IsUnderPostmaster)
		return false;

	now = GetCurrentTimestamp();
	for (;;)
	{
		hyb_arena_attach();
		LWLockAcquire(&control->lock.lock, LW_EXCLUSIVE);
		if (hyb_arena_attached())
			break;
		LWLockRelease(&control->lock.lock);
	}

	slot = lookup(&s->key);
	if (slot == NULL && (slot = claim_slot()) != NULL)
	{
		int16	   *bucket = bucket_of(&s->key);

		SpinLockAcquire(&slot->mutex);
		slot->used = true;
		slot->key = s->key;
		slot->last_use = now;
		slot->next = *bucket;
		pg_atomic_write_u64(&slot->serial, pg_atomic_read_u64(&slot->serial) + 1);
		pg_atomic_write_u64(&slot->version_seq,
							pg_atomic_read_u64(&slot->version_seq) + 1);
		pg_atomic_write_u64(&slot->appended_gen, 0);
		for (int lane = 0; lane < HYB_LANES; lane++)
			pg_atomic_write_u64(&slot->appended[lane], 0);
		SpinLockRelease(&slot->mutex);
		*bucket = slot - control->slots;
		pg_atomic_fetch_add_u64(&control->creations, 1);
		LWLockRelease(&slot->lock);
	}
	if (slot != NULL)
		refer(s, slot);
	s->seen_creations = pg_atomic_read_u64(&control->creations);
	LWLockRelease(&control->lock.lock);
	hyb_arena_trim(&hyb_shared_arena);
	return slot != NULL;
}

/*
 * Record where a lane ends.  The caller holds the content lock of the lane's
 * tail page: exclusively, having appended to it, or shared, having found that
 * it has no successor.  Either way nobody else can move the end meanwhile, so
 * the record is exact and never goes backwards.
 *
 * The slot was looked up with that lock held.  If it has since become another
 * index's there is nothing to do: a slot made for this index since then will
 * be brought up to date by reading the page.
 */
void
hyb_slot_publish(HybSlot *s, uint64 generation, int lane, uint64 end)
{
	HybSharedSlot *shared = s->shared;

	if (shared == NULL || s->key.in_recovery)
		return;
	SpinLockAcquire(&shared->mutex);
	if (pg_atomic_read_u64(&shared->serial) == s->shared_serial)
	{
		uint64		current = pg_atomic_read_u64(&shared->appended_gen);

		if (current < generation)
		{
			/* readers look at the generation first: lanes are zeroed before */
			for (int i = 0; i < HYB_LANES; i++)
				pg_atomic_write_u64(&shared->appended[i], 0);
			pg_write_barrier();
			pg_atomic_write_u64(&shared->appended_gen, generation);
		}
		if (current <= generation)
			pg_atomic_write_u64(&shared->appended[lane], end);
	}
	SpinLockRelease(&shared->mutex);
}

void
hyb_slot_touch(HybSlot *s)
{
	TimestampTz now = GetCurrentStatementStartTimestamp();

	if (s->touches++ % HYB_TOUCH_CLOCK == 0)
		now = GetCurrentTimestamp();
	if (now > s->shared->last_use + HYB_TOUCH_MS * INT64CONST(1000))
		s->shared->last_use = now;
}

bool
hyb_slots_evict(uint64 bytes)
{
	bool		tried[HYB_SLOTS] = {false};
	TimestampTz before = GetCurrentTimestamp() - HYB_IDLE_MS * INT64CONST(1000);
	HybSharedSlot *slot;
	uint64		freed = 0;

	while (freed < bytes && (slot = oldest_slot(tried, before, true)) != NULL)
	{
		tried[slot - hyb_control->slots] = true;
		if (!LWLockConditionalAcquire(&slot->lock, LW_EXCLUSIVE))
			continue;
		if (hyb_arena_attached())
		{
			freed += slot->tree_bytes;
			hyb_stage_clear(hyb_stage_of(slot), &hyb_shared_arena);
			slot->tree_bytes = 0;
		}
		LWLockRelease(&slot->lock);
		hyb_arena_trim(&hyb_shared_arena);
	}
	return freed >= bytes;
}

uint64
hyb_slots_largest(void)
{
	uint64		largest = 0;

	for (int i = 0; i < HYB_SLOTS; i++)
		largest = Max(largest, hyb_control->slots[i].tree_bytes);
	return largest;
}

/*
 * The metapage is locked exclusively, and this may be a critical section:
 * nothing is allocated and nothing waited for but control->lock.
 *
 * Whoever makes a slot for this index later reads the metapage later too.
 */
void
hyb_slots_version_changed(const HybSlotKey *key, const HybMetaPage *meta)
{
	HybSharedSlot *slot;

	LWLockAcquire(&hyb_control->lock.lock, LW_SHARED);
	slot = lookup(key);
	if (slot != NULL)
		pg_atomic_fetch_add_u64(&slot->version_seq, 1);
	LWLockRelease(&hyb_control->lock.lock);

	/* the tree of a generation that is gone: free it now, if that is easy */
	if (slot != NULL && slot->tree_bytes > 0 &&
		LWLockConditionalAcquire(&slot->lock, LW_EXCLUSIVE))
	{
		if (hyb_arena_attached() &&
			memcmp(&slot->key, key, sizeof(*key)) == 0)
		{
			HybTree    *tree = &hyb_stage_of(slot)->trees[HYB_FROZEN];

			if (tree->generation != 0 &&
				tree->generation != meta->frozen.number &&
				tree->generation < meta->active.number)
			{
				hyb_tree_free(tree, &hyb_shared_arena);
				slot->tree_bytes = hyb_stage_bytes(hyb_stage_of(slot));
			}
		}
		LWLockRelease(&slot->lock);
		hyb_arena_trim(&hyb_shared_arena);
	}
}

void
hyb_slots_forget(const HybSlotKey *key)
{
	for (;;)
	{
		hyb_arena_attach();
		LWLockAcquire(&hyb_control->lock.lock, LW_EXCLUSIVE);
		if (hyb_arena_attached())
			break;
		LWLockRelease(&hyb_control->lock.lock);
	}
	for (int i = 0; i < HYB_SLOTS; i++)
	{
		HybSharedSlot *slot = &hyb_control->slots[i];

		if (!slot->used || slot->key.space != key->space ||
			slot->key.db != key->db || slot->key.file != key->file ||
			!LWLockConditionalAcquire(&slot->lock, LW_EXCLUSIVE))
			continue;
		release_slot(slot);
		LWLockRelease(&slot->lock);
	}
	LWLockRelease(&hyb_control->lock.lock);
	hyb_arena_trim(&hyb_shared_arena);
}
