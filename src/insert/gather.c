/*
 * gather.c
 *		Gathers the entries of a statement, to append them to the log together.
 *
 * There is memory for MAX_GATHERS pages of entries, which statements take as they
 * need it.  Entries of further indexes are appended one by one.  When a statement
 * ends in an error, its memory contexts are reset before this file learns that the
 * (sub)transaction aborts.  So entries lie in memory that outlives the statement,
 * which only ceases to be their `owner`.  The end of their subtransaction decides
 * whether they are appended or forgotten.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "insert/gather.h"
#include "log/delta.h"
#include "log/log.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "store/handle.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Indexes that can have gathered entries at a time. */
#define MAX_GATHERS		64

typedef struct HybGather
{
	HybGatherer *owner;			/* NULL once its statement is over */
	uint8	   *image;			/* entries as on a page, or NULL */
	uint32		done;			/* bytes of entries that are in the log */
	uint32		len;			/* bytes of all entries */
	SubTransactionId subtransaction;	/* has inserted the rows */
	Oid			indexid;
	uint64		incarnation;
} HybGather;

static HybGather gathers[MAX_GATHERS];

/*
 * Gathering does not pay if fewer than POOR_BYTES come together before the index
 * is read.  Then the next PAUSE entries are not gathered.
 */
#define POOR_BYTES		256
#define PAUSE			256

static int	not_now = 0;

bool		hyb_gathered = false;
bool		(*hyb_statement_end_noticed) (MemoryContext context) = NULL;

#ifdef USE_ASSERT_CHECKING
static void
gather_assert_valid(const HybGather *gather)
{
	Assert(gather->done <= gather->len && gather->len <= HYB_PAGE_CAPACITY);
	Assert(gather->len == 0 || gather->image != NULL);
	Assert(gather->len == 0 || hyb_gathered);
	Assert(gather->len == 0 || OidIsValid(gather->indexid));
	Assert(gather->len == 0 || gather->subtransaction != InvalidSubTransactionId);
	/* a statement and what it has gathered name each other */
	Assert(gather->owner == NULL || gather->owner->gather == gather);
	Assert(gather->owner == NULL || gather->owner->registered);
}
#else
#define gather_assert_valid(gather) ((void) (gather))
#endif

/* ---- appending ---- */

static void
note_gathered(void)
{
	hyb_gathered = false;
	for (int i = 0; i < MAX_GATHERS; i++)
		hyb_gathered |= gathers[i].len > 0;
}

static void
forget(HybGather *gather)
{
	gather->len = gather->done = 0;
	note_gathered();
}

/* Runs no users' code before all entries are in the log. */
static void
append_all(HybIndex *ix, HybGather *gather)
{
	bool		full = false;

	gather_assert_valid(gather);
	Assert(ix->incarnation == gather->incarnation);
	while (gather->done < gather->len)
		gather->done += hyb_delta_append_some(ix, gather->image + gather->done,
											  gather->len - gather->done,
											  &full);
	Assert(gather->done == gather->len);
	forget(gather);
	if (full)
		hyb_merge_after_full_page(ix);
}

/*
 * Appends entries whose statement is over.  If the index has another incarnation,
 * it has been built with their rows.  That may be undone until the transaction
 * ends (`last`).
 */
static void
append_ownerless(HybGather *gather, bool last)
{
	Relation	rel = try_relation_open(gather->indexid, RowExclusiveLock);
	HybIndex   *ix;

	if (rel == NULL)
	{
		if (last)
			forget(gather);
		return;
	}
	ix = hyb_index_create_handle(rel);
	if (ix->incarnation == gather->incarnation)
		append_all(ix, gather);
	else if (last)
		forget(gather);
	pfree(ix);
	relation_close(rel, RowExclusiveLock);
}

static void
flush_gathered(HybGather *gather, bool last)
{
	gather_assert_valid(gather);
	if (gather->len == 0)
		return;
	if (gather->owner != NULL)
		append_all(gather->owner->ix, gather);
	else
		append_ownerless(gather, last);
}

/* Takes it from its statement.  Entries in it stay. */
static void
release_gather(HybGather *gather)
{
	if (gather->owner != NULL)
		gather->owner->gather = NULL;
	gather->owner = NULL;
}

/* Appends entries before their statement ends. */
static void
flush_early(HybGather *gather)
{
	HybGatherer *owner = gather->owner;
	bool		poor = gather->len < POOR_BYTES;

	if (gather->len == 0)
		return;
	flush_gathered(gather, false);
	if (poor && owner != NULL)
	{
		not_now = PAUSE;

		/* unless another statement has it by now */
		if (gather->owner == owner && gather->len == 0)
			release_gather(gather);
	}
}

void
hyb_gather_flush(Oid indexid)
{
	for (int i = 0; i < MAX_GATHERS && hyb_gathered; i++)
		if (!OidIsValid(indexid) || gathers[i].indexid == indexid)
			flush_early(&gathers[i]);
}

/* ---- gathering ---- */

bool
hyb_gather_possible(const HybIndex *ix, Relation heap)
{
	return !ix->rel->rd_index->indisunique &&
		!ix->rel->rd_index->indisexclusion &&
		!ix->desc->has_encoded &&
		heap->rd_tableam == GetHeapamTableAmRoutine() &&
		!IsolationIsSerializable();
}

/*
 * Was the row inserted by the running (sub)transaction, and not speculatively?
 */
static bool
row_stays(Relation heap, const ItemPointerData *tid)
{
	static Buffer recent = InvalidBuffer;
	TransactionId xid = GetCurrentTransactionIdIfAny();
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
	bool		stays = false;
	Buffer		buf = recent;
	Page		page;

	Assert(ItemPointerIsValid(unconstify(ItemPointerData *, tid)));
	if (!TransactionIdIsValid(xid))
		return false;
	if (!BufferIsValid(buf) ||
		!ReadRecentBuffer(HYB_REL_LOCATOR(heap), MAIN_FORKNUM, block, buf))
		buf = ReadBuffer(heap, block);
	recent = buf;
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	if (offset <= PageGetMaxOffsetNumber(page))
	{
		ItemId		item = PageGetItemId(page, offset);

		if (ItemIdIsNormal(item))
		{
			HeapTupleHeader tuple = (HeapTupleHeader) PageGetItem(page, item);

			stays = TransactionIdEquals(HeapTupleHeaderGetRawXmin(tuple), xid) &&
				!HeapTupleHeaderIsSpeculative(tuple);
		}
	}
	UnlockReleaseBuffer(buf);
	return stays;
}

/* Callback: the statement's memory goes, perhaps in an error. */
static void
statement_goes(void *arg)
{
	HybGatherer *gatherer = arg;

	if (gatherer->gather != NULL)
		release_gather(gatherer->gather);
	gatherer->registered = false;
}

/* Returns one without owner and entries, or NULL. */
static HybGather *
find_free(void)
{
	for (int i = 0; i < MAX_GATHERS; i++)
		if (gathers[i].owner == NULL && gathers[i].len == 0)
			return &gathers[i];
	return NULL;
}

static bool
take(HybGatherer *gatherer)
{
	HybGather  *gather;

	Assert(gatherer->gather == NULL && not_now >= 0);
	if (not_now > 0)
	{
		not_now--;
		return false;
	}
	if (!gatherer->registered)
	{
		gatherer->callback.func = statement_goes;
		gatherer->callback.arg = gatherer;
		MemoryContextRegisterResetCallback(gatherer->context,
										   &gatherer->callback);
		gatherer->registered = true;
	}
	gather = find_free();
	if (gather == NULL)
		return false;
	if (gather->image == NULL)
		gather->image = MemoryContextAlloc(TopMemoryContext, HYB_PAGE_CAPACITY);
	Assert(gather->owner == NULL && gather->len == 0);
	gather->owner = gatherer;
	gather->indexid = RelationGetRelid(gatherer->ix->rel);
	gather->incarnation = gatherer->ix->incarnation;
	gatherer->gather = gather;
	return true;
}

bool
hyb_gather_add(HybGatherer *gatherer, Relation heap, const HybEntry *entry)
{
	SubTransactionId subtransaction = GetCurrentSubTransactionId();
	uint32		len = hyb_delta_size(entry->len);
	HybGather  *gather;

	if (len > HYB_PAGE_CAPACITY / 4 || !row_stays(heap, &entry->tid) ||
		(gatherer->gather == NULL && !take(gatherer)))
		return false;
	gather = gatherer->gather;
	if (gather->len > 0 && (gather->len + len > HYB_PAGE_CAPACITY ||
							gather->subtransaction != subtransaction))
	{
		flush_gathered(gather, false);

		/* a merge may have run functions that took it from us */
		gather = gatherer->gather;
		if (gather == NULL || gather->len > 0)
			return false;
	}
	Assert(gather->owner == gatherer && gather->done == 0);
	Assert(gather->len + len <= HYB_PAGE_CAPACITY);
	gather->len += hyb_delta_image(entry, gather->image + gather->len);
	gather->subtransaction = subtransaction;
	hyb_gathered = true;
	gather_assert_valid(gather);
	return true;
}

void
hyb_gather_end(HybGatherer *gatherer)
{
	if (gatherer->gather != NULL)
		flush_gathered(gatherer->gather, false);
	if (gatherer->gather != NULL)
		release_gather(gatherer->gather);
}

void
hyb_gather_end_of(MemoryContext context)
{
	for (int i = 0; i < MAX_GATHERS; i++)
		if (gathers[i].owner != NULL && gathers[i].owner->context == context)
			hyb_gather_end(gathers[i].owner);
}

/* ---- transactions ---- */

static void
gather_transaction_ends(XactEvent event, void *arg)
{
	if (!hyb_gathered)
		return;
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			for (int i = 0; i < MAX_GATHERS; i++)
			{
				/* its statement has closed the index without telling */
				release_gather(&gathers[i]);
				flush_gathered(&gathers[i], true);
				Assert(gathers[i].len == 0);
			}
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			for (int i = 0; i < MAX_GATHERS; i++)
				gathers[i].len = gathers[i].done = 0;
			hyb_gathered = false;
			break;
		default:
			break;
	}
}

static void
gather_subtransaction_ends(SubXactEvent event, SubTransactionId id,
						   SubTransactionId parent, void *arg)
{
	if (!hyb_gathered)
		return;
	for (int i = 0; i < MAX_GATHERS; i++)
	{
		HybGather  *gather = &gathers[i];

		if (gather->len == 0 || gather->subtransaction < id)
			continue;
		if (event == SUBXACT_EVENT_ABORT_SUB)
			forget(gather);
		else if (event == SUBXACT_EVENT_COMMIT_SUB)
			gather->subtransaction = parent;
		gather_assert_valid(gather);
	}
}

void
hyb_gather_init(void)
{
	RegisterXactCallback(gather_transaction_ends, NULL);
	RegisterSubXactCallback(gather_subtransaction_ends, NULL);
}
