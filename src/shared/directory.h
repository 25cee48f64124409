/*
 * directory.h
 *		The shared directory of slots.
 *
 * Slots lie in blocks, each twice as large as the one before it: the first
 * behind the directory in the control structure, the others in dynamic shared
 * memory segments, which are never given back.  A hash table of chains, whose
 * links are slot numbers, finds the slot of an index.
 *
 * What every index has, slot or not, is a counter of changes, which it shares
 * with others of the same hash.
 */
#ifndef HYB_DIRECTORY_H
#define HYB_DIRECTORY_H

#include "common/hashfn.h"
#include "memtree/stage.h"
#include "shared/membership.h"
#include "shared/shared.h"
#include "shared/shared_arena.h"
#include "shared/unentered.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "store/handle.h"

#define HYB_SLOT_BLOCKS			13
#define HYB_SLOT_BUCKETS		1024
#define HYB_CHANGE_COUNTERS		1024

/*
 * Which index, and which bytes.  What is cached in recovery follows other
 * rules, and is not used after promotion.  What was cached before a database
 * was moved or made anew belongs to an earlier life.
 */
typedef struct HybSlotKey
{
	Oid			space;
	Oid			db;
	HybFileNumber file;
	uint32		in_recovery;
	uint64		incarnation;
	uint64		life;			/* of the database, see directory.c */
} HybSlotKey;

/* Which index a worker is to be asked for, and the role that owns it. */
typedef struct HybSlotIndex
{
	Oid			relid;
	Oid			owner;
} HybSlotIndex;

/*
 * The shared state of one index; its trees are in the shared arena.
 *
 * Identity (key, serial) changes only with the directory's lock, `lock` and
 * `mutex` all held exclusively, so holding any of them is enough to rely on
 * it. serial never repeats.
 *
 * appended[] is where each lane of the generation appended_gen ends
 * (hyb_lane_end), 0 if nothing was appended that this slot has heard of.  It
 * is written under the content lock of the lane's tail page (and mutex), which
 * makes it exact; see hyb_slot_publish.
 */
typedef struct HybSharedSlot
{
	LWLock		lock;			/* protects the stage */
	slock_t		mutex;
	bool		used;
	int32		number;			/* of this slot; never changes */
	int32		next;			/* in the bucket or the free list, or -1 */
	HybSlotKey	key;
	HybSlotIndex index;			/* as it was when the slot was made */
	TimestampTz last_use;		/* roughly; for eviction */
	TimestampTz last_whole;		/* roughly: use that needed all entries */
	uint64		tree_bytes;		/* of the stage; a hint unless locked */
	pg_atomic_uint64 serial;
	pg_atomic_uint64 appended_gen;
	pg_atomic_uint64 appended[HYB_LANES];
	HybUnentered unentered;
	bool		together;		/* the last append was of gathered entries; a
								 * hint, written without lock */
	HybStage	stage;
	HybMembership membership;	/* of a unique index */
} HybSharedSlot;

/* Where the shared slot says that a lane ends; 0: it has heard of nothing. */
static inline uint64
hyb_slot_appended(HybSharedSlot *shared, uint64 generation, int lane)
{
	if (pg_atomic_read_u64(&shared->appended_gen) != generation)
		return 0;
	pg_read_barrier();
	return pg_atomic_read_u64(&shared->appended[lane]);
}

/* Equal for all keys of a relation file. */
static inline uint32
hyb_slot_file_hash(const HybSlotKey *key)
{
	uint32		file[3] = {key->space, key->db, key->file};

	return hash_bytes((const unsigned char *) file, sizeof(file));
}

/* In the control structure. */
typedef struct HybDirectory
{
	LWLockPadded lock;			/* protects all but what is atomic */
	int			lock_tranche;
	int			tree_tranche;	/* of the slots' locks */

	/*
	 * Slots ever made.  A backend that found no slot for an index need not
	 * look again while this stays the same.
	 */
	pg_atomic_uint64 creations;
	pg_atomic_uint32 nblocks;	/* at least 1; counts up when one is complete */
	pg_atomic_uint64 evicted_at;	/* TimestampTz: when a slot went last
									 * whose index had something in its log */
	dsm_handle	blocks[HYB_SLOT_BLOCKS];	/* but of the first, which lies
											 * behind this */
	int32		free_slots;		/* chain of free slots, -1 ends it */
	uint32		hand;			/* where to look for slots to evict */
	uint32		retired;		/* membership filters that are to be freed, a
								 * chain; 0 ends it */
	pg_atomic_uint64 retirements;	/* filters that ever were */
	int32		buckets[HYB_SLOT_BUCKETS];	/* chains of slots */

	/*
	 * By hash of the relation file: + 1 when the metapage's version changes,
	 * or a lane of the active generation gets its first page (index_cache.c).
	 */
	pg_atomic_uint64 changes[HYB_CHANGE_COUNTERS];
} HybDirectory;

#ifdef USE_ASSERT_CHECKING
/* A slot that is in use; its mutex, its lock or the directory's is held. */
extern void hyb_shared_slot_assert_valid(const HybSharedSlot *slot);
#else
#define hyb_shared_slot_assert_valid(slot) ((void) (slot))
#endif

/* NULL until hyb_shared_init has found or made a control structure. */
extern HybDirectory *hyb_directory;
extern const HybSharedPart hyb_directory_part;

/*
 * Lock the directory, with all blocks mapped.  Mapping may raise an error.
 * With `trees` all of the arena is mapped, too, which releasing a slot needs.
 */
extern void hyb_directory_lock(LWLockMode mode, bool trees);
extern void hyb_directory_unlock(void);

/* The counter of changes of an index with this key; nothing is locked. */
extern pg_atomic_uint64 *hyb_directory_changes(const HybSlotKey *key);

/* The slot with this key, or NULL.  Locked. */
extern HybSharedSlot *hyb_directory_lookup(const HybSlotKey *key);

/*
 * Add a block if no slot is free, as far as hybridindex.dynamic_memory and
 * the operating system allow.  Not locked.
 */
extern void hyb_directory_grow(void);

/*
 * Make a slot for this key, that of an index used little lately if need be.
 * *evicted is set if that is of this database and had something in its log.
 * NULL if all that were looked at are locked.  Locked exclusively, with trees;
 * hyb_arena_trim afterwards.
 */
extern HybSharedSlot *hyb_directory_add(const HybSlotKey *key,
										const HybSlotIndex *index,
										HybSlotIndex *evicted);

/* ---- all slots; the directory is not locked ---- */

/*
 * Forget what is shared about an index whose file is about to change (build,
 * truncate).
 */
extern void hyb_slots_forget(Relation rel);

/*
 * Has a slot gone lately whose index had something in its log, or a tree once
 * too often?  It has.
 */
extern bool hyb_slots_scarce(void);
extern void hyb_slots_set_scarce(void);

/* Frees the trees of a slot, which is locked exclusively.  The arena is attached. */
extern void hyb_slot_clear_trees(HybSharedSlot *slot);

/*
 * Takes the filters of `states` from a slot, which is locked exclusively; those of
 * `keep` stay.  hyb_filters_free_retired frees them.  The directory is not locked.
 */
extern void hyb_slot_retire_filters(HybSharedSlot *slot, uint32 keep);

/*
 * Retires the filters to which no key was added for idle_ms, as far as one can tell:
 * since the first call that saw their last key.  If all filters exceed their share,
 * also one other.  No slot, directory or partition is locked.  Raises no error.
 */
extern void hyb_filters_evict(int idle_ms);

/*
 * Frees filters that were retired, if that needs no waiting for inserters, or with
 * `wait`.  No slot, directory or partition is locked.  Raises no error.
 */
extern void hyb_filters_free_retired(bool wait);

/* Bytes of trees that could be evicted, as far as one can tell. */
extern uint64 hyb_slots_evictable(void);

/* Memory of the dynamic stages of all hybrid indexes of the server, in bytes. */
typedef struct HybMemoryStats
{
	uint64		budget;			/* what segments may have together */
	uint64		reserved;		/* what they have */
	uint64		used;			/* of that, trees and what backends have in
								 * hand for them */
	uint64		trees;			/* of that, trees */
	uint64		private_trees;	/* of backends that have no shared ones */
	uint64		slot_bytes;		/* segments of slots */
	uint64		control;		/* in main shared memory, first slots included */
	uint32		segments;
	uint32		slots;			/* indexes that something is shared about */
} HybMemoryStats;

extern void hyb_memory_stats(HybMemoryStats *stats);

/* Bytes of the largest tree in shared memory, as far as one can tell. */
extern uint64 hyb_slots_largest(void);

/* ---- lives of databases ---- */

extern const HybSharedPart hyb_database_part;

/*
 * The life of the database that this process is connected to; 0 without a
 * control structure.  The first call enters the process into the table of
 * databases: not in a critical section, and with the directory not locked.
 */
extern uint64 hyb_database_life(void);

/* Is this the first call, by any process, in this life of the database? */
extern bool hyb_database_first_use(void);

#endif							/* HYB_DIRECTORY_H */
