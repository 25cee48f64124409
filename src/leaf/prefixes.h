/*
 * prefixes.h
 *		The layouts of leaves that hold the beginnings of keys (docs/trie.md).
 *
 * A row is a prefix: a string of bits, counted from the highest bit of a key's
 * first byte.  Prefixes ascend and none is the beginning of another one.
 *
 * Behind the common header (leaf/leaf_layout.h), nothing aligned, integers
 * little-endian, in both layouts
 *
 *		variable bytes	n
 *		n bytes			that all prefixes of the leaf begin with
 *
 * and then, in leaves of prefixes that are *numbers* (layout 2, where keys have
 * a fixed length),
 *
 *		uint8			depth: bits of prefixes beyond these, 1 to 64
 *		the content of a columnar leaf (leaf/columnar.h) with two integer
 *				columns: the prefix beyond the common bytes, as a number of
 *				`depth` bits; and how many of these bits, the lowest ones, the
 *				row lacks: they are 0
 *
 * or, in leaves of prefixes that are *strings* of whole bytes (layout 3)
 *
 *		front-coded		what is left of the prefixes (algo/frontcode.h)
 *		the content of a columnar leaf without columns
 *		uint8			bits of a fingerprint: HYB_FINGERPRINT_BITS, or 0 where
 *				all prefixes are whole keys
 *		bits			fingerprints of all items, those of the lowest bits of a
 *				byte first
 *
 * A fingerprint is of the whole key of an item, whatever the leaf has of it: the
 * first bits of its hash.  One in so many keys that begin with a prefix has it by
 * chance (SuRF-Hash: Zhang et al., SIGMOD 2018, section 3.2).
 *
 * Private to prefixes*.c but for the tables.
 */
#ifndef HYB_PREFIXES_H
#define HYB_PREFIXES_H

#include "algo/bits.h"
#include "leaf/columnar.h"

/* Bits of numbers. */
#define HYB_TRIE_MAX_DEPTH	64

/* Columns of what is stored. */
#define HYB_TRIE_PREFIX		0
#define HYB_TRIE_LACKS		1

/* The description of the two columns of leaves of numbers. */
extern const HybKeyDesc *hyb_trie_columns(void);

/* That of what leaves of strings store beside these: no columns. */
extern const HybKeyDesc *hyb_strings_columns(void);

/* Is a prefix of so many bits a whole key, so that no other begins with it? */
extern bool hyb_prefix_is_whole(const HybKeyDesc *desc, const uint8 *prefix,
								uint32 bits);

/* ---- reading: prefixes.c ---- */

/* Bytes of what is stored as a columnar leaf of so many columns. */
#define HYB_PREFIXES_STORED(ncols) \
	MAXALIGN(offsetof(HybColumnar, cols) + (ncols) * sizeof(HybLeafColumn))

/* Prepare it, in so many bytes at `own`. */
extern void hyb_prefixes_init(HybLeaf *stored, void *own, const HybKeyDesc *columns);

/* Open it, being the rest of a leaf's content; returns the byte after it. */
extern const uint8 *hyb_prefixes_open(HybLeaf *stored, const HybLeaf *leaf,
									  const uint8 *p, const uint8 *end);

/* What is wrong with the order of a row's TIDs, palloc'd, or NULL. */
extern char *hyb_prefixes_verify_tids(HybLeaf *leaf, int row, ItemPointerData *tids);

/* ---- building ---- */

/* prefixes_build.c: of all layouts */
extern void hyb_prefixes_free(HybLeafBuilder *base);
extern void hyb_prefixes_add(HybLeafBuilder *base, const HybValue *vals,
							 const ItemPointerData *tid);
extern void hyb_prefixes_add_from(HybLeafBuilder *base, HybLeaf *leaf, int row,
								  int item, const ItemPointerData *tid);
extern void hyb_prefixes_separate(HybLeafBuilder *base, int nitems, HybBuf *key,
								  HybPos *separator);
extern void hyb_prefixes_drop(HybLeafBuilder *base, int nitems);

/* prefixes_plan.c: of numbers */
extern HybLeafBuilder *hyb_trie_create(const HybIndex *ix);
extern void hyb_trie_plan(HybLeafBuilder *base, int slot);
extern uint8 *hyb_trie_write(HybLeafBuilder *base, int slot, uint8 *out);

/* prefixes_strings_build.c: of strings */
extern HybLeafBuilder *hyb_strings_create(const HybIndex *ix);
extern void hyb_strings_free(HybLeafBuilder *base);
extern void hyb_strings_plan(HybLeafBuilder *base, int slot);
extern uint8 *hyb_strings_write(HybLeafBuilder *base, int slot, uint8 *out);

/* ---- fingerprints ---- */

/*
 * Those of keys that are not known go on from leaf to leaf, so all leaves of an
 * index have as many bits.
 */
#define HYB_FINGERPRINT_BITS	5

/* Of a key with this hash. */
static inline uint8
hyb_fingerprint(uint64 hash)
{
	return (uint8) (hash >> (64 - HYB_FINGERPRINT_BITS));
}

/* Bytes of so many. */
#define HYB_FINGERPRINTS_SIZE(bits, n)	(((Size) (bits) * (n) + 7) / 8)

/* That of an item of an opened leaf of strings, of whose row this is the prefix. */
extern uint8 hyb_strings_fingerprint(const HybLeaf *leaf, const HybBuf *prefix,
									 uint32 bits, int item);

/* ---- bit strings ---- */

/* The 64 bits from a byte on; zeros behind the end. */
static inline uint64
hyb_bits_from(const uint8 *bytes, uint32 len, uint32 from)
{
	uint64		v = 0;

	for (uint32 i = 0; i < 8; i++)
		v = (v << 8) | (from + i < len ? bytes[from + i] : 0);
	return v;
}

#endif							/* HYB_PREFIXES_H */
