/*
 * inspect.c
 *		SQL functions that show what is in an index, and one that merges it.
 *
 * Locks: a function locks the table first, then the index, both in its mode, and
 * keeps the locks until it ends.  It checks privileges before and after.
 */
#include "base/compat.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xlog.h"
#include "base/server.h"
#include "build/build.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "filter/filter_choice.h"
#include "hot/hot.h"
#include "insert/gather.h"
#include "key/encoded.h"
#include "log/delta.h"
#include "log/log.h"
#include "merge/facts.h"
#include "merge/merge.h"
#include "miscadmin.h"
#include "scan/index_scan.h"
#include "shared/shared.h"
#include "shared/shared_arena.h"
#include "shared/workers.h"
#include "sql/inspect.h"
#include "sql/result_row.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "store/handle.h"
#include "store/meta.h"
#include "tree/descend.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(hybrid_merge);
PG_FUNCTION_INFO_V1(hybrid_index_stats);
PG_FUNCTION_INFO_V1(hybrid_merge_progress_list);
PG_FUNCTION_INFO_V1(hybrid_memory_info);
PG_FUNCTION_INFO_V1(hybrid_dictionary_info);

/* hybrid_dictionary_info decodes up to this number of recent entries. */
#define RECENT_ENTRIES	100000

/* ---- privileges and locks ---- */

/* Returns true if the user sees every row of a table: the rule of pg_stats. */
static bool
reads_all_rows(Oid heapoid, Oid userid)
{
	return pg_class_aclcheck(heapoid, userid, ACL_SELECT) == ACLCHECK_OK &&
		check_enable_rls(heapoid, userid, true) != RLS_ENABLED;
}

/* Returns true if the user may do this.  Looks at catalogs only. */
static bool
access_granted(HybAccess access, Form_pg_class index, Oid heapoid, Oid userid)
{
	if (has_privs_of_role(userid, index->relowner) ||
		HYB_MAY_MAINTAIN(heapoid, userid))
		return true;
	return access != HYB_ACCESS_MAINTAIN &&
		(has_privs_of_role(userid, ROLE_PG_STAT_SCAN_TABLES) ||
		 reads_all_rows(heapoid, userid));
}

/* Fails if this is not an index of the access method. */
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
	else if (!hyb_is_our_method(index->relam))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a hybrid index", name)));
}

/* Fails, too, if the caller may not do this. */
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
 * A caller without the privilege gets the error before we wait for a lock.  Under the
 * locks we check again, for the index may have been dropped or have another owner.
 */
void
hyb_inspect_open(Oid indexoid, LOCKMODE lockmode, HybAccess access,
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

	/* the table first, as the server does */
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
	Assert(CheckRelationLockedByMe(inspected->heap, lockmode, true));
	Assert(CheckRelationLockedByMe(index, lockmode, true));
	hyb_become_owner(&inspected->caller, inspected->heap->rd_rel->relowner);
}

bool
hyb_inspect_read(Oid indexoid, bool nowait, HybAccess access,
				 HybInspected *inspected)
{
	Oid			heapoid = IndexGetRelation(indexoid, true);

	if (!nowait)
	{
		hyb_inspect_open(indexoid, AccessShareLock, access, inspected);
		return true;
	}
	memset(inspected, 0, sizeof(*inspected));
	inspected->lockmode = AccessShareLock;
	inspected->heap = hyb_try_open(heapoid, AccessShareLock, NULL);
	if (inspected->heap == NULL)
		return false;
	inspected->index = hyb_try_open(indexoid, AccessShareLock, NULL);
	if (inspected->index == NULL)
	{
		relation_close(inspected->heap, AccessShareLock);
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
		hyb_become_owner(&inspected->caller, inspected->heap->rd_rel->relowner);
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

/* ---- functions ---- */

/* hybrid_merge(index regclass) RETURNS bigint */
Datum
hybrid_merge(PG_FUNCTION_ARGS)
{
	Oid			indexoid = PG_GETARG_OID(0);
	HybInspected inspected;
	HybIndex   *ix;
	uint64		merged = 0;

	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("recovery is in progress"),
				 errhint("Hybrid indexes cannot be merged during recovery.")));

	hyb_inspect_open(indexoid, RowExclusiveLock, HYB_ACCESS_MAINTAIN,
					 &inspected);
	ix = hyb_index_create_handle(inspected.index);
	hyb_merge_request_settling(ix, 0);
	merged = hyb_merge_all(ix);
	hyb_inspect_close(&inspected);

	PG_RETURN_INT64((int64) merged);
}

/*
 * Adds the live entries of a generation to *n.  Returns false if a merge has reused
 * a page of it meanwhile.
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
 * Returns the number of live entries of the delta log, or the estimate of the metapage
 * if a merge changes it meanwhile.
 */
static uint64
count_log_live(HybIndex *ix)
{
	char	   *copy = palloc(BLCKSZ);
	HybMetaPage meta;
	HybVersion	version;
	uint64		n = 0;

	hyb_meta_copy(ix, &meta);
	hyb_version_from_meta(&meta, &version);
	if (!count_generation(ix, &version.active, NULL, copy, &n) ||
		!count_generation(ix, &version.frozen, &version.watermark, copy, &n))
		n = version.active.nentries + version.frozen.nentries;
	pfree(copy);
	return n;
}

static void
put_counters(HybResultRow *row, bool known, const uint64 *counters)
{
	hyb_result_put_int8(row, known, counters[HYB_PROBE_HIT] +
						counters[HYB_PROBE_NEGATIVE] +
						counters[HYB_PROBE_FALSE_POSITIVE]);
	hyb_result_put_int8(row, known, counters[HYB_PROBE_NEGATIVE]);
	hyb_result_put_int8(row, known, counters[HYB_PROBE_FALSE_POSITIVE]);
	hyb_result_put_int8(row, known, counters[HYB_UNIQUE_ABOVE]);
	hyb_result_put_int8(row, known, counters[HYB_UNIQUE_ABSENT]);
	hyb_result_put_int8(row, known, counters[HYB_UNIQUE_PRESENT]);
	hyb_result_put_int8(row, known, counters[HYB_UNIQUE_DENIED]);
	hyb_result_put_int8(row, known, counters[HYB_UNIQUE_FALSE_POSITIVE]);
}

/* Bytes of the membership filter that answers, and of the one being made. */
static void
put_membership(HybResultRow *row, const HybIndex *ix)
{
	uint64		bytes = hyb_slot_membership_bytes(hyb_cache_get(ix), false);
	uint64		making = hyb_slot_membership_bytes(hyb_cache_get(ix), true);

	hyb_result_put_int8(row, true, bytes);
	hyb_result_put_int8(row, true, making);
}

/* Trees over the log. */
static void
put_trees(HybResultRow *row, const HybLogStats *dynamic)
{
	bool		idle = !dynamic->busy;

	hyb_result_put_int8(row, idle, dynamic->counters[HYB_BLOOM_HITS]);
	hyb_result_put_int8(row, idle, dynamic->counters[HYB_BLOOM_MISSES]);
	hyb_result_put_int8(row, true, dynamic->tree_bytes);
	hyb_result_put_int8(row, idle, dynamic->tree_entries);
	hyb_result_put_int8(row, idle, dynamic->compact_entries);
	hyb_result_put_int8(row, idle, dynamic->rebuilds);
	hyb_result_put(row, BOOLOID, true, BoolGetDatum(dynamic->shared));
}

static uint64
tree_pages(const HybLevel *level)
{
	return level->leaf_pages + level->inner_pages;
}

/* Static levels, what newer ones than the oldest hold, and writes of merges. */
static void
put_levels(HybResultRow *row, const HybMetaPage *meta, const HybLevel *total)
{
	const HybLevel *oldest = &meta->levels[0];
	double		merged = 0;

	if (total->tids > 0)
		merged = (double) meta->merged_entries * tree_pages(total) / total->tids;
	hyb_result_put(row, INT4OID, true, Int32GetDatum((int32) meta->nlevels));
	hyb_result_put_int8(row, true, total->tids - oldest->tids);
	hyb_result_put_int8(row, true, (tree_pages(total) - tree_pages(oldest)) * BLCKSZ);
	hyb_result_put_int8(row, true, meta->moved_entries);
	hyb_result_put_int8(row, true, meta->written_pages * BLCKSZ);
	hyb_result_put(row, FLOAT8OID, merged > 0,
				   Float8GetDatum(merged > 0 ? meta->written_pages / merged : 0));
}

static void
put_hot(HybResultRow *row, const HybIndex *ix)
{
	uint64		lookups;
	uint64		hits;

	hyb_hot_counts(ix, &lookups, &hits);
	hyb_result_put_int8(row, true, lookups);
	hyb_result_put_int8(row, true, hits);
}

/* A call of hybrid_index_stats. */
typedef struct StatsCall
{
	Oid			index;
	bool		nowait;
	bool		opened;			/* an error from here on is about this index */
	bool		known;			/* the row is complete */
	HybResultRow row;
} StatsCall;

static void
put_index_stats(void *arg)
{
	StatsCall  *call = arg;
	HybResultRow *row = &call->row;
	HybInspected inspected;
	HybIndex   *ix;
	HybMetaPage meta;
	HybLogStats dynamic;
	HybLevel	total;
	double		fill = 0;
	bool		filled;
	bool		idle;
	uint64		log_entries;
	uint64		delta_pages;
	uint64		live;
	BlockNumber nblocks;

	if (!hyb_inspect_read(call->index, call->nowait, HYB_ACCESS_READ, &inspected))
		return;
	(void) hyb_shared_init();
	call->opened = true;
	ix = hyb_index_create_handle(inspected.index);

	log_entries = count_log_live(ix);
	hyb_meta_copy(ix, &meta);
	nblocks = RelationGetNumberOfBlocks(ix->rel);
	memset(&dynamic, 0, sizeof(dynamic));
	hyb_log_stats(ix, call->nowait, &dynamic);
	idle = !dynamic.busy;

	total = hyb_meta_static(&meta);
	delta_pages = meta.active.npages + meta.frozen.npages +
		meta.retiring.npages;
	live = total.tids - total.tombstones + log_entries;

	hyb_result_put_int8(row, true, total.tids);
	hyb_result_put_int8(row, true, total.tombstones);
	hyb_result_put_int8(row, true, total.leaf_pages);
	hyb_result_put_int8(row, true, total.inner_pages);
	hyb_result_put_int8(row, true, tree_pages(&total) * BLCKSZ);
	hyb_result_put(row, INT4OID, true, Int32GetDatum((int32) total.root.height));
	hyb_result_put_int8(row, true, log_entries);
	hyb_result_put_int8(row, true, delta_pages);
	hyb_result_put_int8(row, true, delta_pages * BLCKSZ);
	hyb_result_put_int8(row, true, hyb_meta_free(&meta, nblocks));
	hyb_result_put_int8(row, true, nblocks);
	hyb_result_put_int8(row, true, (uint64) nblocks * BLCKSZ);
	hyb_result_put(row, FLOAT8OID, live != 0, Float8GetDatum(live == 0 ? 0.0 :
															 (double) nblocks * BLCKSZ / (double) live));
	hyb_result_put_int8(row, true, meta.merges);
	hyb_result_put_int8(row, true, meta.merged_entries);
	hyb_result_put(row, BOOLOID, true, BoolGetDatum(meta.frozen.number != 0));
	put_trees(row, &dynamic);
	hyb_result_put_int8(row, true, total.filter_pages);
	hyb_result_put_int8(row, true, total.filter_pages * BLCKSZ);
	put_counters(row, idle, dynamic.counters);
	put_membership(row, ix);
	filled = hyb_static_fill(ix, &fill);
	hyb_result_put(row, FLOAT8OID, filled, Float8GetDatum(fill));
	put_levels(row, &meta, &total);
	hyb_result_put_int8(row, idle, dynamic.counters[HYB_HEAP_PREFETCHES]);
	put_hot(row, ix);
	hyb_result_put_int8(row, idle, dynamic.counters[HYB_INDEX_ONLY_SCANS]);
	hyb_inspect_close(&inspected);
	call->known = true;
}

/*
 * hybrid_index_stats(index regclass, nowait boolean, OUT ...): with nowait NULLs if
 * the index is gone, or cannot be read at once or at all
 */
Datum
hybrid_index_stats(PG_FUNCTION_ARGS)
{
	StatsCall	call = {.index = PG_GETARG_OID(0),.nowait = PG_GETARG_BOOL(1)};

	hyb_result_begin(fcinfo, false, &call.row);
	if (call.nowait)
	{
		ErrorData  *error = hyb_without_waiting(put_index_stats, &call);

		/* of the call, or of all indexes: another build is in charge */
		if (error != NULL && !call.opened &&
			(error->sqlerrcode == ERRCODE_WRONG_OBJECT_TYPE ||
			 error->sqlerrcode == ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE))
			ReThrowError(error);
	}
	else
		put_index_stats(&call);
	if (!call.known)
		PG_RETURN_NULL();
	return hyb_result_datum(&call.row);
}

/*
 * Returns true if the caller may see more of a merge than that it runs: the rule of
 * the server's progress views, with the index's owner as user.
 */
static bool
progress_granted(const HybProgress *merge)
{
	return has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS) ||
		(merge->dbid == MyDatabaseId && hyb_owns(merge->relid));
}

/* hybrid_merge_progress_list() RETURNS SETOF record: merges that run now */
Datum
hybrid_merge_progress_list(PG_FUNCTION_ARGS)
{
	HybResultRow row;

	hyb_result_begin(fcinfo, true, &row);
	for (int i = 0; i < HYB_PROGRESS_ENTRIES; i++)
	{
		HybProgress merge;
		bool		seen;

		if (!hyb_progress_read(i, &merge))
			continue;
		seen = progress_granted(&merge);
		hyb_result_put(&row, OIDOID, true, ObjectIdGetDatum(merge.dbid));
		hyb_result_put(&row, OIDOID, seen, ObjectIdGetDatum(merge.relid));
		hyb_result_put(&row, INT4OID, true, Int32GetDatum(merge.pid));
		hyb_result_put_int8(&row, seen, merge.entries_total);
		hyb_result_put_int8(&row, seen, merge.entries_done);
		hyb_result_put_int8(&row, seen, merge.entries_moved);
		hyb_result_put(&row, INT4OID, seen && merge.pass_level != 0,
					   Int32GetDatum(merge.pass_level));
		hyb_result_put_int8(&row, seen, merge.steps);
		hyb_result_put(&row, TIMESTAMPTZOID, seen, TimestampTzGetDatum(merge.started));
		hyb_result_add(&row);
	}
	return (Datum) 0;
}

/* hybrid_memory_info(OUT ...): what all hybrid indexes of the server share */
Datum
hybrid_memory_info(PG_FUNCTION_ARGS)
{
	HybMemoryStats stats;
	HybResultRow row;
	uint64		hot;
	uint64		hot_used;

	hyb_result_begin(fcinfo, false, &row);
	hyb_memory_stats(&stats);
	hyb_hot_memory(&hot, &hot_used);
	hyb_result_put_int8(&row, true, (uint64) hyb_dynamic_memory_kb * 1024);
	hyb_result_put_int8(&row, true, stats.budget);
	hyb_result_put_int8(&row, true, stats.reserved);
	hyb_result_put(&row, INT4OID, true, Int32GetDatum((int32) stats.segments));
	hyb_result_put_int8(&row, true, stats.used);
	hyb_result_put_int8(&row, true, stats.trees);
	hyb_result_put(&row, INT4OID, true, Int32GetDatum((int32) stats.slots));
	hyb_result_put_int8(&row, true, stats.private_trees);
	hyb_result_put_int8(&row, true, stats.slot_bytes);
	hyb_result_put_int8(&row, true, stats.control);
	hyb_result_put_int8(&row, true, hot);
	hyb_result_put_int8(&row, true, hot_used);
	hyb_result_put_int8(&row, true, hyb_arena_filters());
	return hyb_result_datum(&row);
}

/* ---- dictionaries ---- */

/* Adds the entries of a page of the delta log to the sample, by column. */
static void
count_recent_page(HybIndex *ix, Page page, BlockNumber block,
				  HybRecent *recent)
{
	HybEntry	entry = {.block = block};
	HybValue	vals[INDEX_MAX_KEYS];

	while (hyb_delta_next(ix->rel, page, &entry))
	{
		if (hyb_key_split(ix->desc, entry.bytes, entry.len, ix->desc->nkeys,
						  vals) == 0)
			hyb_corrupted(ix->rel, block, "An entry of a delta page is malformed.");
		hyb_recent_add(ix->desc, vals, recent);
	}
}

/*
 * Samples what the last merge moved, and what has been inserted since.  Leaves out
 * pages that a merge takes away meanwhile.
 */
static void
sample_recent(HybIndex *ix, HybRecent *recent)
{
	char	   *copy = palloc(BLCKSZ);
	HybMetaPage meta;
	uint64		entries = 0;

	hyb_meta_copy(ix, &meta);
	memcpy(recent, meta.recent, sizeof(meta.recent));
	for (int which = 0; which < 2; which++)
	{
		HybDeltaWalk walk;

		hyb_delta_walk_start(&walk, ix, which == 0 ? &meta.active :
							 &meta.frozen, which != 0);
		while (entries < RECENT_ENTRIES && hyb_delta_walk_next(&walk) &&
			   hyb_delta_walk_copy(&walk, copy))
		{
			count_recent_page(ix, (Page) copy, walk.block, recent);
			entries += hyb_page_opaque((Page) copy)->count;
		}
	}
	pfree(copy);
}

static void
put_rate(HybResultRow *row, bool known, uint64 plain, uint64 stored)
{
	hyb_result_put(row, FLOAT8OID, known,
				   Float8GetDatum(known ? hyb_dictionary_rate(plain, stored) : 0));
}

static void
put_dictionary(HybResultRow *row, const HybDictionary *d)
{
	bool		known = d != NULL;
	bool		encodes = known && d->hope != NULL;

	hyb_result_put_int8(row, known, encodes ? hyb_hope_entries(d->hope) : 0);
	hyb_result_put_int8(row, known, known ? d->stored_size : 0);
	hyb_result_put_int8(row, known, encodes ? hyb_hope_memory(d->hope) : 0);
	hyb_result_put(row, BOOLOID, true, BoolGetDatum(known && d->learned));
	hyb_result_put_int8(row, known, known ? d->sample_keys : 0);
	put_rate(row, known, known ? d->sample_bytes : 0, known ? d->sample_stored : 0);
}

/* hybrid_dictionary_info(index regclass) RETURNS SETOF record */
Datum
hybrid_dictionary_info(PG_FUNCTION_ARGS)
{
	HybResultRow row;
	HybInspected inspected;
	HybIndex   *ix;
	HybRecent	recent[INDEX_MAX_KEYS];

	hyb_result_begin(fcinfo, true, &row);
	hyb_inspect_open(PG_GETARG_OID(0), AccessShareLock, HYB_ACCESS_READ,
					 &inspected);
	ix = hyb_index_create_handle(inspected.index);
	if (ix->desc->has_encoded)
		sample_recent(ix, recent);
	for (int i = 0; i < ix->desc->nkeys; i++)
	{
		const HybColumn *col = &ix->desc->cols[i];

		if (!hyb_column_is_encoded(col))
			continue;
		hyb_result_put(&row, NAMEOID, true,
					   NameGetDatum(&TupleDescAttr(RelationGetDescr(ix->rel), i)->attname));
		hyb_result_put(&row, TEXTOID, true,
					   CStringGetTextDatum(hyb_encoded_scheme(col)));
		put_dictionary(&row, col->dictionary);
		hyb_result_put_int8(&row, true, recent[i].keys);
		put_rate(&row, recent[i].keys != 0, recent[i].plain, recent[i].stored);
		hyb_result_add(&row);
	}
	hyb_inspect_close(&inspected);
	return (Datum) 0;
}
