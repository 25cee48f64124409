/*
 * scan_part.c
 *		What a batch of a scan has of one static level.
 *
 * scan_leaf.c fills a part from a leaf.  Here are its memory, the places of
 * positions among its items, and the way of its items into the batch.
 *
 * A leaf of prefixes (docs/trie.md) tells which rows of the table a range may have,
 * in order.  What follows the prefix in a key is not known.  Rows of the table are
 * read
 *
 * - if a prefix has several entries,
 * - if an end of the batch or an entry of another run lies within a prefix,
 * - if the scan looks at values.
 *
 * The executor reads most of them a moment later.
 *
 * A scan with a snapshot for statements reads rows with that snapshot.  A row that it
 * does not see has nothing to return.  A row that it sees is the entry's: if VACUUM
 * has given the TID to another row meanwhile, the snapshot does not see that one.
 * Scans with other snapshots keep the leaf pinned, which keeps VACUUM from that, and
 * take the entry's key from its row, whatever their snapshot sees.  (CLUSTER's sees
 * all row versions, and the first may have another key than the entry.)
 */
#include "base/compat.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "algo/bits.h"
#include "key/row_key.h"
#include "leaf/prefixes.h"
#include "merge/dead.h"
#include "scan/scan.h"
#include "store/settings.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/spccache.h"

/*
 * TIDs that are read at a time, where not all of them are: the more the longer
 * they follow each other.
 */
#define TIDS_AHEAD	16
#define TIDS_AHEAD_MAX	512

/* ---- life ---- */

HybScanPart *
hyb_part_create(HybIndex *ix)
{
	Size		size = MAXALIGN(sizeof(HybScanPart));
	HybScanPart *part = MemoryContextAlloc(ix->context, size + hyb_leaf_space(ix->desc));

	memset(part, 0, size);
	hyb_leaf_init(&part->leaf, ix->desc, (char *) part + size, ix->context);
	part->tids = part->first_tids;
	part->dead = part->first_dead;
	part->tids_alloc = HYB_SCAN_FIRST_ITEMS;
	return part;
}

void
hyb_part_finish(HybScanPart *part)
{
	if (BufferIsValid(part->pin))
	{
		ReleaseBuffer(part->pin);
		part->pin = InvalidBuffer;
	}
	part->next = part->last;
	part->mode = HYB_STATIC_NONE;
}

void
hyb_part_set_hints(HybScan *so, HybScanPart *part, int *items, int n)
{
	Buffer		buf = part->pin;

	if (part->leaf.tombstones != NULL)
	{
		hyb_hints_keep(so->ix, part->block, part->stamp, part->leaf.nitems, items, n);
		return;
	}
	if (!BufferIsValid(buf))
		buf = ReadBuffer(so->ix->rel, part->block);
	hyb_leaf_set_hints(so->ix, buf, part->stamp, part->pd_lower, items, n);
	if (!BufferIsValid(part->pin))
		ReleaseBuffer(buf);
}

const uint8 *
hyb_part_hints(const HybScan *so, const HybScanPart *part, Page page)
{
	return so->scan->ignore_killed_tuples ?
		hyb_hints_of(so->ix, &part->leaf, part->stamp, page) : part->leaf.tombstones;
}

/* ---- TIDs and rows ---- */

/* Make room for the TIDs of n items. */
static void
reserve_tids(HybIndex *ix, HybScanPart *part, int n)
{
	if (n <= part->tids_alloc)
		return;
	if (part->tids != part->first_tids)
	{
		pfree(part->tids);
		pfree(part->dead);
	}
	part->tids_alloc = Max(n, 64);
	part->tids = MemoryContextAlloc(ix->context,
									part->tids_alloc * sizeof(ItemPointerData));
	part->dead = MemoryContextAlloc(ix->context,
									part->tids_alloc * sizeof(bool));
}

void
hyb_part_reserve_rows(HybIndex *ix, HybScanPart *part, int n)
{
	if (n <= part->rows_alloc)
		return;
	if (part->rows != NULL)
		pfree(part->rows);
	part->rows = NULL;
	part->rows_alloc = 0;
	part->rows = MemoryContextAlloc(ix->context, n * sizeof(HybScanRow));
	part->rows_alloc = n;
}

void
hyb_part_set_rows(HybScanPart *part, int n)
{
	part->mode = HYB_STATIC_ROWS;
	part->nrows = n;
	part->first = part->next = part->tids_base = 0;
	part->last = part->tids_end = n;
}

void
hyb_part_read_tids(HybScan *so, HybScanPart *part, Page page, int from, int to)
{
	HybLeaf    *leaf = &part->leaf;
	int			n = to - from;
	const uint8 *hints;

	reserve_tids(so->ix, part, n);
	part->tids_base = from;
	part->tids_end = to;
	hyb_leaf_tids(leaf, from, n, part->tids);

	hints = hyb_part_hints(so, part, page);
	part->has_dead = false;
	if (hints == NULL)
		return;
	for (int i = from >> 3; i <= (to - 1) >> 3; i++)
		part->has_dead |= hints[i] != 0;
	if (!part->has_dead)
		return;
	for (int i = 0; i < n; i++)
	{
		int			item = from + i;

		part->dead[i] = (hints[item >> 3] & (1 << (item & 7))) != 0;
	}
}

/*
 * Before TIDs of items [from, to) are looked at.  A scan with hops reads them
 * as it gets there, since it may not get to most of them.
 */
static inline void
need_tids(HybScan *so, HybScanPart *part, int from, int to)
{
	if (so->keys.hop_last >= 0 && part->mode == HYB_STATIC_PAGE &&
		(from < part->tids_base || to > part->tids_end))
	{
		int			n = TIDS_AHEAD;

		if (from == part->tids_end)
			n = Min(2 * (part->tids_end - part->tids_base), TIDS_AHEAD_MAX);
		hyb_part_read_tids(so, part, part->page, from,
						   Min(Max(to, from + n), part->last));
	}
	Assert(from >= part->tids_base && to <= part->tids_end);
	Assert(from >= part->first && to <= part->last);
}

/* ---- places among items ---- */

/*
 * On which side of a position lies what begins with a prefix?  Below: -1, above: 1;
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

/* The same of a row with its TID. */
static inline int
item_side(const HybScan *so, const HybScanPart *part, const HybScanRow *row,
		  const ItemPointerData *tid, const HybPos *pos)
{
	const uint8 *key = part->rowbytes.data + row->off;

	if (row->keylen == 0)
		return prefix_side(key, row->len, pos);
	return hyb_pos_compare_key(so->ix->desc, key, row->keylen, tid, pos) < 0 ? -1 : 1;
}

/* The place of a position among items that are rows. */
static int
place_in_rows(const HybScan *so, const HybScanPart *part,
			  const HybPos *pos, int from)
{
	int			lo = from;
	int			hi = part->last;

	Assert(part->mode == HYB_STATIC_ROWS && from >= part->first && from <= part->last);
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

/* Row of an item, as HybScanItem counts it. */
static inline int
row_of_item(const HybScanPart *part, int item)
{
	Assert(part->mode == HYB_STATIC_PAGE || part->mode == HYB_STATIC_ROWS);
	return part->mode == HYB_STATIC_PAGE ? hyb_leaf_row_of_item(&part->leaf, item) : item;
}

/* The item after a row's last one. */
static inline int
part_row_end(const HybScanPart *part, int row)
{
	return part->mode == HYB_STATIC_PAGE ? hyb_leaf_row_start(&part->leaf, row + 1) :
		row + 1;
}

int
hyb_part_place(HybScan *so, HybScanPart *part, const HybPos *pos, int from)
{
	int			item;
	int			row;

	switch (part->mode)
	{
		case HYB_STATIC_NONE:
			return part->last;
		case HYB_STATIC_RAW:
			/* a bitmap has no order */
			Assert(so->mode.whole_leaves);
			return part->last;
		case HYB_STATIC_ROWS:
			return place_in_rows(so, part, pos, from);
		case HYB_STATIC_TIDS:
			/* equal keys all: the TID decides */
			Assert(so->keys.point);
			for (item = from; item < part->last; item++)
			{
				if (ItemPointerCompare(&part->tids[item - part->tids_base],
									   unconstify(ItemPointerData *, &pos->tid)) >= 0)
					break;
			}
			return item;
		case HYB_STATIC_PAGE:
			break;
	}
	item = hyb_leaf_search(&part->leaf, pos, &row);
	return Min(Max(item, from), part->last);
}

void
hyb_part_pos(HybScan *so, HybScanPart *part, int item, HybPos *pos,
			 HybBuf *keybuf)
{
	HybKeyDesc *desc = so->ix->desc;

	keybuf->len = 0;
	if (part->mode == HYB_STATIC_TIDS)
	{
		Assert(so->keys.point);
		hyb_buf_append(keybuf, so->keys.start.key, so->keys.start.len);
	}
	else if (part->mode == HYB_STATIC_ROWS)
		hyb_buf_append(keybuf, part->rowbytes.data + part->rows[item].off,
					   part->rows[item].keylen);
	else
		hyb_key_join(desc,
					 hyb_leaf_row(&part->leaf, row_of_item(part, item)),
					 desc->nkeys, keybuf);
	need_tids(so, part, item, item + 1);
	*pos = hyb_pos_at(desc, keybuf->data, keybuf->len,
					  part->tids[item - part->tids_base]);
}

/*
 * Add items [from, to) of one row; of any, if values are not looked at; or, if row
 * is ROW_IS_ITEM, of a row each.
 */
#define ROW_IS_ITEM	(-1)

static inline void
add_batch_items(HybScan *so, HybScanBatch *batch, int level, int from, int to,
				int row)
{
	HybScanPart *part = batch->parts[level];
	int			base;

	/* rows that do not ascend may come to more items than they have */
	if (unlikely(from >= to || batch->nitems + (to - from) > batch->items_alloc))
		hyb_corrupted(so->ix->rel, part->block, "The rows of the leaf do not ascend.");
	need_tids(so, part, from, to);
	base = part->tids_base;
	for (int i = from; i < to; i++)
	{
		HybScanItem *item;

		if (part->has_dead && part->dead[i - base])
			continue;
		item = &batch->items[batch->nitems++];
		item->tid = part->tids[i - base];
		item->part = level;
		item->killed = false;
		item->source = part->mode == HYB_STATIC_ROWS ? part->rows[i].first_item : i;
		item->row = row == ROW_IS_ITEM ? i : row;
	}
}

void
hyb_part_add(HybScan *so, HybScanBatch *batch, int level, int to)
{
	HybScanPart *part = batch->parts[level];
	int			from = part->next;

	int			row;

	Assert(to <= part->last);
	part->next = to;
	if (from >= to)
		return;
	/* without keys, the executor looks at what rows have */
	if (!so->mode.need_values || part->mode == HYB_STATIC_RAW ||
		part->mode == HYB_STATIC_TIDS ||
		(so->keys.nquals == 0 && part->mode == HYB_STATIC_PAGE &&
		 part->leaf.unique_rows))
	{
		add_batch_items(so, batch, level, from, to, ROW_IS_ITEM);
		return;
	}
	row = row_of_item(part, from);
	while (from < to)
	{
		int			end = Min(part_row_end(part, row), to);

		if (unlikely(end <= from))
			hyb_corrupted(so->ix->rel, part->block,
						  "The rows of the leaf do not ascend.");
		if (so->keys.nquals == 0 ||
			hyb_scan_qualifies(&so->keys, hyb_part_values(so, part, row)))
			add_batch_items(so, batch, level, from, end, row);
		else if (so->keys.hop_last >= 0 && part->mode == HYB_STATIC_PAGE &&
				 --so->mode.hop_wait < 0)
		{
			from = hyb_hop_rows(&so->keys, &so->mode, part, &row);
			continue;
		}
		from = end;
		row++;
	}
	part->next = from;
}

const HybValue *
hyb_part_values(HybScan *so, HybScanPart *part, int row)
{
	const HybScanRow *r;

	if (part->mode == HYB_STATIC_PAGE)
		return hyb_leaf_row(&part->leaf, row);
	r = &part->rows[row];
	if (hyb_key_split(so->ix->desc, part->rowbytes.data + r->off, r->len,
					  so->ix->desc->natts, so->keys.vals) == 0)
		hyb_corrupted(so->ix->rel, part->block,
					  "A row of a leaf is not well formed.");
	return so->keys.vals;
}

/* ---- keys from the table ---- */

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
	for (int i = 0; i < batch->log.nitems; i++)
	{
		HybPos		pos = hyb_fetched_pos(so->ix, &batch->log, &batch->log.items[i]);

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

int
hyb_ahead_most(const HybScan *so)
{
#ifdef USE_PREFETCH
	Relation	heap = so->scan->heapRelation;

	if (hyb_prefetch && heap != NULL && heap->rd_tableam == GetHeapamTableAmRoutine())
		return Min(get_tablespace_io_concurrency(heap->rd_rel->reltablespace),
				   HYB_AHEAD_MAX);
#endif
	return 0;
}

/* Ask for the pages of the to->ahead items behind one. */
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
read_visible(HybScan *so, HybScanPart *part, const ItemPointerData *tid, bool *dead)
{
	hyb_row_reader_open(&so->rows, so->scan->heapRelation);
	return hyb_row_read(&so->rows, tid, so->scan->xs_snapshot, dead) &&
		hyb_key_of_slot(so->ix->desc, so->ix->rel, so->rows.slot, &part->rowbytes);
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

	return hyb_key_tid_compare(order->desc,
							   order->keys + x->row.off, x->row.keylen, &x->tid,
							   order->keys + y->row.off, y->row.keylen, &y->tid);
}

/* Row i of the part, whose items are [from, to). */
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
		(to - from > 1 || so->mode.need_values || found->met[i] ||
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

	hyb_part_reserve_rows(so->ix, part, n);
	reserve_tids(so->ix, part, n);
	for (int i = 0; i < n; i++)
	{
		part->rows[i] = found->items[i].row;
		part->tids[i] = found->items[i].tid;
	}
	hyb_part_set_rows(part, n);
	part->has_dead = false;
}

void
hyb_part_resolve(HybScan *so, HybScanBatch *batch, HybScanPart *part)
{
	int			n = Max(part->last - part->first, 1);
	Resolution	found = {
		.lo = hyb_edge_pos(&so->keys, &batch->low),
		.hi = hyb_edge_pos(&so->keys, &batch->high),
		.items = palloc(n * sizeof(Resolved)),
		.dead = palloc(n * sizeof(int)),
		.met = palloc0(n * sizeof(bool)),
		.ahead = n > 1 ? hyb_ahead_most(so) : 0,
		.table = {.buf = InvalidBuffer}
	};

	HYB_ASSERT_NO_LWLOCK();
	Assert(part->mode == HYB_STATIC_RAW && part->nrows <= n);
	Assert(part->tids_base <= part->first && part->last <= part->tids_end);
	if (!so->mode.need_values)
		meet_others(so, batch, part, &found);
	for (int i = 0; i < part->nrows; i++)
		resolve_row(so, part, i, &found);
	hyb_row_reader_reset(&so->rows);
	hyb_dead_end(&found.table);
	/* dead entries get hints, as those that the executor finds do */
	if (found.ndead > 0 && !so->scan->xactStartedInRecovery)
		hyb_part_set_hints(so, part, found.dead, found.ndead);
	set_items(so, part, &found);
	pfree(found.items);
	pfree(found.dead);
	pfree(found.met);
}
