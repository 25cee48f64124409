/*
 * index_cache.h
 * What a backend keeps about one index, and the current version.
 *
 * A HybCache is backend-local and found by the index's identity.  It refers to
 * the shared slot of the index, if there is one.  It holds the version.
 * Upper layers keep pieces of their own there (HybCachePiece).
 *
 * It lives as long as the relation cache's entry of the index.  A backend may
 * use very many indexes, so it is small.
 */
#ifndef HYB_INDEX_CACHE_H
#define HYB_INDEX_CACHE_H

#include "access/xlog.h"
#include "shared/directory.h"
#include "store/meta.h"

typedef struct HybCache
{
	HybSlotKey	key;			/* hash key, first */
	uint64		local_serial;	/* of this use of the object */
	MemoryContextCallback gone; /* of the relation cache's entry */
	HybSlotIndex index;
	bool		is_temp;
	bool		tied;			/* `gone` is registered */
	bool		changing;		/* see hyb_version_prepare */
	uint32		touches;

	HybSharedSlot *shared;		/* NULL: none known */
	uint64		shared_serial;	/* shared->serial when it was looked up */
	uint64		seen_creations; /* the directory's creations then */

	/*
	 * index_cache.c: a version, with room for version_room bytes of watermark
	 * key, and what *changes was before it was read.
	 */
	HybVersion *version;
	uint16		version_room;
	bool		version_valid;
	uint8		noting;			/* look-ups that will note what they find
								 * (log/found_key.h) */
	uint64		version_changes;
	pg_atomic_uint64 *changes;	/* of the directory, or a constant; NULL:
								 * none, so versions are not kept */

	/* what upper layers keep: HybCachePiece */
} HybCache;

/*
 * A part without memory: a process that attaches forgets what it kept about indexes
 * while it had none.
 */
extern const HybSharedPart hyb_cache_part;

extern HybCache *hyb_cache_open(HybIndex *ix);

/*
 * Is the version that the cache keeps current, as far as this process can tell?
 * Then its active generation has these first pages, and no more.
 */
static inline bool
hyb_cache_version_is_current(const HybCache *cache)
{
	return cache->version_valid &&
		pg_atomic_read_u64(cache->changes) == cache->version_changes;
}

/*
 * The cache of an open index.  It is remembered in the handle.  Memory of
 * caches is used again, so the serial tells whether it still is this index's.
 */
static inline HybCache *
hyb_cache_get(const HybIndex *ix)
{
	HybCache   *cache = ix->cache;

	if (unlikely(cache == NULL || cache->local_serial != ix->cache_serial ||
				 cache->key.incarnation != ix->incarnation ||
				 (cache->key.in_recovery && !RecoveryInProgress())))
		return hyb_cache_open(unconstify(HybIndex *, ix));
	return cache;
}

/*
 * A piece of fixed size that an upper layer keeps in each index's cache.  It
 * is zero in a new one.
 */
typedef struct HybCachePiece
{
	Size		size;
	void		(*release) (void *piece);	/* the cache goes; may be NULL */
	bool		(*wanted) (const void *piece);	/* the cache stays without the
												 * relation cache's entry; may
												 * be NULL */
	Size		offset;			/* in the cache; hyb_cache_add_piece sets it */
	struct HybCachePiece *next; /* the same */
} HybCachePiece;

/* Once for each piece, when the library is loaded. */
extern void hyb_cache_add_piece(HybCachePiece *piece);

/* Free it, unless the relation cache has an entry or a piece is wanted. */
extern void hyb_cache_let_go(HybCache *cache);

/* The piece in a cache. */
static inline void *
hyb_cache_piece_of(HybCache *cache, const HybCachePiece *piece)
{
	return (char *) cache + piece->offset;
}

/* That in an index's cache, until another cache is opened. */
static inline void *
hyb_cache_piece(const HybIndex *ix, const HybCachePiece *piece)
{
	return hyb_cache_piece_of(hyb_cache_get(ix), piece);
}

/* Does the cache's shared slot still belong to the index? */
static inline bool
hyb_slot_valid(const HybCache *cache)
{
	return cache->shared != NULL &&
		pg_atomic_read_u64(&cache->shared->serial) == cache->shared_serial;
}

/*
 * Look the shared slot up, if there can be one that the cache does not know of.
 * Returns whether there is one.  Locks the directory for a moment, and maps
 * blocks of slots that other processes have made, which may raise an error: not in a
 * critical section.
 */
extern bool hyb_slot_find(HybCache *cache);

/*
 * The same, but make one.  False if that is not possible.  The caller holds no
 * slot's lock.
 */
extern bool hyb_slot_create(HybCache *cache);

/*
 * Called, if set, when a slot was evicted whose index, of this database, has
 * entries in its log.
 * Its tree is lost, so the index should be merged.  Also called when a tree
 * was lost and built again too often.  The caller of hyb_slot_create,
 * hyb_stage_open or hyb_stage_close may hold locks.
 */
extern void (*hyb_slot_evicted) (const HybSlotIndex *index);

/*
 * Record where a lane ends.  The caller holds the content lock of the lane's
 * tail page: exclusively, having appended to it, or shared, having found that
 * it has no successor.  Raises no error.
 */
extern void hyb_slot_publish(HybCache *cache, uint64 generation, int lane,
							 uint64 end);

/*
 * Did the last append bring entries that a statement had gathered?  Says no if this
 * backend does not know the slot.
 */
extern bool hyb_slot_together(const HybIndex *ix);

/*
 * Bytes of the index's membership filter, or of the one that is being made.  Returns 0
 * without one.  The answer may be stale.
 */
extern uint64 hyb_slot_membership_bytes(HybCache *cache, bool making);

/* Note that the trees are in use; `whole`: by a reader that needs all of the log in them. */
extern void hyb_slot_touch(HybCache *cache, bool whole);

/*
 * Have all backends read the metapage again that keep a version: it has been
 * changed, and is still locked exclusively.  This may be a critical section.
 */
extern void hyb_cache_count_change(HybCache *cache);

/* ---- the current version ---- */

/*
 * Read the current version: from the cache if the counter of changes says that
 * it is current, else from the metapage.  Takes and releases the metapage's
 * share lock; no lock is held on return.  Head and tail pages and counters of
 * the active generation may be older than the call; read the metapage for
 * those.
 */
extern void hyb_version_capture(HybIndex *ix, HybVersion *version);

/* Is it still the current version? */
extern bool hyb_version_is_current(HybIndex *ix, const HybVersion *version);

/* Is this the active or the frozen generation of the current version? */
extern bool hyb_version_has_generation(HybIndex *ix, uint64 generation);

/* What a pin on the page that an entry was found on is worth. */
typedef enum HybPinResult
{
	HYB_PIN_HOLDS,				/* until it is released, VACUUM does not
								 * finish removing the entry, and it had not
								 * finished when the pin was taken */
	HYB_PIN_DEAD,				/* VACUUM has flagged the entry: its row is
								 * gone */
	HYB_PIN_MOVED				/* the page is, or may be, no longer part of
								 * the index: look for the entry again */
} HybPinResult;

/*
 * A caller that does not check a TID against an MVCC snapshot may use it only
 * after this function, or hyb_delta_pin_entry, has proved it.  This one is for
 * entries of a leaf that a descent in `version` pinned and that was read after
 * that.  Both prove, after the pin was taken, that the page is part of the
 * current version: a retired page keeps its content, and VACUUM does not treat
 * it.  No lock is held on entry; the metapage may be read.
 */
extern HybPinResult hyb_leaf_pin_check(HybIndex *ix, const HybVersion *version);

/*
 * Get ready to change the metapage's version, with the metapage exclusively
 * locked, before the critical section: finds the shared slot, if there is one.
 */
extern void hyb_version_prepare(HybIndex *ix);

/*
 * Tell other backends that the metapage's version changed.  Called with the
 * metapage still locked, after the change was logged; it allocates nothing and
 * waits for nothing, so it may be called in the critical section.
 */
extern void hyb_version_changed(HybIndex *ix, const HybMetaPage *meta);

/*
 * Switch the metapage, which is exclusively locked, to a new version.  Between
 * the two calls the caller changes its fields, in a critical section.  The
 * second call sets the watermark, logs all fields but pending[], does what
 * hyb_version_changed does, and releases the metapage.
 */
extern void hyb_version_switch_begin(HybIndex *ix, HybMetaPage *meta,
									 HybWalSet *set);
extern void hyb_version_switch_end(HybIndex *ix, Buffer metabuf,
								   HybWalSet *set, const HybPos *watermark);

#endif							/* HYB_INDEX_CACHE_H */
