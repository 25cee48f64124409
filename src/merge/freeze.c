/*
 * freeze.c
 *		The merge lock; closing the active generation.
 */
#include "base/compat.h"

#include "access/parallel.h"
#include "access/xlog.h"
#include "base/server.h"
#include "catalog/pg_class.h"
#include "log/delta.h"
#include "merge/facts.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "store/meta.h"
#include "utils/rel.h"

/*
 * The sub-object of the index that stands for the merge lock.  The server
 * locks objects with sub-object 0 only, and relations by another kind of tag.
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
	 * Members of a lock group do not keep each other from an object. VACUUM's
	 * have an index each.
	 */
	Assert(!IsParallelWorker() || (MyProc->statusFlags & PROC_IN_VACUUM) != 0);
	merge_lock_tag(index, &tag);
	if (!wait)
		return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
	hyb_lock_for_a_moment(&tag);
	return true;
}

void
hyb_merge_unlock(Relation index)
{
	LOCKTAG		tag;

	HYB_ASSERT_NO_LWLOCK();
	merge_lock_tag(index, &tag);
	LockRelease(&tag, ExclusiveLock, false);
}

bool
hyb_merge_lock_wanted(Relation index)
{
	LOCKTAG		tag;

	merge_lock_tag(index, &tag);
	return LockHasWaiters(&tag, ExclusiveLock, false);
}

/*
 * Mark a lane's last page closed; returns the entries on it.  The metapage is
 * locked exclusively, so no backend can open another page behind it.
 */
static uint32
close_lane(HybIndex *ix, BlockNumber block, uint64 generation)
{
	Buffer		buf = hyb_page_lock(ix, block, HYB_METAPAGE_BLKNO,
									BUFFER_LOCK_EXCLUSIVE, HYB_PAGE_DELTA,
									generation);
	HybPageOpaque *opaque;
	HybWalSet	set;
	uint32		count;

	if (!BufferIsValid(buf))
		hyb_corrupted(ix->rel, block, "This is not the delta page that the log points to.");
	opaque = hyb_page_opaque(BufferGetPage(buf));
	count = hyb_delta_count(ix->rel, BufferGetPage(buf), block);
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	opaque->count = count;
	opaque->flags |= HYB_DELTA_CLOSED;
	hyb_wal_opaque(&set, buf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buf);
	return count;
}

/*
 * Entries of a generation that is frozen join the average, and tell how many
 * levels there should be.  In a critical section.
 */
static void
set_levels(HybIndex *ix, HybMetaPage *meta, uint64 entries)
{
	HybMergeFacts facts;

	if ((meta->flags & (HYB_META_COMPACT | HYB_META_COLLAPSE)) == 0)
		meta->freeze_entries = meta->freeze_entries == 0 ? entries :
			(meta->freeze_entries * 3 + entries) / 4;
	hyb_merge_facts_of_meta(ix, meta, &facts);
	if (hyb_test_levels > 1)
		meta->wanted_levels = Min(meta->nlevels + 1, hyb_test_levels);
	else if ((meta->flags & (HYB_META_COMPACT | HYB_META_COLLAPSE)) != 0)
	{
		/* what merges into the newest level rewrite says nothing of the rest */
		meta->wanted_levels = 1;
		if (meta->nlevels > 1)
			meta->rewriting_tids = HYB_REWRITTEN_UNKNOWN;
	}
	else
		meta->wanted_levels = hyb_policy_levels(&facts);

	/* a visit of all leaves is for the level that was the newest one */
	if (meta->nlevels < meta->wanted_levels &&
		hyb_meta_newest(meta)->root.height > 0 &&
		(meta->flags & HYB_META_COMPACT) == 0)
		hyb_level_init(&meta->levels[meta->nlevels++]);
	meta->wanted_levels = Min(meta->wanted_levels, meta->nlevels);
	Assert(meta->wanted_levels >= 1 && meta->nlevels <= HYB_MAX_LEVELS);
}

/*
 * Contract in merge.h.
 *
 * Each lane's tail is closed under its page lock before the metapage changes,
 * so an append either got in before, and is part of the frozen generation, or
 * finds the page closed, waits for the metapage and goes to the new one.  A
 * crash in between leaves closed tails in the active generation: appenders
 * then treat them as full.
 */
bool
hyb_merge_freeze(HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	HybWalSet	set;
	uint64		entries = meta->active.nentries;

	Assert(meta->frozen.number == 0 && meta->retiring.number == 0 &&
		   meta->pass_level == 0);
	if ((meta->flags & (HYB_META_COMPACTING | HYB_META_MOVING)) != 0)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO,
					  "There is no merge, but the metapage has flags of one.");

	if (meta->active.npages == 0 && (meta->flags & HYB_META_COMPACT) == 0 &&
		((meta->flags & HYB_META_COLLAPSE) == 0 || meta->nlevels == 1))
	{
		/* there is one level, and nothing to merge: nobody asks for it again */
		if ((meta->flags & HYB_META_COLLAPSE) != 0)
			hyb_meta_change_flags(ix, metabuf, 0, HYB_META_COLLAPSE | HYB_META_QUIET);
		UnlockReleaseBuffer(metabuf);
		return false;
	}
	for (int lane = 0; lane < HYB_LANES; lane++)
		if (BlockNumberIsValid(meta->active.tail[lane]))
			entries += close_lane(ix, meta->active.tail[lane],
								  meta->active.number);
	HYB_POINT("freeze-closed");

	hyb_version_switch_begin(ix, meta, &set);
	meta->frozen = meta->active;
	meta->frozen.nentries = entries;
	hyb_generation_init(&meta->active, meta->next_generation++);
	set_levels(ix, meta, entries);
	if ((meta->flags & HYB_META_COMPACT) != 0)
		meta->flags |= HYB_META_COMPACTING;
	meta->flags &= ~(HYB_META_COMPACT | HYB_META_COLLAPSE);
	if ((meta->flags & HYB_META_QUIET) != 0)
	{
		meta->earned_pages = 0;
		meta->flags |= HYB_META_UNEARNED;
	}
	hyb_version_switch_end(ix, metabuf, &set, NULL);
	return true;
}
