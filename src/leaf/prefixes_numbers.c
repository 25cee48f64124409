/*
 * prefixes_numbers.c
 *		Leaves of prefixes that are numbers (layout 2).
 *
 * Keys may have much in common behind the bits that tell other keys apart, as
 * those of an index with a second column behind a uuid that many rows share.
 * Even the greatest depth of a leaf then leaves many of them in groups.  If all
 * of these keys are known, the leaf is columnar and keeps them.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "key/key.h"
#include "leaf/leaf.h"
#include "leaf/prefixes.h"

/* Columns of what is stored. */
#define PREFIX_COLUMN	0
#define LACKS_COLUMN	1

/* One row in GROUPED_PART may share its prefix with a neighbour of another key. */
#define GROUPED_PART		128

/*
 * Bits beyond those that tell evenly spread rows apart.  A merge sees few new keys
 * at a time, which rarely share a prefix whatever its length.  These bits are for
 * new keys that fall into the prefixes of rows that are there.
 */
#define SPARE_BITS			9

/* The same where a search that checks such a key reads the table from disk. */
#define SPARE_BITS_ON_DISK	11

/*
 * Prefixes are whole keys, where these are known, if that takes up to WHOLE_BITS
 * more bits an item.  Then no search has to ask the table which entries of a row
 * have its key.
 */
#define WHOLE_BITS			2

/* A leaf keeps keys if more than one row in KEPT_PART would share its prefix. */
#define KEPT_PART			16

/* The description of the two stored columns. */
static const HybKeyDesc *
trie_columns(void)
{
	static union
	{
		HybKeyDesc	desc;
		char		space[offsetof(HybKeyDesc, cols) + HYB_PREFIXES_COLUMNS * sizeof(HybColumn)];
	}			columns;

	if (columns.desc.nkeys == 0)
	{
		HybColumn  *cols = columns.desc.cols;

		for (int i = 0; i < HYB_PREFIXES_COLUMNS; i++)
		{
			cols[i].store = HYB_STORE_INT;
			cols[i].compare = HYB_COMPARE_MEM;
			cols[i].width = i == PREFIX_COLUMN ? 8 : 1;
		}
		columns.desc.natts = columns.desc.nkeys = HYB_PREFIXES_COLUMNS;
		columns.desc.all_mem = columns.desc.exact = true;
	}
	return &columns.desc;
}

/* The 64 bits from a byte on; zeros behind the end. */
static inline uint64
bits_from(const uint8 *bytes, uint32 len, uint32 from)
{
	uint64		v = 0;

	for (uint32 i = 0; i < 8; i++)
		v = (v << 8) | (from + i < len ? bytes[from + i] : 0);
	return v;
}

/* ---- opening ---- */

static const uint8 *
open_trie(HybLeaf *leaf, const uint8 *p, const uint8 *end)
{
	HybPrefixes *t = leaf->prefixes;

	p = hyb_varint_read(p, end, &t->ncommon);
	if (p == NULL || t->ncommon > HYB_MAX_ENTRY_SIZE || end - p <= t->ncommon)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "The common bytes of a leaf's keys are malformed.");
	t->common = p;
	t->common_word = hyb_load64le(p);
	p += t->ncommon;
	t->depth = *p++;
	if (t->depth < 1 || t->depth > HYB_TRIE_MAX_DEPTH)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  psprintf("The leaf's prefixes have %d bits beyond what they have in common.",
							   t->depth));
	t->has_rows = false;
	p = hyb_columnar_open(leaf, trie_columns(), p, end);
	for (int i = 0; i < HYB_PREFIXES_COLUMNS; i++)
	{
		if (leaf->columnar->cols[i].encoding != HYB_LEAF_INT)
			hyb_corrupted(leaf->rel, leaf->blkno, "The leaf's prefixes are NULLs.");
	}
	return p;
}

/* ---- rows ---- */

static inline const HybSeq *
sequence(const HybLeaf *leaf, int col)
{
	return &leaf->columnar->cols[col].seq;
}

/* A row as it is stored, decoded. */
typedef struct HybNumberRow
{
	uint64		number;			/* the bits beyond the common bytes, from the
								 * highest one down */
	int			bits;			/* how many */
	int			start;			/* first item */
} HybNumberRow;

/* The number of a row; on a damaged page it may have more than `depth` bits. */
static inline uint64
stored_row_number(const HybLeaf *leaf, int row)
{
	const HybPrefixes *t = leaf->prefixes;

	return t->has_rows ? t->rows[row].number >> (HYB_TRIE_MAX_DEPTH - t->depth) :
		hyb_seq_get(sequence(leaf, PREFIX_COLUMN), row);
}

static inline int
row_lacks(const HybLeaf *leaf, int row)
{
	const HybPrefixes *t = leaf->prefixes;
	uint64		lacks;

	if (t->has_rows)
		return t->depth - t->rows[row].bits;
	lacks = hyb_seq_get(sequence(leaf, LACKS_COLUMN), row);
	return (int) Min(lacks, (uint64) t->depth);
}

static uint32
trie_prefix(HybLeaf *leaf, int row, HybBuf *prefix)
{
	const HybPrefixes *t = leaf->prefixes;
	HybLeafColumn *numbers = &leaf->columnar->cols[PREFIX_COLUMN];
	uint64		number = hyb_seq_get_next(&numbers->seq, &numbers->seq_cursor, row);
	uint32		bits = t->depth - row_lacks(leaf, row);
	uint8		beyond[8];

	hyb_store64be(beyond, number << (HYB_TRIE_MAX_DEPTH - t->depth));
	prefix->len = 0;
	hyb_buf_append(prefix, t->common, t->ncommon);
	hyb_buf_append(prefix, beyond, (bits + 7) / 8);
	return 8 * t->ncommon + bits;
}

/* ---- searching ---- */

/* The lowest bits set, up to 64 of them. */
static inline uint64
below_bits(int bits)
{
	return bits == 0 ? 0 : ~UINT64CONST(0) >> (64 - bits);
}

/* What lies above the lowest bits of x. */
static inline uint64
above_bits(uint64 x, int bits)
{
	return bits == 64 ? 0 : x >> bits;
}

/* The first row whose number is at least x. */
static inline int
lower_bound(const HybLeaf *leaf, uint64 x)
{
	const HybPrefixes *t = leaf->prefixes;

	if (t->has_rows)
	{
		uint64		from = x << (HYB_TRIE_MAX_DEPTH - t->depth);
		int			lo = 0;
		int			hi = leaf->nrows;

		while (lo < hi)
		{
			int			mid = (lo + hi) / 2;

			if (t->rows[mid].number < from)
				lo = mid + 1;
			else
				hi = mid;
		}
		return lo;
	}
	return (int) hyb_seq_lower_bound(sequence(leaf, PREFIX_COLUMN), 0, leaf->nrows, x);
}

/* The first row whose number, with 1 for the bits it lacks, is at least x. */
static int
first_reaching(const HybLeaf *leaf, uint64 x)
{
	int			row = lower_bound(leaf, x);

	if (row > 0)
	{
		int			lacks = row_lacks(leaf, row - 1);
		uint64		below = stored_row_number(leaf, row - 1);

		/* a shallow row ends where the next one begins at the latest */
		if (lacks > 0 && above_bits(below ^ x, lacks) == 0)
			return row - 1;
	}
	return row;
}

static bool
find_number_rows(HybLeaf *leaf, const HybPos *pos, HybRowRange *rows)
{
	const HybPrefixes *t = leaf->prefixes;
	uint32		n = Min(pos->len, t->ncommon);
	int			c = n > 0 ? memcmp(pos->key, t->common, n) : 0;
	int			bits = 8 * (pos->len - n);
	int			row_bits;
	uint64		x;
	uint64		differ;

	/* all rows begin with the position's key */
	if (c == 0 && bits == 0)
		c = pos->tie == HYB_AFTER ? 1 : -1;
	if (c != 0)
	{
		rows->lo = rows->hi = c < 0 ? 0 : leaf->nrows;
		return false;
	}

	x = bits_from(pos->key, pos->len, t->ncommon) >> (HYB_TRIE_MAX_DEPTH - t->depth);
	rows->lo = rows->hi = first_reaching(leaf, x);
	if (rows->lo < leaf->nrows)
	{
		row_bits = t->depth - row_lacks(leaf, rows->lo);
		differ = stored_row_number(leaf, rows->lo) ^ x;
		if (row_bits <= bits && above_bits(differ, t->depth - row_bits) == 0)
		{
			/* it begins the position's key, or is it */
			if (pos->tie == HYB_BEFORE &&
				hyb_only_zeros_from(pos->key, pos->len, 8 * t->ncommon + row_bits))
				return false;	/* a separator ends with zeros: it is the
								 * least key of the row */
			if (row_bits < bits || pos->tie == HYB_AT)
				rows->hi++;
			else if (pos->tie == HYB_AFTER)
				rows->lo = ++rows->hi;
			return row_bits == bits && pos->tie == HYB_AT;
		}
	}
	if (bits < t->depth && pos->tie == HYB_AFTER)
	{
		/* rows from here on may begin with it */
		uint64		last = x | below_bits(t->depth - bits);

		rows->lo = rows->hi = last == below_bits(t->depth) ?
			leaf->nrows : lower_bound(leaf, last + 1);
	}
	return false;
}

/* ---- verification ---- */

static char *
verify_number(const HybLeaf *leaf, int row)
{
	int			depth = leaf->prefixes->depth;
	uint64		number = stored_row_number(leaf, row);
	uint64		lacks = hyb_seq_get(sequence(leaf, LACKS_COLUMN), row);

	if (lacks > depth || (number & ~below_bits(depth)) != 0)
		return psprintf("row %d has more bits than the leaf says", row);
	if ((number & below_bits((int) lacks)) != 0)
		return psprintf("row %d has bits that it should lack", row);
	return NULL;
}

/* ---- planning ---- */

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
	TriePlan	filled;			/* what `stored` was filled for */
	int			filled_items;	/* and with how many items */
} TrieBuilder;

static inline TrieBuilder *
trie_builder(HybLeafBuilder *base)
{
	return (TrieBuilder *) base;
}

static HybLeafBuilder *
trie_create(const HybIndex *ix)
{
	TrieBuilder *b = palloc0(sizeof(TrieBuilder));

	hyb_prefixes_init_builder(&b->rows, ix, trie_columns());
	return &b->rows.base;
}

/* ---- adding the rows of a leaf ---- */

/* Rows that are decoded at a time. */
#define ROWS_AT_A_TIME		64

/* Decode rows [from, from + n).  Their first items ascend. */
static void
decode_rows(const HybLeaf *leaf, int from, int n)
{
	HybNumberRow *rows = leaf->prefixes->rows;
	int			depth = leaf->prefixes->depth;
	uint64		numbers[ROWS_AT_A_TIME];
	uint64		lacks[ROWS_AT_A_TIME];
	uint64		starts[ROWS_AT_A_TIME];

	hyb_seq_decode(sequence(leaf, PREFIX_COLUMN), from, n, numbers);
	hyb_seq_decode(sequence(leaf, LACKS_COLUMN), from, n, lacks);
	if (!leaf->unique_rows)
		hyb_seq_decode(&leaf->columnar->row_starts, from, n, starts);
	for (int i = 0; i < n; i++)
	{
		HybNumberRow *row = &rows[from + i];

		row->number = numbers[i] << (HYB_TRIE_MAX_DEPTH - depth);
		row->bits = depth - (int) Min(lacks[i], (uint64) depth);
		row->start = leaf->unique_rows ? from + i : (int) Min(starts[i], (uint64) leaf->nitems);
		if (row->start >= leaf->nitems ||
			row->start <= (from + i == 0 ? -1 : row[-1].start))
			hyb_corrupted(leaf->rel, leaf->blkno, "The rows of the leaf do not ascend.");
	}
}

/* All rows of a leaf, decoded once. */
static const HybNumberRow *
decoded_rows(HybLeaf *leaf)
{
	HybPrefixes *t = leaf->prefixes;

	if (t->has_rows)
		return t->rows;
	if (t->rows_alloc < leaf->nrows)
	{
		t->rows = hyb_grow(leaf->context, t->rows, leaf->nrows, sizeof(HybNumberRow));
		t->rows_alloc = leaf->nrows;
	}
	for (int from = 0; from < leaf->nrows; from += ROWS_AT_A_TIME)
		decode_rows(leaf, from, Min(leaf->nrows - from, ROWS_AT_A_TIME));
	t->has_rows = true;
	return t->rows;
}

/*
 * Append a row of a leaf, which begins with waiting item `start`.  There is room for
 * it.  The caller sets what it shares with the row before it.
 */
static inline HybPrefixesRow *
append_row(HybPrefixesBuilder *b, const HybPrefixes *from, const HybNumberRow *stored,
		   int start)
{
	HybPrefixesRow *row = &b->rows[b->nrows++];
	uint8	   *bytes = b->bytes.data + b->bytes.len;

	if (from->ncommon <= sizeof(uint64))
		hyb_store64le(bytes, from->common_word);
	else
		memcpy(bytes, from->common, from->ncommon);
	hyb_store64be(bytes + from->ncommon, stored->number);
	row->off = b->bytes.len;
	row->bits = 8 * from->ncommon + stored->bits;
	row->start = start;
	row->whole = hyb_prefix_is_whole(b->base.desc, bytes, row->bits);
	b->bytes.len += (row->bits + 7) / 8;
	b->least_bits = Min(b->least_bits, row->bits);
	return row;
}

static int
trie_add_items(HybLeafBuilder *base, HybLeaf *leaf, int row, int item, int n)
{
	HybPrefixesBuilder *b = hyb_prefixes_builder(base);
	const HybPrefixes *from = leaf->prefixes;
	const HybNumberRow *rows = decoded_rows(leaf);
	const HybNumberRow *first = rows + row;
	const HybNumberRow *end = rows + leaf->nrows;
	const HybNumberRow *next = first;
	int			shift = base->nitems - item;

	Assert(b->nrows > 0 && (next == end || next->start >= item));
	b->filled = -1;
	hyb_prefixes_room(b, n, n);
	hyb_buf_reserve(&b->bytes, n * (from->ncommon + sizeof(uint64)) + sizeof(uint64));
	hyb_columnar_tid_words(leaf, item, n, b->tids + base->nitems);
	if (next < end && next->start < item + n)
	{
		const HybPrefixesRow *last = &b->rows[b->nrows - 1];
		HybPrefixesRow *added = append_row(b, from, next, next->start + shift);
		const uint8 *bytes = hyb_prefixes_row_bytes(b, added);

		added->shared = hyb_common_bits(hyb_prefixes_row_bytes(b, last), last->bits,
										bytes, added->bits);
		if (added->shared == last->bits)
		{
			/* the row goes on */
			b->bytes.len = added->off;
			b->nrows--;
		}
		else if (added->shared == added->bits ||
				 (bytes[added->shared / 8] & (0x80 >> added->shared % 8)) == 0)
			hyb_leaf_builder_descends(base);
		next++;
	}
	for (; next < end && next->start < item + n; next++)
	{
		int			shared = HYB_TRIE_MAX_DEPTH -
			(int) hyb_bit_width(next[-1].number ^ next->number);

		if (next->number < next[-1].number || shared >= Min(next->bits, next[-1].bits))
			hyb_leaf_builder_descends(base);
		append_row(b, from, next, next->start + shift)->shared = 8 * from->ncommon + shared;
	}
	return (int) (next - first);
}

/* Rows that a leaf may have, before the number of its items is known. */
typedef struct Extent
{
	int			nrows;
	bool		split;			/* the last one continues in the next leaf */
	uint32		ncommon;		/* bytes that they have in common */
	int			least;			/* depth that the leaf's ends need */
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

	for (int i = 0; i < extent->nrows && b->least_bits <= common; i++)
		common = Min(common, b->rows[i].bits - 1);
	extent->ncommon = common / 8;
	extent->least = Max((int) needed - (int) (8 * extent->ncommon), 1);
}

/*
 * The rows of at most nitems items that a leaf may have, or a single group.  What
 * its ends need may not exceed HYB_TRIE_MAX_DEPTH bits beyond what its rows have in
 * common; a single row never does.
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

/* The depth of whole keys if all are known and WHOLE_BITS allows, else `depth`. */
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

/*
 * The bits of a row beyond the common bytes, as a number; zeros behind its end.  Each
 * row has more bits than these bytes, and 8 bytes behind the last row are readable.
 */
static inline uint64
built_row_number(const HybPrefixesBuilder *b, const HybPrefixesRow *row, uint32 ncommon)
{
	uint32		bits = row->bits - 8 * ncommon;
	uint64		number = hyb_load64be(hyb_prefixes_row_bytes(b, row) + ncommon);

	Assert(row->bits > 8 * ncommon);
	Assert(row->off + ncommon + sizeof(uint64) <= b->bytes.cap);
	return bits < 64 ? number & ~(~UINT64CONST(0) >> bits) : number;
}

static int
spare_bits(const HybLeafBuilder *base)
{
	return (base->rows_on_disk ? SPARE_BITS_ON_DISK : SPARE_BITS) +
		hyb_prefixes_growth_bits(base);
}

/*
 * The depth at which few new keys would fall into a row if they were spread
 * evenly.  It depends on the distance of the first row from the last one.  Common
 * bits would tell less where a power of two lies between them.
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
 * The least depth at which few rows share their prefixes and few new keys would
 * fall into one.  Some rows may have fewer bits.
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
	/* rows that share more bits share fewer bits too */
	for (int i = HYB_TRIE_MAX_DEPTH; i > 0; i--)
		grouped[i - 1] += grouped[i];
	while (depth < HYB_TRIE_MAX_DEPTH &&
		   grouped[depth] > extent->nrows / GROUPED_PART)
		depth++;
	return depth;
}

/*
 * Does the stored builder begin with the rows and items of a plan?  A plan's items
 * end within a row only if that is a whole key.  The TIDs of such a row ascend as
 * they wait, so the plan has the first ones that are stored.
 */
static bool
is_filled(const TrieBuilder *trie, const TriePlan *plan, int nitems)
{
	return trie->rows.filled >= 0 && trie->filled.ncommon == plan->ncommon &&
		trie->filled.depth == plan->depth && nitems <= trie->filled_items;
}

/* Fill it, unless it is: the plans of a leaf have mostly the same depth. */
static void
fill_stored(TrieBuilder *trie, const TriePlan *plan, int nitems)
{
	HybPrefixesBuilder *b = &trie->rows;
	HybColumnarBuilder *stored = b->stored;
	HybBuildColumn *numbers = &stored->cols[PREFIX_COLUMN];
	HybBuildColumn *lacks = &stored->cols[LACKS_COLUMN];
	uint32		limit = 8 * plan->ncommon + plan->depth;
	const HybPrefixesRow *end = b->rows + b->nrows;
	uint64	   *ints;
	uint64	   *lacking;
	uint64		least = PG_UINT64_MAX;
	uint64		greatest = 0;
	int			n = 0;

	if (is_filled(trie, plan, nitems))
		return;

	hyb_columnar_room(stored, b->nrows, nitems);
	ints = numbers->ints;
	lacking = lacks->ints;
	for (const HybPrefixesRow *row = b->rows; row < end && row->start < nitems; row++)
	{
		if (row->shared >= limit && row > b->rows)
			continue;			/* belongs to the group before it */
		ints[n] = built_row_number(b, row, plan->ncommon) >>
			(HYB_TRIE_MAX_DEPTH - plan->depth);
		lacking[n] = limit - Min(row->bits, limit);
		least = Min(least, lacking[n]);
		greatest = Max(greatest, lacking[n]);
		stored->row_start[n++] = row->start;
	}
	memset(numbers->isnull, 0, n);
	memset(lacks->isnull, 0, n);
	numbers->known = lacks->known = true;
	numbers->ascends = true;
	numbers->least = ints[0];
	numbers->greatest = ints[n - 1];
	lacks->ascends = false;
	lacks->least = least;
	lacks->greatest = greatest;
	stored->nrows = n;
	hyb_prefixes_fill_tids(b, nitems);
	b->filled = 0;
	trie->filled = *plan;
	trie->filled_items = nitems;
}

/*
 * Would many rows of the first items share their prefixes at the greatest depth,
 * and are all of their keys known?
 */
static bool
wants_keys(const HybPrefixesBuilder *b, int nitems)
{
	int			nrows = hyb_prefixes_waiting_row(b, nitems - 1) + 1;
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

static void
trie_plan(HybLeafBuilder *base, int slot)
{
	HybPrefixesBuilder *b = hyb_prefixes_builder(base);
	HybLeafPlan *plan = &base->plans[slot];
	TriePlan   *own = &trie_builder(base)->plans[slot];
	Extent		extent;

	hyb_buf_reserve(&b->bytes, sizeof(uint64)); /* built_row_number */
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

static uint8 *
trie_write(HybLeafBuilder *base, int slot, uint8 *out)
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

const HybLeafLayout hyb_trie_layout = {
	.number = HYB_LAYOUT_TRIE,
	.open = open_trie,
	.find = find_number_rows,
	.prefix = trie_prefix,
	.verify_row = verify_number,
	.create = trie_create,
	.add = hyb_prefixes_add,
	.add_items = trie_add_items,
	.plan = trie_plan,
	.write = trie_write,
	.drop = hyb_prefixes_drop
};
