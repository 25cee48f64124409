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
			enc->code[i] = (uint16_t) next[enc->len[i]]++;
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

		acc = (acc << len) | enc->code[c];
		nbits += len;
		if (nbits >= 32)
		{
			nbits -= 32;
			hyb_store32be(out, acc >> nbits);
			out += 4;
		}
	}
	while (nbits >= 8)
	{
		nbits -= 8;
		*out++ = (uint8_t) (acc >> nbits);
	}
	if (nbits > 0)
		*out++ = (uint8_t) ((acc << (8 - nbits)) | (0xFFu >> nbits));
	return out;
}

/* Length << 8 | byte for each string of `bits` bits; 0 where no code ends. */
static void
fill_table(const HybHuffDecoder *dec, uint16_t *table, unsigned bits)
{
	unsigned	at = 0;
	unsigned	index = 0;

	for (unsigned l = dec->minlen; l <= dec->maxlen && l <= bits; l++)
	{
		unsigned	step = 1u << (bits - l);
		unsigned	limit = dec->limit[l] >> (HYB_HUFF_MAXLEN - bits);

		while (at < limit)
		{
			uint16_t	entry = (uint16_t) ((l << 8) | dec->symbols[index++]);

			for (unsigned i = 0; i < step; i++)
				table[at++] = entry;
		}
	}
	while (at < (1u << bits))
		table[at++] = 0;
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
	fill_table(dec, dec->quick, HYB_HUFF_SHORT);
	return p + index;
}

void
hyb_huff_fill_table(const HybHuffDecoder *dec, uint16_t *table)
{
	fill_table(dec, table, HYB_HUFF_MAXLEN);
}

/* Code i of five, in a loop that the compiler is not asked to unroll. */
#define DECODE_ONE(i) \
	do { \
		entry = table[rest >> (64 - HYB_HUFF_MAXLEN)]; \
		out[k + (i)] = (uint8_t) entry; \
		rest <<= entry >> 8; \
		after += entry >> 8; \
	} while (0)

uint32_t
hyb_huff_decode(const HybHuffDecoder *dec, const uint16_t *table,
				const uint8_t *p, uint32_t n, uint8_t *out, uint32_t max)
{
	uint32_t	end = 8 * n;
	uint32_t	pos = 0;
	uint32_t	k = 0;

	if (table == NULL)
	{
		HybHuffReader r;

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
	while (k < max && pos < end)
	{
		uint64_t	word = hyb_load64be(p + (pos >> 3)) << (pos & 7);

		/*
		 * At least 57 bits are there: five codes.  If all are whole and lie
		 * within the string, as they mostly do, one question tells: where no
		 * code is found the next one is looked for at the same place.
		 */
		if (max - k >= 5)
		{
			uint64_t	rest = word;
			uint32_t	after = pos;
			unsigned	entry;

			DECODE_ONE(0);
			DECODE_ONE(1);
			DECODE_ONE(2);
			DECODE_ONE(3);
			DECODE_ONE(4);
			if (entry >= 1 << 8 && after <= end)
			{
				pos = after;
				k += 5;
				continue;
			}
		}
		for (int i = 0; i < 5 && k < max; i++)
		{
			unsigned	entry = table[word >> (64 - HYB_HUFF_MAXLEN)];
			unsigned	len = entry >> 8;

			pos += len;
			if (len == 0 || pos > end)
				return k;
			word <<= len;
			out[k++] = (uint8_t) entry;
		}
	}
	return k;
}
