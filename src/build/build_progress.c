/*
 * build_progress.c
 *		Names of the phases of CREATE INDEX.
 */
#include "base/compat.h"

#include "build/build_progress.h"

char *
hyb_ambuildphasename(int64 phase)
{
	switch (phase)
	{
		case HYB_PHASE_INITIALIZE:
			return "initializing";
		case HYB_PHASE_SCAN:
			return "scanning table";
		case HYB_PHASE_SORT:
			return "sorting entries";
		case HYB_PHASE_WRITE:
			return "writing leaves";
		case HYB_PHASE_FINISH:
			return "writing internal nodes";
		default:
			return NULL;
	}
}
