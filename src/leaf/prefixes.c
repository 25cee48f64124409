/*
 * prefixes.c
 *		Reading leaves of prefixes that are numbers, and what all kinds share.
 *
 * What is stored is opened as a columnar leaf of its own; rows and items are
 * numbered alike in both.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "key/key.h"
#include "leaf/columnar.h"
#include "leaf/leaf.h"
#include "leaf/prefixes.h"

typedef struct Trie
{
	uint32		ncommon;		/* bytes that all keys begin with */
	const uint8 *common;
	int			depth;			/* bits beyond */
	HybLeaf		stored;			/* as a columnar leaf */
} Trie;

static inline Trie *
trie(const HybLeaf *leaf)
{
	return leaf->own[HYB_LAYOUT_TRIE - 1];
}

const HybKeyDesc *
hyb_trie_columns(void)
{
	static union
	{
		HybKeyDesc	desc;
		char		space[offsetof(HybKeyDesc, cols) + 2 * sizeof(HybColumn)];
	}			columns;

	if (columns.desc.nkeys == 0)
	{
		HybColumn  *cols = columns.desc.cols;

		for (int i = 0; i < 2; i++)
		{
			cols[i].store = HYB_STORE_INT;
			cols[i].compare = HYB_COMPARE_MEM;
			cols[i].width = i == HYB_TRIE_PREFIX ? 8 : 1;
		}
		columns.desc.natts = columns.desc.nkeys = 2;
		columns.desc.all_mem = columns.desc.exact = true;
	}
	return &columns.desc;
}

/* ---- opening ---- */

void
hyb_prefixes_init(HybLeaf *stored, void *own, const HybKeyDesc *columns)
{
	memset(stored, 0, sizeof(HybLeaf));
	stored->own[HYB_LAYOUT_COLUMNAR - 1] = own;
	stored->ncols_alloc = columns->natts;
	stored->layout = &hyb_columnar_layout;
	stored->desc = columns;
	hyb_columnar_layout.init(stored);
}

const uint8 *
hyb_prefixes_open(HybLeaf *stored, const HybLeaf *leaf, const uint8 *p,
				  const uint8 *end)
{
	stored->rel = leaf->rel;
	stored->blkno = leaf->blkno;
	stored->page = leaf->page;
	stored->nrows = leaf->nrows;
	stored->nitems = leaf->nitems;
	stored->unique_rows = leaf->unique_rows;
	stored->context = leaf->context;
	return hyb_columnar_layout.open(stored, p, end);
}

static void
init_trie(HybLeaf *leaf)
{
	hyb_prefixes_init(&trie(leaf)->stored, (char *) trie(leaf) + MAXALIGN(sizeof(Trie)),
					  hyb_trie_columns());
}

static const uint8 *
open_trie(HybLeaf *leaf, const uint8 *p, const uint8 *end)
{
	Trie	   *t = trie(leaf);

	p = hyb_varint_read(p, end, &t->ncommon);
	if (p == NULL || t->ncommon > HYB_MAX_ENTRY_SIZE || end - p <= t->ncommon)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "The common bytes of a leaf's keys are malformed.");
	t->common = p;
	p += t->ncommon;
	t->depth = *p++;
	if (t->depth < 1 || t->depth > HYB_TRIE_MAX_DEPTH)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  psprintf("The leaf's prefixes have %d bits beyond what they have in common.",
							   t->depth));
	p = hyb_prefixes_open(&t->stored, leaf, p, end);
	for (int i = 0; i < 2; i++)
	{
		const HybLeafColumn *col = &hyb_columnar(&t->stored)->cols[i];

		if (col->encoding != HYB_LEAF_INT || col->null_mode != HYB_NULLS_NONE)
			hyb_corrupted(leaf->rel, leaf->blkno, "The leaf's prefixes are NULLs.");
	}
	return p;
}

/* ---- rows ---- */

static inline const HybSeq *
sequence(const HybLeaf *leaf, int col)
{
	return &hyb_columnar(&trie(leaf)->stored)->cols[col].seq;
}

/* The number of a row; beyond what it may be only on a damaged page. */
static inline uint64
stored_row_number(const HybLeaf *leaf, int row)
{
	return hyb_seq_get(sequence(leaf, HYB_TRIE_PREFIX), row);
}

/* Bits that a row lacks. */
static inline int
row_lacks(const HybLeaf *leaf, int row)
{
	uint64		lacks = hyb_seq_get(sequence(leaf, HYB_TRIE_LACKS), row);

	return (int) Min(lacks, (uint64) trie(leaf)->depth);
}

/* Mostly that of one row after the other is asked for. */
static uint32
trie_prefix(HybLeaf *leaf, int row, HybBuf *prefix)
{
	Trie	   *t = trie(leaf);
	HybLeafColumn *numbers = &hyb_columnar(&t->stored)->cols[HYB_TRIE_PREFIX];
	uint64		number = hyb_seq_get_next(&numbers->seq, &numbers->seq_cursor, row);
	uint32		bits = t->depth - row_lacks(leaf, row);
	uint8		beyond[8];

	hyb_store64be(beyond, number << (HYB_TRIE_MAX_DEPTH - t->depth));
	prefix->len = 0;
	hyb_buf_append(prefix, t->common, t->ncommon);
	hyb_buf_append(prefix, beyond, (bits + 7) / 8);
	return 8 * t->ncommon + bits;
}

/* Columns are parsed from the front: what ends with the last one is a key. */
bool
hyb_prefix_is_whole(const HybKeyDesc *desc, const uint8 *prefix, uint32 bits)
{
	return bits > 0 && bits % 8 == 0 &&
		hyb_key_length(desc, prefix, bits / 8) == bits / 8;
}

static int
trie_row_start(const HybLeaf *leaf, int row)
{
	return hyb_columnar_layout.row_start(&trie(leaf)->stored, row);
}

static void
trie_row_starts(const HybLeaf *leaf, int row, int n, int *starts)
{
	hyb_columnar_layout.row_starts(&trie(leaf)->stored, row, n, starts);
}

static int
trie_row_of_item(const HybLeaf *leaf, int item)
{
	return hyb_columnar_layout.row_of_item(&trie(leaf)->stored, item);
}

static void
trie_tids(const HybLeaf *leaf, int item, int n, ItemPointerData *tids)
{
	hyb_columnar_tids(&trie(leaf)->stored, item, n, tids);
}

static int
trie_search_tid(const HybLeaf *leaf, int lo, int hi, const ItemPointerData *tid)
{
	return hyb_columnar_search_tid(&trie(leaf)->stored, lo, hi, tid);
}

/* ---- searching ---- */

/* A number of so many ones, up to 64; and what lies above so many bits. */
static inline uint64
below_bits(int bits)
{
	return bits == 0 ? 0 : ~UINT64CONST(0) >> (64 - bits);
}

static inline uint64
above_bits(uint64 x, int bits)
{
	return bits == 64 ? 0 : x >> bits;
}

/* The first row whose number is at least x. */
static inline int
lower_bound(const HybLeaf *leaf, uint64 x)
{
	return (int) hyb_seq_lower_bound(sequence(leaf, HYB_TRIE_PREFIX), 0, leaf->nrows, x);
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
	Trie	   *t = trie(leaf);
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

	x = hyb_bits_from(pos->key, pos->len, t->ncommon) >> (HYB_TRIE_MAX_DEPTH - t->depth);
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
				return false;	/* as a separator is in its last byte: it is
								 * the least key of the row */
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

char *
hyb_prefixes_verify_tids(HybLeaf *leaf, int row, ItemPointerData *tids)
{
	int			start = hyb_leaf_row_start(leaf, row);
	int			n = hyb_leaf_row_start(leaf, row + 1) - start;

	if (n <= 0)
		return psprintf("row %d has no items", row);
	hyb_leaf_tids(leaf, start, n, tids);
	for (int i = 1; i < n; i++)
	{
		if (ItemPointerCompare(&tids[i - 1], &tids[i]) >= 0)
			return psprintf("TIDs of items %d and %d do not ascend",
							start + i - 1, start + i);
	}
	return NULL;
}

static char *
verify_trie(HybLeaf *leaf)
{
	int			depth = trie(leaf)->depth;
	uint64		reach = 0;		/* the first number behind the row before */
	ItemPointerData *tids = palloc(sizeof(ItemPointerData) * leaf->nitems);
	char	   *wrong = NULL;

	if (hyb_leaf_row_start(leaf, 0) != 0)
		wrong = pstrdup("first row does not start at the first item");
	for (int row = 0; row < leaf->nrows && wrong == NULL; row++)
	{
		uint64		number = stored_row_number(leaf, row);
		uint64		lacks = hyb_seq_get(sequence(leaf, HYB_TRIE_LACKS), row);

		if (lacks > depth || (number & ~below_bits(depth)) != 0)
			wrong = psprintf("row %d has more bits than the leaf says", row);
		else if ((number & below_bits((int) lacks)) != 0)
			wrong = psprintf("row %d has bits that it should lack", row);
		else if (row > 0 && (number < reach || reach == 0))
			wrong = psprintf("rows %d and %d have keys in common, or do not ascend",
							 row - 1, row);
		else
			wrong = hyb_prefixes_verify_tids(leaf, row, tids);
		reach = (number | below_bits((int) Min(lacks, 64))) + 1;
	}
	pfree(tids);
	return wrong;
}

const HybLeafLayout hyb_trie_layout = {
	.number = HYB_LAYOUT_TRIE,
	.keeps_keys = false,
	.size = MAXALIGN(sizeof(Trie)) + HYB_PREFIXES_STORED(2),
	.init = init_trie,
	.open = open_trie,
	.find = find_number_rows,
	.search_tid = trie_search_tid,
	.prefix = trie_prefix,
	.row_start = trie_row_start,
	.row_starts = trie_row_starts,
	.row_of_item = trie_row_of_item,
	.tids = trie_tids,
	.verify = verify_trie,
	.create = hyb_trie_create,
	.free = hyb_prefixes_free,
	.add = hyb_prefixes_add,
	.add_from = hyb_prefixes_add_from,
	.plan = hyb_trie_plan,
	.write = hyb_trie_write,
	.separate = hyb_prefixes_separate,
	.drop = hyb_prefixes_drop
};
