/*
 * step_space.h
 *		Blocks that a step writes to, and those it replaces.
 *
 * The merge lock is held, or the index is under construction.
 */
#ifndef HYB_STEP_SPACE_H
#define HYB_STEP_SPACE_H

#include "store/meta.h"
#include "store/space.h"

typedef struct HybStepSpace
{
	const HybIndex *ix;
	bool		filters;		/* nodes of level 1 have rent and filters */
	bool		bulk;			/* CREATE INDEX: write by extending the
								 * relation, log nothing, keep no lists */
	bool		shared;			/* bulk: other processes extend it too */
	BlockNumber own;			/* shared: the next of nown blocks that are */
	int			nown;			/* for this process to write */
	int			taken;			/* shared: blocks taken so far */
	uint64		stamp;			/* of every page the step builds */
	BlockNumber reserved[HYB_MAX_PENDING];
	int			nreserved;
	int			next;			/* first one not tried yet */
	BlockNumber used[HYB_MAX_PENDING];
	int			nused;
	BlockNumber retired[HYB_MAX_PENDING];
	int			nretired;
	bool		full;			/* pending[] has no room for more: what was
								 * built is good for nothing */
	int			new_inner;		/* internal nodes written */
	int			old_inner;		/* internal nodes retired */
	int			new_filter;		/* filter pages written */
	uint64		filtered;		/* leaves whose filters are on these */
	int			old_filter;		/* filter pages retired */
} HybStepSpace;

#ifdef USE_ASSERT_CHECKING
extern void hyb_step_space_assert_valid(const HybStepSpace *space);
#else
#define hyb_step_space_assert_valid(space) ((void) (space))
#endif

/*
 * `filters`: whether the caller builds filters for the leaves.  Who has decided
 * that says it again here: the option may change meanwhile, since ALTER INDEX
 * conflicts with no insertion, no merge, and no CREATE INDEX CONCURRENTLY.
 */
extern void hyb_step_space_init(HybStepSpace *space, const HybIndex *ix,
								uint64 stamp, bool filters, int expected);

extern void hyb_bulk_space_init(HybStepSpace *space, const HybIndex *ix,
								uint64 stamp, bool filters);

/*
 * Other processes write to the relation too, from now on or no more.  Each
 * takes neighbouring blocks by the dozen, so that leaves that follow each other
 * mostly do so in the file.  Blocks it has not written in the end are empty
 * free-list pages.
 */
extern void hyb_bulk_space_share(HybStepSpace *space, bool shared);

/*
 * Write a page image to one of the reserved blocks (more are reserved when they
 * run out), log it, and return its block; any block number if there is no room.
 */
extern BlockNumber hyb_step_write(HybStepSpace *space, const char *image);
extern void hyb_step_retire(HybStepSpace *space, BlockNumber block);

/*
 * The blocks that a step has retired, and those it reserved without using them,
 * take the place of all it reserved in pending[]: do they fit?  Asked before the
 * metapage is changed.
 */
extern bool hyb_step_fits(const HybStepSpace *space, const HybMetaPage *meta);

/* The error of who cannot do with less. */
HYB_NORETURN extern void hyb_step_no_room(const HybIndex *ix);

extern void hyb_step_give_back(const HybStepSpace *space, HybMetaPage *meta);

#endif							/* HYB_STEP_SPACE_H */
