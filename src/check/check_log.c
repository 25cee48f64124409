/*
 * check_log.c
 *		hybrid_index_check: the delta log, whether the trees over it say the same,
 *		and what the runs above the oldest level hold, in order.
 *
 * The leaves of the oldest level lead through the key range (check_static.c).  The
 * entries of the dynamic stage and of newer levels are taken along with them.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "chain/chain.h"
#include "check/check.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "tree/descend.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Entries of a run that are fetched at a time. */
#define FRESH_FETCH_LIMIT		1000

/* How often that is tried before a run is taken to be damaged. */
#define FETCH_TRIES		100

static uint32
hash_entry(const uint8 *entry, uint32 len, const ItemPointerData *tid)
{
	return hash_combine(hash_bytes(entry, len),
						hash_bytes((const unsigned char *) tid,
								   sizeof(ItemPointerData)));
}

static void
add_log_entry(HybCheck *check, BlockNumber block, uint64 generation, uint16 offset,
			  uint32 hash)
{
	HybLogEntry *log;

	if (check->nlog == check->log_alloc)
	{
		check->log_alloc = Max(1024, check->log_alloc * 2);
		check->log = hyb_grow(check->context, check->log, check->log_alloc,
							  sizeof(HybLogEntry));
	}
	log = &check->log[check->nlog++];
	log->generation = generation;
	log->block = block;
	log->offset = offset;
	log->seen = false;
	log->hash = hash;
}

/* Copy a page of the log if it still is one of that generation. */
static bool
copy_log_page(HybCheck *check, BlockNumber block, uint64 generation,
			  char *copy)
{
	Relation	rel = check->ix->rel;
	Buffer		buf;
	bool		same;

	if (block >= RelationGetNumberOfBlocks(rel))
		return false;
	buf = ReadBuffer(rel, block);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	same = !PageIsNew(BufferGetPage(buf)) &&
		hyb_page_check(check->ix, buf, HYB_PAGE_DELTA, generation);
	memcpy(copy, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	return same;
}

/* A page that takes no more entries says how many it has. */
static void
check_count(HybCheck *check, BlockNumber block, Page page, uint32 n)
{
	HybPageOpaque *opaque = hyb_page_opaque(page);

	if (n != opaque->count &&
		(BlockNumberIsValid(opaque->link) ||
		 (opaque->flags & HYB_DELTA_CLOSED) != 0))
		hyb_check_fail(check, block,
					   "A delta page has %u entries, but claims %u.",
					   n, opaque->count);
}

/* Note the live entries of a page, copied.  Returns the number of all. */
static uint32
check_page_entries(HybCheck *check, BlockNumber block, uint64 generation, Page page)
{
	HybEntry	entry = {.block = block};
	uint32		n = 0;

	while (hyb_delta_next(check->ix->rel, page, &entry))
	{
		(void) hyb_check_entry(check, block, entry.offset, entry.bytes,
							   entry.len, &entry.tid);
		n++;
		if ((entry.flags & HYB_DELTA_DEAD) == 0)
			add_log_entry(check, block, generation, entry.offset,
						  hash_entry(entry.bytes, entry.len, &entry.tid));
	}
	check_count(check, block, page, n);
	return n;
}

typedef enum HybGenerationState
{
	GENERATION_ACTIVE,
	GENERATION_FROZEN,
	GENERATION_RETIRING
} HybGenerationState;

/* What the chains of a generation hold. */
typedef struct Chains
{
	const HybGeneration *generation;
	HybGenerationState state;
	uint64		nentries;		/* on pages with a successor */
	uint64		in_tails;		/* on the last ones */
} Chains;

/* One page of a chain, copied. */
static void
check_chain_page(HybCheck *check, Chains *chains, const HybDeltaWalk *walk,
				 Page page)
{
	const HybPageOpaque *opaque = hyb_page_opaque(page);
	BlockNumber block = walk->block;
	uint64		number = chains->generation->number;
	BlockNumber tail = chains->generation->tail[walk->lane];
	uint32		n;

	if ((opaque->flags & ~HYB_DELTA_CLOSED) != 0)
		hyb_check_fail(check, block, "A delta page has flags 0x%04X.",
					   opaque->flags);
	if (block == tail && chains->state != GENERATION_ACTIVE)
	{
		if ((opaque->flags & HYB_DELTA_CLOSED) == 0)
			hyb_check_fail(check, block,
						   "The last page of lane %d of frozen generation " UINT64_FORMAT " is not closed.",
						   walk->lane, number);
		if (BlockNumberIsValid(opaque->link))
			hyb_check_fail(check, block,
						   "The last page of lane %d of generation " UINT64_FORMAT " has a link to block %u.",
						   walk->lane, number, opaque->link);
	}
	if (block != tail && !BlockNumberIsValid(opaque->link))
		hyb_check_fail(check, block,
					   "The chain of lane %d of generation " UINT64_FORMAT " ends here, not at its tail, block %u.",
					   walk->lane, number, tail);

	/* entries of a retiring generation are of no interest any more */
	if (chains->state == GENERATION_RETIRING)
		return;
	n = check_page_entries(check, block, number, page);
	if (block == tail)
		chains->in_tails += n;
	else
		chains->nentries += n;
}

/*
 * The chains of one generation, from the survey's heads to its tails.  Pages
 * appended behind the tails of the active generation since are not looked at;
 * the chains of a retiring generation are its pages not freed yet.
 */
static void
check_generation(HybCheck *check, const HybGeneration *generation,
				 HybGenerationState state)
{
	Chains		chains = {
		.generation = generation,
		.state = state
	};
	HybCheckPage page = {.stamp = generation->number};
	PGAlignedBlock copy;
	HybDeltaWalk walk;
	uint64		npages = 0;

	if (generation->number == 0)
		return;
	for (int lane = 0; lane < HYB_LANES && state != GENERATION_RETIRING; lane++)
		if (!BlockNumberIsValid(generation->head[lane]) &&
			BlockNumberIsValid(generation->tail[lane]))
			hyb_check_fail(check, HYB_METAPAGE_BLKNO,
						   "Lane %d of generation " UINT64_FORMAT " has a tail, but no head.",
						   lane, generation->number);

	Assert(check->nlog == 0 || state != GENERATION_RETIRING);
	/* to claim a block finds links that go round, and names both pages */
	hyb_delta_walk_start(&walk, check->ix, generation, false);
	while (hyb_delta_walk_next(&walk))
	{
		hyb_check_claim(check, walk.block, HYB_USE_DELTA, walk.from);
		page.block = walk.block;
		page.from = walk.from;
		hyb_check_copy(check, &page, HYB_PAGE_DELTA, copy.data);
		check_chain_page(check, &chains, &walk, (Page) copy.data);
		npages++;
		if (walk.block != generation->tail[walk.lane])
			hyb_delta_walk_follow(&walk, (Page) copy.data);
	}

	if (npages != generation->npages)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "Generation " UINT64_FORMAT " has " UINT64_FORMAT " pages, but the metapage counts " UINT64_FORMAT ".",
					   generation->number, npages, generation->npages);

	/* a full tail of the active generation may be counted or not yet */
	if (state == GENERATION_FROZEN ?
		generation->nentries != chains.nentries + chains.in_tails :
		state == GENERATION_ACTIVE &&
		(generation->nentries < chains.nentries ||
		 generation->nentries > chains.nentries + chains.in_tails))
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "Generation " UINT64_FORMAT " has " UINT64_FORMAT " entries and " UINT64_FORMAT " on its last pages, but the metapage counts " UINT64_FORMAT ".",
					   generation->number, chains.nentries, chains.in_tails,
					   generation->nentries);
}

static int
compare_log_entries(const void *a, const void *b)
{
	const HybLogEntry *la = a;
	const HybLogEntry *lb = b;

	if (la->block != lb->block)
		return la->block < lb->block ? -1 : 1;
	if (la->offset != lb->offset)
		return la->offset < lb->offset ? -1 : 1;
	return 0;
}

void
hyb_check_chains(HybCheck *check)
{
	const HybMetaPage *meta = check->survey.meta;

	check_generation(check, &meta->retiring, GENERATION_RETIRING);
	check_generation(check, &meta->frozen, GENERATION_FROZEN);
	check_generation(check, &meta->active, GENERATION_ACTIVE);
	if (check->nlog > 1)
		qsort(check->log, check->nlog, sizeof(HybLogEntry), compare_log_entries);
}

void
hyb_check_log(HybCheck *check)
{
	const char *wrong;

	hyb_version_capture(check->ix, check->version);
	wrong = hyb_log_verify(check->ix, check->version);
	if (wrong != NULL)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "The dynamic stage's tree is damaged: %s.", wrong);
}

/*
 * The entry of a generation at an offset of a delta page, as it is now.
 * Returns false if there is none; else its hash, and whether it is dead.
 */
static bool
read_log_entry(HybCheck *check, const HybDeltaRef *ref, uint32 *hash, bool *dead)
{
	PGAlignedBlock copy;
	HybEntry	entry = {.block = ref->block};

	if (!copy_log_page(check, ref->block, ref->generation, copy.data))
		return false;
	while (hyb_delta_next(check->ix->rel, (Page) copy.data, &entry))
	{
		if (entry.offset < ref->offset)
			continue;
		*hash = hash_entry(entry.bytes, entry.len, &entry.tid);
		*dead = (entry.flags & HYB_DELTA_DEAD) != 0;
		return entry.offset == ref->offset;
	}
	return false;
}

/* An entry that the trees returned: is it what the log says? */
static void
against_log(HybCheck *check, const HybFetchedItem *item)
{
	HybLogEntry key = {
		.block = item->ref.block,
		.offset = item->ref.offset
	};
	HybLogEntry *found = NULL;
	uint32		hash = hash_entry(hyb_runs_bytes(&check->fresh, item),
								  item->len, &item->tid);

	if (check->nlog > 0)
		found = bsearch(&key, check->log, check->nlog, sizeof(HybLogEntry),
						compare_log_entries);
	if (found != NULL && found->generation == item->ref.generation)
	{
		if (found->seen)
			hyb_check_fail(check, item->ref.block,
						   "The dynamic stage's tree holds the entry at offset %u twice.",
						   item->ref.offset);
		found->seen = true;
		if (found->hash == hash)
			return;
	}
	else
	{
		/*
		 * It was appended since the log was read; or VACUUM has flagged it on
		 * the page but not yet, or being cancelled not at all, in the tree.
		 * Its heap TID cannot have been used again then: the entry was
		 * fetched in this unit, and VACUUM does not finish within one.
		 */
		ItemPointerData tid = item->tid;
		uint32		page_hash;
		bool		dead;

		if (read_log_entry(check, &item->ref, &page_hash, &dead) &&
			page_hash == hash &&
			(dead ? hyb_check_heap_dead(check, &tid) :
			 item->ref.generation >= check->survey.meta->active.number))
			return;
	}
	hyb_check_fail(check, item->ref.block,
				   "The dynamic stage's tree and the log differ about the entry at offset %u, for heap TID (%u,%u).",
				   item->ref.offset,
				   HYB_TID_PARTS(&item->tid));
}

/* ---- entries of newer runs ---- */

const HybFetchedItem *
hyb_check_fresh_peek(HybCheck *check)
{
	HybPos		high = {.tie = HYB_AFTER};
	HybFetch	fetch = {
		.lo = &check->fresh_at,
		.hi = &high,
		.limit = FRESH_FETCH_LIMIT
	};
	int			tries = 0;

	while (!hyb_runs_peek(check->ix, check->version, &fetch, &check->fresh))
	{
		CHECK_FOR_INTERRUPTS();
		/* within a unit only a standby's replay can change the version */
		if (++tries > FETCH_TRIES ||
			!hyb_version_is_current(check->ix, check->version))
			hyb_check_fail(check, HYB_METAPAGE_BLKNO,
						   "The newer runs do not answer for version " UINT64_FORMAT ".",
						   check->version->version);
	}
	return hyb_runs_item(&check->fresh);
}

void
hyb_check_fresh_next(HybCheck *check)
{
	const HybFetchedItem *item = hyb_runs_item(&check->fresh);
	bool		dynamic = item->ref.generation != 0;
	HybPos		pos = hyb_fetched_pos(check->ix, &check->fresh.first->batch, item);
	int			c = hyb_pos_compare(check->ix->desc, &check->fresh_at, &pos);

	if (c > 0)
		hyb_check_fail(check, item->ref.block,
					   "The entry at offset %u is out of order in %s.",
					   item->ref.offset,
					   dynamic ? "the dynamic stage's tree" : "its level");
	/* a key may come back to a chain */
	if (c == 0 && !check->ix->desc->chains)
		hyb_check_fail(check, item->ref.block,
					   "The entry at offset %u has the key and heap TID (%u,%u) of another one.",
					   item->ref.offset, HYB_TID_PARTS(&pos.tid));
	if (dynamic)
		against_log(check, item);
	hyb_check_live(check, hyb_check_hash(check, pos.key, item->len), &pos.tid);
	hyb_check_membership(check, item->ref.block, pos.key, item->keylen, &pos.tid);
	hyb_pos_copy(&check->fresh_at, &check->fresh_key, &pos);
	hyb_runs_next(&check->fresh);
}

void
hyb_check_not_fresh(HybCheck *check, BlockNumber blkno, const HybFetchedItem *item,
					int first, int last)
{
	ItemPointerData tid = item->tid;

	Assert(check->level == 0 && first >= 0 && last <= check->leaf.nitems);
	if (check->ix->desc->chains)
		return;
	while (first < last &&
		   ItemPointerCompare(&check->leaf_tids[first], &tid) < 0)
		first++;
	if (first < last && ItemPointerEquals(&check->leaf_tids[first], &tid) &&
		!hyb_leaf_is_tombstone(&check->leaf, first))
		hyb_check_fail(check, blkno,
					   "The entry at position %d, for heap TID (%u,%u), is in %s as well, at offset %u of block %u.",
					   first, HYB_TID_PARTS(&tid),
					   item->ref.generation != 0 ?
					   "the dynamic stage" : "a newer level",
					   item->ref.offset, item->ref.block);
}

/* ---- entries that the trees do not have ---- */

/* Has the opened leaf, which does not keep keys, an entry that may be this one? */
static bool
prefixes_hold(HybCheck *check, const HybPos *pos)
{
	HybLeaf    *leaf = &check->leaf;
	HybRowRange rows;
	int			first;
	int			last;
	bool		found = false;

	(void) hyb_leaf_search_rows(leaf, pos, &rows);
	first = hyb_leaf_row_start(leaf, rows.lo);
	last = hyb_leaf_row_start(leaf, rows.hi);
	for (int i = first; i < last && !found; i++)
	{
		ItemPointerData tid;

		hyb_leaf_tids(leaf, i, 1, &tid);
		found = ItemPointerEquals(&tid, unconstify(ItemPointerData *, &pos->tid));
	}
	return found;
}

/* The entry, or its tombstone, in a level. */
static bool
level_holds(HybCheck *check, int level, const HybPos *pos)
{
	HybIndex   *ix = check->ix;
	PGAlignedBlock copy;
	MemoryContext old_context;
	ItemPointerData tid;
	bool		found;
	int			row;
	int			item;

	if (!hyb_check_open_leaf(check, level, pos, copy.data))
		return false;
	if (!hyb_leaf_keeps_keys(&check->leaf))
		return prefixes_hold(check, pos);
	item = hyb_leaf_search(&check->leaf, pos, &row);
	if (item >= check->leaf.nitems)
		return false;
	check->entry.len = 0;
	hyb_key_join(ix->desc, hyb_leaf_row(&check->leaf, row), ix->desc->nkeys,
				 &check->entry);
	hyb_leaf_tids(&check->leaf, item, 1, &tid);
	old_context = MemoryContextSwitchTo(check->page_context);
	found = ItemPointerCompare(&tid, unconstify(ItemPointerData *, &pos->tid)) == 0 &&
		hyb_key_compare(ix->desc, check->entry.data, check->entry.len,
						pos->key, pos->len) == 0;
	MemoryContextSwitchTo(old_context);
	MemoryContextReset(check->page_context);
	return found;
}

/* Does the static stage hold this entry?  Within a unit. */
static bool
static_holds(HybCheck *check, const HybPos *pos)
{
	for (int i = 0; i < check->version->nlevels; i++)
		if (level_holds(check, i, pos))
			return true;
	return false;
}

/*
 * Of hybrid_hot: have the trees an equal entry?  What is read in parts leaves out copies
 * where one part ends.
 */
static bool
trees_hold(HybCheck *check, const HybPos *pos)
{
	bool		holds;

	(void) hyb_run_holds(check->ix, check->version, HYB_RUN_LOG, pos, &holds);
	return holds;
}

/* Of hybrid_hot: has no row version of its chain its key? */
static bool
chain_lacks(HybCheck *check, const HybPos *pos)
{
	HybChainReader *reader;
	bool		stale;

	if (!check->ix->desc->chains)
		return false;
	reader = hyb_chain_reader_create(check->ix, check->heap);
	stale = !hyb_chain_may_have_key(reader, &pos->tid, pos->key, pos->len);
	hyb_chain_reader_free(reader);
	return stale;
}

/*
 * An entry of the log that the trees have not returned is alive on its page.  So it
 * has been merged, and one of these holds:
 *
 * - The static stage has it.
 * - A VACUUM that runs, or was cancelled, has removed it there, and a later step its
 *   tombstone.  The flag on the delta page is still to come.
 * - A step left it out because its line pointer is dead, or the row's insertion was
 *   aborted, or no row version of its HOT chain has its key.
 */
static void
check_unseen(HybCheck *check, const HybLogEntry *log, const HybEntry *entry)
{
	ItemPointerData heap_tid = entry->tid;
	const HybKeyDesc *desc = check->ix->desc;
	HybPos		pos = hyb_pos_at(desc, entry->bytes,
								 hyb_key_length(desc, entry->bytes, entry->len),
								 entry->tid);

	if (log->generation == check->version->frozen.number)
	{
		MemoryContext old_context = MemoryContextSwitchTo(check->page_context);
		int			c = hyb_pos_compare_key(check->ix->desc, pos.key, pos.len,
											&entry->tid,
											&check->version->watermark);

		MemoryContextSwitchTo(old_context);
		if (c <= 0)
		{
			if (!static_holds(check, &pos) &&
				!hyb_check_heap_dead(check, &heap_tid) && !chain_lacks(check, &pos))
				hyb_check_fail(check, log->block,
							   "The frozen entry at offset %u lies below the watermark, but is not in the static stage.",
							   log->offset);
			return;
		}
	}
	if (!check->ix->desc->chains || !trees_hold(check, &pos))
		hyb_check_fail(check, log->block,
					   "The live entry at offset %u is missing from the dynamic stage's tree.",
					   log->offset);
}

/* The entries [from, to) of check->log, which are those of one page. */
static void
check_unseen_page(HybCheck *check, Size from, Size to)
{
	const HybLogEntry *first = &check->log[from];
	PGAlignedBlock copy;
	HybEntry	entry = {.block = first->block};

	Assert(from < to && to <= check->nlog);
	/* of a generation that has been merged nothing is left to compare */
	if (first->generation != check->version->active.number &&
		first->generation != check->version->frozen.number)
		return;
	if (!copy_log_page(check, first->block, first->generation, copy.data))
		hyb_check_fail(check, first->block,
					   "It was a delta page of generation " UINT64_FORMAT ", and is one no more.",
					   first->generation);
	while (from < to &&
		   hyb_delta_next(check->ix->rel, (Page) copy.data, &entry))
	{
		const HybLogEntry *log = &check->log[from];

		if (entry.offset < log->offset)
			continue;
		if (entry.offset > log->offset)
			break;
		if (!log->seen && (entry.flags & HYB_DELTA_DEAD) == 0)
			check_unseen(check, log, &entry);
		from++;
	}
	if (from < to)
		hyb_check_fail(check, first->block,
					   "The entry at offset %u is gone from the log.",
					   check->log[from].offset);
}

void
hyb_check_log_done(HybCheck *check)
{
	Size		to;

	for (Size from = 0; from < check->nlog; from = to)
	{
		bool		unseen = false;

		for (to = from; to < check->nlog &&
			 check->log[to].block == check->log[from].block; to++)
			unseen |= !check->log[to].seen;
		if (!unseen)
			continue;
		hyb_check_lock(check);
		check_unseen_page(check, from, to);
		hyb_check_unlock(check);
		MemoryContextReset(check->page_context);
	}
}
