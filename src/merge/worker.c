/*
 * worker.c
 *		The background worker that merges an index.
 *
 * Started on demand by an inserter, it works in short transactions and lets
 * go of all locks between them, so that DDL never waits long for it.  When
 * nothing is left to merge it waits a little for another index of its
 * database, since starting a process costs as much as merging a small index,
 * and exits.
 */
#include "compat.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "commands/defrem.h"
#include "dynamic/progress.h"
#include "dynamic/slot.h"
#include "merge/learn.h"
#include "merge/worker.h"
#include "miscadmin.h"
#include "page/meta.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

/* Longest time that one transaction of the worker merges, in ms. */
#define HYB_WORKER_SLICE_MS		100

/* How long it stays away when somebody else is merging, in ms. */
#define HYB_WORKER_PAUSE_MS		20

/*
 * How long it waits for more work, in ms.  DROP DATABASE and the like wait five
 * seconds for other sessions to go.
 */
#define HYB_WORKER_IDLE_MS		2000

typedef struct WorkerArgs
{
	Oid			dbid;
	Oid			relid;
} WorkerArgs;

StaticAssertDecl(sizeof(WorkerArgs) <= BGW_EXTRALEN,
				 "arguments must fit bgw_extra");

bool
hyb_worker_start(Oid dbid, Oid relid)
{
	BackgroundWorker worker;
	WorkerArgs	args = {.dbid = dbid,.relid = relid};

	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_library_name, "hybridindex", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "hybrid_merge_worker_main",
			sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "hybrid merge worker", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "hybrid merge worker", BGW_MAXLEN);
	memcpy(worker.bgw_extra, &args, sizeof(args));
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

/* What the worker reports: of the generation that it merges at the time. */
typedef struct WorkerProgress
{
	int			entry;			/* -1: not begun */
	uint64		generation;
	uint64		total;			/* its entries */
	uint64		start;			/* of all merged ones, those before it */
	uint64		steps;
} WorkerProgress;

/* A step was done, or a generation frozen. */
static void
report_progress(HybIndex *ix, WorkerProgress *progress)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	uint64		generation = meta->frozen.number;
	uint64		total = meta->frozen.nentries;
	uint64		merged = meta->merged_entries;

	UnlockReleaseBuffer(metabuf);
	if (generation != 0 && generation != progress->generation)
	{
		progress->generation = generation;
		progress->total = total;
		progress->start = merged;
	}
	else if (progress->generation == 0)
		progress->start = merged;
	if (progress->entry < 0)
		progress->entry = hyb_progress_begin(MyDatabaseId,
											 RelationGetRelid(ix->rel),
											 progress->total);
	hyb_progress_update(progress->entry, progress->total,
						Min(merged - progress->start, progress->total),
						++progress->steps);
}

/* What is shared while the worker runs: its claim, or else its idle entry. */
static WorkerArgs args;
static int	idle_entry = -1;

static void
release_shared(int code, Datum arg)
{
	if (idle_entry >= 0)
		args.relid = hyb_worker_take(idle_entry, true);
	if (OidIsValid(args.relid))
		hyb_worker_release(args.dbid, args.relid);
}

/*
 * Wait for another index; false if there was none for some time.
 */
static bool
wait_for_index(void)
{
	TimestampTz end = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
												  HYB_WORKER_IDLE_MS);
	long		left = HYB_WORKER_IDLE_MS;

	hyb_worker_release(args.dbid, args.relid);
	args.relid = InvalidOid;
	idle_entry = hyb_worker_idle(args.dbid);
	if (idle_entry < 0)
		return false;
	pgstat_report_stat(true);
	while (!OidIsValid(args.relid) && left > 0)
	{
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 left, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
		left = TimestampDifferenceMilliseconds(GetCurrentTimestamp(), end);
		args.relid = hyb_worker_take(idle_entry, left <= 0);
	}
	idle_entry = -1;
	return OidIsValid(args.relid);
}

/*
 * Steps for one time slice.  Returns true if there is more to do; sets *busy
 * if somebody else is merging.  That one may want the index for itself
 * (learn.c), so it is not waited for with the index locked.  With *all the
 * active generation is merged once however small it is.
 */
static bool
merge_slice(Relation index, WorkerProgress *progress, bool *busy, bool *all)
{
	HybIndex   *ix = hyb_index_create_handle(index);
	TimestampTz began = GetCurrentTimestamp();
	bool		more;

	do
	{
		/* one step a lock, so that whoever waits for it gets it soon */
		CHECK_FOR_INTERRUPTS();
		if (!hyb_merge_lock(index, false))
		{
			*busy = true;
			return true;
		}
		more = hyb_merge_step(ix);
		if (!more && (*all || hyb_merge_wanted(ix)))
		{
			*all = false;
			more = hyb_merge_learn(ix, HYB_LEARN_WAIT_MS) ||
				hyb_merge_freeze(ix);
		}
		hyb_merge_unlock(index);

		report_progress(ix, progress);
	} while (more &&
			 !TimestampDifferenceExceeds(began, GetCurrentTimestamp(),
										 HYB_WORKER_SLICE_MS));
	return more || hyb_merge_wanted(ix);
}

/* Merge the index of args until nothing is left to do. */
static void
merge_index(void)
{
	WorkerProgress progress = {.entry = -1};
	bool		more = true;
	bool		all = hyb_slots_scarce();	/* its log may have to be read again
											 * and again */

	while (more)
	{
		Relation	heap = NULL;
		Relation	index = NULL;
		Oid			heapid;
		bool		busy = false;

		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}

		SetCurrentStatementStartTimestamp();
		StartTransactionCommand();
		PushActiveSnapshot(GetTransactionSnapshot());
		pgstat_report_activity(STATE_RUNNING, "merging a hybrid index");
		more = false;

		/* table before index, as everywhere; either may be gone by now */
		heapid = IndexGetRelation(args.relid, true);
		if (OidIsValid(heapid))
			heap = try_relation_open(heapid, AccessShareLock);
		if (heap != NULL)
			index = try_relation_open(args.relid, RowExclusiveLock);
		if (index != NULL && index->rd_rel->relkind == RELKIND_INDEX &&
			index->rd_rel->relam == get_index_am_oid("hybrid", true) &&
			index->rd_index->indisready)
		{
			Oid			save_userid;
			int			save_sec_context;
			int			save_nestlevel;

			/*
			 * Comparison functions may be anybody's code: run them as the
			 * table's owner, as maintenance commands do.
			 */
			GetUserIdAndSecContext(&save_userid, &save_sec_context);
			SetUserIdAndSecContext(heap->rd_rel->relowner,
								   save_sec_context | SECURITY_RESTRICTED_OPERATION);
			save_nestlevel = NewGUCNestLevel();
			HYB_RESTRICT_SEARCH_PATH();
			more = merge_slice(index, &progress, &busy, &all);
			AtEOXact_GUC(false, save_nestlevel);
			SetUserIdAndSecContext(save_userid, save_sec_context);
		}

		if (index != NULL)
			relation_close(index, RowExclusiveLock);
		if (heap != NULL)
			relation_close(heap, AccessShareLock);
		PopActiveSnapshot();
		CommitTransactionCommand();
		pgstat_report_activity(STATE_IDLE, NULL);
		if (busy)
		{
			(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 HYB_WORKER_PAUSE_MS, PG_WAIT_EXTENSION);
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
		}
	}

	if (progress.entry >= 0)
		hyb_progress_end(progress.entry);
}

void
hybrid_merge_worker_main(Datum arg)
{
	memcpy(&args, MyBgworkerEntry->bgw_extra, sizeof(args));
	pqsignal(SIGTERM, die);
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	BackgroundWorkerUnblockSignals();
	hyb_shared_init();
	before_shmem_exit(release_shared, (Datum) 0);
	BackgroundWorkerInitializeConnectionByOid(args.dbid, InvalidOid, 0);

	/* nobody's objects for the names in anybody's code, as in autovacuum */
	SetConfigOption("search_path", "", PGC_SUSET, PGC_S_OVERRIDE);

	do
		merge_index();
	while (wait_for_index());
	proc_exit(0);
}
