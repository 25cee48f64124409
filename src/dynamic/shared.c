/*
 * shared.c
 *		The control structure in shared memory.
 */
#include "compat.h"

#include "dynamic/shared.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#define HYB_CONTROL_NAME "hybridindex 4"

static const HybSharedPart *const *parts = NULL;
static int	nparts = 0;
static char *control = NULL;

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

Size
hyb_shared_size(void)
{
	Size		size = 0;

	for (int i = 0; i < nparts; i++)
		size = add_size(size, part_size(i));
	return size;
}

static void
init_control(char *memory)
{
	memset(memory, 0, hyb_shared_size());
	for (int i = 0; i < nparts; i++)
	{
		if (parts[i]->init != NULL)
			parts[i]->init(memory);
		memory += part_size(i);
	}
}

static void
attach_control(char *memory)
{
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
 * ShmemInitStruct after start-up takes from the slack of main shared memory,
 * as contrib/pg_prewarm does.  It raises an error if that is used up.
 */
static char *
find_or_make_control(void)
{
	char	   *memory;
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	memory = ShmemInitStruct(HYB_CONTROL_NAME, hyb_shared_size(), &found);
	if (!found)
		init_control(memory);
	LWLockRelease(AddinShmemInitLock);
	return memory;
}

/*
 * The same, but NULL if there is no memory.
 *
 * Catching the error without aborting anything is safe: ShmemInitStruct has
 * let go of its lock and taken its entry back by then.  elog.c sets the
 * holdoff counts to zero when it raises an error; locks, this one and those
 * of callers, are still held, so they are put back.
 */
static char *
try_control(void)
{
	MemoryContext context = CurrentMemoryContext;
	uint32		holdoff = InterruptHoldoffCount;
	uint32		cancel_holdoff = QueryCancelHoldoffCount;
	char	   *volatile memory = NULL;

	PG_TRY();
	{
		memory = find_or_make_control();
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
	return memory;
}

void
hyb_shared_startup(void)
{
	attach_control(find_or_make_control());
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
	char	   *memory;

	if (likely(control != NULL))
		return true;
	if (tried)
		return false;
	Assert(CritSectionCount == 0);
	memory = try_control();
	tried = true;
	if (memory == NULL)
	{
		ereport(LOG,
				(errmsg("hybridindex works without shared memory, and so more slowly"),
				 errdetail("There is not enough spare shared memory for its control structure of %zu bytes.",
						   hyb_shared_size()),
				 errhint("Add \"hybridindex\" to \"shared_preload_libraries\" and restart the server.")));
		return false;
	}
	attach_control(memory);
	return true;
}
