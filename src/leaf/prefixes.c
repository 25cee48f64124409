/*
 * prefixes.c
 *		What both layouts of prefixes share.
 *
 * Rows wait with all bits of their keys that are known: the whole key, or what the
 * leaf that the row comes from has.  Waiting rows ascend and none is the beginning
 * of another one.  So whatever number of bits a leaf keeps of them, only
 * neighbours share a prefix, and no row that lacks bits shares one.
 *
 * Where one leaf ends and the next one begins, both keep the bit that tells their
 * rows apart.  The fence between them is cut behind that bit.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "base/memory.h"
#include "leaf/leaf.h"
#include "leaf/prefixes.h"
#include "utils/memutils.h"

/* A row is continued in the next leaf if this leaf has this many of its items. */
#define SPLIT_ITEMS		64

/*
 * An index with few entries is likely to grow.  Prefixes that are cut by few
 * entries catch more of the new keys, and longer ones take less space as long as
 * entries are few.  Up to GROWN_BITS bits are added as if the index had
 * GROWN_ENTRIES entries, whose keys spread evenly.
 */
#define GROWN_ENTRIES		(UINT64CONST(1) << 20)
#define GROWN_BITS			7

/* Columns are parsed from the front: what ends with the last one is a key. */
bool
hyb_prefix_is_whole(const HybKeyDesc *desc, const uint8 *prefix, uint32 bits)
{
	return bits > 0 && bits % 8 == 0 &&
		hyb_key_length(desc, prefix, bits / 8) == bits / 8;
}

/* ---- reading ---- */

uint8
hyb_strings_fingerprint(const HybLeaf *leaf, const HybBuf *prefix, uint32 bits, int item)
{
	if (leaf->prefixes->fingerprints != NULL)
		return hyb_stored_fingerprint(leaf->prefixes, item);
	if (!hyb_prefix_is_whole(leaf->desc, prefix->data, bits))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "The leaf lacks the fingerprints of keys that it does not have.");
	return hyb_fingerprint(hyb_byte_hash(prefix->data, prefix->len));
}

/* ---- building ---- */

/* A columnar builder in a context. */
static HybColumnarBuilder *
create_columnar(const HybIndex *ix, MemoryContext context)
{
	MemoryContext old = MemoryContextSwitchTo(context);
	HybColumnarBuilder *columnar = hyb_columnar_builder(hyb_columnar_create(ix));

	MemoryContextSwitchTo(old);
	columnar->base.desc = ix->desc;
	columnar->base.context = context;
	return columnar;
}

void
hyb_prefixes_init_builder(HybPrefixesBuilder *b, const HybIndex *ix,
						  const HybKeyDesc *columns)
{
	Assert(ix->desc->all_mem && ix->desc->natts == ix->desc->nkeys);
	hyb_buf_reserve(&b->bytes, BLCKSZ);
	hyb_buf_reserve(&b->key, 64);
	b->filled = -1;
	b->least_bits = PG_UINT32_MAX;
	b->stored_index = *ix;
	b->stored_index.desc = unconstify(HybKeyDesc *, columns);
	b->stored = create_columnar(&b->stored_index, CurrentMemoryContext);
}

int
hyb_prefixes_growth_bits(const HybLeafBuilder *base)
{
	uint64		growth = base->entries > 0 ? GROWN_ENTRIES / base->entries : 1;

	return Min((int) hyb_bit_width(Max(growth, 1)) - 1, GROWN_BITS);
}

/* ---- adding ---- */

uint32
hyb_prefixes_bits_at_fence(const uint8 *bytes, uint32 bits, const HybPos *fence)
{
	uint32		common = hyb_common_bits(bytes, bits, fence->key, 8 * fence->len);

	return Min(common + 1, 8 * (uint32) fence->len);
}

static pg_noinline void
grow_items(HybPrefixesBuilder *b, int nitems)
{
	MemoryContext context = b->base.context;

	b->items_alloc = Max(Max(b->items_alloc * 2, 1024), nitems);
	b->tids = hyb_grow(context, b->tids, b->items_alloc, sizeof(uint64));
	if (b->has_fingerprints)
	{
		b->fingerprints = hyb_grow(context, b->fingerprints, b->items_alloc, 1);
		b->stored_fingerprints = hyb_grow(context, b->stored_fingerprints,
										  b->items_alloc, 1);
	}
}

static pg_noinline void
grow_rows(HybPrefixesBuilder *b, int nrows)
{
	b->rows_alloc = Max(Max(b->rows_alloc * 2, 512), nrows);
	b->rows = hyb_grow(b->base.context, b->rows, b->rows_alloc, sizeof(HybPrefixesRow));
}

void
hyb_prefixes_room(HybPrefixesBuilder *b, int nrows, int nitems)
{
	if (unlikely(b->base.nitems + nitems > b->items_alloc))
		grow_items(b, b->base.nitems + nitems);
	if (unlikely(b->nrows + nrows > b->rows_alloc))
		grow_rows(b, b->nrows + nrows);
}

/* Add an item of the key whose known bits are in b->key. */
static void
add_prefix_item(HybPrefixesBuilder *b, uint32 bits, bool whole, const ItemPointerData *tid,
				uint8 fingerprint)
{
	const HybPrefixesRow *last;
	uint32		shared = 0;

	b->filled = -1;
	hyb_prefixes_room(b, 1, 1);
	last = b->nrows > 0 ? &b->rows[b->nrows - 1] : NULL;
	b->tids[b->base.nitems] = ((uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16) |
		ItemPointerGetOffsetNumberNoCheck(tid);
	if (b->has_fingerprints)
		b->fingerprints[b->base.nitems] = fingerprint;
	if (last != NULL)
	{
		shared = hyb_common_bits(hyb_prefixes_row_bytes(b, last), last->bits, b->key.data, bits);
		if (shared == last->bits)
			return;				/* begins with the last row */
		if (shared == bits || (b->key.data[shared / 8] & (0x80 >> shared % 8)) == 0)
			hyb_leaf_builder_descends(&b->base);
	}
	else if (b->base.after.len > 0)
		shared = hyb_prefixes_bits_at_fence(b->key.data, bits, &b->base.after) - 1;

	b->rows[b->nrows++] = (HybPrefixesRow)
	{
		.off = b->bytes.len,.bits = bits,.shared = shared,
			.start = b->base.nitems,.whole = whole
	};
	b->least_bits = Min(b->least_bits, bits);
	hyb_buf_append(&b->bytes, b->key.data, (bits + 7) / 8);
}

/* The fingerprint of the whole key in b->key. */
static inline uint8
fingerprint_of_key(const HybPrefixesBuilder *b)
{
	return b->has_fingerprints ?
		hyb_fingerprint(hyb_byte_hash(b->key.data, b->key.len)) : 0;
}

void
hyb_prefixes_add(HybLeafBuilder *base, const HybValue *vals,
				 const ItemPointerData *tid)
{
	HybPrefixesBuilder *b = hyb_prefixes_builder(base);

	b->key.len = 0;
	hyb_key_join(base->desc, vals, base->desc->nkeys, &b->key);
	add_prefix_item(b, 8 * b->key.len, true, tid, fingerprint_of_key(b));
}

void
hyb_prefixes_add_from(HybLeafBuilder *base, HybLeaf *leaf, int row, int item,
					  const ItemPointerData *tid)
{
	HybPrefixesBuilder *b = hyb_prefixes_builder(base);
	uint32		bits = hyb_leaf_prefix(leaf, row, &b->key);
	bool		whole = hyb_prefix_is_whole(base->desc, b->key.data, bits);

	add_prefix_item(b, bits, whole, tid,
					b->has_fingerprints ?
					hyb_strings_fingerprint(leaf, &b->key, bits, item) : 0);
}

/* ---- parts of what waits ---- */

int
hyb_prefixes_waiting_row(const HybPrefixesBuilder *b, int item)
{
	int			lo = 0;
	int			hi = b->nrows;

	while (hi - lo > 1)
	{
		int			mid = (lo + hi) / 2;

		if (b->rows[mid].start <= item)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

int
hyb_prefixes_whole_rows(const HybPrefixesBuilder *b, int nitems, bool *split)
{
	int			nrows = hyb_prefixes_waiting_row(b, nitems - 1) + 1;
	const HybPrefixesRow *last = &b->rows[nrows - 1];

	*split = false;
	if (hyb_prefixes_row_end(b, nrows - 1) <= nitems)
		return nrows;
	*split = last->whole &&
		(nrows == 1 || nitems - last->start >= SPLIT_ITEMS);
	return *split || nrows == 1 ? nrows : nrows - 1;
}

static int
compare_tid_numbers(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return (x > y) - (x < y);
}

void
hyb_prefixes_fill_tids(HybPrefixesBuilder *b, int nitems)
{
	HybColumnarBuilder *stored = b->stored;
	int			below = b->has_fingerprints ? 8 : 0;

	/* a fingerprint goes with its TID, below it */
	stored->base.nitems = nitems;
	if (below == 0)
		memcpy(stored->tids, b->tids, nitems * sizeof(uint64));
	for (int i = 0; i < nitems && below > 0; i++)
		stored->tids[i] = b->tids[i] << below | b->fingerprints[i];
	for (int i = 0; i < stored->nrows && stored->nrows < nitems; i++)
	{
		int			start = (int) stored->row_start[i];
		int			end = i + 1 < stored->nrows ? (int) stored->row_start[i + 1] : nitems;

		if (end - start > 1)
			qsort(stored->tids + start, end - start, sizeof(uint64), compare_tid_numbers);
	}
	for (int i = 0; i < nitems && below > 0; i++)
	{
		b->stored_fingerprints[i] = (uint8) stored->tids[i];
		stored->tids[i] >>= below;
	}
}

static ItemPointerData
waiting_tid(const HybPrefixesBuilder *b, int item)
{
	ItemPointerData tid;

	ItemPointerSet(&tid, (BlockNumber) (b->tids[item] >> 16), (OffsetNumber) b->tids[item]);
	return tid;
}

/* ---- keys that are kept ---- */

void
hyb_prefixes_plan_kept(HybPrefixesBuilder *b, int slot)
{
	HybLeafPlan *plan = &b->base.plans[slot];
	HybLeafBuilder *kept;
	HybValue	vals[INDEX_MAX_KEYS];

	if (b->kept == NULL)
		b->kept = create_columnar(b->base.ix,
								  AllocSetContextCreate(b->base.context,
														"hybrid leaf builder of keys",
														ALLOCSET_DEFAULT_SIZES));
	kept = &b->kept->base;

	/*
	 * Keep all that waits, not only what this plan has: codes of strings
	 * depend on it, and plans made for the same waiting items have to hold
	 * when one of them is written.
	 */
	while (kept->nitems < b->base.nitems)
	{
		int			row = hyb_prefixes_waiting_row(b, kept->nitems);
		int			end = hyb_prefixes_row_end(b, row);

		if (!b->rows[row].whole)
			break;
		(void) hyb_key_split(b->base.desc, hyb_prefixes_row_bytes(b, &b->rows[row]),
							 b->rows[row].bits / 8, b->base.desc->natts, vals);
		for (; kept->nitems < end; kept->nitems++)
		{
			ItemPointerData tid = waiting_tid(b, kept->nitems);

			hyb_columnar_add(kept, vals, &tid);
		}
	}
	Assert(kept->nitems >= plan->nitems);
	kept->plans[slot].nitems = plan->nitems;
	hyb_columnar_plan(kept, slot);
	b->kept_items[slot] = kept->nitems;
	plan->nrows = kept->plans[slot].nrows;
	plan->size = kept->plans[slot].size;
	plan->layout = HYB_LAYOUT_COLUMNAR;
}

uint8 *
hyb_prefixes_write_kept(HybPrefixesBuilder *b, int slot, uint8 *out)
{
	Assert(b->kept_items[slot] == b->kept->base.nitems);
	return hyb_columnar_write(&b->kept->base, slot, out);
}

static void
drop_kept(HybPrefixesBuilder *b, int nitems)
{
	if (b->kept == NULL)
		return;
	if (nitems < b->kept->base.nitems)
	{
		hyb_columnar_drop(&b->kept->base, nitems);
		b->kept->base.nitems -= nitems;
		return;
	}
	MemoryContextDelete(b->kept->base.context);
	b->kept = NULL;
}

/* ---- the end of a leaf ---- */

void
hyb_prefixes_separate(HybLeafBuilder *base, int nitems, HybBuf *key, HybPos *separator)
{
	HybPrefixesBuilder *b = hyb_prefixes_builder(base);
	const HybPrefixesRow *right = &b->rows[hyb_prefixes_waiting_row(b, nitems)];
	uint32		bits = right->shared + 1;
	uint32		len = (bits + 7) / 8;

	key->len = 0;
	if (right->start < nitems)
	{
		/* the row goes on: it is a whole key */
		hyb_buf_append(key, hyb_prefixes_row_bytes(b, right), right->bits / 8);
		*separator = hyb_pos_at(base->desc, key->data, key->len, waiting_tid(b, nitems));
		return;
	}
	hyb_buf_append(key, hyb_prefixes_row_bytes(b, right), len);
	if (bits % 8 != 0)
		key->data[len - 1] &= (uint8) (0xFF << (8 - bits % 8));
	*separator = (HybPos)
	{
		.key = key->data,.len = (uint16) len,.tie = HYB_BEFORE
	};
}

void
hyb_prefixes_drop(HybLeafBuilder *base, int nitems)
{
	HybPrefixesBuilder *b = hyb_prefixes_builder(base);
	int			row = hyb_prefixes_waiting_row(b, nitems);
	uint32		first;

	b->filled = -1;
	drop_kept(b, nitems);
	if (nitems >= base->nitems)
	{
		b->nrows = 0;
		b->least_bits = PG_UINT32_MAX;
		b->bytes.len = 0;
		return;
	}
	first = b->rows[row].off;
	/* what is left of a split row is to be the whole key as well */
	if (b->rows[row].start < nitems)
		b->rows[row].shared = b->rows[row].bits - 1;
	b->nrows -= row;
	memmove(b->rows, b->rows + row, b->nrows * sizeof(HybPrefixesRow));
	for (int i = 0; i < b->nrows; i++)
	{
		b->rows[i].off -= first;
		b->rows[i].start = Max(b->rows[i].start - nitems, 0);
	}
	b->bytes.len -= first;
	memmove(b->bytes.data, b->bytes.data + first, b->bytes.len);
	memmove(b->tids, b->tids + nitems,
			(base->nitems - nitems) * sizeof(uint64));
	if (b->has_fingerprints)
		memmove(b->fingerprints, b->fingerprints + nitems, base->nitems - nitems);
}
