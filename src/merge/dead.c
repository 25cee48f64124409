/*
 * dead.c
 *		What the table says about an entry: is its row dead, what is its key.
 *
 * When a page is full, nbtree drops entries with killed-tuple hints
 * (_bt_simpledel_pass).  A merge does the same when it rewrites a leaf.  nbtree
 * logs which snapshots of standbys may still need the rows; generic WAL records
 * cannot say that.  So here only LP_DEAD line pointers count.  Pages that are
 * updated often are pruned often, so most row versions that an update has left
 * behind have one.
 *
 * A key that is read from the table may lie in a chain of row versions (HOT).
 * The versions after the entry's own have the same indexed values, as the
 * server sees to.  Versions before it may differ:
 * - if the entry was made when the index was built (broken chains: the server's
 *   README.HOT);
 * - if an update was undone.
 * The build took the last version that was not undone
 * (heapam_index_build_range_scan, validate_index).  So the last version that is
 * not undone has the entry's key.  Its values may lie in the TOAST table and
 * disappear from there first: then the row is dead (key/row_key.h).
 *
 * A merge asks about each page of the table many times, since TIDs of one key lie
 * anywhere.  So it visits a page once, and remembers which line pointers are dead.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "base/server.h"
#include "common/hashfn.h"
#include "key/row_key.h"
#include "merge/dead.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/rel.h"

/* A bit for each line pointer of a page, by its offset. */
#define POINTER_WORDS	(MaxHeapTuplesPerPage / 64 + 1)

typedef struct DeadPage
{
	BlockNumber block;
	char		status;			/* of the hash table */
	uint64		dead[POINTER_WORDS];
} DeadPage;

#define SH_PREFIX			dead_pages
#define SH_ELEMENT_TYPE		DeadPage
#define SH_KEY_TYPE			BlockNumber
#define SH_KEY				block
#define SH_HASH_KEY(tb, key) murmurhash32(key)
#define SH_EQUAL(tb, a, b)	((a) == (b))
#define SH_SCOPE			static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

#define FIRST_PAGES		64

/* The hash table has up to twice as many places as pages. */
#define MOST_PAGES		(maintenance_work_mem * (Size) 1024 / (2 * sizeof(DeadPage)))

struct HybDeadMemory
{
	MemoryContext context;		/* it lies there */
	uint64		incarnation;	/* of the index */
	uint64		active;			/* generation that was active all the time */
	uint64		ndead;			/* bits that are set */
	dead_pages_hash *pages;
};

/*
 * A process that merges holds a lock on the table already.  It may not get this
 * one while another process waits, and does not need it.
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
	check->memory = NULL;
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
	check->memory = NULL;
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

/* A page of the table, locked (SHARE) in check->buf; or NULL, nothing locked. */
static Page
lock_table_page(HybDeadCheck *check, BlockNumber block)
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

/* ---- what a merge remembers ---- */

HybDeadMemory *
hyb_dead_memory_create(MemoryContext context, const HybIndex *ix, uint64 active)
{
	MemoryContext own = AllocSetContextCreate(context, "hybrid dead line pointers",
											  ALLOCSET_DEFAULT_SIZES);
	HybDeadMemory *memory = MemoryContextAllocZero(own, sizeof(HybDeadMemory));

	memory->context = own;
	memory->incarnation = ix->incarnation;
	memory->active = active;
	memory->pages = dead_pages_create(own, FIRST_PAGES, NULL);
	return memory;
}

bool
hyb_dead_memory_is_of(const HybDeadMemory *memory, const HybIndex *ix, uint64 active)
{
	return memory->incarnation == ix->incarnation && memory->active == active;
}

void
hyb_dead_memory_free(HybDeadMemory *memory)
{
	MemoryContextDelete(memory->context);
}

HybPointer
hyb_dead_recall(const HybDeadCheck *check, const ItemPointerData *tid)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	const DeadPage *page = dead_pages_lookup(check->memory->pages,
											 ItemPointerGetBlockNumberNoCheck(tid));

	if (page == NULL)
		return HYB_POINTER_UNKNOWN;
	return offset <= MaxHeapTuplesPerPage &&
		(page->dead[offset / 64] >> (offset % 64) & 1) != 0 ?
		HYB_POINTER_DEAD : HYB_POINTER_LIVE;
}

bool
hyb_dead_any(const HybDeadCheck *check)
{
	return check->memory->ndead > 0;
}

int
hyb_dead_visit(HybDeadCheck *check, BlockNumber block)
{
	HybDeadMemory *memory = check->memory;
	uint64		dead[POINTER_WORDS] = {0};
	int			ndead = 0;
	DeadPage   *remembered;
	OffsetNumber last;
	bool		found;
	Page		page;

	if (memory->pages->members >= MOST_PAGES)
		return 0;
	page = lock_table_page(check, block);
	if (page == NULL)
		return 0;
	last = Min(PageGetMaxOffsetNumber(page), MaxHeapTuplesPerPage);
	for (OffsetNumber offset = FirstOffsetNumber; offset <= last; offset++)
	{
		bool		is_dead = ItemIdIsDead(PageGetItemId(page, offset));

		dead[offset / 64] |= (uint64) is_dead << (offset % 64);
		ndead += is_dead;
	}
	LockBuffer(check->buf, BUFFER_LOCK_UNLOCK);

	remembered = dead_pages_insert(memory->pages, block, &found);
	Assert(!found);
	memcpy(remembered->dead, dead, sizeof(dead));
	memory->ndead += ndead;
	return ndead;
}

/* ---- one entry ---- */

bool
hyb_dead_tid(HybDeadCheck *check, const ItemPointerData *tid)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	Page		page;
	bool		dead = false;

	if (check->memory != NULL && hyb_dead_recall(check, tid) == HYB_POINTER_DEAD)
		return true;
	page = lock_table_page(check, ItemPointerGetBlockNumberNoCheck(tid));
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

/* A row version on a locked page, or NULL. */
static HeapTupleHeader
get_version(Page page, OffsetNumber offset)
{
	ItemId		item;

	if (offset < FirstOffsetNumber || offset > PageGetMaxOffsetNumber(page))
		return NULL;
	item = PageGetItemId(page, offset);
	return ItemIdIsNormal(item) ? (HeapTupleHeader) PageGetItem(page, item) : NULL;
}

/* The transaction of the next row version, unless it was undone. */
static TransactionId
update_of(HeapTupleHeader header)
{
	TransactionId xid;

	if (!HeapTupleHeaderIsHotUpdated(header))
		return InvalidTransactionId;
	xid = HeapTupleHeaderGetUpdateXid(header);
	if ((header->t_infomask & (HEAP_XMAX_COMMITTED | HEAP_XMAX_IS_MULTI)) == HEAP_XMAX_COMMITTED)
		return xid;

	/* in this order: the transaction may end in between */
	return TransactionIdIsInProgress(xid) || TransactionIdDidCommit(xid) ? xid :
		InvalidTransactionId;
}

/* The last version of the chain from *offset on, or NULL; sets *offset. */
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
 * A palloc'd copy of the row version with the entry's key, since values may be
 * fetched with the page unlocked; or NULL, and *read says why.
 */
static HeapTuple
copy_row_version(HybDeadCheck *check, const ItemPointerData *tid, HybKeyRead *read)
{
	OffsetNumber offset = ItemPointerGetOffsetNumberNoCheck(tid);
	Page		page = lock_table_page(check,
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
	read = hyb_key_of_tuple(ix->desc, ix->rel, tuple,
							RelationGetDescr(check->heap), out) ? HYB_KEY_READ : HYB_KEY_DEAD;
	heap_freetuple(tuple);
	return read;
}
