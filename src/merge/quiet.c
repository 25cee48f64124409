/*
 * quiet.c
 *		What is done with an index that has no inserts for some time.
 */
#include "base/compat.h"

#include "merge/facts.h"
#include "merge/merge.h"
#include "merge/quiet.h"
#include "merge/shrink.h"
#include "storage/lmgr.h"
#include "store/meta.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/*
 * How often a worker looks at an index that still has inserts, each time after
 * twice as long: five minutes altogether.
 */
#define QUIET_LOOKS		6

/*
 * The log and merges will need free blocks again.  At most one block moves for
 * each one returned, so as much must be written again before as much can move.
 */
static const HybShrinkRule quiet_rule = {
	.min_free = 16,
	.free_fraction = 16,
	.min_returned = 8,
	.spare_fraction = 64,
	.spare = 8
};

/*
 * How often the lock for cutting the file is asked for.  Each time takes a
 * transaction ID; the worker looks at the index again later.
 */
#define CUT_TRIES		1

/* Mark how many entries the active generation has. */
static void
count_log(HybIndex *ix, HybQuietMark *mark)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	HybGeneration active = meta->active;

	UnlockReleaseBuffer(metabuf);
	mark->generation = active.number;
	mark->entries = active.nentries + hyb_merge_tail_entries(ix, &active);
}

/* What is to be done, by a copy of the metapage? */
static HybQuietWork
work_of(HybIndex *ix, const HybMetaPage *meta)
{
	HybMergeFacts facts;

	hyb_merge_facts_of_meta(ix, meta, &facts);
	if (facts.unfinished || facts.visit_asked)
		return HYB_QUIET_NONE;
	if (hyb_policy_quiet(&facts))
		return HYB_QUIET_MERGE;
	if (hyb_shrink_pays(&quiet_rule, meta, RelationGetNumberOfBlocks(ix->rel)))
		return HYB_QUIET_SHRINK;
	return HYB_QUIET_NONE;
}

bool
hyb_quiet_pays(HybIndex *ix)
{
	HybMetaPage meta;

	if (hyb_quiet_time < 0)
		return false;
	hyb_meta_copy(ix, &meta);
	return work_of(ix, &meta) != HYB_QUIET_NONE;
}

bool
hyb_quiet_remember(HybIndex *ix, HybQuietMark *mark)
{
	if (!hyb_quiet_pays(ix))
		return false;
	count_log(ix, mark);
	mark->looks = 0;
	return true;
}

int64
hyb_quiet_again(HybQuietMark *mark)
{
	if (hyb_quiet_time < 0 || ++mark->looks >= QUIET_LOOKS)
		return -1;
	return (int64) hyb_quiet_time << mark->looks;
}

HybQuietWork
hyb_quiet_look(HybIndex *ix, HybQuietMark *mark)
{
	HybQuietMark before = *mark;
	HybMetaPage meta;
	HybQuietWork work;

	if (hyb_merge_wanted(ix))
		return HYB_QUIET_MERGE;
	if (hyb_quiet_time < 0)
		return HYB_QUIET_NONE;
	count_log(ix, mark);
	if (mark->generation != before.generation || mark->entries != before.entries)
		return HYB_QUIET_LATER;
	if (!hyb_merge_lock(ix->rel, false))
		return HYB_QUIET_LATER;
	hyb_meta_copy(ix, &meta);
	work = work_of(ix, &meta);
	if (work == HYB_QUIET_MERGE)
		hyb_merge_request_quiet(ix);
	hyb_merge_unlock(ix->rel);
	if (work == HYB_QUIET_MERGE)
		HYB_POINT("quiet-asked");
	return work;
}

/* What ends a shrinking early. */
typedef struct Patience
{
	Relation	heap;
	Relation	index;
	bool		(*go_on) (void);
} Patience;

/* VACUUM and most DDL wait for the table, some for the index. */
static bool
is_patient(void *arg)
{
	const Patience *patience = arg;

	CHECK_FOR_INTERRUPTS();
	return !LockHasWaitersRelation(patience->heap, ShareUpdateExclusiveLock) &&
		!LockHasWaitersRelation(patience->index, ShareUpdateExclusiveLock) &&
		patience->go_on();
}

bool
hyb_quiet_shrink(HybIndex *ix, Relation heap, bool (*go_on) (void))
{
	Patience	patience = {.heap = heap,.index = ix->rel,.go_on = go_on};
	HybShrink	shrink = {
		.ix = ix,
		.rule = &quiet_rule,
		.go_on = is_patient,
		.arg = &patience
	};

	Assert(CheckRelationLockedByMe(heap, ShareUpdateExclusiveLock, true));
	if (!hyb_shrink_allowed(ix))
		return true;
	if (!hyb_shrink_begin(&shrink))
		return false;
	/* pages of the log go with the next merge, not sooner */
	if (hyb_shrink_log_in_end(&shrink))
		return true;
	if (!hyb_shrink_move(&shrink))
		return false;
	HYB_POINT("quiet-moved");
	return hyb_shrink_cut(ix, CUT_TRIES);
}
