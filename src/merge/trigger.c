/*
 * trigger.c
 *		When to merge, and who does it.
 *
 * The ratio trigger is that of the Hybrid Index (Zhang et al., SIGMOD 2016,
 * section 5): merge when the dynamic stage has 1/merge_ratio of the static
 * stage's entries, so the share of work that a merge repeats is constant.
 *
 * But a merge here repeats work only for leaves that it rewrites, and a
 * workload that inserts at one end of the key range, or into a part of it,
 * leaves most of them alone.  So of the static stage only what the merge
 * before this one rewrote is counted: with random keys that is all of it, with
 * ascending keys next to nothing, and the log stays short.
 *
 * Steps of inserters are paced by what they insert: where the active
 * generation has outgrown its bound of twice the trigger, whoever fills a page
 * of the log merges HYB_PACE times as many entries.  So while a frozen
 * generation of F entries is merged, the active one grows by F / HYB_PACE at
 * most beyond the bound, however small the steps, and F stays below
 * 2 / (1 - 1 / HYB_PACE) triggers.
 */
#include "compat.h"

#include "access/xlog.h"
#include "dynamic/progress.h"
#include "dynamic/slot.h"
#include "merge/learn.h"
#include "merge/worker.h"
#include "miscadmin.h"
#include "page/settings.h"
#include "page/meta.h"
#include "utils/rel.h"

/*
 * Inserters do steps themselves when the active generation is this many times
 * what triggers a merge: the worker does not keep up.
 */
#define HYB_HARD_FACTOR		2

/* Entries that an inserter merges then for each one that was inserted. */
#define HYB_PACE			4

/*
 * The smaller an index, the more often an entry of it has been merged by the
 * time that it is large: merges of size n, n + n/r, ... repeat r entries' work
 * for each new one all along.  While it is small, and merges rewrite most of
 * it, a dynamic stage of so many times the share costs few bytes; it stays at
 * so many entries until the share has reached that.
 */
#define HYB_SMALL_FACTOR	2.5
#define HYB_SMALL_ENTRIES	65536

typedef struct MergeNeed
{
	bool		unfinished;		/* a generation is frozen or being freed */
	bool		wanted;			/* the active generation should be frozen */
	bool		overdue;		/* it has outgrown the hard bound */
	bool		learnable;		/* a merge may learn dictionaries */
	uint64		page_entries;	/* entries of one of its pages */
	uint64		merged;			/* entries merged since the index was built */
} MergeNeed;

/* Entries of the active generation that trigger a merge. */
static uint64
merge_trigger(HybIndex *ix, const HybMetaPage *meta)
{
	uint64		repeated = Min(meta->static_tids, meta->rewritten_tids);
	uint64		share = (repeated + meta->frozen.nentries) /
		hyb_merge_ratio(ix->rel);

	if (repeated > meta->static_tids / 2)
		share = Max(share, Min(share * HYB_SMALL_FACTOR, HYB_SMALL_ENTRIES));
	return Max(share, (uint64) hyb_merge_floor);
}

static MergeNeed
merge_need(HybIndex *ix)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	MergeNeed	need;
	uint64		dynamic = meta->active.nentries;
	uint64		trigger = merge_trigger(ix, meta);
	uint64		bytes = meta->active.npages * BLCKSZ;
	uint64		budget = hyb_dynamic_budget();
	bool		compact = (meta->flags & HYB_META_COMPACT) != 0;

	need.page_entries = dynamic / Max(meta->active.npages, 1) + 1;
	need.merged = meta->merged_entries;
	need.unfinished = meta->frozen.number != 0 || meta->retiring.number != 0;
	need.learnable = hyb_merge_learnable(meta);
	UnlockReleaseBuffer(metabuf);

	need.wanted = dynamic > 0 &&
		(dynamic >= trigger || bytes >= budget / 4 || hyb_dynamic_pressure(ix));
	need.overdue = dynamic >= trigger * HYB_HARD_FACTOR || bytes >= budget / 2;
	need.wanted |= compact ||
		(need.learnable && bytes >= (uint64) HYB_LEARN_PAGES * BLCKSZ);
	return need;
}

bool
hyb_merge_wanted(HybIndex *ix)
{
	MergeNeed	need = merge_need(ix);

	return need.unfinished || need.wanted;
}

/*
 * One unit of foreground work; false if there was nothing to do.  If somebody
 * else is merging, wait for the end of that step only where the dynamic stage
 * must not grow on: whoever holds the merge lock lets go of it after each
 * step.
 */
static bool
foreground_step(HybIndex *ix, bool may_freeze, bool wait)
{
	bool		more;

	if (!hyb_merge_lock(ix->rel, wait))
		return false;
	more = hyb_merge_step(ix);
	if (!more && may_freeze &&
		(more = hyb_merge_learn(ix, 0) || hyb_merge_freeze(ix)))
		(void) hyb_merge_step(ix);
	hyb_merge_unlock(ix->rel);
	return more;
}

/*
 * A long COPY keeps others from locking the index, a worker included, but may
 * itself be its only user.
 */
static bool
learn_in_foreground(HybIndex *ix)
{
	bool		learned;

	if (!hyb_merge_lock(ix->rel, false))
		return false;
	learned = hyb_merge_learn(ix, 0);
	hyb_merge_unlock(ix->rel);
	return learned;
}

/*
 * The inserter's share of the work where the dynamic stage must not grow on.
 */
static void
catch_up_overdue(HybIndex *ix, MergeNeed need)
{
	uint64		target = need.merged + HYB_PACE * need.page_entries;

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (!foreground_step(ix, need.wanted, true))
			break;
		need = merge_need(ix);
	} while (need.overdue && need.merged < target);
}

/*
 * The slot of an index went while there was something in its log.  Workers are
 * not started in other databases, which may not exist any more, or be about to
 * be dropped: their own processes evict slots too.
 */
static void
slot_evicted(Oid dbid, Oid relid)
{
	if (dbid == MyDatabaseId && hyb_background_merge && !RecoveryInProgress())
		(void) hyb_worker_ask(dbid, relid);
}

void
hyb_merge_init(void)
{
	hyb_slot_evicted = slot_evicted;
}

void
hyb_merge_consider(HybIndex *ix)
{
	MergeNeed	need;
	bool		background;

	HYB_ASSERT_NO_LWLOCK();
	if (RecoveryInProgress())
		return;
	need = merge_need(ix);
	if (!need.unfinished && !need.wanted)
		return;
	if (!need.unfinished && need.learnable && learn_in_foreground(ix))
		return;

	/*
	 * A worker cannot see a relation that this transaction made.  Without
	 * shared memory backends could not agree on starting one.
	 */
	background = hyb_background_merge && !RELATION_IS_LOCAL(ix->rel) &&
		HYB_RELATION_NEW_SUBID(ix->rel) == InvalidSubTransactionId &&
		hyb_worker_ask(MyDatabaseId, RelationGetRelid(ix->rel));
	if (need.overdue)
		catch_up_overdue(ix, need);
	else if (!background)
		(void) foreground_step(ix, need.wanted, false);
}
