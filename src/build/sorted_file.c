/*
 * sorted_file.c
 *		Reads sorted files of an index build, several by a file merge.
 *
 * A participant of a build writes its sorted files (build_sort.c) one behind the
 * other into one temporary file, in blocks.  A block holds whole entries.  Each entry is its
 * length, two bytes in native order, and its bytes.  A length of zero ends a block
 * that is not full.  So a process can begin to read at any block.  By a binary
 * search it finds the block where a range of keys begins.  The first entries of
 * blocks are a sample of what has been sorted, which is cut into ranges by them.
 *
 * The file merge is a tree of losers.  Each inner node has the source that lost the
 * comparison there, so the next entry of the winner takes one comparison for each
 * level.  The first 16 bytes of each source's entry lie beside each other, as in
 * build_sort.c, and mostly decide.
 */
#include "base/compat.h"

#include <fcntl.h>

#include "build/build_internal.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* Ranges are cut by at most this number of entries. */
#define MOST_SAMPLES	4096

/* Sorted files that a file merge reads at least. */
#define FEWEST_FILES	8

typedef struct SortedFileReader
{
	uint64		head[2];		/* see hyb_load_head */
	const uint8 *bytes;
	uint32		len;
	bool		ended;
	HybSortedFile rest;			/* blocks that have not been read */
	uint32		next;			/* place of the next entry in the block */
	uint8	   *block;			/* of HYB_SORTED_BLOCK bytes */
} SortedFileReader;

struct HybFileMerge
{
	MemoryContext context;
	SortedFileReader *sources;
	int			n;
	int		   *losers;			/* by node; [0] is the winner */
	bool		begun;
	const HybSample *high;
};

static void
read_exactly(BufFile *file, void *to, size_t size)
{
	size_t		got = BufFileRead(file, to, size);

	if (got != size)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from temporary file of an index build: read only %zu of %zu bytes",
						got, size)));
}

/* Reads the first `size` bytes of a block. */
static void
read_block(const HybSortedFile *sorted, int64 block, uint8 *to, size_t size)
{
	Assert(block >= sorted->from && block < sorted->to);
	if (BufFileSeekBlock(sorted->file, (long) (block * (HYB_SORTED_BLOCK / BLCKSZ))) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file of an index build")));
	read_exactly(sorted->file, to, size);
}

/* Returns the first entry of a block, which a page of memory takes. */
static const uint8 *
first_entry(const HybSortedFile *sorted, int64 block, uint8 *page, uint32 *len)
{
	uint16		len16;

	read_block(sorted, block, page, BLCKSZ);
	memcpy(&len16, page, sizeof(len16));
	Assert(len16 > 0 && sizeof(len16) + len16 <= BLCKSZ);
	*len = len16;
	return page + sizeof(len16);
}

/* ---- file merges ---- */

int
hyb_sorted_fan_in(Size memory)
{
	return (int) Max(FEWEST_FILES, Min(memory / (HYB_SORTED_BLOCK + BLCKSZ), 100000));
}

/* Is the entry below `bound` and all byte strings that start with it? */
static inline bool
below(const uint8 *bytes, uint32 len, const HybSample *bound)
{
	return memcmp(bytes, bound->bytes, Min(len, bound->len)) < 0;
}

/* A source that has ended comes after all others. */
static void
end_source(SortedFileReader *source)
{
	source->ended = true;
	source->head[0] = source->head[1] = PG_UINT64_MAX;
}

/* Goes to the next entry. */
static inline void
advance_sorted_file(HybFileMerge *merge, SortedFileReader *source)
{
	uint16		len = 0;

	Assert(source->next <= HYB_SORTED_BLOCK && !source->ended);
	if (source->next + sizeof(len) <= HYB_SORTED_BLOCK)
		memcpy(&len, source->block + source->next, sizeof(len));
	if (len == 0)
	{
		if (source->rest.from == source->rest.to)
		{
			end_source(source);
			return;
		}
		CHECK_FOR_INTERRUPTS();
		read_block(&source->rest, source->rest.from, source->block, HYB_SORTED_BLOCK);
		source->rest.from++;
		source->next = 0;
		memcpy(&len, source->block, sizeof(len));
	}
	source->bytes = source->block + source->next + sizeof(len);
	source->len = len;
	source->next += sizeof(len) + len;
	Assert(len > 0 && source->next <= HYB_SORTED_BLOCK);
	hyb_load_head(source->bytes, len, source->head);
	if (merge->high != NULL && !below(source->bytes, len, merge->high))
		end_source(source);
}

static inline bool
comes_before(const SortedFileReader *a, const SortedFileReader *b)
{
	int			c;

	if (a->head[0] != b->head[0])
		return a->head[0] < b->head[0];
	if (a->head[1] != b->head[1])
		return a->head[1] < b->head[1];
	if (a->ended || b->ended)
		return !a->ended;
	c = memcmp(a->bytes, b->bytes, Min(a->len, b->len));
	return c != 0 ? c < 0 : a->len < b->len;
}

/*
 * Lets a source play against the losers above it.  At first a source waits where no
 * other has been.
 */
static inline void
replay(HybFileMerge *merge, int source)
{
	int			winner = source;

	for (int node = (source + merge->n) / 2; node > 0; node /= 2)
	{
		int			loser = merge->losers[node];

		if (unlikely(loser < 0))
		{
			merge->losers[node] = winner;
			return;
		}
		if (comes_before(&merge->sources[loser], &merge->sources[winner]))
		{
			merge->losers[node] = winner;
			winner = loser;
		}
	}
	merge->losers[0] = winner;
	Assert(winner >= 0 && winner < merge->n);
}

/*
 * Returns the block to begin at for the first entry that does not lie below `low`:
 * the last block whose first entry does, or the first one.
 */
static int64
begin_at(const HybSortedFile *sorted, const HybSample *low, uint8 *page)
{
	int64		first = sorted->from;
	int64		last = sorted->to - 1;

	while (first < last)
	{
		int64		mid = first + (last - first + 1) / 2;
		uint32		len;
		const uint8 *bytes = first_entry(sorted, mid, page, &len);

		if (below(bytes, len, low))
			first = mid;
		else
			last = mid - 1;
	}
	Assert(first == last);
	return first;
}

HybFileMerge *
hyb_file_merge_begin(List *files, const HybSample *low, const HybSample *high)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hybrid file merge",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	HybFileMerge *merge = palloc0(sizeof(HybFileMerge));
	SortedFileReader *source;
	ListCell   *lc;

	Assert(low == NULL || high == NULL ||
		   memcmp(low->bytes, high->bytes, Min(low->len, high->len)) <= 0);
	merge->context = context;
	merge->n = list_length(files);
	merge->high = high;
	merge->sources = source = palloc0(Max(merge->n, 1) * sizeof(SortedFileReader));
	merge->losers = palloc(Max(merge->n, 1) * sizeof(int));
	for (int i = 0; i < merge->n; i++)
		merge->losers[i] = -1;
	foreach(lc, files)
	{
		const HybSortedFile *sorted = lfirst(lc);

		source->block = palloc(HYB_SORTED_BLOCK);
		source->rest = *sorted;
		if (low != NULL)
			source->rest.from = begin_at(sorted, low, source->block);
		source->next = HYB_SORTED_BLOCK;	/* nothing has been read */
		do
			advance_sorted_file(merge, source);
		while (low != NULL && !source->ended &&
			   below(source->bytes, source->len, low));
		source++;
	}
	for (int i = 0; i < merge->n; i++)
		replay(merge, i);
	MemoryContextSwitchTo(old);
	return merge;
}

bool
hyb_file_merge_get(HybFileMerge *merge, const uint8 **bytes, uint32 *len)
{
	SortedFileReader *source;

	if (merge->n == 0)
		return false;
	if (merge->begun)
	{
		advance_sorted_file(merge, &merge->sources[merge->losers[0]]);
		replay(merge, merge->losers[0]);
	}
	merge->begun = true;
	source = &merge->sources[merge->losers[0]];
	if (source->ended)
	{
		/* all have ended: further calls return false, too */
		merge->n = 0;
		return false;
	}
	Assert(merge->high == NULL ||
		   below(source->bytes, source->len, merge->high));
	*bytes = source->bytes;
	*len = source->len;
	return true;
}

void
hyb_file_merge_end(HybFileMerge *merge)
{
	MemoryContextDelete(merge->context);
}

/* ---- what participants have shared ---- */

void
hyb_sorted_file_name(char *name, const char *what, int participant, int pass)
{
	snprintf(name, MAXPGPATH, "hybrid.%s.%d.%d", what, participant, pass);
}

List *
hyb_sorted_open(SharedFileSet *shared, int participants)
{
	List	   *files = NIL;

	for (int i = 0; i < participants; i++)
	{
		char		name[MAXPGPATH];
		HybSortedList header;
		BufFile    *list;
		BufFile    *entries;

		hyb_sorted_file_name(name, "list", i, 0);
		list = BufFileOpenFileSet(&shared->fs, name, O_RDONLY, false);
		read_exactly(list, &header, sizeof(header));
		hyb_sorted_file_name(name, "sorted", i, header.pass);
		entries = BufFileOpenFileSet(&shared->fs, name, O_RDONLY, false);
		for (int j = 0; j < header.nfiles; j++)
		{
			HybSortedFile *sorted = palloc(sizeof(HybSortedFile));

			read_exactly(list, sorted, sizeof(HybSortedFile));
			sorted->file = entries;
			files = lappend(files, sorted);
		}
		BufFileClose(list);
		if (header.nfiles == 0)
			BufFileClose(entries);
	}
	return files;
}

void
hyb_sorted_close_opened(List *files)
{
	BufFile    *closed = NULL;
	ListCell   *lc;

	/* sorted files of one temporary file are neighbours */
	foreach(lc, files)
	{
		HybSortedFile *sorted = lfirst(lc);

		if (sorted->file != closed)
			BufFileClose(sorted->file);
		closed = sorted->file;
	}
}

int64
hyb_sorted_bytes(List *files)
{
	int64		blocks = 0;
	ListCell   *lc;

	foreach(lc, files)
	{
		const HybSortedFile *sorted = lfirst(lc);

		Assert(sorted->from >= 0 && sorted->from < sorted->to);
		blocks += sorted->to - sorted->from;
	}
	return blocks * HYB_SORTED_BLOCK;
}

HybSample *
hyb_sorted_sample(List *files, int *n)
{
	int64		blocks = hyb_sorted_bytes(files) / HYB_SORTED_BLOCK;
	int64		step = 1 + blocks / MOST_SAMPLES;
	HybSample  *samples = palloc((blocks / step + 1) * sizeof(HybSample));
	uint8	   *page = palloc(BLCKSZ);
	int64		next = 0;		/* the block to take, from this file on */
	ListCell   *lc;

	*n = 0;
	foreach(lc, files)
	{
		const HybSortedFile *sorted = lfirst(lc);

		for (; next < sorted->to - sorted->from; next += step)
		{
			HybSample  *sample = &samples[(*n)++];
			const uint8 *bytes = first_entry(sorted, sorted->from + next, page,
											 &sample->len);

			CHECK_FOR_INTERRUPTS();
			sample->bytes = memcpy(palloc(sample->len), bytes, sample->len);
		}
		next -= sorted->to - sorted->from;
	}
	Assert(*n <= blocks / step + 1);
	pfree(page);
	return samples;
}
