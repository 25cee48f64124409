/*
 * heap_key.c
 *		Keys of entries, read from the table.
 *
 * An entry leads to a chain of versions (HOT), which have the same values in
 * indexed columns from the one on that the entry was made for.  Those before it
 * may have others (broken chains: the server's README.HOT), and so may an update
 * that was undone before the index was created.  So all that are there have to
 * agree, and whose they are, or whether they were undone, need not be known.
 */
#include "compat.h"

#include "access/htup_details.h"
#include "merge/heap_key.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* The key of one version. */
static void
version_key(const HybIndex *ix, Relation heap, HeapTuple tuple, HybBuf *out,
			uint32 *keylen)
{
	const HybKeyDesc *desc = ix->desc;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	for (int i = 0; i < desc->natts; i++)
	{
		AttrNumber	attno = ix->rel->rd_index->indkey.values[i];

		Assert(attno > 0);
		values[i] = heap_getattr(tuple, attno, RelationGetDescr(heap), &isnull[i]);
	}
	hyb_key_encode(desc, values, isnull, out, keylen);
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

/* All of the chain, from an offset on, agree on the key, which goes to `out`. */
static bool
chain_key(HybDeadCheck *check, const HybIndex *ix, Page page,
		  OffsetNumber offset, HybBuf *out, uint32 *keylen)
{
	BlockNumber block = BufferGetBlockNumber(check->buf);
	HybBuf		key = {0};
	TransactionId xmax = InvalidTransactionId;
	HeapTupleHeader header;
	bool		found = false;
	bool		agree = true;
	bool		more = true;

	while (more && agree && (header = get_version(page, offset)) != NULL)
	{
		HeapTupleData tuple;
		uint32		len;

		if (found && !TransactionIdEquals(HeapTupleHeaderGetXmin(header), xmax))
			break;
		tuple.t_data = header;
		tuple.t_len = ItemIdGetLength(PageGetItemId(page, offset));
		tuple.t_tableOid = RelationGetRelid(check->heap);
		ItemPointerSet(&tuple.t_self, block, offset);
		version_key(ix, check->heap, &tuple, found ? &key : out, &len);
		agree = !found || (len == *keylen && memcmp(key.data, out->data, len) == 0);
		if (!found)
			*keylen = len;
		found = true;
		more = HeapTupleHeaderIsHotUpdated(header);
		if (more)
		{
			xmax = HeapTupleHeaderGetUpdateXid(header);
			offset = ItemPointerGetOffsetNumber(&header->t_ctid);
		}
	}
	hyb_buf_free(&key);
	return found && agree;
}

HybKeyRead
hyb_heap_key(HybDeadCheck *check, const HybIndex *ix,
			 const ItemPointerData *tid, HybBuf *out, uint32 *keylen)
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
			if (ItemIdIsRedirected(item))
				offset = ItemIdGetRedirect(item);
			if (chain_key(check, ix, page, offset, out, keylen))
				result = HYB_KEY_READ;
		}
	}
	LockBuffer(check->buf, BUFFER_LOCK_UNLOCK);
	return result;
}
