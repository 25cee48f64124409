/*
 * job.c
 *		Merges as sequences of steps, each under a merge lock of its own, whose
 *		progress others can see; merging everything now.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "commands/vacuum.h"
#include "merge/ask.h"
#include "merge/facts.h"
#include "merge/job.h"
#include "merge/learn.h"
#include "miscadmin.h"
#include "shared/workers.h"
#include "store/meta.h"
#include "utils/rel.h"

/*
 * A worker waits this long for the index lock that learning takes.  Other
 * processes queue behind a lock request, so it is about one time slice of a
 * worker (worker.c).
 */
#define LEARN_WAIT_MS		100

void
hyb_merge_job_begin(HybMergeJob *job)
{
	memset(job, 0, sizeof(*job));
	job->entry = -1;
}

void
hyb_merge_job_end(HybMergeJob *job)
{
	hyb_progress_end(job->entry);
	job->entry = -1;
}

/*
 * A step was done, or a generation frozen.  What is reported is of the
 * generation that is being merged.
 */
static void
report_merge_progress(HybIndex *ix, HybMergeJob *job, const HybMetaPage *meta)
{
	HybProgress now = {0};

	if (meta->frozen.number != 0 && meta->frozen.number != job->generation)
	{
		job->generation = meta->frozen.number;
		job->total = meta->frozen.nentries;
		job->start = meta->merged_entries;
		job->moved_start = meta->moved_entries;
	}
	else if (job->generation == 0 && job->entry < 0)
	{
		job->start = meta->merged_entries;
		job->moved_start = meta->moved_entries;
	}
	if (job->entry < 0)
		job->entry = hyb_progress_begin(MyDatabaseId, RelationGetRelid(ix->rel),
										job->total);
	now.entries_total = job->total;
	now.entries_done = Min(meta->merged_entries - job->start, job->total);
	now.entries_moved = meta->moved_entries - job->moved_start;
	now.pass_level = meta->pass_level;
	now.steps = ++job->steps;
	hyb_progress_update(job->entry, &now);
}

/* The merge lock is held. */
static bool
next_step(HybIndex *ix, HybMergeMode mode, HybMergeWanted wanted, void *arg)
{
	int			learn_wait_ms = mode == HYB_MERGE_HELP ? 0 : LEARN_WAIT_MS;

	if (hyb_merge_step(ix))
		return true;
	if (!wanted(ix, arg) ||
		!(hyb_merge_learn(ix, learn_wait_ms) || hyb_merge_freeze(ix)))
		return false;
	if (mode == HYB_MERGE_HELP)
		(void) hyb_merge_step(ix);
	return true;
}

HybMergeOutcome
hyb_merge_job_step(HybIndex *ix, HybMergeJob *job, HybMergeMode mode,
				   HybMergeWanted wanted, void *arg)
{
	HybMetaPage meta;
	uint64		merged;
	bool		more;

	CHECK_FOR_INTERRUPTS();
	if (!hyb_merge_lock(ix->rel, mode == HYB_MERGE_WAIT))
		return HYB_MERGE_BUSY;
	hyb_meta_copy(ix, &meta);
	merged = meta.merged_entries;
	more = next_step(ix, mode, wanted, arg);
	hyb_meta_copy(ix, &meta);
	hyb_merge_unlock(ix->rel);
	if (mode != HYB_MERGE_HELP)
		HYB_POINT("merge-between");

	if (job != NULL)
		job->moved += meta.merged_entries - merged;
	if (job != NULL && more)
		report_merge_progress(ix, job, &meta);
	return more ? HYB_MERGE_MORE : HYB_MERGE_DONE;
}

/* What merges are done for: that nothing is left of a generation. */
typedef struct Goal
{
	uint64		generation;		/* active when they began */
	bool		one_level;		/* nor of newer static levels */
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

/* The index that merge_to is at; after an error, or the session's end, it was. */
static Oid	merging = InvalidOid;

/* What an end that came early has frozen is left to a worker. */
static void
leave_to_worker(void)
{
	if (OidIsValid(merging))
		(void) hyb_worker_ask(MyDatabaseId, merging, InvalidOid);
	merging = InvalidOid;
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

/* Steps until the goal is reached; returns the entries that they moved. */
static uint64
merge_to(HybIndex *ix, Goal *goal)
{
	static bool registered = false;
	HybMergeJob job;

	if (!registered)
	{
		RegisterXactCallback(job_transaction_ends, NULL);
		RegisterSubXactCallback(job_subtransaction_ends, NULL);
		registered = true;
	}
	if (hyb_merge_may_ask(ix))
		merging = RelationGetRelid(ix->rel);
	hyb_merge_job_begin(&job);
	PG_TRY();
	{
		/* whoever merges beside this one has the same end in view */
		while (hyb_merge_job_step(ix, &job, HYB_MERGE_WAIT, goal_is_active, goal) == HYB_MERGE_MORE &&
			   !goal_is_reached(ix, goal))
			HYB_VACUUM_DELAY_POINT();
	}
	PG_FINALLY();
	{
		hyb_merge_job_end(&job);
	}
	PG_END_TRY();
	merging = InvalidOid;
	return job.moved;
}

uint64
hyb_merge_all(HybIndex *ix)
{
	HybMetaPage meta;
	Goal		goal = {.one_level = true};

	/* whoever freezes the generation that is active now, it makes one level */
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
