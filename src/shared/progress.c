/*
 * progress.c
 *		Progress of running merges, for all backends to see.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "shared/workers.h"
#include "storage/procarray.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

typedef struct ProgressTable
{
	slock_t		mutex;			/* protects the entries */
	HybProgress entries[HYB_PROGRESS_ENTRIES];
} ProgressTable;

static ProgressTable *table = NULL;
static int	my_entry = -1;

#ifdef USE_ASSERT_CHECKING
/* An entry, with the mutex held. */
static void
progress_assert_valid(const HybProgress *progress)
{
	Assert(progress->pid != 0 && OidIsValid(progress->dbid) && OidIsValid(progress->relid));
	Assert(progress->entries_done <= progress->entries_total);
}
#else
#define progress_assert_valid(progress) ((void) (progress))
#endif

static void
init_progress_table(void *memory)
{
	SpinLockInit(&((ProgressTable *) memory)->mutex);
}

const HybSharedPart hyb_progress_part = {
	.address = (void **) &table,.size = sizeof(ProgressTable),.init = init_progress_table
};

/* A merge of a worker goes on over its commits, but not over an abort. */
static void
progress_xact_callback(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PARALLEL_ABORT)
		hyb_progress_end(my_entry);
}

/* Looks the process up, so not under the mutex. */
static bool
is_stale(int pid)
{
	return pid == MyProcPid || BackendPidGetProc(pid) == NULL;
}

int
hyb_progress_begin(Oid dbid, Oid relid, uint64 entries_total)
{
	static bool registered = false;
	TimestampTz now = GetCurrentTimestamp();

	if (!hyb_shared_init())
		return -1;
	if (!registered)
	{
		RegisterXactCallback(progress_xact_callback, NULL);
		registered = true;
	}
	hyb_progress_end(my_entry);

	for (int i = 0; i < HYB_PROGRESS_ENTRIES; i++)
	{
		HybProgress *progress = &table->entries[i];
		int			pid = *(volatile int *) &progress->pid;

		if (pid != 0 && !is_stale(pid))
			continue;
		SpinLockAcquire(&table->mutex);
		if (progress->pid == pid)
		{
			*progress = (HybProgress)
			{
				.dbid = dbid,.relid = relid,.pid = MyProcPid,
					.entries_total = entries_total,.started = now
			};
			my_entry = i;
		}
		SpinLockRelease(&table->mutex);
		if (my_entry == i)
			return i;
	}
	return -1;
}

void
hyb_progress_update(int entry, const HybProgress *now)
{
	HybProgress *progress;

	Assert(entry < HYB_PROGRESS_ENTRIES);
	if (entry < 0)
		return;
	progress = &table->entries[entry];
	SpinLockAcquire(&table->mutex);
	if (progress->pid == MyProcPid)
	{
		progress->entries_total = now->entries_total;
		progress->entries_done = now->entries_done;
		progress->entries_moved = now->entries_moved;
		progress->pass_level = now->pass_level;
		Assert(now->steps >= progress->steps);
		progress->steps = now->steps;
		progress_assert_valid(progress);
	}
	SpinLockRelease(&table->mutex);
}

void
hyb_progress_end(int entry)
{
	HybProgress *progress;

	if (entry < 0)
		return;
	progress = &table->entries[entry];
	SpinLockAcquire(&table->mutex);
	if (progress->pid == MyProcPid)
		progress->pid = 0;
	SpinLockRelease(&table->mutex);
	if (entry == my_entry)
		my_entry = -1;
}

bool
hyb_progress_read(int entry, HybProgress *progress)
{
	Assert(entry >= 0 && entry < HYB_PROGRESS_ENTRIES);
	if (!hyb_shared_init())
		return false;
	SpinLockAcquire(&table->mutex);
	*progress = table->entries[entry];
	SpinLockRelease(&table->mutex);
	return progress->pid != 0 && BackendPidGetProc(progress->pid) != NULL;
}
