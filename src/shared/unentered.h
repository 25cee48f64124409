/*
 * unentered.h
 *		A filter of the keys of entries that wait in the log to be entered into a tree.
 *
 * A look-up of a key that is in none of them need not catch the tree up.  So trees are
 * caught up with many entries at once.
 *
 * There are two sets of bits.  Appenders add to one of them, readers ask both.
 * Whenever the tree has caught up, the set that no key is added to is emptied, and
 * they change places.  A key is added while its appender has its lane's tail page locked, or
 * for the first page of a lane the metapage.  Let it be added to a set when that is the
 * one to add to.  The set is emptied at the second change after that.  The catching up
 * that ends with that change began after the first one.  It locks each tail page that
 * there is, and the metapage if a lane has none, so it waits for the appender, and
 * enters the entry.
 *
 * The first generation after a freeze may have entries whose bits an old reader's
 * catching up has removed.  Its tree has caught up once before it is read.
 */
#ifndef HYB_UNENTERED_H
#define HYB_UNENTERED_H

#include "port/atomics.h"

#define HYB_UNENTERED_WORDS		64

typedef struct HybUnentered
{
	pg_atomic_uint32 which;		/* set that keys are added to */
	pg_atomic_uint32 all[2];	/* 1: entries came whose keys are not in the
								 * set */
	pg_atomic_uint64 words[2][HYB_UNENTERED_WORDS];
} HybUnentered;

static inline void
hyb_unentered_init(HybUnentered *unentered)
{
	pg_atomic_init_u32(&unentered->which, 0);
	for (int set = 0; set < 2; set++)
	{
		pg_atomic_init_u32(&unentered->all[set], 0);
		for (int i = 0; i < HYB_UNENTERED_WORDS; i++)
			pg_atomic_init_u64(&unentered->words[set][i], 0);
	}
}

/* Two bits of one word. */
static inline uint64
hyb_unentered_bits(uint64 hash)
{
	return UINT64CONST(1) << (hash & 63) | UINT64CONST(1) << (hash >> 6 & 63);
}

static inline uint32
hyb_unentered_word(uint64 hash)
{
	return (uint32) (hash >> 12) % HYB_UNENTERED_WORDS;
}

/* An entry is about to be announced: its key's hyb_key_hash, or 0 if that is unknown. */
static inline void
hyb_unentered_add(HybUnentered *unentered, uint64 hash)
{
	uint32		set = pg_atomic_read_u32(&unentered->which);
	pg_atomic_uint64 *word = &unentered->words[set][hyb_unentered_word(hash)];
	uint64		bits = hyb_unentered_bits(hash);

	if (hash == 0)
	{
		if (pg_atomic_read_u32(&unentered->all[set]) == 0)
			pg_atomic_write_u32(&unentered->all[set], 1);
	}
	else if ((pg_atomic_read_u64(word) & bits) != bits)
		(void) pg_atomic_fetch_or_u64(word, bits);
}

/* May there be an entry with a key of this hash?  The slot is locked, at least shared. */
static inline bool
hyb_unentered_maybe(HybUnentered *unentered, uint64 hash)
{
	uint64		bits = hyb_unentered_bits(hash);

	for (int set = 0; set < 2; set++)
		if (pg_atomic_read_u32(&unentered->all[set]) != 0 ||
			(pg_atomic_read_u64(&unentered->words[set][hyb_unentered_word(hash)]) & bits) == bits)
			return true;
	return false;
}

/* The tree has caught up.  The slot is locked exclusively. */
static inline void
hyb_unentered_caught_up(HybUnentered *unentered)
{
	uint32		set = 1 - pg_atomic_read_u32(&unentered->which);

	pg_atomic_write_u32(&unentered->all[set], 0);
	for (int i = 0; i < HYB_UNENTERED_WORDS; i++)
		pg_atomic_write_u64(&unentered->words[set][i], 0);
	pg_write_barrier();
	pg_atomic_write_u32(&unentered->which, set);
}

#endif							/* HYB_UNENTERED_H */
