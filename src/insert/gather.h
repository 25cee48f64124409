/*
 * gather.h
 *		Gathers the entries of a statement, to append them to the log together.
 *
 * docs/writes.md, "Gathered insertions", says which entries may be gathered
 * and when they are appended.
 */
#ifndef HYB_GATHER_H
#define HYB_GATHER_H

#include "log/unique_lock.h"
#include "memtree/memtree.h"
#include "store/handle.h"
#include "utils/palloc.h"

struct HybGather;

/* A statement that inserts into one index.  The caller sets `ix` and `context`. */
typedef struct HybGatherer
{
	HybIndex   *ix;				/* lasts as long as the statement */
	Relation	heap;			/* likewise; that of the last entry */
	MemoryContext context;		/* of the statement */
	struct HybGather *gather;	/* NULL if it has gathered nothing */
	bool		registered;		/* the callback is registered */
	MemoryContextCallback callback; /* the statement ends */
} HybGatherer;

/* When the library is loaded. */
extern void hyb_gather_init(void);

/* Has any statement of this backend gathered entries? */
extern bool hyb_gathered;

/* Does the index allow its entries to be gathered? */
extern bool hyb_gather_possible(const HybIndex *ix, Relation heap);

/*
 * Is the index the only one of its table in which inserters wait for each other?
 * Else another session could wait for our entry in the other one, while it has
 * inserted what we are about to append here.  Looks at the catalog.
 */
extern bool hyb_gather_is_only_unique(Relation index, Relation heap);

/*
 * Is this one of several indexes of ours whose entries of one row can be appended
 * together?  They are those that are not unique, and the only unique one if it comes
 * before the last of them.  May look at the catalog.
 */
extern bool hyb_gather_has_others(const HybIndex *ix, Relation heap);

/*
 * The entry of a statement's first row was gathered, or appended.  If this is the last
 * of these indexes, appends the entries that were gathered for them.
 */
extern void hyb_gather_row_ends(HybGatherer *gatherer, Relation heap);

/*
 * Gathers the entry, if its row allows it.  Otherwise returns false, and the
 * caller appends it.  May append what was gathered before, and merge.  The ticket is
 * that of a check which has found no conflict, if there was one.
 */
extern bool hyb_gather_add(HybGatherer *gatherer, Relation heap,
						   const HybEntry *entry, const HybUniqueTicket *ticket);

/*
 * Before a unique index is searched for a key: appends what was gathered if an equal
 * key may be among it.
 */
extern void hyb_gather_before_check(Oid indexid, const HybUniqueTicket *ticket);

/* The statement ends: appends what it has gathered. */
extern void hyb_gather_end(HybGatherer *gatherer);

/* The same for all indexes that a statement with this context inserts into. */
extern void hyb_gather_end_of(MemoryContext context);

/*
 * Before server 17: will the end of the statement with this memory context be
 * noticed, while its indexes are open?  NULL if that of all statements is.
 */
extern bool (*hyb_statement_end_noticed) (MemoryContext context);

/* Appends what was gathered for an index, or for all (InvalidOid). */
extern void hyb_gather_flush(Oid indexid);

/*
 * The same for all unique indexes, before a statement starts in the midst of another
 * one.  It may take locks that others hold while they wait for our rows.
 */
extern void hyb_gather_flush_unique(void);

/* The same for an index that is about to be read. */
static inline void
hyb_gather_before_read(Oid indexid)
{
	if (unlikely(hyb_gathered))
		hyb_gather_flush(indexid);
}

#endif							/* HYB_GATHER_H */
