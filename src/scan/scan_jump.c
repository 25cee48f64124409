/*
 * scan_jump.c
 *		From an empty range to the next one that may have entries.
 *
 * A scan with arrays reads a range for each setting of them.  Where few of the
 * settings exist that is a search each for nothing.  So after some empty ranges
 * in a row the scan asks all runs for the first key behind the range at hand,
 * above it or, backward, below it, and goes on with the first setting at that
 * key or behind it: nothing lies in the ranges between.  From there it jumps on,
 * until it is not worth it.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "run/run.h"
#include "scan/scan.h"

/* Empty ranges in a row, before a jump is tried. */
#define JUMP_AFTER			4

/*
 * A jump to the very next setting was not worth its search.  Then more empty
 * ranges are read before the next one, twice as many each time.
 */
#define JUMP_PAUSE			4
#define JUMP_PAUSE_MAX		64

/* The first key behind the range at hand; false if there is none. */
static bool
first_key_behind(HybScan *so, bool forward, HybBuf *key)
{
	HybIndex   *ix = so->ix;
	HybPos		max = {.tie = HYB_AFTER};
	HybPos		min = {.tie = HYB_BEFORE};
	HybFetch	fetch = {
		.lo = forward ? &so->end : &min,
		.hi = forward ? &max : &so->start,
		.backward = !forward,
		.limit = 1
	};
	HybDynBatch batch = {0};
	HybVersion	version;
	bool		found;
	bool		current;

	do
	{
		CHECK_FOR_INTERRUPTS();
		hyb_version_capture(ix, &version);
		found = false;
		current = true;
		for (int i = 0; i <= version.nlevels && current; i++)
		{
			const HybDynItem *item;
			const uint8 *bytes;
			int			cmp;

			current = hyb_run_fetch(ix, &version,
									i < version.nlevels ? i : HYB_RUN_DYNAMIC,
									&fetch, &batch);
			if (batch.nitems == 0)
				continue;
			item = &batch.items[0];
			bytes = batch.keys.data + item->key_off;
			cmp = found ? hyb_key_compare(ix->desc, bytes, item->keylen,
										  key->data, key->len) : 0;
			if (found && (forward ? cmp >= 0 : cmp <= 0))
				continue;
			found = true;
			key->len = 0;
			hyb_buf_append(key, bytes, item->keylen);
		}
	} while (!current);
	hyb_dyn_batch_free(&batch);
	return found;
}

/*
 * Is the setting further on than `elems`?  *near says that only the last array
 * has moved, by one.
 */
static bool
is_further(const HybScan *so, const int *elems, bool forward, bool *near)
{
	int			last = so->nprefix - 1;

	Assert(so->narrays > 0);
	while (so->prefix[last].array == NULL)
		last--;
	for (int i = 0; i <= last; i++)
	{
		int			moved = so->prefix[i].elem - elems[i];

		if (moved == 0)
			continue;
		if (!forward)
			moved = -moved;
		*near = i == last && moved == 1;
		return moved > 0;
	}
	return false;
}

static bool
jump(HybScan *so, bool forward, const int *elems)
{
	HybBuf		key = {0};
	bool		more;
	bool		near = false;

	Assert(so->narrays > 0 && !so->locks && !so->ix->desc->truncated);
	more = first_key_behind(so, forward, &key);
	if (more)
	{
		if (hyb_key_split(so->ix->desc, key.data, key.len, so->nprefix,
						  so->vals) == 0)
			hyb_corrupted(so->ix->rel, HYB_METAPAGE_BLKNO,
						  "An entry is not well formed.");
		more = hyb_scan_arrays_seek(so, so->vals, forward);
	}
	hyb_buf_free(&key);
	if (!more)
	{
		hyb_scan_arrays_restore(so, elems);
		return false;
	}

	/* what comes next may have this very prefix, outside of the range */
	if (!is_further(so, elems, forward, &near))
	{
		hyb_scan_arrays_restore(so, elems);
		near = true;
		more = hyb_scan_arrays_next(so, forward);
	}
	so->jumping = !near;
	so->jump_pause = near ?
		Min(Max(so->jump_pause * 2, JUMP_PAUSE), JUMP_PAUSE_MAX) : 0;
	so->empty_ranges = -so->jump_pause;
	return more;
}

bool
hyb_scan_next_range(HybScan *so, bool forward, bool empty, const int *elems)
{
	if (so->narrays == 0)
		return false;

	/*
	 * What comes next is not known where leaves do not keep keys; and each
	 * range is to be locked, also those without entries.
	 */
	if (empty && !so->ix->desc->truncated && !so->locks)
		so->empty_ranges++;
	else
		so->empty_ranges = Min(so->empty_ranges, 0);
	if (so->jumping || so->empty_ranges >= JUMP_AFTER)
		return jump(so, forward, elems);
	return hyb_scan_arrays_next(so, forward);
}
