/*
 * prefixes_build.h
 *		What waits for leaves of prefixes, and what both kinds of them do with it.
 *
 * Private to prefixes*_build.c and prefixes_plan.c.
 */
#ifndef HYB_PREFIXES_BUILD_H
#define HYB_PREFIXES_BUILD_H

#include "leaf/columnar.h"
#include "leaf/prefixes.h"

/* A row is continued in the next leaf if it has so many items. */
#define HYB_PREFIXES_SPLIT_ITEMS	64

typedef struct HybPrefixesRow
{
	uint32		off;			/* of its bytes, 0 behind its last bit */
	uint32		bits;			/* known ones */
	uint32		shared;			/* that it has in common with the row before */
	int			start;			/* first item */
	bool		whole;			/* they are a whole key's */
} HybPrefixesRow;

/* What layouts put in front of what they keep themselves. */
typedef struct HybPrefixesBuilder
{
	HybLeafBuilder base;
	HybPrefixesRow *rows;
	int			nrows;
	int			rows_alloc;
	HybBuf		bytes;
	ItemPointerData *tids;
	uint8	   *fingerprints;	/* of the items' keys; NULL: none are kept */
	bool		has_fingerprints;	/* the layout keeps them */
	int			items_alloc;
	HybBuf		key;			/* of the row being added */
	int			filled;			/* what `stored` holds, as a layout has it, or
								 * -1 */
	HybIndex	stored_index;	/* with the description of what is stored */
	HybColumnarBuilder *stored;
	uint8	   *stored_fingerprints;	/* in the order of its items */
	HybColumnarBuilder *kept;	/* the keys of the first waiting items, as
								 * many as kept->base.nitems; NULL: none yet */
	int			kept_items[2];	/* how many these were when a plan was made */
} HybPrefixesBuilder;

static inline HybPrefixesBuilder *
hyb_prefixes_builder(HybLeafBuilder *base)
{
	return (HybPrefixesBuilder *) base;
}

static inline const uint8 *
hyb_prefixes_row_bytes(const HybPrefixesBuilder *b, const HybPrefixesRow *row)
{
	return b->bytes.data + row->off;
}

static inline int
hyb_prefixes_row_end(const HybPrefixesBuilder *b, int row)
{
	return row + 1 < b->nrows ? b->rows[row + 1].start : b->base.nitems;
}

/* A builder that is zero: what all have, and how TIDs, say, are stored. */
extern void hyb_prefixes_init_builder(HybPrefixesBuilder *b, const HybIndex *ix,
									  const HybKeyDesc *columns);

/* The last waiting row that begins at or before an item. */
extern int	hyb_prefixes_row_of_item(const HybPrefixesBuilder *b, int item);

/* Bits of prefixes more than the number of entries asks for, as they will be more. */
extern int	hyb_prefixes_growth_bits(const HybLeafBuilder *base);

/*
 * The bits of a row that a fence asks for: as many as tell it from what is on
 * the other side, but no more than the fence has.
 */
extern uint32 hyb_prefixes_bits_at_fence(const uint8 *bytes, uint32 bits,
										 const HybPos *fence);

/*
 * How many of the rows of the first nitems items a leaf may have, the items of a
 * group being together.  *split: the last one goes on in the next leaf.
 */
extern int	hyb_prefixes_whole_rows(const HybPrefixesBuilder *b, int nitems, bool *split);

/*
 * The TIDs of the first items go to what is stored, and ascend within its rows;
 * and so do their fingerprints.
 */
extern void hyb_prefixes_fill_tids(HybPrefixesBuilder *b, int nitems);

/* Plan, and write, a leaf of the keys of the first items, which are all known. */
extern void hyb_prefixes_plan_kept(HybPrefixesBuilder *b, int slot);
extern uint8 *hyb_prefixes_write_kept(HybPrefixesBuilder *b, int slot, uint8 *out);

#endif							/* HYB_PREFIXES_BUILD_H */
