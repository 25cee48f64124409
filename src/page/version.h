/*
 * version.h
 *		What readers and merges take from the metapage, all at once.
 */
#ifndef HYB_VERSION_H
#define HYB_VERSION_H

#include "page/meta.h"

/*
 * What a batch of a scan, or a merge step, works on: a consistent copy of the
 * metapage's fields.
 */
typedef struct HybVersion
{
	uint64		version;
	uint64		vacuum_counter;
	uint64		root_stamp;
	BlockNumber root;
	uint32		height;
	HybGeneration active;
	HybGeneration frozen;
	HybPos		watermark;		/* points to wm_key */
	uint8		wm_key[HYB_MAX_ENTRY_SIZE];
} HybVersion;

/* Copies a version out of a share-locked metapage. */
extern void hyb_version_from_meta(const HybMetaPage *meta, HybVersion *version);

#endif							/* HYB_VERSION_H */
