/*
 * unique.c
 *		The uniqueness check of INSERT.
 *
 * Two inserters of one key meet in a partition (log/unique_lock.h), which
 * is locked from comparing what others have appended since the search began
 * until the new entry is in the log.  The search itself, of both stages and of
 * the heap, is done with pins only: it may wait, throw, and run users' code.
 *
 * An entry that VACUUM removes meanwhile could lead to another row, which has
 * got the line pointer.  So a tuple that an entry leads to means something only
 * if VACUUM had not finished when it was looked at, which takes a pin that
 * holds (log/log.h).  A leaf is pinned while the tuples of its
 * candidates are looked at.  Of a dynamic candidate, whose tuple is mostly gone
 * (an update leaves one of each version), the tuple is looked at first: if it
 * is not there then there is no conflict, whatever VACUUM did.  If it is, a pin
 * that was taken later and holds says that VACUUM had not finished before
 * either.
 *
 * Candidates that are dead to all get killed-tuple hints, as in nbtree
 * (_bt_check_unique), and those that have one are passed over.
 */
#include "base/compat.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "algo/bits.h"
#include "filter/filter_use.h"
#include "insert/counterpart.h"
#include "insert/serializable.h"
#include "insert/unique.h"
#include "key/row_key.h"
#include "leaf/leaf.h"
#include "log/log.h"
#include "miscadmin.h"
#include "shared/index_cache.h"
#include "storage/lmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Dynamic candidates looked at in one fetch. */
#define HYB_UNIQUE_BATCH	64

/* First sizes of the buffers. */
#define HYB_UNIQUE_BYTES	128
#define HYB_UNIQUE_ITEMS	8

typedef enum SearchResult
{
	SEARCH_UNIQUE,				/* no conflict */
	SEARCH_MAYBE,				/* UNIQUE_CHECK_PARTIAL: perhaps one */
	SEARCH_WAIT,				/* wait for xwait, then start over */
	SEARCH_DUPLICATE,			/* a conflict for certain */
	SEARCH_AGAIN				/* the version changed: start over */
} SearchResult;

typedef struct UniqueSearch
{
	HybIndex   *ix;
	const HybUniqueRow *row;
	IndexUniqueCheck check;		/* row->check, or PARTIAL for UNIQUE_CHECK_YES
								 * where another index decides */
	HybPos		low;			/* just below the key, and just above it */
	HybPos		high;
	uint64		hash;			/* of the key, 0 if equal keys may differ in
								 * their bytes */
	bool		found_self;		/* UNIQUE_CHECK_EXISTING: met our own entry */
	bool		in_static;		/* entries of the key are in the static stage */
	SnapshotData dirty;
	TransactionId xwait;

	HybUniqueBuffers *buffers;
} UniqueSearch;

/* Looks at catalogs and calls output functions. */
static void
report_duplicate(UniqueSearch *search)
{
	Relation	index = search->ix->rel;
	char	   *key_desc;

	HYB_ASSERT_NO_LWLOCK();
	hyb_serializable_insertion(search->ix, search->row->heap, search->row->entry);
	key_desc = BuildIndexValueDescription(index, search->row->values,
										  search->row->isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"",
					RelationGetRelationName(index)),
			 key_desc ? errdetail("Key %s already exists.", key_desc) : 0,
			 errtableconstraint(search->row->heap, RelationGetRelationName(index))));
}

/*
 * The same as table_index_fetch_tuple_check, for an entry whose key is not known:
 * has the tuple the key that is sought?
 */
static bool
row_has_key(UniqueSearch *search, ItemPointer tid, bool *dead)
{
	Relation	heap = search->row->heap;
	const HybKeyDesc *desc = search->ix->desc;
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	IndexFetchTableData *fetch = table_index_fetch_begin(heap);
	HybBuf	   *key = &search->buffers->key;
	bool		again = false;
	bool		same;

	same = table_index_fetch_tuple(fetch, tid, &search->dirty, slot, &again, dead);
	if (same)
	{
		/* without its values, its insertion was undone just now */
		key->len = 0;
		same = hyb_key_of_slot(desc, search->ix->rel, slot, key) &&
			hyb_key_compare(desc, key->data, key->len, search->row->entry->bytes,
							search->row->entry->keylen) == 0;
	}
	table_index_fetch_end(fetch);
	ExecDropSingleTupleTableSlot(slot);
	return same;
}

/*
 * Is there a tuple, of any transaction that has not failed, that a candidate
 * leads to?  *dead: it will never be there for anybody.  `truncated`: the
 * candidate's key may be another one.
 */
static bool
candidate_exists(UniqueSearch *search, const ItemPointerData *candidate,
				 bool truncated, bool *dead)
{
	ItemPointerData htid = *candidate;

	Assert(search->check != UNIQUE_CHECK_NO);
	HYB_POINT("unique-candidate");
	HYB_ASSERT_NO_LWLOCK();
	*dead = false;
	if (search->check == UNIQUE_CHECK_EXISTING &&
		ItemPointerEquals(&htid, &search->row->entry->tid))
	{
		search->found_self = true;
		return false;
	}
	if (truncated)
		return row_has_key(search, &htid, dead);
	return table_index_fetch_tuple_check(search->row->heap, &htid,
										 &search->dirty, dead);
}

/*
 * What about a candidate that exists, and whose page has this pin?
 */
static SearchResult
judge_candidate(UniqueSearch *search, HybPinResult pin)
{
	ItemPointerData htid;

	switch (pin)
	{
		case HYB_PIN_DEAD:
			return SEARCH_UNIQUE;	/* the tuple is another entry's */
		case HYB_PIN_MOVED:
			return SEARCH_AGAIN;
		case HYB_PIN_HOLDS:
			break;
	}
	Assert(pin == HYB_PIN_HOLDS);
	if (search->check == UNIQUE_CHECK_PARTIAL)
		return SEARCH_MAYBE;

	search->xwait = TransactionIdIsValid(search->dirty.xmin) ?
		search->dirty.xmin : search->dirty.xmax;
	if (TransactionIdIsValid(search->xwait))
		return SEARCH_WAIT;

	/*
	 * A definite conflict, unless our own tuple was deleted meanwhile (by
	 * ourselves: the row was inserted and updated in one command, say).
	 */
	htid = search->row->entry->tid;
	if (!table_index_fetch_tuple_check(search->row->heap, &htid, SnapshotSelf,
									   NULL))
		return SEARCH_UNIQUE;
	return SEARCH_DUPLICATE;
}

void
hyb_unique_buffers_init(HybUniqueBuffers *buffers, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);

	memset(buffers, 0, sizeof(*buffers));
	buffers->context = context;
	hyb_buf_reserve(&buffers->descent.fence_key, HYB_UNIQUE_BYTES);
	hyb_buf_reserve(&buffers->batch.keys, HYB_UNIQUE_BYTES);
	hyb_buf_reserve(&buffers->key, HYB_UNIQUE_BYTES);
	buffers->batch.items_alloc = HYB_UNIQUE_ITEMS;
	buffers->batch.items = palloc(HYB_UNIQUE_ITEMS * sizeof(HybDynItem));
	MemoryContextSwitchTo(old);
}

/* Open the leaf that was descended to. */
static void
open_candidate_leaf(UniqueSearch *search)
{
	HybUniqueBuffers *buffers = search->buffers;
	MemoryContext old = MemoryContextSwitchTo(buffers->context);

	hyb_leaf_open(&buffers->leaf, search->ix->desc,
				  BufferGetPage(buffers->descent.buf), search->ix->rel,
				  buffers->descent.block);
	MemoryContextSwitchTo(old);
}

/*
 * Items [first, end) of the open leaf, which is unlocked when this returns but
 * stays pinned.
 */
static SearchResult
search_leaf(UniqueSearch *search, const HybVersion *version, int first, int end)
{
	HybDescent *descent = &search->buffers->descent;
	HybLeaf    *leaf = &search->buffers->leaf;
	Page		page = BufferGetPage(descent->buf);
	const uint8 *hints = hyb_leaf_hints(page);
	uint16		pd_lower = ((PageHeader) page)->pd_lower;
	bool		truncated = !hyb_leaf_keeps_keys(leaf);
	uint64		hash = truncated ? hyb_byte_hash(search->low.key, search->low.len) : 0;
	ItemPointerData *tids;
	int		   *items;
	int			n = 0;
	int			ndead = 0;
	SearchResult result = SEARCH_UNIQUE;

	if (first >= end)
	{
		LockBuffer(descent->buf, BUFFER_LOCK_UNLOCK);
		return SEARCH_UNIQUE;
	}

	Assert(first >= 0 && end <= leaf->nitems);
	tids = palloc((end - first) * sizeof(ItemPointerData));
	items = palloc((end - first) * sizeof(int));
	hyb_leaf_tids(leaf, first, end - first, tids);
	for (int i = first; i < end; i++)
	{
		if (hyb_leaf_is_tombstone(leaf, i) ||
			(hints != NULL && (hints[i >> 3] & (1 << (i & 7))) != 0) ||
			(truncated && !hyb_leaf_may_have(leaf, i, hash)))
			continue;
		tids[n] = tids[i - first];
		items[n++] = i;
	}
	LockBuffer(descent->buf, BUFFER_LOCK_UNLOCK);

	for (int i = 0; i < n && result == SEARCH_UNIQUE; i++)
	{
		bool		dead;

		if (candidate_exists(search, &tids[i], truncated, &dead))
			result = judge_candidate(search,
									 hyb_leaf_pin_check(search->ix, version));
		else if (dead)
			items[ndead++] = items[i];
	}
	if (ndead > 0)
		hyb_leaf_set_hints(search->ix, descent->buf, descent->stamp, pd_lower,
						   items, ndead);
	pfree(items);
	pfree(tids);
	return result;
}

/* So many bytes of the greatest key are kept. */
#define TOP_BYTES	64

/* The greatest key of a version's static stage. */
typedef struct Top
{
	uint64		version;		/* that version; 0: not known */
	uint8	   *key;			/* its first bytes, in TopMemoryContext */
	uint8		len;			/* 0: there are no keys */
	uint8		room;			/* of `key` */
} Top;

static void
release_top(void *piece)
{
	if (((Top *) piece)->key != NULL)
		pfree(((Top *) piece)->key);
}

static HybCachePiece top_piece = {
	.size = sizeof(Top),
	.release = release_top
};

void
hyb_unique_init(void)
{
	hyb_cache_add_piece(&top_piece);
}

/* Order of keys of an all_mem index, of which none is another's prefix. */
static inline int
key_order(const uint8 *key, uint32 len, const HybBuf *other)
{
	return memcmp(key, other->data, Min(len, other->len));
}

static void
set_top(Top *top, uint64 version, const HybBuf *key)
{
	uint8		len = Min(key->len, TOP_BYTES);

	top->version = 0;
	if (len > top->room)
	{
		if (top->key != NULL)
			pfree(top->key);
		top->room = 0;
		top->key = NULL;
		top->key = MemoryContextAlloc(TopMemoryContext, len);
		top->room = len;
	}
	Assert(len <= top->room && (len == 0 || top->key != NULL));
	if (len > 0)
		memcpy(top->key, key->data, len);
	top->len = len;
	top->version = version;
}

/*
 * Bytes that no key of a leaf that does not keep keys lies above, if what begins
 * with them does not count.
 */
static void
greatest_prefix(HybLeaf *leaf, HybBuf *key)
{
	uint32		bits = hyb_leaf_prefix(leaf, leaf->nrows - 1, key);

	if (bits % 8 != 0)
		key->data[bits / 8] |= 0xFF >> bits % 8;
}

/*
 * Find it; it is remembered for as long as the version lasts.  Returns false
 * if the version is no longer current.
 */
static bool
load_top(UniqueSearch *search, const HybVersion *version, Top *top)
{
	HybIndex   *ix = search->ix;
	HybDescent *descent = &search->buffers->descent;
	HybLeaf    *leaf = &search->buffers->leaf;
	HybBuf		key = {0};
	HybBuf		greatest = {0};
	HybPos		end = {.tie = HYB_AFTER};
	HybSought	sought = {
		.pos = &end,
		.backward = true
	};

	for (int i = 0; i < version->nlevels; i++)
	{
		if (version->levels[i].height == 0)
			continue;
		sought.level = i;
		if (!hyb_static_descend(ix, version, &sought, descent))
			return false;
		open_candidate_leaf(search);
		key.len = 0;
		if (hyb_leaf_keeps_keys(leaf))
			hyb_key_join(ix->desc, hyb_leaf_row(leaf, leaf->nrows - 1),
						 ix->desc->nkeys, &key);
		else
			greatest_prefix(leaf, &key);
		UnlockReleaseBuffer(descent->buf);
		if (greatest.len == 0 ||
			key_order(key.data, key.len, &greatest) > 0)
		{
			greatest.len = 0;
			hyb_buf_append(&greatest, key.data, key.len);
		}
	}
	set_top(top, version->version, &greatest);
	hyb_buf_free(&greatest);
	hyb_buf_free(&key);
	return true;
}

/*
 * Keys often ascend: then each lies above all of the static stage, and one
 * comparison says so.  Returns false if the version is no longer current.
 */
static bool
above_static(UniqueSearch *search, const HybVersion *version, bool *above)
{
	Top		   *top = hyb_cache_piece(search->ix, &top_piece);

	*above = false;
	if (!search->ix->desc->all_mem)
		return true;
	if (top->version != version->version && !load_top(search, version, top))
		return false;

	Assert(top->version == version->version);
	/* a key that begins like the greatest one may be below it */
	*above = top->len == 0 ||
		memcmp(search->low.key, top->key, Min(search->low.len, top->len)) > 0;

	/* while nothing was merged all keys do, and that says nothing of them */
	if (*above && top->len > 0)
		hyb_cache_count(search->ix, HYB_UNIQUE_ABOVE);
	return true;
}

static SearchResult
search_level(UniqueSearch *search, const HybVersion *version, int level)
{
	HybIndex   *ix = search->ix;
	HybDescent *descent = &search->buffers->descent;
	HybLeaf    *leaf = &search->buffers->leaf;
	HybPos		pos = search->low;
	HybBuf		posbuf = {0};
	HybSought	sought = {
		.level = level,
		.pos = &pos,
		.want_fence = true
	};

	if (version->levels[level].height == 0)
		return SEARCH_UNIQUE;
	if (hyb_filter_try_level(hyb_filter_try(ix, HYB_ASK_UNIQUE), level))
		sought.bound = &search->high;

	for (;;)
	{
		int			row;
		int			end_row;
		int			item;
		int			end;
		bool		last;
		SearchResult result = SEARCH_UNIQUE;

		if (!hyb_static_descend(ix, version, &sought, descent))
			return SEARCH_AGAIN;
		if (descent->skipped)
		{
			hyb_filter_note(ix, HYB_ASK_UNIQUE, level, HYB_PROBE_NEGATIVE);
			last = hyb_pos_compare(ix->desc, &descent->fence, &search->high) >= 0;
			goto next_leaf;
		}
		open_candidate_leaf(search);
		item = hyb_leaf_search_equal(leaf, &search->low, &row, &end_row);
		end = row < end_row ? hyb_leaf_row_start(leaf, end_row) : item;
		last = end < leaf->nitems ||
			hyb_pos_compare(ix->desc, &descent->fence, &search->high) >= 0;
		if (descent->probed)
			hyb_filter_note(ix, HYB_ASK_UNIQUE, level,
							item < end ? HYB_PROBE_HIT :
							HYB_PROBE_FALSE_POSITIVE);
		search->in_static |= item < end;
		result = search_leaf(search, version, item, end);
		ReleaseBuffer(descent->buf);

next_leaf:
		if (result != SEARCH_UNIQUE || last)
		{
			hyb_buf_free(&posbuf);
			return result;
		}

		/* a posting list that goes on in the next leaf */
		hyb_pos_copy(&pos, &posbuf, &descent->fence);
	}
}

static SearchResult
search_static(UniqueSearch *search, const HybVersion *version)
{
	SearchResult result = SEARCH_UNIQUE;
	bool		above;

	search->in_static = false;
	if (!above_static(search, version, &above))
		return SEARCH_AGAIN;
	for (int i = version->nlevels; i-- > 0 && !above && result == SEARCH_UNIQUE;)
		result = search_level(search, version, i);
	if (!above && result != SEARCH_AGAIN)
		hyb_cache_count(search->ix, search->in_static ? HYB_UNIQUE_PRESENT :
						HYB_UNIQUE_ABSENT);
	return result;
}

static SearchResult
check_dynamic(UniqueSearch *search, const HybDynItem *item)
{
	SearchResult result = SEARCH_UNIQUE;
	bool		dead;
	bool		exists = candidate_exists(search, &item->tid, false, &dead);
	Buffer		buf = InvalidBuffer;
	HybPinResult pin;

	if (!exists && !dead)
		return SEARCH_UNIQUE;
	pin = hyb_delta_pin_entry(search->ix, &item->ref, &item->tid, &buf);
	if (exists)
		result = judge_candidate(search, pin);
	else if (pin == HYB_PIN_HOLDS)
		hyb_dynamic_kill(search->ix, &search->buffers->batch, item);
	if (BufferIsValid(buf))
		ReleaseBuffer(buf);
	return result;
}

static SearchResult
search_dynamic(UniqueSearch *search, const HybVersion *version)
{
	HybPos		low = search->low;
	HybBuf		lowbuf = {0};
	HybFetch	fetch = {
		.which = HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE | HYB_FETCH_NOT_KILLED,
		.lo = &low,
		.hi = &search->high,
		.limit = HYB_UNIQUE_BATCH,
		.point_hash = search->hash
	};

	for (;;)
	{
		HybDynBatch *batch = &search->buffers->batch;
		SearchResult result = SEARCH_UNIQUE;

		if (!hyb_dynamic_fetch(search->ix, version, &fetch, batch))
			return SEARCH_AGAIN;
		for (int i = 0; i < batch->nitems && result == SEARCH_UNIQUE; i++)
			result = check_dynamic(search, &batch->items[i]);
		if (result != SEARCH_UNIQUE || batch->complete)
			return result;

		/* more entries of this key than fit one fetch */
		hyb_dyn_batch_last(search->ix, batch, &low, &lowbuf);
	}
}

/*
 * Another transaction may yet commit or undo what conflicts.
 */
static void
wait_for_other(UniqueSearch *search)
{
	HYB_ASSERT_NO_LWLOCK();
	Assert(TransactionIdIsValid(search->xwait));
	Assert(!TransactionIdIsCurrentTransactionId(search->xwait));
	if (search->dirty.speculativeToken)
		SpeculativeInsertionWait(search->xwait, search->dirty.speculativeToken);
	else
		XactLockTableWait(search->xwait, search->row->heap,
						  &search->row->entry->tid, XLTW_InsertIndex);
}

/* Returns if the search is to start over.  No lock is held. */
static void
meet_duplicate(UniqueSearch *search, SearchResult result)
{
	if (search->row->on_conflict && search->check == UNIQUE_CHECK_YES &&
		hyb_counterpart_decides(search->ix->rel, search->row->heap))
		search->check = UNIQUE_CHECK_PARTIAL;
	else if (result == SEARCH_WAIT)
		wait_for_other(search);
	else
		report_duplicate(search);
}

bool
hyb_unique_check(HybIndex *ix, const HybUniqueRow *row,
				 HybUniqueBuffers *buffers, HybUniqueTicket *ticket)
{
	const HybKeyDesc *desc = ix->desc;
	const HybEntry *entry = row->entry;
	bool		existing = row->check == UNIQUE_CHECK_EXISTING;
	UniqueSearch search;
	SearchResult result;

	if (!ix->rel->rd_index->indnullsnotdistinct)
		for (int i = 0; i < desc->nkeys; i++)
			if (row->isnull[i])
				return true;

	search.buffers = buffers;
	search.found_self = false;
	Assert(row->check != UNIQUE_CHECK_NO && entry->keylen > 0 && entry->keylen <= entry->len);
	search.xwait = InvalidTransactionId;
	search.ix = ix;
	search.row = row;
	search.check = row->check;
	search.low.key = entry->bytes;
	search.low.len = entry->keylen;
	search.low.ncols = desc->nkeys;
	search.low.tie = HYB_BEFORE;
	search.high = search.low;
	search.high.tie = HYB_AFTER;
	search.hash = desc->exact ? hyb_key_hash(entry->bytes, entry->keylen) : 0;
	InitDirtySnapshot(search.dirty);

	/*
	 * Equal keys of different bytes (1.0 and 1.00, say) have to meet, so in
	 * such an index all keys do.  A check of an entry that is in the index
	 * already appends nothing: of two such checks each meets the other's.
	 */
	if (!existing)
		hyb_unique_begin(ix, search.hash, ticket);

	for (;;)
	{
		HybVersion	version;

		CHECK_FOR_INTERRUPTS();
		hyb_unique_note(ticket);
		hyb_version_capture(ix, &version);
		result = search_static(&search, &version);
		if (result == SEARCH_UNIQUE)
			result = search_dynamic(&search, &version);

		if (result == SEARCH_UNIQUE || result == SEARCH_MAYBE)
		{
			Assert(!existing || result == SEARCH_UNIQUE);
			if (existing)
				break;

			/* what may be a conflict may be one whatever others append */
			HYB_POINT("unique-checked");
			if (hyb_unique_enter(ticket, result == SEARCH_MAYBE))
				break;
		}
		else if (result != SEARCH_AGAIN)
		{
			hyb_unique_yield(ticket);
			meet_duplicate(&search, result);
		}
	}

	if (existing && !search.found_self)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("failed to re-find tuple within index \"%s\"",
						RelationGetRelationName(ix->rel)),
				 errhint("This may be because of a non-immutable index expression."),
				 errtableconstraint(row->heap, RelationGetRelationName(ix->rel))));
	return result == SEARCH_UNIQUE;
}
