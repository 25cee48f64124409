/*
 * build_parallel.c
 *		CREATE INDEX by several processes.
 *
 * As in nbtsort.c the leader and its workers share a scan of the table, and each
 * sorts what it gets.  Packing leaves takes longer than sorting.  So if entries are
 * sorted as byte strings, the participants share that, too:
 *
 * - Each writes its sorted files, with samples, to a file set that all can read,
 *   and waits until all have done so.
 * - Each cuts the keys into the same ranges, more of them than processes.
 * - Each takes the next range until there are no more, does a file merge of it,
 *   and writes its leaves and the nodes above them.
 * - The leader puts the nodes of the ranges side by side, and builds what is above.
 *
 * An index that needs comparison functions is sorted by the server's shared
 * tuplesort, and the leader alone writes it.
 *
 * Workers read dictionaries from the index's pages, which are in shared buffers
 * already, as every backend does that opens the index.
 */
#include "base/compat.h"

#include <fcntl.h>

#include "access/genam.h"
#include "access/parallel.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "build/build_internal.h"
#include "catalog/index.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "shared/shared.h"
#include "storage/barrier.h"
#include "storage/spin.h"
#include "store/handle.h"
#include "store/inner.h"
#include "tcop/tcopprot.h"
#include "tree/update.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/wait_event.h"

#define KEY_SHARED			UINT64CONST(0xB000000000000001)
#define KEY_TUPLESORT		UINT64CONST(0xB000000000000002)
#define KEY_QUERY_TEXT		UINT64CONST(0xB000000000000003)
#define KEY_OUTCOMES		UINT64CONST(0xB000000000000004)

/*
 * Ranges for each process, of at least RANGE_BYTES unless that leaves processes
 * without one.  The last leaf of a range and its level-1 node are not full, so
 * there are no ranges below RANGE_LEAST.
 */
#define RANGES_EACH		4
#define RANGE_BYTES		(4 * 1024 * 1024)
#define RANGE_LEAST		(64 * 1024)

/* What a participant leaves to the leader. */
typedef struct Outcome
{
	BlockNumber spare;			/* the first block that it has not written */
	int			nspare;			/* such blocks */
	WalUsage	wal_usage;
	BufferUsage buffer_usage;
} Outcome;

typedef struct Shared
{
	/* set before workers start */
	Oid			heap;
	Oid			index;
	bool		concurrent;
	bool		unique;			/* duplicates are looked for: not in CLUSTER */
	int			requested;		/* participants asked for, with the leader */
	int64		query_id;
	SharedFileSet files;

	Barrier		sorted;			/* where participants meet that have sorted */
	int			participants;	/* that have started; not known before that */
	slock_t		mutex;			/* protects what follows */
	double		rows;			/* of the table */
	bool		broken_hot_chain;
	int			next_range;
	int			ranges_by_workers;
	uint64		rows_by_workers;
	HybBuildCounts counts;

	pg_atomic_uint64 written;	/* entries in leaves */
	pg_atomic_uint64 next_block;	/* of the table, for hybrid_hot */

	/* the parallel table scan follows, BUFFERALIGNed */
} Shared;

#define table_scan_of(shared) \
	((ParallelTableScanDesc) ((char *) (shared) + BUFFERALIGN(sizeof(Shared))))

/* One process of a build. */
typedef struct Participant
{
	HybIndex   *ix;
	Relation	heap;
	struct IndexInfo *info;
	Shared	   *shared;
	Sharedsort *tuplesort;		/* NULL if all_mem */
	Outcome    *outcomes;		/* by number of the participant */
	int			number;			/* 0: the leader */
	int			kilobytes;		/* of memory */
	HybBuildScan scan;
} Participant;

typedef struct Leader
{
	ParallelContext *context;
	Snapshot	snapshot;
	Participant self;
} Leader;

extern PGDLLEXPORT void hybrid_build_worker_main(dsm_segment *seg, shm_toc *toc);

/* ---- ranges ---- */

/* Range i lies from bounds[i] to below bounds[i + 1].  The first and the last are NULL. */
typedef struct Ranges
{
	int			n;
	const HybSample **bounds;
} Ranges;

/* No two of these strings are prefixes of each other, unless they are equal. */
static int
compare_samples(const void *a, const void *b)
{
	const HybSample *x = a;
	const HybSample *y = b;
	int			c = memcmp(x->bytes, y->bytes, Min(x->len, y->len));

	return c != 0 ? c : (x->len > y->len) - (x->len < y->len);
}

/*
 * Cuts what the sorted files hold into at most `most` ranges of about the same
 * size, none of them empty.  Each process that looks at the same files finds the
 * same ranges.  The rows of one key stay together if `whole_keys`.
 */
static void
cut_ranges(Ranges *ranges, List *files, const HybKeyDesc *desc,
		   bool whole_keys, int most)
{
	int			n;
	HybSample  *samples = hyb_sorted_sample(files, &n);
	const HybSample *last = samples;	/* where the last range begins */

	ranges->n = 1;
	ranges->bounds = palloc0((Max(most, 1) + 1) * sizeof(HybSample *));
	for (int i = 0; i < n; i++)
		samples[i].len = hyb_key_length(desc, samples[i].bytes, samples[i].len) +
			(whole_keys ? 0 : HYB_SORTED_TID_BYTES);
	qsort(samples, n, sizeof(HybSample), compare_samples);
	for (int i = 0; i < n && ranges->n < most; i++)
	{
		/* a range holds the entry that it begins at, so none is empty */
		if (i >= (int64) n * ranges->n / most &&
			compare_samples(&samples[i], last) > 0)
		{
			Assert(samples[i].len > 0);
			ranges->bounds[ranges->n++] = last = &samples[i];
		}
	}
	Assert(ranges->n >= 1 && ranges->n <= Max(most, 1));
}

/* The beginning of a range, as a position between entries.  Points into the bound. */
static HybPos
range_low(const HybSample *bound, const HybKeyDesc *desc, bool whole_keys)
{
	HybPos		pos = {.key = bound->bytes,.ncols = (uint8) desc->nkeys,.tie = HYB_BEFORE};

	Assert(bound->len > (whole_keys ? 0 : HYB_SORTED_TID_BYTES));
	if (whole_keys)
	{
		pos.len = (uint16) bound->len;
		return pos;
	}
	pos.len = (uint16) (bound->len - HYB_SORTED_TID_BYTES);
	return hyb_pos_at(desc, pos.key, pos.len,
					  hyb_sorted_tid(bound->bytes + pos.len));
}

static void
range_file_name(char *name, int range)
{
	snprintf(name, MAXPGPATH, "hybrid.nodes.%d", range);
}

/*
 * The nodes of a range, for the leader: each child as it is, and its key behind it.
 */
static void
put_range(SharedFileSet *files, int range, const HybChildList *nodes)
{
	char		name[MAXPGPATH];
	BufFile    *file;

	range_file_name(name, range);
	file = BufFileCreateFileSet(&files->fs, name);
	for (int i = 0; i < nodes->n; i++)
	{
		HybChild	child = nodes->children[i];

		BufFileWrite(file, &child, sizeof(child));
		if (child.low.len > 0)
			BufFileWrite(file, unconstify(uint8 *, child.low.key), child.low.len);
	}
	BufFileExportFileSet(file);
	BufFileClose(file);
}

static void
get_range(SharedFileSet *files, int range, HybChildList *nodes)
{
	char		name[MAXPGPATH];
	BufFile    *file;
	HybChild	child;
	HybBuf		key = {0};

	range_file_name(name, range);
	file = BufFileOpenFileSet(&files->fs, name, O_RDONLY, false);
	while (BufFileRead(file, &child, sizeof(child)) == sizeof(child))
	{
		hyb_buf_reserve(&key, child.low.len);
		if (child.low.len > 0 &&
			BufFileRead(file, key.data, child.low.len) != child.low.len)
			break;
		child.low.key = key.data;
		hyb_child_list_add(nodes, &child);
	}
	hyb_buf_free(&key);
	BufFileClose(file);
}

/* ---- what every participant does ---- */

static inline bool
is_leader(const Participant *p)
{
	return p->number == 0;
}

static void
report_phase(const Participant *p, int phase)
{
	if (is_leader(p))
		pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, phase);
}

/* Writes TIDs of dead rows, for the leader that reads the tuplesorts. */
static void
share_dead(const Participant *p)
{
	char		name[MAXPGPATH];
	BufFile    *file;

	snprintf(name, MAXPGPATH, "hybrid.dead.%d", p->number);
	file = BufFileCreateFileSet(&p->shared->files.fs, name);
	if (p->scan.ndead > 0)
		BufFileWrite(file, p->scan.dead,
					 p->scan.ndead * sizeof(ItemPointerData));
	BufFileExportFileSet(file);
	BufFileClose(file);
}

static void
begin_sort(Participant *p)
{
	HybBuildScan *scan = &p->scan;

	hyb_build_scan_init(scan, p->ix, p->heap, p->info);
	if (p->tuplesort == NULL)
		scan->byte_sort = hyb_sort_create(p->kilobytes, &p->shared->files,
										  p->number);
	else
	{
		SortCoordinate coordinate = palloc0(sizeof(SortCoordinateData));

		coordinate->isWorker = true;
		coordinate->nParticipants = -1;
		coordinate->sharedsort = p->tuplesort;
		hyb_build_scan_begin_tuplesort(scan, p->kilobytes, coordinate);
	}
}

/* Sorts to files that all participants can read. */
static void
perform_sort(Participant *p)
{
	if (p->tuplesort == NULL)
	{
		int			all = hyb_sorted_fan_in((Size) p->kilobytes * 1024);

		hyb_sort_share(p->scan.byte_sort, all / p->shared->requested);
		hyb_sort_end(p->scan.byte_sort);
	}
	else
	{
		tuplesort_performsort(p->scan.sort);
		share_dead(p);
	}
}

/* Scans a part of the table, and sorts its entries. */
static void
scan_and_sort(Participant *p)
{
	Shared	   *shared = p->shared;
	double		rows;

	HYB_POINT("build-scan");
	Assert(BarrierPhase(&shared->sorted) == 0);
	begin_sort(p);
	if (p->ix->desc->chains)
		rows = hyb_build_scan_chains(&p->scan, &shared->next_block);
	else
		rows = table_index_build_scan(p->heap, p->ix->rel, p->info, true,
									  is_leader(p), hyb_build_scan_add, &p->scan,
									  HYB_BEGINSCAN_PARALLEL(p->heap, table_scan_of(shared)));
	report_phase(p, HYB_PHASE_SORT);
	perform_sort(p);

	SpinLockAcquire(&shared->mutex);
	shared->rows += rows;
	shared->counts.entries += p->scan.entries;
	shared->broken_hot_chain |= p->info->ii_BrokenHotChain;
	if (!is_leader(p))
		shared->rows_by_workers += (uint64) rows;
	SpinLockRelease(&shared->mutex);

	if (p->tuplesort != NULL)
		tuplesort_end(p->scan.sort);
	MemoryContextDelete(p->scan.tuple_context);
}

/* Number of ranges to cut these bytes into. */
static int
count_ranges(const Shared *shared, int64 bytes)
{
	int64		n = bytes / RANGE_BYTES;

	n = Max(n, shared->participants);
	Assert(shared->participants > 1 && shared->participants <= shared->requested);
	n = Min(n, shared->participants * RANGES_EACH);
	return (int) Min(n, Max(bytes / RANGE_LEAST, 1));
}

/* The next range that is not taken, or one past the last. */
static int
take_range(Participant *p, int n)
{
	Shared	   *shared = p->shared;
	int			range;

	SpinLockAcquire(&shared->mutex);
	range = shared->next_range++;
	if (range < n && !is_leader(p))
		shared->ranges_by_workers++;
	SpinLockRelease(&shared->mutex);
	return range;
}

/* Returns the number of leaves. */
static int
write_range(Participant *p, HybStepSpace *space, List *files,
			const Ranges *ranges, int range)
{
	Shared	   *shared = p->shared;
	bool		whole_keys = p->info->ii_Unique;
	const HybSample **bounds = &ranges->bounds[range];
	HybBuildLeaves leaves = {0};
	HybChildList nodes = {0};
	HybFileMerge *merge;
	HybPos		low;
	HybPos		high;

	HYB_POINT("build-range");
	Assert(BarrierPhase(&shared->sorted) > 0);
	Assert(range >= 0 && range < ranges->n);
	leaves.ix = p->ix;
	leaves.heap = p->heap;
	leaves.info = p->info;
	leaves.entries = shared->counts.entries;
	leaves.space = space;
	leaves.is_range = ranges->n > 1;
	leaves.all_done = &shared->written;
	leaves.report = is_leader(p);
	if (bounds[0] != NULL)
	{
		low = range_low(bounds[0], p->ix->desc, whole_keys);
		leaves.low = &low;
	}
	if (bounds[1] != NULL)
	{
		high = range_low(bounds[1], p->ix->desc, whole_keys);
		leaves.high = &high;
	}
	merge = hyb_file_merge_begin(files, bounds[0], bounds[1]);
	hyb_build_leaves_begin(&leaves);
	hyb_build_leaves_from_merge(&leaves, merge);
	hyb_build_leaves_finish(&leaves);
	hyb_file_merge_end(merge);
	if (ranges->n > 1)
		hyb_static_pack(space, &leaves.leaves, &nodes);
	put_range(&shared->files, range, ranges->n > 1 ? &nodes : &leaves.leaves);
	return leaves.leaves.n;
}

/* Writes ranges until all are taken.  Returns how many there are. */
static int
write_ranges(Participant *p)
{
	Shared	   *shared = p->shared;
	List	   *files = hyb_sorted_open(&shared->files, shared->participants);
	HybStepSpace *space = palloc(sizeof(HybStepSpace));
	Ranges		ranges;
	int			range;
	uint64		nleaves = 0;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hybrid build range",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old;

	cut_ranges(&ranges, files, p->ix->desc, p->info->ii_Unique,
			   count_ranges(shared, hyb_sorted_bytes(files)));
	hyb_bulk_space_init(space, p->ix, 1, false);
	hyb_bulk_space_share(space);
	old = MemoryContextSwitchTo(context);
	while ((range = take_range(p, ranges.n)) < ranges.n)
	{
		nleaves += write_range(p, space, files, &ranges, range);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(old);
	hyb_sorted_close_opened(files);

	Assert(p->number < shared->participants);
	p->outcomes[p->number].spare = space->own;
	p->outcomes[p->number].nspare = space->nown;
	SpinLockAcquire(&shared->mutex);
	hyb_build_count(&shared->counts, space, nleaves);
	SpinLockRelease(&shared->mutex);
	return ranges.n;
}

/* ---- workers ---- */

void
hybrid_build_worker_main(dsm_segment *seg, shm_toc *toc)
{
	Participant p = {0};
	Shared	   *shared;
	LOCKMODE	heap_lock;
	LOCKMODE	index_lock;
	Relation	index;

	/* an error if the leader's build is another one, before we look at Shared */
	(void) hyb_shared_init();
	shared = shm_toc_lookup(toc, KEY_SHARED, false);
	heap_lock = shared->concurrent ? ShareUpdateExclusiveLock : ShareLock;
	index_lock = shared->concurrent ? RowExclusiveLock : AccessExclusiveLock;
	debug_query_string = shm_toc_lookup(toc, KEY_QUERY_TEXT, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);
	pgstat_report_query_id(shared->query_id, false);

	/* the leader has these locks, or stronger ones */
	p.heap = table_open(shared->heap, heap_lock);
	index = index_open(shared->index, index_lock);
	p.ix = hyb_index_create_handle(index);
	p.info = BuildIndexInfo(index);
	p.info->ii_Concurrent = shared->concurrent;
	p.info->ii_Unique = shared->unique;
	p.shared = shared;
	p.number = ParallelWorkerNumber + 1;
	Assert(p.number > 0 && p.number < shared->requested);
	p.kilobytes = maintenance_work_mem / shared->requested;
	p.outcomes = shm_toc_lookup(toc, KEY_OUTCOMES, false);
	SharedFileSetAttach(&shared->files, seg);
	p.tuplesort = shm_toc_lookup(toc, KEY_TUPLESORT, true);
	if (p.tuplesort != NULL)
		tuplesort_attach_shared(p.tuplesort, seg);

	InstrStartParallelQuery();
	scan_and_sort(&p);
	(void) BarrierArriveAndWait(&shared->sorted,
								WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	if (p.tuplesort == NULL)
		(void) write_ranges(&p);
	InstrEndParallelQuery(&p.outcomes[p.number].buffer_usage,
						  &p.outcomes[p.number].wal_usage);

	index_close(index, index_lock);
	table_close(p.heap, heap_lock);
}

/* ---- the leader ---- */

static void
estimate_shared_size(ParallelContext *context, Relation heap, Snapshot snapshot,
					 bool tuplesort)
{
	shm_toc_estimator *e = &context->estimator;
	int			participants = context->nworkers + 1;

	shm_toc_estimate_chunk(e, add_size(BUFFERALIGN(sizeof(Shared)),
									   table_parallelscan_estimate(heap, snapshot)));
	shm_toc_estimate_chunk(e, mul_size(sizeof(Outcome), participants));
	shm_toc_estimate_keys(e, 2);
	if (tuplesort)
	{
		shm_toc_estimate_chunk(e, tuplesort_estimate_shared(participants));
		shm_toc_estimate_keys(e, 1);
	}
	if (debug_query_string != NULL)
	{
		shm_toc_estimate_chunk(e, strlen(debug_query_string) + 1);
		shm_toc_estimate_keys(e, 1);
	}
}

static void *
allocate_shared(shm_toc *toc, uint64 key, Size size)
{
	void	   *chunk = shm_toc_allocate(toc, size);

	memset(chunk, 0, size);
	shm_toc_insert(toc, key, chunk);
	return chunk;
}

static Shared *
make_shared(ParallelContext *context, const Participant *self,
			Snapshot snapshot)
{
	Shared	   *shared = allocate_shared(context->toc, KEY_SHARED,
										 add_size(BUFFERALIGN(sizeof(Shared)),
												  table_parallelscan_estimate(self->heap, snapshot)));

	shared->heap = RelationGetRelid(self->heap);
	shared->index = RelationGetRelid(self->ix->rel);
	shared->concurrent = self->info->ii_Concurrent;
	shared->unique = self->info->ii_Unique;
	shared->requested = context->nworkers + 1;
	shared->query_id = pgstat_get_my_query_id();
	BarrierInit(&shared->sorted, 0);
	for (int i = 0; i < shared->requested; i++)
		(void) BarrierAttach(&shared->sorted);
	SpinLockInit(&shared->mutex);
	pg_atomic_init_u64(&shared->written, 0);
	pg_atomic_init_u64(&shared->next_block, 0);
	SharedFileSetInit(&shared->files, context->seg);
	table_parallelscan_initialize(self->heap, table_scan_of(shared), snapshot);
	return shared;
}

/* Makes everything that workers find in shared memory. */
static void
fill_shared_memory(Leader *leader)
{
	ParallelContext *context = leader->context;
	shm_toc    *toc = context->toc;
	Participant *self = &leader->self;
	int			participants = context->nworkers + 1;

	self->shared = make_shared(context, self, leader->snapshot);
	self->outcomes = allocate_shared(toc, KEY_OUTCOMES,
									 mul_size(sizeof(Outcome), participants));
	if (!self->ix->desc->all_mem)
	{
		self->tuplesort = allocate_shared(toc, KEY_TUPLESORT,
										  tuplesort_estimate_shared(participants));
		tuplesort_initialize_shared(self->tuplesort, participants, context->seg);
	}
	if (debug_query_string != NULL)
	{
		Size		size = strlen(debug_query_string) + 1;

		memcpy(allocate_shared(toc, KEY_QUERY_TEXT, size), debug_query_string, size);
	}
}

static void
end_parallel(Leader *leader)
{
	WaitForParallelWorkersToFinish(leader->context);
	for (int i = 1; i <= leader->context->nworkers_launched; i++)
		InstrAccumParallelQuery(&leader->self.outcomes[i].buffer_usage,
								&leader->self.outcomes[i].wal_usage);
	if (IsMVCCSnapshot(leader->snapshot))
		UnregisterSnapshot(leader->snapshot);
	DestroyParallelContext(leader->context);
	ExitParallelMode();
}

/* Returns false if there is no shared memory or no worker. */
static bool
begin_parallel(Leader *leader, int workers)
{
	Participant *self = &leader->self;
	ParallelContext *context;

	EnterParallelMode();
	context = CreateParallelContext("hybridindex", "hybrid_build_worker_main",
									workers);
	leader->context = context;

	/* see _bt_begin_parallel */
	leader->snapshot = self->info->ii_Concurrent ?
		RegisterSnapshot(GetTransactionSnapshot()) : SnapshotAny;
	estimate_shared_size(context, self->heap, leader->snapshot, !self->ix->desc->all_mem);
	InitializeParallelDSM(context);
	if (context->seg != NULL)
	{
		fill_shared_memory(leader);
		LaunchParallelWorkers(context);
	}
	if (context->nworkers_launched == 0)
	{
		end_parallel(leader);
		return false;
	}
	self->shared->participants = context->nworkers_launched + 1;
	for (int i = self->shared->participants; i < self->shared->requested; i++)
		(void) BarrierDetach(&self->shared->sorted);
	self->kilobytes = maintenance_work_mem / self->shared->participants;
	return true;
}

/* Collects what all participants have written, in order. */
static void
collect_ranges(const Participant *p, int nranges, HybBuildWritten *written)
{
	const Shared *shared = p->shared;

	/* each entry that was sorted is in one leaf */
	Assert(pg_atomic_read_u64(unconstify(pg_atomic_uint64 *, &shared->written)) == shared->counts.entries);
	Assert(shared->next_range >= nranges);
	for (int i = 0; i < nranges; i++)
		get_range(unconstify(SharedFileSet *, &shared->files), i,
				  &written->children);
	/* without a second range there is no node above the leaves yet */
	written->level = nranges > 1 ? 2 : 1;
	written->counts = shared->counts;
	Assert(nranges >= 1);
	/* VACUUM finds those that do not fit */
	for (int i = 0; i < shared->participants; i++)
		for (int j = 0; j < p->outcomes[i].nspare && written->nspare < HYB_MAX_PENDING; j++)
			written->spare[written->nspare++] = p->outcomes[i].spare + j;
}

static void
collect_dead(HybBuildScan *scan, const Participant *p)
{
	for (int i = 0; i < p->shared->participants; i++)
	{
		char		name[MAXPGPATH];
		BufFile    *file;
		ItemPointerData tid;

		snprintf(name, MAXPGPATH, "hybrid.dead.%d", i);
		file = BufFileOpenFileSet(&p->shared->files.fs, name, O_RDONLY, false);
		while (BufFileRead(file, &tid, sizeof(tid)) == sizeof(tid))
			hyb_build_scan_note_dead(scan, &tid);
		BufFileClose(file);
	}
}

/* Writes what the tuplesorts of all participants have. */
static void
write_sorted(Participant *p, HybBuildWritten *written)
{
	HybBuildScan scan;
	SortCoordinate coordinate = palloc0(sizeof(SortCoordinateData));

	coordinate->isWorker = false;
	coordinate->nParticipants = p->shared->participants;
	coordinate->sharedsort = p->tuplesort;
	hyb_build_scan_init(&scan, p->ix, p->heap, p->info);
	hyb_build_scan_begin_tuplesort(&scan, maintenance_work_mem, coordinate);
	scan.entries = p->shared->counts.entries;
	collect_dead(&scan, p);
	hyb_build_all_leaves(&scan, written);
}

double
hyb_build_parallel(HybIndex *ix, Relation heap, struct IndexInfo *info,
				   int workers, HybBuildWritten *written)
{
	Leader		leader = {.self = {.ix = ix,.heap = heap,.info = info}};
	Participant *self = &leader.self;
	Shared	   *shared;
	double		rows;
	int			nranges = 0;

	if (!begin_parallel(&leader, workers))
		return -1;
	shared = self->shared;
	scan_and_sort(self);
	WaitForParallelWorkersToAttach(leader.context);
	(void) BarrierArriveAndWait(&shared->sorted,
								WAIT_EVENT_PARALLEL_CREATE_INDEX_SCAN);
	rows = shared->rows;
	info->ii_BrokenHotChain |= shared->broken_hot_chain;
	pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_TOTAL,
								 shared->counts.entries);
	if (self->tuplesort != NULL)
		write_sorted(self, written);
	else
	{
		report_phase(self, HYB_PHASE_WRITE);
		nranges = write_ranges(self);
		WaitForParallelWorkersToFinish(leader.context);
		pgstat_progress_update_param(PROGRESS_CREATEIDX_TUPLES_DONE,
									 shared->counts.entries);
		collect_ranges(self, nranges, written);
	}
	ereport(DEBUG1,
			(errmsg_internal("built leaves of index \"%s\" with %d workers, which read " UINT64_FORMAT " of %.0f rows and wrote %d of %d ranges",
							 RelationGetRelationName(ix->rel),
							 shared->participants - 1,
							 shared->rows_by_workers, rows,
							 shared->ranges_by_workers, nranges)));
	end_parallel(&leader);
	return rows;
}
