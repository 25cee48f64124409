/*
 * heap_key.c
 *		Keys of entries, read from the table.
 *
 * An entry leads to a chain of versions (HOT).  Those after the one that it was
 * made for have the same values in indexed columns, as the server sees to.  Those
 * before it may have others, if it was made when the index was built (broken
 * chains: the server's README.HOT); so may an update that was undone before.  The
 * build took the last version that was not undone (heapam_index_build_range_scan,
 * validate_index).  So the last one now that was not undone has the entry's key,
 * and which it was made for need not be known.
 *
 * Values may lie in the TOAST table, and be gone from there before the row is from
 * the table: then it is dead to everybody, and its entry can be dropped
 * (key/toast_value.h).
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "key/slot_key.h"
#include "merge/heap_key.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/rel.h"

/* False, nothing appended, if a value is gone. */
static bool
append_key(const HybIndex *ix, Relation heap, HeapTuple tuple, HybBuf *out)
{
	const HybKeyDesc *desc = ix->desc;
	uint32		len = out->len;

	for (int i = 0; i < desc->nkeys; i++)
	{
		AttrNumber	attno = ix->rel->rd_index->indkey.values[i];
		bool		isnull;
		Datum		value;

		Assert(attno > 0);
		value = heap_getattr(tuple, attno, RelationGetDescr(heap), &isnull);
		if (!hyb_key_append_column(&desc->cols[i], value, isnull, out))
		{
			out->len = len;
			return false;
		}
	}
	return true;
}

/* A version of a locked page, or NULL if there is none. */
static HeapTupleHeader
get_version(Page page, OffsetNumber offset)
{
	ItemId		item;

	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page))
		return NULL;
	item = PageGetItemId(page, offset);
	return ItemIdIsNormal(item) ? (HeapTupleHeader) PageGetItem(page, item) : NULL;
}

/*
 * The transaction that made the next version, if that is there and was not undone.
 */
static TransactionId
update_of(HeapTupleHeader header)
{
	TransactionId xid;

	if (!HeapTupleHeaderIsHotUpdated(header))
		return InvalidTransactionId;
	xid = HeapTupleHeaderGetUpdateXid(header);
	if ((header->t_infomask & (HEAP_XMAX_COMMITTED | HEAP_XMAX_IS_MULTI)) == HEAP_XMAX_COMMITTED)
		return xid;

	/* in this order: it may end in between.  A crash leaves it neither. */
	return TransactionIdIsInProgress(xid) || TransactionIdDidCommit(xid) ? xid :
		InvalidTransactionId;
}

/* The last version of the chain from an offset on; NULL if there is none. */
static HeapTupleHeader
last_version(Page page, OffsetNumber *offset)
{
	HeapTupleHeader last = get_version(page, *offset);

	while (last != NULL)
	{
		TransactionId xid = update_of(last);
		OffsetNumber next = ItemPointerGetOffsetNumberNoCheck(&last->t_ctid);
		HeapTupleHeader version = TransactionIdIsValid(xid) ? get_version(page, next) : NULL;

		if (version == NULL || next == *offset ||
			!TransactionIdEquals(HeapTupleHeaderGetXmin(version), xid))
			break;
		*offset = next;
		last = version;
	}
	return last;
}

/*
 * A copy of the version that has the entry's key, palloc'd, since values may have
 * to be fetched with the page unlocked; or NULL: *read says why.
 */
static HeapTuple
copy_row_version(HybDeadCheck *check, const ItemPointerData *tid, HybKeyRead *read)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	Page		page = hyb_dead_lock_page(check,
										  ItemPointerGetBlockNumberNoCheck(tid));
	HeapTuple	copy = NULL;

	*read = HYB_KEY_UNKNOWN;
	if (page == NULL)
		return NULL;
	if (offset >= FirstOffsetNumber && offset <= PageGetMaxOffsetNumber(page))
	{
		ItemId		item = PageGetItemId(page, offset);
		HeapTupleData tuple;

		if (ItemIdIsRedirected(item))
			offset = ItemIdGetRedirect(item);
		tuple.t_data = ItemIdIsDead(item) ? NULL : last_version(page, &offset);
		if (ItemIdIsDead(item))
			*read = HYB_KEY_DEAD;
		else if (tuple.t_data != NULL)
		{
			tuple.t_len = ItemIdGetLength(PageGetItemId(page, offset));
			tuple.t_tableOid = RelationGetRelid(check->heap);
			ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(check->buf), offset);
			copy = heap_copytuple(&tuple);
		}
	}
	LockBuffer(check->buf, BUFFER_LOCK_UNLOCK);
	return copy;
}

HybKeyRead
hyb_heap_key(HybDeadCheck *check, const HybIndex *ix,
			 const ItemPointerData *tid, HybBuf *out)
{
	HybKeyRead	read;
	HeapTuple	tuple = copy_row_version(check, tid, &read);

	if (tuple == NULL)
		return read;
	read = append_key(ix, check->heap, tuple, out) ? HYB_KEY_READ : HYB_KEY_DEAD;
	heap_freetuple(tuple);
	return read;
}
