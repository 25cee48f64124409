/*
 * chain.c
 *		HOT chains of a table, and the keys of their members.
 */
#include "base/compat.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "base/server.h"
#include "catalog/index.h"
#include "catalog/pg_index.h"
#include "chain/chain.h"
#include "executor/executor.h"
#include "key/row_key.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

/* A reader gives up asking functions after this time: DROP INDEX may wait for a merge step. */
#define FUNCTIONS_MS	1000

struct HybChainReader
{
	const HybIndex *ix;
	Relation	heap;
	MemoryContext context;		/* of the reader */
	MemoryContext work;			/* reset after each chain */
	Buffer		buf;			/* page read last, pinned, or InvalidBuffer */
	HybBuf		key;			/* of a member */

	/* unless the keys are plain */
	struct IndexInfo *info;
	EState	   *estate;
	ExprState  *predicate;
	TupleTableSlot *slot;
	int64		functions_us;	/* for hyb_chain_may_have_key */
};

HeapTupleData
hyb_tuple_at(Relation heap, Page page, BlockNumber block, OffsetNumber offset)
{
	HeapTupleData tuple = {.t_tableOid = RelationGetRelid(heap)};
	ItemId		item;

	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page))
		return tuple;
	item = PageGetItemId(page, offset);
	if (!ItemIdIsNormal(item))
		return tuple;
	tuple.t_data = (HeapTupleHeader) PageGetItem(page, item);
	tuple.t_len = ItemIdGetLength(item);
	ItemPointerSet(&tuple.t_self, block, offset);
	return tuple;
}

/* ---- a new row version ---- */

/*
 * A copy of the version that this transaction has replaced by the one at `tid`, or NULL
 * if that is not its successor in a chain.
 */
static HeapTuple
copy_predecessor(Relation heap, Page page, const ItemPointerData *tid)
{
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	BlockNumber block = ItemPointerGetBlockNumber(tid);

	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		HeapTupleData tuple = hyb_tuple_at(heap, page, block, offset);

		if (tuple.t_data != NULL && HeapTupleHeaderIsHotUpdated(tuple.t_data) &&
			offset != ItemPointerGetOffsetNumber(tid) &&
			ItemPointerEquals(&tuple.t_data->t_ctid, unconstify(ItemPointerData *, tid)) &&
			TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(tuple.t_data)))
			return heap_copytuple(&tuple);
	}
	return NULL;
}

/*
 * An index that is not valid may lack the predecessor's entry, and so may a partial one,
 * whose predicate may not hold for it.
 */
bool
hyb_chain_enter(const HybIndex *ix, Relation heap, ItemPointerData *tid,
				const uint8 *key, uint32 keylen)
{
	ItemPointerData row = *tid;
	HeapTuple	predecessor = NULL;
	OffsetNumber root = ItemPointerGetOffsetNumber(&row);
	HybBuf		before = {0};
	bool		covered;
	HeapTupleData tuple;
	Buffer		buf;

	HYB_ASSERT_NO_LWLOCK();
	buf = ReadBuffer(heap, ItemPointerGetBlockNumber(&row));
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	tuple = hyb_tuple_at(heap, BufferGetPage(buf), ItemPointerGetBlockNumber(&row), root);
	if (tuple.t_data != NULL && HeapTupleHeaderIsHeapOnly(tuple.t_data))
	{
		OffsetNumber roots[MaxHeapTuplesPerPage];

		heap_get_root_tuples(BufferGetPage(buf), roots);
		root = roots[root - 1];
		if (ix->rel->rd_index->indisvalid && ix->desc->plain)
			predecessor = copy_predecessor(heap, BufferGetPage(buf), &row);
	}
	UnlockReleaseBuffer(buf);
	if (!OffsetNumberIsValid(root))
		ereport(ERROR,
				(errcode(ERRCODE_DATA_CORRUPTED),
				 errmsg_internal("failed to find parent tuple for heap-only tuple at (%u,%u) in table \"%s\"",
								 ItemPointerGetBlockNumber(&row), ItemPointerGetOffsetNumber(&row),
								 RelationGetRelationName(heap))));
	ItemPointerSetOffsetNumber(tid, root);
	if (predecessor == NULL)
		return false;
	covered = hyb_key_of_tuple(ix->desc, ix->rel, predecessor, RelationGetDescr(heap),
							   &before) &&
		before.len == keylen && memcmp(before.data, key, keylen) == 0;
	hyb_buf_free(&before);
	heap_freetuple(predecessor);
	return covered;
}

/* ---- readers ---- */

/* Has the reader ready to call functions. */
static void
prepare_functions(HybChainReader *reader)
{
	reader->info = BuildIndexInfo(reader->ix->rel);
	reader->estate = CreateExecutorState();
	reader->slot = MakeSingleTupleTableSlot(RelationGetDescr(reader->heap),
											&TTSOpsHeapTuple);
	reader->predicate = ExecPrepareQual(reader->info->ii_Predicate, reader->estate);
}

HybChainReader *
hyb_chain_reader_create(const HybIndex *ix, Relation heap)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hybrid chains", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	HybChainReader *reader = palloc0(sizeof(HybChainReader));

	reader->ix = ix;
	reader->heap = heap;
	reader->context = context;
	reader->work = AllocSetContextCreate(context, "hybrid chain", ALLOCSET_SMALL_SIZES);
	reader->buf = InvalidBuffer;
	hyb_buf_reserve(&reader->key, 64);
	if (!ix->desc->plain)
		prepare_functions(reader);
	MemoryContextSwitchTo(old);
	return reader;
}

void
hyb_chain_reader_release(HybChainReader *reader)
{
	if (BufferIsValid(reader->buf))
		ReleaseBuffer(reader->buf);
	reader->buf = InvalidBuffer;
}

void
hyb_chain_reader_free(HybChainReader *reader)
{
	hyb_chain_reader_release(reader);
	if (!reader->ix->desc->plain)
	{
		ExecDropSingleTupleTableSlot(reader->slot);
		FreeExecutorState(reader->estate);
	}
	MemoryContextDelete(reader->context);
}

/* ---- keys of row versions ---- */

/* Makes the key of a version by functions; false if it has no entry. */
static bool
form_key(HybChainReader *reader, TupleTableSlot *slot)
{
	const HybKeyDesc *desc = reader->ix->desc;
	ExprContext *context = GetPerTupleExprContext(reader->estate);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	HybCaller	caller;
	bool		holds;

	hyb_become_owner(&caller, reader->heap->rd_rel->relowner);
	context->ecxt_scantuple = slot;
	ResetExprContext(context);
	holds = reader->predicate == NULL || ExecQual(reader->predicate, context);
	if (holds)
		FormIndexDatum(reader->info, slot, reader->estate, values, isnull);
	for (int i = 0; i < desc->nkeys && holds; i++)
		hyb_key_encode_column(&desc->cols[i], values[i], isnull[i], &reader->key);
	hyb_become_caller(&caller);
	return holds;
}

static bool
form_key_of_copy(HybChainReader *reader, HeapTuple copy)
{
	bool		holds;

	ExecStoreHeapTuple(copy, reader->slot, false);
	holds = form_key(reader, reader->slot);
	ExecClearTuple(reader->slot);
	return holds;
}

static bool
key_is(const HybChainReader *reader, const uint8 *key, uint32 keylen)
{
	return hyb_key_compare(reader->ix->desc, reader->key.data, reader->key.len,
						   key, keylen) == 0;
}

static bool
copy_has_key(HybChainReader *reader, HeapTuple copy, const uint8 *key, uint32 keylen)
{
	const HybIndex *ix = reader->ix;

	reader->key.len = 0;
	return (ix->desc->plain ?
			hyb_key_of_tuple(ix->desc, ix->rel, copy, RelationGetDescr(reader->heap), &reader->key) :
			form_key_of_copy(reader, copy)) &&
		key_is(reader, key, keylen);
}

bool
hyb_chain_row_has_key(HybChainReader *reader, TupleTableSlot *row,
					  const uint8 *key, uint32 keylen)
{
	const HybIndex *ix = reader->ix;
	MemoryContext old = MemoryContextSwitchTo(reader->work);
	bool		has;

	reader->key.len = 0;
	/* a slot would keep the columns before the key's, too */
	has = (ix->desc->plain ?
		   hyb_key_of_tuple(ix->desc, ix->rel, ExecFetchSlotHeapTuple(row, false, NULL),
							RelationGetDescr(reader->heap), &reader->key) :
		   form_key(reader, row)) &&
		key_is(reader, key, keylen);
	MemoryContextSwitchTo(old);
	MemoryContextReset(reader->work);
	return has;
}

/* Locks the root's page (SHARE) in reader->buf. */
static void
lock_page(HybChainReader *reader, const ItemPointerData *root)
{
	HYB_ASSERT_NO_LWLOCK();
	reader->buf = ReleaseAndReadBuffer(reader->buf, reader->heap,
									   ItemPointerGetBlockNumber(root));
	LockBuffer(reader->buf, BUFFER_LOCK_SHARE);
}

/*
 * Copies the members of a chain.  It goes from version to version as
 * heap_hot_search_buffer does, so it meets whatever a snapshot may see.
 */
static int
copy_members(HybChainReader *reader, const ItemPointerData *root, HeapTuple *copies)
{
	Page		page = BufferGetPage(reader->buf);
	BlockNumber block = ItemPointerGetBlockNumber(root);
	OffsetNumber offset = ItemPointerGetOffsetNumber(root);
	TransactionId xid = InvalidTransactionId;	/* that replaced the member
												 * before */
	int			n = 0;

	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page))
		return 0;
	if (ItemIdIsRedirected(PageGetItemId(page, offset)))
		offset = ItemIdGetRedirect(PageGetItemId(page, offset));
	else
	{
		HeapTupleData first = hyb_tuple_at(reader->heap, page, block, offset);

		/*
		 * the root was freed, and its line pointer is a member of another
		 * chain
		 */
		if (first.t_data == NULL || HeapTupleHeaderIsHeapOnly(first.t_data))
			return 0;
	}
	while (n < MaxHeapTuplesPerPage)
	{
		HeapTupleData tuple = hyb_tuple_at(reader->heap, page, block, offset);

		if (tuple.t_data == NULL ||
			(TransactionIdIsValid(xid) &&
			 !TransactionIdEquals(HeapTupleHeaderGetXmin(tuple.t_data), xid)))
			break;
		copies[n++] = heap_copytuple(&tuple);
		if (!HeapTupleHeaderIsHotUpdated(tuple.t_data) ||
			ItemPointerGetOffsetNumber(&tuple.t_data->t_ctid) == offset)
			break;
		xid = HeapTupleHeaderGetUpdateXid(tuple.t_data);
		offset = ItemPointerGetOffsetNumber(&tuple.t_data->t_ctid);
	}
	return n;
}

bool
hyb_chain_has_key(HybChainReader *reader, const ItemPointerData *root,
				  const uint8 *key, uint32 keylen)
{
	HeapTuple	copies[MaxHeapTuplesPerPage];
	MemoryContext old;
	bool		has = false;
	int			n;

	old = MemoryContextSwitchTo(reader->work);
	lock_page(reader, root);
	n = copy_members(reader, root, copies);
	LockBuffer(reader->buf, BUFFER_LOCK_UNLOCK);
	/* the caller may have begun a subtransaction for errors of functions */
	if (!reader->ix->desc->plain)
		hyb_chain_reader_release(reader);
	for (int i = 0; i < n && !has; i++)
		has = copy_has_key(reader, copies[i], key, keylen);
	MemoryContextSwitchTo(old);
	MemoryContextReset(reader->work);
	return has;
}

typedef struct Question
{
	HybChainReader *reader;
	const ItemPointerData *root;
	const uint8 *key;
	uint32		keylen;
	bool		has;
} Question;

static void
ask_chain(void *arg)
{
	Question   *question = arg;

	question->has = hyb_chain_has_key(question->reader, question->root,
									  question->key, question->keylen);
}

/*
 * Functions may fail, the more since the row may be dead.  They may also run for ever,
 * and the owner could not cancel a background worker.  So a worker cancels them.  What
 * they write is rolled back.
 */
bool
hyb_chain_may_have_key(HybChainReader *reader, const ItemPointerData *root,
					   const uint8 *key, uint32 keylen)
{
	Question	question = {reader, root, key, keylen, true};
	int			rest = FUNCTIONS_MS - (int) (reader->functions_us / 1000);
	bool		limited;
	TimestampTz start;
	ErrorData  *error;

	if (reader->ix->desc->plain)
		return hyb_chain_has_key(reader, root, key, keylen);
	if (rest <= 0 || !HYB_SUBTRANSACTIONS_ALLOWED())
		return true;
	Assert(!BufferIsValid(reader->buf));
	limited = MyBackendType == B_BG_WORKER && !get_timeout_active(STATEMENT_TIMEOUT);
	start = GetCurrentTimestamp();
	if (limited)
		enable_timeout_after(STATEMENT_TIMEOUT, rest);
	error = hyb_in_subtransaction(ask_chain, &question, HYB_SHORT_WAIT_MS);
	if (limited)
		disable_timeout(STATEMENT_TIMEOUT, false);
	reader->functions_us += GetCurrentTimestamp() - start;
	if (error == NULL)
		return question.has;
	/* the end of the subtransaction released the page, if it was pinned */
	reader->buf = InvalidBuffer;
	if (error->sqlerrcode == ERRCODE_QUERY_CANCELED &&
		!(limited && reader->functions_us / 1000 >= FUNCTIONS_MS))
		ReThrowError(error);
	FreeErrorData(error);
	return true;
}
