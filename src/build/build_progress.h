/*
 * build_progress.h
 *		Phases of CREATE INDEX, for pg_stat_progress_create_index.
 */
#ifndef HYB_BUILD_PROGRESS_H
#define HYB_BUILD_PROGRESS_H

#include "commands/progress.h"

/* Values of PROGRESS_CREATEIDX_SUBPHASE; the core itself reports the first */
#define HYB_PHASE_INITIALIZE	PROGRESS_CREATEIDX_SUBPHASE_INITIALIZE
#define HYB_PHASE_SCAN			2	/* reading the table */
#define HYB_PHASE_SORT			3	/* sorting entries */
#define HYB_PHASE_WRITE			4	/* building and writing leaves */
#define HYB_PHASE_FINISH		5	/* internal nodes, metapage, logging */

extern char *hyb_ambuildphasename(int64 phase);

#endif							/* HYB_BUILD_PROGRESS_H */
