/*
 * catchup.c
 *		Bringing the trees up to date with the log.
 *
 * The log is the truth; a tree is what part of it has been read.  Per lane it
 * remembers the place in the log up to which it has read (applied), advanced
 * entry by entry, so an error between two entries loses nothing.  This one
 * mechanism serves ordinary inserts, first access after a restart, eviction,
 * and replay on a standby.
 *
 * How does a reader know that there is nothing to catch up with?
 *
 * On a primary, the shared slot says where each lane ends (appended).
 * Appenders write it after they append, and readers after they followed the
 * lane to its end, with the content lock of the lane's tail page held.  An
 * appender that finds no slot says nothing; but a slot is made before its
 * maker reads the pages, so what such an appender wrote is read then (see
 * index_cache.c).  Once all lanes have been followed to their ends (SYNCED),
 * applied = appended for all lanes means that the tree has every entry whose
 * append was over before the comparison.
 *
 * Without a shared slot, and in recovery, appends are not announced.  There
 * the reader looks at the tail pages themselves.
 *
 * Freezing closes the tail pages under their content locks and then switches
 * the metapage, all with the metapage locked.  A tree of the old generation
 * goes on as the frozen one from its applied places.  No page of that
 * generation is appended to after the switch.  So the tree is complete when
 * all lanes have been followed to their ends once more.
 *
 * VACUUM flags entries on the page first, and then in the trees that it finds
 * (fetch.c).  Reading the page and entering into the tree happen under one
 * exclusive hold of the slot's lock, so VACUUM comes either before the page is
 * read or after the entry is in the tree.  VACUUM cannot find the trees of a
 * standby, and backends' own.  These are begun anew when the metapage's vacuum
 * counter has changed.  Before that no line pointer of a removed entry is used
 * again.
 *
 * Memory: trees take chunks from the backend's pocket.  When that is empty
 * the slot is unlocked, more is reserved, and work goes on from the applied
 * places.  Where memory is short trees become compact as they take chunks
 * (docs/memory.md).
 */
#include "base/compat.h"

#include "log/delta.h"
#include "log/stage_access.h"
#include "store/meta.h"
#include "utils/rel.h"

/* ---- is there anything to do? ---- */

/* Does the slot tell where the lanes of the active generation end? */
static inline bool
announced(const HybStageAccess *access)
{
	return access->cache->shared != NULL && !access->cache->key.in_recovery;
}

/* Is VACUUM unaware of this stage? */
static inline bool
hidden_from_vacuum(const HybStageAccess *access)
{
	return access->shared == NULL || access->cache->key.in_recovery;
}

/* Do the pages themselves say that the active tree has all of them? */
static bool
tails_unchanged(HybIndex *ix, HybStageAccess *access,
				const HybVersion *version)
{
	for (int lane = 0; lane < HYB_LANES; lane++)
	{
		uint64		applied = access->stage->applied[HYB_ACTIVE][lane];
		Buffer		buf;
		bool		same;

		if (applied == 0)
		{
			if (BlockNumberIsValid(version->active.head[lane]))
				return false;
			continue;
		}
		buf = hyb_page_read(ix, hyb_lane_end_block(applied), InvalidBlockNumber);
		LockBuffer(buf, BUFFER_LOCK_SHARE);
		same = hyb_page_check(ix, buf, HYB_PAGE_DELTA, version->active.number) &&
			hyb_page_opaque(BufferGetPage(buf))->link == InvalidBlockNumber &&
			hyb_delta_is_end(BufferGetPage(buf), hyb_lane_end_offset(applied));
		UnlockReleaseBuffer(buf);
		if (!same)
			return false;
	}
	return true;
}

bool
hyb_stage_is_caught_up(HybIndex *ix, HybStageAccess *access,
					   const HybVersion *version, int want)
{
	const HybStage *stage = access->stage;

	Assert(access->shared == NULL || LWLockHeldByMe(&access->shared->lock));
	if (hidden_from_vacuum(access) &&
		stage->vacuum_counter < version->vacuum_counter)
		return false;
	if ((want & HYB_FETCH_FROZEN) &&
		(stage->trees[HYB_FROZEN].generation != version->frozen.number ||
		 !hyb_tree_is_synced(stage, HYB_FROZEN)))
		return false;
	if (want & HYB_FETCH_ACTIVE)
	{
		if (stage->trees[HYB_ACTIVE].generation != version->active.number ||
			!hyb_tree_is_synced(stage, HYB_ACTIVE))
			return false;
		if (!announced(access))
			return tails_unchanged(ix, access, version);
		if (access->hash != 0 && access->shared != NULL &&
			!hyb_unentered_maybe(&access->shared->unentered, access->hash))
			return true;
		for (int lane = 0; lane < HYB_LANES; lane++)
			if (hyb_slot_appended(access->cache->shared, version->active.number, lane) !=
				stage->applied[HYB_ACTIVE][lane])
				return false;

		/* was it this index's slot that we looked at?  If locked it was. */
		pg_read_barrier();
		return access->shared != NULL || hyb_slot_valid(access->cache);
	}
	return true;
}

/* ---- doing it ---- */

/*
 * Make the stage's trees those of the version's generations, emptied where
 * need be.  Returns false if the version is older than the stage.  The stage is
 * locked exclusively.
 */
static bool
turn_stage(HybStageAccess *access, const HybVersion *version)
{
	HybStage   *stage = access->stage;
	HybArena   *arena = access->arena;
	HybTree    *active = &stage->trees[HYB_ACTIVE];
	HybTree    *frozen = &stage->trees[HYB_FROZEN];

	Assert(access->shared == NULL ||
		   LWLockHeldByMeInMode(&access->shared->lock, LW_EXCLUSIVE));
	if (hidden_from_vacuum(access) &&
		stage->vacuum_counter < version->vacuum_counter)
	{
		hyb_stage_clear(stage, arena);
		stage->vacuum_counter = version->vacuum_counter;
	}
	if (active->generation > version->active.number)
		return false;

	if (active->generation != version->active.number)
	{
		if (active->generation != 0 &&
			active->generation == version->frozen.number)
			hyb_stage_freeze(stage, arena);
		hyb_stage_reset(stage, arena, HYB_ACTIVE, version->active.number);
	}
	if (frozen->generation != version->frozen.number)
		hyb_stage_reset(stage, arena, HYB_FROZEN, version->frozen.number);
	hyb_stage_assert_valid(stage);
	return true;
}

/*
 * Chunks that a tree gives up for one that it takes where memory is short: so
 * its copies of entries become fewer with every entry that comes.
 */
#define COMPACT_CHUNKS	2

/* A pocket with more chunks is given back. */
#define COMPACT_POCKET	8

/* Catching one tree up with its generation. */
typedef struct CatchUp
{
	HybIndex   *ix;
	HybStageAccess *access;
	const HybGeneration *generation;
	int			which;
	BlockNumber head[HYB_LANES];	/* first pages of the lanes */
	BlockNumber stale;			/* found to be no page of the generation */
} CatchUp;

/*
 * Find the first pages of the lanes.  Those of a frozen generation are in its
 * version; an active one may have got more lanes since the version was
 * captured.  The metapage is asked if there may be a lane to begin with, and
 * then waits for an appender that begins one (shared/unentered.h).  Returns
 * false if the generation is no longer the active one.
 */
static bool
find_heads(CatchUp *c)
{
	HybStageAccess *access = c->access;
	const HybStage *stage = access->stage;
	HybMetaPage *meta;
	Buffer		metabuf;
	bool		needed = false;
	bool		active;

	if (c->which == HYB_FROZEN || !announced(access))
	{
		memcpy(c->head, c->generation->head, sizeof(c->head));
		return true;
	}

	for (int lane = 0; lane < HYB_LANES; lane++)
	{
		c->head[lane] = InvalidBlockNumber;
		needed |= stage->applied[c->which][lane] == 0;
	}
	if (!needed)
		return true;
	metabuf = hyb_meta_lock(c->ix, BUFFER_LOCK_SHARE, &meta);
	active = meta->active.number == c->generation->number;
	memcpy(c->head, meta->active.head, sizeof(c->head));
	UnlockReleaseBuffer(metabuf);
	return active;
}

/*
 * The walk's page, copied from `from` on so that entries can be compared with
 * no page locked.  Returns false if the page is no longer one of the
 * generation.  Tells the slot if this is where the lane ends.
 */
static bool
copy_page(const CatchUp *c, HybDeltaWalk *walk, int lane, uint16 from,
		  char *copy)
{
	Buffer		buf;
	Page		page;
	uint16		lower;

	if (!hyb_delta_walk_lock(walk, &buf))
		return false;
	page = BufferGetPage(buf);
	lower = ((PageHeader) page)->pd_lower;
	if (from > lower)
		hyb_corrupted(c->ix->rel, walk->block,
					  "A delta page has become shorter.");
	/* the header of the first entry, which others are told beside, goes along */
	memcpy(copy, page, HYB_DELTA_FIRST + HYB_DELTA_HEADER);
	memcpy(copy + from, page + from, lower - from);
	if (c->which == HYB_ACTIVE && announced(c->access) &&
		!BlockNumberIsValid(walk->link))
		hyb_slot_publish(c->access->cache, walk->generation, lane,
						 hyb_lane_end(walk->block,
									  hyb_delta_end(c->ix->rel, page,
													walk->block, from)));
	UnlockReleaseBuffer(buf);
	return true;
}

/* Have a tree give up some of its oldest copies; false if it has none. */
static bool
compact_some(const HybTreeUse *use, bool all)
{
	int			n = 0;

	while (n < COMPACT_CHUNKS &&
		   (all || use->tree->oldest != use->tree->newest) &&
		   hyb_tree_compact(use))
		n++;
	if (use->arena->npocket > COMPACT_POCKET)
		hyb_arena_trim(use->arena);
	return n > 0;
}

/* Memory is short: the tree at hand gives some, or the one before it. */
static void
free_tree_memory(const CatchUp *c, const HybTreeUse *use)
{
	HybTree    *frozen = &c->access->stage->trees[HYB_FROZEN];

	if (!compact_some(use, false) && use->tree != frozen && frozen->oldest != 0)
	{
		HybTreeUse	frozen_use;
		HybLogReader reader;

		hyb_tree_use(&frozen_use, c->ix, frozen, use->arena, &reader);
		(void) compact_some(&frozen_use, true);
		hyb_log_reader_end(&reader);
	}
}

/* Insert; a tree that takes a chunk where memory is short becomes compact. */
static HybTreeResult
insert_entry(const CatchUp *c, const HybTreeUse *use, const HybEntry *entry)
{
	uint32		nchunks = use->tree->nchunks;
	HybTreeResult result = hyb_tree_insert(use, entry);

	if (unlikely((result == HYB_TREE_MEMORY || use->tree->nchunks != nchunks) &&
				 hyb_arena_is_scarce(use->arena)))
	{
		free_tree_memory(c, use);
		if (result == HYB_TREE_MEMORY && !use->log->stale)
			result = hyb_tree_insert(use, entry);
	}
	return result;
}

/* Enter the entries of a page's copy; *applied goes along. */
static HybStageResult
enter_page(CatchUp *c, const HybTreeUse *use, Page copy, uint64 *applied)
{
	HybEntry	entry = {
		.block = hyb_lane_end_block(*applied),
		.next = hyb_lane_end_offset(*applied)
	};

	if (c->ix->desc->exact)
		hyb_tree_bloom_grow(use->tree, use->arena);
	while (hyb_delta_next(c->ix->rel, copy, &entry))
	{
		if ((entry.flags & HYB_DELTA_DEAD) == 0)
		{
			HybTreeResult result;

			hyb_delta_key_length(c->ix, &entry);
			if (c->access->shared != NULL &&
				!hyb_key_is_pure(c->ix->desc, entry.bytes, entry.keylen))
			{
				hyb_tree_happens(c->access->stage, c->which, HYB_TREE_MEETS_IMPURE);
				return HYB_STAGE_IMPURE;
			}
			result = insert_entry(c, use, &entry);
			if (result != HYB_TREE_DONE)
				return result == HYB_TREE_MEMORY ? HYB_STAGE_MEMORY : HYB_STAGE_STALE;
		}
		Assert(hyb_lane_end(entry.block, entry.next) > *applied);
		*applied = hyb_lane_end(entry.block, entry.next);
		if (++c->access->nentered >= HYB_ENTER_ENTRIES)
			return HYB_STAGE_MORE;
	}
	while (unlikely(hyb_test_pressure != 0) &&
		   hyb_arena_is_scarce(use->arena) &&
		   hyb_tree_compact(use))
		 /* more */ ;
	return HYB_STAGE_READY;
}

/* Follow one lane to its end. */
static HybStageResult
catch_up_lane(CatchUp *c, int lane)
{
	HybStage   *stage = c->access->stage;
	uint64	   *applied = &stage->applied[c->which][lane];
	bool		anew = *applied == 0;
	uint16		from = HYB_DELTA_FIRST;
	HybDeltaWalk walk;
	PGAlignedBlock copy;
	HybTreeUse	use;
	HybLogReader reader;
	HybStageResult result = HYB_STAGE_READY;

	if (anew && !BlockNumberIsValid(c->head[lane]))
		return HYB_STAGE_READY;
	hyb_delta_walk_lane(&walk, c->ix, c->generation, c->which == HYB_FROZEN,
						anew ? c->head[lane] : hyb_lane_end_block(*applied),
						anew ? HYB_METAPAGE_BLKNO : InvalidBlockNumber);
	walk.npages = stage->npages[c->which];
	if (!anew)
	{
		from = hyb_lane_end_offset(*applied);
		walk.npages--;			/* this page was counted */
	}

	hyb_tree_use(&use, c->ix, &stage->trees[c->which], c->access->arena, &reader);
	while (result == HYB_STAGE_READY && hyb_delta_walk_next(&walk))
	{
		if (!copy_page(c, &walk, lane, from, copy.data))
		{
			c->stale = walk.block;
			result = HYB_STAGE_STALE;
			break;
		}
		stage->npages[c->which] = walk.npages;
		*applied = hyb_lane_end(walk.block, from);
		hyb_tree_happens(stage, c->which, HYB_TREE_ENTER);
		if (anew && lane == 0 && BlockNumberIsValid(walk.link))
			stage->rebuilds++;
		anew = false;
		from = HYB_DELTA_FIRST;
		result = enter_page(c, &use, (Page) copy.data, applied);
		if (reader.log.stale)
			c->stale = reader.lost;
	}
	hyb_log_reader_end(&reader);
	return result;
}

/* The wanted trees, one after the other. */
static HybStageResult
catch_up_trees(HybIndex *ix, HybStageAccess *access, const HybVersion *version,
			   int want)
{
	HybStage   *stage = access->stage;
	HybStageResult result = HYB_STAGE_READY;
	CatchUp		c = {
		.ix = ix,
		.access = access,
		.stale = InvalidBlockNumber
	};

	if (!turn_stage(access, version))
		return HYB_STAGE_STALE;
	HYB_POINT("enter-tree");

	for (c.which = HYB_FROZEN; c.which <= HYB_ACTIVE; c.which++)
	{
		c.generation = hyb_version_generation(version, c.which);
		if ((want & (1 << c.which)) == 0 || c.generation->number == 0 ||
			(c.which == HYB_FROZEN && hyb_tree_is_synced(stage, c.which)))
			continue;
		if (ix->desc->exact)
			hyb_tree_bloom_grow(&stage->trees[c.which], access->arena);
		if (!find_heads(&c))
			result = HYB_STAGE_STALE;
		for (int lane = 0; lane < HYB_LANES && result == HYB_STAGE_READY; lane++)
			result = catch_up_lane(&c, lane);
		if (result != HYB_STAGE_READY)
			break;
		hyb_tree_happens(stage, c.which, HYB_TREE_FOLLOWED);
		if (c.which == HYB_ACTIVE && access->shared != NULL && announced(access))
			hyb_unentered_caught_up(&access->shared->unentered);
		hyb_stage_assert_valid(stage);
		if (ix->desc->exact)
			hyb_tree_bloom_grow(&stage->trees[c.which], access->arena);
	}

	/* Pages are only used for something else after a change of version. */
	if (BlockNumberIsValid(c.stale) && hyb_version_is_current(ix, version))
		hyb_corrupted(ix->rel, c.stale,
					  "This is not the delta page that the log points to.");
	return result;
}

/*
 * After an error the stage has what was read before, and its size is known, so
 * that it can be evicted.
 */
HybStageResult
hyb_stage_catch_up(HybIndex *ix, HybStageAccess *access,
				   const HybVersion *version, int want)
{
	HybStageResult volatile result = HYB_STAGE_STALE;

	if (!access->brief)
		access->nentered = 0;
	if (access->shared == NULL)
		return catch_up_trees(ix, access, version, want);
	PG_TRY();
	{
		result = catch_up_trees(ix, access, version, want);
	}
	PG_FINALLY();
	{
		access->shared->tree_bytes = hyb_stage_bytes(access->stage);
	}
	PG_END_TRY();
	return result;
}
