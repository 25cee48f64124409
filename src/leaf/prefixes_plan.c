/*
 * prefixes_plan.c
 *		What leaves of prefixes that are numbers are going to be, and writing them.
 *
 * Keys may have so much in common, behind bits that tell others apart, that a
 * leaf's greatest depth leaves many of them in groups: those of an index with
 * another column behind a uuid that many rows have.  If all of the keys are known
 * they are kept, in a columnar leaf.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "leaf/prefixes_build.h"

/* One row in so many may share its prefix with a neighbour of another key. */
#define GROUPED_PART		128

/*
 * Bits beyond those that as many rows take which are spread evenly.  What merges
 * see of new keys are few at a time, so few share a prefix whatever its length; this
 * is for those that fall into prefixes of the rows that are there.
 */
#define SPARE_BITS			9

/* Where rows of the table are on disk, who checks a key that falls into one waits. */
#define SPARE_BITS_ON_DISK	11

/*
 * Prefixes are whole keys, where these are known, if that takes so many bits an
 * item more at most: then nobody has to ask which entries of a row have its key.
 */
#define WHOLE_BITS			2

/* Leaves keep keys if one row in so many would share its prefix otherwise. */
#define KEPT_PART			16

/* How a leaf is going to be stored. */
typedef struct TriePlan
{
	uint32		ncommon;
	int			depth;
} TriePlan;

typedef struct TrieBuilder
{
	HybPrefixesBuilder rows;
	TriePlan	plans[2];
	TriePlan	filled;			/* what `stored` was filled for, and with so */
	int			filled_items;	/* many of the first items */
} TrieBuilder;

static inline TrieBuilder *
trie_builder(HybLeafBuilder *base)
{
	return (TrieBuilder *) base;
}

HybLeafBuilder *
hyb_trie_create(const HybIndex *ix)
{
	TrieBuilder *b = palloc0(sizeof(TrieBuilder));

	hyb_prefixes_init_builder(&b->rows, ix, hyb_trie_columns());
	return &b->rows.base;
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
bits_at_end(const HybPrefixesBuilder *b, const Extent *extent)
{
	const HybPrefixesRow *last = &b->rows[extent->nrows - 1];

	if (extent->split)
		return last->bits;
	if (extent->nrows < b->nrows)
		return b->rows[extent->nrows].shared + 1;
	if (b->base.before.len > 0)
		return hyb_prefixes_bits_at_fence(hyb_prefixes_row_bytes(b, last), last->bits, &b->base.before);
	return 0;
}

static void
measure(const HybPrefixesBuilder *b, Extent *extent)
{
	const HybPrefixesRow *first = &b->rows[0];
	const HybPrefixesRow *last = &b->rows[extent->nrows - 1];
	uint32		common = hyb_common_bits(hyb_prefixes_row_bytes(b, first), first->bits,
										 hyb_prefixes_row_bytes(b, last), last->bits);
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
find_extent(const HybPrefixesBuilder *b, int nitems)
{
	Extent		extent;

	extent.nrows = hyb_prefixes_whole_rows(b, nitems, &extent.split);
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
deepen_to_whole(const HybPrefixesBuilder *b, const Extent *extent, int depth)
{
	uint32		base = 8 * extent->ncommon;
	uint32		whole = depth;
	double		more = 0;

	for (int i = 0; i < extent->nrows; i++)
	{
		const HybPrefixesRow *row = &b->rows[i];

		if (!row->whole || row->bits - base > HYB_TRIE_MAX_DEPTH)
			return depth;
		whole = Max(whole, row->bits - base);
	}
	more = (double) (whole - depth) * extent->nrows;
	return more <= (double) WHOLE_BITS * hyb_prefixes_row_end(b, extent->nrows - 1) ?
		(int) whole : depth;
}

/* The bits of a row beyond the common bytes, as a number; zeros behind its end. */
static inline uint64
built_row_number(const HybPrefixesBuilder *b, const HybPrefixesRow *row, uint32 ncommon)
{
	return hyb_bits_from(hyb_prefixes_row_bytes(b, row), (row->bits + 7) / 8, ncommon);
}

static int
spare_bits(const HybLeafBuilder *base)
{
	return (base->rows_on_disk ? SPARE_BITS_ON_DISK : SPARE_BITS) +
		hyb_prefixes_growth_bits(base);
}

/*
 * The depth at which few keys to come would fall into a row if they were spread
 * evenly.  What counts is how far the first row is from the last one: bits that
 * they have in common say less where a power of two lies between them.
 */
static int
even_depth(const HybPrefixesBuilder *b, const Extent *extent)
{
	uint64		gap = (built_row_number(b, &b->rows[extent->nrows - 1], extent->ncommon) -
					   built_row_number(b, &b->rows[0], extent->ncommon)) / extent->nrows;

	return Min(HYB_TRIE_MAX_DEPTH - hyb_bit_width(gap) + spare_bits(&b->base),
			   HYB_TRIE_MAX_DEPTH);
}

/*
 * The least depth at which few rows share their prefixes, and few keys to come
 * would fall into one.  Some rows may lack bits of it.
 */
static int
choose_depth(const HybPrefixesBuilder *b, const Extent *extent)
{
	int			grouped[HYB_TRIE_MAX_DEPTH + 1] = {0};	/* by depth */
	uint32		base = 8 * extent->ncommon;
	uint32		most = b->rows[0].bits;
	int			depth;

	for (int i = 1; i < extent->nrows; i++)
	{
		grouped[Min(b->rows[i].shared - base, HYB_TRIE_MAX_DEPTH)]++;
		most = Max(most, b->rows[i].bits);
	}
	depth = Max(extent->least, Min(even_depth(b, extent), (int) (most - base)));
	/* who shares more bits shares these too */
	for (int i = HYB_TRIE_MAX_DEPTH; i > 0; i--)
		grouped[i - 1] += grouped[i];
	while (depth < HYB_TRIE_MAX_DEPTH &&
		   grouped[depth] > extent->nrows / GROUPED_PART)
		depth++;
	return depth;
}

/*
 * Does the builder of what is stored begin with the rows and items of a plan?  A
 * plan's items end within a row only if that is of a whole key, whose TIDs ascend as
 * they wait, so it has the first of those that are stored.
 */
static bool
is_filled(const TrieBuilder *trie, const TriePlan *plan, int nitems)
{
	return trie->rows.filled >= 0 && trie->filled.ncommon == plan->ncommon &&
		trie->filled.depth == plan->depth && nitems <= trie->filled_items;
}

/*
 * Fill it, unless it is: plans of a leaf are for different numbers of items, and
 * mostly for the same depth.
 */
static void
fill_stored(TrieBuilder *trie, const TriePlan *plan, int nitems)
{
	HybPrefixesBuilder *b = &trie->rows;
	HybColumnarBuilder *stored = b->stored;
	HybBuildColumn *numbers = &stored->cols[HYB_TRIE_PREFIX];
	HybBuildColumn *lacks = &stored->cols[HYB_TRIE_LACKS];
	uint32		limit = 8 * plan->ncommon + plan->depth;
	int			n = -1;

	if (is_filled(trie, plan, nitems))
		return;

	hyb_columnar_room(stored, b->nrows, nitems);
	for (int i = 0; i < b->nrows && b->rows[i].start < nitems; i++)
	{
		const HybPrefixesRow *row = &b->rows[i];

		if (i > 0 && row->shared >= limit)
			continue;			/* of the group before it */
		n++;
		numbers->ints[n] = built_row_number(b, row, plan->ncommon) >>
			(HYB_TRIE_MAX_DEPTH - plan->depth);
		lacks->ints[n] = limit - Min(row->bits, limit);
		numbers->isnull[n] = lacks->isnull[n] = 0;
		stored->row_start[n] = row->start;
	}
	stored->nrows = n + 1;
	hyb_prefixes_fill_tids(b, nitems);
	b->filled = 0;
	trie->filled = *plan;
	trie->filled_items = nitems;
}

/*
 * Would many of the rows that the first items are of share their prefixes at the
 * greatest depth, though all of their keys are known?
 */
static bool
wants_keys(const HybPrefixesBuilder *b, int nitems)
{
	int			nrows = hyb_prefixes_row_of_item(b, nitems - 1) + 1;
	const HybPrefixesRow *first = &b->rows[0];
	const HybPrefixesRow *last = &b->rows[nrows - 1];
	uint32		common = hyb_common_bits(hyb_prefixes_row_bytes(b, first), first->bits,
										 hyb_prefixes_row_bytes(b, last), last->bits);
	int			grouped = 0;

	for (int i = 1; i < nrows; i++)
	{
		if (!b->rows[i].whole)
			return false;
		grouped += b->rows[i].shared >= common / 8 * 8 + HYB_TRIE_MAX_DEPTH;
	}
	return first->whole && grouped > nrows / KEPT_PART;
}

/* May plan for fewer items than it was asked for; for a group, for all of it. */
void
hyb_trie_plan(HybLeafBuilder *base, int slot)
{
	HybPrefixesBuilder *b = hyb_prefixes_builder(base);
	HybLeafPlan *plan = &base->plans[slot];
	TriePlan   *own = &trie_builder(base)->plans[slot];
	Extent		extent;

	if (wants_keys(b, plan->nitems))
	{
		hyb_prefixes_plan_kept(b, slot);
		return;
	}
	extent = find_extent(b, plan->nitems);
	own->ncommon = extent.ncommon;
	own->depth = deepen_to_whole(b, &extent, choose_depth(b, &extent));
	if (!extent.split)
		plan->nitems = hyb_prefixes_row_end(b, extent.nrows - 1);
	if (plan->nitems > HYB_LEAF_MAX_ITEMS)
		hyb_leaf_builder_no_room(base);
	fill_stored(trie_builder(base), own, plan->nitems);
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
	HybPrefixesBuilder *b = hyb_prefixes_builder(base);
	const TriePlan *plan = &trie_builder(base)->plans[slot];

	if (base->plans[slot].layout == HYB_LAYOUT_COLUMNAR)
		return hyb_prefixes_write_kept(b, slot, out);
	fill_stored(trie_builder(base), plan, base->plans[slot].nitems);
	out = hyb_varint_write(out, plan->ncommon);
	memcpy(out, hyb_prefixes_row_bytes(b, &b->rows[0]), plan->ncommon);
	out += plan->ncommon;
	*out++ = (uint8) plan->depth;
	return hyb_columnar_write(&b->stored->base, slot, out);
}
