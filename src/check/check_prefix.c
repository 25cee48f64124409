/*
 * check_prefix.c
 *		hybrid_index_check: leaves that hold the beginnings of keys
 *		(docs/trie.md).
 *
 * Without the table there are prefixes and TIDs only: prefixes ascend, none
 * begins another one, no fence lies within one, and no entry of a newer run is
 * there as well.  With it, each row that an entry leads to and that the check's
 * snapshot sees (check_heap.c says why that is the entry's) has to begin with the
 * prefix and have the fingerprint, and takes part in the comparison of table and index with its key.
 */
#include "base/compat.h"

#include "access/tableam.h"
#include "algo/bits.h"
#include "check/check.h"
#include "key/row_key.h"
#include "leaf/prefixes.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Does a key begin with the prefix in check->entry? */
static inline bool
begins_with_prefix(const HybCheck *check, const uint8 *key, uint32 len,
				   uint32 bits)
{
	return hyb_begins_with_bits(key, len, check->entry.data, bits);
}

/* The row at hand, whose prefix is in check->entry. */
typedef struct PrefixRow
{
	BlockNumber blkno;
	uint32		bits;			/* of the prefix */
	int			first;			/* items [first, last) */
	int			last;
} PrefixRow;

/* The position above all that begins with the prefix in check->entry. */
static HybPos
behind_prefix(HybCheck *check, uint32 bits)
{
	HybPos		pos = {.tie = HYB_AFTER};

	check->probe.len = 0;
	hyb_buf_append(&check->probe, check->entry.data, check->entry.len);
	if (bits % 8 != 0)
		check->probe.data[bits / 8] |= 0xFF >> bits % 8;
	pos.key = check->probe.data;
	pos.len = (uint16) check->probe.len;
	return pos;
}

/*
 * Fences lie outside: but a list of TIDs that goes on in another leaf is that of
 * a whole key.
 */
static void
check_fences(HybCheck *check, const PrefixRow *row, const HybPos *low,
			 const HybPos *high)
{
	const HybKeyDesc *desc = check->ix->desc;
	const HybBuf *prefix = &check->entry;
	HybPos		before = {
		.key = prefix->data,
		.len = (uint16) prefix->len,
		.tie = HYB_BEFORE
	};
	HybPos		behind = behind_prefix(check, row->bits);
	bool		whole = hyb_prefix_is_whole(desc, prefix->data, row->bits);
	bool		above_low = hyb_pos_compare(desc, low, &before) <= 0;
	bool		below_high = hyb_pos_compare(desc, &behind, high) <= 0;

	if (whole)
	{
		above_low |= hyb_pos_compare_key(desc, prefix->data, prefix->len,
										 &check->leaf_tids[row->first], low) >= 0;
		below_high |= hyb_pos_compare_key(desc, prefix->data, prefix->len,
										  &check->leaf_tids[row->last - 1], high) < 0;
	}
	if (!above_low)
		hyb_check_fail(check, row->blkno,
					   "The entry at position %d lies below the leaf's lower fence.",
					   row->first);
	if (!below_high)
		hyb_check_fail(check, row->blkno,
					   "The entry at position %d does not lie below the leaf's upper fence.",
					   row->last - 1);
}

/* Consume the newer entries up to those that begin with the prefix. */
static void
check_prefix_against_fresh(HybCheck *check, const PrefixRow *row)
{
	const HybDynItem *item;

	while ((item = hyb_check_fresh_peek(check)) != NULL)
	{
		const uint8 *key = hyb_check_fresh_bytes(check, item);

		if (begins_with_prefix(check, key, item->keylen, row->bits))
			hyb_check_not_fresh(check, row->blkno, item, row->first, row->last);
		else if (memcmp(key, check->entry.data,
						Min(item->keylen, check->entry.len)) > 0)
			break;
		hyb_check_fresh_next(check);
	}
}

bool
hyb_check_row_key(HybCheck *check, ItemPointerData tid, Snapshot snapshot,
				  HybBuf *key)
{
	bool		again = false;
	bool		dead = false;

	if (check->fetch == NULL)
	{
		MemoryContext old_context = MemoryContextSwitchTo(check->context);

		check->slot = table_slot_create(check->heap, NULL);
		check->fetch = table_index_fetch_begin(check->heap);
		MemoryContextSwitchTo(old_context);
	}
	if (!table_index_fetch_tuple(check->fetch, &tid, snapshot, check->slot, &again,
								 &dead))
		return false;
	key->len = 0;
	return hyb_key_of_slot(check->ix->desc, check->ix->rel, check->slot, key);
}

/* Read the row of an entry. */
static void
check_table_row(HybCheck *check, const PrefixRow *row, int item)
{
	if (!hyb_check_row_key(check, check->leaf_tids[item], check->snapshot,
						   &check->row_key))
		return;
	if (!begins_with_prefix(check, check->row_key.data, check->row_key.len, row->bits))
		hyb_check_fail(check, row->blkno,
					   "The entry at position %d leads to heap tuple (%u,%u), whose key does not begin with the entry's prefix.",
					   item, ItemPointerGetBlockNumber(&check->leaf_tids[item]),
					   ItemPointerGetOffsetNumber(&check->leaf_tids[item]));
	if (!hyb_leaf_may_have(&check->leaf, item,
						   hyb_byte_hash(check->row_key.data, check->row_key.len)))
		hyb_check_fail(check, row->blkno,
					   "The entry at position %d leads to heap tuple (%u,%u), whose key does not have the entry's fingerprint.",
					   item, ItemPointerGetBlockNumber(&check->leaf_tids[item]),
					   ItemPointerGetOffsetNumber(&check->leaf_tids[item]));
	hyb_check_filter_key(check, check->row_key.data, check->row_key.len, item);
	hyb_check_live(check, check->row_key.data, check->row_key.len,
				   &check->leaf_tids[item]);
}

void
hyb_check_prefix_row(HybCheck *check, BlockNumber blkno, int row,
					 const HybPos *low, const HybPos *high)
{
	int			first = hyb_leaf_row_start(&check->leaf, row);
	int			last = hyb_leaf_row_start(&check->leaf, row + 1);
	PrefixRow	at = {
		.blkno = blkno,
		.bits = hyb_leaf_prefix(&check->leaf, row, &check->entry),
		.first = first,
		.last = last
	};

	if (check->level != 0)
		hyb_check_fail(check, blkno, "A leaf without keys is not of the oldest level.");
	for (int i = first; i < last; i++)
		if (!ItemPointerIsValid(&check->leaf_tids[i]))
			hyb_check_fail(check, blkno, "The heap TID at position %d is invalid.", i);
	check_fences(check, &at, low, high);
	hyb_check_filter_items(check, row, first, last);
	check_prefix_against_fresh(check, &at);
	for (int i = first; i < last; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (hyb_leaf_is_tombstone(&check->leaf, i))
			check->tombstones++;
		else if (check->filter != NULL)
			check_table_row(check, &at, i);
	}
}

void
hyb_check_prefix_end(HybCheck *check)
{
	if (check->fetch == NULL)
		return;
	table_index_fetch_end(check->fetch);
	ExecDropSingleTupleTableSlot(check->slot);
	check->fetch = NULL;
}

bool
hyb_check_prefix_holds(HybCheck *check, const HybPos *pos)
{
	HybLeaf    *leaf = &check->leaf;
	HybRowRange rows;
	int			first;
	int			last;
	bool		found = false;

	(void) hyb_leaf_search_rows(leaf, pos, &rows);
	first = hyb_leaf_row_start(leaf, rows.lo);
	last = hyb_leaf_row_start(leaf, rows.hi);
	for (int i = first; i < last && !found; i++)
	{
		ItemPointerData tid;

		hyb_leaf_tids(leaf, i, 1, &tid);
		found = ItemPointerEquals(&tid, unconstify(ItemPointerData *, &pos->tid));
	}
	return found;
}
