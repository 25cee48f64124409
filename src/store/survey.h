/*
 * survey.h
 *		Where the blocks of an index belong, at one moment.
 */
#ifndef HYB_SURVEY_H
#define HYB_SURVEY_H

#include "store/meta.h"

/* All of it was true at one moment. */
typedef struct HybSurvey
{
	HybMetaPage *meta;			/* copy of the metapage's content */
	BlockNumber nblocks;		/* length of the relation */
	uint8	   *free;			/* bitmap: on a free list, one of its pages,
								 * pending, or given up (store/file_end.h) */
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

#endif							/* HYB_SURVEY_H */
