/*
 * meta.h
 *		Reading and changing the metapage.
 */
#ifndef HYB_META_H
#define HYB_META_H

#include "page/wal.h"

/*
 * The metapage, pinned and locked (BUFFER_LOCK_SHARE or _EXCLUSIVE); checked.
 */
extern Buffer hyb_meta_lock(const HybIndex *ix, int mode, HybMetaPage **meta);

/*
 * Draw the incarnation of a new index into its handle.  May fail, so it comes
 * before the critical section.
 */
extern void hyb_meta_draw_incarnation(HybIndex *ix);

/* Fill an empty page as the metapage of a new, empty index.  Cannot fail. */
extern void hyb_meta_init(Page page, const HybIndex *ix);

/* Add the metapage's fields before pending[], or from pending[] on, to set. */
extern void hyb_wal_meta(HybWalSet *set, Buffer metabuf);
extern void hyb_wal_meta_pending(HybWalSet *set, Buffer metabuf);

/*
 * Change the watermark, all of its fields, and add them to set; NULL:
 * -infinity, which it is whenever there is no frozen generation.
 */
extern void hyb_meta_set_watermark(HybMetaPage *meta, const HybPos *watermark,
								   HybWalSet *set, Buffer metabuf);

#define hyb_wal_meta_field(set, metabuf, field) \
	hyb_wal_range(set, metabuf, \
				  SizeOfPageHeaderData + offsetof(HybMetaPage, field), \
				  sizeof(((HybMetaPage *) 0)->field))

extern void hyb_generation_init(HybGeneration *generation, uint64 number);

#endif							/* HYB_META_H */
