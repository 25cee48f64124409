/*
 * chain.h
 *		HOT chains of a table, and the keys of their members.
 *
 * A chain is what heap calls a HOT chain (the server's README.HOT): row versions that
 * lie in one block, each the successor of the one before.  Its root is the line pointer
 * that other indexes name.  An index of hybrid_hot has entries (key, root), some of
 * which are stale: docs/hot_updates.md says which, and proves that none is missing.
 *
 * No function holds a content lock on entry or exit.
 */
#ifndef HYB_CHAIN_H
#define HYB_CHAIN_H

#include "access/htup.h"
#include "executor/tuptable.h"
#include "store/handle.h"
#include "storage/bufpage.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

/*
 * Whose entry is that of a row version that this transaction has put into the table?
 * Replaces its TID by the root of its chain; a TID that is a root stays.  Returns true
 * if an equal entry is there already, and stays: that of the version before, which has
 * the same bytes as key.
 */
extern bool hyb_chain_enter(const HybIndex *ix, Relation heap, ItemPointerData *tid,
							const uint8 *key, uint32 keylen);

/* The tuple of a line pointer of a locked page, or of a copy.  Without one, t_data is NULL. */
extern HeapTupleData hyb_tuple_at(Relation heap, Page page, BlockNumber block,
								  OffsetNumber offset);

/* Reads chains of a table, one after the other. */
typedef struct HybChainReader HybChainReader;

/*
 * In a context of its own below the current one.  The handle and the table outlive the
 * reader.
 */
extern HybChainReader *hyb_chain_reader_create(const HybIndex *ix, Relation heap);
extern void hyb_chain_reader_free(HybChainReader *reader);

/* Lets go of the page read last. */
extern void hyb_chain_reader_release(HybChainReader *reader);

/*
 * Has any member that lies in the block the key, visible or not?  A member whose values
 * are gone from the TOAST table counts as none.
 */
extern bool hyb_chain_has_key(HybChainReader *reader, const ItemPointerData *root,
							  const uint8 *key, uint32 keylen);

/*
 * The same, but true if functions of the table's owner fail, or run for too long in all.
 */
extern bool hyb_chain_may_have_key(HybChainReader *reader, const ItemPointerData *root,
								   const uint8 *key, uint32 keylen);

/* Has this row of the table the key? */
extern bool hyb_chain_row_has_key(HybChainReader *reader, TupleTableSlot *row,
								  const uint8 *key, uint32 keylen);

#endif							/* HYB_CHAIN_H */
