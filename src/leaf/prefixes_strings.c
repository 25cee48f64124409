/*
 * prefixes_strings.c
 *		Reading leaves of prefixes that are byte strings (docs/trie.md).
 *
 * A row's prefix has so many bytes as tell it from its neighbours, and some more.
 * Strings ascend and none begins another one, so a key begins with one of them at
 * most: the last one that does not lie above the key.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "algo/frontcode.h"
#include "leaf/columnar.h"
#include "leaf/leaf.h"
#include "leaf/prefixes.h"

typedef struct Strings
{
	HybFront	front;
	HybFrontCursor cursor;		/* of this page if `at_page`; buffers outlive
								 * it */
	bool		at_page;
	HybLeaf		stored;			/* row starts and TIDs, as a columnar leaf */
	const uint8 *fingerprints;	/* NULL: there are none */
} Strings;

static inline Strings *
leaf_strings(const HybLeaf *leaf)
{
	return leaf->own[HYB_LAYOUT_STRINGS - 1];
}

const HybKeyDesc *
hyb_strings_columns(void)
{
	static const HybKeyDesc none = {.all_mem = true,.exact = true};

	return &none;
}

/* ---- opening ---- */

static void
init_strings(HybLeaf *leaf)
{
	Strings    *s = leaf_strings(leaf);

	memset(s, 0, sizeof(Strings));
	hyb_prefixes_init(&s->stored, (char *) s + MAXALIGN(sizeof(Strings)),
					  hyb_strings_columns());
}

static const uint8 *
open_strings(HybLeaf *leaf, const uint8 *p, const uint8 *end)
{
	Strings    *s = leaf_strings(leaf);

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
	p = hyb_prefixes_open(&s->stored, leaf, p, end);

	/*
	 * a fingerprint is read as part of 8 bytes: behind the last ones is the
	 * opaque
	 */
	if (p >= end || (*p != 0 && *p != HYB_FINGERPRINT_BITS) ||
		end - (p + 1) < HYB_FINGERPRINTS_SIZE(*p, leaf->nitems))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "The fingerprints of a leaf's keys are malformed.");
	s->fingerprints = *p > 0 ? p + 1 : NULL;
	return p + 1 + HYB_FINGERPRINTS_SIZE(*p, leaf->nitems);
}

static void
close_strings(HybLeaf *leaf)
{
	hyb_leaf_free_strings(&leaf_strings(leaf)->cursor);
}

/* ---- rows ---- */

/* The prefix of a row; it holds until the next one. */
static const uint8 *
row_string(HybLeaf *leaf, int row, uint32 *len)
{
	Strings    *s = leaf_strings(leaf);

	if (!s->at_page)
	{
		hyb_leaf_need_strings(leaf, &s->cursor, s->front.coded);
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

static int
strings_row_start(const HybLeaf *leaf, int row)
{
	return hyb_columnar_layout.row_start(&leaf_strings(leaf)->stored, row);
}

static void
strings_row_starts(const HybLeaf *leaf, int row, int n, int *starts)
{
	hyb_columnar_layout.row_starts(&leaf_strings(leaf)->stored, row, n, starts);
}

static int
strings_row_of_item(const HybLeaf *leaf, int item)
{
	return hyb_columnar_layout.row_of_item(&leaf_strings(leaf)->stored, item);
}

static void
strings_tids(const HybLeaf *leaf, int item, int n, ItemPointerData *tids)
{
	hyb_columnar_tids(&leaf_strings(leaf)->stored, item, n, tids);
}

static int
strings_search_tid(const HybLeaf *leaf, int lo, int hi, const ItemPointerData *tid)
{
	return hyb_columnar_search_tid(&leaf_strings(leaf)->stored, lo, hi, tid);
}

/* ---- fingerprints ---- */

static inline uint8
stored_fingerprint(const uint8 *fingerprints, int item)
{
	return (uint8) hyb_bits_get(fingerprints, (uint64) item * HYB_FINGERPRINT_BITS,
								HYB_FINGERPRINT_BITS);
}

uint8
hyb_strings_fingerprint(const HybLeaf *leaf, const HybBuf *prefix, uint32 bits, int item)
{
	const uint8 *fingerprints = leaf_strings(leaf)->fingerprints;

	if (fingerprints != NULL)
		return stored_fingerprint(fingerprints, item);
	if (!hyb_prefix_is_whole(leaf->desc, prefix->data, bits))
		hyb_corrupted(leaf->rel, leaf->blkno,
					  "The leaf lacks the fingerprints of keys that it does not have.");
	return hyb_fingerprint(hyb_byte_hash(prefix->data, prefix->len));
}

static bool
strings_may_have(const HybLeaf *leaf, int item, uint64 hash)
{
	const uint8 *fingerprints = leaf_strings(leaf)->fingerprints;

	return fingerprints == NULL ||
		stored_fingerprint(fingerprints, item) == hyb_fingerprint(hash);
}

/* ---- searching ---- */

static bool
find_string_rows(HybLeaf *leaf, const HybPos *pos, HybRowRange *rows)
{
	const HybFront *front = &leaf_strings(leaf)->front;
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
			return false;		/* as a separator is in its last byte: it is
								 * the least key of the row */
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

/* ---- verification ---- */

static char *
verify_strings(HybLeaf *leaf)
{
	ItemPointerData *tids = palloc(sizeof(ItemPointerData) * leaf->nitems);
	HybBuf		before = {0};
	char	   *wrong = NULL;

	if (hyb_leaf_row_start(leaf, 0) != 0)
		wrong = pstrdup("first row does not start at the first item");
	for (int row = 0; row < leaf->nrows && wrong == NULL; row++)
	{
		uint32		len;
		const uint8 *bytes = row_string(leaf, row, &len);

		if (row > 0 && memcmp(before.data, bytes, Min(before.len, len)) >= 0)
			wrong = psprintf("rows %d and %d have keys in common, or do not ascend",
							 row - 1, row);
		else
			wrong = hyb_prefixes_verify_tids(leaf, row, tids);
		before.len = 0;
		hyb_buf_append(&before, bytes, len);
	}
	hyb_buf_free(&before);
	pfree(tids);
	return wrong;
}

const HybLeafLayout hyb_strings_layout = {
	.number = HYB_LAYOUT_STRINGS,
	.keeps_keys = false,
	.size = MAXALIGN(sizeof(Strings)) + HYB_PREFIXES_STORED(0),
	.init = init_strings,
	.open = open_strings,
	.close = close_strings,
	.find = find_string_rows,
	.search_tid = strings_search_tid,
	.prefix = strings_prefix,
	.may_have = strings_may_have,
	.row_start = strings_row_start,
	.row_starts = strings_row_starts,
	.row_of_item = strings_row_of_item,
	.tids = strings_tids,
	.verify = verify_strings,
	.create = hyb_strings_create,
	.free = hyb_strings_free,
	.add = hyb_prefixes_add,
	.add_from = hyb_prefixes_add_from,
	.plan = hyb_strings_plan,
	.write = hyb_strings_write,
	.separate = hyb_prefixes_separate,
	.drop = hyb_prefixes_drop
};
