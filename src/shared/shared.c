/*
 * shared.c
 *		The control structure in shared memory.
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
 * layout stay as they are for ever.  The control structure's name contains the
 * build, so a process that finds it knows its layout.
 */
#include "base/compat.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "shared/shared.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

#ifndef HYB_SOURCES
#error "HYB_SOURCES, a checksum of the sources, is to be defined as in the Makefile"
#endif

StaticAssertDecl(sizeof(HYB_SOURCES) > 1, "the checksum of the sources is empty");

#define IN_CHARGE_NAME		"hybridindex build"
#define CONTROL_PREFIX		"hybridindex "
#define BUILD_ROOM			64

typedef struct BuildInCharge
{
	char		build[BUILD_ROOM];	/* set once, under AddinShmemInitLock */
	pg_atomic_uint32 replaced;	/* the newest process known is of another
								 * build, as a worker would be */
	char		unused[60];
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
 * ShmemInitStruct after start-up takes from the slack of main shared memory,
 * as contrib/pg_prewarm does.  It raises an error if that is used up.  NULL if
 * another build is in charge.
 */
static char *
find_or_make_control(void)
{
	char		name[sizeof(CONTROL_PREFIX) + BUILD_ROOM];
	char	   *memory = NULL;
	bool		found;

	snprintf(name, sizeof(name), "%s%s", CONTROL_PREFIX, this_build());
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	in_charge = ShmemInitStruct(IN_CHARGE_NAME, sizeof(BuildInCharge), &found);
	if (!found)
	{
		memset(in_charge, 0, sizeof(BuildInCharge));
		pg_atomic_init_u32(&in_charge->replaced, 0);
		strlcpy(in_charge->build, this_build(), BUILD_ROOM);
	}
	if (!other_build())
	{
		memory = ShmemInitStruct(name, control_size(), &found);
		if (!found)
			init_shared_control(memory);
	}
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
	char	   *memory = find_or_make_control();

	if (memory != NULL)
		attach_control(memory);
	preloaded = memory != NULL;
}

static void
report_other_build(int elevel)
{
	pg_atomic_write_u32(&in_charge->replaced, 1);
	ereport(elevel,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("hybridindex was updated while the server was running"),
			 errdetail("This session has loaded build %s of the library, while others use hybrid indexes with build %s.",
					   this_build(), in_charge->build),
			 errhint("Restart the server.")));
}

/*
 * Main shared memory is handed out and never taken back, so if once there is
 * not enough left for the control structure then there never will be, for any
 * process; and if one has made it then every other one finds it.  Hence one
 * attempt is enough, and all processes of a server get the same answer:
 * whoever has no control structure need not mind others that use one.
 *
 * That is so for processes of one build.  Another build may need less memory, so
 * it is refused even where the build in charge found none.  Builds work beside
 * each other only where BuildInCharge itself found no room: none of them has
 * shared memory then, and they agree through pages and heavyweight locks.
 */
static bool
try_init(void)
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
	if (memory != NULL)
	{
		attach_control(memory);
		pg_atomic_write_u32(&in_charge->replaced, 0);
	}
	else if (!other_build())
		ereport(LOG,
				(errmsg("hybridindex works without shared memory, and so more slowly"),
				 errdetail("There is not enough spare shared memory for its control structure of %zu bytes.",
						   hyb_shared_size()),
				 errhint("Add \"hybridindex\" to \"shared_preload_libraries\" and restart the server.")));
	return memory != NULL;
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
