/*
 * vacuum.c
 *		Bulk deletion.
 *
 * Merges move entries while VACUUM runs, so bulk deletion has three passes.
 * docs/entry.md, "VACUUM", has them on a timeline.  It proves that they reach each
 * dead entry, and wait for each scan that relies on one.  The proof needs this:
 *
 * - Pass 1 takes a cleanup lock on every page that is or was a leaf or a delta page.
 *   It visits the log first, lane by lane, and then all other blocks in physical
 *   order.
 * - Pass 2 walks the levels from the newest to the oldest, in units of a key range.
 *   It holds the merge lock for each unit, and treats the leaves whose stamp is not
 *   older than the survey.  If functions compare the keys, it is one unit, which
 *   compares none: functions may fail, wait for locks, or order keys otherwise than
 *   they did.
 * - The vacuum counter goes up before the first unit releases the merge lock.
 * - Pass 3 waits for pins on leaves built between the survey and the end of pass 2.
 *   It holds no lock: the scan's own backend may want the merge lock for an
 *   insertion, and that deadlock would not be detected.
 */
#include "base/compat.h"

#include "access/amapi.h"
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
#include "vacuum/vacuum.h"

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
	uint8	   *done;			/* bitmap of blocks that vacuum_log has done */

	/* pass 2 */
	int			level;			/* that it is at; -1: none yet */
	HybPos		at;				/* where the next unit begins in it */
	HybBuf		at_key;			/* its key */
	uint64		end_stamp;		/* next_stamp at its end */
	bool		moved;			/* there was a step since the survey */
	bool		in_units;		/* no function compares keys */

	/* results */
	uint64		log_live;		/* live entries of the dynamic stage */
	uint64		tombstones;		/* of the leaves of the unit */
	uint64		leaves;
	uint64		dead_leaves;	/* all TIDs are tombstones */

	/* work space */
	MemoryContext page_context; /* reset for every page */
	HybLeaf		leaf;
	ItemPointerData *tids;
	int		   *items;
	char	   *page;			/* copy of a delta page */
	HybEntry   *dead;			/* its dead entries, with the flags before */
	int			ndead;
	uint16	   *offsets;		/* of entries that get the dead flag */
} HybVacuum;

/*
 * Set tombstones on the dead items of a leaf, which is exclusively locked.
 * Returns its leaf_state.
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
 * Collect the dead entries of v->page in v->dead, flagged ones too: a VACUUM that
 * was cancelled may not have passed them on to the tree.
 */
static void
collect_dead_entries(HybVacuum *v, BlockNumber blkno)
{
	HybEntry	entry = {.block = blkno};

	v->ndead = 0;
	while (hyb_delta_next(v->ix->rel, v->page, &entry))
	{
		if (!v->callback(&entry.tid, v->callback_state))
			continue;
		Assert(v->ndead < MAX_DELTA_ENTRIES);
		hyb_delta_key_length(v->ix, &entry);
		v->dead[v->ndead++] = entry;
	}
}

/* Flag v->dead on their page, which is exclusively locked, and in v->page. */
static void
flag_dead(HybVacuum *v, Buffer buf)
{
	Page		page = BufferGetPage(buf);
	int			nflags = 0;
	int			per_range;
	HybWalSet	set;

	for (int i = 0; i < v->ndead; i++)
		if ((v->dead[i].flags & HYB_DELTA_DEAD) == 0)
		{
			v->page[v->dead[i].offset] |= HYB_DELTA_DEAD;
			v->offsets[nflags++] = v->dead[i].offset;
		}
	if (nflags == 0)
		return;

	/* offsets ascend; neighbours share a range if there are too many */
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
 * Flag the dead entries of a delta page, and count the live ones.  Takes over
 * the caller's cleanup lock and pin.
 */
static void
vacuum_delta(HybVacuum *v, Buffer buf)
{
	BlockNumber blkno = BufferGetBlockNumber(buf);
	Page		page = BufferGetPage(buf);
	uint64		generation = hyb_page_opaque(page)->stamp;
	bool		frozen = generation == v->version->frozen.number;

	/* NULL: all of its entries count, since comparisons may fail */
	const HybPos *watermark = frozen && v->in_units ?
		&v->version->watermark : NULL;
	MemoryContext old_context;

	/* merged before the survey, or begun since */
	if (generation != v->version->active.number && !frozen)
	{
		UnlockReleaseBuffer(buf);
		return;
	}
	memcpy(v->page, page, BLCKSZ);
	collect_dead_entries(v, blkno);
	flag_dead(v, buf);
	UnlockReleaseBuffer(buf);

	/*
	 * Comparing keys may run user code, so the page is unlocked.  Entries up
	 * to the watermark have left the dynamic stage.
	 */
	old_context = MemoryContextSwitchTo(v->page_context);
	if (v->ndead > 0)
	{
		HYB_POINT("vacuum-flagged");
		for (int i = 0; i < v->ndead; i++)
		{
			const HybEntry *dead = &v->dead[i];

			if ((dead->flags & HYB_DELTA_DEAD) == 0 &&
				(watermark == NULL ||
				 hyb_pos_compare_key(v->ix->desc, dead->bytes, dead->keylen,
									 &dead->tid, watermark) > 0))
				v->stats->tuples_removed += 1;
		}
		hyb_log_mark_dead(v->ix, generation, v->dead, v->ndead);
	}
	v->log_live += hyb_delta_count_live(v->ix, v->page, blkno, watermark);
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(v->page_context);
}

/*
 * Take a cleanup lock on a block of the stream.  A scan may have it pinned for
 * hours, so the stream's other pins are released for the wait.
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
 * The kind of a page that pass 1 looks at, which is locked; 0: it is another one.
 * Scans keep no pins on those.
 */
static uint16
kind_to_treat(HybVacuum *v, Buffer buf)
{
	uint16		kind;

	if (PageIsNew(BufferGetPage(buf)))
		return 0;
	(void) hyb_page_check(v->ix, buf, HYB_PAGE_LEAF, 0);
	kind = hyb_page_opaque(BufferGetPage(buf))->kind;
	return kind == HYB_PAGE_LEAF || kind == HYB_PAGE_DELTA ? kind : 0;
}

/* Pass 1 for one block.  Takes over the pin. */
static void
vacuum_block(HybVacuum *v, HybBlockStream *stream, Buffer buf)
{
	BlockNumber blkno = BufferGetBlockNumber(buf);
	uint16		kind;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	if (kind_to_treat(v, buf) == 0)
	{
		UnlockReleaseBuffer(buf);
		return;
	}

	/*
	 * Our pin keeps the block from being reused from here on, but it may have
	 * happened before we had it locked again.
	 */
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);
	lock_for_cleanup(stream, buf);
	kind = kind_to_treat(v, buf);
	/* a block that was free at the survey holds new entries only */
	if (hyb_survey_is_free(&v->survey, blkno))
		kind = 0;
	if (kind == HYB_PAGE_DELTA)
	{
		vacuum_delta(v, buf);
		return;
	}
	if (kind == HYB_PAGE_LEAF)
		v->leaf_state[blkno] = vacuum_leaf(v, buf);
	UnlockReleaseBuffer(buf);
}

/*
 * Pass 1 over the log: each lane of a generation up to its last page at the time
 * of the survey.  If the generation is merged meanwhile, its entries go to
 * leaves that pass 2 treats.
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
 * The rest of pass 1, over the blocks that existed at the survey, in the order
 * that is read fastest.
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

/* Pass 2 for one leaf.  Returns whether it had to be treated. */
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
	/* leaves of newer levels are rewritten soon */
	if (v->level == 0)
	{
		v->leaves++;
		v->dead_leaves += (state & LEAF_ALL_DEAD) != 0;
	}
	return treat;
}

/*
 * Count the VACUUM, and start counting tombstones from zero.  The vacuum counter
 * goes up even if nothing was removed: a cancelled VACUUM may have left flags
 * that standbys have not noticed.
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
 * Add the tombstones of a unit to the metapage.  It counts those of the units
 * done, less what merge steps have dropped since, in any unit.  So it never
 * counts more than there are.
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
 * Ask for a merge that visits all leaves if there is much to drop, and set what
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
		(double) total.tombstones + (double) v->log_live;
	/* entries that have moved may be counted twice */
	if (v->moved ||
		(v->ix->desc->pure == HYB_IMPURE && v->version->frozen.number != 0))
		v->stats->estimated_count = true;
	v->stats->pages_free = meta->free_blocks + meta->cut_blocks;
	v->stats->pages_deleted = v->stats->pages_free;
	UnlockReleaseBuffer(metabuf);
}

/*
 * One unit of pass 2, under the merge lock: leaves below one level-1 node, from
 * v->at on.  The tree stands still, so a stamp that does not match is damage.
 * Returns false after the last leaf of the level.
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
	/* a level that is gone has moved its entries to the one before it */
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
 * Pass 2.  Entries move from newer levels to older ones, and so does pass 2.  So
 * it does not pass by an entry that a step moves between two units.  A level that is
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

static void
recheck_page(void *arg, const HybChild *page, int height)
{
	if (height == 1)
		(void) recheck_leaf(arg, page->block, page->stamp);
}

/* Pass 2 as one unit. */
static void
vacuum_recheck_whole(HybVacuum *v)
{
	HybVersion *version = palloc(sizeof(HybVersion));

	HYB_POINT("vacuum-recheck");
	(void) hyb_merge_lock(v->ix->rel, true);
	begin_recheck(v);
	hyb_version_capture(v->ix, version);
	for (int level = (int) version->nlevels - 1; level >= 0; level--)
	{
		v->level = level;
		hyb_static_visit(v->ix, &version->levels[level], recheck_page, v);
		count_tombstones(v);
	}
	finish_recheck(v);
	hyb_merge_unlock(v->ix->rel);
}

/*
 * Pass 3: wait for pins on leaves built between the survey and the end of pass 2,
 * retired or not.
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

	/*
	 * Validation of CREATE INDEX CONCURRENTLY, which reports progress, asks
	 * which roots have an entry: but that may be of another member's key
	 * (build/build_chains.c).
	 */
	if (HYB_IS_SUMMARIZING(info->index) && info->report_progress)
	{
		Assert(!info->index->rd_index->indisvalid);
		return stats;
	}

	context = AllocSetContextCreate(CurrentMemoryContext, "hybrid vacuum",
									ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(context);
	v.info = info;
	v.stats = stats;
	v.callback = callback;
	v.callback_state = callback_state;
	v.ix = hyb_index_create_handle(info->index);
	v.in_units = !hyb_key_desc_calls_functions(v.ix->desc);
	v.page_context = AllocSetContextCreate(context, "hybrid vacuum page",
										   ALLOCSET_DEFAULT_SIZES);
	v.tids = palloc(HYB_LEAF_MAX_ITEMS * sizeof(ItemPointerData));
	v.items = palloc(HYB_LEAF_MAX_ITEMS * sizeof(int));
	v.page = palloc(BLCKSZ);
	v.offsets = palloc(MAX_DELTA_ENTRIES * sizeof(uint16));
	v.dead = palloc(MAX_DELTA_ENTRIES * sizeof(HybEntry));

	hyb_survey_take(v.ix, &v.survey);
	HYB_POINT("vacuum-surveyed");
	v.version = palloc(sizeof(HybVersion));
	hyb_version_from_meta(v.survey.meta, v.version);
	v.leaf_state = MemoryContextAllocExtended(context,
											  (Size) v.survey.nblocks * sizeof(uint16),
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	v.done = MemoryContextAllocExtended(context, v.survey.nblocks / 8 + 1,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	/* a step under way has this stamp too: next_stamp goes up at its end */
	v.old_stamp = v.survey.meta->next_stamp;

	vacuum_log(&v, &v.version->frozen);
	vacuum_log(&v, &v.version->active);
	vacuum_blocks(&v);
	if (v.in_units)
		vacuum_recheck(&v);
	else
		vacuum_recheck_whole(&v);
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
