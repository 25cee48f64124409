/*
 * prefixes.h
 *		The layouts of leaves that hold the beginnings of keys (docs/trie.md).
 *
 * A row is a prefix: a string of bits, counted from the highest bit of a key's
 * first byte.  Prefixes ascend and none is the beginning of another one.
 *
 * Behind the common header (leaf/leaf_layout.h), nothing aligned, integers
 * little-endian, both layouts have
 *
 *		variable bytes	n
 *		n bytes			that all prefixes of the leaf begin with
 *
 * Where keys have a fixed length, prefixes are *numbers* (layout 2):
 *
 *		uint8			depth: bits of prefixes beyond these, 1 to 64
 *		the content of a columnar leaf (leaf/columnar.h) with two integer
 *				columns: the prefix beyond the common bytes, as a number of
 *				`depth` bits; and how many of its lowest bits the row lacks.
 *				These are 0.
 *
 * Else they are *strings* of whole bytes (layout 3):
 *
 *		front-coded		what is left of the prefixes (algo/frontcode.h)
 *		the content of a columnar leaf without columns
 *		uint8			bits of a fingerprint: HYB_FINGERPRINT_BITS, or 0 where
 *				all prefixes are whole keys
 *		bits			fingerprints of all items, those of the lowest bits of a
 *				byte first
 *
 * An item's fingerprint is the first bits of the hash of its whole key, whatever
 * the leaf keeps of that.  Of other keys that begin with the prefix, one in 2^bits
 * has it by chance (SuRF-Hash: Zhang et al., SIGMOD 2018, section 3.2).
 */
#ifndef HYB_PREFIXES_H
#define HYB_PREFIXES_H

#include "algo/bits.h"
#include "leaf/columnar.h"

/* Bits of numbers. */
#define HYB_TRIE_MAX_DEPTH	64

/* Is a prefix of this many bits a whole key, so that no other begins with it? */
extern bool hyb_prefix_is_whole(const HybKeyDesc *desc, const uint8 *prefix,
								uint32 bits);

/* ---- fingerprints ---- */

/*
 * Fingerprints of keys that are not known are copied from leaf to leaf, so all
 * leaves of an index have as many bits.
 */
#define HYB_FINGERPRINT_BITS	5

/* The fingerprint of a key with this hash. */
static inline uint8
hyb_fingerprint(uint64 hash)
{
	return (uint8) (hash >> (64 - HYB_FINGERPRINT_BITS));
}

/* The fingerprint of an item of an opened leaf of strings, whose row has this prefix. */
extern uint8 hyb_strings_fingerprint(const HybLeaf *leaf, const HybBuf *prefix,
									 uint32 bits, int item);

static inline uint8
hyb_stored_fingerprint(const HybPrefixes *prefixes, int item)
{
	return (uint8) hyb_bits_get(prefixes->fingerprints,
								(uint64_t) item * HYB_FINGERPRINT_BITS,
								HYB_FINGERPRINT_BITS);
}

/* ---- building: private to this folder ---- */

typedef struct HybPrefixesRow
{
	uint32		off;			/* of its bytes, 0 behind its last bit */
	uint32		bits;			/* known ones */
	uint32		shared;			/* bits in common with the row before */
	int			start;			/* first item */
	bool		whole;			/* the bits are a whole key */
} HybPrefixesRow;

/* What the builders of both layouts begin with. */
typedef struct HybPrefixesBuilder
{
	HybLeafBuilder base;
	HybPrefixesRow *rows;
	int			nrows;
	int			rows_alloc;
	uint32		least_bits;		/* no waiting row has fewer */
	HybBuf		bytes;
	uint64	   *tids;			/* block << 16 | offset */
	uint8	   *fingerprints;	/* of the items' keys */
	bool		has_fingerprints;	/* the layout keeps them */
	int			items_alloc;
	HybBuf		key;			/* of the row being added */
	int			filled;			/* what `stored` holds, by the layout's
								 * numbers, or -1 */
	HybIndex	stored_index;	/* with the description of what is stored */
	HybColumnarBuilder *stored;
	uint8	   *stored_fingerprints;	/* in the order of its items */
	HybColumnarBuilder *kept;	/* the keys of the first kept->base.nitems
								 * waiting items; NULL: none yet */
	int			kept_items[2];	/* that number when a plan was made */
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

/* Sets up a builder that is zero; `columns` describes what is stored. */
extern void hyb_prefixes_init_builder(HybPrefixesBuilder *b, const HybIndex *ix,
									  const HybKeyDesc *columns);

/* Make room for this many more rows and items. */
extern void hyb_prefixes_room(HybPrefixesBuilder *b, int nrows, int nitems);

/* The last waiting row that begins at or before an item. */
extern int	hyb_prefixes_waiting_row(const HybPrefixesBuilder *b, int item);

/* Bits that prefixes get in addition because the index is going to grow. */
extern int	hyb_prefixes_growth_bits(const HybLeafBuilder *base);

/*
 * The bits of a row that tell it from what is beyond a fence, but no more than
 * the fence has.
 */
extern uint32 hyb_prefixes_bits_at_fence(const uint8 *bytes, uint32 bits,
										 const HybPos *fence);

/*
 * How many rows of the first nitems items a leaf may have, since the items of a
 * row stay together.  *split: the last row continues in the next leaf.
 */
extern int	hyb_prefixes_whole_rows(const HybPrefixesBuilder *b, int nitems, bool *split);

/*
 * Fill the stored builder with the TIDs of the first items, and
 * stored_fingerprints.  They ascend within its rows.
 */
extern void hyb_prefixes_fill_tids(HybPrefixesBuilder *b, int nitems);

/* Plan, and write, a leaf of the keys of the first items, which are all known. */
extern void hyb_prefixes_plan_kept(HybPrefixesBuilder *b, int slot);
extern uint8 *hyb_prefixes_write_kept(HybPrefixesBuilder *b, int slot, uint8 *out);

/* Functions of both layouts. */
extern void hyb_prefixes_add(HybLeafBuilder *base, const HybValue *vals,
							 const ItemPointerData *tid);
extern void hyb_prefixes_add_from(HybLeafBuilder *base, HybLeaf *leaf, int row,
								  int item, const ItemPointerData *tid);
extern void hyb_prefixes_separate(HybLeafBuilder *base, int nitems, HybBuf *key,
								  HybPos *separator);
extern void hyb_prefixes_drop(HybLeafBuilder *base, int nitems);

#endif							/* HYB_PREFIXES_H */
