/*
 * fetch.c
 *		Reading the dynamic stage; marks that VACUUM and scans set in it.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "log/delta.h"
#include "log/log_reader.h"
#include "log/open_stage.h"
#include "log/short_log.h"
#include "miscadmin.h"
#include "storage/proclist.h"
#include "utils/rel.h"

#define HYB_BATCH_ITEMS		16

/*
 * Entries that are copied with the trees locked once.  Whoever is to enter an
 * entry meanwhile has to wait, and then everybody behind it: a merge step, which
 * takes thousands, would stop all of them for a millisecond.
 */
#define PORTION_ITEMS	256

/*
 * Who waits is woken up when the trees are unlocked, but it takes that long
 * until it runs; the lock would be had again meanwhile.
 */
#define PORTION_REST_US 100

/* Bloom filter counters of a backend are added to the shared ones so often. */
#define HYB_COUNTER_FLUSH	64

/* ---- batches ---- */

HybDynItem *
hyb_dyn_batch_add(HybDynBatch *batch)
{
	if (batch->nitems >= batch->items_alloc)
	{
		batch->items_alloc = Max(HYB_BATCH_ITEMS, batch->items_alloc * 2);
		batch->items = hyb_grow(CurrentMemoryContext, batch->items,
								batch->items_alloc, sizeof(HybDynItem));
	}
	return &batch->items[batch->nitems++];
}

static void
add_batch_entry(HybDynBatch *batch, const HybEntry *entry, uint64 generation)
{
	HybDynItem *item = hyb_dyn_batch_add(batch);

	Assert(generation != 0 && entry->keylen > 0 && entry->keylen <= entry->len);
	Assert(ItemPointerIsValid(&entry->tid) && entry->block != HYB_METAPAGE_BLKNO);
	item->tid = entry->tid;
	item->killed = (entry->flags & HYB_ENTRY_KILLED) != 0;
	item->key_off = batch->keys.len;
	item->len = entry->len;
	item->keylen = entry->keylen;
	item->ref.generation = generation;
	item->ref.block = entry->block;
	item->ref.offset = entry->offset;
	hyb_buf_append(&batch->keys, entry->bytes, item->len);
}

void
hyb_dyn_batch_free(HybDynBatch *batch)
{
	if (batch->items != NULL)
		pfree(batch->items);
	hyb_buf_free(&batch->keys);
	memset(batch, 0, sizeof(*batch));
}

void
hyb_dyn_batch_last(const HybIndex *ix, const HybDynBatch *batch, HybPos *pos,
				   HybBuf *keybuf)
{
	const HybDynItem *last = &batch->items[batch->nitems - 1];
	HybPos		at = hyb_pos_at(ix->desc, batch->keys.data + last->key_off,
								last->keylen, last->tid);

	hyb_pos_copy(pos, keybuf, &at);
}

/* ---- fetching ---- */

/* One generation's entries of what is fetched. */
typedef struct GenerationReader
{
	HybTreeIter iter;
	HybLogReader reader;
	const HybEntry *entry;		/* the next one; NULL: there is none */
} GenerationReader;

/* Index order of two entries. */
static int
entry_order(const HybKeyDesc *desc, const HybEntry *a, const HybEntry *b)
{
	int			c = hyb_key_compare(desc, a->bytes, a->keylen,
									b->bytes, b->keylen);

	return c != 0 ? c :
		ItemPointerCompare(unconstify(ItemPointerData *, &a->tid),
						   unconstify(ItemPointerData *, &b->tid));
}

static inline void
next_generation_entry(const HybFetch *fetch, GenerationReader *source)
{
	do
		source->entry = hyb_tree_iter_next(&source->iter);
	while (source->entry != NULL &&
		   (fetch->which & HYB_FETCH_NOT_KILLED) != 0 &&
		   (source->entry->flags & HYB_ENTRY_KILLED) != 0);
}

/* Start on one tree, and have its first entry. */
static void
start_tree(HybIndex *ix, const HybVersion *version, const HybFetch *fetch,
		   const HybStageAccess *access, int which, GenerationReader *source)
{
	HybTree    *tree = &access->stage->trees[which];
	const HybPos *lo = fetch->lo;

	hyb_tree_assert_valid(tree);
	Assert(tree->generation == hyb_version_generation(version, which)->number);
	if (tree->nentries == 0)
		return;
	if (fetch->point_hash != 0 && ix->desc->exact)
	{
		if (!hyb_tree_maybe(tree, access->arena, fetch->point_hash))
		{
			access->s->bloom_misses++;
			return;
		}
		access->s->bloom_hits++;
	}
	if (which == HYB_FROZEN &&
		hyb_pos_compare(ix->desc, lo, &version->watermark) < 0)
		lo = &version->watermark;
	hyb_tree_use(&source->iter.use, ix, tree, access->arena, &source->reader);
	source->iter.backward = fetch->backward;
	hyb_tree_iter_start(&source->iter, lo, fetch->hi);
	next_generation_entry(fetch, source);
}

/*
 * Copy what is asked for out of the trees, which are ready and locked.  Returns
 * a block that is no longer of a generation, if there is one.
 */
static BlockNumber
collect(HybIndex *ix, const HybVersion *version, const HybFetch *fetch,
		const HybStageAccess *access, int want, HybDynBatch *batch)
{
	GenerationReader frozen;
	GenerationReader active;

	Assert(access->shared == NULL || LWLockHeldByMe(&access->shared->lock));
	frozen.entry = active.entry = NULL;
	frozen.reader.buf = active.reader.buf = InvalidBuffer;
	frozen.reader.lost = active.reader.lost = InvalidBlockNumber;
	if (want & HYB_FETCH_FROZEN)
		start_tree(ix, version, fetch, access, HYB_FROZEN, &frozen);
	if (want & HYB_FETCH_ACTIVE)
		start_tree(ix, version, fetch, access, HYB_ACTIVE, &active);

	while (frozen.entry != NULL || active.entry != NULL)
	{
		bool		take_frozen = active.entry == NULL;

		if (batch->nitems >= fetch->limit)
		{
			batch->complete = false;
			break;
		}
		if (frozen.entry != NULL && active.entry != NULL)
		{
			int			c = entry_order(ix->desc, frozen.entry, active.entry);

			take_frozen = fetch->backward ? c > 0 : c < 0;
		}
		if (take_frozen)
		{
			add_batch_entry(batch, frozen.entry, version->frozen.number);
			next_generation_entry(fetch, &frozen);
		}
		else
		{
			add_batch_entry(batch, active.entry, version->active.number);
			next_generation_entry(fetch, &active);
		}
	}
	hyb_log_reader_end(&frozen.reader);
	hyb_log_reader_end(&active.reader);
	return BlockNumberIsValid(frozen.reader.lost) ?
		frozen.reader.lost : active.reader.lost;
}

/* The same, for a private stage: an error has to say that it is not in use. */
static BlockNumber
collect_private(HybIndex *ix, const HybVersion *version, const HybFetch *fetch,
				HybStageAccess *access, int want, HybDynBatch *batch)
{
	BlockNumber volatile lost = InvalidBlockNumber;

	PG_TRY();
	{
		lost = collect(ix, version, fetch, access, want, batch);
	}
	PG_CATCH();
	{
		hyb_stage_close(access);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return lost;
}

static void
flush_counters(HybSlot *s, HybStage *stage)
{
	if (s->bloom_hits > 0)
		pg_atomic_fetch_add_u64(&stage->bloom_hits, s->bloom_hits);
	if (s->bloom_misses > 0)
		pg_atomic_fetch_add_u64(&stage->bloom_misses, s->bloom_misses);
	s->bloom_hits = 0;
	s->bloom_misses = 0;
	for (int i = 0; i < HYB_STAGE_COUNTERS; i++)
	{
		if (s->counters[i] > 0)
			pg_atomic_fetch_add_u64(&stage->counters[i], s->counters[i]);
		s->counters[i] = 0;
	}
}

static inline uint32
uncounted(const HybSlot *s)
{
	uint32		n = s->bloom_hits + s->bloom_misses;

	for (int i = 0; i < HYB_STAGE_COUNTERS; i++)
		n += s->counters[i];
	return n;
}

/*
 * Is the active generation known to be empty, without locking anything?
 *
 * Of the same version the one that is kept may have been read later, when
 * there were more lanes: so that one is looked at.
 */
static inline bool
active_is_empty(const HybSlot *s, const HybVersion *version)
{
	const HybVersion *known = version;

	if (hyb_slot_version_is_current(s))
	{
		known = s->version;
		if (known->version != version->version)
			return false;
	}
	else if (!s->key.in_recovery)
		return false;
	for (int lane = 0; lane < HYB_LANES; lane++)
		if (BlockNumberIsValid(known->active.head[lane]))
			return false;
	return true;
}

static inline bool
has_shared_trees(const HybSlot *s)
{
	return hyb_slot_valid(s) && s->shared->tree_bytes > 0;
}

/*
 * Add what `portion` asks for to the batch, with the trees locked meanwhile.
 * False if the version is not current.  *waited_for: somebody waits for the
 * trees.
 */
static bool
fetch_portion(HybIndex *ix, const HybVersion *version, const HybFetch *portion,
			  HybDynBatch *batch, BlockNumber *lost, bool *waited_for)
{
	int			which = portion->which & ~HYB_FETCH_NOT_KILLED;
	HybStageAccess access;

	if (hyb_stage_open(ix, version, which, &access) != HYB_STAGE_READY)
		return false;
	/* VACUUM marks entries in trees that it finds */
	batch->knows_dead &= access.shared != NULL && !access.s->key.in_recovery;
	if (access.shared != NULL)
		*lost = collect(ix, version, portion, &access, which, batch);
	else
		*lost = collect_private(ix, version, portion, &access, which, batch);
	if (uncounted(access.s) >= HYB_COUNTER_FLUSH)
		flush_counters(access.s, access.stage);
	/* not exact without the list's lock */
	*waited_for = access.shared != NULL &&
		!proclist_is_empty(&access.shared->lock.waiters);
	hyb_stage_close(&access);
	return true;
}

bool
hyb_dynamic_fetch(HybIndex *ix, const HybVersion *version,
				  const HybFetch *fetch, HybDynBatch *batch)
{
	HybSlot    *s = hyb_slot_get(ix);
	int			which = fetch->which & ~HYB_FETCH_NOT_KILLED;
	HybFetch	portion = *fetch;
	HybPos		at;
	HybBuf		at_key = {0};
	BlockNumber lost = InvalidBlockNumber;
	bool		waited_for = false;
	bool		current;

	HYB_POINT("dynamic-fetch");
	hyb_pos_assert_valid(ix->desc, fetch->lo);
	hyb_pos_assert_valid(ix->desc, fetch->hi);
	Assert(fetch->limit > 0);
	batch->nitems = 0;
	batch->keys.len = 0;
	batch->complete = true;
	batch->knows_dead = true;

	if (version->frozen.number == 0)
		which &= ~HYB_FETCH_FROZEN;
	if ((which & HYB_FETCH_ACTIVE) && active_is_empty(s, version))
		which &= ~HYB_FETCH_ACTIVE;
	if (which == 0 ||
		(!has_shared_trees(s) &&
		 hyb_short_log_fetch(ix, version, fetch, which, batch)))
		return hyb_version_is_current(ix, version);

	portion.which = which | (fetch->which & HYB_FETCH_NOT_KILLED);
	do
	{
		portion.limit = Min(batch->nitems + PORTION_ITEMS, fetch->limit);
		if (batch->nitems > 0)
		{
			HYB_ASSERT_NO_LWLOCK();
			if (waited_for)
				pg_usleep(PORTION_REST_US);
			hyb_dyn_batch_last(ix, batch, &at, &at_key);
			if (portion.backward)
				portion.hi = &at;
			else
				portion.lo = &at;
		}
		batch->complete = true;
		current = fetch_portion(ix, version, &portion, batch, &lost, &waited_for);
	} while (current && !batch->complete && batch->nitems < fetch->limit &&
			 !BlockNumberIsValid(lost));
	hyb_buf_free(&at_key);
	if (!current || !hyb_version_is_current(ix, version))
		return false;
	if (BlockNumberIsValid(lost))
		hyb_corrupted(ix->rel, lost,
					  "An entry of the delta log is not where it was appended.");
	return true;
}

const char *
hyb_dynamic_verify(HybIndex *ix, const HybVersion *version)
{
	HybStageAccess access;
	const char *volatile error = NULL;

	if (hyb_stage_open(ix, version, HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE,
					   &access) != HYB_STAGE_READY)
		return NULL;
	PG_TRY();
	{
		for (int which = HYB_FROZEN; which <= HYB_ACTIVE && error == NULL; which++)
		{
			HybTreeUse	use;
			HybLogReader reader;

			hyb_tree_use(&use, ix, &access.stage->trees[which], access.arena,
						 &reader);
			error = hyb_tree_verify(&use);
			hyb_log_reader_end(&reader);
		}
	}
	PG_CATCH();
	{
		/* a shared stage's lock goes with the error */
		if (access.shared == NULL)
			hyb_stage_close(&access);
		PG_RE_THROW();
	}
	PG_END_TRY();
	hyb_stage_close(&access);
	return error;
}

/*
 * An entry is named by generation, block and offset: pages of a generation are
 * only appended to, and its number never comes back.
 *
 * That the generation is part of the current version is proven with the pin
 * held, and the dead flag read with the pin held (docs/vacuum.md says
 * why both together are enough, and why the watermark does not matter).  The
 * metapage comes before delta pages in the lock order, so the page is locked
 * after the version is known.
 */
HybPinResult
hyb_delta_pin_entry(HybIndex *ix, const HybDeltaRef *ref,
					const ItemPointerData *tid, Buffer *pin)
{
	Buffer		prev = *pin;
	Buffer		buf;
	Page		page;
	HybDeltaHeader header;
	bool		found = false;
	HybPinResult result = HYB_PIN_MOVED;

	HYB_POINT("delta-pin");
	HYB_ASSERT_NO_LWLOCK();
	*pin = InvalidBuffer;
	Assert(ref->generation != 0 && ref->block != HYB_METAPAGE_BLKNO);
	Assert(ref->offset >= HYB_DELTA_FIRST);
	buf = ReleaseAndReadBuffer(prev, ix->rel, ref->block);
	HYB_POINT("delta-pinned");
	if (hyb_version_has_generation(ix, ref->generation))
	{
		page = BufferGetPage(buf);
		LockBuffer(buf, BUFFER_LOCK_SHARE);
		if (hyb_page_check(ix, buf, HYB_PAGE_DELTA, ref->generation) &&
			!hyb_delta_is_end(page, ref->offset))
		{
			header = hyb_delta_header(page, ref->offset);
			found = ItemPointerEquals(&header.tid,
									  unconstify(ItemPointerData *, tid));
		}
		LockBuffer(buf, BUFFER_LOCK_UNLOCK);

		if (found)
			result = (header.flags & HYB_DELTA_DEAD) != 0 ?
				HYB_PIN_DEAD : HYB_PIN_HOLDS;
		else if (hyb_version_has_generation(ix, ref->generation))
			hyb_corrupted(ix->rel, ref->block,
						  "An entry of the delta log is not where it was appended.");
	}
	if (result == HYB_PIN_HOLDS)
		*pin = buf;
	else
		ReleaseBuffer(buf);
	Assert((result == HYB_PIN_HOLDS) == BufferIsValid(*pin));
	return result;
}

/* ---- marks ---- */

static void
flag_dynamic_entry(HybIndex *ix, HybTree *tree, HybArena *arena, const HybEntry *entry,
				   uint16 flag)
{
	HybTreeUse	use;
	HybLogReader reader;

	hyb_tree_use(&use, ix, tree, arena, &reader);
	(void) hyb_tree_flag(&use, entry, flag);
	hyb_log_reader_end(&reader);
}

/*
 * The hint is one bit, set under the shared lock: others who set it at the
 * same time write the same, and nobody writes anything else then.
 */
void
hyb_dynamic_kill(HybIndex *ix, const HybDynBatch *batch,
				 const HybDynItem *item)
{
	HybSlot    *s = hyb_slot_get(ix);
	HybEntry	entry = {
		.bytes = batch->keys.data + item->key_off,
		.keylen = item->keylen,
		.tid = item->tid
	};
	uint64		generation = item->ref.generation;
	HybTree    *tree;

	if (s->key.in_recovery)
		return;
	if (s->stage != NULL && s->busy == 0 &&
		(tree = hyb_stage_tree(s->stage, generation)) != NULL)
		flag_dynamic_entry(ix, tree, s->arena, &entry, HYB_ENTRY_KILLED);

	if (!has_shared_trees(s))
	{
		hyb_short_log_killed(s, generation);
		return;
	}
	if (LWLockHeldByMe(&s->shared->lock) ||
		!LWLockConditionalAcquire(&s->shared->lock, LW_SHARED))
		return;
	if (hyb_slot_valid(s) && hyb_arena_attached() &&
		(tree = hyb_stage_tree(hyb_stage_of(s->shared), generation)) != NULL)
		flag_dynamic_entry(ix, tree, &hyb_shared_arena, &entry, HYB_ENTRY_KILLED);
	LWLockRelease(&s->shared->lock);
}

/*
 * The flags are on the page already, so whoever reads the page from now on
 * leaves these entries out; who has read it before without them holds the
 * lock that is waited for here, or has entered them into the tree.
 */
void
hyb_dynamic_mark_dead(HybIndex *ix, uint64 generation,
					  const HybEntry *dead, int ndead)
{
	HybSlot    *s = hyb_slot_get(ix);
	HybTree    *tree;

	if (s->stage != NULL && s->busy == 0 &&
		(tree = hyb_stage_tree(s->stage, generation)) != NULL)
		for (int i = 0; i < ndead; i++)
			flag_dynamic_entry(ix, tree, s->arena, &dead[i], HYB_ENTRY_DEAD);

	while (hyb_slot_find(s))
	{
		HybSharedSlot *shared = s->shared;

		hyb_arena_attach();
		hyb_stage_lock(ix, shared, LW_EXCLUSIVE);
		if (hyb_slot_valid(s) && hyb_arena_attached())
		{
			hyb_stage_of(shared)->marks++;
			tree = hyb_stage_tree(hyb_stage_of(shared), generation);
			if (tree != NULL)
				for (int i = 0; i < ndead; i++)
					flag_dynamic_entry(ix, tree, &hyb_shared_arena, &dead[i],
									   HYB_ENTRY_DEAD);
			LWLockRelease(&shared->lock);
			break;
		}
		LWLockRelease(&shared->lock);
	}
}

void
hyb_dynamic_stats(HybIndex *ix, bool nowait, HybDynamicStats *stats)
{
	HybSlot    *s = hyb_slot_get(ix);
	HybStage   *stage = NULL;

	memset(stats, 0, sizeof(*stats));
	if (s->stage != NULL)
		stage = s->stage;
	else if (hyb_slot_find(s))
	{
		hyb_arena_attach();
		if (!nowait)
			hyb_stage_lock(ix, s->shared, LW_SHARED);
		else if (!LWLockConditionalAcquire(&s->shared->lock, LW_SHARED))
		{
			stats->busy = true;
			stats->shared = true;
			stats->tree_bytes = s->shared->tree_bytes;
			return;
		}
		if (hyb_slot_valid(s))
			stage = hyb_stage_of(s->shared);
		else
			LWLockRelease(&s->shared->lock);
		stats->shared = stage != NULL;
	}
	if (stage == NULL)
	{
		/* no entry was ever inserted: this backend's are all that is known */
		for (int i = 0; i < HYB_STAGE_COUNTERS; i++)
			stats->counters[i] = s->counters[i];
		return;
	}

	flush_counters(s, stage);
	stats->tree_bytes = hyb_stage_bytes(stage);
	for (int which = HYB_FROZEN; which <= HYB_ACTIVE; which++)
	{
		stats->tree_entries += stage->trees[which].nentries;
		stats->compact_entries += stage->trees[which].nlog;
	}
	stats->bloom_hits = pg_atomic_read_u64(&stage->bloom_hits);
	stats->bloom_misses = pg_atomic_read_u64(&stage->bloom_misses);
	stats->rebuilds = stage->rebuilds;
	for (int i = 0; i < HYB_STAGE_COUNTERS; i++)
		stats->counters[i] = pg_atomic_read_u64(&stage->counters[i]);
	if (stats->shared)
		LWLockRelease(&s->shared->lock);
}

void
hyb_dynamic_age_counters(HybIndex *ix, int first, int n)
{
	HybSlot    *s = hyb_slot_get(ix);

	Assert(first >= 0 && n >= 0 && first + n <= HYB_STAGE_COUNTERS);
	if (!hyb_slot_find(s) ||
		!LWLockConditionalAcquire(&s->shared->lock, LW_EXCLUSIVE))
		return;
	if (hyb_slot_valid(s))
	{
		HybStage   *stage = hyb_stage_of(s->shared);

		for (int i = first; i < first + n; i++)
			pg_atomic_write_u64(&stage->counters[i],
								pg_atomic_read_u64(&stage->counters[i]) / 2);
	}
	LWLockRelease(&s->shared->lock);
}
