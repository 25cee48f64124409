/*
 * hot.h
 *		Hot copies: keys that are looked up often, with their TIDs, in memory.
 *
 * After X. Zhou, X. Yu, G. Graefe, M. Stonebraker: Two is Better Than One: The
 * Case for 2-Tree for Skewed Data Sets, CIDR 2023; inclusive, and a hash table
 * in place of the upper tree.
 *
 * An entry says that the static levels of an index hold exactly this TID for a
 * key, besides TIDs that are dead to all snapshots. docs/hot.md says what
 * keeps that true, and why.  Keys are whole ones, of indexes where equal keys
 * have equal bytes; `hash` is always hyb_key_hash of the key.
 */
#ifndef HYB_HOT_H
#define HYB_HOT_H

#include "datatype/timestamp.h"
#include "storage/itemptr.h"
#include "store/handle.h"

/* hybridindex.hot_memory in kB, 0: no hot copies; unless set, and at most */
extern int	hyb_hot_memory_kb;

#define HYB_DEFAULT_HOT_KB	(16 * 1024)
#define HYB_MAX_HOT_KB		(64 * 1024 * 1024)

/*
 * Since when this process has hot_memory as it is; and whether the table is yet to
 * be made as large as that (hot_table.c).
 */
extern TimestampTz hyb_hot_memory_since;
extern bool hyb_hot_memory_changed;

/* Bytes of a key at most. */
#define HYB_HOT_MAX_KEY		84

typedef struct HybHotKey
{
	const uint8 *bytes;
	uint32		len;
	uint64		hash;
} HybHotKey;

static inline HybHotKey
hyb_hot_key(const uint8 *bytes, uint32 len)
{
	HybHotKey	key = {
		.bytes = bytes,
		.len = len,
		.hash = hyb_key_hash(bytes, len)
	};

	return key;
}

/* ---- look-ups ---- */

/* What a look-up is to do with a key. */
typedef enum HybHotAnswer
{
	HYB_HOT_NONE,				/* read leaves */
	HYB_HOT_HIT,				/* take the TID instead */
	HYB_HOT_PUBLISH				/* read leaves, and publish what they hold */
} HybHotAnswer;

/*
 * How the gate of an index stands.  A look-up that is to publish asks before it
 * reads leaves, and later proves that its version still is current.
 */
extern uint64 hyb_hot_gate(const HybIndex *ix);

/*
 * Ask for a key.  What a hit says is true of the version that is current at
 * this moment: the caller has captured one before, and proves afterwards that
 * it still is current.  Mostly takes no lock; raises no error but for want of
 * address space.
 */
extern HybHotAnswer hyb_hot_find(const HybIndex *ix, const HybHotKey *key,
								 ItemPointer tid);

/*
 * A key has this TID alone in the static levels of a version.  The caller has
 * read its leaves after it asked the gate, and then found the version current.
 * May make the table.
 */
extern void hyb_hot_publish(const HybIndex *ix, const HybHotKey *key,
							const ItemPointerData *tid, uint64 gate);

/* Forget a key: its row is dead. */
extern void hyb_hot_forget(const HybIndex *ix, const HybHotKey *key);

/* ---- changing the static levels ---- */

/* What there is to be cleared by who has shut a gate; on the stack. */
typedef struct HybHotShut
{
	struct HybHotTable *table;	/* NULL: there is nothing to be cleared */
	uint32		owner;			/* number of the index */
	uint32		entries;		/* that it has, about */
} HybHotShut;

/*
 * Shut the gate: nothing is published about an index until hyb_hot_open.
 * Clear keys meanwhile.  Shutting may raise an error, the other two do not.
 * The caller has the merge lock, and sees to it that the gate is opened after
 * an error; at the end of the process it is anyhow.  One gate at a time.
 */
extern void hyb_hot_shut(const HybIndex *ix, HybHotShut *shut);
extern void hyb_hot_clear(const HybHotShut *shut, const HybHotKey *key);
extern void hyb_hot_open(void);

/*
 * Clear entries with TIDs that are dead, as the callback of a bulk deletion
 * says, when no leaf and no log has one that is not marked.  If an index has few
 * entries, for the size of the table, all of them go instead.
 */
typedef bool (*HybHotDead) (ItemPointer tid, void *state);

extern void hyb_hot_vacuum(const HybIndex *ix, HybHotDead dead, void *state);

/* Give up all entries of an index, which only this session has open. */
extern void hyb_hot_drop(const HybIndex *ix);

/* ---- seeing them ---- */

/*
 * Visit the entries that an index has in a bucket of the table.  Returns false if
 * there is no such bucket, or the index has no entries.
 */
typedef void (*HybHotVisit) (const HybHotKey *key, ItemPointerData tid, void *state);

extern bool hyb_hot_visit(const HybIndex *ix, uint32 bucket, HybHotVisit visit,
						  void *state);

/* Is this entry still there? */
extern bool hyb_hot_has(const HybIndex *ix, const HybHotKey *key,
						const ItemPointerData *tid);

/* Keys of an index looked up, and found, since its first ones came. */
extern void hyb_hot_counts(const HybIndex *ix, uint64 *lookups, uint64 *hits);

/* Bytes of the table, and those of them that entries take. */
extern void hyb_hot_memory(uint64 *reserved, uint64 *used);

/* When the library is loaded. */
extern void hyb_hot_init(void);

#endif							/* HYB_HOT_H */
