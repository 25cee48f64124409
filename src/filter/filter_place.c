/*
 * filter_place.c
 *		Where the filters of leaves go.
 *
 * A filter page belongs to one level-1 node.  When a step writes the node anew, a
 * page stays if all its images belong to neighbouring leaves of the new node.
 * From other pages it copies the images that are still wanted, and packs them
 * with those of new leaves to new pages.
 */
#include "base/compat.h"

#include "filter/filter_place.h"

/* A page that is emptier moves if its neighbours do. */
#define SPARSE_FRACTION		0.5

/* ---- packing ---- */

void
hyb_filter_packer_init(HybFilterPacker *packer, HybStepSpace *space,
					   HybChildList *list)
{
	packer->space = space;
	packer->list = list;
	packer->n = 0;
	packer->size = 0;
}

void
hyb_filter_pack(HybFilterPacker *packer, int child)
{
	Size		size = HYB_FILTER_ALIGN(packer->list->children[child].filter_size);

	Assert(child >= 0 && child < packer->list->n);
	Assert(packer->list->children[child].filter_image != NULL);
	Assert(size >= sizeof(HybFilterImage) && size <= HYB_FILTER_ALIGN(HYB_FILTER_MAX_IMAGE));
	/* a page has the images of neighbours, in order */
	Assert(packer->n == 0 || packer->children[packer->n - 1] < child);
	if ((packer->n + 1) * sizeof(HybFilterEntry) + packer->size + size >
		HYB_PAGE_CAPACITY)
		hyb_filter_pack_write(packer);
	packer->children[packer->n++] = child;
	packer->size += size;
}

void
hyb_filter_pack_write(HybFilterPacker *packer)
{
	PGAlignedBlock image;
	Page		page = (Page) image.data;
	HybFilterEntry *entries;
	BlockNumber block;
	Size		off = SizeOfPageHeaderData + packer->n * sizeof(HybFilterEntry);

	if (packer->n == 0)
		return;
	hyb_page_init(page, packer->space->ix, HYB_PAGE_FILTER, 0,
				  packer->space->stamp);
	entries = hyb_filter_entries(page);
	for (int i = 0; i < packer->n; i++)
	{
		const HybChild *child = &packer->list->children[packer->children[i]];

		entries[i].block = child->block;
		entries[i].stamp = child->stamp;
		entries[i].offset = (uint16) off;
		entries[i].len = (uint16) child->filter_size;
		memcpy(page + off, child->filter_image, child->filter_size);
		off += HYB_FILTER_ALIGN(child->filter_size);
		Assert(off <= SizeOfPageHeaderData + HYB_PAGE_CAPACITY);
	}
	hyb_page_opaque(page)->count = packer->n;
	((PageHeader) page)->pd_lower = (LocationIndex) off;
	for (int i = 0; i < packer->n; i++)
		Assert(hyb_filter_entry_valid(page, i));

	block = hyb_step_write(packer->space, image.data);
	packer->space->new_filter++;
	packer->space->filtered += packer->n;
	for (int i = 0; i < packer->n; i++)
	{
		HybChild   *child = &packer->list->children[packer->children[i]];

		pfree(unconstify(void *, child->filter_image));
		child->filter_image = NULL;
		child->filter_block = block;
		child->filter_slot = (uint16) i;
	}
	packer->n = 0;
	packer->size = 0;
}

/* ---- the filters of a node ---- */

void
hyb_filter_place_init(HybFilterPlace *place, HybStepSpace *space,
					  const HybChildList *old)
{
	memset(place, 0, sizeof(*place));
	place->space = space;
	if (old != NULL)
		hyb_filter_place_add_old(place, old);
}

void
hyb_filter_place_add_old(HybFilterPlace *place, const HybChildList *old)
{
	int			alloc = place->nold + old->n;
	BlockNumber *blocks = palloc(Max(alloc, 1) * sizeof(BlockNumber));

	if (place->nold > 0)
		memcpy(blocks, place->old, place->nold * sizeof(BlockNumber));
	place->old = blocks;
	place->kept = palloc0(Max(alloc, 1) * sizeof(bool));
	for (int i = 0; i < old->n; i++)
	{
		BlockNumber block = old->children[i].filter_block;

		/* the images of a page belong to neighbours */
		if (BlockNumberIsValid(block) &&
			(place->nold == 0 || place->old[place->nold - 1] != block))
			place->old[place->nold++] = block;
	}
	Assert(place->nold <= alloc);
}

/*
 * Returns how many images a filter page has, and how full it is in *fill.  Copies
 * the images of those of n `children` that lie on this page.  A stamp that does
 * not match is an error, as the merge lock is held.
 */
static int
read_filter_page(HybFilterPlace *place, BlockNumber block, HybChild *children, int n,
				 double *fill)
{
	const HybIndex *ix = place->space->ix;
	Buffer		buf = hyb_page_lock(ix, block, InvalidBlockNumber,
									BUFFER_LOCK_SHARE, HYB_PAGE_FILTER, 0);
	Page		page;
	int			count;

	if (!BufferIsValid(buf))
		hyb_corrupted(ix->rel, block, "This is not the filter page that an internal node points to.");
	page = BufferGetPage(buf);
	count = hyb_filter_count(page);
	*fill = (double) (((PageHeader) page)->pd_lower - SizeOfPageHeaderData) / HYB_PAGE_CAPACITY;
	for (int i = 0; i < n; i++)
	{
		HybChild   *child = &children[i];
		const HybFilterEntry *entry;
		char	   *image;

		if (child->filter_block != block)
			continue;
		if (child->filter_slot >= count ||
			!hyb_filter_entry_valid(page, child->filter_slot))
			hyb_corrupted(ix->rel, block, "A filter lies outside the content of its page.");
		entry = &hyb_filter_entries(page)[child->filter_slot];
		if (entry->block != child->block || entry->stamp != child->stamp ||
			entry->len == 0 || entry->len > HYB_FILTER_MAX_IMAGE)
			hyb_corrupted(ix->rel, block, "A filter is not that of the leaf that points to it.");
		image = palloc(entry->len);
		memcpy(image, page + entry->offset, entry->len);
		child->filter_image = image;
		child->filter_size = entry->len;
		child->filter_block = InvalidBlockNumber;
	}
	UnlockReleaseBuffer(buf);
	return count;
}

static inline bool
moves(const HybChild *children, int n, int i)
{
	return i >= 0 && i < n && children[i].filter_image != NULL;
}

void
hyb_filter_place_node(HybFilterPlace *place, HybChildList *list, int from,
					  int to)
{
	HybChild   *children = list->children + from;
	int			n = to - from;
	HybFilterPacker packer;
	int			next;

	Assert(from >= 0 && from < to && to <= list->n);
	/* which pages can stay? */
	for (int i = 0; i < n; i = next)
	{
		BlockNumber block = children[i].filter_block;
		double		fill;
		int			used = 1;

		next = i + 1;
		if (!BlockNumberIsValid(block))
			continue;
		if (!place->space->filters)
		{
			children[i].filter_block = InvalidBlockNumber;
			continue;
		}
		for (; next < n; next++)
		{
			/* leaves without a filter may lie between those of a page */
			if (children[next].filter_block == block)
				used++;
			else if (BlockNumberIsValid(children[next].filter_block) ||
					 children[next].filter_image != NULL)
				break;
		}
		if (read_filter_page(place, block, NULL, 0, &fill) != used ||
			(fill < SPARSE_FRACTION &&
			 (moves(children, n, i - 1) || moves(children, n, next))))
			(void) read_filter_page(place, block, children + i, next - i, &fill);
		else
			for (int j = 0; j < place->nold; j++)
				if (place->old[j] == block)
					place->kept[j] = true;
	}

	hyb_filter_packer_init(&packer, place->space, list);
	for (int i = 0; i < n; i++)
	{
		if (moves(children, n, i))
			hyb_filter_pack(&packer, from + i);
		else if (BlockNumberIsValid(children[i].filter_block))
		{
			/* a page that stays comes between */
			hyb_filter_pack_write(&packer);
		}
	}
	hyb_filter_pack_write(&packer);
}

void
hyb_filter_place_finish(HybFilterPlace *place)
{
	for (int i = 0; i < place->nold; i++)
	{
		if (place->kept[i])
			continue;
		hyb_step_retire(place->space, place->old[i]);
		place->space->old_filter++;
	}
}
