/*
 * prefixes.h
 *		The layout of leaves that hold the beginnings of keys (docs/trie.md).
 *
 * A row is a prefix: a string of bits, counted from the highest bit of a key's
 * first byte.  Prefixes ascend and none is the beginning of another one.
 *
 * Behind the common header (static/leaf_layout.h), nothing aligned, integers
 * little-endian:
 *
 *		variable bytes	n
 *		n bytes			that all keys of the leaf begin with
 *		uint8			depth: bits of prefixes beyond these, 1 to 64
 *		the content of a columnar leaf (static/columnar.h) with two integer
 *				columns: the prefix beyond the common bytes, as a number of
 *				`depth` bits; and how many of these bits, the lowest ones, the
 *				row lacks: they are 0
 *
 * Private to prefixes*.c but for the functions that are called for rows whose keys
 * are not known.
 */
#ifndef HYB_TRIE_H
#define HYB_TRIE_H

#include "algo/bits.h"
#include "static/leaf_layout.h"

/* Bits of prefixes beyond a leaf's common bytes. */
#define HYB_TRIE_MAX_DEPTH	64

/* Columns of what is stored. */
#define HYB_TRIE_PREFIX		0
#define HYB_TRIE_LACKS		1

/* The description of the two columns. */
extern const HybKeyDesc *hyb_trie_columns(void);

/* prefixes.c */

/*
 * The prefix of a row replaces what the buffer holds, zero bits up to the next
 * whole byte behind it.  Returns its bits.
 */
extern uint32 hyb_trie_prefix(HybLeaf *leaf, int row, HybBuf *prefix);

/* Is a prefix of so many bits a whole key, so that no other begins with it? */
extern bool hyb_trie_is_whole(const HybKeyDesc *desc, const uint8 *prefix,
							  uint32 bits);

/* prefixes_build.c */
extern HybLeafBuilder *hyb_trie_create(const HybIndex *ix);
extern void hyb_trie_free(HybLeafBuilder *base);
extern void hyb_trie_add(HybLeafBuilder *base, const HybValue *vals,
						 const ItemPointerData *tid);
extern void hyb_trie_add_from(HybLeafBuilder *base, HybLeaf *leaf, int row,
							  const ItemPointerData *tid);
extern void hyb_trie_plan(HybLeafBuilder *base, int slot);
extern uint8 *hyb_trie_write(HybLeafBuilder *base, int slot, uint8 *out);
extern void hyb_trie_separate(HybLeafBuilder *base, int nitems, HybBuf *key,
							  HybPos *separator);
extern void hyb_trie_drop(HybLeafBuilder *base, int nitems);

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

#endif							/* HYB_TRIE_H */
