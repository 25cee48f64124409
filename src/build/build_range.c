/*
 * build_range.c
 *		Ranges of a parallel build: where they begin, and what was written.
 */
#include "base/compat.h"

#include <fcntl.h>

#include "build/build_range.h"
#include "build/build_scan.h"

/* A key, and how much lies between it and the next one. */
typedef struct Mark
{
	const uint8 *bytes;
	uint32		len;
	int64		weight;
} Mark;

/* Such strings are no prefixes of each other, unless they are the same. */
static int
compare_marks(const void *a, const void *b)
{
	const Mark *x = a;
	const Mark *y = b;
	int			c = memcmp(x->bytes, y->bytes, Min(x->len, y->len));

	return c != 0 ? c : (x->len > y->len) - (x->len < y->len);
}

void
hyb_ranges_cut(HybRanges *ranges, const HybRuns *runs, const HybKeyDesc *desc,
			   bool whole_keys, int most)
{
	Mark	   *marks = palloc(Max(runs->nsamples, 1) * sizeof(Mark));
	double		total = 0;
	double		before = 0;
	const Mark *last = marks;	/* where the last range begins */

	ranges->n = 1;
	ranges->bounds = palloc0(Max(most, 1) * sizeof(HybBuf));
	for (uint32 i = 0; i < runs->nsamples; i++)
	{
		const HybSample *sample = &runs->samples[i];

		marks[i].bytes = sample->bytes;
		marks[i].len = hyb_key_length(desc, sample->bytes, sample->len) +
			(whole_keys ? 0 : HYB_SORTED_TID_BYTES);
		marks[i].weight = sample->weight;
		total += (double) sample->weight;
	}
	qsort(marks, runs->nsamples, sizeof(Mark), compare_marks);
	for (uint32 i = 0; i < runs->nsamples && ranges->n < most; i++)
	{
		/* a range holds the mark that it begins at, so none is empty */
		if (before >= total * ranges->n / most &&
			compare_marks(&marks[i], last) > 0)
		{
			hyb_buf_append(&ranges->bounds[ranges->n - 1], marks[i].bytes,
						   marks[i].len);
			Assert(marks[i].len > 0);
			ranges->n++;
			last = &marks[i];
		}
		before += (double) marks[i].weight;
	}
	Assert(ranges->n >= 1 && ranges->n <= Max(most, 1));
	pfree(marks);
}

HybPos
hyb_range_low(const HybRanges *ranges, int range, const HybKeyDesc *desc,
			  bool whole_keys)
{
	const HybBuf *bound = &ranges->bounds[range - 1];
	HybPos		pos = {.key = bound->data,.ncols = (uint8) desc->nkeys,.tie = HYB_BEFORE};

	Assert(range > 0 && range < ranges->n);
	Assert(bound->len > (whole_keys ? 0 : HYB_SORTED_TID_BYTES));
	if (whole_keys)
	{
		pos.len = (uint16) bound->len;
		return pos;
	}
	pos.len = (uint16) (bound->len - HYB_SORTED_TID_BYTES);
	return hyb_pos_at(desc, pos.key, pos.len,
					  hyb_sorted_tid(bound->data + pos.len));
}

/* ---- what was written ---- */

static void
range_file_name(char *name, int range)
{
	snprintf(name, MAXPGPATH, "hybrid.nodes.%d", range);
}

/* Each child is written as it is, its key behind it. */
void
hyb_range_put(SharedFileSet *files, int range, const HybChildList *nodes)
{
	char		name[MAXPGPATH];
	BufFile    *file;

	range_file_name(name, range);
	file = BufFileCreateFileSet(&files->fs, name);
	for (int i = 0; i < nodes->n; i++)
	{
		HybChild	child = nodes->children[i];

		BufFileWrite(file, &child, sizeof(child));
		if (child.low.len > 0)
			BufFileWrite(file, unconstify(uint8 *, child.low.key), child.low.len);
	}
	BufFileExportFileSet(file);
	BufFileClose(file);
}

void
hyb_range_get(SharedFileSet *files, int range, HybChildList *nodes)
{
	char		name[MAXPGPATH];
	BufFile    *file;
	HybChild	child;
	HybBuf		key = {0};

	range_file_name(name, range);
	file = BufFileOpenFileSet(&files->fs, name, O_RDONLY, false);
	while (BufFileRead(file, &child, sizeof(child)) == sizeof(child))
	{
		hyb_buf_reserve(&key, child.low.len);
		if (child.low.len > 0 &&
			BufFileRead(file, key.data, child.low.len) != child.low.len)
			break;
		child.low.key = key.data;
		hyb_child_list_add(nodes, &child);
	}
	hyb_buf_free(&key);
	BufFileClose(file);
}
