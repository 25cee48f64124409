/*
 * prefixes_strings_build.c
 *		Filling leaves of prefixes that are byte strings.
 *
 * What is kept of a row depends on its neighbours alone, not on where its leaf
 * ends, and no two rows share a prefix: a row has several keys only where it had
 * them in the leaf that it comes from.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "base/memory.h"
#include "leaf/prefixes_build.h"
#include "utils/memutils.h"

/*
 * Bytes beyond those that tell a row from its neighbours, so that few new keys
 * fall into a row.
 */
#define SPARE_BYTES		1

/* Where rows of the table are on disk, and merges have to read those that fall together. */
#define SPARE_BYTES_ON_DISK	3

/* Bits that the next byte of a text is worth. */
#define BITS_OF_BYTE	5

/* The strings of the waiting rows. */
typedef struct StringsBuilder
{
	HybPrefixesBuilder rows;
	HybBuf		bytes;
	uint32	   *off;
	uint32	   *len;
	uint32	   *lcp;			/* common prefix with the string before */
	int			rows_alloc;
	HybFrontCode code;
	HybFrontPlan plans[2];
} StringsBuilder;

static inline StringsBuilder *
strings_builder(HybLeafBuilder *base)
{
	return (StringsBuilder *) base;
}

HybLeafBuilder *
hyb_strings_create(const HybIndex *ix)
{
	StringsBuilder *b = palloc0(sizeof(StringsBuilder));

	hyb_prefixes_init_builder(&b->rows, ix, hyb_strings_columns());
	b->rows.has_fingerprints = true;
	hyb_buf_reserve(&b->bytes, BLCKSZ);
	return &b->rows.base;
}

void
hyb_strings_free(HybLeafBuilder *base)
{
	StringsBuilder *b = strings_builder(base);

	hyb_buf_free(&b->bytes);
	if (b->rows_alloc > 0)
	{
		pfree(b->off);
		pfree(b->len);
		pfree(b->lcp);
		pfree(b->code.rest);
	}
	hyb_prefixes_free(base);
}

/* ---- what is stored ---- */

static inline HybFrontInput
prefix_front_input(const StringsBuilder *b)
{
	HybFrontInput in = {b->bytes.data, b->off, b->len, b->lcp};

	return in;
}

static void
grow_string_rows(StringsBuilder *b)
{
	MemoryContext context = b->rows.base.context;
	int			n = b->rows.rows_alloc;

	if (b->rows_alloc >= n)
		return;
	b->off = hyb_grow(context, b->off, n, sizeof(uint32));
	b->len = hyb_grow(context, b->len, n, sizeof(uint32));
	b->lcp = hyb_grow(context, b->lcp, n, sizeof(uint32));
	b->code.rest = hyb_grow(context, b->code.rest, n, sizeof(uint32));
	b->rows_alloc = n;
}

/* Bytes of rows beyond those that tell them apart. */
static uint32
spare_bytes(const HybLeafBuilder *base)
{
	return (base->rows_on_disk ? SPARE_BYTES_ON_DISK : SPARE_BYTES) +
		(hyb_prefixes_growth_bits(base) + BITS_OF_BYTE - 1) / BITS_OF_BYTE;
}

/*
 * Bytes that are kept of a waiting row, with so many to spare: all that are known,
 * where these are a key that several items have, so that nobody has to ask which of
 * them do; and where a byte alone would be left out.
 */
static uint32
kept_bytes(const HybPrefixesBuilder *b, int i, uint32 spare)
{
	const HybPrefixesRow *row = &b->rows[i];
	uint32		known = row->bits / 8;
	uint32		needed = row->shared + 1;
	uint32		n;

	Assert(row->bits % 8 == 0);
	if (row->whole && hyb_prefixes_row_end(b, i) - row->start > 1)
		return known;
	if (i + 1 < b->nrows)
		needed = Max(needed, b->rows[i + 1].shared + 1);
	else if (b->base.before.len > 0)
		needed = Max(needed, hyb_prefixes_bits_at_fence(hyb_prefixes_row_bytes(b, row), row->bits,
														&b->base.before));
	n = (needed + 7) / 8 + spare;
	return n + 1 >= known ? known : n;
}

/*
 * Make the strings of all waiting rows, unless they have been made.  What the last
 * one keeps depends on whether it is known what is behind it.
 */
static void
fill_strings(StringsBuilder *b)
{
	HybPrefixesBuilder *t = &b->rows;
	int			fenced = t->base.before.len > 0;
	uint32		spare = spare_bytes(&t->base);
	HybFrontInput in;

	if (t->filled == fenced)
		return;
	grow_string_rows(b);
	hyb_columnar_room(t->stored, t->nrows, t->base.nitems);
	b->bytes.len = 0;
	for (int i = 0; i < t->nrows; i++)
	{
		const HybPrefixesRow *row = &t->rows[i];

		b->off[i] = b->bytes.len;
		b->len[i] = kept_bytes(t, i, spare);
		b->lcp[i] = row->shared / 8;
		hyb_buf_append(&b->bytes, hyb_prefixes_row_bytes(t, row), b->len[i]);
		t->stored->row_start[i] = row->start;
	}
	t->stored->nrows = t->nrows;
	hyb_prefixes_fill_tids(t, t->base.nitems);
	t->stored->prepared = 0;
	in = prefix_front_input(b);
	hyb_front_prepare(&in, t->nrows, true, &b->code);
	t->filled = fenced;
}

/* ---- planning ---- */

/*
 * May whole keys, column by column, be smaller?  Not of a single column, of which
 * a prefix is a part.
 */
static bool
may_keep_keys(const HybPrefixesBuilder *b, int nrows)
{
	if (b->base.desc->nkeys == 1)
		return false;
	for (int i = 0; i < nrows; i++)
		if (!b->rows[i].whole)
			return false;
	return true;
}

/*
 * Bits of a fingerprint in a leaf of so many rows: none if there is nothing that
 * their prefixes do not say.
 */
static int
fingerprint_bits(const StringsBuilder *b, int nrows)
{
	for (int i = 0; i < nrows; i++)
		if (!b->rows.rows[i].whole || 8 * b->len[i] < b->rows.rows[i].bits)
			return HYB_FINGERPRINT_BITS;
	return 0;
}

void
hyb_strings_plan(HybLeafBuilder *base, int slot)
{
	StringsBuilder *b = strings_builder(base);
	HybPrefixesBuilder *t = &b->rows;
	HybLeafPlan *plan = &base->plans[slot];
	HybLeafPlan *stored = &t->stored->base.plans[slot];
	HybFrontInput in;
	bool		split;
	int			nrows = hyb_prefixes_whole_rows(t, plan->nitems, &split);

	if (!split)
		plan->nitems = hyb_prefixes_row_end(t, nrows - 1);
	if (plan->nitems > HYB_LEAF_MAX_ITEMS)
		hyb_leaf_builder_no_room(base);
	fill_strings(b);
	in = prefix_front_input(b);
	hyb_front_plan(&in, &b->code, nrows, &b->plans[slot]);
	stored->nitems = plan->nitems;
	hyb_columnar_plan(&t->stored->base, slot);
	plan->nrows = nrows;
	plan->size = hyb_varint_size(b->plans[slot].prefix_len) + b->plans[slot].prefix_len +
		b->plans[slot].size + stored->size +
		1 + HYB_FINGERPRINTS_SIZE(fingerprint_bits(b, nrows), plan->nitems);

	if (may_keep_keys(t, nrows))
	{
		HybLeafPlan prefixes = *plan;

		hyb_prefixes_plan_kept(t, slot);
		if (plan->size > prefixes.size)
			*plan = prefixes;
	}
}

/* Fingerprints of the first items, the lowest bits of a byte first. */
static uint8 *
write_fingerprints(const StringsBuilder *b, const HybLeafPlan *plan, uint8 *out)
{
	int			bits = fingerprint_bits(b, plan->nrows);
	uint32		word = 0;
	int			n = 0;

	*out++ = (uint8) bits;
	for (int i = 0; i < plan->nitems && bits > 0; i++)
	{
		word |= (uint32) b->rows.stored_fingerprints[i] << n;
		n += bits;
		if (n >= 8)
		{
			*out++ = (uint8) word;
			word >>= 8;
			n -= 8;
		}
	}
	if (n > 0)
		*out++ = (uint8) word;
	return out;
}

uint8 *
hyb_strings_write(HybLeafBuilder *base, int slot, uint8 *out)
{
	StringsBuilder *b = strings_builder(base);
	const HybFrontPlan *plan = &b->plans[slot];
	HybFrontInput in;

	if (base->plans[slot].layout == HYB_LAYOUT_COLUMNAR)
		return hyb_prefixes_write_kept(&b->rows, slot, out);
	Assert(b->rows.filled >= 0);
	in = prefix_front_input(b);
	out = hyb_varint_write(out, plan->prefix_len);
	memcpy(out, b->bytes.data + b->off[0], plan->prefix_len);
	out = hyb_front_write(&in, &b->code, base->plans[slot].nrows, plan,
						  out + plan->prefix_len);
	out = hyb_columnar_write(&b->rows.stored->base, slot, out);
	return write_fingerprints(b, &base->plans[slot], out);
}
