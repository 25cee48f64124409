/*
 * job.h
 *		Merges as sequences of steps.
 */
#ifndef HYB_MERGE_JOB_H
#define HYB_MERGE_JOB_H

#include "merge/merge.h"

/*
 * The part of a backend in a merge, for hybrid_merge_progress and reports.
 * Progress is of the generation that is being merged, whoever does the steps.
 */
typedef struct HybMergeJob
{
	int			entry;			/* in the progress table; -1: none */
	uint64		generation;		/* being merged; 0: not known yet */
	uint64		total;			/* its entries */
	uint64		start;			/* of all merged ones, those before it */
	uint64		moved_start;	/* the same of those moved between levels */
	uint64		steps;			/* done by this job */
	uint64		moved;			/* entries that they moved */
} HybMergeJob;

typedef enum HybMergeOutcome
{
	HYB_MERGE_MORE,				/* did something; more may be left */
	HYB_MERGE_DONE,				/* nothing was left to do */
	HYB_MERGE_BUSY				/* somebody else is at it */
} HybMergeOutcome;

/* Asked where nothing frozen is left: is the active generation to be merged? */
typedef bool (*HybMergeWanted) (HybIndex *ix, void *arg);

extern void hyb_merge_job_begin(HybMergeJob *job);

/* Takes its progress off the list; after an error, too. */
extern void hyb_merge_job_end(HybMergeJob *job);

typedef enum HybMergeMode
{
	HYB_MERGE_WAIT,				/* waits for its turn, as hybrid_merge does */
	HYB_MERGE_TRY,				/* a worker: waits for no other merge */
	HYB_MERGE_HELP				/* an inserter: nor for the index to learn its
								 * dictionaries; it does a step of what it
								 * froze */
} HybMergeMode;

/*
 * One step, or freezing the active generation, under the merge lock, which is
 * released.  All merges go through here: whether the active generation is to be
 * frozen is asked under the lock under which it is frozen.  job: NULL if nothing
 * is reported.  No lock is held on entry.
 */
extern HybMergeOutcome hyb_merge_job_step(HybIndex *ix, HybMergeJob *job,
										  HybMergeMode mode,
										  HybMergeWanted wanted, void *arg);

#endif							/* HYB_MERGE_JOB_H */
