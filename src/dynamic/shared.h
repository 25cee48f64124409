/*
 * shared.h
 *		What backends share: the control structure.
 *
 * The control structure lies in main shared memory.  It is made at start-up
 * where the library is preloaded, else on first use, in the slack that every
 * server keeps.  If there is not enough of that left then there is none, for
 * as long as the server runs (shared.c), and backends do without.  It holds
 *
 *		- the directory of slots, one for each index in use (slot.h), and its
 *		  first block of slots,
 *		- the databases whose indexes are in use (database.c),
 *		- the table of memory segments that hold the trees (arena.c),
 *		- behind it, the partitions of uniqueness checks (unique_lock.h),
 *		- progress of merges (progress.h) and who does them (workers.h).
 */
#ifndef HYB_SHARED_H
#define HYB_SHARED_H

#include "dynamic/arena.h"
#include "dynamic/workers.h"
#include "page/meta.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#define HYB_FIRST_SLOTS			64	/* each block of slots has twice as many
									 * as the one before it */
#define HYB_SLOT_BLOCKS			12
#define HYB_SLOT_BUCKETS		1024
#define HYB_PROGRESS_ENTRIES	16

/*
 * Which index, and which bytes: what is cached in recovery follows other
 * rules and is not used after promotion; what was cached before a database
 * was moved, or made anew, is of an earlier life of it.
 */
typedef struct HybSlotKey
{
	Oid			space;
	Oid			db;
	HybFileNumber file;
	uint32		in_recovery;
	uint64		incarnation;
	uint64		life;			/* of the database, see database.c */
} HybSlotKey;

/*
 * The shared state of one index; its trees are in a HybStage (catchup.h) of
 * the same block.
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
	bool		used;
	int32		number;			/* of this slot; never changes */
	int32		next;			/* in the bucket or the free list, or -1 */
	uint32		stage_offset;	/* of the stage from here; never changes */
	HybSlotKey	key;
	Oid			relid;			/* of the index, when the slot was made */
	TimestampTz last_use;		/* roughly; for eviction */
	uint64		tree_bytes;		/* of the stage; a hint unless locked */
	pg_atomic_uint64 serial;
	pg_atomic_uint64 version_seq;	/* + 1 when the metapage's version changes */
	pg_atomic_uint64 appended_gen;
	pg_atomic_uint64 appended[HYB_LANES];
} HybSharedSlot;

/*
 * A database whose indexes are in use, or were.  Protected by control->lock.
 */
typedef struct HybDatabase
{
	Oid			db;				/* InvalidOid: free */
	Oid			space;			/* its tablespace */
	TransactionId xmin;			/* of its row in pg_database when a process
								 * entered last */
	uint32		nprocesses;		/* connected to it that know its slots */
	uint64		life;			/* never repeats */
} HybDatabase;

/*
 * A segment of the shared arena (arena.c).  Which chunk numbers it has follows
 * from its place in the table.
 */
typedef struct HybSegment
{
	uint64		serial;			/* never repeats; 0: there is none */
	dsm_handle	handle;
	uint32		nchunks;
	uint32		nfree;
	uint32		unused;			/* chunks from this one on were never used */
	uint32		free_chunks;	/* chain of those that were, 0 ends it */
} HybSegment;

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
	LWLockPadded lock;			/* directory of slots */
	int			control_tranche;
	int			tree_tranche;

	/*
	 * Slots ever made.  A backend that found no slot for an index need not
	 * look again while this stays the same.
	 */
	pg_atomic_uint64 creations;

	/* arena.c */
	pg_atomic_uint64 segments_made; /* ever, and the last one's serial */
	pg_atomic_uint64 segments_gone;
	pg_atomic_uint64 private_bytes; /* trees in backends' own memory */
	slock_t		chunk_mutex;	/* protects the next four */
	HybSegment	segments[HYB_MAX_SEGMENTS];
	uint32		nreserved;		/* chunks of all segments, but the fixed ones */
	uint32		nfree;			/* of these, free ones */
	uint32		nempty;			/* segments of free chunks only */
	pg_atomic_uint64 idle_check;	/* when idle trees were last looked for */

	/* directory.c; protected by `lock` but for the number of blocks */
	pg_atomic_uint32 nblocks;	/* at least 1; counts up when one is complete */
	dsm_handle	blocks[HYB_SLOT_BLOCKS];	/* the first lies behind this
											 * structure */
	int32		free_slots;		/* chain of free slots, -1 ends it */
	uint32		hand;			/* where to look for slots to evict */
	pg_atomic_uint64 evicted_at;	/* TimestampTz: when a slot went last
									 * whose index had something in its log */
	int32		buckets[HYB_SLOT_BUCKETS];	/* chains of slots */

	/* database.c */
	uint64		lives;			/* given out so far */
	uint32		ndatabases;		/* entries behind this structure */

	HybWorkers	workers;		/* workers.c */

	slock_t		progress_mutex;
	HybProgress progress[HYB_PROGRESS_ENTRIES];
} HybControl;

/*
 * NULL until hyb_shared_init has been called in this process, and then if
 * there is no control structure and will be none.
 */
extern HybControl *hyb_control;

/*
 * Attach to the control structure, making it if there is none.  Returns
 * whether there is one.  Not in a critical section.
 */
extern bool hyb_shared_init(void);

/* For a library that is preloaded: bytes to request, and making it. */
extern Size hyb_shared_size(void);
extern void hyb_shared_startup(void);

/* database.c: what lies behind the control structure */
extern HybDatabase *hyb_databases(void);

/*
 * The life of the database that this process is connected to; 0 without a
 * control structure.  The first call enters the process into the table of
 * databases: not in a critical section, and with control->lock not held.
 */
extern uint64 hyb_database_life(void);

/* The partitions of uniqueness checks; hyb_control must not be NULL. */
extern struct HybUniquePartitions *hyb_unique_partitions(void);

#endif							/* HYB_SHARED_H */
