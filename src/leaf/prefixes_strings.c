/*
 * prefixes_strings.c
 *		Leaves of prefixes that are byte strings (layout 3).
 *
 * A row's prefix has as many bytes as tell it from its neighbours, and some more.
 * Strings ascend and none begins another one.  So a key begins with one of them
 * at most: the last one that does not lie above the key.
 *
 * What a leaf keeps of a row depends on the row's neighbours, not on where the leaf
 * ends.  No two rows share a prefix.  A row has several keys only if it had them in
 * the leaf that it comes from.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "algo/frontcode.h"
#include "base/memory.h"
#include "leaf/leaf.h"
#include "leaf/prefixes.h"
#include "utils/memutils.h"

/* Bytes of this many fingerprints. */
#define FINGERPRINTS_SIZE(bits, n)	(((Size) (bits) * (n) + 7) / 8)

/*
 * Bytes beyond those that tell a row from its neighbours, so that few new keys
 * fall into a row.  Of a tenth more e-mails, package names and paths 16, 20 and 32 %
 * do; with no byte more 40, 39 and 46 %, with two 9, 15 and 27 %.  A row takes 2.7
 * to 4.5 bytes then.
 */
#define SPARE_BYTES		1

/* The same where merges read rows that fall together from disk. */
#define SPARE_BYTES_ON_DISK	3

/* Bits that the next byte of a text is worth. */
#define BITS_OF_BYTE	5

/* The description of what is stored beside the strings: no columns. */
static const HybKeyDesc no_columns = {.all_mem = true,.exact = true};

/* ---- opening ---- */

static const uint8 *
open_strings(HybLeaf *leaf, const uint8 *p, const uint8 *end)
{
	HybPrefixes *s = leaf->prefixes;

	p = hyb_varint_read(p, end, &s->front.prefix_len);
	if (p == NULL || s->front.prefix_len > HYB_MAX_ENTRY_SIZE ||
		end - p < s->front.prefix_len)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "The common bytes of a leaf's keys are malformed.");
	s->front.prefix = p;
	p = hyb_front_open(&s->front, leaf->nrows, p + s->front.prefix_len, end);
	if (p == NULL)
		hyb_corrupted(leaf->rel, leaf->blkno, "The leaf's prefixes are malformed.");
	s->at_page = false;
	p = hyb_columnar_open(leaf, &no_columns, p, end);

	/* 8 bytes are read for a fingerprint; the special space follows the last */
	if (p >= end || (*p != 0 && *p != HYB_FINGERPRINT_BITS) ||
		end - (p + 1) < FINGERPRINTS_SIZE(*p, leaf->nitems))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "The fingerprints of a leaf's keys are malformed.");
	s->fingerprints = *p > 0 ? p + 1 : NULL;
	return p + 1 + FINGERPRINTS_SIZE(*p, leaf->nitems);
}

/* ---- rows ---- */

/* The prefix of a row; it holds until the next one. */
static const uint8 *
row_string(HybLeaf *leaf, int row, uint32 *len)
{
	HybPrefixes *s = leaf->prefixes;

	if (!s->at_page)
	{
		hyb_leaf_need_strings(leaf, &s->cursor);
		hyb_front_cursor_reset(&s->front, &s->cursor);
		s->at_page = true;
	}
	if (!hyb_front_read(&s->front, &s->cursor, row))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A front-coded string of the leaf is malformed.");
	*len = s->cursor.len;
	return s->cursor.buf;
}

static uint32
strings_prefix(HybLeaf *leaf, int row, HybBuf *prefix)
{
	uint32		len;
	const uint8 *bytes = row_string(leaf, row, &len);

	/* all keys would begin with it */
	if (len == 0)
		hyb_corrupted(leaf->rel, leaf->blkno, "A prefix of the leaf is empty.");
	prefix->len = 0;
	hyb_buf_append(prefix, bytes, len);
	return 8 * len;
}

static bool
strings_may_have(const HybLeaf *leaf, int item, uint64 hash)
{
	return leaf->prefixes->fingerprints == NULL ||
		hyb_stored_fingerprint(leaf->prefixes, item) == hyb_fingerprint(hash);
}

/* ---- searching ---- */

static bool
find_string_rows(HybLeaf *leaf, const HybPos *pos, HybRowRange *rows)
{
	const HybFront *front = &leaf->prefixes->front;
	bool		begins;
	bool		equal;
	uint32		len;
	int			row = hyb_front_search_beginning(front, pos->key, pos->len, &begins, &len);
	bool		at = false;

	rows->lo = rows->hi = row;
	if (row >= 0 && begins)
	{
		/* it begins the position's key, or is it */
		if (pos->tie == HYB_BEFORE &&
			hyb_only_zeros_from(pos->key, pos->len, 8 * len))
			return false;		/* a separator ends with zeros: it is the
								 * least key of the row */
		at = len == pos->len && pos->tie == HYB_AT;
		if (len < pos->len || pos->tie == HYB_AT)
			rows->hi++;
		else if (pos->tie == HYB_AFTER)
			rows->lo = ++rows->hi;
	}
	else if (row >= 0 && pos->tie == HYB_AFTER)
		/* rows from here on may begin with it */
		rows->lo = rows->hi = hyb_front_search(front, row, leaf->nrows, pos->key,
											   pos->len, true, false, &equal);
	if (rows->lo < 0)
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "A front-coded string of the leaf is malformed.");
	return at;
}

/* ---- building ---- */

/* The strings of the waiting rows. */
typedef struct StringsBuilder
{
	HybPrefixesBuilder rows;
	HybWaitingStrings strings;
	int			rows_alloc;
	HybFrontPlan plans[2];
} StringsBuilder;

static inline StringsBuilder *
strings_builder(HybLeafBuilder *base)
{
	return (StringsBuilder *) base;
}

static HybLeafBuilder *
strings_create(const HybIndex *ix)
{
	StringsBuilder *b = palloc0(sizeof(StringsBuilder));

	hyb_prefixes_init_builder(&b->rows, ix, &no_columns);
	b->rows.has_fingerprints = true;
	hyb_buf_reserve(&b->strings.bytes, BLCKSZ);
	return &b->rows.base;
}

/* ---- what is stored ---- */

static uint32
spare_bytes(const HybLeafBuilder *base)
{
	return (base->rows_on_disk ? SPARE_BYTES_ON_DISK : SPARE_BYTES) +
		(hyb_prefixes_growth_bits(base) + BITS_OF_BYTE - 1) / BITS_OF_BYTE;
}

/*
 * Bytes that are kept of a waiting row, with these to spare.  All known bytes are
 * kept where only one would be left out, and of a whole key of several items: no
 * search has to ask then which of these have its key.
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
 * Make the strings of all waiting rows, unless they are made.  What the last one
 * keeps depends on whether the fence behind it is known.
 */
static void
fill_strings(StringsBuilder *b)
{
	HybPrefixesBuilder *t = &b->rows;
	HybWaitingStrings *s = &b->strings;
	int			fenced = t->base.before.len > 0;
	uint32		spare = spare_bytes(&t->base);
	HybStrings	in;

	if (t->filled == fenced)
		return;
	if (b->rows_alloc < t->rows_alloc)
		hyb_waiting_strings_grow(t->base.context, s, t->rows_alloc);
	b->rows_alloc = t->rows_alloc;
	hyb_columnar_room(t->stored, t->nrows, t->base.nitems);
	s->bytes.len = 0;
	for (int i = 0; i < t->nrows; i++)
	{
		const HybPrefixesRow *row = &t->rows[i];

		s->off[i] = s->bytes.len;
		s->len[i] = kept_bytes(t, i, spare);
		s->lcp[i] = row->shared / 8;
		hyb_buf_append(&s->bytes, hyb_prefixes_row_bytes(t, row), s->len[i]);
		t->stored->row_start[i] = row->start;
	}
	t->stored->nrows = t->nrows;
	hyb_prefixes_fill_tids(t, t->base.nitems);
	t->stored->prepared = 0;
	in = hyb_waiting_strings(s, t->nrows);
	hyb_front_prepare(&in, t->nrows, true, &s->code);
	t->filled = fenced;
}

/* ---- planning ---- */

/*
 * May whole keys, column by column, be smaller?  Those of a single column are not:
 * a prefix is a part of it.
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

/* Bits of a fingerprint in a leaf of the first rows: 0 if all prefixes are whole keys. */
static int
fingerprint_bits(const StringsBuilder *b, int nrows)
{
	for (int i = 0; i < nrows; i++)
		if (!b->rows.rows[i].whole || 8 * b->strings.len[i] < b->rows.rows[i].bits)
			return HYB_FINGERPRINT_BITS;
	return 0;
}

static void
strings_plan(HybLeafBuilder *base, int slot)
{
	StringsBuilder *b = strings_builder(base);
	HybPrefixesBuilder *t = &b->rows;
	HybLeafPlan *plan = &base->plans[slot];
	HybLeafPlan *stored = &t->stored->base.plans[slot];
	HybStrings	in;
	bool		split;
	int			nrows = hyb_prefixes_whole_rows(t, plan->nitems, &split);

	if (!split)
		plan->nitems = hyb_prefixes_row_end(t, nrows - 1);
	if (plan->nitems > HYB_LEAF_MAX_ITEMS)
		hyb_leaf_builder_no_room(base);
	fill_strings(b);
	in = hyb_waiting_strings(&b->strings, nrows);
	hyb_front_plan(&in, &b->strings.code, nrows, &b->plans[slot]);
	stored->nitems = plan->nitems;
	hyb_columnar_plan(&t->stored->base, slot);
	plan->nrows = nrows;
	plan->size = hyb_varint_size(b->plans[slot].prefix_len) + b->plans[slot].prefix_len +
		b->plans[slot].size + stored->size +
		1 + FINGERPRINTS_SIZE(fingerprint_bits(b, nrows), plan->nitems);

	if (may_keep_keys(t, nrows))
	{
		HybLeafPlan prefixes = *plan;

		hyb_prefixes_plan_kept(t, slot);
		if (plan->size > prefixes.size)
			*plan = prefixes;
	}
}

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

static uint8 *
strings_write(HybLeafBuilder *base, int slot, uint8 *out)
{
	StringsBuilder *b = strings_builder(base);
	const HybFrontPlan *plan = &b->plans[slot];
	HybStrings	in;

	if (base->plans[slot].layout == HYB_LAYOUT_COLUMNAR)
		return hyb_prefixes_write_kept(&b->rows, slot, out);
	Assert(b->rows.filled >= 0);
	in = hyb_waiting_strings(&b->strings, base->plans[slot].nrows);
	out = hyb_varint_write(out, plan->prefix_len);
	memcpy(out, in.bytes + in.off[0], plan->prefix_len);
	out = hyb_front_write(&in, &b->strings.code, base->plans[slot].nrows, plan,
						  out + plan->prefix_len);
	out = hyb_columnar_write(&b->rows.stored->base, slot, out);
	return write_fingerprints(b, &base->plans[slot], out);
}

const HybLeafLayout hyb_strings_layout = {
	.number = HYB_LAYOUT_STRINGS,
	.open = open_strings,
	.find = find_string_rows,
	.prefix = strings_prefix,
	.may_have = strings_may_have,
	.create = strings_create,
	.add = hyb_prefixes_add,
	.plan = strings_plan,
	.write = strings_write,
	.drop = hyb_prefixes_drop
};
