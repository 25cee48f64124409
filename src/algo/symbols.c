/*
 * symbols.c
 *		Learning, writing and reading the symbols of symbols.h.
 */
#include "algo/symbols.h"

#define NONE			255		/* end of a chain of symbols; escape */

/* A string is a sequence of symbols and of single bytes. */
#define SINGLE			256
#define NCODES			512

/* Rounds that begin with no symbol, and bytes that all but the last one see. */
#define ROUNDS			5
#define FEW_BYTES		4096

/* Bytes that the other rounds see. */
#define MANY_BYTES		16384

/* Places of the table that pairs are counted in; three quarters are used. */
#define PAIRS			8192
#define PAIRS_MAX		(PAIRS / 4 * 3)

/* What is seen less often is not worth a symbol. */
#define LEAST_PAIRS		3
#define LEAST_SINGLES	2

/*
 * A byte that has no symbol takes two: those are preferred, the more since
 * other symbols begin with them in the next round.
 */
#define SINGLE_GAIN		8

/* Gains up to this are told apart. */
#define MAX_GAIN		4095

/* ---- matching ---- */

static inline uint64_t
low_bytes(unsigned len)
{
	return ~UINT64_C(0) >> (64 - 8 * len);
}

/* By the first bytes, three or two of them. */
static inline unsigned
hash_start(uint64_t word)
{
	return ((uint32_t) word << 8) * UINT32_C(0x9E3779B1) >> 22;
}

static inline unsigned
hash_pair(uint64_t word)
{
	return ((uint32_t) word << 16) * UINT32_C(0x9E3779B1) >> 22;
}

/* The last ones come first in their chains: the longest. */
static void
index_symbols(HybSymTable *t)
{
	memset(t->byte, NONE, sizeof(t->byte));
	memset(t->pair, NONE, sizeof(t->pair));
	memset(t->head, NONE, sizeof(t->head));
	HYB_ASSERT(t->n <= HYB_SYM_MAX);
	for (uint32_t i = 0; i < t->n; i++)
	{
		HYB_ASSERT(t->len[i] >= 1 && t->len[i] <= HYB_SYM_LENGTH &&
				   (t->value[i] & ~low_bytes(t->len[i])) == 0);
		HYB_ASSERT(i == 0 || t->len[i - 1] <= t->len[i]);
		if (t->len[i] == 1)
			t->byte[t->value[i]] = (uint8_t) i;
		else
		{
			uint8_t    *head = t->len[i] == 2 ? &t->pair[hash_pair(t->value[i])] :
				&t->head[hash_start(t->value[i])];

			t->next[i] = *head;
			*head = (uint8_t) i;
		}
	}
}

/*
 * The longest symbol but `except` that the first `avail` bytes of a word begin with,
 * or NONE.
 */
static inline unsigned
match(const HybSymTable *t, uint64_t word, unsigned avail, unsigned except)
{
	unsigned	i;

	for (i = t->head[hash_start(word)]; i != NONE; i = t->next[i])
	{
		if (((word ^ t->value[i]) & low_bytes(t->len[i])) == 0 &&
			t->len[i] <= avail && i != except)
			return i;
	}
	for (i = t->pair[hash_pair(word)]; i != NONE; i = t->next[i])
	{
		if (((word ^ t->value[i]) & 0xFFFF) == 0 && avail >= 2 && i != except)
			return i;
	}
	i = t->byte[word & 0xFF];
	return i == except ? NONE : i;
}

/* Up to 8 bytes; those from avail on are anything. */
static inline uint64_t
load_word_any(const uint8_t *p, unsigned avail)
{
	uint8_t		few[8] = {0};

	if (avail >= 8)
		return hyb_load64le(p);
	memcpy(few, p, avail);
	return hyb_load64le(few);
}

static uint32_t
encode(const HybSymTable *t, const uint8_t *p, uint32_t n, uint8_t *out)
{
	const uint8_t *end = p + n;
	uint8_t    *start = out;

	while (p < end)
	{
		unsigned	avail = end - p >= 8 ? 8 : (unsigned) (end - p);
		uint64_t	word = load_word_any(p, avail);
		unsigned	code = match(t, word, avail, SINGLE);

		*out++ = (uint8_t) code;
		if (code == HYB_SYM_ESCAPE)
		{
			*out++ = (uint8_t) word;
			p++;
		}
		else
			p += t->len[code];
	}
	return (uint32_t) (out - start);
}

/* ---- learning ---- */

typedef struct SymbolCandidate
{
	uint64_t	value;
	uint16_t	gain;
	uint16_t	next;			/* with the same gain, plus one */
	uint8_t		len;
} SymbolCandidate;

typedef struct Counts
{
	uint32_t	codes[NCODES];
	uint32_t	npairs;
	uint16_t	used[PAIRS_MAX];	/* places that are taken */
	uint32_t	pair[PAIRS];	/* code * NCODES + next code */
	uint16_t	count[PAIRS];
	uint32_t	ncandidates;
	SymbolCandidate candidates[NCODES + PAIRS_MAX];
	uint16_t	by_gain[MAX_GAIN + 1];
} Counts;

/* Only one builder works in a process at a time. */
static Counts counts;

static void
count_pair(Counts *c, unsigned a, unsigned b)
{
	uint32_t	pair = a * NCODES + b;
	uint32_t	at = (pair * UINT32_C(0x9E3779B1)) >> 19;

	for (; c->count[at] != 0; at = (at + 1) % PAIRS)
	{
		if (c->pair[at] == pair)
		{
			c->count[at] += c->count[at] < UINT16_MAX;
			return;
		}
	}
	if (c->npairs == PAIRS_MAX)
		return;
	c->used[c->npairs++] = (uint16_t) at;
	c->pair[at] = pair;
	c->count[at] = 1;
}

/* Code the strings, about as many bytes of them, and count. */
static void
count_codes(const HybStrings *in, const HybSymWork *work, uint32_t bytes,
			bool pairs, Counts *c)
{
	const HybSymTable *t = &work->table;

	memset(c->codes, 0, sizeof(c->codes));
	for (uint32_t i = 0; i < c->npairs; i++)
		c->count[c->used[i]] = 0;
	c->npairs = 0;
	for (uint32_t i = 0, seen = 0; i < in->n && seen < bytes; i++)
	{
		const uint8_t *p = in->bytes + in->off[i] + work->skip;
		const uint8_t *end = in->bytes + in->off[i] + in->len[i];
		unsigned	last = NCODES;

		seen += in->len[i];
		while (p < end)
		{
			unsigned	avail = end - p >= 8 ? 8 : (unsigned) (end - p);
			uint64_t	word = load_word_any(p, avail);
			unsigned	code = match(t, word, avail, SINGLE);

			if (code == NONE)
			{
				code = SINGLE + (unsigned) (word & 0xFF);
				p++;
			}
			else
				p += t->len[code];
			c->codes[code]++;
			if (pairs && last != NCODES)
				count_pair(c, last, code);
			last = code;
		}
	}
}

static void
add_symbol_candidate(Counts *c, uint64_t value, unsigned len, uint64_t gain)
{
	SymbolCandidate *candidate = &c->candidates[c->ncandidates++];

	HYB_ASSERT(c->ncandidates <= NCODES + PAIRS_MAX);
	HYB_ASSERT(len >= 1 && len <= HYB_SYM_LENGTH);
	candidate->value = value;
	candidate->len = (uint8_t) len;
	candidate->gain = (uint16_t) (gain < MAX_GAIN ? gain : MAX_GAIN);
	candidate->next = c->by_gain[candidate->gain];
	c->by_gain[candidate->gain] = (uint16_t) c->ncandidates;
}

static bool
has_symbol(const HybSymTable *t, const uint8_t *chain, uint64_t value, unsigned len)
{
	for (unsigned i = chain[hash_start(value)]; i != NONE; i = t->next[i])
	{
		if (t->len[i] == len && t->value[i] == value)
			return true;
	}
	return false;
}

/* The symbols of a table in order of their lengths. */
static void
sort_symbols(HybSymTable *t)
{
	HybSymTable sorted;
	uint32_t	n = 0;

	for (unsigned len = 1; len <= HYB_SYM_LENGTH; len++)
	{
		for (uint32_t i = 0; i < t->n; i++)
		{
			if (t->len[i] == len)
			{
				sorted.value[n] = t->value[i];
				sorted.len[n++] = (uint8_t) len;
			}
		}
	}
	HYB_ASSERT(n == t->n);
	memcpy(t->value, sorted.value, sizeof(uint64_t) * n);
	memcpy(t->len, sorted.len, n);
	index_symbols(t);
}

/* The candidates that gain most become the symbols. */
static void
choose_symbols(Counts *c, HybSymTable *t)
{
	t->n = 0;
	memset(t->head, NONE, sizeof(t->head));
	for (int gain = MAX_GAIN; gain > 0 && t->n < HYB_SYM_MAX; gain--)
	{
		for (uint32_t i = c->by_gain[gain]; i != 0 && t->n < HYB_SYM_MAX;
			 i = c->candidates[i - 1].next)
		{
			const SymbolCandidate *best = &c->candidates[i - 1];
			uint8_t    *head = &t->head[hash_start(best->value)];

			/* two pairs may be the same bytes */
			if (has_symbol(t, t->head, best->value, best->len))
				continue;
			t->value[t->n] = best->value;
			t->len[t->n] = best->len;
			t->next[t->n] = *head;
			*head = (uint8_t) t->n++;
		}
	}
	sort_symbols(t);
}

static inline uint64_t
code_value(const HybSymTable *t, unsigned code, unsigned *len)
{
	*len = code < SINGLE ? t->len[code] : 1;
	return code < SINGLE ? t->value[code] : code - SINGLE;
}

/* From the symbols of the last round to those of the next one. */
static void
next_round(const HybStrings *in, uint32_t bytes, Counts *c, HybSymWork *work)
{
	HybSymTable *t = &work->table;

	count_codes(in, work, bytes, true, c);
	c->ncandidates = 0;
	memset(c->by_gain, 0, sizeof(c->by_gain));
	for (unsigned code = 0; code < NCODES; code++)
	{
		unsigned	len;
		uint64_t	value;

		if (c->codes[code] < LEAST_SINGLES)
			continue;
		value = code_value(t, code, &len);
		add_symbol_candidate(c, value, len,
							 (uint64_t) c->codes[code] * (len == 1 ? SINGLE_GAIN : len));
	}
	for (uint32_t i = 0; i < c->npairs; i++)
	{
		uint32_t	at = c->used[i];
		unsigned	len;
		unsigned	more;
		uint64_t	value;
		uint64_t	behind;

		if (c->count[at] < LEAST_PAIRS)
			continue;
		value = code_value(t, c->pair[at] / NCODES, &len);
		behind = code_value(t, c->pair[at] % NCODES, &more);
		if (len == HYB_SYM_LENGTH)
			continue;
		value |= behind << (8 * len);
		len = len + more < HYB_SYM_LENGTH ? len + more : HYB_SYM_LENGTH;
		add_symbol_candidate(c, value & low_bytes(len), len, (uint64_t) c->count[at] * len);
	}
	choose_symbols(c, t);
}

/*
 * Symbols take space, too: those go whose bytes cost less to write with others.
 */
static void
prune(const HybStrings *in, Counts *c, HybSymWork *work)
{
	HybSymTable *t = &work->table;
	uint32_t	n = 0;

	count_codes(in, work, MANY_BYTES, false, c);
	for (uint32_t i = 0; i < t->n; i++)
	{
		unsigned	len = t->len[i];
		unsigned	others = 0;

		for (unsigned at = 0; at < len;)
		{
			unsigned	code = match(t, t->value[i] >> (8 * at), len - at, i);

			others += code == NONE ? 2 : 1;
			at += code == NONE ? 1 : t->len[code];
		}
		c->codes[i] = (uint64_t) c->codes[i] * (others - 1) > len;
	}
	for (uint32_t i = 0; i < t->n; i++)
	{
		if (c->codes[i] == 0)
			continue;
		t->value[n] = t->value[i];
		t->len[n++] = t->len[i];
	}
	t->n = n;
	index_symbols(t);
}

static void
learn_symbols(const HybStrings *in, HybSymWork *work)
{
	int			rounds = work->learned ? 1 : ROUNDS;

	if (!work->learned)
	{
		work->table.n = 0;
		index_symbols(&work->table);
	}
	for (int i = 0; i < rounds; i++)
		next_round(in, i + 1 < rounds ? FEW_BYTES : MANY_BYTES, &counts, work);
	prune(in, &counts, work);
	work->learned = true;
}

/* ---- building ---- */

/* Code the strings that are not yet. */
static void
encode_all(const HybStrings *in, HybSymWork *work)
{
	uint32_t	at = work->ncoded == 0 ? 0 : work->ends[work->ncoded - 1];

	HYB_ASSERT(work->learned && work->ncoded <= in->n);
	for (uint32_t i = work->ncoded; i < in->n; i++)
	{
		HYB_ASSERT(in->len[i] >= work->skip);
		at += encode(&work->table, in->bytes + in->off[i] + work->skip,
					 in->len[i] - work->skip, work->data + at);
		work->ends[i] = at;
	}
	work->ncoded = in->n;
}

static uint64_t
bytes_of(const HybStrings *in, uint32_t skip)
{
	return in->off[in->n - 1] + in->len[in->n - 1] - in->off[0] -
		(uint64_t) in->n * skip;
}

/* Learn from these strings, from what was learned if `on`, and code them. */
static void
learn_and_encode(const HybStrings *in, bool on, HybSymWork *work)
{
	work->learned &= on;
	learn_symbols(in, work);
	work->ncoded = 0;
	encode_all(in, work);
	work->raw = bytes_of(in, work->skip);
	work->coded = work->ends[in->n - 1];
	work->kept = 0;
	work->learn_on = true;
}

void
hyb_sym_prepare(const HybStrings *in, uint32_t skip, bool more, HybSymWork *work)
{
	uint64_t	raw = bytes_of(in, skip);
	bool		adopted = work->learned && work->raw == 0;

	if (more && work->skip == skip)
	{
		/* what was learned from the beginning of a leaf is of its end, too */
		if (work->learn_on && raw > work->raw + work->raw / 2)
			learn_and_encode(in, true, work);
		else
			encode_all(in, work);
		return;
	}
	work->skip = skip;
	work->ncoded = 0;
	if (!work->learned || (!adopted && ++work->kept >= HYB_SYM_KEEP))
	{
		learn_and_encode(in, true, work);
		return;
	}
	encode_all(in, work);
	if (adopted)
	{
		work->raw = raw;
		work->coded = work->ends[in->n - 1];
		return;
	}
	work->learn_on = false;
	/* do they take a sixteenth more than those that it was learned from? */
	if (work->ends[in->n - 1] * 16 * work->raw > work->coded * 17 * raw)
		learn_and_encode(in, false, work);
}

static uint32_t
table_size(const HybSymTable *t)
{
	uint32_t	size = HYB_SYM_LENGTH;

	for (uint32_t i = 0; i < t->n; i++)
		size += t->len[i];
	return size;
}

static void
coded_string_ends(const HybSymWork *work, uint32_t n, uint64_t *values)
{
	for (uint32_t i = 0; i < n; i++)
		values[i] = work->ends[i];
}

void
hyb_sym_plan(const HybSymWork *work, uint32_t n, uint64_t *values,
			 HybSymPlan *plan)
{
	HYB_ASSERT(n > 0 && n <= work->ncoded);
	coded_string_ends(work, n, values);
	hyb_seq_plan(values, n, &plan->ends);
	plan->size = work->ends[n - 1] > HYB_SYM_MAX_DATA ? UINT32_MAX :
		table_size(&work->table) + plan->ends.size + work->ends[n - 1];
}

uint8_t *
hyb_sym_write(const HybSymWork *work, uint32_t n, uint64_t *values,
			  const HybSymPlan *plan, uint8_t *out)
{
	const HybSymTable *t = &work->table;
	uint8_t    *number = out;

	HYB_ASSERT(plan->size != UINT32_MAX && n <= work->ncoded);
	memset(number, 0, HYB_SYM_LENGTH);
	out += HYB_SYM_LENGTH;
	for (uint32_t i = 0; i < t->n; i++)
	{
		number[t->len[i] - 1]++;
		for (unsigned j = 0; j < t->len[i]; j++)
			*out++ = (uint8_t) (t->value[i] >> (8 * j));
	}
	coded_string_ends(work, n, values);
	out = hyb_seq_write(&plan->ends, values, n, out);
	memcpy(out, work->data, work->ends[n - 1]);
	HYB_ASSERT(out + work->ends[n - 1] == number + plan->size);
	return out + work->ends[n - 1];
}

/* ---- reading ---- */

const uint8_t *
hyb_sym_open(HybSym *sym, uint32_t n, const uint8_t *p, const uint8_t *end)
{
	uint32_t	nsymbols = 0;
	uint32_t	bytes = 0;
	uint64_t	last;

	if (n == 0 || end - p < HYB_SYM_LENGTH)
		return NULL;
	sym->n = n;
	sym->counts = p;
	for (unsigned len = 1; len <= HYB_SYM_LENGTH; len++)
	{
		nsymbols += *p;
		bytes += len * *p++;
	}
	if (nsymbols > HYB_SYM_MAX || (uint32_t) (end - p) < bytes)
		return NULL;
	sym->symbols = p;
	p = hyb_seq_open(&sym->ends, n, p + bytes, end);
	if (p == NULL)
		return NULL;
	last = hyb_seq_get(&sym->ends, n - 1);
	if (last > (uint64_t) (end - p))
		return NULL;
	sym->data = p;
	sym->data_len = (uint32_t) last;
	return p + last;
}

static void
fill_decoder(const HybSym *sym, HybSymDecoder *decoder)
{
	const uint8_t *p = sym->symbols;
	unsigned	code = 0;

	for (unsigned len = 1; len <= HYB_SYM_LENGTH; len++)
	{
		unsigned	count = sym->counts[len - 1];

		/* what is behind the symbols is within the page */
		for (unsigned i = 0; i < count; i++)
			decoder->value[code + i] = hyb_load64le(p + i * len);
		memset(decoder->len + code, (int) len, count);
		code += count;
		p += count * len;
	}
	/* the escape has no symbol */
	HYB_ASSERT(code <= HYB_SYM_MAX);
	memset(decoder->len + code, 0, 256 - code);
	memset(decoder->value + code, 0, sizeof(uint64_t) * (256 - code));
}

/* A symbol; 8 bytes are written, whatever its length.  Returns its end. */
static inline uint8_t *
put_symbol(const HybSymDecoder *decoder, unsigned code, uint8_t *out)
{
	hyb_store64le(out, decoder->value[code]);
	return out + decoder->len[code];
}

/* Is a byte of a word 255? */
static inline bool
has_escape(uint64_t word)
{
	return ((~word - UINT64_C(0x0101010101010101)) & word &
			UINT64_C(0x8080808080808080)) != 0;
}

/* Where the codes of a string end. */
static inline uint64_t
end_of(const HybSym *sym, HybSymCursor *cursor, uint32_t row)
{
	uint32_t	i = row - cursor->ahead;

	if (i < cursor->nahead)
		return cursor->decoder->ends[i];
	if (row == 0 || row != cursor->next)
		return hyb_seq_get(&sym->ends, row);
	cursor->ahead = row;
	cursor->nahead = sym->n - row < HYB_SYM_AHEAD ? sym->n - row : HYB_SYM_AHEAD;
	hyb_seq_decode(&sym->ends, row, cursor->nahead, cursor->decoder->ends);
	return cursor->decoder->ends[0];
}

int
hyb_sym_read(const HybSym *sym, HybSymCursor *cursor, uint32_t row,
			 uint8_t *out, uint32_t cap)
{
	const HybSymDecoder *decoder = cursor->decoder;
	const uint8_t *start = out;
	const uint8_t *limit = out + cap;
	const uint8_t *p;
	const uint8_t *end;
	uint64_t	from = 0;
	uint64_t	to;

	HYB_ASSERT(row < sym->n);
	if (!cursor->filled)
	{
		fill_decoder(sym, cursor->decoder);
		cursor->filled = true;
	}
	if (row > 0)
		from = row == cursor->next ? cursor->end : hyb_seq_get(&sym->ends, row - 1);
	to = end_of(sym, cursor, row);
	if (from > to || to > sym->data_len)
		return -1;
	cursor->next = row + 1;
	cursor->end = to;
	p = sym->data + from;
	end = sym->data + to;

	while (end - p >= 8 && out <= limit)
	{
		uint64_t	word = hyb_load64le(p);

		if (has_escape(word))
		{
			/* up to the first one */
			for (; (word & 0xFF) != HYB_SYM_ESCAPE; word >>= 8, p++)
				out = put_symbol(decoder, word & 0xFF, out);
			*out++ = p[1];
			p += 2;
			continue;
		}
		out = put_symbol(decoder, word & 0xFF, out);
		out = put_symbol(decoder, (word >> 8) & 0xFF, out);
		out = put_symbol(decoder, (word >> 16) & 0xFF, out);
		out = put_symbol(decoder, (word >> 24) & 0xFF, out);
		out = put_symbol(decoder, (word >> 32) & 0xFF, out);
		out = put_symbol(decoder, (word >> 40) & 0xFF, out);
		out = put_symbol(decoder, (word >> 48) & 0xFF, out);
		out = put_symbol(decoder, word >> 56, out);
		p += 8;
	}
	if (out > limit)
		return -1;
	/* seven codes at most, for which there is room */
	while (p < end)
	{
		if (*p != HYB_SYM_ESCAPE)
		{
			out = put_symbol(decoder, *p++, out);
			continue;
		}
		if (++p == end)
			return -1;
		*out++ = *p++;
	}
	return out <= limit ? (int) (out - start) : -1;
}

void
hyb_sym_adopt(HybSymWork *work, const HybSym *sym, bool learn_on)
{
	HybSymDecoder decoder;
	HybSymTable *t = &work->table;

	fill_decoder(sym, &decoder);
	t->n = 0;
	for (unsigned code = 0; code < HYB_SYM_MAX && decoder.len[code] > 0; code++)
	{
		t->value[code] = decoder.value[code] & low_bytes(decoder.len[code]);
		t->len[code] = decoder.len[code];
		t->n++;
	}
	index_symbols(t);
	work->learned = true;
	work->learn_on = learn_on;
	work->raw = 0;
	work->kept = 0;
}
