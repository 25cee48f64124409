/*
 * encoded.c
 *		Codecs and dictionaries of columns whose strings are stored encoded.
 */
#include "base/compat.h"

#include "access/reloptions.h"
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
	uint64		size;			/* of the bytes that follow */
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

/* Append the stored form of a value's bytes; returns its length. */
static uint64
encode_bytes(const HybHope *hope, const uint8 *bytes, uint32 len, HybBuf *out)
{
	uint8		code[HYB_CODE_ROOM];
	uint32		before = out->len;
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
	return out->len - before;
}

static void
encode_value(const HybColumn *col, Datum value, HybBuf *out)
{
	const uint8 *bytes;
	uint32		len;
	void	   *allocated = plain_bytes(col, value, &bytes, &len);

	if (col->dictionary != NULL)
		(void) encode_bytes(col->dictionary->hope, bytes, len, out);
	else
		hyb_escape(bytes, len, out);
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

HybHopeScheme
hyb_encoded_scheme(const HybColumn *col)
{
	const HybEncodedOptions *options = (const HybEncodedOptions *)
		DatumGetPointer(col->options);

	return options ? options->scheme : HYB_ENCODED_DEFAULT_SCHEME;
}

static Datum
decode_value(const HybColumn *col, const uint8 *data, uint32 len)
{
	char		plain_space[STACK_BYTES];
	char	   *plain;
	uint32		plainlen;
	uint32		blanks = 0;
	struct varlena *result;

	if (col->dictionary != NULL)
	{
		uint8		code[HYB_CODE_ROOM + 16];
		uint32		codelen;
		uint32		rest;
		uint64		bits;

		/* the code is no longer than that; a rest is taken for code at first */
		codelen = (uint32) hyb_hope_unstuff(data, Min(len, HYB_CODE_ROOM), code);
		plain = len + HYB_DECODE_ROOM <= sizeof(plain_space) ? plain_space :
			palloc(len + HYB_DECODE_ROOM);
		plainlen = (uint32) hyb_hope_decode(col->dictionary->hope, code, codelen,
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

static bool
hope_text_cast(Oid subtype, Datum value, HybCast *out)
{
	if (subtype != NAMEOID)
		return false;
	out->lo = out->hi = CStringGetTextDatum(NameStr(*DatumGetName(value)));
	return true;
}

/* ---- codecs ---- */

const HybCodec hyb_codec_text_hope = {
	.name = "text, encoded",
	.store = HYB_STORE_BYTES,
	.terminated = true,
	.compare = HYB_COMPARE_MEM,
	.encode = encode_value,
	.decode = decode_value,
	.cast = hope_text_cast
};

const HybCodec hyb_codec_bytea_hope = {
	.name = "bytea, encoded",
	.store = HYB_STORE_BYTES,
	.terminated = true,
	.compare = HYB_COMPARE_MEM,
	.encode = encode_value,
	.decode = decode_value
};

const HybCodec hyb_codec_bpchar_hope = {
	.name = "bpchar, encoded",
	.store = HYB_STORE_BYTES,
	.terminated = true,
	.compare = HYB_COMPARE_MEM,
	.encode = encode_value,
	.decode = decode_value,
	.blank_padded = true
};

/* ---- options ---- */

static relopt_enum_elt_def scheme_values[HYB_HOPE_NSCHEMES + 1];

/*
 * Support function 5 of the operator classes.
 */
PG_FUNCTION_INFO_V1(hybrid_hope_options);
Datum
hybrid_hope_options(PG_FUNCTION_ARGS)
{
	local_relopts *relopts = (local_relopts *) PG_GETARG_POINTER(0);

	for (int i = 0; i < HYB_HOPE_NSCHEMES; i++)
	{
		scheme_values[i].string_val = hyb_hope_scheme_name(i + 1);
		scheme_values[i].symbol_val = i + 1;
	}
	init_local_reloptions(relopts, sizeof(HybEncodedOptions));
	add_local_enum_reloption(relopts, "scheme",
							 "How strings are cut up and encoded",
							 scheme_values, HYB_ENCODED_DEFAULT_SCHEME,
							 "Valid values are \"single-char\", \"double-char\", \"3-grams\", \"4-grams\", \"alm\", and \"alm-improved\".",
							 offsetof(HybEncodedOptions, scheme));
	add_local_int_reloption(relopts, "dictionary",
							"Most entries of the dictionary",
							HYB_ENCODED_DEFAULT_ENTRIES, HYB_HOPE_MIN_ENTRIES,
							HYB_HOPE_MAX_ENTRIES,
							offsetof(HybEncodedOptions, entries));
	PG_RETURN_VOID();
}

/* ---- dictionaries ---- */

/*
 * Names, addresses, paths, phrases, numbers: joins the keys of a column where the
 * table has too few rows to learn from.
 */
static const char *const builtin_sample[] = {
	"arodriguez89@example.org", "n.taylor32@gmail.com", "m.garcia@mail.ru",
	"sarahbrown2@outlook.com", "s.rodriguez@hotmail.com",
	"anna_martin@orange.fr", "james.miller@icloud.com",
	"michaelmoore24@outlook.com", "mark_gonzalez@hotmail.com",
	"nancy_jones@orange.fr", "a.jackson@icloud.com", "k_martinez@web.de",
	"p.garcia3@icloud.com", "l.gonzalez@example.com",
	"kevin_smith@example.com", "m.brown45@icloud.com",
	"m_taylor14@company.co.uk", "d_clark@yahoo.com", "mhernandez@aol.com",
	"nancythompson40@icloud.com", "elizabeth.garcia93@aol.com",
	"jessicagarcia11@gmx.net", "nancy.gonzalez95@icloud.com",
	"k_rodriguez@qq.com", "p_johnson@company.co.uk", "kjones@mail.ru",
	"b.jones@web.de", "n.martin63@company.co.uk", "d_thomas@qq.com",
	"robert_brown@orange.fr", "d.garcia35@university.edu",
	"srobinson@company.co.uk", "k.perez47@company.co.uk",
	"m_rodriguez99@company.co.uk", "elizabethhernandez@web.de",
	"s_harris@web.de", "elewis@example.org", "b_white23@web.de",
	"barbarahernandez@outlook.com", "k_lopez@company.co.uk",
	"maria_white79@gmx.net", "m_young80@university.edu",
	"lisa_lee@example.com", "josephmartin29@hotmail.com",
	"p.thompson@gmail.com", "m.jones@outlook.com", "s_johnson@example.org",
	"annawilliams31@qq.com", "/usr/share/doc/little/go_not.css",
	"/usr/share/doc/one/wayright.png", "/var/log/year_around.xml",
	"/home/anpart.json", "/usr/bin/must-long.log",
	"var/lib/postgresql/calleven.conf", "var/log/me/back-help.html",
	"/usr/lib/python3/dist-packages/over/ananother.html",
	"/home/place/is_my.so", "/usr/include/you/allbecause.so",
	"etc/when_to.so", "/usr/bin/he/like_two.log",
	"usr/lib/python3/dist-packages/way/helpman.conf",
	"usr/share/doc/could_same.css", "/usr/local/share/page/any-name.png",
	"/usr/share/man/man1/he-into.conf", "/usr/share/man/man1/handwill.h",
	"/usr/share/locale/another/smallspell.xml",
	"/var/lib/postgresql/sound/kindother.md", "/home/people-again.js",
	"/usr/local/share/men/sentence_can.py",
	"/usr/lib/python3/dist-packages/who/tell-live.json",
	"usr/lib/x86_64-linux-gnu/two-his.xml", "var/log/they/littlegreat.h",
	"usr/lib/x86_64-linux-gnu/evenbut.css", "etc/there/theirif.gz",
	"usr/lib/x86_64-linux-gnu/forword.xml",
	"/usr/lib/python3/dist-packages/go-three.json",
	"usr/lib/python3/dist-packages/because/when-back.c",
	"/usr/share/man/man1/where/downmade.md",
	"usr/include/there/formtry.conf", "/opt/look-want.txt",
	"/usr/share/locale/too/when-made.so", "/usr/include/air-need.png",
	"usr/local/share/or-before.json", "/usr/bin/name/think_word.js",
	"opt/are/there_kind.js", "usr/lib/python3/dist-packages/havewhere.log",
	"usr/include/down/would_oil.md", "/usr/share/locale/may/whenday.xml",
	"/usr/share/locale/did/too-does.json",
	"usr/lib/python3/dist-packages/take-one.h",
	"usr/include/other-where.md", "/usr/share/man/man1/the/me_could.md",
	"/var/log/name/had-use.xml",
	"usr/lib/x86_64-linux-gnu/over/sentence-want.html",
	"etc/study_move.txt", "home/find_first.h",
	"Is Move Our Sentence Use What", "Our move make", "about",
	"Her Land This Such Only", "than-if-good-did-see-they", "Make do",
	"men", "more-of-name-with-thing-kind", "For It", "away", "where-or",
	"Kind", "on-through-take-with-on-time", "My ask are he", "change-line",
	"same her", "Word from boy", "be-point-then-because-in",
	"day-great-live-three-world", "Turn We House To Still",
	"after-so-want-not-your-than", "look", "we we tell",
	"Like change have me", "With help off", "Play", "made-had-at",
	"part study world", "need learn we", "can picture need in",
	"Me Two Word Part Also We", "My", "Look Through", "it his boy", "all",
	"Day Give", "In Her Any Me Were", "who day", "Put such",
	"One two any must she here", "Should Give Me What", "after-some-name",
	"Very on", "Man where another the by", "hand are many the",
	"would-say-play-down-sound", "About write", "Also too day",
	"down him different", "Help only long can can", "part-he-one-she",
	"Study", "still-been", "sentence same because or other may", "Right",
	"Is Water Try You", "over-much-man-follow-play", "set again show us",
	"Said place did does is", "number be you", "big-set-learn",
	"To write away", "he", "Could long picture mother must big",
	"James Thomas", "John Taylor", "Robert Williams", "Michael Walker",
	"William Brown", "David Davis", "Richard Hernandez", "Joseph Clark",
	"Thomas Moore", "Karen Wilson", "Peter Gonzalez", "Paul Smith",
	"Daniel Perez", "Kevin Gonzalez", "Mark Gonzalez", "Smith Garcia",
	"Williams Harris", "Jones Lee", "Miller Taylor", "Rodriguez Walker",
	"Hernandez Miller", "Gonzalez Young", "Anderson Perez",
	"Taylor Martin", "https://www.beenover.org/word/picture?id=9068",
	"https://www.awaymade.com/had/then.html",
	"https://www.twobecause.com/which/be",
	"https://www.soneed.com/form/around?id=8945",
	"https://www.workplace.com/live/say?id=8664",
	"https://www.likepeople.org/go/have.html",
	"https://www.ifyear.com/there/not?id=4845",
	"https://www.showlarge.net/if/give.html",
	"https://www.anotherby.net/picture/who",
	"https://www.greatyour.net/at/water.html",
	"https://www.menover.com/change/even",
	"https://www.theup.net/an/but.html",
	"https://www.therecome.net/learn/by.html",
	"https://www.letterbeen.com/air/came?id=9510",
	"https://www.byget.com/his/other.html",
	"https://www.madedo.org/kind/answer",
	"https://www.littlefollow.org/may/of?id=1926",
	"https://www.madewe.net/the/help.html",
	"https://www.answerat.org/learn/animal",
	"https://www.notthink.org/study/letter.html",
	"https://www.partcan.org/through/went?id=1452",
	"https://www.butway.org/its/his.html",
	"https://www.onthese.org/would/more",
	"https://www.moreone.net/think/back?id=2948",
	"d805c43f-62e3-4db0-aef1-17813eba1a24",
	"73d4e06c-5b13-4210-acf8-014f156871b4",
	"d1671a7b-c412-4240-a5c6-0433cf8513a1",
	"05739885-4037-48ff-a754-6200f4eecadf",
	"de3f1fcb-844a-4141-a0d9-37f5f8b52031",
	"319f5bd4-f96b-4cdb-a715-78cd031f610e",
	"84eae0bf-15d9-4f4c-a477-f46a992d296f",
	"d6d46fe3-afe3-4786-a820-0d9105c27033",
	"28f670ad-6489-4c55-ac74-6f48800b1b5a",
	"dc331771-97f2-4f09-ae70-a527a938657b",
	"9e423147-a2c7-4964-a093-0619373156fe",
	"6bf00cdf-c501-4b92-a69c-dfcccffe4c85",
	"d2da9eaa-d35f-46ea-aea5-60e7e5ee1d31",
	"03d0e5c7-ffc1-4d0c-ac19-e44b2aa4aa43",
	"56a29140-25f1-44d8-ac7e-6c1130d45d4d",
	"d58ea187-f8da-413a-afe8-37795e977ed7", "2015-07-07 08:08:30",
	"2013-05-01 21:40:07", "2000-08-03 02:43:24", "1992-07-05 06:41:01",
	"2021-06-20 14:08:29", "2005-02-12 19:01:00", "2001-07-03 08:08:48",
	"2013-06-25 06:09:18", "2023-12-18 02:18:07", "1996-11-13 11:19:23",
	"2020-09-19 14:55:15", "2026-03-09 00:34:00", "XM-140088", "HP-697333",
	"WB-008536", "AY-221587", "NH-528653", "WT-247494", "ZJ-058782",
	"ZQ-250108", "BW-404214", "LY-022437", "RJ-460935", "OD-686688"
};


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

/* One column's dictionary, appended to *out. */
static void
learn_column(const HybColumn *col, int column, const HybEncodedKeys *keys, HybBuf *out)
{
	const HybEncodedOptions *options = (const HybEncodedOptions *)
		DatumGetPointer(col->options);
	HybHopeMemory memory = hope_memory(CurrentMemoryContext);
	HybEncodedKeys all = {0};
	HybHopeSample sample;
	StoredColumn header;
	HybHope    *hope;
	HybBuf		code = {0};
	uint64		stored = 0;

	for (uint32 i = 0; i < keys->n; i++)
		add_key_bytes(&all, keys->bytes + keys->off[i],
					  keys->off[i + 1] - keys->off[i]);
	if (keys->n < HYB_ENCODED_ENOUGH_KEYS)
		for (int i = 0; i < lengthof(builtin_sample); i++)
			add_key_bytes(&all, (const uint8 *) builtin_sample[i],
						  strlen(builtin_sample[i]));
	sample.bytes = all.bytes;
	sample.off = all.off;
	sample.n = all.n;
	hope = hyb_hope_build(hyb_encoded_scheme(col),
						  options ? options->entries : HYB_ENCODED_DEFAULT_ENTRIES,
						  &sample, &memory, NULL, NULL);
	for (uint32 i = 0; i < all.n; i++)
	{
		code.len = 0;
		stored += encode_bytes(hope, all.bytes + all.off[i],
							   all.off[i + 1] - all.off[i], &code);
	}

	memset(&header, 0, sizeof(header));
	header.column = column;
	header.learned = keys->n >= HYB_ENCODED_ENOUGH_KEYS;
	header.sample_keys = all.n;
	header.sample_bytes = all.off[all.n];
	header.sample_stored = stored;
	header.size = hyb_hope_stored_size(hope);
	hyb_buf_append(out, &header, sizeof(header));
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
		dictionary->hope = hyb_hope_load(p, column.size, &memory);
		if (dictionary->hope == NULL)
			return NULL;
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
