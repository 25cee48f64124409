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
 *
 * Entries of one row for several indexes are appended together, too.  Those of a
 * statement's first row wait for the table's last index that is not unique.  That of
 * the table's only unique index waits with them, if it comes before one that takes all
 * rows.  If a
 * partial index, the last one, leaves the row out, they join those of the next row, or
 * wait for the end of the statement, when all that is left is appended together.
 *
 * - What a snapshot can see is in the log: they are flushed when all gathered ones are.
 * - What is appended belongs to a row that is there: if an error comes before the row's
 *	 last index, its subtransaction aborts, and they are forgotten.
 * - An append that fails has appended nothing.  After one that has succeeded the entries
 *	 are forgotten before anything else can fail.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/server.h"
#include "insert/gather.h"
#include "insert/insertion.h"
#include "log/delta.h"
#include "log/log.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "store/handle.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* First size of the memory for an index's entries. */
#define FIRST_ROOM		512

/* Indexes that can have gathered entries at a time. */
#define MAX_GATHERS		64

/* Entries of a unique index, and the checks that have found no conflict. */
typedef struct GatheredKeys
{
	uint32		hash[HYB_UNIQUE_TOGETHER];	/* those of the tickets */
	uint32		end[HYB_UNIQUE_TOGETHER];	/* of the entry, in `image` */
	HybUniqueTicket ticket[HYB_UNIQUE_TOGETHER];
} GatheredKeys;

typedef struct HybGather
{
	HybGatherer *owner;			/* NULL once its statement is over */
	uint8	   *image;			/* entries as on a page, or NULL */
	uint32		room;			/* bytes that it has memory for */
	uint32		done;			/* bytes of entries that are in the log */
	uint32		len;			/* bytes of all entries */
	uint32		keylen;			/* of the only entry: of its key columns; of
								 * several: 0 */
	GatheredKeys *keys;			/* if the index is unique */
	int			nkeys;			/* then one for each entry */
	SubTransactionId subtransaction;	/* has inserted the rows */
	Oid			indexid;
	uint64		incarnation;
} HybGather;

static HybGather gathers[MAX_GATHERS];

/* Those that a statement of this session has taken so far: few, as a rule. */
static int	ngathers = 0;

/*
 * Gathering does not pay if fewer than POOR_BYTES come together before the index
 * is read.  Then the next PAUSE entries are not gathered.
 */
#define POOR_BYTES		256
#define PAUSE			256

static int	not_now = 0;

/*
 * The place of an index among those of its table whose entries of one row are
 * appended together.  It goes stale only if another index comes or goes, and then at
 * most a record more is written, or the end of the statement is waited for.
 */
typedef struct RowPlace
{
	Oid			newest;			/* the table's last index of any kind, */
	int			nindexes;		/* and their number, when this was found out */
	bool		several;		/* it is one of several such */
	bool		last;			/* and the last one */
} RowPlace;

static HybCachePiece place_piece = {.size = sizeof(RowPlace)};

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
	Assert(gather->nkeys >= 0 && gather->nkeys <= HYB_UNIQUE_TOGETHER);
	Assert(gather->nkeys == 0 || gather->keys->end[gather->nkeys - 1] == gather->len);
	Assert(gather->keylen <= gather->len);
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
	for (int i = 0; i < ngathers; i++)
		hyb_gathered |= gathers[i].len > 0;
}

static void
forget(HybGather *gather)
{
	gather->len = gather->done = gather->keylen = gather->nkeys = 0;
	note_gathered();
}

/* Entries that go to the log. */
typedef struct Flush
{
	HybIndex   *ix;
	Relation	heap;
	HybGather  *gather;
	bool		full;			/* a page was filled */
} Flush;

/* Appends some of the entries before `end`, as many as a page has room for. */
static void
append_some(Flush *flush, uint32 end)
{
	HybGather  *gather = flush->gather;
	HybAppend	entries = {
		.ix = flush->ix,.image = gather->image + gather->done,.len = end - gather->done,
		.keylen = gather->keylen
	};

	Assert(gather->done < end && end <= gather->len);
	gather->done += hyb_delta_append_some(&entries, &flush->full);
}

/*
 * Looks for a conflict of an entry again, since its ticket does not count any more.
 * May wait, and raise an error.  It compares keys, but runs no users' code
 * (hyb_gather_possible): a statement in that would append these entries meanwhile.
 */
static void
check_again(const Flush *flush, int number, HybUniqueTicket *ticket)
{
	const HybKeyDesc *desc = flush->ix->desc;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "hybrid check",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	const uint8 *place = flush->gather->image;
	HybValue	vals[INDEX_MAX_KEYS];
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	HybDeltaHeader header;
	HybEntry	entry;
	HybUniqueBuffers buffers;
	HybUniqueRow row = {
		.heap = flush->heap,
		.values = values,
		.isnull = isnull,
		.entry = &entry,
		.check = UNIQUE_CHECK_YES
	};

	place += number == 0 ? 0 : flush->gather->keys->end[number - 1];
	header = hyb_delta_whole_header(place);
	entry.len = header.len;
	entry.tid = header.tid;
	entry.bytes = place + header.size;
	entry.keylen = hyb_key_split(desc, entry.bytes, entry.len, desc->nkeys, vals);
	for (int i = 0; i < desc->nkeys; i++)
	{
		isnull[i] = vals[i].isnull;
		values[i] = isnull[i] ? (Datum) 0 : hyb_value_decode(&desc->cols[i], &vals[i]);
	}
	row.hash = hyb_key_point_hash(desc, entry.bytes, entry.keylen);
	hyb_unique_buffers_init(&buffers, context);
	(void) hyb_unique_check(flush->ix, &row, &buffers, ticket);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

/* Appends an entry as an insertion of one row does. */
static void
append_one(Flush *flush, int number)
{
	HybGather  *gather = flush->gather;
	HybUniqueTicket ticket = gather->keys->ticket[number];
	uint32		done PG_USED_FOR_ASSERTS_ONLY = gather->done;

	/* that of the statement may be gone */
	if (ticket.ix != NULL)
		ticket.ix = flush->ix;
	while (!hyb_unique_enter(&ticket, false))
	{
		check_again(flush, number, &ticket);
		Assert(gather->done == done && number < gather->nkeys);
	}
	append_some(flush, gather->keys->end[number]);
	hyb_unique_leave(&ticket);
}

/*
 * Appends the entries from `first` to before `end`: together if all their checks
 * still count, otherwise in halves.
 */
static void
append_checked(Flush *flush, int first, int end)
{
	GatheredKeys *keys = flush->gather->keys;
	const HybUniqueTicket *tickets = keys->ticket + first;
	int			n = end - first;
	int			middle = first + n / 2;

	Assert(n > 0 && end <= flush->gather->nkeys);
	if (n == 1)
		append_one(flush, first);
	else if (hyb_unique_enter_all(flush->ix, tickets, n))
	{
		while (first < end)
		{
			append_some(flush, keys->end[end - 1]);
			for (; first < end && keys->end[first] <= flush->gather->done; first++)
				hyb_unique_appended(&keys->ticket[first]);
		}
		hyb_unique_leave_all(tickets, n);
	}
	else
	{
		append_checked(flush, first, middle);
		append_checked(flush, middle, end);
	}
}

/* Runs no users' code before all are in the log. */
static void
append_all(HybIndex *ix, Relation heap, HybGather *gather)
{
	Flush		flush = {.ix = ix,.heap = heap,.gather = gather};
	int			first = 0;

	gather_assert_valid(gather);
	Assert(ix->incarnation == gather->incarnation);

	/* an error came between appends, and its subtransaction was not the rows' */
	while (first < gather->nkeys && gather->keys->end[first] <= gather->done)
		first++;
	while (gather->nkeys == 0 && gather->done < gather->len)
		append_some(&flush, gather->len);
	if (first < gather->nkeys)
		append_checked(&flush, first, gather->nkeys);
	Assert(gather->done == gather->len);
	forget(gather);
	if (flush.full)
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
	Relation	heap;
	HybIndex   *ix;

	if (rel == NULL)
	{
		if (last)
			forget(gather);
		return;
	}
	ix = hyb_index_create_handle(rel);
	if (ix->incarnation == gather->incarnation)
	{
		heap = table_open(rel->rd_index->indrelid, RowExclusiveLock);
		append_all(ix, heap, gather);
		table_close(heap, RowExclusiveLock);
	}
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
		append_all(gather->owner->ix, gather->owner->heap, gather);
	else
		append_ownerless(gather, last);
}

/* Are there entries of this statement and table, all yet to be appended, of one key at most? */
static inline bool
can_join(const HybGather *gather, const HybGatherer *gatherer)
{
	const HybGatherer *owner = gather->owner;

	return gather->len > 0 && gather->done == 0 && gather->nkeys <= 1 &&
		owner != NULL && owner->context == gatherer->context &&
		owner->heap == gatherer->heap && RelationNeedsWAL(owner->ix->rel);
}

/* What is appended under one record. */
typedef struct Together
{
	int			n;
	HybGather  *gathers[HYB_APPEND_TOGETHER];
	HybAppend	entries[HYB_APPEND_TOGETHER];
	const HybGather *unique;	/* one of a unique index, or NULL */
	HybUniqueTicket ticket;		/* entered with */
} Together;

/*
 * Two parts of a statement may insert into one table.  Of two unique indexes each
 * would have its partition locked, in any order.
 */
static inline bool
goes_with(const Together *together, const HybGather *gather)
{
	for (int i = 0; i < together->n; i++)
		if (together->gathers[i]->indexid == gather->indexid)
			return false;
	return gather->nkeys == 0 || together->unique == NULL;
}

static void
add_to_together(Together *together, HybGather *gather)
{
	HybIndex   *ix = gather->owner->ix;

	gather_assert_valid(gather);
	if (gather->nkeys > 0)
	{
		together->ticket = gather->keys->ticket[0];
		together->unique = gather;
	}
	together->entries[together->n] = (HybAppend)
	{
		.ix = ix,.image = gather->image,.len = gather->len,.keylen = gather->keylen
	};
	together->gathers[together->n++] = gather;
}

/* Enter with the key of the unique index, or leave that one out. */
static void
enter_with_key(Together *together)
{
	int			i = 0;

	if (together->unique == NULL || hyb_unique_enter(&together->ticket, false))
		return;
	hyb_unique_yield(&together->ticket);
	while (together->gathers[i] != together->unique)
		i++;
	together->n--;
	together->gathers[i] = together->gathers[together->n];
	together->entries[i] = together->entries[together->n];
	together->unique = NULL;
}

static void
append_together(Together *together)
{
	enter_with_key(together);
	hyb_delta_append_together(together->entries, together->n);
	for (int i = 0; i < together->n; i++)
	{
		HybGather  *gather = together->gathers[i];

		if (gather == together->unique && together->entries[i].appended)
			hyb_unique_leave(&together->ticket);
		else if (gather == together->unique)
			hyb_unique_keep(&together->ticket);
		if (together->entries[i].appended)
			forget(gather);
	}
	/* merges may run users' code */
	for (int i = 0; i < together->n; i++)
		if (together->entries[i].appended && together->entries[i].full)
			hyb_merge_after_full_page(together->entries[i].ix);
}

/*
 * Appends what a statement has gathered for the indexes of a table, together as far as
 * that can be.
 */
static void
flush_together(const HybGatherer *gatherer)
{
	for (int i = 0; i < ngathers;)
	{
		Together	together = {.n = 0};

		for (; i < ngathers && together.n < HYB_APPEND_TOGETHER; i++)
			if (can_join(&gathers[i], gatherer) && goes_with(&together, &gathers[i]))
				add_to_together(&together, &gathers[i]);
		if (together.n > 1)
			append_together(&together);
	}
	for (int i = 0; i < ngathers && hyb_gathered; i++)
		if (can_join(&gathers[i], gatherer))
			flush_gathered(&gathers[i], false);
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
	for (int i = 0; i < ngathers && hyb_gathered; i++)
		if (!OidIsValid(indexid) || gathers[i].indexid == indexid)
			flush_early(&gathers[i]);
}

/* ---- gathering ---- */

bool
hyb_gather_possible(const HybIndex *ix, Relation heap)
{
	/*
	 * Where keys have no hash, any two may be equal.  When keys are compared
	 * again no users' code may run.
	 */
	return (!ix->rel->rd_index->indisunique ||
			(ix->desc->exact && ix->desc->pure != HYB_IMPURE)) &&
		!ix->rel->rd_index->indisexclusion &&
		!ix->desc->has_encoded &&
		heap->rd_tableam == GetHeapamTableAmRoutine() &&
		!IsolationIsSerializable();
}

/* Do inserters wait for each other in the index? */
static bool
makes_wait(Relation index)
{
	return index->rd_index->indisunique || index->rd_index->indisexclusion;
}

/* Does the index get an entry of each row? */
static bool
takes_all_rows(Relation index)
{
	return index->rd_index->indisready &&
		heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL);
}

bool
hyb_gather_is_only_unique(Relation index, Relation heap)
{
	List	   *indexes = RelationGetIndexList(heap);
	ListCell   *lc;
	bool		only = true;

	foreach(lc, indexes)
	{
		Relation	other = RelationIdGetRelation(lfirst_oid(lc));

		if (other == NULL)
			continue;
		only &= RelationGetRelid(other) == RelationGetRelid(index) || !makes_wait(other);
		RelationClose(other);
	}
	list_free(indexes);
	return only;
}

/*
 * A key waits only for an index that comes to the row.  Until its entry is in the log
 * another session can insert the key, and then this one waits for it.
 *
 * The other indexes are taken from the relation cache, where the executor has them
 * too: rows of the catalog would stay in the session for each.  Our lock on the table
 * keeps indexes from going.  May read the catalog: no LWLock is held.
 */
static pg_noinline RowPlace
find_place(const HybIndex *ix, Relation heap)
{
	List	   *indexes = RelationGetIndexList(heap);
	ListCell   *lc;
	Oid			last = InvalidOid;	/* of our method that is not unique */
	int			n = 0;			/* such ones */
	bool		last_takes_all = false;
	int			nwaiting = 0;	/* in which inserters wait for each other */
	int			waiting_before = 0; /* of these, before `last` */
	bool		waiting_is_ours = false;
	bool		joins;
	RowPlace	place;

	HYB_ASSERT_NO_LWLOCK();
	foreach(lc, indexes)
	{
		Relation	index = RelationIdGetRelation(lfirst_oid(lc));
		bool		is_ours;

		if (index == NULL)
			continue;
		is_ours = index->rd_rel->relam == ix->rel->rd_rel->relam;
		if (makes_wait(index))
		{
			nwaiting++;
			waiting_is_ours = is_ours;
		}
		else if (is_ours)
		{
			last = RelationGetRelid(index);
			last_takes_all = takes_all_rows(index);
			waiting_before = nwaiting;
			n++;
		}
		RelationClose(index);
	}
	joins = nwaiting == 1 && waiting_before == 1 && waiting_is_ours && last_takes_all;
	place.newest = llast_oid(indexes);
	place.nindexes = list_length(indexes);
	place.several = ix->rel->rd_index->indisunique ? joins : n + joins > 1;
	place.last = last == RelationGetRelid(ix->rel);
	list_free(indexes);
	return place;
}

/* It is valid until the index's cache is looked at again. */
static inline const RowPlace *
row_place(const HybIndex *ix, Relation heap)
{
	RowPlace   *place = hyb_cache_piece(ix, &place_piece);

	/* the executor has just asked for this list */
	if (heap->rd_indexvalid && heap->rd_indexlist != NIL &&
		(place->newest != llast_oid(heap->rd_indexlist) ||
		 place->nindexes != list_length(heap->rd_indexlist)))
	{
		RowPlace	found = find_place(ix, heap);

		place = hyb_cache_piece(ix, &place_piece);
		*place = found;
	}
	return place;
}

bool
hyb_gather_has_others(const HybIndex *ix, Relation heap)
{
	return RelationNeedsWAL(ix->rel) && row_place(ix, heap)->several;
}

void
hyb_gather_row_ends(HybGatherer *gatherer, Relation heap)
{
	const RowPlace *place = row_place(gatherer->ix, heap);

	gatherer->heap = heap;
	if (place->several && place->last)
		flush_together(gatherer);
}

/* A row that stays is not asked about again for the next index. */
typedef struct StayingRow
{
	TransactionId xid;
	CommandId	cid;			/* later ones may truncate the file in place */
	Oid			heap;
	HybFileNumber file;
	ItemPointerData tid;
} StayingRow;

/*
 * Was the row inserted by the running (sub)transaction, and not speculatively?
 */
static bool
row_stays(Relation heap, const ItemPointerData *tid)
{
	static Buffer recent = InvalidBuffer;
	static StayingRow last;
	StayingRow	row = {
		.xid = GetCurrentTransactionIdIfAny(),.cid = GetCurrentCommandId(false),
		.heap = RelationGetRelid(heap),.file = HYB_RELATION_FILENUMBER(heap),.tid = *tid
	};
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
	bool		stays = false;
	Buffer		buf = recent;
	Page		page;

	Assert(ItemPointerIsValid(unconstify(ItemPointerData *, tid)));
	if (!TransactionIdIsValid(row.xid))
		return false;
	if (row.xid == last.xid && row.cid == last.cid &&
		row.heap == last.heap && row.file == last.file &&
		memcmp(&row.tid, &last.tid, sizeof(ItemPointerData)) == 0)
		return true;
	/* a temporary table's file may have the number of another table's */
	if (!BufferIsValid(buf) || BufferIsLocal(buf) || RelationUsesLocalBuffers(heap) ||
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

			stays = TransactionIdEquals(HeapTupleHeaderGetRawXmin(tuple), row.xid) &&
				!HeapTupleHeaderIsSpeculative(tuple);
		}
	}
	UnlockReleaseBuffer(buf);
	if (stays)
		last = row;
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
	for (int i = 0; i < ngathers; i++)
		if (gathers[i].owner == NULL && gathers[i].len == 0)
			return &gathers[i];
	return ngathers < MAX_GATHERS ? &gathers[ngathers++] : NULL;
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
	Assert(gather->owner == NULL && gather->len == 0);
	gather->owner = gatherer;
	gather->indexid = RelationGetRelid(gatherer->ix->rel);
	gather->incarnation = gatherer->ix->incarnation;
	gatherer->gather = gather;
	return true;
}

/* Most statements gather the entry of one row. */
static void
grow_image(HybGather *gather, uint32 len)
{
	uint32		room = len <= FIRST_ROOM ? FIRST_ROOM : HYB_PAGE_CAPACITY;

	if (gather->image == NULL)
		gather->image = MemoryContextAlloc(TopMemoryContext, room);
	else
		gather->image = repalloc(gather->image, room);
	gather->room = room;
}

/* Can the entry, whose image is so long, be added to those that are there? */
static inline bool
has_room(const HybGather *gather, uint32 len, bool unique)
{
	return gather->len == 0 ||
		(gather->done == 0 && gather->len + len <= HYB_PAGE_CAPACITY &&
		 gather->nkeys < HYB_UNIQUE_TOGETHER &&
		 gather->subtransaction == GetCurrentSubTransactionId() &&
	/* a conversion may have made the index unique, or not */
		 (gather->nkeys > 0) == unique);
}

bool
hyb_gather_add(HybGatherer *gatherer, Relation heap, const HybEntry *entry,
			   const HybUniqueTicket *ticket)
{
	bool		unique = gatherer->ix->rel->rd_index->indisunique;
	uint32		len = hyb_delta_size(entry->len);
	HybGather  *gather;

	/* without partitions the lock that is held keeps others away */
	if (ticket->ix != NULL && (ticket->partition == NULL || ticket->in_turn))
		return false;
	if (len > HYB_PAGE_CAPACITY / 4 || !row_stays(heap, &entry->tid) ||
		(gatherer->gather == NULL && !take(gatherer)))
		return false;
	gather = gatherer->gather;
	gatherer->heap = heap;
	if (!has_room(gather, len, unique))
	{
		flush_gathered(gather, false);

		/* a merge may have run functions that took it from us */
		gather = gatherer->gather;
		if (gather == NULL || gather->len > 0)
			return false;
	}
	Assert(gather->owner == gatherer && gather->done == 0);
	Assert(gather->len + len <= HYB_PAGE_CAPACITY);
	if (gather->len + len > gather->room)
		grow_image(gather, gather->len + len);
	if (unique && gather->keys == NULL)
		gather->keys = MemoryContextAlloc(TopMemoryContext, sizeof(GatheredKeys));
	gather->keylen = gather->len == 0 ? entry->keylen : 0;
	gather->len += hyb_delta_image(entry, gather->image + gather->len);
	gather->subtransaction = GetCurrentSubTransactionId();
	if (unique)
	{
		gather->keys->hash[gather->nkeys] = ticket->hash;
		gather->keys->end[gather->nkeys] = gather->len;
		gather->keys->ticket[gather->nkeys++] = *ticket;
	}
	hyb_gathered = true;
	gather_assert_valid(gather);
	return true;
}

void
hyb_gather_end(HybGatherer *gatherer)
{
	if (gatherer->gather != NULL && gatherer->gather->len > 0)
		flush_together(gatherer);
	if (gatherer->gather != NULL)
		flush_gathered(gatherer->gather, false);
	if (gatherer->gather != NULL)
		release_gather(gatherer->gather);
}

void
hyb_gather_end_of(MemoryContext context)
{
	for (int i = 0; i < ngathers; i++)
		if (gathers[i].owner != NULL && gathers[i].owner->context == context)
			hyb_gather_end(gathers[i].owner);
}

static bool
may_have_key(const HybGather *gather, const HybUniqueTicket *ticket)
{
	for (int i = 0; i < gather->nkeys; i++)
		if (gather->keys->hash[i] == ticket->hash)
			return true;
	return false;
}

void
hyb_gather_flush_unique(void)
{
	for (int i = 0; i < ngathers && hyb_gathered; i++)
		if (gathers[i].nkeys > 0)
			flush_early(&gathers[i]);
}

void
hyb_gather_before_check(Oid indexid, const HybUniqueTicket *ticket)
{
	Assert(ticket->hash != 0);
	for (int i = 0; i < ngathers && hyb_gathered; i++)
		if (gathers[i].indexid == indexid && may_have_key(&gathers[i], ticket))
			flush_gathered(&gathers[i], false);
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
			for (int i = 0; i < ngathers; i++)
			{
				/* its statement has closed the index without telling */
				release_gather(&gathers[i]);
				flush_gathered(&gathers[i], true);
				Assert(gathers[i].len == 0);
			}
			break;
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PARALLEL_ABORT:
			for (int i = 0; i < ngathers; i++)
				if (gathers[i].len > 0)
					forget(&gathers[i]);
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
	for (int i = 0; i < ngathers; i++)
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
	hyb_cache_add_piece(&place_piece);
	RegisterXactCallback(gather_transaction_ends, NULL);
	RegisterSubXactCallback(gather_subtransaction_ends, NULL);
}
