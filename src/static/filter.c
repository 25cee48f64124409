/*
 * filter.c
 *		Range filters of static leaves: building, filter pages, questions.
 */
#include "compat.h"

#include "algo/surf.h"
#include "page/settings.h"
#include "static/filter.h"
#include "utils/memutils.h"
#include "utils/rel.h"

struct HybFilterBuilder
{
	const HybIndex *ix;
	HybFstBuilder *fst;
	HybLeaf		leaf;
	HybBuf		key;
};

bool
hyb_filter_wanted(const HybIndex *ix)
{
	return ix->desc->all_mem && hyb_filter_option(ix->rel) == HYB_FILTER_SURF;
}

/* ---- building ---- */

static void *
filter_resize(void *old, size_t size)
{
	if (size == 0)
	{
		pfree(old);
		return NULL;
	}
	return old == NULL ? palloc(size) : repalloc_huge(old, size);
}

HybFilterBuilder *
hyb_filter_builder_create(const HybIndex *ix)
{
	HybFilterBuilder *builder;

	if (!hyb_filter_wanted(ix))
		return NULL;
	builder = palloc0(sizeof(HybFilterBuilder));
	builder->ix = ix;
	builder->fst = hyb_surf_builder_create(filter_resize,
										   (HybSurfSuffix) hyb_filter_suffix(ix->rel),
										   hyb_filter_suffix_bits(ix->rel));
	return builder;
}

void
hyb_filter_builder_free(HybFilterBuilder *builder)
{
	hyb_fst_builder_free(builder->fst);
	hyb_leaf_close(&builder->leaf);
	if (builder->key.data != NULL)
		pfree(builder->key.data);
	pfree(builder);
}

void *
hyb_filter_build(HybFilterBuilder *builder, const char *leaf_page,
				 uint32 *size)
{
	const HybKeyDesc *desc = builder->ix->desc;
	HybLeaf    *leaf = &builder->leaf;
	void	   *image;
	size_t		need;

	hyb_leaf_open(leaf, desc, leaf_page, builder->ix->rel, InvalidBlockNumber);
	hyb_fst_builder_reset(builder->fst);
	for (int row = 0; row < leaf->nrows; row++)
	{
		/* rows of one key (different INCLUDE columns) count once */
		builder->key.len = 0;
		hyb_key_join(desc, hyb_leaf_row(leaf, row), desc->nkeys, &builder->key);
		if (!hyb_fst_builder_add(builder->fst, builder->key.data,
								 builder->key.len))
			ereport(ERROR,
					(errcode(ERRCODE_INDEX_CORRUPTED),
					 errmsg("entries for index \"%s\" do not ascend",
							RelationGetRelationName(builder->ix->rel)),
					 errdetail("They come from a damaged leaf."),
					 errhint("Please REINDEX it.")));
	}
	need = hyb_fst_builder_finish(builder->fst);
	if (need == 0 || need > HYB_FILTER_MAX_IMAGE)
		return NULL;
	image = palloc(need);
	hyb_fst_builder_write(builder->fst, image);
	*size = (uint32) need;
	return image;
}

void
hyb_filter_page_init(HybFilterPage *page, const HybIndex *ix, uint64 stamp)
{
	page->ix = ix;
	page->stamp = stamp;
	page->n = 0;
	page->size = 0;
}

bool
hyb_filter_page_fits(const HybFilterPage *page, const HybChild *child)
{
	return (page->n + 1) * sizeof(HybFilterEntry) + page->size +
		MAXALIGN(child->filter_size) <= HYB_PAGE_CAPACITY;
}

void
hyb_filter_page_add(HybFilterPage *page, HybChild *child)
{
	Assert(hyb_filter_page_fits(page, child));
	page->images[page->n] = child->filter_image;
	page->children[page->n++] = child;
	page->size += MAXALIGN(child->filter_size);
}

void
hyb_filter_page_finish(HybFilterPage *page)
{
	Page		p = (Page) page->image.data;
	HybFilterEntry *entries;
	Size		off;

	hyb_page_init(p, page->ix, HYB_PAGE_FILTER, 0, page->stamp);
	entries = hyb_filter_entries(p);
	off = SizeOfPageHeaderData + page->n * sizeof(HybFilterEntry);
	for (int i = 0; i < page->n; i++)
	{
		const HybChild *child = page->children[i];

		entries[i].block = child->block;
		entries[i].stamp = child->stamp;
		entries[i].offset = (uint16) off;
		entries[i].len = (uint16) child->filter_size;
		memcpy(p + off, page->images[i], child->filter_size);
		off += MAXALIGN(child->filter_size);
	}
	hyb_page_opaque(p)->count = page->n;
	((PageHeader) p)->pd_lower = (LocationIndex) off;
}

void
hyb_filter_page_written(HybFilterPage *page, BlockNumber block)
{
	for (int i = 0; i < page->n; i++)
	{
		page->children[i]->filter_block = block;
		page->children[i]->filter_slot = (uint16) i;
		page->children[i]->filter_image = NULL;
	}
	hyb_filter_page_init(page, page->ix, page->stamp);
}

/* ---- reading ---- */

bool
hyb_filter_entry_valid(Page page, int slot)
{
	const HybFilterEntry *entry = &hyb_filter_entries(page)[slot];
	Size		lower = ((PageHeader) page)->pd_lower;

	return (Size) slot < hyb_page_opaque(page)->count &&
		SizeOfPageHeaderData + (Size) (slot + 1) * sizeof(HybFilterEntry) <= lower &&
		entry->offset % MAXIMUM_ALIGNOF == 0 &&
		entry->offset >= SizeOfPageHeaderData &&
		(Size) entry->offset + entry->len <= lower;
}

/*
 * Open the filter of a child; the buffer is share-locked then.
 * InvalidBuffer if it has none, or the page is no longer what it was.
 */
static Buffer
open_filter(const HybIndex *ix, const HybChild *child, HybFst *fst)
{
	Buffer		buf;
	Page		page;
	const HybFilterEntry *entry;

	if (!BlockNumberIsValid(child->filter_block))
		return InvalidBuffer;
	buf = hyb_page_read(ix, child->filter_block, InvalidBlockNumber);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	if (!hyb_page_check(ix, buf, HYB_PAGE_FILTER, 0) ||
		child->filter_slot >= hyb_page_opaque(page)->count)
	{
		UnlockReleaseBuffer(buf);
		return InvalidBuffer;
	}
	if (!hyb_filter_entry_valid(page, child->filter_slot))
		hyb_corrupted(ix->rel, child->filter_block,
					  "A filter lies outside the content of its page.");
	entry = &hyb_filter_entries(page)[child->filter_slot];
	if (entry->block != child->block || entry->stamp != child->stamp)
	{
		UnlockReleaseBuffer(buf);
		return InvalidBuffer;
	}
	if (!hyb_fst_open(fst, page + entry->offset, entry->len))
		hyb_corrupted(ix->rel, child->filter_block, "The header of a filter is damaged.");
	return buf;
}

/* A position as a cut between keys; at a TID, on the generous side. */
static inline HybCut
cut_of(const HybPos *pos, bool upper)
{
	HybCut		cut;

	cut.key = pos->key;
	cut.len = pos->len;
	cut.side = pos->tie == HYB_AFTER || (upper && pos->tie == HYB_AT) ?
		HYB_CUT_AFTER : HYB_CUT_BEFORE;
	return cut;
}

bool
hyb_filter_probe(const HybIndex *ix, const HybChild *child,
				 const HybPos *low, const HybPos *high)
{
	HybFst		fst;
	Buffer		buf = open_filter(ix, child, &fst);
	HybFstAnswer answer;

	if (!BufferIsValid(buf))
		return true;
	if (low->tie == HYB_BEFORE && high->tie == HYB_AFTER &&
		low->ncols == ix->desc->nkeys && high->ncols == low->ncols &&
		low->len == high->len &&
		(low->key == high->key || memcmp(low->key, high->key, low->len) == 0))
	{
		/* one key: hash suffixes know about points only */
		answer = hyb_fst_lookup(&fst, low->key, low->len);
	}
	else
	{
		HybCut		from = cut_of(low, false);
		HybCut		to = cut_of(high, true);

		answer = hyb_fst_range(&fst, &from, &to);
	}
	UnlockReleaseBuffer(buf);
	if (answer == HYB_FST_DAMAGED)
		hyb_corrupted(ix->rel, child->filter_block, "A filter is damaged.");
	return answer != HYB_FST_NO;
}

bool
hyb_filter_count_keys(const HybIndex *ix, const HybChild *child,
					  const HybPos *low, const HybPos *high,
					  uint32 *count, uint32 *total)
{
	HybFst		fst;
	Buffer		buf = open_filter(ix, child, &fst);
	HybCut		from = cut_of(low, false);
	HybCut		to = cut_of(high, true);
	HybFstAnswer answer;

	if (!BufferIsValid(buf))
		return false;
	answer = hyb_fst_count(&fst, &from, &to, count);
	*total = fst.nkeys;
	UnlockReleaseBuffer(buf);
	if (answer == HYB_FST_DAMAGED)
		hyb_corrupted(ix->rel, child->filter_block, "A filter is damaged.");
	return true;
}
