/*
 * leaf.h
 *		Static leaves, searched in place, whatever their layout.
 *
 * A leaf holds rows in (key, TID) order.  A row is one distinct combination
 * of all columns with a posting list of one or more TIDs; neighbouring rows
 * may have equal keys (different INCLUDE columns, or comparator-equal keys of
 * different bytes), then their TIDs ascend across the rows too.
 *
 * Positions inside a leaf are ordinals: `row` counts rows, `item` counts TIDs
 * over the whole leaf in order.  A leaf built by HybLeafBuilder leaves
 * hyb_leaf_hint_bytes() bytes free between pd_lower and pd_upper: one bit per
 * item for killed-tuple hints (unlogged), which VACUUM turns into the logged
 * tombstone bitmap by moving pd_lower over it (HYB_LEAF_TOMBSTONES).
 */
#ifndef HYB_LEAF_H
#define HYB_LEAF_H

#include "leaf/leaf_layout.h"

/* ---- building ---- */

/*
 * In CurrentMemoryContext; one builder for a run of neighbouring leaves.  The
 * layout is hyb_leaf_layout_for's (leaf/layouts.h), unless a test wants
 * another.
 */
extern HybLeafBuilder *hyb_leaf_builder_create(const HybIndex *ix,
											   const HybLeafLayout *layout,
											   uint64 stamp,
											   HybLeafEmit emit, void *arg);

/*
 * Add the next entry in (key, TID) order; copies what it needs.  Emits leaves
 * that are full.  vals has desc->natts columns.
 */
extern void hyb_leaf_builder_add(HybLeafBuilder *builder,
								 const HybValue *vals,
								 const ItemPointerData *tid);

/*
 * The same for an item of a row of an opened leaf; of one that does not keep
 * keys only where it has the builder's layout.
 */
extern void hyb_leaf_builder_add_item(HybLeafBuilder *builder, HybLeaf *leaf,
									  int row, int item, const ItemPointerData *tid);

/*
 * The same for items [from, to) of an opened leaf without tombstones, much
 * faster where it has the builder's layout.
 */
extern void hyb_leaf_builder_add_leaf(HybLeafBuilder *builder, HybLeaf *leaf,
									  int from, int to);

/*
 * Leaves finished from here on are full at this part of a page, and none is
 * finished before more than `hold` items wait.  What is left in the end goes
 * to one leaf if it fits a page, and else evenly to two, so that no leaf of a
 * few entries comes behind full ones.  May be called again, in the emit
 * callback too.
 */
extern void hyb_leaf_builder_aim(HybLeafBuilder *builder, double part,
								 int hold);

/*
 * What is added lies between these fences: the first one is told before anything
 * is, the second before hyb_leaf_builder_finish.  Layouts that do not keep keys
 * have to know: they keep as much of the outer keys as tells them from what is
 * beyond.
 */
extern void hyb_leaf_builder_after(HybLeafBuilder *builder, const HybPos *fence);
extern void hyb_leaf_builder_before(HybLeafBuilder *builder, const HybPos *fence);

/*
 * Before anything is added, for layouts that do not keep keys to know how much
 * of them is worth its space: entries of the index, about (0: not known), and
 * whether rows of the table are mostly read from disk.
 */
extern void hyb_leaf_builder_expect(HybLeafBuilder *builder, uint64 entries,
									bool rows_on_disk);

/* The first leaf, instead of beginning the level, has this separator. */
extern void hyb_leaf_builder_start(HybLeafBuilder *builder, const HybPos *low);

/* Emit what is left. */
extern void hyb_leaf_builder_finish(HybLeafBuilder *builder);
extern void hyb_leaf_builder_free(HybLeafBuilder *builder);

/* ---- reading ---- */

/* Zero the struct first; reopening another page reuses its memory.  rel and
 * blkno name the page in corruption errors. */
extern void hyb_leaf_open(HybLeaf *leaf, const HybKeyDesc *desc,
						  const char *page, Relation rel, BlockNumber blkno);
extern void hyb_leaf_close(HybLeaf *leaf);

/*
 * Instead of zeroing it: give the leaf memory, hyb_leaf_space() bytes,
 * MAXALIGNed.  What more it needs goes with the context: the leaf is opened
 * with this description only, and not closed.
 */
extern Size hyb_leaf_space(const HybKeyDesc *desc);
extern void hyb_leaf_init(HybLeaf *leaf, const HybKeyDesc *desc, void *space,
						  MemoryContext context);

/*
 * All columns of a row of a leaf that keeps keys.  Values point into the page or into the leaf's
 * buffers, and hold until the next call for another row or hyb_leaf_search.
 * Reading rows in ascending order costs one decoding step a row.
 */
extern const HybValue *hyb_leaf_row(HybLeaf *leaf, int row);

/* Do all leaves of this layout hold keys, so that hyb_leaf_row is for them? */
static inline bool
hyb_leaf_keeps_keys(const HybLeaf *leaf)
{
	return leaf->layout->keeps_keys;
}

/*
 * If not: the bits that all keys of a row begin with, and no others of the
 * level, replace what the buffer holds, zero bits behind them up to the next
 * whole byte.  Returns how many.
 */
extern uint32 hyb_leaf_prefix(HybLeaf *leaf, int row, HybBuf *prefix);

/* An integer column of rows [row, row + n), 0 where it is null. */
extern void hyb_leaf_ints(HybLeaf *leaf, int col, int row, int n, uint64 *ints,
						  uint8 *isnull);

/* First item of a row; hyb_leaf_row_start(leaf, nrows) == nitems. */
extern int	hyb_leaf_row_start(const HybLeaf *leaf, int row);

/* The same of rows [row, row + n), HYB_LEAF_ROW_STARTS at most, below nrows. */
extern void hyb_leaf_row_starts(const HybLeaf *leaf, int row, int n, int *starts);
extern int	hyb_leaf_row_of_item(const HybLeaf *leaf, int item);

/* TIDs of items [item, item + n). */
extern void hyb_leaf_tids(const HybLeaf *leaf, int item, int n,
						  ItemPointerData *tids);

/*
 * The first item that lies above pos (for HYB_AT: that is at it or above it),
 * nitems if none; *row gets its row (nrows if none).  A row of a leaf that does
 * not keep keys, with keys on both sides of pos perhaps, counts as above a
 * HYB_BEFORE, and as below the others.
 */
extern int	hyb_leaf_search(HybLeaf *leaf, const HybPos *pos, int *row);

/*
 * Of a leaf that does not keep keys: what lies in rows below rows->lo is below
 * pos, what lies in those from rows->hi on above it.  One row at most is between,
 * whose keys may lie on both sides, or are all the one that pos is at: then it
 * returns true.
 */
extern bool hyb_leaf_search_rows(HybLeaf *leaf, const HybPos *pos,
								 HybRowRange *rows);

/*
 * The rows [*row, *end_row) whose first columns equal those of pos, a position
 * of whole columns; returns the first item of *row.  Of a leaf that does not keep
 * keys, for whole keys only: the row that may have it, if there is one with an
 * item that may be of the key.
 */
extern int	hyb_leaf_search_equal(HybLeaf *leaf, const HybPos *pos, int *row,
								  int *end_row);

/*
 * Of a leaf that does not keep keys: may an item be of the key with this hash
 * (hyb_byte_hash), if its row's prefix begins it?
 */
static inline bool
hyb_leaf_may_have(const HybLeaf *leaf, int item, uint64 hash)
{
	return leaf->layout->may_have == NULL || leaf->layout->may_have(leaf, item, hash);
}

static inline bool
hyb_leaf_is_tombstone(const HybLeaf *leaf, int item)
{
	return leaf->tombstones != NULL &&
		(leaf->tombstones[item >> 3] & (1 << (item & 7))) != 0;
}

/*
 * How full a leaf is, of a page that is locked or a copy: content (without
 * tombstones) and the room for hints as a part of what fits a page, or its
 * TIDs as a part of the most that a leaf takes, if that is more.  In all
 * layouts: that is what the builder goes by.
 */
extern double hyb_leaf_fill(Page page);

/* Tombstones of such a leaf.  No more bits are read than the page has. */
extern int	hyb_leaf_count_tombstones(Page page);

/* ---- hints and tombstones, on the page itself ---- */

#define hyb_leaf_hint_bytes(nitems) (((nitems) + 7) / 8)

/*
 * Bitmap in the hole for killed-tuple hints, or NULL where there is none
 * (already turned into tombstones).
 */
extern uint8 *hyb_leaf_hints(Page page);

/*
 * Set hints on items, on a pinned page without any lock.  Nothing is done if
 * the page is no longer the leaf with this stamp and pd_lower: a leaf with the
 * same stamp holds the same items, and once VACUUM has turned the hints into
 * tombstones there is no place for them.  The bits lie in the page's hole, so
 * a share lock is enough, as for nbtree's LP_DEAD bits.
 */
extern void hyb_leaf_set_hints(const HybIndex *ix, Buffer buf, uint64 stamp,
							   uint16 pd_lower, const int *items, int nitems);

/*
 * Make sure the page has a logged tombstone bitmap and set the given items in
 * it; caller holds the page exclusively, inside a critical section, and logs
 * the returned range plus pd_lower and the opaque.
 */
extern void hyb_leaf_set_tombstones(Page page, const int *items, int nitems,
									uint16 *range_off, uint16 *range_len);

/*
 * Structural check of a leaf beyond hyb_leaf_open: row order, TID order,
 * lengths.  Returns NULL, or what is wrong (palloc'd).
 */
extern char *hyb_leaf_verify(HybLeaf *leaf);

#endif							/* HYB_LEAF_H */
