/*
 * build_chains.c
 *		Reading the table for an index of hybrid_hot.
 *
 * The server's scan of the table (heapam_index_build_range_scan) takes the last version
 * of a HOT chain, and marks the index as not for older snapshots; REINDEX does not even
 * mark it.  Here each version that is not dead to all gets an entry, so the index serves
 * each snapshot at once.  Versions of a chain with equal keys share one.
 *
 * CREATE INDEX CONCURRENTLY takes what a snapshot sees.  Later its validation inserts all
 * rows again: of a chain the old key may be here, and the new one not.
 */
#include "base/compat.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/xact.h"
#include "build/build_internal.h"
#include "catalog/index.h"
#include "chain/chain.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "storage/procarray.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* A process of a parallel build takes this number of blocks at a time. */
#define BLOCKS_TAKEN	32

/* A block of the table. */
typedef struct BlockVersions
{
	BlockNumber block;
	OffsetNumber last;
	PGAlignedBlock page;		/* a copy */
	int			rows;			/* that are live, or that the snapshot sees */
	bool		wanted[MaxHeapTuplesPerPage + 1];	/* by offset */
	OffsetNumber roots[MaxHeapTuplesPerPage];	/* by offset, less one */
	uint32		key_end[MaxHeapTuplesPerPage + 1];	/* of its key; 0: there is
													 * none */
	HybBuf		keys;			/* in the order of offsets */
} BlockVersions;

/* Is the version a row, as the server counts them for pg_class.reltuples? */
static bool
is_live(HeapTupleHeader header, HTSV_Result status)
{
	switch (status)
	{
		case HEAPTUPLE_LIVE:
			return true;
		case HEAPTUPLE_INSERT_IN_PROGRESS:
			return TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetXmin(header));
		case HEAPTUPLE_DELETE_IN_PROGRESS:
			return !TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(header));
		default:
			return false;
	}
}

/* Copies a block, and finds the versions that get an entry. */
static void
read_versions(Relation heap, BlockNumber block, Snapshot snapshot, TransactionId oldest,
			  BufferAccessStrategy strategy, BlockVersions *versions)
{
	Buffer		buf = ReadBufferExtended(heap, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
	Page		page = BufferGetPage(buf);

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	versions->block = block;
	versions->last = PageGetMaxOffsetNumber(page);
	versions->rows = 0;
	for (OffsetNumber offset = FirstOffsetNumber; offset <= versions->last; offset++)
	{
		HeapTupleData tuple = hyb_tuple_at(heap, page, block, offset);
		bool		live = false;

		versions->wanted[offset] = false;
		if (tuple.t_data == NULL)
			continue;
		if (snapshot != NULL)
			live = versions->wanted[offset] = HeapTupleSatisfiesVisibility(&tuple, snapshot, buf);
		else
		{
			HTSV_Result status = HeapTupleSatisfiesVacuum(&tuple, oldest, buf);

			versions->wanted[offset] = status != HEAPTUPLE_DEAD;
			live = is_live(tuple.t_data, status);
		}
		versions->rows += live;
	}
	heap_get_root_tuples(page, versions->roots);
	memcpy(versions->page.data, page, BLCKSZ);
	UnlockReleaseBuffer(buf);
	versions->keys.len = 0;
	memset(versions->key_end, 0, sizeof(versions->key_end));
}

/* Has an earlier version of its chain the key that begins at `mine`? */
static bool
is_repeated(const HybKeyDesc *desc, const BlockVersions *versions, OffsetNumber offset,
			uint32 mine)
{
	uint32		start = 0;

	for (OffsetNumber i = FirstOffsetNumber; i < offset; i++)
	{
		if (versions->key_end[i] == 0)
			continue;
		if (versions->roots[i - 1] == versions->roots[offset - 1] &&
			hyb_key_compare(desc, versions->keys.data + start, versions->key_end[i] - start,
							versions->keys.data + mine, versions->keys.len - mine) == 0)
			return true;
		start = versions->key_end[i];
	}
	return false;
}

/* Adds the version's entry, unless its chain has it already, or it has none. */
static void
add_version(HybBuildScan *scan, BlockVersions *versions, OffsetNumber offset,
			TupleTableSlot *slot, EState *estate, ExprState *predicate)
{
	IndexInfo  *info = unconstify(IndexInfo *, scan->info);
	HeapTupleData tuple = hyb_tuple_at(scan->heap, (Page) versions->page.data,
									   versions->block, offset);
	uint32		before = versions->keys.len;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	ItemPointerData root;
	MemoryContext old;

	ExecStoreHeapTuple(&tuple, slot, false);
	ResetPerTupleExprContext(estate);
	if (predicate != NULL && !ExecQual(predicate, GetPerTupleExprContext(estate)))
		return;
	FormIndexDatum(info, slot, estate, values, isnull);
	old = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));
	for (int i = 0; i < scan->ix->desc->nkeys; i++)
		hyb_key_encode_column(&scan->ix->desc->cols[i], values[i], isnull[i],
							  &versions->keys);
	MemoryContextSwitchTo(old);
	if (is_repeated(scan->ix->desc, versions, offset, before))
	{
		versions->keys.len = before;
		return;
	}
	versions->key_end[offset] = versions->keys.len;
	ItemPointerSet(&root, versions->block, versions->roots[offset - 1]);
	hyb_build_scan_add(scan->ix->rel, &root, values, isnull, true, scan);
}

double
hyb_build_scan_chains(HybBuildScan *scan, pg_atomic_uint64 *next_block)
{
	Relation	heap = scan->heap;
	IndexInfo  *info = unconstify(IndexInfo *, scan->info);
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	Snapshot	snapshot = info->ii_Concurrent ? GetActiveSnapshot() : NULL;
	TransactionId oldest = GetOldestNonRemovableTransactionId(heap);
	EState	   *estate = CreateExecutorState();
	TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(heap), &TTSOpsHeapTuple);
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	BlockVersions *versions = palloc0(sizeof(BlockVersions));
	pg_atomic_uint64 alone;
	ExprState  *predicate;
	uint64		from;
	double		rows = 0;

	if (next_block == NULL)
	{
		pg_atomic_init_u64(&alone, 0);
		next_block = &alone;
	}
	GetPerTupleExprContext(estate)->ecxt_scantuple = slot;
	predicate = ExecPrepareQual(info->ii_Predicate, estate);
	hyb_buf_reserve(&versions->keys, BLCKSZ);
	pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_TOTAL, nblocks);

	/*
	 * the table grows only if a snapshot is used, and that does not see new
	 * blocks
	 */
	while ((from = pg_atomic_fetch_add_u64(next_block, BLOCKS_TAKEN)) < nblocks)
		for (BlockNumber block = from; block < Min(from + BLOCKS_TAKEN, nblocks); block++)
		{
			CHECK_FOR_INTERRUPTS();
			read_versions(heap, block, snapshot, oldest, strategy, versions);
			rows += versions->rows;
			for (OffsetNumber offset = FirstOffsetNumber; offset <= versions->last; offset++)
				/* a version that no chain leads to was undone */
				if (versions->wanted[offset] && OffsetNumberIsValid(versions->roots[offset - 1]))
					add_version(scan, versions, offset, slot, estate, predicate);
			pgstat_progress_update_param(PROGRESS_SCAN_BLOCKS_DONE, block + 1);
		}
	FreeAccessStrategy(strategy);
	ExecDropSingleTupleTableSlot(slot);
	FreeExecutorState(estate);
	/* they belonged to estate */
	info->ii_ExpressionsState = NIL;
	info->ii_PredicateState = NULL;
	hyb_buf_free(&versions->keys);
	pfree(versions);
	return rows;
}
