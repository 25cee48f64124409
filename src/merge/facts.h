/*
 * facts.h
 *		What the merge policy is asked about an index.
 */
#ifndef HYB_FACTS_H
#define HYB_FACTS_H

#include "merge/policy.h"
#include "store/handle.h"
#include "store/meta.h"

/*
 * The facts that the metapage has, which is locked, or a copy of it; those
 * about memory are 0.
 */
extern void hyb_merge_facts_of_meta(const HybIndex *ix, const HybMetaPage *meta,
									HybMergeFacts *facts);

/*
 * Entries on the last pages of the lanes, which the generation, the active one,
 * does not count; those of another one are none.
 */
extern uint64 hyb_merge_tail_entries(HybIndex *ix, const HybGeneration *active);

/*
 * What is to be done, and the facts.  Locks the metapage, and the lanes' last
 * pages, for a moment.
 */
extern HybMergeNeed hyb_merge_need(HybIndex *ix, HybMergeFacts *facts);

/* Is there anything to merge, by the policy? */
extern bool hyb_merge_wanted(HybIndex *ix);

/*
 * Have the next merge visit every leaf if they are so empty that joining them
 * is worth it.  No lock is held on entry or return.
 */
extern void hyb_merge_request_joins(HybIndex *ix);

/*
 * Have the next merge make one level of all, if there is anything to merge.
 * The merge lock is held.
 */
extern void hyb_merge_request_collapse(HybIndex *ix);

/*
 * The same for an index that is quiet: it gives way to insertions.  The merge
 * lock is held, and there is no merge under way.
 */
extern void hyb_merge_request_quiet(HybIndex *ix);

#endif							/* HYB_FACTS_H */
