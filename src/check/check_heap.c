/*
 * check_heap.c
 *		hybrid_index_check: table and index against each other.
 *
 * From the table to the index, as contrib/amcheck does (verify_nbtree.c): all
 * live entries go into a Bloom filter, and each tuple that CREATE INDEX would
 * index is looked up there.
 *
 * From the index to the table: the heap TIDs of all live entries, each with a
 * hash of its entry, are sorted, and followed in the order of the table.  One
 * that leads to a tuple which the check's snapshot sees must be the entry of
 * that tuple.  The snapshot is older than the first look at the index.  So a
 * tuple that it sees had its line pointer before any entry was read, and an
 * entry of whoever had the line pointer earlier had been removed by then: a
 * line pointer is used again only after VACUUM's bulk deletion.  This holds
 * whatever insertions, merges and VACUUM do meanwhile, and in recovery; an
 * entry that was noted twice because it moved does no harm.  What the snapshot
 * does not see is let pass.
 *
 * Entries are compared as bytes, INCLUDE columns too: all members of a HOT
 * chain have the same bytes in indexed columns.
 */
#include "base/compat.h"

#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "check/check.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"

/* Of an entry's hash so many bits share a datum with its TID. */
#define TID_HASH_BITS	16

static void
set_probe(HybBuf *probe, const uint8 *entry, uint32 len,
		  const ItemPointerData *tid)
{
	probe->len = 0;
	hyb_buf_append(probe, entry, len);
	hyb_buf_append(probe, tid, sizeof(ItemPointerData));
}

static uint64
entry_hash(const uint8 *entry, uint32 len)
{
	return hash_bytes(entry, len) & ((1 << TID_HASH_BITS) - 1);
}

void
hyb_check_heap_begin(HybCheck *check, double entries)
{
	int			memory = maintenance_work_mem / 2;

	check->filter = bloom_create((int64) entries, memory,
								 pg_prng_uint64(&pg_global_prng_state));
	check->leads = tuplesort_begin_datum(INT8OID, Int8LessOperator,
										 InvalidOid, false, memory, NULL,
										 TUPLESORT_NONE);
}

void
hyb_check_live(HybCheck *check, const uint8 *entry, uint32 len,
			   const ItemPointerData *tid)
{
	uint64		lead;

	if (check->filter == NULL)
		return;
	set_probe(&check->probe, entry, len, tid);
	bloom_add_element(check->filter, check->probe.data, check->probe.len);

	lead = (uint64) ItemPointerGetBlockNumber(tid) << 16 |
		ItemPointerGetOffsetNumber(tid);
	lead = lead << TID_HASH_BITS | entry_hash(entry, len);
	tuplesort_putdatum(check->leads, Int64GetDatum((int64) lead), false);
}

/*
 * Callback for table_index_build_scan.
 */
static void
heap_tuple_present(Relation index, ItemPointer tid, Datum *values,
				   bool *isnull, bool tuple_is_alive, void *arg)
{
	HybCheck   *check = arg;
	MemoryContext old_context = MemoryContextSwitchTo(check->page_context);
	uint32		keylen;

	hyb_key_encode(check->ix->desc, values, isnull, &check->entry, &keylen);
	set_probe(&check->probe, check->entry.data, check->entry.len, tid);
	if (bloom_lacks_element(check->filter, check->probe.data,
							check->probe.len))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("heap tuple (%u,%u) of table \"%s\" lacks a matching entry in index \"%s\"",
						ItemPointerGetBlockNumber(tid),
						ItemPointerGetOffsetNumber(tid),
						RelationGetRelationName(check->heap),
						RelationGetRelationName(index)),
				 errhint("Please REINDEX it.")));
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(check->page_context);
}

static void
check_tuples(HybCheck *check, Snapshot snapshot)
{
	IndexInfo  *info = BuildIndexInfo(check->ix->rel);
	TableScanDesc scan = table_beginscan_strat(check->heap, snapshot, 0, NULL,
											   true, true);

	/* as amcheck does, and for its reasons */
	info->ii_Concurrent = true;
	info->ii_Unique = false;
	info->ii_ExclusionOps = NULL;
	info->ii_ExclusionProcs = NULL;
	info->ii_ExclusionStrats = NULL;
	table_index_build_scan(check->heap, check->ix->rel, info, true, false,
						   heap_tuple_present, check, scan);
}

HYB_NORETURN static void
fail_lead(HybCheck *check, const ItemPointerData *tid, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" has an entry that leads to heap tuple (%u,%u) of table \"%s\" but is not that tuple's",
					RelationGetRelationName(check->ix->rel),
					ItemPointerGetBlockNumber(tid),
					ItemPointerGetOffsetNumber(tid),
					RelationGetRelationName(check->heap)),
			 errdetail_internal("%s", detail),
			 errhint("Please REINDEX it.")));
}

/*
 * Follow the entries' TIDs, in the order of the table.
 */
static void
check_leads(HybCheck *check, Snapshot snapshot)
{
	IndexInfo  *info = BuildIndexInfo(check->ix->rel);
	EState	   *estate = CreateExecutorState();
	ExprContext *econtext = GetPerTupleExprContext(estate);
	ExprState  *predicate = ExecPrepareQual(info->ii_Predicate, estate);
	TupleTableSlot *slot = table_slot_create(check->heap, NULL);
	IndexFetchTableData *fetch = table_index_fetch_begin(check->heap);
	BlockNumber nblocks = RelationGetNumberOfBlocks(check->heap);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	Datum		datum;
	bool		null;

	econtext->ecxt_scantuple = slot;
	tuplesort_performsort(check->leads);
	while (HYB_TUPLESORT_GETDATUM(check->leads, &datum, &null))
	{
		uint64		lead = (uint64) DatumGetInt64(datum);
		uint64		hash = lead & ((1 << TID_HASH_BITS) - 1);
		bool		again = false;
		bool		dead = false;
		ItemPointerData lead_tid;
		ItemPointerData tid;
		MemoryContext old_context;
		uint32		keylen;

		CHECK_FOR_INTERRUPTS();
		lead >>= TID_HASH_BITS;
		ItemPointerSet(&lead_tid, (BlockNumber) (lead >> 16),
					   (OffsetNumber) (lead & 0xFFFF));

		/*
		 * The table is locked, so VACUUM cannot cut its file meanwhile, and
		 * of rows in blocks that it has cut off before there are no entries.
		 */
		if (ItemPointerGetBlockNumber(&lead_tid) >= nblocks)
		{
			if (check->heap->rd_tableam != GetHeapamTableAmRoutine())
				continue;
			fail_lead(check, &lead_tid, "The table has no such block.");
		}
		/* comes back as the TID of the chain's member */
		tid = lead_tid;
		if (!table_index_fetch_tuple(fetch, &tid, snapshot, slot, &again, &dead))
			continue;

		old_context = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
		if (predicate != NULL && !ExecQual(predicate, econtext))
			fail_lead(check, &lead_tid, "The index's predicate excludes the tuple.");
		FormIndexDatum(info, slot, estate, values, isnull);
		hyb_key_encode(check->ix->desc, values, isnull, &check->entry, &keylen);
		if (entry_hash(check->entry.data, check->entry.len) != hash)
			fail_lead(check, &lead_tid, "The tuple's values are others than the entry's.");
		MemoryContextSwitchTo(old_context);
		ResetExprContext(econtext);
	}

	table_index_fetch_end(fetch);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
}

void
hyb_check_heap(HybCheck *check, Snapshot snapshot)
{
	check_tuples(check, snapshot);
	check_leads(check, snapshot);
	tuplesort_end(check->leads);
	bloom_free(check->filter);
}
