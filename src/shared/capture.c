/*
 * capture.c
 *		Capturing the current version.
 *
 * A backend keeps the last version that it read, with the index's counter of
 * changes as it was before that.  Who changes the version, or gives a lane of
 * the active generation its first page, counts that while the metapage is still
 * locked, after changing it.  So if the counter is what it was then the metapage
 * has not changed since it was read, but for tail pages and counters of the
 * active generation, which nothing follows.  Above all, a generation without
 * pages still has none.
 *
 * The counter is shared with other indexes, whose changes have the metapage
 * read once more than need be.  It is there for every index of every database,
 * always: nobody has to announce that he reads, and nothing is evicted.
 *
 * In recovery nobody counts anything, and the metapage is read every time.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "shared/capture.h"
#include "shared/slot.h"
#include "store/meta.h"
#include "utils/memutils.h"
#include "utils/rel.h"

static inline void
copy_index_version(HybVersion *to, const HybVersion *from)
{
	memcpy(to, from, offsetof(HybVersion, wm_key));
	memcpy(to->wm_key, from->wm_key, from->watermark.len);
	to->watermark.key = to->wm_key;
	hyb_version_assert_valid(to);
}

/*
 * Keep a version that was read when the counter was at `changes`.  There is
 * room for the key of its watermark, if it has one.
 */
static void
keep_version(HybSlot *s, const HybVersion *version, uint64 changes)
{
	uint16		room = version->watermark.len;

	hyb_version_assert_valid(version);
	if (s->version == NULL || room > s->version_room ||
		(room == 0 && s->version_room > 0))
	{
		if (s->version != NULL)
			pfree(s->version);
		s->version = NULL;
		s->version = MemoryContextAlloc(TopMemoryContext,
										offsetof(HybVersion, wm_key) + room);
		s->version_room = room;
	}
	Assert(room <= s->version_room);
	copy_index_version(s->version, version);
	s->version_changes = changes;
	s->version_valid = true;
	hyb_slot_assert_valid(s);
}

void
hyb_version_capture(HybIndex *ix, HybVersion *version)
{
	HybSlot    *s = hyb_slot_get(ix);
	HybMetaPage *meta;
	Buffer		metabuf;
	uint64		changes = 0;

	/* reading the metapage may fail */
	Assert(CritSectionCount == 0);
	if (likely(hyb_slot_version_is_current(s)))
	{
		copy_index_version(version, s->version);
		return;
	}

	/* the counter before the page */
	s->version_valid = false;
	if (s->changes != NULL)
		changes = pg_atomic_read_u64(s->changes);
	pg_read_barrier();
	HYB_POINT("version-counted");
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	hyb_version_from_meta(meta, version);
	UnlockReleaseBuffer(metabuf);
	if (s->changes != NULL)
		keep_version(s, version, changes);
}

bool
hyb_version_is_current(HybIndex *ix, const HybVersion *version)
{
	HybSlot    *s = hyb_slot_get(ix);
	HybMetaPage *meta;
	Buffer		metabuf;
	bool		current;

	if (hyb_slot_version_is_current(s) &&
		s->version->version == version->version)
		return true;

	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	current = meta->version == version->version;
	UnlockReleaseBuffer(metabuf);
	return current;
}

bool
hyb_version_has_generation(HybIndex *ix, uint64 generation)
{
	HybSlot    *s = hyb_slot_get(ix);
	HybVersion	version;

	Assert(generation != 0);
	if (hyb_slot_version_is_current(s))
		return generation == s->version->active.number ||
			generation == s->version->frozen.number;
	hyb_version_capture(ix, &version);
	return generation == version.active.number ||
		generation == version.frozen.number;
}

HybPinResult
hyb_leaf_pin_check(HybIndex *ix, const HybVersion *version)
{
	return hyb_version_is_current(ix, version) ? HYB_PIN_HOLDS : HYB_PIN_MOVED;
}

void
hyb_version_prepare(HybIndex *ix)
{
	HybSlot    *s = hyb_slot_get(ix);

	(void) hyb_slot_find(s);
	s->changing = true;
}

void
hyb_version_changed(HybIndex *ix, const HybMetaPage *meta)
{
	HybSlot    *s = ix->slot;

	Assert(s != NULL && s->local_serial == ix->slot_serial && s->changing);
	s->changing = false;
	hyb_slot_version_changed(s, meta);
}

void
hyb_version_switch_begin(HybIndex *ix, HybMetaPage *meta, HybWalSet *set)
{
	hyb_version_prepare(ix);
	hyb_wal_begin(set, ix->rel);
	START_CRIT_SECTION();
	Assert(meta->version < PG_UINT64_MAX);
	meta->version++;
}

void
hyb_version_switch_end(HybIndex *ix, Buffer metabuf, HybWalSet *set,
					   const HybPos *watermark)
{
	HybMetaPage *meta = hyb_page_meta(BufferGetPage(metabuf));

	Assert(hyb_page_is_mine(metabuf) && CritSectionCount == 1);
	hyb_meta_set_watermark(meta, watermark, set, metabuf);
	hyb_wal_meta(set, metabuf);
	hyb_wal_commit(set);
	hyb_version_changed(ix, meta);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
}
