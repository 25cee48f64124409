/*
 * filter.c
 *		Building the filter of a leaf, and asking it.
 *
 * The filter of a leaf that keeps keys holds these.  That of a leaf of prefixes
 * (docs/filters.md) holds strings that its keys begin with:
 *
 *	- Nearly all prefixes that are numbers have one length.  The filter holds the
 *	  first bits of keys, as many as these prefixes have.
 *	- Prefixes that are strings differ in length.  The filter holds each as it is,
 *	  and is asked for the key's beginning in every length.  Other keys often
 *	  begin with such a string.  So the fingerprint of the entry's key follows
 *	  the string, and few other keys have that too.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "filter/filter.h"
#include "leaf/prefixes.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/*
 * A filter of prefixes is to be wrong less often by this factor.  A search that
 * reads such a leaf in vain may also read a row of the table in vain.
 */
#define PREFIX_PROBES	4

/*
 * Rows that lack bits may enlarge a filter of numbers by one string in
 * SHALLOW_PART.  With fewer bits the filter is wrong a little more often, which
 * matters less than what such rows let pass anyway.
 */
#define SHALLOW_PART	4

/* A row that lacks these many bits stands for more strings than a leaf may add. */
#define TOO_MANY_BITS	16

/*
 * One string in CUT_PART is cut, so that there are fewer lengths.  It may begin
 * more keys then.
 */
#define CUT_PART		8

struct HybFilterBuilder
{
	const HybIndex *ix;
	HybFilterKind kind;
	const HybFilterRoutine *routine;
	void	   *state;			/* the routine's builder */
	HybLeaf		leaf;
	HybBuf		key;			/* what is added */
	HybBuf		prefix;			/* of the row at hand */
};

/* Which beginnings of keys a filter holds, as HybFilterImage says. */
typedef struct FilterDepth
{
	uint32		bits;
	uint32		more;
	bool		fingerprints;
} FilterDepth;

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

/* Add what is in builder->key. */
static void
add_key(HybFilterBuilder *builder)
{
	if (!builder->routine->add(builder->state, builder->key.data, builder->key.len))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("entries for index \"%s\" do not ascend",
						RelationGetRelationName(builder->ix->rel)),
				 errdetail("They come from a damaged leaf."),
				 errhint("Please REINDEX it.")));
}

/* Rows of one key (their INCLUDE columns differ) add it again, which is allowed. */
static void
add_whole_keys(HybFilterBuilder *builder)
{
	const HybKeyDesc *desc = builder->ix->desc;
	HybLeaf    *leaf = &builder->leaf;

	for (int row = 0; row < leaf->nrows; row++)
	{
		builder->key.len = 0;
		hyb_key_join(desc, hyb_leaf_row(leaf, row), desc->nkeys, &builder->key);
		add_key(builder);
	}
}

/* The first bits of a key, zeros behind its end, replace what `cut` holds. */
static void
cut_key(const uint8 *key, uint32 len, uint32 bits, HybBuf *cut)
{
	uint32		n = (bits + 7) / 8;

	Assert(bits > 0 && bits <= 8 * HYB_MAX_ENTRY_SIZE);
	cut->len = 0;
	hyb_buf_append(cut, key, Min(len, n));
	while (cut->len < n)
		hyb_buf_append(cut, "", 1);
	if (bits % 8 != 0)
		cut->data[n - 1] &= (uint8) (0xFF << (8 - bits % 8));
}

/* ---- prefixes that are numbers ---- */

/* Bits of a row's prefix; as if it never ended, if it is a whole key. */
static uint32
open_bits(HybFilterBuilder *builder, int row)
{
	uint32		bits = hyb_leaf_prefix(&builder->leaf, row, &builder->prefix);

	return hyb_prefix_is_whole(builder->ix->desc, builder->prefix.data, bits) ?
		8 * HYB_MAX_ENTRY_SIZE : bits;
}

/*
 * The most bits at which rows that have fewer do not stand for more strings than
 * one in SHALLOW_PART of the leaf's rows.
 */
static uint32
depth_of_numbers(HybFilterBuilder *builder)
{
	HybLeaf    *leaf = &builder->leaf;
	uint16		rows[2 * HYB_TRIE_MAX_DEPTH] = {0}; /* by bits, the first
													 * one's in the middle */
	uint32		first = hyb_leaf_prefix(leaf, 0, &builder->prefix);
	uint32		most = first;

	StaticAssertStmt(HYB_LEAF_MAX_ITEMS / SHALLOW_PART < 1 << TOO_MANY_BITS, "it lets all pass");
	for (int row = 0; row < leaf->nrows; row++)
	{
		uint32		bits = open_bits(builder, row);

		if (bits == 8 * HYB_MAX_ENTRY_SIZE)
		{
			most = Max(most, 8 * builder->prefix.len);
			continue;
		}
		most = Max(most, bits);

		/* all have the leaf's common bytes, and its depth beyond at most */
		Assert(bits < first + HYB_TRIE_MAX_DEPTH && first < bits + HYB_TRIE_MAX_DEPTH);
		rows[(bits + HYB_TRIE_MAX_DEPTH - first) % lengthof(rows)]++;
	}
	for (uint32 less = 0;; less++)
	{
		uint32		more = 0;

		for (uint32 lacks = less + 1; lacks < HYB_TRIE_MAX_DEPTH && lacks < most; lacks++)
			more += rows[(most - lacks + HYB_TRIE_MAX_DEPTH - first) % lengthof(rows)] *
				(UINT32_C(1) << Min(lacks - less, TOO_MANY_BITS));
		if (more <= leaf->nrows / SHALLOW_PART || most - less == 1)
			return most - less;
	}
}

/* Add all strings of these many bits that keys of a row may begin with. */
static void
add_number(HybFilterBuilder *builder, int row, uint32 bits)
{
	HybBuf	   *cut = &builder->key;
	uint32		lacks = bits - Min(open_bits(builder, row), bits);

	/* each bit doubles what is added */
	Assert(lacks < TOO_MANY_BITS);
	for (uint64 rest = 0; rest < UINT64CONST(1) << lacks; rest++)
	{
		cut_key(builder->prefix.data, builder->prefix.len, bits, cut);
		for (uint32 i = 0; i < lacks; i++)
			if ((rest >> i & 1) != 0)
				cut->data[(bits - 1 - i) / 8] |= 0x80 >> (bits - 1 - i) % 8;
		add_key(builder);
	}
}

/* ---- prefixes that are strings ---- */

/* From the shortest string to a length that few strings exceed. */
static FilterDepth
depth_of_strings(HybFilterBuilder *builder)
{
	HybLeaf    *leaf = &builder->leaf;
	uint16		rows[HYB_MAX_ENTRY_SIZE + 1] = {0}; /* by their bytes */
	uint32		least = HYB_MAX_ENTRY_SIZE;
	uint32		most = HYB_MAX_ENTRY_SIZE;
	int			cut = 0;

	for (int row = 0; row < leaf->nrows; row++)
	{
		uint32		len = Min(hyb_leaf_prefix(leaf, row, &builder->prefix) / 8,
							  HYB_MAX_ENTRY_SIZE);

		Assert(len > 0);
		rows[len]++;
		least = Min(least, len);
	}
	while (most > least && cut + rows[most] <= leaf->nrows / CUT_PART)
		cut += rows[most--];
	return (FilterDepth)
	{
		.bits = 8 * least,.more = most - least,.fingerprints = true
	};
}

/* Add the string in builder->key with each fingerprint of a set. */
static void
add_string(HybFilterBuilder *builder, uint32 fingerprints)
{
	for (; fingerprints != 0; fingerprints &= fingerprints - 1)
	{
		uint8		fingerprint = (uint8) pg_rightmost_one_pos32(fingerprints);

		Assert(fingerprint < 1 << HYB_FINGERPRINT_BITS);
		hyb_buf_append(&builder->key, &fingerprint, 1);
		add_key(builder);
		builder->key.len--;
	}
}

/*
 * Add all strings, cut to `most` bytes.  Equal ones are added together: strings
 * with their fingerprints are to ascend.
 */
static void
add_strings(HybFilterBuilder *builder, uint32 most)
{
	HybLeaf    *leaf = &builder->leaf;
	HybBuf	   *prefix = &builder->prefix;
	HybBuf	   *key = &builder->key;
	uint32		fingerprints = 0;

	StaticAssertStmt(HYB_FINGERPRINT_BITS <= 5, "a set is of 32 bits");
	key->len = 0;
	for (int row = 0; row < leaf->nrows; row++)
	{
		uint32		bits = hyb_leaf_prefix(leaf, row, prefix);
		int			end = hyb_leaf_row_start(leaf, row + 1);
		uint32		len = Min(prefix->len, most);

		if (len != key->len || memcmp(key->data, prefix->data, len) != 0)
		{
			add_string(builder, fingerprints);
			fingerprints = 0;
			key->len = 0;
			hyb_buf_append(key, prefix->data, len);
		}
		for (int item = hyb_leaf_row_start(leaf, row); item < end; item++)
			fingerprints |= UINT32_C(1) <<
				hyb_strings_fingerprint(leaf, prefix, bits, item);
	}
	add_string(builder, fingerprints);
}

/* ---- building ---- */

/* Add all keys of the opened leaf, or their beginnings of this depth. */
static void
add_leaf(HybFilterBuilder *builder, const FilterDepth *depth)
{
	if (depth->bits == 0)
		add_whole_keys(builder);
	else if (depth->fingerprints)
		add_strings(builder, depth->bits / 8 + depth->more);
	else
		for (int row = 0; row < builder->leaf.nrows; row++)
			add_number(builder, row, depth->bits);
}

void *
hyb_filter_build(HybFilterBuilder *builder, const char *leaf_page,
				 uint32 *size)
{
	const HybKeyDesc *desc = builder->ix->desc;
	const HybFilterRoutine *routine = builder->routine;
	HybLeaf    *leaf = &builder->leaf;
	HybFilterImage *image;
	FilterDepth depth = {0};
	Size		need;

	hyb_leaf_open(leaf, desc, leaf_page, builder->ix->rel, InvalidBlockNumber);
	/* without INCLUDE columns each row has a key of its own */
	if (routine->max_keys > 0 && leaf->nrows > routine->max_keys &&
		desc->natts == desc->nkeys)
		return NULL;
	if (!hyb_leaf_keeps_keys(leaf))
	{
		if (hyb_key_is_fixed(desc))
			depth.bits = depth_of_numbers(builder);
		else
			depth = depth_of_strings(builder);
		if (depth.more >= HYB_FILTER_MAX_LENGTHS)
			return NULL;
	}
	routine->begin(builder->state, hyb_leaf_keeps_keys(leaf) ? 1 : PREFIX_PROBES * (depth.more + 1));
	add_leaf(builder, &depth);
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

/* ---- asking an image ---- */

/*
 * Ask for the beginnings of a key, in all lengths of the image up to these `len`
 * known bytes.  `like` has the rest of the position to ask for.
 */
static HybFilterAnswer
ask_beginnings(const HybFilterImage *image, Size size, const uint8 *key, uint32 len,
			   const HybPos *like, uint8 fingerprint)
{
	const HybFilterRoutine *routine = hyb_filter_routine(image->kind);
	uint8		space[HYB_MAX_ENTRY_SIZE + 1];
	HybBuf		cut;
	HybPos		pos = *like;
	uint32		most = (uint32) image->bits + 8 * (uint32) image->more;
	uint32		bits = image->bits;
	HybFilterAnswer answer;

	if (most > 8 * HYB_MAX_ENTRY_SIZE)
		return HYB_ANSWER_NO_HEADER;
	hyb_buf_init(&cut, space, sizeof(space), CurrentMemoryContext);
	do
	{
		cut_key(key, len, bits, &cut);
		if (image->fingerprints != 0)
			hyb_buf_append(&cut, &fingerprint, 1);
		pos.key = cut.data;
		pos.len = (uint16) cut.len;
		answer = routine->probe(hyb_filter_body(image), size, &pos, &pos, true);
		bits += 8;
	} while (answer == HYB_ANSWER_NO && bits <= Min(most, 8 * len));
	return answer;
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
	if (!point)
		return HYB_ANSWER_UNKNOWN;
	return ask_beginnings(image, size, low->key, low->len, low,
						  hyb_fingerprint(hyb_byte_hash(low->key, low->len)));
}

HybFilterAnswer
hyb_filter_ask_item(const HybFilterImage *image, Size size, HybLeaf *leaf,
					int row, int item, HybBuf *prefix)
{
	HybPos		pos = {.tie = HYB_BEFORE,.ncols = (uint8) leaf->desc->nkeys};
	uint32		bits = hyb_leaf_prefix(leaf, row, prefix);
	uint8		fingerprint = 0;

	if (image->fingerprints != 0)
		fingerprint = hyb_strings_fingerprint(leaf, prefix, bits, item);
	return ask_beginnings(image, size, prefix->data, prefix->len, &pos, fingerprint);
}

/* ---- filter pages ---- */

bool
hyb_filter_entry_valid(Page page, int slot)
{
	const HybFilterEntry *entry = &hyb_filter_entries(page)[slot];
	Size		lower = ((PageHeader) page)->pd_lower;

	return (Size) slot < hyb_page_opaque(page)->count &&
		SizeOfPageHeaderData + (Size) (slot + 1) * sizeof(HybFilterEntry) <= lower &&
		entry->offset == HYB_FILTER_ALIGN(entry->offset) &&
		entry->offset >= SizeOfPageHeaderData &&
		entry->len >= sizeof(HybFilterImage) &&
		(Size) entry->offset + entry->len <= lower;
}

/* The filter of a child, on its page, share-locked. */
typedef struct OpenFilter
{
	Buffer		buf;
	const HybFilterImage *image;
	Size		size;			/* of the image's body */
} OpenFilter;

/*
 * Open the filter of a child.  Returns false if it has none, or the page is no
 * longer what it was.
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

HybFilterAnswer
hyb_filter_probe(const HybIndex *ix, const HybChild *child,
				 const HybPos *low, const HybPos *high)
{
	OpenFilter	filter;
	HybFilterAnswer answer;
	bool		point = low->tie == HYB_BEFORE && high->tie == HYB_AFTER &&
		low->ncols == ix->desc->nkeys && high->ncols == low->ncols &&
		low->len == high->len &&
		(low->key == high->key || memcmp(low->key, high->key, low->len) == 0) &&
		hyb_key_has_one_form(ix->desc, low->key, low->len);

	/* only filters of keys that memcmp orders know ranges */
	if ((!point && !ix->desc->all_mem) || !open_filter(ix, child, &filter))
		return HYB_ANSWER_UNKNOWN;
	answer = hyb_filter_ask(filter.image, filter.size, low, high, point);
	Assert(hyb_page_is_locked(filter.buf));
	UnlockReleaseBuffer(filter.buf);
	if (answer == HYB_ANSWER_NO_HEADER)
		hyb_corrupted(ix->rel, child->filter_block, "The header of a filter is damaged.");
	if (answer == HYB_ANSWER_DAMAGED)
		hyb_corrupted(ix->rel, child->filter_block, "A filter is damaged.");
	return answer;
}
