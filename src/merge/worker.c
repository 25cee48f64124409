/*
 * worker.c
 *		The background worker that merges indexes.
 *
 * A process that asks for a merge starts the worker, for a database.  The worker
 * takes the oldest request (shared/workers.h) and works in short transactions.
 * It releases all locks between them, so DDL never waits long for it.  It locks
 * tables and indexes without waiting, and waits for no other relation that comparison
 * functions need for longer than HYB_SHORT_WAIT_MS.  What is locked is put off.  If
 * other indexes wait for a worker, it leaves an index after a turn.  When nothing is
 * left to do, it stays for a little, since starting a process costs as much as merging
 * a small index.  It stays longer if requests wait for their time and no other worker
 * looks after them.
 *
 * A sweep is a task for a database, not for one index: the worker looks at all of
 * its indexes, and puts those on the list that have something to merge.
 *
 * A worker that has finished an index puts it on the list again, with a mark of
 * its log, to look at it after hybridindex.quiet_time.  An index that has had no
 * inserts since is merged into one level, with an empty log, if the policy says
 * that this is worth its writes.  Then its file shrinks, if much of it is free.
 *
 * DROP DATABASE and the like lock the database, and then wait five seconds for
 * its sessions to end.  So a worker looks several times a second whether the
 * database is locked like that, and ends.  Its requests stay on the list.
 */
#include "base/compat.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "base/server.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "merge/facts.h"
#include "merge/membership_make.h"
#include "merge/merge.h"
#include "merge/shrink.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "shared/index_cache.h"
#include "shared/workers.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "store/handle.h"
#include "store/meta.h"
#include "store/space.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* Longest time that one transaction of the worker merges, in ms. */
#define HYB_WORKER_SLICE_MS		100

/* How long it pauses when another process is merging, in ms. */
#define HYB_WORKER_PAUSE_MS		20

/*
 * How long it waits for a process with the merge lock of an index, in ms.  That may
 * wait for a lock of another transaction.
 */
#define HYB_WORKER_MOMENT_MS	1000

/* How long it waits for the lock of a database that it connects to, in ms. */
#define HYB_WORKER_CONNECT_MS	"1000"

/* How long it waits for more work, and between looks at the database's lock. */
#define HYB_WORKER_IDLE_MS		2000
#define HYB_WORKER_LOOK_MS		50

/*
 * How often a worker looks at an index that still has inserts, each time after
 * twice as long: five minutes altogether.
 */
#define QUIET_LOOKS		6

/*
 * How often the lock for cutting the file is asked for.  Each time takes a
 * transaction ID; the worker looks at the index again later.
 */
#define CUT_TRIES		1

/* What became of a slice of work. */
typedef enum SliceOutcome
{
	SLICE_MORE,
	SLICE_DONE,
	SLICE_BUSY,					/* another process is merging */
	SLICE_LOCKED				/* the table, the index, or what comparisons
								 * need is locked */
} SliceOutcome;

/* What a worker does with an index, in one transaction after the other. */
typedef struct IndexWork
{
	Oid			relid;
	char	   *name;			/* in TopMemoryContext; NULL: not known yet */
	HybMergeJob job;
	bool		all;			/* merge the active generation once, however
								 * small it is */
	bool		filter;			/* its membership filter is to be made */
	HybQuietMark mark;
	HybQuietWork quiet;			/* what is left to do if the index is quiet */
} IndexWork;

/*
 * What is done in a transaction, and the locks on the index and its table.
 * Waiters for locks weaker than ShareUpdateExclusiveLock cannot be seen.
 */
typedef struct Slice
{
	SliceOutcome (*work) (HybIndex *ix, Relation heap, IndexWork *work);
	LOCKMODE	table_lock;
	LOCKMODE	index_lock;
} Slice;

/* Of this worker. */
static HybWorkerRef me;
static Oid	database;
static bool connected = false;
static bool locked_out = false; /* the database was locked for too long */
static bool has_left = false;
static volatile sig_atomic_t terminated = false;
static uint32 wait_idle;
static uint32 wait_turn;

/*
 * The process is to end with this status.  Returns the status to end with.
 *
 * Processes that asked for a merge may not ask again.  So if requests wait, and
 * there is no other worker, this one starts another process.  If it cannot, it
 * ends with an error, and the server starts it again (HYB_WORKER_AGAIN_S).
 *
 * If the database cannot be connected to, because it was dropped or accepts no
 * connections, its requests go.  They would be the first in the list for ever,
 * and each worker would give its place up for them.  Those of a locked database
 * are put off, so that another database comes first.
 */
static int
leave(int status)
{
	if (has_left)
		return status;
	has_left = true;
	if (locked_out)
		hyb_workers_put_off(database);
	else if (!connected && !terminated)
		hyb_workers_forget(database);
	if (!hyb_worker_end(&me, status != 0))
		return status;
	if (hyb_max_merge_workers == 0)
		hyb_worker_not_started(&me, false);
	else if (!hyb_worker_start(&me))
	{
		hyb_worker_not_started(&me, true);
		status = 1;
	}
	return status;
}

/* before_shmem_exit callback, for errors */
static void
worker_exit(int code, Datum arg)
{
	int			status PG_USED_FOR_ASSERTS_ONLY = leave(code);

	Assert(status == code);
}

static void
terminate(SIGNAL_ARGS)
{
	terminated = true;
	die(HYB_SIGNAL_PASSED);
}

static void
reload_settings(void)
{
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

static void
pause_for(long ms, uint32 wait_event)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 ms, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
	reload_settings();
}

/*
 * Does another process hold, or wait for, a lock on the database that keeps
 * sessions from connecting?
 */
static bool
database_is_wanted(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	if (LockAcquire(&tag, RowExclusiveLock, true, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowExclusiveLock, true);
	return false;
}

/* If *arg, a bool, is set, the active generation is merged once in any case. */
static bool
merge_wanted(HybIndex *ix, void *arg)
{
	bool	   *all = arg;
	bool		wanted = *all || hyb_merge_wanted(ix);

	*all = false;
	return wanted;
}

/* Mark how many entries the active generation has. */
static void
mark_log(HybIndex *ix, HybQuietMark *mark)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	HybGeneration active = meta->active;

	UnlockReleaseBuffer(metabuf);
	mark->generation = active.number;
	mark->entries = active.nentries + hyb_merge_tail_entries(ix, &active);
}

/*
 * Steps for one time slice.  Another process that merges may want to lock the
 * index (learn.c), so the worker does not wait for it with the index locked.
 */
static SliceOutcome
merge_steps(HybIndex *ix, Relation heap, IndexWork *work)
{
	TimestampTz began = GetCurrentTimestamp();
	HybMergeOrder order = {
		.mode = HYB_MERGE_TRY,
		.wanted = merge_wanted,
		.arg = &work->all,
		.job = &work->job
	};
	HybMergeFacts facts;
	HybMergeNeed need;
	HybMergeOutcome outcome;

	do
	{
		outcome = hyb_merge_drive(ix, &order);
		if (outcome == HYB_MERGE_BUSY)
			return SLICE_BUSY;
	} while (outcome == HYB_MERGE_MORE &&
			 !TimestampDifferenceExceeds(began, GetCurrentTimestamp(),
										 HYB_WORKER_SLICE_MS));
	need = hyb_merge_need(ix, &facts);
	if (outcome == HYB_MERGE_MORE || need.finish || need.freeze)
		return SLICE_MORE;
	work->filter = hyb_membership_wanted(ix, &facts);
	work->quiet = hyb_quiet_work(ix);
	if (work->quiet != HYB_QUIET_NONE)
	{
		mark_log(ix, &work->mark);
		work->mark.looks = 0;
	}
	return SLICE_DONE;
}

/* Look at an index that had this mark some time ago. */
static SliceOutcome
look_whether_quiet(HybIndex *ix, Relation heap, IndexWork *work)
{
	HybQuietMark before = work->mark;

	work->quiet = HYB_QUIET_NONE;
	if (hyb_merge_wanted(ix))
		work->quiet = HYB_QUIET_MERGE;
	else if (hyb_quiet_time >= 0)
	{
		work->quiet = HYB_QUIET_LATER;
		mark_log(ix, &work->mark);
		if (work->mark.generation == before.generation &&
			work->mark.entries == before.entries && hyb_merge_lock(ix->rel, false))
		{
			work->quiet = hyb_quiet_work(ix);
			if (work->quiet == HYB_QUIET_MERGE)
				hyb_merge_request_quiet(ix);
			hyb_merge_unlock(ix->rel);
			if (work->quiet == HYB_QUIET_MERGE)
				HYB_POINT("quiet-asked");
		}
	}
	return SLICE_DONE;
}

/*
 * Shrinking can take some time, and gives way to other work.  VACUUM and most DDL
 * wait for the table, some for the index.
 */
static bool
nobody_waits(const HybShrink *shrink)
{
	CHECK_FOR_INTERRUPTS();
	return !LockHasWaitersRelation(shrink->heap, ShareUpdateExclusiveLock) &&
		!LockHasWaitersRelation(shrink->ix->rel, ShareUpdateExclusiveLock) &&
		!database_is_wanted() &&
		!hyb_worker_should_yield(&me, 0, hyb_max_merge_workers);
}

/* Returns whether nothing is left to do. */
static bool
shrink_quiet_file(HybIndex *ix, Relation heap)
{
	HybShrink	shrink = {
		.ix = ix,
		.rule = &hyb_quiet_rule,
		.heap = heap,
		.go_on = nobody_waits
	};

	if (!hyb_shrink_allowed(ix))
		return true;
	if (!hyb_shrink_begin(&shrink))
		return false;
	if (!hyb_shrink_move(&shrink))
		return false;
	HYB_POINT("quiet-moved");
	/* pages of the log go with the next merge, not sooner */
	return !hyb_file_end_is_free(ix) || hyb_shrink_cut(ix, CUT_TRIES);
}

static SliceOutcome
shrink_file(HybIndex *ix, Relation heap, IndexWork *work)
{
	work->quiet = shrink_quiet_file(ix, heap) ? HYB_QUIET_NONE : HYB_QUIET_LATER;
	return SLICE_DONE;
}

static SliceOutcome
make_filter(HybIndex *ix, Relation heap, IndexWork *work)
{
	return hyb_membership_make(ix, HYB_WORKER_SLICE_MS) ? SLICE_MORE : SLICE_DONE;
}

static SliceOutcome
ask_if_wanted(HybIndex *ix, Relation heap, IndexWork *work)
{
	hyb_merge_ask_if_wanted(ix);
	return SLICE_DONE;
}

static const Slice merge_slice = {merge_steps, AccessShareLock, RowExclusiveLock};
static const Slice look_slice = {look_whether_quiet, AccessShareLock, RowExclusiveLock};
static const Slice filter_slice = {make_filter, AccessShareLock, RowExclusiveLock};
static const Slice ask_slice = {ask_if_wanted, AccessShareLock, RowExclusiveLock};
static const Slice shrink_slice = {shrink_file, ShareUpdateExclusiveLock, ShareUpdateExclusiveLock};

/*
 * Make VACUUM ignore the snapshot of this transaction, as it ignores that of
 * another VACUUM, so that a long merge keeps no dead rows of other tables.
 * That is right while the worker reads only the index, and rows of the table
 * that may be gone (dead.c).  Comparisons that are not pure may read tables, and so
 * may expressions, which merges of hybrid_hot evaluate.  A merge that learns
 * dictionaries needs its snapshot, too (learn.c).
 */
static void
hold_no_rows_back(HybIndex *ix)
{
	if (ix->desc->pure != HYB_PURE || (ix->desc->chains && !ix->desc->plain))
		return;
	if (ix->desc->has_encoded && ix->dictionaries == NULL)
	{
		HybMetaPage meta;

		hyb_meta_copy(ix, &meta);
		if (hyb_merge_learnable(&meta))
			return;
	}
	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	MyProc->statusFlags |= PROC_IN_VACUUM;
	ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
	LWLockRelease(ProcArrayLock);
}

/* The work of a slice, in a transaction. */
static SliceOutcome
work_in_transaction(IndexWork *work, const Slice *slice)
{
	Relation	heap = NULL;
	Relation	index = NULL;
	Oid			heapid;
	bool		locked = false;
	SliceOutcome outcome = SLICE_DONE;

	/* table before index, as everywhere; either may be gone */
	heapid = IndexGetRelation(work->relid, true);
	heap = hyb_try_open(heapid, slice->table_lock, &locked);
	if (heap != NULL)
		index = hyb_try_open(work->relid, slice->index_lock, &locked);
	if (locked)
		outcome = SLICE_LOCKED;
	else if (index != NULL && index->rd_rel->relkind == RELKIND_INDEX &&
			 hyb_is_our_method(index->rd_rel->relam) &&
			 index->rd_index->indisready)
	{
		HybIndex   *ix = hyb_index_create_handle(index);
		HybCaller	caller;

		hold_no_rows_back(ix);
		PushActiveSnapshot(GetTransactionSnapshot());
		if (work->name == NULL)
			work->name = MemoryContextStrdup(TopMemoryContext,
											 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(index)),
																		RelationGetRelationName(index)));
		pgstat_report_activity(STATE_RUNNING,
							   psprintf("merge: hybrid index %s", work->name));

		hyb_become_owner(&caller, heap->rd_rel->relowner);
		outcome = slice->work(ix, heap, work);
		hyb_become_caller(&caller);
		PopActiveSnapshot();
	}

	if (index != NULL)
		relation_close(index, slice->index_lock);
	if (heap != NULL)
		relation_close(heap, slice->table_lock);
	return outcome;
}

/* Work in one transaction. */
static SliceOutcome
do_slice(IndexWork *work, const Slice *slice)
{
	MemoryContext context = CurrentMemoryContext;
	volatile SliceOutcome outcome = SLICE_LOCKED;

	SetCurrentStatementStartTimestamp();
	LockTimeout = HYB_SHORT_WAIT_MS;
	PG_TRY();
	{
		StartTransactionCommand();
		outcome = work_in_transaction(work, slice);
		CommitTransactionCommand();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		LockTimeout = 0;
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		FlushErrorState();
		FreeErrorData(error);
		AbortOutOfAnyTransaction();
	}
	PG_END_TRY();
	LockTimeout = 0;
	pgstat_report_activity(STATE_IDLE, NULL);
	return outcome;
}

static void
log_merge(const IndexWork *work, TimestampTz began)
{
	const HybMergeJob *job = &work->job;
	TimestampTz now = GetCurrentTimestamp();

	if (work->name == NULL || hyb_log_merge_ms < 0 || job->steps == 0 ||
		!TimestampDifferenceExceeds(began, now, hyb_log_merge_ms))
		return;
	StartTransactionCommand();
	ereport(LOG,
			(errmsg("merge of hybrid index \"%s.%s\": " UINT64_FORMAT " entries moved in " UINT64_FORMAT " steps, elapsed: %ld ms",
					get_database_name(MyDatabaseId), work->name, job->moved, job->steps,
					TimestampDifferenceMilliseconds(began, now))));
	CommitTransactionCommand();
}

/* Merge an index until nothing is left to do, or the turn is over. */
static SliceOutcome
merge_index(IndexWork *work)
{
	TimestampTz began = GetCurrentTimestamp();
	SliceOutcome outcome;

	/* its log may have to be read again and again */
	work->all = hyb_slots_scarce();
	hyb_merge_job_begin(&work->job);
	for (;;)
	{
		outcome = do_slice(work, &merge_slice);
		if (outcome == SLICE_DONE && work->filter)
			outcome = do_slice(work, &filter_slice);
		else
			work->filter = false;
		if (outcome == SLICE_DONE || outcome == SLICE_LOCKED ||
			database_is_wanted())
			break;
		if (outcome == SLICE_BUSY || work->filter)
			pause_for(HYB_WORKER_PAUSE_MS, wait_turn);
		reload_settings();
		if (hyb_worker_should_yield(&me, HYB_TURN_MS,
									hyb_max_merge_workers))
			break;
	}
	hyb_merge_job_end(&work->job);
	log_merge(work, began);
	return outcome;
}

/*
 * Look at an index that may be quiet, and shrink its file.  Sets *again_ms if it
 * is to be looked at again.
 */
static SliceOutcome
look_at_quiet(IndexWork *work, int64 *again_ms)
{
	SliceOutcome outcome = do_slice(work, &look_slice);

	if (work->quiet == HYB_QUIET_SHRINK)
		outcome = do_slice(work, &shrink_slice);
	if (work->quiet == HYB_QUIET_LATER && hyb_quiet_time >= 0 &&
		++work->mark.looks < QUIET_LOOKS)
		*again_ms = (int64) hyb_quiet_time << work->mark.looks;
	return outcome;
}

/* Goes on to the hybrid index with the next higher OID; false if that was the last. */
static bool
next_index(HybSlotIndex *index)
{
	bool		found = false;
	Relation	classes;
	Relation	oids;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	StartTransactionCommand();
	classes = table_open(RelationRelationId, AccessShareLock);
	oids = index_open(ClassOidIndexId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_class_oid, BTGreaterStrategyNumber, F_OIDGT,
				ObjectIdGetDatum(index->relid));
	scan = systable_beginscan_ordered(classes, oids, NULL, 1, &key);
	while (!found &&
		   HeapTupleIsValid(tuple = systable_getnext_ordered(scan, ForwardScanDirection)))
	{
		Form_pg_class class = (Form_pg_class) GETSTRUCT(tuple);

		found = class->relkind == RELKIND_INDEX && hyb_is_our_method(class->relam) &&
			class->relpersistence != RELPERSISTENCE_TEMP;
		index->relid = class->oid;
		index->owner = class->relowner;
	}
	systable_endscan_ordered(scan);
	index_close(oids, AccessShareLock);
	table_close(classes, AccessShareLock);
	CommitTransactionCommand();
	return found;
}

/*
 * Have all indexes of the database merged that are to be.  One that is locked is
 * left to a worker that comes back to it.
 */
static SliceOutcome
sweep(const HybTask *task)
{
	HybSlotIndex index = {.relid = task->swept};

	while (next_index(&index))
	{
		IndexWork	work = {.relid = index.relid};

		CHECK_FOR_INTERRUPTS();
		hyb_worker_swept(&me, index.relid);
		if (do_slice(&work, &ask_slice) == SLICE_LOCKED)
			(void) hyb_merge_ask(index.relid, index.owner);
		if (work.name != NULL)
			pfree(work.name);
		if (database_is_wanted() ||
			hyb_worker_should_yield(&me, HYB_TURN_MS, hyb_max_merge_workers))
			return SLICE_MORE;
	}
	return SLICE_DONE;
}

static void
work_on_index(const HybTask *task)
{
	IndexWork	work = {.relid = task->relid,.mark = task->mark};
	SliceOutcome outcome = SLICE_DONE;
	int64		again_ms = -1;

	if (!OidIsValid(task->relid))
		outcome = sweep(task);
	else if (task->look)
		outcome = look_at_quiet(&work, &again_ms);
	if (outcome == SLICE_DONE && OidIsValid(task->relid) &&
		(!task->look || work.quiet == HYB_QUIET_MERGE))
	{
		work.quiet = HYB_QUIET_NONE;
		outcome = merge_index(&work);
		if (work.quiet != HYB_QUIET_NONE)
			again_ms = hyb_quiet_time;
	}
	if (outcome == SLICE_DONE)
		HYB_POINT("worker-done");
	if (outcome == SLICE_DONE && again_ms >= 0)
		hyb_worker_look_later(&me, &work.mark, again_ms);
	else
		hyb_worker_done(&me, outcome == SLICE_DONE ? HYB_WORK_DONE :
						outcome == SLICE_LOCKED ? HYB_WORK_LOCKED : HYB_WORK_AGAIN);
	if (work.name != NULL)
		pfree(work.name);
}

/* End, and give this worker's place to a process in that database. */
HYB_NORETURN static void hand_over_worker(Oid dbid);

static void
hand_over_worker(Oid dbid)
{
	int			status = 0;

	hyb_worker_hand_over(&me, dbid);
	has_left = true;
	if (!hyb_worker_start(&me))
	{
		hyb_worker_not_started(&me, true);
		status = 1;
	}
	proc_exit(status);
}

/* The same, if there is such a database. */
static void
start_elsewhere(Oid dbid)
{
	bool		exists;

	StartTransactionCommand();
	exists = SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(dbid));
	CommitTransactionCommand();
	if (exists)
		hand_over_worker(dbid);
	hyb_workers_forget(dbid);
}

/*
 * The worker ends after an error, whose cause may be the state of this process.
 * Only this task was off the list.
 */
static void
do_task(const HybTask *task)
{
	volatile bool failed = false;

	PG_TRY();
	{
		work_on_index(task);
	}
	PG_CATCH();
	{
		HOLD_INTERRUPTS();
		hyb_worker_done(&me, HYB_WORK_FAILED);
		EmitErrorReport();
		AbortOutOfAnyTransaction();
		FlushErrorState();
		failed = true;
		RESUME_INTERRUPTS();
	}
	PG_END_TRY();
	if (failed)
		hand_over_worker(database);
}

/*
 * Wait for the next task.  Returns false if the worker is to end: nothing has
 * come for some time, or another database has waited longest.
 */
static bool
next_task(HybTask *task)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  HYB_WORKER_IDLE_MS);

	for (;;)
	{
		HybWorkerTask work;

		if (hyb_worker_should_yield(&me, PG_INT32_MAX, hyb_max_merge_workers))
		{
			HYB_POINT("worker-leaves");
			return false;
		}
		if (database_is_wanted())
		{
			locked_out = true;
			return false;
		}
		work = hyb_worker_next(&me, task);
		if (work == HYB_WORK_TASK)
			return true;
		if (work == HYB_WORK_DATABASE)
		{
			start_elsewhere(task->dbid);
			continue;
		}
		if (GetCurrentTimestamp() >= end && hyb_worker_may_leave(&me))
			return false;
		pgstat_report_stat(true);
		pause_for(HYB_WORKER_LOOK_MS, wait_idle);
	}
}

/*
 * Limits that are set for the clients of a database are not for a worker, and its
 * errors do not end it.  As in autovacuum, names in functions must not find users'
 * objects, and a worker that
 * has cut a file, which takes a transaction ID, must not wait for a synchronous
 * standby that is away.
 */
static void
override_settings(void)
{
	static const char *const settings[][2] = {
		{"statement_timeout", "0"},
		{"idle_in_transaction_session_timeout", "0"},
		{"idle_session_timeout", "0"},
#ifdef HYB_HAVE_TRANSACTION_TIMEOUT
		{"transaction_timeout", "0"},
#endif
		{"synchronous_commit", "local"},
		{"default_transaction_isolation", "read committed"},
		{"default_transaction_read_only", "off"},
		{"search_path", ""},
		{"exit_on_error", "off"}
	};

	for (int i = 0; i < lengthof(settings); i++)
		SetConfigOption(settings[i][0], settings[i][1], PGC_SUSET, PGC_S_OVERRIDE);
}

/*
 * Connect to the database.  Its lock may be held for long (ALTER DATABASE SET
 * TABLESPACE, CREATE DATABASE with it as the template).  Other databases must not
 * wait for that, so this process ends then, and also when it is cancelled.
 * InitPostgres reports all final errors as FATAL.
 */
static void
connect_to_database(void)
{
	MemoryContext context = CurrentMemoryContext;

	SetConfigOption("lock_timeout", HYB_WORKER_CONNECT_MS, PGC_SUSET, PGC_S_OVERRIDE);
	PG_TRY();
	{
		BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		locked_out = true;
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		if (error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
			PG_RE_THROW();
		proc_exit(leave(0));
	}
	PG_END_TRY();
	connected = true;
	SetConfigOption("lock_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
}

extern PGDLLEXPORT void hybrid_merge_worker_main(Datum arg);

void
hybrid_merge_worker_main(Datum arg)
{
	HybTask		task;

	if (hyb_shared_is_barred())
		proc_exit(0);
	memcpy(&me, MyBgworkerEntry->bgw_extra, sizeof(me));
	if (!hyb_worker_confirm(&me, &database))
		proc_exit(0);
	before_shmem_exit(worker_exit, (Datum) 0);
	pqsignal(SIGTERM, terminate);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	override_settings();
	hyb_longest_moment_ms = HYB_WORKER_MOMENT_MS;
	connect_to_database();
	wait_idle = HYB_WAIT_EVENT("HybridMergeIdle");
	wait_turn = HYB_WAIT_EVENT("HybridMergeTurn");
	while (next_task(&task))
		do_task(&task);
	/* how many may run? */
	reload_settings();
	proc_exit(leave(0));
}
