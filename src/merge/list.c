/*
 * list.c
 *		The merges that are running, for hybrid_merge_progress.
 */
#include "compat.h"

#include "dynamic/progress.h"
#include "merge/merge.h"

int
hyb_merge_progress_list(HybMergeProgress **list)
{
	int			n = 0;

	*list = palloc(HYB_PROGRESS_ENTRIES * sizeof(HybMergeProgress));
	for (int i = 0; i < HYB_PROGRESS_ENTRIES; i++)
	{
		HybProgress progress;
		HybMergeProgress *merge = &(*list)[n];

		if (!hyb_progress_read(i, &progress))
			continue;
		merge->dbid = progress.dbid;
		merge->relid = progress.relid;
		merge->pid = progress.pid;
		merge->entries_total = progress.entries_total;
		merge->entries_done = progress.entries_done;
		merge->steps = progress.steps;
		merge->started = progress.started;
		n++;
	}
	return n;
}
