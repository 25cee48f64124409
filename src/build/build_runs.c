/*
 * build_runs.c
 *		Sorted runs of byte strings in temporary files.
 *
 * In a file each entry is its length, two bytes in native order, and its
 * bytes.  Runs and samples are kept in memory: with an entry every
 * SAMPLE_BYTES, and twice that distance whenever there are SAMPLES_FULL of
 * them more, they are few.
 */
#include "base/compat.h"

#include <fcntl.h>

#include "base/memory.h"
#include "build/build_runs.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#define SAMPLE_BYTES	(16 * 1024)
#define SAMPLES_FULL	16384

/* Entries are gathered here before they are given to the file. */
#define WRITE_BUFFER	(64 * 1024)

struct HybRunWriter
{
	MemoryContext context;
	SharedFileSet *files;
	int			participant;
	int			passes;			/* files that were merged to another */
	BufFile    *file;
	int64		size;			/* of the file, what is in the buffer included */
	int64		distance;		/* of samples */
	HybRuns		all;
	uint32		filled;
	uint8		buffer[WRITE_BUFFER];
};

static void
sorted_file_name(char *name, const char *what, int participant, int pass)
{
	snprintf(name, MAXPGPATH, "hybrid.%s.%d.%d", what, participant, pass);
}

static BufFile *
create_file(HybRunWriter *writer)
{
	char		name[MAXPGPATH];

	if (writer->files == NULL)
		return BufFileCreateTemp(false);
	sorted_file_name(name, "runs", writer->participant, writer->passes);
	return BufFileCreateFileSet(&writer->files->fs, name);
}

HybRunWriter *
hyb_runs_create(SharedFileSet *files, int participant)
{
	HybRunWriter *writer = palloc0(sizeof(HybRunWriter));

	writer->context = CurrentMemoryContext;
	writer->all.context = CurrentMemoryContext;
	writer->files = files;
	writer->participant = participant;
	writer->distance = SAMPLE_BYTES;
	writer->file = create_file(writer);
	return writer;
}

static HybRun *
add_run(HybRuns *runs)
{
	if (runs->nruns == runs->runs_alloc)
	{
		runs->runs_alloc = Max(16, runs->runs_alloc * 2);
		runs->runs = hyb_grow(runs->context, runs->runs, runs->runs_alloc,
							  sizeof(HybRun));
	}
	return &runs->runs[runs->nruns++];
}

static HybSample *
add_sample(HybRuns *runs, const uint8 *bytes, uint32 len)
{
	HybSample  *sample;
	uint8	   *copy = MemoryContextAlloc(runs->context, Max(len, 1));

	if (runs->nsamples == runs->samples_alloc)
	{
		runs->samples_alloc = Max(64, runs->samples_alloc * 2);
		runs->samples = hyb_grow(runs->context, runs->samples,
								 runs->samples_alloc, sizeof(HybSample));
	}
	sample = &runs->samples[runs->nsamples++];
	memcpy(copy, bytes, len);
	sample->bytes = copy;
	sample->len = len;
	return sample;
}

void
hyb_runs_begin(HybRunWriter *writer)
{
	HybRun	   *run = add_run(&writer->all);

	run->file = writer->file;
	run->from = run->to = writer->size;
	run->first_sample = writer->all.nsamples;
	run->nsamples = 0;
}

#ifdef USE_ASSERT_CHECKING
/* Runs follow each other, and the samples of each weigh what it has. */
static void
runs_assert_valid(const HybRuns *runs)
{
	Assert(runs->nruns <= runs->runs_alloc && runs->nsamples <= runs->samples_alloc);
	for (int i = 0; i < runs->nruns; i++)
	{
		const HybRun *run = &runs->runs[i];
		int64		weight = 0;

		Assert(run->from >= 0 && run->from < run->to);
		Assert(run->nsamples > 0);
		Assert(run->first_sample + run->nsamples <= runs->nsamples);
		for (uint32 j = run->first_sample; j < run->first_sample + run->nsamples; j++)
		{
			const HybSample *sample = &runs->samples[j];

			Assert(sample->at == run->from + weight);
			Assert(sample->len <= PG_UINT16_MAX);
			weight += sample->weight;
		}
		Assert(run->from + weight == run->to);
	}
}
#else
#define runs_assert_valid(runs) ((void) (runs))
#endif

static void
take_sample(HybRunWriter *writer, HybRun *run, const uint8 *bytes, uint32 len)
{
	HybSample  *sample = add_sample(&writer->all, bytes, len);

	sample->at = writer->size;
	sample->weight = 0;
	run->nsamples++;
	if (writer->all.nsamples % SAMPLES_FULL == 0)
		writer->distance *= 2;
}

static void
flush_sorted_file(HybRunWriter *writer)
{
	if (writer->filled > 0)
		BufFileWrite(writer->file, writer->buffer, writer->filled);
	writer->filled = 0;
}

void
hyb_runs_add(HybRunWriter *writer, const uint8 *bytes, uint32 len)
{
	HybRuns    *all = &writer->all;
	HybRun	   *run = &all->runs[all->nruns - 1];
	uint16		len16 = (uint16) len;
	uint32		size = sizeof(len16) + len;

	Assert(len <= PG_UINT16_MAX && len + sizeof(len16) <= WRITE_BUFFER);
	if (run->nsamples == 0 ||
		all->samples[all->nsamples - 1].weight >= writer->distance)
		take_sample(writer, run, bytes, len);
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
hyb_runs_end_run(HybRunWriter *writer)
{
	HybRuns    *all = &writer->all;

	flush_sorted_file(writer);
	all->runs[all->nruns - 1].to = writer->size;
	if (all->runs[all->nruns - 1].nsamples == 0)
		all->nruns--;
	runs_assert_valid(all);
}

const HybRuns *
hyb_runs_written(const HybRunWriter *writer)
{
	return &writer->all;
}

/* Merge neighbouring runs, so many at a time, to a new file. */
static void
merge_pass(HybRunWriter *writer, int fan_in, Size memory)
{
	HybRuns		old = writer->all;
	BufFile    *old_file = writer->file;

	memset(&writer->all, 0, sizeof(HybRuns));
	writer->all.context = old.context;
	writer->passes++;
	writer->size = 0;
	writer->distance = SAMPLE_BYTES;
	writer->file = create_file(writer);
	for (int first = 0; first < old.nruns; first += fan_in)
	{
		HybRuns		some = {.runs = old.runs + first,.nruns = Min(fan_in, old.nruns - first)};
		HybRunMerge *merge = hyb_merge_begin(&some, NULL, NULL, memory);
		const uint8 *bytes;
		uint32		len;

		hyb_runs_begin(writer);
		while (hyb_merge_get(merge, &bytes, &len))
			hyb_runs_add(writer, bytes, len);
		hyb_runs_end_run(writer);
		hyb_merge_end(merge);
	}
	BufFileClose(old_file);
	if (writer->files != NULL)
	{
		char		name[MAXPGPATH];

		Assert(writer->passes > 0);
		sorted_file_name(name, "runs", writer->participant, writer->passes - 1);
		BufFileDeleteFileSet(&writer->files->fs, name, false);
	}
	for (uint32 i = 0; i < old.nsamples; i++)
		pfree(unconstify(uint8 *, old.samples[i].bytes));
	pfree(old.samples);
	pfree(old.runs);
}

void
hyb_runs_reduce(HybRunWriter *writer, int most, Size memory)
{
	MemoryContext old = MemoryContextSwitchTo(writer->context);

	while (writer->all.nruns > Max(most, 1))
	{
		int			before PG_USED_FOR_ASSERTS_ONLY = writer->all.nruns;

		merge_pass(writer, Max(hyb_runs_fan_in(memory), 2), memory);
		Assert(writer->all.nruns < before);
	}
	MemoryContextSwitchTo(old);
}

/* ---- sharing ---- */

/* What a participant's file of runs and samples begins with. */
typedef struct DirectoryHeader
{
	int			pass;			/* part of the name of the file with the runs */
	int			nruns;
	uint32		nsamples;
} DirectoryHeader;

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

void
hyb_runs_share(HybRunWriter *writer)
{
	const HybRuns *all = &writer->all;
	DirectoryHeader header = {writer->passes, all->nruns, all->nsamples};
	char		name[MAXPGPATH];
	BufFile    *file;

	Assert(writer->files != NULL && writer->filled == 0);
	runs_assert_valid(all);
	BufFileExportFileSet(writer->file);

	sorted_file_name(name, "samples", writer->participant, 0);
	file = BufFileCreateFileSet(&writer->files->fs, name);
	BufFileWrite(file, &header, sizeof(header));
	if (all->nruns > 0)
		BufFileWrite(file, all->runs, all->nruns * sizeof(HybRun));
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
hyb_runs_close(HybRunWriter *writer)
{
	BufFileClose(writer->file);
}

static void
read_directory(HybRuns *all, SharedFileSet *files, int participant)
{
	char		name[MAXPGPATH];
	DirectoryHeader header;
	BufFile    *directory;
	BufFile    *file;
	uint32		samples_before = all->nsamples;
	HybBuf		bytes = {0};

	sorted_file_name(name, "samples", participant, 0);
	directory = BufFileOpenFileSet(&files->fs, name, O_RDONLY, false);
	read_exactly(directory, &header, sizeof(header));
	sorted_file_name(name, "runs", participant, header.pass);
	file = BufFileOpenFileSet(&files->fs, name, O_RDONLY, false);
	for (int i = 0; i < header.nruns; i++)
	{
		HybRun	   *run = add_run(all);

		read_exactly(directory, run, sizeof(HybRun));
		run->file = file;
		run->first_sample += samples_before;
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
	if (header.nruns == 0)
		BufFileClose(file);
}

HybRuns *
hyb_runs_open(SharedFileSet *files, int participants)
{
	HybRuns    *all = palloc0(sizeof(HybRuns));

	all->context = CurrentMemoryContext;
	for (int i = 0; i < participants; i++)
		read_directory(all, files, i);
	runs_assert_valid(all);
	return all;
}

void
hyb_runs_close_opened(HybRuns *runs)
{
	/* the runs of a file are neighbours */
	for (int i = 0; i < runs->nruns; i++)
		if (i == 0 || runs->runs[i].file != runs->runs[i - 1].file)
			BufFileClose(runs->runs[i].file);
}

int64
hyb_runs_bytes(const HybRuns *runs)
{
	int64		sum = 0;

	for (int i = 0; i < runs->nruns; i++)
		sum += runs->runs[i].to - runs->runs[i].from;
	return sum;
}
