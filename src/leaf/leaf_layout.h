/*
 * leaf_layout.h
 *		What a layout of leaves does: a table of functions for each.
 *
 * A leaf's content begins alike in all layouts, nothing aligned, integers
 * little-endian:
 *
 *		uint16	rows
 *		uint16	items (TIDs)
 *		uint8	layout, HybLeafLayoutNumber
 *
 * What follows belongs to the layout, up to the tombstone bitmap or pd_lower.
 * Row starts and TIDs are stored alike in all layouts, as columnar.h says.  leaf.c
 * and leaf_build.c do what is the same for all: that bitmap, when a leaf is full, and
 * where one leaf ends.  Leaves of one index may have different layouts.  A merge
 * writes leaves in the layout that hyb_leaf_layout_for chooses.
 *
 * The columnar layout keeps keys: its rows give back all columns.  The others keep
 * prefixes: of each row the bits that its keys begin with.
 */
#ifndef HYB_LEAF_LAYOUT_H
#define HYB_LEAF_LAYOUT_H

#include "store/page.h"
#include "store/settings.h"

#define HYB_LEAF_HEADER		5
#define HYB_LEAF_MAX_ITEMS	16384

typedef enum HybLeafLayoutNumber
{
	HYB_LAYOUT_COLUMNAR = 1,	/* keeps keys */
	HYB_LAYOUT_TRIE = 2,		/* prefixes that are numbers */
	HYB_LAYOUT_STRINGS = 3,		/* prefixes that are strings */
	HYB_LAYOUT_END
} HybLeafLayoutNumber;

#define HYB_LAYOUTS			(HYB_LAYOUT_END - 1)

typedef struct HybLeafLayout HybLeafLayout;

/*
 * A leaf opened for reading.  It points into the page, which the caller keeps
 * share-locked or owns a copy of.  Opening checks all bounds, so that later calls
 * do not read outside the page whatever its bytes are.
 */
typedef struct HybLeaf
{
	const HybLeafLayout *layout;	/* of the page */
	struct HybColumnar *columnar;	/* columns, row starts and TIDs */
	struct HybPrefixes *prefixes;	/* NULL: the index has no such leaves */
	const HybKeyDesc *desc;
	const char *page;
	Relation	rel;			/* for error messages */
	BlockNumber blkno;			/* the same */
	int			nrows;
	int			nitems;
	bool		unique_rows;	/* every row has one TID: item == row */
	const uint8 *tombstones;	/* bitmap, or NULL */
	uint32		content_len;	/* bytes of the page's content that are used */
	int			ncols_alloc;	/* columns that there is memory for */
	MemoryContext context;		/* all memory is there, or lent to it */
	bool		own_context;	/* which goes with the leaf */
	int			scratch_row;	/* row that scratch_vals holds, or -1 */
	HybValue   *scratch_vals;
} HybLeaf;

StaticAssertDecl(HYB_LEAF_MAX_ITEMS <= PG_UINT16_MAX,
				 "a leaf's header has two bytes for its items");

#ifdef USE_ASSERT_CHECKING
extern void hyb_leaf_assert_valid(const HybLeaf *leaf);
#else
#define hyb_leaf_assert_valid(leaf) ((void) (leaf))
#endif

/* ---- reading leaves of any layout (columnar.c) ---- */

/* First item of a row; hyb_leaf_row_start(leaf, nrows) == nitems. */
extern int	hyb_leaf_row_start(const HybLeaf *leaf, int row);

extern int	hyb_leaf_row_of_item(const HybLeaf *leaf, int item);

/* TIDs of items [item, item + n). */
extern void hyb_leaf_tids(const HybLeaf *leaf, int item, int n,
						  ItemPointerData *tids);

/*
 * Decode all TIDs of the opened leaf once.  Functions that read or search them
 * are then faster.
 */
extern void hyb_leaf_decode_tids(HybLeaf *leaf);

/* An integer column of rows [row, row + n) of a leaf that keeps keys, 0 where it is null. */
extern void hyb_leaf_ints(HybLeaf *leaf, int col, int row, int n, uint64 *ints,
						  uint8 *isnull);

/* Rows [lo, hi). */
typedef struct HybRowRange
{
	int			lo;
	int			hi;
} HybRowRange;

/*
 * Takes a finished leaf.  `page` is the complete page image.  `low` is the
 * separator between the entry before the leaf and its first entry, -infinity for
 * the first leaf of a builder.  Both live until the callback returns.
 */
typedef void (*HybLeafEmit) (void *arg, Page page, const HybPos *low);

/* How the first nitems waiting items are going to be stored. */
typedef struct HybLeafPlan
{
	int			nitems;
	int			nrows;
	uint32		size;			/* bytes behind the common header */
	HybLeafLayoutNumber layout; /* the builder's, unless plan() sets another */
} HybLeafPlan;

/*
 * Entries wait in a builder until they surely exceed a page.  A layout's builder
 * begins with this struct.  It uses the fields down to `plans`.
 */
typedef struct HybLeafBuilder
{
	const HybLeafLayout *layout;
	const HybKeyDesc *desc;
	MemoryContext context;		/* of the builder and all that it has */
	int			nitems;			/* entries not yet in a leaf */
	HybLeafPlan plans[2];		/* filled by the layout's plan() */

	const HybIndex *ix;
	uint64		stamp;
	HybLeafEmit emit;
	void	   *arg;

	/* sizes are computed when this many items wait */
	int			next_check;
	int			last_nitems;	/* items of the leaf before, 0 if none */

	/* what hyb_leaf_builder_aim set; whole pages without it */
	uint32		capacity;		/* bytes at which a leaf is full */
	int			max_items;		/* items at which it is full */
	int			hold;			/* no leaf is finished before more items wait */
	bool		share;			/* the last leaves share what is left */
	bool		finishing;		/* nothing more is added */

	/* what hyb_leaf_builder_expect set */
	uint64		entries;
	bool		rows_on_disk;

	HybPos		low;			/* of the next leaf */
	HybBuf		low_key;
	HybPos		after;			/* fence before all that is added; length 0:
								 * not known */
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
	bool		keeps_keys;

	/* ---- reading ---- */

	/*
	 * Opens the content from p, behind the common header, to end.  Returns
	 * the byte after what it uses.
	 */
	const uint8 *(*open) (HybLeaf *leaf, const uint8 *p, const uint8 *end);

	/* ---- reading prefixes: layouts that do not keep keys ---- */

	/*
	 * Rows below rows->lo lie below the position, those from rows->hi on
	 * above it.  One row at most is between, and has keys on both sides or
	 * only the position's own.  Returns true in that last case, if the tie is
	 * HYB_AT.
	 */
	bool		(*find) (HybLeaf *leaf, const HybPos *pos, HybRowRange *rows);

	/*
	 * May an item be of the key with this hash (hyb_byte_hash), if its row's
	 * prefix begins the key?  NULL: it always may.
	 */
	bool		(*may_have) (const HybLeaf *leaf, int item, uint64 hash);

	/*
	 * The bits that all keys of a row begin with replace what the buffer
	 * holds, with zero bits up to the next whole byte.  Returns their number.
	 */
	uint32		(*prefix) (HybLeaf *leaf, int row, HybBuf *prefix);

	/*
	 * What is wrong with a row by itself, palloc'd, or NULL.  NULL: nothing
	 * can be.
	 */
	char	   *(*verify_row) (const HybLeaf *leaf, int row);

	/* ---- building ---- */

	/*
	 * A builder in the current context, which goes with it;
	 * hyb_leaf_builder_create sets the head.
	 */
	HybLeafBuilder *(*create) (const HybIndex *ix);

	/* Add an entry that waits; the caller counts it. */
	void		(*add) (HybLeafBuilder *b, const HybValue *vals,
						const ItemPointerData *tid);

	/*
	 * Add items [item, item + n) of a leaf of this layout; the caller counts
	 * them.  Rows from `row` on begin with one of these items or later. The
	 * items before them belong to the row that was added last, as the first
	 * row may do in a layout of prefixes. Returns how many rows begin. NULL:
	 * items are added one by one.
	 */
	int			(*add_items) (HybLeafBuilder *b, HybLeaf *leaf, int row, int item, int n);

	/*
	 * Fill b->plans[slot] for its nitems.  Where a leaf cannot end there, the
	 * plan is for fewer items, or for more if it cannot end before either.
	 */
	void		(*plan) (HybLeafBuilder *b, int slot);

	/* Write what was planned to zeroed memory; returns the byte after it. */
	uint8	   *(*write) (HybLeafBuilder *b, int slot, uint8 *out);

	/* Forget the first nitems items; their last row stays if it has more. */
	void		(*drop) (HybLeafBuilder *b, int nitems);
};

/* Raise the error that entries added do not ascend, or do not fit a page. */
HYB_NORETURN extern void hyb_leaf_builder_descends(const HybLeafBuilder *b);
HYB_NORETURN extern void hyb_leaf_builder_no_room(const HybLeafBuilder *b);

extern const HybLeafLayout hyb_columnar_layout;
extern const HybLeafLayout hyb_trie_layout;
extern const HybLeafLayout hyb_strings_layout;

/* The layout of leaves that are built from now on for a level. */
extern const HybLeafLayout *hyb_leaf_layout_for(const HybIndex *ix, int level);

#endif							/* HYB_LEAF_LAYOUT_H */
