/*
 * insert.c
 *		INSERT: appends the entry to the delta log, at once or with others.
 *
 * A unique index is searched first (unique.c).  The ticket of that search keeps
 * other inserters of the key away until the entry is in the log.
 */
#include "base/compat.h"

#include "access/detoast.h"
#include "base/memory.h"
#include "insert/gather.h"
#include "insert/insertion.h"
#include "key/encoded.h"
#include "merge/merge.h"
#include "nodes/execnodes.h"
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
	bool		several;		/* this is not the statement's first entry */
	bool		end_noticed;	/* hyb_statement_end_noticed */
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
	state->several = false;
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
 * Gathers the entry if that is possible.  The first entry of a statement is
 * appended at once, so a statement of one row pays nothing for gathering.
 */
static inline bool
gather(InsertState *state, Relation heap, const HybEntry *entry)
{
	if (!state->several)
	{
		state->several = true;
		state->end_noticed = hyb_statement_end_noticed == NULL ||
			hyb_statement_end_noticed(state->gatherer.context);
		return false;
	}
	return state->end_noticed && hyb_gather_possible(state->ix, heap) &&
		hyb_gather_add(&state->gatherer, heap, entry);
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

void
hyb_check_entry_size(const HybIndex *ix, Relation heap, const Datum *values,
					 const bool *isnull, uint32 len, ItemPointer tid)
{
	const HybKeyDesc *desc = ix->desc;

	if (unlikely(desc->has_encoded && len <= HYB_MAX_ENTRY_SIZE &&
				 !fits_in_any_case(desc, values, isnull, len)))
		len = longest_form(desc, values, isnull);
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
	bool		full;
	HybUniqueTicket ticket = HYB_UNIQUE_NO_TICKET;

	hyb_key_check_order(ix->desc, values, isnull);
	hyb_key_encode(ix->desc, values, isnull, &state->entry, &entry.keylen);
	entry.bytes = state->entry.data;
	entry.len = state->entry.len;
	entry.tid = *heap_tid;
	Assert(ItemPointerIsValid(heap_tid) && entry.keylen > 0 && entry.keylen <= entry.len);
	hyb_check_entry_size(ix, heap, values, isnull, state->entry.len, heap_tid);

	if (check_unique != UNIQUE_CHECK_NO)
	{
		HybUniqueRow row = {
			.heap = heap,
			.values = values,
			.isnull = isnull,
			.entry = &entry,
			.check = check_unique,
			.on_conflict = info->ii_UniqueOps != NULL
		};

		is_unique = hyb_unique_check(ix, &row, unique_buffers(state), &ticket);
	}
	if (check_unique == UNIQUE_CHECK_EXISTING)
		return is_unique;
	Assert(entry.len <= HYB_MAX_ENTRY_SIZE);

	if (check_unique == UNIQUE_CHECK_NO && gather(state, heap, &entry))
		return true;
	full = hyb_delta_append(ix, &entry);
	hyb_unique_leave(&ticket);
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
