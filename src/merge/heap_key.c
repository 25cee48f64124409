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
 */
#include "compat.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "merge/heap_key.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/rel.h"

static void
append_key(const HybIndex *ix, Relation heap, HeapTuple tuple, HybBuf *out)
{
	const HybKeyDesc *desc = ix->desc;

	for (int i = 0; i < desc->nkeys; i++)
	{
		AttrNumber	attno = ix->rel->rd_index->indkey.values[i];
		bool		isnull;
		Datum		value;

		Assert(attno > 0);
		value = heap_getattr(tuple, attno, RelationGetDescr(heap), &isnull);
		hyb_key_encode_column(&desc->cols[i], value, isnull, out);
	}
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

HybKeyRead
hyb_heap_key(HybDeadCheck *check, const HybIndex *ix,
			 const ItemPointerData *tid, HybBuf *out)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	Page		page = hyb_dead_lock_page(check,
										  ItemPointerGetBlockNumberNoCheck(tid));
	HybKeyRead	result = HYB_KEY_UNKNOWN;

	if (page == NULL)
		return HYB_KEY_UNKNOWN;
	if (offset >= FirstOffsetNumber && offset <= PageGetMaxOffsetNumber(page))
	{
		ItemId		item = PageGetItemId(page, offset);

		if (ItemIdIsDead(item))
			result = HYB_KEY_DEAD;
		else
		{
			HeapTupleData tuple;

			if (ItemIdIsRedirected(item))
				offset = ItemIdGetRedirect(item);
			tuple.t_data = last_version(page, &offset);
			if (tuple.t_data != NULL)
			{
				tuple.t_len = ItemIdGetLength(PageGetItemId(page, offset));
				tuple.t_tableOid = RelationGetRelid(check->heap);
				ItemPointerSet(&tuple.t_self, BufferGetBlockNumber(check->buf), offset);
				append_key(ix, check->heap, &tuple, out);
				result = HYB_KEY_READ;
			}
		}
	}
	LockBuffer(check->buf, BUFFER_LOCK_UNLOCK);
	return result;
}
