/*
 * scan.c
 *		The index scan functions of the access method.
 *
 * A scan is a sequence of ranges (scan_keys.c, scan_range.c), each read in
 * batches (scan_batch.c).  The current batch is an array of items with an
 * index; a step off either end starts a batch at that edge, in the direction
 * of the step, so that turning round in the middle needs nothing else.
 *
 * Interlock with VACUUM.  An index-only scan, or a scan with a non-MVCC
 * snapshot, may return an entry only while a pin on the entry's page keeps
 * VACUUM from finishing, and the version was proven current after the pin was
 * taken: static items are covered by the batch's pin on their leaf, a dynamic
 * item's delta page is pinned when it is returned.  If the entry is dead by
 * then, it is left out; if it has moved, the batch is loaded anew at the item's
 * position.  On a standby no pin holds anything up, and each TID is checked
 * against the heap instead.
 *
 * Marking remembers an index into the current batch; when the scan leaves a
 * batch that holds the mark, the batch is put aside whole and comes back on
 * restore.
 */
#include "base/compat.h"

#include "access/relscan.h"
#include "access/tableam.h"
#include "filter/filter_use.h"
#include "miscadmin.h"
#include "nodes/tidbitmap.h"
#include "pgstat.h"
#include "scan/scan.h"
#include "store/handle.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* TIDs handed to a bitmap at a time. */
#define BITMAP_CHUNK		256

/* Room for short keys, in which most buffers of a scan stay. */
#define SHORT_KEY			64

/*
 * The scan with its arrays, as long as the index has columns, and the first
 * space of the buffers that key processing fills while in key_context: all in
 * one chunk, since a scan is begun for every statement.
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
	so->ix = ix;
	so->context = ix->context;
	p = (char *) so + MAXALIGN(sizeof(HybScan));
	so->columns = (HybScanColumn *) p;
	so->prefix = (HybScanPrefix *) (p += columns);
	so->vals = (HybValue *) (p += prefix);
	p += vals;
	hyb_buf_init(&so->constants, p, SHORT_KEY, so->context);
	hyb_buf_init(&so->prefix_key, p + SHORT_KEY, SHORT_KEY, so->context);
	hyb_buf_init(&so->start_key, p + 2 * SHORT_KEY, SHORT_KEY, so->context);
	hyb_buf_init(&so->end_key, p + 3 * SHORT_KEY, SHORT_KEY, so->context);
	hyb_buf_init(&so->cut_key, p + 4 * SHORT_KEY, SHORT_KEY, so->context);
	return so;
}

IndexScanDesc
hyb_ambeginscan(Relation index, int nkeys, int norderbys)
{
	IndexScanDesc scan;
	MemoryContext context;
	MemoryContext old;
	HybScan    *so;

	/* amcanorderbyop is false */
	Assert(norderbys == 0 && nkeys >= 0);

	scan = RelationGetIndexScan(index, nkeys, norderbys);

	/*
	 * A context of our own: constraint checks begin and end a scan per row in
	 * a memory context that lives on.
	 */
	context = AllocSetContextCreate(CurrentMemoryContext, "hybrid scan",
									ALLOCSET_DEFAULT_SIZES);
	old = MemoryContextSwitchTo(context);
	so = create_scan(hyb_index_create_handle(index));
	so->scan = scan;
	so->batch = hyb_batch_create(so);
	so->delta_pin = InvalidBuffer;
	hyb_ahead_init(so);
	MemoryContextSwitchTo(old);

	scan->xs_itupdesc = RelationGetDescr(index);
	scan->xs_hitupdesc = RelationGetDescr(index);
	scan->opaque = so;
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
	HybScan    *so = (HybScan *) scan->opaque;

	release_delta_pin(so);
	hyb_ahead_end(so);
	hyb_batch_finish(so, so->batch);
	drop_mark(so);
	so->started = false;

	if (keys != NULL && scan->numberOfKeys > 0)
		memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
}

void
hyb_amendscan(IndexScanDesc scan)
{
	HybScan    *so = (HybScan *) scan->opaque;

	release_delta_pin(so);
	hyb_ahead_end(so);
	drop_mark(so);
	hyb_batch_finish(so, so->batch);
	hyb_resolve_end(so);
	MemoryContextDelete(so->context);
	scan->opaque = NULL;
}

/* ---- moving from batch to batch ---- */

static void
begin_range(HybScan *so)
{
	pgstat_count_index_scan(so->ix->rel);
	HYB_COUNT_SEARCH(so->scan);
	so->dyn_limit = HYB_SCAN_DYN_LIMIT;
	so->probe = hyb_filter_try(so->ix, hyb_scan_asker(so));
	if (so->ix->desc->truncated && !so->whole_leaves)
		so->static_limit = HYB_SCAN_RAW_LIMIT;
	else
		so->static_limit = so->whole_leaves || so->hop_last >= 0 ?
			HYB_LEAF_MAX_ITEMS : HYB_SCAN_STATIC_LIMIT;
}

/*
 * Over what the keys exclude, to where the next batch is to start.  If that is
 * beyond where the last one, `cut` short, could have got to, no more dynamic
 * entries are to be read for the next one than for the first.
 */
static inline void
hop(HybScan *so, bool forward, bool cut)
{
	if (so->hop_last < 0 || !hyb_hop_edge(so, &so->from, forward))
		return;
	HYB_COUNT_SEARCH(so->scan);
	if (cut)
		so->dyn_limit = HYB_SCAN_DYN_LIMIT;
}

/*
 * Let go of the current batch, so that so->batch can be loaded anew.  If it
 * holds the mark, another batch takes its place.
 */
static void
leave_batch(HybScan *so)
{
	release_delta_pin(so);
	hyb_ahead_new_batch(so);
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
 * From so->from, where a batch ended, `cut` short, or empty as a whole range,
 * the one of elems, on to where the next one begins.  Returns false if there is
 * none.
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
	begin_range(so);
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
	hyb_scan_arrays_save(so, batch->elems);
	batch->current = forward ? -1 : 0;
}

/* Load the next batch of a parallel scan that nobody else has claimed. */
static bool
next_claimed_batch(HybScan *so, bool forward)
{
	bool		cut = false;
	bool		empty = false;

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
			/* FALLTHROUGH */
		case HYB_CLAIM_NONE:
			stay_at_end(so, forward);
			return false;
	}
	if (hyb_parallel_leave_early(so, forward))
		hyb_batch_load(so, forward);
	else
	{
		hyb_batch_load(so, forward);
		hyb_parallel_leave(so, forward);
	}
	return true;
}

/*
 * Process the keys and load the first batch.  Returns false if the keys
 * contradict each other, or others have claimed all there is.
 */
static bool
start_scan(HybScan *so, bool forward)
{
	IndexScanDesc scan = so->scan;
	bool		mvcc;

	hyb_scan_preprocess(so);
	so->started = true;
	so->need_values = scan->xs_want_itup || so->nquals > 0;
	so->locks = hyb_scan_locks(so);

	/*
	 * Recovery may have let VACUUM's changes in whatever a pin said.
	 * Estimates of the planner, which have another kind of snapshot, do with
	 * the pin.
	 */
	mvcc = scan->xs_snapshot != NULL && IsMVCCSnapshot(scan->xs_snapshot);
	so->check_heap = mvcc && scan->xs_want_itup && scan->xactStartedInRecovery;
	so->need_pins = !mvcc || (scan->xs_want_itup && !so->check_heap);

	/*
	 * Who looks keys up with a snapshot for statements gets the rows that may
	 * have them, and compares; so do bitmap scans.  Others cannot, nor can
	 * who looks for several keys, of which one row may be taken for another
	 * one.
	 */
	so->rechecks = so->ix->desc->truncated &&
		(so->whole_leaves ||
		 (so->point && so->narrays == 0 && !so->need_values && !so->need_pins));
	if (so->empty)
		return false;

	/* contexts that not every scan needs */
	if (so->nquals > 0 && so->qual_context == NULL)
		so->qual_context = AllocSetContextCreate(so->context,
												 "hybrid scan qualifiers",
												 ALLOCSET_SMALL_SIZES);
	if (scan->xs_want_itup && so->tuple_context == NULL)
		hyb_tuple_init(so);
	so->window_rows = scan->xs_want_itup && so->nquals == 0 &&
		(so->fixed_tuple != NULL ? so->tuple_ints : so->tuple_plain) ?
		HYB_WINDOW_FIRST : 0;

	hyb_ahead_begin(so, forward);
	hyb_scan_arrays_first(so, forward);
	hyb_scan_assert_valid(so);
	so->empty_ranges = 0;
	so->jump_pause = 0;
	so->jumping = false;
	so->hop_pause = so->hop_wait = 0;
	begin_range(so);
	hyb_parallel_begin(so);
	if (so->share != NULL)
		return next_claimed_batch(so, forward);
	set_first_edge(so, forward);
	hyb_batch_load(so, forward);
	return true;
}

/*
 * Load the batch that follows the current one, whatever it holds.  Returns
 * false at the end of the last range; the scan then stays there, so that it
 * can turn round.
 */
static bool
next_batch(HybScan *so, bool forward)
{
	HybScanBatch *batch = so->batch;
	bool		cut = !batch->dyn.complete;
	bool		empty = hyb_batch_is_empty_range(batch);

	if (so->share != NULL && hyb_parallel_is_at_end(so, forward))
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
	const HybDynItem *entry;
	HybPos		pos;

	Assert(so->need_pins && !batch->dyn_held);
	entry = hyb_batch_dyn_item(batch, &batch->items[batch->current]);
	pos = hyb_pos_at(so->ix->desc, batch->dyn.keys.data + entry->key_off,
					 entry->keylen, entry->tid);
	if (!forward)
		ItemPointerInc(&pos.tid);
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
	if (so->need_pins)
	{
		if (item->source < 0 && !so->batch->dyn_held)
		{
			const HybDynItem *entry = hyb_batch_dyn_item(so->batch, item);
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
	else if (so->check_heap)
	{
		ItemPointerData tid = item->tid;

		HYB_ASSERT_NO_LWLOCK();
		if (!table_index_fetch_tuple_check(scan->heapRelation, &tid,
										   scan->xs_snapshot, NULL))
			return HYB_RETURN_SKIP;
	}

	scan->xs_heaptid = item->tid;
	scan->xs_recheck = so->rechecks;
	if (scan->xs_want_itup)
		hyb_tuple_form(so, item);
	return HYB_RETURN_ITEM;
}

/* Remember that the item returned last is dead to all. */
static void
kill_current(HybScan *so)
{
	HybScanBatch *batch = so->batch;

	if (batch->current >= 0 && batch->current < batch->nitems)
		hyb_batch_kill(batch, batch->current);
}

bool
hyb_amgettuple(IndexScanDesc scan, ScanDirection dir)
{
	HybScan    *so = (HybScan *) scan->opaque;
	bool		forward = ScanDirectionIsForward(dir);
	MemoryContext old = MemoryContextSwitchTo(so->context);
	bool		found = true;

	if (!so->started)
		found = start_scan(so, forward);
	else if (so->empty)
		found = false;
	else if (scan->kill_prior_tuple)
		kill_current(so);

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
		hyb_ahead(so, forward);
		result = return_item(so);
		if (result == HYB_RETURN_ITEM)
			break;
		if (result == HYB_RETURN_RELOAD)
			reload_at_item(so, forward);
	}

	MemoryContextSwitchTo(old);
	return found;
}

/* The TIDs of a batch, but for those found dead; returns how many. */
static int
add_to_bitmap(const HybScanBatch *batch, TIDBitmap *tbm, bool recheck)
{
	ItemPointerData tids[BITMAP_CHUNK];
	int			killed = 0;
	int			n = 0;

	for (int i = 0; i < batch->nitems; i++)
	{
		if (killed < batch->nkilled && batch->killed[killed] == i)
		{
			killed++;
			continue;
		}
		tids[n++] = batch->items[i].tid;
		if (n == BITMAP_CHUNK)
		{
			tbm_add_tuples(tbm, tids, n, recheck);
			n = 0;
		}
	}
	if (n > 0)
		tbm_add_tuples(tbm, tids, n, recheck);
	Assert(killed == batch->nkilled);	/* they ascend */
	return batch->nitems - killed;
}

int64
hyb_amgetbitmap(IndexScanDesc scan, TIDBitmap *tbm)
{
	HybScan    *so = (HybScan *) scan->opaque;
	MemoryContext old = MemoryContextSwitchTo(so->context);
	HybScanLook look;
	bool		looks = hyb_scan_looks(so, &look);
	bool		looking = looks;
	int64		total = 0;
	bool		found;

	/* the server begins a scan for one of both */
	Assert(!so->started || so->whole_leaves);
	so->whole_leaves = true;
	found = start_scan(so, true);

	/* The heap is read after the scan, under an MVCC snapshot. */
	Assert(!scan->xs_want_itup);

	while (found)
	{
		HybScanBatch *batch = so->batch;

		if (looking && batch->nitems > 0)
			looking = hyb_scan_find_dead(so, &look);
		total += add_to_bitmap(batch, tbm, so->rechecks);
		found = next_batch(so, true);
	}
	if (looks)
		hyb_scan_looked(so, &look);

	MemoryContextSwitchTo(old);
	return total;
}

/* ---- mark and restore ---- */

void
hyb_ammarkpos(IndexScanDesc scan)
{
	HybScan    *so = (HybScan *) scan->opaque;

	drop_mark(so);
	if (!so->started || so->empty)
		return;
	so->marked = true;
	so->mark_in_batch = true;
	so->mark_current = so->batch->current;
}

void
hyb_amrestrpos(IndexScanDesc scan)
{
	HybScan    *so = (HybScan *) scan->opaque;

	if (!so->marked)
		return;
	release_delta_pin(so);
	if (!so->mark_in_batch)
	{
		HybScanBatch *batch = so->batch;

		hyb_batch_finish(so, batch);
		hyb_ahead_new_batch(so);
		so->batch = so->mark_batch;
		so->mark_batch = batch;
		so->mark_in_batch = true;
		hyb_scan_arrays_restore(so, so->batch->elems);
	}
	so->batch->current = so->mark_current;
	Assert(so->mark_current >= -1 && so->mark_current <= so->batch->nitems);
	hyb_scan_assert_valid(so);
}

/* Where keys are stored exactly every column can be returned. */
bool
hyb_amcanreturn(Relation index, int attno)
{
	return !hyb_index_is_truncated(index);
}
