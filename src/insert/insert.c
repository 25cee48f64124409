/*
 * insert.c
 *		INSERT: appends the entry to the delta log, at once or with others.
 *
 * A unique index is searched first (unique.c).  The ticket of that search keeps
 * other inserters of the key away until the entry is in the log.
 */
#include "base/compat.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/toast_internals.h"
#include "base/memory.h"
#include "chain/chain.h"
#include "filter/filter_choice.h"
#include "insert/gather.h"
#include "insert/insertion.h"
#include "key/encoded.h"
#include "merge/merge.h"
#include "nodes/execnodes.h"
#include "run/run.h"
#include "storage/lmgr.h"
#include "store/handle.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* First size of the buffer for an entry. */
#define FIRST_ENTRY		256

/*
 * Kept in ii_AmCache for the statement.  Most statements insert one row, so a
 * state goes back to a list of spare ones with its buffers.
 */
typedef struct InsertState
{
	HybSpare	spare;
	MemoryContext context;		/* of the state and its buffers */
	HybIndex   *ix;				/* in the statement's context */
	HybBuf		entry;
	int			nrows;			/* of the statement that have asked whether to
								 * gather; 3: or more */
	bool		asked;			/* whether entries may be gathered: */
	bool		gathers;		/* they may */
	HybGatherer gatherer;
	bool		has_unique;		/* `unique` is initialised */
	HybUniqueBuffers unique;
	uint8		space[FIRST_ENTRY];
} InsertState;

static void
free_state(void *state)
{
	MemoryContextDelete(((InsertState *) state)->context);
}

static HybSpareList spare_states = {free_state};

static InsertState *
take_state(void)
{
	InsertState *state = hyb_spare_take(&spare_states);
	MemoryContext context;

	if (state != NULL)
		return state;
	context = AllocSetContextCreate(TopMemoryContext, "hybrid insert",
									ALLOCSET_SMALL_SIZES);
	state = MemoryContextAlloc(context, sizeof(InsertState));
	state->context = context;
	hyb_buf_init(&state->entry, state->space, FIRST_ENTRY, context);
	state->has_unique = false;
	return state;
}

static InsertState *
insert_state(Relation index, struct IndexInfo *info)
{
	InsertState *state = info->ii_AmCache;
	HybIndex   *ix;
	MemoryContext old;

	if (state != NULL && state->ix->rel == index)
		return state;

	old = MemoryContextSwitchTo(info->ii_Context);
	ix = hyb_index_create_handle(index);
	MemoryContextSwitchTo(old);

	state = take_state();
	hyb_spare_lend(&spare_states, &state->spare, info->ii_Context);
	Assert(state->context != info->ii_Context);
	state->ix = ix;
	state->nrows = 0;
	state->asked = state->gathers = false;
	memset(&state->gatherer, 0, sizeof(HybGatherer));
	state->gatherer.ix = ix;
	state->gatherer.context = info->ii_Context;
	info->ii_AmCache = state;
	return state;
}

/*
 * Made when a check first needs them: the index may have ceased to be unique since
 * the statement began (ddl/conversion.c).
 */
static HybUniqueBuffers *
unique_buffers(InsertState *state)
{
	if (!state->has_unique)
	{
		hyb_unique_buffers_init(&state->unique, state->context);
		state->has_unique = true;
	}
	return &state->unique;
}

/*
 * May the entry wait?  That of a unique index only after a check that has settled
 * whether there is a conflict.
 */
static inline bool
may_gather(const HybIndex *ix, const HybUniqueRow *row)
{
	return ix->rel->rd_index->indisunique ?
		row->check == UNIQUE_CHECK_YES && !row->on_conflict :
		row->check == UNIQUE_CHECK_NO;
}

/*
 * Are entries of the statement gathered now?  Its first one waits at most for entries
 * of the same row, those for other indexes.  If the last of these is of hybrid_hot and
 * needs no entry, it waits for the end of the statement.
 */
static inline bool
gathers(InsertState *state, Relation heap)
{
	bool		unique = state->ix->rel->rd_index->indisunique;

	state->nrows = Min(state->nrows + 1, 3);
	if (state->nrows == 1 && !hyb_gather_has_others(state->ix, heap))
		return false;
	/* asked once, and of a unique index with several rows again */
	if (state->nrows == 1 || (state->nrows == 2 && (unique || !state->asked)))
	{
		state->gathers = (hyb_statement_end_noticed == NULL ||
						  hyb_statement_end_noticed(state->gatherer.context)) &&
			(!unique || state->nrows == 1 ||
			 hyb_gather_is_only_unique(state->ix->rel, heap));
		state->asked = true;
	}
	return state->gathers && hyb_gather_possible(state->ix, heap);
}

/* ---- how long an entry may be ---- */

/* Is the entry short enough to fit with any dictionary? */
static bool
fits_in_any_case(const HybKeyDesc *desc, const Datum *values,
				 const bool *isnull, uint32 len)
{
	Size		most = len;

	for (int i = 0; i < desc->nkeys; i++)
	{
		if (hyb_column_is_encoded(&desc->cols[i]) && !isnull[i])
			most += toast_raw_datum_size(values[i]) * HYB_HOPE_MAX_CODE / 7;
	}
	return most <= HYB_MAX_ENTRY_SIZE;
}

/*
 * The longest that the entry may become.  Whether a row fits an index must not
 * depend on the dictionary that a merge has learned, or will learn.
 */
static uint32
longest_form(const HybKeyDesc *desc, const Datum *values, const bool *isnull)
{
	HybBuf		buf = {0};
	uint32		growth = 0;
	uint32		len;

	for (int i = 0; i < desc->natts; i++)
	{
		HybColumn	plain = desc->cols[i];
		uint32		before = buf.len;

		plain.dictionary = NULL;
		hyb_key_encode_column(&plain, values[i], isnull[i], &buf);
		if (hyb_column_is_encoded(&plain) && !isnull[i])
			growth += hyb_encoded_growth(buf.len - before);
	}
	len = buf.len + growth;
	hyb_buf_free(&buf);
	return len;
}

/*
 * Bytes of a value that CREATE INDEX could not sort in an index tuple, else 0.
 * Only new entries are asked, since pglz gives other lengths on other machines.
 * A stored entry can be found, merged and checked wherever it came from.
 */
static uint32
unsortable_bytes(const HybColumn *col, Datum value)
{
	struct varlena *plain;
	struct varlena *packed;
	uint32		raw;
	bool		sortable;

	if (col->sortable == 0 || col->attlen != -1 ||
		toast_raw_datum_size(value) <= col->sortable + VARHDRSZ)
		return 0;
	plain = PG_DETOAST_DATUM_PACKED(value);
	raw = VARSIZE_ANY_EXHDR(plain);
	packed = (struct varlena *)
		DatumGetPointer(toast_compress_datum(PointerGetDatum(plain),
											 TOAST_PGLZ_COMPRESSION));
	sortable = packed != NULL &&
		VARSIZE(packed) <= col->sortable + VARHDRSZ_COMPRESSED;
	if (packed != NULL)
		pfree(packed);
	if ((Pointer) plain != DatumGetPointer(value))
		pfree(plain);
	return sortable ? 0 : raw;
}

/* The same of a row, or what just exceeds an entry if that is more. */
static uint32
unsortable_size(const HybKeyDesc *desc, const Datum *values, const bool *isnull)
{
	for (int i = 0; i < desc->natts; i++)
	{
		uint32		size = isnull[i] ? 0 :
			unsortable_bytes(&desc->cols[i], values[i]);

		if (size > 0)
			return Max(size, HYB_MAX_ENTRY_SIZE + 1);
	}
	return 0;
}

void
hyb_check_entry_size(const HybIndex *ix, Relation heap, const Datum *values,
					 const bool *isnull, uint32 len, ItemPointer tid)
{
	const HybKeyDesc *desc = ix->desc;

	if (unlikely(desc->has_encoded && len <= HYB_MAX_ENTRY_SIZE &&
				 !fits_in_any_case(desc, values, isnull, len)))
		len = longest_form(desc, values, isnull);
	if (!desc->all_mem && len <= HYB_MAX_ENTRY_SIZE)
		len = Max(len, unsortable_size(desc, values, isnull));
	if (likely(len <= HYB_MAX_ENTRY_SIZE))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size %u exceeds hybrid maximum %d for index \"%s\"",
					len, HYB_MAX_ENTRY_SIZE, RelationGetRelationName(ix->rel)),
			 errdetail("Index row references tuple (%u,%u) in relation \"%s\".",
					   ItemPointerGetBlockNumber(tid),
					   ItemPointerGetOffsetNumber(tid),
					   RelationGetRelationName(heap)),
			 errhint("Values larger than 1/3 of a buffer page cannot be indexed.\n"
					 "Consider a function index of an MD5 hash of the value, "
					 "or use full text indexing."),
			 errtableconstraint(heap, RelationGetRelationName(ix->rel))));
}

/* ---- the server's calls ---- */

/* What this session has gathered must not be in conflict with the row unseen. */
static inline void
begin_check(HybIndex *ix, HybUniqueRow *row, HybUniqueTicket *ticket)
{
	row->hash = hyb_key_point_hash(ix->desc, row->entry->bytes, row->entry->keylen);
	if (row->check == UNIQUE_CHECK_EXISTING)
	{
		hyb_gather_before_read(RelationGetRelid(ix->rel));
		return;
	}
	hyb_unique_begin(ix, row->hash, ticket);
	if (unlikely(hyb_gathered))
		hyb_gather_before_check(RelationGetRelid(ix->rel), ticket);
}

/* Has a level the entry? */
static bool
levels_hold(HybIndex *ix, const HybEntry *entry)
{
	HybPos		at = hyb_pos_at(ix->desc, entry->bytes, entry->keylen, entry->tid);
	HybVersion	version;
	bool		current;
	bool		hold;

	do
	{
		CHECK_FOR_INTERRUPTS();
		hyb_version_capture(ix, &version);
		current = true;
		hold = false;
		for (int i = 0; i < version.nlevels && current && !hold; i++)
			current = hyb_run_holds(ix, &version, i, &at, &hold);
	} while (!current);
	return hold;
}

/*
 * Is the entry of hybrid_hot there already, and will it stay?  Validation of CREATE INDEX
 * CONCURRENTLY inserts all rows again, and the build has made entries for most of them.
 * An entry that validation finds in a level stays: merges drop nothing before the index
 * is valid, and it becomes valid after validation.  Other sessions may not know yet that
 * it is valid.  So only the session that validates asks: it has this lock of the table.
 */
static bool
has_entry(HybIndex *ix, Relation heap, HybEntry *entry)
{
	return hyb_chain_enter(ix, heap, &entry->tid, entry->bytes, entry->keylen) ||
		(!ix->rel->rd_index->indisvalid &&
		 CheckRelationLockedByMe(heap, ShareUpdateExclusiveLock, false) &&
		 levels_hold(ix, entry));
}

/* So many parameters because the server calls it with them. */
bool
hyb_aminsert(Relation index, Datum *values, bool *isnull,
			 ItemPointer heap_tid, Relation heap,
			 IndexUniqueCheck check_unique, bool index_unchanged,
			 struct IndexInfo *info)
{
	InsertState *state = insert_state(index, info);
	HybIndex   *ix = state->ix;
	HybEntry	entry;
	bool		is_unique = true;
	bool		gathering;
	bool		entered = false;
	bool		full;
	HybUniqueTicket ticket = HYB_UNIQUE_NO_TICKET;
	HybUniqueRow row = {
		.heap = heap,
		.values = values,
		.isnull = isnull,
		.entry = &entry,
		.check = check_unique,
		.on_conflict = info->ii_UniqueOps != NULL
	};

	hyb_key_check_order(ix->desc, values, isnull);
	hyb_key_encode(ix->desc, values, isnull, &state->entry, &entry.keylen);
	entry.bytes = state->entry.data;
	entry.len = state->entry.len;
	entry.tid = *heap_tid;
	Assert(ItemPointerIsValid(heap_tid) && entry.keylen > 0 && entry.keylen <= entry.len);
	hyb_check_entry_size(ix, heap, values, isnull, state->entry.len, heap_tid);
	if (ix->desc->chains && has_entry(ix, heap, &entry))
	{
		hyb_serializable_insertion(ix, heap, &entry);
		return true;
	}

	/* may look at the catalog: not with a partition locked */
	gathering = may_gather(ix, &row) && gathers(state, heap);
	if (check_unique != UNIQUE_CHECK_NO && hyb_unique_may_conflict(ix, isnull))
	{
		begin_check(ix, &row, &ticket);
		/* of an unchanged key there is an entry of an older row version */
		entered = !index_unchanged && hyb_unique_enter_absent(&ticket);
		if (entered)
			hyb_log_count(ix, HYB_UNIQUE_DENIED);
		else if (!index_unchanged || !hyb_unique_was_checked(ix, &row, &ticket))
			is_unique = hyb_unique_check(ix, &row, unique_buffers(state), &ticket);
	}
	if (check_unique == UNIQUE_CHECK_EXISTING)
		return is_unique;
	Assert(entry.len <= HYB_MAX_ENTRY_SIZE);

	if (gathering)
	{
		if (entered)
			hyb_unique_keep(&ticket);
		entered = false;
		if (hyb_gather_add(&state->gatherer, heap, &entry, &ticket))
		{
			if (state->nrows == 1)
				hyb_gather_row_ends(&state->gatherer, heap);
			return true;
		}
	}
	/* a possible conflict stays one, whatever was appended since */
	while (!entered && !hyb_unique_enter(&ticket, !is_unique))
		is_unique = hyb_unique_check(ix, &row, unique_buffers(state), &ticket);
	full = hyb_delta_append(ix, &entry);
	hyb_unique_leave(&ticket);
	if (unlikely(hyb_gathered) && state->nrows == 1)
		hyb_gather_row_ends(&state->gatherer, heap);
	hyb_serializable_insertion(ix, heap, &entry);
	if (full)
		hyb_merge_after_full_page(ix);
	return is_unique;
}

void
hyb_aminsertcleanup(Relation index, struct IndexInfo *info)
{
	InsertState *state = info->ii_AmCache;

	/* as if the server did not call this */
	if (HYB_POINT_ATTACHED("insert-unfinished"))
		return;
	if (state != NULL)
		hyb_gather_end(&state->gatherer);
}
