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
 * Values may lie in the TOAST table, which VACUUM cleans independently of the
 * table: those of a version that is dead may be gone while that is still there.
 * They are read only if the version is not dead to our own snapshot, which holds
 * back what they need; or if the TOAST table is locked against VACUUM (by CLUSTER:
 * copy_table_data says why), and it is not dead to everybody.
 */
#include "compat.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "merge/heap_key.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
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

/* Does a key column have its value in the TOAST table? */
static bool
has_external_key(const HybIndex *ix, Relation heap, HeapTuple tuple)
{
	if (!HeapTupleHasExternal(tuple))
		return false;
	for (int i = 0; i < ix->desc->nkeys; i++)
	{
		bool		isnull;
		Datum		value;

		if (ix->desc->cols[i].attlen != -1)
			continue;
		value = heap_getattr(tuple, ix->rel->rd_index->indkey.values[i],
							 RelationGetDescr(heap), &isnull);
		if (!isnull && VARATT_IS_EXTERNAL(DatumGetPointer(value)))
			return true;
	}
	return false;
}

/* Has nobody removed what a version on a locked page has in the TOAST table, and will not? */
static bool
keeps_external(Relation heap, HeapTuple tuple, Buffer buf)
{
	if (!TransactionIdIsValid(MyProc->xmin) ||
		(MyProc->statusFlags & PROC_IN_VACUUM) != 0)
		return false;
	if (HeapTupleSatisfiesVacuum(tuple, MyProc->xmin, buf) != HEAPTUPLE_DEAD)
		return true;
	return CheckRelationOidLockedByMe(heap->rd_rel->reltoastrelid, AccessExclusiveLock, true) &&
		HeapTupleSatisfiesVacuum(tuple, GetOldestNonRemovableTransactionId(heap),
								 buf) != HEAPTUPLE_DEAD;
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
 * A copy of the version that has the entry's key, palloc'd, or NULL: *read says
 * why.  Of a table with values of varying length it is looked at when the page is
 * not locked any more.
 */
static HeapTuple
copy_version(HybDeadCheck *check, const HybIndex *ix, const ItemPointerData *tid,
			 HybKeyRead *read)
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
			if (!has_external_key(ix, check->heap, &tuple) ||
				keeps_external(check->heap, &tuple, check->buf))
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
	HeapTuple	tuple = copy_version(check, ix, tid, &read);

	if (tuple == NULL)
		return read;
	append_key(ix, check->heap, tuple, out);
	heap_freetuple(tuple);
	return HYB_KEY_READ;
}
