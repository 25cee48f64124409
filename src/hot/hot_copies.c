/*
 * hot_copies.c
 *		Hot copies: which index has some, and what keeps them true.
 *
 * Entries name their index by the number of an owner.  A number that has gone
 * does not come back, so what is left of it in the table is never found.  An
 * owner may go at any moment.  A look-up may have found its number valid, and
 * then take an entry that is not cleared any more.  If that made the entry
 * untrue, the look-up finds its version switched (docs/hot.md).
 */
#include "base/compat.h"

#include "common/pg_prng.h"
#include "executor/instrument.h"
#include "hot/hot_table.h"
#include "miscadmin.h"
#include "shared/index_cache.h"
#include "storage/ipc.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* One in this number of look-ups publishes, where that would drive an entry out. */
#define LOOKUPS_PER_PUBLISH			8

/*
 * Where pages are in shared_buffers, a copy spares a look-up about as much as asking
 * in vain costs.  So a process asks only in one of LOOKUPS_PER_ASK look-ups of an
 * index while less than three quarters of those that it asks in full buckets are
 * hits, and the process reads few blocks.  It reviews that after REVIEW_LOOKUPS of them.
 */
#define LOOKUPS_PER_ASK		8
#define REVIEW_LOOKUPS		256

/* Blocks that the process may read between two reviews, of any relation. */
#define REVIEW_READS		16

/* Look-ups of an index in one process before it gets an owner. */
#define FIRST_LOOKUPS	16

/* A process adds its look-ups and hits to the owner's when they come to this. */
#define COUNT_FLUSH		64

/* Buckets for each entry of an index from which on VACUUM gives up its entries, rather than look at all buckets. */
#define VACUUM_FEW_ENTRIES		64

#define GATE_PASSED		(UINT64CONST(1) << 32)
#define GATE_SHUT		UINT64CONST(1)
#define GATE_SHUT_MASK	(GATE_PASSED - 1)

/* What a process knows of an index. */
typedef struct Owned
{
	uint64		generation;		/* of the table that `owner` is in */
	HybHotOwner *owner;			/* NULL: none was found */
	uint32		number;			/* its number then */
	uint32		first;			/* look-ups without one */
	uint32		lookups;		/* not yet added to the owner's */
	uint32		hits;
	uint32		asked;			/* in full buckets since the last review */
	uint32		answered;		/* hits since then */
	int64		reads;			/* blocks that the process had read then */
	bool		spares;			/* asks in few look-ups */
} Owned;

static HybCachePiece owned_piece = {.size = sizeof(Owned)};

/*
 * When the setting is defined, its value is one that the process may have had
 * since it began.
 */
static void
assign_hot_memory(int kb, void *extra)
{
	hyb_hot_memory_since = hyb_hot_memory_since == 0 ? Max(MyStartTimestamp, 1) :
		GetCurrentTimestamp();
	hyb_hot_memory_changed = true;
}

void
hyb_hot_init(void)
{
	DefineCustomIntVariable("hybridindex.hot_memory",
							"Sets the memory for hot copies: keys of hybrid indexes that are looked up often.",
							"Look-ups of them read no page of the index. 0 has none.",
							&hyb_hot_memory_kb,
							HYB_DEFAULT_HOT_KB, 0, HYB_MAX_HOT_KB,
							PGC_SIGHUP,
							GUC_UNIT_KB | HYB_GUC_ALLOW_IN_PARALLEL,
							NULL, assign_hot_memory, NULL);
	hyb_cache_add_piece(&owned_piece);
}

/* Can an index have hot copies? */
static inline bool
is_able(const HybIndex *ix, const HybCache *cache)
{
	return hyb_hot != NULL && !cache->key.in_recovery && !cache->is_temp &&
		ix->desc->exact;
}

static inline pg_atomic_uint64 *
gate_of(const HybCache *cache)
{
	return &hyb_hot->gates[hyb_slot_file_hash(&cache->key) % HYB_HOT_GATES];
}

/* ---- owners ---- */

/* The owner with this key, or NULL.  hyb_hot->lock is held. */
static HybHotOwner *
lookup_owner(HybHotTable *table, const HybSlotKey *key)
{
	for (int i = 0; i < HYB_HOT_OWNERS; i++)
	{
		HybHotOwner *owner = &table->owners[i];

		if (pg_atomic_read_u32(&owner->number) != 0 &&
			memcmp(&owner->key, key, sizeof(*key)) == 0)
			return owner;
	}
	return NULL;
}

/*
 * One that is free, or has not been used since the hand came by last; after two
 * rounds any.
 */
static HybHotOwner *
take_owner(HybHotTable *table)
{
	HybHotOwner *owner = NULL;

	for (int i = 0; i < 2 * HYB_HOT_OWNERS; i++)
	{
		uint64		lookups;

		owner = &table->owners[table->hand++ % HYB_HOT_OWNERS];
		if (pg_atomic_read_u32(&owner->number) == 0)
			break;
		lookups = pg_atomic_read_u64(&owner->lookups);
		if (owner->seen == lookups)
			break;
		owner->seen = lookups;
	}
	return owner;
}

/* Find the owner of an index, or make it one: NULL if numbers have run out. */
static HybHotOwner *
join_owners(HybHotTable *table, const HybSlotKey *key)
{
	HybHotOwner *owner;

	LWLockAcquire(&hyb_hot->lock, LW_EXCLUSIVE);
	owner = lookup_owner(table, key);
	if (owner == NULL && table->numbers < PG_UINT32_MAX)
	{
		owner = take_owner(table);
		memcpy(&owner->key, key, sizeof(*key));
		pg_atomic_write_u32(&owner->entries, 0);
		pg_atomic_write_u64(&owner->lookups, 0);
		pg_atomic_write_u64(&owner->hits, 0);
		owner->seen = 0;
		pg_write_barrier();
		pg_atomic_write_u32(&owner->number, ++table->numbers);
	}
	LWLockRelease(&hyb_hot->lock);
	return owner;
}

/* The owner of an index, and its number; or NULL, and 0. */
static HybHotOwner *
find_owner(HybHotTable *table, const HybCache *cache, uint32 *number)
{
	HybHotOwner *owner;

	LWLockAcquire(&hyb_hot->lock, LW_SHARED);
	owner = lookup_owner(table, &cache->key);
	*number = owner != NULL ? pg_atomic_read_u32(&owner->number) : 0;
	LWLockRelease(&hyb_hot->lock);
	return owner;
}

/* Have `owned` be of this table. */
static void
renew_owned(Owned *owned, HybCache *cache, HybHotTable *table, uint64 generation)
{
	owned->owner = find_owner(table, cache, &owned->number);
	owned->generation = generation;
	owned->first = 0;
	owned->asked = owned->answered = 0;
	owned->reads = pgBufferUsage.shared_blks_read;
	owned->spares = false;
}

/*
 * Is the owner known, and still the index's?  If it has gone, or there is
 * another table, it is looked for once.
 */
static inline bool
is_owner(Owned *owned, HybCache *cache, HybHotTable *table, uint64 generation)
{
	if (unlikely(owned->generation != generation ||
				 (owned->owner != NULL &&
				  pg_atomic_read_u32(&owned->owner->number) != owned->number)))
		renew_owned(owned, cache, table, generation);
	return owned->owner != NULL;
}

/* Add what a process has counted to the owner's. */
static void
add_counts(Owned *owned)
{
	pg_atomic_fetch_add_u64(&owned->owner->lookups, owned->lookups);
	pg_atomic_fetch_add_u64(&owned->owner->hits, owned->hits);
	owned->lookups = owned->hits = 0;
}

/* ---- look-ups ---- */

/* One of n look-ups, by chance: applications repeat patterns. */
static inline bool
is_one_of(int n)
{
	return pg_prng_uint32(&pg_global_prng_state) % n == 0;
}

/* Decide whether the process goes on to ask in all look-ups. */
static pg_noinline void
review_asking(Owned *owned)
{
	int64		reads = pgBufferUsage.shared_blks_read;

	owned->spares = owned->answered < owned->asked / 4 * 3 &&
		reads - owned->reads <= REVIEW_READS;
	owned->reads = reads;
	owned->asked = owned->answered = 0;
}

uint64
hyb_hot_gate(const HybIndex *ix)
{
	HybCache   *cache;
	uint64		gate;

	/* in a process that has not seen the control structure there is a slot */
	cache = hyb_cache_get(ix);
	if (!is_able(ix, cache))
		return GATE_SHUT;
	gate = pg_atomic_read_u64(gate_of(cache));
	/* the gate before the leaves, and before the proof of the version */
	pg_read_barrier();
	return gate;
}

HybHotAnswer
hyb_hot_find(const HybIndex *ix, const HybHotKey *key, ItemPointer tid)
{
	HybCache   *cache = hyb_cache_get(ix);
	Owned	   *owned = hyb_cache_piece(ix, &owned_piece);
	HybHotTable *table;
	uint64		generation;
	bool		room;

	if (key->len > HYB_HOT_MAX_KEY || !is_able(ix, cache))
		return HYB_HOT_NONE;
	table = hyb_hot_table(&generation);
	if (unlikely(hyb_hot_memory_changed) && table != NULL)
	{
		hyb_hot_table_settle();
		table = hyb_hot_table(&generation);
	}
	if (table == NULL && !hyb_hot_memory_changed)
		return HYB_HOT_NONE;
	if (table == NULL || !is_owner(owned, cache, table, generation))
	{
		if (owned->first < FIRST_LOOKUPS)
		{
			owned->first++;
			return HYB_HOT_NONE;
		}
		return HYB_HOT_PUBLISH;
	}
	if (owned->spares && !is_one_of(LOOKUPS_PER_ASK))
		return HYB_HOT_NONE;
	if (unlikely(++owned->lookups >= COUNT_FLUSH))
		add_counts(owned);
	if (unlikely(owned->asked >= REVIEW_LOOKUPS))
		review_asking(owned);
	if (hyb_hot_read(table, owned->number, key, tid, &room))
	{
		pg_read_barrier();
		if (pg_atomic_read_u64(&hyb_hot->generation) == generation)
		{
			owned->hits++;
			owned->asked++;
			owned->answered++;
			return HYB_HOT_HIT;
		}
	}
	if (room)
		return HYB_HOT_PUBLISH;
	owned->asked++;
	return is_one_of(LOOKUPS_PER_PUBLISH) ? HYB_HOT_PUBLISH : HYB_HOT_NONE;
}

void
hyb_hot_publish(const HybIndex *ix, const HybHotKey *key,
				const ItemPointerData *tid, uint64 gate)
{
	HybCache   *cache = hyb_cache_get(ix);
	Owned	   *owned = hyb_cache_piece(ix, &owned_piece);
	HybHotTable *table;
	HybHotPut	put;
	uint64		generation;

	if ((gate & GATE_SHUT_MASK) != 0)
		return;
	if (hyb_hot_memory_changed)
		hyb_hot_table_settle();
	table = hyb_hot_table(&generation);
	if (table == NULL)
		return;
	if (!is_owner(owned, cache, table, generation))
	{
		owned->owner = join_owners(table, &cache->key);
		if (owned->owner == NULL)
			return;
		owned->number = pg_atomic_read_u32(&owned->owner->number);
	}
	HYB_POINT("hot-publish");
	put.owner = owned->owner;
	put.number = owned->number;
	put.gate = gate_of(cache);
	put.expected = gate;
	hyb_hot_put(table, &put, key, tid);
}

/* The table, if the index has an owner in it. */
static HybHotTable *
owned_table(const HybIndex *ix, Owned **owned)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybHotTable *table;
	uint64		generation;

	if (!is_able(ix, cache) || (table = hyb_hot_table(&generation)) == NULL)
		return NULL;
	*owned = hyb_cache_piece(ix, &owned_piece);
	if (!is_owner(*owned, cache, table, generation))
		renew_owned(*owned, cache, table, generation);
	return (*owned)->owner != NULL ? table : NULL;
}

void
hyb_hot_forget(const HybIndex *ix, const HybHotKey *key)
{
	Owned	   *owned;
	HybHotTable *table = owned_table(ix, &owned);

	if (table != NULL)
		hyb_hot_remove(table, owned->number, key, NULL);
}

/* ---- changing the static levels ---- */

/* The gate that this process has shut, or NULL. */
static pg_atomic_uint64 *shut_gate = NULL;

void
hyb_hot_open(void)
{
	if (shut_gate != NULL)
		pg_atomic_fetch_sub_u64(shut_gate, GATE_SHUT);
	shut_gate = NULL;
}

/* before_shmem_exit callback: a process that ends leaves no gate shut. */
static void
open_gates_at_exit(int code, Datum arg)
{
	hyb_hot_open();
}

/*
 * Count at the gate, and find what the index has in the table.  A process may
 * make an owner, or a table, after they were looked for here.  If it has asked
 * the gate before it was changed it does not publish.  If it asks later, what
 * it reads is new.
 */
static void
pass_gate(const HybIndex *ix, uint64 change, HybHotShut *shut)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybHotOwner *owner;
	uint64		generation;

	Assert(shut_gate == NULL);
	shut->table = NULL;
	if (!is_able(ix, cache))
		return;
	for (;;)
	{
		shut->table = hyb_hot_table(&generation);
		pg_atomic_fetch_add_u64(gate_of(cache), change);
		if ((change & GATE_SHUT_MASK) != 0)
			shut_gate = gate_of(cache);
		/* the gate before the table and its buckets */
		pg_memory_barrier();
		if (pg_atomic_read_u64(&hyb_hot->generation) == generation)
			break;
		hyb_hot_open();
	}
	if (shut->table == NULL)
		return;
	owner = find_owner(shut->table, cache, &shut->owner);
	if (owner != NULL)
		shut->entries = pg_atomic_read_u32(&owner->entries);
	else
		shut->table = NULL;
}

void
hyb_hot_shut(const HybIndex *ix, HybHotShut *shut)
{
	static bool registered = false;

	if (!registered)
		before_shmem_exit(open_gates_at_exit, (Datum) 0);
	registered = true;
	pass_gate(ix, GATE_PASSED + GATE_SHUT, shut);
}

void
hyb_hot_clear(const HybHotShut *shut, const HybHotKey *key)
{
	Assert(shut->table != NULL);
	if (key->len <= HYB_HOT_MAX_KEY)
		hyb_hot_remove(shut->table, shut->owner, key, NULL);
}

/* Visit the entries that an index has in a bucket, as it was. */
static void
visit_bucket(HybHotTable *table, uint32 owner, uint32 bucket, HybHotVisit visit,
			 void *state)
{
	HybHotBucket copy;

	hyb_hot_copy(hyb_hot_bucket(table, bucket), &copy);
	for (int i = 0; i < HYB_HOT_PLACES; i++)
	{
		const HybHotPlace *place = &copy.places[i];
		HybHotKey	key;

		if ((copy.starts & (1 << i)) == 0 || place->owner != owner)
			continue;
		key = hyb_hot_key(place->key, place->keylen);
		visit(&key, place->tid, state);
	}
}

typedef struct VacuumState
{
	const HybHotShut *passed;
	HybHotDead	dead;
	void	   *state;			/* of `dead` */
} VacuumState;

static void
vacuum_entry(const HybHotKey *key, ItemPointerData tid, void *state)
{
	const VacuumState *vacuum = state;

	if (vacuum->dead(&tid, vacuum->state))
		hyb_hot_remove(vacuum->passed->table, vacuum->passed->owner, key, &tid);
}

/* Forget an owner, if it is there. */
static void
drop_owner(HybHotTable *table, const HybSlotKey *key)
{
	HybHotOwner *owner;

	LWLockAcquire(&hyb_hot->lock, LW_EXCLUSIVE);
	owner = lookup_owner(table, key);
	if (owner != NULL)
		pg_atomic_write_u32(&owner->number, 0);
	LWLockRelease(&hyb_hot->lock);
}

/* The callback is asked with no bucket locked, since dead TIDs are not published. */
void
hyb_hot_vacuum(const HybIndex *ix, HybHotDead dead, void *state)
{
	HybHotShut	passed;
	VacuumState vacuum = {.passed = &passed,.dead = dead,.state = state};
	HybHotTable *table;

	HYB_POINT("hot-vacuum");
	pass_gate(ix, GATE_PASSED, &passed);
	table = passed.table;
	if (table == NULL)
		return;
	if ((uint64) passed.entries * VACUUM_FEW_ENTRIES < table->nbuckets)
	{
		drop_owner(table, &hyb_cache_get(ix)->key);
		return;
	}
	for (uint32 i = 0; i < table->nbuckets; i++)
	{
		CHECK_FOR_INTERRUPTS();
		visit_bucket(table, passed.owner, i, vacuum_entry, &vacuum);
	}
}

void
hyb_hot_drop(const HybIndex *ix)
{
	HybCache   *cache = hyb_cache_get(ix);
	HybHotTable *table;
	uint64		generation;

	if (is_able(ix, cache) && (table = hyb_hot_table(&generation)) != NULL)
		drop_owner(table, &cache->key);
}

/* ---- seeing them ---- */

bool
hyb_hot_visit(const HybIndex *ix, uint32 bucket, HybHotVisit visit, void *state)
{
	Owned	   *owned;
	HybHotTable *table = owned_table(ix, &owned);

	if (table == NULL || bucket >= table->nbuckets)
		return false;
	visit_bucket(table, owned->number, bucket, visit, state);
	return true;
}

bool
hyb_hot_has(const HybIndex *ix, const HybHotKey *key,
			const ItemPointerData *tid)
{
	Owned	   *owned;
	HybHotTable *table = owned_table(ix, &owned);
	ItemPointerData found;
	bool		room;

	return table != NULL &&
		hyb_hot_read(table, owned->number, key, &found, &room) &&
		ItemPointerEquals(&found, unconstify(ItemPointerData *, tid));
}

void
hyb_hot_counts(const HybIndex *ix, uint64 *lookups, uint64 *hits)
{
	Owned	   *owned;
	HybHotTable *table = owned_table(ix, &owned);

	*lookups = *hits = 0;
	if (table == NULL)
		return;
	add_counts(owned);
	*lookups = pg_atomic_read_u64(&owned->owner->lookups);
	*hits = pg_atomic_read_u64(&owned->owner->hits);
}

void
hyb_hot_memory(uint64 *reserved, uint64 *used)
{
	HybHotTable *table;
	uint64		generation;

	*reserved = *used = 0;
	if (!hyb_shared_init() || (table = hyb_hot_table(&generation)) == NULL)
		return;
	*reserved = (uint64) table->nbuckets * sizeof(HybHotBucket) + sizeof(HybHotTable);
	*used = pg_atomic_read_u64(&table->places) * HYB_HOT_PLACE;
}
