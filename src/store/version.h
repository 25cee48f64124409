/*
 * version.h
 *		What readers and merges take from the metapage, all at once.
 */
#ifndef HYB_VERSION_H
#define HYB_VERSION_H

#include "store/meta.h"

/*
 * What a batch of a scan, or a merge step, works on: a consistent copy of the
 * metapage's fields.  It names the runs of the index: from the newest to the
 * oldest one these are the active generation, the frozen one, of which only
 * what lies above the watermark counts, and the static levels from the last to
 * the first.  Each live entry is in exactly one of them.
 */
typedef struct HybVersion
{
	uint64		version;
	uint64		vacuum_counter;
	int			nlevels;
	HybRoot		levels[HYB_MAX_LEVELS]; /* from the oldest one, as in the
										 * metapage */
	HybGeneration active;
	HybGeneration frozen;
	HybPos		watermark;		/* points to wm_key */
	uint8		wm_key[HYB_MAX_ENTRY_SIZE];
} HybVersion;

#ifdef USE_ASSERT_CHECKING
extern void hyb_version_assert_valid(const HybVersion *version);
#else
#define hyb_version_assert_valid(version) ((void) (version))
#endif

/* Copies a version out of the metapage, which is locked, or a copy of it. */
extern void hyb_version_from_meta(const HybMetaPage *meta, HybVersion *version);

#endif							/* HYB_VERSION_H */
