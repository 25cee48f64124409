/*
 * workers.c
 *		Merge workers, and the indexes that wait for one, of all databases.
 *
 * All functions look at short arrays under one LWLock, the last in the order of
 * locks.  They raise no error and wait for nothing else.  Error handlers,
 * callbacks of transactions and before_shmem_exit callbacks may call them,
 * whatever other LWLocks their process holds.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "shared/workers.h"
#include "storage/latch.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

/* Requests that there can be at a time. */
#define HYB_REQUESTS			256

typedef enum WorkerState
{
	HYB_WORKER_FREE = 0,
	HYB_WORKER_AGAIN,			/* free, but kept for a process that may come
								 * again */
	HYB_WORKER_STARTING,
	HYB_WORKER_BUSY,
	HYB_WORKER_IDLE
} WorkerState;

typedef struct Worker
{
	WorkerState state;
	uint32		serial;			/* of this use of the entry */
	Oid			dbid;
	TimestampTz started;		/* when it was started */
	Latch	   *latch;			/* idle: of its PGPROC, which outlives it */
	Oid			owner;			/* of the indexes that it has taken lately */
	TimestampTz owner_since;	/* when it took the first of these */
} Worker;

typedef struct Request
{
	HybTask		task;			/* dbid is InvalidOid: the place is free */
	TimestampTz due;			/* no worker takes it before */
	int			wait_ms;		/* by which it was put off last; 0: never */
	bool		failed;			/* by an error */
	bool		asked_again;	/* since a worker took it, or since a sweep
								 * began: what that finds done may not be */
	HybWorkerRef taken;			/* by this worker, if that has the entry still */
} Request;

/* All of it is protected by the lock. */
typedef struct Workers
{
	LWLockPadded lock;
	int			tranche;
	uint32		serials;		/* given so far */
	Worker		workers[HYB_MAX_WORKERS];
	Request		requests[HYB_REQUESTS];
} Workers;

static Workers *all_workers = NULL;

#ifdef USE_ASSERT_CHECKING
/* The table of workers and the list, with the lock held. */
static void
workers_assert_valid(const Workers *workers)
{
	for (int i = 0; i < HYB_MAX_WORKERS; i++)
	{
		const Worker *worker = &workers->workers[i];

		Assert(worker->state >= HYB_WORKER_FREE && worker->state <= HYB_WORKER_IDLE);
		Assert(worker->serial <= workers->serials);
		Assert(worker->state <= HYB_WORKER_AGAIN ||
			   (worker->serial != 0 && OidIsValid(worker->dbid)));
		Assert(worker->state != HYB_WORKER_IDLE || worker->latch != NULL);
	}
	for (int i = 0; i < HYB_REQUESTS; i++)
	{
		const Request *request = &workers->requests[i];

		Assert(request->taken.number >= 0 && request->taken.number < HYB_MAX_WORKERS);
		Assert(request->taken.serial <= workers->serials);
		if (!OidIsValid(request->task.dbid))
			continue;
		Assert(OidIsValid(request->task.owner));
		Assert(OidIsValid(request->task.relid) || !request->task.look);
		/* a request that is put off waits for a time within the bounds */
		Assert(request->wait_ms >= 0 &&
			   request->wait_ms <= Max(HYB_FAILED_MS_MAX, HYB_LOCKED_MS_MAX));
		Assert(!request->failed || request->wait_ms > 0);
	}
}
#else
#define workers_assert_valid(workers) ((void) (workers))
#endif

static void
init_workers(void *memory)
{
	Workers    *workers = memory;

	workers->tranche = HYB_NEW_TRANCHE("hybrid_workers");
	LWLockInitialize(&workers->lock.lock, workers->tranche);
}

static void
name_workers_tranche(void)
{
	HYB_NAME_TRANCHE(all_workers->tranche, "hybrid_workers");
}

const HybSharedPart hyb_workers_part = {
	.address = (void **) &all_workers,.size = sizeof(Workers),
	.init = init_workers,.attached = name_workers_tranche
};

/* Callers have seen to it that there is a control structure. */
static Workers *
lock_workers(void)
{
	Assert(CritSectionCount == 0);
	LWLockAcquire(&all_workers->lock.lock, LW_EXCLUSIVE);
	workers_assert_valid(all_workers);
	return all_workers;
}

static void
unlock_workers(Workers *workers)
{
	workers_assert_valid(workers);
	LWLockRelease(&workers->lock.lock);
}

static bool
in_use(const Worker *worker, TimestampTz now)
{
	int			start_ms = HYB_POINT_ATTACHED("late-workers") ? 1000 : HYB_WORKER_START_MS;

	return worker->state > HYB_WORKER_AGAIN &&
		(worker->state != HYB_WORKER_STARTING ||
		 now < TimestampTzPlusMilliseconds(worker->started, start_ms));
}

static int
count_workers(const Workers *workers, TimestampTz now)
{
	int			n = 0;

	for (int i = 0; i < HYB_MAX_WORKERS; i++)
		n += in_use(&workers->workers[i], now);
	return n;
}

/* Will a worker of this database look at the list next? */
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

	Assert(ref->number >= 0 && ref->number < HYB_MAX_WORKERS && ref->serial != 0);
	return worker->serial == ref->serial ? worker : NULL;
}

static void
set_starting(Worker *worker, Oid dbid, TimestampTz now)
{
	worker->state = HYB_WORKER_STARTING;
	worker->dbid = dbid;
	worker->started = now;
	worker->latch = NULL;
}

/* ---- requests ---- */

static bool
is_taken(const Workers *workers, const Request *request)
{
	const Worker *worker = &workers->workers[request->taken.number];

	return request->taken.serial != 0 &&
		worker->serial == request->taken.serial &&
		worker->state == HYB_WORKER_BUSY;
}

/* Does it wait for a worker, now or later? */
static bool
waits(const Workers *workers, const Request *request)
{
	return OidIsValid(request->task.dbid) && !is_taken(workers, request);
}

/* Without an index: the sweep of a database; with neither: a free place. */
static Request *
find_request(Workers *workers, Oid dbid, Oid relid)
{
	for (int i = 0; i < HYB_REQUESTS; i++)
	{
		Request    *request = &workers->requests[i];

		if (request->task.dbid == dbid && request->task.relid == relid)
			return request;
	}
	return NULL;
}

static void
free_request(Request *request)
{
	memset(request, 0, sizeof(*request));
}

/* What the worker has taken, or NULL. */
static Request *
task_of(Workers *workers, const HybWorkerRef *ref)
{
	for (int i = 0; i < HYB_REQUESTS; i++)
	{
		Request    *request = &workers->requests[i];

		if (OidIsValid(request->task.dbid) &&
			request->taken.number == ref->number &&
			request->taken.serial == ref->serial)
			return request;
	}
	return NULL;
}

/* How much is lost with the request: a look, a merge that fails, a merge. */
static int
worth(const Request *request)
{
	return request->task.look ? 0 : request->failed ? 1 : 2;
}

/*
 * The request of the owner, or of any if that is InvalidOid, that is worth least, and
 * due last.  NULL if workers have taken all of them.  No sweep, which is worth what it
 * has displaced.
 */
static Request *
least_worth(Workers *workers, Oid owner)
{
	Request    *least = NULL;

	for (int i = 0; i < HYB_REQUESTS; i++)
	{
		Request    *request = &workers->requests[i];

		if (!OidIsValid(request->task.relid) || is_taken(workers, request) ||
			(OidIsValid(owner) && request->task.owner != owner))
			continue;
		if (least == NULL || worth(request) < worth(least) ||
			(worth(request) == worth(least) && request->due > least->due))
			least = request;
	}
	return least;
}

/* How many requests an owner has, in a hash table that is never full. */
typedef struct OwnerCount
{
	Oid			owner;
	int			n;
} OwnerCount;

#define OWNER_COUNTS	(2 * HYB_REQUESTS)

static int *
count_of(OwnerCount *counts, Oid owner)
{
	uint32		i = owner % OWNER_COUNTS;

	while (counts[i].n > 0 && counts[i].owner != owner)
		i = (i + 1) % OWNER_COUNTS;
	counts[i].owner = owner;
	return &counts[i].n;
}

/*
 * The request that this task's is to displace, or NULL.  It is of the owner that has
 * most, if that is more than the task's will have.  An owner's own merges are not
 * displaced for another one of its merges.  A sweep displaces any owner's request.
 */
static Request *
find_displaced(Workers *workers, const HybTask *task)
{
	OwnerCount	counts[OWNER_COUNTS] = {0};
	Oid			owner = task->owner;
	bool		is_sweep = !OidIsValid(task->relid);
	Request    *least;

	/* the task's will be one more */
	(*count_of(counts, owner))++;
	for (int i = 0; i < HYB_REQUESTS; i++)
		(*count_of(counts, workers->requests[i].task.owner))++;
	for (int i = 0; i < HYB_REQUESTS; i++)
	{
		Oid			other = workers->requests[i].task.owner;

		if (*count_of(counts, other) > *count_of(counts, owner))
			owner = other;
	}
	least = least_worth(workers, owner);
	if (least == NULL && is_sweep)
		return least_worth(workers, InvalidOid);
	if (least != NULL && owner == task->owner && !is_sweep && worth(least) > 1)
		return NULL;
	return least;
}

/* The request is for a merge, and due. */
static void
make_merge_due(Request *request, TimestampTz now)
{
	request->task.look = false;
	request->due = now;
	request->wait_ms = 0;
	request->failed = false;
	request->asked_again = false;
	request->taken.serial = 0;
}

static Request *note_request(Workers *workers, const HybTask *task, TimestampTz now);

/*
 * The request loses its place, to the sweep of its database if that is not on the list
 * yet.
 */
static void
displace(Workers *workers, Request *request, TimestampTz now)
{
	Request    *sweep = find_request(workers, request->task.dbid, InvalidOid);

	Assert(sweep != request && !is_taken(workers, request));
	if (sweep != NULL)
	{
		sweep->asked_again = true;
		free_request(request);
		return;
	}
	request->task.relid = InvalidOid;
	make_merge_due(request, now);
}

/* Returns NULL if there is no place; then a sweep of the database is asked for. */
static Request *
add_request(Workers *workers, const HybTask *task, TimestampTz now)
{
	Request    *request;

	while ((request = find_request(workers, InvalidOid, InvalidOid)) == NULL)
	{
		Request    *displaced = find_displaced(workers, task);

		if (displaced == NULL)
			break;
		displace(workers, displaced, now);
		/* that may have made the sweep that this is about */
		request = find_request(workers, task->dbid, task->relid);
		if (request != NULL)
			return request;
	}
	if (request != NULL)
	{
		request->task = *task;
		make_merge_due(request, now);
	}
	else if (OidIsValid(task->relid))
	{
		HybTask		sweep = {.dbid = task->dbid,.owner = task->owner};

		(void) note_request(workers, &sweep, now);
	}
	return request;
}

/* No worker takes the request for some time, longer each time. */
static void
put_off(Request *request, TimestampTz now, int least_ms, int most_ms)
{
	request->wait_ms = Min(Max(request->wait_ms * 2, least_ms), most_ms);
	request->due = TimestampTzPlusMilliseconds(now, request->wait_ms);
}

/*
 * What is due and has waited longest, or NULL.  A worker that has served one role
 * for a turn serves others first.  What another worker will look at next, of its
 * own database, is left to that.
 */
static Request *
oldest_request(Workers *workers, const Worker *worker, TimestampTz now)
{
	bool		turn_is_over =
		now >= TimestampTzPlusMilliseconds(worker->owner_since, HYB_TURN_MS);
	Request    *oldest = NULL;
	Request    *of_others = NULL;

	for (int i = 0; i < HYB_REQUESTS; i++)
	{
		Request    *request = &workers->requests[i];
		Oid			dbid = request->task.dbid;

		if (!waits(workers, request) || request->due > now ||
			(dbid != worker->dbid && somebody_comes(workers, dbid, now)))
			continue;
		if (oldest == NULL || request->due < oldest->due)
			oldest = request;
		if (request->task.owner != worker->owner &&
			(of_others == NULL || request->due < of_others->due))
			of_others = request;
	}
	return turn_is_over && of_others != NULL ? of_others : oldest;
}

/* ---- asking for workers, and serving requests ---- */

/*
 * Put the index on the list.  An insertion into an index shows that it is not
 * locked.  A request that has failed waits until its time comes.
 */
static Request *
note_request(Workers *workers, const HybTask *task, TimestampTz now)
{
	Request    *request = find_request(workers, task->dbid, task->relid);

	if (request == NULL)
		return add_request(workers, task, now);
	if (is_taken(workers, request) || !OidIsValid(task->relid))
		request->asked_again = true;
	else if (request->task.look || (request->due > now && !request->failed))
		make_merge_due(request, now);
	request->task.owner = task->owner;
	return request;
}

HybRequestOutcome
hyb_worker_request(Oid dbid, Oid relid, Oid owner, int most, HybWorkerRef *ref)
{
	HybTask		task = {.dbid = dbid,.relid = relid,.owner = owner};
	TimestampTz now = GetCurrentTimestamp();
	HybRequestOutcome outcome = HYB_REQUEST_REFUSED;
	struct Latch *latch = NULL;
	int			room = -1;
	int			running = 0;
	Request    *request = NULL;
	Workers    *workers;

	if (!hyb_shared_init())
		return HYB_REQUEST_REFUSED;
	workers = lock_workers();
	if (most > 0)
		request = note_request(workers, &task, now);
	if (request != NULL)
		outcome = HYB_REQUEST_NOTED;
	if (request != NULL && !is_taken(workers, request))
	{
		for (int i = 0; i < HYB_MAX_WORKERS; i++)
		{
			const Worker *worker = &workers->workers[i];

			if (in_use(worker, now))
				running++;
			else if (room < 0 || worker->state == HYB_WORKER_FREE)
				room = i;
			if (worker->state == HYB_WORKER_IDLE &&
				(latch == NULL || worker->dbid == dbid))
				latch = worker->latch;	/* or one elsewhere makes room */
		}
		if (room >= 0 && running < most &&
			(running == 0 || request->due <= now) &&
			!somebody_comes(workers, dbid, now))
		{
			workers->workers[room].serial = ++workers->serials;
			set_starting(&workers->workers[room], dbid, now);
			ref->number = room;
			ref->serial = workers->serials;
			outcome = HYB_REQUEST_START;
		}
	}
	unlock_workers(workers);
	if (latch != NULL && outcome == HYB_REQUEST_NOTED)
		SetLatch(latch);
	return outcome;
}

/* The request that has waited longest, or is to be served first, in any database. */
static const Request *
first_waiting(const Workers *workers)
{
	const Request *first = NULL;

	for (int i = 0; i < HYB_REQUESTS; i++)
	{
		const Request *request = &workers->requests[i];

		if (waits(workers, request) && (first == NULL || request->due < first->due))
			first = request;
	}
	return first;
}

/*
 * If there is no worker, and a request waits, the entry is that of a process which
 * starts in the request's database.
 */
static bool
start_for_waiting(Workers *workers, Worker *worker, TimestampTz now)
{
	const Request *first = first_waiting(workers);

	if (first == NULL || count_workers(workers, now) > 0)
		return false;
	set_starting(worker, first->task.dbid, now);
	return true;
}

bool
hyb_worker_has_failed(Oid dbid, Oid relid)
{
	Workers    *workers;
	const Request *request;
	bool		failed;

	if (!hyb_shared_init())
		return false;
	workers = lock_workers();
	request = find_request(workers, dbid, relid);
	failed = request != NULL && request->failed;
	unlock_workers(workers);
	return failed;
}

bool
hyb_worker_confirm(const HybWorkerRef *ref, Oid *dbid)
{
	Workers    *workers;
	Worker	   *worker;
	bool		confirmed;

	if (!hyb_shared_init())
		return false;
	workers = lock_workers();
	worker = find_worker(workers, ref);
	if (worker != NULL && worker->state == HYB_WORKER_AGAIN)
	{
		worker->state = HYB_WORKER_FREE;
		(void) start_for_waiting(workers, worker, GetCurrentTimestamp());
	}
	confirmed = worker != NULL && worker->state == HYB_WORKER_STARTING;
	if (confirmed)
	{
		worker->state = HYB_WORKER_BUSY;
		*dbid = worker->dbid;
	}
	unlock_workers(workers);
	return confirmed;
}

HybWorkerTask
hyb_worker_next(const HybWorkerRef *ref, HybTask *task)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	Worker	   *worker = find_worker(workers, ref);
	Request    *next;
	HybWorkerTask work = HYB_WORK_NONE;

	Assert(worker != NULL && task_of(workers, ref) == NULL);
	next = oldest_request(workers, worker, now);
	worker->state = HYB_WORKER_BUSY;
	if (next == NULL)
	{
		worker->state = HYB_WORKER_IDLE;
		worker->latch = &MyProc->procLatch;
	}
	else
	{
		*task = next->task;
		work = HYB_WORK_DATABASE;
	}
	if (next != NULL && next->task.dbid == worker->dbid)
	{
		next->taken = *ref;
		/* a sweep that has begun may have passed the index */
		next->asked_again = next->asked_again && OidIsValid(next->task.swept);
		work = HYB_WORK_TASK;
		if (worker->owner != next->task.owner)
		{
			worker->owner = next->task.owner;
			worker->owner_since = now;
		}
	}
	unlock_workers(workers);
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
	 * The first of the entries stay.  If all of the surplus workers went at
	 * once, no worker would be left.
	 */
	for (int i = 0; i < ref->number; i++)
		before += in_use(&workers->workers[i], now);
	yield = before >= most;
	for (int i = 0; i < HYB_REQUESTS && !yield; i++)
	{
		const Request *request = &workers->requests[i];

		yield = waits(workers, request) &&
			now >= TimestampTzPlusMilliseconds(request->due, wait_ms) &&
			!somebody_comes(workers, request->task.dbid, now);
	}
	unlock_workers(workers);
	return yield;
}

void
hyb_worker_done(const HybWorkerRef *ref, HybWorkResult result)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	Request    *request = task_of(workers, ref);

	if (request != NULL)
	{
		request->taken.serial = 0;
		if (result == HYB_WORK_DONE && !request->asked_again)
			free_request(request);
		else if (result == HYB_WORK_DONE && OidIsValid(request->task.relid))
			make_merge_due(request, now);
		else if (result == HYB_WORK_DONE)
		{
			/* the list may be full for long */
			request->task.swept = InvalidOid;
			put_off(request, now, HYB_FAILED_MS_MIN, HYB_FAILED_MS_MAX);
		}
		else if (result == HYB_WORK_AGAIN)
		{
			request->due = now;
			request->wait_ms = 0;
			request->failed = false;
		}
		else if (result == HYB_WORK_LOCKED)
			put_off(request, now, HYB_LOCKED_MS_MIN, HYB_LOCKED_MS_MAX);
		else
		{
			request->failed = true;
			put_off(request, now, HYB_FAILED_MS_MIN, HYB_FAILED_MS_MAX);
		}
	}
	unlock_workers(workers);
}

void
hyb_worker_swept(const HybWorkerRef *ref, Oid relid)
{
	Workers    *workers = lock_workers();
	Request    *request = task_of(workers, ref);

	Assert(request != NULL && !OidIsValid(request->task.relid));
	if (request != NULL)
		request->task.swept = relid;
	unlock_workers(workers);
}

void
hyb_worker_look_later(const HybWorkerRef *ref, const HybQuietMark *mark,
					  int64 wait_ms)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	Request    *request = task_of(workers, ref);

	Assert(request != NULL);
	if (request != NULL)
	{
		bool		merge = request->asked_again;

		make_merge_due(request, now);
		if (!merge)
		{
			request->task.look = true;
			request->task.mark = *mark;
			request->due = TimestampTzPlusMilliseconds(now, wait_ms);
		}
	}
	unlock_workers(workers);
}

void
hyb_workers_put_off(Oid dbid)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();

	for (int i = 0; i < HYB_REQUESTS; i++)
	{
		Request    *request = &workers->requests[i];

		if (waits(workers, request) && request->task.dbid == dbid &&
			request->due <= now)
			put_off(request, now, HYB_LOCKED_MS_MIN, HYB_LOCKED_MS_MAX);
	}
	unlock_workers(workers);
}

void
hyb_worker_hand_over(const HybWorkerRef *ref, Oid dbid)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	Worker	   *worker = find_worker(workers, ref);

	Assert(worker != NULL && task_of(workers, ref) == NULL);
	if (worker != NULL)
		set_starting(worker, dbid, now);
	unlock_workers(workers);
}

/*
 * Does another worker look after the database's requests?  One of any database
 * does, as it hands its entry over.  But one of the same spares that.
 */
static bool
is_looked_after(const Workers *workers, int number, Oid dbid)
{
	Oid			own_dbid = workers->workers[number].dbid;

	for (int i = 0; i < HYB_MAX_WORKERS; i++)
	{
		const Worker *worker = &workers->workers[i];

		if (i != number &&
			(worker->state == HYB_WORKER_BUSY || worker->state == HYB_WORKER_IDLE) &&
			(worker->dbid == dbid || dbid != own_dbid))
			return true;
	}
	return false;
}

bool
hyb_worker_may_leave(const HybWorkerRef *ref)
{
	Workers    *workers = lock_workers();
	bool		leave = true;

	for (int i = 0; i < HYB_REQUESTS && leave; i++)
	{
		const Request *request = &workers->requests[i];

		leave = !waits(workers, request) ||
			is_looked_after(workers, ref->number, request->task.dbid);
	}
	unlock_workers(workers);
	return leave;
}

bool
hyb_worker_end(const HybWorkerRef *ref, bool again)
{
	TimestampTz now = GetCurrentTimestamp();
	Workers    *workers = lock_workers();
	Worker	   *worker = find_worker(workers, ref);
	Request    *request = task_of(workers, ref);
	bool		start;

	if (request != NULL)
	{
		request->taken.serial = 0;
		request->due = now;
	}
	if (worker != NULL)
		worker->state = again ? HYB_WORKER_AGAIN : HYB_WORKER_FREE;
	start = worker != NULL && start_for_waiting(workers, worker, now);
	unlock_workers(workers);
	return start;
}

void
hyb_worker_not_started(const HybWorkerRef *ref, bool again)
{
	Workers    *workers = lock_workers();
	Worker	   *worker = find_worker(workers, ref);

	if (worker != NULL)
		worker->state = again ? HYB_WORKER_AGAIN : HYB_WORKER_FREE;
	unlock_workers(workers);
}

void
hyb_workers_forget(Oid dbid)
{
	Workers    *workers = lock_workers();

	for (int i = 0; i < HYB_REQUESTS; i++)
	{
		Request    *request = &workers->requests[i];

		if (request->task.dbid == dbid && !is_taken(workers, request))
			free_request(request);
	}
	unlock_workers(workers);
}
