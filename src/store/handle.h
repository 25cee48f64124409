/*
 * handle.h
 *		A backend's handle on an open index.
 */
#ifndef HYB_HANDLE_H
#define HYB_HANDLE_H

#include "key/key.h"
#include "storage/block.h"

struct HybSlot;
struct HybDictionaries;

/*
 * A backend's handle on an open index; lives in the memory context of the
 * scan, statement or call that uses it.
 */
typedef struct HybIndex
{
	Relation	rel;
	HybKeyDesc *desc;
	uint64		incarnation;
	struct HybSlot *slot;		/* shared or backend-local dynamic stage
								 * state; NULL until first needed; see
								 * hyb_index_remember_slot */
	uint64		slot_serial;	/* tells whether `slot` still is what it was */
	MemoryContext context;		/* that the handle lives in */
	const struct HybDictionaries *dictionaries; /* NULL without encoded
												 * columns, and while they are
												 * plain */
} HybIndex;

#endif							/* HYB_HANDLE_H */
