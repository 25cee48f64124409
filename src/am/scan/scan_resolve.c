/*
 * scan_resolve.c
 *		Keys of entries of leaves that do not keep them, from the table.
 *
 * A leaf of prefixes (docs/trie.md) says which rows of the table a range may
 * have, in order but for those that share a prefix, and for the ends of the
 * range, which may lie within one.  A scan that returns rows in order, or has
 * conditions to ask, reads the rows that it is going to return, which the executor
 * would do a moment later, and knows all keys then.
 *
 * Rows are read with the scan's snapshot.  A row that it does not see has nothing
 * to return; one that it sees is the entry's, also if VACUUM has given the TID to
 * another one meanwhile, which a snapshot for statements does not see.  Scans with
 * others keep the leaf pinned, which keeps VACUUM from that.
 */
#include "compat.h"

#include "access/tableam.h"
#include "am/scan/scan.h"
#include "key/slot_key.h"
#include "utils/rel.h"

/* An entry whose key was read. */
typedef struct Resolved
{
	HybScanRow	row;
	ItemPointerData tid;
} Resolved;

/* What a batch's entries have come to. */
typedef struct Resolution
{
	const HybPos *lo;			/* the batch's ends */
	const HybPos *hi;
	Resolved   *items;			/* that lie between, with rows to be returned */
	int			nitems;
	int		   *dead;			/* items of the leaf that are dead to all */
	int			ndead;
} Resolution;

typedef struct ResolvedOrder
{
	const HybKeyDesc *desc;
	const uint8 *keys;
} ResolvedOrder;

static int
compare_resolved(const void *a, const void *b, void *arg)
{
	const ResolvedOrder *order = arg;
	const Resolved *x = a;
	const Resolved *y = b;
	int			c = hyb_key_compare(order->desc, order->keys + x->row.off, x->row.keylen,
									order->keys + y->row.off, y->row.keylen);

	return c != 0 ? c : ItemPointerCompare(unconstify(ItemPointerData *, &x->tid),
										   unconstify(ItemPointerData *, &y->tid));
}

static void
begin_fetch(HybScan *so)
{
	Relation	heap = so->scan->heapRelation;

	if (so->table_fetch != NULL)
		return;
	so->table_slot = table_slot_create(heap, NULL);
	so->table_fetch = table_index_fetch_begin(heap);
}

void
hyb_resolve_end(HybScan *so)
{
	if (so->table_fetch == NULL)
		return;
	table_index_fetch_end(so->table_fetch);
	ExecDropSingleTupleTableSlot(so->table_slot);
	so->table_fetch = NULL;
}

/* Read the row of an item. */
static void
resolve(HybScan *so, HybScanPart *part, int item, Resolution *to)
{
	const HybKeyDesc *desc = so->ix->desc;
	HybBuf	   *keys = &part->rowbytes;
	Resolved   *resolved = &to->items[to->nitems];
	HybScanRow *row = &resolved->row;
	ItemPointerData tid = part->tids[item - part->tids_base];
	bool		again = false;
	bool		dead = false;

	resolved->tid = tid;
	row->first_item = item;
	row->off = keys->len;
	if (!table_index_fetch_tuple(so->table_fetch, &tid, so->scan->xs_snapshot,
								 so->table_slot, &again, &dead))
	{
		if (dead)
			to->dead[to->ndead++] = item;
		return;
	}
	hyb_key_of_slot(desc, so->ix->rel, so->table_slot, keys);
	row->len = row->keylen = keys->len - row->off;
	if (hyb_pos_compare_key(desc, keys->data + row->off, row->keylen,
							&resolved->tid, to->lo) >= 0 &&
		hyb_pos_compare_key(desc, keys->data + row->off, row->keylen,
							&resolved->tid, to->hi) < 0)
		to->nitems++;
	else
		keys->len = row->off;
}

/* Ask for the pages of items up to so many before one, from *asked on. */
static void
ask_ahead(HybScan *so, const HybScanPart *part, int *asked, int to)
{
	for (; *asked < Min(to, part->last); (*asked)++)
	{
		const ItemPointerData *tid = &part->tids[*asked - part->tids_base];

		if (*asked > part->first &&
			ItemPointerGetBlockNumber(tid) == ItemPointerGetBlockNumber(tid - 1))
			continue;
		PrefetchBuffer(so->scan->heapRelation, MAIN_FORKNUM,
					   ItemPointerGetBlockNumber(tid));
	}
}

/* What was read becomes the part's items. */
static void
set_items(HybScan *so, HybScanPart *part, Resolved *items, int n)
{
	ResolvedOrder order = {.desc = so->ix->desc,.keys = part->rowbytes.data};
	bool		ascend = true;

	for (int i = 1; i < n && ascend; i++)
		ascend = compare_resolved(&items[i - 1], &items[i], &order) < 0;
	if (!ascend)
		qsort_arg(items, n, sizeof(Resolved), compare_resolved, &order);
	hyb_part_reserve_rows(so, part, n);
	hyb_part_reserve_tids(so, part, n);
	for (int i = 0; i < n; i++)
	{
		part->rows[i] = items[i].row;
		part->tids[i] = items[i].tid;
	}
	part->mode = HYB_STATIC_RESOLVED;
	part->nrows = n;
	part->first = part->next = part->tids_base = 0;
	part->last = part->tids_end = n;
	part->has_dead = false;
}

/* Dead entries get hints, as those that the executor finds do. */
static void
set_hints(HybScan *so, HybScanPart *part, const Resolution *found)
{
	Buffer		buf = part->pin;

	if (found->ndead == 0 || so->scan->xactStartedInRecovery)
		return;
	if (!BufferIsValid(buf))
		buf = ReadBuffer(so->ix->rel, part->block);
	hyb_leaf_set_hints(so->ix, buf, part->stamp, part->pd_lower, found->dead,
					   found->ndead);
	if (!BufferIsValid(part->pin))
		ReleaseBuffer(buf);
}

void
hyb_part_resolve(HybScan *so, HybScanBatch *batch, HybScanPart *part)
{
	int			n = Max(part->last - part->first, 1);
	Resolution	found = {
		.lo = hyb_edge_pos(so, &batch->low),
		.hi = hyb_edge_pos(so, &batch->high),
		.items = palloc(n * sizeof(Resolved)),
		.dead = palloc(n * sizeof(int))
	};
	int			ahead = n > 1 ? hyb_ahead_most(so) : 0;
	int			asked = part->first;

	HYB_ASSERT_NO_LWLOCK();
	begin_fetch(so);
	part->rowbytes.len = 0;
	for (int item = part->first; item < part->last; item++)
	{
		CHECK_FOR_INTERRUPTS();
		if (part->has_dead && part->dead[item - part->tids_base])
			continue;
		if (ahead > 0)
			ask_ahead(so, part, &asked, item + ahead);
		resolve(so, part, item, &found);
	}
	ExecClearTuple(so->table_slot);
	table_index_fetch_reset(so->table_fetch);
	set_hints(so, part, &found);
	set_items(so, part, found.items, found.nitems);
	pfree(found.items);
	pfree(found.dead);
}
