/*
 * check.c
 *		hybrid_index_check: every structural invariant of an index.
 *
 * The check holds the merge lock for short units of work only, so merges, VACUUM and
 * inserters that have to merge wait for a unit at most:
 *
 * - The first unit takes a survey of the metapage and the free list.  It goes over
 *   all internal nodes, the pages of the delta log and the dictionary.  So every
 *   block is accounted for at one moment, in time proportional to the number of
 *   nodes and to the log.
 * - Then units of some leaves each walk the key range, as a scan does.  A unit takes
 *   the current version and goes on at the position that the unit before has
 *   reached.  It compares leaves and the entries of newer runs up to their fences.
 *   An entry that lives all the time is met exactly once: at each moment it is in
 *   one place, and one unit looks at both places of a position.
 * - At last, units of a delta page each ask for the entries that the survey's log has
 *   and the trees did not return.  They are dead by now, or merged into the static
 *   stage.
 *
 * Within a unit the tree, the generations and the free blocks stand still, but for
 * what insertions do: they append to the active generation and take free blocks for
 * it.  VACUUM may set tombstones and dead flags, but not finish.  So the heap TID of
 * an entry that is live when a unit begins cannot be used again before it ends.
 *
 * Totals over all leaves are compared with the metapage only if no merge step came in
 * between.
 *
 * In recovery nothing keeps the index still.  A finding counts there only if no WAL
 * was replayed while the check ran; otherwise the check is done again.
 *
 * The comparison of table and index is in check_table.c.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlogrecovery.h"
#include "check/check.h"
#include "miscadmin.h"
#include "server/btree_only.h"
#include "sql/inspect.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "store/dictionary.h"
#include "store/handle.h"
#include "store/meta.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(hybrid_index_check);

/* How often an index is checked in recovery until replay lets it be. */
#define RECOVERY_TRIES		5

/* What is wrong with a level, as the metapage has it; or NULL. */
static const char *
wrong_level(const HybMetaPage *meta, const HybLevel *level)
{
	const HybRoot *root = &level->root;

	if ((root->height == 0) != (root->block == InvalidBlockNumber))
		return "height and root contradict each other";
	if (root->height > 0 && root->stamp >= meta->next_stamp)
		return "the root's stamp lies in the future";
	if (root->height == 0 && level->tids != 0)
		return "there are static entries without a tree";
	if (level->tombstones > level->tids)
		return "there are more tombstones than entries";
	return NULL;
}

/* What is wrong with the generations and the watermark; or NULL. */
static const char *
wrong_generations(const HybMetaPage *meta)
{
	bool		merging = meta->frozen.number != 0 || meta->pass_level != 0;

	if (meta->active.number == 0 ||
		meta->active.number >= meta->next_generation ||
		meta->frozen.number >= meta->active.number ||
		meta->retiring.number >= meta->active.number ||
		(meta->frozen.number != 0 && meta->retiring.number != 0 &&
		 meta->retiring.number >= meta->frozen.number))
		return "the generation numbers are out of order";
	if (meta->wm_len == 0 && meta->wm_ncols != 0)
		return "the watermark has columns but no key";
	if (!merging && (meta->wm_len != 0 || meta->wm_tie != HYB_BEFORE))
		return "there is a watermark without a frozen generation";
	if (meta->pass_level != 0 && meta->frozen.number != 0)
		return "there is a pass over levels beside a frozen generation";
	if (!merging && (meta->flags & HYB_META_COMPACTING) != 0)
		return "there is a visit of all leaves without a frozen generation";
	if (meta->pass_level == 0 && (meta->flags & HYB_META_MOVING) != 0)
		return "a unit is being moved without a pass over levels";
	if (!merging && (meta->flags & HYB_META_QUIET) != 0 &&
		(meta->flags & HYB_META_COLLAPSE) == 0)
		return "there is a quiet merge without a frozen generation";
	if (!merging && (meta->flags & HYB_META_UNEARNED) != 0)
		return "there is the rest of a quiet merge without a frozen generation";
	return NULL;
}

/* What is wrong with the counts of merges, or the end of the file; or NULL. */
static const char *
wrong_counters(const HybMetaPage *meta)
{
	if ((meta->flags & ~HYB_META_ALL) != 0)
		return "there are flags without a meaning";
	if (meta->earned_pages > meta->written_pages)
		return "fewer pages were written than earned";
	if (meta->pass_stamp > meta->next_stamp)
		return "the stamp of the pass lies in the future";
	for (int i = 0; i < HYB_MAX_LEVELS; i++)
		if (meta->surveyed[i] > meta->next_stamp)
			return "the stamp of a whole pass lies in the future";
	if (BlockNumberIsValid(meta->cut) ? meta->cut == HYB_METAPAGE_BLKNO :
		meta->cut_end != 0 || meta->cut_blocks != 0)
		return "the end that is to be cut off does not begin anywhere";
	if (meta->cut_end != 0 &&
		(meta->cut_end <= meta->cut || meta->cut_blocks != 0))
		return "the end that is to be cut off is not what it was";
	return NULL;
}

/* Fields of the metapage that can be judged by themselves. */
static void
check_meta_fields(HybCheck *check)
{
	const HybMetaPage *meta = check->survey.meta;
	const char *wrong = wrong_generations(meta);

	if (wrong == NULL)
		wrong = wrong_counters(meta);
	for (int i = 0; i < meta->nlevels && wrong == NULL; i++)
		wrong = wrong_level(meta, &meta->levels[i]);
	if (wrong != NULL)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO, "In the metapage, %s.", wrong);

	if (meta->frozen.number != 0 || meta->pass_level != 0)
		hyb_check_position(check, HYB_METAPAGE_BLKNO, 0,
						   &check->version->watermark);
}

/* The handle's dictionary may have been read long ago: look at the pages. */
static void
check_dictionary(HybCheck *check)
{
	const HybMetaPage *meta = check->survey.meta;
	HybCheckPage at = {
		.block = meta->dictionary,
		.from = HYB_METAPAGE_BLKNO,
		.stamp = 1
	};
	char	   *copy;

	if ((check->ix->desc->has_encoded && (meta->flags & HYB_META_PLAIN) == 0) !=
		BlockNumberIsValid(at.block))
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "In the metapage, the link to the dictionary does not fit the columns.");
	copy = palloc(BLCKSZ);
	while (BlockNumberIsValid(at.block))
	{
		hyb_check_claim(check, at.block, HYB_USE_DICTIONARY, at.from);
		hyb_check_copy(check, &at, HYB_PAGE_DICTIONARY, copy);
		hyb_dictionary_check_page(check->ix->rel, at.block, (Page) copy);
		at.from = at.block;
		at.block = hyb_page_opaque((Page) copy)->link;
	}
	pfree(copy);
}

/*
 * A block that nothing points to, or that is free.  Returns whether it is a
 * sound page of this index, and the kind of page; all zeroes have none.
 * Raises an error if it cannot be read.
 */
static int
kind_of_block(HybCheck *check, BlockNumber block, bool *empty)
{
	Buffer		buf = ReadBuffer(check->ix->rel, block);
	Page		page = BufferGetPage(buf);
	int			kind = 0;

	CHECK_FOR_INTERRUPTS();
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	*empty = PageIsNew(page);
	if (!*empty)
	{
		*empty = hyb_page_check(check->ix, buf, HYB_PAGE_FREELIST, 0) &&
			hyb_page_opaque(page)->count == 0;
		kind = hyb_page_opaque(page)->kind;
	}
	UnlockReleaseBuffer(buf);
	return kind;
}

/*
 * The blocks of one use.  Those without are leftovers of interrupted extensions,
 * which VACUUM gives to the free list.  Free ones must be readable pages of the
 * index, or all zeroes; they may be in use again by now.
 */
static void
check_blocks(HybCheck *check, HybBlockUse use)
{
	for (BlockNumber block = 1; block < check->survey.nblocks; block++)
	{
		bool		empty;
		int			kind;

		if (check->use[block] != use)
			continue;
		kind = kind_of_block(check, block, &empty);
		if (use == HYB_USE_NONE && !empty)
			hyb_check_fail(check, block,
						   "It is of kind %d, but nothing points to it.", kind);
	}
}

/*
 * A snapshot whose tuples all have entries: every one that it sees was
 * indexed before the entries are read.
 */
static Snapshot
take_snapshot(Relation index)
{
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());

	if (IsolationUsesXactSnapshot() && index->rd_index->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
							   snapshot->xmin))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("index \"%s\" cannot be checked with this transaction's snapshot",
						RelationGetRelationName(index))));
	return snapshot;
}

static void
check_whole_index(Relation index, Relation heap, bool heapallindexed)
{
	HybCheck   *check = palloc0(sizeof(HybCheck));
	MemoryContext old_context;
	Snapshot	snapshot = InvalidSnapshot;
	HybMetaPage *meta;

	check->context = AllocSetContextCreate(CurrentMemoryContext,
										   "hybrid index check",
										   ALLOCSET_DEFAULT_SIZES);
	check->page_context = AllocSetContextCreate(check->context,
												"hybrid index check page",
												ALLOCSET_DEFAULT_SIZES);
	check->unit_context = AllocSetContextCreate(check->context,
												"hybrid index check unit",
												ALLOCSET_DEFAULT_SIZES);
	old_context = MemoryContextSwitchTo(check->context);
	check->ix = hyb_index_create_handle(index);
	check->heap = heap;
	if (heapallindexed)
		check->snapshot = snapshot = take_snapshot(index);

	check->version = palloc(sizeof(HybVersion));
	hyb_check_lock(check);
	hyb_survey_take(check->ix, &check->survey);
	meta = check->survey.meta;
	hyb_version_from_meta(meta, check->version);
	check->fresh.oldest = 1;
	check->fresh.context = check->context;
	check->fresh_at.tie = HYB_BEFORE;
	check->filter_copy = palloc(BLCKSZ);
	check->filter_copy_block = InvalidBlockNumber;
	check->leaf_tids = palloc(HYB_LEAF_MAX_ITEMS * sizeof(ItemPointerData));
	/* these are used while another context is current */
	hyb_buf_reserve(&check->above, HYB_MAX_ENTRY_SIZE);
	hyb_buf_reserve(&check->entry, HYB_MAX_ENTRY_SIZE);
	hyb_buf_reserve(&check->last_key, HYB_MAX_ENTRY_SIZE);
	hyb_buf_reserve(&check->row_key, HYB_MAX_ENTRY_SIZE);
	hyb_buf_reserve(&check->fresh_key, HYB_MAX_ENTRY_SIZE);
	hyb_buf_reserve(&check->at_key, HYB_MAX_ENTRY_SIZE);
	if (heapallindexed)
		hyb_check_heap_begin(check, Max((double) hyb_meta_static(meta).tids + 8192,
										heap->rd_rel->reltuples));

	check->use = MemoryContextAllocExtended(check->context,
											check->survey.nblocks,
											MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	check->use[HYB_METAPAGE_BLKNO] = HYB_USE_META;
	for (BlockNumber block = 1; block < check->survey.nblocks; block++)
		if (hyb_survey_is_free(&check->survey, block))
			check->use[block] = HYB_USE_FREE;

	check_meta_fields(check);
	check_dictionary(check);
	hyb_check_chains(check);
	hyb_check_nodes(check);
	check_blocks(check, HYB_USE_NONE);
	hyb_check_unlock(check);
	HYB_POINT("check-surveyed");

	hyb_check_log(check);
	hyb_check_leaves(check);
	hyb_check_log_done(check);
	check_blocks(check, HYB_USE_FREE);
	hyb_check_hot(check);

	hyb_row_reader_close(&check->rows);
	if (heapallindexed)
	{
		hyb_check_heap(check, snapshot);
		UnregisterSnapshot(snapshot);
	}
	hyb_runs_free(&check->fresh);
	hyb_leaf_close(&check->leaf);
	MemoryContextSwitchTo(old_context);
	MemoryContextDelete(check->context);
	pfree(check);
}

typedef struct WholeCheck
{
	Relation	index;
	Relation	heap;
	bool		heapallindexed;
} WholeCheck;

static void
check_in_subtransaction(void *arg)
{
	const WholeCheck *whole = arg;

	check_whole_index(whole->index, whole->heap, whole->heapallindexed);
}

/*
 * Check once in recovery, in a subtransaction that lets go of everything if
 * the check fails.  Returns false if there was a finding, but replay went on
 * meanwhile.
 */
static bool
check_index_replayed(Relation index, Relation heap, bool heapallindexed)
{
	WholeCheck	whole = {index, heap, heapallindexed};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hybrid index check in recovery",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(context);
	XLogRecPtr	begin = GetXLogReplayRecPtr(NULL);
	bool		promoted = !RecoveryInProgress();
	ErrorData  *error = hyb_in_subtransaction(check_in_subtransaction, &whole, LockTimeout);
	bool		passed = error == NULL;

	MemoryContextSwitchTo(caller);

	/*
	 * `begin` is the end of the last record that was replayed then; this is
	 * the end of the record that is being replayed, or was last.  So they are
	 * the same only if no record was being applied in between.  After a
	 * promotion in between, merges may have changed the index.
	 */
	if (!passed &&
		(error->sqlerrcode != ERRCODE_INDEX_CORRUPTED || promoted ||
		 (RecoveryInProgress() && GetCurrentReplayRecPtr(NULL) == begin)))
		ReThrowError(error);
	MemoryContextDelete(context);
	return passed;
}

/*
 * hybrid_index_check(index regclass, heapallindexed boolean DEFAULT false)
 * RETURNS void
 */
Datum
hybrid_index_check(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	bool		heapallindexed = PG_GETARG_BOOL(1);
	HybInspected inspected;

	hyb_inspect_open(indexoid, AccessShareLock, HYB_ACCESS_MAINTAIN,
					 &inspected);
	if (!inspected.index->rd_index->indisvalid)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot check index \"%s\"",
						RelationGetRelationName(inspected.index)),
				 errdetail("Index is not valid.")));
	hyb_check_column_classes(inspected.index, WARNING);
	if (!RecoveryInProgress())
		check_whole_index(inspected.index, inspected.heap, heapallindexed);
	else
	{
		int			tries = 0;

		while (!check_index_replayed(inspected.index, inspected.heap,
									 heapallindexed))
		{
			CHECK_FOR_INTERRUPTS();
			if (++tries == RECOVERY_TRIES)
				ereport(ERROR,
						(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
						 errmsg("index \"%s\" changed while it was being checked",
								RelationGetRelationName(inspected.index)),
						 errhint("Pause WAL replay, or check the index on the primary.")));
		}
	}
	hyb_inspect_close(&inspected);

	PG_RETURN_VOID();
}
