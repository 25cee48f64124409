/*
 * position.h
 *		Positions between entries.
 *
 * A place between entries: scan bounds, separators (fence keys), the
 * watermark and restart positions are all of this form.
 *
 * `key` is a prefix of an encoded entry.  In an all_mem index it may end
 * anywhere (a truncated separator); otherwise it holds exactly `ncols` whole
 * columns.  Against the entries that start with it the position is
 *
 *		HYB_BEFORE	below all of them
 *		HYB_AFTER	above all of them
 *		HYB_AT		at `tid`; the key is then a whole key (all key columns)
 */
#ifndef HYB_POSITION_H
#define HYB_POSITION_H

#include "key/key.h"
#include "storage/itemptr.h"

typedef enum HybTie
{
	HYB_BEFORE = -1,
	HYB_AT = 0,
	HYB_AFTER = 1
} HybTie;

typedef struct HybPos
{
	const uint8 *key;
	uint16		len;			/* 0 with BEFORE: -infinity, with AFTER:
								 * +infinity */
	uint8		ncols;			/* whole columns in key; if all_mem it may be
								 * 0 with len > 0: raw bytes */
	int8		tie;			/* HybTie */
	ItemPointerData tid;		/* HYB_AT only */
} HybPos;

StaticAssertDecl(HYB_MAX_ENTRY_SIZE <= PG_UINT16_MAX, "positions have lengths of two bytes");

#ifdef USE_ASSERT_CHECKING
/* Is a position one that entries of the index can be compared with? */
extern void hyb_pos_assert_valid(const HybKeyDesc *desc, const HybPos *pos);
#else
#define hyb_pos_assert_valid(desc, pos) ((void) (pos))
#endif

/* At an entry with this key, which the position points to, and TID. */
static inline HybPos
hyb_pos_at(const HybKeyDesc *desc, const uint8 *key, uint32 keylen,
		   ItemPointerData tid)
{
	Assert(keylen <= PG_UINT16_MAX);
	return (HybPos)
	{
		.key = key,.len = (uint16) keylen,
			.ncols = (uint8) desc->nkeys,.tie = HYB_AT,.tid = tid
	};
}

/* The cut just above a position: an entry at the position lies below it. */
static inline HybPos
hyb_pos_above(const HybPos *pos)
{
	HybPos		above = *pos;

	if (above.tie == HYB_AT)
		ItemPointerInc(&above.tid);
	return above;
}

/* The greatest position of entries below a fence. */
static inline HybPos
hyb_pos_below(const HybPos *fence)
{
	HybPos		below = *fence;

	if (below.tie == HYB_AT)
		ItemPointerDec(&below.tid);
	return below;
}

/* Before or after all entries whose first columns are this key. */
static inline void
hyb_pos_set(HybPos *pos, const HybBuf *key, int ncols, HybTie tie)
{
	Assert(key->len <= PG_UINT16_MAX);
	*pos = (HybPos)
	{
		.key = key->data,.len = (uint16) key->len,
			.ncols = (uint8) ncols,.tie = (int8) tie
	};
	ItemPointerSetInvalid(&pos->tid);
}

/* Is a comparison of this position with a pure key pure (key/pure.h)? */
static inline bool
hyb_pos_is_pure(const HybKeyDesc *desc, const HybPos *pos)
{
	return likely(desc->pure == HYB_PURE) ||
		hyb_columns_are_pure(desc, pos->ncols, pos->key, pos->len);
}

#define HYB_POS_MIN(pos)	((pos)->len == 0 && (pos)->tie == HYB_BEFORE)
#define HYB_POS_MAX(pos)	((pos)->len == 0 && (pos)->tie == HYB_AFTER)

/*
 * Entry (its key part, with its TID) against a position: < 0 if the entry
 * lies below, > 0 if above; 0 only for HYB_AT and that very entry.
 */
extern int	hyb_pos_compare_key(const HybKeyDesc *desc,
								const uint8 *key, uint32 keylen,
								const ItemPointerData *tid,
								const HybPos *pos);

/*
 * Index order of two entries: by key, then by TID.  So many parameters because
 * callers keep keys and TIDs in structs of their own.
 */
static inline int
hyb_key_tid_compare(const HybKeyDesc *desc,
					const uint8 *a, uint32 alen, const ItemPointerData *a_tid,
					const uint8 *b, uint32 blen, const ItemPointerData *b_tid)
{
	int			c = hyb_key_compare(desc, a, alen, b, blen);

	return c != 0 ? c : ItemPointerCompare(unconstify(ItemPointerData *, a_tid),
										   unconstify(ItemPointerData *, b_tid));
}

/*
 * A copy of a position that outlives the page, leaf or batch that `from` points
 * into: its key bytes go to `keybuf`, which is emptied first and has to stay as
 * long as the copy.  `from` must not point into `keybuf`.
 */
extern void hyb_pos_copy(HybPos *copy, HybBuf *keybuf, const HybPos *from);

/* Order of two positions. */
extern int	hyb_pos_compare(const HybKeyDesc *desc, const HybPos *a,
							const HybPos *b);

/*
 * The shortest position that separates two neighbouring entries, at which left
 * and right are, left < right: left < sep <= right.  The result's key points
 * into right.  False if they do not ascend, as entries of a damaged leaf may
 * not; then sep is not one.
 */
extern bool hyb_separator(const HybKeyDesc *desc, const HybPos *left,
						  const HybPos *right, HybPos *sep);

#endif							/* HYB_POSITION_H */
