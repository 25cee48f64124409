/*
 * filter.c
 *		Filters of static leaves: kinds, building, questions.
 */
#include "base/compat.h"

#include "filter/filter.h"
#include "filter/filter_prefixes.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * Filters of prefixes are to be wrong so much more seldom: who reads the leaf in vain
 * may read a row of the table in vain, too, and such leaves take half the space.
 */
#define PREFIX_PROBES	4

struct HybFilterBuilder
{
	const HybIndex *ix;
	HybFilterKind kind;
	const HybFilterRoutine *routine;
	void	   *state;			/* the routine's builder */
	HybLeaf		leaf;
	HybBuf		key;
};

static const HybFilterRoutine *const routines[] = {
	[HYB_FILTER_SURF] = &hyb_filter_surf,
	[HYB_FILTER_POINTS] = &hyb_filter_points,
	[HYB_FILTER_GRAFITE] = &hyb_filter_grafite,
};

const HybFilterRoutine *
hyb_filter_routine(uint8 kind)
{
	return kind < lengthof(routines) ? routines[kind] : NULL;
}

/* ---- building ---- */

HybFilterBuilder *
hyb_filter_builder_create(const HybIndex *ix, HybFilterKind kind)
{
	HybFilterBuilder *builder;

	if (kind == HYB_FILTER_NONE)
		return NULL;
	builder = palloc0(sizeof(HybFilterBuilder));
	builder->ix = ix;
	builder->kind = kind;
	builder->routine = hyb_filter_routine(kind);
	Assert(builder->routine != NULL && kind != HYB_FILTER_AUTO);
	builder->state = builder->routine->builder_create(ix);
	return builder;
}

static void
add_key(void *arg, const HybBuf *key)
{
	HybFilterBuilder *builder = arg;

	if (!builder->routine->add(builder->state, key->data, key->len))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("entries for index \"%s\" do not ascend",
						RelationGetRelationName(builder->ix->rel)),
				 errdetail("They come from a damaged leaf."),
				 errhint("Please REINDEX it.")));
}

/* The keys of a leaf that keeps them. */
static void
add_filter_keys(HybFilterBuilder *builder)
{
	const HybKeyDesc *desc = builder->ix->desc;
	HybLeaf    *leaf = &builder->leaf;

	for (int row = 0; row < leaf->nrows; row++)
	{
		/* rows of one key (different INCLUDE columns) count once */
		builder->key.len = 0;
		hyb_key_join(desc, hyb_leaf_row(leaf, row), desc->nkeys, &builder->key);
		add_key(builder, &builder->key);
	}
}

void *
hyb_filter_build(HybFilterBuilder *builder, const char *leaf_page,
				 uint32 *size)
{
	const HybKeyDesc *desc = builder->ix->desc;
	const HybFilterRoutine *routine = builder->routine;
	HybLeaf    *leaf = &builder->leaf;
	HybFilterImage *image;
	HybFilterDepth depth = {0};
	Size		need;

	hyb_leaf_open(leaf, desc, leaf_page, builder->ix->rel, InvalidBlockNumber);
	/* without INCLUDE columns each row has a key of its own */
	if (routine->max_keys > 0 && leaf->nrows > routine->max_keys &&
		desc->natts == desc->nkeys)
		return NULL;
	if (!hyb_leaf_keeps_keys(leaf) && !hyb_filter_prefixes_depth(desc, leaf, &depth))
		return NULL;
	routine->begin(builder->state, hyb_leaf_keeps_keys(leaf) ? 1 : PREFIX_PROBES * (depth.more + 1));
	if (hyb_leaf_keeps_keys(leaf))
		add_filter_keys(builder);
	else
		hyb_filter_prefixes_add(desc, leaf, &depth, add_key, builder);
	need = routine->finish(builder->state);
	if (need == 0 || need + sizeof(HybFilterImage) > HYB_FILTER_MAX_IMAGE)
		return NULL;
	*size = (uint32) (need + sizeof(HybFilterImage));
	image = palloc(*size);
	memset(image, 0, sizeof(HybFilterImage));
	image->kind = (uint8) builder->kind;
	image->bits = (uint16) depth.bits;
	image->more = (uint16) depth.more;
	image->fingerprints = depth.fingerprints;
	routine->write(builder->state, image + 1);
	Assert(routine->verify(image + 1, need) == NULL);
	return image;
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
		entry->len >= sizeof(HybFilterImage) &&
		(Size) entry->offset + entry->len <= lower;
}

/* The filter of a child, on its page, share-locked. */
typedef struct OpenFilter
{
	Buffer		buf;
	const HybFilterImage *image;
	Size		size;			/* of what follows the image's beginning */
} OpenFilter;

/*
 * Open the filter of a child.  False if it has none, or the page is no longer
 * what it was.
 */
static bool
open_filter(const HybIndex *ix, const HybChild *child, OpenFilter *filter)
{
	Buffer		buf;
	Page		page;
	const HybFilterEntry *entry;
	const HybFilterImage *image;

	if (!BlockNumberIsValid(child->filter_block))
		return false;
	buf = hyb_page_read(ix, child->filter_block, InvalidBlockNumber);
	LockBuffer(buf, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buf);
	if (!hyb_page_check(ix, buf, HYB_PAGE_FILTER, 0) ||
		child->filter_slot >= hyb_filter_count(page))
	{
		UnlockReleaseBuffer(buf);
		return false;
	}
	if (!hyb_filter_entry_valid(page, child->filter_slot))
		hyb_corrupted(ix->rel, child->filter_block,
					  "A filter lies outside the content of its page.");
	entry = &hyb_filter_entries(page)[child->filter_slot];
	if (entry->block != child->block || entry->stamp != child->stamp)
	{
		UnlockReleaseBuffer(buf);
		return false;
	}
	image = hyb_filter_image(page, child->filter_slot);
	filter->buf = buf;
	if (hyb_filter_routine(image->kind) == NULL)
		hyb_corrupted(ix->rel, child->filter_block, "A filter is of an unknown kind.");
	filter->image = image;
	filter->size = hyb_filter_body_size(entry);
	return true;
}

static void
close_filter(const HybIndex *ix, const HybChild *child, OpenFilter *filter,
			 HybFilterAnswer answer)
{
	Assert(hyb_page_is_locked(filter->buf));
	UnlockReleaseBuffer(filter->buf);
	if (answer == HYB_ANSWER_NO_HEADER)
		hyb_corrupted(ix->rel, child->filter_block, "The header of a filter is damaged.");
	if (answer == HYB_ANSWER_DAMAGED)
		hyb_corrupted(ix->rel, child->filter_block, "A filter is damaged.");
}

HybFilterAnswer
hyb_filter_ask(const HybFilterImage *image, Size size, const HybPos *low,
			   const HybPos *high, bool point)
{
	const HybFilterRoutine *routine = hyb_filter_routine(image->kind);

	if (routine == NULL)
		return HYB_ANSWER_NO_HEADER;
	if (image->bits == 0)
		return routine->probe(hyb_filter_body(image), size, low, high, point);
	return point ? hyb_filter_prefixes_ask(image, size, low) : HYB_ANSWER_UNKNOWN;
}

HybFilterAnswer
hyb_filter_probe(const HybIndex *ix, const HybChild *child,
				 const HybPos *low, const HybPos *high)
{
	OpenFilter	filter;
	HybFilterAnswer answer;
	bool		point = low->tie == HYB_BEFORE && high->tie == HYB_AFTER &&
		low->ncols == ix->desc->nkeys && high->ncols == low->ncols &&
		low->len == high->len &&
		(low->key == high->key || memcmp(low->key, high->key, low->len) == 0);

	if (!open_filter(ix, child, &filter))
		return HYB_ANSWER_UNKNOWN;
	answer = hyb_filter_ask(filter.image, filter.size, low, high, point);
	close_filter(ix, child, &filter, answer);
	return answer;
}

bool
hyb_filter_count_keys(const HybIndex *ix, const HybChild *child,
					  const HybPos *low, const HybPos *high,
					  uint32 *count, uint32 *total)
{
	OpenFilter	filter;
	HybFilterAnswer answer;

	if (!open_filter(ix, child, &filter))
		return false;
	answer = filter.image->bits > 0 ? HYB_ANSWER_NO :
		hyb_filter_routine(filter.image->kind)->count(hyb_filter_body(filter.image),
													  filter.size, low, high,
													  count, total);
	close_filter(ix, child, &filter, answer);
	return answer == HYB_ANSWER_MAYBE;
}
