/*
 * directory.h
 *		The shared directory of slots.
 *
 * Slots lie in blocks, each twice as large as the one before it: the first
 * behind the control structure, the others in dynamic shared memory segments,
 * which are never given back.  A hash table of chains, whose links are slot
 * numbers, finds the slot of an index.
 */
#ifndef HYB_DIRECTORY_H
#define HYB_DIRECTORY_H

#include "dynamic/shared.h"

/* Bytes of a block: its slots, then their stages. */
extern Size hyb_directory_block_size(int block);

/* Set up the directory of a new control structure, with its first block. */
extern void hyb_directory_init(HybControl *control, char *block);

/* This process's address of the first block. */
extern void hyb_directory_attach_first(char *block);

/*
 * Lock the directory: control->lock, with all blocks mapped.  Mapping may
 * raise an error.  With `trees` all of the arena is mapped, too, which
 * releasing a slot needs.
 */
extern void hyb_directory_lock(LWLockMode mode, bool trees);
extern void hyb_directory_unlock(void);

/* The slot with this key, or NULL.  Locked. */
extern HybSharedSlot *hyb_directory_lookup(const HybSlotKey *key);

/*
 * Add a block if no slot is free, as far as hybridindex.dynamic_memory and
 * the operating system allow.  Not locked.
 */
extern void hyb_directory_grow(void);

/* An index whose slot went while there was something in its log. */
typedef struct HybEvicted
{
	Oid			db;				/* InvalidOid: there is none */
	Oid			relid;
} HybEvicted;

/*
 * Make a slot for this key, that of an index used little lately if need be.
 * NULL if all that were looked at are locked.  Locked exclusively, with trees;
 * hyb_arena_trim afterwards.
 */
extern HybSharedSlot *hyb_directory_add(const HybSlotKey *key, Oid relid,
										HybEvicted *evicted);

/*
 * Release the slots of a database's other lives.  Locked exclusively, with
 * trees; hyb_arena_trim afterwards.
 */
extern void hyb_directory_end_lives(Oid db, uint64 except);

#endif							/* HYB_DIRECTORY_H */
