/*
 * capture.h
 *		The current version of an index: reading, proving and switching it.
 */
#ifndef HYB_CAPTURE_H
#define HYB_CAPTURE_H

#include "store/meta.h"

/*
 * Read the current version: from the slot's cached copy if the counter of
 * changes says that it is current, else from the metapage.  Takes and releases
 * the metapage's share lock; no lock is held on return.  Head and tail pages
 * and counters of the active generation may be older than the call; read the
 * metapage for those.
 */
extern void hyb_version_capture(HybIndex *ix, HybVersion *version);

/* Is it still the current version? */
extern bool hyb_version_is_current(HybIndex *ix, const HybVersion *version);

/* Is this the active or the frozen generation of the current version? */
extern bool hyb_version_has_generation(HybIndex *ix, uint64 generation);

/* What a pin on the page that an entry was found on is worth. */
typedef enum HybPinResult
{
	HYB_PIN_HOLDS,				/* until it is released, VACUUM does not
								 * finish removing the entry, and it had not
								 * finished when the pin was taken */
	HYB_PIN_DEAD,				/* VACUUM has flagged the entry: its row is
								 * gone */
	HYB_PIN_MOVED				/* the page is, or may be, no longer part of
								 * the index: look for the entry again */
} HybPinResult;

/*
 * A caller that does not check a TID against an MVCC snapshot may use it only
 * after this function, or hyb_delta_pin_entry, has proved it.  This one is for
 * entries of a leaf that a descent in `version` pinned and that was read after
 * that.  Both prove, after the pin was taken, that the page is part of the
 * current version: a retired page keeps its content, and VACUUM does not treat
 * it.  No lock is held on entry; the metapage may be read.
 */
extern HybPinResult hyb_leaf_pin_check(HybIndex *ix, const HybVersion *version);

/*
 * Get ready to change the metapage's version, with the metapage exclusively
 * locked, before the critical section: finds the shared slot, if there is one.
 */
extern void hyb_version_prepare(HybIndex *ix);

/*
 * Tell other backends that the metapage's version changed.  Called with the
 * metapage still locked, after the change was logged; it allocates nothing and
 * waits for nothing, so it may be called in the critical section.
 */
extern void hyb_version_changed(HybIndex *ix, const HybMetaPage *meta);

/*
 * Switch the metapage, which is exclusively locked, to a new version.  Between
 * the two calls the caller changes its fields, in a critical section.  The
 * second call sets the watermark, logs all fields but pending[], does what
 * hyb_version_changed does, and releases the metapage.
 */
extern void hyb_version_switch_begin(HybIndex *ix, HybMetaPage *meta,
									 HybWalSet *set);
extern void hyb_version_switch_end(HybIndex *ix, Buffer metabuf,
								   HybWalSet *set, const HybPos *watermark);

#endif							/* HYB_CAPTURE_H */
