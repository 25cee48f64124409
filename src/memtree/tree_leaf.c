/*
 * tree_leaf.c
 *		Leaves of the B+tree, plain and compact.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "memtree/tree_node.h"
#include "port/pg_bitutils.h"

/*
 * Short heads are computed anew, which reads keys from the log, when the
 * fences have this number of bits more in common.
 */
#define REHEAD_BITS		4

/* Of a head's 64 bits 16 are kept. */
#define MAX_SHIFT		48

#ifdef USE_ASSERT_CHECKING
/* A leaf that has been changed: its counts, links, and the order of its heads. */
static void
leaf_assert_valid(const HybTreeLeaf *leaf)
{
	Assert(leaf->count <= hyb_tree_leaf_fanout(leaf));
	Assert(leaf->skip <= HYB_MAX_ENTRY_SIZE);
	Assert(leaf->next != leaf->prev || leaf->next == 0);
	Assert(!leaf->compact || hyb_compact_leaf(leaf)->shift <= MAX_SHIFT);
	for (int i = 0; i < leaf->count; i++)
	{
		Assert(hyb_tree_leaf_in_log(leaf, i) || hyb_tree_leaf_copy(leaf, i) != 0);
		/* heads never contradict the order of keys */
		Assert(i == 0 || (leaf->compact ?
						  hyb_compact_leaf(leaf)->head[i - 1] <= hyb_compact_leaf(leaf)->head[i] :
						  hyb_plain_leaf(leaf)->head[i - 1] <= hyb_plain_leaf(leaf)->head[i]));
	}
}
#else
#define leaf_assert_valid(leaf) ((void) (leaf))
#endif

/* ---- reading ---- */

static bool
load_tree_entry(const HybTreeUse *use, HybLogRef ref, HybEntry *entry)
{
	if (use->log->stale)
		return false;
	return use->log->load(use->log,
						  hyb_tree_page(use->tree, use->arena,
										hyb_log_ref_page(ref)),
						  hyb_log_ref_offset(ref), entry);
}

static inline void
copied_entry(const HybTreeEntry *copy, HybEntry *entry)
{
	entry->bytes = copy->bytes;
	entry->len = hyb_entry_len(copy);
	entry->keylen = copy->keylen;
	entry->tid = copy->tid;
	entry->block = copy->block;
	entry->offset = copy->offset;
	entry->flags = copy->len_flags & (HYB_ENTRY_DEAD | HYB_ENTRY_KILLED);
}

bool
hyb_tree_leaf_entry(const HybTreeUse *use, const HybTreeLeaf *leaf, int i,
					HybEntry *entry)
{
	if (!hyb_tree_leaf_in_log(leaf, i))
	{
		copied_entry(hyb_tree_entry_at(use->arena, hyb_tree_leaf_copy(leaf, i)), entry);
		return true;
	}
	if (!load_tree_entry(use, hyb_compact_leaf(leaf)->ref[i], entry))
		return false;
	entry->flags = (entry->flags != 0 ? HYB_ENTRY_DEAD : 0) |
		(hyb_bit(hyb_compact_leaf(leaf)->killed, i) ? HYB_ENTRY_KILLED : 0);
	return true;
}

/* If the log is stale the answer is made up. */
int
hyb_tree_leaf_compare(const HybTreeUse *use, const HybTreeLeaf *leaf, int i,
					  const HybPos *pos)
{
	HybEntry	entry;

	if (!hyb_tree_leaf_in_log(leaf, i))
	{
		const HybTreeEntry *copy =
			hyb_tree_entry_at(use->arena, hyb_tree_leaf_copy(leaf, i));

		return hyb_pos_compare_key(use->desc, copy->bytes, copy->keylen,
								   &copy->tid, pos);
	}
	if (!load_tree_entry(use, hyb_compact_leaf(leaf)->ref[i], &entry))
		return 1;
	return hyb_pos_compare_key(use->desc, entry.bytes, entry.keylen,
							   &entry.tid, pos);
}

/*
 * Of the items from lo on, whose heads do not lie below the target's, the first
 * that lies above it, by the head or else by the key.  Mostly it is that one.
 */
#define SEARCH_FROM(lo, heads, high) \
	do { \
		int			hi = leaf->count; \
		int			least = target->above ? 1 : 0; \
		if (lo < hi && (heads)[lo] > (high)) \
			return lo; \
		while (lo < hi) \
		{ \
			int			mid = (lo + hi) / 2; \
			if ((heads)[mid] > (high) || \
				hyb_tree_leaf_compare(target->use, leaf, mid, target->pos) >= least) \
				hi = mid; \
			else \
				lo = mid + 1; \
		} \
		return lo; \
	} while (0)

int
hyb_tree_leaf_search(const HybTreeTarget *target, const HybTreeLeaf *leaf)
{
	if (leaf->compact)
	{
		const HybCompactLeaf *compact = hyb_compact_leaf(leaf);
		uint16		low = hyb_short_head(target->low, compact->shift);
		uint16		high = hyb_short_head(target->high, compact->shift);
		int			lo = hyb_first_short_head(compact->head, 0, leaf->count, low);

		SEARCH_FROM(lo, compact->head, high);
	}
	else
	{
		const HybPlainLeaf *plain = hyb_plain_leaf(leaf);
		int			lo = hyb_first_head(plain->head, 0, leaf->count, target->low);

		SEARCH_FROM(lo, plain->head, target->high);
	}
}

/* ---- changing ---- */

/* The same in a bitmap of n bits, for a zero. */
static inline void
open_bit(uint8 *bitmap, int i, int n)
{
	int			at = i >> 3;
	uint8		below = (1 << (i & 7)) - 1;

	for (int j = n >> 3; j > at; j--)
		bitmap[j] = (uint8) (bitmap[j] << 1 | bitmap[j - 1] >> 7);
	bitmap[at] = (bitmap[at] & below) | (uint8) ((bitmap[at] & ~below) << 1);
}

void
hyb_tree_leaf_put(HybTreeLeaf *leaf, int i, uint64 head, HybTreeItem item)
{
	int			n = leaf->count;

	Assert(n < hyb_tree_leaf_fanout(leaf) && i >= 0 && i <= n && item.ref != 0);
	if (leaf->compact)
	{
		HybCompactLeaf *compact = hyb_compact_leaf(leaf);

		HYB_OPEN_PLACE(compact->head, i, n);
		HYB_OPEN_PLACE(compact->ref, i, n);
		open_bit(compact->in_log, i, n);
		open_bit(compact->killed, i, n);
		compact->head[i] = hyb_short_head(head, compact->shift);
		compact->ref[i] = item.ref;
		hyb_set_bit(compact->in_log, i, item.in_log);
	}
	else
	{
		HybPlainLeaf *plain = hyb_plain_leaf(leaf);

		Assert(!item.in_log);
		HYB_OPEN_PLACE(plain->head, i, n);
		HYB_OPEN_PLACE(plain->entry, i, n);
		plain->head[i] = head;
		plain->entry[i] = item.ref;
	}
	leaf->count++;
	leaf->dead = false;
	leaf_assert_valid(leaf);
}

/* Leading bits that the heads of all keys between two fences have in common. */
static int
fences_shift(const HybTreeUse *use, const HybEntry *low, const HybEntry *high,
			 uint32 skip)
{
	uint64		differ =
		hyb_tree_bytes_head(use->desc, low->bytes, low->keylen, skip) ^
		hyb_tree_bytes_head(use->desc, high->bytes, high->keylen, skip);

	return differ == 0 ? MAX_SHIFT :
		Min(63 - pg_leftmost_one_pos64(differ), MAX_SHIFT);
}

/* A fence: a separator. */
static inline HybEntry
fence_at(const HybTreeUse *use, HybRef ref)
{
	const HybTreeEntry *sep = hyb_tree_entry_at(use->arena, ref);

	return (HybEntry)
	{
		.bytes = sep->bytes,.keylen = sep->keylen
	};
}

void
hyb_tree_leaf_make_compact(const HybTreeUse *use, HybTreeLeaf *leaf, HybRef low,
						   HybRef high)
{
	HybPlainLeaf old = *hyb_plain_leaf(leaf);
	HybCompactLeaf *compact = hyb_compact_leaf(leaf);
	int			shift = 0;

	Assert(!leaf->compact && hyb_tree_elastic(use->desc));
	if (low != 0 && high != 0)
	{
		HybEntry	a = fence_at(use, low);
		HybEntry	b = fence_at(use, high);

		shift = fences_shift(use, &a, &b, leaf->skip);
	}
	memset((char *) compact + sizeof(HybTreeLeaf), 0,
		   sizeof(HybCompactLeaf) - sizeof(HybTreeLeaf));
	leaf->compact = true;
	compact->shift = shift;
	for (int i = 0; i < leaf->count; i++)
	{
		compact->head[i] = hyb_short_head(old.head[i], shift);
		compact->ref[i] = old.entry[i];
	}
	leaf_assert_valid(leaf);
}

/* ---- splitting ---- */

/*
 * Cut the separator, so far the key on its right, to the shortest bytes that
 * are above the key on its left.  Where the keys are equal the TID decides.
 */
static void
cut_separator(const HybEntry *left, HybTreeSplit *split)
{
	uint32		common = hyb_common_prefix(left->bytes, split->sep,
										   Min(left->keylen, split->sep_len));

	if (common + 1 < split->sep_len)
	{
		split->sep_len = common + 1;
		memset(&split->sep_tid, 0, sizeof(ItemPointerData));
	}
}

/* Bits of a key that its place between fences tells: skipped ones, shifted ones. */
static inline int
known_bits(uint32 skip, int shift)
{
	return (int) Max(skip, 1) * 8 + shift;
}

/* Skip and shift of one half, between the separator and a fence (0: none). */
static void
plan_half(const HybTreeUse *use, const HybTreeLeaf *leaf, int half,
		  HybRef ref, HybTreeSplit *split)
{
	uint32		skip = 0;
	int			shift = 0;

	if (ref != 0)
	{
		HybEntry	fence = fence_at(use, ref);
		HybEntry	sep = {.bytes = split->sep,.keylen = split->sep_len};

		if (hyb_tree_skips_bytes(use->desc))
			skip = hyb_common_prefix(fence.bytes, sep.bytes,
									 Min(fence.keylen, sep.keylen));
		shift = fences_shift(use, &fence, &sep, skip);
	}
	split->skip[half] = skip;
	split->shift[half] = shift;
	split->rehead[half] = false;
	if (!leaf->compact)
		return;
	split->rehead[half] = known_bits(skip, shift) >=
		known_bits(leaf->skip, hyb_compact_leaf(leaf)->shift) + REHEAD_BITS;
	if (!split->rehead[half])
	{
		split->skip[half] = leaf->skip;
		split->shift[half] = hyb_compact_leaf(leaf)->shift;
	}
}

bool
hyb_tree_leaf_split_plan(const HybTreeUse *use, const HybTreePath *path,
						 const HybEntry *entry, HybTreeSplit *split)
{
	const HybTreeLeaf *leaf = hyb_tree_leaf_at(use->arena, path->node[0]);
	int			i = path->index[0];
	int			n = leaf->count;
	HybEntry	right = *entry;
	HybRef		low;
	HybRef		high;

	Assert(n == hyb_tree_leaf_fanout(leaf) && i >= 0 && i <= n);
	/* at the right end of the tree, where ascending keys arrive, all stay */
	split->keep = leaf->next == 0 && i == n ? n : (n + 1) / 2;
	split->to_left = i < split->keep || (i == split->keep && split->keep < n);
	split->sep_len = 0;
	split->new_head = hyb_tree_bytes_head(use->desc, entry->bytes, entry->keylen, 0);
	if (!hyb_tree_elastic(use->desc))
		return true;

	/* the right half's first entry, and what the left one's last has not */
	if (split->keep < n && !hyb_tree_leaf_entry(use, leaf, split->keep, &right))
		return false;
	split->sep_len = right.keylen;
	split->sep_tid = right.tid;
	memcpy(split->sep, right.bytes, right.keylen);
	if (split->to_left && i == split->keep)
		cut_separator(entry, split);
	else
	{
		HybEntry	left;

		if (!hyb_tree_leaf_entry(use, leaf, split->keep - 1, &left))
			return false;
		cut_separator(&left, split);
	}

	hyb_tree_fences(use, path, 0, &low, &high);
	plan_half(use, leaf, 0, low, split);
	plan_half(use, leaf, 1, high, split);
	split->new_head = hyb_tree_bytes_head(use->desc, entry->bytes, entry->keylen,
										  split->skip[split->to_left ? 0 : 1]);
	for (int j = 0; j < n && leaf->compact; j++)
	{
		int			half = j < split->keep ? 0 : 1;
		HybEntry	each;

		split->head[j] = hyb_compact_leaf(leaf)->head[j];
		if (!split->rehead[half])
			continue;
		if (!hyb_tree_leaf_entry(use, leaf, j, &each))
			return false;
		split->head[j] = hyb_short_head(hyb_tree_bytes_head(use->desc, each.bytes,
															each.keylen,
															split->skip[half]),
										split->shift[half]);
	}
	return true;
}

/* Give entries [from, from + n) of a compact leaf to an empty one. */
static void
copy_compact(const HybCompactLeaf *leaf, int from, int n, HybCompactLeaf *right)
{
	memcpy(right->ref, leaf->ref + from, n * sizeof(leaf->ref[0]));
	for (int i = 0; i < n; i++)
	{
		hyb_set_bit(right->in_log, i, hyb_bit(leaf->in_log, from + i));
		hyb_set_bit(right->killed, i, hyb_bit(leaf->killed, from + i));
	}
	right->leaf.count = n;
}

static void
split_compact(HybCompactLeaf *leaf, HybCompactLeaf *right,
			  const HybTreeSplit *split)
{
	int			n = leaf->leaf.count;

	copy_compact(leaf, split->keep, n - split->keep, right);
	leaf->leaf.count = split->keep;
	memcpy(leaf->head, split->head, split->keep * sizeof(leaf->head[0]));
	memcpy(right->head, split->head + split->keep,
		   (n - split->keep) * sizeof(leaf->head[0]));
	leaf->shift = split->shift[0];
	right->shift = split->shift[1];
	right->leaf.compact = true;
}

/* New heads for the entries of a plain leaf that has got closer fences. */
static void
reset_heads(const HybTreeUse *use, HybPlainLeaf *plain, uint32 skip)
{
	if (skip == plain->leaf.skip)
		return;
	for (int i = 0; i < plain->leaf.count; i++)
		plain->head[i] = hyb_tree_entry_head(use->arena, use->desc,
											 plain->entry[i], skip);
}

static void
split_plain(const HybTreeUse *use, HybPlainLeaf *leaf, HybPlainLeaf *right,
			const HybTreeSplit *split)
{
	int			n = leaf->leaf.count - split->keep;

	memcpy(right->head, leaf->head + split->keep, n * sizeof(leaf->head[0]));
	memcpy(right->entry, leaf->entry + split->keep, n * sizeof(leaf->entry[0]));
	right->leaf.count = n;
	right->leaf.skip = leaf->leaf.skip;
	leaf->leaf.count = split->keep;
	if (hyb_tree_elastic(use->desc))
	{
		reset_heads(use, leaf, split->skip[0]);
		reset_heads(use, right, split->skip[1]);
	}
}

HybRef
hyb_tree_leaf_split(const HybTreeUse *use, const HybTreePath *path,
					const HybTreeSplit *split, HybTreeItem item,
					HybRef *sep)
{
	HybArena   *arena = use->arena;
	HybRef		right_ref = hyb_tree_new_node(use->tree, arena);
	HybTreeLeaf *leaf = hyb_tree_leaf_at(arena, path->node[0]);
	HybTreeLeaf *right = hyb_tree_leaf_at(arena, right_ref);
	HybTreeLeaf *target = split->to_left ? leaf : right;
	int			i = path->index[0];

	if (leaf->compact)
		split_compact(hyb_compact_leaf(leaf), hyb_compact_leaf(right), split);
	else
		split_plain(use, hyb_plain_leaf(leaf), hyb_plain_leaf(right), split);
	if (hyb_tree_elastic(use->desc))
	{
		leaf->skip = split->skip[0];
		right->skip = split->skip[1];
	}
	right->next = leaf->next;
	right->prev = path->node[0];
	if (leaf->next != 0)
		hyb_tree_leaf_at(arena, leaf->next)->prev = right_ref;
	leaf->next = right_ref;
	hyb_tree_leaf_put(target, split->to_left ? i : i - split->keep,
					  split->new_head, item);
	Assert(leaf->count > 0 && right->count > 0);
	leaf_assert_valid(leaf);
	leaf_assert_valid(right);

	if (hyb_tree_elastic(use->desc))
		*sep = hyb_tree_new_separator(use->tree, arena, split->sep,
									  split->sep_len, &split->sep_tid);
	else
		*sep = hyb_tree_leaf_copy(right, 0);
	return right_ref;
}
