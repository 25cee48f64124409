/*
 * long_values.h
 *		Values that would not leave enough room in an entry.
 *
 * btree compresses long values of an index tuple.  Here values of a column
 * longer than `plain` bytes, which depends on the index's columns alone, are
 * stored shorter:
 *
 *		terminated bytes	what follows the first `plain` bytes is encoded in
 *							order (algo/inorder.h), and the bytes of the code
 *							as bytea's are, so that there is no 0x00.  A code
 *							is never empty: what is longer than `plain` is long
 *		counted bytes		compressed by pglz, if that makes them shorter; the
 *							bytes then begin with the raw length (4).  The flag
 *							byte says that they are packed
 *
 * Both depend on the value alone, so equal values have equal bytes still; and
 * the order of terminated bytes is that of the values.  pglz must compress a
 * value the same way on every server version that reads an index: where equal
 * keys have equal bytes, they are looked up by a hash of their bytes.
 */
#ifndef HYB_LONG_VALUES_H
#define HYB_LONG_VALUES_H

#include "key/key.h"

/* Bytes of all terminated columns together that are stored as they are */
#define HYB_PLAIN_IN_ORDER	640

/* Those of columns with a length word, and at least what btree leaves alone */
#define HYB_PLAIN_BYTES		2000
#define HYB_PLAIN_LEAST		508

/*
 * Terminated columns of an index that is not sorted by its bytes, but by the
 * server as index tuples of 8191 bytes: so long all of them may be there.
 */
#define HYB_SORTABLE_BYTES	5400

static inline bool
hyb_is_long(const HybColumn *col, uint32 len)
{
	return len > col->plain && col->plain > 0;
}

/*
 * The bytes of `out` from `start` on are a long terminated value, without
 * terminator: make them shorter.  If they cannot be made as short as an entry
 * has to be, or could not be sorted by CREATE INDEX, they end up longer than
 * that.
 */
extern void hyb_long_shorten(const HybColumn *col, HybBuf *out, uint32 start);

/* And back: palloc'd, or NULL if they are malformed. */
extern uint8 *hyb_long_restore(const HybColumn *col, const uint8 *data,
							   uint32 len, uint32 *whole);

/*
 * Append a long value, which is not compressed, with a length word, packed, and
 * say so in its flag, which is the last byte of `out`; false, and nothing
 * changes, if that would not make it shorter.
 */
extern bool hyb_long_pack(struct varlena *value, HybBuf *out);

/* And back: palloc'd, or NULL if it is malformed. */
extern struct varlena *hyb_long_unpack(const HybValue *val);

#endif							/* HYB_LONG_VALUES_H */
