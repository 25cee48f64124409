/*
 * inner.c
 *		Internal nodes of the static stage.
 *
 * A node is an array of uint16 offsets to child entries, followed by the
 * entries: block (4), stamp (8), key length (2), whole columns (1), tie (1),
 * TID (6, only if tie is HYB_AT), key.  With HYB_INNER_FILTERS, which only nodes
 * of level 1 have, there follow after the tie: rent (2), filter page (4), image (2).
 * Separators are truncated to what tells two leaves apart (hyb_separator), so
 * a node holds some hundreds.
 */
#include "base/compat.h"

#include "base/memory.h"
#include "port/pg_bswap.h"
#include "store/inner.h"
#include "utils/rel.h"

#define CHILD_FIXED_SIZE	(4 + 8 + 2 + 1 + 1)
#define CHILD_FILTER_SIZE	(2 + 4 + 2)

#ifdef USE_ASSERT_CHECKING

void
hyb_child_assert_valid(const HybChild *child)
{
	if (hyb_is_damaged())
		return;
	Assert(child->block != HYB_METAPAGE_BLKNO);
	Assert(child->low.len <= HYB_MAX_ENTRY_SIZE);
	Assert(child->low.tie >= HYB_BEFORE && child->low.tie <= HYB_AFTER);
	Assert(child->low.len > 0 || child->low.ncols == 0);
	/* a filter is on a page, or not written yet */
	Assert(!BlockNumberIsValid(child->filter_block) || child->filter_image == NULL);
	Assert((child->filter_image == NULL) == (child->filter_size == 0) ||
		   BlockNumberIsValid(child->filter_block));
}

void
hyb_child_list_assert_valid(const HybChildList *list, const HybKeyDesc *desc)
{
	Assert(list->n >= 0 && list->n <= list->alloc);
	for (int i = 0; i < list->n && !hyb_is_damaged(); i++)
	{
		hyb_child_assert_valid(&list->children[i]);
		/* a comparison function may throw, or take its time */
		Assert(i == 0 || !desc->all_mem ||
			   hyb_pos_compare(desc, &list->children[i - 1].low,
							   &list->children[i].low) < 0);
	}
}

void
hyb_inner_assert_valid(Page page)
{
	Size		used = ((PageHeader) page)->pd_lower - SizeOfPageHeaderData;
	int			n = hyb_inner_count(page);
	uint16		last = 0;

	hyb_page_assert_valid(page);
	Assert(n > 0 && n * sizeof(uint16) < used && used <= HYB_PAGE_CAPACITY);
	for (int i = 0; i < n; i++)
	{
		uint16		slot;

		/* entries follow the slots, in order */
		memcpy(&slot, PageGetContents(page) + i * sizeof(uint16), sizeof(uint16));
		Assert(i == 0 ? slot == n * sizeof(uint16) : slot > last);
		last = slot;
	}
	Assert(last < used);
}

#endif							/* USE_ASSERT_CHECKING */

void
hyb_child_list_add(HybChildList *list, const HybChild *child)
{
	HybChild   *copy;

	Assert(list->n >= 0 && list->n <= list->alloc);
	hyb_child_assert_valid(child);
	if (list->n == list->alloc)
	{
		list->alloc = Max(64, list->alloc * 2);
		list->children = hyb_grow(CurrentMemoryContext, list->children,
								  list->alloc, sizeof(HybChild));
	}
	copy = &list->children[list->n++];
	*copy = *child;
	if (child->low.len > 0)
	{
		uint8	   *key = palloc(child->low.len);

		memcpy(key, child->low.key, child->low.len);
		copy->low.key = key;
	}
	else
		copy->low.key = NULL;
}

/* A child entry up to its separator. */
static inline Size
fixed_size(bool filters)
{
	return CHILD_FIXED_SIZE + (filters ? CHILD_FILTER_SIZE : 0);
}

static inline bool
has_filters(Page page)
{
	return (hyb_page_opaque(page)->flags & HYB_INNER_FILTERS) != 0;
}

static Size
child_entry_size(const HybChild *child, bool filters)
{
	return fixed_size(filters) + child->low.len +
		(child->low.tie == HYB_AT ? sizeof(ItemPointerData) : 0);
}

Size
hyb_inner_child_size(const HybChild *child, bool filters)
{
	return child_entry_size(child, filters) + sizeof(uint16);
}

void
hyb_inner_fill(Page page, const HybChild *children, int n, bool filters)
{
	char	   *content = PageGetContents(page);
	Size		off = n * sizeof(uint16);

	Assert(n > 0 && hyb_page_opaque(page)->kind == HYB_PAGE_INNER);
	Assert(hyb_page_opaque(page)->level == 1 || !filters);
	Assert(hyb_page_opaque(page)->level >= 1);
	for (int i = 0; i < n; i++)
	{
		const HybChild *child = &children[i];
		char	   *p = content + off;
		uint16		slot = (uint16) off;

		Assert(BlockNumberIsValid(child->block) && child->stamp > 0);
		memcpy(content + i * sizeof(uint16), &slot, sizeof(uint16));
		memcpy(p, &child->block, 4);
		memcpy(p + 4, &child->stamp, 8);
		memcpy(p + 12, &child->low.len, 2);
		p[14] = (char) child->low.ncols;
		p[15] = (char) child->low.tie;
		p += CHILD_FIXED_SIZE;
		if (filters)
		{
			memcpy(p, &child->rent, 2);
			memcpy(p + 2, &child->filter_block, 4);
			memcpy(p + 6, &child->filter_slot, 2);
			p += CHILD_FILTER_SIZE;
		}
		if (child->low.tie == HYB_AT)
		{
			memcpy(p, &child->low.tid, sizeof(ItemPointerData));
			p += sizeof(ItemPointerData);
		}
		if (child->low.len > 0)
			memcpy(p, child->low.key, child->low.len);
		off += child_entry_size(child, filters);
		Assert(off <= HYB_PAGE_CAPACITY);
	}
	hyb_page_opaque(page)->count = n;
	if (filters)
		hyb_page_opaque(page)->flags |= HYB_INNER_FILTERS;
	((PageHeader) page)->pd_lower = SizeOfPageHeaderData + off;
	hyb_inner_assert_valid(page);
}

int
hyb_inner_count(Page page)
{
	/* what no int holds is more than any page does: hyb_inner_get will say */
	return (int) Min(hyb_page_opaque(page)->count, PG_INT32_MAX);
}

void
hyb_inner_get(Page page, int i, HybChild *child, Relation rel,
			  BlockNumber blkno)
{
	const char *content = PageGetContents(page);
	Size		used = ((PageHeader) page)->pd_lower - SizeOfPageHeaderData;
	uint16		slot;
	const char *p;
	Size		end;
	bool		filters = has_filters(page);

	Assert(i >= 0);
	if ((Size) (i + 1) * sizeof(uint16) > used)
		hyb_corrupted(rel, blkno, "An internal node has more children than fit its content.");
	memcpy(&slot, content + i * sizeof(uint16), sizeof(uint16));
	end = (Size) slot + fixed_size(filters);
	if (end > used)
		hyb_corrupted(rel, blkno, "A child entry lies outside the content of its internal node.");
	p = content + slot;
	memcpy(&child->block, p, 4);
	memcpy(&child->stamp, p + 4, 8);
	memcpy(&child->low.len, p + 12, 2);
	child->low.ncols = (uint8) p[14];
	child->low.tie = (int8) p[15];
	p += CHILD_FIXED_SIZE;
	child->rent = 0;
	child->filter_block = InvalidBlockNumber;
	child->filter_slot = 0;
	if (filters)
	{
		memcpy(&child->rent, p, 2);
		memcpy(&child->filter_block, p + 2, 4);
		memcpy(&child->filter_slot, p + 6, 2);
		p += CHILD_FILTER_SIZE;
	}
	child->image = NULL;
	child->filter_size = 0;
	child->filter_image = NULL;
	if (child->low.tie == HYB_AT)
		end += sizeof(ItemPointerData);
	end += child->low.len;
	if (end > used)
		hyb_corrupted(rel, blkno, "A separator lies outside the content of its internal node.");
	if (child->low.len > HYB_MAX_ENTRY_SIZE ||
		child->low.ncols > IndexRelationGetNumberOfKeyAttributes(rel))
		hyb_corrupted(rel, blkno, "A separator is longer than any key, or has more columns.");
	if (child->low.tie == HYB_AT)
	{
		memcpy(&child->low.tid, p, sizeof(ItemPointerData));
		p += sizeof(ItemPointerData);
	}
	else
		ItemPointerSetInvalid(&child->low.tid);
	child->low.key = (const uint8 *) p;
}

/* The first 8 bytes of a key as an integer that orders as they do. */
static inline uint64
key_head(const uint8 *key, uint32 len)
{
	uint64		head = 0;

	if (len > 0)
		memcpy(&head, key, Min(len, sizeof(head)));
	return pg_ntoh64(head);
}

/*
 * Compare the separator of child i with pos by the bytes that both have, the
 * first ones as integers, in an index ordered by memcmp.  Returns 0 if those do
 * not tell, or if the entry is not where it should be: hyb_inner_get will say.
 */
static inline int
compare_separator(Page page, int i, Size used, Size fixed, uint64 pos_head,
				  const HybPos *pos)
{
	const char *content = PageGetContents(page);
	uint16		slot;
	uint16		len;
	const char *p;
	uint64		head;
	int			shift;

	memcpy(&slot, content + i * sizeof(uint16), sizeof(uint16));
	if (slot + fixed > used)
		return 0;
	p = content + slot;
	memcpy(&len, p + 12, sizeof(uint16));
	if ((int8) p[15] == HYB_AT)
		p += sizeof(ItemPointerData);
	p += fixed;
	if (p + len > content + used)
		return 0;
	len = Min(len, pos->len);
	if (len == 0)
		return 0;

	/* the page's trailer follows the content, so 8 bytes can be read */
	memcpy(&head, p, sizeof(uint64));
	head = pg_ntoh64(head);
	if (len < sizeof(uint64))
	{
		shift = 64 - 8 * len;
		head >>= shift;
		pos_head >>= shift;
	}
	if (head != pos_head)
		return head < pos_head ? -1 : 1;
	if (len <= sizeof(uint64))
		return 0;
	return memcmp(p + sizeof(uint64), pos->key + sizeof(uint64),
				  len - sizeof(uint64));
}

/*
 * Entry e lies in child i if low(i) <= e < low(i + 1).  The first entry above
 * pos is in the last child whose separator does not lie above pos; the last
 * entry below pos is in the last child whose separator lies below pos.
 */
int
hyb_inner_search(const HybKeyDesc *desc, Page page, const HybPos *pos,
				 bool backward, Relation rel, BlockNumber blkno)
{
	int			low = 0;
	int			high = hyb_inner_count(page) - 1;
	Size		used = ((PageHeader) page)->pd_lower - SizeOfPageHeaderData;
	Size		fixed = fixed_size(has_filters(page));
	uint64		head = key_head(pos->key, pos->len);

	StaticAssertStmt(sizeof(HybPageOpaque) >= sizeof(uint64),
					 "compare_bytes reads up to 8 bytes behind the content");
	if (high < 0)
		hyb_corrupted(rel, blkno, "An internal node has no children.");
	if ((Size) (high + 1) * sizeof(uint16) > used)
		hyb_corrupted(rel, blkno, "An internal node has more children than fit its content.");
	while (low < high)
	{
		int			mid = low + (high - low + 1) / 2;
		int			cmp = 0;

		if (desc->all_mem)
			cmp = compare_separator(page, mid, used, fixed, head, pos);
		if (cmp == 0)
		{
			HybChild	child;

			hyb_inner_get(page, mid, &child, rel, blkno);
			cmp = hyb_pos_compare(desc, &child.low, pos);
		}
		if (cmp < 0 || (cmp == 0 && !backward))
			low = mid;
		else
			high = mid - 1;
	}
	return low;
}
