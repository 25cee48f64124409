/*
 * leaf_check.c
 *		Hints and tombstones of a leaf page, and its verification.
 */
#include "compat.h"

#include "key/bytes.h"
#include "static/leaf.h"
#include "storage/bufmgr.h"

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

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	if (hyb_page_check(ix, buf, HYB_PAGE_LEAF, stamp) &&
		((PageHeader) page)->pd_lower == pd_lower &&
		(hints = hyb_leaf_hints(page)) != NULL)
	{
		for (int i = 0; i < nitems; i++)
		{
			uint8		bit = 1 << (items[i] & 7);

			if ((hints[items[i] >> 3] & bit) != 0)
				continue;
			hints[items[i] >> 3] |= bit;
			changed = true;
		}
		if (changed)
			MarkBufferDirtyHint(buf, true);
	}
	LockBuffer(buf, BUFFER_LOCK_UNLOCK);
}

/*
 * Hints become tombstones of all zeroes first: they are nobody's proof that
 * an entry is dead.  The builder has left room for the bitmap; on a damaged
 * page without it nothing is done, and the range is empty.
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
	*range_off = (uint16) (bitmap - (uint8 *) page + first);
	*range_len = (uint16) (last - first + 1);
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

char *
hyb_leaf_verify(HybLeaf *leaf)
{
	const HybKeyDesc *desc = leaf->desc;
	uint32		content = ((PageHeader) leaf->page)->pd_lower -
		MAXALIGN(SizeOfPageHeaderData);
	HybBuf		prev = {0};
	HybBuf		entry = {0};
	HybValue	prev_vals[INDEX_MAX_KEYS];
	ItemPointerData *tids = palloc(sizeof(ItemPointerData) * leaf->nitems);
	ItemPointerData prev_tid;
	char	   *result = NULL;

	if (leaf->tombstones != NULL)
		content -= hyb_leaf_hint_bytes(leaf->nitems);
	if (leaf->content_len != content)
		return psprintf("content has %u bytes, %u of them used",
						content, leaf->content_len);
	if (hyb_leaf_row_start(leaf, 0) != 0)
		return pstrdup("first row does not start at the first item");

	ItemPointerSetInvalid(&prev_tid);
	for (int row = 0; row < leaf->nrows && result == NULL; row++)
	{
		const HybValue *vals = hyb_leaf_row(leaf, row);
		int			start = hyb_leaf_row_start(leaf, row);
		int			end = hyb_leaf_row_start(leaf, row + 1);
		int			c = -1;
		HybBuf		swap;

		if (end <= start)
		{
			result = psprintf("row %d has no items", row);
			break;
		}
		for (int i = 0; i < desc->natts && result == NULL; i++)
		{
			const char *wrong = check_value(&desc->cols[i], &vals[i]);

			if (wrong != NULL)
				result = psprintf("row %d, column %d: %s", row, i + 1, wrong);
		}
		if (result != NULL)
			break;
		entry.len = 0;
		hyb_key_join(desc, vals, desc->natts, &entry);
		if (entry.len > HYB_MAX_ENTRY_SIZE)
		{
			result = psprintf("row %d has %u bytes", row, entry.len);
			break;
		}

		if (row > 0)
		{
			c = 0;
			for (int i = 0; i < desc->nkeys && c == 0; i++)
				c = hyb_value_compare(&desc->cols[i], &prev_vals[i], &vals[i]);
			if (c > 0)
				result = psprintf("row %d sorts above row %d", row - 1, row);
			else if (prev.len == entry.len &&
					 memcmp(prev.data, entry.data, entry.len) == 0)
				result = psprintf("rows %d and %d are the same", row - 1, row);
		}

		hyb_leaf_tids(leaf, start, end - start, tids);
		for (int i = 0; i < end - start && result == NULL; i++)
		{
			if (i > 0 || c == 0)
			{
				if (ItemPointerCompare(&prev_tid, &tids[i]) >= 0)
					result = psprintf("TIDs of items %d and %d do not ascend",
									  start + i - 1, start + i);
			}
			prev_tid = tids[i];
		}

		swap = prev;
		prev = entry;
		entry = swap;
		if (result == NULL &&
			hyb_key_split(desc, prev.data, prev.len, desc->natts,
						  prev_vals) != prev.len)
			result = psprintf("row %d is malformed", row);
	}

	if (prev.data != NULL)
		pfree(prev.data);
	if (entry.data != NULL)
		pfree(entry.data);
	pfree(tids);
	return result;
}
