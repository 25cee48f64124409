/*
 * leaf_layout.h
 *		What a layout of leaves has to do, for those who write one.
 *
 * A leaf's content begins with the same bytes in all layouts, nothing
 * aligned, integers little-endian:
 *
 *		uint16	rows
 *		uint16	items (TIDs)
 *		uint8	layout, HybLeafLayoutNumber
 *
 * What follows is the layout's, up to the tombstone bitmap or pd_lower.  The
 * bitmap of tombstones or hints, when a leaf is full, and the cuts between
 * leaves are the same for all of them: leaf.c, leaf_build.c.  The leaves of
 * one index may have different layouts; a merge writes those that it rewrites
 * in the one that leaf/layouts.c chooses.
 */
#ifndef HYB_LEAF_LAYOUT_H
#define HYB_LEAF_LAYOUT_H

#include "store/page.h"
#include "store/settings.h"

#define HYB_LEAF_HEADER		5
#define HYB_LEAF_MAX_ITEMS	16384

typedef enum HybLeafLayoutNumber
{
	HYB_LAYOUT_COLUMNAR = 1,
	HYB_LAYOUT_TRIE = 2,		/* prefixes that are numbers */
	HYB_LAYOUT_STRINGS = 3,		/* and strings */
	HYB_LAYOUT_END				/* behind the last one */
} HybLeafLayoutNumber;

#define HYB_LAYOUTS			(HYB_LAYOUT_END - 1)

/* Rows whose first items are asked for at a time, at most. */
#define HYB_LEAF_ROW_STARTS	64

typedef struct HybLeafLayout HybLeafLayout;

/*
 * A leaf opened for reading; points into the page, which the caller keeps
 * share-locked or owns a copy of.  Opening checks all bounds, so that later
 * calls cannot run off the page whatever its bytes are.
 */
typedef struct HybLeaf
{
	const HybLeafLayout *layout;	/* of the page */
	void	   *own[HYB_LAYOUTS];	/* what each layout keeps, by number - 1 */
	const HybKeyDesc *desc;
	const char *page;
	Relation	rel;			/* for error messages */
	BlockNumber blkno;
	int			nrows;
	int			nitems;
	bool		unique_rows;	/* every row has one TID: item == row */
	const uint8 *tombstones;	/* bitmap, or NULL */
	uint32		content_len;	/* bytes of the page's content that are used */
	int			ncols_alloc;	/* columns that there is memory for */
	MemoryContext context;		/* of the first open; all memory is there */
	bool		spare_buffers;	/* large buffers are spare ones of the
								 * backend, given back with the context */
	int			scratch_row;	/* row that scratch_vals holds, or -1 */
	HybValue   *scratch_vals;
} HybLeaf;

StaticAssertDecl(HYB_LEAF_MAX_ITEMS <= PG_UINT16_MAX,
				 "a leaf's header has two bytes for its items");

#ifdef USE_ASSERT_CHECKING
/* An opened leaf. */
extern void hyb_leaf_assert_valid(const HybLeaf *leaf);
#else
#define hyb_leaf_assert_valid(leaf) ((void) (leaf))
#endif

/* Bytes behind a string's memory that a layout's string() may write to. */
#define HYB_LEAF_SLACK	64

/* Rows [lo, hi). */
typedef struct HybRowRange
{
	int			lo;
	int			hi;
} HybRowRange;

/*
 * A finished leaf image, handed to the callback: `page` is a complete page
 * image.  `low` is the separator between the entry before it and its first
 * entry: -infinity for the first leaf of a builder.  Key memory belongs to
 * the builder and lives until the callback returns.
 */
typedef void (*HybLeafEmit) (void *arg, Page page, const HybPos *low);

/* What the first nitems waiting items are going to take. */
typedef struct HybLeafPlan
{
	int			nitems;
	int			nrows;
	uint32		size;			/* bytes behind the common header */
	HybLeafLayoutNumber layout; /* the builder's, unless plan() says another */
} HybLeafPlan;

/*
 * Entries wait in a builder until they surely exceed a page.  Layouts put this
 * in front of what they keep; they use what comes first, down to `plans`.
 */
typedef struct HybLeafBuilder
{
	const HybLeafLayout *layout;
	const HybKeyDesc *desc;
	MemoryContext context;
	int			nitems;			/* entries not yet in a leaf */
	HybLeafPlan plans[2];		/* filled by the layout's plan() */

	const HybIndex *ix;
	uint64		stamp;
	HybLeafEmit emit;
	void	   *arg;

	/* sizes are computed when this many items wait */
	int			next_check;
	int			last_nitems;	/* items of the leaf before, 0 if none */

	/* what hyb_leaf_builder_aim asked for; whole pages without it */
	uint32		capacity;		/* bytes at which a leaf is full */
	int			max_items;		/* items at which it is */
	int			hold;			/* no leaf is full before more items wait */
	bool		share;			/* the last leaves share what is left */
	bool		finishing;		/* nothing more is added */

	/* what hyb_leaf_builder_expect said */
	uint64		entries;
	bool		rows_on_disk;

	HybPos		low;			/* of the next leaf */
	HybBuf		low_key;
	HybPos		after;			/* fence before all that is added; length 0:
								 * there is none */
	HybPos		before;			/* fence behind all of it */
	HybBuf		after_key;
	HybBuf		before_key;
	HybBuf		left_key;
	HybBuf		right_key;
	PGAlignedBlock page;
} HybLeafBuilder;

#ifdef USE_ASSERT_CHECKING
extern void hyb_leaf_builder_assert_valid(const HybLeafBuilder *b);
#else
#define hyb_leaf_builder_assert_valid(b) ((void) (b))
#endif

/*
 * The table.  Functions raise ERRCODE_INDEX_CORRUPTED, by hyb_corrupted with
 * leaf->rel and leaf->blkno, for bytes that they cannot make sense of.
 */
struct HybLeafLayout
{
	HybLeafLayoutNumber number;
	bool		keeps_keys;		/* a row gives back the very values that were
								 * stored */

	/* ---- reading ---- */

	/* Bytes of leaf->own, and more of them for each column. */
	Size		size;
	Size		column_size;

	/* Prepares leaf->own, which is not zeroed, before the first open. */
	void		(*init) (HybLeaf *leaf);

	/*
	 * The content from p, behind the common header, to end.  Returns the byte
	 * after what it uses.
	 */
	const uint8 *(*open) (HybLeaf *leaf, const uint8 *p, const uint8 *end);

	/* Frees what lies in leaf->own, if anything was allocated. */
	void		(*close) (HybLeaf *leaf);

	/*
	 * The rows whose first columns equal vals, which point into a key, behind
	 * their flag bytes.  If there are none both ends are the first row above.
	 */
	void		(*search) (HybLeaf *leaf, const HybValue *vals, int ncols,
						   HybRowRange *rows);

	/*
	 * In its place, for layouts that do not keep keys: rows below rows->lo
	 * lie below the position, those from rows->hi on above it.  Of those
	 * between keys may lie on both sides, or be its own: it is one row at
	 * most.  Returns whether all of the row's keys are the position's, which
	 * is HYB_AT.
	 */
	bool		(*find) (HybLeaf *leaf, const HybPos *pos, HybRowRange *rows);

	/*
	 * First item of [lo, hi), whose TIDs ascend, with a TID at or above tid;
	 * hi if there is none.
	 */
	int			(*search_tid) (const HybLeaf *leaf, int lo, int hi,
							   const ItemPointerData *tid);

	/*
	 * May an item be of the key with this hash (hyb_byte_hash)?  For layouts
	 * that do not keep keys; NULL: any that its row's prefix begins.
	 */
	bool		(*may_have) (const HybLeaf *leaf, int item, uint64 hash);

	/* All columns of a row; NULL: the layout does not keep keys. */
	void		(*row) (HybLeaf *leaf, int row, HybValue *vals);

	/*
	 * In its place: the bits that all keys of a row begin with replace what
	 * the buffer holds, zero bits up to the next whole byte behind them; so
	 * many.
	 */
	uint32		(*prefix) (HybLeaf *leaf, int row, HybBuf *prefix);

	/*
	 * An integer column of rows [row, row + n), 0 where it is null.  NULL:
	 * they are read one by one.
	 */
	void		(*ints) (HybLeaf *leaf, int col, int row, int n, uint64 *ints,
						 uint8 *isnull);

	/*
	 * The string of a row, a flag byte in front of the value, as it is in
	 * entries but for length word and terminator: it goes to out, which has
	 * room for cap bytes and HYB_LEAF_SLACK more.  Returns its length.  NULL:
	 * rows are read whole.
	 */
	uint32		(*string) (HybLeaf *leaf, int col, int row, uint8 *out,
						   uint32 cap);

	/*
	 * First item of a row below nrows, of n such rows, HYB_LEAF_ROW_STARTS at
	 * most, and row of an item below nitems, of a leaf without unique_rows.
	 */
	int			(*row_start) (const HybLeaf *leaf, int row);
	void		(*row_starts) (const HybLeaf *leaf, int row, int n, int *starts);
	int			(*row_of_item) (const HybLeaf *leaf, int item);

	/* TIDs of items [item, item + n). */
	void		(*tids) (const HybLeaf *leaf, int item, int n,
						 ItemPointerData *tids);

	/*
	 * What is wrong with an opened leaf's rows and TIDs, palloc'd, or NULL.
	 * hyb_leaf_verify does it where this is NULL: for layouts that keep keys.
	 */
	char	   *(*verify) (HybLeaf *leaf);

	/* ---- building ---- */

	/* A builder in the current context, zero but for what is the layout's. */
	HybLeafBuilder *(*create) (const HybIndex *ix);
	void		(*free) (HybLeafBuilder *b);

	/* Another entry that waits; the caller counts it. */
	void		(*add) (HybLeafBuilder *b, const HybValue *vals,
						const ItemPointerData *tid);

	/*
	 * The same for n items of a leaf of this layout, from `item` on, which
	 * does not belong to the row of the item that waits last; those that
	 * begin rows are of `row` and the rows after it.  Returns how many rows
	 * begin.  NULL: items are added one by one.
	 */
	int			(*add_items) (HybLeafBuilder *b, HybLeaf *leaf, int row,
							  int item, int n);

	/*
	 * The same for an item of a row of a leaf of this layout, for layouts
	 * that do not keep keys.
	 */
	void		(*add_from) (HybLeafBuilder *b, HybLeaf *leaf, int row, int item,
							 const ItemPointerData *tid);

	/*
	 * Fill b->plans[slot] for its nitems.  Where a leaf cannot end there the
	 * plan is for fewer of them; or for more, if it cannot end before either.
	 */
	void		(*plan) (HybLeafBuilder *b, int slot);

	/* Write what was planned to zeroed memory; returns the byte after it. */
	uint8	   *(*write) (HybLeafBuilder *b, int slot, uint8 *out);

	/* Append the key columns of a waiting item. */
	void		(*waiting) (const HybLeafBuilder *b, int item, HybBuf *key,
							ItemPointer tid);

	/*
	 * The separator before a waiting item that a leaf may begin with, its key
	 * in *key.  NULL: it is told from what waiting() says.
	 */
	void		(*separate) (HybLeafBuilder *b, int item, HybBuf *key,
							 HybPos *separator);

	/* Forget the first nitems items; their last row stays if it has more. */
	void		(*drop) (HybLeafBuilder *b, int nitems);
};

/* Raise the error that entries added do not ascend, or do not fit a page. */
HYB_NORETURN extern void hyb_leaf_builder_descends(const HybLeafBuilder *b);
HYB_NORETURN extern void hyb_leaf_builder_no_room(const HybLeafBuilder *b);

extern const HybLeafLayout hyb_columnar_layout;
extern const HybLeafLayout hyb_trie_layout;
extern const HybLeafLayout hyb_strings_layout;

#endif							/* HYB_LEAF_LAYOUT_H */
