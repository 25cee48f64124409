/*
 * insert.c
 *		INSERT: append the entry to the delta log, at once or with others.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "insert/entry_size.h"
#include "insert/gather.h"
#include "insert/insert.h"
#include "insert/serializable.h"
#include "insert/statement_end.h"
#include "insert/unique.h"
#include "merge/merge.h"
#include "nodes/execnodes.h"
#include "store/handle.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Bytes of an entry that there is room for from the start. */
#define FIRST_ENTRY		256

/*
 * Kept in ii_AmCache for the statement.  Most statements insert one row, so the
 * buffers are not made anew each time.
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
 * Asked for by whoever inserts: the index may have ceased to be unique since
 * the statement began (ddl/convert_steps.c).
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
 * Gather the entry, if that is possible.  A statement that inserts one row, as
 * most do, pays nothing for it.
 */
static inline bool
gather(InsertState *state, Relation heap, const HybEntry *entry)
{
	if (!state->several)
	{
		state->several = true;
		state->end_noticed = hyb_statement_end_noticed(state->gatherer.context);
		return false;
	}
	return state->end_noticed && hyb_gather_possible(state->ix, heap) &&
		hyb_gather_add(&state->gatherer, heap, entry);
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
		hyb_after_full_page(ix);
	return is_unique;
}

void
hyb_aminsertcleanup(Relation index, struct IndexInfo *info)
{
	InsertState *state = info->ii_AmCache;

	/* as if whoever inserts did not call this */
	if (HYB_POINT_ATTACHED("insert-unfinished"))
		return;
	if (state != NULL)
		hyb_gather_end(&state->gatherer);
}
