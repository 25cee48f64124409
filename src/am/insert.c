/*
 * insert.c
 *		INSERT: append the entry to the delta log.
 */
#include "compat.h"

#include "am/am.h"
#include "am/build.h"
#include "am/unique.h"
#include "storage/lwlock.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Kept in ii_AmCache for the statement. */
typedef struct InsertState
{
	HybIndex   *ix;
	HybBuf		entry;
	HybUniqueBuffers unique;
} InsertState;

static InsertState *
insert_state(Relation index, struct IndexInfo *info)
{
	InsertState *state = info->ii_AmCache;
	MemoryContext old;

	if (state != NULL && state->ix->rel == index)
		return state;

	old = MemoryContextSwitchTo(info->ii_Context);
	state = palloc0(sizeof(InsertState));
	state->ix = hyb_index_create_handle(index);
	hyb_buf_reserve(&state->entry, HYB_MAX_ENTRY_SIZE);
	if (index->rd_index->indisunique)
		hyb_unique_buffers_init(&state->unique, info->ii_Context);
	MemoryContextSwitchTo(old);
	info->ii_AmCache = state;
	return state;
}

/*
 * A page of the log is full: bring the tree along, and see whether a merge is
 * due.
 */
static void
after_full_page(HybIndex *ix)
{
	HybVersion	version;

	hyb_version_capture(ix, &version);
	hyb_dynamic_apply(ix, &version);
	hyb_merge_consider(ix);
}

bool
hyb_aminsert(Relation index, Datum *values, bool *isnull,
			 ItemPointer heap_tid, Relation heap,
			 IndexUniqueCheck check_unique, bool index_unchanged,
			 struct IndexInfo *info)
{
	InsertState *state = insert_state(index, info);
	HybIndex   *ix = state->ix;
	uint32		keylen;
	bool		is_unique = true;
	bool		full;
	LWLock	   *lock = NULL;

	hyb_key_encode(ix->desc, values, isnull, &state->entry, &keylen);
	hyb_check_entry_size(index, heap, state->entry.len, heap_tid);

	if (check_unique != UNIQUE_CHECK_NO)
		is_unique = hyb_unique_check(ix, heap, values, isnull,
									 state->entry.data, keylen, heap_tid,
									 check_unique, &state->unique, &lock);
	if (check_unique == UNIQUE_CHECK_EXISTING)
		return is_unique;

	full = hyb_delta_append(ix, state->entry.data, state->entry.len, keylen,
							heap_tid);
	if (lock != NULL)
		LWLockRelease(lock);
	if (full)
		after_full_page(ix);
	return is_unique;
}
