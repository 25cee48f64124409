/*
 * fetched.c
 *		Batches of entries that were fetched from the log, or from any run.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "log/stage_access.h"

#define HYB_BATCH_ITEMS		16

HybFetchedItem *
hyb_fetched_add(HybFetched *batch)
{
	if (batch->nitems >= batch->items_alloc)
	{
		int			alloc = Max(HYB_BATCH_ITEMS, batch->items_alloc * 2);

		/* the batch may outlive an error */
		batch->items = hyb_grow(CurrentMemoryContext, batch->items, alloc,
								sizeof(HybFetchedItem));
		batch->items_alloc = alloc;
	}
	return &batch->items[batch->nitems++];
}

void
hyb_fetched_add_entry(HybFetched *batch, const HybEntry *entry, uint64 generation)
{
	HybFetchedItem *item = hyb_fetched_add(batch);

	Assert(generation != 0 && entry->keylen > 0 && entry->keylen <= entry->len);
	Assert(ItemPointerIsValid(&entry->tid) && entry->block != HYB_METAPAGE_BLKNO);
	item->tid = entry->tid;
	item->killed = (entry->flags & HYB_ENTRY_KILLED) != 0;
	item->key_off = batch->keys.len;
	item->len = entry->len;
	item->keylen = entry->keylen;
	item->ref.generation = generation;
	item->ref.block = entry->block;
	item->ref.offset = entry->offset;
	hyb_buf_append(&batch->keys, entry->bytes, item->len);
}

void
hyb_fetched_free(HybFetched *batch)
{
	if (batch->items != NULL)
		pfree(batch->items);
	hyb_buf_free(&batch->keys);
	memset(batch, 0, sizeof(*batch));
}

void
hyb_fetched_last(const HybIndex *ix, const HybFetched *batch, HybPos *pos,
				 HybBuf *keybuf)
{
	HybPos		at = hyb_fetched_pos(ix, batch, &batch->items[batch->nitems - 1]);

	hyb_pos_copy(pos, keybuf, &at);
}

typedef struct ItemOrder
{
	const HybKeyDesc *desc;
	const uint8 *keys;
	bool		backward;
} ItemOrder;

static int
compare_items(const void *a, const void *b, void *arg)
{
	const ItemOrder *order = arg;
	const HybFetchedItem *x = a;
	const HybFetchedItem *y = b;
	int			c = hyb_key_tid_compare(order->desc,
										order->keys + x->key_off, x->keylen, &x->tid,
										order->keys + y->key_off, y->keylen, &y->tid);

	return order->backward ? -c : c;
}

void
hyb_fetched_sort(const HybKeyDesc *desc, HybFetched *batch, bool backward)
{
	ItemOrder	order = {.desc = desc,.keys = batch->keys.data,.backward = backward};

	if (batch->nitems > 1)
		qsort_arg(batch->items, batch->nitems, sizeof(HybFetchedItem),
				  compare_items, &order);
	for (int i = 1; i < batch->nitems; i++)
		Assert(compare_items(&batch->items[i - 1], &batch->items[i], &order) <= 0);
}

bool
hyb_fetched_repeats(const HybKeyDesc *desc, const HybFetched *batch, int item)
{
	HybFetchedItem *x = &batch->items[item];
	HybFetchedItem *y = x - 1;

	/* TIDs first: keys may be compared by functions */
	return item > 0 && ItemPointerEquals(&y->tid, &x->tid) &&
		hyb_key_compare(desc, batch->keys.data + y->key_off, y->keylen,
						batch->keys.data + x->key_off, x->keylen) == 0;
}
