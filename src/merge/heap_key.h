/*
 * heap_key.h
 *		Keys of entries, read from the table.
 */
#ifndef HYB_HEAP_KEY_H
#define HYB_HEAP_KEY_H

#include "merge/dead.h"
#include "store/handle.h"

typedef enum HybKeyRead
{
	HYB_KEY_READ,				/* here it is */
	HYB_KEY_DEAD,				/* the entry can be dropped (hyb_dead_tid) */
	HYB_KEY_UNKNOWN				/* it cannot be told */
} HybKeyRead;

/*
 * The key of the entry of a static level with this TID is appended to `out`.  The
 * index has no expressions.  The TID is no other row's, since VACUUM gives it away
 * after it has been over the index, which it cannot end meanwhile: the merge lock
 * is held, and the entry was no tombstone at some time since it was taken, or the
 * leaf is pinned.  No LWLock is held on entry or exit.
 */
extern HybKeyRead hyb_heap_key(HybDeadCheck *check, const HybIndex *ix,
							   const ItemPointerData *tid, HybBuf *out);

#endif							/* HYB_HEAP_KEY_H */
