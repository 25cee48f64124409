/*
 * open_stage.c
 *		Opening the trees of an index, shared or backend-local.
 *
 * Shared trees are locked by the slot's lock; while more memory is reserved
 * it is let go.  A backend that cannot get shared memory for an index, or has
 * no use for it (temporary tables, stand-alone backends), keeps trees of its
 * own, so that reading never fails for want of shared memory.
 *
 * Under the slot's lock only pure keys are compared (key/pure.h).  A backend has
 * trees of its own, too, where an index has no pure keys, where an entry of the log
 * is not pure, and where what is sought is not.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "log/own_trees.h"
#include "log/stage_access.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* Chunks reserved at a time: first, and at most. */
#define HYB_RESERVE_MIN		HYB_TREE_RESERVE
#define HYB_RESERVE_MAX		32

/* Where no range was read for so long, inserters do not keep the tree up to date. */
#define HYB_CATCH_UP_IDLE_MS	10000

/* Rounds of reserving that an inserter does to keep a tree up to date. */
#define HYB_CATCH_UP_ROUNDS	4

/*
 * How often a reader waits for others to catch up before it queues to do so: they
 * may have had the stage for something else.
 */
#define HYB_MAX_WAITS	3

/* Chunks to reserve next, room for larger filters included. */
static bool
reserve_more(HybIndex *ix, HybStageAccess *access, uint32 *wanted)
{
	uint32		bloom = 0;

	Assert(*wanted >= HYB_RESERVE_MIN && *wanted <= HYB_RESERVE_MAX);
	/* only a hint, so the lock may be gone already */
	if (ix->desc->exact)
		for (int which = HYB_FROZEN; which <= HYB_ACTIVE; which++)
			bloom += hyb_tree_bloom_wanted(&access->stage->trees[which]);
	if (bloom > 0 && hyb_arena_reserve(access->arena, *wanted + bloom))
		return true;
	if (hyb_arena_is_scarce(access->arena))
		*wanted = HYB_RESERVE_MIN;
	if (hyb_arena_reserve(access->arena, *wanted))
	{
		*wanted = Min(*wanted * 2, HYB_RESERVE_MAX);
		return true;
	}
	return *wanted > HYB_RESERVE_MIN &&
		hyb_arena_reserve(access->arena, *wanted = HYB_RESERVE_MIN);
}

/* ---- shared trees ---- */

/*
 * The slot is locked: is it still the index's, and can its trees be reached?
 * Otherwise unlocks it.
 */
static bool
reach_shared_stage(HybStageAccess *access)
{
	HybSharedSlot *shared = access->cache->shared;

	if (!hyb_slot_valid(access->cache) || !hyb_arena_attached())
	{
		LWLockRelease(&shared->lock);
		return false;
	}
	access->shared = shared;
	access->stage = &shared->stage;
	access->arena = &hyb_shared_arena;
	hyb_shared_slot_assert_valid(shared);
	hyb_stage_assert_valid(access->stage);
	return true;
}

static bool
lock_shared_stage(const HybIndex *ix, HybStageAccess *access, LWLockMode mode)
{
	hyb_desc_prepare_pure(ix->desc);
	LWLockAcquire(&access->cache->shared->lock, mode);
	return reach_shared_stage(access);
}

/* The same, exclusively and without waiting. */
static bool
try_lock_shared_stage(const HybIndex *ix, HybStageAccess *access)
{
	hyb_desc_prepare_pure(ix->desc);
	return LWLockConditionalAcquire(&access->cache->shared->lock, LW_EXCLUSIVE) &&
		reach_shared_stage(access);
}

/*
 * Lock it to read, or exclusively to catch up.  The first times that another process
 * has it then, this waits for that one and fails, to have the stage looked at again:
 * as a rule that one has caught up.  Readers that queue would each have the stage for
 * themselves, to find nothing to do.
 */
static bool
lock_or_wait(HybIndex *ix, HybStageAccess *access, LWLockMode mode, int *waits)
{
	HybSharedSlot *shared = access->cache->shared;

	if (mode == LW_SHARED || *waits == HYB_MAX_WAITS)
		return lock_shared_stage(ix, access, mode);
	(*waits)++;
	CHECK_FOR_INTERRUPTS();
	hyb_desc_prepare_pure(ix->desc);
	return LWLockAcquireOrWait(&shared->lock, LW_EXCLUSIVE) &&
		reach_shared_stage(access);
}

static void
unlock_shared_stage(HybStageAccess *access)
{
	LWLockRelease(&access->shared->lock);
	hyb_arena_trim(access->arena);
}

/* Trees did not fit: may this backend try again?  The stage is locked exclusively. */
static bool
claim_retry(HybStage *stage)
{
	uint64		room = hyb_arena_tree_budget() + hyb_slots_evictable();
	uint64		used = hyb_arena_tree_used();

	return room > used && hyb_stage_claim_retry(stage, room - used);
}

static void
request_merge(const HybCache *cache)
{
	hyb_slots_set_scarce();
	if (hyb_slot_evicted != NULL)
		hyb_slot_evicted(&cache->index);
}

/* Give up, and free what has been built. */
static void
note_no_room(HybIndex *ix, HybStageAccess *access, const HybVersion *version)
{
	uint64		generation = version->active.number;
	HybStage   *stage;
	uint64		size;
	bool		lost_often;

	if (!lock_shared_stage(ix, access, LW_EXCLUSIVE))
		return;
	/* it was unlocked, so the trees may be those of a later version */
	if (!hyb_version_is_current(ix, version))
	{
		unlock_shared_stage(access);
		return;
	}
	stage = access->stage;
	hyb_stage_note_loss(stage, generation);
	lost_often = hyb_stage_lost_often(stage, generation);
	size = hyb_stage_bytes(stage);
	hyb_slot_clear_trees(access->shared);
	hyb_stage_note_no_room(stage, generation, size);
	unlock_shared_stage(access);
	if (lost_often)
		request_merge(access->cache);
}

/*
 * May this caller leave a tree unfinished?  The frozen one counts only where the
 * active one is not wanted, as when that is empty.  A hint if the stage is not locked.
 */
static inline bool
may_leave_unfinished(const HybStageAccess *access, const HybStage *stage, int want)
{
	return access->brief &&
		!hyb_tree_is_synced(stage, (want & HYB_FETCH_ACTIVE) != 0 ? HYB_ACTIVE : HYB_FROZEN);
}

/* The stage is locked to read.  If it is not caught up this unlocks it. */
static bool
is_ready(HybIndex *ix, HybStageAccess *access, const HybVersion *version, int want)
{
	if (!hyb_stage_is_caught_up(ix, access, version, want))
	{
		LWLockRelease(&access->shared->lock);
		return false;
	}

	/*
	 * another process may have caught up what this one has reserved memory
	 * for
	 */
	hyb_arena_trim(access->arena);
	return true;
}

/*
 * Do a part of what is missing.  The shared stage is locked exclusively, and
 * unlocked on return if the result is MORE or MEMORY.
 */
static HybStageResult
catch_up_part(HybIndex *ix, HybStageAccess *access, const HybVersion *version,
			  int want)
{
	HybStageResult result;

	/* do not turn generations for a reader that is late */
	if (!hyb_version_is_current(ix, version))
		return HYB_STAGE_STALE;
	result = hyb_stage_catch_up(ix, access, version, want);
	if (result == HYB_STAGE_MORE)
	{
		if (may_leave_unfinished(access, access->stage, want))
			return HYB_STAGE_UNFINISHED;
		access->brief = false;
	}
	if (result == HYB_STAGE_MORE || result == HYB_STAGE_MEMORY)
		LWLockRelease(&access->shared->lock);
	return result;
}

/* Is an entry of the version's generations known that is not pure? */
static inline bool
is_impure(const HybStage *stage, const HybVersion *version)
{
	return hyb_stage_is_impure(stage, version->active.number) ||
		hyb_stage_is_impure(stage, version->frozen.number);
}

/*
 * MEMORY: there is not enough shared memory, or an entry is not pure; the trees
 * should be built in the backend.
 */
static HybStageResult
open_shared(HybIndex *ix, const HybVersion *version, int want,
			HybStageAccess *access)
{
	HybCache   *cache = access->cache;
	LWLockMode	mode = LW_SHARED;
	uint32		wanted = HYB_RESERVE_MIN;
	int			waits = 0;
	bool		again = false;

	for (;;)
	{
		HybStageResult result;

		if (!hyb_slot_create(cache) || !hyb_arena_available())
			return HYB_STAGE_MEMORY;
		hyb_slot_touch(cache, access->hash == 0 && (want & HYB_FETCH_ACTIVE) != 0);
		if (unlikely(may_leave_unfinished(access, &cache->shared->stage, want)))
		{
			/* while another process enters its portion, do not wait */
			if (!try_lock_shared_stage(ix, access))
			{
				hyb_arena_trim(&hyb_shared_arena);
				return HYB_STAGE_UNFINISHED;
			}
			mode = LW_EXCLUSIVE;
		}
		else if (!lock_or_wait(ix, access, mode, &waits))
		{
			mode = LW_SHARED;
			continue;
		}
		if (ix->desc->pure == HYB_IMPURE || is_impure(access->stage, version) ||
			(hyb_stage_lacks_room(access->stage, version->active.number) &&
			 mode == LW_EXCLUSIVE && !again && !(again = claim_retry(access->stage))))
		{
			unlock_shared_stage(access);
			return HYB_STAGE_MEMORY;
		}
		if (mode == LW_SHARED)
		{
			if (is_ready(ix, access, version, want))
				return HYB_STAGE_READY;
			HYB_POINT("catch-up");
			mode = LW_EXCLUSIVE;
			continue;
		}

		result = catch_up_part(ix, access, version, want);
		if (result == HYB_STAGE_READY)
		{
			if (hyb_stage_lacks_room(access->stage, version->active.number))
				hyb_tree_happens(access->stage, HYB_ACTIVE, HYB_TREE_HAS_ROOM);
			/* read under the exclusive lock: nothing can come between */
			access->merge_wanted = hyb_stage_lost_often(access->stage, version->active.number);
			hyb_arena_trim(access->arena);
			return HYB_STAGE_READY;
		}
		if (result == HYB_STAGE_IMPURE)
			hyb_slot_clear_trees(access->shared);
		if (result == HYB_STAGE_STALE || result == HYB_STAGE_UNFINISHED ||
			result == HYB_STAGE_IMPURE)
		{
			unlock_shared_stage(access);
			return result == HYB_STAGE_IMPURE ? HYB_STAGE_MEMORY : result;
		}

		CHECK_FOR_INTERRUPTS();
		access->shared->last_use = GetCurrentTimestamp();
		if (result == HYB_STAGE_MEMORY && !reserve_more(ix, access, &wanted))
		{
			note_no_room(ix, access, version);
			hyb_arena_trim(&hyb_shared_arena);
			return HYB_STAGE_MEMORY;
		}
	}
}

/* ---- trees in backend memory ---- */

static HybStageResult
open_private(HybIndex *ix, const HybVersion *version, int want,
			 HybStageAccess *access)
{
	HybOwnTrees *own = hyb_own_trees(access->cache);
	HybStageResult result = HYB_STAGE_MEMORY;
	uint32		wanted = HYB_RESERVE_MIN;

	/* the tree is not whole while a comparison function runs */
	if (hyb_own_trees_busy(own))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("comparison function of index \"%s\" uses the index itself",
						RelationGetRelationName(ix->rel))));
	hyb_own_trees_make(access->cache);
	(void) hyb_own_trees_find_slot(own);
	access->shared = NULL;
	access->brief = false;
	access->stage = own->stage;
	access->arena = own->arena;

	hyb_own_trees_begin(own);
	if (hyb_stage_is_caught_up(ix, access, version, want))
		return HYB_STAGE_READY;
	while (result == HYB_STAGE_MEMORY || result == HYB_STAGE_MORE)
	{
		CHECK_FOR_INTERRUPTS();
		result = hyb_stage_catch_up(ix, access, version, want);
		if (result == HYB_STAGE_MEMORY &&
			!reserve_more(ix, access, &wanted))
			break;
		if (result == HYB_STAGE_READY && !hyb_own_trees_find_slot(own))
			result = HYB_STAGE_MORE;
	}
	if (result != HYB_STAGE_READY)
		hyb_own_trees_end(own);
	if (result == HYB_STAGE_MEMORY)
		(void) hyb_read_lacks(own, HYB_READ_OWN, version->active.number);
	return result;
}

/* ---- both ---- */

HybStageResult
hyb_stage_open(HybIndex *ix, const HybVersion *version, int want, bool pure,
			   HybStageAccess *access)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybOwnTrees *own = hyb_own_trees(cache);
	HybReadForm form;

	access->cache = cache;
	if (version->frozen.number == 0)
		want &= ~HYB_FETCH_FROZEN;
	form = hyb_read_form(own, pure && !cache->is_temp ? HYB_READ_SHARED : HYB_READ_OWN,
						 version->active.number);
	if (!pure)
	{
		/* it tells of appends */
		if (hyb_slot_create(cache))
			hyb_slot_touch(cache, false);
	}
	if (form == HYB_READ_SHARED)
	{
		HybStageResult result = open_shared(ix, version, want, access);

		if (result != HYB_STAGE_MEMORY)
		{
			/*
			 * where some keys are not pure, the backend will need its trees
			 * again
			 */
			if (result == HYB_STAGE_READY && own->stage != NULL && !hyb_own_trees_busy(own) &&
				ix->desc->pure == HYB_PURE)
				hyb_own_trees_drop(own);
			return result;
		}
		form = hyb_read_lacks(own, HYB_READ_SHARED, version->active.number);
	}
	return form == HYB_READ_PAGES ? HYB_STAGE_MEMORY :
		open_private(ix, version, want, access);
}

void
hyb_stage_close(HybStageAccess *access)
{
	if (access->shared != NULL)
		LWLockRelease(&access->shared->lock);
	else
		hyb_own_trees_end(hyb_own_trees(access->cache));
	if (unlikely(access->merge_wanted))
		request_merge(access->cache);
}

/*
 * Is the shared tree, if there is one, read now and then by those that need all of it?
 * Look-ups of single keys catch it up when they have to.
 */
static inline bool
worth_catching_up(HybCache *cache)
{
	return cache->shared->tree_bytes > 0 &&
		cache->shared->last_whole + HYB_CATCH_UP_IDLE_MS * INT64CONST(1000) >=
		GetCurrentStatementStartTimestamp();
}

void
hyb_log_catch_up(HybIndex *ix, const HybVersion *version)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybStageAccess access = {.cache = cache};
	uint32		wanted = HYB_RESERVE_MIN;

	for (int i = 0; i < HYB_CATCH_UP_ROUNDS; i++)
	{
		HybStageResult result = HYB_STAGE_STALE;

		if (cache->is_temp || cache->key.in_recovery || !hyb_slot_find(cache) ||
			!worth_catching_up(cache))
			return;
		hyb_arena_attach();
		if (!try_lock_shared_stage(ix, &access))
			break;
		if (access.stage->trees[HYB_ACTIVE].generation == version->active.number &&
			hyb_tree_is_synced(access.stage, HYB_ACTIVE))
			result = hyb_stage_catch_up(ix, &access, version, HYB_FETCH_ACTIVE);
		if (result == HYB_STAGE_IMPURE)
			hyb_slot_clear_trees(access.shared);
		LWLockRelease(&access.shared->lock);
		if (result != HYB_STAGE_MORE &&
			(result != HYB_STAGE_MEMORY || !reserve_more(ix, &access, &wanted)))
			break;
	}
	hyb_arena_trim(&hyb_shared_arena);
}
