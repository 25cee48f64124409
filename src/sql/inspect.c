/*
 * inspect.c
 *		SQL functions that show what is in an index, and that start a merge.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xlog.h"
#include "base/access.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "commands/defrem.h"
#include "filter/filter_use.h"
#include "funcapi.h"
#include "hot/hot.h"
#include "insert/gather.h"
#include "log/delta.h"
#include "log/dynamic.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "scan/index_scan.h"
#include "shared/progress.h"
#include "shared/shared_arena.h"
#include "sql/inspect.h"
#include "storage/bufmgr.h"
#include "store/handle.h"
#include "store/meta.h"
#include "tree/fill.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(hybrid_merge);
PG_FUNCTION_INFO_V1(hybrid_index_stats);
PG_FUNCTION_INFO_V1(hybrid_merge_progress_list);
PG_FUNCTION_INFO_V1(hybrid_memory_info);

/* How often the delta log is counted anew because it changed meanwhile. */
#define COUNT_TRIES		10

/* Does the user see every row of a table?  So pg_stats asks. */
static bool
reads_all_rows(Oid heapoid, Oid userid)
{
	return pg_class_aclcheck(heapoid, userid, ACL_SELECT) == ACLCHECK_OK &&
		check_enable_rls(heapoid, userid, true) != RLS_ENABLED;
}

/* May the user do this with an index and its table?  Looks at catalogs only. */
static bool
access_granted(HybAccess access, Form_pg_class index, Oid heapoid, Oid userid)
{
	/* whether a key is there is as good as the row */
	if (access == HYB_ACCESS_KEYS)
		return reads_all_rows(heapoid, userid);
	if (has_privs_of_role(userid, index->relowner) ||
		HYB_MAY_MAINTAIN(heapoid, userid))
		return true;
	return access != HYB_ACCESS_MAINTAIN &&
		(has_privs_of_role(userid, ROLE_PG_STAT_SCAN_TABLES) ||
		 reads_all_rows(heapoid, userid));
}

/* An error unless this is an index of ours, or a btree. */
static void
check_kind(Form_pg_class index, HybAccess access)
{
	char	   *name = NameStr(index->relname);

	if (index->relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is a partitioned index", name),
				 errhint("Name the index of one partition.")));
	if (index->relkind != RELKIND_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index", name)));
	if (access == HYB_ACCESS_READ_BTREE)
	{
		if (index->relam != BTREE_AM_OID)
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("\"%s\" is not a btree index", name)));
	}
	else if (index->relam != get_index_am_oid("hybrid", true))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a hybrid index", name)));
}

/* The same, and an error unless the caller may do this with it. */
static void
require_index_access(Form_pg_class index, Oid heapoid, HybAccess access)
{
	check_kind(index, access);
	if (!OidIsValid(heapoid))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("could not open parent table of index \"%s\"",
						NameStr(index->relname))));
	if (!access_granted(access, index, heapoid, GetUserId()))
		aclcheck_error(access == HYB_ACCESS_MAINTAIN ? ACLCHECK_NOT_OWNER : ACLCHECK_NO_PRIV,
					   OBJECT_INDEX, NameStr(index->relname));
}

HYB_NORETURN static void
report_missing(Oid indexoid)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_TABLE),
			 errmsg("relation with OID %u does not exist", indexoid)));
}

static void
close_both(const HybInspected *inspected)
{
	index_close(inspected->index, inspected->lockmode);
	table_close(inspected->heap, inspected->lockmode);
}

/*
 * A caller that lacks a privilege is told so before a lock is waited for.  The
 * checks are repeated under the locks: the index may have been dropped, and its
 * OID or its owner may be another one, by then.
 */
void
hyb_inspect_open_as_caller(Oid indexoid, LOCKMODE lockmode, HybAccess access,
						   HybInspected *inspected)
{
	Oid			heapoid = IndexGetRelation(indexoid, true);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexoid));
	Relation	index;

	if (!HeapTupleIsValid(tuple))
		report_missing(indexoid);
	require_index_access((Form_pg_class) GETSTRUCT(tuple), heapoid, access);
	ReleaseSysCache(tuple);

	hyb_gather_before_read(indexoid);
	memset(inspected, 0, sizeof(*inspected));
	inspected->lockmode = lockmode;

	/* the table first, as everybody does */
	inspected->heap = try_table_open(heapoid, lockmode);
	inspected->index = index = try_relation_open(indexoid, lockmode);
	if (index == NULL)
		report_missing(indexoid);
	if (inspected->heap == NULL || heapoid != IndexGetRelation(indexoid, true))
		heapoid = InvalidOid;
	require_index_access(index->rd_rel, heapoid, access);
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	if (RecoveryInProgress() && !RelationIsPermanent(index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	if (!index->rd_index->indisready)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not ready",
						RelationGetRelationName(index)),
				 errdetail("It is being built, or building it failed.")));
}

void
hyb_inspect_become_owner(HybInspected *inspected)
{
	hyb_become_owner(&inspected->caller, inspected->heap->rd_rel->relowner);
}

void
hyb_inspect_open(Oid indexoid, LOCKMODE lockmode, HybAccess access,
				 HybInspected *inspected)
{
	hyb_inspect_open_as_caller(indexoid, lockmode, access, inspected);
	hyb_inspect_become_owner(inspected);
}

bool
hyb_inspect_try_open(Oid indexoid, LOCKMODE lockmode, HybAccess access,
					 HybInspected *inspected)
{
	Oid			heapoid = IndexGetRelation(indexoid, true);

	memset(inspected, 0, sizeof(*inspected));
	inspected->lockmode = lockmode;
	inspected->heap = hyb_try_open(heapoid, lockmode, NULL);
	if (inspected->heap == NULL)
		return false;
	inspected->index = hyb_try_open(indexoid, lockmode, NULL);
	if (inspected->index == NULL)
	{
		relation_close(inspected->heap, lockmode);
		return false;
	}
	check_kind(inspected->index->rd_rel, access);
	if (heapoid == IndexGetRelation(indexoid, true) &&
		access_granted(access, inspected->index->rd_rel, heapoid,
					   GetUserId()) &&
		!RELATION_IS_OTHER_TEMP(inspected->index) &&
		(!RecoveryInProgress() || RelationIsPermanent(inspected->index)) &&
		inspected->index->rd_index->indisready &&
		!hyb_index_is_being_built(indexoid))
	{
		hyb_inspect_become_owner(inspected);
		return true;
	}
	close_both(inspected);
	return false;
}

void
hyb_inspect_close(HybInspected *inspected)
{
	hyb_become_caller(&inspected->caller);
	close_both(inspected);
}

/*
 * hybrid_merge(index regclass) RETURNS bigint
 */
Datum
hybrid_merge(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	HybInspected inspected;
	uint64		merged = 0;

	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("recovery is in progress"),
				 errhint("Hybrid indexes cannot be merged during recovery.")));

	hyb_inspect_open(indexoid, RowExclusiveLock, HYB_ACCESS_MAINTAIN,
					 &inspected);
	merged = hyb_merge_all(hyb_index_create_handle(inspected.index));
	hyb_inspect_close(&inspected);

	PG_RETURN_INT64((int64) merged);
}

/*
 * Add the live entries of a generation to *n.  Returns false if a page was
 * not the one expected, because the generation was merged and its pages were
 * used again meanwhile.
 */
static bool
count_generation(HybIndex *ix, const HybGeneration *generation,
				 const HybPos *watermark, char *copy, uint64 *n)
{
	HybDeltaWalk walk;

	hyb_delta_walk_start(&walk, ix, generation, watermark != NULL);
	while (hyb_delta_walk_next(&walk))
	{
		if (!hyb_delta_walk_copy(&walk, copy))
			return false;
		*n += hyb_delta_count_live(ix, (Page) copy, walk.block, watermark);
	}
	return true;
}

/*
 * The columns of a function's result, which the library knows by number.  The
 * script that declared the function may be of another version.
 */
static TupleDesc
result_columns(FunctionCallInfo fcinfo, int ncolumns)
{
	TupleDesc	tupdesc;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE ||
		tupdesc->natts != ncolumns)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("the function does not return the row that its library has for it"),
				 errdetail("The row has %d columns.", ncolumns),
				 errhint("ALTER EXTENSION hybridindex UPDATE brings the extension to the version of its library.")));
	return tupdesc;
}

/*
 * Live entries of the dynamic stage.  With merges going on all the time the
 * metapage's estimate has to do in the end.
 */
static uint64
count_dynamic_live(HybIndex *ix)
{
	char	   *copy = palloc(BLCKSZ);
	uint64		n = 0;
	int			try = 0;

	do
	{
		HybMetaPage meta;
		HybVersion	version;

		hyb_meta_copy(ix, &meta);
		hyb_version_from_meta(&meta, &version);
		n = 0;
		if (count_generation(ix, &version.active, NULL, copy, &n) &&
			count_generation(ix, &version.frozen, &version.watermark, copy, &n))
			break;
		n = version.active.nentries + version.frozen.nentries;
	} while (++try < COUNT_TRIES);

	pfree(copy);
	return n;
}

/* A row of hybrid_index_stats, column by column. */
typedef struct StatsRow
{
	Datum		values[41];
	bool		nulls[41];
	int			n;
} StatsRow;

static void
put_stat(StatsRow *row, bool known, Datum value)
{
	row->nulls[row->n] = !known;
	row->values[row->n++] = value;
}

static void
put_count(StatsRow *row, bool known, uint64 count)
{
	put_stat(row, known, Int64GetDatum((int64) count));
}

/* What came of questions to filters, and what uniqueness checks met. */
static void
put_counters(StatsRow *row, bool known, const uint64 *counters)
{
	put_count(row, known, counters[HYB_PROBE_HIT] +
			  counters[HYB_PROBE_NEGATIVE] +
			  counters[HYB_PROBE_FALSE_POSITIVE]);
	put_count(row, known, counters[HYB_PROBE_NEGATIVE]);
	put_count(row, known, counters[HYB_PROBE_FALSE_POSITIVE]);
	put_count(row, known, counters[HYB_UNIQUE_ABOVE]);
	put_count(row, known, counters[HYB_UNIQUE_ABSENT]);
	put_count(row, known, counters[HYB_UNIQUE_PRESENT]);
}

/* The dynamic stage's trees. */
static void
put_trees(StatsRow *row, const HybDynamicStats *dynamic)
{
	bool		idle = !dynamic->busy;

	put_count(row, idle, dynamic->bloom_hits);
	put_count(row, idle, dynamic->bloom_misses);
	put_count(row, true, dynamic->tree_bytes);
	put_count(row, idle, dynamic->tree_entries);
	put_count(row, idle, dynamic->compact_entries);
	put_count(row, idle, dynamic->rebuilds);
	put_stat(row, true, BoolGetDatum(dynamic->shared));
}

/* Pages of a level's tree. */
static uint64
tree_pages(const HybLevel *level)
{
	return level->leaf_pages + level->inner_pages;
}

/*
 * Static levels, what waits in newer ones than the oldest, and what merges have
 * written for what they merged.
 */
static void
put_levels(StatsRow *row, const HybMetaPage *meta, const HybLevel *total)
{
	const HybLevel *oldest = &meta->levels[0];
	double		merged = 0;

	if (total->tids > 0)
		merged = (double) meta->merged_entries * tree_pages(total) / total->tids;
	put_stat(row, true, Int32GetDatum((int32) meta->nlevels));
	put_count(row, true, total->tids - oldest->tids);
	put_count(row, true, (tree_pages(total) - tree_pages(oldest)) * BLCKSZ);
	put_count(row, true, meta->moved_entries);
	put_count(row, true, meta->written_pages * BLCKSZ);
	put_stat(row, merged > 0, Float8GetDatum(merged > 0 ? meta->written_pages / merged : 0));
}

/* Keys that were looked up in the table of hot copies, and found. */
static void
put_hot(StatsRow *row, const HybIndex *ix)
{
	uint64		lookups;
	uint64		hits;

	hyb_hot_counts(ix, &lookups, &hits);
	put_count(row, true, lookups);
	put_count(row, true, hits);
}

/*
 * hybrid_index_stats(index regclass, nowait boolean, OUT ...): NULLs if nowait
 * and the index is locked, or there is none
 */
Datum
hybrid_index_stats(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	bool		nowait = PG_GETARG_BOOL(1);
	HybInspected inspected;
	HybIndex   *ix;
	HybMetaPage meta;
	HybDynamicStats dynamic;
	TupleDesc	tupdesc;
	StatsRow	row = {.n = 0};
	HybLevel	total;
	double		fill = 0;
	bool		filled;
	bool		idle;
	uint64		dynamic_entries;
	uint64		delta_pages;
	uint64		live;
	BlockNumber nblocks;

	tupdesc = result_columns(fcinfo, lengthof(row.values));

	if (!nowait)
		hyb_inspect_open(indexoid, AccessShareLock, HYB_ACCESS_READ, &inspected);
	else if (!hyb_inspect_try_open(indexoid, AccessShareLock, HYB_ACCESS_READ,
								   &inspected))
		PG_RETURN_NULL();
	ix = hyb_index_create_handle(inspected.index);

	dynamic_entries = count_dynamic_live(ix);
	hyb_meta_copy(ix, &meta);
	nblocks = RelationGetNumberOfBlocks(ix->rel);
	memset(&dynamic, 0, sizeof(dynamic));
	hyb_dynamic_stats(ix, nowait, &dynamic);
	idle = !dynamic.busy;

	total = hyb_meta_static(&meta);
	delta_pages = meta.active.npages + meta.frozen.npages +
		meta.retiring.npages;
	live = total.tids - total.tombstones + dynamic_entries;

	put_count(&row, true, total.tids);
	put_count(&row, true, total.tombstones);
	put_count(&row, true, total.leaf_pages);
	put_count(&row, true, total.inner_pages);
	put_count(&row, true, (total.leaf_pages + total.inner_pages) * BLCKSZ);
	put_stat(&row, true, Int32GetDatum((int32) total.root.height));
	put_count(&row, true, dynamic_entries);
	put_count(&row, true, delta_pages);
	put_count(&row, true, delta_pages * BLCKSZ);
	put_count(&row, true, hyb_meta_free(&meta, nblocks));
	put_count(&row, true, nblocks);
	put_count(&row, true, (uint64) nblocks * BLCKSZ);
	put_stat(&row, live != 0, Float8GetDatum(live == 0 ? 0.0 :
											 (double) nblocks * BLCKSZ / (double) live));
	put_count(&row, true, meta.merges);
	put_count(&row, true, meta.merged_entries);
	put_stat(&row, true, BoolGetDatum(meta.frozen.number != 0));
	put_trees(&row, &dynamic);
	put_count(&row, true, total.filter_pages);
	put_count(&row, true, total.filter_pages * BLCKSZ);
	put_counters(&row, idle, dynamic.counters);
	filled = hyb_static_fill(ix, &fill);
	put_stat(&row, filled, Float8GetDatum(fill));
	put_levels(&row, &meta, &total);
	put_count(&row, idle, dynamic.counters[HYB_HEAP_PREFETCHES]);
	put_hot(&row, ix);
	Assert(row.n == lengthof(row.values));

	hyb_inspect_close(&inspected);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  row.values, row.nulls)));
}

/*
 * May the caller see what a merge does, and not only that it runs?  The rule is
 * that of the server's views of progress, with the index's owner in place of
 * the session's user.
 */
static bool
progress_granted(const HybProgress *merge)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		(merge->dbid == MyDatabaseId && hyb_owns(merge->relid));
}

/*
 * hybrid_merge_progress_list() RETURNS SETOF record: merges that run now
 */
Datum
hybrid_merge_progress_list(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < HYB_PROGRESS_ENTRIES; i++)
	{
		HybProgress merge;
		Datum		values[9];
		bool		nulls[9];

		if (!hyb_progress_read(i, &merge))
			continue;
		memset(nulls, !progress_granted(&merge), sizeof(nulls));
		nulls[0] = nulls[2] = false;
		values[0] = ObjectIdGetDatum(merge.dbid);
		values[1] = ObjectIdGetDatum(merge.relid);
		values[2] = Int32GetDatum(merge.pid);
		values[3] = Int64GetDatum((int64) merge.entries_total);
		values[4] = Int64GetDatum((int64) merge.entries_done);
		values[5] = Int64GetDatum((int64) merge.entries_moved);
		values[6] = Int32GetDatum(merge.pass_level);
		nulls[6] |= merge.pass_level == 0;
		values[7] = Int64GetDatum((int64) merge.steps);
		values[8] = TimestampTzGetDatum(merge.started);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * hybrid_memory_info(OUT ...): what all hybrid indexes of the server share
 */
Datum
hybrid_memory_info(PG_FUNCTION_ARGS)
{
	HybMemoryStats stats;
	TupleDesc	tupdesc;
	Datum		values[12];
	bool		nulls[12] = {0};
	uint64		hot;
	uint64		hot_used;

	tupdesc = result_columns(fcinfo, lengthof(values));

	hyb_memory_stats(&stats);
	hyb_hot_memory(&hot, &hot_used);
	values[0] = Int64GetDatum((int64) hyb_dynamic_memory_kb * 1024);
	values[1] = Int64GetDatum((int64) stats.budget);
	values[2] = Int64GetDatum((int64) stats.reserved);
	values[3] = Int32GetDatum((int32) stats.segments);
	values[4] = Int64GetDatum((int64) stats.used);
	values[5] = Int64GetDatum((int64) stats.trees);
	values[6] = Int32GetDatum((int32) stats.slots);
	values[7] = Int64GetDatum((int64) stats.private_trees);
	values[8] = Int64GetDatum((int64) stats.slot_bytes);
	values[9] = Int64GetDatum((int64) stats.control);
	values[10] = Int64GetDatum((int64) hot);
	values[11] = Int64GetDatum((int64) hot_used);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(tupdesc),
													  values, nulls)));
}
