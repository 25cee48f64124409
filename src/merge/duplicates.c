/*
 * duplicates.c
 *		Entries of one key or one row: what a step asks the table about them.
 *
 * Dead row versions.  A merge leaves out dead entries that scans have left
 * hints on (dead.c).  But an update of one column adds an entry of the same key
 * to the indexes on all other columns.  The entry of the old row version stays
 * there, even if no scan ever reads those indexes.  So if the key of a
 * fetched entry has other entries, a step looks at the line pointers of all of
 * them.  nbtree does that when a page is full of such duplicates (bottom-up
 * deletion).  A page of the table tells of all its line pointers at once, and the
 * merge remembers them (dead.h).  Equal keys may also belong to different rows.
 * So the step visits pages only while they have dead line pointers, and passes over
 * more and more entries of other pages while they have none.  It visits no more
 * after the first page that has to be read from disk, since the merge lock is held.
 *
 * Rows of leaves that do not keep keys.  An entry whose key begins with a row's
 * prefix goes to that row.  It may be another version of the same row of the
 * table, or a key that begins alike (docs/trie.md).  Look-ups pay for entries
 * that are not their own.  So the step reads the keys of a row from the table
 * when the row gets its second entry, and whenever the number of its entries
 * has doubled since.  Where items have fingerprints, only ordered scans pay.
 * There a row gets more entries first if reading is expensive.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "base/memory.h"
#include "executor/instrument.h"
#include "key/encoded.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/rel.h"

/* Keys, and pages of the table, whose dead entries are counted together. */
#define VERSIONS_BATCH		32

/*
 * Visiting pages of the table is worth it if 1 in PAGE_WORTH_IT has a dead line
 * pointer, or fewer pages have more.
 */
#define PAGE_WORTH_IT		2

/* TIDs of a leaf that are decoded at a time. */
#define TIDS_AT_A_TIME		64

/* One in RECENT_SAMPLE entries is decoded to see how well it compresses. */
#define RECENT_SAMPLE		16

/*
 * A step reads at most this many pages from disk to read keys, since the merge
 * lock is held.  Other rows wait for the next merge.
 */
#define GROUP_MAX_READS		1024

/*
 * A row with this many entries is read whenever another one comes.  A row of
 * several keys has to fit one page; only that of one whole key continues on the
 * next page.  A TID takes at most 31 bits there, its fingerprint and hint 6, and
 * the prefix HYB_MAX_ENTRY_SIZE bytes.
 */
#define MANY_ENTRIES		1024

/* Entries of a row before it is read, if reading is expensive. */
#define ROW_FEW_ENTRIES		8

/* ---- dead row versions ---- */

/*
 * Count a thing that was looked at, and what was found.  After a batch none is passed
 * over if looking was worth it, else twice as many as before.  So few are looked at
 * where nothing is found.
 */
static void
count_looked_at(HybSampling *sampling, int found, int worth)
{
	Assert(sampling->looked < VERSIONS_BATCH && sampling->skip >= 0 && found >= 0);
	sampling->looked++;
	sampling->found += found;
	if (sampling->looked < VERSIONS_BATCH)
		return;
	sampling->skip = sampling->found >= sampling->looked / worth ? 0 :
		Max(sampling->skip * 2, VERSIONS_BATCH);
	sampling->pass = sampling->skip;
	sampling->looked = sampling->found = 0;
}

/*
 * Is the entry's line pointer dead?  False if its page is not visited.  The table
 * tells of all line pointers of a page at once, so a page is visited for the first
 * entry that is not passed over.
 */
static bool
is_dead(HybMergeStep *step, const ItemPointerData *tid)
{
	HybVersionLook *look = &step->look;
	int64		read = pgBufferUsage.shared_blks_read;
	HybPointer	pointer = hyb_dead_recall(&step->dead, tid);
	int			found;

	if (pointer != HYB_POINTER_UNKNOWN)
		return pointer == HYB_POINTER_DEAD;
	if (look->over)
		return false;
	if (look->pages.pass > 0)
	{
		look->pages.pass--;
		return false;
	}
	found = hyb_dead_visit(&step->dead, ItemPointerGetBlockNumberNoCheck(tid));
	count_looked_at(&look->pages, found, PAGE_WORTH_IT);
	if (pgBufferUsage.shared_blks_read != read)
		look->over = true;
	return hyb_dead_recall(&step->dead, tid) == HYB_POINTER_DEAD;
}

/* Can the step find no more dead entries? */
static bool
is_over(const HybMergeStep *step)
{
	return step->look.over && !hyb_dead_any(&step->dead);
}

/* Pass over n entries if none is going to be found dead. */
static bool
pass_over(HybMergeStep *step, int n)
{
	HybSampling *pages = &step->look.pages;

	if (hyb_dead_any(&step->dead) || pages->pass < n)
		return false;
	pages->pass -= n;
	return true;
}

/* Set hints on the dead ones of items [from, to) of the opened leaf. */
static void
look_at_items(HybMergeStep *step, int from, int to)
{
	ItemPointerData tids[TIDS_AT_A_TIME];

	while (from < to && !is_over(step))
	{
		int			n = Min(to - from, TIDS_AT_A_TIME);

		if (pass_over(step, n))
		{
			from += n;
			continue;
		}
		hyb_leaf_tids(&step->leaf, from, n, tids);
		for (int i = 0; i < n; i++)
		{
			int			item = from + i;

			if (!hyb_leaf_is_tombstone(&step->leaf, item) &&
				is_dead(step, &tids[i]))
			{
				step->leaf_hints[item >> 3] |= 1 << (item & 7);
				step->leaf_plain = false;
			}
		}
		from += n;
	}
}

void
hyb_step_look(HybMergeStep *step, bool leaf, int end)
{
	const HybKeyDesc *desc = step->ix->desc;
	HybFetchedItem *items = step->batch.items;
	HybSampling *keys = &step->look.keys;
	int			next;

	for (int i = step->done.next_entry; i < end && !is_over(step); i = next)
	{
		HybPos		pos = hyb_step_pos(step, &items[i]);
		int			first = 0;
		int			last = 0;
		int			row;
		int			end_row;

		if (keys->pass > 0)
		{
			next = i + Min(keys->pass, end - i);
			keys->pass -= next - i;
			continue;
		}
		for (next = i + 1; next < end; next++)
			if (hyb_key_compare(desc, pos.key, pos.len,
								hyb_step_entry(step, &items[next]),
								items[next].keylen) != 0)
				break;
		if (leaf)
		{
			first = hyb_leaf_search_equal(&step->leaf, &pos, &row, &end_row);
			last = hyb_leaf_row_start(&step->leaf, end_row);
		}
		count_looked_at(keys, next - i + last - first > 1, HYB_DEAD_WORTH_IT);
		if (first == last && next == i + 1)
			continue;
		look_at_items(step, first, last);
		for (int j = i; j < next; j++)
			if (!items[j].killed)
				items[j].killed = is_dead(step, &items[j].tid);
	}
}

void
hyb_step_add_entry(HybMergeStep *step)
{
	const HybFetchedItem *item = &step->batch.items[step->done.next_entry++];

	Assert(step->done.next_entry <= step->last_entry && step->builder != NULL);
	step->done.merged++;
	if ((item->killed && hyb_dead_tid(&step->dead, &item->tid)) ||
		hyb_step_is_stale(step, &item->tid, hyb_step_entry(step, item), item->keylen))
	{
		hyb_step_drop(step);
		return;
	}
	if (hyb_key_split(step->ix->desc, hyb_step_entry(step, item), item->len,
					  step->ix->desc->natts, step->vals) != item->len)
		hyb_corrupted(step->ix->rel, item->ref.block,
					  "An entry of the delta log is malformed.");
	hyb_leaf_builder_add(step->builder, step->vals, &item->tid);
	if (step->ix->dictionaries != NULL && step->done.merged % RECENT_SAMPLE == 1)
		hyb_recent_add(step->ix->desc, step->vals, step->done.recent);
}

/* ---- rows of leaves that do not keep keys ---- */

typedef struct Member
{
	ItemPointerData tid;
	uint32		off;			/* of its key in HybStepGroup.keys */
	uint32		len;
} Member;

/* The live items of a row, sorted by the keys that were read. */
typedef struct HybStepGroup
{
	const HybKeyDesc *desc;
	Member	   *members;
	int			n;
	int			alloc;
	HybBuf		keys;
	HybBuf		key;			/* of the item being read */
	int			tombstones;		/* items left out as tombstones */
	int			dead;			/* items left out as dead */
	int64		reads;			/* pages read from disk in this step */
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

/* Is it time to read a row of `old` keys that gets `more` entries? */
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

/* Read an item's key; false if that cannot be done. */
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
	const HybStepGroup *group = arg;

	return hyb_key_tid_compare(group->desc,
							   group->keys.data + x->off, x->len, &x->tid,
							   group->keys.data + y->off, y->len, &y->tid);
}

bool
hyb_step_read_group(HybMergeStep *step, int row, int last)
{
	HybStepGroup *group;
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
	if (step->group == NULL)
		step->group = palloc0(sizeof(HybStepGroup));
	group = step->group;
	group->desc = step->ix->desc;
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
				  group);
	return all;
}

void
hyb_step_add_group(HybMergeStep *step, int last)
{
	HybStepGroup *group = step->group;
	int			next = 0;

	Assert(last >= step->done.next_entry && last <= step->last_entry);
	step->to.leaves.old_tombstones += group->tombstones;
	for (int i = 0; i < group->dead; i++)
		hyb_step_drop(step);
	while (next < group->n || step->done.next_entry < last)
	{
		const Member *member = &group->members[next];
		bool		fetched = next == group->n;

		if (!fetched && step->done.next_entry < last)
		{
			HybPos		pos = hyb_step_pos(step, &step->batch.items[step->done.next_entry]);

			fetched = hyb_pos_compare_key(step->ix->desc, group->keys.data + member->off,
										  member->len, &member->tid, &pos) >= 0;
		}
		if (fetched)
		{
			hyb_step_add_entry(step);
			continue;
		}
		(void) hyb_key_split(step->ix->desc, group->keys.data + member->off,
							 member->len, step->ix->desc->natts, step->vals);
		hyb_leaf_builder_add(step->builder, step->vals, &member->tid);
		next++;
	}
}
