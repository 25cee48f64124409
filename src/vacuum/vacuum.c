/*
 * vacuum.c
 *		Bulk deletion and cleanup.
 *
 * A dead entry may lie in a static leaf, or in the frozen or the active
 * generation, and a merge running beside VACUUM may carry it from the frozen
 * generation into a leaf, or from one leaf into another.  Bulk deletion is
 * three passes:
 *
 * Pass 1 takes a cleanup lock on every page that is or was a leaf or a delta
 * page.  Dead entries of leaves get tombstones, those of delta pages a dead
 * flag.  It goes over the log first, one lane after the other, and then over
 * all other blocks in physical order.
 *
 * Pass 2 walks the key range through the internal nodes, in units, of one
 * static level after the other, from the newest to the oldest.  In each it
 * holds the merge lock, so that entries stand still, takes up the version that
 * is current then where the unit before has ended, treats the leaves that were
 * built since the survey at the beginning (children with a stamp that is not
 * older), and counts tombstones.
 *
 * Pass 3 waits, without any lock, for pins on the leaves built during pass 1.
 *
 * Why that reaches every dead entry: heap TIDs that VACUUM wants removed are
 * LP_DEAD line pointers, which nobody can use again before bulk deletion has
 * returned; so no entry with such a TID is inserted meanwhile, and at the time
 * of the survey each of them lay in a block that existed then, in a leaf of
 * the current tree or in a delta page of the frozen or active generation.  An
 * entry of a delta page never moves to another delta page: pages of
 * generations begun later, and entries appended to pages already visited,
 * are all new.  If no merge step takes the entry from where it lies until
 * pass 1 has come by, pass 1 finds it there (no page with current entries is
 * rewritten in place).  Else the step wrote it into a leaf, and that leaf, or
 * a later one that it was carried on to, is in the tree in pass 2 with a
 * stamp not older than the survey's.
 *
 * Steps keep entries in their places in the order of keys, and between units
 * of pass 2 they may carry an entry to a new leaf, of the same level or of an
 * older one.  If its place there has not been reached yet, a later unit finds
 * it there.  Nor can one appear where pass 2 has been: leaves there hold no
 * dead entry without a tombstone; and from the dynamic stage none is moved any
 * more, because pass 1 has flagged them all, in the log and in the shared
 * trees, and trees of single backends, which may not know of it, are dropped:
 * for that the vacuum counter goes up before the first unit lets go of the
 * merge lock.  So after pass 2 no current page holds the entry without its
 * mark, and no later step can carry it on.
 *
 * Why that waits for every index-only scan (and non-MVCC scan) that holds a
 * dead TID: such a scan has the page that it took the entry from pinned, or, if
 * that is a delta page, a leaf instead, pinned before it looked at the log; and
 * pinned pages are never reused, so the page is still what it was, be it
 * retired or not.  Pages that existed at the time of the survey are waited for
 * in pass 1, leaves built later, up to the end of pass 2, in pass 3.  Waiting
 * under the merge lock is no option: the scan's own backend may want the merge
 * lock for an insertion, and nothing would see that deadlock.  After a page
 * was treated, a scan takes no dead entry from it any more.  The log has to come
 * before the leaves, or a scan could pin a leaf that was treated, and then take
 * an entry of the log that is yet to be flagged (docs/vacuum.md).
 */
#include "base/compat.h"

#include "access/genam.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "hot/hot.h"
#include "leaf/leaf.h"
#include "log/delta.h"
#include "merge/facts.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "store/handle.h"
#include "store/meta.h"
#include "store/survey.h"
#include "tree/update.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "vacuum/adopt.h"
#include "vacuum/vacuum.h"
#include "vacuum/vacuum_shrink.h"

/* leaf_state[]: tombstones of the leaf, as pass 1 left it, and a flag */
#define LEAF_TOMBSTONES_MASK	0x7FFF
#define LEAF_ALL_DEAD			0x8000

StaticAssertDecl(HYB_LEAF_MAX_ITEMS <= LEAF_TOMBSTONES_MASK,
				 "tombstone counts must fit leaf_state");

/* Leaves that pass 2 treats while the merge lock is held once */
#define UNIT_TREATED		32

/* Entries that fit a delta page */
#define MAX_DELTA_ENTRIES	(HYB_PAGE_CAPACITY / HYB_DELTA_MIN_ENTRY)

typedef struct HybVacuum
{
	IndexVacuumInfo *info;
	IndexBulkDeleteResult *stats;
	IndexBulkDeleteCallback callback;
	void	   *callback_state;
	HybIndex   *ix;
	HybSurvey	survey;			/* as of the beginning */
	HybVersion *version;		/* of the survey */
	uint64		old_stamp;		/* leaves with a smaller stamp were complete
								 * when the survey was taken */
	uint16	   *leaf_state;		/* by block */
	uint8	   *done;			/* bitmap of the blocks that pass 1 has come
								 * to in the log */

	/* pass 2 */
	int			level;			/* pass 2: level at hand, -1: none yet */
	HybPos		at;				/* where the next unit begins in it */
	HybBuf		at_key;			/* its key */
	uint64		end_stamp;		/* of the step that follows pass 2 */
	bool		moved;			/* there was a step since the survey */

	/* results */
	uint64		dynamic_live;	/* live entries of the dynamic stage */
	uint64		tombstones;		/* of the leaves of the unit at hand */
	uint64		leaves;
	uint64		dead_leaves;	/* all TIDs are tombstones */

	/* work space */
	MemoryContext page_context; /* reset for every page */
	HybLeaf		leaf;
	ItemPointerData *tids;
	int		   *items;
	HybEntry   *dead;			/* of a delta page, as it was */
	int			ndead;
	uint32	   *key_offsets;	/* of dead[i].bytes in keys */
	HybBuf		keys;
	uint16	   *offsets;		/* of entries that get the dead flag */
} HybVacuum;

/*
 * Set tombstones for the dead items of a leaf.  The caller holds it
 * exclusively locked.  Returns its leaf_state.
 */
static uint16
vacuum_leaf(HybVacuum *v, Buffer buf)
{
	Page		page = BufferGetPage(buf);
	HybLeaf    *leaf = &v->leaf;
	int			ntombstones = 0;
	int			ndead = 0;

	hyb_leaf_open(leaf, v->ix->desc, page, v->ix->rel,
				  BufferGetBlockNumber(buf));
	hyb_leaf_tids(leaf, 0, leaf->nitems, v->tids);
	for (int i = 0; i < leaf->nitems; i++)
	{
		if (hyb_leaf_is_tombstone(leaf, i))
			ntombstones++;
		else if (v->callback(&v->tids[i], v->callback_state))
			v->items[ndead++] = i;
	}

	if (ndead > 0)
	{
		HybWalSet	set;
		uint16		offset;
		uint16		length;

		hyb_wal_begin(&set, v->ix->rel);
		START_CRIT_SECTION();
		hyb_leaf_set_tombstones(page, v->items, ndead, &offset, &length);
		hyb_wal_range(&set, buf, offset, length);
		hyb_wal_lower(&set, buf);
		hyb_wal_opaque(&set, buf);
		hyb_wal_commit(&set);
		END_CRIT_SECTION();
		v->stats->tuples_removed += ndead;
		ntombstones += ndead;
		Assert(hyb_leaf_count_tombstones(page) == ntombstones);
	}
	Assert(ntombstones <= leaf->nitems && ndead <= ntombstones);
	return ntombstones |
		(leaf->nitems > 0 && ntombstones == leaf->nitems ? LEAF_ALL_DEAD : 0);
}

/*
 * Collect the entries of a delta page whose TIDs are dead in v->dead.  Returns
 * how many are alive.
 *
 * Entries that carry the flag already are passed on to the tree too: a VACUUM
 * that was cancelled may not have come to that.
 */
static int
collect_dead_entries(HybVacuum *v, Page page, BlockNumber blkno)
{
	HybEntry	entry = {.block = blkno};
	int			nlive = 0;

	v->keys.len = 0;
	v->ndead = 0;
	while (hyb_delta_next(v->ix->rel, page, &entry))
	{
		HybEntry   *dead = &v->dead[v->ndead];

		if (!v->callback(&entry.tid, v->callback_state))
		{
			if ((entry.flags & HYB_DELTA_DEAD) == 0)
				nlive++;
			continue;
		}
		Assert(v->ndead < MAX_DELTA_ENTRIES);
		hyb_delta_key_length(v->ix, &entry);
		*dead = entry;
		v->key_offsets[v->ndead++] = v->keys.len;
		hyb_buf_append(&v->keys, entry.bytes, entry.keylen);
	}
	for (int i = 0; i < v->ndead; i++)
		v->dead[i].bytes = v->keys.data + v->key_offsets[i];
	return nlive;
}

/*
 * Flag those of v->dead on their page that are not flagged.  The caller holds
 * it exclusively locked.
 */
static void
flag_dead(HybVacuum *v, Buffer buf)
{
	Page		page = BufferGetPage(buf);
	int			nflags = 0;
	int			per_range;
	HybWalSet	set;

	for (int i = 0; i < v->ndead; i++)
		if ((v->dead[i].flags & HYB_DELTA_DEAD) == 0)
			v->offsets[nflags++] = v->dead[i].offset;
	if (nflags == 0)
		return;

	/* neighbouring flags share a range where there are too many; they ascend */
	Assert(nflags <= MAX_DELTA_ENTRIES && nflags <= v->ndead);
	per_range = (nflags + HYB_WAL_MAX_RANGES - 1) / HYB_WAL_MAX_RANGES;
	hyb_wal_begin(&set, v->ix->rel);
	START_CRIT_SECTION();
	for (int i = 0; i < nflags; i++)
		((uint8 *) page)[v->offsets[i]] |= HYB_DELTA_DEAD;
	for (int i = 0; i < nflags; i += per_range)
	{
		int			last = Min(i + per_range, nflags) - 1;

		Assert(v->offsets[last] >= v->offsets[i]);
		hyb_wal_range(&set, buf, v->offsets[i],
					  v->offsets[last] - v->offsets[i] + 1);
	}
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
}

/*
 * Flag the dead entries of a delta page, and count the live ones; takes over
 * the caller's cleanup lock and pin.
 */
static void
vacuum_delta(HybVacuum *v, Buffer buf)
{
	BlockNumber blkno = BufferGetBlockNumber(buf);
	Page		page = BufferGetPage(buf);
	uint64		generation = hyb_page_opaque(page)->stamp;
	bool		frozen = generation == v->version->frozen.number;
	const HybPos *watermark = &v->version->watermark;
	MemoryContext old_context;
	char	   *copy = NULL;
	int			nlive;

	/* of a generation merged before, or begun since */
	if (generation != v->version->active.number && !frozen)
	{
		UnlockReleaseBuffer(buf);
		return;
	}
	nlive = collect_dead_entries(v, page, blkno);
	flag_dead(v, buf);

	old_context = MemoryContextSwitchTo(v->page_context);
	if (frozen && nlive > 0)
	{
		copy = palloc(BLCKSZ);
		memcpy(copy, page, BLCKSZ);
	}
	UnlockReleaseBuffer(buf);

	/*
	 * What compares keys may run user code, and waits until here.  Entries up
	 * to the watermark are not in the dynamic stage any more.
	 */
	if (v->ndead > 0)
	{
		HYB_POINT("vacuum-flagged");
		for (int i = 0; i < v->ndead; i++)
		{
			const HybEntry *dead = &v->dead[i];

			if ((dead->flags & HYB_DELTA_DEAD) == 0 &&
				(!frozen ||
				 hyb_pos_compare_key(v->ix->desc, dead->bytes, dead->keylen,
									 &dead->tid, watermark) > 0))
				v->stats->tuples_removed += 1;
		}
		hyb_dynamic_mark_dead(v->ix, generation, v->dead, v->ndead);
	}
	if (copy != NULL)
		nlive = hyb_delta_count_live(v->ix, (Page) copy, blkno, watermark);
	v->dynamic_live += nlive;
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(v->page_context);
}

/*
 * A cleanup lock on a block of the stream.  Whoever has it pinned may keep it
 * so for hours; nothing else is kept from being used again meanwhile.
 */
static void
lock_for_cleanup(HybBlockStream *stream, Buffer buf)
{
	if (ConditionalLockBufferForCleanup(buf))
		return;
	hyb_block_stream_unpin(stream);
	LockBufferForCleanup(buf);
}

/*
 * Pass 1 for one block.  Takes over the pin.
 */
static void
vacuum_block(HybVacuum *v, HybBlockStream *stream, Buffer buf)
{
	BlockNumber blkno = BufferGetBlockNumber(buf);
	Page		page = BufferGetPage(buf);
	uint16		kind;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	if (PageIsNew(page))
	{
		UnlockReleaseBuffer(buf);
		return;
	}
	(void) hyb_page_check(v->ix, buf, HYB_PAGE_LEAF, 0);
	kind = hyb_page_opaque(page)->kind;
	if (kind != HYB_PAGE_LEAF && kind != HYB_PAGE_DELTA)
	{
		/* scans do not keep pins on these, and pinned pages are not reused */
		UnlockReleaseBuffer(buf);
		return;
	}

	/*
	 * Our pin keeps the block from being reused from here on, but it may have
	 * happened before we had it locked again.
	 */
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);
	lock_for_cleanup(stream, buf);
	if (PageIsNew(page))
	{
		UnlockReleaseBuffer(buf);
		return;
	}
	(void) hyb_page_check(v->ix, buf, HYB_PAGE_LEAF, 0);
	kind = hyb_page_opaque(page)->kind;

	/* what was free when we began holds no current entry but new ones */
	if (hyb_survey_is_free(&v->survey, blkno))
		UnlockReleaseBuffer(buf);
	else if (kind == HYB_PAGE_DELTA)
		vacuum_delta(v, buf);
	else
	{
		if (kind == HYB_PAGE_LEAF)
			v->leaf_state[blkno] = vacuum_leaf(v, buf);
		UnlockReleaseBuffer(buf);
	}
}

/*
 * The part of pass 1 that goes over the log: each lane of a generation up to its
 * last page when the survey was taken.  If the generation is merged away
 * meanwhile then so are its entries, into leaves that pass 2 comes to.
 */
static void
vacuum_log(HybVacuum *v, const HybGeneration *generation)
{
	HybDeltaWalk walk;
	Buffer		buf;

	hyb_delta_walk_start(&walk, v->ix, generation, false);
	while (hyb_delta_walk_next(&walk) && hyb_delta_walk_lock(&walk, &buf))
	{
		/* the pin keeps the page what it is */
		LockBuffer(buf, BUFFER_LOCK_UNLOCK);
		LockBufferForCleanup(buf);
		vacuum_delta(v, buf);
		if (walk.block < v->survey.nblocks)
			v->done[walk.block >> 3] |= 1 << (walk.block & 7);
		if (walk.block == generation->tail[walk.lane])
			walk.link = InvalidBlockNumber;
		HYB_VACUUM_DELAY_POINT();
	}
}

/*
 * The rest of pass 1, over the blocks that there were when the survey was
 * taken.  Their order does not matter; this one is read fastest.
 */
static void
vacuum_blocks(HybVacuum *v)
{
	HybBlockStream stream;
	Buffer		buf;

	if (v->info->report_progress)
		pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL,
									 v->survey.nblocks);
	hyb_block_stream_begin(&stream, v->ix->rel, 1, v->survey.nblocks, v->done,
						   v->info->strategy);
	while ((buf = hyb_block_stream_next(&stream)) != InvalidBuffer)
	{
		BlockNumber blkno = BufferGetBlockNumber(buf);

		vacuum_block(v, &stream, buf);
		if (v->info->report_progress)
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, blkno);
	}
	hyb_block_stream_end(&stream);
}

/*
 * Pass 2 for one leaf of the tree.  Returns whether it had to be treated.
 */
static bool
recheck_leaf(HybVacuum *v, BlockNumber blkno, uint64 stamp)
{
	bool		treat = stamp >= v->old_stamp || blkno >= v->survey.nblocks;
	uint16		state;

	Assert(v->level >= 0 && stamp != 0);
	if (treat)
	{
		Buffer		buf;

		hyb_page_check_pointer(v->ix, blkno, InvalidBlockNumber);
		buf = ReadBufferExtended(v->ix->rel, MAIN_FORKNUM, blkno, RBM_NORMAL,
								 v->info->strategy);
		LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
		if (!hyb_page_check(v->ix, buf, HYB_PAGE_LEAF, stamp))
			hyb_corrupted(v->ix->rel, blkno, "The static stage points to this block, which is not the leaf it expects.");
		state = vacuum_leaf(v, buf);
		UnlockReleaseBuffer(buf);
	}
	else
		state = v->leaf_state[blkno];

	Assert((state & LEAF_TOMBSTONES_MASK) <= HYB_LEAF_MAX_ITEMS);
	v->tombstones += state & LEAF_TOMBSTONES_MASK;
	/* leaves of newer levels are rewritten before long anyway */
	if (v->level == 0)
	{
		v->leaves++;
		v->dead_leaves += (state & LEAF_ALL_DEAD) != 0;
	}
	return treat;
}

/*
 * Count the VACUUM, and tombstones anew, from nothing.  The counter of VACUUMs
 * goes up even if nothing was removed: a VACUUM that was cancelled
 * earlier may have left flags that standbys have not noticed.
 */
static void
begin_recheck(HybVacuum *v)
{
	HybMetaPage *meta;
	Buffer		metabuf;
	HybWalSet	set;

	HYB_POINT("vacuum-count");
	metabuf = hyb_meta_lock(v->ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	hyb_version_prepare(v->ix);
	hyb_wal_begin(&set, v->ix->rel);
	START_CRIT_SECTION();
	meta->vacuum_counter++;
	for (int i = 0; i < meta->nlevels; i++)
		meta->levels[i].tombstones = 0;
	hyb_wal_meta_field(&set, metabuf, vacuum_counter);
	hyb_wal_meta_field(&set, metabuf, levels);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	hyb_version_changed(v->ix, meta);
	UnlockReleaseBuffer(metabuf);
}

/*
 * Count the tombstones of a unit.  The metapage's number of them in a level is
 * that of the units done, less what merge steps have dropped since, wherever
 * that was: never more than there are.
 */
static void
count_tombstones(HybVacuum *v)
{
	HybMetaPage *meta;
	Buffer		metabuf;
	HybWalSet	set;

	if (v->tombstones == 0)
		return;
	metabuf = hyb_meta_lock(v->ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	hyb_wal_begin(&set, v->ix->rel);
	START_CRIT_SECTION();
	Assert(v->level >= 0 && v->level < meta->nlevels);
	meta->levels[v->level].tombstones += v->tombstones;
	Assert(meta->levels[v->level].tombstones <= meta->levels[v->level].tids || hyb_is_damaged());
	hyb_wal_meta_field(&set, metabuf, levels[v->level].tombstones);
	hyb_wal_commit(&set);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
	v->tombstones = 0;
}

/*
 * Ask for a merge that compacts, where there is much to drop, and note what
 * VACUUM reports.  The caller holds the merge lock.
 */
static void
finish_recheck(HybVacuum *v)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(v->ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	HybMergeFacts facts;
	HybLevel	total = hyb_meta_static(meta);

	hyb_merge_facts_of_meta(v->ix, meta, &facts);
	if (hyb_policy_compact(&facts, v->leaves, v->dead_leaves))
		hyb_meta_change_flags(v->ix, metabuf, HYB_META_COMPACT, 0);
	Assert(v->dead_leaves <= v->leaves && v->old_stamp <= meta->next_stamp);
	v->end_stamp = meta->next_stamp;
	v->moved = meta->version != v->version->version;
	v->stats->num_index_tuples = (double) total.tids -
		(double) total.tombstones + (double) v->dynamic_live;
	/* entries that moved meanwhile were counted twice */
	if (v->moved)
		v->stats->estimated_count = true;
	v->stats->pages_free = meta->free_blocks + meta->cut_blocks;
	v->stats->pages_deleted = v->stats->pages_free;
	UnlockReleaseBuffer(metabuf);
}

/*
 * One unit of pass 2, under the merge lock: leaves below one level-1 node from
 * the one at v->at on.  Under the lock the tree stands still, so a stamp that
 * does not match is damage.  Returns false after the last leaf of the level.
 */
static bool
recheck_unit(HybVacuum *v)
{
	MemoryContext old_context = MemoryContextSwitchTo(v->page_context);
	HybVersion *version = palloc(sizeof(HybVersion));
	HybPath    *path = palloc(sizeof(HybPath));
	const HybChildList *list = &path->nodes[0].children;
	HybPos		high;
	int			treated = 0;
	int			i;

	hyb_version_capture(v->ix, version);
	Assert(v->tombstones == 0);
	if (v->level < 0)
		v->level = version->nlevels - 1;
	path->height = 0;
	/* what was in levels that are no more has moved on to the one before */
	if (v->level < version->nlevels)
		hyb_path_load(v->ix, &version->levels[v->level], &v->at, path);
	MemoryContextSwitchTo(old_context);
	if (path->height == 0)
		return false;
	for (i = path->nodes[0].index;
		 i < list->n && treated < UNIT_TREATED; i++)
		treated += recheck_leaf(v, list->children[i].block,
								list->children[i].stamp);
	high = i < list->n ? list->children[i].low : path->high;
	old_context = MemoryContextSwitchTo(v->page_context);
	hyb_path_go_on(v->ix, path, &high, &v->at, &v->at_key);
	MemoryContextSwitchTo(old_context);
	return !HYB_POS_MAX(&high);
}

/*
 * Pass 2, from the newest level to the oldest one, as entries move: one that a
 * step carries on between two units has not been passed by.  A level that is
 * added meanwhile gets its entries from the dynamic stage.
 */
static void
vacuum_recheck(HybVacuum *v)
{
	HybPos		start = {.tie = HYB_BEFORE};
	bool		begun = false;
	bool		more = true;

	hyb_buf_reserve(&v->at_key, HYB_MAX_ENTRY_SIZE);
	hyb_pos_copy(&v->at, &v->at_key, &start);
	v->level = -1;
	while (more)
	{
		HYB_POINT("vacuum-recheck");
		HYB_VACUUM_DELAY_POINT();
		(void) hyb_merge_lock(v->ix->rel, true);
		if (!begun)
			begin_recheck(v);
		begun = true;
		more = recheck_unit(v);
		MemoryContextReset(v->page_context);
		count_tombstones(v);
		if (!more && v->level > 0)
		{
			v->level--;
			hyb_pos_copy(&v->at, &v->at_key, &start);
			more = true;
		}
		if (!more)
			finish_recheck(v);
		hyb_merge_unlock(v->ix->rel);
	}
}

/*
 * Pass 3: wait for pins on leaves that were built during pass 1, be they in
 * the tree or retired.
 */
static void
vacuum_wait_for_pins(HybVacuum *v)
{
	HybBlockStream stream;
	Buffer		buf;

	hyb_block_stream_begin(&stream, v->ix->rel, 1,
						   RelationGetNumberOfBlocks(v->ix->rel), NULL,
						   v->info->strategy);
	while ((buf = hyb_block_stream_next(&stream)) != InvalidBuffer)
	{
		Page		page = BufferGetPage(buf);
		bool		wait = false;

		LockBuffer(buf, BUFFER_LOCK_SHARE);
		if (!PageIsNew(page) && hyb_page_check(v->ix, buf, HYB_PAGE_LEAF, 0))
		{
			uint64		stamp = hyb_page_opaque(page)->stamp;

			wait = stamp >= v->old_stamp && stamp < v->end_stamp;
		}
		LockBuffer(buf, BUFFER_LOCK_UNLOCK);
		if (wait)
		{
			lock_for_cleanup(&stream, buf);
			LockBuffer(buf, BUFFER_LOCK_UNLOCK);
		}
		ReleaseBuffer(buf);
	}
	hyb_block_stream_end(&stream);
}

IndexBulkDeleteResult *
hyb_ambulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				 IndexBulkDeleteCallback callback, void *callback_state)
{
	HybVacuum	v = {0};
	MemoryContext context;
	MemoryContext old_context;

	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->estimated_count = false;

	context = AllocSetContextCreate(CurrentMemoryContext, "hybrid vacuum",
									ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(context);
	v.info = info;
	v.stats = stats;
	v.callback = callback;
	v.callback_state = callback_state;
	v.ix = hyb_index_create_handle(info->index);
	v.page_context = AllocSetContextCreate(context, "hybrid vacuum page",
										   ALLOCSET_DEFAULT_SIZES);
	v.tids = palloc(HYB_LEAF_MAX_ITEMS * sizeof(ItemPointerData));
	v.items = palloc(HYB_LEAF_MAX_ITEMS * sizeof(int));
	v.offsets = palloc(MAX_DELTA_ENTRIES * sizeof(uint16));
	v.dead = palloc(MAX_DELTA_ENTRIES * sizeof(HybEntry));
	v.key_offsets = palloc(MAX_DELTA_ENTRIES * sizeof(uint32));

	hyb_survey_take(v.ix, &v.survey);
	v.version = palloc(sizeof(HybVersion));
	hyb_version_from_meta(v.survey.meta, v.version);
	v.leaf_state = MemoryContextAllocExtended(context,
											  (Size) v.survey.nblocks * sizeof(uint16),
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	v.done = MemoryContextAllocExtended(context, v.survey.nblocks / 8 + 1,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	/* the stamp of a step in flight, too: next_stamp goes up at its end */
	v.old_stamp = v.survey.meta->next_stamp;

	vacuum_log(&v, &v.version->frozen);
	vacuum_log(&v, &v.version->active);
	vacuum_blocks(&v);
	vacuum_recheck(&v);
	Assert(v.level == 0 && v.tombstones == 0);
	if (v.moved)
		vacuum_wait_for_pins(&v);
	hyb_hot_vacuum(v.ix, callback, callback_state);

	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	hyb_leaf_close(&v.leaf);
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(context);
	return stats;
}

IndexBulkDeleteResult *
hyb_amvacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	HybIndex   *ix;
	HybMetaPage meta;

	if (info->analyze_only)
		return stats;

	ix = hyb_index_create_handle(info->index);
	hyb_adopt_lost_blocks(ix, info->strategy);

	if (stats == NULL)
	{
		HybLevel	total;

		hyb_meta_copy(ix, &meta);
		total = hyb_meta_static(&meta);
		stats = palloc0(sizeof(IndexBulkDeleteResult));
		stats->estimated_count = true;
		stats->num_index_tuples = (double) total.tids -
			(double) total.tombstones +
			(double) meta.active.nentries + (double) meta.frozen.nentries;
	}
	hyb_vacuum_shrink(ix, info, stats->num_index_tuples);
	hyb_meta_copy(ix, &meta);
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	stats->pages_free = meta.free_blocks + meta.cut_blocks;
	stats->pages_deleted = stats->pages_free;

	/* as btvacuumcleanup does: the heap's count is the better one */
	if (!info->estimated_count &&
		stats->num_index_tuples > info->num_heap_tuples)
		stats->num_index_tuples = info->num_heap_tuples;

	hyb_merge_request_joins(ix);
	hyb_merge_consider(ix);
	hyb_merge_consider_quiet(ix);
	return stats;
}
