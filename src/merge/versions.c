/*
 * versions.c
 *		Entries of row versions that updates have left behind.
 *
 * A merge leaves out dead entries that a scan has left hints on (dead.c).  But
 * rows are updated through one index and have entries in others, which nobody
 * may have read meanwhile: an update of one column adds an entry of the same
 * key to the indexes of all others, and the entry of the version before stays.
 * So where a frozen entry's key has other entries, a merge looks at the line
 * pointers of all of them.  nbtree looks when a page is full of such
 * duplicates (bottom-up deletion).
 *
 * Equal keys may as well be those of different rows.  So that a merge of many
 * of these costs little, it goes on from key to key only while that is worth
 * it, and passes over more and more entries where it is not.  It stops at the
 * first heap page that has to be read from disk: the merge lock is held.
 */
#include "base/compat.h"

#include "executor/instrument.h"
#include "merge/step.h"
#include "miscadmin.h"
#include "utils/rel.h"

/* Entries that are looked at together. */
#define VERSIONS_BATCH		32

/* TIDs of a leaf that are decoded at a time. */
#define TIDS_AT_A_TIME	64

/* Count one that was looked at. */
static void
count_looked_at(HybVersionLook *look, bool dead)
{
	Assert(look->dead <= look->looked && look->looked < VERSIONS_BATCH && look->skip >= 0);
	look->looked++;
	look->dead += dead;
	if (look->looked < VERSIONS_BATCH)
		return;
	look->skip = hyb_dead_skip(look->dead, look->looked, VERSIONS_BATCH, look->skip);
	look->pass = look->skip;
	look->looked = look->dead = 0;
}

/* Is this entry's line pointer dead, as far as it is looked at? */
static bool
is_dead(HybMergeStep *step, const ItemPointerData *tid)
{
	HybVersionLook *look = &step->look;
	int64		read = pgBufferUsage.shared_blks_read;
	bool		dead;

	if (look->pass > 0)
	{
		look->pass--;
		return false;
	}
	dead = hyb_dead_tid(&step->dead, tid);
	count_looked_at(look, dead);
	if (pgBufferUsage.shared_blks_read != read)
		look->over = true;
	return dead && !look->over;
}

/* Items [from, to) of the opened leaf: those that are dead get hints. */
static void
look_at_items(HybMergeStep *step, int from, int to)
{
	ItemPointerData tids[TIDS_AT_A_TIME];

	while (from < to && !step->look.over)
	{
		int			n = Min(to - from, TIDS_AT_A_TIME);

		hyb_leaf_tids(&step->leaf, from, n, tids);
		for (int i = 0; i < n && !step->look.over; i++)
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
	HybDynItem *items = step->batch.items;
	int			next;

	for (int i = step->done.next_entry; i < end && !step->look.over; i = next)
	{
		HybPos		pos = hyb_step_pos(step, &items[i]);
		int			first = 0;
		int			last = 0;
		int			row;
		int			end_row;

		if (step->look.pass > 0)
		{
			next = i + Min(step->look.pass, end - i);
			step->look.pass -= next - i;
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
		if (first == last && next == i + 1)
		{
			count_looked_at(&step->look, false);
			continue;
		}
		look_at_items(step, first, last);
		for (int j = i; j < next && !step->look.over; j++)
			if (!items[j].killed)
				items[j].killed = is_dead(step, &items[j].tid);
	}
}
