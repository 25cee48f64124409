/*
 * build.c
 *		CREATE INDEX: sort all entries, then write the static stage bottom up.
 */
#include "compat.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/tableam.h"
#include "access/toast_compression.h"
#include "access/toast_internals.h"
#include "access/xloginsert.h"
#include "am/am.h"
#include "am/build.h"
#include "am/build_sort.h"
#include "am/build_dictionary.h"
#include "am/build_progress.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "commands/progress.h"
#include "key/grow.h"
#include "miscadmin.h"
#include "page/open.h"
#include "page/settings.h"
#include "page/meta.h"
#include "pgstat.h"
#include "static/filter_choice.h"
#include "static/filter_place.h"
#include "static/layouts.h"
#include "static/leaf.h"
#include "static/update.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/tuplesort.h"
#include "utils/typcache.h"

/* Leaves that say how many there will be. */
#define FIRST_CHOICE	16

typedef struct BuildState
{
	HybIndex   *ix;
	Relation	heap;
	Relation	index;
	Relation	sort_index;		/* see comparator_sort_relation */
	HybSort    *byte_sort;		/* if all_mem */
	Tuplesortstate *sort;		/* otherwise */
	bool		unique;
	bool		nulls_not_distinct;
	HybBuf		entry;
	HybBuf		sort_key;
	MemoryContext tuple_context;	/* reset for each entry */
	uint64		entries;

	/* TIDs of recently dead tuples: exempt from the uniqueness check */
	ItemPointerData *dead;
	int			ndead;
	int			dead_alloc;

	/* writing */
	HybStepSpace *space;
	HybLeafBuilder *builder;
	HybChildList leaves;
	HybFilterBuilder *filter;	/* or NULL: no filters */
	HybFilterPacker *filters;	/* of the last leaves */
	bool		choose;			/* whether there are any depends on: */
	uint64		ascending;		/* entries whose row is behind that of the
								 * entry before */
	ItemPointerData last_tid;
	uint64		done;			/* entries written */
	Size		node_size;		/* of the level-1 node that the last leaf is
								 * in */
	HybValue   *vals;
	HybBuf		previous;		/* key of the last live entry */
} BuildState;

void
hyb_check_entry_size(Relation index, Relation heap, uint32 len,
					 ItemPointer tid)
{
	if (likely(len <= HYB_MAX_ENTRY_SIZE))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
			 errmsg("index row size %u exceeds hybrid maximum %d for index \"%s\"",
					len, HYB_MAX_ENTRY_SIZE, RelationGetRelationName(index)),
			 errdetail("Index row references tuple (%u,%u) in relation \"%s\".",
					   ItemPointerGetBlockNumber(tid),
					   ItemPointerGetOffsetNumber(tid),
					   RelationGetRelationName(heap)),
			 errhint("Values larger than 1/3 of a buffer page cannot be indexed.\n"
					 "Consider a function index of an MD5 hash of the value, "
					 "or use full text indexing."),
			 errtableconstraint(heap, RelationGetRelationName(index))));
}

/*
 * The server's tuplesort sorts index tuples with comparison functions only
 * for relations that say they are a btree.  Our operator classes number their
 * ordering and sort support functions as btree does, so a copy of the
 * relation's descriptor that claims so is all it takes.
 */
static Relation
comparator_sort_relation(Relation index)
{
	Relation	copy = palloc(sizeof(RelationData));
	Form_pg_class form = palloc(sizeof(FormData_pg_class));

	memcpy(copy, index, sizeof(RelationData));
	memcpy(form, index->rd_rel, sizeof(FormData_pg_class));
	form->relam = BTREE_AM_OID;
	copy->rd_rel = form;
	return copy;
}

/*
 * The tuples that are sorted have at most 8191 bytes, so the server compresses
 * long values in them as in btree's, where their column's storage allows it.
 * What an entry has room for must be sorted whatever that is: these values are
 * compressed here.
 */
static void
compress_for_sort(const HybKeyDesc *desc, const bool *isnull, Datum *values)
{
	for (int i = 0; i < desc->natts; i++)
	{
		char		storage = TupleDescAttr(desc->tupdesc, i)->attstorage;
		Oid			typid = desc->cols[i].typid;
		Datum		shorter;

		if (desc->cols[i].attlen != -1 || isnull[i] ||
			storage == TYPSTORAGE_EXTENDED || storage == TYPSTORAGE_MAIN ||
			toast_raw_datum_size(values[i]) <= TOAST_INDEX_TARGET ||
			lookup_type_cache(typid, 0)->typstorage == TYPSTORAGE_PLAIN)
			continue;
		values[i] = PointerGetDatum(PG_DETOAST_DATUM(values[i]));
		shorter = toast_compress_datum(values[i], TOAST_PGLZ_COMPRESSION);
		if (DatumGetPointer(shorter) != NULL)
			values[i] = shorter;
	}
}

static void
build_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			   bool alive, void *arg)
{
	BuildState *state = arg;
	HybIndex   *ix = state->ix;
	uint32		keylen;
	MemoryContext old = MemoryContextSwitchTo(state->tuple_context);

	hyb_key_encode(ix->desc, values, isnull, &state->entry, &keylen);
	hyb_check_entry_size(index, state->heap, state->entry.len, tid);

	if (ix->desc->all_mem)
	{
		/*
		 * Key, TID and INCLUDE columns as one byte string: keys are prefix
		 * free, so memcmp orders by (key, TID).
		 */
		BlockNumber block = ItemPointerGetBlockNumber(tid);
		OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
		uint8		tid_bytes[6] = {block >> 24, block >> 16, block >> 8, block,
		offset >> 8, offset};
		HybBuf	   *buf = &state->sort_key;

		buf->len = 0;
		hyb_buf_append(buf, state->entry.data, keylen);
		hyb_buf_append(buf, tid_bytes, sizeof(tid_bytes));
		hyb_buf_append(buf, state->entry.data + keylen,
					   state->entry.len - keylen);
		hyb_sort_put(state->byte_sort, buf->data, buf->len);
	}
	else
	{
		compress_for_sort(ix->desc, isnull, values);
		tuplesort_putindextuplevalues(state->sort, state->sort_index, tid,
									  values, isnull);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(state->tuple_context);

	if (!alive && state->unique)
	{
		if (state->ndead == state->dead_alloc)
		{
			state->dead_alloc = Max(64, state->dead_alloc * 2);
			state->dead = hyb_grow(CurrentMemoryContext, state->dead,
								   state->dead_alloc, sizeof(ItemPointerData));
		}
		state->dead[state->ndead++] = *tid;
	}
	state->entries++;
}

static int
compare_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

/*
 * Raise an error if a live entry has the key of the live entry before it.
 */
static void
check_unique(BuildState *state, const uint8 *entry, uint32 len, uint32 keylen,
			 ItemPointer tid)
{
	const HybKeyDesc *desc = state->ix->desc;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	char	   *key_desc;

	if (hyb_key_split(desc, entry, len, desc->nkeys, state->vals) == 0)
		elog(ERROR, "malformed entry in index build");
	if (!state->nulls_not_distinct)
		for (int i = 0; i < desc->nkeys; i++)
			if (state->vals[i].isnull)
				return;
	if (state->ndead > 0 &&
		bsearch(tid, state->dead, state->ndead, sizeof(ItemPointerData),
				compare_tids) != NULL)
		return;

	if (state->previous.len == 0 ||
		hyb_key_compare(desc, state->previous.data, state->previous.len,
						entry, keylen) != 0)
	{
		state->previous.len = 0;
		hyb_buf_append(&state->previous, entry, keylen);
		return;
	}

	for (int i = 0; i < desc->nkeys; i++)
	{
		isnull[i] = state->vals[i].isnull;
		values[i] = isnull[i] ? (Datum) 0 :
			hyb_value_decode(&desc->cols[i], &state->vals[i]);
	}
	key_desc = BuildIndexValueDescription(state->index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(state->index)),
			 key_desc ? errdetail("Key %s is duplicated.", key_desc) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(state->heap,
								RelationGetRelationName(state->index))));
}

/* From now on leaves get filters; the builder is NULL if they do not. */
static void
begin_filters(BuildState *state, HybFilterKind kind)
{
	state->filter = hyb_filter_builder_create(state->ix, kind);
	if (state->filter == NULL)
		return;
	state->space->filters = true;
	state->filters = palloc(sizeof(HybFilterPacker));
	hyb_filter_packer_init(state->filters, state->space, &state->leaves);
}

/*
 * Whether filters pay is looked at again whenever there are twice as many
 * leaves, as it depends on how many there will be.  The leaves before have
 * none then.
 */
static void
choose_filters(BuildState *state)
{
	MemoryContext old;
	int			n = state->leaves.n;

	if (n < FIRST_CHOICE || (n & (n - 1)) != 0)
		return;
	old = MemoryContextSwitchTo(GetMemoryChunkContext(state->space));
	begin_filters(state,
				  hyb_filter_kind_for_build(state->ix,
											(double) n / state->done * state->entries,
											(double) state->ascending / state->done));
	MemoryContextSwitchTo(old);
}

/*
 * Build the filter of the leaf that was added to the list last.  Filter pages
 * end where level-1 nodes do, which are packed full here (static/update.c).
 */
static void
add_filter(BuildState *state, const char *page)
{
	int			last = state->leaves.n - 1;
	HybChild   *leaf = &state->leaves.children[last];
	Size		size = hyb_inner_child_size(leaf, true);

	if (state->node_size + size > HYB_PAGE_CAPACITY)
	{
		if (state->filter != NULL)
			hyb_filter_pack_write(state->filters);
		state->node_size = 0;
	}
	state->node_size += size;
	if (state->filter == NULL)
		return;
	leaf->filter_image = hyb_filter_build(state->filter, page,
										  &leaf->filter_size);
	if (leaf->filter_image != NULL)
		hyb_filter_pack(state->filters, last);
}

static void
emit_leaf(void *arg, Page page, const HybPos *low)
{
	BuildState *state = arg;
	HybChild   *child = hyb_child_list_add_leaf(&state->leaves, page, low);

	child->block = hyb_step_write(state->space, (const char *) page);
	if (state->filter == NULL && state->choose)
		choose_filters(state);
	if (state->filter != NULL || state->choose)
		add_filter(state, (const char *) page);
}

static void
add_sorted(BuildState *state, const uint8 *entry, uint32 len, uint32 keylen,
		   ItemPointer tid)
{
	const HybKeyDesc *desc = state->ix->desc;

	if (state->unique)
		check_unique(state, entry, len, keylen, tid);
	if (hyb_key_split(desc, entry, len, desc->natts, state->vals) != len)
		elog(ERROR, "malformed entry in index build");
	if (state->choose)
	{
		state->ascending += ItemPointerCompare(tid, &state->last_tid) > 0;
		state->last_tid = *tid;
	}
	hyb_leaf_builder_add(state->builder, state->vals, tid);
	if ((++state->done & 0x3FFF) == 0)
	{
		CHECK_FOR_INTERRUPTS();
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, state->done);
	}
}

/*
 * Read the sorted entries and feed them to the leaf builder.
 */
static void
write_leaves(BuildState *state)
{
	const HybKeyDesc *desc = state->ix->desc;
	MemoryContext old = CurrentMemoryContext;

	if (desc->all_mem)
	{
		const uint8 *data;
		uint32		len;

		while (hyb_sort_get(state->byte_sort, &data, &len))
		{
			uint32		keylen = hyb_key_length(desc, data, len);
			const uint8 *t = data + keylen;
			ItemPointerData tid;
			const uint8 *entry = data;

			ItemPointerSet(&tid,
						   ((BlockNumber) t[0] << 24) | ((BlockNumber) t[1] << 16) |
						   ((BlockNumber) t[2] << 8) | t[3],
						   (OffsetNumber) ((t[4] << 8) | t[5]));
			if (desc->natts > desc->nkeys)
			{
				state->entry.len = 0;
				hyb_buf_append(&state->entry, data, keylen);
				hyb_buf_append(&state->entry, t + 6, len - keylen - 6);
				entry = state->entry.data;
			}
			add_sorted(state, entry, len - 6, keylen, &tid);
		}
	}
	else
	{
		IndexTuple	itup;
		TupleDesc	tupdesc = RelationGetDescr(state->index);
		Datum		values[INDEX_MAX_KEYS];
		bool		isnull[INDEX_MAX_KEYS];

		while ((itup = tuplesort_getindextuple(state->sort, true)) != NULL)
		{
			uint32		keylen;

			MemoryContextSwitchTo(state->tuple_context);
			index_deform_tuple(itup, tupdesc, values, isnull);
			hyb_key_encode(desc, values, isnull, &state->entry, &keylen);
			MemoryContextSwitchTo(old);
			add_sorted(state, state->entry.data, state->entry.len, keylen,
					   &itup->t_tid);
			MemoryContextReset(state->tuple_context);
		}
	}
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, state->done);
	hyb_leaf_builder_finish(state->builder);
	/* a leaf that is the root has no parent to point to its filter */
	if (state->filter != NULL && state->leaves.n > 1)
		hyb_filter_pack_write(state->filters);
}

/*
 * Create the metapage of an empty index, and the dictionary pages if it needs
 * any.
 */
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
		hyb_build_dictionary(ix, heap, info);

	LockBuffer(buf, BUFFER_LOCK_EXCLUSIVE);
	START_CRIT_SECTION();
	hyb_page_meta(BufferGetPage(buf))->dictionary = dictionary;
	if (ix->desc->has_encoded && !BlockNumberIsValid(dictionary))
		hyb_page_meta(BufferGetPage(buf))->flags |= HYB_META_PLAIN;
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
	return ix;
}

/*
 * A filter that the index is to have and cannot.  Said when the index is
 * created, not whenever it is rebuilt.
 */
static void
warn_without_filter(const HybIndex *ix)
{
	bool		surf = hyb_filter_option(ix->rel) == HYB_FILTER_SURF;

	if (!hyb_filter_impossible(ix) ||
		ReindexIsProcessingIndex(RelationGetRelid(ix->rel)))
		return;
	if (!surf)
		ereport(NOTICE,
				(errmsg("storage parameter \"filter\" has no effect on index \"%s\"",
						RelationGetRelationName(ix->rel)),
				 errdetail("Equal keys may differ in their bytes.")));
	for (int i = 0; i < ix->desc->nkeys && surf; i++)
		if (ix->desc->cols[i].compare != HYB_COMPARE_MEM)
		{
			ereport(NOTICE,
					(errmsg("storage parameter \"filter\" has no effect on index \"%s\"",
							RelationGetRelationName(ix->rel)),
					 errdetail("Keys of column \"%s\" are not ordered by their bytes.",
							   NameStr(TupleDescAttr(RelationGetDescr(ix->rel), i)->attname))));
			break;
		}
}

static void
init_state(BuildState *state, Relation heap, Relation index,
		   const struct IndexInfo *info)
{
	memset(state, 0, sizeof(*state));
	state->heap = heap;
	state->index = index;
	state->ix = new_handle(index);
	state->unique = info->ii_Unique;
	state->nulls_not_distinct = info->ii_NullsNotDistinct;
	state->vals = palloc(state->ix->desc->natts * sizeof(HybValue));
	state->tuple_context = AllocSetContextCreate(CurrentMemoryContext,
												 "hybrid build tuple",
												 ALLOCSET_DEFAULT_SIZES);

	/* buffers that outlive tuple_context */
	hyb_buf_reserve(&state->entry, HYB_MAX_ENTRY_SIZE);
	hyb_buf_reserve(&state->sort_key, HYB_MAX_ENTRY_SIZE);
}

static void
begin_sort(BuildState *state)
{
	if (state->ix->desc->all_mem)
		state->byte_sort = hyb_sort_create(maintenance_work_mem);
	else
	{
		state->sort_index = comparator_sort_relation(state->index);
		state->sort = tuplesort_begin_index_btree(state->heap,
												  state->sort_index, false,
												  false, maintenance_work_mem,
												  NULL, TUPLESORT_NONE);
	}
}

static void
begin_leaves(BuildState *state)
{
	state->space = palloc(sizeof(HybStepSpace));
	hyb_bulk_space_init(state->space, state->ix, 1, false);
	state->builder = hyb_leaf_builder_create(state->ix,
											 hyb_leaf_layout_for(state->ix), 1,
											 emit_leaf, state);
	state->choose = hyb_filter_is_chosen(state->ix);
	ItemPointerSet(&state->last_tid, 0, FirstOffsetNumber);
	if (!state->choose)
		begin_filters(state, hyb_filter_kind_of_level(state->ix, 0, 1));
}

/*
 * Write internal nodes, and the tree's place into the metapage.
 */
static void
install(BuildState *state)
{
	HybPath    *path = palloc0(sizeof(HybPath));
	HybMetaPage *meta;
	HybLevel   *level;
	Buffer		metabuf;
	HybRoot		root;

	path->high.tie = HYB_AFTER;
	hyb_static_replace(state->space, path, &state->leaves, &root);

	HYB_POINT("build-written");
	metabuf = hyb_meta_lock(state->ix, BUFFER_LOCK_EXCLUSIVE, &meta);
	START_CRIT_SECTION();
	level = &meta->levels[0];
	level->root = root;
	level->tids = state->entries;
	level->leaf_pages = state->leaves.n;
	level->inner_pages = state->space->new_inner;
	level->filter_pages = state->space->new_filter;
	meta->next_stamp = 2;
	MarkBufferDirty(metabuf);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
}

IndexBuildResult *
hyb_ambuild(Relation heap, Relation index, struct IndexInfo *info)
{
	IndexBuildResult *result = palloc(sizeof(IndexBuildResult));
	BuildState	state;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));
	hyb_check_column_classes(index, ERROR);
	init_state(&state, heap, index, info);
	warn_without_filter(state.ix);

	hyb_dynamic_forget(index);
	create_metapage(state.ix, MAIN_FORKNUM, heap, info);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HYB_PHASE_SCAN);
	begin_sort(&state);
	result->heap_tuples = table_index_build_scan(heap, index, info, true, true,
												 build_callback, &state, NULL);
	result->index_tuples = state.entries;
	if (state.ndead > 0)
		qsort(state.dead, state.ndead, sizeof(ItemPointerData), compare_tids);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL, state.entries);
	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HYB_PHASE_SORT);
	if (state.byte_sort != NULL)
		hyb_sort_perform(state.byte_sort);
	else
		tuplesort_performsort(state.sort);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HYB_PHASE_WRITE);
	begin_leaves(&state);
	write_leaves(&state);
	if (state.byte_sort != NULL)
		hyb_sort_end(state.byte_sort);
	else
		tuplesort_end(state.sort);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HYB_PHASE_FINISH);
	install(&state);
	if (RelationNeedsWAL(index))
		log_newpage_range(index, MAIN_FORKNUM, 0,
						  RelationGetNumberOfBlocks(index), true);

	MemoryContextDelete(state.tuple_context);
	return result;
}

void
hyb_ambuildempty(Relation index)
{
	create_metapage(new_handle(index), INIT_FORKNUM, NULL, NULL);
}
