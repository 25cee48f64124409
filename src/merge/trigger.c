/*
 * trigger.c
 *		Who merges, where a merge is wanted.
 */
#include "compat.h"

#include "access/xlog.h"
#include "dynamic/slot.h"
#include "merge/facts.h"
#include "merge/learn.h"
#include "merge/merge.h"
#include "merge/quiet.h"
#include "merge/worker.h"
#include "miscadmin.h"
#include "page/settings.h"
#include "utils/rel.h"

/* Steps that an inserter does at most for a page of entries: some move none. */
#define HELP_STEPS	8

/*
 * One unit of foreground work; false if there was nothing to do, or if somebody
 * else is merging.  The end of that one's step is waited for only where the
 * dynamic stage must not grow on: whoever holds the merge lock lets go of it
 * after each step.
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

	HYB_POINT("learn-lock");
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
help_merging(HybIndex *ix, HybMergeFacts *facts, HybMergeNeed need)
{
	uint64		target = facts->merged_entries + need.help;
	int			steps = 0;

	do
	{
		CHECK_FOR_INTERRUPTS();
		if (!foreground_step(ix, need.freeze, true))
			break;
		need = hyb_merge_need(ix, facts);
	} while (need.help > 0 && facts->merged_entries < target &&
			 ++steps < HELP_STEPS);
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

/*
 * Ask for a worker; false if none can come.  A worker cannot see a relation
 * that this transaction made.  Without shared memory backends could not agree
 * on starting one.
 */
static bool
ask_worker(HybIndex *ix)
{
	return hyb_background_merge && !RELATION_IS_LOCAL(ix->rel) &&
		HYB_RELATION_NEW_SUBID(ix->rel) == InvalidSubTransactionId &&
		hyb_worker_ask(MyDatabaseId, RelationGetRelid(ix->rel));
}

/*
 * A worker remembers an index for as long as it is being filled, but not for
 * ever (quiet.c): one is asked for whenever the log has grown to twice its
 * length.
 */
static bool
may_be_quiet_soon(const HybMergeFacts *facts)
{
	uint64_t	pages = facts->active_pages;

	return hyb_quiet_time >= 0 && (pages & (pages - 1)) == 0 &&
		hyb_merge_policy->quiet(facts);
}

void
hyb_merge_consider_quiet(HybIndex *ix)
{
	if (!RecoveryInProgress() && hyb_quiet_pays(ix))
		(void) ask_worker(ix);
}

void
hyb_merge_consider(HybIndex *ix)
{
	HybMergeFacts facts;
	HybMergeNeed need;
	bool		background;

	HYB_ASSERT_NO_LWLOCK();
	if (RecoveryInProgress())
		return;
	need = hyb_merge_need(ix, &facts);
	if (!need.finish && !need.freeze)
	{
		if (may_be_quiet_soon(&facts))
			(void) ask_worker(ix);
		return;
	}
	if (!need.finish && facts.learnable && learn_in_foreground(ix))
		return;
	background = ask_worker(ix);
	if (need.help > 0)
		help_merging(ix, &facts, need);
	else if (!background)
		(void) foreground_step(ix, need.freeze, false);
}
