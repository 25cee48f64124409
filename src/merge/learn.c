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
 * The lock is taken in a subtransaction that is rolled back afterwards.  That
 * releases it at once, on a standby too, whatever the transaction does then.
 * Pages do not depend on transactions.
 *
 * A crash before the switch of the metapage leaves an index without dictionaries
 * and a frozen generation to merge; the new pages are in pending[].  A crash
 * after it leaves an index with dictionaries, and the old pages are there.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "base/memory.h"
#include "filter/filter.h"
#include "filter/filter_choice.h"
#include "hot/hot.h"
#include "leaf/leaf.h"
#include "log/delta.h"
#include "merge/facts.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "storage/proc.h"
#include "store/dictionary.h"
#include "store/meta.h"
#include "tree/update.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"

/* Most pages written, with those of the dictionaries. */
#define HYB_LEARN_MAX_NEW	288

/* Most bytes of unencoded entries that are read. */
#define HYB_LEARN_MAX_BYTES	(64 * 1024 * 1024)

/* Steps through the entries: a prime above HYB_ENCODED_SAMPLE_KEYS */
#define SAMPLE_ENTRY_STEP			16411

/* An entry.  Those of one row of a leaf share their bytes. */
typedef struct LearnEntry
{
	uint32		off;			/* in `bytes` */
	uint16		len;
	uint16		keylen;
	ItemPointerData tid;
} LearnEntry;

/* All live entries of an index, in any order. */
typedef struct LearnInput
{
	HybBuf		bytes;
	LearnEntry *entries;
	int			n;
	int			alloc;
	bool		too_large;
	BlockNumber blocks[HYB_MAX_PENDING];	/* of the static stage */
	int			nblocks;
} LearnInput;

typedef struct Learn
{
	HybIndex   *ix;				/* the caller's: without dictionaries */
	HybIndex	coded;			/* with them */
	HybBuf		stored;			/* the dictionaries */
	MemoryContext context;
	BlockNumber dictionary;		/* their first page */
	bool		progress;		/* a generation was frozen, or all of it done */

	/* output */
	uint64		stamp;
	HybFilterBuilder *filter;	/* or NULL: no filters */
	HybChildList children;
} Learn;

/* ---- reading ---- */

static void
add_learn_entry(LearnInput *input, uint32 off, uint32 len, uint32 keylen,
				const ItemPointerData *tid)
{
	LearnEntry *entry;

	if (input->n == input->alloc)
	{
		input->alloc = Max(1024, input->alloc * 2);
		input->entries = hyb_grow(CurrentMemoryContext, input->entries,
								  input->alloc, sizeof(LearnEntry));
	}
	entry = &input->entries[input->n++];
	entry->off = off;
	entry->len = (uint16) len;
	entry->keylen = (uint16) keylen;
	entry->tid = *tid;
}

static void
read_learn_leaf(const HybIndex *ix, LearnInput *input, const char *page,
				BlockNumber block)
{
	HybLeaf		leaf = {0};

	hyb_leaf_open(&leaf, ix->desc, page, ix->rel, block);
	for (int row = 0; row < leaf.nrows; row++)
	{
		const HybValue *vals = hyb_leaf_row(&leaf, row);
		int			end = hyb_leaf_row_start(&leaf, row + 1);
		uint32		off = input->bytes.len;
		uint32		len;
		uint32		keylen;

		hyb_key_join(ix->desc, vals, ix->desc->natts, &input->bytes);
		len = input->bytes.len - off;
		keylen = hyb_key_length(ix->desc, input->bytes.data + off, len);
		if (len > HYB_MAX_ENTRY_SIZE || keylen == 0)
			hyb_corrupted(ix->rel, block, "A row of a leaf is not well formed.");
		for (int item = hyb_leaf_row_start(&leaf, row); item < end; item++)
		{
			ItemPointerData tid;

			if (hyb_leaf_is_tombstone(&leaf, item))
				continue;
			hyb_leaf_tids(&leaf, item, 1, &tid);
			add_learn_entry(input, off, len, keylen, &tid);
		}
	}
	hyb_leaf_close(&leaf);
}

/* The subtree of a page of the given level, 0 for a leaf. */
static void
read_tree(const HybIndex *ix, LearnInput *input, BlockNumber block,
		  uint64 stamp, int level, BlockNumber from)
{
	char	   *page = palloc(BLCKSZ);
	BlockNumber filter = InvalidBlockNumber;

	CHECK_FOR_INTERRUPTS();
	check_stack_depth();
	if (input->too_large || input->nblocks == HYB_LEARN_MAX_PAGES ||
		input->bytes.len > HYB_LEARN_MAX_BYTES)
	{
		input->too_large = true;
		return;
	}
	if (!hyb_page_copy(ix, block, from, level > 0 ? HYB_PAGE_INNER : HYB_PAGE_LEAF,
					   stamp, page) ||
		hyb_page_opaque((Page) page)->level != level)
		hyb_corrupted(ix->rel, block, "This is not the page that its parent points to.");
	input->blocks[input->nblocks++] = block;

	if (level == 0)
		read_learn_leaf(ix, input, page, block);
	for (int i = 0; level > 0 && i < hyb_inner_count((Page) page); i++)
	{
		HybChild	child;

		hyb_inner_get((Page) page, i, &child, ix->rel, block);
		/* neighbours share filter pages */
		if (BlockNumberIsValid(child.filter_block) &&
			child.filter_block != filter && input->nblocks < HYB_LEARN_MAX_PAGES)
			input->blocks[input->nblocks++] = child.filter_block;
		filter = child.filter_block;
		read_tree(ix, input, child.block, child.stamp, level - 1, block);
	}
	pfree(page);
}

/* A generation of the log, which may grow meanwhile. */
static void
read_generation(const HybIndex *ix, LearnInput *input,
				const HybGeneration *generation)
{
	char	   *page = palloc(BLCKSZ);
	HybValue   *vals = palloc(ix->desc->natts * sizeof(HybValue));
	HybDeltaWalk walk;

	hyb_delta_walk_start(&walk, ix, generation, false);
	while (!input->too_large && hyb_delta_walk_next(&walk))
	{
		HybEntry	entry = {.block = walk.block};

		if (!hyb_delta_walk_copy(&walk, page))
			hyb_corrupted(ix->rel, walk.block,
						  "This is not the delta page that the log points to.");
		while (hyb_delta_next(ix->rel, (Page) page, &entry))
		{
			hyb_delta_key_length(ix, &entry);
			if (hyb_key_split(ix->desc, entry.bytes, entry.len,
							  ix->desc->natts, vals) != entry.len)
				hyb_corrupted(ix->rel, walk.block,
							  "An entry of a delta page is malformed.");
			if ((entry.flags & HYB_DELTA_DEAD) != 0)
				continue;
			hyb_buf_append(&input->bytes, entry.bytes, entry.len);
			add_learn_entry(input, input->bytes.len - entry.len, entry.len,
							entry.keylen, &entry.tid);
		}
		input->too_large |= input->bytes.len > HYB_LEARN_MAX_BYTES;
	}
	pfree(page);
	pfree(vals);
}

/* Everything, of the generation given and the static stage. */
static LearnInput *
read_index(const HybIndex *ix, const HybMetaPage *meta,
		   const HybGeneration *generation)
{
	LearnInput *input = palloc0(sizeof(LearnInput));

	for (int i = 0; i < meta->nlevels; i++)
	{
		const HybRoot *root = &meta->levels[i].root;

		if (root->height > 0)
			read_tree(ix, input, root->block, root->stamp,
					  (int) root->height - 1, HYB_METAPAGE_BLKNO);
	}
	read_generation(ix, input, generation);
	return input;
}

/* ---- learning ---- */

/* Learn from the index's own keys; false if there are not enough. */
static bool
learn_dictionaries(Learn *learn)
{
	const HybKeyDesc *desc = learn->ix->desc;
	HybMetaPage meta;
	LearnInput *input;
	HybEncodedKeys *keys = palloc0(desc->nkeys * sizeof(HybEncodedKeys));
	HybValue   *vals = palloc(desc->natts * sizeof(HybValue));
	uint32		n;
	uint64		bytes = 0;

	hyb_meta_copy(learn->ix, &meta);
	input = read_index(learn->ix, &meta, &meta.active);
	n = Min(input->n, HYB_ENCODED_SAMPLE_KEYS);
	if (input->too_large || input->n < HYB_ENCODED_ENOUGH_KEYS)
		return false;
	for (uint32 i = 0; i < n && bytes < HYB_ENCODED_SAMPLE_BYTES; i++)
	{
		uint32		place = (uint32) ((uint64) i * SAMPLE_ENTRY_STEP % n);
		const LearnEntry *entry = &input->entries[(uint64) place * input->n / n];

		(void) hyb_key_split(desc, input->bytes.data + entry->off, entry->len,
							 desc->nkeys, vals);
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

/* Encode all entries; false if one becomes too long. */
static bool
encode_entries(Learn *learn, LearnInput *input)
{
	const HybKeyDesc *from = learn->ix->desc;
	const HybKeyDesc *to = learn->coded.desc;
	Datum	   *values = palloc(from->natts * sizeof(Datum));
	bool	   *isnull = palloc(from->natts * sizeof(bool));
	HybValue   *vals = palloc(from->natts * sizeof(HybValue));
	HybBuf		entry = {0};
	HybBuf		coded = {0};
	MemoryContext tuple_context = AllocSetContextCreate(CurrentMemoryContext,
														"hybrid encode entry",
														ALLOCSET_DEFAULT_SIZES);
	uint32		done_off = PG_UINT32_MAX;

	hyb_buf_reserve(&entry, HYB_MAX_ENTRY_SIZE);
	for (int i = 0; i < input->n; i++)
	{
		LearnEntry *e = &input->entries[i];
		MemoryContext old;
		uint32		keylen;

		if (e->off == done_off)
		{
			/* the row of the entry before, in the leaf */
			e->off = e[-1].off;
			e->len = e[-1].len;
			e->keylen = e[-1].keylen;
			continue;
		}
		done_off = e->off;
		if ((i & 0x3FF) == 0)
			CHECK_FOR_INTERRUPTS();
		if (hyb_key_split(from, input->bytes.data + e->off, e->len, from->natts,
						  vals) != e->len)
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("an entry of index \"%s\" is malformed",
							RelationGetRelationName(learn->ix->rel)),
					 errdetail("It comes from a damaged leaf."),
					 errhint("Please REINDEX it.")));
		old = MemoryContextSwitchTo(tuple_context);
		for (int c = 0; c < from->natts; c++)
		{
			isnull[c] = vals[c].isnull;
			values[c] = isnull[c] ? (Datum) 0 :
				hyb_value_decode(&from->cols[c], &vals[c]);
		}
		hyb_key_encode(to, values, isnull, &entry, &keylen);
		MemoryContextSwitchTo(old);
		MemoryContextReset(tuple_context);
		if (entry.len > HYB_MAX_ENTRY_SIZE)
			return false;
		e->off = coded.len;
		e->len = (uint16) entry.len;
		e->keylen = (uint16) keylen;
		hyb_buf_append(&coded, entry.data, entry.len);
	}
	pfree(input->bytes.data);
	input->bytes = coded;
	return true;
}

typedef struct SortState
{
	const HybKeyDesc *desc;
	const uint8 *bytes;
} SortState;

static int
compare_entries(const void *a, const void *b, void *arg)
{
	const SortState *state = arg;
	const LearnEntry *x = a;
	const LearnEntry *y = b;
	int			c = 0;

	if (x->off != y->off)
		c = hyb_key_compare(state->desc, state->bytes + x->off, x->keylen,
							state->bytes + y->off, y->keylen);
	return c != 0 ? c : ItemPointerCompare((ItemPointer) &x->tid,
										   (ItemPointer) &y->tid);
}

static void
write_learned_leaf(void *arg, Page page, const HybPos *low)
{
	Learn	   *learn = arg;

	hyb_child_list_add_image(&learn->children, page, low, learn->filter);
}

/* Images of the new leaves, from sorted entries. */
static void
build_leaves(Learn *learn, const LearnInput *input)
{
	const HybKeyDesc *desc = learn->coded.desc;
	HybLeafBuilder *builder = hyb_leaf_builder_create(&learn->coded,
													  hyb_leaf_layout_for(&learn->coded, 0),
													  learn->stamp, write_learned_leaf,
													  learn);
	HybValue   *vals = palloc(desc->natts * sizeof(HybValue));

	for (int i = 0; i < input->n; i++)
	{
		const LearnEntry *e = &input->entries[i];

		if ((i & 0x3FF) == 0)
			CHECK_FOR_INTERRUPTS();
		(void) hyb_key_split(desc, input->bytes.data + e->off, e->len,
							 desc->natts, vals);
		hyb_leaf_builder_add(builder, vals, &e->tid);
	}
	hyb_leaf_builder_finish(builder);
	hyb_leaf_builder_free(builder);
}

/* Write dictionaries and static stage, and switch the metapage. */
static void
install_learned(Learn *learn, const LearnInput *input)
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
	for (int i = ndictionary - 1; i >= 0; i--)
	{
		PGAlignedBlock image;

		hyb_dictionary_page_init(image.data, ix, learn->stored.data,
								 learn->stored.len, i, learn->dictionary);
		learn->dictionary = hyb_step_write(space, image.data);
	}
	hyb_step_write_leaves(space, &learn->children);
	for (int i = 0; i < input->nblocks; i++)
		hyb_step_retire(space, input->blocks[i]);
	path->high.tie = HYB_AFTER;
	hyb_static_replace(space, path, &learn->children, &root);
	HYB_POINT("learn-written");

	/* keys get other bytes; while it is locked none is published or locked */
	hyb_hot_drop(ix);
	TransferPredicateLocksToHeapRelation(ix->rel);
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	if (!hyb_step_fits(space, meta))
		hyb_step_no_room(ix);
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
	level->tids = input->n;
	level->leaf_pages = learn->children.n;
	level->inner_pages = space->new_inner;
	level->filter_pages = space->new_filter;
	meta->next_stamp = learn->stamp + 1;
	meta->merges++;
	meta->merged_entries += meta->frozen.nentries;
	meta->retiring = meta->frozen;
	hyb_generation_init(&meta->frozen, 0);
	hyb_step_give_back(space, meta);
	hyb_wal_meta_pending(&set, metabuf);
	hyb_version_switch_end(ix, metabuf, &set, NULL);
}

/*
 * Write the index anew, encoded; false if that does not fit one step.  The index
 * is locked, so no entry can be added or searched.
 */
static bool
encode_index(Learn *learn)
{
	HybIndex   *ix = learn->ix;
	HybDictionaries *dictionaries;
	HybMetaPage meta;
	LearnInput *input;
	SortState	state;
	int			npages;

	learn->progress = hyb_generation_freeze(ix);
	HYB_POINT("learn-frozen");
	hyb_meta_copy(ix, &meta);
	input = read_index(ix, &meta, &meta.frozen);
	if (input->too_large)
		return false;

	learn->coded = *ix;
	learn->coded.desc = hyb_key_desc_create(ix->rel);
	dictionaries = hyb_encoded_load(learn->stored.data, learn->stored.len,
									CurrentMemoryContext);
	if (dictionaries == NULL ||
		!hyb_encoded_attach(learn->coded.desc, dictionaries))
		elog(ERROR, "could not read back the dictionaries of an index");
	if (!encode_entries(learn, input))
		return false;
	state.desc = learn->coded.desc;
	state.bytes = input->bytes.data;
	qsort_arg(input->entries, input->n, sizeof(LearnEntry), compare_entries,
			  &state);

	learn->stamp = meta.next_stamp;
	learn->filter = hyb_filter_builder_create(&learn->coded,
											  hyb_filter_kind_of_level(&learn->coded, 0, 1));
	build_leaves(learn, input);

	/* at least two leaves share a filter page */
	npages = learn->children.n * (learn->filter != NULL ? 3 : 2) / 2 +
		hyb_dictionary_npages(learn->stored.len);
	if (npages > HYB_LEARN_MAX_NEW)
		return false;
	install_learned(learn, input);
	learn->progress = true;
	return true;
}

/* ---- locking ---- */

/*
 * A process that waits for the caller's merge lock may have the index locked.
 * That is a deadlock until this process gives up.  So it gives up before the
 * other one looks for deadlocks, after deadlock_timeout.
 */
static bool
lock_index(Relation index, int wait_ms)
{
	int			save_timeout = LockTimeout;

	if (wait_ms == 0 || wait_ms >= DeadlockTimeout || hyb_merge_lock_wanted(index))
		return ConditionalLockRelation(index, AccessExclusiveLock);
	LockTimeout = wait_ms;
	PG_TRY();
	{
		LockRelation(index, AccessExclusiveLock);
	}
	PG_FINALLY();
	{
		LockTimeout = save_timeout;
	}
	PG_END_TRY();
	return true;
}

/*
 * Call `work` with the index locked exclusively, then release the lock.  Returns
 * false if the lock was not available, or work did.
 */
static bool
exclusively(Learn *learn, int wait_ms, bool (*work) (Learn *learn))
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	volatile bool locked = false;
	volatile bool done = false;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		locked = lock_index(learn->ix->rel, wait_ms);
		if (locked)
			done = work(learn);
	}
	PG_CATCH();
	{
		ErrorData  *edata;

		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		if (locked || (edata->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE &&
					   edata->sqlerrcode != ERRCODE_T_R_DEADLOCK_DETECTED))
			ReThrowError(edata);
		FreeErrorData(edata);
		return false;
	}
	PG_END_TRY();
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return done;
}

static bool
do_nothing(Learn *learn)
{
	return true;
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
	learn.context = AllocSetContextCreate(CurrentMemoryContext,
										  "hybrid dictionary merge",
										  ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(learn.context);
	if ((wait_ms > 0 || exclusively(&learn, 0, do_nothing)) &&
		learn_dictionaries(&learn) &&
		exclusively(&learn, wait_ms, encode_index))
	{
		MemoryContextSwitchTo(old);
		hyb_dictionary_attach(ix, learn.dictionary);
		HYB_POINT("learn-installed");
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(learn.context);
	return learn.progress;
}
