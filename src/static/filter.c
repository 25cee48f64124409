/*
 * filter.c
 *		Filters of static leaves: kinds, building, questions.
 */
#include "compat.h"

#include "algo/bits.h"
#include "static/filter.h"
#include "static/prefixes.h"
#include "utils/memutils.h"
#include "utils/rel.h"

struct HybFilterBuilder
{
	const HybIndex *ix;
	HybFilterKind kind;
	const HybFilterRoutine *routine;
	void	   *state;			/* the routine's builder */
	HybLeaf		leaf;
	HybBuf		key;
	HybBuf		cut;			/* the first bits of a key */
};

/* Rows that lack bits may make a filter of prefixes larger by one in so many. */
#define SHALLOW_PART	2

static const HybFilterRoutine *const routines[] = {
	[HYB_FILTER_SURF] = &hyb_filter_surf,
	[HYB_FILTER_POINTS] = &hyb_filter_points,
	[HYB_FILTER_GRAFITE] = &hyb_filter_grafite,
#ifdef USE_ASSERT_CHECKING
	[HYB_FILTER_ZONE] = &hyb_filter_zone,
#endif
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
	builder->state = builder->routine->builder_create(ix);
	return builder;
}

static void
add_key(HybFilterBuilder *builder, const HybBuf *key)
{
	if (!builder->routine->add(builder->state, key->data, key->len))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("entries for index \"%s\" do not ascend",
						RelationGetRelationName(builder->ix->rel)),
				 errdetail("They come from a damaged leaf."),
				 errhint("Please REINDEX it.")));
}

/* The first bits of a key, zeros behind its end, replace what `cut` holds. */
static void
cut_key(const uint8 *key, uint32 len, uint32 bits, HybBuf *cut)
{
	uint32		n = (bits + 7) / 8;

	cut->len = 0;
	hyb_buf_append(cut, key, Min(len, n));
	while (cut->len < n)
		hyb_buf_append(cut, "", 1);
	if (bits % 8 != 0)
		cut->data[n - 1] &= (uint8) (0xFF << (8 - bits % 8));
}

/* Bits that the row's entries have, if they may have others behind them. */
static uint32
open_bits(HybFilterBuilder *builder, int row)
{
	uint32		bits = hyb_leaf_prefix(&builder->leaf, row, &builder->key);

	return bits == 8 * hyb_key_length(builder->ix->desc, builder->key.data,
									  builder->key.len) ? 8 * HYB_MAX_ENTRY_SIZE : bits;
}

/*
 * The most bits at which the rows that have fewer do not stand for too many
 * strings of so many.
 */
static uint32
choose_bits(HybFilterBuilder *builder)
{
	const HybLeaf *leaf = &builder->leaf;
	uint16		rows[HYB_TRIE_MAX_DEPTH] = {0}; /* by bits that they lack */
	uint32		most = 0;

	for (int row = 0; row < leaf->nrows; row++)
		most = Max(most, hyb_leaf_prefix(&builder->leaf, row, &builder->key));
	for (int row = 0; row < leaf->nrows; row++)
	{
		uint32		bits = open_bits(builder, row);

		if (bits < most)
			rows[Min(most - bits, HYB_TRIE_MAX_DEPTH - 1)]++;
	}
	for (uint32 less = 0;; less++)
	{
		uint32		more = 0;

		for (uint32 lacks = less + 1; lacks < HYB_TRIE_MAX_DEPTH; lacks++)
			more += rows[lacks] * (UINT32_C(1) << Min(lacks - less, 12));
		if (more <= leaf->nrows / SHALLOW_PART || most - less == 1)
			return most - less;
	}
}

/* All strings of so many bits that keys of a row may begin with. */
static void
add_prefix(HybFilterBuilder *builder, int row, uint32 bits)
{
	uint32		lacks = bits - Min(open_bits(builder, row), bits);

	for (uint64 rest = 0; rest < UINT64CONST(1) << lacks; rest++)
	{
		HybBuf	   *cut = &builder->cut;

		cut_key(builder->key.data, builder->key.len, bits, cut);
		for (uint32 i = 0; i < lacks; i++)
			if ((rest >> i & 1) != 0)
				cut->data[(bits - 1 - i) / 8] |= 0x80 >> (bits - 1 - i) % 8;
		add_key(builder, cut);
	}
}

/* Returns the bits of keys that are in the filter; 0: they are whole. */
static uint32
add_rows(HybFilterBuilder *builder)
{
	const HybKeyDesc *desc = builder->ix->desc;
	HybLeaf    *leaf = &builder->leaf;
	bool		keeps_keys = hyb_leaf_keeps_keys(leaf);
	uint32		bits = keeps_keys ? 0 : choose_bits(builder);

	for (int row = 0; row < leaf->nrows; row++)
	{
		if (!keeps_keys)
		{
			add_prefix(builder, row, bits);
			continue;
		}
		/* rows of one key (different INCLUDE columns) count once */
		builder->key.len = 0;
		hyb_key_join(desc, hyb_leaf_row(leaf, row), desc->nkeys, &builder->key);
		add_key(builder, &builder->key);
	}
	return bits;
}

void *
hyb_filter_build(HybFilterBuilder *builder, const char *leaf_page,
				 uint32 *size)
{
	const HybKeyDesc *desc = builder->ix->desc;
	const HybFilterRoutine *routine = builder->routine;
	HybLeaf    *leaf = &builder->leaf;
	HybFilterImage *image;
	uint32		bits;
	Size		need;

	hyb_leaf_open(leaf, desc, leaf_page, builder->ix->rel, InvalidBlockNumber);
	/* without INCLUDE columns each row has a key of its own */
	if (routine->max_keys > 0 && leaf->nrows > routine->max_keys &&
		desc->natts == desc->nkeys)
		return NULL;
	routine->begin(builder->state);
	bits = add_rows(builder);
	need = routine->finish(builder->state);
	if (need == 0 || need + sizeof(HybFilterImage) > HYB_FILTER_MAX_IMAGE)
		return NULL;
	*size = (uint32) (need + sizeof(HybFilterImage));
	image = palloc(*size);
	memset(image, 0, sizeof(HybFilterImage));
	image->kind = (uint8) builder->kind;
	image->bits = (uint16) bits;
	routine->write(builder->state, image + 1);
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
	uint8		space[HYB_MAX_ENTRY_SIZE];
	HybBuf		cut;
	HybPos		pos = *low;

	if (routine == NULL)
		return HYB_ANSWER_NO_HEADER;
	if (image->bits == 0)
		return routine->probe(hyb_filter_body(image), size, low, high, point);
	if (!point)
		return HYB_ANSWER_UNKNOWN;
	if (image->bits > 8 * sizeof(space))
		return HYB_ANSWER_NO_HEADER;
	hyb_buf_init(&cut, space, sizeof(space), CurrentMemoryContext);
	cut_key(low->key, low->len, image->bits, &cut);
	pos.key = cut.data;
	pos.len = (uint16) cut.len;
	return routine->probe(hyb_filter_body(image), size, &pos, &pos, true);
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
