/*
 * compat.h
 *		Every difference between supported server versions (15 to 18).
 *
 * No other file of the project tests PG_VERSION_NUM.
 */
#ifndef HYB_COMPAT_H
#define HYB_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "hybridindex needs PostgreSQL 15 or later"
#endif

#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
#include "varatt.h"
typedef RelFileNumber HybFileNumber;
#define HYB_RELATION_FILENUMBER(rel) ((rel)->rd_locator.relNumber)
#define HYB_RELATION_SPACE(rel) ((rel)->rd_locator.spcOid)
#define HYB_RELATION_DB(rel) ((rel)->rd_locator.dbOid)
#define HYB_REL_LOCATOR(rel) ((rel)->rd_locator)
#define HYB_RELATION_NEW_SUBID(rel) ((rel)->rd_newRelfilelocatorSubid)
#else
#include "storage/relfilenode.h"
typedef Oid HybFileNumber;
#define HYB_RELATION_FILENUMBER(rel) ((rel)->rd_node.relNode)
#define HYB_RELATION_SPACE(rel) ((rel)->rd_node.spcNode)
#define HYB_RELATION_DB(rel) ((rel)->rd_node.dbNode)
#define HYB_REL_LOCATOR(rel) ((rel)->rd_node)
#define HYB_RELATION_NEW_SUBID(rel) ((rel)->rd_newRelfilenodeSubid)
#endif

/* the file number that pg_upgrade has chosen; needs catalog/binary_upgrade.h */
#if PG_VERSION_NUM >= 160000
#define HYB_NEXT_UPGRADE_FILENUMBER \
	binary_upgrade_next_index_pg_class_relfilenumber
#else
#define HYB_NEXT_UPGRADE_FILENUMBER \
	binary_upgrade_next_index_pg_class_relfilenode
#endif

/* needs storage/buf_internals.h */
#if PG_VERSION_NUM >= 160000
#define HYB_INIT_BUFFER_TAG(tag, locator, fork, block) \
	InitBufferTag((tag), (locator), (fork), (block))
#else
#define HYB_INIT_BUFFER_TAG(tag, locator, fork, block) \
	INIT_BUFFERTAG(*(tag), *(locator), (fork), (block))
#endif

/* before a declaration: the function does not return */
#if PG_VERSION_NUM >= 180000
#define HYB_NORETURN pg_noreturn
#else
#define HYB_NORETURN __attribute__((noreturn))
#endif

/* vacuum_delay_point got an argument in 18 */
#if PG_VERSION_NUM >= 180000
#define HYB_VACUUM_DELAY_POINT() vacuum_delay_point(false)
#else
#define HYB_VACUUM_DELAY_POINT() vacuum_delay_point()
#endif

/* What a table says of VACUUM and the end of files; a setting too, since 18.
 * Needs commands/vacuum.h and utils/rel.h. */
#if PG_VERSION_NUM >= 180000
#define HYB_VACUUM_TRUNCATES(rel) \
	((rel)->rd_options != NULL && ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate_set ? \
	 ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate : vacuum_truncate)
#else
#define HYB_VACUUM_TRUNCATES(rel) \
	((rel)->rd_options == NULL || ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate)
#endif

/* What pg_class says of an index's size.  Needs access/transam.h,
 * access/multixact.h and commands/vacuum.h. */
#if PG_VERSION_NUM >= 180000
#define HYB_UPDATE_RELSTATS(index, pages, tuples) \
	vac_update_relstats((index), (pages), (tuples), 0, 0, false, \
						InvalidTransactionId, InvalidMultiXactId, NULL, NULL, false)
#else
#define HYB_UPDATE_RELSTATS(index, pages, tuples) \
	vac_update_relstats((index), (pages), (tuples), 0, false, \
						InvalidTransactionId, InvalidMultiXactId, NULL, NULL, false)
#endif

/*
 * who owns a schema; who may maintain a table (a privilege since 17); the
 * search path of maintenance commands since 17 (needs utils/guc.h)
 */
#if PG_VERSION_NUM >= 160000
#define HYB_OWNS_SCHEMA(schema, role) \
	object_ownercheck(NamespaceRelationId, (schema), (role))
#else
#define HYB_OWNS_SCHEMA(schema, role) pg_namespace_ownercheck((schema), (role))
#endif
#if PG_VERSION_NUM >= 170000
#define HYB_MAY_MAINTAIN(relid, role) \
	(pg_class_aclcheck((relid), (role), ACL_MAINTAIN) == ACLCHECK_OK)
#define HYB_RESTRICT_SEARCH_PATH() RestrictSearchPath()
#else
#define HYB_MAY_MAINTAIN(relid, role) false
#define HYB_RESTRICT_SEARCH_PATH() \
	((void) set_config_option("search_path", "pg_catalog, pg_temp", \
							  PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, \
							  true, 0, false))
#endif

/* Does the collation compare as memcmp does?  Needs utils/pg_locale.h. */
#if PG_VERSION_NUM >= 180000
#define HYB_COLLATE_IS_C(collid) \
	(OidIsValid(collid) && pg_newlocale_from_collation(collid)->collate_is_c)
#else
#define HYB_COLLATE_IS_C(collid) \
	(OidIsValid(collid) && lc_collate_is_c(collid))
#endif

/* EXPLAIN (ANALYZE) counts index searches since 18 */
#if PG_VERSION_NUM >= 180000
#define HYB_COUNT_SEARCH(scan) \
	do { \
		if ((scan)->instrument != NULL) \
			(scan)->instrument->nsearches++; \
	} while (0)
#else
#define HYB_COUNT_SEARCH(scan) ((void) 0)
#endif

/* What a parallel scan's processes share; needs access/relscan.h. */
#if PG_VERSION_NUM >= 180000
#define HYB_PARALLEL_TARGET(scan) \
	((void *) ((char *) (scan)->parallel_scan + (scan)->parallel_scan->ps_offset_am))
#define HYB_ESTIMATE_PARALLEL_SCAN(name) \
	name(Relation index, int nkeys, int norderbys)
#else
#define HYB_PARALLEL_TARGET(scan) \
	((void *) ((char *) (scan)->parallel_scan + (scan)->parallel_scan->ps_offset))
#if PG_VERSION_NUM >= 170000
#define HYB_ESTIMATE_PARALLEL_SCAN(name) name(int nkeys, int norderbys)
#else
#define HYB_ESTIMATE_PARALLEL_SCAN(name) name(void)
#endif
#endif

/* EXPLAIN has hooks since 18 */
#if PG_VERSION_NUM >= 180000
#define HYB_HAVE_EXPLAIN_HOOK
#endif

/* estimate_array_length got an argument in 17; needs utils/selfuncs.h */
#if PG_VERSION_NUM >= 170000
#define HYB_ARRAY_LENGTH(root, node) estimate_array_length((root), (node))
#else
#define HYB_ARRAY_LENGTH(root, node) ((double) estimate_array_length(node))
#endif

/* tuplesort_getdatum got a copy argument in 16; before, it always copies */
#if PG_VERSION_NUM >= 160000
#define HYB_TUPLESORT_GETDATUM(state, val, isnull) \
	tuplesort_getdatum((state), true, false, (val), (isnull), NULL)
#else
#define HYB_TUPLESORT_GETDATUM(state, val, isnull) \
	tuplesort_getdatum((state), true, (val), (isnull), NULL)
#endif

/* the server calls aminsertcleanup after insertions, since 17 */
#if PG_VERSION_NUM >= 170000
#define HYB_HAVE_INSERT_CLEANUP
#endif

/* strategies and comparison types are translated by the AM since 18 */
#if PG_VERSION_NUM >= 180000
#define HYB_HAVE_COMPARE_TYPES
#endif

/* early minor releases lack the flag */
#include "utils/guc.h"
#ifdef GUC_ALLOW_IN_PARALLEL
#define HYB_GUC_ALLOW_IN_PARALLEL GUC_ALLOW_IN_PARALLEL
#else
#define HYB_GUC_ALLOW_IN_PARALLEL 0
#endif

/* old_snapshot_threshold, gone in 17; needs utils/snapmgr.h */
#if PG_VERSION_NUM < 170000
#define HYB_SNAPSHOTS_EXPIRE() OldSnapshotThresholdActive()
#define HYB_TEST_FOR_OLD_SNAPSHOT(snapshot, rel, page) \
	TestForOldSnapshot((snapshot), (rel), (page))
#else
#define HYB_SNAPSHOTS_EXPIRE() false
#define HYB_TEST_FOR_OLD_SNAPSHOT(snapshot, rel, page) ((void) 0)
#endif

/* an index's definition, and the index; needs catalog/index.h, nodes/makefuncs.h */
#if PG_VERSION_NUM >= 180000
#define HYB_MAKE_INDEX_INFO(natts, nkeys, am, exprs, pred, unique, nulls_not_distinct, ready, concurrent) \
	makeIndexInfo((natts), (nkeys), (am), (exprs), (pred), (unique), \
				  (nulls_not_distinct), (ready), (concurrent), false, false)
#elif PG_VERSION_NUM >= 160000
#define HYB_MAKE_INDEX_INFO(natts, nkeys, am, exprs, pred, unique, nulls_not_distinct, ready, concurrent) \
	makeIndexInfo((natts), (nkeys), (am), (exprs), (pred), (unique), \
				  (nulls_not_distinct), (ready), (concurrent), false)
#else
#define HYB_MAKE_INDEX_INFO(natts, nkeys, am, exprs, pred, unique, nulls_not_distinct, ready, concurrent) \
	makeIndexInfo((natts), (nkeys), (am), (exprs), (pred), (unique), \
				  (nulls_not_distinct), (ready), (concurrent))
#endif
#if PG_VERSION_NUM >= 170000
#define HYB_INDEX_CREATE(table, name, info, columns, am, space, collations, classes, class_options, order, targets, options, flags) \
	index_create((table), (name), InvalidOid, InvalidOid, InvalidOid, \
				 InvalidOid, (info), (columns), (am), (space), (collations), \
				 (classes), (class_options), (order), (targets), (options), \
				 (flags), 0, true, false, NULL)
#else
#define HYB_INDEX_CREATE(table, name, info, columns, am, space, collations, classes, class_options, order, targets, options, flags) \
	((info)->ii_OpclassOptions = (class_options), (void) (targets), \
	 index_create((table), (name), InvalidOid, InvalidOid, InvalidOid, \
				  InvalidOid, (info), (columns), (am), (space), (collations), \
				  (classes), (order), (options), (flags), 0, true, false, NULL))
#endif

/* SysCacheGetAttr without a flag for NULL, since 16; needs utils/syscache.h */
#if PG_VERSION_NUM < 160000
#define SysCacheGetAttrNotNull(cache, tuple, attribute) \
	SysCacheGetAttr((cache), (tuple), (attribute), &(bool) {false})
#endif

/* the executor's speculative insertion knows only btree unique indexes */
#if PG_VERSION_NUM < 180000
#define HYB_ON_CONFLICT_NEEDS_BTREE
#endif

/* a setting that no header declares before 18 */
#if PG_VERSION_NUM < 180000
extern PGDLLIMPORT bool ignore_checksum_failure;
#endif

/* columns of partitions; needs access/attmap.h, executor/executor.h */
#if PG_VERSION_NUM >= 160000
#define HYB_ATTRMAP_BY_NAME(to, from) build_attrmap_by_name((to), (from), false)
#define HYB_ROOT_TO_PARTITION(result, estate) \
	ExecGetRootToChildMap((result), (estate))
#else
#define HYB_ATTRMAP_BY_NAME(to, from) build_attrmap_by_name((to), (from))
#define HYB_ROOT_TO_PARTITION(result, estate) ((result)->ri_RootToPartitionMap)
#endif

/* the executor makes scan keys of row comparisons for btree only */
#if PG_VERSION_NUM < 180000
#define HYB_ROW_COMPARE_NEEDS_BTREE
#endif

/*
 * Foreign keys, unique indexes of partitioned tables and REFRESH MATERIALIZED
 * VIEW CONCURRENTLY want btree.
 */
#if PG_VERSION_NUM < 180000
#define HYB_BEFORE_18 true
#else
#define HYB_BEFORE_18 false
#endif

/* an index of ALTER TABLE; needs commands/defrem.h */
#if PG_VERSION_NUM >= 160000
#define HYB_DEFINE_INDEX(table, stmt) \
	DefineIndex((table), (stmt), InvalidOid, InvalidOid, InvalidOid, -1, \
				true, false, false, false, true)
#else
#define HYB_DEFINE_INDEX(table, stmt) \
	DefineIndex((table), (stmt), InvalidOid, InvalidOid, InvalidOid, \
				true, false, false, false, true)
#endif

/* a generated column's expression can be changed since 17 */
#if PG_VERSION_NUM >= 170000
#define HYB_CHANGES_COLUMN(type) \
	((type) == AT_AlterColumnType || (type) == AT_SetExpression)
#else
#define HYB_CHANGES_COLUMN(type) ((type) == AT_AlterColumnType)
#endif

/* PRIMARY KEY (..., x WITHOUT OVERLAPS) is an exclusion constraint (18) */
#if PG_VERSION_NUM >= 180000
#define HYB_WITHOUT_OVERLAPS(constraint) ((constraint)->without_overlaps)
#else
#define HYB_WITHOUT_OVERLAPS(constraint) false
#endif

/* the check before REFRESH MATERIALIZED VIEW; needs commands/tablecmds.h */
#if PG_VERSION_NUM >= 170000
#define HYB_MAY_REFRESH RangeVarCallbackMaintainsTable
#else
#define HYB_MAY_REFRESH RangeVarCallbackOwnsTable
#endif

/* logical replication's apply knows only btree and hash in 17 */
#if PG_VERSION_NUM >= 170000 && PG_VERSION_NUM < 180000
#define HYB_NO_REPLICA_IDENTITY
#define HYB_SUBSCRIBER_NEEDS_BTREE true
#else
#define HYB_SUBSCRIBER_NEEDS_BTREE false
#endif

/* extensions name their wait events since 17; needs utils/wait_event.h */
#if PG_VERSION_NUM >= 170000
#define HYB_WAIT_EVENT(name) WaitEventExtensionNew(name)
#else
#define HYB_WAIT_EVENT(name) PG_WAIT_EXTENSION
#endif

/* transactions time out as a whole since 17 */
#if PG_VERSION_NUM >= 170000
#define HYB_HAVE_TRANSACTION_TIMEOUT
#endif

/*
 * No LWLock is held, be it of the extension, of a buffer or of the server:
 * what can wait, look at catalogs or at the heap, or run a user's code may
 * begin.  Each LWLock holds interrupts off, on every version.  Needs
 * miscadmin.h.
 */
#define HYB_ASSERT_NO_LWLOCK() \
	Assert(InterruptHoldoffCount == 0 && CritSectionCount == 0)

/*
 * Places where tests of servers with injection points stop, kill or fail a
 * backend.  Not inside critical sections: the first use of a point may load
 * a library.
 */
#ifdef USE_INJECTION_POINTS
#include "utils/injection_point.h"
#if PG_VERSION_NUM >= 180000
#define HYB_POINT(name) INJECTION_POINT("hybrid-" name, NULL)
#define HYB_POINT_ATTACHED(name) IS_INJECTION_POINT_ATTACHED("hybrid-" name)
#else
#define HYB_POINT(name) INJECTION_POINT("hybrid-" name)
#endif
#else
#define HYB_POINT(name) ((void) 0)
#endif

/* Does a test want a limit to be met early?  Servers from 18 on can ask. */
#ifndef HYB_POINT_ATTACHED
#define HYB_POINT_ATTACHED(name) false
#endif

/*
 * Workers for CREATE INDEX.  Before 17 the server plans them for btree only;
 * it does not for TRUNCATE, where the table is empty.  Needs
 * optimizer/optimizer.h, storage/bufmgr.h and miscadmin.h.
 */
#if PG_VERSION_NUM >= 170000
#define HYB_HAVE_PARALLEL_BUILD
#define HYB_BUILD_WORKERS(heap, index, info) ((info)->ii_ParallelWorkers)
#else
#define HYB_BUILD_WORKERS(heap, index, info) \
	(IsNormalProcessingMode() && RelationGetNumberOfBlocks(heap) > 0 ? \
	 plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index)) : 0)
#endif

/*
 * Blocks read ahead by a callback, since 17; requests put together, since 18.
 * Needs storage/read_stream.h.
 */
#if PG_VERSION_NUM >= 180000
#define HYB_HAVE_READ_STREAM
#define HYB_READ_STREAM_FLAGS \
	(READ_STREAM_MAINTENANCE | READ_STREAM_FULL | READ_STREAM_USE_BATCHING)
#elif PG_VERSION_NUM >= 170000
#define HYB_HAVE_READ_STREAM
#define HYB_READ_STREAM_FLAGS (READ_STREAM_MAINTENANCE | READ_STREAM_FULL)
#endif

#endif							/* HYB_COMPAT_H */
