/*
 * filter_prefixes.c
 *		What filters of leaves that do not keep keys are about (docs/filters.md).
 *
 * Prefixes that are numbers have one length, nearly all of them: the filter holds
 * the first bits of keys, so many as these have.  Those that are strings have the
 * length that each needs, and who asks does not know it: the filter holds them as
 * they are, and is asked for the key's beginnings of every length that there is.
 *
 * Other keys often begin with such a string, so the filter has the fingerprint of
 * each entry's key behind it: few of these have that as well.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "filter/filter_prefixes.h"
#include "leaf/prefixes.h"
#include "port/pg_bitutils.h"

/*
 * Rows that lack bits may make a filter of numbers larger by one in so many: with
 * fewer bits it lets pass a little more, which is few beside what it lets pass anyway.
 */
#define SHALLOW_PART	4

/*
 * One string in so many is cut, for there to be fewer lengths: it may begin more
 * keys then than it did.
 */
#define CUT_PART		8

/* The first bits of a key, zeros behind its end, replace what `cut` holds. */
static void
cut_key(const uint8 *key, uint32 len, uint32 bits, HybBuf *cut)
{
	uint32		n = (bits + 7) / 8;

	Assert(bits > 0 && bits <= 8 * HYB_MAX_ENTRY_SIZE);
	cut->len = 0;
	hyb_buf_append(cut, key, Min(len, n));
	while (cut->len < n)
		hyb_buf_append(cut, "", 1);
	if (bits % 8 != 0)
		cut->data[n - 1] &= (uint8) (0xFF << (8 - bits % 8));
}

/* ---- numbers ---- */

/* Bits that the row's entries have, if they may have others behind them. */
static uint32
open_bits(const HybKeyDesc *desc, HybLeaf *leaf, int row, HybBuf *prefix)
{
	uint32		bits = hyb_leaf_prefix(leaf, row, prefix);

	return hyb_prefix_is_whole(desc, prefix->data, bits) ? 8 * HYB_MAX_ENTRY_SIZE : bits;
}

/* A row that lacks so many stands for more strings than a leaf may have more. */
#define TOO_MANY_BITS	16

/*
 * The most bits at which the rows that have fewer do not stand for too many
 * strings of so many.
 */
static uint32
depth_of_numbers(const HybKeyDesc *desc, HybLeaf *leaf, HybBuf *prefix)
{
	uint16		rows[2 * HYB_TRIE_MAX_DEPTH] = {0}; /* by bits, the first
													 * one's in the middle */
	uint32		first = hyb_leaf_prefix(leaf, 0, prefix);
	uint32		most = first;

	StaticAssertStmt(HYB_LEAF_MAX_ITEMS / SHALLOW_PART < 1 << TOO_MANY_BITS, "it lets all pass");
	for (int row = 0; row < leaf->nrows; row++)
	{
		uint32		bits = open_bits(desc, leaf, row, prefix);

		if (bits == 8 * HYB_MAX_ENTRY_SIZE)
		{
			most = Max(most, 8 * prefix->len);
			continue;
		}
		most = Max(most, bits);

		/*
		 * all have the leaf's common bytes, and no more than its depth beyond
		 * them
		 */
		Assert(bits < first + HYB_TRIE_MAX_DEPTH && first < bits + HYB_TRIE_MAX_DEPTH);
		rows[(bits + HYB_TRIE_MAX_DEPTH - first) % lengthof(rows)]++;
	}
	for (uint32 less = 0;; less++)
	{
		uint32		more = 0;

		for (uint32 lacks = less + 1; lacks < HYB_TRIE_MAX_DEPTH && lacks < most; lacks++)
			more += rows[(most - lacks + HYB_TRIE_MAX_DEPTH - first) % lengthof(rows)] *
				(UINT32_C(1) << Min(lacks - less, TOO_MANY_BITS));
		if (more <= leaf->nrows / SHALLOW_PART || most - less == 1)
			return most - less;
	}
}

/* Where what is added goes, and buffers for it. */
typedef struct Adding
{
	HybFilterAdd add;
	void	   *arg;
	HybBuf		prefix;
	HybBuf		cut;
} Adding;

/* All strings of so many bits that keys of a row may begin with. */
static void
add_number(const HybKeyDesc *desc, HybLeaf *leaf, int row, uint32 bits, Adding *to)
{
	HybBuf	   *cut = &to->cut;
	uint32		lacks = bits - Min(open_bits(desc, leaf, row, &to->prefix), bits);

	/* each bit doubles what is added */
	Assert(lacks < TOO_MANY_BITS);
	for (uint64 rest = 0; rest < UINT64CONST(1) << lacks; rest++)
	{
		cut_key(to->prefix.data, to->prefix.len, bits, cut);
		for (uint32 i = 0; i < lacks; i++)
			if ((rest >> i & 1) != 0)
				cut->data[(bits - 1 - i) / 8] |= 0x80 >> (bits - 1 - i) % 8;
		to->add(to->arg, cut);
	}
}

/* ---- strings ---- */

/* From the shortest one's bytes to so many that few have more. */
static HybFilterDepth
depth_of_strings(HybLeaf *leaf, HybBuf *prefix)
{
	uint16		rows[HYB_MAX_ENTRY_SIZE + 1] = {0}; /* by their bytes */
	uint32		least = HYB_MAX_ENTRY_SIZE;
	uint32		most = HYB_MAX_ENTRY_SIZE;
	int			cut = 0;

	for (int row = 0; row < leaf->nrows; row++)
	{
		uint32		len = Min(hyb_leaf_prefix(leaf, row, prefix) / 8,
							  HYB_MAX_ENTRY_SIZE);

		Assert(len > 0);
		rows[len]++;
		least = Min(least, len);
	}
	while (most > least && cut + rows[most] <= leaf->nrows / CUT_PART)
		cut += rows[most--];
	return (HybFilterDepth)
	{
		.bits = 8 * least,.more = most - least,.fingerprints = true
	};
}

/* What is in `cut`, with each of the fingerprints of a set. */
static void
add_cut_prefix(uint32 fingerprints, Adding *to)
{
	for (; fingerprints != 0; fingerprints &= fingerprints - 1)
	{
		uint8		fingerprint = (uint8) pg_rightmost_one_pos32(fingerprints);

		Assert(fingerprint < 1 << HYB_FINGERPRINT_BITS);
		hyb_buf_append(&to->cut, &fingerprint, 1);
		to->add(to->arg, &to->cut);
		to->cut.len--;
	}
}

/* Those of strings that are the same when cut come together: they are to ascend. */
static void
add_strings(HybLeaf *leaf, uint32 most, Adding *to)
{
	uint32		fingerprints = 0;

	StaticAssertStmt(HYB_FINGERPRINT_BITS <= 5, "a set is of 32 bits");
	to->cut.len = 0;
	for (int row = 0; row < leaf->nrows; row++)
	{
		uint32		bits = hyb_leaf_prefix(leaf, row, &to->prefix);
		int			end = hyb_leaf_row_start(leaf, row + 1);
		uint32		len = Min(to->prefix.len, most);

		if (len != to->cut.len || memcmp(to->cut.data, to->prefix.data, len) != 0)
		{
			add_cut_prefix(fingerprints, to);
			fingerprints = 0;
			to->cut.len = 0;
			hyb_buf_append(&to->cut, to->prefix.data, len);
		}
		for (int item = hyb_leaf_row_start(leaf, row); item < end; item++)
			fingerprints |= UINT32_C(1) <<
				hyb_strings_fingerprint(leaf, &to->prefix, bits, item);
	}
	add_cut_prefix(fingerprints, to);
}

/* ---- both ---- */

bool
hyb_filter_prefixes_depth(const HybKeyDesc *desc, HybLeaf *leaf, HybFilterDepth *depth)
{
	HybBuf		prefix = {0};

	memset(depth, 0, sizeof(HybFilterDepth));
	if (hyb_key_is_fixed(desc))
		depth->bits = depth_of_numbers(desc, leaf, &prefix);
	else
		*depth = depth_of_strings(leaf, &prefix);
	hyb_buf_free(&prefix);
	return depth->more < HYB_FILTER_MAX_LENGTHS;
}

void
hyb_filter_prefixes_add(const HybKeyDesc *desc, HybLeaf *leaf,
						const HybFilterDepth *depth, HybFilterAdd add, void *arg)
{
	Adding		to = {.add = add,.arg = arg};

	if (!hyb_key_is_fixed(desc))
		add_strings(leaf, depth->bits / 8 + depth->more, &to);
	else
		for (int row = 0; row < leaf->nrows; row++)
			add_number(desc, leaf, row, depth->bits, &to);
	hyb_buf_free(&to.prefix);
	hyb_buf_free(&to.cut);
}

/* Ask for the beginnings of a key, of which so many bytes are known. */
static HybFilterAnswer
ask_beginnings(const HybFilterImage *image, Size size, const uint8 *key, uint32 len,
			   const HybPos *like, uint8 fingerprint)
{
	const HybFilterRoutine *routine = hyb_filter_routine(image->kind);
	uint8		space[HYB_MAX_ENTRY_SIZE + 1];
	HybBuf		cut;
	HybPos		pos = *like;
	uint32		most = (uint32) image->bits + 8 * (uint32) image->more;
	uint32		bits = image->bits;
	HybFilterAnswer answer;

	if (most > 8 * HYB_MAX_ENTRY_SIZE)
		return HYB_ANSWER_NO_HEADER;
	hyb_buf_init(&cut, space, sizeof(space), CurrentMemoryContext);
	do
	{
		cut_key(key, len, bits, &cut);
		if (image->fingerprints != 0)
			hyb_buf_append(&cut, &fingerprint, 1);
		pos.key = cut.data;
		pos.len = (uint16) cut.len;
		answer = routine->probe(hyb_filter_body(image), size, &pos, &pos, true);
		bits += 8;
	} while (answer == HYB_ANSWER_NO && bits <= Min(most, 8 * len));
	return answer;
}

HybFilterAnswer
hyb_filter_prefixes_ask(const HybFilterImage *image, Size size, const HybPos *key)
{
	return ask_beginnings(image, size, key->key, key->len, key,
						  hyb_fingerprint(hyb_byte_hash(key->key, key->len)));
}

HybFilterAnswer
hyb_filter_prefixes_has(const HybFilterImage *image, Size size, HybLeaf *leaf,
						int row, int item, HybBuf *prefix)
{
	HybPos		pos = {.tie = HYB_BEFORE,.ncols = (uint8) leaf->desc->nkeys};
	uint32		bits = hyb_leaf_prefix(leaf, row, prefix);
	uint8		fingerprint = 0;

	if (image->fingerprints != 0)
		fingerprint = hyb_strings_fingerprint(leaf, prefix, bits, item);
	return ask_beginnings(image, size, prefix->data, prefix->len, &pos, fingerprint);
}
