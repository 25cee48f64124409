/*
 * prefixes_build.c
 *		Filling leaves of prefixes.
 *
 * Rows wait with all bits of their keys that are known: all of them, or those
 * that the leaf that a row comes from has.  Waiting rows ascend and none is the
 * beginning of another one, so whatever number of bits a leaf keeps of them,
 * only neighbours share a prefix, and no row that lacks bits does.
 *
 * Where one leaf ends and the next one begins, both keep the bit that tells
 * their rows apart: the fence between them is cut behind it.
 *
 * Keys may have so much in common, behind bits that tell others apart, that a
 * leaf's greatest depth leaves many of them in groups: those of an index with
 * another column behind a uuid that many rows have.  If all of the keys are known
 * they are kept, in a columnar leaf.
 */
#include "compat.h"

#include "algo/bits.h"
#include "key/grow.h"
#include "static/columnar.h"
#include "static/prefixes.h"
#include "utils/memutils.h"

/* One row in so many may share its prefix with a neighbour of another key. */
#define GROUPED_PART		128

/*
 * Bits beyond those that as many rows take which are spread evenly.  What merges
 * see of new keys are few at a time, so few share a prefix whatever its length; this
 * is for those that fall into prefixes of the rows that are there.
 */
#define SPARE_BITS			9

/* A row is continued in the next leaf if it has so many items. */
#define SPLIT_ITEMS			64

/*
 * Prefixes are whole keys, where these are known, if that takes so many bits an
 * item more at most: then nobody has to ask which entries of a row have its key.
 */
#define WHOLE_BITS			2

/* Leaves keep keys if one row in so many would share its prefix otherwise. */
#define KEPT_PART			16

typedef struct TrieRow
{
	uint32		off;			/* of its bytes, 0 behind its last bit */
	uint32		bits;			/* known ones */
	uint32		shared;			/* that it has in common with the row before */
	int			start;			/* first item */
	bool		whole;			/* they are a whole key's */
} TrieRow;

/* How a leaf is going to be stored. */
typedef struct TriePlan
{
	uint32		ncommon;
	int			depth;
} TriePlan;

typedef struct TrieBuilder
{
	HybLeafBuilder base;
	TrieRow    *rows;
	int			nrows;
	int			rows_alloc;
	HybBuf		bytes;
	ItemPointerData *tids;
	int			items_alloc;
	HybBuf		key;			/* of the row being added */
	TriePlan	plans[2];
	int			filled;			/* plan that `stored` holds, or -1 */
	HybIndex	stored_index;	/* with the description of what is stored */
	HybColumnarBuilder *stored;
	HybColumnarBuilder *kept;	/* the keys of the first waiting items, as
								 * many as kept->base.nitems; NULL: none yet */
} TrieBuilder;

static inline TrieBuilder *
builder(HybLeafBuilder *base)
{
	return (TrieBuilder *) base;
}

static inline const uint8 *
row_bytes(const TrieBuilder *b, const TrieRow *row)
{
	return b->bytes.data + row->off;
}

static HybColumnarBuilder *
create_columnar(const HybIndex *ix, MemoryContext context)
{
	HybColumnarBuilder *columnar = hyb_columnar_builder(hyb_columnar_create(ix));

	columnar->base.desc = ix->desc;
	columnar->base.context = context;
	return columnar;
}

HybLeafBuilder *
hyb_trie_create(const HybIndex *ix)
{
	TrieBuilder *b = palloc0(sizeof(TrieBuilder));

	Assert(ix->desc->all_mem && ix->desc->natts == ix->desc->nkeys);
	hyb_buf_reserve(&b->bytes, BLCKSZ);
	hyb_buf_reserve(&b->key, 64);
	b->filled = -1;
	b->stored_index = *ix;
	b->stored_index.desc = unconstify(HybKeyDesc *, hyb_trie_columns());
	b->stored = create_columnar(&b->stored_index, CurrentMemoryContext);
	return &b->base;
}

void
hyb_trie_free(HybLeafBuilder *base)
{
	TrieBuilder *b = builder(base);

	if (b->rows != NULL)
		pfree(b->rows);
	if (b->tids != NULL)
		pfree(b->tids);
	hyb_buf_free(&b->bytes);
	hyb_buf_free(&b->key);
	hyb_columnar_free(&b->stored->base);
	if (b->kept != NULL)
		hyb_columnar_free(&b->kept->base);
	pfree(b);
}

/* ---- adding ---- */

/*
 * The bits of a row that a fence asks for: as many as tell it from what is on
 * the other side, but no more than the fence has.
 */
static uint32
bits_at_fence(const uint8 *bytes, uint32 bits, const HybPos *fence)
{
	uint32		common = hyb_common_bits(bytes, bits, fence->key, 8 * fence->len);

	return Min(common + 1, 8 * (uint32) fence->len);
}

/*
 * Add an item of a key of which so many bits, in b->key, are known.
 */
static void
add_item(TrieBuilder *b, uint32 bits, bool whole, const ItemPointerData *tid)
{
	TrieRow    *last = b->nrows > 0 ? &b->rows[b->nrows - 1] : NULL;
	uint32		shared = 0;

	b->filled = -1;
	if (b->base.nitems == b->items_alloc)
	{
		b->items_alloc = Max(b->items_alloc * 2, 1024);
		b->tids = hyb_grow(b->base.context, b->tids, b->items_alloc,
						   sizeof(ItemPointerData));
	}
	b->tids[b->base.nitems] = *tid;
	if (last != NULL)
	{
		shared = hyb_common_bits(row_bytes(b, last), last->bits, b->key.data, bits);
		if (shared == last->bits)
			return;				/* begins with the last row */
		if (shared == bits || (b->key.data[shared / 8] & (0x80 >> shared % 8)) == 0)
			hyb_leaf_builder_descends(&b->base);
	}
	else if (b->base.after.len > 0)
		shared = bits_at_fence(b->key.data, bits, &b->base.after) - 1;

	if (b->nrows == b->rows_alloc)
	{
		b->rows_alloc = Max(b->rows_alloc * 2, 512);
		b->rows = hyb_grow(b->base.context, b->rows, b->rows_alloc, sizeof(TrieRow));
	}
	b->rows[b->nrows++] = (TrieRow)
	{
		.off = b->bytes.len,.bits = bits,.shared = shared,
			.start = b->base.nitems,.whole = whole
	};
	hyb_buf_append(&b->bytes, b->key.data, (bits + 7) / 8);
}

void
hyb_trie_add(HybLeafBuilder *base, const HybValue *vals,
			 const ItemPointerData *tid)
{
	TrieBuilder *b = builder(base);

	b->key.len = 0;
	hyb_key_join(base->desc, vals, base->desc->nkeys, &b->key);
	add_item(b, 8 * b->key.len, true, tid);
}

void
hyb_trie_add_from(HybLeafBuilder *base, HybLeaf *leaf, int row,
				  const ItemPointerData *tid)
{
	TrieBuilder *b = builder(base);
	uint32		bits = hyb_trie_prefix(leaf, row, &b->key);

	add_item(b, bits, hyb_trie_is_whole(base->desc, b->key.data, bits), tid);
}

/* ---- planning ---- */

/* The last waiting row that begins at or before an item. */
static int
row_of_item(const TrieBuilder *b, int item)
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

static inline int
row_end(const TrieBuilder *b, int row)
{
	return row + 1 < b->nrows ? b->rows[row + 1].start : b->base.nitems;
}

/* What is to be settled of the first rows, before their number of items is. */
typedef struct Extent
{
	int			nrows;
	bool		split;			/* the last one goes on in the next leaf */
	uint32		ncommon;		/* bytes */
	int			least;			/* depth that the ends of the leaf ask for */
} Extent;

/* Bits that the last row of a leaf needs. */
static uint32
bits_at_end(const TrieBuilder *b, const Extent *extent)
{
	const TrieRow *last = &b->rows[extent->nrows - 1];

	if (extent->split)
		return last->bits;
	if (extent->nrows < b->nrows)
		return b->rows[extent->nrows].shared + 1;
	if (b->base.before.len > 0)
		return bits_at_fence(row_bytes(b, last), last->bits, &b->base.before);
	return 0;
}

static void
measure(const TrieBuilder *b, Extent *extent)
{
	const TrieRow *first = &b->rows[0];
	const TrieRow *last = &b->rows[extent->nrows - 1];
	uint32		common = hyb_common_bits(row_bytes(b, first), first->bits,
										 row_bytes(b, last), last->bits);
	uint32		needed = Max(first->shared + 1, bits_at_end(b, extent));

	for (int i = 0; i < extent->nrows; i++)
		common = Min(common, b->rows[i].bits - 1);
	extent->ncommon = common / 8;
	extent->least = Max((int) needed - (int) (8 * extent->ncommon), 1);
}

/*
 * The rows of at most nitems items that a leaf may have, or a single group: the
 * ends of a leaf may not be too deep below what its rows have in common.  Those
 * of one row never are.
 */
static Extent
find_extent(const TrieBuilder *b, int nitems)
{
	Extent		extent = {.nrows = row_of_item(b, nitems - 1) + 1};
	const TrieRow *last = &b->rows[extent.nrows - 1];

	if (row_end(b, extent.nrows - 1) > nitems)
	{
		/* the items of a group stay together */
		extent.split = last->whole &&
			(extent.nrows == 1 || nitems - last->start >= SPLIT_ITEMS);
		if (!extent.split && extent.nrows > 1)
			extent.nrows--;
	}
	measure(b, &extent);
	while (extent.least > HYB_TRIE_MAX_DEPTH)
	{
		Assert(extent.nrows > 1);
		extent.split = false;
		extent.nrows = Max(extent.nrows - extent.nrows / 8 - 1, 1);
		measure(b, &extent);
	}
	return extent;
}

/*
 * The depth of whole keys, if all rows are known to be some and it takes little
 * more than `depth`; otherwise that.
 */
static int
deepen_to_whole(const TrieBuilder *b, const Extent *extent, int depth)
{
	uint32		base = 8 * extent->ncommon;
	uint32		whole = depth;
	double		more = 0;

	for (int i = 0; i < extent->nrows; i++)
	{
		const TrieRow *row = &b->rows[i];

		if (!row->whole || row->bits - base > HYB_TRIE_MAX_DEPTH)
			return depth;
		whole = Max(whole, row->bits - base);
	}
	more = (double) (whole - depth) * extent->nrows;
	return more <= (double) WHOLE_BITS * row_end(b, extent->nrows - 1) ?
		(int) whole : depth;
}

/*
 * The least depth at which few rows share their prefixes, and few keys to come
 * would fall into one if they were spread evenly.  Some rows may lack bits of it.
 */
static int
choose_depth(const TrieBuilder *b, const Extent *extent)
{
	int			grouped[HYB_TRIE_MAX_DEPTH + 1] = {0};	/* by depth */
	const TrieRow *first = &b->rows[0];
	const TrieRow *last = &b->rows[extent->nrows - 1];
	uint32		base = 8 * extent->ncommon;
	uint32		even = hyb_common_bits(row_bytes(b, first), first->bits,
									   row_bytes(b, last), last->bits) +
		hyb_bit_width(extent->nrows) + SPARE_BITS;
	uint32		most = first->bits;
	int			depth;

	for (int i = 1; i < extent->nrows; i++)
	{
		grouped[Min(b->rows[i].shared - base, HYB_TRIE_MAX_DEPTH)]++;
		most = Max(most, b->rows[i].bits);
	}
	even = Min(even, most);
	depth = Max(extent->least, Min((int) (even - base), HYB_TRIE_MAX_DEPTH));
	/* who shares more bits shares these too */
	for (int i = HYB_TRIE_MAX_DEPTH; i > 0; i--)
		grouped[i - 1] += grouped[i];
	while (depth < HYB_TRIE_MAX_DEPTH &&
		   grouped[depth] > extent->nrows / GROUPED_PART)
		depth++;
	return depth;
}

static int
compare_tids(const void *a, const void *b)
{
	uint64		x = *(const uint64 *) a;
	uint64		y = *(const uint64 *) b;

	return (x > y) - (x < y);
}

/* Fill the builder of what is stored with the rows and items of a plan. */
static void
fill_stored(TrieBuilder *b, int slot)
{
	const TriePlan *plan = &b->plans[slot];
	HybColumnarBuilder *stored = b->stored;
	HybBuildColumn *numbers = &stored->cols[HYB_TRIE_PREFIX];
	HybBuildColumn *lacks = &stored->cols[HYB_TRIE_LACKS];
	int			nitems = b->base.plans[slot].nitems;
	uint32		limit = 8 * plan->ncommon + plan->depth;
	int			n = -1;

	hyb_columnar_room(stored, b->nrows, nitems);
	for (int i = 0; i < b->nrows && b->rows[i].start < nitems; i++)
	{
		const TrieRow *row = &b->rows[i];

		if (i > 0 && row->shared >= limit)
			continue;			/* of the group before it */
		n++;
		numbers->ints[n] = hyb_bits_from(row_bytes(b, row), (row->bits + 7) / 8,
										 plan->ncommon) >>
			(HYB_TRIE_MAX_DEPTH - plan->depth);
		lacks->ints[n] = limit - Min(row->bits, limit);
		numbers->isnull[n] = lacks->isnull[n] = 0;
		stored->row_start[n] = row->start;
	}
	stored->nrows = n + 1;
	stored->base.nitems = nitems;
	for (int i = 0; i < nitems; i++)
		stored->tids[i] = ((uint64) ItemPointerGetBlockNumberNoCheck(&b->tids[i]) << 16) |
			ItemPointerGetOffsetNumberNoCheck(&b->tids[i]);
	for (int i = 0; i < stored->nrows; i++)
	{
		int			start = (int) stored->row_start[i];
		int			end = i < n ? (int) stored->row_start[i + 1] : nitems;

		if (end - start > 1)
			qsort(stored->tids + start, end - start, sizeof(uint64), compare_tids);
	}
	b->filled = slot;
}

/*
 * Would many of the rows that the first items are of share their prefixes at the
 * greatest depth, though all of their keys are known?
 */
static bool
wants_keys(const TrieBuilder *b, int nitems)
{
	int			nrows = row_of_item(b, nitems - 1) + 1;
	const TrieRow *first = &b->rows[0];
	const TrieRow *last = &b->rows[nrows - 1];
	uint32		common = hyb_common_bits(row_bytes(b, first), first->bits,
										 row_bytes(b, last), last->bits);
	int			grouped = 0;

	for (int i = 1; i < nrows; i++)
	{
		if (!b->rows[i].whole)
			return false;
		grouped += b->rows[i].shared >= common / 8 * 8 + HYB_TRIE_MAX_DEPTH;
	}
	return first->whole && grouped > nrows / KEPT_PART;
}

/* Plan a leaf of the keys of the first items. */
static void
plan_kept(TrieBuilder *b, int slot)
{
	HybLeafPlan *plan = &b->base.plans[slot];
	HybLeafBuilder *kept;
	HybValue	vals[INDEX_MAX_KEYS];

	if (b->kept == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(b->base.context);

		b->kept = create_columnar(b->base.ix, b->base.context);
		MemoryContextSwitchTo(old);
	}
	kept = &b->kept->base;
	while (kept->nitems < plan->nitems)
	{
		int			row = row_of_item(b, kept->nitems);
		int			end = Min(row_end(b, row), plan->nitems);

		(void) hyb_key_split(b->base.desc, row_bytes(b, &b->rows[row]),
							 b->rows[row].bits / 8, b->base.desc->natts, vals);
		for (; kept->nitems < end; kept->nitems++)
			hyb_columnar_add(kept, vals, &b->tids[kept->nitems]);
	}
	kept->plans[slot].nitems = plan->nitems;
	hyb_columnar_plan(kept, slot);
	plan->nrows = kept->plans[slot].nrows;
	plan->size = kept->plans[slot].size;
	plan->layout = HYB_LAYOUT_COLUMNAR;
}

/* The first items wait no longer. */
static void
drop_kept(TrieBuilder *b, int nitems)
{
	if (b->kept == NULL)
		return;
	if (nitems < b->kept->base.nitems)
	{
		hyb_columnar_drop(&b->kept->base, nitems);
		b->kept->base.nitems -= nitems;
		return;
	}
	hyb_columnar_free(&b->kept->base);
	b->kept = NULL;
}

/* May plan for fewer items than it was asked for; for a group, for all of it. */
void
hyb_trie_plan(HybLeafBuilder *base, int slot)
{
	TrieBuilder *b = builder(base);
	HybLeafPlan *plan = &base->plans[slot];
	TriePlan   *own = &b->plans[slot];
	Extent		extent;

	if (wants_keys(b, plan->nitems))
	{
		plan_kept(b, slot);
		return;
	}
	extent = find_extent(b, plan->nitems);
	own->ncommon = extent.ncommon;
	own->depth = deepen_to_whole(b, &extent, choose_depth(b, &extent));
	if (!extent.split)
		plan->nitems = row_end(b, extent.nrows - 1);
	if (plan->nitems > HYB_LEAF_MAX_ITEMS)
		hyb_leaf_builder_no_room(base);
	fill_stored(b, slot);
	b->stored->base.plans[slot].nitems = plan->nitems;
	b->stored->prepared = 0;
	hyb_columnar_plan(&b->stored->base, slot);
	plan->nrows = b->stored->base.plans[slot].nrows;
	plan->size = hyb_varint_size(own->ncommon) + own->ncommon + 1 +
		b->stored->base.plans[slot].size;
}

uint8 *
hyb_trie_write(HybLeafBuilder *base, int slot, uint8 *out)
{
	TrieBuilder *b = builder(base);
	const TriePlan *plan = &b->plans[slot];

	if (base->plans[slot].layout == HYB_LAYOUT_COLUMNAR)
		return hyb_columnar_write(&b->kept->base, slot, out);
	if (b->filled != slot)
		fill_stored(b, slot);
	out = hyb_varint_write(out, plan->ncommon);
	memcpy(out, row_bytes(b, &b->rows[0]), plan->ncommon);
	out += plan->ncommon;
	*out++ = (uint8) plan->depth;
	return hyb_columnar_write(&b->stored->base, slot, out);
}

/* ---- what follows ---- */

void
hyb_trie_separate(HybLeafBuilder *base, int nitems, HybBuf *key, HybPos *separator)
{
	TrieBuilder *b = builder(base);
	const TrieRow *right = &b->rows[row_of_item(b, nitems)];
	uint32		bits = right->shared + 1;
	uint32		len = (bits + 7) / 8;

	key->len = 0;
	if (right->start < nitems)
	{
		/* the row goes on: it is a whole key */
		hyb_buf_append(key, row_bytes(b, right), right->bits / 8);
		*separator = hyb_pos_at(base->desc, key->data, key->len, b->tids[nitems]);
		return;
	}
	hyb_buf_append(key, row_bytes(b, right), len);
	if (bits % 8 != 0)
		key->data[len - 1] &= (uint8) (0xFF << (8 - bits % 8));
	*separator = (HybPos)
	{
		.key = key->data,.len = (uint16) len,.tie = HYB_BEFORE
	};
}

void
hyb_trie_drop(HybLeafBuilder *base, int nitems)
{
	TrieBuilder *b = builder(base);
	int			row = row_of_item(b, nitems);
	uint32		first;

	b->filled = -1;
	drop_kept(b, nitems);
	if (nitems >= base->nitems)
	{
		b->nrows = 0;
		b->bytes.len = 0;
		return;
	}
	first = b->rows[row].off;
	/* the part of a row that goes on is to be the whole key as well */
	if (b->rows[row].start < nitems)
		b->rows[row].shared = b->rows[row].bits - 1;
	b->nrows -= row;
	memmove(b->rows, b->rows + row, b->nrows * sizeof(TrieRow));
	for (int i = 0; i < b->nrows; i++)
	{
		b->rows[i].off -= first;
		b->rows[i].start = Max(b->rows[i].start - nitems, 0);
	}
	b->bytes.len -= first;
	memmove(b->bytes.data, b->bytes.data + first, b->bytes.len);
	memmove(b->tids, b->tids + nitems,
			(base->nitems - nitems) * sizeof(ItemPointerData));
}
