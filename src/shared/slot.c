/*
 * slot.c
 *		Backend-local slots, and how they refer to shared ones.
 *
 * Who builds trees makes a shared slot before he reads the log; appenders and
 * those who change the generations only look whether there is one.  They do so with the
 * content lock of the page that they change held, the makers before they lock
 * that page to read it.  So either the appender finds the slot, and tells it
 * what it did, or the maker, who comes to the page later, reads what was
 * done.  The directory's creations make looking cheap: they count up with
 * every slot made, before the maker lets go of the directory.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "shared/database.h"
#include "shared/shared_arena.h"
#include "shared/slot.h"
#include "store/handle.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* last_use is not written more often than this. */
#define HYB_TOUCH_MS		100

/* Of how many uses one reads the clock; others take the statement's start. */
#define HYB_TOUCH_CLOCK		64

/* Indexes that a backend has trees of its own for, at most. */
#define HYB_PRIVATE_MAX		64

static HTAB *local_slots = NULL;
static Size local_slot_size = MAXALIGN(sizeof(HybSlot));
static HybSlotPiece *pieces = NULL;
static uint64 local_serials = 0;

/* The counter of changes of temporary indexes, which nobody else changes. */
static pg_atomic_uint64 no_changes;

static void
slot_key(const HybIndex *ix, HybSlotKey *key)
{
	memset(key, 0, sizeof(*key));
	key->space = HYB_RELATION_SPACE(ix->rel);
	key->db = HYB_RELATION_DB(ix->rel);
	key->file = HYB_RELATION_FILENUMBER(ix->rel);
	key->in_recovery = RecoveryInProgress();
	key->incarnation = ix->incarnation;
	key->life = hyb_database_life();
}

#ifdef USE_ASSERT_CHECKING
void
hyb_slot_assert_valid(const HybSlot *s)
{
	Assert(s->local_serial != 0 && s->local_serial <= local_serials);
	Assert(s->key.incarnation != 0);
	Assert(s->busy >= 0 && s->lane >= 0 && s->lane < HYB_LANES);
	/* trees of its own: both or neither */
	Assert((s->stage == NULL) == (s->arena == NULL));
	Assert(s->busy == 0 || s->arena != NULL);
	Assert(!s->version_valid || (s->version != NULL && s->changes != NULL));
	Assert(!s->is_temp || s->shared == NULL);
	Assert((s->shared == NULL) == (s->shared_serial == 0));
}
#endif

/* ---- trees in backend memory ---- */

static HybSlot *private_slots[HYB_PRIVATE_MAX];
static int	nprivate = 0;

static void discard(HybSlot *s);

void
hyb_slot_drop_private(HybSlot *s)
{
	if (s->arena == NULL)
		return;
	Assert(s->busy == 0);
	hyb_slot_assert_valid(s);
	hyb_arena_drop(s->arena);
	s->arena = NULL;
	s->stage = NULL;
	for (int i = 0; i < nprivate; i++)
	{
		if (private_slots[i] != s)
			continue;
		nprivate--;
		memmove(&private_slots[i], &private_slots[i + 1],
				(nprivate - i) * sizeof(HybSlot *));
	}
	Assert(nprivate >= 0);
}

/*
 * Keep the memory of other indexes' private trees below what is allowed for
 * shared ones, and their number small.  The newest come last.
 */
static void
limit_private(HybSlot *except)
{
	uint64		budget = (uint64) hyb_dynamic_memory_kb * 1024;

	for (int i = 0; i < nprivate &&
		 (hyb_arena_private() > budget || nprivate == HYB_PRIVATE_MAX);)
	{
		HybSlot    *s = private_slots[i];

		if (s == except || s->busy > 0)
			i++;
		else if (s->tied)
			hyb_slot_drop_private(s);
		else
			discard(s);
	}
}

void
hyb_slot_make_private(HybSlot *s)
{
	HybArena   *arena;

	limit_private(s);
	if (s->arena != NULL)
		return;
	if (nprivate == HYB_PRIVATE_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("comparison functions use too many hybrid indexes at a time")));
	arena = hyb_arena_create(TopMemoryContext);
	s->stage = MemoryContextAllocZero(arena->context, sizeof(HybStage));
	s->arena = arena;
	Assert(nprivate < HYB_PRIVATE_MAX);
	private_slots[nprivate++] = s;
	hyb_slot_assert_valid(s);
}

/* ---- backend-local ---- */

void
hyb_slot_add_piece(HybSlotPiece *piece)
{
	Assert(local_slots == NULL);
	piece->offset = local_slot_size;
	piece->next = pieces;
	pieces = piece;
	local_slot_size += MAXALIGN(piece->size);
}

/*
 * Nobody uses the slot; a handle that still refers to it finds another serial.
 */
static void
discard(HybSlot *s)
{
	Assert(s->busy == 0);
	hyb_slot_drop_private(s);
	if (s->version != NULL)
		pfree(s->version);
	for (HybSlotPiece *piece = pieces; piece != NULL; piece = piece->next)
		if (piece->release != NULL)
			piece->release((char *) s + piece->offset);
	s->local_serial = 0;
	hash_search(local_slots, &s->key, HASH_REMOVE, NULL);
}

/*
 * The relation cache drops its entry: callback of the memory context.  The
 * index is not open then.  Any change of the catalog's rows about the index has
 * the entry dropped, ANALYZE for one; so a slot with trees of its own stays, of
 * which there are few, until it is used again or they have to go.
 */
static void
relation_gone(void *arg)
{
	HybSlot    *s = arg;

	s->tied = false;
	if (s->arena == NULL)
		discard(s);
}

static void
tie_to_relation(HybSlot *s, Relation rel)
{
	Assert(!s->tied);
	s->gone.func = relation_gone;
	s->gone.arg = s;
	MemoryContextRegisterResetCallback(rel->rd_indexcxt, &s->gone);
	s->tied = true;
}

static void
make_local_slots(void)
{
	HASHCTL		ctl;

	pg_atomic_init_u64(&no_changes, 0);
	ctl.keysize = sizeof(HybSlotKey);
	ctl.entrysize = local_slot_size;
	ctl.hcxt = TopMemoryContext;
	local_slots = hash_create("hybrid index slots", 64, &ctl,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/*
 * Slow path of hyb_slot_get.  Memory of a slot that goes is used again for
 * slots only, so handles that refer to one can look at its serial.
 */
HybSlot *
hyb_slot_open(HybIndex *ix)
{
	HybSlotKey	key;
	HybSlot    *s;
	bool		found;

	if (local_slots == NULL)
		make_local_slots();
	slot_key(ix, &key);
	s = hash_search(local_slots, &key, HASH_ENTER, &found);
	if (!found)
	{
		memset((char *) s + sizeof(HybSlotKey), 0,
			   local_slot_size - sizeof(HybSlotKey));
		s->local_serial = ++local_serials;
		s->relid = RelationGetRelid(ix->rel);
		s->is_temp = ix->rel->rd_rel->relpersistence == RELPERSISTENCE_TEMP;
		if (s->is_temp)
			s->changes = &no_changes;
		else if (hyb_directory != NULL && !key.in_recovery)
			s->changes = hyb_directory_changes(&key);
	}
	if (!s->tied)
		tie_to_relation(s, ix->rel);
	ix->slot = s;
	ix->slot_serial = s->local_serial;
	hyb_index_remember_slot(ix);
	hyb_slot_assert_valid(s);
	return s;
}

/* ---- shared slots ---- */

/*
 * Refer to another shared slot, or to none.  What the old one said of appends
 * the new one has not heard of.
 */
static void
refer(HybSlot *s, HybSharedSlot *shared)
{
	s->shared = shared;
	s->shared_serial = shared != NULL ? pg_atomic_read_u64(&shared->serial) : 0;
	if (s->stage != NULL)
		s->stage->synced[HYB_ACTIVE] = false;
	Assert(shared == NULL || !s->is_temp);
}

bool
hyb_slot_find(HybSlot *s)
{
	HybSharedSlot *shared;

	if (hyb_slot_valid(s))
		return true;
	if (s->shared != NULL)
	{
		refer(s, NULL);
		s->seen_creations = 0;
	}
	if (s->is_temp || hyb_directory == NULL ||
		s->seen_creations == pg_atomic_read_u64(&hyb_directory->creations))
		return false;

	hyb_directory_lock(LW_SHARED, false);
	s->seen_creations = pg_atomic_read_u64(&hyb_directory->creations);
	shared = hyb_directory_lookup(&s->key);
	if (shared != NULL)
		refer(s, shared);
	hyb_directory_unlock();
	return shared != NULL;
}

void		(*hyb_slot_evicted) (Oid dbid, Oid relid) = NULL;
void		(*hyb_slot_made) (HybIndex *ix) = NULL;

bool
hyb_slot_create(HybSlot *s, bool *made)
{
	HybEvicted	evicted = {InvalidOid, InvalidOid};
	HybSharedSlot *shared;

	Assert(CritSectionCount == 0);
	*made = false;
	if (hyb_slot_find(s))
		return true;
	if (s->is_temp || hyb_directory == NULL || !IsUnderPostmaster)
		return false;

	hyb_directory_grow();
	hyb_directory_lock(LW_EXCLUSIVE, true);
	shared = hyb_directory_lookup(&s->key);
	if (shared == NULL)
	{
		shared = hyb_directory_add(&s->key, s->relid, &evicted);
		if (shared != NULL)
			pg_atomic_fetch_add_u64(&hyb_directory->creations, 1);
		*made = shared != NULL;
	}
	if (shared != NULL)
		refer(s, shared);
	s->seen_creations = pg_atomic_read_u64(&hyb_directory->creations);
	hyb_directory_unlock();
	hyb_arena_trim(&hyb_shared_arena);
	if (OidIsValid(evicted.db) && hyb_slot_evicted != NULL)
		hyb_slot_evicted(evicted.db, evicted.relid);
	return shared != NULL;
}

/*
 * From here on the slot speaks of this generation, in which it has heard of
 * nothing yet.  The mutex is held.
 */
static void
set_generation(HybSharedSlot *shared, uint64 generation)
{
	Assert(pg_atomic_read_u64(&shared->appended_gen) < generation);
	/* readers look at the generation first: lanes are zeroed before */
	for (int i = 0; i < HYB_LANES; i++)
		pg_atomic_write_u64(&shared->appended[i], 0);
	pg_write_barrier();
	pg_atomic_write_u64(&shared->appended_gen, generation);
}

/*
 * With that lock nobody else can move the end meanwhile, so the record is
 * exact and never goes backwards.
 *
 * The slot was looked up with that lock held.  If it has since become another
 * index's there is nothing to do: a slot made for this index since then will
 * be brought up to date by reading the page.
 */
void
hyb_slot_publish(HybSlot *s, uint64 generation, int lane, uint64 end)
{
	HybSharedSlot *shared = s->shared;

	Assert(generation > 0 && lane >= 0 && lane < HYB_LANES);
	Assert(hyb_lane_end_block(end) != HYB_METAPAGE_BLKNO);
	Assert(hyb_lane_end_offset(end) > SizeOfPageHeaderData && hyb_lane_end_offset(end) < BLCKSZ);
	if (shared == NULL || s->key.in_recovery)
		return;
	SpinLockAcquire(&shared->mutex);
	if (pg_atomic_read_u64(&shared->serial) == s->shared_serial)
	{
		uint64		current = pg_atomic_read_u64(&shared->appended_gen);

		if (current < generation)
			set_generation(shared, generation);
		/* an end never goes backwards on its page */
		Assert(current != generation ||
			   pg_atomic_read_u64(&shared->appended[lane]) >> 16 != end >> 16 ||
			   pg_atomic_read_u64(&shared->appended[lane]) <= end);
		if (current <= generation)
			pg_atomic_write_u64(&shared->appended[lane], end);
	}
	SpinLockRelease(&shared->mutex);
}

void
hyb_slot_touch(HybSlot *s)
{
	TimestampTz now = GetCurrentStatementStartTimestamp();

	if (s->touches++ % HYB_TOUCH_CLOCK == 0)
		now = GetCurrentTimestamp();
	if (now > s->shared->last_use + HYB_TOUCH_MS * INT64CONST(1000))
		s->shared->last_use = now;
}

/*
 * Free the tree of a generation that is gone, if that is easy: it may be
 * somebody's who reads, and the slot may be another index's by now.
 */
static void
free_merged_tree(HybSlot *s, const HybMetaPage *meta)
{
	HybSharedSlot *shared = s->shared;

	if (!LWLockConditionalAcquire(&shared->lock, LW_EXCLUSIVE))
		return;
	if (hyb_slot_valid(s) && hyb_arena_attached())
	{
		HybStage   *stage = hyb_stage_of(shared);
		HybTree    *tree = &stage->trees[HYB_FROZEN];

		if (tree->generation != 0 &&
			tree->generation != meta->frozen.number &&
			tree->generation < meta->active.number)
		{
			hyb_tree_free(tree, &hyb_shared_arena);
			shared->tree_bytes = hyb_stage_bytes(stage);
		}
	}
	LWLockRelease(&shared->lock);
	hyb_arena_trim(&hyb_shared_arena);
}

void
hyb_slot_changed(HybSlot *s)
{
	s->version_valid = false;
	if (s->changes != NULL && !s->is_temp)
		pg_atomic_fetch_add_u64(s->changes, 1);
}

/*
 * The counter comes first.  Who finds that the slot speaks of the new
 * generation takes the old one for empty, and asks after that whether its
 * version is the current one: the answer must be no by then.
 */
void
hyb_slot_version_changed(HybSlot *s, const HybMetaPage *meta)
{
	HybSharedSlot *shared = s->shared;

	hyb_slot_changed(s);
	if (shared == NULL)
		return;
	SpinLockAcquire(&shared->mutex);
	if (pg_atomic_read_u64(&shared->serial) == s->shared_serial &&
		pg_atomic_read_u64(&shared->appended_gen) < meta->active.number &&
		meta->active.npages == 0)
		set_generation(shared, meta->active.number);
	SpinLockRelease(&shared->mutex);
	if (shared->tree_bytes > 0)
		free_merged_tree(s, meta);
}
