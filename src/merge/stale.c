/*
 * stale.c
 *		Entries of hybrid_hot that a merge leaves out.
 *
 * An entry (key, root) is stale once no row version of the chain at that root has the
 * key.  It goes only if no member that lies in the block has it, visible or not.  So
 * pruning has removed the last one, and has logged what that means to snapshots of
 * standbys, before this is logged.  docs/hot_updates.md proves that nothing is missed.
 * The proof needs this:
 *
 * - The entry was in the log when its generation froze, or in a level, and the block is
 *   read after that.  What comes to the chain later has an entry of its own in a younger
 *   generation, or its predecessor lies in the block.
 * - While the index is not valid, nothing is left out.
 *
 * To ask costs a look at a page of the table for each entry.  So a merge asks only if it
 * visits all leaves (HYB_META_COMPACTING).  The policy has it do that when the index has
 * grown by a share that may be stale.
 *
 * Several runs may have equal entries, of a key that came back to a row.  A merge keeps
 * one.
 */
#include "base/compat.h"

#include "chain/chain.h"
#include "leaf/leaf.h"
#include "merge/step.h"
#include "utils/rel.h"

void
hyb_stale_begin(HybMergeStep *step)
{
	const HybIndex *ix = step->ix;

	if (ix->desc->chains && step->compact && step->dead.heap != NULL &&
		ix->rel->rd_index->indisvalid)
		step->chains = hyb_chain_reader_create(ix, step->dead.heap);
}

void
hyb_stale_end(HybMergeStep *step)
{
	if (step->chains != NULL)
		hyb_chain_reader_free(step->chains);
	step->chains = NULL;
}

bool
hyb_step_is_stale(HybMergeStep *step, const ItemPointerData *root,
				  const uint8 *key, uint32 keylen)
{
	return step->chains != NULL &&
		!hyb_chain_may_have_key(step->chains, root, key, keylen);
}

/* The key of an item of the opened leaf, palloc'd. */
static HybBuf
item_key(HybMergeStep *step, int item)
{
	HybBuf		key = {0};

	hyb_key_join(step->ix->desc,
				 hyb_leaf_row(&step->leaf, hyb_leaf_row_of_item(&step->leaf, item)),
				 step->ix->desc->nkeys, &key);
	return key;
}

bool
hyb_step_item_is_stale(HybMergeStep *step, int item)
{
	ItemPointerData root;
	HybBuf		key;
	bool		stale;

	if (step->chains == NULL)
		return false;
	hyb_leaf_tids(&step->leaf, item, 1, &root);
	key = item_key(step, item);
	stale = hyb_step_is_stale(step, &root, key.data, key.len);
	hyb_buf_free(&key);
	return stale;
}

bool
hyb_step_join(HybMergeStep *step, int at)
{
	const HybKeyDesc *desc = step->ix->desc;
	const HybFetchedItem *item = &step->batch.items[step->done.next_entry];
	bool		equal;

	if (!desc->chains)
		return false;
	equal = hyb_fetched_repeats(desc, &step->batch, step->done.next_entry);
	if (!equal && at >= 0 && at < step->leaf.nitems && !hyb_leaf_is_tombstone(&step->leaf, at))
	{
		ItemPointerData tid;

		hyb_leaf_tids(&step->leaf, at, 1, &tid);
		if (ItemPointerEquals(&tid, unconstify(ItemPointerData *, &item->tid)))
		{
			HybBuf		key = item_key(step, at);

			equal = hyb_key_compare(desc, key.data, key.len,
									hyb_step_entry(step, item), item->keylen) == 0;
			hyb_buf_free(&key);
		}
	}
	if (!equal)
		return false;
	step->done.next_entry++;
	step->done.merged++;
	hyb_step_drop(step);
	return true;
}
