/*
 * shared.c
 *		The control structure in shared memory; locks for unique checks;
 *		claims on starting merge workers.
 */
#include "compat.h"

#include "common/hashfn.h"
#include "dynamic/shared.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "storage/shmem.h"
#include "utils/rel.h"

#define HYB_CONTROL_NAME "hybridindex 1"

HybControl *hyb_control = NULL;

Size
hyb_shared_size(void)
{
	return MAXALIGN(sizeof(HybControl));
}

static void
init_control(HybControl *control)
{
	memset(control, 0, sizeof(*control));
	control->control_tranche = LWLockNewTrancheId();
	control->tree_tranche = LWLockNewTrancheId();
	control->unique_tranche = LWLockNewTrancheId();
	LWLockInitialize(&control->lock.lock, control->control_tranche);
	pg_atomic_init_u64(&control->creations, 1);
	pg_atomic_init_u64(&control->total_bytes, 0);
	pg_atomic_init_u32(&control->nsegments, 0);
	SpinLockInit(&control->chunk_mutex);
	SpinLockInit(&control->claim_mutex);
	SpinLockInit(&control->progress_mutex);
	for (int i = 0; i < HYB_SLOT_BUCKETS; i++)
		control->buckets[i] = -1;
	for (int i = 0; i < HYB_SLOTS; i++)
	{
		HybSharedSlot *slot = &control->slots[i];

		LWLockInitialize(&slot->lock, control->tree_tranche);
		SpinLockInit(&slot->mutex);
		slot->next = -1;
		pg_atomic_init_u64(&slot->serial, 1);
		pg_atomic_init_u64(&slot->version_seq, 1);
		pg_atomic_init_u64(&slot->appended_gen, 0);
		for (int lane = 0; lane < HYB_LANES; lane++)
			pg_atomic_init_u64(&slot->appended[lane], 0);
	}
	for (int i = 0; i < HYB_UNIQUE_LOCKS; i++)
		LWLockInitialize(&control->unique_locks[i].lock,
						 control->unique_tranche);
}

/*
 * ShmemInitStruct after start-up takes from the slack of main shared memory,
 * as contrib/pg_prewarm does; it allocates nothing else, so this may be
 * called in a critical section (where an error is a PANIC as always, and the
 * names of the tranches, which only serve to display them, are left out).
 */
void
hyb_shared_init(void)
{
	static bool named = false;
	bool		found;

	if (hyb_control == NULL)
	{
		HybControl *control;

		LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
		control = ShmemInitStruct(HYB_CONTROL_NAME, hyb_shared_size(), &found);
		if (!found)
			init_control(control);
		LWLockRelease(AddinShmemInitLock);
		hyb_control = control;
	}
	if (!named && CritSectionCount == 0)
	{
		LWLockRegisterTranche(hyb_control->control_tranche, "hybrid_control");
		LWLockRegisterTranche(hyb_control->tree_tranche, "hybrid_tree");
		LWLockRegisterTranche(hyb_control->unique_tranche, "hybrid_unique");
		named = true;
	}
}

LWLock *
hyb_unique_lock(const HybIndex *ix, uint64 hash)
{
	uint64		file;

	if (ix->rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		return NULL;
	hyb_shared_init();
	file = (uint64) HYB_RELATION_DB(ix->rel) << 32 |
		HYB_RELATION_FILENUMBER(ix->rel);
	hash = hash_combine64(hash, hash_bytes_uint32_extended((uint32) file,
														   file >> 32));
	return &hyb_control->unique_locks[hash % HYB_UNIQUE_LOCKS].lock;
}

bool
hyb_worker_claim(Oid dbid, Oid relid)
{
	TimestampTz now = GetCurrentTimestamp();
	HybWorkerClaim *free_claim = NULL;
	bool		claimed = false;

	hyb_shared_init();
	SpinLockAcquire(&hyb_control->claim_mutex);
	for (int i = 0; i < HYB_WORKER_CLAIMS; i++)
	{
		HybWorkerClaim *claim = &hyb_control->claims[i];

		if (!OidIsValid(claim->dbid) || claim->until <= now)
			free_claim = claim;
		else if (claim->dbid == dbid && claim->relid == relid)
		{
			free_claim = NULL;
			break;
		}
	}
	if (free_claim != NULL)
	{
		free_claim->dbid = dbid;
		free_claim->relid = relid;
		free_claim->until = now + HYB_WORKER_CLAIM_MS * INT64CONST(1000);
		claimed = true;
	}
	SpinLockRelease(&hyb_control->claim_mutex);
	return claimed;
}

void
hyb_worker_release(Oid dbid, Oid relid)
{
	hyb_shared_init();
	SpinLockAcquire(&hyb_control->claim_mutex);
	for (int i = 0; i < HYB_WORKER_CLAIMS; i++)
	{
		HybWorkerClaim *claim = &hyb_control->claims[i];

		if (claim->dbid == dbid && claim->relid == relid)
			claim->dbid = InvalidOid;
	}
	SpinLockRelease(&hyb_control->claim_mutex);
}

int
hyb_worker_idle(Oid dbid)
{
	int			entry = -1;

	SpinLockAcquire(&hyb_control->claim_mutex);
	for (int i = 0; i < HYB_IDLE_WORKERS; i++)
	{
		if (!OidIsValid(hyb_control->idle[i].dbid))
			entry = i;
		else if (hyb_control->idle[i].dbid == dbid)
		{
			entry = -1;
			break;
		}
	}
	if (entry >= 0)
	{
		HybIdleWorker *idle = &hyb_control->idle[entry];

		idle->dbid = dbid;
		idle->relid = InvalidOid;
		idle->latch = &MyProc->procLatch;
	}
	SpinLockRelease(&hyb_control->claim_mutex);
	return entry;
}

Oid
hyb_worker_take(int entry, bool give_up)
{
	HybIdleWorker *idle = &hyb_control->idle[entry];
	Oid			relid;

	SpinLockAcquire(&hyb_control->claim_mutex);
	relid = idle->relid;
	if (give_up || OidIsValid(relid))
		idle->dbid = InvalidOid;
	SpinLockRelease(&hyb_control->claim_mutex);
	return relid;
}

bool
hyb_worker_assign(Oid dbid, Oid relid)
{
	Latch	   *latch = NULL;

	SpinLockAcquire(&hyb_control->claim_mutex);
	for (int i = 0; i < HYB_IDLE_WORKERS && latch == NULL; i++)
	{
		HybIdleWorker *idle = &hyb_control->idle[i];

		if (idle->dbid == dbid && !OidIsValid(idle->relid))
		{
			idle->relid = relid;
			latch = idle->latch;
		}
	}
	SpinLockRelease(&hyb_control->claim_mutex);
	if (latch != NULL)
		SetLatch(latch);
	return latch != NULL;
}
