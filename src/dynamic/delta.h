/*
 * delta.h
 *		Delta pages: the durable form of the dynamic stage.
 *
 * A generation has up to HYB_LANES chains of pages.  Entries lie one after
 * the other from PageGetContents() to pd_lower, each a HybDeltaEntry header
 * followed by the entry's bytes, without alignment.
 */
#ifndef HYB_DELTA_H
#define HYB_DELTA_H

#include "page/page.h"

#define HYB_DELTA_DEAD		0x8000	/* in len_flags: VACUUM removed it */
#define HYB_DELTA_LEN_MASK	0x0FFF

typedef struct HybDeltaEntry
{
	uint16		len_flags;		/* bytes of the entry, and flags */
	ItemPointerData tid;		/* heap TID */
} HybDeltaEntry;				/* 8 bytes; read and written with memcpy */

#define HYB_DELTA_HEADER	8

/*
 * Walks a delta page.  *off starts at 0 (= first) and is advanced; returns
 * false at the end.  entry points into the page.  Damage raises
 * ERRCODE_INDEX_CORRUPTED.
 */
extern bool hyb_delta_next(Page page, Relation rel, BlockNumber blkno,
						   uint16 *next_off, uint16 *entry_off,
						   HybDeltaEntry *header, const uint8 **entry);

/* Entries on a page, dead ones included. */
extern uint32 hyb_delta_count(Page page, Relation rel, BlockNumber blkno);

#endif							/* HYB_DELTA_H */
