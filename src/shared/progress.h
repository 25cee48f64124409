/*
 * progress.h
 *		Progress of running merges, for all backends to see.
 *
 * A backend runs one merge at a time.  Its entry goes away with
 * hyb_progress_end, when its transaction aborts, or when its process is gone.
 */
#ifndef HYB_PROGRESS_H
#define HYB_PROGRESS_H

#include "datatype/timestamp.h"
#include "shared/shared.h"

#define HYB_PROGRESS_ENTRIES	16

/* A running merge; the entry is free if pid is 0. */
typedef struct HybProgress
{
	Oid			dbid;
	Oid			relid;
	int			pid;
	uint64		entries_total;	/* of the frozen generation */
	uint64		entries_done;
	uint64		entries_moved;	/* from one static level to another, after
								 * that */
	int			pass_level;		/* which they are moved from; 0: none */
	uint64		steps;
	TimestampTz started;
} HybProgress;

extern const HybSharedPart hyb_progress_part;

/* Returns the entry's number for the other calls, -1 if the table is full. */
extern int	hyb_progress_begin(Oid dbid, Oid relid, uint64 entries_total);

/* Numbers of entries and steps.  Entry -1 is allowed, and ignored. */
extern void hyb_progress_update(int entry, const HybProgress *now);
extern void hyb_progress_end(int entry);

/* Entry number `entry` of HYB_PROGRESS_ENTRIES; false if it is free. */
extern bool hyb_progress_read(int entry, HybProgress *progress);

#endif							/* HYB_PROGRESS_H */
