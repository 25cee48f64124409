/*
 * scan_hot.c
 *		Look-ups of single keys that need no leaf.
 *
 * A batch that is all of a range of one whole key asks for a hot copy
 * (hot/hot.h) before it reads leaves, and publishes what it has read of
 * them.  What that is good for is returning rows under an MVCC snapshot: values
 * are in leaves, and so are pins.
 */
#include "base/compat.h"

#include "scan/scan.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

bool
hyb_scan_may_be_hot(const HybScan *so, const HybScanEdge *near, bool forward)
{
	return so->point_hash != 0 && !so->need_values && !so->need_pins &&
		so->rechecks == so->ix->desc->truncated && !so->whole_leaves && so->share == NULL &&
		so->scan->ignore_killed_tuples &&
		(hyb_hot_memory_kb > 0 || hyb_hot_memory_changed) &&
		near->kind == (forward ? HYB_EDGE_START : HYB_EDGE_END) &&
		!HYB_SNAPSHOTS_EXPIRE();
}

static inline HybHotKey
hot_key(const HybScan *so)
{
	HybHotKey	key = {
		.bytes = so->start.key,
		.len = so->start.len,
		.hash = so->point_hash
	};

	return key;
}

HybHotAnswer
hyb_scan_ask_hot(HybScan *so)
{
	HybScanBatch *batch = so->batch;
	HybScanPart *part = batch->parts[0];
	HybHotKey	key = hot_key(so);
	ItemPointerData tid;
	HybHotAnswer answer = hyb_hot_find(so->ix, &key, &tid);

	if (answer != HYB_HOT_HIT)
		return answer;
	Assert(!so->need_pins && !so->need_values);
	Assert(part->tids_alloc >= 1 && !BufferIsValid(part->pin));
	so->hot_hits++;
	batch->hot = true;
	batch->nparts = 1;
	part->mode = HYB_STATIC_TIDS;
	part->block = InvalidBlockNumber;
	part->first = part->next = part->tids_base = 0;
	part->last = part->tids_end = 1;
	part->tids[0] = tid;
	part->has_dead = false;
	return answer;
}

void
hyb_scan_publish_hot(HybScan *so, uint64 gate)
{
	const HybScanBatch *batch = so->batch;
	HybHotKey	key = hot_key(so);
	const ItemPointerData *tid = NULL;

	for (int i = 0; i < batch->nparts; i++)
	{
		const HybScanPart *part = batch->parts[i];

		if (part->mode == HYB_STATIC_NONE)
			continue;
		Assert(part->mode == HYB_STATIC_TIDS);
		for (int item = part->first - part->tids_base;
			 item < part->last - part->tids_base; item++)
		{
			if (part->has_dead && part->dead[item])
				continue;
			if (tid != NULL)
				return;
			tid = &part->tids[item];
		}
	}
	if (tid != NULL)
		hyb_hot_publish(so->ix, &key, tid, gate);
}

void
hyb_scan_forget_hot(const HybScan *so)
{
	HybHotKey	key = hot_key(so);

	hyb_hot_forget(so->ix, &key);
}
