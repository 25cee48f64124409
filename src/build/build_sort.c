/*
 * build_sort.c
 *		Sorts the entries of an index build as byte strings.
 *
 * The server's tuplesort keeps 8 bytes of abbreviated key beside a pointer to each
 * datum, and reads all datums again, in random order, when it returns them.  Here
 * the first 16 bytes lie in the array that is sorted.  That is the whole entry for
 * an integer key with its TID.  Of other keys it is mostly enough to compare two.
 *
 * Entries that do not fit the memory go to sorted files (sorted_file.c).
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "build/build_internal.h"
#include "key/key.h"
#include "lib/sort_template.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

#define CHUNK_SIZE		(1024 * 1024)
#define FIRST_ITEMS		1024

/* Entries that are fetched ahead of the one to be returned. */
#define PREFETCH		8

/* Fewer entries than this are compared rather than spread by a byte. */
#define FEW_ITEMS		256

/*
 * `place` is the address of the entry's length word in a chunk, which its bytes
 * follow: an even number.  If the head holds the whole entry, it is an odd number:
 * twice the length plus one.
 */
typedef struct SortItem
{
	uint64		head[2];		/* see hyb_load_head */
	uintptr_t	place;
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
	SharedFileSet *shared;		/* NULL if files are this process's own */
	int			participant;
	Size		chunk_memory;
	SortItem   *items;
	uint64		nitems;
	uint64		items_alloc;
	uint64		next;			/* item to be returned next */
	SortChunk  *first;
	SortChunk  *current;		/* chunks behind this one are empty */
	uint8		returned[HYB_HEAD_BYTES];

	/* once the memory is used up */
	HybSortedWriter *writer;
	HybFileMerge *merge;
};

#ifdef USE_ASSERT_CHECKING
static void
sort_assert_valid(const HybSort *sort)
{
	Assert(sort->nitems <= sort->items_alloc && sort->next <= sort->nitems);
	Assert(sort->kilobytes > 0);
	Assert((sort->first == NULL) == (sort->current == NULL));
	Assert(sort->current == NULL || sort->current->used <= sort->current->size);
	Assert(sort->current == NULL || sort->current->next == NULL ||
		   sort->current->next->used == 0);
	Assert(sort->merge == NULL || (sort->writer != NULL && sort->items == NULL));
}
#else
#define sort_assert_valid(sort) ((void) (sort))
#endif

static inline uint32
entry_len(const SortItem *item)
{
	uint16		len;

	if (item->place & 1)
		return (uint32) (item->place >> 1);
	memcpy(&len, (const uint8 *) item->place, sizeof(len));
	return len;
}

/* The bytes behind the head, of an entry that has any. */
static inline const uint8 *
entry_rest(const SortItem *item)
{
	return (const uint8 *) item->place + sizeof(uint16) + HYB_HEAD_BYTES;
}

static inline int
compare_sort_items(const SortItem *a, const SortItem *b)
{
	uint32		alen;
	uint32		blen;
	int			c = 0;

	if (a->head[0] != b->head[0])
		return a->head[0] < b->head[0] ? -1 : 1;
	if (a->head[1] != b->head[1])
		return a->head[1] < b->head[1] ? -1 : 1;
	alen = entry_len(a);
	blen = entry_len(b);
	if (alen > HYB_HEAD_BYTES && blen > HYB_HEAD_BYTES)
		c = memcmp(entry_rest(a), entry_rest(b), Min(alen, blen) - HYB_HEAD_BYTES);
	return c != 0 ? c : (alen > blen) - (alen < blen);
}

#define ST_SORT sort_items
#define ST_ELEMENT_TYPE SortItem
#define ST_COMPARE(a, b) compare_sort_items(a, b)
#define ST_SCOPE static
#define ST_CHECK_FOR_INTERRUPTS
#define ST_DECLARE
#define ST_DEFINE
#include "lib/sort_template.h"

/* The first byte of the heads in which items differ, or HYB_HEAD_BYTES. */
static int
first_difference(const SortItem *items, uint64 n)
{
	uint64		differs[2] = {0, 0};

	for (uint64 i = 1; i < n; i++)
	{
		differs[0] |= items[i].head[0] ^ items[0].head[0];
		differs[1] |= items[i].head[1] ^ items[0].head[1];
	}
	if (differs[0] != 0)
		return (63 - pg_leftmost_one_pos64(differs[0])) / 8;
	if (differs[1] != 0)
		return 8 + (63 - pg_leftmost_one_pos64(differs[1])) / 8;
	return HYB_HEAD_BYTES;
}

static inline uint8
byte_of(const SortItem *item, int byte)
{
	return (uint8) (item->head[byte >> 3] >> (56 - 8 * (byte & 7)));
}

/*
 * Moves the items into buckets by the value of a byte.  Bucket v is then
 * [ends[v - 1], ends[v]).
 */
static void
distribute(SortItem *items, uint64 n, int byte, uint64 ends[256])
{
	uint64		next[256] = {0};
	uint64		sum = 0;

	for (uint64 i = 0; i < n; i++)
		next[byte_of(&items[i], byte)]++;
	for (int v = 0; v < 256; v++)
	{
		uint64		count = next[v];

		next[v] = sum;
		sum += count;
		ends[v] = sum;
	}
	Assert(sum == n);
	for (int v = 0; v < 256; v++)
		while (next[v] < ends[v])
		{
			SortItem	item = items[next[v]];
			uint8		to;

			/* put the item in its place, and go on with what was there */
			while ((to = byte_of(&item, byte)) != v)
			{
				SortItem	other = items[next[to]];

				items[next[to]++] = item;
				item = other;
			}
			items[next[v]++] = item;
		}
}

/*
 * Spreads items by the first byte in which they differ, and each bucket by its
 * next one, until there are few to compare.  Comparing them all would take three
 * times as long, because it mispredicts every other branch.
 */
static void
spread(SortItem *items, uint64 n)
{
	uint64		ends[256];
	uint64		from = 0;
	int			byte;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (n < FEW_ITEMS || (byte = first_difference(items, n)) == HYB_HEAD_BYTES)
	{
		sort_items(items, n);
		return;
	}
	distribute(items, n, byte, ends);
	for (int v = 0; v < 256; v++)
	{
		if (ends[v] - from > 1)
			spread(items + from, ends[v] - from);
		from = ends[v];
	}
}

/* Rows often come in the order of their keys. */
static bool
is_sorted(const SortItem *items, uint64 n)
{
	for (uint64 i = 1; i < n; i++)
		if (compare_sort_items(&items[i - 1], &items[i]) > 0)
			return false;
	return true;
}

static void
sort_all(HybSort *sort)
{
	if (!is_sorted(sort->items, sort->nitems))
		spread(sort->items, sort->nitems);
	Assert(is_sorted(sort->items, sort->nitems));
}

HybSort *
hyb_sort_create(int kilobytes, SharedFileSet *shared, int participant)
{
	HybSort    *sort = palloc0(sizeof(HybSort));

	sort->context = AllocSetContextCreate(CurrentMemoryContext, "hybrid sort",
										  ALLOCSET_DEFAULT_SIZES);
	sort->kilobytes = kilobytes;
	sort->shared = shared;
	sort->participant = participant;
	sort->items_alloc = FIRST_ITEMS;
	sort->items = MemoryContextAlloc(sort->context,
									 FIRST_ITEMS * sizeof(SortItem));
	return sort;
}

static inline Size
memory_limit(const HybSort *sort)
{
	return (Size) sort->kilobytes * 1024;
}

/* The bytes of an item; they hold until the next call. */
static inline void
item_bytes(HybSort *sort, const SortItem *item, const uint8 **bytes,
		   uint32 *len)
{
	*len = entry_len(item);
	if (item->place & 1)
	{
		hyb_store64be(sort->returned, item->head[0]);
		hyb_store64be(sort->returned + 8, item->head[1]);
		*bytes = sort->returned;
	}
	else
		*bytes = (const uint8 *) item->place + sizeof(uint16);
}

static inline void
prefetch(const HybSort *sort, uint64 at)
{
#if defined(__GNUC__)
	if (at + PREFETCH < sort->nitems &&
		(sort->items[at + PREFETCH].place & 1) == 0)
		__builtin_prefetch((const void *) sort->items[at + PREFETCH].place);
#endif
}

/* ---- files ---- */

/* Sorts what is in memory, writes it to a sorted file, and forgets it. */
static void
write_sorted_file(HybSort *sort)
{
	if (sort->writer == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(sort->context);

		sort->writer = hyb_sorted_create(sort->shared, sort->participant);
		MemoryContextSwitchTo(old);
	}
	sort_all(sort);
	hyb_sorted_begin(sort->writer);
	for (uint64 i = 0; i < sort->nitems; i++)
	{
		const uint8 *bytes;
		uint32		len;

		prefetch(sort, i);
		item_bytes(sort, &sort->items[i], &bytes, &len);
		hyb_sorted_add(sort->writer, bytes, len);
	}
	hyb_sorted_end(sort->writer);
	sort_assert_valid(sort);
	sort->nitems = 0;
	for (SortChunk *chunk = sort->first; chunk != NULL; chunk = chunk->next)
		chunk->used = 0;
	sort->current = sort->first;
}

static void
free_memory(HybSort *sort)
{
	while (sort->first != NULL)
	{
		SortChunk  *next = sort->first->next;

		pfree(sort->first);
		sort->first = next;
	}
	pfree(sort->items);
	sort->items = NULL;
	sort->current = NULL;
}

/* ---- memory ---- */

/*
 * Makes room for more items, or returns false if the memory does not allow that.
 * Items and chunks are taken to keep their shares of the memory.
 */
static bool
grow_sort_items(HybSort *sort)
{
	Size		limit = memory_limit(sort);
	Size		used = sort->chunk_memory + sort->nitems * sizeof(SortItem);
	double		fit = (double) sort->nitems * limit / Max(used, 1);
	uint64		n = sort->items_alloc * 2;

	if (n > fit)
		n = (uint64) fit;
	if (n < sort->items_alloc + sort->items_alloc / 8)
		return false;
	Assert(n > sort->nitems);
	sort->items = repalloc_huge(sort->items, n * sizeof(SortItem));
	sort->items_alloc = n;
	return true;
}

static bool
next_chunk(HybSort *sort, Size need)
{
	Size		size = Max(CHUNK_SIZE, need);
	SortChunk  *chunk;

	if (sort->current != NULL && sort->current->next != NULL &&
		sort->current->next->size >= need)
	{
		sort->current = sort->current->next;
		return true;
	}
	if (sort->current != NULL &&
		(sort->current->next != NULL ||
		 sort->chunk_memory + size + sort->items_alloc * sizeof(SortItem) >
		 memory_limit(sort)))
		return false;
	chunk = MemoryContextAlloc(sort->context, offsetof(SortChunk, data) + size);
	chunk->next = NULL;
	chunk->size = size;
	chunk->used = 0;
	if (sort->current != NULL)
		sort->current->next = chunk;
	else
		sort->first = chunk;
	sort->current = chunk;
	sort->chunk_memory += size;
	return true;
}

/* Is there room for an entry that needs this much of a chunk (0 for a short one)? */
static inline bool
sort_has_room(HybSort *sort, Size need)
{
	return (sort->nitems < sort->items_alloc || grow_sort_items(sort)) &&
		(need == 0 ||
		 (sort->current != NULL &&
		  sort->current->size - sort->current->used >= need) ||
		 next_chunk(sort, need));
}

void
hyb_sort_put(HybSort *sort, const uint8 *bytes, uint32 len)
{
	Size		need = len <= HYB_HEAD_BYTES ? 0 :
		TYPEALIGN(sizeof(uint16), sizeof(uint16) + len);
	SortItem   *item;

	Assert(len <= PG_UINT16_MAX);
	Assert(sort->merge == NULL && sort->next == 0);
	if (unlikely(!sort_has_room(sort, need)))
	{
		write_sorted_file(sort);
		if (!sort_has_room(sort, need))
			elog(ERROR, "no memory for an entry of an index build");
	}

	item = &sort->items[sort->nitems++];
	hyb_load_head(bytes, len, item->head);
	if (need == 0)
		item->place = ((uintptr_t) len << 1) | 1;
	else
	{
		uint8	   *entry = sort->current->data + sort->current->used;
		uint16		len16 = (uint16) len;

		sort->current->used += need;
		Assert(sort->current->used <= sort->current->size);
		memcpy(entry, &len16, sizeof(uint16));
		memcpy(entry + sizeof(uint16), bytes, len);
		item->place = (uintptr_t) entry;
	}
}

void
hyb_sort_perform(HybSort *sort)
{
	MemoryContext old;

	sort_assert_valid(sort);
	if (sort->writer == NULL)
	{
		sort_all(sort);
		return;
	}
	write_sorted_file(sort);
	free_memory(sort);
	hyb_sorted_reduce(sort->writer, hyb_sorted_fan_in(memory_limit(sort)),
					  memory_limit(sort));
	old = MemoryContextSwitchTo(sort->context);
	sort->merge = hyb_file_merge_begin(hyb_sorted_written(sort->writer), NULL, NULL,
									   memory_limit(sort));
	MemoryContextSwitchTo(old);
}

void
hyb_sort_share(HybSort *sort, int most)
{
	write_sorted_file(sort);
	free_memory(sort);
	hyb_sorted_reduce(sort->writer, most, memory_limit(sort));
	hyb_sorted_share(sort->writer);
}

bool
hyb_sort_get(HybSort *sort, const uint8 **bytes, uint32 *len)
{
	if (sort->merge != NULL)
		return hyb_file_merge_get(sort->merge, bytes, len);
	if (sort->next == sort->nitems)
		return false;
	/* entries differ, since each has its TID */
	Assert(sort->next == 0 ||
		   compare_sort_items(&sort->items[sort->next - 1], &sort->items[sort->next]) < 0);
	prefetch(sort, sort->next);
	item_bytes(sort, &sort->items[sort->next++], bytes, len);
	return true;
}

void
hyb_sort_end(HybSort *sort)
{
	if (sort->merge != NULL)
		hyb_file_merge_end(sort->merge);
	if (sort->writer != NULL)
		hyb_sorted_close(sort->writer);
	MemoryContextDelete(sort->context);
	pfree(sort);
}
