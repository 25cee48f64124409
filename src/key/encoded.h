/*
 * encoded.h
 *		Columns whose strings are stored encoded, with a dictionary of the
 *		index (algo/hope/hope.h).
 *
 * The operator class's codec says so (HybCodec.encode), its options choose the
 * scheme and size of the dictionary.  An index keeps the dictionaries of all
 * its columns as one byte string, on pages of their own (store/dictionary.h).
 * Within a column the encoded key is stuffed, so it ends with a zero byte as
 * text does.  Of a long value only the first HYB_ENCODED_BYTES bytes, or a few
 * more, are encoded, since codes of rare strings are longer than the strings.
 * The rest follows as in the form of bytea columns.
 *
 * Without the option `scheme` the dictionary of a column is of the scheme that makes
 * the sample smallest in leaves and log, or none at all (choose_dictionary).
 *
 * An index begins without dictionaries if its table has too few rows to learn
 * from.  Values are then stored in the form of bytea columns, until a merge
 * encodes all of them (merge/learn.c).
 */
#ifndef HYB_KEY_ENCODED_H
#define HYB_KEY_ENCODED_H

#include "algo/hope/hope.h"
#include "key/key.h"

/* Value of the option `scheme`, beside those of HybHopeScheme: the default */
#define HYB_ENCODED_AUTO			0
#define HYB_ENCODED_DEFAULT_ENTRIES	4096

/* Operator class options */
typedef struct HybEncodedOptions
{
	int32		vl_len_;		/* varlena header (do not touch directly!) */
	int			scheme;			/* HybHopeScheme, or HYB_ENCODED_AUTO */
	int			entries;		/* at most this many intervals */
} HybEncodedOptions;

/* The dictionary of one column, with what it was learned from. */
typedef struct HybDictionary
{
	int			column;			/* from 0 on */
	bool		learned;		/* there were enough keys to learn from */
	uint64		sample_keys;
	uint64		sample_bytes;
	uint64		sample_stored;	/* bytes that those were encoded to */
	uint64		stored_size;	/* of the dictionary */
	HybHope    *hope;			/* NULL: values are stored as they are, since
								 * no dictionary would save space, or there
								 * were too few keys to learn one from */
} HybDictionary;

typedef struct HybDictionaries
{
	int			n;
	HybDictionary columns[FLEXIBLE_ARRAY_MEMBER];
} HybDictionaries;

/* Keys to learn from, of one column. */
typedef struct HybEncodedKeys
{
	uint8	   *bytes;
	uint32	   *off;
	uint32		n;
	uint32		bytes_alloc;
	uint32		off_alloc;
} HybEncodedKeys;

/* Add a value of the column (not NULL) to the keys. */
extern void hyb_encoded_add_key(HybEncodedKeys *keys, const HybColumn *col,
								Datum value);

/* Keys to learn from, and bytes of all of them, that are worth the time */
#define HYB_ENCODED_SAMPLE_KEYS	16384
#define HYB_ENCODED_SAMPLE_BYTES	(2 * 1024 * 1024)

/* Bytes of a value that are encoded, up to the end of a symbol. */
#define HYB_ENCODED_BYTES	192

/*
 * The most that a value grows by in any dictionary, if it takes this many bytes
 * without one.  A code has at most HYB_HOPE_MAX_CODE bits for a byte, and 7 of
 * them to a stored byte.  Behind it the compression of long values begins
 * anew, which costs a little.
 */
static inline uint32
hyb_encoded_growth(uint32 plain)
{
	uint32		coded = Min(plain, HYB_ENCODED_BYTES);

	return coded * (HYB_HOPE_MAX_CODE - 7) / 7 + 1 + (plain - coded) / 32;
}

/* Keys that are enough to learn from */
#define HYB_ENCODED_ENOUGH_KEYS	256

/*
 * Name of the scheme that a column has; until it has a dictionary, of the one that
 * its options ask for.
 */
extern const char *hyb_encoded_scheme(const HybColumn *col);

/* Add an entry to the counts, which are by key column. */
extern void hyb_recent_add(const HybKeyDesc *desc, const HybValue *vals,
						   HybRecent *recent);

/*
 * Learn dictionaries for all columns that need one: keys[i] are those of column i.
 * Appends the stored form to *out, which hyb_encoded_load reads.  Returns false,
 * and appends nothing, if no column has enough keys.  If some have, the others are
 * stored as they are.
 */
extern bool hyb_encoded_learn(const HybKeyDesc *desc,
							  const HybEncodedKeys *keys, HybBuf *out);

/*
 * Open stored dictionaries, in the given context; NULL if the bytes are not
 * sound.
 */
extern HybDictionaries *hyb_encoded_load(const uint8 *bytes, Size len,
										 MemoryContext context);

/* Set the columns' dictionaries; false if they do not fit. */
extern bool hyb_encoded_attach(HybKeyDesc *desc,
							   const HybDictionaries *dictionaries);

#endif							/* HYB_KEY_ENCODED_H */
