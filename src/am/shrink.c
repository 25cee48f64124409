/*
 * shrink.c
 *		VACUUM returns free blocks at the end of an index's file.
 *
 * Three things, each in steps between which nothing is held (architecture.md,
 * "A file that shrinks"): a merge, if most entries are dead, which is what
 * makes blocks free; then the end of the file is named (page/file_end.h), and what
 * lies there moves to free blocks before it (merge/move.h); then the end is cut
 * off, with the index locked for that moment.
 */
#include "compat.h"

#include "access/genam.h"
#include "access/multixact.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "am/shrink.h"
#include "am/survey.h"
#include "catalog/index.h"
#include "commands/vacuum.h"
#include "dynamic/delta.h"
#include "merge/merge.h"
#include "merge/move.h"
#include "miscadmin.h"
#include "page/file_end.h"
#include "page/open.h"
#include "page/space.h"
#include "pgstat.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
#include "utils/wait_event.h"

/*
 * A file shrinks if a third of it is free, but half a megabyte at least: so it
 * is at most one and a half times as large as what it holds after VACUUM, and a
 * block that is returned costs at most two that are moved.  The log and merges
 * use free blocks again and again; they take less than that as a rule.
 */
#define SHRINK_FRACTION		3
#define SHRINK_MIN_BLOCKS	64

/* Blocks that are left free: what insertions meanwhile and steps take. */
#define SHRINK_SPARE(used)	((used) / 16 + 8)

/*
 * How often the lock is asked for, and at what intervals: as VACUUM does for
 * tables.
 */
#define LOCK_TRIES			100
#define LOCK_INTERVAL_MS	50

/*
 * The same where that comes last, since a standby may be waiting for VACUUM to
 * end: it has the table locked until then if that was cut.
 */
#define POSTPONED_TRIES		10

/* May files of the table's indexes be cut? */
static bool
table_allows(const HybIndex *ix)
{
	Relation	heap = table_open(IndexGetRelation(RelationGetRelid(ix->rel),
												   false), NoLock);
	bool		allows = HYB_VACUUM_TRUNCATES(heap);

	table_close(heap, NoLock);
	return allows;
}

/* Are most of the entries that the index holds dead? */
static bool
is_mostly_dead(const HybMetaPage *meta, BlockNumber nblocks, double live)
{
	uint64		all = hyb_meta_static(meta).tids + meta->active.nentries +
		meta->frozen.nentries;

	return nblocks >= SHRINK_MIN_BLOCKS && live < (double) all / 2;
}

/* Blocks that a file of so many would have if it shrunk; that many if not. */
static BlockNumber
blocks_wanted(const HybMetaPage *meta, BlockNumber nblocks)
{
	BlockNumber nfree = (BlockNumber) hyb_meta_free(meta, nblocks);
	BlockNumber used = nblocks - Min(nfree, nblocks);

	if (nfree < SHRINK_MIN_BLOCKS || nfree < nblocks / SHRINK_FRACTION)
		return nblocks;
	return Min(nblocks, used + SHRINK_SPARE(used));
}

/*
 * Dictionary pages stay where they are: the first block after them.  They were
 * written when the index was small.
 */
static BlockNumber
after_dictionary(const HybIndex *ix, const HybMetaPage *meta)
{
	BlockNumber after = HYB_METAPAGE_BLKNO + 1;
	BlockNumber block = meta->dictionary;
	BlockNumber from = HYB_METAPAGE_BLKNO;
	BlockNumber nblocks = RelationGetNumberOfBlocks(ix->rel);

	for (BlockNumber n = 0; BlockNumberIsValid(block); n++)
	{
		Buffer		buf = hyb_page_lock(ix, block, from, BUFFER_LOCK_SHARE,
										HYB_PAGE_DICTIONARY, 1);

		CHECK_FOR_INTERRUPTS();
		if (!BufferIsValid(buf) || n == nblocks)
			hyb_corrupted(ix->rel, block, "This is not the dictionary page that the index expects.");
		after = Max(after, block + 1);
		from = block;
		block = hyb_page_opaque(BufferGetPage(buf))->link;
		UnlockReleaseBuffer(buf);
	}
	return after;
}

/*
 * Choose the end of the file that is to go, and name it; InvalidBlockNumber if
 * the file is not to shrink.  One that an earlier VACUUM has named is kept if
 * most of what can be had lies in it.
 */
static BlockNumber
begin_cut(HybIndex *ix)
{
	HybMetaPage meta;
	BlockNumber nblocks = RelationGetNumberOfBlocks(ix->rel);
	BlockNumber cut;

	/* as a rule there is nothing to do */
	hyb_meta_copy(ix, &meta);
	if (meta.cut_end == 0 && blocks_wanted(&meta, nblocks) == nblocks)
		return InvalidBlockNumber;

	(void) hyb_merge_lock(ix->rel, true);
	hyb_file_end_recover(ix);
	hyb_space_settle(ix);
	hyb_meta_copy(ix, &meta);
	nblocks = RelationGetNumberOfBlocks(ix->rel);
	cut = Max(blocks_wanted(&meta, nblocks), after_dictionary(ix, &meta));
	if (nblocks < cut + SHRINK_MIN_BLOCKS / 2 || meta.cut_end != 0)
		cut = InvalidBlockNumber;
	else if (BlockNumberIsValid(meta.cut) && meta.cut >= cut &&
			 meta.cut - cut < (nblocks - cut) / 4)
		cut = meta.cut;
	else
		hyb_file_end_begin(ix, cut);
	hyb_merge_unlock(ix->rel);
	return cut;
}

/* Take the end's blocks off the free list; false if that cannot be done. */
static bool
sift(HybIndex *ix)
{
	HybSiftResult result = HYB_SIFT_MORE;

	while (result == HYB_SIFT_MORE)
	{
		HYB_VACUUM_DELAY_POINT();
		(void) hyb_merge_lock(ix->rel, true);
		result = hyb_file_end_sift(ix);
		hyb_merge_unlock(ix->rel);
		HYB_POINT("shrink-sifted");
	}
	return result == HYB_SIFT_DONE;
}

/* Does a page of the log lie in the end of the file? */
static bool
log_in_end(HybIndex *ix, BlockNumber cut)
{
	bool		found = false;
	HybMetaPage meta;

	(void) hyb_merge_lock(ix->rel, true);
	hyb_meta_copy(ix, &meta);
	for (int i = 0; i < 3 && !found; i++)
	{
		const HybGeneration *generation = i == 0 ? &meta.active :
			i == 1 ? &meta.frozen : &meta.retiring;
		HybDeltaWalk walk;

		hyb_delta_walk_start(&walk, ix, generation, i > 0);
		while (!found && hyb_delta_walk_next(&walk))
		{
			Buffer		buf;

			CHECK_FOR_INTERRUPTS();
			found = walk.block >= cut;
			if (!hyb_delta_walk_lock(&walk, &buf))
				hyb_corrupted(ix->rel, walk.block, "This is not the delta page that the log points to.");
			UnlockReleaseBuffer(buf);
		}
	}
	hyb_merge_unlock(ix->rel);
	return found;
}

/* Move what lies in the end of the file; returns how many leaves. */
static uint64
move_pages(HybIndex *ix, BlockNumber cut)
{
	HybMove		move = {.cut = cut};
	bool		more = true;

	while (more)
	{
		HYB_VACUUM_DELAY_POINT();
		(void) hyb_merge_lock(ix->rel, true);
		more = hyb_move_step(ix, &move);
		hyb_merge_unlock(ix->rel);
		HYB_POINT("shrink-moved");
	}
	return move.moved;
}

/*
 * Is all of the end free?  If so the whole of both lists is looked at: what is
 * cut off does not come back.
 */
static bool
end_is_free(HybIndex *ix)
{
	HybSurvey	survey;
	bool		free;

	(void) hyb_merge_lock(ix->rel, true);
	free = hyb_file_end_is_free(ix);
	if (free)
	{
		hyb_survey_take(ix, &survey);
		for (BlockNumber block = survey.meta->cut; block < survey.nblocks; block++)
			free &= hyb_survey_is_free(&survey, block);
		hyb_survey_free(&survey);
	}
	hyb_merge_unlock(ix->rel);
	return free;
}

/*
 * Cut the end off if nobody else has the index open at this moment.  Returns
 * whether the lock was had.
 *
 * Locks of a subtransaction that is rolled back are let go of by a standby,
 * too: it would keep that of the transaction until VACUUM ends, which may be a
 * long time if there are more indexes.
 */
static bool
try_cut(HybIndex *ix)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	bool		locked;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	locked = ConditionalLockRelation(ix->rel, AccessExclusiveLock);
	if (locked && hyb_merge_lock(ix->rel, false))
	{
		(void) hyb_file_end_cut_off(ix);
		hyb_merge_unlock(ix->rel);
	}
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	if (locked)
		HYB_POINT("shrink-cut");
	return locked;
}

/*
 * Cut the end off as soon as the lock is had and all of the end is free; or
 * give up.
 */
static void
cut_off(HybIndex *ix, int tries)
{
	if (!end_is_free(ix))
		return;
	for (int i = 0; i < tries && !try_cut(ix); i++)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 LOCK_INTERVAL_MS, WAIT_EVENT_VACUUM_TRUNCATE);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/* ---- in parallel mode ---- */

/*
 * The lock needs a transaction ID, which cannot be had in parallel mode, where
 * VACUUM is while it works on other indexes of the table in parallel.  So that
 * is done just before its transaction ends.
 */
typedef struct Postponed
{
	Oid			index;
	struct Postponed *next;
} Postponed;

/* in TopTransactionContext */
static Postponed *postponed = NULL;

/*
 * Cut the end off.  VACUUM has noted how long the file was before, if it has
 * noted that at all.
 */
static void
cut_off_noted(Relation index)
{
	BlockNumber before = RelationGetNumberOfBlocks(index);
	BlockNumber after;
	HeapTuple	tuple;
	Form_pg_class form;
	float4		reltuples;
	bool		noted;

	cut_off(hyb_index_create_handle(index), POSTPONED_TRIES);
	after = RelationGetNumberOfBlocks(index);
	if (after == before)
		return;
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(RelationGetRelid(index)));
	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_class) GETSTRUCT(tuple);
	noted = (BlockNumber) form->relpages == before;
	reltuples = form->reltuples;
	ReleaseSysCache(tuple);
	if (noted)
		HYB_UPDATE_RELSTATS(index, after, reltuples);
}

static void
transaction_ends(XactEvent event, void *arg)
{
	Postponed  *list = postponed;

	postponed = NULL;
	if (event != XACT_EVENT_PRE_COMMIT)
		return;
	for (; list != NULL; list = list->next)
	{
		/* VACUUM has both locked until then */
		Relation	index = index_open(list->index, RowExclusiveLock);

		if (index->rd_refcnt == 1)
			cut_off_noted(index);
		index_close(index, NoLock);
	}
}

static void
postpone(HybIndex *ix)
{
	static bool registered = false;
	Postponed  *one = MemoryContextAlloc(TopTransactionContext,
										 sizeof(Postponed));

	if (!registered)
		RegisterXactCallback(transaction_ends, NULL);
	registered = true;
	one->index = RelationGetRelid(ix->rel);
	one->next = postponed;
	postponed = one;
}

/* ---- all of it ---- */

void
hyb_vacuum_shrink(HybIndex *ix, IndexVacuumInfo *info, double live)
{
	BlockNumber before = RelationGetNumberOfBlocks(ix->rel);
	HybMetaPage meta;
	BlockNumber cut;
	uint64		moved;

	if (ix->rel->rd_refcnt != 1 || !table_allows(ix))
		return;

	hyb_meta_copy(ix, &meta);
	if (is_mostly_dead(&meta, before, live))
		(void) hyb_merge_all(ix);
	cut = begin_cut(ix);
	if (!BlockNumberIsValid(cut) || !sift(ix))
		return;
	if (log_in_end(ix, cut))
		hyb_merge_log(ix);
	moved = move_pages(ix, cut);
	if (IsInParallelMode())
		postpone(ix);
	else
		cut_off(ix, LOCK_TRIES);
	ereport(info->message_level,
			(errmsg("index \"%s\": truncated %u to %u pages",
					RelationGetRelationName(ix->rel), before,
					RelationGetNumberOfBlocks(ix->rel)),
			 errdetail_internal("Leaves moved: " UINT64_FORMAT ".", moved)));
}
