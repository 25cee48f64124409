/*
 * sorted_file.c
 *		Sorted files of an index build, and the file merge that reads several.
 *
 * A participant of a build writes its sorted files one behind the other into one
 * temporary file.  Each entry is its length, two bytes in native order, and its
 * bytes.  Beside it the writer keeps some entries of each sorted file with their
 * places: samples.  A process that knows the samples of all participants can cut
 * what they have sorted into ranges of about the same size, and finds where a
 * range begins in each sorted file.  Samples lie in memory.  They are few: one for
 * each SAMPLE_BYTES at first, and twice as far apart whenever there are
 * SAMPLES_FULL more of them.
 *
 * The file merge is a tree of losers.  Each inner node has the source that lost the
 * comparison there, so the next entry of the winner takes one comparison for each
 * level.  The first 16 bytes of each source's entry lie beside each other, as in
 * build_sort.c, and mostly decide.
 */
#include "base/compat.h"

#include <fcntl.h>

#include "base/memory.h"
#include "build/build_internal.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define SAMPLE_BYTES	(16 * 1024)
#define SAMPLES_FULL	16384

/* Bytes of entries that are collected before they are written. */
#define WRITE_BUFFER	(64 * 1024)

struct HybSortedWriter
{
	MemoryContext context;
	SharedFileSet *shared;		/* NULL if the file is this process's own */
	int			participant;
	int			passes;			/* file merges of all sorted files so far */
	BufFile    *file;
	int64		size;			/* of the file, with what is in the buffer */
	int64		distance;		/* bytes between samples */
	HybSortedFiles all;
	uint32		filled;
	uint8		buffer[WRITE_BUFFER];
};

/* Bytes of a sorted file that are read at once: at most, and at least. */
#define READ_MOST	(128 * 1024)
#define READ_LEAST	(16 * 1024)

/* Sorted files that a file merge reads at least. */
#define FEWEST_FILES	8

typedef struct SortedFileReader
{
	uint64		head[2];		/* see hyb_load_head */
	const uint8 *bytes;
	uint32		len;
	bool		ended;
	BufFile    *file;
	int64		at;				/* of what is read next */
	int64		to;
	uint8	   *buffer;
	uint32		next;			/* place in the buffer of the next entry */
	uint32		filled;
} SortedFileReader;

struct HybFileMerge
{
	MemoryContext context;
	SortedFileReader *sources;
	int			n;
	int		   *losers;			/* by node; [0] is the winner */
	bool		begun;
	uint32		size;			/* of a buffer */
	const HybBuf *high;
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

/* ---- file merges ---- */

int
hyb_sorted_fan_in(Size memory)
{
	return (int) Max(FEWEST_FILES, Min(memory / (2 * READ_LEAST), 100000));
}

/* Is the entry below `bound` and all byte strings that start with it? */
static inline bool
below(const uint8 *bytes, uint32 len, const uint8 *bound, uint32 bound_len)
{
	return memcmp(bytes, bound, Min(len, bound_len)) < 0;
}

static void
fill(HybFileMerge *merge, SortedFileReader *source)
{
	uint32		left = source->filled - source->next;
	size_t		want;

	CHECK_FOR_INTERRUPTS();
	memmove(source->buffer, source->buffer + source->next, left);
	want = (size_t) Min(merge->size - left, source->to - source->at);
	if (BufFileSeek(source->file, 0, source->at, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file of an index build")));
	read_exactly(source->file, source->buffer + left, want);
	source->at += want;
	source->next = 0;
	source->filled = left + want;
	Assert(source->at <= source->to && source->filled <= merge->size);
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
	uint32		left = source->filled - source->next;

	Assert(source->next <= source->filled && !source->ended);
	if (left >= sizeof(len))
		memcpy(&len, source->buffer + source->next, sizeof(len));
	if (left < sizeof(len) + len)
	{
		if (left == 0 && source->at == source->to)
		{
			end_source(source);
			return;
		}
		fill(merge, source);
		memcpy(&len, source->buffer, sizeof(len));
	}
	source->bytes = source->buffer + source->next + sizeof(len);
	source->len = len;
	source->next += sizeof(len) + len;
	Assert(source->next <= source->filled);
	hyb_load_head(source->bytes, len, source->head);
	if (merge->high != NULL &&
		!below(source->bytes, len, merge->high->data, merge->high->len))
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

/* Lets a source play against the losers above it. */
static inline void
replay(HybFileMerge *merge, int source)
{
	int			winner = source;

	for (int node = (source + merge->n) / 2; node > 0; node /= 2)
	{
		int			loser = merge->losers[node];

		if (comes_before(&merge->sources[loser], &merge->sources[winner]))
		{
			merge->losers[node] = winner;
			winner = loser;
		}
	}
	merge->losers[0] = winner;
	Assert(winner >= 0 && winner < merge->n);
}

/* The winner of the matches below a node. */
static int
play(HybFileMerge *merge, int node)
{
	int			a;
	int			b;

	if (node >= merge->n)
		return node - merge->n;
	a = play(merge, 2 * node);
	b = play(merge, 2 * node + 1);
	if (comes_before(&merge->sources[a], &merge->sources[b]))
	{
		merge->losers[node] = b;
		return a;
	}
	merge->losers[node] = a;
	return b;
}

/*
 * Where to begin to look for the first entry that does not lie below `low`: the
 * last sample below it, or the beginning of the sorted file.
 */
static int64
begin_at(const HybSortedFiles *all, const HybSortedFile *sorted,
		 const HybBuf *low)
{
	uint32		first = 0;
	uint32		last = sorted->nsamples;
	const HybSample *samples = all->samples + sorted->first_sample;

	while (first < last)
	{
		uint32		mid = first + (last - first) / 2;

		if (below(samples[mid].bytes, samples[mid].len, low->data, low->len))
			first = mid + 1;
		else
			last = mid;
	}
	Assert(first == 0 || (samples[first - 1].at >= sorted->from && samples[first - 1].at < sorted->to));
	return first == 0 ? sorted->from : samples[first - 1].at;
}

HybFileMerge *
hyb_file_merge_begin(const HybSortedFiles *all, const HybBuf *low,
					 const HybBuf *high, Size memory)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hybrid file merge",
												  ALLOCSET_DEFAULT_SIZES);
	HybFileMerge *merge = MemoryContextAllocZero(context, sizeof(HybFileMerge));
	Size		share = memory / Max(all->nfiles, 1);

	merge->context = context;
	merge->n = all->nfiles;
	merge->high = high;
	merge->sources = MemoryContextAllocZero(context,
											Max(merge->n, 1) * sizeof(SortedFileReader));
	merge->losers = MemoryContextAllocZero(context,
										   Max(merge->n, 1) * sizeof(int));
	merge->size = (uint32) Max(READ_LEAST, Min(READ_MOST, share));
	Assert(merge->size > 2 * HYB_MAX_ENTRY_SIZE);	/* an entry fits the
													 * buffer */
	Assert(low == NULL || high == NULL ||
		   memcmp(low->data, high->data, Min(low->len, high->len)) <= 0);
	for (int i = 0; i < merge->n; i++)
	{
		const HybSortedFile *sorted = &all->files[i];
		SortedFileReader *source = &merge->sources[i];

		source->file = sorted->file;
		source->at = low == NULL ? sorted->from : begin_at(all, sorted, low);
		source->to = sorted->to;
		source->buffer = MemoryContextAlloc(context, merge->size);
		do
			advance_sorted_file(merge, source);
		while (low != NULL && !source->ended &&
			   below(source->bytes, source->len, low->data, low->len));
	}
	return merge;
}

bool
hyb_file_merge_get(HybFileMerge *merge, const uint8 **bytes, uint32 *len)
{
	SortedFileReader *source;

	if (merge->n == 0)
		return false;
	if (!merge->begun)
		merge->losers[0] = merge->n == 1 ? 0 : play(merge, 1);
	else
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
		   below(source->bytes, source->len, merge->high->data, merge->high->len));
	*bytes = source->bytes;
	*len = source->len;
	return true;
}

void
hyb_file_merge_end(HybFileMerge *merge)
{
	MemoryContextDelete(merge->context);
}

/* ---- writing ---- */

static void
sorted_file_name(char *name, const char *what, int participant, int pass)
{
	snprintf(name, MAXPGPATH, "hybrid.%s.%d.%d", what, participant, pass);
}

static BufFile *
create_file(HybSortedWriter *writer)
{
	char		name[MAXPGPATH];

	if (writer->shared == NULL)
		return BufFileCreateTemp(false);
	sorted_file_name(name, "sorted", writer->participant, writer->passes);
	return BufFileCreateFileSet(&writer->shared->fs, name);
}

HybSortedWriter *
hyb_sorted_create(SharedFileSet *shared, int participant)
{
	HybSortedWriter *writer = palloc0(sizeof(HybSortedWriter));

	writer->context = CurrentMemoryContext;
	writer->all.context = CurrentMemoryContext;
	writer->shared = shared;
	writer->participant = participant;
	writer->distance = SAMPLE_BYTES;
	writer->file = create_file(writer);
	return writer;
}

static HybSortedFile *
add_sorted_file(HybSortedFiles *all)
{
	if (all->nfiles == all->files_alloc)
	{
		all->files_alloc = Max(16, all->files_alloc * 2);
		all->files = hyb_grow(all->context, all->files, all->files_alloc,
							  sizeof(HybSortedFile));
	}
	return &all->files[all->nfiles++];
}

static HybSample *
add_sample(HybSortedFiles *all, const uint8 *bytes, uint32 len)
{
	HybSample  *sample;
	uint8	   *copy = MemoryContextAlloc(all->context, Max(len, 1));

	if (all->nsamples == all->samples_alloc)
	{
		all->samples_alloc = Max(64, all->samples_alloc * 2);
		all->samples = hyb_grow(all->context, all->samples,
								all->samples_alloc, sizeof(HybSample));
	}
	sample = &all->samples[all->nsamples++];
	memcpy(copy, bytes, len);
	sample->bytes = copy;
	sample->len = len;
	return sample;
}

void
hyb_sorted_begin(HybSortedWriter *writer)
{
	HybSortedFile *sorted = add_sorted_file(&writer->all);

	sorted->file = writer->file;
	sorted->from = sorted->to = writer->size;
	sorted->first_sample = writer->all.nsamples;
	sorted->nsamples = 0;
}

#ifdef USE_ASSERT_CHECKING
/* Sorted files follow each other, and their samples weigh what they hold. */
static void
sorted_assert_valid(const HybSortedFiles *all)
{
	Assert(all->nfiles <= all->files_alloc && all->nsamples <= all->samples_alloc);
	for (int i = 0; i < all->nfiles; i++)
	{
		const HybSortedFile *sorted = &all->files[i];
		int64		weight = 0;

		Assert(sorted->from >= 0 && sorted->from < sorted->to);
		Assert(sorted->nsamples > 0);
		Assert(sorted->first_sample + sorted->nsamples <= all->nsamples);
		for (uint32 j = sorted->first_sample; j < sorted->first_sample + sorted->nsamples; j++)
		{
			const HybSample *sample = &all->samples[j];

			Assert(sample->at == sorted->from + weight);
			Assert(sample->len <= PG_UINT16_MAX);
			weight += sample->weight;
		}
		Assert(sorted->from + weight == sorted->to);
	}
}
#else
#define sorted_assert_valid(all) ((void) (all))
#endif

static void
take_sample(HybSortedWriter *writer, HybSortedFile *sorted, const uint8 *bytes, uint32 len)
{
	HybSample  *sample = add_sample(&writer->all, bytes, len);

	sample->at = writer->size;
	sample->weight = 0;
	sorted->nsamples++;
	if (writer->all.nsamples % SAMPLES_FULL == 0)
		writer->distance *= 2;
}

static void
flush_sorted_file(HybSortedWriter *writer)
{
	if (writer->filled > 0)
		BufFileWrite(writer->file, writer->buffer, writer->filled);
	writer->filled = 0;
}

void
hyb_sorted_add(HybSortedWriter *writer, const uint8 *bytes, uint32 len)
{
	HybSortedFiles *all = &writer->all;
	HybSortedFile *sorted = &all->files[all->nfiles - 1];
	uint16		len16 = (uint16) len;
	uint32		size = sizeof(len16) + len;

	Assert(len <= PG_UINT16_MAX && len + sizeof(len16) <= WRITE_BUFFER);
	if (sorted->nsamples == 0 ||
		all->samples[all->nsamples - 1].weight >= writer->distance)
		take_sample(writer, sorted, bytes, len);
	all->samples[all->nsamples - 1].weight += size;

	if (writer->filled + size > WRITE_BUFFER)
	{
		CHECK_FOR_INTERRUPTS();
		flush_sorted_file(writer);
	}
	memcpy(writer->buffer + writer->filled, &len16, sizeof(len16));
	memcpy(writer->buffer + writer->filled + sizeof(len16), bytes, len);
	writer->filled += size;
	writer->size += size;
	Assert(writer->filled <= WRITE_BUFFER && writer->size >= writer->filled);
}

void
hyb_sorted_end(HybSortedWriter *writer)
{
	HybSortedFiles *all = &writer->all;

	flush_sorted_file(writer);
	all->files[all->nfiles - 1].to = writer->size;
	if (all->files[all->nfiles - 1].nsamples == 0)
		all->nfiles--;
	sorted_assert_valid(all);
}

const HybSortedFiles *
hyb_sorted_written(const HybSortedWriter *writer)
{
	return &writer->all;
}

/* File merges of `fan_in` neighbouring sorted files at a time, to a new file. */
static void
file_merge_pass(HybSortedWriter *writer, int fan_in, Size memory)
{
	HybSortedFiles old = writer->all;
	BufFile    *old_file = writer->file;

	memset(&writer->all, 0, sizeof(HybSortedFiles));
	writer->all.context = old.context;
	writer->passes++;
	writer->size = 0;
	writer->distance = SAMPLE_BYTES;
	writer->file = create_file(writer);
	for (int first = 0; first < old.nfiles; first += fan_in)
	{
		HybSortedFiles some = {.files = old.files + first,.nfiles = Min(fan_in, old.nfiles - first)};
		HybFileMerge *merge = hyb_file_merge_begin(&some, NULL, NULL, memory);
		const uint8 *bytes;
		uint32		len;

		hyb_sorted_begin(writer);
		while (hyb_file_merge_get(merge, &bytes, &len))
			hyb_sorted_add(writer, bytes, len);
		hyb_sorted_end(writer);
		hyb_file_merge_end(merge);
	}
	BufFileClose(old_file);
	if (writer->shared != NULL)
	{
		char		name[MAXPGPATH];

		Assert(writer->passes > 0);
		sorted_file_name(name, "sorted", writer->participant, writer->passes - 1);
		BufFileDeleteFileSet(&writer->shared->fs, name, false);
	}
	for (uint32 i = 0; i < old.nsamples; i++)
		pfree(unconstify(uint8 *, old.samples[i].bytes));
	pfree(old.samples);
	pfree(old.files);
}

void
hyb_sorted_reduce(HybSortedWriter *writer, int most, Size memory)
{
	MemoryContext old = MemoryContextSwitchTo(writer->context);

	while (writer->all.nfiles > Max(most, 1))
	{
		int			before PG_USED_FOR_ASSERTS_ONLY = writer->all.nfiles;

		file_merge_pass(writer, Max(hyb_sorted_fan_in(memory), 2), memory);
		Assert(writer->all.nfiles < before);
	}
	MemoryContextSwitchTo(old);
}

/* ---- sharing ---- */

/* Beginning of the file with a participant's sorted files and samples. */
typedef struct DirectoryHeader
{
	int			pass;			/* part of the name of the file with entries */
	int			nfiles;
	uint32		nsamples;
} DirectoryHeader;

void
hyb_sorted_share(HybSortedWriter *writer)
{
	const HybSortedFiles *all = &writer->all;
	DirectoryHeader header = {writer->passes, all->nfiles, all->nsamples};
	char		name[MAXPGPATH];
	BufFile    *file;

	Assert(writer->shared != NULL && writer->filled == 0);
	sorted_assert_valid(all);
	BufFileExportFileSet(writer->file);

	sorted_file_name(name, "samples", writer->participant, 0);
	file = BufFileCreateFileSet(&writer->shared->fs, name);
	BufFileWrite(file, &header, sizeof(header));
	if (all->nfiles > 0)
		BufFileWrite(file, all->files, all->nfiles * sizeof(HybSortedFile));
	for (uint32 i = 0; i < all->nsamples; i++)
	{
		HybSample	sample = all->samples[i];

		BufFileWrite(file, &sample, sizeof(sample));
		BufFileWrite(file, unconstify(uint8 *, sample.bytes), sample.len);
	}
	BufFileExportFileSet(file);
	BufFileClose(file);
}

void
hyb_sorted_close(HybSortedWriter *writer)
{
	BufFileClose(writer->file);
}

static void
read_directory(HybSortedFiles *all, SharedFileSet *shared, int participant)
{
	char		name[MAXPGPATH];
	DirectoryHeader header;
	BufFile    *directory;
	BufFile    *file;
	uint32		samples_before = all->nsamples;
	HybBuf		bytes = {0};

	sorted_file_name(name, "samples", participant, 0);
	directory = BufFileOpenFileSet(&shared->fs, name, O_RDONLY, false);
	read_exactly(directory, &header, sizeof(header));
	sorted_file_name(name, "sorted", participant, header.pass);
	file = BufFileOpenFileSet(&shared->fs, name, O_RDONLY, false);
	for (int i = 0; i < header.nfiles; i++)
	{
		HybSortedFile *sorted = add_sorted_file(all);

		read_exactly(directory, sorted, sizeof(HybSortedFile));
		sorted->file = file;
		sorted->first_sample += samples_before;
	}
	for (uint32 i = 0; i < header.nsamples; i++)
	{
		HybSample	read;
		HybSample  *sample;

		read_exactly(directory, &read, sizeof(read));
		bytes.len = 0;
		hyb_buf_reserve(&bytes, read.len);
		read_exactly(directory, bytes.data, read.len);
		sample = add_sample(all, bytes.data, read.len);
		sample->at = read.at;
		sample->weight = read.weight;
	}
	hyb_buf_free(&bytes);
	BufFileClose(directory);
	if (header.nfiles == 0)
		BufFileClose(file);
}

HybSortedFiles *
hyb_sorted_open(SharedFileSet *shared, int participants)
{
	HybSortedFiles *all = palloc0(sizeof(HybSortedFiles));

	all->context = CurrentMemoryContext;
	for (int i = 0; i < participants; i++)
		read_directory(all, shared, i);
	sorted_assert_valid(all);
	return all;
}

void
hyb_sorted_close_opened(HybSortedFiles *all)
{
	/* sorted files of one temporary file are neighbours */
	for (int i = 0; i < all->nfiles; i++)
		if (i == 0 || all->files[i].file != all->files[i - 1].file)
			BufFileClose(all->files[i].file);
}

int64
hyb_sorted_bytes(const HybSortedFiles *all)
{
	int64		sum = 0;

	for (int i = 0; i < all->nfiles; i++)
		sum += all->files[i].to - all->files[i].from;
	return sum;
}
