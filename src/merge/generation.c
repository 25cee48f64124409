/*
 * generation.c
 *		A generation of the log from its freeze until its pages are free.
 *
 * A generation is active, then frozen while steps merge it, then retiring while
 * its pages go to the free list.  At most one is frozen and one retiring, and a
 * generation freezes only when there is neither.  The merge lock is held all
 * along; each change is one record of the metapage.
 */
#include "base/compat.h"

#include "log/delta.h"
#include "merge/facts.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "store/meta.h"
#include "utils/rel.h"

/*
 * Mark a lane's last page closed, and return its number of entries.  The
 * metapage is locked exclusively, so no backend can open a page behind it.
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
 * Enter a frozen generation's entries into the average, and decide how many
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
		/*
		 * what merges into the newest level rewrote does not tell about the
		 * rest
		 */
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

/* The merge of the frozen generation visits all leaves if that pays; in a critical section. */
static void
ask_for_stale(HybIndex *ix, HybMetaPage *meta)
{
	HybMergeFacts facts;

	hyb_merge_facts_of_meta(ix, meta, &facts);
	if (hyb_policy_stale(&facts))
		meta->flags |= HYB_META_COMPACT;
}

void
hyb_generation_settle(HybIndex *ix, HybMetaPage *meta, HybWalSet *set, Buffer metabuf)
{
	if (!ix->desc->chains)
		return;
	meta->settled_tids = hyb_meta_static(meta).tids;
	hyb_wal_meta_field(set, metabuf, settled_tids);
}

/*
 * Each lane's tail is closed under its page lock before the metapage changes.
 * So an append either got in before, and is part of the frozen generation; or
 * it finds the page closed, waits for the metapage and goes to the new
 * generation.  A crash in between leaves closed tails in the active generation,
 * which appenders treat as full.
 */
bool
hyb_generation_freeze(HybIndex *ix)
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
		/* one level and an empty log: the request to collapse is fulfilled */
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
	ask_for_stale(ix, meta);
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

void
hyb_generation_finish(HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	HybWalSet	set;

	Assert(meta->frozen.number != 0 && meta->retiring.number == 0 && meta->pass_level == 0);
	hyb_version_switch_begin(ix, meta, &set);
	meta->retiring = meta->frozen;
	hyb_generation_init(&meta->frozen, 0);
	meta->merges++;
	/* a quiet merge comes early: the next one will rewrite more */
	if (meta->nlevels > 1 || (meta->flags & HYB_META_UNEARNED) == 0)
		meta->rewritten_tids = meta->rewriting_tids;
	if (meta->rewriting_tids != HYB_REWRITTEN_UNKNOWN || meta->nlevels == 1)
		meta->rewriting_tids = 0;
	if (meta->nlevels > 1)
	{
		meta->pass_level = meta->nlevels - 1;
		meta->pass_stamp = meta->next_stamp;
		hyb_wal_meta_field(&set, metabuf, pass_stamp);
	}
	else
	{
		if ((meta->flags & HYB_META_COMPACTING) != 0)
			hyb_generation_settle(ix, meta, &set, metabuf);
		meta->flags &= ~(HYB_META_COMPACTING | HYB_META_QUIET | HYB_META_UNEARNED);
	}
	hyb_version_switch_end(ix, metabuf, &set, NULL);
}

void
hyb_generation_free(HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	HybGeneration retiring = meta->retiring;
	int			room = HYB_MAX_PENDING - (int) meta->npending;
	BlockNumber blocks[HYB_MAX_PENDING];
	int			n = 0;
	bool		more = false;
	HybDeltaWalk walk;
	HybWalSet	set;

	UnlockReleaseBuffer(metabuf);

	/* the walk checks for circular links, which would free a block twice */
	hyb_delta_walk_start(&walk, ix, &retiring, true);
	while (n < room && hyb_delta_walk_next(&walk))
	{
		Buffer		buf;

		if (!hyb_delta_walk_lock(&walk, &buf))
			hyb_corrupted(ix->rel, walk.block, "This is not the delta page that the log points to.");
		UnlockReleaseBuffer(buf);
		retiring.head[walk.lane] = walk.link;
		blocks[n++] = walk.block;
	}
	for (int lane = 0; lane < HYB_LANES; lane++)
		more |= BlockNumberIsValid(retiring.head[lane]);

	HYB_POINT("retire");
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	hyb_wal_begin(&set, ix->rel);
	START_CRIT_SECTION();
	/* the merge lock keeps both as they were */
	Assert(meta->retiring.number == retiring.number && retiring.npages >= n);
	Assert(meta->npending + n <= HYB_MAX_PENDING);
	meta->retiring = retiring;
	meta->retiring.npages -= n;
	if (!more)
		hyb_generation_init(&meta->retiring, 0);
	memcpy(meta->pending + meta->npending, blocks, n * sizeof(BlockNumber));
	meta->npending += n;
	hyb_wal_meta(&set, metabuf);
	hyb_wal_meta_pending(&set, metabuf);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);

	hyb_space_settle(ix);
}
