/*
 * tree_check.c
 *		Checking the invariants of the B+tree, for hybrid_index_check.
 */
#include "compat.h"

#include "dynamic/tree.h"
#include "storage/itemptr.h"

typedef struct Verify
{
	const HybTree *tree;
	const HybArena *arena;
	const HybKeyDesc *desc;
	HybRef		last_leaf;
	HybRef		last_entry;
	uint64		nentries;
} Verify;

static const char *
verify_order(Verify *v, HybRef left, HybRef right)
{
	const HybTreeEntry *a = hyb_tree_entry_at(v->arena, left);
	const HybTreeEntry *b = hyb_tree_entry_at(v->arena, right);
	int			c = hyb_key_compare(v->desc, a->bytes, a->keylen,
									b->bytes, b->keylen);

	if (c > 0 || (c == 0 && ItemPointerCompare(unconstify(ItemPointerData *, &a->tid),
											   unconstify(ItemPointerData *, &b->tid)) > 0))
		return "entries out of order";
	return NULL;
}

/* Items [first, n) of a node: their heads, and the bytes before them. */
static const char *
verify_heads(Verify *v, uint32 skip, const uint64 *head, const HybRef *ref,
			 int first, int n)
{
	for (int i = first; i < n; i++)
	{
		const HybTreeEntry *entry = hyb_tree_entry_at(v->arena, ref[i]);

		if (skip > 0 &&
			(entry->keylen < skip ||
			 memcmp(entry->bytes, hyb_tree_entry_at(v->arena, ref[first])->bytes, skip) != 0))
			return "skipped bytes differ";
		if (head[i] != hyb_tree_entry_head(v->arena, v->desc, ref[i], skip))
			return "wrong head";
		if (i > first && head[i - 1] > head[i])
			return "heads out of order";
	}
	return NULL;
}

static const char *
verify_node(Verify *v, HybRef ref, int level, HybRef sep, HybRef next_sep)
{
	const char *error;

	if (level > 0)
	{
		const HybTreeInner *inner = hyb_tree_inner_at(v->arena, ref);

		if (inner->count < 1 || inner->count > HYB_INNER_FANOUT)
			return "inner node's count is out of range";
		if ((error = verify_heads(v, inner->skip, inner->head, inner->sep,
								  1, inner->count)) != NULL)
			return error;
		for (int i = 0; i < inner->count; i++)
		{
			HybRef		low = i > 0 ? inner->sep[i] : sep;
			HybRef		high = i + 1 < inner->count ? inner->sep[i + 1] : next_sep;

			if (i > 0 && low != 0 && sep != 0 &&
				(error = verify_order(v, sep, low)) != NULL)
				return error;
			if ((error = verify_node(v, inner->child[i], level - 1, low, high)) != NULL)
				return error;
		}
	}
	else
	{
		const HybTreeLeaf *leaf = hyb_tree_leaf_at(v->arena, ref);

		if (leaf->count < 1 || leaf->count > HYB_LEAF_FANOUT)
			return "leaf's count is out of range";
		if (leaf->prev != v->last_leaf ||
			(v->last_leaf != 0 && hyb_tree_leaf_at(v->arena, v->last_leaf)->next != ref))
			return "leaves are linked wrongly";
		v->last_leaf = ref;
		if ((error = verify_heads(v, leaf->skip, leaf->head, leaf->entry,
								  0, leaf->count)) != NULL)
			return error;
		for (int i = 0; i < leaf->count; i++)
		{
			HybRef		entry = leaf->entry[i];

			error = verify_order(v, v->last_entry != 0 ? v->last_entry : entry,
								 entry);
			if (error == NULL && sep != 0)
				error = verify_order(v, sep, entry);
			if (error != NULL)
				return error;
			if (next_sep != 0)
			{
				const HybTreeEntry *e = hyb_tree_entry_at(v->arena, entry);
				const HybTreeEntry *s = hyb_tree_entry_at(v->arena, next_sep);

				if (hyb_key_compare(v->desc, e->bytes, e->keylen,
									s->bytes, s->keylen) > 0)
					return "entry above its node's range";
			}
			v->last_entry = entry;
			v->nentries++;
		}
	}
	return NULL;
}

const char *
hyb_tree_verify(const HybTree *tree, const HybArena *arena,
				const HybKeyDesc *desc)
{
	Verify		v = {tree, arena, desc, 0, 0, 0};
	const char *error;

	if (tree->root == 0)
		return tree->nentries == 0 ? NULL : "empty tree counts entries";
	error = verify_node(&v, tree->root, tree->height - 1, 0, 0);
	if (error == NULL && v.nentries != tree->nentries)
		error = "wrong number of entries";
	if (error == NULL && hyb_tree_leaf_at(arena, v.last_leaf)->next != 0)
		error = "the last leaf has a successor";
	return error;
}
