/*
 * index_scan.c
 *		The index scan functions of the access method.
 *
 * A scan is a sequence of ranges (scan_keys.c, scan_range.c), each read in batches
 * (scan_batch.c).  The current batch is an array of items with an index.  A step off
 * either end starts a batch at that edge, in the direction of the step, so turning
 * round in the middle needs nothing else.
 *
 * Interlock with VACUUM.  An index-only scan, or a scan with a non-MVCC snapshot,
 * may return an entry only while a pin on the entry's page keeps VACUUM from
 * finishing.  The version must be proven current after the pin was taken.  The
 * batch's pin on a leaf covers its items; the delta page of a dynamic item is pinned
 * when the item is returned.  If the entry is dead by then, it is left out.  If it
 * has moved, the batch is loaded anew at the item's position.  On a standby no pin
 * holds anything up, and each TID is checked against the heap instead.
 *
 * Marking remembers an index into the current batch.  When the scan leaves a batch
 * that holds the mark, the batch is put aside whole and comes back on restore.
 *
 * Bitmap scans look for entries whose rows are gone.  The executor tells an index
 * scan which rows are dead to all, and the scan leaves hints about them.  It tells a
 * bitmap scan nothing.  But the row versions that updates leave behind pile up below
 * keys that bitmap scans read, too.  Then every scan of such a key visits the heap
 * pages of old row versions.  When a page is full nbtree takes their entries out
 * (bottom-up deletion); here entries are appended to a log, which is never full.
 *
 * So a bitmap scan sometimes looks at the line pointers of the entries it has found.
 * It leaves out those that are LP_DEAD, with a hint for later scans, and merges drop
 * them (merge/dead.c).  The executor visits the same heap pages next, so little is
 * read that would not be read anyway.  Pruning makes the line pointers of nearly all
 * old row versions dead where rows are updated often: the executor prunes the full
 * pages that it visits.
 */
#include "base/compat.h"

#include "access/relscan.h"
#include "executor/instrument.h"
#include "filter/filter_choice.h"
#include "merge/dead.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "scan/index_scan.h"
#include "scan/scan.h"
#include "shared/index_cache.h"
#include "store/handle.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* TIDs handed to a bitmap at a time. */
#define BITMAP_CHUNK		256

/* Room for short keys, in which most buffers of a scan stay. */
#define SHORT_KEY			64

/*
 * One chunk has the scan, its arrays with an element for each column, and the first
 * space of the buffers that key processing fills: a scan is begun for every
 * statement.
 */
static HybScan *
create_scan(HybIndex *ix)
{
	HybKeyDesc *desc = ix->desc;
	Size		columns = desc->nkeys * sizeof(HybScanColumn);
	Size		prefix = desc->nkeys * sizeof(HybScanPrefix);
	Size		vals = desc->natts * sizeof(HybValue);
	Size		zeroed = MAXALIGN(sizeof(HybScan)) + columns + prefix + vals;
	HybScan    *so;
	char	   *p;

	so = palloc(zeroed + 5 * SHORT_KEY);
	memset(so, 0, zeroed);
	so->ix = so->keys.ix = ix;
	so->context = ix->context;
	p = (char *) so + MAXALIGN(sizeof(HybScan));
	so->keys.columns = (HybScanColumn *) p;
	so->keys.prefix = (HybScanPrefix *) (p += columns);
	so->keys.vals = (HybValue *) (p += prefix);
	p += vals;
	hyb_buf_init(&so->keys.constants, p, SHORT_KEY, so->context);
	hyb_buf_init(&so->keys.prefix_key, p + SHORT_KEY, SHORT_KEY, so->context);
	hyb_buf_init(&so->keys.start_key, p + 2 * SHORT_KEY, SHORT_KEY, so->context);
	hyb_buf_init(&so->keys.end_key, p + 3 * SHORT_KEY, SHORT_KEY, so->context);
	hyb_buf_init(&so->cut_key, p + 4 * SHORT_KEY, SHORT_KEY, so->context);
	return so;
}

static void
assert_valid(const HybScan *so)
{
	const HybScanMode *mode PG_USED_FOR_ASSERTS_ONLY = &so->mode;

	hyb_keys_assert_valid(&so->keys);
	Assert(so->keys.nquals == 0 || so->keys.empty || mode->need_values);
	/* both only for the planner's look at an end of the index, on a standby */
	Assert(!(mode->need_pins && mode->check_heap) || !IsMVCCSnapshot(so->scan->xs_snapshot));
	Assert(!mode->rechecks || so->ix->desc->truncated);
	Assert(!so->mark_in_batch || so->marked);
	Assert(!so->marked || so->mark_in_batch || so->mark_batch != NULL);
	Assert(so->mark_batch != so->batch);
}

static pg_noinline HybScan *
make_scan(IndexScanDesc scan)
{
	HybLookUp  *look = scan->opaque;
	MemoryContext context;
	MemoryContext old;
	HybScan    *so;

	/*
	 * A context of our own: constraint checks begin and end a scan per row in
	 * a memory context that lives on.
	 */
	context = AllocSetContextCreate(GetMemoryChunkContext(scan), "hybrid scan",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	so = create_scan(hyb_index_create_handle(scan->indexRelation));
	so->scan = scan;
	so->counts = &look->counts;
	so->keys.given = scan->keyData;
	so->keys.ngiven = scan->numberOfKeys;
	so->batch = hyb_batch_create(so);
	so->delta_pin = InvalidBuffer;
	hyb_ahead_init(&so->mode.ahead);
	MemoryContextSwitchTo(old);
	look->scan = so;
	return so;
}

/* What reads batches. */
static inline HybScan *
general_scan(IndexScanDesc scan)
{
	HybLookUp  *look = scan->opaque;

	return look->scan != NULL ? look->scan : make_scan(scan);
}

IndexScanDesc
hyb_ambeginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan;
	HybLookUp  *look;

	/* amcanorderbyop is false */
	Assert(norderbys == 0 && nkeys >= 0);

	scan = RelationGetIndexScan(index, nkeys, norderbys);
	scan->xs_itupdesc = RelationGetDescr(index);
	scan->xs_hitupdesc = RelationGetDescr(index);
	look = palloc(sizeof(HybLookUp));
	memset(look, 0, offsetof(HybLookUp, items));
	scan->opaque = look;
	return scan;
}

static void
release_delta_pin(HybScan *so)
{
	if (BufferIsValid(so->delta_pin))
	{
		ReleaseBuffer(so->delta_pin);
		so->delta_pin = InvalidBuffer;
	}
}

/* Forget a mark; a batch put aside stays as a spare. */
static void
drop_mark(HybScan *so)
{
	Assert(so->marked || !so->mark_in_batch);
	if (so->marked && !so->mark_in_batch)
		hyb_batch_finish(so, so->mark_batch);
	so->marked = false;
	so->mark_in_batch = false;
}

void
hyb_amrescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
			 int norderbys)
{
	HybLookUp  *look = scan->opaque;
	HybScan    *so = look->scan;

	look->way = HYB_WAY_OPEN;
	if (so != NULL)
	{
		release_delta_pin(so);
		hyb_ahead_end(so);
		hyb_batch_finish(so, so->batch);
		drop_mark(so);
		hyb_chains_rescan(so);
		so->started = false;
	}

	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
}

void
hyb_amendscan(IndexScanDesc scan)
{
	HybLookUp  *look = scan->opaque;
	HybScan    *so = look->scan;

	if (so != NULL)
	{
		release_delta_pin(so);
		hyb_ahead_end(so);
		drop_mark(so);
		hyb_batch_finish(so, so->batch);
		hyb_row_reader_close(&so->rows);
		hyb_chains_end(so);
		MemoryContextDelete(so->context);
	}
	pfree(look);
	scan->opaque = NULL;
}

/* ---- moving from batch to batch ---- */

static void
begin_range(HybScan *so, bool forward)
{
	HybScanMode *mode = &so->mode;

	if (!so->counted)
	{
		pgstat_count_index_scan(so->ix->rel);
		HYB_COUNT_SEARCH(so->scan);
	}
	so->counted = false;
	/* the planner's look at an end of the index has another kind of snapshot */
	if (so->scan->xs_want_itup && IsMVCCSnapshot(so->scan->xs_snapshot))
		hyb_log_count(so->ix, HYB_INDEX_ONLY_SCANS);
	mode->log_limit = HYB_SCAN_LOG_LIMIT;
	mode->probe = hyb_filter_try(so->ix, hyb_scan_asker(&so->keys));
	if (!mode->whole_leaves &&
		(so->ix->desc->truncated || (so->ix->desc->chains && !forward)))
		mode->static_limit = HYB_SCAN_RAW_LIMIT;
	else
		mode->static_limit = mode->whole_leaves || so->keys.hop_last >= 0 ?
			HYB_LEAF_MAX_ITEMS : HYB_SCAN_STATIC_LIMIT;
}

/*
 * Hop over what the keys exclude, to where the next batch is to start.  If the last
 * batch was cut short and the scan hops, the next one reads as few dynamic entries
 * as a first one.
 */
static inline void
hop(HybScan *so, bool forward, bool cut)
{
	if (so->keys.hop_last < 0 || !hyb_hop_edge(&so->keys, &so->from, forward))
		return;
	HYB_COUNT_SEARCH(so->scan);
	if (cut)
		so->mode.log_limit = HYB_SCAN_LOG_LIMIT;
}

/*
 * Let go of the current batch, so that so->batch can be loaded anew.  If it
 * holds the mark, another batch takes its place.
 */
static void
leave_batch(HybScan *so)
{
	release_delta_pin(so);
	hyb_ahead_new_batch(&so->mode.ahead);
	if (so->marked && so->mark_in_batch)
	{
		HybScanBatch *spare = so->mark_batch;

		/* while the TIDs that it was read with are there */
		(void) hyb_batch_merge(so, so->batch, so->batch->items_alloc);
		Assert(spare != so->batch);
		Assert(so->mark_current <= so->batch->nitems);
		so->mark_batch = so->batch;
		so->mark_in_batch = false;
		so->batch = spare != NULL ? spare : hyb_batch_create(so);
	}
	else
		hyb_batch_finish(so, so->batch);
}

/* The first batch of a range begins at so->from. */
static void
set_first_edge(HybScan *so, bool forward)
{
	hyb_edge_set(&so->from, forward ? HYB_EDGE_START : HYB_EDGE_END);
	hop(so, forward, false);
}

/*
 * Move so->from, where a batch ended, to where the next one begins.  `cut`: the batch
 * was cut short; `empty`: it was a whole range, that of elems, and had nothing.
 * Returns false if there is no next one.
 */
static bool
next_place(HybScan *so, bool forward, bool cut, bool empty, const int *elems)
{
	HybEdgeKind last = forward ? HYB_EDGE_END : HYB_EDGE_START;

	if (so->from.kind != last && hyb_parallel_end(so) == NULL)
		hop(so, forward, cut);
	if (so->from.kind != last)
		return true;
	if (!hyb_scan_next_range(so, forward, empty, elems))
		return false;
	begin_range(so, forward);
	set_first_edge(so, forward);
	return true;
}

/* The scan has come to the end of its last range, and stays there. */
static void
stay_at_end(HybScan *so, bool forward)
{
	HybScanBatch *batch = so->batch;
	HybEdgeKind last = forward ? HYB_EDGE_END : HYB_EDGE_START;

	Assert(batch->nitems == 0 && batch->nkilled == 0);
	hyb_edge_set(&batch->low, last);
	hyb_edge_set(&batch->high, last);
	hyb_scan_arrays_save(&so->keys, batch->elems);
	batch->current = forward ? -1 : 0;
}

/* Claim and load the next batch of a parallel scan. */
static bool
next_claimed_batch(HybScan *so, bool forward)
{
	bool		cut = false;
	bool		empty = false;
	bool		early;

	leave_batch(so);
	switch (hyb_parallel_claim(so, &cut, &empty))
	{
		case HYB_CLAIM_FIRST:
			set_first_edge(so, forward);
			break;
		case HYB_CLAIM_NEXT:
			if (next_place(so, forward, cut, empty, so->batch->elems))
				break;
			hyb_parallel_done(so);
			pg_fallthrough;
		case HYB_CLAIM_NONE:
			stay_at_end(so, forward);
			return false;
	}
	early = hyb_parallel_leave_early(so, forward);
	hyb_batch_load(so, forward);
	if (!early)
		hyb_parallel_leave(so, forward, hyb_batch_is_empty_range(so->batch));
	return true;
}

/*
 * Process the keys and load the first batch.  Returns false if the keys contradict
 * each other, or other processes have claimed all there is.
 */
static bool
start_scan(HybScan *so, bool forward)
{
	IndexScanDesc scan = so->scan;
	HybScanKeys *keys = &so->keys;
	HybScanMode *mode = &so->mode;
	bool		mvcc;

	hyb_scan_preprocess(keys);
	so->started = true;
	/* scan_chains.c compares keys */
	mode->need_values = scan->xs_want_itup || keys->nquals > 0 ||
		(so->ix->desc->chains && !mode->whole_leaves && !hyb_keys_are_one(keys));
	mode->locks = hyb_scan_locks(so);

	/*
	 * In recovery a pin keeps no change of VACUUM out.  Estimates of the
	 * planner, which have another kind of snapshot, do with the pin.
	 */
	mvcc = scan->xs_snapshot != NULL && IsMVCCSnapshot(scan->xs_snapshot);
	mode->check_heap = mvcc && scan->xs_want_itup && scan->xactStartedInRecovery;
	mode->need_pins = !mvcc || (scan->xs_want_itup && !mode->check_heap);

	/*
	 * The executor compares the rows that a look-up with a snapshot for
	 * statements or a bitmap scan returns.  Other scans return only rows that
	 * have the keys.  So do look-ups of several keys, since a row might be
	 * returned for two of them.
	 */
	mode->rechecks = so->ix->desc->truncated &&
		(mode->whole_leaves ||
		 (hyb_keys_are_one(keys) && !mode->need_values && !mode->need_pins));
	if (keys->empty)
		return false;

	/* contexts that not every scan needs */
	if (keys->nquals > 0 && keys->qual_context == NULL)
		keys->qual_context = AllocSetContextCreate(so->context,
												   "hybrid scan qualifiers",
												   ALLOCSET_SMALL_SIZES);
	if (scan->xs_want_itup && so->tuples.context == NULL)
		hyb_tuple_init(so);
	so->tuples.window_rows = scan->xs_want_itup && keys->nquals == 0 &&
		so->tuples.fixed != NULL ? HYB_WINDOW_FIRST : 0;

	hyb_ahead_begin(so, forward);
	hyb_scan_arrays_first(keys, forward);
	assert_valid(so);
	mode->empty_ranges = 0;
	mode->jump_pause = 0;
	mode->jumping = false;
	mode->hop_pause = mode->hop_wait = 0;
	begin_range(so, forward);
	hyb_parallel_begin(so);
	if (mode->share.shared != NULL)
		return next_claimed_batch(so, forward);
	set_first_edge(so, forward);
	hyb_batch_load(so, forward);
	return true;
}

/*
 * Load the batch that follows the current one.  Returns false at the end of the last
 * range; the scan then stays there, so that it can turn round.
 */
static bool
next_batch(HybScan *so, bool forward)
{
	HybScanBatch *batch = so->batch;
	bool		cut = !batch->log.complete;
	bool		empty = hyb_batch_is_empty_range(batch);

	if (so->mode.share.shared != NULL && hyb_parallel_is_at_end(so, forward))
		return next_claimed_batch(so, forward);
	hyb_edge_copy(&so->from, forward ? &batch->high : &batch->low);
	leave_batch(so);
	if (!next_place(so, forward, cut, empty, batch->elems))
	{
		stay_at_end(so, forward);
		return false;
	}
	hyb_batch_load(so, forward);
	return true;
}

/* Load a batch that starts at the current item, which is a dynamic one. */
static void
reload_at_item(HybScan *so, bool forward)
{
	HybScanBatch *batch = so->batch;
	const HybFetchedItem *entry;
	HybPos		pos;

	Assert(so->mode.need_pins && !batch->log_held);
	entry = hyb_batch_log_item(batch, &batch->items[batch->current]);
	pos = hyb_fetched_pos(so->ix, &batch->log, entry);
	if (!forward)
		pos = hyb_pos_above(&pos);
	hyb_edge_set_pos(&so->from, &pos);
	leave_batch(so);
	hyb_parallel_stay(so);
	hyb_batch_load(so, forward);
}

/* ---- returning items ---- */

typedef enum HybReturn
{
	HYB_RETURN_ITEM,
	HYB_RETURN_SKIP,			/* dead, or not visible: go on */
	HYB_RETURN_RELOAD			/* the entry moved: load a batch at it */
} HybReturn;

/* Make the current item the scan's result. */
static HybReturn
return_item(HybScan *so)
{
	IndexScanDesc scan = so->scan;
	const HybScanItem *item = &so->batch->items[so->batch->current];

	Assert(so->batch->current >= 0 && so->batch->current < so->batch->nitems);
	Assert(ItemPointerIsValid(unconstify(ItemPointerData *, &item->tid)) || hyb_is_damaged());
	if (so->mode.need_pins)
	{
		if (item->source < 0 && !so->batch->log_held)
		{
			const HybFetchedItem *entry = hyb_batch_log_item(so->batch, item);
			HybPinResult pin = hyb_delta_pin_entry(so->ix, &entry->ref,
												   &entry->tid,
												   &so->delta_pin);

			if (pin != HYB_PIN_HOLDS)
				return pin == HYB_PIN_DEAD ? HYB_RETURN_SKIP : HYB_RETURN_RELOAD;
			Assert(BufferIsValid(so->delta_pin));
		}
		else
		{
			release_delta_pin(so);
			Assert(so->batch->proven &&
				   (item->source < 0 ||
					BufferIsValid(so->batch->parts[item->part]->pin)));
		}
	}
	else if (so->mode.check_heap)
	{
		HYB_ASSERT_NO_LWLOCK();
		if (!hyb_row_exists(scan->heapRelation, &item->tid, scan->xs_snapshot, NULL))
			return HYB_RETURN_SKIP;
	}

	scan->xs_heaptid = item->tid;
	scan->xs_recheck = so->mode.rechecks;
	if (scan->xs_want_itup)
		hyb_tuple_form(so, item);
	return HYB_RETURN_ITEM;
}

/* The scan has come to the batch's current item: ask for what follows. */
static inline void
look_ahead(HybScan *so, bool forward)
{
	so->mode.ahead.returned++;
	if (unlikely(so->mode.ahead.wait-- <= 0))
		hyb_ahead_look(so, forward);
}

/* The next row of the general way. */
static bool
next_of_batches(IndexScanDesc scan, bool forward)
{
	HybScan    *so = general_scan(scan);
	MemoryContext old = MemoryContextSwitchTo(so->context);
	bool		found = true;

	if (!so->started)
		found = start_scan(so, forward);
	else if (so->keys.empty)
		found = false;
	else if (scan->kill_prior_tuple &&
			 so->batch->current >= 0 && so->batch->current < so->batch->nitems)
		hyb_batch_kill(so->batch, so->batch->current);

	while (found)
	{
		HybScanBatch *batch = so->batch;
		int			next = batch->current + (forward ? 1 : -1);
		HybReturn	result;

		if (next < 0 || next >= batch->nitems)
		{
			if (forward &&
				hyb_batch_merge(so, batch, next + HYB_SCAN_MERGE_CHUNK))
				continue;
			found = next_batch(so, forward);
			continue;
		}
		batch->current = next;
		look_ahead(so, forward);
		result = return_item(so);
		if (result == HYB_RETURN_ITEM)
			break;
		if (result == HYB_RETURN_RELOAD)
			reload_at_item(so, forward);
	}

	MemoryContextSwitchTo(old);
	return found;
}

/*
 * The executor wants more of the short way than the next row: have the general way
 * stand where the short way does.  Entries that came meanwhile do not matter, since no
 * snapshot of the scan sees their rows.
 */
static pg_noinline void
leave_short_way(IndexScanDesc scan)
{
	HybLookUp  *look = scan->opaque;
	HybScan    *so = general_scan(scan);
	ItemPointer last = look->next > 0 ? &look->items[look->next - 1].tid : NULL;
	bool		more = true;
	int			order = -1;

	Assert(look->way == HYB_WAY_SHORT && !so->started);
	Assert(!scan->kill_prior_tuple);
	look->way = HYB_WAY_GENERAL;
	so->counted = true;
	while (last != NULL && order < 0 && (more = next_of_batches(scan, true)))
		order = ItemPointerCompare(&scan->xs_heaptid, last);
	/* the entry may have gone */
	if (order > 0)
		so->batch->current--;
	while (look->ended && more)
		more = next_of_batches(scan, true);
}

bool
hyb_amgettuple(IndexScanDesc scan, ScanDirection dir)
{
	HybLookUp  *look = scan->opaque;
	bool		forward = ScanDirectionIsForward(dir);

	if (look->way == HYB_WAY_OPEN)
	{
		look->next = 0;
		look->ended = false;
		look->way = forward && hyb_look_up(scan, look) ? HYB_WAY_SHORT : HYB_WAY_GENERAL;
	}
	else if (look->way == HYB_WAY_SHORT)
	{
		if (scan->kill_prior_tuple && look->next > 0)
			hyb_look_up_kill(scan, look);
		scan->kill_prior_tuple = false;
		if (!forward)
			leave_short_way(scan);
	}
	if (look->way == HYB_WAY_GENERAL)
		return next_of_batches(scan, forward);

	scan->xs_recheck = false;
	look->ended = look->next == look->n;
	if (!look->ended)
		scan->xs_heaptid = look->items[look->next++].tid;
	hyb_look_up_assert_valid(look);
	return !look->ended;
}

/* That of hybrid_hot, whose entries may be stale. */
bool
hyb_chains_gettuple(IndexScanDesc scan, ScanDirection dir)
{
	HybLookUp  *look = scan->opaque;

	while (hyb_amgettuple(scan, dir))
	{
		if (look->way == HYB_WAY_SHORT)
		{
			scan->xs_recheck = true;
			return true;
		}
		if (hyb_chains_take(look->scan))
			return true;
	}
	if (look->scan != NULL)
		hyb_chains_rescan(look->scan);
	return false;
}

/* ---- bitmap scans ---- */

/*
 * Where looking is worth it, a backend looks in each scan of the index; where it
 * is not, more and more seldom, and no further than LOOK_ENOUGH entries.
 */
#define MAX_INTERVAL	32
#define LOOK_ENOUGH		1024

/* What a bitmap scan that looks for dead entries has found. */
typedef struct DeadLook
{
	bool		looking;
	int64		looked;			/* entries looked at, */
	int64		dead;			/* and those of them that are dead */
} DeadLook;

static void
release_habits(void *piece)
{
	hyb_forget_stretches(piece);
	hyb_hints_forget(piece);
}

HybCachePiece hyb_scan_habits_piece = {
	.size = sizeof(HybScanHabits),
	.release = release_habits
};

void
hyb_scan_init(void)
{
	hyb_cache_add_piece(&hyb_scan_habits_piece);
}

/* Does this scan look for dead entries? */
static bool
looks_for_dead(const HybScan *so)
{
	HybScanHabits *habits;

	/* hints are for scans that heed them, and there are none in recovery */
	if (!so->scan->ignore_killed_tuples)
		return false;
	habits = hyb_scan_habits(so->ix);
	if (habits->dead_wait > 0)
	{
		habits->dead_wait--;
		return false;
	}
	return true;
}

static inline bool
looking_pays(const DeadLook *look)
{
	return look->dead * HYB_DEAD_WORTH_IT >= look->looked;
}

/* Find dead entries of the batch. */
static void
find_dead(HybScan *so, DeadLook *look)
{
	HybScanBatch *batch = so->batch;
	HybDeadCheck check;
	int64		read = pgBufferUsage.shared_blks_read;

	hyb_dead_begin(&check, so->ix->rel);
	for (int i = 0; i < batch->nitems && look->looking; i++)
	{
		look->looked++;
		if (hyb_dead_tid(&check, &batch->items[i].tid))
		{
			hyb_batch_kill(batch, i);
			look->dead++;
		}
		/* a scan of several indexes may need few of the pages that are read */
		look->looking = pgBufferUsage.shared_blks_read == read &&
			(look->looked < LOOK_ENOUGH || looking_pays(look));
	}
	hyb_dead_end(&check);
}

/* Note at the end when it is worth looking again. */
static void
note_look(const HybScan *so, const DeadLook *look)
{
	HybScanHabits *habits = hyb_scan_habits(so->ix);

	Assert(look->dead <= look->looked);
	if (look->looked == 0)
		return;
	if (looking_pays(look))
		habits->dead_interval /= 4;
	else
		habits->dead_interval = Min(Max(habits->dead_interval, 1) * 2, MAX_INTERVAL);
	habits->dead_wait = habits->dead_interval;
}

/* The TIDs of a batch, but for those found dead; returns how many. */
static int
add_to_bitmap(const HybScanBatch *batch, TIDBitmap *tbm, bool recheck)
{
	ItemPointerData tids[BITMAP_CHUNK];
	int			n = 0;

	for (int i = 0; i < batch->nitems; i++)
	{
		if (batch->items[i].killed)
			continue;
		tids[n++] = batch->items[i].tid;
		if (n == BITMAP_CHUNK)
		{
			tbm_add_tuples(tbm, tids, n, recheck);
			n = 0;
		}
	}
	if (n > 0)
		tbm_add_tuples(tbm, tids, n, recheck);
	return batch->nitems - batch->nkilled;
}

int64
hyb_amgetbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	HybScan    *so = general_scan(scan);
	MemoryContext old = MemoryContextSwitchTo(so->context);
	DeadLook	look = {.looking = looks_for_dead(so)};
	int64		total = 0;
	bool		found;

	/* the server begins a scan for one of both */
	Assert(!so->started || so->mode.whole_leaves);
	so->mode.whole_leaves = true;
	found = start_scan(so, true);

	/* The heap is read after the scan, under an MVCC snapshot. */
	Assert(!scan->xs_want_itup);

	while (found)
	{
		HybScanBatch *batch = so->batch;

		if (look.looking && batch->nitems > 0)
			find_dead(so, &look);
		total += add_to_bitmap(batch, tbm, so->mode.rechecks || so->ix->desc->chains);
		found = next_batch(so, true);
	}
	note_look(so, &look);

	MemoryContextSwitchTo(old);
	return total;
}

/* ---- mark and restore ---- */

void
hyb_ammarkpos(IndexScanDesc scan)
{
	HybLookUp  *look = scan->opaque;
	HybScan    *so;

	if (look->way == HYB_WAY_SHORT)
		leave_short_way(scan);
	so = look->scan;
	if (so == NULL)
		return;
	drop_mark(so);
	if (!so->started || so->keys.empty)
		return;
	so->marked = true;
	so->mark_in_batch = true;
	so->mark_current = so->batch->current;
}

void
hyb_amrestrpos(IndexScanDesc scan)
{
	HybLookUp  *look = scan->opaque;
	HybScan    *so = look->scan;

	if (so == NULL || !so->marked)
		return;
	Assert(look->way == HYB_WAY_GENERAL);
	release_delta_pin(so);
	if (!so->mark_in_batch)
	{
		HybScanBatch *batch = so->batch;

		hyb_batch_finish(so, batch);
		hyb_ahead_new_batch(&so->mode.ahead);
		so->batch = so->mark_batch;
		so->mark_batch = batch;
		so->mark_in_batch = true;
		hyb_scan_arrays_restore(&so->keys, so->batch->elems);
	}
	so->batch->current = so->mark_current;
	Assert(so->mark_current >= -1 && so->mark_current <= so->batch->nitems);
	assert_valid(so);
}

/* Where keys are stored exactly every column can be returned. */
bool
hyb_amcanreturn(Relation index, int attno)
{
	return !hyb_index_is_truncated(index);
}
