/*
 * learn.c
 *		The merge that gives an index its dictionaries.
 *
 * An index that was created on a table with too few rows to learn from stores
 * the values of its encoded columns as they are (key/encoded.h).  The first
 * merge with enough values learns dictionaries.  It writes everything anew in
 * one step: static leaves and the generation that it freezes.
 *
 * Positions, trees, hashes of unique keys and copies in scans all contain encoded
 * keys.  So no process may use the index meanwhile.  The step locks the index in
 * AccessExclusiveLock, which conflicts with every use of it, from the planner on.
 * That lock is WAL-logged, so the same holds on a standby.  An inserter asks for
 * it without waiting, a worker waits for a short time.  Without the lock, entries
 * are merged as they are, and the next merge tries again while the index is small
 * enough for one step.  The relation's reference count tells of the backend's
 * own scans.
 *
 * A crash before the switch of the metapage leaves an index without dictionaries
 * and a frozen generation to merge; the new pages are in pending[].  A crash
 * after it leaves an index with dictionaries, and the old pages are there.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "filter/filter.h"
#include "filter/filter_choice.h"
#include "hot/hot.h"
#include "leaf/leaf.h"
#include "merge/facts.h"
#include "merge/membership_make.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "run/run.h"
#include "storage/predicate.h"
#include "storage/proc.h"
#include "store/dictionary.h"
#include "store/meta.h"
#include "tree/update.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Most pages written, with those of the dictionaries. */
#define HYB_LEARN_MAX_NEW	288

/*
 * Most bytes of entries that are read, before they are encoded.  Leaves may hold much
 * more in few pages, which would take long while the index is locked.
 */
#define HYB_LEARN_MAX_BYTES	(64 * 1024 * 1024)

/* Entries that are read at once. */
#define READ_ENTRIES		1024

/* Steps through the entries: a prime above HYB_ENCODED_SAMPLE_KEYS */
#define SAMPLE_ENTRY_STEP			16411

typedef struct Learn
{
	HybIndex   *ix;				/* the caller's: without dictionaries */
	HybIndex	coded;			/* with them */
	HybBuf		stored;			/* the dictionaries */
	BlockNumber dictionary;		/* their first page */
	bool		progress;		/* a generation was frozen, or all of it done */
	bool		encoded;		/* all of it done */

	/* input */
	BlockNumber blocks[HYB_LEARN_MAX_PAGES];	/* of the static stage */
	int			nblocks;
	BlockNumber last_filter;	/* listed, or InvalidBlockNumber */

	/* output */
	uint64		stamp;
	HybFilterBuilder *filter;	/* or NULL: no filters */
	HybChildList children;
} Learn;

/* ---- reading ---- */

/*
 * Add the live entries of a run; those of one row of a leaf share their bytes.  Returns
 * false if there are too many.
 */
static bool
add_run(HybIndex *ix, int run, HybFetched *all)
{
	uint32		most = HYB_POINT_ATTACHED("few-bytes") ? 64 * 1024 : HYB_LEARN_MAX_BYTES;
	HybPos		lo = {.tie = HYB_BEFORE};
	HybPos		hi = {.tie = HYB_AFTER};
	HybFetch	fetch = {.lo = &lo,.hi = &hi,.limit = READ_ENTRIES};
	HybFetched	batch = {0};
	HybBuf		last = {0};
	HybVersion	version;

	do
	{
		/* the merge lock keeps the version current, so this ends */
		do
		{
			CHECK_FOR_INTERRUPTS();
			hyb_version_capture(ix, &version);
		} while (!hyb_run_fetch(ix, &version, run, &fetch, &batch));
		for (int i = 0; i < batch.nitems; i++)
		{
			HybFetchedItem *item = hyb_fetched_add(all);

			*item = batch.items[i];
			item->key_off += all->keys.len;
		}
		hyb_buf_append(&all->keys, batch.keys.data, batch.keys.len);
		if (!batch.complete && batch.nitems > 0)
			hyb_fetched_last(ix, &batch, &lo, &last);
	} while (!batch.complete && batch.nitems > 0 && all->keys.len <= most);
	hyb_buf_free(&last);
	hyb_fetched_free(&batch);
	return all->keys.len <= most;
}

/* All live entries, run by run; false if there are too many. */
static bool
read_index(HybIndex *ix, const HybMetaPage *meta, HybFetched *all)
{
	if (meta->active.npages + meta->frozen.npages > HYB_LEARN_MAX_BYTES / BLCKSZ)
		return false;
	for (int i = 0; i < meta->nlevels; i++)
		if (!add_run(ix, i, all))
			return false;
	return add_run(ix, HYB_RUN_LOG, all);
}

/* List a page of a level, and that of a leaf's filter, which neighbours share. */
static void
list_blocks(void *arg, const HybChild *page, int height)
{
	Learn	   *learn = arg;
	BlockNumber filter = page->filter_block;

	if (learn->nblocks == HYB_LEARN_MAX_PAGES)
		hyb_corrupted(learn->ix->rel, page->block, "There are more pages than the metapage counts.");
	learn->blocks[learn->nblocks++] = page->block;
	/* a leaf without a filter may lie between two that share a page */
	if (!BlockNumberIsValid(filter) || filter == learn->last_filter)
		return;
	learn->last_filter = filter;
	if (learn->nblocks < HYB_LEARN_MAX_PAGES)
		learn->blocks[learn->nblocks++] = filter;
}

/* ---- learning ---- */

static void
report_malformed(const HybIndex *ix)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("an entry of index \"%s\" is malformed",
					RelationGetRelationName(ix->rel)),
			 errdetail("It comes from a damaged leaf."),
			 errhint("Please REINDEX it.")));
}

/* Learn from the index's own keys; false if there are not enough. */
static bool
learn_dictionaries(Learn *learn)
{
	const HybKeyDesc *desc = learn->ix->desc;
	HybMetaPage meta;
	HybFetched	all = {0};
	HybEncodedKeys *keys = palloc0(desc->nkeys * sizeof(HybEncodedKeys));
	HybValue   *vals = palloc(desc->natts * sizeof(HybValue));
	uint32		n;
	uint64		bytes = 0;

	hyb_meta_copy(learn->ix, &meta);
	if (!read_index(learn->ix, &meta, &all) || all.nitems < HYB_ENCODED_ENOUGH_KEYS)
		return false;
	n = Min(all.nitems, HYB_ENCODED_SAMPLE_KEYS);
	for (uint32 i = 0; i < n && bytes < HYB_ENCODED_SAMPLE_BYTES; i++)
	{
		uint32		place = (uint32) ((uint64) i * SAMPLE_ENTRY_STEP % n);
		const HybFetchedItem *item = &all.items[(uint64) place * all.nitems / n];

		if (hyb_key_split(desc, all.keys.data + item->key_off, item->len,
						  desc->nkeys, vals) != item->keylen)
			report_malformed(learn->ix);
		for (int c = 0; c < desc->nkeys; c++)
		{
			Datum		value;

			if (!hyb_column_is_encoded(&desc->cols[c]) || vals[c].isnull)
				continue;
			value = hyb_value_decode(&desc->cols[c], &vals[c]);
			hyb_encoded_add_key(&keys[c], &desc->cols[c], value);
			pfree(DatumGetPointer(value));
			bytes += vals[c].len;
		}
	}
	return hyb_encoded_learn(desc, keys, &learn->stored) &&
		hyb_dictionary_npages(learn->stored.len) < HYB_LEARN_MAX_NEW / 2;
}

/* ---- writing ---- */

/* Of equal entries of hybrid_hot one is kept: a key may have come back to a chain. */
static void
join_equal(const HybKeyDesc *desc, HybFetched *coded)
{
	int			n = 0;

	/* n <= i: what lies before item i is as it was, or a copy of itself */
	for (int i = 0; i < coded->nitems; i++)
		if (!hyb_fetched_repeats(desc, coded, i))
			coded->items[n++] = coded->items[i];
	coded->nitems = n;
}

/* Encode all entries; false if one becomes too long. */
static bool
encode_entries(Learn *learn, const HybFetched *all, HybFetched *coded)
{
	const HybKeyDesc *from = learn->ix->desc;
	const HybKeyDesc *to = learn->coded.desc;
	Datum	   *values = palloc(from->natts * sizeof(Datum));
	bool	   *isnull = palloc(from->natts * sizeof(bool));
	HybValue   *vals = palloc(from->natts * sizeof(HybValue));
	HybBuf		entry = {0};
	MemoryContext tuple_context = AllocSetContextCreate(CurrentMemoryContext,
														"hybrid encode entry",
														ALLOCSET_DEFAULT_SIZES);

	hyb_buf_reserve(&entry, HYB_MAX_ENTRY_SIZE);
	for (int i = 0; i < all->nitems; i++)
	{
		const HybFetchedItem *item = &all->items[i];
		HybFetchedItem *out = hyb_fetched_add(coded);
		MemoryContext old;

		if (i > 0 && item->key_off == item[-1].key_off)
		{
			*out = out[-1];
			out->tid = item->tid;
			continue;
		}
		if ((i & 0x3FF) == 0)
			CHECK_FOR_INTERRUPTS();
		*out = *item;
		if (hyb_key_split(from, all->keys.data + item->key_off, item->len,
						  from->natts, vals) != item->len)
			report_malformed(learn->ix);
		old = MemoryContextSwitchTo(tuple_context);
		for (int c = 0; c < from->natts; c++)
		{
			isnull[c] = vals[c].isnull;
			values[c] = isnull[c] ? (Datum) 0 :
				hyb_value_decode(&from->cols[c], &vals[c]);
		}
		hyb_key_encode(to, values, isnull, &entry, &out->keylen);
		MemoryContextSwitchTo(old);
		MemoryContextReset(tuple_context);
		if (entry.len > HYB_MAX_ENTRY_SIZE)
			return false;
		out->key_off = coded->keys.len;
		out->len = entry.len;
		hyb_buf_append(&coded->keys, entry.data, entry.len);
	}
	hyb_fetched_sort(to, coded, false);
	if (to->chains)
		join_equal(to, coded);
	return true;
}

static void
write_learned_leaf(void *arg, Page page, const HybPos *low)
{
	Learn	   *learn = arg;

	hyb_child_list_add_image(&learn->children, page, low, learn->filter);
}

/* Images of the new leaves, from sorted entries. */
static void
build_leaves(Learn *learn, const HybFetched *coded)
{
	const HybKeyDesc *desc = learn->coded.desc;
	HybLeafBuilder *builder = hyb_leaf_builder_create(&learn->coded,
													  hyb_leaf_layout_for(&learn->coded, 0),
													  learn->stamp, write_learned_leaf,
													  learn);
	HybValue   *vals = palloc(desc->natts * sizeof(HybValue));

	for (int i = 0; i < coded->nitems; i++)
	{
		const HybFetchedItem *item = &coded->items[i];

		if ((i & 0x3FF) == 0)
			CHECK_FOR_INTERRUPTS();
		(void) hyb_key_split(desc, coded->keys.data + item->key_off, item->len,
							 desc->natts, vals);
		hyb_leaf_builder_add(builder, vals, &item->tid);
	}
	hyb_leaf_builder_finish(builder);
	hyb_leaf_builder_free(builder);
}

/*
 * Write dictionaries and static stage, and switch the metapage.  Returns false, with
 * the version unchanged, if pending[] has no room for that.
 */
static bool
install_learned(Learn *learn, uint64 ntids)
{
	HybIndex   *ix = learn->ix;
	HybStepSpace *space = palloc(sizeof(HybStepSpace));
	HybPath    *path = palloc0(sizeof(HybPath));
	int			ndictionary = hyb_dictionary_npages(learn->stored.len);
	HybRoot		root;
	Buffer		metabuf;
	HybMetaPage *meta;
	HybLevel   *level;
	HybWalSet	set;

	hyb_step_space_init(space, &learn->coded, learn->stamp,
						learn->filter != NULL,
						learn->children.n + ndictionary + 2 +
						(learn->filter != NULL ? learn->children.n / 3 + 4 : 0));
	HYB_POINT("learn-reserved");
	learn->dictionary = InvalidBlockNumber;
	for (int i = ndictionary - 1; i >= 0 && !space->full; i--)
	{
		PGAlignedBlock image;

		hyb_dictionary_page_init(image.data, ix, learn->stored.data,
								 learn->stored.len, i, learn->dictionary);
		learn->dictionary = hyb_step_write(space, image.data);
	}
	hyb_step_write_leaves(space, &learn->children);
	for (int i = 0; i < learn->nblocks; i++)
		hyb_step_retire(space, learn->blocks[i]);
	path->high.tie = HYB_AFTER;
	hyb_static_replace(space, path, &learn->children, &root);
	HYB_POINT("learn-written");
	if (space->full)
		return false;

	/* keys get other bytes; while it is locked none is published or locked */
	hyb_hot_drop(ix);
	hyb_membership_forget(ix);
	TransferPredicateLocksToHeapRelation(ix->rel);
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	if (!hyb_step_fits(space, meta))
	{
		UnlockReleaseBuffer(metabuf);
		return false;
	}
	Assert(meta->active.npages == 0 && !BlockNumberIsValid(meta->dictionary) &&
		   (meta->flags & HYB_META_PLAIN) != 0 && meta->retiring.number == 0 &&
		   meta->pass_level == 0);
	hyb_version_switch_begin(ix, meta, &set);
	meta->dictionary = learn->dictionary;
	meta->flags &= ~(HYB_META_PLAIN | HYB_META_COMPACT | HYB_META_COMPACTING |
					 HYB_META_COLLAPSE | HYB_META_QUIET | HYB_META_UNEARNED);
	meta->rewritten_tids = hyb_meta_static(meta).tids;
	meta->rewriting_tids = 0;
	for (int i = 0; i < meta->nlevels; i++)
		hyb_level_init(&meta->levels[i]);
	meta->nlevels = 1;
	meta->wanted_levels = 1;
	level = &meta->levels[0];
	level->root = root;
	level->tids = ntids;
	level->leaf_pages = learn->children.n;
	level->inner_pages = space->new_inner;
	level->filter_pages = space->new_filter;
	hyb_generation_settle(ix, meta, &set, metabuf);
	meta->next_stamp = learn->stamp + 1;
	meta->merges++;
	meta->merged_entries += meta->frozen.nentries;
	meta->retiring = meta->frozen;
	hyb_generation_init(&meta->frozen, 0);
	hyb_step_give_back(space, meta);
	hyb_wal_meta_pending(&set, metabuf);
	hyb_version_switch_end(ix, metabuf, &set, NULL);
	return true;
}

/*
 * Write the index anew, encoded, if that fits one step.  The index is locked, so
 * no entry can be added or searched.
 */
static void
encode_index(HybIndex *ix, void *arg)
{
	Learn	   *learn = arg;
	HybDictionaries *dictionaries;
	HybMetaPage meta;
	HybFetched	all = {0};
	HybFetched	coded = {0};
	int			npages;

	learn->progress = hyb_generation_freeze(ix);
	HYB_POINT("learn-frozen");
	hyb_meta_copy(ix, &meta);
	if (!read_index(ix, &meta, &all))
		return;
	for (int i = 0; i < meta.nlevels; i++)
		hyb_static_visit(ix, &meta.levels[i].root, list_blocks, learn);

	learn->coded = *ix;
	learn->coded.desc = hyb_key_desc_create(ix->rel);
	dictionaries = hyb_encoded_load(learn->stored.data, learn->stored.len,
									CurrentMemoryContext);
	if (dictionaries == NULL ||
		!hyb_encoded_attach(learn->coded.desc, dictionaries))
		elog(ERROR, "could not read back the dictionaries of an index");
	if (!encode_entries(learn, &all, &coded))
		return;

	learn->stamp = meta.next_stamp;
	learn->filter = hyb_filter_builder_create(&learn->coded,
											  hyb_filter_kind_of_level(&learn->coded, 0, 1));
	build_leaves(learn, &coded);

	/* at least two leaves share a filter page */
	npages = learn->children.n * (learn->filter != NULL ? 3 : 2) / 2 +
		hyb_dictionary_npages(learn->stored.len);
	if (npages > HYB_LEARN_MAX_NEW || !install_learned(learn, coded.nitems))
		return;
	learn->progress = learn->encoded = true;
}

/*
 * Learning takes much longer than the rest, so it is done before the index is
 * locked.  If the caller does not wait for the lock, the lock is tried first.
 */
bool
hyb_merge_learn(HybIndex *ix, int wait_ms)
{
	HybMetaPage meta;
	Learn		learn = {0};
	MemoryContext context;
	MemoryContext old;

	if (!ix->desc->has_encoded || ix->dictionaries != NULL ||
		ix->rel->rd_refcnt != 1 || IsInParallelMode() ||
		(MyProc->statusFlags & PROC_IN_VACUUM) != 0)
		return false;
	hyb_meta_copy(ix, &meta);
	if (!hyb_merge_learnable(&meta) || meta.frozen.number != 0 ||
		meta.retiring.number != 0 || meta.pass_level != 0 || meta.npending > 0)
		return false;

	learn.ix = ix;
	learn.last_filter = InvalidBlockNumber;
	context = AllocSetContextCreate(CurrentMemoryContext,
									"hybrid dictionary merge",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	if ((wait_ms > 0 || hyb_merge_exclusively(ix, 0, NULL, NULL)) &&
		learn_dictionaries(&learn) &&
		hyb_merge_exclusively(ix, wait_ms, encode_index, &learn) && learn.encoded)
	{
		MemoryContextSwitchTo(old);
		hyb_dictionary_attach(ix, learn.dictionary);
		HYB_POINT("learn-installed");
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return learn.progress;
}
