/*
 * unique.c
 *		The uniqueness check of INSERT.
 *
 * Two inserters of one key meet at the partition lock of the key's hash: it is
 * held from before the search of both stages until the new entry is in the
 * log.  It is let go before waiting for another transaction, and the check
 * then starts over.
 *
 * While a candidate's heap tuple is looked at, the page that its entry lies
 * on is pinned, so that VACUUM cannot finish removing it and the line pointer
 * cannot go to another tuple meanwhile.
 */
#include "compat.h"

#include "access/tableam.h"
#include "access/xact.h"
#include "am/unique.h"
#include "dynamic/dynamic.h"
#include "dynamic/shared.h"
#include "miscadmin.h"
#include "static/inner.h"
#include "static/leaf.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Dynamic candidates looked at in one fetch. */
#define HYB_UNIQUE_BATCH	64

typedef enum SearchResult
{
	SEARCH_UNIQUE,				/* no conflict */
	SEARCH_MAYBE,				/* UNIQUE_CHECK_PARTIAL: perhaps one */
	SEARCH_WAIT,				/* wait for xwait, then start over */
	SEARCH_AGAIN				/* the version changed: start over */
} SearchResult;

typedef struct UniqueSearch
{
	HybIndex   *ix;
	Relation	heap;
	Datum	   *values;
	bool	   *isnull;
	ItemPointer tid;
	IndexUniqueCheck check;
	HybPos		low;			/* just below the key, and just above it */
	HybPos		high;
	uint64		hash;			/* of the key, 0 if equal keys may differ */
	bool		found_self;		/* UNIQUE_CHECK_EXISTING: met our own entry */
	SnapshotData dirty;
	TransactionId xwait;

	/* reused by every try of one call */
	HybDescent	descent;
	HybLeaf		leaf;
	HybDynBatch batch;
} UniqueSearch;

static void
report_duplicate(UniqueSearch *search)
{
	Relation	index = search->ix->rel;
	char	   *key_desc;

	key_desc = BuildIndexValueDescription(index, search->values, search->isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("duplicate key value violates unique constraint \"%s\"",
					RelationGetRelationName(index)),
			 key_desc ? errdetail("Key %s already exists.", key_desc) : 0,
			 errtableconstraint(search->heap, RelationGetRelationName(index))));
}

/*
 * Is the heap tuple of a candidate a conflict?  SEARCH_UNIQUE if not.  Does
 * not return for a definite conflict; `pin` is held by the caller and
 * released by transaction abort then.
 */
static SearchResult
check_candidate(UniqueSearch *search, const ItemPointerData *candidate)
{
	ItemPointerData htid = *candidate;
	bool		all_dead = false;

	if (search->check == UNIQUE_CHECK_EXISTING &&
		ItemPointerEquals(&htid, search->tid))
	{
		search->found_self = true;
		return SEARCH_UNIQUE;
	}

	if (!table_index_fetch_tuple_check(search->heap, &htid, &search->dirty,
									   &all_dead))
		return SEARCH_UNIQUE;

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
	htid = *search->tid;
	if (!table_index_fetch_tuple_check(search->heap, &htid, SnapshotSelf, NULL))
		return SEARCH_UNIQUE;

	CheckForSerializableConflictIn(search->ix->rel, NULL, InvalidBlockNumber);
	report_duplicate(search);
	return SEARCH_UNIQUE;		/* not reached */
}

static SearchResult
search_static(UniqueSearch *search, const HybVersion *version)
{
	HybIndex   *ix = search->ix;
	HybDescent *descent = &search->descent;
	HybPos		pos = search->low;
	HybBuf		posbuf = {0};

	if (!BlockNumberIsValid(version->root))
		return SEARCH_UNIQUE;
	descent->want_low = false;
	descent->want_high = true;
	descent->bound = hyb_filter_try(ix) ? &search->high : NULL;

	for (;;)
	{
		int			row;
		int			item;
		int			end;
		bool		last;
		SearchResult result = SEARCH_UNIQUE;
		ItemPointerData *tids = NULL;
		int			ntids = 0;

		if (!hyb_static_descend(ix, version, &pos, false, descent))
			return SEARCH_AGAIN;
		if (descent->skipped)
		{
			hyb_filter_note(ix, HYB_FILTER_NEGATIVE);
			last = hyb_pos_compare(ix->desc, &descent->high, &search->high) >= 0;
			goto next_leaf;
		}
		hyb_leaf_open(&search->leaf, ix->desc, BufferGetPage(descent->buf),
					  ix->rel, descent->block);
		item = hyb_leaf_search(&search->leaf, &pos, &row);
		end = item < search->leaf.nitems ?
			hyb_leaf_search(&search->leaf, &search->high, &row) : item;
		last = end < search->leaf.nitems ||
			hyb_pos_compare(ix->desc, &descent->high, &search->high) >= 0;
		if (descent->probed)
			hyb_filter_note(ix, item < end ? HYB_FILTER_HIT :
							HYB_FILTER_FALSE_POSITIVE);
		if (item < end)
		{
			tids = palloc((end - item) * sizeof(ItemPointerData));
			hyb_leaf_tids(&search->leaf, item, end - item, tids);
			for (int i = item; i < end; i++)
				if (!hyb_leaf_is_tombstone(&search->leaf, i))
					tids[ntids++] = tids[i - item];
		}
		LockBuffer(descent->buf, BUFFER_LOCK_UNLOCK);

		for (int i = 0; i < ntids && result == SEARCH_UNIQUE; i++)
			result = check_candidate(search, &tids[i]);
		ReleaseBuffer(descent->buf);
		if (tids != NULL)
			pfree(tids);

next_leaf:
		if (result != SEARCH_UNIQUE || last)
		{
			if (posbuf.data != NULL)
				pfree(posbuf.data);
			return result;
		}

		/* a posting list that goes on in the next leaf */
		posbuf.len = 0;
		hyb_buf_append(&posbuf, descent->high.key, descent->high.len);
		pos = descent->high;
		pos.key = posbuf.data;
	}
}

static SearchResult
search_dynamic(UniqueSearch *search, const HybVersion *version)
{
	HybPos		low = search->low;
	HybBuf		lowbuf = {0};

	for (;;)
	{
		HybDynBatch *batch = &search->batch;
		SearchResult result = SEARCH_UNIQUE;

		if (!hyb_dynamic_fetch(search->ix, version,
							   HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE,
							   &low, &search->high, false, HYB_UNIQUE_BATCH,
							   search->hash, batch))
			return SEARCH_AGAIN;
		for (int i = 0; i < batch->nitems && result == SEARCH_UNIQUE; i++)
		{
			HybDynItem *item = &batch->items[i];
			Buffer		pin = hyb_delta_pin_entry(search->ix, &item->ref,
												  &item->tid);

			if (!BufferIsValid(pin))
				return SEARCH_AGAIN;
			result = check_candidate(search, &item->tid);
			ReleaseBuffer(pin);
		}
		if (result != SEARCH_UNIQUE || batch->complete)
			return result;

		/* more entries of this key than fit one fetch */
		{
			HybDynItem *item = &batch->items[batch->nitems - 1];

			lowbuf.len = 0;
			hyb_buf_append(&lowbuf, batch->keys.data + item->key_off, item->keylen);
			low.key = lowbuf.data;
			low.len = item->keylen;
			low.ncols = search->ix->desc->nkeys;
			low.tie = HYB_AT;
			low.tid = item->tid;
		}
	}
}

bool
hyb_unique_check(HybIndex *ix, Relation heap, Datum *values, bool *isnull,
				 const uint8 *key, uint32 keylen, ItemPointer tid,
				 IndexUniqueCheck check, LWLock **lock)
{
	const HybKeyDesc *desc = ix->desc;
	UniqueSearch search;
	bool		is_unique = true;

	*lock = NULL;
	if (!ix->rel->rd_index->indnullsnotdistinct)
		for (int i = 0; i < desc->nkeys; i++)
			if (isnull[i])
				return true;

	memset(&search, 0, sizeof(search));
	search.ix = ix;
	search.heap = heap;
	search.values = values;
	search.isnull = isnull;
	search.tid = tid;
	search.check = check;
	search.low.key = key;
	search.low.len = keylen;
	search.low.ncols = desc->nkeys;
	search.low.tie = HYB_BEFORE;
	search.high = search.low;
	search.high.tie = HYB_AFTER;
	search.hash = desc->exact ? hyb_key_hash(key, keylen) : 0;
	InitDirtySnapshot(search.dirty);

	for (;;)
	{
		HybVersion	version;
		SearchResult result;

		CHECK_FOR_INTERRUPTS();
		if (check != UNIQUE_CHECK_EXISTING)
		{
			/*
			 * Equal keys of different bytes (1.0 and 1.00, say) must meet at
			 * the same lock, so such an index has just one.
			 */
			*lock = hyb_unique_lock(ix, search.hash);
			if (*lock != NULL)
				LWLockAcquire(*lock, LW_EXCLUSIVE);
		}

		hyb_version_capture(ix, &version);
		result = search_static(&search, &version);
		if (result == SEARCH_UNIQUE)
			result = search_dynamic(&search, &version);

		/* a failed reservation of shared memory may have let go of it */
		if (*lock != NULL && !LWLockHeldByMe(*lock))
		{
			*lock = NULL;
			continue;
		}
		if (result == SEARCH_UNIQUE || result == SEARCH_MAYBE)
		{
			is_unique = result == SEARCH_UNIQUE;
			break;
		}

		if (*lock != NULL)
			LWLockRelease(*lock);
		*lock = NULL;
		if (result == SEARCH_WAIT)
		{
			if (search.dirty.speculativeToken)
				SpeculativeInsertionWait(search.xwait,
										 search.dirty.speculativeToken);
			else
				XactLockTableWait(search.xwait, heap, tid, XLTW_InsertIndex);
		}
	}

	if (check == UNIQUE_CHECK_EXISTING && is_unique && !search.found_self)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("failed to re-find tuple within index \"%s\"",
						RelationGetRelationName(ix->rel)),
				 errhint("This may be because of a non-immutable index expression."),
				 errtableconstraint(heap, RelationGetRelationName(ix->rel))));

	if (search.descent.highbuf.data != NULL)
		pfree(search.descent.highbuf.data);
	hyb_leaf_close(&search.leaf);
	hyb_dyn_batch_free(&search.batch);
	return is_unique;
}
