/*
 * quiet.c
 *		Indexes that may be quiet soon.
 */
#include "compat.h"

#include "merge/facts.h"
#include "merge/merge.h"
#include "merge/quiet.h"
#include "merge/shrink.h"
#include "page/meta.h"
#include "page/settings.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* Indexes that a worker remembers. */
#define QUIET_INDEXES	16

/*
 * An index that gets something again and again is looked at so often, each time
 * after twice as long: five minutes altogether.
 */
#define QUIET_LOOKS		6

/*
 * The log and merges will take free blocks again, and for each that is returned
 * one at most was moved: so it takes as much to be written as was, before there
 * is as much to be moved.
 */
static const HybShrinkRule quiet_rule = {
	.min_free = 16,
	.free_fraction = 16,
	.min_returned = 8,
	.spare_fraction = 64,
	.spare = 8
};

/*
 * How often the lock for cutting the file is asked for, which takes a
 * transaction ID each time: if it is not had the index is looked at again.
 */
#define CUT_TRIES		1

typedef struct QuietIndex
{
	Oid			relid;			/* InvalidOid: free */
	uint64		generation;		/* the active one */
	uint64		entries;		/* of its log */
	int			looks;			/* so far; each waits twice as long */
	TimestampTz due;
} QuietIndex;

static QuietIndex quiet_indexes[QUIET_INDEXES];

/* Of the index that hyb_quiet_due has returned. */
static QuietIndex looked_at;

/* Entries of the active generation, to notice that there are more. */
static void
count_log(HybIndex *ix, QuietIndex *index)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	HybGeneration active = meta->active;

	UnlockReleaseBuffer(metabuf);
	index->generation = active.number;
	index->entries = active.nentries + hyb_merge_tail_entries(ix, &active);
}

/* If there is no room, the one that would be looked at first goes. */
static void
remember(const QuietIndex *index)
{
	QuietIndex *room = &quiet_indexes[0];

	if (hyb_quiet_time < 0)
		return;
	for (int i = 0; i < QUIET_INDEXES; i++)
	{
		QuietIndex *other = &quiet_indexes[i];

		if (other->relid == index->relid || !OidIsValid(other->relid))
			room = other;
		else if (OidIsValid(room->relid) && other->due < room->due)
			room = other;
		if (room->relid == index->relid)
			break;
	}
	*room = *index;
	room->due = TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
											(int64) hyb_quiet_time << index->looks);
}

/* What is there to be done for an index of which this is a copy? */
static HybQuietWork
work_of(HybIndex *ix, const HybMetaPage *meta)
{
	HybMergeFacts facts;

	hyb_merge_facts_of_meta(ix, meta, &facts);
	if (facts.unfinished || facts.visit_asked)
		return HYB_QUIET_NONE;
	if (hyb_merge_policy->quiet(&facts))
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

void
hyb_quiet_remember(HybIndex *ix)
{
	QuietIndex	index = {.relid = RelationGetRelid(ix->rel)};

	if (!hyb_quiet_pays(ix))
		return;
	count_log(ix, &index);
	remember(&index);
}

bool
hyb_quiet_waits(void)
{
	for (int i = 0; i < QUIET_INDEXES; i++)
		if (OidIsValid(quiet_indexes[i].relid))
			return true;
	return false;
}

bool
hyb_quiet_due(Oid *relid)
{
	TimestampTz now = GetCurrentTimestamp();

	if (hyb_quiet_time < 0)
		memset(quiet_indexes, 0, sizeof(quiet_indexes));
	for (int i = 0; i < QUIET_INDEXES; i++)
	{
		QuietIndex *index = &quiet_indexes[i];

		if (!OidIsValid(index->relid) || now < index->due)
			continue;
		looked_at = *index;
		index->relid = InvalidOid;
		*relid = looked_at.relid;
		return true;
	}
	return false;
}

void
hyb_quiet_look_again(void)
{
	if (++looked_at.looks < QUIET_LOOKS)
		remember(&looked_at);
}

HybQuietWork
hyb_quiet_look(HybIndex *ix)
{
	QuietIndex	now = looked_at;
	HybMetaPage meta;
	HybQuietWork work;

	Assert(RelationGetRelid(ix->rel) == looked_at.relid);
	count_log(ix, &now);
	if (now.generation != looked_at.generation || now.entries != looked_at.entries)
	{
		looked_at = now;
		hyb_quiet_look_again();
		return HYB_QUIET_NONE;
	}
	if (!hyb_merge_lock(ix->rel, false))
	{
		hyb_quiet_look_again();
		return HYB_QUIET_NONE;
	}
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
	bool		(*go_on) (void *arg);
	void	   *arg;
} Patience;

/* VACUUM and most DDL wait for the lock on the table, some for the index. */
static bool
is_patient(void *arg)
{
	const Patience *patience = arg;

	CHECK_FOR_INTERRUPTS();
	return !LockHasWaitersRelation(patience->heap, ShareUpdateExclusiveLock) &&
		!LockHasWaitersRelation(patience->index, ShareUpdateExclusiveLock) &&
		patience->go_on(patience->arg);
}

void
hyb_quiet_shrink(HybIndex *ix, Relation heap, bool (*go_on) (void *arg), void *arg)
{
	Patience	patience = {.heap = heap,.index = ix->rel,.go_on = go_on,.arg = arg};
	HybShrink	shrink = {
		.ix = ix,
		.rule = &quiet_rule,
		.go_on = is_patient,
		.arg = &patience
	};

	Assert(RelationGetRelid(ix->rel) == looked_at.relid);
	Assert(CheckRelationLockedByMe(heap, ShareUpdateExclusiveLock, true));
	if (!hyb_shrink_allowed(ix))
		return;
	if (hyb_shrink_begin(&shrink))
	{
		/* pages of the log go with the next merge, not sooner */
		if (hyb_shrink_log_in_end(&shrink))
			return;
		if (hyb_shrink_move(&shrink))
		{
			HYB_POINT("quiet-moved");
			if (hyb_shrink_cut(ix, CUT_TRIES))
				return;
		}
	}
	hyb_quiet_look_again();
}
