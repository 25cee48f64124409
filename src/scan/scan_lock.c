/*
 * scan_lock.c
 *		Predicate locks of scans in serializable transactions.
 *
 * A batch locks before it reads the log.  An entry that it does not find there is
 * appended later, and the insertion then finds the lock (insert/serializable.c).
 *
 * A range of entries that agree on their first columns is locked by these columns.
 * Such a lock is as narrow as the condition, and merges do not matter for it.
 * Other ranges of keys that begin alike are locked so if all that begins like that
 * lies in one leaf: a leaf may hold thousands of entries, if they compress well.
 * After MAX_KEY_LOCKS such locks on an index, by any of its scans, a transaction
 * goes on with leaves.  The server makes one lock on the index of more than
 * max_pred_locks_per_relation, and neighbours share leaves.
 *
 * For other ranges each batch locks the leaf of the oldest level that it lies in,
 * with the metapage locked, and only if its version is current.  A merge that
 * replaces the leaf hands its locks over with the metapage locked exclusively, and
 * switches the version before it unlocks it (merge/install.c).  So the merge hands
 * over each lock that was taken while the leaf was in the index.
 *
 * What hops pass over needs no lock: no entry there can satisfy the keys, now or
 * later.  What jumps pass over had no entries when they looked, so scans that lock
 * do not jump (scan_range.c).
 */
#include "base/compat.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "scan/scan.h"
#include "shared/index_cache.h"
#include "storage/predicate.h"
#include "tree/descend.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* Key locks that a transaction takes on an index before it goes on with leaves. */
#define MAX_KEY_LOCKS	16

/* Key locks that one range is cut into, at most. */
#define MAX_NEIGHBOURS	4

/* The count of key locks on the index that this transaction has taken. */
static int *
key_locks(const HybScan *so)
{
	HybScanHabits *habits = hyb_scan_habits(so->ix);
	TimestampTz transaction = GetCurrentTransactionStartTimestamp();

	if (habits->locked_by != transaction)
	{
		habits->locked_by = transaction;
		habits->key_locks = 0;
	}
	return &habits->key_locks;
}

bool
hyb_scan_locks(const HybScan *so)
{
	Snapshot	snapshot = so->scan->xs_snapshot;

	return IsolationIsSerializable() && snapshot != NULL && IsMVCCSnapshot(snapshot) &&
		!RelationUsesLocalBuffers(so->ix->rel);
}

static void
lock_key(HybScan *so, const uint8 *key, uint32 len)
{
	(*key_locks(so))++;
	PredicateLockPage(so->ix->rel, hyb_target_of_key(key, len), so->scan->xs_snapshot);
}

/* Lies all between two beginnings of keys in one leaf of the oldest level? */
static bool
in_one_leaf(const HybScan *so, const uint8 *from, const uint8 *to, uint32 len)
{
	HybPos		low = {.key = from,.len = len,.tie = HYB_BEFORE};
	HybPos		high = {.key = to,.len = len,.tie = HYB_AFTER};
	HybVersion	version;
	BlockNumber first;
	BlockNumber last;

	do
	{
		CHECK_FOR_INTERRUPTS();
		hyb_version_capture(so->ix, &version);
	} while (!hyb_target_of_pos(so->ix, &version, &low, false, &first) ||
			 !hyb_target_of_pos(so->ix, &version, &high, true, &last));
	return first == last;
}

/*
 * Lock the range by the bytes that both its ends begin with; by one more, each that
 * lies between the two, if these are few.
 */
static bool
lock_first_bytes(HybScan *so)
{
	const uint8 *low = so->keys.start.key;
	const uint8 *high = so->keys.end.key;
	uint32		n = Min(Min(so->keys.start.len, so->keys.end.len), HYB_TARGET_MAX_BYTES);
	uint32		len = 0;
	uint8		from[HYB_TARGET_MAX_BYTES];
	uint8		to[HYB_TARGET_MAX_BYTES];

	while (len < n && low[len] == high[len])
		len++;
	Assert(len == n || low[len] < high[len]);
	if (len < n && high[len] - low[len] < MAX_NEIGHBOURS)
		len++;
	if (len < HYB_TARGET_MIN_BYTES)
		return false;
	memcpy(from, low, len);
	memcpy(to, high, len);
	if (!in_one_leaf(so, from, to, len))
		return false;
	Assert(from[len - 1] <= to[len - 1] && to[len - 1] - from[len - 1] < MAX_NEIGHBOURS);
	for (int last = from[len - 1]; last <= to[len - 1]; last++)
	{
		from[len - 1] = last;
		lock_key(so, from, len);
	}
	return true;
}

bool
hyb_scan_lock_key(HybScan *so)
{
	const HybKeyDesc *desc = so->ix->desc;

	Assert(so->mode.locks);
	HYB_POINT("lock-key");
	if (!desc->exact || *key_locks(so) >= MAX_KEY_LOCKS)
		return false;
	if (so->keys.nprefix == 0 || so->keys.has_range)
		return desc->all_mem && lock_first_bytes(so);
	lock_key(so, so->keys.prefix_key.data, so->keys.prefix_key.len);
	return true;
}

bool
hyb_scan_lock_leaf(HybScan *so, const HybVersion *version, const HybPos *pos,
				   bool forward)
{
	HybMetaPage *meta;
	Buffer		metabuf;
	BlockNumber leaf;
	bool		current;

	Assert(so->mode.locks);
	if (!hyb_target_of_pos(so->ix, version, pos, !forward, &leaf))
		return false;
	HYB_POINT("lock-leaf");
	metabuf = hyb_meta_lock(so->ix, BUFFER_LOCK_SHARE, &meta);
	current = meta->version == version->version;
	HYB_POINT("lock-current");
	if (current)
		PredicateLockPage(so->ix->rel, leaf, so->scan->xs_snapshot);
	UnlockReleaseBuffer(metabuf);
	HYB_POINT("locked-leaf");
	return current;
}
