/*
 * build_runs.h
 *		Sorted runs of byte strings in temporary files, and merging them.
 *
 * A participant of a build writes its runs one behind the other into one file,
 * and keeps beside it some entries of each run with their places: samples.
 * Whoever knows the samples of all participants can cut what they have sorted
 * into ranges of about the same size, and finds where a range begins in each
 * run.
 */
#ifndef HYB_BUILD_RUNS_H
#define HYB_BUILD_RUNS_H

#include "key/key.h"
#include "storage/buffile.h"
#include "storage/sharedfileset.h"

/* Entries [from, to) of a file, in bytes. */
typedef struct HybRun
{
	BufFile    *file;
	int64		from;
	int64		to;
	uint32		first_sample;	/* of all in `samples` */
	uint32		nsamples;		/* at least one: the first entry */
} HybRun;

typedef struct HybSample
{
	int64		at;				/* place in the file */
	int64		weight;			/* bytes up to the next one, or the run's end */
	const uint8 *bytes;
	uint32		len;
} HybSample;

/* Runs of one or more participants. */
typedef struct HybRuns
{
	HybRun	   *runs;
	int			nruns;
	int			runs_alloc;
	HybSample  *samples;
	uint32		nsamples;
	uint32		samples_alloc;
	MemoryContext context;		/* of all that */
} HybRuns;

/* ---- writing: one participant ---- */

typedef struct HybRunWriter HybRunWriter;

/*
 * In CurrentMemoryContext.  Without `files` the file is this process's own;
 * with them it is that of this participant, for others to read once it is
 * shared.
 */
extern HybRunWriter *hyb_runs_create(SharedFileSet *files, int participant);
extern void hyb_runs_begin(HybRunWriter *writer);
extern void hyb_runs_add(HybRunWriter *writer, const uint8 *bytes, uint32 len);
extern void hyb_runs_end_run(HybRunWriter *writer);

/* What was written; the writer's own. */
extern const HybRuns *hyb_runs_written(const HybRunWriter *writer);

/*
 * Make sure that there are at most so many runs, with this memory (bytes).
 */
extern void hyb_runs_reduce(HybRunWriter *writer, int most, Size memory);

/* Runs and samples to files that others open; nothing is written after that. */
extern void hyb_runs_share(HybRunWriter *writer);

/* Closes the writer's files, which others may still open if they are shared. */
extern void hyb_runs_close(HybRunWriter *writer);

/* ---- reading: anybody ---- */

/* What so many participants have shared; in CurrentMemoryContext. */
extern HybRuns *hyb_runs_open(SharedFileSet *files, int participants);
extern void hyb_runs_close_opened(HybRuns *runs);
extern int64 hyb_runs_bytes(const HybRuns *runs);

/* Runs that may be merged at once with so many bytes of memory. */
extern int	hyb_runs_fan_in(Size memory);

typedef struct HybRunMerge HybRunMerge;

/*
 * Entries of all runs in order that do not lie below the byte string `low`
 * (NULL: all) but below `high` (NULL: to the end).  An entry that starts with
 * such a string does not lie below it.  No entry is a prefix of another.
 */
extern HybRunMerge *hyb_merge_begin(const HybRuns *runs, const HybBuf *low,
									const HybBuf *high, Size memory);

/* Holds until the next call. */
extern bool hyb_merge_get(HybRunMerge *merge, const uint8 **bytes, uint32 *len);
extern void hyb_merge_end(HybRunMerge *merge);

#endif							/* HYB_BUILD_RUNS_H */
