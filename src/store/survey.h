/*
 * survey.h
 *		All blocks of an index: where they belong, and reading them in order.
 */
#ifndef HYB_SURVEY_H
#define HYB_SURVEY_H

#include "store/meta.h"

/* Where blocks belonged at one moment. */
typedef struct HybSurvey
{
	HybMetaPage *meta;			/* copy of the metapage's content */
	BlockNumber nblocks;		/* length of the relation */
	uint8	   *free;			/* bitmap: on a free list, one of its pages,
								 * pending, or given up (store/file_end.c) */
	bool		cut;			/* while it is taken: the list at hand is that
								 * of the file's end */
} HybSurvey;

#define hyb_survey_is_free(survey, block) \
	(((survey)->free[(block) >> 3] & (1 << ((block) & 7))) != 0)

/*
 * Take a survey in the current memory context.  Damage of the free list
 * (blocks out of range or listed twice, wrong counts) raises
 * ERRCODE_INDEX_CORRUPTED.  No lock of the metapage, or that comes after it
 * (docs/developing.md), may be held.
 */
extern void hyb_survey_take(const HybIndex *ix, HybSurvey *survey);
extern void hyb_survey_free(HybSurvey *survey);

struct ReadStream;

/*
 * Blocks in physical order, read ahead.
 *
 * Servers without read streams leave reading ahead to the operating system.  A
 * stream keeps blocks to come pinned: at most half of the ring of `strategy`, or
 * what the server grants.  No process waits for these pins, since only VACUUM waits
 * for cleanup locks, but the buffers are not free for other pages.  So a caller that
 * may wait for long calls hyb_block_stream_unpin first.
 */
typedef struct HybBlockStream
{
	Relation	rel;
	BufferAccessStrategy strategy;
	const uint8 *skip;			/* bitmap of blocks that are left out, or NULL */
	BlockNumber next;			/* all before it have been returned */
	BlockNumber ahead;			/* all before it have been asked for, by a
								 * reader */
	BlockNumber end;
	struct ReadStream *reader;	/* NULL: there is none */
} HybBlockStream;

/* Blocks from `first` up to before `end`; the relation must have them. */
extern void hyb_block_stream_begin(HybBlockStream *stream, Relation rel,
								   BlockNumber first, BlockNumber end,
								   const uint8 *skip,
								   BufferAccessStrategy strategy);

/*
 * The next block, pinned, at the pace that VACUUM is to keep; InvalidBuffer
 * after the last one.
 */
extern Buffer hyb_block_stream_next(HybBlockStream *stream);

/* Let go of all blocks but those that were returned. */
extern void hyb_block_stream_unpin(HybBlockStream *stream);
extern void hyb_block_stream_end(HybBlockStream *stream);

#endif							/* HYB_SURVEY_H */
