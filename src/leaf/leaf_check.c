/*
 * leaf_check.c
 *		Hints and tombstones of a leaf page, its verification, and what a builder
 *		says of damaged ones.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "key/key.h"
#include "leaf/leaf.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

/* ---- hints and tombstones ---- */

/*
 * The bitmap of a page: tombstones end at pd_lower, hints begin there.  NULL
 * if the page's header leaves no room for it.
 */
static uint8 *
page_bitmap(Page page)
{
	PageHeader	header = (PageHeader) page;
	HybPageOpaque *opaque = hyb_page_opaque(page);
	uint32		bytes = hyb_leaf_hint_bytes(opaque->count);
	uint32		start = header->pd_lower;

	if (opaque->flags & HYB_LEAF_TOMBSTONES)
		start -= bytes;
	if (opaque->count > HYB_LEAF_MAX_ITEMS ||
		start < MAXALIGN(SizeOfPageHeaderData) ||
		start + bytes > header->pd_upper ||
		header->pd_upper > header->pd_special)
		return NULL;
	return (uint8 *) page + start;
}

uint8 *
hyb_leaf_hints(Page page)
{
	if (hyb_page_opaque(page)->flags & HYB_LEAF_TOMBSTONES)
		return NULL;
	return page_bitmap(page);
}

double
hyb_leaf_fill(Page page)
{
	const HybPageOpaque *opaque = hyb_page_opaque(page);
	int			bytes = ((PageHeader) page)->pd_lower - (int) SizeOfPageHeaderData;

	/* a tombstone bitmap is part of the content, and takes that room */
	if ((opaque->flags & HYB_LEAF_TOMBSTONES) == 0)
		bytes += hyb_leaf_hint_bytes(opaque->count);
	return Max((double) bytes / HYB_PAGE_CAPACITY,
			   (double) opaque->count / HYB_LEAF_MAX_ITEMS);
}

int
hyb_leaf_count_tombstones(Page page)
{
	const HybPageOpaque *opaque = hyb_page_opaque(page);
	const uint8 *bitmap;
	int			n = 0;

	if ((opaque->flags & HYB_LEAF_TOMBSTONES) == 0 ||
		(bitmap = page_bitmap(page)) == NULL)
		return 0;
	for (int i = 0; i < opaque->count; i++)
		n += (bitmap[i >> 3] >> (i & 7)) & 1;
	return n;
}

void
hyb_leaf_set_hints(const HybIndex *ix, Buffer buf, uint64 stamp,
				   uint16 pd_lower, const int *items, int nitems)
{
	Page		page = BufferGetPage(buf);
	uint8	   *hints;
	bool		changed = false;

	Assert(stamp > 0 && nitems > 0);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	if (hyb_page_check(ix, buf, HYB_PAGE_LEAF, stamp) &&
		((PageHeader) page)->pd_lower == pd_lower &&
		(hints = hyb_leaf_hints(page)) != NULL &&
		HYB_BEGIN_HINTS(buf))
	{
		for (int i = 0; i < nitems; i++)
		{
			uint8		bit = 1 << (items[i] & 7);

			Assert(items[i] >= 0 && items[i] < hyb_page_opaque(page)->count);
			if ((hints[items[i] >> 3] & bit) != 0)
				continue;
			hints[items[i] >> 3] |= bit;
			changed = true;
		}
		HYB_FINISH_HINTS(buf, changed);
	}
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);
}

/*
 * Hints are cleared when they become tombstones: they do not prove that an entry
 * is dead.  The builder has left room for the bitmap.  On a damaged page without
 * it nothing is done, and the range is empty.
 */
void
hyb_leaf_set_tombstones(Page page, const int *items, int nitems,
						uint16 *range_off, uint16 *range_len)
{
	HybPageOpaque *opaque = hyb_page_opaque(page);
	int			bytes = hyb_leaf_hint_bytes(opaque->count);
	uint8	   *bitmap = page_bitmap(page);
	int			first = bytes;
	int			last = -1;

	Assert(CritSectionCount > 0);
	*range_off = 0;
	*range_len = 0;
	if (bitmap == NULL || nitems == 0)
		return;

	if ((opaque->flags & HYB_LEAF_TOMBSTONES) == 0)
	{
		memset(bitmap, 0, bytes);
		((PageHeader) page)->pd_lower += bytes;
		opaque->flags |= HYB_LEAF_TOMBSTONES;
		first = 0;
		last = bytes - 1;
	}
	for (int i = 0; i < nitems; i++)
	{
		int			byte = items[i] >> 3;

		Assert(items[i] >= 0 && items[i] < opaque->count);
		bitmap[byte] |= 1 << (items[i] & 7);
		first = Min(first, byte);
		last = Max(last, byte);
	}
	Assert(first <= last && last < bytes);
	*range_off = (uint16) (bitmap - (uint8 *) page + first);
	*range_len = (uint16) (last - first + 1);
	/* the bitmap is the end of the content now */
	Assert(*range_off + *range_len <= ((PageHeader) page)->pd_lower);
}

/* ---- entries that no leaf can take ---- */

void
hyb_leaf_builder_descends(const HybLeafBuilder *b)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("entries for index \"%s\" do not ascend",
					RelationGetRelationName(b->ix->rel)),
			 errdetail("They come from a damaged leaf, or the operator class is inconsistent."),
			 errhint("Please REINDEX it.")));
}

void
hyb_leaf_builder_no_room(const HybLeafBuilder *b)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("an entry for index \"%s\" does not fit a page",
					RelationGetRelationName(b->ix->rel)),
			 errdetail("It comes from a damaged leaf."),
			 errhint("Please REINDEX it.")));
}

/* ---- verification ---- */

/* Is the value one that an entry can have? */
static const char *
check_value(const HybColumn *att, const HybValue *val)
{
	if (val->isnull)
		return NULL;
	if (att->store == HYB_STORE_INT)
	{
		if (att->width < 8 && (val->ival >> (8 * att->width)) != 0)
			return "integer is out of range";
	}
	else if (att->terminated && val->len > 0 &&
			 memchr(val->ptr, hyb_terminator(att), val->len) != NULL)
		return "string contains its terminator";
	return NULL;
}

typedef struct VerifyState
{
	HybLeaf    *leaf;
	HybBuf		prev;			/* bytes of the row before */
	HybValue	prev_vals[INDEX_MAX_KEYS];	/* its columns, in them */
	HybBuf		entry;			/* bytes of the row at hand */
	uint32		prev_bits;		/* of prefixes */
	ItemPointerData prev_tid;	/* of the item before */
	ItemPointerData *tids;
} VerifyState;

/* Put the row's bytes into state->entry; returns what is wrong with its values. */
static char *
verify_values(VerifyState *state, int row)
{
	const HybKeyDesc *desc = state->leaf->desc;
	const HybValue *vals = hyb_leaf_row(state->leaf, row);

	for (int i = 0; i < desc->natts; i++)
	{
		const char *wrong = check_value(&desc->cols[i], &vals[i]);

		if (wrong != NULL)
			return psprintf("row %d, column %d: %s", row, i + 1, wrong);
	}
	state->entry.len = 0;
	hyb_key_join(desc, vals, desc->natts, &state->entry);
	if (state->entry.len > HYB_MAX_ENTRY_SIZE)
		return psprintf("row %d has %u bytes", row, state->entry.len);
	return NULL;
}

/*
 * Compare the row with the one before it.  *same_key: TIDs ascend across both.
 */
static char *
verify_order(VerifyState *state, int row, bool *same_key)
{
	const HybKeyDesc *desc = state->leaf->desc;
	const HybValue *vals = hyb_leaf_row(state->leaf, row);
	int			c = 0;

	for (int i = 0; i < desc->nkeys && c == 0; i++)
		c = hyb_value_compare(&desc->cols[i], &state->prev_vals[i], &vals[i]);
	*same_key = c == 0;
	if (c > 0)
		return psprintf("row %d sorts above row %d", row - 1, row);
	if (state->prev.len == state->entry.len &&
		memcmp(state->prev.data, state->entry.data, state->entry.len) == 0)
		return psprintf("rows %d and %d are the same", row - 1, row);
	return NULL;
}

/* The same of a row's prefix, into state->entry. */
static char *
verify_prefix(VerifyState *state, int row)
{
	HybLeaf    *leaf = state->leaf;
	uint32		bits = hyb_leaf_prefix(leaf, row, &state->entry);
	char	   *wrong = NULL;

	if (leaf->layout->verify_row != NULL)
		wrong = leaf->layout->verify_row(leaf, row);
	if (wrong == NULL && row > 0)
	{
		uint32		common = hyb_common_bits(state->prev.data, state->prev_bits,
											 state->entry.data, bits);

		/* none begins another one, and the next one has the first 1 */
		if (common == state->prev_bits || common == bits ||
			(state->entry.data[common / 8] & (0x80 >> common % 8)) == 0)
			wrong = psprintf("rows %d and %d have keys in common, or do not ascend",
							 row - 1, row);
	}
	state->prev_bits = bits;
	return wrong;
}

static char *
verify_row(VerifyState *state, int row)
{
	HybLeaf    *leaf = state->leaf;
	int			start = hyb_leaf_row_start(leaf, row);
	int			n = hyb_leaf_row_start(leaf, row + 1) - start;
	bool		same_key = false;
	HybBuf		swap;
	char	   *wrong;

	if (n <= 0)
		return psprintf("row %d has no items", row);
	wrong = leaf->layout->keeps_keys ? verify_values(state, row) :
		verify_prefix(state, row);
	if (wrong == NULL && row > 0 && leaf->layout->keeps_keys)
		wrong = verify_order(state, row, &same_key);
	if (wrong != NULL)
		return wrong;

	hyb_leaf_tids(leaf, start, n, state->tids);
	for (int i = 0; i < n; i++)
	{
		if ((i > 0 || same_key) &&
			ItemPointerCompare(&state->prev_tid, &state->tids[i]) >= 0)
			return psprintf("TIDs of items %d and %d do not ascend",
							start + i - 1, start + i);
		state->prev_tid = state->tids[i];
	}

	swap = state->prev;
	state->prev = state->entry;
	state->entry = swap;
	if (leaf->layout->keeps_keys &&
		hyb_key_split(leaf->desc, state->prev.data, state->prev.len,
					  leaf->desc->natts, state->prev_vals) != state->prev.len)
		return psprintf("row %d is malformed", row);
	return NULL;
}

char *
hyb_leaf_verify(HybLeaf *leaf)
{
	VerifyState state = {.leaf = leaf};
	uint32		content = ((PageHeader) leaf->page)->pd_lower -
		MAXALIGN(SizeOfPageHeaderData);
	char	   *wrong = NULL;

	if (leaf->tombstones != NULL)
		content -= hyb_leaf_hint_bytes(leaf->nitems);
	if (leaf->content_len != content)
		return psprintf("content has %u bytes, %u of them used",
						content, leaf->content_len);
	if (hyb_leaf_row_start(leaf, 0) != 0)
		return pstrdup("first row does not start at the first item");

	state.tids = palloc(sizeof(ItemPointerData) * leaf->nitems);
	for (int row = 0; row < leaf->nrows && wrong == NULL; row++)
		wrong = verify_row(&state, row);
	hyb_buf_free(&state.prev);
	hyb_buf_free(&state.entry);
	pfree(state.tids);
	return wrong;
}
