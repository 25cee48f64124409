/*
 * vacuum_shrink.c
 *		VACUUM returns free blocks at the end of an index's file.
 *
 * If most entries are dead, a merge makes blocks free; the rest is
 * merge/shrink.h (docs/vacuum.md, "Files that shrink").
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/multixact.h"
#include "access/transam.h"
#include "access/xact.h"
#include "commands/vacuum.h"
#include "merge/merge.h"
#include "merge/shrink.h"
#include "miscadmin.h"
#include "store/handle.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "vacuum/vacuum_shrink.h"

/*
 * A file shrinks if a third of it is free, but half a megabyte at least: so it
 * is at most one and a half times as large as what it holds after VACUUM, and a
 * block that is returned costs at most two that are moved.  The log and merges
 * use free blocks again and again; they take less than that as a rule.
 */
#define SHRINK_MIN_BLOCKS	64

static const HybShrinkRule vacuum_rule = {
	.min_free = SHRINK_MIN_BLOCKS,
	.free_fraction = 3,
	.min_returned = SHRINK_MIN_BLOCKS / 2,
	.spare_fraction = 16,
	.spare = 8
};

/* How often the lock is asked for, as VACUUM does for tables. */
#define LOCK_TRIES			100

/*
 * The same where that comes last, since a standby may be waiting for VACUUM to
 * end: it has the table locked until then if that was cut.
 */
#define POSTPONED_TRIES		10

/* Are most of the entries that the index holds dead? */
static bool
is_mostly_dead(const HybMetaPage *meta, BlockNumber nblocks, double live)
{
	uint64		all = hyb_meta_static(meta).tids + meta->active.nentries +
		meta->frozen.nentries;

	return nblocks >= SHRINK_MIN_BLOCKS && live < (double) all / 2;
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

	(void) hyb_shrink_cut(hyb_index_create_handle(index), POSTPONED_TRIES);
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
	Assert(after < before);
	if (noted)
		HYB_UPDATE_RELSTATS(index, after, reltuples);
}

static void
shrink_transaction_ends(XactEvent event, void *arg)
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
		RegisterXactCallback(shrink_transaction_ends, NULL);
	registered = true;
	Assert(IsInParallelMode());
	one->index = RelationGetRelid(ix->rel);
	one->next = postponed;
	postponed = one;
}

/* ---- all of it ---- */

static bool
delay(void *arg)
{
	HYB_VACUUM_DELAY_POINT();
	return true;
}

void
hyb_vacuum_shrink(HybIndex *ix, IndexVacuumInfo *info, double live)
{
	BlockNumber before = RelationGetNumberOfBlocks(ix->rel);
	HybShrink	shrink = {.ix = ix,.rule = &vacuum_rule,.go_on = delay};
	HybMetaPage meta;

	if (!hyb_shrink_allowed(ix))
		return;

	hyb_meta_copy(ix, &meta);
	if (is_mostly_dead(&meta, before, live))
		(void) hyb_merge_all(ix);
	if (!hyb_shrink_begin(&shrink))
		return;
	if (hyb_shrink_log_in_end(&shrink))
		hyb_merge_log(ix);
	(void) hyb_shrink_move(&shrink);
	if (IsInParallelMode())
		postpone(ix);
	else
		(void) hyb_shrink_cut(ix, LOCK_TRIES);
	ereport(info->message_level,
			(errmsg("index \"%s\": truncated %u to %u pages",
					RelationGetRelationName(ix->rel), before,
					RelationGetNumberOfBlocks(ix->rel)),
			 errdetail_internal("Leaves moved: " UINT64_FORMAT ".", shrink.moved)));
}
