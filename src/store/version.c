/*
 * version.c
 *		A version, copied from the metapage.
 */
#include "base/compat.h"

#include "store/version.h"

void
hyb_version_from_meta(const HybMetaPage *meta, HybVersion *version)
{
	Assert(meta->nlevels >= 1 && meta->nlevels <= HYB_MAX_LEVELS);
	Assert(meta->wm_len <= HYB_MAX_ENTRY_SIZE);
	version->version = meta->version;
	version->vacuum_counter = meta->vacuum_counter;
	version->nlevels = (int) meta->nlevels;
	for (int i = 0; i < version->nlevels; i++)
		version->levels[i] = meta->levels[i].root;
	version->active = meta->active;
	version->frozen = meta->frozen;
	version->watermark.key = version->wm_key;
	version->watermark.len = meta->wm_len;
	/* without a key columns mean nothing, whatever an older build left there */
	version->watermark.ncols = meta->wm_len > 0 ? meta->wm_ncols : 0;
	version->watermark.tie = meta->wm_tie;
	version->watermark.tid = meta->wm_tid;
	if (meta->wm_len > 0)
		memcpy(version->wm_key, meta->wm_key, meta->wm_len);
	hyb_version_assert_valid(version);
}

#ifdef USE_ASSERT_CHECKING
void
hyb_version_assert_valid(const HybVersion *version)
{
	Assert(version->nlevels >= 1 && version->nlevels <= HYB_MAX_LEVELS);
	/* the key is the version's own: the metapage may change */
	Assert(version->watermark.key == version->wm_key);
	Assert(version->watermark.len <= sizeof(version->wm_key));
	Assert(version->watermark.len > 0 || version->watermark.ncols == 0);
}
#endif
