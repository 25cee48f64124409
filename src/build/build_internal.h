/*
 * build_internal.h
 *		What the files of this folder share.
 */
#ifndef HYB_BUILD_INTERNAL_H
#define HYB_BUILD_INTERNAL_H

#include "algo/bits.h"
#include "commands/progress.h"
#include "filter/filter_place.h"
#include "leaf/leaf.h"
#include "nodes/execnodes.h"
#include "port/atomics.h"
#include "storage/buffile.h"
#include "storage/sharedfileset.h"
#include "utils/tuplesort.h"

/*
 * Phases for pg_stat_progress_create_index: values of PROGRESS_CREATEIDX_SUBPHASE.
 * The server itself reports the first, PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE.
 */
#define HYB_PHASE_SCAN			2	/* reading the table */
#define HYB_PHASE_SORT			3	/* sorting entries */
#define HYB_PHASE_WRITE			4	/* building and writing leaves */
#define HYB_PHASE_FINISH		5	/* internal nodes, metapage, logging */

/* ---- sorted_file.c: sorted byte strings in temporary files ---- */

/* Bytes of a block, whole pages since a BufFile seeks by pages. */
#define HYB_SORTED_BLOCK	(3 * BLCKSZ)

/* Sorted entries: blocks [from, to) of a temporary file. */
typedef struct HybSortedFile
{
	BufFile    *file;
	int64		from;
	int64		to;
} HybSortedFile;

/* Beginning of the file "list" with a participant's sorted files. */
typedef struct HybSortedList
{
	int			pass;			/* part of the name of their file "sorted" */
	int			nfiles;
} HybSortedList;

/* `name` has room for MAXPGPATH bytes. */
extern void hyb_sorted_file_name(char *name, const char *what, int participant,
								 int pass);

/* What the participants have shared (HybSortedFile); in CurrentMemoryContext. */
extern List *hyb_sorted_open(SharedFileSet *shared, int participants);
extern void hyb_sorted_close_opened(List *files);
extern int64 hyb_sorted_bytes(List *files);

/* An entry.  Each entry of a sample stands for the same number of bytes. */
typedef struct HybSample
{
	const uint8 *bytes;
	uint32		len;
} HybSample;

extern HybSample *hyb_sorted_sample(List *files, int *n);

/* Sorted files that one file merge may read with this memory (bytes). */
extern int	hyb_sorted_fan_in(Size memory);

typedef struct HybFileMerge HybFileMerge;

/*
 * Entries of all files in order, from the byte string `low` (NULL: all) to below
 * `high` (NULL: to the end).  An entry that starts with such a string does not lie
 * below it.  No entry is a prefix of another.
 */
extern HybFileMerge *hyb_file_merge_begin(List *files, const HybSample *low,
										  const HybSample *high);

/* Holds until the next call. */
extern bool hyb_file_merge_get(HybFileMerge *merge, const uint8 **bytes,
							   uint32 *len);
extern void hyb_file_merge_end(HybFileMerge *merge);

/* Bytes of an entry that are compared first, as two numbers. */
#define HYB_HEAD_BYTES		16

/* The first bytes of an entry, with zeros after its end. */
static inline void
hyb_load_head(const uint8 *bytes, uint32 len, uint64 head[2])
{
	uint8		padded[HYB_HEAD_BYTES] = {0};

	if (len < HYB_HEAD_BYTES)
		bytes = memcpy(padded, bytes, len);
	head[0] = hyb_load64be(bytes);
	head[1] = hyb_load64be(bytes + 8);
}

/* ---- build_sort.c: sorting entries as byte strings ---- */

typedef struct HybSort HybSort;

/*
 * In CurrentMemoryContext.  Takes up to `kilobytes` of memory, then files.  A
 * participant of a parallel build names the file set that all share, and its
 * number among them.
 */
extern HybSort *hyb_sort_create(int kilobytes, SharedFileSet *shared,
								int participant);

/*
 * Copies an entry of at most PG_UINT16_MAX bytes.  No entry is a prefix of
 * another.
 */
extern void hyb_sort_put(HybSort *sort, const uint8 *bytes, uint32 len);

extern void hyb_sort_perform(HybSort *sort);

/*
 * In place of hyb_sort_perform: writes all entries to at most `most` sorted files
 * and shares them.  hyb_sort_get returns nothing then.
 */
extern void hyb_sort_share(HybSort *sort, int most);

/* The next one in memcmp order; holds until the next call. */
extern bool hyb_sort_get(HybSort *sort, const uint8 **bytes, uint32 *len);

extern void hyb_sort_end(HybSort *sort);

/* ---- build_leaves.c: from the table to the sort ---- */

/* What one process reads of the table. */
typedef struct HybBuildScan
{
	HybIndex   *ix;
	Relation	heap;
	Relation	sort_index;		/* hyb_as_btree of the index */
	HybSort    *byte_sort;		/* if all_mem */
	Tuplesortstate *sort;		/* otherwise */
	const struct IndexInfo *info;
	HybBuf		entry;
	HybBuf		sort_key;
	MemoryContext tuple_context;	/* reset for each entry */
	uint64		entries;

	/*
	 * TIDs of recently dead tuples, which are exempt from the uniqueness
	 * check.  In an all_mem index the sort keeps that.
	 */
	ItemPointerData *dead;
	int			ndead;
	int			dead_alloc;
} HybBuildScan;

extern void hyb_build_scan_init(HybBuildScan *scan, HybIndex *ix, Relation heap,
								const struct IndexInfo *info);

/* `coordinate` is NULL except in a parallel build. */
extern void hyb_build_scan_begin_tuplesort(HybBuildScan *scan, int kilobytes,
										   SortCoordinate coordinate);

/* For table_index_build_scan; its argument is the HybBuildScan. */
extern void hyb_build_scan_add(Relation index, ItemPointer tid, Datum *values,
							   bool *isnull, bool alive, void *arg);

/*
 * Adds the entries of hybrid_hot, of each row version that a snapshot may see.  Returns
 * the number of rows of the table.  Processes of a parallel build share the number of the next block; a
 * process that is alone passes NULL.
 */
extern double hyb_build_scan_chains(HybBuildScan *scan, pg_atomic_uint64 *next_block);

/* The row with this TID, which was added, is dead: hyb_build_scan_add says so. */
extern void hyb_build_scan_note_dead(HybBuildScan *scan,
									 const ItemPointerData *tid);

/*
 * An entry of the sort of an all_mem index:
 *
 *		key columns, TID (6 bytes, in the order of TIDs), INCLUDE columns
 *
 * and one more byte if the row is dead and the index unique.  Keys are prefix
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

/* ---- build_leaves.c: from the sort to leaves ---- */

/* Neighbouring leaves: all of the index, or a range of it. */
typedef struct HybBuildLeaves
{
	/* set by the caller, who zeroes all else */
	HybIndex   *ix;
	Relation	heap;
	const struct IndexInfo *info;
	uint64		entries;		/* of the whole index */
	HybStepSpace *space;
	bool		is_range;		/* there are leaves before or behind these */
	const HybPos *low;			/* NULL if the leaves begin the index */
	const HybPos *high;			/* NULL if they end it */
	pg_atomic_uint64 *all_done; /* entries that all processes have written, or
								 * NULL if there is only this process */
	bool		report;			/* progress: this is not a worker */

	/* result */
	HybChildList leaves;

	HybLeafBuilder *builder;
	HybFilterBuilder *filter;	/* NULL without filters */
	HybFilterPacker *filters;	/* of the last leaves */
	bool		choose;			/* the next two decide about filters */
	uint64		ascending;		/* entries whose row is behind that of the
								 * entry before */
	ItemPointerData last_tid;
	uint64		done;			/* entries written */
	uint64		told;			/* entries of these that are in all_done */
	Size		node_size;		/* of the level-1 node of the last leaf */
	HybBuf		entry;
	HybValue   *vals;
	HybBuf		previous;		/* key of the last live entry */
} HybBuildLeaves;

/*
 * In CurrentMemoryContext.  Entries come from a file merge, or from the sort of a
 * scan.
 */
extern void hyb_build_leaves_begin(HybBuildLeaves *leaves);
extern void hyb_build_leaves_from_merge(HybBuildLeaves *leaves,
										HybFileMerge *merge);
extern void hyb_build_leaves_finish(HybBuildLeaves *leaves);

typedef struct HybBuildCounts
{
	uint64		entries;
	uint64		leaf_pages;
	uint64		inner_pages;
	uint64		filter_pages;
	uint64		filtered;		/* leaves that have a filter */
	bool		filters;
} HybBuildCounts;

/* Adds what a process has written: this number of leaves, and the pages of `space`. */
static inline void
hyb_build_count(HybBuildCounts *counts, const HybStepSpace *space, uint64 nleaves)
{
	counts->leaf_pages += nleaves;
	counts->inner_pages += space->new_inner;
	counts->filter_pages += space->new_filter;
	counts->filtered += space->filtered;
	counts->filters |= space->filters;
}

/* What all processes of a build have written. */
typedef struct HybBuildWritten
{
	HybChildList children;		/* leaves, or the nodes above them */
	int			level;			/* of the nodes whose children these are */
	HybBuildCounts counts;
	BlockNumber spare[HYB_MAX_PENDING]; /* blocks that are free */
	int			nspare;
} HybBuildWritten;

/*
 * Writes the leaves of the whole index from one sort.  Performs and ends the sort,
 * and ends the scan.
 */
extern void hyb_build_all_leaves(HybBuildScan *scan, HybBuildWritten *written);

/* ---- build_parallel.c ---- */

/*
 * Builds the leaves with up to this number of workers.  Returns the number of rows
 * of the table, or -1 if there are no workers and nothing was done.  What is
 * returned is in CurrentMemoryContext.
 */
extern double hyb_build_parallel(HybIndex *ix, Relation heap,
								 struct IndexInfo *info, int workers,
								 HybBuildWritten *written);

#endif							/* HYB_BUILD_INTERNAL_H */
