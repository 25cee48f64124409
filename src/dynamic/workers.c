/*
 * workers.c
 *		Merge workers, and the indexes that wait for one, of all databases.
 *
 * All functions look at short arrays under one spinlock.
 */
#include "compat.h"

#include "dynamic/workers.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

/* Indexes that can wait at a time. */
#define HYB_MERGE_REQUESTS		128

/* Indexes whose merges have failed that are remembered. */
#define HYB_MERGE_FAILURES		32

typedef enum WorkerState
{
	HYB_WORKER_FREE = 0,
	HYB_WORKER_STARTING,
	HYB_WORKER_BUSY,
	HYB_WORKER_IDLE
} WorkerState;

typedef struct Worker
{
	WorkerState state;
	uint32		serial;			/* of this use of the entry */
	Oid			dbid;
	Oid			relid;			/* busy: what it merges, or InvalidOid */
	bool		asked_again;	/* that was asked for since it took it: what
								 * it finds done may not be */
	TimestampTz started;		/* when it was started */
	Latch	   *latch;			/* idle: of its PGPROC, which outlives it */
} Worker;

/* An index that waits for a worker. */
typedef struct Request
{
	Oid			dbid;			/* InvalidOid: free */
	Oid			relid;
	TimestampTz since;
} Request;

/* An index whose merge has failed, and not succeeded since. */
typedef struct Failure
{
	Oid			dbid;			/* InvalidOid: free */
	Oid			relid;
	int			wait_ms;		/* how long it is left alone */
	TimestampTz until;			/* and until when */
} Failure;

/* All of it is protected by the mutex. */
typedef struct Workers
{
	slock_t		mutex;
	uint32		serials;		/* given so far */
	Worker		workers[HYB_MAX_WORKERS];
	Request		requests[HYB_MERGE_REQUESTS];
	Failure		failures[HYB_MERGE_FAILURES];
} Workers;

static Workers *all_workers = NULL;

static void
init_workers(void *memory)
{
	SpinLockInit(&((Workers *) memory)->mutex);
}

const HybSharedPart hyb_workers_part = {
	.address = (void **) &all_workers,.size = sizeof(Workers),.init = init_workers
};

/* Callers have seen to it that there is a control structure. */
static Workers *
lock_workers(void)
{
	SpinLockAcquire(&all_workers->mutex);
	return all_workers;
}

static bool
in_use(const Worker *worker, TimestampTz now)
{
	return worker->state != HYB_WORKER_FREE &&
		(worker->state != HYB_WORKER_STARTING ||
		 now < TimestampTzPlusMilliseconds(worker->started, HYB_WORKER_START_MS));
}

static int
count_workers(const Workers *workers, TimestampTz now)
{
	int			n = 0;

	for (int i = 0; i < HYB_MAX_WORKERS; i++)
		n += in_use(&workers->workers[i], now);
	return n;
}

/* Will a worker of this database look for what waits? */
static bool
somebody_comes(const Workers *workers, Oid dbid, TimestampTz now)
{
	for (int i = 0; i < HYB_MAX_WORKERS; i++)
	{
		const Worker *worker = &workers->workers[i];

		if (in_use(worker, now) && worker->dbid == dbid &&
			(worker->state == HYB_WORKER_STARTING ||
			 worker->state == HYB_WORKER_IDLE))
			return true;
	}
	return false;
}

/* The entry of a worker that runs, or NULL. */
static Worker *
find_worker(Workers *workers, const HybWorkerRef *ref)
{
	Worker	   *worker = &workers->workers[ref->number];

	return worker->serial == ref->serial ? worker : NULL;
}

static void
make_starting(Workers *workers, int number, Oid dbid, TimestampTz now,
			  HybWorkerRef *ref)
{
	Worker	   *worker = &workers->workers[number];

	worker->state = HYB_WORKER_STARTING;
	worker->serial = ++workers->serials;
	worker->dbid = dbid;
	worker->relid = InvalidOid;
	worker->started = now;
	worker->latch = NULL;
	ref->number = number;
	ref->serial = worker->serial;
}

/* False if there is no room. */
static bool
add_request(Workers *workers, Oid dbid, Oid relid, TimestampTz now)
{
	Request    *room = NULL;

	for (int i = 0; i < HYB_MERGE_REQUESTS; i++)
	{
		Request    *request = &workers->requests[i];

		if (!OidIsValid(request->dbid))
			room = request;
		else if (request->dbid == dbid && request->relid == relid)
			return true;
	}
	if (room == NULL)
		return false;
	room->dbid = dbid;
	room->relid = relid;
	room->since = now;
	return true;
}

static void
remove_request(Workers *workers, Oid dbid, Oid relid)
{
	for (int i = 0; i < HYB_MERGE_REQUESTS; i++)
	{
		Request    *request = &workers->requests[i];

		if (request->dbid == dbid && request->relid == relid)
			request->dbid = InvalidOid;
	}
}

/*
 * What has waited longest, or NULL.  If it is for a worker of a database, what
 * a worker of another one will look for is left to that.
 */
static Request *
oldest_request(Workers *workers, Oid for_dbid, TimestampTz now)
{
	Request    *oldest = NULL;

	for (int i = 0; i < HYB_MERGE_REQUESTS; i++)
	{
		Request    *request = &workers->requests[i];

		if (OidIsValid(request->dbid) &&
			(oldest == NULL || request->since < oldest->since) &&
			(!OidIsValid(for_dbid) || request->dbid == for_dbid ||
			 !somebody_comes(workers, request->dbid, now)))
			oldest = request;
	}
	return oldest;
}

/* The worker merges this index of its database, and nobody else has to. */
static void
take_index(Workers *workers, Worker *worker, Oid relid)
{
	worker->state = HYB_WORKER_BUSY;
	worker->relid = relid;
	worker->asked_again = false;
	remove_request(workers, worker->dbid, relid);
}

/* ---- indexes that fail ---- */

static Failure *
find_failure(Workers *workers, Oid dbid, Oid relid)
{
	for (int i = 0; i < HYB_MERGE_FAILURES; i++)
	{
		Failure    *failure = &workers->failures[i];

		if (failure->dbid == dbid && failure->relid == relid)
			return failure;
	}
	return NULL;
}

/* The entry that is missed least: a free one, or one whose time ends first. */
static Failure *
add_failure(Workers *workers, Oid dbid, Oid relid)
{
	Failure    *room = &workers->failures[0];

	for (int i = 0; i < HYB_MERGE_FAILURES && OidIsValid(room->dbid); i++)
	{
		Failure    *failure = &workers->failures[i];

		if (!OidIsValid(failure->dbid) || failure->until < room->until)
			room = failure;
	}
	room->dbid = dbid;
	room->relid = relid;
	room->wait_ms = HYB_FAILED_MS_MIN / 2;
	return room;
}

void
hyb_worker_failed(const HybWorkerRef *ref)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	Worker	   *worker = find_worker(workers, ref);

	if (worker != NULL && OidIsValid(worker->relid))
	{
		Failure    *failure = find_failure(workers, worker->dbid, worker->relid);

		if (failure == NULL)
			failure = add_failure(workers, worker->dbid, worker->relid);
		failure->wait_ms = Min(failure->wait_ms * 2, HYB_FAILED_MS_MAX);
		failure->until = TimestampTzPlusMilliseconds(now, failure->wait_ms);
		worker->relid = InvalidOid;
	}
	SpinLockRelease(&workers->mutex);
}

/* ---- who merges what ---- */

HybRequestOutcome
hyb_worker_request(Oid dbid, Oid relid, int most, HybWorkerRef *ref)
{
	TimestampTz now = GetCurrentTimestamp();
	HybRequestOutcome outcome = HYB_REQUEST_REFUSED;
	struct Latch *latch = NULL;
	struct Latch *other = NULL;
	int			room = -1;
	const Failure *failure;
	Workers    *workers;

	if (!hyb_shared_init())
		return HYB_REQUEST_REFUSED;
	workers = lock_workers();
	failure = find_failure(workers, dbid, relid);
	if (failure != NULL && now < failure->until)
	{
		SpinLockRelease(&workers->mutex);
		return HYB_REQUEST_NOTED;
	}
	for (int i = 0; i < HYB_MAX_WORKERS; i++)
	{
		Worker	   *worker = &workers->workers[i];

		if (!in_use(worker, now))
			room = i;
		else if (worker->dbid == dbid && worker->relid == relid)
		{
			worker->asked_again = true;
			SpinLockRelease(&workers->mutex);
			return HYB_REQUEST_NOTED;
		}
	}
	for (int i = 0; i < HYB_MAX_WORKERS && latch == NULL; i++)
	{
		Worker	   *worker = &workers->workers[i];

		if (worker->state != HYB_WORKER_IDLE)
			continue;
		other = worker->latch;
		if (worker->dbid == dbid)
		{
			take_index(workers, worker, relid);
			latch = worker->latch;
			outcome = HYB_REQUEST_NOTED;
		}
	}
	if (latch == NULL && most > 0)
	{
		if (add_request(workers, dbid, relid, now))
			outcome = HYB_REQUEST_NOTED;
		if (room >= 0 && count_workers(workers, now) < most &&
			!somebody_comes(workers, dbid, now))
		{
			make_starting(workers, room, dbid, now, ref);
			outcome = HYB_REQUEST_START;
		}
		else
			latch = other;		/* one idle elsewhere makes room */
	}
	SpinLockRelease(&workers->mutex);
	if (latch != NULL)
		SetLatch(latch);
	return outcome;
}

void
hyb_worker_not_started(const HybWorkerRef *ref, Oid dbid, Oid relid)
{
	Workers    *workers = lock_workers();
	Worker	   *worker = find_worker(workers, ref);

	if (worker != NULL)
		worker->state = HYB_WORKER_FREE;
	remove_request(workers, dbid, relid);
	SpinLockRelease(&workers->mutex);
}

bool
hyb_worker_confirm(const HybWorkerRef *ref)
{
	Workers    *workers;
	Worker	   *worker;
	bool		confirmed;

	if (!hyb_shared_init())
		return false;
	workers = lock_workers();
	worker = find_worker(workers, ref);
	confirmed = worker != NULL && worker->state == HYB_WORKER_STARTING;
	if (confirmed)
		worker->state = HYB_WORKER_BUSY;
	SpinLockRelease(&workers->mutex);
	return confirmed;
}

HybWork
hyb_worker_next(HybWorkerRef *ref, Oid *id)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	Worker	   *worker = find_worker(workers, ref);
	Request    *next;
	HybWork		work;

	Assert(worker != NULL);
	if (OidIsValid(worker->relid))
	{
		*id = worker->relid;
		SpinLockRelease(&workers->mutex);
		return HYB_WORK_INDEX;
	}
	next = oldest_request(workers, worker->dbid, now);
	if (next == NULL)
	{
		worker->state = HYB_WORKER_IDLE;
		worker->latch = &MyProc->procLatch;
		work = HYB_WORK_NONE;
	}
	else if (next->dbid == worker->dbid)
	{
		*id = next->relid;
		take_index(workers, worker, *id);
		work = HYB_WORK_INDEX;
	}
	else
	{
		*id = next->dbid;
		make_starting(workers, ref->number, next->dbid, now, ref);
		work = HYB_WORK_DATABASE;
	}
	SpinLockRelease(&workers->mutex);
	return work;
}

bool
hyb_worker_should_yield(const HybWorkerRef *ref, int wait_ms, int most)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	int			before = 0;
	bool		yield;

	/*
	 * The first of the entries stay.  If all went that see that they are too
	 * many, what waits would be left to nobody.
	 */
	for (int i = 0; i < ref->number; i++)
		before += in_use(&workers->workers[i], now);
	yield = before >= most;
	for (int i = 0; i < HYB_MERGE_REQUESTS && !yield; i++)
	{
		const Request *request = &workers->requests[i];

		yield = OidIsValid(request->dbid) &&
			now >= TimestampTzPlusMilliseconds(request->since, wait_ms) &&
			!somebody_comes(workers, request->dbid, now);
	}
	SpinLockRelease(&workers->mutex);
	return yield;
}

void
hyb_worker_done(const HybWorkerRef *ref, HybWorkResult result)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	Worker	   *worker = find_worker(workers, ref);

	Assert(worker != NULL && OidIsValid(worker->relid));
	if (result == HYB_WORK_DONE)
	{
		Failure    *failure = find_failure(workers, worker->dbid, worker->relid);

		if (failure != NULL)
			failure->dbid = InvalidOid;
	}
	if (result == HYB_WORK_AGAIN || worker->asked_again)
		(void) add_request(workers, worker->dbid, worker->relid, now);
	worker->relid = InvalidOid;
	SpinLockRelease(&workers->mutex);
}

bool
hyb_worker_leave(const HybWorkerRef *ref)
{
	Workers    *workers = lock_workers();
	Worker	   *worker = find_worker(workers, ref);
	bool		leave = true;

	/* what was asked for just now was left to this one */
	if (worker != NULL)
		leave = worker->state == HYB_WORKER_IDLE &&
			oldest_request(workers, InvalidOid, 0) == NULL;
	if (leave && worker != NULL)
		worker->state = HYB_WORKER_FREE;
	SpinLockRelease(&workers->mutex);
	return leave;
}

void
hyb_worker_release(const HybWorkerRef *ref)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	Worker	   *worker = find_worker(workers, ref);

	if (worker != NULL)
	{
		if (OidIsValid(worker->relid))
			(void) add_request(workers, worker->dbid, worker->relid, now);
		worker->state = HYB_WORKER_FREE;
		worker->relid = InvalidOid;
	}
	SpinLockRelease(&workers->mutex);
}

bool
hyb_worker_for_waiting(Oid *dbid, HybWorkerRef *ref)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	Request    *next = NULL;

	if (count_workers(workers, now) == 0)
		next = oldest_request(workers, InvalidOid, now);
	if (next != NULL)
	{
		*dbid = next->dbid;
		make_starting(workers, 0, next->dbid, now, ref);
	}
	SpinLockRelease(&workers->mutex);
	return next != NULL;
}

void
hyb_workers_forget(Oid dbid)
{
	Workers    *workers = lock_workers();

	for (int i = 0; i < HYB_MERGE_REQUESTS; i++)
		if (workers->requests[i].dbid == dbid)
			workers->requests[i].dbid = InvalidOid;
	for (int i = 0; i < HYB_MERGE_FAILURES; i++)
		if (workers->failures[i].dbid == dbid)
			workers->failures[i].dbid = InvalidOid;
	SpinLockRelease(&workers->mutex);
}
