/*
 * scan_parallel.c
 *		A scan by several processes: each claims one batch after the other.
 *
 * The processes share the place where the next batch begins: an edge, and the
 * setting of the arrays that its range is of.  A process that needs a batch claims
 * that place.  Only the claimant looks at the place or changes it
 * (HYB_PARALLEL_CLAIMED), until it leaves the place where the next claim begins.
 * What lies between the two belongs to the claimant.  Claims are in order and do
 * not overlap, so each process returns its items in order.
 *
 * Mostly a claim ends at the fence of the oldest level's leaf there.  A separator
 * tells that fence, so the claimant leaves the place before it reads the leaf.
 * The fence is a position like any other.  Merges may replace that leaf meanwhile,
 * but the claim lies between two positions, and its batches end there at the latest
 * (`within`).  If no separator lies ahead in the range, the claimant loads the batch
 * first.  The claim then ends where the batch does.
 *
 * A batch may be loaded anew in the middle, by another version, and then end
 * elsewhere.  The process goes on up to the end of its claim, and claims nothing
 * before it has got there.
 *
 * nbtree's parallel scans work like this (nbtree.c, _bt_parallel_seize), with a page
 * in place of the position.  Pages do not follow one another here.
 */
#include "base/compat.h"

#include "access/relscan.h"
#include "miscadmin.h"
#include "scan/index_scan.h"
#include "scan/scan.h"
#include "storage/condition_variable.h"
#include "storage/spin.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

typedef enum HybParallelState
{
	HYB_PARALLEL_NEW,			/* not begun */
	HYB_PARALLEL_CLAIMED,		/* a process finds out where the next batch
								 * begins */
	HYB_PARALLEL_READY,			/* it begins at `kind`, `pos` */
	HYB_PARALLEL_DONE			/* there is none */
} HybParallelState;

typedef struct HybParallelScan
{
	slock_t		lock;			/* of `state` */
	HybParallelState state;
	ConditionVariable changed;	/* READY or DONE */

	/* READY; written and read by the claimant */
	HybEdgeKind kind;
	HybPos		pos;			/* HYB_EDGE_KEY; its key is `key` */
	bool		cut;			/* the last batch ended for its size, */
	bool		empty;			/* or was a whole range, and had nothing */
	int			elems[INDEX_MAX_KEYS];
	uint8		key[HYB_MAX_ENTRY_SIZE];
} HybParallelScan;

Size
HYB_ESTIMATE_PARALLEL_SCAN(hyb_amestimateparallelscan)
{
	return sizeof(HybParallelScan);
}

void
hyb_aminitparallelscan(void *target)
{
	HybParallelScan *shared = target;

	SpinLockInit(&shared->lock);
	shared->state = HYB_PARALLEL_NEW;
	ConditionVariableInit(&shared->changed);
}

void
hyb_amparallelrescan(IndexScanDesc scan)
{
	HybParallelScan *shared = HYB_PARALLEL_TARGET(scan);

	SpinLockAcquire(&shared->lock);
	shared->state = HYB_PARALLEL_NEW;
	SpinLockRelease(&shared->lock);
}

void
hyb_parallel_begin(HybScan *so)
{
	if (so->scan->parallel_scan == NULL)
		return;
	so->mode.share.shared = HYB_PARALLEL_TARGET(so->scan);
	so->mode.share.within = false;
}

static void
leave_claim(HybParallelScan *shared, HybParallelState state)
{
	SpinLockAcquire(&shared->lock);
	Assert(shared->state == HYB_PARALLEL_CLAIMED);
	shared->state = state;
	SpinLockRelease(&shared->lock);
	if (state == HYB_PARALLEL_DONE)
		ConditionVariableBroadcast(&shared->changed);
	else
		ConditionVariableSignal(&shared->changed);
}

/* Wait until the place is not claimed, and claim it. */
static HybParallelState
claim(HybParallelScan *shared)
{
	static uint32 wait_batch = 0;
	HybParallelState state;

	if (wait_batch == 0)
		wait_batch = HYB_WAIT_EVENT("HybridParallelScan");
	for (;;)
	{
		SpinLockAcquire(&shared->lock);
		state = shared->state;
		if (state == HYB_PARALLEL_NEW || state == HYB_PARALLEL_READY)
			shared->state = HYB_PARALLEL_CLAIMED;
		SpinLockRelease(&shared->lock);
		if (state != HYB_PARALLEL_CLAIMED)
			break;
		ConditionVariableSleep(&shared->changed, wait_batch);
	}
	ConditionVariableCancelSleep();
	return state;
}

HybClaim
hyb_parallel_claim(HybScan *so, bool *cut, bool *empty)
{
	HybParallelScan *shared = so->mode.share.shared;
	int		   *elems = so->batch->elems;

	HYB_ASSERT_NO_LWLOCK();
	so->mode.share.within = false;
	switch (claim(shared))
	{
		case HYB_PARALLEL_NEW:
			return HYB_CLAIM_FIRST;
		case HYB_PARALLEL_DONE:
			return HYB_CLAIM_NONE;
		default:
			break;
	}
	if (shared->kind == HYB_EDGE_KEY)
	{
		HybPos		pos = shared->pos;

		pos.key = shared->key;
		hyb_edge_set_pos(&so->from, &pos);
	}
	else
		hyb_edge_set(&so->from, shared->kind);
	Assert(!shared->empty || shared->kind != HYB_EDGE_KEY);
	*cut = shared->cut;
	*empty = shared->empty;
	memcpy(elems, shared->elems, so->keys.nprefix * sizeof(int));
	hyb_scan_arrays_restore(&so->keys, elems);
	return HYB_CLAIM_NEXT;
}

/* Let the other processes go on where the claim ends. */
static void
leave_at_end(HybScan *so, bool cut, bool empty)
{
	HybParallelScan *shared = so->mode.share.shared;
	const HybScanEdge *end = &so->mode.share.end;

	shared->kind = end->kind;
	if (end->kind == HYB_EDGE_KEY)
	{
		Assert(end->pos.len <= sizeof(shared->key));
		shared->pos = end->pos;
		memcpy(shared->key, end->pos.key, end->pos.len);
	}
	shared->cut = cut;
	shared->empty = empty;
	hyb_scan_arrays_save(&so->keys, shared->elems);
	leave_claim(shared, HYB_PARALLEL_READY);
}

bool
hyb_parallel_leave_early(HybScan *so, bool forward)
{
	HybVersion	version;
	HybPos	   *fence = &so->descent.fence;
	HybSought	sought = {
		.level = 0,
		.pos = hyb_edge_pos(&so->keys, &so->from),
		.backward = !forward,
		.want_fence = true,
		.only_fence = true
	};

	/* single keys, and the first batches of many ranges, are soon loaded */
	if (so->keys.point || (so->keys.narrays > 0 && so->from.kind != HYB_EDGE_KEY))
		return false;
	hyb_version_capture(so->ix, &version);
	if (version.levels[0].height <= 1 ||
		!hyb_static_descend(so->ix, &version, &sought, &so->descent))
		return false;
	if (forward ? hyb_pos_compare(so->ix->desc, fence, &so->keys.end) >= 0 :
		hyb_pos_compare(so->ix->desc, fence, &so->keys.start) <= 0)
		return false;

	hyb_edge_set_pos(&so->mode.share.end, fence);
	so->mode.share.within = true;
	leave_at_end(so, false, false);
	HYB_POINT("claim-left");
	return true;
}

void
hyb_parallel_leave(HybScan *so, bool forward, bool empty)
{
	HybScanBatch *batch = so->batch;

	hyb_edge_copy(&so->mode.share.end, forward ? &batch->high : &batch->low);
	so->mode.share.within = false;
	leave_at_end(so, !batch->log.complete, empty);
}

void
hyb_parallel_done(HybScan *so)
{
	leave_claim(so->mode.share.shared, HYB_PARALLEL_DONE);
}

const HybScanEdge *
hyb_parallel_end(const HybScan *so)
{
	return so->mode.share.within ? &so->mode.share.end : NULL;
}

void
hyb_parallel_stay(HybScan *so)
{
	if (so->mode.share.shared != NULL)
		so->mode.share.within = true;
}

bool
hyb_parallel_is_at_end(const HybScan *so, bool forward)
{
	const HybScanEdge *end = &so->mode.share.end;
	const HybScanEdge *far = forward ? &so->batch->high : &so->batch->low;

	if (!so->mode.share.within)
		return true;
	Assert(far->kind != HYB_EDGE_KEY || end->kind != HYB_EDGE_KEY || !so->ix->desc->all_mem ||
		   (forward ? hyb_pos_compare(so->ix->desc, &far->pos, &end->pos) <= 0 :
			hyb_pos_compare(so->ix->desc, &far->pos, &end->pos) >= 0));
	if (far->kind != end->kind)
		return false;
	return far->kind != HYB_EDGE_KEY ||
		hyb_pos_compare(so->ix->desc, &far->pos, &end->pos) == 0;
}
