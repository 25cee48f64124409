/*
 * tables.c
 *		Building a dictionary, its tables, and its stored form.
 *
 * Stored form:
 *
 * - scheme (1 byte)
 * - number of intervals (4 bytes, low byte first)
 * - code lengths as runs (length, number as variable bytes), the code of zeroes first
 * - for the schemes with patterns the intervals' lower bounds, front-coded.  The
 *   upper 4 bits of a byte are the number of bytes shared with the bound before, the
 *   lower 4 bits the number of others.  15: variable bytes of the number less 15
 *   follow.  Then come the other bytes.
 */
#include "algo/hope/internal.h"

/* Longest code of Single-Char that is made */
#define SINGLE_CHAR_MAX_CODE	18

static const char *const scheme_names[HYB_HOPE_NSCHEMES] = {
	"single-char", "double-char", "3-grams", "4-grams", "alm", "alm-improved"
};

const char *
hyb_hope_scheme_name(int scheme)
{
	if (scheme < 1 || scheme > HYB_HOPE_NSCHEMES)
		return NULL;
	return scheme_names[scheme - 1];
}

HybHopeScheme
hyb_hope_scheme(const HybHope *hope)
{
	return hope->scheme;
}

uint32_t
hyb_hope_entries(const HybHope *hope)
{
	return hope->entries;
}

size_t
hyb_hope_memory(const HybHope *hope)
{
	return sizeof(HybHope) + hope->intervals.off[hope->entries] + 16 +
		(size_t) hope->entries * (2 * sizeof(uint32_t) + 2) +
		(sizeof(HybHopeDecode) << HYB_HOPE_DECODE_BITS) +
		(65536 + (size_t) hope->trie.nsteps) * sizeof(HybHopeStep) +
		(size_t) (hope->trie.nnodes + 1) * sizeof(HybHopeNode);
}

static HybHope *
new_hope(HybHopeScheme scheme, uint32_t entries, const HybHopeMemory *memory)
{
	HybHope    *hope = memory->alloc(memory->context, sizeof(HybHope));

	memset(hope, 0, sizeof(*hope));
	hope->memory = *memory;
	hope->scheme = scheme;
	hope->entries = entries;
	hope->lengths = memory->alloc(memory->context, (size_t) entries + 1);
	return hope;
}

void
hyb_hope_free(HybHope *hope)
{
	const HybHopeMemory memory = hope->memory;

	hyb_hope_free_trie(&hope->trie, &memory);
	hyb_hope_free_intervals(&hope->intervals, &memory);
	memory.release(memory.context, hope->aligned);
	memory.release(memory.context, hope->decode);
	memory.release(memory.context, hope->lengths);
	memory.release(memory.context, hope);
}

/* ---- tables ---- */

static void
make_trie(HybHope *hope, const uint32_t *codes)
{
	const HybHopeIntervals *iv = &hope->intervals;
	const HybHopeMemory *memory = &hope->memory;
	HybHopeStep *values;

#ifdef HYB_HOPE_POPCNT
	hope->popcnt = __builtin_cpu_supports("popcnt");
#endif
	values = memory->alloc(memory->context,
						   hope->entries * sizeof(HybHopeStep));
	for (uint32_t i = 0; i < hope->entries; i++)
	{
		values[i] = HYB_HOPE_VALUE(codes[i], hope->lengths[i + 1],
								   iv->symlen[i]);
		if (iv->symlen[i] > hope->longest_symbol)
			hope->longest_symbol = iv->symlen[i];
	}
	hyb_hope_make_trie(&hope->trie, iv, values, memory);
	memory->release(memory->context, values);
}

/* The last interval whose code, followed by zeroes, is not above `bits`. */
static uint32_t
interval_at(const HybHope *hope, uint32_t bits)
{
	uint32_t	low = 0;
	uint32_t	high = hope->entries;

	while (low < high)
	{
		uint32_t	middle = (low + high) / 2;

		if (hope->aligned[middle] <= bits)
			low = middle + 1;
		else
			high = middle;
	}
	/* HYB_HOPE_NONE for bits below all codes */
	HYB_ASSERT(low == 0 || hope->aligned[low - 1] <= bits);
	return low - 1;
}

/* Is this the interval whose code these bits begin with? */
static bool
code_begins(const HybHope *hope, uint32_t i, uint32_t bits)
{
	return i != HYB_HOPE_NONE &&
		(bits ^ hope->aligned[i]) >> (32 - hope->lengths[i + 1]) == 0;
}

static void
make_decode_table(HybHope *hope)
{
	const unsigned width = HYB_HOPE_DECODE_BITS;

	for (uint32_t v = 0; v < UINT32_C(1) << width; v++)
	{
		HybHopeDecode *d = &hope->decode[v];
		uint32_t	bits = v << (32 - width);
		unsigned	used = 0;
		unsigned	symlen = 0;
		uint8_t		bytes[4] = {0};

		d->bytes = interval_at(hope, bits);
		d->len = d->symlen = 0;
		for (;;)
		{
			uint32_t	i = interval_at(hope, bits << used);
			unsigned	len;

			/* bits after the width are zero here, but may not be in a code */
			if (!code_begins(hope, i, bits << used) ||
				used + hope->lengths[i + 1] > width)
				break;
			len = hope->intervals.symlen[i];
			if (symlen + len > sizeof(bytes))
			{
				if (symlen == 0)
				{
					d->bytes = hope->intervals.off[i];
					d->len = hope->lengths[i + 1];
					d->symlen = (uint8_t) len;
				}
				break;
			}
			memcpy(bytes + symlen, hope->intervals.bytes + hope->intervals.off[i], len);
			symlen += len;
			used += hope->lengths[i + 1];
		}
		if (symlen > 0)
		{
			HYB_ASSERT(used <= width && symlen <= sizeof(bytes));
			memcpy(&d->bytes, bytes, sizeof(bytes));
			d->len = (uint8_t) used;
			d->symlen = (uint8_t) symlen;
		}
	}
}

/*
 * Complete a dictionary whose scheme, entries, lengths and intervals are set.
 * False if they do not fit each other.
 */
static bool
complete(HybHope *hope)
{
	const HybHopeMemory *memory = &hope->memory;
	uint32_t	n = hope->entries;
	uint32_t   *codes = memory->alloc(memory->context, ((size_t) n + 1) * sizeof(uint32_t));
	bool		sound;

	sound = hyb_hope_codes(hope->lengths, n + 1, codes);
	hope->shortest = HYB_HOPE_MAX_CODE;
	for (uint32_t i = 1; i <= n; i++)
		if (hope->lengths[i] < hope->shortest)
			hope->shortest = hope->lengths[i];
	if (sound)
	{
		hope->aligned = memory->alloc(memory->context, n * sizeof(uint32_t));
		for (uint32_t i = 0; i < n; i++)
			hope->aligned[i] = codes[i + 1] << (32 - hope->lengths[i + 1]);
		make_trie(hope, codes + 1);
		hope->decode = memory->alloc(memory->context,
									 sizeof(HybHopeDecode) << HYB_HOPE_DECODE_BITS);
		make_decode_table(hope);
	}
	memory->release(memory->context, codes);
	return sound;
}

/* ---- building ---- */

HybHope *
hyb_hope_build(HybHopeScheme scheme, uint32_t entries,
			   const HybHopeSample *sample, const HybHopeMemory *memory)
{
	HybHopeIntervals intervals;
	uint64_t   *weights;
	HybHope    *hope;
	bool		sound HYB_ASSERT_ONLY;

	if (entries < HYB_HOPE_MIN_ENTRIES)
		entries = HYB_HOPE_MIN_ENTRIES;
	if (entries > HYB_HOPE_MAX_ENTRIES)
		entries = HYB_HOPE_MAX_ENTRIES;
	hyb_hope_select(scheme, entries, sample, &intervals, &weights, memory);
	entries = intervals.n;

	/* weights[0] is that of the code of zeroes, which is never written */
	weights[0] = 1;
	hope = new_hope(scheme, entries, memory);
	hope->intervals = intervals;
	if (scheme == HYB_HOPE_ALM)
		memset(hope->lengths, (int) hyb_bit_width(entries), entries + 1);
	else
		hyb_hope_limited_lengths(weights, entries + 1, scheme == HYB_HOPE_SINGLE_CHAR ?
								 SINGLE_CHAR_MAX_CODE : HYB_HOPE_MAX_CODE,
								 hope->lengths, memory);
	memory->release(memory->context, weights);
	sound = complete(hope);
	HYB_ASSERT(sound);
	return hope;
}

/* ---- stored form ---- */

/* Writes to out, or only counts if that is NULL. */
typedef struct Writer
{
	uint8_t    *out;
	size_t		size;
} Writer;

static void
put_byte(Writer *w, unsigned b)
{
	if (w->out != NULL)
		w->out[w->size] = (uint8_t) b;
	w->size++;
}

static void
put_number(Writer *w, uint32_t v)
{
	uint8_t		bytes[5];
	size_t		n = (size_t) (hyb_varint_write(bytes, v) - bytes);

	for (size_t i = 0; i < n; i++)
		put_byte(w, bytes[i]);
}

size_t
hyb_hope_store(const HybHope *hope, uint8_t *out)
{
	Writer		writer = {out, 0};
	Writer	   *w = &writer;

	put_byte(w, hope->scheme);
	for (int i = 0; i < 4; i++)
		put_byte(w, (hope->entries >> (8 * i)) & 0xFF);

	for (uint32_t i = 0; i <= hope->entries;)
	{
		uint32_t	start = i;

		while (i <= hope->entries && hope->lengths[i] == hope->lengths[start])
			i++;
		put_byte(w, hope->lengths[start]);
		put_number(w, i - start);
	}

	if (!hyb_hope_is_fixed(hope->scheme))
	{
		const HybHopeIntervals *iv = &hope->intervals;

		for (uint32_t i = 0; i < iv->n; i++)
		{
			const uint8_t *bound = iv->bytes + iv->off[i];
			uint32_t	len = iv->off[i + 1] - iv->off[i];
			uint32_t	shared = 0;
			uint32_t	rest;

			if (i > 0)
			{
				uint32_t	before = iv->off[i] - iv->off[i - 1];

				shared = hyb_common_prefix(bound, iv->bytes + iv->off[i - 1],
										   len < before ? len : before);
			}
			rest = len - shared;
			/* bounds differ, and none ends where the next one begins */
			HYB_ASSERT(rest > 0);
			put_byte(w, (shared < 15 ? shared : 15) << 4 | (rest < 15 ? rest : 15));
			if (shared >= 15)
				put_number(w, shared - 15);
			if (rest >= 15)
				put_number(w, rest - 15);
			for (uint32_t b = shared; b < len; b++)
				put_byte(w, bound[b]);
		}
	}
	return w->size;
}

/*
 * Read the bounds at p into hope->intervals; returns the place after them, or
 * NULL if they are not sound.
 */
static const uint8_t *
load_bounds(HybHope *hope, const uint8_t *p, const uint8_t *end)
{
	const HybHopeMemory *memory = &hope->memory;
	HybHopeIntervals *iv = &hope->intervals;
	uint32_t	n = hope->entries;
	const uint8_t *start = p;
	size_t		total = 0;
	unsigned	expected = 0;

	/* first for the size, then for the bytes */
	for (int pass = 0; pass < 2; pass++)
	{
		uint32_t	before = 0;

		p = start;
		if (pass == 1)
		{
			iv->bytes = memory->alloc(memory->context, total + 16);
			memset(iv->bytes + total, 0, 16);
			iv->off = memory->alloc(memory->context, ((size_t) n + 1) * sizeof(uint32_t));
			iv->symlen = memory->alloc(memory->context, (size_t) n);
			iv->off[0] = 0;
		}
		for (uint32_t i = 0; i < n; i++)
		{
			uint32_t	shared;
			uint32_t	rest;
			uint32_t	more;

			if (p == NULL || p >= end)
				return NULL;
			shared = *p >> 4;
			rest = *p++ & 15;
			if (shared == 15)
			{
				p = hyb_varint_read(p, end, &more);
				if (p == NULL || more > HYB_HOPE_MAX_SYMBOL)
					return NULL;
				shared += more;
			}
			if (rest == 15)
			{
				p = hyb_varint_read(p, end, &more);
				if (p == NULL || more > HYB_HOPE_MAX_SYMBOL)
					return NULL;
				rest += more;
			}
			if (shared > before || shared + rest > HYB_HOPE_MAX_SYMBOL ||
				rest == 0 || rest > (size_t) (end - p))
				return NULL;
			if (pass == 1)
			{
				uint8_t    *bound = iv->bytes + iv->off[i];

				if (i > 0)
					memcpy(bound, iv->bytes + iv->off[i - 1], shared);
				memcpy(bound + shared, p, rest);
				iv->off[i + 1] = iv->off[i] + shared + rest;

				/* every single byte is a bound */
				if (i == 0 || bound[0] != bound[-(ptrdiff_t) before])
				{
					if (bound[0] != expected || shared + rest != 1)
						return NULL;
					expected++;
				}
			}
			p += rest;
			before = shared + rest;
			total += pass == 0 ? before : 0;
		}
	}
	iv->n = n;
	if (expected != 256 || !hyb_hope_make_symbols(iv))
		return NULL;
	return p;
}

HybHope *
hyb_hope_load(const uint8_t *bytes, size_t len, const HybHopeMemory *memory)
{
	const uint8_t *p = bytes;
	const uint8_t *end = bytes + len;
	HybHopeScheme scheme;
	uint32_t	entries;
	HybHope    *hope;

	if (len < 5)
		return NULL;
	scheme = (HybHopeScheme) p[0];
	entries = hyb_load16(p + 1) | hyb_load16(p + 3) << 16;
	p += 5;
	if (hyb_hope_scheme_name(scheme) == NULL ||
		entries < 256 || entries > HYB_HOPE_MAX_ENTRIES ||
		(scheme == HYB_HOPE_SINGLE_CHAR && entries != HYB_HOPE_SINGLE_ENTRIES) ||
		(scheme == HYB_HOPE_DOUBLE_CHAR && entries != HYB_HOPE_DOUBLE_ENTRIES))
		return NULL;

	hope = new_hope(scheme, entries, memory);
	for (uint32_t i = 0; i <= entries && p != NULL;)
	{
		uint32_t	run = 0;
		uint8_t		length;

		if (p >= end)
		{
			p = NULL;
			break;
		}
		length = *p++;
		p = hyb_varint_read(p, end, &run);
		if (p == NULL || run == 0 || run > entries + 1 - i)
		{
			p = NULL;
			break;
		}
		memset(hope->lengths + i, length, run);
		i += run;
	}
	if (p != NULL && hyb_hope_is_fixed(scheme))
		hyb_hope_fixed_intervals(scheme, &hope->intervals, memory);
	else if (p != NULL)
		p = load_bounds(hope, p, end);
	if (p != end || !complete(hope))
	{
		hyb_hope_free(hope);
		return NULL;
	}
	return hope;
}
