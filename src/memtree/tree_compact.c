/*
 * tree_compact.c
 *		Taking copies of entries out of memory (docs/memory.md).
 *
 * The log has every entry, so a copy is given up by referring to its place
 * there.  Copies go by chunks, the oldest first: a chunk is free when the
 * references to all its copies have been replaced.
 */
#include "base/compat.h"

#include "memtree/tree.h"
#include "memtree/tree_internal.h"

/* Replace the reference to a copy, if there is one in the tree. */
static bool
give_up_copy(const HybTreeUse *use, HybRef ref, HybLogRef log_ref)
{
	const HybTreeEntry *copy = hyb_tree_entry_at(use->arena, ref);
	HybPos		pos = hyb_pos_at(use->desc, copy->bytes, copy->keylen, copy->tid);
	HybTreeTarget target;
	HybTreePath path;
	HybTreeLeaf *leaf;
	HybTreeLeaf *first;
	int			i;

	hyb_tree_target(&target, use, &pos, false);
	leaf = first = hyb_tree_descend(&target, &path);
	i = path.index[0];

	/* other entries of this key and TID, dead ones, may be before it */
	for (;; i++)
	{
		if (use->log->stale)
			return false;
		if (i >= leaf->count)
		{
			if (leaf->next == 0)
				return true;
			leaf = hyb_tree_leaf_at(use->arena, leaf->next);
			i = -1;
			continue;
		}
		if (!hyb_tree_leaf_in_log(leaf, i) && hyb_tree_leaf_copy(leaf, i) == ref)
			break;
		if (hyb_tree_leaf_compare(use, leaf, i, &pos) != 0)
			return !use->log->stale;
	}

	if (!leaf->compact)
	{
		HybRef		low = 0;
		HybRef		high = 0;

		if (leaf == first)
			hyb_tree_fences(use, &path, 0, &low, &high);
		hyb_tree_leaf_make_compact(use, leaf, low, high);
	}
	hyb_compact_leaf(leaf)->ref[i] = log_ref;
	hyb_set_bit(hyb_compact_leaf(leaf)->in_log, i, true);
	hyb_set_bit(hyb_compact_leaf(leaf)->killed, i,
				(copy->len_flags & HYB_ENTRY_KILLED) != 0);
	use->tree->nlog++;
	return true;
}

bool
hyb_tree_compact(const HybTreeUse *use)
{
	HybTree    *tree = use->tree;
	uint32		chunk = tree->oldest;
	const HybChunk *header;

	if (!hyb_tree_elastic(use->desc) || chunk == 0 ||
		(use->desc->exact && tree->bloom.nparts == 0))
		return false;
	header = hyb_chunk(use->arena, chunk);
	for (uint32 off = HYB_CHUNK_HEADER; off < header->used;)
	{
		HybRef		ref = hyb_make_ref(chunk, off);
		const HybTreeEntry *copy = hyb_tree_entry_at(use->arena, ref);
		uint32		page;

		if (!hyb_tree_has_memory(tree, use->arena, 0, HYB_PAGE_NODES))
			return false;
		page = (copy->offset & HYB_OFFSET_LISTED) != 0 ? copy->block :
			hyb_tree_page_number(tree, use->arena, copy->block);
		if (page >= HYB_LOG_MAX_PAGES ||
			!give_up_copy(use, ref,
						  hyb_log_ref(page, copy->offset & ~HYB_OFFSET_LISTED)))
			return false;
		off += hyb_entry_size(hyb_entry_len(copy));
	}
	Assert(header->kind == HYB_CHUNK_ENTRIES && tree->nchunks > 0);
	tree->oldest = header->next;
	if (tree->oldest == 0)
		tree->newest = 0;
	tree->nchunks--;
	hyb_arena_put(use->arena, chunk);
	hyb_tree_assert_valid(tree);
	return true;
}
