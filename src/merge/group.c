/*
 * group.c
 *		Entries that share a row of a leaf that does not keep keys, told apart.
 *
 * An entry whose key begins with a row's prefix goes to that row: whether it is
 * another version of the same row of the table, or a key that happens to begin
 * alike, is not known (docs/trie.md).  Who looks the key up pays for what is not
 * its own.  So when a row gets its second entry, and whenever the number of its
 * entries has doubled since, the keys of those it has are read from the table.
 *
 * Where items have fingerprints a look-up hardly pays, only scans in order do.  So
 * if reading is dear, a row gets more entries first.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "base/memory.h"
#include "executor/instrument.h"
#include "merge/dead.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"

/*
 * Pages that a step reads from disk for it, at most: the merge lock is held.
 * Groups stay for another merge then.
 */
#define GROUP_MAX_READS		1024

/* Rows of more entries are few. */
#define MAX_AHEAD		8

typedef struct Member
{
	ItemPointerData tid;
	uint32		off;			/* its key, in `keys` */
	uint32		len;
} Member;

/* The items of a row whose keys were read, in order. */
typedef struct HybStepGroup
{
	Member	   *members;
	int			n;
	int			alloc;
	HybBuf		keys;
	HybBuf		key;			/* of the one at hand */
	int			tombstones;		/* items left out: tombstones, */
	int			dead;			/* and dead ones */
	int64		reads;			/* in this step */
} HybStepGroup;

int
hyb_step_entries_of_row(HybMergeStep *step, int row, int end)
{
	int			i = step->done.next_entry + 1;

	Assert(step->done.next_entry < end && end <= step->last_entry);
	for (; i < end; i++)
	{
		HybPos		pos = hyb_step_pos(step, &step->batch.items[i]);
		HybRowRange rows;

		(void) hyb_leaf_search_rows(&step->leaf, &pos, &rows);
		if (rows.lo != row || rows.hi != row + 1)
			break;
	}
	return i;
}

/*
 * Rows of so many entries are read whenever others come: one of many could be
 * more than a page holds, and only a whole key's go on in the next one.  A TID
 * takes 31 bits at most there, its fingerprint and its hint 6, and what they begin
 * with HYB_MAX_ENTRY_SIZE bytes.
 */
#define MANY_ENTRIES	1024

/* Entries that a row has then. */
#define ROW_FEW_ENTRIES		8

/* Is it time to read so many keys, if so many entries come to them? */
static bool
is_due(HybMergeStep *step, int old, int more)
{
	if (old + more >= MANY_ENTRIES)
		return true;
	if (old + more < ROW_FEW_ENTRIES && step->leaf.layout->may_have != NULL &&
		hyb_dead_table_is_large(&step->dead))
		return false;
	return pg_leftmost_one_pos32(old) != pg_leftmost_one_pos32(old + more);
}

/*
 * By the first entry that comes to a row, which is the only one mostly.
 */
void
hyb_step_ask_ahead(HybMergeStep *step, int end)
{
	int			left = hyb_dead_ahead(&step->dead);
	int			row = -1;

	for (int i = step->done.next_entry; i < end && left > 0; i++)
	{
		HybPos		pos = hyb_step_pos(step, &step->batch.items[i]);
		HybRowRange rows;
		ItemPointerData tids[MAX_AHEAD];
		int			from;
		int			n;

		if (hyb_leaf_search_rows(&step->leaf, &pos, &rows) || rows.lo == rows.hi ||
			rows.lo == row)
			continue;
		row = rows.lo;
		from = hyb_leaf_row_start(&step->leaf, row);
		n = hyb_leaf_row_start(&step->leaf, row + 1) - from;
		if (n < 1 || n > MAX_AHEAD || !is_due(step, n, 1))
			continue;
		hyb_leaf_tids(&step->leaf, from, n, tids);
		for (int k = 0; k < n; k++)
			hyb_dead_prefetch(&step->dead, ItemPointerGetBlockNumberNoCheck(&tids[k]));
		left -= n;
	}
}

static HybStepGroup *
get_group(HybMergeStep *step)
{
	if (step->group == NULL)
		step->group = palloc0(sizeof(HybStepGroup));
	return step->group;
}

/* Read an item's key.  False if that cannot be done. */
static bool
read_member(HybMergeStep *step, HybStepGroup *group, int item,
			const ItemPointerData *tid, const HybBuf *prefix, uint32 bits)
{
	CHECK_FOR_INTERRUPTS();
	if (hyb_leaf_is_tombstone(&step->leaf, item))
	{
		group->tombstones++;
		return true;
	}
	group->key.len = 0;
	switch (hyb_heap_key(&step->dead, step->ix, tid, &group->key))
	{
		case HYB_KEY_UNKNOWN:
			return false;
		case HYB_KEY_DEAD:
			group->dead++;
			return true;
		case HYB_KEY_READ:
			break;
	}
	if (!hyb_begins_with_bits(group->key.data, group->key.len, prefix->data, bits))
		return false;
	if (group->n == group->alloc)
	{
		group->alloc = Max(group->alloc * 2, 16);
		group->members = hyb_grow(CurrentMemoryContext, group->members,
								  group->alloc, sizeof(Member));
	}
	group->members[group->n++] = (Member)
	{
		.tid = *tid,.off = group->keys.len,.len = group->key.len
	};
	hyb_buf_append(&group->keys, group->key.data, group->key.len);
	return true;
}

static int
compare_members(const void *a, const void *b, void *arg)
{
	const Member *x = a;
	const Member *y = b;
	const HybBuf *keys = arg;
	int			c = memcmp(keys->data + x->off, keys->data + y->off,
						   Min(x->len, y->len));

	return c != 0 ? c : ItemPointerCompare(unconstify(ItemPointerData *, &x->tid),
										   unconstify(ItemPointerData *, &y->tid));
}

bool
hyb_step_read_group(HybMergeStep *step, int row, int last)
{
	HybStepGroup *group = get_group(step);
	int			from = hyb_leaf_row_start(&step->leaf, row);
	int			n = hyb_leaf_row_start(&step->leaf, row + 1) - from;
	int			more = last - step->done.next_entry;
	int64		reads = pgBufferUsage.shared_blks_read;
	ItemPointerData *tids;
	HybBuf		prefix = {0};
	uint32		bits;
	bool		all = true;

	if (n < 1)
		hyb_corrupted(step->ix->rel, step->leaf.blkno, "The rows of the leaf do not ascend.");
	if (!is_due(step, n, more) ||
		(group->reads >= GROUP_MAX_READS && n + more < MANY_ENTRIES))
		return false;
	group->n = group->tombstones = group->dead = 0;
	group->keys.len = 0;
	bits = hyb_leaf_prefix(&step->leaf, row, &prefix);
	tids = palloc(n * sizeof(ItemPointerData));
	hyb_leaf_tids(&step->leaf, from, n, tids);
	for (int i = 0; i < n && all; i++)
		all = read_member(step, group, from + i, &tids[i], &prefix, bits);
	pfree(tids);
	hyb_buf_free(&prefix);
	group->reads += pgBufferUsage.shared_blks_read - reads;
	if (all)
		qsort_arg(group->members, group->n, sizeof(Member), compare_members,
				  &group->keys);
	return all;
}

void
hyb_step_add_group(HybMergeStep *step, int last)
{
	HybStepGroup *group = step->group;
	int			next = 0;

	Assert(last >= step->done.next_entry && last <= step->last_entry);
	step->done.leaves.old_tombstones += group->tombstones;
	for (int i = 0; i < group->dead; i++)
		hyb_step_drop(step);
	while (next < group->n || step->done.next_entry < last)
	{
		const Member *member = &group->members[next];
		bool		frozen = next == group->n;

		if (!frozen && step->done.next_entry < last)
		{
			HybPos		pos = hyb_step_pos(step, &step->batch.items[step->done.next_entry]);

			frozen = hyb_pos_compare_key(step->ix->desc, group->keys.data + member->off,
										 member->len, &member->tid, &pos) >= 0;
		}
		if (frozen)
		{
			hyb_step_add_frozen(step);
			continue;
		}
		(void) hyb_key_split(step->ix->desc, group->keys.data + member->off,
							 member->len, step->ix->desc->natts, step->vals);
		hyb_leaf_builder_add(step->builder, step->vals, &member->tid);
		next++;
	}
}
