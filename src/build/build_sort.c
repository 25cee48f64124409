/*
 * build_sort.c
 *		Sorts the entries of an index build as byte strings.
 *
 * The server's tuplesort keeps 8 bytes of abbreviated key beside a pointer to each
 * datum, and reads all datums again, in random order, when it returns them.  Here
 * the first 16 bytes lie in the array that is sorted.  That is the whole entry for
 * an integer key with its TID.  Of other keys it is mostly enough to compare two.
 *
 * Entries that do not fit the memory go to sorted files, which sorted_file.c reads.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "build/build_internal.h"
#include "key/key.h"
#include "lib/sort_template.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "utils/memutils.h"

/* Memory of a sort: at first, and the least limit that it can do with. */
#define FIRST_MEMORY	(1024 * 1024)
#define LEAST_MEMORY	(64 * 1024)

/* The longest entry with its TID, and the byte of a dead row */
#define MOST_SORTED		(HYB_MAX_ENTRY_SIZE + HYB_SORTED_TID_BYTES + 1)

/* Fewer entries than this are compared rather than spread by a byte. */
#define FEW_ITEMS		256

/*
 * Entries that follow each other lie far apart in memory, unless the rows came in the
 * order of their keys.  The processor is told of one when this number of items comes
 * before it, or it would wait for each.  4 to 16 do equally well; 2 is too late, and 32
 * loses where entries are long.
 */
#define ITEMS_AHEAD		8

/*
 * `place` is the address of the entry's length word, which the bytes behind the head
 * follow: an even number.  If the head holds the whole entry, it is an odd number:
 * twice the length plus one.
 */
typedef struct SortItem
{
	uint64		head[2];		/* see hyb_load_head */
	uintptr_t	place;
} SortItem;

struct HybSort
{
	MemoryContext context;
	Size		limit;			/* bytes of memory */
	SharedFileSet *shared;		/* NULL if files are this process's own */
	int			participant;

	/*
	 * One piece of memory.  Items fill it from its beginning, and what does
	 * not fit the items from its end.
	 */
	SortItem   *items;
	Size		size;
	uint64		nitems;
	Size		used;			/* bytes at the end */

	uint64		next;			/* item to be returned next */
	uint8		returned[MOST_SORTED];

	/* once the memory is used up */
	BufFile    *file;
	int			pass;			/* file merges of all sorted files so far */
	List	   *files;			/* HybSortedFile */
	int64		from;			/* first block of the sorted file at hand */
	int64		at;				/* the block at hand */
	uint8	   *block;			/* of HYB_SORTED_BLOCK bytes */
	uint32		filled;
	HybFileMerge *merge;
};

#ifdef USE_ASSERT_CHECKING
static void
sort_assert_valid(const HybSort *sort)
{
	Assert(sort->size <= sort->limit && sort->next <= sort->nitems);
	Assert(sort->nitems * sizeof(SortItem) + sort->used <= sort->size);
	Assert(sort->merge == NULL || (sort->file != NULL && sort->items == NULL));
	Assert(sort->filled <= HYB_SORTED_BLOCK && sort->from <= sort->at);
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
	return (const uint8 *) item->place + sizeof(uint16);
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
	sort->limit = Max((Size) kilobytes * 1024, LEAST_MEMORY);
	sort->shared = shared;
	sort->participant = participant;
	sort->size = Min(FIRST_MEMORY, sort->limit);
	sort->items = MemoryContextAlloc(sort->context, sort->size);
	return sort;
}

/* The bytes of an item; they hold until the next call.  For items in their order. */
static inline void
item_bytes(HybSort *sort, uint64 i, const uint8 **bytes, uint32 *len)
{
	const SortItem *item = &sort->items[i];

	Assert(i < sort->nitems);
	if (i + ITEMS_AHEAD < sort->nitems && (item[ITEMS_AHEAD].place & 1) == 0)
		HYB_PREFETCH((const void *) item[ITEMS_AHEAD].place);
	*len = entry_len(item);
	hyb_store64be(sort->returned, item->head[0]);
	hyb_store64be(sort->returned + 8, item->head[1]);
	if (*len > HYB_HEAD_BYTES)
		memcpy(sort->returned + HYB_HEAD_BYTES, entry_rest(item), *len - HYB_HEAD_BYTES);
	*bytes = sort->returned;
}

/* ---- files ---- */

static void
create_sorted_file(HybSort *sort)
{
	char		name[MAXPGPATH];

	hyb_sorted_file_name(name, "sorted", sort->participant, sort->pass);
	sort->file = sort->shared == NULL ? BufFileCreateTemp(false) :
		BufFileCreateFileSet(&sort->shared->fs, name);
	sort->files = NIL;
	sort->from = sort->at = 0;
}

static void
write_block(HybSort *sort)
{
	CHECK_FOR_INTERRUPTS();
	Assert(sort->filled > 0 && sort->filled <= HYB_SORTED_BLOCK);
	memset(sort->block + sort->filled, 0, HYB_SORTED_BLOCK - sort->filled);
	BufFileWrite(sort->file, sort->block, HYB_SORTED_BLOCK);
	sort->filled = 0;
	sort->at++;
}

/* Adds an entry to the sorted file at hand. */
static void
add_to_file(HybSort *sort, const uint8 *bytes, uint32 len)
{
	uint16		len16 = (uint16) len;
	uint8	   *to;

	Assert(len > 0 && sizeof(len16) + len <= BLCKSZ);
	if (sort->filled + sizeof(len16) + len > HYB_SORTED_BLOCK)
		write_block(sort);
	to = sort->block + sort->filled;
	memcpy(to, &len16, sizeof(len16));
	memcpy(to + sizeof(len16), bytes, len);
	sort->filled += sizeof(len16) + len;
}

/* Ends the sorted file at hand, if it has any entry. */
static void
end_sorted_file(HybSort *sort)
{
	HybSortedFile *sorted = palloc(sizeof(HybSortedFile));

	if (sort->filled > 0)
		write_block(sort);
	if (sort->at == sort->from)
		return;
	sorted->file = sort->file;
	sorted->from = sort->from;
	sorted->to = sort->from = sort->at;
	sort->files = lappend(sort->files, sorted);
}

/* Sorts what is in memory, writes it to a sorted file, and forgets it. */
static void
write_sorted_file(HybSort *sort)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	if (sort->file == NULL)
	{
		create_sorted_file(sort);
		sort->block = palloc(HYB_SORTED_BLOCK);
	}
	sort_all(sort);
	for (uint64 i = 0; i < sort->nitems; i++)
	{
		const uint8 *bytes;
		uint32		len;

		item_bytes(sort, i, &bytes, &len);
		add_to_file(sort, bytes, len);
	}
	end_sorted_file(sort);
	sort_assert_valid(sort);
	sort->nitems = 0;
	sort->used = 0;
	MemoryContextSwitchTo(old);
}

/* File merges of `fan_in` neighbouring sorted files at a time, to a new file. */
static void
file_merge_pass(HybSort *sort, int fan_in)
{
	List	   *files = sort->files;
	BufFile    *old_file = sort->file;

	sort->pass++;
	create_sorted_file(sort);
	for (int first = 0; first < list_length(files); first += fan_in)
	{
		List	   *some = list_copy_head(list_copy_tail(files, first), fan_in);
		HybFileMerge *merge = hyb_file_merge_begin(some, NULL, NULL);
		const uint8 *bytes;
		uint32		len;

		while (hyb_file_merge_get(merge, &bytes, &len))
			add_to_file(sort, bytes, len);
		end_sorted_file(sort);
		hyb_file_merge_end(merge);
	}
	BufFileClose(old_file);
	if (sort->shared != NULL)
	{
		char		name[MAXPGPATH];

		hyb_sorted_file_name(name, "sorted", sort->participant, sort->pass - 1);
		BufFileDeleteFileSet(&sort->shared->fs, name, false);
	}
	Assert(list_length(sort->files) < list_length(files));
	list_free_deep(files);
}

/* Has at most `most` sorted files, and frees the memory for their file merge. */
static void
finish_files(HybSort *sort, int most)
{
	MemoryContext old = MemoryContextSwitchTo(sort->context);

	write_sorted_file(sort);
	pfree(sort->items);
	sort->items = NULL;
	sort->size = 0;
	while (list_length(sort->files) > Max(most, 1))
		file_merge_pass(sort, hyb_sorted_fan_in(sort->limit));
	MemoryContextSwitchTo(old);
}

/* ---- memory ---- */

static inline bool
sort_has_room(const HybSort *sort, Size need)
{
	return (sort->nitems + 1) * sizeof(SortItem) + sort->used + need <= sort->size;
}

/*
 * Makes room: by more memory if the limit allows that, else by writing a sorted file.
 * Memory that is not used yet costs little, so we take much at once.
 */
static void
make_room(HybSort *sort)
{
	Size		size = sort->size < sort->limit / 8 ? sort->size * 4 : sort->limit;
	SortItem   *items;
	char	   *end;
	char	   *old_end = (char *) sort->items + sort->size;

	sort_assert_valid(sort);
	if (size == sort->size)
	{
		write_sorted_file(sort);
		return;
	}
	items = MemoryContextAllocHuge(sort->context, size);
	end = (char *) items + size;
	memcpy(items, sort->items, sort->nitems * sizeof(SortItem));
	memcpy(end - sort->used, old_end - sort->used, sort->used);
	for (uint64 i = 0; i < sort->nitems; i++)
		if ((items[i].place & 1) == 0)
			items[i].place += end - old_end;
	pfree(sort->items);
	sort->items = items;
	sort->size = size;
}

void
hyb_sort_put(HybSort *sort, const uint8 *bytes, uint32 len)
{
	Size		need = len <= HYB_HEAD_BYTES ? 0 :
		TYPEALIGN(sizeof(uint16), sizeof(uint16) + len - HYB_HEAD_BYTES);
	SortItem   *item;

	Assert(len <= MOST_SORTED && need < LEAST_MEMORY / 2);
	Assert(sort->merge == NULL && sort->next == 0);
	while (unlikely(!sort_has_room(sort, need)))
		make_room(sort);

	item = &sort->items[sort->nitems++];
	hyb_load_head(bytes, len, item->head);
	if (need == 0)
		item->place = ((uintptr_t) len << 1) | 1;
	else
	{
		uint16		len16 = (uint16) len;
		uint8	   *entry;

		sort->used += need;
		entry = (uint8 *) sort->items + sort->size - sort->used;
		memcpy(entry, &len16, sizeof(uint16));
		memcpy(entry + sizeof(uint16), bytes + HYB_HEAD_BYTES, len - HYB_HEAD_BYTES);
		item->place = (uintptr_t) entry;
	}
}

void
hyb_sort_perform(HybSort *sort)
{
	MemoryContext old;

	sort_assert_valid(sort);
	if (sort->file == NULL)
	{
		sort_all(sort);
		return;
	}
	finish_files(sort, hyb_sorted_fan_in(sort->limit));
	old = MemoryContextSwitchTo(sort->context);
	sort->merge = hyb_file_merge_begin(sort->files, NULL, NULL);
	MemoryContextSwitchTo(old);
}

void
hyb_sort_share(HybSort *sort, int most)
{
	char		name[MAXPGPATH];
	HybSortedList list;
	BufFile    *file;
	ListCell   *lc;

	Assert(sort->shared != NULL);
	finish_files(sort, most);
	BufFileExportFileSet(sort->file);
	list.pass = sort->pass;
	list.nfiles = list_length(sort->files);
	hyb_sorted_file_name(name, "list", sort->participant, 0);
	file = BufFileCreateFileSet(&sort->shared->fs, name);
	BufFileWrite(file, &list, sizeof(list));
	foreach(lc, sort->files)
		BufFileWrite(file, lfirst(lc), sizeof(HybSortedFile));
	BufFileExportFileSet(file);
	BufFileClose(file);
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
	item_bytes(sort, sort->next++, bytes, len);
	return true;
}

void
hyb_sort_end(HybSort *sort)
{
	if (sort->merge != NULL)
		hyb_file_merge_end(sort->merge);
	if (sort->file != NULL)
		BufFileClose(sort->file);
	MemoryContextDelete(sort->context);
	pfree(sort);
}
