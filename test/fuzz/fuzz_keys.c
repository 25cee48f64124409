/*
 * fuzz_keys.c
 *		Fuzz target: the encodings of all codecs, in rows of up to three key
 *		columns; entries and dictionary pages of any bytes.
 *
 * The first byte says what the rest is, then come the columns:
 *
 *	ROWS	Values.  They must come back, and the order of entries, positions
 *			and separators must be that of the values, which is told here from
 *			their types alone.  No entry begins another one.
 *	ENTRY	An entry; it is refused, or split and put together again, without a
 *			look beyond it.
 *	PAGE	A dictionary page, given a right checksum.  If its dictionaries can be
 *			loaded, values that they encode must come back.
 *	BYTES	What dictionary pages hold.
 */
#include "server.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "key/codec.h"
#include "key/encoded.h"
#include "key/key.h"
#include "port/pg_crc32c.h"
#include "store/dictionary.h"
#include "utils/uuid.h"

#define ROWS		0
#define ENTRY		1
#define PAGE		2
#define BYTES		3
#define NMODES		4

#define MAXCOLS		4			/* three keys and an included one */
#define MAXROWS		16
#define MAXBYTES	60
#define BPCHAR_LEN	30

typedef enum Kind
{
	KIND_BOOL, KIND_CHAR, KIND_OID, KIND_INT2, KIND_INT4, KIND_INT8,
	KIND_UNSIGNED8, KIND_TID, KIND_MAC, KIND_MAC8, KIND_FLOAT4, KIND_FLOAT8,
	KIND_TEXT, KIND_NAME, KIND_BYTEA, KIND_UUID, KIND_BPCHAR
} Kind;

static const struct
{
	Oid			typid;			/* stored as an integer, or */
	Kind		kind;
	const HybCodec *codec;
}			types[] = {
	{BOOLOID, KIND_BOOL}, {CHAROID, KIND_CHAR}, {OIDOID, KIND_OID},
	{INT2OID, KIND_INT2}, {INT4OID, KIND_INT4}, {INT8OID, KIND_INT8},
	{MONEYOID, KIND_INT8}, {PG_LSNOID, KIND_UNSIGNED8},
	{XID8OID, KIND_UNSIGNED8}, {TIDOID, KIND_TID}, {MACADDROID, KIND_MAC},
	{MACADDR8OID, KIND_MAC8}, {FLOAT4OID, KIND_FLOAT4}, {FLOAT8OID, KIND_FLOAT8},
	{DATEOID, KIND_INT4}, {TIMEOID, KIND_INT8}, {TIMESTAMPOID, KIND_INT8},
	{TIMESTAMPTZOID, KIND_INT8}, {0, KIND_TEXT, &hyb_codec_text},
	{0, KIND_NAME, &hyb_codec_name}, {0, KIND_BYTEA, &hyb_codec_bytea},
	{0, KIND_UUID, &hyb_codec_uuid}, {0, KIND_TEXT, &hyb_codec_text_hope},
	{0, KIND_BYTEA, &hyb_codec_bytea_hope}, {0, KIND_BPCHAR, &hyb_codec_bpchar_hope}
};

/* What a value is, apart from any encoding. */
typedef struct Value
{
	bool		isnull;
	int64		number;			/* integers of up to 8 bytes */
	double		real;
	uint8		bytes[MAXBYTES + 8];
	uint32		len;
	Datum		datum;
} Value;

typedef struct Row
{
	Value		vals[MAXCOLS];
	HybBuf		entry;
	uint32		keylen;
	HybValue	split[MAXCOLS];
	ItemPointerData tid;
} Row;

typedef struct Columns
{
	HybKeyDesc *desc;
	Kind		kinds[MAXCOLS];
} Columns;

typedef struct Input
{
	const uint8 *p;
	const uint8 *end;
} Input;

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern size_t hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max);

static void
require(bool condition)
{
	if (!condition)
		abort();
}

static int
sign(int c)
{
	return (c > 0) - (c < 0);
}

static uint8
next(Input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

/* ---- columns ---- */

static void *
keep_alloc(void *context, size_t size)
{
	return malloc(size);
}

static void
keep_release(void *context, void *pointer)
{
	free(pointer);
}

/* Of columns that have one. */
static const HybDictionary *
dictionary(void)
{
	static const HybHopeMemory memory = {keep_alloc, keep_release, NULL};
	static const uint32 off[] = {0, 4, 10, 16, 19};
	static const HybHopeSample sample = {(const uint8 *) "the quick brown fox", off, 4};
	static HybDictionary learned;

	if (learned.hope == NULL)
		learned.hope = hyb_hope_build(HYB_HOPE_3_GRAMS, HYB_HOPE_MIN_ENTRIES,
									  &sample, &memory);
	return &learned;
}

static void
set_column(Columns *cols, int i, Input *in)
{
	HybColumn  *col = &cols->desc->cols[i];
	int			type = next(in) % lengthof(types);
	uint8		flags = next(in);

	col->codec = types[type].codec != NULL ? types[type].codec :
		hyb_int_codec(types[type].typid);
	cols->kinds[i] = types[type].kind;
	col->store = col->codec->store;
	col->width = col->codec->width;
	col->terminated = col->codec->terminated;
	col->compare = col->codec->compare;
	col->typmod = VARHDRSZ + BPCHAR_LEN;
	col->desc = flags & 1;
	col->nulls_first = flags & 2;
	if (col->codec->encode != NULL && (flags & 4))
		col->dictionary = dictionary();
	if (col->terminated && (flags & 8))
		col->plain = 1 + (flags >> 4);
	if (col->compare != HYB_COMPARE_MEM)
		cols->desc->all_mem = cols->desc->exact = false;
}

/* Key columns as the input says, and perhaps one that is included. */
static void
set_columns(Columns *cols, Input *in)
{
	uint8		how = next(in);
	HybKeyDesc *desc = palloc0(offsetof(HybKeyDesc, cols) + MAXCOLS * sizeof(HybColumn));
	HybColumn  *included;

	cols->desc = desc;
	desc->nkeys = 1 + how % 3;
	desc->natts = desc->nkeys + (how & 4 ? 1 : 0);
	desc->all_mem = desc->exact = true;
	for (int i = 0; i < desc->nkeys; i++)
		set_column(cols, i, in);
	if (desc->natts == desc->nkeys)
		return;
	included = &desc->cols[desc->nkeys];
	included->compare = HYB_COMPARE_PROC;
	included->attbyval = how & 8;
	included->attlen = how & 8 ? 4 : -1;
	included->store = how & 8 ? HYB_STORE_INT : HYB_STORE_BYTES;
	included->width = how & 8 ? 4 : 0;
	included->plain = how & 16 ? MAXBYTES / 2 : 0;
	cols->kinds[desc->nkeys] = how & 8 ? KIND_INT4 : KIND_BYTEA;
}

/* ---- values ---- */

static Datum
make_varlena(const uint8 *bytes, uint32 len)
{
	struct varlena *v = palloc(len + VARHDRSZ);

	SET_VARSIZE(v, len + VARHDRSZ);
	memcpy(VARDATA(v), bytes, len);
	return PointerGetDatum(v);
}

static void
make_value(Kind kind, Input *in, Value *val)
{
	uint8		head = next(in);
	uint64		u = 0;
	int			width = head & 1 ? 8 : 1 + (head >> 1) % 3;
	float		real4;

	memset(val, 0, sizeof(*val));
	if (head >= 240)
	{
		val->isnull = true;
		return;
	}
	if (kind >= KIND_TEXT)
	{
		uint32		max = kind == KIND_UUID ? 16 : kind == KIND_BPCHAR ? BPCHAR_LEN : MAXBYTES;

		val->len = kind == KIND_UUID ? 16 : Min(head, max);
		for (uint32 i = 0; i < val->len; i++)
		{
			val->bytes[i] = next(in);
			/* text has no zero bytes */
			if (val->bytes[i] == 0 && kind != KIND_BYTEA && kind != KIND_UUID)
				val->bytes[i] = 1;
		}
		if (kind == KIND_BPCHAR)
		{
			uint8		padded[BPCHAR_LEN];

			memset(padded, ' ', BPCHAR_LEN);
			memcpy(padded, val->bytes, val->len);
			val->datum = make_varlena(padded, BPCHAR_LEN);
			while (val->len > 0 && val->bytes[val->len - 1] == ' ')
				val->len--;
		}
		else if (kind == KIND_NAME)
			val->datum = PointerGetDatum(memcpy(palloc0(NAMEDATALEN), val->bytes, val->len));
		else if (kind == KIND_UUID)
			val->datum = PointerGetDatum(memcpy(palloc(16), val->bytes, 16));
		else
			val->datum = make_varlena(val->bytes, val->len);
		return;
	}

	for (int i = 0; i < width; i++)
		u = u << 8 | next(in);
	if (width < 8 && (head & 16))
		u = -u;
	switch (kind)
	{
		case KIND_BOOL:
			val->number = u & 1;
			val->datum = BoolGetDatum(u & 1);
			break;
		case KIND_CHAR:
			val->number = (uint8) u;
			val->datum = CharGetDatum((char) u);
			break;
		case KIND_OID:
			val->number = (uint32) u;
			val->datum = ObjectIdGetDatum((Oid) u);
			break;
		case KIND_INT2:
			val->number = (int16) u;
			val->datum = Int16GetDatum((int16) u);
			break;
		case KIND_INT4:
			val->number = (int32) u;
			val->datum = Int32GetDatum((int32) u);
			break;
		case KIND_INT8:
		case KIND_UNSIGNED8:
			val->number = (int64) u;
			val->datum = Int64GetDatum((int64) u);
			break;
		case KIND_TID:
			{
				ItemPointer tid = palloc(sizeof(ItemPointerData));

				ItemPointerSet(tid, (BlockNumber) (u >> 16), (OffsetNumber) u);
				val->number = (int64) (u & UINT64CONST(0xFFFFFFFFFFFF));
				val->datum = PointerGetDatum(tid);
				break;
			}
		case KIND_MAC:
		case KIND_MAC8:
			val->len = kind == KIND_MAC ? 6 : 8;
			for (uint32 i = 0; i < val->len; i++)
				val->bytes[i] = (uint8) (u >> (8 * (val->len - 1 - i)));
			val->datum = PointerGetDatum(memcpy(palloc(val->len), val->bytes, val->len));
			break;
		case KIND_FLOAT4:
			memcpy(&real4, &u, sizeof(real4));
			val->real = real4;
			val->datum = Float4GetDatum(real4);
			break;
		default:
			memcpy(&val->real, &u, sizeof(u));
			val->datum = Float8GetDatum(val->real);
			break;
	}
}

/* Is this Datum the value, to the bit? */
static bool
is_value(Kind kind, const Value *val, Datum datum)
{
	const char *ptr = DatumGetPointer(datum);

	switch (kind)
	{
		case KIND_BOOL:
			return DatumGetBool(datum) == val->number;
		case KIND_CHAR:
			return (uint8) DatumGetChar(datum) == val->number;
		case KIND_OID:
			return DatumGetObjectId(datum) == val->number;
		case KIND_INT2:
			return DatumGetInt16(datum) == val->number;
		case KIND_INT4:
			return DatumGetInt32(datum) == val->number;
		case KIND_INT8:
		case KIND_UNSIGNED8:
			return DatumGetInt64(datum) == val->number;
		case KIND_FLOAT4:
			return isnan(val->real) ? isnan(DatumGetFloat4(datum)) :
				DatumGetFloat4(datum) == val->real &&
				!signbit(DatumGetFloat4(datum)) == !signbit(val->real);
		case KIND_FLOAT8:
			return isnan(val->real) ? isnan(DatumGetFloat8(datum)) :
				DatumGetFloat8(datum) == val->real &&
				!signbit(DatumGetFloat8(datum)) == !signbit(val->real);
		case KIND_TID:
			return memcmp(ptr, DatumGetPointer(val->datum), sizeof(ItemPointerData)) == 0;
		case KIND_MAC:
		case KIND_MAC8:
		case KIND_UUID:
			return memcmp(ptr, val->bytes, val->len) == 0;
		case KIND_NAME:
			return memcmp(ptr, DatumGetPointer(val->datum), NAMEDATALEN) == 0;
		default:
			return VARSIZE(ptr) == VARSIZE(DatumGetPointer(val->datum)) &&
				memcmp(ptr, DatumGetPointer(val->datum), VARSIZE(ptr)) == 0;
	}
}

/* ---- order, from the values ---- */

static int
order_values(const HybColumn *col, Kind kind, const Value *a, const Value *b)
{
	int			c;

	if (a->isnull || b->isnull)
		return a->isnull && b->isnull ? 0 : a->isnull == col->nulls_first ? -1 : 1;
	if (kind == KIND_FLOAT4 || kind == KIND_FLOAT8)
		c = isnan(a->real) || isnan(b->real) ? !!isnan(a->real) - !!isnan(b->real) :
			(a->real > b->real) - (a->real < b->real);
	else if (kind == KIND_UNSIGNED8)
		c = ((uint64) a->number > (uint64) b->number) -
			((uint64) a->number < (uint64) b->number);
	else if (kind < KIND_MAC)
		c = (a->number > b->number) - (a->number < b->number);
	else
	{
		c = memcmp(a->bytes, b->bytes, Min(a->len, b->len));
		c = c != 0 ? sign(c) : (a->len > b->len) - (a->len < b->len);
	}
	return col->desc ? -c : c;
}

static int
order_rows(const Columns *cols, int ncols, const Row *a, const Row *b)
{
	int			c = 0;

	for (int i = 0; i < ncols && c == 0; i++)
		c = order_values(&cols->desc->cols[i], cols->kinds[i], &a->vals[i], &b->vals[i]);
	return c;
}

/* ---- rows ---- */

/* A copy of len bytes only, so that reads beyond them are noticed. */
static uint8 *
piece(const uint8 *bytes, Size len)
{
	uint8	   *copy = malloc(len > 0 ? len : 1);

	memcpy(copy, bytes, len);
	return copy;
}

static void
encode_row(const Columns *cols, Input *in, Row *row)
{
	const HybKeyDesc *desc = cols->desc;
	Datum		datums[MAXCOLS];
	bool		isnull[MAXCOLS];
	HybBuf		joined = {0};

	memset(row, 0, sizeof(*row));
	for (int i = 0; i < desc->natts; i++)
	{
		make_value(cols->kinds[i], in, &row->vals[i]);
		datums[i] = row->vals[i].datum;
		isnull[i] = row->vals[i].isnull;
	}
	ItemPointerSet(&row->tid, next(in) % 3, 1 + next(in) % 2);
	hyb_key_encode(desc, datums, isnull, &row->entry, &row->keylen);
	require(hyb_key_length(desc, row->entry.data, row->entry.len) == row->keylen);
	require(hyb_key_split(desc, row->entry.data, row->entry.len, desc->natts,
						  row->split) == row->entry.len);
	hyb_key_join(desc, row->split, desc->natts, &joined);
	require(joined.len == row->entry.len &&
			memcmp(joined.data, row->entry.data, joined.len) == 0);
	for (int i = 0; i < desc->natts; i++)
	{
		require(row->split[i].isnull == isnull[i]);
		require(isnull[i] || is_value(cols->kinds[i], &row->vals[i],
									  hyb_value_decode(&desc->cols[i], &row->split[i])));
	}
	for (uint32 len = 0; len < row->entry.len; len += 1 + len / 20)
	{
		uint8	   *copy = piece(row->entry.data, len);
		HybValue	vals[MAXCOLS];

		require(hyb_key_split(desc, copy, len, desc->natts, vals) == 0);
		require(len >= row->keylen || hyb_key_length(desc, copy, len) == 0);
		free(copy);
	}
}

/* A row against the position that the first columns of another are. */
static void
check_position(const Columns *cols, const Row *row, const Row *at, int ncols, int tie)
{
	const HybKeyDesc *desc = cols->desc;
	HybPos		pos = {at->entry.data, 0, (uint8) ncols, (int8) tie, at->tid};
	HybValue	vals[MAXCOLS];
	int			c = order_rows(cols, ncols, row, at);

	pos.len = (uint16) hyb_key_split(desc, at->entry.data, at->keylen, ncols, vals);
	if (c == 0)
		c = tie == HYB_AT ? ItemPointerCompare((ItemPointer) &row->tid, &pos.tid) : -tie;
	require(sign(hyb_pos_compare_key(desc, row->entry.data, row->keylen, &row->tid,
									 &pos)) == sign(c));
}

/* A position of raw bytes: the two ways to compare agree with memcmp. */
static void
check_raw(const Columns *cols, const Row *row, const Row *at, uint32 len, int tie)
{
	HybPos		pos = {at->entry.data, (uint16) len, 0, (int8) tie, at->tid};
	int			c = memcmp(row->entry.data, at->entry.data, Min(row->keylen, len));

	c = c != 0 ? c : row->keylen < len ? -1 : -tie;
	require(sign(hyb_pos_compare_key(cols->desc, row->entry.data, row->keylen,
									 &row->tid, &pos)) == sign(c));
}

static void
check_separator(const Columns *cols, const Row *left, const Row *right,
				const Row *rows, int nrows)
{
	const HybKeyDesc *desc = cols->desc;
	HybPos		sep;
	HybPos		before = hyb_pos_at(desc, left->entry.data, left->keylen, left->tid);
	HybPos		other = hyb_pos_at(desc, right->entry.data, right->keylen, right->tid);
	int			c = order_rows(cols, desc->nkeys, left, right);
	bool		ascend = c != 0 ? c < 0 :
		ItemPointerCompare((ItemPointer) &left->tid, &other.tid) < 0;

	require(hyb_separator(desc, &before, &other, &sep) == ascend);
	if (!ascend)
		return;
	require(hyb_pos_compare(desc, &sep, &other) <= 0);
	require(hyb_pos_compare(desc, &other, &sep) >= 0);
	for (int i = 0; i < nrows; i++)
	{
		const Row  *row = &rows[i];
		int			with_left = order_rows(cols, desc->nkeys, row, left);
		int			with_right = order_rows(cols, desc->nkeys, row, right);

		c = hyb_pos_compare_key(desc, row->entry.data, row->keylen, &row->tid, &sep);
		if (with_left == 0)
			with_left = ItemPointerCompare((ItemPointer) &row->tid, (ItemPointer) &left->tid);
		if (with_right == 0)
			with_right = ItemPointerCompare((ItemPointer) &row->tid, &other.tid);
		require(with_left > 0 || c < 0);
		require(with_right < 0 || c >= 0);
	}
}

static void
check_rows(const Columns *cols, Input *in)
{
	const HybKeyDesc *desc = cols->desc;
	Row		   *rows = palloc(MAXROWS * sizeof(Row));
	int			n = 0;

	while (n < MAXROWS && in->p < in->end)
		encode_row(cols, in, &rows[n++]);
	for (int i = 0; i < n; i++)
		for (int j = 0; j < n; j++)
		{
			const Row  *a = &rows[i];
			const Row  *b = &rows[j];

			require(sign(hyb_key_compare(desc, a->entry.data, a->keylen,
										 b->entry.data, b->keylen)) ==
					order_rows(cols, desc->nkeys, a, b));
			for (int k = 1; k <= desc->nkeys; k++)
			{
				check_position(cols, a, b, k, HYB_BEFORE);
				check_position(cols, a, b, k, HYB_AFTER);
			}
			check_position(cols, a, b, desc->nkeys, HYB_AT);
			if (desc->all_mem)
			{
				check_raw(cols, a, b, 1 + (i * 7) % b->keylen, HYB_BEFORE);
				check_raw(cols, a, b, 1 + (i * 5) % b->keylen, HYB_AFTER);
			}
			check_separator(cols, a, b, rows, n);
		}
}

/* ---- any bytes ---- */

static void
split_bytes(const HybKeyDesc *desc, const uint8 *entry, uint32 len)
{
	HybValue	vals[MAXCOLS];
	HybBuf		joined = {0};
	uint32		used;

	if (setjmp(hyb_fuzz_error) != 0)
		return;
	used = hyb_key_split(desc, entry, len, desc->natts, vals);
	require(used <= len && hyb_key_length(desc, entry, len) <= len);
	if (used == 0)
		return;
	hyb_key_join(desc, vals, desc->natts, &joined);
	require(joined.len == used && memcmp(joined.data, entry, used) == 0);
	for (int i = 0; i < desc->natts; i++)
		(void) hyb_value_decode(&desc->cols[i], &vals[i]);
}

static void
compare_bytes(const HybKeyDesc *desc, const uint8 *a, uint32 alen, const uint8 *b, uint32 blen)
{
	if (setjmp(hyb_fuzz_error) == 0)
		(void) hyb_key_compare(desc, a, alen, b, blen);
}

static void
read_entry(const Columns *cols, Input *in)
{
	uint32		len = (uint32) Min(in->end - in->p, 4000);
	uint8	   *entry = piece(in->p, len);
	uint8	   *other = piece(in->p + len / 3, len - len / 3);

	split_bytes(cols->desc, entry, len);
	compare_bytes(cols->desc, entry, len, other, len - len / 3);
	free(entry);
	free(other);
}

static uint32
checksum(const HybDictionaryPage *content)
{
	pg_crc32c	crc;

	INIT_CRC32C(crc);
	COMP_CRC32C(crc, &content->length, sizeof(uint32) + content->length);
	FIN_CRC32C(crc);
	return crc;
}

/* The columns of dictionary pages: text, encoded, and bytea, encoded */
static const uint8 dictionary_columns[] = {1, lengthof(types) - 3, 0, lengthof(types) - 2, 1};

static void
read_dictionaries(const uint8 *bytes, uint32 len)
{
	uint8	   *copy = memcpy(palloc(len), bytes, len);
	HybDictionaries *loaded = hyb_encoded_load(copy, len, CurrentMemoryContext);
	Columns		cols;
	Input		in = {dictionary_columns, dictionary_columns + sizeof(dictionary_columns)};

	set_columns(&cols, &in);
	if (loaded == NULL || !hyb_encoded_attach(cols.desc, loaded))
		return;
	require(cols.desc->cols[0].dictionary != NULL &&
			cols.desc->cols[1].dictionary != NULL);
	in.p = bytes + len / 2;
	in.end = in.p + Min(len / 2, 200);
	check_rows(&cols, &in);
}

static void
read_page(const uint8 *bytes, Size len)
{
	PGAlignedBlock *page = palloc0(sizeof(PGAlignedBlock));
	HybDictionaryPage *content = hyb_dictionary_page((Page) page->data);

	memcpy(page, bytes, Min(len, BLCKSZ));
	if (content->length <= HYB_DICTIONARY_PAGE_BYTES)
		content->crc = checksum(content);
	if (setjmp(hyb_fuzz_error) == 0)
	{
		hyb_dictionary_check_page(hyb_fuzz_relation(), 1, (Page) page->data);
		read_dictionaries(content->bytes, content->length);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		in = {data + 1, data + size};
	Columns		cols;

	if (size < 4)
		return 0;
	if (data[0] % NMODES == PAGE)
		read_page(in.p, in.end - in.p);
	else if (data[0] % NMODES == BYTES)
		read_dictionaries(in.p, (uint32) (in.end - in.p));
	else
	{
		set_columns(&cols, &in);
		if (data[0] % NMODES == ROWS)
			check_rows(&cols, &in);
		else
			read_entry(&cols, &in);
	}
	hyb_fuzz_reset();
	return 0;
}

/* ---- seeds ---- */

/* Dictionaries of two columns, on a page or not. */
static size_t
dictionary_seed(int scheme, int mode, uint8_t *data)
{
	Columns		cols;
	Input		columns = {dictionary_columns, dictionary_columns + sizeof(dictionary_columns)};
	HybEncodedOptions options = {.scheme = scheme, .entries = HYB_HOPE_MIN_ENTRIES};
	HybEncodedKeys keys[2] = {{0}};
	HybIndex	ix = {.rel = hyb_fuzz_relation(), .incarnation = 77};
	HybBuf		stored = {0};
	PGAlignedBlock page;

	set_columns(&cols, &columns);
	for (int i = 0; i < 2; i++)
	{
		cols.desc->cols[i].options = PointerGetDatum(&options);
		for (int k = 0; k < HYB_ENCODED_ENOUGH_KEYS; k++)
		{
			char		key[40];

			sprintf(key, "user%d@example.%s", k * 7919 % 1000, i ? "com" : "org");
			hyb_encoded_add_key(&keys[i], &cols.desc->cols[i],
							 make_varlena((uint8 *) key, (uint32) strlen(key)));
		}
	}
	require(hyb_encoded_learn(cols.desc, keys, &stored));
	hyb_dictionary_page_init((Page) page.data, &ix, stored.data, stored.len, 0,
							 InvalidBlockNumber);
	data[0] = (uint8_t) mode;
	if (mode == PAGE)
		memcpy(data + 1, page.data, BLCKSZ);
	else
		memcpy(data + 1, stored.data, stored.len);
	hyb_fuzz_reset();
	return mode == PAGE ? BLCKSZ + 1 : stored.len + 1;
}

size_t
hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max)
{
	size_t		n = 0;

	if (i < 2 * HYB_HOPE_NSCHEMES)
		return dictionary_seed((int) i / 2 + 1, i % 2 ? BYTES : PAGE, data);
	i -= 2 * HYB_HOPE_NSCHEMES;
	if (i >= 2 * lengthof(types))
		return 0;

	/* the i-th type, followed by another and an included column */
	data[n++] = i % 2 ? ENTRY : ROWS;
	data[n++] = (uint8_t) (i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 5);
	for (unsigned k = 0; k <= (i % 3 != 0); k++)
	{
		data[n++] = (uint8_t) ((i / 2 + 5 * k) % lengthof(types));
		data[n++] = (uint8_t) (i % 8);
	}
	if (i % 2)
	{
		Columns		cols;
		Row			row;
		Input		in = {data + 1, data + n};
		Input		values = {(const uint8 *) "\003abc\002xy\007included", NULL};

		values.end = values.p + 16;
		set_columns(&cols, &in);
		encode_row(&cols, &values, &row);
		memcpy(data + n, row.entry.data, row.entry.len);
		n += row.entry.len;
		hyb_fuzz_reset();
	}
	else
		for (unsigned k = 0; k < 150; k++)
			data[n++] = (uint8_t) (k * 37 % 11 == 0 ? k * 7 : 1 + k * 53 % 7);
	return n;
}
