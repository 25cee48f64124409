/*
 * tree_check.c
 *		Checking the invariants of the B+tree, for hybrid_index_check.
 */
#include "base/compat.h"

#include "memtree/memtree.h"
#include "memtree/tree_node.h"

/* Keys seen are copied: what an entry's bytes point to may go. */
typedef struct Verify
{
	const HybTreeUse *use;
	HybRef		last_leaf;
	uint64		nentries;
	uint64		nlog;
	HybEntry	last;			/* keylen 0: there was none */
	uint8		last_key[HYB_MAX_ENTRY_SIZE];
} Verify;

/* A separator as an entry. */
static HybEntry
separator(Verify *v, HybRef ref)
{
	const HybTreeEntry *sep = hyb_tree_entry_at(v->use->arena, ref);

	return (HybEntry)
	{
		.bytes = sep->bytes,.len = sep->keylen,.keylen = sep->keylen,.tid = sep->tid
	};
}

static int
compare(Verify *v, HybEntry *a, HybEntry *b)
{
	int			c = hyb_key_compare(v->use->desc, a->bytes, a->keylen,
									b->bytes, b->keylen);

	return c != 0 ? c : ItemPointerCompare(&a->tid, &b->tid);
}

/* The head of a key in a node, and the bytes before it. */
static const char *
verify_head(Verify *v, const HybEntry *entry, uint32 skip, const uint8 *first,
			uint64 head, int shift)
{
	uint64		expected;

	if (skip > 0 && (entry->keylen < skip ||
					 (first != NULL && memcmp(entry->bytes, first, skip) != 0)))
		return "skipped bytes differ";
	expected = hyb_tree_bytes_head(v->use->desc, entry->bytes, entry->keylen, skip);
	if (head != (shift >= 0 ? hyb_short_head(expected, shift) : expected))
		return "wrong head";
	return NULL;
}

static const char *
verify_separators(Verify *v, const HybTreeInner *inner)
{
	for (int i = 1; i < inner->count; i++)
	{
		HybEntry	first = separator(v, inner->sep[1]);
		HybEntry	entry = separator(v, inner->sep[i]);
		const char *error = verify_head(v, &entry, inner->skip, first.bytes,
										inner->head[i], -1);

		if (error != NULL)
			return error;
		if (i > 1 && inner->head[i - 1] > inner->head[i])
			return "heads out of order";
	}
	return NULL;
}

/* The bits that short heads leave out are those of the first entry. */
static const char *
verify_common(Verify *v, const HybTreeLeaf *leaf, const HybEntry *entry,
			  uint64 *common)
{
	int			shift = leaf->compact ? hyb_compact_leaf(leaf)->shift : 0;
	uint64		head = hyb_tree_bytes_head(v->use->desc, entry->bytes,
										   entry->keylen, leaf->skip);

	if (shift == 0)
		return NULL;
	if (*common == PG_UINT64_MAX)
		*common = head >> (64 - shift);
	return head >> (64 - shift) == *common ? NULL : "bits left out differ";
}

/* An entry comes after the last one, and lies between its leaf's fences. */
static const char *
verify_place(Verify *v, HybEntry *entry, HybRef low, HybRef high)
{
	HybEntry	fence;

	if (v->last.keylen > 0 && compare(v, &v->last, entry) > 0)
		return "entries out of order";
	if (low != 0)
	{
		fence = separator(v, low);
		if (compare(v, &fence, entry) > 0)
			return "entry below its node's range";
	}
	if (high != 0)
	{
		fence = separator(v, high);
		if (hyb_key_compare(v->use->desc, entry->bytes, entry->keylen,
							fence.bytes, fence.keylen) > 0)
			return "entry above its node's range";
	}
	v->last = *entry;
	v->last.bytes = v->last_key;
	memcpy(v->last_key, entry->bytes, entry->keylen);
	return NULL;
}

static const char *
verify_leaf(Verify *v, HybRef ref, HybRef low, HybRef high)
{
	const HybTreeLeaf *leaf = hyb_tree_leaf_at(v->use->arena, ref);
	const HybCompactLeaf *compact = leaf->compact ? hyb_compact_leaf(leaf) : NULL;
	uint64		common = PG_UINT64_MAX;
	uint8		skipped[HYB_MAX_ENTRY_SIZE];

	if (leaf->count < 1 || leaf->count > hyb_tree_leaf_fanout(leaf))
		return "leaf's count is out of range";
	if (compact != NULL && !hyb_tree_elastic(v->use->desc))
		return "a leaf must not be compact";
	if (leaf->prev != v->last_leaf ||
		(v->last_leaf != 0 &&
		 hyb_tree_leaf_at(v->use->arena, v->last_leaf)->next != ref))
		return "leaves are linked wrongly";
	v->last_leaf = ref;
	for (int i = 0; i < leaf->count; i++)
	{
		HybEntry	entry;
		const char *error;

		if (!hyb_tree_leaf_entry(v->use, leaf, i, &entry))
			return NULL;
		error = verify_head(v, &entry, leaf->skip, i > 0 ? skipped : NULL,
							compact != NULL ? compact->head[i] :
							hyb_plain_leaf(leaf)->head[i],
							compact != NULL ? compact->shift : -1);
		if (error == NULL)
			error = verify_common(v, leaf, &entry, &common);
		if (error == NULL)
			error = verify_place(v, &entry, low, high);
		if (error != NULL)
			return error;
		if (i == 0)
			memcpy(skipped, entry.bytes, leaf->skip);
		v->nentries++;
		v->nlog += hyb_tree_leaf_in_log(leaf, i) ? 1 : 0;
	}
	return NULL;
}

static const char *
verify_node(Verify *v, HybRef ref, int level, HybRef sep, HybRef next_sep)
{
	const HybTreeInner *inner = hyb_tree_inner_at(v->use->arena, ref);
	const char *error;

	if (level == 0)
		return verify_leaf(v, ref, sep, next_sep);
	if (inner->count < 1 || inner->count > HYB_INNER_FANOUT)
		return "inner node's count is out of range";
	error = verify_separators(v, inner);
	for (int i = 0; i < inner->count && error == NULL && !v->use->log->stale; i++)
	{
		HybRef		low = i > 0 ? inner->sep[i] : sep;
		HybRef		high = i + 1 < inner->count ? inner->sep[i + 1] : next_sep;

		if (i > 0 && sep != 0)
		{
			HybEntry	a = separator(v, sep);
			HybEntry	b = separator(v, low);

			if (compare(v, &a, &b) > 0)
				return "separators out of order";
		}
		error = verify_node(v, inner->child[i], level - 1, low, high);
	}
	return error;
}

const char *
hyb_tree_verify(const HybTreeUse *use)
{
	const HybTree *tree = use->tree;
	Verify		v = {.use = use};
	const char *error;

	if (tree->root == 0)
		return tree->nentries == 0 ? NULL : "empty tree counts entries";
	error = verify_node(&v, tree->root, tree->height - 1, 0, 0);
	if (use->log->stale)
		return NULL;
	if (error == NULL && v.nentries != tree->nentries)
		error = "wrong number of entries";
	if (error == NULL && v.nlog != tree->nlog)
		error = "wrong number of entries that only the log has";
	if (error == NULL && hyb_tree_leaf_at(use->arena, v.last_leaf)->next != 0)
		error = "the last leaf has a successor";
	return error;
}
