/*
 * check_table.c
 *		hybrid_index_check: table and index against each other, and hot copies.
 *
 * From the table to the index, as contrib/amcheck does (verify_nbtree.c): all live
 * entries go into a Bloom filter, and each tuple that CREATE INDEX would index is
 * looked up there.
 *
 * From the index to the table: the heap TIDs of all live entries are sorted, each
 * with a hash of its entry, and followed in the order of the table.  If one leads
 * to a tuple that the check's snapshot sees, it must be the entry of that tuple.
 * The snapshot is older than the first look at the index.  So a tuple that it sees
 * had its line pointer before any entry was read.  The entry of an earlier owner of
 * the line pointer had been removed by then, since a line pointer is used again
 * only after VACUUM's bulk deletion.  This holds whatever insertions, merges and
 * VACUUM do meanwhile, and in recovery.  An entry that was noted twice because it
 * moved does no harm.  What the snapshot does not see is let pass.
 *
 * Entries are compared by a hash of their bytes, INCLUDE columns too: all members of
 * a HOT chain have the same bytes in indexed columns.
 *
 * A hot copy names the one live entry that the static levels have of its key.
 * Under the merge lock levels do not change, but for marks.  The other entries of
 * the key were dead to all when the copy was published, so this snapshot does not
 * see their rows.  (The check does not ask whether they are dead to all now: a
 * standby that begins to report its snapshots moves the horizon back.)  The named
 * entry may be gone from the levels, since a merge leaves out what is dead.
 */
#include "base/compat.h"

#include "access/stratnum.h"
#include "access/tableam.h"
#include "catalog/index.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "check/check.h"
#include "common/hashfn.h"
#include "common/pg_prng.h"
#include "executor/executor.h"
#include "hot/hot.h"
#include "key/row_key.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/tuplesort.h"

/* The bits of an entry's hash that share a datum with its TID. */
#define TID_HASH_BITS	16

/* Buckets of hot copies that are looked at under one hold of the merge lock. */
#define UNIT_BUCKETS	512

/* Live entries of a key in a level that are looked at. */
#define HOT_FETCH_LIMIT		1000

/* ---- table and index ---- */

/* An element of the Bloom filter. */
typedef struct Probe
{
	uint64		hash;
	ItemPointerData tid;
} Probe;

#define PROBE_BYTES		(offsetof(Probe, tid) + sizeof(ItemPointerData))

/*
 * Of equal keys of a HOT chain, such as 1.0 and 1.00, one has the entry.  So values of
 * such columns are hashed by the function that belongs to the operator of equality.
 */
static void
find_hashes(HybCheck *check)
{
	const HybKeyDesc *desc = check->ix->desc;

	if (!desc->chains || desc->exact)
		return;
	check->hashes = palloc0(desc->nkeys * sizeof(FmgrInfo));
	for (int i = 0; i < desc->nkeys; i++)
	{
		Oid			type = check->ix->rel->rd_opcintype[i];
		Oid			equal = get_opfamily_member(check->ix->rel->rd_opfamily[i], type, type,
												BTEqualStrategyNumber);
		RegProcedure function;

		if (!desc->cols[i].exact && op_hashjoinable(equal, desc->cols[i].typid) &&
			get_op_hash_functions(equal, &function, NULL))
			fmgr_info(function, &check->hashes[i]);
	}
}

static uint64
hash_of_equal(const HybCheck *check, int column, const HybValue *val)
{
	const HybColumn *col = &check->ix->desc->cols[column];
	FmgrInfo   *function = &check->hashes[column];

	if (val->isnull)
		return 1;
	if (!OidIsValid(function->fn_oid))
		return 0;
	return DatumGetUInt32(FunctionCall1Coll(function, col->collation, hyb_value_decode(col, val)));
}

/* The same for all forms of a value (hyb_value_has_one_form). */
static uint64
entry_hash(const HybCheck *check, const uint8 *entry, uint32 len)
{
	const HybKeyDesc *desc = check->ix->desc;
	const uint8 *end = entry + len;
	uint64		hash = 0;

	for (int i = 0; i < desc->natts; i++)
	{
		const HybColumn *col = &desc->cols[i];
		const uint8 *start = entry;
		HybValue	val = {.isnull = true};

		entry = hyb_parse_column(col, start, end, &val);
		if (entry == NULL)
			break;				/* not that of any tuple */
		if (check->hashes != NULL && !col->exact)
			hash = hash_combine64(hash, hash_of_equal(check, i, &val));
		else if (hyb_value_has_one_form(col, &val))
			hash = hash_bytes_extended(start, entry - start, hash);
		else
		{
			struct varlena *value = (struct varlena *) DatumGetPointer(hyb_value_decode(col, &val));

			hash = hash_bytes_extended((const uint8 *) VARDATA_ANY(value),
									   VARSIZE_ANY_EXHDR(value), hash);
			pfree(value);
		}
	}
	return hash;
}

uint64
hyb_check_hash(const HybCheck *check, const uint8 *entry, uint32 len)
{
	return check->filter != NULL ? entry_hash(check, entry, len) : 0;
}

static inline uint64
short_hash(uint64 hash)
{
	return hash & ((1 << TID_HASH_BITS) - 1);
}

void
hyb_check_heap_begin(HybCheck *check, double entries)
{
	int			memory = maintenance_work_mem / 2;

	Assert(check->filter == NULL && check->snapshot != InvalidSnapshot);
	find_hashes(check);
	check->filter = bloom_create((int64) entries, memory,
								 pg_prng_uint64(&pg_global_prng_state));
	check->leads = tuplesort_begin_datum(INT8OID, Int8LessOperator,
										 InvalidOid, false, memory, NULL,
										 TUPLESORT_NONE);
}

void
hyb_check_live(HybCheck *check, uint64 hash, const ItemPointerData *tid)
{
	uint64		lead;
	Probe		probe = {.hash = hash,.tid = *tid};

	if (check->filter == NULL)
		return;
	bloom_add_element(check->filter, (unsigned char *) &probe, PROBE_BYTES);

	lead = (uint64) ItemPointerGetBlockNumber(tid) << 16 |
		ItemPointerGetOffsetNumber(tid);
	lead = lead << TID_HASH_BITS | short_hash(hash);
	tuplesort_putdatum(check->leads, Int64GetDatum((int64) lead), false);
}

/* Callback for table_index_build_scan. */
static void
heap_tuple_present(Relation index, ItemPointer tid, Datum *values,
				   bool *isnull, bool tuple_is_alive, void *arg)
{
	HybCheck   *check = arg;
	MemoryContext old_context = MemoryContextSwitchTo(check->page_context);
	Probe		probe = {.tid = *tid};
	uint32		keylen;

	hyb_key_encode(check->ix->desc, values, isnull, &check->entry, &keylen);
	probe.hash = entry_hash(check, check->entry.data, check->entry.len);
	if (bloom_lacks_element(check->filter, (unsigned char *) &probe, PROBE_BYTES))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("heap tuple (%u,%u) of table \"%s\" lacks a matching entry in index \"%s\"",
						HYB_TID_PARTS(tid),
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
					HYB_TID_PARTS(tid),
					RelationGetRelationName(check->heap)),
			 errdetail_internal("%s", detail),
			 errhint("Please REINDEX it.")));
}

/* Follow the entries' TIDs, in the order of the table. */
static void
check_leads(HybCheck *check, Snapshot snapshot)
{
	IndexInfo  *info = BuildIndexInfo(check->ix->rel);
	EState	   *estate = CreateExecutorState();
	ExprContext *econtext = GetPerTupleExprContext(estate);
	ExprState  *predicate = ExecPrepareQual(info->ii_Predicate, estate);
	HybRowReader rows = {0};
	BlockNumber nblocks = RelationGetNumberOfBlocks(check->heap);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	Datum		datum;
	bool		null;

	hyb_row_reader_open(&rows, check->heap);
	econtext->ecxt_scantuple = rows.slot;
	tuplesort_performsort(check->leads);
	while (HYB_TUPLESORT_GETDATUM(check->leads, &datum, &null))
	{
		uint64		lead = (uint64) DatumGetInt64(datum);
		uint64		hash = lead & ((1 << TID_HASH_BITS) - 1);
		ItemPointerData lead_tid;
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
		if (!hyb_row_read(&rows, &lead_tid, snapshot, NULL))
			continue;

		old_context = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
		if (predicate != NULL && !ExecQual(predicate, econtext))
			fail_lead(check, &lead_tid, "The index's predicate excludes the tuple.");
		FormIndexDatum(info, rows.slot, estate, values, isnull);
		hyb_key_encode(check->ix->desc, values, isnull, &check->entry, &keylen);
		if (short_hash(entry_hash(check, check->entry.data, check->entry.len)) != hash)
			fail_lead(check, &lead_tid, "The tuple's values are others than the entry's.");
		MemoryContextSwitchTo(old_context);
		ResetExprContext(econtext);
	}

	hyb_row_reader_close(&rows);
	FreeExecutorState(estate);
}

void
hyb_check_heap(HybCheck *check, Snapshot snapshot)
{
	Assert(!check->locked && check->filter != NULL && snapshot == check->snapshot);
	check_tuples(check, snapshot);
	/* those of hybrid_hot may be stale */
	if (!check->ix->desc->chains)
		check_leads(check, snapshot);
	tuplesort_end(check->leads);
	bloom_free(check->filter);
}

/* ---- rows of single entries ---- */

bool
hyb_check_row_key(HybCheck *check, ItemPointerData tid, Snapshot snapshot,
				  HybBuf *key)
{
	MemoryContext old_context = MemoryContextSwitchTo(check->context);

	hyb_row_reader_open(&check->rows, check->heap);
	MemoryContextSwitchTo(old_context);
	if (!hyb_row_read(&check->rows, &tid, snapshot, NULL))
		return false;
	key->len = 0;
	return hyb_key_of_slot(check->ix->desc, check->ix->rel, check->rows.slot, key);
}

/* ---- hot copies ---- */

/* An entry of the key of a copy leads to a row, which is not the copy's. */
static void
fail_other(HybCheck *check, BlockNumber block, const HybHotKey *key,
		   const ItemPointerData *tid, const ItemPointerData *other)
{
	if (!hyb_hot_has(check->ix, key, tid))
		return;
	hyb_check_fail(check, block,
				   "A hot copy names heap TID (%u,%u) alone for a key that (%u,%u) has in a static level.",
				   HYB_TID_PARTS(tid),
				   HYB_TID_PARTS(other));
}

/* check_copy for the oldest level where that does not keep keys. */
static void
check_truncated(HybCheck *check, const HybHotKey *key,
				const ItemPointerData *tid, const HybPos *pos)
{
	PGAlignedBlock copy;
	int			row;
	int			end_row;
	int			end;

	if (!hyb_check_open_leaf(check, 0, pos, copy.data))
		return;
	(void) hyb_leaf_search_equal(&check->leaf, pos, &row, &end_row);
	end = hyb_leaf_row_start(&check->leaf, end_row);
	for (int i = hyb_leaf_row_start(&check->leaf, row); i < end; i++)
	{
		ItemPointerData other;

		hyb_leaf_tids(&check->leaf, i, 1, &other);
		if (!hyb_leaf_is_tombstone(&check->leaf, i) &&
			!ItemPointerEquals(&other, unconstify(ItemPointerData *, tid)) &&
			hyb_check_row_key(check, other, GetActiveSnapshot(), &check->entry) &&
			check->entry.len == key->len &&
			memcmp(check->entry.data, key->bytes, key->len) == 0)
			fail_other(check, check->leaf.blkno, key, tid, &other);
	}
}

static void
check_copy(const HybHotKey *key, ItemPointerData tid, void *state)
{
	HybCheck   *check = state;
	HybPos		low = {.key = key->bytes,.len = key->len,.tie = HYB_BEFORE};
	HybPos		high;
	HybFetch	fetch = {.lo = &low,.hi = &high,.limit = HOT_FETCH_LIMIT};
	HybFetched	batch = {0};

	low.ncols = check->ix->desc->nkeys;
	high = low;
	high.tie = HYB_AFTER;
	if (check->ix->desc->truncated)
		check_truncated(check, key, &tid, &low);
	for (int level = check->ix->desc->truncated; level < check->version->nlevels; level++)
	{
		/* while the lock is held the version is the current one */
		if (!hyb_run_fetch(check->ix, check->version, level, &fetch, &batch))
			break;
		for (int i = 0; i < batch.nitems; i++)
		{
			ItemPointerData other = batch.items[i].tid;

			if (!ItemPointerEquals(&other, &tid) &&
				hyb_row_exists(check->heap, &other, GetActiveSnapshot(), NULL))
				fail_other(check, batch.items[i].ref.block, key, &tid, &other);
		}
	}
	hyb_fetched_free(&batch);
}

void
hyb_check_hot(HybCheck *check)
{
	bool		more = !RecoveryInProgress();

	for (uint32 bucket = 0; more;)
	{
		hyb_check_lock(check);
		for (int i = 0; i < UNIT_BUCKETS && more; i++)
			more = hyb_hot_visit(check->ix, bucket++, check_copy, check);
		hyb_check_unlock(check);
	}
}
