/*
 * inner.c
 *		Internal nodes of the static stage, and descent through them.
 *
 * A node is an array of uint16 offsets to child entries, followed by the
 * entries: block (4), stamp (8), key length (2), whole columns (1), tie (1),
 * TID (6, only if tie is HYB_AT), key.  With HYB_INNER_FILTERS there follow
 * after the tie: TIDs below the child (8), filter page (4), image (2).
 * Separators are truncated to what tells two leaves apart (hyb_separator), so
 * a node holds some hundreds.
 */
#include "compat.h"

#include "dynamic/slot.h"
#include "page/meta.h"
#include "port/pg_bswap.h"
#include "static/filter.h"
#include "static/grow.h"
#include "static/inner.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#define CHILD_FIXED_SIZE	(4 + 8 + 2 + 1 + 1)
#define CHILD_FILTER_SIZE	(8 + 4 + 2)

void
hyb_child_list_add(HybChildList *list, const HybChild *child)
{
	HybChild   *copy;

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

static Size
child_entry_size(const HybChild *child, bool filters)
{
	return CHILD_FIXED_SIZE + (filters ? CHILD_FILTER_SIZE : 0) + child->low.len +
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

	for (int i = 0; i < n; i++)
	{
		const HybChild *child = &children[i];
		char	   *p = content + off;
		uint16		slot = (uint16) off;

		memcpy(content + i * sizeof(uint16), &slot, sizeof(uint16));
		memcpy(p, &child->block, 4);
		memcpy(p + 4, &child->stamp, 8);
		memcpy(p + 12, &child->low.len, 2);
		p[14] = (char) child->low.ncols;
		p[15] = (char) child->low.tie;
		p += CHILD_FIXED_SIZE;
		if (filters)
		{
			memcpy(p, &child->tids, 8);
			memcpy(p + 8, &child->filter_block, 4);
			memcpy(p + 12, &child->filter_slot, 2);
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
}

int
hyb_inner_count(Page page)
{
	return hyb_page_opaque(page)->count;
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
	bool		filters = (hyb_page_opaque(page)->flags & HYB_INNER_FILTERS) != 0;

	if ((Size) (i + 1) * sizeof(uint16) > used)
		hyb_corrupted(rel, blkno, "An internal node has more children than fit its content.");
	memcpy(&slot, content + i * sizeof(uint16), sizeof(uint16));
	end = (Size) slot + CHILD_FIXED_SIZE + (filters ? CHILD_FILTER_SIZE : 0);
	if (end > used)
		hyb_corrupted(rel, blkno, "A child entry lies outside the content of its internal node.");
	p = content + slot;
	memcpy(&child->block, p, 4);
	memcpy(&child->stamp, p + 4, 8);
	memcpy(&child->low.len, p + 12, 2);
	child->low.ncols = (uint8) p[14];
	child->low.tie = (int8) p[15];
	p += CHILD_FIXED_SIZE;
	child->tids = 0;
	child->filter_block = InvalidBlockNumber;
	child->filter_slot = 0;
	child->image = NULL;
	child->filter_size = 0;
	child->filter_image = NULL;
	if (filters)
	{
		memcpy(&child->tids, p, 8);
		memcpy(&child->filter_block, p + 8, 4);
		memcpy(&child->filter_slot, p + 12, 2);
		p += CHILD_FILTER_SIZE;
	}
	if (child->low.tie == HYB_AT)
		end += sizeof(ItemPointerData);
	end += child->low.len;
	if (end > used)
		hyb_corrupted(rel, blkno, "A separator lies outside the content of its internal node.");
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
 * Compare the separator of child i with pos by their first bytes, in an index
 * ordered by memcmp.  Returns 0 if those do not tell, or if the entry is not
 * where it should be: hyb_inner_get will say.
 */
static inline int
compare_heads(Page page, int i, Size used, Size fixed, uint64 pos_head,
			  uint32 pos_len)
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
	len = Min(Min(len, pos_len), sizeof(uint64));
	if (len == 0)
		return 0;

	/* the page's trailer follows the content, so 8 bytes can be read */
	memcpy(&head, p, sizeof(uint64));
	head = pg_ntoh64(head);
	shift = 64 - 8 * len;
	head >>= shift;
	pos_head >>= shift;
	return head < pos_head ? -1 : head > pos_head;
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
	bool		filters = (hyb_page_opaque(page)->flags & HYB_INNER_FILTERS) != 0;
	Size		fixed = CHILD_FIXED_SIZE + (filters ? CHILD_FILTER_SIZE : 0);
	uint64		head = key_head(pos->key, pos->len);

	StaticAssertStmt(sizeof(HybPageOpaque) >= sizeof(uint64),
					 "compare_heads reads up to 8 bytes behind the content");
	if (high < 0)
		hyb_corrupted(rel, blkno, "An internal node has no children.");
	if ((Size) (high + 1) * sizeof(uint16) > used)
		hyb_corrupted(rel, blkno, "An internal node has more children than fit its content.");
	while (low < high)
	{
		int			mid = low + (high - low + 1) / 2;
		int			cmp = 0;

		if (desc->all_mem)
			cmp = compare_heads(page, mid, used, fixed, head, pos->len);
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

/*
 * A page was not what a pointer to it said.  That happens when the version is
 * no longer current; if it is, the page is damaged, and starting over would
 * come here for ever.
 */
static void
check_stale(const HybIndex *ix, const HybVersion *version, BlockNumber block)
{
	HybMetaPage *meta;
	Buffer		metabuf = hyb_meta_lock(ix, BUFFER_LOCK_SHARE, &meta);
	bool		current = meta->version == version->version;

	UnlockReleaseBuffer(metabuf);
	if (current)
		hyb_corrupted(ix->rel, block,
					  "This is not the page that the index's root or an internal node points to.");
}

/*
 * A backend's copy of an index's root, if that is an internal node.  A node
 * never changes, so the copy is good for as long as versions have this root.
 * Made when a root is met for the second time.
 *
 * Comparison functions may open other indexes, for which the copy may have to
 * go, so only indexes ordered by memcmp have one.
 */
typedef struct RootCache
{
	BlockNumber block;			/* root met last */
	uint64		stamp;			/* its stamp, 0: none was met */
	bool		valid;			/* `page` is a copy of it */
	char	   *page;			/* BLCKSZ bytes in TopMemoryContext, or NULL */
} RootCache;

static void
release_root(void *piece)
{
	if (((RootCache *) piece)->page != NULL)
		pfree(((RootCache *) piece)->page);
}

static HybSlotPiece root_piece = {
	.size = sizeof(RootCache),
	.release = release_root
};

void
hyb_static_init(void)
{
	hyb_slot_add_piece(&root_piece);
}

/* The copy, or NULL if the page has to be read. */
static inline Page
cached_root(const HybIndex *ix, BlockNumber block, uint64 stamp)
{
	const RootCache *root = hyb_slot_piece(ix, &root_piece);

	if (root->valid && root->block == block && root->stamp == stamp)
		return (Page) root->page;
	return NULL;
}

/* A root was read, and checked. */
static void
note_root(const HybIndex *ix, BlockNumber block, uint64 stamp, Page page)
{
	RootCache  *root = hyb_slot_piece(ix, &root_piece);

	if (root->block == block && root->stamp == stamp)
	{
		if (root->page == NULL)
			root->page = MemoryContextAlloc(TopMemoryContext, BLCKSZ);
		memcpy(root->page, page, BLCKSZ);
		root->valid = true;
		return;
	}
	root->block = block;
	root->stamp = stamp;
	root->valid = false;
}

bool
hyb_static_descend(const HybIndex *ix, const HybVersion *version,
				   const HybPos *pos, bool backward, HybDescent *descent)
{
	BlockNumber block = version->root;
	BlockNumber from = HYB_METAPAGE_BLKNO;
	uint64		stamp = version->root_stamp;
	int			level = (int) version->height - 1;
	bool		low_inf = true;
	bool		high_inf = true;
	Page		page;

	descent->probed = false;
	descent->skipped = false;
	page = level > 0 && ix->desc->all_mem ? cached_root(ix, block, stamp) : NULL;
	for (;;)
	{
		Buffer		buf = InvalidBuffer;
		HybChild	child;
		int			i;

		if (page == NULL)
		{
			buf = hyb_page_read(ix, block, from);
			LockBuffer(buf, BUFFER_LOCK_SHARE);
			if (!hyb_page_check(ix, buf,
								level == 0 ? HYB_PAGE_LEAF : HYB_PAGE_INNER, stamp))
			{
				UnlockReleaseBuffer(buf);
				check_stale(ix, version, block);
				return false;
			}
			if (level == 0)
			{
				descent->buf = buf;
				descent->block = block;
				descent->stamp = stamp;
				break;
			}
			page = BufferGetPage(buf);
			if (hyb_page_opaque(page)->level != level)
				hyb_corrupted(ix->rel, block, "An internal node has the wrong level.");
			if (from == HYB_METAPAGE_BLKNO && ix->desc->all_mem)
				note_root(ix, block, stamp, page);
		}

		i = hyb_inner_search(ix->desc, page, pos, backward, ix->rel, block);
		if (descent->want_high && i + 1 < hyb_inner_count(page))
		{
			hyb_inner_get(page, i + 1, &child, ix->rel, block);
			hyb_pos_copy(&descent->high, &descent->highbuf, &child.low);
			high_inf = false;
		}
		hyb_inner_get(page, i, &child, ix->rel, block);
		if (descent->want_low && i > 0)
		{
			hyb_pos_copy(&descent->low, &descent->lowbuf, &child.low);
			low_inf = false;
		}
		from = block;
		block = child.block;
		stamp = child.stamp;
		if (BufferIsValid(buf))
			UnlockReleaseBuffer(buf);
		page = NULL;
		HYB_POINT("descend");
		level--;
		if (level == 0 && descent->bound != NULL &&
			BlockNumberIsValid(child.filter_block))
		{
			/*
			 * Whether the version is still current is for the caller to find
			 * out, after a leaf as after a filter.
			 */
			descent->probed = true;
			descent->skipped = !hyb_filter_probe(ix, &child,
												 backward ? descent->bound : pos,
												 backward ? pos : descent->bound);
			if (descent->skipped || descent->stop_at_filter)
			{
				descent->buf = InvalidBuffer;
				descent->block = block;
				descent->stamp = stamp;
				break;
			}
		}
	}

	/*
	 * Scans go on at a fence, so a damaged one that does not lie beyond the
	 * position would have them go round for ever.
	 */
	if ((!high_inf &&
		 hyb_pos_compare(ix->desc, &descent->high, pos) < (backward ? 0 : 1)) ||
		(!low_inf &&
		 hyb_pos_compare(ix->desc, &descent->low, pos) > (backward ? -1 : 0)))
	{
		if (BufferIsValid(descent->buf))
			UnlockReleaseBuffer(descent->buf);
		hyb_corrupted(ix->rel, descent->block,
					  "The separators around this leaf do not enclose the position that they led here from.");
	}

	if (low_inf)
	{
		memset(&descent->low, 0, sizeof(HybPos));
		descent->low.tie = HYB_BEFORE;
	}
	if (high_inf)
	{
		memset(&descent->high, 0, sizeof(HybPos));
		descent->high.tie = HYB_AFTER;
	}
	return true;
}
