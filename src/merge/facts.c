/*
 * facts.c
 *		The merge lock, and the facts of an index that the merge policy decides
 *		by.
 */
#include "base/compat.h"

#include "access/parallel.h"
#include "access/xlog.h"
#include "base/server.h"
#include "catalog/pg_class.h"
#include "log/delta.h"
#include "log/log.h"
#include "memtree/memtree.h"
#include "merge/facts.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "store/settings.h"
#include "tree/descend.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Most leaves a step reads, whatever merge_step_pages says (HYB_MAX_PENDING). */
#define HYB_STEP_MAX_LEAVES		64

/*
 * Where each backend that reads the log has a tree of it, since comparisons are not
 * pure (key/pure.h), the log may take this part of what it may take otherwise.
 */
#define PRIVATE_PART			16

/*
 * Merges of hybrid_hot wait CHAINS_PATIENCE times as long as others.  With the default
 * merge_ratio the log has half as many entries as the levels then.  So each merge pays
 * for a look at stale ones.
 */
#define CHAINS_PATIENCE			4

/* ---- the merge lock: merge.h says what it is for ---- */

/*
 * The sub-object of the index that stands for the merge lock.  The server locks
 * objects with sub-object 0 only, and relations with another kind of tag.
 */
#define HYB_MERGE_LOCK_SUBID	0x4859

static void
merge_lock_tag(Relation index, LOCKTAG *tag)
{
	SET_LOCKTAG_OBJECT(*tag, MyDatabaseId, RelationRelationId,
					   RelationGetRelid(index), HYB_MERGE_LOCK_SUBID);
}

bool
hyb_merge_lock(Relation index, bool wait)
{
	LOCKTAG		tag;

	Assert(!RecoveryInProgress());

	/*
	 * Members of a lock group do not conflict on an object.  Those of a
	 * parallel VACUUM work on different indexes.
	 */
	Assert(!IsParallelWorker() || (MyProc->statusFlags & PROC_IN_VACUUM) != 0);
	merge_lock_tag(index, &tag);
	return hyb_lock_for_a_moment(&tag, wait);
}

void
hyb_merge_unlock(Relation index)
{
	LOCKTAG		tag;

	HYB_ASSERT_NO_LWLOCK();
	merge_lock_tag(index, &tag);
	hyb_unlock_after_moment(&tag);
}

/* Does another process wait for the lock, which this one has? */
static bool
lock_is_wanted(Relation index)
{
	LOCKTAG		tag;

	merge_lock_tag(index, &tag);
	return LockHasWaiters(&tag, ExclusiveLock, false);
}

/*
 * A process that waits for the caller's merge lock may have the index locked.
 * That is a deadlock until this process gives up.  So it gives up before the
 * other one looks for deadlocks, after deadlock_timeout.
 */
static bool
lock_index(Relation index, int wait_ms)
{
	if (wait_ms == 0 || wait_ms >= DeadlockTimeout || lock_is_wanted(index))
		return ConditionalLockRelation(index, AccessExclusiveLock);
	LockRelation(index, AccessExclusiveLock);
	return true;
}

typedef struct Exclusive
{
	HybIndex   *ix;
	int			wait_ms;
	void		(*work) (HybIndex *ix, void *arg);
	void	   *arg;
	bool		locked;
} Exclusive;

static void
work_exclusively(void *arg)
{
	Exclusive  *exclusive = arg;

	exclusive->locked = lock_index(exclusive->ix->rel, exclusive->wait_ms);
	if (exclusive->locked && exclusive->work != NULL)
		exclusive->work(exclusive->ix, exclusive->arg);
}

/* A standby would keep a lock of the transaction until that ends. */
bool
hyb_merge_exclusively(HybIndex *ix, int wait_ms,
					  void (*work) (HybIndex *ix, void *arg), void *arg)
{
	Exclusive	exclusive = {.ix = ix,.wait_ms = wait_ms,.work = work,.arg = arg};
	ErrorData  *error;

	/* the server reports the ends of subtransactions, too */
	hyb_mute_begin();
	error = hyb_in_subtransaction(work_exclusively, &exclusive, Max(wait_ms, HYB_SHORT_WAIT_MS));
	hyb_mute_end();
	if (error != NULL)
	{
		if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE &&
			error->sqlerrcode != ERRCODE_T_R_DEADLOCK_DETECTED)
			ReThrowError(error);
		FreeErrorData(error);
	}
	return exclusive.locked;
}

/* ---- facts ---- */

bool
hyb_merge_learnable(const HybMetaPage *meta)
{
	HybLevel	total = hyb_meta_static(meta);

	return (meta->flags & HYB_META_PLAIN) != 0 &&
		total.leaf_pages + total.inner_pages + total.filter_pages <=
		HYB_LEARN_MAX_PAGES;
}

void
hyb_merge_facts_of_meta(const HybIndex *ix, const HybMetaPage *meta,
						HybMergeFacts *facts)
{
	HybLevel	total = hyb_meta_static(meta);
	const HybLevel *newest = &meta->levels[meta->nlevels - 1];

	memset(facts, 0, sizeof(*facts));
	facts->active_entries = meta->active.nentries;
	facts->active_pages = meta->active.npages;
	facts->frozen_entries = meta->frozen.nentries;
	facts->merging_pages = meta->frozen.npages + meta->retiring.npages;
	facts->merged_entries = meta->merged_entries + meta->moved_entries;
	facts->unfinished = meta->frozen.number != 0 ||
		meta->retiring.number != 0 || meta->pass_level != 0;
	facts->static_tids = total.tids;
	facts->tombstones = total.tombstones;
	facts->chains = ix->desc->chains;
	facts->settled_tids = meta->settled_tids;
	facts->static_pages = total.leaf_pages + total.inner_pages;
	facts->level_tids = newest->tids;
	/* with several levels a merge is as large as memory allows */
	facts->rewritten_tids = meta->nlevels > 1 ? total.tids : meta->rewritten_tids;
	facts->newer_tids = total.tids - meta->levels[0].tids;
	facts->newer_leaves = total.leaf_pages - meta->levels[0].leaf_pages;
	facts->oldest_leaves = meta->levels[0].leaf_pages;
	facts->free_pages = (uint64) meta->free_blocks + meta->cut_blocks + meta->npending;
	facts->file_pages = 1 + total.leaf_pages + total.inner_pages +
		total.filter_pages + meta->active.npages + meta->frozen.npages +
		meta->retiring.npages + facts->free_pages;
	facts->earned_pages = meta->earned_pages;
	facts->nlevels = meta->nlevels;
	facts->max_levels = HYB_MAX_LEVELS;
	if (hyb_levels_option(ix->rel) != HYB_LEVELS_AUTO)
		facts->max_levels = hyb_levels_option(ix->rel);
	facts->freeze_entries = meta->freeze_entries;
	facts->leaves = newest->leaf_pages;
	facts->visit_asked = (meta->flags & (HYB_META_COMPACT | HYB_META_COLLAPSE)) != 0;
	facts->learnable = hyb_merge_learnable(meta);
	facts->together = hyb_slot_together(ix);
	facts->page_bytes = BLCKSZ;
	facts->ratio = ix->desc->chains ? Max(hyb_merge_ratio(ix->rel) / CHAINS_PATIENCE, 1) :
		hyb_merge_ratio(ix->rel);
	facts->floor = hyb_merge_floor;
	facts->step_leaves = Min(hyb_merge_step_pages, HYB_STEP_MAX_LEAVES);
}

uint64
hyb_merge_tail_entries(HybIndex *ix, const HybGeneration *active)
{
	uint64		entries = 0;

	for (int lane = 0; lane < HYB_LANES; lane++)
	{
		BlockNumber block = active->tail[lane];
		Buffer		buf = InvalidBuffer;

		if (BlockNumberIsValid(block))
			buf = hyb_page_lock(ix, block, HYB_METAPAGE_BLKNO, BUFFER_LOCK_SHARE,
								HYB_PAGE_DELTA, active->number);
		if (!BufferIsValid(buf))
			continue;
		entries += hyb_delta_count(ix->rel, BufferGetPage(buf), block);
		UnlockReleaseBuffer(buf);
	}
	return entries;
}

HybMergeNeed
hyb_merge_need(HybIndex *ix, HybMergeFacts *facts)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	HybGeneration active = meta->active;
	HybCache   *cache = hyb_cache_get(ix);
	bool		known;

	hyb_merge_facts_of_meta(ix, meta, facts);
	UnlockReleaseBuffer(metabuf);

	facts->active_entries += hyb_merge_tail_entries(ix, &active);
	facts->memory_budget = hyb_arena_tree_budget();
	facts->memory_used = hyb_arena_tree_used();
	facts->elastic = hyb_tree_elastic(ix->desc);

	/* the slot is not locked: hints */
	known = hyb_slot_find(cache);
	facts->does_not_fit = known && hyb_stage_lacks_room(&cache->shared->stage, active.number);
	/* looks at all slots */
	if (hyb_memory_is_short(facts))
		facts->largest_tree = known && cache->shared->tree_bytes > 0 &&
			cache->shared->tree_bytes >= hyb_slots_largest();
	if (ix->desc->pure == HYB_IMPURE ||
		(known && hyb_stage_is_impure(&cache->shared->stage, active.number)))
		facts->memory_budget /= PRIVATE_PART;
	return hyb_policy_need(facts);
}

bool
hyb_merge_wanted(HybIndex *ix)
{
	HybMergeFacts facts;
	HybMergeNeed need = hyb_merge_need(ix, &facts);

	return need.finish || need.freeze;
}

static void
change_flags(HybIndex *ix, uint32 set_flags, uint32 clear_flags)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);

	hyb_meta_change_flags(ix, metabuf, set_flags, clear_flags);
	UnlockReleaseBuffer(metabuf);
}

void
hyb_merge_request_joins(HybIndex *ix)
{
	HybMetaPage copy;
	HybMergeFacts facts;
	double		fill;

	hyb_meta_copy(ix, &copy);
	hyb_merge_facts_of_meta(ix, &copy, &facts);
	facts.leaves = hyb_meta_static(&copy).leaf_pages;
	if ((copy.flags & (HYB_META_COMPACT | HYB_META_COMPACTING)) != 0 ||
		!hyb_policy_join(&facts, 0) ||
		!hyb_static_fill(ix, &fill) || !hyb_policy_join(&facts, fill))
		return;

	change_flags(ix, HYB_META_COMPACT, 0);
}

void
hyb_merge_request_settling(HybIndex *ix, double rows)
{
	HybMetaPage copy;
	HybMergeFacts facts;

	/* nothing is dropped before the index is valid */
	if (!ix->desc->chains || !ix->rel->rd_index->indisvalid)
		return;
	hyb_meta_copy(ix, &copy);
	hyb_merge_facts_of_meta(ix, &copy, &facts);
	if ((copy.flags & (HYB_META_COMPACT | HYB_META_COMPACTING)) == 0 &&
		hyb_policy_settle(&facts, rows))
		change_flags(ix, HYB_META_COMPACT, 0);
}

void
hyb_merge_request_collapse(HybIndex *ix)
{
	HybMetaPage copy;

	hyb_meta_copy(ix, &copy);
	if (copy.nlevels > 1 || copy.active.npages > 0)
		change_flags(ix, HYB_META_COLLAPSE, HYB_META_QUIET);
}

void
hyb_merge_request_quiet(HybIndex *ix)
{
	change_flags(ix, HYB_META_COLLAPSE | HYB_META_QUIET, 0);
}
