/*
 * huffman.c
 *		Canonical Huffman codes over bytes (Huffman 1952; canonical form and
 *		decoding by limits as in Moffat and Turpin, "On the implementation of
 *		minimum redundancy prefix codes", 1997).
 */
#include "algo/huffman.h"

#include <stdlib.h>

#define NSYM	257				/* bytes, and the symbol that is never written */
#define NEVER	256

typedef struct Weight
{
	uint32_t	weight;
	uint16_t	sym;
} Weight;

static int
compare_weight(const void *a, const void *b)
{
	const Weight *x = a;
	const Weight *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	/* NEVER first among equals: it must end up with a longest code */
	return (int) y->sym - (int) x->sym;
}

/*
 * Code lengths by the two-queue method over sorted weights, then cut to
 * HYB_HUFF_MAXLEN: too long codes are shortened, and others lengthened, the
 * rarest first, until the lengths satisfy Kraft's inequality again.
 */
static void
code_lengths(const Weight *w, int n, uint8_t *len)
{
	uint32_t	weight[2 * NSYM];
	int			parent[2 * NSYM];
	int			depth[2 * NSYM];
	int			leaf = 0;
	int			node = n;
	int			last = 2 * n - 2;
	uint32_t	kraft = 0;

	for (int i = 0; i < n; i++)
		weight[i] = w[i].weight;
	for (int next = n; next <= last; next++)
	{
		weight[next] = 0;
		for (int k = 0; k < 2; k++)
		{
			int			pick;

			if (leaf < n && (node >= next || weight[leaf] <= weight[node]))
				pick = leaf++;
			else
				pick = node++;
			weight[next] += weight[pick];
			parent[pick] = next;
		}
	}
	HYB_ASSERT(leaf == n && node == last);
	depth[last] = 0;
	for (int i = last - 1; i >= 0; i--)
		depth[i] = depth[parent[i]] + 1;

	for (int i = 0; i < n; i++)
	{
		len[i] = (uint8_t) (depth[i] < HYB_HUFF_MAXLEN ? depth[i] : HYB_HUFF_MAXLEN);
		kraft += (uint32_t) HYB_HUFF_TABLE >> len[i];
	}
	for (int i = 0; kraft > HYB_HUFF_TABLE; i = (i + 1) % n)
	{
		while (len[i] < HYB_HUFF_MAXLEN && kraft > HYB_HUFF_TABLE)
		{
			kraft -= (uint32_t) HYB_HUFF_TABLE >> (len[i] + 1);
			len[i]++;
		}
	}
	for (int i = 0; i < n; i++)
		HYB_ASSERT(len[i] >= 1 && len[i] <= HYB_HUFF_MAXLEN);
}

bool
hyb_huff_build(HybHuffEncoder *enc, const uint32_t freq[256])
{
	Weight		w[NSYM];
	uint8_t		len[NSYM];
	uint32_t	count[HYB_HUFF_MAXLEN + 2] = {0};
	uint32_t	next[HYB_HUFF_MAXLEN + 2];
	int			n = 0;
	unsigned	longest = 0;

	memset(enc->len, 0, sizeof(enc->len));
	w[n].weight = 0;
	w[n++].sym = NEVER;
	for (int i = 0; i < 256; i++)
	{
		if (freq[i] > 0)
		{
			w[n].weight = freq[i];
			w[n++].sym = (uint16_t) i;
		}
	}
	if (n == 1)
		return false;
	qsort(w, n, sizeof(Weight), compare_weight);
	code_lengths(w, n, len);

	for (int i = 0; i < n; i++)
	{
		if (len[i] > longest)
			longest = len[i];
		if (w[i].sym != NEVER)
		{
			enc->len[w[i].sym] = len[i];
			count[len[i]]++;
		}
	}
	/* the symbol that is never written needs the last of the longest codes */
	if (len[0] != longest)
		return false;

	next[0] = 0;
	count[0] = 0;
	for (unsigned l = 1; l <= HYB_HUFF_MAXLEN; l++)
	{
		next[l] = (next[l - 1] + count[l - 1]) << 1;
		if (count[l] > 255)
			return false;
	}
	for (int i = 0; i < 256; i++)
	{
		if (enc->len[i] > 0)
		{
			enc->code[i] = (uint16_t) next[enc->len[i]]++;
			/* a run of ones is left for the padding */
			HYB_ASSERT(enc->code[i] < (1u << enc->len[i]) - 1);
		}
	}
	while (longest > 1 && count[longest] == 0)
		longest--;
	enc->size = 1 + longest + (uint32_t) (n - 1);
	return true;
}

uint8_t *
hyb_huff_write_code(const HybHuffEncoder *enc, uint8_t *out)
{
	unsigned	longest = 0;
	uint8_t    *start HYB_ASSERT_ONLY = out;

	for (int i = 0; i < 256; i++)
		longest = enc->len[i] > longest ? enc->len[i] : longest;
	*out++ = (uint8_t) longest;
	memset(out, 0, longest);
	for (int i = 0; i < 256; i++)
	{
		if (enc->len[i] > 0)
			out[enc->len[i] - 1]++;
	}
	out += longest;
	for (unsigned l = 1; l <= longest; l++)
	{
		for (int i = 0; i < 256; i++)
		{
			if (enc->len[i] == l)
				*out++ = (uint8_t) i;
		}
	}
	HYB_ASSERT(longest <= HYB_HUFF_MAXLEN && out == start + enc->size);
	return out;
}

uint8_t *
hyb_huff_encode(const HybHuffEncoder *enc, const uint8_t *s, uint32_t n,
				uint8_t *out)
{
	uint64_t	acc = 0;
	unsigned	nbits = 0;

	for (uint32_t i = 0; i < n; i++)
	{
		unsigned	c = s[i];
		unsigned	len = enc->len[c];

		/* the code is of all bytes of the strings that it was built from */
		HYB_ASSERT(len > 0);
		acc = (acc << len) | enc->code[c];
		nbits += len;
		while (nbits >= 8)
		{
			nbits -= 8;
			*out++ = (uint8_t) (acc >> nbits);
		}
	}
	if (nbits > 0)
		*out++ = (uint8_t) ((acc << (8 - nbits)) | (0xFFu >> nbits));
	return out;
}

/* Length << 8 | byte for each string of HYB_HUFF_SHORT bits; 0 where no code ends. */
static void
fill_quick(HybHuffDecoder *dec)
{
	unsigned	at = 0;
	unsigned	index = 0;

	for (unsigned l = dec->minlen; l <= dec->maxlen && l <= HYB_HUFF_SHORT; l++)
	{
		unsigned	step = 1u << (HYB_HUFF_SHORT - l);
		unsigned	limit = dec->limit[l] >> (HYB_HUFF_MAXLEN - HYB_HUFF_SHORT);

		while (at < limit)
		{
			uint16_t	entry = (uint16_t) ((l << 8) | dec->symbols[index++]);

			for (unsigned i = 0; i < step; i++)
				dec->quick[at++] = entry;
		}
	}
	HYB_ASSERT(at <= (1u << HYB_HUFF_SHORT));
	while (at < (1u << HYB_HUFF_SHORT))
		dec->quick[at++] = 0;
}

const uint8_t *
hyb_huff_open(HybHuffDecoder *dec, const uint8_t *p, const uint8_t *end)
{
	unsigned	code = 0;
	unsigned	index = 0;

	if (p >= end)
		return NULL;
	dec->maxlen = *p++;
	if (dec->maxlen < 1 || dec->maxlen > HYB_HUFF_MAXLEN ||
		(size_t) (end - p) < dec->maxlen)
		return NULL;
	dec->minlen = 1;
	for (unsigned l = 1; l <= dec->maxlen; l++)
	{
		unsigned	count = *p++;

		code <<= 1;
		dec->offset[l] = (int16_t) ((int) index - (int) code);
		code += count;
		index += count;
		/* the last code of all ones must stay free */
		if (code >= (1u << l))
			return NULL;
		dec->limit[l] = (uint16_t) (code << (HYB_HUFF_MAXLEN - l));
		if (index == 0)
			dec->minlen = l + 1;
	}
	if (index == 0 || index > 256 || (size_t) (end - p) < index)
		return NULL;
	dec->symbols = p;
	fill_quick(dec);
	return p + index;
}

#define ENTRY_BITS(e)		((e) >> 26)
#define ENTRY_COUNT(e)		(((e) >> 24) & 3)
#define ENTRY_FIRST_BITS(e)	(((e) >> 20) & 15)

/*
 * Fill the 2^bits elements from `table` on, whose indexes differ in their last
 * `bits` bits only; `first` is the element of the code that the others are, or
 * 0 if there is none.
 */
static void
fill_range(const HybHuffDecoder *dec, HybHuffEntry *table, unsigned bits,
		   HybHuffEntry first)
{
	unsigned	at = 0;
	unsigned	index = 0;

	for (unsigned l = dec->minlen; l <= dec->maxlen && l <= bits; l++)
	{
		unsigned	step = 1u << (bits - l);
		unsigned	limit = dec->limit[l] >> (HYB_HUFF_MAXLEN - bits);

		for (; at < limit; at += step)
		{
			HybHuffEntry symbol = dec->symbols[index++];

			if (first == 0)
				fill_range(dec, table + at, bits - l,
						   l << 26 | 1 << 24 | l << 20 | symbol);
			else
			{
				HybHuffEntry both = (first & 0x00F000FF) | symbol <<8 | 2 << 24 |
					(ENTRY_BITS(first) + l) << 26;

				for (unsigned i = 0; i < step; i++)
					table[at + i] = both;
			}
		}
	}
	HYB_ASSERT(at <= (1u << bits));
	while (at < (1u << bits))
		table[at++] = first;
}

void
hyb_huff_fill_table(const HybHuffDecoder *dec, HybHuffEntry *table)
{
	fill_range(dec, table, HYB_HUFF_MAXLEN, 0);
}

static uint32_t
decode_without_table(const HybHuffDecoder *dec, const uint8_t *p, uint32_t n,
					 uint8_t *out, uint32_t max)
{
	HybHuffReader r;
	uint32_t	k = 0;

	hyb_huff_reader_init(&r, p, n);
	while (k < max)
	{
		int			c = hyb_huff_next(dec, &r);

		if (c < 0)
			break;
		out[k++] = (uint8_t) c;
	}
	return k;
}

/* An element, one of five, in a loop that the compiler is not asked to unroll. */
#define DECODE_ONE \
	do { \
		entry = table[word >> (64 - HYB_HUFF_MAXLEN)]; \
		hyb_store16(out + k, entry & 0xFFFF); \
		word <<= ENTRY_BITS(entry); \
		pos += ENTRY_BITS(entry); \
		k += ENTRY_COUNT(entry); \
	} while (0)

uint32_t
hyb_huff_decode(const HybHuffDecoder *dec, const HybHuffEntry *table,
				const uint8_t *p, uint32_t n, uint8_t *out, uint32_t max)
{
	uint32_t	end = 8 * n;
	uint32_t	pos = 0;
	uint32_t	k = 0;

	if (table == NULL)
		return decode_without_table(dec, p, n, out, max);

	/*
	 * At least 57 bits are in a word: five elements, which take 55 at most.
	 * While five elements are left, and space for two bytes of each, one
	 * question tells whether there was a code at each place.  Where there was
	 * none, the next one is looked for at the same place.
	 */
	while (end - pos >= 5 * HYB_HUFF_MAXLEN && max - k >= 10)
	{
		uint64_t	word = hyb_load64be(p + (pos >> 3)) << (pos & 7);
		HybHuffEntry entry;

		DECODE_ONE;
		DECODE_ONE;
		DECODE_ONE;
		DECODE_ONE;
		DECODE_ONE;
		if (entry == 0)
			return k;
	}
	while (k < max && pos < end)
	{
		uint64_t	word = hyb_load64be(p + (pos >> 3)) << (pos & 7);

		for (int i = 0; i < 5 && k < max; i++)
		{
			HybHuffEntry entry = table[word >> (64 - HYB_HUFF_MAXLEN)];
			unsigned	len = ENTRY_BITS(entry);

			if (ENTRY_COUNT(entry) == 2 && pos + len <= end && max - k >= 2)
				out[k + 1] = (uint8_t) (entry >> 8);
			else
			{
				len = ENTRY_FIRST_BITS(entry);
				if (len == 0 || pos + len > end)
					return k;
			}
			out[k] = (uint8_t) entry;
			k += len == ENTRY_BITS(entry) ? ENTRY_COUNT(entry) : 1;
			pos += len;
			word <<= len;
		}
	}
	return k;
}
