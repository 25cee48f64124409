/*
 * compat.h
 *		Every difference between supported server versions (15 to 18), and those of 19.
 *
 * On 19 the tests pass with its first release candidate.
 *
 * No other file of the project tests PG_VERSION_NUM.
 */
#ifndef HYB_COMPAT_H
#define HYB_COMPAT_H

#include "postgres.h"

#if PG_VERSION_NUM < 150000
#error "hybridindex needs PostgreSQL 15 or later"
#endif

/* ---- server 16 ---- */

/*
 * Names of relation files.  HYB_NEXT_UPGRADE_FILENUMBER is the one that pg_upgrade
 * has chosen; needs catalog/binary_upgrade.h.
 *
 * HYB_INIT_BUFFER_TAG needs storage/buf_internals.h.  tuplesort_getdatum got a copy
 * argument; before, it always copies.
 *
 * HYB_ATTRMAP_BY_NAME and HYB_ROOT_TO_PARTITION: columns of partitions; need
 * access/attmap.h and executor/executor.h.
 *
 * HYB_HAVE_SUMMARIZING: updates of columns that only such indexes have may be HOT.
 * HYB_IS_SUMMARIZING needs access/amapi.h and utils/rel.h.
 */
#if PG_VERSION_NUM >= 160000
#include "storage/relfilelocator.h"
#include "varatt.h"
typedef RelFileNumber HybFileNumber;
#define HYB_HAVE_SUMMARIZING
#define HYB_IS_SUMMARIZING(index) ((index)->rd_indam->amsummarizing)
#define HYB_RELATION_FILENUMBER(rel) ((rel)->rd_locator.relNumber)
#define HYB_RELATION_SPACE(rel) ((rel)->rd_locator.spcOid)
#define HYB_RELATION_DB(rel) ((rel)->rd_locator.dbOid)
#define HYB_REL_LOCATOR(rel) ((rel)->rd_locator)
#define HYB_RELATION_NEW_SUBID(rel) ((rel)->rd_newRelfilelocatorSubid)
#define HYB_NEXT_UPGRADE_FILENUMBER \
	binary_upgrade_next_index_pg_class_relfilenumber
#define HYB_INIT_BUFFER_TAG(tag, locator, fork, block) \
	InitBufferTag((tag), (locator), (fork), (block))
#define HYB_OWNS_SCHEMA(schema, role) \
	object_ownercheck(NamespaceRelationId, (schema), (role))
#define HYB_TUPLESORT_GETDATUM(state, val, isnull) \
	tuplesort_getdatum((state), true, false, (val), (isnull), NULL)
#define HYB_ATTRMAP_BY_NAME(to, from) build_attrmap_by_name((to), (from), false)
#define HYB_ROOT_TO_PARTITION(result, estate) \
	ExecGetRootToChildMap((result), (estate))
#else
#include "storage/relfilenode.h"
typedef Oid HybFileNumber;
#define HYB_IS_SUMMARIZING(index) false
#define HYB_RELATION_FILENUMBER(rel) ((rel)->rd_node.relNode)
#define HYB_RELATION_SPACE(rel) ((rel)->rd_node.spcNode)
#define HYB_RELATION_DB(rel) ((rel)->rd_node.dbNode)
#define HYB_REL_LOCATOR(rel) ((rel)->rd_node)
#define HYB_RELATION_NEW_SUBID(rel) ((rel)->rd_newRelfilenodeSubid)
#define HYB_NEXT_UPGRADE_FILENUMBER \
	binary_upgrade_next_index_pg_class_relfilenode
#define HYB_INIT_BUFFER_TAG(tag, locator, fork, block) \
	INIT_BUFFERTAG(*(tag), *(locator), (fork), (block))
#define HYB_OWNS_SCHEMA(schema, role) pg_namespace_ownercheck((schema), (role))
#define HYB_TUPLESORT_GETDATUM(state, val, isnull) \
	tuplesort_getdatum((state), true, (val), (isnull), NULL)
#define HYB_ATTRMAP_BY_NAME(to, from) build_attrmap_by_name((to), (from))
#define HYB_ROOT_TO_PARTITION(result, estate) ((result)->ri_RootToPartitionMap)

/* without a flag for NULL; needs utils/syscache.h */
#define SysCacheGetAttrNotNull(cache, tuple, attribute) \
	SysCacheGetAttr((cache), (tuple), (attribute), &(bool) {false})

/* Functions that the server calls by name are exported, although others are hidden. */
#include "fmgr.h"
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#undef PG_FUNCTION_INFO_V1
#define PG_FUNCTION_INFO_V1(name) \
extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
extern PGDLLEXPORT const Pg_finfo_record *CppConcat(pg_finfo_, name)(void); \
const Pg_finfo_record * \
CppConcat(pg_finfo_, name)(void) \
{ \
	static const Pg_finfo_record info = {1}; \
\
	return &info; \
} \
extern int	no_such_variable
#endif

/* ---- server 17 ---- */

/*
 * HYB_MAY_MAINTAIN: a privilege on tables.  HYB_RESTRICT_SEARCH_PATH: that of
 * maintenance commands; needs utils/guc.h.  HYB_MAY_REFRESH: the check before REFRESH
 * MATERIALIZED VIEW; needs commands/tablecmds.h.
 *
 * HYB_ARRAY_LENGTH needs utils/selfuncs.h, HYB_INDEX_CREATE catalog/index.h, and
 * HYB_WAIT_EVENT utils/wait_event.h: extensions name their wait events.
 *
 * old_snapshot_threshold is gone; before, it needs utils/snapmgr.h.  A generated
 * column's expression can be changed.  HYB_LOCAL_XID needs storage/proc.h.
 *
 * HYB_BUILD_WORKERS: workers for CREATE INDEX.  Before, the server plans them for
 * btree only; it does not for TRUNCATE, where the table is empty.  Needs
 * optimizer/optimizer.h, storage/bufmgr.h and miscadmin.h.
 */
#if PG_VERSION_NUM >= 170000
#define HYB_SUBTRANSACTIONS_ALLOWED() true	/* internal ones; needs
											 * access/xact.h */
#define HYB_HAVE_INSERT_CLEANUP /* the server calls aminsertcleanup */
#define HYB_HAVE_TRANSACTION_TIMEOUT
#define HYB_HAVE_PARALLEL_BUILD
#define HYB_HAVE_READ_STREAM	/* needs storage/read_stream.h */
#define HYB_MAY_MAINTAIN(relid, role) \
	(pg_class_aclcheck((relid), (role), ACL_MAINTAIN) == ACLCHECK_OK)
#define HYB_MAY_REFRESH RangeVarCallbackMaintainsTable
#define HYB_RESTRICT_SEARCH_PATH() RestrictSearchPath()
#define HYB_ARRAY_LENGTH(root, node) estimate_array_length((root), (node))
#define HYB_LOCAL_XID (MyProc->vxid.lxid)
#define HYB_SNAPSHOTS_EXPIRE() false
#define HYB_TEST_FOR_OLD_SNAPSHOT(snapshot, rel, page) ((void) 0)
#define HYB_CHANGES_COLUMN(type) \
	((type) == AT_AlterColumnType || (type) == AT_SetExpression)
#define HYB_WAIT_EVENT(name) WaitEventExtensionNew(name)
#define HYB_BUILD_WORKERS(heap, index, info) ((info)->ii_ParallelWorkers)
#define HYB_INDEX_CREATE(table, name, info, columns, am, space, collations, classes, class_options, order, targets, options, flags) \
	index_create((table), (name), InvalidOid, InvalidOid, InvalidOid, \
				 InvalidOid, (info), (columns), (am), (space), (collations), \
				 (classes), (class_options), (order), (targets), (options), \
				 (flags), 0, true, false, NULL)
#else
#define HYB_SUBTRANSACTIONS_ALLOWED() (!IsInParallelMode())
#define HYB_MAY_MAINTAIN(relid, role) false
#define HYB_MAY_REFRESH RangeVarCallbackOwnsTable
#define HYB_RESTRICT_SEARCH_PATH() \
	((void) set_config_option("search_path", "pg_catalog, pg_temp", \
							  PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, \
							  true, 0, false))
#define HYB_ARRAY_LENGTH(root, node) ((double) estimate_array_length(node))
#define HYB_LOCAL_XID (MyProc->lxid)
#define HYB_SNAPSHOTS_EXPIRE() OldSnapshotThresholdActive()
#define HYB_TEST_FOR_OLD_SNAPSHOT(snapshot, rel, page) \
	TestForOldSnapshot((snapshot), (rel), (page))
#define HYB_CHANGES_COLUMN(type) ((type) == AT_AlterColumnType)
#define HYB_WAIT_EVENT(name) PG_WAIT_EXTENSION
#define HYB_BUILD_WORKERS(heap, index, info) \
	(IsNormalProcessingMode() && RelationGetNumberOfBlocks(heap) > 0 ? \
	 plan_create_index_workers(RelationGetRelid(heap), RelationGetRelid(index)) : 0)
#define HYB_INDEX_CREATE(table, name, info, columns, am, space, collations, classes, class_options, order, targets, options, flags) \
	((info)->ii_OpclassOptions = (class_options), (void) (targets), \
	 index_create((table), (name), InvalidOid, InvalidOid, InvalidOid, \
				  InvalidOid, (info), (columns), (am), (space), (collations), \
				  (classes), (order), (options), (flags), 0, true, false, NULL))
#endif

/* ---- server 18 ---- */

/*
 * HYB_MODULE_MAGIC: what the server asks of a library, which pg_get_loaded_modules()
 * tells from 18 on; needs fmgr.h.
 *
 * HYB_COLLATE_IS_C: the collation compares as memcmp does; needs utils/pg_locale.h.
 * HYB_PARALLEL_TARGET: what a parallel scan's processes share; needs
 * access/relscan.h.  PRIMARY KEY (..., x WITHOUT OVERLAPS) is an exclusion constraint.
 *
 * HYB_BEFORE_18: speculative insertion, scan keys of row comparisons, foreign keys,
 * unique indexes of partitioned tables and REFRESH MATERIALIZED VIEW CONCURRENTLY want
 * btree.
 */
#if PG_VERSION_NUM >= 180000
#define HYB_BEFORE_18 0
#define HYB_HAVE_EXPLAIN_HOOK
#define HYB_MODULE_MAGIC(library, release) \
	PG_MODULE_MAGIC_EXT(.name = (library), .version = (release))
#define HYB_HAVE_COMPARE_TYPES	/* the access method translates strategies */
#define HYB_NORETURN pg_noreturn	/* before a declaration */
#define HYB_VACUUM_DELAY_POINT() vacuum_delay_point(false)
#define HYB_COLLATE_IS_C(collid) \
	(OidIsValid(collid) && pg_newlocale_from_collation(collid)->collate_is_c)
/* EXPLAIN (ANALYZE) counts index searches */
#define HYB_COUNT_SEARCH(scan) \
	do { \
		if ((scan)->instrument != NULL) \
			(scan)->instrument->nsearches++; \
	} while (0)
#define HYB_PARALLEL_TARGET(scan) \
	((void *) ((char *) (scan)->parallel_scan + (scan)->parallel_scan->ps_offset_am))
#define HYB_ESTIMATE_PARALLEL_SCAN(name) \
	name(Relation index, int nkeys, int norderbys)
#define HYB_WITHOUT_OVERLAPS(constraint) ((constraint)->without_overlaps)
#define HYB_READ_STREAM_FLAGS \
	(READ_STREAM_MAINTENANCE | READ_STREAM_FULL | READ_STREAM_USE_BATCHING)
#else
#define HYB_BEFORE_18 1
#define HYB_MODULE_MAGIC(library, release) PG_MODULE_MAGIC
#define HYB_NORETURN __attribute__((noreturn))
#define HYB_VACUUM_DELAY_POINT() vacuum_delay_point()
#define HYB_COLLATE_IS_C(collid) \
	(OidIsValid(collid) && lc_collate_is_c(collid))
#define HYB_COUNT_SEARCH(scan) ((void) 0)
#define HYB_PARALLEL_TARGET(scan) \
	((void *) ((char *) (scan)->parallel_scan + (scan)->parallel_scan->ps_offset))
#define HYB_WITHOUT_OVERLAPS(constraint) false
#define HYB_READ_STREAM_FLAGS (READ_STREAM_MAINTENANCE | READ_STREAM_FULL)

/* a setting that no header declares */
extern PGDLLIMPORT bool ignore_checksum_failure;
#endif

/* ---- server 19 ---- */

/*
 * HYB_RETURN_ROUTINE: the server keeps the handler's result for good; before, it frees
 * the result.  HYB_NEW_TRANCHE: the server keeps the name of a tranche of locks; before,
 * each process registers it by HYB_NAME_TRANCHE.  Need storage/lwlock.h.
 *
 * HYB_BEGIN_HINTS: under a share lock of the buffer, may this process change hint bits
 * now?  If it may, HYB_FINISH_HINTS ends that; needs storage/bufmgr.h.
 *
 * HYB_IS_LOCKED, HYB_IS_LOCKED_EXCLUSIVE: does this process hold the lock of a buffer
 * that is not local?  Before 19 they need storage/buf_internals.h.
 *
 * HYB_RELATION_HOOK: a relation's description is complete; needs optimizer/pathnode.h
 * and optimizer/plancat.h.  HYB_PLANNER_MORE: a further argument of the planner.
 *
 * HYB_SIGNAL_PASSED: the arguments of a signal handler.
 *
 * HYB_INDEX_BUILD, HYB_INDEX_FETCH_BEGIN, HYB_BEGINSCAN_PARALLEL: functions that have
 * one argument more now.
 *
 * Conversions of dates and timestamps report an overflow as an error, softly; need
 * utils/date.h and utils/timestamp.h.  The result is infinite then.
 */
#if PG_VERSION_NUM >= 190000
#include "nodes/miscnodes.h"
#define HYB_RETURN_ROUTINE(routine) PG_RETURN_POINTER(&(routine))
#define HYB_NEW_TRANCHE(name) LWLockNewTrancheId(name)
#define HYB_NAME_TRANCHE(tranche, name) ((void) 0)
#define HYB_BEGIN_HINTS(buf) BufferBeginSetHintBits(buf)
#define HYB_FINISH_HINTS(buf, changed) BufferFinishSetHintBits((buf), (changed), true)
#define HYB_IS_LOCKED(buf) BufferIsLockedByMe(buf)
#define HYB_IS_LOCKED_EXCLUSIVE(buf) BufferIsLockedByMeInMode((buf), BUFFER_LOCK_EXCLUSIVE)
#define HYB_INDEX_BUILD(heap, index, info, reindex) \
	index_build((heap), (index), (info), (reindex), true, true)
#define HYB_INDEX_FETCH_BEGIN(heap) table_index_fetch_begin((heap), SO_NONE)
#define HYB_BEGINSCAN_PARALLEL(heap, scan) \
	table_beginscan_parallel((heap), (scan), SO_NONE)
#define HYB_SIGNAL_PASSED postgres_signal_arg, pg_siginfo
#define HYB_PLANNER_MORE_PARAMS , struct ExplainState *explain
#define HYB_PLANNER_MORE , explain
#define HYB_RELATION_HOOK build_simple_rel_hook
#define HYB_RELATION_HOOK_TYPE build_simple_rel_hook_type
#define HYB_RELATION_HOOK_PARAMS PlannerInfo *root, RelOptInfo *rel, RangeTblEntry *rte
#define HYB_RELATION_HOOK_PASSED root, rel, rte
#define HYB_SOFTLY ((Node *) &(ErrorSaveContext) {.type = T_ErrorSaveContext})
#define timestamp2timestamptz_opt_overflow(ts, overflow) \
	hyb_note_overflow(timestamp2timestamptz_safe((ts), HYB_SOFTLY), \
					  !TIMESTAMP_NOT_FINITE(ts), (overflow))
#define date2timestamp_opt_overflow(date, overflow) \
	hyb_note_overflow(date2timestamp_safe((date), HYB_SOFTLY), \
					  !DATE_NOT_FINITE(date), (overflow))
#define date2timestamptz_opt_overflow(date, overflow) \
	hyb_note_overflow(date2timestamptz_safe((date), HYB_SOFTLY), \
					  !DATE_NOT_FINITE(date), (overflow))

/* *overflow: 1 or -1 if a finite value became infinite, else 0 */
static inline int64
hyb_note_overflow(int64 result, bool finite, int *overflow)
{
	*overflow = !finite ? 0 :
		result == PG_INT64_MAX ? 1 :
		result == PG_INT64_MIN ? -1 : 0;
	return result;
}
#else
#define HYB_RETURN_ROUTINE(routine) \
	PG_RETURN_POINTER(memcpy(palloc(sizeof(routine)), &(routine), sizeof(routine)))
#define HYB_NEW_TRANCHE(name) LWLockNewTrancheId()
#define HYB_NAME_TRANCHE(tranche, name) LWLockRegisterTranche((tranche), (name))
#define HYB_BEGIN_HINTS(buf) true
#define HYB_FINISH_HINTS(buf, changed) \
	((changed) ? MarkBufferDirtyHint((buf), true) : (void) 0)
#define HYB_CONTENT_LOCK(buf) BufferDescriptorGetContentLock(GetBufferDescriptor((buf) - 1))
#define HYB_IS_LOCKED(buf) LWLockHeldByMe(HYB_CONTENT_LOCK(buf))
#define HYB_IS_LOCKED_EXCLUSIVE(buf) LWLockHeldByMeInMode(HYB_CONTENT_LOCK(buf), LW_EXCLUSIVE)
#define HYB_INDEX_BUILD(heap, index, info, reindex) \
	index_build((heap), (index), (info), (reindex), true)
#define HYB_INDEX_FETCH_BEGIN(heap) table_index_fetch_begin(heap)
#define HYB_BEGINSCAN_PARALLEL(heap, scan) table_beginscan_parallel((heap), (scan))
#define HYB_SIGNAL_PASSED postgres_signal_arg
#define HYB_PLANNER_MORE_PARAMS
#define HYB_PLANNER_MORE
#define HYB_RELATION_HOOK get_relation_info_hook
#define HYB_RELATION_HOOK_TYPE get_relation_info_hook_type
#define HYB_RELATION_HOOK_PARAMS \
	PlannerInfo *root, Oid relid, bool inhparent, RelOptInfo *rel
#define HYB_RELATION_HOOK_PASSED root, relid, inhparent, rel
#define pg_fallthrough __attribute__((fallthrough))
#endif

/* ---- one of three ---- */

/*
 * What a table says of VACUUM and the end of files, from 18 on a setting too; needs
 * commands/vacuum.h and utils/rel.h.
 */
#if PG_VERSION_NUM >= 190000
#define HYB_VACUUM_TRUNCATES(rel) \
	((rel)->rd_options != NULL && \
	 ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate != PG_TERNARY_UNSET ? \
	 ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate == PG_TERNARY_TRUE : \
	 vacuum_truncate)
#elif PG_VERSION_NUM >= 180000
#define HYB_VACUUM_TRUNCATES(rel) \
	((rel)->rd_options != NULL && ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate_set ? \
	 ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate : vacuum_truncate)
#else
#define HYB_VACUUM_TRUNCATES(rel) \
	((rel)->rd_options == NULL || ((StdRdOptions *) (rel)->rd_options)->vacuum_truncate)
#endif

/* the last arguments of makeIndexInfo; needs nodes/makefuncs.h */
#if PG_VERSION_NUM >= 180000
#define HYB_INDEX_INFO_END , false, false
#elif PG_VERSION_NUM >= 160000
#define HYB_INDEX_INFO_END , false
#else
#define HYB_INDEX_INFO_END
#endif

#if PG_VERSION_NUM < 170000
#define HYB_ESTIMATE_PARALLEL_SCAN(name) name(void)
#elif PG_VERSION_NUM < 180000
#define HYB_ESTIMATE_PARALLEL_SCAN(name) name(int nkeys, int norderbys)
#endif

/* logical replication's apply knows only btree and hash in 17 */
#if PG_VERSION_NUM >= 170000 && PG_VERSION_NUM < 180000
#define HYB_NO_REPLICA_IDENTITY
#define HYB_SUBSCRIBER_NEEDS_BTREE true
#else
#define HYB_SUBSCRIBER_NEEDS_BTREE false
#endif

/* early minor releases lack the flag */
#include "utils/guc.h"
#ifdef GUC_ALLOW_IN_PARALLEL
#define HYB_GUC_ALLOW_IN_PARALLEL GUC_ALLOW_IN_PARALLEL
#else
#define HYB_GUC_ALLOW_IN_PARALLEL 0
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

#endif							/* HYB_COMPAT_H */
