/*
 * fetch.c
 *		Reading the dynamic stage; marks that VACUUM and scans set in it.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "base/memory.h"
#include "base/server.h"
#include "log/delta.h"
#include "log/log.h"
#include "log/own_trees.h"
#include "log/stage_access.h"
#include "miscadmin.h"
#include "storage/proclist.h"
#include "utils/rel.h"

/*
 * Entries that are copied with the trees locked once.  Backends that enter
 * entries wait meanwhile, and readers behind them.  A merge step takes
 * thousands of entries, and would stop them all for a millisecond.
 */
#define PORTION_ITEMS	256

/*
 * A process that waits for the trees needs about this long to run after it is
 * woken up.  Without the rest this one would have the lock again by then.
 */
#define PORTION_REST_US 100

/* A backend adds its counters to the shared ones when they come to this. */
#define HYB_COUNTER_FLUSH	64

HybCachePiece hyb_counters_piece = {.size = sizeof(uint32[HYB_STAGE_COUNTERS])};

/* ---- fetching ---- */

/* One generation's entries of what is fetched. */
typedef struct GenerationReader
{
	HybTreeIter iter;
	HybLogReader reader;
	const HybEntry *entry;		/* the next one; NULL: there is none */
} GenerationReader;

/* Start on one tree, and have its first entry. */
static void
start_tree(HybIndex *ix, const HybVersion *version, const HybFetch *fetch,
		   const HybStageAccess *access, int which, GenerationReader *source)
{
	HybTree    *tree = &access->stage->trees[which];
	const HybPos *lo = fetch->lo;

	hyb_tree_assert_valid(tree);
	Assert(tree->generation == hyb_version_generation(version, which)->number);
	if (tree->nentries == 0)
		return;
	if (fetch->point_hash != 0 && ix->desc->exact)
	{
		if (!hyb_tree_maybe(tree, access->arena, fetch->point_hash))
		{
			hyb_log_count(ix, HYB_BLOOM_MISSES);
			return;
		}
		hyb_log_count(ix, HYB_BLOOM_HITS);
	}
	if (which == HYB_FROZEN &&
		hyb_pos_compare(ix->desc, lo, &version->watermark) < 0)
		lo = &version->watermark;
	hyb_tree_use(&source->iter.use, ix, tree, access->arena, &source->reader);
	source->iter.backward = fetch->backward;
	source->iter.leave_killed = (fetch->which & HYB_FETCH_NOT_KILLED) != 0;
	hyb_tree_iter_start(&source->iter, lo, fetch->hi);
	source->entry = hyb_tree_iter_next(&source->iter);
}

/*
 * Copy what is asked for out of the trees, which are ready and locked.  Returns
 * a block that is no longer of a generation, if there is one.
 */
static BlockNumber
collect(HybIndex *ix, const HybVersion *version, const HybFetch *fetch,
		const HybStageAccess *access, int want, HybFetched *batch)
{
	GenerationReader readers[2];
	GenerationReader *frozen = &readers[HYB_FROZEN];
	GenerationReader *active = &readers[HYB_ACTIVE];

	Assert(access->shared == NULL || LWLockHeldByMe(&access->shared->lock));
	HYB_POINT("read-tree");
	for (int which = HYB_FROZEN; which <= HYB_ACTIVE; which++)
	{
		readers[which].entry = NULL;
		readers[which].reader.buf = InvalidBuffer;
		readers[which].reader.lost = InvalidBlockNumber;
		if (want & (1 << which))
			start_tree(ix, version, fetch, access, which, &readers[which]);
	}

	while (frozen->entry != NULL || active->entry != NULL)
	{
		GenerationReader *next = active->entry == NULL ? frozen : active;

		if (batch->nitems >= fetch->limit)
		{
			batch->complete = false;
			break;
		}
		if (frozen->entry != NULL && active->entry != NULL &&
			hyb_entry_compare(ix->desc, frozen->entry, active->entry) *
			(fetch->backward ? -1 : 1) < 0)
			next = frozen;
		hyb_fetched_add_entry(batch, next->entry, next->iter.use.tree->generation);
		next->entry = hyb_tree_iter_next(&next->iter);
	}
	hyb_log_reader_end(&frozen->reader);
	hyb_log_reader_end(&active->reader);
	return BlockNumberIsValid(frozen->reader.lost) ?
		frozen->reader.lost : active->reader.lost;
}

/* Add the counters to those of the stage, if they come to `least`. */
static void
flush_counters(HybCache *cache, HybStage *stage, uint32 least)
{
	uint32	   *counters = hyb_cache_piece_of(cache, &hyb_counters_piece);
	uint32		sum = 0;

	for (int i = 0; i < HYB_STAGE_COUNTERS; i++)
		sum += counters[i];
	for (int i = 0; i < HYB_STAGE_COUNTERS && sum >= least; i++)
	{
		if (counters[i] > 0)
			pg_atomic_fetch_add_u64(&stage->counters[i], counters[i]);
		counters[i] = 0;
	}
}

void
hyb_log_publish_counters(HybIndex *ix)
{
	HybCache   *cache = hyb_cache_get(ix);

	if (!hyb_slot_find(cache) ||
		!LWLockConditionalAcquire(&cache->shared->lock, LW_SHARED))
		return;
	if (hyb_slot_valid(cache))
		flush_counters(cache, &cache->shared->stage, HYB_COUNTER_FLUSH);
	LWLockRelease(&cache->shared->lock);
}

/*
 * Is the active generation known to be empty, without locking anything?
 *
 * Of the same version the one that is kept may have been read later, when
 * there were more lanes: so that one is looked at.
 */
static inline bool
active_is_empty(const HybCache *cache, const HybVersion *version)
{
	const HybVersion *known = version;

	if (hyb_cache_version_is_current(cache))
	{
		known = cache->version;
		if (known->version != version->version)
			return false;
	}
	else if (!cache->key.in_recovery)
		return false;
	for (int lane = 0; lane < HYB_LANES; lane++)
		if (BlockNumberIsValid(known->active.head[lane]))
			return false;
	return true;
}

static inline bool
has_shared_trees(const HybCache *cache)
{
	return hyb_slot_valid(cache) && cache->shared->tree_bytes > 0;
}

/*
 * Does a fetch need so little that reading the whole log in place may be better
 * than to wait for a tree?  Of keys that functions compare only equal ones are
 * found fast.
 */
static inline bool
is_brief(const HybIndex *ix, const HybFetch *fetch)
{
	return fetch->limit < PORTION_ITEMS &&
		(ix->desc->all_mem || (ix->desc->exact && fetch->point_hash != 0));
}

/*
 * Are the comparisons of such a fetch pure, where the tree's keys are?
 */
static inline bool
is_pure(const HybIndex *ix, const HybVersion *version, const HybFetch *fetch)
{
	const HybKeyDesc *desc = ix->desc;

	return likely(desc->pure == HYB_PURE) ||
		(desc->pure != HYB_IMPURE && hyb_pos_is_pure(desc, fetch->lo) &&
		 hyb_pos_is_pure(desc, fetch->hi) &&
		 (version->frozen.number == 0 || hyb_pos_is_pure(desc, &version->watermark)));
}

/*
 * Add what `portion` asks for to the batch, with the trees locked meanwhile:
 * READY.  STALE: the version is not current.  MEMORY: there are no trees, and the
 * batch is worth nothing.  *waited_for: another process waits for the trees.
 */
static HybStageResult
fetch_portion(HybIndex *ix, const HybVersion *version, const HybFetch *portion,
			  HybFetched *batch, BlockNumber *lost, bool *waited_for)
{
	int			which = portion->which & ~HYB_FETCH_NOT_KILLED;
	HybStageAccess wanted = {
		.brief = is_brief(ix, portion),
		.hash = ix->desc->exact ? portion->point_hash : 0
	};
	HybStageAccess access = wanted;
	HybStageResult result;
	bool		pure;

	*waited_for = false;
	/* VACUUM marks entries in trees that it finds */
	batch->knows_dead &= !hyb_cache_get(ix)->key.in_recovery;
	pure = is_pure(ix, version, portion);
	result = hyb_stage_open(ix, version, which, pure, &access);
	if (result == HYB_STAGE_UNFINISHED)
	{
		if (hyb_log_read_unfinished(ix, version, portion, which, batch))
			return HYB_STAGE_READY;
		access = wanted;
		access.brief = false;
		result = hyb_stage_open(ix, version, which, pure, &access);
	}
	if (result != HYB_STAGE_READY)
		return result;
	batch->knows_dead &= access.shared != NULL;
	*lost = collect(ix, version, portion, &access, which, batch);
	flush_counters(access.cache, access.stage, HYB_COUNTER_FLUSH);
	/* not exact without the list's lock */
	*waited_for = access.shared != NULL &&
		!proclist_is_empty(&access.shared->lock.waiters);
	hyb_stage_close(&access);
	return HYB_STAGE_READY;
}

bool
hyb_log_fetch(HybIndex *ix, const HybVersion *version,
			  const HybFetch *fetch, HybFetched *batch)
{
	HybCache   *cache = hyb_cache_get(ix);
	int			which = fetch->which & ~HYB_FETCH_NOT_KILLED;
	HybFetch	portion = *fetch;
	HybPos		at;
	HybBuf		at_key = {0};
	BlockNumber lost = InvalidBlockNumber;
	bool		waited_for = false;
	HybStageResult result;

	HYB_POINT("dynamic-fetch");
	hyb_pos_assert_valid(ix->desc, fetch->lo);
	hyb_pos_assert_valid(ix->desc, fetch->hi);
	Assert(fetch->limit > 0);
	batch->nitems = 0;
	batch->keys.len = 0;
	batch->complete = true;
	batch->knows_dead = true;

	if (version->frozen.number == 0)
		which &= ~HYB_FETCH_FROZEN;
	if ((which & HYB_FETCH_ACTIVE) && active_is_empty(cache, version))
		which &= ~HYB_FETCH_ACTIVE;
	if (which == 0 ||
		(!has_shared_trees(cache) &&
		 hyb_log_read_short(ix, version, fetch, which, batch)))
		return hyb_version_is_current(ix, version);

	portion.which = which | (fetch->which & HYB_FETCH_NOT_KILLED);
	do
	{
		portion.limit = Min(batch->nitems + PORTION_ITEMS, fetch->limit);
		if (batch->nitems > 0)
		{
			HYB_ASSERT_NO_LWLOCK();
			if (waited_for)
				pg_usleep(PORTION_REST_US);
			hyb_fetched_last(ix, batch, &at, &at_key);
			if (portion.backward)
				portion.hi = &at;
			else
				portion.lo = &at;
		}
		batch->complete = true;
		result = fetch_portion(ix, version, &portion, batch, &lost, &waited_for);
	} while (result == HYB_STAGE_READY && !batch->complete &&
			 batch->nitems < fetch->limit && !BlockNumberIsValid(lost));
	hyb_buf_free(&at_key);
	if (result == HYB_STAGE_MEMORY &&
		hyb_log_read_in_place(ix, version, fetch, which, batch))
		result = HYB_STAGE_READY;
	if (result != HYB_STAGE_READY || !hyb_version_is_current(ix, version))
		return false;
	if (BlockNumberIsValid(lost))
		hyb_corrupted(ix->rel, lost,
					  "An entry of the delta log is not where it was appended.");
	return true;
}

const char *
hyb_log_verify(HybIndex *ix, const HybVersion *version)
{
	HybStageAccess access = {0};
	const char *error = NULL;

	if (hyb_stage_open(ix, version, HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE,
					   ix->desc->pure != HYB_IMPURE, &access) != HYB_STAGE_READY)
		return NULL;
	for (int which = HYB_FROZEN; which <= HYB_ACTIVE && error == NULL; which++)
	{
		HybTreeUse	use;
		HybLogReader reader;

		hyb_tree_use(&use, ix, &access.stage->trees[which], access.arena,
					 &reader);
		error = hyb_tree_verify(&use);
		hyb_log_reader_end(&reader);
	}
	hyb_stage_close(&access);
	return error;
}

/* ---- marks ---- */

static void
flag_log_entry(HybIndex *ix, HybTree *tree, HybArena *arena, const HybEntry *entry,
			   uint16 flag)
{
	HybTreeUse	use;
	HybLogReader reader;

	hyb_tree_use(&use, ix, tree, arena, &reader);
	(void) hyb_tree_flag(&use, entry, flag);
	hyb_log_reader_end(&reader);
}

/*
 * The hint is one bit, set under the shared lock.  Concurrent writers of the
 * byte write the same, and nothing else is written then.
 */
void
hyb_log_kill(HybIndex *ix, const HybFetched *batch,
			 const HybFetchedItem *item)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybOwnTrees *own = hyb_own_trees(cache);
	HybEntry	entry = {
		.bytes = batch->keys.data + item->key_off,
		.keylen = item->keylen,
		.tid = item->tid
	};
	uint64		generation = item->ref.generation;
	HybTree    *tree;

	if (cache->key.in_recovery)
		return;
	if (own->stage != NULL && !hyb_own_trees_busy(own) &&
		(tree = hyb_stage_tree(own->stage, generation)) != NULL)
	{
		/*
		 * comparison functions may read other indexes, whose trees want
		 * memory
		 */
		hyb_own_trees_begin(own);
		flag_log_entry(ix, tree, own->arena, &entry, HYB_ENTRY_KILLED);
		hyb_own_trees_end(own);
	}

	if (!has_shared_trees(cache))
	{
		hyb_log_wants_tree(cache, generation);	/* pages have no hints */
		return;
	}
	hyb_desc_prepare_pure(ix->desc);
	if (!hyb_key_is_pure(ix->desc, entry.bytes, entry.keylen) ||
		!LWLockConditionalAcquire(&cache->shared->lock, LW_SHARED))
		return;
	if (hyb_slot_valid(cache) && hyb_arena_attached() &&
		(tree = hyb_stage_tree(&cache->shared->stage, generation)) != NULL)
		flag_log_entry(ix, tree, &hyb_shared_arena, &entry, HYB_ENTRY_KILLED);
	LWLockRelease(&cache->shared->lock);
}

/*
 * The flags are on the page already, so later readers of the page leave these
 * entries out.  A reader that saw the page without them holds the lock that is
 * waited for here, or has entered them into the tree.
 */
static void
read_collations(void *desc)
{
	hyb_desc_prepare_page(desc);
}

/*
 * Returns false if what the comparisons need cannot be had, as a collation that the
 * system has lost: VACUUM goes on.  False also if it cannot try that.
 */
static bool
can_compare(HybKeyDesc *desc)
{
	ErrorData  *error;

	if (!desc->unread)
		return true;
	if (!HYB_SUBTRANSACTIONS_ALLOWED())
		return false;
	error = hyb_catch_error(read_collations, desc);
	if (error != NULL)
		FreeErrorData(error);
	return error == NULL;
}

static void
flag_dead_entries(HybIndex *ix, HybTree *tree, HybArena *arena, const HybEntry *dead,
				  int ndead)
{
	for (int i = 0; i < ndead; i++)
		if (hyb_key_is_pure(ix->desc, dead[i].bytes, dead[i].keylen))
			flag_log_entry(ix, tree, arena, &dead[i], HYB_ENTRY_DEAD);
}

/* Entries that it cannot find in a tree go with the tree. */
void
hyb_log_mark_dead(HybIndex *ix, uint64 generation,
				  const HybEntry *dead, int ndead)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybOwnTrees *own = hyb_own_trees(cache);
	HybTree    *tree;

	if (own->stage != NULL && !hyb_own_trees_busy(own) &&
		(tree = hyb_stage_tree(own->stage, generation)) != NULL)
		flag_dead_entries(ix, tree, own->arena, dead, ndead);

	while (hyb_slot_find(cache))
	{
		HybSharedSlot *shared = cache->shared;
		bool		comparable = can_compare(ix->desc);

		hyb_arena_attach();
		if (comparable)
			hyb_desc_prepare_pure(ix->desc);
		LWLockAcquire(&shared->lock, LW_EXCLUSIVE);
		if (hyb_slot_valid(cache) && hyb_arena_attached())
		{
			tree = hyb_stage_tree(&shared->stage, generation);
			if (tree != NULL && !comparable)
				hyb_slot_clear_trees(shared);
			else if (tree != NULL)
				flag_dead_entries(ix, tree, &hyb_shared_arena, dead, ndead);
			LWLockRelease(&shared->lock);
			break;
		}
		LWLockRelease(&shared->lock);
	}
}

void
hyb_log_stats(HybIndex *ix, bool nowait, HybLogStats *stats)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybStage   *stage = hyb_own_trees(cache)->stage;

	memset(stats, 0, sizeof(*stats));
	if (stage == NULL && hyb_slot_find(cache))
	{
		hyb_arena_attach();
		if (!nowait)
			LWLockAcquire(&cache->shared->lock, LW_SHARED);
		else if (!LWLockConditionalAcquire(&cache->shared->lock, LW_SHARED))
		{
			stats->busy = true;
			stats->shared = true;
			stats->tree_bytes = cache->shared->tree_bytes;
			return;
		}
		if (hyb_slot_valid(cache))
			stage = &cache->shared->stage;
		else
			LWLockRelease(&cache->shared->lock);
		stats->shared = stage != NULL;
	}
	if (stage == NULL)
	{
		/* no entry was ever inserted: this backend's are all that is known */
		for (int i = 0; i < HYB_STAGE_COUNTERS; i++)
			stats->counters[i] = ((uint32 *) hyb_cache_piece_of(cache, &hyb_counters_piece))[i];
		return;
	}

	flush_counters(cache, stage, 0);
	stats->tree_bytes = hyb_stage_bytes(stage);
	for (int which = HYB_FROZEN; which <= HYB_ACTIVE; which++)
	{
		stats->tree_entries += stage->trees[which].nentries;
		stats->compact_entries += stage->trees[which].nlog;
	}
	stats->rebuilds = stage->rebuilds;
	for (int i = 0; i < HYB_STAGE_COUNTERS; i++)
		stats->counters[i] = pg_atomic_read_u64(&stage->counters[i]);
	if (stats->shared)
		LWLockRelease(&cache->shared->lock);
}

void
hyb_log_age_counters(HybIndex *ix, int first, int n)
{
	HybCache   *cache = hyb_cache_get(ix);

	Assert(first >= 0 && n >= 0 && first + n <= HYB_STAGE_COUNTERS);
	if (!hyb_slot_find(cache) ||
		!LWLockConditionalAcquire(&cache->shared->lock, LW_EXCLUSIVE))
		return;
	if (hyb_slot_valid(cache))
	{
		HybStage   *stage = &cache->shared->stage;

		for (int i = first; i < first + n; i++)
			pg_atomic_write_u64(&stage->counters[i],
								pg_atomic_read_u64(&stage->counters[i]) / 2);
	}
	LWLockRelease(&cache->shared->lock);
}
