/*
 * fuzz_pages.c
 *		Fuzz target: the readers of static leaves, internal nodes, delta pages
 *		and filter pages, on arbitrary bytes.
 *
 * The first byte tells what the page is taken for, and which columns the index
 * has; the rest is the page.  Whatever it holds, the readers return something
 * or report damage, and read nothing but the page.  Seeds are pages that the
 * real writers made of regular entries, leaves in all layouts.
 */
#include "server.h"

#include "algo/fst.h"
#include "algo/ribbon.h"
#include "filter/filter.h"
#include "leaf/leaf.h"
#include "leaf/prefixes.h"
#include "log/delta.h"
#include "store/inner.h"

#define NDESCS	7

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
extern size_t hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max);

/* ---- indexes ---- */

static void
set_column(HybColumn *col, HybStore store, int width, bool terminated, bool desc)
{
	col->store = store;
	col->compare = HYB_COMPARE_MEM;
	col->width = (uint8) width;
	col->terminated = terminated;
	col->desc = desc;
	col->nulls_first = desc;
}

/*
 * 0: int4; 1: text, int8; 2: uuid; 3: text DESC, with an int4 included; 4: int4,
 * with a payload included that is worth compressing; 5: uuid, 6: text, int8, both
 * with leaves of prefixes
 */
static const HybKeyDesc *
desc_of(int i)
{
	static HybKeyDesc *descs[NDESCS];
	HybKeyDesc *desc;

	if (descs[i] != NULL)
		return descs[i];
	desc = calloc(1, offsetof(HybKeyDesc, cols) + 2 * sizeof(HybColumn));
	desc->natts = i == 4 || i == 6 ? 2 : i == 5 ? 1 : i % 2 + 1;
	desc->nkeys = i == 1 || i == 6 ? 2 : 1;
	desc->all_mem = desc->exact = true;
	if (i == 4)
		set_column(&desc->cols[1], HYB_STORE_BYTES, 0, false, false);
	if (i == 0 || i == 4)
		set_column(&desc->cols[0], HYB_STORE_INT, 4, false, false);
	else if (i == 2 || i == 5)
		set_column(&desc->cols[0], HYB_STORE_BYTES, 16, false, false);
	else
	{
		set_column(&desc->cols[0], HYB_STORE_BYTES, 0, true, i == 3);
		set_column(&desc->cols[1], HYB_STORE_INT, i == 3 ? 4 : 8, false, false);
	}
	desc->truncated = i >= 5;
	return descs[i] = desc;
}

static HybIndex *
index_of(int i)
{
	static HybIndex ix;

	ix.rel = hyb_fuzz_relation();
	ix.desc = unconstify(HybKeyDesc *, desc_of(i));
	ix.incarnation = 77;
	return &ix;
}

/* ---- reading ---- */

/* A position made of bytes of the page. */
static HybPos
position(const HybKeyDesc *desc, const char *page, int at, int tie)
{
	HybPos		pos = {0};
	HybValue	vals[2];
	const uint8 *key = (const uint8 *) page + 24 + at;

	pos.key = key;
	pos.len = (uint16) hyb_key_split(desc, key, 600, desc->nkeys, vals);
	pos.ncols = (uint8) desc->nkeys;
	if (pos.len == 0)
	{
		/* raw bytes */
		pos.len = (uint16) (at % 40);
		pos.ncols = 0;
		tie = tie == HYB_AT ? HYB_BEFORE : tie;
	}
	pos.tie = (int8) tie;
	ItemPointerSet(&pos.tid, (BlockNumber) at, 3);
	return pos;
}

static void
read_leaf(const HybKeyDesc *desc, const char *page)
{
	static ItemPointerData tids[HYB_LEAF_MAX_ITEMS];
	HybLeaf		leaf = {0};
	HybBuf		entry = {0};

	hyb_leaf_open(&leaf, desc, page, hyb_fuzz_relation(), 1);
	for (int at = 0; at < 7000; at += 701)
	{
		HybPos		pos = position(desc, page, at, at % 3 - 1);
		int			row;
		int			end;
		int			item;

		if (setjmp(hyb_fuzz_error) == 0)
		{
			item = hyb_leaf_search(&leaf, &pos, &row);
			if (item < 0 || item > leaf.nitems || row < 0 || row > leaf.nrows)
				abort();
			if (pos.ncols > 0)
				(void) hyb_leaf_search_equal(&leaf, &pos, &row, &end);
		}
	}
	if (setjmp(hyb_fuzz_error) == 0)
		for (int row = 0; row < leaf.nrows; row += 1 + leaf.nrows / 200)
		{
			entry.len = 0;
			if (leaf.layout->keeps_keys)
				hyb_key_join(desc, hyb_leaf_row(&leaf, row), desc->natts, &entry);
			else
				(void) hyb_leaf_prefix(&leaf, row, &entry);
			(void) hyb_leaf_row_start(&leaf, row);
		}
	leaf.scratch_row = -1;
	if (setjmp(hyb_fuzz_error) == 0)
		hyb_leaf_tids(&leaf, 0, leaf.nitems, tids);
	if (setjmp(hyb_fuzz_error) == 0)
	{
		(void) hyb_leaf_tids(&leaf, leaf.nitems / 2, 1, tids);
		(void) hyb_leaf_row_of_item(&leaf, leaf.nitems / 2);
		for (int i = 0; i < leaf.nitems; i++)
			(void) hyb_leaf_is_tombstone(&leaf, i);
	}
	if (setjmp(hyb_fuzz_error) == 0)
		(void) hyb_leaf_verify(&leaf);
}

static void
read_inner(const HybKeyDesc *desc, Page page)
{
	int			n = hyb_inner_count(page);

	for (int i = 0; i < n; i++)
	{
		HybChild	child;

		hyb_inner_get(page, i, &child, hyb_fuzz_relation(), 1);
	}
	for (int at = 0; at < 7000; at += 977)
	{
		HybPos		pos = position(desc, (char *) page, at, at % 3 - 1);

		(void) hyb_inner_search(desc, page, &pos, at & 1, hyb_fuzz_relation(), 1);
	}
}

static void
read_delta(const HybKeyDesc *desc, Page page)
{
	HybEntry	entry = {.block = 1};
	const uint8 *last = NULL;
	uint32		lastlen = 0;

	while (hyb_delta_next(hyb_fuzz_relation(), page, &entry))
	{
		HybValue	vals[2];
		uint32		keylen = hyb_key_length(desc, entry.bytes, entry.len);

		(void) hyb_key_split(desc, entry.bytes, entry.len, desc->natts, vals);
		if (last != NULL && keylen > 0)
			(void) hyb_key_compare(desc, last, lastlen, entry.bytes, keylen);
		last = entry.bytes;
		lastlen = keylen;
	}
}

static void
read_filters(Page page)
{
	for (int i = 0; i < hyb_filter_count(page) && i < 600; i++)
	{
		const HybFilterImage *image;
		const HybFilterRoutine *routine;
		const void *body;
		Size		size;

		if (!hyb_filter_entry_valid(page, i))
			continue;
		image = hyb_filter_image(page, i);
		routine = hyb_filter_routine(image->kind);
		if (routine == NULL)
			continue;
		body = hyb_filter_body(image);
		size = hyb_filter_body_size(&hyb_filter_entries(page)[i]);
		(void) routine->verify(body, size);
		for (int at = 24; at < 6000; at += 997)
		{
			HybPos		low = {.key = (uint8 *) page + at,.len = 4,.tie = HYB_BEFORE};
			HybPos		high = {.key = (uint8 *) page + at + 50,.len = 7,.tie = HYB_AFTER};
			HybPos		point = {.key = (uint8 *) page + at,.len = 12,.tie = HYB_BEFORE};

			(void) routine->probe(body, size, &point, &point, true);
			(void) routine->probe(body, size, &low, &high, false);
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const HybKeyDesc *desc;
	PageHeader	header;
	char	   *page;

	if (size < 2)
		return 0;
	/* a piece of its own, so that reads beyond it are noticed */
	page = aligned_alloc(64, BLCKSZ);
	memset(page, 0, BLCKSZ);
	memcpy(page, data + 1, Min(size - 1, BLCKSZ));
	header = (PageHeader) page;
	desc = desc_of((data[0] >> 2) % NDESCS);

	/* what hyb_page_check requires of every page */
	header->pd_special = BLCKSZ - MAXALIGN(sizeof(HybPageOpaque));
	if (header->pd_lower >= SizeOfPageHeaderData &&
		header->pd_lower <= header->pd_upper &&
		header->pd_upper <= header->pd_special &&
		setjmp(hyb_fuzz_error) == 0)
		switch (data[0] & 3)
		{
			case 0:
				read_leaf(desc, page);
				break;
			case 1:
				read_inner(desc, (Page) page);
				break;
			case 2:
				read_delta(desc, (Page) page);
				break;
			case 3:
				read_filters((Page) page);
				break;
		}
	hyb_fuzz_reset();
	free(page);
	return 0;
}

/* ---- seeds ---- */

typedef struct Seed
{
	int			desc;
	int			wanted;			/* page kind, as in the first byte */
	char	   *page;			/* first leaf */
	HybChild	children[200];
	int			n;
} Seed;

static void
emit(void *arg, Page page, const HybPos *low)
{
	Seed	   *seed = arg;
	HybChild   *child;

	if (seed->page == NULL)
		seed->page = memcpy(palloc(BLCKSZ), page, BLCKSZ);
	if (seed->n == lengthof(seed->children))
		return;
	child = &seed->children[seed->n++];
	memset(child, 0, sizeof(HybChild));
	child->block = (BlockNumber) seed->n;
	child->stamp = 5;
	child->filter_block = InvalidBlockNumber;
	child->low = *low;
	if (low->len > 0)
		child->low.key = memcpy(palloc(low->len), low->key, low->len);
}

/* The i-th value of a column; `style` says how regular they are. */
static void
make_value(const HybColumn *col, unsigned i, int style, uint8 *space,
		   HybValue *val)
{
	uint64		v = style == 0 ? i * 3 : style == 1 ? i / 5 : i * 1000 + i * i % 777;

	memset(val, 0, sizeof(HybValue));
	if (style == 2 && i > 4000)
	{
		val->isnull = !col->desc;
		if (val->isnull)
			return;
	}
	if (col->store == HYB_STORE_INT)
	{
		val->ival = v;
		return;
	}
	val->len = col->width;
	if (col->width == 0 && !col->terminated)
		val->len = (uint32) sprintf((char *) space,
									"{\"id\": %u, \"name\": \"%u\", \"status\": \"%s\", \"visits\": %u, \"verified\": true}",
									(unsigned) v, i * 7919, i % 3 ? "active" : "inactive", i % 1000);
	else if (col->width == 0)
	{
		memcpy(space, "key 0000000000 and a tail", 25);
		val->len = style == 2 ? 25 : 14;
		for (uint64 rest = v, at = 13; rest > 0; rest /= 10)
			space[at--] = (uint8) ('0' + rest % 10);
	}
	if (col->width > 0)
		for (int j = 0; j < col->width; j++)
			space[j] = (uint8) (j < 4 ? v >> (24 - 8 * j) : v * (j + 7));
	else if (col->desc)
		for (uint32 j = 0; j < val->len; j++)
			space[j] = (uint8) ~(j < 14 && j > 3 ? '9' - (space[j] - '0') : space[j]);
	val->ptr = space;
}

static void *
resize(void *old, size_t size)
{
	return old == NULL ? palloc(size) : repalloc(old, size);
}

size_t
hyb_fuzz_seed(unsigned i, uint8_t *data, size_t max)
{
	static uint8 space[2][200];
	Seed		seed = {(int) (i / 4 % NDESCS), (int) (i % 4)};
	const HybIndex *ix = index_of(seed.desc);
	const HybKeyDesc *desc = ix->desc;
	int			style = (int) (i / (4 * NDESCS));
	const HybLeafLayout *layout = &hyb_columnar_layout;
	PGAlignedBlock page;
	HybFstBuilder *fst = NULL;

	if (style >= 3)
		return 0;
	if (desc->truncated)
		layout = hyb_key_is_fixed(desc) ? &hyb_trie_layout : &hyb_strings_layout;
	if (setjmp(hyb_fuzz_error) != 0)
		abort();

	if (seed.wanted < 2)
	{
		HybLeafBuilder *builder = hyb_leaf_builder_create(ix, layout, 5, emit, &seed);

		for (unsigned e = 0; e < 6000; e++)
		{
			HybValue	vals[2];
			ItemPointerData tid;

			for (int c = 0; c < desc->natts; c++)
				make_value(&desc->cols[c], e, style, space[c], &vals[c]);
			ItemPointerSet(&tid, e / 50, (OffsetNumber) (e % 50 + 1));
			hyb_leaf_builder_add(builder, vals, &tid);
		}
		hyb_leaf_builder_finish(builder);
		if (seed.wanted == 0)
			memcpy(page.data, seed.page, BLCKSZ);
		else
		{
			hyb_page_init((Page) page.data, ix, HYB_PAGE_INNER, 1, 5);
			hyb_inner_fill((Page) page.data, seed.children, Min(seed.n, 40),
						   style != 1);
		}
	}
	else if (seed.wanted == 2)
	{
		PageHeader	header = (PageHeader) page.data;
		HybBuf		entry = {0};

		hyb_page_init((Page) page.data, ix, HYB_PAGE_DELTA, 0, 5);
		for (unsigned e = 0; header->pd_lower < 7900; e++)
		{
			HybValue	vals[2];
			HybEntry	delta;

			for (int c = 0; c < desc->natts; c++)
				make_value(&desc->cols[c], e, style, space[c], &vals[c]);
			entry.len = 0;
			hyb_key_join(desc, vals, desc->natts, &entry);
			delta.bytes = entry.data;
			delta.len = entry.len;
			ItemPointerSet(&delta.tid, e, 1);
			header->pd_lower += hyb_delta_image(&delta, (uint8 *) page.data + header->pd_lower);
			hyb_page_opaque((Page) page.data)->count++;
		}
	}
	else
	{
		Page		filters = (Page) page.data;
		Size		off = SizeOfPageHeaderData + 3 * sizeof(HybFilterEntry);

		hyb_page_init(filters, ix, HYB_PAGE_FILTER, 0, 5);
		for (int f = 0; f < 3; f++)
		{
			HybBuf		entry = {0};
			HybFilterEntry *place = &hyb_filter_entries(filters)[f];
			static HybRibbonBuilder ribbon;
			static uint64_t hashes[200];
			bool		points = f == 1;
			Size		size;

			fst = hyb_fst_builder_create(resize, 4 * style);
			for (unsigned e = 0; e < 200; e++)
			{
				HybValue	vals[2];

				for (int c = 0; c < desc->nkeys; c++)
					make_value(&desc->cols[c], e + f * 200, 0, space[c], &vals[c]);
				entry.len = 0;
				hyb_key_join(desc, vals, desc->nkeys, &entry);
				(void) hyb_fst_builder_add(fst, entry.data, entry.len);
				hashes[e] = hyb_byte_hash(entry.data, entry.len);
			}
			size = sizeof(HybFilterImage) +
				(points ? hyb_ribbon_build(&ribbon, hashes, 200, HYB_RIBBON_BITS) : hyb_fst_builder_finish(fst));
			if (off + size > BLCKSZ - sizeof(HybPageOpaque))
				break;
			place->block = (BlockNumber) f + 1;
			place->offset = (uint16) off;
			place->len = (uint16) size;
			place->stamp = 0;
			memset(filters + off, 0, sizeof(HybFilterImage));
			filters[off] = points ? HYB_FILTER_POINTS : HYB_FILTER_SURF;
			if (points)
				hyb_ribbon_write(&ribbon, (uint8_t *) filters + off + sizeof(HybFilterImage));
			else
				hyb_fst_builder_write(fst, filters + off + sizeof(HybFilterImage));
			off += HYB_FILTER_ALIGN(size);
			hyb_page_opaque(filters)->count = f + 1;
			((PageHeader) filters)->pd_lower = (LocationIndex) off;
		}
	}
	hyb_fuzz_reset();
	data[0] = (uint8_t) (seed.wanted | seed.desc << 2);
	memcpy(data + 1, page.data, BLCKSZ);
	return BLCKSZ + 1;
}
