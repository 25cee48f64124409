/*
 * filter_place.c
 *		Where the filters of a level-1 node's leaves go.
 *
 * A filter page belongs to one node.  When a node is written anew (or split,
 * or merged), a page whose images all belong to neighbouring leaves of the new
 * node stays; of the others the images that are still wanted are copied, and
 * with those of new leaves packed to new pages.
 */
#include "compat.h"

#include "algo/fst.h"
#include "static/filter_place.h"

/* A page that is emptier than that moves if its neighbours do. */
#define SPARSE_FRACTION		0.5

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
}

/*
 * Images on a filter page, and how full it is; with `children`, a run of
 * leaves with images on that page or with none, copy those.  Stamps cannot
 * mismatch (merge lock).
 */
static int
read_page(HybFilterPlace *place, BlockNumber block, HybChild *children, int n,
		  double *fill)
{
	const HybIndex *ix = place->space->ix;
	Buffer		buf = hyb_page_read(ix, block, InvalidBlockNumber);
	Page		page = BufferGetPage(buf);
	int			count;

	LockBuffer(buf, BUFFER_LOCK_SHARE);
	if (!hyb_page_check(ix, buf, HYB_PAGE_FILTER, 0))
		hyb_corrupted(ix->rel, block, "This is not the filter page that an internal node points to.");
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

/* Leaves without a filter may lie between those that share a page. */
static inline bool
has_none(const HybChild *child)
{
	return !BlockNumberIsValid(child->filter_block) &&
		child->filter_image == NULL;
}

static inline bool
moves(const HybChild *children, int n, int i)
{
	return i >= 0 && i < n && children[i].filter_image != NULL;
}

static void
write_page(HybFilterPlace *place)
{
	if (place->page.n == 0)
		return;
	hyb_filter_page_finish(&place->page);
	hyb_filter_page_written(&place->page,
							hyb_step_write(place->space, place->page.image.data));
	place->space->new_filter++;
}

void
hyb_filter_place_node(HybFilterPlace *place, HybChild *children, int n)
{
	int			next;

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
			if (children[next].filter_block == block)
				used++;
			else if (!has_none(&children[next]))
				break;
		}
		if (read_page(place, block, NULL, 0, &fill) != used ||
			(fill < SPARSE_FRACTION &&
			 (moves(children, n, i - 1) || moves(children, n, next))))
			(void) read_page(place, block, children + i, next - i, &fill);
		else
			for (int j = 0; j < place->nold; j++)
				if (place->old[j] == block)
					place->kept[j] = true;
	}

	hyb_filter_page_init(&place->page, place->space->ix, place->space->stamp);
	for (int i = 0; i < n; i++)
	{
		if (!moves(children, n, i))
		{
			/* a page that stays comes between: images are of neighbours */
			if (BlockNumberIsValid(children[i].filter_block))
				write_page(place);
			continue;
		}
		if (!hyb_filter_page_fits(&place->page, &children[i]))
			write_page(place);
		hyb_filter_page_add(&place->page, &children[i]);
	}
	write_page(place);
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
