/*
 * index_cache.c
 * What a backend keeps about each index: the shared slot, the version, pieces
 * of upper layers.
 *
 * A reader makes the shared slot before it locks pages of the log to build
 * trees.  An appender, or a merge that changes the generations, only looks for
 * the slot, with the content lock of the page that it changes held.  So either
 * the appender finds the slot and publishes its append there, or the reader
 * comes to the page later and reads the entry.  Looking is cheap: the
 * directory counts slots made, before it is unlocked, and a cache looks again
 * only if that number has changed.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "shared/directory.h"
#include "shared/index_cache.h"
#include "store/handle.h"
#include "store/meta.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* last_use is not written more often than this. */
#define HYB_TOUCH_MS		100

/* One use of this number reads the clock; the rest take the statement's start. */
#define HYB_TOUCH_CLOCK		64

static HTAB *caches = NULL;
static Size cache_size = MAXALIGN(sizeof(HybCache));
static HybCachePiece *pieces = NULL;
static uint64 local_serials = 0;

/* The counter of changes of temporary indexes, which no other session changes. */
static pg_atomic_uint64 no_changes;

static void
slot_key(const HybIndex *ix, HybSlotKey *key)
{
	memset(key, 0, sizeof(*key));
	key->space = HYB_RELATION_SPACE(ix->rel);
	key->db = HYB_RELATION_DB(ix->rel);
	key->file = HYB_RELATION_FILENUMBER(ix->rel);
	key->in_recovery = RecoveryInProgress();
	key->incarnation = ix->incarnation;
	key->life = hyb_database_life();
}

#ifdef USE_ASSERT_CHECKING
static void
cache_assert_valid(const HybCache *cache)
{
	Assert(cache->local_serial != 0 && cache->local_serial <= local_serials);
	Assert(cache->key.incarnation != 0);
	Assert(!cache->version_valid || (cache->version != NULL && cache->changes != NULL));
	Assert(!cache->is_temp || cache->shared == NULL);
	Assert((cache->shared == NULL) == (cache->shared_serial == 0));
}
#else
#define cache_assert_valid(cache) ((void) (cache))
#endif

/* ---- backend-local ---- */

void
hyb_cache_add_piece(HybCachePiece *piece)
{
	Assert(caches == NULL);
	piece->offset = cache_size;
	piece->next = pieces;
	pieces = piece;
	cache_size += MAXALIGN(piece->size);
}

/* A handle that still refers to the cache finds another serial. */
static void
release_pieces(HybCache *cache)
{
	for (HybCachePiece *piece = pieces; piece != NULL; piece = piece->next)
		if (piece->release != NULL)
			piece->release(hyb_cache_piece_of(cache, piece));
	memset(cache + 1, 0, cache_size - sizeof(HybCache));
	cache->local_serial = 0;
}

void
hyb_cache_let_go(HybCache *cache)
{
	if (cache->tied)
		return;
	for (HybCachePiece *piece = pieces; piece != NULL; piece = piece->next)
		if (piece->wanted != NULL && piece->wanted(hyb_cache_piece_of(cache, piece)))
			return;
	release_pieces(cache);
	if (cache->version != NULL)
		pfree(cache->version);
	hash_search(caches, &cache->key, HASH_REMOVE, NULL);
}

/*
 * The relation cache drops its entry: callback of the memory context.  The
 * index is not open then.  Any change of the index's catalog rows drops the
 * entry, that of ANALYZE for one.  So a cache with trees of the backend's own
 * stays until it is used again, or until the trees have to go; there are few.
 */
static void
relation_gone(void *arg)
{
	HybCache   *cache = arg;

	cache->tied = false;
	hyb_cache_let_go(cache);
}

static void
tie_to_relation(HybCache *cache, Relation rel)
{
	Assert(!cache->tied);
	cache->gone.func = relation_gone;
	cache->gone.arg = cache;
	MemoryContextRegisterResetCallback(rel->rd_indexcxt, &cache->gone);
	cache->tied = true;
}

static void
make_caches(void)
{
	HASHCTL		ctl;

	pg_atomic_init_u64(&no_changes, 0);
	ctl.keysize = sizeof(HybSlotKey);
	ctl.entrysize = cache_size;
	ctl.hcxt = TopMemoryContext;
	caches = hash_create("hybrid index caches", 64, &ctl,
						 HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Slow path of hyb_cache_get.  Memory of a cache that goes is used again for
 * caches only, so handles that refer to one can look at its serial.
 */
HybCache *
hyb_cache_open(HybIndex *ix)
{
	HybSlotKey	key;
	HybCache   *cache;
	bool		found;

	if (caches == NULL)
		make_caches();
	slot_key(ix, &key);
	cache = hash_search(caches, &key, HASH_ENTER, &found);
	if (!found)
	{
		memset((char *) cache + sizeof(HybSlotKey), 0,
			   cache_size - sizeof(HybSlotKey));
		cache->local_serial = ++local_serials;
		cache->index.relid = RelationGetRelid(ix->rel);
		cache->index.owner = ix->rel->rd_rel->relowner;
		cache->is_temp = ix->rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP;
		if (cache->is_temp)
			cache->changes = &no_changes;
		else if (hyb_directory != NULL && !key.in_recovery)
			cache->changes = hyb_directory_changes(&key);
	}
	if (!cache->tied)
		tie_to_relation(cache, ix->rel);
	ix->cache = cache;
	ix->cache_serial = cache->local_serial;
	hyb_index_remember_cache(ix);
	cache_assert_valid(cache);
	return cache;
}

/*
 * The process comes to have shared memory.  What it keeps about indexes is of no
 * database's life, refers to no counter of changes, and is not found again.  The
 * caches stay until their relation cache's entries go, but not their pieces.
 */
static void
forget_caches(void)
{
	HASH_SEQ_STATUS seq;
	HybCache   *cache;

	if (caches == NULL)
		return;
	hash_seq_init(&seq, caches);
	while ((cache = hash_seq_search(&seq)) != NULL)
		release_pieces(cache);
}

static void *no_memory;

const HybSharedPart hyb_cache_part = {
	.address = &no_memory,.attached = forget_caches
};

/* ---- shared slots ---- */

/* Refer to another shared slot, or to none. */
static void
refer(HybCache *cache, HybSharedSlot *shared)
{
	cache->shared = shared;
	cache->shared_serial = shared != NULL ? pg_atomic_read_u64(&shared->serial) : 0;
	Assert(shared == NULL || !cache->is_temp);
}

bool
hyb_slot_find(HybCache *cache)
{
	HybSharedSlot *shared;

	if (hyb_slot_valid(cache))
		return true;
	if (cache->shared != NULL)
	{
		refer(cache, NULL);
		cache->seen_creations = 0;
	}
	if (cache->is_temp || hyb_directory == NULL ||
		cache->seen_creations == pg_atomic_read_u64(&hyb_directory->creations))
		return false;

	hyb_directory_lock(LW_SHARED, false);
	cache->seen_creations = pg_atomic_read_u64(&hyb_directory->creations);
	shared = hyb_directory_lookup(&cache->key);
	if (shared != NULL)
		refer(cache, shared);
	hyb_directory_unlock();
	return shared != NULL;
}

void		(*hyb_slot_evicted) (const HybSlotIndex *index) = NULL;

bool
hyb_slot_create(HybCache *cache)
{
	HybSlotIndex evicted = {InvalidOid, InvalidOid};
	HybSharedSlot *shared;

	Assert(CritSectionCount == 0);
	if (hyb_slot_find(cache))
		return true;
	if (cache->is_temp || hyb_directory == NULL || !IsUnderPostmaster)
		return false;

	hyb_directory_grow();
	hyb_directory_lock(LW_EXCLUSIVE, true);
	shared = hyb_directory_lookup(&cache->key);
	if (shared == NULL)
	{
		shared = hyb_directory_add(&cache->key, &cache->index, &evicted);
		if (shared != NULL)
			pg_atomic_fetch_add_u64(&hyb_directory->creations, 1);
	}
	if (shared != NULL)
		refer(cache, shared);
	cache->seen_creations = pg_atomic_read_u64(&hyb_directory->creations);
	hyb_directory_unlock();
	hyb_arena_trim(&hyb_shared_arena);
	if (OidIsValid(evicted.relid) && hyb_slot_evicted != NULL)
		hyb_slot_evicted(&evicted);
	return shared != NULL;
}

/*
 * From here on the slot speaks of this generation, in which it has heard of
 * nothing yet.  The mutex is held.
 */
static void
set_generation(HybSharedSlot *shared, uint64 generation)
{
	Assert(pg_atomic_read_u64(&shared->appended_gen) < generation);
	/* readers look at the generation first: lanes are zeroed before */
	for (int i = 0; i < HYB_LANES; i++)
		pg_atomic_write_u64(&shared->appended[i], 0);
	pg_write_barrier();
	pg_atomic_write_u64(&shared->appended_gen, generation);
}

/*
 * With that lock no other backend can move the end, so the record is exact and
 * never goes backwards.
 *
 * The slot was looked up with that lock held.  If it has since become another
 * index's there is nothing to do: a slot made for this index since then will
 * be brought up to date by reading the page.
 */
void
hyb_slot_publish(HybCache *cache, uint64 generation, int lane, uint64 end)
{
	HybSharedSlot *shared = cache->shared;

	Assert(generation > 0 && lane >= 0 && lane < HYB_LANES);
	Assert(hyb_lane_end_block(end) != HYB_METAPAGE_BLKNO);
	Assert(hyb_lane_end_offset(end) > SizeOfPageHeaderData && hyb_lane_end_offset(end) < BLCKSZ);
	if (shared == NULL || cache->key.in_recovery)
		return;
	SpinLockAcquire(&shared->mutex);
	if (pg_atomic_read_u64(&shared->serial) == cache->shared_serial)
	{
		uint64		current = pg_atomic_read_u64(&shared->appended_gen);

		if (current < generation)
			set_generation(shared, generation);
		/* an end never goes backwards on its page */
		Assert(current != generation ||
			   pg_atomic_read_u64(&shared->appended[lane]) >> 16 != end >> 16 ||
			   pg_atomic_read_u64(&shared->appended[lane]) <= end);
		if (current <= generation)
			pg_atomic_write_u64(&shared->appended[lane], end);
	}
	SpinLockRelease(&shared->mutex);
}

void
hyb_slot_touch(HybCache *cache, bool whole)
{
	HybSharedSlot *shared = cache->shared;
	TimestampTz now = GetCurrentStatementStartTimestamp();
	TimestampTz before;

	if (cache->touches++ % HYB_TOUCH_CLOCK == 0)
		now = GetCurrentTimestamp();
	before = now - HYB_TOUCH_MS * INT64CONST(1000);
	if (before > shared->last_use)
		shared->last_use = now;
	if (whole && before > shared->last_whole)
		shared->last_whole = now;
}

/*
 * Free the tree of a generation that is gone, unless it is locked.  The slot
 * may have become another index's.
 */
static void
free_merged_tree(HybCache *cache, const HybMetaPage *meta)
{
	HybSharedSlot *shared = cache->shared;

	if (!LWLockConditionalAcquire(&shared->lock, LW_EXCLUSIVE))
		return;
	if (hyb_slot_valid(cache) && hyb_arena_attached())
	{
		HybStage   *stage = &shared->stage;
		uint64		generation = stage->trees[HYB_FROZEN].generation;

		if (generation != 0 && generation != meta->frozen.number &&
			generation < meta->active.number)
		{
			hyb_stage_reset(stage, &hyb_shared_arena, HYB_FROZEN, 0);
			shared->tree_bytes = hyb_stage_bytes(stage);
		}
	}
	LWLockRelease(&shared->lock);
	hyb_arena_trim(&hyb_shared_arena);
}

void
hyb_cache_count_change(HybCache *cache)
{
	cache->version_valid = false;
	if (cache->changes != NULL && !cache->is_temp)
		pg_atomic_fetch_add_u64(cache->changes, 1);
}

bool
hyb_slot_together(const HybIndex *ix)
{
	HybCache   *cache = hyb_cache_get(ix);

	return cache->shared != NULL && hyb_slot_valid(cache) && cache->shared->together;
}

uint64
hyb_slot_membership_bytes(HybCache *cache, bool making)
{
	HybMembership *membership;
	uint32		states;
	uint32		number;

	if (!hyb_slot_find(cache))
		return 0;
	membership = &cache->shared->membership;
	states = hyb_membership_states(membership);
	number = making ? HYB_MEMBERSHIP_MAKING(states) : HYB_MEMBERSHIP_READY(states);
	return number == 0 ? 0 : HYB_CHUNK_SIZE *
		(uint64) hyb_key_filter_cost(hyb_membership_filter(membership, number)->nchunks);
}

/* ---- the current version ---- */

/*
 * A backend keeps the last version that it read, with the index's counter of
 * changes as it was before that.  A backend that switches the version, or
 * gives a lane of the active generation its first page, counts that after the
 * change, with the metapage still locked.  So while the counter is the same,
 * the metapage has not changed since it was read, but for tail pages and
 * counters of the active generation, which readers of a version do not use.
 * Above all, a generation without pages still has none.
 *
 * The counter is shared with other indexes, whose changes have the metapage
 * read once more than need be.  Every index of every database always has one:
 * readers announce nothing, and nothing is evicted.
 *
 * In recovery changes are not counted, and the metapage is read every time.
 */

static inline void
copy_index_version(HybVersion *to, const HybVersion *from)
{
	memcpy(to, from, offsetof(HybVersion, wm_key));
	memcpy(to->wm_key, from->wm_key, from->watermark.len);
	to->watermark.key = to->wm_key;
	hyb_version_assert_valid(to);
}

/*
 * Keep a version that was read when the counter was at `changes`.  There is
 * room for the key of its watermark, if it has one.
 */
static void
keep_version(HybCache *cache, const HybVersion *version, uint64 changes)
{
	uint16		room = version->watermark.len;

	hyb_version_assert_valid(version);
	if (cache->version == NULL || room > cache->version_room ||
		(room == 0 && cache->version_room > 0))
	{
		if (cache->version != NULL)
			pfree(cache->version);
		cache->version = NULL;
		cache->version = MemoryContextAlloc(TopMemoryContext,
											offsetof(HybVersion, wm_key) + room);
		cache->version_room = room;
	}
	Assert(room <= cache->version_room);
	copy_index_version(cache->version, version);
	cache->version_changes = changes;
	cache->version_valid = true;
	cache_assert_valid(cache);
}

void
hyb_version_capture(HybIndex *ix, HybVersion *version)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybMetaPage *meta;
	Buffer		metabuf;
	uint64		changes = 0;

	/* reading the metapage may fail */
	Assert(CritSectionCount == 0);
	if (likely(hyb_cache_version_is_current(cache)))
	{
		copy_index_version(version, cache->version);
		return;
	}

	/* the counter before the page */
	cache->version_valid = false;
	if (cache->changes != NULL)
		changes = pg_atomic_read_u64(cache->changes);
	pg_read_barrier();
	HYB_POINT("version-counted");
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	hyb_version_from_meta(meta, version);
	UnlockReleaseBuffer(metabuf);
	if (cache->changes != NULL)
		keep_version(cache, version, changes);
}

bool
hyb_version_is_current(HybIndex *ix, const HybVersion *version)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybMetaPage *meta;
	Buffer		metabuf;
	bool		current;

	if (hyb_cache_version_is_current(cache) &&
		cache->version->version == version->version)
		return true;

	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	current = meta->version == version->version;
	UnlockReleaseBuffer(metabuf);
	return current;
}

bool
hyb_version_has_generation(HybIndex *ix, uint64 generation)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybVersion	version;

	Assert(generation != 0);
	if (hyb_cache_version_is_current(cache))
		return generation == cache->version->active.number ||
			generation == cache->version->frozen.number;
	hyb_version_capture(ix, &version);
	return generation == version.active.number ||
		generation == version.frozen.number;
}

HybPinResult
hyb_leaf_pin_check(HybIndex *ix, const HybVersion *version)
{
	return hyb_version_is_current(ix, version) ? HYB_PIN_HOLDS : HYB_PIN_MOVED;
}

void
hyb_version_prepare(HybIndex *ix)
{
	HybCache   *cache = hyb_cache_get(ix);

	(void) hyb_slot_find(cache);
	cache->changing = true;
}

/*
 * Tell all backends, and the shared slot, of a changed version.  The counter
 * comes first.  A reader that finds the new generation in the slot takes the
 * old one for empty, and asks afterwards whether its version is current: the
 * answer must be no by then.
 */
static void
tell_version_changed(HybCache *cache, const HybMetaPage *meta)
{
	HybSharedSlot *shared = cache->shared;

	hyb_cache_count_change(cache);
	if (shared == NULL)
		return;
	SpinLockAcquire(&shared->mutex);
	if (pg_atomic_read_u64(&shared->serial) == cache->shared_serial &&
		pg_atomic_read_u64(&shared->appended_gen) < meta->active.number &&
		meta->active.npages == 0)
		set_generation(shared, meta->active.number);
	SpinLockRelease(&shared->mutex);
	if (shared->tree_bytes > 0)
		free_merged_tree(cache, meta);
}

void
hyb_version_changed(HybIndex *ix, const HybMetaPage *meta)
{
	HybCache   *cache = ix->cache;

	Assert(cache != NULL && cache->local_serial == ix->cache_serial && cache->changing);
	cache->changing = false;
	tell_version_changed(cache, meta);
}

void
hyb_version_switch_begin(HybIndex *ix, HybMetaPage *meta, HybWalSet *set)
{
	hyb_version_prepare(ix);
	hyb_wal_begin(set, ix->rel);
	START_CRIT_SECTION();
	Assert(meta->version < PG_UINT64_MAX);
	meta->version++;
}

void
hyb_version_switch_end(HybIndex *ix, Buffer metabuf, HybWalSet *set,
					   const HybPos *watermark)
{
	HybMetaPage *meta = hyb_page_meta(BufferGetPage(metabuf));

	Assert(hyb_page_is_mine(metabuf) && CritSectionCount == 1);
	hyb_meta_set_watermark(meta, watermark, set, metabuf);
	hyb_wal_meta(set, metabuf);
	hyb_wal_commit(set);
	hyb_version_changed(ix, meta);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
}
