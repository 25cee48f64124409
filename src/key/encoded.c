/*
 * encoded.c
 *		Codecs and dictionaries of columns whose strings are stored encoded.
 */
#include "base/compat.h"

#include <math.h>

#include "access/reloptions.h"
#include "algo/frontcode.h"
#include "catalog/pg_type.h"
#include "key/encoded.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

/* Values up to about this size are made on the stack. */
#define STACK_BYTES		1024

/* Bytes of a value that may be encoded, with the rest of the last symbol. */
#define HYB_MOST_ENCODED	(HYB_ENCODED_BYTES + HYB_HOPE_MAX_SYMBOL)

/*
 * Room for the code of that, stuffed or not, and for what is written behind it;
 * and for the bytes that such a code is decoded to.
 */
#define HYB_CODE_ROOM	(HYB_MOST_ENCODED * HYB_HOPE_MAX_CODE / 7 + 24)
#define HYB_DECODE_ROOM	(HYB_MOST_ENCODED + 8)

/* Of the entries of an index, about 1 in KEY_LOG_SHARE is in its log (merge_ratio). */
#define KEY_LOG_SHARE		20

/*
 * What a costlier scheme has to save of the size before: it is tried on the keys that
 * it was learned from, and saves up to 8 % less of others.
 */
#define LEAST_GAIN		0.05

#define DICTIONARY_MAGIC	0x45504F48	/* "HOPE" */

/* Stored form of the dictionaries: this, for each a column, and its bytes */
typedef struct StoredHeader
{
	uint32		magic;
	uint32		n;
} StoredHeader;

typedef struct StoredColumn
{
	uint32		column;
	uint32		learned;
	uint64		sample_keys;
	uint64		sample_bytes;
	uint64		sample_stored;
	uint64		size;			/* of the bytes that follow; 0: the column is
								 * stored as without a dictionary */
} StoredColumn;

/* ---- values ---- */

/*
 * The bytes that order a value.  Returns what to pfree afterwards, or NULL.
 * Blanks at the end of a bpchar do not count.
 */
static void *
plain_bytes(const HybColumn *col, Datum value, const uint8 **bytes,
			uint32 *len)
{
	struct varlena *plain = PG_DETOAST_DATUM_PACKED(value);

	*bytes = (const uint8 *) VARDATA_ANY(plain);
	*len = VARSIZE_ANY_EXHDR(plain);
	if (col->codec->blank_padded)
		*len = bpchartruelen((char *) VARDATA_ANY(plain), *len);
	return (Pointer) plain != DatumGetPointer(value) ? plain : NULL;
}

/* Append the code of a value's bytes. */
static void
encode_bytes(const HybHope *hope, const uint8 *bytes, uint32 len, HybBuf *out)
{
	uint8		code[HYB_CODE_ROOM];
	size_t		done;
	uint64		bits = hyb_hope_encode(hope, bytes, len, HYB_ENCODED_BYTES, code,
									   &done);

	Assert(done <= len && (done == len || done >= HYB_ENCODED_BYTES));
	Assert((bits + 7) / 8 <= sizeof(code));
	hyb_buf_reserve(out, (uint32) hyb_hope_stuff_bound(bits));
	out->len += (uint32) hyb_hope_stuff(code, bits, out->data + out->len);
	Assert(out->len <= out->cap);
	if (done < len)
		hyb_escape(bytes + done, len - (uint32) done, out);
}

/* The column's dictionary, or NULL: values are stored as they are. */
static inline const HybHope *
hope_of(const HybColumn *col)
{
	return col->dictionary != NULL ? col->dictionary->hope : NULL;
}

/* The form of a value: its code, or without a dictionary its bytes, escaped. */
static void
append_form(const HybHope *hope, const uint8_t *bytes, uint32 len, HybBuf *out)
{
	if (hope != NULL)
		encode_bytes(hope, bytes, len, out);
	else
		hyb_escape(bytes, len, out);
}

static void
encode_value(const HybColumn *col, Datum value, HybBuf *out)
{
	const uint8 *bytes;
	uint32		len;
	void	   *allocated = plain_bytes(col, value, &bytes, &len);

	append_form(hope_of(col), bytes, len, out);
	if (allocated)
		pfree(allocated);
}

void
hyb_recent_add(const HybKeyDesc *desc, const HybValue *vals, HybRecent *recent)
{
	for (int i = 0; i < desc->nkeys; i++)
	{
		Datum		value;

		if (!hyb_column_is_encoded(&desc->cols[i]) || vals[i].isnull)
			continue;
		value = hyb_value_decode(&desc->cols[i], &vals[i]);
		recent[i].keys++;
		recent[i].plain += desc->cols[i].codec->blank_padded ?
			bpchartruelen(VARDATA_ANY(DatumGetPointer(value)),
						  VARSIZE_ANY_EXHDR(DatumGetPointer(value))) :
			VARSIZE_ANY_EXHDR(DatumGetPointer(value));
		recent[i].stored += vals[i].len;
		pfree(DatumGetPointer(value));
	}
}

const char *
hyb_encoded_scheme(const HybColumn *col)
{
	const HybEncodedOptions *options = (const HybEncodedOptions *)
		DatumGetPointer(col->options);

	if (col->dictionary != NULL)
		return col->dictionary->hope == NULL ? "none" :
			hyb_hope_scheme_name(hyb_hope_scheme(col->dictionary->hope));
	return options == NULL || options->scheme == HYB_ENCODED_AUTO ? "auto" :
		hyb_hope_scheme_name(options->scheme);
}

static Datum
decode_value(const HybColumn *col, const uint8 *data, uint32 len)
{
	char		plain_space[STACK_BYTES];
	char	   *plain;
	uint32		plainlen;
	uint32		blanks = 0;
	struct varlena *result;

	if (hope_of(col) != NULL)
	{
		uint8		code[HYB_CODE_ROOM + 16];
		uint32		codelen;
		uint32		rest;
		uint64		bits;

		/* the code is no longer than that; a rest is taken for code at first */
		codelen = (uint32) hyb_hope_unstuff(data, Min(len, HYB_CODE_ROOM), code);
		plain = len + HYB_DECODE_ROOM <= sizeof(plain_space) ? plain_space :
			palloc(len + HYB_DECODE_ROOM);
		plainlen = (uint32) hyb_hope_decode(hope_of(col), code, codelen,
											HYB_ENCODED_BYTES, (uint8 *) plain,
											&bits);
		rest = (uint32) hyb_hope_stuffed_length(data, len, bits);
		if (plainlen >= HYB_ENCODED_BYTES && rest < len)
			plainlen += hyb_unescape(data + rest, len - rest,
									 (uint8 *) plain + plainlen);
	}
	else
	{
		plain = len <= sizeof(plain_space) ? plain_space : palloc(len);
		plainlen = hyb_unescape(data, len, (uint8 *) plain);
	}

	/* A char(n) is as long as its column says. */
	if (col->codec->blank_padded)
	{
		int			chars = pg_mbstrlen_with_len(plain, plainlen);
		int			width = col->typmod - VARHDRSZ;

		if (chars < width)
			blanks = width - chars;
	}
	result = palloc((Size) plainlen + blanks + VARHDRSZ);
	SET_VARSIZE(result, plainlen + blanks + VARHDRSZ);
	memcpy(VARDATA(result), plain, plainlen);
	memset(VARDATA(result) + plainlen, ' ', blanks);
	if (plain != plain_space)
		pfree(plain);
	return PointerGetDatum(result);
}

/* ---- codecs ---- */

#define ENCODED_CODEC(name, ...) \
	HYB_TERMINATED_CODEC(name ", encoded", .encode = encode_value, \
						 .decode = decode_value, __VA_ARGS__)

const HybCodec hyb_codec_text_hope = ENCODED_CODEC("text",.cast = hyb_text_cast);
const HybCodec hyb_codec_bytea_hope = ENCODED_CODEC("bytea",);
const HybCodec hyb_codec_bpchar_hope = ENCODED_CODEC("bpchar",.blank_padded = true);

/* ---- options ---- */

static relopt_enum_elt_def scheme_values[HYB_HOPE_NSCHEMES + 2];

/*
 * Support function 5 of the operator classes.
 */
PG_FUNCTION_INFO_V1(hybrid_hope_options);
Datum
hybrid_hope_options(PG_FUNCTION_ARGS)
{
	local_relopts *relopts = (local_relopts *) PG_GETARG_POINTER(0);

	scheme_values[0].string_val = "auto";
	scheme_values[0].symbol_val = HYB_ENCODED_AUTO;
	for (int i = 1; i <= HYB_HOPE_NSCHEMES; i++)
	{
		scheme_values[i].string_val = hyb_hope_scheme_name(i);
		scheme_values[i].symbol_val = i;
	}
	init_local_reloptions(relopts, sizeof(HybEncodedOptions));
	add_local_enum_reloption(relopts, "scheme",
							 "How strings are cut up and encoded",
							 scheme_values, HYB_ENCODED_AUTO,
							 "Valid values are \"auto\", \"single-char\", \"double-char\", \"3-grams\", \"4-grams\", \"alm\", and \"alm-improved\".",
							 offsetof(HybEncodedOptions, scheme));
	add_local_int_reloption(relopts, "dictionary",
							"Most entries of the dictionary",
							HYB_ENCODED_DEFAULT_ENTRIES, HYB_HOPE_MIN_ENTRIES,
							HYB_HOPE_MAX_ENTRIES,
							offsetof(HybEncodedOptions, entries));
	PG_RETURN_VOID();
}

/* ---- dictionaries ---- */

/* Learning takes a while, and allocates now and then. */
static void *
hope_alloc(void *context, size_t size)
{
	CHECK_FOR_INTERRUPTS();
	return MemoryContextAllocHuge(context, size);
}

static void
hope_release(void *context, void *ptr)
{
	if (ptr != NULL)
		pfree(ptr);
}

static HybHopeMemory
hope_memory(MemoryContext context)
{
	HybHopeMemory memory = {hope_alloc, hope_release, context};

	return memory;
}

static void
add_key_bytes(HybEncodedKeys *keys, const uint8 *bytes, uint32 len)
{
	uint32		used = keys->n > 0 ? keys->off[keys->n] : 0;

	if (keys->n + 2 > keys->off_alloc)
	{
		keys->off_alloc = Max(1024, keys->off_alloc * 2);
		keys->off = hyb_grow(CurrentMemoryContext, keys->off, keys->off_alloc,
							 sizeof(uint32));
	}
	if (len > keys->bytes_alloc - used)
	{
		keys->bytes_alloc = Max(keys->bytes_alloc * 2, used + len + 8192);
		keys->bytes = hyb_grow(CurrentMemoryContext, keys->bytes,
							   keys->bytes_alloc, 1);
	}
	Assert(keys->n + 1 < keys->off_alloc && used + len <= keys->bytes_alloc);
	keys->off[keys->n] = used;
	if (len > 0)
		memcpy(keys->bytes + used, bytes, len);
	keys->n++;
	keys->off[keys->n] = used + len;
}

void
hyb_encoded_add_key(HybEncodedKeys *keys, const HybColumn *col, Datum value)
{
	const uint8 *bytes;
	uint32		len;
	void	   *allocated = plain_bytes(col, value, &bytes, &len);

	add_key_bytes(keys, bytes, Min(len, HYB_MAX_ENTRY_SIZE));
	if (allocated)
		pfree(allocated);
}

/* Sorted keys: key i is keys->bytes from keys->off[order[i]] on. */
static int
compare_sample_keys(const void *a, const void *b, void *arg)
{
	const HybEncodedKeys *keys = arg;
	uint32		i = *(const uint32 *) a;
	uint32		j = *(const uint32 *) b;
	uint32		ilen = keys->off[i + 1] - keys->off[i];
	uint32		jlen = keys->off[j + 1] - keys->off[j];
	int			c = memcmp(keys->bytes + keys->off[i], keys->bytes + keys->off[j],
						   Min(ilen, jlen));

	return c != 0 ? c : (ilen > jlen) - (ilen < jlen);
}

/*
 * Estimates the bytes that the keys take in an index with this dictionary, or with
 * none.  Leaves front-code them and Huffman-code the rests, each of which ends at a
 * byte, if that is smaller.  The log keeps whole keys of 1 in KEY_LOG_SHARE entries.
 */
static double
estimate_size(const HybHope *hope, const HybEncodedKeys *keys, const uint32 *order)
{
	HybBuf		forms[2] = {{0}, {0}};
	uint64		counts[256] = {0};
	uint64		rests = 0;
	uint64		whole = 0;
	double		bits = 0;

	/* the first keys may be empty */
	hyb_buf_reserve(&forms[0], 1);
	hyb_buf_reserve(&forms[1], 1);
	for (uint32 i = 0; i < keys->n; i++)
	{
		HybBuf	   *form = &forms[i % 2];
		HybBuf	   *before = &forms[1 - i % 2];
		uint32		off = keys->off[order[i]];
		uint32		shared = 0;

		form->len = 0;
		append_form(hope, keys->bytes + off, keys->off[order[i] + 1] - off, form);
		if (i % HYB_FRONT_INTERVAL != 0)
			shared = hyb_common_prefix(form->data, before->data,
									   Min(form->len, before->len));
		for (uint32 b = shared; b < form->len; b++)
			counts[form->data[b]]++;
		rests += form->len - shared;
		whole += form->len;
	}
	for (int b = 0; b < 256; b++)
		if (counts[b] > 0)
			bits += counts[b] * log2((double) rests / counts[b]);
	return Min((double) rests, bits / 8 + 0.5 * keys->n) + (double) whole / KEY_LOG_SHARE;
}

/*
 * The dictionary that makes the keys smallest, or NULL if none saves anything.
 * Schemes are tried in the order of what it costs to encode with them, and each has
 * to save LEAST_GAIN more than those before it.  The other schemes are larger than
 * ALM-Improved on all key sets that we know (docs/hope.md).
 */
static HybHope *
choose_dictionary(uint32 entries, const HybEncodedKeys *keys, const HybHopeMemory *memory)
{
	static const HybHopeScheme schemes[] = {HYB_HOPE_DOUBLE_CHAR, HYB_HOPE_ALM_IMPROVED};
	HybHopeSample sample = {keys->bytes, keys->off, keys->n};
	uint32	   *order = palloc(keys->n * sizeof(uint32));
	HybHope    *best = NULL;
	double		best_size;

	for (uint32 i = 0; i < keys->n; i++)
		order[i] = i;
	qsort_arg(order, keys->n, sizeof(uint32), compare_sample_keys,
			  unconstify(HybEncodedKeys *, keys));
	best_size = estimate_size(NULL, keys, order);
	for (int i = 0; i < lengthof(schemes); i++)
	{
		HybHope    *hope = hyb_hope_build(schemes[i], entries, &sample, memory);
		double		size = estimate_size(hope, keys, order);

		elog(DEBUG1, "HOPE scheme %s: %.0f bytes, best before %.0f",
			 hyb_hope_scheme_name(schemes[i]), size, best_size);
		if (size > best_size * (1 - LEAST_GAIN))
		{
			hyb_hope_free(hope);
			continue;
		}
		if (best != NULL)
			hyb_hope_free(best);
		best = hope;
		best_size = size;
	}
	return best;
}

/* Append one column's dictionary to *out: none, if the keys are too few to learn from. */
static void
learn_column(const HybColumn *col, int column, const HybEncodedKeys *keys, HybBuf *out)
{
	const HybEncodedOptions *options = (const HybEncodedOptions *)
		DatumGetPointer(col->options);
	uint32		entries = options ? options->entries : HYB_ENCODED_DEFAULT_ENTRIES;
	HybHopeMemory memory = hope_memory(CurrentMemoryContext);
	HybHopeSample sample = {keys->bytes, keys->off, keys->n};
	StoredColumn header = {0};
	HybHope    *hope = NULL;
	HybBuf		form = {0};

	header.column = column;
	header.learned = keys->n >= HYB_ENCODED_ENOUGH_KEYS;
	if (header.learned && (options == NULL || options->scheme == HYB_ENCODED_AUTO))
		hope = choose_dictionary(entries, keys, &memory);
	else if (header.learned)
		hope = hyb_hope_build(options->scheme, entries, &sample, &memory);
	for (uint32 i = 0; i < keys->n; i++)
	{
		form.len = 0;
		append_form(hope, keys->bytes + keys->off[i],
					keys->off[i + 1] - keys->off[i], &form);
		header.sample_stored += form.len;
	}
	header.sample_keys = keys->n;
	header.sample_bytes = keys->n > 0 ? keys->off[keys->n] : 0;
	header.size = hope == NULL ? 0 : hyb_hope_store(hope, NULL);
	hyb_buf_append(out, &header, sizeof(header));
	if (hope == NULL)
		return;
	hyb_buf_reserve(out, header.size);
	hyb_hope_store(hope, out->data + out->len);
	out->len += header.size;
}

bool
hyb_encoded_learn(const HybKeyDesc *desc, const HybEncodedKeys *keys,
				  HybBuf *out)
{
	StoredHeader header = {DICTIONARY_MAGIC, 0};
	bool		enough = false;

	for (int i = 0; i < desc->nkeys; i++)
	{
		header.n += hyb_column_is_encoded(&desc->cols[i]) ? 1 : 0;
		enough |= keys[i].n >= HYB_ENCODED_ENOUGH_KEYS;
	}
	if (!enough)
		return false;
	hyb_buf_append(out, &header, sizeof(header));
	for (int i = 0; i < desc->nkeys; i++)
	{
		MemoryContext context;
		MemoryContext old;

		if (!hyb_column_is_encoded(&desc->cols[i]))
			continue;
		context = AllocSetContextCreate(CurrentMemoryContext,
										"hybrid dictionary training",
										ALLOCSET_DEFAULT_SIZES);
		hyb_buf_reserve(out, 1);	/* in the caller's context */
		old = MemoryContextSwitchTo(context);
		learn_column(&desc->cols[i], i, &keys[i], out);
		MemoryContextSwitchTo(old);
		MemoryContextDelete(context);
	}
	return true;
}

HybDictionaries *
hyb_encoded_load(const uint8 *bytes, Size len, MemoryContext context)
{
	HybHopeMemory memory = hope_memory(context);
	StoredHeader header;
	const uint8 *p = bytes;
	const uint8 *end = bytes + len;
	HybDictionaries *all;

	if (len < sizeof(header))
		return NULL;
	memcpy(&header, p, sizeof(header));
	p += sizeof(header);
	if (header.magic != DICTIONARY_MAGIC || header.n > INDEX_MAX_KEYS)
		return NULL;
	all = MemoryContextAllocZero(context, offsetof(HybDictionaries, columns) +
								 header.n * sizeof(HybDictionary));
	for (uint32 i = 0; i < header.n; i++)
	{
		StoredColumn column;
		HybDictionary *dictionary = &all->columns[i];

		if ((Size) (end - p) < sizeof(column))
			return NULL;
		memcpy(&column, p, sizeof(column));
		p += sizeof(column);
		/* in order, so that hyb_encoded_attach can count them */
		if (column.column >= INDEX_MAX_KEYS ||
			(i > 0 && (int) column.column <= all->columns[i - 1].column) ||
			column.size > (uint64) (end - p))
			return NULL;
		Assert(i == all->n);
		dictionary->column = column.column;
		dictionary->learned = column.learned != 0;
		dictionary->sample_keys = column.sample_keys;
		dictionary->sample_bytes = column.sample_bytes;
		dictionary->sample_stored = column.sample_stored;
		dictionary->stored_size = column.size;
		if (column.size > 0)
		{
			dictionary->hope = hyb_hope_load(p, column.size, &memory);
			if (dictionary->hope == NULL)
				return NULL;
		}
		p += column.size;
		all->n++;
	}
	return p == end ? all : NULL;
}

bool
hyb_encoded_attach(HybKeyDesc *desc, const HybDictionaries *dictionaries)
{
	int			missing = 0;

	for (int i = 0; i < desc->nkeys; i++)
		missing += hyb_column_is_encoded(&desc->cols[i]) ? 1 : 0;
	for (int i = 0; i < dictionaries->n; i++)
	{
		const HybDictionary *dictionary = &dictionaries->columns[i];

		if (dictionary->column >= desc->nkeys ||
			!hyb_column_is_encoded(&desc->cols[dictionary->column]))
			return false;
		desc->cols[dictionary->column].dictionary = dictionary;
		missing--;
	}
	return missing == 0;
}
