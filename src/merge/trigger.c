/*
 * trigger.c
 *		Who merges, where a merge is wanted.
 */
#include "base/compat.h"

#include "access/xlog.h"
#include "merge/ask.h"
#include "merge/facts.h"
#include "merge/job.h"
#include "merge/learn.h"
#include "merge/merge.h"
#include "merge/quiet.h"
#include "miscadmin.h"
#include "shared/index_cache.h"
#include "shared/workers.h"
#include "storage/latch.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

int			hyb_merge_floor = 8192;
int			hyb_merge_step_pages = 32;
bool		hyb_background_merge = true;
int			hyb_max_merge_workers = 2;
int			hyb_log_merge_ms = -1;
int			hyb_quiet_time = 5000;
int			hyb_test_levels = 1;

/* Steps that an inserter does at most for a page of entries: some move none. */
#define HELP_STEPS		8

/* How long it waits for the steps of others, in ms, and how often it looks. */
#define HELP_WAIT_MS	100
#define HELP_LOOK_MS	1

/*
 * The slot of an index went while there was something in its log.  Workers are
 * not started in other databases, which may not exist any more, or be about to
 * be dropped: their own processes evict slots too.
 */
static void
slot_evicted(Oid dbid, Oid relid)
{
	if (dbid == MyDatabaseId && hyb_background_merge && !RecoveryInProgress())
		(void) hyb_worker_ask(dbid, relid, InvalidOid);
}

bool
hyb_merge_may_ask(const HybIndex *ix)
{
	return hyb_background_merge && !RELATION_IS_LOCAL(ix->rel) &&
		HYB_RELATION_NEW_SUBID(ix->rel) == InvalidSubTransactionId;
}

/* Ask for a worker; false if none can come. */
static bool
ask_worker(HybIndex *ix)
{
	return hyb_merge_may_ask(ix) &&
		hyb_worker_ask(MyDatabaseId, RelationGetRelid(ix->rel),
					   ix->rel->rd_rel->relowner);
}

/*
 * The list of requests does not outlive the server: what was on it is asked for
 * again when the index is read, as it may have no more insertions.
 */
static void
slot_made(HybIndex *ix)
{
	HYB_POINT("slot-made");
	if (!RecoveryInProgress() && hyb_merge_may_ask(ix) && hyb_merge_wanted(ix))
		(void) ask_worker(ix);
}

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
							 &hyb_background_merge,
							 true,
							 PGC_USERSET, HYB_GUC_ALLOW_IN_PARALLEL,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("hybridindex.max_merge_workers",
							"Sets the number of background workers that merge hybrid indexes at a time, in all databases.",
							"They count against max_worker_processes.",
							&hyb_max_merge_workers,
							2, 0, HYB_MAX_WORKERS,
							PGC_SIGHUP, 0,
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
							PGC_SIGHUP, GUC_UNIT_MS,
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

void
hyb_merge_init(void)
{
	define_settings();
	hyb_slot_evicted = slot_evicted;
	hyb_slot_made = slot_made;
}

/*
 * Asked under the merge lock: is the active generation to be frozen?  Then a
 * worker is asked for first, which may have been done with the index by now.  If
 * the list of requests is full, the generation is frozen only where the inserter
 * has to help: it may be the last one, and would leave a merge behind.
 */
static bool
freeze_wanted(HybIndex *ix, void *arg)
{
	bool	   *help = arg;

	if (!hyb_merge_wanted(ix))
		return false;
	return ask_worker(ix) || *help ||
		!hyb_merge_may_ask(ix) || hyb_max_merge_workers == 0;
}

static HybMergeOutcome
foreground_step(HybIndex *ix, bool help)
{
	return hyb_merge_job_step(ix, NULL, HYB_MERGE_HELP, freeze_wanted, &help);
}

/*
 * A long COPY keeps others from locking the index, a worker included, but may
 * itself be its only user.
 */
static bool
learn_in_foreground(HybIndex *ix)
{
	bool		learned;
	bool		help = false;

	HYB_POINT("learn-lock");
	if (!hyb_merge_lock(ix->rel, false))
		return false;
	learned = freeze_wanted(ix, &help) && hyb_merge_learn(ix, 0);
	hyb_merge_unlock(ix->rel);
	return learned;
}

/*
 * The inserter's share of the work where the dynamic stage must not grow on: so
 * many entries are merged before it goes on, by itself or by others.
 *
 * It does not wait in the queue for the merge lock.  There lock_timeout would end
 * its statement, and it would be part of a deadlock with a merge that wants the
 * index for itself (learn.c).  So it looks again and again, for a bounded time.
 */
static void
help_merging(HybIndex *ix, HybMergeFacts *facts, HybMergeNeed need)
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
		HybMergeOutcome outcome = foreground_step(ix, true);

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
 * A worker remembers an index for as long as it is being filled, but not for
 * ever (quiet.c): one is asked for whenever the log has grown to twice its
 * length.
 */
static bool
may_be_quiet_soon(const HybMergeFacts *facts)
{
	uint64_t	pages = facts->active_pages;

	return hyb_quiet_time >= 0 && (pages & (pages - 1)) == 0 &&
		hyb_policy_quiet(facts);
}

void
hyb_merge_consider_quiet(HybIndex *ix)
{
	if (!RecoveryInProgress() && hyb_quiet_pays(ix))
		(void) ask_worker(ix);
}

void
hyb_merge_consider(HybIndex *ix)
{
	HybMergeFacts facts;
	HybMergeNeed need;
	bool		background;

	HYB_ASSERT_NO_LWLOCK();
	if (RecoveryInProgress())
		return;
	need = hyb_merge_need(ix, &facts);
	if (!need.finish && !need.freeze)
	{
		if (may_be_quiet_soon(&facts))
			(void) ask_worker(ix);
		return;
	}
	if (!need.finish && facts.learnable && learn_in_foreground(ix))
		return;
	background = ask_worker(ix);
	if (need.help > 0)
		help_merging(ix, &facts, need);
	else if (!background)
		(void) foreground_step(ix, false);
}
