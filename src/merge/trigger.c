/*
 * trigger.c
 *		Which process merges, where a merge is wanted.
 *
 * A worker merges if one can come.  An inserter helps if the dynamic stage has
 * outgrown its bound, and does a step if no worker comes.  hybrid_merge and
 * VACUUM merge everything themselves.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "base/server.h"
#include "commands/vacuum.h"
#include "merge/facts.h"
#include "merge/membership_make.h"
#include "merge/merge.h"
#include "merge/shrink.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "shared/index_cache.h"
#include "shared/shared.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

StaticAssertDecl(sizeof(HybWorkerRef) <= BGW_EXTRALEN,
				 "arguments must fit bgw_extra");

/* Most steps that an inserter does for a page of entries; some move none. */
#define HELP_STEPS		8

/* How long it waits for steps of other processes, and how often it looks. */
#define HELP_WAIT_MS	100
#define HELP_LOOK_MS	1

/*
 * In the cache of an index: the last error of what a statement of this session did
 * for it.
 */
typedef struct Setback
{
	TimestampTz until;			/* no statement does anything before */
	int			wait_ms;		/* after the error; 0: there was none since */
} Setback;

static HybCachePiece setback_piece = {.size = sizeof(Setback)};

/* ---- settings ---- */

int			hyb_merge_floor = 8192;
int			hyb_merge_step_pages = 32;
static bool background_merge = true;	/* start workers */
int			hyb_max_merge_workers = 2;
int			hyb_log_merge_ms = -1;
int			hyb_quiet_time = 5000;
int			hyb_test_levels = 1;

static void
define_settings(void)
{
	DefineCustomIntVariable("hybridindex.merge_floor",
							"Sets the number of dynamic entries below which merge_ratio starts no merge.",
							NULL,
							&hyb_merge_floor,
							8192, 0, INT_MAX,
							PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.merge_step_pages",
							"Sets the number of static leaf pages that one step of a merge reads.",
							"Larger steps write less, smaller ones wait for less.",
							&hyb_merge_step_pages,
							32, 1, 128,
							PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
	DefineCustomBoolVariable("hybridindex.background_merge",
							 "Starts background workers to merge hybrid indexes.",
							 "If off, insertions and VACUUM do the steps of merges themselves.",
							 &background_merge,
							 true,
							 PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.max_merge_workers",
							"Sets the number of background workers that merge hybrid indexes at a time, in all databases.",
							"They count against max_worker_processes.",
							&hyb_max_merge_workers,
							2, 0, HYB_MAX_WORKERS,
							PGC_SIGHUP, HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.quiet_time",
							"Sets the time without insertions after which workers merge what is left of an index's log and shrink its file.",
							"They do it where that is worth what it writes. -1 turns it off.",
							&hyb_quiet_time,
							5000, -1, 3600 * 1000,
							PGC_SIGHUP, GUC_UNIT_MS | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.log_merge_min_duration",
							"Sets the time above which merges by background workers are logged.",
							"-1 logs none, 0 all of them.",
							&hyb_log_merge_ms,
							-1, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
#ifdef USE_ASSERT_CHECKING
	DefineCustomIntVariable("hybridindex.test_levels",
							"Has merges begin new static levels, up to this number, for tests.",
							NULL,
							&hyb_test_levels,
							1, 1, HYB_MAX_LEVELS,
							PGC_USERSET,
							GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, NULL, NULL);
#endif
}

/* ---- workers ---- */

bool
hyb_worker_start(const HybWorkerRef *ref)
{
	BackgroundWorker worker;

	/* the worker would load the library of the other build, and end */
	if (hyb_shared_replaced())
		return false;
	memset(&worker, 0, sizeof(worker));
	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = HYB_WORKER_AGAIN_S;
	strlcpy(worker.bgw_library_name, "hybridindex", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "hybrid_merge_worker_main",
			sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_name, "hybrid merge worker", BGW_MAXLEN);
	strlcpy(worker.bgw_type, "hybrid merge worker", BGW_MAXLEN);
	memcpy(worker.bgw_extra, ref, sizeof(*ref));
	return RegisterDynamicBackgroundWorker(&worker, NULL);
}

bool
hyb_merge_ask(Oid relid, Oid owner)
{
	HybWorkerRef ref;

	switch (hyb_worker_request(MyDatabaseId, relid, owner, hyb_max_merge_workers, &ref))
	{
		case HYB_REQUEST_NOTED:
			return true;
		case HYB_REQUEST_REFUSED:
			return false;
		case HYB_REQUEST_START:
			break;
	}
	if (hyb_worker_start(&ref))
		return true;
	hyb_worker_not_started(&ref, false);
	return false;
}

/* The slot of an index of this database went while its log was not empty. */
static void
slot_evicted(const HybSlotIndex *index)
{
	if (background_merge && !RecoveryInProgress())
		(void) hyb_merge_ask(index->relid, index->owner);
}

/*
 * May a worker merge the index?  It cannot see a relation that this transaction
 * made.
 */
static bool
may_ask(const HybIndex *ix)
{
	return background_merge && !RELATION_IS_LOCAL(ix->rel) &&
		HYB_RELATION_NEW_SUBID(ix->rel) == InvalidSubTransactionId;
}

/* Returns false if no worker can come. */
static bool
ask_worker(HybIndex *ix)
{
	return may_ask(ix) &&
		hyb_merge_ask(RelationGetRelid(ix->rel), ix->rel->rd_rel->relowner);
}

void
hyb_merge_consider_database(Relation index)
{
	static bool done = false;

	if (likely(done) || !background_merge || RecoveryInProgress())
		return;
	done = true;
	if (hyb_max_merge_workers > 0 && hyb_database_first_use())
		(void) hyb_merge_ask(InvalidOid, index->rd_rel->relowner);
}

void
hyb_merge_init(void)
{
	define_settings();
	hyb_cache_add_piece(&setback_piece);
	hyb_slot_evicted = slot_evicted;
}

/* ---- steps of inserters ---- */

/*
 * Asked under the merge lock: is the active generation to be frozen?  A worker
 * is asked for first, which may have been done with the index by now.  If the
 * list of requests is full, the generation is frozen only if the inserter has to
 * help: this may be its last insert, and it would leave a merge behind.
 */
static bool
freeze_wanted(HybIndex *ix, void *arg)
{
	bool	   *help = arg;

	if (!hyb_merge_wanted(ix))
		return false;
	return ask_worker(ix) || *help ||
		!may_ask(ix) || hyb_max_merge_workers == 0;
}

static HybMergeOutcome
foreground_step(HybIndex *ix, HybMergeMode mode, bool help)
{
	HybMergeOrder order = {.mode = mode,.wanted = freeze_wanted,.arg = &help};

	return hyb_merge_drive(ix, &order);
}

/*
 * The inserter's share of the work where the dynamic stage must not grow: it
 * goes on when need.help entries are merged, by itself or by other processes.
 *
 * It does not queue for the merge lock.  There lock_timeout would end its
 * statement, and it could deadlock with a merge that locks the index (learn.c).
 * So it polls for a bounded time.  Unless it may merge itself, it only waits.
 */
static void
help_merging(HybIndex *ix, HybMergeFacts *facts, HybMergeNeed need, bool may_merge)
{
	static uint32 wait_help = 0;
	uint64		target = facts->merged_entries + need.help;
	int			steps = 0;
	int			waited_ms = 0;

	if (wait_help == 0)
		wait_help = HYB_WAIT_EVENT("HybridMergeHelp");
	HYB_POINT("merge-help");
	while (need.help > 0 && facts->merged_entries < target &&
		   steps < HELP_STEPS && waited_ms < HELP_WAIT_MS)
	{
		HybMergeOutcome outcome = HYB_MERGE_BUSY;

		if (may_merge)
			outcome = foreground_step(ix, HYB_MERGE_HELP, true);
		if (outcome == HYB_MERGE_DONE)
			break;
		if (outcome == HYB_MERGE_MORE)
			steps++;
		else
		{
			(void) WaitLatch(MyLatch,
							 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
							 HELP_LOOK_MS, wait_help);
			ResetLatch(MyLatch);
			waited_ms += HELP_LOOK_MS;
		}
		need = hyb_merge_need(ix, facts);
	}
}

/*
 * A worker remembers an index while it is being filled, but not for ever
 * (worker.c).  So a worker is asked for each time the log has doubled.
 */
static bool
may_be_quiet_soon(const HybMergeFacts *facts)
{
	uint64_t	pages = facts->active_pages;

	return hyb_quiet_time >= 0 && (pages & (pages - 1)) == 0 &&
		hyb_policy_quiet(facts);
}

void
hyb_merge_ask_if_wanted(HybIndex *ix)
{
	if (!RecoveryInProgress() &&
		(hyb_merge_wanted(ix) || hyb_quiet_work(ix) != HYB_QUIET_NONE))
		(void) ask_worker(ix);
}

/*
 * Ask for a worker if a merge is wanted, or do the statement's share of it, if it may
 * merge.  Otherwise it waits for workers where it would help.
 */
static void
consider(HybIndex *ix, bool may_merge)
{
	HybMergeFacts facts;
	HybMergeNeed need;
	bool		background;

	need = hyb_merge_need(ix, &facts);
	if (!need.finish && !need.freeze)
	{
		if (may_be_quiet_soon(&facts) || hyb_membership_wanted(ix, &facts))
			(void) ask_worker(ix);
		return;
	}
	if (hyb_worker_has_failed(MyDatabaseId, RelationGetRelid(ix->rel)))
	{
		(void) ask_worker(ix);
		return;
	}
	if (may_merge && !need.finish && facts.learnable)
	{
		/*
		 * A long COPY keeps a worker from locking the index, but may itself
		 * be its only user.
		 */
		HYB_POINT("learn-lock");
		if (foreground_step(ix, HYB_MERGE_LEARN, false) == HYB_MERGE_MORE)
			return;
	}
	background = ask_worker(ix);
	if (need.help > 0 && (may_merge || background))
		help_merging(ix, &facts, need, may_merge);
	else if (may_merge && !background)
		(void) foreground_step(ix, HYB_MERGE_HELP, false);
}

/* ---- errors of what a statement does for the index ---- */

typedef struct ShareOfWork
{
	HybIndex   *ix;
	bool		catch_up;
} ShareOfWork;

static void
do_share(void *arg)
{
	ShareOfWork *share = arg;
	HybVersion	version;

	if (share->catch_up)
	{
		hyb_log_publish_counters(share->ix);
		hyb_version_capture(share->ix, &version);
		hyb_log_catch_up(share->ix, &version);
	}
	consider(share->ix, true);
}

/*
 * Citus answers each subtransaction by a savepoint on its connections, and one that
 * rows are copied to does not take that: the session would end.  Without Citus any role
 * can set that name.
 */
static bool
is_beside_citus(void)
{
	return GetConfigOption("citus.version", true, false) != NULL &&
		(GetConfigOptionFlags("citus.version", true) & GUC_CUSTOM_PLACEHOLDER) == 0;
}

/* A worker tries again, and this session does later. */
static void
note_setback(HybIndex *ix, const ErrorData *error)
{
	Setback    *setback = hyb_cache_piece(ix, &setback_piece);

	if (setback->wait_ms == 0 && error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
		ereport(LOG_SERVER_ONLY,
				(errcode(error->sqlerrcode),
				 errmsg("could not merge index \"%s\" beside a statement: %s",
						RelationGetRelationName(ix->rel), error->message),
				 error->detail != NULL ? errdetail_internal("%s", error->detail) : 0));
	setback->wait_ms = Min(Max(setback->wait_ms * 2, HYB_FAILED_MS_MIN), HYB_FAILED_MS_MAX);
	setback->until = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), setback->wait_ms);
	(void) ask_worker(ix);
}

/*
 * Work for the index must not fail the statement that happens to do it.  A
 * subtransaction gives back what the work has locked and pinned; no caller has an
 * LWLock.  A cancel is meant for the statement, and so is a timeout.  Before 17
 * there are no subtransactions in parallel mode, that is in VACUUM: it only asks
 * for a worker there (hyb_merge_ask_if_wanted).  Beside Citus workers do all of the work.
 */
static void
share_work(HybIndex *ix, bool catch_up)
{
	ShareOfWork share = {.ix = ix,.catch_up = catch_up};
	Setback    *setback = hyb_cache_piece(ix, &setback_piece);
	MemoryContext context;
	MemoryContext old;
	ErrorData  *error;

	HYB_ASSERT_NO_LWLOCK();
	if (RecoveryInProgress() || !HYB_SUBTRANSACTIONS_ALLOWED() ||
		(setback->wait_ms > 0 && GetCurrentTimestamp() < setback->until))
		return;
	if (is_beside_citus())
	{
		consider(ix, false);
		return;
	}
	context = AllocSetContextCreate(CurrentMemoryContext, "hybrid share of work",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	error = hyb_catch_error(do_share, &share);
	if (error == NULL)
	{
		setback = hyb_cache_piece(ix, &setback_piece);
		setback->wait_ms = 0;
	}
	else
		note_setback(ix, error);
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
}

void
hyb_merge_consider(HybIndex *ix)
{
	share_work(ix, false);
}

void
hyb_merge_after_full_page(HybIndex *ix)
{
	share_work(ix, true);
}

/* ---- merging everything now ---- */

/* The end of merge_to: nothing is left of a generation. */
typedef struct Goal
{
	uint64		generation;		/* active when it began */
	bool		one_level;		/* and there is one static level */
} Goal;

/* Is the goal's generation still to be frozen? */
static bool
goal_is_active(HybIndex *ix, void *arg)
{
	const Goal *goal = arg;
	HybMetaPage meta;

	hyb_meta_copy(ix, &meta);
	if (meta.active.number > goal->generation)
		return false;
	if (goal->one_level)
		hyb_merge_request_joins(ix);
	return true;
}

static bool
goal_is_reached(HybIndex *ix, const Goal *goal)
{
	HybMetaPage meta;

	hyb_meta_copy(ix, &meta);
	return meta.active.number > goal->generation &&
		(meta.frozen.number == 0 || meta.frozen.number > goal->generation) &&
		(meta.retiring.number == 0 || meta.retiring.number > goal->generation) &&
		(!goal->one_level || meta.pass_level == 0 ||
		 meta.active.number > goal->generation + 1);
}

/* The index that merge_to is working on; after an error it is still set. */
static HybSlotIndex merging = {InvalidOid, InvalidOid};

/* After an early end a worker merges what was frozen. */
static void
leave_to_worker(void)
{
	if (OidIsValid(merging.relid))
		(void) hyb_merge_ask(merging.relid, merging.owner);
	merging.relid = InvalidOid;
}

static void
job_transaction_ends(XactEvent event, void *arg)
{
	leave_to_worker();
}

static void
job_subtransaction_ends(SubXactEvent event, SubTransactionId mine,
						SubTransactionId parent, void *arg)
{
	if (event == SUBXACT_EVENT_ABORT_SUB)
		leave_to_worker();
}

/* Do steps until the goal is reached; return how many entries they moved. */
static uint64
merge_to(HybIndex *ix, Goal *goal)
{
	static bool registered = false;
	HybMergeJob job;
	HybMergeOrder order = {
		.mode = HYB_MERGE_WAIT,
		.wanted = goal_is_active,
		.arg = goal,
		.job = &job
	};

	if (!registered)
	{
		RegisterXactCallback(job_transaction_ends, NULL);
		RegisterSubXactCallback(job_subtransaction_ends, NULL);
		registered = true;
	}
	if (may_ask(ix))
	{
		merging.relid = RelationGetRelid(ix->rel);
		merging.owner = ix->rel->rd_rel->relowner;
	}
	hyb_merge_job_begin(&job);
	PG_TRY();
	{
		/* processes that merge meanwhile have the same goal */
		while (hyb_merge_drive(ix, &order) == HYB_MERGE_MORE &&
			   !goal_is_reached(ix, goal))
			HYB_VACUUM_DELAY_POINT();
	}
	PG_FINALLY();
	{
		hyb_merge_job_end(&job);
	}
	PG_END_TRY();
	merging.relid = InvalidOid;
	return job.moved;
}

uint64
hyb_merge_all(HybIndex *ix)
{
	HybMetaPage meta;
	Goal		goal = {.one_level = true};

	/* the merge of the active generation, by any process, makes one level */
	(void) hyb_merge_lock(ix->rel, true);
	hyb_merge_request_collapse(ix);
	hyb_meta_copy(ix, &meta);
	hyb_merge_unlock(ix->rel);
	goal.generation = meta.active.number;
	return merge_to(ix, &goal);
}

void
hyb_merge_log(HybIndex *ix)
{
	HybMetaPage meta;
	Goal		goal = {0};

	hyb_meta_copy(ix, &meta);
	goal.generation = meta.active.number;
	(void) merge_to(ix, &goal);
}
