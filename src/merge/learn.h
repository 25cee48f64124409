/*
 * learn.h
 *		The merge that gives an index its dictionaries.
 */
#ifndef HYB_LEARN_H
#define HYB_LEARN_H

#include "merge/merge.h"

/* Is this an index that a merge may give dictionaries? */
extern bool hyb_merge_learnable(const HybMetaPage *meta);

/*
 * In place of hyb_merge_freeze and the steps that follow: if the index waits
 * for its dictionaries, learn them, freeze the active generation, and write
 * all entries to the static stage, encoded; the handle can read it then.
 * Caller holds the merge lock and nothing else; it has no use of encoded keys
 * afterwards.
 *
 * Nothing is done if the index has dictionaries, too few keys or too many, or
 * if others are using it (for wait_ms they are waited for).  Returns true if
 * the active generation was frozen, or encoded, and further steps are due.
 */
extern bool hyb_merge_learn(HybIndex *ix, int wait_ms);

#endif							/* HYB_LEARN_H */
