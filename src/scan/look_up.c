/*
 * look_up.c
 *		The short way of a look-up: each column of an index equals a short value.
 *
 * This is the scan that applications ask for most.  It finds a few TIDs, so it needs
 * no batches, edges, hops, marks or values of a HybScan, and it makes none.  Between
 * two statements of a session other sessions run, and what costs time then is each
 * line of code and memory that a statement touches.  So the whole look-up is in this
 * file, and what it works with lies in one place that the backend keeps.
 *
 * It does what loading a batch does (scan_batch.c), in the same order: capture the
 * version, ask for a hot copy, read the levels, read the log, prove the version
 * current.  What it leaves out it need not do, because
 *
 * - the snapshot is one for statements, and rows are returned: so no pin has to hold
 *   VACUUM up, and each TID is looked up in the table;
 * - the transaction is not serializable: so nothing is locked;
 * - keys are ordered by memcmp, equal keys have equal bytes, and leaves keep them: so
 *   comparisons call no functions, and nothing runs that could look something up
 *   in the memory that this look-up uses;
 * - all entries found fit HybLookUp, and lie in one leaf of each level.
 *
 * Entries of hybrid_hot may be stale, and the executor compares the rows with the key:
 * that is all its general way does for such a scan, too (scan_chains.c).
 *
 * Otherwise, and where the executor wants more than the next row, the general way
 * (index_scan.c) does it.
 */
#include "base/compat.h"

#include "access/relscan.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "filter/filter_choice.h"
#include "hot/hot.h"
#include "insert/gather.h"
#include "leaf/leaf.h"
#include "log/found_key.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "scan/scan.h"
#include "shared/index_cache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/*
 * Columns of an index whose look-ups go the short way, INCLUDE columns among them.
 * Nearly all unique indexes have no more, and each one takes memory of the handle.
 */
#define MOST_COLUMNS		4

/* Entries of the log that there is memory for from one look-up to the next. */
#define KEPT_ITEMS			64

typedef enum LookUpResult
{
	LOOK_UP_DONE,
	LOOK_UP_AGAIN,				/* the version is not current */
	LOOK_UP_GENERAL,			/* the general way has to do it */
	LOOK_UP_SKIP				/* the same, and most likely for the next
								 * look-ups of the index: there are too many
								 * entries, or it is not an index for this */
} LookUpResult;

/* Look-ups of an index that is not unique, after LOOK_UP_SKIP, that are not tried. */
#define SKIPPED		15

/* What look-ups of a backend use, one after the other. */
typedef struct LookUpMemory
{
	MemoryContext context;		/* of all that grows here; NULL: not used yet */
	union
	{
		HybIndex	ix;
		char		space[HYB_HANDLE_SIZE(MOST_COLUMNS)];
	};
	HybBuf		key;
	HybPos		low;			/* just below the key, and just above it */
	HybPos		high;
	uint8		probe;			/* levels whose filters are asked */
	HybScanCounts counts;		/* of this look-up */
	HybDescent	descent;
	HybLeaf		leaf;
	HybFetched	log;
	struct
	{
		Oid			index;
		int			skips;		/* look-ups to come that are skipped */
	}			skipped[16];	/* by the low bits of the index */
} LookUpMemory;

static LookUpMemory memory;

#ifdef USE_ASSERT_CHECKING
void
hyb_look_up_assert_valid(const HybLookUp *look)
{
	Assert(look->n >= 0 && look->n <= HYB_LOOK_UP_ITEMS);
	Assert(look->next >= 0 && look->next <= look->n);
	Assert(!look->ended || look->next == look->n);
	for (int i = 1; i < look->n; i++)
		Assert(ItemPointerCompare(unconstify(ItemPointerData *, &look->items[i - 1].tid),
								  unconstify(ItemPointerData *, &look->items[i].tid)) <= 0);
}
#endif

/* May the scan go the short way, as far as its keys are not concerned? */
static inline bool
is_plain(IndexScanDesc scan)
{
	Form_pg_index form = scan->indexRelation->rd_index;

	return scan->numberOfKeys == form->indnkeyatts &&
		form->indnatts <= MOST_COLUMNS && !scan->xs_want_itup &&
		scan->parallel_scan == NULL && scan->ignore_killed_tuples &&
		scan->xs_snapshot != NULL && IsMVCCSnapshot(scan->xs_snapshot) &&
		!IsolationIsSerializable() && !HYB_SNAPSHOTS_EXPIRE();
}

/* Make the handle, the key and its positions, if they are simple. */
static LookUpResult
encode_keys(IndexScanDesc scan)
{
	const HybKeyDesc *desc;

	if (!hyb_index_make_handle(scan->indexRelation, &memory.ix, sizeof(memory.space)))
		return LOOK_UP_SKIP;
	desc = memory.ix.desc;
	Assert(scan->numberOfKeys == desc->nkeys && memory.ix.context == memory.context);
	if (!desc->all_mem || desc->truncated || desc->chains != desc->plain)
		return LOOK_UP_SKIP;
	Assert(desc->exact && desc->pure == HYB_PURE);
	memory.key.len = 0;
	for (int i = 0; i < desc->nkeys; i++)
	{
		Datum		value;

		if (!hyb_key_is_simple(desc, i, &scan->keyData[i], &value))
			return LOOK_UP_GENERAL;
		hyb_key_encode_column(&desc->cols[i], value, false, &memory.key);
	}
	memory.low.key = memory.key.data;
	memory.low.len = memory.key.len;
	memory.low.ncols = desc->nkeys;
	memory.low.tie = HYB_BEFORE;
	memory.high = memory.low;
	memory.high.tie = HYB_AFTER;
	return LOOK_UP_DONE;
}

/* Take items of the leaf, but for those known to be dead. */
static inline void
add_items(int first, int n, HybLookUp *look)
{
	const HybLeaf *leaf = &memory.leaf;
	const HybDescent *descent = &memory.descent;
	const uint8 *dead = hyb_hints_of(&memory.ix, leaf, descent->stamp, descent->page);
	ItemPointerData tids[HYB_LOOK_UP_ITEMS];

	hyb_leaf_tids(leaf, first, n, tids);
	for (int i = 0; i < n; i++)
	{
		HybLookUpItem *item = &look->items[look->n];
		int			place = first + i;

		if (dead != NULL && (dead[place >> 3] & (1 << (place & 7))) != 0)
			continue;
		item->tid = tids[i];
		item->nitems = leaf->nitems;
		item->pd_lower = leaf->tombstones != NULL ? 0 :
			((PageHeader) descent->page)->pd_lower;
		item->block = descent->block;
		item->place = place;
		item->stamp = descent->stamp;
		look->n++;
	}
}

/* Take the key's items in a level. */
static LookUpResult
find_in_level(const HybVersion *version, int level, HybLookUp *look)
{
	HybIndex   *ix = &memory.ix;
	HybDescent *descent = &memory.descent;
	HybLeaf    *leaf = &memory.leaf;
	bool		asks = hyb_filter_try_level(memory.probe, level);
	HybSought	sought = {
		.level = level,
		.pos = &memory.low,
		.bound = asks ? &memory.high : NULL,
		.want_fence = asks
	};
	LookUpResult result = LOOK_UP_DONE;
	int			row;
	int			end_row;
	int			first;
	int			n;

	if (version->levels[level].height == 0)
		return LOOK_UP_DONE;
	if (!hyb_static_descend(ix, version, &sought, descent))
		return LOOK_UP_AGAIN;
	memory.counts.filter_checks += descent->probed;
	memory.counts.filter_negatives += descent->skipped;
	if (descent->skipped)
	{
		hyb_filter_note(ix, HYB_ASK_POINT, level, HYB_PROBE_NEGATIVE);
		return hyb_pos_compare(ix->desc, &descent->fence, &memory.high) < 0 ?
			LOOK_UP_GENERAL : LOOK_UP_DONE;
	}

	hyb_leaf_open(leaf, ix->desc, descent->page, ix->rel, descent->block);
	first = hyb_leaf_search_equal(leaf, &memory.low, &row, &end_row);
	n = row < end_row ? hyb_leaf_row_start(leaf, end_row) - first : 0;
	if (descent->probed)
		hyb_filter_note(ix, HYB_ASK_POINT, level,
						n > 0 ? HYB_PROBE_HIT : HYB_PROBE_FALSE_POSITIVE);
	if (n > HYB_LOOK_UP_ITEMS - look->n)
		result = LOOK_UP_SKIP;
	else if (end_row == leaf->nrows && !descent->last)
		result = LOOK_UP_GENERAL;
	else if (n > 0)
		add_items(first, n, look);
	hyb_descent_release(descent);
	return result;
}

/* A hot copy is what all levels have; else they are read. */
static LookUpResult
find_in_static(const HybVersion *version, const HybHotKey *key, HybHotAnswer *hot,
			   uint64 *gate, HybLookUp *look)
{
	LookUpResult result = LOOK_UP_DONE;

	*hot = hyb_hot_memory_kb > 0 || hyb_hot_memory_changed ?
		hyb_hot_find(&memory.ix, key, &look->items[0].tid) : HYB_HOT_NONE;
	if (*hot == HYB_HOT_HIT)
	{
		look->items[0].block = InvalidBlockNumber;
		look->n = 1;
		return LOOK_UP_DONE;
	}
	if (*hot == HYB_HOT_PUBLISH)
		*gate = hyb_hot_gate(&memory.ix);
	for (int i = 0; i < version->nlevels && result == LOOK_UP_DONE; i++)
		result = find_in_level(version, i, look);
	return result;
}

static LookUpResult
find_in_log(const HybVersion *version, uint64 hash, HybLookUp *look)
{
	HybFetched *log = &memory.log;
	HybFetch	fetch = {
		.which = HYB_FETCH_NOT_KILLED | HYB_FETCH_FROZEN | HYB_FETCH_ACTIVE,
		.lo = &memory.low,
		.hi = &memory.high,
		.limit = HYB_LOOK_UP_ITEMS,
		.point_hash = hash
	};

	if (!hyb_log_fetch(&memory.ix, version, &fetch, log))
		return LOOK_UP_AGAIN;
	if (!log->complete || log->nitems > HYB_LOOK_UP_ITEMS - look->n)
		return LOOK_UP_SKIP;
	for (int i = 0; i < log->nitems; i++)
	{
		HybLookUpItem *item = &look->items[look->n++];

		item->tid = log->items[i].tid;
		item->nitems = 0;
		item->block = log->items[i].ref.block;
		item->place = log->items[i].ref.offset;
		item->stamp = log->items[i].ref.generation;
	}
	return LOOK_UP_DONE;
}

/*
 * The general way may take over, and returns entries in the order of their TIDs.  Several
 * runs may have an entry of hybrid_hot, which comes once.
 */
static inline void
sort_items(HybLookUp *look)
{
	int			n = 0;

	for (int i = 1; i < look->n; i++)
	{
		HybLookUpItem item = look->items[i];
		int			place = i;

		while (place > 0 && ItemPointerCompare(&look->items[place - 1].tid, &item.tid) > 0)
		{
			look->items[place] = look->items[place - 1];
			place--;
		}
		look->items[place] = item;
	}
	if (!memory.ix.desc->chains)
		return;
	for (int i = 0; i < look->n; i++)
		if (n == 0 || !ItemPointerEquals(&look->items[n - 1].tid, &look->items[i].tid))
			look->items[n++] = look->items[i];
	look->n = n;
}

/* For an insertion of the same key. */
static void
keep_found(const HybLookUp *look)
{
	ItemPointerData *tids = hyb_found_key_keep(look->n);

	StaticAssertStmt(HYB_LOOK_UP_ITEMS <= HYB_FOUND_ENTRIES, "all that is found can be kept");
	for (int i = 0; i < look->n; i++)
		tids[i] = look->items[i].tid;
}

static LookUpResult
find_key(HybLookUp *look)
{
	HybIndex   *ix = &memory.ix;
	HybHotKey	key = hyb_hot_key(memory.key.data, memory.key.len);
	HybVersion	version;
	HybHotAnswer hot;
	uint64		gate = 0;
	LookUpResult result;
	int			nstatic;
	bool		noting = ix->rel->rd_index->indisunique &&
		hyb_found_key_begin(ix, &memory.key, key.hash);

	Assert(hyb_key_has_one_form(ix->desc, key.bytes, key.len));
	memset(&memory.counts, 0, sizeof(HybScanCounts));
	memory.probe = hyb_filter_try(ix, HYB_ASK_POINT);
	do
	{
		CHECK_FOR_INTERRUPTS();
		look->n = 0;
		hyb_version_capture(ix, &version);
		result = find_in_static(&version, &key, &hot, &gate, look);
		nstatic = look->n;
		if (result == LOOK_UP_DONE)
			result = find_in_log(&version, key.hash, look);
	} while (result == LOOK_UP_AGAIN);
	if (result != LOOK_UP_DONE)
		return result;
	/* the fetch from the log has found the version current */
	look->counts.hot_hits += hot == HYB_HOT_HIT;
	look->counts.filter_checks += memory.counts.filter_checks;
	look->counts.filter_negatives += memory.counts.filter_negatives;
	if (hot == HYB_HOT_PUBLISH && nstatic == 1)
		hyb_hot_publish(ix, &key, &look->items[0].tid, gate);
	sort_items(look);
	if (noting)
		keep_found(look);
	return LOOK_UP_DONE;
}

/* Look-ups of an index that are still to be skipped. */
static inline int *
skips_of(Relation index)
{
	Oid			id = RelationGetRelid(index);
	int			place = id % lengthof(memory.skipped);

	if (memory.skipped[place].index != id)
	{
		memory.skipped[place].index = id;
		memory.skipped[place].skips = 0;
	}
	return &memory.skipped[place].skips;
}

bool
hyb_look_up(IndexScanDesc scan, HybLookUp *look)
{
	Relation	index = scan->indexRelation;
	int		   *skips = index->rd_index->indisunique ? NULL : skips_of(index);
	MemoryContext old;
	LookUpResult result;

	if (!is_plain(scan))
		return false;
	if (skips != NULL && *skips > 0)
	{
		--*skips;
		return false;
	}
	/* may append entries, and merge */
	hyb_gather_before_read(RelationGetRelid(index));
	if (memory.context == NULL)
		memory.context = AllocSetContextCreate(TopMemoryContext, "hybrid look-up",
											   ALLOCSET_SMALL_SIZES);
	old = MemoryContextSwitchTo(memory.context);
	result = encode_keys(scan);
	if (result == LOOK_UP_DONE)
		result = find_key(look);
	if (unlikely(memory.log.items_alloc > KEPT_ITEMS))
		hyb_fetched_free(&memory.log);
	MemoryContextSwitchTo(old);
	if (result == LOOK_UP_SKIP && skips != NULL)
		*skips = SKIPPED;
	if (result != LOOK_UP_DONE)
		return false;
	pgstat_count_index_scan(index);
	HYB_COUNT_SEARCH(scan);
	hyb_look_up_assert_valid(look);
	return true;
}

/* Leaves a hint on an entry of memory.key in the log, as set_log_hints (scan_batch.c) does. */
static void
kill_in_log(const HybLookUpItem *item)
{
	HybFetchedItem entry = {
		.tid = item->tid,
		.len = memory.key.len,
		.keylen = memory.key.len,
		.ref = {
			.generation = item->stamp,
			.block = item->block,
			.offset = item->place
		}
	};
	HybFetched	log = {.keys = memory.key,.items = &entry,.nitems = 1};
	Buffer		buf = InvalidBuffer;

	if (hyb_delta_pin_entry(&memory.ix, &entry.ref, &entry.tid, &buf) != HYB_PIN_HOLDS)
		return;
	hyb_log_kill(&memory.ix, &log, &entry);
	ReleaseBuffer(buf);
}

static void
kill_in_leaf(const HybLookUpItem *item)
{
	int			place = item->place;
	Buffer		buf;

	if (item->pd_lower == 0)
	{
		hyb_hints_keep(&memory.ix, item->block, item->stamp, item->nitems, &place, 1);
		return;
	}
	buf = ReadBuffer(memory.ix.rel, item->block);
	hyb_leaf_set_hints(&memory.ix, buf, item->stamp, item->pd_lower, &place, 1);
	ReleaseBuffer(buf);
}

void
hyb_look_up_kill(IndexScanDesc scan, const HybLookUp *look)
{
	const HybLookUpItem *item = &look->items[look->next - 1];
	MemoryContext old = MemoryContextSwitchTo(memory.context);

	Assert(look->way == HYB_WAY_SHORT && look->next > 0);
	/* other look-ups may have used the memory meanwhile */
	if (encode_keys(scan) == LOOK_UP_DONE)
	{
		HybHotKey	key = hyb_hot_key(memory.key.data, memory.key.len);

		if (!BlockNumberIsValid(item->block))
			hyb_hot_forget(&memory.ix, &key);
		else if (item->nitems == 0)
			kill_in_log(item);
		else
			kill_in_leaf(item);
	}
	MemoryContextSwitchTo(old);
}
