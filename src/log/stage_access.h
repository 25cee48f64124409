/*
 * stage_access.h
 * Opening the trees of an index, and bringing them up to date with its log:
 * for the files of this folder.
 *
 * What words mean here and in the files beside:
 *
 *		append		add an entry to the log
 *		enter		put an entry of the log into a tree
 *		follow		read a lane page by page, and enter what is there
 *		applied		the place in a lane up to which a tree has its entries
 *		catch up	do what is missing for a tree to have all of the log
 */
#ifndef HYB_STAGE_ACCESS_H
#define HYB_STAGE_ACCESS_H

#include "log/log.h"

/*
 * After this number of entries that are entered the stage is unlocked for a
 * moment, so readers wait some milliseconds at most.
 */
#define HYB_ENTER_ENTRIES	4096

/* A stage made ready for reading. */
typedef struct HybStageAccess
{
	HybCache   *cache;
	HybStage   *stage;
	HybArena   *arena;
	HybSharedSlot *shared;		/* locked; NULL: a backend-local stage */
	uint64		hash;			/* hyb_key_hash of the only key that is
								 * wanted, or 0; shared trees may lack entries
								 * of others then */
	bool		brief;			/* the caller would rather read the log in
								 * place than wait for a tree to be built */
	bool		merge_wanted;	/* the shared tree was lost too often: closing
								 * it requests a merge */
	uint32		nentered;		/* entries, since the stage was locked; of a
								 * brief caller all */
} HybStageAccess;

/* The generation of HYB_FROZEN or HYB_ACTIVE. */
static inline const HybGeneration *
hyb_version_generation(const HybVersion *version, int which)
{
	return which == HYB_FROZEN ? &version->frozen : &version->active;
}

typedef enum HybStageResult
{
	HYB_STAGE_READY,			/* caught up */
	HYB_STAGE_STALE,			/* the version is no longer current */
	HYB_STAGE_UNFINISHED,		/* a brief caller may read the log in place */
	HYB_STAGE_MORE,				/* there is more to do, but another process
								 * may want the lock; hyb_stage_open does not
								 * return this */
	HYB_STAGE_MEMORY,			/* more chunks must be reserved; of
								 * hyb_stage_open: there is no memory for
								 * them, and the log is to be read in place */
	HYB_STAGE_IMPURE			/* an entry is not pure, as the stage notes;
								 * hyb_stage_open does not return this */
} HybStageResult;

/*
 * Are the wanted trees (HYB_FETCH_*) there, and up to date?  With a hash, do shared ones
 * have all entries with its key?  The stage is locked, at least shared.
 */
extern bool hyb_stage_is_caught_up(HybIndex *ix, HybStageAccess *access,
								   const HybVersion *version, int want);

/*
 * Bring the wanted trees up to date, as far as the pocket reaches.  The stage
 * is locked exclusively.
 */
extern HybStageResult hyb_stage_catch_up(HybIndex *ix, HybStageAccess *access,
										 const HybVersion *version, int want);

/* ---- opening (open_stage.c) ---- */

/*
 * Catch the trees in `want` (HYB_FETCH_*) up with the log as it is now, and
 * lock the stage for reading.  READY: end with hyb_stage_close.  STALE, and
 * UNFINISHED, which only a brief caller gets, and MEMORY: nothing is held.
 * `pure`: all that the caller will compare with the stage's entries is.  The
 * caller sets `brief` and `hash` in *access, and all else to 0.
 */
extern HybStageResult hyb_stage_open(HybIndex *ix, const HybVersion *version,
									 int want, bool pure,
									 HybStageAccess *access);
extern void hyb_stage_close(HybStageAccess *access);

/* ---- reading the log in place (in_place.c) ---- */

/*
 * Read what a fetch of the generations in `which` wants from the log's pages.
 * `batch` is empty on entry, and if the result is false: then trees are
 * needed.  The caller proves afterwards that the version is current.  The first
 * one is for short logs while memory is short, the second one for logs whose
 * trees are unfinished.  Nothing is locked.
 */
extern bool hyb_log_read_short(HybIndex *ix, const HybVersion *version,
							   const HybFetch *fetch, int which,
							   HybFetched *batch);
extern bool hyb_log_read_unfinished(HybIndex *ix, const HybVersion *version,
									const HybFetch *fetch, int which,
									HybFetched *batch);

/* A piece of the index's cache.  This generation's log is to be read through a tree. */
extern HybCachePiece hyb_short_log_piece;
extern void hyb_log_wants_tree(HybCache *cache, uint64 generation);

/*
 * The same where there is no memory for trees: reads any log, and takes as long as
 * that is.  False if the version is not current.
 */
extern bool hyb_log_read_in_place(HybIndex *ix, const HybVersion *version,
								  const HybFetch *fetch, int which,
								  HybFetched *batch);

/* One more item, of an entry of that generation. */
extern void hyb_fetched_add_entry(HybFetched *batch, const HybEntry *entry,
								  uint64 generation);

/* ---- entries that only the log has (delta.c) ---- */

/* Pins the page read last; what it has read lies in `bytes`. */
typedef struct HybLogReader
{
	HybEntryLog log;
	HybIndex   *ix;
	uint64		generation;
	Buffer		buf;
	BlockNumber block;			/* of buf */
	BlockNumber lost;			/* no page of the generation, or no entry
								 * there */
	uint8		bytes[HYB_MAX_ENTRY_SIZE];
} HybLogReader;

/*
 * A tree of an opened stage, to be read or changed; end with
 * hyb_log_reader_end, while the stage is still locked.  Where an error comes
 * between, the pin goes with the resource owner.
 */
extern void hyb_tree_use(HybTreeUse *use, HybIndex *ix, HybTree *tree,
						 HybArena *arena, HybLogReader *reader);

static inline void
hyb_log_reader_end(HybLogReader *reader)
{
	if (BufferIsValid(reader->buf))
		ReleaseBuffer(reader->buf);
	reader->buf = InvalidBuffer;
}

#endif							/* HYB_STAGE_ACCESS_H */
