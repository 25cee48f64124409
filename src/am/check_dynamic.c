/*
 * check_dynamic.c
 *		hybrid_index_check: the delta log, and whether the trees over it say
 *		the same.
 */
#include "compat.h"

#include "am/check.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Entries that are fetched from the trees at a time. */
#define FETCH_LIMIT		1000

/* How often a fetch is tried with the version that is current then. */
#define FETCH_TRIES		100

static void *
grow(HybCheck *check, void *array, Size *alloc, Size needed, Size element)
{
	if (needed <= *alloc)
		return array;
	*alloc = Max(needed, Max(1024, *alloc * 2));
	if (array == NULL)
		return MemoryContextAllocHuge(check->context, *alloc * element);
	return repalloc_huge(array, *alloc * element);
}

static uint32
hash_entry(const uint8 *entry, uint32 len, const ItemPointerData *tid)
{
	return hash_combine(hash_bytes(entry, len),
						hash_bytes((const unsigned char *) tid,
								   sizeof(ItemPointerData)));
}

static void
add_log_entry(HybCheck *check, BlockNumber block, uint16 offset, uint32 hash)
{
	HybLogEntry *log;

	check->log = grow(check, check->log, &check->log_alloc, check->nlog + 1,
					  sizeof(HybLogEntry));
	log = &check->log[check->nlog++];
	log->block = block;
	log->offset = offset;
	log->seen = false;
	log->hash = hash;
}

static void
add_moved_entry(HybCheck *check, BlockNumber block, uint16 offset,
				const uint8 *key, uint32 keylen, const ItemPointerData *tid)
{
	HybMovedEntry *moved;

	check->moved = grow(check, check->moved, &check->moved_alloc,
						check->nmoved + 1, sizeof(HybMovedEntry));
	check->moved_keys = grow(check, check->moved_keys,
							 &check->moved_keys_alloc,
							 check->moved_len + keylen, 1);
	moved = &check->moved[check->nmoved++];
	moved->block = block;
	moved->offset = offset;
	moved->keylen = (uint16) keylen;
	moved->key_off = check->moved_len;
	moved->tid = *tid;
	memcpy(check->moved_keys + check->moved_len, key, keylen);
	check->moved_len += keylen;
}

/*
 * Entries of one page copy.  Returns how many there are.
 */
static uint32
check_page_entries(HybCheck *check, BlockNumber block, Page page, bool frozen)
{
	HybIndex   *ix = check->ix;
	const HybPos *watermark = &check->version->watermark;
	HybDeltaEntry header;
	const uint8 *entry;
	uint16		next = 0;
	uint16		offset;
	uint32		n = 0;

	while (hyb_delta_next(page, ix->rel, block, &next, &offset, &header,
						  &entry))
	{
		uint32		len = header.len_flags & HYB_DELTA_LEN_MASK;
		uint32		keylen = hyb_check_entry(check, block, offset, entry, len,
											 &header.tid);

		n++;
		if ((header.len_flags & ~(HYB_DELTA_LEN_MASK | HYB_DELTA_DEAD)) != 0)
			hyb_check_fail(check, block, "The entry at offset %u has flags 0x%04X.",
						   offset, header.len_flags);
		if (header.len_flags & HYB_DELTA_DEAD)
			continue;
		if (frozen && !HYB_POS_MIN(watermark))
		{
			MemoryContext old_context = MemoryContextSwitchTo(check->page_context);
			int			c = hyb_pos_compare_key(ix->desc, entry, keylen,
												&header.tid, watermark);

			MemoryContextSwitchTo(old_context);
			if (c <= 0)
			{
				add_moved_entry(check, block, offset, entry, keylen, &header.tid);
				continue;
			}
		}
		add_log_entry(check, block, offset,
					  hash_entry(entry, len, &header.tid));
	}
	MemoryContextReset(check->page_context);
	return n;
}

typedef enum HybGenerationState
{
	GENERATION_ACTIVE,
	GENERATION_FROZEN,
	GENERATION_RETIRING
} HybGenerationState;

/*
 * The chains of one generation, from the survey's heads to its tails.  Pages
 * appended behind the tails of the active generation since are not looked at;
 * the chains of a retiring generation are its pages not freed yet.
 */
static void
check_generation(HybCheck *check, const HybGeneration *generation,
				 HybGenerationState state)
{
	PGAlignedBlock copy;
	uint64		npages = 0;
	uint64		nentries = 0;
	uint64		in_tails = 0;

	if (generation->number == 0)
		return;

	for (int lane = 0; lane < HYB_LANES; lane++)
	{
		BlockNumber block = generation->head[lane];
		BlockNumber from = HYB_METAPAGE_BLKNO;

		if (!BlockNumberIsValid(block))
		{
			if (BlockNumberIsValid(generation->tail[lane]) &&
				state != GENERATION_RETIRING)
				hyb_check_fail(check, HYB_METAPAGE_BLKNO,
							   "Lane %d of generation " UINT64_FORMAT " has a tail, but no head.",
							   lane, generation->number);
			continue;
		}
		while (BlockNumberIsValid(block))
		{
			HybPageOpaque *opaque;
			bool		is_tail = block == generation->tail[lane];
			uint32		n;

			hyb_check_claim(check, block, HYB_USE_DELTA, from);
			hyb_check_copy(check, block, HYB_PAGE_DELTA, generation->number, 0,
						   from, copy.data);
			opaque = hyb_page_opaque((Page) copy.data);
			if ((opaque->flags & ~HYB_DELTA_CLOSED) != 0)
				hyb_check_fail(check, block, "A delta page has flags 0x%04X.",
							   opaque->flags);
			if (is_tail && state != GENERATION_ACTIVE &&
				(opaque->flags & HYB_DELTA_CLOSED) == 0)
				hyb_check_fail(check, block,
							   "The last page of lane %d of frozen generation " UINT64_FORMAT " is not closed.",
							   lane, generation->number);
			if (is_tail && state != GENERATION_ACTIVE &&
				BlockNumberIsValid(opaque->link))
				hyb_check_fail(check, block,
							   "The last page of lane %d of generation " UINT64_FORMAT " has a link to block %u.",
							   lane, generation->number, opaque->link);
			if (!is_tail && !BlockNumberIsValid(opaque->link))
				hyb_check_fail(check, block,
							   "The chain of lane %d of generation " UINT64_FORMAT " ends here, not at its tail, block %u.",
							   lane, generation->number, generation->tail[lane]);
			npages++;

			/* entries of a retiring generation are of no interest any more */
			if (state != GENERATION_RETIRING)
			{
				n = check_page_entries(check, block, (Page) copy.data,
									   state == GENERATION_FROZEN);
				if (n != opaque->count &&
					(!is_tail || (opaque->flags & HYB_DELTA_CLOSED) != 0))
					hyb_check_fail(check, block,
								   "A delta page has %u entries, but claims %u.",
								   n, opaque->count);
				if (is_tail)
					in_tails += n;
				else
					nentries += n;
			}
			if (is_tail)
				break;
			from = block;
			block = opaque->link;
		}
	}

	if (npages != generation->npages)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "Generation " UINT64_FORMAT " has " UINT64_FORMAT " pages, but the metapage counts " UINT64_FORMAT ".",
					   generation->number, npages, generation->npages);

	/* a full tail of the active generation may be counted or not yet */
	if (state == GENERATION_FROZEN ?
		generation->nentries != nentries + in_tails :
		state == GENERATION_ACTIVE &&
		(generation->nentries < nentries ||
		 generation->nentries > nentries + in_tails))
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "Generation " UINT64_FORMAT " has " UINT64_FORMAT " entries and " UINT64_FORMAT " on its last pages, but the metapage counts " UINT64_FORMAT ".",
					   generation->number, nentries, in_tails,
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
hyb_check_log(HybCheck *check)
{
	const HybMetaPage *meta = check->survey.meta;

	check_generation(check, &meta->retiring, GENERATION_RETIRING);
	check_generation(check, &meta->frozen, GENERATION_FROZEN);
	check_generation(check, &meta->active, GENERATION_ACTIVE);
	if (check->nlog > 1)
		qsort(check->log, check->nlog, sizeof(HybLogEntry), compare_log_entries);
}

/*
 * The entry at an offset of a delta page, as it is now.  Returns false if
 * there is none; else its hash, and whether it is dead.
 */
static bool
read_entry(HybCheck *check, BlockNumber block, uint16 at, uint32 *hash,
		   bool *dead)
{
	Relation	rel = check->ix->rel;
	PGAlignedBlock copy;
	Buffer		buf;
	HybDeltaEntry header;
	const uint8 *entry;
	uint16		next = 0;
	uint16		offset;
	bool		is_delta;

	if (block >= RelationGetNumberOfBlocks(rel))
		return false;
	buf = ReadBuffer(rel, block);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	is_delta = !PageIsNew(BufferGetPage(buf)) &&
		hyb_page_check(check->ix, buf, HYB_PAGE_DELTA, 0);
	memcpy(copy.data, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	if (!is_delta)
		return false;

	while (hyb_delta_next((Page) copy.data, rel, block, &next, &offset,
						  &header, &entry))
	{
		if (offset < at)
			continue;
		*hash = hash_entry(entry, header.len_flags & HYB_DELTA_LEN_MASK,
						   &header.tid);
		*dead = (header.len_flags & HYB_DELTA_DEAD) != 0;
		return offset == at;
	}
	return false;
}

/*
 * An entry that the trees returned: is it what the log says?
 */
static void
check_against_log(HybCheck *check, const HybDynItem *item)
{
	HybLogEntry key = {.block = item->ref.block, .offset = item->ref.offset};
	HybLogEntry *found = NULL;
	uint32		hash = hash_entry(hyb_check_dynamic_bytes(check, item),
								  item->len, &item->tid);

	if (check->nlog > 0)
		found = bsearch(&key, check->log, check->nlog, sizeof(HybLogEntry),
						compare_log_entries);
	if (found != NULL)
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
		 * Its heap TID cannot have been used again then.
		 */
		ItemPointerData tid = item->tid;
		uint32		page_hash;
		bool		dead;

		if (read_entry(check, item->ref.block, item->ref.offset, &page_hash,
					   &dead) &&
			page_hash == hash &&
			(dead ? hyb_check_heap_dead(check, &tid) :
			 item->ref.generation == check->version->active.number))
			return;
	}
	hyb_check_fail(check, item->ref.block,
				   "The dynamic stage's tree and the log differ about the entry at offset %u, for heap TID (%u,%u).",
				   item->ref.offset,
				   ItemPointerGetBlockNumberNoCheck(&item->tid),
				   ItemPointerGetOffsetNumberNoCheck(&item->tid));
}

/*
 * Get the next batch of the trees' entries.
 */
static void
fetch_more(HybCheck *check)
{
	HybPos		low = {.tie = HYB_BEFORE};
	HybPos		high = {.tie = HYB_AFTER};
	int			tries = 0;

	if (!check->batch_begun)
	{
		const char *wrong = hyb_dynamic_verify(check->ix, check->version);

		if (wrong != NULL)
			hyb_check_fail(check, HYB_METAPAGE_BLKNO,
						   "The dynamic stage's tree is damaged: %s.", wrong);
	}
	else
	{
		low.key = check->batch_last.data;
		low.len = check->batch_last.len;
		low.ncols = check->ix->desc->nkeys;
		low.tie = HYB_AT;
		low.tid = check->batch_last_tid;
	}
	check->batch_begun = true;
	check->batch_next = 0;
	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		if (hyb_dynamic_fetch(check->ix, check->version,
							  HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE,
							  &low, &high, false, FETCH_LIMIT, 0,
							  &check->batch))
			break;

		/* only a standby's replay can change the generations now */
		if (++tries > FETCH_TRIES ||
			!hyb_version_is_current(check->ix, check->version))
			hyb_check_fail(check, HYB_METAPAGE_BLKNO,
						   "The dynamic stage does not answer for version " UINT64_FORMAT ".",
						   check->version->version);
	}
	if (check->batch.nitems == 0 && !check->batch.complete)
		hyb_check_fail(check, HYB_METAPAGE_BLKNO,
					   "The dynamic stage returned nothing, and not everything.");
}

const HybDynItem *
hyb_check_dynamic_peek(HybCheck *check)
{
	if (check->batch_next >= check->batch.nitems)
	{
		MemoryContext old_context;

		if (check->batch_begun && check->batch.complete)
			return NULL;
		old_context = MemoryContextSwitchTo(check->context);
		fetch_more(check);
		MemoryContextSwitchTo(old_context);
		if (check->batch.nitems == 0)
			return NULL;
	}
	return &check->batch.items[check->batch_next];
}

/*
 * Consume the entry that peek returned: check its order and where it comes
 * from.
 */
void
hyb_check_dynamic_next(HybCheck *check)
{
	const HybDynItem *item = &check->batch.items[check->batch_next];
	const uint8 *entry = hyb_check_dynamic_bytes(check, item);
	ItemPointerData tid = item->tid;

	if (check->batch_last.len > 0)
	{
		int			c = hyb_key_compare(check->ix->desc, check->batch_last.data,
										check->batch_last.len,
										entry, item->keylen);

		if (c > 0)
			hyb_check_fail(check, item->ref.block,
						   "The entry at offset %u is out of order in the dynamic stage's tree.",
						   item->ref.offset);
		if (c == 0 && ItemPointerCompare(&check->batch_last_tid, &tid) >= 0)
			hyb_check_fail(check, item->ref.block,
						   "The entry at offset %u has the key and heap TID (%u,%u) of another one.",
						   item->ref.offset,
						   ItemPointerGetBlockNumberNoCheck(&tid),
						   ItemPointerGetOffsetNumberNoCheck(&tid));
	}
	check_against_log(check, item);
	hyb_check_live(check, entry, item->len, &tid);

	check->batch_last.len = 0;
	hyb_buf_append(&check->batch_last, entry, item->keylen);
	check->batch_last_tid = tid;
	check->batch_next++;
}

/*
 * The trees have returned all they know: what is left of the log is dead by
 * now, or missing.
 */
void
hyb_check_log_done(HybCheck *check)
{
	for (Size i = 0; i < check->nlog; i++)
	{
		HybLogEntry *log = &check->log[i];
		uint32		hash;
		bool		dead = false;

		if (!log->seen &&
			(!read_entry(check, log->block, log->offset, &hash, &dead) || !dead))
			hyb_check_fail(check, log->block,
						   "The live entry at offset %u is missing from the dynamic stage's tree.",
						   log->offset);
	}
}
