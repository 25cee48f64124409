/*
 * job.c
 *		Merges as sequences of steps, each under a merge lock of its own, whose
 *		progress others can see; merging everything now.
 */
#include "compat.h"

#include "dynamic/progress.h"
#include "merge/facts.h"
#include "merge/learn.h"
#include "merge/job.h"
#include "miscadmin.h"
#include "page/meta.h"
#include "utils/rel.h"

/* What of the metapage tells how far merges have come. */
typedef struct MergeState
{
	uint64		active;			/* numbers of generations, 0: there is none */
	uint64		frozen;
	uint64		retiring;
	uint64		frozen_entries;
	uint64		merged;			/* entries that merges have moved */
} MergeState;

static MergeState
merge_state(HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	MergeState	state;

	state.active = meta->active.number;
	state.frozen = meta->frozen.number;
	state.retiring = meta->retiring.number;
	state.frozen_entries = meta->frozen.nentries;
	state.merged = meta->merged_entries;
	UnlockReleaseBuffer(metabuf);
	return state;
}

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
report(HybIndex *ix, HybMergeJob *job, const MergeState *state)
{
	if (state->frozen != 0 && state->frozen != job->generation)
	{
		job->generation = state->frozen;
		job->total = state->frozen_entries;
		job->start = state->merged;
	}
	else if (job->generation == 0)
		job->start = state->merged;
	if (job->entry < 0)
		job->entry = hyb_progress_begin(MyDatabaseId, RelationGetRelid(ix->rel),
										job->total);
	hyb_progress_update(job->entry, job->total,
						Min(state->merged - job->start, job->total),
						++job->steps);
}

HybMergeOutcome
hyb_merge_job_step(HybIndex *ix, HybMergeJob *job, bool wait,
				   HybMergeWanted wanted, void *arg)
{
	MergeState	before;
	MergeState	after;
	bool		more;

	CHECK_FOR_INTERRUPTS();
	if (!hyb_merge_lock(ix->rel, wait))
		return HYB_MERGE_BUSY;
	before = merge_state(ix);
	more = hyb_merge_step(ix);
	if (!more && wanted(ix, arg))
		more = hyb_merge_learn(ix, hyb_merge_policy->learn_wait_ms) || hyb_merge_freeze(ix);
	after = merge_state(ix);
	hyb_merge_unlock(ix->rel);
	HYB_POINT("merge-between");

	job->moved += after.merged - before.merged;
	if (more)
		report(ix, job, &after);
	return more ? HYB_MERGE_MORE : HYB_MERGE_DONE;
}

/*
 * Is the generation that was active when hyb_merge_all began still to be
 * frozen?
 */
static bool
goal_is_active(HybIndex *ix, void *arg)
{
	if (merge_state(ix).active > *(uint64 *) arg)
		return false;
	hyb_merge_request_joins(ix);
	return true;
}

static bool
goal_is_reached(HybIndex *ix, uint64 goal)
{
	MergeState	state = merge_state(ix);

	return state.active > goal &&
		(state.frozen == 0 || state.frozen > goal) &&
		(state.retiring == 0 || state.retiring > goal);
}

uint64
hyb_merge_all(HybIndex *ix)
{
	HybMergeJob job;
	uint64		goal = merge_state(ix).active;

	hyb_merge_job_begin(&job);
	PG_TRY();
	{
		/* whoever merges beside this one has the same end in view */
		while (hyb_merge_job_step(ix, &job, true, goal_is_active, &goal) == HYB_MERGE_MORE &&
			   !goal_is_reached(ix, goal))
			;
	}
	PG_FINALLY();
	{
		hyb_merge_job_end(&job);
	}
	PG_END_TRY();
	return job.moved;
}
