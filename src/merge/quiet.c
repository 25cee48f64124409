/*
 * quiet.c
 *		Indexes that a worker has merged, and that may be quiet soon.
 */
#include "compat.h"

#include "dynamic/delta.h"
#include "merge/facts.h"
#include "merge/merge.h"
#include "merge/quiet.h"
#include "page/meta.h"
#include "page/settings.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

/* Indexes that a worker remembers. */
#define QUIET_INDEXES	16

/* An index that gets something again and again is looked at so often. */
#define QUIET_LOOKS		2

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

/*
 * Entries of the active generation, to notice that there are more: those of
 * pages that are full by the metapage, those of the lanes' last pages by these.
 */
static void
count_log(HybIndex *ix, QuietIndex *index)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	HybGeneration active = meta->active;

	UnlockReleaseBuffer(metabuf);
	index->generation = active.number;
	index->entries = active.nentries;
	for (int lane = 0; lane < HYB_LANES; lane++)
	{
		Buffer		buf = InvalidBuffer;

		if (BlockNumberIsValid(active.tail[lane]))
			buf = hyb_page_lock(ix, active.tail[lane], HYB_METAPAGE_BLKNO,
								BUFFER_LOCK_SHARE, HYB_PAGE_DELTA, active.number);
		if (!BufferIsValid(buf))
			continue;
		index->entries += hyb_delta_count(ix->rel, BufferGetPage(buf), active.tail[lane]);
		UnlockReleaseBuffer(buf);
	}
}

/* If there is no room, the one that would be looked at first goes. */
static void
remember(const QuietIndex *index)
{
	QuietIndex *room = &quiet_indexes[0];

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
											(int64) hyb_test_quiet_ms << index->looks);
}

void
hyb_quiet_remember(HybIndex *ix)
{
	HybMetaPage meta;
	HybMergeFacts facts;
	QuietIndex	index = {.relid = RelationGetRelid(ix->rel)};

	hyb_meta_copy(ix, &meta);
	hyb_merge_facts_of_meta(ix, &meta, &facts);
	if (!hyb_merge_policy->quiet(&facts))
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

bool
hyb_quiet_look(HybIndex *ix)
{
	QuietIndex	now = looked_at;
	bool		asked;

	Assert(RelationGetRelid(ix->rel) == looked_at.relid);
	count_log(ix, &now);
	if (now.generation != looked_at.generation || now.entries != looked_at.entries)
	{
		if (++now.looks < QUIET_LOOKS)
			remember(&now);
		return false;
	}
	if (!hyb_merge_lock(ix->rel, false))
		return false;
	asked = hyb_merge_request_quiet(ix);
	hyb_merge_unlock(ix->rel);
	if (asked)
		HYB_POINT("quiet-asked");
	return asked;
}
