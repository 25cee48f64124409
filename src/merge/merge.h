/*
 * merge.h
 *		Merging the dynamic stage into the static levels.
 *
 * The merge lock is a heavyweight lock on the index as an object, with a
 * sub-object number of its own, in mode ExclusiveLock.  Its holder changes the
 * static stage, or needs it to stand still.  It is released after each step, so
 * other processes wait for one step at most.  A heavyweight lock has deadlock
 * detection and release on error.  A page lock would not do: servers before 17
 * find no deadlock through those, and assert that no other lock is taken under
 * one, which comparison functions do.
 *
 * No LWLock is held when a process asks for the merge lock.  lock_timeout does
 * not count for it, and inserters do not wait for it (trigger.c).  Nothing
 * merges in recovery.
 */
#ifndef HYB_MERGE_H
#define HYB_MERGE_H

#include "datatype/timestamp.h"
#include "log/log.h"
#include "shared/workers.h"

/* Settings, hybridindex.* */
extern int	hyb_merge_floor;	/* merge_floor: entries below which the ratio
								 * starts no merge */
extern int	hyb_merge_step_pages;	/* leaves that a merge step reads */
extern int	hyb_max_merge_workers;	/* of the server at a time */
extern int	hyb_log_merge_ms;	/* log merges of workers that take as long;
								 * -1: none */
extern int	hyb_quiet_time;		/* ms without inserts after which an index is
								 * quiet (worker.c); -1: it never is */
extern int	hyb_test_levels;	/* servers with assertions: merges begin new
								 * levels up to this number */

/* Without `wait`, returns false if another process has the lock. */
extern bool hyb_merge_lock(Relation index, bool wait);
extern void hyb_merge_unlock(Relation index);

/* ---- the driver (driver.c): all steps go through it ---- */

/* What hybrid_merge_progress and the log say of the merges of a process. */
typedef struct HybMergeJob
{
	int			entry;			/* in the progress table; -1: none */
	uint64		generation;		/* being merged; 0: not known yet */
	uint64		total;			/* its entries */
	uint64		start;			/* merged_entries when it was frozen */
	uint64		moved_start;	/* moved_entries when it was frozen */
	uint64		steps;			/* of this job */
	uint64		moved;			/* entries that they moved */
	struct HybDeadMemory *dead; /* what they know of the table (dead.h); NULL:
								 * nothing */
} HybMergeJob;

/* How far moving leaves from the end of the file has come; zero it first. */
typedef struct HybMove
{
	BlockNumber cut;			/* pages from this block on move */
	bool		begun;
	int			level;			/* being worked on */
	HybPos		at;				/* where the next step begins in it */
	HybBuf		at_key;			/* key of `at` */
	uint64		moved;			/* leaves moved so far */
} HybMove;

typedef enum HybMergeMode
{
	HYB_MERGE_WAIT,				/* merge, and wait for the merge lock */
	HYB_MERGE_TRY,				/* a worker: does not wait for other merges */
	HYB_MERGE_HELP,				/* an inserter: does not wait, and does a step
								 * of what it froze */
	HYB_MERGE_LEARN,			/* an inserter: only learns dictionaries */
	HYB_MERGE_MOVE				/* moves leaves, and waits for the lock */
} HybMergeMode;

typedef struct HybMergeOrder
{
	HybMergeMode mode;

	/*
	 * Asked under the merge lock when nothing frozen is left: is the active
	 * generation to be frozen?
	 */
	bool		(*wanted) (HybIndex *ix, void *arg);
	void	   *arg;
	HybMergeJob *job;			/* to be reported; NULL: nothing is */
	HybMove    *move;			/* HYB_MERGE_MOVE only */
} HybMergeOrder;

typedef enum HybMergeOutcome
{
	HYB_MERGE_MORE,				/* did something; more may be left */
	HYB_MERGE_DONE,				/* nothing was left to do */
	HYB_MERGE_BUSY				/* another process has the merge lock */
} HybMergeOutcome;

/* Do one step under the merge lock.  No lock is held on entry or exit. */
extern HybMergeOutcome hyb_merge_drive(HybIndex *ix, const HybMergeOrder *order);

extern void hyb_merge_job_begin(HybMergeJob *job);

/* Takes the job off the progress table; also after an error. */
extern void hyb_merge_job_end(HybMergeJob *job);

/* ---- when and by whom (trigger.c) ---- */

/*
 * Merge everything that is in the index now into one level.  Waits for the merge
 * lock of each step.  Returns how many entries its own steps moved.
 */
extern uint64 hyb_merge_all(HybIndex *ix);

/* Merge what is in the log now into the newest level, and free its pages. */
extern void hyb_merge_log(HybIndex *ix);

/* Ask for a worker to merge an index of this role's.  False if none can come. */
extern bool hyb_merge_ask(Oid relid, Oid owner);

/* Start the process of an entry; false if the server has none to spare. */
extern bool hyb_worker_start(const HybWorkerRef *ref);

/*
 * When the library is loaded: defines settings, and has indexes merged that lose
 * their shared slots.
 */
extern void hyb_merge_init(void);

/*
 * Inserters and VACUUM call this now and then, with no lock held.  Asks for a
 * worker if a merge is wanted.  Does steps itself if no worker can come, or if
 * the dynamic stage has outgrown its hard bound.  Raises no error of that work,
 * but that the statement is cancelled.
 */
extern void hyb_merge_consider(HybIndex *ix);

/*
 * The list of requests does not outlive the server, and indexes may have no more
 * inserts.  So what was on it is asked for again by the first session that uses
 * any index of the database: it asks for a sweep.  Called before each use.
 */
extern void hyb_merge_consider_database(Relation index);

/* An inserter has filled a page: it catches the tree up, and does the same. */
extern void hyb_merge_after_full_page(HybIndex *ix);

/* Ask for a worker if the index has work for it, at once or after quiet time. */
extern void hyb_merge_ask_if_wanted(HybIndex *ix);

#endif							/* HYB_MERGE_H */
