/*
 * dead.c
 *		Entries whose rows are gone for everybody.
 *
 * What nbtree does when a page is full (_bt_simpledel_pass), a merge does
 * while it rewrites a leaf anyway: entries with a killed-tuple hint are left
 * out.  nbtree logs how long a standby's queries may need them; generic WAL
 * records cannot say that.  So only line pointers that are LP_DEAD count, and
 * of versions that an update has just left behind those are many: pages that
 * are updated often are pruned often.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "merge/dead.h"
#include "merge/try_open.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/spccache.h"

/*
 * Who has a lock already, as all who merge have, may not get this one while others
 * wait for theirs; but has no need of it.
 */
static void
open_locked(HybDeadCheck *check, Oid relid)
{
	Relation	rel = RelationIdGetRelation(relid);

	if (rel == NULL)
		return;
	if (CheckRelationLockedByMe(rel, AccessShareLock, true))
	{
		check->lock = NoLock;
		check->heap = rel;
	}
	else
		RelationClose(rel);
}

void
hyb_dead_begin(HybDeadCheck *check, Relation index)
{
	HYB_ASSERT_NO_LWLOCK();
	check->heap = NULL;
	check->nblocks = InvalidBlockNumber;
	check->buf = InvalidBuffer;
	check->lock = AccessShareLock;
	check->heap = hyb_try_open(index->rd_index->indrelid, AccessShareLock, NULL);
	if (check->heap == NULL)
		open_locked(check, index->rd_index->indrelid);
	if (check->heap != NULL &&
		check->heap->rd_tableam != GetHeapamTableAmRoutine())
		hyb_dead_end(check);
}

void
hyb_dead_begin_open(HybDeadCheck *check, Relation heap)
{
	RelationIncrementReferenceCount(heap);
	check->heap = heap;
	check->nblocks = InvalidBlockNumber;
	check->buf = InvalidBuffer;
	check->lock = NoLock;
}

static BlockNumber
table_blocks(HybDeadCheck *check)
{
	if (!BlockNumberIsValid(check->nblocks))
		check->nblocks = RelationGetNumberOfBlocks(check->heap);
	return check->nblocks;
}

bool
hyb_dead_table_is_large(HybDeadCheck *check)
{
	HYB_ASSERT_NO_LWLOCK();
	return check->heap != NULL && table_blocks(check) > (BlockNumber) NBuffers;
}

int
hyb_dead_ahead(HybDeadCheck *check)
{
	return !hyb_dead_table_is_large(check) ? 0 :
		get_tablespace_maintenance_io_concurrency(check->heap->rd_rel->reltablespace);
}

void
hyb_dead_prefetch(HybDeadCheck *check, BlockNumber block)
{
	if (block < table_blocks(check))
		PrefetchBuffer(check->heap, MAIN_FORKNUM, block);
}

Page
hyb_dead_lock_page(HybDeadCheck *check, BlockNumber block)
{
	HYB_ASSERT_NO_LWLOCK();
	if (check->heap == NULL || block >= table_blocks(check))
		return NULL;

	if (!BufferIsValid(check->buf) ||
		BufferGetBlockNumber(check->buf) != block)
	{
		if (BufferIsValid(check->buf))
			ReleaseBuffer(check->buf);
		check->buf = ReadBuffer(check->heap, block);
	}
	LockBuffer(check->buf, BUFFER_LOCK_SHARE);
	return BufferGetPage(check->buf);
}

bool
hyb_dead_tid(HybDeadCheck *check, const ItemPointerData *tid)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	Page		page = hyb_dead_lock_page(check,
										  ItemPointerGetBlockNumberNoCheck(tid));
	bool		dead = false;

	if (page == NULL)
		return false;
	if (offset >= FirstOffsetNumber && offset <= PageGetMaxOffsetNumber(page))
	{
		ItemId		item = PageGetItemId(page, offset);

		dead = ItemIdIsDead(item) ||
			(ItemIdIsNormal(item) &&
			 HeapTupleHeaderXminInvalid((HeapTupleHeader) PageGetItem(page, item)));
	}
	LockBuffer(check->buf, BUFFER_LOCK_UNLOCK);
	return dead;
}

void
hyb_dead_end(HybDeadCheck *check)
{
	HYB_ASSERT_NO_LWLOCK();
	if (BufferIsValid(check->buf))
		ReleaseBuffer(check->buf);
	check->buf = InvalidBuffer;
	if (check->heap != NULL)
		relation_close(check->heap, check->lock);
	check->heap = NULL;
}
