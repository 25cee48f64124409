/*
 * leaf.h
 *		Static leaves, searched in place, whatever their layout.
 *
 * A leaf holds rows in (key, TID) order.  A row is one distinct combination of all
 * columns with a posting list of one or more TIDs.  Neighbouring rows may have
 * equal keys: their INCLUDE columns differ, or bytes that the comparator takes as
 * equal.  TIDs of equal keys ascend across rows.
 *
 * A place in a leaf is an ordinal: `row` counts rows, `item` counts TIDs over the
 * whole leaf.  A HybLeafBuilder leaves hyb_leaf_hint_bytes() bytes free between
 * pd_lower and pd_upper, one bit per item for killed-tuple hints, which are not
 * logged.  VACUUM turns them into the logged tombstone bitmap by moving pd_lower
 * over it (HYB_LEAF_TOMBSTONES).
 */
#ifndef HYB_LEAF_H
#define HYB_LEAF_H

#include "leaf/leaf_layout.h"

/* ---- building ---- */

/*
 * In a context below CurrentMemoryContext; one builder for neighbouring leaves.  The
 * layout is hyb_leaf_layout_for's.
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
 * The same for items [from, to) of an opened leaf, which have no tombstones.  Much
 * faster where it has the builder's layout, which a leaf of prefixes must have.
 */
extern void hyb_leaf_builder_add_leaf(HybLeafBuilder *builder, HybLeaf *leaf,
									  int from, int to);

/*
 * From now on a leaf is full at this part of a page, and none is finished before
 * more than `hold` items wait.  In the end what is left goes to one leaf if it fits
 * a page, and else evenly to two, so that no nearly empty leaf follows full ones.
 * May be called again, also in the emit callback.
 */
extern void hyb_leaf_builder_aim(HybLeafBuilder *builder, double part,
								 int hold);

/*
 * The fences around all that is added: the first one before anything is added,
 * the second before hyb_leaf_builder_finish.  Leaves of prefixes keep as much of
 * the outer keys as tells them from what is beyond.
 */
extern void hyb_leaf_builder_after(HybLeafBuilder *builder, const HybPos *fence);
extern void hyb_leaf_builder_before(HybLeafBuilder *builder, const HybPos *fence);

/*
 * Before anything is added: about how many entries the index has (0: not known),
 * and whether rows of the table are mostly read from disk.  The length of
 * prefixes depends on both.
 */
extern void hyb_leaf_builder_expect(HybLeafBuilder *builder, uint64 entries,
									bool rows_on_disk);

/* The first leaf, instead of beginning the level, has this separator. */
extern void hyb_leaf_builder_start(HybLeafBuilder *builder, const HybPos *low);

/* Emit what is left. */
extern void hyb_leaf_builder_finish(HybLeafBuilder *builder);
extern void hyb_leaf_builder_free(HybLeafBuilder *builder);

/* ---- reading ---- */

/*
 * Zero the struct first; reopening another page reuses its memory.  rel and blkno
 * name the page in corruption errors.
 */
extern void hyb_leaf_open(HybLeaf *leaf, const HybKeyDesc *desc,
						  const char *page, Relation rel, BlockNumber blkno);
extern void hyb_leaf_close(HybLeaf *leaf);

/*
 * Instead of zeroing it: give the leaf hyb_leaf_space() bytes of memory,
 * MAXALIGNed.  What more it needs is allocated in the context.  The leaf is
 * opened with this description only, and not closed.
 */
extern Size hyb_leaf_space(const HybKeyDesc *desc);
extern void hyb_leaf_init(HybLeaf *leaf, const HybKeyDesc *desc, void *space,
						  MemoryContext context);

/* Does the leaf keep keys, rather than prefixes? */
static inline bool
hyb_leaf_keeps_keys(const HybLeaf *leaf)
{
	return leaf->layout->keeps_keys;
}

/*
 * All columns of a row of a leaf that keeps keys.  They point into the page or the
 * leaf's buffers, and hold until the next call for another row or
 * hyb_leaf_search.  Rows in ascending order cost one decoding step each.
 */
extern const HybValue *hyb_leaf_row(HybLeaf *leaf, int row);

/*
 * Of a leaf of prefixes: the bits that all keys of a row begin with, and no
 * others of the level, replace what the buffer holds, with zero bits up to the
 * next whole byte.  Returns their number.
 */
extern uint32 hyb_leaf_prefix(HybLeaf *leaf, int row, HybBuf *prefix);

/*
 * The first item that lies above pos (for HYB_AT: at it or above it), nitems if
 * there is none; *row gets its row.  A row of prefixes that may have keys on both
 * sides of pos counts as above a HYB_BEFORE, and as below other ties.
 */
extern int	hyb_leaf_search(HybLeaf *leaf, const HybPos *pos, int *row);

/* HybLeafLayout.find, for any position. */
extern bool hyb_leaf_search_rows(HybLeaf *leaf, const HybPos *pos,
								 HybRowRange *rows);

/*
 * The rows [*row, *end_row) whose first columns equal those of pos, a position of
 * whole columns.  Returns the first item of *row.  In a leaf of prefixes pos is
 * a whole key, and the row is the one that may have it, if an item of it may.
 */
extern int	hyb_leaf_search_equal(HybLeaf *leaf, const HybPos *pos, int *row,
								  int *end_row);

/* HybLeafLayout.may_have. */
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

/* ---- the page itself, locked or a copy ---- */

#define hyb_leaf_hint_bytes(nitems) (((nitems) + 7) / 8)

/*
 * How full a leaf is, in the terms of the builder: the greater of two parts.  One
 * is content (without tombstones) and the room for hints, of what fits a page.  The
 * other is its TIDs, of HYB_LEAF_MAX_ITEMS.
 */
extern double hyb_leaf_fill(Page page);

/* The number of tombstones.  Reads no more bits than the page has. */
extern int	hyb_leaf_count_tombstones(Page page);

/* The bitmap of hints in the hole; NULL if it has become tombstones. */
extern uint8 *hyb_leaf_hints(Page page);

/*
 * Set hints on items of a pinned page that the caller has not locked, if the page
 * is still the leaf with this stamp and pd_lower.  The
 * stamp guarantees that items are the same, pd_lower that the hints have not
 * become tombstones.  The bits lie in the page's hole, so a share lock suffices,
 * as for nbtree's LP_DEAD bits.
 */
extern void hyb_leaf_set_hints(const HybIndex *ix, Buffer buf, uint64 stamp,
							   uint16 pd_lower, const int *items, int nitems);

/*
 * Set tombstones, after turning hints into a bitmap of tombstones if there is
 * none.  The caller holds the page exclusively, in a critical section, and logs
 * the returned range, pd_lower and the opaque.
 */
extern void hyb_leaf_set_tombstones(Page page, const int *items, int nitems,
									uint16 *range_off, uint16 *range_len);

/*
 * Verify an opened leaf: row order, TID order, lengths.  Returns NULL, or what is
 * wrong (palloc'd).
 */
extern char *hyb_leaf_verify(HybLeaf *leaf);

#endif							/* HYB_LEAF_H */
