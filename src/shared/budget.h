/*
 * budget.h
 *		Memory that dynamic stages may have, and have.
 */
#ifndef HYB_BUDGET_H
#define HYB_BUDGET_H

#include "store/handle.h"

/* Forget everything shared about this index (build, truncate). */
extern void hyb_dynamic_forget(Relation rel);

/* Bytes that all trees in shared memory may have, at most dynamic_memory. */
extern uint64 hyb_dynamic_budget(void);

/* Bytes that they have, with what backends have in hand for them. */
extern uint64 hyb_dynamic_used(void);

/* Memory of the dynamic stages of all hybrid indexes of the server, in bytes. */
typedef struct HybMemoryStats
{
	uint64		budget;			/* what segments may have together */
	uint64		reserved;		/* what they have */
	uint64		used;			/* of that, trees and what backends have in
								 * hand for them */
	uint64		trees;			/* of that, trees */
	uint64		private_trees;	/* of backends that have no shared ones */
	uint64		slot_bytes;		/* segments of slots */
	uint64		control;		/* in main shared memory, first slots included */
	uint32		segments;
	uint32		slots;			/* indexes that something is shared about */
} HybMemoryStats;

extern void hyb_memory_stats(HybMemoryStats *stats);

/* Have backends given up keeping this generation's tree in shared memory? */
extern bool hyb_dynamic_does_not_fit(HybIndex *ix, uint64 generation);

/*
 * Does this index use the most shared memory?  The answer may be stale, as
 * that of hyb_dynamic_does_not_fit may.
 */
extern bool hyb_dynamic_is_largest(HybIndex *ix);

#endif							/* HYB_BUDGET_H */
