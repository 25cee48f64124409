/*
 * worker.c
 *		The background worker that merges indexes.
 *
 * Started on demand by an inserter, for a database, it takes the index that
 * has waited longest (dynamic/workers.h), works in short transactions, and lets
 * go of all locks between them, so that DDL never waits long for it.  It locks
 * tables and indexes without waiting.  Where others wait for a worker it does
 * not stay with one index for longer than a turn.  When nothing is left to
 * merge it stays for a little, since starting a process costs as much as
 * merging a small index, and ends.
 *
 * DROP DATABASE and the like lock the database, and then wait five seconds for
 * its other sessions to go.  So a worker, busy or idle, looks several times a
 * second whether somebody holds that lock, and ends then.
 */
#include "compat.h"

#include "access/relation.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "commands/defrem.h"
#include "dynamic/slot.h"
#include "dynamic/workers.h"
#include "merge/facts.h"
#include "merge/job.h"
#include "merge/as_owner.h"
#include "merge/quiet.h"
#include "merge/try_open.h"
#include "merge/worker.h"
#include "miscadmin.h"
#include "page/open.h"
#include "page/settings.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
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

/* How long it stays away when somebody else is merging, in ms. */
#define HYB_WORKER_PAUSE_MS		20

/* How long it stays with an index while others wait, in ms. */
#define HYB_WORKER_TURN_MS		1000

/* An index that cannot be locked is tried so often, so many ms apart. */
#define HYB_WORKER_LOCK_TRIES	10
#define HYB_WORKER_LOCK_MS		100

/* How long it waits for more work, and between looks at the database's lock. */
#define HYB_WORKER_IDLE_MS		2000
#define HYB_WORKER_LOOK_MS		50

typedef struct WorkerArgs
{
	Oid			dbid;
	HybWorkerRef ref;
} WorkerArgs;

StaticAssertDecl(sizeof(WorkerArgs) <= BGW_EXTRALEN,
				 "arguments must fit bgw_extra");

/* What became of a slice of work. */
typedef enum SliceOutcome
{
	SLICE_MORE,
	SLICE_DONE,
	SLICE_BUSY,					/* somebody else is merging */
	SLICE_LOCKED				/* somebody has locked the table or the index */
} SliceOutcome;

/*
 * What is done with an index in a transaction, and the lock on it and its table.
 * Who waits for a weaker one than ShareUpdateExclusiveLock cannot be seen.
 */
typedef struct SliceWork
{
	SliceOutcome (*work) (HybIndex *ix, Relation heap, void *arg);
	LOCKMODE	table_lock;
	LOCKMODE	index_lock;
} SliceWork;

typedef struct MergeArgs
{
	HybMergeJob job;
	bool		all;			/* merge the active generation once, however
								 * small it is */
} MergeArgs;

/* Of this worker. */
static WorkerArgs args;
static bool connected = false;
static uint32 wait_idle;
static uint32 wait_turn;

/* ---- starting workers ---- */

static bool
start_worker(Oid dbid, const HybWorkerRef *ref)
{
	BackgroundWorker worker;
	WorkerArgs	extra = {
		.dbid = dbid,
		.ref = *ref
	};

	/* it would load the library of the other build, and end */
	if (hyb_shared_replaced())
		return false;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "hybridindex", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "hybrid_merge_worker_main",
			sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "hybrid merge worker", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "hybrid merge worker", BGW_MAXLEN);
	memcpy(worker.bgw_extra, &extra, sizeof(extra));
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

bool
hyb_worker_ask(Oid dbid, Oid relid)
{
	HybWorkerRef ref;

	switch (hyb_worker_request(dbid, relid, hyb_max_merge_workers, &ref))
	{
		case HYB_REQUEST_NOTED:
			return true;
		case HYB_REQUEST_REFUSED:
			return false;
		case HYB_REQUEST_START:
			break;
	}
	if (start_worker(dbid, &ref))
		return true;
	hyb_worker_not_started(&ref, dbid, relid);
	return false;
}

/* A worker for what waits, if there is none. */
static void
start_for_waiting(void)
{
	Oid			dbid;
	HybWorkerRef ref;

	if (hyb_worker_for_waiting(&dbid, &ref) && !start_worker(dbid, &ref))
		hyb_worker_release(&ref);
}

/* ---- the worker ---- */

/*
 * The process ends, for whatever reason.  What cannot be connected to (a
 * database that allows no connections) must not wait for a worker any more: it
 * would be the first in the list for ever, and each worker would give its
 * place up for it.  What else waits must not be left to nobody, as who asked
 * for it may not ask again: the next worker gets it.  Only where the server has
 * no process to spare, which this one still counts as, it waits until somebody
 * asks for a merge.
 */
static void
release_entry(int code, Datum arg)
{
	if (!connected)
		hyb_workers_forget(args.dbid);
	hyb_worker_release(&args.ref);
	if (hyb_max_merge_workers > 0)
		start_for_waiting();
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
 * Does somebody hold, or wait for, a lock on the database that keeps others
 * from connecting to it?
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

/*
 * With *arg, a bool, the active generation is merged once however small it is.
 */
static bool
merge_wanted(HybIndex *ix, void *arg)
{
	bool	   *all = arg;
	bool		wanted = *all || hyb_merge_wanted(ix);

	*all = false;
	return wanted;
}

/*
 * Steps for one time slice.  Somebody else who is merging may want the index
 * for itself (learn.c), so that one is not waited for with the index locked.
 */
static SliceOutcome
merge_steps(HybIndex *ix, Relation heap, void *arg)
{
	MergeArgs  *merge = arg;
	TimestampTz began = GetCurrentTimestamp();
	HybMergeOutcome outcome;

	do
	{
		outcome = hyb_merge_job_step(ix, &merge->job, false, merge_wanted,
									 &merge->all);
		if (outcome == HYB_MERGE_BUSY)
			return SLICE_BUSY;
	} while (outcome == HYB_MERGE_MORE &&
			 !TimestampDifferenceExceeds(began, GetCurrentTimestamp(),
										 HYB_WORKER_SLICE_MS));
	if (outcome == HYB_MERGE_MORE || hyb_merge_wanted(ix))
		return SLICE_MORE;
	hyb_quiet_remember(ix);
	return SLICE_DONE;
}

static SliceOutcome
look_whether_quiet(HybIndex *ix, Relation heap, void *arg)
{
	*(HybQuietWork *) arg = hyb_quiet_look(ix);
	return SLICE_DONE;
}

/* Shrinking can take some time: others do not wait for it. */
static bool
nobody_waits(void *arg)
{
	return !database_is_wanted() &&
		!hyb_worker_should_yield(&args.ref, 0, hyb_max_merge_workers);
}

static SliceOutcome
shrink_file(HybIndex *ix, Relation heap, void *arg)
{
	hyb_quiet_shrink(ix, heap, nobody_waits, NULL);
	return SLICE_DONE;
}

static const SliceWork work_merge = {merge_steps, AccessShareLock, RowExclusiveLock};
static const SliceWork work_look = {look_whether_quiet, AccessShareLock, RowExclusiveLock};
static const SliceWork work_shrink = {shrink_file, ShareUpdateExclusiveLock, ShareUpdateExclusiveLock};

/*
 * VACUUM does not wait for this transaction's snapshot, as it does not wait for
 * that of another VACUUM: the rows of a load are visible to all while their
 * index is being merged.  That is right where only the index is read, and rows of
 * the table that may be gone (heap_key.c), not what functions of others may read.
 */
static void
hold_no_rows_back(const HybIndex *ix)
{
	if (!ix->desc->all_mem || (ix->desc->has_encoded && ix->dictionaries == NULL))
		return;
	LWLockAcquire(ProcArrayLock, LW_EXCLUSIVE);
	MyProc->statusFlags |= PROC_IN_VACUUM;
	ProcGlobal->statusFlags[MyProc->pgxactoff] = MyProc->statusFlags;
	LWLockRelease(ProcArrayLock);
}

/*
 * One transaction.  *name is set to the index's, allocated in TopMemoryContext,
 * if it was NULL.
 */
static SliceOutcome
work_on_index(Oid relid, const SliceWork *work, void *arg, char **name)
{
	Relation	heap = NULL;
	Relation	index = NULL;
	Oid			heapid;
	bool		locked = false;
	SliceOutcome outcome = SLICE_DONE;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());

	/* table before index, as everywhere; either may be gone by now */
	heapid = IndexGetRelation(relid, true);
	heap = hyb_try_open(heapid, work->table_lock, &locked);
	if (heap != NULL)
		index = hyb_try_open(relid, work->index_lock, &locked);
	if (locked)
		outcome = SLICE_LOCKED;
	else if (index != NULL && index->rd_rel->relkind == RELKIND_INDEX &&
			 index->rd_rel->relam == get_index_am_oid("hybrid", true) &&
			 index->rd_index->indisready)
	{
		HybIndex   *ix = hyb_index_create_handle(index);
		HybCaller	caller;

		hold_no_rows_back(ix);
		if (*name == NULL)
			*name = MemoryContextStrdup(TopMemoryContext,
										quote_qualified_identifier(get_namespace_name(RelationGetNamespace(index)),
																   RelationGetRelationName(index)));
		pgstat_report_activity(STATE_RUNNING,
							   psprintf("merge: hybrid index %s", *name));

		hyb_become_owner(&caller, heap->rd_rel->relowner);
		outcome = work->work(ix, heap, arg);
		hyb_become_caller(&caller);
	}

	if (index != NULL)
		relation_close(index, work->index_lock);
	if (heap != NULL)
		relation_close(heap, work->table_lock);
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_activity(STATE_IDLE, NULL);
	return outcome;
}

static void
log_merge(const HybMergeJob *job, const char *name, TimestampTz began)
{
	TimestampTz now = GetCurrentTimestamp();

	if (hyb_log_merge_ms < 0 || job->steps == 0 ||
		!TimestampDifferenceExceeds(began, now, hyb_log_merge_ms))
		return;
	StartTransactionCommand();
	ereport(LOG,
			(errmsg("merge of hybrid index \"%s.%s\": " UINT64_FORMAT " entries moved in " UINT64_FORMAT " steps, elapsed: %ld ms",
					get_database_name(MyDatabaseId), name, job->moved, job->steps,
					TimestampDifferenceMilliseconds(began, now))));
	CommitTransactionCommand();
}

/*
 * Merge an index until nothing is left to do, or others have waited too long.
 * Returns false if the worker is to end.
 */
static bool
merge_index(Oid relid)
{
	TimestampTz began = GetCurrentTimestamp();
	char	   *name = NULL;
	MergeArgs	merge = {
		/* its log may have to be read again and again */
		.all = hyb_slots_scarce()
	};
	int			tries = 0;
	bool		stay = true;
	bool		again = false;
	SliceOutcome outcome;

	hyb_merge_job_begin(&merge.job);
	do
	{
		outcome = work_on_index(relid, &work_merge, &merge, &name);
		if (database_is_wanted())
			stay = false;
		else if (outcome == SLICE_DONE)
			break;
		else if (outcome == SLICE_BUSY)
			pause_for(HYB_WORKER_PAUSE_MS, wait_turn);
		else if (outcome == SLICE_LOCKED && ++tries < HYB_WORKER_LOCK_TRIES)
			pause_for(HYB_WORKER_LOCK_MS, wait_turn);
		else if (outcome == SLICE_LOCKED)
			break;				/* who inserts again asks again */
		reload_settings();
		again = hyb_worker_should_yield(&args.ref, HYB_WORKER_TURN_MS,
										hyb_max_merge_workers);
	} while (stay && !again);
	hyb_merge_job_end(&merge.job);
	if (outcome == SLICE_DONE)
		hyb_worker_done(&args.ref, HYB_WORK_DONE);
	else
		hyb_worker_done(&args.ref, again && stay ? HYB_WORK_AGAIN : HYB_WORK_LEFT);

	if (name != NULL)
	{
		log_merge(&merge.job, name, began);
		pfree(name);
	}
	return stay;
}

/*
 * A worker of another database is next: start it.
 */
static void
start_elsewhere(Oid dbid, const HybWorkerRef *ref)
{
	bool		exists;

	StartTransactionCommand();
	exists = SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(dbid));
	CommitTransactionCommand();
	if (!exists)
		hyb_workers_forget(dbid);
	if (exists && start_worker(dbid, ref))
		return;
	hyb_worker_release(ref);
	if (!exists)
		start_for_waiting();
}

/*
 * Look at an index that may be quiet: what it is to be merged for is done as if
 * somebody had asked for it.
 */
static void
look_at(Oid relid)
{
	char	   *name = NULL;
	HybQuietWork quiet = HYB_QUIET_NONE;
	SliceOutcome outcome;

	outcome = work_on_index(relid, &work_look, &quiet, &name);
	if (quiet == HYB_QUIET_MERGE)
		(void) hyb_worker_ask(MyDatabaseId, relid);
	else if (quiet == HYB_QUIET_SHRINK)
		outcome = work_on_index(relid, &work_shrink, NULL, &name);
	if (outcome == SLICE_LOCKED)
		hyb_quiet_look_again();
	if (name != NULL)
		pfree(name);
}

/*
 * The next index to merge.  Returns false if the worker is to end: nothing has
 * come for some time, or another database has waited longest.
 */
static bool
next_index(Oid *relid)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  HYB_WORKER_IDLE_MS);
	HybWorkerRef ref = args.ref;
	Oid			quiet;

	for (;;)
	{
		if (hyb_worker_should_yield(&args.ref, PG_INT32_MAX, hyb_max_merge_workers))
		{
			HYB_POINT("worker-leaves");
			return false;
		}
		switch (hyb_worker_next(&ref, relid))
		{
			case HYB_WORK_INDEX:
				return true;
			case HYB_WORK_DATABASE:
				start_elsewhere(*relid, &ref);
				return false;
			case HYB_WORK_NONE:
				break;
		}
		if (hyb_quiet_due(&quiet))
		{
			look_at(quiet);
			continue;
		}
		if (((GetCurrentTimestamp() >= end && !hyb_quiet_waits()) ||
			 database_is_wanted()) &&
			hyb_worker_leave(&args.ref))
			return false;
		pgstat_report_stat(true);
		pause_for(HYB_WORKER_LOOK_MS, wait_idle);
	}
}

/*
 * What somebody has set for the database, or for all of them, to keep clients
 * in bounds, is not meant for a worker.
 */
static void
override_settings(void)
{
	SetConfigOption("statement_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("lock_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("idle_in_transaction_session_timeout", "0", PGC_SUSET,
					PGC_S_OVERRIDE);
	SetConfigOption("idle_session_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
#ifdef HYB_HAVE_TRANSACTION_TIMEOUT
	SetConfigOption("transaction_timeout", "0", PGC_SUSET, PGC_S_OVERRIDE);
#endif

	/*
	 * Cutting a file takes a transaction ID: no place for a worker waits for
	 * a synchronous standby that is away, as in autovacuum.
	 */
	SetConfigOption("synchronous_commit", "local", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_isolation", "read committed",
					PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_read_only", "off", PGC_SUSET,
					PGC_S_OVERRIDE);

	/* nobody's objects for the names in anybody's code, as in autovacuum */
	SetConfigOption("search_path", "", PGC_SUSET, PGC_S_OVERRIDE);
}

void
hybrid_merge_worker_main(Datum arg)
{
	Oid			relid;

	if (hyb_shared_is_barred())
		proc_exit(0);
	memcpy(&args, MyBgworkerEntry->bgw_extra, sizeof(args));
	if (!hyb_worker_confirm(&args.ref))
		proc_exit(0);
	before_shmem_exit(release_entry, (Datum) 0);
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnectionByOid(args.dbid, InvalidOid, 0);
	connected = true;
	override_settings();
	wait_idle = HYB_WAIT_EVENT("HybridMergeIdle");
	wait_turn = HYB_WAIT_EVENT("HybridMergeTurn");

	/*
	 * An error ends the process.  (So does FATAL, but not this way: who
	 * terminates a worker has nothing against the index.)
	 */
	PG_TRY();
	{
		while (next_index(&relid) && merge_index(relid))
			;
	}
	PG_CATCH();
	{
		hyb_worker_failed(&args.ref);
		PG_RE_THROW();
	}
	PG_END_TRY();
	proc_exit(0);
}
