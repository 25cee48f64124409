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
 * with no hash; `which` is not looked at.  The run has whole keys.  Returns false if
 * `version` is no longer current.  No lock is held on entry or return.
 *
 * An item's ref is to its page: of a static level generation is 0, and offset
 * the ordinal of the item in its leaf.
 */
extern bool hyb_run_fetch(HybIndex *ix, const HybVersion *version, int run,
						  const HybFetch *fetch, HybFetched *batch);

/*
 * Has a run a live entry at this position (key and TID)?  Returns false if `version` is no
 * longer current.
 */
extern bool hyb_run_holds(HybIndex *ix, const HybVersion *version, int run,
						  const HybPos *pos, bool *holds);

/*
 * The runs of a version from a level on, the log as the last one, read as one
 * sequence of entries.
 */
typedef struct HybRunSource
{
	HybFetched	batch;
	int			next;			/* item of the batch */
} HybRunSource;

typedef struct HybRuns
{
	int			oldest;			/* level */
	MemoryContext context;		/* of the batches */
	HybRunSource *first;		/* has the first entry; NULL: there is none,
								 * or it is not known */
	HybRunSource sources[HYB_MAX_LEVELS + 1];
} HybRuns;

/*
 * Find the first entry, or the last one if the fetch is backward, of those that were
 * fetched but not consumed, or lie in the range of `fetch`.  Returns false if
 * `version` is no longer current.
 */
extern bool hyb_runs_peek(HybIndex *ix, const HybVersion *version,
						  const HybFetch *fetch, HybRuns *runs);

static inline const HybFetchedItem *
hyb_runs_item(const HybRuns *runs)
{
	return runs->first != NULL ? &runs->first->batch.items[runs->first->next] : NULL;
}

static inline const uint8 *
hyb_runs_bytes(const HybRuns *runs, const HybFetchedItem *item)
{
	return runs->first->batch.keys.data + item->key_off;
}

/* Consume the entry. */
static inline void
hyb_runs_next(HybRuns *runs)
{
	runs->first->next++;
	runs->first = NULL;
}

/* Forget what was fetched, as for another version; give the memory back. */
extern void hyb_runs_reset(HybRuns *runs);
extern void hyb_runs_free(HybRuns *runs);

#endif							/* HYB_RUN_H */
