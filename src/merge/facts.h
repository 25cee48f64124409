/*
 * facts.h
 *		The facts of an index that the merge policy decides by.
 */
#ifndef HYB_FACTS_H
#define HYB_FACTS_H

#include "merge/policy.h"
#include "store/handle.h"
#include "store/meta.h"

/* A merge that learns dictionaries rewrites at most this many static pages. */
#define HYB_LEARN_MAX_PAGES	160

/* Is this an index that a merge may give dictionaries? */
extern bool hyb_merge_learnable(const HybMetaPage *meta);

/*
 * Call `work`, unless that is NULL, with the index locked in AccessExclusiveLock,
 * and release that.  Returns false if the lock is not available: at once, or within
 * wait_ms.  Pages do not depend on transactions, so what was written stays.  `work`
 * ends early if it would have to wait for another lock.
 */
extern bool hyb_merge_exclusively(HybIndex *ix, int wait_ms,
								  void (*work) (HybIndex *ix, void *arg),
								  void *arg);

/*
 * The facts in the metapage, which is locked or a copy.  Those about memory are
 * 0.
 */
extern void hyb_merge_facts_of_meta(const HybIndex *ix, const HybMetaPage *meta,
									HybMergeFacts *facts);

/*
 * The entries on the last pages of the lanes, if the generation is active.  Its
 * count does not include them.
 */
extern uint64 hyb_merge_tail_entries(HybIndex *ix, const HybGeneration *active);

/*
 * What is to be done, and all facts.  Locks the metapage, and the lanes' last
 * pages, for a moment.
 */
extern HybMergeNeed hyb_merge_need(HybIndex *ix, HybMergeFacts *facts);

/* Does the policy say that there is something to merge? */
extern bool hyb_merge_wanted(HybIndex *ix);

/*
 * Have the next merge visit every leaf if the leaves are so empty that joining
 * them pays.  No lock is held on entry or exit.
 */
extern void hyb_merge_request_joins(HybIndex *ix);

/*
 * Has the next merge look for stale entries of hybrid_hot if the index has many more than
 * the table has rows.
 */
extern void hyb_merge_request_settling(HybIndex *ix, double rows);

/*
 * Have the next merge make one level of all, if there is anything to merge.  The
 * merge lock is held.
 */
extern void hyb_merge_request_collapse(HybIndex *ix);

/*
 * The same for a quiet index: that merge gives way to inserts.  The merge lock
 * is held, and no merge is under way.
 */
extern void hyb_merge_request_quiet(HybIndex *ix);

#endif							/* HYB_FACTS_H */
