/*
 * entry.h
 *		An entry of the dynamic stage, as functions hand it to each other.
 */
#ifndef HYB_ENTRY_H
#define HYB_ENTRY_H

#include "storage/block.h"
#include "storage/itemptr.h"

typedef struct HybEntry
{
	const uint8 *bytes;			/* key columns, then INCLUDE columns */
	uint32		len;			/* of all */
	uint32		keylen;			/* of the key columns */
	ItemPointerData tid;		/* heap TID */

	/* where it lies in the log; for entries that lie there */
	BlockNumber block;
	uint16		offset;			/* on that page */
	uint16		next;			/* where the next entry begins */
	uint16		flags;			/* HYB_DELTA_DEAD */
} HybEntry;

#endif							/* HYB_ENTRY_H */
