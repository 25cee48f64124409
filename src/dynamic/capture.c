/*
 * capture.c
 *		Capturing the current version.
 *
 * A backend keeps the last version that it read, with the shared slot's
 * version_seq as it was before that.  Who changes the version bumps the
 * sequence while the metapage is still locked, after changing it.  So if the
 * sequence is what it was then the metapage has not changed since it was
 * read, but for tail pages and counters of the active generation, which no
 * sequence follows.
 *
 * In recovery nobody bumps anything, and the metapage is read every time.
 */
#include "compat.h"

#include "dynamic/slot.h"
#include "miscadmin.h"
#include "page/meta.h"
#include "utils/memutils.h"
#include "utils/rel.h"

static void
copy_version(HybVersion *to, const HybVersion *from)
{
	memcpy(to, from, offsetof(HybVersion, wm_key));
	memcpy(to->wm_key, from->wm_key, from->watermark.len);
	to->watermark.key = to->wm_key;
}

/* Is the version that s keeps the current one, for all that can be told? */
static inline bool
cache_is_current(const HybSlot *s)
{
	if (!s->version_valid || s->key.in_recovery)
		return false;
	if (s->is_temp)
		return true;			/* see hyb_version_changed */
	return hyb_slot_valid(s) &&
		pg_atomic_read_u64(&s->shared->version_seq) == s->version_seq;
}

void
hyb_version_capture(HybIndex *ix, HybVersion *version)
{
	HybSlot    *s = hyb_slot_get(ix);
	HybMetaPage *meta;
	Buffer		metabuf;
	uint64		seq = 0;
	bool		keep = false;

	if (cache_is_current(s))
	{
		copy_version(version, s->version);
		return;
	}

	if (s->is_temp)
		keep = true;
	else if (!s->key.in_recovery && hyb_slot_create(s))
	{
		/* the sequence before the page; and see slot.c on the order */
		seq = pg_atomic_read_u64(&s->shared->version_seq);
		pg_read_barrier();
		keep = hyb_slot_valid(s);
	}
	if (keep && s->version == NULL)
		s->version = MemoryContextAlloc(TopMemoryContext, sizeof(HybVersion));

	s->version_valid = false;
	metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	hyb_version_from_meta(meta, version);
	UnlockReleaseBuffer(metabuf);

	if (keep)
	{
		copy_version(s->version, version);
		s->version_seq = seq;
		s->version_valid = true;
	}
}

bool
hyb_version_is_current(HybIndex *ix, const HybVersion *version)
{
	HybSlot    *s = hyb_slot_get(ix);
	HybMetaPage *meta;
	Buffer		metabuf;
	bool		current;

	if (cache_is_current(s) && s->version->version == version->version)
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
	if (cache_is_current(s))
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

/*
 * A temporary index has one user, whose cached version is dropped here.
 */
void
hyb_version_changed(HybIndex *ix, const HybMetaPage *meta)
{
	HybSlot    *s = ix->slot;

	Assert(s != NULL && s->local_serial == ix->slot_serial && s->changing);
	s->changing = false;
	s->version_valid = false;
	hyb_slot_version_changed(s, meta);
}

void
hyb_version_switch_begin(HybIndex *ix, HybMetaPage *meta, HybWalSet *set)
{
	hyb_version_prepare(ix);
	hyb_wal_begin(set, ix->rel);
	START_CRIT_SECTION();
	meta->version++;
}

void
hyb_version_switch_end(HybIndex *ix, Buffer metabuf, HybWalSet *set,
					   const HybPos *watermark)
{
	HybMetaPage *meta = hyb_page_meta(BufferGetPage(metabuf));

	hyb_meta_set_watermark(meta, watermark, set, metabuf);
	hyb_wal_meta(set, metabuf);
	hyb_wal_commit(set);
	hyb_version_changed(ix, meta);
	END_CRIT_SECTION();
	UnlockReleaseBuffer(metabuf);
}
