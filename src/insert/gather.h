/*
 * gather.h
 *		Entries that a statement has inserted, and that are yet to be appended
 *		to the log, together.
 *
 * docs/writes.md, "Gathered insertions", has the rules: which entries may
 * be gathered, and when they are appended.
 */
#ifndef HYB_GATHER_H
#define HYB_GATHER_H

#include "memtree/memtree.h"
#include "store/handle.h"
#include "utils/palloc.h"

struct HybGather;

/* What inserts, by one statement into one index; zero it but for the index. */
typedef struct HybGatherer
{
	HybIndex   *ix;				/* as long as the statement lasts */
	MemoryContext context;		/* of the statement */
	struct HybGather *gather;	/* NULL: it has gathered nothing */
	bool		registered;		/* callback is */
	MemoryContextCallback callback; /* the statement ends */
} HybGatherer;

extern void hyb_gather_init(void);

/* Is there anything that was gathered?  By any statement of this backend. */
extern bool hyb_gathered;

/* May entries of this kind be gathered, as far as the index decides? */
extern bool hyb_gather_possible(const HybIndex *ix, Relation heap);

/*
 * Gather the entry, if its row allows it.  False if not: the caller appends
 * it.  May append what was gathered before, and merge.
 */
extern bool hyb_gather_add(HybGatherer *gatherer, Relation heap,
						   const HybEntry *entry);

/* Append what the statement has gathered: it ends. */
extern void hyb_gather_end(HybGatherer *gatherer);

/* The same for all indexes that a statement with this context inserts into. */
extern void hyb_gather_end_of(MemoryContext context);

/* Append what was gathered for an index, or for all (InvalidOid). */
extern void hyb_gather_flush(Oid indexid);

/* The same for an index that is about to be read. */
static inline void
hyb_gather_before_read(Oid indexid)
{
	if (unlikely(hyb_gathered))
		hyb_gather_flush(indexid);
}

/*
 * A page of the log is full: bring the tree along, and see whether a merge is
 * due.
 */
extern void hyb_after_full_page(HybIndex *ix);

#endif							/* HYB_GATHER_H */
