/*
 * scan_resolve.c
 *		Keys of entries of leaves that do not keep them, from the table.
 *
 * A leaf of prefixes (docs/trie.md) says which rows of the table a range may
 * have, in order.  Its row is a prefix, and what is behind that is not known: so
 * rows of the table have to be read where a prefix has several entries, where an
 * end of the batch or an entry of another run lies within one, and wherever the
 * scan looks at values.  The executor reads most of them a moment later.
 *
 * Rows are read with the scan's snapshot, if that is one for statements.  A row
 * that it does not see has nothing to return; one that it sees is the entry's, also
 * if VACUUM has given the TID to another one meanwhile, which such a snapshot does
 * not see.  Scans with others (CLUSTER's sees all versions, of which the first may
 * have another key than the entry) keep the leaf pinned, which keeps VACUUM from
 * that, and take the entry's key from its row, whatever their snapshot sees.
 */
#include "base/compat.h"

#include "access/tableam.h"
#include "algo/bits.h"
#include "key/row_key.h"
#include "leaf/prefixes.h"
#include "merge/dead.h"
#include "scan/scan.h"
#include "utils/rel.h"

/*
 * An entry, in its place among the others.  row.keylen is 0 if its key is not
 * known: then row.len is the number of bits that it begins with.
 */
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
	int			ahead;			/* pages to be asked for ahead */
	int			asked;			/* items up to this one were */
	bool	   *met;			/* rows that entries of other runs fall into */
	HybDeadCheck table;			/* of scans without a snapshot for statements */
} Resolution;

/* ---- prefixes and positions ---- */

/*
 * Where does what begins with a prefix lie?  Below a position: -1, above it: 1.
 * 0: its keys may lie on both sides.
 */
static int
prefix_side(const uint8 *prefix, uint32 bits, const HybPos *pos)
{
	uint32		pos_bits = 8 * pos->len;
	uint32		common = hyb_common_bits(prefix, bits, pos->key, pos_bits);

	if (common < Min(bits, pos_bits))
		return (prefix[common / 8] & (0x80 >> common % 8)) != 0 ? 1 : -1;
	if (pos->tie == HYB_BEFORE &&
		(pos_bits <= bits || hyb_only_zeros_from(pos->key, pos->len, bits)))
		return 1;
	if (pos->tie == HYB_AFTER && pos_bits <= bits)
		return -1;
	return 0;
}

/* The same of an entry. */
static inline int
item_side(const HybScan *so, const HybScanPart *part, const HybScanRow *row,
		  const ItemPointerData *tid, const HybPos *pos)
{
	const uint8 *key = part->rowbytes.data + row->off;

	if (row->keylen == 0)
		return prefix_side(key, row->len, pos);
	return hyb_pos_compare_key(so->ix->desc, key, row->keylen, tid, pos) < 0 ? -1 : 1;
}

int
hyb_resolved_place(const HybScan *so, const HybScanPart *part,
				   const HybPos *pos, int from)
{
	int			lo = from;
	int			hi = part->last;

	Assert(part->mode == HYB_STATIC_RESOLVED && from >= part->first && from <= part->last);
	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;
		int			side = item_side(so, part, &part->rows[mid], &part->tids[mid], pos);

		/* of prefixes that are in order hyb_part_resolve has asked the same */
		if (unlikely(side == 0))
			hyb_corrupted(so->ix->rel, part->block, "The rows of the leaf do not ascend.");
		if (side < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Note the row that a position of another run's entry falls into, if any. */
static void
meet(const HybScanPart *part, Resolution *to, const HybPos *pos)
{
	int			lo = 0;
	int			hi = part->nrows;

	while (lo < hi)
	{
		int			mid = (lo + hi) / 2;
		const HybScanRow *row = &part->rows[mid];
		int			side = prefix_side(part->rowbytes.data + row->off, row->keylen, pos);

		if (side == 0)
		{
			to->met[mid] = true;
			return;
		}
		if (side < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
}

static void
meet_others(HybScan *so, HybScanBatch *batch, const HybScanPart *part, Resolution *to)
{
	for (int i = 0; i < batch->dyn.nitems; i++)
	{
		const HybDynItem *item = &batch->dyn.items[i];
		HybPos		pos = hyb_pos_at(so->ix->desc, batch->dyn.keys.data + item->key_off,
									 item->keylen, item->tid);

		meet(part, to, &pos);
	}
	for (int i = 1; i < batch->nparts; i++)
	{
		HybScanPart *newer = batch->parts[i];

		for (int item = newer->first; item < newer->last; item++)
		{
			HybPos		pos;

			hyb_part_pos(so, newer, item, &pos, &so->fresh_key[0]);
			meet(part, to, &pos);
		}
	}
}

/* ---- rows of the table ---- */

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

/* Ask for the pages of items up to so many behind one. */
static void
ask_ahead(HybScan *so, const HybScanPart *part, int item, Resolution *to)
{
	int			end = Min(item + to->ahead, part->last);

	for (to->asked = Max(to->asked, item); to->asked < end; to->asked++)
	{
		const ItemPointerData *tid = &part->tids[to->asked - part->tids_base];

		if (to->asked > item &&
			ItemPointerGetBlockNumber(tid) == ItemPointerGetBlockNumber(tid - 1))
			continue;
		PrefetchBuffer(so->scan->heapRelation, MAIN_FORKNUM,
					   ItemPointerGetBlockNumber(tid));
	}
}

/* Keep an entry if it lies in the batch, as far as that is known. */
static void
keep(const HybScan *so, const HybScanPart *part, Resolution *to,
	 const HybScanRow *row, const ItemPointerData *tid)
{
	if (item_side(so, part, row, tid, to->lo) < 0 ||
		item_side(so, part, row, tid, to->hi) > 0)
		return;
	Assert(to->nitems < part->last - part->first);
	to->items[to->nitems].row = *row;
	to->items[to->nitems++].tid = *tid;
}

/* The key of the row that the scan's snapshot sees goes to the end of the keys. */
static bool
read_visible(HybScan *so, HybScanPart *part, const ItemPointerData *item_tid,
			 bool *dead)
{
	ItemPointerData tid = *item_tid;
	bool		again = false;

	begin_fetch(so);
	if (!table_index_fetch_tuple(so->table_fetch, &tid, so->scan->xs_snapshot,
								 so->table_slot, &again, dead))
		return false;
	return hyb_key_of_slot(so->ix->desc, so->ix->rel, so->table_slot, &part->rowbytes);
}

/* The key of the row, if there is one. */
static bool
read_any(HybScan *so, HybScanPart *part, const ItemPointerData *tid,
		 Resolution *to)
{
	if (to->table.heap == NULL)
		hyb_dead_begin_open(&to->table, so->scan->heapRelation);
	return hyb_heap_key(&to->table, so->ix, tid, &part->rowbytes) == HYB_KEY_READ;
}

/* Read the row of an item. */
static void
resolve(HybScan *so, HybScanPart *part, int item, Resolution *to)
{
	const ItemPointerData *tid = &part->tids[item - part->tids_base];
	HybScanRow	row = {.off = part->rowbytes.len,.first_item = item};
	bool		dead = false;

	CHECK_FOR_INTERRUPTS();
	if (to->ahead > 0)
		ask_ahead(so, part, item, to);
	if (IsMVCCSnapshot(so->scan->xs_snapshot) ?
		read_visible(so, part, tid, &dead) : read_any(so, part, tid, to))
	{
		row.len = row.keylen = part->rowbytes.len - row.off;
		keep(so, part, to, &row, tid);
	}
	else if (dead)
	{
		Assert(to->ndead < part->last - part->first);
		to->dead[to->ndead++] = item;
	}
}

/* ---- rows of the leaf ---- */

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

/*
 * Row i of the part, whose items are [from, to).
 */
static void
resolve_row(HybScan *so, HybScanPart *part, int i, Resolution *found)
{
	const HybKeyDesc *desc = so->ix->desc;
	HybScanRow	row = part->rows[i];
	const uint8 *prefix = part->rowbytes.data + row.off;
	uint32		bits = row.keylen;
	int			from = row.first_item;
	int			to = i + 1 < part->nrows ? part->rows[i + 1].first_item : part->last;
	int			before = found->nitems;
	bool		whole = hyb_prefix_is_whole(desc, prefix, bits);
	bool		read = !whole &&
		(to - from > 1 || so->need_values || found->met[i] ||
		 prefix_side(prefix, bits, found->lo) == 0 ||
		 prefix_side(prefix, bits, found->hi) == 0);

	row.keylen = whole ? row.len : 0;
	row.len = whole ? row.len : bits;
	for (int item = from; item < to; item++)
	{
		if (part->has_dead && part->dead[item - part->tids_base])
			continue;
		row.first_item = item;
		if (read)
			resolve(so, part, item, found);
		else
			keep(so, part, found, &row, &part->tids[item - part->tids_base]);
	}
	if (read && found->nitems - before > 1)
	{
		ResolvedOrder order = {.desc = desc,.keys = part->rowbytes.data};

		qsort_arg(found->items + before, found->nitems - before,
				  sizeof(Resolved), compare_resolved, &order);
	}
}

/* What was found becomes the part's items. */
static void
set_items(HybScan *so, HybScanPart *part, const Resolution *found)
{
	int			n = found->nitems;

	hyb_part_reserve_rows(so, part, n);
	hyb_part_reserve_tids(so, part, n);
	for (int i = 0; i < n; i++)
	{
		part->rows[i] = found->items[i].row;
		part->tids[i] = found->items[i].tid;
	}
	part->mode = HYB_STATIC_RESOLVED;
	part->nrows = n;
	part->first = part->next = part->tids_base = 0;
	part->last = part->tids_end = n;
	part->has_dead = false;
}

/* Dead entries get hints, as those that the executor finds do. */
static void
set_kill_hints(HybScan *so, HybScanPart *part, const Resolution *found)
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
		.dead = palloc(n * sizeof(int)),
		.met = palloc0(n * sizeof(bool)),
		.ahead = n > 1 ? hyb_ahead_most(so) : 0,
		.table = {.buf = InvalidBuffer}
	};

	HYB_ASSERT_NO_LWLOCK();
	Assert(part->mode == HYB_STATIC_RAW && part->nrows <= n);
	Assert(part->tids_base <= part->first && part->last <= part->tids_end);
	if (!so->need_values)
		meet_others(so, batch, part, &found);
	for (int i = 0; i < part->nrows; i++)
		resolve_row(so, part, i, &found);
	if (so->table_fetch != NULL)
	{
		ExecClearTuple(so->table_slot);
		table_index_fetch_reset(so->table_fetch);
	}
	hyb_dead_end(&found.table);
	set_kill_hints(so, part, &found);
	set_items(so, part, &found);
	pfree(found.items);
	pfree(found.dead);
	pfree(found.met);
}
