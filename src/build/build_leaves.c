/*
 * build_leaves.c
 *		The entries of an index build, from the table to the sort and to leaves.
 *
 * If all key columns are ordered by memcmp, entries are sorted as byte strings
 * (build_sort.c).  Otherwise the server's tuplesort sorts index tuples with the
 * comparison functions, and entries are made of the sorted tuples.  Duplicates of
 * a unique index meet when leaves are written.
 */
#include "base/compat.h"

#include "access/detoast.h"
#include "access/genam.h"
#include "access/heaptoast.h"
#include "access/toast_compression.h"
#include "access/toast_internals.h"
#include "base/memory.h"
#include "base/server.h"
#include "build/build_internal.h"
#include "catalog/pg_type.h"
#include "filter/filter_choice.h"
#include "insert/insertion.h"
#include "leaf/leaf.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "tree/update.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/typcache.h"

/* Leaves from which the number of all leaves is guessed. */
#define FIRST_CHOICE	16

/* Entries between two reports of progress, less one. */
#define REPORT_MASK		0x3FFF

/* ---- from the table to the sort ---- */

/*
 * Tuples to be sorted have at most 8191 bytes.  Any entry that fits the index has to
 * be sorted, and a new one is let in by the size that pglz gives its long values
 * (hyb_check_entry_size).  So we compress these by pglz, whatever their column says.
 */
static void
compress_for_sort(const HybKeyDesc *desc, const bool *isnull, Datum *values)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Oid			typid = desc->cols[i].typid;
		Datum		shorter;

		if (desc->cols[i].attlen != -1 || isnull[i] ||
			toast_raw_datum_size(values[i]) <= TOAST_INDEX_TARGET ||
			lookup_type_cache(typid, 0)->typstorage == TYPSTORAGE_PLAIN)
			continue;
		values[i] = PointerGetDatum(PG_DETOAST_DATUM(values[i]));
		shorter = toast_compress_datum(values[i], TOAST_PGLZ_COMPRESSION);
		if (DatumGetPointer(shorter) != NULL)
			values[i] = shorter;
	}
}

void
hyb_build_scan_init(HybBuildScan *scan, HybIndex *ix, Relation heap,
					const struct IndexInfo *info)
{
	memset(scan, 0, sizeof(*scan));
	scan->ix = ix;
	scan->heap = heap;
	scan->info = info;
	scan->tuple_context = AllocSetContextCreate(CurrentMemoryContext,
												"hybrid build tuple",
												ALLOCSET_DEFAULT_SIZES);

	/* buffers that outlive tuple_context */
	hyb_buf_reserve(&scan->entry, HYB_MAX_ENTRY_SIZE);
	hyb_buf_reserve(&scan->sort_key, HYB_MAX_ENTRY_SIZE);
}

void
hyb_build_scan_begin_tuplesort(HybBuildScan *scan, int kilobytes,
							   SortCoordinate coordinate)
{

	/*
	 * The server's tuplesort sorts index tuples with comparison functions
	 * only for a btree.  Our operator classes number theirs as btree does.
	 */
	scan->sort_index = hyb_as_btree(scan->ix->rel);
	scan->sort = tuplesort_begin_index_btree(scan->heap, scan->sort_index, false,
											 false, kilobytes, coordinate,
											 TUPLESORT_NONE);
}

/* Puts an entry in the form of HYB_SORTED_TID_BYTES. */
static void
put_bytes(HybBuildScan *scan, uint32 keylen, ItemPointer tid, bool alive)
{
	BlockNumber block = ItemPointerGetBlockNumber(tid);
	OffsetNumber offset = ItemPointerGetOffsetNumber(tid);
	uint8		tid_bytes[HYB_SORTED_TID_BYTES] = {block >> 24, block >> 16,
	block >> 8, block, offset >> 8, offset};
	HybBuf	   *buf = &scan->sort_key;

	Assert(keylen > 0 && keylen <= scan->entry.len);
	Assert(scan->entry.len <= HYB_MAX_ENTRY_SIZE);
	buf->len = 0;
	hyb_buf_append(buf, scan->entry.data, keylen);
	hyb_buf_append(buf, tid_bytes, sizeof(tid_bytes));
	hyb_buf_append(buf, scan->entry.data + keylen, scan->entry.len - keylen);
	if (!alive && scan->info->ii_Unique)
		hyb_buf_append(buf, "", 1);
	hyb_sort_put(scan->byte_sort, buf->data, buf->len);
}

void
hyb_build_scan_note_dead(HybBuildScan *scan, const ItemPointerData *tid)
{
	Assert(scan->info->ii_Unique && ItemPointerIsValid(unconstify(ItemPointerData *, tid)));
	if (scan->ndead == scan->dead_alloc)
	{
		scan->dead_alloc = Max(64, scan->dead_alloc * 2);
		scan->dead = hyb_grow(CurrentMemoryContext, scan->dead,
							  scan->dead_alloc, sizeof(ItemPointerData));
	}
	scan->dead[scan->ndead++] = *tid;
}

void
hyb_build_scan_add(Relation index, ItemPointer tid, Datum *values, bool *isnull,
				   bool alive, void *arg)
{
	HybBuildScan *scan = arg;
	HybIndex   *ix = scan->ix;
	uint32		keylen;
	MemoryContext old = MemoryContextSwitchTo(scan->tuple_context);

	hyb_key_encode(ix->desc, values, isnull, &scan->entry, &keylen);
	hyb_check_entry_size(ix, scan->heap, values, isnull, scan->entry.len, tid);
	Assert((scan->byte_sort != NULL) == ix->desc->all_mem);
	Assert((scan->sort != NULL) != ix->desc->all_mem);
	if (ix->desc->all_mem)
		put_bytes(scan, keylen, tid, alive);
	else
	{
		compress_for_sort(ix->desc, isnull, values);
		tuplesort_putindextuplevalues(scan->sort, scan->sort_index, tid,
									  values, isnull);
	}
	MemoryContextSwitchTo(old);
	MemoryContextReset(scan->tuple_context);

	if (!alive && scan->info->ii_Unique && !ix->desc->all_mem)
		hyb_build_scan_note_dead(scan, tid);
	scan->entries++;
}

/* ---- from the sort to leaves ---- */

/*
 * Raises an error if a live entry has the key of the live entry before it.  Its
 * columns are in leaves->vals.
 */
static void
check_unique(HybBuildLeaves *leaves, const uint8 *entry, uint32 keylen)
{
	const HybKeyDesc *desc = leaves->ix->desc;
	Relation	index = leaves->ix->rel;
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	char	   *key_desc;

	if (!leaves->info->ii_NullsNotDistinct)
		for (int i = 0; i < desc->nkeys; i++)
			if (leaves->vals[i].isnull)
				return;

	if (leaves->previous.len == 0 ||
		hyb_key_compare(desc, leaves->previous.data, leaves->previous.len,
						entry, keylen) != 0)
	{
		leaves->previous.len = 0;
		hyb_buf_append(&leaves->previous, entry, keylen);
		return;
	}

	for (int i = 0; i < desc->nkeys; i++)
	{
		isnull[i] = leaves->vals[i].isnull;
		values[i] = isnull[i] ? (Datum) 0 :
			hyb_value_decode(&desc->cols[i], &leaves->vals[i]);
	}
	key_desc = BuildIndexValueDescription(index, values, isnull);
	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("could not create unique index \"%s\"",
					RelationGetRelationName(index)),
			 key_desc ? errdetail("Key %s is duplicated.", key_desc) :
			 errdetail("Duplicate keys exist."),
			 errtableconstraint(leaves->heap, RelationGetRelationName(index))));
}

/* From now on leaves get filters of this kind, if any. */
static void
begin_filters(HybBuildLeaves *leaves, HybFilterKind kind)
{
	leaves->filter = hyb_filter_builder_create(leaves->ix, kind);
	if (leaves->filter == NULL)
		return;
	leaves->space->filters = true;
	leaves->filters = palloc(sizeof(HybFilterPacker));
	hyb_filter_packer_init(leaves->filters, leaves->space, &leaves->leaves);
}

/*
 * Whether filters pay depends on how many leaves there will be, so that is guessed
 * again each time that their number has doubled.  Leaves before have no filter.
 */
static void
choose_filters(HybBuildLeaves *leaves)
{
	MemoryContext old;
	int			n = leaves->leaves.n;

	if (n < FIRST_CHOICE || (n & (n - 1)) != 0)
		return;
	old = MemoryContextSwitchTo(GetMemoryChunkContext(leaves->builder));
	begin_filters(leaves,
				  hyb_filter_kind_for_build(leaves->ix,
											(double) n / leaves->done * leaves->entries,
											(double) leaves->ascending / leaves->done));
	MemoryContextSwitchTo(old);
}

/*
 * Builds the filter of the leaf that was added to the list last.  Filter pages end
 * where level-1 nodes do, which a build packs full (tree/update.c).
 */
static void
add_filter(HybBuildLeaves *leaves, const char *page)
{
	int			last = leaves->leaves.n - 1;
	HybChild   *leaf = &leaves->leaves.children[last];
	Size		size = hyb_inner_child_size(leaf, true);

	if (leaves->node_size + size > HYB_PAGE_CAPACITY)
	{
		if (leaves->filter != NULL)
			hyb_filter_pack_write(leaves->filters);
		leaves->node_size = 0;
	}
	leaves->node_size += size;
	Assert(leaves->node_size <= HYB_PAGE_CAPACITY);
	if (leaves->filter == NULL)
		return;
	leaf->filter_image = hyb_filter_build(leaves->filter, page,
										  &leaf->filter_size);
	if (leaf->filter_image != NULL)
		hyb_filter_pack(leaves->filters, last);
}

static void
write_built_leaf(void *arg, Page page, const HybPos *low)
{
	HybBuildLeaves *leaves = arg;
	HybChild   *child = hyb_child_list_add_leaf(&leaves->leaves, page, low);

	child->block = hyb_step_write(leaves->space, (const char *) page);
	Assert(BlockNumberIsValid(child->block) && child->block != HYB_METAPAGE_BLKNO);
	if (leaves->filter == NULL && leaves->choose)
		choose_filters(leaves);
	if (leaves->filter != NULL || leaves->choose)
		add_filter(leaves, (const char *) page);
}

static void
report_progress(HybBuildLeaves *leaves)
{
	uint64		done = leaves->done;

	CHECK_FOR_INTERRUPTS();
	if (leaves->all_done != NULL)
	{
		uint64		more = leaves->done - leaves->told;

		Assert(leaves->told <= leaves->done);
		done = pg_atomic_fetch_add_u64(leaves->all_done, more) + more;
		leaves->told = leaves->done;
	}
	if (leaves->report)
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE, done);
}

/* Adds the next entry, whose columns are in leaves->vals. */
static inline void
add_built_entry(HybBuildLeaves *leaves, ItemPointer tid)
{
	if (leaves->choose)
	{
		leaves->ascending += ItemPointerCompare(tid, &leaves->last_tid) > 0;
		leaves->last_tid = *tid;
	}
	hyb_leaf_builder_add(leaves->builder, leaves->vals, tid);
	if ((++leaves->done & REPORT_MASK) == 0)
		report_progress(leaves);
}

/*
 * Adds an entry in the form of HYB_SORTED_TID_BYTES.  Columns say where they end, so
 * those of the key can be split with the TID behind them.
 */
static inline void
add_sorted_entry(HybBuildLeaves *leaves, const uint8 *data, uint32 len)
{
	const HybKeyDesc *desc = leaves->ix->desc;
	uint32		rest = len - HYB_SORTED_TID_BYTES;
	uint32		keylen;
	uint32		used;
	ItemPointerData tid;

	Assert(desc->all_mem && len > HYB_SORTED_TID_BYTES);
	if (desc->natts == desc->nkeys)
		used = keylen = hyb_key_split(desc, data, rest, desc->natts,
									  leaves->vals);
	else
	{
		keylen = hyb_key_length(desc, data, rest);
		leaves->entry.len = 0;
		hyb_buf_append(&leaves->entry, data, keylen);
		hyb_buf_append(&leaves->entry, data + keylen + HYB_SORTED_TID_BYTES,
					   rest - keylen);
		used = hyb_key_split(desc, leaves->entry.data, rest, desc->natts,
							 leaves->vals);
	}
	if (keylen == 0 ||
		(used != rest && !(leaves->info->ii_Unique && used + 1 == rest)))
		elog(ERROR, "malformed entry in index build");
	tid = hyb_sorted_tid(data + keylen);
	Assert(ItemPointerIsValid(&tid) && len <= HYB_MAX_ENTRY_SIZE + HYB_SORTED_TID_BYTES + 1);
	if (leaves->info->ii_Unique && used == rest)
		check_unique(leaves, data, keylen);
	add_built_entry(leaves, &tid);
}

static int
compare_heap_tids(const void *a, const void *b)
{
	return ItemPointerCompare((ItemPointer) a, (ItemPointer) b);
}

static void
add_sorted_tuple(HybBuildLeaves *leaves, HybBuildScan *scan, IndexTuple itup)
{
	const HybKeyDesc *desc = leaves->ix->desc;
	MemoryContext old = MemoryContextSwitchTo(scan->tuple_context);
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];
	uint32		keylen;

	index_deform_tuple(itup, RelationGetDescr(leaves->ix->rel), values, isnull);
	hyb_key_check_order(desc, values, isnull);
	hyb_key_encode(desc, values, isnull, &scan->entry, &keylen);
	MemoryContextSwitchTo(old);
	if (hyb_key_split(desc, scan->entry.data, scan->entry.len, desc->natts,
					  leaves->vals) != scan->entry.len)
		elog(ERROR, "malformed entry in index build");
	if (leaves->info->ii_Unique &&
		(scan->ndead == 0 ||
		 bsearch(&itup->t_tid, scan->dead, scan->ndead,
				 sizeof(ItemPointerData), compare_heap_tids) == NULL))
		check_unique(leaves, scan->entry.data, keylen);
	add_built_entry(leaves, &itup->t_tid);
	MemoryContextReset(scan->tuple_context);
}

void
hyb_build_leaves_begin(HybBuildLeaves *leaves)
{
	leaves->vals = palloc(leaves->ix->desc->natts * sizeof(HybValue));
	leaves->builder = hyb_leaf_builder_create(leaves->ix,
											  hyb_leaf_layout_for(leaves->ix, 0),
											  1, write_built_leaf, leaves);
	hyb_leaf_builder_expect(leaves->builder, leaves->entries,
							RelationGetNumberOfBlocks(leaves->heap) > (BlockNumber) NBuffers);
	if (leaves->low != NULL)
	{
		hyb_leaf_builder_start(leaves->builder, leaves->low);
		hyb_leaf_builder_after(leaves->builder, leaves->low);
	}
	if (leaves->high != NULL)
		hyb_leaf_builder_before(leaves->builder, leaves->high);
	Assert(leaves->done == 0 && leaves->leaves.n == 0);
	leaves->choose = hyb_filter_is_chosen(leaves->ix);
	ItemPointerSet(&leaves->last_tid, 0, FirstOffsetNumber);
	if (!leaves->choose)
		begin_filters(leaves, hyb_filter_kind_of_level(leaves->ix, 0, 1));
}

void
hyb_build_leaves_from_merge(HybBuildLeaves *leaves, HybFileMerge *merge)
{
	const uint8 *data;
	uint32		len;

	while (hyb_file_merge_get(merge, &data, &len))
		add_sorted_entry(leaves, data, len);
}

static void
add_all_of_scan(HybBuildLeaves *leaves, HybBuildScan *scan)
{
	IndexTuple	itup;
	const uint8 *data;
	uint32		len;

	if (scan->byte_sort != NULL)
	{
		while (hyb_sort_get(scan->byte_sort, &data, &len))
			add_sorted_entry(leaves, data, len);
		return;
	}
	if (scan->ndead > 0)
		qsort(scan->dead, scan->ndead, sizeof(ItemPointerData), compare_heap_tids);
	while ((itup = tuplesort_getindextuple(scan->sort, true)) != NULL)
		add_sorted_tuple(leaves, scan, itup);
}

void
hyb_build_leaves_finish(HybBuildLeaves *leaves)
{
	report_progress(leaves);
	hyb_leaf_builder_finish(leaves->builder);
	/* a leaf that is the root has no parent to point to its filter */
	if (leaves->filter != NULL &&
		(leaves->leaves.n > 1 || leaves->is_range))
		hyb_filter_pack_write(leaves->filters);
}

void
hyb_build_all_leaves(HybBuildScan *scan, HybBuildWritten *written)
{
	HybBuildLeaves leaves = {0};
	HybStepSpace *space = palloc(sizeof(HybStepSpace));

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HYB_PHASE_SORT);
	if (scan->byte_sort != NULL)
		hyb_sort_perform(scan->byte_sort);
	else
		tuplesort_performsort(scan->sort);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, HYB_PHASE_WRITE);
	hyb_bulk_space_init(space, scan->ix, 1, false);
	leaves.ix = scan->ix;
	leaves.heap = scan->heap;
	leaves.info = scan->info;
	leaves.entries = scan->entries;
	leaves.space = space;
	leaves.report = true;
	hyb_build_leaves_begin(&leaves);
	add_all_of_scan(&leaves, scan);
	hyb_build_leaves_finish(&leaves);
	if (scan->byte_sort != NULL)
		hyb_sort_end(scan->byte_sort);
	else
		tuplesort_end(scan->sort);
	MemoryContextDelete(scan->tuple_context);

	Assert(leaves.done == scan->entries);	/* each entry is in one leaf */
	written->children = leaves.leaves;
	written->level = 1;
	written->counts.entries = scan->entries;
	hyb_build_count(&written->counts, space, leaves.leaves.n);
}
