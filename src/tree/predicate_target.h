/*
 * predicate_target.h
 *		What stands for a range of keys among the server's predicate locks.
 *
 * A scan of a serializable transaction locks what it reads, an insertion asks
 * who has locked what it writes (storage/predicate.h).  Both name what they mean
 * by a block number of the index, which the server uses as a name only.
 *
 * A key target is the hash of the beginning of a key: of its first columns or, in
 * an index ordered by memcmp, of some first bytes.  It stands for all entries that
 * begin like that, whatever run they are in, and never changes.
 *
 * A leaf target is a leaf of the oldest level: the hash of its block and stamp.  It
 * stands for the entries that lie between the leaf's fences, in all runs.  A leaf
 * that is written to the same block later is another target.  While the oldest
 * level has no leaf, the metapage stands for all entries.
 *
 * Two ranges with one name only have transactions fail that need not.
 */
#ifndef HYB_PREDICATE_TARGET_H
#define HYB_PREDICATE_TARGET_H

#include "algo/bits.h"
#include "store/page.h"
#include "tree/descend.h"

/* Stands for all entries while the oldest level has no leaf. */
#define HYB_TARGET_NO_LEAF	HYB_METAPAGE_BLKNO

/* Hashes lie from here on, 2^30 of them. */
#define HYB_TARGET_HASHES	0x40000000U

/*
 * Bytes of a key target that does not end with a column: insertions ask for each
 * number of bytes from the least to the most.  The first byte is a column's flag.
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

#endif							/* HYB_PREDICATE_TARGET_H */
