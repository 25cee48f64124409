/*
 * slot.h
 *		What a backend knows of one index's dynamic stage.
 *
 * A HybSlot is backend-local and found by the index's identity; it refers to
 * the shared slot of the index, if there is one, and holds what the backend
 * has cached: the version, tail pages to append to, and, where there is no
 * shared memory to be had, trees of its own.  Upper layers keep pieces of
 * their own there, of which nothing is known here.
 *
 * It lives as long as the relation cache's entry of the index, so there are as
 * many as indexes that the backend has used: it is to be small.
 */
#ifndef HYB_SLOT_H
#define HYB_SLOT_H

#include "access/xlog.h"
#include "shared/directory.h"

typedef struct HybSlot
{
	HybSlotKey	key;			/* hash key, first */
	uint64		local_serial;	/* of this use of the object */
	MemoryContextCallback gone; /* of the relation cache's entry */
	Oid			relid;
	bool		is_temp;
	bool		tied;			/* `gone` is registered */
	bool		changing;		/* see hyb_version_prepare */
	int			busy;			/* in use by functions up the stack */
	uint32		touches;

	HybSharedSlot *shared;		/* NULL: none known */
	uint64		shared_serial;	/* shared->serial when it was looked up */
	uint64		seen_creations; /* the directory's creations then */

	/*
	 * capture.c: a version, with room for so many bytes of watermark key, and
	 * what *changes was before it was read.
	 */
	HybVersion *version;
	uint16		version_room;
	bool		version_valid;
	uint64		version_changes;
	pg_atomic_uint64 *changes;	/* of the directory, or a constant; NULL:
								 * none, so versions are not kept */

	/* append.c: where to append, checked when the page is locked */
	uint64		hint_generation;	/* 0: no hints */
	BlockNumber hint_tail[HYB_LANES];
	Buffer		hint_buffer;	/* where the page appended to last was */
	uint64		hint_end_generation;
	uint64		hint_end;		/* where this backend's last append to it
								 * ended: hyb_lane_end */
	int			lane;			/* preferred */

	/* open_stage.c: trees in backend memory */
	HybStage   *stage;
	HybArena   *arena;
	uint64		private_generation; /* shared memory is not tried while this
									 * is the active generation, until */
	TimestampTz private_until;
	bool		merge_wanted;	/* the tree was lost too often */

	/* short_log.c */
	uint64		tree_generation;	/* while this is the active one its log is
									 * not read in place */
	TimestampTz short_since;	/* so many reads in place since then */
	uint32		short_reads;

	/* fetch.c: not yet added to the shared counters */
	uint32		bloom_hits;
	uint32		bloom_misses;
	uint32		counters[HYB_STAGE_COUNTERS];

	/* what upper layers keep: HybSlotPiece */
} HybSlot;

#ifdef USE_ASSERT_CHECKING
extern void hyb_slot_assert_valid(const HybSlot *s);
#else
#define hyb_slot_assert_valid(s) ((void) (s))
#endif

extern HybSlot *hyb_slot_open(HybIndex *ix);

/*
 * Is the version that s keeps the current one, for all that can be told?  Its
 * active generation has these first pages then, and no others.
 */
static inline bool
hyb_slot_version_is_current(const HybSlot *s)
{
	return s->version_valid &&
		pg_atomic_read_u64(s->changes) == s->version_changes;
}

/*
 * The slot of an open index.  Remembered in the handle, which is no change
 * that anybody sees; slots are reused, so the serial tells whether it still is
 * the one.
 */
static inline HybSlot *
hyb_slot_get(const HybIndex *ix)
{
	HybSlot    *s = ix->slot;

	if (unlikely(s == NULL || s->local_serial != ix->slot_serial ||
				 s->key.incarnation != ix->incarnation ||
				 (s->key.in_recovery && !RecoveryInProgress())))
		return hyb_slot_open(unconstify(HybIndex *, ix));
	return s;
}

/*
 * A piece of fixed size that an upper layer keeps of each index, for as long
 * as the backend has a slot for it; zero in a new slot.
 */
typedef struct HybSlotPiece
{
	Size		size;
	void		(*release) (void *piece);	/* the slot goes; may be NULL */
	Size		offset;			/* in the slot; hyb_slot_add_piece sets it */
	struct HybSlotPiece *next;	/* the same */
} HybSlotPiece;

/* Once for each piece, when the library is loaded. */
extern void hyb_slot_add_piece(HybSlotPiece *piece);

/* The piece in an index's slot, until another slot is opened. */
static inline void *
hyb_slot_piece(const HybIndex *ix, const HybSlotPiece *piece)
{
	return (char *) hyb_slot_get(ix) + piece->offset;
}

/* Add one to a counter of an upper layer; hyb_dynamic_stats has its sum. */
static inline void
hyb_slot_count(const HybIndex *ix, int counter)
{
	Assert(counter >= 0 && counter < HYB_STAGE_COUNTERS);
	hyb_slot_get(ix)->counters[counter]++;
}

/* Is the shared slot that s refers to still that of the index? */
static inline bool
hyb_slot_valid(const HybSlot *s)
{
	return s->shared != NULL &&
		pg_atomic_read_u64(&s->shared->serial) == s->shared_serial;
}

/*
 * Look the shared slot up, if there can be one that s does not know of.
 * Returns whether there is one.  Locks the directory for a moment, and maps
 * blocks of slots that others have made, which may raise an error: not in a
 * critical section.
 */
extern bool hyb_slot_find(HybSlot *s);

/*
 * The same, but make one, and say in *made whether this call did.  False if that
 * is not possible.  The caller holds no slot's lock.
 */
extern bool hyb_slot_create(HybSlot *s, bool *made);

/*
 * Called, if set, when a slot went to another index while there was something
 * in the log of its own one, which should be merged: its tree is lost, and
 * somebody will have to read the log.  Also when a tree was lost and built
 * again too often.  The caller of hyb_slot_create, or hyb_stage_close, may hold
 * locks.
 */
extern void (*hyb_slot_evicted) (Oid dbid, Oid relid);

/*
 * Called, if set, by the first read of an index's log since the server started or
 * was promoted, or its slot was evicted.  No locks are held.
 */
extern void (*hyb_slot_made) (HybIndex *ix);

/*
 * Record where a lane ends.  The caller holds the content lock of the lane's
 * tail page: exclusively, having appended to it, or shared, having found that
 * it has no successor.  Raises no error.
 */
extern void hyb_slot_publish(HybSlot *s, uint64 generation, int lane,
							 uint64 end);

/* Note that the trees are in use. */
extern void hyb_slot_touch(HybSlot *s);

/*
 * Trees in backend memory: make them, unless there are some, and drop others
 * if they take too much; drop them.
 */
extern void hyb_slot_make_private(HybSlot *s);
extern void hyb_slot_drop_private(HybSlot *s);

/*
 * Have all backends read the metapage again that keep a version: it has been
 * changed, and is still locked exclusively.  This may be a critical section.
 */
extern void hyb_slot_changed(HybSlot *s);

/*
 * The same, and tell the shared slot that s refers to, if any, of another
 * generation, and free what is no longer needed.  The metapage is locked
 * exclusively since before s looked the slot up.  Whoever makes a slot for the
 * index later reads the metapage later, too.
 */
extern void hyb_slot_version_changed(HybSlot *s, const HybMetaPage *meta);

#endif							/* HYB_SLOT_H */
