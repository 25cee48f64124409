/*
 * found_key.h
 *		What a look-up has found, for an insertion of the same key.
 *
 * An UPDATE finds its row by the key.  Then it inserts the same key, and the uniqueness
 * check would search for what the look-up has just found.  A look-up that has noted,
 * before it searched, how many appends its partition had, is the search that
 * log/unique_lock.h wants: it counts while no entry with this hash was appended since.
 * The entries that it found are looked at then as those of any search.
 *
 * To note that touches memory that most look-ups need not touch.  So they do it only
 * where insertions into the index have lately searched for a key that had an entry.
 */
#ifndef HYB_FOUND_KEY_H
#define HYB_FOUND_KEY_H

#include "log/unique_lock.h"

/* Entries of a key that are kept, at most. */
#define HYB_FOUND_ENTRIES	6

/* An insertion has searched the index for the key of a row that is updated. */
extern void hyb_found_key_want(HybIndex *ix);

/*
 * A look-up of a key of a unique index, whose equals have equal bytes, begins.  It
 * forgets what was kept.  If this returns true, the look-up may have its entries kept:
 * those of all runs, but for entries known to be dead.  It gives their number, and
 * writes their TIDs to where hyb_found_key_keep points.
 */
extern bool hyb_found_key_begin(HybIndex *ix, const HybBuf *key, uint64 hash);
extern ItemPointerData *hyb_found_key_keep(int n);

/*
 * Was the key of the ticket looked up last, in this subtransaction?  Then the ticket is
 * that of a search whose entries are copied to `tids`, which has HYB_FOUND_ENTRIES
 * places, and their number is returned; -1 if it was not.
 */
extern int	hyb_found_key_take(HybIndex *ix, const uint8 *key, uint32 keylen,
							   HybUniqueTicket *ticket, ItemPointerData *tids);

#endif							/* HYB_FOUND_KEY_H */
