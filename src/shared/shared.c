/*
 * shared.c
 *		The control structure in shared memory.
 *
 * Where the library is preloaded it lies in main shared memory.  Otherwise it
 * is a segment of dynamic shared memory, made by the first process that uses an
 * index: the slack of main shared memory is small, and any role can use it up.
 *
 * A package upgrade replaces the library while the server runs.  Processes that
 * have loaded the old build go on with it, later ones load the new one.  The two
 * cannot use one index, since three promises hold only among processes that
 * share memory: a merge drops hot copies, VACUUM marks entries of trees, and
 * inserters of one unique key meet.  So the first build that uses an index is
 * in charge until the server ends.  A process of another build gets an error
 * before it looks at an index.
 *
 * BuildInCharge says which build that is.  All builds read it, so its name and
 * layout stay as they are for ever.  Only processes of the build in charge look at
 * the control structure, so they know its layout.
 *
 * Working without it
 *
 * If the structure cannot be made, processes work without it: each has trees of
 * its own, and inserters of one unique key meet at a heavyweight lock alone.  They
 * must not work beside processes that have it, for the three promises above.  So
 * a process that works without it holds WITHOUT_LOCK in share mode, from before it
 * looks for the structure last until its transaction ends.  Each use of an index is
 * in a transaction, and begins with hyb_shared_init.  The structure is made
 *
 *	1. while no process has ever worked without it, which is while try_again is 0.
 *	   Before a process works without it, it sets try_again.  AddinShmemInitLock
 *	   is held for setting it, and for making the structure;
 *	2. or with WITHOUT_LOCK held exclusively, not more often than once in
 *	   AGAIN_MS.
 *
 * Let a process W work without the structure, and let the structure be made at a
 * time M.  Why does no process have it while W works?
 *
 *	- W locks before M.  Then W has set try_again before M, so the maker held the
 *	  lock exclusively, and W's transaction has ended at M.
 *	- W locks after M.  Then W looks for the structure after M, and finds it.
 *
 * The structure is never taken back.  So what W appends, merges or marks is done
 * before M, and lies in pages, which are the truth.  An inserter that has the
 * structure begins to search after M, and finds W's entry in the log.  No process
 * has a hot copy or a version in memory from before M: W forgets what it kept
 * when it comes to have the structure (index_cache.c).
 *
 * The lock belongs to the transaction, not to the session, since the end of a failed
 * transaction releases locks of sessions, too.  The end of a subtransaction does
 * not release it.  A prepared transaction keeps it, which is more than it needs.
 *
 * Members of a group of parallel processes do not conflict, so none of them takes
 * the lock exclusively.  If the leader works without the structure, it holds the
 * lock for as long as they live.  Standbys know no exclusive locks of relations
 * and objects, so the lock is one of the server's unused kind USERLOCK.
 *
 * If main shared memory has no room for BuildInCharge, it never will have, for any
 * process: it is handed out and never taken back.  Only then do builds work beside
 * each other.  None of them has shared memory, and they agree through pages and
 * heavyweight locks.
 */
#include "base/compat.h"

#include <sys/mman.h>
#ifdef __linux__
#include <sys/statvfs.h>
#endif

#include "access/parallel.h"
#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "shared/shared.h"
#include "storage/dsm_impl.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"

#ifndef HYB_SOURCES
#error "HYB_SOURCES, a checksum of the sources, is to be defined as in the Makefile"
#endif

StaticAssertDecl(sizeof(HYB_SOURCES) > 1, "the checksum of the sources is empty");

#define IN_CHARGE_NAME		"hybridindex build"
#define CONTROL_NAME		"hybridindex control"
#define BUILD_ROOM			64

/*
 * Once it could not be made it is not tried again for this time.  The process that
 * tries has others begin no transaction without it for DRAIN_MS at most.
 */
#define AGAIN_MS			60000
#define DRAIN_MS			100

/* Names nothing; WITHOUT_LOCK in the head of this file. */
#define WITHOUT_LOCK		0x48595742

typedef struct BuildInCharge
{
	char		build[BUILD_ROOM];	/* set once, under AddinShmemInitLock */
	pg_atomic_uint32 replaced;	/* the newest process known is of another
								 * build, as a worker would be */

	/*
	 * Written under AddinShmemInitLock, and not where the library is
	 * preloaded.  From its first value on, try_again is a hint, and so is
	 * draining: a process that tries again writes both without the lock.
	 */
	dsm_handle	control;		/* the segment with the control structure, or
								 * DSM_HANDLE_INVALID; set once */
	TimestampTz try_again;		/* it could not be made, so not before then;
								 * 0: that has not happened */
	TimestampTz draining;		/* until then a process tries to make it */
	char		unused[40];
} BuildInCharge;

StaticAssertDecl(sizeof(BuildInCharge) == 128, "BuildInCharge is the same in all builds");

static const HybSharedPart *const *parts = NULL;
static int	nparts = 0;
static char *control = NULL;
static BuildInCharge *in_charge = NULL;

/* The library was preloaded: all processes have the postmaster's build. */
static bool preloaded = false;

void
hyb_shared_define(const HybSharedPart *const *all_parts, int nall)
{
	parts = all_parts;
	nparts = nall;
}

static Size
part_size(int i)
{
	Size		more = parts[i]->more != NULL ? parts[i]->more() : 0;

	return CACHELINEALIGN(add_size(parts[i]->size, more));
}

static Size
control_size(void)
{
	Size		size = 0;

	for (int i = 0; i < nparts; i++)
		size = add_size(size, part_size(i));
	return size;
}

Size
hyb_shared_size(void)
{
	return add_size(control_size(), CACHELINEALIGN(sizeof(BuildInCharge)));
}

/*
 * The name of this build: a hash of the sources, of the macros that they were
 * compiled with, and of the sizes of what is shared.
 */
static const char *
this_build(void)
{
	static char name[BUILD_ROOM] = "";
	uint64		hash;

	if (name[0] != '\0')
		return name;
	hash = hash_bytes_extended((const unsigned char *) HYB_SOURCES,
							   sizeof(HYB_SOURCES) - 1, 0);
	for (int i = 0; i < nparts; i++)
		hash = hash_combine64(hash, part_size(i));
	snprintf(name, sizeof(name), "%08x%08x", (uint32) (hash >> 32), (uint32) hash);
	return name;
}

/* Is another build in charge?  False if that is not known. */
static bool
other_build(void)
{
	return in_charge != NULL && strcmp(in_charge->build, this_build()) != 0;
}

static void
init_shared_control(char *memory)
{
	memset(memory, 0, control_size());
	for (int i = 0; i < nparts; i++)
	{
		Assert(memory == (char *) CACHELINEALIGN(memory));
		if (parts[i]->init != NULL)
			parts[i]->init(memory);
		memory += part_size(i);
	}
}

static void
attach_control(char *memory)
{
	Assert(memory != NULL);
	control = memory;
	for (int i = 0; i < nparts; i++)
	{
		*parts[i]->address = memory;
		memory += part_size(i);
	}
	for (int i = 0; i < nparts; i++)
		if (parts[i]->attached != NULL)
			parts[i]->attached();
}

/*
 * Finds out which build is in charge, or puts this one in charge.
 * AddinShmemInitLock is held.
 */
static void
find_in_charge(void)
{
	bool		found;

	in_charge = ShmemInitStruct(IN_CHARGE_NAME, sizeof(BuildInCharge), &found);
	if (found)
		return;
	memset(in_charge, 0, sizeof(BuildInCharge));
	pg_atomic_init_u32(&in_charge->replaced, 0);
	strlcpy(in_charge->build, this_build(), BUILD_ROOM);
	in_charge->control = DSM_HANDLE_INVALID;
}

/*
 * The same, but false if the slack of main shared memory has no room for it.
 * contrib/pg_prewarm takes its memory there, too.
 *
 * Catching the error without aborting anything is safe: ShmemInitStruct has
 * let go of its lock and taken its entry back by then.  elog.c sets the
 * holdoff counts to zero when it raises an error; locks, ours and those of
 * callers, are still held, so they are put back.
 */
static bool
try_find_in_charge(void)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;

	PG_TRY();
	{
		find_in_charge();
	}
	PG_CATCH();
	{
		if (geterrcode() != ERRCODE_OUT_OF_MEMORY)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		InterruptHoldoffCount = holdoff;
		QueryCancelHoldoffCount = cancel_holdoff;
	}
	PG_END_TRY();
	return in_charge != NULL;
}

static bool
has_control(void)
{
	return *(volatile dsm_handle *) &in_charge->control != DSM_HANDLE_INVALID;
}

/*
 * Makes the control structure, unless it is there.  `alone`: no process works
 * without it.  Otherwise it is made only if it has not failed before.
 * Returns its segment if this process has made it.  AddinShmemInitLock is held.
 */
static dsm_segment *
make_control(bool alone)
{
	dsm_segment *seg;

	if (has_control() || (in_charge->try_again != 0 && !alone))
		return NULL;
	seg = hyb_create_segment(control_size());
	if (seg == NULL)
	{
		in_charge->try_again = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), AGAIN_MS);
		return NULL;
	}
	init_shared_control(dsm_segment_address(seg));
	dsm_pin_segment(seg);
	in_charge->control = dsm_segment_handle(seg);
	return seg;
}

/*
 * The segment of this build's control structure.  NULL if it could not be made, or
 * if another build is in charge.  Raises an error if this process cannot map it,
 * since other processes use it.
 */
static dsm_segment *
find_or_make_control(bool alone)
{
	dsm_segment *seg = NULL;
	bool		ours;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	ours = try_find_in_charge() && !other_build();
	if (ours)
		seg = make_control(alone);
	LWLockRelease(AddinShmemInitLock);

	if (seg == NULL && ours && has_control())
		seg = hyb_attach_segment(in_charge->control);
	return seg;
}

void
hyb_shared_startup(void)
{
	char	   *memory;
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	find_in_charge();
	memory = ShmemInitStruct(CONTROL_NAME, control_size(), &found);
	Assert(!found);
	init_shared_control(memory);
	LWLockRelease(AddinShmemInitLock);
	attach_control(memory);
	preloaded = true;
}

static void
report_other_build(int elevel)
{
	pg_atomic_write_u32(&in_charge->replaced, 1);
	ereport(elevel,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("hybridindex was updated while the server was running"),
			 errdetail("This session has loaded build %s of the library, while other sessions use hybrid indexes with build %s.",
					   this_build(), in_charge->build),
			 errhint("Restart the server.")));
}

/* ---- working without it ---- */

static const LOCKTAG without_tag = {
	.locktag_field1 = WITHOUT_LOCK,
	.locktag_type = LOCKTAG_USERLOCK,
	.locktag_lockmethodid = DEFAULT_LOCKMETHOD
};

/* This transaction works without the control structure: it has locked that. */
static bool without = false;

static void
transaction_ends(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_PARALLEL_COMMIT ||
		event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT ||
		event == XACT_EVENT_PREPARE)
		without = false;
}

/* Locks for the whole transaction.  Does not wait. */
static bool
lock_without(void)
{
	ResourceOwner owner = CurrentResourceOwner;
	bool		locked;

	CurrentResourceOwner = TopTransactionResourceOwner;
	locked = LockAcquire(&without_tag, ShareLock, false, true) != LOCKACQUIRE_NOT_AVAIL;
	CurrentResourceOwner = owner;
	return locked;
}

/*
 * It could not be made some time ago.  Tries it again, if no process works without
 * it.  While some do, transactions that would begin to wait for a moment.  Else
 * those that follow each other without a gap would keep it from being made for ever.
 */
static dsm_segment *
make_again(void)
{
	dsm_segment *seg;
	TimestampTz now = GetCurrentTimestamp();

	if ((now < in_charge->try_again && !HYB_POINT_ATTACHED("shared-again")) ||
		IsInParallelMode() || IsParallelWorker())
		return NULL;
	in_charge->try_again = TimestampTzPlusMilliseconds(now, AGAIN_MS);
	in_charge->draining = TimestampTzPlusMilliseconds(now, DRAIN_MS);
	for (int ms = 0;
		 LockAcquire(&without_tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL; ms++)
	{
		if (ms == DRAIN_MS)
			return NULL;
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
	HYB_POINT("shared-locked");
	seg = find_or_make_control(true);
	in_charge->draining = 0;
	LockRelease(&without_tag, ExclusiveLock, false);
	return seg;
}

/*
 * Work without it in this transaction, unless another process makes it just now:
 * returns its segment then.
 */
static dsm_segment *
work_without(void)
{
	static bool registered = false;

	if (!registered)
		RegisterXactCallback(transaction_ends, NULL);
	registered = true;
	for (int ms = 0;
		 (ms < DRAIN_MS && GetCurrentTimestamp() < in_charge->draining) || !lock_without(); ms++)
	{
		if (has_control())
			return find_or_make_control(false);
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000);
	}
	if (has_control())
		return find_or_make_control(false);
	without = true;
	return NULL;
}

static void
report_without(void)
{
	static bool reported = false;

	if (reported)
		return;
	reported = true;
	ereport(LOG,
			(errmsg("hybridindex works without shared memory, and so more slowly"),
			 errdetail("Its control structure of %zu bytes could not be made.",
					   control_size()),
			 errhint("Add \"hybridindex\" to \"shared_preload_libraries\" and restart the server.")));
}

/* The head of this file says how processes come to the same answer. */
static bool
try_init(void)
{
	static bool never = false;
	dsm_segment *seg = NULL;
	bool		again = false;

	if (likely(control != NULL))
		return true;
	if (never || without)
		return false;
	Assert(CritSectionCount == 0);
	if (in_charge == NULL || has_control() || in_charge->try_again == 0)
		seg = find_or_make_control(false);
	never = in_charge == NULL;
	if (seg == NULL && !never && !other_build() && IsTransactionState())
	{
		seg = make_again();
		again = seg != NULL;
		if (!again)
			seg = work_without();
	}
	if (seg != NULL)
	{
		attach_control(dsm_segment_address(seg));
		pg_atomic_write_u32(&in_charge->replaced, 0);
		if (again)
			ereport(LOG, (errmsg("hybridindex has shared memory from now on")));
	}
	else if (!other_build())
		report_without();
	return seg != NULL;
}

bool
hyb_shared_init(void)
{
	if (try_init())
		return true;
	if (other_build())
		report_other_build(ERROR);
	return false;
}

bool
hyb_shared_is_barred(void)
{
	if (try_init() || !other_build())
		return false;
	report_other_build(LOG);
	return true;
}

bool
hyb_shared_replaced(void)
{
	return !preloaded && in_charge != NULL &&
		pg_atomic_read_u32(&in_charge->replaced) != 0;
}

/* ---- segments of dynamic shared memory ---- */

/* After a failure to get shared memory, do not try again for so long. */
#define HYB_RETRY_MS		1000

/* Where the operating system keeps POSIX shared memory. */
#define HYB_SHM_PATH		"/dev/shm"

/*
 * File systems for shared memory may be small, that of a container by
 * default has 64 MB, and parallel queries need some of it too: half is theirs.
 */
uint64
hyb_segment_limit(void)
{
	static uint64 limit = 0;

	if (limit == 0)
	{
		limit = PG_UINT64_MAX;
#ifdef __linux__
		if (dynamic_shared_memory_type == DSM_IMPL_POSIX)
		{
			struct statvfs fs;

			if (statvfs(HYB_SHM_PATH, &fs) == 0 && fs.f_blocks > 0)
				limit = (uint64) fs.f_blocks * fs.f_frsize / 2 +
					(uint64) min_dynamic_shared_memory * 1024 * 1024;
		}
#endif
	}
	return limit;
}

/* And so is half of what is left. */
bool
hyb_segment_room(uint64 bytes)
{
#ifdef __linux__
	struct statvfs fs;

	if (dynamic_shared_memory_type == DSM_IMPL_POSIX &&
		min_dynamic_shared_memory == 0 &&
		statvfs(HYB_SHM_PATH, &fs) == 0 && fs.f_blocks > 0)
		return bytes <= (uint64) fs.f_bavail * fs.f_frsize / 2;
#endif
	return true;
}

/*
 * dsm_create, but NULL where that raises an error for want of resources.
 *
 * Catching the error without aborting anything is safe. dsm_create holds no
 * lock when it asks the operating system for memory.  When the server's table
 * of segments is full it returns NULL, as asked.  Without a resource owner
 * only a small descriptor in backend memory remembers the attempt. elog.c sets
 * the holdoff counts to zero when it raises an error; locks of callers (of a
 * btree's search whose comparison function uses an index of ours) are still held,
 * so they are put back.
 */
dsm_segment *
hyb_create_segment(Size size)
{
	static TimestampTz retry_at = 0;
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	dsm_segment *volatile seg = NULL;

	Assert(size > 0 && CritSectionCount == 0);
	if (retry_at != 0 && GetCurrentTimestamp() < retry_at)
		return NULL;

	CurrentResourceOwner = NULL;
	PG_TRY();
	{
		seg = dsm_create(size, DSM_CREATE_NULL_IF_MAXSEGMENTS);
	}
	PG_CATCH();
	{
		int			code = geterrcode();

		CurrentResourceOwner = owner;
		if (code == ERRCODE_QUERY_CANCELED || code == ERRCODE_ADMIN_SHUTDOWN ||
			code == ERRCODE_CRASH_SHUTDOWN)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		InterruptHoldoffCount = holdoff;
		QueryCancelHoldoffCount = cancel_holdoff;
	}
	PG_END_TRY();
	CurrentResourceOwner = owner;

	retry_at = seg != NULL ? 0 :
		GetCurrentTimestamp() + HYB_RETRY_MS * INT64CONST(1000);
	return seg;
}

dsm_segment *
hyb_attach_segment(dsm_handle handle)
{
	dsm_segment *seg = dsm_attach(handle);

	if (seg == NULL)
		elog(ERROR, "shared memory of hybridindex has vanished");
	dsm_pin_mapping(seg);
	return seg;
}

/*
 * Free the pages of a segment that is not read any more, though backends may
 * have it mapped.  Pages of the server's main segment are not touched.
 */
void
hyb_segment_free_pages(dsm_segment *seg)
{
#ifdef MADV_REMOVE
	if (min_dynamic_shared_memory == 0)
		(void) madvise(dsm_segment_address(seg), dsm_segment_map_length(seg),
					   MADV_REMOVE);
#endif
}
