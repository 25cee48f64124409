/*
 * build_merge.c
 *		Merging the runs of an index build.
 *
 * A tree of losers: each inner node has the run that lost the comparison
 * there, so that the next entry of the run that won takes one comparison a
 * level.  The first 16 bytes of each run's entry lie beside each other, as in
 * build_sort.c, and mostly decide.
 */
#include "base/compat.h"

#include "algo/bits.h"
#include "build/build_runs.h"
#include "miscadmin.h"
#include "utils/memutils.h"

/* What of a run is read at once: at most, and at least. */
#define READ_MOST	(128 * 1024)
#define READ_LEAST	(16 * 1024)

#define FEWEST_RUNS	8

typedef struct SortedFileReader
{
	uint64		head[2];		/* the first 16 bytes, 0 after the end */
	const uint8 *bytes;
	uint32		len;
	bool		ended;
	BufFile    *file;
	int64		at;				/* of what is read next */
	int64		to;
	uint8	   *buffer;
	uint32		next;			/* entry behind this one, in the buffer */
	uint32		filled;
} SortedFileReader;

struct HybRunMerge
{
	MemoryContext context;
	SortedFileReader *sources;
	int			n;
	int		   *losers;			/* [1, n); [0] is the winner */
	bool		begun;
	uint32		size;			/* of a buffer */
	const HybBuf *high;
};

int
hyb_runs_fan_in(Size memory)
{
	return (int) Max(FEWEST_RUNS, Min(memory / (2 * READ_LEAST), 100000));
}

/* Is the entry below all byte strings that start with `bound`, and it? */
static inline bool
below(const uint8 *bytes, uint32 len, const uint8 *bound, uint32 bound_len)
{
	return memcmp(bytes, bound, Min(len, bound_len)) < 0;
}

static void
fill(HybRunMerge *merge, SortedFileReader *source)
{
	uint32		left = source->filled - source->next;
	size_t		want;
	size_t		got;

	CHECK_FOR_INTERRUPTS();
	memmove(source->buffer, source->buffer + source->next, left);
	want = (size_t) Min(merge->size - left, source->to - source->at);
	if (BufFileSeek(source->file, 0, source->at, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file of an index build")));
	got = BufFileRead(source->file, source->buffer + left, want);
	if (got != want)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not read from temporary file of an index build: read only %zu of %zu bytes",
						got, want)));
	source->at += want;
	source->next = 0;
	source->filled = left + want;
	Assert(source->at <= source->to && source->filled <= merge->size);
}

static void
end_source(SortedFileReader *source)
{
	source->ended = true;
	source->head[0] = source->head[1] = PG_UINT64_MAX;
}

/* Go to the next entry. */
static inline void
advance_sorted_file(HybRunMerge *merge, SortedFileReader *source)
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
	if (len >= 16)
	{
		source->head[0] = hyb_load64be(source->bytes);
		source->head[1] = hyb_load64be(source->bytes + 8);
	}
	else
	{
		uint8		head[16] = {0};

		memcpy(head, source->bytes, len);
		source->head[0] = hyb_load64be(head);
		source->head[1] = hyb_load64be(head + 8);
	}
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

/* Let a run play against the losers above it. */
static inline void
replay(HybRunMerge *merge, int run)
{
	int			winner = run;

	for (int node = (run + merge->n) / 2; node > 0; node /= 2)
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
play(HybRunMerge *merge, int node)
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
 * Where to begin to look for the first entry that does not lie below `low`:
 * the last sample that does, or the run's beginning.
 */
static int64
begin_at(const HybRuns *runs, const HybRun *run, const HybBuf *low)
{
	uint32		first = 0;
	uint32		last = run->nsamples;
	const HybSample *samples = runs->samples + run->first_sample;

	while (first < last)
	{
		uint32		mid = first + (last - first) / 2;

		if (below(samples[mid].bytes, samples[mid].len, low->data, low->len))
			first = mid + 1;
		else
			last = mid;
	}
	Assert(first == 0 || (samples[first - 1].at >= run->from && samples[first - 1].at < run->to));
	return first == 0 ? run->from : samples[first - 1].at;
}

HybRunMerge *
hyb_merge_begin(const HybRuns *runs, const HybBuf *low, const HybBuf *high,
				Size memory)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "hybrid merge of runs",
												  ALLOCSET_DEFAULT_SIZES);
	HybRunMerge *merge = MemoryContextAllocZero(context, sizeof(HybRunMerge));
	Size		share = memory / Max(runs->nruns, 1);

	merge->context = context;
	merge->n = runs->nruns;
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
		const HybRun *run = &runs->runs[i];
		SortedFileReader *source = &merge->sources[i];

		source->file = run->file;
		source->at = low == NULL ? run->from : begin_at(runs, run, low);
		source->to = run->to;
		source->buffer = MemoryContextAlloc(context, merge->size);
		do
			advance_sorted_file(merge, source);
		while (low != NULL && !source->ended &&
			   below(source->bytes, source->len, low->data, low->len));
	}
	return merge;
}

bool
hyb_merge_get(HybRunMerge *merge, const uint8 **bytes, uint32 *len)
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
		/* all have: a call after the last one does not advance */
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
hyb_merge_end(HybRunMerge *merge)
{
	MemoryContextDelete(merge->context);
}
