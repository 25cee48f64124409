/*
 * workers.h
 *		Merge workers, and the indexes that wait for one, of all databases.
 *
 * A worker's entry is made by whoever starts the process, and belongs to the
 * process from hyb_worker_confirm on until it ends.  Entries of processes that
 * have not come to that within HYB_WORKER_START_MS are free again; a process
 * that comes later finds that out, and ends.  Others do not expire.
 *
 * What waits is served in the order in which it was asked for, whichever
 * database it is of: a worker that is done with an index, while one of another
 * database has waited longest, hands its entry over to a new process there.
 */
#ifndef HYB_WORKERS_H
#define HYB_WORKERS_H

#include "postgres.h"

#include "datatype/timestamp.h"
#include "dynamic/shared.h"
#include "page/settings.h"

/* A process that was started is expected to be there within so many ms. */
#define HYB_WORKER_START_MS		10000

/*
 * An index whose merge has failed is left alone for so long, twice as long
 * each time that it fails again, up to a limit.
 */
#define HYB_FAILED_MS_MIN		1000
#define HYB_FAILED_MS_MAX		60000

/* A worker's entry, in one use of it. */
typedef struct HybWorkerRef
{
	int			number;
	uint32		serial;
} HybWorkerRef;

typedef enum HybRequestOutcome
{
	HYB_REQUEST_NOTED,			/* a worker has it, or will come to it, or it
								 * has failed lately */
	HYB_REQUEST_START,			/* the same, but the caller starts it */
	HYB_REQUEST_REFUSED			/* too many wait already, or none may run */
} HybRequestOutcome;

extern const HybSharedPart hyb_workers_part;

/*
 * Ask for a worker to merge an index; at most `most` run at a time.  With
 * HYB_REQUEST_START *ref is the entry of the process to start.
 */
extern HybRequestOutcome hyb_worker_request(Oid dbid, Oid relid, int most,
											HybWorkerRef *ref);

/* The process could not be started; nor shall the index wait for one. */
extern void hyb_worker_not_started(const HybWorkerRef *ref, Oid dbid,
								   Oid relid);

/* ---- for workers ---- */

/* The process is there.  False: its entry was given away meanwhile. */
extern bool hyb_worker_confirm(const HybWorkerRef *ref);

typedef enum HybWork
{
	HYB_WORK_NONE,				/* nothing; the worker is idle */
	HYB_WORK_INDEX,				/* merge this index */
	HYB_WORK_DATABASE			/* start a worker in this database, and end */
} HybWork;

/*
 * What a worker does next that has no index, or was idle and may have been
 * given one.  With HYB_WORK_DATABASE *ref is the new process's entry, and the
 * caller has none.
 */
extern HybWork hyb_worker_next(HybWorkerRef *ref, Oid *id);

/*
 * Should it let go of its index: because another one has waited for wait_ms,
 * or since there are more workers than `most`, and it is one too many?
 */
extern bool hyb_worker_should_yield(const HybWorkerRef *ref, int wait_ms,
									int most);

typedef enum HybWorkResult
{
	HYB_WORK_DONE,				/* nothing is left to merge: earlier failures
								 * are forgotten */
	HYB_WORK_LEFT,				/* left to whoever asks for it again */
	HYB_WORK_AGAIN				/* its turn has ended: it waits for the next */
} HybWorkResult;

/* The caller, which is busy, has no index any more. */
extern void hyb_worker_done(const HybWorkerRef *ref, HybWorkResult result);

/* The same, with an error: no worker takes the index for some time. */
extern void hyb_worker_failed(const HybWorkerRef *ref);

/*
 * An idle worker wants to end; false: it has been given an index, or one waits.
 */
extern bool hyb_worker_leave(const HybWorkerRef *ref);

/*
 * The worker ends; nothing is done if it has no entry any more.  An index that
 * it was given and has not done waits for another worker.
 */
extern void hyb_worker_release(const HybWorkerRef *ref);

/*
 * Does something wait, and is there no worker that will come to it?  Then *ref
 * is the entry of a process for the caller to start in *dbid.
 */
extern bool hyb_worker_for_waiting(Oid *dbid, HybWorkerRef *ref);

/* Nothing of this database waits any more. */
extern void hyb_workers_forget(Oid dbid);

#endif							/* HYB_WORKERS_H */
