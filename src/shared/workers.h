/*
 * workers.h
 *		Merge workers, and the list of indexes that wait for one, of all
 *		databases.
 *
 * A request is an index that a worker is to merge, or to look at later.  It stays
 * on the list until the work is done, the index is gone, or its database cannot
 * be connected to.  The worker that works on a request has its name on it.  When
 * that worker ends, for whatever reason, the request is free again.  A request
 * that cannot be served now has a time before which no worker takes it.
 *
 * A worker's entry is made by the process that starts the worker, and belongs to
 * the worker from hyb_worker_confirm on until it ends.  Entries of processes that
 * have not come to that within HYB_WORKER_START_MS are free again; a process
 * that comes later finds that out, and ends.  Others do not expire.
 *
 * The last worker does not end while requests wait.  If it has to, it starts
 * another process.  The server may have none to spare but this one's own place.  So
 * the worker ends with an error status then: the server starts it again after
 * HYB_WORKER_AGAIN_S, and it goes where a request has waited longest.
 *
 * Each request has an owner: the role that owns the index.  When the list is
 * full, a new request displaces one of the owner that has most.  A worker serves
 * other roles' requests after a turn with one role's.  So one role's many or
 * slow indexes do not keep another role's from being merged.  Else requests are
 * served in the order in which they are due, in all databases.  When a request
 * of another database has waited longest, a worker that is done hands its
 * entry over to a new process there.
 *
 * What is displaced, or finds no place, is not forgotten: a request for a sweep
 * of its database takes a place, that of any owner if it must.  Only a list that
 * has sweeps of HYB_REQUESTS databases takes no more of them.  The metapage of each
 * index says whether it has something to merge.  So a worker that sweeps looks at all
 * indexes of its database, and asks again for those that have.
 */
#ifndef HYB_WORKERS_H
#define HYB_WORKERS_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "shared/shared.h"

/* hybridindex.max_merge_workers is at most this. */
#define HYB_MAX_WORKERS		32

/*
 * A started process is expected to be there within this time.  The server starts
 * one that fails again, as one that could not load the library, this much later.
 */
#define HYB_WORKER_START_MS		60000
#define HYB_WORKER_AGAIN_S		2

/*
 * How long a worker stays with an index while requests wait, and with one
 * role's indexes while another role's wait.
 */
#define HYB_TURN_MS				1000

/*
 * After an error an index is left alone for the first time, twice as long after
 * each further one, up to the second time.  So is one that is locked, and one
 * in a database for which no process can be started.
 */
#define HYB_FAILED_MS_MIN		1000
#define HYB_FAILED_MS_MAX		60000
#define HYB_LOCKED_MS_MIN		100
#define HYB_LOCKED_MS_MAX		5000

/* A worker's entry, in one use of it. */
typedef struct HybWorkerRef
{
	int			number;
	uint32		serial;
} HybWorkerRef;

/* What an index looked like that may be quiet soon (merge/worker.c). */
typedef struct HybQuietMark
{
	uint64		generation;		/* the active one */
	uint64		entries;		/* of its log */
	int			looks;			/* so far */
} HybQuietMark;

/* What a worker is to do. */
typedef struct HybTask
{
	Oid			dbid;
	Oid			relid;			/* InvalidOid: sweep the database */
	Oid			owner;			/* of the index, or of one for which a sweep
								 * was asked for */
	bool		look;			/* only look whether the index is quiet */
	HybQuietMark mark;			/* if so, what it looked like before */
	Oid			swept;			/* a sweep: the last index that it has come to */
} HybTask;

typedef enum HybRequestOutcome
{
	HYB_REQUEST_NOTED,			/* it is on the list, and a worker will come */
	HYB_REQUEST_START,			/* the same, but the caller starts the worker */
	HYB_REQUEST_REFUSED			/* the list is full, or no worker may run */
} HybRequestOutcome;

extern const HybSharedPart hyb_workers_part;

/*
 * Ask for a worker to merge an index of a role's; at most `most` run at a time.
 * With HYB_REQUEST_START *ref is the entry of the process to start.
 */
extern HybRequestOutcome hyb_worker_request(Oid dbid, Oid relid, Oid owner,
											int most, HybWorkerRef *ref);

/* Is the index on the list, and did an error end its last merge by a worker? */
extern bool hyb_worker_has_failed(Oid dbid, Oid relid);

/* ---- for workers ---- */

/*
 * The process is there, and is to work in *dbid.  False: its entry was given
 * away meanwhile.
 */
extern bool hyb_worker_confirm(const HybWorkerRef *ref, Oid *dbid);

typedef enum HybWorkerTask
{
	HYB_WORK_NONE,				/* nothing is due; the worker is idle */
	HYB_WORK_TASK,				/* the worker has taken *task */
	HYB_WORK_DATABASE			/* task->dbid needs a worker */
} HybWorkerTask;

/* What a worker does next that has no task. */
extern HybWorkerTask hyb_worker_next(const HybWorkerRef *ref, HybTask *task);

/*
 * Should it let go of its task: because another one has waited for wait_ms,
 * or since there are more workers than `most`, and it is one too many?
 */
extern bool hyb_worker_should_yield(const HybWorkerRef *ref, int wait_ms,
									int most);

typedef enum HybWorkResult
{
	HYB_WORK_DONE,				/* nothing is left: the request goes, unless
								 * it came again meanwhile */
	HYB_WORK_AGAIN,				/* it is due again, after those that wait */
	HYB_WORK_LOCKED,			/* the table or the index is locked */
	HYB_WORK_FAILED				/* an error */
} HybWorkResult;

/* The worker has no task any more.  Without a task this has no effect. */
extern void hyb_worker_done(const HybWorkerRef *ref, HybWorkResult result);

/* The same: the index is to be looked at after wait_ms. */
extern void hyb_worker_look_later(const HybWorkerRef *ref,
								  const HybQuietMark *mark, int64 wait_ms);

/* A sweep has come to this index, and goes on after it if it stops here. */
extern void hyb_worker_swept(const HybWorkerRef *ref, Oid relid);

/*
 * The worker has no task and leaves its entry to a process that it is going to
 * start in another database.
 */
extern void hyb_worker_hand_over(const HybWorkerRef *ref, Oid dbid);

/*
 * May an idle worker end?  Not if no other worker would look after all that is on
 * the list.
 */
extern bool hyb_worker_may_leave(const HybWorkerRef *ref);

/*
 * The worker ends, and its task is free again.  Returns true if something is on the
 * list and there is no other worker: the entry is that of a process for the
 * worker to start.  `again`: the server starts the worker's own process again.
 */
extern bool hyb_worker_end(const HybWorkerRef *ref, bool again);

/*
 * That process could not be started, or the one of hyb_worker_hand_over, or
 * HYB_REQUEST_START.
 */
extern void hyb_worker_not_started(const HybWorkerRef *ref, bool again);

/* The database is gone, or accepts no connections: its requests go. */
extern void hyb_workers_forget(Oid dbid);

/* It is locked: what is due there is put off. */
extern void hyb_workers_put_off(Oid dbid);

/* ---- progress of running merges (progress.c) ---- */

#define HYB_PROGRESS_ENTRIES	16

/* A running merge; the entry is free if pid is 0. */
typedef struct HybProgress
{
	Oid			dbid;
	Oid			relid;
	int			pid;
	uint64		entries_total;	/* of the frozen generation */
	uint64		entries_done;
	uint64		entries_moved;	/* from one static level to another, after
								 * that */
	int			pass_level;		/* which they are moved from; 0: none */
	uint64		steps;
	TimestampTz started;
} HybProgress;

extern const HybSharedPart hyb_progress_part;

/* Returns the entry's number for the other calls, -1 if the table is full. */
extern int	hyb_progress_begin(Oid dbid, Oid relid, uint64 entries_total);

/* Numbers of entries and steps.  Entry -1 is allowed, and ignored. */
extern void hyb_progress_update(int entry, const HybProgress *now);
extern void hyb_progress_end(int entry);

/* Entry number `entry` of HYB_PROGRESS_ENTRIES; false if it is free. */
extern bool hyb_progress_read(int entry, HybProgress *progress);

#endif							/* HYB_WORKERS_H */
