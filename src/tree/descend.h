/*
 * descend.h
 *		Reading the trees of static levels: descents to a leaf, what stands for
 *		leaves among predicate locks, how full leaves are.
 */
#ifndef HYB_DESCEND_H
#define HYB_DESCEND_H

#include "algo/bits.h"
#include "store/meta.h"
#include "store/page.h"

#define HYB_MAX_HEIGHT	32

/* ---- descents ---- */

/* What a descent looks for. */
typedef struct HybSought
{
	int			level;			/* static level, 0 is the oldest */

	/*
	 * Forward, the leaf that holds the first entry above the position;
	 * backward, the one that holds the last entry below it.
	 */
	const HybPos *pos;
	bool		backward;
	bool		want_fence;		/* set HybDescent.fence */

	/*
	 * The other end of the range that is searched, or NULL.  The leaf is
	 * skipped if its filter says that nothing lies between it and the
	 * position.
	 */
	const HybPos *bound;
	bool		only_fence;		/* do not read the leaf nor its filter */
} HybSought;

/* Where a descent arrived. */
typedef struct HybDescent
{
	Buffer		buf;			/* the leaf, pinned; InvalidBuffer if it is
								 * not read */
	Page		page;			/* the leaf's page, and `buf` is share-locked;
								 * or a copy of it in `copy` and nothing is
								 * locked, where comparisons are not pure */
	BlockNumber block;
	uint64		stamp;
	bool		probed;			/* a filter was asked, and answered */
	bool		skipped;		/* its answer was "no" */
	bool		last;			/* it is the level's last leaf */

	/*
	 * With want_fence: the leaf's upper fence if the search goes forward, its
	 * lower one backward.  Infinity without want_fence.
	 */
	HybPos		fence;
	HybBuf		fence_key;		/* memory for its key, kept between descents */
	HybBuf		copy;			/* memory for a page's copy, likewise */
} HybDescent;

/* Unlock the leaf, if it is locked, and keep its pin. */
static inline void
hyb_descent_unlock(const HybDescent *descent)
{
	if (likely(descent->page == BufferGetPage(descent->buf)))
		LockBuffer(descent->buf, BUFFER_LOCK_UNLOCK);
}

/* Let go of the leaf. */
static inline void
hyb_descent_release(const HybDescent *descent)
{
	hyb_descent_unlock(descent);
	ReleaseBuffer(descent->buf);
}

/* When the library is loaded. */
extern void hyb_static_init(void);

/*
 * Descend from the root of a level of the version, which must not be empty.  The
 * caller ends with hyb_descent_release, or keeps the pin, if a leaf was read.
 * Returns false if a stamp did not match: the version is no longer current, and
 * the caller has to take a new one and try again.  No buffer is held then.  No
 * lock is held on entry.
 */
extern bool hyb_static_descend(const HybIndex *ix, const HybVersion *version,
							   const HybSought *sought, HybDescent *descent);

/* The height of a tree.  An error if a damaged metapage has it out of range. */
static inline int
hyb_root_height(const HybIndex *ix, const HybRoot *root)
{
	if (root->height > HYB_MAX_HEIGHT)
		hyb_corrupted(ix->rel, HYB_METAPAGE_BLKNO, "The tree's height is out of range.");
	return (int) root->height;
}

/* ---- predicate locks ---- */

/*
 * Targets: what stands for a range of keys among the server's predicate locks.
 * A scan of a serializable transaction locks what it reads, an insertion asks
 * which transactions locked what it writes (storage/predicate.h).  Both name a
 * range by a block number of the index, which the server only compares.
 *
 * A *key target* is the hash of the beginning of a key: of its first columns or,
 * in an index ordered by memcmp, of some first bytes.  It stands for all entries
 * that begin like that, in all runs, and never changes.
 *
 * A *leaf target* is the hash of block and stamp of a leaf of the oldest level.
 * It stands for the entries between the leaf's fences, in all runs.  A later
 * leaf in the same block has another target.
 *
 * Two ranges with the same target only make transactions fail that need not.
 */

/* Stands for all entries while the oldest level has no leaf. */
#define HYB_TARGET_NO_LEAF	HYB_METAPAGE_BLKNO

/* The 2^30 hashes begin here. */
#define HYB_TARGET_HASHES	0x40000000U

/*
 * Bytes of a key target that does not end with a column.  Insertions ask for
 * each number of bytes from the least to the most.  The first byte is a column's
 * flag.
 */
#define HYB_TARGET_MIN_BYTES	2
#define HYB_TARGET_MAX_BYTES	24

static inline BlockNumber
hyb_target_of_hash(uint64 hash)
{
	return HYB_TARGET_HASHES | (hash & (HYB_TARGET_HASHES - 1));
}

/* The beginning of a key, in an index where equal keys have equal bytes. */
static inline BlockNumber
hyb_target_of_key(const uint8 *key, uint32 len)
{
	return hyb_target_of_hash(hyb_key_hash(key, len));
}

static inline BlockNumber
hyb_target_of_leaf(BlockNumber block, uint64 stamp)
{
	return hyb_target_of_hash(hyb_hash_mix(hyb_hash_mix(stamp) + block));
}

/*
 * The leaf target that a position belongs to.  Returns false if the version is no
 * longer current.  May call comparison functions.
 */
extern bool hyb_target_of_pos(const HybIndex *ix, const HybVersion *version,
							  const HybPos *pos, bool backward,
							  BlockNumber *target);

/* ---- how full leaves are ---- */

/*
 * The average of hyb_leaf_fill over the leaves of the current version: of all
 * in a small index, else of a sample.  Returns false if there are no leaves, or
 * if merges replace each version before it is read.  No lock is held on entry or
 * return.
 */
extern bool hyb_static_fill(const HybIndex *ix, double *fill);

#endif							/* HYB_DESCEND_H */
