/*
 * unique.c
 *		The uniqueness check of INSERT.
 *
 * This is the search of docs/entry.md, "Insert": it holds pins only, since it may
 * wait, throw, and run users' code.
 *
 * If VACUUM removes an entry meanwhile, its line pointer may get another row.  So a
 * tuple counts only if VACUUM had not finished when it was looked at.  That takes
 * a pin that holds (log/log.h).  A leaf stays pinned while the tuples of its
 * candidates are looked at.  Most dynamic candidates have lost their tuple,
 * because each update leaves an entry.  So their tuple is looked at first: without
 * one there is no conflict, whatever VACUUM did.  With one the pin is taken later;
 * if it holds, VACUUM had not finished before either.
 *
 * Candidates that are dead to all transactions get killed-tuple hints, as in
 * nbtree (_bt_check_unique).  Candidates with a hint are passed over.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/stratnum.h"
#include "access/xact.h"
#include "algo/bits.h"
#include "base/row_reader.h"
#include "base/server.h"
#include "catalog/pg_index.h"
#include "filter/filter_choice.h"
#include "insert/insertion.h"
#include "key/row_key.h"
#include "leaf/leaf.h"
#include "log/found_key.h"
#include "log/log.h"
#include "miscadmin.h"
#include "shared/index_cache.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Dynamic candidates looked at in one fetch. */
#define UNIQUE_BATCH	64

/* First sizes of the buffers. */
#define UNIQUE_BYTES	128
#define UNIQUE_ITEMS	8

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
	bool		found_self;		/* met our own entry */
	bool		in_static;		/* entries of the key are in the static stage */
	bool		in_log;			/* and in the log */
	SnapshotData dirty;
	TransactionId xwait;

	HybUniqueBuffers *buffers;
} UniqueSearch;

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
 * As hyb_row_exists, for an entry whose leaf does not keep its key:
 * does the tuple have the key that is sought?
 */
static bool
row_has_key(UniqueSearch *search, const ItemPointerData *tid, bool *dead)
{
	const HybKeyDesc *desc = search->ix->desc;
	HybRowReader rows = {0};
	HybBuf	   *key = &search->buffers->key;
	bool		same;

	hyb_row_reader_open(&rows, search->row->heap);
	same = hyb_row_read(&rows, tid, &search->dirty, dead);
	if (same)
	{
		/* a row that has lost its values was undone just now */
		key->len = 0;
		same = hyb_key_of_slot(desc, search->ix->rel, rows.slot, key) &&
			hyb_key_compare(desc, key->data, key->len, search->row->entry->bytes,
							search->row->entry->keylen) == 0;
	}
	hyb_row_reader_close(&rows);
	return same;
}

/*
 * Does a candidate lead to a tuple of a transaction that has not failed?  Sets
 * *dead if no transaction will ever see the tuple.  If `truncated`, the candidate
 * may have another key.
 */
static bool
candidate_exists(UniqueSearch *search, const ItemPointerData *candidate,
				 bool truncated, bool *dead)
{
	Assert(search->check != UNIQUE_CHECK_NO);
	HYB_POINT("unique-candidate");
	HYB_ASSERT_NO_LWLOCK();
	*dead = false;
	if (ItemPointerEquals(unconstify(ItemPointerData *, candidate),
						  &search->row->entry->tid))
	{
		search->found_self = true;
		return false;
	}
	if (truncated)
		return row_has_key(search, candidate, dead);
	return hyb_row_exists(search->row->heap, candidate, &search->dirty, dead);
}

/* Decides about a candidate that exists, with what its page's pin says. */
static SearchResult
judge_candidate(UniqueSearch *search, HybPinResult pin)
{
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
	 * A definite conflict, unless this transaction has deleted its own tuple
	 * meanwhile, by an update in the same command for example.
	 */
	if (!hyb_row_exists(search->row->heap, &search->row->entry->tid, SnapshotSelf, NULL))
		return SEARCH_UNIQUE;
	return SEARCH_DUPLICATE;
}

void
hyb_unique_buffers_init(HybUniqueBuffers *buffers, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);

	memset(buffers, 0, sizeof(*buffers));
	buffers->context = context;
	hyb_buf_init(&buffers->descent.copy, NULL, 0, context);
	hyb_buf_reserve(&buffers->descent.fence_key, UNIQUE_BYTES);
	hyb_buf_reserve(&buffers->batch.keys, UNIQUE_BYTES);
	hyb_buf_reserve(&buffers->key, UNIQUE_BYTES);
	buffers->batch.items_alloc = UNIQUE_ITEMS;
	buffers->batch.items = palloc(UNIQUE_ITEMS * sizeof(HybFetchedItem));
	MemoryContextSwitchTo(old);
}

static void
open_candidate_leaf(UniqueSearch *search)
{
	HybUniqueBuffers *buffers = search->buffers;
	MemoryContext old = MemoryContextSwitchTo(buffers->context);

	hyb_leaf_open(&buffers->leaf, search->ix->desc,
				  buffers->descent.page, search->ix->rel, buffers->descent.block);
	MemoryContextSwitchTo(old);
}

/* Looks at items [first, end) of the open leaf.  Unlocks it, but keeps its pin. */
static SearchResult
search_leaf(UniqueSearch *search, const HybVersion *version, int first, int end)
{
	HybDescent *descent = &search->buffers->descent;
	HybLeaf    *leaf = &search->buffers->leaf;
	Page		page = descent->page;
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
		hyb_descent_unlock(descent);
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
	hyb_descent_unlock(descent);

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

/* Bytes of the greatest key that are kept. */
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
 * For a leaf that does not keep keys: bytes such that each key lies below them or
 * begins with them.
 */
static void
greatest_prefix(HybLeaf *leaf, HybBuf *key)
{
	uint32		bits = hyb_leaf_prefix(leaf, leaf->nrows - 1, key);

	if (bits % 8 != 0)
		key->data[bits / 8] |= 0xFF >> bits % 8;
}

/*
 * Finds the greatest key of the version.  Returns false if the version is no
 * longer current.
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
		hyb_descent_release(descent);
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
 * Does the key lie above all keys of the static stage?  Keys often ascend, and then
 * one comparison tells.  Returns false if the version is no longer current.
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

	/* an empty static stage says nothing about the keys */
	if (*above && top->len > 0)
		hyb_log_count(search->ix, HYB_UNIQUE_ABOVE);
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
		hyb_log_count(search->ix, search->in_static ? HYB_UNIQUE_PRESENT :
					  HYB_UNIQUE_ABSENT);
	return result;
}

static SearchResult
check_fetched(UniqueSearch *search, const HybFetchedItem *item)
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
		hyb_log_kill(search->ix, &search->buffers->batch, item);
	if (BufferIsValid(buf))
		ReleaseBuffer(buf);
	return result;
}

static SearchResult
search_log(UniqueSearch *search, const HybVersion *version)
{
	HybPos		low = search->low;
	HybBuf		lowbuf = {0};
	HybFetch	fetch = {
		.which = HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE | HYB_FETCH_NOT_KILLED,
		.lo = &low,
		.hi = &search->high,
		.limit = UNIQUE_BATCH,
		.point_hash = search->row->hash
	};

	for (;;)
	{
		HybFetched *batch = &search->buffers->batch;
		SearchResult result = SEARCH_UNIQUE;

		if (!hyb_log_fetch(search->ix, version, &fetch, batch))
			return SEARCH_AGAIN;
		search->in_log |= batch->nitems > 0;
		for (int i = 0; i < batch->nitems && result == SEARCH_UNIQUE; i++)
			result = check_fetched(search, &batch->items[i]);
		if (result != SEARCH_UNIQUE || batch->complete)
			return result;

		/* more entries of this key than fit one fetch */
		hyb_fetched_last(search->ix, batch, &low, &lowbuf);
	}
}

/* ---- duplicates ---- */

bool
hyb_same_uniqueness(Relation a, Relation b)
{
	Form_pg_index form_a = a->rd_index;
	Form_pg_index form_b = b->rd_index;

	if (form_a->indnkeyatts != form_b->indnkeyatts ||
		form_a->indnullsnotdistinct != form_b->indnullsnotdistinct)
		return false;
	for (int i = 0; i < form_a->indnkeyatts; i++)
	{
		if (form_a->indkey.values[i] != form_b->indkey.values[i] ||
			a->rd_indcollation[i] != b->rd_indcollation[i] ||
			get_opfamily_member(a->rd_opfamily[i], a->rd_opcintype[i],
								a->rd_opcintype[i], BTEqualStrategyNumber) !=
			get_opfamily_member(b->rd_opfamily[i], b->rd_opcintype[i],
								b->rd_opcintype[i], BTEqualStrategyNumber))
			return false;
	}
	return equal(RelationGetIndexExpressions(a),
				 RelationGetIndexExpressions(b)) &&
		equal(RelationGetIndexPredicate(a), RelationGetIndexPredicate(b));
}

/* Reads the catalog with a new snapshot, since caches may be older. */
static bool
is_valid(Oid index)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	List	   *rows = hyb_index_rows(Anum_pg_index_indexrelid, index, snapshot);
	bool		valid = rows == NIL || ((Form_pg_index) linitial(rows))->indisvalid;

	UnregisterSnapshot(snapshot);
	list_free_deep(rows);
	return valid;
}

static bool
is_counterpart(Relation index, Oid other)
{
	Relation	rel = index_open(other, RowExclusiveLock);
	bool		result;

	result = rel->rd_index->indisunique && rel->rd_index->indisvalid &&
		hyb_same_uniqueness(index, rel);
	index_close(rel, NoLock);
	return result;
}

/*
 * A duplicate was found in a unique index.  Returns true if the index is not valid
 * yet and a valid one refuses the same rows.
 *
 * While an index is built to replace another one, by a conversion or by REINDEX
 * CONCURRENTLY, insertions look for duplicates in both.  INSERT ... ON CONFLICT
 * asks the arbiter what to do about a duplicate.  The new index may be no arbiter,
 * if this library was loaded too late (ddl/convert_arbiter.c).  It would raise an
 * error about a duplicate that the old index is about to find as well.  So it
 * leaves the duplicate to the old index while it is not valid.
 *
 * This loses no duplicate.  A session that inserted the other row before the new
 * index became valid also asked the old index.  There an entry is added only if its
 * check still counts, so the later of the two finds the earlier one.  Whether the
 * index is valid is read after the duplicate was found.  An older answer would not
 * do: the other row may belong to a session that asked the new index only.
 *
 * Takes the lock of an inserter on indexes of the table.
 */
static bool
counterpart_decides(Relation index, Relation table)
{
	List	   *indexes;
	ListCell   *lc;
	bool		found = false;

	if (is_valid(RelationGetRelid(index)))
		return false;
	indexes = RelationGetIndexList(table);
	foreach(lc, indexes)
		if (!found && lfirst_oid(lc) != RelationGetRelid(index))
		found = is_counterpart(index, lfirst_oid(lc));
	list_free(indexes);
	return found;
}

/* Another transaction may yet commit or undo the conflicting row. */
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

/* Raises the error, or returns if the search is to start over.  No lock is held. */
static void
meet_duplicate(UniqueSearch *search, SearchResult result)
{
	if (search->row->on_conflict && search->check == UNIQUE_CHECK_YES &&
		counterpart_decides(search->ix->rel, search->row->heap))
		search->check = UNIQUE_CHECK_PARTIAL;
	else if (result == SEARCH_WAIT)
		wait_for_other(search);
	else
		report_duplicate(search);
}

bool
hyb_unique_may_conflict(const HybIndex *ix, const bool *isnull)
{
	if (ix->rel->rd_index->indnullsnotdistinct)
		return true;
	for (int i = 0; i < ix->desc->nkeys; i++)
		if (isnull[i])
			return false;
	return true;
}

/*
 * Without a row there is no conflict, whatever VACUUM did: so no pin is taken.  And
 * where there is one, the check may as well search again.
 */
bool
hyb_unique_was_checked(HybIndex *ix, const HybUniqueRow *row, HybUniqueTicket *ticket)
{
	ItemPointerData tids[HYB_FOUND_ENTRIES];
	SnapshotData dirty;
	int			n = hyb_found_key_take(ix, row->entry->bytes, row->entry->keylen,
									   ticket, tids);

	if (n < 0)
	{
		hyb_found_key_want(ix);
		return false;
	}
	HYB_POINT("unique-found");
	InitDirtySnapshot(dirty);
	for (int i = 0; i < n; i++)
		if (hyb_row_exists(row->heap, &tids[i], &dirty, NULL))
			return false;
	return true;
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

	search.buffers = buffers;
	search.found_self = false;
	search.in_log = false;
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
	InitDirtySnapshot(search.dirty);

	for (;;)
	{
		HybVersion	version;

		CHECK_FOR_INTERRUPTS();
		hyb_unique_note(ticket);
		hyb_version_capture(ix, &version);
		result = search_static(&search, &version);
		if (result == SEARCH_UNIQUE)
			result = search_log(&search, &version);

		if (result == SEARCH_UNIQUE || result == SEARCH_MAYBE)
			break;
		if (result != SEARCH_AGAIN)
		{
			hyb_unique_yield(ticket);
			meet_duplicate(&search, result);
		}
	}
	if (ticket->maybe && !search.in_static && !search.in_log)
		hyb_log_count(ix, HYB_UNIQUE_FALSE_POSITIVE);
	if (!existing)
		HYB_POINT("unique-checked");

	Assert(!existing || result == SEARCH_UNIQUE);
	if (existing && !search.found_self)
		ereport(ERROR,
				(errcode(ERRCODE_INTERNAL_ERROR),
				 errmsg("failed to re-find tuple within index \"%s\"",
						RelationGetRelationName(ix->rel)),
				 errhint("This may be because of a non-immutable index expression."),
				 errtableconstraint(row->heap, RelationGetRelationName(ix->rel))));
	return result == SEARCH_UNIQUE;
}
