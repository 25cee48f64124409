/*
 * shared.h
 *		What backends share: the control structure.
 *
 * The control structure lies in main shared memory, is made on first use and
 * is small enough for the slack that every server keeps.  It holds
 *
 *		- the directory of slots, one for each index in use (slot.h),
 *		- the table of memory segments that hold the trees (arena.h),
 *		- the partition locks of uniqueness checks,
 *		- progress of merges (progress.h) and claims on starting workers.
 */
#ifndef HYB_SHARED_H
#define HYB_SHARED_H

#include "page/page.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#define HYB_SLOTS				256
#define HYB_SLOT_BUCKETS		256
#define HYB_UNIQUE_LOCKS		64
#define HYB_MAX_SEGMENTS		64
#define HYB_WORKER_CLAIMS		32
#define HYB_IDLE_WORKERS		4
#define HYB_PROGRESS_ENTRIES	16

/* A claim on starting a merge worker lasts at most this long. */
#define HYB_WORKER_CLAIM_MS		60000

/*
 * Which index, in which life of the server: what is cached in recovery
 * follows other rules and is not used after promotion.
 */
typedef struct HybSlotKey
{
	Oid			space;
	Oid			db;
	HybFileNumber file;
	uint32		in_recovery;
	uint64		incarnation;
} HybSlotKey;

/*
 * The shared state of one index; its trees are in a HybStage (catchup.h) of
 * the same number.
 *
 * Identity (key, serial) changes only with control->lock, `lock` and `mutex`
 * all held exclusively, so whoever holds any of them may rely on it.  serial
 * never repeats.
 *
 * appended[] is where each lane of the generation appended_gen ends: block
 * << 16 | pd_lower, 0 if nothing was appended that this slot has heard of.
 * It is written under the content lock of the lane's tail page (and mutex),
 * which makes it exact; see hyb_slot_publish.
 */
typedef struct HybSharedSlot
{
	LWLock		lock;			/* protects the stage */
	slock_t		mutex;
	int16		next;			/* in the bucket, or -1 */
	bool		used;
	HybSlotKey	key;
	TimestampTz last_use;		/* roughly; for eviction */
	uint64		tree_bytes;		/* of the stage; a hint unless locked */
	pg_atomic_uint64 serial;
	pg_atomic_uint64 version_seq;	/* + 1 when the metapage's version changes */
	pg_atomic_uint64 appended_gen;
	pg_atomic_uint64 appended[HYB_LANES];
} HybSharedSlot;

typedef struct HybSegment
{
	dsm_handle	handle;
	uint32		first;			/* number of its first chunk */
	uint32		nchunks;
} HybSegment;

typedef struct HybWorkerClaim
{
	Oid			dbid;			/* InvalidOid: free */
	Oid			relid;
	TimestampTz until;
} HybWorkerClaim;

/* A worker that has nothing to merge and waits a little for more. */
typedef struct HybIdleWorker
{
	Oid			dbid;			/* InvalidOid: free */
	Oid			relid;			/* what it is to merge next, or InvalidOid */
	struct Latch *latch;		/* of its PGPROC, which outlives it */
} HybIdleWorker;

/* A running merge; the entry is free if pid is 0. */
typedef struct HybProgress
{
	Oid			dbid;
	Oid			relid;
	int			pid;
	uint64		entries_total;
	uint64		entries_done;
	uint64		steps;
	TimestampTz started;
} HybProgress;

typedef struct HybControl
{
	LWLockPadded lock;			/* directory and segment table */
	int			control_tranche;
	int			tree_tranche;
	int			unique_tranche;

	/*
	 * Slots ever made.  A backend that found no slot for an index need not
	 * look again while this stays the same.
	 */
	pg_atomic_uint64 creations;

	/* arena.c */
	pg_atomic_uint64 total_bytes;	/* chunks in use */
	pg_atomic_uint32 nsegments;
	HybSegment	segments[HYB_MAX_SEGMENTS];
	slock_t		chunk_mutex;	/* protects the next two */
	uint32		free_chunks;	/* chain of free chunks, 0 ends it */
	uint32		nfree;

	/* slot.c */
	int16		buckets[HYB_SLOT_BUCKETS];
	HybSharedSlot slots[HYB_SLOTS];

	LWLockPadded unique_locks[HYB_UNIQUE_LOCKS];

	slock_t		claim_mutex;	/* protects the next two */
	HybWorkerClaim claims[HYB_WORKER_CLAIMS];
	HybIdleWorker idle[HYB_IDLE_WORKERS];

	slock_t		progress_mutex;
	HybProgress progress[HYB_PROGRESS_ENTRIES];
} HybControl;

/* NULL until hyb_shared_init has been called in this backend. */
extern HybControl *hyb_control;

/*
 * Attach to the control structure, making it if there is none.  May be called
 * in a critical section.
 */
extern void hyb_shared_init(void);

/* Bytes to request from a shmem_request_hook, if the library is preloaded. */
extern Size hyb_shared_size(void);

/*
 * The partition lock that inserters of a key with this hash into a unique
 * index meet at; NULL for temporary relations.
 */
extern LWLock *hyb_unique_lock(const HybIndex *ix, uint64 hash);

/*
 * Mark that somebody is starting a merge worker for an index.  False if
 * somebody else's mark is there already, and not yet expired.
 */
extern bool hyb_worker_claim(Oid dbid, Oid relid);
extern void hyb_worker_release(Oid dbid, Oid relid);

/*
 * A worker makes known that it is idle, at most one of a database.  Returns
 * the number of its entry, or -1: it is not wanted.
 */
extern int	hyb_worker_idle(Oid dbid);

/*
 * The index that the idle worker has been given, with the claim on it, or
 * InvalidOid.  The entry is free then, or if the worker gives up.
 */
extern Oid	hyb_worker_take(int entry, bool give_up);

/* Give an index, claimed by the caller, to an idle worker if there is one. */
extern bool hyb_worker_assign(Oid dbid, Oid relid);

#endif							/* HYB_SHARED_H */
