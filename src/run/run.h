/*
 * run.h
 *		The runs of a version, whatever they are stored in.
 *
 * A run is a sorted set of entries that answers a key range.  Those of a
 * version are numbered: static levels from the oldest one on, as in the
 * version, then the generations of the log.  Of two runs the one with the
 * greater number is the newer one.  An entry that is live for a snapshot is in
 * exactly one run of each version; merges move it to older runs.
 *
 * Scans and uniqueness checks, which are in a hurry, ask static levels and the
 * dynamic stage by themselves (src/scan, src/insert).
 */
#ifndef HYB_RUN_H
#define HYB_RUN_H

#include "log/log.h"

#define HYB_RUN_FROZEN		HYB_MAX_LEVELS
#define HYB_RUN_ACTIVE		(HYB_MAX_LEVELS + 1)

/* Both generations as one: they are read together. */
#define HYB_RUN_LOG		(HYB_MAX_LEVELS + 2)

/*
 * hyb_log_fetch for one run: the live entries that `fetch` asks for, but
 * with no hash; `which` is not looked at.  Returns false if
 * `version` is no longer current.  No lock is held on entry or return.
 *
 * An item's ref is to its page: of a static level generation is 0, and offset
 * the ordinal of the item in its leaf.
 */
extern bool hyb_run_fetch(HybIndex *ix, const HybVersion *version, int run,
						  const HybFetch *fetch, HybFetched *batch);

#endif							/* HYB_RUN_H */
