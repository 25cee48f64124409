/*
 * build_scan.h
 *		The entries of an index build, from the table to the sort.
 */
#ifndef HYB_BUILD_SCAN_H
#define HYB_BUILD_SCAN_H

#include "build/build_sort.h"
#include "nodes/execnodes.h"
#include "store/page.h"
#include "utils/tuplesort.h"

/* What one process reads of the table. */
typedef struct HybBuildScan
{
	HybIndex   *ix;
	Relation	heap;
	Relation	sort_index;		/* see comparator_sort_relation */
	HybSort    *byte_sort;		/* if all_mem */
	Tuplesortstate *sort;		/* otherwise */
	bool		unique;
	HybBuf		entry;
	HybBuf		sort_key;
	MemoryContext tuple_context;	/* reset for each entry */
	uint64		entries;

	/*
	 * TIDs of recently dead tuples, which are exempt from the uniqueness
	 * check; of an all_mem index the sort keeps that.
	 */
	ItemPointerData *dead;
	int			ndead;
	int			dead_alloc;
} HybBuildScan;

extern void hyb_build_scan_init(HybBuildScan *scan, HybIndex *ix, Relation heap,
								const struct IndexInfo *info);

/* A sort with so much memory; `coordinate` is NULL but in a parallel build. */
extern void hyb_build_scan_begin_tuplesort(HybBuildScan *scan, int kilobytes,
										   SortCoordinate coordinate);

/* For table_index_build_scan; its argument is the HybBuildScan. */
extern void hyb_build_scan_add(Relation index, ItemPointer tid, Datum *values,
							   bool *isnull, bool alive, void *arg);

/* The row with this TID, which was added, is dead: hyb_build_scan_add says so. */
extern void hyb_build_scan_note_dead(HybBuildScan *scan,
									 const ItemPointerData *tid);

/*
 * An entry of the sort of an all_mem index:
 *
 *		key columns, TID (6 bytes, in the order of TIDs), INCLUDE columns
 *
 * and a byte more where the row is dead and the index unique.  Keys are prefix
 * free, so memcmp orders by (key, TID).
 */
#define HYB_SORTED_TID_BYTES	6

static inline ItemPointerData
hyb_sorted_tid(const uint8 *t)
{
	ItemPointerData tid;

	ItemPointerSet(&tid,
				   ((BlockNumber) t[0] << 24) | ((BlockNumber) t[1] << 16) |
				   ((BlockNumber) t[2] << 8) | t[3],
				   (OffsetNumber) ((t[4] << 8) | t[5]));
	return tid;
}

#endif							/* HYB_BUILD_SCAN_H */
