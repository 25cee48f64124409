/*
 * build_scan.c
 *		The entries of an index build, from the table to the sort.
 */
#include "base/compat.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/toast_compression.h"
#include "access/toast_internals.h"
#include "base/memory.h"
#include "build/build_scan.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "insert/entry_size.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/typcache.h"

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

void
hyb_build_scan_init(HybBuildScan *scan, HybIndex *ix, Relation heap,
					const struct IndexInfo *info)
{
	memset(scan, 0, sizeof(*scan));
	scan->ix = ix;
	scan->heap = heap;
	scan->unique = info->ii_Unique;
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
	scan->sort_index = comparator_sort_relation(scan->ix->rel);
	scan->sort = tuplesort_begin_index_btree(scan->heap, scan->sort_index, false,
											 false, kilobytes, coordinate,
											 TUPLESORT_NONE);
}

/* See build_scan.h. */
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
	if (!alive && scan->unique)
		hyb_buf_append(buf, "", 1);
	hyb_sort_put(scan->byte_sort, buf->data, buf->len);
}

void
hyb_build_scan_note_dead(HybBuildScan *scan, const ItemPointerData *tid)
{
	Assert(scan->unique && ItemPointerIsValid(unconstify(ItemPointerData *, tid)));
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

	if (!alive && scan->unique && !ix->desc->all_mem)
		hyb_build_scan_note_dead(scan, tid);
	scan->entries++;
}
