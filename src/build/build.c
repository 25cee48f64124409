/*
 * build.c
 *		CREATE INDEX: sorts all entries, then writes the static stage bottom up.
 *
 * The metapage comes first, and the dictionaries of encoded columns after it,
 * learned from a sample of the table.  Then one process (build_leaves.c) or
 * several (build_parallel.c) read the table, sort its entries and write leaves.
 * Last come the nodes above them and the root in the metapage.  All pages are
 * logged at the end as images: after a crash before that, the catalog does
 * not name the file.
 */
#include "base/compat.h"

#include "access/tableam.h"
#include "access/xloginsert.h"
#include "base/server.h"
#include "build/build.h"
#include "build/build_internal.h"
#include "catalog/index.h"
#include "filter/filter_choice.h"
#include "log/log.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "optimizer/optimizer.h"
#include "pgstat.h"
#include "server/btree_only.h"
#include "store/dictionary.h"
#include "store/handle.h"
#include "store/meta.h"
#include "store/settings.h"
#include "tree/update.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Blocks of the table that keys to learn from come from. */
#define SAMPLE_BLOCKS	512

/* Steps through the sampled blocks: a prime, so that all of them are met. */
#define SAMPLE_BLOCK_STEP		521

/* ---- which layout the index has ---- */

bool
hyb_trie_obstacle(Relation index, const HybKeyDesc *desc, HybTrieObstacle *obstacle)
{
	TupleDesc	tupdesc = RelationGetDescr(index);

	if (desc->natts > desc->nkeys)
	{
		obstacle->detail = "The index has INCLUDE columns.";
		obstacle->hint = "Rows are visited for every entry of such an index: leave the columns out.";
		return true;
	}
	if (desc->chains)
	{
		obstacle->detail = "The table does not have the keys of all entries.";
		obstacle->hint = "Use layout = columnar.";
		return true;
	}
	obstacle->detail = hyb_not_heap(index->rd_index->indrelid);
	if (obstacle->detail != NULL)
	{
		obstacle->hint = "Use layout = columnar.";
		return true;
	}
	for (int i = 0; i < desc->nkeys; i++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, i);

		if (index->rd_index->indkey.values[i] == 0)
		{
			obstacle->detail = psprintf("Column \"%s\" is an expression.",
										NameStr(att->attname));
			obstacle->hint = "Keys are read from the table again: index a generated column that is stored.";
			return true;
		}
		if (desc->cols[i].compare != HYB_COMPARE_MEM)
		{
			obstacle->detail = psprintf("Keys of column \"%s\", of type %s, are not ordered by their bytes.",
										NameStr(att->attname),
										format_type_be(desc->cols[i].typid));
			obstacle->hint = OidIsValid(desc->cols[i].collation) ?
				"Use a collation that orders by bytes, such as \"C\", or layout = columnar." :
				"Use layout = columnar.";
			return true;
		}
	}
	return false;
}

/*
 * Do leaves of the oldest level hold the beginnings of keys, as the storage
 * parameter asks?  An error if they cannot.
 */
static bool
is_truncated(Relation index, const HybKeyDesc *desc)
{
	HybTrieObstacle obstacle;

#ifdef USE_ASSERT_CHECKING
	if (hyb_test_trie && !hyb_trie_obstacle(index, desc, &obstacle))
		return true;
#endif
	if (hyb_layout_option(index) != HYB_OPTION_TRIE)
		return false;
	if (hyb_trie_obstacle(index, desc, &obstacle))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("layout \"trie\" is not possible for index \"%s\"",
						RelationGetRelationName(index)),
				 errdetail_internal("%s", obstacle.detail),
				 errhint("%s", obstacle.hint)));
	return true;
}

/* ---- dictionaries ---- */

typedef struct SampleState
{
	const HybKeyDesc *desc;
	HybEncodedKeys *keys;		/* by column */
	uint32		wanted;			/* rows of this block */
	uint32		rows;			/* of all blocks */
	uint64		bytes;
	MemoryContext context;		/* of the keys */
} SampleState;

static void
sample_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
				bool alive, void *arg)
{
	SampleState *state = arg;
	MemoryContext old;

	if (state->wanted == 0 || state->bytes >= HYB_ENCODED_SAMPLE_BYTES)
		return;
	state->wanted--;
	state->rows++;
	old = MemoryContextSwitchTo(state->context);
	for (int i = 0; i < state->desc->nkeys; i++)
	{
		HybEncodedKeys *keys = &state->keys[i];
		uint32		before = keys->n > 0 ? keys->off[keys->n] : 0;

		if (!hyb_column_is_encoded(&state->desc->cols[i]) || isnull[i])
			continue;
		hyb_encoded_add_key(keys, &state->desc->cols[i], values[i]);
		state->bytes += keys->off[keys->n] - before;
	}
	MemoryContextSwitchTo(old);
}

/*
 * Samples rows of blocks all over the table.  The order of blocks goes back and
 * forth: long keys end the sample early, and must not confine it to the table's
 * beginning.
 */
static void
sample_table(const HybKeyDesc *desc, Relation heap, Relation index,
			 struct IndexInfo *info, HybEncodedKeys *keys)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(heap);
	uint32		n = Min(nblocks, SAMPLE_BLOCKS);
	SampleState state;

	memset(&state, 0, sizeof(state));
	state.desc = desc;
	state.keys = keys;
	state.context = CurrentMemoryContext;
	for (uint32 i = 0; i < n && state.bytes < HYB_ENCODED_SAMPLE_BYTES; i++)
	{
		uint32		place = (uint32) ((uint64) i * SAMPLE_BLOCK_STEP % n);
		BlockNumber block = (BlockNumber) ((uint64) place * nblocks / n);

		CHECK_FOR_INTERRUPTS();
		state.wanted = HYB_ENCODED_SAMPLE_KEYS / n;
		(void) table_index_build_range_scan(heap, index, info, false, false,
											false, block, 1,
											sample_callback, &state, NULL);
	}
}

static void
report_dictionary(const HybIndex *ix)
{
	TupleDesc	tupdesc = RelationGetDescr(ix->rel);

	if (ix->dictionaries == NULL)
	{
		ereport(NOTICE,
				(errmsg("index \"%s\" stores its keys as they are until it has enough of them to learn from",
						RelationGetRelationName(ix->rel)),
				 errhint("A merge encodes them later.")));
		return;
	}
	for (int i = 0; i < ix->dictionaries->n; i++)
	{
		const HybDictionary *d = &ix->dictionaries->columns[i];

		ereport(NOTICE,
				(errmsg("column \"%s\" of index \"%s\" has compression rate %.2f on a sample of " UINT64_FORMAT " keys",
						NameStr(TupleDescAttr(tupdesc, d->column)->attname),
						RelationGetRelationName(ix->rel),
						hyb_dictionary_rate(d->sample_bytes, d->sample_stored),
						d->sample_keys),
				 errdetail("Scheme %s, %u dictionary entries, " UINT64_FORMAT " bytes.",
						   hyb_encoded_scheme(&ix->desc->cols[d->column]),
						   d->hope == NULL ? 0 : hyb_hope_entries(d->hope), d->stored_size),
				 d->learned ? 0 :
				 errhint("The column has too few values to learn from.  REINDEX the index when it has more.")));
	}
}

/*
 * Learns dictionaries for the encoded columns of a new index from a sample of its
 * table, writes them after the metapage, and attaches them to the handle.  Returns
 * the block of the first dictionary page.  That is InvalidBlockNumber if the index
 * needs no dictionary or the table has too few rows.
 */
static BlockNumber
learn_dictionary(HybIndex *ix, Relation heap, struct IndexInfo *info)
{
	MemoryContext context;
	MemoryContext old;
	HybEncodedKeys *keys;
	HybBuf		bytes = {0};
	BlockNumber first = InvalidBlockNumber;

	if (!ix->desc->has_encoded)
		return InvalidBlockNumber;

	context = AllocSetContextCreate(CurrentMemoryContext, "hybrid dictionary",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	keys = palloc0(ix->desc->nkeys * sizeof(HybEncodedKeys));
	sample_table(ix->desc, heap, ix->rel, info, keys);
	if (hyb_encoded_learn(ix->desc, keys, &bytes))
		first = hyb_dictionary_write(ix, bytes.data, bytes.len);
	MemoryContextSwitchTo(old);
	if (BlockNumberIsValid(first))
		hyb_dictionary_attach(ix, first);
	report_dictionary(ix);
	MemoryContextDelete(context);
	return first;
}

/* ---- the metapage ---- */

/* Creates the metapage of an empty index, and dictionary pages if it needs any. */
static void
create_metapage(HybIndex *ix, ForkNumber fork, Relation heap,
				struct IndexInfo *info)
{
	Buffer		buf;
	BlockNumber dictionary;

	hyb_index_draw_incarnation(ix);
	buf = ReadBufferExtended(ix->rel, fork, P_NEW, RBM_NORMAL, NULL);
	Assert(BufferGetBlockNumber(buf) == HYB_METAPAGE_BLKNO);
	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	hyb_meta_init(BufferGetPage(buf), ix);
	MarkBufferDirty(buf);
	END_CRIT_SECTION();
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);

	dictionary = fork == INIT_FORKNUM ? InvalidBlockNumber :
		learn_dictionary(ix, heap, info);

	/* the merge that learns a dictionary needs keys */
	if (ix->desc->has_encoded && !BlockNumberIsValid(dictionary))
		ix->desc->truncated = false;

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	hyb_page_meta(BufferGetPage(buf))->dictionary = dictionary;
	if (ix->desc->has_encoded && !BlockNumberIsValid(dictionary))
		hyb_page_meta(BufferGetPage(buf))->flags |= HYB_META_PLAIN;
	if (ix->desc->truncated)
		hyb_page_meta(BufferGetPage(buf))->flags |= HYB_META_TRUNCATED;
	MarkBufferDirty(buf);
	if (fork == INIT_FORKNUM)
		log_newpage_buffer(buf, true);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(buf);
}

static HybIndex *
new_handle(Relation index)
{
	HybIndex   *ix = palloc0(sizeof(HybIndex));

	ix->rel = index;
	ix->context = CurrentMemoryContext;
	ix->desc = hyb_key_desc_create(index);
	ix->desc->truncated = is_truncated(index, ix->desc);
	return ix;
}

/* ---- what the user is told of filters ---- */

/*
 * A NOTICE if the index cannot have the filter that it is to have: when it is
 * created, not when it is rebuilt.
 */
static void
warn_without_filter(const HybIndex *ix)
{
	HybFilterKind kind = hyb_filter_option(ix->rel);
	const HybKeyDesc *desc = ix->desc;
	const char *detail;
	int			column = 0;

	if (ReindexIsProcessingIndex(RelationGetRelid(ix->rel)))
		return;
	if (hyb_layout_option(ix->rel) == HYB_OPTION_TRIE &&
		kind != HYB_FILTER_NONE && kind != HYB_FILTER_AUTO &&
		!hyb_filter_fits_prefixes(ix, kind))
	{
		ereport(NOTICE,
				(errmsg("storage parameter \"filter\" has no effect on the oldest level of index \"%s\"",
						RelationGetRelationName(ix->rel)),
				 errdetail("Of the beginnings of keys there are filters for points only.")));
		return;
	}
	if (!hyb_filter_impossible(ix))
		return;
	while (column < desc->nkeys && desc->cols[column].compare == HYB_COMPARE_MEM)
		column++;
	if (!hyb_filter_has_ranges(kind))
		detail = "Equal keys may differ in their bytes.";
	else
		detail = psprintf("Keys of column \"%s\" are not ordered by their bytes.",
						  NameStr(TupleDescAttr(desc->tupdesc, column)->attname));
	ereport(NOTICE,
			(errmsg("storage parameter \"filter\" has no effect on index \"%s\"",
					RelationGetRelationName(ix->rel)),
			 errdetail_internal("%s", detail)));
}

/*
 * A NOTICE if few leaves have the filter that they are to have.  A leaf of many
 * small entries has no filter, since that would be as large as the leaf.
 */
static void
warn_of_few_filters(const HybIndex *ix, const HybBuildWritten *written)
{
	HybFilterKind kind = hyb_filter_option(ix->rel);

	if (kind == HYB_FILTER_NONE || kind == HYB_FILTER_AUTO ||
		hyb_filter_impossible(ix) || !hyb_filter_fits_prefixes(ix, kind) ||
		ReindexIsProcessingIndex(RelationGetRelid(ix->rel)) ||
		written->counts.leaf_pages <= 1 || written->counts.filtered > written->counts.leaf_pages / 2)
		return;
	ereport(NOTICE,
			(errmsg("storage parameter \"filter\" has little effect on index \"%s\"",
					RelationGetRelationName(ix->rel)),
			 errdetail("%llu of its %llu leaves have a filter, for they have %.0f entries on average, which is too many.",
					   (unsigned long long) written->counts.filtered,
					   (unsigned long long) written->counts.leaf_pages,
					   (double) written->counts.entries / written->counts.leaf_pages),
			 errhint("Leave the parameter out.")));
}

/* ---- the build ---- */

/* Only what the server does not refuse by itself. */
static void
check_chains_possible(Relation heap, const struct IndexInfo *info)
{
	if (info->ii_ExclusionOps != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" does not support exclusion constraints",
						"hybrid_hot")));
	if (heap->rd_tableam != GetHeapamTableAmRoutine())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("access method \"%s\" does not support table \"%s\"",
						"hybrid_hot", RelationGetRelationName(heap)),
				 errdetail_internal("%s", hyb_not_heap(RelationGetRelid(heap)))));
}

/* Writes internal nodes, and the tree's place into the metapage. */
static void
install_build(HybIndex *ix, const HybBuildWritten *written)
{
	HybStepSpace *space = palloc(sizeof(HybStepSpace));
	HybMetaPage *meta;
	HybLevel   *level;
	Buffer		metabuf;
	HybRoot		root;

	hyb_bulk_space_init(space, ix, 1, written->counts.filters);
	hyb_static_build(space, &written->children, written->level, &root);

	HYB_POINT("build-written");
	Assert((root.height == 0) == (written->counts.entries == 0));
	Assert((written->children.n == 0) == (written->counts.leaf_pages == 0));
	Assert(written->counts.leaf_pages <= written->counts.entries);
	Assert(written->counts.filtered <= written->counts.leaf_pages);
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	START_CRIT_SECTION();
	Assert(meta->nlevels == 1 && meta->npending == 0 && meta->next_stamp == 1);
	level = &meta->levels[0];
	level->root = root;
	level->tids = written->counts.entries;
	level->leaf_pages = written->counts.leaf_pages;
	level->inner_pages = written->counts.inner_pages + space->new_inner;
	level->filter_pages = written->counts.filter_pages;
	if (ix->desc->chains)
		meta->settled_tids = level->tids;
	meta->next_stamp = 2;
	memcpy(meta->pending, written->spare, written->nspare * sizeof(BlockNumber));
	meta->npending = written->nspare;
	MarkBufferDirty(metabuf);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
}

/* Reads the table and writes leaves, all in this process. */
static double
build_alone(HybIndex *ix, Relation heap, struct IndexInfo *info,
			HybBuildWritten *written)
{
	HybBuildScan scan;
	double		rows;

	hyb_build_scan_init(&scan, ix, heap, info);
	if (ix->desc->all_mem)
		scan.byte_sort = hyb_sort_create(maintenance_work_mem, NULL, 0);
	else
		hyb_build_scan_begin_tuplesort(&scan, maintenance_work_mem, NULL);
	if (ix->desc->chains)
		rows = hyb_build_scan_chains(&scan, NULL);
	else
		rows = table_index_build_scan(heap, ix->rel, info, true, true,
									  hyb_build_scan_add, &scan, NULL);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, scan.entries);
	hyb_build_all_leaves(&scan, written);
	return rows;
}

/*
 * Returns the number of rows.  Meanwhile functions of expressions and predicates
 * are called.  They find the index being built, and cannot use it.
 */
static double
write_entries(HybIndex *ix, Relation heap, struct IndexInfo *info,
			  HybBuildWritten *written)
{
	HybBeingBuilt built = {RelationGetRelid(ix->rel), hyb_being_built};
	volatile double rows = -1;

	hyb_being_built = &built;
	PG_TRY();
	{
		int			workers;

		create_metapage(ix, MAIN_FORKNUM, heap, info);
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HYB_PHASE_SCAN);
		workers = HYB_BUILD_WORKERS(heap, ix->rel, info);
		if (workers > 0)
			rows = hyb_build_parallel(ix, heap, info, workers, written);
		if (rows < 0)
			rows = build_alone(ix, heap, info, written);
	}
	PG_FINALLY();
	{
		hyb_being_built = built.outer;
	}
	PG_END_TRY();
	return rows;
}

IndexBuildResult *
hyb_ambuild(Relation heap, Relation index, struct IndexInfo *info)
{
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));
	HybBuildWritten written = {0};
	HybIndex   *ix;
	double		rows;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	hyb_check_column_classes(index, ERROR);
	ix = new_handle(index);
	if (ix->desc->chains)
		check_chains_possible(heap, info);
	warn_without_filter(ix);

	hyb_slots_forget(index);
	rows = write_entries(ix, heap, info, &written);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HYB_PHASE_FINISH);
	install_build(ix, &written);
	warn_of_few_filters(ix, &written);
	if (RelationNeedsWAL(index))
		log_newpage_range(index, MAIN_FORKNUM, 0,
						  RelationGetNumberOfBlocks(index), true);

	Assert(rows >= 0);
	result->heap_tuples = rows;
	result->index_tuples = written.counts.entries;
	return result;
}

void
hyb_ambuildempty(Relation index)
{
	create_metapage(new_handle(index), INIT_FORKNUM, NULL, NULL);
}

char *
hyb_ambuildphasename(int64 phase)
{
	static char *const names[] = {
		"initializing", "scanning table", "sorting entries", "writing leaves",
		"writing internal nodes"
	};

	StaticAssertStmt(HYB_PHASE_FINISH == lengthof(names), "phases count from 1 on");
	return phase >= 1 && phase <= lengthof(names) ? names[phase - 1] : NULL;
}
