/*
 * hot_table.h
 *		The table of hot copies: private to the files that make it up.
 *
 * A segment of dynamic shared memory: HotTable, and buckets of 256 bytes, each
 * with a head and places for entries.  A process maps the segment that is the
 * table at the moment; hyb_hot->generation tells it of another one.
 */
#ifndef HYB_HOT_TABLE_H
#define HYB_HOT_TABLE_H

#include "hot/hot.h"
#include "shared/directory.h"

#define HYB_HOT_GATES		256
#define HYB_HOT_OWNERS		256
#define HYB_HOT_PLACES		7	/* of a bucket */
#define HYB_HOT_PLACE		32	/* bytes */

StaticAssertDecl(HYB_HOT_OWNERS - 1 <= PG_UINT8_MAX && HYB_HOT_MAX_KEY <= PG_UINT8_MAX,
				 "places have a byte for each");

/* In the control structure. */
typedef struct HybHotControl
{
	LWLock		lock;			/* protects all but what is atomic */
	LWLock		making;			/* held by who makes a table, before `lock` */
	int			tranche;
	dsm_handle	handle;			/* of the segment, or DSM_HANDLE_INVALID */
	int			kb;				/* hybridindex.hot_memory that it was made for */
	TimestampTz config_time;	/* and since when that was the setting */
	pg_atomic_uint64 generation;	/* + 1 for each table, and when one goes */

	/*
	 * Each stands for the indexes of one hash: how often it was passed in the
	 * high half, how many have shut it in the low one.
	 */
	pg_atomic_uint64 gates[HYB_HOT_GATES];
} HybHotControl;

/*
 * An index with entries.  Key and number change with hyb_hot->lock held
 * exclusively; a number does not repeat.
 */
typedef struct HybHotOwner
{
	HybSlotKey	key;
	pg_atomic_uint32 number;	/* 0: free */
	pg_atomic_uint32 entries;	/* in the table, about */
	pg_atomic_uint64 lookups;
	pg_atomic_uint64 hits;
	uint64		seen;			/* `lookups` when the hand came by last */
} HybHotOwner;

/*
 * The start of an entry; `key` goes on in the next places if it is longer.
 */
typedef struct HybHotPlace
{
	uint32		owner;			/* its number, */
	uint8		owner_index;	/* and in the table's owners, then */
	uint8		keylen;
	ItemPointerData tid;
	uint8		key[HYB_HOT_PLACE - 12];
} HybHotPlace;

/*
 * Bit i of the masks is about place i.  All but `sequence` and `recent` change
 * only while the bucket is locked: while `sequence` is odd.
 */
typedef struct HybHotBucket
{
	pg_atomic_uint32 sequence;
	uint8		starts;			/* an entry starts here */
	uint8		taken;			/* an entry lies here */
	uint8		hand;			/* CLOCK's */
	uint8		unused;
	uint8		recent[HYB_HOT_PLACES]; /* 1: asked for since the hand was
										 * here; written by readers */
	uint8		unused2;
	uint16		tags[HYB_HOT_PLACES];	/* of the hash, where an entry starts */
	uint16		unused3;
	HybHotPlace places[HYB_HOT_PLACES];
} HybHotBucket;

StaticAssertDecl(sizeof(HybHotPlace) == HYB_HOT_PLACE,
				 "places fill a bucket");
StaticAssertDecl(sizeof(HybHotBucket) == 256, "a bucket is four cache lines");

typedef struct HybHotTable
{
	uint32		nbuckets;
	uint32		numbers;		/* given to owners; protected by the lock */
	uint32		hand;			/* owner to look at next for a free one; the
								 * same */
	pg_atomic_uint64 places;	/* that are taken */
	HybHotOwner owners[HYB_HOT_OWNERS];
} HybHotTable;

/* Bytes of a table before its buckets. */
#define HYB_HOT_HEAD	TYPEALIGN(sizeof(HybHotBucket), sizeof(HybHotTable))

extern HybHotControl *hyb_hot;
extern const HybSharedPart hyb_hot_part;

static inline HybHotBucket *
hyb_hot_bucket(const HybHotTable *table, uint32 i)
{
	return (HybHotBucket *) ((char *) table + HYB_HOT_HEAD) + i;
}

/*
 * The table, mapped, or NULL.  The address holds until the next call; what is
 * read of it is of the table that others use if the generation is still that
 * afterwards.  May raise an error for want of address space.
 */
extern HybHotTable *hyb_hot_table(uint64 *generation);

/*
 * Have the table be what hybridindex.hot_memory says, after that has changed;
 * or try to, if there is no memory for it.  hyb_hot->lock is not held.
 */
extern void hyb_hot_table_settle(void);

/* Where a key of an owner is: its bucket, and the tag. */
static inline HybHotBucket *
hyb_hot_place_of(const HybHotTable *table, uint32 owner, uint64 hash,
				 uint16 *tag)
{
	Assert(owner != 0 && table->nbuckets > 0);
	/* Fibonacci hashing: neighbouring numbers have their own orders */
	hash = (hash ^ owner) * UINT64CONST(0x9E3779B97F4A7C15);
	*tag = (uint16) hash;
	return hyb_hot_bucket(table, (uint32) ((hash >> 32) * table->nbuckets >> 32));
}

/*
 * Read an entry without a lock.  False if there is none, or the bucket is being
 * written.  *room: a new entry would drive out none.
 */
extern bool hyb_hot_read(HybHotTable *table, uint32 owner, const HybHotKey *key,
						 ItemPointer tid, bool *room);

/* Where something is put: by whom, and if the gate is what it was. */
typedef struct HybHotPut
{
	HybHotOwner *owner;
	uint32		number;			/* of the owner */
	pg_atomic_uint64 *gate;
	uint64		expected;		/* what it was */
} HybHotPut;

/*
 * Put an entry, in place of one of this key if there is one, if the gate is
 * what is said once the bucket is locked.
 */
extern void hyb_hot_put(HybHotTable *table, const HybHotPut *put,
						const HybHotKey *key, const ItemPointerData *tid);

/* Take an entry out, if it is there; with a TID, only if it has that. */
extern void hyb_hot_remove(HybHotTable *table, uint32 owner,
						   const HybHotKey *key, const ItemPointerData *tid);

/* Copy a bucket as it is at some moment. */
extern void hyb_hot_copy(HybHotBucket *bucket, HybHotBucket *copy);

#endif							/* HYB_HOT_TABLE_H */
