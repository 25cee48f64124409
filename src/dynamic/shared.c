/*
 * shared.c
 *		The control structure in shared memory.
 */
#include "compat.h"

#include "dynamic/directory.h"
#include "dynamic/unique_lock.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/shmem.h"

#define HYB_CONTROL_NAME "hybridindex 2"

HybControl *hyb_control = NULL;

/* Where the partitions of uniqueness checks lie, behind the structure. */
#define PARTITIONS_OFFSET	CACHELINEALIGN(sizeof(HybControl))

static HybUniquePartitions *
partitions_of(HybControl *control)
{
	return (HybUniquePartitions *) ((char *) control + PARTITIONS_OFFSET);
}

static Size
databases_offset(void)
{
	return PARTITIONS_OFFSET + hyb_unique_shared_size();
}

Size
hyb_shared_size(void)
{
	return databases_offset() +
		MAXALIGN(mul_size(MaxBackends, sizeof(HybDatabase))) +
		hyb_directory_block_size(0);
}

HybDatabase *
hyb_databases(void)
{
	return (HybDatabase *) ((char *) hyb_control + databases_offset());
}

static void
init_control(HybControl *control)
{
	char	   *block;

	memset(control, 0, hyb_shared_size());
	control->control_tranche = LWLockNewTrancheId();
	control->tree_tranche = LWLockNewTrancheId();
	LWLockInitialize(&control->lock.lock, control->control_tranche);
	pg_atomic_init_u64(&control->creations, 1);
	pg_atomic_init_u64(&control->segments_made, 0);
	pg_atomic_init_u64(&control->segments_gone, 0);
	pg_atomic_init_u64(&control->private_bytes, 0);
	pg_atomic_init_u64(&control->idle_check, 0);
	SpinLockInit(&control->chunk_mutex);
	hyb_workers_init(&control->workers);
	SpinLockInit(&control->progress_mutex);
	control->ndatabases = MaxBackends;
	block = (char *) control + databases_offset() +
		MAXALIGN(mul_size(MaxBackends, sizeof(HybDatabase)));
	hyb_directory_init(control, block);
	hyb_unique_shared_init(partitions_of(control));
}

/*
 * ShmemInitStruct after start-up takes from the slack of main shared memory,
 * as contrib/pg_prewarm does.  It raises an error if that is used up.
 */
static HybControl *
find_or_make_control(void)
{
	HybControl *control;
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	control = ShmemInitStruct(HYB_CONTROL_NAME, hyb_shared_size(), &found);
	if (!found)
		init_control(control);
	LWLockRelease(AddinShmemInitLock);
	hyb_directory_attach_first((char *) control + hyb_shared_size() -
							   hyb_directory_block_size(0));
	return control;
}

/*
 * The same, but NULL if there is no memory.
 *
 * Catching the error without aborting anything is safe: ShmemInitStruct has
 * let go of its lock and taken its entry back by then.  elog.c sets the
 * holdoff counts to zero when it raises an error; locks, this one and those
 * of callers, are still held, so they are put back.
 */
static HybControl *
try_control(void)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	HybControl *volatile control = NULL;

	PG_TRY();
	{
		control = find_or_make_control();
	}
	PG_CATCH();
	{
		if (geterrcode() != ERRCODE_OUT_OF_MEMORY)
			PG_RE_THROW();
		MemoryContextSwitchTo(context);
		FlushErrorState();
		InterruptHoldoffCount = holdoff + 1;
		QueryCancelHoldoffCount = cancel_holdoff;
		LWLockRelease(AddinShmemInitLock);
	}
	PG_END_TRY();
	return control;
}

static void
name_tranches(void)
{
	LWLockRegisterTranche(hyb_control->control_tranche, "hybrid_control");
	LWLockRegisterTranche(hyb_control->tree_tranche, "hybrid_tree");
	LWLockRegisterTranche(hyb_unique_partitions()->tranche, "hybrid_unique");
}

void
hyb_shared_startup(void)
{
	hyb_control = find_or_make_control();
	name_tranches();
}

/*
 * Main shared memory is handed out and never taken back, so if once there is
 * not enough left for the control structure then there never will be, for any
 * process; and if one has made it then every other one finds it.  Hence one
 * attempt is enough, and all processes of a server get the same answer:
 * whoever has no control structure need not mind others that use one.
 */
bool
hyb_shared_init(void)
{
	static bool tried = false;

	if (likely(hyb_control != NULL))
		return true;
	if (tried)
		return false;
	Assert(CritSectionCount == 0);
	hyb_control = try_control();
	tried = true;
	if (hyb_control == NULL)
	{
		ereport(LOG,
				(errmsg("hybridindex works without shared memory, and so more slowly"),
				 errdetail("There is not enough spare shared memory for its control structure of %zu bytes.",
						   hyb_shared_size()),
				 errhint("Add \"hybridindex\" to \"shared_preload_libraries\" and restart the server.")));
		return false;
	}
	name_tranches();
	return true;
}

struct HybUniquePartitions *
hyb_unique_partitions(void)
{
	return partitions_of(hyb_control);
}
