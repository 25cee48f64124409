/*
 * advise.c
 *		How large a btree index would be as a hybrid one of each layout, by a sample.
 *
 * We read groups of neighbouring leaves at random places, a small index as a whole,
 * and build leaves of ours from their entries in memory.  So the estimate includes
 * each compression.  We write nothing, and read at most SAMPLE_MAX_READS pages.
 */
#include "base/compat.h"

#include "access/itup.h"
#include "access/nbtree.h"
#include "build/build.h"
#include "catalog/pg_type.h"
#include "common/pg_prng.h"
#include "ddl/twin/twin.h"
#include "key/key.h"
#include "leaf/leaf.h"
#include "sql/inspect.h"
#include "sql/result_row.h"
#include "storage/bufmgr.h"
#include "store/handle.h"
#include "utils/memutils.h"

#include <math.h>

PG_FUNCTION_INFO_V1(hybrid_estimate);

#define SAMPLE_MAX_READS	1200
#define PROBES		96			/* random pages of a large index */
#define RUNS		12			/* of leaves that follow one another */
#define RUN_READS	((SAMPLE_MAX_READS - PROBES) / RUNS)
#define RUN_LEAVES	3			/* of ours that a run should fill */

/* Leaves of one layout that are built of the sample. */
typedef struct SampleLayout
{
	HybIndex	index;			/* stands for one */

	/* the run at hand */
	HybLeafBuilder *builder;
	bool		last;			/* the builder is being emptied */
	double		run_leaves;		/* the last ones in parts */
	double		run_entries;	/* that they hold */

	/* all runs */
	double		leaves_per_entry;	/* sum over runs */
	int			runs;
	double		separators;		/* bytes in internal nodes, sum over leaves */
	double		nseparators;
} SampleLayout;

typedef struct Sample
{
	Relation	index;			/* the btree */
	SampleLayout layouts[2];	/* of keys, and of prefixes if these are
								 * possible */
	int			nlayouts;
	const HybKeyDesc *desc;
	HybTrieObstacle obstacle;	/* if they are not */
	BlockNumber nblocks;
	bool		rows_on_disk;	/* the table is larger than shared_buffers */
	BufferAccessStrategy strategy;
	PGAlignedBlock page;		/* a copy of the leaf at hand */
	int64		reads;
	pg_prng_state random;
	MemoryContext tuple_context;
	MemoryContext run_context;

	/* the run at hand */
	HybBuf		entry;
	HybBuf		previous;		/* key of the entry before */
	uint32		previous_len;

	/* all runs */
	double		entries;		/* that were read */
	double		duplicates;		/* with the key of the one before */
} Sample;

/* ---- reading the btree ---- */

/* Copy a page; true if it is a leaf with entries. */
static bool
read_btree_leaf(Sample *s, BlockNumber block)
{
	Buffer		buf;
	BTPageOpaque opaque;

	CHECK_FOR_INTERRUPTS();
	buf = ReadBufferExtended(s->index, MAIN_FORKNUM, block, RBM_NORMAL,
							 s->strategy);
	LockBuffer(buf, BT_READ);
	_bt_checkpage(s->index, buf);
	memcpy(s->page.data, BufferGetPage(buf), BLCKSZ);
	UnlockReleaseBuffer(buf);
	s->reads++;
	opaque = BTPageGetOpaque((Page) s->page.data);
	return P_ISLEAF(opaque) && !P_IGNORE(opaque) && !P_ISMETA(opaque) &&
		P_FIRSTDATAKEY(opaque) <= PageGetMaxOffsetNumber((Page) s->page.data);
}

/* The entries of the page at hand */
static int
count_entries(Sample *s)
{
	Page		page = (Page) s->page.data;
	int			n = 0;

	for (OffsetNumber off = P_FIRSTDATAKEY(BTPageGetOpaque(page));
		 off <= PageGetMaxOffsetNumber(page); off++)
	{
		ItemId		id = PageGetItemId(page, off);
		IndexTuple	tuple = (IndexTuple) PageGetItem(page, id);

		if (!ItemIdIsDead(id))
			n += BTreeTupleIsPosting(tuple) ? BTreeTupleGetNPosting(tuple) : 1;
	}
	return n;
}

/* ---- building leaves ---- */

static void
count_sample_leaf(void *arg, Page page, const HybPos *low)
{
	SampleLayout *layout = arg;

	layout->run_leaves += layout->last ? hyb_leaf_fill(page) : 1.0;
	layout->run_entries += hyb_page_opaque(page)->count;
	layout->separators += low->len;
	layout->nseparators++;
}

/* A tuple of the btree, with one TID or several */
static void
add_btree_tuple(Sample *s, IndexTuple tuple)
{
	const HybKeyDesc *desc = s->desc;
	TupleDesc	stored = RelationGetDescr(s->index);
	bool		posting = BTreeTupleIsPosting(tuple);
	int			n = posting ? BTreeTupleGetNPosting(tuple) : 1;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	HybValue	vals[INDEX_MAX_KEYS];
	uint32		keylen;
	MemoryContext old = MemoryContextSwitchTo(s->tuple_context);

	index_deform_tuple(tuple, stored, values, isnull);
	for (int i = 0; i < desc->natts; i++)
		if (!isnull[i] && TupleDescAttr(stored, i)->attlen == -2)
			values[i] = DirectFunctionCall1(namein, values[i]);
	hyb_key_encode(desc, values, isnull, &s->entry, &keylen);
	MemoryContextSwitchTo(old);
	MemoryContextReset(s->tuple_context);
	if (s->entry.len > HYB_MAX_ENTRY_SIZE ||
		hyb_key_split(desc, s->entry.data, s->entry.len, desc->natts,
					  vals) == 0)
		return;

	s->duplicates += n - 1;
	if (s->previous_len == keylen &&
		memcmp(s->previous.data, s->entry.data, keylen) == 0)
		s->duplicates++;
	s->previous.len = 0;
	hyb_buf_append(&s->previous, s->entry.data, keylen);
	s->previous_len = keylen;
	s->entries += n;
	for (int l = 0; l < s->nlayouts; l++)
		for (int i = 0; i < n; i++)
			hyb_leaf_builder_add(s->layouts[l].builder, vals, posting ?
								 BTreeTupleGetPostingN(tuple, i) : &tuple->t_tid);
}

/* Entries of the page at hand, which need not stay as it is meanwhile */
static void
add_sample_page(Sample *s)
{
	Page		page = (Page) s->page.data;

	for (OffsetNumber off = P_FIRSTDATAKEY(BTPageGetOpaque(page));
		 off <= PageGetMaxOffsetNumber(page); off++)
	{
		ItemId		id = PageGetItemId(page, off);

		if (!ItemIdIsDead(id))
			add_btree_tuple(s, (IndexTuple) PageGetItem(page, id));
	}
}

static void
begin_layout(SampleLayout *layout, double entries, bool rows_on_disk)
{
	layout->builder = hyb_leaf_builder_create(&layout->index,
											  hyb_leaf_layout_for(&layout->index, 0), 1,
											  count_sample_leaf, layout);
	hyb_leaf_builder_expect(layout->builder, (uint64) entries, rows_on_disk);
	layout->run_leaves = layout->run_entries = 0;
	layout->last = false;
}

/* What is left counts if it is most of the run. */
static void
end_layout(SampleLayout *layout)
{
	layout->last = true;
	if (layout->run_leaves < RUN_LEAVES)
		hyb_leaf_builder_finish(layout->builder);
	if (layout->run_entries == 0)
		return;
	layout->leaves_per_entry += layout->run_leaves / layout->run_entries;
	layout->runs++;
}

static bool
has_enough_leaves(const Sample *s)
{
	for (int l = 0; l < s->nlayouts; l++)
		if (s->layouts[l].run_leaves < RUN_LEAVES)
			return false;
	return true;
}

/*
 * From the leaf at hand on to the right, as far as it takes to fill some leaves
 * of ours, if `some`, but not farther than `reads` pages.  The index has about this
 * number of entries.
 */
static void
read_run(Sample *s, double entries, bool some, int reads)
{
	MemoryContext old = MemoryContextSwitchTo(s->run_context);

	for (int l = 0; l < s->nlayouts; l++)
		begin_layout(&s->layouts[l], entries, s->rows_on_disk);
	s->previous_len = 0;
	for (;;)
	{
		BlockNumber next = BTPageGetOpaque((Page) s->page.data)->btpo_next;

		add_sample_page(s);
		while (next != P_NONE && --reads > 0 && !read_btree_leaf(s, next))
			next = BTPageGetOpaque((Page) s->page.data)->btpo_next;
		if (next == P_NONE || reads <= 0 || (some && has_enough_leaves(s)))
			break;
	}
	for (int l = 0; l < s->nlayouts; l++)
		end_layout(&s->layouts[l]);
	MemoryContextSwitchTo(old);
	MemoryContextReset(s->run_context);
}

/* All leaves, from the leftmost one on; returns the number of entries. */
static double
read_all(Sample *s)
{
	for (BlockNumber block = 1; block < s->nblocks; block++)
		if (read_btree_leaf(s, block) &&
			P_LEFTMOST(BTPageGetOpaque((Page) s->page.data)))
		{
			read_run(s, (double) count_entries(s) * (s->nblocks - 1), false,
					 SAMPLE_MAX_READS);
			return s->entries;
		}
	return 0;
}

static BlockNumber
random_block(Sample *s)
{
	return 1 + pg_prng_uint64_range(&s->random, 0, s->nblocks - 2);
}

/* Pages and runs at random places; returns the number of entries, roughly. */
static double
read_some(Sample *s)
{
	double		in_probes = 0;
	double		entries;

	for (int i = 0; i < PROBES; i++)
		if (read_btree_leaf(s, random_block(s)))
			in_probes += count_entries(s);
	entries = in_probes / PROBES * (s->nblocks - 1);
	for (int i = 0; i < RUNS; i++)
	{
		/* near a page that is not a leaf there are leaves */
		for (int tries = 0; tries < 8; tries++)
			if (read_btree_leaf(s, random_block(s)))
			{
				read_run(s, entries, true, RUN_READS - 8);
				break;
			}
	}
	return entries;
}

/* ---- the function ---- */

/* Returns the bytes of a hybrid index with this number of entries. */
static int64
hybrid_size(const SampleLayout *layout, double entries)
{
	double		leaves = layout->runs == 0 ? 0 :
		ceil(entries * layout->leaves_per_entry / layout->runs);
	double		child = 2 + 34 +
		(layout->nseparators > 0 ? layout->separators / layout->nseparators : 0);
	double		inner = leaves > 1 ? ceil(leaves * child / HYB_PAGE_CAPACITY) : 0;

	/* with the metapage */
	return (int64) (1 + leaves + inner) * BLCKSZ;
}

/* Sets up both layouts, or notes why there is only one. */
static void
prepare_layouts(Sample *s)
{
	Relation	hybrid = hyb_twin_as_hybrid(s->index);
	HybKeyDesc *desc = hyb_key_desc_create(hybrid);
	Size		size = hyb_key_desc_size(desc->natts);
	HybKeyDesc *truncated = memcpy(palloc(size), desc, size);

	truncated->truncated = true;
	s->desc = desc;
	s->nlayouts = hyb_trie_obstacle(hybrid, desc, &s->obstacle) ? 1 : 2;
	for (int l = 0; l < s->nlayouts; l++)
	{
		s->layouts[l].index.rel = hybrid;
		s->layouts[l].index.context = CurrentMemoryContext;
		s->layouts[l].index.desc = l == 0 ? desc : truncated;
	}
}

/* NULL is put for NULL. */
static void
put_text(HybResultRow *row, const char *words)
{
	hyb_result_put(row, TEXTOID, words != NULL,
				   words != NULL ? CStringGetTextDatum(words) : (Datum) 0);
}

/* A call of hybrid_estimate. */
typedef struct EstimateCall
{
	Oid			index;
	bool		nowait;
	bool		known;			/* the row is complete */
	HybResultRow row;
} EstimateCall;

/* A row for an index whose entries cannot be compared, or not read. */
static void
put_failure(HybResultRow *row, const ErrorData *error)
{
	hyb_result_put_int8(row, false, 0);
	hyb_result_put(row, FLOAT8OID, false, (Datum) 0);
	for (int i = 0; i < 3; i++)
		hyb_result_put_int8(row, false, 0);
	put_text(row, psprintf("It cannot be estimated: %s.", error->message));
}

static void
put_estimate(void *arg)
{
	EstimateCall *call = arg;
	HybResultRow *row = &call->row;
	HybInspected inspected;
	HybRefusal	refusal;
	Sample	   *s = palloc0(sizeof(Sample));
	double		entries = 0;
	bool		possible;
	bool		trie;

	if (!hyb_inspect_read(call->index, call->nowait, HYB_ACCESS_READ_BTREE, &inspected))
		return;

	s->index = inspected.index;
	s->nblocks = RelationGetNumberOfBlocks(s->index);
	s->rows_on_disk = RelationGetNumberOfBlocks(inspected.heap) > (BlockNumber) NBuffers;
	s->strategy = GetAccessStrategy(BAS_BULKREAD);
	s->tuple_context = AllocSetContextCreate(CurrentMemoryContext, "hybrid sample tuple",
											 ALLOCSET_DEFAULT_SIZES);
	s->run_context = AllocSetContextCreate(CurrentMemoryContext, "hybrid sample run",
										   ALLOCSET_DEFAULT_SIZES);
	hyb_buf_reserve(&s->entry, HYB_MAX_ENTRY_SIZE);
	hyb_buf_reserve(&s->previous, HYB_MAX_ENTRY_SIZE);
	/* the same index, the same sample */
	pg_prng_seed(&s->random, call->index);

	possible = hyb_twin_possible(s->index, get_index_am_oid("hybrid", false), &refusal);
	if (possible)
	{
		prepare_layouts(s);
		entries = s->nblocks <= SAMPLE_MAX_READS ? read_all(s) : read_some(s);
	}
	hyb_result_put_int8(row, possible, (int64) entries);
	hyb_result_put(row, FLOAT8OID, possible,
				   Float8GetDatum(s->entries > 0 ? s->duplicates / s->entries : 0));
	hyb_result_put_int8(row, true, (int64) s->nblocks * BLCKSZ);
	hyb_result_put_int8(row, possible, hybrid_size(&s->layouts[0], entries));
	hyb_result_put_int8(row, true, s->reads);
	put_text(row, possible ? NULL : refusal.hint == NULL ? refusal.detail :
			 psprintf("%s %s", refusal.detail, refusal.hint));
	trie = possible && s->nlayouts > 1;
	hyb_result_put_int8(row, trie, hybrid_size(&s->layouts[1], entries));
	put_text(row, possible && !trie ? s->obstacle.detail : NULL);
	hyb_inspect_close(&inspected);
	call->known = true;
}

/*
 * hybrid_estimate(index regclass, nowait boolean, OUT entries bigint, OUT
 * duplicates double precision, OUT btree_bytes bigint, OUT hybrid_bytes bigint,
 * OUT pages_read bigint, OUT obstacle text, OUT trie_bytes bigint, OUT
 * trie_obstacle text)
 *
 * With nowait another error than a lock that is not available is an obstacle.
 */
Datum
hybrid_estimate(PG_FUNCTION_ARGS)
{
	EstimateCall call = {.index = PG_GETARG_OID(0),.nowait = PG_GETARG_BOOL(1)};
	ErrorData  *error = NULL;

	hyb_result_begin(fcinfo, false, &call.row);
	if (call.nowait)
		error = hyb_without_waiting(put_estimate, &call);
	else
		put_estimate(&call);
	if (error != NULL && error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE)
	{
		hyb_result_begin(fcinfo, false, &call.row);
		put_failure(&call.row, error);
		call.known = true;
	}
	if (!call.known)
		PG_RETURN_NULL();
	return hyb_result_datum(&call.row);
}
