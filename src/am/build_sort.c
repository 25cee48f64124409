/*
 * build_sort.c
 *		Sorting the entries of an index build as byte strings.
 *
 * The server's tuplesort keeps 8 bytes of abbreviated key beside a pointer to
 * each datum, and touches all datums again, in random order, when it returns
 * them.  Here the first 16 bytes lie in the array that is sorted: that is the
 * whole entry for an integer key with its TID, so the entries themselves are
 * never looked at, and for other keys mostly enough to tell two apart.
 *
 * What does not fit the memory goes to tuplesort, which sorts in files.
 */
#include "compat.h"

#include "algo/bits.h"
#include "am/build_sort.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type_d.h"
#include "key/key.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#define CHUNK_SIZE		(1024 * 1024)
#define FIRST_ITEMS		1024

/* How far ahead the entries to be returned next are fetched. */
#define PREFETCH		8

/* Length word and bytes of an entry lie in a chunk. */
typedef struct SortItem
{
	uint64		head[2];		/* the first 16 bytes, 0 after the end */
	const uint8 *entry;
} SortItem;

typedef struct SortChunk
{
	struct SortChunk *next;
	Size		size;
	Size		used;
	uint8		data[FLEXIBLE_ARRAY_MEMBER];
} SortChunk;

struct HybSort
{
	MemoryContext context;
	int			kilobytes;
	Size		used;			/* memory of chunks */
	SortItem   *items;
	uint64		nitems;
	uint64		items_alloc;
	uint64		next;			/* item to be returned next */
	SortChunk  *first;
	SortChunk  *last;

	/* once the memory is used up */
	Tuplesortstate *external;
	HybBuf		datum;
	void	   *returned;		/* the datum returned last, if it is ours */
};

static inline uint32
entry_len(const uint8 *entry)
{
	uint16		len;

	memcpy(&len, entry, sizeof(len));
	return len;
}

static inline int
compare_items(const SortItem *a, const SortItem *b)
{
	uint32		alen;
	uint32		blen;
	int			c = 0;

	if (a->head[0] != b->head[0])
		return a->head[0] < b->head[0] ? -1 : 1;
	if (a->head[1] != b->head[1])
		return a->head[1] < b->head[1] ? -1 : 1;
	alen = entry_len(a->entry);
	blen = entry_len(b->entry);
	if (alen > 16 && blen > 16)
		c = memcmp(a->entry + sizeof(uint16) + 16, b->entry + sizeof(uint16) + 16,
				   Min(alen, blen) - 16);
	return c != 0 ? c : (alen > blen) - (alen < blen);
}

#define ST_SORT sort_items
#define ST_ELEMENT_TYPE SortItem
#define ST_COMPARE(a, b) compare_items(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

HybSort *
hyb_sort_create(int kilobytes)
{
	HybSort    *sort = palloc0(sizeof(HybSort));

	sort->context = AllocSetContextCreate(CurrentMemoryContext, "hybrid sort",
										  ALLOCSET_DEFAULT_SIZES);
	sort->kilobytes = kilobytes;
	sort->items_alloc = FIRST_ITEMS;
	sort->items = MemoryContextAlloc(sort->context,
									 FIRST_ITEMS * sizeof(SortItem));
	return sort;
}

/* ---- files ---- */

static void
put_external(HybSort *sort, const uint8 *bytes, uint32 len)
{
	sort->datum.len = VARHDRSZ;
	hyb_buf_append(&sort->datum, bytes, len);
	SET_VARSIZE(sort->datum.data, sort->datum.len);
	tuplesort_putdatum(sort->external, PointerGetDatum(sort->datum.data), false);
}

/* Hand all entries on, letting go of our memory while doing so. */
static void
go_external(HybSort *sort)
{
	SortChunk  *chunk = sort->first;
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	pfree(sort->items);
	sort->items = NULL;
	sort->external = tuplesort_begin_datum(BYTEAOID, ByteaLessOperator,
										   InvalidOid, false, sort->kilobytes,
										   NULL, TUPLESORT_NONE);
	hyb_buf_reserve(&sort->datum, VARHDRSZ + PG_UINT16_MAX);
	while (chunk != NULL)
	{
		SortChunk  *next = chunk->next;

		for (Size off = 0; off < chunk->used;)
		{
			uint32		len = entry_len(chunk->data + off);

			put_external(sort, chunk->data + off + sizeof(uint16), len);
			off += sizeof(uint16) + len;
		}
		CHECK_FOR_INTERRUPTS();
		pfree(chunk);
		chunk = next;
	}
	sort->first = sort->last = NULL;
	MemoryContextSwitchTo(old);
}

/* ---- memory ---- */

/*
 * Make room for more items; false if the memory does not allow that.  The
 * share of items and chunks in it is taken to stay what it is.
 */
static bool
grow_items(HybSort *sort)
{
	Size		limit = (Size) sort->kilobytes * 1024;
	Size		used = sort->used + sort->nitems * sizeof(SortItem);
	double		fit = (double) sort->nitems * limit / Max(used, 1);
	uint64		n = sort->items_alloc * 2;

	if (n > fit)
		n = (uint64) fit;
	if (n < sort->items_alloc + sort->items_alloc / 8)
		return false;
	sort->items = repalloc_huge(sort->items, n * sizeof(SortItem));
	sort->items_alloc = n;
	return true;
}

static bool
add_chunk(HybSort *sort, Size need)
{
	Size		size = Max(CHUNK_SIZE, need);
	SortChunk  *chunk;

	if (sort->last != NULL &&
		sort->used + size + sort->items_alloc * sizeof(SortItem) >
		(Size) sort->kilobytes * 1024)
		return false;
	chunk = MemoryContextAlloc(sort->context, offsetof(SortChunk, data) + size);
	chunk->next = NULL;
	chunk->size = size;
	chunk->used = 0;
	if (sort->last != NULL)
		sort->last->next = chunk;
	else
		sort->first = chunk;
	sort->last = chunk;
	sort->used += size;
	return true;
}

void
hyb_sort_put(HybSort *sort, const uint8 *bytes, uint32 len)
{
	Size		need = sizeof(uint16) + len;
	uint16		len16 = (uint16) len;
	uint8		head[16] = {0};
	SortItem   *item;
	uint8	   *entry;

	Assert(len <= PG_UINT16_MAX);
	if (sort->external == NULL &&
		((sort->nitems == sort->items_alloc && !grow_items(sort)) ||
		 ((sort->last == NULL || sort->last->size - sort->last->used < need) &&
		  !add_chunk(sort, need))))
		go_external(sort);
	if (sort->external != NULL)
	{
		put_external(sort, bytes, len);
		return;
	}

	entry = sort->last->data + sort->last->used;
	sort->last->used += need;
	memcpy(entry, &len16, sizeof(uint16));
	memcpy(entry + sizeof(uint16), bytes, len);
	memcpy(head, bytes, Min(len, sizeof(head)));
	item = &sort->items[sort->nitems++];
	item->head[0] = hyb_load64be(head);
	item->head[1] = hyb_load64be(head + 8);
	item->entry = entry;
}

void
hyb_sort_perform(HybSort *sort)
{
	if (sort->external != NULL)
		tuplesort_performsort(sort->external);
	else
		sort_items(sort->items, sort->nitems);
}

bool
hyb_sort_get(HybSort *sort, const uint8 **bytes, uint32 *len)
{
	const uint8 *entry;

	if (sort->external != NULL)
	{
		Datum		datum;
		bool		null;

		if (sort->returned != NULL)
			pfree(sort->returned);
		sort->returned = NULL;
		if (!HYB_TUPLESORT_GETDATUM(sort->external, &datum, &null))
			return false;
		if (!HYB_GETDATUM_BORROWS)
			sort->returned = DatumGetPointer(datum);
		*bytes = (const uint8 *) VARDATA_ANY(DatumGetPointer(datum));
		*len = VARSIZE_ANY_EXHDR(DatumGetPointer(datum));
		return true;
	}

	if (sort->next == sort->nitems)
		return false;
#if defined(__GNUC__)
	if (sort->next + PREFETCH < sort->nitems)
		__builtin_prefetch(sort->items[sort->next + PREFETCH].entry);
#endif
	entry = sort->items[sort->next++].entry;
	*len = entry_len(entry);
	*bytes = entry + sizeof(uint16);
	return true;
}

void
hyb_sort_end(HybSort *sort)
{
	if (sort->external != NULL)
	{
		if (sort->returned != NULL)
			pfree(sort->returned);
		tuplesort_end(sort->external);
	}
	MemoryContextDelete(sort->context);
	pfree(sort);
}
